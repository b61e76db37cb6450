//! The generator of a core: ChaCha with eight rounds, so that what peers see of it (scrambles)
//! tells nothing of the rest.

const ROUNDS: usize = 8;
// "expand 32-byte k"
const CONSTANT: [u32; 4] = [0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574];

pub(crate) struct Random {
    key: [u32; 8],
    block: u64,
    ready: [u64; 8],
    used: usize, // used <= 8
}

impl Random {
    /// Makes a generator that gives the same numbers for the same `seed`.
    pub(crate) fn seeded(seed: u64) -> Self {
        Self::keyed([seed, !seed, seed.rotate_left(17), seed.rotate_left(41)])
    }

    pub(crate) fn keyed(key: [u64; 4]) -> Self {
        let mut words = [0; 8];
        for (pair, k) in words.chunks_exact_mut(2).zip(key) {
            pair[0] = k as u32;
            pair[1] = (k >> 32) as u32;
        }
        Self {
            key: words,
            block: 0,
            ready: [0; 8],
            used: 8,
        }
    }

    pub(crate) fn next(&mut self) -> u64 {
        if self.used == self.ready.len() {
            self.refill();
        }
        let n = self.ready[self.used];
        self.used += 1;
        n
    }

    /// Evenly below `bound`; 0 for a bound of 0. The bias is below 2^-32 for the small bounds that
    /// we use.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// True with this probability.
    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0 && (self.next() >> 11) as f64 / ((1u64 << 53) as f64) < probability
    }

    fn refill(&mut self) {
        let mut start = [0u32; 16];
        start[..4].copy_from_slice(&CONSTANT);
        start[4..12].copy_from_slice(&self.key);
        start[12] = self.block as u32;
        start[13] = (self.block >> 32) as u32;
        self.block = self.block.wrapping_add(1);
        let mut x = start;
        for _ in 0..ROUNDS / 2 {
            quarter(&mut x, 0, 4, 8, 12);
            quarter(&mut x, 1, 5, 9, 13);
            quarter(&mut x, 2, 6, 10, 14);
            quarter(&mut x, 3, 7, 11, 15);
            quarter(&mut x, 0, 5, 10, 15);
            quarter(&mut x, 1, 6, 11, 12);
            quarter(&mut x, 2, 7, 8, 13);
            quarter(&mut x, 3, 4, 9, 14);
        }
        for (i, out) in self.ready.iter_mut().enumerate() {
            let low = x[2 * i].wrapping_add(start[2 * i]);
            let high = x[2 * i + 1].wrapping_add(start[2 * i + 1]);
            *out = u64::from(high) << 32 | u64::from(low);
        }
        self.used = 0;
    }
}

fn quarter(x: &mut [u32; 16], a: usize, b: usize, c: usize, d: usize) {
    x[a] = x[a].wrapping_add(x[b]);
    x[d] = (x[d] ^ x[a]).rotate_left(16);
    x[c] = x[c].wrapping_add(x[d]);
    x[b] = (x[b] ^ x[c]).rotate_left(12);
    x[a] = x[a].wrapping_add(x[b]);
    x[d] = (x[d] ^ x[a]).rotate_left(8);
    x[c] = x[c].wrapping_add(x[d]);
    x[b] = (x[b] ^ x[c]).rotate_left(7);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_block_is_chacha8s() {
        // Key, nonce and counter of zeros: the first bytes of the published key stream are 3e 00 ef
        // 2f 89 5f 40 d6.
        assert_eq!(
            Random::keyed([0; 4]).next().to_le_bytes(),
            [0x3e, 0x00, 0xef, 0x2f, 0x89, 0x5f, 0x40, 0xd6]
        );
    }

    #[test]
    fn a_seed_repeats_and_bounds_hold() {
        let (mut a, mut b) = (Random::seeded(7), Random::seeded(7));
        for _ in 0..1_000 {
            assert_eq!(a.next(), b.next());
            assert!(a.below(10) < 10 && b.below(10) < 10);
        }
        assert!(!a.chance(0.0) && a.chance(1.0));
    }
}
