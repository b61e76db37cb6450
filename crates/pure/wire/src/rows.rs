//! A small result of the text protocol, read as a whole: for questions that the proxy asks by
//! itself.

use crate::Malformed;
use crate::caps::{self, Caps};
use crate::ok;
use crate::packet;
use crate::read::Reader;
use crate::types::Type;

/// What a column is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// The type.
    pub kind: Type,
    /// *_FLAG bits of [`crate::types`].
    pub flags: u16,
}

impl Shape {
    /// Of a column that the server has not described.
    pub const UNTOLD: Self = Self {
        kind: Type::NULL,
        flags: 0,
    };
}

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

/// Reads a result, and has each row of so many columns seen.
fn each(
    mut bytes: &[u8],
    caps: Caps,
    mut row: impl FnMut(&[u8], usize) -> Result<(), Malformed>,
) -> Result<Rows, Malformed> {
    let mut next = || -> Result<std::borrow::Cow<'_, [u8]>, Malformed> {
        let (payload, used, _) =
            packet::join(bytes).ok_or(Malformed::new("a result that ends too early"))?;
        bytes = &bytes[used..];
        Ok(payload)
    };
    let first = next()?;
    if matches!(
        first.first(),
        None | Some(&(ok::OK_HEADER | ok::ERR_HEADER))
    ) {
        return Ok(Rows::default());
    }
    let (columns, follow) = crate::outline::columns(&first, caps)?;
    let mut found = Rows::default();
    if !follow {
        let columns = usize::try_from(columns)
            .ok()
            .filter(|columns| *columns <= crate::response::COLUMNS_MAX as usize);
        found.shapes =
            vec![Shape::UNTOLD; columns.ok_or(Malformed::new("impossible number of columns"))?];
    }
    for _ in found.shapes.len() as u64..columns {
        let came = next()?;
        let mut definition = Vec::with_capacity(came.len());
        crate::definition::write(&mut definition, &came, caps, 0);
        let field = crate::definition::field(&definition, 0)?;
        let mut r = Reader::new(&definition[field.end..]);
        r.take(1 + 2 + 4)?;
        found.shapes.push(Shape {
            kind: Type(r.u8()?),
            flags: r.u16()?,
        });
        found.definitions.push(definition);
    }
    if !caps::has(caps, caps::DEPRECATE_EOF) {
        next()?;
    }
    loop {
        let payload = next()?;
        match payload.first() {
            Some(&ok::ERR_HEADER) => return Ok(Rows::default()),
            Some(&ok::EOF_HEADER) if payload.len() < packet::MAX_PAYLOAD => return Ok(found),
            _ => {}
        }
        row(&payload, found.shapes.len())?;
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
        let _number = read_executed_number(data, caps);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resultset::{Column, Writer};

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
