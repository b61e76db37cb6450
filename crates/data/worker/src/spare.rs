//! Before a statement waits for a connection: those that its session keeps elsewhere only for what
//! they remember of a statement before are asked for that and given back. Else sessions could each
//! keep what another one waits for.

use crate::insert_id::is_harmless;
use crate::relay::Failed;
use crate::session::Session;
use crate::statement::Job;
use backend::{Backend, Hold, Idle, NOBODY, Unreported};
use sql::Reads;

/// What ends when a server has been asked, or with time. A session that waits does not look at the
/// time.
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
        && !(backend.holds.has(Hold::Diagnostics) && backend.holds.has(Hold::FoundRows) && backend.warned.is_none())
        && backend.idle == Idle::Proven
        && !asks(Reads::WARNINGS, Hold::Diagnostics)
        && !asks(Reads::FOUND_ROWS, Hold::FoundRows)
        // What is told with the next answer would be asked for by a SELECT.
        && !(backend.holds.has(Hold::FoundRows) && backend.unreported != Unreported::Nothing)
}

impl Session {
    /// Gives back what can be spared. The second of an error: whether state of the session went
    /// with a connection.
    pub(crate) async fn give_back_what_is_spare(
        &mut self,
        job: &Job<'_>,
    ) -> Result<(), (Failed, bool)> {
        while let Some((hostgroup, mut backend)) = self
            .held
            .take_that(|backend| is_spare(backend, job.class.reads))
        {
            self.entry.works_on(hostgroup, &backend);
            let carries = backend.holds.carry_state();
            // A server that does not answer is not what the statement waits for, unless the session
            // ends with it.
            let patience = if carries {
                u64::MAX
            } else {
                job.epoch.snapshot.variables.mysql_connect_timeout_server
            };
            let limit_ms = self.limit_ms(job).min(patience);
            #[cfg(feature = "planted")]
            let kept = backend.holds;
            if backend.holds.has(Hold::FoundRows) {
                // Until it has said it.
                self.keep_found_rows(None);
            }
            let asked = self
                .ask_what_is_short(hostgroup, &mut backend, limit_ms)
                .await;
            let unsent = matches!(asked, Err(Failed::Unsent));
            if asked.is_err() && !unsent {
                // Nobody asks it again: it may be found broken before anything is sent, again and
                // again.
                backend.idle = Idle::Doubtful;
                #[cfg(feature = "planted")]
                if backend::planted::asks_again() {
                    (backend.idle, backend.holds) = (Idle::Proven, kept);
                }
            }
            if backend.idle == Idle::Proven && !backend.holds.is_empty() {
                // It has become of another kind: a variable that cannot be told.
                self.held.put(hostgroup, backend);
            } else {
                self.core.pools.release(backend);
            }
            if unsent {
                return Err((Failed::Unsent, false));
            }
            if let Err(why) = asked {
                is_harmless(&why, carries)
                    .then_some(())
                    .ok_or((why, carries))?;
            }
        }
        Ok(())
    }

    async fn ask_what_is_short(
        &mut self,
        hostgroup: u32,
        backend: &mut Backend,
        limit_ms: u64,
    ) -> Result<(), Failed> {
        backend.holds.remove(Hold::Delay);
        // The order is that of who would forget by being asked for the next.
        if backend.holds.has(Hold::Diagnostics) {
            self.ask_warnings(backend, limit_ms).await?;
            if backend.holds.has(Hold::Diagnostics) {
                // Too much to be kept.
                backend.holds.remove(Hold::Diagnostics);
                backend.last_session = NOBODY;
                self.lose_warnings();
            }
        }
        if backend.holds.has(Hold::FoundRows) {
            let found = self
                .watched(
                    limit_ms,
                    backend.ask_found_rows(),
                    self.entry.told_to_leave(),
                )
                .await?;
            self.keep_found_rows(found);
        }
        if backend.holds.has(Hold::InsertId) {
            self.ask_insert_id(hostgroup, backend, limit_ms).await?;
        }
        self.read_back(backend, limit_ms, false).await
    }
}
