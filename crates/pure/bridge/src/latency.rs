//! How long things took: a histogram on a logarithmic scale, of one size however much is counted.

/// Two buckets for each doubling of the time, from microseconds to more than half an hour.
const BUCKETS: usize = 64;

/// Number that a bucket counts with: half the memory where there are many histograms, or room for
/// years where there are few.
pub trait Width: Copy + Default {
    /// With so many more, or as many as it can tell.
    #[must_use]
    fn plus(self, more: u64) -> Self;
    /// As a number.
    fn number(self) -> u64;
}

impl Width for u32 {
    #[inline]
    fn plus(self, more: u64) -> Self {
        self.saturating_add(Self::try_from(more).unwrap_or(Self::MAX))
    }

    fn number(self) -> u64 {
        self.into()
    }
}

impl Width for u64 {
    #[inline]
    fn plus(self, more: u64) -> Self {
        self.saturating_add(more)
    }

    fn number(self) -> u64 {
        self
    }
}

/// Times counted by their length. A quantile is told with an error of at most half.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Latency<W = u32>([W; BUCKETS]);

impl<W: Width> Default for Latency<W> {
    fn default() -> Self {
        Self([W::default(); BUCKETS])
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

impl<W: Width> Latency<W> {
    /// Counts a time.
    #[inline]
    pub fn count(&mut self, us: u64) {
        let at = &mut self.0[bucket(us)];
        *at = at.plus(1);
    }

    /// Counts a bucket of another, as [`Latency::buckets`] tells it.
    pub fn count_bucket(&mut self, longest_us: u64, times: u64) {
        let at = &mut self.0[bucket(longest_us)];
        *at = at.plus(times);
    }

    /// Times that were counted after `earlier`, which counted the same before.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut since = Self::default();
        for ((at, now), before) in since.0.iter_mut().zip(self.0).zip(earlier.0) {
            *at = W::default().plus(now.number().saturating_sub(before.number()));
        }
        since
    }

    /// Joins another.
    pub fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine = mine.plus(theirs.number());
        }
    }

    /// How many times were counted.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().map(|count| count.number()).sum()
    }

    /// The time, in microseconds, that so many thousandths did not exceed; 0 of nothing.
    #[must_use]
    pub fn quantile(&self, thousandths: u64) -> u64 {
        let wanted = (self.total() * thousandths).div_ceil(1000);
        let mut seen = 0;
        for (at, count) in self
            .0
            .iter()
            .enumerate()
            .filter(|(_, count)| count.number() > 0)
        {
            seen += count.number();
            if seen >= wanted {
                return bound(at);
            }
        }
        0
    }

    /// (time in microseconds, how many were not longer), for each doubling from 127 µs to a minute:
    /// the same times whatever was counted.
    pub fn cumulative(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let mut sum = 0;
        let counts = self.0.iter().enumerate();
        counts.filter_map(move |(at, count)| {
            sum += count.number();
            let is_shown = at % 2 == 1 && (127..1 << 26).contains(&bound(at));
            is_shown.then_some((bound(at), sum))
        })
    }

    /// (longest time in microseconds, how many) of each bucket that is not empty.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.0
            .iter()
            .enumerate()
            .filter(|(_, count)| count.number() > 0)
            .map(|(at, count)| (bound(at), count.number()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_has_a_bucket_that_holds_it_and_not_much_more() {
        for us in (0..100_000).chain([1 << 30, (1 << 31) - 1]) {
            let at = bucket(us);
            assert!(
                bound(at) >= us && (at == 0 || bound(at - 1) < us),
                "{us} in {at}"
            );
            assert!(bound(at) <= us + us / 2, "{us}: {}", bound(at));
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn what_is_told_by_buckets_can_be_read_again_and_taken_away() {
        let (mut before, mut now) = (Latency::<u64>::default(), Latency::default());
        for us in [3, 900, 1 << 40] {
            before.count(us);
        }
        for (longest_us, times) in before.buckets() {
            now.count_bucket(longest_us, times);
        }
        assert_eq!(now, before);
        now.count(70);
        assert_eq!(now.since(&before).buckets().collect::<Vec<_>>(), [(95, 1)]);
    }

    #[test]
    fn quantiles_are_of_all_that_was_counted() {
        let (mut fast, mut slow) = (Latency::<u32>::default(), Latency::default());
        (0..990).for_each(|_| fast.count(100));
        (0..10).for_each(|_| slow.count(50_000));
        fast.add(&slow);
        assert_eq!(fast.total(), 1000);
        assert_eq!(
            (fast.quantile(500), fast.quantile(990), fast.quantile(999)),
            (127, 127, 65_535)
        );
        assert_eq!(
            fast.buckets().collect::<Vec<_>>(),
            [(127, 990), (65_535, 10)]
        );
        assert_eq!(Latency::<u64>::default().quantile(500), 0);
    }
}
