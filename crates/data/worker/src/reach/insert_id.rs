//! A connection is told `LAST_INSERT_ID()` where a statement reads it.

use crate::command::job::{Job, What};
use crate::command::reads::{begins_a_trace, executes_unread};
use crate::command::trouble::{Failed, Trouble};
use crate::memory::drain::Whom;
use crate::memory::insert_id::MEMORY;
use crate::memory::row::Asking;
use crate::session::Session;
use backend::{Backend, Hold};
use sql::{CommandCounter, Leaves, Reads};

/// Whether the session's id must be where a statement runs. Functions and procedures of users may
/// read it, too; and of what changes it unsaid, nobody could say whether it did.
fn reads(job: &Job<'_>) -> bool {
    let class = job.class;
    let reads = class.reads.intersects(Reads::LAST_INSERT_ID)
        || class.leaves.intersects(Leaves::LAST_INSERT_ID)
        || class.leaves.intersects(Leaves::UNKNOWN_FUNCTION)
        || class.command == CommandCounter::Call
        || begins_a_trace(job);
    reads && !matches!(job.what, What::Prepare(..))
}

impl Session {
    /// Whether a statement must find the session's id where something else may be.
    pub(crate) fn lacks_insert_id(&self, backend: &Backend, job: &Job<'_>) -> bool {
        let own = backend.holds.has(Hold::InsertId);
        // The question would be shown.
        let stays = own && backend.holds.has(Hold::Trace);
        let other = || {
            self.insert_id_elsewhere(job).is_some()
                || !stays && backend.lasting.insert_id != Some(self.known_insert_id())
        };
        // What only the server knows may read it, too; there it is right after the session's own
        // insert.
        reads(job) && (own && !stays || other()) || executes_unread(job) && !own && other()
    }

    /// The hostgroup of another connection of the session's that knows better: where a transaction
    /// leads a statement away from an insert, both are kept.
    fn insert_id_elsewhere(&self, job: &Job<'_>) -> Option<u32> {
        let from = self
            .remembered
            .insert_id
            .borrow()
            .as_ref()
            .and_then(|known| known.from)?;
        (from != job.plan.hostgroup() && self.held.has(from, Hold::InsertId)).then_some(from)
    }

    /// Asks there, before the statement has a connection. An INSERT, too: if it fails, nobody could
    /// say whose id counts.
    pub(crate) async fn ask_id_elsewhere(&mut self, job: &Job<'_>) -> Result<(), Trouble> {
        let is_here = || self.held.has(job.plan.hostgroup(), Hold::InsertId);
        if !reads(job) && !job.class.inserts && (!executes_unread(job) || is_here()) {
            return Ok(());
        }
        let Some(hostgroup) = self.insert_id_elsewhere(job) else {
            return Ok(());
        };
        let is_meant = |_: &Self, at: u32, backend: &Backend| {
            at == hostgroup && backend.holds.has(Hold::InsertId)
        };
        let whom = Whom::Need {
            limit_ms: self.limit_ms(job),
        };
        self.drain(is_meant, &[&MEMORY], whom).await
    }

    /// Brings LAST_INSERT_ID() onto the connection where a statement reads it.
    pub(crate) async fn bring_insert_id(
        &mut self,
        backend: &mut Backend,
        job: &Job<'_>,
    ) -> Result<(), Failed> {
        let limit_ms = self.limit_ms(job);
        let how = Asking::before_a_statement(limit_ms);
        self.ask_for(backend, &[&MEMORY], how).await?;
        let value = self.known_insert_id();
        if backend.lasting.insert_id == Some(value) {
            return Ok(());
        }
        self.prepared_for(limit_ms, backend.tell_insert_id(value), false)
            .await
    }
}
