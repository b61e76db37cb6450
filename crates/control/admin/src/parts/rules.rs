//! `MYSQL QUERY RULES`: rules, fast routing and templates of statements.

use super::part::{Outcome, Part};
use super::tables::InForce;
use crate::tables::Module;
use config::{FastRoutingRow, Help, RewriteRow, Rewrites, RuleRow, Snapshot};
use std::sync::Arc;

pub(super) struct Rules;

impl Part for Rules {
    const MODULE: Module = Module::Rules;
    type Rows = (Vec<RuleRow>, Vec<FastRoutingRow>, Vec<RewriteRow>);

    fn build(next: &mut Snapshot, (rules, fast, rewrites): Self::Rows, help: &dyn Help) -> Outcome {
        let rules = config::Rules::build_with_help(&next.rules, rules, fast, &next.variables, help);
        let rewrites = Rewrites::build(rewrites, next.variables.mysql_query_rewrite_check);
        let (rules, rewrites) = match (rules, rewrites) {
            (Ok(rules), Ok(rewrites)) => (rules, rewrites),
            (rules, rewrites) => {
                let refused = [rules.err(), rewrites.err()];
                return Err(refused.into_iter().flatten().flatten().collect());
            }
        };
        let mut notices = rules.notices().to_vec();
        // Before there are scripts, rules are read that name them.
        if !next.scripts.rows().is_empty() {
            notices.extend(next.scripts.missed_by(&rules));
        }
        notices.extend(next.servers.without_feeds(&rules));
        (next.rules, next.rewrites) = (Arc::new(rules), Arc::new(rewrites));
        Ok(notices)
    }
}

impl InForce for RuleRow {
    fn in_force(snapshot: &Snapshot) -> impl Iterator<Item = Self> {
        snapshot.rules.rows().cloned()
    }
}

impl InForce for FastRoutingRow {
    const IS_LARGE: bool = true;

    fn in_force(snapshot: &Snapshot) -> impl Iterator<Item = Self> {
        snapshot.rules.fast().rows()
    }
}

impl InForce for RewriteRow {
    fn in_force(snapshot: &Snapshot) -> impl Iterator<Item = Self> {
        snapshot.rewrites.rows().cloned()
    }
}
