//! `INSERT INTO t (a, b) VALUES ('x', 1)`: what many such statements have in common, and the values
//! of this one.
//!
//! A script fills a table with tens of thousands of INSERTs that differ in their literals only.
//! SQLite takes longer to understand one than to do it, so what they have in common is prepared
//! once. Only the plainest is taken apart: one row, and of literals strings in single quotes, whole
//! numbers and NULL, which are the same to SQLite as values of `?`. Everything else it gets as it
//! is.

use rusqlite::ToSql;
use rusqlite::types::{ToSqlOutput, ValueRef};
use std::borrow::Cow;

/// A longer statement is not taken apart: what they have in common is kept.
const LEN_MAX: usize = 16 << 10;
/// Nor is one with more values.
const VALUES_MAX: usize = 256;

/// A single-row INSERT or REPLACE of literals.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Shape<'a> {
    /// With `?` for each literal.
    pub(crate) text: String,
    pub(crate) values: Vec<Literal<'a>>,
}

/// Literal for which a `?` stands.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Literal<'a> {
    Null,
    Whole(i64),
    Text(Cow<'a, str>),
}

impl ToSql for Literal<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Literal::Null => ValueRef::Null,
            Literal::Whole(number) => ValueRef::Integer(*number),
            Literal::Text(text) => ValueRef::Text(text.as_bytes()),
        }))
    }
}

impl<'a> Shape<'a> {
    /// None if it is not plain.
    pub(crate) fn of(sql: &'a str) -> Option<Self> {
        // SQLite reads no further than to a NUL.
        if sql.len() > LEN_MAX || sql.contains('\0') {
            return None;
        }
        let mut text = Text { sql, at: 0 };
        text.head()?;
        let mut shape = Self {
            text: String::with_capacity(text.at + 32),
            values: Vec::with_capacity(16),
        };
        shape.text.push_str(&sql[..text.at]);
        loop {
            shape.values.push(text.literal()?);
            shape.text.push('?');
            if shape.values.len() > VALUES_MAX {
                return None;
            }
            if text.takes(b')') {
                break;
            }
            text.takes(b',').then_some(())?;
            shape.text.push(',');
        }
        shape.text.push(')');
        text.skip_blanks();
        (text.at == sql.len()).then_some(shape)
    }
}

/// A statement, read from its beginning.
struct Text<'a> {
    sql: &'a str,
    at: usize, // <= sql.len(), between characters
}

impl<'a> Text<'a> {
    fn next(&self) -> Option<u8> {
        self.sql.as_bytes().get(self.at).copied()
    }

    fn skip(&mut self, is: impl Fn(u8) -> bool) {
        let rest = &self.sql.as_bytes()[self.at..];
        self.at += rest
            .iter()
            .position(|byte| !is(*byte))
            .unwrap_or(rest.len());
    }

    fn skip_blanks(&mut self) {
        self.skip(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'));
    }

    /// Behind blanks, this sign.
    fn takes(&mut self, sign: u8) -> bool {
        self.skip_blanks();
        let is_next = self.next() == Some(sign);
        self.at += usize::from(is_next);
        is_next
    }

    /// Behind blanks, a word of letters; empty if there is none.
    fn word(&mut self) -> &'a str {
        self.skip_blanks();
        let from = self.at;
        self.skip(|byte| {
            byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80 || byte == b'$'
        });
        &self.sql[from..self.at]
    }

    fn takes_word(&mut self, word: &str) -> Option<()> {
        self.word().eq_ignore_ascii_case(word).then_some(())
    }

    /// A name of a table or column, maybe in quotes.
    fn name(&mut self) -> Option<()> {
        self.skip_blanks();
        match self.next()? {
            quote @ (b'`' | b'"') => {
                self.at += 1;
                self.skip(|byte| byte != quote);
                self.takes(quote).then_some(())
            }
            first if first.is_ascii_alphabetic() || first == b'_' => {
                self.word();
                Some(())
            }
            _ => None,
        }
    }

    /// Up to the first literal.
    fn head(&mut self) -> Option<()> {
        let first = self.word();
        if first.eq_ignore_ascii_case("insert") {
            let mut word = self.word();
            if word.eq_ignore_ascii_case("or") {
                self.word();
                word = self.word();
            }
            word.eq_ignore_ascii_case("into").then_some(())?;
        } else {
            first.eq_ignore_ascii_case("replace").then_some(())?;
            self.takes_word("into")?;
        }
        self.name()?;
        if self.takes(b'.') {
            self.name()?;
        }
        if self.takes(b'(') {
            self.name()?;
            while !self.takes(b')') {
                self.takes(b',').then_some(())?;
                self.name()?;
            }
        }
        self.takes_word("values")?;
        self.takes(b'(').then_some(())
    }

    /// Reads a literal. What follows the literal is looked at by whoever asked.
    fn literal(&mut self) -> Option<Literal<'a>> {
        self.skip_blanks();
        match self.next()? {
            b'\'' => self.string().map(Literal::Text),
            first @ (b'-' | b'0'..=b'9') => {
                let from = self.at;
                self.at += usize::from(first == b'-');
                self.skip(|byte| byte.is_ascii_digit());
                // What does not fit is another kind of number to SQLite.
                self.sql[from..self.at].parse().ok().map(Literal::Whole)
            }
            b'n' | b'N' => self.takes_word("null").map(|()| Literal::Null),
            _ => None,
        }
    }

    /// In single quotes; doubled ones stand for one, and a backslash for itself.
    fn string(&mut self) -> Option<Cow<'a, str>> {
        self.at += 1;
        let from = self.at;
        let mut is_plain = true;
        loop {
            self.skip(|byte| byte != b'\'');
            let to = self.at;
            self.next()?;
            self.at += 1;
            if self.next() != Some(b'\'') {
                let inside = &self.sql[from..to];
                return Some(if is_plain {
                    inside.into()
                } else {
                    inside.replace("''", "'").into()
                });
            }
            self.at += 1;
            is_plain = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Engine, Reply, View};
    use crate::testing::Directory;

    #[test]
    fn statements_that_differ_in_plain_literals_have_one_shape() {
        let shape =
            Shape::of("INSERT INTO t (a, b) VALUES ('it''s', -7, NULL,'a\\' , 007 ) ").unwrap();
        assert_eq!(shape.text, "INSERT INTO t (a, b) VALUES (?,?,?,?,?)");
        let text = |text: &'static str| Literal::Text(text.into());
        assert_eq!(
            shape.values,
            [
                text("it's"),
                Literal::Whole(-7),
                Literal::Null,
                text("a\\"),
                Literal::Whole(7)
            ]
        );
        for plain in [
            "replace into main.t values(1)",
            "INSERT OR IGNORE INTO `a b`.\"c\"(`d`,\"e\")\nVALUES\t('',null)",
            "insert into t values ('?', ';', '--', '/*')",
            "INSERT INTO t VALUES ('ä''', -9223372036854775808)",
        ] {
            assert!(Shape::of(plain).is_some(), "{plain}");
        }
        for other in [
            "INSERT INTO t VALUES (1), (2)",
            "INSERT INTO t VALUES (1.5)",
            "INSERT INTO t VALUES (1e3)",
            "INSERT INTO t VALUES (0x10)",
            "INSERT INTO t VALUES (1_000)",
            "INSERT INTO t VALUES (9223372036854775808)",
            "INSERT INTO t VALUES (+1)",
            "INSERT INTO t VALUES (- 1)",
            "INSERT INTO t VALUES (--1)",
            "INSERT INTO t VALUES (-)",
            "INSERT INTO t VALUES (1+1)",
            "INSERT INTO t VALUES (x'00')",
            "INSERT INTO t VALUES ('a' 'b')",
            "INSERT INTO t VALUES ('a'||'b')",
            "INSERT INTO t VALUES ('a\0b')",
            "INSERT INTO t VALUES (\"a\")",
            "INSERT INTO t VALUES (TRUE)",
            "INSERT INTO t VALUES (nullable)",
            "INSERT INTO t VALUES (?)",
            "INSERT INTO t VALUES ()",
            "INSERT INTO t VALUES (1",
            "INSERT INTO t VALUES ('1)",
            "INSERT INTO t VALUES (1) RETURNING a",
            "INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING",
            "INSERT INTO t VALUES (1) -- why",
            "INSERT INTO t VALUES (1); DELETE FROM t",
            "INSERT INTO t AS u VALUES (1)",
            "INSERT INTO t SELECT 1",
            "INSERT INTO t DEFAULT VALUES",
            "INSERT INTO t (a VALUES (1)",
            "INSERT INTO [t] VALUES (1)",
            "INSERT /* why */ INTO t VALUES (1)",
            "WITH x AS (SELECT 1) INSERT INTO t VALUES (1)",
            "UPDATE t SET a = (1)",
            "INSERT",
            "",
        ] {
            assert_eq!(Shape::of(other), None, "{other}");
        }
    }

    /// All that can be seen of some tables.
    fn seen(engine: &Engine) -> Vec<Reply> {
        let own: Vec<String> = ('a'..='g')
            .map(|column| format!("{column}, typeof({column})"))
            .collect();
        let tables = [
            format!("SELECT {} FROM own ORDER BY rowid", own.join(", ")),
            "SELECT *, typeof(flagIN), typeof(username), typeof(comment) FROM mysql_query_rules_fast_routing ORDER BY 1, 2, 3"
                .into(),
            "SELECT * FROM mysql_servers ORDER BY 1, 2, 3".into(),
            "SELECT * FROM mysql_query_rules ORDER BY 1".into(),
            "SELECT * FROM global_variables ORDER BY 1".into(),
        ];
        tables
            .iter()
            .map(|sql| engine.run(sql, &[]).unwrap())
            .collect()
    }

    /// Two engines get the same statements, one of them as they are.
    #[test]
    fn a_statement_that_is_taken_apart_does_what_it_does_as_it_is() {
        // Without the largest key: behind it SQLite takes keys by chance.
        const LITERALS: &[&str] = &[
            "NULL",
            "null",
            "0",
            "1",
            "-1",
            "-0",
            "007",
            "3306",
            "65536",
            "-9223372036854775808",
            "9223372036854775808",
            "''",
            "'1'",
            "' 1 '",
            "'1.0'",
            "'1e2'",
            "'-5'",
            "'it''s'",
            "''''",
            "'a\\'",
            "'a\\n'",
            "'ä'",
            "'?'",
            "'OFFLINE_SOFT'",
            "'127.0.0.1'",
            "'NULL'",
            "1.5",
            "-1.5",
            "1e2",
            "0x1F",
            "x'31'",
            "\"double\"",
            "TRUE",
            "1+1",
            "CURRENT_USER",
        ];
        const HEADS: &[(&str, usize)] = &[
            ("INSERT INTO own VALUES ", 7),
            ("INSERT INTO own (a, b, c, d, e, f) VALUES ", 6),
            ("INSERT OR REPLACE INTO own (g, f, \"b\") VALUES ", 3),
            ("REPLACE INTO `own` (`g`,`a`) VALUES ", 2),
            (
                "INSERT INTO mysql_query_rules_fast_routing (username, schemaname, flagIN, destination_hostgroup, comment) VALUES ",
                5,
            ),
            ("insert into main.mysql_query_rules_fast_routing values", 5),
            (
                "INSERT OR IGNORE INTO mysql_servers (hostgroup_id, hostname, port, status) VALUES ",
                4,
            ),
            (
                "INSERT INTO mysql_servers (hostgroup_id, hostname, weight) VALUES ",
                3,
            ),
            (
                "INSERT INTO mysql_query_rules (rule_id, active, match_digest, apply) VALUES ",
                4,
            ),
            ("INSERT INTO mysql_query_rules (match_digest) VALUES ", 1),
            ("INSERT INTO nowhere (a) VALUES ", 1),
            ("INSERT INTO own (nothing) VALUES ", 1),
            ("INSERT INTO own (a, b) VALUES ", 3),
            ("INSERT INTO own (a, a) VALUES ", 2),
            ("REPLACE INTO global_variables VALUES ", 2),
        ];
        let mut engines = [(); 2].map(|()| Engine::open(None, View::Admin).unwrap());
        for engine in &engines {
            engine
                .run("CREATE TABLE own (a INTEGER, b VARCHAR(10), c REAL, d NUMERIC, e BLOB, f, g INTEGER PRIMARY KEY)", &[])
                .unwrap();
            engine
                .run("CREATE UNIQUE INDEX one ON own (a, b)", &[])
                .unwrap();
        }
        let mut seed = 1_u64;
        let mut random = |n: usize| {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize % n
        };
        let (mut shaped, mut refused) = (0, 0);
        for n in 0..20_000 {
            let (head, columns) = HEADS[random(HEADS.len())];
            let values: Vec<_> = (0..columns)
                .map(|_| LITERALS[random(LITERALS.len())])
                .collect();
            let sql = format!(
                "{head}({})",
                values.join(if n % 2 == 0 { "," } else { " , " })
            );
            shaped += usize::from(Shape::of(&sql).is_some());
            let (taken_apart, as_is) = (
                engines[0].run(&sql, &[]),
                engines[1].run_as_it_is(&sql, &[]),
            );
            assert_eq!(taken_apart, as_is, "{sql}");
            refused += usize::from(as_is.is_err());
            assert!(
                n % 500 != 499 || seen(&engines[0]) == seen(&engines[1]),
                "after {sql}"
            );
        }
        // A table of the same name with other columns; and nothing may be written.
        for before in [
            "DROP TABLE own",
            "CREATE TABLE own (a INTEGER)",
            "CREATE TABLE more (a)",
            "ALTER TABLE own ADD COLUMN z",
            "PRAGMA",
        ] {
            for engine in &mut engines {
                if before == "PRAGMA" {
                    engine.set_read_only(true).unwrap();
                } else {
                    engine.conn().execute_batch(before).unwrap();
                }
            }
            for (head, columns) in HEADS {
                let sql = format!("{head}({})", vec!["'77'"; *columns].join(","));
                assert_eq!(
                    engines[0].run(&sql, &[]),
                    engines[1].run_as_it_is(&sql, &[]),
                    "{sql} after {before}"
                );
            }
        }
        assert!(
            shaped > 5_000 && refused > 2_000 && refused < 18_000,
            "{shaped} taken apart, {refused} refused"
        );
    }
    #[test]
    fn what_is_prepared_does_not_keep_a_file_that_is_opened_anew() {
        let folder = Directory::new("shape");
        let engine = Engine::open(Some(&folder.0), View::Admin).unwrap();
        let insert = |n: u32| {
            engine
                .run(
                    &format!(
                        "INSERT INTO disk.mysql_users (username, password) VALUES ('user{n}', '')"
                    ),
                    &[],
                )
                .unwrap()
        };
        insert(1);
        engine.reopen_disk().unwrap();
        insert(2);
        let Reply::Rows(users) = engine
            .run("SELECT username FROM disk.mysql_users ORDER BY 1", &[])
            .unwrap()
        else {
            panic!()
        };
        assert_eq!(users.texts(), [["user1"], ["user2"]]);
    }
}
