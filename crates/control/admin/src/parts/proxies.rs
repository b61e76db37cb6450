//! `PROXYSQL SERVERS`: the proxies that share their configuration.

use super::part::{Outcome, Part};
use super::tables::InForce;
use crate::tables::Module;
use config::{Help, ProxyRow, Refusal, Snapshot};
use std::sync::Arc;

pub(super) struct Proxies;

impl Part for Proxies {
    const MODULE: Module = Module::ProxysqlServers;
    type Rows = (Vec<ProxyRow>,);

    fn build(next: &mut Snapshot, (rows,): Self::Rows, _help: &dyn Help) -> Outcome {
        next.proxies = Arc::new(config::Proxies::build(rows)?);
        let is_alone =
            next.proxies.rows().is_empty() || !next.variables.admin_cluster_username.is_empty();
        let words = "is empty: no other proxy is asked for anything".into();
        let notice = Refusal {
            table: "global_variables",
            row: String::new(),
            column: "admin-cluster_username",
            words,
        };
        Ok(if is_alone { Vec::new() } else { vec![notice] })
    }
}

impl InForce for ProxyRow {
    fn in_force(snapshot: &Snapshot) -> impl Iterator<Item = Self> {
        snapshot.proxies.rows().iter().cloned()
    }
}
