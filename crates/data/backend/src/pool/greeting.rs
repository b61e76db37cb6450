//! What servers say of themselves in greetings and flags; those of all servers are compared.

use crate::connection::backend::Backend;
use crate::connection::place::Place;
use crate::pool::own_modes::{OwnModes, SHIFTING};
use crate::pool::pools::Pools;
use net::Hello;

impl Pools {
    /// How often a server has greeted with another version than before.
    #[must_use]
    pub fn upgrades(&self) -> u64 {
        self.upgrades.get()
    }

    /// How servers read texts by themselves, as far as connections have told.
    #[must_use]
    pub fn own_modes(&self) -> OwnModes {
        self.own_modes.get()
    }

    /// A connection on which no session has set anything tells how its server reads texts.
    #[inline]
    pub(crate) fn note_modes(&self, backend: &Backend) {
        let flags = backend.holds.modes();
        let before = backend.place.own_modes.get();
        if before != Some((flags, flags)) && backend.state.variables.is_none() {
            let both = before.map_or((flags, flags), |(all, any)| (all & flags, any | flags));
            if before != Some(both) {
                backend.place.own_modes.set(Some(both));
                self.compare_servers();
            }
        }
    }

    /// Whether every server that takes work is known to have MariaDB's bulk execute, as far as
    /// connections have told; without servers none has.
    #[must_use]
    pub fn all_have_bulk(&self) -> bool {
        self.all_have_bulk.get()
    }

    /// Notes what a server's greeting says of character sets, and whether it has MariaDB's bulk
    /// execute.
    pub(crate) fn note_greeting(&self, place: &Place, hello: &Hello) {
        let mut version = place.known.version.borrow_mut();
        if version
            .as_ref()
            .is_some_and(|before| **before != *hello.version)
        {
            self.upgrades.set(self.upgrades.get() + 1);
        }
        if version
            .as_ref()
            .is_none_or(|before| **before != *hello.version)
        {
            *version = Some(hello.version.as_str().into());
        }
        drop(version);
        let other_collation = place.known.own_collation.replace(hello.collation) != hello.collation;
        let bulk = wire::bulk::is_known(hello.offered);
        if place.known.has_bulk.get() != Some(bulk) {
            let port = place.server().port;
            self.heard_of(place.host(), port, bulk);
            self.neighbours.tell_of(place.host(), port, bulk);
        } else if other_collation {
            self.compare_servers();
        }
    }

    /// Notes what another core was told by a server.
    #[cold]
    pub(crate) fn heard_of(&self, host: &str, port: u16, bulk: bool) {
        if let Some(server) = self.servers.at(host, port) {
            server.has_bulk.set(Some(bulk));
        }
        self.compare_servers();
    }

    #[cold]
    pub(crate) fn compare_servers(&self) {
        let (mut said, mut shifts, mut blank, mut bulk) =
            (Vec::new(), false, None::<sql::Blank>, None);
        for group in self.groups.borrow().values() {
            for place in group
                .places
                .borrow()
                .iter()
                .filter(|place| !place.has_left())
            {
                said.push(place.own_modes.get());
                let collation = wire::charset::by_id(u16::from(place.known.own_collation.get()));
                shifts |= collation.is_some_and(|collation| SHIFTING.contains(&collation.charset));
                if let Some(own) = collation.and_then(|collation| sql::Blank::of(collation.charset))
                {
                    blank = Some(blank.map_or(own, |others| others.or(own)));
                }
                if place.is_working() {
                    bulk = Some(bulk.unwrap_or(true) && place.known.has_bulk.get() == Some(true));
                }
            }
        }
        self.own_modes.set(OwnModes {
            shifts,
            blank,
            ..OwnModes::of(&said)
        });
        self.all_have_bulk.set(bulk == Some(true));
    }
}
