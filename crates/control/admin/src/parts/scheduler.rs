//! `SCHEDULER`: the programs that are run again and again.

use super::part::{Outcome, Part};
use super::tables::InForce;
use crate::rows::Mapped as _;
use crate::tables::Module;
use config::{Help, Refusal, Schedule, SchedulerRow, Snapshot};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

pub(super) struct Scheduler;

impl Part for Scheduler {
    const MODULE: Module = Module::Scheduler;
    type Rows = (Vec<SchedulerRow>,);

    /// A program may be installed after its row, so its absence is told and no reason to refuse.
    fn build(next: &mut Snapshot, (rows,): Self::Rows, help: &dyn Help) -> Outcome {
        next.schedule = Arc::new(Schedule::build(rows)?);
        let notice = |row: &SchedulerRow| {
            help.pause();
            Some(Refusal {
                table: SchedulerRow::TABLE,
                row: format!("id {}", row.id),
                column: "filename",
                words: unusable(&row.filename)?,
            })
        };
        Ok(next.schedule.active().filter_map(notice).collect())
    }
}

impl InForce for SchedulerRow {
    fn in_force(snapshot: &Snapshot) -> impl Iterator<Item = Self> {
        snapshot.schedule.rows().iter().cloned()
    }
}

/// Reason why this file would not run now.
pub(super) fn unusable(filename: &str) -> Option<String> {
    let until = "each run fails until it is";
    match fs::metadata(filename) {
        Err(error) => Some(format!("'{filename}' cannot be found ({error}): {until}")),
        Ok(found) if !found.is_file() => Some(format!("'{filename}' is no file: {until}")),
        Ok(found) if found.permissions().mode() & 0o111 == 0 => {
            Some(format!("'{filename}' is not executable: {until}"))
        }
        Ok(_) => None,
    }
}
