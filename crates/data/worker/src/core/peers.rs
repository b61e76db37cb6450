//! Words that cores say to each other, and how many clients each has.

use crate::core::guests::Errand;
use crate::core::{Core, Seat};
use crate::known::columns::CHANGED;
use crate::known::shared_writes::News;
use backend::{Speak, Word};
use bridge::ToCore;
use rt::Handed;
use rt::mailbox::Sender;
use rt::permits::{Permits, Registry};
use std::rc::Rc;
use std::sync::Arc;
use wire::errors;

/// A core's mailbox is the operator's: others put nothing there while it has so many messages, or
/// one of his could be dropped.
pub(crate) const PEERS_MAX: usize = 256;

/// Another core, as this one reaches it.
#[derive(Clone)]
pub struct Peer {
    /// Mailbox for what the control plane would say. What cores say to each other leaves room for
    /// it: see [`PEERS_MAX`].
    pub control: Sender<ToCore>,
    /// Mailbox for what only cores say to each other.
    pub hand: Sender<FromPeer>,
}

impl Peer {
    /// Has it do something, unless it has too much to do.
    pub(crate) fn send_errand(&self, errand: Errand) -> Result<(), ()> {
        let sent = self.hand.try_send(FromPeer(Said::Errand(errand)));
        sent.map_err(drop)
    }
}

impl std::fmt::Debug for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Peer")
    }
}

/// A message from one core to another.
#[derive(Debug)]
pub struct FromPeer(pub(crate) Said);

#[derive(Debug)]
pub(crate) enum Said {
    /// A client that has just come, before a byte was said to it, and its place among the clients
    /// of the core that it goes to.
    Client(Handed, Seat),
    /// Index of a core, and a word of its pools.
    Pools(u32, Word),
    /// Sessions of a user have written, who shares his writes among them.
    Wrote(Box<str>, News),
    /// A session of this user asks for LASTVAL().
    AsksLastval(Box<str>),
    /// A schema may be gone.
    ForgetSchemas,
    /// A table may have other columns.
    ForgetColumns,
    /// Errand that a script of a session has here.
    Errand(Errand),
}

impl std::fmt::Debug for Seat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seat")
    }
}

/// Of so many clients of a core, one is the difference to another core that is let be: none while
/// they are few.
const LET_BE: u32 = 16;

/// How many clients each core has. A client is counted where it goes before it is there, so that
/// two cores do not send theirs to the same.
pub(crate) struct Loads {
    cores: Vec<Arc<Permits>>,
    own: usize,
}

impl Loads {
    pub(crate) fn new(registry: &Registry, index: u32, cores: u32) -> Self {
        let cores = (0..cores)
            .map(|core| registry.get(&format!("clients of core {core}")))
            .collect();
        Self {
            cores,
            own: index as usize,
        }
    }

    /// Where a client goes that comes to us: to the core that has the fewest, if that are clearly
    /// fewer than ours.
    pub(crate) fn emptiest(&self) -> usize {
        let Some(ours) = self.cores.get(self.own).map(|own| own.taken()) else {
            return self.own;
        };
        let others = (1..self.cores.len()).map(|step| (self.own + step) % self.cores.len());
        let fewest = others
            .map(|core| (self.cores[core].taken(), core))
            .min_by_key(|(clients, _)| *clients);
        fewest
            .filter(|(clients, _)| ours > *clients + ours / LET_BE)
            .map_or(self.own, |(_, core)| core)
    }

    pub(crate) fn seat(&self, core: usize) -> Seat {
        let Some(clients) = self.cores.get(core) else {
            return Seat(None);
        };
        Seat(clients.try_take(u32::MAX).then(|| clients.clone()))
    }
}

/// How the pools of this core speak to those of the others.
pub(crate) fn speak(own: u32, peers: &[Option<Peer>]) -> (Vec<u32>, Speak) {
    let hands: Vec<_> = peers
        .iter()
        .map(|peer| peer.as_ref().map(|peer| peer.hand.clone()))
        .collect();
    let others = (0..)
        .zip(&hands)
        .filter(|(_, hand)| hand.is_some())
        .map(|(core, _)| core)
        .collect();
    let speak = move |core: u32, word| {
        let hand = hands
            .get(core as usize)
            .and_then(Option::as_ref)
            .ok_or(())?;
        // What comes back is dropped: a connection is closed then.
        hand.try_send(FromPeer(Said::Pools(own, word)))
            .map_err(drop)
    };
    (others, Box::new(speak))
}

impl Core {
    /// Clients of this core, with those that are on their way to it and those that log in.
    pub(crate) fn clients_here(&self) -> u32 {
        let own = self.loads.cores.get(self.index as usize);
        own.map_or(0, |own| own.taken())
    }

    /// A place among the clients of this core.
    pub(crate) fn loads_here(&self) -> Seat {
        self.loads.seat(self.index as usize)
    }

    /// A schema may be gone, of which the others know as well. A core that is too busy to hear of it
    /// lets clients in, and the servers refuse their statements.
    pub(crate) fn forget_schemas(&self) {
        self.epoch().schemas.forget();
        for peer in self.peers.iter().flatten() {
            _ = peer.hand.try_send(FromPeer(Said::ForgetSchemas));
        }
    }

    /// A table may have other columns. A core that is too busy to hear of it asks for them anew a little
    /// later.
    pub(crate) fn forget_columns(&self) {
        self.epoch().descriptions.forget();
        for peer in self.peers.iter().flatten() {
            _ = peer.hand.try_send(FromPeer(Said::ForgetColumns));
        }
    }

    /// A session of this user asks for LASTVAL() here. A core that is too busy to hear of it hears
    /// of it from its own.
    pub(crate) fn asks_lastval(&self, user: &Rc<str>) {
        if self.asking_lastval.hear(user) {
            self.note(&format!("user '{user}' asks for LASTVAL() behind writes: from now on what his sessions write keeps its connection (Sequence)"));
            for peer in self.peers.iter().flatten() {
                _ = peer
                    .hand
                    .try_send(FromPeer(Said::AsksLastval((**user).into())));
            }
        }
    }

    /// A server has answered so: it may be that a schema is gone.
    pub(crate) fn doubt_schemas(&self, code: u16) {
        if code == errors::UNKNOWN_DATABASE.number {
            self.epoch().schemas.forget();
        }
    }

    /// A server has said this error: what is known of columns may be wrong.
    pub(crate) fn doubt_columns(&self, code: u16) {
        if CHANGED.contains(&code) {
            self.epoch().descriptions.forget();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where so many clients go that all come to the first core.
    fn spread(cores: u32, clients: usize) -> Vec<u32> {
        let registry = Registry::new();
        let loads = Loads::new(&registry, 0, cores);
        for _ in 0..clients {
            std::mem::forget(loads.seat(loads.emptiest()));
        }
        loads.cores.iter().map(|core| core.taken()).collect()
    }

    #[test]
    fn clients_that_all_come_to_one_core_are_served_by_all() {
        assert_eq!(spread(2, 4), [2, 2]);
        assert_eq!(spread(3, 9), [3, 3, 3]);
        assert_eq!(spread(1, 3), [3]);
    }

    #[test]
    fn a_small_difference_between_many_is_let_be() {
        let spread = spread(2, 1000);
        assert!(
            spread[0] - spread[1] <= 1 + spread[0] / LET_BE,
            "{spread:?}"
        );
    }

    #[test]
    fn who_leaves_makes_room_for_who_comes() {
        let registry = Registry::new();
        let (here, there) = (Loads::new(&registry, 0, 2), Loads::new(&registry, 1, 2));
        let ours: Vec<Seat> = (0..2).map(|_| here.seat(0)).collect();
        let _theirs: Vec<Seat> = (0..2).map(|_| here.seat(1)).collect();
        assert_eq!((here.emptiest(), there.emptiest()), (0, 1));
        drop(ours);
        assert_eq!((here.emptiest(), there.emptiest()), (0, 0));
    }
}
