//! A cursor over the payload of one packet: every step is checked, none panics, none allocates.
//!
//! <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_basic_data_types.html>

use crate::Malformed;

/// Reads protocol types one after another.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

const SHORT: Malformed = Malformed::new("packet ends too early");

impl<'a> Reader<'a> {
    /// Starts at the first byte of `bytes`.
    #[inline]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Returns what has not been read yet, without consuming it.
    #[inline]
    pub const fn peek(&self) -> &'a [u8] {
        self.rest
    }

    /// How many bytes are left.
    #[inline]
    pub const fn left(&self) -> usize {
        self.rest.len()
    }

    /// True at the end.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next `n` bytes.
    #[inline]
    pub fn take(&mut self, n: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(n).ok_or(SHORT)?;
        self.rest = rest;
        Ok(taken)
    }

    /// The next `N` bytes, by value.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or(SHORT)?;
        self.rest = rest;
        Ok(*taken)
    }

    /// Everything that is left (`string<EOF>`).
    #[inline]
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    /// `int<1>`
    #[inline]
    pub fn u8(&mut self) -> Result<u8, Malformed> {
        self.array::<1>().map(|[b]| b)
    }

    /// `int<2>`
    #[inline]
    pub fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_le_bytes)
    }

    /// `int<3>`
    #[inline]
    pub fn u24(&mut self) -> Result<u32, Malformed> {
        self.array::<3>()
            .map(|[a, b, c]| u32::from_le_bytes([a, b, c, 0]))
    }

    /// `int<4>`
    #[inline]
    pub fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_le_bytes)
    }

    /// `int<8>`
    #[inline]
    pub fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_le_bytes)
    }

    /// `int<lenenc>`. 0xFB (NULL) and 0xFF are no integers.
    #[inline]
    pub fn lenenc_int(&mut self) -> Result<u64, Malformed> {
        match self.u8()? {
            n @ 0..=0xFA => Ok(u64::from(n)),
            0xFC => self.u16().map(u64::from),
            0xFD => self.u24().map(u64::from),
            0xFE => self.u64(),
            _ => Err(Malformed::new(
                "length-encoded integer begins with 0xFB or 0xFF",
            )),
        }
    }

    /// `string<lenenc>`
    #[inline]
    pub fn lenenc_bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let n = self.lenenc_int()?;
        // A length that does not fit usize certainly does not fit the packet.
        self.take(usize::try_from(n).map_err(|_| SHORT)?)
    }

    /// `string<lenenc>` where 0xFB stands for NULL, as in text rows.
    #[inline]
    pub fn lenenc_or_null(&mut self) -> Result<Option<&'a [u8]>, Malformed> {
        if self.rest.first() == Some(&0xFB) {
            self.rest = &self.rest[1..];
            return Ok(None);
        }
        self.lenenc_bytes().map(Some)
    }

    /// `string<NUL>`; the terminator is consumed and not returned.
    #[inline]
    pub fn nul_str(&mut self) -> Result<&'a [u8], Malformed> {
        let at = self
            .rest
            .iter()
            .position(|&b| b == 0)
            .ok_or(Malformed::new("string without its terminating zero"))?;
        let s = &self.rest[..at];
        self.rest = &self.rest[at + 1..];
        Ok(s)
    }

    /// `string<NUL>` whose terminator may be missing at the end of the packet: some clients forget
    /// it.
    #[inline]
    pub fn nul_str_or_rest(&mut self) -> &'a [u8] {
        self.nul_str().unwrap_or_else(|_| self.rest())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_encoded_integers_have_four_forms_and_two_forbidden_first_bytes() {
        let cases: &[(&[u8], Option<u64>)] = &[
            (&[0], Some(0)),
            (&[250], Some(250)),
            (&[0xFB], None),
            (&[0xFF], None),
            (&[0xFC, 0xFB, 0x00], Some(251)),
            (&[0xFD, 1, 2, 3], Some(0x03_0201)),
            (
                &[0xFE, 1, 0, 0, 0, 0, 0, 0, 0x80],
                Some(0x8000_0000_0000_0001),
            ),
            (&[0xFC, 1], None),
            (&[0xFD, 1, 2], None),
            (&[0xFE, 1, 2, 3, 4, 5, 6, 7], None),
            (&[], None),
        ];
        for (bytes, want) in cases {
            assert_eq!(Reader::new(bytes).lenenc_int().ok(), *want, "{bytes:02x?}");
        }
    }

    #[test]
    fn a_length_beyond_the_packet_is_an_error_and_not_an_allocation() {
        let mut r = Reader::new(&[0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, b'x']);
        assert!(r.lenenc_bytes().is_err());
    }

    #[test]
    fn zero_terminated_strings_leave_the_reader_behind_the_zero() {
        let mut r = Reader::new(b"ab\0c");
        assert_eq!(r.nul_str(), Ok(&b"ab"[..]));
        assert!(r.nul_str().is_err());
        assert_eq!(r.nul_str_or_rest(), b"c");
        assert!(r.is_empty());
    }
}
