//! Which tables were written since a result was read, and which are being written now. Names are
//! not kept: a table is one of a fixed number of slots, and two that share one only drop each
//! other's results too early.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// How many slots there are, and bytes of one.
const SLOTS: usize = 8192;
/// A statement that names more than this writes everything, as far as the cache is concerned.
const NAMED_MAX: usize = 64;
/// Stands for every table.
const ALL: u16 = 0;

#[derive(Default)]
struct Slot {
    /// Goes up when a write has ended.
    version: AtomicU64,
    /// Statements and transactions that write it now.
    writers: AtomicU32,
}

/// Writes seen by this process.
pub struct Tables(Box<[Slot]>);

impl std::fmt::Debug for Tables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tables")
    }
}

impl Default for Tables {
    fn default() -> Self {
        Self((0..SLOTS).map(|_| Slot::default()).collect())
    }
}

/// FNV-1a over lower-case letters: servers differ in whether case matters, so for us it does not.
fn slot_of(schema: &[u8], name: &[u8]) -> u16 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    // Other letters depend on the character set: one slot for all.
    let [schema, name] = [schema, name].map(|part| if part.is_ascii() { part } else { b"\xFF" });
    for byte in schema.iter().chain(b".").chain(name) {
        hash = (hash ^ u64::from(byte.to_ascii_lowercase())).wrapping_mul(0x100_0000_01b3);
    }
    let slot = 1 + (hash ^ hash >> 32) % (SLOTS as u64 - 1);
    u16::try_from(slot).expect("SLOTS fits 16 bits")
}

/// The tables of a statement and how often they had been written when it was sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Versions(Vec<(u16, u64)>);

impl Versions {
    /// Bytes on the heap.
    #[must_use]
    pub fn heap_len(&self) -> usize {
        self.0.capacity() * size_of::<(u16, u64)>()
    }
}

impl Tables {
    /// Now, for a statement that reads these tables.
    #[must_use]
    pub fn versions<'n>(&self, names: impl Iterator<Item = (&'n [u8], &'n [u8])>) -> Versions {
        let mut slots: Vec<u16> = names
            .map(|(schema, name)| slot_of(schema, name))
            .chain([ALL])
            .collect();
        slots.sort_unstable();
        slots.dedup();
        Versions(
            slots
                .into_iter()
                .map(|slot| {
                    (
                        slot,
                        self.0[usize::from(slot)].version.load(Ordering::Acquire),
                    )
                })
                .collect(),
        )
    }

    /// Whether none of them was written since, nor is just now.
    #[must_use]
    pub fn are_untouched(&self, versions: &Versions) -> bool {
        versions.0.iter().all(|(slot, version)| {
            let slot = &self.0[usize::from(*slot)];
            slot.writers.load(Ordering::Acquire) == 0
                && slot.version.load(Ordering::Acquire) == *version
        })
    }

    /// There may have been writes of which nobody took note: what was read before is of no use.
    pub fn forget(self: &Arc<Self>) {
        self.writing().everything();
    }

    /// Somebody begins to write.
    #[must_use]
    pub fn writing(self: &Arc<Self>) -> Writing {
        Writing {
            tables: self.clone(),
            slots: Vec::new(),
        }
    }
}

/// Tables that a statement or a transaction writes, from before it is sent until it has ended: so
/// long their results are neither used nor kept. Dropping it ends the write, however it ended.
pub struct Writing {
    tables: Arc<Tables>,
    slots: Vec<u16>, // <= NAMED_MAX + 1
}

impl std::fmt::Debug for Writing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Writing {:?}", self.slots)
    }
}

impl Writing {
    /// This table too.
    pub fn table(&mut self, schema: &[u8], name: &[u8]) {
        if self.slots.len() >= NAMED_MAX {
            return self.everything();
        }
        self.slot(slot_of(schema, name));
    }

    /// Nobody knows which.
    pub fn everything(&mut self) {
        self.slot(ALL);
    }

    fn slot(&mut self, slot: u16) {
        if !self.slots.contains(&slot) {
            self.tables.0[usize::from(slot)]
                .writers
                .fetch_add(1, Ordering::AcqRel);
            self.slots.push(slot);
        }
    }
}

/// Both have to be dropped.
impl Clone for Writing {
    fn clone(&self) -> Self {
        let mut other = self.tables.writing();
        for slot in &self.slots {
            other.slot(*slot);
        }
        other
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        for slot in &self.slots {
            let slot = &self.tables.0[usize::from(*slot)];
            slot.version.fetch_add(1, Ordering::AcqRel);
            slot.writers.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(tables: &Tables, names: &[(&str, &str)]) -> Versions {
        tables.versions(
            names
                .iter()
                .map(|(schema, name)| (schema.as_bytes(), name.as_bytes())),
        )
    }

    #[test]
    fn a_result_is_out_of_use_while_its_table_is_written_and_for_good_afterwards() {
        let tables = Arc::new(Tables::default());
        let (mine, other) = (
            of(&tables, &[("s", "t"), ("s", "u")]),
            of(&tables, &[("r", "t")]),
        );
        let mut writing = tables.writing();
        writing.table(b"S", b"T");
        assert!(!tables.are_untouched(&mine));
        assert!(tables.are_untouched(&other));
        let read_meanwhile = of(&tables, &[("s", "t")]);
        assert!(!tables.are_untouched(&read_meanwhile));
        drop(writing);
        assert!(!tables.are_untouched(&mine));
        // It was read before the write had ended, so it may be from before it.
        assert!(!tables.are_untouched(&read_meanwhile));
        assert!(tables.are_untouched(&of(&tables, &[("s", "t")])));
        assert!(tables.are_untouched(&other));
    }

    #[test]
    fn who_writes_nobody_knows_what_writes_everything() {
        let tables = Arc::new(Tables::default());
        let (some, none) = (of(&tables, &[("s", "t")]), of(&tables, &[]));
        tables.writing().everything();
        assert!(!tables.are_untouched(&some) && !tables.are_untouched(&none));
        let some = of(&tables, &[("s", "t")]);
        let mut many = tables.writing();
        for n in 0..1000 {
            many.table(b"x", format!("n{n}").as_bytes());
        }
        assert!(many.slots.len() <= NAMED_MAX + 1);
        drop(many);
        assert!(!tables.are_untouched(&some));
    }

    #[test]
    fn names_in_other_letters_are_those_of_any_character_set() {
        let tables = Arc::new(Tables::default());
        // The same name in Latin-1 and in UTF-8, as two sessions write it.
        let read = tables.versions([(&b"caf\xe9"[..], &b"t"[..])].into_iter());
        tables.writing().table("café".as_bytes(), b"t");
        assert!(!tables.are_untouched(&read));
        let read = tables.versions([(&b"s"[..], &b"caf\xe9"[..])].into_iter());
        tables.writing().table(b"s", "café".as_bytes());
        assert!(!tables.are_untouched(&read));
    }

    #[test]
    fn two_writers_of_a_table_are_counted_both() {
        let tables = Arc::new(Tables::default());
        let (mut a, mut b) = (tables.writing(), tables.writing());
        a.table(b"s", b"t");
        a.table(b"s", b"t");
        b.table(b"s", b"t");
        drop(a);
        assert!(!tables.are_untouched(&of(&tables, &[("s", "t")])));
        drop(b);
        assert!(tables.are_untouched(&of(&tables, &[("s", "t")])));
    }

    #[test]
    fn a_write_of_two_ends_with_the_later_one_and_what_nobody_noted_touches_all() {
        let tables = Arc::new(Tables::default());
        let mut writing = tables.writing();
        writing.table(b"s", b"t");
        let other = writing.clone();
        drop(writing);
        let read = of(&tables, &[("s", "t")]);
        assert!(!tables.are_untouched(&read));
        drop(other);
        let read = of(&tables, &[("s", "t")]);
        assert!(tables.are_untouched(&read));
        tables.forget();
        assert!(!tables.are_untouched(&read) && tables.are_untouched(&of(&tables, &[("s", "t")])));
    }
}
