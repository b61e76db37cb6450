//! Statements by digest. A bounded table; finding a row allocates nothing, and nothing that is done
//! with it takes long, however large it is: rows stay where they are put, and are listed piece by
//! piece.

use bridge::{DigestRow, Latency};
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use sql::Shape;
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
    /// Shape by which the firewall knows the statement, if somebody has looked.
    pub(crate) shape: Option<Shape>,
    /// Statements of other shapes may have this digest.
    pub(crate) alike: bool,
    pub(crate) time_us: u64,
    pub(crate) now_s: u64,
    pub(crate) rows_affected: u64,
    pub(crate) rows_sent: u64,
}

struct Row {
    hostgroup: i64,
    schema: Rc<str>,
    user: Rc<str>,
    client_address: Box<str>,
    digest: u64,
    text: Box<[u8]>,
    /// As [`DigestRow::shown`].
    shown: Option<bool>,
    /// As [`DigestRow::guarded`].
    guarded: u64,
    /// As [`DigestRow::alike`].
    alike: bool,
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

/// Upper bounds on the digests that a core keeps.
#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    /// `mysql-query_digests_max_entries`.
    pub(crate) rows: u64,
    /// `mysql-query_digests_max_memory_MB`, in bytes.
    pub(crate) bytes: u64,
}

impl Bounds {
    pub(crate) fn of(variables: &config::Variables) -> Self {
        Self {
            rows: variables.mysql_query_digests_max_entries,
            bytes: variables.mysql_query_digests_max_memory_MB << 20,
        }
    }
}

/// Rows that are next to each other: what is moved at once when more come.
const CHUNK: usize = 1024;

/// All digests that this core has seen.
#[derive(Default)]
pub(crate) struct Digests(RefCell<Table>);

#[derive(Default)]
struct Table {
    /// All but the last are full.
    chunks: Vec<Vec<Row>>,
    /// (hash, number of the row): 0 <= number < len.
    numbers: HashTable<(u64, u32)>,
    /// How often it has begun anew.
    begun: u64,
    /// Bytes that the rows take, as [`Seen::bytes`] reckons them.
    bytes: u64,
}

/// Bytes that a row takes without its texts: itself, its place in the index, and what an allocator
/// adds to two texts.
const ROW_BYTES: usize = size_of::<Row>() + 2 * size_of::<(u64, u32)>() + 32;

impl Seen<'_> {
    /// Returns the bytes that a row for this statement takes; names of users and schemas are
    /// shared.
    fn bytes(&self) -> u64 {
        (ROW_BYTES + self.text.len() + self.client_address.len()) as u64
    }
}

impl Table {
    fn row(&self, number: u32) -> &Row {
        &self.chunks[number as usize / CHUNK][number as usize % CHUNK]
    }

    fn push(&mut self, row: Row) {
        if self.chunks.last().is_none_or(|last| last.len() == CHUNK) {
            self.chunks.push(Vec::new());
        }
        self.chunks.last_mut().expect("there is one now").push(row);
    }
}

/// Rows that are being gathered.
pub(crate) struct Listing {
    rows: Vec<DigestRow>,
    from: Source,
}

enum Source {
    /// Rows that are still counted, unless the table has begun anew meanwhile.
    Table { begun: u64 },
    /// Rows that the table had when it began anew.
    Taken(std::iter::Flatten<std::vec::IntoIter<Vec<Row>>>),
}

impl Listing {
    /// Returns the rows that were gathered.
    pub(crate) fn into_rows(self) -> Vec<DigestRow> {
        self.rows
    }
}

impl Row {
    fn shown(&self) -> DigestRow {
        DigestRow {
            hostgroup: self.hostgroup,
            schema: self.schema.as_ref().into(),
            user: self.user.as_ref().into(),
            client_address: self.client_address.as_ref().into(),
            digest: self.digest,
            text: String::from_utf8_lossy(&self.text).as_ref().into(),
            shown: self.shown,
            guarded: self.guarded,
            alike: self.alike,
            count: self.count,
            first_seen: self.first_seen,
            last_seen: self.last_seen,
            sum_time_us: self.sum_us,
            min_time_us: self.min_us,
            max_time_us: self.max_us,
            rows_affected: self.rows_affected,
            rows_sent: self.rows_sent,
            latency: self.latency.clone(),
        }
    }
}

/// Mixes what tells rows apart besides the digest; strings by length and ends, since equality
/// decides in the end.
fn hash(seen: &Seen<'_>) -> u64 {
    let h = seen.digest ^ (seen.hostgroup as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed(h, [seen.schema, seen.user, seen.client_address])
}

/// A hash of these.
pub(super) fn mixed<const N: usize>(mut h: u64, texts: [&str; N]) -> u64 {
    for text in texts {
        for piece in text.as_bytes().chunks(8) {
            let mut word = [0; 8];
            word[..piece.len()].copy_from_slice(piece);
            h = (h ^ u64::from_le_bytes(word))
                .wrapping_mul(0xFF51_AFD7_ED55_8CCD)
                .rotate_left(29);
        }
        h = h.wrapping_add(text.len() as u64);
    }
    h ^ (h >> 32)
}

impl Digests {
    /// Counts it; `false` when it is new and there is no room for its row. `shape` is asked for the
    /// first statement of a row, and as long as none of the row's was shown.
    pub(crate) fn count(
        &self,
        seen: &Seen<'_>,
        most: Bounds,
        shape: impl FnOnce() -> Shape,
    ) -> bool {
        let hash = hash(seen);
        let mut table = self.0.borrow_mut();
        let Table {
            chunks,
            numbers,
            bytes,
            ..
        } = &mut *table;
        let full = numbers.len() as u64 >= most.rows || *bytes + seen.bytes() > most.bytes;
        let same = |row: &Row| {
            row.digest == seen.digest
                && row.hostgroup == seen.hostgroup
                && row.schema == *seen.schema
                && row.user == *seen.user
                && *row.client_address == *seen.client_address
        };
        let row_of = |number: u32| (number as usize / CHUNK, number as usize % CHUNK);
        let is_it = |&(known, number): &(u64, u32)| {
            let (chunk, at) = row_of(number);
            known == hash && same(&chunks[chunk][at])
        };
        match numbers.entry(hash, is_it, |(known, _)| *known) {
            Entry::Occupied(entry) => {
                let (chunk, at) = row_of(entry.get().1);
                let row = &mut chunks[chunk][at];
                row.count += 1;
                row.alike |= seen.alike;
                if let Some(shape) = seen
                    .shape
                    .or_else(|| (row.shown == Some(false)).then(shape))
                {
                    if row.shown == Some(false) && shape.is_shown {
                        // The one that a rule can allow.
                        row.guarded = shape.digest;
                    }
                    row.shown = row.shown.filter(|known| shape.is_shown == *known);
                }
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
                let number =
                    chunks.len().saturating_sub(1) * CHUNK + chunks.last().map_or(0, Vec::len);
                entry.insert((
                    hash,
                    u32::try_from(number).expect("rows are at most ten million"),
                ));
                *bytes += seen.bytes();
                let shape = seen.shape.unwrap_or_else(shape);
                table.push(Row {
                    hostgroup: seen.hostgroup,
                    schema: seen.schema.clone(),
                    user: seen.user.clone(),
                    client_address: seen.client_address.into(),
                    digest: seen.digest,
                    text: seen.text.into(),
                    shown: Some(shape.is_shown),
                    guarded: shape.digest,
                    alike: seen.alike,
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

    /// Returns the bytes that the digests take, nearly.
    pub(crate) fn bytes(&self) -> u64 {
        self.0.borrow().bytes
    }

    /// Begins to list them; with `reset`, the table begins anew now.
    pub(crate) fn list(&self, reset: bool) -> Listing {
        let mut table = self.0.borrow_mut();
        let rows = Vec::with_capacity(table.numbers.len());
        let begun = table.begun;
        if !reset {
            return Listing {
                rows,
                from: Source::Table { begun },
            };
        }
        let taken = std::mem::replace(
            &mut *table,
            Table {
                begun: begun + 1,
                ..Table::default()
            },
        );
        Listing {
            rows,
            from: Source::Taken(taken.chunks.into_iter().flatten()),
        }
    }

    /// Lists some more of them; `false` when they are complete. If the table has begun anew
    /// meanwhile, so does the list: those of before are told to whoever wanted that.
    pub(crate) fn list_more(&self, listing: &mut Listing, at_most: usize) -> bool {
        let table = self.0.borrow();
        match &mut listing.from {
            Source::Taken(rows) => {
                listing
                    .rows
                    .extend(rows.take(at_most).map(|row| row.shown()));
                rows.size_hint() != (0, Some(0))
            }
            Source::Table { begun } => {
                if *begun != table.begun {
                    *begun = table.begun;
                    listing.rows.clear();
                }
                let (from, len) = (listing.rows.len(), table.numbers.len());
                let to = len.min(from + at_most);
                listing
                    .rows
                    .extend((from..to).map(|number| table.row(number as u32).shown()));
                to < len
            }
        }
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
            shape: None,
            alike: false,
            time_us,
            now_s: 100 + time_us,
            rows_affected: 0,
            rows_sent: 1,
        }
    }

    const SHOWN: Shape = Shape {
        digest: 7,
        is_shown: true,
    };

    impl Digests {
        fn rows(&self, reset: bool) -> Vec<DigestRow> {
            let mut listing = self.list(reset);
            while self.list_more(&mut listing, 2) {}
            listing.into_rows()
        }
    }

    const fn rows(rows: u64) -> Bounds {
        Bounds {
            rows,
            bytes: 1 << 30,
        }
    }

    #[test]
    fn a_list_is_of_all_whatever_comes_while_it_is_made() {
        let (s, u): (Rc<str>, Rc<str>) = ("s".into(), "u".into());
        let digests = Digests::default();
        let count = |digests: &Digests, of: std::ops::Range<u64>| {
            of.for_each(|digest| {
                assert!(digests.count(&seen(&s, &u, digest, 1), rows(10_000), || SHOWN))
            });
        };
        let numbers = |rows: Vec<DigestRow>| rows.iter().map(|row| row.digest).collect::<Vec<_>>();
        count(&digests, 0..5000);
        count(&digests, 0..5000);
        let (mut usual, mut taken) = (digests.list(false), digests.list(false));
        assert!(digests.list_more(&mut usual, 1000));
        count(&digests, 5000..5500);
        while digests.list_more(&mut usual, 1000) {}
        let rows = usual.into_rows();
        assert!(rows.iter().take(5000).all(|row| row.count == 2));
        assert_eq!(numbers(rows), (0..5500).collect::<Vec<_>>());
        // It begins anew in the middle of one list, for another.
        assert!(digests.list_more(&mut taken, 1000));
        let mut reset = digests.list(true);
        assert!(digests.list_more(&mut reset, 1000));
        count(&digests, 7000..7003);
        while digests.list_more(&mut taken, 1000) || digests.list_more(&mut reset, 1000) {}
        assert_eq!(numbers(reset.into_rows()), (0..5500).collect::<Vec<_>>());
        assert_eq!(numbers(taken.into_rows()), [7000, 7001, 7002]);
        assert_eq!(numbers(digests.rows(true)), [7000, 7001, 7002]);
        assert!(digests.rows(true).is_empty() && digests.rows(false).is_empty());
    }

    #[test]
    fn a_digest_has_a_row_for_each_user_and_schema() {
        let (s, t, u): (Rc<str>, Rc<str>, Rc<str>) = ("s".into(), "t".into(), "u".into());
        let digests = Digests::default();
        assert!(digests.count(&seen(&s, &u, 1, 5), rows(10), || SHOWN));
        assert!(digests.count(&seen(&s, &u, 1, 3), rows(10), || panic!("one was shown")));
        assert!(digests.count(&seen(&t, &u, 1, 9), rows(10), || SHOWN));
        let mut rows = digests.rows(true);
        rows.sort_by_key(|row| row.count);
        assert_eq!(rows.len(), 2);
        assert_eq!(
            (
                rows[1].count,
                rows[1].min_time_us,
                rows[1].max_time_us,
                rows[1].sum_time_us
            ),
            (2, 3, 5, 8)
        );
        assert!(digests.rows(false).is_empty());
    }

    #[test]
    fn the_table_is_bounded() {
        let (s, u): (Rc<str>, Rc<str>) = ("s".into(), "u".into());
        let digests = Digests::default();
        assert!(digests.count(&seen(&s, &u, 1, 1), rows(1), || SHOWN));
        assert!(!digests.count(&seen(&s, &u, 2, 1), rows(1), || SHOWN));
        assert!(digests.count(&seen(&s, &u, 1, 1), rows(1), || SHOWN));
    }

    /// A hundred texts of a megabyte are few rows.
    #[test]
    fn the_table_is_bounded_in_bytes_too() {
        let (s, u): (Rc<str>, Rc<str>) = ("s".into(), "u".into());
        let digests = Digests::default();
        let text = vec![b'x'; 1 << 20];
        let most = Bounds {
            rows: 100_000,
            bytes: 10 << 20,
        };
        let count = |digest| {
            digests.count(
                &Seen {
                    text: &text,
                    ..seen(&s, &u, digest, 1)
                },
                most,
                || SHOWN,
            )
        };
        assert_eq!((0..100).filter(|digest| count(*digest)).count(), 9);
        assert!(count(3));
        assert!((9 << 20..10 << 20).contains(&digests.bytes()));
        // What is short has room where what is long has none, and all have when it begins anew.
        assert!(digests.count(&seen(&s, &u, 1000, 1), most, || SHOWN));
        digests.rows(true);
        assert!(digests.bytes() == 0 && count(50));
    }

    #[test]
    fn a_row_knows_whether_its_digest_shows_all() {
        let (s, u): (Rc<str>, Rc<str>) = ("s".into(), "u".into());
        let digests = Digests::default();
        let shape = |is_shown| Shape {
            digest: if is_shown { 100 } else { 200 },
            is_shown,
        };
        let count = |digest, shown: Option<bool>, looked| {
            let seen = Seen {
                shape: shown.map(shape),
                alike: digest == 4,
                ..seen(&s, &u, digest, 1)
            };
            digests.count(&seen, rows(10), || shape(looked))
        };
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
        assert_eq!(
            rows.iter().map(|row| row.shown).collect::<Vec<_>>(),
            [Some(false), None, None, Some(true)]
        );
        let firewall: Vec<_> = rows.iter().map(|row| (row.guarded, row.alike)).collect();
        assert_eq!(
            firewall,
            [(200, false), (100, false), (100, false), (100, true)]
        );
    }
}
