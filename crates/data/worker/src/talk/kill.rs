//! Statements that a session runs on a server are ended there.

use crate::core::{Core, SESSIONS_FROM};
use crate::session::Session;
use backend::{Backend, Joined, Killing};
use bridge::{Killed, Kills, ToCore};
use config::Snapshot;
use rt::mailbox;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// How long another core may take to answer.
const ANSWER: Duration = Duration::from_secs(5);
/// How long a server may take to end a statement after it was told to.
pub(crate) const OBEYS: Duration = Duration::from_secs(10);

/// Index of the core that a session of this number is on, of so many.
#[must_use]
pub fn core_of(session: u32, cores: u32) -> u32 {
    session.wrapping_sub(SESSIONS_FROM) % cores.max(1)
}

impl Core {
    /// Ends a session of this user, or what it runs, on whichever core it is.
    pub(crate) async fn kill_anywhere(
        &self,
        session: u32,
        statement_only: bool,
        owner: &str,
    ) -> Killed {
        // Sessions are numbered so that the number says the core: see `next_session_id`.
        let core = core_of(session, self.cores);
        if core == self.index {
            return self.roster.kill(session, statement_only, Some(owner));
        }
        let Some(Some(peer)) = self.peers.get(core as usize) else {
            return Killed::Unknown;
        };
        let (answer, answered) = mailbox::channel(1);
        let reply = Box::new(move |killed| drop(answer.try_send(killed)));
        if peer
            .control
            .try_send(ToCore::Kill {
                session,
                statement_only,
                owner: Some(Arc::from(owner)),
                reply,
            })
            .is_err()
        {
            return Killed::Unknown;
        }
        self.rt
            .timeout(ANSWER, answered.recv())
            .await
            .ok()
            .flatten()
            .unwrap_or(Killed::Unknown)
    }

    /// Ends the sessions of a user but one, or what they run, on all cores. How many there are.
    pub(crate) async fn kill_user_anywhere(
        &self,
        user: &str,
        host: Option<&str>,
        but: u32,
        does: Kills,
    ) -> u64 {
        let mut n = self.roster.kill_user(user, host, but, does);
        for peer in self.peers.iter().flatten() {
            let (answer, answered) = mailbox::channel(1);
            let reply = Box::new(move |killed| drop(answer.try_send(killed)));
            let message = ToCore::KillUser {
                user: Arc::from(user),
                host: host.map(Arc::from),
                but,
                does,
                reply,
            };
            if peer.control.try_send(message).is_ok() {
                n += self
                    .rt
                    .timeout(ANSWER, answered.recv())
                    .await
                    .ok()
                    .flatten()
                    .unwrap_or(0);
            }
        }
        n
    }
}

impl Session {
    fn killing(&self, backend: &Backend, snapshot: &Snapshot, statement_only: bool) -> Killing {
        Killing {
            place: backend.place().clone(),
            address: backend.conn.socket().peer(),
            our_end: backend.our_end(),
            thread_id: backend.hello.thread_id,
            statement_only,
            user: self.user.username.to_string(),
            secret: self.secret.clone(),
            client: self.entry.address,
            snapshot: snapshot.clone(),
        }
    }

    /// Of a statement that shares its connection.
    pub(crate) fn killing_of(&self, joined: &Joined) -> Killing {
        Killing {
            place: joined.place().clone(),
            address: joined.peer().clone(),
            our_end: joined.our_end().clone(),
            thread_id: joined.thread_id(),
            statement_only: false,
            user: self.user.username.to_string(),
            secret: self.secret.clone(),
            client: self.entry.address,
            snapshot: self.core.epoch().snapshot.clone(),
        }
    }

    /// Nobody waits for the answer any more: the server shall not go on with it.
    pub(crate) fn end_on_server(&self, backend: &Backend) {
        let epoch = self.core.epoch();
        let killing = self.killing(backend, &epoch.snapshot, false);
        let pools = self.core.pools.clone();
        self.core.rt.spawn(async move {
            let _if_not_the_closed_connection_ends_it = pools.kill(&killing).await;
        });
    }

    /// The statement shall end, and its connection stay: the server itself tells the client. The
    /// cell gets the outcome, and then the bell of the session rings.
    pub(crate) fn interrupt_on_server(&self, backend: &Backend) -> Rc<Cell<Option<bool>>> {
        self.interruption(backend)()
    }

    /// Returns a function that does as [`Self::interrupt_on_server`], for who cannot look at the
    /// session when it is time.
    pub(crate) fn interruption(
        &self,
        backend: &Backend,
    ) -> impl FnOnce() -> Rc<Cell<Option<bool>>> + use<> {
        let epoch = self.core.epoch();
        let killing = self.killing(backend, &epoch.snapshot, true);
        let (core, entry) = (self.core.clone(), self.entry.clone());
        move || {
            let outcome = Rc::new(Cell::new(None));
            let (told, pools) = (outcome.clone(), core.pools.clone());
            core.rt.spawn(async move {
                told.set(Some(pools.kill(&killing).await));
                entry.bell.ring();
            });
            outcome
        }
    }
}
