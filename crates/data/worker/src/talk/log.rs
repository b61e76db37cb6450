//! Errors of servers in the operator's log: `mysql-verbose_query_error`. A statement is told by its digest,
//! never by its values.

use crate::command::job::Job;
use crate::session::Session;
use backend::Backend;
use bridge::Counter;
use sql::CommandCounter;

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

    pub(crate) fn log_of_server(
        &self,
        (host, port, hostgroup): (&str, u16, u32),
        what: &str,
        digest: &[u8],
    ) {
        let (id, user, schema) = (self.entry.id, &self.user_name, &self.state.schema);
        let text = String::from_utf8_lossy(digest);
        let text: String = text.chars().take(DIGEST_MAX).collect();
        let client = &self.entry.client.0;
        self.core.note(&format!(
            "{host}:{port} (hostgroup {hostgroup}) to session {id} of '{user}' from '{client}' in schema '{schema}': {what}: {text}"
        ));
    }
}
