//! Rows that get another key, and move to the partition that it belongs to.

/// Rows that an UPDATE moves from some partitions to another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rekeyed {
    /// The partition that they belong to.
    pub to: Place,
    /// Which of the statement's legs is the one there.
    pub to_leg: usize,
    /// Partitions that may have had them.
    pub from: Vec<Place>,
    /// Condition that the rows fulfil once they have the new key.
    pub condition: Vec<u8>,
}

/// A table with rows of a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The writer's hostgroup.
    pub hostgroup: u32,
    /// Its name as SQL has it.
    pub table: String,
    /// Its schema there; empty for the statement's own.
    pub schema: String,
    /// Its name there.
    pub name: String,
}
