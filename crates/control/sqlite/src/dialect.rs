//! What MySQL's clients say and SQLite does not understand, besides what no such server does: a text
//! becomes one value, or is left to SQLite.

pub(crate) use door::dialect::{Said, name, unquote};

use door::dialect as common;

/// PRAGMAs that tell something and change nothing, whatever their argument. ALTER TABLE looks
/// through the rows with the last.
pub(crate) const HARMLESS: &[&str] = &[
    "table_info",
    "table_xinfo",
    "table_list",
    "index_list",
    "index_info",
    "foreign_key_list",
    "integrity_check",
    "quick_check",
];

/// Understands a statement.
pub(crate) fn parse(text: &str) -> Said {
    let text = match common::parse(text) {
        Said::Sql(text) => text,
        Said::Set(values) if values.iter().any(|(name, _)| name.starts_with('@')) => {
            return Said::Refuse("user variables are not known to this server");
        }
        said => return said,
    };
    let text = text.as_str();
    let bare = common::without_comments(text);
    let words = common::words(&bare);
    let upper: Vec<String> = words.iter().map(|word| word.to_ascii_uppercase()).collect();
    let upper: Vec<&str> = upper.iter().map(String::as_str).collect();
    let [first, ..] = upper[..] else {
        return Said::Blank;
    };
    match (first, &upper[..]) {
        ("ATTACH" | "DETACH", _) => {
            Said::Refuse("other files than the server's own cannot be used")
        }
        ("VACUUM", _) if upper.contains(&"INTO") => {
            Said::Refuse("other files than the server's own cannot be used")
        }
        ("PRAGMA", _) => pragma(&words, text),
        ("KILL", _) => Said::Refuse("connections of this server cannot be killed"),
        ("TRUNCATE", [_, "TABLE", _]) => Said::Sql(format!("DELETE FROM {}", words[2])),
        ("TRUNCATE", [_, _]) => Said::Sql(format!("DELETE FROM {}", words[1])),
        ("INSERT", [_, "IGNORE", ..]) => Said::Sql(replace_word(text, "IGNORE", "OR IGNORE")),
        ("DESCRIBE" | "DESC", [_, _]) => columns_of(words[1]),
        ("SHOW", _) => show(&words, &upper),
        ("SELECT", _) => select(text),
        _ => Said::Sql(text.to_owned()),
    }
}

fn select(text: &str) -> Said {
    let short = if text.len() <= 4096 { text } else { "" };
    let compact: String = short
        .chars()
        .filter(|c| !c.is_whitespace())
        .collect::<String>()
        .to_ascii_uppercase();
    match compact.as_str() {
        "SELECTCURRENT_USER" | "SELECTCURRENT_USER()" => {
            return Said::Sql("SELECT user() AS 'CURRENT_USER()'".into());
        }
        "SELECTNOW()" => return Said::Sql("SELECT datetime('now') AS 'NOW()'".into()),
        _ => {}
    }
    if let Some(sql) = door::catalog::replace(text, &[("main", "main")]) {
        return Said::Sql(sql);
    }
    // Everything that reads in a transaction of SQLite is safe from writers until it ends.
    for lock in [" FOR UPDATE", " LOCK IN SHARE MODE", " FOR SHARE"] {
        let at = text.len().saturating_sub(lock.len());
        if text
            .get(at..)
            .is_some_and(|tail| tail.eq_ignore_ascii_case(lock))
        {
            return Said::Sql(text[..at].to_owned());
        }
    }
    Said::Sql(text.to_owned())
}

fn pragma(words: &[&str], text: &str) -> Said {
    let name = words
        .get(1)
        .map_or("", |word| word.split(['(', '=']).next().unwrap_or_default());
    let is_harmless = HARMLESS
        .iter()
        .any(|harmless| harmless.eq_ignore_ascii_case(name))
        && !text.contains('=');
    if is_harmless {
        Said::Sql(text.to_owned())
    } else {
        Said::Refuse("this PRAGMA is not allowed")
    }
}

fn show(words: &[&str], upper: &[&str]) -> Said {
    let sql = |sql: &str| Said::Sql(sql.to_owned());
    match upper {
        [_, "DATABASES" | "SCHEMAS", ..] => {
            sql("SELECT 'information_schema' AS \"Database\" UNION ALL SELECT 'main'")
        }
        [_, "FULL", "TABLES", rest @ ..] => tables(
            rest,
            words,
            ", CASE type WHEN 'view' THEN 'VIEW' ELSE 'BASE TABLE' END AS Table_type",
        ),
        [_, "TABLES", rest @ ..] => tables(rest, words, ""),
        [_, "CREATE", "TABLE", _] => {
            let name = literal(name(words[3]));
            Said::Sql(format!(
                "SELECT name AS \"Table\", sql AS \"Create Table\" FROM sqlite_master WHERE type='table' AND name={name} COLLATE NOCASE"
            ))
        }
        [_, "CREATE", "DATABASE" | "SCHEMA", ..] => {
            sql("SELECT 'main' AS \"Database\", 'CREATE DATABASE main' AS \"Create Database\"")
        }
        [_, "COLUMNS" | "FIELDS", "FROM" | "IN", _, ..] => columns_of(words[3]),
        [_, "FULL", "COLUMNS" | "FIELDS", "FROM" | "IN", _, ..] => columns_of(words[4]),
        [_, "TABLE", "STATUS", rest @ ..] => table_status(rest, words),
        [_, "COUNT(*)", "WARNINGS" | "ERRORS"] => sql("SELECT 0 AS '@@session.warning_count'"),
        [_, "ENGINES"] => sql(
            "SELECT 'SQLite' AS Engine, 'DEFAULT' AS Support, 'SQLite inside of Millrace' AS Comment, 'YES' AS Transactions, 'NO' AS XA, 'YES' AS Savepoints",
        ),
        _ => Said::Refuse("this SHOW is not known to this server"),
    }
}

fn tables(rest: &[&str], words: &[&str], more: &str) -> Said {
    let mut sql = format!(
        "SELECT name AS Tables_in_main{more} FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
    );
    let tail = &words[words.len() - rest.len()..];
    let (rest, tail) = match rest {
        ["FROM" | "IN", schema, rest @ ..] => {
            if !name(schema).eq_ignore_ascii_case("main") {
                sql += " AND 0";
            }
            (rest, &tail[2..])
        }
        rest => (rest, tail),
    };
    if let ["LIKE", ..] = rest {
        sql += &format!(
            " AND name LIKE {} ESCAPE '\\'",
            literal(&unquote(&tail[1..].join(" ")))
        );
    }
    Said::Sql(sql + " ORDER BY name")
}

fn table_status(rest: &[&str], words: &[&str]) -> Said {
    let mut sql = "SELECT TABLE_NAME AS Name, ENGINE AS Engine, VERSION AS Version, ROW_FORMAT AS Row_format, TABLE_ROWS AS Rows, \
                   AVG_ROW_LENGTH AS Avg_row_length, DATA_LENGTH AS Data_length, MAX_DATA_LENGTH AS Max_data_length, \
                   INDEX_LENGTH AS Index_length, DATA_FREE AS Data_free, AUTO_INCREMENT AS Auto_increment, CREATE_TIME AS Create_time, \
                   UPDATE_TIME AS Update_time, CHECK_TIME AS Check_time, TABLE_COLLATION AS Collation, CHECKSUM AS Checksum, \
                   CREATE_OPTIONS AS Create_options, TABLE_COMMENT AS Comment FROM information_schema.tables"
        .to_owned();
    if let [.., "LIKE", _] = rest {
        let pattern = words.last().map_or("", |pattern| *pattern);
        sql += &format!(
            " WHERE TABLE_NAME LIKE {} ESCAPE '\\'",
            literal(&unquote(pattern))
        );
    }
    Said::Sql(door::catalog::replace(&sql, &[("main", "main")]).unwrap_or(sql))
}

fn columns_of(table: &str) -> Said {
    let table = table.rsplit('.').next().unwrap_or_default();
    Said::Sql(format!(
        "SELECT name AS Field, type AS Type, iif(\"notnull\" OR pk, 'NO', 'YES') AS \"Null\", iif(pk, 'PRI', '') AS \"Key\", \
         dflt_value AS \"Default\", '' AS Extra FROM pragma_table_info({})",
        literal(name(table))
    ))
}

/// As a literal of SQLite.
pub(crate) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn replace_word(text: &str, word: &str, by: &str) -> String {
    let at = text.to_ascii_uppercase().find(word).unwrap_or(text.len());
    format!(
        "{}{by}{}",
        &text[..at],
        &text[(at + word.len()).min(text.len())..]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_clients_say_at_their_start_is_understood() {
        assert_eq!(
            names_set(parse("SET NAMES utf8mb4 COLLATE utf8mb4_bin")),
            [
                "character_set_client",
                "character_set_connection",
                "character_set_results"
            ]
        );
        assert_eq!(
            parse("set autocommit=0;"),
            Said::Set(vec![("autocommit".into(), "0".into())])
        );
        assert_eq!(
            parse("SET sql_mode='STRICT_TRANS_TABLES'"),
            Said::Set(vec![("sql_mode".into(), "STRICT_TRANS_TABLES".into())])
        );
        assert_eq!(
            parse("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"),
            Said::Set(vec![])
        );
        assert!(matches!(parse("SET @a=1"), Said::Refuse(_)));
        assert!(matches!(
            parse("/* c */ select @@tx_isolation"),
            Said::Variables(_)
        ));
        for begin in [
            "BEGIN",
            "start transaction",
            "START TRANSACTION WITH CONSISTENT SNAPSHOT",
            "/* x */ begin work",
        ] {
            assert_eq!(parse(begin), Said::Begin, "{begin}");
        }
        assert_eq!(parse("COMMIT AND NO CHAIN"), Said::Commit);
        assert_eq!(parse("rollback"), Said::Rollback);
        assert_eq!(
            parse("ROLLBACK TO SAVEPOINT a"),
            Said::Sql("ROLLBACK TO SAVEPOINT a".into())
        );
        assert_eq!(parse("USE `main`"), Said::Use("main".into()));
        assert_eq!(parse("SELECT SLEEP(0.5)"), Said::Sleep(0.5));
        assert_eq!(parse(" -- nothing"), Said::Blank);
        assert_eq!(parse("/*!40101 SET NAMES utf8 */"), Said::Accept);
    }

    /// Texts of all kinds of pieces, put together without sense.
    fn nonsense(mut seed: u64, pieces: &[&str]) -> String {
        let mut text = String::new();
        for _ in 0..seed % 12 {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            text += pieces[(seed >> 33) as usize % pieces.len()];
        }
        text
    }

    #[test]
    fn no_text_is_too_strange() {
        const PIECES: &[&str] = &[
            "SELECT ",
            "SET ",
            "SHOW ",
            "FULL ",
            "TABLES ",
            "LIKE ",
            "'",
            "\"",
            "`",
            "ä",
            " FOR UPDATE",
            "/*",
            "*/",
            "/*!",
            "-- ",
            "#",
            "\n",
            "\0",
            ";",
            "INSERT ",
            "IGNORE ",
            "ı",
            "TRUNCATE ",
            "PRAGMA ",
            "table_info",
            "(",
            ")",
            "=",
            "@@",
            "@",
            "SLEEP(",
            "1e999",
            "CREATE ",
            "TABLE ",
            "STATUS ",
            "FROM ",
            "information_schema.",
            "columns",
            "VARIABLES ",
            "WHERE ",
            "USE ",
            "DESC ",
            "ROLLBACK ",
            "TO ",
        ];
        for seed in 0..200_000 {
            drop(parse(&nonsense(seed, PIECES)));
        }
    }

    #[test]
    fn what_only_mysql_writes_becomes_sqlite() {
        assert_eq!(
            parse("SELECT a FROM t WHERE id=1 for update"),
            Said::Sql("SELECT a FROM t WHERE id=1".into())
        );
        assert_eq!(
            parse("INSERT IGNORE INTO t VALUES (1)"),
            Said::Sql("INSERT OR IGNORE INTO t VALUES (1)".into())
        );
        assert_eq!(parse("truncate table t"), Said::Sql("DELETE FROM t".into()));
        assert_eq!(
            parse("WITH x AS (SELECT 1) SELECT * FROM x"),
            Said::Sql("WITH x AS (SELECT 1) SELECT * FROM x".into())
        );
    }

    #[test]
    fn other_files_and_settings_of_sqlite_are_out_of_reach() {
        for text in [
            "ATTACH 'x' AS y",
            "/* */ attach database 'x' as y",
            "VACUUM INTO '/tmp/x'",
            "PRAGMA journal_mode=DELETE",
            "PRAGMA writable_schema(1)",
        ] {
            assert!(matches!(parse(text), Said::Refuse(_)), "{text}");
        }
        assert!(matches!(parse("PRAGMA table_info(t)"), Said::Sql(_)));
    }

    fn names_set(said: Said) -> Vec<String> {
        match said {
            Said::Set(values) => values.into_iter().map(|(name, _)| name).collect(),
            other => panic!("{other:?}"),
        }
    }
}
