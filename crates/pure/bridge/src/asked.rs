//! Questions to the admin thread, from a thread of ours that shows its tables to people.

use crate::Reply;
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
    /// Another process takes over.
    HandOver {
        /// Whether the other process begins to; else it has failed to, and all is as before.
        begins: bool,
        /// Called when what is in force is in its file, and no change is accepted any more.
        reply: Reply<()>,
    },
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
