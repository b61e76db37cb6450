//! Totals that one process tells and another hears.

use super::*;
use serde_json::json;

fn pool(host: &str, queries: u64, used: u64) -> PoolRow {
    PoolRow {
        hostgroup: 1,
        host: host.into(),
        port: 3306,
        state: ServerState::Shunned,
        used,
        free: used,
        ok: queries,
        err: 0,
        used_max: used,
        queries,
        queries_gtid_sync: 0,
        bytes_sent: queries,
        bytes_received: queries,
        latency_us: 5,
    }
}

fn digest(text: &str, times: &[u64]) -> DigestRow {
    let mut latency = Latency::default();
    times.iter().for_each(|us| latency.count(*us));
    DigestRow {
        hostgroup: 1,
        schema: "s".into(),
        user: "u".into(),
        client_address: "".into(),
        digest: 7,
        text: text.into(),
        shown: Some(true),
        guarded: u64::MAX,
        alike: false,
        count: times.len() as u64,
        first_seen: 10,
        last_seen: 20,
        sum_time_us: times.iter().sum(),
        min_time_us: 1,
        max_time_us: 900,
        rows_affected: 0,
        rows_sent: times.len() as u64,
        latency,
    }
}

/// Totals as they come in the other process.
fn tell(told: &Told, report: Report) {
    let totals = Totals {
        reports: vec![report],
        monitor: None,
    };
    for word in Counted::of(totals) {
        let words = serde_json::to_vec(&word).unwrap();
        told.hear(serde_json::from_slice(&words).unwrap());
    }
}

fn pool_of(told: &Told, reset: bool) -> Vec<(String, u64)> {
    let Some(Report::Pool(rows)) = told.report(Ask::Pool, reset) else {
        panic!("servers")
    };
    let rows = rows.into_iter();
    rows.map(|row| (row.host.to_string(), row.queries))
        .collect()
}

#[test]
fn what_is_told_last_is_what_counts_and_moments_are_not_told() {
    let told = Told::default();
    told.expect();
    assert!(!told.is_known(Ask::Pool) && told.is_known(Ask::Processes));
    tell(&told, Report::Pool(vec![pool("a", 5, 2), pool("b", 1, 0)]));
    tell(&told, Report::Pool(vec![pool("a", 8, 2)]));
    assert!(told.is_known(Ask::Pool) && !told.is_known(Ask::Global));
    let mut now = Report::Pool(vec![pool("a", 100, 1)]);
    now.and_before(told.report(Ask::Pool, false).unwrap());
    let Report::Pool(rows) = now else {
        panic!("servers")
    };
    let row = &rows[0];
    assert_eq!(
        (row.queries, row.used, row.free, row.latency_us),
        (108, 1, 1, 5)
    );
    told.ends();
    assert!(told.is_known(Ask::Global), "nothing more comes");
}

#[test]
fn what_somebody_got_who_counts_anew_is_not_told_again() {
    let told = Told::default();
    told.expect();
    tell(&told, Report::Pool(vec![pool("a", 5, 0)]));
    assert_eq!(pool_of(&told, true), [("a".to_owned(), 5)]);
    assert_eq!(pool_of(&told, false), [("a".to_owned(), 0)]);
    tell(&told, Report::Pool(vec![pool("a", 7, 0)]));
    assert_eq!(pool_of(&told, false), [("a".to_owned(), 2)]);
    told.ends();
    assert_eq!(pool_of(&told, true), [("a".to_owned(), 2)]);
    assert!(told.report(Ask::Pool, true).is_none());
}

#[test]
fn a_digest_that_was_taken_leaves_only_what_came_behind_it() {
    let told = Told::default();
    let rows = |told: &Told, reset| match told.report(Ask::Digests, reset) {
        Some(Report::Digests(rows)) => rows,
        _ => panic!("digests"),
    };
    tell(&told, Report::Digests(vec![digest("SELECT ?", &[1, 900])]));
    assert_eq!(rows(&told, false), [digest("SELECT ?", &[1, 900])]);
    assert!(told.report(Ask::Digests, true).is_some());
    // It would be gone if the other process had ended.
    told.expect();
    tell(&told, Report::Digests(vec![digest("SELECT ?", &[1, 900])]));
    assert_eq!(rows(&told, true), [digest("SELECT ?", &[1, 900])]);
    assert_eq!(rows(&told, false), []);
    tell(
        &told,
        Report::Digests(vec![digest("SELECT ?", &[1, 900, 70])]),
    );
    let left = DigestRow {
        min_time_us: 1,
        max_time_us: 900,
        ..digest("SELECT ?", &[70])
    };
    assert_eq!(rows(&told, false), [left]);
}

#[test]
fn many_rows_come_in_parts_and_count_when_all_are_there() {
    let told = Told::default();
    told.expect();
    let many = |n: u64| (0..n).map(|n| pool(&n.to_string(), n, 0)).collect();
    let words = Counted::of(Totals {
        reports: vec![Report::Pool(many(2500))],
        monitor: None,
    });
    assert_eq!(words.len(), 3);
    for (nth, word) in words.into_iter().enumerate() {
        assert!(!told.is_known(Ask::Pool), "{nth}");
        told.hear(word);
    }
    assert_eq!(pool_of(&told, false).len(), 2500);
    // Of nothing there is a word, too.
    tell(&told, Report::Pool(Vec::new()));
    assert_eq!(pool_of(&told, false), []);
}

/// A newer one says more, an older one less, and one of neither kind nonsense.
#[test]
fn another_version_is_understood_as_far_as_it_can_be() {
    let told = Told::default();
    told.expect();
    let hear = |words: Value| told.hear(serde_json::from_value(words).unwrap());
    hear(json!({"of": "moods", "rows": [{"good": 1}], "loud": true}));
    hear(json!({"of": "pool", "rows": [{"host": "a", "queries": 3, "mood": "good"}]}));
    assert_eq!(pool_of(&told, false), [("a".to_owned(), 3)]);
    hear(json!({"of": "pool", "rows": [{"host": 7}]}));
    hear(json!({"of": "pool", "rows": {"host": "a"}}));
    hear(json!({"of": "pool"}));
    assert_eq!(pool_of(&told, false), [("a".to_owned(), 3)]);
    hear(json!({"of": "global", "rows": {
        "Questions": 5, "Sighs": 9, "Client_Connections_connected": 8, "Com_commit": "many",
    }}));
    let Some(Report::Global(counts)) = told.report(Ask::Global, true) else {
        panic!("counters")
    };
    let values = [
        Counter::Questions,
        Counter::ClientConnectionsConnected,
        Counter::ComCommit,
    ];
    assert_eq!(values.map(|one| counts.value(one)), [5, 0, 0]);
    hear(
        json!({"of": "monitor", "rows": {"checks": {"mysql_server_ping_log": [4, 1], "mood_log": [1, 1]}}}),
    );
    let done = told.monitor();
    assert_eq!(done.checks[Check::Ping as usize], [4, 1]);
    hear(json!({"of": "monitor", "rows": 5}));
    assert_eq!(told.monitor(), done);
}

#[test]
fn times_and_errors_come_as_they_were() {
    let told = Told::default();
    let mut latency = Latency::default();
    [3, 900, 1 << 40]
        .into_iter()
        .for_each(|us| latency.count(us));
    let command = CommandRow {
        command: "SELECT".into(),
        total_time_us: 5,
        count: 3,
        counts: [1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1],
        latency: latency.clone(),
        max_us: 9,
    };
    tell(&told, Report::Commands(vec![command.clone()]));
    assert!(
        matches!(told.report(Ask::Commands, false), Some(Report::Commands(rows)) if rows == [command])
    );
    let group = HostgroupRow {
        hostgroup: -1,
        count: 3,
        latency,
        max_us: 9,
    };
    tell(&told, Report::Hostgroups(vec![group.clone()]));
    assert!(
        matches!(told.report(Ask::Hostgroups, false), Some(Report::Hostgroups(rows)) if rows == [group])
    );
    let error = ErrorRow {
        hostgroup: 1,
        host: "a".into(),
        port: 3306,
        user: "u".into(),
        client_address: "c".into(),
        schema: "s".into(),
        errno: 1062,
        count: 2,
        first_seen: 1,
        last_seen: 2,
        last_error: "Duplicate".into(),
    };
    tell(&told, Report::Errors(vec![error.clone()]));
    assert!(
        matches!(told.report(Ask::Errors, false), Some(Report::Errors(rows)) if rows == [error])
    );
}
