//! What checks have seen of servers.

use crate::names::Whereabouts;
use crate::node::{Aurora, Galera, Group};
use config::TopologyKind;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A server by its address, whichever hostgroups it is in.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerKey {
    /// Name, address, or path of a Unix socket.
    pub host: Arc<str>,
    /// Port; 0 for a path.
    pub port: u16,
}

impl ServerKey {
    /// Of a row.
    #[must_use]
    pub fn of(server: &config::Server) -> Self {
        Self {
            host: server.hostname.as_ref().into(),
            port: server.port,
        }
    }
}

impl fmt::Display for ServerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// Whether a server answers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Reach {
    /// Nobody has asked yet, or nobody may ask: it counts as well.
    #[default]
    Unknown,
    /// The server has answered, be it with an error.
    Well,
    /// The server has not answered, as often as the operator allows.
    Missing(Arc<str>),
}

impl Reach {
    /// In tables.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Well => "well",
            Self::Missing(_) => "missing",
        }
    }
}

/// Word of a server about itself, to the check of one kind of topology.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Role {
    /// Nothing.
    #[default]
    Unknown,
    /// Read_only, as a source and its replicas have it.
    ReadOnly(bool),
    /// Node of Galera.
    Galera(Galera),
    /// Member of Group Replication.
    Group(Group),
    /// Instance of Aurora.
    Aurora(Aurora),
}

impl Role {
    /// Distance behind the others: transactions that it still has to apply, or Aurora's milliseconds; 0 if
    /// it does not say.
    #[must_use]
    pub const fn behind(&self) -> u32 {
        match self {
            Self::Aurora(instance) => instance.lag_ms,
            Self::Galera(node) => node.recv_queue,
            Self::Group(member) => member.queue,
            Self::Unknown | Self::ReadOnly(_) => 0,
        }
    }

    /// Puts it so far behind.
    pub(crate) const fn with_behind(mut self, behind: u32) -> Self {
        match &mut self {
            Self::Aurora(instance) => instance.lag_ms = behind,
            Self::Galera(node) => node.recv_queue = behind,
            Self::Group(member) => member.queue = behind,
            Self::Unknown | Self::ReadOnly(_) => {}
        }
        self
    }
}

/// Role that a server has told, and whether it still answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Told {
    /// Role as told last.
    pub role: Role,
    /// Silence since, for as many checks as the operator allows. It counts as one that is of no
    /// use to write where another is known to be.
    pub is_missed: bool,
}

/// How far a server is behind its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Lag {
    /// Nobody has asked, or it cannot say.
    #[default]
    Unknown,
    /// The server has no source.
    Source,
    /// So many seconds; of several channels the worst.
    Seconds(u32),
}

/// Addresses in a group, as one of its servers tells them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Peers {
    /// Its own address, as the group calls it.
    pub own: Option<ServerKey>,
    /// The addresses of the others that serve.
    pub others: Vec<ServerKey>,
}

/// Numbers of servers (`server_id`) between which rows travel, as one of them tells.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Channels {
    /// Its own.
    pub own: u32,
    /// Those that it replicates from, on channels that run; 0 for one that it has not reached yet.
    pub from: Vec<u32>,
}

/// Observations of one server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Seen {
    /// Whether it answers.
    pub reach: Reach,
    /// Roles that it has told, by the kind of topology that asks.
    pub told: BTreeMap<TopologyKind, Told>,
    /// Servers that it knows, by the kind of topology that asks.
    pub peers: BTreeMap<TopologyKind, Peers>,
    /// How far it is behind, as far as that has been so for as many checks as the operator wants.
    pub lag: Lag,
    /// Microseconds that its last ping took.
    pub ping_us: Option<u32>,
    /// Its `server_uuid`, if it has one: the same server under another name has the same.
    pub uuid: Option<Arc<str>>,
    /// Its sources, if it says that it may write in a pair, and who they are.
    pub channels: Option<Channels>,
}

/// Observations of all servers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Observed {
    /// Grows with every change.
    pub generation: u64,
    /// By the host and port of rows. Of a name it is what was seen at the address in use.
    pub servers: BTreeMap<ServerKey, Seen>,
    /// By the addresses of names.
    pub addresses: BTreeMap<ServerKey, Seen>,
    /// Names of rows that were looked up.
    pub names: BTreeMap<Arc<str>, Whereabouts>,
    /// Who was the writer of a topology, by the writers' hostgroup: it stays while it can.
    pub writers: BTreeMap<u32, ServerKey>,
}

impl Seen {
    /// Role told to a kind of topology.
    #[must_use]
    pub fn told(&self, kind: TopologyKind) -> Told {
        self.told.get(&kind).copied().unwrap_or_default()
    }
}

impl Observed {
    /// Role that a server has told to a kind of topology.
    #[must_use]
    pub fn told(&self, key: &ServerKey, kind: TopologyKind) -> Told {
        self.of(key).told(kind)
    }

    /// Returns what was seen of a server; of one that nobody has looked at, nothing.
    #[must_use]
    pub fn of(&self, key: &ServerKey) -> &Seen {
        static NOTHING: Seen = Seen {
            reach: Reach::Unknown,
            told: BTreeMap::new(),
            peers: BTreeMap::new(),
            lag: Lag::Unknown,
            ping_us: None,
            uuid: None,
            channels: None,
        };
        let of_row = self.servers.get(key);
        of_row
            .or_else(|| self.addresses.get(key))
            .unwrap_or(&NOTHING)
    }

    /// Whether none of several servers answers: the fault is taken to be ours.
    #[must_use]
    pub fn is_blind(&self) -> bool {
        self.servers.len() > 1
            && self
                .servers
                .values()
                .all(|seen| matches!(seen.reach, Reach::Missing(_)))
    }
}
