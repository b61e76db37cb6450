//! Rules that may match, in the order of the chain: several ascending lists, merged as they are
//! read.

/// Positions in the chain, ascending.
#[derive(Debug, Clone, Default)]
pub struct Candidates<'a> {
    lists: [&'a [u32]; LISTS_MAX],
    used: usize,
    /// Positions from filters, and from lists beyond those: twice the position, and one more if
    /// `match_digest` is known to match.
    found: Found,
    /// Instead of all that: every position.
    whole: std::ops::Range<u32>,
}

/// A rule that may match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// Its position in the chain.
    pub position: u32,
    /// Its `match_digest` has been tried on this digest, and matches.
    pub digest_matches: bool,
}

/// More buckets than this are rarely found for one statement.
const LISTS_MAX: usize = 11;

/// So many are kept without the heap.
const INLINE: usize = 8;

#[derive(Debug, Clone, Default)]
struct Found {
    inline: [u32; INLINE],
    len: usize,
    /// All of them, once they are more.
    more: Vec<u32>,
    read: usize,
}

impl Found {
    fn add(&mut self, one: u32) {
        if self.more.is_empty() && self.len < INLINE {
            self.inline[self.len] = one;
            self.len += 1;
            return;
        }
        if self.more.is_empty() {
            self.more.extend_from_slice(&self.inline);
        }
        // A text may hold what one rule needs a million times.
        if self.more.len() == self.more.capacity() {
            self.more.sort_unstable();
            self.more.dedup();
        }
        self.more.push(one);
    }

    fn order(&mut self) {
        let all = if self.more.is_empty() {
            &mut self.inline[..self.len]
        } else {
            &mut self.more[..]
        };
        if all.len() > 1 {
            all.sort_unstable();
        }
    }

    #[inline]
    fn first(&self) -> Option<u32> {
        let all = if self.more.is_empty() {
            &self.inline[..self.len]
        } else {
            &self.more[..]
        };
        all.get(self.read).copied()
    }
}

impl<'a> Candidates<'a> {
    pub(super) fn whole(from: u32, len: u32) -> Self {
        Self {
            whole: from..len,
            ..Self::default()
        }
    }

    #[inline]
    pub(super) fn add_list(&mut self, list: &'a [u32], from: u32) {
        let list = match list.first() {
            Some(first) if *first < from => {
                &list[list.partition_point(|position| *position < from)..]
            }
            _ => list,
        };
        match self.lists.get_mut(self.used) {
            _ if list.is_empty() => {}
            Some(place) => {
                *place = list;
                self.used += 1;
            }
            None => self.add_found(list, from, false),
        }
    }

    /// Adds positions to those that are there; one that is there already may be there twice then.
    pub(super) fn add_besides(&mut self, positions: &[u32], from: u32) {
        if self.whole.is_empty() {
            self.add_found(positions, from, false);
            self.order();
        }
    }

    pub(super) fn add_found(&mut self, positions: &[u32], from: u32, digest_matches: bool) {
        for position in positions.iter().filter(|position| **position >= from) {
            self.found.add(position << 1 | u32::from(digest_matches));
        }
    }

    pub(super) fn order(&mut self) {
        self.found.order();
    }
}

impl Iterator for Candidates<'_> {
    type Item = Candidate;

    #[inline]
    fn next(&mut self) -> Option<Candidate> {
        if let Some(position) = self.whole.next() {
            return Some(Candidate {
                position,
                digest_matches: false,
            });
        }
        let found = self.found.first();
        let heads = self.lists[..self.used]
            .iter()
            .enumerate()
            .filter_map(|(at, list)| Some((*list.first()?, at)));
        match (heads.min(), found) {
            (None, None) => None,
            (Some((position, at)), found) if found.is_none_or(|found| position < found >> 1) => {
                self.lists[at] = &self.lists[at][1..];
                Some(Candidate {
                    position,
                    digest_matches: false,
                })
            }
            (_, Some(one)) => {
                let (position, mut digest_matches) = (one >> 1, false);
                while let Some(same) = self.found.first().filter(|same| same >> 1 == position) {
                    digest_matches |= same & 1 == 1;
                    self.found.read += 1;
                }
                Some(Candidate {
                    position,
                    digest_matches,
                })
            }
            (Some(_), None) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_finds_are_one_ascending_list_without_doubles() {
        let mut candidates = Candidates::default();
        candidates.add_list(&[1, 4, 9], 2);
        candidates.add_list(&[0, 7], 2);
        for _ in 0..1000 {
            candidates.add_found(&[8, 1, 3], 2, false);
        }
        candidates.add_found(&[3], 2, true);
        assert!(
            candidates.found.more.capacity() < 100,
            "{}",
            candidates.found.more.capacity()
        );
        candidates.order();
        let all: Vec<_> = candidates
            .map(|one| (one.position, one.digest_matches))
            .collect();
        assert_eq!(
            all,
            [(3, true), (4, false), (7, false), (8, false), (9, false)]
        );
        let mut many = Candidates::default();
        let lists: Vec<_> = (0..30).map(|n| [n, n + 30]).collect();
        lists.iter().for_each(|list| many.add_list(list, 1));
        many.order();
        assert_eq!(
            many.map(|one| one.position).collect::<Vec<_>>(),
            (1..60).collect::<Vec<_>>()
        );
        assert_eq!(
            Candidates::whole(2, 4)
                .map(|one| one.position)
                .collect::<Vec<_>>(),
            [2, 3]
        );
    }
}
