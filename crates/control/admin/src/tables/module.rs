//! A module: tables, or variables, that LOAD and SAVE move as a whole.

/// Module: what LOAD and SAVE move as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the words are in `words`")]
pub enum Module {
    Servers,
    Users,
    Rules,
    Firewall,
    Shards,
    Scripts,
    Scheduler,
    RestApi,
    ProxysqlServers,
    ClickhouseUsers,
    Coredump,
    MysqlVariables,
    AdminVariables,
    SqliteVariables,
    ClickhouseVariables,
}

impl Module {
    /// All, the ones of many words first.
    pub const ALL: &'static [Self] = &[
        Self::Servers,
        Self::Users,
        Self::Rules,
        Self::Firewall,
        Self::Shards,
        Self::Scripts,
        Self::Scheduler,
        Self::RestApi,
        Self::ProxysqlServers,
        Self::ClickhouseUsers,
        Self::Coredump,
        Self::MysqlVariables,
        Self::AdminVariables,
        Self::SqliteVariables,
        Self::ClickhouseVariables,
    ];

    /// As LOAD and SAVE name it.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Servers => "MYSQL SERVERS",
            Self::Users => "MYSQL USERS",
            Self::Rules => "MYSQL QUERY RULES",
            Self::Firewall => "MYSQL FIREWALL",
            Self::Shards => "MYSQL SHARDS",
            Self::Scripts => "MYSQL SCRIPTS",
            Self::Scheduler => "SCHEDULER",
            Self::RestApi => "RESTAPI",
            Self::ProxysqlServers => "PROXYSQL SERVERS",
            Self::ClickhouseUsers => "CLICKHOUSE USERS",
            Self::Coredump => "COREDUMP",
            Self::MysqlVariables => "MYSQL VARIABLES",
            Self::AdminVariables => "ADMIN VARIABLES",
            Self::SqliteVariables => "SQLITESERVER VARIABLES",
            Self::ClickhouseVariables => "CLICKHOUSE VARIABLES",
        }
    }

    /// Returns what the names of the module's variables begin with, if it consists of variables.
    #[must_use]
    pub const fn prefix(self) -> Option<&'static str> {
        match self {
            Self::MysqlVariables => Some("mysql-"),
            Self::AdminVariables => Some("admin-"),
            Self::SqliteVariables => Some("sqliteserver-"),
            Self::ClickhouseVariables => Some("clickhouse-"),
            _ => None,
        }
    }
}
