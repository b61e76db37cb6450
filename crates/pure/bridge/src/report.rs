//! What a core reports, and how the reports of several cores become one.

use crate::observed::{self, observed};
use crate::{AlarmRow, Counts, HookRow, Latency, MirrorRow, ShardDdlRow, ShardRow};
use std::borrow::Cow;
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
    /// How the servers of hostgroups are chosen.
    Choice(Vec<ChoiceRow>),
    /// Addresses of names.
    Addresses(Vec<AddressRow>),
    /// Who waits for hostgroups, by priority.
    Admission(Vec<AdmissionRow>),
    /// Limits of statements in flight.
    Concurrency(Vec<ConcurrencyRow>),
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
    /// Hooks of scripts.
    Hooks(Vec<HookRow>),
    /// Statements on sharded tables.
    Shards(Vec<ShardRow>),
    /// Statements that one partition does after another.
    ShardDdl(Vec<ShardDdlRow>),
    /// Addresses that have failed to log in; all cores know all.
    ClientHosts(Vec<ClientHostRow>),
    /// Alarms of the firewall.
    Alarms(Vec<AlarmRow>),
    /// Cores.
    Cores(Vec<CoreRow>),
}

/// State of a server now, as the proxy sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ServerState {
    /// Takes traffic.
    Online,
    /// Left alone for a while after failures.
    Shunned,
    /// Too far behind its source.
    ShunnedReplicationLag,
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
            Self::ShunnedReplicationLag => "SHUNNED_REPLICATION_LAG",
            Self::OfflineSoft => "OFFLINE_SOFT",
            Self::OfflineHard => "OFFLINE_HARD",
        }
    }
}

observed! {
    /// A row of `stats_mysql_connection_pool`.
    pub struct PoolRow, ends ")":
    /// Hostgroup.
    hostgroup: u32, "hostgroup INT", key;
    /// `mysql_servers.hostname`.
    host: Arc<str>, "srv_host VARCHAR", key;
    /// `mysql_servers.port`.
    port: u16, "srv_port INT", key;
    /// State.
    state: ServerState, "status VARCHAR", max;
    /// Connections a session uses now.
    used: u64, "ConnUsed INT", sum,
        Gauge r#"proxysql_connpool_conns{status="used"}"# "Connections to a server that a session uses now.";
    /// Idle connections.
    free: u64, "ConnFree INT", sum,
        Gauge r#"proxysql_connpool_conns{status="free"}"# "Idle connections to a server.";
    /// Connections opened.
    ok: u64, "ConnOK INT", sum,
        Total r#"proxysql_connpool_conns_total{status="ok"}"# "Connections to a server that were opened.";
    /// Attempts that failed.
    err: u64, "ConnERR INT", sum,
        Total r#"proxysql_connpool_conns_total{status="err"}"# "Attempts to connect to a server that failed.";
    /// Most used at once.
    used_max: u64, "MaxConnUsed INT", sum,
        Gauge "millrace_connpool_conns_used_max" "Most connections to a server that were used at once.";
    /// Statements sent.
    queries: u64, "Queries INT", sum,
        Total "proxysql_connpool_conns_queries_total" "Statements sent to a server.";
    /// Of these, the ones that went there because it had what they must see.
    queries_gtid_sync: u64, "Queries_GTID_sync INT", sum;
    /// Bytes sent to the server.
    bytes_sent: u64, "Bytes_data_sent INT", sum,
        Total r#"proxysql_connpool_data_bytes_total{traffic_flow="sent"}"# "Bytes sent to a server.";
    /// Bytes received from it.
    bytes_received: u64, "Bytes_data_recv INT", sum,
        Total r#"proxysql_connpool_data_bytes_total{traffic_flow="recv"}"# "Bytes received from a server.";
    /// Microseconds that the last connect took.
    latency_us: u64, "Latency_us INT", max,
        Gauge "proxysql_connpool_conns_latency_us" "Microseconds that the last connect to a server took.";
}

observed! {
    /// A row of `stats_mysql_choice`.
    pub struct ChoiceRow, ends ", PRIMARY KEY (hostgroup, srv_host, srv_port))":
    /// Hostgroup.
    hostgroup: u32, "hostgroup INTEGER NOT NULL", key;
    /// `mysql_servers.hostname`.
    host: Arc<str>, "srv_host VARCHAR NOT NULL", key;
    /// `mysql_servers.port`.
    port: u16, "srv_port INTEGER NOT NULL", key;
    /// `hostgroup_settings.balance`.
    balance: &'static str, "balance VARCHAR NOT NULL", first;
    /// `mysql_servers.weight`.
    weight: u32, "weight INTEGER NOT NULL", first;
    /// Percentage of it that counts by now, after a return.
    started_pct: u32, "started_pct INTEGER NOT NULL", min;
    /// Connections a session uses now.
    used: u64, "used INTEGER NOT NULL", sum;
    /// Mean until it begins an answer, of the core where that is longest.
    answers_us: u64, "answers_us INTEGER NOT NULL", max;
}

observed! {
    /// A row of `stats_millrace_addresses`.
    pub struct AddressRow, ends ", PRIMARY KEY (hostname, port, address))":
    /// Name in `mysql_servers.hostname`.
    host: Arc<str>, "hostname VARCHAR NOT NULL", key;
    /// `mysql_servers.port`.
    port: u16, "port INTEGER NOT NULL", key;
    /// Address.
    address: Arc<str>, "address VARCHAR NOT NULL", key;
    /// Whether new connections go there.
    in_use: bool, "in_use INTEGER NOT NULL", min;
    /// Reason why they do not.
    why: Option<String>, "why VARCHAR", some;
    /// Answer to the last checks: `unknown`, `well` or `missing`.
    health: &'static str, "health VARCHAR NOT NULL", first;
    /// Microseconds that its last ping took.
    ping_us: Option<u32>, "ping_us INTEGER", some;
    /// Its `server_uuid`, where it has one and was asked.
    uuid: Option<Arc<str>>, "server_uuid VARCHAR", some;
    /// Connections to it that a session uses now.
    used: u64, "ConnUsed INTEGER NOT NULL", sum;
    /// Idle connections to it.
    free: u64, "ConnFree INTEGER NOT NULL", sum;
}

observed! {
    /// A row of `stats_millrace_admission`.
    pub struct AdmissionRow, ends ", PRIMARY KEY (hostgroup, priority))":
    /// Hostgroup.
    hostgroup: u32, "hostgroup INTEGER NOT NULL", key;
    /// Priority of the statements.
    priority: u32, "priority INTEGER NOT NULL", key;
    /// Statements that wait for a connection or a slot.
    waiting: u64, "waiting INTEGER NOT NULL", sum,
        Gauge "millrace_admission_waiting" "Statements of a priority that wait for a hostgroup.";
    /// Milliseconds that the one of them has waited that came first.
    longest_wait_ms: u64, "longest_wait_ms INTEGER NOT NULL", max,
        Gauge "millrace_admission_longest_wait_ms" "Milliseconds that the first of them has waited.";
    /// Statements that were served after they had waited.
    served: u64, "served INTEGER NOT NULL", sum,
        Total "millrace_admission_served_total" "Statements of a priority that were served after they had waited.";
    /// Statements that were sent away.
    shed: u64, "shed INTEGER NOT NULL", sum,
        Total "millrace_admission_shed_total" "Statements of a priority that were sent away because too many waited, or for too long.";
}

observed! {
    /// A row of `stats_millrace_concurrency`.
    pub struct ConcurrencyRow, ends ", PRIMARY KEY (hostgroup, srv_host, srv_port))":
    /// Hostgroup.
    hostgroup: u32, "hostgroup INTEGER NOT NULL", key;
    /// `mysql_servers.hostname`.
    host: Arc<str>, "srv_host VARCHAR NOT NULL", key;
    /// `mysql_servers.port`.
    port: u16, "srv_port INTEGER NOT NULL", key;
    /// Statements in flight at most, over all cores.
    limit: u32, "concurrency_limit INTEGER NOT NULL", first,
        Gauge "millrace_concurrency_limit" "Statements in flight that a server may have.";
    /// Statements in flight, over all cores.
    in_flight: u32, "in_flight INTEGER NOT NULL", max,
        Gauge "millrace_concurrency_in_flight" "Statements in flight at a server.";
    /// Microseconds to the first byte of an answer when the server is not pressed.
    baseline_us: u64, "baseline_us INTEGER NOT NULL", max,
        Gauge "millrace_concurrency_baseline_us" "Microseconds to the first byte of an answer of a server that is not pressed.";
    /// Microseconds to the first byte of an answer, mean of the last window.
    latency_us: u64, "latency_us INTEGER NOT NULL", max,
        Gauge "millrace_concurrency_latency_us" "Microseconds to the first byte of an answer of a server, lately.";
}

observed! {
    /// A row of `stats_mysql_hostgroup_pool`.
    pub struct HostgroupPoolRow, ends ")":
    /// Hostgroup.
    hostgroup: u32, "hostgroup INTEGER PRIMARY KEY", key;
    /// As many as there may be, if that is limited.
    max: Option<u32>, "max_connections INTEGER", some;
    /// Connections to its servers, also those that are being opened: of all cores, as each of them
    /// reports it.
    connections: u64, "connections INTEGER NOT NULL", max,
        Gauge "millrace_hostgroup_connections" "Connections to the servers of a hostgroup.";
    /// Connections a session uses now.
    used: u64, "used INTEGER NOT NULL", sum;
    /// Idle connections.
    free: u64, "free INTEGER NOT NULL", sum;
    /// Commands that wait for a connection.
    waiting: u64, "waiting INTEGER NOT NULL", sum,
        Gauge "millrace_hostgroup_waiting" "Commands that wait for a connection to a hostgroup.";
    /// Milliseconds that the one of them has waited that came first.
    longest_wait_ms: u64, "longest_wait_ms INTEGER NOT NULL", max,
        Gauge "millrace_hostgroup_longest_wait_ms" "Milliseconds that the first of them has waited.";
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
    /// Attributes that the client sent at login; only with `mysql-show_processlist_extended`.
    pub attributes: Vec<(String, String)>,
    /// The connections that it holds.
    pub held: Vec<HeldRow>,
    /// Why the one of this hostgroup is held, in ProxySQL's flags.
    pub status_flags: u32,
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
    pub command: Cow<'static, str>,
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

observed! {
    /// A row of `stats_mysql_client_host_cache`.
    pub struct ClientHostRow, ends ")":
    /// Address.
    address: std::net::IpAddr, "client_address VARCHAR NOT NULL", own;
    /// Failed logins since the last that did not fail.
    errors: u64, "error_count INT NOT NULL", own;
    /// When the last one failed, in seconds since 1970.
    last_s: u64, "last_updated BIGINT NOT NULL", own;
}

observed! {
    /// A row of `stats_mysql_errors`.
    pub struct ErrorRow, ends ",
    PRIMARY KEY (hostgroup, hostname, port, username, schemaname, errno) )":
    /// Hostgroup.
    hostgroup: u32, "hostgroup INT NOT NULL", key;
    /// Server.
    host: Arc<str>, "hostname VARCHAR NOT NULL", key;
    /// Its port.
    port: u16, "port INT NOT NULL", key;
    /// User.
    user: Arc<str>, "username VARCHAR NOT NULL", key;
    /// Client's address while mysql-query_digests_track_hostname is on, else empty.
    client_address: Arc<str>, "client_address VARCHAR NOT NULL", key;
    /// Schema.
    schema: Arc<str>, "schemaname VARCHAR NOT NULL", key;
    /// Error number.
    errno: u16, "errno INT NOT NULL", key;
    /// Times.
    count: u64, "count_star INTEGER NOT NULL", sum;
    /// Unix seconds.
    first_seen: u64, "first_seen INTEGER NOT NULL", min;
    /// Unix seconds.
    last_seen: u64, "last_seen INTEGER NOT NULL", max;
    /// Words of the last.
    last_error: Arc<str>, "last_error VARCHAR NOT NULL DEFAULT ''", latest(last_seen);
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

/// Merges rows of the same statement on several cores into one.
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
    /// Descriptor of its socket.
    pub descriptor: i32,
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
    /// Statements that the connection began with; none without `mysql-init_connect`.
    pub init_connect: Option<Arc<str>>,
    /// `time_zone` there, if a session has set it.
    pub time_zone: Option<String>,
    /// `sql_mode` there, if a session has set it.
    pub sql_mode: Option<String>,
    /// Whether autocommit is on.
    pub autocommit: bool,
    /// Milliseconds since it was given back.
    pub idle_ms: u64,
    /// Milliseconds since it was opened.
    pub age_ms: u64,
    /// Bytes that came from the server.
    pub bytes_received: u64,
    /// Bytes that went there.
    pub bytes_sent: u64,
    /// Statements it has served.
    pub queries: u64,
    /// The server's id of it.
    pub server_thread_id: u32,
    /// The server's version.
    pub server_version: Arc<str>,
}

observed! {
    /// A row of `stats_mysql_query_cache`.
    pub struct QueryCacheRow, ends ")":
    /// Where the statement was sent.
    hostgroup: u32, "hostgroup INT NOT NULL", own;
    /// Schema.
    schema: String, "schemaname VARCHAR NOT NULL", own;
    /// User.
    user: String, "username VARCHAR NOT NULL", own;
    /// Digest of the statement; 0 if digests are not made.
    digest: u64 as hex, "digest VARCHAR NOT NULL", own;
    /// Of a prepared statement.
    binary: bool as protocol, "protocol VARCHAR NOT NULL", own;
    /// The statement (its beginning).
    text: String, "query VARCHAR NOT NULL", own;
    /// Tables that it reads, as far as its text tells.
    tables: String, "tables VARCHAR NOT NULL", own;
    /// Whether writes to them end its use.
    watched: bool, "invalidate INT NOT NULL", own;
    /// Rows.
    rows: u64, "rows INT NOT NULL", own;
    /// Bytes of memory.
    bytes: u64, "bytes INT NOT NULL", own;
    /// How often it was given to somebody.
    hits: u64, "hits INT NOT NULL", own;
    /// Milliseconds since it was asked for.
    age_ms: u64, "age_ms INT NOT NULL", own;
    /// Milliseconds that it may be used, from then on.
    ttl_ms: u64, "ttl_ms INT NOT NULL", own;
}

observed! {
    /// A row of `stats_mysql_cores`. A turn is all that a core does between two looks at its
    /// sockets.
    pub struct CoreRow, ends ")":
    /// Its number.
    core: u32, "core INT PRIMARY KEY NOT NULL", own;
    /// Clients.
    sessions: u64, "sessions INTEGER NOT NULL", own,
        Gauge "millrace_core_sessions" "Clients of a core.";
    /// Tasks: sessions and what serves them.
    tasks: u64, "tasks INTEGER NOT NULL", own;
    /// Turns.
    turns: u64, "turns INTEGER NOT NULL", own,
        Total "millrace_core_turns_total" "Turns of a core.";
    /// Microseconds of all turns.
    busy_us: u64, "busy_us INTEGER NOT NULL", own,
        Microseconds "millrace_core_busy_seconds_total" "Seconds that a core was busy.";
    /// Microseconds of the longest turn.
    longest_us: u64, "longest_turn_us INTEGER NOT NULL", own;
    /// Microseconds of the processor that a turn took at most.
    longest_cpu_us: u64, "longest_turn_cpu_us INTEGER NOT NULL", own;
    /// Turns longer than 5 ms.
    long: u64, "turns_above_5ms INTEGER NOT NULL", own,
        Total "millrace_core_long_turns_total" "Turns of a core that took more than 5 ms.";
    /// Turns that took more than 5 ms of the processor.
    long_cpu: u64, "turns_above_5ms_cpu INTEGER NOT NULL", own;
}

impl Report {
    /// Join the report of another core. Both answer the same `Ask`; anything else is left out.
    pub fn merge(&mut self, other: Self) {
        match (self, other) {
            (Self::Global(a), Self::Global(b)) => a.add(&b),
            (Self::Pool(a), Self::Pool(b)) => observed::merge(a, b),
            (Self::Processes(a), Self::Processes(b)) => a.extend(b),
            (Self::Digests(a), Self::Digests(b)) => merge_digests(a, b),
            (Self::Rules(a), Self::Rules(b)) => merge_rules(a, b),
            (Self::Commands(a), Self::Commands(b)) => merge_commands(a, &b),
            (Self::Hostgroups(a), Self::Hostgroups(b)) => merge_hostgroups(a, b),
            (Self::HostgroupPool(a), Self::HostgroupPool(b)) => observed::merge(a, b),
            (Self::Choice(a), Self::Choice(b)) => observed::merge(a, b),
            (Self::Addresses(a), Self::Addresses(b)) => observed::merge(a, b),
            (Self::Admission(a), Self::Admission(b)) => observed::merge(a, b),
            (Self::Concurrency(a), Self::Concurrency(b)) => observed::merge(a, b),
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
            (Self::Errors(a), Self::Errors(b)) => observed::merge(a, b),
            (Self::FreeConnections(a), Self::FreeConnections(b)) => a.extend(b),
            (Self::Prepared(a), Self::Prepared(b)) => merge_prepared(a, b),
            (Self::QueryCache(a), Self::QueryCache(b)) => observed::merge(a, b),
            (Self::Mirror(a), Self::Mirror(b)) => observed::merge(a, b),
            (Self::Hooks(a), Self::Hooks(b)) => observed::merge(a, b),
            (Self::Shards(a), Self::Shards(b)) => observed::merge(a, b),
            (Self::ShardDdl(a), Self::ShardDdl(b)) => observed::merge(a, b),
            (Self::ClientHosts(a), Self::ClientHosts(b)) => observed::merge(a, b),
            (Self::Cores(a), Self::Cores(b)) => observed::merge(a, b),
            (Self::Alarms(a), Self::Alarms(b)) => observed::merge(a, b),
            _ => debug_assert!(false, "reports of different kinds"),
        }
    }
}

pub(crate) fn same_server(a: &PoolRow, b: &PoolRow) -> bool {
    a.hostgroup == b.hostgroup && a.host == b.host && a.port == b.port
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

fn merge_rules(into: &mut Vec<(i64, u64)>, other: Vec<(i64, u64)>) {
    let mut sums: BTreeMap<i64, u64> = into.drain(..).collect();
    for (rule, hits) in other {
        *sums.entry(rule).or_default() += hits;
    }
    into.extend(sums);
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
