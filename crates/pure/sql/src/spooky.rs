//! SpookyHash V2, 64 bits: what ProxySQL's digests are hashed with, so what rules and dashboards
//! hold.
//!
//! Written after its description, <https://burtleburtle.net/bob/hash/spooky.html> (public domain).

const FILLER: u64 = 0xDEAD_BEEF_DEAD_BEEF;
const LANES: usize = 12;
const BLOCK: usize = LANES * 8;

/// SpookyHash V2 of `bytes`, the first 64 bits, with both seeds equal to `seed`.
#[must_use]
pub fn hash64(bytes: &[u8], seed: u64) -> u64 {
    hash64_of(bytes, [seed, seed])
}

/// SpookyHash V2 of `bytes`, the first 64 bits, with two seeds.
#[must_use]
pub fn hash64_of(bytes: &[u8], seeds: [u64; 2]) -> u64 {
    if bytes.len() < 2 * BLOCK {
        short(bytes, seeds)
    } else {
        long(bytes, seeds)
    }
}

fn word(bytes: &[u8]) -> u64 {
    let mut eight = [0; 8];
    eight.copy_from_slice(&bytes[..8]);
    u64::from_le_bytes(eight)
}

/// Up to eight bytes, little end first, the missing ones zero.
fn part(bytes: &[u8]) -> u64 {
    let mut eight = [0; 8];
    eight[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(eight)
}

/// Lanes in the order in which one step rotates, adds and mixes them: (turned, added, struck, by).
const STIR: [(usize, usize, usize); 4] = [(2, 3, 0), (3, 0, 1), (0, 1, 2), (1, 2, 3)];

#[inline(always)]
fn stir(h: &mut [u64; 4]) {
    const TURNS: [u32; 12] = [50, 52, 30, 41, 54, 48, 38, 37, 62, 34, 5, 36];
    for (step, turn) in TURNS.iter().enumerate() {
        let (x, y, z) = STIR[step % 4];
        h[x] = h[x].rotate_left(*turn).wrapping_add(h[y]);
        h[z] ^= h[x];
    }
}

#[inline(always)]
fn settle(h: &mut [u64; 4]) {
    const TURNS: [u32; 11] = [15, 52, 26, 51, 28, 9, 47, 54, 32, 25, 63];
    for (step, turn) in TURNS.iter().enumerate() {
        let (x, y) = ((step + 3) % 4, (step + 2) % 4);
        h[x] ^= h[y];
        h[y] = h[y].rotate_left(*turn);
        h[x] = h[x].wrapping_add(h[y]);
    }
}

fn short(bytes: &[u8], [one, two]: [u64; 2]) -> u64 {
    let mut h = [one, two, FILLER, FILLER];
    let mut blocks = bytes.chunks_exact(32);
    for block in blocks.by_ref() {
        h[2] = h[2].wrapping_add(word(block));
        h[3] = h[3].wrapping_add(word(&block[8..]));
        stir(&mut h);
        h[0] = h[0].wrapping_add(word(&block[16..]));
        h[1] = h[1].wrapping_add(word(&block[24..]));
    }
    let mut rest = blocks.remainder();
    if rest.len() >= 16 {
        h[2] = h[2].wrapping_add(word(rest));
        h[3] = h[3].wrapping_add(word(&rest[8..]));
        stir(&mut h);
        rest = &rest[16..];
    }
    h[3] = h[3].wrapping_add((bytes.len() as u64) << 56);
    if rest.is_empty() {
        h[2] = h[2].wrapping_add(FILLER);
        h[3] = h[3].wrapping_add(FILLER);
    } else if rest.len() < 8 {
        h[2] = h[2].wrapping_add(part(rest));
    } else {
        h[2] = h[2].wrapping_add(word(rest));
        h[3] = h[3].wrapping_add(part(&rest[8..]));
    }
    settle(&mut h);
    h[0]
}

fn long(bytes: &[u8], [one, two]: [u64; 2]) -> u64 {
    let mut h = [
        one, two, FILLER, one, two, FILLER, one, two, FILLER, one, two, FILLER,
    ];
    let mut blocks = bytes.chunks_exact(BLOCK);
    for block in blocks.by_ref() {
        const TURNS: [u32; LANES] = [11, 32, 43, 31, 17, 28, 39, 57, 55, 54, 22, 46];
        for lane in 0..LANES {
            h[lane] = h[lane].wrapping_add(word(&block[lane * 8..]));
            h[(lane + 2) % LANES] ^= h[(lane + 10) % LANES];
            h[(lane + 11) % LANES] ^= h[lane];
            h[lane] = h[lane].rotate_left(TURNS[lane]);
            h[(lane + 11) % LANES] = h[(lane + 11) % LANES].wrapping_add(h[(lane + 1) % LANES]);
        }
    }
    let rest = blocks.remainder();
    let mut last = [0; BLOCK];
    last[..rest.len()].copy_from_slice(rest);
    last[BLOCK - 1] = rest.len() as u8; // < 96
    for lane in 0..LANES {
        h[lane] = h[lane].wrapping_add(word(&last[lane * 8..]));
    }
    for _ in 0..3 {
        const TURNS: [u32; LANES] = [44, 15, 34, 21, 38, 33, 10, 13, 38, 53, 42, 54];
        for (step, turn) in TURNS.iter().enumerate() {
            let (x, y, z) = ((step + 11) % LANES, (step + 1) % LANES, (step + 2) % LANES);
            h[x] = h[x].wrapping_add(h[y]);
            h[z] ^= h[x];
            h[y] = h[y].rotate_left(*turn);
        }
    }
    h[0]
}
