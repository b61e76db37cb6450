//! Texts by which ProxySQLs fetch modules from each other, version by version, and the columns of
//! the answers. Where they are from stands in `docs/features/proxysql-cluster.md`.

use crate::tables::Module;
use config::{Refusal, Variables};

/// Language of ProxySQLs: which texts and checksums a version has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// 2.5: servers and what monitors do with them are one module.
    Early,
    /// 2.6 to 3.0: what operators have loaded is `mysql_servers_v2`.
    Late,
}

impl Dialect {
    /// Language of the version that `@@version` tells; none if it is not known.
    pub(crate) fn of(version: &str) -> Option<Self> {
        let mut numbers = version.split(['.', '-']).map(str::parse::<u32>);
        let (major, minor) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
        match (major, minor) {
            (2, 5) => Some(Self::Early),
            (2, 6..) | (3, 0) => Some(Self::Late),
            _ => None,
        }
    }

    /// The name under which servers as operators wrote them are announced.
    pub(crate) fn name(self, module: Module, ours: &'static str) -> &'static str {
        match (module, self) {
            (Module::Servers, Self::Late) => "mysql_servers_v2",
            _ => ours,
        }
    }

    /// The results of a module, in the order in which they are hashed; empty if ProxySQL does not
    /// share it.
    pub(crate) fn asked(self, module: Module) -> &'static [Asked] {
        match (module, self) {
            (Module::Rules, _) => &RULES,
            (Module::Servers, Self::Early) => &EARLY_SERVERS,
            (Module::Servers, Self::Late) => &LATE_SERVERS,
            (Module::Users, _) => &USERS,
            (Module::ProxysqlServers, _) => &PROXIES,
            (Module::MysqlVariables, _) => &MYSQL_VARIABLES,
            (Module::AdminVariables, _) => &ADMIN_VARIABLES,
            _ => &[],
        }
    }
}

/// Refuses a version of ProxySQL that nobody here can speak as.
pub(crate) fn check_version(variables: &Variables) -> Result<(), Refusal> {
    let version = &*variables.admin_cluster_proxysql_version;
    if version.is_empty() || Dialect::of(version).is_some() {
        return Ok(());
    }
    Err(Refusal {
        table: "global_variables",
        row: String::new(),
        column: "admin-cluster_proxysql_version",
        words: format!(
            "is '{version}': it must be what SELECT @@version says on a ProxySQL from 2.5 to 3.0, or empty"
        ),
    })
}

/// A result that ProxySQLs fetch from each other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    /// The table that is declared here; empty for variables.
    pub(crate) table: &'static str,
    /// Columns of the answer.
    pub(crate) columns: &'static [&'static str],
    /// So many of the columns give the order of the rows; 0 for any.
    pub(crate) ordered: usize,
    verb: &'static str,
    /// Columns as the text names them, if it names others than it gets.
    named: &'static str,
    from: &'static str,
}

impl Asked {
    /// The text that asks for it.
    pub(crate) fn text(&self) -> String {
        let columns = match self.named {
            "" => self.columns.join(", "),
            named => named.to_owned(),
        };
        let mut text = format!("{} {columns} FROM {}", self.verb, self.from);
        if self.ordered > 0 {
            text += " ORDER BY ";
            text += &self.columns[..self.ordered].join(", ");
        }
        text
    }
}

/// Variables of the admin port that every ProxySQL has for itself.
pub(crate) const OWN_ADMIN: [&str; 6] = [
    "admin-mysql_ifaces",
    "admin-restapi_port",
    "admin-telnet_admin_ifaces",
    "admin-telnet_stats_ifaces",
    "admin-web_port",
    "admin-pgsql_ifaces",
];
/// Variables of MySQL that every ProxySQL has for itself.
pub(crate) const OWN_MYSQL: [&str; 2] = ["mysql-threads", "mysql-interfaces"];

const VARIABLE: &[&str] = &["variable_name", "variable_value"];

const fn variables(from: &'static str) -> Asked {
    Asked {
        table: "",
        columns: VARIABLE,
        ordered: 1,
        verb: "SELECT",
        named: "*",
        from,
    }
}

const MYSQL_VARIABLES: [Asked; 1] = [variables(
    "runtime_global_variables WHERE variable_name LIKE 'mysql-%' AND variable_name NOT IN ('mysql-threads') AND variable_name NOT IN ('mysql-interfaces')",
)];
const ADMIN_VARIABLES: [Asked; 1] = [variables(
    "runtime_global_variables WHERE variable_name LIKE 'admin-%' AND variable_name NOT IN \
     ('admin-mysql_ifaces','admin-restapi_port','admin-telnet_admin_ifaces','admin-telnet_stats_ifaces','admin-web_port','admin-pgsql_ifaces')",
)];

const fn copy(
    table: &'static str,
    from: &'static str,
    columns: &'static [&'static str],
    ordered: usize,
) -> Asked {
    Asked {
        table,
        columns,
        ordered,
        verb: "PROXY_SELECT",
        named: "",
        from,
    }
}

const PROXIES: [Asked; 1] = [Asked {
    table: "proxysql_servers",
    columns: &["hostname", "port", "weight", "comment"],
    ordered: 2,
    verb: "SELECT",
    named: "",
    from: "runtime_proxysql_servers",
}];

#[rustfmt::skip]
const USERS: [Asked; 1] = [copy("mysql_users", "runtime_mysql_users", &[
    "username", "password", "use_ssl", "default_hostgroup", "default_schema", "schema_locked", "transaction_persistent",
    "fast_forward", "backend", "frontend", "max_connections", "attributes", "comment",
], 0)];

#[rustfmt::skip]
const RULES: [Asked; 2] = [
    copy("mysql_query_rules", "runtime_mysql_query_rules", &[
        "rule_id", "username", "schemaname", "flagIN", "client_addr", "proxy_addr", "proxy_port", "digest", "match_digest",
        "match_pattern", "negate_match_pattern", "re_modifiers", "flagOUT", "replace_pattern", "destination_hostgroup",
        "cache_ttl", "cache_empty_result", "cache_timeout", "reconnect", "timeout", "retries", "delay", "next_query_flagIN",
        "mirror_flagOUT", "mirror_hostgroup", "error_msg", "ok_msg", "sticky_conn", "multiplex", "gtid_from_hostgroup", "log",
        "apply", "attributes", "comment",
    ], 1),
    copy("mysql_query_rules_fast_routing", "runtime_mysql_query_rules_fast_routing", &[
        "username", "schemaname", "flagIN", "destination_hostgroup", "comment",
    ], 3),
];

#[rustfmt::skip]
const SERVER: &[&str] = &[
    "hostgroup_id", "hostname", "port", "gtid_port", "status", "weight", "compression", "max_connections",
    "max_replication_lag", "use_ssl", "max_latency_ms", "comment",
];

/// Servers where monitors have moved them. Here they are as operators wrote them, also for who asks
/// by this text.
pub(crate) const RUNTIME_SERVERS: Asked = copy(
    "mysql_servers",
    "runtime_mysql_servers WHERE status<>'OFFLINE_HARD'",
    SERVER,
    3,
);
const SERVERS_V2: Asked = copy(
    "mysql_servers",
    "mysql_servers_v2 WHERE status<>'OFFLINE_HARD'",
    SERVER,
    3,
);
const REPLICATION: Asked = Asked {
    table: "mysql_replication_hostgroups",
    columns: &[
        "writer_hostgroup",
        "reader_hostgroup",
        "check_type",
        "comment",
    ],
    ordered: 1,
    verb: "PROXY_SELECT",
    named: "writer_hostgroup, reader_hostgroup, comment",
    from: "runtime_mysql_replication_hostgroups",
};
#[rustfmt::skip]
const QUARTET: &[&str] = &[
    "writer_hostgroup", "backup_writer_hostgroup", "reader_hostgroup", "offline_hostgroup", "active", "max_writers",
    "writer_is_also_reader", "max_transactions_behind", "comment",
];
const GROUPS: Asked = copy(
    "mysql_group_replication_hostgroups",
    "runtime_mysql_group_replication_hostgroups",
    QUARTET,
    1,
);
const GALERA: Asked = copy(
    "mysql_galera_hostgroups",
    "runtime_mysql_galera_hostgroups",
    QUARTET,
    1,
);
#[rustfmt::skip]
const AURORA: Asked = copy("mysql_aws_aurora_hostgroups", "runtime_mysql_aws_aurora_hostgroups", &[
    "writer_hostgroup", "reader_hostgroup", "active", "aurora_port", "domain_name", "max_lag_ms", "check_interval_ms",
    "check_timeout_ms", "writer_is_also_reader", "new_reader_weight", "add_lag_ms", "min_lag_ms", "lag_num_checks", "comment",
], 1);
#[rustfmt::skip]
const EARLY_ATTRIBUTES: Asked = copy("mysql_hostgroup_attributes", "runtime_mysql_hostgroup_attributes", &[
    "hostgroup_id", "max_num_online_servers", "autocommit", "free_connections_pct", "init_connect", "multiplex",
    "connection_warming", "throttle_connections_per_sec", "ignore_session_variables", "comment",
], 1);
#[rustfmt::skip]
const LATE_ATTRIBUTES: Asked = copy("mysql_hostgroup_attributes", "runtime_mysql_hostgroup_attributes", &[
    "hostgroup_id", "max_num_online_servers", "autocommit", "free_connections_pct", "init_connect", "multiplex",
    "connection_warming", "throttle_connections_per_sec", "ignore_session_variables", "hostgroup_settings", "servers_defaults",
    "comment",
], 1);
#[rustfmt::skip]
const SSL: Asked = copy("mysql_servers_ssl_params", "runtime_mysql_servers_ssl_params", &[
    "hostname", "port", "username", "ssl_ca", "ssl_cert", "ssl_key", "ssl_capath", "ssl_crl", "ssl_crlpath", "ssl_cipher",
    "tls_version", "comment",
], 3);

const EARLY_SERVERS: [Asked; 6] = [
    RUNTIME_SERVERS,
    REPLICATION,
    GROUPS,
    GALERA,
    AURORA,
    EARLY_ATTRIBUTES,
];
const LATE_SERVERS: [Asked; 7] = [
    SERVERS_V2,
    REPLICATION,
    GROUPS,
    GALERA,
    AURORA,
    LATE_ATTRIBUTES,
    SSL,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts;

    #[test]
    fn versions_have_the_language_of_their_time() {
        for (version, dialect) in [
            ("2.5.5-10-g195bd70", Some(Dialect::Early)),
            ("2.5.5-percona-1.1", Some(Dialect::Early)),
            ("2.6.0-15-g1a2b3c4", Some(Dialect::Late)),
            ("2.7.1-0-g2726c27", Some(Dialect::Late)),
            ("3.0.1-16-gabcdef0-Enterprise", Some(Dialect::Late)),
            ("2.4.8-0-g0000000", None),
            ("3.1.0-0-g0000000", None),
            ("8.0.36", None),
            ("", None),
            ("two.five", None),
        ] {
            assert_eq!(Dialect::of(version), dialect, "{version}");
        }
    }

    #[test]
    fn texts_are_those_that_proxysql_says() {
        let text = |dialect: Dialect, module, at: usize| dialect.asked(module)[at].text();
        assert_eq!(
            text(Dialect::Late, Module::Servers, 0),
            "PROXY_SELECT hostgroup_id, hostname, port, gtid_port, status, weight, compression, max_connections, max_replication_lag, use_ssl, max_latency_ms, comment FROM mysql_servers_v2 WHERE status<>'OFFLINE_HARD' ORDER BY hostgroup_id, hostname, port"
        );
        assert_eq!(
            text(Dialect::Early, Module::Servers, 1),
            "PROXY_SELECT writer_hostgroup, reader_hostgroup, comment FROM runtime_mysql_replication_hostgroups ORDER BY writer_hostgroup"
        );
        assert_eq!(
            text(Dialect::Late, Module::Users, 0),
            "PROXY_SELECT username, password, use_ssl, default_hostgroup, default_schema, schema_locked, transaction_persistent, fast_forward, backend, frontend, max_connections, attributes, comment FROM runtime_mysql_users"
        );
        assert_eq!(
            text(Dialect::Late, Module::ProxysqlServers, 0),
            "SELECT hostname, port, weight, comment FROM runtime_proxysql_servers ORDER BY hostname, port"
        );
        assert_eq!(
            text(Dialect::Late, Module::MysqlVariables, 0),
            "SELECT * FROM runtime_global_variables WHERE variable_name LIKE 'mysql-%' AND variable_name NOT IN ('mysql-threads') AND variable_name NOT IN ('mysql-interfaces') ORDER BY variable_name"
        );
    }

    #[test]
    fn columns_are_some_of_those_that_are_declared_here() {
        for module in Module::ALL {
            for asked in [Dialect::Early, Dialect::Late]
                .into_iter()
                .flat_map(|dialect| dialect.asked(*module))
                .filter(|asked| !asked.table.is_empty())
            {
                let of_part = parts::of(*module).unwrap().tables();
                let table = of_part.iter().find(|t| t.name == asked.table).unwrap();
                for column in asked.columns {
                    let is_it = |ours: &&&str| ours.eq_ignore_ascii_case(column);
                    assert!(table.columns.iter().any(|ours| is_it(&ours)), "{column}");
                }
            }
        }
    }
}
