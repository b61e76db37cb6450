//! `MYSQL SCRIPTS`: Lua between clients and servers.

use super::part::{Outcome, Part};
use super::tables::InForce;
use crate::tables::Module;
use config::{Help, ScriptRow, Scripts as Built, Snapshot};
use std::fs;
use std::sync::Arc;

pub(super) struct Scripts;

impl Part for Scripts {
    const MODULE: Module = Module::Scripts;
    type Rows = (Vec<ScriptRow>,);

    fn build(next: &mut Snapshot, (rows,): Self::Rows, help: &dyn Help) -> Outcome {
        let read = |path: &str| {
            help.pause();
            fs::read_to_string(path).map_err(|error| format!("'{path}' cannot be read: {error}"))
        };
        let given = next.scripts.given().clone();
        next.scripts = Arc::new(Built::build(rows, given, read)?);
        let scripts = next.scripts.of_buckets();
        if next.shards.scripts() != scripts {
            let bound = next.shards.with_scripts(scripts);
            next.shards = Arc::new(bound.expect("rows that were honoured are so with any scripts"));
        }
        let mut notices = next.scripts.missed_by(&next.rules);
        notices.extend(next.scripts.bypassed_by(&next.users));
        notices.extend(super::shards::unknown(next));
        Ok(notices)
    }
}

/// A snapshot whose scripts are as their files are now, or every reason against it.
pub(crate) fn read_scripts_again(
    now: Snapshot,
    help: &dyn Help,
) -> Result<Snapshot, Vec<config::Refusal>> {
    let rows = now.scripts.rows().to_vec();
    let mut next = Snapshot {
        generation: now.generation + 1,
        ..now
    };
    Scripts::build(&mut next, (rows,), help)?;
    Ok(next)
}

impl InForce for ScriptRow {
    fn in_force(snapshot: &Snapshot) -> impl Iterator<Item = Self> {
        snapshot.scripts.rows().iter().cloned()
    }
}
