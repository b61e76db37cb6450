//! Warnings of servers in the operator's log: `mysql-log_mysql_warnings_enabled`.

use crate::command::job::{Digested, Job};
use crate::command::trouble::{Ended, Failed};
use crate::memory::drain::Whom;
use crate::memory::warnings;
use crate::session::Session;
use backend::{Backend, Hold};

/// Warnings of one statement that the log has at most.
const WARNINGS_MAX: usize = 16;

impl Session {
    /// Asks the server for the warnings of the statement that the client has just had its answer
    /// to, and tells the log of them, where the operator wants that
    /// (`mysql-log_mysql_warnings_enabled`). The session keeps them for SHOW WARNINGS.
    ///
    /// # Errors
    /// The connection broke that had state of the session.
    pub(crate) async fn log_warnings(
        &mut self,
        job: &Job<'_>,
        digested: &Option<Digested>,
    ) -> Result<(), Ended> {
        match job
            .epoch
            .snapshot
            .variables
            .mysql_log_mysql_warnings_enabled
        {
            true => Box::pin(self.ask_and_log_warnings(job, digested.as_ref())).await,
            false => Ok(()),
        }
    }

    async fn ask_and_log_warnings(
        &mut self,
        job: &Job<'_>,
        digested: Option<&Digested>,
    ) -> Result<(), Ended> {
        let statement = self.entry.statement.get();
        if self.turn.failed || !self.held.warns(statement) {
            return Ok(());
        }
        let has_warned = |_: &Self, _, backend: &Backend| backend.holds.has(Hold::Diagnostics);
        let asked = self
            .drain(has_warned, &[&warnings::MEMORY], Whom::Silence)
            .await;
        if let Err(trouble) = asked
            && matches!(trouble.why, Failed::Client | Failed::Backend(_))
        {
            return Err(trouble.why.ends());
        }
        let (rows, server) = (self.shown_warnings(), self.entry.server.borrow());
        let Some((place, _)) = server.as_ref() else {
            return Ok(());
        };
        let at = (&**place.host(), place.server().port, job.plan.hostgroup());
        let mut computed = Vec::new();
        let digest = digested.map_or_else(
            || {
                sql::digest(job.sent(), &job.epoch.digest, &mut computed);
                &computed[..]
            },
            Digested::text,
        );
        for row in rows.iter().take(WARNINGS_MAX) {
            self.log_of_server(at, row, digest);
        }
        if let Some(more @ 1..) = rows.len().checked_sub(WARNINGS_MAX) {
            self.log_of_server(at, &format!("{more} more warnings"), digest);
        }
        Ok(())
    }
}
