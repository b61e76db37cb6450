//! Protocol types appended to a `Vec<u8>`: the mirror of `read`.
//!
//! <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_basic_data_types.html>

/// Appends protocol types. Implemented for `Vec<u8>`; import it as `use wire::write::Write as _`.
pub trait Write {
    /// Bytes as they are.
    fn bytes(&mut self, v: &[u8]);

    /// `int<1>`
    fn u8(&mut self, v: u8) {
        self.bytes(&[v]);
    }
    /// `int<2>`
    fn u16(&mut self, v: u16) {
        self.bytes(&v.to_le_bytes());
    }
    /// `int<3>`; the upper byte of `v` is dropped.
    fn u24(&mut self, v: u32) {
        let [a, b, c, _] = v.to_le_bytes();
        self.bytes(&[a, b, c]);
    }
    /// `int<4>`
    fn u32(&mut self, v: u32) {
        self.bytes(&v.to_le_bytes());
    }
    /// `int<8>`
    fn u64(&mut self, v: u64) {
        self.bytes(&v.to_le_bytes());
    }
    /// `int<lenenc>` in its shortest form.
    fn lenenc_int(&mut self, v: u64) {
        match v {
            0..=0xFA => self.u8(v as u8),
            0xFB..=0xFFFF => {
                self.u8(0xFC);
                self.u16(v as u16);
            }
            0x1_0000..=0xFF_FFFF => {
                self.u8(0xFD);
                self.u24(v as u32);
            }
            _ => {
                self.u8(0xFE);
                self.u64(v);
            }
        }
    }
    /// `string<lenenc>`
    fn lenenc_bytes(&mut self, v: &[u8]) {
        self.lenenc_int(v.len() as u64);
        self.bytes(v);
    }
    /// `string<NUL>`. A zero inside of `v` would end it early, so `v` is cut there.
    fn nul_str(&mut self, v: &[u8]) {
        self.bytes(v.split(|&b| b == 0).next().unwrap_or_default());
        self.u8(0);
    }
}

impl Write for Vec<u8> {
    #[inline]
    fn bytes(&mut self, v: &[u8]) {
        self.extend_from_slice(v);
    }
}

/// How many bytes `int<lenenc>` needs for `v`.
pub const fn lenenc_len(v: u64) -> usize {
    match v {
        0..=0xFA => 1,
        0xFB..=0xFFFF => 3,
        0x1_0000..=0xFF_FFFF => 4,
        _ => 9,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::Reader;

    #[test]
    fn length_encoded_integers_come_back_and_have_the_promised_length() {
        for v in [
            0,
            250,
            251,
            255,
            0xFFFF,
            0x1_0000,
            0xFF_FFFF,
            0x100_0000,
            u64::MAX,
        ] {
            let mut out = Vec::new();
            out.lenenc_int(v);
            assert_eq!(out.len(), lenenc_len(v));
            assert_eq!(Reader::new(&out).lenenc_int(), Ok(v));
        }
    }

    #[test]
    fn a_zero_inside_a_terminated_string_cannot_smuggle_a_second_field() {
        let mut out = Vec::new();
        out.nul_str(b"root\0evil");
        assert_eq!(out, b"root\0");
    }
}
