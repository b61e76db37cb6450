//! Lines of statements that wait for a hostgroup's servers: their order, who is sent away, and how many statements are
//! in flight at each server: what `hostgroup_settings` says of it, and what came of it on this core.
//!
//! A statement in flight has a slot of its server. Cores share slots as they share permits.

use crate::acquire::Vain;
use crate::backend::Backend;
use crate::chooser::in_turn;
use crate::failure::BackendFailed;
use crate::lend::Word;
use crate::place::Place;
use crate::pools::{Group, Pools};
use crate::queue::Standing;
use crate::want::Want;
use bridge::{AdmissionRow, ConcurrencyRow, Counter};
use config::{Order, PRIORITY_MAX};
use rt::Instant;
use rt::permits::Permits;
use std::cell::{Cell, OnceCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// So many priorities there are.
const PRIORITIES: usize = PRIORITY_MAX as usize + 1;

/// So far before others stands who must not wait for a slot.
const AHEAD: Duration = Duration::from_secs(3600);

/// Permits that hold backwards how far behind the last of a line stands: the least is farthest.
const BACKWARDS: u64 = u64::MAX - 1;

/// Knowledge of the line of a hostgroup, beside who stands in it.
#[derive(Default)]
pub(crate) struct Admission {
    pub(crate) settings: Cell<config::Admission>,
    /// Seats of those who wait, over all cores, where they are limited.
    seats: OnceCell<Arc<Permits>>,
    /// When somebody was last served who had waited, if others waited still.
    served: Cell<Option<Instant>>,
    /// Moving mean of the time from one to the next.
    gap_ns: Cell<u64>,
    counts: [Count; PRIORITIES],
}

/// Of one priority.
#[derive(Default)]
struct Count {
    served: Cell<u64>,
    shed: Cell<u64>,
}

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

impl Group {
    /// Where somebody stands in the line who comes now.
    pub(crate) fn standing(&self, want: &Want<'_>, came: Instant) -> Standing {
        let settings = self.admission.settings.get();
        let rank = match settings.order {
            // Those in line may wait for slots that are taken by who waits for this one.
            _ if !want.waits && self.is_limited() => {
                let ahead = u64::try_from(AHEAD.as_nanos()).unwrap_or(u64::MAX);
                Instant::from_ns(came.as_ns().saturating_sub(ahead))
            }
            Order::Fifo => came,
            Order::Priority => {
                let rank_ns = plan::rank_ns(came.as_ns(), want.priority, want.cost_ns);
                Instant::from_ns(rank_ns)
            }
        };
        Standing {
            rank,
            came,
            priority: want.priority.min(PRIORITY_MAX),
        }
    }

    /// Whether some server takes work of whoever wants this, were it not for those before it.
    pub(crate) fn may_serve(&self, want: &Want<'_>, now: Instant) -> bool {
        let places = self.places.borrow();
        places.iter().any(|place| place.serves_for(want, now))
    }

    /// Whether statements wait by priority.
    pub(crate) fn is_by_priority(&self) -> bool {
        self.admission.settings.get().order == Order::Priority
    }

    /// How long a statement waits at most, and whether that is less than otherwise.
    pub(crate) fn wait_max(&self, otherwise: Duration) -> (Duration, bool) {
        let own = u64::from(self.admission.settings.get().queue_ms);
        let own = (own > 0).then(|| Duration::from_millis(own));
        let shorter = own.filter(|own| *own < otherwise);
        (shorter.unwrap_or(otherwise), shorter.is_some())
    }

    /// Somebody who has waited is served.
    pub(crate) fn has_served(&self, standing: Standing, now: Instant) {
        let admission = &self.admission;
        if !admission.settings.get().is_used() {
            return;
        }
        if let Some(before) = admission.served.get() {
            let gap = u64::try_from((now - before).as_nanos()).unwrap_or(u64::MAX);
            let mean = admission.gap_ns.get();
            let new = if mean == 0 {
                gap
            } else {
                mean - mean / 8 + gap / 8
            };
            admission.gap_ns.set(new.max(1));
        }
        let others_wait = !self.queue.is_empty();
        admission.served.set(others_wait.then_some(now));
        let served = &admission.counts[usize::from(standing.priority)].served;
        served.set(served.get() + 1);
    }

    /// Milliseconds after which one more may be served, as far as this core knows.
    fn retry_ms(&self, now: Instant) -> u64 {
        let gap_ns = self.admission.gap_ns.get();
        let waiting = self.queue.len() as u64;
        let longest = || {
            self.queue
                .longest_since()
                .map_or(Duration::ZERO, |since| now - since)
        };
        let ms = match gap_ns {
            0 => u64::try_from(longest().as_millis()).unwrap_or(u64::MAX),
            gap => gap.saturating_mul(waiting.max(1)).div_ceil(1_000_000),
        };
        ms.max(1)
    }

    /// Rows of `stats_millrace_admission`: of each priority of which somebody waits, or has.
    fn report_admission(&self, hostgroup: u32, now: Instant) -> Vec<AdmissionRow> {
        let mut waiting = [(0, Duration::ZERO); PRIORITIES];
        if self.admission.settings.get().is_used() {
            self.queue.each(|priority, came| {
                let (count, longest) = &mut waiting[usize::from(priority)];
                (*count, *longest) = (*count + 1, (now - came).max(*longest));
            });
        }
        let of = |(priority, (waiting, longest)): (u32, (u64, Duration))| {
            let count = &self.admission.counts[priority as usize];
            let (served, shed) = (count.served.get(), count.shed.get());
            (waiting + served + shed > 0).then(|| AdmissionRow {
                hostgroup,
                priority,
                waiting,
                longest_wait_ms: u64::try_from(longest.as_millis()).unwrap_or(u64::MAX),
                served,
                shed,
            })
        };
        (0..).zip(waiting).filter_map(of).collect()
    }
}

impl Pools {
    /// Rows of `stats_millrace_admission`.
    #[must_use]
    pub fn report_admission(&self) -> Vec<AdmissionRow> {
        let (now, groups) = (self.rt.now(), self.groups.borrow());
        let of = |(id, group): (&u32, &Rc<Group>)| group.report_admission(*id, now);
        groups.iter().flat_map(of).collect()
    }

    /// Rows of `stats_millrace_concurrency`.
    #[must_use]
    pub fn report_concurrency(&self) -> Vec<ConcurrencyRow> {
        let groups = self.groups.borrow();
        let of = |group: &Rc<Group>| -> Vec<_> {
            let places = group.places.borrow();
            let there = places.iter().filter(|place| !place.has_left());
            there
                .filter_map(|place| place.report_concurrency())
                .collect()
        };
        groups.values().flat_map(of).collect()
    }

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
        if !want.waits || !group.is_limited() {
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
            self.say_to_all(|| Word::Slot(place.server().hostgroup));
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

    fn say_to_all(&self, word: impl Fn() -> Word) {
        for core in self.neighbours.others() {
            // Who cannot be told looks by itself in a moment.
            let _full = self.neighbours.say(core, word());
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
            self.say_to_all(|| Word::Shed(hostgroup));
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
        let shed = &group.admission.counts[usize::from(standing.priority)].shed;
        shed.set(shed.get() + 1);
        let waited = (now - standing.came).as_millis();
        BackendFailed::Shed {
            hostgroup,
            queue_max: full.then(|| group.admission.settings.get().queue_max),
            waited_ms: u64::try_from(waited).unwrap_or(u64::MAX),
            retry_ms: group.retry_ms(now),
        }
    }
}
