//! `mysql_shard_tables`, `mysql_shard_partitions` and `mysql_shard_lookups`: which tables are spread, and over what.

use crate::refusal::Refusals;
use crate::{Refusal, Variables};
use shards::xa::Decisions;
use shards::{BucketScript, Declared, Map, Partitions, Sequences};
use std::sync::Arc;

pub use shards::{
    LookupRow as ShardLookupRow, PartitionRow as ShardPartitionRow, TableRow as ShardTableRow,
};

/// The map from the rows of both tables.
///
/// # Errors
/// Every row that cannot be honoured.
pub fn shard_map(
    tables: Vec<ShardTableRow>,
    partitions: Vec<ShardPartitionRow>,
) -> Result<Map, Vec<Refusal>> {
    let declared = Declared {
        tables,
        partitions,
        ..Declared::default()
    };
    shard_map_with(declared, Vec::new(), Vec::new())
}

/// The map from all rows, the partitions that proxies have made, and scripts that say buckets.
///
/// # Errors
/// Every row that cannot be honoured.
pub fn shard_map_with(
    declared: Declared,
    made: Vec<ShardPartitionRow>,
    scripts: Vec<Arc<BucketScript>>,
) -> Result<Map, Vec<Refusal>> {
    Map::build_with(declared, made, scripts).map_err(|refused| {
        let mut lists = TABLES.map(Refusals::of);
        for one in refused {
            if let Some(at) = TABLES.iter().position(|table| *table == one.table) {
                lists[at].add(|| one.row, one.column, one.words);
            }
        }
        let lists = lists.into_iter().flat_map(Refusals::into_list);
        lists.collect()
    })
}

/// Tables that make the map.
const TABLES: [&str; 3] = [
    "mysql_shard_tables",
    "mysql_shard_partitions",
    "mysql_shard_lookups",
];

impl Variables {
    /// The table in which outcomes of changes of several partitions are written, if one is named.
    #[must_use]
    pub fn decisions(&self) -> Option<Decisions> {
        let hostgroup = u32::try_from(self.mysql_sharding_decisions_hostgroup).ok()?;
        Decisions::of(hostgroup, &self.mysql_sharding_decisions)
    }

    /// The table of sequences, if one is named.
    #[must_use]
    pub fn sequences(&self) -> Option<Sequences> {
        let hostgroup = u32::try_from(self.mysql_sharding_sequences_hostgroup).ok()?;
        Sequences::of(hostgroup, &self.mysql_sharding_sequences)
    }

    /// The table of partitions that are made by themselves, if one is named.
    #[must_use]
    pub fn partitions(&self) -> Option<Partitions> {
        let hostgroup = u32::try_from(self.mysql_sharding_partitions_hostgroup).ok()?;
        Partitions::of(hostgroup, &self.mysql_sharding_partitions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_cannot_be_honoured_is_named_with_its_table() {
        let table = ShardTableRow {
            table_name: "users".into(),
            key_column: "nickname".into(),
            function: "MD5()".into(),
            ..ShardTableRow::default()
        };
        let partition = ShardPartitionRow {
            table_name: "others".into(),
            partition_name: "p".into(),
            ..ShardPartitionRow::default()
        };
        let refused = shard_map(vec![table], vec![partition]).unwrap_err();
        let shown: Vec<_> = refused.iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                "mysql_shard_tables (schemaname '', table_name 'users'): function must be one of NONE(), MOD(n), DIV(n), PREFIX(n), DATE('format'), RANGE(), LIST(), HASH(n), LUA('name'); 'MD5()' is not",
                "mysql_shard_partitions (schemaname '', table_name 'others', partition_name 'p'): table_name is no table of mysql_shard_tables"
            ]
        );
    }
}
