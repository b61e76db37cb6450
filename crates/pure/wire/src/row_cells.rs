//! Values of a row, read where they lie, and the row with some of them replaced.
//!
//! <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_com_query_response_text_resultset_row.html>
//! <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_binary_resultset.html>

use crate::Malformed;
use crate::definition::Shape;
use crate::execute::Value;
use crate::read::Reader;
use crate::resultset::write_value;
use crate::types::{Type, UNSIGNED_FLAG};
use crate::write::Write as _;
use std::borrow::Cow;
use std::ops::Range;

/// Where the values of rows lie. Kept from row to row, since its memory is.
#[derive(Debug, Default)]
pub struct RowCells {
    is_binary: bool,
    /// Each value as the row has it, with its length in front; none for NULL.
    cells: Vec<Option<Range<usize>>>,
}

/// A value that takes the place of another one: its column, and the text; none is NULL.
pub type Change<'a> = (usize, Option<&'a [u8]>);

impl RowCells {
    /// Of rows in text, or of those of a prepared statement.
    #[must_use]
    pub const fn new(is_binary: bool) -> Self {
        Self {
            is_binary,
            cells: Vec::new(),
        }
    }

    /// Whether the rows are those of a prepared statement.
    #[must_use]
    pub const fn is_binary(&self) -> bool {
        self.is_binary
    }

    /// Finds the values of a row.
    ///
    /// # Errors
    /// If it is not what the protocol promises.
    pub fn find(&mut self, payload: &[u8], shapes: &[Shape]) -> Result<(), Malformed> {
        self.cells.clear();
        let mut r = Reader::new(payload);
        if !self.is_binary {
            for _ in shapes {
                let begin = payload.len() - r.left();
                let value = r.lenenc_or_null()?;
                let end = payload.len() - r.left();
                self.cells.push(value.map(|_| begin..end));
            }
            return Ok(());
        }
        r.take(1)?;
        let nulls = r.take(nulls_len(shapes.len()))?;
        for (at, shape) in shapes.iter().enumerate() {
            if is_null(nulls, at) {
                self.cells.push(None);
                continue;
            }
            let begin = payload.len() - r.left();
            Value::read(&mut r, shape.kind, is_unsigned(shape))?;
            self.cells.push(Some(begin..payload.len() - r.left()));
        }
        Ok(())
    }

    /// A value of the row that was found last, as the text protocol has it; none for NULL.
    ///
    /// # Errors
    /// If it is not what the protocol promises.
    pub fn text<'p>(
        &self,
        payload: &'p [u8],
        at: usize,
        shape: &Shape,
    ) -> Result<Option<Cow<'p, [u8]>>, Malformed> {
        let Some(cell) = self.cells.get(at).cloned().flatten() else {
            return Ok(None);
        };
        let mut r = Reader::new(payload.get(cell).unwrap_or_default());
        if !self.is_binary {
            return Ok(r.lenenc_or_null()?.map(Cow::Borrowed));
        }
        Ok(match Value::read(&mut r, shape.kind, is_unsigned(shape))? {
            Value::Null => None,
            Value::Bytes(bytes) => Some(Cow::Borrowed(bytes)),
            other => Some(Cow::Owned(other.to_string().into_bytes())),
        })
    }

    /// Appends the row that was found last, with these values in place of others. They are in the
    /// order of their columns, and `shapes` say what each is written as.
    ///
    /// # Errors
    /// If a value is not of its column's type.
    pub fn write(
        &self,
        out: &mut Vec<u8>,
        payload: &[u8],
        shapes: &[Shape],
        changes: &[Change<'_>],
    ) -> Result<(), Malformed> {
        let bitmap = out.len() + 1;
        if self.is_binary {
            out.push(0);
            out.resize(bitmap + nulls_len(shapes.len()), 0);
        }
        let mut changes = changes.iter().peekable();
        for (at, (cell, shape)) in self.cells.iter().zip(shapes).enumerate() {
            let is_null = match changes.next_if(|(column, _)| *column == at) {
                Some((_, None)) => true,
                Some((_, Some(text))) => {
                    self.write_text(out, shape.kind, text)?;
                    false
                }
                None => {
                    let raw = cell.clone().and_then(|cell| payload.get(cell));
                    out.extend_from_slice(raw.unwrap_or_default());
                    raw.is_none()
                }
            };
            if is_null && self.is_binary {
                out[bitmap + (at + 2) / 8] |= 1 << ((at + 2) % 8);
            } else if is_null {
                out.push(0xFB);
            }
        }
        Ok(())
    }

    fn write_text(&self, out: &mut Vec<u8>, kind: Type, text: &[u8]) -> Result<(), Malformed> {
        if !self.is_binary {
            out.lenenc_bytes(text);
            return Ok(());
        }
        let value = crate::read_text::value(kind, text)
            .ok_or(Malformed::new("a value that is not of its column's type"))?;
        write_value(out, kind, &value);
        Ok(())
    }
}

/// Bytes of the bits that say which values are NULL; the first two bits are nobody's.
const fn nulls_len(columns: usize) -> usize {
    (columns + 2).div_ceil(8)
}

fn is_null(nulls: &[u8], at: usize) -> bool {
    let byte = nulls.get((at + 2) / 8).copied().unwrap_or(0);
    byte >> ((at + 2) % 8) & 1 != 0
}

const fn is_unsigned(shape: &Shape) -> bool {
    shape.flags & UNSIGNED_FLAG != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet;
    use crate::resultset::{Column, Writer};

    fn shapes(columns: &[Column]) -> Vec<Shape> {
        let shape = |column: &Column| {
            let mut definition = Vec::new();
            column.write(&mut definition, 0);
            Shape::of(&definition).unwrap()
        };
        columns.iter().map(shape).collect()
    }

    /// The payload of the only row that `write` makes.
    fn row(write: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut Writer::new(&mut out, 0, 0, 2));
        packet::join(&out).unwrap().0.into_owned()
    }

    #[test]
    fn values_are_replaced_and_the_rest_is_as_it_was() {
        let columns = [
            Column::text("a"),
            Column::unsigned("b"),
            Column::double("c"),
        ];
        let shapes = shapes(&columns);
        let text = |b: Option<&'static [u8]>| {
            row(|writer| writer.text_row([Some(&b"x"[..]), b, Some(b"0.5")]))
        };
        let values = |b| [Value::Bytes(b"x"), b, Value::Double(0.5)];
        let binary = |b| row(|writer| writer.binary_row(&columns, &values(b)));
        for (is_binary, before, null, after) in [
            (false, text(Some(b"7")), text(None), text(Some(b"9"))),
            (
                true,
                binary(Value::Uint(7)),
                binary(Value::Null),
                binary(Value::Uint(9)),
            ),
        ] {
            let mut cells = RowCells::new(is_binary);
            cells.find(&before, &shapes).unwrap();
            let said = |at| cells.text(&before, at, &shapes[at]).unwrap().unwrap();
            assert_eq!(
                (&*said(0), &*said(1), &*said(2)),
                (&b"x"[..], &b"7"[..], &b"0.5"[..])
            );
            for (change, wanted) in [
                (&[][..], &before),
                (&[(1, None)], &null),
                (&[(1, Some(&b"9"[..]))], &after),
            ] {
                let mut out = b"in front".to_vec();
                cells.write(&mut out, &before, &shapes, change).unwrap();
                assert_eq!(&out[8..], &wanted[..], "{is_binary} {change:?}");
            }
            let wrong = cells.write(&mut Vec::new(), &before, &shapes, &[(1, Some(b"y"))]);
            assert_eq!(wrong.is_err(), is_binary);
            cells.find(&null, &shapes).unwrap();
            assert_eq!(cells.text(&null, 1, &shapes[1]).unwrap(), None);
            let mut out = Vec::new();
            cells
                .write(&mut out, &null, &shapes, &[(1, Some(b"9"))])
                .unwrap();
            assert_eq!(out, after);
        }
    }

    #[test]
    fn a_row_that_ends_too_early_is_refused() {
        let shapes = shapes(&[Column::integer("a")]);
        for is_binary in [false, true] {
            let mut cells = RowCells::new(is_binary);
            assert!(
                cells
                    .find(b"\0\0\x01", &[shapes[0], shapes[0], shapes[0], shapes[0]])
                    .is_err()
            );
        }
    }
}
