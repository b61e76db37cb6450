//! All that the operator wants, at one moment: what a core works under.

use crate::{
    ClickhouseUsers, Firewall, Proxies, RestRoutes, Rewrites, Rules, Schedule, Scripts, Servers,
    Users, Variables,
};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Immutable, and cheap to clone: loading one module makes a new snapshot that shares the other
/// parts.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// Grows by one with every LOAD that changed something.
    pub generation: u64,
    /// `global_variables`.
    pub variables: Arc<Variables>,
    /// `mysql_users`.
    pub users: Arc<Users>,
    /// `mysql_servers`, `mysql_hostgroup_attributes`, `mysql_servers_ssl_params`.
    pub servers: Arc<Servers>,
    /// `mysql_query_rules`, `mysql_query_rules_fast_routing`.
    pub rules: Arc<Rules>,
    /// `mysql_shard_tables`, `mysql_shard_partitions`, `mysql_shard_lookups`.
    pub shards: Arc<shards::Map>,
    /// `mysql_query_rewrite`.
    pub rewrites: Arc<Rewrites>,
    /// `mysql_scripts`.
    pub scripts: Arc<Scripts>,
    /// `mysql_firewall_whitelist_users`, `_rules`, `_sqli_fingerprints`.
    pub firewall: Arc<Firewall>,
    /// `proxysql_servers`: nothing that a core works by.
    pub proxies: Arc<Proxies>,
    /// `scheduler`: nothing that a core works by.
    pub schedule: Arc<Schedule>,
    /// `restapi_routes`: nothing that a core works by.
    pub rest: Arc<RestRoutes>,
    /// `clickhouse_users`, `clickhouse_user_settings`: nothing that a core works by.
    pub clickhouse: Arc<ClickhouseUsers>,
}

impl Snapshot {
    /// Copies the snapshot for one core alone. Compiled expressions keep scratch memory that is
    /// taken and given back with every match: shared, the cores would pass its cache line around.
    /// Everything else stays shared.
    #[must_use]
    pub fn for_core(&self) -> Self {
        Self {
            rules: Arc::new(self.rules.for_core(&|| ())),
            ..self.clone()
        }
    }

    /// Hostgroups on which a transaction may have a branch: those of partitions, and the own ones of users
    /// whose transactions have branches.
    #[must_use]
    pub fn hostgroups_of_branches(&self) -> BTreeSet<u32> {
        let homes = self.shards.tables().flat_map(|table| &table.homes);
        let mut all: BTreeSet<u32> = homes.map(|home| home.hostgroup).collect();
        if !all.is_empty() {
            all.extend(self.users.with_branches());
        }
        all
    }

    /// Whether statements must be digested, for the statistics or for a rule. The firewall digests
    /// by itself.
    #[must_use]
    pub fn needs_digests(&self) -> bool {
        let v = &self.variables;
        v.mysql_query_digests
            || self.rules.needs_digest()
            || !v.mysql_traces_endpoint.is_empty()
            || self.has_priorities()
    }

    /// Whether somebody's statements are sent at a pace: a user's, a hostgroup's, or what a rule
    /// matches.
    #[must_use]
    pub fn has_rates(&self) -> bool {
        let of_group = |group: &crate::Hostgroup| group.attributes.statements_per_sec.is_some();
        self.users.has_rates()
            || self.servers.iter().any(of_group)
            || self
                .rules
                .chain()
                .iter()
                .any(|rule| rule.statements_per_sec.is_some())
    }

    /// Whether statements wait by priority and cost in some hostgroup.
    #[must_use]
    pub fn has_priorities(&self) -> bool {
        let by_priority =
            |group: &crate::Hostgroup| group.attributes.admission.order == crate::Order::Priority;
        self.servers.iter().any(by_priority)
    }

    /// Whether the order of coming, and time, are not all that decides who waits for some hostgroup.
    #[must_use]
    pub fn has_admission(&self) -> bool {
        let is_used = |group: &crate::Hostgroup| group.attributes.admission.is_used();
        self.servers.iter().any(is_used)
    }

    /// Which statements are traced, if any.
    #[must_use]
    pub fn traces(&self) -> Option<crate::Traces> {
        let v = &self.variables;
        (!v.mysql_traces_endpoint.is_empty()).then(|| crate::Traces {
            to: Arc::from(&*v.mysql_traces_endpoint),
            per_million: v.mysql_traces_per_million,
            slow: (v.mysql_traces_slow_ms > 0)
                .then(|| std::time::Duration::from_millis(v.mysql_traces_slow_ms)),
            parents: v.mysql_traces_parent,
        })
    }

    /// Whether a statement whose rules do not say is written to the events log; `None` if none is
    /// at all.
    #[must_use]
    pub fn logs(&self) -> Option<bool> {
        let usual = self.variables.mysql_eventslog_default_log == 1;
        let some = usual || self.rules.chain().iter().any(|rule| rule.log == Some(true));
        self.variables.events_log().filter(|_| some).map(|_| usual)
    }
}

/// Statements a second, at most.
pub(crate) const RATE_MAX: u32 = 1_000_000;

/// A rate, as an attribute has it; what is wrong is told in words that follow its name.
pub(crate) fn rate(value: &serde_json::Value) -> Result<u32, String> {
    let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
    number
        .filter(|number| (1..=RATE_MAX).contains(number))
        .ok_or_else(|| format!("must be from 1 to {RATE_MAX}; {value} is not"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A49: rules and fast routing take no lock, and what is big is shared by all cores.
    #[test]
    fn a_core_has_expressions_of_its_own_and_shares_the_rest() {
        let all = Snapshot::default();
        let core = all.for_core();
        assert!(Arc::ptr_eq(&all.users, &core.users));
        assert!(!Arc::ptr_eq(&all.rules, &core.rules));
        assert!(std::ptr::eq(all.rules.fast(), core.rules.fast()));
    }
}
