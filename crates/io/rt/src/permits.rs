//! Limits over all cores: one counter per key (a server's `max_connections`, a user's), shared by
//! every thread.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// All counters of the process by name. Cloning shares them.
#[derive(Clone, Default)]
pub struct Registry {
    all: Arc<Mutex<HashMap<String, Arc<Permits>>>>,
    lines: Arc<AtomicUsize>,
}

/// Lines of waiting tasks that are told apart; with more cores than that, some share one, and are a
/// little less fair.
const LINES: usize = 64;
/// With so many counters, and each time that they are twice as many, those that nobody has are
/// forgotten.
const UNUSED_MAX: usize = 1024;
/// Nobody waits.
const NOBODY: u64 = u64::MAX;

impl Registry {
    /// A registry without counters.
    pub fn new() -> Self {
        Self::default()
    }

    /// The counter of `key`, made at the first request. Takes a lock: ask once and keep the answer.
    pub fn get(&self, key: &str) -> Arc<Permits> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = all.get(key) {
            return found.clone();
        }
        if all.len() >= UNUSED_MAX && all.len().is_power_of_two() {
            all.retain(|_, known| Arc::strong_count(known) > 1 || known.taken() > 0);
        }
        let made = Arc::new(Permits::default());
        all.insert(key.to_string(), made.clone());
        made
    }

    /// A number for a core's line of waiting tasks.
    pub fn line(&self) -> usize {
        self.lines.fetch_add(1, Ordering::Relaxed) % LINES
    }
}

/// One counter, alone on its cache line so that two servers never slow each other down.
#[repr(align(128))]
#[derive(Default)]
pub struct Permits {
    taken: AtomicU32,
    wanted: AtomicU32,
    /// Since when the first of each core's line waits; made when somebody waits for the first time.
    lines: OnceLock<Box<[AtomicU64; LINES]>>,
}

impl Permits {
    /// Takes one permit unless `max` are taken already.
    pub fn try_take(&self, max: u32) -> bool {
        self.taken
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, |n| {
                (n < max).then(|| n + 1)
            })
            .is_ok()
    }

    /// Gives one permit back. Giving more than was taken is a bug of the caller and leaves the
    /// counter at 0.
    pub fn give(&self) {
        let before = self
            .taken
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, |n| n.checked_sub(1));
        debug_assert!(before.is_ok(), "a permit was given back that nobody took");
    }

    /// How many are taken now.
    pub fn taken(&self) -> u32 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Says since when (nanoseconds of the clock that all cores share) the first in this line
    /// waits.
    pub fn wait_since(&self, line: usize, ns: u64) {
        let lines = self
            .lines
            .get_or_init(|| Box::new([const { AtomicU64::new(NOBODY) }; LINES]));
        if lines[line % LINES].swap(ns.min(NOBODY - 1), Ordering::AcqRel) == NOBODY {
            self.wanted.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Nobody in this line waits any more.
    pub fn wait_no_more(&self, line: usize) {
        let Some(lines) = self.lines.get() else {
            return;
        };
        if lines[line % LINES].swap(NOBODY, Ordering::AcqRel) != NOBODY {
            self.wanted.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Since when the one waits that waits longest in a line other than this one.
    pub fn waits_elsewhere(&self, line: usize) -> Option<u64> {
        let lines = self.lines.get()?;
        let others = lines
            .iter()
            .enumerate()
            .filter(|(at, _)| *at != line % LINES);
        others
            .map(|(_, since)| since.load(Ordering::Relaxed))
            .min()
            .filter(|since| *since != NOBODY)
    }

    /// How many lines wait.
    pub fn wanted(&self) -> u32 {
        self.wanted.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_that_nobody_has_are_forgotten() {
        let registry = Registry::new();
        let held = registry.get("held");
        registry.get("taken").try_take(1);
        for n in 0..10 * UNUSED_MAX {
            drop(registry.get(&format!("opened in hostgroup {n}")));
        }
        assert!(registry.all.lock().unwrap().len() <= UNUSED_MAX + 2);
        assert!(Arc::ptr_eq(&held, &registry.get("held")));
        assert_eq!(registry.get("taken").taken(), 1);
    }

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
    fn a_line_sees_who_waits_in_the_others() {
        let registry = Registry::new();
        let (a, b) = (registry.line(), registry.clone().line());
        let permits = registry.get("x");
        assert_eq!((permits.wanted(), permits.waits_elsewhere(a)), (0, None));
        permits.wait_since(b, 7);
        permits.wait_since(b, 9);
        assert_eq!(
            (
                permits.wanted(),
                permits.waits_elsewhere(a),
                permits.waits_elsewhere(b)
            ),
            (1, Some(9), None)
        );
        permits.wait_no_more(b);
        permits.wait_no_more(b);
        assert_eq!((permits.wanted(), permits.waits_elsewhere(a)), (0, None));
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
