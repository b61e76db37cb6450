//! A result of the text protocol, read row by row while it arrives.
//!
//! Where the response ends, and how, [`crate::response::Response`] says.

use crate::caps::{self, Caps};
use crate::definition::Shape;
use crate::read::Reader;
use crate::{Malformed, definition, ok, packet};
use std::borrow::Cow;

/// A row; `None` is NULL.
pub type Row = Vec<Option<Vec<u8>>>;

/// Bytes that have been read and still lie in the buffer, before the rest is moved to its front.
const READ_MAX: usize = 64 << 10;

/// Which packet is next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Count,
    Definitions,
    Eof,
    Rows,
    Nothing,
}

/// Reads the first result of a response.
#[derive(Debug)]
pub struct RowStream {
    caps: Caps,
    bytes: Vec<u8>,
    read: usize,
    next: Next,
    columns: usize,
    definitions: Vec<Vec<u8>>,
    shapes: Vec<Shape>,
}

impl RowStream {
    /// Of a connection with these caps, without `MARIADB_CACHE_METADATA`-like omissions: every column
    /// is described.
    #[must_use]
    pub const fn new(caps: Caps) -> Self {
        Self {
            caps,
            bytes: Vec::new(),
            read: 0,
            next: Next::Count,
            columns: 0,
            definitions: Vec::new(),
            shapes: Vec::new(),
        }
    }

    /// Takes what has arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.read > READ_MAX || self.read == self.bytes.len() {
            self.bytes.drain(..self.read);
            self.read = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Whether the columns are known, or there are none.
    #[must_use]
    pub fn is_described(&self) -> bool {
        matches!(self.next, Next::Rows | Next::Nothing)
    }

    /// The columns' definitions, without extended types.
    #[must_use]
    pub fn definitions(&self) -> &[Vec<u8>] {
        &self.definitions
    }

    /// Returns the shapes of the columns.
    #[must_use]
    pub fn shapes(&self) -> &[Shape] {
        &self.shapes
    }

    /// Reads the columns, as far as they are here.
    ///
    /// # Errors
    /// If they are not what the protocol promises.
    pub fn describe(&mut self) -> Result<(), Malformed> {
        while !self.is_described() {
            let Some((payload, used, _)) = packet::join(&self.bytes[self.read..]) else {
                break;
            };
            match self.next {
                Next::Count
                    if matches!(
                        payload.first(),
                        None | Some(&(ok::OK_HEADER | ok::ERR_HEADER))
                    ) =>
                {
                    self.next = Next::Nothing;
                }
                Next::Count => {
                    let (columns, follow) = crate::outline::columns(&payload, self.caps)?;
                    self.columns = usize::try_from(columns)
                        .ok()
                        .filter(|columns| {
                            (1..=crate::response::COLUMNS_MAX as usize).contains(columns) && follow
                        })
                        .ok_or(Malformed::new("impossible number of columns"))?;
                    self.next = Next::Definitions;
                }
                Next::Definitions => {
                    let mut described = Vec::with_capacity(payload.len());
                    definition::write(&mut described, &payload, self.caps, 0);
                    self.shapes.push(Shape::of(&described)?);
                    self.definitions.push(described);
                    if self.definitions.len() == self.columns {
                        self.next = match caps::has(self.caps, caps::DEPRECATE_EOF) {
                            true => Next::Rows,
                            false => Next::Eof,
                        };
                    }
                }
                Next::Eof => self.next = Next::Rows,
                Next::Rows | Next::Nothing => {}
            }
            self.read += used;
        }
        Ok(())
    }

    /// Whether a whole row is here. False before the columns are described.
    #[must_use]
    pub fn has_row(&self) -> bool {
        self.next == Next::Rows && self.row().is_some()
    }

    /// The row that is next, and how many bytes it has with its headers.
    fn row(&self) -> Option<(Cow<'_, [u8]>, usize)> {
        let (payload, used, _) = packet::join(&self.bytes[self.read..])?;
        let ends = match payload.first() {
            Some(&ok::ERR_HEADER) => true,
            Some(&ok::EOF_HEADER) => payload.len() < packet::MAX_PAYLOAD,
            _ => false,
        };
        (!ends).then_some((payload, used))
    }

    /// The next row, if all of it is here.
    ///
    /// # Errors
    /// If it is not what the protocol promises.
    pub fn next_row(&mut self) -> Result<Option<Row>, Malformed> {
        self.describe()?;
        if self.next != Next::Rows {
            return Ok(None);
        }
        let Some((payload, used)) = self.row() else {
            return Ok(None);
        };
        let mut r = Reader::new(&payload);
        let cells = (0..self.columns).map(|_| Ok(r.lenenc_or_null()?.map(<[u8]>::to_vec)));
        let row = cells.collect::<Result<Row, Malformed>>()?;
        self.read += used;
        Ok(Some(row))
    }
}

/// Fuzz target: bytes in pieces of any length give the rows that they give at once.
pub fn fuzz_row_stream(data: &[u8]) {
    let Some((first, bytes)) = data.split_first() else {
        return;
    };
    for caps in [0, caps::DEPRECATE_EOF, caps::MARIADB_EXTENDED_TYPES] {
        let read = |piece: usize| {
            let mut stream = RowStream::new(caps);
            let mut rows = Vec::new();
            for piece in bytes.chunks(piece.max(1)) {
                stream.push(piece);
                loop {
                    match stream.next_row() {
                        Ok(Some(row)) => rows.push(row),
                        Ok(None) => break,
                        Err(_) => return (rows, false),
                    }
                }
            }
            (rows, true)
        };
        assert_eq!(read(bytes.len()), read(usize::from(*first)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resultset::{Column, Writer};

    fn written(caps: Caps) -> Vec<u8> {
        let mut out = Vec::new();
        let mut writer = Writer::new(&mut out, 0, caps, 2);
        writer.columns(&[Column::text("a"), Column::integer("b")]);
        writer.text_row([Some(&b"x"[..]), None]);
        writer.text_row([Some(&b""[..]), Some(b"7")]);
        writer.end(0);
        out
    }

    #[test]
    fn rows_come_as_soon_as_they_are_whole() {
        for caps in [0, caps::DEPRECATE_EOF] {
            let bytes = written(caps);
            for piece in [1, 3, bytes.len()] {
                let mut stream = RowStream::new(caps);
                let mut rows = Vec::new();
                for piece in bytes.chunks(piece) {
                    stream.push(piece);
                    while let Some(row) = stream.next_row().expect("well-formed") {
                        rows.push(row);
                    }
                }
                assert!(stream.is_described() && stream.definitions().len() == 2);
                let wanted = [
                    vec![Some(b"x".to_vec()), None],
                    vec![Some(Vec::new()), Some(b"7".to_vec())],
                ];
                assert_eq!(rows, wanted);
            }
        }
    }

    #[test]
    fn an_error_is_no_row() {
        let mut stream = RowStream::new(0);
        stream.push(&[5, 0, 0, 1, 0xff, 0x51, 0x04, b'n', b'o']);
        assert_eq!(stream.next_row().expect("well-formed"), None);
        assert!(stream.is_described() && stream.shapes().is_empty());
    }
}
