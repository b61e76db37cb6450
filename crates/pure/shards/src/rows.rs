//! Rows of the operator's tables as they stand there: one field a column, under its name.
#![allow(missing_docs, reason = "the fields are the columns")]

/// `mysql_shard_tables`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableRow {
    pub schemaname: String,
    pub table_name: String,
    pub active: i64,
    pub kind: String,
    pub key_column: String,
    pub key_type: String,
    pub function: String,
    pub default_table: String,
    pub default_schema: String,
    pub default_hostgroup: i64,
    pub auto_partition: String,
    pub sequence_column: String,
    pub physical_name: String,
    pub comment: String,
}

impl Default for TableRow {
    fn default() -> Self {
        Self {
            schemaname: String::new(),
            table_name: String::new(),
            active: 1,
            kind: "SHARDED".into(),
            key_column: String::new(),
            key_type: String::new(),
            function: "NONE()".into(),
            default_table: String::new(),
            default_schema: String::new(),
            default_hostgroup: 0,
            auto_partition: String::new(),
            sequence_column: String::new(),
            physical_name: String::new(),
            comment: String::new(),
        }
    }
}

/// `mysql_shard_partitions`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PartitionRow {
    pub schemaname: String,
    pub table_name: String,
    pub partition_name: String,
    pub partition_value: String,
    pub hostgroup_id: i64,
    pub physical_schema: String,
    pub physical_table: String,
    pub comment: String,
}

/// `mysql_shard_lookups`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LookupRow {
    pub schemaname: String,
    pub table_name: String,
    pub column_name: String,
    pub hostgroup_id: i64,
    pub lookup_schema: String,
    pub lookup_table: String,
    pub bucket_of: String,
    pub nullable: i64,
    pub has_default: i64,
    pub unique_keys: String,
    pub state: String,
    pub comment: String,
}

/// All rows of a map.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Declared {
    pub tables: Vec<TableRow>,
    pub partitions: Vec<PartitionRow>,
    pub lookups: Vec<LookupRow>,
}
