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

/// Value that an INSERT writes for a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inserted {
    /// A whole number without a sign.
    Number(u64),
    /// NULL or DEFAULT.
    None,
    /// A parameter, by its number in the text from 0 on.
    Parameter(usize),
}

/// The value of a column in the only row of `INSERT … (columns) VALUES (…)`, by its position in the list of
/// columns. `None` for other values, for several rows, and for other forms of the statement. `escapes`: a backslash
/// escapes in strings.
#[must_use]
pub fn inserted(text: &[u8], escapes: bool, column: usize) -> Option<Inserted> {
    let mut words = if escapes {
        Words::new(text)
    } else {
        Words::without_escapes(text)
    };
    words.find(|token| token.is_sign(b'('))?;
    words.find(|token| token.is_sign(b')'))?;
    if !words.next()?.is_any(&["VALUES", "VALUE"]) || !words.next()?.is_sign(b'(') {
        return None;
    }
    let (mut depth, mut at, mut parameters, mut tokens) = (0_u32, 0, 0, 0);
    let mut value = None;
    loop {
        let token = words.next()?;
        if depth == 0 && (token.is_sign(b',') || token.is_sign(b')')) {
            if token.is_sign(b')') {
                break;
            }
            (at, tokens) = (at + 1, 0);
            continue;
        }
        if token.is_sign(b'(') {
            depth += 1;
        } else if token.is_sign(b')') {
            depth -= 1; // it is > 0 here
        }
        let parameter = parameters;
        parameters += usize::from(token.is_sign(b'?'));
        tokens += 1;
        if at == column {
            value = match tokens {
                1 => alone(token, parameter),
                _ => None,
            };
        }
    }
    let is_last = words.next().is_none_or(|token| token.is_sign(b';')) && words.next().is_none();
    value.filter(|_| is_last)
}

/// Returns what a token says that is a value by itself. `parameter`: its number, if it is one.
fn alone(token: Token<'_>, parameter: usize) -> Option<Inserted> {
    if token.is_sign(b'?') {
        return Some(Inserted::Parameter(parameter));
    }
    if token.kind != Kind::Word {
        return None;
    }
    if token.is_any(&["NULL", "DEFAULT"]) {
        return Some(Inserted::None);
    }
    let digits = token.text.iter().all(u8::is_ascii_digit);
    let number = std::str::from_utf8(token.text).ok().filter(|_| digits)?;
    number.parse().ok().map(Inserted::Number)
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
            for column in 0..=read.columns.len().min(8) {
                if let Some(Inserted::Parameter(at)) = inserted(data, escapes, column) {
                    assert!(at < data.len());
                }
            }
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
    fn the_value_of_a_column_is_read_where_there_is_one_row_and_it_stands_alone() {
        use Inserted::{None as Nothing, Number, Parameter};
        for (text, column, wanted) in [
            ("INSERT INTO t (a, b) VALUES (1, 22)", 0, Some(Number(1))),
            ("INSERT INTO t (a, b) VALUES (1, 22)", 1, Some(Number(22))),
            ("INSERT INTO t (a, b) VALUES (1, 22)", 2, None),
            ("insert t(a,b)value('x, (y', 0);", 1, Some(Number(0))),
            (
                "INSERT INTO t (a, b) VALUES (null, default)",
                0,
                Some(Nothing),
            ),
            (
                "INSERT INTO t (a, b) VALUES (null, default)",
                1,
                Some(Nothing),
            ),
            (
                "INSERT INTO t (a, b) VALUES (f(?, 3), ?)",
                1,
                Some(Parameter(1)),
            ),
            ("INSERT INTO t (a, b) VALUES (f(?, 3), ?)", 0, None),
            ("INSERT INTO t (a) VALUES (-1)", 0, None),
            ("INSERT INTO t (a) VALUES (1.5)", 0, None),
            ("INSERT INTO t (a) VALUES (1 + 1)", 0, None),
            ("INSERT INTO t (a) VALUES (0x1)", 0, None),
            ("INSERT INTO t (a) VALUES ('1')", 0, None),
            ("INSERT INTO t (a) VALUES (b)", 0, None),
            ("INSERT INTO t (a) VALUES ((1))", 0, None),
            ("INSERT INTO t (a) VALUES (18446744073709551616)", 0, None),
            ("INSERT INTO t (a) VALUES (1), (2)", 0, None),
            ("INSERT INTO t (a) VALUES (1) AS new", 0, None),
            ("INSERT INTO t (a) VALUES (1); SELECT 1", 0, None),
            ("INSERT INTO t (a) SELECT 1", 0, None),
            ("INSERT INTO t SET a = 1", 0, None),
            ("INSERT INTO t (a) VALUES (1", 0, None),
            ("INSERT INTO t (a) VALUES ROW(1)", 0, None),
        ] {
            assert_eq!(inserted(text.as_bytes(), true, column), wanted, "{text}");
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
