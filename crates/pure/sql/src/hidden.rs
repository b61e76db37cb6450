//! What a digest does not show, and whether a server reads something in it.
//!
//! A digest has blanks for comments and `?` for strings, and finds both by rules of its own (`digest.rs`), which are ProxySQL's: a backslash always
//! escapes, backquotes mean nothing, `/*M!` is a comment, and `--` at the end of a line takes the next line along. Where a server reads otherwise, two statements
//! of one digest are not two statements of one shape.

use crate::reading::Lexing;
use crate::words::{Kind, Words, end_of_quoted};
use std::ops::Range;

/// Whether all that the digest of this text leaves out is, to a server, comments and the insides of strings.
#[must_use]
pub fn is_shown(sql: &[u8], lexing: Lexing) -> bool {
    if !lexing.is_sure_of(sql) {
        return false;
    }
    let mut words = lexing.words(sql);
    let mut token = words.next();
    for hidden in (Hidden { sql, at: 0 }) {
        while token.is_some_and(|token| token.end() <= hidden.start) {
            token = words.next();
        }
        let is_harmless = token.is_none_or(|token| {
            token.start >= hidden.end || token.kind == Kind::String && token.start <= hidden.start && hidden.end <= token.end()
        });
        if !is_harmless {
            return false;
        }
    }
    // What some servers skip, the digest shows.
    memchr::memmem::find(sql, b"/*").is_none() || !is_conditional(words)
}

fn is_conditional(mut words: Words<'_>) -> bool {
    while words.next().is_some() {}
    words.is_conditional()
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
        is_shown(sql, Lexing::Escapes)
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
        ] {
            assert!(shown(sql.as_bytes()), "{sql}");
        }
        assert!(is_shown(b"SELECT 'a' '\\\\b'", Lexing::NoEscapes));
        assert!(is_shown(b"SELECT 'a'", Lexing::Shifts(crate::Shift::Gbk)));
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
        ] {
            assert!(!shown(sql.as_bytes()), "{sql}");
        }
        assert!(!is_shown(br"SELECT a FROM t WHERE b='\' UNION SELECT password FROM users -- '", Lexing::NoEscapes));
        assert!(!is_shown(b"SELECT a FROM t WHERE b='\xbf\\' UNION SELECT password FROM users -- '", Lexing::Shifts(crate::Shift::Gbk)));
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
