//! The order of values, as a server has it, for the types of which it is certain.

use crate::decimal::Decimal;
use std::cmp::Ordering;

/// Kind of a column's values, as far as order and sums go by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Integers and DECIMAL.
    Exact,
    /// FLOAT and DOUBLE.
    Float,
    /// Strings of a character set: ordered by their weights.
    Text,
    /// Bytes.
    Bytes,
    /// DATE, DATETIME, TIMESTAMP.
    Moment,
    /// TIME.
    Time,
    /// BIT: bytes of a number, the greatest first.
    Bits,
    /// ENUM or SET: ordered by numbers that are not here.
    Listed,
    /// JSON, geometry.
    Other,
}

impl Kind {
    /// Kind by which MIN and MAX go: for them an ENUM or SET is its text.
    pub(crate) const fn of_aggregate(self) -> Self {
        match self {
            Self::Listed => Self::Text,
            other => other,
        }
    }
}

/// Kind and decimals of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// Kind of its values.
    pub kind: Kind,
    /// Digits behind the point.
    pub decimals: u8,
}

const ENUM_FLAG: u16 = 0x0100;
const SET_FLAG: u16 = 0x0800;
const BINARY_CHARSET: u16 = 63;

impl Column {
    /// Of a column's definition: type, flags, character set, decimals.
    ///
    /// <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_com_query_response_text_resultset_column_definition.html>
    #[must_use]
    pub const fn of(column_type: u8, flags: u16, charset: u16, decimals: u8) -> Self {
        let kind = match column_type {
            _ if flags & (ENUM_FLAG | SET_FLAG) != 0 => Kind::Listed,
            // DECIMAL, TINY to LONG, LONGLONG, INT24, YEAR, NEWDECIMAL
            0..=3 | 8 | 9 | 13 | 246 => Kind::Exact,
            4 | 5 => Kind::Float,
            7 | 10 | 12 => Kind::Moment,
            11 => Kind::Time,
            16 => Kind::Bits,
            15 | 249..=254 if charset == BINARY_CHARSET => Kind::Bytes,
            15 | 249..=254 => Kind::Text,
            _ => Kind::Other,
        };
        Self { kind, decimals }
    }
}

/// A value that can be compared with others of its column.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Ranked {
    Null,
    Exact(Decimal),
    Float(f64),
    Bytes(Vec<u8>),
    /// Weights, and those of a blank where blanks at the end do not count.
    Weights(Vec<u8>, Option<Vec<u8>>),
    /// Millionths of a second.
    Time(i64),
}

impl Ranked {
    /// Of a value in its text form; `None` for what it cannot be.
    pub(crate) fn of(
        kind: Kind,
        value: Option<&[u8]>,
        weight: Option<&[u8]>,
        pad: Option<&[u8]>,
    ) -> Option<Self> {
        let Some(value) = value else {
            return Some(Self::Null);
        };
        match kind {
            Kind::Exact => Decimal::parse(value).map(Self::Exact),
            Kind::Float => float(value).map(Self::Float),
            Kind::Text => Some(Self::Weights(weight?.to_vec(), pad.map(<[u8]>::to_vec))),
            Kind::Bytes | Kind::Moment => Some(Self::Bytes(value.to_vec())),
            Kind::Time => time(value).map(Self::Time),
            Kind::Bits => Some(Self::Bytes(bits(value))),
            Kind::Listed | Kind::Other => None,
        }
    }

    /// NULL is the least.
    pub(crate) fn compared(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Null, Self::Null) => Ordering::Equal,
            (Self::Null, _) => Ordering::Less,
            (_, Self::Null) => Ordering::Greater,
            (Self::Exact(one), Self::Exact(two)) => one.cmp(two),
            (Self::Float(one), Self::Float(two)) => one.partial_cmp(two).unwrap_or(Ordering::Equal),
            (Self::Bytes(one), Self::Bytes(two)) => one.cmp(two),
            (Self::Weights(one, pad), Self::Weights(two, other)) => {
                weighed(one, two, pad.as_deref().or(other.as_deref()))
            }
            (Self::Time(one), Self::Time(two)) => one.cmp(two),
            // One column has one kind.
            _ => Ordering::Equal,
        }
    }
}

/// Bytes of a number without zeros in front, behind their number: of two, the greater comes last.
fn bits(value: &[u8]) -> Vec<u8> {
    let zeros = value.iter().take_while(|byte| **byte == 0).count();
    let own = &value[zeros..];
    let mut out = vec![own.len().min(255) as u8];
    out.extend_from_slice(own);
    out
}

pub(crate) fn float(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Digits behind the point that say that there is no fixed number of them.
const NOT_FIXED: u8 = 31;
/// Numbers with more digits than this before or behind the point are written with an exponent.
const PLAIN_DIGITS: i32 = 15;

/// A float as servers write it: as short as it can be read again, or with fixed digits.
pub(crate) fn float_text(value: f64, decimals: u8) -> Vec<u8> {
    if decimals < NOT_FIXED {
        return format!("{value:.*}", usize::from(decimals)).into_bytes();
    }
    let short = format!("{value:e}");
    let exponent = short
        .split_once('e')
        .and_then(|(_, exponent)| exponent.parse::<i32>().ok());
    let is_plain =
        exponent.is_none_or(|exponent| (-PLAIN_DIGITS..PLAIN_DIGITS).contains(&exponent));
    if is_plain { value.to_string() } else { short }.into_bytes()
}

/// `-838:59:59.000001`
fn time(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    let (sign, text) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    let mut parts = text.split(':');
    let mut part = || parts.next()?.parse::<f64>().ok();
    let (hours, minutes, seconds) = (part()?, part()?, part()?);
    let micros = ((hours * 60.0 + minutes) * 60.0 + seconds) * 1_000_000.0;
    // At most 839 hours.
    (micros.is_finite() && micros < 1e13).then_some(sign * micros.round() as i64)
}

/// Weights in order. Where a blank at the end does not count, the shorter one goes on with blanks.
fn weighed(one: &[u8], two: &[u8], pad: Option<&[u8]>) -> Ordering {
    let common = one.len().min(two.len());
    let begin = one[..common].cmp(&two[..common]);
    if begin != Ordering::Equal {
        return begin;
    }
    let Some(pad) = pad.filter(|pad| !pad.is_empty()) else {
        return one.len().cmp(&two.len());
    };
    let rest = |long: &[u8]| {
        long[common..]
            .iter()
            .copied()
            .cmp(pad.iter().copied().cycle().take(long.len() - common))
    };
    match one.len().cmp(&two.len()) {
        Ordering::Equal => Ordering::Equal,
        Ordering::Greater => rest(one),
        Ordering::Less => rest(two).reverse(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blank_at_the_end_counts_only_where_it_does_on_the_server() {
        let pad = Some(&[0x00, 0x20][..]);
        let a = [0x00, 0x41];
        let blank = [0x00, 0x41, 0x00, 0x20];
        let tab = [0x00, 0x41, 0x00, 0x09];
        assert_eq!(weighed(&a, &blank, pad), Ordering::Equal);
        assert_eq!(weighed(&a, &blank, None), Ordering::Less);
        assert_eq!(weighed(&tab, &a, pad), Ordering::Less);
        assert_eq!(weighed(&a, &tab, pad), Ordering::Greater);
    }

    #[test]
    fn a_float_is_written_as_servers_write_it() {
        for (value, text) in [
            (1e14, "100000000000000"),
            (1e15, "1e15"),
            (-1.5e20, "-1.5e20"),
            (0.1 + 0.2, "0.30000000000000004"),
            (1e-15, "0.000000000000001"),
            (1e-16, "1e-16"),
            (0.0, "0"),
        ] {
            assert_eq!(float_text(value, 31), text.as_bytes());
        }
        assert_eq!(float_text(2.5, 2), b"2.50");
    }

    #[test]
    fn every_kind_has_its_order() {
        let order = |kind, one: &str, two: &str| {
            let ranked = |text: &str| {
                Ranked::of(kind, Some(text.as_bytes()), Some(text.as_bytes()), None).unwrap()
            };
            ranked(one).compared(&ranked(two))
        };
        assert_eq!(order(Kind::Exact, "9", "10"), Ordering::Less);
        assert_eq!(order(Kind::Float, "1e2", "99.5"), Ordering::Greater);
        assert_eq!(
            order(Kind::Time, "-01:00:00", "-00:30:00.5"),
            Ordering::Less
        );
        assert_eq!(
            order(Kind::Time, "100:00:00", "99:59:59"),
            Ordering::Greater
        );
        assert_eq!(
            order(Kind::Moment, "2008-12-22", "2009-01-01"),
            Ordering::Less
        );
        assert_eq!(order(Kind::Bits, "\0\x02", "\x01\0"), Ordering::Less);
        assert_eq!(order(Kind::Bits, "\0\0", ""), Ordering::Equal);
        assert_eq!(order(Kind::Bits, "\x03", "\0\x02"), Ordering::Greater);
        assert_eq!(Ranked::of(Kind::Listed, Some(b"a"), None, None), None);
        assert_eq!(
            Ranked::of(Kind::Text, Some(b"a"), None, None),
            None,
            "no weight, no order"
        );
        assert_eq!(
            Ranked::Null.compared(&Ranked::Float(-1e300)),
            Ordering::Less
        );
    }
}
