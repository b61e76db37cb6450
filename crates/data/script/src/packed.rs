//! Values on their way into Lua and out of it, many at a time: a call of the VM for each of them takes ten times as long as what
//! a script does with it. They go as one text, which LuaJIT's `string.buffer` makes tables of and from (its page "String Buffer
//! Library", part "Serialization Format Specification"). `packed.lua` is the other side.

use crate::outcome::{Outcome, Row};
use crate::response::shown;
use mlua::{Error, Function, Lua, LuaString, Table};
use std::borrow::Cow;

/// Signs in front of values. A text has its length and this as its sign.
const NIL: u8 = 0x00;
const FALSE: u8 = 0x01;
const TRUE: u8 = 0x02;
const INTEGER: u8 = 0x06;
const NUMBER: u8 = 0x07;
const EMPTY: u8 = 0x08;
const FIELDS: u8 = 0x09;
const KNOWN: u8 = 0x0f;
const LIST: u8 = 0x0c;
const LIST_AND_FIELDS: u8 = 0x0d;
const TEXT: usize = 0x20;
/// The least number of two bytes, and that of five.
const TWO: usize = 0xe0;
const FIVE: usize = 0x1fe0;

/// Values for Lua.
#[derive(Debug, Default)]
pub(crate) struct Packed(Vec<u8>);

/// A list whose length is not known yet.
#[derive(Debug)]
pub(crate) struct Open(usize);

impl Packed {
    /// With room for so many bytes.
    pub(crate) fn with_room(len: usize) -> Self {
        Self(Vec::with_capacity(len))
    }

    fn count(&mut self, number: usize) {
        match number {
            ..TWO => self.0.push(number as u8),
            TWO..FIVE => {
                let rest = number - TWO;
                self.0.extend([0xe0 | (rest >> 8) as u8, rest as u8]);
            }
            _ => {
                let number = u32::try_from(number).unwrap_or(u32::MAX);
                self.0.push(u8::MAX);
                self.0.extend(number.to_le_bytes());
            }
        }
    }

    /// Appends a text, or nothing.
    pub(crate) fn text(&mut self, text: Option<&[u8]>) {
        match text {
            None => self.0.push(NIL),
            Some(text) => {
                self.count(TEXT + text.len());
                self.0.extend_from_slice(text);
            }
        }
    }

    /// Appends the text of a number of a dictionary, from 0, which the buffer that reads it has.
    pub(crate) fn known(&mut self, number: usize) {
        self.0.push(KNOWN);
        self.count(number);
    }

    /// Appends a number.
    pub(crate) fn number(&mut self, number: f64) {
        self.0.push(NUMBER);
        self.0.extend(number.to_le_bytes());
    }

    /// Begins a list of so many values, which follow.
    pub(crate) fn list(&mut self, len: usize) {
        match len {
            0 => self.0.push(EMPTY),
            _ => {
                self.0.push(LIST);
                self.count(len + 1);
            }
        }
    }

    /// Begins a table of so many fields, of which each key stands in front of its value.
    pub(crate) fn fields(&mut self, len: usize) {
        match len {
            0 => self.0.push(EMPTY),
            _ => {
                self.0.push(FIELDS);
                self.count(len);
            }
        }
    }

    /// Begins a list until it is closed.
    pub(crate) fn open(&mut self) -> Open {
        self.0.extend([LIST, u8::MAX, 0, 0, 0, 0]);
        Open(self.0.len() - size_of::<u32>())
    }

    /// Ends a list of so many values.
    pub(crate) fn close(&mut self, Open(at): Open, len: usize) {
        let len = u32::try_from(len + 1).unwrap_or(u32::MAX).to_le_bytes();
        self.0[at..at + len.len()].copy_from_slice(&len);
    }

    /// Appends a row as a list of all its texts; or as a table of these columns, from 1, by their places.
    fn row(&mut self, row: &Row<'_>, columns: Option<&[usize]>) {
        let last = columns.and_then(|columns| columns.iter().max());
        match columns {
            // A list that would have many places of nothing.
            Some(columns) if *last.unwrap_or(&0) > columns.len() + HOLES_MAX => {
                let texts = columns.iter().filter_map(|column| {
                    let text = row.text(column.checked_sub(1)?)?;
                    Some((*column, text))
                });
                let texts: Vec<_> = texts.collect();
                self.fields(texts.len());
                for (column, text) in texts {
                    self.number(column as f64);
                    self.text(Some(&text));
                }
            }
            Some(columns) => {
                self.list(*last.unwrap_or(&0));
                for column in 1..=*last.unwrap_or(&0) {
                    let text = columns.contains(&column).then(|| row.text(column - 1));
                    self.text(text.flatten().as_deref());
                }
            }
            None => {
                self.list(row.len());
                for at in 0..row.len() {
                    self.text(row.text(at).as_deref());
                }
            }
        }
    }

    /// Appends a list of rows, from this one on: all of them, or as many as one turn has. Returns how many there are.
    pub(crate) fn rows(
        &mut self,
        outcome: &Outcome,
        from: usize,
        columns: Option<&[usize]>,
        all: bool,
    ) -> usize {
        let (list, began) = (self.open(), self.0.len());
        let mut at = from;
        while (all || at - from < ROWS_MAX && self.0.len() - began < BYTES_MAX)
            && outcome.row(at, |row| self.row(row, columns)).is_some()
        {
            at += 1;
        }
        self.close(list, at - from);
        at - from
    }

    /// Text that Lua makes values of.
    pub(crate) fn told(&self, lua: &Lua) -> Result<LuaString, Error> {
        lua.create_string(&self.0)
    }
}

/// Rows that Lua gets in one turn at most, unless one alone has more bytes.
const ROWS_MAX: usize = 32;
/// Bytes after which no further row is added.
const BYTES_MAX: usize = 16 << 10;
/// Columns that nobody asked for and that a row's list has places of.
const HOLES_MAX: usize = 16;

/// A value of a list that Lua has packed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Value<'a> {
    /// `nil` and `false`.
    None,
    /// `true`.
    True,
    /// A number.
    Number(f64),
    /// A text.
    Text(&'a [u8]),
}

impl<'a> Value<'a> {
    /// Its text as a row has it; none is NULL.
    pub(crate) fn text(self) -> Option<Cow<'a, [u8]>> {
        match self {
            Value::None | Value::True => None,
            Value::Number(number) => Some(shown(number).into_bytes().into()),
            Value::Text(text) => Some(text.into()),
        }
    }

    /// Place of something that it is the number of.
    pub(crate) fn place(self) -> Option<usize> {
        match self {
            Value::Number(number) => Some(number as usize),
            _ => None,
        }
    }
}

/// Values of a list, in their order; none where it is none, or has others than these in it.
pub(crate) fn list(packed: &[u8]) -> Option<Vec<Value<'_>>> {
    let mut rest = Rest(packed);
    let sign = rest.byte()?;
    let len = match sign {
        LIST | LIST_AND_FIELDS => rest.count()?.checked_sub(1)?,
        EMPTY | FIELDS => 0,
        _ => return None,
    };
    let fields = match sign {
        FIELDS | LIST_AND_FIELDS => rest.count()?,
        _ => 0,
    };
    // No value is shorter than a byte.
    let mut values = Vec::with_capacity(len.min(rest.0.len()));
    for _ in 0..len {
        values.push(rest.value()?);
    }
    // Where Lua keeps the end of a list apart.
    for _ in 0..fields {
        let at = rest.value()?.place()?.checked_sub(1)?;
        if at >= values.len() + fields {
            return None;
        }
        values.resize(values.len().max(at + 1), Value::None);
        values[at] = rest.value()?;
    }
    Some(values)
}

/// Bytes that were not read.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    fn count(&mut self) -> Option<usize> {
        let first = usize::from(self.byte()?);
        match first {
            ..TWO => Some(first),
            0xff => usize::try_from(u32::from_le_bytes(self.bytes()?)).ok(),
            _ => Some(((first & 0x1f) << 8) + usize::from(self.byte()?) + TWO),
        }
    }

    fn value(&mut self) -> Option<Value<'a>> {
        let sign = self.count()?;
        if let Some(len) = sign.checked_sub(TEXT) {
            let (text, rest) = self.0.split_at_checked(len)?;
            self.0 = rest;
            return Some(Value::Text(text));
        }
        match u8::try_from(sign).ok()? {
            NIL | FALSE => Some(Value::None),
            TRUE => Some(Value::True),
            INTEGER => Some(Value::Number(i32::from_le_bytes(self.bytes()?).into())),
            NUMBER => Some(Value::Number(f64::from_le_bytes(self.bytes()?))),
            _ => None,
        }
    }
}

/// Functions of `packed.lua` that `response.rs` calls.
#[derive(Debug)]
pub(crate) struct Packing {
    /// Packs some rows.
    pub(crate) rows: Function,
    /// Packs names and types of columns.
    pub(crate) columns: Function,
}

impl Packing {
    /// Those of what it returns.
    pub(crate) fn of(packed: &Table) -> Result<Self, Error> {
        Ok(Self {
            rows: packed.get("rows")?,
            columns: packed.get("columns")?,
        })
    }

    /// Those of a VM that has no scripts.
    pub(crate) fn load(lua: &Lua) -> Result<Self, Error> {
        let native = lua.create_table()?;
        native.set("buffer", buffer(lua)?)?;
        let chunk = lua.load(include_str!("packed.lua")).set_name("=packed");
        Self::of(&chunk.call(native)?)
    }
}

/// LuaJIT's library, of a VM that has not been tamed yet. No script has it.
pub(crate) fn buffer(lua: &Lua) -> Result<Table, Error> {
    lua.load("return require('string.buffer')").call(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lua makes of it what was packed, and packs it as it was.
    #[test]
    fn lua_reads_what_is_packed_and_packs_what_is_read() {
        let lua = Lua::new();
        let buffer = buffer(&lua).expect("it is built in");
        let texts = [
            None,
            Some(vec![]),
            Some(b"abc".to_vec()),
            Some(vec![b'x'; TWO - TEXT - 1]),
            Some(vec![b'x'; TWO - TEXT]),
            Some(vec![b'y'; FIVE - TEXT - 1]),
            Some(vec![b'y'; FIVE - TEXT]),
            Some(vec![b'z'; 100_000]),
        ];
        for count in [0, 1, 7, 300, 9000] {
            let mut packed = Packed::default();
            let open = packed.open();
            for at in 0..count {
                packed.text(texts[at % texts.len()].as_deref());
            }
            packed.number(-2.5);
            packed.close(open, count + 1);
            lua.globals().set("buffer", &buffer).expect("set");
            lua.globals()
                .set("packed", packed.told(&lua).expect("a text"))
                .expect("set");
            let again: LuaString = lua
                .load("local list = buffer.decode(packed) assert(list[#list] == -2.5) return buffer.encode(list)")
                .call(())
                .expect("a list");
            let again = again.as_bytes();
            let values = list(&again).expect("a list");
            assert_eq!(values.len(), count + 1);
            for (at, value) in values[..count].iter().enumerate() {
                assert_eq!(value.text().as_deref(), texts[at % texts.len()].as_deref());
            }
            assert_eq!(values[count], Value::Number(-2.5));
        }
    }

    #[test]
    fn a_list_has_no_other_values_and_an_end() {
        let lua = Lua::new();
        lua.globals()
            .set("buffer", buffer(&lua).expect("it is built in"))
            .expect("set");
        let packed = |text: &str| {
            let packed: LuaString = lua.load(text).call(()).expect("packed");
            packed.as_bytes().to_vec()
        };
        let values =
            packed("local t = { 1, 'a' } t[4] = true t[5] = false return buffer.encode(t)");
        assert_eq!(
            list(&values),
            Some(vec![
                Value::Number(1.0),
                Value::Text(b"a"),
                Value::None,
                Value::True,
                Value::None,
            ])
        );
        for end in 0..values.len() {
            assert_eq!(list(&values[..end]), None, "{end}");
        }
        for bad in ["{ {} }", "'a'", "{ a = 1 }", "{ [0] = 1 }", "{ [1e9] = 1 }"] {
            assert_eq!(
                list(&packed(&format!("return buffer.encode({bad})"))),
                None,
                "{bad}"
            );
        }
        assert_eq!(list(&packed("return buffer.encode({})")), Some(vec![]));
    }
}
