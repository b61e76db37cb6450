//! Tables in a file that another version has written. Rows are read by the names of columns, and tables that are
//! written to get the columns of this version.
//!
//! docs/decisions/0071-versions-in-one-upgrade.md

use super::SqlError;
use crate::tables::{self, Schema, TableCopy};
use rusqlite::Connection;
use std::fmt;

/// Columns that this version does not have, and whose values say more than their defaults.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unknown {
    table: String,
    columns: Vec<String>,
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.table)?;
        match self.columns.as_slice() {
            [] => Ok(()),
            columns => write!(f, " ({})", columns.join(", ")),
        }
    }
}

impl From<Unknown> for SqlError {
    fn from(unknown: Unknown) -> Self {
        Self(format!(
            "it is of a newer version, and this one does not know {unknown}"
        ))
    }
}

/// Columns that a table of another version has in common with that of this one.
pub(crate) struct Common {
    /// Names in quotes, with commas between them; empty where the other version has no such table.
    pub(crate) names: String,
    pub(crate) unknown: Option<Unknown>,
    /// Both have the same columns in the same order.
    is_same: bool,
}

/// A column, with what stands in it where nobody has said anything.
struct Column {
    name: String,
    default: Option<String>,
}

/// Compares a table in this schema with its declaration.
pub(crate) fn common(
    conn: &Connection,
    schema: &str,
    table: &TableCopy,
) -> Result<Common, SqlError> {
    let is = columns(conn, schema, &table.name)?;
    let own = Connection::open_in_memory()?;
    own.execute_batch(&table.ddl("main"))?;
    let wanted = columns(&own, "main", &table.name)?;
    let is_wanted = |one: &&Column| wanted.iter().any(|other| other.name == one.name);
    let mut unknown = Vec::new();
    for one in is.iter().filter(|one| !is_wanted(one)) {
        if says_something(conn, (schema, &table.name), one)? {
            unknown.push(one.name.clone());
        }
    }
    let names = is.iter().filter(is_wanted);
    let names: Vec<_> = names.map(|one| format!("\"{}\"", one.name)).collect();
    let of = |one: &Column| one.name.clone();
    Ok(Common {
        names: names.join(", "),
        unknown: (!unknown.is_empty()).then(|| Unknown {
            table: table.name.clone(),
            columns: unknown,
        }),
        is_same: is.iter().map(of).eq(wanted.iter().map(of)),
    })
}

/// Refuses a schema with rows in a table that this version does not have.
pub(crate) fn knows_all(conn: &Connection, schema: &str) -> Result<(), SqlError> {
    let sql = format!("SELECT name FROM {schema}.sqlite_master WHERE type = 'table'");
    let mut asks = conn.prepare(&sql)?;
    let names = asks.query_map([], |row| row.get::<_, String>(0))?;
    let names: Vec<_> = names.collect::<Result<_, _>>()?;
    let copies = tables::copies();
    let is_known = |name: &&String| {
        let mut all = copies.iter().filter(|copy| copy.schema == Schema::Disk);
        all.any(|copy| copy.name == **name) || name.starts_with("sqlite_")
    };
    for name in names.iter().filter(|name| !is_known(name)) {
        let sql = format!("SELECT EXISTS (SELECT 1 FROM {schema}.\"{name}\")");
        if conn.query_row(&sql, [], |row| row.get(0))? {
            let (table, columns) = (name.clone(), Vec::new());
            return Err(Unknown { table, columns }.into());
        }
    }
    Ok(())
}

/// Makes the declared tables of this schema what this version has. A table with something that it does not
/// know is kept beside, under a name of its own, and told.
pub(super) fn bring_up(conn: &Connection, schema: &str) -> Result<Vec<Unknown>, SqlError> {
    let mut all = Vec::new();
    let copies = tables::copies();
    for table in copies.iter().filter(|copy| copy.schema == Schema::Disk) {
        let Common {
            names,
            unknown,
            is_same,
        } = common(conn, schema, table)?;
        if is_same {
            continue;
        }
        let (name, beside) = (&table.name, format!("{}_of_another_version", table.name));
        conn.execute_batch(&format!(
            "DROP TABLE IF EXISTS {schema}.{beside}; ALTER TABLE {schema}.{name} RENAME TO {beside}; {}",
            table.ddl(schema)
        ))?;
        let rows =
            format!("INSERT INTO {schema}.{name} ({names}) SELECT {names} FROM {schema}.{beside}");
        conn.execute_batch(&rows).map_err(|error| {
            SqlError(format!(
                "{name}, as another version has written it: {error}"
            ))
        })?;
        if unknown.is_none() {
            conn.execute_batch(&format!("DROP TABLE {schema}.{beside}"))?;
        }
        all.extend(unknown);
    }
    Ok(all)
}

fn says_something(
    conn: &Connection,
    (schema, table): (&str, &str),
    column: &Column,
) -> Result<bool, SqlError> {
    let default = column.default.as_deref().unwrap_or("NULL");
    let sql = format!(
        "SELECT EXISTS (SELECT 1 FROM {schema}.{table} WHERE \"{}\" IS NOT ({default}))",
        column.name
    );
    Ok(conn.query_row(&sql, [], |row| row.get(0))?)
}

/// Columns of a table in their order; none if it is not there.
fn columns(conn: &Connection, schema: &str, table: &str) -> Result<Vec<Column>, SqlError> {
    let sql = "SELECT name, dflt_value FROM pragma_table_info(?1, ?2) ORDER BY cid";
    let mut asks = conn.prepare(sql)?;
    let found = asks.query_map([table, schema], |row| {
        Ok(Column {
            name: row.get(0)?,
            default: row.get(1)?,
        })
    })?;
    Ok(found.collect::<Result<_, _>>()?)
}
