//! Who waits for a connection of a hostgroup on this core: one line, the first rank first. Without
//! priorities a rank is the time of coming.
//!
//! Only the first of the line looks for a connection; the others sleep, so that thousands who wait
//! cost nothing while they do.

use crate::session::key::Key;
use hashbrown::HashMap;
use rt::Instant;
use rt::local::Notify;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// The line of a hostgroup.
#[derive(Default)]
pub(crate) struct Queue {
    line: RefCell<Line>,
    /// Those of them who may open a connection as soon as others have opened fewer.
    slow: RefCell<Line>,
    /// Those of them who wait for connections of a kind, by the kind: thousands may wait, and each
    /// command asks.
    kinds: RefCell<HashMap<Key, Rc<Kind>>>,
}

type Line = VecDeque<Rc<Ticket>>;

/// Who waits for connections of one kind.
#[derive(Default)]
struct Kind {
    line: RefCell<Line>,
    /// How many of them were offered one.
    offered: Cell<usize>,
}

/// Where somebody stands in a line, and since when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Standing {
    /// The least is first.
    pub(crate) rank: Instant,
    pub(crate) came: Instant,
    pub(crate) priority: u8,
}

impl From<Instant> for Standing {
    fn from(came: Instant) -> Self {
        Self {
            rank: came,
            came,
            priority: config::PRIORITY_USUAL,
        }
    }
}

struct Ticket {
    /// The rank.
    since: Instant,
    came: Instant,
    priority: u8,
    /// Whether it is to leave for somebody before it.
    shed: Cell<bool>,
    called: Notify,
    /// Of the connections that would serve, where these may be offered; `None` where only a new one
    /// will do.
    kind: Option<(Key, Rc<Kind>)>,
    /// Whether the ticket stands in `slow`, too.
    is_slow: bool,
    /// One of them may be idle, and this one has not looked yet.
    offered: Cell<bool>,
}

/// Where a ticket of that time would stand, behind those of the same time.
fn behind(line: &Line, since: Instant) -> usize {
    line.partition_point(|other| other.since <= since)
}

/// Where this one stands.
fn place_of(line: &Line, ticket: &Rc<Ticket>) -> Option<usize> {
    let first = line.partition_point(|other| other.since < ticket.since);
    (first..line.len()).find(|at| Rc::ptr_eq(&line[*at], ticket))
}

impl Kind {
    /// Calls the first from this place on who was not called for another.
    fn offer_from(&self, at: usize) {
        let line = self.line.borrow();
        if let Some(next) = line
            .range(at.min(line.len())..)
            .find(|ticket| !ticket.offered.get())
        {
            next.offered.set(true);
            self.offered.set(self.offered.get() + 1);
            next.called.notify_one();
        }
    }

    fn is_offered(&self, before: Instant) -> bool {
        let came_before = |ticket: &&Rc<Ticket>| ticket.since < before;
        self.offered.get() > 0
            && self
                .line
                .borrow()
                .iter()
                .take_while(came_before)
                .any(|ticket| ticket.offered.get())
    }
}

impl Queue {
    /// Does nobody wait?
    pub(crate) fn is_empty(&self) -> bool {
        self.line.borrow().is_empty()
    }

    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.line.borrow().len()
    }

    /// Since when the one waits that waits longest.
    pub(crate) fn longest_since(&self) -> Option<Instant> {
        self.line.borrow().iter().map(|ticket| ticket.came).min()
    }

    /// Calls this with priority and time of coming of each who waits.
    pub(crate) fn each(&self, mut hears: impl FnMut(u8, Instant)) {
        let line = self.line.borrow();
        line.iter()
            .for_each(|ticket| hears(ticket.priority, ticket.came));
    }

    /// The rank of the last who is not leaving already.
    pub(crate) fn last_since(&self) -> Option<Instant> {
        let line = self.line.borrow();
        let last = line.iter().rev().find(|ticket| !ticket.shed.get());
        last.map(|ticket| ticket.since)
    }

    /// Has the last leave, if its rank is behind this one; whether it was.
    pub(crate) fn shed_last(&self, behind: Instant) -> bool {
        let line = self.line.borrow();
        let last = line.iter().rev().find(|ticket| !ticket.shed.get());
        let last = last.filter(|ticket| ticket.since > behind);
        if let Some(ticket) = last {
            ticket.shed.set(true);
            ticket.called.notify_one();
        }
        last.is_some()
    }

    /// Since when the first waits: its rank.
    pub(crate) fn first_since(&self) -> Option<Instant> {
        self.line.borrow().front().map(|ticket| ticket.since)
    }

    /// Returns since when the first waits of those who may open a connection as soon as others have
    /// opened fewer.
    pub(crate) fn first_slow_since(&self) -> Option<Instant> {
        self.slow.borrow().front().map(|ticket| ticket.since)
    }

    /// Calls the first: something may be free.
    pub(crate) fn call(&self) {
        if let Some(first) = self.line.borrow().front() {
            first.called.notify_one();
        }
    }

    /// Whether somebody waits for connections of this kind.
    pub(crate) fn waits_for(&self, key: &Key) -> bool {
        self.kinds.borrow().contains_key(key)
    }

    /// Since when the first waits for those of this kind.
    pub(crate) fn first_since_for(&self, key: &Key) -> Option<Instant> {
        self.kinds
            .borrow()
            .get(key)?
            .line
            .borrow()
            .front()
            .map(|ticket| ticket.since)
    }

    /// One of this kind is idle: calls the first who waits for it and was not called for another.
    pub(crate) fn offer(&self, key: &Key) {
        if let Some(kind) = self.kinds.borrow().get(key) {
            kind.offer_from(0);
        }
    }

    /// Whether somebody who came before is about to look at what is idle of this kind.
    pub(crate) fn is_offered(&self, key: &Key, before: Instant) -> bool {
        self.kinds
            .borrow()
            .get(key)
            .is_some_and(|kind| kind.is_offered(before))
    }

    /// Stand in line behind all who came before `since`: who failed to connect comes back to where
    /// it was.
    pub(crate) fn join(&self, standing: impl Into<Standing>) -> Turn<'_> {
        self.join_for(standing, None, false)
    }

    /// Joins the line as [`join`](Self::join) does, for connections of this kind. `is_slow`: who
    /// joins may open a connection as soon as others have opened fewer.
    pub(crate) fn join_for(
        &self,
        standing: impl Into<Standing>,
        key: Option<Key>,
        is_slow: bool,
    ) -> Turn<'_> {
        let Standing {
            rank: since,
            came,
            priority,
        } = standing.into();
        let kind = key.map(|key| {
            let kind = self
                .kinds
                .borrow_mut()
                .entry(key.clone())
                .or_default()
                .clone();
            (key, kind)
        });
        let ticket = Rc::new(Ticket {
            since,
            came,
            priority,
            shed: Cell::new(false),
            called: Notify::new(),
            kind,
            is_slow,
            offered: Cell::new(false),
        });
        let insert = |line: &mut Line| line.insert(behind(line, since), ticket.clone());
        insert(&mut self.line.borrow_mut());
        if is_slow {
            insert(&mut self.slow.borrow_mut());
        }
        if let Some((_, kind)) = &ticket.kind {
            insert(&mut kind.line.borrow_mut());
        }
        Turn {
            queue: self,
            ticket,
        }
    }
}

/// A place in the line, left when dropped; then the next is called.
pub(crate) struct Turn<'a> {
    queue: &'a Queue,
    ticket: Rc<Ticket>,
}

impl Turn<'_> {
    pub(crate) fn is_first(&self) -> bool {
        self.queue
            .line
            .borrow()
            .front()
            .is_some_and(|first| Rc::ptr_eq(first, &self.ticket))
    }

    /// Whether it is to leave for somebody before it.
    pub(crate) fn is_shed(&self) -> bool {
        self.ticket.shed.get()
    }

    /// Of those who wait for connections of this kind.
    pub(crate) fn is_first_of_its_kind(&self) -> bool {
        let kind = self.ticket.kind.as_ref();
        kind.is_some_and(|(_, kind)| {
            kind.line
                .borrow()
                .front()
                .is_some_and(|first| Rc::ptr_eq(first, &self.ticket))
        })
    }

    /// Resolves when it is the first and something may be free, or was offered something.
    pub(crate) async fn called(&self) {
        self.ticket.called.wait().await;
    }

    /// Its rank.
    pub(crate) fn since(&self) -> Instant {
        self.ticket.since
    }

    pub(crate) fn key(&self) -> Option<&Key> {
        self.ticket.kind.as_ref().map(|(key, _)| key)
    }

    /// Whether it was offered something, which ends with that.
    pub(crate) fn has_looked(&self) -> bool {
        let offered = self.ticket.offered.take();
        if let Some((_, kind)) = self.ticket.kind.as_ref().filter(|_| offered) {
            kind.offered.set(kind.offered.get().saturating_sub(1));
        }
        offered
    }

    /// Offers what is idle to the next behind it who waits for the same.
    pub(crate) fn offer_next(&self) {
        if let Some((_, kind)) = &self.ticket.kind {
            let at = place_of(&kind.line.borrow(), &self.ticket);
            kind.offer_from(at.map_or(0, |at| at + 1));
        }
    }
}

/// Takes a ticket out of a line; where it stood.
fn leave(line: &RefCell<Line>, ticket: &Rc<Ticket>) -> Option<usize> {
    let mut line = line.borrow_mut();
    let at = place_of(&line, ticket)?;
    line.remove(at).map(|_| at)
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        leave(&self.queue.line, &self.ticket);
        if self.ticket.is_slow {
            leave(&self.queue.slow, &self.ticket);
        }
        if let Some((key, kind)) = &self.ticket.kind {
            let at = leave(&kind.line, &self.ticket);
            if self.has_looked() {
                // Without a look: it is the next one's.
                kind.offer_from(at.unwrap_or(0));
            }
            if kind.line.borrow().is_empty() {
                self.queue.kinds.borrow_mut().remove(key);
            }
        }
        self.queue.call();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ns: u64) -> Instant {
        Instant::from_ns(ns)
    }

    #[test]
    fn the_first_who_came_is_the_first_who_is_served() {
        let queue = Queue::default();
        let one = queue.join(at(1));
        let two = queue.join(at(2));
        let three = queue.join(at(3));
        assert!(one.is_first() && !two.is_first());
        drop(two);
        drop(one);
        assert!(three.is_first());
        assert_eq!(queue.first_since(), Some(at(3)));
        drop(three);
        assert!(queue.is_empty());
    }

    #[test]
    fn what_is_offered_goes_down_the_line_to_those_who_want_it() {
        let queue = Queue::default();
        let key = |user: &str| {
            Some(Key {
                user: user.into(),
                caps: 0,
                client: None,
            })
        };
        let ours = Key {
            user: "ours".into(),
            caps: 0,
            client: None,
        };
        let one = queue.join_for(at(1), key("ours"), false);
        let _other = queue.join_for(at(2), key("other"), true);
        let _new = queue.join_for(at(3), None, false);
        let (two, three) = (
            queue.join_for(at(4), key("ours"), false),
            queue.join_for(at(5), key("ours"), false),
        );
        assert_eq!(
            (queue.first_since_for(&ours), queue.first_slow_since()),
            (Some(at(1)), Some(at(2)))
        );
        queue.offer(&ours);
        assert!(queue.is_offered(&ours, at(9)) && !queue.is_offered(&ours, at(1)));
        // Another comes free before the first has looked.
        queue.offer(&ours);
        assert!(one.has_looked() && !one.has_looked());
        assert!(queue.is_offered(&ours, at(9)) && !queue.is_offered(&ours, at(4)));
        // Who leaves without a look passes it on.
        drop(two);
        assert!(three.has_looked() && !queue.is_offered(&ours, at(9)));
        // The last has nobody behind it.
        three.offer_next();
        assert!(!queue.is_offered(&ours, at(9)));
        one.offer_next();
        assert!(three.has_looked());
        drop((one, three));
        assert!(!queue.waits_for(&ours));
    }

    #[test]
    #[expect(
        clippy::disallowed_methods,
        reason = "how long it takes is what is tested, and nothing runs here"
    )]
    fn thousands_who_wait_cost_nobody_anything() {
        let key = |user: &str| Key {
            user: user.into(),
            caps: 0,
            client: None,
        };
        let (ours, other) = (key("ours"), key("other"));
        let time = |waiting: u64| {
            let queue = Queue::default();
            let others: Vec<_> = (0..waiting)
                .map(|n| queue.join_for(at(n), Some(ours.clone()), false))
                .collect();
            let last = queue.join_for(at(waiting), Some(other.clone()), false);
            let begun = std::time::Instant::now();
            for _ in 0..20_000 {
                assert!(
                    !queue.is_offered(&ours, at(waiting)) && !queue.is_offered(&other, at(waiting))
                );
                assert!(
                    queue.waits_for(&other) && queue.first_since_for(&other) == Some(at(waiting))
                );
                queue.offer(&other);
                assert!(last.has_looked());
                last.offer_next();
            }
            let took = begun.elapsed();
            drop(others);
            assert!(queue.len() == 1 && !queue.waits_for(&ours));
            took
        };
        let (few, many) = (time(2), time(10_000));
        assert!(
            many < few * 20,
            "{few:?} with two in line, {many:?} with ten thousand"
        );
    }

    #[test]
    fn the_first_rank_is_the_first_and_the_last_is_shed() {
        let queue = Queue::default();
        let standing = |rank, came| Standing {
            rank: at(rank),
            came: at(came),
            priority: 5,
        };
        let low = queue.join(standing(100, 1));
        let high = queue.join(standing(50, 2));
        let middle = queue.join(standing(70, 3));
        assert!(high.is_first());
        assert_eq!(
            (
                queue.first_since(),
                queue.longest_since(),
                queue.last_since()
            ),
            (Some(at(50)), Some(at(1)), Some(at(100)))
        );
        assert!(!queue.shed_last(at(100)) && !low.is_shed());
        assert!(queue.shed_last(at(60)) && low.is_shed());
        // It has not gone yet, and nobody leaves for it twice.
        assert!(queue.shed_last(at(60)) && middle.is_shed());
        assert!(!queue.shed_last(at(60)) && !high.is_shed());
        drop((low, middle));
        assert_eq!(queue.last_since(), Some(at(50)));
    }

    #[test]
    fn who_comes_back_stands_where_it_stood() {
        let queue = Queue::default();
        let _later = queue.join(at(5));
        let back = queue.join(at(2));
        assert!(back.is_first());
        // Of two who came at once, the one that was here is before the one that joins.
        assert!(!queue.join(at(2)).is_first());
    }
}
