//! All that the operator wants, at one moment: what a core works under.

use crate::{Firewall, Proxies, Rewrites, Rules, Servers, Users, Variables};
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
    /// `mysql_query_rewrite`.
    pub rewrites: Arc<Rewrites>,
    /// `mysql_firewall_whitelist_users`, `_rules`, `_sqli_fingerprints`.
    pub firewall: Arc<Firewall>,
    /// `proxysql_servers`: nothing that a core works by.
    pub proxies: Arc<Proxies>,
}

impl Snapshot {
    /// The same for one core alone. Compiled expressions keep scratch memory that is taken and
    /// given back with every match: shared, the cores would pass its cache line around. Everything
    /// else stays shared.
    #[must_use]
    pub fn for_core(&self) -> Self {
        Self {
            rules: Arc::new(self.rules.for_core(&|| ())),
            ..self.clone()
        }
    }

    /// Whether statements must be digested, for the statistics or for a rule. The firewall digests
    /// by itself.
    #[must_use]
    pub fn needs_digests(&self) -> bool {
        let v = &self.variables;
        v.mysql_query_digests || self.rules.needs_digest()
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
