//! Which rows are due when. No clock is read here.

use config::{Schedule, SchedulerRow};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Rows to be run, by id.
#[derive(Default)]
pub(crate) struct Agenda {
    rows: BTreeMap<i64, Entry>,
}

struct Entry {
    row: SchedulerRow,
    due: Instant,
    /// Times that it was due and did not begin since it last did.
    skipped: u64,
}

fn interval(row: &SchedulerRow) -> Duration {
    Duration::from_millis(u64::try_from(row.interval_ms).unwrap_or(u64::MAX))
}

impl Agenda {
    /// Takes over the active rows. One whose interval stays keeps its rhythm; any other begins one
    /// interval from now.
    pub(crate) fn load(&mut self, schedule: &Schedule, now: Instant) {
        let mut before = std::mem::take(&mut self.rows);
        for row in schedule.active() {
            let row = row.clone();
            let entry = match before.remove(&row.id) {
                Some(known) if known.row.interval_ms == row.interval_ms => Entry { row, ..known },
                _ => Entry {
                    due: now + interval(&row),
                    row,
                    skipped: 0,
                },
            };
            self.rows.insert(entry.row.id, entry);
        }
    }

    /// Time until the next row is due.
    pub(crate) fn next(&self, now: Instant) -> Option<Duration> {
        let first = self.rows.values().map(|entry| entry.due).min()?;
        Some(first.saturating_duration_since(now))
    }

    /// Rows that are due, which therefore are due again an interval later. What was missed while
    /// nobody looked is not made up for.
    pub(crate) fn due(&mut self, now: Instant) -> Vec<SchedulerRow> {
        let mut due = Vec::new();
        for entry in self.rows.values_mut().filter(|entry| entry.due <= now) {
            entry.due += interval(&entry.row);
            if entry.due <= now {
                entry.due = now + interval(&entry.row);
            }
            due.push(entry.row.clone());
        }
        due
    }

    /// Notes that a row was due and did not begin.
    pub(crate) fn skipped(&mut self, id: i64) {
        if let Some(entry) = self.rows.get_mut(&id) {
            entry.skipped += 1;
        }
    }

    /// Number of times that this was so since it was last asked.
    pub(crate) fn take_skipped(&mut self, id: i64) -> u64 {
        let entry = self.rows.get_mut(&id);
        entry.map_or(0, |entry| std::mem::take(&mut entry.skipped))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(rows: &[(i64, i64)]) -> Schedule {
        let row = |(id, interval_ms): &(i64, i64)| SchedulerRow {
            id: *id,
            interval_ms: *interval_ms,
            filename: "/bin/x".into(),
            ..SchedulerRow::default()
        };
        Schedule::build(rows.iter().map(row)).unwrap()
    }

    #[test]
    fn rows_are_due_each_at_its_own_pace_and_nothing_is_made_up_for() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut agenda = Agenda::default();
        agenda.load(&schedule(&[(1, 100), (2, 250)]), start);
        assert_eq!(agenda.next(at(30)), Some(Duration::from_millis(70)));
        let mut due = |ms| {
            agenda
                .due(at(ms))
                .iter()
                .map(|row| row.id)
                .collect::<Vec<_>>()
        };
        assert_eq!(due(99), [0; 0]);
        assert_eq!(due(100), [1]);
        // A little late does not shift the rhythm.
        assert_eq!(due(230), [1]);
        assert_eq!(due(299), [2]);
        assert_eq!(due(300), [1]);
        assert_eq!(due(5000), [1, 2]);
        assert_eq!(due(5001), [0; 0]);
    }

    #[test]
    fn a_load_leaves_the_rhythm_of_rows_that_stay() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut agenda = Agenda::default();
        agenda.load(&schedule(&[(1, 1000), (2, 1000), (3, 1000)]), start);
        agenda.skipped(1);
        agenda.load(&schedule(&[(1, 1000), (2, 400), (4, 700)]), at(500));
        let mut due = |ms| {
            agenda
                .due(at(ms))
                .iter()
                .map(|row| row.id)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            (due(900), due(1000), due(1200)),
            (vec![2], vec![1], vec![4])
        );
        assert_eq!((agenda.take_skipped(1), agenda.take_skipped(1)), (1, 0));
    }
}
