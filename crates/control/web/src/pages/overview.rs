//! Overview: how the proxy is now.

use super::asked::Asked;
use crate::listing::{Listing, col};
use crate::page::Page;
use crate::plot::{Line, Unit, plot};
use crate::pulse::{Pulse, now_s};
use crate::show::{As, grouped, short, time};
use bridge::{Table, Unanswered};
use maud::{Markup, html};

const HOSTGROUPS: Listing = Listing {
    caption: "Hostgroups",
    sql: "SELECT p.hostgroup, coalesce(l.count_star, 0), l.p50_us, l.p99_us, l.max_us, p.used, p.free, p.waiting, p.longest_wait_ms \
          FROM stats_mysql_hostgroup_pool p LEFT JOIN stats_mysql_hostgroup_latency l ON l.hostgroup = p.hostgroup ORDER BY p.hostgroup",
    columns: &[
        col("Hostgroup", As::Text),
        col("Statements", As::Number),
        col("p50", As::Us),
        col("p99", As::Us),
        col("Longest", As::Us),
        col("Connections used", As::Number),
        col("Free", As::Number),
        col("Waiting for one", As::Number),
        col("Longest wait", As::Ms),
    ],
    empty: "No hostgroup has a server.",
};

const SERVERS: Listing = Listing {
    caption: "Servers",
    sql: "SELECT srv_host || ':' || srv_port, hostgroup, status, Queries, ConnUsed, ConnFree, ConnERR, Latency_us, Bytes_data_recv, Bytes_data_sent \
          FROM stats_mysql_connection_pool ORDER BY hostgroup, srv_host, srv_port LIMIT 200",
    columns: &[
        col("Server", As::Text),
        col("Hostgroup", As::Number),
        col("State", As::State),
        col("Statements", As::Number),
        col("Connections used", As::Number),
        col("Free", As::Number),
        col("Failed", As::Number),
        col("Ping", As::Us),
        col("Received", As::Bytes),
        col("Sent", As::Bytes),
    ],
    empty: "There are no servers: mysql_servers is empty, or was not loaded.",
};

const ABSENT: Listing = Listing {
    caption: "Servers that do not serve, and why",
    sql: "SELECT p.srv_host || ':' || p.srv_port, p.hostgroup, p.status, \
          (SELECT l.ping_error FROM monitor.mysql_server_ping_log l WHERE l.hostname = p.srv_host AND l.port = p.srv_port ORDER BY l.time_start_us DESC LIMIT 1), \
          (SELECT l.connect_error FROM monitor.mysql_server_connect_log l WHERE l.hostname = p.srv_host AND l.port = p.srv_port ORDER BY l.time_start_us DESC LIMIT 1), \
          (SELECT coalesce(l.error, l.repl_lag) FROM monitor.mysql_server_replication_lag_log l WHERE l.hostname = p.srv_host AND l.port = p.srv_port ORDER BY l.time_start_us DESC LIMIT 1), \
          p.ConnERR \
          FROM stats_mysql_connection_pool p WHERE p.status <> 'ONLINE' ORDER BY 2, 1 LIMIT 100",
    columns: &[
        col("Server", As::Text),
        col("Hostgroup", As::Number),
        col("State", As::State),
        col("Last ping", As::Text),
        col("Last connection of the monitor", As::Text),
        col("Lag in seconds", As::Text),
        col("Connections that failed", As::Number),
    ],
    empty: "Every server serves.",
};

const BUSIEST: Listing = Listing {
    caption: "Statements that come most often now",
    sql: "",
    columns: &[
        col("Statement", As::Code),
        col("Hostgroup", As::Number),
        col("User", As::Text),
        col("In a second", As::Number),
        col("Usually", As::Number),
        col("Time of all in a second", As::Us),
    ],
    empty: "None in the last ten seconds, or they are being counted.",
};

const OPEN: Listing = Listing {
    caption: "Transactions and locks that are held for longer than a second",
    sql: "SELECT SessionID, user, hostgroup, srv_host || ':' || srv_port, hold, held_ms \
          FROM stats_mysql_session_holds WHERE hold IN ('Transaction', 'Branch', 'Xa', 'TableLock', 'UserLock') AND held_ms >= 1000 \
          ORDER BY held_ms DESC LIMIT 5",
    columns: &[
        col("Session", As::Text),
        col("User", As::Text),
        col("Hostgroup", As::Number),
        col("Server", As::Text),
        col("Hold", As::Text),
        col("For", As::Ms),
    ],
    empty: "No session has one.",
};

const ERRORS: Listing = Listing {
    caption: "Errors of servers, the latest first",
    sql: "SELECT errno, hostname || ':' || port, hostgroup, username, schemaname, count_star, last_seen, last_error \
          FROM stats_mysql_errors ORDER BY last_seen DESC, count_star DESC LIMIT 25",
    columns: &[
        col("Error", As::Text),
        col("Server", As::Text),
        col("Hostgroup", As::Number),
        col("User", As::Text),
        col("Schema", As::Text),
        col("Times", As::Number),
        col("Last", As::Moment),
        col("Last words", As::Text),
    ],
    empty: "No server has answered with an error.",
};

/// The errors without their words, in which literals may stand.
const ERRORS_WITHOUT_WORDS: Listing = Listing {
    sql: "SELECT errno, hostname || ':' || port, hostgroup, username, schemaname, count_star, last_seen \
          FROM stats_mysql_errors ORDER BY last_seen DESC, count_star DESC LIMIT 25",
    columns: ERRORS.columns.split_at(7).0,
    ..ERRORS
};

/// Errors of servers, with their words for who may see literals.
pub(super) async fn errors(asked: &Asked<'_>) -> Markup {
    match asked.may_act() {
        true => asked.list(&ERRORS).await,
        false => asked.list(&ERRORS_WITHOUT_WORDS).await,
    }
}

pub(super) async fn show(asked: &Asked<'_>) -> Page {
    let pulse = pulse(&asked.work.pulse.borrow());
    let live = html! {
        (pulse)
        (asked.list(&ABSENT).await)
        (asked.list(&OPEN).await)
        (BUSIEST.show(&busiest(asked).await))
        (asked.list(&HOSTGROUPS).await)
        (asked.list(&SERVERS).await)
        (errors(asked).await)
    };
    Page {
        path: "/",
        title: "Overview",
        live,
        every_ms: 2000,
        still: html! {},
    }
}

/// Digests that have come most often since the last look at all of them.
async fn busiest(asked: &Asked<'_>) -> Result<Table, Unanswered> {
    let (known, now) = (&asked.work.busiest, now_s());
    let question = known.borrow().question(now);
    if let Some(sql) = question {
        let answer = asked.ask(&sql).await?;
        known.borrow_mut().look(now, &answer);
    }
    Ok(known.borrow().table())
}

/// Tiles with the numbers of now, and plots of the last ten minutes.
fn pulse(pulse: &Pulse) -> Markup {
    let moments = pulse.moments();
    let rates = [
        pulse.rate("statements", &["Questions"]),
        pulse.rate("slow", &["Slow_queries"]),
        pulse.rate("errors", &["errors", "generated_error_packets"]),
    ];
    let times = [pulse.quantile("p50", 500), pulse.quantile("p99", 990)];
    let connections = [
        pulse.level("clients", "Client_Connections_connected"),
        pulse.level("clients with a statement", "Client_Connections_non_idle"),
        pulse.level("to servers", "Server_Connections_connected"),
    ];
    let found = pulse.rate("found in the cache", &["Query_Cache_count_GET_OK"]);
    let rate = |line: &Line| now(line).map_or_else(none, |value| format!("{}/s", short(value)));
    let count = |line: &Line| now(line).map_or_else(none, |value| grouped(&format!("{value:.0}")));
    let long = |line: &Line| now(line).map_or_else(none, time);
    let tiles = [
        ("Statements", rate(&rates[0])),
        ("Slow ones", rate(&rates[1])),
        ("Errors", rate(&rates[2])),
        ("p50", long(&times[0])),
        ("p99", long(&times[1])),
        ("Clients", count(&connections[0])),
        ("Connections to servers", count(&connections[2])),
        ("From the cache", rate(&found)),
    ];
    html! {
        dl.tiles { @for (name, value) in tiles { div { dt { (name) } dd { (value) } } } }
        div.plots {
            (plot("Statements and errors", Unit::PerSecond, &moments, &rates))
            (plot("Time of a statement", Unit::Us, &moments, &times))
            (plot("Connections", Unit::Count, &moments, &connections))
        }
    }
}

fn now(line: &Line) -> Option<f64> {
    line.values.last().copied().flatten()
}

fn none() -> String {
    "–".to_owned()
}
