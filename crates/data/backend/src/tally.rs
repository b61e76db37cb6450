//! A core's counters: plain numbers, written by one thread.

use bridge::{Counter, Counts};
use std::cell::Cell;

/// Counters of one core.
#[derive(Debug)]
pub struct Tally(Box<[Cell<u64>]>);

impl Default for Tally {
    fn default() -> Self {
        Self(vec![Cell::new(0); Counter::ALL.len()].into_boxed_slice())
    }
}

impl Tally {
    /// One more.
    pub fn up(&self, counter: Counter) {
        self.add(counter, 1);
    }

    /// One less of a gauge.
    pub fn down(&self, counter: Counter) {
        let cell = &self.0[counter as usize];
        cell.set(cell.get().wrapping_sub(1));
    }

    /// So many more.
    pub fn add(&self, counter: Counter, n: u64) {
        let cell = &self.0[counter as usize];
        cell.set(cell.get().wrapping_add(n));
    }

    /// All of them now.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::zero();
        for counter in Counter::ALL {
            counts.set(*counter, self.0[*counter as usize].get());
        }
        counts
    }
}
