//! A statement waits for whoever fetches its answer for the cache.

use crate::command::job::Told;
use crate::command::trouble::Ended;
use crate::core::fetching::Flying;
use crate::core::peers::PEERS_MAX;
use crate::known::answer::Complaint;
use crate::session::Session;
use bridge::{Counter, Fetching, ToCore};
use rt::{Either, mailbox};
use std::time::Duration;

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

    pub(crate) async fn interrupted(&mut self) -> Result<Told, Ended> {
        let complaint = Complaint::interrupted();
        if self.entry.killed.get() {
            return Err(Ended::Told(complaint));
        }
        self.refuse(&complaint).await?;
        Ok(Told::default())
    }
}
