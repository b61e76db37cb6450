//! Types and flags of columns and parameters.
//!
//! <https://dev.mysql.com/doc/dev/mysql-server/latest/field__types_8h.html>
//! <https://dev.mysql.com/doc/dev/mysql-server/latest/group__group__cs__column__definition__flags.html>

/// The type of a column or parameter, as its number on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Type(pub u8);

#[allow(
    missing_docs,
    reason = "the names are MySQL's and say all there is to say"
)]
impl Type {
    pub const DECIMAL: Self = Self(0x00);
    pub const TINY: Self = Self(0x01);
    pub const SHORT: Self = Self(0x02);
    pub const LONG: Self = Self(0x03);
    pub const FLOAT: Self = Self(0x04);
    pub const DOUBLE: Self = Self(0x05);
    pub const NULL: Self = Self(0x06);
    pub const TIMESTAMP: Self = Self(0x07);
    pub const LONGLONG: Self = Self(0x08);
    pub const INT24: Self = Self(0x09);
    pub const DATE: Self = Self(0x0A);
    pub const TIME: Self = Self(0x0B);
    pub const DATETIME: Self = Self(0x0C);
    pub const YEAR: Self = Self(0x0D);
    pub const VARCHAR: Self = Self(0x0F);
    pub const BIT: Self = Self(0x10);
    pub const VECTOR: Self = Self(0xF2);
    pub const JSON: Self = Self(0xF5);
    pub const NEWDECIMAL: Self = Self(0xF6);
    pub const ENUM: Self = Self(0xF7);
    pub const SET: Self = Self(0xF8);
    pub const TINY_BLOB: Self = Self(0xF9);
    pub const MEDIUM_BLOB: Self = Self(0xFA);
    pub const LONG_BLOB: Self = Self(0xFB);
    pub const BLOB: Self = Self(0xFC);
    pub const VAR_STRING: Self = Self(0xFD);
    pub const STRING: Self = Self(0xFE);
    pub const GEOMETRY: Self = Self(0xFF);
}

/// How a value of a type is laid out in the binary protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// So many bytes, always.
    Fixed(usize),
    /// One byte of length, then so many bytes: dates and times.
    Short,
    /// A length-encoded string.
    Lenenc,
}

impl Type {
    /// How values of this type are laid out, `None` for numbers that are no type of the wire.
    pub const fn layout(self) -> Option<Layout> {
        Some(match self {
            Self::NULL => Layout::Fixed(0),
            Self::TINY => Layout::Fixed(1),
            Self::SHORT | Self::YEAR => Layout::Fixed(2),
            Self::LONG | Self::INT24 | Self::FLOAT => Layout::Fixed(4),
            Self::LONGLONG | Self::DOUBLE => Layout::Fixed(8),
            Self::DATE | Self::DATETIME | Self::TIMESTAMP | Self::TIME => Layout::Short,
            Self::DECIMAL
            | Self::VARCHAR
            | Self::BIT
            | Self::VECTOR
            | Self::JSON
            | Self::NEWDECIMAL
            | Self::ENUM
            | Self::SET => Layout::Lenenc,
            Self(0xF9..=0xFF) => Layout::Lenenc,
            Self(_) => return None,
        })
    }
}

impl Type {
    /// Whether a value of the text protocol is one of this type, as the binary protocol has them.
    #[must_use]
    pub fn reads(self, value: &[u8]) -> bool {
        crate::read_text::value(self, value).is_some()
    }
}

/// The column cannot be NULL.
pub const NOT_NULL_FLAG: u16 = 1;
/// Part of the primary key.
pub const PRI_KEY_FLAG: u16 = 2;
/// Part of a unique key.
pub const UNIQUE_KEY_FLAG: u16 = 4;
/// Part of a key.
pub const MULTIPLE_KEY_FLAG: u16 = 8;
/// A BLOB or TEXT.
pub const BLOB_FLAG: u16 = 16;
/// A number without sign.
pub const UNSIGNED_FLAG: u16 = 32;
/// Padded with zeros.
pub const ZEROFILL_FLAG: u16 = 64;
/// Bytes, not characters.
pub const BINARY_FLAG: u16 = 128;
/// Counts up by itself.
pub const AUTO_INCREMENT_FLAG: u16 = 512;
/// A number (set by the server for its own use, clients show it).
pub const NUM_FLAG: u16 = 32768;

/// In the second byte of a parameter's type: the number has no sign.
pub const PARAM_UNSIGNED: u8 = 0x80;
