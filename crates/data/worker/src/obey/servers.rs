//! Servers as scripts see them, and a session that goes to one by a script's wish.

use crate::core::guests::{At, OwnPools, Owner};
use crate::scripts::servers::{Counted, rows};
use crate::session::Session;
use backend::{Backend, Hold};
use script::{Chosen, Server};
use std::rc::Rc;

impl Session {
    /// Connections at hand, where nobody could open more.
    pub(crate) fn own_pools(&self, owner: &Owner) -> Option<Rc<OwnPools>> {
        if !self.is_relayed() || self.is_console() {
            return None;
        }
        let epoch = self.core.epoch();
        let user = &*self.user.username;
        let place = |backend: &Backend| {
            let row = backend.place().server();
            At {
                hostgroup: row.hostgroup,
                host: row.hostname.clone(),
                port: row.port,
            }
        };
        let held: Vec<At> = self.held.iter().map(|(_, held)| place(held)).collect();
        let at_hand = rows(&epoch.snapshot, owner).map(|(hostgroup, _, row)| {
            let seen = self
                .core
                .pools
                .seen(hostgroup, (&row.hostname, row.port), user);
            let at = At {
                hostgroup,
                host: row.hostname.clone(),
                port: row.port,
            };
            let own = u32::from(held.contains(&at));
            (at, seen.idle_own + own, seen.idle_any + own)
        });
        let own = self.user.default_hostgroup;
        Some(Rc::new(OwnPools {
            at_hand: at_hand.collect(),
            current: held.into_iter().find(|at| at.hostgroup == own),
        }))
    }

    /// Whether a statement can go to a server that a script has chosen. Of a login that was relayed
    /// there has to be a connection.
    pub(crate) fn can_go_to(&self, server: &Server) -> bool {
        if !self.is_relayed() {
            return true;
        }
        let is_there = |(_, held): (u32, &Backend)| {
            let row = held.place().server();
            *row.hostname == *server.host && row.port == server.port
        };
        let at = (&*server.host, server.port);
        let seen = || {
            self.core
                .pools
                .seen(server.hostgroup, at, &self.user.username)
        };
        self.held.iter().any(is_there) || seen().idle_own > 0
    }

    /// Gives back what is kept in other hostgroups for nothing but its login: its script has
    /// named no server.
    fn leaves_servers(&mut self) {
        let own = self.user.default_hostgroup;
        while let Some((_, backend)) = self.held.take_that(|hostgroup, held| {
            hostgroup != own && held.holds.are_only(&[Hold::NotAllowed])
        }) {
            self.core.pools.give_up(backend);
        }
    }

    /// Counts it among the sessions that are on this server, and on no other.
    pub(crate) fn is_on(&mut self, at: Option<At>) {
        let core = self.core.clone();
        let Some(chain) = &mut self.scripts else {
            return;
        };
        if chain.counted.as_ref().map(|counted| &counted.at) != at.as_ref() {
            chain.counted = at.map(|at| Counted::on(&core, at));
        }
    }

    /// Counts it where its scripts have it at the end of a command, and leaves what they have left.
    pub(crate) fn rests_on(&mut self, chosen: Chosen, own: Option<&OwnPools>) {
        match chosen {
            Chosen::At(server) => self.is_on(Some(At::from(&server))),
            Chosen::Nowhere => {
                self.is_on(None);
                if self.is_relayed() {
                    self.leaves_servers();
                }
            }
            Chosen::Unsaid => self.is_on(own.and_then(|own| own.current.clone())),
        }
    }
}
