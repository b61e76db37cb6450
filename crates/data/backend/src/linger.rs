//! Sessions that keep a connection in their silence only because of what it remembers for them,
//! such as the id of an insert. Most come back at once. One that does not leaves it when its time
//! is over, or sooner, when somebody would open a connection for want of it.

use crate::backend::Key;
use rt::Instant;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

/// Who has been silent for less is about to say something: it would have to be brought back at
/// once.
const SILENT_MIN: Duration = Duration::from_millis(1);

/// A session that may be told to leave what it keeps.
pub trait Lingers {
    /// Whether it has been silent since then, and lingers.
    fn is_silent_since(&self, since: Instant) -> bool;
    /// It is to leave.
    fn leave(&self);
}

struct Lingerer {
    since: Instant,
    /// By then it leaves by itself.
    until: Instant,
    key: Key,
    who: Rc<dyn Lingers>,
}

/// Those of a hostgroup on this core, in the order in which they fell silent.
#[derive(Default)]
pub(crate) struct Lingering(RefCell<VecDeque<Lingerer>>);

impl Lingering {
    pub(crate) fn add(&self, since: Instant, until: Instant, key: Key, who: Rc<dyn Lingers>) {
        self.forget_gone(since);
        self.0.borrow_mut().push_back(Lingerer {
            since,
            until,
            key,
            who,
        });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// Whether there is one that could leave a connection that would serve this user.
    pub(crate) fn is_due(&self, now: Instant, key: &Key) -> bool {
        self.find(now, key).is_some()
    }

    /// Tells the one of those that has been silent for longest to leave; whether there is one.
    pub(crate) fn press(&self, now: Instant, key: &Key) -> bool {
        let found = self
            .find(now, key)
            .and_then(|at| self.0.borrow_mut().remove(at));
        found.inspect(|found| found.who.leave()).is_some()
    }

    fn find(&self, now: Instant, key: &Key) -> Option<usize> {
        self.forget_gone(now);
        let due = |one: &Lingerer| {
            now - one.since >= SILENT_MIN
                && one.key == *key
                && now < one.until
                && one.who.is_silent_since(one.since)
        };
        self.0.borrow().iter().position(due)
    }

    /// Nobody lingers for long, so there is little behind the first that does.
    fn forget_gone(&self, now: Instant) {
        let mut all = self.0.borrow_mut();
        while all
            .front()
            .is_some_and(|one| one.until <= now || !one.who.is_silent_since(one.since))
        {
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
        let key = |user: &str| Key {
            user: user.into(),
            caps: 0,
            client: None,
        };
        let (ours, other) = (key("app"), key("other"));
        let all = [session(1), session(2), session(3), session(3)];
        let lingering = Lingering::default();
        assert!(!lingering.press(at(9), &ours));
        let add = |who: &Rc<Session>, key: &Key, until| {
            lingering.add(
                who.0.get().expect("silent"),
                at(until),
                key.clone(),
                who.clone(),
            )
        };
        for (who, key) in all.iter().zip([&ours, &ours, &ours, &other]) {
            add(who, key, 20);
        }
        all[0].0.set(Some(at(4)));
        add(&all[0], &ours, 20);
        // Nobody has been silent for so long.
        assert!(!lingering.press(at(2), &ours));
        assert!(lingering.press(at(5), &ours));
        let told = || all.iter().map(|one| one.1.get()).collect::<Vec<_>>();
        assert_eq!(told(), [false, true, false, false]);
        all[2].0.set(None);
        assert!(
            lingering.is_due(at(9), &ours)
                && lingering.press(at(9), &ours)
                && !lingering.press(at(9), &ours)
        );
        assert!(lingering.press(at(9), &other));
        assert_eq!(told(), [true, true, false, true]);
    }

    #[test]
    fn those_whose_time_is_over_are_forgotten_though_they_look_silent() {
        let at = |ms: u64| Instant::from_ns(ms * 1_000_000);
        let key = Key {
            user: "app".into(),
            caps: 0,
            client: None,
        };
        let lingering = Lingering::default();
        for since in 0..100 {
            // They have left, without a word.
            lingering.add(
                at(since),
                at(since + 5),
                key.clone(),
                Rc::new(Session(Cell::new(Some(at(since))), Cell::new(false))),
            );
        }
        assert_eq!(lingering.0.borrow().len(), 5);
        assert!(!lingering.is_due(at(200), &key) && lingering.0.borrow().is_empty());
    }
}
