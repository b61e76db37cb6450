//! Who fetches what just now, as far as this core knows, so that others can wait for it instead of
//! asking the same.

use rt::local::Notify;
use std::cell::RefCell;
use std::rc::Rc;

type ByKey = hashbrown::HashMap<Box<[u8]>, Rc<Flight>, foldhash::fast::RandomState>;

/// Statements on their way to a server and back, by key. One core's.
#[derive(Default)]
pub struct Flights(Rc<RefCell<ByKey>>);

impl std::fmt::Debug for Flights {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} flights", self.0.borrow().len())
    }
}

/// A statement on its way. Whoever waits hears of its end, also when it fails.
pub struct Flight {
    landed: Notify,
    over: std::cell::Cell<bool>,
}

impl std::fmt::Debug for Flight {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Flight")
    }
}

impl Flight {
    /// Resolves when it has ended.
    pub async fn ended(&self) {
        while !self.over.get() {
            self.landed.wait().await;
        }
    }
}

impl Flights {
    /// Whoever fetches this already.
    #[must_use]
    pub fn find(&self, key: &[u8]) -> Option<Rc<Flight>> {
        self.0.borrow().get(key).cloned()
    }

    /// This session fetches it now. Others wait until what is returned is dropped. An older one of
    /// the same key goes on unseen.
    #[must_use]
    pub fn begin(&self, key: &[u8]) -> Landing {
        let flight = Rc::new(Flight {
            landed: Notify::new(),
            over: std::cell::Cell::new(false),
        });
        self.0.borrow_mut().insert(key.into(), flight.clone());
        Landing {
            flights: Self(self.0.clone()),
            key: key.into(),
            flight,
        }
    }
}

/// Ends a flight when dropped: the session may be done, have failed or be gone.
pub struct Landing {
    flights: Flights,
    key: Box<[u8]>,
    flight: Rc<Flight>,
}

impl std::fmt::Debug for Landing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Landing")
    }
}

impl Drop for Landing {
    fn drop(&mut self) {
        let mut all = self.flights.0.borrow_mut();
        if all
            .get(&self.key)
            .is_some_and(|flight| Rc::ptr_eq(flight, &self.flight))
        {
            all.remove(&self.key);
        }
        drop(all);
        self.flight.over.set(true);
        self.flight.landed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flight_that_is_given_up_is_over_and_forgotten() {
        let flights = Flights::default();
        assert!(flights.find(b"k").is_none());
        let landing = flights.begin(b"k");
        let seen = flights.find(b"k").unwrap();
        assert!(!seen.over.get());
        let second = flights.begin(b"k");
        drop(landing);
        assert!(seen.over.get());
        assert!(flights.find(b"k").is_some(), "the second one goes on");
        drop(second);
        assert!(flights.find(b"k").is_none());
    }
}
