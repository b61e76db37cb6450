//! `HSCALE ADD_PARTITION`: where the default partition may have rows of the new one, these move to it
//! first.
//!
//! docs/features/partition-splits.md

use crate::engine::Reply;
use crate::said::Said;
use crate::sharding::partitions::{gate, hold, writer_of};
use crate::sharding::splits::{Added, added, cannot, row_of, rows, split_of};
use crate::shared::Shared;
use config::ShardPartitionRow;
use mover::{Record, There, look_there};
use std::time::Duration;

/// Statements for the default partition wait, until this is opened.
pub(crate) struct Held(String);

/// Result of a look at what is in the way of a partition.
pub(crate) enum Adding {
    /// No row is in the way. Statements may be held so that none comes.
    AtOnce(Option<Held>),
    /// Rows move first.
    Moves(Reply),
}

/// Looks whether rows are in the way of a partition that is added, and begins to move them.
pub(crate) async fn clear_way(shared: &Shared, row: ShardPartitionRow) -> Result<Adding, Said> {
    if shared.is_made(&row)? {
        return Ok(Adding::AtOnce(None));
    }
    let before = shared
        .moves
        .splits_of(&row.schemaname, &row.table_name, u64::MAX);
    if !before.is_empty() {
        return queue_split(shared, &before, row).map(Adding::Moves);
    }
    let (tables, partitions) = rows(shared.engine.borrow().conn())?;
    // Whatever is wrong with the row is said by the LOAD.
    let Ok(Some(added)) = added(tables, partitions, row) else {
        return Ok(Adding::AtOnce(None));
    };
    let Some((table, [source, home])) = added.ends() else {
        return Ok(Adding::AtOnce(None));
    };
    let map = shared.snapshot.borrow().shards.clone();
    if let Err(refused) = added.map.with_made(map.made()) {
        let words = refused
            .first()
            .map(|one| format!("{} {}", one.column, one.words));
        return Err(Said::Sql(words.unwrap_or_default()));
    }
    let has_server = |hostgroup: u32| {
        let snapshot = shared.snapshot.borrow();
        let mut servers = snapshot.servers.iter().flat_map(|group| &group.servers);
        servers.any(|server| server.hostgroup == hostgroup)
    };
    let is_there = (home.hostgroup, &home.table) == (source.hostgroup, &source.table);
    if is_there || !has_server(source.hostgroup) {
        return Ok(Adding::AtOnce(None));
    }
    let schema = match source.schema.as_str() {
        "" => &table.schema,
        schema => schema,
    };
    let place = writer_of(shared, source.hostgroup).await;
    let place = place.map_err(Said::Sql)?;
    let looks = || look_there(&shared.rt, &place, schema, &source.table);
    match looks().await.map_err(Said::Sql)? {
        There::NoTable => Ok(Adding::AtOnce(None)),
        There::Rows(database) => begin_split(shared, &added, database)
            .await
            .map(Adding::Moves),
        // Two rows of the map change, which only the cut does.
        There::Empty(database) if added.of.is_some() => begin_split(shared, &added, database)
            .await
            .map(Adding::Moves),
        There::Empty(_) => {
            let gate = gate(&table.shown(), "");
            let variables = &shared.snapshot.borrow().variables.clone();
            let within = Duration::from_millis(variables.mysql_sharding_cut_over_ms_max);
            let held = hold(shared, &gate, within).await;
            let again = match held {
                Ok(()) => looks().await,
                Err(words) => Err(format!("{words}; try it again")),
            };
            if let Ok(There::Empty(_) | There::NoTable) = again {
                return Ok(Adding::AtOnce(Some(Held(gate))));
            }
            shared.cores.open_gate(&gate).await;
            match again.map_err(Said::Sql)? {
                There::Rows(database) => begin_split(shared, &added, database)
                    .await
                    .map(Adding::Moves),
                There::Empty(_) | There::NoTable => Ok(Adding::AtOnce(None)),
            }
        }
    }
}

/// Lets statements go on.
pub(crate) async fn let_go(shared: &Shared, held: Option<Held>) {
    if let Some(Held(gate)) = held {
        shared.cores.open_gate(&gate).await;
    }
}

async fn begin_split(shared: &Shared, added: &Added, database: String) -> Result<Reply, Said> {
    let record = split_of(shared, added, database)?;
    let begun = shared.begin_record(record).await;
    begun.map_err(|said| cannot(added, &said.words()))
}

/// A partition that is added behind others of its table.
fn queue_split(shared: &Shared, before: &[Record], row: ShardPartitionRow) -> Result<Reply, Said> {
    let (mut tables, mut partitions) = rows(shared.engine.borrow().conn())?;
    let others = before.iter().filter_map(|record| {
        let split = record.split.as_ref()?;
        Some(row_of(record, split))
    });
    let mut next = None;
    for row in others.chain([row]) {
        next = added(tables.clone(), partitions.clone(), row.clone()).map_err(Said::Sql)?;
        let Some(added) = &next else {
            return Err(format!(
                "argument 2 (partition): '{}' has a partition '{}' already, or gets one",
                row.table_name, row.partition_name
            )
            .into());
        };
        tables = added.map.table_rows().to_vec();
        partitions = added.map.partition_rows().to_vec();
    }
    let added = next.ok_or_else(|| Said::Sql("no partition is added".to_owned()))?;
    shared.queue(split_of(shared, &added, String::new())?)
}
