//! After a statement: tables that the session has written, whose results it ends, and an answer that the
//! cache keeps.

use crate::command::job::Job;
use crate::command::preparing::bare;
use crate::session::Session;
use crate::session::cached::{Filling, Writes};
use bridge::Counter;
use cache::{Entry, Writing};
use std::time::Duration;

/// How long a write whose outcome we do not know is taken to go on: as long as a server may need to
/// obey a KILL.
const LINGERS: Duration = crate::talk::kill::OBEYS;

impl Session {
    pub(crate) fn writing(&mut self) -> &mut Writing {
        if !matches!(self.cached.writes, Writes::These(_)) {
            self.cached.writes = Writes::These(self.core.cache.tables().writing());
        }
        match &mut self.cached.writes {
            Writes::These(writing) => writing,
            Writes::Nothing | Writes::Unwatched => unreachable!("it has just been made"),
        }
    }

    /// Keeps the session's writing going for `LINGERS` more: it may be done yet, or be at work
    /// still. Its connection broke, or the statement was ended from here.
    pub(crate) fn may_write_yet(&self) {
        if let Writes::These(writing) = &self.cached.writes {
            let writing = writing.clone();
            let core = self.core.clone();
            self.core.rt.spawn(async move {
                core.rt.sleep(LINGERS).await;
                drop(writing);
            });
        }
    }

    /// After the statement: its answer is kept if it may be, and what it wrote is over unless it is
    /// in a transaction.
    pub(crate) fn keep(&mut self, job: &Job<'_>) {
        if let Some(filling) = self.cached.filling.take() {
            self.fill(job, *filling);
        }
        if !matches!(self.cached.writes, Writes::Nothing) && self.held.transaction().is_none() {
            self.cached.forget(&self.core);
        }
    }

    fn fill(&self, job: &Job<'_>, filling: Filling) {
        let Some(said) = filling.gathered.said() else {
            return;
        };
        let v = &job.epoch.snapshot.variables;
        let empty_too = job
            .plan
            .cache_empty_result
            .unwrap_or(v.mysql_query_cache_stores_empty_result);
        if (said.rows == 0 && !empty_too)
            || (said.warnings > 0 && v.mysql_query_cache_handle_warnings == 0)
        {
            return;
        }
        let Some(made) = filling.gathered.made(self.caps) else {
            return;
        };
        let ttl_ns = job.plan.cache_ttl_ms.unwrap_or(0).saturating_mul(1_000_000);
        let until_ns = filling.asked_at_ns.saturating_add(ttl_ns);
        // The one that the statistics have, and also where they have none.
        let digest = job.digest.filter(|_| self.has_digest_of_sent(job));
        let digest =
            digest.unwrap_or_else(|| sql::digest(job.sent(), &job.epoch.digest, &mut Vec::new()));
        let entry = Entry::new(
            made,
            filling.asked_at_ns,
            until_ns,
            digest,
            filling.tables,
            filling.versions,
        );
        let len = entry.len() as u64;
        if self.core.cache.keep(&filling.key, entry, filling.flushes) {
            self.core.tally.up(Counter::QueryCacheCountSet);
            self.core.tally.add(Counter::QueryCacheBytesIn, len);
        }
    }

    /// Rules are asked with the digest of what came; counted and cached is what went. Whether both
    /// are one.
    pub(crate) fn has_digest_of_sent(&self, job: &Job<'_>) -> bool {
        let sent = job.sent();
        let is_bare =
            || !job.epoch.digest.keep_comment && *sent == *bare(job.text, self.lexing_of(job.what));
        job.digest.is_some() && (std::ptr::eq(sent, job.text) || is_bare())
    }
}
