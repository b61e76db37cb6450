//! What the firewall adds to a decision: `cargo run --release -p plan --example firewall`. It
//! reports; nothing fails.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "a measurement reads the clock and prints"
)]

use config::{Firewall, FirewallRuleRow, FirewallUserRow, Snapshot, UserRow, Users, Variables};
use plan::{Digest, Guarded, SessionFacts, SplitFacts, Statement, plan};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

fn main() {
    let conditions = " AND c0l_x = 'some text' AND b IN (1, 2, 3)".repeat(45);
    for sql in [
        "SELECT c FROM sbtest1 WHERE id=5029".to_owned(),
        format!("SELECT c FROM sbtest1 WHERE id=5029{conditions}"),
    ] {
        for settings in [&[][..], &["mysql-firewall_whitelist_enabled"]] {
            let (variables, _) =
                Variables::build(settings.iter().map(|name| (*name, "true"))).expect("valid");
            println!(
                "{} bytes, {settings:?}: {} ns",
                sql.len(),
                decision(&sql, variables)
            );
        }
    }
}

/// Nanoseconds of one decision about a statement that a rule names: the best of five rounds.
fn decision(sql: &str, variables: Variables) -> u128 {
    let users = Users::build(
        [UserRow {
            username: "u".into(),
            ..UserRow::default()
        }],
        &variables,
    )
    .expect("valid");
    let user = Arc::clone(users.frontend("u").expect("just made"));
    let mut text = Vec::new();
    let hash = sql::digest(sql.as_bytes(), &variables.digest_options(), &mut text);
    let named = sql::shape(sql.as_bytes(), sql::Lexing::Escapes, false, &mut Vec::new()).digest;
    let row = FirewallUserRow {
        active: 1,
        username: "u".into(),
        mode: "PROTECTING".into(),
        ..FirewallUserRow::default()
    };
    let rule = FirewallRuleRow {
        active: 1,
        username: "u".into(),
        schemaname: "s".into(),
        digest: format!("0x{named:X}"),
        ..FirewallRuleRow::default()
    };
    let firewall = Arc::new(Firewall::build([row], [rule], []).expect("valid"));
    let snapshot = Snapshot {
        firewall,
        variables: Arc::new(variables),
        ..Snapshot::default()
    };
    let facts = SessionFacts {
        user: &user,
        schema: "s",
        client_addr: "10.0.0.1",
        proxy_addr: "127.0.0.1",
        proxy_port: 6033,
        in_transaction: None,
        begun: false,
        branches: false,
        locked: None,
        next_flag_in: None,
        autocommit: true,
        split: SplitFacts::NONE,
    };
    let digest = Some(Digest { hash, text: &text });
    let statement = Statement {
        text: sql.as_bytes(),
        digest,
        comment: None,
        prepared: None,
        parameters: None,
        prepares: false,
        guarded: Guarded::Text,
        routed: plan::Routed::default(),
        numbers: shards::Numbering::Whichever,
        making: shards::Making::Whichever,
        columns: None,
        looked: None,
        answered: None,
    };
    assert!(
        plan(&snapshot, &facts, &statement, 0).answer.is_none(),
        "a rule names it"
    );
    let round = || {
        let rounds = 50_000;
        let start = Instant::now();
        for random in 0..rounds {
            black_box(plan(
                black_box(&snapshot),
                black_box(&facts),
                black_box(&statement),
                random,
            ));
        }
        start.elapsed().as_nanos() / u128::from(rounds)
    };
    (0..5).map(|_| round()).min().unwrap_or_default()
}
