//! Runs of the scheduler's programs.

use crate::Reply;
use crate::observed::observed;
use config::Snapshot;
use std::sync::Arc;

/// To the scheduler.
pub enum ToScheduler {
    /// Run the programs of this configuration from now on.
    Load(Arc<Snapshot>),
    /// Tell the last runs.
    Runs(Reply<Vec<RunRow>>),
    /// Begin no program any more, end those that run, and say so.
    End(Reply<()>),
}

observed! {
    /// A row of `stats_millrace_scheduler`.
    pub struct RunRow, ends ")":
    /// Row of `scheduler`.
    id: i64, "id INTEGER NOT NULL", own;
    /// Its program.
    filename: Arc<str>, "filename VARCHAR NOT NULL", own;
    /// Unix microseconds.
    started_us: u64, "time_start_us INT NOT NULL", own;
    /// Milliseconds that it ran; none while it runs.
    ms: Option<u64>, "ms INT", own;
    /// Code that it ended with; none if a signal ended it.
    exit_code: Option<i64>, "exit_code INT", own;
    /// Signal that ended it.
    signal: Option<i64>, "signal INT", own;
    /// Runs since the one before that were due and did not begin.
    skipped: u64, "skipped INT NOT NULL", own;
    /// Reason why it could not be begun.
    error: Option<Arc<str>>, "error VARCHAR", own;
}
