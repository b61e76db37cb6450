//! `proxy.response`: what a script made up as an answer.

use crate::outcome::Outcome;
use crate::packed::{self, Packing};
use mlua::{LuaString, Table, Value};
use std::borrow::Cow;
use std::cell::Cell;
use wire::caps::{self, Caps};
use wire::resultset::{Column, UTF8MB4, Writer};
use wire::rows::Shape;
use wire::types::Type;
use wire::{ok, packet, status};

/// Columns at most, as servers have it.
const COLUMNS_MAX: usize = 4096;
/// Bytes that a value counts beside its own.
const VALUE_BYTES: usize = 8;
/// Results of one answer at most.
const RESULTS_MAX: usize = 10_000;
/// Type numbers of `proxy.MYSQLD_PACKET_*`, those of 0.6 beside them.
const OK: i64 = 0;
const ERR: [i64; 2] = [255, -1];
const RAW: [i64; 2] = [250, -6];

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Response {
    /// An OK.
    Ok {
        /// Affected rows.
        affected: u64,
        /// `LAST_INSERT_ID()`.
        insert_id: u64,
    },
    /// A result.
    Rows {
        /// Columns, from left to right.
        fields: Vec<Field>,
        /// Rows of so many values; `None` is NULL.
        rows: Vec<Vec<Option<Vec<u8>>>>,
    },
    /// An error.
    Err {
        /// Error number.
        code: u16,
        /// SQLSTATE.
        state: [u8; 5],
        /// Words.
        message: Vec<u8>,
    },
    /// Several results, one after another.
    Several(Vec<Self>),
    /// A result that ends with a status and warnings of its own.
    Ending(Box<Self>, u16, u16),
    /// Packets of a server's result as they are; whether another one follows is said anew.
    Same(Vec<u8>),
    /// Payloads of packets, as the script has written them.
    Raw(Vec<Vec<u8>>),
}

/// A column of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    name: Vec<u8>,
    kind: u8,
    /// The definition of the server's column that it stands for.
    kept: Option<Vec<u8>>,
}

/// Why `proxy.response` cannot be sent, in the script author's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bad(pub String);

impl From<mlua::Error> for Bad {
    fn from(error: mlua::Error) -> Self {
        Self(error.to_string())
    }
}

/// Bytes that an answer may still have: a script may put one text into it a million times.
#[derive(Debug)]
pub(crate) struct Room {
    left: Cell<usize>,
    max: usize,
}

impl Room {
    /// Of so many bytes.
    pub(crate) const fn of(max: usize) -> Self {
        Self {
            left: Cell::new(max),
            max,
        }
    }

    /// Takes some for a text, or for none.
    fn take(&self, text: Option<&[u8]>) -> Result<(), Bad> {
        let taken = VALUE_BYTES + text.map_or(0, <[u8]>::len);
        match self.left.get().checked_sub(taken) {
            Some(left) => {
                self.left.set(left);
                Ok(())
            }
            None => Err(Bad(format!(
                "proxy.response has more than {} MiB, which is result_mb_max of the script",
                self.max >> 20
            ))),
        }
    }

    /// A value of a row.
    pub(crate) fn value(&self, value: Option<Cow<'_, [u8]>>) -> Result<Option<Vec<u8>>, Bad> {
        // Before its copy is made.
        self.take(value.as_deref())?;
        Ok(value.map(Cow::into_owned))
    }
}

/// Reads what scripts make up, with `packed.lua`, as long as there is room.
pub(crate) struct Reader<'a> {
    pub(crate) room: Room,
    pub(crate) packing: &'a Packing,
}

/// Values of a row.
type Values = Vec<Option<Vec<u8>>>;

/// Values that `packed.lua` has packed, none where it cannot; and where it goes on.
type Part = (Option<LuaString>, Option<usize>);

/// A result that `proxy.lua` has packed.
#[derive(Debug)]
pub(crate) struct PackedResult {
    /// Names and types of its columns.
    pub(crate) columns: LuaString,
    /// Its first rows.
    pub(crate) rows: Option<LuaString>,
    /// The row behind them, if there is one, of these.
    pub(crate) left: Option<(usize, Table)>,
}

impl Reader<'_> {
    /// Reads a list of rows of so many values, each of which `sees` takes; none is one that is left out.
    fn rows(
        &self,
        list: &Table,
        from: usize,
        (width, leaves_out): (usize, bool),
        mut sees: impl FnMut(Option<Values>),
    ) -> Result<(), Bad> {
        let pack = |at| self.packing.rows.call((list, at, width, leaves_out));
        each("rows", from, pack, |values| {
            self.some_rows(values, width, &mut sees)
        })
    }

    fn some_rows(
        &self,
        mut values: &[packed::Value<'_>],
        width: usize,
        mut sees: impl FnMut(Option<Values>),
    ) -> Result<(), Bad> {
        while let Some(first) = values.first() {
            if *first == packed::Value::True {
                values = &values[1..];
                sees(None);
                continue;
            }
            let (row, rest) = values.split_at_checked(width).ok_or_else(torn)?;
            values = rest;
            let row = row.iter().map(|value| self.room.value(value.text()));
            sees(Some(row.collect::<Result<_, Bad>>()?));
        }
        Ok(())
    }

    /// Reads a list of columns.
    fn columns(&self, list: &Table) -> Result<Vec<Field>, Bad> {
        let mut fields = Vec::new();
        let pack = |at| self.packing.columns.call((list, at));
        each("fields", 1, pack, |values| {
            self.some_columns(values, &mut fields)
        })?;
        match fields.is_empty() {
            true => Err(Bad("proxy.response.resultset.fields is empty".into())),
            false => Ok(fields),
        }
    }

    fn some_columns(
        &self,
        values: &[packed::Value<'_>],
        fields: &mut Vec<Field>,
    ) -> Result<(), Bad> {
        for field in values.chunks_exact(2) {
            if fields.len() == COLUMNS_MAX {
                return Err(Bad(format!(
                    "proxy.response.resultset has more than {COLUMNS_MAX} fields"
                )));
            }
            let kind = match field[1] {
                packed::Value::Text(kind) => str::from_utf8(kind)
                    .ok()
                    .and_then(|kind| kind.trim().parse().ok()),
                kind => kind.place().and_then(|kind| u8::try_from(kind).ok()),
            };
            fields.push(Field {
                name: self.room.value(field[0].text())?.unwrap_or_default(),
                kind: kind.unwrap_or(Type::STRING.0),
                kept: None,
            });
        }
        Ok(())
    }
}

/// Words for a list that ends in the middle of a row, which none does.
fn torn() -> Bad {
    Bad("what was packed has no end".into())
}

/// Reads what `packs` returns from an element on, until it has no further one.
fn each(
    of: &str,
    from: usize,
    packs: impl Fn(usize) -> Result<Part, mlua::Error>,
    mut reads: impl FnMut(&[packed::Value<'_>]) -> Result<(), Bad>,
) -> Result<(), Bad> {
    let mut next = Some(from);
    while let Some(at) = next {
        let (made, then) = packs(at)?;
        let made = made.ok_or_else(|| {
            Bad(format!(
                "an element of proxy.response.resultset.{of} is no table"
            ))
        })?;
        reads(&packed::list(&made.as_bytes()).ok_or_else(torn)?)?;
        next = then;
    }
    Ok(())
}

impl Response {
    /// Reads `proxy.response`. `source`: the server's answer that it takes the place of.
    pub(crate) fn of(
        value: &Value,
        source: Option<&Outcome>,
        reader: &Reader<'_>,
    ) -> Result<Self, Bad> {
        let Value::Table(table) = value else {
            return Err(Bad("proxy.response is no table".into()));
        };
        if let (Value::Table(mapped), Some(source)) = (table.get("mapped")?, source) {
            return Self::mapped(&mapped, source, reader);
        }
        match number(&table.get("type")?) {
            Some(OK) => match (table.get("resultset")?, table.get("resultsets")?) {
                (Value::Nil, Value::Nil) => Self::of_ok(table),
                (Value::Nil, Value::Table(results)) => Self::of_results(&results, source, reader),
                (Value::Nil, _) => Err(Bad("proxy.response.resultsets is no table".into())),
                (Value::Table(result), Value::Nil) => Self::of_result(&result, source, reader),
                (_, Value::Nil) => Err(Bad("proxy.response.resultset is no table".into())),
                _ => Err(Bad(
                    "proxy.response has resultset and resultsets; one of them is the answer".into(),
                )),
            },
            Some(kind) if ERR.contains(&kind) => Self::of_error(table, reader),
            Some(kind) if RAW.contains(&kind) => {
                let Value::Table(packets) = table.get("packets")? else {
                    return Err(Bad("proxy.response.packets is no table".into()));
                };
                let packets = packets.sequence_values::<LuaString>();
                let packets = packets
                    .map(|one| {
                        let one = one?;
                        reader.room.take(Some(&one.as_bytes()))?;
                        Ok(one.as_bytes().to_vec())
                    })
                    .collect::<Result<Vec<_>, Bad>>()?;
                match packets.is_empty() {
                    true => Err(Bad("proxy.response.packets is empty".into())),
                    false => Ok(Self::Raw(packets)),
                }
            }
            _ => Err(Bad(
                "proxy.response.type is none of proxy.MYSQLD_PACKET_OK, _ERR, _RAW".into(),
            )),
        }
    }

    /// The rows of an answer with some of their columns changed, or left out.
    fn mapped(table: &Table, source: &Outcome, reader: &Reader<'_>) -> Result<Self, Bad> {
        let (columns, changed): (Vec<usize>, Table) = (table.get("columns")?, table.get("rows")?);
        let read = source.columns();
        let (mut rows, mut at) = (Vec::new(), 0);
        reader.rows(&changed, 1, (columns.len(), true), |mut new| {
            at += 1;
            let whole = source.row(at - 1, |row| {
                let texts = (0..row.len()).map(|at| row.text(at).map(Cow::into_owned));
                texts.collect::<Vec<_>>()
            });
            let (Some(new), Some(mut row)) = (&mut new, whole) else {
                return;
            };
            for (column, value) in columns.iter().zip(new) {
                let old = column.checked_sub(1).and_then(|column| row.get_mut(column));
                if let Some(old) = old {
                    *old = value.take();
                }
            }
            rows.push(row);
        })?;
        let fields = read.definitions.iter().zip(&read.shapes).enumerate();
        let mut fields: Vec<_> = fields
            .map(|(at, (definition, shape))| Field {
                name: source.names(at)[0].to_vec(),
                kind: shape.kind.0,
                kept: Some(definition.clone()),
            })
            .collect();
        for column in columns {
            let at = column.saturating_sub(1);
            if let Some(field) = fields.get_mut(at) {
                let fits = |row: &Vec<Option<Vec<u8>>>| {
                    row[at]
                        .as_deref()
                        .is_none_or(|value| Type(field.kind).reads(value))
                };
                if !rows.iter().all(fits) {
                    (field.kind, field.kept) = (Type::VAR_STRING.0, None);
                }
            }
        }
        Ok(Self::Rows { fields, rows })
    }

    fn of_ok(table: &Table) -> Result<Self, Bad> {
        Ok(Self::Ok {
            affected: counted(table, "affected_rows")?,
            insert_id: counted(table, "insert_id")?,
        })
    }

    /// Several results; each that has no fields is an OK.
    fn of_results(
        results: &Table,
        source: Option<&Outcome>,
        reader: &Reader<'_>,
    ) -> Result<Self, Bad> {
        let mut all = Vec::new();
        for (at, one) in results.sequence_values::<Value>().enumerate() {
            let Value::Table(one) = one? else {
                return Err(Bad(
                    "an element of proxy.response.resultsets is no table".into()
                ));
            };
            if all.len() == RESULTS_MAX {
                return Err(Bad(format!(
                    "proxy.response.resultsets has more than {RESULTS_MAX} elements"
                )));
            }
            all.push(Self::of_part(&one, at, source, reader)?);
        }
        match all.is_empty() {
            true => Err(Bad("proxy.response.resultsets is empty".into())),
            false => Ok(Self::Several(all)),
        }
    }

    /// One of several results; `at` is its place.
    fn of_part(
        one: &Table,
        at: usize,
        source: Option<&Outcome>,
        reader: &Reader<'_>,
    ) -> Result<Self, Bad> {
        let part = |number: usize| {
            let parts = source.map_or(&[][..], Outcome::parts);
            let part = number.checked_sub(1).and_then(|at| parts.get(at));
            part.ok_or_else(|| Bad(format!("there is no result {number}")))
        };
        if let Some(number) = one.raw_get::<Option<usize>>("=same")? {
            let packets = part(number)?.packets.as_deref();
            reader.room.take(packets.map(Vec::as_slice))?;
            return Ok(Self::Same(packets.cloned().unwrap_or_default()));
        }
        if let Some(mapped) = one.raw_get::<Option<Table>>("=mapped")? {
            let part = part(mapped.raw_get("part")?)?;
            let (status, warnings) = (part.counts.status, part.counts.warnings);
            let rows = Self::mapped(&mapped, part, reader)?;
            return Ok(Self::Ending(Box::new(rows), status, warnings));
        }
        if one.raw_get::<Option<i64>>("type")? == Some(ERR[0]) {
            return Self::of_error(one, reader);
        }
        match one.get("fields")? {
            Value::Nil => Self::of_ok(one),
            _ => {
                let source = source.and_then(|source| source.parts().get(at));
                Self::of_result(one, source, reader)
            }
        }
    }

    fn of_error(table: &Table, reader: &Reader<'_>) -> Result<Self, Bad> {
        let message = match table.get("errmsg")? {
            Value::String(words) => {
                reader.room.take(Some(&words.as_bytes()))?;
                words.as_bytes().to_vec()
            }
            _ => {
                return Ok(Self::Err {
                    code: 1105,
                    state: *b"07000",
                    message: b"(lua) proxy.response.errmsg is nil".to_vec(),
                });
            }
        };
        // `errno` is what scripts write by mistake.
        let code = match table.get("errcode")? {
            Value::Nil => table.get("errno")?,
            code => code,
        };
        let code = number(&code).and_then(|code| u16::try_from(code).ok());
        let mut state = *b"07000";
        let said = match table.get("sqlstate")? {
            Value::String(said) => said.as_bytes().to_vec(),
            Value::Integer(said) => said.to_string().into_bytes(),
            Value::Number(said) => said.to_string().into_bytes(),
            _ => Vec::new(),
        };
        if said.len() == state.len() {
            state.copy_from_slice(&said);
        }
        Ok(Self::Err {
            code: code.unwrap_or(1105),
            state,
            message,
        })
    }

    fn of_result(
        result: &Table,
        source: Option<&Outcome>,
        reader: &Reader<'_>,
    ) -> Result<Self, Bad> {
        let Value::Table(said) = result.get("fields")? else {
            return Err(Bad("proxy.response.resultset.fields is no table".into()));
        };
        let fields = reader.columns(&said)?;
        let mut rows = Vec::new();
        if let Value::Table(said) = result.get("rows")? {
            reader.rows(&said, 1, (fields.len(), false), |row| rows.extend(row))?;
        }
        Ok(Self::of_rows(fields, rows, source))
    }

    /// A result that was packed.
    pub(crate) fn of_packed(
        result: &PackedResult,
        source: Option<&Outcome>,
        reader: &Reader<'_>,
    ) -> Result<Self, Bad> {
        let (mut fields, mut rows) = (Vec::new(), Vec::new());
        let columns = result.columns.as_bytes();
        reader.some_columns(&packed::list(&columns).ok_or_else(torn)?, &mut fields)?;
        if let Some(first) = &result.rows {
            let first = first.as_bytes();
            let first = packed::list(&first).ok_or_else(torn)?;
            reader.some_rows(&first, fields.len(), |row| rows.extend(row))?;
        }
        if let Some((from, list)) = &result.left {
            let shape = (fields.len(), false);
            reader.rows(list, *from, shape, |row| rows.extend(row))?;
        }
        Ok(Self::of_rows(fields, rows, source))
    }

    fn of_rows(mut fields: Vec<Field>, rows: Vec<Values>, source: Option<&Outcome>) -> Self {
        for (at, field) in fields.iter_mut().enumerate() {
            let kind = (field.kind != Type::STRING.0).then_some(field.kind);
            field.kept = source.and_then(|source| kept(source, at, &field.name, kind));
            let values = || rows.iter().filter_map(|row| row[at].as_deref());
            if field.is_numeric() && !values().all(is_number) {
                (field.kind, field.kept) = (Type::VAR_STRING.0, None);
            } else if field.is_whole() && !values().all(is_whole) {
                (field.kind, field.kept) = (Type::DOUBLE.0, None);
            }
        }
        Self::Rows { fields, rows }
    }

    /// This, or an error where it is for clients with other capabilities.
    #[must_use]
    pub fn for_client(&self, caps: Caps, is_binary: bool) -> Cow<'_, Self> {
        // Who sends several statements takes several results.
        let takes_several = match is_binary {
            true => caps::has(caps, caps::PS_MULTI_RESULTS),
            false => {
                caps::has(caps, caps::MULTI_RESULTS) || caps::has(caps, caps::MULTI_STATEMENTS)
            }
        };
        match self {
            Self::Several(all) if all.len() > 1 && !takes_several => Cow::Owned(Self::Err {
                code: 1105,
                state: *b"07000",
                message: b"(lua) several results for a client that takes one".to_vec(),
            }),
            _ => Cow::Borrowed(self),
        }
    }

    /// Whether it tells the client of an error.
    #[must_use]
    pub fn is_error(&self) -> bool {
        match self {
            Self::Err { .. } => true,
            Self::Same(packets) => packets.get(packet::HEADER_LEN) == Some(&ok::ERR_HEADER),
            Self::Several(all) => all.last().is_some_and(Self::is_error),
            _ => false,
        }
    }

    /// Writes it as the answer to a command whose last packet had number `command_seq`; the number
    /// of its own last packet. Status and warnings are what it ends with. `is_binary`: for the client of a COM_STMT_EXECUTE.
    pub fn write(
        &self,
        out: &mut Vec<u8>,
        command_seq: u8,
        (caps, status, warnings): (Caps, u16, u16),
        is_binary: bool,
    ) -> u8 {
        let mut writer = Writer::new(out, command_seq, caps, status).warned(warnings);
        match self {
            Self::Ok {
                affected,
                insert_id,
            } => writer.ok(&ok::Ok {
                affected: *affected,
                insert_id: *insert_id,
                warnings,
                ..ok::Ok::default()
            }),
            Self::Err {
                code,
                state,
                message,
            } => writer.err(&ok::Err {
                code: *code,
                state: *state,
                message,
            }),
            Self::Rows { fields, rows } if is_binary => {
                write_executed(&mut writer, fields, rows);
                writer.end(warnings);
            }
            Self::Rows { fields, rows } => {
                let definitions: Vec<_> = fields.iter().map(Field::definition).collect();
                writer.columns_as_said(definitions.iter().map(Vec::as_slice));
                for row in rows {
                    writer.text_row(row.iter().map(Option::as_deref));
                }
                writer.end(warnings);
            }
            Self::Several(all) => {
                let (mut seq, last) = (command_seq, all.len().saturating_sub(1));
                for (at, one) in all.iter().enumerate() {
                    let more = if at < last { status::MORE_RESULTS } else { 0 };
                    seq = one.write(out, seq, (caps, status | more, warnings), is_binary);
                }
                return seq;
            }
            Self::Ending(one, own, warnings) => {
                let status = own & !status::MORE_RESULTS | status & status::MORE_RESULTS;
                return one.write(out, command_seq, (caps, status, *warnings), is_binary);
            }
            Self::Same(packets) => {
                let mut seq = command_seq.wrapping_add(1);
                same(out, &mut seq, packets, (caps, status));
                return seq.wrapping_sub(1);
            }
            Self::Raw(packets) => {
                let mut seq = command_seq.wrapping_add(1);
                for payload in packets {
                    packet::append(out, &mut seq, &completed(payload, caps, status));
                }
                return seq.wrapping_sub(1);
            }
        }
        writer.last_seq()
    }
}

/// Rows of the binary protocol, whose values are of their columns' types. A column with a value that
/// is not goes as text.
fn write_executed(writer: &mut Writer<'_>, fields: &[Field], rows: &[Vec<Option<Vec<u8>>>]) {
    let definition = |(at, field): (usize, &Field)| {
        let fits = |row: &Vec<Option<Vec<u8>>>| {
            let value = row.get(at).and_then(Option::as_deref);
            value.is_none_or(|value| Type(field.kind).reads(value))
        };
        match rows.iter().all(fits) {
            true => field.definition(),
            false => Field {
                kind: Type::VAR_STRING.0,
                kept: None,
                name: field.name.clone(),
            }
            .definition(),
        }
    };
    let definitions: Vec<_> = fields.iter().enumerate().map(definition).collect();
    let shapes = definitions.iter().map(|one| Shape::of(one));
    let shapes: Vec<_> = shapes.map(|shape| shape.unwrap_or(Shape::UNTOLD)).collect();
    writer.columns_as_said(definitions.iter().map(Vec::as_slice));
    for row in rows {
        // Each value was looked at above.
        let _written = writer.binary_row_of_text(&shapes, row.iter().map(Option::as_deref));
    }
}

impl Field {
    /// A column that stands for none of a server's.
    pub(crate) fn made_up(name: &[u8], kind: u8) -> Self {
        Self {
            name: name.to_vec(),
            kind,
            kept: None,
        }
    }

    fn is_numeric(&self) -> bool {
        let numbers = [
            Type::DECIMAL,
            Type::TINY,
            Type::SHORT,
            Type::LONG,
            Type::FLOAT,
            Type::DOUBLE,
            Type::LONGLONG,
            Type::INT24,
            Type::YEAR,
            Type::NEWDECIMAL,
        ];
        numbers.contains(&Type(self.kind))
    }

    /// Whether its values are numbers without a fraction.
    fn is_whole(&self) -> bool {
        let fractions = [Type::DECIMAL, Type::FLOAT, Type::DOUBLE, Type::NEWDECIMAL];
        self.is_numeric() && !fractions.contains(&Type(self.kind))
    }

    pub(crate) fn definition(&self) -> Vec<u8> {
        if let Some(kept) = &self.kept {
            return kept.clone();
        }
        let mut out = Vec::new();
        let column = Column {
            charset: UTF8MB4,
            length: if self.is_numeric() { 21 } else { 1024 },
            kind: Type(self.kind),
            ..Column::text(String::from_utf8_lossy(&self.name))
        };
        column.write(&mut out, 0);
        out
    }
}

/// The definition of the server's column that this stands for: of the same name at the same place,
/// else the only one of that name, and of the same type, unless the script has said none.
fn kept(source: &Outcome, at: usize, name: &[u8], kind: Option<u8>) -> Option<Vec<u8>> {
    let rows = source.columns();
    let is_named = |column: &usize| source.names(*column)[0] == name;
    let column = Some(at)
        .filter(|at| *at < rows.definitions.len() && is_named(at))
        .or_else(|| {
            let mut all = (0..rows.definitions.len()).filter(is_named);
            all.next().filter(|_| all.next().is_none())
        })?;
    let of = rows.shapes.get(column)?.kind;
    kind.is_none_or(|kind| kind == of.0 || kind == Type::STRING.0)
        .then(|| rows.definitions[column].clone())
}

pub(crate) fn is_number(value: &[u8]) -> bool {
    if !value.is_empty() && value.iter().all(u8::is_ascii_digit) {
        return true;
    }
    std::str::from_utf8(value).is_ok_and(|text| text.parse::<f64>().is_ok())
}

/// Whether a number is written without fraction and exponent.
fn is_whole(value: &[u8]) -> bool {
    value
        .iter()
        .all(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b' '))
}

/// Writes packets of a result again. Its last one says whether another result follows.
fn same(out: &mut Vec<u8>, seq: &mut u8, packets: &[u8], (caps, status): (Caps, u16)) {
    let mut rest = packets;
    while let Some((payload, used, _)) = packet::join(rest) {
        rest = &rest[used..];
        let end = if rest.is_empty() { &payload[..] } else { &[] };
        let more = |own: u16| own & !status::MORE_RESULTS | status & status::MORE_RESULTS;
        match end.first() {
            Some(&ok::EOF_HEADER) if !caps::has(caps, caps::DEPRECATE_EOF) => {
                let (warnings, own) = ok::read_eof(end).unwrap_or_default();
                packet::append_with(out, seq, |out| ok::write_eof(out, warnings, more(own)));
            }
            Some(&(ok::OK_HEADER | ok::EOF_HEADER)) => match ok::Ok::read(end, caps) {
                Ok(mut ok) => {
                    ok.status = more(ok.status);
                    packet::append_with(out, seq, |out| match end.first() {
                        Some(&ok::OK_HEADER) => ok.write(out, caps),
                        _ => ok.write_end(out, caps),
                    });
                }
                Err(_) => packet::append(out, seq, end),
            },
            _ => packet::append(out, seq, &payload),
        }
    }
}

/// An OK of before 4.1, as scripts write it by hand, with what a client of today expects behind.
fn completed(payload: &[u8], caps: Caps, status: u16) -> Vec<u8> {
    let mut whole = payload.to_vec();
    let is_short = payload.first() == Some(&0) && (3..7).contains(&payload.len());
    if is_short && caps::has(caps, caps::PROTOCOL_41) {
        whole.truncate(3);
        whole.extend_from_slice(&status.to_le_bytes());
        whole.extend_from_slice(&[0, 0]);
    }
    whole
}

fn number(value: &Value) -> Option<i64> {
    match value {
        Value::Integer(number) => Some(*number),
        Value::Number(number) => Some(*number as i64),
        Value::String(digits) => digits.to_str().ok()?.trim().parse().ok(),
        _ => None,
    }
}

fn counted(table: &Table, name: &str) -> Result<u64, mlua::Error> {
    let said = number(&table.get(name)?);
    Ok(said.and_then(|said| u64::try_from(said).ok()).unwrap_or(0))
}

/// A number as Lua's `tostring` has it: fourteen digits.
pub(crate) fn shown(number: f64) -> String {
    if number.fract() == 0.0 && number.abs() < 1e15 {
        return format!("{number:.0}");
    }
    let digits = 14_i32 - 1 - number.abs().log10().floor() as i32;
    let text = format!("{number:.*}", usize::try_from(digits).unwrap_or(0));
    let text = text.trim_end_matches('0').trim_end_matches('.');
    text.to_owned()
}
