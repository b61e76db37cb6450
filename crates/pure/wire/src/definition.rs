//! The definition of a column in two forms: MariaDB's clients with
//! `MARIADB_CLIENT_EXTENDED_METADATA` have one field more, which tells a JSON from a text and a
//! UUID from bytes.
//!
//! <https://mariadb.com/kb/en/result-set-packets/#column-definition-packet>
//!
//! ```text
//! catalog, schema, table, org_table, name, org_name   six strings with their lengths
//! [extended type]                                     a string with its length, empty for most columns
//! 0x0C, character set, length, type, flags, ...       as everywhere
//! ```

use crate::Malformed;
use crate::caps::{self, Caps};
use crate::read::Reader;
use crate::types::Type;
use std::ops::Range;

/// Description of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// The type.
    pub kind: Type,
    /// *_FLAG bits of [`crate::types`].
    pub flags: u16,
    /// Number of the collation; 63 is bytes.
    pub charset: u16,
    /// Digits behind the point; 31 where their number is not fixed.
    pub decimals: u8,
}

impl Shape {
    /// Of a column that the server has not described.
    pub const UNTOLD: Self = Self {
        kind: Type::NULL,
        flags: 0,
        charset: 0,
        decimals: 0,
    };

    /// Of a column with this definition, which has no extended type.
    ///
    /// <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_com_query_response_text_resultset_column_definition.html>
    ///
    /// # Errors
    /// If it is no definition.
    pub fn of(definition: &[u8]) -> Result<Self, Malformed> {
        let field = field(definition, 0)?;
        let mut r = Reader::new(&definition[field.end..]);
        r.take(1)?;
        let charset = r.u16()?;
        r.take(4)?;
        Ok(Self {
            kind: Type(r.u8()?),
            flags: r.u16()?,
            charset,
            decimals: r.u8()?,
        })
    }
}

/// Strings before the field.
const NAMES: usize = 6;

/// Whether the definitions of columns differ between connections with these caps.
#[inline]
#[must_use]
pub const fn differs(one: Caps, other: Caps) -> bool {
    (one ^ other) & caps::MARIADB_EXTENDED_TYPES != 0
}

/// Where in a definition the field is, with its length; empty, and where it would be, for caps
/// without it.
pub(crate) fn field(definition: &[u8], caps: Caps) -> Result<Range<usize>, Malformed> {
    let mut r = Reader::new(definition);
    for _ in 0..NAMES {
        r.lenenc_bytes()?;
    }
    let from = definition.len() - r.left();
    if caps::has(caps, caps::MARIADB_EXTENDED_TYPES) {
        r.lenenc_bytes()?;
    }
    Ok(from..definition.len() - r.left())
}

/// Catalog, schema, table, org_table, name and org_name of a definition.
///
/// # Errors
/// If it ends too early.
pub fn names(definition: &[u8]) -> Result<[&[u8]; NAMES], Malformed> {
    let mut r = Reader::new(definition);
    let mut names: [&[u8]; NAMES] = [b""; NAMES];
    for name in &mut names {
        *name = r.lenenc_bytes()?;
    }
    Ok(names)
}

/// Appends a definition of a connection with caps `from` as one with caps `to` has it. A field
/// that nobody has sent is empty. What cannot be read stays as it is.
pub fn write(out: &mut Vec<u8>, definition: &[u8], from: Caps, to: Caps) {
    let Some(field) = differs(from, to)
        .then(|| field(definition, from).ok())
        .flatten()
    else {
        return out.extend_from_slice(definition);
    };
    out.extend_from_slice(&definition[..field.start]);
    out.extend(caps::has(to, caps::MARIADB_EXTENDED_TYPES).then_some(0));
    out.extend_from_slice(&definition[field.end..]);
}

/// Appends whole packets of definitions as [`write`] does; they keep their numbers.
pub fn write_packets(out: &mut Vec<u8>, mut packets: &[u8], from: Caps, to: Caps) {
    use crate::packet::{self, HEADER_LEN};
    while let Some((len, mut seq)) = packet::whole(packets) {
        let (packet, rest) = packets.split_at(HEADER_LEN + len);
        packet::append_with(out, &mut seq, |out| {
            write(out, &packet[HEADER_LEN..], from, to);
        });
        packets = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WITH: Caps = caps::MARIADB_EXTENDED_TYPES;
    const JSON: &[u8] = b"\x03def\x01s\x01t\x01t\x03doc\x03doc\x07\x01\x05jsonx\x0c\x2d\0";
    const PLAIN: &[u8] = b"\x03def\x01s\x01t\x01t\x03doc\x03doc\x0c\x2d\0";
    const EMPTY: &[u8] = b"\x03def\x01s\x01t\x01t\x03doc\x03doc\0\x0c\x2d\0";

    #[test]
    fn a_field_is_taken_out_or_left_empty() {
        for (came, from, to, wanted) in [
            (JSON, WITH, WITH, JSON),
            (JSON, WITH, 0, PLAIN),
            (EMPTY, WITH, 0, PLAIN),
            (PLAIN, 0, WITH, EMPTY),
            (PLAIN, 0, 0, PLAIN),
            (&PLAIN[..9], 0, WITH, &PLAIN[..9]),
        ] {
            let mut out = Vec::new();
            write(&mut out, came, from, to);
            assert_eq!(out, wanted);
        }
    }
}
