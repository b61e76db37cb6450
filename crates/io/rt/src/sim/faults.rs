//! Faults of a simulated world.

use std::time::Duration;

/// Faults of the network, and how often they happen. Probabilities are from 0 to 1; all zero is a
/// perfect network.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Faults {
    /// Bytes travel at least so long, one way.
    pub latency_min: Duration,
    /// ... and at most so long.
    pub latency_max: Duration,
    /// Arriving bytes come in two pieces, cut anywhere (and the second may be cut again).
    pub split: f64,
    /// The kernel takes only some of the bytes of a send at once.
    pub partial: f64,
    /// Some bytes, and all behind them on their connection, are late by up to `stall_max`.
    pub stall: f64,
    /// How late.
    pub stall_max: Duration,
    /// A send resets its connection instead.
    pub reset: f64,
    /// A connect is refused although somebody listens.
    pub refuse: f64,
    /// A connect is never answered: it fails after two minutes.
    pub lose_connect: f64,
    /// Ready tasks run in any order.
    pub shuffle: bool,
    /// The processor is slow: a turn takes up to so long, and does not always come to all tasks
    /// that are ready.
    pub slow: Duration,
}

impl Faults {
    /// Nothing goes wrong, and nothing takes time.
    pub fn perfect() -> Self {
        Self::default()
    }
}
