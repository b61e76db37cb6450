//! Room for one more connection to a server: two limits, over all cores together. A server has `max_connections` of its row; a hostgroup may have
//! `max_connections` in its `hostgroup_settings`, for all of its servers together.

use crate::Tally;
use crate::place::Place;
use crate::pools::Group;
use bridge::{Counter, HostgroupPoolRow};
use rt::Instant;
use rt::permits::{Permits, Registry};
use std::rc::Rc;
use std::sync::Arc;

/// A hostgroup without a limit of its own.
pub(crate) const UNLIMITED: u32 = u32::MAX;

/// What one connection counts in: at its server, and in its hostgroup, whether or not that has a limit (it may get one).
#[derive(Clone)]
pub(crate) struct Room {
    pub(crate) of_server: Arc<Permits>,
    of_group: Arc<Permits>,
}

impl Room {
    /// Of a server in a hostgroup: one that is in two hostgroups counts in each by itself.
    pub(crate) fn of(registry: &Registry, hostgroup: u32, host: &str, port: u16) -> Self {
        Self {
            of_server: registry.get(&format!("server {hostgroup} {host}:{port}")),
            of_group: registry.get(&format!("hostgroup {hostgroup}")),
        }
    }

    /// A connection is closed.
    pub(crate) fn give(&self) {
        self.of_server.give();
        self.of_group.give();
    }
}

impl Place {
    /// Room for a connection, unless the server has `max` or its hostgroup as many as it may.
    pub(crate) fn try_take(&self, max: u32) -> bool {
        if !self.room.of_group.try_take(self.group_max.get()) {
            return false;
        }
        let taken = self.room.of_server.try_take(max);
        if !taken {
            self.room.of_group.give();
        }
        taken
    }

    /// Connections to it, of all cores, and those that are being opened.
    pub(crate) fn taken(&self) -> u32 {
        self.room.of_server.taken()
    }

    /// No other connection may be opened to it now.
    pub(crate) fn is_full(&self) -> bool {
        self.taken() >= self.server().max_connections || self.is_group_full()
    }

    pub(crate) fn is_group_full(&self) -> bool {
        self.room.of_group.taken() >= self.group_max.get()
    }

    /// There are more connections than there may be: a LOAD has lowered a limit.
    pub(crate) fn is_over(&self) -> bool {
        self.taken() > self.server().max_connections || self.room.of_group.taken() > self.group_max.get()
    }

    /// As many as may ever be open to it.
    pub(crate) fn connections_max(&self) -> u32 {
        self.server().max_connections.min(self.group_max.get())
    }

    /// Closes what is idle and too much.
    pub(crate) fn shrink(&self) {
        while self.is_over() {
            let mut idle = self.idle.borrow_mut();
            if idle.is_empty() {
                return;
            }
            drop(idle.remove(0));
        }
    }
}

impl Place {
    /// Closes the idle connection that keeps another from being opened to this server: one of its own, or, where only the hostgroup is full, the one of
    /// all its servers that was used longest ago. Whether there may be room now.
    pub(crate) fn make_room(&self, all: &[Rc<Self>], tally: &Tally) -> bool {
        if !self.is_full() {
            return true;
        }
        let oldest = |place: &Self| place.idle.borrow().first().map(|backend| backend.since);
        let of = if self.taken() < self.server().max_connections {
            let idle = all.iter().filter_map(|place| Some((oldest(place)?, &**place)));
            idle.min_by_key(|(since, _)| *since).map(|(_, place)| place)
        } else {
            oldest(self).map(|_| self)
        };
        let Some(of) = of else { return false };
        tally.up(Counter::MyhgmPoolDestroy);
        let closed = of.idle.borrow_mut().remove(0);
        drop(closed);
        true
    }
}

impl Group {
    /// Whether who does not mind to wait may have a connection: nobody waits for one, and a quarter of all that may be open is still there for others, to be
    /// opened or idle here. What is idle on other cores is not known, and does not count.
    pub(crate) fn has_spare(&self) -> bool {
        let places = self.places.borrow();
        let somebody_waits = !self.queue.is_empty() || !self.paced.is_empty();
        if somebody_waits || places.iter().any(|place| place.room.of_server.wanted() > 0) {
            return false;
        }
        let sum = |of: fn(&Place) -> u32| {
            places.iter().filter(|place| place.keeps() && place.weight() > 0).map(|place| u64::from(of(place))).sum::<u64>()
        };
        let most = sum(Place::connections_max).min(places.first().map_or(0, |place| place.group_max.get().into()));
        let idle: usize = places.iter().map(|place| place.idle.borrow().len()).sum();
        let left = sum(|place| place.server().max_connections.saturating_sub(place.taken()));
        let left =
            left.min(places.first().map_or(0, |place| place.group_max.get().saturating_sub(place.room.of_group.taken()).into()));
        // Where none can be had at all, whoever asks for one hears why.
        most == 0 || idle as u64 + left > most / 4
    }

    /// Its row of `stats_mysql_hostgroup_pool`, of this core; none where it has neither a server nor anybody who waits.
    pub(crate) fn report(&self, hostgroup: u32, now: Instant) -> Option<HostgroupPoolRow> {
        let places = self.places.borrow();
        let first = places.first();
        if first.is_none() && self.queue.is_empty() && self.paced.is_empty() {
            return None;
        }
        let max = first.map_or(UNLIMITED, |place| place.group_max.get());
        let since = [self.queue.first_since(), self.paced.first_since()].into_iter().flatten().min();
        let longest = since.map_or(0, |since| (now - since).as_millis());
        Some(HostgroupPoolRow {
            hostgroup,
            connections: first.map_or(0, |place| place.room.of_group.taken().into()),
            max: (max != UNLIMITED).then_some(max),
            used: places.iter().map(|place| place.numbers.used.get()).sum(),
            free: places.iter().map(|place| place.idle.borrow().len() as u64).sum(),
            waiting: (self.queue.len() + self.paced.len()) as u64,
            longest_wait_ms: u64::try_from(longest).unwrap_or(u64::MAX),
        })
    }
}
