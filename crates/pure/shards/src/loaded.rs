//! A file of LOAD DATA LOCAL INFILE: its rows, and the partition that each of them belongs to.
//!
//! <https://dev.mysql.com/doc/refman/9.4/en/load-data.html>

use crate::map::Table;
use crate::written::home_written;
use sql::tree::Literal;
use std::ops::Range;

/// A LOAD DATA LOCAL whose rows go to several partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// Number of the table in its map.
    pub table: u32,
    /// Name of the file, for the client.
    pub file: Vec<u8>,
    /// How rows are written in it.
    pub format: Format,
    /// Which field is the key, from 0.
    pub key: usize,
    /// Fields that a row has.
    pub columns: usize,
    /// Lines at the beginning that are left out.
    pub skipped: u64,
    /// Tables with rows of partitions.
    pub places: Vec<LoadedPlace>,
    /// For each home of the table its place.
    pub(crate) place_of: Vec<usize>,
}

/// A table with rows of partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadedPlace {
    /// The writer's hostgroup.
    pub hostgroup: u32,
    /// The partitions, for people.
    pub partitions: String,
    /// Statement that loads its rows.
    pub text: Vec<u8>,
}

/// How rows and fields end in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Format {
    pub(crate) field_end: Vec<u8>,
    pub(crate) enclosed: Option<u8>,
    pub(crate) escaped: Option<u8>,
    pub(crate) line_start: Vec<u8>,
    pub(crate) line_end: Vec<u8>,
}

impl Default for Format {
    fn default() -> Self {
        Self {
            field_end: b"\t".to_vec(),
            enclosed: None,
            escaped: Some(b'\\'),
            line_start: Vec::new(),
            line_end: b"\n".to_vec(),
        }
    }
}

impl Loaded {
    /// The place of a row with this key.
    ///
    /// # Errors
    /// A sentence: why that is not known.
    pub fn place(&self, table: &Table, key: &Field) -> Result<usize, String> {
        let literal = match key {
            Field::Null => Literal::Null,
            Field::Text(text) => Literal::Text(text.as_slice().into()),
            Field::Missing => {
                return Err(format!(
                    "it has no value for {}, by which {} is spread",
                    table.column,
                    table.shown()
                ));
            }
        };
        let home = home_written(table, &literal, &mut None)?;
        Ok(self.place_of.get(home).copied().unwrap_or_default())
    }
}

impl Format {
    /// Whether rows of it can be told apart here; else why not.
    pub(crate) fn may_be_read(&self) -> Result<(), String> {
        let all = [&self.field_end, &self.line_end, &self.line_start];
        let is_ascii = all.iter().all(|text| text.is_ascii())
            && self.enclosed.is_none_or(|byte| byte.is_ascii())
            && self.escaped.is_none_or(|byte| byte.is_ascii());
        if self.field_end.is_empty() || self.line_end.is_empty() || !is_ascii {
            return Err("fields and lines of its file must end with ASCII of their own, which rows are told apart by".into());
        }
        if self.field_end == self.line_end {
            return Err(
                "fields and lines of its file end alike; give them ends of their own".into(),
            );
        }
        Ok(())
    }
}

/// A field as a server reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Field {
    /// The row has fewer fields.
    Missing,
    /// NULL.
    Null,
    /// Text, without enclosing and escapes.
    Text(Vec<u8>),
}

/// Step of reading a file.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// More of the file is needed.
    Needs,
    /// A row as it stands in the file, with its end, and the field that is its key.
    Row(Range<usize>, Field),
    /// The file has no more rows.
    End,
}

/// Reads a file piece by piece, as servers do.
#[derive(Debug)]
pub struct Rows<'l> {
    loaded: &'l Loaded,
    bytes: Vec<u8>,
    /// Read so far.
    at: usize,
    /// The bytes that were there when a row was not whole. It is tried again when there are twice as
    /// many.
    tried: usize,
    skipped: u64,
    has_ended: bool,
}

/// Bytes that have been read and still lie in the buffer, before the rest is moved to its front.
const READ_MAX: usize = 256 << 10;

/// The row is not whole yet.
#[derive(Debug)]
struct Short;

impl<'l> Rows<'l> {
    /// Of a file that is to come.
    #[must_use]
    pub const fn of(loaded: &'l Loaded) -> Self {
        Self {
            loaded,
            bytes: Vec::new(),
            at: 0,
            tried: 0,
            skipped: 0,
            has_ended: false,
        }
    }

    /// Takes what has come. Places of earlier rows are gone.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.at > READ_MAX || self.at == self.bytes.len() {
            self.bytes.drain(..self.at);
            self.at = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Notes that nothing comes any more.
    pub const fn end(&mut self) {
        self.has_ended = true;
    }

    /// Bytes that have come and were not read.
    #[must_use]
    pub const fn unread(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Bytes of a row.
    #[must_use]
    pub fn bytes(&self, row: &Range<usize>) -> &[u8] {
        self.bytes.get(row.clone()).unwrap_or_default()
    }

    /// The next row.
    pub fn step(&mut self) -> Step {
        let have = self.unread();
        if !self.has_ended && have < self.tried {
            return Step::Needs;
        }
        match self.row() {
            Ok(step) => {
                self.tried = 0;
                step
            }
            Err(Short) => {
                self.tried = have * 2;
                Step::Needs
            }
        }
    }

    fn row(&mut self) -> Result<Step, Short> {
        let format = &self.loaded.format;
        let mut reader = Reader {
            bytes: &self.bytes,
            at: self.at,
            has_ended: self.has_ended,
        };
        while self.skipped < self.loaded.skipped {
            let is_there = reader.skip_line(format)?;
            self.at = reader.at;
            if !is_there {
                return Ok(Step::End);
            }
            self.skipped += 1;
        }
        if !reader.find_start(format)? {
            self.at = self.bytes.len();
            return Ok(Step::End);
        }
        let (mut key, mut number) = (Field::Missing, 0);
        // From here on the row is sent; what is before its start is left out, as by a server.
        let start = reader.at - format.line_start.len();
        loop {
            let Some((field, ends)) = reader.field(format)? else {
                if number == 0 {
                    self.at = reader.at;
                    return Ok(Step::End);
                }
                break;
            };
            if number == self.loaded.key {
                key = field;
            }
            number += 1;
            match ends {
                Ends::Line => break,
                Ends::Field if number == self.loaded.columns => {
                    reader.skip_line(format)?;
                    break;
                }
                Ends::Field => {}
            }
        }
        self.at = reader.at;
        Ok(Step::Row(start..reader.at, key))
    }
}

/// End of a field.
enum Ends {
    Field,
    Line,
}

struct Reader<'b> {
    bytes: &'b [u8],
    at: usize,
    has_ended: bool,
}

impl Reader<'_> {
    /// The next byte; none at the end of the file.
    fn next(&mut self) -> Result<Option<u8>, Short> {
        match self.bytes.get(self.at) {
            Some(byte) => {
                self.at += 1;
                Ok(Some(*byte))
            }
            None if self.has_ended => Ok(None),
            None => Err(Short),
        }
    }

    /// Whether the byte before begins this word, which is read then.
    fn is(&mut self, word: &[u8]) -> Result<bool, Short> {
        let have = &self.bytes[self.at - 1..];
        if have.starts_with(word) {
            self.at += word.len() - 1;
            return Ok(true);
        }
        match word.starts_with(have) && !self.has_ended {
            true => Err(Short),
            false => Ok(false),
        }
    }

    /// Reads up to the end of a line, whatever is in it. False at the end of the file.
    fn skip_line(&mut self, format: &Format) -> Result<bool, Short> {
        while self.next()?.is_some() {
            if self.is(&format.line_end)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Reads up to where a row begins. False if none does.
    fn find_start(&mut self, format: &Format) -> Result<bool, Short> {
        if format.line_start.is_empty() {
            return Ok(true);
        }
        while self.next()?.is_some() {
            if self.is(&format.line_start)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Reads a field as servers do; none at the end of the file.
    fn field(&mut self, format: &Format) -> Result<Option<(Field, Ends)>, Short> {
        let Some(first) = self.next()? else {
            return Ok(None);
        };
        let (mut text, mut is_null) = (Vec::new(), false);
        let enclosed = format.enclosed.filter(|byte| *byte == first);
        match enclosed {
            Some(byte) => text.push(byte),
            None => self.at -= 1,
        }
        let is_end = |reader: &mut Self, byte: u8, end: &[u8]| {
            Ok::<_, Short>(end.first() == Some(&byte) && reader.is(end)?)
        };
        let (is_enclosed, ends) = loop {
            let Some(byte) = self.next()? else {
                break (false, Ends::Line);
            };
            if format.escaped == Some(byte) {
                let Some(next) = self.next()? else {
                    text.push(byte);
                    break (false, Ends::Line);
                };
                if format.escaped != format.enclosed || next == byte {
                    is_null |= next == b'N';
                    text.push(unescaped(next));
                    continue;
                }
                self.at -= 1;
            }
            if enclosed.is_none() {
                if is_end(self, byte, &format.line_end)? {
                    break (false, Ends::Line);
                }
                if is_end(self, byte, &format.field_end)? {
                    break (false, Ends::Field);
                }
            } else if enclosed == Some(byte) {
                match self.next()? {
                    // It is doubled.
                    Some(next) if next == byte => {}
                    None => break (true, Ends::Line),
                    Some(next) => {
                        if is_end(self, next, &format.line_end)? {
                            break (true, Ends::Line);
                        }
                        if is_end(self, next, &format.field_end)? {
                            break (true, Ends::Field);
                        }
                        self.at -= 1;
                    }
                }
            }
            text.push(byte);
        };
        if is_enclosed {
            text.remove(0);
        }
        let says_null = !is_enclosed && format.enclosed.is_some() && text == b"NULL";
        let field = match says_null || is_null && text.len() == 1 {
            true => Field::Null,
            false => Field::Text(text),
        };
        Ok(Some((field, ends)))
    }
}

/// Meaning of a byte behind the one that escapes.
const fn unescaped(byte: u8) -> u8 {
    match byte {
        b'n' => b'\n',
        b't' => b'\t',
        b'r' => b'\r',
        b'b' => 8,
        b'0' => 0,
        b'Z' => 0x1A,
        other => other,
    }
}

/// Fuzz target: however a file is cut, its rows are the same, and together they are no more than it.
#[doc(hidden)]
pub fn fuzz_file(data: &[u8]) {
    let [pieces, kind, file @ ..] = data else {
        return;
    };
    let byte = |bit: u8, byte: u8| (kind & bit != 0).then_some(byte);
    let loaded = Loaded {
        table: 0,
        file: Vec::new(),
        format: Format {
            field_end: if kind & 1 != 0 { b"," } else { b"\t" }.to_vec(),
            enclosed: byte(2, b'"'),
            escaped: byte(4, b'\\').or_else(|| byte(8, b'"')),
            line_start: if kind & 16 != 0 { &b"ab"[..] } else { b"" }.to_vec(),
            line_end: if kind & 32 != 0 { &b"\r\n"[..] } else { b"\n" }.to_vec(),
        },
        key: usize::from(kind & 64 != 0),
        columns: 2,
        skipped: u64::from(kind >> 7),
        places: Vec::new(),
        place_of: Vec::new(),
    };
    let read = |piece: usize| {
        let (mut rows, mut all, mut sum) = (Rows::of(&loaded), Vec::new(), 0);
        let mut pieces = file.chunks(piece);
        loop {
            match rows.step() {
                Step::Needs => match pieces.next() {
                    Some(piece) => rows.push(piece),
                    None => rows.end(),
                },
                Step::Row(at, key) => {
                    sum += at.len();
                    all.push((rows.bytes(&at).to_vec(), key));
                }
                Step::End => break,
            }
        }
        assert!(sum <= file.len());
        all
    };
    assert_eq!(read(usize::from(*pieces) + 1), read(file.len().max(1)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(format: Format, skipped: u64, file: &str) -> Vec<(String, Field)> {
        let loaded = Loaded {
            table: 0,
            file: Vec::new(),
            format,
            key: 1,
            columns: 2,
            skipped,
            places: Vec::new(),
            place_of: Vec::new(),
        };
        let mut rows = Rows::of(&loaded);
        rows.push(file.as_bytes());
        rows.end();
        let mut all = Vec::new();
        while let Step::Row(at, key) = rows.step() {
            let text = String::from_utf8_lossy(rows.bytes(&at)).into_owned();
            all.push((text, key));
        }
        all
    }

    fn text(text: &str) -> Field {
        Field::Text(text.into())
    }

    #[test]
    fn rows_of_the_usual_format_end_with_lines() {
        let found = rows(
            Format::default(),
            1,
            "skipped\na\tb\n\\\t\t\\N\nx\\\ny\tit\\\\\n\nlast\tz\trest\tmore",
        );
        let row = |bytes: &str, key| (bytes.to_owned(), key);
        let wanted = [
            row("a\tb\n", text("b")),
            row("\\\t\t\\N\n", Field::Null),
            row("x\\\ny\tit\\\\\n", text("it\\")),
            row("\n", Field::Missing),
            row("last\tz\trest\tmore", text("z")),
        ];
        assert_eq!(found, wanted);
    }

    #[test]
    fn enclosed_fields_have_the_ends_of_others_in_them() {
        let format = Format {
            field_end: b",".to_vec(),
            enclosed: Some(b'"'),
            line_end: b"\r\n".to_vec(),
            ..Format::default()
        };
        let found = rows(
            format,
            0,
            "1,\"a,\r\n\"\"b\"\"\"\r\n2,NULL\r\n3,\"NULL\"\r\n4,un\"quoted\r\n\"5,\",\"open",
        );
        let keys: Vec<_> = found.into_iter().map(|(_, key)| key).collect();
        let wanted = [
            text("a,\r\n\"b\""),
            Field::Null,
            text("NULL"),
            text("un\"quoted"),
            text("\"open"),
        ];
        assert_eq!(keys, wanted);
    }

    #[test]
    fn rows_begin_where_their_start_is() {
        let format = Format {
            line_start: b"xxx".to_vec(),
            ..Format::default()
        };
        let found = rows(format, 0, "junk xxxa\tb\nno row\nxxxc\td\nxx");
        let row = |bytes: &str, key| (bytes.to_owned(), key);
        assert_eq!(
            found,
            [row("xxxa\tb\n", text("b")), row("xxxc\td\n", text("d"))]
        );
    }

    #[test]
    fn a_file_has_the_rows_that_it_has_however_it_is_cut() {
        let file = b"\0\x27x\"a,b\"\r\n\\,\"\"\"\r\n\r\nab1,2\r\nab\"3\",4";
        for pieces in 0..20 {
            for kind in 0..=255 {
                let mut data = file.to_vec();
                (data[0], data[1]) = (pieces, kind);
                fuzz_file(&data);
            }
        }
    }
}
