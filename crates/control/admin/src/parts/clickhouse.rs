//! `CLICKHOUSE USERS`.

use super::tables::InForce;
use super::{Outcome, Part};
use crate::tables::Module;
use config::{ClickhouseSettingsRow, ClickhouseUserRow, Help, Snapshot};
use std::sync::Arc;

pub(super) struct ClickhouseUsers;

impl Part for ClickhouseUsers {
    const MODULE: Module = Module::ClickhouseUsers;
    type Rows = (Vec<ClickhouseUserRow>, Vec<ClickhouseSettingsRow>);

    fn build(next: &mut Snapshot, (users, settings): Self::Rows, _: &dyn Help) -> Outcome {
        next.clickhouse = Arc::new(config::ClickhouseUsers::build(users, settings)?);
        Ok(Vec::new())
    }
}

impl InForce for ClickhouseUserRow {
    fn in_force(snapshot: &Snapshot) -> impl Iterator<Item = Self> {
        snapshot.clickhouse.user_rows()
    }
}

impl InForce for ClickhouseSettingsRow {
    fn in_force(snapshot: &Snapshot) -> impl Iterator<Item = Self> {
        snapshot.clickhouse.settings_rows()
    }
}
