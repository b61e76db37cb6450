//! How the answers of mirrors compare with those that clients got.

use crate::observed::observed;
use std::sync::Arc;

observed! {
    /// A row of `stats_mysql_mirror_digest`.
    pub struct MirrorRow, ends ",
    PRIMARY KEY(hostgroup, digest))":
    /// Where the copies went.
    hostgroup: u32, "hostgroup INT NOT NULL", key;
    /// Hash of the digest.
    digest: u64 as hex, "digest VARCHAR NOT NULL", key;
    /// Its text.
    text: Arc<str>, "digest_text VARCHAR NOT NULL", first;
    /// Comparisons.
    count: u64, "count_star INTEGER NOT NULL", sum;
    /// Those that found nothing.
    same: u64, "same INTEGER NOT NULL", sum;
    /// Those that found other rows or another number of changed rows.
    different: u64, "different INTEGER NOT NULL", sum;
    /// Those where the errors differ: one side had one and the other had none, or another.
    errors: u64, "errors INTEGER NOT NULL", sum;
    /// Words for the last difference.
    last_difference: Arc<str>, "last_difference VARCHAR NOT NULL", latest(last_difference_at);
    /// Unix seconds of it; 0 if there was none.
    last_difference_at: u64, "last_difference_at INTEGER NOT NULL", max;
    /// Microseconds, of all the clients' answers together.
    client_us: u64, "sum_time INTEGER NOT NULL", sum;
    /// Microseconds, of all the mirrors' answers together.
    mirror_us: u64, "mirror_sum_time INTEGER NOT NULL", sum;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observed::merge;

    #[test]
    fn cores_are_added_up_and_the_latest_difference_is_shown() {
        let row = |digest, same, at| MirrorRow {
            hostgroup: 1,
            digest,
            text: "SELECT ?".into(),
            count: 2,
            same,
            different: 2 - same,
            errors: 0,
            last_difference: format!("at {at}").into(),
            last_difference_at: at,
            client_us: 3,
            mirror_us: 4,
        };
        let mut all = vec![row(7, 1, 20)];
        merge(&mut all, vec![row(7, 0, 10), row(8, 1, 5), row(7, 1, 30)]);
        assert_eq!(all.len(), 2);
        assert_eq!(
            (
                all[0].count,
                all[0].same,
                all[0].different,
                all[0].mirror_us
            ),
            (6, 2, 4, 12)
        );
        assert_eq!(&*all[0].last_difference, "at 30");
    }
}
