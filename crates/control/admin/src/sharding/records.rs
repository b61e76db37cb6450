//! Records of moves: those that go on, those that wait, and the last that are over. They are kept in
//! `disk`, and a process goes on with those of the one before.

use crate::engine::{Engine, Reply, SqlError};
use crate::grid::Grid;
use crate::said::Said;
use bridge::{MoveRow, NewName};
use mover::{Record, State};
use rt::local::Notify;
use rusqlite::Connection;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// So many moves that are over are kept.
const OVER_KEPT: usize = 100;

/// All moves, by their numbers.
#[derive(Default)]
pub(crate) struct Moves {
    records: RefCell<BTreeMap<u64, Record>>,
    lags: RefCell<BTreeMap<u64, Duration>>,
    cancelled: RefCell<BTreeSet<u64>>,
    /// How many go on.
    running: Cell<usize>,
    /// Another process goes on with them.
    stopped: Cell<bool>,
    /// Those that are about to be run.
    begun: RefCell<Vec<Record>>,
    /// Rung when there is one.
    begins: Notify,
    /// Rung when one has ended.
    ended: Notify,
}

impl Moves {
    /// Has a move run.
    pub(crate) fn run(&self, record: Record) {
        self.begun.borrow_mut().push(record);
        self.begins.notify_one();
    }

    /// Moves that are to be run, as soon as there are some.
    pub(crate) fn to_run(&self) -> Vec<Record> {
        self.begun.take()
    }

    /// Waits until there is a move to be run.
    pub(crate) async fn one_begins(&self) {
        self.begins.wait().await;
    }

    /// A move goes on from now on.
    pub(crate) fn goes_on(&self) {
        self.running.set(self.running.get() + 1);
    }

    /// A move does not go on any more. Returns words for the log if a defect has ended it.
    pub(crate) fn ends(&self, id: u64) -> Option<String> {
        self.running.set(self.running.get().saturating_sub(1));
        self.ended.notify_all();
        // Where a defect has ended it, somebody may be reading this.
        let mut records = self.records.try_borrow_mut().ok()?;
        let is_defect = |record: &&mut Record| !record.state.is_over() && !self.stopped.get();
        let record = records.get_mut(&id).filter(is_defect)?;
        let words = "a defect has ended it; it goes on with the next start";
        record.last_error = words.to_owned();
        Some(format!("{}: {words}", record.shown()))
    }

    /// Whether one goes on.
    pub(crate) fn is_running(&self) -> bool {
        self.running.get() > 0
    }

    /// Waits until a move has ended.
    pub(crate) async fn one_ends(&self) {
        self.ended.wait().await;
    }

    /// Whether another process goes on with them.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.get()
    }

    /// Stops them all, or lets them go on; whether it was so before.
    pub(crate) fn stop(&self, stop: bool) -> bool {
        self.stopped.replace(stop)
    }

    /// A move shall end, and remove what it has made.
    pub(crate) fn cancel(&self, id: u64) {
        self.cancelled.borrow_mut().insert(id);
    }

    /// Whether a move shall end.
    pub(crate) fn is_cancelled(&self, id: u64) -> bool {
        self.cancelled.borrow().contains(&id)
    }

    /// Notes how far a move is behind what is written meanwhile.
    pub(crate) fn lags(&self, id: u64, lag: Duration) {
        self.lags.borrow_mut().insert(id, lag);
    }

    /// A move that has no number yet.
    pub(crate) fn begin(&self, of: (&str, &str, &str), to: u32, at_s: u64) -> Result<Record, Said> {
        if self.is_stopped() {
            return Err("another process takes over, and moves go on there".into());
        }
        let mut record = Record::new(0, of, at_s);
        record.to = to;
        Ok(record)
    }

    /// Gives a move the next number.
    pub(crate) fn number(&self, record: &mut Record) {
        let last = self.records.borrow().keys().next_back().copied();
        record.id = last.unwrap_or(0) + 1;
    }

    /// Partitions that are being added to a table, those before a number, in their order.
    pub(crate) fn splits_of(&self, schema: &str, table: &str, before: u64) -> Vec<Record> {
        let records = self.records.borrow();
        let all = records.values().filter(|record| {
            record.split.is_some()
                && !record.state.is_over()
                && record.id < before
                && (record.schema.as_str(), record.table.as_str()) == (schema, table)
        });
        all.cloned().collect()
    }

    /// Another move of the same rows that is under way.
    pub(crate) fn other_than(&self, record: &Record) -> Option<Record> {
        let records = self.records.borrow();
        let mut others = records
            .values()
            .filter(|other| !other.state.is_over() && other.state != State::Waiting);
        let own = tables_of(record);
        others
            .find(|other| tables_of(other).iter().any(|table| own.contains(table)))
            .cloned()
    }

    /// A move of a table's partitions that is under way, or waits.
    pub(crate) fn of_table(&self, schema: &str, table: &str) -> Option<Record> {
        let records = self.records.borrow();
        let mut all = records.values().filter(|record| !record.state.is_over());
        let is_its = |record: &&Record| (&*record.schema, &*record.table) == (schema, table);
        all.find(is_its).cloned()
    }

    /// Gives moves of tables that are over their new names: what they have left is dropped by it.
    pub(crate) fn rename(
        &self,
        engine: &RefCell<Engine>,
        names: &[NewName],
    ) -> Result<(), SqlError> {
        let renamed = |record: &Record| {
            let is_its =
                |name: &&NewName| (&*record.schema, &*record.table) == (&*name.schema, &*name.from);
            let name = names.iter().find(is_its)?;
            Some(Record {
                table: name.to.to_string(),
                ..record.clone()
            })
        };
        let records = self.records.borrow();
        let renamed: Vec<Record> = records.values().filter_map(renamed).collect();
        drop(records);
        renamed
            .iter()
            .try_for_each(|record| self.keep(engine, record))
    }

    /// The last move of a partition that is so.
    pub(crate) fn last(
        &self,
        (schema, table, partition): (&str, &str, &str),
        is_wanted: impl Fn(&Record) -> bool,
    ) -> Option<Record> {
        let records = self.records.borrow();
        let mut all = records.values().rev();
        all.find(|record| {
            record.schema.eq_ignore_ascii_case(schema)
                && record.table.eq_ignore_ascii_case(table)
                && record.partition == partition
                && is_wanted(record)
        })
        .cloned()
    }

    /// Keeps how far a move is.
    pub(crate) fn keep(&self, engine: &RefCell<Engine>, record: &Record) -> Result<(), SqlError> {
        let mut records = self.records.borrow_mut();
        records.insert(record.id, record.clone());
        let over = records
            .values()
            .filter(|one| one.state.is_over() && one.fence.is_none());
        let over: Vec<_> = over.map(|one| one.id).collect();
        let surplus = over.len().saturating_sub(OVER_KEPT);
        over.iter().take(surplus).for_each(|id| {
            records.remove(id);
        });
        if record.state.is_over() {
            self.cancelled.borrow_mut().remove(&record.id);
            self.lags.borrow_mut().remove(&record.id);
        }
        drop(records);
        let text = serde_json::to_string(record).unwrap_or_default();
        engine.borrow().transaction(|conn| {
            for id in &over[..surplus] {
                conn.execute("DELETE FROM disk.saved_moves WHERE id = ?1", [id])?;
            }
            let sql = "INSERT OR REPLACE INTO disk.saved_moves VALUES (?1, ?2)";
            conn.execute(sql, (record.id, &text)).map(drop)?;
            Ok(())
        })
    }

    /// Reads the moves that are kept. Returns those that are not over.
    pub(crate) fn read(&self, conn: &Connection) -> Result<Vec<Record>, String> {
        let kept = kept(conn)?;
        let mut records = self.records.borrow_mut();
        records.clear();
        records.extend(kept.into_iter().map(|record| (record.id, record)));
        let all = records.values().filter(|record| !record.state.is_over());
        Ok(all.cloned().collect())
    }

    /// Rows of `stats_millrace_moves`.
    pub(crate) fn rows(&self) -> Vec<MoveRow> {
        let lags = self.lags.borrow();
        let records = self.records.borrow();
        let row = |record: &Record| {
            let lag = lags.get(&record.id).copied().unwrap_or_default();
            MoveRow {
                id: record.id,
                schema: record.schema.as_str().into(),
                table: record.table.as_str().into(),
                partition: record.partition.as_str().into(),
                from: record.from,
                to: record.to,
                state: record.state.name(),
                rows_copied: record.rows_copied,
                rows_applied: record.rows_applied,
                lag_ms: u64::try_from(lag.as_millis()).unwrap_or(u64::MAX),
                tries: record.tries,
                old_table: record
                    .fence
                    .as_deref()
                    .map(|old| format!("{}.{old}", record.database).into()),
                error: record.last_error.as_str().into(),
                started_at: record.started_at,
                changed_at: record.changed_at,
            }
        };
        records.values().map(row).collect()
    }

    /// `HSCALE SHOW MOVES`.
    pub(crate) fn show(&self) -> Reply {
        let mut grid = Grid::new([
            "id",
            "table",
            "partition",
            "from",
            "to",
            "state",
            "rows copied",
            "rows applied",
            "lag ms",
            "old table",
            "error",
        ]);
        for row in self.rows() {
            let table = match &*row.schema {
                "" => row.table.to_string(),
                schema => format!("{schema}.{}", row.table),
            };
            grid.push_row([
                Some(row.id.to_string()),
                Some(table),
                Some(row.partition.to_string()),
                Some(row.from.to_string()),
                Some(row.to.to_string()),
                Some(row.state.to_owned()),
                Some(row.rows_copied.to_string()),
                Some(row.rows_applied.to_string()),
                Some(row.lag_ms.to_string()),
                row.old_table.map(|old| old.to_string()),
                Some(row.error.to_string()),
            ]);
        }
        Reply::Rows(grid)
    }
}

/// Tables that a move takes rows from.
fn tables_of(record: &Record) -> Vec<(&str, &str)> {
    let own = (&*record.database, &*record.physical);
    let merge = record.merge.as_ref();
    let other = merge.map(|merge| (&*merge.database, &*merge.physical));
    [Some(own), other].into_iter().flatten().collect()
}

fn kept(conn: &Connection) -> Result<Vec<Record>, String> {
    let words = |error: rusqlite::Error| error.to_string();
    let mut select = conn
        .prepare("SELECT record FROM disk.saved_moves ORDER BY id")
        .map_err(words)?;
    let texts = select
        .query_map([], |row| row.get::<_, String>(0))
        .map_err(words)?;
    texts
        .map(|text| {
            let text = text.map_err(words)?;
            serde_json::from_str(&text).map_err(|error| error.to_string())
        })
        .collect()
}
