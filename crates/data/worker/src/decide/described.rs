//! Columns of sharded tables in their order: asked of a server for an INSERT that names none, and kept for a
//! while.

use crate::command::job::{Job, Text, What};
use crate::command::trouble::Ended;
use crate::decide::facts::Settled;
use crate::known::answer::Complaint;
use crate::known::epoch::Epoch;
use crate::partitions::asking::Stopped;
use crate::partitions::whole_rows::rows_of;
use crate::session::Session;
use plan::{Answer, Plan};
use shards::{ColumnOrder, Undescribed, lacks_columns};
use wire::attributes::Attributes;

/// The table is not there, but may be elsewhere.
const NO_TABLE: u16 = 1146;

impl Session {
    /// Whether a statement may have to wait for the columns of its table.
    pub(crate) fn wants_columns(&self, epoch: &Epoch, read: Text<'_>, what: What<'_>) -> bool {
        let map = &epoch.snapshot.shards;
        let may_insert = read.class.inserts || matches!(what, What::Prepare(_));
        if !may_insert || map.is_empty() {
            return false;
        }
        let schema = self.schema_of(epoch, read.class, what.prepared_in());
        let lacking = lacks_columns(map, read.sql, schema, self.lexing_of(what));
        lacking.is_some_and(|(table, schema)| {
            epoch.descriptions.age(self.core.rt.now());
            epoch.descriptions.known().of(table, &schema).is_none()
        })
    }

    /// Has the columns of a statement's table known; the complaint if they cannot be had.
    pub(crate) async fn columns_for(
        &mut self,
        epoch: &Epoch,
        read: Text<'_>,
        what: What<'_>,
    ) -> Result<Option<Complaint>, Ended> {
        if !matches!(what, What::Query(_) | What::Execute(_) | What::Prepare(_)) {
            return Ok(None);
        }
        let mut plan = self.decide_with(epoch, read, what, Settled::default());
        let Some(Answer::Columns(wanted)) = plan.answer.take() else {
            return Ok(None);
        };
        match Box::pin(self.ask_for_columns(epoch, plan, &wanted)).await {
            Ok(columns) => {
                let now = self.core.rt.now();
                epoch.descriptions.learn(&wanted, columns, now);
                Ok(None)
            }
            Err(stopped) => stopped.complaint(self.entry.killed.get()).map(Some),
        }
    }

    /// Asks where the table is for its columns. `plan`: what was decided of the statement; of its way
    /// only time limits count here.
    async fn ask_for_columns(
        &self,
        epoch: &Epoch,
        mut plan: Plan,
        wanted: &Undescribed,
    ) -> Result<ColumnOrder, Stopped> {
        let mut last = None;
        plan.leg.statement = plan::Text::AsIs;
        for (hostgroup, table) in &wanted.places {
            let sql = format!("SHOW COLUMNS FROM {table}");
            let class = sql::class(sql.as_bytes());
            plan.leg.hostgroup = *hostgroup;
            let attributes = Attributes::default();
            let job = Job {
                epoch,
                text: sql.as_bytes(),
                class: &class,
                plan: &plan,
                digest: None,
                what: What::Query(&attributes),
                stays: false,
                usual: false,
                ahead: None,
            };
            let mut asking = self.asking(&job, false).as_stored();
            asking.state.schema = wanted.schema.as_str().into();
            let asked = [(*hostgroup, sql.as_bytes())];
            match rows_of(self, &job, &asking, &asked).await {
                Ok(rows) => return Ok(ColumnOrder::read(&rows.concat())),
                Err(Stopped::Said(complaint)) if complaint.code == NO_TABLE => {
                    last = Some(Stopped::Said(complaint));
                }
                Err(other) => return Err(other),
            }
        }
        Err(last.unwrap_or(Stopped::Told))
    }
}
