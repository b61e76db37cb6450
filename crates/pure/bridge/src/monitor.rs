//! What the admin port and the monitor say to each other.

use crate::observed::observed;
use crate::{Cell, Reply};
use config::{Snapshot, TopologyKind};
use std::sync::Arc;
use topology::{Galera, Group, Observed, Role, ServerKey};

/// To the monitor.
pub enum ToMonitor {
    /// Watch the servers of this configuration from now on.
    Load(Arc<Snapshot>),
    /// Report what the monitor's checks have found lately.
    Checks {
        /// Which.
        of: Check,
        /// Receives them, the oldest first.
        reply: Reply<Vec<CheckRow>>,
    },
    /// Report what was seen of the servers.
    Seen(Reply<Arc<Observed>>),
    /// Report what the monitor has done since it began.
    Counts(Reply<Done>),
    /// Report what servers have executed, as their readers tell.
    Gtids(Reply<Vec<GtidRow>>),
    /// Servers whose logs are followed from here.
    Logs(Reply<Vec<LogRow>>),
    /// A core has seen this of a server: look at it now.
    Look(ServerKey, Sign),
}

/// Work of the monitor since it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Done {
    /// Checks of each kind that were good, and that failed.
    pub checks: [[u64; 2]; Check::ALL.len()],
    /// Look-ups of servers' names.
    pub names_looked_up: u64,
    /// Those of them that were answered.
    pub names_found: u64,
    /// Those of them by which a name has other addresses than before.
    pub names_changed: u64,
}

impl Done {
    /// Adds the work of another.
    pub fn add(&mut self, other: &Self) {
        let own = self.checks.iter_mut().flatten();
        for (own, other) in own.zip(other.checks.iter().flatten()) {
            *own += other;
        }
        self.names_looked_up += other.names_looked_up;
        self.names_found += other.names_found;
        self.names_changed += other.names_changed;
    }

    /// Its rows of `stats_mysql_global`.
    pub fn rows(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let checks = [
            (
                Check::Connect,
                "MySQL_Monitor_connect_check_OK",
                "MySQL_Monitor_connect_check_ERR",
            ),
            (
                Check::Ping,
                "MySQL_Monitor_ping_check_OK",
                "MySQL_Monitor_ping_check_ERR",
            ),
            (
                Check::ReadOnly,
                "MySQL_Monitor_read_only_check_OK",
                "MySQL_Monitor_read_only_check_ERR",
            ),
            (
                Check::Lag,
                "MySQL_Monitor_replication_lag_check_OK",
                "MySQL_Monitor_replication_lag_check_ERR",
            ),
        ];
        let names = [
            // One thread asks all servers.
            ("MySQL_Monitor_Workers", 1),
            ("MySQL_Monitor_Workers_Aux", 0),
            ("MySQL_Monitor_Workers_Started", 1),
            ("MySQL_Monitor_dns_cache_queried", self.names_looked_up),
            ("MySQL_Monitor_dns_cache_lookup_success", self.names_found),
            ("MySQL_Monitor_dns_cache_record_updated", self.names_changed),
        ];
        let done = self.checks;
        let checks = checks.into_iter().flat_map(move |(check, ok, err)| {
            let [good, failed] = done[check as usize];
            [(ok, good), (err, failed)]
        });
        checks.chain(names)
    }
}

/// Sign that something is wrong with a server, as a core sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// A connection could not be opened or has broken off, or the server takes no writes. Who writes may
    /// be another server now.
    Failed,
    /// Statements wait, and not a byte has come for a moment. The server may hang, or only be slow.
    Silent,
}

/// A row of `stats_mysql_gtid_executed`.
#[derive(Debug, Clone)]
pub struct GtidRow {
    /// The server.
    pub host: Arc<str>,
    /// Its port.
    pub port: u16,
    /// The set, as a server writes it; `None` while its reader tells nothing.
    pub executed: Option<String>,
    /// Transactions that were told since the reader is followed.
    pub events: u64,
}

observed! {
    /// A row of `stats_millrace_logs`.
    pub struct LogRow, ends ")":
    /// The server.
    hostname: Arc<str>, "hostname VARCHAR NOT NULL", own;
    /// Its port.
    port: u16, "port INT NOT NULL", own;
    /// Purpose: causal_reads, cache_invalidate, or both.
    used_for: Arc<str>, "used_for VARCHAR NOT NULL", own;
    /// Whether it is followed now.
    followed: bool, "followed INT NOT NULL", own;
    /// Transactions that were told.
    transactions: u64, "transactions INT NOT NULL", own;
    /// Reason why it was lost the last time.
    error: Option<Arc<str>>, "error VARCHAR", own;
}

/// A kind of check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// `monitor.mysql_server_connect_log`.
    Connect,
    /// `monitor.mysql_server_ping_log`.
    Ping,
    /// `monitor.mysql_server_read_only_log`.
    ReadOnly,
    /// `monitor.mysql_server_replication_lag_log`.
    Lag,
    /// `monitor.mysql_server_group_replication_log`.
    Group,
    /// `monitor.mysql_server_galera_log`.
    Galera,
    /// `monitor.mysql_server_aws_aurora_log`.
    Aurora,
}

impl Check {
    /// All kinds.
    pub const ALL: [Self; 7] = [
        Self::Connect,
        Self::Ping,
        Self::ReadOnly,
        Self::Lag,
        Self::Group,
        Self::Galera,
        Self::Aurora,
    ];

    /// Finds the check that asks for a part in a topology.
    #[must_use]
    pub const fn of(kind: TopologyKind) -> Self {
        match kind {
            TopologyKind::Replication => Self::ReadOnly,
            TopologyKind::Group => Self::Group,
            TopologyKind::Galera => Self::Galera,
            TopologyKind::Aurora => Self::Aurora,
        }
    }

    /// Its table in schema `monitor`.
    #[must_use]
    pub const fn table(self) -> &'static str {
        match self {
            Self::Connect => "mysql_server_connect_log",
            Self::Ping => "mysql_server_ping_log",
            Self::ReadOnly => "mysql_server_read_only_log",
            Self::Lag => "mysql_server_replication_lag_log",
            Self::Group => "mysql_server_group_replication_log",
            Self::Galera => "mysql_server_galera_log",
            Self::Aurora => "mysql_server_aws_aurora_log",
        }
    }
}

/// Finding of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// Nothing.
    Nothing,
    /// Seconds that it is behind.
    Seconds(u32),
    /// Role by its own word.
    Role(Role),
}

/// Result of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckRow {
    /// Of which server.
    pub host: Arc<str>,
    /// Its port.
    pub port: u16,
    /// When it began: microseconds since 1970.
    pub start_us: u64,
    /// Microseconds that it took; 0 if it failed.
    pub took_us: u64,
    /// Finding.
    pub found: Found,
    /// Name of the server in its cluster, if that is told.
    pub name: Option<Arc<str>>,
    /// Why there is nothing.
    pub error: Option<Arc<str>>,
}

impl CheckRow {
    /// The columns of the table behind the time that the check took.
    #[must_use]
    pub fn cells(&self, check: Check) -> Vec<Cell<'_>> {
        let error = self.error.as_deref().map_or(Cell::Null, Cell::Text);
        if check == Check::Aurora {
            let name = self.name.as_deref().unwrap_or_default();
            let mut cells = vec![error, Cell::Text(name)];
            cells.extend(of_aurora(self.found));
            return cells;
        }
        let mut cells = self.seen(check);
        cells.push(error);
        cells
    }

    /// Columns between that time and the error.
    fn seen(&self, check: Check) -> Vec<Cell<'_>> {
        match (check, self.found) {
            (Check::Aurora, _) => Vec::new(),
            (Check::Connect | Check::Ping, _) => Vec::new(),
            (Check::Lag, Found::Seconds(seconds)) => vec![Cell::Number(seconds.into())],
            (Check::ReadOnly, Found::Role(Role::ReadOnly(read_only))) => {
                vec![Cell::Number(read_only.into())]
            }
            (Check::Lag | Check::ReadOnly, _) => vec![Cell::Null],
            (Check::Group, Found::Role(Role::Group(member))) => of_group(&member),
            (Check::Group, _) => of_group(&Group {
                read_only: true,
                ..Group::default()
            }),
            (Check::Galera, Found::Role(Role::Galera(node))) => of_galera(&node),
            (Check::Galera, _) => of_galera(&Galera {
                read_only: true,
                ..Galera::default()
            }),
        }
    }
}

/// Columns behind the error and the name: Aurora's session, when it was updated, both lags, CPU.
fn of_aurora(found: Found) -> [Cell<'static>; 5] {
    let Found::Role(Role::Aurora(instance)) = found else {
        let zero = || Cell::Number(0);
        return [Cell::Null, Cell::Null, zero(), zero(), zero()];
    };
    [
        if instance.is_writer {
            Cell::Text("MASTER_SESSION_ID")
        } else {
            Cell::Null
        },
        Cell::Null,
        Cell::Number(instance.said_ms.into()),
        Cell::Number(instance.lag_ms.into()),
        Cell::Number(0),
    ]
}

const fn yes(it_is: bool) -> Cell<'static> {
    Cell::Text(if it_is { "YES" } else { "NO" })
}

fn of_group(member: &Group) -> Vec<Cell<'static>> {
    vec![
        yes(member.is_online && member.has_quorum),
        yes(member.read_only),
        Cell::Number(member.queue.into()),
    ]
}

fn of_galera(node: &Galera) -> Vec<Cell<'static>> {
    vec![
        yes(node.is_primary),
        yes(node.read_only),
        Cell::Number(node.recv_queue.into()),
        Cell::Number(node.local_state.into()),
        yes(node.desync),
        yes(node.rejects),
        yes(node.donor_rejects),
        yes(node.in_maintenance),
    ]
}
