//! Statements in flight at a server, where a hostgroup limits them. Each has a slot; cores share
//! slots as they share permits. The limit may follow how long answers take.

use config::Concurrency;
use plan::{Limit, Window};
use rt::Instant;
use rt::flow::{self, Flow, Size};
use rt::permits::Permits;
use std::cell::{Cell, OnceCell};
use std::sync::Arc;
use std::time::Duration;

/// A window of latencies.
const WINDOW: Size = Size {
    samples: 20,
    least_ns: 100_000_000,
    most_ns: 1_000_000_000,
};

const _WORDS_FIT: () = assert!(plan::LIMIT_WORDS == flow::WORDS);

/// One of the statements in flight at a server. Given back when dropped.
pub(crate) struct Slot(Arc<Permits>);

impl std::fmt::Debug for Slot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Slot({} taken)", self.0.taken())
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.give();
    }
}

/// The limit of statements in flight at a server, if its hostgroup has one.
#[derive(Default)]
pub(crate) struct InFlight {
    bounds: Cell<Option<Concurrency>>,
    permits: OnceCell<Arc<Permits>>,
}

impl InFlight {
    pub(crate) fn limit(&self) -> Option<(u32, &Arc<Permits>)> {
        let (bounds, permits) = (self.bounds.get()?, self.permits.get()?);
        let limit = permits.flow().limit().clamp(bounds.min, bounds.max);
        Some((limit, permits))
    }

    pub(crate) fn flow(&self) -> Option<(&Flow, u32)> {
        let permits = self.permits.get()?;
        Some((permits.flow(), permits.taken()))
    }

    /// Takes over whether statements are limited. `new`: their permits, over all cores.
    pub(crate) fn limits(&self, bounds: Option<Concurrency>, new: impl FnOnce() -> Arc<Permits>) {
        if let Some(bounds) = bounds {
            let permits = self.permits.get_or_init(new);
            permits.flow().begin(Limit::first(bounds).now());
        }
        self.bounds.set(bounds);
    }

    /// The slots of its statements in flight, if those are limited.
    pub(crate) fn slots(&self) -> Option<Arc<Permits>> {
        self.limit().map(|(_, permits)| permits.clone())
    }

    /// Whether statements in flight are limited.
    pub(crate) fn is_limited(&self) -> bool {
        self.bounds.get().is_some()
    }

    /// A slot, unless as many are taken as may be; where nothing is limited there are no slots.
    /// `waits`: who has no slot can wait for one; another takes one in any case.
    ///
    /// # Errors
    /// None is free.
    pub(crate) fn slot(&self, waits: bool) -> Result<Option<Slot>, ()> {
        let Some((limit, permits)) = self.limit() else {
            return Ok(None);
        };
        if !waits {
            permits.flow().saw(permits.take());
        } else if permits.try_take(limit) {
            permits.flow().saw(permits.taken());
        } else {
            return Err(());
        }
        Ok(Some(Slot(permits.clone())))
    }

    /// An answer has begun so long after it was asked for: the limit may follow.
    pub(crate) fn was_in_flight(&self, took: Duration, now: Instant) {
        let (Some(bounds), Some((flow, taken))) = (self.bounds.get(), self.flow()) else {
            return;
        };
        let took_ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let Some(closed) = flow.add(took_ns, taken, now.as_ns(), WINDOW) else {
            return;
        };
        let window = Window {
            answers: closed.samples,
            latency_ns: closed.mean_ns,
            most: closed.most,
            length_ns: closed.length_ns,
        };
        let before = Limit::from_words(flow.words()).unwrap_or_else(|| Limit::first(bounds));
        let limit = before.after(&window, bounds);
        closed.follows(limit.now(), limit.to_words());
    }
}
