//! All memories in one table, and the order in which a connection is asked for them.

use crate::memory::row::Memory;
use crate::memory::{found_rows, insert_id, left, locks, sequences, tracked, variables, warnings};
use crate::session::Session;
use crate::session::held::Held;
use backend::{Hold, Holds};
use sql::{Class, Reads};

/// All that is remembered, in the order in which a connection is asked for it: a question of ours
/// ends what is [`fragile`](Memory::fragile), so that comes first.
pub(crate) static TABLE: [&Memory; 8] = [
    &warnings::MEMORY,
    &found_rows::MEMORY,
    &tracked::MEMORY,
    &insert_id::MEMORY,
    &locks::MEMORY,
    &variables::MEMORY,
    &left::MEMORY,
    &sequences::MEMORY,
];

impl Session {
    /// A connection is gone that was kept for these: who asks for what it knew, and no other
    /// does, is told.
    pub(crate) fn lose_memories(&self, kept: Holds) {
        for memory in TABLE {
            let is_lost =
                |hold: &Hold| kept.has(*hold) && !self.held.holds().any(|one| one == *hold);
            if memory.holds.iter().any(is_lost) {
                (memory.lose)(self);
            }
        }
    }
}

/// The holds of memories that a statement with these reads asks for.
fn asked_by(reads: Reads) -> impl Iterator<Item = Hold> {
    let asked = TABLE
        .iter()
        .filter(move |memory| reads.intersects(memory.reads));
    asked.flat_map(|memory| memory.holds.iter().copied())
}

/// Memories of what was set on a connection, and first of what its server has not told yet. The
/// answer to any other question would have that.
pub(crate) static SET_THERE: [&Memory; 2] = [&tracked::MEMORY, &variables::MEMORY];

impl Held {
    /// Where the statement finds what it asks the connection for.
    pub(crate) fn asked_for(&self, class: &Class<'_>) -> Option<u32> {
        if class.reads.is_empty() || self.0.is_empty() {
            return None;
        }
        // What was made there by name is no memory, but found the same way.
        let made = [
            (Reads::PREPARED, Hold::SqlPrepare),
            (Reads::HANDLER, Hold::Handler),
        ];
        let made = made
            .into_iter()
            .filter_map(|(reads, hold)| class.reads.intersects(reads).then_some(hold));
        asked_by(class.reads)
            .chain(made)
            // What writes goes where writes go: the number of rows goes along.
            .filter(|hold| *hold != Hold::FoundRows || !class.may_write())
            .find_map(|hold| self.with(hold))
    }
}
