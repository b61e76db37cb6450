//! A server that has as many prepared statements as it may (error 1461): what nobody executes now is
//! closed on the connections to it that wait for a session, here and on the other cores.

use crate::connection::backend::{Backend, refusal};
use crate::connection::place::Place;
use crate::connection::slots::slot_name;
use crate::cores::neighbours::Asked;
use crate::cores::word::{Crowded, Word};
use crate::failure::BackendFailed;
use crate::hostgroup::group::Group;
use crate::pool::pools::Pools;
use bridge::Counter;
use std::rc::Rc;
use std::time::Duration;
use wire::response::Expect;

/// So long a statement waits for others to be closed.
const CLOSED_WITHIN: Duration = Duration::from_secs(1);

impl Pools {
    /// The server of this connection has no room for another statement, and allows so many, if that
    /// is known. When this returns, what was prepared there and is not needed now is closed, or that
    /// has taken too long.
    pub async fn make_room_for_statement(
        self: &Rc<Self>,
        backend: &mut Backend,
        allowed: Option<u32>,
    ) {
        self.tally.up(Counter::StatementsCrowded);
        // It goes along with the next command.
        backend.close_unneeded();
        let crowded = Crowded {
            host: backend.place.host().clone(),
            port: backend.place.server().port,
            allowed,
        };
        let asking = self.neighbours.begin_asking();
        asking.tell_all(|number| Word::Crowded(crowded.clone(), number));
        self.close_idle(&crowded, &asking.asked);
        asking.asked.all_answered(&self.rt, CLOSED_WITHIN).await;
    }

    /// A session of another core waits for room on a server.
    pub(crate) fn hear_of_crowd(self: &Rc<Self>, from: u32, crowded: Crowded, number: u64) {
        let pools = self.clone();
        self.rt.spawn(async move {
            let closing = Rc::default();
            pools.close_idle(&crowded, &closing);
            closing.all_answered(&pools.rt, CLOSED_WITHIN).await;
            // Who cannot be told waits a little longer.
            let _full = pools.neighbours.say(from, Word::Uncrowded(number));
        });
    }

    /// Closes what is prepared on idle connections to a server; each answers when it has.
    fn close_idle(self: &Rc<Self>, crowded: &Crowded, closing: &Rc<Asked>) {
        let now = self.rt.now();
        for group in self.groups.borrow().values() {
            let there = |place: &&Rc<Place>| {
                **place.host() == *crowded.host && place.server().port == crowded.port
            };
            for place in group.places.borrow().iter().filter(there) {
                place.known.allowed.learn(crowded.allowed, now);
                let (closes, stays): (Vec<_>, _) = place
                    .idle
                    .take()
                    .into_iter()
                    .partition(|backend| backend.has_something_prepared());
                place.idle.replace(stays);
                for backend in closes {
                    self.close_on(group, backend, closing);
                }
            }
        }
    }

    /// Closes what is prepared on an idle connection, which is idle again then.
    fn close_on(
        self: &Rc<Self>,
        group: &Rc<Group>,
        mut backend: Box<Backend>,
        closing: &Rc<Asked>,
    ) {
        closing.is_expected();
        let (pools, group, closing) = (self.clone(), group.clone(), closing.clone());
        self.rt.spawn(async move {
            let since = backend.lasting.since;
            let closed = pools.rt.timeout(CLOSED_WITHIN, backend.close_all()).await;
            if matches!(closed, Ok(Ok(()))) {
                pools.rest(&group, backend, since);
            } else {
                pools.tally.up(Counter::ServerConnectionsAborted);
                drop(backend);
            }
            closing.answer();
            group.queue.call();
        });
    }
}

impl Backend {
    fn has_something_prepared(&self) -> bool {
        self.prepared.len() + self.slots.len() > 0 || !self.lasting.closing.is_empty()
    }

    /// Nothing is prepared there when this returns.
    async fn close_all(&mut self) -> Result<(), BackendFailed> {
        self.close_all_prepared();
        for slot in self.slots.filled() {
            let mut payload = Vec::new();
            let text = format!("DEALLOCATE PREPARE {}", slot_name(slot));
            wire::command::write_query(&mut payload, text.as_bytes(), self.hello.caps);
            refusal(&self.command(&payload, Expect::Query).await?)?;
            self.empty_slot(slot);
            // What was counted before is no more what the server would say.
            (self.local.undisturbed, self.local.finder) = (None, None);
        }
        // What is closed has no answer, and this has one behind it.
        self.answers().await
    }

    /// Closes what a session has prepared there and can prepare anew: all but what has a cursor, or
    /// means something there only. Names of ours are used again one after the other.
    fn close_unneeded(&mut self) {
        for id in self.prepared.unneeded() {
            self.forget_prepared(id);
        }
        self.slots.are_enough();
    }
}
