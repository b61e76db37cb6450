//! Sessions that keep a connection in their silence only because of what it remembers for them,
//! such as the id of an insert or warnings. The connection is idle with a price: who needs one takes
//! the free ones first, then has a lingering one asked and given back, and only then opens another.

use crate::connection::place::Place;
use crate::session::key::Key;
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
    /// Since when it has been silent, if it lingers.
    fn lingers_since(&self) -> Option<Instant>;
    /// Tells the session to leave.
    fn leave(&self);
    /// Puts the session on the list of those that linger in this hostgroup, or takes it off;
    /// returns whether it was on it. A session may linger in several.
    fn is_listed(&self, hostgroup: u32, now: bool) -> bool;
}

struct Lingerer {
    key: Key,
    place: Rc<Place>,
    who: Rc<dyn Lingers>,
}

impl Lingerer {
    /// Takes the session off the list.
    fn is_struck_out(&self) {
        self.who.is_listed(self.place.server().hostgroup, false);
    }
}

/// Those of a hostgroup on this core, each once, in the order in which they began to linger.
#[derive(Default)]
pub(crate) struct Lingering(RefCell<VecDeque<Lingerer>>);

impl Lingering {
    pub(crate) fn add(&self, key: &Key, place: &Rc<Place>, who: &Rc<dyn Lingers>) {
        if !who.is_listed(place.server().hostgroup, true) {
            self.0.borrow_mut().push_back(Lingerer {
                key: key.clone(),
                place: place.clone(),
                who: who.clone(),
            });
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// Whether there is one that could leave a connection that would serve this user.
    pub(crate) fn is_due(&self, now: Instant, key: &Key) -> bool {
        self.find(now, |one| one.key == *key).is_some()
    }

    /// Tells the one of those that has lingered for longest to leave; whether there is one.
    pub(crate) fn press(&self, now: Instant, key: &Key) -> bool {
        self.press_where(now, |one| one.key == *key)
    }

    /// Tells one to leave whose connection makes room for another, whoever it is opened for.
    pub(crate) fn press_any(&self, now: Instant) -> bool {
        self.press_where(now, |_| true)
    }

    /// Tells all to leave whose server wants its connections back.
    pub(crate) fn press_of(&self, unwanted: impl Fn(&Place) -> bool) {
        self.0.borrow_mut().retain(|one| {
            let stays = !unwanted(&one.place);
            if !stays {
                one.is_struck_out();
                one.who.leave();
            }
            stays
        });
    }

    fn press_where(&self, now: Instant, fits: impl Fn(&Lingerer) -> bool) -> bool {
        let Some(at) = self.find(now, fits) else {
            return false;
        };
        let found = self.0.borrow_mut().remove(at);
        found
            .inspect(|found| {
                found.is_struck_out();
                found.who.leave();
            })
            .is_some()
    }

    /// The first that has been silent for long enough. Those that linger no more are passed over,
    /// and forgotten from the front on.
    fn find(&self, now: Instant, fits: impl Fn(&Lingerer) -> bool) -> Option<usize> {
        let mut all = self.0.borrow_mut();
        while let Some(one) = all.front()
            && one.who.lingers_since().is_none()
        {
            one.is_struck_out();
            all.pop_front();
        }
        let due = |one: &Lingerer| {
            let since = one.who.lingers_since();
            since.is_some_and(|since| now - since >= SILENT_MIN) && fits(one)
        };
        all.iter().position(due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    struct Session {
        since: Cell<Option<Instant>>,
        told: Cell<bool>,
        listed: Cell<bool>,
    }

    impl Lingers for Session {
        fn lingers_since(&self) -> Option<Instant> {
            self.since.get()
        }

        fn leave(&self) {
            self.told.set(true);
        }

        fn is_listed(&self, _hostgroup: u32, now: bool) -> bool {
            self.listed.replace(now)
        }
    }

    #[test]
    fn the_one_that_lingers_for_longest_leaves_and_who_came_back_does_not() {
        let at = |ms: u64| Instant::from_ns(ms * 1_000_000);
        let session = |since| {
            Rc::new(Session {
                since: Cell::new(Some(at(since))),
                told: Cell::new(false),
                listed: Cell::new(false),
            })
        };
        let key = |user: &str| Key {
            user: user.into(),
            caps: 0,
            client: None,
        };
        let (ours, other) = (key("app"), key("other"));
        let all = [session(4), session(1), session(3), session(3)];
        let lingering = Lingering::default();
        assert!(!lingering.press(at(9), &ours));
        let place = crate::testing::place();
        for (who, key) in all.iter().zip([&ours, &ours, &ours, &other]) {
            let who: Rc<dyn Lingers> = who.clone();
            lingering.add(key, &place, &who);
            // Once is enough.
            lingering.add(key, &place, &who);
        }
        // Nobody but one has been silent for long enough.
        assert!(!lingering.press(at(1), &ours));
        assert!(lingering.press(at(3), &ours));
        let told = || all.iter().map(|one| one.told.get()).collect::<Vec<_>>();
        assert_eq!(told(), [false, true, false, false]);
        all[0].since.set(None);
        assert!(
            lingering.is_due(at(9), &ours)
                && lingering.press(at(9), &ours)
                && !lingering.press(at(9), &ours)
        );
        assert_eq!(told(), [false, true, true, false]);
        assert!(lingering.press_any(at(9)) && lingering.is_empty());
        assert_eq!(told(), [false, true, true, true]);
        // It lingers again, and its server is taken away.
        all[0].since.set(Some(at(10)));
        let who: Rc<dyn Lingers> = all[0].clone();
        lingering.add(&ours, &place, &who);
        lingering.press_of(|_| true);
        assert!(all[0].told.get() && lingering.is_empty());
    }
}
