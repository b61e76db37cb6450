//! Sharded tables that get another name, as clients say it: the map's rows are changed, put in force and
//! saved. Tables on servers keep their names.
//!
//! docs/decisions/0068-a-renamed-table-is-renamed-in-the-map.md

use crate::engine::SqlError;
use crate::loading;
use crate::rows::{Mapped, read};
use crate::sharding::partitions::writer_of;
use crate::shared::Shared;
use crate::tables::Module;
use bridge::NewName;
use config::{ShardLookupRow, ShardPartitionRow, ShardTableRow};
use rusqlite::Connection;
use shards::Table;
use std::fmt::Debug;
use std::sync::Arc;

/// Tables with the rows of a sharded table, by its name.
const TABLES: [&str; 3] = [
    "mysql_shard_tables",
    "mysql_shard_partitions",
    "mysql_shard_lookups",
];

impl Shared {
    /// Gives sharded tables other names.
    pub(crate) async fn rename_tables(&self, renames: &[NewName]) -> Result<(), String> {
        let tables = self.may_be_renamed(renames)?;
        for (table, rename) in tables.iter().zip(renames) {
            self.is_of_one_schema(table, rename).await?;
        }
        // Whose name was its physical one so far.
        let fresh: Vec<bool> = tables
            .iter()
            .map(|table| table.physical == table.name)
            .collect();
        let there: Vec<Step<'_>> = renames
            .iter()
            .zip(&fresh)
            .map(|(rename, fresh)| Step {
                schema: &rename.schema,
                from: &rename.from,
                to: &rename.to,
                physical: fresh.then_some(&*rename.from),
            })
            .collect();
        let back: Vec<Step<'_>> = renames
            .iter()
            .zip(&fresh)
            .map(|(rename, fresh)| Step {
                schema: &rename.schema,
                from: &rename.to,
                to: &rename.from,
                physical: fresh.then_some(""),
            })
            .collect();
        let writes = |steps: &[Step<'_>]| {
            let written = self.engine.borrow().transaction(|conn| rename(conn, steps));
            written.map_err(|error| error.to_string())
        };
        writes(&there)?;
        self.cluster.edited(Module::Shards);
        if let Err(refused) = loading::load(self, Module::Shards).await {
            writes(&back)?;
            return Err(refused.words());
        }
        let saved = loading::save(self, Module::Shards);
        if let Err(said) = saved {
            (self.hooks.log)(&format!(
                "a RENAME TABLE is in force, and its map is not saved: {}; SAVE MYSQL SHARDS TO DISK",
                said.words()
            ));
        }
        if let Err(error) = self.moves.rename(&self.engine, renames) {
            (self.hooks.log)(&format!(
                "moves have the old names of their tables: {error}"
            ));
        }
        for rename in renames {
            let log = &self.hooks.log;
            log(&format!(
                "{} is called {} from now on",
                rename.from, rename.to
            ));
        }
        Ok(())
    }

    /// The tables, if nothing is under way that calls them by their old names.
    fn may_be_renamed(&self, renames: &[NewName]) -> Result<Vec<Arc<Table>>, String> {
        if self.moves.is_stopped() {
            return Err("another process takes over; say it again".into());
        }
        let map = self.snapshot.borrow().shards.clone();
        let mut found = Vec::new();
        for rename in renames {
            let is_it = |table: &&Arc<Table>| {
                (&*table.schema, &*table.name) == (&*rename.schema, &*rename.from)
            };
            let Some(table) = map.tables().find(is_it) else {
                return Err(format!("{} is not in the map any more", rename.from));
            };
            if let Some(under_way) = self.moves.of_table(&rename.schema, &rename.from) {
                return Err(format!("{} is under way", under_way.shown()));
            }
            if let Some(lookup) = table.lookups.iter().find(|lookup| !lookup.is_ready) {
                return Err(format!(
                    "its look-up by {} is being filled; HSCALE FILL_LOOKUP first",
                    lookup.column
                ));
            }
            found.push(table.clone());
        }
        // What an operator has not loaded would be loaded with it.
        let engine = self.engine.borrow();
        let is_in_force = is_same::<ShardTableRow>(engine.conn(), map.table_rows())
            && is_same::<ShardPartitionRow>(engine.conn(), map.partition_rows())
            && is_same::<ShardLookupRow>(engine.conn(), map.lookup_rows());
        match is_in_force {
            true => Ok(found),
            false => Err(
                "rows of MYSQL SHARDS in memory are not those that are in force: an operator changes them; say it again when they are loaded"
                    .into(),
            ),
        }
    }

    /// Refuses a row of any schema if several have its table: all of them would get the new name.
    async fn is_of_one_schema(&self, table: &Table, rename: &NewName) -> Result<(), String> {
        let home = &table.homes[0];
        if !table.schema.is_empty() || !home.schema.is_empty() {
            return Ok(());
        }
        let place = writer_of(self, home.hostgroup).await?;
        let schemas = mover::schemas_with(&self.rt, &place, &home.table).await?;
        match schemas.len() {
            0 | 1 => Ok(()),
            _ => Err(format!(
                "the map has {} in any schema, and {} have its table {}: all of them would get the new name; fill schemaname first",
                rename.from,
                schemas.join(" and "),
                home.table
            )),
        }
    }
}

/// A name that changes in the rows.
struct Step<'a> {
    schema: &'a str,
    from: &'a str,
    to: &'a str,
    /// The physical name from now on, if it changes.
    physical: Option<&'a str>,
}

/// Changes the names in all rows. Names may change places: each has one that nobody has in between.
fn rename(conn: &Connection, steps: &[Step<'_>]) -> Result<(), SqlError> {
    let between = |nth: usize| format!("\u{1}{nth}");
    let changes = |table: &str, schema: &str, from: &str, to: &str| {
        let sql = format!(
            "UPDATE main.{table} SET table_name = ?1 WHERE schemaname = ?2 AND table_name = ?3"
        );
        conn.execute(&sql, (to, schema, from))
    };
    for (nth, step) in steps.iter().enumerate() {
        for table in TABLES {
            changes(table, step.schema, step.from, &between(nth))?;
        }
    }
    for (nth, step) in steps.iter().enumerate() {
        for table in TABLES {
            changes(table, step.schema, &between(nth), step.to)?;
        }
        if let Some(physical) = step.physical {
            let sql = "UPDATE main.mysql_shard_tables SET physical_name = ?1 WHERE schemaname = ?2 AND table_name = ?3";
            conn.execute(sql, (physical, step.schema, step.to))?;
        }
    }
    Ok(())
}

/// Whether memory has these rows, in any order.
fn is_same<R: Mapped + Debug>(conn: &Connection, in_force: &[R]) -> bool {
    let sorted = |rows: &[R]| {
        let mut all: Vec<String> = rows.iter().map(|row| format!("{row:?}")).collect();
        all.sort();
        all
    };
    let memory: Result<Vec<R>, _> = read(conn, "");
    memory.is_ok_and(|memory| sorted(&memory) == sorted(in_force))
}
