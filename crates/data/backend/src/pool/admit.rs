//! Who is before whom, on whichever core: where statements in flight are limited, or the seats of a
//! line. The last of too many is sent away.

use crate::connection::backend::Backend;
use crate::connection::place::Place;
use crate::cores::word::Word;
use crate::failure::BackendFailed;
use crate::hostgroup::chooser::in_turn;
use crate::hostgroup::group::Group;
use crate::hostgroup::queue::Standing;
use crate::pool::pools::Pools;
use crate::session::want::Want;
use bridge::Counter;
use rt::Instant;
use rt::permits::Permits;
use std::sync::Arc;

/// Why somebody waits no more, and gets nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Vain {
    /// The time is over.
    Late,
    /// Too many wait, and it is the last of them.
    Full,
}

/// Permits that hold backwards how far behind the last of a line stands: the least is farthest.
const BACKWARDS: u64 = u64::MAX - 1;

/// One of those who may wait. Given back when dropped, which is after its turn.
pub(crate) struct Seat<'a> {
    permits: Arc<Permits>,
    pools: &'a Pools,
    group: &'a Group,
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.permits.give();
        self.pools.tell_last(self.group);
    }
}

impl Pools {
    /// Whether a server takes one more statement of somebody who came then: there is a slot, and
    /// nobody on another core is before it.
    pub(crate) fn lets_in(&self, place: &Place, want: &Want<'_>, rank: Instant) -> bool {
        let Some((limit, permits)) = place.in_flight.limit().filter(|_| want.waits) else {
            return true;
        };
        let is_before_us = |other: u64| other < rank.as_ns();
        permits.taken() < limit
            && (permits.wanted() == 0
                || !permits.waits_elsewhere(self.line).is_some_and(is_before_us))
    }

    /// Whether it is for want of a slot that somebody waits, and not of a connection.
    pub(crate) fn lacks_slots(&self, group: &Group, want: &Want<'_>, rank: Instant) -> bool {
        if !want.waits || !group.admission.is_limited() {
            return false;
        }
        let (now, places) = (self.rt.now(), group.places.borrow());
        let mut serving = in_turn(&places, |place| place.serves_for(want, now)).peekable();
        serving.peek().is_some() && serving.all(|place| !self.lets_in(place, want, rank))
    }

    /// A slot is free: who waits for one on another core is called, unless somebody here is before
    /// it.
    pub(crate) fn has_freed_slot(&self, group: &Group, place: &Place) {
        let Some((limit, permits)) = place.in_flight.limit() else {
            return;
        };
        if permits.wanted() == 0 || permits.taken() >= limit {
            return;
        }
        let ours = group.queue.first_since().map_or(u64::MAX, Instant::as_ns);
        if permits
            .waits_elsewhere(self.line)
            .is_some_and(|other| other < ours)
        {
            self.neighbours
                .say_to_all(|| Word::Slot(place.server().hostgroup));
        }
    }

    /// A connection that its session keeps has nothing in flight any more.
    pub fn has_landed(&self, backend: &mut Backend) {
        if backend.slot.take().is_some() {
            let group = self.group(backend.place.server().hostgroup);
            self.has_freed_slot(&group, &backend.place);
            group.queue.call();
        }
    }

    /// Another core has given a slot back.
    pub(crate) fn hear_of_slot(&self, hostgroup: u32) {
        if let Some(group) = self.groups.borrow().get(&hostgroup) {
            group.queue.call();
        }
    }

    /// A seat in the line, if those are limited. Where all are taken the last who waits is sent away
    /// for this one, on whichever core, or this one is the last.
    ///
    /// # Errors
    /// It is the last.
    pub(crate) fn sit_down<'a>(
        &'a self,
        group: &'a Group,
        (hostgroup, standing): (u32, Standing),
    ) -> Result<Option<Seat<'a>>, Vain> {
        let max = group.admission.settings.get().queue_max;
        if max == 0 {
            return Ok(None);
        }
        let seats = group.admission.seats.get_or_init(|| {
            self.registry
                .get(&format!("waiting for hostgroup {hostgroup}"))
        });
        let seat = || Seat {
            permits: seats.clone(),
            pools: self,
            group,
        };
        if seats.try_take(max) {
            return Ok(Some(seat()));
        }
        let last_elsewhere = || {
            let backwards = seats.waits_elsewhere(self.line)?;
            Some(BACKWARDS - backwards)
        };
        let ours = group.queue.last_since().map_or(0, Instant::as_ns);
        let theirs = last_elsewhere().unwrap_or(0);
        if ours.max(theirs) <= standing.rank.as_ns() {
            return Err(Vain::Full);
        }
        // Who is sent away has a seat until it has gone.
        seats.take();
        let seat = seat();
        if theirs > ours {
            self.neighbours.say_to_all(|| Word::Shed(hostgroup));
        } else {
            group.queue.shed_last(standing.rank);
        }
        Ok(Some(seat))
    }

    /// Another core has somebody in its line for whom the last of all leaves: of this core, if it
    /// has that one.
    pub(crate) fn hear_of_shedding(&self, hostgroup: u32) {
        let groups = self.groups.borrow();
        let Some(group) = groups.get(&hostgroup) else {
            return;
        };
        let (max, seats) = (
            group.admission.settings.get().queue_max,
            group.admission.seats.get(),
        );
        let Some((seats, last)) = seats.zip(group.queue.last_since()) else {
            return;
        };
        let elsewhere = seats.waits_elsewhere(self.line);
        let is_last = elsewhere.is_none_or(|other| BACKWARDS - other <= last.as_ns());
        if seats.taken() > max && is_last {
            group.queue.shed_last(Instant::from_ns(0));
            self.tell_last(group);
        }
    }

    /// Tells the other cores how far behind the last of this line stands.
    pub(crate) fn tell_last(&self, group: &Group) {
        if let Some(seats) = group.admission.seats.get() {
            match group.queue.last_since() {
                Some(last) => seats.wait_since(self.line, BACKWARDS - last.as_ns()),
                None => seats.wait_no_more(self.line),
            }
        }
    }

    /// Somebody is sent away, or has waited for as long as its hostgroup says.
    pub(crate) fn shed(
        &self,
        group: &Group,
        (hostgroup, standing): (u32, Standing),
        full: bool,
    ) -> BackendFailed {
        let now = self.rt.now();
        self.tally.up(Counter::StatementsShed);
        group.admission.has_shed(standing.priority);
        let waited = (now - standing.came).as_millis();
        BackendFailed::Shed {
            hostgroup,
            queue_max: full.then(|| group.admission.settings.get().queue_max),
            waited_ms: u64::try_from(waited).unwrap_or(u64::MAX),
            retry_ms: group.admission.retry_ms(now, &group.queue),
        }
    }
}
