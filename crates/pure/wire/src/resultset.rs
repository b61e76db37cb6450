//! Result sets written by servers of ours (admin port, embedded SQLite): text and binary rows, both
//! forms of ending.
//!
//! <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_com_query_response_text_resultset.html>
//! <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_binary_resultset.html>

use crate::Malformed;
use crate::caps::{self, Caps};
use crate::definition::Shape;
use crate::execute::{DateTime, Time, Value};
use crate::ok;
use crate::packet;
use crate::types::{Layout, NOT_NULL_FLAG, Type, UNSIGNED_FLAG};
use crate::write::Write as _;

/// utf8mb4_general_ci: what our servers say of their text.
pub const UTF8MB4: u16 = 45;
/// The collation of things that are no text.
pub const BINARY: u16 = 63;

/// The cells of a row of the text protocol, written where the row is.
#[derive(Debug)]
pub struct Cells<'o>(&'o mut Vec<u8>);

impl Cells<'_> {
    /// Bytes that are there already; `None` for NULL.
    pub fn bytes(&mut self, value: Option<&[u8]>) {
        match value {
            Some(value) => self.0.lenenc_bytes(value),
            None => self.0.u8(0xFB),
        }
    }

    /// Text that `fill` writes, which is short most often; `false` makes it NULL.
    pub fn text(&mut self, fill: impl FnOnce(&mut Vec<u8>) -> bool) {
        let at = self.0.len();
        self.0.push(0); // its length, for which one byte does if it is short
        if !fill(self.0) {
            self.0.truncate(at);
            self.0.u8(0xFB);
            return;
        }
        let len = self.0.len() - at - 1;
        if len <= 0xFA {
            self.0[at] = len as u8;
        } else {
            let mut head = Vec::with_capacity(9);
            head.lenenc_int(len as u64);
            self.0.splice(at..=at, head);
        }
    }
}

/// The definition of a column.
/// <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_com_query_response_text_resultset_column_definition.html>
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Schema, or empty.
    pub schema: String,
    /// Table as the statement calls it, or empty.
    pub table: String,
    /// Table as it is called really, or empty.
    pub org_table: String,
    /// The column as the statement calls it.
    pub name: String,
    /// The column as it is called really, or empty.
    pub org_name: String,
    /// Id of the collation; [`BINARY`] for numbers and bytes.
    pub charset: u16,
    /// Largest length in bytes, for clients that lay out columns.
    pub length: u32,
    /// The type.
    pub kind: Type,
    /// *_FLAG bits of [`crate::types`].
    pub flags: u16,
    /// Digits after the point; 31 for floating point numbers, 0 for everything else.
    pub decimals: u8,
}

impl Column {
    /// A column of text.
    pub fn text(name: impl Into<String>) -> Self {
        Self {
            schema: String::new(),
            table: String::new(),
            org_table: String::new(),
            name: name.into(),
            org_name: String::new(),
            charset: UTF8MB4,
            length: 1024,
            kind: Type::VAR_STRING,
            flags: 0,
            decimals: 0,
        }
    }

    /// A column of 64-bit integers.
    pub fn integer(name: impl Into<String>) -> Self {
        Self {
            charset: BINARY,
            length: 20,
            kind: Type::LONGLONG,
            flags: crate::types::BINARY_FLAG | crate::types::NUM_FLAG,
            ..Self::text(name)
        }
    }

    /// A column of 64-bit integers without sign.
    pub fn unsigned(name: impl Into<String>) -> Self {
        let mut c = Self::integer(name);
        c.flags |= UNSIGNED_FLAG;
        c
    }

    /// A column of floating point numbers.
    pub fn double(name: impl Into<String>) -> Self {
        Self {
            length: 22,
            kind: Type::DOUBLE,
            decimals: 31,
            ..Self::integer(name)
        }
    }

    /// A column of bytes.
    pub fn blob(name: impl Into<String>) -> Self {
        Self {
            charset: BINARY,
            length: u32::MAX,
            kind: Type::BLOB,
            flags: crate::types::BINARY_FLAG | crate::types::BLOB_FLAG,
            ..Self::text(name)
        }
    }

    /// A parameter of a prepared statement: anything.
    pub fn parameter() -> Self {
        Self {
            charset: BINARY,
            length: 0,
            ..Self::text("?")
        }
    }

    /// Makes the column one that is never NULL.
    pub fn not_null(mut self) -> Self {
        self.flags |= NOT_NULL_FLAG;
        self
    }

    /// Makes the column one of this table.
    pub fn of(mut self, schema: &str, table: &str) -> Self {
        schema.clone_into(&mut self.schema);
        table.clone_into(&mut self.table);
        table.clone_into(&mut self.org_table);
        self.org_name.clone_from(&self.name);
        self
    }

    /// Writes the payload of a column definition for a client with these caps.
    pub fn write(&self, out: &mut Vec<u8>, caps: Caps) {
        self.write_with(out, caps, false);
    }

    fn write_with(&self, out: &mut Vec<u8>, caps: Caps, default: bool) {
        out.lenenc_bytes(b"def");
        out.lenenc_bytes(self.schema.as_bytes());
        out.lenenc_bytes(self.table.as_bytes());
        out.lenenc_bytes(self.org_table.as_bytes());
        out.lenenc_bytes(self.name.as_bytes());
        out.lenenc_bytes(self.org_name.as_bytes());
        if caps::has(caps, caps::MARIADB_EXTENDED_TYPES) {
            out.lenenc_bytes(b"");
        }
        out.u8(0x0C);
        out.u16(self.charset);
        out.u32(self.length);
        out.u8(self.kind.0);
        out.u16(self.flags);
        out.u8(self.decimals);
        out.u16(0);
        if default {
            // COM_FIELD_LIST: the default value; NULL.
            out.u8(0xFB);
        }
    }
}

/// Writer of a response of ours, with the client's caps and the number of the next packet (1 after
/// a command of one packet).
#[derive(Debug)]
pub struct Writer<'a> {
    /// Where packets go.
    pub out: &'a mut Vec<u8>,
    /// Number of the next packet.
    pub seq: u8,
    /// Capabilities that the client agreed on.
    pub caps: Caps,
    /// SERVER_STATUS_* flags of every OK and EOF.
    pub status: u16,
    /// Columns are not described, for a client that has agreed to that.
    bare: bool,
    /// Warnings in the EOF behind the columns: those that a server has before it has any row.
    early_warnings: u16,
}

impl<'a> Writer<'a> {
    /// Answers a command whose (last) packet had number `command_seq`.
    pub fn new(out: &'a mut Vec<u8>, command_seq: u8, caps: Caps, status: u16) -> Self {
        Self {
            out,
            seq: command_seq.wrapping_add(1),
            caps,
            status,
            bare: false,
            early_warnings: 0,
        }
    }

    /// Leaves out the definitions of columns, if the client can do without.
    #[must_use]
    pub fn bare(self) -> Self {
        Self {
            bare: caps::tells_of_definitions(self.caps),
            ..self
        }
    }

    /// The server's parser has so many warnings: they are in the EOF behind the columns, too.
    #[must_use]
    pub fn warned(self, warnings: u16) -> Self {
        Self {
            early_warnings: warnings,
            ..self
        }
    }

    /// How many columns there are, and whether their definitions follow.
    fn count(&mut self, columns: usize) {
        let follow = caps::tells_of_definitions(self.caps).then_some(u8::from(!self.bare));
        self.packet(|o| {
            o.lenenc_int(columns as u64);
            o.extend(follow);
        });
    }

    /// The definitions of columns.
    fn define<'c>(&mut self, columns: impl Iterator<Item = &'c Column>) {
        let caps = self.caps;
        if !self.bare {
            for column in columns {
                self.packet(|o| column.write(o, caps));
            }
        }
        self.eof();
    }

    fn packet(&mut self, fill: impl FnOnce(&mut Vec<u8>)) {
        packet::append_with(self.out, &mut self.seq, fill);
    }

    fn eof(&mut self) {
        if !caps::has(self.caps, caps::DEPRECATE_EOF) {
            let (status, warnings) = (self.status, self.early_warnings);
            self.packet(|o| ok::write_eof(o, warnings, status));
        }
    }

    /// An OK packet: the whole answer of a statement without rows. Its status is the writer's.
    pub fn ok(&mut self, ok: &ok::Ok<'_>) {
        let ok = ok::Ok {
            status: self.status,
            ..*ok
        };
        let caps = self.caps;
        self.packet(|o| ok.write(o, caps));
    }

    /// An ERR packet: the whole answer, or the end of one that went wrong.
    pub fn err(&mut self, err: &ok::Err<'_>) {
        self.packet(|o| err.write(o));
    }

    /// The head of a result set: how many columns, and which.
    pub fn columns(&mut self, columns: &[Column]) {
        self.count(columns.len());
        self.define(columns.iter());
    }

    /// The head of a result set, with definitions as a server has written them, without extended
    /// types.
    pub fn columns_as_said<'d>(&mut self, definitions: impl ExactSizeIterator<Item = &'d [u8]>) {
        self.count(definitions.len());
        let caps = self.caps;
        if !self.bare {
            for definition in definitions {
                self.packet(|o| crate::definition::write(o, definition, 0, caps));
            }
        }
        self.eof();
    }

    /// Number of the last packet that was written.
    #[must_use]
    pub const fn last_seq(&self) -> u8 {
        self.seq.wrapping_sub(1)
    }

    /// A row of the text protocol.
    pub fn text_row<'v>(&mut self, values: impl IntoIterator<Item = Option<&'v [u8]>>) {
        self.packet(|o| {
            for v in values {
                match v {
                    Some(v) => o.lenenc_bytes(v),
                    None => o.u8(0xFB),
                }
            }
        });
    }

    /// A row of the text protocol whose cells are written in place, one after another.
    pub fn text_row_with(&mut self, fill: impl FnOnce(&mut Cells<'_>)) {
        self.packet(|out| fill(&mut Cells(out)));
    }

    /// A row of the binary protocol; each value is written as the type of its column wants it.
    pub fn binary_row(&mut self, columns: &[Column], values: &[Value<'_>]) {
        self.packet(|o| write_binary(o, columns.iter().map(|column| column.kind), values));
    }

    /// A row of the binary protocol, whose values are as the text protocol has them. A value that is
    /// none of its column's type is an error, and nothing is written.
    pub fn binary_row_of_text<'v>(
        &mut self,
        shapes: &[Shape],
        values: impl Iterator<Item = Option<&'v [u8]>>,
    ) -> Result<(), Malformed> {
        let read = |(shape, value): (&Shape, Option<&'v [u8]>)| match value {
            None => Ok(Value::Null),
            Some(text) => crate::read_text::value(shape.kind, text)
                .ok_or(Malformed::new("a value that is not of its column's type")),
        };
        let values = shapes.iter().zip(values).map(read);
        let values = values.collect::<Result<Vec<_>, _>>()?;
        self.packet(|o| write_binary(o, shapes.iter().map(|shape| shape.kind), &values));
        Ok(())
    }

    /// The end of the rows.
    pub fn end(&mut self, warnings: u16) {
        let end = ok::Ok {
            status: self.status,
            warnings,
            ..ok::Ok::default()
        };
        let caps = self.caps;
        self.packet(|o| end.write_end(o, caps));
    }

    /// The answer to COM_STMT_PREPARE.
    /// <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_com_stmt_prepare.html>
    pub fn prepared(&mut self, id: u32, params: u16, columns: &[Column]) {
        let follow = caps::has(self.caps, caps::OPTIONAL_METADATA).then_some(u8::from(!self.bare));
        self.packet(|o| {
            o.u8(0);
            o.u32(id);
            o.u16(columns.len() as u16);
            o.u16(params);
            o.u8(0);
            o.u16(0);
            o.extend(follow);
        });
        if params > 0 {
            let any = Column::parameter();
            self.define((0..params).map(|_| &any));
        }
        if !columns.is_empty() {
            self.define(columns.iter());
        }
    }

    /// The answer to COM_FIELD_LIST: definitions with default values, without a count.
    pub fn field_list(&mut self, columns: &[Column]) {
        let caps = self.caps;
        for c in columns.iter().filter(|_| !self.bare) {
            packet::append_with(self.out, &mut self.seq, |o| c.write_with(o, caps, true));
        }
        self.end(0);
    }

    /// The answer to COM_STATISTICS: a line without header.
    pub fn line(&mut self, line: &[u8]) {
        self.packet(|o| o.bytes(line));
    }
}

/// Writes a row: a zero, which values are NULL, and the others.
fn write_binary(o: &mut Vec<u8>, kinds: impl ExactSizeIterator<Item = Type>, values: &[Value<'_>]) {
    o.u8(0);
    // The NULL bitmap of a row begins with two bits that nobody uses.
    let at = o.len();
    o.resize(at + (kinds.len() + 2).div_ceil(8), 0);
    for (i, kind) in kinds.enumerate() {
        match values.get(i).unwrap_or(&Value::Null) {
            Value::Null => o[at + (i + 2) / 8] |= 1 << ((i + 2) % 8),
            v => write_value(o, kind, v),
        }
    }
}

/// Writes a value as `kind` wants it, converting between numbers and text where they differ.
pub(crate) fn write_value(o: &mut Vec<u8>, kind: Type, v: &Value<'_>) {
    match kind {
        Type::DATE | Type::DATETIME | Type::TIMESTAMP => match v {
            Value::Date(d) | Value::DateTime(d) => write_datetime(o, d),
            _ => o.u8(0),
        },
        Type::TIME => match v {
            Value::Time(t) => write_time(o, t),
            _ => o.u8(0),
        },
        Type::FLOAT => o.bytes(&(number(v) as f32).to_le_bytes()),
        Type::DOUBLE => o.bytes(&number(v).to_le_bytes()),
        _ => match kind.layout() {
            Some(Layout::Fixed(n)) => o.bytes(&integer(v).to_le_bytes()[..n.min(8)]),
            _ => match v {
                Value::Bytes(b) => o.lenenc_bytes(b),
                other => o.lenenc_bytes(other.to_string().as_bytes()),
            },
        },
    }
}

fn integer(v: &Value<'_>) -> i64 {
    match v {
        Value::Int(n) => *n,
        // The same eight bytes; the column's UNSIGNED flag says how to read them.
        Value::Uint(n) => n.cast_signed(),
        Value::Bytes(b) => std::str::from_utf8(b)
            .ok()
            .and_then(|s| s.trim().parse().ok())
            .unwrap_or(0),
        other => number(other) as i64,
    }
}

fn number(v: &Value<'_>) -> f64 {
    match v {
        Value::Int(n) => *n as f64,
        Value::Uint(n) => *n as f64,
        Value::Float(n) => f64::from(*n),
        Value::Double(n) => *n,
        Value::Bytes(b) => std::str::from_utf8(b)
            .ok()
            .and_then(|s| s.trim().parse().ok())
            .unwrap_or(0.0),
        _ => 0.0,
    }
}

fn write_datetime(o: &mut Vec<u8>, d: &DateTime) {
    let n = match d {
        DateTime { micros: 1.., .. } => 11,
        DateTime {
            hour: 0,
            minute: 0,
            second: 0,
            year: 0,
            month: 0,
            day: 0,
            ..
        } => 0,
        DateTime {
            hour: 0,
            minute: 0,
            second: 0,
            ..
        } => 4,
        _ => 7,
    };
    o.u8(n);
    if n >= 4 {
        o.u16(d.year);
        o.bytes(&[d.month, d.day]);
    }
    if n >= 7 {
        o.bytes(&[d.hour, d.minute, d.second]);
    }
    if n == 11 {
        o.u32(d.micros);
    }
}

fn write_time(o: &mut Vec<u8>, t: &Time) {
    let n = match t {
        Time { micros: 1.., .. } => 12,
        Time {
            days: 0,
            hour: 0,
            minute: 0,
            second: 0,
            ..
        } => 0,
        _ => 8,
    };
    o.u8(n);
    if n >= 8 {
        o.u8(t.negative.into());
        o.u32(t.days);
        o.bytes(&[t.hour, t.minute, t.second]);
    }
    if n == 12 {
        o.u32(t.micros);
    }
}

/// Values as the text protocol shows them.
impl std::fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let micros = |f: &mut std::fmt::Formatter<'_>, m: u32| {
            if m > 0 { write!(f, ".{m:06}") } else { Ok(()) }
        };
        match self {
            Self::Null => f.write_str("NULL"),
            Self::Int(n) => n.fmt(f),
            Self::Uint(n) => n.fmt(f),
            Self::Float(n) => n.fmt(f),
            Self::Double(n) => n.fmt(f),
            Self::Bytes(b) => f.write_str(&String::from_utf8_lossy(b)),
            Self::Date(d) => write!(f, "{:04}-{:02}-{:02}", d.year, d.month, d.day),
            Self::DateTime(d) => {
                write!(
                    f,
                    "{:04}-{:02}-{:02} {:02}:{:02}:{:02}",
                    d.year, d.month, d.day, d.hour, d.minute, d.second
                )?;
                micros(f, d.micros)
            }
            Self::Time(t) => {
                let sign = if t.negative { "-" } else { "" };
                // A peer may claim 2^32-1 days.
                write!(
                    f,
                    "{sign}{:02}:{:02}:{:02}",
                    u64::from(t.days) * 24 + u64::from(t.hour),
                    t.minute,
                    t.second
                )?;
                micros(f, t.micros)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_definition_is_what_mariadb_sends_for_the_same_column() {
        let column = Column {
            charset: 63,
            length: 11,
            kind: Type::LONG,
            flags: 0x4203,
            ..Column::integer("a").of("test", "t")
        };
        let mut out = Vec::new();
        column.write(&mut out, 0);
        assert_eq!(
            out,
            b"\x03def\x04test\x01t\x01t\x01a\x01a\x0c\x3f\0\x0b\0\0\0\x03\x03\x42\0\0\0"
        );
    }

    #[test]
    fn cells_that_are_written_in_place_are_what_they_would_be_otherwise() {
        let texts = [0, 1, 250, 251, 70_000, (1 << 24) + 5].map(|len| vec![b'x'; len]);
        let (mut whole, mut in_place) = (Vec::new(), Vec::new());
        let cells = || texts.iter().map(|text| Some(&text[..])).chain([None]);
        Writer::new(&mut whole, 0, 0, 0).text_row(cells().chain(cells()));
        Writer::new(&mut in_place, 0, 0, 0).text_row_with(|row| {
            cells().for_each(|cell| row.bytes(cell));
            for cell in cells() {
                row.text(|out| {
                    out.extend_from_slice(cell.unwrap_or(b"none"));
                    cell.is_some()
                });
            }
        });
        assert!(whole == in_place, "both have the same bytes");
    }

    #[test]
    fn a_text_result_has_an_eof_in_the_middle_only_for_old_clients() {
        let result = |caps| {
            let mut out = Vec::new();
            let mut w = Writer::new(&mut out, 0, caps, 2);
            w.columns(&[Column::text("x")]);
            w.text_row([Some(&b"hello"[..])]);
            w.text_row([None]);
            w.end(1);
            out
        };
        let head =
            b"\x01\0\0\x01\x01\x17\0\0\x02\x03def\0\0\0\x01x\0\x0c\x2d\0\0\x04\0\0\xfd\0\0\0\0\0";
        let old = [
            &head[..],
            b"\x05\0\0\x03\xfe\0\0\x02\0",
            b"\x06\0\0\x04\x05hello",
            b"\x01\0\0\x05\xfb",
            b"\x05\0\0\x06\xfe\x01\0\x02\0",
        ]
        .concat();
        let new = [
            &head[..],
            b"\x06\0\0\x03\x05hello",
            b"\x01\0\0\x04\xfb",
            b"\x07\0\0\x05\xfe\0\0\x02\0\x01\0",
        ]
        .concat();
        assert_eq!(result(caps::PROTOCOL_41), old);
        assert_eq!(result(caps::PROTOCOL_41 | caps::DEPRECATE_EOF), new);
    }

    #[test]
    fn a_binary_row_has_its_nulls_two_bits_on() {
        let columns: Vec<_> = (0..7).map(|i| Column::integer(i.to_string())).collect();
        let mut out = Vec::new();
        let mut values = vec![Value::Null; 7];
        values[1] = Value::Uint(u64::MAX);
        Writer::new(&mut out, 0, caps::PROTOCOL_41, 0).binary_row(&columns, &values);
        assert_eq!(
            out,
            b"\x0b\0\0\x01\0\xf4\x01\xff\xff\xff\xff\xff\xff\xff\xff"
        );
    }

    #[test]
    fn values_are_written_as_their_columns_want_them() {
        let written = |kind, v| {
            let mut out = Vec::new();
            write_value(&mut out, kind, &v);
            out
        };
        assert_eq!(
            written(Type::LONGLONG, Value::Bytes(b" 42 ")),
            42u64.to_le_bytes()
        );
        assert_eq!(written(Type::TINY, Value::Int(-1)), [0xFF]);
        assert_eq!(
            written(Type::DOUBLE, Value::Bytes(b"1.5")),
            1.5f64.to_le_bytes()
        );
        assert_eq!(written(Type::LONGLONG, Value::Bytes(b"words")), [0; 8]);
        assert_eq!(written(Type::VAR_STRING, Value::Int(-7)), b"\x02-7");
        assert_eq!(written(Type::BLOB, Value::Bytes(b"\0x")), b"\x02\0x");
        let at = DateTime {
            year: 2024,
            month: 2,
            day: 29,
            ..DateTime::default()
        };
        assert_eq!(
            written(Type::DATE, Value::Date(at)),
            b"\x04\xe8\x07\x02\x1d"
        );
        assert_eq!(
            written(
                Type::DATETIME,
                Value::DateTime(DateTime { second: 1, ..at })
            ),
            b"\x07\xe8\x07\x02\x1d\0\0\x01"
        );
        assert_eq!(
            written(
                Type::DATETIME,
                Value::DateTime(DateTime { micros: 1, ..at })
            ),
            b"\x0b\xe8\x07\x02\x1d\0\0\0\x01\0\0\0"
        );
        assert_eq!(
            written(Type::DATETIME, Value::DateTime(DateTime::default())),
            b"\0"
        );
        assert_eq!(
            written(
                Type::TIME,
                Value::Time(Time {
                    days: 1,
                    ..Time::default()
                })
            ),
            b"\x08\0\x01\0\0\0\0\0\0"
        );
        assert_eq!(written(Type::TIME, Value::Time(Time::default())), b"\0");
    }
}
