//! How long things took: a histogram on a logarithmic scale, of one size however much is counted.

/// Two buckets for each doubling of the time, from microseconds to more than half an hour.
const BUCKETS: usize = 64;

/// Times counted by their length. A quantile is told with an error of at most half.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Latency([u32; BUCKETS]);

impl Default for Latency {
    fn default() -> Self {
        Self([0; BUCKETS])
    }
}

/// The bucket of a time in microseconds.
const fn bucket(us: u64) -> usize {
    if us < 2 {
        return us as usize;
    }
    let doublings = 63 - us.leading_zeros() as usize;
    let half = (us >> (doublings - 1)) & 1;
    let at = 2 * doublings + half as usize;
    if at < BUCKETS { at } else { BUCKETS - 1 }
}

/// The longest time of a bucket, in microseconds; the last has no bound.
const fn bound(bucket: usize) -> u64 {
    let (doublings, half) = (bucket / 2, bucket % 2);
    match (bucket, half) {
        (0 | 1, _) => bucket as u64,
        (_, 0) => (1 << doublings) + (1 << (doublings - 1)) - 1,
        _ => (1 << (doublings + 1)) - 1,
    }
}

impl Latency {
    /// Counts a time.
    #[inline]
    pub fn count(&mut self, us: u64) {
        let at = &mut self.0[bucket(us)];
        *at = at.saturating_add(1);
    }

    /// Joins another.
    pub fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine = mine.saturating_add(theirs);
        }
    }

    /// How many times were counted.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().map(|count| u64::from(*count)).sum()
    }

    /// The time, in microseconds, that so many thousandths did not exceed; 0 of nothing.
    #[must_use]
    pub fn quantile(&self, thousandths: u64) -> u64 {
        let wanted = (self.total() * thousandths).div_ceil(1000);
        let mut seen = 0;
        for (at, count) in self.0.iter().enumerate().filter(|(_, count)| **count > 0) {
            seen += u64::from(*count);
            if seen >= wanted {
                return bound(at);
            }
        }
        0
    }

    /// (longest time in microseconds, how many) of each bucket that is not empty.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        self.0.iter().enumerate().filter(|(_, count)| **count > 0).map(|(at, count)| (bound(at), *count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_has_a_bucket_that_holds_it_and_not_much_more() {
        for us in (0..100_000).chain([1 << 30, (1 << 31) - 1]) {
            let at = bucket(us);
            assert!(bound(at) >= us && (at == 0 || bound(at - 1) < us), "{us} in {at}");
            assert!(bound(at) <= us + us / 2, "{us}: {}", bound(at));
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_are_of_all_that_was_counted() {
        let (mut fast, mut slow) = (Latency::default(), Latency::default());
        (0..990).for_each(|_| fast.count(100));
        (0..10).for_each(|_| slow.count(50_000));
        fast.add(&slow);
        assert_eq!(fast.total(), 1000);
        assert_eq!((fast.quantile(500), fast.quantile(990), fast.quantile(999)), (127, 127, 65_535));
        assert_eq!(fast.buckets().collect::<Vec<_>>(), [(127, 990), (65_535, 10)]);
        assert_eq!(Latency::default().quantile(500), 0);
    }
}
