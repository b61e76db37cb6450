//! `HSCALE …` on the admin port: rows of `mysql_shard_tables` and `mysql_shard_partitions`, in force
//! and saved at once.

use crate::engine::{Reply, SqlError};
use crate::grid::Grid;
use crate::loading;
use crate::said::Said;
use crate::sharding::adding::{Adding, clear_way, let_go};
use crate::sharding::lookups;
use crate::shared::Shared;
use crate::tables::Module;
use bridge::{Ask, Report, ShardRow};
use config::ShardPartitionRow;
use rusqlite::{Connection, OptionalExtension as _};
use shards::{Command, Function, Kind, Map, Shown, Table};

impl Shared {
    /// Each command does what its row, `LOAD MYSQL SHARDS TO RUNTIME` and `SAVE` would do, or nothing.
    pub(crate) async fn hscale(&self, command: Command) -> Result<Reply, Said> {
        let command = match command {
            Command::Show(Shown::Moves) => return Ok(self.moves.show()),
            Command::AddLookup {
                schema,
                table,
                column,
                hostgroup,
                named,
            } => {
                let adding = lookups::Adding {
                    schema: &schema,
                    table: &table,
                    column: &column,
                    hostgroup,
                    named: &named,
                };
                return self.add_lookup(adding).await;
            }
            Command::FillLookup {
                schema,
                table,
                column,
            } => return self.fill_lookup((&schema, &table), &column).await,
            Command::Show(what @ (Shown::Status | Shown::FullPartitionScans)) => {
                let Report::Shards(rows) = self.cores.ask(Ask::Shards).await? else {
                    return Err("the cores have answered another question".into());
                };
                return Ok(Reply::Rows(counted(
                    &self.snapshot.borrow().shards,
                    what,
                    &rows,
                )));
            }
            Command::Show(what) => return show(&self.snapshot.borrow().shards, what),
            Command::MovePartition {
                schema,
                table,
                name,
                hostgroup,
            } => return self.begin_move((&schema, &table, &name), hostgroup).await,
            Command::MergePartition {
                schema,
                table,
                name,
                into,
            } => return self.begin_merge((&schema, &table, &name), &into).await,
            Command::CancelMove {
                schema,
                table,
                name,
            } => return self.cancel_move((&schema, &table, &name)),
            Command::DropOld {
                schema,
                table,
                name,
            } => return self.drop_old((&schema, &table, &name)).await,
            command => self.with_checksum(command),
        };
        let held = match partition_row(&command) {
            None => None,
            Some(row) => match clear_way(self, row).await? {
                Adding::Moves(reply) => return Ok(reply),
                Adding::AtOnce(held) => held,
            },
        };
        let done = self.hscale_at_once(&command).await;
        let_go(self, held).await;
        done
    }

    /// A function that names a script alone means the one that is in force.
    fn with_checksum(&self, mut command: Command) -> Command {
        if let Command::SetupTable {
            function: Function::Lua(script),
            ..
        } = &mut command
            && script.sum.is_empty()
        {
            let scripts = self.snapshot.borrow().scripts.of_buckets();
            let named = scripts.iter().find(|one| *one.name == *script.name);
            script.sum = named.map_or_else(String::new, |one| one.sum.to_string());
        }
        command
    }

    async fn hscale_at_once(&self, command: &Command) -> Result<Reply, Said> {
        let todo = self
            .engine
            .borrow()
            .transaction(|conn| add(conn, command))??;
        self.cluster.edited(Module::Shards);
        if let Err(refused) = loading::load(self, Module::Shards).await {
            self.engine
                .borrow()
                .transaction(|conn| take_back(conn, command))?;
            return Err(refused);
        }
        loading::save(self, Module::Shards)?;
        Ok(Reply::Done {
            affected: 1,
            info: todo,
        })
    }
}

/// The row of a partition that a command adds.
fn partition_row(command: &Command) -> Option<ShardPartitionRow> {
    let Command::AddPartition {
        schema,
        table,
        name,
        value,
        hostgroup,
        physical,
    } = command
    else {
        return None;
    };
    Some(ShardPartitionRow {
        schemaname: schema.clone(),
        table_name: table.clone(),
        partition_name: name.clone(),
        partition_value: value.clone(),
        hostgroup_id: (*hostgroup).into(),
        physical_table: physical.clone(),
        ..ShardPartitionRow::default()
    })
}

/// Adds the row of a command; answers what is to be done on servers besides.
fn add(conn: &Connection, command: &Command) -> Result<Result<String, Said>, SqlError> {
    match command {
        Command::SetupTable {
            schema,
            table,
            column,
            default_table,
            hostgroup,
            function,
        } => {
            if known(conn, schema, table)?.is_some() {
                let words = format!(
                    "argument 1 (table): '{table}' is set up already; SETUP_TABLE can be called once for a table"
                );
                return Ok(Err(words.into()));
            }
            conn.execute(
                "INSERT INTO main.mysql_shard_tables (schemaname, table_name, key_column, function, default_table, default_hostgroup) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                (schema, table, column, function.to_string(), default_table, hostgroup),
            )?;
            Ok(Ok(format!(
                "on the writer of hostgroup {hostgroup}, if it has not been done: RENAME TABLE `{table}` TO `{default_table}`"
            )))
        }
        Command::AddPartition {
            schema,
            table,
            name,
            value,
            hostgroup,
            physical,
        } => {
            let Some((default_table, physical_name)) = known(conn, schema, table)? else {
                let words = format!(
                    "argument 1 (table): '{table}' is not set up; HSCALE SETUP_TABLE comes first"
                );
                return Ok(Err(words.into()));
            };
            let is_there = "SELECT 1 FROM main.mysql_shard_partitions WHERE schemaname = ?1 AND table_name = ?2 AND partition_name = ?3";
            let found = conn.query_row(is_there, (schema, table, name), |_| Ok(()));
            if found.optional()?.is_some() {
                let words =
                    format!("argument 2 (partition): '{table}' has a partition '{name}' already");
                return Ok(Err(words.into()));
            }
            conn.execute(
                "INSERT INTO main.mysql_shard_partitions (schemaname, table_name, partition_name, partition_value, hostgroup_id, physical_table) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                (schema, table, name, value, hostgroup, physical),
            )?;
            let physical = match physical.as_str() {
                "" => format!("{physical_name}_{name}"),
                physical => physical.to_owned(),
            };
            Ok(Ok(format!(
                "the table `{physical}` on the writer of hostgroup {hostgroup}, with the columns of `{default_table}`, is yours to make if it is not there: \
                 CREATE TABLE IF NOT EXISTS `{table}` (…) by way of this proxy does so"
            )))
        }
        Command::AddSequence {
            schema,
            table,
            column,
        } => {
            let Some(column_now) = sequence_of(conn, schema, table)? else {
                let words = format!(
                    "argument 1 (table): '{table}' is not set up; HSCALE SETUP_TABLE comes first"
                );
                return Ok(Err(words.into()));
            };
            if !column_now.is_empty() {
                let words = format!(
                    "argument 1 (table): '{table}' has a sequence for '{column_now}' already"
                );
                return Ok(Err(words.into()));
            }
            number_by(conn, (schema, table), column)?;
            Ok(Ok(format!(
                "the sequence of {} needs its row in the table of mysql-sharding_sequences, with a next_number that no row has",
                qualified(schema, table)
            )))
        }
        _ => Ok(Ok(String::new())),
    }
}

/// A table as its sequence is called.
fn qualified(schema: &str, table: &str) -> String {
    match schema {
        "" => table.to_owned(),
        schema => format!("{schema}.{table}"),
    }
}

/// The column of a table that a sequence numbers, empty for none; `None` if the table is not set up.
fn sequence_of(conn: &Connection, schema: &str, table: &str) -> Result<Option<String>, SqlError> {
    let sql = "SELECT sequence_column FROM main.mysql_shard_tables WHERE schemaname = ?1 AND table_name = ?2";
    Ok(conn
        .query_row(sql, (schema, table), |row| row.get(0))
        .optional()?)
}

fn number_by(
    conn: &Connection,
    (schema, table): (&str, &str),
    column: &str,
) -> Result<(), SqlError> {
    conn.execute(
        "UPDATE main.mysql_shard_tables SET sequence_column = ?3 WHERE schemaname = ?1 AND table_name = ?2",
        (schema, table, column),
    )?;
    Ok(())
}

/// The default table of a table that is set up, and the name that those of its partitions begin with.
fn known(
    conn: &Connection,
    schema: &str,
    table: &str,
) -> Result<Option<(String, String)>, SqlError> {
    let sql = "SELECT default_table, IIF(physical_name = '', table_name, physical_name) FROM main.mysql_shard_tables \
         WHERE schemaname = ?1 AND table_name = ?2";
    Ok(conn
        .query_row(sql, (schema, table), |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?)
}

/// Removes the row of a command that was refused.
fn take_back(conn: &Connection, command: &Command) -> Result<(), SqlError> {
    match command {
        Command::SetupTable { schema, table, .. } => {
            conn.execute(
                "DELETE FROM main.mysql_shard_tables WHERE schemaname = ?1 AND table_name = ?2",
                (schema, table),
            )?;
        }
        Command::AddPartition {
            schema,
            table,
            name,
            ..
        } => {
            conn.execute(
                "DELETE FROM main.mysql_shard_partitions WHERE schemaname = ?1 AND table_name = ?2 AND partition_name = ?3",
                (schema, table, name),
            )?;
        }
        Command::AddSequence { schema, table, .. } => number_by(conn, (schema, table), "")?,
        _ => {}
    }
    Ok(())
}

/// The map that is in force, or a part of it.
fn show(map: &Map, what: Shown) -> Result<Reply, Said> {
    let grid = match what {
        // The map comes with the configuration, whole and at once.
        Shown::Variables => pairs([("mode", "NORMAL".into()), ("reloadInterval", "0".into())]),
        // The cores know these.
        Shown::Moves | Shown::Status | Shown::FullPartitionScans => Grid::new(["id"]),
        Shown::Lookups => lookups::show(map),
        Shown::Tables => tables(map),
        Shown::Partitions => partitions(map),
        Shown::Commands => {
            let mut grid = Grid::new(["command"]);
            let sharded = map.tables().filter(|table| table.kind == Kind::Sharded);
            for line in sharded.flat_map(|table| commands(table)) {
                grid.push_row([Some(line)]);
            }
            grid
        }
    };
    Ok(Reply::Rows(grid))
}

/// Counts of what statements have needed so far, as `stats_mysql_shards` has it.
fn counted(map: &Map, what: Shown, rows: &[ShardRow]) -> Grid {
    if what == Shown::FullPartitionScans {
        let mut grid = Grid::new(["table", "full partition scans"]);
        for row in rows {
            let name = qualified(&row.schema, &row.table);
            grid.push_row([Some(name), Some(row.all.to_string())]);
        }
        return grid;
    }
    let partitions: usize = map.tables().map(|table| table.homes.len() - 1).sum();
    let sum = |count: fn(&ShardRow) -> u64| rows.iter().map(count).sum::<u64>().to_string();
    pairs([
        ("tables", map.tables().count().to_string()),
        ("partitions", partitions.to_string()),
        (
            "Hscale_queries_analyzed",
            sum(|row| row.points + row.some + row.all + row.refused),
        ),
        ("Hscale_full_partition_scans", sum(|row| row.all)),
        ("Hscale_refused", sum(|row| row.refused)),
    ])
}

fn commands(table: &Table) -> Vec<String> {
    table.to_string().lines().map(str::to_owned).collect()
}

fn pairs<const N: usize>(all: [(&str, String); N]) -> Grid {
    let mut grid = Grid::new(["Variable_name", "Value"]);
    for (name, value) in all {
        grid.push_row([Some(name), Some(&value)]);
    }
    grid
}

fn tables(map: &Map) -> Grid {
    let mut grid = Grid::new(["table", "column", "function", "default table", "backend"]);
    for table in map.tables() {
        let default = &table.homes[0];
        grid.push_row([
            Some(table.shown()),
            Some(table.column.clone()),
            Some(table.function.to_string()),
            Some(default.table.clone()),
            Some(default.hostgroup.to_string()),
        ]);
    }
    grid
}

fn partitions(map: &Map) -> Grid {
    let mut grid = Grid::new(["table", "partition", "value", "physical table", "backend"]);
    for table in map.tables() {
        for home in &table.homes[1..] {
            grid.push_row([
                Some(table.shown()),
                Some(home.name.clone()),
                Some(home.value.clone()),
                Some(home.table.clone()),
                Some(home.hostgroup.to_string()),
            ]);
        }
    }
    grid
}

#[cfg(test)]
mod tests {
    use crate::open::Options;
    use crate::testing;

    /// A70, A71: the seed's commands, its typographic quotes kept, and the quote that it lacks given
    /// back.
    #[test]
    fn the_seeds_commands_make_a_map_that_is_in_force_and_saved() {
        testing::with(Options::default(), |bench| async move {
            let error = |text: &'static str| {
                let bench = &bench;
                async move { bench.refused(text).await }
            };
            let lost =
                error("HSCALE SETUP_TABLE(‘users, ‘nickname‘, ‘users_default‘, 1, ‘PREFIX(3)‘)")
                    .await;
            assert!(lost.contains("argument 1 lacks a quote"), "{lost}");
            bench
                .script(
                    "HSCALE SETUP_TABLE(‘users‘, ‘nickname‘, ‘users_default‘, 1, ‘PREFIX(3)‘);
                     HSCALE ADD_PARTITION(‘users’, ‘nick1′, ‘mar’, 1);",
                )
                .await;
            let rows = bench.rows("HSCALE SHOW PARTITIONS").await;
            assert_eq!(rows, [["users", "nick1", "mar", "users_nick1", "1"]]);
            let rows = bench.rows("HSCALE SHOW COMMANDS").await;
            assert_eq!(
                rows,
                [
                    ["HSCALE SETUP_TABLE('users', 'nickname', 'users_default', 1, 'PREFIX(3)')"],
                    ["HSCALE ADD_PARTITION('users', 'nick1', 'mar', 1)"]
                ]
            );
            assert_eq!(
                bench
                    .rows("SELECT partition_value FROM runtime_mysql_shard_partitions")
                    .await,
                [["mar"]]
            );
            assert_eq!(
                bench
                    .rows("SELECT key_column FROM disk.mysql_shard_tables")
                    .await,
                [["nickname"]]
            );
            assert_eq!(
                bench.rows("HSCALE SHOW STATUS").await,
                [
                    ["tables", "1"],
                    ["partitions", "1"],
                    ["Hscale_queries_analyzed", "0"],
                    ["Hscale_full_partition_scans", "0"],
                    ["Hscale_refused", "0"]
                ]
            );
            assert!(!bench.loaded.borrow().last().unwrap().shards.is_empty());

            for (text, words) in [
                (
                    "HSCALE SETUP_TABLE('users', 'n', 'd', 1, 'NONE()')",
                    "is set up already",
                ),
                (
                    "HSCALE ADD_PARTITION('users', 'nick1', 'foo', 1)",
                    "has a partition 'nick1' already",
                ),
                (
                    "HSCALE ADD_PARTITION('users', 'nick2', 'MAR', 1)",
                    "overlaps with the value of partition 'nick1'",
                ),
                (
                    "HSCALE ADD_PARTITION('users', 'nick2', 'marv', 1)",
                    "must have 3 characters at most",
                ),
                (
                    "HSCALE ADD_PARTITION('others', 'nick2', 'foo', 1)",
                    "is not set up",
                ),
                (
                    "HSCALE MOVE_PARTITION('users', 'nick1', 1)",
                    "it is on hostgroup 1 already",
                ),
                ("HSCALE", "use HSCALE SETUP_TABLE("),
            ] {
                let said = error(text).await;
                assert!(said.contains(words), "{text}: {said}");
            }
            // What was refused has left no row.
            assert_eq!(
                bench
                    .rows("SELECT COUNT(*) FROM mysql_shard_partitions")
                    .await,
                [["1"]]
            );
            let sums = bench
                .rows("SELECT version FROM runtime_checksums_values WHERE name = 'mysql_shards'")
                .await;
            assert_eq!(sums.len(), 1);
        });
    }
}
