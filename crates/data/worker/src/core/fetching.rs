//! Who fetches what for the cache, over all cores: one of them keeps count for each key, and is
//! asked by message.
//!
//! Sessions of a core first look among its own flights; the first of them asks the core at which
//! the key is at home. So a statement is sent once, however many cores there are, and what it costs
//! is one message and its answer, where a rule says `cache_timeout` and the answer is not kept yet.

use crate::command::job::Told;
use crate::command::trouble::Ended;
use crate::core::Core;
use crate::core::peers::PEERS_MAX;
use crate::session::Session;
use bridge::{Counter, Fetching, ToCore};
use cache::Landing;
use rt::{Either, mailbox};
use std::rc::Rc;
use std::time::Duration;

/// This session's flight. It lands when this is dropped, and whoever waits for it hears so.
pub(crate) struct Flying {
    _here: Landing,
    _at_home: Option<bridge::Flight>,
}

/// Next step of somebody who waited for another's answer.
pub(crate) enum Waited {
    /// Ask a server; others may wait for it.
    Fetch(Flying),
    /// Look into the cache: whoever fetched it is done, or took too long. If nothing is there, ask
    /// for himself.
    Look(Option<Flying>),
    /// Nothing more: the operator has ended the statement.
    Told(Told),
}

impl Core {
    /// Fetches it whoever else does. Sessions of this core may wait for it.
    pub(crate) fn fly_alone(&self, key: &[u8]) -> Flying {
        Flying {
            _here: self.flights.begin(key),
            _at_home: None,
        }
    }

    /// Another core asks whether somebody fetches this.
    pub(crate) fn fetching(self: &Rc<Self>, key: &[u8], reply: bridge::Reply<Fetching>) {
        if let Some(flight) = self.flights.find(key) {
            self.tally.up(Counter::QueryCacheWaited);
            self.rt.spawn(async move {
                flight.ended().await;
                reply(Fetching::Over);
            });
            return;
        }
        let here = self.flights.begin(key);
        let (flies, landed) = mailbox::channel::<()>(1);
        self.rt.spawn(async move {
            // Nothing is ever sent: it ends when the other side is dropped, wherever that is.
            let _dropped = landed.recv().await;
            drop(here);
        });
        reply(Fetching::Yours(Box::new(flies)));
    }
}

impl Session {
    /// Waits for whoever fetches this already, on any core; else this session does.
    pub(crate) async fn take_off(
        &mut self,
        key: &[u8],
        patience: Duration,
    ) -> Result<Waited, Ended> {
        if let Some(flight) = self.core.flights.find(key) {
            self.core.tally.up(Counter::QueryCacheWaited);
            return Ok(match self.while_there(patience, flight.ended()).await? {
                Either::Left(_) => Waited::Look(None),
                Either::Right(told) => Waited::Told(told),
            });
        }
        let flying = self.core.fly_alone(key);
        let home = self.core.cache.home(key, self.core.peers.len());
        // There is no peer of its own index.
        let Some(Some(peer)) = self.core.peers.get(home) else {
            return Ok(Waited::Fetch(flying));
        };
        let (answer, answered) = mailbox::channel(1);
        let reply = Box::new(move |fetching| drop(answer.try_send(fetching)));
        if peer.control.len() >= PEERS_MAX
            || peer
                .control
                .try_send(ToCore::Fetching {
                    key: key.into(),
                    reply,
                })
                .is_err()
        {
            return Ok(Waited::Fetch(flying));
        }
        let fetching = match self.while_there(patience, answered.recv()).await? {
            Either::Left(fetching) => fetching.flatten(),
            Either::Right(told) => return Ok(Waited::Told(told)),
        };
        Ok(match fetching {
            Some(Fetching::Yours(flight)) => Waited::Fetch(Flying {
                _at_home: Some(flight),
                ..flying
            }),
            Some(Fetching::Over) | None => Waited::Look(Some(flying)),
        })
    }

    /// Returns what comes of `what` in this time, `None` if nothing does, while the client is
    /// there. If somebody ended the statement, returns what the client was told.
    async fn while_there<T>(
        &mut self,
        at_most: Duration,
        what: impl Future<Output = T>,
    ) -> Result<Either<Option<T>, Told>, Ended> {
        let entry = self.entry.clone();
        let gone = rt::select(self.client.socket().closed(), entry.told_to_end());
        match self.core.rt.timeout(at_most, rt::select(what, gone)).await {
            Ok(Either::Left(done)) => Ok(Either::Left(Some(done))),
            Err(_) => Ok(Either::Left(None)),
            Ok(Either::Right(Either::Left(()))) => Err(Ended::Gone),
            Ok(Either::Right(Either::Right(()))) => self.interrupted().await.map(Either::Right),
        }
    }
}
