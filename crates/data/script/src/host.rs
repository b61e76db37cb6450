//! A session as its scripts see it.

use crate::ask::{Ask, Reply};
use crate::meaning::Reading;
use crate::outcome::Outcome;
use crate::shared::{Keep, Kept};
use bridge::Letter;
use config::Place;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use wire::caps::Caps;

/// State of a server, as scripts see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Standing {
    /// Nobody has a connection to it.
    #[default]
    Unknown,
    /// The proxy is connected to it.
    Up,
    /// New work does not go there, or a script has taken it out.
    Down,
}

/// A server, as `proxy.backends` shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Server {
    /// Hostgroup.
    pub hostgroup: u32,
    /// Host, or path of a socket.
    pub host: String,
    /// Port; 0 for a socket.
    pub port: u16,
    /// Whether the server is of a hostgroup for reads.
    pub is_reader: bool,
    /// State.
    pub standing: Standing,
    /// Sessions that have chosen it, or are on it.
    pub clients: u32,
    /// Connections that are at hand for the session's user.
    pub idle_own: u32,
    /// Connections that are idle for anybody.
    pub idle_any: u32,
}

impl Server {
    /// Key of a note about it, among the values that scripts share.
    #[must_use]
    pub fn note(&self, field: &str) -> Vec<u8> {
        format!("\0{field} {}:{}", self.host, self.port).into_bytes()
    }
}

/// A script's choice of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Chosen {
    /// Nothing was said.
    #[default]
    Unsaid,
    /// No server, until it names one.
    Nowhere,
    /// This one.
    At(Server),
}

/// Wishes of a script about its session, beside those for a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wishes {
    /// The connection is closed behind the answer.
    pub closes: bool,
    /// Server of what runs next.
    pub chosen: Chosen,
}

/// The session that a hook runs for. What is asked here is asked while a hook runs.
pub trait Host {
    /// Microseconds of a clock that goes forward.
    fn now_us(&self) -> u64;
    /// Microseconds since 1970.
    fn wall_us(&self) -> u64;
    /// A line for the log, of `print` or of a mistake.
    fn log(&self, line: &str);
    /// Where a file of this name stands, or words for the script's author: it can have none.
    fn place(&self, file: &str) -> Result<Place, String>;
    /// Text that is put at the end of a file of the script's.
    fn append(&self, file: &Place, text: &[u8]);
    /// A file of the script's is made, or made empty.
    fn empty(&self, file: &Place);
    /// A variable of the environment in which the process was started.
    fn environment(&self, name: &str) -> Option<String>;
    /// A mail, if the operator lets scripts send one to that server.
    ///
    /// # Errors
    /// Words for the script's author: it is not sent.
    fn mail(&self, mail: Letter) -> Result<(), String>;
    /// A call of a hook is over.
    fn ran(&self, call: Call<'_>);
    /// Does what a hook waits for.
    fn ask<'a>(&'a self, ask: Ask) -> Pin<Box<dyn Future<Output = Reply> + 'a>>;
    /// Gives a connection of the script's back, if it is one of this session's.
    fn close(&self, connection: u32);
    /// Bytes that stand in for what the client proved its password with, or none without one.
    fn stand_in(&self) -> Vec<u8>;
    /// The plugin that the client has named in its login, where a script has seen that.
    fn auth_plugin(&self) -> Option<String>;
    /// Servers, those that are written to first.
    fn servers(&self) -> Vec<Server>;
    /// Place of the server that the session is on among those, from 1; 0 for none.
    fn current(&self) -> usize;
    /// A note that scripts have made of a server, by the name of the field.
    fn noted(&self, server: &Server, field: &str) -> Option<Kept>;
    /// Makes such a note, or takes it away.
    ///
    /// # Errors
    /// Words for the script's author: there is no room.
    fn note(&self, server: &Server, field: &str, value: Option<Kept>) -> Result<(), String>;
    /// The client's user.
    fn user(&self) -> String;
    /// The current schema, or empty.
    fn schema(&self) -> String;
    /// The session's number.
    fn thread(&self) -> u32;
    /// Version of the servers, such as 50114.
    fn version(&self) -> u32;
    /// Address of the client, and the one that it came to: host or path, and port, 0 for none.
    fn ends(&self) -> [(String, u16); 2];
    /// Bytes that an answer of the script may have.
    fn result_len_max(&self) -> usize;
    /// How the session's texts are read.
    fn reading(&self) -> Reading;
    /// Returns the capabilities that the client agreed on.
    fn caps(&self) -> Caps;
    /// Character set of the connections of [`Ask::Query`]; none where a backslash may be a part of a
    /// character.
    fn charset(&self) -> Option<&'static str>;
    /// A setting of the script's row.
    fn setting(&self, name: &str) -> Option<Kept>;
    /// Does this to a value that the script's sessions share. A new one lasts for so many
    /// microseconds, or for ever.
    ///
    /// # Errors
    /// Words for the script's author.
    fn shared(&self, key: &[u8], what: Keep, ttl_us: Option<u64>) -> Result<Option<Kept>, String>;
}

/// A call of a hook, for the statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call<'a> {
    /// Its name; `main` is the main chunk.
    pub hook: &'static str,
    /// Microseconds that it ran.
    pub us: u64,
    /// Times that it waited.
    pub waits: u64,
    /// HTTP calls that it has made, and those of them that had no answer.
    pub http: (u64, u64),
    /// Why it failed.
    pub error: Option<&'a str>,
}

/// A script that has failed: where, and why, for the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed(pub String);

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Bytes of an error's words that are kept: a script may raise any text.
const WORDS_LEN_MAX: usize = 2000;

impl Failed {
    pub(crate) fn is_for_memory(&self) -> bool {
        self.0.contains("not enough memory")
    }

    /// Adds the error that the hook looked at, which may have surprised it: there are no rows then.
    pub(crate) fn at(self, outcome: Option<&Outcome>) -> Self {
        let first = outcome.and_then(Outcome::first).unwrap_or_default();
        match wire::ok::Err::read(&first) {
            Ok(error) => Self(format!(
                "{}; the server's answer was error {}: {}",
                self.0,
                error.code,
                String::from_utf8_lossy(error.message)
            )),
            Err(_no_error) => self,
        }
    }

    pub(crate) fn of(hook: &str, error: &mlua::Error) -> Self {
        let words = match error {
            mlua::Error::CallbackError { cause, .. } => cause.to_string(),
            error => error.to_string(),
        };
        let first = words.lines().next().unwrap_or_default();
        let first = first
            .get(..first.floor_char_boundary(WORDS_LEN_MAX))
            .unwrap_or(first);
        let first = ["runtime error: ", "syntax error: ", "memory error: "]
            .iter()
            .find_map(|kind| first.strip_prefix(kind))
            .unwrap_or(first);
        Self(format!("({hook}) {first}"))
    }
}
