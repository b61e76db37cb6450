//! `scheduler`: the programs that are run again and again.

use crate::refusal::Refusals;
use crate::{Refusal, SchedulerRow};

/// The rows, in the order of their ids.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Schedule(Vec<SchedulerRow>);

/// Rows at most: each may be a process.
const MAX: usize = 1000;

impl Schedule {
    /// From the rows of `scheduler`.
    ///
    /// # Errors
    /// Every row that cannot be run.
    pub fn build(rows: impl IntoIterator<Item = SchedulerRow>) -> Result<Self, Vec<Refusal>> {
        let mut refusals = Refusals::of("scheduler");
        let mut rows: Vec<_> = rows.into_iter().collect();
        rows.sort_unstable_by_key(|row| row.id);
        for row in &rows {
            let which = || format!("id {}", row.id);
            let range = (100, 100_000_000);
            let _ms: u32 = refusals.number(which, "interval_ms", row.interval_ms, range);
            refusals.flag(which, "active", row.active);
            if row.filename.trim().is_empty() {
                refusals.add(which, "filename", "must not be empty");
            }
            let mut texts = row.args().chain([&*row.filename]);
            if texts.any(|text| text.contains('\0')) {
                refusals.add(
                    which,
                    "",
                    "has a NUL in its command line: no program can get that",
                );
            }
        }
        if rows.len() > MAX {
            refusals.add(
                String::new,
                "",
                format!("has {} rows; {MAX} are the most", rows.len()),
            );
        }
        refusals.or(Self(rows))
    }

    /// All rows.
    #[must_use]
    pub fn rows(&self) -> &[SchedulerRow] {
        &self.0
    }

    /// Those that are run.
    pub fn active(&self) -> impl Iterator<Item = &SchedulerRow> {
        self.0.iter().filter(|row| row.active == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_no_process_can_be_made_of_are_refused() {
        let row = |id, interval_ms, filename: &str| SchedulerRow {
            id,
            interval_ms,
            filename: filename.into(),
            ..SchedulerRow::default()
        };
        let arg = SchedulerRow {
            arg1: Some("a\0b".into()),
            ..row(1, 1000, "/bin/x")
        };
        let refused = Schedule::build([row(3, 99, "/bin/x"), row(2, 100, " "), arg]).unwrap_err();
        let words: Vec<_> = refused.iter().map(ToString::to_string).collect();
        assert_eq!(
            words,
            [
                "scheduler (id 1): has a NUL in its command line: no program can get that",
                "scheduler (id 2): filename must not be empty",
                "scheduler (id 3): interval_ms must be from 100 to 100000000; '99' is not",
            ]
        );
        let all = Schedule::build((0..=1000).map(|id| row(id, 100, "/bin/x")));
        assert_eq!(all.unwrap_err().len(), 1);
    }

    #[test]
    fn arguments_end_at_the_first_null_and_inactive_rows_are_not_run() {
        let row = SchedulerRow {
            id: 1,
            interval_ms: 100,
            filename: "/bin/x".into(),
            arg1: Some("a".into()),
            arg2: Some(String::new()),
            arg4: Some("never".into()),
            ..SchedulerRow::default()
        };
        assert_eq!(row.args().collect::<Vec<_>>(), ["a", ""]);
        let idle = SchedulerRow {
            id: 2,
            active: 0,
            ..row.clone()
        };
        let schedule = Schedule::build([idle, row]).unwrap();
        assert_eq!(schedule.active().map(|row| row.id).collect::<Vec<_>>(), [1]);
        assert_eq!(schedule.rows().len(), 2);
    }
}
