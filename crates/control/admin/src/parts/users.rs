//! `MYSQL USERS`.

use super::firewall;
use super::part::{Outcome, Part, paused};
use super::tables::InForce;
use crate::tables::Module;
use config::{Help, Snapshot, UserRow};
use std::sync::Arc;

pub(super) struct Users;

impl Part for Users {
    const MODULE: Module = Module::Users;
    type Rows = (Vec<UserRow>,);

    fn build(next: &mut Snapshot, (rows,): Self::Rows, help: &dyn Help) -> Outcome {
        build(next, rows, help)
    }
}

impl InForce for UserRow {
    const IS_LARGE: bool = true;

    fn in_force(snapshot: &Snapshot) -> impl Iterator<Item = Self> {
        snapshot.users.rows().into_iter()
    }
}

/// Puts users into the next snapshot.
pub(crate) fn build(next: &mut Snapshot, rows: Vec<UserRow>, help: &dyn Help) -> Outcome {
    next.users = Arc::new(config::Users::build(paused(rows, help), &next.variables)?);
    let mut notices = firewall::unseen(next);
    notices.extend(next.scripts.bypassed_by(&next.users));
    Ok(notices)
}
