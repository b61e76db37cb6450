//! What the admin port and the thread of the statistics say to each other.

use crate::Reply;
use config::Snapshot;
use std::sync::Arc;

/// To the thread of the statistics.
pub enum ToStats {
    /// Work by this configuration from now on.
    Load(Arc<Snapshot>),
    /// Write all metrics out, or say why they cannot be had.
    Metrics(Reply<Result<String, String>>),
    /// Facts that only the admin thread knows.
    Facts(Facts),
}

/// Facts of the admin thread, told once a second.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// Bytes of the admin port's tables.
    pub sqlite_bytes: u64,
    /// Rows that were taken from the cores, could not be delivered and were too many to be kept.
    pub rows_lost: u64,
    /// Whether no new clients are let in.
    pub paused: bool,
    /// Outcomes of the looks at other proxies, by their names in `stats_mysql_global`.
    pub cluster: Vec<(&'static str, u64)>,
    /// Other proxies, as `stats_proxysql_servers_metrics` and `…_checksums` have them.
    pub peers: Vec<PeerFacts>,
    /// Proxies that ask here, as `stats_proxysql_servers_clients_status` has them.
    pub askers: Vec<AskerFacts>,
}

/// Knowledge of another proxy.
#[derive(Debug, Clone, Default)]
pub struct PeerFacts {
    /// Name or address in `proxysql_servers`.
    pub hostname: String,
    /// Port there.
    pub port: i64,
    /// Weight there.
    pub weight: u64,
    /// Milliseconds that its last answer took.
    pub response_ms: u64,
    /// Milliseconds since then.
    pub last_check_ms: u64,
    /// Seconds since it began.
    pub uptime_s: u64,
    /// Statements that it has had.
    pub queries: u64,
    /// Clients that are there now.
    pub connected: u64,
    /// Clients that have been there.
    pub created: u64,
    /// Modules that it has told of.
    pub modules: Vec<ModuleFacts>,
}

/// A module of another proxy.
#[derive(Debug, Clone, Copy, Default)]
pub struct ModuleFacts {
    /// Name in `runtime_checksums_values`.
    pub name: &'static str,
    /// LOADs that it counts.
    pub version: u64,
    /// Seconds since 1970 of the LOAD that it has in force.
    pub epoch: u64,
    /// Seconds since 1970 when it was another one last.
    pub changed_s: u64,
    /// Seconds since 1970 when it was asked for last.
    pub updated_s: u64,
    /// Looks in a row that have found it other than here.
    pub looks: u64,
}

/// A proxy that asks here.
#[derive(Debug, Clone, Default)]
pub struct AskerFacts {
    /// Its name for itself.
    pub uuid: String,
    /// Its address.
    pub hostname: String,
    /// Its port.
    pub port: u16,
    /// Where its admin port listens.
    pub ifaces: String,
    /// Seconds since 1970 when it asked last.
    pub seen_s: u64,
}
