//! Views: what is asked, and how the answer stands on the screen.

use web::show::As;

/// A column: its title, its characters at most (0 for all that is left), and what it shows.
pub(crate) struct Column(pub(crate) &'static str, pub(crate) u16, pub(crate) As);

/// A view. The statement has a place `{}` for the order, and as its first column what a row is
/// known by from one screen to the next; that is not shown.
pub(crate) struct View {
    pub(crate) name: &'static str,
    pub(crate) sql: &'static str,
    /// Orders in which rows can be sorted: a name, and what stands behind ORDER BY.
    pub(crate) orders: &'static [(&'static str, &'static str)],
    pub(crate) columns: &'static [Column],
    /// The column that counts, if one does: its growth in a second stands in the column behind it,
    /// in which the statement has NULL.
    pub(crate) counts: Option<usize>,
    /// Words where there are no rows.
    pub(crate) empty: &'static str,
}

/// All of them, in the order of their keys.
pub(crate) const VIEWS: [View; 4] = [
    View {
        name: "queries",
        sql: "SELECT hostgroup || ' ' || schemaname || ' ' || username || ' ' || client_address || ' ' || digest, \
              hostgroup, username, schemaname, count_star, NULL, sum_time, sum_time / max(count_star, 1), max_time, digest_text \
              FROM stats_mysql_query_digest ORDER BY {} LIMIT 200",
        orders: &[
            ("time of all", "sum_time DESC"),
            ("times", "count_star DESC"),
            ("time of one", "sum_time / max(count_star, 1) DESC"),
            ("longest", "max_time DESC"),
            ("last", "last_seen DESC"),
        ],
        columns: &[
            Column("HG", 5, As::Text),
            Column("USER", 12, As::Text),
            Column("SCHEMA", 12, As::Text),
            Column("TIMES", 11, As::Number),
            Column("/S", 8, As::Number),
            Column("TIME", 9, As::Us),
            Column("OF ONE", 9, As::Us),
            Column("LONGEST", 9, As::Us),
            Column("STATEMENT", 0, As::Text),
        ],
        counts: Some(3),
        empty: "No statement was counted.",
    },
    View {
        name: "servers",
        sql: "SELECT hostgroup || ' ' || srv_host || ' ' || srv_port, \
              hostgroup, srv_host || ':' || srv_port, status, Queries, NULL, ConnUsed, ConnFree, ConnERR, Latency_us, Bytes_data_sent, Bytes_data_recv \
              FROM stats_mysql_connection_pool ORDER BY {} LIMIT 500",
        orders: &[
            ("hostgroup", "hostgroup, srv_host, srv_port"),
            ("statements", "Queries DESC"),
            ("connections used", "ConnUsed DESC"),
            ("ping", "Latency_us DESC"),
            ("state", "status = 'ONLINE', status, hostgroup"),
        ],
        columns: &[
            Column("HG", 5, As::Text),
            Column("SERVER", 28, As::Text),
            Column("STATE", 13, As::Text),
            Column("STATEMENTS", 12, As::Number),
            Column("/S", 8, As::Number),
            Column("USED", 6, As::Number),
            Column("FREE", 6, As::Number),
            Column("FAILED", 7, As::Number),
            Column("PING", 9, As::Us),
            Column("SENT", 10, As::Bytes),
            Column("RECEIVED", 0, As::Bytes),
        ],
        counts: Some(3),
        empty: "There are no servers.",
    },
    View {
        name: "sessions",
        sql: "SELECT p.SessionID, p.SessionID, p.user, p.db, p.cli_host || ':' || p.cli_port, p.hostgroup, p.command, p.time_ms, \
              (SELECT group_concat(DISTINCT h.hold) FROM stats_mysql_session_holds h WHERE h.SessionID = p.SessionID) AS holds, p.info \
              FROM stats_mysql_processlist p ORDER BY {} LIMIT 500",
        orders: &[
            ("time", "p.command = 'Sleep', p.time_ms DESC"),
            ("holds", "holds IS NULL, p.time_ms DESC"),
            ("user", "p.user, p.SessionID"),
            ("session", "p.SessionID"),
        ],
        columns: &[
            Column("SESSION", 11, As::Text),
            Column("USER", 12, As::Text),
            Column("SCHEMA", 12, As::Text),
            Column("CLIENT", 21, As::Text),
            Column("HG", 5, As::Text),
            Column("DOES", 8, As::Text),
            Column("FOR", 9, As::Ms),
            Column("HOLDS", 18, As::Text),
            Column("STATEMENT", 0, As::Text),
        ],
        counts: None,
        empty: "Nobody is connected.",
    },
    View {
        name: "errors",
        sql: "SELECT hostgroup || ' ' || hostname || ' ' || port || ' ' || username || ' ' || client_address || ' ' || schemaname || ' ' || errno, \
              hostgroup, hostname || ':' || port, username, schemaname, errno, count_star, NULL, last_seen, last_error \
              FROM stats_mysql_errors ORDER BY {} LIMIT 200",
        orders: &[
            ("last", "last_seen DESC"),
            ("times", "count_star DESC"),
            ("error", "errno"),
        ],
        columns: &[
            Column("HG", 5, As::Text),
            Column("SERVER", 24, As::Text),
            Column("USER", 12, As::Text),
            Column("SCHEMA", 12, As::Text),
            Column("ERROR", 6, As::Text),
            Column("TIMES", 9, As::Number),
            Column("/S", 7, As::Number),
            Column("LAST", 20, As::Moment),
            Column("WORDS", 0, As::Text),
        ],
        counts: Some(5),
        empty: "No server has answered with an error.",
    },
];

impl View {
    /// The statement, in the order of that place.
    pub(crate) fn statement(&self, order: usize) -> String {
        let order = self.orders[order % self.orders.len()].1;
        self.sql.replacen("{}", order, 1)
    }
}
