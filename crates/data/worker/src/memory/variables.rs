//! Variables that were set by expressions: their values are the session's to bring elsewhere, and
//! known to the connection only until it is asked.

use crate::command::trouble::{Ended, Failed, Trouble};
use crate::memory::drain::{Asking, Whom};
use crate::memory::{After, Memory, nothing_lost, tracked};
use crate::session::Session;
use backend::{Backend, Hold, Unreported};
use sql::Reads;

/// Ways in which a statement reads user variables.
pub(super) const VARIABLES: Reads = Reads::USER_VARIABLE.with(Reads::XPATH);

pub(crate) static MEMORY: Memory = Memory {
    // What cannot be told; the rest is asked for before a statement that may read it.
    holds: &[Hold::UserVariable, Hold::Untold],
    reads: VARIABLES,
    fragile: false,
    is_there: |_, backend| backend.holds.has(Hold::Unread) || !backend.local.unread.is_empty(),
    ask: |session, backend, how| Box::pin(session.read_values(backend, how)),
    lose: nothing_lost,
};

/// Memories of what was set on a connection, and first of what its server has not told yet. The
/// answer to any other question would have that.
pub(super) static SET_THERE: [&Memory; 2] = [&tracked::MEMORY, &MEMORY];

/// Whether something was set there that is still to be asked for, or may have been.
pub(super) fn is_unread(backend: &Backend) -> bool {
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

    /// Asks a connection for the values of what expressions have set there. `answered`: the client
    /// has the answer to its statement.
    pub(crate) async fn read_back(
        &mut self,
        backend: &mut Backend,
        limit_ms: u64,
        answered: bool,
    ) -> Result<(), Failed> {
        let how = Asking {
            answered,
            ..Asking::before_a_statement(limit_ms)
        };
        self.ask_for(backend, &SET_THERE, how).await.map(drop)
    }

    /// Asks all connections that the session keeps, but that of one hostgroup, for what was set
    /// there: the statement that comes is not to miss it.
    pub(crate) async fn read_back_elsewhere(
        &mut self,
        than: Option<u32>,
        whom: Whom,
    ) -> Result<(), Trouble> {
        let is_meant = |_: &Self, hostgroup: u32, backend: &Backend| {
            is_unread(backend) && Some(hostgroup) != than
        };
        self.drain(is_meant, &SET_THERE, whom).await
    }

    /// Asks all of them, before a command goes on whose answer depends on it.
    pub(crate) async fn read_all_back(&mut self) -> Result<(), Ended> {
        if self.held.is_empty() {
            return Ok(());
        }
        let limit_ms = {
            let epoch = self.core.epoch();
            epoch.snapshot.variables.mysql_default_query_timeout
        };
        // What has been ended by now is not sent, but answers of ours may come from what is asked
        // here.
        let mut answered = self.entry.interrupted.get();
        loop {
            let whom = Whom::Command { limit_ms, answered };
            return match Box::pin(self.read_back_elsewhere(None, whom)).await {
                Ok(()) => Ok(()),
                Err(trouble) if matches!(trouble.why, Failed::Unsent) && !answered => {
                    answered = true;
                    continue;
                }
                Err(trouble) => Err(trouble.ends()),
            };
        }
    }
}
