//! Statements by digest. A bounded table; finding a row allocates nothing.

use bridge::{DigestRow, Latency};
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use std::cell::RefCell;
use std::rc::Rc;

/// A statement that has been answered.
pub(crate) struct Seen<'a> {
    pub(crate) hostgroup: i64,
    pub(crate) schema: &'a Rc<str>,
    pub(crate) user: &'a Rc<str>,
    pub(crate) client_address: &'a str,
    pub(crate) digest: u64,
    pub(crate) text: &'a [u8],
    /// Whether the digest shows all that a server reads of this statement, if that is known.
    pub(crate) shown: Option<bool>,
    pub(crate) time_us: u64,
    pub(crate) now_s: u64,
    pub(crate) rows_affected: u64,
    pub(crate) rows_sent: u64,
}

struct Row {
    hash: u64,
    hostgroup: i64,
    schema: Rc<str>,
    user: Rc<str>,
    client_address: Box<str>,
    digest: u64,
    text: Box<[u8]>,
    /// As [`DigestRow::shown`].
    shown: Option<bool>,
    count: u64,
    first_seen: u64,
    last_seen: u64,
    sum_us: u64,
    min_us: u64,
    max_us: u64,
    rows_affected: u64,
    rows_sent: u64,
    latency: Latency,
}

/// All digests that this core has seen.
#[derive(Default)]
pub(crate) struct Digests(RefCell<HashTable<Row>>);

/// Mixes what tells rows apart besides the digest; strings by length and ends, since equality decides in the end.
fn hash(seen: &Seen<'_>) -> u64 {
    let mut h = seen.digest ^ (seen.hostgroup as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    for text in [&**seen.schema, &**seen.user, seen.client_address] {
        for piece in text.as_bytes().chunks(8) {
            let mut word = [0; 8];
            word[..piece.len()].copy_from_slice(piece);
            h = (h ^ u64::from_le_bytes(word)).wrapping_mul(0xFF51_AFD7_ED55_8CCD).rotate_left(29);
        }
        h = h.wrapping_add(text.len() as u64);
    }
    h ^ (h >> 32)
}

impl Digests {
    /// Counts it; `false` when it is new and the table has `max` rows already. `is_shown` is asked for the first statement of a row, and as long as none of
    /// the row's was shown.
    pub(crate) fn count(&self, seen: &Seen<'_>, max: usize, is_shown: impl FnOnce() -> bool) -> bool {
        let hash = hash(seen);
        let mut table = self.0.borrow_mut();
        let full = table.len() >= max;
        let same = |row: &Row| {
            row.hash == hash
                && row.digest == seen.digest
                && row.hostgroup == seen.hostgroup
                && row.schema == *seen.schema
                && row.user == *seen.user
                && *row.client_address == *seen.client_address
        };
        match table.entry(hash, same, |row| row.hash) {
            Entry::Occupied(mut entry) => {
                let row = entry.get_mut();
                row.count += 1;
                let shown = seen.shown.or_else(|| (row.shown == Some(false)).then(is_shown)).or(row.shown);
                row.shown = row.shown.filter(|known| shown == Some(*known));
                row.last_seen = seen.now_s;
                row.sum_us += seen.time_us;
                row.min_us = row.min_us.min(seen.time_us);
                row.max_us = row.max_us.max(seen.time_us);
                row.rows_affected += seen.rows_affected;
                row.rows_sent += seen.rows_sent;
                row.latency.count(seen.time_us);
                true
            }
            Entry::Vacant(_) if full => false,
            Entry::Vacant(entry) => {
                let mut latency = Latency::default();
                latency.count(seen.time_us);
                entry.insert(Row {
                    hash,
                    hostgroup: seen.hostgroup,
                    schema: seen.schema.clone(),
                    user: seen.user.clone(),
                    client_address: seen.client_address.into(),
                    digest: seen.digest,
                    text: seen.text.into(),
                    shown: Some(seen.shown.unwrap_or_else(is_shown)),
                    count: 1,
                    first_seen: seen.now_s,
                    last_seen: seen.now_s,
                    sum_us: seen.time_us,
                    min_us: seen.time_us,
                    max_us: seen.time_us,
                    rows_affected: seen.rows_affected,
                    rows_sent: seen.rows_sent,
                    latency,
                });
                true
            }
        }
    }

    pub(crate) fn rows(&self, reset: bool) -> Vec<DigestRow> {
        let mut table = self.0.borrow_mut();
        let rows = table
            .iter()
            .map(|row| DigestRow {
                hostgroup: row.hostgroup,
                schema: row.schema.as_ref().into(),
                user: row.user.as_ref().into(),
                client_address: row.client_address.as_ref().into(),
                digest: row.digest,
                text: String::from_utf8_lossy(&row.text).as_ref().into(),
                shown: row.shown,
                count: row.count,
                first_seen: row.first_seen,
                last_seen: row.last_seen,
                sum_time_us: row.sum_us,
                min_time_us: row.min_us,
                max_time_us: row.max_us,
                rows_affected: row.rows_affected,
                rows_sent: row.rows_sent,
                latency: row.latency.clone(),
            })
            .collect();
        if reset {
            *table = HashTable::new();
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen<'a>(schema: &'a Rc<str>, user: &'a Rc<str>, digest: u64, time_us: u64) -> Seen<'a> {
        Seen {
            hostgroup: 0,
            schema,
            user,
            client_address: "",
            digest,
            text: b"SELECT ?",
            shown: None,
            time_us,
            now_s: 100 + time_us,
            rows_affected: 0,
            rows_sent: 1,
        }
    }

    #[test]
    fn a_digest_has_a_row_for_each_user_and_schema() {
        let (s, t, u): (Rc<str>, Rc<str>, Rc<str>) = ("s".into(), "t".into(), "u".into());
        let digests = Digests::default();
        assert!(digests.count(&seen(&s, &u, 1, 5), 10, || true));
        assert!(digests.count(&seen(&s, &u, 1, 3), 10, || panic!("one was shown")));
        assert!(digests.count(&seen(&t, &u, 1, 9), 10, || true));
        let mut rows = digests.rows(true);
        rows.sort_by_key(|row| row.count);
        assert_eq!(rows.len(), 2);
        assert_eq!((rows[1].count, rows[1].min_time_us, rows[1].max_time_us, rows[1].sum_time_us), (2, 3, 5, 8));
        assert!(digests.rows(false).is_empty());
    }

    #[test]
    fn the_table_is_bounded() {
        let (s, u): (Rc<str>, Rc<str>) = ("s".into(), "u".into());
        let digests = Digests::default();
        assert!(digests.count(&seen(&s, &u, 1, 1), 1, || true));
        assert!(!digests.count(&seen(&s, &u, 2, 1), 1, || true));
        assert!(digests.count(&seen(&s, &u, 1, 1), 1, || true));
    }

    #[test]
    fn a_row_knows_whether_its_digest_shows_all() {
        let (s, u): (Rc<str>, Rc<str>) = ("s".into(), "u".into());
        let digests = Digests::default();
        let count = |digest, shown, looked| digests.count(&Seen { shown, ..seen(&s, &u, digest, 1) }, 10, || looked);
        for (digest, shown, looked) in [
            (1, None, false),
            (1, None, false),
            (2, None, false),
            (2, None, true),
            (3, None, true),
            (3, Some(false), true),
            (4, None, true),
            (4, Some(true), true),
        ] {
            assert!(count(digest, shown, looked));
        }
        let mut rows = digests.rows(true);
        rows.sort_by_key(|row| row.digest);
        assert_eq!(rows.iter().map(|row| row.shown).collect::<Vec<_>>(), [Some(false), None, None, Some(true)]);
    }
}
