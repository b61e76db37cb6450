//! Blocks of numbers that this core has taken of sequences.

use shards::{Map, Numbers};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

/// Numbers that a core has taken and not given yet.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    /// The map under which they were taken: a LOAD of another one forgets them.
    of: RefCell<Option<Arc<Map>>>,
    /// By the number of their table.
    free: RefCell<BTreeMap<u32, VecDeque<Range<u64>>>>,
}

impl Blocks {
    fn under(&self, map: &Arc<Map>) {
        let mut of = self.of.borrow_mut();
        // One with partitions that were made since has the same tables.
        if !of
            .as_ref()
            .is_some_and(|known| known.is_of_the_rows_of(map))
        {
            *of = Some(map.clone());
            self.free.borrow_mut().clear();
        }
    }

    /// So many consecutive numbers, if there are.
    pub(crate) fn give(&self, map: &Arc<Map>, table: u32, count: u32) -> Option<Numbers> {
        self.under(map);
        let mut free = self.free.borrow_mut();
        let blocks = free.get_mut(&table)?;
        let enough = |block: &Range<u64>| block.end - block.start >= u64::from(count);
        let at = blocks.iter().position(enough)?;
        let first = blocks[at].start;
        blocks[at].start += u64::from(count);
        if blocks[at].is_empty() {
            blocks.remove(at);
        }
        Some(Numbers { first, count })
    }

    /// Keeps what was taken while this map was in force.
    pub(crate) fn keep(&self, map: &Arc<Map>, table: u32, block: Range<u64>) {
        self.under(map);
        let mut free = self.free.borrow_mut();
        free.entry(table).or_default().push_back(block);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_given_once_and_another_map_forgets_it() {
        let (blocks, map) = (Blocks::default(), Arc::new(Map::default()));
        let given = |count| blocks.give(&map, 7, count).map(|numbers| numbers.first);
        assert_eq!(given(1), None);
        blocks.keep(&map, 7, 10..13);
        blocks.keep(&map, 7, 100..200);
        assert_eq!(given(2), Some(10));
        // Consecutive ones only; what is left is for others.
        assert_eq!(given(2), Some(100));
        assert_eq!(given(1), Some(12));
        assert_eq!(given(1), Some(102));
        assert_eq!(blocks.give(&map, 8, 1), None);
        let other = Arc::new(Map::default());
        assert_eq!(blocks.give(&other, 7, 1), None);
        assert_eq!(blocks.give(&map, 7, 1), None);
    }
}
