//! What is known of a server for the choice among those of its hostgroup.

use rt::Instant;
use std::cell::Cell;
use std::time::Duration;

/// After so long without an answer the mean of a server counts half: it is tried again.
const HALVES: Duration = Duration::from_secs(10);

/// Reasons to choose a server of its hostgroup, or another.
#[derive(Default)]
pub(crate) struct Choice {
    /// How far it is ahead of its turn among the servers of its hostgroup, or behind.
    pub(crate) credit: Cell<i64>,
    /// Its weight is 0, and it serves when no other can.
    pub(crate) is_last: Cell<bool>,
    /// For so long after its return it gets its weight little by little.
    pub(crate) slow_start: Cell<Duration>,
    /// Whether it served when servers were placed last; `None` before.
    pub(crate) served: Cell<Option<bool>>,
    /// When it began to serve although others of its hostgroup already did, or again.
    pub(crate) back_since: Cell<Option<Instant>>,
    /// Whether its answers are timed.
    pub(crate) is_timed: Cell<bool>,
    pub(crate) answers: Answers,
}

/// How long a server takes to begin its answers, as this core has seen it.
#[derive(Default)]
pub(crate) struct Answers {
    mean_ns: Cell<u64>,
    last: Cell<Option<Instant>>,
}

impl Answers {
    /// An answer began. An error is soon said, and does not speak for a server.
    pub(crate) fn add(&self, took: Duration, is_error: bool, now: Instant) {
        let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let mean = self.mean_ns.get();
        let is_known = self.last.get().is_some_and(|last| now - last < HALVES);
        if is_error && took < mean {
            return;
        }
        self.mean_ns.set(if is_known {
            mean - mean / 8 + took / 8
        } else {
            took
        });
        self.last.set(Some(now));
    }

    /// The moving mean; 0 where nothing is known.
    pub(crate) fn mean_ns(&self, now: Instant) -> u64 {
        let halvings = self
            .last
            .get()
            .map_or(0, |last| (now - last).as_nanos() / HALVES.as_nanos());
        let halvings = u32::try_from(halvings).unwrap_or(u32::MAX);
        self.mean_ns.get().checked_shr(halvings).unwrap_or(0)
    }
}
