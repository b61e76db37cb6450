//! Functions of ours that `proxy.lua` calls.

use crate::host::{Server, Standing};
use crate::now::{Now, part_of};
use crate::outcome::Outcome;
use crate::packed::{Packed, buffer};
use crate::shared::Kept;
use bridge::Letter;
use config::Place;
use lua::syntax::with_arguments;
use mlua::debug::Debug;
use mlua::{IntoLua, Lua, LuaString, Table, Value};
use std::borrow::Cow;
use std::rc::Rc;

/// Bytes of a text that take a while.
const LONG: usize = 100_000;
/// Functions of a stack that are looked at.
const STACK_MAX: usize = 64;

/// Functions that `proxy.lua` calls.
pub(crate) fn natives(lua: &Lua, now: &Rc<Now>) -> Result<Table, mlua::Error> {
    let native = lua.create_table()?;
    native.set("buffer", buffer(lua)?)?;
    native.set("constants", crate::constants::table(lua)?)?;
    native.set("modules", crate::modules::native(lua)?)?;
    native.set(
        "written",
        lua.create_function(|_, name: String| Ok(crate::modules::written(&name)))?,
    )?;
    native.set(
        "refused",
        lua.create_function(|_, name: String| Ok(crate::modules::refused(&name)))?,
    )?;
    of_log(lua, &native, now)?;
    let of = now.clone();
    native.set(
        "close",
        lua.create_function(move |_, connection: u32| {
            if let Some(host) = of.host.borrow().as_ref() {
                host.close(connection);
            }
            Ok(())
        })?,
    )?;
    let of = now.clone();
    native.set(
        "md5",
        lua.create_function(move |_, text: LuaString| {
            // Many long ones are few instructions.
            if text.as_bytes().len() > LONG && of.is_over() {
                return Err(mlua::Error::runtime("the hook has run for too long"));
            }
            Ok(lua::md5::hex(&text.as_bytes()))
        })?,
    )?;
    // A text of Lua with the table `arg` where functions expect it.
    native.set(
        "with_arguments",
        lua.create_function(|lua, text: LuaString| {
            match std::str::from_utf8(&text.as_bytes()).map(with_arguments) {
                Ok(Cow::Owned(made)) => lua.create_string(made),
                _ => Ok(text.clone()),
            }
        })?,
    )?;
    native.set("pid", lua.create_function(|_, ()| Ok(std::process::id()))?)?;
    let of = now.clone();
    native.set(
        "wall",
        lua.create_function(move |_, ()| {
            let host = of.host.borrow();
            let us = host.as_ref().map_or(0, |host| host.wall_us());
            Ok((us / 1_000_000, us % 1_000_000))
        })?,
    )?;
    let of = now.clone();
    native.set(
        "is_over",
        lua.create_function(move |_, ()| Ok(of.is_over()))?,
    )?;
    let of = now.clone();
    native.set(
        "is_deep",
        lua.create_function(move |_, ()| Ok(of.depth.is_reached()))?,
    )?;
    crate::tokens::natives(lua, &native)?;
    of_outcome(lua, &native, now)?;
    crate::api::put_in(lua, &native, now)?;
    of_session(lua, &native, now)?;
    Ok(native)
}

/// Those that are about logs.
fn of_log(lua: &Lua, native: &Table, now: &Rc<Now>) -> Result<(), mlua::Error> {
    let of = now.clone();
    native.set(
        "log",
        lua.create_function(move |_, line: LuaString| {
            if let Some(host) = of.host() {
                host.log(&line.to_string_lossy());
            }
            Ok(())
        })?,
    )?;
    let of = now.clone();
    native.set(
        "append",
        lua.create_function(move |_, (file, text): (String, LuaString)| {
            let Some(host) = of.host() else {
                return Ok(None);
            };
            let place = host.place(&file);
            Ok(place
                .map(|place| host.append(&place, &text.as_bytes()))
                .err())
        })?,
    )?;
    of_files(lua, native, now)?;
    let of = now.clone();
    native.set(
        "mail",
        lua.create_function(move |_, letter: Table| {
            let letter = letter_of(&letter)?;
            let host = of.host().ok_or_else(|| "no session sends it".to_owned());
            Ok(host.and_then(|host| host.mail(letter)).err())
        })?,
    )?;
    // The first function in the script's own files: path, line, its kind and name, and the stack.
    native.set(
        "caller",
        lua.create_function(|lua, ()| {
            let mut found = None;
            for level in 1..STACK_MAX {
                let of = |debug: &Debug<'_>| {
                    let source = debug.source();
                    let path = source.source?.strip_prefix('@')?.to_owned();
                    let defined = source.line_defined.unwrap_or(0);
                    let name = debug.names().name.map(Cow::into_owned);
                    Some((path, debug.current_line(), source.what, defined, name))
                };
                match lua.inspect_stack(level, of) {
                    None => break,
                    Some(None) => {}
                    Some(Some(at)) => {
                        found = Some((level, at));
                        break;
                    }
                }
            }
            let Some((level, (path, line, what, defined, name))) = found else {
                return Ok((None, None, None, None));
            };
            let method = match (what, name) {
                ("main", _) => "main chunk".to_owned(),
                (_, Some(name)) => format!("function '{name}'"),
                (_, None) => format!("function <{path}:{defined}>"),
            };
            let stack = lua.traceback(None, level)?;
            Ok((Some(path), line, Some(method), Some(stack)))
        })?,
    )
}

/// Those that are about files and the environment.
fn of_files(lua: &Lua, native: &Table, now: &Rc<Now>) -> Result<(), mlua::Error> {
    let of = now.clone();
    // Whether it stands where its name says, or why it is none.
    native.set(
        "place",
        lua.create_function(move |_, file: LuaString| {
            let Some(host) = of.host() else {
                return Ok((None, Some("no session runs".to_owned())));
            };
            Ok(match host.place(&file.to_string_lossy()) {
                Ok(place) => (Some(matches!(place, Place::At(_))), None),
                Err(words) => (None, Some(words)),
            })
        })?,
    )?;
    let of = now.clone();
    native.set(
        "empty",
        lua.create_function(move |_, file: String| {
            let host = of.host();
            let place = host.as_ref().map(|host| host.place(&file));
            if let (Some(host), Some(Ok(place))) = (host, place) {
                host.empty(&place);
            }
            Ok(())
        })?,
    )?;
    let of = now.clone();
    native.set(
        "environment",
        lua.create_function(move |_, name: LuaString| {
            let host = of.host();
            Ok(host.and_then(|host| host.environment(&name.to_string_lossy())))
        })?,
    )?;
    native.set(
        "traceback",
        lua.create_function(|lua, (words, level): (Option<String>, Option<usize>)| {
            lua.traceback(words.as_deref(), level.unwrap_or(1))
        })?,
    )?;
    native.set(
        "stack",
        lua.create_function(|lua, level: usize| {
            lua.inspect_stack(level, |debug| info(lua, debug))
                .transpose()
        })?,
    )?;
    // Whether a function, or that at a level of the stack, is none of a script's.
    native.set(
        "is_ours",
        lua.create_function(|lua, of: Value| {
            let is_ours =
                |source: Option<Cow<'_, str>>| source.is_none_or(|source| source.starts_with('='));
            Ok(match of {
                Value::Function(of) => is_ours(of.info().source.map(Cow::Owned)),
                Value::Integer(level) => {
                    let level = usize::try_from(level).unwrap_or(usize::MAX);
                    let found = lua.inspect_stack(level, |debug| is_ours(debug.source().source));
                    found.unwrap_or(true)
                }
                _ => false,
            })
        })?,
    )?;
    native.set(
        "described",
        lua.create_function(|lua, of: mlua::Function| {
            let info = of.info();
            let table = lua.create_table()?;
            table.set("source", info.source)?;
            table.set("short_src", info.short_src)?;
            table.set("what", info.what)?;
            table.set(
                "linedefined",
                info.line_defined.map_or(-1, |line| line as i64),
            )?;
            table.set("currentline", -1)?;
            table.set("func", of)?;
            Ok(table)
        })?,
    )
}

/// A function of the stack, as `debug.getinfo` has it.
fn info(lua: &Lua, debug: &Debug<'_>) -> Result<Table, mlua::Error> {
    let table = lua.create_table()?;
    let (source, names) = (debug.source(), debug.names());
    table.set("source", source.source)?;
    table.set("short_src", source.short_src)?;
    table.set("what", source.what)?;
    table.set(
        "linedefined",
        source.line_defined.map_or(-1, |line| line as i64),
    )?;
    table.set(
        "currentline",
        debug.current_line().map_or(-1, |line| line as i64),
    )?;
    table.set("name", names.name)?;
    table.set("namewhat", names.name_what.unwrap_or_default())?;
    Ok(table)
}

/// A mail, as the SMTP appender of Log4LUA has it.
fn letter_of(table: &Table) -> Result<Letter, mlua::Error> {
    let text = |of: LuaString| of.to_string_lossy();
    let user: Option<LuaString> = table.raw_get("user")?;
    let password: Option<LuaString> = table.raw_get("password")?;
    let to: Vec<LuaString> = table.raw_get("to")?;
    Ok(Letter {
        host: text(table.raw_get("host")?),
        port: table.raw_get("port")?,
        login: user.map(|user| (text(user), password.map(text).unwrap_or_default())),
        from: text(table.raw_get("from")?),
        to: to.into_iter().map(text).collect(),
        subject: text(table.raw_get("subject")?),
        body: text(table.raw_get("body")?),
    })
}

/// Those that are about the servers and the client.
fn of_session(lua: &Lua, native: &Table, now: &Rc<Now>) -> Result<(), mlua::Error> {
    let of = now.clone();
    let servers = |of: &Now| {
        let host = of.host.borrow();
        let ask = || host.as_ref().map(|host| host.servers()).unwrap_or_default();
        of.servers.borrow_mut().get_or_insert_with(ask).clone()
    };
    native.set(
        "backends",
        lua.create_function(move |_, ()| Ok(servers(&of).len()))?,
    )?;
    let of = now.clone();
    let at_place = move |at: f64| {
        let all = servers(&of);
        (at >= 1.0)
            .then(|| all.get(at as usize - 1).cloned())
            .flatten()
    };
    let find = at_place.clone();
    native.set(
        "backend",
        lua.create_function(move |lua, at: f64| {
            find(at).map(|server| shown(lua, &server)).transpose()
        })?,
    )?;
    of_notes(lua, native, now, at_place)?;
    let of = now.clone();
    native.set(
        "current",
        lua.create_function(move |_, ()| Ok(of.host().map_or(0, |host| host.current())))?,
    )?;
    let of = now.clone();
    native.set(
        "client",
        lua.create_function(move |lua, what: String| {
            let host = of.host.borrow();
            let Some(host) = host.as_ref() else {
                return Ok((Value::Nil, None));
            };
            let text = |text: String| Ok::<_, mlua::Error>(Value::String(lua.create_string(text)?));
            let [src, dst] = host.ends();
            let end =
                |(host, port): (String, u16)| Ok((text(host)?, Some(port).filter(|p| *p != 0)));
            match &*what {
                "schema" => Ok((text(host.schema())?, None)),
                "user" => Ok((text(host.user())?, None)),
                "thread" => Ok((Value::Number(host.thread().into()), None)),
                "version" => Ok((Value::Number(host.version().into()), None)),
                "auth_plugin" => Ok((host.auth_plugin().into_lua(lua)?, None)),
                "stand_in" => Ok((Value::String(lua.create_string(host.stand_in())?), None)),
                "src" => end(src),
                _ => end(dst),
            }
        })?,
    )
}

/// A server, as `proxy.lua` has it.
fn shown(lua: &Lua, server: &Server) -> Result<Table, mlua::Error> {
    let table = lua.create_table()?;
    table.set("host", &*server.host)?;
    table.set("port", Some(server.port).filter(|port| *port != 0))?;
    table.set("type", if server.is_reader { 2 } else { 1 })?;
    let state = match server.standing {
        Standing::Unknown => 0,
        Standing::Up => 1,
        Standing::Down => 2,
    };
    table.set("state", state)?;
    table.set("clients", server.clients)?;
    table.set("idle_own", server.idle_own)?;
    table.set("idle_any", server.idle_any)?;
    Ok(table)
}

/// Those that are about scripts' notes of servers.
fn of_notes(
    lua: &Lua,
    native: &Table,
    now: &Rc<Now>,
    find: impl Fn(f64) -> Option<Server> + Clone + 'static,
) -> Result<(), mlua::Error> {
    let (of, at_place) = (now.clone(), find.clone());
    native.set(
        "noted",
        lua.create_function(move |lua, (at, field): (f64, String)| {
            let (Some(host), Some(server)) = (of.host(), at_place(at)) else {
                return Ok(Value::Nil);
            };
            match host.noted(&server, &field) {
                None => Ok(Value::Nil),
                Some(Kept::Number(number)) => Ok(Value::Number(number)),
                Some(Kept::Flag(flag)) => Ok(Value::Boolean(flag)),
                Some(Kept::Text(text)) => lua.create_string(text).map(Value::String),
            }
        })?,
    )?;
    let of = now.clone();
    native.set(
        "note",
        lua.create_function(move |_, (at, field, value): (f64, String, Value)| {
            let value = match value {
                Value::Number(number) => Some(Kept::Number(number)),
                Value::Integer(number) => Some(Kept::Number(number as f64)),
                Value::String(text) => Some(Kept::Text(text.as_bytes().to_vec())),
                _ => None,
            };
            let (Some(host), Some(server)) = (of.host(), find(at)) else {
                return Ok(());
            };
            let noted = host.note(&server, &field, value);
            // It is shown at once.
            of.servers.replace(None);
            noted.map_err(mlua::Error::runtime)
        })?,
    )
}

/// Those that are about the answer that a hook looks at.
fn of_outcome(lua: &Lua, native: &Table, now: &Rc<Now>) -> Result<(), mlua::Error> {
    let of = now.clone();
    native.set(
        "serial",
        lua.create_function(move |_, ()| Ok(of.serial.get()))?,
    )?;
    let of = now.clone();
    native.set(
        "counts",
        lua.create_function(move |_, part| Ok(counts(&of, part)))?,
    )?;
    let of = now.clone();
    native.set(
        "fields",
        lua.create_function(move |lua, part| fields(lua, &of, part))?,
    )?;
    let of = now.clone();
    native.set(
        "results",
        lua.create_function(move |_, ()| Ok(of.outcome(|outcome| outcome.parts().len())))?,
    )?;
    let of = now.clone();
    type Wanted = (u32, usize, Option<usize>, Option<Vec<usize>>);
    native.set(
        "rows",
        lua.create_function(move |lua, (serial, at, part, columns): Wanted| {
            if serial != of.serial.get() {
                return Err(mlua::Error::runtime(
                    ".resultset is gone: its hook has returned",
                ));
            }
            let mut packed = Packed::default();
            let count = of.part(part, |outcome| {
                packed.rows(outcome, at.saturating_sub(1), columns.as_deref(), false)
            });
            Ok((count, packed.told(lua)?))
        })?,
    )?;
    let of = now.clone();
    native.set(
        "first",
        lua.create_function(move |lua, part| {
            let outcome = of.outcome.borrow();
            let outcome = outcome.as_ref().and_then(|one| part_of(one, part));
            let first = outcome.and_then(Outcome::first);
            first.map(|first| lua.create_string(first)).transpose()
        })?,
    )
}

/// Numbers of the answer that a hook looks at, or of one of its results.
fn counts(now: &Now, part: Option<usize>) -> Numbers {
    let outcome = now.outcome.borrow();
    let outcome = outcome.as_ref().and_then(|one| part_of(one, part));
    numbers(outcome)
}

/// Numbers of an answer as `proxy.lua` has them: whether it is collected, whether it failed and whether it has rows; rows, bytes,
/// warnings, status, affected rows and the insert id.
pub(crate) type Numbers = (bool, bool, bool, f64, f64, u16, u16, f64, f64);

/// Those of this one.
pub(crate) fn numbers(outcome: Option<&Outcome>) -> Numbers {
    let counts = outcome.map(|one| one.counts).unwrap_or_default();
    (
        outcome.is_some_and(|one| one.packets.is_some()),
        counts.failed,
        counts.has_rows,
        counts.rows as f64,
        counts.bytes as f64,
        counts.warnings,
        counts.status,
        counts.affected as f64,
        counts.insert_id as f64,
    )
}

/// Types and names of columns, packed.
fn fields(lua: &Lua, now: &Now, part: Option<usize>) -> Result<LuaString, mlua::Error> {
    const NAMES: [&str; 4] = ["name", "org_name", "table", "org_table"];
    let mut packed = Packed::default();
    packed.list(now.part(part, |outcome| outcome.columns().shapes.len()));
    now.part(part, |outcome| {
        for (at, shape) in outcome.columns().shapes.iter().enumerate() {
            packed.fields(1 + NAMES.len());
            packed.text(Some(b"type"));
            packed.number(shape.kind.0.into());
            for (of, name) in NAMES.iter().zip(outcome.names(at)) {
                packed.text(Some(of.as_bytes()));
                packed.text(Some(name));
            }
        }
    });
    packed.told(lua)
}
