//! How long a core does not look at its sockets: what its turns take, by the clock and of the
//! processor.
//!
//! A turn is all that tasks do between two looks at the kernel. One that is long by the clock and
//! short of the processor was kept waiting by the machine; one that is long of both is our own
//! doing, and everybody on this core has waited for it.

use std::cell::Cell;

/// A turn that takes more is counted: somebody may have noticed.
pub const LONG_US: u64 = 5_000;

/// Asking how much of the processor a thread has had is a system call. It is done at most so often,
/// and the answer taken for that at the beginning of turns so much later; so the processor's share
/// of a turn is at most this much less than told.
const ASKED_EVERY_NS: u64 = 1_000_000;

/// Number and times of a core's turns since it began, or since they were counted anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Turns {
    /// How many.
    pub count: u64,
    /// Microseconds that they took together.
    pub busy_us: u64,
    /// Microseconds that the longest took.
    pub longest_us: u64,
    /// Microseconds of the processor that a turn took at most; looked at only where that can be
    /// more than a millisecond.
    pub longest_cpu_us: u64,
    /// How many took longer than [`LONG_US`].
    pub long: u64,
    /// How many took more of the processor than that.
    pub long_cpu: u64,
}

/// The clock of a core's turns.
#[derive(Default)]
pub(crate) struct Clockwork {
    began_ns: Cell<u64>,
    /// The clock and the processor's time when they were last asked together; never after
    /// `began_ns`.
    asked_ns: Cell<u64>,
    asked_cpu_ns: Cell<u64>,
    busy_ns: Cell<u64>,
    turns: Cell<Turns>,
}

impl Clockwork {
    /// The first turn begins.
    pub(crate) fn starting(now_ns: u64, cpu_ns: u64) -> Self {
        Self {
            began_ns: now_ns.into(),
            asked_ns: now_ns.into(),
            asked_cpu_ns: cpu_ns.into(),
            ..Self::default()
        }
    }

    /// A turn begins.
    pub(crate) fn begin(&self, now_ns: u64, cpu_ns: impl FnOnce() -> u64) {
        self.began_ns.set(now_ns);
        if now_ns.saturating_sub(self.asked_ns.get()) >= ASKED_EVERY_NS {
            self.asked_cpu_ns.set(cpu_ns());
            self.asked_ns.set(now_ns);
        }
    }

    /// Notes that a turn ends.
    pub(crate) fn end(&self, now_ns: u64, cpu_ns: impl FnOnce() -> u64) {
        let took_ns = now_ns.saturating_sub(self.began_ns.get());
        self.busy_ns.set(self.busy_ns.get() + took_ns);
        let mut turns = self.turns.get();
        turns.count += 1;
        turns.longest_us = turns.longest_us.max(took_ns / 1_000);
        if took_ns >= ASKED_EVERY_NS {
            let cpu_us = cpu_ns()
                .saturating_sub(self.asked_cpu_ns.get())
                .min(took_ns)
                / 1_000;
            turns.longest_cpu_us = turns.longest_cpu_us.max(cpu_us);
            turns.long += u64::from(took_ns / 1_000 > LONG_US);
            turns.long_cpu += u64::from(cpu_us > LONG_US);
        }
        self.turns.set(turns);
    }

    /// Returns what was counted; with `reset` the count begins anew.
    pub(crate) fn told(&self, reset: bool) -> Turns {
        let turns = Turns {
            busy_us: self.busy_ns.get() / 1_000,
            ..self.turns.get()
        };
        if reset {
            self.turns.set(Turns::default());
            self.busy_ns.set(0);
        }
        turns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_that_waited_for_the_machine_is_told_from_one_that_computed() {
        const MS: u64 = 1_000_000;
        let clock = Clockwork::starting(99 * MS, 9 * MS);
        clock.end(99 * MS + 200_000, || {
            panic!("the first turn did not begin when the machine did")
        });
        clock.begin(100 * MS, || 10 * MS);
        clock.end(100 * MS + 300_000, || {
            panic!("a short turn costs no system call")
        });
        clock.begin(100 * MS + 400_000, || {
            panic!("asked less than a millisecond ago")
        });
        clock.end(120 * MS, || 12 * MS);
        clock.begin(121 * MS, || 13 * MS);
        clock.end(128 * MS, || 20 * MS);
        let told = Turns {
            count: 4,
            busy_us: 27_100,
            longest_us: 19_600,
            longest_cpu_us: 7_000,
            long: 2,
            long_cpu: 1,
        };
        assert_eq!(clock.told(true), told);
        assert_eq!(clock.told(false), Turns::default());
    }

    #[test]
    fn a_turn_has_no_more_of_the_processor_than_it_took() {
        let clock = Clockwork::default();
        clock.begin(2_000_000, || 0);
        clock.begin(2_900_000, || 0);
        clock.end(3_900_000, || 1_900_000);
        assert_eq!(clock.told(false).longest_cpu_us, 1_000);
    }
}
