//! Values of the text protocol, read as what their columns have.

use crate::execute::{DateTime, Time, Value};
use crate::types::{Layout, Type};

/// A value of a column of this type; `None` for what is none.
pub(crate) fn value(kind: Type, text: &[u8]) -> Option<Value<'_>> {
    let said = || std::str::from_utf8(text).ok();
    Some(match kind {
        Type::FLOAT => Value::Float(said()?.parse().ok()?),
        Type::DOUBLE => Value::Double(said()?.parse().ok()?),
        Type::DATE | Type::DATETIME | Type::TIMESTAMP => Value::DateTime(moment(said()?)?),
        Type::TIME => Value::Time(time(said()?)?),
        _ => match kind.layout()? {
            Layout::Fixed(_) => whole(said()?)?,
            Layout::Short | Layout::Lenenc => Value::Bytes(text),
        },
    })
}

fn whole(text: &str) -> Option<Value<'static>> {
    let signed = text.parse().ok().map(Value::Int);
    signed.or_else(|| text.parse().ok().map(Value::Uint))
}

/// `2008-12-24 10:11:12.000013`
fn moment(text: &str) -> Option<DateTime> {
    let (day, time) = text.split_once(' ').unwrap_or((text, "00:00:00"));
    let mut parts = day.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    let (hour, minute, second, micros) = clock(time)?;
    Some(DateTime {
        year: year.parse().ok()?,
        month: month.parse().ok()?,
        day: day.parse().ok()?,
        hour: u8::try_from(hour).ok()?,
        minute,
        second,
        micros,
    })
}

/// `-838:59:59.000001`
fn time(text: &str) -> Option<Time> {
    let (negative, text) = text
        .strip_prefix('-')
        .map_or((false, text), |rest| (true, rest));
    let (hours, minute, second, micros) = clock(text)?;
    Some(Time {
        negative,
        days: hours / 24,
        hour: u8::try_from(hours % 24).ok()?,
        minute,
        second,
        micros,
    })
}

/// Hours, minutes, seconds and their millionths.
fn clock(text: &str) -> Option<(u32, u8, u8, u32)> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut parts = whole.split(':');
    let (hour, minute, second) = (parts.next()?, parts.next()?, parts.next()?);
    let micros = match fraction.len() {
        0 => 0,
        digits @ 1..=6 => fraction.parse::<u32>().ok()? * 10_u32.pow(6 - digits as u32),
        _ => return None,
    };
    Some((
        hour.parse().ok()?,
        minute.parse().ok()?,
        second.parse().ok()?,
        micros,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_as_their_columns_have_them() {
        for (kind, text, wanted) in [
            (Type::LONGLONG, "-7", Some(Value::Int(-7))),
            (
                Type::LONGLONG,
                "18446744073709551615",
                Some(Value::Uint(u64::MAX)),
            ),
            (Type::LONG, "00042", Some(Value::Int(42))),
            (Type::YEAR, "2008", Some(Value::Int(2008))),
            (Type::TINY, "x", None),
            (Type::DOUBLE, "1e300", Some(Value::Double(1e300))),
            (Type::FLOAT, "0.1", Some(Value::Float(0.1))),
            (Type::NEWDECIMAL, "1.20", Some(Value::Bytes(b"1.20"))),
            (Type::VAR_STRING, "x", Some(Value::Bytes(b"x"))),
            (Type::DATE, "2008-12", None),
        ] {
            assert_eq!(value(kind, text.as_bytes()), wanted, "{text}");
        }
        let moment = DateTime {
            year: 2008,
            month: 12,
            day: 24,
            hour: 10,
            minute: 1,
            second: 2,
            micros: 30_000,
        };
        let read = value(Type::DATETIME, b"2008-12-24 10:01:02.03");
        assert_eq!(read, Some(Value::DateTime(moment)));
        let time = Time {
            negative: true,
            days: 34,
            hour: 22,
            minute: 59,
            second: 58,
            micros: 1,
        };
        assert_eq!(
            value(Type::TIME, b"-838:59:58.000001"),
            Some(Value::Time(time))
        );
    }
}
