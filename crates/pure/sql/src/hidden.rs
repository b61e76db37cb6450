//! What a digest does not show, and whether a server reads something in it.
//!
//! A digest has blanks for comments and `?` for strings, and finds both by rules of its own
//! (`digest.rs`), which are ProxySQL's: a backslash always escapes, backquotes mean nothing, `/*M!`
//! is a comment, and `--` at the end of a line takes the next line along. Where a server reads
//! otherwise, two statements of one digest are not two statements of one shape. Nor are they where
//! MySQL does what a comment says: an optimizer hint may set variables of the session. And a digest
//! takes some names, or parts of them, for numbers, and leaves out signs and the last part of a
//! list.

use crate::digest::{is_number, whole_digest};
use crate::lexing::Lexing;
use crate::words::{Kind, Token, end_of_quoted};
use std::ops::Range;

/// Shape of a statement, by which the firewall knows it. It does not depend on how the statistics
/// digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// The digest, made with [`crate::DigestOptions::WHOLE`].
    pub digest: u64,
    /// Whether all that it leaves out is, to a server, comments, numbers and the insides of
    /// strings.
    pub is_shown: bool,
}

/// The shape of a text; that of its digest goes into `text`. `ansi_quotes`: what stands in double
/// quotes may be a name to the server. Of what an optimizer hint asks, variables and resource
/// groups count.
pub fn shape(sql: &[u8], lexing: Lexing, ansi_quotes: bool, text: &mut Vec<u8>) -> Shape {
    let (digest, lacks) = whole_digest(sql, text);
    Shape {
        digest,
        is_shown: !lacks && is_shown(sql, lexing, ansi_quotes),
    }
}

/// Whether a server reads nothing but values in what digests leave out, as far as making the digest
/// does not tell.
fn is_shown(sql: &[u8], lexing: Lexing, ansi_quotes: bool) -> bool {
    if has_setting_hint(sql) || !has_plain_names(sql, lexing) {
        return false;
    }
    if lexing.shifts() && !sql.is_ascii() || lexing.hides(sql) {
        return false;
    }
    let is_sure = |token: Token<'_>| match token.kind {
        // A name knows no escapes: it would end elsewhere.
        Kind::String => {
            !ansi_quotes
                || token.text[0] != b'"'
                || memchr::memmem::find(token.text, b"\\\"").is_none()
        }
        // In Latin-1 this byte is a blank. In UTF-8 it never follows ASCII.
        Kind::Word => {
            !token.is_dollar_quote()
                && memchr::memchr_iter(0xA0, token.text)
                    .all(|at| at > 0 && !token.text[at - 1].is_ascii())
        }
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
            token.start >= hidden.end
                || token.kind == Kind::String
                    && token.start <= hidden.start
                    && hidden.end <= token.end()
        });
        if !is_harmless {
            return false;
        }
    }
    let are_sure = token.is_none_or(is_sure) && tokens.all(is_sure);
    // What some servers skip, the digest shows.
    are_sure && (!words.is_conditional() || is_one_conditional_comment(sql))
}

/// Whether the digest has all names of the text as they are.
fn has_plain_names(sql: &[u8], lexing: Lexing) -> bool {
    let none = Token {
        kind: Kind::Sign,
        text: b"",
        start: usize::MAX,
    };
    let mut before = [none; 2];
    for token in lexing.words(sql) {
        let is_behind = |sign: u8| before[1].is_sign(sign) && before[1].end() == token.start;
        let is_plain = match token.kind {
            Kind::Name => is_plain_name(&token.text[1..]),
            Kind::Word if token.text[0].is_ascii_digit() => {
                // `t.1` is a column, `@1` a variable.
                let of_a_name = is_behind(b'.')
                    && before[0].start != usize::MAX
                    && before[0].end() == before[1].start
                    && (before[0].kind == Kind::Name
                        || before[0].kind == Kind::Word && !is_a_number(before[0].text));
                !of_a_name
                    && !is_behind(b'@')
                    && (is_a_number(token.text) || is_shown_word(token.text, &sql[token.end()..]))
            }
            Kind::Word => !token
                .text
                .windows(2)
                .any(|pair| !pair[0].is_ascii() && pair[1].is_ascii_digit()),
            Kind::String | Kind::Sign => true,
        };
        if !is_plain {
            return false;
        }
        before = [before[1], token];
    }
    true
}

/// Whether a digest has the inside of these backquotes as it is: to it they are bytes like others.
fn is_plain_name(name: &[u8]) -> bool {
    let mut previous = b'`';
    for (at, &byte) in name.iter().enumerate() {
        let is_wordy = previous.is_ascii_alphanumeric() || matches!(previous, b'_' | b'$');
        let is_kept = match byte {
            b'0'..=b'9' => is_wordy,
            b'+' | b'-' => is_wordy || previous == b')',
            b' ' => {
                let next = name.get(at + 1).copied().unwrap_or(b'`');
                !matches!(
                    previous,
                    b' ' | b',' | b'(' | b'+' | b'-' | b'*' | b'/' | b'%'
                ) && !matches!(
                    next,
                    b' ' | b',' | b')' | b'+' | b'-' | b'*' | b'/' | b'%' | b'0'..=b'9'
                )
            }
            b'?' | b'\t'..=b'\r' => false,
            _ => true,
        };
        if !is_kept {
            return false;
        }
        previous = byte;
    }
    true
}

/// Whether a server takes it for a number, or the first part of one.
fn is_a_number(word: &[u8]) -> bool {
    let is_hexadecimal =
        |digits: &[u8]| !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit);
    match word {
        [b'0', b'x', digits @ ..] if is_hexadecimal(digits) => true,
        _ => {
            let mut parts = word.splitn(2, |byte| matches!(byte, b'e' | b'E'));
            let mut are_digits = || {
                parts
                    .next()
                    .is_none_or(|part| !part.is_empty() && part.iter().all(u8::is_ascii_digit))
            };
            are_digits() && are_digits()
        }
    }
}

/// Whether a digest has this word, which begins with a digit and is no number by itself, as it is,
/// or it is the first part of one (`1e+5`).
fn is_shown_word(word: &[u8], rest: &[u8]) -> bool {
    if matches!(rest, [b'+' | b'-', b'0'..=b'9', ..])
        && matches!(word, [digits @ .., b'e' | b'E'] if is_a_number(digits))
    {
        return true;
    }
    // The last byte of a statement is not looked at.
    let seen = if rest.is_empty() {
        &word[..word.len() - 1]
    } else {
        word
    };
    word.is_ascii() && !is_number(seen)
}

/// Whether there may be an optimizer hint that changes more than how a statement is executed.
/// Inside of a string it is none, which is so rare that nobody looks.
/// <https://dev.mysql.com/doc/refman/8.4/en/optimizer-hints.html>
fn has_setting_hint(sql: &[u8]) -> bool {
    let asks = |inside: &[u8]| {
        ["SET_VAR", "RESOURCE_GROUP"]
            .iter()
            .any(|name| contains_in_any_case(inside, name.as_bytes()))
    };
    memchr::memmem::find_iter(sql, b"/*+").any(|at| {
        let inside = &sql[at + 3..];
        asks(&inside[..memchr::memmem::find(inside, b"*/").unwrap_or(inside.len())])
    })
}

fn contains_in_any_case(text: &[u8], name: &[u8]) -> bool {
    text.windows(name.len())
        .any(|part| part.eq_ignore_ascii_case(name))
}

/// Whether something in double quotes would end elsewhere if it was a name.
#[must_use]
pub fn quotes_matter(sql: &[u8], lexing: Lexing) -> bool {
    let matters = |token: Token<'_>| {
        token.kind == Kind::String
            && token.text[0] == b'"'
            && memchr::memmem::find(token.text, b"\\\"").is_some()
    };
    memchr::memmem::find(sql, b"\\\"").is_some() && lexing.words(sql).any(matters)
}

/// Whether the text is one `/*!80000 … */` and nothing else, of which a server runs all that the
/// digest shows, or nothing. What a digest shows of such a comment has blanks for ends of lines, so
/// there may be no comment in it.
fn is_one_conditional_comment(sql: &[u8]) -> bool {
    let inside = sql
        .trim_ascii()
        .strip_prefix(b"/*!")
        .and_then(|rest| rest.strip_suffix(b"*/"));
    let Some(inside) = inside else { return false };
    let version = inside
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let (text, signs) = (
        inside[version..].trim_ascii_start(),
        [&b"/*"[..], b"*/", b"--", b"#", b"\\"],
    );
    matches!(version, 5 | 6)
        && inside[version..]
            .first()
            .is_some_and(u8::is_ascii_whitespace)
        && text.first().is_some_and(u8::is_ascii_alphabetic)
        && signs
            .iter()
            .all(|sign| memchr::memmem::find(text, sign).is_none())
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
                b'-' if matches!(
                    sql[at..],
                    [_, b'-', b' ' | b'\t' | b'\n' | b'\r' | 0x0B | 0x0C, ..]
                ) =>
                {
                    line(at + 3)
                }
                b'/' if sql.get(at + 1) == Some(&b'*') => {
                    let inside = &sql[at + 2..];
                    let end = memchr::memmem::find(inside, b"*/")
                        .map_or(sql.len(), |length| at + length + 4);
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

    fn is_shown(sql: &[u8], lexing: Lexing, ansi_quotes: bool) -> bool {
        shape(sql, lexing, ansi_quotes, &mut Vec::new()).is_shown
    }

    fn shown(sql: &[u8]) -> bool {
        is_shown(sql, Lexing::Escapes, false)
    }

    const LATIN: Lexing = Lexing::Blanks {
        blank: crate::Blank::Latin,
        escapes: true,
    };

    #[test]
    fn names_and_signs_that_a_digest_lacks_are_not_shown() {
        for sql in [
            // What a folded list ends in, and what it is the digest of.
            "DELETE FROM t WHERE k IN (0,0,0,0,k)",
            "DELETE FROM t WHERE k IN (0,0,0,0, k )",
            "SELECT CONCAT('a','b','c','d',p) FROM t",
            "SELECT a FROM t WHERE k IN (?,?,?,?,k)",
            // A sign that belongs to no value.
            "SELECT id -secret FROM t",
            "SELECT id - secret FROM t",
            "SET @x = -y",
            "SELECT f(-a)",
            "SELECT f(- - a), -(a)",
            "SELECT id -1a FROM t",
            "SELECT id -\"a\" FROM t",
            "/*!80000 SET SESSION a = -5 */",
            // Names that are numbers to a digest, or to it are more than names.
            "SELECT * FROM shard.12",
            "SELECT * FROM `shard`.12",
            "SELECT t.1 FROM t",
            "SELECT `1` FROM t",
            "SELECT * FROM `tenant-42`.orders",
            "SELECT * FROM `t 1`",
            "SELECT `a  b`, `c, d`, `e ` FROM t",
            "SELECT `a -b` FROM t",
            "SELECT `a?b` FROM t",
            "SELECT * FROM café1",
            "SELECT * FROM 1é",
            "SELECT a FROM t WHERE b = 12e",
            "SELECT a FROM t WHERE b = 0X1f",
            "SELECT a FROM t WHERE b = 0x",
            "SELECT a FROM t WHERE b = 1a",
            "SELECT @1",
        ] {
            assert!(!shown(sql.as_bytes()), "{sql}");
        }
        for sql in [
            "DELETE FROM t WHERE k IN (0,-1,.5,'a',1e+5)",
            "DELETE FROM t WHERE k IN (?,?,?,?,?)",
            "SELECT f(a, b, c, d, e), CONCAT(a,'b',c,'d',e)",
            "SELECT a-b, a -1, a - 1, -1, - -1, -.5, a - ?, f(-1, - 2), 3-2, a+b FROM t LIMIT 1",
            "UPDATE t SET n = n -?, m = -1e5, o = -0x1F WHERE id = -1",
            "SELECT t.a1, `t`.`b_2`, t.c$3, .5, 1.5, 1., 1.5e-3, 0x1F, 1e5 FROM t1 WHERE 1a = 2b3",
            "SELECT `a b`, `order-items`, COUNT(*) AS `COUNT(*)`, `é`, `sum(a,b)` FROM `my-db`.`t2_3`",
            "SELECT données_2024, é FROM tä",
            "INSERT INTO t VALUES (1,2,3,4,5),(1,2,3,4,NULL)",
        ] {
            assert!(shown(sql.as_bytes()), "{sql}");
        }
        assert!(shown(b"SELECT a FROM t WHERE k IN (0,0,k)"));
    }

    #[test]
    fn a_shape_has_the_usual_digest_as_long_as_none_is_cut() {
        let of = |sql: &str| {
            let mut text = Vec::new();
            let shape = shape(sql.as_bytes(), Lexing::Escapes, false, &mut text);
            assert_eq!(crate::spooky::hash64(&text, 0), shape.digest);
            (shape.digest, shape.is_shown)
        };
        let usual = |sql: &str| digest(sql.as_bytes(), &DigestOptions::default(), &mut Vec::new());
        let short = "SELECT a FROM t_1 WHERE b IN (1,2,3,4,5) AND c IS NULL /* why */";
        assert_eq!(of(short), (usual(short), true));
        // One digest with what follows, for the statistics.
        let long = format!("SELECT {} FROM t", vec!["column_name"; 500].join(", "));
        let more = format!("{long} UNION SELECT password FROM users");
        assert_eq!(usual(&long), usual(&more));
        assert!(of(&long).1 && of(&more).1 && of(&long).0 != of(&more).0);
        // Nobody has seen the end of this one.
        let endless = format!("SELECT {} FROM t", vec!["column_name"; 100_000].join(", "));
        assert!(!of(&endless).1);
        let values = format!(
            "INSERT INTO t VALUES {}(1,2,3,4,'a')",
            "(1,2,3,4,'b'),".repeat(200_000)
        );
        assert!(of(&values).1);
    }

    #[test]
    fn options_that_change_no_text_but_its_length_are_as_the_firewalls() {
        let usual = DigestOptions::default;
        for same in [
            usual(),
            DigestOptions {
                max_digest_length: 16,
                ..usual()
            },
            DigestOptions {
                max_query_length: 16,
                ..usual()
            },
            DigestOptions {
                normalize_digest_text: true,
                ..usual()
            },
        ] {
            assert!(same.are_as_whole(), "{same:?}");
        }
        for other in [
            DigestOptions {
                grouping_limit: 2,
                ..usual()
            },
            DigestOptions {
                groups_grouping_limit: 0,
                ..usual()
            },
            DigestOptions {
                lowercase: true,
                ..usual()
            },
            DigestOptions {
                replace_null: true,
                ..usual()
            },
            DigestOptions {
                no_digits: true,
                ..usual()
            },
            DigestOptions {
                keep_comment: true,
                ..usual()
            },
        ] {
            assert!(!other.are_as_whole(), "{other:?}");
        }
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
        assert!(is_shown(b"SELECT '\xa0', caf\xe9 FROM t", LATIN, false));
        assert!(!is_shown(b"SELECT caf\xe9\xa0FROM t", LATIN, false));
        let unsure = Lexing::Unsure { shifts: false };
        assert!(is_shown(b"SELECT 'a' '\\\\b\\n'", unsure, false));
        assert!(
            !is_shown(br"SELECT 'it\'s'", unsure, false)
                && !is_shown(
                    br"SELECT '\' UNION SELECT password FROM users -- '",
                    unsure,
                    false
                )
        );
        assert!(is_shown(
            b"SELECT 'a'",
            Lexing::Shifts(crate::Shift::Gbk),
            false
        ));
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
            "CREATE FUNCTION f() RETURNS INT LANGUAGE JAVASCRIPT AS $$ ' $$; DROP TABLE t -- '",
            "CREATE FUNCTION f() RETURNS INT LANGUAGE JAVASCRIPT AS $js$ ' $js$; DROP TABLE t -- '",
            "DELETE /*+ SET_VAR(foreign_key_checks=0) */ FROM parent WHERE id=7",
            "DELETE /*+BKA(t) set_var (foreign_key_checks=0)",
            "SELECT a FROM t WHERE b IN (SELECT /*+ QB_NAME(q) Resource_Group(g) */ c FROM u)",
            "/*!50000 DELETE /*+ SET_VAR(foreign_key_checks=0) */ FROM parent WHERE id=7 */",
        ] {
            assert!(!shown(sql.as_bytes()), "{sql}");
        }
        assert!(!is_shown(
            br"SELECT a FROM t WHERE b='\' UNION SELECT password FROM users -- '",
            Lexing::NoEscapes,
            false
        ));
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
        assert!(
            shown(sql)
                && !is_shown(sql, Lexing::Escapes, true)
                && quotes_matter(sql, Lexing::Escapes)
        );
        for sql in [
            &br#"SELECT "a" FROM "t" WHERE "b"='\"'"#[..],
            br#"SELECT "a\b", "\n" FROM t"#,
        ] {
            assert!(
                is_shown(sql, Lexing::Escapes, true),
                "{}",
                sql.escape_ascii()
            );
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
