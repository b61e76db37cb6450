//! The rows of the operator's tables as they stand there: one struct a table, one field a column,
//! under its name.
//!
//! Nothing is checked here. `Default` is a row of which no column was given.
#![allow(
    non_snake_case,
    reason = "the fields are the columns, and some of those are written flagIN"
)]
#![allow(
    missing_docs,
    reason = "the fields are the columns; docs/admin describes them"
)]

/// `mysql_servers`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerRow {
    pub hostgroup_id: i64,
    pub hostname: String,
    pub port: i64,
    pub gtid_port: i64,
    pub status: String,
    pub weight: i64,
    pub compression: i64,
    pub max_connections: i64,
    pub max_replication_lag: i64,
    pub use_ssl: i64,
    pub max_latency_ms: i64,
    pub comment: String,
}

impl Default for ServerRow {
    fn default() -> Self {
        Self {
            hostgroup_id: 0,
            hostname: String::new(),
            port: 3306,
            gtid_port: 0,
            status: "ONLINE".into(),
            weight: 1,
            compression: 0,
            max_connections: 1000,
            max_replication_lag: 0,
            use_ssl: 0,
            max_latency_ms: 0,
            comment: String::new(),
        }
    }
}

/// `mysql_replication_hostgroups`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicationHostgroupRow {
    pub writer_hostgroup: i64,
    pub reader_hostgroup: i64,
    pub check_type: String,
    pub comment: String,
}

impl Default for ReplicationHostgroupRow {
    fn default() -> Self {
        Self {
            writer_hostgroup: 0,
            reader_hostgroup: 1,
            check_type: "read_only".into(),
            comment: String::new(),
        }
    }
}

/// `mysql_group_replication_hostgroups`.
pub type GroupReplicationHostgroupRow = QuartetRow<false>;

/// `mysql_galera_hostgroups`.
pub type GaleraHostgroupRow = QuartetRow<true>;

/// Rows of two tables that have the same columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuartetRow<const GALERA: bool> {
    pub writer_hostgroup: i64,
    pub backup_writer_hostgroup: i64,
    pub reader_hostgroup: i64,
    pub offline_hostgroup: i64,
    pub active: i64,
    pub max_writers: i64,
    pub writer_is_also_reader: i64,
    pub max_transactions_behind: i64,
    pub comment: Option<String>,
}

impl<const GALERA: bool> QuartetRow<GALERA> {
    pub(crate) const TABLE: &'static str = if GALERA {
        "mysql_galera_hostgroups"
    } else {
        "mysql_group_replication_hostgroups"
    };
}

impl<const GALERA: bool> Default for QuartetRow<GALERA> {
    fn default() -> Self {
        Self {
            writer_hostgroup: 0,
            backup_writer_hostgroup: 1,
            reader_hostgroup: 2,
            offline_hostgroup: 3,
            active: 1,
            max_writers: 1,
            writer_is_also_reader: 0,
            max_transactions_behind: 0,
            comment: None,
        }
    }
}

/// `mysql_aws_aurora_hostgroups`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuroraHostgroupRow {
    pub writer_hostgroup: i64,
    pub reader_hostgroup: i64,
    pub active: i64,
    pub aurora_port: i64,
    pub domain_name: String,
    pub max_lag_ms: i64,
    pub check_interval_ms: i64,
    pub check_timeout_ms: i64,
    pub writer_is_also_reader: i64,
    pub new_reader_weight: i64,
    pub add_lag_ms: i64,
    pub min_lag_ms: i64,
    pub lag_num_checks: i64,
    pub comment: Option<String>,
}

impl Default for AuroraHostgroupRow {
    fn default() -> Self {
        Self {
            writer_hostgroup: 0,
            reader_hostgroup: 1,
            active: 1,
            aurora_port: 3306,
            domain_name: ".example".into(),
            max_lag_ms: 600_000,
            check_interval_ms: 1000,
            check_timeout_ms: 800,
            writer_is_also_reader: 0,
            new_reader_weight: 1,
            add_lag_ms: 30,
            min_lag_ms: 30,
            lag_num_checks: 1,
            comment: None,
        }
    }
}

/// `mysql_users`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserRow {
    pub username: String,
    pub password: Option<String>,
    pub active: i64,
    pub use_ssl: i64,
    pub default_hostgroup: i64,
    pub default_schema: Option<String>,
    pub schema_locked: i64,
    pub transaction_persistent: i64,
    pub fast_forward: i64,
    pub backend: i64,
    pub frontend: i64,
    pub max_connections: i64,
    pub attributes: String,
    pub comment: String,
}

impl Default for UserRow {
    fn default() -> Self {
        Self {
            username: String::new(),
            password: None,
            active: 1,
            use_ssl: 0,
            default_hostgroup: 0,
            default_schema: None,
            schema_locked: 0,
            transaction_persistent: 1,
            fast_forward: 0,
            backend: 1,
            frontend: 1,
            max_connections: 10_000,
            attributes: String::new(),
            comment: String::new(),
        }
    }
}

/// `mysql_query_rules`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleRow {
    pub rule_id: i64,
    pub active: i64,
    pub username: Option<String>,
    pub schemaname: Option<String>,
    pub flagIN: i64,
    pub client_addr: Option<String>,
    pub proxy_addr: Option<String>,
    pub proxy_port: Option<i64>,
    pub digest: Option<String>,
    pub match_digest: Option<String>,
    pub match_pattern: Option<String>,
    pub negate_match_pattern: i64,
    pub re_modifiers: Option<String>,
    pub flagOUT: Option<i64>,
    pub replace_pattern: Option<String>,
    pub destination_hostgroup: Option<i64>,
    pub cache_ttl: Option<i64>,
    pub cache_empty_result: Option<i64>,
    pub cache_timeout: Option<i64>,
    pub reconnect: Option<i64>,
    pub timeout: Option<i64>,
    pub retries: Option<i64>,
    pub delay: Option<i64>,
    pub next_query_flagIN: Option<i64>,
    pub mirror_flagOUT: Option<i64>,
    pub mirror_hostgroup: Option<i64>,
    pub error_msg: Option<String>,
    pub OK_msg: Option<String>,
    pub sticky_conn: Option<i64>,
    pub multiplex: Option<i64>,
    pub gtid_from_hostgroup: Option<i64>,
    pub log: Option<i64>,
    pub apply: i64,
    pub attributes: String,
    pub comment: Option<String>,
}

impl Default for RuleRow {
    fn default() -> Self {
        Self {
            rule_id: 0,
            active: 0,
            username: None,
            schemaname: None,
            flagIN: 0,
            client_addr: None,
            proxy_addr: None,
            proxy_port: None,
            digest: None,
            match_digest: None,
            match_pattern: None,
            negate_match_pattern: 0,
            re_modifiers: Some("CASELESS".into()),
            flagOUT: None,
            replace_pattern: None,
            destination_hostgroup: None,
            cache_ttl: None,
            cache_empty_result: None,
            cache_timeout: None,
            reconnect: None,
            timeout: None,
            retries: None,
            delay: None,
            next_query_flagIN: None,
            mirror_flagOUT: None,
            mirror_hostgroup: None,
            error_msg: None,
            OK_msg: None,
            sticky_conn: None,
            multiplex: None,
            gtid_from_hostgroup: None,
            log: None,
            apply: 0,
            attributes: String::new(),
            comment: None,
        }
    }
}

/// `mysql_query_rewrite`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RewriteRow {
    pub rewrite_id: i64,
    pub active: i64,
    pub username: Option<String>,
    pub schemaname: Option<String>,
    pub pattern: String,
    pub replacement: String,
    pub comment: Option<String>,
}

/// `mysql_query_rules_fast_routing`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FastRoutingRow {
    pub username: String,
    pub schemaname: String,
    pub flagIN: i64,
    pub destination_hostgroup: i64,
    pub comment: String,
}

/// `mysql_hostgroup_attributes`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostgroupAttributesRow {
    pub hostgroup_id: i64,
    pub max_num_online_servers: i64,
    pub autocommit: i64,
    pub free_connections_pct: i64,
    pub init_connect: String,
    pub multiplex: i64,
    pub connection_warming: i64,
    pub throttle_connections_per_sec: i64,
    pub ignore_session_variables: String,
    pub hostgroup_settings: String,
    pub servers_defaults: String,
    pub comment: String,
}

impl Default for HostgroupAttributesRow {
    fn default() -> Self {
        Self {
            hostgroup_id: 0,
            max_num_online_servers: 1_000_000,
            autocommit: -1,
            free_connections_pct: 10,
            init_connect: String::new(),
            multiplex: 1,
            connection_warming: 0,
            throttle_connections_per_sec: 1_000_000,
            ignore_session_variables: String::new(),
            hostgroup_settings: String::new(),
            servers_defaults: String::new(),
            comment: String::new(),
        }
    }
}

/// `mysql_servers_ssl_params`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SslParamsRow {
    pub hostname: String,
    pub port: i64,
    pub username: String,
    pub ssl_ca: String,
    pub ssl_cert: String,
    pub ssl_key: String,
    pub ssl_capath: String,
    pub ssl_crl: String,
    pub ssl_crlpath: String,
    pub ssl_cipher: String,
    pub tls_version: String,
    pub comment: String,
}

impl Default for SslParamsRow {
    fn default() -> Self {
        Self {
            hostname: String::new(),
            port: 3306,
            username: String::new(),
            ssl_ca: String::new(),
            ssl_cert: String::new(),
            ssl_key: String::new(),
            ssl_capath: String::new(),
            ssl_crl: String::new(),
            ssl_crlpath: String::new(),
            ssl_cipher: String::new(),
            tls_version: String::new(),
            comment: String::new(),
        }
    }
}

/// `mysql_firewall_whitelist_users`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirewallUserRow {
    pub active: i64,
    pub username: String,
    pub client_address: String,
    pub mode: String,
    pub comment: String,
}

impl Default for FirewallUserRow {
    fn default() -> Self {
        let text = String::new;
        Self {
            active: 1,
            username: text(),
            client_address: text(),
            mode: "OFF".into(),
            comment: text(),
        }
    }
}

/// `mysql_firewall_whitelist_rules`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirewallRuleRow {
    pub active: i64,
    pub username: String,
    pub client_address: String,
    pub schemaname: String,
    pub flagIN: i64,
    pub digest: String,
    pub comment: String,
}

impl Default for FirewallRuleRow {
    fn default() -> Self {
        let text = String::new;
        Self {
            active: 1,
            username: text(),
            client_address: text(),
            schemaname: text(),
            flagIN: 0,
            digest: text(),
            comment: text(),
        }
    }
}

/// `mysql_firewall_whitelist_sqli_fingerprints`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirewallFingerprintRow {
    pub active: i64,
    pub fingerprint: String,
}

impl Default for FirewallFingerprintRow {
    fn default() -> Self {
        Self {
            active: 1,
            fingerprint: String::new(),
        }
    }
}

/// `proxysql_servers`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyRow {
    pub hostname: String,
    pub port: i64,
    pub weight: i64,
    pub comment: String,
}

impl Default for ProxyRow {
    fn default() -> Self {
        Self {
            hostname: String::new(),
            port: 6032,
            weight: 0,
            comment: String::new(),
        }
    }
}

/// `scheduler`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchedulerRow {
    pub id: i64,
    pub active: i64,
    pub interval_ms: i64,
    pub filename: String,
    pub arg1: Option<String>,
    pub arg2: Option<String>,
    pub arg3: Option<String>,
    pub arg4: Option<String>,
    pub arg5: Option<String>,
    pub comment: String,
}

impl Default for SchedulerRow {
    fn default() -> Self {
        Self {
            id: 0,
            active: 1,
            interval_ms: 0,
            filename: String::new(),
            arg1: None,
            arg2: None,
            arg3: None,
            arg4: None,
            arg5: None,
            comment: String::new(),
        }
    }
}

impl SchedulerRow {
    /// Arguments of the program: those before the first NULL, as ProxySQL has it.
    pub fn args(&self) -> impl Iterator<Item = &str> {
        let all = [&self.arg1, &self.arg2, &self.arg3, &self.arg4, &self.arg5];
        all.into_iter().map_while(|arg| arg.as_deref())
    }
}

/// `restapi_routes`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestRouteRow {
    pub id: i64,
    pub active: i64,
    pub timeout_ms: i64,
    pub method: String,
    pub uri: String,
    pub script: String,
    pub comment: String,
}

impl Default for RestRouteRow {
    fn default() -> Self {
        Self {
            id: 0,
            active: 1,
            timeout_ms: 1000,
            method: "GET".to_owned(),
            uri: String::new(),
            script: String::new(),
            comment: String::new(),
        }
    }
}

/// `clickhouse_users`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClickhouseUserRow {
    pub username: String,
    pub password: Option<String>,
    pub active: i64,
    pub max_connections: i64,
}

impl Default for ClickhouseUserRow {
    fn default() -> Self {
        Self {
            username: String::new(),
            password: None,
            active: 1,
            max_connections: 10_000,
        }
    }
}

/// `clickhouse_user_settings`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClickhouseSettingsRow {
    pub username: String,
    pub clickhouse_user: String,
    pub clickhouse_password: String,
    pub database: String,
    pub settings: String,
    pub max_queries: i64,
    pub max_ms: i64,
    pub max_rows: i64,
    pub comment: String,
}
