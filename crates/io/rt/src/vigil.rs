//! How long a core that has nothing to do looks at its sockets before it sleeps.
//!
//! To sleep and to be woken costs either side some microseconds, and one who sends a statement as
//! soon as he has the answer to the one before sends it in little more than that. A core that is to
//! be watchful looks again and again for a short time, then sleeps; but only where that has just
//! been worth it. One whose clients are silent or slow sleeps at once, and where looking does not
//! help (nobody else gets the processor meanwhile, say) it is tried ever more seldom.

use std::cell::Cell;
use std::time::Duration;

/// A sleep that was no longer than so many looks says that somebody is quick.
const QUICK_LOOKS: u64 = 4;

/// After so many looks in vain they do not become more seldom any more: one in 64 waits.
const MISSES_MAX: u32 = 6;

pub(crate) struct Vigil {
    /// Nanoseconds that one looks at most; 0 for not at all.
    look_ns: u64,
    /// The last wait was a short one.
    quick: Cell<bool>,
    /// Looks in a row that were in vain.
    misses: Cell<u32>, // <= MISSES_MAX
    /// Waits that are to be slept through before the next look.
    pause: Cell<u32>, // < 1 << MISSES_MAX
}

impl Vigil {
    pub(crate) fn new(look: Duration) -> Self {
        let look_ns = u64::try_from(look.as_nanos()).unwrap_or(u64::MAX);
        Self {
            look_ns,
            quick: Cell::new(false),
            misses: Cell::new(0),
            pause: Cell::new(0),
        }
    }

    /// Whether one ever looks before one sleeps.
    pub(crate) fn is_kept(&self) -> bool {
        self.look_ns > 0
    }

    /// A wait begins: nanoseconds to look before one sleeps; `None` for sleeping at once.
    pub(crate) fn begins(&self) -> Option<u64> {
        if !self.is_kept() || !self.quick.get() {
            return None;
        }
        let pause = self.pause.get();
        self.pause.set(pause.saturating_sub(1));
        (pause == 0).then_some(self.look_ns)
    }

    /// A look has found something, after so many nanoseconds. One that came late was as good as
    /// none: somebody else had the processor.
    pub(crate) fn found(&self, after_ns: u64) {
        if after_ns <= self.look_ns {
            self.misses.set(0);
        } else {
            self.missed();
        }
    }

    /// Notes that a look has found nothing.
    pub(crate) fn missed(&self) {
        let misses = (self.misses.get() + 1).min(MISSES_MAX);
        self.misses.set(misses);
        self.pause.set((1 << misses) - 1);
    }

    /// A wait that ended in a sleep is over; it took so many nanoseconds in all.
    pub(crate) fn slept(&self, ns: u64) {
        self.quick
            .set(ns <= self.look_ns.saturating_mul(QUICK_LOOKS));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_quick_is_looked_for_and_who_is_slow_is_not() {
        let vigil = Vigil::new(Duration::from_micros(50));
        assert_eq!(vigil.begins(), None, "nobody was quick yet");
        vigil.slept(150_000);
        for _ in 0..100 {
            assert_eq!(vigil.begins(), Some(50_000));
            vigil.found(20_000);
        }
        assert_eq!(vigil.begins(), Some(50_000));
        vigil.missed();
        vigil.slept(3_000_000);
        for _ in 0..100 {
            assert_eq!(vigil.begins(), None, "he has gone away");
            vigil.slept(3_000_000);
        }
    }

    #[test]
    fn looks_that_are_in_vain_become_seldom() {
        let vigil = Vigil::new(Duration::from_micros(50));
        vigil.slept(100_000);
        let mut looks = 0;
        for _ in 0..6400 {
            match vigil.begins() {
                Some(_) if looks % 2 == 0 => {
                    looks += 1;
                    vigil.found(3_000_000);
                }
                Some(_) => {
                    looks += 1;
                    vigil.missed();
                    vigil.slept(100_000);
                }
                None => vigil.slept(100_000),
            }
        }
        assert!((100..=106).contains(&looks), "{looks}");
        // One that is worth it, and all is as before.
        while vigil.begins().is_none() {}
        vigil.found(10_000);
        assert!(vigil.begins().is_some());
    }

    #[test]
    fn a_core_that_is_not_to_be_watchful_sleeps() {
        let vigil = Vigil::new(Duration::ZERO);
        vigil.slept(0);
        assert_eq!(vigil.begins(), None);
    }
}
