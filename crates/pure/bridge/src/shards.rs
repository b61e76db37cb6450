//! How many statements on sharded tables needed how many partitions, what became of those that one
//! partition does after another, and of partitions that move.

use crate::observed::observed;
use std::sync::Arc;

observed! {
    /// A row of `stats_mysql_shards`.
    pub struct ShardRow, ends ",
    PRIMARY KEY(schemaname, table_name))":
    /// Its schema, as the map has it.
    schema: Arc<str>, "schemaname VARCHAR NOT NULL", key;
    /// Its name.
    table: Arc<str>, "table_name VARCHAR NOT NULL", key;
    /// Statements that needed one partition.
    points: u64, "points INTEGER NOT NULL", sum;
    /// Those that needed several.
    some: u64, "some_partitions INTEGER NOT NULL", sum;
    /// Those that needed all.
    all: u64, "all_partitions INTEGER NOT NULL", sum;
    /// Those that were refused.
    refused: u64, "refused INTEGER NOT NULL", sum;
    /// Partitions that were asked, of all statements together.
    partitions: u64, "partitions INTEGER NOT NULL", sum;
    /// Most partitions of one statement.
    partitions_max: u64, "partitions_max INTEGER NOT NULL", max;
    /// Statements that one server has finished, on copies of their rows.
    finished: u64, "finished INTEGER NOT NULL", sum;
    /// Rows that were copied for them.
    rows_copied: u64, "rows_copied INTEGER NOT NULL", sum;
}

observed! {
    /// A row of `stats_mysql_shard_ddl`.
    pub struct ShardDdlRow, ends ",
    PRIMARY KEY(ddl_id, number))":
    /// Number of the statement.
    id: u64, "ddl_id INTEGER NOT NULL", key;
    /// Place among the partitions of it, from 0.
    number: u64, "number INTEGER NOT NULL", key;
    /// The partitions that share a table, for people.
    partitions: Arc<str>, "partitions VARCHAR NOT NULL", first;
    /// Where they are.
    hostgroup: u32, "hostgroup INT NOT NULL", first;
    /// Beginning of the statement.
    statement: Arc<str>, "statement VARCHAR NOT NULL", first;
    /// `waits`, `runs`, `done` or `failed`.
    state: &'static str, "state VARCHAR NOT NULL", first;
    /// Words of the error.
    error: Arc<str>, "error VARCHAR NOT NULL", first;
    /// Unix seconds of the state.
    changed_at: u64, "changed_at INTEGER NOT NULL", max;
}

observed! {
    /// A row of `stats_millrace_moves`.
    pub struct MoveRow, ends ",
    PRIMARY KEY(move_id))":
    /// Number of the move.
    id: u64, "move_id INTEGER NOT NULL", own;
    /// Schema of the table, as the map has it.
    schema: Arc<str>, "schemaname VARCHAR NOT NULL", own;
    /// Its name.
    table: Arc<str>, "table_name VARCHAR NOT NULL", own;
    /// The partition.
    partition: Arc<str>, "partition_name VARCHAR NOT NULL", own;
    /// Hostgroup that has it.
    from: u32, "hostgroup_from INT NOT NULL", own;
    /// Hostgroup that gets it.
    to: u32, "hostgroup_to INT NOT NULL", own;
    /// `waiting`, `copying`, `catching_up`, `verifying`, `cutting_over`, `done`, `cancelled` or `failed`.
    state: &'static str, "state VARCHAR NOT NULL", own;
    /// Rows that were copied.
    rows_copied: u64, "rows_copied INTEGER NOT NULL", own;
    /// Rows that were read again since they had changed.
    rows_applied: u64, "rows_applied INTEGER NOT NULL", own;
    /// Milliseconds since the target had all that is known to have changed.
    lag_ms: u64, "lag_ms INTEGER NOT NULL", own;
    /// How often it could not be cut over in time.
    tries: u64, "tries INTEGER NOT NULL", own;
    /// Name of the table that is left behind; none if there is none.
    old_table: Option<Arc<str>>, "old_table VARCHAR", own;
    /// Words of what went wrong last.
    error: Arc<str>, "error VARCHAR NOT NULL", own;
    /// Unix seconds of its beginning.
    started_at: u64, "started_at INTEGER NOT NULL", own;
    /// Unix seconds of what is shown.
    changed_at: u64, "changed_at INTEGER NOT NULL", own;
}
