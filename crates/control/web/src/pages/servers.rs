//! Servers: who serves where, what checks have said, and the topologies.

use super::asked::Asked;
use crate::listing::{Listing, col};
use crate::page::Page;
use crate::show::As;
use maud::html;

const RUNTIME: Listing = Listing {
    caption: "Servers as they are in force",
    sql: "SELECT hostname || ':' || port, hostgroup_id, status, weight, max_connections, max_replication_lag, use_ssl, compression, comment \
          FROM runtime_mysql_servers ORDER BY hostgroup_id, hostname, port LIMIT 500",
    columns: &[
        col("Server", As::Text),
        col("Hostgroup", As::Number),
        col("State", As::State),
        col("Weight", As::Number),
        col("Connections at most", As::Number),
        col("Lag at most, s", As::Number),
        col("TLS", As::Number),
        col("Compression", As::Number),
        col("Comment", As::Text),
    ],
    empty: "There are no servers: mysql_servers is empty, or was not loaded.",
};

const POOL: Listing = Listing {
    caption: "Connections",
    sql: "SELECT srv_host || ':' || srv_port, hostgroup, status, ConnUsed, ConnFree, MaxConnUsed, ConnOK, ConnERR, Queries, Latency_us \
          FROM stats_mysql_connection_pool ORDER BY hostgroup, srv_host, srv_port LIMIT 500",
    columns: &[
        col("Server", As::Text),
        col("Hostgroup", As::Number),
        col("State", As::State),
        col("Used", As::Number),
        col("Free", As::Number),
        col("Used at most", As::Number),
        col("Opened", As::Number),
        col("Failed", As::Number),
        col("Statements", As::Number),
        col("Ping", As::Us),
    ],
    empty: "There are no servers.",
};

const PINGS: Listing = Listing {
    caption: "Last ping of each server",
    sql: "SELECT hostname || ':' || port, max(time_start_us) / 1000000, ping_success_time_us, ping_error \
          FROM monitor.mysql_server_ping_log GROUP BY hostname, port ORDER BY 1 LIMIT 500",
    columns: &[
        col("Server", As::Text),
        col("When", As::Moment),
        col("Took", As::Us),
        col("Error", As::Text),
    ],
    empty: "No server was pinged.",
};

const READ_ONLY: Listing = Listing {
    caption: "Last read_only of each server",
    sql: "SELECT hostname || ':' || port, max(time_start_us) / 1000000, read_only, error \
          FROM monitor.mysql_server_read_only_log GROUP BY hostname, port ORDER BY 1 LIMIT 500",
    columns: &[
        col("Server", As::Text),
        col("When", As::Moment),
        col("read_only", As::Text),
        col("Error", As::Text),
    ],
    empty: "No server was asked: there is no row in mysql_replication_hostgroups.",
};

const LAG: Listing = Listing {
    caption: "Last replication lag of each server",
    sql: "SELECT hostname || ':' || port, max(time_start_us) / 1000000, repl_lag, error \
          FROM monitor.mysql_server_replication_lag_log GROUP BY hostname, port ORDER BY 1 LIMIT 500",
    columns: &[
        col("Server", As::Text),
        col("When", As::Moment),
        col("Seconds", As::Text),
        col("Error", As::Text),
    ],
    empty: "No server was asked: none has a max_replication_lag.",
};

const TOPOLOGIES: Listing = Listing {
    caption: "Topologies",
    sql: "SELECT 'replication', writer_hostgroup, NULL, reader_hostgroup, NULL, check_type, comment FROM runtime_mysql_replication_hostgroups \
          UNION ALL SELECT 'group replication', writer_hostgroup, backup_writer_hostgroup, reader_hostgroup, offline_hostgroup, 'max_writers ' || max_writers, comment FROM runtime_mysql_group_replication_hostgroups \
          UNION ALL SELECT 'Galera', writer_hostgroup, backup_writer_hostgroup, reader_hostgroup, offline_hostgroup, 'max_writers ' || max_writers, comment FROM runtime_mysql_galera_hostgroups \
          UNION ALL SELECT 'Aurora', writer_hostgroup, NULL, reader_hostgroup, NULL, domain_name, comment FROM runtime_mysql_aws_aurora_hostgroups",
    columns: &[
        col("Kind", As::Text),
        col("Writers", As::Number),
        col("Backup writers", As::Number),
        col("Readers", As::Number),
        col("Offline", As::Number),
        col("By", As::Text),
        col("Comment", As::Text),
    ],
    empty: "No hostgroup has a topology: servers stay where their rows put them.",
};

pub(super) async fn show(asked: &Asked<'_>) -> Page {
    let live = html! {
        @if asked.may_act() { (asked.list(&RUNTIME).await) (asked.list(&TOPOLOGIES).await) }
        (asked.list(&POOL).await)
        (asked.list(&PINGS).await)
        (asked.list(&READ_ONLY).await)
        (asked.list(&LAG).await)
    };
    Page {
        path: "/servers",
        title: "Servers and topology",
        live,
        every_ms: 5000,
        still: html! {},
    }
}
