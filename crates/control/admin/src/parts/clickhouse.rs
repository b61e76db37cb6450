//! `CLICKHOUSE USERS`.

use super::part::{Outcome, Part};
use super::tables::InForce;
use crate::tables::Module;
use config::{ClickhouseSettingsRow, ClickhouseUserRow, Help, Refusal, Snapshot, Variables};
use std::fs;
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

/// Whether a file of authorities is named that cannot be read, or that nobody looks at.
pub(super) fn check_tls(variables: &Variables, help: &dyn Help) -> Option<Refusal> {
    let path = &*variables.clickhouse_tls_ca;
    if path.is_empty() {
        return None;
    }
    let words = match variables.clickhouse_tls {
        false => "has no effect while clickhouse-tls is false".to_owned(),
        true => {
            help.pause();
            let failed = fs::File::open(path).err()?;
            format!(
                "'{path}' cannot be read: {failed}; every statement for ClickHouse will be told so"
            )
        }
    };
    Some(Refusal {
        table: "global_variables",
        row: String::new(),
        column: "clickhouse-tls_ca",
        words,
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_authorities_that_is_not_used_or_not_there_is_named() {
        let told = |tls: bool, ca: &str| {
            let variables = Variables {
                clickhouse_tls: tls,
                clickhouse_tls_ca: ca.into(),
                ..Variables::default()
            };
            check_tls(&variables, &config::Alone).map(|refusal| refusal.to_string())
        };
        assert_eq!(told(true, ""), None);
        assert_eq!(told(true, "/proc/self/status"), None);
        let unused = told(false, "/proc/self/status").unwrap();
        assert!(
            unused.contains("clickhouse-tls_ca has no effect"),
            "{unused}"
        );
        let missing = told(true, "/nowhere/ca.pem").unwrap();
        assert!(
            missing.contains("'/nowhere/ca.pem' cannot be read"),
            "{missing}"
        );
    }
}
