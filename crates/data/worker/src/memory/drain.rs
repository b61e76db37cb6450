//! The one way to ask connections for what they remember: in a client's silence, for a statement
//! that goes elsewhere or waits for a connection, and before a question of ours.

use crate::command::trouble::{Failed, Trouble};
use crate::memory::row::{After, Asking, Memory};
use crate::memory::table::{SET_THERE, TABLE};
use crate::session::Session;
use backend::{Backend, BackendFailed, Idle, Unreported};
use net::NetError;
use sql::Reads;

/// Whose wish a connection is asked for its memories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whom {
    /// Nobody's: the client is silent.
    Silence,
    /// A command of the session, which ends the warnings of the one before.
    Command { limit_ms: u64, answered: bool },
    /// A statement that waits for a connection, or is to find elsewhere what this one knows.
    Need { limit_ms: u64 },
}

impl Session {
    /// Takes the connections that the session keeps and that are meant (by hostgroup), one by one,
    /// asks each for these memories, and gives it back if nothing keeps it any more.
    ///
    /// [`Failed::Unsent`]: the statement was ended before anything was asked.
    pub(crate) async fn drain(
        &mut self,
        is_meant: impl Fn(&Self, u32, &Backend) -> bool,
        wanted: &[&Memory],
        whom: Whom,
    ) -> Result<(), Trouble> {
        while let Some((hostgroup, mut backend)) = self.take_held(&is_meant) {
            // What a statement that has failed may have changed is state as well.
            let is_untold = backend.local.unreported == Unreported::Change;
            let carries =
                backend.holds.carry_state() || is_untold && matches!(whom, Whom::Command { .. });
            let how = self.how_to_ask(carries, whom);
            if whom != Whom::Silence {
                self.entry.works_on(hostgroup, &backend);
            }
            #[cfg(debug_assertions)]
            let kept = backend.holds;
            #[cfg(debug_assertions)]
            if whom == Whom::Silence && backend::planted::LEAVE_UNASKED.get() {
                backend.holds.remove(backend::Hold::Diagnostics);
                backend.holds.remove(backend::Hold::InsertId);
                self.remembered.insert_id.take();
            }
            let asked = self.ask_for(&mut backend, wanted, how).await;
            let has_failed = |why: &Failed| !matches!(why, Failed::Unsent);
            if asked.as_ref().is_err_and(has_failed) {
                // Half of an answer may be on its way, and nobody knows any more what was set
                // there.
                backend.idle = Idle::Doubtful;
                self.lose_memories(backend.holds);
                #[cfg(debug_assertions)]
                if how.insists && backend::planted::asks_again() {
                    (backend.idle, backend.holds) = (Idle::Proven, kept);
                }
            }
            let is_lost = backend.idle != Idle::Proven && backend.holds.carry_state();
            let is_nobodys = matches!(asked, Ok(After::Nobodys));
            if is_nobodys && backend.idle == Idle::Proven {
                self.core.pools.give_up(backend);
            } else {
                self.held
                    .keep_or_release(hostgroup, backend, &self.core.pools);
            }
            match asked {
                Ok(_) if is_lost => {
                    let why = BackendFailed::BrokeAfter(NetError::Closed);
                    return Err(Trouble::from(why).losing(true));
                }
                Ok(_) => {}
                Err(Failed::Unsent) => return Err(Failed::Unsent.into()),
                // What the server would have said went with it; what its answers have said is
                // still known.
                Err(Failed::Backend(_)) if !carries => {}
                Err(why) => return Err(Trouble::from(why).losing(carries)),
            }
        }
        Ok(())
    }

    /// Asks a connection for these memories, and before a question for what the question would end.
    pub(crate) async fn ask_for(
        &mut self,
        backend: &mut Backend,
        wanted: &[&Memory],
        how: Asking,
    ) -> Result<After, Failed> {
        let is_wanted = |memory: &Memory| wanted.iter().any(|one| std::ptr::eq(*one, memory));
        for (at, memory) in TABLE.iter().enumerate() {
            let is_there = |memory: &Memory| (memory.is_there)(self, backend);
            let is_ended_by_us = || {
                let mut later = TABLE[at + 1..].iter();
                memory.fragile && later.any(|later| is_wanted(later) && is_there(later))
            };
            let is_due = !memory.reads.intersects(how.ended)
                && is_there(memory)
                && (is_wanted(memory) || is_ended_by_us());
            if !is_due {
                continue;
            }
            match (memory.ask)(self, backend, how).await {
                Ok(After::Told) => {}
                Ok(After::Unread) => {
                    let how = Asking::behind_what_was_left(how.limit_ms);
                    Box::pin(self.ask_for(backend, &SET_THERE, how)).await?;
                    return Ok(After::when_read(backend));
                }
                Ok(after) => return Ok(after),
                Err(why) => {
                    (memory.lose)(self);
                    return Err(why);
                }
            }
        }
        Ok(After::Told)
    }

    /// Asks a connection for what a question of ours would end.
    pub(crate) async fn ask_before_a_question(
        &mut self,
        backend: &mut Backend,
        how: Asking,
    ) -> Result<(), Failed> {
        let fragile: Vec<_> = TABLE.into_iter().filter(|memory| memory.fragile).collect();
        self.ask_for(backend, &fragile, how).await.map(drop)
    }

    fn take_held(
        &mut self,
        is_meant: impl Fn(&Self, u32, &Backend) -> bool,
    ) -> Option<(u32, Box<Backend>)> {
        let mut held = std::mem::take(&mut self.held);
        let taken = held.take_that(|hostgroup, backend| is_meant(self, hostgroup, backend));
        self.held = held;
        taken
    }

    fn how_to_ask(&self, carries: bool, whom: Whom) -> Asking {
        let epoch = self.core.epoch();
        let v = &epoch.snapshot.variables;
        // A session ends with a server that has state of it and does not answer: that takes more
        // than a busy machine. For one that has none nobody waits for long.
        let patience_ms = match whom {
            _ if !carries => v.mysql_connect_timeout_server,
            Whom::Silence => v.mysql_connect_timeout_server_max,
            _ => u64::MAX,
        };
        match whom {
            Whom::Silence => Asking::behind_a_statement(patience_ms),
            Whom::Command { limit_ms, answered } => Asking {
                limit_ms: limit_ms.min(patience_ms),
                answered,
                ..Asking::before_a_statement(limit_ms)
            },
            Whom::Need { limit_ms } => Asking {
                limit_ms: limit_ms.min(patience_ms),
                insists: true,
                ended: Reads::NONE,
                answered: false,
            },
        }
    }
}
