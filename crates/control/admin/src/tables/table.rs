//! An admin table, and the copies of it that are derived.

use super::module::Module;

/// One admin table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Table {
    /// Its name in the schema where the operator works with it.
    pub name: &'static str,
    /// One sentence.
    pub about: &'static str,
    /// Text that follows `CREATE TABLE name `, laid out as ProxySQL shows it.
    pub columns: &'static str,
    /// Kind of the table, and which copies it has.
    pub kind: Kind,
}

/// Kind of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The operator writes it; LOAD and SAVE move it.
    Declared {
        /// With which words.
        module: Module,
        /// Whether the table has a copy in `disk`.
        disk: bool,
        /// Effect of the table's rows when they are loaded.
        runtime: Runtime,
    },
    /// `global_variables`: three modules share it.
    Variables,
    /// `mysql_collations`: written by us, once.
    Collations,
    /// `runtime_checksums_values`.
    Checksums,
    /// In `disk` alone.
    DiskOnly,
    /// In `stats`; filled when it is read.
    Observed {
        /// With what.
        observe: Observe,
        /// Whether the table has a twin that zeroes.
        reset: bool,
    },
    /// In `monitor`.
    Monitor,
    /// In `stats_history`.
    History,
}

/// Effect of the rows of a declared table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runtime {
    /// The proxy works by them.
    Honoured,
    /// Rows that the proxy cannot work by yet: they are refused.
    NotYet {
        /// Rows of which this is true are harmless; empty if none are.
        unless: &'static str,
        /// Words for what this version does not do, as the predicate of a sentence.
        does: &'static str,
    },
}

/// Source that fills an observed table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is what its table is about")]
pub enum Observe {
    Gtids,
    Logs,
    /// Messages of the operator's log.
    Messages,
    /// Addresses of names.
    Addresses,
    Scheduled,
    Moves,
    Global,
    Pool,
    Processes,
    Holds,
    Digests,
    DigestLatency,
    HostgroupLatency,
    HostgroupPool,
    Choice,
    Admission,
    Concurrency,
    CommandLatency,
    Rules,
    Commands,
    Users,
    Errors,
    FreeConnections,
    Prepared,
    QueryCache,
    Mirror,
    Hooks,
    Shards,
    ShardDdl,
    Alarms,
    ClientHosts,
    Cores,
    Memory,
    Variables,
    StatsVariables,
    PeerChecksums,
    PeerClients,
    PeerMetrics,
    PeerStatus,
    Fleet,
    /// Who has how much of limits that hold for the fleet.
    Shares,
}

/// The databases, in the order of SHOW DATABASES.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is the database of its name")]
pub enum Schema {
    Main,
    Disk,
    Stats,
    Monitor,
    StatsHistory,
}

impl Schema {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Main,
        Self::Disk,
        Self::Stats,
        Self::Monitor,
        Self::StatsHistory,
    ];

    /// The schema of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|schema| schema.name().eq_ignore_ascii_case(name))
    }

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::Disk => "disk",
            Self::Stats => "stats",
            Self::Monitor => "monitor",
            Self::StatsHistory => "stats_history",
        }
    }
}

/// A copy of a table in a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableCopy {
    /// Where.
    pub schema: Schema,
    /// Under which name.
    pub name: String,
    /// Of which table.
    pub table: &'static Table,
    /// Which of its copies this is.
    pub role: Role,
}

/// Which copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The table itself.
    Own,
    /// Copy with what is in force: `runtime_…`.
    Runtime,
    /// Copy that is kept in `disk`.
    Disk,
    /// Copy that zeroes when it is read: `…_reset`.
    Reset,
}

impl Table {
    /// Whether ProxySQL does not have it; its sentence ends so.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        self.about.ends_with(" Ours.")
    }

    /// Returns the table and its copies.
    #[must_use]
    pub fn copies(&'static self) -> Vec<TableCopy> {
        let copy = |schema, name: String, role| TableCopy {
            schema,
            name,
            table: self,
            role,
        };
        let name = || self.name.to_owned();
        let runtime = || {
            copy(
                Schema::Main,
                format!("runtime_{}", self.name),
                Role::Runtime,
            )
        };
        let own = |schema| copy(schema, name(), Role::Own);
        let disk = || copy(Schema::Disk, name(), Role::Disk);
        match self.kind {
            // Collations are no module and have no runtime copy.
            Kind::Declared { disk: true, .. } | Kind::Variables => {
                vec![own(Schema::Main), runtime(), disk()]
            }
            Kind::Declared { disk: false, .. } => vec![own(Schema::Main), runtime()],
            Kind::Collations => vec![own(Schema::Main), disk()],
            Kind::Checksums => vec![own(Schema::Main)],
            Kind::DiskOnly => vec![own(Schema::Disk)],
            Kind::Observed { reset: false, .. } => vec![own(Schema::Stats)],
            Kind::Observed { reset: true, .. } => {
                vec![
                    own(Schema::Stats),
                    copy(Schema::Stats, format!("{}_reset", self.name), Role::Reset),
                ]
            }
            Kind::Monitor => vec![own(Schema::Monitor)],
            Kind::History => vec![own(Schema::StatsHistory)],
        }
    }
}

impl TableCopy {
    /// The statement that makes it, unless it is there.
    #[must_use]
    pub fn ddl(&self, schema: &str) -> String {
        format!(
            "CREATE TABLE IF NOT EXISTS {schema}.{} {}",
            self.name, self.table.columns
        )
    }
}
