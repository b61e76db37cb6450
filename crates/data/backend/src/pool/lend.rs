//! Idle connections that go from one core to another: who has none and needs one asks, who has one
//! that fits sends it.
//!
//! A connection is asked for by the first of a line only, and by who is about to open one although
//! other cores have some. What is sent joins the idle connections of the core that asked; its
//! permit travels with it.

use crate::connection::backend::Backend;
use crate::connection::place::Place;
use crate::cores::lent::Lent;
use crate::cores::neighbours::LOOK_AGAIN;
use crate::cores::wish::{is_fit, may_travel};
use crate::cores::word::{Wanted, Why, Word};
use crate::hostgroup::chooser::in_turn;
use crate::hostgroup::group::Group;
use crate::pool::pools::Pools;
use crate::session::key::Key;
use bridge::Counter;
use rt::{Instant, NotHanded};
use std::rc::Rc;
use std::time::Duration;

/// So long after somebody has begun to wait, what it asks may not have been heard yet.
const JUST_NOW: Duration = Duration::from_millis(10);
/// So long what came for a copy is not sent on to another core's: whoever waits for it here looks
/// again within.
const FOR_A_COPY: Duration = LOOK_AGAIN.saturating_mul(2);

impl Pools {
    /// As if a core that waits had asked.
    #[cfg(test)]
    pub(crate) fn hear_of_a_wish(&self, hostgroup: u32) {
        self.wanted(
            1,
            Wanted {
                hostgroup,
                at: None,
                user: "app".into(),
                caps: 0,
                number: 0,
                why: Why::NoRoom,
            },
        );
    }

    /// Another core wants one.
    pub(crate) fn wanted(&self, from: u32, wanted: Wanted) {
        let group = self.groups.borrow().get(&wanted.hostgroup).cloned();
        let refuse = |wanted: &Wanted| {
            if wanted.number != 0 {
                // Who cannot be told waits a little longer.
                let _full = self.neighbours.say(from, Word::NotLent(wanted.number));
            }
        };
        let Some(group) = group else {
            return refuse(&wanted);
        };
        let now = self.rt.now();
        let just_came = || {
            group
                .spare_came
                .get()
                .is_some_and(|came| now - came < FOR_A_COPY)
        };
        if wanted.why == Why::Copies && (!group.has_spare() || just_came()) {
            return;
        }
        let is_offered = || {
            group.paced.is_offered(
                &Key {
                    user: (&*wanted.user).into(),
                    caps: wanted.caps,
                    client: None,
                },
                now,
            )
        };
        let wanted_here = !group.queue.is_empty() || !group.paced.is_empty() && is_offered();
        let spare = if wanted_here {
            None
        } else {
            self.spare(&group, &wanted)
        };
        if let Some(backend) = spare {
            return self.lend(from, backend, wanted.number);
        }
        refuse(&wanted);
        if !wanted_here && wanted.why != Why::Copies {
            // What it leaves is lent when it is given back.
            let key = Key {
                user: (&*wanted.user).into(),
                caps: wanted.caps,
                client: None,
            };
            let _one_less = group.lingering.press(now, &key)
                || matches!(wanted.why, Why::NoRoom) && group.lingering.press_any(now);
        }
        match wanted.why {
            Why::Spare => return,
            Why::Copies => {
                if !wanted_here {
                    self.make_room(&group, FOR_A_COPY);
                }
                return;
            }
            Why::NoRoom if !wanted_here => self.make_room(&group, Duration::ZERO),
            Why::NoRoom | Why::Pace { .. } => {}
        }
        group.wishes.remember(from, wanted, now);
    }

    /// The idle connection that was used longest ago, of those that fit.
    fn spare(&self, group: &Group, wanted: &Wanted) -> Option<Box<Backend>> {
        let now = self.rt.now();
        let places = group.places.borrow();
        let is_meant = |place: &Place| {
            let at = wanted.at.as_ref();
            let is_it = at.is_none_or(|(host, port)| {
                **host == **place.host() && *port == place.server().port
            });
            is_it && place.serves(now)
        };
        for place in in_turn(&places, is_meant) {
            let mut idle = place.idle.borrow_mut();
            if let Some(at) = idle
                .iter()
                .position(|backend| is_fit(backend, wanted) && backend.conn.is_idle())
            {
                return Some(idle.remove(at));
            }
        }
        None
    }

    /// One that fits nobody there, or cannot go there, keeps others out. Idle for so long, nobody
    /// here is about to take it.
    fn make_room(&self, group: &Group, idle_for: Duration) {
        let now = self.rt.now();
        for place in group.places.borrow().iter() {
            let full = place.is_full();
            let mut idle = place.idle.borrow_mut();
            if full
                && idle
                    .first()
                    .is_some_and(|first| now - first.lasting.since >= idle_for)
            {
                self.tally.up(Counter::MyhgmPoolDestroy);
                drop(idle.remove(0));
                return;
            }
        }
    }

    /// A connection that was just given back: to the core that has waited for it, if one has for
    /// longer than who waits here since then. `room`: others have, for room.
    pub(crate) fn pass_on(
        &self,
        group: &Group,
        backend: Box<Backend>,
        room: bool,
        since: Option<Instant>,
    ) -> Option<Box<Backend>> {
        match group.wishes.take_for(&backend, self.rt.now(), room, since) {
            Some((core, wanted)) => {
                self.lend(core, backend, wanted.number);
                None
            }
            None => Some(backend),
        }
    }

    /// Who waits elsewhere has begun just now. What it asks is on its way, and the connection is
    /// lent to it, or closed for it, when that is heard.
    pub(crate) fn is_about_to_be_asked_for(
        &self,
        group: &Group,
        place: &Place,
        backend: &Backend,
    ) -> bool {
        let now = self.rt.now().as_ns();
        let just_now = |since: u64| now.saturating_sub(since) < JUST_NOW.as_nanos() as u64;
        group.wishes.is_empty()
            && may_travel(backend)
            && place
                .room
                .of_server
                .waits_elsewhere(self.line)
                .is_some_and(just_now)
    }

    fn lend(&self, to: u32, mut backend: Box<Backend>, number: u64) {
        let (neighbours, tally) = (self.neighbours.clone(), self.tally.clone());
        let group = self.group(backend.place.server().hostgroup);
        self.rt.spawn(async move {
            let conn = match backend.conn.part().await {
                Ok(conn) => conn,
                Err(why) => {
                    if why == NotHanded::Stays && backend.place.keeps() {
                        // This process has no descriptor to lend it with: it goes on serving here.
                        let (place, key) = (backend.place.clone(), backend.key.clone());
                        place.idle.borrow_mut().push(backend);
                        group.paced.offer(&key);
                    } else {
                        // It has spoken unasked, or is over. Its permit is free now.
                        drop(backend);
                    }
                    group.queue.call();
                    let _full = neighbours.say(to, Word::NotLent(number));
                    return;
                }
            };
            let lent = Box::new(Lent::of(&mut backend, conn, number));
            drop(backend);
            tally.up(Counter::ServerConnectionsLent);
            // If it cannot be said, the connection is closed, and its permit free.
            let _full = neighbours.say(to, Word::Lent(lent));
        });
    }

    /// Another core has sent one.
    pub(crate) fn arrived(&self, mut lent: Lent) {
        #[cfg(debug_assertions)]
        if crate::planted::FORGET_LENT.get() {
            lent.forget_state();
        }
        let group = self.group(lent.hostgroup);
        let number = lent.number;
        let place = group
            .places
            .borrow()
            .iter()
            .find(|place| place.is_of(&lent.host, lent.port, lent.at))
            .cloned();
        // A LOAD may have lowered a limit while it was on its way.
        let may_stay = |place: &Rc<Place>| {
            place.keeps()
                && !place.is_over()
                && place.is_alike(&lent.lasting.opened_as, lent.init_connect.as_deref())
        };
        if let Some(place) = place.filter(may_stay)
            && let Some(state) = lent.take_state()
            && let Some(conn) = lent.conn.take().and_then(|conn| conn.adopt(&self.rt).ok())
        {
            self.note_greeting(&place, &lent.hello);
            let backend = lent.arrive(&place, (conn, state), &self.tally);
            self.tally.up(Counter::ServerConnectionsConnected);
            // The permit is the new one's.
            lent.permit = None;
            let key = backend.key.clone();
            place.idle.borrow_mut().push(Box::new(backend));
            if number == 0 {
                // Else it is for who asked.
                group.paced.offer(&key);
            }
            let now = self.rt.now();
            if group
                .asked_for_spare
                .get()
                .is_some_and(|asked| now - asked < FOR_A_COPY)
            {
                group.spare_came.set(Some(now));
            }
        }
        drop(lent);
        group.queue.call();
        self.neighbours.answered(number);
    }
}
