//! JSON as MySQL keeps it, to a text. Places in it are counted from the value that has them, so that
//! garbage could lead anywhere: depth and length are bounded.
//!
//! <https://dev.mysql.com/doc/dev/mysql-server/latest/json__binary_8h.html>

use crate::value::{clock, moment};
use wire::Malformed;
use wire::read::Reader;

/// MySQL allows so many levels.
const DEPTH_MAX: u32 = 100;
/// Bytes of a text.
const TEXT_MAX: usize = 64 << 20;

const BROKEN: Malformed = Malformed::new("a JSON value that is broken");
const TOO_DEEP: Malformed = Malformed::new("a JSON value that is too deep or too long");

/// Writes a value out.
pub(crate) fn text(bytes: &[u8]) -> Result<String, Malformed> {
    let mut out = String::new();
    let (kind, rest) = bytes.split_first().ok_or(BROKEN)?;
    write(&mut out, *kind, rest, DEPTH_MAX)?;
    Ok(out)
}

/// `depth`: levels that may still come.
fn write(out: &mut String, kind: u8, bytes: &[u8], depth: u32) -> Result<(), Malformed> {
    if depth == 0 || out.len() > TEXT_MAX {
        return Err(TOO_DEEP);
    }
    let mut r = Reader::new(bytes);
    match kind {
        0..=3 => return composed(out, kind, bytes, depth),
        4 => out.push_str(literal(r.u8()?)?),
        5 => out.push_str(&r.u16()?.cast_signed().to_string()),
        6 => out.push_str(&r.u16()?.to_string()),
        7 => out.push_str(&r.u32()?.cast_signed().to_string()),
        8 => out.push_str(&r.u32()?.to_string()),
        9 => out.push_str(&r.u64()?.cast_signed().to_string()),
        10 => out.push_str(&r.u64()?.to_string()),
        11 => double(out, f64::from_le_bytes(r.array()?))?,
        12 => {
            let len = length(&mut r)?;
            quoted(out, std::str::from_utf8(r.take(len)?).map_err(|_| BROKEN)?);
        }
        15 => opaque(out, &mut r)?,
        _ => return Err(BROKEN),
    }
    Ok(())
}

fn literal(code: u8) -> Result<&'static str, Malformed> {
    match code {
        0 => Ok("null"),
        1 => Ok("true"),
        2 => Ok("false"),
        _ => Err(BROKEN),
    }
}

fn double(out: &mut String, number: f64) -> Result<(), Malformed> {
    if !number.is_finite() {
        return Err(BROKEN);
    }
    let text = format!("{number:?}");
    out.push_str(&text);
    Ok(())
}

/// Seven bits a byte, the lowest first; the highest bit says that more follows.
fn length(r: &mut Reader<'_>) -> Result<usize, Malformed> {
    let mut len = 0_usize;
    for shift in [0, 7, 14, 21, 28] {
        let byte = r.u8()?;
        len |= usize::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(len);
        }
    }
    Err(BROKEN)
}

/// An object or an array: how many elements and bytes there are, where keys and values stand, and
/// small values in place of their places.
fn composed(out: &mut String, kind: u8, bytes: &[u8], depth: u32) -> Result<(), Malformed> {
    let (is_large, is_object) = (kind & 1 == 1, kind < 2);
    let number = |r: &mut Reader<'_>| -> Result<usize, Malformed> {
        match is_large {
            true => usize::try_from(r.u32()?).map_err(|_| BROKEN),
            false => Ok(r.u16()?.into()),
        }
    };
    let mut r = Reader::new(bytes);
    let (count, _len) = (number(&mut r)?, number(&mut r)?);
    let key_width = if is_large { 6 } else { 4 };
    let value_width = if is_large { 5 } else { 3 };
    let keys_len = if is_object {
        count.checked_mul(key_width)
    } else {
        Some(0)
    };
    let mut keys = Reader::new(r.take(keys_len.ok_or(BROKEN)?)?);
    let values_len = count.checked_mul(value_width).ok_or(BROKEN)?;
    let mut values = Reader::new(r.take(values_len)?);
    out.push(if is_object { '{' } else { '[' });
    for at in 0..count {
        if at > 0 {
            out.push_str(", ");
        }
        if is_object {
            let (place, len) = (number(&mut keys)?, usize::from(keys.u16()?));
            let key = bytes.get(place..).and_then(|from| from.get(..len));
            let key = std::str::from_utf8(key.ok_or(BROKEN)?).map_err(|_| BROKEN)?;
            quoted(out, key);
            out.push_str(": ");
        }
        let kind = values.u8()?;
        let own = values.take(value_width - 1)?;
        // Small ones are in the entry itself.
        let is_here = matches!(kind, 4..=6) || is_large && matches!(kind, 7 | 8);
        let from = match is_here {
            true => own,
            false => {
                let place = number(&mut Reader::new(own))?;
                bytes.get(place..).ok_or(BROKEN)?
            }
        };
        write(out, kind, from, depth - 1)?;
    }
    out.push(if is_object { '}' } else { ']' });
    Ok(())
}

fn quoted(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if c < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
}

/// A value of another type of SQL: its number, a length, its bytes.
fn opaque(out: &mut String, r: &mut Reader<'_>) -> Result<(), Malformed> {
    let (kind, len) = (r.u8()?, length(r)?);
    let bytes = r.take(len)?;
    let mut value = Reader::new(bytes);
    match kind {
        246 => {
            let (digits, scale) = (value.u8()?, value.u8()?);
            out.push_str(&decimal(&mut value, digits, scale)?);
        }
        7 | 10..=12 => {
            let packed = value.u64()?.cast_signed();
            let (whole, micros) = (
                packed.unsigned_abs() >> 24,
                packed.unsigned_abs() & 0xFF_FFFF,
            );
            let shown = match kind {
                10 => moment(whole).chars().take(10).collect(),
                11 => format!("{}.{micros:06}", clock(packed < 0, whole)),
                _ => format!("{}.{micros:06}", moment(whole)),
            };
            quoted(out, &shown);
        }
        kind => {
            let shown = format!("base64:type{kind}:{}", base64(bytes));
            quoted(out, &shown);
        }
    }
    Ok(())
}

fn decimal(r: &mut Reader<'_>, digits: u8, scale: u8) -> Result<String, Malformed> {
    use crate::column::{Column, Kind};
    if !(1..=65).contains(&digits) || scale > digits {
        return Err(BROKEN);
    }
    let column = Column {
        kind: Kind::Decimal(digits, scale),
        unsigned: None,
        nullable: false,
    };
    match crate::value::value(r, &column)? {
        crate::value::Value::Text(text) => Ok(text),
        _ => Err(BROKEN),
    }
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let mut bits = [0; 3];
        bits[..group.len()].copy_from_slice(group);
        let bits = u32::from_be_bytes([0, bits[0], bits[1], bits[2]]);
        for at in 0..4 {
            match at <= group.len() {
                true => out.push(char::from(LETTERS[(bits >> (18 - 6 * at) & 63) as usize])),
                false => out.push('='),
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_arrays_and_scalars_are_written_as_a_server_does() {
        // {"a": 1, "b": [true, "x"]}
        let array = [
            2, 0, 12, 0, // two elements, twelve bytes
            4, 1, 0, // true
            12, 10, 0, // a string at 10
            1, b'x',
        ];
        let mut object = vec![2, 0, 34, 0];
        object.extend([18, 0, 1, 0, 19, 0, 1, 0]); // keys at 18 and 19
        object.extend([5, 1, 0, 2, 20, 0]); // 1 here, an array at 20
        object.extend(b"ab");
        object.extend(array);
        let mut bytes = vec![0];
        bytes.extend(&object);
        assert_eq!(text(&bytes).unwrap(), r#"{"a": 1, "b": [true, "x"]}"#);
        for end in 0..bytes.len() {
            assert!(text(&bytes[..end]).is_err(), "{end}");
        }
        assert_eq!(text(&[5, 0xff, 0xff]).unwrap(), "-1");
        assert_eq!(text(&[12, 2, b'"', 1]).unwrap(), "\"\\\"\\u0001\"");
        let half = [&[11][..], &0.5_f64.to_le_bytes()].concat();
        assert_eq!(text(&half).unwrap(), "0.5");
        // 1.5 as DECIMAL(2,1), and bytes.
        assert_eq!(text(&[15, 246, 4, 2, 1, 0x81, 5]).unwrap(), "1.5");
        assert_eq!(
            text(&[15, 252, 1, b'x']).unwrap(),
            "\"base64:type252:eA==\""
        );
    }

    #[test]
    fn a_value_that_is_in_itself_ends() {
        // An array whose two elements are itself: without a bound, two to the power of its depth.
        let own = [2, 0, 10, 0, 2, 0, 0, 2, 0, 0];
        let mut bytes = vec![2];
        bytes.extend(own);
        assert_eq!(text(&bytes), Err(TOO_DEEP));
    }
}
