//! Homes of values that a statement writes.

use crate::condition::KeyOf;
use crate::function::Function;
use crate::key::{Reading, Value};
use crate::map::Table;
use crate::rows::PartitionRow;
use sql::tree::{Expression, Literal, Node};

/// The home of a value that is written.
pub(crate) fn written<'a>(
    table: &Table,
    key: KeyOf<'_, 'a>,
    value: &Expression<'a>,
    makes: &mut Option<PartitionRow>,
) -> Result<usize, String> {
    let (name, column) = (table.shown(), &table.column);
    let Some(literal) = key.literal(value) else {
        return Err(match value.node {
            Node::Parameter(_) => format!(
                "which partition of {name} a row belongs to is not known before {column} has a value"
            ),
            _ => format!(
                "the value of {column}, by which {name} is spread, must be written out; compute it first"
            ),
        });
    };
    home_written(table, &literal, makes)
}

/// The home of a literal that is written.
pub(crate) fn home_written(
    table: &Table,
    literal: &Literal<'_>,
    makes: &mut Option<PartitionRow>,
) -> Result<usize, String> {
    let (name, column) = (table.shown(), &table.column);
    let Reading::Is(value) = table.stored(literal) else {
        return Err(format!(
            "which partition of {name} has this {column} is not certain: it depends on the column's collation or type; give key_type, or bind the row by the hint hscale.partition({}) = 'name'",
            table.name
        ));
    };
    let home = table.home_of_key(&value);
    let home = home.ok_or_else(|| {
        let why = match &table.function {
            Function::Lua(script) => script.bucket(&value).err(),
            _ => None,
        };
        format!(
            "the partition of a row of {name} is said by {}, and it does not say it: {}",
            table.function,
            why.unwrap_or_default()
        )
    })?;
    if home == 0
        && value != Value::Null
        && let Some(bucket) = table.function.bucket(&value)
        && let Some(row) = table.next_partition(&bucket)
    {
        let words = match table.bucket_written(&row.partition_value) {
            Some(written) if written == bucket => format!(
                "{name} has no partition for '{bucket}' yet; HSCALE ADD_PARTITION('{name}', '{}', '{bucket}', {}) makes it, or a proxy does where mysql-sharding_partitions names a table (schema.table)",
                row.partition_name, row.hostgroup_id
            ),
            _ => {
                return Err(format!(
                    "{name} has no partition for '{bucket}', and that cannot be written as a partition_value"
                ));
            }
        };
        *makes = Some(row);
        return Err(words);
    }
    Ok(home)
}
