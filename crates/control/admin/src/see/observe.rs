//! Reports of the cores, and the snapshot, to the rows of `stats_*` and `runtime_*` tables.

use crate::engine::{SqlError, View};
use crate::parts::{self, Sight};
use crate::see::extended;
use bridge::{
    Ask, Cell, Check, CheckRow, CommandRow, Counter, Counts, DigestRow, Done, FreeConnectionRow,
    GtidRow, HostgroupRow, Latency, MessageRow, Observed, ProcessRow, Report, Width,
};
use config::Snapshot;
use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Connection, params, params_from_iter};
use serde_json::json;

/// Tells what a core must be asked for to fill a table.
pub(crate) const fn ask(observe: crate::tables::Observe) -> Option<Ask> {
    use crate::tables::Observe;
    Some(match observe {
        Observe::Gtids
        | Observe::Logs
        | Observe::Messages
        | Observe::Scheduled
        | Observe::Moves
        | Observe::Variables
        | Observe::StatsVariables => return None,
        Observe::PeerChecksums
        | Observe::PeerClients
        | Observe::PeerMetrics
        | Observe::PeerStatus
        | Observe::Fleet
        | Observe::Shares => return None,
        Observe::Global | Observe::Memory => Ask::Global,
        Observe::Pool => Ask::Pool,
        Observe::Processes | Observe::Holds => Ask::Processes,
        Observe::Digests | Observe::DigestLatency => Ask::Digests,
        Observe::HostgroupLatency => Ask::Hostgroups,
        Observe::HostgroupPool => Ask::HostgroupPool,
        Observe::Choice => Ask::Choice,
        Observe::Addresses => Ask::Addresses,
        Observe::Admission => Ask::Admission,
        Observe::Concurrency => Ask::Concurrency,
        Observe::Rules => Ask::Rules,
        Observe::Commands | Observe::CommandLatency => Ask::Commands,
        Observe::Users => Ask::Users,
        Observe::Errors => Ask::Errors,
        Observe::FreeConnections => Ask::FreeConnections,
        Observe::Prepared => Ask::Prepared,
        Observe::QueryCache => Ask::QueryCache,
        Observe::Mirror => Ask::Mirror,
        Observe::Hooks => Ask::Hooks,
        Observe::Shards => Ask::Shards,
        Observe::ShardDdl => Ask::ShardDdl,
        Observe::Alarms => Ask::Alarms,
        Observe::Cores => Ask::Core,
        Observe::ClientHosts => Ask::ClientHosts,
    })
}

/// The stack of each thread that serves somebody. Nearly all of that is never touched: only a script that calls
/// itself from within Lua's library takes more than 1 MiB of it (docs/decisions/0035).
pub const STACK_BYTES: usize = 8 << 20;

/// Facts of the process that the counters of the cores do not know.
pub(crate) struct Process {
    pub(crate) uptime_s: u64,
    pub(crate) cores: usize,
    pub(crate) generation: u64,
    pub(crate) sqlite_bytes: i64,
    /// Rows that were taken from the cores, could not be delivered and were too many to be kept.
    pub(crate) rows_lost: u64,
    /// Times that a core has hung.
    pub(crate) stalls: u64,
    /// Bytes by the names that the memory manager has for them.
    pub(crate) allocator: Vec<(&'static str, u64)>,
    /// Counts of what came of the looks at other proxies.
    pub(crate) cluster: [(&'static str, u64); 4],
    /// Work of the monitor, where that was asked for.
    pub(crate) monitor: Done,
}

/// Fills `stats_mysql_gtid_executed`.
pub(crate) fn gtids(conn: &Connection, name: &str, rows: &[GtidRow]) -> Result<(), SqlError> {
    conn.execute(&format!("DELETE FROM {name}"), [])?;
    let mut insert = conn.prepare(&format!("INSERT INTO {name} VALUES (?, ?, ?, ?)"))?;
    for row in rows {
        insert.execute(params![&*row.host, row.port, row.executed, row.events])?;
    }
    Ok(())
}

/// Fills `stats_proxysql_message_metrics`: ProxySQL tells messages apart by their places in its
/// source, here they are told apart by thread and form.
pub(crate) fn messages(conn: &Connection, name: &str, rows: &[MessageRow]) -> Result<(), SqlError> {
    let mut into = Into::table(conn, name, 7)?;
    for row in rows {
        into.row(&[
            &row.id,
            &row.thread,
            &0,
            &row.form,
            &signed(row.times),
            &signed(row.first_s),
            &signed(row.last_s),
        ])?;
    }
    Ok(())
}

/// Names of `stats_mysql_global` that dashboards look for and nothing here counts yet: they are
/// there, and 0.
const NOT_COUNTED: &[&str] = &[
    "mysql_backend_buffers_bytes",
    "mysql_frontend_buffers_bytes",
    "mysql_session_internal_bytes",
    "ConnPool_get_conn_latency_awareness",
    "ConnPool_memory_bytes",
    "hostgroup_locked_queries",
    "mysql_unexpected_frontend_com_quit",
    "queries_with_max_lag_ms__delayed",
    "queries_with_max_lag_ms__total_wait_time_us",
    "backend_lagging_during_query",
    "get_aws_aurora_replicas_skipped_during_query",
    "Stmt_Max_Stmt_id",
    "new_req_conns_count",
];

/// Fills `stats_mysql_global`.
fn global(
    conn: &Connection,
    table: &str,
    counts: &Counts,
    process: &Process,
) -> Result<(), SqlError> {
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
        ("Millrace_core_stalls", process.stalls),
    ];
    let counted = Counter::ALL
        .iter()
        .map(|counter| (counter.name(), counts.value(*counter)));
    let own_more = own[1..].iter().chain(&process.cluster).copied();
    let own_more = own_more.chain(process.monitor.rows());
    for (name, value) in own[..1].iter().copied().chain(counted).chain(own_more) {
        into.row(&[&name, &value.to_string()])?;
    }
    // One that a core counts after all has its row already.
    let counted = |name: &str| Counter::ALL.iter().any(|counter| counter.name() == name);
    for name in NOT_COUNTED.iter().filter(|name| !counted(name)) {
        into.row(&[name, &"0"])?;
    }
    Ok(())
}

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

/// A value of an observed row, for SQLite.
struct Bound<'r>(&'r Cell<'r>);

impl ToSql for Bound<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self.0 {
            Cell::Null => ValueRef::Null,
            Cell::Number(number) => ValueRef::Integer(*number),
            Cell::Text(text) => ValueRef::Text(text.as_bytes()),
            Cell::Made(text) => ValueRef::Text(text.as_bytes()),
        }))
    }
}

/// Fills a table whose rows are of hostgroups, or of servers there, in order.
fn of_hostgroups(conn: &Connection, table: &str, report: &Report) -> Result<(), SqlError> {
    match report {
        Report::Choice(all) => {
            in_order(conn, table, all, |row| (row.hostgroup, &row.host, row.port))
        }
        Report::Admission(all) => in_order(conn, table, all, |row| (row.hostgroup, row.priority)),
        Report::Concurrency(all) => {
            in_order(conn, table, all, |row| (row.hostgroup, &row.host, row.port))
        }
        Report::HostgroupPool(all) => in_order(conn, table, all, |row| row.hostgroup),
        _ => Ok(()),
    }
}

/// Fills a table with rows in the order of their keys.
fn in_order<'r, T: Observed, K: Ord>(
    conn: &Connection,
    table: &str,
    all: &'r [T],
    key: impl Fn(&'r T) -> K,
) -> Result<(), SqlError> {
    let mut all: Vec<&'r T> = all.iter().collect();
    all.sort_unstable_by_key(|row| key(row));
    rows(conn, table, all)
}

/// Makes a table hold these rows, as they are declared.
pub(crate) fn rows<'r, T: Observed + 'r>(
    conn: &Connection,
    table: &str,
    rows: impl IntoIterator<Item = &'r T>,
) -> Result<(), SqlError> {
    let mut into = Into::table(conn, table, T::WIDTH)?;
    let mut cells = Vec::with_capacity(T::WIDTH);
    for row in rows {
        cells.clear();
        row.cells(&mut cells);
        into.insert
            .execute(params_from_iter(cells.iter().map(Bound)))?;
    }
    Ok(())
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
        Report::Global(counts) => global(conn, table, counts, process)?,
        Report::Pool(pool) => {
            let mut pool: Vec<_> = pool.iter().collect();
            pool.sort_by(|a, b| {
                (a.hostgroup, &a.host, a.port).cmp(&(b.hostgroup, &b.host, b.port))
            });
            rows(conn, table, pool)?;
        }
        Report::Processes(sessions) => {
            let v = &snapshot.variables;
            let level = v.mysql_show_processlist_extended;
            let is_listed = |row: &&ProcessRow| {
                let is_idle = row.command == "Sleep" && row.time_ms >= v.mysql_session_idle_ms;
                v.mysql_session_idle_show_processlist || !is_idle
            };
            let mut into = Into::table(conn, table, 16)?;
            for row in sessions.iter().filter(is_listed) {
                #[rustfmt::skip]
                into.row(&[
                    &row.core, &row.session, &row.user, &row.schema, &row.client_host, &row.client_port, &row.hostgroup,
                    &row.local_host, &row.local_port, &row.server_host, &row.server_port, &row.command, &signed(row.time_ms),
                    &row.info, &row.status_flags, &extended::info(row, level),
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
        Report::Addresses(all) => rows(conn, table, all)?,
        Report::Choice(_)
        | Report::Admission(_)
        | Report::Concurrency(_)
        | Report::HostgroupPool(_) => of_hostgroups(conn, table, report)?,
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
        Report::Errors(errors) => rows(conn, table, errors)?,
        Report::ClientHosts(hosts) => rows(conn, table, hosts)?,
        Report::QueryCache(results) => rows(conn, table, results)?,
        Report::FreeConnections(free) => free_connections(conn, table, free)?,
        Report::Mirror(verdicts) => rows(conn, table, verdicts)?,
        Report::Hooks(hooks) => rows(conn, table, hooks)?,
        Report::Shards(shards) => rows(conn, table, shards)?,
        Report::ShardDdl(ddl) => rows(conn, table, ddl)?,
        Report::Alarms(alarms) => rows(conn, table, alarms)?,
        Report::Cores(cores) => rows(conn, table, cores)?,
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

/// Fills `stats_mysql_free_connections`.
fn free_connections(
    conn: &Connection,
    table: &str,
    free: &[FreeConnectionRow],
) -> Result<(), SqlError> {
    let mut into = Into::table(conn, table, 13)?;
    for row in free {
        let statistics = json!({
            "age_ms": row.age_ms,
            "bytes_recv": row.bytes_received,
            "bytes_sent": row.bytes_sent,
            "questions": row.queries,
        });
        let info = json!({
            "host": &*row.host,
            "port": row.port,
            "server_version": &*row.server_version,
            "thread_id": row.server_thread_id,
            "user": &*row.user,
        });
        #[rustfmt::skip]
        into.row(&[
            &row.descriptor, &row.hostgroup, &&*row.host, &row.port, &&*row.user, &&*row.schema, &row.init_connect.as_deref(),
            &row.time_zone, &row.sql_mode, &row.autocommit, &signed(row.idle_ms), &statistics.to_string(), &info.to_string(),
        ])?;
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
    snapshot: &Snapshot,
) -> Result<(), SqlError> {
    let (firewall_users, firewall_rules) = snapshot.firewall.bytes();
    let of_threads = |count: usize| (count * STACK_BYTES) as u64;
    let sqlite_bytes = process.sqlite_bytes.max(0).cast_unsigned();
    let metrics = [
        ("Auth_memory", snapshot.users.bytes() as u64),
        ("query_digest_memory", counts.value(Counter::DigestsBytes)),
        ("mysql_query_rules_memory", snapshot.rules.bytes() as u64),
        ("mysql_firewall_users_table", firewall_users as u64),
        // There is no second copy of the rows.
        ("mysql_firewall_users_config", 0),
        ("mysql_firewall_rules_table", firewall_rules as u64),
        ("mysql_firewall_rules_config", 0),
        ("stack_memory_mysql_threads", of_threads(process.cores)),
        ("stack_memory_admin_threads", of_threads(1)),
        // The admin thread does their work.
        ("stack_memory_cluster_threads", 0),
    ];
    let mut into = Into::table(conn, table, 2)?;
    into.row(&[&"SQLite3_memory_bytes", &sqlite_bytes.to_string()])?;
    for (name, bytes) in &process.allocator {
        into.row(&[&format!("jemalloc_{name}"), &bytes.to_string()])?;
    }
    let mut rows = metrics.iter();
    rows.try_for_each(|(name, bytes)| into.row(&[name, &bytes.to_string()]))
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

/// Fills a table of schema `monitor`.
pub(crate) fn checks(
    conn: &Connection,
    name: &str,
    check: Check,
    rows: &[CheckRow],
) -> Result<(), SqlError> {
    let mut into: Option<Into<'_>> = None;
    // Two that began in the same microsecond are one row.
    let mut last = None;
    for row in rows {
        let key = Some((row.start_us, &row.host, row.port));
        if std::mem::replace(&mut last, key) == key {
            continue;
        }
        let number = |number: u64| Cell::Number(signed(number));
        let mut cells = vec![Cell::Text(&row.host), Cell::Number(row.port.into())];
        cells.extend([number(row.start_us), number(row.took_us)]);
        cells.extend(row.cells(check));
        let into = match &mut into {
            Some(into) => into,
            None => into.insert(Into::table(conn, name, cells.len())?),
        };
        into.insert
            .execute(params_from_iter(cells.iter().map(Bound)))?;
    }
    Ok(())
}

/// Fills a `runtime_` table from what is in force; `sight` tells how the servers are.
pub(crate) fn runtime(
    conn: &Connection,
    table: &str,
    snapshot: &Snapshot,
    sight: &Sight,
) -> Result<(), SqlError> {
    if table == "global_variables" {
        let mut into = Into::table(conn, "main.runtime_global_variables", 2)?;
        return snapshot
            .variables
            .pairs()
            .iter()
            .try_for_each(|(name, value)| into.row(&[name, value]));
    }
    if let Some(part) = parts::with_table(table) {
        return part.show(conn, table, snapshot, sight);
    }
    // Nothing of the others is ever in force.
    conn.execute(&format!("DELETE FROM main.runtime_{table}"), [])?;
    Ok(())
}
