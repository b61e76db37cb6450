//! The words that the data and control planes exchange: messages to a core, what a core reports,
//! the counters, and what a failure says of itself. Plain data; nobody here acts.
#![forbid(unsafe_code)]

mod alarm;
mod calendar;
mod counters;
mod earlier;
mod event;
mod failure;
mod latency;
mod mirror;
mod report;

pub use alarm::AlarmRow;
pub use calendar::{date, utc};
pub use counters::{Counter, Counts};
pub use event::{Event, EventKind, Events, Fate};
pub use failure::{Blame, Failure, Retry};
pub use latency::{Latency, Width};
pub use mirror::MirrorRow;
pub use report::{
    ClientHostRow, CommandRow, CoreRow, DigestRow, ErrorRow, FreeConnectionRow, HeldRow,
    HostgroupPoolRow, HostgroupRow, LATENCY_BOUNDS_US, PoolRow, PreparedRow, ProcessRow,
    QueryCacheRow, Report, ServerState, UserRow,
};

use config::Snapshot;
use std::sync::Arc;

/// How a core answers: called once, on the core's thread. It must not block (typically it sends
/// into a mailbox). Dropped uncalled, it means that the core ended before it could answer.
pub type Reply<T> = Box<dyn FnOnce(T) + Send>;

/// What the control plane tells a core. A core handles its messages in order, between events.
pub enum ToCore {
    /// Work under this configuration from now on. Commands already running end under theirs.
    Load {
        /// The new configuration, made for this core: `Snapshot::for_core`.
        snapshot: Arc<Snapshot>,
        /// Called when the core has swapped.
        done: Reply<()>,
    },
    /// Report something.
    Ask {
        /// What is wanted.
        what: Ask,
        /// Zero it after having read it (the `_reset` tables).
        reset: bool,
        /// Receives the report.
        reply: Reply<Report>,
    },
    /// End a session, or only the statement that it runs.
    Kill {
        /// Id of the session, as in `stats_mysql_processlist.SessionID`.
        session: u32,
        /// Only the running statement.
        statement_only: bool,
        /// Only if it is a session of this user.
        owner: Option<Arc<str>>,
        /// Receives what became of it.
        reply: Reply<Killed>,
    },
    /// End the sessions of a user, or what they run.
    KillUser {
        /// Whose.
        user: Arc<str>,
        /// Only those that come from this address.
        host: Option<Arc<str>>,
        /// But not this one.
        but: u32,
        /// What is done to them.
        does: Kills,
        /// Receives how many this core has.
        reply: Reply<u64>,
    },
    /// Drop results from the cache: `PROXYSQL FLUSH QUERY CACHE`.
    FlushCache {
        /// Which.
        which: FlushCache,
        /// Receives how many this core has dropped.
        reply: Reply<u64>,
    },
    /// A peer's session is about to fetch something for the cache: does somebody do so already?
    /// Asked of the core at which the key is at home.
    Fetching {
        /// What: the key of its result.
        key: Box<[u8]>,
        /// Receives the flight, or hears that another's has landed.
        reply: Reply<Fetching>,
    },
    /// From a peer: a client of this address has failed to log in, or has logged in.
    ClientHost {
        /// Its address.
        address: std::net::IpAddr,
        /// Whether it has failed.
        failed: bool,
    },
    /// Forget who has failed: `PROXYSQL FLUSH MYSQL CLIENT HOSTS`.
    FlushClientHosts {
        /// Called when it is done.
        done: Reply<()>,
    },
    /// Hand what waits for the events log over to it: what this core has counted before is in the
    /// log's mailbox then.
    HandOverEvents {
        /// Called when it is done.
        done: Reply<()>,
    },
    /// Stop (`false`) or resume (`true`) accepting clients: `PROXYSQL PAUSE` and `RESUME`.
    Accept(bool),
    /// Use the certificate and key files anew for clients that come from now on: `PROXYSQL RELOAD
    /// TLS`.
    ReloadTls {
        /// PEM of the certificate chain.
        certificate: Arc<[u8]>,
        /// PEM of the private key.
        key: Arc<[u8]>,
        /// PEM of the authorities of clients' certificates; empty for none.
        authorities: Arc<[u8]>,
    },
    /// Accept nobody, and end sessions when they hold nothing. The core goes on obeying until it is
    /// told to stop.
    Drain {
        /// Called when the last session is gone, or after `mysql-shutdown_deadline_ms`.
        done: Reply<()>,
    },
    /// End now, and with it every session that is left.
    Stop,
}

/// Which results are dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FlushCache {
    /// All.
    All,
    /// Those that read this table, as far as their text tells.
    Table {
        /// Its schema; `None` for any.
        schema: Option<Arc<str>>,
        /// Its name.
        name: Arc<str>,
    },
    /// Those of this digest.
    Digest(u64),
}

/// Whether somebody fetches a result.
pub enum Fetching {
    /// Nobody does: fetch it. Whoever asks from now on waits until this flight lands.
    Yours(Flight),
    /// Somebody did, and has landed, well or not.
    Over,
}

/// A flight that was taken off on another core: it lands when this is dropped.
pub type Flight = Box<dyn std::any::Any + Send>;

/// What is done to sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kills {
    /// They are told to end.
    Session,
    /// What they run is.
    Statement,
    /// They are only counted.
    Nothing,
}

/// What became of the wish to end a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Killed {
    /// It is told to end.
    Done,
    /// This core has no such session.
    Unknown,
    /// It is another user's.
    NotYours,
}

/// What a core can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// All counters and gauges: [`Report::Global`].
    Global,
    /// A row per server: [`Report::Pool`].
    Pool,
    /// A row per session: [`Report::Processes`].
    Processes,
    /// A row per digest: [`Report::Digests`].
    Digests,
    /// Hits per rule: [`Report::Rules`].
    Rules,
    /// A row per class of statement: [`Report::Commands`].
    Commands,
    /// A row per hostgroup: [`Report::Hostgroups`].
    Hostgroups,
    /// A row per hostgroup: [`Report::HostgroupPool`].
    HostgroupPool,
    /// A row per user: [`Report::Users`].
    Users,
    /// A row per error: [`Report::Errors`].
    Errors,
    /// A row per idle backend connection: [`Report::FreeConnections`].
    FreeConnections,
    /// A row per result in the cache: [`Report::QueryCache`].
    QueryCache,
    /// A row per prepared statement: [`Report::Prepared`].
    Prepared,
    /// A row per digest whose results were compared: [`Report::Mirror`].
    Mirror,
    /// A row per address that has failed to log in: [`Report::ClientHosts`].
    ClientHosts,
    /// A row per thing that the firewall noticed: [`Report::Alarms`].
    Alarms,
    /// A row for the core itself: [`Report::Cores`].
    Core,
}
