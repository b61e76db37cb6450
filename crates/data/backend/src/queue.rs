//! Who waits for a connection of a hostgroup on this core: one line, first come first served.
//!
//! Only the first of the line looks for a connection; the others sleep, so that thousands who wait cost nothing while they do.

use rt::Instant;
use rt::local::Notify;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// The line of a hostgroup.
#[derive(Default)]
pub(crate) struct Queue(RefCell<VecDeque<Rc<Ticket>>>);

struct Ticket {
    since: Instant,
    called: Notify,
}

impl Queue {
    /// Does nobody wait?
    pub(crate) fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.0.borrow().len()
    }

    /// Since when the first waits.
    pub(crate) fn first_since(&self) -> Option<Instant> {
        self.0.borrow().front().map(|ticket| ticket.since)
    }

    /// Calls the first: something may be free.
    pub(crate) fn call(&self) {
        if let Some(first) = self.0.borrow().front() {
            first.called.notify_one();
        }
    }

    /// Stand in line behind all who came before `since`: who failed to connect comes back to where it was.
    pub(crate) fn join(&self, since: Instant) -> Turn<'_> {
        let ticket = Rc::new(Ticket { since, called: Notify::new() });
        let mut line = self.0.borrow_mut();
        let at = line.iter().rposition(|other| other.since <= since).map_or(0, |at| at + 1);
        line.insert(at, ticket.clone());
        Turn { queue: self, ticket }
    }
}

/// A place in the line, left when dropped; then the next is called.
pub(crate) struct Turn<'a> {
    queue: &'a Queue,
    ticket: Rc<Ticket>,
}

impl Turn<'_> {
    pub(crate) fn is_first(&self) -> bool {
        self.queue.0.borrow().front().is_some_and(|first| Rc::ptr_eq(first, &self.ticket))
    }

    /// Resolves when it is the first and something may be free.
    pub(crate) async fn called(&self) {
        self.ticket.called.wait().await;
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut line = self.queue.0.borrow_mut();
        // Who leaves is the first, but for those who give up.
        if let Some(at) = line.iter().position(|other| Rc::ptr_eq(other, &self.ticket)) {
            line.remove(at);
        }
        drop(line);
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
    fn who_comes_back_stands_where_it_stood() {
        let queue = Queue::default();
        let _later = queue.join(at(5));
        let back = queue.join(at(2));
        assert!(back.is_first());
        // Of two who came at once, the one that was here is before the one that joins.
        assert!(!queue.join(at(2)).is_first());
    }
}
