//! `MYSQL FIREWALL`, and what there is to say of a firewall that does less or more than its rows
//! say.

use super::part::{Outcome, Part, paused};
use super::tables::InForce;
use crate::tables::Module;
use config::{FirewallFingerprintRow, FirewallRuleRow, FirewallUserRow};
use config::{Help, Refusal, Snapshot, Variable};
use std::sync::Arc;

pub(super) struct Firewall;

impl Part for Firewall {
    const MODULE: Module = Module::Firewall;
    type Rows = (
        Vec<FirewallUserRow>,
        Vec<FirewallRuleRow>,
        Vec<FirewallFingerprintRow>,
    );

    fn build(
        next: &mut Snapshot,
        (users, rules, fingerprints): Self::Rows,
        help: &dyn Help,
    ) -> Outcome {
        let (users, rules) = (paused(users, help), paused(rules, help));
        next.firewall = Arc::new(config::Firewall::build(users, rules, fingerprints)?);
        Ok([
            everybody_is_refused(next),
            others_are_counted(next),
            unseen(next),
        ]
        .concat())
    }
}

impl InForce for FirewallUserRow {
    fn in_force(snapshot: &Snapshot) -> impl Iterator<Item = Self> {
        snapshot.firewall.user_rows()
    }
}

impl InForce for FirewallRuleRow {
    const IS_LARGE: bool = true;

    fn in_force(snapshot: &Snapshot) -> impl Iterator<Item = Self> {
        snapshot.firewall.rule_rows()
    }
}

impl InForce for FirewallFingerprintRow {
    fn in_force(snapshot: &Snapshot) -> impl Iterator<Item = Self> {
        snapshot.firewall.fingerprint_rows()
    }
}

/// A firewall that nobody has told anything is easily switched on.
pub(super) fn everybody_is_refused(next: &Snapshot) -> Vec<Refusal> {
    let is_empty =
        next.firewall.user_rows().next().is_none() && next.firewall.rule_rows().next().is_none();
    if !next.variables.mysql_firewall_whitelist_enabled || !is_empty {
        return Vec::new();
    }
    let words = "is true, and the firewall has neither users nor rules in force: every statement of every user is refused".into();
    Vec::from([Refusal {
        table: "global_variables",
        row: String::new(),
        column: "mysql-firewall_whitelist_enabled",
        words,
    }])
}

/// Options with which the statistics have other digests than the rules of the firewall.
pub(super) fn others_are_counted(next: &Snapshot) -> Vec<Refusal> {
    let v = &next.variables;
    if !v.mysql_firewall_whitelist_enabled || v.digest_options().are_as_whole() {
        return Vec::new();
    }
    let notice = |column: &'static str| {
        let variable = Variable::named(column)?;
        let (is, always) = (variable.text(v), variable.default);
        let words = format!(
            "is {is}: the digests of the statistics are not those of the firewall, for which it is always {always}, and rules made of them may allow \
             nothing; LEARN MYSQL FIREWALL, stats_mysql_firewall and EXPLAIN ROUTE have the firewall's"
        );
        (is != always).then(|| Refusal {
            table: "global_variables",
            row: String::new(),
            column,
            words,
        })
    };
    let names = [
        "mysql-query_digests_grouping_limit",
        "mysql-query_digests_groups_grouping_limit",
        "mysql-query_digests_keep_comment",
        "mysql-query_digests_lowercase",
        "mysql-query_digests_no_digits",
        "mysql-query_digests_replace_null",
    ];
    names.into_iter().filter_map(notice).collect()
}

pub(crate) fn of_user(name: &str) -> String {
    format!("username '{name}'")
}

/// Users of the firewall whose statements nobody looks at.
pub(crate) fn unseen(next: &Snapshot) -> Vec<Refusal> {
    let forwarded = |row: &FirewallUserRow| {
        next.users
            .frontend(&row.username)
            .is_some_and(|user| user.fast_forward)
    };
    let rows = next
        .firewall
        .user_rows()
        .filter(|row| !row.mode.eq_ignore_ascii_case("OFF") && forwarded(row));
    let told = rows.map(|row| Refusal {
        table: "mysql_firewall_whitelist_users",
        row: of_user(&row.username),
        column: "mode",
        words: format!(
            "is {}, but the user has fast_forward = 1: the firewall sees none of its statements",
            row.mode
        ),
    });
    told.collect()
}
