//! How fast a client may be sent what servers say: `mysql-throttle_max_bytes_per_second_to_client`.

use rt::Instant;
use std::cell::Cell;
use std::time::Duration;

/// Bytes that one client was sent, as time: until when they are paid for at the pace that the
/// client may have.
#[derive(Debug)]
pub(crate) struct Pace(Cell<Instant>);

impl Pace {
    pub(crate) const fn new(now: Instant) -> Self {
        Self(Cell::new(now))
    }

    /// How long what was sent is not paid for yet.
    pub(crate) fn owed(&self, now: Instant) -> Duration {
        self.0.get().max(now) - now
    }

    /// So many bytes are sent now. How long nothing more is to follow: none at 0 bytes per second,
    /// which is no limit.
    pub(crate) fn spend(&self, now: Instant, bytes: usize, per_second: u64) -> Duration {
        if per_second == 0 {
            return Duration::ZERO;
        }
        #[cfg(debug_assertions)]
        if backend::planted::NO_PACE.get() {
            return Duration::ZERO;
        }
        let cost = u128::try_from(bytes)
            .unwrap_or(u128::MAX)
            .saturating_mul(1_000_000_000)
            / u128::from(per_second);
        let paid =
            self.0.get().max(now) + Duration::from_nanos(u64::try_from(cost).unwrap_or(u64::MAX));
        self.0.set(paid);
        paid - now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_at_once_is_waited_for_afterwards_and_silence_saves_nothing() {
        let limits = rt::sim::Limits {
            time_max: Duration::from_secs(3600),
            turns_max: 1_000_000,
        };
        rt::sim::run_with(1, rt::sim::Faults::perfect(), limits, |rt| async move {
            let pace = Pace::new(rt.now());
            assert_eq!(pace.spend(rt.now(), 1 << 30, 0), Duration::ZERO, "no limit");
            assert_eq!(pace.spend(rt.now(), 500, 1000), Duration::from_millis(500));
            assert_eq!(pace.spend(rt.now(), 500, 1000), Duration::from_secs(1));
            rt.sleep(Duration::from_secs(30)).await;
            assert_eq!(pace.spend(rt.now(), 2000, 1000), Duration::from_secs(2));
        });
    }
}
