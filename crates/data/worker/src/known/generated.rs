//! Origins of generated keys: whether a table has a column that numbers its rows, as inserts have shown.

use hashbrown::HashMap;
use rt::Instant;
use std::rc::Rc;
use std::time::Duration;

/// Other proxies and direct connections may change a table, too.
const LASTS: Duration = Duration::from_secs(300);
/// More kinds of INSERTs are not remembered: of each a hundred bytes or so.
const KINDS_MAX: usize = 4096;

/// A kind of INSERT: the hash of its digest, its hostgroup and the schema that it means.
pub(crate) type Kind = (u64, u32, Rc<str>);

/// Knowledge of INSERTs on a core under one configuration.
#[derive(Debug, Default)]
pub(crate) struct Generated(HashMap<Kind, (Says, Instant), foldhash::fast::RandomState>);

/// Meaning of the id in the answers to a kind of INSERT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Says {
    /// The server has made it.
    Generated,
    /// The value of the column in this place of the INSERT's list has chosen it, if it is a number but 0. Without
    /// a number the server makes one, once that was seen: a trigger may choose it instead.
    Column { at: usize, made: Made },
    /// Nobody knows.
    Nothing,
    /// Nobody has asked yet, of so many.
    Unasked(u8),
}

/// Whether a server was seen to make the id of an INSERT that names the AUTO_INCREMENT column without
/// a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Made {
    /// That was asked about one of them.
    Seen,
    /// Nobody has asked yet, of so many.
    Unasked(u8),
}

/// Origin of the id in an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Made by the server: it is `LAST_INSERT_ID()`.
    Made,
    /// Chosen by the client: `LAST_INSERT_ID()` is what it was before.
    Chosen,
}

impl Generated {
    /// A definition may have changed.
    pub(crate) fn forget(&mut self) {
        self.0.clear();
    }

    pub(crate) fn get(&self, kind: &Kind, now: Instant) -> Option<Says> {
        let (says, until) = self.0.get(kind)?;
        (now < *until).then_some(*says)
    }

    pub(crate) fn set(&mut self, kind: Kind, says: Says, now: Instant) {
        if self.0.len() >= KINDS_MAX {
            self.0.clear();
        }
        self.0.insert(kind, (says, now + LASTS));
    }
}

/// Question to a server about the table of an INSERT.
#[derive(Debug)]
pub(crate) struct Asks {
    pub(crate) kind: Kind,
    pub(crate) schema: String,
    pub(crate) table: String,
    pub(crate) columns: Vec<String>,
    /// Values that it has written for the first of them.
    pub(crate) wrote: Vec<Option<Option<u64>>>,
    /// Id that the answer to the INSERT said.
    pub(crate) id: u64,
    /// Many INSERTs of the kind have come, and nobody has asked.
    pub(crate) comes_often: bool,
}
