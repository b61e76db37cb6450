//! Whether a text is read alike by the session and by the server of a connection.

use crate::command::job::{Job, What};
use crate::command::reads::REMEMBERED;
use crate::command::trouble::Failed;
use crate::known::reading::Reading;
use crate::memory::row::Asking;
use crate::session::Session;
use backend::{Backend, BackendFailed};
use plan::AnsiQuotes;
use sql::{Leaves, Reads};

impl Session {
    /// Whether the server of this connection reads the statement as it was read here: with the
    /// strings where they were found. One that does not gets nothing, and from then on this
    /// session's statements are read in both ways.
    pub(crate) async fn is_read_alike(
        &mut self,
        backend: &mut Backend,
        job: &Job<'_>,
    ) -> Result<(), Failed> {
        let alike = self.is_unsure()
            || (backend.holds.modes() ^ self.reading.flags()) & wire::status::NO_BACKSLASH_ESCAPES
                == 0
            || self.is_plain(job);
        if alike
            && (!self.asks_for_quotes(job)
                || Box::pin(self.quotes_are_strings(backend, job)).await?)
        {
            return Ok(());
        }
        self.reading.put(Reading::DOUBTS, true);
        Err(Failed::Backend(BackendFailed::ReadsOtherwise))
    }

    /// Whether it is the same to every server. What holds another text is if neither has a
    /// backslash; what comes from a variable is not known.
    fn is_plain(&self, job: &Job<'_>) -> bool {
        let has_none = |text: &[u8]| !text.contains(&b'\\');
        match job.what {
            What::Dynamic(dynamic) => has_none(dynamic.outer) && has_none(job.sent()),
            _ if job
                .class
                .leaves
                .intersects(Leaves::SQL_PREPARE | Leaves::SQL_EXECUTE) =>
            {
                false
            }
            _ if job.class.leaves.intersects(Leaves::UNKNOWN_STATE) => has_none(job.sent()),
            _ => sql::reads_alike(job.sent()),
        }
    }

    /// Whether the firewall has relied on the server's being asked: [`AnsiQuotes::Asked`].
    fn asks_for_quotes(&self, job: &Job<'_>) -> bool {
        job.epoch
            .snapshot
            .variables
            .mysql_firewall_whitelist_enabled
            && self.ansi_quotes() == AnsiQuotes::Asked
            && !matches!(job.what, What::Raw(..))
            && sql::quotes_matter(job.sent(), self.lexing_of(job.what))
    }

    async fn quotes_are_strings(
        &mut self,
        backend: &mut Backend,
        job: &Job<'_>,
    ) -> Result<bool, Failed> {
        if !backend.local.plain_quotes && job.class.reads.intersects(REMEMBERED | Reads::ROW_COUNT)
        {
            // The answer would be about our question.
            return Ok(false);
        }
        let limit_ms = self.limit_ms(job);
        if !backend.local.plain_quotes {
            let how = Asking::before_a_statement(limit_ms);
            self.ask_before_a_question(backend, how).await?;
        }
        self.prepared_for(limit_ms, backend.ask_quotes(), false)
            .await
    }
}
