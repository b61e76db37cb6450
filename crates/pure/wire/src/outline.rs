//! What a client was told of a statement's columns, so much of it that one can see whether it would
//! be told the same again.
//!
//! MariaDB's clients with `MARIADB_CLIENT_CACHE_METADATA` remember the definitions of a prepared
//! statement's columns: <https://mariadb.com/kb/en/mariadb-protocol-differences-with-mysql/>

use crate::Malformed;
use crate::caps::{self, Caps};
use crate::packet::{self, HEADER_LEN, MAX_PAYLOAD};
use crate::read::Reader;
use std::hash::{DefaultHasher, Hasher as _};

/// The definitions of columns, as a number, a length and a hash. Definitions with the same outline
/// are the same, byte for byte, but for the numbers of their packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outline {
    hash: u64,
    len: u32,
    columns: u32,
}

impl Outline {
    /// Of so many definitions; `None` if the packets are more, or fewer, or none are needed.
    #[must_use]
    pub fn of(mut packets: &[u8], columns: u32) -> Option<Self> {
        let mut hasher = DefaultHasher::new();
        let len = u32::try_from(packets.len()).ok()?;
        for _ in 0..columns {
            let definition = next(&mut packets)?;
            hasher.write_usize(definition.len());
            hasher.write(definition);
        }
        (columns > 0 && packets.is_empty()).then(|| Self {
            hash: hasher.finish(),
            len,
            columns,
        })
    }

    /// Of the columns in a whole answer to COM_STMT_PREPARE, for a client with these caps; `None`
    /// if it is none, or describes no columns.
    #[must_use]
    pub fn of_prepared(mut answer: &[u8], client: Caps) -> Option<Self> {
        let first = next(&mut answer)?;
        let number = |at: usize| Some(u16::from_le_bytes(*first.get(at..)?.first_chunk()?));
        let (columns, params) = (number(5)?, number(7)?);
        if first.first() != Some(&0) {
            return None;
        }
        let eof = !caps::has(client, caps::DEPRECATE_EOF);
        for _ in 0..usize::from(params) + usize::from(params > 0 && eof) {
            next(&mut answer)?;
        }
        let all = answer;
        for _ in 0..columns {
            next(&mut answer)?;
        }
        Self::of(&all[..all.len() - answer.len()], columns.into())
    }
}

/// The number of columns in the first packet of a result, and whether their definitions follow.
///
/// # Errors
/// It is no such packet.
pub fn columns(payload: &[u8], caps: Caps) -> Result<(u64, bool), Malformed> {
    let mut r = Reader::new(payload);
    let count = r.lenenc_int()?;
    Ok((count, !caps::tells_of_definitions(caps) || r.u8()? != 0))
}

/// Columns of the result whose first bytes these are, as far as they show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// So many.
    Columns(u32),
    /// None: it is an OK, an error or the request for a file.
    NoResult,
    /// Not enough bytes have come.
    NotHere,
}

impl Count {
    /// Of a result that begins here.
    #[must_use]
    pub const fn of(bytes: &[u8]) -> Self {
        match *bytes {
            [_, _, _, _, 0 | 0xFB | 0xFF, ..] => Self::NoResult,
            [_, _, _, _, 0xFC, low, high, ..] => {
                Self::Columns(u16::from_le_bytes([low, high]) as u32)
            }
            [_, _, _, _, columns @ 1..=250, ..] => Self::Columns(columns as u32),
            _ => Self::NotHere,
        }
    }

    /// Whether it may be another number of columns than this.
    #[must_use]
    pub const fn may_differ(self, known: u16) -> bool {
        match self {
            Self::Columns(columns) => columns != known as u32,
            Self::NoResult => false,
            Self::NotHere => true,
        }
    }
}

fn next<'a>(packets: &mut &'a [u8]) -> Option<&'a [u8]> {
    let bytes = *packets;
    let (len, _) = packet::whole(bytes)?;
    let (whole, rest) = bytes.split_at(HEADER_LEN + len);
    *packets = rest;
    (len < MAX_PAYLOAD).then_some(&whole[HEADER_LEN..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resultset::{Column, Writer};

    fn definitions(names: &[&str], mut seq: u8) -> Vec<u8> {
        let mut out = Vec::new();
        for name in names {
            packet::append_with(&mut out, &mut seq, |out| Column::text(*name).write(out, 0));
        }
        out
    }

    #[test]
    fn the_same_definitions_have_the_same_outline_wherever_they_stand() {
        let of = |names: &[&str], seq| Outline::of(&definitions(names, seq), names.len() as u32);
        assert_eq!(of(&["a", "b"], 2), of(&["a", "b"], 9));
        assert!(of(&["a", "b"], 2).is_some());
        let all = [
            of(&["a", "b"], 2),
            of(&["b", "a"], 2),
            of(&["a"], 2),
            of(&["a", "c"], 2),
            of(&["ab"], 2),
        ];
        for (at, one) in all.iter().enumerate() {
            assert!(!all[..at].contains(one), "{at}");
        }
        let two = definitions(&["a", "b"], 2);
        assert_eq!(
            (
                Outline::of(&two, 1),
                Outline::of(&two, 3),
                Outline::of(&two[..9], 1),
                Outline::of(b"", 0)
            ),
            (None, None, None, None)
        );
    }

    #[test]
    fn what_is_told_at_the_preparation_is_what_is_told_at_the_execution() {
        for caps in [caps::PROTOCOL_41, caps::PROTOCOL_41 | caps::DEPRECATE_EOF] {
            for params in [0, 3] {
                let mut answer = Vec::new();
                Writer::new(&mut answer, 0, caps, 2).prepared(
                    7,
                    params,
                    &[Column::text("a"), Column::text("b")],
                );
                assert_eq!(
                    Outline::of_prepared(&answer, caps),
                    Outline::of(&definitions(&["a", "b"], 2), 2)
                );
                for cut in 0..answer.len() - 9 {
                    assert_eq!(Outline::of_prepared(&answer[..cut], caps), None, "{cut}");
                }
            }
        }
        assert_eq!(
            Outline::of_prepared(b"\x0c\0\0\x01\0\x01\0\0\0\0\0\0\0\0\0\0", caps::PROTOCOL_41),
            None
        );
    }
}
