//! Moments of the monotonic clock.

use std::ops::{Add, Sub};
use std::time::Duration;

/// A moment on the monotonic clock (all cores share it), or on the simulator's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(u64);

impl Instant {
    /// The moment at so many nanoseconds of that clock.
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns)
    }

    /// Nanoseconds of that clock.
    pub const fn as_ns(self) -> u64 {
        self.0
    }

    /// From `earlier` to this; zero if it is not earlier.
    pub const fn elapsed_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, d: Duration) -> Self {
        Self(
            self.0
                .saturating_add(u64::try_from(d.as_nanos()).unwrap_or(u64::MAX)),
        )
    }
}

impl Sub for Instant {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        self.elapsed_since(earlier)
    }
}
