//! Variables that were set by expressions: their values are the session's to bring elsewhere, and known to
//! the connection only until it is asked.

use crate::command::trouble::Failed;
use crate::memory::row::{After, Asking, Memory, nothing_lost};
use crate::session::Session;
use backend::{Backend, Hold, Unreported};
use sql::Reads;

/// Ways in which a statement reads user variables.
pub(crate) const VARIABLES: Reads = Reads::USER_VARIABLE.with(Reads::XPATH);

pub(crate) static MEMORY: Memory = Memory {
    // What cannot be told; the rest is asked for before a statement that may read it.
    holds: &[Hold::UserVariable, Hold::Untold],
    reads: VARIABLES,
    fragile: false,
    is_there: |_, backend| backend.holds.has(Hold::Unread) || !backend.local.unread.is_empty(),
    ask: |session, backend, how| Box::pin(session.read_values(backend, how)),
    lose: nothing_lost,
};

/// Whether something was set there that is still to be asked for, or may have been.
pub(crate) fn is_unread(backend: &Backend) -> bool {
    backend.holds.has(Hold::Unread) || backend.local.unreported != Unreported::Nothing
}

impl Session {
    async fn read_values(&mut self, backend: &mut Backend, how: Asking) -> Result<After, Failed> {
        if backend.local.unread.is_empty() {
            backend.holds.remove(Hold::Unread);
            return Ok(After::Told);
        }
        let mut state = self.state.clone();
        let read = backend.read_back(&mut state);
        let done = self.prepared_for(how.limit_ms, read, how.answered).await;
        self.state = state;
        done.map(|()| After::Told)
    }
}
