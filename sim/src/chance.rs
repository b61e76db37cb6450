//! Random choices of the tester, from the seed and apart from those of the runtime.

/// A splitmix64 generator.
#[derive(Debug, Clone)]
pub(crate) struct Chance(u64);

impl Chance {
    /// The choices of one participant of one world.
    pub(crate) fn new(seed: u64, who: u64) -> Self {
        let mut chance = Self(seed ^ who.wrapping_mul(0xA076_1D64_78BD_642F));
        chance.next();
        chance
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// From 0 to `n` - 1.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }

    /// From `from` to `to`, both included.
    pub(crate) fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.below(to - from + 1)
    }

    /// True so often of a hundred times.
    pub(crate) fn percent(&mut self, n: u64) -> bool {
        self.below(100) < n
    }

    pub(crate) fn one_of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        let at = usize::try_from(self.below(all.len() as u64)).unwrap_or(0);
        all.get(at).expect("chosen below its length")
    }
}
