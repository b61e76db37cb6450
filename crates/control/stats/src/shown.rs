//! Reports of the cores, the monitor and the process as metrics. Counters and columns are declared
//! in `bridge`; here is what has no row there.

use crate::families::{Families, metric};
use crate::process;
use bridge::{
    AdmissionRow, Check, CommandRow, ConcurrencyRow, CoreRow, Counter, Counts, DigestRow, Done,
    ErrorRow, Facts, GtidRow, HostgroupPoolRow, HostgroupRow, Kind, MessageRow, Metric, PoolRow,
    ProcessRow, ServerState, UserRow,
};
use config::Snapshot;
use std::collections::BTreeMap;
use topology::{Lag, Observed, Reach};

/// Characters of a digest's text that a label has at most.
const TEXT_MAX: usize = 200;

const UPTIME: Metric = metric(
    Kind::Total,
    "proxysql_uptime_seconds_total",
    "Seconds since the process began.",
);
const CACHE_MISSED: Metric = metric(
    Kind::Total,
    "proxysql_query_cache_count_get_total{status=\"err\"}",
    "Statements looked up in the cache and not found.",
);
const SERVER_STATUS: Metric = metric(
    Kind::Gauge,
    "proxysql_connpool_conns_status",
    "State of a server: 1 ONLINE, 2 SHUNNED, 3 OFFLINE_SOFT, 4 OFFLINE_HARD.",
);
const ERRORS: Metric = metric(
    Kind::Total,
    "mysql_error_total",
    "Errors that servers have answered, by their number.",
);
const GTIDS: Metric = metric(
    Kind::Total,
    "proxysql_gtid_executed_total",
    "Transactions that a server's binlog reader has told of.",
);
const LATENCY: Metric = metric(
    Kind::Microseconds,
    "millrace_hostgroup_latency_seconds",
    "Times of the statements of a hostgroup; -1 has those that no server was asked.",
);
const COMMAND_LATENCY: Metric = metric(
    Kind::Microseconds,
    "millrace_command_latency_seconds",
    "Times of the statements of a class.",
);
const USERS: Metric = metric(
    Kind::Gauge,
    "millrace_user_connections",
    "Clients of a user now.",
);
const HOLDS: Metric = metric(
    Kind::Gauge,
    "millrace_holds",
    "Connections to servers that sessions keep for this reason now.",
);
const DIGEST_COUNT: Metric = metric(
    Kind::Gauge,
    "millrace_digest_statements",
    "Statements of a digest, of those that took the most time.",
);
const DIGEST_TIME: Metric = metric(
    Kind::Gauge,
    "millrace_digest_time_us",
    "Microseconds of all statements of a digest, of those that took the most time.",
);
const SERVER_UP: Metric = metric(
    Kind::Gauge,
    "millrace_server_up",
    "Whether a server answers the checks: 1, or 0.",
);
const SERVER_LAG: Metric = metric(
    Kind::Gauge,
    "millrace_server_lag_seconds",
    "Seconds that a server is behind its source, by its own word.",
);
const SERVER_PING: Metric = metric(
    Kind::Gauge,
    "millrace_server_ping_us",
    "Microseconds that the last ping of a server took.",
);

const MESSAGES: Metric = metric(
    Kind::Total,
    "proxysql_message_count_total",
    "Messages of the log, by their thread and what they have in common.",
);
const NAMES_LOOKED_UP: Metric = metric(
    Kind::Total,
    "proxysql_mysql_monitor_dns_cache_queried",
    "Look-ups of servers' names by the monitor.",
);
const NAMES_FOUND: Metric = metric(
    Kind::Total,
    "proxysql_mysql_monitor_dns_cache_lookup_success",
    "Look-ups of servers' names that were answered.",
);
const NAMES_CHANGED: Metric = metric(
    Kind::Total,
    "proxysql_mysql_monitor_dns_cache_record_updated",
    "Look-ups by which a server's name has other addresses than before.",
);

/// Checks of the monitor, good and failed, with ProxySQL's names for those that it has.
const CHECKS: [(Check, &str); 7] = [
    (Check::Connect, "proxysql_mysql_monitor_connect_check_total"),
    (Check::Ping, "proxysql_mysql_monitor_ping_check_total"),
    (
        Check::ReadOnly,
        "proxysql_mysql_monitor_read_only_check_total",
    ),
    (
        Check::Lag,
        "proxysql_mysql_monitor_replication_lag_check_total",
    ),
    (
        Check::Group,
        "millrace_monitor_group_replication_check_total",
    ),
    (Check::Galera, "millrace_monitor_galera_check_total"),
    (Check::Aurora, "millrace_monitor_aurora_check_total"),
];

pub(crate) fn counts(into: &mut Families, counts: &Counts) {
    for counter in Counter::ALL {
        into.add(&counter.metric(), &[], counts.value(*counter));
    }
    let asked = counts.value(Counter::QueryCacheCountGet);
    let missed = asked.saturating_sub(counts.value(Counter::QueryCacheCountGetOk));
    into.add(&CACHE_MISSED, &[], missed);
}

pub(crate) fn pool(into: &mut Families, rows: &[PoolRow]) {
    for row in rows {
        let (hostgroup, endpoint) = (
            row.hostgroup.to_string(),
            format!("{}:{}", row.host, row.port),
        );
        let labels = [("hostgroup", hostgroup.as_str()), ("endpoint", &endpoint)];
        into.row(row, &labels);
        let status = match row.state {
            ServerState::Online => 1,
            ServerState::Shunned | ServerState::ShunnedReplicationLag => 2,
            ServerState::OfflineSoft => 3,
            ServerState::OfflineHard => 4,
        };
        into.add(&SERVER_STATUS, &labels, status);
    }
}

pub(crate) fn hostgroup_pool(into: &mut Families, rows: &[HostgroupPoolRow]) {
    for row in rows {
        into.row(row, &[("hostgroup", &row.hostgroup.to_string())]);
    }
}

pub(crate) fn admission(into: &mut Families, rows: &[AdmissionRow]) {
    for row in rows {
        let (hostgroup, priority) = (row.hostgroup.to_string(), row.priority.to_string());
        let labels = [("hostgroup", &*hostgroup), ("priority", &*priority)];
        into.row(row, &labels);
    }
}

pub(crate) fn concurrency(into: &mut Families, rows: &[ConcurrencyRow]) {
    for row in rows {
        let (hostgroup, endpoint) = (
            row.hostgroup.to_string(),
            format!("{}:{}", row.host, row.port),
        );
        let labels = [("hostgroup", &*hostgroup), ("endpoint", &*endpoint)];
        into.row(row, &labels);
    }
}

pub(crate) fn hostgroups(into: &mut Families, rows: &[HostgroupRow]) {
    for row in rows {
        let labels = [("hostgroup", &*row.hostgroup.to_string())];
        into.latency(&LATENCY, &labels, &row.latency, None);
    }
}

pub(crate) fn commands(into: &mut Families, rows: &[CommandRow]) {
    for row in rows.iter().filter(|row| row.count > 0) {
        let sum = Some(row.total_time_us);
        into.latency(
            &COMMAND_LATENCY,
            &[("command", &*row.command)],
            &row.latency,
            sum,
        );
    }
}

pub(crate) fn users(into: &mut Families, rows: &[UserRow]) {
    for row in rows {
        into.add(&USERS, &[("user", &row.username)], row.connections);
    }
}

pub(crate) fn cores(into: &mut Families, rows: &[CoreRow]) {
    for row in rows {
        into.row(row, &[("core", &row.core.to_string())]);
    }
}

/// Errors by server and number: users and schemas are no labels, there may be very many.
pub(crate) fn errors(into: &mut Families, rows: &[ErrorRow]) {
    let mut sums: BTreeMap<_, u64> = BTreeMap::new();
    for row in rows {
        let key = (row.hostgroup, &*row.host, row.port, row.errno);
        *sums.entry(key).or_default() += row.count;
    }
    for ((hostgroup, host, port, errno), count) in sums {
        let (hostgroup, port, code) = (hostgroup.to_string(), port.to_string(), errno.to_string());
        let labels = [
            ("hostgroup", hostgroup.as_str()),
            ("address", host),
            ("port", &port),
            ("code", &code),
        ];
        into.add(&ERRORS, &labels, count);
    }
}

pub(crate) fn holds(into: &mut Families, rows: &[ProcessRow]) {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    let held = rows.iter().flat_map(|row| &row.held);
    for hold in held.flat_map(|held| &held.holds) {
        *counts.entry(hold).or_default() += 1;
    }
    for (hold, count) in counts {
        into.add(&HOLDS, &[("hold", hold)], count);
    }
}

/// Keeps the digests that took the most time, `most` of them.
pub(crate) fn first(mut rows: Vec<DigestRow>, most: usize) -> Vec<DigestRow> {
    if most < rows.len() {
        rows.select_nth_unstable_by_key(most, |row| std::cmp::Reverse(row.sum_time_us));
        rows.truncate(most);
    }
    rows.shrink_to_fit();
    rows
}

pub(crate) fn digests(into: &mut Families, rows: &[DigestRow]) {
    for row in rows {
        let (hostgroup, digest) = (row.hostgroup.to_string(), format!("0x{:016X}", row.digest));
        let text: String = row.text.chars().take(TEXT_MAX).collect();
        let labels = [
            ("hostgroup", hostgroup.as_str()),
            ("schemaname", &*row.schema),
            ("username", &*row.user),
            ("client_address", &*row.client_address),
            ("digest", &digest),
            ("digest_text", &text),
        ];
        into.add(&DIGEST_COUNT, &labels, row.count);
        into.add(&DIGEST_TIME, &labels, row.sum_time_us);
    }
}

pub(crate) fn servers(into: &mut Families, observed: &Observed) {
    for (key, seen) in &observed.servers {
        let endpoint = format!("{}:{}", key.host, key.port);
        let labels = [("endpoint", endpoint.as_str())];
        match seen.reach {
            Reach::Unknown => {}
            Reach::Well => into.add(&SERVER_UP, &labels, 1),
            Reach::Missing(_) => into.add(&SERVER_UP, &labels, 0),
        }
        if let Lag::Seconds(seconds) = seen.lag {
            into.add(&SERVER_LAG, &labels, seconds.into());
        }
        if let Some(us) = seen.ping_us {
            into.add(&SERVER_PING, &labels, us.into());
        }
    }
}

pub(crate) fn gtids(into: &mut Families, rows: &[GtidRow]) {
    for row in rows {
        let port = row.port.to_string();
        let labels = [("hostname", &*row.host), ("port", &port)];
        into.add(&GTIDS, &labels, row.events);
    }
}

pub(crate) fn messages(into: &mut Families, rows: &[MessageRow]) {
    for row in rows {
        let labels = [
            ("message_id", row.id.as_str()),
            ("filename", &row.thread),
            ("line", "0"),
            ("func", &row.form),
        ];
        into.add(&MESSAGES, &labels, row.times);
    }
}

pub(crate) fn monitor(into: &mut Families, done: &Done) {
    for (check, name) in CHECKS {
        let metric = metric(
            Kind::Total,
            name,
            "Checks of the monitor, by their outcome.",
        );
        let [good, failed] = done.checks[check as usize];
        into.add(&metric, &[("status", "ok")], good);
        into.add(&metric, &[("status", "err")], failed);
    }
    into.add(&NAMES_LOOKED_UP, &[], done.names_looked_up);
    into.add(&NAMES_FOUND, &[], done.names_found);
    into.add(&NAMES_CHANGED, &[], done.names_changed);
}

/// Facts of the process, and what is in force.
pub(crate) fn process(
    into: &mut Families,
    (uptime_s, stalls): (u64, u64),
    snapshot: &Snapshot,
    facts: &Facts,
) {
    into.add(&UPTIME, &[], uptime_s);
    let version = &snapshot.variables.admin_version;
    let info = metric(
        Kind::Gauge,
        "proxysql_version_info",
        "Version, as the label says it.",
    );
    into.add(&info, &[("version", version)], 1);
    let variables = &snapshot.variables;
    let (firewall_users, firewall_rules) = snapshot.firewall.bytes();
    #[rustfmt::skip]
    let gauges = [
        ("proxysql_mysql_thread_workers", "Cores.", variables.mysql_threads),
        ("proxysql_mysql_max_connections", "mysql-max_connections.", variables.mysql_max_connections),
        ("proxysql_mysql_wait_timeout", "mysql-wait_timeout, in milliseconds.", variables.mysql_wait_timeout),
        ("proxysql_mysql_monitor_enabled", "mysql-monitor_enabled.", variables.mysql_monitor_enabled.into()),
        ("proxysql_mysql_monitor_ping_interval", "mysql-monitor_ping_interval, in seconds.", variables.mysql_monitor_ping_interval / 1000),
        ("proxysql_mysql_monitor_ping_max_failures", "mysql-monitor_ping_max_failures.", variables.mysql_monitor_ping_max_failures),
        ("proxysql_mysql_monitor_writer_is_also_reader", "mysql-monitor_writer_is_also_reader.", variables.mysql_monitor_writer_is_also_reader.into()),
        ("proxysql_mysql_listener_paused", "Whether no new clients are let in: 1, or 0.", facts.paused.into()),
        ("proxysql_sqlite3_memory_bytes", "Bytes of the admin port's tables.", facts.sqlite_bytes),
        ("proxysql_auth_memory_bytes", "Bytes of the users in force.", snapshot.users.bytes() as u64),
        ("proxysql_mysql_query_rules_memory_bytes", "Bytes of the rules in force.", snapshot.rules.bytes() as u64),
        ("proxysql_mysql_firewall_users_table_bytes", "Bytes of the firewall's users in force.", firewall_users as u64),
        ("proxysql_mysql_firewall_rules_table_bytes", "Bytes of the firewall's rules in force.", firewall_rules as u64),
        ("millrace_configuration_generation", "Number of the configuration in force.", snapshot.generation),
    ];
    for (name, help, value) in gauges {
        into.add(&metric(Kind::Gauge, name, help), &[], value);
    }
    let totals = [
        (
            "proxysql_servers_table_version_total",
            "Configurations that have been in force.",
            snapshot.generation,
        ),
        (
            "millrace_rows_lost_total",
            "Rows of statistics that were taken and lost.",
            facts.rows_lost,
        ),
        (
            "millrace_core_stalls_total",
            "Times that a core has hung.",
            stalls,
        ),
    ];
    for (name, help, value) in totals {
        into.add(&metric(Kind::Total, name, help), &[], value);
    }
    let peers = metric(
        Kind::Total,
        "millrace_cluster_looks_total",
        "Looks at other proxies, by what came of them.",
    );
    for (name, count) in &facts.cluster {
        let outcome = name.trim_start_matches("Millrace_cluster_");
        into.add(&peers, &[("outcome", outcome)], *count);
    }
    memory(into);
}

/// Other proxies, with the labels that the tables have as columns.
pub(crate) fn peers(into: &mut Families, facts: &Facts) {
    for peer in &facts.peers {
        let port = peer.port.to_string();
        let at = [("hostname", &*peer.hostname), ("port", &*port)];
        #[rustfmt::skip]
        let numbers = [
            (Kind::Gauge, "proxysql_servers_metrics_weight", "Weight of another proxy.", peer.weight),
            (Kind::Gauge, "proxysql_servers_metrics_response_time_ms", "Milliseconds that its last answer took.", peer.response_ms),
            (Kind::Gauge, "proxysql_servers_metrics_last_check_ms", "Milliseconds since then.", peer.last_check_ms),
            (Kind::Total, "proxysql_servers_metrics_uptime_s", "Seconds since it began.", peer.uptime_s),
            (Kind::Total, "proxysql_servers_metrics_queries", "Statements that it has had.", peer.queries),
            (Kind::Gauge, "proxysql_servers_metrics_client_conns_connected", "Clients that are there now.", peer.connected),
            (Kind::Total, "proxysql_servers_metrics_client_conns_created", "Clients that have been there.", peer.created),
        ];
        for (kind, name, help, number) in numbers {
            into.add(&metric(kind, name, help), &at, number);
        }
        for module in &peer.modules {
            let labels = [at[0], at[1], ("name", module.name)];
            #[rustfmt::skip]
            let numbers = [
                (Kind::Total, "proxysql_servers_checksums_version_total", "Version of a module of another proxy.", module.version),
                (Kind::Gauge, "proxysql_servers_checksums_epoch", "Seconds since 1970 of its LOAD there.", module.epoch),
                (Kind::Gauge, "proxysql_servers_checksums_changed_at", "Seconds since 1970 when it was another one last.", module.changed_s),
                (Kind::Gauge, "proxysql_servers_checksums_updated_at", "Seconds since 1970 when it was asked for last.", module.updated_s),
                (Kind::Gauge, "proxysql_servers_checksums_diff_check", "Looks in a row that have found it other than here.", module.looks),
            ];
            for (kind, name, help, number) in numbers {
                into.add(&metric(kind, name, help), &labels, number);
            }
        }
    }
    for asker in &facts.askers {
        let port = asker.port.to_string();
        let labels = [
            ("uuid", &*asker.uuid),
            ("hostname", &*asker.hostname),
            ("port", &*port),
            ("admin_mysql_ifaces", &*asker.ifaces),
        ];
        let seen = metric(
            Kind::Gauge,
            "proxysql_servers_clients_status_last_seen_at",
            "Seconds since 1970 when another proxy asked here last.",
        );
        into.add(&seen, &labels, asker.seen_s);
    }
}

/// The fleet: what each proxy has of the truth, and this one's parts of its limits.
pub(crate) fn fleet(into: &mut Families, facts: &Facts) {
    let Some(fleet) = &facts.fleet else {
        return;
    };
    let silent = metric(
        Kind::Gauge,
        "millrace_fleet_store_silent_seconds",
        "Seconds for which the store of the fleet has not answered; 0 while it does.",
    );
    into.add(&silent, &[], fleet.silent_s);
    for held in &fleet.modules {
        let at = [("proxy", &*held.proxy), ("module", held.module)];
        let labels = [at[0], at[1], ("state", &*held.state)];
        let state = metric(
            Kind::Gauge,
            "millrace_fleet_module",
            "1 for the state that a module of a proxy of the fleet is in.",
        );
        into.add(&state, &labels, 1);
        #[rustfmt::skip]
        let numbers = [
            ("millrace_fleet_generation", "Generation of a module that a proxy of the fleet has.", held.generation),
            ("millrace_fleet_truth", "Generation of a module that the store has.", held.truth),
        ];
        for (name, help, number) in numbers {
            into.add(&metric(Kind::Gauge, name, help), &at, number);
        }
    }
    for part in fleet.shares.iter().filter(|part| part.is_own) {
        #[rustfmt::skip]
        let numbers = [
            ("millrace_share_budget", "A limit for the whole fleet.", part.budget),
            ("millrace_share", "Part of it that this proxy has.", part.share),
            ("millrace_share_used", "Part of it that its sessions use.", part.used),
            ("millrace_share_wanted", "Part of it that its sessions would use.", part.wanted),
        ];
        for (name, help, number) in numbers {
            let what = [("what", &*part.what)];
            into.add(&metric(Kind::Gauge, name, help), &what, u64::from(number));
        }
    }
}

/// Numbers of the memory manager and of the kernel; what cannot be read is not shown.
fn memory(into: &mut Families) {
    if let Some(memory) = process::memory() {
        let allocated = metric(
            Kind::Total,
            "proxysql_jemalloc_allocated_bytes_total",
            "Bytes in use. They go up and down; ProxySQL calls them a counter.",
        );
        into.add(&allocated, &[], memory.allocated);
        let kinds = metric(
            Kind::Gauge,
            "proxysql_jemalloc_bytes",
            "Bytes of the memory manager, by their type.",
        );
        for (name, bytes) in memory.kinds() {
            into.add(&kinds, &[("type", name)], bytes);
        }
    }
    if let Some(open) = rt::open_descriptors() {
        let metric = metric(Kind::Gauge, "proxysql_fds_in_use", "Open descriptors.");
        into.add(&metric, &[], open);
    }
    if let Some([user_us, system_us]) = rt::cpu_us() {
        let cpu = metric(
            Kind::Microseconds,
            "millrace_process_cpu_seconds_total",
            "Seconds of the processor, by their mode.",
        );
        into.add(&cpu, &[("mode", "user")], user_us);
        into.add(&cpu, &[("mode", "system")], system_us);
    }
}
