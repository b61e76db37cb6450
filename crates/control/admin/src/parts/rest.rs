//! `RESTAPI`: the programs behind addresses of HTTP.

use super::part::{Outcome, Part};
use super::scheduler::unusable;
use super::tables::InForce;
use crate::rows::Mapped as _;
use crate::tables::Module;
use config::{Help, Refusal, RestRouteRow, RestRoutes, Snapshot};
use std::sync::Arc;

pub(super) struct Rest;

impl Part for Rest {
    const MODULE: Module = Module::RestApi;
    type Rows = (Vec<RestRouteRow>,);

    /// A program may be installed after its row, so its absence is told and no reason to refuse.
    fn build(next: &mut Snapshot, (rows,): Self::Rows, help: &dyn Help) -> Outcome {
        next.rest = Arc::new(RestRoutes::build(rows)?);
        let notice = |row: &RestRouteRow| {
            help.pause();
            Some(Refusal {
                table: RestRouteRow::TABLE,
                row: format!("id {}", row.id),
                column: "script",
                words: unusable(&row.script)?,
            })
        };
        Ok(next.rest.active().filter_map(notice).collect())
    }
}

impl InForce for RestRouteRow {
    fn in_force(snapshot: &Snapshot) -> impl Iterator<Item = Self> {
        snapshot.rest.rows().iter().cloned()
    }
}
