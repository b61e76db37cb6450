//! A look-up of a sharded table: its table is made, and gets entries of the rows that are there.
//!
//! docs/features/look-ups.md

use crate::check::is_mariadb;
use crate::source::{self, is_it, one, text};
use crate::table::{Key, Table, name, quoted, string};
use crate::{Place, Trouble, open};
use line::{Failed, Line};
use rt::Rt;
use std::time::Duration;

/// ER_NO_SUCH_TABLE.
const NO_TABLE: u16 = 1146;
/// Types whose values are too long, or have no order, for a key.
const UNFIT: &[&str] = &[
    "text",
    "blob",
    "json",
    "geometry",
    "point",
    "polygon",
    "linestring",
    "vector",
];

/// A column that gets a look-up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LookedUpColumn {
    /// Its name.
    pub name: String,
    /// As SQL defines it, never NULL.
    definition: String,
    /// Whether it may be NULL.
    pub is_nullable: bool,
    /// Whether a row that says nothing of it has another value than NULL.
    pub has_default: bool,
    /// Whether each unique key has the sharding key in it.
    pub same_key: bool,
    /// Whether the server numbers it.
    pub is_numbered: bool,
}

/// A look-up that is filled.
#[derive(Debug)]
pub struct Filling<'a> {
    /// Schema and table of the rows.
    pub from: (&'a str, &'a str),
    /// The column that is looked up.
    pub column: &'a str,
    /// The sharding key.
    pub key: &'a str,
    /// Schema and table of the entries.
    pub to: (&'a str, &'a str),
    /// Rows that are read at once.
    pub rows_at_once: u64,
    /// Rows that are read in a second at most; 0 for no limit.
    pub rows_per_second: u64,
}

fn words(failed: Failed) -> String {
    failed.to_string()
}

fn in_words(trouble: Trouble) -> String {
    trouble.words()
}

/// Looks at a column of a partition's table.
///
/// # Errors
/// It cannot have a look-up, or the server cannot be asked.
pub async fn look_at_column(
    rt: &Rt,
    place: &Place,
    (schema, table): (&str, &str),
    (column, key): (&str, &str),
) -> Result<LookedUpColumn, String> {
    let mut line = open(rt, place).await.map_err(words)?;
    let of_it = is_it(schema, table, "TABLE_SCHEMA", "TABLE_NAME");
    let sql = format!(
        "SELECT COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, CHARACTER_SET_NAME, COLLATION_NAME, IS_NULLABLE, COLUMN_DEFAULT, EXTRA \
         FROM information_schema.COLUMNS WHERE {of_it} AND COLUMN_NAME = {}",
        string(column)
    );
    let rows = line.ask(&sql).await.map_err(words)?;
    let Some(row) = rows.first() else {
        return Err(format!("{} has no such column", quoted(schema, table)));
    };
    let (kind, extra) = (
        text(row, 1).to_ascii_lowercase(),
        text(row, 7).to_ascii_lowercase(),
    );
    if UNFIT.iter().any(|unfit| kind.contains(unfit)) {
        return Err(format!("a column of type {kind} is no key of a table"));
    }
    if extra.contains("generated") && !extra.contains("default_generated") {
        return Err("the server computes it".to_owned());
    }
    if extra.contains("on update") {
        return Err("the server changes it with each UPDATE".to_owned());
    }
    let triggers = format!(
        "SELECT COUNT(*) FROM information_schema.TRIGGERS WHERE {}",
        is_it(schema, table, "EVENT_OBJECT_SCHEMA", "EVENT_OBJECT_TABLE")
    );
    if one(&mut line, &triggers).await.map_err(in_words)? != "0" {
        return Err(format!(
            "{} has triggers, which may change it",
            quoted(schema, table)
        ));
    }
    let default = row.get(6).and_then(Option::as_deref);
    let default = default.map(|default| String::from_utf8_lossy(default).into_owned());
    let default = constant(default, &extra, is_mariadb(&line))?;
    let mut definition = text(row, 2);
    if row.get(3).is_some_and(Option::is_some) {
        definition += &format!(" CHARACTER SET {} COLLATE {}", text(row, 3), text(row, 4));
    }
    definition += " NOT NULL";
    if let Some(default) = &default {
        definition += &format!(" DEFAULT {default}");
    }
    let sql = format!(
        "SELECT COUNT(*) FROM (SELECT INDEX_NAME, MAX(COLUMN_NAME = {}) AS has_it FROM information_schema.STATISTICS \
         WHERE {of_it} AND NON_UNIQUE = 0 GROUP BY INDEX_NAME) AS keys_of_it WHERE has_it = 0",
        string(key)
    );
    Ok(LookedUpColumn {
        name: text(row, 0),
        definition,
        is_nullable: text(row, 5) == "YES",
        has_default: default.is_some(),
        same_key: one(&mut line, &sql).await.map_err(in_words)? == "0",
        is_numbered: extra.contains("auto_increment"),
    })
}

/// A default as SQL has it; none for NULL.
fn constant(
    default: Option<String>,
    extra: &str,
    is_mariadb: bool,
) -> Result<Option<String>, String> {
    let Some(default) = default else {
        return Ok(None);
    };
    let computed = || format!("its default is computed: {default}");
    if !is_mariadb {
        return match extra.contains("default_generated") {
            true => Err(computed()),
            false => Ok(Some(string(&default))),
        };
    }
    let is_number = default.parse::<f64>().is_ok();
    match default.as_str() {
        "NULL" => Ok(None),
        _ if default.starts_with('\'') || is_number => Ok(Some(default)),
        _ => Err(computed()),
    }
}

/// Makes the table of a look-up.
///
/// # Errors
/// It cannot be made, or is there already.
pub async fn make_lookup(
    rt: &Rt,
    place: &Place,
    (schema, table): (&str, &str),
    column: &LookedUpColumn,
) -> Result<(), String> {
    let mut line = open(rt, place).await.map_err(words)?;
    let (of_it, own) = (quoted(schema, table), name(&column.name));
    let sql = format!(
        "CREATE TABLE {of_it} ({own} {}, in_bucket VARBINARY(255) NOT NULL, PRIMARY KEY ({own}, in_bucket)) ENGINE=InnoDB",
        column.definition
    );
    line.ask(&sql).await.map(drop).map_err(words)
}

/// Drops the table of a look-up that is of no use.
///
/// # Errors
/// It is not dropped.
pub async fn drop_lookup(
    rt: &Rt,
    place: &Place,
    (schema, table): (&str, &str),
) -> Result<(), String> {
    let mut line = open(rt, place).await.map_err(words)?;
    let sql = format!("DROP TABLE {}", quoted(schema, table));
    line.ask(&sql).await.map(drop).map_err(words)
}

/// A snapshot of a table that was opened while nobody had a transaction open on it; `None` if there is no
/// such table.
///
/// # Errors
/// Transactions did not end in time, or the table cannot be locked.
pub async fn snapshot(
    rt: &Rt,
    place: &Place,
    (schema, table): (&str, &str),
    within: Duration,
) -> Result<Option<Line>, String> {
    let mut lock = open(rt, place).await.map_err(words)?;
    let mut reads = open(rt, place).await.map_err(words)?;
    let patience = within.as_secs().max(1);
    lock.ask(&format!("SET lock_wait_timeout = {patience}"))
        .await
        .map_err(words)?;
    let locks = format!("LOCK TABLES {} WRITE", quoted(schema, table));
    match lock.ask(&locks).await {
        Ok(_) => {}
        Err(Failed::Said { code: NO_TABLE, .. }) => return Ok(None),
        Err(failed) => {
            return Err(format!(
                "open transactions on {} did not end in time, or it cannot be locked: {failed}",
                quoted(schema, table)
            ));
        }
    }
    reads
        .ask("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        .await
        .map_err(words)?;
    lock.ask("UNLOCK TABLES").await.map_err(words)?;
    Ok(Some(reads))
}

/// Writes the entries of all rows of a snapshot; how many rows there are. `entry`: as SQL has it, by the
/// cell of the sharding key.
///
/// # Errors
/// A server says no, or is lost.
pub async fn fill(
    rt: &Rt,
    mut reads: Line,
    target: &Place,
    filling: &Filling<'_>,
    entry: impl Fn(Option<&[u8]>) -> String,
) -> Result<u64, String> {
    let mut writes = open(rt, target).await.map_err(words)?;
    let (schema, table) = filling.from;
    let whole = source::table(&mut reads, schema, table).await;
    let narrow = narrow(&whole.map_err(in_words)?, filling.column, filling.key)?;
    let own = name(&narrow.columns[0].name);
    let begin = format!(
        "INSERT INTO {} ({own}, in_bucket) VALUES ",
        quoted(filling.to.0, filling.to.1)
    );
    let (mut after, mut count): (Option<Key>, u64) = (None, 0);
    loop {
        let began = rt.now();
        let sql = narrow.chunk(after.as_ref(), filling.rows_at_once);
        let rows = reads.ask(&sql).await.map_err(words)?;
        let has_value = |row: &&crate::table::Cells| row.first().is_some_and(Option::is_some);
        let mut entries = Vec::new();
        for row in rows.iter().filter(has_value) {
            let value = narrow.columns[0]
                .class
                .literal(row.first().and_then(Option::as_deref))?;
            entries.push(format!("({value}, {})", entry(narrow.cell_of_part(row))));
        }
        if !entries.is_empty() {
            let sql = format!(
                "{begin}{} ON DUPLICATE KEY UPDATE in_bucket = in_bucket",
                entries.join(", ")
            );
            writes.ask(&sql).await.map_err(words)?;
        }
        count += rows.len() as u64;
        match rows
            .last()
            .filter(|_| rows.len() as u64 == filling.rows_at_once)
        {
            Some(last) => after = Some(narrow.key_of(last)?),
            None => return Ok(count),
        }
        let pause = (rows.len() as u64 * 1_000_000_000).checked_div(filling.rows_per_second);
        let took = rt.now() - began;
        if let Some(pause) = pause
            .map(Duration::from_nanos)
            .filter(|pause| *pause > took)
        {
            rt.sleep(pause - took).await;
        }
    }
}

/// A table as it is read for a look-up: the column first, behind it those by which rows are found and
/// told apart.
fn narrow(whole: &Table, column: &str, key: &str) -> Result<Table, String> {
    let at = |called: &str| {
        let mut columns = whole.columns.iter();
        let found = columns.position(|column| column.name.eq_ignore_ascii_case(called));
        found.ok_or_else(|| format!("{} has no column {called}", whole.name))
    };
    let (column, key) = (at(column)?, at(key)?);
    let mut all = vec![column];
    for at in whole.key.iter().chain([&key]) {
        if !all.contains(at) {
            all.push(*at);
        }
    }
    let place = |at: &usize| all.iter().position(|own| own == at).unwrap_or_default();
    Ok(Table {
        columns: all.iter().map(|at| whole.columns[*at].clone()).collect(),
        key: whole.key.iter().map(place).collect(),
        by: Some(place(&key)),
        ..whole.clone()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Class, Column};

    #[test]
    fn rows_are_read_with_their_key_and_no_more() {
        let column = |name: &str, class| Column {
            name: name.into(),
            class,
            told: String::new(),
            unsigned: false,
            generated: false,
        };
        let table = Table {
            schema: "shop".into(),
            name: "users_default".into(),
            columns: vec![
                column("id", Class::Number),
                column("nickname", Class::Bytes),
                column("age", Class::Number),
                column("email", Class::Bytes),
            ],
            key: vec![0],
            by: None,
        };
        let narrow = narrow(&table, "EMAIL", "nickname").unwrap();
        assert_eq!(
            narrow.chunk(None, 7),
            "SELECT `email`, `id`, `nickname`, `id`, `nickname` FROM `shop`.`users_default` ORDER BY `id` LIMIT 7"
        );
    }

    #[test]
    fn a_default_is_written_as_each_kind_of_server_shows_it() {
        let of = |default: Option<&str>, extra: &str, is_mariadb| {
            constant(default.map(str::to_owned), extra, is_mariadb)
        };
        assert_eq!(of(None, "", false), Ok(None));
        assert_eq!(of(Some("NULL"), "", true), Ok(None));
        assert_eq!(of(Some("it's"), "", false), Ok(Some("'it''s'".into())));
        assert_eq!(of(Some("'it''s'"), "", true), Ok(Some("'it''s'".into())));
        assert_eq!(of(Some("0"), "", true), Ok(Some("0".into())));
        assert!(of(Some("uuid()"), "default_generated", false).is_err());
        assert!(of(Some("current_timestamp()"), "", true).is_err());
    }
}
