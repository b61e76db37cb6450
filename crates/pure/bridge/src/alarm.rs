//! What the firewall noticed.

use std::collections::BTreeMap;
use std::sync::Arc;

/// A row of `stats_mysql_firewall`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlarmRow {
    /// Whose statement.
    pub user: Arc<str>,
    /// From where.
    pub client_address: Arc<str>,
    /// In which schema.
    pub schema: Arc<str>,
    /// The flag with which the chain of rules ended.
    pub flag: u32,
    /// Hash of the digest of what would be sent.
    pub digest: u64,
    /// Its text.
    pub text: Arc<str>,
    /// What was done about it.
    pub action: &'static str,
    /// By what it looks like an injection; empty if it does not.
    pub fingerprint: Arc<str>,
    /// Times.
    pub count: u64,
    /// Unix seconds.
    pub first_seen: u64,
    /// Unix seconds.
    pub last_seen: u64,
}

/// The same of several cores is one row.
pub(crate) fn merge(into: &mut Vec<AlarmRow>, other: Vec<AlarmRow>) {
    let key = |row: &AlarmRow| {
        (
            row.user.clone(),
            row.client_address.clone(),
            row.schema.clone(),
            row.flag,
            row.digest,
            row.action,
            row.fingerprint.clone(),
        )
    };
    let mut known: BTreeMap<_, usize> = into
        .iter()
        .enumerate()
        .map(|(at, row)| (key(row), at))
        .collect();
    for row in other {
        let at = *known.entry(key(&row)).or_insert(into.len());
        match into.get_mut(at) {
            Some(known) => {
                known.count += row.count;
                known.first_seen = known.first_seen.min(row.first_seen);
                known.last_seen = known.last_seen.max(row.last_seen);
            }
            None => into.push(row),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_alarm_of_two_cores_is_one_row() {
        let row = |digest, first_seen, count| AlarmRow {
            user: "u".into(),
            client_address: "10.0.0.1".into(),
            schema: "s".into(),
            flag: 0,
            digest,
            text: "SELECT ?".into(),
            action: "blocked",
            fingerprint: "".into(),
            count,
            first_seen,
            last_seen: first_seen,
        };
        let mut all = vec![row(7, 20, 1)];
        merge(&mut all, vec![row(8, 5, 1), row(7, 10, 2), row(7, 30, 3)]);
        assert_eq!(all.len(), 2);
        assert_eq!(
            (all[0].count, all[0].first_seen, all[0].last_seen),
            (6, 10, 30)
        );
    }
}
