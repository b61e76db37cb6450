//! Modules that proxies share.

use crate::tables::Module;
use config::Variables;

/// Proxies of other versions may know other tables.
pub(crate) const MILLRACE: &str = env!("CARGO_PKG_VERSION");

/// A module that proxies share.
pub(crate) struct Subject {
    /// As `runtime_checksums_values` names it.
    pub(crate) name: &'static str,
    pub(crate) module: Module,
    /// Looks that must differ before it is taken over.
    pub(super) enough: fn(&Variables) -> u64,
    /// Whether what was taken over is saved.
    pub(super) saves: fn(&Variables) -> bool,
    /// Whether it is shared at all.
    pub(super) counts: fn(&Variables) -> bool,
}

/// All of them, in the order in which one that was only started takes them over: servers come
/// before the rules that name their hostgroups, and a variable that switches the firewall on behind
/// the firewall's rules. Later ones come in the order in which they were loaded. The firewall is
/// ProxySQL's to each proxy alone; here it goes by the variables of the rules, and so do sharded tables.
pub(crate) const SUBJECTS: [Subject; 8] = [
    Subject {
        name: "mysql_servers",
        module: Module::Servers,
        enough: |v| v.admin_cluster_mysql_servers_diffs_before_sync,
        saves: |v| v.admin_cluster_mysql_servers_save_to_disk,
        counts: |v| v.admin_checksum_mysql_servers,
    },
    Subject {
        name: "mysql_query_rules",
        module: Module::Rules,
        enough: |v| v.admin_cluster_mysql_query_rules_diffs_before_sync,
        saves: |v| v.admin_cluster_mysql_query_rules_save_to_disk,
        counts: |v| v.admin_checksum_mysql_query_rules,
    },
    Subject {
        name: "mysql_firewall",
        module: Module::Firewall,
        enough: |v| v.admin_cluster_mysql_query_rules_diffs_before_sync,
        saves: |v| v.admin_cluster_mysql_query_rules_save_to_disk,
        counts: |v| v.admin_checksum_mysql_query_rules,
    },
    Subject {
        name: "mysql_shards",
        module: Module::Shards,
        enough: |v| v.admin_cluster_mysql_query_rules_diffs_before_sync,
        saves: |v| v.admin_cluster_mysql_query_rules_save_to_disk,
        counts: |v| v.admin_checksum_mysql_query_rules,
    },
    Subject {
        name: "mysql_users",
        module: Module::Users,
        enough: |v| v.admin_cluster_mysql_users_diffs_before_sync,
        saves: |v| v.admin_cluster_mysql_users_save_to_disk,
        counts: |v| v.admin_checksum_mysql_users,
    },
    Subject {
        name: "mysql_variables",
        module: Module::MysqlVariables,
        enough: |v| v.admin_cluster_mysql_variables_diffs_before_sync,
        saves: |v| v.admin_cluster_mysql_variables_save_to_disk,
        counts: |v| v.admin_checksum_mysql_variables,
    },
    Subject {
        name: "admin_variables",
        module: Module::AdminVariables,
        enough: |v| v.admin_cluster_admin_variables_diffs_before_sync,
        saves: |v| v.admin_cluster_admin_variables_save_to_disk,
        counts: |v| v.admin_checksum_admin_variables,
    },
    Subject {
        name: "proxysql_servers",
        module: Module::ProxysqlServers,
        enough: |v| v.admin_cluster_proxysql_servers_diffs_before_sync,
        saves: |v| v.admin_cluster_proxysql_servers_save_to_disk,
        counts: |_| true,
    },
];

/// The index in [`SUBJECTS`].
pub(crate) type At = usize;

/// The place of a module in [`SUBJECTS`], if proxies share it.
pub(super) fn at(module: Module) -> Option<At> {
    SUBJECTS.iter().position(|subject| subject.module == module)
}

/// So many looks must have found another checksum.
pub(super) fn enough(at: At, variables: &Variables) -> u64 {
    SUBJECTS
        .get(at)
        .map_or(0, |subject| (subject.enough)(variables))
}
