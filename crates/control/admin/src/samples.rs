//! What is sampled from time to time and kept in `stats_history`: samples for a week, hours for a
//! year, days for good.

use crate::engine::SqlError;
use bridge::{Counter, Counts};
use rusqlite::Connection;

/// Seconds that samples are kept, and hours.
const SAMPLES_KEPT_S: i64 = 7 * 86_400;
const HOURS_KEPT_S: i64 = 365 * 86_400;

/// A row of `mysql_query_cache` as of now, in seconds since 1970; hours and days that are over get
/// theirs. Counters are told as they were at the end, what was there as it was on average.
pub(crate) fn query_cache(conn: &Connection, now_s: i64, counts: &Counts) -> Result<(), SqlError> {
    let numbers = [
        Counter::QueryCacheCountGet,
        Counter::QueryCacheCountGetOk,
        Counter::QueryCacheCountSet,
        Counter::QueryCacheBytesIn,
        Counter::QueryCacheBytesOut,
        Counter::QueryCachePurged,
        Counter::QueryCacheEntries,
        Counter::QueryCacheMemoryBytes,
    ];
    let [
        get,
        get_ok,
        set,
        bytes_in,
        bytes_out,
        purged,
        entries,
        memory,
    ] = numbers.map(|counter| i64::try_from(counts.value(counter)).unwrap_or(i64::MAX));
    conn.execute(
        "INSERT OR REPLACE INTO stats_history.mysql_query_cache VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        (now_s, get, get_ok, set, bytes_in, bytes_out, purged, entries, memory),
    )?;
    for (from, to, seconds) in [
        ("mysql_query_cache", "mysql_query_cache_hour", 3600),
        ("mysql_query_cache_hour", "mysql_query_cache_day", 86_400),
    ] {
        conn.execute(
            &format!(
                "INSERT OR REPLACE INTO stats_history.{to} SELECT timestamp / ?1 * ?1, max(count_GET), max(count_GET_OK), max(count_SET), \
                 max(bytes_IN), max(bytes_OUT), max(Entries_Purged), CAST(avg(Entries_In_Cache) AS INT), CAST(avg(Memory_Bytes) AS INT) \
                 FROM stats_history.{from} WHERE timestamp >= (SELECT ifnull(max(timestamp) + ?1, 0) FROM stats_history.{to}) \
                 AND timestamp < ?2 / ?1 * ?1 GROUP BY timestamp / ?1"
            ),
            (seconds, now_s),
        )?;
    }
    conn.execute(
        "DELETE FROM stats_history.mysql_query_cache WHERE timestamp < ?1",
        [now_s - SAMPLES_KEPT_S],
    )?;
    conn.execute(
        "DELETE FROM stats_history.mysql_query_cache_hour WHERE timestamp < ?1",
        [now_s - HOURS_KEPT_S],
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Engine, Reply, View};

    #[test]
    fn samples_become_hours_and_days_and_old_ones_go() {
        let engine = Engine::open(None, View::Admin).unwrap();
        let day = 1_000 * 86_400;
        let sample = |at_s: i64, get: u64, entries: u64| {
            let mut counts = Counts::zero();
            counts.set(Counter::QueryCacheCountGet, get);
            counts.set(Counter::QueryCacheEntries, entries);
            engine
                .transaction(|conn| query_cache(conn, day + at_s, &counts))
                .unwrap();
        };
        let seen = |table: &str| {
            let sql = format!(
                "SELECT (timestamp - {day}) || ' ' || count_GET || ' ' || Entries_In_Cache FROM {table} ORDER BY timestamp"
            );
            let Reply::Rows(grid) = engine.run(&sql, &[]).unwrap() else {
                panic!()
            };
            grid.texts().concat()
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
        assert_eq!(
            seen("mysql_query_cache_hour"),
            ["0 2 20", "3600 5 7", "7200 9 9"]
        );
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
    }
}
