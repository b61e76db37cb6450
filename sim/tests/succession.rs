//! Clusters whose writer is replaced, by plan or because it dies or hangs; and what their oracles see
//! when something that keeps them right is left out.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use sim::succession::{Cluster, run};
use std::collections::BTreeMap;

const SEEDS: u64 = 24;
/// How often, at least.
const HITS: [(&str, u64); 12] = [
    ("a planned succession", 10),
    ("a writer's death", 10),
    ("a writer that hangs", 5),
    ("a restart", 5),
    ("two writers", 2),
    ("a tail lost", 1),
    ("a statement that waited for a writer", 5),
    ("a careless succession", 1),
    ("a transaction replayed", 5),
    ("a commit found to be done", 1),
    ("a read where its session's writes are", 1000),
    ("an own line read of a replica", 1000),
];

#[test]
fn nothing_that_was_acknowledged_is_lost_and_everybody_sees_his_own() {
    let mut hits: BTreeMap<&str, u64> = BTreeMap::new();
    let mut failing = Vec::new();
    for seed in 500..500 + SEEDS {
        let verdict = run(&Cluster::of(seed));
        for (what, times) in verdict.hits {
            *hits.entry(what).or_default() += times;
        }
        if let Some(violation) = verdict.violations.first() {
            failing.push(format!("{seed}: {violation}"));
        }
    }
    println!("{hits:?}");
    assert!(
        failing.is_empty(),
        "cargo run -p sim -- --succession SEED\n{}",
        failing.join("\n")
    );
    for (what, least) in HITS {
        let times = hits.get(what).copied().unwrap_or_default();
        assert!(times >= least, "{what}: {times} times");
    }
}

/// Plays clusters until the oracles say this.
fn assert_said(cluster: impl Fn(u64) -> Cluster, words: &str) {
    let mut told = (0..60).flat_map(|seed| run(&cluster(seed)).violations);
    assert!(told.any(|line| line.contains(words)), "nobody says {words}");
}

#[test]
fn reads_that_do_not_wait_for_their_session_s_writes_are_seen() {
    let cluster = |seed| Cluster {
        settings: r#"{"read_hostgroup":1,"read_after_write_ms":0}"#,
        lag_us: 200_000,
        ..Cluster::of(seed)
    };
    assert_said(cluster, "is 0 times on");
}

#[test]
fn a_predecessor_that_gets_writes_is_seen() {
    let cluster = |seed| Cluster {
        settings: r#"{"read_hostgroup":1,"read_after_write":"gtid","writers":"all"}"#,
        is_calm: false,
        ..Cluster::of(seed)
    };
    assert_said(cluster, "which came back writable");
    assert_said(cluster, "its client was told Acknowledged");
}
