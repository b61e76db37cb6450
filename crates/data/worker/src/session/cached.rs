//! Entries of the cache that a session fills, and tables that it writes.

use crate::core::Core;
use crate::core::fetching::Flying;
use cache::{Gathered, Renewal, Said, TableNames, Writing};
use wire::response::{Outcome, Response};
use wire::status;

/// A session's dealings with the cache.
#[derive(Default)]
pub(crate) struct Cached {
    /// The answer that is on its way is to be kept.
    pub(crate) filling: Option<Box<Filling>>,
    pub(crate) writes: Writes,
}

/// Writes of the running statement or of the open transaction.
#[derive(Default)]
pub(crate) enum Writes {
    #[default]
    Nothing,
    /// Nobody took note of it, since no rule asked for that.
    Unwatched,
    These(Writing),
}

/// An answer that is to be kept.
pub(crate) struct Filling {
    pub(crate) key: Vec<u8>,
    pub(crate) gathered: Gathered,
    pub(crate) asked_at_ns: u64,
    /// As [`cache::Cache::flushes`].
    pub(crate) flushes: u64,
    pub(crate) tables: TableNames,
    pub(crate) versions: Option<cache::Versions>,
    // Dropped last, in this order: whoever waits finds the answer, or nobody at work.
    pub(crate) _renewal: Option<Renewal>,
    pub(crate) _flying: Option<Flying>,
}

impl Filling {
    /// The response has ended.
    pub(crate) fn ended(&mut self, response: &Response) {
        let well = matches!(response.outcome(), Outcome::Ok)
            && response.results() == 1
            && response.columns() > 0;
        let plain = response.session_track().is_empty()
            && response.insert_id() == 0
            && response.affected_rows() == 0;
        let in_transaction = response.status() & (status::IN_TRANS | status::CURSOR_EXISTS) != 0;
        if well && plain && response.is_status_known() && !in_transaction {
            let (rows, status, warnings) =
                (response.rows(), response.status(), response.warnings());
            self.gathered.ended(Said {
                rows,
                status,
                warnings,
            });
        }
    }
}

impl Cached {
    /// Nothing is to be kept, and nothing was written that somebody has to hear of.
    pub(crate) const fn has_nothing(&self) -> bool {
        self.filling.is_none() && matches!(self.writes, Writes::Nothing)
    }

    /// Whether it fills nothing, and nobody takes note of what it writes.
    pub(crate) const fn is_unwatched(&self) -> bool {
        self.filling.is_none() && !matches!(self.writes, Writes::These(_))
    }

    /// Ends what the session writes: its transaction has ended.
    pub(crate) fn forget(&mut self, core: &Core) {
        self.filling = None;
        if matches!(std::mem::take(&mut self.writes), Writes::Unwatched) {
            core.has_written_unwatched();
        }
    }
}
