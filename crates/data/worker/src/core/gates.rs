//! Gates of partitions. While one is closed, statements for its partition wait at it: the partition is
//! about to be on another server. A gate opens by itself when its time is over.
//!
//! docs/features/moves.md

use plan::Plan;
use rt::local::Notify;
use rt::{Instant, Rt};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// A gate that is closed.
struct Closed {
    /// As `table.partition`.
    partition: Arc<str>,
    /// Statements with a greater number have begun behind it.
    after: u64,
    until: Instant,
}

/// A statement that is under way to partitions.
struct Trip {
    number: u64,
    partitions: Box<str>,
}

/// The gates of a core, and what has gone through.
#[derive(Default)]
pub(crate) struct Gates {
    closed: RefCell<Vec<Closed>>,
    any: Cell<bool>,
    trips: RefCell<Vec<Option<Trip>>>,
    free: RefCell<Vec<usize>>,
    last: Cell<u64>,
    /// Rung when a gate opens, and when a trip ends while one is closed.
    changed: Notify,
}

/// A trip ends when this is dropped.
pub(crate) struct UnderWay {
    gates: Rc<Gates>,
    at: usize,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let gates = &self.gates;
        if let Some(trip) = gates.trips.borrow_mut().get_mut(self.at) {
            *trip = None;
        }
        gates.free.borrow_mut().push(self.at);
        if gates.any.get() {
            gates.changed.notify_all();
        }
    }
}

impl Gates {
    /// Whether all are open: one comparison for each statement.
    pub(crate) const fn are_open(&self) -> bool {
        !self.any.get()
    }

    /// A statement goes to these partitions, if to any.
    pub(crate) fn enter(self: &Rc<Self>, plan: &Plan) -> Option<UnderWay> {
        partitions(plan).map(|way| self.begin(way))
    }

    fn begin(self: &Rc<Self>, partitions: Box<str>) -> UnderWay {
        let number = self.last.get() + 1;
        self.last.set(number);
        let trip = Some(Trip { number, partitions });
        let mut trips = self.trips.borrow_mut();
        let at = match self.free.borrow_mut().pop() {
            Some(at) => {
                trips[at] = trip;
                at
            }
            None => {
                trips.push(trip);
                trips.len() - 1
            }
        };
        UnderWay {
            gates: self.clone(),
            at,
        }
    }

    /// Closes a gate for so long, or opens it.
    pub(crate) fn set(
        self: &Rc<Self>,
        rt: &Rt,
        partition: Arc<str>,
        closed_for: Option<Duration>,
        done: bridge::Reply<()>,
    ) {
        match closed_for {
            Some(within) => self.close(rt, partition, within, done),
            None => {
                self.open(&partition);
                done(());
            }
        }
    }

    /// Closes a gate. Answers once all is over that went through before; not at all if the gate is open
    /// again before that.
    fn close(
        self: &Rc<Self>,
        rt: &Rt,
        partition: Arc<str>,
        within: Duration,
        done: bridge::Reply<()>,
    ) {
        let after = self.last.get();
        self.open(&partition);
        self.closed.borrow_mut().push(Closed {
            partition: partition.clone(),
            after,
            until: rt.now() + within,
        });
        self.any.set(true);
        let (gates, own) = (self.clone(), rt.clone());
        rt.spawn(async move {
            while gates.is_closed(&partition, after) {
                if !gates.is_awaited(&partition, after) {
                    return done(());
                }
                let _late = own.timeout(within, gates.changed.wait()).await;
                gates.open_those_over(own.now());
            }
        });
    }

    /// Opens a gate.
    fn open(&self, partition: &str) {
        self.closed
            .borrow_mut()
            .retain(|gate| *gate.partition != *partition);
        self.opened();
    }

    pub(crate) fn open_those_over(&self, now: Instant) {
        self.closed.borrow_mut().retain(|gate| gate.until > now);
        self.opened();
    }

    fn opened(&self) {
        self.any.set(!self.closed.borrow().is_empty());
        self.changed.notify_all();
    }

    fn is_closed(&self, partition: &str, after: u64) -> bool {
        let closed = self.closed.borrow();
        let mut own = closed.iter().filter(|gate| gate.after == after);
        own.any(|gate| *gate.partition == *partition)
    }

    /// Whether something is under way that went through before.
    fn is_awaited(&self, partition: &str, after: u64) -> bool {
        let trips = self.trips.borrow();
        let mut before = trips.iter().flatten().filter(|trip| trip.number <= after);
        before.any(|trip| trip.partitions.contains(partition))
    }

    /// Until when a gate on the way of a statement is closed.
    pub(crate) fn in_the_way(&self, plan: &Plan) -> Option<Instant> {
        partitions(plan).and_then(|way| self.closed_until(&way))
    }

    /// Waits until something has changed, at most so long.
    pub(crate) async fn wait(&self, rt: &Rt, until: Instant) {
        let left = until.max(rt.now()) - rt.now();
        let _late = rt.timeout(left, self.changed.wait()).await;
    }

    /// Until when a gate on this way is closed.
    fn closed_until(&self, partitions: &str) -> Option<Instant> {
        let closed = self.closed.borrow();
        // One whose name begins alike waits needlessly, and does no harm.
        let own = closed
            .iter()
            .filter(|gate| partitions.contains(&*gate.partition));
        own.map(|gate| gate.until).max()
    }
}

/// The partitions of a statement, as texts for people have them.
fn partitions(plan: &Plan) -> Option<Box<str>> {
    match &plan.gather {
        None => plan.partition.as_ref().map(|one| one.names.clone()),
        Some(gather) => {
            let target = gather.from_query.iter().map(|from| &*from.partitions);
            let all = gather.parts.iter().map(|part| &*part.partitions);
            let all = all.chain(target);
            Some(all.collect::<Vec<_>>().join(" and ").into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rt::Driver;

    #[test]
    fn a_gate_is_closed_once_all_that_went_through_before_is_over() {
        rt::run(Driver::READINESS, |rt| async move {
            let gates = Rc::new(Gates::default());
            let before = gates.begin("t.a and u.a".into());
            let other = gates.begin("t.b".into());
            let told = Rc::new(Cell::new(false));
            let (tell, hears) = rt::mailbox::channel(1);
            gates.close(
                &rt,
                "t.a".into(),
                Duration::from_secs(100),
                Box::new(move |()| drop(tell.try_send(()))),
            );
            let (heard, bell) = (told.clone(), Rc::new(rt::local::Bell::new()));
            let rings = bell.clone();
            rt.spawn(async move {
                if hears.recv().await.is_some() {
                    heard.set(true);
                }
                rings.ring();
            });
            assert!(!gates.are_open() && gates.closed_until("t.a").is_some());
            assert!(gates.closed_until("t.b").is_none());
            let behind = gates.begin("t.a".into());
            rt.sleep(Duration::from_millis(5)).await;
            assert!(!told.get());
            drop(before);
            bell.heard().await;
            assert!(told.get());
            gates.open("t.a");
            assert!(gates.are_open());
            drop((other, behind));
            assert_eq!(gates.trips.borrow().iter().flatten().count(), 0);
        })
        .unwrap();
    }
}
