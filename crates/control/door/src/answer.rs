//! What stands behind a door: somebody who knows the passwords, and one who answers for each
//! client.

use crate::Out;
use net::tls::Acceptor;
use rt::Address;
use std::future::Future;
use std::io;
use std::rc::Rc;
use wire::caps::Caps;
use wire::errors::Code;
use wire::execute::Value;
use wire::resultset::Column;

/// Knows who may come in, and makes an [`Answer`] for each who does.
pub trait Host: 'static {
    /// Answers one client.
    type Session: Answer;

    /// As the greeting says it.
    fn server_version(&self) -> String;

    /// What stands before the words of a refused login.
    fn prefix(&self) -> &'static str {
        ""
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

/// What a login needs.
#[derive(Clone, PartialEq, Eq)]
pub enum Entry {
    /// This password; an empty one asks for no proof.
    Password(String),
    /// There is no such user. The client cannot tell this from a wrong password.
    Nobody,
    /// Not from there, or not now.
    Refuse(Refused),
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
    /// What client and door agreed on.
    pub caps: Caps,
}

/// Answers one client.
pub trait Answer: 'static {
    /// Flags of the next OK: see [`wire::status`].
    fn status(&self) -> u16;

    /// One statement in text. Exactly one answer goes to `out`; an error says that the client is
    /// gone.
    fn query(&mut self, sql: &str, out: &mut Out<'_>) -> impl Future<Output = io::Result<()>>;

    /// How many parameters a statement has, and which columns it will answer as far as that is
    /// known.
    fn prepare(&mut self, sql: &str) -> impl Future<Output = Result<Prepared, Refused>>;

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
        sql: &str,
        values: &[Value<'_>],
        out: &mut Out<'_>,
    ) -> impl Future<Output = io::Result<()>>;

    /// COM_INIT_DB.
    fn use_schema(&mut self, schema: &str) -> Result<(), Refused>;

    /// The columns of a table, for COM_FIELD_LIST.
    fn fields(&mut self, table: &str) -> Result<Vec<Column>, Refused>;

    /// COM_RESET_CONNECTION: the session as after login.
    fn reset(&mut self);

    /// The line of COM_STATISTICS.
    fn statistics(&self) -> String;
}

/// What is known of a statement before it runs.
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
