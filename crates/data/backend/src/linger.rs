//! Sessions that keep a connection in their silence only because of what it remembers for them, such as the id of an insert. Most come back at once. One
//! that does not leaves it when its time is over, or sooner, when somebody would open a connection for want of it.

use rt::Instant;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

/// Who has been silent for less is about to say something: it would have to be brought back at once.
const SILENT_MIN: Duration = Duration::from_millis(1);

/// A session that may be told to leave what it keeps.
pub trait Lingers {
    /// Whether it has been silent since then, and lingers.
    fn is_silent_since(&self, since: Instant) -> bool;
    /// It is to leave.
    fn leave(&self);
}

/// Those of a hostgroup on this core, in the order in which they fell silent.
#[derive(Default)]
pub(crate) struct Lingering(RefCell<VecDeque<(Instant, Rc<dyn Lingers>)>>);

impl Lingering {
    pub(crate) fn add(&self, since: Instant, who: Rc<dyn Lingers>) {
        self.forget_gone();
        self.0.borrow_mut().push_back((since, who));
    }

    /// Whether there is one that could leave.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.forget_gone();
        self.0.borrow().front().is_some_and(|(since, _)| now - *since >= SILENT_MIN)
    }

    /// Tells the one that has been silent for longest to leave; whether there is one.
    pub(crate) fn press(&self, now: Instant) -> bool {
        if !self.is_due(now) {
            return false;
        }
        let first = self.0.borrow_mut().pop_front();
        first.inspect(|(_, who)| who.leave()).is_some()
    }

    /// Nobody lingers for long, so there is little behind the first that does.
    fn forget_gone(&self) {
        let mut all = self.0.borrow_mut();
        while all.front().is_some_and(|(since, who)| !who.is_silent_since(*since)) {
            all.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    struct Session(Cell<Option<Instant>>, Cell<bool>);

    impl Lingers for Session {
        fn is_silent_since(&self, since: Instant) -> bool {
            self.0.get() == Some(since)
        }

        fn leave(&self) {
            self.1.set(true);
        }
    }

    #[test]
    fn the_one_that_is_silent_for_longest_leaves_and_who_came_back_does_not() {
        let at = |ms: u64| Instant::from_ns(ms * 1_000_000);
        let session = |since| Rc::new(Session(Cell::new(Some(at(since))), Cell::new(false)));
        let all = [session(1), session(2), session(3)];
        let lingering = Lingering::default();
        assert!(!lingering.press(at(9)));
        for one in &all {
            lingering.add(one.0.get().unwrap(), one.clone());
        }
        all[0].0.set(Some(at(4)));
        lingering.add(at(4), all[0].clone());
        // Nobody has been silent for so long.
        assert!(!lingering.press(at(2)));
        assert!(lingering.press(at(5)));
        let told = || all.iter().map(|one| one.1.get()).collect::<Vec<_>>();
        assert_eq!(told(), [false, true, false]);
        all[2].0.set(None);
        assert!(lingering.is_due(at(9)) && lingering.press(at(9)) && !lingering.press(at(99)));
        assert_eq!(told(), [true, true, false]);
        assert!(lingering.0.borrow().is_empty());
    }
}
