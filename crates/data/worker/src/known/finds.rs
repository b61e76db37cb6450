//! What a statement does to `FOUND_ROWS()`, as far as its text and its answer tell. Measured on
//! MariaDB 10.11 and MySQL 9.7.

use sql::words::{Kind, Token, Words};
use sql::{Class, CommandCounter, Leaves};

/// Effect of a statement on `FOUND_ROWS()`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finds {
    /// No change.
    Nothing,
    /// Number of rows of the statement's result, if it has one, with those that an OFFSET leaves
    /// out.
    Rows,
    /// The number one.
    One,
    /// Number of rows that an UPDATE has looked at, if there are any. Where there are none, the
    /// server may not have looked.
    Matched,
    /// Number that is the statement's own, which only the server knows.
    Server,
    /// Change by something that is not certain.
    Unknown,
}

impl Finds {
    /// `mariadb`: whether a MariaDB does it, if that is known.
    pub(crate) fn of(class: &Class<'_>, text: &[u8], mariadb: Option<bool>) -> Self {
        if class.multi {
            return Self::Unknown;
        }
        if matches!(
            class.command,
            CommandCounter::Select | CommandCounter::SelectForUpdate
        ) {
            return Self::Rows;
        }
        if leaves_found_rows(class, text, mariadb) {
            return Self::Nothing;
        }
        match class.command {
            CommandCounter::Update
                if mariadb == Some(false)
                    && !class.selects
                    && !runs_programs(class)
                    && !names_several_tables(text) =>
            {
                return Self::Matched;
            }
            CommandCounter::Insert | CommandCounter::Replace => {
                return if selects_what_it_inserts(class, text, mariadb) {
                    Self::Server
                } else {
                    Self::Unknown
                };
            }
            _ => {}
        }
        let mut words = Words::new(text);
        let Some(first) = words.find(|token| !token.is_sign(b'(')) else {
            return Self::Unknown;
        };
        if first.is_any(&["SELECT", "WITH", "TABLE"])
            || first.is("VALUES") && mariadb == Some(false)
        {
            return Self::Rows;
        }
        if first.is("SHOW") {
            return Self::of_show(words, mariadb);
        }
        if first.is("DO") {
            // To MySQL it is a SELECT.
            return if mariadb == Some(false) {
                Self::One
            } else {
                Self::Unknown
            };
        }
        if first.is("ANALYZE") && mariadb == Some(true)
            || first.is_any(EXPLAINS) && words.peek().is_some_and(|next| next.is("ANALYZE"))
        {
            // What is executed to be explained.
            return if words
                .find(|token| token.is_any(CHANGES))
                .is_some_and(|token| token.is("SELECT"))
            {
                Self::Server
            } else {
                Self::Unknown
            };
        }
        let describes = first.is_any(EXPLAINS) && names_a_table(words);
        if describes { Self::Rows } else { Self::Unknown }
    }

    /// Many are a SELECT of their servers' own.
    fn of_show<'a>(words: impl Iterator<Item = Token<'a>>, mariadb: Option<bool>) -> Self {
        let mut words = words.skip_while(|token| {
            token.is_any(&["FULL", "EXTENDED", "GLOBAL", "SESSION", "LOCAL", "STORAGE"])
        });
        let (Some(first), second) = (words.next(), words.next()) else {
            return Self::Unknown;
        };
        let is_second = |word| second.is_some_and(|second| second.is(word));
        let selects = first.is_any(&[
            "TABLES",
            "DATABASES",
            "SCHEMAS",
            "VARIABLES",
            "STATUS",
            "COLUMNS",
            "FIELDS",
            "INDEX",
            "INDEXES",
            "KEYS",
            "CHARSET",
            "COLLATION",
            "ENGINES",
            "PLUGINS",
            "TRIGGERS",
            "EVENTS",
            "COUNT",
            "PROFILE",
        ]);
        if selects
            || first.is("CHARACTER") && is_second("SET")
            || first.is("OPEN") && is_second("TABLES")
            || first.is_any(&["TABLE", "PROCEDURE", "FUNCTION"]) && is_second("STATUS")
        {
            Self::Rows
        } else if first.is_any(&[
            "CREATE",
            "GRANTS",
            "PRIVILEGES",
            "WARNINGS",
            "ERRORS",
            "PROFILES",
            "ENGINE",
            "MASTER",
            "BINARY",
            "BINLOG",
            "RELAYLOG",
            "SLAVE",
            "REPLICA",
            "REPLICAS",
            "AUTHORS",
            "CONTRIBUTORS",
        ]) || first.is("PROCESSLIST") && mariadb == Some(true)
        {
            // MySQL's list may be a SELECT: performance_schema_show_processlist.
            Self::Nothing
        } else {
            Self::Unknown
        }
    }
}

/// Whether a DESCRIBE is of a table, and maybe a column, behind its verb. It explains a statement
/// else.
fn names_a_table<'a>(words: impl Iterator<Item = Token<'a>>) -> bool {
    const STATEMENTS: &[&str] = &[
        "SELECT",
        "INSERT",
        "REPLACE",
        "UPDATE",
        "DELETE",
        "WITH",
        "TABLE",
        "VALUES",
        "FORMAT",
        "EXTENDED",
        "PARTITIONS",
        "ANALYZE",
        "FOR",
        "INTO",
    ];
    let mut words = words.take_while(|token| !token.is_sign(b';'));
    let is_name = |token: Token<'_>| {
        token.kind == Kind::Name || token.kind == Kind::Word && !token.is_any(STATEMENTS)
    };
    if !words.next().is_some_and(is_name) {
        return false;
    }
    let mut next = words.next();
    if next.is_some_and(|token| token.is_sign(b'.')) {
        next = words.nth(1);
    }
    next.is_none_or(|column| column.kind != Kind::Sign) && words.next().is_none()
}

const EXPLAINS: &[&str] = &["DESCRIBE", "DESC", "EXPLAIN"];
/// Words that tell what a statement does that is explained.
const CHANGES: &[&str] = &[
    "SELECT", "INSERT", "REPLACE", "UPDATE", "DELETE", "WITH", "TABLE", "VALUES", "FOR", "INTO",
];

/// Whether an INSERT selects the rows that it inserts, and not only a value of one of them: then it
/// has found as many. MariaDB finds none of a maximum of no rows, and gives rows back.
fn selects_what_it_inserts(class: &Class<'_>, text: &[u8], mariadb: Option<bool>) -> bool {
    let mut depth = 0_i32;
    let mut outer = Words::new(text).filter(|token| {
        depth += i32::from(token.is_sign(b'(')) - i32::from(token.is_sign(b')'));
        depth == 0
    });
    let selects = outer.any(|token| token.is("SELECT"));
    match mariadb {
        Some(false) => selects,
        Some(true) => {
            selects
                && !runs_programs(class)
                && !class.groups
                && !outer.any(|token| token.is("RETURNING"))
        }
        None => false,
    }
}

/// Whether functions or procedures of users run with it.
fn runs_programs(class: &Class<'_>) -> bool {
    class
        .leaves
        .intersects(Leaves::UNKNOWN_STATE | Leaves::UNKNOWN_FUNCTION | Leaves::SQL_EXECUTE)
}

/// Whether `FOUND_ROWS()` is the same after a statement. What is not certain has changed it.
fn leaves_found_rows(class: &Class<'_>, text: &[u8], mariadb: Option<bool>) -> bool {
    use CommandCounter as C;
    let may = matches!(
        class.command,
        C::Begin
            | C::Commit
            | C::Delete
            | C::Insert
            | C::ReleaseSavepoint
            | C::Replace
            | C::Rollback
            | C::RollbackSavepoint
            | C::Savepoint
            | C::Set
            | C::StartTransaction
            | C::AlterTable
            | C::CreateDatabase
            | C::CreateIndex
            | C::CreateTable
            | C::CreateUser
            | C::DropIndex
            | C::DropTable
            | C::DropUser
            | C::DropView
            | C::Flush
            | C::Grant
            | C::LockTable
            | C::Optimize
            | C::RenameTable
            | C::UnlockTables
    ) || class.command == C::Update && mariadb == Some(true)
        || class.command == C::AnalyzeTable && is_of_table(text)
        || class.ddl
            && Words::new(text)
                .next()
                .is_some_and(|first| first.is("TRUNCATE"));
    // MySQL finds none of what a new table or a variable gets.
    let defines = class.ddl || class.command == C::AnalyzeTable;
    let selects = if defines {
        defines_by_a_query(text)
    } else {
        class.selects
    };
    let selects =
        selects && !(mariadb == Some(false) && matches!(class.command, C::CreateTable | C::Set));
    let programs = runs_programs(class);
    let joins = || matches!(class.command, C::Delete | C::Update) && names_several_tables(text);
    (may || class.use_db.is_some()) && !class.multi && !selects && !programs && !joins()
}

/// Whether a definition may have a query in it: the class takes the word TABLE for one.
fn defines_by_a_query(text: &[u8]) -> bool {
    let mut tables = 0;
    Words::new(text).any(|token| {
        tables += u32::from(token.is("TABLE"));
        tables > 1 || token.is_any(&["SELECT", "WITH", "VALUES"])
    })
}

fn is_of_table(text: &[u8]) -> bool {
    Words::new(text)
        .nth(1)
        .is_some_and(|token| token.is_any(&["TABLE", "TABLES", "LOCAL", "NO_WRITE_TO_BINLOG"]))
}

/// Whether an UPDATE or DELETE may be of several tables: servers select what such a one changes.
fn names_several_tables(text: &[u8]) -> bool {
    let mut words =
        Words::new(text).take_while(|token| !token.is_any(&["SET", "WHERE", "ORDER", "LIMIT"]));
    let is_delete = words.next().is_some_and(|token| token.is("DELETE"));
    let mut words = words.skip_while(|token| token.is_any(&["LOW_PRIORITY", "QUICK", "IGNORE"]));
    is_delete && !words.next().is_some_and(|token| token.is("FROM"))
        || words
            .any(|token| token.is_sign(b',') || token.is_any(&["JOIN", "STRAIGHT_JOIN", "USING"]))
}

const LIMITS: &[&str] = &["LIMIT", "OFFSET", "FETCH"];

/// Whether no LIMIT of a text leaves out rows before those that it takes.
fn leaves_nothing_out(text: &[u8]) -> bool {
    let mut words = Words::new(text);
    while let Some(token) = words.next() {
        let skips = token.is_any(&["OFFSET", "FETCH", "ROWS"])
            || token.is("LIMIT") && (words.next().is_none() || words.is_before(b','));
        if skips {
            return false;
        }
    }
    true
}

const SETS: &[&str] = &["UNION", "EXCEPT", "INTERSECT", "MINUS"];

/// Returns FOUND_ROWS() after a SELECT with so many rows in its answer, if that tells. Rows that an
/// OFFSET leaves out are found, too, and the union of others may have found more than its LIMIT,
/// except to MySQL. `mariadb`: whether a MariaDB does it, if that is known.
pub(crate) fn found_by(
    class: &Class<'_>,
    text: &[u8],
    rows: u64,
    mariadb: Option<bool>,
) -> Option<u32> {
    let rows = u32::try_from(rows).ok()?;
    if !class.limits {
        return Some(rows);
    }
    if !Words::new(text)
        .next()
        .is_some_and(|token| token.is_any(&["SELECT", "WITH", "TABLE"]))
    {
        // Of what is in parentheses, what is left out would have to be told apart.
        let unites = mariadb != Some(false) && Words::new(text).any(|token| token.is_any(SETS));
        let is_known = if unites {
            !Words::new(text).any(|token| token.is_any(LIMITS))
        } else {
            leaves_nothing_out(text)
        };
        return is_known.then_some(rows);
    }
    let mut depth = 0_i32;
    let mut words = Words::new(text).filter(|token| {
        depth += i32::from(token.is_sign(b'(')) - i32::from(token.is_sign(b')'));
        depth == 0
    });
    let mut before = words
        .by_ref()
        .find(|token| token.is_any(SETS) || token.is_any(LIMITS));
    if before.is_some_and(|token| token.is_any(SETS)) {
        before = words.by_ref().find(|token| token.is_any(LIMITS));
        if mariadb != Some(false) {
            return before.is_none().then_some(rows);
        }
    }
    match before {
        None => return Some(rows),
        Some(token) if token.is("LIMIT") => {}
        Some(_) => return None,
    }
    let first = words.next()?;
    let between = words.next();
    let skipped = match between {
        Some(between) if between.is_sign(b',') => Some(first),
        Some(between) if between.is("OFFSET") => Some(words.next()?),
        Some(between) if between.is("ROWS") => return None,
        _ => None,
    };
    if words.any(|token| token.is_any(SETS) || token.is("ROWS")) {
        return None;
    }
    let Some(skipped) = skipped else {
        return Some(rows);
    };
    let skipped: u32 = std::str::from_utf8(skipped.text).ok()?.parse().ok()?;
    if rows == 0 && skipped > 0 {
        None
    } else {
        rows.checked_add(skipped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_offset_leaves_out_is_found_too() {
        let found = |text: &str, rows| {
            found_by(
                &sql::class(text.as_bytes()),
                text.as_bytes(),
                rows,
                Some(true),
            )
        };
        for text in [
            "SELECT a FROM t",
            "SELECT a FROM t LIMIT 5",
            "SELECT a FROM t LIMIT ? FOR UPDATE",
            "SELECT a FROM t LIMIT 0, 5",
            "SELECT a FROM (SELECT a FROM t LIMIT 7 OFFSET 7) x LIMIT 3",
            "WITH x AS (SELECT 1 UNION SELECT 2 LIMIT 1) SELECT * FROM x LIMIT 3;",
            "SELECT 1 UNION SELECT 2",
            "(SELECT 1) UNION (SELECT 2)",
            "TABLE t ORDER BY a LIMIT 3",
            "(SELECT a FROM t) LIMIT 3",
            "(SELECT a FROM t LIMIT 9) ORDER BY a LIMIT 3",
            "SHOW TABLES WHERE Tables_in_t IN (SELECT a FROM t LIMIT 1)",
            "SHOW TABLES WHERE Tables_in_t IN ('LIMIT')",
        ] {
            assert_eq!(found(text, 3), Some(3), "{text}");
        }
        for text in [
            "SELECT a FROM t LIMIT 3 OFFSET 20",
            "SELECT a FROM t LIMIT 20, 3",
            "SELECT a FROM t LIMIT 20,5 FOR UPDATE",
            "WITH x AS (SELECT a FROM t LIMIT 7) SELECT a FROM x LIMIT 3 OFFSET 20",
            "TABLE t LIMIT 3 OFFSET 20",
        ] {
            assert_eq!((found(text, 3), found(text, 0)), (Some(23), None), "{text}");
        }
        for text in [
            "SELECT 1 UNION ALL SELECT 2 LIMIT 3",
            "SELECT a FROM t LIMIT ?, 5",
            "SELECT a FROM t LIMIT 5 OFFSET ?",
            "SELECT a FROM t LIMIT 5 ROWS EXAMINED 100",
            "SELECT a FROM t OFFSET 2 ROWS FETCH FIRST 3 ROWS ONLY",
            "(SELECT a FROM t LIMIT 3 OFFSET 2)",
            "SELECT a FROM t LIMIT 4294967295, 3",
            "SELECT a FROM t LIMIT",
        ] {
            assert_eq!(found(text, 3), None, "{text}");
        }
    }

    #[test]
    fn what_servers_answer_with_a_select_finds_rows() {
        let finds =
            |text: &str, mariadb| Finds::of(&sql::class(text.as_bytes()), text.as_bytes(), mariadb);
        for text in [
            "SELECT 1",
            "((SELECT 1) UNION SELECT 2)",
            "WITH x AS (SELECT 1) SELECT * FROM x",
            "TABLE t LIMIT 3",
            "show full tables from t like 'a'",
            "SHOW GLOBAL STATUS",
            "SHOW CHARACTER SET",
            "SHOW TABLE STATUS FROM t",
            "SHOW COUNT(*) WARNINGS",
            "DESC t",
            "EXPLAIN t.`s`;",
            "DESCRIBE s.t 'a%'",
        ] {
            assert_eq!(finds(text, Some(true)), Finds::Rows, "{text}");
            assert_eq!(finds(text, Some(false)), Finds::Rows, "{text}");
            assert_eq!(finds(text, None), Finds::Rows, "{text}");
        }
        for text in [
            "SHOW CREATE TABLE t",
            "SHOW WARNINGS",
            "SHOW GRANTS",
            "SHOW ERRORS LIMIT 2",
        ] {
            assert_eq!(finds(text, None), Finds::Nothing, "{text}");
        }
        for text in [
            "SHOW PROFILES",
            "SHOW ENGINE INNODB STATUS",
            "SHOW REPLICA STATUS",
            "SHOW BINLOG EVENTS",
        ] {
            assert_eq!(finds(text, None), Finds::Nothing, "{text}");
        }
        assert_eq!(
            (
                finds("SHOW PROCESSLIST", Some(true)),
                finds("SHOW PROCESSLIST", Some(false))
            ),
            (Finds::Nothing, Finds::Unknown)
        );
        for text in [
            "SHOW",
            "SHOW SLAVES",
            "EXPLAIN SELECT 1",
            "DESC FORMAT = JSON SELECT 1",
            "EXPLAIN ANALYZE TABLE t",
            "DESCRIBE",
            "EXPLAIN t, s",
            "CALL p()",
            "SELECT 1; SELECT 2",
            "DELETE FROM t WHERE a = (SELECT 1)",
            "INSERT INTO t VALUES ((SELECT 1))",
            "INSERT INTO t SET a = f()",
        ] {
            assert_eq!(finds(text, Some(true)), Finds::Unknown, "{text}");
            assert_eq!(finds(text, Some(false)), Finds::Unknown, "{text}");
        }
        assert_eq!(finds("VALUES ROW(1)", Some(false)), Finds::Rows);
        assert_eq!(
            (
                finds("VALUES (1)", Some(true)),
                finds("VALUES ROW(1)", None)
            ),
            (Finds::Unknown, Finds::Unknown)
        );
    }

    #[test]
    fn what_only_the_server_knows_is_told_from_what_nobody_knows() {
        let finds = |text: &str, mariadb| {
            Finds::of(&sql::class(text.as_bytes()), text.as_bytes(), Some(mariadb))
        };
        for text in [
            "INSERT INTO t SELECT a FROM s",
            "REPLACE INTO t (a) SELECT a FROM s LIMIT 3",
            "INSERT INTO t SELECT a FROM s ON DUPLICATE KEY UPDATE a = VALUES(a)",
        ] {
            assert_eq!(
                (finds(text, true), finds(text, false)),
                (Finds::Server, Finds::Server),
                "{text}"
            );
        }
        // What may be one row for no rows, and what gives rows back, is not certain to MariaDB.
        for text in [
            "INSERT INTO t SELECT MAX(a) FROM s WHERE 0",
            "INSERT INTO t SELECT a FROM s RETURNING a",
        ] {
            assert_eq!(finds(text, true), Finds::Unknown, "{text}");
        }
        assert_eq!(finds("ANALYZE SELECT * FROM t", true), Finds::Server);
        assert_eq!(
            finds("ANALYZE FORMAT=JSON SELECT * FROM t", true),
            Finds::Server
        );
        assert_eq!(finds("ANALYZE UPDATE t SET a = 1", true), Finds::Unknown);
        assert_eq!(
            finds("EXPLAIN ANALYZE SELECT * FROM t", false),
            Finds::Server
        );
        assert_eq!(
            (finds("DO 1, 2", false), finds("DO 1, 2", true)),
            (Finds::One, Finds::Unknown)
        );
        for (text, mysql) in [
            ("UPDATE t SET a = 1 WHERE b = 2", Finds::Matched),
            ("UPDATE t SET a = (SELECT 1)", Finds::Unknown),
            ("UPDATE t, s SET t.a = 1", Finds::Unknown),
            ("UPDATE t SET a = f()", Finds::Unknown),
            ("CREATE TABLE t SELECT 1", Finds::Nothing),
            ("SET @x = (SELECT 1)", Finds::Nothing),
        ] {
            assert_eq!(finds(text, false), mysql, "{text}");
            assert_eq!(
                finds(text, true),
                if mysql == Finds::Matched {
                    Finds::Nothing
                } else {
                    Finds::Unknown
                },
                "{text}"
            );
        }
        for text in [
            "TRUNCATE TABLE t",
            "DROP TABLE t",
            "ALTER TABLE t ADD a INT",
            "ANALYZE TABLE t",
            "CREATE TABLE t (a INT)",
        ] {
            assert_eq!(
                (finds(text, true), finds(text, false)),
                (Finds::Nothing, Finds::Nothing),
                "{text}"
            );
        }
    }

    #[test]
    fn to_mysql_the_limit_of_a_union_is_one_as_any_other() {
        let found = |text: &str, rows| {
            found_by(
                &sql::class(text.as_bytes()),
                text.as_bytes(),
                rows,
                Some(false),
            )
        };
        for text in [
            "SELECT 1 UNION ALL SELECT 2 LIMIT 3",
            "(SELECT a FROM t LIMIT 5) UNION ALL (SELECT a FROM t LIMIT 5) LIMIT 3",
            "SELECT a FROM t EXCEPT SELECT 1 ORDER BY a LIMIT 3",
        ] {
            assert_eq!(found(text, 3), Some(3), "{text}");
        }
        assert_eq!(found("SELECT 1 UNION SELECT 2 LIMIT 2, 3", 3), Some(5));
        assert_eq!(found("SELECT 1 UNION SELECT 2 LIMIT 5, 3", 0), None);
        assert_eq!(
            found("(SELECT a FROM t) UNION (SELECT 1) LIMIT 1 OFFSET 1", 1),
            None
        );
    }

    #[test]
    fn found_rows_outlive_what_selects_nothing() {
        let leaves = |text: &str| {
            leaves_found_rows(&sql::class(text.as_bytes()), text.as_bytes(), Some(true))
        };
        for text in [
            "UPDATE t SET a = 1, b = 2",
            "insert into t values (1)",
            "SET @x = 1",
            "COMMIT",
            "USE conf",
            "BEGIN",
            "DELETE QUICK FROM t",
        ] {
            assert!(leaves(text), "{text}");
        }
        for text in [
            "SELECT 1",
            "INSERT INTO t SELECT 1",
            "INSERT INTO t TABLE s",
            "DO 1",
            "SHOW TABLES",
            "UPDATE t SET a = f()",
            "CALL p()",
            "SET @x = (SELECT 1)",
            "DELETE t FROM t JOIN s ON t.a = s.a",
            "DELETE FROM t USING t JOIN s",
            "DELETE LOW_PRIORITY QUICK t, s FROM t, s",
            "UPDATE t, s SET t.a = 1",
            "UPDATE t JOIN s SET t.a = 1",
        ] {
            assert!(!leaves(text), "{text}");
        }
        assert!(!leaves_found_rows(
            &sql::class(b"UPDATE t SET a = 1"),
            b"UPDATE t SET a = 1",
            Some(false)
        ));
    }
}
