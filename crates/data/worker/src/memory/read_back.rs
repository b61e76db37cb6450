//! Values of variables that expressions have set are asked for, on one connection or on all.

use crate::command::trouble::{Ended, Failed, Trouble};
use crate::memory::drain::Whom;
use crate::memory::row::Asking;
use crate::memory::table::SET_THERE;
use crate::memory::variables::is_unread;
use crate::session::Session;
use backend::Backend;

impl Session {
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
