//! How the answers of mirrors compare with those that clients got.

use std::sync::Arc;

/// A row of `stats_mysql_mirror_digest`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MirrorRow {
    /// Where the copies went.
    pub hostgroup: u32,
    /// Hash of the digest.
    pub digest: u64,
    /// Its text.
    pub text: Arc<str>,
    /// Comparisons.
    pub count: u64,
    /// Those that found nothing.
    pub same: u64,
    /// Those that found other rows or another number of changed rows.
    pub different: u64,
    /// Those where the errors differ: one side had one and the other had none, or another.
    pub errors: u64,
    /// What the last difference was.
    pub last_difference: Arc<str>,
    /// Unix seconds of it; 0 if there was none.
    pub last_difference_at: u64,
    /// Microseconds, of all the clients' answers together.
    pub client_us: u64,
    /// Microseconds, of all the mirrors' answers together.
    pub mirror_us: u64,
}

pub(crate) fn merge(into: &mut Vec<MirrorRow>, other: Vec<MirrorRow>) {
    for row in other {
        match into
            .iter_mut()
            .find(|known| (known.hostgroup, known.digest) == (row.hostgroup, row.digest))
        {
            Some(known) => {
                known.count += row.count;
                known.same += row.same;
                known.different += row.different;
                known.errors += row.errors;
                known.client_us += row.client_us;
                known.mirror_us += row.mirror_us;
                if row.last_difference_at > known.last_difference_at {
                    known.last_difference_at = row.last_difference_at;
                    known.last_difference = row.last_difference;
                }
            }
            None => into.push(row),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
