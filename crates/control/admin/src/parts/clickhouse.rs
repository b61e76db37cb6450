//! `CLICKHOUSE USERS`.

use super::tables::InForce;
use super::{Outcome, Part};
use crate::tables::Module;
use config::{ClickhouseSettingsRow, ClickhouseUserRow, Help, Refusal, Snapshot};
use std::sync::Arc;

pub(super) struct ClickhouseUsers;

impl Part for ClickhouseUsers {
    const MODULE: Module = Module::ClickhouseUsers;
    type Rows = (Vec<ClickhouseUserRow>, Vec<ClickhouseSettingsRow>);

    fn build(next: &mut Snapshot, (users, settings): Self::Rows, _: &dyn Help) -> Outcome {
        let is_served = next.clickhouse.is_served();
        let built = config::ClickhouseUsers::build(users, settings)?.served(is_served);
        let lacks_a_door = !is_served && built.user_rows().next().is_some();
        next.clickhouse = Arc::new(built);
        Ok(lacks_a_door.then(no_door).into_iter().collect())
    }
}

fn no_door() -> Refusal {
    Refusal {
        table: "clickhouse_users",
        row: String::new(),
        column: "",
        words: "has users, and nobody can come in: this process was started without --clickhouse-server"
            .to_owned(),
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
