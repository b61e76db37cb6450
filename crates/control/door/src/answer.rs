//! What stands behind a door: somebody who knows the passwords, and one who answers for each
//! client.

use crate::{Out, split};
use config::{Password, Snapshot};
use net::Credential;
use net::tls::Acceptor;
use rt::Address;
use std::future::Future;
use std::io;
use std::rc::Rc;
use wire::caps::Caps;
use wire::errors::{self, Code};
use wire::execute::Value;
use wire::resultset::Column;

/// Knows who may come in, and makes an [`Answer`] for each who does.
pub trait Host: 'static {
    /// Answers one client.
    type Session: Answer;

    /// As the greeting says it.
    fn server_version(&self) -> String;

    /// Returns what stands before the words of a refused login.
    fn prefix(&self) -> &'static str {
        ""
    }

    /// Whether clients may be asked for files ([`Out::file`]).
    fn takes_files(&self) -> bool {
        false
    }

    /// The certificate for clients that want TLS; without one they are not offered it.
    fn acceptor(&self) -> Option<Acceptor> {
        None
    }

    /// Whether `user` may come in from `peer`, and with which password.
    fn entry(&self, user: &str, peer: &Address) -> Entry;

    /// Somebody has proven who he is.
    fn session(self: &Rc<Self>, who: Who) -> Result<Self::Session, Refused>;
}

/// A server behind a door, while it serves.
pub trait Behind: Send + Sync {
    /// This is in force from now on.
    fn load(&self, snapshot: &Snapshot);

    /// Clients that come from now on see this certificate.
    fn offer(&self, acceptor: &Acceptor);
}

/// Conditions of a login.
#[derive(Debug, Clone)]
pub enum Entry {
    /// Any of these proves it.
    User(Vec<Credential>),
    /// There is no such user. The client cannot tell this from a wrong password.
    Nobody,
    /// Not from there, or not now.
    Refuse(Refused),
}

impl Entry {
    /// A user of any of these passwords.
    pub fn of<'p>(passwords: impl Iterator<Item = &'p Password>) -> Self {
        let credential = |password: &Password| match password {
            Password::Empty => Credential::Empty,
            Password::Clear(password) => Credential::Clear(password.to_string()),
            Password::Native(stage2) => Credential::Native(*stage2),
            other => Credential::CachingSha2(other.text()),
        };
        Self::User(passwords.map(credential).collect())
    }

    /// A user of this password; an empty one asks for no proof.
    #[must_use]
    pub fn password(password: String) -> Self {
        Self::User(vec![match password.is_empty() {
            true => Credential::Empty,
            false => Credential::Clear(password),
        }])
    }
}

/// Who came in.
#[derive(Debug, Clone)]
pub struct Who {
    /// His number, as KILL would want it.
    pub id: u32,
    /// His name.
    pub user: String,
    /// The schema he asked for.
    pub schema: Option<String>,
    /// Where he comes from.
    pub peer: Address,
    /// Capabilities that client and door agreed on.
    pub caps: Caps,
}

/// Answers one client.
pub trait Answer: 'static {
    /// Flags of the next OK: see [`wire::status`].
    fn status(&self) -> u16;

    /// The statements of a text that may hold several.
    fn statements<'s>(&self, sql: &'s [u8]) -> Vec<&'s [u8]> {
        match str::from_utf8(sql) {
            Ok(text) => split::statements(text).map(str::as_bytes).collect(),
            Err(_) => vec![sql],
        }
    }

    /// One statement in text. Exactly one answer goes to `out`; an error says that the client is
    /// gone.
    fn query(&mut self, sql: &[u8], out: &mut Out<'_>) -> impl Future<Output = io::Result<()>>;

    /// How many parameters a statement has, and which columns it will answer as far as that is
    /// known.
    fn prepare(&mut self, sql: &[u8]) -> impl Future<Output = Result<Prepared, Refused>>;

    /// Bytes of one command of this client, at most; [`crate::Limits`] may allow less.
    fn command_bytes_max(&self) -> usize {
        usize::MAX
    }

    /// Bytes that are kept of this client's prepared statements and of parameters that come in
    /// pieces, at most; [`crate::Limits`] may allow less.
    fn kept_bytes_max(&self) -> usize {
        usize::MAX
    }

    /// One statement with the values of its parameters.
    fn execute(
        &mut self,
        sql: &[u8],
        values: &[Value<'_>],
        out: &mut Out<'_>,
    ) -> impl Future<Output = io::Result<()>>;

    /// COM_INIT_DB.
    fn use_schema(&mut self, schema: &str) -> Result<(), Refused>;

    /// The columns of a table, for COM_FIELD_LIST.
    fn fields(&mut self, table: &str) -> Result<Vec<Column>, Refused>;

    /// COM_RESET_CONNECTION: the session as after login.
    fn reset(&mut self);

    /// COM_PROCESS_KILL.
    ///
    /// # Errors
    /// There is no such client, or it is not his to end.
    fn kill(&mut self, _id: u32) -> Result<(), Refused> {
        let words = "This port does not know the command 'COM_PROCESS_KILL'";
        Err(Refused::new(errors::UNKNOWN_COMMAND, words))
    }

    /// Resolves when the session is to end while it waits for a command.
    fn ended(&mut self) -> impl Future<Output = ()> {
        std::future::pending()
    }

    /// COM_PING: an error says that there is nobody behind the door, and the client hears nothing.
    fn ping(&mut self) -> impl Future<Output = io::Result<()>> {
        std::future::ready(Ok(()))
    }

    /// The line of COM_STATISTICS.
    fn statistics(&self) -> String;
}

/// Facts of a statement that are known before it runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prepared {
    /// How many `?` it has.
    pub params: u16,
    /// Its columns; empty if it has none or they are not known yet.
    pub columns: Vec<Column>,
}

/// An error for the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Number.
    pub code: u16,
    /// SQLSTATE.
    pub state: [u8; 5],
    /// Words.
    pub message: String,
}

impl Refused {
    /// With a number that [`wire::errors`] names.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        let mut state = *b"HY000";
        state
            .iter_mut()
            .zip(code.state.bytes())
            .for_each(|(to, from)| *to = from);
        Self {
            code: code.number,
            state,
            message: message.into(),
        }
    }
}

/// A statement as text, for who reads no other.
///
/// # Errors
/// It is none.
pub fn text(sql: &[u8]) -> Result<&str, Refused> {
    let not_utf8 = |_| Refused::new(errors::PARSE, "The statement is not valid UTF-8");
    str::from_utf8(sql).map_err(not_utf8)
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "ERROR {} ({}): {}",
            self.code,
            String::from_utf8_lossy(&self.state),
            self.message
        )
    }
}

impl std::error::Error for Refused {}
