//! Limits over all cores: one counter per key (a server's `max_connections`, a user's), shared by every thread.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// All counters of the process by name. Cloning shares them.
#[derive(Clone, Default)]
pub struct Registry(Arc<Mutex<HashMap<String, Arc<Permits>>>>);

impl Registry {
    /// A registry without counters.
    pub fn new() -> Self {
        Self::default()
    }

    /// The counter of `key`, made at the first request. Takes a lock: ask once and keep the answer.
    pub fn get(&self, key: &str) -> Arc<Permits> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = all.get(key) {
            return found.clone();
        }
        let made = Arc::new(Permits::default());
        all.insert(key.to_string(), made.clone());
        made
    }
}

/// One counter, alone on its cache line so that two servers never slow each other down.
#[repr(align(128))]
#[derive(Default)]
pub struct Permits {
    taken: AtomicU32,
    wanted: AtomicU32,
}

impl Permits {
    /// Takes one permit unless `max` are taken already.
    pub fn try_take(&self, max: u32) -> bool {
        self.taken.fetch_update(Ordering::AcqRel, Ordering::Relaxed, |n| (n < max).then(|| n + 1)).is_ok()
    }

    /// Gives one permit back. Giving more than was taken is a bug of the caller and leaves the counter at 0.
    pub fn give(&self) {
        let before = self.taken.fetch_update(Ordering::AcqRel, Ordering::Relaxed, |n| n.checked_sub(1));
        debug_assert!(before.is_ok(), "a permit was given back that nobody took");
    }

    /// How many are taken now.
    pub fn taken(&self) -> u32 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Says that somebody waits for a permit, so that holders of idle ones can let go.
    pub fn want(&self) {
        self.wanted.fetch_add(1, Ordering::AcqRel);
    }

    /// Takes a `want` back.
    pub fn unwant(&self) {
        let before = self.wanted.fetch_update(Ordering::AcqRel, Ordering::Relaxed, |n| n.checked_sub(1));
        debug_assert!(before.is_ok(), "a want was taken back that nobody made");
    }

    /// How many wait.
    pub fn wanted(&self) -> u32 {
        self.wanted.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_key_is_one_counter_and_the_limit_holds() {
        let registry = Registry::new();
        let (a, b) = (registry.get("db1:3306"), registry.clone().get("db1:3306"));
        assert!(a.try_take(2) && b.try_take(2));
        assert!(!a.try_take(2));
        b.give();
        assert_eq!(a.taken(), 1);
        assert_eq!(registry.get("db2:3306").taken(), 0);
    }

    #[test]
    fn threads_never_take_more_than_the_limit() {
        let permits = Registry::new().get("x");
        std::thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| {
                    for _ in 0..10_000 {
                        if permits.try_take(3) {
                            assert!(permits.taken() <= 3);
                            permits.give();
                        }
                    }
                });
            }
        });
        assert_eq!(permits.taken(), 0);
    }
}
