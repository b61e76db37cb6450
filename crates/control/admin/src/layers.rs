//! Rows between disk and memory, and from what is in force back to memory. Each move happens as a
//! whole or not at all.

use crate::engine::{Engine, SqlError, another_version};
use crate::parts;
use crate::tables::{self, Kind, Module, Runtime, Schema};
use config::Snapshot;
use rusqlite::Connection;
use std::collections::BTreeMap;

/// From disk to memory; `LOAD … FROM DISK`.
pub(crate) fn from_disk(engine: &Engine, module: Module) -> Result<u64, SqlError> {
    engine.transaction(|conn| copy(conn, module, "disk", "main"))
}

/// From memory to disk: `SAVE … TO DISK`; and what a start goes on from if it finds the module as
/// it is in force now. When it returns, it is there for good.
pub(crate) fn to_disk(
    engine: &Engine,
    module: Module,
    mark: Option<Mark<'_>>,
) -> Result<u64, SqlError> {
    engine.transaction(|conn| {
        let moved = copy(conn, module, "main", "disk")?;
        keep_mark(conn, mark)?;
        Ok(moved)
    })
}

/// Writes what is in force of a module to disk, with its mark: tables that something works by, and
/// variables that are `wanted`. What stands in memory is not looked at.
pub(crate) fn in_force_to_disk(
    engine: &Engine,
    module: Module,
    snapshot: &Snapshot,
    wanted: impl Fn(&str) -> bool,
    mark: Option<Mark<'_>>,
) -> Result<(), SqlError> {
    engine.transaction(|conn| {
        keep_in(conn, "disk", module, snapshot, wanted)?;
        keep_mark(conn, mark)
    })
}

fn keep_mark(conn: &Connection, mark: Option<Mark<'_>>) -> Result<(), SqlError> {
    if let Some((name, version, epoch, checksum)) = mark {
        let sql = "INSERT OR REPLACE INTO disk.saved_checksums_values VALUES (?1, ?2, ?3, ?4)";
        conn.execute(sql, (name, version, epoch, checksum))?;
    }
    Ok(())
}

/// Name, version, epoch and checksum of what is in force of a module.
pub(crate) type Mark<'a> = (&'a str, i64, i64, &'a str);

/// Returns what was kept when the module of this name was saved: version, epoch and checksum.
pub(crate) fn saved_mark(conn: &Connection, name: &str) -> Option<(i64, i64, String)> {
    let sql = "SELECT version, epoch, checksum FROM disk.saved_checksums_values WHERE name = ?1";
    conn.query_row(sql, [name], |row| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?))
    })
    .ok()
}

/// All modules from memory to disk.
pub(crate) fn all_to_disk(engine: &Engine) -> Result<(), SqlError> {
    engine.transaction(|conn| {
        Module::ALL
            .iter()
            .try_for_each(|module| copy(conn, *module, "main", "disk").map(drop))
    })
}

/// All modules from disk to memory.
pub(crate) fn all_from_disk(engine: &Engine) -> Result<(), SqlError> {
    all_from(engine, "disk")
}

/// All modules from this schema to memory: those of which something can be in force, or all if it
/// is disk.
pub(crate) fn all_from(engine: &Engine, schema: &str) -> Result<(), SqlError> {
    let is_disk = schema == "disk";
    let is_kept = |module: &&Module| is_disk || parts::of(**module).is_some();
    engine.transaction(|conn| {
        if !is_disk {
            another_version::knows_all(conn, schema)?;
        }
        Module::ALL
            .iter()
            .filter(is_kept)
            .try_for_each(|module| match module.prefix() {
                None if !is_disk => from_another(conn, *module, schema),
                _ => copy(conn, *module, schema, "main").map(drop),
            })
    })
}

/// Rows of a module that another process has written, maybe of another version, to memory.
fn from_another(conn: &Connection, module: Module, from: &str) -> Result<(), SqlError> {
    for table in tables::of(module) {
        if !matches!(table.kind, Kind::Declared { disk: true, .. }) {
            continue;
        }
        let copies = table.copies();
        let disk = copies.iter().find(|copy| copy.schema == Schema::Disk);
        let Some(disk) = disk else { continue };
        let common = another_version::common(conn, from, disk)?;
        if let Some(unknown) = common.unknown {
            return Err(unknown.into());
        }
        let (name, names) = (table.name, common.names);
        conn.execute_batch(&format!("DELETE FROM main.{name}"))?;
        if !names.is_empty() {
            conn.execute_batch(&format!(
                "INSERT INTO main.{name} ({names}) SELECT {names} FROM {from}.{name}"
            ))?;
        }
    }
    Ok(())
}

/// How many variables were moved; other rows are not told, as ProxySQL does not.
fn copy(conn: &Connection, module: Module, from: &str, to: &str) -> Result<u64, SqlError> {
    if let Some(prefix) = module.prefix() {
        let which = format!(
            "WHERE substr(variable_name, 1, {}) = '{prefix}'",
            prefix.len()
        );
        conn.execute(&format!("DELETE FROM {to}.global_variables {which}"), [])?;
        let moved = conn.execute(
            &format!(
                "INSERT INTO {to}.global_variables SELECT * FROM {from}.global_variables {which}"
            ),
            [],
        )?;
        if to == "main" {
            // A database of an older version does not know all of them.
            add_defaults(conn)?;
        }
        return Ok(if to == "disk" { moved as u64 } else { 0 });
    }
    for table in tables::of(module) {
        if matches!(table.kind, Kind::Declared { disk: true, .. }) {
            conn.execute_batch(&format!(
                "DELETE FROM {to}.{0}; INSERT INTO {to}.{0} SELECT * FROM {from}.{0};",
                table.name
            ))?;
        }
    }
    Ok(0)
}

/// Gives every variable that memory has no value for its default.
pub(crate) fn add_defaults(conn: &Connection) -> Result<(), SqlError> {
    let mut insert = conn.prepare("INSERT OR IGNORE INTO main.global_variables VALUES (?1, ?2)")?;
    for variable in config::REGISTRY {
        insert.execute([variable.name, variable.default])?;
    }
    Ok(())
}

/// Writes what is in force to memory: `SAVE … FROM RUNTIME`.
pub(crate) fn from_runtime(
    engine: &Engine,
    module: Module,
    snapshot: &Snapshot,
) -> Result<(), SqlError> {
    engine.transaction(|conn| {
        keep(conn, module, snapshot, |_| true)?;
        // Nothing of these is ever in force.
        for table in tables::of(module) {
            if matches!(
                table.kind,
                Kind::Declared {
                    runtime: Runtime::NotYet { .. },
                    ..
                }
            ) {
                conn.execute(&format!("DELETE FROM main.{}", table.name), [])?;
            }
        }
        Ok(())
    })
}

/// Writes what is in force of a module to memory; of variables those that are `wanted`. Tables that
/// nothing works by stay as they are.
pub(crate) fn keep(
    conn: &Connection,
    module: Module,
    snapshot: &Snapshot,
    wanted: impl Fn(&str) -> bool,
) -> Result<(), SqlError> {
    keep_in(conn, "main", module, snapshot, wanted)
}

fn keep_in(
    conn: &Connection,
    schema: &str,
    module: Module,
    snapshot: &Snapshot,
    wanted: impl Fn(&str) -> bool,
) -> Result<(), SqlError> {
    match parts::of(module) {
        Some(part) => part.write(conn, schema, snapshot, &wanted),
        None => Ok(()),
    }
}

/// The variables of a family as they are in force, where they still are what was `asked` for.
pub(crate) fn keep_as_in_force(
    conn: &Connection,
    prefix: &str,
    snapshot: &Snapshot,
    asked: &BTreeMap<String, String>,
) -> Result<(), SqlError> {
    let sql = "UPDATE main.global_variables SET variable_value = ?2 WHERE variable_name = ?1 AND CAST(variable_value AS TEXT) IS ?3";
    let mut update = conn.prepare(sql)?;
    let mut insert = conn.prepare("INSERT OR IGNORE INTO main.global_variables VALUES (?1, ?2)")?;
    for (name, value) in snapshot
        .variables
        .pairs()
        .iter()
        .filter(|(name, _)| name.starts_with(prefix))
    {
        match asked.get(*name) {
            Some(before) => update.execute([name, value.as_str(), before])?,
            None => insert.execute([name, value.as_str()])?,
        };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_while_a_load_is_built_waits_for_the_next() {
        let conn = Connection::open_in_memory().unwrap();
        conn.execute_batch("ATTACH ':memory:' AS other; CREATE TABLE main.global_variables (variable_name VARCHAR PRIMARY KEY, variable_value VARCHAR)").unwrap();
        conn.execute_batch("INSERT INTO global_variables VALUES ('mysql-multiplexing', '0'), ('mysql-max_connections', '77')")
            .unwrap();
        let asked = [("mysql-multiplexing", "0"), ("mysql-max_connections", "5")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let snapshot = Snapshot::default();
        keep_as_in_force(&conn, "mysql-", &snapshot, &asked.into()).unwrap();
        let value = |name: &str| -> String {
            conn.query_row(
                "SELECT variable_value FROM global_variables WHERE variable_name = ?1",
                [name],
                |row| row.get(0),
            )
            .unwrap()
        };
        assert_eq!(value("mysql-multiplexing"), "true", "as it is in force");
        assert_eq!(
            value("mysql-max_connections"),
            "77",
            "set by somebody else since"
        );
        assert_eq!(
            value("mysql-threads"),
            "4",
            "what was not there is there now"
        );
    }
}
