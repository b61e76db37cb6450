//! What the admin port and the thread of the statistics say to each other.

use crate::Reply;
use config::Snapshot;
use std::sync::Arc;

/// To the thread of the statistics.
pub enum ToStats {
    /// Work by this configuration from now on.
    Load(Arc<Snapshot>),
    /// Write all metrics out, or say why they cannot be had.
    Metrics(Reply<Result<String, String>>),
    /// Facts that only the admin thread knows.
    Facts(Facts),
}

/// Facts of the admin thread, told once a second.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// Bytes of the admin port's tables.
    pub sqlite_bytes: u64,
    /// Rows that were taken from the cores, could not be delivered and were too many to be kept.
    pub rows_lost: u64,
    /// Whether no new clients are let in.
    pub paused: bool,
    /// Outcomes of the looks at other proxies, by their names in `stats_mysql_global`.
    pub cluster: Vec<(&'static str, u64)>,
}
