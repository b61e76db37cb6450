//! What a hostgroup says of the line of its statements, and what came of it on this core.

use crate::hostgroup::queue::{Queue, Standing};
use crate::session::want::Want;
use bridge::AdmissionRow;
use config::{Order, PRIORITY_MAX};
use rt::Instant;
use rt::permits::Permits;
use std::cell::{Cell, OnceCell};
use std::sync::Arc;
use std::time::Duration;

/// So many priorities there are.
const PRIORITIES: usize = PRIORITY_MAX as usize + 1;

/// So far before others stands who must not wait for a slot.
const AHEAD: Duration = Duration::from_secs(3600);

/// Knowledge of the line of a hostgroup, beside who stands in it.
#[derive(Default)]
pub(crate) struct Admission {
    pub(crate) settings: Cell<config::Admission>,
    /// Whether statements in flight at its servers are limited.
    pub(crate) limited: Cell<bool>,
    /// Seats of those who wait, over all cores, where they are limited.
    pub(crate) seats: OnceCell<Arc<Permits>>,
    /// When somebody was last served who had waited, if others waited still.
    served: Cell<Option<Instant>>,
    /// Moving mean of the time from one to the next.
    gap_ns: Cell<u64>,
    counts: [Count; PRIORITIES],
}

/// Of one priority.
#[derive(Default)]
struct Count {
    served: Cell<u64>,
    shed: Cell<u64>,
}

impl Admission {
    /// Whether statements in flight at its servers are limited.
    pub(crate) fn is_limited(&self) -> bool {
        self.limited.get()
    }

    /// Where somebody stands in the line who comes now.
    pub(crate) fn standing(&self, want: &Want<'_>, came: Instant) -> Standing {
        let settings = self.settings.get();
        let rank = match settings.order {
            // Those in line may wait for slots that are taken by who waits for this one.
            _ if !want.waits && self.is_limited() => {
                let ahead = u64::try_from(AHEAD.as_nanos()).unwrap_or(u64::MAX);
                Instant::from_ns(came.as_ns().saturating_sub(ahead))
            }
            Order::Fifo => came,
            Order::Priority => {
                let rank_ns = plan::rank_ns(came.as_ns(), want.priority, want.cost_ns);
                Instant::from_ns(rank_ns)
            }
        };
        Standing {
            rank,
            came,
            priority: want.priority.min(PRIORITY_MAX),
        }
    }

    /// Whether statements wait by priority.
    pub(crate) fn is_by_priority(&self) -> bool {
        self.settings.get().order == Order::Priority
    }

    /// How long a statement waits at most, and whether that is less than otherwise.
    pub(crate) fn wait_max(&self, otherwise: Duration) -> (Duration, bool) {
        let own = u64::from(self.settings.get().queue_ms);
        let own = (own > 0).then(|| Duration::from_millis(own));
        let shorter = own.filter(|own| *own < otherwise);
        (shorter.unwrap_or(otherwise), shorter.is_some())
    }

    /// Somebody who has waited is served; others may wait still.
    pub(crate) fn has_served(&self, standing: Standing, now: Instant, others_wait: bool) {
        if !self.settings.get().is_used() {
            return;
        }
        if let Some(before) = self.served.get() {
            let gap = u64::try_from((now - before).as_nanos()).unwrap_or(u64::MAX);
            let mean = self.gap_ns.get();
            let new = if mean == 0 {
                gap
            } else {
                mean - mean / 8 + gap / 8
            };
            self.gap_ns.set(new.max(1));
        }
        self.served.set(others_wait.then_some(now));
        let served = &self.counts[usize::from(standing.priority)].served;
        served.set(served.get() + 1);
    }

    /// Milliseconds after which one more may be served, as far as this core knows.
    pub(crate) fn retry_ms(&self, now: Instant, queue: &Queue) -> u64 {
        let gap_ns = self.gap_ns.get();
        let waiting = queue.len() as u64;
        let longest = || {
            queue
                .longest_since()
                .map_or(Duration::ZERO, |since| now - since)
        };
        let ms = match gap_ns {
            0 => u64::try_from(longest().as_millis()).unwrap_or(u64::MAX),
            gap => gap.saturating_mul(waiting.max(1)).div_ceil(1_000_000),
        };
        ms.max(1)
    }

    /// Rows of `stats_millrace_admission`: of each priority of which somebody waits, or has.
    pub(crate) fn report(&self, hostgroup: u32, now: Instant, queue: &Queue) -> Vec<AdmissionRow> {
        let mut waiting = [(0, Duration::ZERO); PRIORITIES];
        if self.settings.get().is_used() {
            queue.each(|priority, came| {
                let (count, longest) = &mut waiting[usize::from(priority)];
                (*count, *longest) = (*count + 1, (now - came).max(*longest));
            });
        }
        let of = |(priority, (waiting, longest)): (u32, (u64, Duration))| {
            let count = &self.counts[priority as usize];
            let (served, shed) = (count.served.get(), count.shed.get());
            (waiting + served + shed > 0).then(|| AdmissionRow {
                hostgroup,
                priority,
                waiting,
                longest_wait_ms: u64::try_from(longest.as_millis()).unwrap_or(u64::MAX),
                served,
                shed,
            })
        };
        (0..).zip(waiting).filter_map(of).collect()
    }

    /// Somebody of this priority was sent away.
    pub(crate) fn has_shed(&self, priority: u8) {
        let shed = &self.counts[usize::from(priority)].shed;
        shed.set(shed.get() + 1);
    }
}
