//! `mysql.proto` and `mysql.password`: payloads of the protocol as tables of a script and back, and
//! the answers of a login by SHA1.

use mlua::{Error, Lua, LuaString, Table, Value};
use wire::caps::{self, Caps};
use wire::command::Command;
use wire::execute::{self, DateTime, Parts, Time};
use wire::handshake::{Greeting, Login};
use wire::read::Reader;
use wire::{Malformed, auth, ok};

/// Capabilities of an OK as in MySQL Proxy's time.
const CAPS: Caps = caps::PROTOCOL_41 | caps::TRANSACTIONS;
/// Capabilities of a login, unless its script says others.
const LOGIN_CAPS: Caps = caps::PROTOCOL_41 | caps::SECURE_CONNECTION;
/// Parts of a login that are there only if both sides know them.
const AGREED: Caps = caps::CONNECT_WITH_DB
    | caps::PLUGIN_AUTH
    | caps::PLUGIN_AUTH_LENENC
    | caps::CONNECT_ATTRS
    | caps::ZSTD;
/// Challenge of a greeting whose script says none.
const CHALLENGE: &[u8; 20] = b"01234567890123456789";
/// Version of a greeting whose script says none: 5.0.99.
const VERSION: u32 = 50_099;
/// First byte of a COM_STMT_PREPARE.
const PREPARE: u8 = 0x16;
/// Lines of master.info as names of a script's table, behind the count of lines.
const MASTER_LINES: [&str; 14] = [
    "master_log_file",
    "master_log_pos",
    "master_host",
    "master_user",
    "master_password",
    "master_port",
    "master_connect_retry",
    "master_ssl",
    "master_ssl_ca",
    "master_ssl_capath",
    "master_ssl_cert",
    "master_ssl_cipher",
    "master_ssl_key",
    "master_ssl_verify_server_cert",
];
/// Those of them that are numbers.
const MASTER_NUMBERS: [&str; 5] = [
    "master_log_pos",
    "master_port",
    "master_connect_retry",
    "master_ssl",
    "master_ssl_verify_server_cert",
];

/// Functions of `mysql.proto`.
pub(crate) fn table(lua: &Lua) -> Result<Table, Error> {
    let table = lua.create_table()?;
    let set = |name: &str, function| table.set(name, function);
    set("from_ok_packet", reads(lua, from_ok)?)?;
    set("to_ok_packet", writes(lua, to_ok)?)?;
    set("from_err_packet", reads(lua, from_err)?)?;
    set("to_err_packet", writes(lua, to_err)?)?;
    set("from_eof_packet", reads(lua, from_eof)?)?;
    set("to_eof_packet", writes(lua, to_eof)?)?;
    set("from_challenge_packet", reads(lua, from_challenge)?)?;
    set("to_challenge_packet", writes(lua, to_challenge)?)?;
    set("from_response_packet", reads(lua, from_login)?)?;
    set("to_response_packet", writes(lua, to_login)?)?;
    set("from_masterinfo_string", reads(lua, from_masterinfo)?)?;
    set("to_masterinfo_string", writes(lua, to_masterinfo)?)?;
    set("from_stmt_prepare_packet", reads(lua, from_prepare)?)?;
    set("from_stmt_prepare_ok_packet", reads(lua, from_prepare_ok)?)?;
    set("from_stmt_execute_packet", reads(lua, from_execute)?)?;
    set("from_stmt_close_packet", reads(lua, from_close)?)?;
    let id = lua.create_function(|_, payload: LuaString| {
        match Command::read(&payload.as_bytes(), CAPS).map_err(raise)? {
            Command::Execute(execute) => Ok(execute.id),
            _ => Err(Error::runtime("not a COM_STMT_EXECUTE packet")),
        }
    })?;
    set("stmt_id_from_stmt_execute_packet", id)?;
    Ok(table)
}

/// Functions of `mysql.password`.
pub(crate) fn passwords(lua: &Lua) -> Result<Table, Error> {
    let table = lua.create_table()?;
    let hash = lua.create_function(|lua, clear: LuaString| {
        lua.create_string(auth::native_stage1(&clear.as_bytes()))
    })?;
    table.set("hash", hash)?;
    let scramble = lua.create_function(|lua, (challenge, hash): (LuaString, LuaString)| {
        let (challenge, hash) = (twenty(&challenge, "challenge")?, twenty(&hash, "hash")?);
        lua.create_string(auth::native_from_stage1(&hash, &challenge))
    })?;
    table.set("scramble", scramble)?;
    type Three = (LuaString, LuaString, LuaString);
    let unscramble = lua.create_function(|lua, (challenge, response, double): Three| {
        let (challenge, double) = (twenty(&challenge, "challenge")?, twenty(&double, "hash")?);
        let response = twenty(&response, "response")?;
        lua.create_string(auth::native_unscramble(&double, &challenge, &response))
    })?;
    table.set("unscramble", unscramble)?;
    let check = lua.create_function(|_, (challenge, response, double): Three| {
        let (challenge, double) = (twenty(&challenge, "challenge")?, twenty(&double, "hash")?);
        Ok(auth::native_verify(&double, &challenge, &response.as_bytes()).is_some())
    })?;
    table.set("check", check)?;
    Ok(table)
}

fn twenty(bytes: &LuaString, what: &str) -> Result<[u8; 20], Error> {
    let bytes = bytes.as_bytes();
    (*bytes).try_into().map_err(|_| {
        Error::runtime(format!(
            "the {what} must have 20 bytes, it has {}",
            bytes.len()
        ))
    })
}

fn raise(malformed: Malformed) -> Error {
    Error::runtime(malformed.to_string())
}

/// Fills a table from a payload.
type Read = fn(&Table, &[u8], Option<f64>) -> Result<(), Error>;
/// Appends a payload that is made of a table.
type Write = fn(&Table, &mut Vec<u8>) -> Result<(), Error>;

/// A function from a payload, with a number of which only some have a use, to a table.
fn reads(lua: &Lua, read: Read) -> Result<mlua::Function, Error> {
    lua.create_function(move |lua, (payload, number): (LuaString, Option<f64>)| {
        let table = lua.create_table()?;
        read(&table, &payload.as_bytes(), number)?;
        Ok(table)
    })
}

/// A function from a table to a payload.
fn writes(lua: &Lua, write: Write) -> Result<mlua::Function, Error> {
    lua.create_function(move |lua, table: Table| {
        let mut out = Vec::new();
        write(&table, &mut out)?;
        lua.create_string(out)
    })
}

/// A number of a table, or this one.
fn number(table: &Table, name: &str, or: f64) -> Result<f64, Error> {
    Ok(table.raw_get::<Option<f64>>(name)?.unwrap_or(or))
}

/// Bytes of a table, or none.
fn bytes(table: &Table, name: &str) -> Result<Vec<u8>, Error> {
    let text = table.raw_get::<Option<LuaString>>(name)?;
    Ok(text
        .map(|text| text.as_bytes().to_vec())
        .unwrap_or_default())
}

fn text(table: &Table, name: &str) -> Result<String, Error> {
    Ok(String::from_utf8_lossy(&bytes(table, name)?).into_owned())
}

/// Puts a text there, unless it is empty.
fn put(table: &Table, name: &str, value: &[u8]) -> Result<(), Error> {
    match value.is_empty() {
        true => Ok(()),
        false => table.set(name, mlua::BString::from(value)),
    }
}

fn from_ok(table: &Table, payload: &[u8], _: Option<f64>) -> Result<(), Error> {
    let ok = ok::Ok::read(payload, CAPS).map_err(raise)?;
    table.set("server_status", ok.status)?;
    table.set("insert_id", ok.insert_id as f64)?;
    table.set("warnings", ok.warnings)?;
    table.set("affected_rows", ok.affected as f64)
}

fn to_ok(table: &Table, out: &mut Vec<u8>) -> Result<(), Error> {
    let ok = ok::Ok {
        affected: number(table, "affected_rows", 0.0)? as u64,
        insert_id: number(table, "insert_id", 0.0)? as u64,
        status: number(table, "server_status", 0.0)? as u16,
        warnings: number(table, "warnings", 0.0)? as u16,
        ..ok::Ok::default()
    };
    ok.write(out, CAPS);
    Ok(())
}

fn from_err(table: &Table, payload: &[u8], _: Option<f64>) -> Result<(), Error> {
    let err = ok::Err::read(payload).map_err(raise)?;
    put(table, "errmsg", err.message)?;
    put(table, "sqlstate", &err.state)?;
    table.set("errcode", err.code)
}

fn to_err(table: &Table, out: &mut Vec<u8>) -> Result<(), Error> {
    let message = bytes(table, "errmsg")?;
    let mut state = *b"07000";
    if let Ok(said) = bytes(table, "sqlstate")?.try_into() {
        state = said;
    }
    let err = ok::Err {
        code: number(table, "errcode", 0.0)? as u16,
        state,
        message: &message,
    };
    err.write(out);
    Ok(())
}

fn from_eof(table: &Table, payload: &[u8], _: Option<f64>) -> Result<(), Error> {
    let (warnings, status) = ok::read_eof(payload).map_err(raise)?;
    table.set("server_status", status)?;
    table.set("warnings", warnings)
}

fn to_eof(table: &Table, out: &mut Vec<u8>) -> Result<(), Error> {
    let warnings = number(table, "warnings", 0.0)? as u16;
    ok::write_eof(out, warnings, number(table, "server_status", 0.0)? as u16);
    Ok(())
}

fn from_challenge(table: &Table, payload: &[u8], _: Option<f64>) -> Result<(), Error> {
    let greeting = Greeting::read(payload).map_err(raise)?;
    table.set("protocol_version", 10)?;
    table.set("server_version", version(&greeting.server_version))?;
    table.set("thread_id", greeting.thread_id)?;
    table.set("capabilities", (greeting.caps & 0xFFFF_FFFF) as f64)?;
    table.set("charset", greeting.charset)?;
    table.set("server_status", greeting.status)?;
    put(table, "challenge", &greeting.scramble)?;
    put(table, "auth_plugin_name", greeting.auth_plugin.as_bytes())
}

fn to_challenge(table: &Table, out: &mut Vec<u8>) -> Result<(), Error> {
    let said = number(table, "server_version", VERSION.into())? as u32;
    let challenge = bytes(table, "challenge")?;
    let greeting = Greeting {
        server_version: format!("{}.{}.{:02}", said / 10_000, said / 100 % 100, said % 100),
        thread_id: number(table, "thread_id", 0.0)? as u32,
        scramble: challenge.try_into().unwrap_or(*CHALLENGE),
        caps: number(table, "capabilities", LOGIN_CAPS as f64)? as Caps | caps::PROTOCOL_41,
        charset: number(table, "charset", 0.0)? as u8,
        status: number(table, "server_status", 0.0)? as u16,
        auth_plugin: text(table, "auth_plugin_name")?,
    };
    greeting.write(out);
    Ok(())
}

/// Number such as 50114 for 5.1.14, or 101106 for 5.5.5-10.11.6-MariaDB: MariaDB's servers hide their version from replicas
/// of old behind another one.
#[must_use]
pub fn version(text: &str) -> u32 {
    let hidden = text.strip_prefix("5.5.5-");
    let hidden = hidden.filter(|rest| rest.starts_with(|first: char| first.is_ascii_digit()));
    let mut parts = hidden
        .unwrap_or(text)
        .split(|c: char| !c.is_ascii_digit())
        .map(|part| part.parse::<u32>().unwrap_or(0).min(99));
    let mut next = || parts.next().unwrap_or(0);
    next() * 10_000 + next() * 100 + next()
}

/// A login, as it reads for a server with these capabilities.
fn from_login(table: &Table, payload: &[u8], server: Option<f64>) -> Result<(), Error> {
    let Some(server) = server else {
        return Err(Error::runtime("the server's capabilities are missing"));
    };
    let known = server as Caps | !AGREED;
    let mut agreed = payload.to_vec();
    for (byte, known) in agreed.iter_mut().take(4).zip(known.to_le_bytes()) {
        *byte &= known;
    }
    let login = Login::read(&agreed).map_err(raise)?;
    let said = payload
        .first_chunk()
        .map_or(0, |caps| u32::from_le_bytes(*caps));
    table.set("server_capabilities", server)?;
    table.set("capabilities", said)?;
    table.set("max_packet_size", login.max_packet)?;
    table.set("charset", login.charset)?;
    put(table, "username", login.user.as_bytes())?;
    put(table, "response", &login.auth_response)?;
    put(
        table,
        "auth_plugin_name",
        login.auth_plugin.unwrap_or_default().as_bytes(),
    )?;
    put(
        table,
        "database",
        login.database.unwrap_or_default().as_bytes(),
    )
}

fn to_login(table: &Table, out: &mut Vec<u8>) -> Result<(), Error> {
    let (database, auth_plugin) = (text(table, "database")?, text(table, "auth_plugin_name")?);
    let server = table.raw_get::<Option<f64>>("server_capabilities")?;
    let caps = match table.raw_get::<Option<f64>>("capabilities")? {
        Some(said) => {
            let server = server.map_or(!0, |server| server as Caps);
            said as Caps & 0xFFFF_FFFF & (server | !AGREED)
        }
        // Before 0.8.3 whatever the table has was written.
        None => {
            let has = |text: &str, cap| if text.is_empty() { 0 } else { cap };
            LOGIN_CAPS
                | has(&database, caps::CONNECT_WITH_DB)
                | has(&auth_plugin, caps::PLUGIN_AUTH)
        }
    };
    let login = Login {
        caps: caps & !(caps::CONNECT_ATTRS | caps::ZSTD),
        max_packet: number(table, "max_packet_size", 0.0)? as u32,
        charset: number(table, "charset", 0.0)? as u16,
        user: text(table, "username")?,
        auth_response: bytes(table, "response")?,
        database: Some(database),
        auth_plugin: Some(auth_plugin),
        ..Login::default()
    };
    login.write(out);
    Ok(())
}

fn from_masterinfo(table: &Table, payload: &[u8], _: Option<f64>) -> Result<(), Error> {
    let mut lines = payload.split(|byte| *byte == b'\n');
    let count = lines.next().and_then(whole);
    let Some(count) = count else {
        return Err(Error::runtime(
            "a master.info begins with how many lines it has",
        ));
    };
    table.set("master_lines", count)?;
    for name in MASTER_LINES {
        let Some(line) = lines.next() else { break };
        match MASTER_NUMBERS.contains(&name) {
            true => table.set(name, whole(line).unwrap_or(0.0))?,
            false => put(table, name, line)?,
        }
    }
    Ok(())
}

fn to_masterinfo(table: &Table, out: &mut Vec<u8>) -> Result<(), Error> {
    let lines = number(table, "master_lines", 15.0)?;
    out.extend_from_slice(format!("{lines}\n").as_bytes());
    let most = if lines < 7.0 { 7 } else { lines as usize - 1 };
    for name in MASTER_LINES.into_iter().take(most) {
        match MASTER_NUMBERS.contains(&name) {
            true => out.extend_from_slice(number(table, name, 0.0)?.to_string().as_bytes()),
            false => out.extend_from_slice(&bytes(table, name)?),
        }
        out.push(b'\n');
    }
    Ok(())
}

fn whole(line: &[u8]) -> Option<f64> {
    let number = std::str::from_utf8(line).ok()?.trim().parse::<u32>();
    number.ok().map(f64::from)
}

fn from_prepare(table: &Table, payload: &[u8], _: Option<f64>) -> Result<(), Error> {
    match payload.split_first() {
        Some((&PREPARE, sql)) => table.set("stmt_text", mlua::BString::from(sql)),
        _ => Err(Error::runtime("not a COM_STMT_PREPARE packet")),
    }
}

fn from_prepare_ok(table: &Table, payload: &[u8], _: Option<f64>) -> Result<(), Error> {
    let mut reader = Reader::new(payload);
    let mut read = || {
        let header = reader.u8()?;
        let (id, columns, params) = (reader.u32()?, reader.u16()?, reader.u16()?);
        reader.u8()?;
        Ok((header, id, columns, params, reader.u16()?))
    };
    let (header, id, columns, params, warnings) = read().map_err(raise)?;
    if header != ok::OK_HEADER {
        return Err(Error::runtime("not the OK of a COM_STMT_PREPARE"));
    }
    table.set("stmt_id", id)?;
    table.set("num_columns", columns)?;
    table.set("num_params", params)?;
    table.set("warnings", warnings)
}

fn from_execute(table: &Table, payload: &[u8], params: Option<f64>) -> Result<(), Error> {
    let Ok(Command::Execute(execute)) = Command::read(payload, CAPS) else {
        return Err(Error::runtime("not a COM_STMT_EXECUTE packet"));
    };
    let params = params.unwrap_or(0.0) as usize;
    let parts = Parts::read(&execute, params, CAPS).map_err(raise)?;
    table.set("stmt_id", parts.id)?;
    table.set("flags", parts.flags)?;
    let iterations = payload.get(6..10).and_then(|bytes| bytes.try_into().ok());
    table.set("iteration_count", iterations.map_or(1, u32::from_le_bytes))?;
    table.set("new_params_bound", parts.bound)?;
    if !parts.bound {
        return Ok(());
    }
    let values = parts.decode(params, None, |_| None).map_err(raise)?;
    let list = values.into_iter().zip(parts.types.chunks_exact(2));
    let all = list.map(|(value, kind)| (f64::from(kind[0]), shown(&value)));
    table.set("params", Params(all.collect()))
}

/// Parameters of an execution: each with its type, and its value unless it is NULL.
struct Params(Vec<(f64, Shown)>);

impl mlua::IntoLua for Params {
    fn into_lua(self, lua: &Lua) -> Result<Value, Error> {
        let list = lua.create_table_with_capacity(self.0.len(), 0)?;
        for (at, (kind, value)) in self.0.into_iter().enumerate() {
            let one = lua.create_table()?;
            one.set("type", kind)?;
            match value {
                Shown::Nothing => {}
                Shown::Number(number) => one.set("value", number)?,
                Shown::Text(text) => one.set("value", lua.create_string(text)?)?,
            }
            list.raw_set(at + 1, one)?;
        }
        Ok(Value::Table(list))
    }
}

/// A value as scripts see it.
enum Shown {
    Nothing,
    Number(f64),
    Text(Vec<u8>),
}

fn shown(value: &execute::Value<'_>) -> Shown {
    use execute::Value as V;
    match value {
        V::Null => Shown::Nothing,
        V::Int(number) => Shown::Number(*number as f64),
        V::Uint(number) => Shown::Number(*number as f64),
        V::Float(number) => Shown::Number((*number).into()),
        V::Double(number) => Shown::Number(*number),
        V::Bytes(bytes) => Shown::Text(bytes.to_vec()),
        V::Date(date) => Shown::Text(day(date).into_bytes()),
        V::DateTime(date) => {
            let clock = clock((date.hour, date.minute, date.second), date.micros);
            Shown::Text(format!("{} {clock}", day(date)).into_bytes())
        }
        V::Time(time) => Shown::Text(length(time).into_bytes()),
    }
}

fn day(date: &DateTime) -> String {
    format!("{:04}-{:02}-{:02}", date.year, date.month, date.day)
}

fn clock((hour, minute, second): (u8, u8, u8), micros: u32) -> String {
    let fraction = match micros {
        0 => String::new(),
        micros => format!(".{micros:06}"),
    };
    format!("{hour:02}:{minute:02}:{second:02}{fraction}")
}

fn length(time: &Time) -> String {
    let sign = if time.negative { "-" } else { "" };
    let clock = clock((time.hour, time.minute, time.second), time.micros);
    format!("{sign}{} {clock}", time.days)
}

fn from_close(table: &Table, payload: &[u8], _: Option<f64>) -> Result<(), Error> {
    match Command::read(payload, CAPS) {
        Ok(Command::Close(id)) => table.set("stmt_id", id),
        _ => Err(Error::runtime("not a COM_STMT_CLOSE packet")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Any bytes at all are read or refused, and what was read is written.
    #[test]
    fn any_payload_is_read_or_refused() {
        let lua = Lua::new();
        let proto = table(&lua).unwrap();
        let names: Vec<String> = proto
            .pairs::<String, mlua::Function>()
            .map(|pair| pair.unwrap().0)
            .collect();
        let mut seed = 7_u64;
        let mut next = move || {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as u8
        };
        let begin: &[&[u8]] = &[
            b"",
            b"\0",
            b"\xff",
            b"\xfe",
            b"\x0a5.1\0",
            b"\x16",
            b"\x17\x01\0\0\0",
            b"\x19",
            b"15\nlog\n4\n",
        ];
        let (mut read, mut refused) = (0, 0);
        for turn in 0..20_000 {
            let mut payload = begin[turn % begin.len()].to_vec();
            (0..next() % 80).for_each(|_| payload.push(next()));
            for name in names.iter().filter(|name| name.starts_with("from_")) {
                let function: mlua::Function = proto.get(&**name).unwrap();
                let payload = lua.create_string(&payload).unwrap();
                match function.call::<Table>((payload, f64::from(next() % 8))) {
                    Ok(made) => {
                        read += 1;
                        let back = name.replacen("from_", "to_", 1);
                        if let Ok(function) = proto.get::<mlua::Function>(back) {
                            let _refused_or_written = function.call::<LuaString>(made);
                        }
                    }
                    Err(_) => refused += 1,
                }
            }
        }
        assert!(
            read > 1000 && refused > 1000,
            "{read} read, {refused} refused"
        );
    }

    #[test]
    fn a_version_is_a_number() {
        assert_eq!(version("5.1.14-log"), 50114);
        assert_eq!(version("10.11.6-MariaDB"), 101_106);
        assert_eq!(version(""), 0);
    }
}
