//! A connection that is kept only because a procedure or function of users ran there is asked what
//! that has left, in the client's silence, and given up where that is nothing but what travels:
//! docs/decisions/0025-what-a-call-leaves.md.

use crate::command::trouble::Failed;
use crate::memory::row::{After, Asking, Memory, nothing_lost};
use crate::memory::variables::VARIABLES;
use crate::session::Session;
use backend::{Backend, Hold, Idle};

pub(crate) static MEMORY: Memory = Memory {
    holds: &[Hold::Procedure, Hold::Routine],
    reads: VARIABLES,
    fragile: false,
    is_there: |_, backend| is_all(backend),
    ask: |session, backend, how| Box::pin(session.ask_what_is_left(backend, how)),
    lose: nothing_lost,
};

/// Whether it is kept for what programs may have left, and for nothing else, and its server may be
/// asked for that now.
fn is_all(backend: &Backend) -> bool {
    backend.idle == Idle::Proven
        && backend.says_what_is_left().is_some()
        && backend
            .holds
            .are_only(&[Hold::Procedure, Hold::Routine, Hold::Unread])
}

impl Session {
    /// Asks which variables programs have left there: their values are the session's own from now on. What nobody can tell is not there, or will not be after
    /// the reset that the connection gets before anybody else has it.
    async fn ask_what_is_left(
        &mut self,
        backend: &mut Backend,
        how: Asking,
    ) -> Result<After, Failed> {
        let now = self.core.rt.now();
        let asked = self
            .watched(
                how.limit_ms,
                backend.ask_what_is_left(&self.state, now),
                self.entry.told_to_leave(),
            )
            .await?;
        Ok(if asked { After::Unread } else { After::Stays })
    }
}
