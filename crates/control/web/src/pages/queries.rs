//! Queries: which statements there are, where they go and why, and rules for them.

use super::asked::{Asked, Done, Outcome, literal};
use crate::listing::{Listing, Row, cell, col};
use crate::page::{Page, token};
use crate::show::As;
use bridge::{Table, Unanswered};
use maud::{Markup, html};

const COLUMNS: &str = "digest_text, hostgroup, schemaname, username, count_star, \
    round(count_star * 1.0 / max(last_seen - first_seen, 1), 1), sum_time, sum_time / max(count_star, 1), max_time, sum_rows_sent, last_seen, digest";

const DIGESTS: Listing = Listing {
    caption: "Statements without their literals",
    sql: "",
    columns: &[
        col("Statement", As::Code),
        col("Hostgroup", As::Number),
        col("Schema", As::Text),
        col("User", As::Text),
        col("Times", As::Number),
        col("In a second", As::Number),
        col("Time of all", As::Us),
        col("Of one", As::Us),
        col("Longest", As::Us),
        col("Rows", As::Number),
        col("Last", As::Moment),
    ],
    empty: "No statement was counted. mysql-query_digests says whether they are.",
};

/// Orders: name in the address, name on the page, what is compared.
const ORDERS: &[(&str, &str, &str)] = &[
    ("time", "time of all", "sum_time"),
    ("times", "times", "count_star"),
    (
        "rate",
        "rate",
        "count_star * 1.0 / max(last_seen - first_seen, 1)",
    ),
    ("one", "time of one", "sum_time / max(count_star, 1)"),
    ("longest", "longest", "max_time"),
    ("rows", "rows", "sum_rows_sent"),
    ("last", "last", "last_seen"),
];

const STEPS: Listing = Listing {
    caption: "Where it goes, and why",
    sql: "",
    columns: &[],
    empty: "There are no steps.",
};

pub(super) async fn show(asked: &Asked<'_>) -> Page {
    let (by, find) = (asked.field("by"), asked.field("find"));
    let chosen = ORDERS
        .iter()
        .find(|order| order.0 == by)
        .unwrap_or(&ORDERS[0]);
    let condition = match find.is_empty() {
        true => String::new(),
        false => format!(
            "WHERE instr(lower(digest_text), lower({})) > 0",
            literal(find)
        ),
    };
    let sql = format!(
        "SELECT {COLUMNS} FROM stats_mysql_query_digest {condition} ORDER BY {} DESC LIMIT 100",
        chosen.2
    );
    let answer = asked.ask(&sql).await;
    let live = html! { (DIGESTS.show_with(&answer, Some("Rule"), rule_link)) };
    let still = html! {
        (super::overview::errors(asked).await)
        @if asked.may_act() { (box_of(asked, None)) }
    };
    let sorts = html! {
        form.fields method="get" action="/queries" {
            div { label for="find" { "With this text" } input id="find" name="find" value=(find) maxlength="200"; }
            input type="hidden" name="by" value=(chosen.0);
            button { "Find" }
        }
        p id="order" { "The first 100, by:" }
        ul.sorts aria-labelledby="order" {
            @for order in ORDERS {
                li { a href=(address(order.0, find)) aria-current=[(order.0 == chosen.0).then_some("true")] { (order.1) } }
            }
        }
    };
    Page {
        path: "/queries",
        title: "Queries",
        live: html! { (sorts) (live) },
        every_ms: 0,
        still,
    }
}

fn address(by: &str, find: &str) -> String {
    let fields = [("by", by), ("find", find)];
    let text = form_urlencoded::Serializer::new(String::new())
        .extend_pairs(fields)
        .finish();
    format!("/queries?{text}")
}

fn rule_link(row: &Row) -> Markup {
    let fields = [
        ("digest", cell(row, 11)),
        ("hostgroup", cell(row, 1)),
        ("text", cell(row, 0)),
    ];
    let text = form_urlencoded::Serializer::new(String::new())
        .extend_pairs(fields)
        .finish();
    html! { a href=(format!("/queries/rule?{text}")) { "Make a rule of it" } }
}

/// The box of `EXPLAIN ROUTE`, and what came of it.
fn box_of(asked: &Asked<'_>, steps: Option<&Table>) -> Markup {
    html! {
        section.box aria-labelledby="route" {
            h2 id="route" { "Where would it go?" }
            form method="post" action="/queries/route" {
                (token(asked.visitor))
                label for="sql" { "Statement" }
                textarea id="sql" name="sql" rows="4" required { (asked.field("sql")) }
                div.fields {
                    div { label for="user" { "User (any, if empty)" } input id="user" name="user" value=(asked.field("user")); }
                    div { label for="schema" { "Schema (his own, if empty)" } input id="schema" name="schema" value=(asked.field("schema")); }
                    button { "Explain" }
                }
            }
            p.hint { "The same as " code { "EXPLAIN ROUTE" } " on the admin port: nothing is sent to a server." }
            @if let Some(steps) = steps { (shown_steps(steps)) }
        }
    }
}

fn shown_steps(steps: &Table) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label=(STEPS.caption) {
            table {
                caption { (STEPS.caption) }
                thead { tr { @for name in &steps.names { th scope="col" { (name) } } } }
                tbody {
                    @for row in &steps.rows {
                        tr { @for at in 0..steps.names.len() { td { (cell(row, at)) } } }
                    }
                }
            }
        }
    }
}

/// `EXPLAIN ROUTE` for the statement of the form.
pub(super) async fn route(asked: &Asked<'_>) -> Outcome {
    let mut sql = format!("EXPLAIN ROUTE {}", literal(asked.field("sql")));
    for (word, name) in [("AS", asked.field("user")), ("IN", asked.field("schema"))] {
        if name.contains(|c: char| c.is_whitespace() || "'\"`;".contains(c)) {
            let words = "a user or schema with blanks or quotes cannot be named here";
            return Err(Unanswered::Said(words.to_owned()));
        }
        if !name.is_empty() {
            sql += &format!(" {word} {name}");
        }
    }
    let steps = asked.ask(&sql).await?;
    Ok(Done::Shown(Box::new(Page {
        path: "/queries",
        title: "Queries",
        live: box_of(asked, Some(&steps)),
        every_ms: 0,
        still: html! { p { a href="/queries" { "All statements" } } },
    })))
}

/// The statements that make a rule of a digest, for who wants to copy them.
pub(super) async fn rule(asked: &Asked<'_>) -> Page {
    let (digest, text) = (asked.field("digest"), asked.field("text"));
    let live = match is_digest(digest) {
        false => crate::listing::complaint(
            "this is no digest: choose a statement on the page of the queries",
        ),
        true => html! {
            p { code { (text) } }
            (rule_form(asked))
            h2 { label for="rule" { "The rule, for the admin port" } }
            textarea id="rule" readonly rows="12" { (rule_sql(asked)) }
            p { button type="button" data-copies="rule" hidden { "Copy" } " "
                "Nothing is done here. A LOAD puts it into force; SAVE keeps it for the next start." }
        },
    };
    Page {
        path: "/queries",
        title: "A rule for a statement",
        live,
        every_ms: 0,
        still: html! { p { a href="/queries" { "All statements" } } },
    }
}

fn rule_form(asked: &Asked<'_>) -> Markup {
    html! {
        form.fields method="get" action="/queries/rule" {
            @for name in ["digest", "text"] { input type="hidden" name=(name) value=(asked.field(name)); }
            div {
                label for="hostgroup" { "To the hostgroup" }
                input id="hostgroup" name="hostgroup" inputmode="numeric" value=(asked.field("hostgroup"));
            }
            div {
                label for="cache" { "Kept in the cache, in milliseconds (not, if empty)" }
                input id="cache" name="cache" inputmode="numeric" value=(asked.field("cache"));
            }
            div {
                label for="error" { "Refused with these words (not, if empty)" }
                input id="error" name="error" value=(asked.field("error"));
            }
            button { "Write it" }
        }
    }
}

fn rule_sql(asked: &Asked<'_>) -> String {
    let number = |name| {
        asked
            .field(name)
            .parse::<u32>()
            .ok()
            .map(|number| number.to_string())
    };
    let text = |name| {
        Some(asked.field(name))
            .filter(|text| !text.is_empty())
            .map(literal)
    };
    let mut columns = vec![(
        "rule_id",
        "(SELECT coalesce(max(rule_id), 0) + 10 FROM mysql_query_rules)".to_owned(),
    )];
    columns.push(("active", "1".to_owned()));
    columns.push(("digest", literal(asked.field("digest"))));
    let chosen = [
        ("destination_hostgroup", number("hostgroup")),
        ("cache_ttl", number("cache").filter(|number| number != "0")),
        ("error_msg", text("error")),
    ];
    columns.extend(
        chosen
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    columns.push(("apply", "1".to_owned()));
    columns.push(("comment", literal(asked.field("text"))));
    let names: Vec<_> = columns.iter().map(|(name, _)| *name).collect();
    let values: Vec<_> = columns.iter().map(|(_, value)| value.as_str()).collect();
    format!(
        "INSERT INTO mysql_query_rules\n  ({})\nVALUES\n  ({});\nLOAD MYSQL QUERY RULES TO RUNTIME;\nSAVE MYSQL QUERY RULES TO DISK;\n",
        names.join(", "),
        values.join(", ")
    )
}

fn is_digest(text: &str) -> bool {
    text.strip_prefix("0x").is_some_and(|digits| {
        digits.len() == 16 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}
