//! Rows that an event has changed: an image before, an image after, or both.

use crate::column::{Column, is_set};
use crate::event::{Change, Rows};
use crate::packed;
use crate::value::{Value, value};
use wire::Malformed;
use wire::read::Reader;

const MINIMAL: Malformed =
    Malformed::new("a row without all of its columns: binlog_row_image must be FULL");
const PARTIAL: Malformed =
    Malformed::new("a row with parts of documents: binlog_row_value_options must be empty");
const OTHER_WIDTH: Malformed = Malformed::new("rows of another width than their table has");
const TOO_LONG: Malformed = Malformed::new("rows that are too long to be unpacked");
const NOT_NULL: Malformed = Malformed::new("a NULL in a column that has none");

/// A row with all of its columns.
pub type Image = Vec<Value>;

/// A row that was changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// As it was; none if it is new.
    pub before: Option<Image>,
    /// As it is; none if it is gone.
    pub after: Option<Image>,
}

impl Rows<'_> {
    /// Reads all rows and their values. `columns`: those of the table of this number.
    ///
    /// # Errors
    /// They are cut, have other columns, or lack some of them.
    pub fn read(&self, columns: &[Column]) -> Result<Vec<Row>, Malformed> {
        if self.is_partial {
            return Err(PARTIAL);
        }
        let mut r = Reader::new(self.values);
        if r.lenenc_int()? != columns.len() as u64 {
            return Err(OTHER_WIDTH);
        }
        let images = if self.change == Change::Update { 2 } else { 1 };
        for _ in 0..images {
            let present = r.take(columns.len().div_ceil(8))?;
            if !(0..columns.len()).all(|at| is_set(present, at)) {
                return Err(MINIMAL);
            }
        }
        match self.is_packed {
            false => self.all(&mut r, columns),
            true => {
                let unpacked = packed::text(r.rest())?.ok_or(TOO_LONG)?;
                self.all(&mut Reader::new(&unpacked), columns)
            }
        }
    }

    fn all(&self, r: &mut Reader<'_>, columns: &[Column]) -> Result<Vec<Row>, Malformed> {
        let mut rows = Vec::new();
        // A row of no columns takes no bytes.
        while !r.is_empty() && !columns.is_empty() {
            let first = image(r, columns)?;
            rows.push(match self.change {
                Change::Insert => Row {
                    before: None,
                    after: Some(first),
                },
                Change::Delete => Row {
                    before: Some(first),
                    after: None,
                },
                Change::Update => Row {
                    before: Some(first),
                    after: Some(image(r, columns)?),
                },
            });
        }
        Ok(rows)
    }
}

fn image(r: &mut Reader<'_>, columns: &[Column]) -> Result<Image, Malformed> {
    let nulls = r.take(columns.len().div_ceil(8))?;
    let mut image = Vec::with_capacity(columns.len());
    for (at, column) in columns.iter().enumerate() {
        image.push(match is_set(nulls, at) {
            false => value(r, column)?,
            true if column.nullable => Value::Null,
            true => return Err(NOT_NULL),
        });
    }
    Ok(image)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::{Kind, columns};

    /// `(id INT UNSIGNED NOT NULL, name VARCHAR(20) CHARACTER SET latin1)`, as a MySQL tells it.
    const TABLE: &[u8] = &[2, 3, 15, 2, 20, 0, 2, 1, 1, 0x80];

    fn rows(change: Change, values: &[u8]) -> Rows<'_> {
        Rows {
            change,
            table: 1,
            is_packed: false,
            is_partial: false,
            values,
        }
    }

    #[test]
    fn rows_are_read_with_what_was_before() {
        let columns = columns(TABLE).unwrap();
        assert_eq!(columns[0].unsigned, Some(true));
        assert_eq!(columns[1].kind, Kind::Text(20));
        let most = [0xff; 4];
        let mut values = vec![2, 3, 3];
        values.extend([&[0][..], &most, b"\x01a"].concat());
        values.extend([&[2][..], &most].concat());
        let read = rows(Change::Update, &values).read(&columns).unwrap();
        let key = || Value::Uint(u32::MAX.into());
        let row = Row {
            before: Some(vec![key(), Value::Bytes(b"a".to_vec())]),
            after: Some(vec![key(), Value::Null]),
        };
        assert_eq!(read, std::slice::from_ref(&row));
        // Without the second image it is cut.
        let cut = &values[..values.len() - 5];
        assert!(rows(Change::Update, cut).read(&columns).is_err());
        // Two rows that are gone, packed as a MariaDB does it.
        let mut packed = vec![2, 3, 0x80 | 1, 14];
        let mut encoder = flate2::write::ZlibEncoder::new(&mut packed, flate2::Compression::fast());
        let plain = [&[0][..], &most, b"\x01a", &[0], &most, b"\x01a"].concat();
        std::io::Write::write_all(&mut encoder, &plain).unwrap();
        encoder.finish().unwrap();
        let read = Rows {
            is_packed: true,
            ..rows(Change::Delete, &packed)
        };
        let read = read.read(&columns).unwrap();
        assert_eq!(read.len(), 2);
        assert_eq!((&read[1].before, &read[1].after), (&row.before, &None));
    }

    #[test]
    fn what_lacks_columns_is_refused_by_name() {
        let columns = columns(TABLE).unwrap();
        let values = [2, 1, 0, 1, 0, 0, 0];
        let refused = rows(Change::Insert, &values).read(&columns).unwrap_err();
        assert!(
            refused.to_string().contains("binlog_row_image"),
            "{refused}"
        );
        let partial = Rows {
            is_partial: true,
            ..rows(Change::Update, &values)
        };
        let refused = partial.read(&columns).unwrap_err();
        assert!(
            refused.to_string().contains("row_value_options"),
            "{refused}"
        );
        let wide = rows(Change::Insert, &[3, 7]).read(&columns);
        assert_eq!(wide, Err(OTHER_WIDTH));
        let null = [2, 3, 1];
        assert_eq!(rows(Change::Insert, &null).read(&columns), Err(NOT_NULL));
    }
}
