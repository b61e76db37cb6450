//! A move of a part of a partition's rows to a new one: its record, which rows go, and the map at the cut.
//!
//! docs/features/partition-splits.md

use crate::engine::SqlError;
use crate::loading;
use crate::rows::read;
use crate::said::Said;
use crate::sharding::partitions::{save_map_of, shared_table, writer_of};
use crate::shared::Shared;
use crate::tables::Module;
use config::{ShardPartitionRow, ShardTableRow, shard_map};
use mover::{Of, Part, Record, Split, There, look_there};
use rusqlite::Connection;
use shards::{Home, Kind, Map, Table};
use std::sync::Arc;

/// Servers allow names of 64 characters; so many are kept of one that gets a number behind it.
const NAME_KEPT: usize = 50;

/// A partition that is added, and the map as it will be.
pub(crate) struct Added {
    pub(crate) map: Map,
    schema: String,
    table: String,
    pub(crate) row: ShardPartitionRow,
    /// The partition that has its buckets so far; `None` for the default one.
    pub(crate) of: Option<Of>,
}

impl Added {
    pub(crate) fn table(&self) -> Option<&Arc<Table>> {
        let is_it =
            |table: &&Arc<Table>| (&table.schema, &table.name) == (&self.schema, &self.table);
        self.map.tables().find(is_it)
    }

    /// Name of the partition that has its buckets so far.
    pub(crate) fn out_of(&self) -> &str {
        self.of.as_ref().map_or("", |of| &of.partition)
    }

    /// Where its rows are so far, and where they shall be.
    pub(crate) fn ends(&self) -> Option<(&Arc<Table>, [&Home; 2])> {
        let table = self.table().filter(|table| table.kind == Kind::Sharded)?;
        let home = |name: &str| table.homes.get(table.home_named(name)?);
        let ends = [home(self.out_of())?, home(&self.row.partition_name)?];
        Some((table, ends))
    }
}

/// A move that has waited, as it is now that its turn has come.
pub(crate) async fn plan_again(shared: &Shared, record: &Record) -> Result<Record, Said> {
    let split = record.split.as_ref();
    let split = split.ok_or_else(|| Said::Sql("it takes no part of a partition".to_owned()))?;
    let (tables, partitions) = rows(shared.engine.borrow().conn())?;
    let added = added(tables, partitions, row_of(record, split)).map_err(Said::Sql)?;
    let added = added.ok_or_else(|| Said::Sql(GONE.to_owned()))?;
    let Some((table, [source, _])) = added.ends() else {
        return Err(GONE.into());
    };
    let schema = match source.schema.as_str() {
        "" => &table.schema,
        schema => schema,
    };
    let place = writer_of(shared, source.hostgroup).await;
    let place = place.map_err(Said::Sql)?;
    let looked = look_there(&shared.rt, &place, schema, &source.table).await;
    let database = match looked.map_err(Said::Sql)? {
        There::Rows(database) | There::Empty(database) => database,
        There::NoTable => return Err(format!("there is no table {}", source.table).into()),
    };
    let mut planned = split_of(shared, &added, database)?;
    planned.id = record.id;
    Ok(planned)
}

/// The move that a partition needs before it is in the map.
pub(crate) fn split_of(shared: &Shared, added: &Added, database: String) -> Result<Record, Said> {
    let Some((table, [source, home])) = added.ends() else {
        return Err(GONE.into());
    };
    let row = &added.row;
    let mut record = shared.moves.begin(
        (&table.schema, &table.name, &row.partition_name),
        u32::try_from(row.hostgroup_id).unwrap_or_default(),
        shared.now_s(),
    )?;
    for one in [source, home] {
        if let Some(words) = shared_table(&added.map, one) {
            return Err(cannot(added, &words));
        }
    }
    (record.from, record.physical) = (source.hostgroup, source.table.clone());
    record.database = database;
    record.split = Some(Split {
        value: row.partition_value.clone(),
        named: row.physical_table.clone(),
        table: home.table.clone(),
        schema: source.schema.clone(),
        rest: next_name(&source.table),
        column: table.column.clone(),
        by: told_apart_by(table),
        of: added.of.clone(),
        bare: true,
    });
    Ok(record)
}

/// Tells rows of a partition that is about to be from others, by the map in memory.
pub(crate) fn part_of(shared: &Shared, record: &Record) -> Result<Part, String> {
    let split = record.split.as_ref().ok_or("all rows go")?;
    let (tables, mut partitions) =
        rows(shared.engine.borrow().conn()).map_err(|said| said.words())?;
    let row = row_of(record, split);
    // It may be there already: a process before this one has ended behind the cut.
    partitions.retain(|other| !is_same(other, &row));
    let added = added(tables, partitions, row)?.ok_or("the table is not in the map any more")?;
    let table = added
        .table()
        .ok_or("the table is not in the map any more")?;
    if added.of != split.of {
        return Err(format!(
            "the partition that has the rows of '{}' is not what it was",
            split.value
        ));
    }
    if told_apart_by(table) != split.by {
        return Err(format!(
            "{} is not spread any more as it was: by {} before, by {} now",
            table.shown(),
            split.by,
            told_apart_by(table)
        ));
    }
    let table = table.clone();
    let home = table.home_named(&record.partition);
    let home = home.ok_or("the partition is not in the map")?;
    Ok(Box::new(move |cell| table.has_row(home, cell)))
}

/// Adds the partition's row, gives the default table its new name, and loads and saves the map.
pub(crate) async fn put_in_force(
    shared: &Shared,
    record: &Record,
    split: &Split,
) -> Result<(), String> {
    let (_, partitions) = rows(shared.engine.borrow().conn()).map_err(|said| said.words())?;
    let row = row_of(record, split);
    let is_added = partitions.iter().any(|other| is_same(other, &row));
    let writes = |adds: bool| {
        let change = shared.engine.borrow().transaction(|conn| {
            let changed = match &split.of {
                None => rename(conn, record, split, adds)?,
                Some(of) => shrink(conn, record, (split, of), adds)?,
            };
            if changed > 0 && adds {
                add(conn, &row)?;
            } else if changed > 0 {
                remove(conn, &row)?;
            }
            Ok(changed)
        });
        change.map_err(|error| error.to_string())
    };
    // It may be so already: a process before this one has ended behind it.
    if !is_added && writes(true)? == 0 {
        return Err(format!(
            "the map in memory has not its rows in {} any more",
            record.physical
        ));
    }
    shared.cluster.edited(Module::Shards);
    if let Err(refused) = loading::load(shared, Module::Shards).await {
        writes(false)?;
        return Err(refused.words());
    }
    save_map_of(shared, record);
    Ok(())
}

/// Words for a table or partition that is not in the map any more.
const GONE: &str = "the table is not in the map any more, or has the partition already";
/// Words for an operator who moves rows himself.
const BY_HAND: &str =
    "whoever moves them by hand adds the row to mysql_shard_partitions, and loads it";

/// Words for rows that stand in the way.
pub(crate) fn cannot(added: &Added, words: &str) -> Said {
    let source = added
        .ends()
        .map_or("", |(_, [source, _])| source.table.as_str());
    Said::Sql(format!(
        "rows of '{}' may be in {source}, and cannot be moved: {words}; {BY_HAND}",
        added.row.partition_value
    ))
}

/// The rows that memory has of the map.
pub(crate) fn rows(
    conn: &Connection,
) -> Result<(Vec<ShardTableRow>, Vec<ShardPartitionRow>), Said> {
    let words = |refused: Vec<config::Refusal>| {
        let all = refused.iter().map(ToString::to_string);
        Said::Sql(all.collect::<Vec<_>>().join("; "))
    };
    Ok((
        read(conn, "").map_err(words)?,
        read(conn, "").map_err(words)?,
    ))
}

/// The map with a row more; `None` where its table is not set up, or has such a partition.
///
/// # Errors
/// Reasons why a LOAD would refuse the map with it.
pub(crate) fn added(
    tables: Vec<ShardTableRow>,
    mut partitions: Vec<ShardPartitionRow>,
    row: ShardPartitionRow,
) -> Result<Option<Added>, String> {
    let is_its = |table: &&ShardTableRow| {
        (&table.schemaname, &table.table_name) == (&row.schemaname, &row.table_name)
    };
    if tables.iter().find(is_its).is_none() || partitions.iter().any(|other| is_same(other, &row)) {
        return Ok(None);
    }
    let words = |refused: Vec<config::Refusal>| {
        let all = refused.iter().map(ToString::to_string);
        all.collect::<Vec<_>>().join("; ")
    };
    let mut next = Added {
        map: Map::default(),
        schema: row.schemaname.clone(),
        table: row.table_name.clone(),
        row: row.clone(),
        of: None,
    };
    partitions.push(row.clone());
    match shard_map(tables.clone(), partitions.clone()) {
        Ok(map) => next.map = map,
        Err(refused) => {
            // Another partition has its buckets, and perhaps more than these.
            partitions.pop();
            next.map = shard_map(tables.clone(), partitions.clone()).map_err(words)?;
            let of = next
                .table()
                .and_then(|table| parted(table, &mut partitions, &row));
            next.of = Some(of.ok_or_else(|| words(refused))?);
            partitions.push(row);
            next.map = shard_map(tables, partitions).map_err(words)?;
        }
    }
    Ok(Some(next))
}

/// Takes the buckets of a row out of those of the partition that has them all.
fn parted(
    table: &Table,
    partitions: &mut [ShardPartitionRow],
    row: &ShardPartitionRow,
) -> Option<Of> {
    let (home, left) = table.split(&row.partition_value)?;
    let name = &table.homes.get(home)?.name;
    let mut own = partitions.iter_mut().filter(|other| {
        (&other.schemaname, &other.table_name) == (&row.schemaname, &row.table_name)
    });
    let source = own.find(|other| other.partition_name == *name)?;
    let value = std::mem::replace(&mut source.partition_value, left.clone());
    Some(Of {
        partition: name.clone(),
        value,
        named: source.physical_table.clone(),
        left,
    })
}

fn is_same(one: &ShardPartitionRow, other: &ShardPartitionRow) -> bool {
    one.schemaname == other.schemaname
        && one.table_name == other.table_name
        && one.partition_name == other.partition_name
}

/// The row of a partition whose rows have moved.
pub(crate) fn row_of(record: &Record, split: &Split) -> ShardPartitionRow {
    ShardPartitionRow {
        schemaname: record.schema.clone(),
        table_name: record.table.clone(),
        partition_name: record.partition.clone(),
        partition_value: split.value.clone(),
        hostgroup_id: record.to.into(),
        physical_schema: split.schema.clone(),
        physical_table: split.named.clone(),
        ..ShardPartitionRow::default()
    }
}

/// All by which a map tells rows apart, but for the partitions themselves.
fn told_apart_by(table: &Table) -> String {
    format!("{} ({}), {}", table.column, table.key, table.function)
}

/// Gives the default table its new name, or the old one.
fn rename(
    conn: &Connection,
    record: &Record,
    split: &Split,
    adds: bool,
) -> Result<usize, SqlError> {
    let mut names = [&record.physical, &split.rest];
    if !adds {
        names.reverse();
    }
    let [from, to] = names;
    Ok(conn.execute(
        "UPDATE main.mysql_shard_tables SET default_table = ?1 WHERE schemaname = ?2 AND table_name = ?3 AND default_table = ?4",
        (to, &record.schema, &record.table, from),
    )?)
}

/// Leaves a partition what it keeps, in its new table, or gives it all back.
fn shrink(
    conn: &Connection,
    record: &Record,
    (split, of): (&Split, &Of),
    adds: bool,
) -> Result<usize, SqlError> {
    let mut both = [(&of.value, &of.named), (&of.left, &split.rest)];
    if !adds {
        both.reverse();
    }
    let [(value, named), (next_value, next_named)] = both;
    Ok(conn.execute(
        "UPDATE main.mysql_shard_partitions SET partition_value = ?1, physical_table = ?2 WHERE schemaname = ?3 AND table_name = ?4 \
         AND partition_name = ?5 AND hostgroup_id = ?6 AND partition_value = ?7 AND physical_table = ?8",
        (
            next_value,
            next_named,
            &record.schema,
            &record.table,
            &of.partition,
            record.from,
            value,
            named,
        ),
    )?)
}

pub(crate) fn add(conn: &Connection, row: &ShardPartitionRow) -> Result<(), SqlError> {
    conn.execute(
        "INSERT INTO main.mysql_shard_partitions (schemaname, table_name, partition_name, partition_value, hostgroup_id, physical_schema, \
         physical_table) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        (
            &row.schemaname,
            &row.table_name,
            &row.partition_name,
            &row.partition_value,
            row.hostgroup_id,
            &row.physical_schema,
            &row.physical_table,
        ),
    )?;
    Ok(())
}

pub(crate) fn remove(conn: &Connection, row: &ShardPartitionRow) -> Result<(), SqlError> {
    conn.execute(
        "DELETE FROM main.mysql_shard_partitions WHERE schemaname = ?1 AND table_name = ?2 AND partition_name = ?3",
        (&row.schemaname, &row.table_name, &row.partition_name),
    )?;
    Ok(())
}

/// The name that a table gets that is written anew: the next number behind `_v`.
pub(crate) fn next_name(name: &str) -> String {
    let numbered = name.rsplit_once("_v").and_then(|(base, number)| {
        let is_ours = !number.starts_with('0');
        Some((base, number.parse::<u32>().ok().filter(|_| is_ours)?))
    });
    let (base, number) = numbered.unwrap_or((name, 1));
    let kept: String = base.chars().take(NAME_KEPT).collect();
    format!("{kept}_v{}", number.saturating_add(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_table_gets_the_next_number() {
        assert_eq!(next_name("users_default"), "users_default_v2");
        assert_eq!(next_name("users_default_v2"), "users_default_v3");
        assert_eq!(next_name("users_v09"), "users_v09_v2");
        assert_eq!(next_name("users_vx"), "users_vx_v2");
        let long = next_name(&"ü".repeat(64));
        assert!(
            long.chars().count() <= 64 && long.ends_with("_v2"),
            "{long}"
        );
    }
}
