//! The result cache: how much it has, and what is used.

use super::asked::{Asked, Done, Outcome, only_for_administrators};
use crate::listing::{Listing, col};
use crate::page::{Page, token};
use crate::show::As;
use maud::html;

const COUNTERS: Listing = Listing {
    caption: "The cache",
    sql: "SELECT Variable_Name, Variable_Value FROM stats_mysql_global WHERE Variable_Name LIKE '%Query_Cache%' ORDER BY 1",
    columns: &[col("Counter", As::Text), col("Value", As::Number)],
    empty: "Nothing was counted.",
};

const ENTRIES: Listing = Listing {
    caption: "Results, the most used first",
    sql: "SELECT query, hostgroup, schemaname, username, rows, bytes, hits, age_ms, ttl_ms \
          FROM stats_mysql_query_cache ORDER BY hits DESC, bytes DESC LIMIT 100",
    columns: &[
        col("Statement", As::Code),
        col("Hostgroup", As::Number),
        col("Schema", As::Text),
        col("User", As::Text),
        col("Rows", As::Number),
        col("Size", As::Bytes),
        col("Hits", As::Number),
        col("Age", As::Ms),
        col("Kept for", As::Ms),
    ],
    empty: "Nothing is kept. A rule with a cache_ttl has results kept.",
};

pub(super) async fn show(asked: &Asked<'_>) -> Page {
    let live = html! {
        (asked.list(&COUNTERS).await)
        @if asked.may_act() { (asked.list(&ENTRIES).await) }
        @else { (only_for_administrators("What is kept")) }
    };
    let still = html! {
        @if asked.may_act() {
            form method="post" action="/cache/flush" {
                (token(asked.visitor))
                button.danger { "Forget all results" }
            }
        }
    };
    Page {
        path: "/cache",
        title: "Cache",
        live,
        every_ms: 5000,
        still,
    }
}

/// `PROXYSQL FLUSH QUERY CACHE`.
pub(super) async fn flush(asked: &Asked<'_>) -> Outcome {
    let sql = "PROXYSQL FLUSH QUERY CACHE";
    asked.note(sql);
    asked.ask(sql).await?;
    Ok(Done::To("/cache"))
}
