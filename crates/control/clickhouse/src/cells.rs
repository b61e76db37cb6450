//! Values of ClickHouse as MySQL's: texts for rows of texts, values for rows of prepared statements.

use crate::data::{Data, number};
use crate::types::Type;
use crate::zone::{self, Zones};
use std::io::Write as _;
use wire::execute::{DateTime, Value};
use wire::resultset::Cells;
use wire::types::Type as Mysql;

impl Type {
    /// Bytes of a value, where all have as many.
    pub(crate) fn width(&self) -> usize {
        match self {
            Self::Int { bytes, .. }
            | Self::Float(bytes)
            | Self::Decimal { bytes, .. }
            | Self::Date { bytes }
            | Self::Enum { bytes, .. }
            | Self::Fixed(bytes) => *bytes,
            Self::Bool | Self::Nothing => 1,
            Self::DateTime(_) | Self::Ipv4 => 4,
            Self::DateTime64(..) => 8,
            Self::Uuid | Self::Ipv6 => 16,
            Self::String
            | Self::Json
            | Self::Nullable(_)
            | Self::Low(_)
            | Self::Array(_)
            | Self::Tuple(_)
            | Self::Map(..) => 0,
        }
    }
}

/// Returns what a value is once NULL and dictionaries are looked through: its type, data and row
/// there.
fn plain<'t, 'd, 'b>(
    of: &'t Type,
    data: &'d Data<'b>,
    row: usize,
) -> Option<(&'t Type, &'d Data<'b>, usize)> {
    match (of, data) {
        (Type::Nothing, _) => None,
        (Type::Nullable(inner), Data::Nullable(nulls, data)) => match nulls.get(row) {
            Some(0) => plain(inner, data, row),
            _ => None,
        },
        (Type::Low(inner), Data::Low(keys, indexes, has_null)) => {
            let index = *indexes.get(row)? as usize;
            match &**inner {
                Type::Nullable(of) if !*has_null || index > 0 => plain(of, keys, index),
                Type::Nullable(_) => None,
                of => plain(of, keys, index),
            }
        }
        _ => Some((of, data, row)),
    }
}

/// Bytes of a value.
fn bytes<'b>(of: &Type, data: &Data<'b>, row: usize) -> &'b [u8] {
    match data {
        Data::Fixed(all) => {
            let width = of.width();
            all.get(row * width..(row + 1) * width).unwrap_or_default()
        }
        Data::Texts(all, at) => match at.get(row) {
            Some((from, to)) => &all[*from as usize..*to as usize],
            None => &[],
        },
        _ => &[],
    }
}

/// Whether all that has come of a column of bytes is text.
pub(crate) fn is_text(of: &Type, data: &Data<'_>, rows: usize) -> bool {
    let is_text = |row| match plain(of, data, row) {
        Some((of, data, row)) => str::from_utf8(bytes(of, data, row)).is_ok(),
        None => true,
    };
    !matches!(of.bare(), Type::String | Type::Fixed(_)) || (0..rows).all(is_text)
}

/// Writes a value as the next cell of a row of texts.
pub(crate) fn cell(of: &Type, data: &Data<'_>, row: usize, zones: &Zones, cells: &mut Cells<'_>) {
    match plain(of, data, row) {
        None => cells.bytes(None),
        Some((of @ (Type::String | Type::Fixed(_) | Type::Json), data, row)) => {
            cells.bytes(Some(bytes(of, data, row)));
        }
        Some((of, data, row)) => cells.text(|out| plain_text(of, data, row, zones, out)),
    }
}

/// Writes a value as text; false if it is NULL.
pub(crate) fn text(
    of: &Type,
    data: &Data<'_>,
    row: usize,
    zones: &Zones,
    out: &mut Vec<u8>,
) -> bool {
    match plain(of, data, row) {
        Some((of, data, row)) => plain_text(of, data, row, zones, out),
        None => false,
    }
}

/// Writes a value that is looked through ([`plain`]); false if MySQL has none like it.
fn plain_text(of: &Type, data: &Data<'_>, row: usize, zones: &Zones, out: &mut Vec<u8>) -> bool {
    let raw = bytes(of, data, row);
    match of {
        Type::String | Type::Fixed(_) | Type::Json => out.extend_from_slice(raw),
        Type::Int { bytes, signed } => integer(raw, *bytes, *signed, out),
        Type::Bool => out.push(b'0' + u8::from(raw.first().is_some_and(|byte| *byte != 0))),
        Type::Float(_) => return float(raw, out),
        Type::Decimal { scale, .. } => decimal(raw, *scale, out),
        Type::Date { .. } => clock(&date(of, raw), None, out),
        Type::DateTime(zone) => clock(
            &zones.clock(zone.as_deref(), number(raw) as i64, 0),
            Some(0),
            out,
        ),
        Type::DateTime64(scale, zone) => {
            let (seconds, parts) = moment(raw, *scale);
            clock(&zones.clock(zone.as_deref(), seconds, 0), Some(0), out);
            if *scale > 0 {
                let width = *scale as usize;
                drop(write!(out, ".{parts:0width$}"));
            }
        }
        Type::Enum { names, .. } => {
            let wanted = signed(raw);
            match names.iter().find(|(number, _)| *number == wanted) {
                Some((_, name)) => out.extend_from_slice(name.as_bytes()),
                None => drop(write!(out, "{wanted}")),
            }
        }
        Type::Uuid => uuid(raw, out),
        Type::Ipv4 => drop(write!(
            out,
            "{}",
            std::net::Ipv4Addr::from(number(raw) as u32)
        )),
        Type::Ipv6 => ipv6(raw, out),
        Type::Array(_) | Type::Tuple(_) | Type::Map(..) => json(of, data, row, zones, out),
        Type::Nothing | Type::Nullable(_) | Type::Low(_) => return false,
    }
    true
}

/// A value for a column of a prepared statement's result, as far as it is no text.
pub(crate) fn value(
    kind: Mysql,
    of: &Type,
    data: &Data<'_>,
    row: usize,
    zones: &Zones,
) -> Option<Value<'static>> {
    let Some((of, data, row)) = plain(of, data, row) else {
        return Some(Value::Null);
    };
    let raw = bytes(of, data, row);
    Some(match (kind, of) {
        (Mysql::NEWDECIMAL | Mysql::VAR_STRING, _) => return None,
        (_, Type::Int { signed: true, .. }) => Value::Int(signed(raw)),
        (_, Type::Int { .. } | Type::Bool) => Value::Uint(number(raw) as u64),
        (_, Type::Float(4)) => match f32::from_le_bytes(raw.try_into().unwrap_or_default()) {
            number if number.is_finite() => Value::Float(number),
            _ => Value::Null,
        },
        (_, Type::Float(_)) => match f64::from_le_bytes(raw.try_into().unwrap_or_default()) {
            number if number.is_finite() => Value::Double(number),
            _ => Value::Null,
        },
        (_, Type::Date { .. }) => Value::Date(date(of, raw)),
        (_, Type::DateTime(zone)) => {
            Value::DateTime(zones.clock(zone.as_deref(), number(raw) as i64, 0))
        }
        (_, Type::DateTime64(scale, zone)) => {
            let (seconds, parts) = moment(raw, *scale);
            let micros = parts * 10_u64.pow(6_u32.saturating_sub(*scale));
            Value::DateTime(zones.clock(zone.as_deref(), seconds, micros as u32))
        }
        _ => return None,
    })
}

/// A signed number of up to eight bytes.
fn signed(raw: &[u8]) -> i64 {
    match *raw {
        [a] => return i64::from(a.cast_signed()),
        [a, b] => return i64::from(i16::from_le_bytes([a, b])),
        [a, b, c, d] => return i64::from(i32::from_le_bytes([a, b, c, d])),
        _ => {}
    }
    if let Ok(eight) = raw.try_into() {
        return i64::from_le_bytes(eight);
    }
    let fill = if raw.last().is_some_and(|byte| *byte >= 0x80) {
        0xFF
    } else {
        0
    };
    let mut eight = [fill; 8];
    eight[..raw.len().min(8)].copy_from_slice(&raw[..raw.len().min(8)]);
    i64::from_le_bytes(eight)
}

fn date(of: &Type, raw: &[u8]) -> DateTime {
    zone::day(match of {
        Type::Date { bytes: 2 } => number(raw) as i64,
        _ => signed(raw),
    })
}

/// Seconds, and how many parts of one.
fn moment(raw: &[u8], scale: u32) -> (i64, u64) {
    let one = 10_i64.pow(scale);
    let all = signed(raw);
    (all.div_euclid(one), all.rem_euclid(one).unsigned_abs())
}

fn clock(at: &DateTime, time: Option<u32>, out: &mut Vec<u8>) {
    let two = |out: &mut Vec<u8>, number: u8| out.extend([b'0' + number / 10, b'0' + number % 10]);
    two(out, (at.year / 100) as u8);
    two(out, (at.year % 100) as u8);
    out.push(b'-');
    two(out, at.month);
    out.push(b'-');
    two(out, at.day);
    if time.is_some() {
        out.push(b' ');
        two(out, at.hour);
        out.push(b':');
        two(out, at.minute);
        out.push(b':');
        two(out, at.second);
    }
}

fn integer(raw: &[u8], bytes: usize, is_signed: bool, out: &mut Vec<u8>) {
    let is_negative = is_signed && raw.last().is_some_and(|byte| *byte >= 0x80);
    if is_negative {
        out.push(b'-');
    }
    match bytes {
        0..=8 if is_signed => decimals(signed(raw).unsigned_abs(), out),
        0..=8 => decimals(number(raw) as u64, out),
        _ => out.extend_from_slice(digits(raw, is_negative).as_bytes()),
    }
}

/// Writes a number, two digits at a time: results are made of numbers, and the general way takes
/// several times as long.
fn decimals(mut number: u64, out: &mut Vec<u8>) {
    let mut digits = [0; 20]; // u64::MAX has as many
    let mut at = digits.len();
    while number >= 100 {
        let two = (number % 100) as u8;
        number /= 100;
        at -= 2;
        digits[at..at + 2].copy_from_slice(&[b'0' + two / 10, b'0' + two % 10]);
    }
    if number >= 10 {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
    }
    at -= 1;
    digits[at] = b'0' + number as u8;
    out.extend_from_slice(&digits[at..]);
}

/// The digits of a number of any width, without its sign.
fn digits(raw: &[u8], is_negative: bool) -> String {
    let mut words: Vec<u32> = raw
        .chunks(4)
        .map(|four| number(four) as u32)
        .map(|word| if is_negative { !word } else { word })
        .collect();
    if is_negative {
        for word in &mut words {
            let (sum, carries) = word.overflowing_add(1);
            *word = sum;
            if !carries {
                break;
            }
        }
    }
    let mut groups = Vec::new();
    while words.iter().any(|word| *word != 0) {
        let mut rest = 0_u64;
        for word in words.iter_mut().rev() {
            let all = rest << 32 | u64::from(*word);
            *word = (all / 1_000_000_000) as u32;
            rest = all % 1_000_000_000;
        }
        groups.push(rest);
    }
    let mut text = groups.pop().unwrap_or_default().to_string();
    for group in groups.iter().rev() {
        text += &format!("{group:09}");
    }
    text
}

fn decimal(raw: &[u8], scale: usize, out: &mut Vec<u8>) {
    let is_negative = raw.last().is_some_and(|byte| *byte >= 0x80);
    let digits = digits(raw, is_negative);
    let digits = format!("{digits:0>width$}", width = scale + 1);
    let (whole, parts) = digits.split_at(digits.len() - scale);
    if is_negative {
        out.push(b'-');
    }
    out.extend_from_slice(whole.as_bytes());
    if scale > 0 {
        out.push(b'.');
        out.extend_from_slice(parts.as_bytes());
    }
}

/// The shortest digits that are this number again; false if MySQL has no such number.
fn float(raw: &[u8], out: &mut Vec<u8>) -> bool {
    // Without a power of ten where few digits do; the library has its own bounds for that.
    let mut room = zmij::Buffer::new();
    if let [a, b, c, d] = *raw {
        let number = f32::from_le_bytes([a, b, c, d]);
        match f64::from(number.abs()) {
            _ if !number.is_finite() => return false,
            0.9e-6..1e-5 => drop(write!(out, "{number:e}")),
            0.9e13..1e15 => drop(write!(out, "{number}")),
            _ => short(room.format_finite(number), out),
        }
        return true;
    }
    let number = f64::from_le_bytes(raw.try_into().unwrap_or_default());
    match number.abs() {
        _ if !number.is_finite() => return false,
        1e15..1e16 => drop(write!(out, "{number:e}")),
        _ => short(room.format_finite(number), out),
    }
    true
}

/// Writes a number without the zero behind its point, and without the plus of its power of ten.
fn short(text: &str, out: &mut Vec<u8>) {
    match text.split_once("e+") {
        Some((digits, power)) => {
            out.extend_from_slice(digits.as_bytes());
            out.push(b'e');
            out.extend_from_slice(power.as_bytes());
        }
        None => out.extend_from_slice(text.strip_suffix(".0").unwrap_or(text).as_bytes()),
    }
}

/// Two halves, each with its last byte first.
fn uuid(raw: &[u8], out: &mut Vec<u8>) {
    let (high, low) = raw.split_at(raw.len().min(8));
    for (nth, byte) in high.iter().rev().chain(low.iter().rev()).enumerate() {
        if matches!(nth, 4 | 6 | 8 | 10) {
            out.push(b'-');
        }
        drop(write!(out, "{byte:02x}"));
    }
}

fn ipv6(raw: &[u8], out: &mut Vec<u8>) {
    let sixteen: [u8; 16] = raw.try_into().unwrap_or_default();
    drop(write!(out, "{}", std::net::Ipv6Addr::from(sixteen)));
}

/// A value as JSON.
fn json(of: &Type, data: &Data<'_>, row: usize, zones: &Zones, out: &mut Vec<u8>) {
    let Some((of, data, row)) = plain(of, data, row) else {
        out.extend_from_slice(b"null");
        return;
    };
    match (of, data) {
        (Type::Array(inner), Data::Array(ends, data)) => {
            let (from, to) = bounds(ends, row);
            out.push(b'[');
            for at in from..to {
                comma(at > from, out);
                json(inner, data, at, zones, out);
            }
            out.push(b']');
        }
        (Type::Map(key, value), Data::Array(ends, data)) => {
            let Data::Tuple(parts) = &**data else { return };
            let (from, to) = bounds(ends, row);
            out.push(b'{');
            for at in from..to {
                comma(at > from, out);
                let mut name = Vec::new();
                text(key, &parts[0], at, zones, &mut name);
                quoted(&name, out);
                out.push(b':');
                json(value, &parts[1], at, zones, out);
            }
            out.push(b'}');
        }
        (Type::Tuple(types), Data::Tuple(parts)) => {
            let is_named = types.iter().any(|(name, _)| name.is_some());
            out.push(if is_named { b'{' } else { b'[' });
            for (nth, ((name, of), data)) in types.iter().zip(parts).enumerate() {
                comma(nth > 0, out);
                if is_named {
                    quoted(name.as_deref().unwrap_or_default().as_bytes(), out);
                    out.push(b':');
                }
                json(of, data, row, zones, out);
            }
            out.push(if is_named { b'}' } else { b']' });
        }
        (Type::Json, _) => out.extend_from_slice(bytes(of, data, row)),
        (Type::Bool, _) => {
            let is = bytes(of, data, row).first().is_some_and(|byte| *byte != 0);
            out.extend_from_slice(if is { b"true" } else { b"false" });
        }
        (Type::Int { bytes: 1..=8, .. } | Type::Float(_), _) => {
            if !text(of, data, row, zones, out) {
                out.extend_from_slice(b"null");
            }
        }
        _ => {
            let mut plain = Vec::new();
            text(of, data, row, zones, &mut plain);
            quoted(&plain, out);
        }
    }
}

fn bounds(ends: &[usize], row: usize) -> (usize, usize) {
    let from = row.checked_sub(1).and_then(|before| ends.get(before));
    (
        from.copied().unwrap_or(0),
        ends.get(row).copied().unwrap_or(0),
    )
}

fn comma(is: bool, out: &mut Vec<u8>) {
    if is {
        out.push(b',');
    }
}

/// A text of JSON, which is always UTF-8.
fn quoted(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for c in String::from_utf8_lossy(text).chars() {
        match c {
            '"' | '\\' => out.extend([b'\\', c as u8]),
            '\n' => out.extend_from_slice(b"\\n"),
            '\r' => out.extend_from_slice(b"\\r"),
            '\t' => out.extend_from_slice(b"\\t"),
            c if u32::from(c) < 0x20 => drop(write!(out, "\\u{:04x}", u32::from(c))),
            c => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::parse;

    fn shown(of: &str, raw: &[u8]) -> String {
        let mut out = Vec::new();
        match text(
            &parse(of).unwrap(),
            &Data::Fixed(raw),
            0,
            &Zones::utc(),
            &mut out,
        ) {
            true => String::from_utf8(out).unwrap(),
            false => "NULL".into(),
        }
    }

    #[test]
    fn floats_are_the_shortest_that_are_themselves_again() {
        let is_plain = |number: f64| number == 0.0 || (1e-5..1e15).contains(&number.abs());
        // A number in the middle of two that are as short may be written as either.
        let same = |found: &str, wanted: &str, is_it: &dyn Fn(&str) -> bool| {
            let is_as_good = found.len() == wanted.len() && is_it(found);
            assert!(found == wanted || is_as_good, "{found}, not {wanted}");
        };
        let powers = (-320..309).map(|power| format!("1e{power}").parse::<f64>().unwrap());
        let mut bits = 1_u64;
        let any = std::iter::repeat_with(|| {
            bits = bits
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            f64::from_bits(bits)
        });
        let odd = [
            0.0,
            -0.0,
            0.1,
            1.0,
            123_456.0,
            -1.5,
            f64::MAX,
            f64::MIN_POSITIVE,
        ];
        let near = powers.flat_map(|power| [power, power.next_down(), power * 1.5]);
        for number in odd.into_iter().chain(near).chain(any.take(20_000)) {
            let as_rust = match number {
                number if !number.is_finite() => "NULL".to_owned(),
                number if is_plain(number) => number.to_string(),
                number => format!("{number:e}"),
            };
            same(
                &shown("Float64", &number.to_le_bytes()),
                &as_rust,
                &|text| text.parse().is_ok_and(|read: f64| read == number),
            );
            let number = number as f32;
            let as_rust = match number {
                number if !number.is_finite() => "NULL".to_owned(),
                number if is_plain(f64::from(number)) => number.to_string(),
                number => format!("{number:e}"),
            };
            same(
                &shown("Float32", &number.to_le_bytes()),
                &as_rust,
                &|text| text.parse().is_ok_and(|read: f32| read == number),
            );
        }
    }

    #[test]
    fn numbers_are_exact_at_their_bounds() {
        assert_eq!(shown("Int8", &[0x80]), "-128");
        assert_eq!(shown("UInt64", &[0xFF; 8]), "18446744073709551615");
        assert_eq!(
            shown("Int64", &i64::MIN.to_le_bytes()),
            "-9223372036854775808"
        );
        assert_eq!(
            shown("Int128", &i128::MIN.to_le_bytes()),
            i128::MIN.to_string()
        );
        assert_eq!(shown("UInt128", &[0xFF; 16]), u128::MAX.to_string());
        let mut least = [0; 32];
        least[31] = 0x80;
        assert_eq!(
            shown("Int256", &least),
            "-57896044618658097711785492504343953926634992332820282019728792003956564819968"
        );
        assert_eq!(shown("Decimal(9, 3)", &(-1_i32).to_le_bytes()), "-0.001");
        assert_eq!(
            shown("Decimal(38, 0)", &(10_i128.pow(37)).to_le_bytes()),
            10_i128.pow(37).to_string()
        );
        assert_eq!(shown("Float32", &0.1_f32.to_le_bytes()), "0.1");
        assert_eq!(shown("Float64", &1e300_f64.to_le_bytes()), "1e300");
        assert_eq!(shown("Float64", &f64::NAN.to_le_bytes()), "NULL");
        assert_eq!(shown("Float32", &f32::INFINITY.to_le_bytes()), "NULL");
        assert_eq!(shown("Date", &[0xFF, 0xFF]), "2149-06-06");
        assert_eq!(shown("Date32", &(-25_567_i32).to_le_bytes()), "1900-01-01");
        assert_eq!(
            shown("DateTime64(3)", &(-1_i64).to_le_bytes()),
            "1969-12-31 23:59:59.999"
        );
        assert_eq!(shown("IPv4", &[1, 0, 0, 127]), "127.0.0.1");
    }
}
