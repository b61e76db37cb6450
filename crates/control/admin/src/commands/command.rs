//! Commands of an operator, as values.

use crate::tables::Module;

/// Command of an operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Nothing at all.
    Blank,
    /// LOAD or SAVE between two layers.
    Move {
        /// Module that is moved.
        module: Module,
        /// From where.
        from: Layer,
        /// To where.
        to: Layer,
    },
    /// `LOAD … FROM CONFIG`.
    LoadConfig(Module),
    /// `LOAD MYSQL USER x TO RUNTIME`.
    LoadUser(String),
    /// `SAVE CONFIG TO FILE` or `SELECT CONFIG INTO OUTFILE`.
    WriteConfig {
        /// To which file; empty if none was named.
        path: String,
        /// Written as SELECT: the answer says how many bytes.
        select: bool,
    },
    /// `SELECT CONFIG FILE`.
    ShowConfig,
    /// `CHECKSUM …`.
    Checksum(Subject),
    /// `SET variable=value`.
    Set(Assignment),
    /// Answered with OK; nothing is done.
    Accept,
    /// A statement of ours that answers it; `:version`, `:name`, `:user`, `:id` in it are the
    /// session's.
    Query(String),
    /// `USE schema`.
    Use(String),
    /// `SELECT @@x`.
    Variables(Vec<door::hello::Asked>),
    /// `PROXYSQL …`.
    Proxysql(Verb),
    /// `PROXYSQL FLUSH QUERY CACHE …`.
    FlushCache(bridge::FlushCache),
    /// `PROXYSQL CLUSTER_NODE_UUID …`: another proxy will ask.
    ClusterNode {
        /// Its name for itself.
        uuid: String,
        /// Where its admin port listens.
        ifaces: String,
    },
    /// `PROXYSQL CLUSTER_PULL …`: another proxy takes a module over.
    ClusterPull(String),
    /// Command of a fleet.
    Fleet(OfFleet),
    /// `PROXYSQL FLUSH MYSQL CLIENT HOSTS`.
    FlushClientHosts,
    /// `HSCALE …`, or why it is none.
    Hscale(Result<shards::Command, String>),
    /// `KILL [CONNECTION | QUERY] n`.
    Kill {
        /// The session.
        session: u32,
        /// Only what it runs.
        statement_only: bool,
    },
    /// `LOGENTRY …`.
    Log(String),
    /// `EXPLAIN ROUTE`.
    ExplainRoute(Question),
    /// `EXPLAIN ROUTE AGAINST DIGESTS`: what the rules in memory would change.
    ReplayDigests {
        /// Also what they would not.
        all: bool,
    },
    /// `LEARN MYSQL FIREWALL`: rules of the firewall for what is known to have run.
    LearnFirewall(Lesson),
    /// `SAVE MYSQL DIGEST TO DISK`.
    KeepDigests,
    /// `SHOW PROMETHEUS METRICS`.
    Metrics,
    /// `TRUNCATE [TABLE] stats.stats_mysql_query_digest`.
    ForgetDigests,
    /// `SELECT $$`: MySQL's command line looks whether `$$` can be a name.
    DollarProbe,
    /// Command that is known, and cannot be done in this version.
    NotAvailable(&'static str),
    /// Everything else is SQL.
    Sql(String),
}

/// Where a configuration can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is what it says")]
pub enum Layer {
    Disk,
    Memory,
    Runtime,
}

/// Subject of a checksum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// Everything that is in force.
    Global,
    /// A table (or the variables of a prefix) in `main` or `disk`.
    Table {
        /// As the answer names it.
        words: &'static str,
        /// Which table.
        table: &'static str,
        /// In `disk`?
        disk: bool,
    },
}

/// `SET name=value`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// As it was written.
    pub name: String,
    /// An expression of SQLite.
    pub value: String,
}

/// Verb of `PROXYSQL …`: what to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the words are in `VERBS` of `proxysql.rs`")]
pub enum Verb {
    Start,
    Stop,
    Restart,
    Pause,
    Resume,
    Shutdown,
    Kill,
    ReadOnly,
    ReadWrite,
    FlushLogs,
    FlushConfigDb,
    ReloadTls,
}

/// Commands of a fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OfFleet {
    /// `LOAD … TO RUNTIME LOCAL`: here, and on no other proxy.
    LoadHere(Module),
    /// `SHOW FLEET HISTORY`: the generations of each module that the store keeps.
    History,
    /// `FLEET ROLLBACK module TO n`.
    RollBack {
        /// As `runtime_checksums_values` names it.
        module: String,
        /// The number of a generation that is kept.
        generation: u64,
    },
}

/// A statement, and whose it would be.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Question {
    /// The statement.
    pub sql: String,
    /// The user, if one was named.
    pub user: Option<String>,
    /// The schema, if one was named.
    pub schema: Option<String>,
    /// The client's address, if one was named.
    pub client: Option<String>,
    /// The address and port that the client has connected to, if they were named.
    pub listener: Option<(String, u16)>,
    /// Flag that an earlier `next_query_flagIN` has set, if it was named.
    pub flag: Option<u32>,
}

/// Choice of the statements that are learned.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Lesson {
    /// From where; if it was not said, from everywhere but [`Source::Blocked`].
    pub from: Option<Source>,
    /// Whose statements; those of all users of `mysql_firewall_whitelist_users` if it was not said.
    pub user: Option<String>,
}

/// Where a statement can have been seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// `stats_mysql_query_digest`.
    Digests,
    /// `history_mysql_query_digest`.
    History,
    /// Statements that DETECTING has let through, in `stats_mysql_firewall`.
    Detected,
    /// Statements that PROTECTING has refused, in `stats_mysql_firewall`. Only if they are asked
    /// for: attacks may be among them.
    Blocked,
}
