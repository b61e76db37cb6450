//! What MySQL's clients ask of a catalogue, in ClickHouse's words.

use crate::literals::text as literal;
use door::catalog;
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
        ["SELECT", ..] => select(text, &bare)?,
        _ => return None,
    };
    Some(Told::Sql(sql))
}

fn select(text: &str, bare: &str) -> Option<String> {
    let compact: String = bare
        .chars()
        .take(100)
        .filter(|c| !c.is_whitespace())
        .collect();
    match compact.to_ascii_uppercase().as_str() {
        "SELECTDATABASE()" => return Some("SELECT currentDatabase() AS `DATABASE()`".into()),
        "SELECTSCHEMA()" => return Some("SELECT currentDatabase() AS `SCHEMA()`".into()),
        _ => {}
    }
    let lower = text.to_ascii_lowercase();
    let is_there = lower.contains("information_schema.")
        || lower.contains("performance_schema.")
        || lower.contains("mysql.");
    let replaced = is_there
        .then(|| catalog::replace_by(text, table))
        .flatten()?;
    // ClickHouse compares names by their bytes, and so knows no collation of them.
    Some(replaced.replace(" COLLATE utf8mb4_general_ci", " "))
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
            let full = ", '' AS Collation, '' AS Privileges, '' AS Comment";
            columns_from(words[3], rest, more(4), database, full)
        }
        ["COLUMNS" | "FIELDS", "FROM" | "IN", _, rest @ ..] => {
            columns_from(words[2], rest, more(3), database, "")
        }
        ["CREATE", "TABLE", _] => {
            let (database, table) = placed(words[2], None, database);
            format!(
                "SELECT name AS `Table`, create_table_query AS `Create Table` FROM system.tables WHERE database = {database} AND name = {table}"
            )
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
    columns(table, named, database, full, &like(rest, words, "name"))
}

fn columns(table: &str, named: Option<&str>, database: &str, full: &str, like: &str) -> String {
    let (database, table) = placed(table, named, database);
    format!(
        "SELECT name AS Field, type AS Type, if(type LIKE '%Nullable(%', 'YES', 'NO') AS `Null`, '' AS `Key`, \
         if(default_expression = '', NULL, default_expression) AS `Default`, default_kind AS Extra{full} \
         FROM system.columns WHERE database = {database} AND table = {table} {like}"
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

/// `information_schema.columns`. Drivers look for MySQL's names of types; ClickHouse's own are the
/// comments. Positions grow, over all tables.
const COLUMNS: &str = r"SELECT 'def' AS TABLE_CATALOG, database AS TABLE_SCHEMA, table AS TABLE_NAME, name AS COLUMN_NAME,
    rowNumberInAllBlocks() + 1 AS ORDINAL_POSITION, if(default_expression = '', NULL, default_expression) AS COLUMN_DEFAULT,
    if(type LIKE '%Nullable(%', 'YES', 'NO') AS IS_NULLABLE,
    replaceRegexpAll(type, '^(LowCardinality[(])?(Nullable[(])?|[)]+$', '') AS bare,
    transform(bare, ['Int8', 'UInt8', 'Int16', 'UInt16', 'Int32', 'UInt32', 'Int64', 'UInt64', 'Float32', 'Float64', 'Date', 'Date32'],
        ['tinyint', 'tinyint', 'smallint', 'smallint', 'int', 'int', 'bigint', 'bigint', 'float', 'double', 'date', 'date'],
        multiIf(bare LIKE 'DateTime%', 'datetime', bare LIKE 'Decimal%', 'decimal', bare LIKE 'Enum%', 'enum',
            bare LIKE 'Array%' OR bare LIKE 'Tuple%' OR bare LIKE 'Map%', 'json', 'varchar')) AS DATA_TYPE,
    if(DATA_TYPE = 'varchar', toUInt64(65535), NULL) AS CHARACTER_MAXIMUM_LENGTH,
    CHARACTER_MAXIMUM_LENGTH AS CHARACTER_OCTET_LENGTH, if(0, toUInt64(0), NULL) AS NUMERIC_PRECISION,
    if(0, toUInt64(0), NULL) AS NUMERIC_SCALE, if(DATA_TYPE = 'datetime', toUInt64(0), NULL) AS DATETIME_PRECISION,
    if(DATA_TYPE = 'varchar', 'utf8mb4', NULL) AS CHARACTER_SET_NAME, if(DATA_TYPE = 'varchar', 'utf8mb4_general_ci', NULL) AS COLLATION_NAME,
    concat(DATA_TYPE, if(bare LIKE 'UInt%', ' unsigned', '')) AS COLUMN_TYPE, '' AS COLUMN_KEY, '' AS EXTRA, 'select' AS PRIVILEGES,
    type AS COLUMN_COMMENT, '' AS GENERATION_EXPRESSION FROM system.columns";

/// A table of `information_schema`.
fn table(name: &str) -> Option<String> {
    Some(match name {
        "schemata" => "(SELECT 'def' AS CATALOG_NAME, name AS SCHEMA_NAME, 'utf8mb4' AS DEFAULT_CHARACTER_SET_NAME, \
             'utf8mb4_general_ci' AS DEFAULT_COLLATION_NAME FROM system.databases)"
            .into(),
        "tables" => "(SELECT 'def' AS TABLE_CATALOG, database AS TABLE_SCHEMA, name AS TABLE_NAME, \
             if(engine LIKE '%View', 'VIEW', 'BASE TABLE') AS TABLE_TYPE, engine AS ENGINE, 10 AS VERSION, 'Dynamic' AS ROW_FORMAT, \
             toUInt64(0) AS TABLE_ROWS, toUInt64(0) AS DATA_LENGTH, 'utf8mb4_general_ci' AS TABLE_COLLATION, '' AS CREATE_OPTIONS, \
             '' AS TABLE_COMMENT FROM system.tables)"
            .into(),
        "columns" => format!("({COLUMNS})"),
        _ => return None,
    })
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
        assert!(sql("show columns from t").contains("database = 'shop' AND table = 't'"));
        assert!(sql("DESC `a`.`t`").contains("database = 'a' AND table = 't'"));
        assert!(sql("SHOW FULL COLUMNS FROM `t` FROM `a`").contains("database = 'a'"));
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
