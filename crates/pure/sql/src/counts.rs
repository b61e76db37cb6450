//! `ROW_COUNT()`, `FOUND_ROWS()`, `@@last_gtid` and `CONNECTION_ID()` in a text, replaced by what
//! they are.

use crate::own_number::{OwnNumber, own_number, own_number_from, tokens_of};
use crate::words::{Kind, Token, unquote};
use crate::{Lexing, words};

/// Things that are to be replaced, and by what.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counts<'a> {
    /// `ROW_COUNT()`.
    pub row_count: Option<i64>,
    /// `FOUND_ROWS()`.
    pub found_rows: Option<u64>,
    /// The server warns of `FOUND_ROWS()` wherever it stands: it stays in the text, without being
    /// asked.
    pub warns: bool,
    /// `@@last_gtid`: digits, dashes and commas, or nothing.
    pub last_gtid: Option<&'a str>,
    /// `CONNECTION_ID()` and `@@pseudo_thread_id`.
    pub own: Option<OwnNumber>,
}

/// The text with each call, or variable, replaced by an expression of this value and of the same
/// type, width and nullability. A column of a SELECT without a name of its own keeps its title.
/// `None` if there is no such call, or if the text cannot be read for certain.
#[must_use]
pub fn with_counts(sql: &[u8], lexing: Lexing, counts: Counts<'_>) -> Option<Vec<u8>> {
    if lexing.shifts() && !sql.is_ascii() || lexing.hides(sql) {
        return None;
    }
    let tokens = tokens_of(sql, lexing)?;
    let sets = tokens
        .iter()
        .find(|token| !token.is_sign(b'('))
        .is_some_and(|token| token.is("SET"));
    let calls: Vec<Call> = (0..tokens.len())
        .filter_map(|at| {
            let counted =
                value_of(&tokens, at, counts).or_else(|| last_gtid(&tokens, at, counts.last_gtid?));
            let own = || {
                own_number(&tokens, at, counts.own?, sets).map(|(last, value)| Call {
                    first: at,
                    last,
                    value,
                })
            };
            counted.or_else(own)
        })
        .collect();
    if calls.is_empty() {
        return None;
    }
    let titles = titles(&tokens, sql, &calls);
    let mut out = Vec::with_capacity(sql.len() + 64);
    let (mut copied, mut calls, mut titles) = (
        0,
        calls.into_iter().peekable(),
        titles.into_iter().peekable(),
    );
    for (at, token) in tokens.iter().enumerate() {
        if let Some(call) = calls.next_if(|call| call.first == at) {
            out.extend_from_slice(&sql[copied..token.start]);
            out.extend_from_slice(call.value.as_bytes());
            copied = tokens.get(call.last).map_or(sql.len(), Token::end);
        }
        while let Some((_, title)) = titles.next_if(|(last, _)| *last == at) {
            out.extend_from_slice(&sql[copied..token.end().max(copied)]);
            copied = copied.max(token.end());
            out.extend_from_slice(b" AS ");
            out.extend_from_slice(&title);
        }
    }
    out.extend_from_slice(&sql[copied..]);
    Some(out)
}

/// Call that is to be replaced: from this token to that, by this.
struct Call {
    first: usize,
    last: usize,
    value: String,
}

/// The variable that begins with this token, if it is this one.
fn last_gtid(tokens: &[Token<'_>], at: usize, value: &str) -> Option<Call> {
    let [one, other, rest @ ..] = tokens.get(at..)? else {
        return None;
    };
    let is_name = |token: &Token<'_>| {
        matches!(token.kind, Kind::Word | Kind::Name)
            && unquote(token.text).eq_ignore_ascii_case(b"last_gtid")
    };
    let last = match rest {
        [name, ..] if is_name(name) => at + 2,
        [scope, dot, name, ..]
            if scope.is_any(&["SESSION", "LOCAL"]) && dot.is_sign(b'.') && is_name(name) =>
        {
            at + 4
        }
        _ => return None,
    };
    let is_value = value
        .bytes()
        .all(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b','));
    // What follows may be a string, which goes on with a string before it.
    (one.is_sign(b'@') && other.is_sign(b'@') && is_value).then(|| Call {
        first: at,
        last,
        value: format!("(_utf8'{value}')"),
    })
}

/// Returns what stands for the call that begins with this token, if one does that is to be
/// replaced.
fn value_of(tokens: &[Token<'_>], at: usize, counts: Counts<'_>) -> Option<Call> {
    let call = |value: String| {
        Some(Call {
            first: at,
            last: at + 2,
            value,
        })
    };
    let [name, open, close] = tokens.get(at..at + 3)? else {
        return None;
    };
    if !open.is_sign(b'(') || !close.is_sign(b')') {
        return None;
    }
    let before = at.checked_sub(1).and_then(|before| tokens.get(before));
    if before.is_some_and(|before| before.is_sign(b'.') || before.is_sign(b'@')) {
        return None;
    }
    // As wide as the function: 21 characters, whatever the value.
    let is = |function: &str| {
        name.is(function)
            || name.kind == Kind::Name
                && unquote(name.text).eq_ignore_ascii_case(function.as_bytes())
    };
    if is("ROW_COUNT") {
        let count = counts.row_count?;
        let digits = if count < 0 {
            format!("-{:020}", count.unsigned_abs())
        } else {
            format!("{count:021}")
        };
        return call(format!("CAST('{digits}' AS SIGNED)"));
    }
    if is("FOUND_ROWS") {
        let value = format!("CAST('{:021}' AS SIGNED)", counts.found_rows?);
        return call(if counts.warns {
            format!("IF(1,{value},FOUND_ROWS())")
        } else {
            value
        });
    }
    None
}

/// Words that may stand between SELECT and its columns.
const MODIFIERS: &[&str] = &[
    "ALL",
    "DISTINCT",
    "DISTINCTROW",
    "HIGH_PRIORITY",
    "STRAIGHT_JOIN",
    "SQL_SMALL_RESULT",
    "SQL_BIG_RESULT",
    "SQL_BUFFER_RESULT",
    "SQL_CACHE",
    "SQL_NO_CACHE",
    "SQL_CALC_FOUND_ROWS",
];
/// Words that end the columns of a SELECT.
const CLAUSES: &[&str] = &[
    "FROM",
    "INTO",
    "LIMIT",
    "UNION",
    "WHERE",
    "ORDER",
    "HAVING",
    "GROUP",
    "FOR",
    "LOCK",
    "EXCEPT",
    "INTERSECT",
    "WINDOW",
    "ON",
    "MINUS",
    "PROCEDURE",
    "OFFSET",
    "FETCH",
];
/// A name behind one of these is a part of the expression.
const OPERATORS: &[&str] = &[
    "AND", "OR", "XOR", "NOT", "IS", "IN", "LIKE", "RLIKE", "REGEXP", "BETWEEN", "DIV", "MOD",
    "COLLATE", "ESCAPE", "BINARY", "SOUNDS", "CASE", "WHEN", "THEN", "ELSE", "INTERVAL", "MEMBER",
    "OF",
];
/// Identifiers have at most so many characters where they are titles.
const TITLE_LEN_MAX: usize = 250;
/// A column that is written longer, comments and all, has none: columns are in columns, and each is
/// looked through.
const COLUMN_LEN_MAX: usize = 1024;

/// For each column of a SELECT or RETURNING that has such a call and no name of its own: its last
/// token, and its title in backquotes.
fn titles(tokens: &[Token<'_>], sql: &[u8], calls: &[Call]) -> Vec<(usize, Vec<u8>)> {
    let mut found = Vec::new();
    // For each open parenthesis, where the column begins that is being read.
    let mut open: Vec<Option<usize>> = vec![None];
    let mut end = |column: Option<usize>, at: usize| {
        let Some(first) = column.filter(|first| *first < at) else {
            return;
        };
        let next = calls.partition_point(|call| call.first < first);
        let has_call = calls.get(next).is_some_and(|call| call.first < at);
        if has_call
            && tokens[at - 1].end() - tokens[first].start <= COLUMN_LEN_MAX
            && !has_name(&tokens[first..at])
            && let Some(title) = title(&tokens[first..at], sql)
        {
            found.push((at - 1, title));
        }
    };
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let Some(column) = open.last_mut() else { break };
        if token.is("SELECT") || returns(tokens, at) {
            while tokens
                .get(at + 1)
                .is_some_and(|next| next.is_any(MODIFIERS))
            {
                at += 1;
            }
            *column = Some(at + 1);
        } else if token.is_sign(b'(') {
            open.push(None);
        } else if token.is_sign(b')') {
            end(column.take(), at);
            open.pop();
        } else if token.is_sign(b',') {
            if column.is_some() {
                end(column.replace(at + 1), at);
            }
        } else if token.is_sign(b';') || token.is_any(CLAUSES) {
            end(column.take(), at);
        }
        at += 1;
    }
    for column in open {
        end(column, tokens.len());
    }
    found.sort_unstable_by_key(|(last, _)| *last);
    found
}

/// Whether RETURNING begins columns here: to MySQL it is a name like any other.
fn returns(tokens: &[Token<'_>], at: usize) -> bool {
    let (before, next) = (
        at.checked_sub(1).and_then(|before| tokens.get(before)),
        tokens.get(at + 1),
    );
    let ends = |before: &Token<'_>| {
        before.kind != Kind::Sign || before.is_sign(b')') || before.is_sign(b'?')
    };
    let is_name = |before: &Token<'_>| {
        before.is_any(MODIFIERS)
            || before.is_any(CLAUSES)
            || before.is_any(OPERATORS)
            || before.is_any(&["SELECT", "SET", "BY", "AS", "UPDATE", "TABLE", "JOIN"])
    };
    let begins = |next: &Token<'_>| {
        next.kind != Kind::Sign
            || [b'(', b'@', b'?', b'-', b'+', b'*', b'!', b'~']
                .iter()
                .any(|sign| next.is_sign(*sign))
    };
    let names = |next: &Token<'_>| {
        next.is_any(CLAUSES)
            || next.is_any(&[
                "AS", "SET", "AND", "OR", "IS", "IN", "LIKE", "BETWEEN", "DIV", "MOD", "ASC",
                "DESC",
            ])
    };
    tokens[at].is("RETURNING")
        && before.is_some_and(|before| ends(before) && !is_name(before))
        && next.is_some_and(|next| begins(next) && !names(next))
}

/// Whether the column is followed by a name, with or without AS.
fn has_name(column: &[Token<'_>]) -> bool {
    let mut depth = 0_i32;
    for token in column {
        depth += i32::from(token.is_sign(b'(')) - i32::from(token.is_sign(b')'));
        if depth == 0 && token.is("AS") {
            return true;
        }
    }
    let [.., before, last] = column else {
        return false;
    };
    let may_name = matches!(last.kind, Kind::Word | Kind::Name | Kind::String)
        && !last.is_any(&["END", "NULL", "TRUE", "FALSE", "UNKNOWN"]);
    let ends = before.is_sign(b')')
        || before.is_sign(b'?')
        || before.kind != Kind::Sign && !before.is_any(OPERATORS);
    may_name && ends && !last.text.first().is_some_and(u8::is_ascii_digit)
}

/// As servers call it: as it is written, without comments.
fn title(column: &[Token<'_>], sql: &[u8]) -> Option<Vec<u8>> {
    let mut title = vec![b'`'];
    let mut before = column.first()?.start;
    for token in column {
        title.extend_from_slice(blanks(&sql[before..token.start], true));
        title.extend_from_slice(blanks(&sql[before..token.start], false));
        for byte in token.text {
            title.push(*byte);
            if *byte == b'`' {
                title.push(b'`');
            }
        }
        before = token.end();
    }
    title.push(b'`');
    (title.len() <= TITLE_LEN_MAX && !title.contains(&0)).then_some(title)
}

/// Between two tokens: what is blank before a comment, or behind it. Without one, all of it is
/// before.
fn blanks(gap: &[u8], before: bool) -> &[u8] {
    let first = gap.iter().position(|byte| !byte.is_ascii_whitespace());
    let last = gap.iter().rposition(|byte| !byte.is_ascii_whitespace());
    match (first, last) {
        (Some(first), _) if before => &gap[..first],
        (_, Some(last)) => &gap[last + 1..],
        _ if before => gap,
        _ => &[],
    }
}

/// For the fuzzer: what is replaced is replaced whole.
///
/// # Panics
/// If nothing was.
pub fn fuzz_with_counts(sql: &[u8]) {
    let own =
        own_number_from(sql, Lexing::Escapes, "conf").map(|from| OwnNumber { number: 9, from });
    let counts = Counts {
        row_count: Some(-1),
        found_rows: Some(7),
        warns: false,
        last_gtid: Some("0-1-7"),
        own,
    };
    if let Some(replaced) = with_counts(sql, Lexing::Escapes, counts) {
        assert_ne!(replaced, sql);
        let _again = with_counts(&replaced, Lexing::Escapes, counts);
        let _first = words::first_comment(&replaced, Lexing::Escapes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of half a megabyte each: with a loop in a loop this test would take minutes.
    #[test]
    fn long_texts_are_written_anew_in_one_pass() {
        let n = 60_000;
        let nested = "SELECT (".repeat(n) + "CONNECTION_ID()" + &")".repeat(n);
        for sql in [
            format!(
                "SELECT CONNECTION_ID(), {} 1 FROM t sys",
                "sys.a, ".repeat(n)
            ),
            format!(
                "{}SELECT {} 1",
                "(".repeat(n),
                "CONNECTION_ID(), ".repeat(n)
            ),
            format!(
                "SELECT {} {} 1",
                "1, ".repeat(n),
                "CONNECTION_ID(), ".repeat(n)
            ),
            format!(
                "SELECT {} ROW_COUNT(), 1",
                "(SELECT FOUND_ROWS() x), ".repeat(n)
            ),
            nested,
        ] {
            let own = own_number_from(sql.as_bytes(), Lexing::Escapes, "conf")
                .map(|from| OwnNumber { number: 9, from });
            assert!(own.is_some(), "{}", &sql[..40]);
            let counts = Counts {
                row_count: Some(-1),
                found_rows: Some(7),
                warns: false,
                last_gtid: None,
                own,
            };
            assert!(
                with_counts(sql.as_bytes(), Lexing::Escapes, counts).is_some(),
                "{}",
                &sql[..40]
            );
        }
        // What is beyond any bound keeps the server's number.
        let endless = "SELECT CONNECTION_ID()".to_owned() + &",".repeat(1_000_000);
        assert_eq!(
            own_number_from(endless.as_bytes(), Lexing::Escapes, "conf"),
            None
        );
    }

    fn replaced(sql: &str, count: i64) -> Option<String> {
        let counts = Counts {
            row_count: Some(count),
            ..Counts::default()
        };
        with_counts(sql.as_bytes(), Lexing::Escapes, counts)
            .map(|text| String::from_utf8(text).expect("it was text"))
    }

    #[test]
    fn a_column_keeps_its_title() {
        let three = "CAST('000000000000000000003' AS SIGNED)";
        for (sql, wanted) in [
            (
                "SELECT ROW_COUNT()",
                format!("SELECT {three} AS `ROW_COUNT()`"),
            ),
            (
                "select row_count ( ), 1",
                format!("select {three} AS `row_count ( )`, 1"),
            ),
            (
                "SELECT LAST_INSERT_ID(), ROW_COUNT();",
                format!("SELECT LAST_INSERT_ID(), {three} AS `ROW_COUNT()`;"),
            ),
            ("SELECT ROW_COUNT() AS n", format!("SELECT {three} AS n")),
            (
                "SELECT `ROW_COUNT`()",
                format!("SELECT {three} AS ```ROW_COUNT``()`"),
            ),
            (
                "SELECT ROW_COUNT() n FROM DUAL",
                format!("SELECT {three} n FROM DUAL"),
            ),
            (
                "SELECT ROW_COUNT() FROM DUAL",
                format!("SELECT {three} AS `ROW_COUNT()` FROM DUAL"),
            ),
            (
                "INSERT INTO t VALUES (ROW_COUNT())",
                format!("INSERT INTO t VALUES ({three})"),
            ),
            (
                "SELECT IF(ROW_COUNT() = 3, 'ROW_COUNT()', 1)",
                format!(
                    "SELECT IF({three} = 3, 'ROW_COUNT()', 1) AS `IF(ROW_COUNT() = 3, 'ROW_COUNT()', 1)`"
                ),
            ),
            (
                "SELECT DISTINCT ROW_COUNT()/* why */ +1",
                format!("SELECT DISTINCT {three}/* why */ +1 AS `ROW_COUNT() +1`"),
            ),
            (
                "SELECT ROW_COUNT() + a FROM t",
                format!("SELECT {three} + a AS `ROW_COUNT() + a` FROM t"),
            ),
            (
                "SELECT 1 + ROW_COUNT() `n`",
                format!("SELECT 1 + {three} `n`"),
            ),
            (
                "SELECT `a` - ROW_COUNT() FROM t",
                format!("SELECT `a` - {three} AS ```a`` - ROW_COUNT()` FROM t"),
            ),
            (
                "SELECT ROW_COUNT() IS NULL",
                format!("SELECT {three} IS NULL AS `ROW_COUNT() IS NULL`"),
            ),
            (
                "SELECT ROW_COUNT() DIV a, 'x' y",
                format!("SELECT {three} DIV a AS `ROW_COUNT() DIV a`, 'x' y"),
            ),
            (
                "INSERT INTO t SELECT ROW_COUNT() + 1 ON DUPLICATE KEY UPDATE a = ROW_COUNT()",
                format!(
                    "INSERT INTO t SELECT {three} + 1 AS `ROW_COUNT() + 1` ON DUPLICATE KEY UPDATE a = {three}"
                ),
            ),
            (
                "SELECT (SELECT ROW_COUNT()), EXTRACT(DAY FROM a) FROM t WHERE b = ROW_COUNT()",
                format!(
                    "SELECT (SELECT {three} AS `ROW_COUNT()`) AS `(SELECT ROW_COUNT())`, EXTRACT(DAY FROM a) FROM t WHERE b = {three}"
                ),
            ),
        ] {
            assert_eq!(replaced(sql, 3).as_deref(), Some(&*wanted), "{sql}");
        }
        let minus = "SELECT CAST('-00000000000000000001' AS SIGNED)+1 AS `ROW_COUNT()+1`";
        assert_eq!(replaced("SELECT ROW_COUNT()+1", -1).as_deref(), Some(minus));
    }

    #[test]
    fn what_is_no_call_stays() {
        for sql in [
            "SELECT 'ROW_COUNT()'",
            "SELECT row_count FROM t",
            "SELECT s.row_count()",
            "SELECT @row_count()",
            "SELECT FOUND_ROWS()",
        ] {
            assert_eq!(replaced(sql, 3), None, "{sql}");
        }
    }

    #[test]
    fn found_rows_stay_in_the_text_where_the_server_warns_of_them() {
        let with = |sql: &str, warns, row_count| {
            let counts = Counts {
                row_count,
                found_rows: Some(12),
                warns,
                ..Counts::default()
            };
            with_counts(sql.as_bytes(), Lexing::Escapes, counts)
                .map(|text| String::from_utf8(text).expect("it was text"))
        };
        let twelve = "CAST('000000000000000000012' AS SIGNED)";
        for (warns, value) in [
            (false, twelve.to_owned()),
            (true, format!("IF(1,{twelve},FOUND_ROWS())")),
        ] {
            assert_eq!(
                with("SELECT FOUND_ROWS()+0", warns, None),
                Some(format!("SELECT {value}+0 AS `FOUND_ROWS()+0`"))
            );
            assert_eq!(
                with("INSERT INTO t VALUES (found_rows(), ?)", warns, None),
                Some(format!("INSERT INTO t VALUES ({value}, ?)"))
            );
        }
        let both = format!("DO {twelve}, CAST('000000000000000000002' AS SIGNED)");
        assert_eq!(
            with("DO FOUND_ROWS(), ROW_COUNT()", false, Some(2)),
            Some(both)
        );
        assert_eq!(
            with("SELECT SQL_CALC_FOUND_ROWS a FROM t", false, None),
            None
        );
    }

    #[test]
    fn the_last_gtid_stands_wherever_it_is_read() {
        let with = |sql: &str, value: &str| {
            let counts = Counts {
                row_count: Some(3),
                last_gtid: Some(value),
                ..Counts::default()
            };
            with_counts(sql.as_bytes(), Lexing::Escapes, counts)
                .map(|text| String::from_utf8(text).expect("it was text"))
        };
        let value = "(_utf8'0-1-7')";
        for (sql, wanted) in [
            (
                "SELECT @@last_gtid",
                format!("SELECT {value} AS `@@last_gtid`"),
            ),
            (
                "select 1, @@SESSION.Last_Gtid from dual",
                format!("select 1, {value} AS `@@SESSION.Last_Gtid` from dual"),
            ),
            (
                "SELECT @@local . `last_gtid` 'g'",
                format!("SELECT {value} 'g'"),
            ),
            ("SELECT @@last_gtid AS g", format!("SELECT {value} AS g")),
            (
                "SELECT MASTER_GTID_WAIT(@@last_gtid, 1) w",
                format!("SELECT MASTER_GTID_WAIT({value}, 1) w"),
            ),
            ("SET @g = @@last_gtid", format!("SET @g = {value}")),
            (
                "INSERT INTO log VALUES (1, @@last_gtid, NOW())",
                format!("INSERT INTO log VALUES (1, {value}, NOW())"),
            ),
            (
                "SELECT CONCAT('a', @@last_gtid, 'b'), a IN (0, @@last_gtid, 2)",
                format!(
                    "SELECT CONCAT('a', {value}, 'b') AS `CONCAT('a', @@last_gtid, 'b')`, a IN (0, {value}, 2) AS `a IN (0, @@last_gtid, 2)`"
                ),
            ),
            (
                "SELECT a FROM t ORDER BY b, @@last_gtid",
                format!("SELECT a FROM t ORDER BY b, {value}"),
            ),
            (
                "SELECT @@last_gtid, ROW_COUNT(), 'last_gtid'",
                format!(
                    "SELECT {value} AS `@@last_gtid`, CAST('000000000000000000003' AS SIGNED) AS `ROW_COUNT()`, 'last_gtid'"
                ),
            ),
        ] {
            assert_eq!(with(sql, "0-1-7").as_deref(), Some(&*wanted), "{sql}");
        }
        assert_eq!(with("DO @@last_gtid", "").as_deref(), Some("DO (_utf8'')"));
        for sql in [
            "SELECT 1",
            "SELECT last_gtid FROM t",
            "SELECT @last_gtid, @@global.last_gtid",
            "SELECT @@last_gtids",
        ] {
            assert_eq!(with(sql, "0-1-7"), None, "{sql}");
        }
        assert_eq!(with("SELECT @@last_gtid", "a'b"), None);
    }
}
