//! `next_query_flagIN`: which flags rules leave to a session's next statement, and to whose.

use super::Rule;
use std::sync::Arc;

/// Flags other than 0, with which every session begins.
#[derive(Debug, Default)]
pub(super) struct NextFlags {
    /// In order, each once.
    flags: Box<[u32]>,
    /// Whose statements may begin with one, in order, each once.
    users: Box<[Arc<str>]>,
    /// A rule that leaves one is for any user.
    everybody: bool,
}

impl NextFlags {
    pub(super) fn of(chain: &[Rule]) -> Self {
        let leaving = || {
            chain
                .iter()
                .filter(|rule| rule.next_flag_in.is_some_and(|flag| flag != 0))
        };
        let mut flags: Vec<_> = leaving().filter_map(|rule| rule.next_flag_in).collect();
        let mut users: Vec<_> = leaving().filter_map(|rule| rule.username.clone()).collect();
        flags.sort_unstable();
        flags.dedup();
        users.sort_unstable();
        users.dedup();
        Self {
            flags: flags.into(),
            users: users.into(),
            everybody: leaving().any(|rule| rule.username.is_none()),
        }
    }

    pub(super) fn has(&self, flag: u32) -> bool {
        self.flags.binary_search(&flag).is_ok()
    }

    pub(super) fn may_be_of(&self, user: &str) -> bool {
        self.everybody
            || self
                .users
                .binary_search_by(|name| (**name).cmp(user))
                .is_ok()
    }
}

#[cfg(test)]
mod tests {
    use crate::{RuleRow, Rules, Variables};

    #[test]
    fn rules_say_which_flags_they_leave_and_to_whom() {
        let rule = |rule_id, next, username: Option<&str>, active| RuleRow {
            rule_id,
            active,
            next_query_flagIN: next,
            username: username.map(Into::into),
            ..RuleRow::default()
        };
        let rules = |rows: Vec<RuleRow>| Rules::build(rows, [], &Variables::default()).unwrap();
        let some = rules(vec![
            rule(1, Some(7), Some("b"), 1),
            rule(2, Some(5), Some("a"), 1),
            rule(3, Some(0), Some("c"), 1),
            rule(4, Some(6), None, 0),
            rule(5, None, None, 1),
        ]);
        assert_eq!(
            [0, 5, 6, 7].map(|flag| some.leaves_flag(flag)),
            [false, true, false, true]
        );
        assert_eq!(
            ["", "a", "b", "c"].map(|user| some.may_leave_a_flag_to(user)),
            [false, true, true, false]
        );
        let any = rules(vec![
            rule(1, Some(7), Some("b"), 1),
            rule(2, Some(7), None, 1),
        ]);
        assert!(any.leaves_flag(7) && any.may_leave_a_flag_to("anybody"));
        assert!(!Rules::default().may_leave_a_flag_to("a"));
    }
}
