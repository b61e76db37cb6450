//! An idle connection that fits is taken.

use crate::connection::backend::Backend;
use crate::connection::place::Place;
use crate::hostgroup::chooser::in_turn;
use crate::hostgroup::group::Group;
use crate::pool::pools::Pools;
use crate::session::key::{Key, OF_CLIENT};
use crate::session::need::Need;
use crate::session::want::{Executes, Want};
use bridge::Counter;
use rt::Instant;
use std::rc::Rc;

impl Pools {
    /// Returns an idle connection to this server, if there is one and nobody waits for it.
    pub(crate) fn at_once_to(
        &self,
        group: &Group,
        place: &Rc<Place>,
        want: &Want<'_>,
    ) -> Option<Box<Backend>> {
        if want.new_connection
            || !group.queue.is_empty()
            || self.is_offered(group, want, self.rt.now())
        {
            return None;
        }
        let backend = self.take_from(place, want)?;
        self.was_at_hand();
        Some(backend)
    }

    pub(crate) fn was_at_hand(&self) {
        self.tally.up(Counter::MyhgmPoolGet);
        self.tally.up(Counter::ConnPoolGetConnImmediate);
        self.tally.up(Counter::MyhgmPoolGetOk);
    }

    /// An idle one that is left to nobody who came before.
    pub(crate) fn take_shared(
        &self,
        group: &Group,
        want: &Want<'_>,
        since: Instant,
    ) -> Option<Box<Backend>> {
        if want.new_connection || self.is_offered(group, want, since) {
            None
        } else {
            self.take_idle(group, want, (since, true))
        }
    }

    /// An idle connection for this session: of the server that the weights choose, else of any; the
    /// one that needs least to be brought there. `since`: its rank. `opens`: if there is none, one
    /// may be opened.
    pub(crate) fn take_idle(
        &self,
        group: &Group,
        want: &Want<'_>,
        (since, opens): (Instant, bool),
    ) -> Option<Box<Backend>> {
        let now = self.rt.now();
        let places = group.places.borrow();
        let takes = |place: &Place| place.serves_for(want, now) && self.lets_in(place, want, since);
        if let [only] = places.as_slice() {
            return if takes(only) {
                self.take_from(only, want)
            } else {
                None
            };
        }
        let open: Vec<&Rc<Place>> = in_turn(&places, takes).collect();
        let place = open[group.chooser.next(&open, now)?];
        let took = |place: &Rc<Place>| {
            let backend = self.take_from(place, want)?;
            group.chooser.had(&open, place, now, || self.rt.random());
            Some(backend)
        };
        if let Some(backend) = took(place) {
            return Some(backend);
        }
        // Rather a new connection to the chosen server than always the old ones to another, while
        // it has room, or another has some of its.
        if opens && place.may_have_more(&places, want.user, now) {
            return None;
        }
        open.iter().find_map(|place| took(place))
    }

    pub(crate) fn take_from(&self, place: &Rc<Place>, want: &Want<'_>) -> Option<Box<Backend>> {
        let (caps, client) = (want.caps & OF_CLIENT, place.client_of(want));
        // All may be dead.
        loop {
            let mut idle = place.idle.borrow_mut();
            let (mut best, mut seen) = (None::<(Fit, usize)>, 0);
            for (at, backend) in idle.iter().enumerate().rev() {
                if backend.key.caps != caps
                    || backend.key.client != client
                    || *backend.key.user != *want.user
                {
                    continue;
                }
                let fit = fit(backend, want);
                if fit > best.map_or(Fit::No, |(fit, _)| fit) {
                    best = Some((fit, at));
                }
                if fit == Fit::Exact {
                    break;
                }
                seen += 1;
                // Rather a statement prepared once more than a long look.
                if seen > LOOKED_AT && best.is_some_and(|(fit, _)| fit == Fit::Unprepared) {
                    break;
                }
            }
            let at = best?.1;
            let slot = place.in_flight.slot(want.waits).ok()?;
            let mut backend = idle.swap_remove(at);
            drop(idle);
            if backend.conn.is_idle() {
                backend.slot = slot;
                backend.in_use = true;
                place.begin_use();
                return Some(backend);
            }
            // The server has closed it, or spoke unasked.
            self.tally.up(Counter::ServerConnectionsAborted);
            self.unhealthy(&backend, "the server has closed it, or spoke unasked");
        }
    }

    /// Of connections that would serve. The servers of a hostgroup are alike in whether they are
    /// told of clients.
    pub(crate) fn key_of(&self, group: &Group, want: &Want<'_>) -> Key {
        let client = group
            .places
            .borrow()
            .first()
            .and_then(|place| place.client_of(want));
        Key {
            user: want.user.into(),
            caps: want.caps & OF_CLIENT,
            client,
        }
    }

    /// Whether what is idle for this session is left to those who wait for the pace, and came
    /// before.
    pub(crate) fn is_offered(&self, group: &Group, want: &Want<'_>, before: Instant) -> bool {
        !group.paced.is_empty() && group.paced.is_offered(&self.key_of(group, want), before)
    }

    /// An idle connection of this user to the server, whatever else is true of it.
    pub(crate) fn take_any_of(&self, place: &Rc<Place>, user: &str) -> Option<Box<Backend>> {
        let mut idle = place.idle.borrow_mut();
        let fits = |backend: &Backend| *backend.key.user == *user && backend.conn.is_idle();
        let at = idle.iter().position(|backend| fits(backend))?;
        let mut backend = idle.remove(at);
        drop(idle);
        backend.in_use = true;
        place.begin_use();
        Some(backend)
    }
}

/// Connections that are looked at for one that has a statement prepared as well.
const LOOKED_AT: usize = 16;

/// How well a connection fits, worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    No,
    Some,
    Unprepared,
    Exact,
}

fn fit(backend: &Backend, want: &Want<'_>) -> Fit {
    let exact = || {
        let prepared = |wants: Executes<'_>| backend.was_left_with(wants);
        if want.executes.is_none_or(prepared) {
            Fit::Exact
        } else {
            Fit::Unprepared
        }
    };
    if backend.has_all(want.state, want.remembered, want.tracking) {
        return exact();
    }
    match backend.need(
        want.state,
        want.user_variables,
        want.remembered,
        want.tracking,
    ) {
        Need::Nothing => exact(),
        Need::Another => Fit::No,
        Need::Steps { .. } | Need::Reset => Fit::Some,
    }
}
