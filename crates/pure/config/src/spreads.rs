//! How many statements on each sharded table needed how many partitions, as one core counts them.

use shards::Table;
use std::collections::BTreeMap;

/// Partitions that a statement needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpreadWidth {
    /// One.
    Point,
    /// So many, and not all.
    Some(usize),
    /// All, so many.
    All(usize),
    /// None: it was refused.
    Refused,
}

/// Statements on one table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SpreadCount {
    /// Those of one partition.
    pub points: u64,
    /// Those of several.
    pub some: u64,
    /// Those of all.
    pub all: u64,
    /// Those that were refused.
    pub refused: u64,
    /// Partitions that were asked, of all statements together.
    pub partitions: u64,
    /// Most partitions of one statement.
    pub partitions_max: u64,
    /// Those that one server has finished.
    pub finished: u64,
    /// Rows that were copied there.
    pub rows_copied: u64,
}

/// Tables that are told apart.
const TABLES_MAX: usize = 10_000;

/// Statements on sharded tables, by schema and name.
#[derive(Debug, Clone, Default)]
pub struct Spreads(BTreeMap<Box<str>, BTreeMap<Box<str>, SpreadCount>>);

impl Spreads {
    pub(crate) fn count(&mut self, table: &Table, width: SpreadWidth) {
        let Some(of) = self.of(&table.schema, &table.name) else {
            return;
        };
        let partitions = match width {
            SpreadWidth::Point => {
                of.points += 1;
                1
            }
            SpreadWidth::Some(partitions) => {
                of.some += 1;
                partitions as u64
            }
            SpreadWidth::All(partitions) => {
                of.all += 1;
                partitions as u64
            }
            SpreadWidth::Refused => {
                of.refused += 1;
                0
            }
        };
        of.partitions += partitions;
        of.partitions_max = of.partitions_max.max(partitions);
    }

    pub(crate) fn count_finished(&mut self, table: &Table) {
        if let Some(of) = self.of(&table.schema, &table.name) {
            of.finished += 1;
        }
    }

    pub(crate) fn count_copied(&mut self, table: &Table, rows: u64) {
        if let Some(of) = self.of(&table.schema, &table.name) {
            of.rows_copied += rows;
        }
    }

    /// The counts of a table; none where there are too many.
    fn of(&mut self, schema: &str, name: &str) -> Option<&mut SpreadCount> {
        let is_known = self
            .0
            .get(schema)
            .is_some_and(|tables| tables.contains_key(name));
        if !is_known {
            let all: usize = self.0.values().map(BTreeMap::len).sum();
            if all >= TABLES_MAX {
                return None;
            }
            let tables = self.0.entry(schema.into()).or_default();
            tables.insert(name.into(), SpreadCount::default());
        }
        self.0.get_mut(schema)?.get_mut(name)
    }

    /// By schema and name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str, &SpreadCount)> {
        self.0.iter().flat_map(|(schema, tables)| {
            tables
                .iter()
                .map(move |(name, count)| (&**schema, &**name, count))
        })
    }

    /// Begins anew.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ShardTableRow, shard_map};

    #[test]
    fn statements_are_counted_by_the_partitions_that_they_need() {
        let row = ShardTableRow {
            table_name: "users".into(),
            key_column: "k".into(),
            default_table: "users_0".into(),
            ..ShardTableRow::default()
        };
        let map = shard_map(vec![row], Vec::new()).unwrap();
        let table = map.numbered(0).unwrap();
        let mut spreads = Spreads::default();
        for width in [
            SpreadWidth::Point,
            SpreadWidth::Some(3),
            SpreadWidth::All(5),
            SpreadWidth::Refused,
        ] {
            spreads.count(table, width);
        }
        let wanted = SpreadCount {
            points: 1,
            some: 1,
            all: 1,
            refused: 1,
            partitions: 9,
            partitions_max: 5,
            ..SpreadCount::default()
        };
        assert_eq!(spreads.iter().collect::<Vec<_>>(), [("", "users", &wanted)]);
    }
}
