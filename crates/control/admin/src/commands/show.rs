//! SHOW: nearly all of them are a SELECT with other words.

use super::command::Command;
use super::words::{after, from, is, literal, unquoted};
use crate::engine::View;
use crate::tables::{self, Schema};

/// A SHOW that lists something.
struct List {
    shows: &'static [&'static str],
    select: &'static str,
    /// Column that a LIKE is about.
    name: &'static str,
    order: &'static str,
}

const LISTS: &[List] = &[
    List {
        shows: &["SHOW DATABASES", "SHOW SCHEMAS"],
        select: "SELECT seq, name, file FROM pragma_database_list WHERE seq <> 1",
        name: "name",
        order: "seq",
    },
    List {
        shows: &["SHOW MYSQL STATUS"],
        select: "SELECT Variable_Name AS Variable_name, Variable_Value AS Value FROM stats_mysql_global WHERE 1",
        name: "Variable_Name",
        order: "1",
    },
    List {
        shows: &["SHOW CHARSET", "SHOW CHARACTER SET"],
        select: "SELECT Charset, Collation AS 'Default collation' FROM mysql_collations WHERE \"Default\"='Yes'",
        name: "Charset",
        order: "Id",
    },
    List {
        shows: &["SHOW COLLATION", "SHOW COLLATIONS"],
        select: "SELECT * FROM mysql_collations WHERE 1",
        name: "Collation",
        order: "Id",
    },
];

const FIXED: &[(&str, &str)] = &[
    (
        "SHOW FULL PROCESSLIST",
        "SELECT * FROM stats_mysql_processlist",
    ),
    (
        "SHOW PROCESSLIST",
        "SELECT SessionID, user, db, hostgroup, command, time_ms, info FROM stats_mysql_processlist",
    ),
    ("SHOW MYSQL USERS", "SELECT * FROM mysql_users"),
    ("SHOW MYSQL SERVERS", "SELECT * FROM mysql_servers"),
    // Ours: many guess that they are there.
    (
        "SHOW MYSQL QUERY RULES",
        "SELECT * FROM mysql_query_rules ORDER BY rule_id",
    ),
    ("SHOW PROXYSQL SERVERS", "SELECT * FROM proxysql_servers"),
    ("SHOW SCHEDULER", "SELECT * FROM scheduler ORDER BY id"),
    ("SHOW RESTAPI", "SELECT * FROM restapi_routes ORDER BY id"),
    (
        "SHOW RESTAPI ROUTES",
        "SELECT * FROM restapi_routes ORDER BY id",
    ),
];

/// Which variables, by the beginning of their names.
const VARIABLES: &[(&str, &str)] = &[
    ("SHOW VARIABLES", ""),
    ("SHOW ALL VARIABLES", ""),
    ("SHOW GLOBAL VARIABLES", ""),
    ("SHOW SESSION VARIABLES", ""),
    ("SHOW MYSQL VARIABLES", "mysql-"),
    ("SHOW ADMIN VARIABLES", "admin-"),
    ("SHOW SQLITESERVER VARIABLES", "sqliteserver-"),
    ("SHOW CLICKHOUSE VARIABLES", "clickhouse-"),
];

pub(super) fn parse(text: &str, words: &[&str], view: View) -> Option<Command> {
    if is(words, &["SHOW PROMETHEUS METRICS"]) {
        return Some(Command::Metrics);
    }
    let fixed = FIXED
        .iter()
        .find(|(show, _)| is(words, &[show]))
        .map(|(_, sql)| (*sql).to_owned());
    fixed
        .or_else(|| lists(text, words))
        .or_else(|| variables(text, words))
        .or_else(|| tables(text, words))
        .or_else(|| create(words, view))
        .or_else(|| fields(words, view))
        .or_else(|| dump_tools(text, words))
        .map(Command::Query)
}

/// Condition that ends a SHOW, with AND in front: `LIKE pattern` for the column `name`, `WHERE` and
/// an expression, or nothing. Nothing may follow.
pub(super) fn condition(text: &str, rest: &[&str], name: &str) -> Option<String> {
    match rest {
        [] => Some(String::new()),
        [like, pattern, ..] if like.eq_ignore_ascii_case("like") => {
            // MySQL escapes `_` and `%` with a backslash.
            let pattern = unquoted(from(text, pattern));
            Some(format!(" AND {name} LIKE {} ESCAPE '\\'", literal(pattern)))
        }
        // A comment behind the expression ends with its line.
        [r#where, first, ..] if r#where.eq_ignore_ascii_case("where") => {
            Some(format!(" AND ({}\n)", from(text, first)))
        }
        _ => None,
    }
}

fn lists(text: &str, words: &[&str]) -> Option<String> {
    let (list, rest) = LISTS.iter().find_map(|list| {
        let rest = list.shows.iter().find_map(|show| after(words, show))?;
        Some((list, rest))
    })?;
    let condition = condition(text, rest, list.name)?;
    Some(format!(
        "{}{condition} ORDER BY {}",
        list.select, list.order
    ))
}

fn variables(text: &str, words: &[&str]) -> Option<String> {
    let (prefix, rest) = VARIABLES
        .iter()
        .find_map(|(show, prefix)| Some((prefix, after(words, show)?)))?;
    let condition = condition(text, rest, "variable_name")?;
    let plain = if prefix.is_empty() {
        plain_variables(&condition)
    } else {
        String::new()
    };
    let source = if plain.is_empty() {
        "global_variables".to_owned()
    } else {
        format!("(SELECT variable_name, variable_value FROM global_variables{plain})")
    };
    Some(format!(
        "SELECT variable_name AS Variable_name, variable_value AS Value FROM {source} \
         WHERE variable_name LIKE '{prefix}%'{condition} ORDER BY variable_name"
    ))
}

/// Variables of a plain server that a condition has the names of, as more SELECTs. Drivers ask for
/// them when they connect; a pattern finds none.
fn plain_variables(condition: &str) -> String {
    let mut selects = String::new();
    let mut quoted: Vec<String> = condition
        .split(['\'', '"'])
        .skip(1)
        .step_by(2)
        .map(|name| name.replace('\\', "").to_ascii_lowercase())
        .collect();
    quoted.sort_unstable();
    quoted.dedup();
    for name in quoted {
        let value = match name.as_str() {
            "version" => ":version".to_owned(),
            "version_comment" => literal("(ProxySQL Admin Module)"),
            "max_allowed_packet" => "(SELECT variable_value FROM global_variables WHERE variable_name = 'mysql-max_allowed_packet')".to_owned(),
            name => match door::hello::usual(name) {
                Some(value) => literal(value),
                None => continue,
            },
        };
        selects += &format!(" UNION ALL SELECT {}, {value}", literal(&name));
    }
    selects
}

fn tables(text: &str, words: &[&str]) -> Option<String> {
    let (schema, rest) = of_schema(after(words, "SHOW TABLES")?);
    let condition = condition(text, rest, "name")?;
    Some(format!(
        "SELECT name AS tables FROM {}.sqlite_master WHERE type='table' AND name <> 'sqlite_sequence'{condition} ORDER BY name",
        name(schema)?
    ))
}

/// `FROM schema` before the rest, or the usual one.
pub(super) fn of_schema<'w, 'a>(words: &'w [&'a str]) -> (&'a str, &'w [&'a str]) {
    match words {
        [from, schema, rest @ ..] if is(&[from], &["FROM", "IN"]) => (unquoted(schema), rest),
        rest => ("main", rest),
    }
}

/// Something that can stand in a statement without quotes.
pub(super) fn name(text: &str) -> Option<&str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    (!text.is_empty() && text.chars().all(plain)).then_some(text)
}

/// Schema and name of a table; one that is named alone is looked for where it is.
pub(super) fn table(text: &str, view: View) -> Option<(&str, &str)> {
    match text.split_once('.') {
        Some((schema, table)) => Some((name(unquoted(schema))?, name(unquoted(table))?)),
        None => {
            let table = name(unquoted(text))?;
            let found = tables::copies()
                .into_iter()
                .find(|copy| copy.name.eq_ignore_ascii_case(table));
            let schema = found
                .map(|copy| copy.schema)
                .filter(|schema| (view, *schema) != (View::Stats, Schema::Stats));
            Some((schema.unwrap_or(Schema::Main).name(), table))
        }
    }
}

fn create(words: &[&str], view: View) -> Option<String> {
    let [named] = after(words, "SHOW CREATE TABLE")? else {
        return None;
    };
    let (schema, table) = table(named, view)?;
    let name = literal(table);
    Some(format!(
        "SELECT name AS 'table', sql AS 'Create Table' FROM {schema}.sqlite_master WHERE type='table' AND name={name} COLLATE NOCASE"
    ))
}

pub(super) fn fields(words: &[&str], view: View) -> Option<String> {
    let described = || after(words, "DESCRIBE").or_else(|| after(words, "DESC"));
    let [named, rest @ ..] = described()
        .or_else(|| after(words, "SHOW FIELDS FROM"))
        .or_else(|| after(words, "SHOW COLUMNS FROM"))
        .or_else(|| after(words, "SHOW FULL FIELDS FROM"))
        .or_else(|| after(words, "SHOW FULL COLUMNS FROM"))?
    else {
        return None;
    };
    // The schema may be named behind as well; the table's own name leads to it.
    let _ = rest;
    let (schema, table) = table(named, view)?;
    Some(format!(
        "SELECT name AS Field, type AS Type, iif(\"notnull\", 'NO', 'YES') AS 'Null', iif(pk, 'PRI', '') AS 'Key', dflt_value AS 'Default', \
         '' AS Extra FROM pragma_table_info({}, '{schema}')",
        literal(table)
    ))
}

/// Returns the SQL that answers what dump tools ask of each table.
fn dump_tools(text: &str, words: &[&str]) -> Option<String> {
    if let Some(rest) = after(words, "SHOW TABLE STATUS") {
        let (schema, rest) = of_schema(rest);
        let schema = name(schema)?;
        let condition = condition(text, rest, "name")?;
        return Some(format!(
            "SELECT name AS Name, 'InnoDB' AS Engine, '10' AS Version, 'Dynamic' AS Row_format, 0 AS Rows, 0 AS Avg_row_length, \
             0 AS Data_length, 0 AS Max_data_length, 0 AS Index_length, 0 AS Data_free, NULL AS Auto_increment, NULL AS Create_time, \
             NULL AS Update_time, NULL AS Check_time, 'utf8_bin' AS Collation, NULL AS Checksum, '' AS Create_options, '' AS Comment \
             FROM {schema}.sqlite_master WHERE type='table' AND name <> 'sqlite_sequence'{condition} ORDER BY name"
        ));
    }
    if after(words, "SHOW TRIGGERS").is_some()
        || after(words, "SHOW EVENTS").is_some()
        || is(words, &["SHOW PLUGINS"])
    {
        return Some("SELECT NULL AS Name WHERE 0".into());
    }
    if let Some(rest) =
        after(words, "SHOW FUNCTION STATUS").or_else(|| after(words, "SHOW PROCEDURE STATUS"))
    {
        return (!rest.is_empty()).then(|| "SELECT NULL AS Name WHERE 0".into());
    }
    let named = after(words, "SHOW CREATE DATABASE IF NOT EXISTS")
        .or_else(|| after(words, "SHOW CREATE DATABASE"))?;
    let [schema] = named else { return None };
    let schema = name(unquoted(schema))?;
    Some(format!(
        "SELECT '{schema}' AS 'Database', 'CREATE DATABASE {schema}' AS 'Create Database'"
    ))
}
