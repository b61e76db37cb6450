//! What a digest does not show, and whether a server reads something in it.
//!
//! A digest has blanks for comments and `?` for strings, and finds both by rules of its own (`digest.rs`), which are ProxySQL's: a backslash always
//! escapes, backquotes mean nothing, `/*M!` is a comment, and `--` at the end of a line takes the next line along. Where a server reads otherwise, two statements
//! of one digest are not two statements of one shape. Nor are they where MySQL does what a comment says: an optimizer hint may set variables of the session.

use crate::reading::Lexing;
use crate::words::{Kind, Token, end_of_quoted};
use std::ops::Range;

/// Whether all that the digest of this text leaves out is, to a server, comments and the insides of strings. `ansi_quotes`: what stands in double quotes
/// may be a name to it. Of what an optimizer hint asks, variables and resource groups count.
#[must_use]
pub fn is_shown(sql: &[u8], lexing: Lexing, ansi_quotes: bool) -> bool {
    if has_setting_hint(sql) {
        return false;
    }
    if lexing.shifts() && !sql.is_ascii() || matches!(lexing, Lexing::Unsure { .. }) && lexing.hides(sql) {
        return false;
    }
    let is_sure = |token: Token<'_>| match token.kind {
        // A name knows no escapes: it would end elsewhere.
        Kind::String => !ansi_quotes || token.text[0] != b'"' || memchr::memmem::find(token.text, b"\\\"").is_none(),
        // In Latin-1 this byte is a blank. In UTF-8 it never follows ASCII.
        Kind::Word => memchr::memchr_iter(0xA0, token.text).all(|at| at > 0 && !token.text[at - 1].is_ascii()),
        Kind::Name | Kind::Sign => true,
    };
    let mut words = lexing.words(sql);
    let tokens = words.by_ref();
    let mut token = tokens.next();
    for hidden in (Hidden { sql, at: 0 }) {
        while let Some(passed) = token.filter(|token| token.end() <= hidden.start) {
            if !is_sure(passed) {
                return false;
            }
            token = tokens.next();
        }
        let is_harmless = token.is_none_or(|token| {
            token.start >= hidden.end || token.kind == Kind::String && token.start <= hidden.start && hidden.end <= token.end()
        });
        if !is_harmless {
            return false;
        }
    }
    let are_sure = token.is_none_or(is_sure) && tokens.all(is_sure);
    // What some servers skip, the digest shows.
    are_sure && (!words.is_conditional() || is_one_conditional_comment(sql))
}

/// Whether there may be an optimizer hint that changes more than how a statement is executed. Inside of a string it is none, which is so rare that nobody looks.
/// <https://dev.mysql.com/doc/refman/8.4/en/optimizer-hints.html>
fn has_setting_hint(sql: &[u8]) -> bool {
    let asks = |inside: &[u8]| ["SET_VAR", "RESOURCE_GROUP"].iter().any(|name| contains_in_any_case(inside, name.as_bytes()));
    memchr::memmem::find_iter(sql, b"/*+").any(|at| {
        let inside = &sql[at + 3..];
        asks(&inside[..memchr::memmem::find(inside, b"*/").unwrap_or(inside.len())])
    })
}

fn contains_in_any_case(text: &[u8], name: &[u8]) -> bool {
    text.windows(name.len()).any(|part| part.eq_ignore_ascii_case(name))
}

/// Whether something in double quotes would end elsewhere if it was a name.
#[must_use]
pub fn quotes_matter(sql: &[u8], lexing: Lexing) -> bool {
    let matters = |token: Token<'_>| {
        token.kind == Kind::String && token.text[0] == b'"' && memchr::memmem::find(token.text, b"\\\"").is_some()
    };
    memchr::memmem::find(sql, b"\\\"").is_some() && lexing.words(sql).any(matters)
}

/// Whether the text is one `/*!80000 … */` and nothing else, of which a server runs all that the digest shows, or nothing. What a digest shows of such a
/// comment has blanks for ends of lines, so there may be no comment in it.
fn is_one_conditional_comment(sql: &[u8]) -> bool {
    let inside = sql.trim_ascii().strip_prefix(b"/*!").and_then(|rest| rest.strip_suffix(b"*/"));
    let Some(inside) = inside else { return false };
    let version = inside.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (text, signs) = (inside[version..].trim_ascii_start(), [&b"/*"[..], b"*/", b"--", b"#", b"\\"]);
    matches!(version, 5 | 6)
        && inside[version..].first().is_some_and(u8::is_ascii_whitespace)
        && text.first().is_some_and(u8::is_ascii_alphabetic)
        && signs.iter().all(|sign| memchr::memmem::find(text, sign).is_none())
}

/// Strings and comments as a digest finds them, but for executable comments, whose text it shows.
struct Hidden<'a> {
    sql: &'a [u8],
    at: usize,
}

impl Iterator for Hidden<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let sql = self.sql;
        let line = |from: usize| {
            let from = from.min(sql.len());
            memchr::memchr(b'\n', &sql[from..]).map_or(sql.len(), |length| from + length + 1)
        };
        while let Some(&byte) = sql.get(self.at) {
            let at = self.at;
            let end = match byte {
                b'\'' | b'"' => end_of_quoted(sql, at, true).unwrap_or(sql.len()),
                b'#' => line(at + 1),
                b'-' if matches!(sql[at..], [_, b'-', b' ' | b'\t' | b'\n' | b'\r' | 0x0B | 0x0C, ..]) => line(at + 3),
                b'/' if sql.get(at + 1) == Some(&b'*') => {
                    let inside = &sql[at + 2..];
                    let end = memchr::memmem::find(inside, b"*/").map_or(sql.len(), |length| at + length + 4);
                    if inside.first() == Some(&b'!') {
                        self.at = end;
                        continue;
                    }
                    end
                }
                _ => {
                    self.at += 1;
                    continue;
                }
            };
            self.at = end;
            return Some(at..end);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DigestOptions, digest};

    fn shown(sql: &[u8]) -> bool {
        is_shown(sql, Lexing::Escapes, false)
    }

    #[test]
    fn what_servers_and_digests_read_alike_is_shown() {
        for sql in [
            "SELECT a FROM t WHERE id=1",
            "SELECT /* why */ a FROM t -- because\nWHERE id = 'it''s \\' # -- /* ' AND b = \"x\" # end",
            "SELECT `a b` FROM `t` /*!40101 FORCE INDEX (i) */ WHERE a = ''",
            "SELECT a --1 FROM t",
            "-- first\nSELECT 1 /* -- */",
            "SELECT 'a' 'b', \"\"",
            "SELECT a FROM t WHERE id=1 --\r\nUNION SELECT password FROM users",
            "SELECT /*+ NO_ICP(t) MAX_EXECUTION_TIME(1000) */ set_var FROM t /* SET_VAR */",
        ] {
            assert!(shown(sql.as_bytes()), "{sql}");
        }
        assert!(is_shown(b"SELECT 'a' '\\\\b'", Lexing::NoEscapes, false));
        let unsure = Lexing::Unsure { shifts: false };
        assert!(is_shown(b"SELECT 'a' '\\\\b\\n'", unsure, false));
        assert!(
            !is_shown(br"SELECT 'it\'s'", unsure, false)
                && !is_shown(br"SELECT '\' UNION SELECT password FROM users -- '", unsure, false)
        );
        assert!(is_shown(b"SELECT 'a'", Lexing::Shifts(crate::Shift::Gbk), false));
    }

    #[test]
    fn what_only_servers_read_is_not_shown() {
        for sql in [
            "SELECT a FROM t WHERE id=1 --\nUNION SELECT password FROM users",
            "SELECT a FROM t WHERE id=1 /*M! UNION SELECT password FROM users */",
            "SELECT a FROM t WHERE id=1 /*M!100100 UNION SELECT password FROM users */",
            "SELECT a FROM t WHERE a=b /*!99999 AND deleted IS NULL */",
            "SELECT a AS `#`, password\n FROM users",
            "SELECT a AS `-- `, password\n FROM users",
            "SELECT a AS `/*`, password AS `*/` FROM users",
            "SELECT a AS `'`, password AS `'` FROM t",
            "SELECT `it's` FROM t WHERE a = `'`",
            "DELETE /*+ SET_VAR(foreign_key_checks=0) */ FROM parent WHERE id=7",
            "DELETE /*+BKA(t) set_var (foreign_key_checks=0)",
            "SELECT a FROM t WHERE b IN (SELECT /*+ QB_NAME(q) Resource_Group(g) */ c FROM u)",
            "/*!50000 DELETE /*+ SET_VAR(foreign_key_checks=0) */ FROM parent WHERE id=7 */",
        ] {
            assert!(!shown(sql.as_bytes()), "{sql}");
        }
        assert!(!is_shown(br"SELECT a FROM t WHERE b='\' UNION SELECT password FROM users -- '", Lexing::NoEscapes, false));
        assert!(!is_shown(
            b"SELECT a FROM t WHERE b='\xbf\\' UNION SELECT password FROM users -- '",
            Lexing::Shifts(crate::Shift::Gbk),
            false
        ));
    }

    #[test]
    fn bytes_of_values_hide_nothing() {
        for sql in [
            &b"INSERT INTO f VALUES (1,_binary'\x01\xa0\\'\xff', \"\xa0\")"[..],
            b"INSERT INTO f VALUES ('caf\xe9\xa0') /* \xa0 */ -- \xa0",
            "SELECT a AS à FROM t".as_bytes(),
            b"SELECT a FROM t WHERE b=\"say \\\"hello\\\" to it\"",
        ] {
            assert!(shown(sql), "{}", sql.escape_ascii());
        }
        // This byte is a blank in Latin-1, which makes the comment.
        assert!(!shown(b"DELETE FROM t WHERE a=1 --\xa0 AND b=2"));
        // A name ends there, if it is one.
        let sql = br#"SELECT a FROM t WHERE b="\", password FROM users -- ""#;
        assert!(shown(sql) && !is_shown(sql, Lexing::Escapes, true) && quotes_matter(sql, Lexing::Escapes));
        for sql in [&br#"SELECT "a" FROM "t" WHERE "b"='\"'"#[..], br#"SELECT "a\b", "\n" FROM t"#] {
            assert!(is_shown(sql, Lexing::Escapes, true), "{}", sql.escape_ascii());
        }
    }

    #[test]
    fn a_comment_for_some_servers_is_shown_if_it_is_all_there_is() {
        for sql in [
            "/*!80000 SET SESSION information_schema_stats_expiry=0 */",
            " /*!100100 SET a='x', b = \"y\"*/\n",
            "/*!080400 SET a=1 */",
        ] {
            assert!(shown(sql.as_bytes()), "{sql}");
        }
        for sql in [
            "/*!80000 SET a=1 */ , b=2",
            "SET a=1 /*!80000 , b=2 */",
            "/*!80000 DELETE FROM t WHERE a=1 */ /*!99999 AND b=2 */",
            "/*!80000 DELETE FROM t WHERE a=1 */ /*!40000 AND b=2 */",
            "/*!80000 SELECT '*/ DROP TABLE t -- ' */",
            "/*!80000 DELETE FROM t -- WHERE a=1 */",
            "/*!80000 DELETE FROM t #\n WHERE a=1 */",
            "/*!80000 SET a='\\', b='x' */",
            "/*!80000 1 SET a=1 */",
            "/*!80000SET a=1 */",
            "/*M!100100 SET a=1 */",
            "/*!80000 SET a=1",
            "/*!80000*/",
        ] {
            assert!(!shown(sql.as_bytes()), "{sql}");
        }
    }

    #[test]
    fn it_hides_what_a_digest_leaves_out() {
        // The attacks have the digest of what they hide behind.
        let of = |sql: &str| {
            let mut text = Vec::new();
            digest(sql.as_bytes(), &DigestOptions::default(), &mut text);
            String::from_utf8(text).unwrap()
        };
        for sql in [
            "SELECT a FROM t WHERE id=1 --\nUNION SELECT password FROM users",
            "SELECT a FROM t WHERE id=1 /*M! UNION SELECT password FROM users */",
        ] {
            assert_eq!(of(sql), "SELECT a FROM t WHERE id=?");
        }
    }
}
