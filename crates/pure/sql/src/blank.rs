//! Character sets of one byte in which servers take a byte above ASCII for a blank: a no-break
//! space that somebody has pasted.
//!
//! Which they are, MariaDB 10.11 and MySQL 9.7 were asked, each byte of each character set:
//! `SELECT<byte>5`, and `--<byte> '`, where some control characters and accents end the two dashes
//! of a comment as a blank does.

use crate::words::{Kind, Words};

/// The byte, and what of the like is to be known of a character set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blank {
    /// 0xA0: Latin-1 and its like.
    Latin,
    /// 0xFF: the code pages of DOS.
    Dos,
    /// None; but what may end two dashes is there.
    Dashes,
    /// Either byte, or none: it is not known which.
    Any,
}

const LATIN_BLANK: u8 = 0xA0;
const DOS_BLANK: u8 = 0xFF;

/// The character sets of each.
const LATIN: [&str; 10] = [
    "latin1", "latin2", "latin5", "latin7", "cp1250", "dec8", "greek", "hebrew", "armscii8",
    "geostd8",
];
const DOS: [&str; 3] = ["cp852", "cp866", "keybcs2"];
const DASHES: [&str; 3] = ["cp850", "hp8", "macroman"];

impl Blank {
    /// That of a character set, by its name in any case.
    #[must_use]
    pub fn of(charset: &str) -> Option<Self> {
        let is = |name: &&str| name.eq_ignore_ascii_case(charset);
        // The usual ones are none.
        if charset.starts_with(['u', 'U']) {
            return None;
        }
        let sets: [(&[&str], Self); 3] = [
            (&LATIN, Self::Latin),
            (&DOS, Self::Dos),
            (&DASHES, Self::Dashes),
        ];
        sets.into_iter()
            .find_map(|(names, blank)| names.iter().any(is).then_some(blank))
    }

    /// That of a character set which is one of these two.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        if self == other { self } else { Self::Any }
    }

    /// The text of these words with ASCII's blank in place of this one; `None` if there is none
    /// outside of strings and comments.
    pub(crate) fn replaced(self, sql: &[u8], words: Words<'_>) -> Option<Vec<u8>> {
        if sql.is_ascii() {
            return None;
        }
        let (one, other) = match self {
            Self::Latin => (LATIN_BLANK, LATIN_BLANK),
            Self::Dos => (DOS_BLANK, DOS_BLANK),
            Self::Any => (LATIN_BLANK, DOS_BLANK),
            // No word has it.
            Self::Dashes => (b' ', b' '),
        };
        let mut out = None;
        let mut put = |at: usize| {
            if let Some(byte) = out.get_or_insert_with(|| sql.to_vec()).get_mut(at) {
                *byte = b' ';
            }
        };
        let (mut dash_until, mut dashes_until) = (usize::MAX, usize::MAX);
        for token in words {
            if token.kind == Kind::Word {
                if token.start == dashes_until && !token.text[0].is_ascii() {
                    put(token.start);
                }
                memchr::memchr2_iter(one, other, token.text).for_each(|at| put(token.start + at));
            } else if token.is_sign(b'-') {
                if token.start == dash_until {
                    dashes_until = token.end();
                }
                dash_until = token.end();
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blank_is_one_where_a_server_reads_a_text() {
        let of = |sql: &[u8]| Blank::Latin.replaced(sql, Words::new(sql));
        assert_eq!(of(b"SELECT 1\xa0INTO\xa0@a").unwrap(), b"SELECT 1 INTO @a");
        assert_eq!(
            of(b"SELECT a FROM t \xe9\xa0FOR UPDATE").unwrap(),
            b"SELECT a FROM t \xe9 FOR UPDATE"
        );
        assert_eq!(
            of(b"SELECT 1 --\x81 '\n INTO @a").unwrap(),
            b"SELECT 1 --  '\n INTO @a"
        );
        for sql in [
            &b"SELECT 'caf\xe9\xa0', `a\xa0` -- \xa0"[..],
            b"SELECT caf\xe9 /* \xa0 */ FROM t",
            b"SELECT 1",
            b"a - -\x81",
        ] {
            assert_eq!(of(sql), None, "{}", sql.escape_ascii());
        }
        let has = |blank: Blank, sql: &[u8]| blank.replaced(sql, Words::new(sql)).is_some();
        assert!(has(Blank::Dos, b"SELECT\xff1") && !has(Blank::Dos, b"SELECT \xa0"));
        assert!(
            has(Blank::Any, b"SELECT\xff1")
                && has(Blank::Any, b"SELECT \xa0")
                && !has(Blank::Any, b"SELECT '\xa0'")
        );
        // Without escapes the string ends before it.
        let open = b"SELECT 'a\\'\xa0INTO @a -- '";
        assert!(
            !has(Blank::Latin, open)
                && Blank::Latin
                    .replaced(open, Words::without_escapes(open))
                    .is_some()
        );
        assert!(
            has(Blank::Dashes, b"SELECT 1 --\xff 'a") && !has(Blank::Dashes, b"SELECT\xa01\xff")
        );
        let of = ["LATIN1", "cp866", "HP8", "utf8mb4", "cp1251"].map(Blank::of);
        assert_eq!(
            of,
            [
                Some(Blank::Latin),
                Some(Blank::Dos),
                Some(Blank::Dashes),
                None,
                None
            ]
        );
    }
}
