//! Which tables a statement names, as far as its text tells. A reading statement is read where
//! tables stand; of a writing one, every name may be one. What a view, a trigger, a stored function
//! or a foreign key does, no text tells.

use crate::lexing::Lexing;
use crate::words::{Kind, Token, unquote};
use std::borrow::Cow;

/// Parentheses inside one another that are followed; a statement with more names tables that nobody
/// knows.
const DEPTH_MAX: usize = 256;

/// Schemas that servers fill by themselves: what stands there changes with statements that do not
/// name it.
pub(crate) const SYSTEM_SCHEMAS: [&str; 4] =
    ["INFORMATION_SCHEMA", "PERFORMANCE_SCHEMA", "MYSQL", "SYS"];

/// Whether it is one of those.
#[must_use]
pub fn is_system_schema(name: &[u8]) -> bool {
    SYSTEM_SCHEMAS
        .iter()
        .any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
}

/// Calls `each` with the schema, if one is written, and the name of every table that a SELECT,
/// WITH, TABLE or VALUES reads, and perhaps of something that is none. False if it is another
/// statement, or too deep: then nobody knows.
pub fn tables_read<'a>(
    sql: &'a [u8],
    lexing: Lexing,
    mut each: impl FnMut(Option<&[u8]>, &[u8]),
) -> bool {
    let mut words = lexing.words(sql);
    let verb = words
        .clone()
        .find(|token| !token.is_sign(b'(') && !token.is_sign(b';'));
    if !verb.is_some_and(|token| token.is_any(&["SELECT", "WITH", "TABLE", "VALUES"])) {
        return false;
    }
    // Whether we are in a list of tables, for each open parenthesis.
    let mut outer: Vec<bool> = Vec::new();
    let (mut in_list, mut expects, mut after_for) = (false, false, false);
    let mut next: Option<Token<'a>> = words.next();
    while let Some(token) = next {
        next = words.next();
        // USE INDEX FOR ORDER BY (i)
        let purpose = std::mem::replace(&mut after_for, token.is("FOR"));
        match token.kind {
            Kind::Sign => match token.text {
                b"(" => {
                    if outer.len() == DEPTH_MAX {
                        return false;
                    }
                    outer.push(in_list);
                    in_list = expects;
                }
                b")" => {
                    in_list = outer.pop().unwrap_or(false);
                    expects = false;
                }
                b"," => expects = in_list,
                // {OJ a LEFT JOIN b ON …}
                b"{" if expects => next = words.next(),
                _ => {}
            },
            Kind::Word if token.is_any(&["FROM", "JOIN", "STRAIGHT_JOIN", "TABLE"]) => {
                in_list |= !token.is("TABLE");
                expects = true;
            }
            Kind::Word if expects && token.is("LATERAL") => {}
            // What ends a list on one server may be a table's name on another.
            Kind::Word
                if token.is("SELECT") || !expects && !purpose && token.is_any(ENDS_A_LIST) =>
            {
                (in_list, expects) = (false, false);
            }
            Kind::Word | Kind::Name | Kind::String if expects => {
                expects = false;
                let first = plain(&token);
                if next.is_some_and(|dot| dot.is_sign(b'.')) {
                    next = words.next();
                    if let Some(name) = next {
                        each(Some(&first), &plain(&name));
                        next = words.next();
                    }
                } else {
                    each(None, &first);
                }
            }
            _ => {}
        }
    }
    true
}

/// Words that stand between a verb and the table that it changes.
const BEFORE_A_TABLE: &[&str] = &[
    "LOW_PRIORITY",
    "HIGH_PRIORITY",
    "DELAYED",
    "QUICK",
    "IGNORE",
    "INTO",
    "FROM",
    "TABLE",
    "TABLES",
    "IF",
    "NOT",
    "EXISTS",
    "TEMPORARY",
    "ONLY",
];

/// Calls `each` with the schema, if one is written, and the name of every table that a statement
/// mentions, and perhaps of something that is none. Each is named as often as it is mentioned.
pub fn tables_mentioned(sql: &[u8], lexing: Lexing, mut each: impl FnMut(Option<&[u8]>, &[u8])) {
    if tables_read(sql, lexing, &mut each) {
        return;
    }
    let mut words = lexing.words(sql).peekable();
    let (mut expects, mut in_list, mut before) = (false, false, None::<Token<'_>>);
    while let Some(token) = words.next() {
        // `FOR UPDATE`, `ON DUPLICATE KEY UPDATE`, `ON DELETE CASCADE` and `REPLACE(a, b)` are no verbs.
        let behind = before.is_some_and(|before| before.is_any(&["FOR", "KEY", "ON"]));
        let calls = words.peek().is_some_and(|next| next.is_sign(b'('));
        let is_verb = token.is_any(&["UPDATE", "INSERT", "REPLACE"]) && !behind && !calls;
        before = Some(token);
        if is_verb || token.is_any(&["INTO", "FROM", "JOIN", "TABLE", "TABLES"]) {
            (expects, in_list) = (true, !token.is_any(&["INSERT", "REPLACE", "INTO"]));
        } else if expects && token.is_any(BEFORE_A_TABLE) {
        } else if token.is_sign(b',') {
            expects = in_list;
        } else if token.is_any(ENDS_A_LIST) || token.is_any(&["SET", "VALUES", "SELECT", "ON"]) {
            (expects, in_list) = (false, false);
        } else if token.kind == Kind::Sign {
            expects = false;
            in_list &= !token.is_sign(b'(');
        } else if expects {
            expects = false;
            let first = plain(&token);
            if words.peek().is_some_and(|dot| dot.is_sign(b'.')) {
                words.next();
                if let Some(name) = words.next() {
                    each(Some(&first), &plain(&name));
                }
            } else {
                each(None, &first);
            }
        }
    }
}

const ENDS_A_LIST: &[&str] = &[
    "WHERE",
    "GROUP",
    "HAVING",
    "ORDER",
    "LIMIT",
    "UNION",
    "EXCEPT",
    "INTERSECT",
    "WINDOW",
    "PROCEDURE",
];

/// Calls `each` with every name in a statement, alone and with the name before its dot: whatever it
/// writes is among them.
pub fn names(sql: &[u8], lexing: Lexing, mut each: impl FnMut(Option<&[u8]>, &[u8])) {
    let mut qualifier: Option<Cow<'_, [u8]>> = None;
    let mut words = lexing.words(sql).peekable();
    let (mut after_keyword, mut before_values) = (false, true);
    while let Some(token) = words.next() {
        // Under ANSI_QUOTES a name may be in double quotes.
        let may_be_name = before_values || after_keyword || qualifier.is_some();
        let quoted = token.kind == Kind::String && token.text.first() == Some(&b'"') && may_be_name;
        // A name of digits only is one behind a dot.
        let word = token.kind == Kind::Word
            && (qualifier.is_some() || !token.text.iter().all(u8::is_ascii_digit));
        let name = quoted || token.kind == Kind::Name || word;
        before_values &= !token.is_any(&["SET", "VALUES", "VALUE", "WHERE", "SELECT"]);
        // Behind WITH or SET STATEMENT.
        let begins = token.is_any(&["UPDATE", "DELETE", "INSERT", "REPLACE"]);
        before_values |= begins && words.peek().is_none_or(|next| !next.is_sign(b'('));
        after_keyword = token.is_any(&[
            "INTO",
            "UPDATE",
            "FROM",
            "TABLE",
            "JOIN",
            "IGNORE",
            "LOW_PRIORITY",
            "DELAYED",
            "QUICK",
        ]);
        if !name {
            qualifier = None;
            continue;
        }
        let own = plain(&token);
        each(qualifier.as_deref(), &own);
        qualifier = words
            .next_if(|dot| dot.is_sign(b'.'))
            .is_some()
            .then_some(own);
    }
}

fn plain<'a>(token: &Token<'a>) -> Cow<'a, [u8]> {
    match token.kind {
        Kind::Name | Kind::String => unquote(token.text),
        _ => Cow::Borrowed(token.text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(schema: Option<&[u8]>, name: &[u8]) -> String {
        let name = String::from_utf8_lossy(name);
        schema.map_or_else(
            || name.to_string(),
            |schema| format!("{}.{name}", String::from_utf8_lossy(schema)),
        )
    }

    fn read(sql: &str) -> String {
        let mut all = Vec::new();
        let known = tables_read(sql.as_bytes(), Lexing::Escapes, |schema, name| {
            all.push(shown(schema, name))
        });
        if known { all.join(" ") } else { "?".into() }
    }

    #[test]
    fn tables_that_are_mentioned() {
        for (sql, tables) in [
            ("SELECT a FROM t JOIN x.u ON t.a = u.a", "t x.u"),
            (
                "INSERT INTO t (a) VALUES (1) ON DUPLICATE KEY UPDATE a = 2",
                "t",
            ),
            ("INSERT IGNORE x.t SELECT a FROM `v w`", "x.t v w"),
            (
                "UPDATE t, x.u SET t.a = 1 WHERE b = REPLACE(c, 'd', 'e')",
                "t x.u",
            ),
            ("DELETE FROM t WHERE a IN (SELECT b FROM u)", "t u"),
            ("REPLACE t SET a = 1", "t"),
            ("CREATE TABLE IF NOT EXISTS t (a INT, b INT)", "t"),
            ("DROP TABLE IF EXISTS a, b", "a b"),
            ("SET NAMES utf8mb4", ""),
        ] {
            let mut found = Vec::new();
            tables_mentioned(sql.as_bytes(), Lexing::Escapes, |schema, name| {
                let schema = schema.map(|schema| format!("{}.", String::from_utf8_lossy(schema)));
                let name = String::from_utf8_lossy(name);
                found.push(format!("{}{name}", schema.unwrap_or_default()));
            });
            assert_eq!(found.join(" "), tables, "{sql}");
        }
    }

    #[test]
    fn tables_are_read_where_tables_stand() {
        for (sql, tables) in [
            ("SELECT 111", ""),
            ("SELECT a, b FROM t", "t"),
            (
                "SELECT a FROM `my db`.`t``1` x, u AS y, shop.v WHERE a IN (1, 2) ORDER BY a, b",
                "my db.t`1 u shop.v",
            ),
            (
                "select * from a join b on f(x, y) left join c using (i, j), d",
                "a b c d",
            ),
            (
                "SELECT * FROM (a, b) CROSS JOIN ((c JOIN d) JOIN e)",
                "a b c d e",
            ),
            (
                "SELECT (SELECT max(x) FROM i), y FROM o WHERE z IN (SELECT q FROM p, r)",
                "i o p r",
            ),
            ("SELECT * FROM (SELECT a, b FROM t) x, u", "t u"),
            (
                "(SELECT 1 FROM a) UNION ALL (SELECT 2 FROM b) ORDER BY 1",
                "a b",
            ),
            ("SELECT 1 FROM a UNION SELECT 2, 3 FROM b", "a b"),
            (
                "WITH x AS (SELECT * FROM t) SELECT * FROM x JOIN u",
                "t x u",
            ),
            (
                "SELECT * FROM t PARTITION (p0, p1) USE INDEX (a, b), u FORCE INDEX (c)",
                "t u",
            ),
            ("SELECT * FROM {OJ a LEFT OUTER JOIN b ON 1}", "a b"),
            ("SELECT * FROM t, LATERAL (SELECT * FROM u) x", "t u"),
            ("TABLE t", "t"),
            ("SELECT STRAIGHT_JOIN * FROM a STRAIGHT_JOIN b", "a b"),
            ("SELECT * FROM \"t\", 'u'", "t u"),
            ("SELECT /* FROM x */ 'FROM y' FROM t -- , z\n, u", "t u"),
            (
                "SELECT * FROM t FOR SYSTEM_TIME AS OF TIMESTAMP'2020-01-01', u",
                "t u",
            ),
            (
                "SELECT * FROM t USE INDEX FOR ORDER BY (i), u ORDER BY a, b",
                "t u",
            ),
            (
                "SELECT * FROM t IGNORE KEY FOR GROUP BY (i, j), u FORCE INDEX FOR ORDER BY (k), v GROUP BY a, b",
                "t u v",
            ),
            ("SELECT * FROM window, u", "window u"),
            ("SELECT * FROM t, window WHERE a IN (1, 2)", "t window"),
            ("SELECT * FROM t JOIN except", "t except"),
            (
                "SELECT * FROM t WINDOW w AS (PARTITION BY a), x AS (ORDER BY b)",
                "t",
            ),
            ("SHOW TABLES FROM x", "?"),
            ("DESCRIBE t", "?"),
        ] {
            assert_eq!(read(sql).trim(), tables.trim(), "{sql}");
        }
        assert_eq!(
            read("SELECT EXTRACT(DAY FROM d) FROM t"),
            "d t",
            "a column too many does no harm"
        );
        assert_eq!(read(&format!("SELECT {}", "(".repeat(1000))), "?");
    }

    #[test]
    fn whatever_is_written_is_among_the_names() {
        let all = |sql: &str| {
            let mut all = Vec::new();
            names(sql.as_bytes(), Lexing::Escapes, |schema, name| {
                all.push(shown(schema, name))
            });
            all
        };
        for (sql, tables) in [
            (
                "INSERT INTO shop.t (a) VALUES (1, 'x', \"y\")",
                &["shop.t"][..],
            ),
            ("UPDATE a, `b c` SET a.x = 1", &["a", "b c"]),
            ("DELETE a, b FROM s.a JOIN b", &["a", "b", "s.a"]),
            ("REPLACE t SET a=1", &["t"]),
            ("INSERT INTO \"t\" VALUES (1)", &["t"]),
            ("TRUNCATE \"t\"", &["t"]),
            ("REPLACE \"t\" SET a=1", &["t"]),
            ("DROP TABLE IF EXISTS \"t\", s.\"u\"", &["t", "s.u"]),
            (
                "UPDATE a, \"b\" JOIN c ON c.x = a.x, \"d\" SET a.x = 1",
                &["a", "b", "c", "d"],
            ),
            ("LOAD DATA INFILE 'f' INTO TABLE t", &["t"]),
            ("DROP TABLE IF EXISTS a, s.b", &["a", "s.b"]),
            ("ALTER TABLE t RENAME TO s.u", &["t", "s.u"]),
            ("TRUNCATE t", &["t"]),
            ("INSERT INTO s.123 VALUES (1)", &["s.123"]),
            ("DELETE FROM s.2026_log", &["s.2026_log"]),
            ("WITH x AS (SELECT 1) UPDATE t JOIN x SET t.a = 1", &["t"]),
            (
                "WITH x AS (SELECT 1) UPDATE \"a\", \"b\" SET b.c = 1",
                &["a", "b"],
            ),
            (
                "WITH x AS (SELECT 1) DELETE \"a\", s.\"b\" FROM \"a\", \"b\"",
                &["a", "s.b", "b"],
            ),
            ("SET STATEMENT a=1 FOR REPLACE \"t\" VALUES (1)", &["t"]),
        ] {
            let found = all(sql);
            for table in tables {
                assert!(
                    found.iter().any(|name| name == table),
                    "{table} in {sql}: {found:?}"
                );
            }
        }
        assert!(
            !all("INSERT INTO t VALUES ('u', \"v\", 12)")
                .iter()
                .any(|name| ["u", "v", "12"].contains(&name.as_str()))
        );
        assert!(
            !all("INSERT INTO t VALUES (REPLACE(\"v\", 'u', 'w'))")
                .iter()
                .any(|name| name == "v")
        );
    }
}
