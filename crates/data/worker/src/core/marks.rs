//! Marks that COMMITs leave in a table of the operator's: rows that are used again and again, each by one
//! transaction at a time.
//!
//! docs/features/transaction-replay.md

use rt::Rt;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

/// So many rows are made before one is used again: transactions that have written the same row are
/// applied one after the other by replicas.
const ROWS_MIN: u32 = 64;

/// Rows of one core in the table of marks. Their first number is the core's own.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    /// Number of the core, drawn when the first mark is made: not 0.
    own: Cell<u64>,
    made: Cell<u32>,
    free: RefCell<VecDeque<u32>>,
    last: Cell<u64>,
}

/// A mark: the row is its transaction's until it is dropped.
#[derive(Debug)]
pub(crate) struct Mark {
    rows: Rc<Rows>,
    table: Arc<str>,
    row: u32,
    number: u64,
    /// Nobody knows what became of its transaction, which may still hold the row: it is not used again.
    pub(crate) is_doubtful: Cell<bool>,
}

impl Rows {
    /// A mark that was never made before, in a row that no other transaction has.
    pub(crate) fn next(self: &Rc<Self>, rt: &Rt, table: &Arc<str>) -> Mark {
        if self.own.get() == 0 {
            // Servers keep it as a signed number.
            self.own.set(rt.random() >> 1 | 1);
        }
        let made = self.made.get();
        let mut free = self.free.borrow_mut();
        let used_before = if made < ROWS_MIN {
            None
        } else {
            free.pop_front()
        };
        let row = used_before.unwrap_or_else(|| {
            self.made.set(made.wrapping_add(1));
            made
        });
        self.last.set(self.last.get() + 1);
        Mark {
            rows: self.clone(),
            table: table.clone(),
            row,
            number: self.last.get(),
            is_doubtful: Cell::new(false),
        }
    }
}

impl Mark {
    /// Becomes another mark, in the same row: whichever of two transactions is committed first keeps the
    /// other one out.
    pub(crate) fn renew(&mut self) {
        self.rows.last.set(self.rows.last.get() + 1);
        self.number = self.rows.last.get();
    }

    /// The statement that leaves it.
    pub(crate) fn statement(&self) -> String {
        format!(
            "REPLACE INTO {} (proxy, slot, mark) VALUES ({}, {}, {})",
            self.table,
            self.rows.own.get(),
            self.row,
            self.number
        )
    }

    /// The question what stands there. It waits for the transaction that has left the mark, if that is not
    /// over.
    pub(crate) fn question(&self) -> String {
        format!(
            "SELECT mark FROM {} WHERE proxy = {} AND slot = {} FOR UPDATE",
            self.table,
            self.rows.own.get(),
            self.row
        )
    }

    /// Whether this is what stands there.
    pub(crate) fn is(&self, found: &[u8]) -> bool {
        *found == *self.number.to_string().as_bytes()
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        if !self.is_doubtful.get() {
            self.rows.free.borrow_mut().push_back(self.row);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_used_by_one_at_a_time_and_never_behind_who_is_doubtful() {
        rt::sim::run(1, rt::sim::Faults::perfect(), |rt| async move {
            let rows = Rc::<Rows>::default();
            let table: Arc<str> = "`m`.`marks`".into();
            let first = rows.next(&rt, &table);
            assert!(first.statement().ends_with(", 0, 1)"), "{first:?}");
            assert!(first.is(b"1") && !first.is(b"2") && !first.is(b""));
            let mut first = first;
            first.renew();
            assert!(first.statement().ends_with(", 0, 2)"), "{first:?}");
            drop(first);
            let others: Vec<_> = (0..ROWS_MIN).map(|_| rows.next(&rt, &table)).collect();
            let of = |mark: &Mark| mark.row;
            let all: Vec<_> = others.iter().map(of).collect();
            let mut wanted: Vec<_> = (1..ROWS_MIN).collect();
            wanted.push(0);
            assert_eq!(all, wanted);
            others[0].is_doubtful.set(true);
            drop(others);
            let again: Vec<_> = (0..ROWS_MIN).map(|_| rows.next(&rt, &table)).collect();
            assert!(again.iter().all(|mark| mark.row != 1));
            assert_eq!(again.last().map(of), Some(ROWS_MIN));
        });
    }
}
