//! What checks have found lately: the tables of schema `monitor`.

use bridge::{Check, CheckRow};
use std::collections::VecDeque;

/// Rows of a kind of check at most, some 10 MB: where servers are many, the history is shorter.
const ROWS_MAX: usize = 100_000;

#[derive(Default)]
pub(crate) struct History {
    checks: [VecDeque<CheckRow>; Check::ALL.len()],
    /// Good and failed ones of each kind, also those whose rows are gone.
    counts: [[u64; 2]; Check::ALL.len()],
}

impl History {
    /// Adds a row, and drops those that began so much earlier.
    pub(crate) fn add(&mut self, check: Check, row: CheckRow, keep_us: u64) {
        self.counts[check as usize][usize::from(row.error.is_some())] += 1;
        let rows = &mut self.checks[check as usize];
        let oldest = row.start_us.saturating_sub(keep_us);
        while rows.front().is_some_and(|first| first.start_us < oldest) || rows.len() >= ROWS_MAX {
            rows.pop_front();
        }
        rows.push_back(row);
    }

    /// How many of each kind were good, and how many failed.
    pub(crate) const fn counts(&self) -> [[u64; 2]; Check::ALL.len()] {
        self.counts
    }

    /// All rows of a kind, the oldest first.
    pub(crate) fn rows(&self, check: Check) -> Vec<CheckRow> {
        self.checks[check as usize].iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_old_goes_and_there_is_no_more_than_fits() {
        let row = |start_us| CheckRow {
            host: "a".into(),
            port: 1,
            start_us,
            took_us: 1,
            found: bridge::Found::Nothing,
            name: None,
            error: None,
        };
        let mut history = History::default();
        for start in [100, 200, 300] {
            history.add(Check::Ping, row(start), 150);
        }
        let starts: Vec<_> = history
            .rows(Check::Ping)
            .iter()
            .map(|row| row.start_us)
            .collect();
        assert_eq!(starts, [200, 300]);
        assert!(history.rows(Check::Lag).is_empty());
        for start in 0..(ROWS_MAX as u64 + 5) {
            history.add(Check::Connect, row(start), u64::MAX);
        }
        assert_eq!(history.rows(Check::Connect).len(), ROWS_MAX);
    }
}
