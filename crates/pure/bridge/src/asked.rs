//! Questions to the admin thread: of threads that show its tables to people, and of cores whose
//! statements need a partition.

use crate::{Ask, Reply, Totals};
use std::net::IpAddr;
use std::sync::Arc;

/// To the admin thread.
pub enum ToAdmin {
    /// Let somebody in, or say why not.
    Enter {
        /// Name of the credentials.
        user: String,
        /// In clear.
        password: String,
        /// Where he is.
        from: IpAddr,
        /// Hears what came of it.
        reply: Reply<Result<Pass, String>>,
    },
    /// Answer a statement.
    Ask {
        /// Whoever asks; none for the proxy itself, which sees what statistics users see.
        pass: Option<Pass>,
        /// One statement.
        sql: String,
        /// Hears the answer.
        reply: Reply<Result<Table, Unanswered>>,
    },
    /// Count for the process that has taken over.
    Count {
        /// Kinds of reports that are wanted.
        of: &'static [Ask],
        /// Hears the totals, without the kinds for which not all cores have answered.
        reply: Reply<Totals>,
    },
    /// Another process takes over.
    HandOver {
        /// Whether the other process begins to; else it has failed to, and all is as before.
        begins: bool,
        /// Called when what is in force is in its file, and no change is accepted any more.
        reply: Reply<()>,
    },
}

/// Work of the control plane for which a statement waits.
pub enum Wanted {
    /// A partition is to be made, or those are to be learnt of that others have made.
    Partition(Partition),
    /// Sharded tables get other names.
    Renamed(Renamed),
}

/// Sharded tables that get other names in the map, all or none.
pub struct Renamed {
    /// The tables; each one once.
    pub tables: Vec<NewName>,
    /// Hears when the cores know the new names, or why not.
    pub reply: Reply<Result<(), String>>,
}

/// A sharded table that gets another name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewName {
    /// Its schema, as the map has it; empty for any.
    pub schema: Box<str>,
    /// Its name so far.
    pub from: Box<str>,
    /// Its new name.
    pub to: Box<str>,
}

/// A partition that a statement waits for.
pub struct Partition {
    /// Schema of the sharded table, as the map has it; empty for any.
    pub schema: Box<str>,
    /// The sharded table.
    pub table: Box<str>,
    /// Bucket whose partition is needed; `None` to learn of those that others have made.
    pub bucket: Option<Box<str>>,
    /// Hears when the cores know all of them, or why not.
    pub reply: Reply<Result<(), String>>,
}

/// Proof that somebody has come in. It is good for as long as his credentials are as they were.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pass {
    /// Name of the credentials.
    pub user: Arc<str>,
    /// Where he is.
    pub from: IpAddr,
    /// Whether he is an administrator.
    pub may_act: bool,
    /// Hash of the credentials, of no use to whoever makes one up.
    pub seal: u64,
}

/// An answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Table {
    /// Names of the columns.
    pub names: Vec<Box<str>>,
    /// Cells, row by row; none is NULL.
    pub rows: Vec<Vec<Option<Box<str>>>>,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unanswered {
    /// The credentials are not what they were: whoever asks has to come in again.
    Out,
    /// The words that an operator would read on the admin port.
    Said(String),
}
