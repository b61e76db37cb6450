//! The frame of every page: head, navigation, footer, and the headers of its response.

use crate::listing::complaint;
use crate::pulse::now_s;
use crate::show::moment;
use crate::visitors::Visitor;
use hyper::StatusCode;
use hyper::header::{HeaderName, HeaderValue};
use maud::{DOCTYPE, Markup, html};
use site::{Answer, typed};

/// Headers of every response. The page asks nobody but the proxy for anything, and nobody else may
/// show it inside of his.
const HEADERS: &[(&str, &str)] = &[
    (
        "content-security-policy",
        "default-src 'self'; base-uri 'none'; object-src 'none'; frame-ancestors 'none'; form-action 'self'",
    ),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    // With `no-referrer` a browser would not say where a form comes from.
    ("referrer-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    (
        "permissions-policy",
        "camera=(), geolocation=(), microphone=()",
    ),
    ("cache-control", "no-store"),
];

/// Pages, in the order of the navigation: path, name.
pub(crate) const PAGES: &[(&str, &str)] = &[
    ("/", "Overview"),
    ("/queries", "Queries"),
    ("/servers", "Servers"),
    ("/sessions", "Sessions"),
    ("/rules", "Rules"),
    ("/cache", "Cache"),
    ("/cluster", "Cluster"),
    ("/history", "History"),
    ("/log", "Log"),
];

/// Content of a page.
pub(crate) struct Page {
    /// Its path, or that of the page it belongs to.
    pub(crate) path: &'static str,
    pub(crate) title: &'static str,
    /// Content that is asked for again and again.
    pub(crate) live: Markup,
    /// Milliseconds between two times that it is; 0 for never.
    pub(crate) every_ms: u32,
    /// Content that stays.
    pub(crate) still: Markup,
}

/// A response with the headers of all.
pub(crate) fn whole(status: StatusCode, content: &'static str, body: String) -> Answer {
    let mut answer = typed(status, content, body);
    for (name, value) in HEADERS {
        let headers = answer.headers_mut();
        headers.insert(
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
    }
    answer
}

/// A response that is a page.
pub(crate) fn page(status: StatusCode, markup: Markup) -> Answer {
    whole(status, "text/html; charset=utf-8", markup.into_string())
}

/// A page for who has come in.
pub(crate) fn framed(page: &Page, visitor: &Visitor) -> Markup {
    let inside = html! {
        a.skip href="#content" { "Skip to the content" }
        header {
            p.name { "Millrace" }
            nav aria-label="Pages" {
                ul {
                    @for (path, name) in PAGES {
                        li { a href=(path) aria-current=[(*path == page.path).then_some("page")] { (name) } }
                    }
                }
            }
            form.leave method="post" action="/logout" {
                (token(visitor))
                span { (visitor.pass.user) @if !visitor.pass.may_act { " (may look)" } }
                button { "Log out" }
            }
        }
        main id="content" tabindex="-1" {
            h1 { (page.title) }
            @if page.every_ms > 0 {
                p.live-line {
                    button type="button" id="pause" hidden aria-pressed="false" { "Pause" }
                    " " span id="age" role="status" {}
                }
            }
            div id="live" data-every=(page.every_ms) { (page.live) }
            (page.still)
        }
        footer { p { "Millrace " (env!("CARGO_PKG_VERSION")) ", " (moment(now_s())) " UTC" } }
    };
    document(page.title, &inside)
}

/// A page for who has not come in yet.
pub(crate) fn login(words: Option<&str>) -> Markup {
    let inside = html! {
        main.login id="content" {
            h1 { "Millrace" }
            @if let Some(words) = words { (complaint(words)) }
            form method="post" action="/login" {
                label for="user" { "User" }
                input id="user" name="user" required autofocus autocomplete="username" maxlength="200";
                label for="password" { "Password" }
                input id="password" name="password" type="password" required autocomplete="current-password" maxlength="200";
                button { "Log in" }
            }
            p.hint { "With the credentials of the admin port: those of " code { "admin-stats_credentials" }
                " may look, those of " code { "admin-admin_credentials" } " may act." }
        }
    };
    document("Log in", &inside)
}

/// A page that says why there is no other.
pub(crate) fn refusal(words: &str) -> Markup {
    let inside = html! {
        main id="content" {
            h1 { "That was not done" }
            (complaint(words))
            p { a href="/" { "To the overview" } }
        }
    };
    document("Not done", &inside)
}

/// The field of a form by which it is known to be one of the visitor's.
pub(crate) fn token(visitor: &Visitor) -> Markup {
    html! { input type="hidden" name="token" value=(visitor.token); }
}

fn document(title: &str, inside: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " – Millrace" }
                link rel="icon" type="image/svg+xml" href="/icon.svg";
                link rel="stylesheet" href="/style.css";
                script src="/live.js" defer {}
            }
            body { (inside) }
        }
    }
}
