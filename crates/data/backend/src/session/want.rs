//! What a command wants of its connection.

use crate::session::prepared::{Bindings, Prepared};
use crate::session::state::{Sees, State};
use config::Snapshot;
use net::Secret;
use std::net::SocketAddr;
use wire::caps::{self, Caps};
use wire::connect_attributes::ConnectAttributes;

/// Connection that a session needs.
#[derive(Debug)]
pub struct Want<'a> {
    /// Where.
    pub hostgroup: u32,
    /// As whom.
    pub user: &'a str,
    /// With which password.
    pub secret: &'a Secret,
    /// Capabilities of the client.
    pub caps: Caps,
    /// Collation of its login.
    pub collation: u16,
    /// Its id, 0 for none. A connection that is opened for it tells the server this and the
    /// attributes.
    pub session: u32,
    /// Attributes that the client sent at login.
    pub attributes: &'a ConnectAttributes,
    /// Its address, if it has one.
    pub client: Option<SocketAddr>,
    /// State that the client has set.
    pub state: &'a State,
    /// Whether its user variables matter.
    pub user_variables: Sees,
    /// Whose statements a server shall remember, if the command asks for what it remembers: ids,
    /// warnings, counts of rows.
    pub remembered: Option<u64>,
    /// Session tracking that the client's command needs of the server.
    pub tracking: Tracking,
    /// The configuration that its command runs under.
    pub snapshot: &'a Snapshot,
    /// Do not take one from the pool.
    pub new_connection: bool,
    /// Data that a server must show to serve its command.
    pub must_see: Option<Shows<'a>>,
    /// The connection shall be the client's own in all that a login says.
    pub like: Option<Like<'a>>,
    /// Execution that is the client's command: a connection that has its statement as the client's
    /// last execution left it is preferred.
    pub executes: Option<Executes<'a>>,
    /// Priority among those who wait, where that is asked for.
    pub priority: u8,
    /// Nanoseconds that statements of its digest usually keep a connection, if that is known.
    pub cost_ns: Option<u64>,
    /// Whether it waits for a slot where as many statements are in flight as may be. Who keeps what
    /// others wait for does not.
    pub waits: bool,
    /// The server of the hostgroup that somebody has named: host and port.
    pub at: Option<(&'a str, u16)>,
}

impl<'a> Want<'a> {
    /// Returns a want that no statement of a session has, on hostgroup 0; the rest is named where
    /// it differs.
    #[must_use]
    pub const fn of_nobody(
        (user, secret): (&'a str, &'a Secret),
        snapshot: &'a Snapshot,
        state: &'a State,
        attributes: &'a ConnectAttributes,
    ) -> Self {
        Self {
            hostgroup: 0,
            user,
            secret,
            caps: 0,
            collation: 45,
            session: 0,
            attributes,
            client: None,
            state,
            user_variables: Sees::Nothing,
            remembered: None,
            tracking: Tracking::Any,
            snapshot,
            new_connection: true,
            must_see: None,
            like: None,
            executes: None,
            priority: config::PRIORITY_USUAL,
            cost_ns: None,
            waits: false,
            at: None,
        }
    }
}

/// An execution of a prepared statement, for the choice of a connection.
#[derive(Debug, Clone, Copy)]
pub struct Executes<'a> {
    /// The statement.
    pub statement: &'a Prepared,
    /// Kinds of parameters that the client has bound to the statement so far.
    pub bindings: &'a Bindings,
}

/// Data that a read on a server must see.
#[derive(Debug, Clone, Copy)]
pub enum Shows<'a> {
    /// All of these transactions.
    Gtids(&'a gtid::Set),
    /// Everything that was committed before a time.
    NotBefore {
        /// The time, in milliseconds since 1970.
        ms: u64,
        /// A writer that also reads shows it, too.
        or_writes: bool,
    },
}

/// Session tracking that a statement needs of its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tracking {
    /// Tracking does not matter.
    Any,
    /// Tracking of a statement that may run a program: the server shall tell.
    On,
    /// Tracking of a statement that calls a procedure or function of users: the server shall tell
    /// all that it can, of transactions, too.
    Calls,
    /// No tracking, for a statement that would see, or change, what we have asked for.
    Off,
}

/// Login of a client, as it was said, for a server to hear the same.
#[derive(Debug, Clone, Copy)]
pub struct Like<'a> {
    /// Capabilities that the client and we agreed on.
    pub caps: Caps,
    /// The schema to begin in.
    pub database: Option<&'a str>,
}

impl Like<'_> {
    pub(crate) fn caps(self) -> Caps {
        self.caps & !OWN
    }
}

/// Of a login, what is each connection's own: how it is encrypted and packed, and whether what
/// follows is there.
const OWN: Caps =
    caps::SSL | caps::COMPRESS | caps::ZSTD | caps::CONNECT_WITH_DB | caps::CONNECT_ATTRS;
