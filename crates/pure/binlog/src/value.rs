//! Values of rows: bytes to what one would write in SQL.
//!
//! <https://dev.mysql.com/doc/dev/mysql-server/latest/classmysql_1_1binlog_1_1event_1_1Rows__event.html>

use crate::column::{Column, Kind};
use crate::{json, packed};
use wire::Malformed;
use wire::read::Reader;

const NO_VALUE: Malformed = Malformed::new("a value that its column cannot have");

/// The value of one column of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// NULL.
    Null,
    /// An integer.
    Int(i64),
    /// An integer of a column without a sign.
    Uint(u64),
    /// FLOAT.
    Float(f32),
    /// DOUBLE.
    Double(f64),
    /// DECIMAL, a date or a time, as SQL has them. A TIMESTAMP is in UTC.
    Text(String),
    /// Bytes of a string in the character set of its column; those of a blob, a geometry (its SRID
    /// before its WKB), a vector. A BINARY lacks the zeros at its end, a CHAR its blanks.
    Bytes(Vec<u8>),
    /// BIT; number of an ENUM; members of a SET, one a bit.
    Bits(u64),
    /// JSON as a text.
    Json(String),
}

/// Reads a value that is not NULL.
pub(crate) fn value(r: &mut Reader<'_>, column: &Column) -> Result<Value, Malformed> {
    Ok(match column.kind {
        Kind::Integer(bytes) => integer(little(r, bytes)?, bytes, column.unsigned == Some(true)),
        Kind::Float => Value::Float(f32::from_le_bytes(r.array()?)),
        Kind::Double => Value::Double(f64::from_le_bytes(r.array()?)),
        Kind::Decimal(digits, scale) => Value::Text(decimal(r, digits, scale)?),
        Kind::Year => Value::Text(match r.u8()? {
            0 => "0000".to_owned(),
            since => (1900 + u32::from(since)).to_string(),
        }),
        Kind::Date => Value::Text(date(r.u24()?)),
        Kind::OldTime => Value::Text(old_time(r.u24()?)),
        Kind::OldDatetime => Value::Text(old_datetime(r.u64()?)),
        Kind::OldTimestamp => Value::Text(timestamp(r.u32()?.into(), "")?),
        Kind::Time(digits) => Value::Text(time(r, digits)?),
        Kind::Datetime(digits) => Value::Text(datetime(r, digits)?),
        Kind::Timestamp(digits) => {
            let seconds = big(r, 4)?;
            let fraction = fraction(r, digits)?;
            Value::Text(timestamp(seconds, &fraction)?)
        }
        Kind::Bit(bytes) => Value::Bits(big(r, bytes)?),
        Kind::Enum(bytes) | Kind::Set(bytes) => Value::Bits(little(r, bytes)?),
        Kind::Text(longest) => Value::Bytes(text(r, longest)?.to_vec()),
        Kind::Blob(len_len) => Value::Bytes(blob(r, len_len)?.to_vec()),
        Kind::Json(len_len) => match blob(r, len_len)? {
            // A server in another mode writes an empty one for what it could not keep.
            [] => Value::Json("null".to_owned()),
            bytes => Value::Json(json::text(bytes)?),
        },
        Kind::PackedText(longest) => Value::Bytes(unpacked(text(r, longest)?)?),
        Kind::PackedBlob(len_len) => Value::Bytes(unpacked(blob(r, len_len)?)?),
    })
}

fn little(r: &mut Reader<'_>, bytes: u8) -> Result<u64, Malformed> {
    let taken = r.take(bytes.into())?.iter().rev();
    Ok(taken.fold(0, |all, byte| all << 8 | u64::from(*byte)))
}

fn big(r: &mut Reader<'_>, bytes: u8) -> Result<u64, Malformed> {
    let taken = r.take(bytes.into())?.iter();
    Ok(taken.fold(0, |all, byte| all << 8 | u64::from(*byte)))
}

fn integer(bits: u64, bytes: u8, unsigned: bool) -> Value {
    if unsigned {
        return Value::Uint(bits);
    }
    let unused = 64 - 8 * u32::from(bytes);
    Value::Int((bits << unused).cast_signed() >> unused)
}

fn text<'a>(r: &mut Reader<'a>, longest: u16) -> Result<&'a [u8], Malformed> {
    let len = if longest > 255 {
        r.u16()?
    } else {
        r.u8()?.into()
    };
    r.take(len.into())
}

fn blob<'a>(r: &mut Reader<'a>, len_len: u8) -> Result<&'a [u8], Malformed> {
    let len = usize::try_from(little(r, len_len)?).map_err(|_| NO_VALUE)?;
    r.take(len)
}

/// A column of a MariaDB that is COMPRESSED: a byte that says how, the length, and zlib.
fn unpacked(bytes: &[u8]) -> Result<Vec<u8>, Malformed> {
    match bytes.split_first() {
        None => Ok(Vec::new()),
        Some((0, plain)) => Ok(plain.to_vec()),
        Some((how, rest)) => packed::column(*how, rest),
    }
}

/// Digits in groups of nine, four bytes each; what is left over has fewer.
/// <https://dev.mysql.com/doc/refman/en/precision-math-decimal-characteristics.html>
fn decimal(r: &mut Reader<'_>, digits: u8, scale: u8) -> Result<String, Malformed> {
    const BYTES: [usize; 10] = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4];
    let (whole, scale) = (usize::from(digits - scale), usize::from(scale));
    let bytes_of = |digits: usize| digits / 9 * 4 + BYTES[digits % 9];
    let mut bytes = r.take(bytes_of(whole) + bytes_of(scale))?.to_vec();
    let negative = bytes.first().is_some_and(|first| first & 0x80 == 0);
    if let Some(first) = bytes.first_mut() {
        *first ^= 0x80;
    }
    if negative {
        bytes.iter_mut().for_each(|byte| *byte = !*byte);
    }
    let mut r = Reader::new(&bytes);
    let mut group = |digits: usize, out: &mut String| -> Result<(), Malformed> {
        let bytes = u8::try_from(BYTES[digits]).map_err(|_| NO_VALUE)?;
        let number = big(&mut r, bytes)?;
        out.push_str(&format!("{number:0digits$}"));
        Ok(())
    };
    let (mut left, mut right) = (String::new(), String::new());
    if whole % 9 > 0 {
        group(whole % 9, &mut left)?;
    }
    (0..whole / 9).try_for_each(|_| group(9, &mut left))?;
    (0..scale / 9).try_for_each(|_| group(9, &mut right))?;
    if scale % 9 > 0 {
        group(scale % 9, &mut right)?;
    }
    let left = match left.trim_start_matches('0') {
        "" => "0",
        left => left,
    };
    let sign = if negative { "-" } else { "" };
    Ok(match right.as_str() {
        "" => format!("{sign}{left}"),
        right => format!("{sign}{left}.{right}"),
    })
}

fn date(bits: u32) -> String {
    let (year, month, day) = (bits >> 9, bits >> 5 & 15, bits & 31);
    format!("{year:04}-{month:02}-{day:02}")
}

fn old_time(bits: u32) -> String {
    // A number of 24 bits with a sign, whose digits are those of the time.
    let number = (bits << 8).cast_signed() >> 8;
    let (sign, n) = (if number < 0 { "-" } else { "" }, number.unsigned_abs());
    format!(
        "{sign}{:02}:{:02}:{:02}",
        n / 10_000,
        n / 100 % 100,
        n % 100
    )
}

fn old_datetime(number: u64) -> String {
    let (day, time) = (number / 1_000_000, number % 1_000_000);
    format!(
        "{:04}-{:02}-{:02} {:02}:{:02}:{:02}",
        day / 10_000,
        day / 100 % 100,
        day % 100,
        time / 10_000,
        time / 100 % 100,
        time % 100
    )
}

/// Digits of a second, with their point.
fn fraction(r: &mut Reader<'_>, digits: u8) -> Result<String, Malformed> {
    let bytes = digits.div_ceil(2);
    if bytes == 0 {
        return Ok(String::new());
    }
    let number = big(r, bytes)?;
    Ok(shown_fraction(number, digits))
}

/// Two digits are kept in a byte, whether the second is wanted or not.
fn shown_fraction(number: u64, digits: u8) -> String {
    let kept = usize::from(digits.div_ceil(2)) * 2;
    let all = format!("{number:0kept$}");
    match all.get(..usize::from(digits)) {
        Some("") | None => String::new(),
        Some(digits) => format!(".{digits}"),
    }
}

fn datetime(r: &mut Reader<'_>, digits: u8) -> Result<String, Malformed> {
    const SIGN: u64 = 1 << 39;
    let bits = big(r, 5)?.checked_sub(SIGN).ok_or(NO_VALUE)?;
    Ok(moment(bits) + &fraction(r, digits)?)
}

/// 17 bits of months, 5 of the day, 5 of hours, 6 of minutes, 6 of seconds.
pub(crate) fn moment(bits: u64) -> String {
    let (day, time) = (bits >> 17, bits & 0x1FFFF);
    let (months, day) = (day >> 5, day & 31);
    format!(
        "{:04}-{:02}-{:02} {:02}:{:02}:{:02}",
        months / 13,
        months % 13,
        day,
        time >> 12,
        time >> 6 & 63,
        time & 63
    )
}

/// Three bytes with the fraction behind them; below zero, all of it together is a complement.
fn time(r: &mut Reader<'_>, digits: u8) -> Result<String, Malformed> {
    let more = digits.div_ceil(2);
    let bits = big(r, 3 + more)?;
    let zero = 0x80_0000_u64 << (8 * more);
    let (negative, bits) = (bits < zero, bits.abs_diff(zero));
    let (whole, part) = (bits >> (8 * more), bits & ((1 << (8 * more)) - 1));
    let part = shown_fraction(part, digits);
    Ok(clock(negative, whole) + &part)
}

/// 10 bits of hours, 6 of minutes, 6 of seconds.
pub(crate) fn clock(negative: bool, bits: u64) -> String {
    let sign = if negative { "-" } else { "" };
    let (hours, minutes, seconds) = (bits >> 12 & 0x3FF, bits >> 6 & 63, bits & 63);
    format!("{sign}{hours:02}:{minutes:02}:{seconds:02}")
}

/// Seconds since 1970; 0 is no moment.
fn timestamp(seconds: u64, fraction: &str) -> Result<String, Malformed> {
    if seconds == 0 && fraction.bytes().all(|byte| matches!(byte, b'0' | b'.')) {
        return Ok(format!("0000-00-00 00:00:00{fraction}"));
    }
    let days = i64::try_from(seconds / 86_400).map_err(|_| NO_VALUE)?;
    let (year, month, day) = civil(days);
    let second = seconds % 86_400;
    let (hours, minutes, second) = (second / 3600, second / 60 % 60, second % 60);
    Ok(format!(
        "{year:04}-{month:02}-{day:02} {hours:02}:{minutes:02}:{second:02}{fraction}"
    ))
}

/// The day that is so many days after 1970-01-01. Years begin in March, so that a leap day is the
/// last of its year.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    (era * 400 + year + next, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kind: Kind, bytes: &[u8]) -> Value {
        let column = Column {
            kind,
            unsigned: None,
            nullable: true,
        };
        let mut r = Reader::new(bytes);
        let read = value(&mut r, &column).unwrap();
        assert!(r.is_empty(), "{kind:?}");
        for end in 0..bytes.len() {
            assert!(
                value(&mut Reader::new(&bytes[..end]), &column).is_err(),
                "{kind:?}"
            );
        }
        read
    }

    fn text_of(kind: Kind, bytes: &[u8]) -> String {
        match of(kind, bytes) {
            Value::Text(text) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn integers_have_their_sign() {
        assert_eq!(of(Kind::Integer(1), &[0xff]), Value::Int(-1));
        assert_eq!(of(Kind::Integer(2), &[0x00, 0x80]), Value::Int(-32_768));
        assert_eq!(of(Kind::Integer(3), &[0xfe, 0xff, 0xff]), Value::Int(-2));
        assert_eq!(of(Kind::Integer(4), &[1, 0, 0, 0]), Value::Int(1));
        let most = [0xff; 8];
        assert_eq!(of(Kind::Integer(8), &most), Value::Int(-1));
        let column = Column {
            kind: Kind::Integer(8),
            unsigned: Some(true),
            nullable: false,
        };
        assert_eq!(
            value(&mut Reader::new(&most), &column),
            Ok(Value::Uint(u64::MAX))
        );
    }

    /// The manual's own example, 1234567890.1234, with its sign and without.
    #[test]
    fn decimals_are_exact() {
        let kind = Kind::Decimal(14, 4);
        let plus = [0x81, 0x0D, 0xFB, 0x38, 0xD2, 0x04, 0xD2];
        assert_eq!(text_of(kind, &plus), "1234567890.1234");
        let minus = plus.map(|byte: u8| !byte);
        assert_eq!(text_of(kind, &minus), "-1234567890.1234");
        assert_eq!(text_of(Kind::Decimal(1, 0), &[0x80]), "0");
        assert_eq!(text_of(Kind::Decimal(2, 2), &[0x85]), "0.05");
        assert_eq!(text_of(Kind::Decimal(9, 0), &[0x80, 0, 0, 7]), "7");
    }

    #[test]
    fn dates_and_times_are_as_sql_has_them() {
        assert_eq!(text_of(Kind::Date, &[0x98, 0xb1, 0x0f]), "2008-12-24");
        assert_eq!(text_of(Kind::Year, &[108]), "2008");
        assert_eq!(text_of(Kind::Year, &[0]), "0000");
        // 2008-12-24 13:14:15.5
        let months = 2008 * 13 + 12_u64;
        let bits = 1 << 39 | months << 22 | 24 << 17 | 13 << 12 | 14 << 6 | 15;
        let mut bytes = bits.to_be_bytes()[3..].to_vec();
        assert_eq!(text_of(Kind::Datetime(0), &bytes), "2008-12-24 13:14:15");
        bytes.push(50);
        assert_eq!(text_of(Kind::Datetime(1), &bytes), "2008-12-24 13:14:15.5");
        let seconds = 1_230_124_455_u32.to_be_bytes();
        assert_eq!(text_of(Kind::Timestamp(0), &seconds), "2008-12-24 13:14:15");
        assert_eq!(text_of(Kind::Timestamp(0), &[0; 4]), "0000-00-00 00:00:00");
        assert_eq!(
            text_of(Kind::OldTimestamp, &[1, 0, 0, 0]),
            "1970-01-01 00:00:01"
        );
        assert_eq!(
            text_of(Kind::OldDatetime, &20_081_224_131_415_u64.to_le_bytes()),
            "2008-12-24 13:14:15"
        );
        assert_eq!(text_of(Kind::OldTime, &[0xff, 0xff, 0xff]), "-00:00:01");
        assert_eq!(text_of(Kind::Time(0), &[0x80, 0xc3, 0x4f]), "12:13:15");
        assert_eq!(text_of(Kind::Time(0), &[0x7f, 0xff, 0xff]), "-00:00:01");
        // -00:00:01.10: the complement of 1 and 10 together.
        assert_eq!(
            text_of(Kind::Time(2), &[0x7f, 0xff, 0xfe, 0xf6]),
            "-00:00:01.10"
        );
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(11_017), (2000, 3, 1));
    }

    #[test]
    fn strings_bits_and_members_are_read_by_their_widths() {
        assert_eq!(of(Kind::Text(255), b"\x02ab"), Value::Bytes(b"ab".to_vec()));
        assert_eq!(
            of(Kind::Text(256), b"\x02\0ab"),
            Value::Bytes(b"ab".to_vec())
        );
        assert_eq!(of(Kind::Blob(3), b"\x01\0\0a"), Value::Bytes(b"a".to_vec()));
        assert_eq!(of(Kind::Bit(2), &[1, 2]), Value::Bits(0x102));
        assert_eq!(of(Kind::Set(2), &[1, 2]), Value::Bits(0x201));
        assert_eq!(of(Kind::Enum(1), &[3]), Value::Bits(3));
        assert_eq!(of(Kind::Float, &1.5_f32.to_le_bytes()), Value::Float(1.5));
        assert_eq!(
            of(Kind::Double, &(-0.1_f64).to_le_bytes()),
            Value::Double(-0.1)
        );
        assert_eq!(
            of(Kind::PackedText(255), b"\x03\0ab"),
            Value::Bytes(b"ab".to_vec())
        );
    }
}
