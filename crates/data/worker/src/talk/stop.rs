//! What may stop a response before its end: the client leaves, somebody ends it, its server is
//! taken away, its time is over.

use crate::command::trouble::Failed;
use crate::session::Session;
use crate::talk::kill::OBEYS;
use backend::{Backend, BackendFailed};
use bridge::Counter;
use rt::{Either, Instant};
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

/// Events that are looked out for while a response is relayed.
pub(crate) struct Stop {
    begun: Instant,
    /// From then on.
    limit: Duration,
    /// The server was told to end the statement; what became of that.
    interrupting: Option<Rc<Cell<Option<bool>>>>,
    /// Milliseconds that the statement might take, if the server was told to end it because they
    /// were over.
    late_ms: Option<u64>,
}

/// Event while a response is relayed.
pub(crate) enum Event {
    /// The client has left.
    Gone,
    /// The session's bell has rung.
    Told,
    /// The time is over.
    Late,
}

impl Stop {
    pub(crate) fn after(limit: Duration, now: Instant) -> Self {
        Self {
            begun: now,
            limit,
            interrupting: None,
            late_ms: None,
        }
    }

    /// The server has been told to end it, and tells the client; what else the connection has
    /// stays.
    pub(crate) fn interrupts(&mut self, outcome: Rc<Cell<Option<bool>>>, now: Instant) {
        self.limit = self.left(now).min(OBEYS);
        self.begun = now;
        self.interrupting = Some(outcome);
    }

    /// Returns what is left of the statement's time.
    pub(crate) fn left(&self, now: Instant) -> Duration {
        self.limit.saturating_sub(now - self.begun)
    }

    /// When the statement's time is over.
    pub(crate) fn ends(&self) -> Instant {
        self.begun + self.limit
    }

    /// Milliseconds that the statement might take, if the server was told to end it when they were
    /// over.
    pub(crate) fn late_ms(&self) -> Option<u64> {
        self.late_ms
    }

    /// See `interrupting`.
    pub(crate) fn interrupting(&self) -> Option<&Rc<Cell<Option<bool>>>> {
        self.interrupting.as_ref()
    }

    /// Waits for one of them.
    pub(crate) async fn next(&self, session: &Session) -> Event {
        let gone = session.client.socket().closed();
        match rt::select(gone, session.entry.told(self.interrupting.is_some())).await {
            Either::Left(()) => Event::Gone,
            Either::Right(()) => Event::Told,
        }
    }

    /// Why the response ends here, or `None` if it goes on.
    pub(crate) fn happened(
        &mut self,
        event: Event,
        session: &Session,
        backend: &Backend,
    ) -> Option<Failed> {
        let entry = &session.entry;
        let failed = match event {
            Event::Gone => {
                session.core.tally.up(Counter::KilledBackendConnections);
                if session
                    .core
                    .epoch()
                    .snapshot
                    .variables
                    .mysql_kill_backend_connection_when_disconnect
                {
                    session.end_on_server(backend);
                }
                return Some(Failed::Client);
            }
            Event::Told if entry.cut.get() && !entry.killed.get() => {
                session.core.tally.up(Counter::BackendOfflineDuringQuery);
                Failed::Backend(BackendFailed::CutOff)
            }
            Event::Told => match &self.interrupting {
                None if !entry.killed.get() => {
                    self.interrupts(session.interrupt_on_server(backend), session.core.rt.now());
                    return None;
                }
                Some(outcome) if !entry.killed.get() && outcome.get() != Some(false) => {
                    return None;
                }
                Some(_) if !entry.killed.get() => self.not_obeyed(),
                _ => Failed::Killed,
            },
            Event::Late if self.interrupting.is_some() => self.not_obeyed(),
            Event::Late => {
                let limit_ms = u64::try_from(self.limit.as_millis()).unwrap_or(u64::MAX);
                if backend.holds.carry_state() {
                    // A transaction, or whatever else is there, would end with the connection.
                    self.interrupts(session.interrupt_on_server(backend), session.core.rt.now());
                    (self.limit, self.late_ms) = (OBEYS, Some(limit_ms));
                    return None;
                }
                Failed::Backend(BackendFailed::TooSlow { limit_ms })
            }
        };
        session.end_on_server(backend);
        Some(failed)
    }

    /// The server could not be told to end the statement, or does not end it.
    fn not_obeyed(&self) -> Failed {
        self.late_ms.map_or(Failed::Killed, |limit_ms| {
            Failed::Backend(BackendFailed::TooSlow { limit_ms })
        })
    }

    /// Waits for a client that reads more slowly than its server writes.
    pub(crate) async fn room(
        &mut self,
        session: &Session,
        backend: &Backend,
    ) -> Result<(), Failed> {
        loop {
            let left = self.left(session.core.rt.now());
            let event = match session
                .core
                .rt
                .timeout(
                    left,
                    rt::select(session.client.socket().room(), self.next(session)),
                )
                .await
            {
                Ok(Either::Left(sent)) => return sent.map_err(|_| Failed::Client),
                Ok(Either::Right(event)) => event,
                Err(_late) => Event::Late,
            };
            if let Some(failed) = self.happened(event, session, backend) {
                return Err(failed);
            }
        }
    }

    /// Sends no more for a while.
    pub(crate) async fn pause(
        &mut self,
        session: &Session,
        backend: &Backend,
        nap: Duration,
    ) -> Result<(), Failed> {
        let rt = &session.core.rt;
        let until = rt.now() + nap;
        loop {
            let (now, left) = (rt.now(), self.left(rt.now()));
            if now >= until {
                return Ok(());
            }
            let nap = (until - now).min(left);
            let event = match rt.timeout(nap, self.next(session)).await {
                Ok(event) => event,
                Err(_slept) if nap < left => continue,
                Err(_late) => Event::Late,
            };
            if let Some(failed) = self.happened(event, session, backend) {
                return Err(failed);
            }
        }
    }
}
