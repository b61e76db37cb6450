//! What the firewall noticed.

use crate::observed::observed;
use std::sync::Arc;

observed! {
    /// A row of `stats_mysql_firewall`.
    pub struct AlarmRow, ends ",
    PRIMARY KEY(username, client_address, schemaname, flagIN, digest, action, fingerprint))":
    /// Whose statement.
    user: Arc<str>, "username VARCHAR NOT NULL", key;
    /// From where.
    client_address: Arc<str>, "client_address VARCHAR NOT NULL", key;
    /// In which schema.
    schema: Arc<str>, "schemaname VARCHAR NOT NULL", key;
    /// The flag with which the chain of rules ended.
    flag: u32, "flagIN INT NOT NULL", key;
    /// Hash of the digest of what would be sent.
    digest: u64 as hex, "digest VARCHAR NOT NULL", key;
    /// Its text.
    text: Arc<str>, "digest_text VARCHAR NOT NULL", first;
    /// Action that the firewall took.
    action: &'static str, "action VARCHAR NOT NULL", key;
    /// By what it looks like an injection; empty if it does not.
    fingerprint: Arc<str>, "fingerprint VARCHAR NOT NULL", key;
    /// Times.
    count: u64, "count_star INTEGER NOT NULL", sum;
    /// Unix seconds.
    first_seen: u64, "first_seen INTEGER NOT NULL", min;
    /// Unix seconds.
    last_seen: u64, "last_seen INTEGER NOT NULL", max;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observed::merge;

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
