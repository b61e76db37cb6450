//! The tables of the documents that Millrace grew from, measured anew: decisions by number of rules
//! and of fast routing rows, and their memory. `cargo run --release -p plan --example seeds
//! [complex]`. It reports; nothing fails.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "a measurement reads the clock and prints"
)]

use config::{FastRoutingRow, Memo, RuleRow, Rules, Snapshot, User, UserRow, Users, Variables};
use plan::{Digest, SessionFacts, Statement, plan_with};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

fn main() {
    // Only the kinds of rules whose name has this, for a profile of one.
    let wanted = std::env::args().nth(1).unwrap_or_default();
    println!(
        "A decision, in nanoseconds; best of 5 rounds, one core, digest given. ProxySQL's figures are of its authors (A36, A37, A41, A46, A48).\n"
    );
    println!(
        "| rules | kind | first | last | no rule fits | build ms | for a core ms | MB with rows | MB of the index | ProxySQL |"
    );
    println!("|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|");
    for (count, theirs) in [
        (10, "~1,000"),
        (100, "2,000"),
        (500, "6,000"),
        (20_000, "256,000 (890 to 581,100)"),
    ] {
        for kind in [
            Kind::Schemas,
            Kind::Digests,
            Kind::MatchDigest,
            Kind::MatchPattern,
            Kind::Complex,
            Kind::LookAhead,
            Kind::Mixed,
        ] {
            if !kind.name().contains(&wanted) {
                continue;
            }
            let theirs = if kind == Kind::Schemas { theirs } else { "" };
            rules(count, kind, theirs);
        }
    }
    if !wanted.is_empty() {
        return;
    }
    println!(
        "\n| rows of fast routing | lookup | decision | every schema once | build ms | MB | ProxySQL |"
    );
    println!("|--:|--:|--:|--:|--:|--:|--:|");
    for (count, theirs) in [
        (10, "1,700"),
        (100, "1,700"),
        (1000, "1,800"),
        (10_000, "1,900"),
        (20_000, "2,200"),
        (50_000, "2,400"),
        (200_000, "2,400; 280 MB with 4 threads"),
    ] {
        fast_routing(count, theirs);
    }
}

/// Conditions that the rules ask for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// User and schema: the script of the documents.
    Schemas,
    /// A digest each.
    Digests,
    /// An expression over the digest.
    MatchDigest,
    /// An expression over the text.
    MatchPattern,
    /// An expression over the text, with classes, alternatives and counted repetitions.
    Complex,
    /// A schema, and more in twenty combinations.
    Mixed,
    /// An expression that only PCRE can run; as many of them share a beginning as there are tables
    /// with one first digit.
    LookAhead,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Schemas => "username, schemaname",
            Self::Digests => "digest",
            Self::MatchDigest => "match_digest",
            Self::MatchPattern => "match_pattern",
            Self::Complex => "match_pattern, complex",
            Self::LookAhead => "match_digest with look-ahead",
            Self::Mixed => "names in 20 combinations",
        }
    }

    fn row(self, n: i64) -> RuleRow {
        let row = RuleRow {
            rule_id: n,
            active: 1,
            re_modifiers: Some("CASELESS".into()),
            destination_hostgroup: Some(1),
            apply: 1,
            ..RuleRow::default()
        };
        match self {
            Self::Schemas => RuleRow {
                username: Some("sbtest".into()),
                schemaname: Some(format!("shard_{n}")),
                ..row
            },
            Self::Digests => RuleRow {
                digest: Some(format!("0x{:X}", hash(n))),
                ..row
            },
            Self::MatchDigest => RuleRow {
                match_digest: Some(format!("^SELECT .* FROM table_{n} WHERE")),
                ..row
            },
            Self::MatchPattern => RuleRow {
                match_pattern: Some(format!("FROM table_{n} WHERE id = [0-9]+$")),
                ..row
            },
            Self::Complex => {
                let what = r"where\s+[a-z_]{1,20}\s*=\s*'?\d+'?";
                let text = format!(
                    r"^\s*(select|update|delete)\s+.*\b(from|join|into)\s+`?table_{n}`?\s+{what}"
                );
                RuleRow {
                    match_pattern: Some(text),
                    ..row
                }
            }
            Self::Mixed => {
                let named =
                    |bit: i64, text: &str| ((n % 20 + 1) & bit != 0).then(|| text.to_owned());
                RuleRow {
                    schemaname: Some(format!("shard_{n}")),
                    username: named(1, "sbtest"),
                    digest: named(2, "").map(|_| format!("0x{:X}", hash(n))),
                    client_addr: named(4, "10.0.%"),
                    proxy_addr: named(8, "127.0.0.1"),
                    proxy_port: named(16, "").map(|_| 6033),
                    ..row
                }
            }
            Self::LookAhead => RuleRow {
                match_digest: Some(format!("^SELECT c FROM table_{n} (?!.*FOR UPDATE)")),
                ..row
            },
        }
    }
}

const fn hash(n: i64) -> u64 {
    (n as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

fn rules(count: i64, kind: Kind, theirs: &str) {
    let before = resident();
    let start = Instant::now();
    let built =
        Rules::build((0..count).map(|n| kind.row(n)), [], &Variables::default()).expect("valid");
    let (built_ms, mb) = (start.elapsed().as_millis(), resident() - before);
    let start = Instant::now();
    let for_core = built.for_core(&|| ());
    let for_core_ms = start.elapsed().as_millis();
    drop(for_core);
    let index_mb = built.index_bytes() as f64 / 1e6;
    let world = World::of(built);
    let (first, last, none) = (
        world.decision(0),
        world.decision(count - 1),
        world.decision(count),
    );
    println!(
        "| {count} | {} | {first} | {last} | {none} | {built_ms} | {for_core_ms} | {mb:.1} | {index_mb:.2} | {theirs} |",
        kind.name()
    );
}

fn fast_routing(count: i64, theirs: &str) {
    let rows: Vec<_> = (0..count)
        .map(|n| FastRoutingRow {
            username: "sbtest".into(),
            schemaname: format!("shard_{}", n % 50_000),
            flagIN: n / 50_000,
            destination_hostgroup: n % 7,
            comment: String::new(),
        })
        .collect();
    let no_rules: [RuleRow; 0] = [];
    let start = Instant::now();
    let built = Rules::build(no_rules, rows, &Variables::default()).expect("valid");
    let built_ms = start.elapsed().as_millis();
    let mb = built.fast().bytes() as f64 / 1e6;
    let one = best(1_000_000, |_| {
        black_box(built.fast().hostgroup("sbtest", black_box("shard_7"), 0));
    });
    let schemas: Vec<_> = (0..50_000.min(count))
        .map(|n| format!("shard_{}", n * 7919 % 50_000.min(count)))
        .collect();
    let all = best(schemas.len() as u64, |n| {
        black_box(built.fast().hostgroup("sbtest", &schemas[n as usize], 0));
    });
    let decision = World::of(built).decision(7);
    println!("| {count} | {one} | {decision} | {all} | {built_ms} | {mb:.2} | {theirs} |");
}

struct World {
    snapshot: Snapshot,
    user: Arc<User>,
}

impl World {
    fn of(rules: Rules) -> Self {
        let variables = Arc::new(Variables::default());
        let row = UserRow {
            username: "sbtest".into(),
            ..UserRow::default()
        };
        let users = Users::build([row], &variables).expect("valid");
        let user = Arc::clone(users.frontend("sbtest").expect("just made"));
        Self {
            snapshot: Snapshot {
                rules: Arc::new(rules),
                variables,
                ..Snapshot::default()
            }
            .for_core(),
            user,
        }
    }

    /// Nanoseconds to decide for a statement that rule `n` is for.
    fn decision(&self, n: i64) -> u128 {
        let schema = format!("shard_{n}");
        let text = format!("SELECT c FROM table_{n} WHERE id = 5029");
        let digest = format!("SELECT c FROM table_{n} WHERE id = ?");
        let session = SessionFacts {
            user: &self.user,
            schema: &schema,
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
            hash: hash(n),
            text: digest.as_bytes(),
        };
        let statement = Statement {
            text: text.as_bytes(),
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
        let mut memo = Memo::default();
        best(200_000, |random| {
            black_box(plan_with(
                black_box(&self.snapshot),
                black_box(&session),
                black_box(&statement),
                random,
                &mut memo,
            ));
        })
    }
}

fn best(calls: u64, mut call: impl FnMut(u64)) -> u128 {
    let round = |_| {
        let start = Instant::now();
        (0..calls).for_each(&mut call);
        start.elapsed().as_nanos() / u128::from(calls)
    };
    (0..5).map(round).min().unwrap_or_default()
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
