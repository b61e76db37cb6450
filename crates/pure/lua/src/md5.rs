//! MD5, which scripts use for short names of texts. It protects nothing.
//!
//! <https://www.rfc-editor.org/rfc/rfc1321>

/// How far each of the sixteen steps of a round turns; four by four they repeat.
const TURNS: [[u32; 4]; 4] = [
    [7, 12, 17, 22],
    [5, 9, 14, 20],
    [4, 11, 16, 23],
    [6, 10, 15, 21],
];
const BLOCK_LEN: usize = 64;

/// Sixteen bytes of these.
#[must_use]
pub fn md5(bytes: &[u8]) -> [u8; 16] {
    let mut sum = [0x6745_2301_u32, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    let mut padded = bytes.to_vec();
    padded.push(0x80);
    while padded.len() % BLOCK_LEN != BLOCK_LEN - 8 {
        padded.push(0);
    }
    let bits = (bytes.len() as u64).wrapping_mul(8);
    padded.extend_from_slice(&bits.to_le_bytes());
    for block in padded.chunks_exact(BLOCK_LEN) {
        sum = mixed(sum, block);
    }
    let mut out = [0; 16];
    for (to, word) in out.chunks_exact_mut(4).zip(sum) {
        to.copy_from_slice(&word.to_le_bytes());
    }
    out
}

/// Hexadecimal digits of it.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    md5(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn mixed(sum: [u32; 4], block: &[u8]) -> [u32; 4] {
    let word = |at: usize| {
        let bytes = block
            .get(at * 4..at * 4 + 4)
            .and_then(|four| four.try_into().ok());
        bytes.map_or(0, u32::from_le_bytes)
    };
    let [mut a, mut b, mut c, mut d] = sum;
    for step in 0..64_usize {
        let (f, at) = match step / 16 {
            0 => (b & c | !b & d, step),
            1 => (d & b | !d & c, (5 * step + 1) % 16),
            2 => (b ^ c ^ d, (3 * step + 5) % 16),
            _ => (c ^ (b | !d), 7 * step % 16),
        };
        // The whole part of 2^32 times the sine of the step's number.
        let sine = (((step + 1) as f64).sin().abs() * 4_294_967_296.0) as u32;
        let turned = a
            .wrapping_add(f)
            .wrapping_add(sine)
            .wrapping_add(word(at))
            .rotate_left(TURNS[step / 16][step % 4]);
        (a, d, c, b) = (d, c, b, b.wrapping_add(turned));
    }
    let [a0, b0, c0, d0] = sum;
    [
        a0.wrapping_add(a),
        b0.wrapping_add(b),
        c0.wrapping_add(c),
        d0.wrapping_add(d),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_the_standard() {
        for (text, sum) in [
            ("", "d41d8cd98f00b204e9800998ecf8427e"),
            ("abc", "900150983cd24fb0d6963f7d28e17f72"),
            (
                "12345678901234567890123456789012345678901234567890123456789012345678901234567890",
                "57edf4a22be3c955ac49da2e2107b67a",
            ),
        ] {
            assert_eq!(hex(text.as_bytes()), sum);
        }
    }
}
