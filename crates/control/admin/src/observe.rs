//! Reports of the cores, and the snapshot, to the rows of `stats_*` and `runtime_*` tables.

use crate::engine::{SqlError, View};
use crate::extended;
use crate::rows::{self, Mapped};
use bridge::{
    Ask, CommandRow, Counter, Counts, DigestRow, HostgroupPoolRow, HostgroupRow, Latency,
    ProcessRow, Report, ServerState, Width,
};
use config::{
    FastRoutingRow, FirewallFingerprintRow, FirewallRuleRow, FirewallUserRow,
    HostgroupAttributesRow,
};
use config::{ProxyRow, RewriteRow, RuleRow, ServerRow, Snapshot, SslParamsRow, UserRow};
use rusqlite::Connection;
use rusqlite::types::ToSql;

/// What a core must be asked for to fill a table.
pub(crate) const fn ask(observe: crate::tables::Observe) -> Option<Ask> {
    use crate::tables::Observe;
    Some(match observe {
        Observe::Nothing | Observe::Variables | Observe::StatsVariables => return None,
        Observe::PeerChecksums
        | Observe::PeerClients
        | Observe::PeerMetrics
        | Observe::PeerStatus => return None,
        Observe::Global | Observe::Memory => Ask::Global,
        Observe::Pool => Ask::Pool,
        Observe::Processes | Observe::Holds => Ask::Processes,
        Observe::Digests | Observe::DigestLatency => Ask::Digests,
        Observe::HostgroupLatency => Ask::Hostgroups,
        Observe::HostgroupPool => Ask::HostgroupPool,
        Observe::Rules => Ask::Rules,
        Observe::Commands | Observe::CommandLatency => Ask::Commands,
        Observe::Users => Ask::Users,
        Observe::Errors => Ask::Errors,
        Observe::FreeConnections => Ask::FreeConnections,
        Observe::Prepared => Ask::Prepared,
        Observe::QueryCache => Ask::QueryCache,
        Observe::Mirror => Ask::Mirror,
        Observe::Alarms => Ask::Alarms,
        Observe::Cores => Ask::Core,
        Observe::ClientHosts => Ask::ClientHosts,
    })
}

/// What the counters of the cores do not know.
pub(crate) struct Process {
    pub(crate) uptime_s: u64,
    pub(crate) cores: usize,
    pub(crate) generation: u64,
    pub(crate) sqlite_bytes: i64,
    /// Rows that were taken from the cores, could not be delivered and were too many to be kept.
    pub(crate) rows_lost: u64,
    /// What came of the looks at other proxies.
    pub(crate) cluster: [(&'static str, u64); 4],
}

/// Names of `stats_mysql_global` that dashboards look for and nothing here counts yet: they are
/// there, and 0.
const NOT_COUNTED: &[&str] = &[
    "mysql_backend_buffers_bytes",
    "mysql_frontend_buffers_bytes",
    "mysql_session_internal_bytes",
    "GTID_consistent_queries",
    "GTID_session_collected",
    "ConnPool_get_conn_latency_awareness",
    "ConnPool_memory_bytes",
    "hostgroup_locked_set_cmds",
    "hostgroup_locked_queries",
    "mysql_unexpected_frontend_com_quit",
    "queries_with_max_lag_ms",
    "queries_with_max_lag_ms__delayed",
    "queries_with_max_lag_ms__total_wait_time_us",
    "backend_lagging_during_query",
    "get_aws_aurora_replicas_skipped_during_query",
    "Selects_for_update__autocommit0",
    "MySQL_Monitor_Workers",
    "MySQL_Monitor_Workers_Aux",
    "MySQL_Monitor_Workers_Started",
    "MySQL_Monitor_connect_check_OK",
    "MySQL_Monitor_connect_check_ERR",
    "MySQL_Monitor_ping_check_OK",
    "MySQL_Monitor_ping_check_ERR",
    "MySQL_Monitor_read_only_check_OK",
    "MySQL_Monitor_read_only_check_ERR",
    "MySQL_Monitor_replication_lag_check_OK",
    "MySQL_Monitor_replication_lag_check_ERR",
    "MySQL_Monitor_dns_cache_queried",
    "MySQL_Monitor_dns_cache_lookup_success",
    "MySQL_Monitor_dns_cache_record_updated",
    "Stmt_Max_Stmt_id",
    "new_req_conns_count",
];

/// Rows of one table, being replaced.
pub(crate) struct Into<'c> {
    insert: rusqlite::Statement<'c>,
}

impl<'c> Into<'c> {
    pub(crate) fn table(conn: &'c Connection, table: &str, width: usize) -> Result<Self, SqlError> {
        conn.execute(&format!("DELETE FROM {table}"), [])?;
        Self::append(conn, table, width)
    }

    /// Rows are added to those that are there.
    pub(crate) fn append(
        conn: &'c Connection,
        table: &str,
        width: usize,
    ) -> Result<Self, SqlError> {
        let marks = vec!["?"; width].join(", ");
        Ok(Self {
            insert: conn.prepare(&format!("INSERT OR REPLACE INTO {table} VALUES ({marks})"))?,
        })
    }

    pub(crate) fn row(&mut self, values: &[&dyn ToSql]) -> Result<(), SqlError> {
        self.insert.execute(values)?;
        Ok(())
    }
}

/// SQLite's integers have a sign.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Fills a table (named with its schema) from a report.
pub(crate) fn report(
    conn: &Connection,
    table: &str,
    report: &Report,
    snapshot: &Snapshot,
    process: &Process,
) -> Result<(), SqlError> {
    match report {
        Report::Global(counts) => {
            let mut into = Into::table(conn, table, 2)?;
            let own = [
                ("ProxySQL_Uptime", process.uptime_s),
                ("MySQL_Thread_Workers", process.cores as u64),
                ("Servers_table_version", process.generation),
                (
                    "SQLite3_memory_bytes",
                    process.sqlite_bytes.max(0).cast_unsigned(),
                ),
                ("Millrace_rows_lost", process.rows_lost),
            ];
            let counted = Counter::ALL
                .iter()
                .map(|counter| (counter.name(), counts.value(*counter)));
            let own_more = own[1..].iter().chain(&process.cluster).copied();
            for (name, value) in own[..1].iter().copied().chain(counted).chain(own_more) {
                into.row(&[&name, &value.to_string()])?;
            }
            // One that a core counts after all has its row already.
            let counted = |name: &str| Counter::ALL.iter().any(|counter| counter.name() == name);
            for name in NOT_COUNTED.iter().filter(|name| !counted(name)) {
                into.row(&[name, &"0"])?;
            }
        }
        Report::Pool(pool) => {
            let mut into = Into::table(conn, table, 14)?;
            let mut pool: Vec<_> = pool.iter().collect();
            pool.sort_by(|a, b| {
                (a.hostgroup, &a.host, a.port).cmp(&(b.hostgroup, &b.host, b.port))
            });
            for row in pool {
                #[rustfmt::skip]
                into.row(&[
                    &row.hostgroup, &&*row.host, &row.port, &row.state.name(), &signed(row.used), &signed(row.free),
                    &signed(row.ok), &signed(row.err), &signed(row.used_max), &signed(row.queries), &0,
                    &signed(row.bytes_sent), &signed(row.bytes_received), &signed(row.latency_us),
                ])?;
            }
        }
        Report::Processes(sessions) => {
            let level = snapshot.variables.mysql_show_processlist_extended;
            let mut into = Into::table(conn, table, 16)?;
            for row in sessions {
                #[rustfmt::skip]
                into.row(&[
                    &row.core, &row.session, &row.user, &row.schema, &row.client_host, &row.client_port, &row.hostgroup,
                    &row.local_host, &row.local_port, &row.server_host, &row.server_port, &row.command, &signed(row.time_ms),
                    &row.info, &0, &extended::info(row, level),
                ])?;
            }
        }
        Report::Digests(digests) => {
            let mut into = Into::table(conn, table, 14)?;
            digests
                .iter()
                .try_for_each(|row| digest_row(row, |values| into.row(values)))?;
        }
        Report::Rules(hits) => {
            let mut into = Into::table(conn, table, 2)?;
            let hits: std::collections::HashMap<i64, u64> = hits.iter().copied().collect();
            // Every rule in force has a row, hit or not.
            for rule in snapshot.rules.rows() {
                let hits = hits.get(&rule.rule_id).copied().unwrap_or_default();
                into.row(&[&rule.rule_id, &signed(hits)])?;
            }
        }
        Report::Hostgroups(groups) => hostgroup_latency(conn, table, groups)?,
        Report::HostgroupPool(groups) => hostgroup_pool(conn, table, groups)?,
        Report::Commands(commands) => {
            let mut into = Into::table(conn, table, 15)?;
            for row in commands {
                let (time, count) = (signed(row.total_time_us), signed(row.count));
                let buckets = row.counts.map(signed);
                let mut values: Vec<&dyn ToSql> = vec![&row.command, &time, &count];
                values.extend(buckets.iter().map(|bucket| bucket as &dyn ToSql));
                into.row(&values)?;
            }
        }
        Report::Users(users) => {
            let mut into = Into::table(conn, table, 3)?;
            // As ProxySQL has it: those who are allowed to come, connected or not.
            let mut known: Vec<_> = snapshot.users.iter().collect();
            known.sort_unstable_by(|a, b| a.username.cmp(&b.username));
            let mut counted: Vec<_> = users.iter().collect();
            counted.sort_unstable_by(|a, b| a.username.cmp(&b.username));
            for user in known {
                let at = counted.binary_search_by(|row| (*row.username).cmp(&user.username));
                let connections = at.map_or(0, |at| counted[at].connections);
                into.row(&[
                    &&*user.username,
                    &signed(connections),
                    &user.max_connections,
                ])?;
            }
        }
        Report::Errors(errors) => {
            let mut into = Into::table(conn, table, 11)?;
            for row in errors {
                #[rustfmt::skip]
                into.row(&[
                    &row.hostgroup, &&*row.host, &row.port, &&*row.user, &&*row.client_address, &&*row.schema, &row.errno,
                    &signed(row.count), &signed(row.first_seen), &signed(row.last_seen), &&*row.last_error,
                ])?;
            }
        }
        Report::ClientHosts(hosts) => {
            let mut into = Into::table(conn, table, 3)?;
            for row in hosts {
                into.row(&[
                    &row.address.to_string(),
                    &signed(row.errors),
                    &signed(row.last_s),
                ])?;
            }
        }
        Report::QueryCache(results) => {
            let mut into = Into::table(conn, table, 13)?;
            for row in results {
                #[rustfmt::skip]
                into.row(&[
                    &row.hostgroup, &row.schema, &row.user, &format!("0x{:016X}", row.digest), &if row.binary { "binary" } else { "text" },
                    &row.text, &row.tables, &row.watched, &signed(row.rows), &signed(row.bytes), &signed(row.hits),
                    &signed(row.age_ms), &signed(row.ttl_ms),
                ])?;
            }
        }
        Report::FreeConnections(free) => {
            let mut into = Into::table(conn, table, 13)?;
            for row in free {
                let info = format!(
                    "{{\"thread_id\":{},\"queries\":{}}}",
                    row.server_thread_id, row.queries
                );
                #[rustfmt::skip]
                into.row(&[
                    &(row.server_thread_id), &row.hostgroup, &&*row.host, &row.port, &&*row.user, &&*row.schema, &"", &"", &"", &"",
                    &signed(row.idle_ms), &"", &info,
                ])?;
            }
        }
        Report::Mirror(verdicts) => {
            let mut into = Into::table(conn, table, 11)?;
            for row in verdicts {
                #[rustfmt::skip]
                into.row(&[
                    &row.hostgroup, &format!("0x{:016X}", row.digest), &&*row.text, &signed(row.count), &signed(row.same),
                    &signed(row.different), &signed(row.errors), &&*row.last_difference, &signed(row.last_difference_at),
                    &signed(row.client_us), &signed(row.mirror_us),
                ])?;
            }
        }
        Report::Alarms(alarms) => {
            let mut into = Into::table(conn, table, 11)?;
            for row in alarms {
                #[rustfmt::skip]
                into.row(&[
                    &&*row.user, &&*row.client_address, &&*row.schema, &row.flag, &format!("0x{:016X}", row.digest), &&*row.text,
                    &row.action, &&*row.fingerprint, &signed(row.count), &signed(row.first_seen), &signed(row.last_seen),
                ])?;
            }
        }
        Report::Cores(cores) => {
            let mut into = Into::table(conn, table, 9)?;
            for row in cores {
                #[rustfmt::skip]
                into.row(&[
                    &row.core, &signed(row.sessions), &signed(row.tasks), &signed(row.turns), &signed(row.busy_us), &signed(row.longest_us),
                    &signed(row.longest_cpu_us), &signed(row.long), &signed(row.long_cpu),
                ])?;
            }
        }
        Report::Prepared(statements) => {
            let mut into = Into::table(conn, table, 9)?;
            let mut statements: Vec<_> = statements.iter().collect();
            statements.sort_unstable_by_key(|row| row.id);
            for row in statements {
                #[rustfmt::skip]
                into.row(&[
                    &signed(row.id), &&*row.schema, &&*row.user, &format!("0x{:016X}", row.digest), &signed(row.clients),
                    &signed(row.servers), &row.columns, &row.params, &&*row.text,
                ])?;
            }
        }
    }
    Ok(())
}

/// The columns of `stats_mysql_query_digest`.
pub(crate) fn digest_row(
    row: &DigestRow,
    put: impl FnOnce(&[&dyn ToSql]) -> Result<(), SqlError>,
) -> Result<(), SqlError> {
    #[rustfmt::skip]
    let put = put(&[
        &row.hostgroup, &&*row.schema, &&*row.user, &&*row.client_address, &format!("0x{:016X}", row.digest), &&*row.text,
        &signed(row.count), &signed(row.first_seen), &signed(row.last_seen), &signed(row.sum_time_us),
        &signed(row.min_time_us), &signed(row.max_time_us), &signed(row.rows_affected), &signed(row.rows_sent),
    ]);
    put
}

/// Quantiles, the longest, and each bucket as `[longest, how many]`.
fn spread<W: Width>(latency: &Latency<W>, max_us: u64) -> (Vec<i64>, String) {
    let mut numbers: Vec<_> = [500, 900, 990, 999]
        .map(|part| signed(latency.quantile(part).min(max_us)))
        .into();
    numbers.push(signed(max_us));
    let buckets: Vec<_> = latency
        .buckets()
        .map(|(bound, count)| format!("[{bound},{count}]"))
        .collect();
    (numbers, format!("[{}]", buckets.join(",")))
}

/// Fills `stats_mysql_session_holds`.
pub(crate) fn holds(
    conn: &Connection,
    table: &str,
    sessions: &[ProcessRow],
) -> Result<(), SqlError> {
    let mut into = Into::table(conn, table, 8)?;
    for session in sessions {
        for held in &session.held {
            for hold in &held.holds {
                #[rustfmt::skip]
                into.row(&[
                    &session.session, &session.user, &held.hostgroup, &&*held.host, &held.port, &held.server_thread_id,
                    hold, &signed(held.held_ms),
                ])?;
            }
        }
    }
    Ok(())
}

/// Fills `stats_mysql_query_digest_latency`.
pub(crate) fn digest_latency(
    conn: &Connection,
    table: &str,
    digests: &[DigestRow],
) -> Result<(), SqlError> {
    let mut into = Into::table(conn, table, 13)?;
    for row in digests {
        let (numbers, histogram) = spread(&row.latency, row.max_time_us);
        let digest = format!("0x{:016X}", row.digest);
        let (schema, user, client, text) = (
            &&*row.schema,
            &&*row.user,
            &&*row.client_address,
            &&*row.text,
        );
        let count = signed(row.count);
        let mut values: Vec<&dyn ToSql> =
            vec![&row.hostgroup, schema, user, client, &digest, text, &count];
        values.extend(numbers.iter().map(|number| number as &dyn ToSql));
        values.push(&histogram);
        into.row(&values)?;
    }
    Ok(())
}

/// Fills `stats_mysql_hostgroup_latency`.
fn hostgroup_latency(
    conn: &Connection,
    table: &str,
    groups: &[HostgroupRow],
) -> Result<(), SqlError> {
    let mut into = Into::table(conn, table, 8)?;
    let mut groups: Vec<_> = groups.iter().collect();
    groups.sort_unstable_by_key(|row| row.hostgroup);
    groups.iter().try_for_each(|row| {
        spread_row(
            &mut into,
            &row.hostgroup,
            row.count,
            &row.latency,
            row.max_us,
        )
    })
}

/// Fills `stats_mysql_hostgroup_pool`.
fn hostgroup_pool(
    conn: &Connection,
    table: &str,
    groups: &[HostgroupPoolRow],
) -> Result<(), SqlError> {
    let mut into = Into::table(conn, table, 7)?;
    let mut groups: Vec<_> = groups.iter().collect();
    groups.sort_unstable_by_key(|row| row.hostgroup);
    for row in groups {
        let numbers = [row.used, row.free, row.waiting, row.longest_wait_ms].map(signed);
        let mut values: Vec<&dyn ToSql> = vec![&row.hostgroup, &row.max];
        let connections = signed(row.connections);
        values.push(&connections);
        values.extend(numbers.iter().map(|number| number as &dyn ToSql));
        into.row(&values)?;
    }
    Ok(())
}

/// Fills `stats_mysql_command_latency`.
pub(crate) fn command_latency(
    conn: &Connection,
    table: &str,
    commands: &[CommandRow],
) -> Result<(), SqlError> {
    let mut into = Into::table(conn, table, 8)?;
    let counted = commands.iter().filter(|row| row.count > 0);
    counted.into_iter().try_for_each(|row| {
        spread_row(&mut into, &row.command, row.count, &row.latency, row.max_us)
    })
}

/// A row of what it is about, and how its times are spread.
fn spread_row<W: Width>(
    into: &mut Into<'_>,
    of: &dyn ToSql,
    count: u64,
    latency: &Latency<W>,
    max_us: u64,
) -> Result<(), SqlError> {
    let (numbers, histogram) = spread(latency, max_us);
    let count = signed(count);
    let mut values: Vec<&dyn ToSql> = vec![of, &count];
    values.extend(numbers.iter().map(|number| number as &dyn ToSql));
    values.push(&histogram);
    into.row(&values)
}

/// Fills `stats_memory_metrics`.
pub(crate) fn memory(
    conn: &Connection,
    table: &str,
    process: &Process,
    counts: &Counts,
) -> Result<(), SqlError> {
    let mut into = Into::table(conn, table, 2)?;
    into.row(&[&"SQLite3_memory_bytes", &process.sqlite_bytes.to_string()])?;
    into.row(&[
        &"query_digest_memory",
        &counts.value(Counter::DigestsBytes).to_string(),
    ])
}

/// Fills the statistics user's `global_variables`.
pub(crate) fn stats_variables(
    conn: &Connection,
    table: &str,
    snapshot: &Snapshot,
) -> Result<(), SqlError> {
    let value = snapshot.variables.mysql_max_allowed_packet.to_string();
    Into::table(conn, table, 2)?.row(&[&"mysql-max_allowed_packet", &value])
}

/// Fills `stats_millrace_variables`. Who may only read statistics does not learn passwords.
pub(crate) fn variables(
    conn: &Connection,
    table: &str,
    snapshot: &Snapshot,
    view: View,
) -> Result<(), SqlError> {
    let mut into = Into::table(conn, table, 5)?;
    for variable in config::REGISTRY {
        let secret = view == View::Stats
            && (variable.name.ends_with("_credentials") || variable.name.ends_with("_password"));
        let shown = |text: String| if secret { "***".into() } else { text };
        let (value, default) = (
            shown(variable.text(&snapshot.variables)),
            shown(variable.default.into()),
        );
        let effect = match variable.effect {
            config::Effect::Live => "at LOAD",
            config::Effect::Restart => "at the next start",
            config::Effect::NotYet => "none",
            config::Effect::Moot => "no meaning",
        };
        into.row(&[&variable.name, &value, &default, &effect, &variable.about])?;
    }
    Ok(())
}

/// Fills a `runtime_` table from what is in force; `pool` tells how the servers are.
pub(crate) fn runtime(
    conn: &Connection,
    table: &str,
    snapshot: &Snapshot,
    pool: Option<&Report>,
) -> Result<(), SqlError> {
    let name = format!("runtime_{table}");
    match table {
        ServerRow::TABLE => rows::replace(conn, &name, seen(snapshot.servers.rows(), pool)),
        HostgroupAttributesRow::TABLE => {
            rows::replace(conn, &name, snapshot.servers.attributes_rows())
        }
        SslParamsRow::TABLE => rows::replace(conn, &name, snapshot.servers.ssl_params_rows()),
        UserRow::TABLE => rows::replace(conn, &name, snapshot.users.rows()),
        RuleRow::TABLE => rows::replace(conn, &name, snapshot.rules.rows().cloned()),
        RewriteRow::TABLE => rows::replace(conn, &name, snapshot.rewrites.rows().cloned()),
        FastRoutingRow::TABLE => rows::replace(conn, &name, snapshot.rules.fast().rows()),
        ProxyRow::TABLE => rows::replace(conn, &name, snapshot.proxies.rows().to_vec()),
        FirewallUserRow::TABLE => rows::replace(conn, &name, snapshot.firewall.user_rows()),
        FirewallRuleRow::TABLE => rows::replace(conn, &name, snapshot.firewall.rule_rows()),
        FirewallFingerprintRow::TABLE => {
            rows::replace(conn, &name, snapshot.firewall.fingerprint_rows())
        }
        "global_variables" => {
            let mut into = Into::table(conn, "main.runtime_global_variables", 2)?;
            snapshot
                .variables
                .pairs()
                .iter()
                .try_for_each(|(name, value)| into.row(&[name, value]))
        }
        // Nothing of the others is ever in force.
        _ => {
            conn.execute(&format!("DELETE FROM main.{name}"), [])?;
            Ok(())
        }
    }
}

/// The operator's word of a server, unless the cores have set it aside.
fn seen(mut servers: Vec<ServerRow>, pool: Option<&Report>) -> Vec<ServerRow> {
    let Some(Report::Pool(pool)) = pool else {
        return servers;
    };
    for server in &mut servers {
        let found = pool.iter().find(|row| {
            i64::from(row.hostgroup) == server.hostgroup_id
                && *row.host == *server.hostname
                && i64::from(row.port) == server.port
        });
        if let Some(row) =
            found.filter(|row| row.state == ServerState::Shunned || server.status == "SHUNNED")
        {
            server.status = row.state.name().into();
        }
    }
    servers
}
