//! What a hook waits for, and what it is told: the only things for which a script stops in its
//! middle.

use crate::outcome::Outcome;
use crate::packed::Packed;
use crate::url::Url;
use config::Place;
use mlua::{Error, FromLua, IntoLuaMulti, Lua, LuaString, MultiValue, Table, Value};
use wire::rows::Shape;
use wire::types::Type;

/// A question of a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ask {
    /// Wait for so many microseconds.
    Sleep(u64),
    /// Connection to be opened.
    Connect(Connect),
    /// Statement to be executed on one of the hook's connections.
    Execute {
        /// That connection.
        connection: u32,
        /// Statement.
        sql: Vec<u8>,
    },
    /// Call by HTTP.
    Http(HttpWish),
    /// A file to be read, removed or renamed.
    File(Place, FileAsk),
    /// Statement to be executed in this hostgroup, or where those of the session's user go, on a
    /// connection that nobody has had before and that is nobody's afterwards.
    Query(Vec<u8>, Option<u32>),
}

/// A deed with a file that a hook waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileAsk {
    /// Reading of all its bytes.
    Read,
    /// Removal.
    Remove,
    /// Change of its name.
    Rename(Place),
}

/// A call by HTTP that a hook wants.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HttpWish {
    /// Over TLS.
    pub tls: bool,
    /// Host in small letters, without brackets.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Method: POST, else GET.
    pub is_post: bool,
    /// Path and query.
    pub target: String,
    /// Headers.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: Vec<u8>,
    /// Milliseconds that it may take.
    pub timeout_ms: u32,
}

/// A connection that a hook wants.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Connect {
    /// Schema, or empty.
    pub schema: String,
    /// User; none for the session's.
    pub user: Option<String>,
    /// Password, or what stands in for the session's.
    pub password: Vec<u8>,
    /// Host; none for the session's first server.
    pub host: Option<String>,
    /// Port, if one was said.
    pub port: Option<u16>,
    /// Hostgroup; none for that of the host, or of the session's user.
    pub hostgroup: Option<u32>,
}

/// An answer to a hook.
#[derive(Debug)]
pub enum Reply {
    /// Time has passed.
    Slept,
    /// Number of its connection.
    Connected(u32),
    /// Why it does not get what it wanted.
    Refused(String),
    /// So many rows were changed, and the first id that was made.
    Changed(u64, u64),
    /// A result.
    Rows(Outcome),
    /// Bytes of a file; none where another deed is done.
    File(Vec<u8>),
    /// An answer by HTTP: status, body, and headers by their names in small letters.
    Http(u16, Vec<u8>, Vec<(String, String)>),
}

impl Ask {
    /// Reads what a hook has yielded. `place` says where a file of a name stands.
    pub(crate) fn of(
        lua: &Lua,
        mut said: MultiValue,
        place: impl Fn(&str) -> Result<Place, String>,
    ) -> Result<Self, Error> {
        let kind = String::from_lua(said.pop_front().unwrap_or(Value::Nil), lua)?;
        let mut next = || said.pop_front().unwrap_or(Value::Nil);
        Ok(match &*kind {
            "sleep" => Self::Sleep(f64::from_lua(next(), lua)? as u64),
            "connect" => Self::Connect(Connect {
                schema: text(lua, next())?.unwrap_or_default(),
                user: text(lua, next())?,
                password: bytes(lua, next())?.unwrap_or_default(),
                host: text(lua, next())?,
                port: Option::<u16>::from_lua(next(), lua)?,
                hostgroup: Option::<u32>::from_lua(next(), lua)?,
            }),
            "execute" => Self::Execute {
                connection: u32::from_lua(next(), lua)?,
                sql: bytes(lua, next())?.unwrap_or_default(),
            },
            "query" => Self::Query(
                bytes(lua, next())?.unwrap_or_default(),
                Option::from_lua(next(), lua)?,
            ),
            "http" => {
                let is_post = bool::from_lua(next(), lua)?;
                let url = text(lua, next())?.unwrap_or_default();
                // It was looked at before the hook has yielded.
                let url = Url::parse(&url).map_err(Error::runtime)?;
                Self::Http(HttpWish {
                    tls: url.tls,
                    host: url.host,
                    port: url.port,
                    target: url.target,
                    is_post,
                    body: bytes(lua, next())?.unwrap_or_default(),
                    timeout_ms: u32::from_lua(next(), lua)?,
                    headers: Vec::from_lua(next(), lua)?
                        .into_iter()
                        .map(|Header(name, value)| (name, value))
                        .collect(),
                })
            }
            "file" => {
                let kind = text(lua, next())?.unwrap_or_default();
                let mut place = || {
                    let name = text(lua, next())?.unwrap_or_default();
                    place(&name).map_err(Error::runtime)
                };
                let file = place()?;
                Self::File(
                    file,
                    match &*kind {
                        "remove" => FileAsk::Remove,
                        "rename" => FileAsk::Rename(place()?),
                        _ => FileAsk::Read,
                    },
                )
            }
            other => return Err(Error::runtime(format!("nobody waits for '{other}'"))),
        })
    }
}

/// A name and a value, as a table of two.
struct Header(String, String);

impl FromLua for Header {
    fn from_lua(value: Value, lua: &Lua) -> Result<Self, Error> {
        let table = Table::from_lua(value, lua)?;
        Ok(Self(table.raw_get(1)?, table.raw_get(2)?))
    }
}

fn bytes(lua: &Lua, value: Value) -> Result<Option<Vec<u8>>, Error> {
    let text = Option::<LuaString>::from_lua(value, lua)?;
    Ok(text.map(|text| text.as_bytes().to_vec()))
}

fn text(lua: &Lua, value: Value) -> Result<Option<String>, Error> {
    let bytes = bytes(lua, value)?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

impl Reply {
    /// Values that the hook goes on with: whether it got it, and what.
    pub(crate) fn told(&self, lua: &Lua) -> Result<MultiValue, Error> {
        match self {
            Self::Slept => true.into_lua_multi(lua),
            Self::Connected(id) => (true, *id).into_lua_multi(lua),
            Self::Refused(words) => (false, &**words).into_lua_multi(lua),
            Self::File(bytes) => (true, lua.create_string(bytes)?).into_lua_multi(lua),
            Self::Changed(affected, id) => (true, *affected as f64, *id as f64).into_lua_multi(lua),
            Self::Rows(outcome) => (true, rows(outcome).told(lua)?).into_lua_multi(lua),
            Self::Http(status, body, headers) => {
                let body = lua.create_string(body)?;
                let table = lua.create_table()?;
                for (name, value) in headers {
                    let value = match table.raw_get::<Option<String>>(name.as_str())? {
                        Some(before) => format!("{before}, {value}"),
                        None => value.clone(),
                    };
                    table.raw_set(name.as_str(), value)?;
                }
                (true, *status, body, table).into_lua_multi(lua)
            }
        }
    }
}

/// A result, packed: names and types of its columns, how their values are read, and rows with nothing for NULL.
fn rows(outcome: &Outcome) -> Packed {
    let read = outcome.columns();
    let width = read.shapes.len();
    let mut packed = Packed::default();
    packed.fields(4);
    packed.text(Some(b"names"));
    packed.list(width);
    for at in 0..width {
        packed.text(Some(outcome.names(at)[0]));
    }
    packed.text(Some(b"types"));
    packed.list(width);
    for (at, shape) in read.shapes.iter().enumerate() {
        let length = read.definitions.get(at).map_or(0, |one| length(one));
        let said = format!("{}({length})", type_name(shape));
        packed.text(Some(said.as_bytes()));
    }
    packed.text(Some(b"kinds"));
    packed.list(width);
    for shape in &read.shapes {
        packed.text(Some(crate::outcome::kind(shape.kind).as_bytes()));
    }
    packed.text(Some(b"rows"));
    packed.rows(outcome, 0, None, true);
    packed
}

/// Length of a column, as its definition has it: twelve bytes end one, and the length is behind the
/// collation.
fn length(definition: &[u8]) -> u32 {
    let at = definition.len().checked_sub(10);
    let four = at.and_then(|at| definition.get(at..at + 4)?.try_into().ok());
    four.map_or(0, u32::from_le_bytes)
}

/// Type of a column in LuaSQL's words.
fn type_name(shape: &Shape) -> &'static str {
    match shape.kind {
        Type::VAR_STRING | Type::STRING => "string",
        Type::TINY
        | Type::SHORT
        | Type::LONG
        | Type::INT24
        | Type::LONGLONG
        | Type::FLOAT
        | Type::DOUBLE
        | Type::DECIMAL
        | Type::YEAR => "number",
        Type(249..=252) => "binary",
        Type::DATE | Type(14) => "date",
        Type::DATETIME => "datetime",
        Type::TIME => "time",
        Type::TIMESTAMP => "timestamp",
        Type(247 | 248) => "set",
        Type::NULL => "null",
        _ => "undefined",
    }
}
