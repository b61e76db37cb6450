//! Keys of changed rows, from the source's log while a move goes on. Their rows are read again, so
//! that only the last of many changes counts.

use crate::table::{Key, Table};
use binlog::{Place, Row};
use reader::Changed;
use rt::local::Bell;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

/// While so many keys wait, the log waits.
const KEYS_MAX: usize = 500_000;

#[derive(Default)]
pub(crate) struct Feed {
    /// Keys of rows that are read again.
    keys: RefCell<BTreeSet<Key>>,
    /// All before this place was told.
    place: RefCell<Place>,
    /// Something was told.
    pub(crate) bell: Bell,
    /// A statement has named the table.
    pub(crate) said: Cell<bool>,
    /// The log cannot be followed any more.
    pub(crate) broken: RefCell<Option<String>>,
}

impl Feed {
    pub(crate) fn has_room(&self) -> bool {
        self.keys.borrow().len() < KEYS_MAX
    }

    /// Takes what was told.
    pub(crate) fn hear(&self, table: &Table, changed: Changed) {
        for Row { before, after } in &changed.rows {
            for image in before.iter().chain(after) {
                match table.key_in_log(image) {
                    Ok(key) => drop(self.keys.borrow_mut().insert(key)),
                    Err(words) => drop(self.broken.replace(Some(words))),
                }
            }
        }
        if changed.said {
            self.said.set(true);
        }
        self.place.replace(changed.place);
        self.bell.ring();
    }

    pub(crate) fn is_past(&self, place: &Place) -> bool {
        *self.place.borrow() >= *place
    }

    pub(crate) fn is_even(&self) -> bool {
        self.keys.borrow().is_empty()
    }

    /// Some of those that wait; they wait no more.
    pub(crate) fn take(&self, most: usize) -> Vec<Key> {
        let mut keys = self.keys.borrow_mut();
        let mut taken = Vec::new();
        while taken.len() < most
            && let Some(key) = keys.pop_first()
        {
            taken.push(key);
        }
        taken
    }

    /// All that wait, and go on waiting.
    pub(crate) fn all(&self) -> Vec<Key> {
        self.keys.borrow().iter().cloned().collect()
    }

    /// These wait again.
    pub(crate) fn give_back(&self, keys: Vec<Key>) {
        self.keys.borrow_mut().extend(keys);
    }
}
