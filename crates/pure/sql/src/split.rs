//! Several statements in one text, taken apart where that is certainly what a server would do.

use crate::Lexing;
use crate::words::{Kind, Token, Words};
use std::ops::Range;

/// First words of statements in which a `;` can only be the end. MariaDB runs programmes outside of
/// routines too (`BEGIN NOT ATOMIC`, `IF`, `FOR`): what is not listed may be one.
const SIMPLE: &[&str] = &[
    "SELECT",
    "INSERT",
    "UPDATE",
    "DELETE",
    "REPLACE",
    "SET",
    "SHOW",
    "USE",
    "START",
    "COMMIT",
    "ROLLBACK",
    "SAVEPOINT",
    "RELEASE",
    "CALL",
    "DO",
    "TRUNCATE",
    "EXPLAIN",
    "DESC",
    "DESCRIBE",
    "WITH",
    "VALUES",
    "TABLE",
    "CREATE",
    "DROP",
    "ALTER",
    "RENAME",
    "GRANT",
    "REVOKE",
    "LOCK",
    "UNLOCK",
    "FLUSH",
    "LOAD",
    "ANALYZE",
    "OPTIMIZE",
    "CHECK",
    "CHECKSUM",
    "REPAIR",
    "KILL",
    "PREPARE",
    "EXECUTE",
    "DEALLOCATE",
    "HANDLER",
    "XA",
    "HELP",
];

/// Words near the beginning of a CREATE or ALTER that has a body.
const BODIES: &[&str] = &["PROCEDURE", "FUNCTION", "TRIGGER", "EVENT", "PACKAGE"];
/// A body is announced within so many words: `CREATE OR REPLACE DEFINER = a@b SQL SECURITY …`.
const ANNOUNCED_WITHIN: usize = 40;

/// First words of statements behind which the server may read what follows otherwise: they may set
/// `sql_mode`.
const SETTING: &[&str] = &["SET", "EXECUTE", "CALL"];

/// Where the statements of a text are, with the comments before each and without the `;` between
/// them; at least two. `None` if there are not several, or if they cannot be told apart for
/// certain: compound statements, empty ones, executable comments, quotes that end elsewhere for a
/// server with another `sql_mode` where it is not known, or one of the statements may set it.
#[must_use]
pub fn split(sql: &[u8], lexing: Lexing) -> Option<Vec<Range<usize>>> {
    memchr::memchr(b';', sql)?;
    if memchr::memmem::find(sql, b"/*!").is_some()
        || memchr::memmem::find(sql, b"/*M!").is_some()
        || lexing.hides(sql)
    {
        return None;
    }
    let parts = parts(sql, lexing.words(sql), lexing.escapes())?;
    if memchr::memchr(b'\\', sql).is_some() {
        let sets = |part: &Range<usize>| {
            lexing
                .words(&sql[part.clone()])
                .next()
                .is_some_and(|first| first.is_any(SETTING))
        };
        let known = !matches!(lexing, Lexing::Unsure { .. }) && !parts.iter().any(sets);
        let alike = || {
            [true, false].iter().all(|escapes| {
                let words = if *escapes {
                    Words::new(sql)
                } else {
                    Words::without_escapes(sql)
                };
                self::parts(sql, words, *escapes).as_ref() == Some(&parts)
            })
        };
        if !known && !alike() {
            return None;
        }
    }
    (parts.len() > 1).then_some(parts)
}

fn parts(sql: &[u8], mut words: Words<'_>, escapes: bool) -> Option<Vec<Range<usize>>> {
    let mut parts = Vec::new();
    let mut from = 0;
    let mut count = 0;
    let mut creates = false;
    let mut begins = false;
    for token in words.by_ref() {
        if token.is_sign(b';') {
            if count == 0 {
                return None;
            }
            parts.push(trimmed(sql, from..token.start));
            (from, count, creates, begins) = (token.end(), 0, false, false);
            continue;
        }
        if token.kind != Kind::Word && token.kind != Kind::Sign && !token.is_whole_if(escapes) {
            return None;
        }
        match count {
            0 if token.is_sign(b'(') => {}
            0 if token.is("BEGIN") => begins = true,
            0 if token.is_any(SIMPLE) => creates = token.is_any(&["CREATE", "ALTER"]),
            0 => return None,
            _ if begins && !(count == 1 && token.is("WORK")) => return None,
            _ if creates && count < ANNOUNCED_WITHIN && token.is_any(BODIES) => return None,
            1 if creates && token.is("LIBRARY") => return None,
            _ => {}
        }
        count += 1;
    }
    if words.is_conditional() {
        // `/*m!`, which no server that we know executes.
        return None;
    }
    let rest = trimmed(sql, from..sql.len());
    match (count, rest.is_empty()) {
        (0, true) => {}
        // A comment after the last `;` is an empty statement to some servers.
        (0, false) => return None,
        _ => parts.push(rest),
    }
    Some(parts)
}

fn trimmed(sql: &[u8], range: Range<usize>) -> Range<usize> {
    let text = &sql[range.clone()];
    let before = text.len() - text.trim_ascii_start().len();
    let start = range.start + before;
    start..start + text.trim_ascii().len()
}

/// The name and the text of `PREPARE name FROM 'text'`; `None` if the text is in a variable, or
/// this is something else.
#[must_use]
pub fn prepared_text(sql: &[u8]) -> Option<(Token<'_>, Token<'_>)> {
    let mut words = Words::new(sql);
    let verb = words.next()?;
    let name = words.next()?;
    let from = words.next()?;
    let text = words.next()?;
    let end = words.next().is_none_or(|token| token.is_sign(b';')) && words.next().is_none();
    let fine = verb.is("PREPARE")
        && from.is("FROM")
        && text.kind == Kind::String
        && text.is_whole()
        && end;
    (fine && matches!(name.kind, Kind::Word | Kind::Name)).then_some((name, text))
}

/// Fuzz target: parts lie in order inside the text, and what lies between them is no statement.
pub fn fuzz_split(data: &[u8]) {
    for lexing in [
        Lexing::Escapes,
        Lexing::NoEscapes,
        Lexing::Unsure { shifts: false },
    ] {
        fuzz_split_as(data, lexing);
    }
}

fn fuzz_split_as(data: &[u8], lexing: Lexing) {
    let Some(parts) = split(data, lexing) else {
        return;
    };
    let mut at = 0;
    for part in parts {
        assert!(at <= part.start && part.start < part.end && part.end <= data.len());
        assert!(
            !lexing.class(&data[part.clone()]).multi,
            "a part is one statement"
        );
        at = part.end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNSURE: Lexing = Lexing::Unsure { shifts: false };

    fn texts(sql: &str) -> Option<Vec<&str>> {
        texts_in(sql, UNSURE)
    }

    fn texts_in(sql: &str, lexing: Lexing) -> Option<Vec<&str>> {
        split(sql.as_bytes(), lexing)
            .map(|parts| parts.into_iter().map(|part| &sql[part]).collect())
    }

    #[test]
    fn where_the_mode_is_known_a_backslash_is_what_it_is() {
        let name = r"INSERT INTO t VALUES ('O\'Brien'); SELECT 1";
        assert_eq!(
            texts_in(name, Lexing::Escapes),
            Some(vec![r"INSERT INTO t VALUES ('O\'Brien')", "SELECT 1"])
        );
        assert_eq!(texts_in(name, Lexing::NoEscapes), None);
        let path = r"SELECT 'C:\'; SELECT 2";
        assert_eq!(
            texts_in(path, Lexing::NoEscapes),
            Some(vec![r"SELECT 'C:\'", "SELECT 2"])
        );
        assert_eq!(texts_in(path, Lexing::Escapes), None);
        for unsure in [name, path] {
            assert_eq!(texts(unsure), None, "{unsure}");
        }
        // What follows may be read otherwise, unless it is the same for all.
        for sets in [
            "SET sql_mode = ''",
            "CALL p()",
            "EXECUTE s",
            "/* x */ set @a = 1",
        ] {
            let text = format!(r"{sets}; SELECT 'a\'b'; SELECT 1");
            assert_eq!(texts_in(&text, Lexing::Escapes), None, "{text}");
            let alike = format!(r"{sets}; SELECT 'a\tb'; SELECT 1");
            assert!(
                texts_in(&alike, Lexing::Escapes).is_some_and(|parts| parts.len() == 3),
                "{alike}"
            );
        }
    }

    #[test]
    fn statements_are_taken_apart_with_their_comments() {
        assert_eq!(
            texts("SELECT 1; SELECT 2"),
            Some(vec!["SELECT 1", "SELECT 2"])
        );
        assert_eq!(
            texts(
                " /* hostgroup=1 */ SELECT ';' ;\n/* b */ UPDATE t SET a=\"x;y\" ; (SELECT `;`);; "
                    .trim_end_matches("; ")
            ),
            Some(vec![
                "/* hostgroup=1 */ SELECT ';'",
                "/* b */ UPDATE t SET a=\"x;y\"",
                "(SELECT `;`)"
            ])
        );
        assert_eq!(
            texts("BEGIN; SELECT 1 -- a; b\n; COMMIT;"),
            Some(vec!["BEGIN", "SELECT 1 -- a; b", "COMMIT"])
        );
    }

    #[test]
    fn one_statement_is_not_several() {
        for sql in [
            "",
            ";",
            "SELECT 1",
            "SELECT 1;",
            "SELECT ';;'",
            "SELECT 1 /* ; */ ;  ",
        ] {
            assert_eq!(texts(sql), None, "{sql}");
        }
    }

    #[test]
    fn what_may_have_a_body_stays_whole() {
        for sql in [
            "CREATE PROCEDURE p() BEGIN SELECT 1; SELECT 2; END",
            "SELECT 1; CREATE OR REPLACE DEFINER=`a`@`b` TRIGGER t BEFORE INSERT ON x FOR EACH ROW BEGIN SET @a=1; END",
            "BEGIN NOT ATOMIC SELECT 1; SELECT 2; END",
            "CREATE LIBRARY l LANGUAGE JAVASCRIPT AS $$ let m={}; delete m.a $$",
            "IF 1 THEN SELECT 1; END IF",
            "FOR i IN 1..2 DO SELECT i; END FOR",
            "SELECT 1; nonsense; SELECT 2",
        ] {
            assert_eq!(texts(sql), None, "{sql}");
        }
        assert_eq!(
            texts("CREATE TABLE t (a INT); DROP TABLE t"),
            Some(vec!["CREATE TABLE t (a INT)", "DROP TABLE t"])
        );
        assert!(
            texts("CREATE TABLE t (library INT); DROP TABLE t")
                .is_some_and(|parts| parts.len() == 2)
        );
    }

    #[test]
    fn what_servers_read_in_different_ways_stays_whole() {
        for sql in [
            "SELECT 1; /*!80000 SELECT 2; */ SELECT 3",
            "SELECT 1 /*m! ' */; DELETE FROM t; -- '; SELECT 2",
            r"SELECT '\'; SELECT 2; -- '",
            "SELECT 1; SELECT 'open",
            "SELECT 1; /* only a comment */",
            "SELECT 1;; SELECT 2",
            "; SELECT 1; SELECT 2",
        ] {
            assert_eq!(texts(sql), None, "{sql}");
        }
        assert_eq!(
            texts(r"SELECT 'a\tb'; SELECT 2"),
            Some(vec![r"SELECT 'a\tb'", "SELECT 2"])
        );
    }

    #[test]
    fn the_text_of_a_prepare_is_found_where_it_stands() {
        let found = prepared_text(b"PREPARE `s` FROM 'SELECT ?' ;")
            .map(|(name, text)| (name.text, text.text));
        assert_eq!(found, Some((&b"`s`"[..], &b"'SELECT ?'"[..])));
        for sql in [
            "PREPARE s FROM @a",
            "PREPARE s FROM 'a' 'b'",
            "EXECUTE s",
            "PREPARE s FROM 'open",
        ] {
            assert!(prepared_text(sql.as_bytes()).is_none(), "{sql}");
        }
    }
}
