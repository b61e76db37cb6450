//! Types of ClickHouse: from their names to what MySQL calls them.

use wire::resultset::{BINARY, Column, UTF8MB4};
use wire::types::{self, Type as Mysql, UNSIGNED_FLAG};

/// MySQL's flag of a column that is an ENUM.
const ENUM_FLAG: u16 = 256;
/// Types within types, at most.
const DEPTH_MAX: usize = 32;
/// Digits of MySQL's DECIMAL, at most; longer numbers are texts.
const DECIMAL_DIGITS_MAX: usize = 65;

/// A type of ClickHouse.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Type {
    /// A whole number of so many bytes.
    Int {
        bytes: usize,
        signed: bool,
    },
    /// A floating point number of so many bytes.
    Float(usize),
    /// A truth.
    Bool,
    /// A number of so many bytes, with so many digits, so many of them behind the point.
    Decimal {
        bytes: usize,
        digits: usize,
        scale: usize,
    },
    /// Days, unsigned in 16 bits, or signed in 32.
    Date {
        bytes: usize,
    },
    /// A moment in seconds, unsigned in 32 bits; the name of its time zone, if it has one.
    DateTime(Option<String>),
    /// A moment in parts of seconds, so many digits of them; its time zone.
    DateTime64(u32, Option<String>),
    /// A number that stands for a name.
    Enum {
        bytes: usize,
        names: Vec<(i64, String)>,
    },
    /// Bytes.
    String,
    /// So many bytes.
    Fixed(usize),
    Uuid,
    Ipv4,
    Ipv6,
    /// JSON, as the text that ClickHouse writes of it where it is told to.
    Json,
    /// Type that only NULL has.
    Nothing,
    Nullable(Box<Self>),
    /// Values in a dictionary.
    Low(Box<Self>),
    Array(Box<Self>),
    /// With the names of its parts, where they have some.
    Tuple(Vec<(Option<String>, Self)>),
    Map(Box<Self>, Box<Self>),
}

/// Reads a type's name.
pub(crate) fn parse(text: &str) -> Result<Type, String> {
    parse_in(text.trim(), 0).ok_or_else(|| {
        format!("the type {text} is not known here: convert it with toString() in the statement")
    })
}

fn parse_in(text: &str, depth: usize) -> Option<Type> {
    if depth > DEPTH_MAX {
        return None;
    }
    let (name, inside) = match text.find('(') {
        Some(at) => (&text[..at], text[at + 1..].strip_suffix(')')?),
        None => (text, ""),
    };
    let one = || parse_in(inside.trim(), depth + 1).map(Box::new);
    let parts = || split(inside);
    let zone = |text: Option<&&str>| text.map(|text| unquoted(text));
    Some(match name {
        "Bool" => Type::Bool,
        "Float32" => Type::Float(4),
        "Float64" => Type::Float(8),
        "String" => Type::String,
        "JSON" => Type::Json,
        "FixedString" => Type::Fixed(inside.parse().ok()?),
        "UUID" => Type::Uuid,
        "IPv4" => Type::Ipv4,
        "IPv6" => Type::Ipv6,
        "Date" => Type::Date { bytes: 2 },
        "Date32" => Type::Date { bytes: 4 },
        "DateTime" => Type::DateTime((!inside.is_empty()).then(|| unquoted(inside))),
        "DateTime64" => {
            let parts = parts();
            let scale = parts.first()?.parse().ok().filter(|scale| *scale <= 9)?;
            Type::DateTime64(scale, zone(parts.get(1)))
        }
        "Nothing" => Type::Nothing,
        "Nullable" => Type::Nullable(one()?),
        "LowCardinality" => Type::Low(one()?),
        "Array" => Type::Array(one()?),
        "Enum8" | "Enum16" => Type::Enum {
            bytes: if name == "Enum8" { 1 } else { 2 },
            names: parts()
                .iter()
                .map(|part| enumerated(part))
                .collect::<Option<_>>()?,
        },
        "Map" => match parts()[..] {
            [key, value] => Type::Map(
                Box::new(parse_in(key, depth + 1)?),
                Box::new(parse_in(value, depth + 1)?),
            ),
            _ => return None,
        },
        "Tuple" => Type::Tuple(
            parts()
                .iter()
                .map(|part| named(part, depth))
                .collect::<Option<_>>()?,
        ),
        "Nested" => {
            let parts = parts()
                .iter()
                .map(|part| named(part, depth))
                .collect::<Option<_>>()?;
            Type::Array(Box::new(Type::Tuple(parts)))
        }
        "Point" => Type::Tuple(vec![(None, Type::Float(8)), (None, Type::Float(8))]),
        "Ring" | "LineString" => Type::Array(Box::new(parse_in("Point", depth + 1)?)),
        "Polygon" | "MultiLineString" => Type::Array(Box::new(parse_in("Ring", depth + 1)?)),
        "MultiPolygon" => Type::Array(Box::new(parse_in("Polygon", depth + 1)?)),
        "SimpleAggregateFunction" => parse_in(parts().last()?, depth + 1)?,
        name => number(name, inside)?,
    })
}

/// A number: a decimal one, or a whole one.
fn number(name: &str, inside: &str) -> Option<Type> {
    let scale = || inside.parse().ok();
    match name {
        "Decimal" => match split(inside)[..] {
            [digits, scale] => decimal(digits.parse().ok()?, scale.parse().ok()?),
            _ => None,
        },
        "Decimal32" => decimal(9, scale()?),
        "Decimal64" => decimal(18, scale()?),
        "Decimal128" => decimal(38, scale()?),
        "Decimal256" => decimal(76, scale()?),
        name if name.starts_with("Interval") => Some(int(8, true)),
        name => whole(name),
    }
}

fn int(bytes: usize, signed: bool) -> Type {
    Type::Int { bytes, signed }
}

fn whole(name: &str) -> Option<Type> {
    let (bits, signed) = match name.strip_prefix("UInt") {
        Some(bits) => (bits, false),
        None => (name.strip_prefix("Int")?, true),
    };
    let bits: usize = bits.parse().ok()?;
    [8, 16, 32, 64, 128, 256]
        .contains(&bits)
        .then(|| int(bits / 8, signed))
}

fn decimal(digits: usize, scale: usize) -> Option<Type> {
    let bytes = match digits {
        1..=9 => 4,
        10..=18 => 8,
        19..=38 => 16,
        39..=76 => 32,
        _ => return None,
    };
    (scale <= digits).then_some(Type::Decimal {
        bytes,
        digits,
        scale,
    })
}

/// `'name' = 1`.
fn enumerated(part: &str) -> Option<(i64, String)> {
    let (name, number) = part.rsplit_once('=')?;
    Some((number.trim().parse().ok()?, unquoted(name.trim())))
}

/// A part of a tuple: its type, maybe with a name before it.
fn named(part: &str, depth: usize) -> Option<(Option<String>, Type)> {
    if let Some(of) = parse_in(part, depth + 1) {
        return Some((None, of));
    }
    let (name, of) = match part.strip_prefix('`') {
        Some(rest) => rest.split_once('`')?,
        None => part.split_once(' ')?,
    };
    Some((Some(name.to_owned()), parse_in(of.trim(), depth + 1)?))
}

/// Parts between commas that stand in no brackets and no quotes.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut from, mut depth, mut quoted, mut escaped) =
        (Vec::new(), 0, 0, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'\'' => quoted = !quoted,
            _ if quoted => {}
            b'(' => depth += 1,
            b')' => depth -= 1,
            b',' if depth == 0 => {
                parts.push(text[from..at].trim());
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[from..].trim());
    parts
}

fn unquoted(text: &str) -> String {
    let text = text.trim();
    let inside = text
        .strip_prefix('\'')
        .and_then(|text| text.strip_suffix('\''));
    let (mut out, mut escaped) = (String::new(), false);
    for c in inside.unwrap_or(text).chars() {
        if c == '\\' && !escaped {
            escaped = true;
        } else {
            out.push(c);
            escaped = false;
        }
    }
    out
}

impl Type {
    /// Itself without what only says how it is sent.
    pub(crate) fn bare(&self) -> &Self {
        match self {
            Self::Low(inner) | Self::Nullable(inner) => inner.bare(),
            other => other,
        }
    }

    /// The zones that it names; nothing for each moment that names none.
    pub(crate) fn zones(&self, into: &mut Vec<Option<String>>) {
        match self {
            Self::DateTime(zone) | Self::DateTime64(_, zone) => into.push(zone.clone()),
            Self::Nullable(inner) | Self::Low(inner) | Self::Array(inner) => inner.zones(into),
            Self::Tuple(parts) => parts.iter().for_each(|(_, part)| part.zones(into)),
            Self::Map(key, value) => {
                key.zones(into);
                value.zones(into);
            }
            _ => {}
        }
    }

    /// Whether a value may be NULL in MySQL. A floating point number may: `nan` and `inf` are none
    /// there.
    fn is_nullable(&self) -> bool {
        match self {
            Self::Nullable(_) | Self::Nothing | Self::Float(_) => true,
            Self::Low(inner) => inner.is_nullable(),
            _ => false,
        }
    }

    /// The definition of a column. `is_text`: what has come of it is text, and not any bytes.
    pub(crate) fn column(&self, name: &str, is_text: bool) -> Column {
        let mut column = self.plain(name, is_text);
        if !self.is_nullable() {
            column = column.not_null();
        }
        column
    }

    fn plain(&self, name: &str, is_text: bool) -> Column {
        let text = |length| Column {
            length,
            ..Column::text(name)
        };
        let number = |kind, length| Column {
            kind,
            length,
            ..Column::integer(name)
        };
        match self.bare() {
            Self::Int { bytes, signed } => {
                let (kind, length) = match bytes {
                    1 => (Mysql::TINY, 4),
                    2 => (Mysql::SHORT, 6),
                    4 => (Mysql::LONG, 11),
                    8 => (Mysql::LONGLONG, 20),
                    16 => (Mysql::NEWDECIMAL, 41),
                    _ => return text(4 * 79),
                };
                let mut column = number(kind, length);
                if !signed {
                    column.flags |= UNSIGNED_FLAG;
                }
                column
            }
            Self::Bool => number(Mysql::TINY, 1),
            Self::Float(bytes) => Column {
                kind: if *bytes == 4 {
                    Mysql::FLOAT
                } else {
                    Mysql::DOUBLE
                },
                length: if *bytes == 4 { 12 } else { 22 },
                ..Column::double(name)
            },
            Self::Decimal { digits, scale, .. } if *digits <= DECIMAL_DIGITS_MAX => Column {
                decimals: *scale as u8,
                ..number(Mysql::NEWDECIMAL, *digits as u32 + 2)
            },
            Self::Decimal { digits, .. } => text(4 * (*digits as u32 + 2)),
            Self::Date { .. } => number(Mysql::DATE, 10),
            Self::DateTime(_) => number(Mysql::DATETIME, 19),
            Self::DateTime64(scale, _) if *scale <= 6 => Column {
                decimals: *scale as u8,
                ..number(Mysql::DATETIME, 20 + scale)
            },
            Self::DateTime64(..) => text(4 * 30),
            Self::Enum { .. } => Column {
                kind: Mysql::STRING,
                flags: ENUM_FLAG,
                ..text(4 * 255)
            },
            Self::String | Self::Fixed(_) if !is_text => Column::blob(name),
            Self::String => text(4 * 65_535),
            Self::Fixed(bytes) => text(4 * *bytes as u32),
            Self::Uuid => text(4 * 36),
            Self::Ipv4 => text(4 * 15),
            Self::Ipv6 => text(4 * 39),
            Self::Nothing => Column {
                kind: Mysql::NULL,
                charset: BINARY,
                ..text(0)
            },
            Self::Json
            | Self::Array(_)
            | Self::Tuple(_)
            | Self::Map(..)
            | Self::Low(_)
            | Self::Nullable(_) => Column {
                kind: Mysql::JSON,
                charset: UTF8MB4,
                flags: types::BLOB_FLAG | types::BINARY_FLAG,
                ..text(u32::MAX)
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::types::NOT_NULL_FLAG;

    #[test]
    fn names_of_types_are_read_to_their_depth() {
        let kind = |text: &str| parse(text).unwrap().column("c", true);
        assert_eq!(kind("UInt8").kind, Mysql::TINY);
        assert!(kind("UInt8").flags & (UNSIGNED_FLAG | NOT_NULL_FLAG) != 0);
        assert_eq!(kind("Nullable(Int64)").flags & NOT_NULL_FLAG, 0);
        assert_eq!(
            kind("LowCardinality(Nullable(String))").kind,
            Mysql::VAR_STRING
        );
        assert_eq!(
            (kind("Decimal(18, 3)").kind, kind("Decimal(18, 3)").decimals),
            (Mysql::NEWDECIMAL, 3)
        );
        assert_eq!(kind("DateTime64(3, 'Europe/Berlin')").decimals, 3);
        assert_eq!(kind("DateTime64(9)").kind, Mysql::VAR_STRING);
        assert_eq!(kind("Array(Tuple(UInt8, String))").kind, Mysql::JSON);
        assert_eq!(
            parse("Enum8('a\\'b' = -1, 'c, d' = 2)").unwrap(),
            Type::Enum {
                bytes: 1,
                names: vec![(-1, "a'b".into()), (2, "c, d".into())]
            }
        );
        assert_eq!(
            parse("Tuple(a UInt8, `b c` Array(String))").unwrap(),
            Type::Tuple(vec![
                (Some("a".into()), int(1, false)),
                (Some("b c".into()), Type::Array(Box::new(Type::String))),
            ])
        );
        assert!(parse("AggregateFunction(sum, UInt8)").is_err());
        assert!(parse(&"Array(".repeat(10_000)).is_err());
    }
}
