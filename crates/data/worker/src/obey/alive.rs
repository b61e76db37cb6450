//! Whether servers still have what they keep for a session: who asks by COM_PING hears it as on a
//! connection of its own.

use crate::command::trouble::{Ended, Failed};
use crate::known::answer::Complaint;
use crate::session::Session;
use backend::{BackendFailed, Idle, Unreported};
use net::NetError;

/// A server that takes longer to answer a ping is taken to be gone.
const ANSWERS_MS: u64 = 5_000;

impl Session {
    /// COM_PING, said to each server that keeps something for the session: it goes on keeping it,
    /// or the session ends, since what it had there is lost.
    pub(crate) async fn ping_held(&mut self) -> Result<(), Ended> {
        // One that has something to tell yet tells it behind a statement only.
        let kept = self.held.take_all_that(|backend| {
            backend.holds.carry_state() && backend.local.unreported == Unreported::Nothing
        });
        let mut ended = Ok(());
        for (hostgroup, mut backend) in kept {
            if ended.is_ok() {
                let said = self
                    .watched(ANSWERS_MS, backend.answers(), self.entry.told_to_leave())
                    .await;
                // An error behind its answer is the end of the connection.
                let well = said.and_then(|()| {
                    let over = || Failed::Backend(BackendFailed::BrokeAfter(NetError::Closed));
                    (backend.idle == Idle::Proven)
                        .then_some(())
                        .ok_or_else(over)
                });
                let is_course = self.is_course_on(hostgroup, &backend);
                match well {
                    Ok(()) => {}
                    Err(Failed::Backend(failure)) if is_course => {
                        self.core.pools.abandon(backend);
                        let complaint = Complaint::of(&failure);
                        ended = Box::pin(self.replay_at_rest(complaint)).await;
                        continue;
                    }
                    Err(why) => ended = Err(why.ends()),
                }
            }
            if ended.is_ok() {
                self.held.put(hostgroup, backend);
            } else {
                self.core.pools.abandon(backend);
            }
        }
        ended
    }
}
