//! `HSCALE MERGE_PARTITION`: a partition whose rows come together with those of another one, and the map at
//! the cut.
//!
//! docs/features/partition-merges.md

use crate::engine::{Reply, SqlError};
use crate::loading;
use crate::said::Said;
use crate::sharding::partitions::{save_map_of, shared_table};
use crate::sharding::splits::{add, next_name, remove, rows};
use crate::shared::Shared;
use crate::tables::Module;
use config::{ShardPartitionRow, ShardTableRow};
use mover::{Merge, Record};
use rusqlite::Connection;
use shards::{Home, Kind, Map, Table};
use std::sync::Arc;

/// A partition and the one that gets its buckets, as the map in force has them.
struct Ends {
    table: Arc<Table>,
    from: Home,
    into: Home,
}

impl Shared {
    /// `HSCALE MERGE_PARTITION`.
    pub(crate) async fn begin_merge(
        &self,
        (schema, table, partition): (&str, &str, &str),
        into: &str,
    ) -> Result<Reply, Said> {
        let map = self.snapshot.borrow().shards.clone();
        let Ends { table, from, into } = ends(&map, (schema, table), (partition, into))?;
        if let Some(other) = self.moves.of_table(&table.schema, &table.name) {
            return Err(format!("{} is under way", other.shown()).into());
        }
        let whole = match into.name.as_str() {
            "" => String::new(),
            _ => table.joined(&into.value, &from.value).ok_or_else(|| {
                Said::Sql(format!(
                    "argument 3 (into): a partition by {} has one value; '' gives its rows to the default partition",
                    table.function
                ))
            })?,
        };
        let of = (&*table.schema, &*table.name, partition);
        let mut record = self.moves.begin(of, into.hostgroup, self.now_s())?;
        (record.from, record.physical) = (from.hostgroup, from.table.clone());
        record.database = self.schema_of(&table, &from).await?;
        record.merge = Some(Merge {
            into: into.name.clone(),
            value: into.value.clone(),
            whole,
            named: self.named(&record, &into)?,
            table: next_name(&into.table),
            database: self.schema_of(&table, &into).await?,
            physical: into.table.clone(),
            ..Merge::default()
        });
        self.begin_record(record).await
    }

    /// The schema of a home's table.
    async fn schema_of(&self, table: &Table, home: &Home) -> Result<String, Said> {
        match (&*home.schema, &*table.schema) {
            ("", "") => self.schema_with(home.hostgroup, &home.table).await,
            ("", schema) | (schema, _) => Ok(schema.to_owned()),
        }
    }

    /// The name of a home's table, as the operator wrote it.
    fn named(&self, record: &Record, home: &Home) -> Result<String, Said> {
        let (tables, partitions) = rows(self.engine.borrow().conn())?;
        let named = match home.name.as_str() {
            "" => {
                let mut own = tables.into_iter().filter(|row| is_its(record, row));
                own.next().map(|row| row.default_table)
            }
            name => {
                let is_it = |row: &ShardPartitionRow| {
                    (&row.schemaname, &row.table_name) == (&record.schema, &record.table)
                        && row.partition_name == name
                };
                let mut own = partitions.into_iter().filter(is_it);
                own.next().map(|row| row.physical_table)
            }
        };
        named.ok_or_else(|| Said::Sql("the map in memory is not the one that is in force".into()))
    }
}

fn is_its(record: &Record, row: &ShardTableRow) -> bool {
    (&row.schemaname, &row.table_name) == (&record.schema, &record.table)
}

/// Finds both partitions, and refuses those that cannot come together.
fn ends(
    map: &Map,
    (schema, name): (&str, &str),
    (partition, into): (&str, &str),
) -> Result<Ends, Said> {
    let is_it = |name: &str, own: &str| name.eq_ignore_ascii_case(own);
    let mut tables = map.tables();
    let table = tables.find(|table| is_it(&table.schema, schema) && is_it(&table.name, name));
    let Some(table) = table.filter(|table| table.kind == Kind::Sharded) else {
        return Err(format!("argument 1 (table): '{name}' is not set up").into());
    };
    let home = |number: u32, what: &str, wanted: &str| {
        let none = || format!("argument {number} ({what}): '{name}' has no partition '{wanted}'");
        let found = table.home_named(wanted).and_then(|at| table.homes.get(at));
        let found: &Home = found.ok_or_else(|| Said::Sql(none()))?;
        let lacks = match found.made {
            true => Some(format!(
                "a proxy has made it by itself; HSCALE ADD_PARTITION('{}', '{}', '{}', {}) first makes it one of the map's rows",
                table.shown(),
                found.name,
                found.value,
                found.hostgroup
            )),
            false => shared_table(map, found),
        };
        match lacks {
            Some(words) => Err(Said::Sql(format!("argument {number} ({what}): {words}"))),
            None => Ok(found.clone()),
        }
    };
    if partition.is_empty() || partition == into {
        let words = "argument 2 (partition) must be another one than that which gets its rows";
        return Err(words.into());
    }
    if into.is_empty() && table.is_automatic() {
        return Err(format!(
            "argument 3 (into): {} makes its partitions by itself, and the next row would make it again; empty auto_partition first",
            table.shown()
        )
        .into());
    }
    Ok(Ends {
        from: home(2, "partition", partition)?,
        into: home(3, "into", into)?,
        table: table.clone(),
    })
}

/// Takes the partition's row out and gives its buckets to the other one, which has its new table; loads and
/// saves the map.
pub(crate) async fn put_in_force(
    shared: &Shared,
    record: &Record,
    merge: &Merge,
) -> Result<(), String> {
    let (_, partitions) = rows(shared.engine.borrow().conn()).map_err(|said| said.words())?;
    let is_it = |row: &&ShardPartitionRow| {
        (&row.schemaname, &row.table_name) == (&record.schema, &record.table)
            && row.partition_name == record.partition
    };
    let own = partitions.iter().find(is_it).cloned();
    let writes = |merges: bool| {
        let change = shared.engine.borrow().transaction(|conn| {
            let changed = change(conn, record, merge, merges)?;
            match &own {
                Some(own) if changed > 0 && merges => remove(conn, own)?,
                Some(own) if changed > 0 => add(conn, own)?,
                _ => {}
            }
            Ok(changed)
        });
        change.map_err(|error| error.to_string())
    };
    // It may be so already: a process before this one has ended behind it.
    if own.is_some() && writes(true)? == 0 {
        return Err(format!(
            "the map in memory has not its rows in {} any more",
            merge.physical
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

/// Gives the other partition all buckets and its new table, or takes both back.
fn change(
    conn: &Connection,
    record: &Record,
    merge: &Merge,
    merges: bool,
) -> Result<usize, SqlError> {
    let mut both = [(&merge.value, &merge.named), (&merge.whole, &merge.table)];
    if !merges {
        both.reverse();
    }
    let [(value, named), (next_value, next_named)] = both;
    if merge.into.is_empty() {
        return Ok(conn.execute(
            "UPDATE main.mysql_shard_tables SET default_table = ?1 WHERE schemaname = ?2 AND table_name = ?3 AND default_table = ?4 \
             AND default_hostgroup = ?5",
            (next_named, &record.schema, &record.table, named, record.to),
        )?);
    }
    Ok(conn.execute(
        "UPDATE main.mysql_shard_partitions SET partition_value = ?1, physical_table = ?2 WHERE schemaname = ?3 AND table_name = ?4 \
         AND partition_name = ?5 AND hostgroup_id = ?6 AND partition_value = ?7 AND physical_table = ?8",
        (
            next_value,
            next_named,
            &record.schema,
            &record.table,
            &merge.into,
            record.to,
            value,
            named,
        ),
    )?)
}
