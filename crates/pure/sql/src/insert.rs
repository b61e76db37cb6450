//! Which table an INSERT or REPLACE writes to, and which columns it names.
//!
//! <https://dev.mysql.com/doc/refman/9.4/en/insert.html>

use crate::words::{Kind, Token, Words, unquote};
use std::borrow::Cow;

/// More columns than this are not read: no table of MySQL has more.
const COLUMNS_MAX: usize = 4096;

/// The target of an INSERT that names its columns.
#[derive(Debug, PartialEq, Eq)]
pub struct Insert<'a> {
    /// Its schema, if that is written.
    pub schema: Option<Cow<'a, [u8]>>,
    /// Its table, without quotes.
    pub table: Cow<'a, [u8]>,
    /// The columns that get values of the statement, without quotes; all others get their default.
    pub columns: Vec<Cow<'a, [u8]>>,
}

/// Reads an `INSERT` or `REPLACE` with a list of columns or with `SET`. `None` for everything else,
/// and where other rows than the new ones may be written or shown: `ON DUPLICATE KEY UPDATE`,
/// `RETURNING`. `escapes`: a backslash escapes in strings.
#[must_use]
pub fn insert(text: &[u8], escapes: bool) -> Option<Insert<'_>> {
    let mut words = if escapes {
        Words::new(text)
    } else {
        Words::without_escapes(text)
    };
    if !words.next()?.is_any(&["INSERT", "REPLACE"]) {
        return None;
    }
    let mut token = words.next()?;
    while token.is_any(&["LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY", "IGNORE", "INTO"]) {
        token = words.next()?;
    }
    let mut table = name(token)?;
    let mut schema = None;
    token = words.next()?;
    if token.is_sign(b'.') {
        schema = Some(std::mem::replace(&mut table, name(words.next()?)?));
        token = words.next()?;
    }
    let columns = if token.is_sign(b'(') {
        listed(&mut words)?
    } else if token.is("SET") {
        return assigned(words).map(|columns| Insert {
            schema,
            table,
            columns,
        });
    } else {
        return None;
    };
    is_plain(words).then_some(Insert {
        schema,
        table,
        columns,
    })
}

fn name<'a>(token: Token<'a>) -> Option<Cow<'a, [u8]>> {
    let named = matches!(token.kind, Kind::Word | Kind::Name) && token.is_whole();
    named.then(|| unquote(token.text))
}

/// A column, which may have its table and schema before it; and what follows.
fn column<'a>(first: Token<'a>, words: &mut Words<'a>) -> Option<(Cow<'a, [u8]>, Token<'a>)> {
    let mut last = name(first)?;
    loop {
        let next = words.next()?;
        if !next.is_sign(b'.') {
            return Some((last, next));
        }
        last = name(words.next()?)?;
    }
}

/// The columns up to the parenthesis that closes their list.
fn listed<'a>(words: &mut Words<'a>) -> Option<Vec<Cow<'a, [u8]>>> {
    let mut columns = Vec::new();
    let mut token = words.next()?;
    if token.is_sign(b')') {
        return Some(columns);
    }
    // A query in parentheses, and no list.
    if token.is_sign(b'(') || token.is_any(&["SELECT", "WITH", "VALUES", "TABLE"]) {
        return None;
    }
    loop {
        let (column, next) = column(token, words)?;
        columns.push(column);
        if next.is_sign(b')') {
            return Some(columns);
        }
        if !next.is_sign(b',') || columns.len() == COLUMNS_MAX {
            return None;
        }
        token = words.next()?;
    }
}

/// The columns of `SET a = …, b = …`.
fn assigned(mut words: Words<'_>) -> Option<Vec<Cow<'_, [u8]>>> {
    let mut columns = Vec::new();
    loop {
        let first = words.next()?;
        let (column, sign) = column(first, &mut words)?;
        if !sign.is_sign(b'=') || columns.len() == COLUMNS_MAX {
            return None;
        }
        columns.push(column);
        let mut depth = 0_u32;
        loop {
            let Some(token) = words.next() else {
                return Some(columns);
            };
            match token {
                _ if token.is_sign(b'(') => depth += 1,
                _ if token.is_sign(b')') => depth = depth.checked_sub(1)?,
                _ if depth > 0 => {}
                _ if token.is_sign(b',') => break,
                _ if token.is_sign(b';') => return words.next().is_none().then_some(columns),
                _ if token.is_any(&["ON", "RETURNING", "AS"]) => return None,
                _ => {}
            }
        }
    }
}

/// Nothing behind the columns says that other rows are written, or that rows are shown.
fn is_plain(words: Words<'_>) -> bool {
    let mut before_on = false;
    for token in words {
        if token.is("RETURNING") || before_on && token.is("DUPLICATE") {
            return false;
        }
        before_on = token.is("ON");
    }
    true
}

/// Reads anything without a panic, and names only what is in the text.
#[doc(hidden)]
pub fn fuzz_insert(data: &[u8]) {
    for escapes in [true, false] {
        if let Some(read) = insert(data, escapes) {
            assert!(read.columns.len() <= COLUMNS_MAX);
            assert!(read.columns.iter().map(|name| name.len()).sum::<usize>() <= data.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<String> {
        let read = insert(text.as_bytes(), true)?;
        let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
        let schema = read.schema.map_or(String::new(), |name| text(&name) + ".");
        let columns: Vec<_> = read.columns.iter().map(|name| text(name)).collect();
        Some(format!(
            "{schema}{}: {}",
            text(&read.table),
            columns.join(" ")
        ))
    }

    #[test]
    fn columns_are_named_in_a_list_or_by_set() {
        for (text, wanted) in [
            ("INSERT INTO t (a, b) VALUES (1, 2)", "t: a b"),
            ("insert ignore `s`.`t` (`a``b`) select 1", "s.t: a`b"),
            (
                "REPLACE LOW_PRIORITY INTO t (t.a, s.t.b) VALUES (?, ?), (?, ?)",
                "t: a b",
            ),
            ("INSERT INTO t () VALUES ()", "t: "),
            ("INSERT INTO t SET a = f(1, 2), b = 'x, y'", "t: a b"),
            ("INSERT INTO t SET t.a = 1;", "t: a"),
            ("/* x */ INSERT t (a) VALUES ('ON DUPLICATE')", "t: a"),
            (
                "INSERT INTO t (a) SELECT b FROM u JOIN v ON u.id = v.id",
                "t: a",
            ),
        ] {
            assert_eq!(read(text).as_deref(), Some(wanted), "{text}");
        }
    }

    #[test]
    fn what_names_no_columns_or_does_more_is_not_read() {
        for text in [
            "INSERT INTO t VALUES (1)",
            "INSERT INTO t (SELECT 1)",
            "INSERT INTO t ((SELECT 1))",
            "INSERT INTO t SELECT 1",
            "INSERT INTO t (a) VALUES (1) ON DUPLICATE KEY UPDATE a = 2",
            "INSERT INTO t SET a = 1 ON DUPLICATE KEY UPDATE a = 2",
            "INSERT INTO t (a) VALUES (1) RETURNING id",
            "INSERT INTO t PARTITION (p) (a) VALUES (1)",
            "INSERT INTO 't' (a) VALUES (1)",
            "INSERT INTO t (a",
            "INSERT INTO t SET a",
            "INSERT INTO t SET a = 1; SELECT 1",
            "UPDATE t SET a = 1",
            "LOAD DATA INFILE 'f' INTO TABLE t (a)",
            "",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
