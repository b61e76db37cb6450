//! How long connections are kept only for what they remember, and when their sessions leave them:
//! because somebody needs them, or time is over.

use crate::command::job::Job;
use crate::command::trouble::{Failed, Trouble};
use crate::memory::drain::Whom;
use crate::memory::table::TABLE;
use crate::session::Session;
use backend::{Backend, Hold, Idle, Lingers, Unreported};
use rt::Instant;
use sql::Reads;
use std::rc::Rc;

impl Session {
    /// The client has its answer. What only a memory keeps may be asked for by who needs a
    /// connection.
    pub(crate) fn lingers(&self) {
        if self.held.is_empty() {
            return;
        }
        for (_, backend) in self
            .held
            .iter()
            .filter(|(_, backend)| backend.lingers_until().is_some())
        {
            self.entry.lingers.set(true);
            let who: Rc<dyn Lingers> = self.entry.clone();
            self.core.pools.lingers(backend, &who);
        }
    }

    /// The client is silent: what only memories keep is asked for them and given back, when its
    /// time has come or somebody needs it.
    pub(crate) async fn leave_remembered(&mut self, now: Instant) -> Result<(), Failed> {
        let at_once = self.entry.leaves.take() || self.core.is_draining();
        let is_due = |_: &Self, _, backend: &Backend| {
            let until = backend.lingers_until();
            until.is_some_and(|until| at_once || until <= now)
        };
        let left = self.drain(is_due, &TABLE, Whom::Silence).await;
        left.map_err(|trouble| trouble.why)
    }

    /// A statement waits for a connection: what the session can spare of those that it keeps
    /// elsewhere is given back first. Else sessions could each keep what another one waits for.
    pub(crate) async fn give_back_what_is_spare(&mut self, job: &Job<'_>) -> Result<(), Trouble> {
        let reads = job.class.reads;
        self.held.end_delays(|backend| is_spare(backend, reads));
        let is_meant = |_: &Self, _, backend: &Backend| is_spare(backend, reads);
        let whom = Whom::Need {
            limit_ms: self.limit_ms(job),
        };
        self.drain(is_meant, &TABLE, whom).await
    }
}

/// Holds that end when a server has been asked, or with time. A session that waits does not look at
/// the time.
const SHORT: [Hold; 5] = [
    Hold::Diagnostics,
    Hold::InsertId,
    Hold::Unread,
    Hold::FoundRows,
    Hold::Delay,
];

/// Whether the session can do without the connection while this statement waits.
fn is_spare(backend: &Backend, reads: Reads) -> bool {
    let asks = |what, hold| reads.intersects(what) && backend.holds.has(hold);
    backend.holds.are_only(&SHORT)
        // Asked for the number of warnings, as after an error, a server forgets how many rows it
        // found.
        && !(backend.holds.has(Hold::Diagnostics) && backend.holds.has(Hold::FoundRows) && backend.lease.warned.is_none())
        && backend.idle == Idle::Proven
        && !asks(Reads::WARNINGS, Hold::Diagnostics)
        && !asks(Reads::FOUND_ROWS, Hold::FoundRows)
        // What is told with the next answer would be asked for by a SELECT.
        && !(backend.holds.has(Hold::FoundRows) && backend.local.unreported != Unreported::Nothing)
}
