//! From a request to its response: who asks, whether he may, and what is shown.

use crate::fields::{Fields, fields, form};
use crate::page::{self, framed, page, refusal, whole};
use crate::pages;
use crate::pages::Asked;
use crate::visitors::{COOKIE, Visitor};
use crate::work::Work;
use hyper::body::Incoming;
use hyper::header::{
    ALLOW, COOKIE as COOKIES, HOST, HeaderMap, HeaderName, HeaderValue, LOCATION, ORIGIN,
    RETRY_AFTER, SET_COOKIE,
};
use hyper::{Method, Request, StatusCode};
use site::Answer;
use std::net::IpAddr;
use std::time::Instant;

/// Characters of a name that nobody has, in the log.
const NAME_CHARS_MAX: usize = 100;

const TEXT: &str = "text/plain; charset=utf-8";
const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("live.js");
const ICON: &str = include_str!("icon.svg");

/// Answers a request.
pub(crate) async fn answer(work: &Work, from: IpAddr, request: Request<Incoming>) -> Answer {
    let (head, body) = request.into_parts();
    let path = head.uri.path().to_owned();
    match (&head.method, path.as_str()) {
        (&Method::GET | &Method::HEAD, "/style.css") => {
            whole(StatusCode::OK, "text/css; charset=utf-8", STYLE.into())
        }
        (&Method::GET | &Method::HEAD, "/live.js") => whole(
            StatusCode::OK,
            "text/javascript; charset=utf-8",
            SCRIPT.into(),
        ),
        (&Method::GET | &Method::HEAD, "/icon.svg") => {
            whole(StatusCode::OK, "image/svg+xml", ICON.into())
        }
        (&Method::GET | &Method::HEAD, "/login") => page(StatusCode::OK, page::login(None)),
        (&Method::GET | &Method::HEAD, _) => {
            let fields = fields(head.uri.query().unwrap_or_default().as_bytes());
            shown(work, &head.headers, &path, fields).await
        }
        (&Method::POST, _) => {
            if !is_same_origin(&head.headers) {
                return page(
                    StatusCode::FORBIDDEN,
                    refusal("the form came from a page of somebody else"),
                );
            }
            match form(&head.headers, body).await {
                Ok(fields) if path == "/login" => enter(work, from, &fields).await,
                Ok(fields) => acted(work, &head.headers, &path, fields).await,
                Err((status, words)) => page(status, refusal(words)),
            }
        }
        _ => {
            let mut answer = page(StatusCode::METHOD_NOT_ALLOWED, refusal("use GET or POST"));
            set(&mut answer, ALLOW, "GET, HEAD, POST");
            answer
        }
    }
}

/// A page, or what changes on it.
async fn shown(work: &Work, headers: &HeaderMap, path: &str, fields: Fields) -> Answer {
    let is_live = fields.iter().any(|(name, _)| name == "live");
    // A page that asks by itself is told in a way that its script understands.
    let out = || match is_live {
        true => whole(StatusCode::UNAUTHORIZED, TEXT, "log in\n".into()),
        false => to("/login"),
    };
    let Some(visitor) = visitor(work, headers, !is_live) else {
        return out();
    };
    let asked = Asked::new(work, &visitor, fields);
    let Some(shown) = pages::show(path, &asked).await else {
        return page(StatusCode::NOT_FOUND, refusal("there is no such page"));
    };
    if asked.is_out() {
        leave(work, headers);
        return out();
    }
    match is_live {
        true => page(StatusCode::OK, shown.live),
        false => page(StatusCode::OK, framed(&shown, &visitor)),
    }
}

/// A form of somebody who has come in.
async fn acted(work: &Work, headers: &HeaderMap, path: &str, fields: Fields) -> Answer {
    let Some(visitor) = visitor(work, headers, true) else {
        return to("/login");
    };
    let asked = Asked::new(work, &visitor, fields);
    if !visitor.has_token(asked.field("token")) {
        return page(
            StatusCode::FORBIDDEN,
            refusal("the form is not one of yours, or is too old: load the page again"),
        );
    }
    if path == "/logout" {
        leave(work, headers);
        let mut answer = to("/login");
        set(&mut answer, SET_COOKIE, &cookie("", "; Max-Age=0"));
        return answer;
    }
    if !visitor.pass.may_act {
        return page(
            StatusCode::FORBIDDEN,
            refusal("you may look and not act: log in with credentials of an administrator"),
        );
    }
    match pages::act(path, &asked).await {
        None => page(StatusCode::NOT_FOUND, refusal("there is no such page")),
        Some(_) if asked.is_out() => {
            leave(work, headers);
            to("/login")
        }
        Some(Ok(pages::Done::Shown(shown))) => page(StatusCode::OK, framed(&shown, &visitor)),
        Some(Ok(pages::Done::To(place))) => to(place),
        Some(Err(unanswered)) => page(
            StatusCode::CONFLICT,
            refusal(crate::listing::words(&unanswered)),
        ),
    }
}

/// A login.
async fn enter(work: &Work, from: IpAddr, fields: &Fields) -> Answer {
    let of = |name: &str| {
        fields
            .iter()
            .find(|(known, _)| known == name)
            .map_or("", |(_, value)| value)
    };
    let (user, password) = (of("user"), of("password"));
    let attempt = work.slowness.borrow_mut().attempt(from, Instant::now());
    if let Err(wait) = attempt {
        let seconds = wait.as_secs() + 1;
        let words = format!("after a wrong password one has to wait: try again in {seconds} s");
        let mut answer = page(StatusCode::TOO_MANY_REQUESTS, page::login(Some(&words)));
        set(&mut answer, RETRY_AFTER, &seconds.to_string());
        return answer;
    }
    let entered = match work.desk.enter(user, password, from).await {
        Ok(pass) => pass,
        Err(words) => {
            let user: String = user.chars().take(NAME_CHARS_MAX).collect();
            work.log
                .line(&format!("web: {user:?} was not let in from {from}"));
            return page(StatusCode::FORBIDDEN, page::login(Some(&words)));
        }
    };
    work.slowness.borrow_mut().forgive(from);
    work.log
        .line(&format!("web: {user:?} has come in from {from}"));
    match work.visitors.borrow_mut().enter(entered, Instant::now()) {
        Ok(key) => {
            let mut answer = to("/");
            set(&mut answer, SET_COOKIE, &cookie(&key, ""));
            answer
        }
        Err(error) => page(
            StatusCode::INTERNAL_SERVER_ERROR,
            refusal(&error.to_string()),
        ),
    }
}

/// Whose cookie the request has.
fn visitor(work: &Work, headers: &HeaderMap, acts: bool) -> Option<Visitor> {
    let key = key(headers)?;
    work.visitors.borrow_mut().of(key, acts, Instant::now())
}

fn leave(work: &Work, headers: &HeaderMap) {
    if let Some(key) = key(headers) {
        work.visitors.borrow_mut().leave(key);
    }
}

/// Value of our cookie.
fn key(headers: &HeaderMap) -> Option<&str> {
    let all = headers
        .get_all(COOKIES)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let mut pairs = all
        .flat_map(|text| text.split(';'))
        .filter_map(|pair| pair.trim().split_once('='));
    pairs.find_map(|(name, value)| (name == COOKIE).then_some(value))
}

fn cookie(value: &str, more: &str) -> String {
    format!("{COOKIE}={value}; Path=/; Secure; HttpOnly; SameSite=Strict{more}")
}

/// Whether a form comes from a page of ours, by what the browser says of it.
fn is_same_origin(headers: &HeaderMap) -> bool {
    let of = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    match (of(&ORIGIN), of(&HOST)) {
        (Some(origin), Some(host)) => origin.strip_prefix("https://") == Some(host),
        _ => false,
    }
}

/// Sends a browser elsewhere, with GET.
fn to(place: &str) -> Answer {
    let mut answer = whole(StatusCode::SEE_OTHER, TEXT, String::new());
    set(&mut answer, LOCATION, place);
    answer
}

fn set(answer: &mut Answer, name: HeaderName, value: &str) {
    // Ours are all of letters and digits.
    if let Ok(value) = HeaderValue::from_str(value) {
        answer.headers_mut().insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(all: &[(HeaderName, &'static str)]) -> HeaderMap {
        all.iter()
            .map(|(name, value)| (name.clone(), HeaderValue::from_static(value)))
            .collect()
    }

    #[test]
    fn a_form_comes_from_our_own_page_or_is_refused() {
        let is_ours = |origin, host| is_same_origin(&headers(&[(ORIGIN, origin), (HOST, host)]));
        assert!(is_ours("https://localhost:6080", "localhost:6080"));
        assert!(!is_ours("http://localhost:6080", "localhost:6080"));
        assert!(!is_ours("https://localhost:6081", "localhost:6080"));
        assert!(!is_ours("null", "localhost:6080"));
        assert!(!is_same_origin(&headers(&[(HOST, "localhost:6080")])));
    }

    #[test]
    fn our_cookie_is_found_among_others() {
        let of = |text| key(&headers(&[(COOKIES, text)])).map(str::to_owned);
        assert_eq!(of("a=1; __Host-millrace=x; b=2"), Some("x".to_owned()));
        assert_eq!(of("millrace=x; __Host-millrace2=y; __Host-millrace"), None);
        let said = cookie("x", "");
        assert!(
            said.contains("; Secure; HttpOnly; SameSite=Strict"),
            "{said}"
        );
    }
}
