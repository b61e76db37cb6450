//! Prepared statements of this core: the same text in the same schema is one statement, whoever prepared it.

use hashbrown::HashMap;
use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

/// A statement that clients have prepared.
#[derive(Debug)]
pub struct Prepared {
    /// Unique on this core.
    pub number: u64,
    /// The schema that was current when it was prepared; empty for none.
    pub schema: Rc<str>,
    /// Text.
    pub sql: Box<[u8]>,
    /// Parameters.
    pub params: Cell<u16>,
    /// Columns of its result; 0 when it has none.
    pub columns: Cell<u16>,
}

/// All statements of a core.
#[derive(Debug, Default)]
pub struct Statements {
    last: Cell<u64>,
    known: RefCell<HashMap<Box<[u8]>, Weak<Prepared>, foldhash::fast::RandomState>>,
}

impl Statements {
    /// The statement of this text in this schema. What it means may depend on both and on nothing else.
    pub fn intern(&self, schema: &str, sql: &[u8]) -> Rc<Prepared> {
        let mut key = Vec::with_capacity(schema.len() + 1 + sql.len());
        key.extend_from_slice(schema.as_bytes());
        key.push(0);
        key.extend_from_slice(sql);
        let mut known = self.known.borrow_mut();
        if let Some(statement) = known.get(key.as_slice()).and_then(Weak::upgrade) {
            return statement;
        }
        if known.len() >= 1024 && known.len().is_power_of_two() {
            known.retain(|_, statement| statement.strong_count() > 0);
        }
        self.last.set(self.last.get() + 1);
        let statement =
            Rc::new(Prepared {
                number: self.last.get(),
                schema: schema.into(),
                sql: sql.into(),
                params: Cell::new(0),
                columns: Cell::new(0),
            });
        known.insert(key.into_boxed_slice(), Rc::downgrade(&statement));
        statement
    }

    /// Distinct statements that somebody holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.known.borrow().values().filter(|statement| statement.strong_count() > 0).count()
    }

    /// None?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Which statements a connection has prepared, oldest use first.
#[derive(Debug, Default)]
pub(crate) struct Here(Vec<(u64, u32)>);

impl Here {
    /// The server's id of a statement; it becomes the latest used.
    pub(crate) fn id(&mut self, number: u64) -> Option<u32> {
        let at = self.0.iter().position(|(n, _)| *n == number)?;
        let entry = self.0.remove(at);
        self.0.push(entry);
        Some(entry.1)
    }

    /// It was prepared; returns ids to close, so that at most `max` stay.
    pub(crate) fn insert(&mut self, number: u64, id: u32, max: usize) -> Vec<u32> {
        let mut close = Vec::new();
        if let Some(at) = self.0.iter().position(|(n, _)| *n == number) {
            close.push(self.0.remove(at).1);
        }
        self.0.push((number, id));
        while self.0.len() > max.max(1) {
            close.push(self.0.remove(0).1);
        }
        close
    }

    pub(crate) fn clear(&mut self) -> usize {
        let n = self.0.len();
        self.0.clear();
        n
    }

    pub(crate) fn forget(&mut self, number: u64) -> Option<u32> {
        let at = self.0.iter().position(|(n, _)| *n == number)?;
        Some(self.0.remove(at).1)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_text_in_the_same_schema_is_one_statement() {
        let all = Statements::default();
        let a = all.intern("s", b"SELECT ?");
        assert_eq!(a.number, all.intern("s", b"SELECT ?").number);
        assert_ne!(a.number, all.intern("t", b"SELECT ?").number);
        assert_eq!(all.len(), 1);
    }

    #[test]
    fn the_longest_unused_statement_is_closed_first() {
        let mut here = Here::default();
        assert!(here.insert(1, 11, 2).is_empty());
        assert!(here.insert(2, 12, 2).is_empty());
        assert_eq!(here.id(1), Some(11));
        assert_eq!(here.insert(3, 13, 2), [12]);
        assert_eq!(here.id(2), None);
    }
}
