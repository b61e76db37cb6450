//! Rules, with how often they matched.

use super::asked::{Asked, only_for_administrators};
use crate::listing::{Listing, col};
use crate::page::Page;
use crate::show::As;
use maud::html;

const RULES: Listing = Listing {
    caption: "Rules in force, in the order in which they are looked at",
    sql: "SELECT r.rule_id, coalesce(h.hits, 0), r.username, r.schemaname, r.flagIN, coalesce(r.match_digest, r.match_pattern, r.digest), \
          r.destination_hostgroup, r.cache_ttl, r.replace_pattern, r.error_msg, r.flagOUT, r.apply, r.comment \
          FROM runtime_mysql_query_rules r LEFT JOIN stats_mysql_query_rules h ON h.rule_id = r.rule_id ORDER BY r.rule_id LIMIT 1000",
    columns: &[
        col("Rule", As::Text),
        col("Hits", As::Number),
        col("User", As::Text),
        col("Schema", As::Text),
        col("flagIN", As::Number),
        col("Matches", As::Code),
        col("To hostgroup", As::Number),
        col("Cached for", As::Ms),
        col("Becomes", As::Code),
        col("Refused with", As::Text),
        col("flagOUT", As::Number),
        col("Last", As::Number),
        col("Comment", As::Text),
    ],
    empty: "There are no rules: each statement goes to the hostgroup of its user, or where it is split to.",
};

const HITS: Listing = Listing {
    caption: "Hits of the rules",
    sql: "SELECT rule_id, hits FROM stats_mysql_query_rules ORDER BY rule_id LIMIT 1000",
    columns: &[col("Rule", As::Text), col("Hits", As::Number)],
    empty: "There are no rules.",
};

pub(super) async fn show(asked: &Asked<'_>) -> Page {
    let live = match asked.may_act() {
        true => asked.list(&RULES).await,
        false => html! {
            (asked.list(&HITS).await)
            (only_for_administrators("The rules themselves"))
        },
    };
    Page {
        path: "/rules",
        title: "Rules",
        live,
        every_ms: 5000,
        still: html! {},
    }
}
