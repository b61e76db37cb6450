//! Room for one more connection to a server: two limits, over all cores together. A server has
//! `max_connections` of its row; a hostgroup may have `max_connections` in its
//! `hostgroup_settings`, for all of its servers together. In a fleet this proxy has a share of each.

use crate::choice::{in_turn, working};
use crate::place::Place;
use crate::pools::Group;
use crate::tally::Tally;
use bridge::{Counter, HostgroupPoolRow};
use rt::Instant;
use rt::permits::{Permits, Registry};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// A hostgroup without a limit of its own.
pub(crate) const UNLIMITED: u32 = u32::MAX;

/// A server that has said that it takes no more connections is believed for so long, where others
/// may be asked.
const BELIEVED: Duration = Duration::from_secs(1);
/// Accounts of which a place remembers that.
const ACCOUNTS_MAX: usize = 64;

/// Whom a server takes no more connections of, as it has said, and when: `None` is anybody.
#[derive(Default)]
pub(crate) struct Full(RefCell<Vec<(Option<Box<str>>, Instant)>>);

impl Full {
    fn said(&self, user: Option<&str>, now: Instant) {
        let mut all = self.0.borrow_mut();
        all.retain(|(whose, since)| whose.as_deref() != user && now - *since < BELIEVED);
        if all.len() == ACCOUNTS_MAX {
            all.remove(0);
        }
        all.push((user.map(Into::into), now));
    }

    fn is_for(&self, user: &str, now: Instant, believed: Duration) -> bool {
        let all = self.0.borrow();
        all.iter().any(|(whose, since)| {
            now - *since < believed && whose.as_deref().is_none_or(|whose| whose == user)
        })
    }
}

/// Counts that one connection is part of: at its server, and in its hostgroup, whether or not that
/// has a limit (it may get one).
#[derive(Clone)]
pub(crate) struct Room {
    pub(crate) of_server: Arc<Permits>,
    of_group: Arc<Permits>,
}

impl Room {
    /// Of a server in a hostgroup: one that is in two hostgroups counts in each by itself.
    pub(crate) fn of(registry: &Registry, hostgroup: u32, host: &str, port: u16) -> Self {
        Self {
            of_server: registry.shared(&format!("server {hostgroup} {host}:{port}")),
            of_group: registry.shared(&format!("hostgroup {hostgroup}")),
        }
    }

    /// A connection is closed.
    pub(crate) fn give(&self) {
        self.of_server.give();
        self.of_group.give();
    }
}

impl Place {
    /// Closes the idle connection of this user that was used longest ago, for one that is not
    /// counted here; whether there was one.
    pub(crate) fn give_up_idle(&self, user: &str, tally: &Tally) -> bool {
        let mut idle = self.idle.borrow_mut();
        let Some(at) = idle.iter().position(|backend| *backend.key.user == *user) else {
            return false;
        };
        let closed = idle.remove(at);
        drop(idle);
        drop(closed);
        tally.up(Counter::MyhgmPoolDestroy);
        true
    }

    /// As [`Place::give_up_idle`], of whichever user.
    pub(crate) fn give_up_oldest(&self, tally: &Tally) -> bool {
        let mut idle = self.idle.borrow_mut();
        if idle.is_empty() {
            return false;
        }
        let closed = idle.remove(0);
        drop(idle);
        drop(closed);
        tally.up(Counter::MyhgmPoolDestroy);
        true
    }

    /// Notes that the server has said that it takes no more connections, of this user or (`None`)
    /// of anybody.
    pub(crate) fn said_full(&self, user: Option<&str>, now: Instant) {
        self.known.full.said(user, now);
    }

    /// Whether it said so a moment ago.
    pub(crate) fn said_to_be_full(&self, user: &str, now: Instant) -> bool {
        self.has_said_full(user, now, BELIEVED)
    }

    /// Whether others are asked first: it said so a moment ago, or could not be connected to, where
    /// an idle connection of another is closed to open one.
    pub(crate) fn comes_last(&self, user: &str, now: Instant) -> bool {
        self.said_to_be_full(user, now)
            || self.group_max.get() != UNLIMITED && self.known.has_failed(now)
    }

    /// Whether it said so within that time, which is no longer than a second.
    pub(crate) fn has_said_full(&self, user: &str, now: Instant, within: Duration) -> bool {
        self.known.full.is_for(user, now, within)
    }

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
        self.taken() >= self.server_max() || self.is_group_full()
    }

    pub(crate) fn is_group_full(&self) -> bool {
        self.room.of_group.taken() >= self.group_max()
    }

    /// As many as this proxy may have to it.
    pub(crate) fn server_max(&self) -> u32 {
        self.room.of_server.of(self.row_max())
    }

    /// As many as this proxy may have in its hostgroup.
    fn group_max(&self) -> u32 {
        self.room.of_group.of(self.group_max.get())
    }

    /// There are more connections than there may be: a LOAD has lowered a limit, or other proxies
    /// have got more of it.
    pub(crate) fn is_over(&self) -> bool {
        self.taken() > self.server_max() || self.room.of_group.taken() > self.group_max()
    }

    /// Whether it is one of those that clients are sent to.
    pub(crate) fn is_working(&self) -> bool {
        self.keeps() && self.has_weight()
    }

    /// Connections of this core.
    fn own(&self) -> u64 {
        self.numbers.used.get() + self.idle.borrow().len() as u64
    }

    /// As many as may ever be open to it.
    pub(crate) fn connections_max(&self) -> u32 {
        self.server_max().min(self.group_max())
    }

    /// Whether a connection to it may be opened for this user, if one of another server that has
    /// too many is closed for it. `all`: the servers of the hostgroup.
    pub(crate) fn may_have_more(&self, all: &[Rc<Self>], user: &str, now: Instant) -> bool {
        !self.comes_last(user, now)
            && (!self.is_full()
                || Shares::to_give(all, now).is_some_and(|shares| shares.is_short(self)))
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
    /// Closes the idle connection that keeps another from being opened to this server: one of its
    /// own, or, where only the hostgroup is full, the one of all its servers that was used longest
    /// ago, rather of those that have more than their weight says. Whether there may be room now.
    pub(crate) fn make_room(&self, all: &[Rc<Self>], now: Instant, tally: &Tally) -> bool {
        if !self.is_full() {
            return true;
        }
        let Some(of) = self.gives_room(all, now) else {
            return false;
        };
        tally.up(Counter::MyhgmPoolDestroy);
        let closed = of.idle.borrow_mut().remove(0);
        drop(closed);
        true
    }

    /// The server whose idle connection here is closed for one to this full one.
    pub(crate) fn gives_room<'a>(&'a self, all: &'a [Rc<Self>], now: Instant) -> Option<&'a Self> {
        let oldest = |place: &Self| {
            place
                .idle
                .borrow()
                .first()
                .map(|backend| backend.lasting.since)
        };
        if self.taken() < self.server_max() {
            let shares = Shares::all(all, now);
            let idle = all
                .iter()
                .filter_map(|place| Some((oldest(place)?, &**place)));
            idle.min_by_key(|(since, place)| (!shares.is_over(place), *since))
                .map(|(_, place)| place)
        } else {
            oldest(self).map(|_| self)
        }
    }
}

/// Connections of a full hostgroup that its servers should have, by their weights.
pub(crate) struct Shares {
    /// Of all servers that take work.
    weights: u64,
    now: Instant,
}

impl Shares {
    /// None where there is room.
    pub(crate) fn of(all: &[Rc<Place>], now: Instant) -> Option<Self> {
        all.first()?.is_group_full().then(|| Self::all(all, now))
    }

    fn all(all: &[Rc<Place>], now: Instant) -> Self {
        Self {
            weights: working(all, now)
                .map(|place| u64::from(place.share(now)))
                .sum(),
            now,
        }
    }

    /// Returns the shares of a full hostgroup, where a server that has too many connections has one
    /// idle here.
    pub(crate) fn to_give(all: &[Rc<Place>], now: Instant) -> Option<Self> {
        let gives =
            |shares: &Self, place: &Place| !place.idle.borrow().is_empty() && shares.is_over(place);
        Self::of(all, now).filter(|shares| all.iter().any(|place| gives(shares, place)))
    }

    /// Whether it has fewer than it should, and room of its own, and none is being opened to it.
    pub(crate) fn is_short(&self, place: &Place) -> bool {
        place.taken() < place.server_max()
            && place.opening.get() == 0
            && (u64::from(place.taken()) + 1) * self.weights <= self.due(place)
    }

    /// Whether it has more than its weight says, if all servers that take work have so much.
    pub(crate) fn is_over(&self, place: &Place) -> bool {
        u64::from(place.taken()) * self.weights > self.due(place)
    }

    /// The connections that are a server's by its weight, times all weights.
    fn due(&self, place: &Place) -> u64 {
        u64::from(place.group_max.get()) * u64::from(place.share(self.now))
    }
}

impl Group {
    /// Whether a copy may have a connection, as far as this core sees: nobody waits for one, but
    /// where a server takes no more of a user, and a quarter is left for clients.
    pub(crate) fn has_spare(&self) -> bool {
        let places = self.places.borrow();
        let somebody_waits = !self.queue.is_empty() || self.paced.first_slow_since().is_some();
        if somebody_waits || places.iter().any(|place| place.room.of_server.wanted() > 0) {
            return false;
        }
        let working = || in_turn(&places, Place::is_working);
        let idle: u64 = working()
            .map(|place| place.idle.borrow().len() as u64)
            .sum();
        let own: u64 = working().map(|place| place.own()).sum();
        let left: u64 = working()
            .map(|place| u64::from(place.server_max().saturating_sub(place.taken())))
            .sum();
        let left_of_group = places.first().map_or(0, |place| {
            place
                .group_max
                .get()
                .saturating_sub(place.room.of_group.taken())
                .into()
        });
        is_spare(idle, own, left.min(left_of_group), self.most())
    }

    /// Connections that may be open, to all servers that take work.
    fn most(&self) -> u64 {
        let places = self.places.borrow();
        let of_servers = in_turn(&places, Place::is_working)
            .map(|place| u64::from(place.connections_max()))
            .sum::<u64>();
        of_servers.min(
            places
                .first()
                .map_or(0, |place| place.group_max.get().into()),
        )
    }

    /// Connections that copies may have at once, over all cores: however few of the others this
    /// core sees, a quarter of all is never theirs.
    pub(crate) fn copies_max(&self) -> u32 {
        match self.most() {
            // Whoever asks hears why there is none.
            0 => u32::MAX,
            most => u32::try_from(most - most / 4).unwrap_or(u32::MAX),
        }
    }

    /// Whether other cores have connections.
    pub(crate) fn is_elsewhere(&self) -> bool {
        in_turn(&self.places.borrow(), Place::is_working)
            .any(|place| u64::from(place.taken()) > place.own())
    }

    /// Its row of `stats_mysql_hostgroup_pool`, of this core; none where it has neither a server
    /// nor anybody who waits.
    pub(crate) fn report(&self, hostgroup: u32, now: Instant) -> Option<HostgroupPoolRow> {
        let places = self.places.borrow();
        let first = places.first();
        if first.is_none() && self.queue.is_empty() && self.paced.is_empty() {
            return None;
        }
        let max = first.map_or(UNLIMITED, |place| place.group_max.get());
        let since = [self.queue.longest_since(), self.paced.longest_since()]
            .into_iter()
            .flatten()
            .min();
        let longest = since.map_or(0, |since| (now - since).as_millis());
        Some(HostgroupPoolRow {
            hostgroup,
            connections: first.map_or(0, |place| place.room.of_group.taken().into()),
            max: (max != UNLIMITED).then_some(max),
            used: places.iter().map(|place| place.numbers.used.get()).sum(),
            free: places
                .iter()
                .map(|place| place.idle.borrow().len() as u64)
                .sum(),
            waiting: (self.queue.len() + self.paced.len()) as u64,
            longest_wait_ms: u64::try_from(longest).unwrap_or(u64::MAX),
        })
    }
}

/// Whether one of `idle` connections here, or of those that are `left` to be opened, is more than a
/// quarter of `most`; where the others are other cores', and what they do is not known, whether one
/// of those here is more than a quarter of this core's `own`, or the only one.
fn is_spare(idle: u64, own: u64, left: u64, most: u64) -> bool {
    // Where none can be had at all, whoever asks for one hears why.
    most == 0
        || idle + left > most / 4
        || own < most && (idle > own.div_ceil(4) || (idle, own) == (1, 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_is_for_clients_of_all_or_of_what_a_core_has() {
        // All of them are here, or may be opened.
        assert!(is_spare(2, 4, 0, 4) && !is_spare(1, 4, 0, 4) && !is_spare(0, 3, 1, 4));
        assert!(is_spare(0, 0, 1, 1) && is_spare(1, 1, 0, 1) && !is_spare(0, 1, 0, 1));
        // All are open and idle: a quarter of them on each of four cores, an eighth on each of
        // eight; one on each.
        assert!(
            is_spare(25, 25, 0, 100)
                && is_spare(12, 12, 0, 100)
                && is_spare(1, 1, 0, 4)
                && is_spare(1, 1, 0, 8)
        );
        // Clients have most of what is here.
        assert!(
            !is_spare(7, 25, 0, 100)
                && is_spare(8, 25, 0, 100)
                && !is_spare(0, 1, 0, 4)
                && !is_spare(1, 3, 0, 4)
        );
        // Everything is elsewhere.
        assert!(!is_spare(0, 0, 0, 4));
        assert!(is_spare(0, 0, 0, 0), "there is no server");
    }

    #[test]
    fn a_server_that_is_full_is_believed_for_a_second_by_those_whom_it_means() {
        let full = Full::default();
        let at = |ms: u64| Instant::from_ns(ms * 1_000_000);
        full.said(Some("few"), at(0));
        assert!(
            full.is_for("few", at(999), BELIEVED)
                && !full.is_for("few", at(1000), BELIEVED)
                && !full.is_for("other", at(1), BELIEVED)
        );
        full.said(None, at(500));
        assert!(
            full.is_for("other", at(600), BELIEVED)
                && full.is_for("few", at(1400), BELIEVED)
                && !full.is_for("other", at(1500), BELIEVED)
        );
        for user in 0..1000 {
            full.said(Some(&user.to_string()), at(2000));
        }
        assert_eq!(full.0.borrow().len(), ACCOUNTS_MAX);
        assert!(full.is_for("999", at(2001), BELIEVED));
    }
}
