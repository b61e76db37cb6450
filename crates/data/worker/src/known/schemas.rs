//! Schemas that are known to be there, and those that somebody asks for just now.

use hashbrown::{HashMap, HashSet};
use rt::Instant;
use rt::local::Notify;
use std::cell::{Cell, RefCell};
use std::time::Duration;
use wire::errors;

/// So long no client waits for a hostgroup where that was not said in time.
const LEFT_ALONE: Duration = Duration::from_secs(10);
/// Schemas that are remembered.
const KNOWN_MAX: usize = 4096;
/// Bytes of a name; longer ones are no schema's, and nobody is asked.
pub(crate) const NAME_LEN_MAX: usize = 1024;

/// Errors that servers give about a schema.
const ABOUT_SCHEMA: [errors::Code; 5] = [
    errors::UNKNOWN_DATABASE,
    errors::DB_ACCESS_DENIED,
    errors::WRONG_DATABASE_NAME,
    errors::NAME_TOO_LONG,
    errors::INVALID_STRING,
];

/// Schemas of a core under one configuration.
#[derive(Default)]
pub(crate) struct Schemas {
    /// For whom there are which, by [`key`].
    known: RefCell<HashSet<Box<str>>>,
    /// Schemas that somebody is asking a server for.
    pub(crate) asked: RefCell<HashSet<Box<str>>>,
    /// Rung when one is answered.
    pub(crate) answered: Notify,
    pub(crate) left_alone: RefCell<HashMap<u32, Instant>>,
    pub(crate) forgotten: Cell<u64>,
}

impl std::fmt::Debug for Schemas {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Schemas({} known)", self.known.borrow().len())
    }
}

/// A user's schema in a hostgroup.
pub(crate) fn key(hostgroup: u32, user: &str, schema: &str) -> Box<str> {
    format!("{hostgroup}\0{user}\0{schema}").into()
}

impl Schemas {
    /// One may be gone.
    pub(crate) fn forget(&self) {
        self.known.borrow_mut().clear();
        self.forgotten.set(self.forgotten.get() + 1);
    }

    pub(crate) fn is_known(&self, key: &str) -> bool {
        self.known.borrow().contains(key)
    }

    /// Learns that a schema was there when so many times something had been forgotten.
    pub(crate) fn learn(&self, key: &str, forgotten: u64) {
        let mut known = self.known.borrow_mut();
        if forgotten == self.forgotten.get() {
            if known.len() >= KNOWN_MAX {
                known.clear();
            }
            known.insert(key.into());
        }
    }

    pub(crate) fn is_left_alone(&self, hostgroup: u32, now: Instant) -> bool {
        let left_alone = self.left_alone.borrow();
        let since = left_alone.get(&hostgroup);
        since.is_some_and(|since| now - *since < LEFT_ALONE)
    }
}

pub(crate) fn is_about_schema(code: u16) -> bool {
    ABOUT_SCHEMA.iter().any(|about| about.number == code)
}
