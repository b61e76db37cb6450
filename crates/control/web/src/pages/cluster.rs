//! Other proxies: who they are, and whether they have what this one has.

use super::asked::Asked;
use crate::listing::{Listing, col};
use crate::page::Page;
use crate::show::As;
use maud::html;

const PROXIES: Listing = Listing {
    caption: "Proxies of the cluster",
    sql: "SELECT s.hostname || ':' || s.port, s.weight, s.check_age_us, s.ping_time_us, s.checks_OK, s.checks_ERR, m.Uptime_s, m.Queries, m.Client_Connections_connected, m.comment \
          FROM stats_proxysql_servers_status s LEFT JOIN stats_proxysql_servers_metrics m ON m.hostname = s.hostname AND m.port = s.port ORDER BY 1 LIMIT 200",
    columns: &[
        col("Proxy", As::Text),
        col("Weight", As::Number),
        col("Asked before", As::Us),
        col("Answered in", As::Us),
        col("Answers", As::Number),
        col("None", As::Number),
        col("Uptime, s", As::Number),
        col("Statements", As::Number),
        col("Clients", As::Number),
        col("Comment", As::Text),
    ],
    empty: "proxysql_servers names no other proxy.",
};

const CHECKSUMS: Listing = Listing {
    caption: "What they have loaded",
    sql: "SELECT hostname || ':' || port, name, version, epoch, checksum, changed_at, updated_at, diff_check \
          FROM stats_proxysql_servers_checksums ORDER BY name, 1 LIMIT 1000",
    columns: &[
        col("Proxy", As::Text),
        col("Module", As::Text),
        col("Version", As::Number),
        col("Loaded", As::Moment),
        col("Checksum", As::Code),
        col("Changed", As::Moment),
        col("Asked", As::Moment),
        col("Times different", As::Number),
    ],
    empty: "No other proxy has said what it has.",
};

const FLEET: Listing = Listing {
    caption: "The fleet: generations of its one truth",
    sql: "SELECT proxy, address, version, module, state, generation, truth, error FROM stats_millrace_fleet ORDER BY proxy, module LIMIT 1000",
    columns: &[
        col("Proxy", As::Text),
        col("Address", As::Text),
        col("Version", As::Text),
        col("Module", As::Text),
        col("State", As::Text),
        col("Has", As::Number),
        col("Truth", As::Number),
        col("Error", As::Text),
    ],
    empty: "This proxy is in no fleet: admin-cluster_store is empty.",
};

const SHARES: Listing = Listing {
    caption: "Limits for the whole fleet",
    sql: "SELECT what, proxy, budget, share, has, used, wanted FROM stats_millrace_shares ORDER BY wanted > share DESC, used DESC, what, proxy LIMIT 200",
    columns: &[
        col("Limit", As::Text),
        col("Proxy", As::Text),
        col("All", As::Number),
        col("Share", As::Number),
        col("Has", As::Number),
        col("Used", As::Number),
        col("Wanted", As::Number),
    ],
    empty: "No limit is shared.",
};

pub(super) async fn show(asked: &Asked<'_>) -> Page {
    let live = html! {
        (asked.list(&FLEET).await)
        (asked.list(&SHARES).await)
        (asked.list(&PROXIES).await)
        (asked.list(&CHECKSUMS).await)
    };
    Page {
        path: "/cluster",
        title: "Cluster",
        live,
        every_ms: 5000,
        still: html! {},
    }
}
