//! `ROW_COUNT()` and `FOUND_ROWS()` in a text, replaced by what they are.

use crate::words::{Kind, Token};
use crate::{Lexing, words};

/// What is to be replaced, and by what.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counts {
    /// `ROW_COUNT()`.
    pub row_count: Option<i64>,
    /// `FOUND_ROWS()`.
    pub found_rows: Option<u64>,
    /// The server warns of `FOUND_ROWS()` wherever it stands: it stays in the text, without being asked.
    pub warns: bool,
}

/// The text with each call replaced by an expression of this value and of the same type, width and nullability. A column of a SELECT without a name of its
/// own keeps its title. `None` if there is no such call, or if the text cannot be read for certain.
#[must_use]
pub fn with_counts(sql: &[u8], lexing: Lexing, counts: Counts) -> Option<Vec<u8>> {
    if lexing.shifts() && !sql.is_ascii() || lexing.hides(sql) {
        return None;
    }
    let mut words = lexing.words(sql);
    let tokens: Vec<Token<'_>> = words.by_ref().collect();
    if words.is_conditional() {
        return None;
    }
    let calls: Vec<(usize, String)> = (0..tokens.len()).filter_map(|at| Some((at, value_of(&tokens, at, counts)?))).collect();
    if calls.is_empty() {
        return None;
    }
    let titles = titles(&tokens, sql, &calls);
    let mut out = Vec::with_capacity(sql.len() + 64);
    let (mut copied, mut calls, mut titles) = (0, calls.into_iter().peekable(), titles.into_iter().peekable());
    for (at, token) in tokens.iter().enumerate() {
        if let Some((_, value)) = calls.next_if(|(call, _)| *call == at) {
            out.extend_from_slice(&sql[copied..token.start]);
            out.extend_from_slice(value.as_bytes());
            copied = tokens.get(at + 2).map_or(sql.len(), Token::end);
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

/// What stands for the call that begins with this token, if one does that is to be replaced.
fn value_of(tokens: &[Token<'_>], at: usize, counts: Counts) -> Option<String> {
    let [name, open, close] = tokens.get(at..at + 3)? else { return None };
    if !open.is_sign(b'(') || !close.is_sign(b')') {
        return None;
    }
    let before = at.checked_sub(1).and_then(|before| tokens.get(before));
    if before.is_some_and(|before| before.is_sign(b'.') || before.is_sign(b'@')) {
        return None;
    }
    // As wide as the function: 21 characters, whatever the value.
    if name.is("ROW_COUNT") {
        let count = counts.row_count?;
        let digits = if count < 0 { format!("-{:020}", count.unsigned_abs()) } else { format!("{count:021}") };
        return Some(format!("CAST('{digits}' AS SIGNED)"));
    }
    if name.is("FOUND_ROWS") {
        let value = format!("CAST('{:021}' AS SIGNED)", counts.found_rows?);
        return Some(if counts.warns { format!("IF(1,{value},FOUND_ROWS())") } else { value });
    }
    None
}

/// What may stand between SELECT and its columns.
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
/// What ends the columns of a SELECT.
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
    "AND", "OR", "XOR", "NOT", "IS", "IN", "LIKE", "RLIKE", "REGEXP", "BETWEEN", "DIV", "MOD", "COLLATE", "ESCAPE", "BINARY",
    "SOUNDS", "CASE", "WHEN", "THEN", "ELSE", "INTERVAL", "MEMBER", "OF",
];
/// Identifiers have at most so many characters where they are titles.
const TITLE_LEN_MAX: usize = 250;

/// For each column of a SELECT that has such a call and no name of its own: its last token, and its title in backquotes.
fn titles(tokens: &[Token<'_>], sql: &[u8], calls: &[(usize, String)]) -> Vec<(usize, Vec<u8>)> {
    let mut found = Vec::new();
    // For each open parenthesis, where the column begins that is being read.
    let mut open: Vec<Option<usize>> = vec![None];
    let mut end = |column: Option<usize>, at: usize| {
        let Some(first) = column.filter(|first| *first < at) else { return };
        let has_call = calls.iter().any(|(call, _)| (first..at).contains(call));
        if has_call
            && !has_name(&tokens[first..at])
            && let Some(title) = title(&tokens[first..at], sql)
        {
            found.push((at - 1, title));
        }
    };
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let Some(column) = open.last_mut() else { break };
        if token.is("SELECT") {
            while tokens.get(at + 1).is_some_and(|next| next.is_any(MODIFIERS)) {
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

/// Whether the column is followed by a name, with or without AS.
fn has_name(column: &[Token<'_>]) -> bool {
    let mut depth = 0_i32;
    for token in column {
        depth += i32::from(token.is_sign(b'(')) - i32::from(token.is_sign(b')'));
        if depth == 0 && token.is("AS") {
            return true;
        }
    }
    let [.., before, last] = column else { return false };
    let may_name =
        matches!(last.kind, Kind::Word | Kind::Name | Kind::String) && !last.is_any(&["END", "NULL", "TRUE", "FALSE", "UNKNOWN"]);
    let ends = before.is_sign(b')') || before.kind != Kind::Sign && !before.is_any(OPERATORS);
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

/// Between two tokens: what is blank before a comment, or behind it. Without one, all of it is before.
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
    let counts = Counts { row_count: Some(-1), found_rows: Some(7), warns: false };
    if let Some(replaced) = with_counts(sql, Lexing::Escapes, counts) {
        assert_ne!(replaced, sql);
        let _again = with_counts(&replaced, Lexing::Escapes, counts);
        let _first = words::first_comment(&replaced, Lexing::Escapes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaced(sql: &str, count: i64) -> Option<String> {
        let counts = Counts { row_count: Some(count), ..Counts::default() };
        with_counts(sql.as_bytes(), Lexing::Escapes, counts).map(|text| String::from_utf8(text).expect("it was text"))
    }

    #[test]
    fn a_column_keeps_its_title() {
        let three = "CAST('000000000000000000003' AS SIGNED)";
        for (sql, wanted) in [
            ("SELECT ROW_COUNT()", format!("SELECT {three} AS `ROW_COUNT()`")),
            ("select row_count ( ), 1", format!("select {three} AS `row_count ( )`, 1")),
            ("SELECT LAST_INSERT_ID(), ROW_COUNT();", format!("SELECT LAST_INSERT_ID(), {three} AS `ROW_COUNT()`;")),
            ("SELECT ROW_COUNT() AS n", format!("SELECT {three} AS n")),
            ("SELECT ROW_COUNT() n FROM DUAL", format!("SELECT {three} n FROM DUAL")),
            ("SELECT ROW_COUNT() FROM DUAL", format!("SELECT {three} AS `ROW_COUNT()` FROM DUAL")),
            ("INSERT INTO t VALUES (ROW_COUNT())", format!("INSERT INTO t VALUES ({three})")),
            (
                "SELECT IF(ROW_COUNT() = 3, 'ROW_COUNT()', 1)",
                format!("SELECT IF({three} = 3, 'ROW_COUNT()', 1) AS `IF(ROW_COUNT() = 3, 'ROW_COUNT()', 1)`"),
            ),
            ("SELECT DISTINCT ROW_COUNT()/* why */ +1", format!("SELECT DISTINCT {three}/* why */ +1 AS `ROW_COUNT() +1`")),
            ("SELECT ROW_COUNT() + a FROM t", format!("SELECT {three} + a AS `ROW_COUNT() + a` FROM t")),
            ("SELECT 1 + ROW_COUNT() `n`", format!("SELECT 1 + {three} `n`")),
            ("SELECT `a` - ROW_COUNT() FROM t", format!("SELECT `a` - {three} AS ```a`` - ROW_COUNT()` FROM t")),
            ("SELECT ROW_COUNT() IS NULL", format!("SELECT {three} IS NULL AS `ROW_COUNT() IS NULL`")),
            ("SELECT ROW_COUNT() DIV a, 'x' y", format!("SELECT {three} DIV a AS `ROW_COUNT() DIV a`, 'x' y")),
            (
                "INSERT INTO t SELECT ROW_COUNT() + 1 ON DUPLICATE KEY UPDATE a = ROW_COUNT()",
                format!("INSERT INTO t SELECT {three} + 1 AS `ROW_COUNT() + 1` ON DUPLICATE KEY UPDATE a = {three}"),
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
            let counts = Counts { row_count, found_rows: Some(12), warns };
            with_counts(sql.as_bytes(), Lexing::Escapes, counts).map(|text| String::from_utf8(text).expect("it was text"))
        };
        let twelve = "CAST('000000000000000000012' AS SIGNED)";
        for (warns, value) in [(false, twelve.to_owned()), (true, format!("IF(1,{twelve},FOUND_ROWS())"))] {
            assert_eq!(with("SELECT FOUND_ROWS()+0", warns, None), Some(format!("SELECT {value}+0 AS `FOUND_ROWS()+0`")));
            assert_eq!(
                with("INSERT INTO t VALUES (found_rows(), ?)", warns, None),
                Some(format!("INSERT INTO t VALUES ({value}, ?)"))
            );
        }
        let both = format!("DO {twelve}, CAST('000000000000000000002' AS SIGNED)");
        assert_eq!(with("DO FOUND_ROWS(), ROW_COUNT()", false, Some(2)), Some(both));
        assert_eq!(with("SELECT SQL_CALC_FOUND_ROWS a FROM t", false, None), None);
    }
}
