//! `MYSQL SHARDS`: tables that are spread over partitions.

use super::tables::InForce;
use super::{Outcome, Part};
use crate::tables::Module;
use config::{Help, ShardPartitionRow, ShardTableRow, Snapshot, shard_map_with};
use std::sync::Arc;

pub(super) struct Shards;

impl Part for Shards {
    const MODULE: Module = Module::Shards;
    type Rows = (Vec<ShardTableRow>, Vec<ShardPartitionRow>);

    fn build(next: &mut Snapshot, (tables, partitions): Self::Rows, _: &dyn Help) -> Outcome {
        // Partitions that were made stay, whatever rows say.
        let made = next.shards.made().to_vec();
        next.shards = Arc::new(shard_map_with(tables, partitions, made)?);
        Ok(Vec::new())
    }
}

impl InForce for ShardTableRow {
    fn in_force(snapshot: &Snapshot) -> impl Iterator<Item = Self> {
        snapshot.shards.table_rows().iter().cloned()
    }
}

impl InForce for ShardPartitionRow {
    fn in_force(snapshot: &Snapshot) -> impl Iterator<Item = Self> {
        snapshot.shards.partition_rows().iter().cloned()
    }
}
