//! Which rules match a digest, remembered: the expressions of `match_digest` run once for a digest,
//! not for each statement.

use crate::spreads::{SpreadWidth, Spreads};
use hashbrown::HashTable;

/// Memo of one core about the rules of one snapshot; a new snapshot begins with a new one. Texts
/// are compared, so what is remembered is never that of another digest with the same hash.
#[derive(Debug, Default)]
pub struct Memo {
    young: Generation,
    old: Generation,
    gave_up: u64,
    /// Statements on sharded tables.
    spreads: Spreads,
}

/// Rules that were found once for a digest, and how many expressions PCRE gave up on.
pub(super) struct Matching {
    pub(super) positions: Box<[u32]>,
    pub(super) gave_up: u64,
}

/// When the young have so many bytes, they become the old, and the old are forgotten.
const BYTES_MAX: usize = 1 << 20;

#[derive(Debug, Default)]
struct Generation {
    known: HashTable<Known>,
    bytes: usize,
}

#[derive(Debug)]
struct Known {
    hash: u64,
    bucket: u32,
    digest: Box<[u8]>,
    positions: Box<[u32]>,
}

impl Memo {
    /// The rules of a bucket whose `match_digest` matches; `find` says it if it is not known.
    pub(super) fn matching(
        &mut self,
        bucket: u32,
        digest: u64,
        text: &[u8],
        find: impl FnOnce() -> Matching,
    ) -> &[u32] {
        let hash = digest ^ u64::from(bucket).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let same =
            |known: &Known| known.hash == hash && known.bucket == bucket && *known.digest == *text;
        if self.young.known.find(hash, same).is_none() {
            let known = match self.old.known.find_entry(hash, same) {
                Ok(entry) => entry.remove().0,
                Err(_) => {
                    let Matching { positions, gave_up } = find();
                    self.gave_up += gave_up;
                    Known {
                        hash,
                        bucket,
                        digest: text.into(),
                        positions,
                    }
                }
            };
            let bytes = known.bytes();
            if self.young.bytes + bytes > BYTES_MAX {
                self.old = std::mem::take(&mut self.young);
            }
            self.young.bytes += bytes;
            self.young
                .known
                .insert_unique(hash, known, |known| known.hash);
        }
        self.young
            .known
            .find(hash, same)
            .map_or(&[], |known| &known.positions)
    }

    /// Counts a statement on a sharded table.
    pub fn count_spread(&mut self, table: &shards::Table, width: SpreadWidth) {
        self.spreads.count(table, width);
    }

    /// Counts a statement on a sharded table that one server finishes.
    pub fn count_finished(&mut self, table: &shards::Table) {
        self.spreads.count_finished(table);
    }

    /// Counts rows that were copied for such statements.
    pub fn count_copied(&mut self, table: &shards::Table, rows: u64) {
        self.spreads.count_copied(table, rows);
    }

    /// Counts of statements on sharded tables.
    pub const fn spreads(&mut self) -> &mut Spreads {
        &mut self.spreads
    }

    /// On how many expressions PCRE gave up since the last time that somebody asked.
    pub fn take_gave_up(&mut self) -> u64 {
        std::mem::take(&mut self.gave_up)
    }

    /// How many answers it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.young.known.len() + self.old.known.len()
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Known {
    fn bytes(&self) -> usize {
        2 * size_of::<Self>() + self.digest.len() + size_of_val(&*self.positions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(positions: impl Into<Box<[u32]>>) -> Matching {
        Matching {
            positions: positions.into(),
            gave_up: 1,
        }
    }

    #[test]
    fn an_answer_is_found_once_and_never_taken_for_another() {
        let mut memo = Memo::default();
        assert_eq!(memo.matching(0, 7, b"a", || found([1, 2])), [1, 2]);
        assert_eq!(memo.matching(0, 7, b"a", || panic!("known")), [1, 2]);
        assert_eq!(
            memo.matching(0, 7, b"b", || found([3])),
            [3],
            "another text with the same hash"
        );
        assert_eq!(
            memo.matching(1, 7, b"a", || found([4])),
            [4],
            "another bucket"
        );
        assert_eq!((memo.take_gave_up(), memo.take_gave_up()), (3, 0));
    }

    #[test]
    fn it_is_bounded_and_keeps_what_is_asked_for() {
        let mut memo = Memo::default();
        let mut asked = 0;
        for n in 0..200_000_u64 {
            memo.matching(0, n, n.to_string().as_bytes(), || found([]));
            memo.matching(0, u64::MAX, b"often", || {
                asked += 1;
                found([])
            });
        }
        assert_eq!(asked, 1);
        let most = 2 * BYTES_MAX / (2 * size_of::<Known>());
        assert!(
            memo.len() > most / 4 && memo.len() <= most,
            "{} of {most}",
            memo.len()
        );
    }
}
