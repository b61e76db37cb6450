//! The comment behind a statement: tracers write there what is different each time, and no server
//! makes anything of it.

use crate::lexing::Lexing;
use crate::words::Token;

/// The text without the `/* … */` behind its last token. Only where these cannot be a part of a
/// column's name: behind a FROM that stands in no brackets. What a server executes, and what stands
/// behind `--` or `#`, stays.
#[must_use]
pub fn without_tail(text: &[u8], lexing: Lexing) -> &[u8] {
    cut(text, lexing, |seen| seen.from)
}

/// Returns the text without the comment behind its last token, for a statement that a server is to
/// prepare, which may be any. It also goes where there are no columns that could have names. A
/// program or a view keeps what stands in its text, and of what `RETURNING` is about there are
/// columns.
#[must_use]
pub fn without_tail_of_prepared(text: &[u8], lexing: Lexing) -> &[u8] {
    cut(text, lexing, |seen| match seen.first {
        Some(first) if first.is_any(&["SELECT", "WITH"]) => seen.from && !seen.returning,
        Some(first) if first.is_any(&["INSERT", "UPDATE", "DELETE", "REPLACE"]) => !seen.returning,
        _ => false,
    })
}

/// Facts that are seen in a statement.
#[derive(Default)]
struct Seen<'a> {
    first: Option<Token<'a>>,
    /// A FROM that stands in no brackets.
    from: bool,
    returning: bool,
}

fn cut<'a>(text: &'a [u8], lexing: Lexing, may_go: impl Fn(&Seen<'a>) -> bool) -> &'a [u8] {
    if !text.trim_ascii_end().ends_with(b"*/") || !lexing.is_sure_of(text) {
        return text;
    }
    let (mut depth, mut end, mut seen) = (0_usize, 0, Seen::default());
    for token in lexing.words(text) {
        seen.first = seen.first.or(Some(token));
        if token.is_sign(b'(') {
            depth += 1;
        } else if token.is_sign(b')') {
            depth = depth.saturating_sub(1);
        } else {
            seen.from |= depth == 0 && token.is("FROM");
            seen.returning |= token.is("RETURNING");
        }
        end = token.end();
    }
    match (text.get(..end), text.get(end..)) {
        (Some(statement), Some(rest)) if may_go(&seen) && are_plain(rest) => statement,
        _ => text,
    }
}

/// Whether these are comments that no server reads, and blanks.
fn are_plain(rest: &[u8]) -> bool {
    let mut rest = rest.trim_ascii_start();
    while let Some(len) = plain_comment_len(rest) {
        rest = rest[len..].trim_ascii_start();
    }
    rest.is_empty()
}

/// Bytes of the comment that a text begins with, if that is one that no server reads.
pub(crate) fn plain_comment_len(text: &[u8]) -> Option<usize> {
    let inside = match text {
        [b'/', b'*', b'!' | b'+', ..] | [b'/', b'*', b'M' | b'm', b'!', ..] => return None,
        [b'/', b'*', inside @ ..] => inside,
        _ => return None,
    };
    memchr::memmem::find(inside, b"*/").map(|length| 2 + length + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_comment_at_the_end_is_left_out() {
        let cut = |text: &'static str| {
            std::str::from_utf8(without_tail(text.as_bytes(), Lexing::Escapes)).unwrap()
        };
        for text in [
            "SELECT a FROM t",
            "SELECT a FROM t WHERE b = (SELECT 1)",
            "SELECT a, ' FROM ' FROM t /* x */ WHERE b = 'y'",
            "SELECT a FROM t;",
            "/* x */ SELECT (a) FROM t",
        ] {
            for tail in [
                "/*trace=1*/",
                " /* a */ /* b */ ",
                "\n/**/",
                " /*module='m', x=\"!\"*/\n",
                "/* it's */",
            ] {
                let whole: &'static str = format!("{text}{tail}").leak();
                assert_eq!(cut(whole), text, "{whole}");
            }
        }
    }

    #[test]
    fn of_what_is_prepared_it_goes_where_no_column_has_it() {
        let cut = |text: &'static str| {
            std::str::from_utf8(without_tail_of_prepared(text.as_bytes(), Lexing::Escapes)).unwrap()
        };
        for text in [
            "SELECT a FROM t WHERE b = ?",
            "INSERT INTO t VALUES (?)",
            "UPDATE t SET a = ? WHERE b = '/* x */'",
            "delete from t where a = ?;",
            "REPLACE INTO t SELECT 1",
            "WITH x AS (SELECT 1) SELECT * FROM x",
        ] {
            let whole: &'static str = format!("{text} /*traceparent='00-1'*/ ").leak();
            assert_eq!(cut(whole), text);
        }
        for text in [
            "SELECT ? /* x */",
            "INSERT INTO t VALUES (?) RETURNING a + 1 /* x */",
            "DELETE FROM t RETURNING a + 1 /* x */",
            "UPDATE t SET a = ? /*! WHERE b = 1 */",
            "UPDATE t SET a = ? -- x */",
            "CREATE PROCEDURE p() DELETE FROM t /* x */",
            "CREATE VIEW v AS SELECT a FROM t /* x */",
            "WITH x AS (SELECT 1 FROM t) SELECT 1 /* x */",
            "CALL p(?) /* x */",
            "/* x */",
        ] {
            assert_eq!(cut(text), text);
        }
    }

    #[test]
    fn what_may_mean_something_stays() {
        for text in [
            "SELECT 1 /* x */",
            "SELECT (SELECT 1 FROM t) /* x */",
            "SELECT EXTRACT(YEAR FROM d) /* x */",
            "SELECT `from` /* x */",
            "SELECT a FROM t /*! FOR UPDATE */",
            "SELECT a FROM t /*!40001 SQL_NO_CACHE */ /* x */ /*!*/",
            "SELECT a FROM t /*M!100100 LIMIT 1 */",
            "SELECT a FROM t /*+ NO_ICP(t) */",
            "SELECT a FROM t -- x */",
            "SELECT a FROM t # /* x */",
            "SELECT a FROM t WHERE b = '/* x */",
            "SELECT a FROM t WHERE b = 'x */",
            "SELECT a FROM t /* x */ LIMIT 1",
            "SELECT a FROM t /* x",
            "*/",
        ] {
            assert_eq!(
                without_tail(text.as_bytes(), Lexing::Escapes),
                text.as_bytes(),
                "{text}"
            );
        }
        let unsure = br"SELECT a FROM t WHERE b = '\' /* x */";
        assert_eq!(
            without_tail(unsure, Lexing::Unsure { shifts: false }),
            unsure
        );
    }
}
