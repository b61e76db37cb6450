//! The words that the data and control planes exchange: messages to a core, what a core reports,
//! the counters, and what a failure says of itself. Plain data; nobody here acts.
#![forbid(unsafe_code)]

mod alarm;
mod asked;
mod audit;
mod calendar;
mod calls;
mod counters;
mod doing;
mod earlier;
mod event;
mod failure;
mod files;
mod hooks;
mod latency;
mod lines;
mod mail;
mod metric;
mod mirror;
mod monitor;
mod moved;
mod observed;
mod report;
mod runs;
mod shards;
mod stats;
mod trace;

pub use alarm::AlarmRow;
pub use asked::{NewName, Partition, Pass, Renamed, Table, ToAdmin, Unanswered, Wanted};
pub use audit::{Auditable, Audited};
pub use calendar::{date, utc};
pub use calls::{HttpAnswer, HttpCall, HttpCalls};
pub use counters::{Counter, Counts};
pub use doing::Doing;
pub use earlier::{Before, Earlier, Nobody, Totals};
pub use event::{Event, EventKind, Events, Fate};
pub use failure::{Blame, Failure, Retry};
pub use files::{FileDeed, FileDone, FileWork};
pub use hooks::HookRow;
pub use latency::{Latency, Width};
pub use lines::{Lines, MessageRow};
pub use mail::{Letter, Mail};
pub use metric::{Kind, Metric};
pub use mirror::MirrorRow;
pub use monitor::{Check, CheckRow, Done, Found, GtidRow, LogRow, Sign, ToMonitor};
pub use moved::{MOVED_FORMAT, MOVED_OLDEST, Moved, Take};
pub use observed::{Cell, Observed, joined};
pub use report::{
    AddressRow, AdmissionRow, ChoiceRow, ClientHostRow, CommandRow, ConcurrencyRow, CoreRow,
    DigestRow, ErrorRow, FreeConnectionRow, HeldRow, HostgroupPoolRow, HostgroupRow,
    LATENCY_BOUNDS_US, PoolRow, PreparedRow, ProcessRow, QueryCacheRow, Report, ServerState,
    UserRow,
};
pub use runs::{RunRow, ToScheduler};
pub use shards::{MoveRow, ShardDdlRow, ShardRow};
pub use stats::{
    AskerFacts, Facts, FleetFacts, HeldFacts, ModuleFacts, PeerFacts, ShareFacts, ToStats,
};
pub use trace::{Fates, Traced, TracedLeg};

pub use binlog::Touched;
use config::Snapshot;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// How a core answers: called once, on the core's thread. It must not block (typically it sends
/// into a mailbox). Dropped uncalled, it means that the core ended before it could answer.
pub type Reply<T> = Box<dyn FnOnce(T) + Send>;

/// Knowledge of the transactions that a server has executed, so that a read there sees them.
#[derive(Debug, Clone)]
pub enum Executed {
    /// These, and no others: a feed has begun.
    All(Arc<gtid::Set>),
    /// These as well.
    More(Arc<gtid::Set>),
    /// Nothing: its feed is lost.
    Unknown,
}

/// Message of the control plane to a core. A core handles its messages in order, between events.
pub enum ToCore {
    /// Work under this configuration from now on. Commands already running end under theirs.
    Load {
        /// The new configuration, made for this core: `Snapshot::for_core`.
        snapshot: Arc<Snapshot>,
        /// Called when the core has swapped.
        done: Reply<()>,
    },
    /// This was seen of the servers. What it changes is placed at once; no LOAD.
    Observe(Arc<topology::Observed>),
    /// Transactions that a server has executed, as one of its readers tells.
    Executed {
        /// Which server.
        server: topology::ServerKey,
        /// Knowledge of the server's transactions now.
        what: Executed,
    },
    /// A server shows everything that its source had at this time, as a check tells.
    AsOf {
        /// Which server.
        server: topology::ServerKey,
        /// In milliseconds since 1970; 0 if nobody knows any more.
        ms: u64,
    },
    /// Somebody has changed these tables, as a server's log says: what was read before is of no use.
    /// The cache is one for all cores, so the first one obeys.
    Touched(Arc<Touched>),
    /// Report something.
    Ask {
        /// Report that is wanted.
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
        /// Treatment of the sessions.
        does: Kills,
        /// Receives how many this core has.
        reply: Reply<u64>,
    },
    /// Another process accepts clients from now on. Sessions that can go to it go.
    Leave {
        /// Takes a session; none if that process understands none of this one's.
        take: Option<Take>,
        /// Called when all sessions are gone, or have had their time.
        done: Reply<()>,
    },
    /// A session of another process, which goes on here.
    Settle(Moved),
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
        /// Key of the result that is to be fetched.
        key: Box<[u8]>,
        /// Receives the flight, or hears that another's has landed.
        reply: Reply<Fetching>,
    },
    /// From a peer: a client of this address has failed to log in, or has logged in.
    ClientHost {
        /// Its address.
        address: IpAddr,
        /// Whether it has failed.
        failed: bool,
    },
    /// Forget who has failed: `PROXYSQL FLUSH MYSQL CLIENT HOSTS`.
    FlushClientHosts {
        /// Called when it is done.
        done: Reply<()>,
    },
    /// Have statements for a partition wait, since it is about to be elsewhere, or go on, by the
    /// configuration that is in force then. Open transactions do not wait.
    Gate {
        /// The partition, as `table.partition`.
        partition: Arc<str>,
        /// They wait no longer than this; none lets them go on.
        closed_for: Option<Duration>,
        /// Called when all that began before are over; not at all if that takes too long.
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
    /// Accept nobody and end every session now: `PROXYSQL STOP`. `Accept(true)` opens again.
    Close {
        /// Called when the last session is gone, or after two seconds.
        done: Reply<()>,
    },
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

/// Treatment of sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kills {
    /// They are told to end.
    Session,
    /// The statements that the sessions run are told to end.
    Statement,
    /// They are only counted.
    Nothing,
}

/// Fate of the wish to end a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Killed {
    /// The session is told to end.
    Done,
    /// This core has no such session.
    Unknown,
    /// The session is another user's.
    NotYours,
}

/// Reports that a core can be asked for.
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
    /// A row per server of a hostgroup: [`Report::Choice`].
    Choice,
    /// A row per address of a name: [`Report::Addresses`].
    Addresses,
    /// A row per priority of a hostgroup: [`Report::Admission`].
    Admission,
    /// A row per server with a limit: [`Report::Concurrency`].
    Concurrency,
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
    /// A row per hook of a script: [`Report::Hooks`].
    Hooks,
    /// A row per sharded table: [`Report::Shards`].
    Shards,
    /// A row per partition of a statement that one does after another: [`Report::ShardDdl`].
    ShardDdl,
    /// A row per address that has failed to log in: [`Report::ClientHosts`].
    ClientHosts,
    /// A row per thing that the firewall noticed: [`Report::Alarms`].
    Alarms,
    /// A row for the core itself: [`Report::Cores`].
    Core,
}
