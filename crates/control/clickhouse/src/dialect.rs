//! What MySQL's clients ask of a catalogue, in ClickHouse's words.

use crate::literals::text as literal;
use crate::schema::{self, COLUMNS};
use door::dialect::{name, unquote, without_comments, words};

/// Kind of a statement that is none of ClickHouse's.
#[derive(Debug, PartialEq)]
pub(crate) enum Told {
    /// SQL that answers it.
    Sql(String),
    /// KILL of a client, or (`true`) of what it asks.
    Kill(u32, bool),
}

/// A statement that ClickHouse would not understand as MySQL's clients mean it.
pub(crate) fn told(text: &str, database: &str) -> Option<Told> {
    let bare = without_comments(text);
    let words = words(&bare);
    let upper: Vec<String> = words.iter().map(|word| word.to_ascii_uppercase()).collect();
    let upper: Vec<&str> = upper.iter().map(String::as_str).collect();
    let number = |word: &&str| word.parse().ok();
    match upper[..] {
        ["KILL", "QUERY", _] => return Some(Told::Kill(number(&words[2])?, true)),
        ["KILL", "CONNECTION", _] => return Some(Told::Kill(number(&words[2])?, false)),
        ["KILL", _] => return Some(Told::Kill(number(&words[1])?, false)),
        _ => {}
    }
    let sql = match upper[..] {
        ["SHOW", ref rest @ ..] => show(rest, &words[1..], database)?,
        ["DESCRIBE" | "DESC" | "EXPLAIN", _] if upper[1] != "TABLE" => {
            columns(words[1], None, database, "", "")
        }
        ["SELECT", ..] => schema::asked(text)?,
        _ => return None,
    };
    Some(Told::Sql(sql))
}

fn show(upper: &[&str], words: &[&str], database: &str) -> Option<String> {
    let more = |from: usize| &words[from..];
    Some(match upper {
        ["DATABASES" | "SCHEMAS", rest @ ..] => {
            let like = like(rest, more(1), "name");
            format!("SELECT name AS `Database` FROM system.databases WHERE 1 {like} ORDER BY name")
        }
        ["FULL", "TABLES", rest @ ..] => tables(rest, more(2), database, true),
        ["TABLES", rest @ ..] => tables(rest, more(1), database, false),
        ["FULL", "COLUMNS" | "FIELDS", "FROM" | "IN", _, rest @ ..] => {
            let full =
                ", COLLATION_NAME AS Collation, 'select' AS Privileges, COLUMN_COMMENT AS Comment";
            columns_from(words[3], rest, more(4), database, full)
        }
        ["COLUMNS" | "FIELDS", "FROM" | "IN", _, rest @ ..] => {
            columns_from(words[2], rest, more(3), database, "")
        }
        ["CREATE", "TABLE", _] => {
            let (database, table) = placed(words[2], None, database);
            created(&database, &table)
        }
        ["TABLE", "STATUS", rest @ ..] => {
            let (from, rest, words) = from(rest, more(2));
            let database = literal(from.unwrap_or(database));
            let like = like(rest, words, "name");
            format!(
                "SELECT name AS Name, engine AS Engine, 10 AS Version, 'Dynamic' AS Row_format, toUInt64(0) AS Rows, '' AS Collation, '' AS Comment \
                 FROM system.tables WHERE database = {database} {like} ORDER BY name"
            )
        }
        _ => return None,
    })
}

/// `FROM database`, and what follows it.
fn from<'w, 'u>(
    upper: &'u [&'u str],
    words: &'w [&'w str],
) -> (Option<&'w str>, &'u [&'u str], &'w [&'w str]) {
    match upper {
        ["FROM" | "IN", _, rest @ ..] => (Some(name(words[1])), rest, &words[2..]),
        _ => (None, upper, words),
    }
}

/// The condition of a LIKE.
fn like(upper: &[&str], words: &[&str], column: &str) -> String {
    match upper {
        ["LIKE", _] => format!("AND {column} LIKE {}", literal(&unquote(words[1]))),
        _ => String::new(),
    }
}

fn tables(upper: &[&str], words: &[&str], database: &str, full: bool) -> String {
    let (named, rest, words) = from(upper, words);
    let database = named.unwrap_or(database);
    let like = like(rest, words, "name");
    let kind = if full {
        ", if(engine LIKE '%View', 'VIEW', 'BASE TABLE') AS Table_type"
    } else {
        ""
    };
    format!(
        "SELECT name AS `Tables_in_{}`{kind} FROM system.tables WHERE database = {} {like} ORDER BY name",
        database.replace(['`', '\\'], ""),
        literal(database)
    )
}

fn columns_from(table: &str, upper: &[&str], words: &[&str], database: &str, full: &str) -> String {
    let (named, rest, words) = from(upper, words);
    columns(
        table,
        named,
        database,
        full,
        &like(rest, words, "COLUMN_NAME"),
    )
}

fn columns(table: &str, named: Option<&str>, database: &str, full: &str, like: &str) -> String {
    let (database, table) = placed(table, named, database);
    format!(
        "SELECT COLUMN_NAME AS Field, COLUMN_TYPE AS Type, IS_NULLABLE AS `Null`, '' AS `Key`, COLUMN_DEFAULT AS `Default`, '' AS Extra{full} \
         FROM ({COLUMNS}) WHERE TABLE_SCHEMA = {database} AND TABLE_NAME = {table} {like} ORDER BY ORDINAL_POSITION"
    )
}

/// A table as MySQL would have made it, for those who read columns out of that; how ClickHouse has is
/// its comment.
fn created(database: &str, table: &str) -> String {
    format!(
        "SELECT name AS `Table`, concat('CREATE TABLE `', name, '` (\n', lines, '\n) ENGINE=', engine, ' DEFAULT CHARSET=utf8mb4 COMMENT=\\'', \
         replaceAll(create_table_query, '\\'', '\\'\\''), '\\'') AS `Create Table` \
         FROM system.tables ANY LEFT JOIN (SELECT TABLE_NAME AS name, arrayStringConcat(groupArray(concat('  `', COLUMN_NAME, '` ', COLUMN_TYPE, \
         if(IS_NULLABLE = 'YES', '', ' NOT NULL'))), ',\n') AS lines FROM ({COLUMNS}) WHERE TABLE_SCHEMA = {database} AND TABLE_NAME = {table} GROUP BY name) \
         USING name WHERE database = {database} AND name = {table}"
    )
}

/// Database and table, as literals.
fn placed(table: &str, named: Option<&str>, database: &str) -> (String, String) {
    let (of, table) = match table.split_once('.') {
        Some((of, table)) => (name(of), table),
        None => (named.unwrap_or(database), table),
    };
    (literal(of), literal(name(table)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sql(text: &str) -> String {
        match told(text, "shop") {
            Some(Told::Sql(sql)) => sql,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn catalogues_are_asked_in_clickhouses_words() {
        assert!(
            sql("SHOW FULL TABLES FROM `a` LIKE 'b%'")
                .contains("database = 'a' AND name LIKE 'b%'")
        );
        let of = |database: &str, table: &str| {
            format!("TABLE_SCHEMA = '{database}' AND TABLE_NAME = '{table}'")
        };
        assert!(sql("show columns from t").contains(&of("shop", "t")));
        assert!(sql("DESC `a`.`t`").contains(&of("a", "t")));
        assert!(sql("SHOW FULL COLUMNS FROM `t` FROM `a`").contains(&of("a", "t")));
        assert!(sql("SELECT * FROM information_schema.tables t").contains("FROM system.tables) t"));
        assert_eq!(told("KILL QUERY 7", ""), Some(Told::Kill(7, true)));
        assert_eq!(told("KILL 7", ""), Some(Told::Kill(7, false)));
        for own in [
            "KILL QUERY WHERE query_id = 'x'",
            "SELECT 1",
            "SHOW PROCESSLIST",
            "INSERT INTO t VALUES (1)",
        ] {
            assert_eq!(told(own, ""), None, "{own}");
        }
    }
}
