//! Character sets in which the second byte of a character may look like a backslash or a quote.

/// Which of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Shift {
    /// Any of these character sets: it is not known which.
    #[default]
    Unknown,
    /// GBK.
    Gbk,
    /// Shift JIS, and Microsoft's CP932.
    Sjis,
    /// Big5.
    Big5,
    /// GB 18030: it has characters of four bytes as well.
    Gb18030,
}

impl Shift {
    /// How many bytes the character at the beginning has, as servers have it: what is no character
    /// of several bytes is one byte. Where the character set is not known, every byte stands for
    /// itself.
    #[must_use]
    pub fn length(self, text: &[u8]) -> usize {
        let &[lead, trail, ref rest @ ..] = text else {
            return 1;
        };
        let is_pair = match self {
            Self::Unknown => false,
            Self::Gbk | Self::Gb18030 => {
                matches!(lead, 0x81..=0xFE) && matches!(trail, 0x40..=0x7E | 0x80..=0xFE)
            }
            Self::Sjis => {
                matches!(lead, 0x81..=0x9F | 0xE0..=0xFC)
                    && matches!(trail, 0x40..=0x7E | 0x80..=0xFC)
            }
            Self::Big5 => matches!(lead, 0xA1..=0xF9) && matches!(trail, 0x40..=0x7E | 0xA1..=0xFE),
        };
        let is_four = self == Self::Gb18030
            && matches!((lead, trail), (0x81..=0xFE, 0x30..=0x39))
            && matches!(rest, [0x81..=0xFE, 0x30..=0x39, ..]);
        match (is_pair, is_four) {
            (true, _) => 2,
            (_, true) => 4,
            _ => 1,
        }
    }

    /// Whether a byte that looks like a backslash or a quote may belong to a character.
    #[must_use]
    pub fn hides(self, text: &[u8]) -> bool {
        let mut at = 0;
        while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
            let looks = |byte: Option<&u8>| matches!(byte, Some(b'\\' | b'`'));
            let length = match self {
                Self::Unknown if !rest[0].is_ascii() && looks(rest.get(1)) => return true,
                _ => self.length(rest),
            };
            if length == 2 && looks(rest.get(1)) {
                return true;
            }
            at += length;
        }
        false
    }

    /// As [`crate::words::end_of_quoted`], where a backslash escapes.
    pub(crate) fn end_of_quoted(self, text: &[u8], at: usize) -> Option<usize> {
        let quote = *text.get(at)?;
        let mut end = at + 1;
        loop {
            let rest = text.get(end..).filter(|rest| !rest.is_empty())?;
            end += self.length(rest);
            match rest[0] {
                b'\\' if quote != b'`' => end += 1,
                byte if byte != quote => {}
                _ if text.get(end) == Some(&quote) => end += 1,
                _ => return Some(end),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_have_the_bytes_that_their_set_says() {
        for (shift, text, length) in [
            (Shift::Sjis, &b"\x95\x5c'"[..], 2),
            (Shift::Sjis, b"\xb1\x5c", 1),
            (Shift::Sjis, b"\x95\x27", 1),
            (Shift::Gbk, b"\xbf\x5c", 2),
            (Shift::Gbk, b"\x80\x5c", 1),
            (Shift::Big5, b"\xa5\x5c", 2),
            (Shift::Big5, b"\xa5\x80", 1),
            (Shift::Gb18030, b"\x81\x30\x81\x30", 4),
            (Shift::Gb18030, b"\x81\x30\x81", 1),
            (Shift::Unknown, b"\xbf\x5c", 1),
            (Shift::Gbk, b"\xbf", 1),
        ] {
            assert_eq!(shift.length(text), length, "{shift:?} {text:02x?}");
        }
        assert!(
            Shift::Gbk.hides(b"a\xbf\\")
                && Shift::Unknown.hides(b"\xbf\\")
                && !Shift::Gbk.hides(b"\xbf\xbf\\")
        );
    }
}
