//! What decisions and configurations cost: `cargo run --release -p plan --example cost`. It
//! reports; nothing fails.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "a measurement reads the clock and prints"
)]

use config::{FastRoutingRow, RuleRow, Rules, Snapshot, UserRow, Users, Variables};
use plan::{Digest, SessionFacts, Statement, plan};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

fn main() {
    let variables = Variables::default();
    let rule = |rule_id, match_digest: &str, destination_hostgroup| RuleRow {
        rule_id,
        active: 1,
        match_digest: Some(match_digest.into()),
        destination_hostgroup: Some(destination_hostgroup),
        apply: 1,
        ..RuleRow::default()
    };
    let split = [rule(1, "^SELECT.*FOR UPDATE$", 0), rule(2, "^SELECT", 1)];
    let engine = [
        rule(1, "^(SELECT).*FOR UPDATE$", 0),
        rule(2, "^(SELECT)", 1),
    ];
    decisions(
        "two rules, shapes",
        Rules::build(split, [], &variables).expect("valid"),
        "s",
    );
    decisions(
        "two rules, regex",
        Rules::build(engine, [], &variables).expect("valid"),
        "s",
    );
    let no_rules: [RuleRow; 0] = [];
    decisions(
        "no rules",
        Rules::build(no_rules.clone(), [], &variables).expect("valid"),
        "s",
    );

    let legacy = (0..20_000).map(|n| RuleRow {
        username: Some("sbtest".into()),
        schemaname: Some(format!("shard_{n}")),
        match_digest: None,
        ..rule(n, "", 1)
    });
    let rules = timed("build 20,000 rules", || {
        Rules::build(legacy, [], &variables).expect("valid")
    });
    decisions("20,000 rules, the first", rules.for_core(&|| ()), "shard_0");
    decisions("20,000 rules, the last", rules, "shard_19999");

    let rows: Vec<_> = (0..200_000)
        .map(|n| FastRoutingRow {
            username: "sbtest".into(),
            schemaname: format!("shard_{}", n % 50_000),
            flagIN: n / 50_000,
            destination_hostgroup: n % 7,
            comment: String::new(),
        })
        .collect();
    let rules = timed("build 200,000 rows of fast routing", || {
        Rules::build(no_rules, rows, &variables).expect("valid")
    });
    println!("  of {:.1} MB", rules.fast().bytes() as f64 / 1e6);
    let schemas: Vec<_> = (0..50_000)
        .map(|n| format!("shard_{}", n * 7919 % 50_000))
        .collect();
    let start = Instant::now();
    for schema in &schemas {
        black_box(rules.fast().hostgroup("sbtest", schema, 0));
    }
    println!(
        "fast routing, every schema once: {} ns",
        start.elapsed().as_nanos() / schemas.len() as u128
    );
    decisions("fast routing, one schema", rules, "shard_777");

    let rows: Vec<_> = (0..1_000_000)
        .map(|n| UserRow {
            username: format!("user{n}"),
            password: Some(format!("pw{n}")),
            ..UserRow::default()
        })
        .collect();
    let before = resident();
    let users = timed("build 1,000,000 users", || {
        Users::build(rows, &variables).expect("valid")
    });
    println!(
        "  {} users, resident {:.0} MB, {:.0} MB with their rows",
        users.len(),
        resident(),
        before
    );
}

fn timed<T>(what: &str, make: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let made = make();
    println!("{what}: {} ms", start.elapsed().as_millis());
    made
}

/// Megabytes.
fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: f64 = status
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse().ok())
        .unwrap_or_default();
    pages * 4096.0 / 1e6
}

fn decisions(what: &str, rules: Rules, schema: &str) {
    let variables = Arc::new(Variables::default());
    let user = UserRow {
        username: "sbtest".into(),
        ..UserRow::default()
    };
    let users = Users::build([user], &variables).expect("valid");
    let user = Arc::clone(users.frontend("sbtest").expect("just made"));
    let snapshot = Snapshot {
        rules: Arc::new(rules),
        variables,
        ..Snapshot::default()
    };
    let facts = SessionFacts {
        user: &user,
        schema,
        client_addr: "10.0.0.1",
        proxy_addr: "127.0.0.1",
        proxy_port: 6033,
        in_transaction: None,
        begun: false,
        branches: false,
        locked: None,
        next_flag_in: None,
        autocommit: true,
        split: plan::SplitFacts::NONE,
    };
    let digest = Digest {
        hash: 0xBF00_1A0C_1378_1C1D,
        text: b"SELECT c FROM sbtest1 WHERE id=?",
    };
    let statement = Statement {
        text: b"SELECT c FROM sbtest1 WHERE id=5029",
        digest: Some(digest),
        comment: None,
        prepared: None,
        parameters: None,
        prepares: false,
        guarded: plan::Guarded::Text,
        routed: plan::Routed::default(),
        numbers: shards::Numbering::Whichever,
        making: shards::Making::Whichever,
        columns: None,
        looked: None,
        answered: None,
    };
    let rounds = 2_000_000_u64;
    let start = Instant::now();
    for random in 0..rounds {
        black_box(plan(
            black_box(&snapshot),
            black_box(&facts),
            black_box(&statement),
            random,
        ));
    }
    println!(
        "{what}: {} ns",
        start.elapsed().as_nanos() / u128::from(rounds)
    );
}
