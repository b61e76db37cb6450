//! Errors and warnings of servers in the operator's log: `mysql-verbose_query_error`,
//! `mysql-log_mysql_warnings_enabled`. A statement is told by its digest, never by its values.

use crate::command::job::{Digested, Job};
use crate::command::trouble::{Ended, Failed};
use crate::memory::drain::Whom;
use crate::memory::warnings;
use crate::session::Session;
use backend::{Backend, Hold};
use bridge::Counter;
use sql::CommandCounter;

/// Warnings of one statement that the log has at most.
const WARNINGS_MAX: usize = 16;

/// Characters of a digest that a line of the log has at most.
const DIGEST_MAX: usize = 1000;

impl Session {
    /// Tells the log of an error that a server has answered with, where the operator wants that
    /// (`mysql-verbose_query_error`).
    pub(crate) fn log_error(&self, backend: &Backend, code: u16, message: &[u8]) {
        let epoch = self.core.epoch();
        if !epoch.snapshot.variables.mysql_verbose_query_error {
            return;
        }
        // As far as the list of processes has it.
        let (begin, mut digest) = (self.entry.info().unwrap_or_default(), Vec::new());
        sql::digest(begin.as_bytes(), &epoch.digest, &mut digest);
        let server = backend.place().server();
        self.log_of_server(
            (&server.hostname, server.port, server.hostgroup),
            &format!("error {code} ({})", String::from_utf8_lossy(message)),
            &digest,
        );
    }

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

    /// Tells the log of a SET that was not understood: what it has set is not known, and its session
    /// keeps the connection. Values may be secrets: `mysql-parse_failure_logs_digest` leaves them
    /// out.
    pub(crate) fn log_unread_set(&self, job: &Job<'_>, error: bool) {
        if error || job.class.command != CommandCounter::Set {
            return;
        }
        self.core.tally.up(Counter::LockedBySet);
        let mut digest = Vec::new();
        let text = match job.epoch.snapshot.variables.mysql_parse_failure_logs_digest {
            true => {
                sql::digest(job.sent(), &job.epoch.digest, &mut digest);
                &digest[..]
            }
            false => job.sent(),
        };
        let text = String::from_utf8_lossy(text);
        let text: String = text.chars().take(DIGEST_MAX).collect();
        let (id, user) = (self.entry.id, &self.user_name);
        self.core.note_seldom(&format!(
            "session {id} of '{user}' keeps its connection: what this SET does is not understood: {text}"
        ));
    }

    fn log_of_server(&self, (host, port, hostgroup): (&str, u16, u32), what: &str, digest: &[u8]) {
        let (id, user, schema) = (self.entry.id, &self.user_name, &self.state.schema);
        let text = String::from_utf8_lossy(digest);
        let text: String = text.chars().take(DIGEST_MAX).collect();
        let client = &self.entry.client.0;
        self.core.note(&format!(
            "{host}:{port} (hostgroup {hostgroup}) to session {id} of '{user}' from '{client}' in schema '{schema}': {what}: {text}"
        ));
    }
}
