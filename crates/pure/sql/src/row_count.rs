//! `ROW_COUNT()` in a text, replaced by what it is.

use crate::words::{Kind, Token};
use crate::{Lexing, words};

/// The text with each call of `ROW_COUNT()` replaced by an expression of this value and of the same type, width and nullability; a call that
/// is a column by itself keeps its title. `None` if there is none, or if the text cannot be read for certain.
#[must_use]
pub fn with_row_count(sql: &[u8], lexing: Lexing, count: i64) -> Option<Vec<u8>> {
    if lexing.shifts() && !sql.is_ascii() || lexing.hides(sql) {
        return None;
    }
    let mut words = lexing.words(sql);
    let tokens: Vec<Token<'_>> = words.by_ref().collect();
    if words.is_conditional() {
        return None;
    }
    let mut out = Vec::with_capacity(sql.len() + 64);
    let mut copied = 0;
    for (at, three) in tokens.windows(3).enumerate() {
        let [name, open, close] = three else { continue };
        if !name.is("ROW_COUNT") || !open.is_sign(b'(') || !close.is_sign(b')') {
            continue;
        }
        let before = at.checked_sub(1).and_then(|before| tokens.get(before));
        if before.is_some_and(|before| before.is_sign(b'.') || before.is_sign(b'@')) {
            continue;
        }
        out.extend_from_slice(&sql[copied..name.start]);
        // As wide as the function: 21 characters, whatever the value.
        let digits = if count < 0 { format!("-{:020}", count.unsigned_abs()) } else { format!("{count:021}") };
        out.extend_from_slice(format!("CAST('{digits}' AS SIGNED)").as_bytes());
        if before.is_some_and(|before| before.is("SELECT") || before.is_sign(b',')) && ends_column(tokens.get(at + 3)) {
            out.extend_from_slice(b" AS `");
            out.extend_from_slice(&sql[name.start..close.end()]);
            out.push(b'`');
        }
        copied = close.end();
    }
    if copied == 0 {
        return None;
    }
    out.extend_from_slice(&sql[copied..]);
    Some(out)
}

/// Whether what comes next is no part of the column, nor its name.
fn ends_column(next: Option<&Token<'_>>) -> bool {
    const CLAUSES: &[&str] =
        &["FROM", "INTO", "LIMIT", "UNION", "WHERE", "ORDER", "HAVING", "GROUP", "FOR", "LOCK", "EXCEPT", "INTERSECT"];
    match next {
        None => true,
        Some(token) => token.is_sign(b',') || token.is_sign(b';') || (token.kind == Kind::Word && token.is_any(CLAUSES)),
    }
}

/// For the fuzzer: what is replaced is replaced whole.
///
/// # Panics
/// If a call is left.
pub fn fuzz_with_row_count(sql: &[u8]) {
    if let Some(replaced) = with_row_count(sql, Lexing::Escapes, -1) {
        assert!(replaced.len() > sql.len());
        let _again = with_row_count(&replaced, Lexing::Escapes, 1);
        let _first = words::first_comment(&replaced, Lexing::Escapes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaced(sql: &str, count: i64) -> Option<String> {
        with_row_count(sql.as_bytes(), Lexing::Escapes, count).map(|text| String::from_utf8(text).expect("it was text"))
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
            ("SELECT IF(ROW_COUNT() = 3, 'ROW_COUNT()', 1)", format!("SELECT IF({three} = 3, 'ROW_COUNT()', 1)")),
        ] {
            assert_eq!(replaced(sql, 3).as_deref(), Some(&*wanted), "{sql}");
        }
        assert_eq!(replaced("SELECT ROW_COUNT()+1", -1).as_deref(), Some("SELECT CAST('-00000000000000000001' AS SIGNED)+1"));
    }

    #[test]
    fn what_is_no_call_stays() {
        for sql in ["SELECT 'ROW_COUNT()'", "SELECT row_count FROM t", "SELECT s.row_count()", "SELECT @row_count()"] {
            assert_eq!(replaced(sql, 3), None, "{sql}");
        }
    }
}
