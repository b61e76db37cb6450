//! A connection that is kept only because a procedure or function of users ran there is asked what
//! that has left, in the client's silence, and given up where that is nothing but what travels:
//! docs/decisions/0025-what-a-call-leaves.md.

use crate::relay::Failed;
use crate::session::Session;
use backend::{Backend, Hold, Idle};

/// Whether it is kept for what programs may have left, and for nothing else, and its server may be
/// asked for that now.
pub(crate) fn is_all(backend: &Backend) -> bool {
    backend.idle == Idle::Proven
        && backend.says_what_is_left().is_some()
        && backend
            .holds
            .are_only(&[Hold::Procedure, Hold::Routine, Hold::Unread])
}

impl Session {
    /// Whether the session needs nothing more of what programs have left there: the values of user
    /// variables are its own from now on. What nobody can tell is not there, or will not be after
    /// the reset that the connection gets before anybody else has it.
    pub(crate) async fn ask_what_is_left(
        &mut self,
        backend: &mut Backend,
        limit_ms: u64,
    ) -> Result<bool, Failed> {
        let asked = self.ask_for_all(backend, limit_ms).await;
        if asked.is_err() {
            // Nobody knows any more what was set there.
            backend.idle = Idle::Doubtful;
        }
        asked
    }

    async fn ask_for_all(&mut self, backend: &mut Backend, limit_ms: u64) -> Result<bool, Failed> {
        self.read_back(backend, limit_ms, true).await?;
        let now = self.core.rt.now();
        let asked = self
            .watched(
                limit_ms,
                backend.ask_what_is_left(&self.state, now),
                self.entry.told_to_leave(),
            )
            .await?;
        if asked {
            self.read_back(backend, limit_ms, true).await?;
        }
        Ok(asked && backend.holds.are_only(&[Hold::Procedure, Hold::Routine]))
    }
}
