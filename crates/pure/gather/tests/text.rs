//! Recipes as texts: each `*.txt` beside this file has SELECTs over several partitions, what is made of
//! their rows, and what each partition is asked. `UPDATE_EXPECT=1 cargo test -p gather` writes them anew.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use gather::{Column, Kind, recipe, recipe_for};
use shards::{Cut, Leg};
use sql::Lexing;
use sql::tree::{DoubleQuotes, tree};
use std::fmt::Write as _;

#[test]
fn selects_are_asked_and_put_together_as_the_texts_say() {
    let mut files: Vec<_> = std::fs::read_dir("tests")
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    assert!(!files.is_empty());
    files.iter().for_each(|path| check(path));
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test reads its data and the flag that says to write it anew"
)]
fn check(path: &std::path::Path) {
    let text = std::fs::read_to_string(path).unwrap();
    let mut told = String::new();
    for line in text.lines().filter(|line| !line.starts_with("  ")) {
        let _ = writeln!(told, "{line}");
        if let Some(sql) = line.strip_prefix("> ") {
            told += &answer(sql);
        }
    }
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(path, told).unwrap();
        return;
    }
    for (number, (line, told)) in (1..).zip(text.lines().zip(told.lines())) {
        assert_eq!(
            told,
            line,
            "{}:{number} (UPDATE_EXPECT=1 writes it anew)",
            path.display()
        );
    }
    assert_eq!(
        text.lines().count(),
        told.lines().count(),
        "{}",
        path.display()
    );
}

/// The partition is the table p, and what names the schema is cut.
fn answer(sql: &str) -> String {
    // With `ENUM: ` before it, each column that partitions answer with is an ENUM.
    let (sql, is_listed) = match sql.strip_prefix("ENUM: ") {
        Some(sql) => (sql, true),
        None => (sql, false),
    };
    let asked = tree(sql.as_bytes(), Lexing::Escapes, DoubleQuotes::Strings).unwrap();
    let made = match recipe(sql.as_bytes(), &asked) {
        Ok(first) if is_listed => {
            const ENUM: Column = Column {
                kind: Kind::Listed,
                decimals: 0,
            };
            recipe_for(sql.as_bytes(), &asked, &vec![ENUM; first.hidden + 2])
        }
        made => made,
    };
    let recipe = match made {
        Ok(recipe) => recipe,
        Err(words) => return format!("  refused: {words}\n"),
    };
    let schemas = sql.match_indices("shop.t.").map(|(at, _)| Cut {
        at: at..at + 5,
        with: Vec::new(),
    });
    let tables = sql.match_indices("FROM t").map(|(at, _)| Cut {
        at: at + 5..at + 6,
        with: b"p AS t".to_vec(),
    });
    let leg = Leg {
        hostgroup: 0,
        partitions: Vec::new(),
        cuts: schemas.chain(tables).collect(),
        rows: Vec::new(),
    };
    let sent = String::from_utf8(recipe.text(&leg, sql.as_bytes())).unwrap();
    // What is asked of a key besides is long, and always the same.
    let mut short = sent;
    while let Some(at) = short.find("IF(CONCAT(LEFT(") {
        let end = short[at..].find(", NULL)").unwrap();
        short.replace_range(at..at + end + 7, "PAD");
    }
    format!("  {recipe}\n    {short}\n")
}
