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
    /// The fleet, where `admin-cluster_store` is set.
    pub fleet: Option<FleetFacts>,
}

/// A fleet with one truth, as this proxy knows it.
#[derive(Debug, Clone, Default)]
pub struct FleetFacts {
    /// Seconds for which the store has been silent; 0 while it answers.
    pub silent_s: u64,
    /// Modules of proxies that live, as `stats_millrace_fleet` has them.
    pub modules: Vec<HeldFacts>,
    /// Own parts of limits, as `stats_millrace_shares` has them.
    pub shares: Vec<ShareFacts>,
}

/// Configuration of a module that a proxy of the fleet has.
#[derive(Debug, Clone, Default)]
pub struct HeldFacts {
    /// The proxy: its machine and the port for operators.
    pub proxy: String,
    /// Where it listens.
    pub address: String,
    /// Its Millrace.
    pub version: String,
    /// The module.
    pub module: &'static str,
    /// `in force`, `behind`, `diverged`, `back`, `gone` or `own`.
    pub state: String,
    /// Generation that it has.
    pub generation: u64,
    /// Generation that the store has.
    pub truth: u64,
    /// Why these differ.
    pub error: String,
}

/// Part of a limit for the whole fleet.
#[derive(Debug, Clone, Default)]
pub struct ShareFacts {
    /// The limit.
    pub what: String,
    /// The proxy: its machine and the port for operators.
    pub proxy: String,
    /// Whether it is this one.
    pub is_own: bool,
    /// All that there is.
    pub budget: u32,
    /// The proxy's part of it,
    pub share: u32,
    /// the most that it has or may take,
    pub has: u32,
    /// what its sessions use,
    pub used: u32,
    /// and what they would.
    pub wanted: u32,
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
