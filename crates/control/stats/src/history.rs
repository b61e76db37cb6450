//! Samples of the statistics in schema `stats_history`: samples for a week, hours for a year, days
//! for ten. A thread of its own writes them; it may wait for the disk as long as it takes.

use crate::process;
use bridge::{Cell, Counter, Counts, Kind, Observed, PoolRow};
use rusqlite::types::ToSql;
use rusqlite::{Connection, OpenFlags, Result, params_from_iter};
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;
use std::time::Duration;

/// Samples that wait for the disk at most.
const SAMPLES_LEN: usize = 64;
/// Seconds that samples, hours and days are kept.
const SAMPLES_KEPT_S: i64 = 7 * 86_400;
const HOURS_KEPT_S: i64 = 365 * 86_400;
const DAYS_KEPT_S: i64 = 3650 * 86_400;
/// Rows of a table with several rows a sample at most.
const ROWS_MAX: i64 = 2_000_000;
/// Rows that are removed at once at most: others want to write as well.
const REMOVED_MAX: i64 = 20_000;
/// Time that somebody else's writing is waited for.
const WAITS: Duration = Duration::from_secs(30);

/// One look at something.
#[derive(Debug, Clone)]
pub(crate) enum Sample {
    /// `mysql_connections`, `myhgm_connections`, `history_mysql_status_variables`.
    Connections(Counts),
    /// `mysql_query_cache`.
    Cache(Counts),
    /// `history_stats_mysql_connection_pool`.
    Pool(Vec<PoolRow>),
    /// `system_cpu`.
    Cpu,
    /// `system_memory`.
    Memory,
    /// No sample: `history_mysql_query_digest` has so many rows at most.
    DigestsMax(i64),
}

/// The thread, from outside.
#[derive(Debug)]
pub(crate) struct History(SyncSender<(i64, Sample)>);

impl History {
    /// Starts the thread. `note` hears once why nothing can be written, and when that is over.
    pub(crate) fn begin(file: PathBuf, note: impl Fn(&str) + Send + 'static) -> io::Result<Self> {
        let (samples, unread) = mpsc::sync_channel(SAMPLES_LEN);
        thread::Builder::new()
            .name("history".into())
            .spawn(move || obey(&file, &unread, note))?;
        Ok(Self(samples))
    }

    /// Has a sample of this second written; whether there was room for it.
    pub(crate) fn write(&self, now_s: i64, sample: Sample) -> bool {
        self.0.try_send((now_s, sample)).is_ok()
    }
}

fn obey(file: &PathBuf, unread: &Receiver<(i64, Sample)>, note: impl Fn(&str)) {
    let mut open: Option<Connection> = None;
    let mut fails = false;
    while let Ok((now_s, sample)) = unread.recv() {
        let written = match &open {
            Some(conn) => write(conn, now_s, &sample),
            None => connect(file).and_then(|conn| write(open.insert(conn), now_s, &sample)),
        };
        match written {
            Ok(()) if fails => note("histories are written again"),
            Ok(()) => {}
            Err(error) => {
                // Somebody may have put another file there.
                open = None;
                if !fails {
                    note(&format!("histories are not written: {error}"));
                }
            }
        }
        fails = open.is_none();
    }
}

fn connect(file: &PathBuf) -> Result<Connection> {
    // The admin port makes it, and its tables.
    let conn = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    conn.busy_timeout(WAITS)?;
    conn.pragma_update(None, "synchronous", "NORMAL")?;
    Ok(conn)
}

/// Whether the mean of an hour says more of a column, or its last value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    Mean,
    Last,
}

/// A table with a row a sample, hours and days.
struct Series {
    table: &'static str,
    columns: Vec<(&'static str, Of, u64)>,
}

/// Counters under the names of their columns.
fn series(table: &'static str, columns: &[(&'static str, Counter)], counts: &Counts) -> Series {
    let column = |&(name, counter): &(&'static str, Counter)| {
        let of = match counter.metric().kind {
            Kind::Gauge => Of::Mean,
            _ => Of::Last,
        };
        (name, of, counts.value(counter))
    };
    Series {
        table,
        columns: columns.iter().map(column).collect(),
    }
}

const CACHE: [(&str, Counter); 8] = [
    ("count_GET", Counter::QueryCacheCountGet),
    ("count_GET_OK", Counter::QueryCacheCountGetOk),
    ("count_SET", Counter::QueryCacheCountSet),
    ("bytes_IN", Counter::QueryCacheBytesIn),
    ("bytes_OUT", Counter::QueryCacheBytesOut),
    ("Entries_Purged", Counter::QueryCachePurged),
    ("Entries_In_Cache", Counter::QueryCacheEntries),
    ("Memory_Bytes", Counter::QueryCacheMemoryBytes),
];

/// Columns that are called as their counters are.
const CONNECTIONS: [Counter; 12] = [
    Counter::ClientConnectionsAborted,
    Counter::ClientConnectionsConnected,
    Counter::ClientConnectionsCreated,
    Counter::ServerConnectionsAborted,
    Counter::ServerConnectionsConnected,
    Counter::ServerConnectionsCreated,
    Counter::ConnPoolGetConnFailure,
    Counter::ConnPoolGetConnImmediate,
    Counter::ConnPoolGetConnSuccess,
    Counter::Questions,
    Counter::SlowQueries,
    Counter::GtidConsistentQueries,
];
const MYHGM: [Counter; 5] = [
    Counter::MyhgmPoolDestroy,
    Counter::MyhgmPoolGet,
    Counter::MyhgmPoolGetOk,
    Counter::MyhgmPoolPush,
    Counter::MyhgmPoolReset,
];

/// Writes a sample as one transaction.
fn write(conn: &Connection, now_s: i64, sample: &Sample) -> Result<()> {
    let change = conn.unchecked_transaction()?;
    match sample {
        Sample::Connections(counts) => {
            let named = |counters: &[Counter]| -> Vec<_> {
                let name = |counter: &Counter| (counter.name(), *counter);
                counters.iter().map(name).collect()
            };
            let connections = named(&CONNECTIONS);
            series("mysql_connections", &connections, counts).add(conn, now_s)?;
            series("myhgm_connections", &named(&MYHGM), counts).add(conn, now_s)?;
            status_variables(conn, now_s, counts)?;
        }
        Sample::Cache(counts) => series("mysql_query_cache", &CACHE, counts).add(conn, now_s)?,
        Sample::Pool(rows) => pool(conn, now_s, rows)?,
        Sample::Cpu => {
            if let Some([user, system]) = process::cpu_ticks() {
                let columns = vec![
                    ("tms_utime", Of::Last, user),
                    ("tms_stime", Of::Last, system),
                ];
                let table = "system_cpu";
                Series { table, columns }.add(conn, now_s)?;
            }
        }
        Sample::Memory => {
            if let Some(memory) = process::memory() {
                let kinds = memory.kinds().map(|(name, bytes)| (name, Of::Mean, bytes));
                let columns = [("allocated", Of::Mean, memory.allocated)]
                    .into_iter()
                    .chain(kinds);
                let (table, columns) = ("system_memory", columns.collect());
                Series { table, columns }.add(conn, now_s)?;
            }
        }
        Sample::DigestsMax(rows_max) => shorten(conn, "history_mysql_query_digest", *rows_max)?,
    }
    change.commit()
}

impl Series {
    /// Adds the row; hours and days that are over get theirs, and what is old goes.
    fn add(&self, conn: &Connection, now_s: i64) -> Result<()> {
        let names: Vec<_> = self.columns.iter().map(|(name, ..)| *name).collect();
        let (table, names) = (self.table, names.join(", "));
        let marks = vec!["?"; self.columns.len() + 1].join(", ");
        let values = self.columns.iter().map(|(_, _, value)| signed(*value));
        conn.execute(
            &format!("INSERT OR REPLACE INTO {table} (timestamp, {names}) VALUES ({marks})"),
            params_from_iter([now_s].into_iter().chain(values)),
        )?;
        let sums = self.columns.iter().map(|(name, of, _)| match of {
            Of::Mean => format!("CAST(avg({name}) AS INT)"),
            Of::Last => format!("max({name})"),
        });
        let sums = sums.collect::<Vec<_>>().join(", ");
        let (hours, days) = (format!("{table}_hour"), format!("{table}_day"));
        for (from, to, seconds) in [(table, &*hours, 3600), (&*hours, &*days, 86_400)] {
            conn.execute(
                &format!(
                    "INSERT OR REPLACE INTO {to} (timestamp, {names}) \
                     SELECT timestamp / ?1 * ?1, {sums} FROM {from} \
                     WHERE timestamp >= (SELECT ifnull(max(timestamp) + ?1, 0) FROM {to}) \
                     AND timestamp < ?2 / ?1 * ?1 GROUP BY timestamp / ?1"
                ),
                (seconds, now_s),
            )?;
        }
        for (table, kept_s) in [
            (table, SAMPLES_KEPT_S),
            (&hours, HOURS_KEPT_S),
            (&days, DAYS_KEPT_S),
        ] {
            let sql = format!("DELETE FROM {table} WHERE timestamp < ?1");
            conn.execute(&sql, [now_s - kept_s])?;
        }
        Ok(())
    }
}

fn status_variables(conn: &Connection, now_s: i64, counts: &Counts) -> Result<()> {
    let known =
        "INSERT OR IGNORE INTO history_mysql_status_variables_lookup (variable_name) VALUES (?1)";
    let value = "INSERT OR REPLACE INTO history_mysql_status_variables \
                 SELECT ?1, variable_id, ?2 FROM history_mysql_status_variables_lookup WHERE variable_name = ?3";
    let (mut known, mut insert) = (conn.prepare_cached(known)?, conn.prepare_cached(value)?);
    for counter in Counter::ALL {
        known.execute([counter.name()])?;
        let value = counts.value(*counter).to_string();
        insert.execute((now_s, value, counter.name()))?;
    }
    forget(conn, "history_mysql_status_variables", now_s)
}

fn pool(conn: &Connection, now_s: i64, rows: &[PoolRow]) -> Result<()> {
    let table = "history_stats_mysql_connection_pool";
    let marks = vec!["?"; PoolRow::WIDTH + 1].join(", ");
    let sql = format!("INSERT OR REPLACE INTO {table} VALUES ({marks})");
    let mut insert = conn.prepare_cached(&sql)?;
    for row in rows {
        let mut cells = Vec::with_capacity(PoolRow::WIDTH);
        row.cells(&mut cells);
        let mut values: Vec<Box<dyn ToSql + '_>> = vec![Box::new(now_s)];
        values.extend(cells.into_iter().map(|cell| -> Box<dyn ToSql + '_> {
            match cell {
                Cell::Null => Box::new(None::<i64>),
                Cell::Number(number) => Box::new(number),
                Cell::Text(text) => Box::new(text),
                Cell::Made(text) => Box::new(text),
            }
        }));
        insert.execute(params_from_iter(values))?;
    }
    forget(conn, table, now_s)
}

/// Removes what is old, and what is too much, of a table with several rows a sample.
fn forget(conn: &Connection, table: &str, now_s: i64) -> Result<()> {
    let sql = format!(
        "DELETE FROM {table} WHERE rowid IN (SELECT rowid FROM {table} WHERE timestamp < ?1 LIMIT {REMOVED_MAX})"
    );
    conn.execute(&sql, [now_s - SAMPLES_KEPT_S])?;
    shorten(conn, table, ROWS_MAX)
}

/// Removes the rows that came first, if there are more than so many; 0 is no limit.
fn shorten(conn: &Connection, table: &str, rows_max: i64) -> Result<()> {
    if rows_max == 0 {
        return Ok(());
    }
    let sql = format!(
        "DELETE FROM {table} WHERE rowid <= (SELECT min((SELECT max(rowid) FROM {table}) - ?1, \
         (SELECT min(rowid) FROM {table}) + {REMOVED_MAX}))"
    );
    conn.execute(&sql, [rows_max]).map(drop)
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use admin::engine::{Engine, HISTORY_FILE, View};
    use bridge::ServerState;

    /// The tables as the admin port makes them, in a folder of the test's own.
    fn with(name: &str, check: impl FnOnce(&Connection)) {
        let folder = std::env::temp_dir().join(format!("millrace-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let engine = Engine::open(Some(&folder), View::Admin).unwrap();
        check(&connect(&folder.join(HISTORY_FILE)).unwrap());
        drop(engine);
        std::fs::remove_dir_all(folder).unwrap();
    }

    fn seen(conn: &Connection, sql: &str) -> Vec<String> {
        let mut rows = conn.prepare(sql).unwrap();
        let all = rows.query_map([], |row| row.get(0)).unwrap();
        all.map(Result::unwrap).collect()
    }

    #[test]
    fn samples_become_hours_and_days_and_old_ones_go() {
        with("samples", |conn| {
            let day = 1_000 * 86_400;
            let sample = |at_s: i64, get: u64, entries: u64| {
                let mut counts = Counts::zero();
                counts.set(Counter::QueryCacheCountGet, get);
                counts.set(Counter::QueryCacheEntries, entries);
                write(conn, day + at_s, &Sample::Cache(counts)).unwrap();
            };
            let seen = |table: &str| {
                let sql = format!(
                    "SELECT (timestamp - {day}) || ' ' || count_GET || ' ' || Entries_In_Cache FROM {table} ORDER BY timestamp"
                );
                seen(conn, &sql)
            };
            for (at_s, get, entries) in [(0, 1, 10), (60, 2, 30), (3600, 5, 7), (7200 + 5, 9, 9)] {
                sample(at_s, get, entries);
            }
            assert_eq!(
                seen("mysql_query_cache"),
                ["0 1 10", "60 2 30", "3600 5 7", "7205 9 9"]
            );
            assert_eq!(
                seen("mysql_query_cache_hour"),
                ["0 2 20", "3600 5 7"],
                "the last is not over"
            );
            assert!(seen("mysql_query_cache_day").is_empty());
            sample(86_400 + 60, 11, 3);
            assert_eq!(seen("mysql_query_cache_day"), ["0 9 12"]);
            sample(7 * 86_400 + 3600, 20, 1);
            assert_eq!(
                seen("mysql_query_cache"),
                ["3600 5 7", "7205 9 9", "86460 11 3", "608400 20 1"]
            );
            sample(400 * 86_400, 30, 1);
            assert_eq!(seen("mysql_query_cache"), ["34560000 30 1"]);
            assert_eq!(seen("mysql_query_cache_hour").len(), 0);
            assert_eq!(
                seen("mysql_query_cache_day"),
                ["0 9 12", "86400 11 3", "604800 20 1"]
            );
        });
    }

    #[test]
    fn every_table_gets_its_numbers() {
        with("every", |conn| {
            let mut counts = Counts::zero();
            counts.set(Counter::Questions, 7);
            counts.set(Counter::MyhgmPoolGet, 8);
            write(conn, 60, &Sample::Connections(counts)).unwrap();
            let row = PoolRow {
                hostgroup: 3,
                host: "db".into(),
                port: 3306,
                state: ServerState::Shunned,
                used: 1,
                free: 2,
                ok: 3,
                err: 4,
                used_max: 5,
                queries: 6,
                queries_gtid_sync: 0,
                bytes_sent: 8,
                bytes_received: 9,
                latency_us: 10,
            };
            write(conn, 60, &Sample::Pool(vec![row])).unwrap();
            write(conn, 60, &Sample::Cpu).unwrap();
            write(conn, 60, &Sample::Memory).unwrap();
            let one = |sql: &str| seen(conn, sql).concat();
            assert_eq!(
                one("SELECT CAST(Questions AS TEXT) FROM mysql_connections"),
                "7"
            );
            assert_eq!(
                one("SELECT CAST(MyHGM_myconnpoll_get AS TEXT) FROM myhgm_connections"),
                "8"
            );
            let named = "SELECT variable_value FROM history_mysql_status_variables \
                         JOIN history_mysql_status_variables_lookup USING (variable_id) WHERE variable_name = 'Questions'";
            assert_eq!(one(named), "7");
            let pool = "SELECT hostgroup || srv_host || status || Queries || Latency_us FROM history_stats_mysql_connection_pool";
            assert_eq!(one(pool), "3dbSHUNNED610");
            assert_eq!(one("SELECT CAST(count(*) AS TEXT) FROM system_cpu"), "1");
            assert_eq!(
                one(
                    "SELECT CAST(count(*) AS TEXT) FROM system_memory WHERE allocated > 0 AND resident >= allocated"
                ),
                "1"
            );
        });
    }

    #[test]
    fn a_table_has_no_more_rows_than_it_may() {
        with("rows", |conn| {
            for at_s in 1..=5 {
                let sql = "INSERT INTO history_mysql_query_digest VALUES (?1, 0, '', '', '', '', '', 1, 1, 1, 1, 1, 1, 0, 0)";
                conn.execute(sql, [at_s]).unwrap();
            }
            write(conn, 60, &Sample::DigestsMax(0)).unwrap();
            write(conn, 60, &Sample::DigestsMax(3)).unwrap();
            let left = "SELECT CAST(dump_time AS TEXT) FROM history_mysql_query_digest";
            assert_eq!(seen(conn, left), ["3", "4", "5"]);
        });
    }
}
