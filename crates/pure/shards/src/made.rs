//! Partitions that proxies make by themselves: the table in which all proxies write them down, and what
//! must not be in the default table when one is made.
//!
//! docs/features/automatic-partitions.md

use crate::function::{Bucket, Function};
use crate::map::Table;
use crate::numbers::hex;
use crate::rows::PartitionRow;
use crate::xa::quoted_table;

/// Rows that one look at the table reads at most.
pub const READ_AT_ONCE: usize = 10_000;
/// Bytes of a bucket that the table keeps.
const BUCKET_MAX: usize = 700;

/// The table of partitions that were made: a row for each, numbered for each sharded table from 1 on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partitions {
    /// Hostgroup whose writer has it.
    pub hostgroup: u32,
    /// As statements say it.
    table: String,
}

/// A partition that was made, as the table has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MadeRow {
    /// Its number among those of its sharded table, from 1.
    pub number: u64,
    /// The partition.
    pub row: PartitionRow,
}

impl Partitions {
    /// Of `schema.table`; `None` for what is none.
    #[must_use]
    pub fn of(hostgroup: u32, table: &str) -> Option<Self> {
        let table = quoted_table(table)?;
        Some(Self { hostgroup, table })
    }

    /// Asks for the partitions of a table from this number on, in their order.
    #[must_use]
    pub fn question(&self, of: &str, from: u64) -> String {
        let (table, of) = (&self.table, hex(of));
        format!(
            "SELECT number, bucket, partition_name, hostgroup_id FROM {table} WHERE table_name = _utf8mb4 0x{of} AND number >= {from} ORDER BY number LIMIT {READ_AT_ONCE}"
        )
    }

    /// Writes a partition down. Of two with one bucket, or with one number, the second waits for the
    /// first, and fails unless that is taken back.
    ///
    /// # Errors
    /// A sentence: its bucket is too long.
    pub fn record(&self, of: &str, made: &MadeRow) -> Result<String, String> {
        let MadeRow { number, row } = made;
        let (table, bucket) = (&self.table, &row.partition_value);
        if bucket.len() > BUCKET_MAX {
            return Err(format!(
                "a bucket of more than {BUCKET_MAX} bytes gets no partition"
            ));
        }
        let hexed = |text: &str| match text {
            "" => "''".to_owned(),
            text => format!("0x{}", hex(text)),
        };
        Ok(format!(
            "INSERT INTO {table} (table_name, bucket, number, partition_name, hostgroup_id) VALUES ({}, {}, {number}, {}, {})",
            hexed(of),
            hexed(bucket),
            hexed(&row.partition_name),
            row.hostgroup_id
        ))
    }

    /// A row of the answer to [`Self::question`] for a table.
    #[must_use]
    pub fn read(table: &Table, cells: &[Option<Vec<u8>>]) -> Option<MadeRow> {
        let text = |at: usize| {
            let cell = cells.get(at)?.as_deref()?;
            std::str::from_utf8(cell).ok().map(str::to_owned)
        };
        Some(MadeRow {
            number: text(0)?.parse().ok()?,
            row: PartitionRow {
                schemaname: table.schema.clone(),
                table_name: table.name.clone(),
                partition_name: text(2)?,
                partition_value: text(1)?,
                hostgroup_id: text(3)?.parse().ok()?,
                physical_schema: table.homes[0].schema.clone(),
                ..PartitionRow::default()
            },
        })
    }
}

impl Table {
    /// Condition that all rows of a bucket fulfil, and as few others as can be said; `None` where SQL
    /// cannot say it.
    #[must_use]
    pub fn rows_of(&self, bucket: &Bucket) -> Option<String> {
        let key = format!("`{}`", self.column.replace('`', "``"));
        let text = |text: &str| match text {
            "" => "''".to_owned(),
            text => format!("_utf8mb4 0x{}", hex(text)),
        };
        let shown = bucket.to_string();
        Some(match (&self.function, bucket) {
            (Function::None | Function::List | Function::Range, Bucket::Number(number)) => {
                format!("{key} = {number}")
            }
            (Function::None | Function::List | Function::Range, Bucket::Text(_)) => {
                format!("{key} = {}", text(&shown))
            }
            (Function::Mod(by), Bucket::Number(number)) => {
                format!("MOD(MOD({key}, {by}) + {by}, {by}) = {number}")
            }
            (Function::Div(by), Bucket::Number(number)) => {
                let low = number.checked_mul(i128::from(*by))?;
                let high = low.checked_add(i128::from(*by) - 1)?;
                format!("{key} BETWEEN {low} AND {high}")
            }
            (Function::Prefix(characters), _) => {
                let like = |behind: &str| {
                    let mut pattern = String::new();
                    for c in shown.chars() {
                        if "%_\\".contains(c) {
                            pattern.push('\\');
                        }
                        pattern.push(c);
                    }
                    text(&format!("{pattern}{behind}"))
                };
                match shown.chars().count() < *characters as usize {
                    // Blanks behind it are not of the bucket.
                    true => format!("({key} = {} OR {key} LIKE {})", text(&shown), like(" %")),
                    false => format!("{key} LIKE {}", like("%")),
                }
            }
            (Function::Date(format), _) => {
                format!("DATE_FORMAT({key}, {}) = {}", text(format), text(&shown))
            }
            (Function::Hash(_) | Function::Lua(_), _) | (_, Bucket::Text(_)) => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Declared, Map, TableRow};

    fn map(function: &str, key_type: &str, made: &[(&str, &str)]) -> Map {
        let table = TableRow {
            table_name: "users".into(),
            key_column: "k".into(),
            key_type: key_type.into(),
            function: function.into(),
            default_table: "users_default".into(),
            default_hostgroup: 1,
            auto_partition: "ROUND_ROBIN(1, 2)".into(),
            ..TableRow::default()
        };
        let row = |(name, value): &(&str, &str)| PartitionRow {
            table_name: "users".into(),
            partition_name: (*name).into(),
            partition_value: (*value).into(),
            hostgroup_id: 1,
            ..PartitionRow::default()
        };
        let map = Map::build(vec![table], Vec::new()).unwrap();
        let made: Vec<_> = made.iter().map(row).collect();
        map.with_made(&made).unwrap()
    }

    #[test]
    fn rows_of_a_bucket_are_found_by_a_condition() {
        for (function, key_type, bucket, wanted) in [
            ("NONE()", "INT", "-7", "`k` = -7"),
            ("NONE()", "VARCHAR", "a'b", "`k` = _utf8mb4 0x612762"),
            ("MOD(4)", "INT", "3", "MOD(MOD(`k`, 4) + 4, 4) = 3"),
            ("DIV(10)", "INT", "-1", "`k` BETWEEN -10 AND -1"),
            (
                "PREFIX(3)",
                "VARCHAR",
                "a_b",
                "`k` LIKE _utf8mb4 0x615c5f6225",
            ),
            (
                "PREFIX(3)",
                "VARCHAR",
                "fo",
                "(`k` = _utf8mb4 0x666f OR `k` LIKE _utf8mb4 0x666f2025)",
            ),
            (
                "DATE('%Y')",
                "DATE",
                "2008",
                "DATE_FORMAT(`k`, _utf8mb4 0x2559) = _utf8mb4 0x32303038",
            ),
        ] {
            let map = map(function, key_type, &[]);
            let table = map.tables().next().unwrap();
            let bucket = table.bucket_written(bucket).unwrap();
            assert_eq!(
                table.rows_of(&bucket).as_deref(),
                Some(wanted),
                "{function}"
            );
        }
        let map = map("HASH(4)", "VARCHAR", &[]);
        let table = map.tables().next().unwrap();
        assert_eq!(table.rows_of(&Bucket::Number(1)), None);
    }

    #[test]
    fn names_of_partitions_are_free_and_turns_are_taken() {
        let map = map("NONE()", "VARCHAR BINARY", &[("a_b", "a-b"), ("x", "x")]);
        let table = map.tables().next().unwrap();
        let next = |value: &str| {
            let bucket = table.bucket_written(value).unwrap();
            table.next_partition(&bucket).unwrap()
        };
        for (value, name) in [
            ("new", "new"),
            ("A.B", "A_B_3"),
            ("default", "default_3"),
            ("X", "X_3"),
        ] {
            assert_eq!(next(value).partition_name, name);
        }
        assert_eq!(next("new").hostgroup_id, 1);
        assert!(next(&"n".repeat(90)).partition_name.len() + "users_".len() <= 64);
    }

    /// A partition that was made is in the map until a row of the operator's says the same.
    #[test]
    fn a_row_takes_the_place_of_what_was_made_and_must_be_like_it() {
        let map = map("NONE()", "VARCHAR", &[("a", "a"), ("b", "b")]);
        let row = |name: &str, value: &str| PartitionRow {
            table_name: "users".into(),
            partition_name: name.into(),
            partition_value: value.into(),
            hostgroup_id: 7,
            ..PartitionRow::default()
        };
        let with = |rows: Vec<PartitionRow>, automatic: &str| {
            let mut tables = map.table_rows().to_vec();
            tables[0].auto_partition = automatic.into();
            let declared = Declared {
                tables,
                partitions: rows,
                ..Declared::default()
            };
            Map::build_with(declared, map.made().to_vec(), Vec::new())
        };
        let pinned = with(vec![row("a", "a")], "FIXED(1)").unwrap();
        let table = pinned.tables().next().unwrap();
        let shown: Vec<_> = table
            .homes
            .iter()
            .map(|home| (home.name.as_str(), home.hostgroup, home.made))
            .collect();
        assert_eq!(shown, [("", 1, false), ("a", 7, false), ("b", 1, true)]);
        let words =
            |refused: Result<Map, Vec<crate::Refused>>| refused.unwrap_err()[0].words.clone();
        let other = words(with(vec![row("a", "c")], "FIXED(1)"));
        assert!(other.contains("must have 'a'"), "{other}");
        let overlaps = words(with(vec![row("z", "b")], "FIXED(1)"));
        assert!(overlaps.contains("overlaps"), "{overlaps}");
        let off = words(with(vec![row("a", "a")], ""));
        assert!(
            off.contains("1 partitions were made by themselves"),
            "{off}"
        );
        assert!(with(vec![row("a", "a"), row("b", "b")], "").is_ok());
    }
}
