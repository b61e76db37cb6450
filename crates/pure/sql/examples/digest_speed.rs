//! What digesting and classifying cost: nanoseconds for short statements, GB/s for long ones.
//! `cargo run --release -p sql --example digest_speed`
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "measuring is clocks and printing"
)]

use sql::{DigestOptions, class, digest};
use std::hint::black_box;
use std::time::Instant;

/// The best of some rounds, in nanoseconds per call: this machine is shared.
fn best(mut call: impl FnMut()) -> f64 {
    let mut calls = 1u32;
    let mut best = f64::MAX;
    for _ in 0..40 {
        let start = Instant::now();
        for _ in 0..calls {
            call();
        }
        let nanoseconds = start.elapsed().as_nanos() as f64;
        best = best.min(nanoseconds / f64::from(calls));
        if nanoseconds < 5e6 {
            calls = calls.saturating_mul(2).min(1 << 20);
        }
    }
    best
}

fn main() {
    let list = |n: u32| {
        (0..n)
            .map(|i| (i * 7919 % 100_000).to_string())
            .collect::<Vec<_>>()
            .join(",")
    };
    let rows = |n: u32| {
        let row = |i: u32| {
            format!(
                "({i},'{}','{}')",
                "ab c-".repeat(24),
                "x'".replace('\'', "y").repeat(30)
            )
        };
        (0..n).map(row).collect::<Vec<_>>().join(", ")
    };
    let uuids = |n: u32| {
        (0..n)
            .map(|i| {
                format!(
                    "'{:08x}-9e37-4b79-b97f-4a7c15f39cc0'",
                    i.wrapping_mul(2_654_435_761)
                )
            })
            .collect::<Vec<_>>()
            .join(",")
    };
    let short = |n: u32| {
        let row = |i: u32| {
            format!(
                "({i},'user{}',-{}.{:02},NULL,'2026-01-{:02} 10:00:00')",
                i * 7919 % 100_000,
                i % 977,
                i % 100,
                i % 28 + 1
            )
        };
        (0..n).map(row).collect::<Vec<_>>().join(",")
    };
    let columns = (0..3000)
        .map(|i| format!("table_{i}.column_{i}"))
        .collect::<Vec<_>>()
        .join(", ");
    let statements = [
        ("point select", "SELECT c FROM sbtest1 WHERE id=2202".to_owned()),
        ("update", "UPDATE sbtest1 SET k=k+1 WHERE id=8118".to_owned()),
        (
            "orm select",
            "SELECT `users`.`id` AS `id`, `users`.`name` AS `name` FROM `users` WHERE `users`.`email` = 'a@b.com' LIMIT 1"
                .to_owned(),
        ),
        (
            "insert",
            "INSERT INTO sbtest1 (id, k, c, pad) VALUES (9084, 3275, '86756508899-57903289218-40110704341-92541224847', 'x')"
                .to_owned(),
        ),
        ("in list, 20,000", format!("SELECT * FROM t WHERE a IN ({}) AND b=1", list(20_000))),
        ("in list, blanks", format!("SELECT * FROM t WHERE a IN ({}) AND b=1", list(20_000).replace(',', ", "))),
        ("in list, uuids", format!("SELECT * FROM t WHERE a IN ({})", uuids(10_000))),
        ("insert, short rows", format!("INSERT INTO t (a,b,c,d,e) VALUES {}", short(10_000))),
        ("insert, 1,000 rows", format!("INSERT INTO t (a,b,c) VALUES {}", rows(1000))),
        ("insert, 1 MB blob", format!("INSERT INTO t (a,b) VALUES (1,'{}')", "0123456789abcdef".repeat(65536))),
        ("comment, 1 MB", format!("SELECT /* {} */ 1", "0123456789abcdef".repeat(65536))),
        ("3,000 columns", format!("SELECT {columns} FROM t WHERE a=1")),
    ];
    println!(
        "A101 asks for 100,000 statements in a few seconds; the last column is what one core digests and classifies in one.\n"
    );
    println!(
        "{:20} {:>9} {:>12} {:>8} {:>12} {:>8} {:>12}",
        "statement", "bytes", "digest ns", "GB/s", "class ns", "GB/s", "statements/s"
    );
    let options = DigestOptions::default();
    let mut text = Vec::new();
    for (name, sql) in &statements {
        let sql = sql.as_bytes();
        let size = sql.len() as f64;
        let digesting = best(|| {
            black_box(digest(black_box(sql), &options, &mut text));
        });
        let classifying = best(|| {
            black_box(class(black_box(sql)));
        });
        println!(
            "{name:20} {:>9} {digesting:>12.0} {:>8.2} {classifying:>12.0} {:>8.2} {:>12.0}",
            sql.len(),
            size / digesting,
            size / classifying,
            1e9 / (digesting + classifying)
        );
    }
}
