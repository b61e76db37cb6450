//! Connections of a full hostgroup, shared among its servers by their weights.

use crate::connection::place::Place;
use crate::hostgroup::chooser::working;
use crate::tally::Tally;
use bridge::Counter;
use rt::Instant;
use std::rc::Rc;

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

impl Place {
    /// Whether a connection to it may be opened for this user, if one of another server that has
    /// too many is closed for it. `all`: the servers of the hostgroup.
    pub(crate) fn may_have_more(&self, all: &[Rc<Self>], user: &str, now: Instant) -> bool {
        !self.comes_last(user, now)
            && (!self.is_full()
                || Shares::to_give(all, now).is_some_and(|shares| shares.is_short(self)))
    }

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
