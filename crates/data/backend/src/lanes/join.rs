//! A statement joins a lane, or has a connection become one.

use crate::connection::backend::Backend;
use crate::connection::place::Place;
use crate::hostgroup::group::Group;
use crate::hostgroup::lane::{Joined, Lane, May, PATIENCE, Request, WAIT_MAX};
use crate::lanes::run::Run;
use crate::pool::pools::Pools;
use crate::session::need::Need;
use crate::session::want::Want;
use bridge::Counter;
use rt::Instant;
use std::rc::Rc;
use std::time::Duration;

/// Connections of a hostgroup on one core that become lanes.
const WIDTH: usize = 4;
/// So many times as long as it would take elsewhere a statement waits in lanes that are full: where
/// that is longer than [`WAIT_MAX`], a busy server has it wait for others there, and spends so much
/// less on it in a lane that all are answered sooner.
const WORTH: u32 = 4;

impl Pools {
    /// Joins a lane with a statement that only reads, if there is one for it or can be. `depth`:
    /// the statements that may be in flight on a connection at once at most. `elsewhere`: how long
    /// it takes on a connection of its own, if that is known: it waits here for clearly longer only
    /// if the other is short.
    #[must_use]
    pub fn join(
        self: &Rc<Self>,
        want: &Want<'_>,
        request: &Request<'_>,
        depth: u32,
        elsewhere: Duration,
    ) -> Option<Joined> {
        let group = self.group(want.hostgroup);
        let now = self.rt.now();
        let lanes = &group.lanes;
        // Who waits for a connection comes first: lanes run empty and are given back. Where new
        // ones have their pace, one lane goes on.
        if !group.queue.is_empty() || lanes.pause_until.get().is_some_and(|until| now < until) {
            return None;
        }
        lanes.depth_max.set(depth);
        let depth = lanes.depth.get().min(depth) as usize;
        // Servers by their weights, as for any statement; lanes of one server one after the other.
        let place = self.chosen(&group, now)?;
        let may = May {
            depth,
            wait_max: WAIT_MAX.max(elsewhere * WORTH),
            now,
        };
        let joins = |lane: Rc<Lane>| {
            let joined = lane.join(request, depth, now);
            if joined.is_some() && lane.sent.get() < lane.len() {
                self.tally.up(Counter::StatementsWaitedForLane);
            }
            joined
        };
        let found = lanes.find(&may, request, |lane| {
            Rc::ptr_eq(&lane.place, &place) && lane.serves(want, now)
        });
        if let (Some(lane), Request::Execution(execution)) = (&found.ignorant, request) {
            lane.learn(want, execution, depth, now);
        }
        if let Some(lane) = found.soonest {
            return joins(lane);
        }
        if found.serving >= WIDTH {
            return found.emptiest.or(found.shortest).and_then(joins);
        }
        if found.ignorant.is_some() {
            // Soon that one knows it: no other connection becomes a lane for it.
            return found.emptiest.and_then(joins);
        }
        // One more, if a connection is at hand that needs nothing to be done.
        match self.at_once_to(&group, &place, want) {
            Some(backend) if may_be_lane(&backend, want) => {
                let lane = self.begin(&group, backend);
                if let (Request::Execution(execution), false) = (request, lane.knows(request)) {
                    lane.learn(want, execution, depth, now);
                    return None;
                }
                joins(lane)
            }
            Some(backend) => {
                self.release(backend);
                None
            }
            None if found.emptiest.is_some() => found.emptiest.and_then(joins),
            // The ordinary way opens one, but not for each who comes meanwhile.
            None if self.may_open(&group, &place, want, now)
                && !self.must_slow_down(&group, want, now) =>
            {
                None
            }
            None => {
                if found.serving == 0 && !place.comes_last(want.user, now) {
                    lanes.give_up_for(&place, &group.places.borrow(), now);
                }
                // Elsewhere it would wait for a connection: for the lanes, too.
                let may = May {
                    wait_max: PATIENCE,
                    ..may
                };
                let others = lanes.find(&may, request, |lane| lane.serves(want, now));
                others
                    .soonest
                    .or(others.emptiest)
                    .or(others.shortest)
                    .and_then(joins)
            }
        }
    }

    /// The server for a statement, by the weights.
    fn chosen(&self, group: &Group, now: Instant) -> Option<Rc<Place>> {
        let places = group.places.borrow();
        // Nobody shares connections where only those serve that are there for when no other can.
        let open = |place: &&Rc<Place>| place.serves(now) && !place.is_last();
        if let [only] = places.as_slice() {
            return Some(only).filter(open).cloned();
        }
        let open: Vec<_> = places.iter().filter(open).collect();
        let at = plan::pick_by(&open, |place| place.weight(), self.rt.random())?;
        Some(open[at].clone())
    }

    /// Whether a connection may be opened there, and none is being opened.
    fn may_open(&self, group: &Group, place: &Place, want: &Want<'_>, now: Instant) -> bool {
        place.opening.get() == 0 && place.may_have_more(&group.places.borrow(), want.user, now)
    }

    fn begin(self: &Rc<Self>, group: &Rc<Group>, mut backend: Box<Backend>) -> Rc<Lane> {
        let lane = Rc::new(Lane::of(&mut backend));
        group.lanes.all.borrow_mut().push(lane.clone());
        self.tally.up(Counter::LanesOpened);
        let run = Run {
            pools: self.clone(),
            group: group.clone(),
            lane: lane.clone(),
        };
        self.rt.spawn(async move {
            run.on(backend).await;
        });
        lane
    }
}

fn may_be_lane(backend: &Backend, want: &Want<'_>) -> bool {
    backend.holds.is_empty()
        && backend.local.unread.is_empty()
        // Others join it that have none, and a view's function may read them.
        && backend.state.user_variables().next().is_none()
        && !backend.lasting.several
        && backend.conn.compression().is_none()
        && backend.need(want.state, want.user_variables, None, want.tracking) == Need::Nothing
}
