//! `mysql_shard_tables` and `mysql_shard_partitions`: which tables are spread, and over what.

use crate::refusal::Refusals;
use crate::{Refusal, Variables};
use shards::xa::Decisions;
use shards::{BucketScript, Map, Partitions, Sequences};
use std::sync::Arc;

pub use shards::{PartitionRow as ShardPartitionRow, TableRow as ShardTableRow};

/// The map from the rows of both tables.
///
/// # Errors
/// Every row that cannot be honoured.
pub fn shard_map(
    tables: Vec<ShardTableRow>,
    partitions: Vec<ShardPartitionRow>,
) -> Result<Map, Vec<Refusal>> {
    shard_map_with(tables, partitions, Vec::new(), Vec::new())
}

/// The map from the rows of both tables, the partitions that proxies have made, and scripts that say
/// buckets.
///
/// # Errors
/// Every row that cannot be honoured.
pub fn shard_map_with(
    tables: Vec<ShardTableRow>,
    partitions: Vec<ShardPartitionRow>,
    made: Vec<ShardPartitionRow>,
    scripts: Vec<Arc<BucketScript>>,
) -> Result<Map, Vec<Refusal>> {
    Map::build_with(tables, partitions, made, scripts).map_err(|refused| {
        let mut of_tables = Refusals::of("mysql_shard_tables");
        let mut of_partitions = Refusals::of("mysql_shard_partitions");
        for one in refused {
            let list = match one.partition {
                true => &mut of_partitions,
                false => &mut of_tables,
            };
            list.add(|| one.row, one.column, one.words);
        }
        let mut list = of_tables.into_list();
        list.extend(of_partitions.into_list());
        list
    })
}

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
