//! Servers that tell what they have executed: without them causal reads go where the writes were made.

use crate::refusal::Notices;
use crate::{LogUse, Refusal, Rules, Servers, Status};
use std::fmt;

impl Servers {
    /// Purposes for which the logs of a hostgroup's servers are followed. They move between the hostgroups of
    /// a topology.
    #[must_use]
    pub fn log_use(&self, hostgroup: u32) -> LogUse {
        let own = |id: u32| {
            let hostgroup = self.hostgroup(id);
            hostgroup.map_or_else(LogUse::default, |one| one.attributes.log_use)
        };
        let topologies = self.topologies().iter().map(|one| one.hostgroups());
        let others = topologies.filter(|all| all.contains(&hostgroup)).flatten();
        others.fold(own(hostgroup), |all, other| all.or(own(other)))
    }

    /// Whether some server of this hostgroup tells what it has executed, or comes there from a hostgroup of
    /// its topology; `None` if there is no server yet.
    fn tells(&self, hostgroup: u32) -> Option<bool> {
        let topologies = self.topologies().iter().map(|one| one.hostgroups());
        let mut own: Vec<_> = topologies
            .filter(|all| all.contains(&hostgroup))
            .flatten()
            .collect();
        own.push(hostgroup);
        let hostgroups = own.iter().filter_map(|id| self.hostgroup(*id));
        let mut rows = hostgroups
            .flat_map(|one| &one.servers)
            .filter(|row| row.status != Status::OfflineHard)
            .peekable();
        rows.peek()?;
        Some(self.log_use(hostgroup).causal_reads || rows.any(|row| row.gtid_port != 0))
    }

    /// Rules and read/write splits whose reads must see writes that were made in another hostgroup.
    #[must_use]
    pub fn causal_reads(&self, rules: &Rules) -> Vec<CausalReads> {
        let of_rules = rules.chain().iter().filter_map(|rule| {
            Some(CausalReads {
                of: CausedBy::Rule(rule.rule_id),
                reads: rule.destination_hostgroup?,
                writes: rule.gtid_from_hostgroup?,
            })
        });
        let mut hostgroups: Vec<_> = self.iter().collect();
        hostgroups.sort_unstable_by_key(|hostgroup| hostgroup.id);
        let of_splits = hostgroups.into_iter().filter_map(|hostgroup| {
            let split = hostgroup.attributes.split.as_ref();
            let split = split.filter(|_| hostgroup.attributes.reads_see_writes)?;
            Some(CausalReads {
                of: CausedBy::Split(hostgroup.id),
                reads: split.read_hostgroup,
                writes: hostgroup.id,
            })
        });
        let all = of_rules.chain(of_splits);
        all.filter(|one| one.reads != one.writes).collect()
    }

    /// Notices about rules, and about read/write splits, whose reads can never be known to be fresh elsewhere
    /// than where the writes were made.
    #[must_use]
    pub fn without_feeds(&self, rules: &Rules) -> Vec<Refusal> {
        let mut of_rules = Notices::of("mysql_query_rules");
        let mut of_splits = Notices::of("mysql_hostgroup_attributes");
        for CausalReads { of, reads, writes } in self.causal_reads(rules) {
            if self.tells(reads) != Some(false) {
                continue;
            }
            let words = format!(
                "has reads of sessions that wrote go to hostgroup {writes}: no server of hostgroup {reads} tells what it has executed \
                 (neither by gtid_port nor by causal_reads in hostgroup_settings)"
            );
            match of {
                CausedBy::Rule(id) => {
                    of_rules.add(|| format!("rule_id {id}"), "gtid_from_hostgroup", &words);
                }
                CausedBy::Split(id) => {
                    of_splits.add(
                        || format!("hostgroup_id {id}"),
                        "hostgroup_settings",
                        &words,
                    );
                }
            }
        }
        let mut all = of_rules.into_list();
        all.extend(of_splits.into_list());
        all
    }
}

/// Reads that must see writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CausalReads {
    /// Reason why they must.
    pub of: CausedBy,
    /// Hostgroup that they go to,
    pub reads: u32,
    /// and the one where the writes are made.
    pub writes: u32,
}

/// Setting by which reads see writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CausedBy {
    /// `gtid_from_hostgroup` of the rule with this number.
    Rule(i64),
    /// `read_after_write` of this hostgroup.
    Split(u32),
}

impl fmt::Display for CausedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule(id) => write!(f, "rule {id}"),
            Self::Split(id) => write!(f, "the split of hostgroup {id}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HostgroupAttributesRow, RuleRow, ServerRow, Variables};

    fn notices(gtid_port: i64, settings: &str) -> String {
        let row = |hostgroup_id| ServerRow {
            hostgroup_id,
            hostname: "a".into(),
            gtid_port,
            ..ServerRow::default()
        };
        let attributes = |hostgroup_id, hostgroup_settings: &str| HostgroupAttributesRow {
            hostgroup_id,
            hostgroup_settings: hostgroup_settings.into(),
            ..HostgroupAttributesRow::default()
        };
        let split = r#"{"read_hostgroup": 1, "read_after_write": "gtid"}"#;
        let attributes = vec![attributes(0, split), attributes(1, settings)];
        let servers = Servers::build(vec![row(0), row(1)], attributes, Vec::new()).unwrap();
        let rule = RuleRow {
            rule_id: 7,
            active: 1,
            destination_hostgroup: Some(1),
            gtid_from_hostgroup: Some(0),
            ..RuleRow::default()
        };
        let variables = Variables::default();
        let rules = Rules::build(vec![rule], Vec::new(), &variables).unwrap();
        let all = servers.without_feeds(&rules);
        all.iter().map(|one| format!("{one}\n")).collect()
    }

    #[test]
    fn reads_that_nobody_can_know_to_be_fresh_are_named() {
        let said = notices(0, "");
        let words = "has reads of sessions that wrote go to hostgroup 0: no server of hostgroup 1 tells what it has executed \
                     (neither by gtid_port nor by causal_reads in hostgroup_settings)";
        let wanted = format!(
            "mysql_query_rules (rule_id 7): gtid_from_hostgroup {words}\n\
             mysql_hostgroup_attributes (hostgroup_id 0): hostgroup_settings {words}\n"
        );
        assert_eq!(said, wanted);
        assert_eq!(notices(6020, ""), "");
        assert_eq!(notices(0, r#"{"causal_reads": "binlog"}"#), "");
        let none = Servers::default();
        assert!(none.without_feeds(&Rules::default()).is_empty());
    }
}
