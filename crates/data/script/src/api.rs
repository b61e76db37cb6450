//! Functions beneath `require("millrace")`, which `today.lua` has: what a statement means, values in
//! their places, rows as they are typed.

use crate::host::Host;
use crate::meaning::Meaning;
use crate::now::Now;
use crate::outcome::{Outcome, kind};
use crate::packed::Packed;
use crate::shared::{Keep, Kept};
use mlua::{Error, FromLuaMulti, Function, IntoLua, IntoLuaMulti, Lua, LuaString, Table, Value};
use sql::bound::{Bound, Unfilled, filled};
use std::rc::Rc;
use wire::command::{Command, Execute};
use wire::execute::{self, Parts};

/// Numbers below this are whole in Lua and are shown whole: its `tostring` has fourteen digits.
const EXACT_MAX: u64 = 100_000_000_000_000;

/// Puts them where `today.lua` finds them.
pub(crate) fn put_in(lua: &Lua, native: &Table, now: &Rc<Now>) -> Result<(), Error> {
    of_statement(lua, native, now)?;
    of_answer(lua, native, now)?;
    put(lua, native, now, "setting", |lua, host, name: LuaString| {
        let found = host.setting(&name.to_string_lossy());
        found.map(|kept| told(lua, &kept)).transpose()
    })?;
    put(lua, native, now, "shared", shared)?;
    native.set(
        "url",
        lua.create_function(|_, text: LuaString| {
            let read = crate::url::Url::parse(&text.to_string_lossy());
            Ok(read.err())
        })?,
    )?;
    native.set(
        "where",
        lua.create_function(|_, hook: Function| {
            let info = hook.info();
            let file = info.short_src.unwrap_or_default();
            Ok(format!("{file}:{}", info.line_defined.unwrap_or(0)))
        })?,
    )
}

/// A function that asks the session whose hook runs.
fn put<A: FromLuaMulti, R: IntoLuaMulti>(
    lua: &Lua,
    native: &Table,
    now: &Rc<Now>,
    name: &str,
    asks: impl Fn(&Lua, &dyn Host, A) -> Result<R, Error> + 'static,
) -> Result<(), Error> {
    let of = now.clone();
    let function = lua.create_function(move |lua, args: A| {
        let host = of.host();
        let host = host.ok_or_else(|| Error::runtime("no session runs"))?;
        asks(lua, &*host, args)
    })?;
    native.set(name, function)
}

fn of_statement(lua: &Lua, native: &Table, now: &Rc<Now>) -> Result<(), Error> {
    put(lua, native, now, "meaning", |lua, host, text: LuaString| {
        let meaning = Meaning::of(&text.as_bytes(), host.reading());
        let tables = meaning.tables.iter().map(|name| lua.create_string(name));
        let tables = tables.collect::<Result<Vec<_>, _>>()?;
        let digest_text = lua.create_string(&meaning.digest_text)?;
        Ok((meaning.kind, meaning.digest, digest_text, tables))
    })?;
    put(lua, native, now, "places", |_, host, text: LuaString| {
        let text = text.as_bytes();
        let words = host.reading().lexing.words(&text);
        Ok(words.filter(|token| token.is_sign(b'?')).count())
    })?;
    type Executed = (LuaString, usize, Option<LuaString>);
    put(
        lua,
        native,
        now,
        "parameters",
        |lua, host, (packet, count, types): Executed| {
            let (packet, types) = (
                packet.as_bytes(),
                types.map(|types| types.as_bytes().to_vec()),
            );
            let Some(execute) = read_execute(&packet, host) else {
                return Ok(None);
            };
            let Ok(parts) = Parts::read(&execute, count, host.caps()) else {
                return Ok(None);
            };
            let Ok(values) = parts.decode(count, types.as_deref(), |_| None) else {
                return Ok(None);
            };
            let list = lua.create_table_with_capacity(count, 1)?;
            for (at, value) in values.iter().enumerate() {
                list.raw_set(at + 1, parameter(lua, value)?)?;
            }
            list.raw_set("n", count)?;
            Ok(Some(list))
        },
    )?;
    put(
        lua,
        native,
        now,
        "types",
        |lua, host, (packet, count): (LuaString, usize)| {
            let packet = packet.as_bytes();
            let execute = read_execute(&packet, host);
            let parts = execute.and_then(|execute| Parts::read(&execute, count, host.caps()).ok());
            let types = parts.filter(|parts| parts.bound);
            let types = types.and_then(|parts| parts.plain_types(count));
            types.map(|types| lua.create_string(types)).transpose()
        },
    )?;
    put(lua, native, now, "fill", fill)
}

fn read_execute<'a>(packet: &'a [u8], host: &dyn Host) -> Option<Execute<'a>> {
    match Command::read(packet, host.caps()) {
        Ok(Command::Execute(execute)) => Some(execute),
        _ => None,
    }
}

/// A value of a parameter, as Lua has it.
fn parameter(lua: &Lua, value: &execute::Value<'_>) -> Result<Value, Error> {
    match value {
        execute::Value::Null => Ok(Value::Nil),
        execute::Value::Int(number) if number.unsigned_abs() < EXACT_MAX => {
            Ok(Value::Number(*number as f64))
        }
        execute::Value::Uint(number) if *number < EXACT_MAX => Ok(Value::Number(*number as f64)),
        execute::Value::Float(number) => Ok(Value::Number(f64::from(*number))),
        execute::Value::Double(number) => Ok(Value::Number(*number)),
        execute::Value::Bytes(bytes) => lua.create_string(bytes)?.into_lua(lua),
        other => other.to_string().into_lua(lua),
    }
}

/// A statement with its values, or nothing and words.
fn fill(
    lua: &Lua,
    host: &dyn Host,
    (text, values): (LuaString, Table),
) -> Result<(Option<LuaString>, Option<String>), Error> {
    let count: usize = values.get("n")?;
    let refused = |words: String| Ok((None, Some(words)));
    let mut bound = Vec::with_capacity(count);
    for at in 1..=count {
        match bound_of(&values.raw_get::<Value>(at)?) {
            Some(value) => bound.push(value),
            None => return refused(format!("value {at} is nothing that SQL can have")),
        }
    }
    let charset = host.charset();
    match filled(&text.as_bytes(), &bound, charset.unwrap_or("utf8mb4")) {
        Ok(text) if charset.is_none() && text.windows(3).any(|three| three == b" X'") => {
            refused("a value has a backslash or a letter beyond ASCII, which the client's character set leaves unclear".into())
        }
        Ok(text) => Ok((Some(lua.create_string(text)?), None)),
        Err(Unfilled::Places(places)) => {
            refused(format!("the statement has {places} '?', and there are {count} values"))
        }
        Err(Unfilled::Value(number)) => refused(format!("value {number} cannot stand behind LIMIT")),
    }
}

fn bound_of(value: &Value) -> Option<Bound> {
    Some(match value {
        Value::Nil => Bound::Null,
        Value::Boolean(flag) => Bound::Number(u8::from(*flag).to_string(), false),
        Value::Integer(number) => Bound::Number(number.unsigned_abs().to_string(), *number < 0),
        Value::Number(number) if !number.is_finite() => return None,
        Value::Number(number) => {
            let size = number.abs();
            let digits = match (1e-5..1e15).contains(&size) || size == 0.0 {
                true => format!("{size}"),
                false => format!("{size:e}"),
            };
            Bound::Number(digits, *number < 0.0)
        }
        Value::String(text) => Bound::Text(text.as_bytes().to_vec()),
        // `m.number`.
        Value::Table(boxed) => {
            let digits = boxed.raw_get::<Option<String>>("digits").ok()??;
            match digits.strip_prefix('-') {
                Some(digits) => Bound::Number(digits.to_owned(), true),
                None => Bound::Number(digits, false),
            }
        }
        _ => return None,
    })
}

fn of_answer(lua: &Lua, native: &Table, now: &Rc<Now>) -> Result<(), Error> {
    let of = now.clone();
    native.set(
        "is_several",
        lua.create_function(move |_, ()| Ok(of.outcome(|outcome| outcome.is_several())))?,
    )?;
    let of = now.clone();
    native.set(
        "is_bare",
        lua.create_function(move |_, part: Option<usize>| {
            let bare = |outcome: &Outcome| {
                outcome.counts.has_rows && outcome.columns().definitions.is_empty()
            };
            Ok(of.part(part, bare))
        })?,
    )?;
    // How values of each column are read: as a whole number, a number, or a text.
    let of = now.clone();
    native.set(
        "kinds",
        lua.create_function(move |lua, part: Option<usize>| {
            let mut packed = Packed::default();
            of.part(part, |outcome| {
                let shapes = &outcome.columns().shapes;
                packed.list(shapes.len());
                for shape in shapes {
                    packed.text(Some(kind(shape.kind).as_bytes()));
                }
            });
            packed.told(lua)
        })?,
    )
}

type Said = (String, LuaString, Value, Option<f64>);

/// Returns what is there afterwards, or nothing and words.
fn shared(
    lua: &Lua,
    host: &dyn Host,
    (what, key, value, ttl_ms): Said,
) -> Result<(Value, Option<String>), Error> {
    let what = match (&*what, value) {
        ("add", by) => Keep::Add(number(&by).unwrap_or(0.0)),
        ("set", Value::Nil) => Keep::Set(None),
        ("set", value) => Keep::Set(Some(kept(&value)?)),
        _ => Keep::Get,
    };
    let ttl_us = ttl_ms.map(|ms| (ms.max(0.0) * 1000.0) as u64);
    match host.shared(&key.as_bytes(), what, ttl_us) {
        Ok(found) => Ok((found.map_or(Ok(Value::Nil), |kept| told(lua, &kept))?, None)),
        Err(words) => Ok((Value::Nil, Some(words))),
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(number) => Some(*number as f64),
        Value::Number(number) => Some(*number),
        _ => None,
    }
}

fn kept(value: &Value) -> Result<Kept, Error> {
    match value {
        Value::Boolean(flag) => Ok(Kept::Flag(*flag)),
        Value::String(text) => Ok(Kept::Text(text.as_bytes().to_vec())),
        other => match number(other) {
            Some(number) => Ok(Kept::Number(number)),
            None => Err(Error::runtime(
                "m.shared keeps texts, numbers, true and false",
            )),
        },
    }
}

fn told(lua: &Lua, kept: &Kept) -> Result<Value, Error> {
    match kept {
        Kept::Number(number) => Ok(Value::Number(*number)),
        Kept::Text(text) => lua.create_string(text)?.into_lua(lua),
        Kept::Flag(flag) => Ok(Value::Boolean(*flag)),
    }
}
