//! The comment right behind the first word: where hints that do not stand first are written, and no
//! server makes anything of it.

use crate::tail::plain_comment_len;
use std::borrow::Cow;

/// First words behind which a comment is in no column's name: the first column comes later.
const FIRST: [&str; 5] = ["SELECT", "INSERT", "UPDATE", "DELETE", "REPLACE"];

/// The text without the `/* … */` between its first word and the next one. What a server executes,
/// or obeys where it stands there (`/*+ … */`), stays with all that is beside it: without the
/// comment before it, it would be obeyed that was not.
#[must_use]
pub fn without_inner(text: &[u8]) -> Cow<'_, [u8]> {
    match parts(text) {
        Some((first, rest)) => Cow::Owned([first, b" ", rest].concat()),
        None => Cow::Borrowed(text),
    }
}

/// The first word, and what follows the comments behind it.
fn parts(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let len = FIRST.iter().find(|word| starts_with(text, word))?.len();
    let (first, behind) = text.split_at(len);
    let mut rest = behind.trim_ascii_start();
    while let Some(len) = plain_comment_len(rest) {
        rest = rest[len..].trim_ascii_start();
    }
    let is_done = !rest.is_empty() && !rest.starts_with(b"/*");
    (is_done && behind.trim_ascii_start().starts_with(b"/*")).then_some((first, rest))
}

fn starts_with(text: &[u8], word: &str) -> bool {
    text.get(..word.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(word.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::Words;

    fn cut(text: &str) -> String {
        String::from_utf8(without_inner(text.as_bytes()).into_owned()).unwrap()
    }

    #[test]
    fn a_comment_behind_the_first_word_is_left_out() {
        for (text, wanted) in [
            ("SELECT /* min_gtid=u:1 */ a FROM t", "SELECT a FROM t"),
            ("select/**/a", "select a"),
            ("SELECT /* a */ /* b */\n1", "SELECT 1"),
            ("SELECT /* it's \\ \" */ 'x' /* y */", "SELECT 'x' /* y */"),
            (
                "INSERT /* x */ INTO t VALUES (1)",
                "INSERT INTO t VALUES (1)",
            ),
            ("UPDATE /* x */ t SET a = 1", "UPDATE t SET a = 1"),
            ("DELETE /* x */ FROM t", "DELETE FROM t"),
            ("REPLACE /* x */ t VALUES (1)", "REPLACE t VALUES (1)"),
            ("SELECT /* x */ -- y\n1", "SELECT -- y\n1"),
        ] {
            assert_eq!(cut(text), wanted);
            assert_eq!(
                Words::new(text.as_bytes()).count(),
                Words::new(wanted.as_bytes()).count(),
                "{text}"
            );
        }
    }

    #[test]
    fn what_may_mean_something_stays() {
        for text in [
            "SELECT 1 /* x */",
            "SELECT a, /* x */ b FROM t",
            "SELECT DISTINCT /* x */ a FROM t",
            "SELECT /*+ NO_ICP(t) */ a FROM t",
            "SELECT /* x */ /*+ NO_ICP(t) */ a FROM t",
            "SELECT /*! SQL_NO_CACHE */ a FROM t",
            "SELECT /* x */ /*!80000 SQL_NO_CACHE */ a FROM t",
            "SELECT /* x */ /*M! SQL_NO_CACHE */ a FROM t",
            "SELECT -- x\n/* y */ a",
            "SELECT # x\n/* y */ a",
            "SELECT /* x",
            "SELECT /* x */",
            "SELECT",
            "SELECTED /* x */ a",
            "REPLACE(/* x */ a)",
            "(SELECT /* x */ 1)",
            "WITH /* x */ t AS (SELECT 1) SELECT 1",
            "CALL /* x */ p()",
            "CREATE /* x */ VIEW v AS SELECT 1",
            "",
        ] {
            assert_eq!(cut(text), text);
        }
    }
}
