//! `MYSQL SHARDS`: tables that are spread over partitions.

use super::part::{Outcome, Part};
use super::tables::InForce;
use crate::tables::Module;
use config::{
    Help, Refusal, ShardLookupRow, ShardPartitionRow, ShardRows, ShardTableRow, Snapshot,
    shard_map_with,
};
use std::sync::Arc;

pub(super) struct Shards;

impl Part for Shards {
    const MODULE: Module = Module::Shards;
    type Rows = (
        Vec<ShardTableRow>,
        Vec<ShardPartitionRow>,
        Vec<ShardLookupRow>,
    );

    fn build(next: &mut Snapshot, rows: Self::Rows, _: &dyn Help) -> Outcome {
        let (tables, partitions, lookups) = rows;
        let rows = ShardRows {
            tables,
            partitions,
            lookups,
        };
        // Partitions that were made stay, whatever rows say.
        let made = next.shards.made().to_vec();
        next.shards = Arc::new(shard_map_with(rows, made, next.scripts.of_buckets())?);
        Ok(unknown(next))
    }
}

/// Tables that nobody can route, as the script that says their buckets is not in force.
pub(super) fn unknown(next: &Snapshot) -> Vec<Refusal> {
    let refusal = |table: &Arc<shards::Table>| {
        Some(Refusal {
            table: "mysql_shard_tables",
            row: format!("schemaname '{}', table_name '{}'", table.schema, table.name),
            column: "function",
            words: format!("does not serve: {}", table.unknown()?),
        })
    };
    next.shards.tables().filter_map(refusal).collect()
}

impl InForce for ShardTableRow {
    fn in_force(snapshot: &Snapshot) -> impl Iterator<Item = Self> {
        snapshot.shards.table_rows().iter().cloned()
    }
}

impl InForce for ShardLookupRow {
    fn in_force(snapshot: &Snapshot) -> impl Iterator<Item = Self> {
        snapshot.shards.lookup_rows().iter().cloned()
    }
}

impl InForce for ShardPartitionRow {
    fn in_force(snapshot: &Snapshot) -> impl Iterator<Item = Self> {
        snapshot.shards.partition_rows().iter().cloned()
    }
}
