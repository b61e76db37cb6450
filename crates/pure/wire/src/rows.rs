//! A small result of the text protocol, read as a whole: for questions that the proxy asks by
//! itself.

pub use crate::definition::Shape;

use crate::Malformed;
use crate::caps::{self, Caps};
use crate::execute::Value;
use crate::ok;
use crate::packet;
use crate::read::Reader;
use crate::roles::Roles;

/// A result.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rows {
    /// The payloads of the columns' definitions without extended types, from left to right; none
    /// where they were left out.
    pub definitions: Vec<Vec<u8>>,
    /// Columns, from left to right.
    pub shapes: Vec<Shape>,
    /// Rows; `None` is NULL.
    pub rows: Vec<Vec<Option<Vec<u8>>>>,
}

/// Reads a response whose end was seen. One without rows (OK, ERR) is an empty result.
///
/// # Errors
/// If it is not what the protocol promises.
pub fn read(bytes: &[u8], caps: Caps) -> Result<Rows, Malformed> {
    let mut rows = Vec::new();
    let found = each(bytes, caps, |payload, columns| {
        let mut r = Reader::new(payload);
        let row = (0..columns).map(|_| Ok(r.lenenc_or_null()?.map(<[u8]>::to_vec)));
        rows.push(row.collect::<Result<_, Malformed>>()?);
        Ok(())
    })?;
    // An error ends a result that is none then.
    Ok(if found.shapes.is_empty() {
        found
    } else {
        Rows { rows, ..found }
    })
}

/// Reads the answer to a COM_STMT_EXECUTE whose end was seen. Values are written as the text
/// protocol has them, so that [`crate::resultset::Writer::binary_row_of_text`] makes of them what
/// they were.
///
/// # Errors
/// If it is not what the protocol promises, or columns are not described.
pub fn read_executed(bytes: &[u8], caps: Caps) -> Result<Rows, Malformed> {
    let mut payloads = Vec::new();
    let found = each(bytes, caps, |payload, _| {
        payloads.push(payload.to_vec());
        Ok(())
    })?;
    let rows = payloads
        .iter()
        .map(|payload| executed(payload, &found.shapes));
    Ok(Rows {
        rows: rows.collect::<Result<_, _>>()?,
        ..found
    })
}

/// A row of the binary protocol.
/// <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_binary_resultset.html>
fn executed(payload: &[u8], shapes: &[Shape]) -> Result<Vec<Option<Vec<u8>>>, Malformed> {
    let mut r = Reader::new(payload);
    r.take(1)?;
    // The bits begin with two that nobody uses.
    let nulls = r.take((shapes.len() + 2).div_ceil(8))?;
    let is_null = |at: usize| nulls[(at + 2) / 8] >> ((at + 2) % 8) & 1 != 0;
    let values = shapes.iter().enumerate().map(|(at, shape)| {
        if is_null(at) {
            return Ok(None);
        }
        let is_unsigned = shape.flags & crate::types::UNSIGNED_FLAG != 0;
        Ok(match Value::read(&mut r, shape.kind, is_unsigned)? {
            Value::Null => None,
            Value::Bytes(bytes) => Some(bytes.to_vec()),
            other => Some(other.to_string().into_bytes()),
        })
    });
    values.collect()
}

/// Whether another result follows the first one: the answer to several statements, or to a CALL.
#[must_use]
pub fn are_several(bytes: &[u8], caps: Caps) -> bool {
    first_len(bytes, caps) < bytes.len()
}

/// The results of an answer whose end was seen, one after another.
#[must_use]
pub fn results(mut bytes: &[u8], caps: Caps) -> Vec<&[u8]> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let (one, rest) = bytes.split_at(first_len(bytes, caps).max(1));
        all.push(one);
        bytes = rest;
    }
    all
}

/// Bytes of the first result.
fn first_len(bytes: &[u8], caps: Caps) -> usize {
    let first = packet::join(bytes).map(|(payload, ..)| payload);
    let is_rows = first.is_some_and(|first| {
        !matches!(
            first.first(),
            None | Some(&(ok::OK_HEADER | ok::ERR_HEADER))
        )
    });
    let mut rest = bytes;
    let mut ends = 1 + usize::from(!caps::has(caps, caps::DEPRECATE_EOF));
    while let Some((payload, used, _)) = packet::join(rest) {
        rest = &rest[used..];
        let is_end =
            payload.first() == Some(&ok::EOF_HEADER) && payload.len() < packet::MAX_PAYLOAD;
        let is_error = payload.first() == Some(&ok::ERR_HEADER);
        ends -= usize::from(is_end && ends > 0);
        if !is_rows || is_error || ends == 0 {
            break;
        }
    }
    bytes.len() - rest.len()
}

/// The number in the answer to a COM_STMT_EXECUTE that has one row of one whole number, or of NULL;
/// `None` if it has another.
#[must_use]
pub fn read_executed_number(bytes: &[u8], caps: Caps) -> Option<Option<i64>> {
    let (mut rows, mut number) = (0, None);
    each(bytes, caps, |payload, columns| {
        rows += 1;
        // <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_binary_resultset.html>:
        // a zero, which values are NULL (beginning with the third bit), and the values.
        number = match payload {
            [0, 4] if columns == 1 => Some(None),
            [0, 0, value @ ..] if columns == 1 => match value.len() {
                1 => value.first().map(|byte| i64::from(byte.cast_signed())),
                2 => value.try_into().ok().map(i16::from_le_bytes).map(i64::from),
                4 => value.try_into().ok().map(i32::from_le_bytes).map(i64::from),
                8 => value.try_into().ok().map(i64::from_le_bytes),
                _ => None,
            }
            .map(Some),
            _ => None,
        };
        Ok(())
    })
    .ok()?;
    number.filter(|_| rows == 1)
}

/// Columns of a result, and where its rows begin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Columns {
    /// The payloads of the columns' definitions without extended types, from left to right; none
    /// where they were left out.
    pub definitions: Vec<Vec<u8>>,
    /// Columns, from left to right; none for an OK or an error.
    pub shapes: Vec<Shape>,
    /// Offset of the first packet behind them.
    pub rows_at: usize,
}

/// Reads the columns of a response, of which at least those are here. An OK or an error has none.
///
/// # Errors
/// If they are not what the protocol promises.
pub fn columns(bytes: &[u8], caps: Caps) -> Result<Columns, Malformed> {
    let mut found = Columns::default();
    let next = |found: &mut Columns| -> Result<std::borrow::Cow<'_, [u8]>, Malformed> {
        let rest = bytes.get(found.rows_at..).unwrap_or_default();
        let (payload, used, _) =
            packet::join(rest).ok_or(Malformed::new("a result that ends too early"))?;
        found.rows_at += used;
        Ok(payload)
    };
    let first = next(&mut found)?;
    if matches!(
        first.first(),
        None | Some(&(ok::OK_HEADER | ok::ERR_HEADER))
    ) {
        return Ok(found);
    }
    let (columns, follow) = crate::outline::columns(&first, caps)?;
    if !follow {
        let columns = usize::try_from(columns)
            .ok()
            .filter(|columns| *columns <= crate::response::COLUMNS_MAX as usize);
        found.shapes =
            vec![Shape::UNTOLD; columns.ok_or(Malformed::new("impossible number of columns"))?];
    }
    for _ in found.shapes.len() as u64..columns {
        let came = next(&mut found)?;
        let mut definition = Vec::with_capacity(came.len());
        crate::definition::write(&mut definition, &came, caps, 0);
        found.shapes.push(Shape::of(&definition)?);
        found.definitions.push(definition);
    }
    if !caps::has(caps, caps::DEPRECATE_EOF) {
        next(&mut found)?;
    }
    Ok(found)
}

/// The payload of the row that begins here, and its length with headers. None where rows end.
#[must_use]
pub fn row(bytes: &[u8]) -> Option<(std::borrow::Cow<'_, [u8]>, usize)> {
    let (payload, used, _) = packet::join(bytes)?;
    let first = *payload.first()?;
    Roles::is_row(first, payload.len()).then_some((payload, used))
}

/// Reads a result, and has each row of so many columns seen.
fn each(
    bytes: &[u8],
    caps: Caps,
    mut see: impl FnMut(&[u8], usize) -> Result<(), Malformed>,
) -> Result<Rows, Malformed> {
    let columns = columns(bytes, caps)?;
    if columns.shapes.is_empty() {
        return Ok(Rows::default());
    }
    let mut rest = bytes.get(columns.rows_at..).unwrap_or_default();
    while let Some((payload, used)) = row(rest) {
        see(&payload, columns.shapes.len())?;
        rest = &rest[used..];
    }
    let (end, ..) = packet::join(rest).ok_or(Malformed::new("a result that ends too early"))?;
    match end.first() {
        Some(&ok::ERR_HEADER) => Ok(Rows::default()),
        Some(_) => Ok(Rows {
            definitions: columns.definitions,
            shapes: columns.shapes,
            rows: Vec::new(),
        }),
        None => Err(Malformed::new("an empty row")),
    }
}

/// Fuzz target: any bytes are read, or refused.
pub fn fuzz_rows(data: &[u8]) {
    for caps in [
        0,
        caps::DEPRECATE_EOF,
        caps::OPTIONAL_METADATA,
        caps::MARIADB_EXTENDED_TYPES,
    ] {
        if let Ok(found) = read(data, caps) {
            assert!(found.rows.iter().all(|row| row.len() == found.shapes.len()));
        }
        if let Ok(found) = read_executed(data, caps) {
            assert!(found.rows.iter().all(|row| row.len() == found.shapes.len()));
        }
        crate::roles::fuzz(data, caps);
        let all: usize = results(data, caps).iter().map(|one| one.len()).sum();
        assert_eq!(all, data.len());
        let _several = are_several(data, caps);
        let _number = read_executed_number(data, caps);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resultset::{Column, Writer};
    use crate::types::Type;

    #[test]
    fn what_a_server_writes_is_read() {
        for caps in [caps::PROTOCOL_41, caps::PROTOCOL_41 | caps::DEPRECATE_EOF] {
            let mut out = Vec::new();
            let mut writer = Writer::new(&mut out, 0, caps, 2);
            writer.columns(&[Column::text("a"), Column::unsigned("b")]);
            writer.text_row([Some(&b"x"[..]), None]);
            writer.end(0);
            let found = read(&out, caps).unwrap();
            assert_eq!(
                found.shapes.iter().map(|s| s.kind).collect::<Vec<_>>(),
                [Type::VAR_STRING, Type::LONGLONG]
            );
            assert_eq!(found.rows, [[Some(b"x".to_vec()), None]]);
            assert!(read(&out[..out.len() - 1], caps).is_err());
        }
    }

    #[test]
    fn rows_of_prepared_statements_are_read_and_written_as_they_were() {
        let columns = [
            Column::text("a"),
            Column::unsigned("b"),
            Column::double("c"),
            Column {
                kind: Type::DATETIME,
                ..Column::text("d")
            },
            Column {
                kind: Type::TIME,
                ..Column::text("e")
            },
        ];
        let date = crate::execute::DateTime {
            year: 2008,
            month: 12,
            day: 24,
            second: 7,
            micros: 5,
            ..Default::default()
        };
        let time = crate::execute::Time {
            negative: true,
            days: 2,
            minute: 3,
            ..Default::default()
        };
        let values = [
            Value::Bytes(b"x"),
            Value::Uint(u64::MAX),
            Value::Double(0.1),
            Value::DateTime(date),
            Value::Time(time),
        ];
        for caps in [caps::PROTOCOL_41, caps::PROTOCOL_41 | caps::DEPRECATE_EOF] {
            let mut out = Vec::new();
            let mut writer = Writer::new(&mut out, 0, caps, 2);
            writer.columns(&columns);
            writer.binary_row(&columns, &values);
            writer.binary_row(&columns, &[const { Value::Null }; 5]);
            writer.end(0);
            let found = read_executed(&out, caps).unwrap();
            assert_eq!(found.rows[1], [const { None }; 5]);
            let said = found.rows[0].iter().flatten();
            let said: Vec<_> = said.map(|value| String::from_utf8_lossy(value)).collect();
            assert_eq!(said[..3], ["x", "18446744073709551615", "0.1"]);
            let mut again = Vec::new();
            let mut writer = Writer::new(&mut again, 0, caps, 2);
            writer.columns(&columns);
            for row in &found.rows {
                let row = row.iter().map(Option::as_deref);
                writer.binary_row_of_text(&found.shapes, row).unwrap();
            }
            writer.end(0);
            assert_eq!(again, out);
            assert!(!are_several(&out, caps));
            out.extend_from_within(..);
            assert!(are_several(&out, caps));
        }
    }

    #[test]
    fn rows_are_read_whose_columns_are_not_described() {
        for caps in
            [0, caps::DEPRECATE_EOF].map(|eof| caps::PROTOCOL_41 | caps::OPTIONAL_METADATA | eof)
        {
            let mut out = Vec::new();
            let mut writer = Writer::new(&mut out, 0, caps, 2).bare();
            writer.columns(&[Column::text("a"), Column::unsigned("b")]);
            writer.text_row([Some(&b"x"[..]), None]);
            writer.end(0);
            let found = read(&out, caps).unwrap();
            assert_eq!(
                (found.shapes, found.definitions.len()),
                (vec![Shape::UNTOLD; 2], 0)
            );
            assert_eq!(found.rows, [[Some(b"x".to_vec()), None]]);
        }
    }

    #[test]
    fn the_number_that_an_execution_answers_is_read() {
        use crate::execute::Value;
        let said = |columns: &[Column], rows: &[&[Value<'_>]]| {
            let caps = caps::PROTOCOL_41 | caps::DEPRECATE_EOF;
            let mut out = Vec::new();
            let mut writer = Writer::new(&mut out, 0, caps, 2);
            writer.columns(columns);
            rows.iter().for_each(|row| writer.binary_row(columns, row));
            writer.end(0);
            read_executed_number(&out, caps)
        };
        let long = [Column {
            kind: Type::LONG,
            ..Column::integer("a")
        }];
        let longlong = [Column::integer("a")];
        assert_eq!(said(&long, &[&[Value::Int(1)]]), Some(Some(1)));
        assert_eq!(said(&longlong, &[&[Value::Int(-7)]]), Some(Some(-7)));
        assert_eq!(said(&longlong, &[&[Value::Null]]), Some(None));
        assert_eq!(said(&longlong, &[&[Value::Int(1)], &[Value::Int(1)]]), None);
        assert_eq!(
            said(
                &[Column::integer("a"), Column::integer("b")],
                &[&[Value::Int(1), Value::Int(1)]]
            ),
            None
        );
        assert_eq!(said(&longlong, &[]), None);
    }

    #[test]
    fn an_answer_without_rows_is_an_empty_result() {
        assert_eq!(
            read(b"\x07\0\0\x01\0\0\0\x02\0\0\0", 0),
            Ok(Rows::default())
        );
    }
}
