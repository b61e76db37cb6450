//! Changes that partitions make one after another, and how far each has come.

use bridge::ShardDdlRow;
use plan::Gather;
use std::cell::RefCell;
use std::collections::VecDeque;

/// Rows that a core keeps; of more the oldest go.
const ROWS_MAX: usize = 1_000;
/// Bytes of a statement that are shown.
const SHOWN_MAX: usize = 1_024;

/// Statements that run on all partitions in turn, and what became of them on this core.
#[derive(Default)]
pub(crate) struct InTurn(RefCell<VecDeque<ShardDdlRow>>);

impl InTurn {
    /// Those of the last statements.
    pub(crate) fn rows(&self, reset: bool) -> Vec<ShardDdlRow> {
        let rows = self.0.borrow().iter().cloned().collect();
        if reset {
            self.0.borrow_mut().clear();
        }
        rows
    }

    pub(crate) fn begin(&self, id: u64, text: &[u8], now_s: u64, gather: &Gather) {
        let statement = String::from_utf8_lossy(&text[..text.len().min(SHOWN_MAX)]).into_owned();
        let mut rows = self.0.borrow_mut();
        for (number, part) in (0..).zip(&gather.parts) {
            if rows.len() >= ROWS_MAX {
                rows.pop_front();
            }
            rows.push_back(ShardDdlRow {
                id,
                number,
                partitions: part.partitions.as_ref().into(),
                hostgroup: part.hostgroup,
                statement: statement.as_str().into(),
                state: "waits",
                error: "".into(),
                changed_at: now_s,
            });
        }
    }

    pub(crate) fn now(
        &self,
        id: u64,
        number: u64,
        (state, error): (&'static str, &str),
        now_s: u64,
    ) {
        let mut rows = self.0.borrow_mut();
        let mut same = rows.iter_mut();
        if let Some(row) = same.find(|row| row.id == id && row.number == number) {
            (row.state, row.error, row.changed_at) = (state, error.into(), now_s);
        }
    }
}
