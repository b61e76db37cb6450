//! The page of refusals has every sentence by which a statement on a sharded table is refused, and
//! what to do instead, as the code says it. `UPDATE_EXPECT=1 cargo test -p shards` writes it anew.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::fmt::Write as _;

const PAGE: &str = "../../../docs/features/sharding-refusals.md";

const HEAD: &str = "# Refused statements on sharded tables

Every sentence by which a statement is refused, and what to do instead. `…` stands for a name or a number of the statement. This page is made from the code: `UPDATE_EXPECT=1 cargo test -p shards`.

Joins that are not refused: tables that lie beside each other and are joined by their keys, and joins with reference tables, are pushed down to the partitions. All other joins are
[finished on a server](sharding.md#finished-on-a-server).
";

/// Headings, and files of the crates that have the sentences under them.
const PARTS: &[(&str, &str, &[&str])] = &[
    (
        "Which partition",
        "",
        &[
            "pure/shards/src/spread.rs",
            "pure/shards/src/written.rs",
            "pure/plan/src/shards.rs",
        ],
    ),
    (
        "Reads of several partitions",
        "",
        &[
            "data/worker/src/partitions/gathering.rs",
            "data/worker/src/partitions/all.rs",
            "data/worker/src/partitions/asking.rs",
            "data/worker/src/partitions/legs.rs",
            "pure/gather/src/aggregate.rs",
        ],
    ),
    (
        "What a server does not finish",
        "",
        &[
            "pure/shards/src/finish.rs",
            "data/worker/src/partitions/finishing.rs",
        ],
    ),
    (
        "Only while no server may finish it",
        "With `mysql-sharding_scratch = off` these are refused, as are those of \"which partition\" that speak of joins, plain tables and queries inside others. Else they are finished on a server.\n\n",
        &[
            "pure/gather/src/recipe.rs",
            "pure/gather/src/merge.rs",
            "pure/gather/src/having.rs",
        ],
    ),
    (
        "Changes, definitions and numbers of rows",
        "",
        &[
            "pure/shards/src/ddl.rs",
            "pure/shards/src/definitions.rs",
            "pure/shards/src/renamed.rs",
            "pure/shards/src/rekey.rs",
            "pure/shards/src/inserted.rs",
            "pure/shards/src/listed.rs",
            "pure/shards/src/load_data.rs",
            "pure/shards/src/loaded.rs",
            "pure/shards/src/entries.rs",
            "pure/shards/src/lookups.rs",
            "pure/shards/src/numbers.rs",
            "data/worker/src/partitions/changing.rs",
            "data/worker/src/partitions/said.rs",
            "data/worker/src/partitions/rekeying.rs",
            "data/worker/src/partitions/returned.rs",
            "data/worker/src/partitions/renaming.rs",
            "data/worker/src/partitions/from_query.rs",
            "data/worker/src/partitions/values.rs",
            "data/worker/src/partitions/loading.rs",
            "data/worker/src/partitions/branches.rs",
            "data/worker/src/partitions/in_turn.rs",
            "data/worker/src/decide/numbers.rs",
            "data/worker/src/statement.rs",
        ],
    ),
];

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "a test reads sources, its page, and the flag that says to write it anew"
)]
fn the_page_has_every_sentence() {
    let mut page = HEAD.to_owned();
    let mut known = BTreeSet::new();
    for (heading, words, files) in PARTS {
        let _ = write!(
            page,
            "\n## {heading}\n\n{words}| refused since | instead |\n|---|---|\n"
        );
        for file in *files {
            let source = std::fs::read_to_string(format!("../../{file}")).unwrap();
            let source = source.split("#[cfg(test)]\nmod tests").next().unwrap();
            let found: Vec<_> = literals(source)
                .iter()
                .filter_map(|text| sentence(text))
                .collect();
            for (why, instead) in found {
                if known.insert(why.clone()) {
                    let _ = writeln!(page, "| {why} | {instead} |");
                }
            }
        }
    }
    assert!(known.len() > 80, "{}", known.len());
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(PAGE, &page).unwrap();
    }
    let written = std::fs::read_to_string(PAGE).unwrap_or_default();
    let differs = page.lines().zip(written.lines()).find(|(a, b)| a != b);
    assert!(
        differs.is_none() && page.len() == written.len(),
        "{differs:?} (UPDATE_EXPECT=1 writes it anew)"
    );
}

/// The two halves of a sentence that refuses: why, and what to do. Others are words for something else.
fn sentence(text: &str) -> Option<(String, String)> {
    let text = text
        .trim_start_matches("{} - ")
        .trim_start_matches("HSCALE-1000: ");
    let (why, instead) = text.split_once("; ")?;
    // Told by EXPLAIN ROUTE.
    let is_reason = why.starts_with("rows get numbers");
    let is_sentence = !is_reason && why.split(' ').count() >= 4 && instead.split(' ').count() >= 2;
    is_sentence.then(|| (shown(why), shown(instead)))
}

/// For people, with `…` for what is put in.
fn shown(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('{') {
        out += before;
        out.push('…');
        rest = behind.split_once('}').map_or("", |(_, rest)| rest);
    }
    out += rest;
    out.replace('|', "\\|")
        .replace('*', "\\*")
        .replace('<', "&lt;")
}

/// The strings of a source of Rust, comments left out.
fn literals(source: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut chars = source.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '/' if chars.peek() == Some(&'/') => {
                chars.by_ref().find(|c| *c == '\n');
            }
            '\'' => {
                // A character, or a lifetime, which has no end.
                let mut ahead = chars.clone();
                match (ahead.next(), ahead.next(), ahead.next()) {
                    (Some('\\'), Some(_), Some('\'')) => drop(chars.by_ref().nth(2)),
                    (Some(_), Some('\''), _) => drop(chars.by_ref().nth(1)),
                    _ => {}
                }
            }
            '"' => {
                let mut text = String::new();
                while let Some(c) = chars.next() {
                    match c {
                        '"' => break,
                        '\\' => match chars.next() {
                            Some('\n') => while chars.next_if(|c| c.is_whitespace()).is_some() {},
                            Some(escaped) => text.push(escaped),
                            None => break,
                        },
                        c => text.push(c),
                    }
                }
                all.push(text);
            }
            _ => {}
        }
    }
    all
}
