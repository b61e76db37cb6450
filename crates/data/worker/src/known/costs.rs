//! Costs of statements: for how long those of a digest usually keep a connection. Where statements
//! wait by priority, the cheaper of two waits less.

use hashbrown::HashMap;
use std::cell::RefCell;
use std::time::Duration;

/// Digests that a core remembers.
const DIGESTS_MAX: usize = 4096;

/// Moving means of this core, in nanoseconds, by digest and hostgroup.
#[derive(Default)]
pub(crate) struct Costs(RefCell<HashMap<(u64, u32), u64, foldhash::fast::RandomState>>);

impl Costs {
    /// The cost of a statement, if one of its digest was seen.
    pub(crate) fn of(&self, digest: u64, hostgroup: u32) -> Option<u64> {
        self.0.borrow().get(&(digest, hostgroup)).copied()
    }

    /// Learns from a statement: the last one counts an eighth.
    pub(crate) fn learn(&self, digest: u64, hostgroup: u32, took: Duration) {
        let took_ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let (mut all, key) = (self.0.borrow_mut(), (digest, hostgroup));
        if let Some(mean) = all.get_mut(&key) {
            *mean = *mean - *mean / 8 + took_ns / 8;
            return;
        }
        if all.len() >= DIGESTS_MAX {
            // Rare, and those that matter are soon known again.
            all.clear();
        }
        all.insert(key, took_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_is_a_moving_mean_and_digests_are_bounded() {
        let (costs, ms) = (Costs::default(), Duration::from_millis);
        assert_eq!(costs.of(7, 1), None);
        costs.learn(7, 1, ms(8));
        assert_eq!((costs.of(7, 1), costs.of(7, 2)), (Some(8_000_000), None));
        costs.learn(7, 1, ms(16));
        assert_eq!(costs.of(7, 1), Some(9_000_000));
        for digest in 0..3 * DIGESTS_MAX as u64 {
            costs.learn(digest, 0, ms(1));
        }
        assert!(costs.0.borrow().len() <= DIGESTS_MAX);
    }
}
