//! What a core reports, and how the reports of several cores become one.

use crate::{AlarmRow, Counts, Latency, MirrorRow};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Upper bounds, in microseconds, of the latency columns of `stats_mysql_commands_counters`; the
/// last column has none.
pub const LATENCY_BOUNDS_US: [u64; 11] = [
    100, 500, 1_000, 5_000, 10_000, 50_000, 100_000, 500_000, 1_000_000, 5_000_000, 10_000_000,
];

/// The answer to an `Ask`.
#[derive(Debug, Clone)]
pub enum Report {
    /// Counters.
    Global(Counts),
    /// Servers.
    Pool(Vec<PoolRow>),
    /// Sessions.
    Processes(Vec<ProcessRow>),
    /// Digests.
    Digests(Vec<DigestRow>),
    /// (rule_id, hits) since the rules were loaded.
    Rules(Vec<(i64, u64)>),
    /// Classes of statements.
    Commands(Vec<CommandRow>),
    /// Hostgroups.
    Hostgroups(Vec<HostgroupRow>),
    /// Connections of hostgroups.
    HostgroupPool(Vec<HostgroupPoolRow>),
    /// Users.
    Users(Vec<UserRow>),
    /// Errors.
    Errors(Vec<ErrorRow>),
    /// Idle backend connections.
    FreeConnections(Vec<FreeConnectionRow>),
    /// Prepared statements.
    Prepared(Vec<PreparedRow>),
    /// Results in the cache.
    QueryCache(Vec<QueryCacheRow>),
    /// Verdicts of comparisons with mirrors.
    Mirror(Vec<MirrorRow>),
    /// Addresses that have failed to log in; all cores know all.
    ClientHosts(Vec<ClientHostRow>),
    /// What the firewall noticed.
    Alarms(Vec<AlarmRow>),
    /// Cores.
    Cores(Vec<CoreRow>),
}

/// What the proxy thinks of a server now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ServerState {
    /// Takes traffic.
    Online,
    /// Left alone for a while after failures.
    Shunned,
    /// Finishes what it has, gets nothing new.
    OfflineSoft,
    /// Gets nothing.
    OfflineHard,
}

impl ServerState {
    /// As the tables spell it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Online => "ONLINE",
            Self::Shunned => "SHUNNED",
            Self::OfflineSoft => "OFFLINE_SOFT",
            Self::OfflineHard => "OFFLINE_HARD",
        }
    }
}

/// A row of `stats_mysql_connection_pool`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolRow {
    /// Hostgroup.
    pub hostgroup: u32,
    /// `mysql_servers.hostname`.
    pub host: Arc<str>,
    /// `mysql_servers.port`.
    pub port: u16,
    /// State.
    pub state: ServerState,
    /// Connections a session uses now.
    pub used: u64,
    /// Idle connections.
    pub free: u64,
    /// Connections opened.
    pub ok: u64,
    /// Attempts that failed.
    pub err: u64,
    /// Most used at once.
    pub used_max: u64,
    /// Statements sent.
    pub queries: u64,
    /// Bytes sent to the server.
    pub bytes_sent: u64,
    /// Bytes received from it.
    pub bytes_received: u64,
    /// Microseconds that the last connect took.
    pub latency_us: u64,
}

/// A row of `stats_mysql_hostgroup_pool`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostgroupPoolRow {
    /// Hostgroup.
    pub hostgroup: u32,
    /// Connections to its servers, also those that are being opened: of all cores, as each of them
    /// reports it.
    pub connections: u64,
    /// As many as there may be, if that is limited.
    pub max: Option<u32>,
    /// Connections a session uses now.
    pub used: u64,
    /// Idle connections.
    pub free: u64,
    /// Commands that wait for a connection.
    pub waiting: u64,
    /// Milliseconds that the one of them has waited that came first.
    pub longest_wait_ms: u64,
}

/// A row of `stats_mysql_processlist`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessRow {
    /// Core.
    pub core: u32,
    /// Session.
    pub session: u32,
    /// User.
    pub user: String,
    /// Schema.
    pub schema: String,
    /// Client's address.
    pub client_host: String,
    /// Client's port.
    pub client_port: u16,
    /// Hostgroup of the running statement, or of the last.
    pub hostgroup: Option<u32>,
    /// Local address of the backend connection.
    pub local_host: String,
    /// Its port.
    pub local_port: u16,
    /// Server.
    pub server_host: String,
    /// Its port.
    pub server_port: u16,
    /// `Sleep`, `Query`, `Execute`, …
    pub command: &'static str,
    /// Milliseconds in this state.
    pub time_ms: u64,
    /// The statement (its beginning).
    pub info: Option<String>,
    /// What its client said of itself at login; only with `mysql-show_processlist_extended`.
    pub attributes: Vec<(String, String)>,
    /// The connections that it holds.
    pub held: Vec<HeldRow>,
}

/// Rows of `stats_mysql_session_holds`, one for each hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldRow {
    /// Hostgroup.
    pub hostgroup: u32,
    /// Server.
    pub host: Arc<str>,
    /// Its port.
    pub port: u16,
    /// The server's number of the connection.
    pub server_thread_id: u32,
    /// Why: the names of the holds.
    pub holds: Vec<String>,
    /// Milliseconds since the connection is held.
    pub held_ms: u64,
}

/// A row of `stats_mysql_query_digest`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DigestRow {
    /// Hostgroup it went to; -1 when nobody was asked.
    pub hostgroup: i64,
    /// Schema.
    pub schema: Arc<str>,
    /// User.
    pub user: Arc<str>,
    /// Client's address while mysql-query_digests_track_hostname is on, else empty.
    pub client_address: Arc<str>,
    /// Hash of the text.
    pub digest: u64,
    /// The text.
    pub text: Arc<str>,
    /// Whether it shows all that a server reads, of the statements that were looked at; `None` if
    /// of some only.
    pub shown: Option<bool>,
    /// The firewall's digest of one of them.
    pub guarded: u64,
    /// Others may have another digest to the firewall.
    pub alike: bool,
    /// Times.
    pub count: u64,
    /// Unix seconds.
    pub first_seen: u64,
    /// Unix seconds.
    pub last_seen: u64,
    /// Microseconds.
    pub sum_time_us: u64,
    /// Microseconds.
    pub min_time_us: u64,
    /// Microseconds.
    pub max_time_us: u64,
    /// Rows changed.
    pub rows_affected: u64,
    /// Rows sent.
    pub rows_sent: u64,
    /// How the times are spread.
    pub latency: Latency,
}

/// A row of `stats_mysql_commands_counters`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandRow {
    /// Class of statement.
    pub command: &'static str,
    /// Microseconds.
    pub total_time_us: u64,
    /// Times.
    pub count: u64,
    /// Times per bound of [`LATENCY_BOUNDS_US`], and beyond the last.
    pub counts: [u64; 12],
    /// How the times are spread.
    pub latency: Latency<u64>,
    /// The longest, in microseconds.
    pub max_us: u64,
}

/// A row of `stats_mysql_hostgroup_latency`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostgroupRow {
    /// Hostgroup; -1 when nobody was asked.
    pub hostgroup: i64,
    /// Statements.
    pub count: u64,
    /// How their times are spread.
    pub latency: Latency<u64>,
    /// The longest, in microseconds.
    pub max_us: u64,
}

/// A row of `stats_mysql_users`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserRow {
    /// Name.
    pub username: Arc<str>,
    /// Clients now.
    pub connections: u64,
}

/// A row of `stats_mysql_client_host_cache`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientHostRow {
    /// Address.
    pub address: std::net::IpAddr,
    /// Failed logins since the last that did not fail.
    pub errors: u64,
    /// When the last one failed, in seconds since 1970.
    pub last_s: u64,
}

/// A row of `stats_mysql_errors`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorRow {
    /// Hostgroup.
    pub hostgroup: u32,
    /// Server.
    pub host: Arc<str>,
    /// Its port.
    pub port: u16,
    /// User.
    pub user: Arc<str>,
    /// Client's address while mysql-query_digests_track_hostname is on, else empty.
    pub client_address: Arc<str>,
    /// Schema.
    pub schema: Arc<str>,
    /// Error number.
    pub errno: u16,
    /// Times.
    pub count: u64,
    /// Unix seconds.
    pub first_seen: u64,
    /// Unix seconds.
    pub last_seen: u64,
    /// Words of the last.
    pub last_error: Arc<str>,
}

/// A row of `stats_mysql_prepared_statements_info`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreparedRow {
    /// Unique among those of all cores.
    pub id: u64,
    /// The schema that it was prepared in.
    pub schema: Arc<str>,
    /// Whose it is.
    pub user: Arc<str>,
    /// Hash of its digest.
    pub digest: u64,
    /// Clients that may execute it.
    pub clients: u64,
    /// Connections to servers that know it.
    pub servers: u64,
    /// Columns of its result.
    pub columns: u16,
    /// Its parameters.
    pub params: u16,
    /// Its text.
    pub text: Arc<str>,
}

/// The same statement on several cores is one row.
fn merge_prepared(into: &mut Vec<PreparedRow>, other: Vec<PreparedRow>) {
    let name = |row: &PreparedRow| {
        (
            row.digest,
            row.user.clone(),
            row.schema.clone(),
            row.text.clone(),
        )
    };
    let mut known: BTreeMap<_, usize> = into
        .iter()
        .enumerate()
        .map(|(at, row)| (name(row), at))
        .collect();
    for row in other {
        let at = *known.entry(name(&row)).or_insert(into.len());
        match into.get_mut(at) {
            Some(known) => {
                known.id = known.id.min(row.id);
                known.clients += row.clients;
                known.servers += row.servers;
            }
            None => into.push(row),
        }
    }
}

/// A row of `stats_mysql_free_connections`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FreeConnectionRow {
    /// Hostgroup.
    pub hostgroup: u32,
    /// Server.
    pub host: Arc<str>,
    /// Its port.
    pub port: u16,
    /// User.
    pub user: Arc<str>,
    /// Schema.
    pub schema: Arc<str>,
    /// Milliseconds since it was given back.
    pub idle_ms: u64,
    /// The server's id of it.
    pub server_thread_id: u32,
    /// Statements it has served.
    pub queries: u64,
}

/// A row of `stats_mysql_query_cache`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryCacheRow {
    /// Where the statement was sent.
    pub hostgroup: u32,
    /// User.
    pub user: String,
    /// Schema.
    pub schema: String,
    /// Digest of the statement; 0 if digests are not made.
    pub digest: u64,
    /// Of a prepared statement.
    pub binary: bool,
    /// The statement (its beginning).
    pub text: String,
    /// Tables that it reads, as far as its text tells.
    pub tables: String,
    /// Whether writes to them end its use.
    pub watched: bool,
    /// Rows.
    pub rows: u64,
    /// Bytes of memory.
    pub bytes: u64,
    /// How often it was given to somebody.
    pub hits: u64,
    /// Milliseconds since it was asked for.
    pub age_ms: u64,
    /// Milliseconds that it may be used, from then on.
    pub ttl_ms: u64,
}

/// A row of `stats_mysql_cores`. A turn is all that a core does between two looks at its sockets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CoreRow {
    /// Its number.
    pub core: u32,
    /// Clients.
    pub sessions: u64,
    /// Tasks: sessions and what serves them.
    pub tasks: u64,
    /// Turns.
    pub turns: u64,
    /// Microseconds of all turns.
    pub busy_us: u64,
    /// Microseconds of the longest turn.
    pub longest_us: u64,
    /// Microseconds of the processor that a turn took at most.
    pub longest_cpu_us: u64,
    /// Turns longer than 5 ms.
    pub long: u64,
    /// Turns that took more than 5 ms of the processor.
    pub long_cpu: u64,
}

impl Report {
    /// Join the report of another core. Both answer the same `Ask`; anything else is left out.
    pub fn merge(&mut self, other: Self) {
        match (self, other) {
            (Self::Global(a), Self::Global(b)) => a.add(&b),
            (Self::Pool(a), Self::Pool(b)) => merge_pool(a, b),
            (Self::Processes(a), Self::Processes(b)) => a.extend(b),
            (Self::Digests(a), Self::Digests(b)) => merge_digests(a, b),
            (Self::Rules(a), Self::Rules(b)) => {
                let mut sums: BTreeMap<i64, u64> = a.drain(..).collect();
                for (rule, hits) in b {
                    *sums.entry(rule).or_default() += hits;
                }
                a.extend(sums);
            }
            (Self::Commands(a), Self::Commands(b)) => merge_commands(a, &b),
            (Self::Hostgroups(a), Self::Hostgroups(b)) => merge_hostgroups(a, b),
            (Self::HostgroupPool(a), Self::HostgroupPool(b)) => merge_hostgroup_pool(a, b),
            (Self::Users(a), Self::Users(b)) => {
                let mut sums: BTreeMap<Arc<str>, u64> = BTreeMap::new();
                for row in a.drain(..).chain(b) {
                    *sums.entry(row.username).or_default() += row.connections;
                }
                a.extend(sums.into_iter().map(|(username, connections)| UserRow {
                    username,
                    connections,
                }));
            }
            (Self::Errors(a), Self::Errors(b)) => merge_errors(a, b),
            (Self::FreeConnections(a), Self::FreeConnections(b)) => a.extend(b),
            (Self::Prepared(a), Self::Prepared(b)) => merge_prepared(a, b),
            (Self::QueryCache(a), Self::QueryCache(b)) => a.extend(b),
            (Self::Mirror(a), Self::Mirror(b)) => crate::mirror::merge(a, b),
            (Self::ClientHosts(a), Self::ClientHosts(b)) => a.extend(b),
            (Self::Cores(a), Self::Cores(b)) => a.extend(b),
            (Self::Alarms(a), Self::Alarms(b)) => crate::alarm::merge(a, b),
            _ => debug_assert!(false, "reports of different kinds"),
        }
    }
}

pub(crate) fn same_server(a: &PoolRow, b: &PoolRow) -> bool {
    a.hostgroup == b.hostgroup && a.host == b.host && a.port == b.port
}

fn merge_pool(a: &mut Vec<PoolRow>, b: Vec<PoolRow>) {
    for row in b {
        match a.iter_mut().find(|x| same_server(x, &row)) {
            Some(x) => {
                x.state = x.state.max(row.state);
                x.used += row.used;
                x.free += row.free;
                x.ok += row.ok;
                x.err += row.err;
                x.used_max += row.used_max;
                x.queries += row.queries;
                x.bytes_sent += row.bytes_sent;
                x.bytes_received += row.bytes_received;
                x.latency_us = x.latency_us.max(row.latency_us);
            }
            None => a.push(row),
        }
    }
}

fn merge_digests(a: &mut Vec<DigestRow>, b: Vec<DigestRow>) {
    type Key = (i64, u64, Arc<str>, Arc<str>, Arc<str>);
    let key = |r: &DigestRow| -> Key {
        (
            r.hostgroup,
            r.digest,
            r.schema.clone(),
            r.user.clone(),
            r.client_address.clone(),
        )
    };
    let mut at: BTreeMap<Key, usize> = a.iter().enumerate().map(|(i, r)| (key(r), i)).collect();
    for row in b {
        match at.get(&key(&row)) {
            Some(&i) => {
                let x = &mut a[i];
                x.count += row.count;
                x.alike |= row.alike || x.guarded != row.guarded;
                if x.shown == Some(false) && row.shown != Some(false) {
                    x.guarded = row.guarded;
                }
                x.shown = x.shown.filter(|shown| row.shown == Some(*shown));
                x.first_seen = x.first_seen.min(row.first_seen);
                x.last_seen = x.last_seen.max(row.last_seen);
                x.sum_time_us += row.sum_time_us;
                x.min_time_us = x.min_time_us.min(row.min_time_us);
                x.max_time_us = x.max_time_us.max(row.max_time_us);
                x.rows_affected += row.rows_affected;
                x.rows_sent += row.rows_sent;
                x.latency.add(&row.latency);
            }
            None => {
                at.insert(key(&row), a.len());
                a.push(row);
            }
        }
    }
}

fn merge_commands(a: &mut Vec<CommandRow>, b: &[CommandRow]) {
    for row in b {
        match a.iter_mut().find(|x| x.command == row.command) {
            Some(x) => {
                x.total_time_us += row.total_time_us;
                x.count += row.count;
                for (mine, theirs) in x.counts.iter_mut().zip(row.counts) {
                    *mine += theirs;
                }
                x.latency.add(&row.latency);
                x.max_us = x.max_us.max(row.max_us);
            }
            None => a.push(row.clone()),
        }
    }
}

fn merge_hostgroups(a: &mut Vec<HostgroupRow>, b: Vec<HostgroupRow>) {
    let mut at: BTreeMap<i64, usize> = a
        .iter()
        .enumerate()
        .map(|(i, row)| (row.hostgroup, i))
        .collect();
    for row in b {
        match at.get(&row.hostgroup) {
            Some(&i) => {
                let x = &mut a[i];
                x.count += row.count;
                x.latency.add(&row.latency);
                x.max_us = x.max_us.max(row.max_us);
            }
            None => {
                at.insert(row.hostgroup, a.len());
                a.push(row);
            }
        }
    }
}

fn merge_hostgroup_pool(a: &mut Vec<HostgroupPoolRow>, b: Vec<HostgroupPoolRow>) {
    let mut at: BTreeMap<u32, usize> = a
        .iter()
        .enumerate()
        .map(|(i, row)| (row.hostgroup, i))
        .collect();
    for row in b {
        match at.get(&row.hostgroup) {
            Some(&i) => {
                let x = &mut a[i];
                // Each core has said how many all have.
                x.connections = x.connections.max(row.connections);
                x.max = x.max.or(row.max);
                x.used += row.used;
                x.free += row.free;
                x.waiting += row.waiting;
                x.longest_wait_ms = x.longest_wait_ms.max(row.longest_wait_ms);
            }
            None => {
                at.insert(row.hostgroup, a.len());
                a.push(row);
            }
        }
    }
}

fn merge_errors(a: &mut Vec<ErrorRow>, b: Vec<ErrorRow>) {
    let key = |r: &ErrorRow| {
        let texts = [&r.host, &r.user, &r.schema, &r.client_address].map(Arc::clone);
        (r.hostgroup, r.port, r.errno, texts)
    };
    let mut at: BTreeMap<_, usize> = a.iter().enumerate().map(|(i, r)| (key(r), i)).collect();
    for row in b {
        match at.get(&key(&row)) {
            Some(&i) => {
                let x = &mut a[i];
                x.count += row.count;
                x.first_seen = x.first_seen.min(row.first_seen);
                if row.last_seen >= x.last_seen {
                    x.last_seen = row.last_seen;
                    x.last_error = row.last_error;
                }
            }
            None => {
                at.insert(key(&row), a.len());
                a.push(row);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(user: &str, count: u64, first_seen: u64) -> DigestRow {
        DigestRow {
            hostgroup: 1,
            schema: "s".into(),
            user: user.into(),
            client_address: "".into(),
            digest: 7,
            text: "SELECT ?".into(),
            shown: Some(count < 4),
            guarded: count,
            alike: false,
            count,
            first_seen,
            last_seen: first_seen,
            sum_time_us: count,
            min_time_us: first_seen,
            max_time_us: first_seen,
            rows_affected: 0,
            rows_sent: count,
            latency: Latency::default(),
        }
    }

    #[test]
    fn the_same_digest_of_two_cores_is_one_row() {
        let mut a = Report::Digests(vec![digest("u", 2, 10)]);
        a.merge(Report::Digests(vec![digest("u", 3, 5), digest("v", 1, 1)]));
        a.merge(Report::Digests(vec![digest("v", 4, 1)]));
        let Report::Digests(rows) = a else {
            panic!("digests stay digests")
        };
        assert_eq!(rows.len(), 2);
        assert_eq!(
            (rows[0].count, rows[0].first_seen, rows[0].max_time_us),
            (5, 5, 10)
        );
        assert_eq!((rows[0].shown, rows[1].shown), (Some(true), None));
        assert_eq!(
            (rows[0].guarded, rows[0].alike, rows[1].guarded),
            (2, true, 1)
        );
        let mut shown = Report::Digests(vec![digest("v", 4, 1)]);
        shown.merge(Report::Digests(vec![digest("v", 1, 1)]));
        let Report::Digests(rows) = shown else {
            panic!("digests stay digests")
        };
        assert_eq!(rows[0].guarded, 1, "the one that a rule can allow");
    }

    #[test]
    fn the_same_error_of_two_cores_is_one_row_for_each_client() {
        let error = |client_address: &str, count, last_seen, words: &str| ErrorRow {
            hostgroup: 1,
            host: "h".into(),
            port: 3306,
            user: "u".into(),
            client_address: client_address.into(),
            schema: "s".into(),
            errno: 1062,
            count,
            first_seen: last_seen,
            last_seen,
            last_error: words.into(),
        };
        let mut a = Report::Errors(vec![error("a", 2, 10, "first")]);
        a.merge(Report::Errors(vec![
            error("a", 3, 20, "last"),
            error("b", 1, 5, "other"),
        ]));
        a.merge(Report::Errors(vec![error("b", 1, 4, "older")]));
        let Report::Errors(rows) = a else {
            panic!("errors stay errors")
        };
        let seen: Vec<_> = rows
            .iter()
            .map(|row| {
                (
                    &*row.client_address,
                    row.count,
                    row.first_seen,
                    &*row.last_error,
                )
            })
            .collect();
        assert_eq!(seen, [("a", 5, 10, "last"), ("b", 2, 4, "other")]);
    }

    #[test]
    fn the_same_hostgroup_of_two_cores_is_one_row() {
        let group = |hostgroup, us| {
            let mut latency = Latency::default();
            latency.count(us);
            HostgroupRow {
                hostgroup,
                count: 1,
                latency,
                max_us: us,
            }
        };
        let mut a = Report::Hostgroups(vec![group(1, 7)]);
        a.merge(Report::Hostgroups(vec![group(2, 5), group(1, 90)]));
        let Report::Hostgroups(rows) = a else {
            panic!("hostgroups stay hostgroups")
        };
        assert_eq!(rows.len(), 2);
        assert_eq!(
            (rows[0].count, rows[0].max_us, rows[0].latency.total()),
            (2, 90, 2)
        );
    }

    #[test]
    fn the_connections_of_a_hostgroup_are_counted_once() {
        let row = |used, waiting, longest_wait_ms| HostgroupPoolRow {
            hostgroup: 1,
            connections: 5,
            max: Some(7),
            used,
            free: 1,
            waiting,
            longest_wait_ms,
        };
        let mut a = Report::HostgroupPool(vec![row(1, 2, 30)]);
        a.merge(Report::HostgroupPool(vec![row(2, 3, 10)]));
        let Report::HostgroupPool(rows) = a else {
            panic!("they stay what they are")
        };
        assert_eq!(
            rows,
            [HostgroupPoolRow {
                free: 2,
                ..row(3, 5, 30)
            }]
        );
    }

    #[test]
    fn hits_of_rules_add_up() {
        let mut a = Report::Rules(vec![(1, 4), (2, 1)]);
        a.merge(Report::Rules(vec![(2, 2), (3, 9)]));
        let Report::Rules(rows) = a else {
            panic!("rules stay rules")
        };
        assert_eq!(rows, [(1, 4), (2, 3), (3, 9)]);
    }
}
