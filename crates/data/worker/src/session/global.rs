//! A session's transaction with a branch on each hostgroup that it needs.

use backend::{Backend, BackendFailed, Hold, Idle};
use shards::global::{Access, Global};
use std::cell::{Cell, RefCell};
use wire::status;

/// Standing of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Nothing speaks against a COMMIT.
    Open,
    /// A server has rolled its branch back. The client has heard so.
    Victim,
    /// A branch went with its connection. Until the client ends the transaction nothing is done.
    Lost,
}

/// A session's transaction.
pub(crate) struct GlobalTransaction {
    /// Its branches and savepoints.
    pub(crate) branches: RefCell<Global>,
    /// Where statements without sharded tables go.
    pub(crate) home: u32,
    /// A statement has begun it, and not only what was first under autocommit = 0.
    pub(crate) is_explicit: bool,
    pub(crate) standing: Cell<Standing>,
}

impl GlobalTransaction {
    /// Notes that a branch is lost.
    pub(crate) fn is_lost(&self) {
        // The victim of a deadlock is over anyway.
        if self.standing.get() == Standing::Open {
            self.standing.set(Standing::Lost);
        }
    }

    /// Whether a server has rolled its branch back.
    pub(crate) fn is_victim(&self) -> bool {
        self.standing.get() == Standing::Victim
    }

    /// Has its branch on a hostgroup begin on this connection, if it has not.
    pub(crate) async fn begin(
        &self,
        backend: &mut Backend,
        hostgroup: u32,
    ) -> Result<(), BackendFailed> {
        if backend.holds.has(Hold::Branch) {
            return Ok(());
        }
        let beginning = self.branches.borrow().beginning(hostgroup);
        for text in beginning {
            let told = backend.tell(&text).await;
            if told.is_err() {
                // Half of it may be done there.
                backend.idle = Idle::Doubtful;
            }
            told?;
        }
        backend.holds.add(Hold::Branch);
        self.branches.borrow_mut().begins(hostgroup);
        Ok(())
    }

    /// SERVER_STATUS_* that a client is told of it.
    pub(crate) fn flags(&self) -> u16 {
        let branches = self.branches.borrow();
        match (self.is_explicit, branches.access) {
            (false, _) if branches.hostgroups().is_empty() => 0,
            (_, Access::ReadOnly) => status::IN_TRANS | status::IN_TRANS_READONLY,
            _ => status::IN_TRANS,
        }
    }
}
