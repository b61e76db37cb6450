//! Branches of a global transaction that begin with a statement, and those that are lost.

use crate::command::job::{Job, What};
use crate::command::settings::may_run_programs;
use crate::command::trouble::Trouble;
use crate::known::answer::Complaint;
use crate::session::Session;
use crate::session::global::{GlobalTransaction, Standing};
use backend::{Backend, BackendFailed, Hold, Holds};
use sql::{Class, CommandCounter};
use std::rc::Rc;

/// Whether a text that is sent may use a table, or leave something for a transaction that has not begun.
pub(crate) fn uses_tables(class: &Class<'_>, text: &[u8]) -> bool {
    let is_plain = matches!(class.command, CommandCounter::Select | CommandCounter::Set)
        || class.use_db.is_some();
    !is_plain
        || class.multi
        || class.selects
        || may_run_programs(class)
        || sql::words::Words::new(text).any(|token| token.is("FROM"))
}

/// XA_RBROLLBACK: a branch was rolled back.
pub(crate) const ROLLED_BACK: u16 = 1402;
/// Its SQLSTATE.
pub(crate) const ROLLED_BACK_STATE: &str = "XA100";

/// Errors with which a server has rolled back a branch: the victim of a deadlock, or one that it says it has
/// rolled back (XA_RBDEADLOCK, XA_RBTIMEOUT, XA_RBROLLBACK).
const VICTIM: [u16; 4] = [1213, 1614, 1613, ROLLED_BACK];

/// Whether a connection is kept for more than a branch.
pub(crate) fn carries_more(mut holds: Holds) -> bool {
    for hold in [Hold::Branch, Hold::Transaction, Hold::AutocommitOff] {
        holds.remove(hold);
    }
    holds.carry_state()
}

/// Whether a statement that a server gets begins a branch there: at its partition, or at home. Elsewhere go
/// statements about user locks only, and nobody would end a branch there.
fn needs_branch(job: &Job<'_>, home: u32) -> bool {
    let is_there = job.plan.partition.is_some() || job.plan.hostgroup() == home;
    let bounds = job.class.begins_transaction || job.class.ends_transaction;
    let is_asked = matches!(
        job.what,
        What::Query(_) | What::Execute(_) | What::Dynamic(_)
    );
    is_there && is_asked && !bounds && uses_tables(job.class, job.sent())
}

/// Hostgroups on which a statement needs a branch.
pub(crate) fn needed(job: &Job<'_>, home: u32) -> Vec<u32> {
    match &job.plan.gather {
        Some(gather) if gather.in_turn => Vec::new(),
        Some(gather) => gather.parts.iter().map(|part| part.hostgroup).collect(),
        None if needs_branch(job, home) => vec![job.plan.hostgroup()],
        None => Vec::new(),
    }
}

impl Session {
    /// A server has answered with an error.
    pub(crate) fn hears_of_victim(&self, backend: &Backend, code: u16) {
        if let Some(transaction) = &self.global
            && VICTIM.contains(&code)
            && backend.holds.has(Hold::Branch)
            && transaction.standing.get() == Standing::Open
        {
            transaction.standing.set(Standing::Victim);
        }
    }

    /// The last that is done before a statement: its connection reads it as it was read here, and the
    /// branch on its hostgroup has begun, if it needs one.
    pub(crate) async fn begin_branch(
        &mut self,
        backend: &mut Backend,
        job: &Job<'_>,
    ) -> Result<(), Trouble> {
        self.is_read_alike(backend, job).await?;
        let needs = |transaction: &Rc<GlobalTransaction>| needs_branch(job, transaction.home);
        let Some(transaction) = self.global.clone().filter(needs) else {
            return Ok(());
        };
        let hostgroup = job.plan.hostgroup();
        if !backend.holds.has(Hold::Branch) {
            let begun = Box::pin(transaction.begin(backend, hostgroup));
            let begun = self.prepared_for(self.limit_ms(job), begun, false).await;
            begun.map_err(|why| Trouble::before_the_command(why, false))?;
        }
        if job.class.may_write() {
            transaction.branches.borrow_mut().writes(hostgroup);
        }
        Ok(())
    }

    /// A connection is lost. Whether that was a branch, and nothing else of the session with it.
    pub(crate) fn loses_branch(&self, holds: Holds) -> bool {
        let Some(transaction) = self.global.as_ref().filter(|_| holds.has(Hold::Branch)) else {
            return false;
        };
        transaction.is_lost();
        !carries_more(holds)
    }

    /// Whether a branch of the session's transaction is lost.
    pub(crate) fn has_lost_branch(&self) -> bool {
        let transaction = self.global.as_ref();
        transaction.is_some_and(|transaction| transaction.standing.get() == Standing::Lost)
    }

    /// Words of a failure, and what it means for the transaction.
    pub(crate) fn tells_of_lost_branch(&self, failure: &BackendFailed) -> Complaint {
        let complaint = Complaint::of(failure);
        if !self.has_lost_branch() {
            return complaint;
        }
        let words = format!(
            "{}: the transaction was rolled back on all hostgroups",
            complaint.words
        );
        Complaint::with(ROLLED_BACK, ROLLED_BACK_STATE, words)
    }
}
