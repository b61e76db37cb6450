//! Columns of sharded tables, as a server has told them.

use rt::Instant;
use shards::{ColumnOrder, Described, Undescribed};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

/// So long columns are kept. Somebody may change a table without us.
const KEPT: Duration = Duration::from_secs(10);
/// The value count differs from the columns; no such column; no such table.
pub(crate) const CHANGED: [u16; 3] = [1136, 1054, 1146];

/// Columns that servers have told.
#[derive(Debug, Default)]
pub(crate) struct Descriptions {
    known: RefCell<Rc<Described>>,
    /// When they were asked for.
    asked_at: RefCell<Vec<(u32, String, Instant)>>,
}

impl Descriptions {
    /// Those that are known now.
    pub(crate) fn known(&self) -> Rc<Described> {
        self.known.borrow().clone()
    }

    /// Forgets all: a table has changed.
    pub(crate) fn forget(&self) {
        self.asked_at.borrow_mut().clear();
        *self.known.borrow_mut() = Rc::default();
    }

    /// Forgets those that were asked for long ago.
    pub(crate) fn age(&self, now: Instant) {
        let mut asked_at = self.asked_at.borrow_mut();
        let before = asked_at.len();
        asked_at.retain(|(_, _, at)| now - *at < KEPT);
        if asked_at.len() < before {
            let mut known = self.known.borrow_mut();
            let is_kept = |table: u32, schema: &str| {
                let mut kept = asked_at.iter();
                kept.any(|(number, name, _)| *number == table && name == schema)
            };
            Rc::make_mut(&mut known).retain(is_kept);
        }
    }

    pub(crate) fn learn(&self, wanted: &Undescribed, columns: ColumnOrder, now: Instant) {
        let asked = (wanted.table, wanted.schema.clone(), now);
        self.asked_at.borrow_mut().push(asked);
        let mut known = self.known.borrow_mut();
        Rc::make_mut(&mut known).learn(wanted.table, &wanted.schema, columns);
    }
}
