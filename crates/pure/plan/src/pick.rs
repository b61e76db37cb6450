//! One of several, by weight.

/// The position of one of these weights; each comes up in proportion to itself, 0 never. `None` if
/// all are 0.
#[must_use]
pub fn pick(weights: &[u32], random: u64) -> Option<usize> {
    pick_by(weights, |weight| *weight, random)
}

/// As [`pick`], for anything that has a weight.
#[must_use]
pub fn pick_by<T>(among: &[T], weight: impl Fn(&T) -> u32, random: u64) -> Option<usize> {
    let total: u64 = among.iter().map(|one| u64::from(weight(one))).sum();
    // 0 <= left < total, each value equally likely
    let mut left = ((u128::from(random) * u128::from(total)) >> 64) as u64;
    among.iter().position(|one| {
        let weight = u64::from(weight(one));
        let here = left < weight;
        left = left.saturating_sub(weight);
        here
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_comes_up_in_proportion_to_its_weight_and_zero_never() {
        let weights = [0, 1, 0, 3, 0];
        let steps = 4000_u64;
        let mut counts = [0; 5];
        for step in 0..steps {
            counts[pick(&weights, u64::MAX / steps * step + u64::MAX / steps / 2).unwrap()] += 1;
        }
        assert_eq!(counts, [0, 1000, 0, 3000, 0]);
        assert_eq!(pick(&weights, u64::MAX), Some(3));
    }

    #[test]
    fn nobody_is_picked_from_nobody() {
        assert_eq!(pick(&[], 7), None);
        assert_eq!(pick(&[0, 0], 7), None);
        assert_eq!(pick(&[u32::MAX, u32::MAX], u64::MAX), Some(1));
    }
}
