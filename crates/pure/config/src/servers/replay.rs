//! `hostgroup_settings.transaction_replay` and what belongs to it.

use std::sync::Arc;

/// How transactions of a hostgroup are run again where their server is lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replay {
    /// `transaction_replay_max_size`: bytes of statements that are kept of one transaction.
    pub max_size: u32,
    /// `transaction_replay_attempts`: times that one transaction is begun anew.
    pub attempts: u32, // >= 1
    /// `transaction_replay_timeout_ms`: milliseconds from the loss until all has been run again.
    pub timeout_ms: u32, // >= 1
    /// `transaction_replay_retry_on_deadlock`: the victim of a deadlock is run again, too.
    pub retry_on_deadlock: bool,
    /// `transaction_replay_checksum`.
    pub checksum: Checksum,
    /// `transaction_replay_marks`: the table in which each COMMIT leaves a mark, as SQL has it
    /// (`` `schema`.`table` ``).
    pub marks: Option<Arc<str>>,
}

/// The name of a table as SQL has it. `None` if this is no `schema.table` of letters, digits, `_` and `$`.
pub(super) fn quoted(table: &str) -> Option<Arc<str>> {
    let plain = |name: &str| {
        let may_be = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$');
        (1..=64).contains(&name.len()) && name.bytes().all(may_be)
    };
    let (schema, name) = table.split_once('.')?;
    (plain(schema) && plain(name)).then(|| format!("`{schema}`.`{name}`").into())
}

impl Default for Replay {
    fn default() -> Self {
        Self {
            max_size: 1 << 20,
            attempts: 5,
            timeout_ms: 30_000,
            retry_on_deadlock: false,
            checksum: Checksum::default(),
            marks: None,
        }
    }
}

/// Parts of two answers that have to be the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Checksum {
    /// All that a client reads.
    #[default]
    Full,
    /// All but the ids of inserts.
    NoInsertId,
    /// Rows and errors.
    ResultOnly,
}

impl Checksum {
    pub(super) fn named(name: &str) -> Option<Self> {
        match name {
            "full" => Some(Self::Full),
            "no_insert_id" => Some(Self::NoInsertId),
            "result_only" => Some(Self::ResultOnly),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HostgroupAttributesRow, Servers};

    /// Returns the setting of these members, or the refusals of a LOAD.
    fn of(settings: &str) -> Result<Option<Replay>, String> {
        let row = HostgroupAttributesRow {
            hostgroup_id: 7,
            hostgroup_settings: settings.into(),
            ..HostgroupAttributesRow::default()
        };
        let words = |refusals: Vec<crate::Refusal>| {
            let words: Vec<_> = refusals.iter().map(ToString::to_string).collect();
            words.join("; ")
        };
        let servers = Servers::build([], [row], []).map_err(words)?;
        let replay = servers.hostgroup(7).unwrap().attributes.replay.clone();
        assert_eq!(servers.replays(), replay.is_some());
        Ok(replay)
    }

    #[test]
    fn transactions_are_replayed_where_it_is_said_and_nowhere_else() {
        assert_eq!(of("{}"), Ok(None));
        assert_eq!(of(r#"{"transaction_replay": 0}"#), Ok(None));
        let usual = Replay::default();
        assert_eq!(of(r#"{"transaction_replay": 1}"#), Ok(Some(usual)));
        let all = r#"{"transaction_replay": 1, "transaction_replay_max_size": 100,
            "transaction_replay_attempts": 2, "transaction_replay_timeout_ms": 7,
            "transaction_replay_retry_on_deadlock": 1, "transaction_replay_checksum": "no_insert_id", "transaction_replay_marks": "millrace.marks"}"#;
        let wanted = Replay {
            max_size: 100,
            attempts: 2,
            timeout_ms: 7,
            retry_on_deadlock: true,
            checksum: Checksum::NoInsertId,
            marks: Some("`millrace`.`marks`".into()),
        };
        assert_eq!(of(all), Ok(Some(wanted)));
    }

    #[test]
    fn members_that_mean_nothing_are_refused() {
        let refused = |settings: &str, words: &str| {
            let said = of(settings).unwrap_err();
            assert!(said.contains(words), "{settings}: {said}");
        };
        refused(
            r#"{"transaction_replay_attempts": 2}"#,
            "without 'transaction_replay'",
        );
        refused(
            r#"{"transaction_replay": 1, "transaction_replay_checksum": "some"}"#,
            "'full', 'no_insert_id' or 'result_only'",
        );
        for table in ["marks", "a.b.c", "a.`b`", ".b", "a.b; DROP"] {
            refused(
                &format!(r#"{{"transaction_replay": 1, "transaction_replay_marks": "{table}"}}"#),
                "must be a table as 'schema.table'",
            );
        }
        refused(
            r#"{"transaction_replay": 1, "transaction_replay_attempts": 0}"#,
            "must be from 1 to 1000",
        );
        refused(
            r#"{"transaction_replay": 1, "transaction_replay_max_size": 0}"#,
            "must be from 1 to 1073741824",
        );
    }
}
