//! Partitions that move: what an operator says of them, and the proxy as the mover needs it.
//!
//! docs/features/moves.md

use crate::engine::{Reply, SqlError};
use crate::grid::Grid;
use crate::said::Said;
use crate::shared::Shared;
use crate::tables::Module;
use bridge::{MoveRow, ToMonitor};
use mover::{Pace, Part, Place, Record, State, World};
use rt::local::Notify;
use rusqlite::Connection;
use shards::{Home, Kind, Map};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

/// A server may take so long to be reached.
const REACHED_WITHIN: Duration = Duration::from_secs(5);
/// Time that a server may be silent: a chunk of a large table takes its time.
const SILENT_MAX: Duration = Duration::from_secs(120);
/// A gate that nobody opens opens by itself after this, besides the time of the cut.
const GATE_SLACK: Duration = Duration::from_secs(10);
/// So many moves that are over are kept.
const OVER_KEPT: usize = 100;
/// Moves that wait look so often whether it is their turn.
const TURN: Duration = Duration::from_secs(1);
/// Moves that go on end within this when another process takes over.
const STOPS_WITHIN: Duration = Duration::from_secs(10);

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

/// A move that goes on, until this is dropped.
struct Running {
    shared: Rc<Shared>,
    id: u64,
}

impl Running {
    fn begin(shared: Rc<Shared>, id: u64) -> Self {
        let moves = &shared.moves;
        moves.running.set(moves.running.get() + 1);
        Self { shared, id }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let moves = &self.shared.moves;
        moves.running.set(moves.running.get().saturating_sub(1));
        moves.ended.notify_all();
        // Where a defect has ended it, somebody may be reading this.
        let Ok(mut records) = moves.records.try_borrow_mut() else {
            return;
        };
        if let Some(record) = records.get_mut(&self.id)
            && !record.state.is_over()
            && !moves.stopped.get()
        {
            let words = "a defect has ended it; it goes on with the next start";
            record.last_error = words.to_owned();
            (self.shared.hooks.log)(&format!("{}: {words}", record.shown()));
        }
    }
}

/// The proxy, for one move.
struct Ground<'s>(&'s Shared);

impl World for Ground<'_> {
    async fn writer(&self, hostgroup: u32) -> Result<Place, String> {
        self.0.place_of_writer(hostgroup).await
    }

    fn pace(&self) -> Pace {
        let variables = &self.0.snapshot.borrow().variables;
        Pace {
            rows_per_second: variables.mysql_sharding_move_rows_per_second,
            rows_at_once: variables.mysql_sharding_move_rows_at_once,
            cut_over: Duration::from_millis(variables.mysql_sharding_cut_over_ms_max),
        }
    }

    fn keep(&self, record: &Record) -> Result<(), String> {
        self.0.keep_move(record).map_err(|error| error.to_string())
    }

    fn lags(&self, id: u64, lag: Duration) {
        self.0.moves.lags.borrow_mut().insert(id, lag);
    }

    fn is_cancelled(&self, id: u64) -> bool {
        self.0.moves.cancelled.borrow().contains(&id)
    }

    fn is_stopped(&self) -> bool {
        self.0.moves.stopped.get()
    }

    async fn hold(&self, record: &Record, within: Duration) -> Result<(), String> {
        let held = self.0.hold_partition(&gate_of(record), within).await;
        held.map_err(|words| format!("{words}, and it is tried again"))
    }

    async fn release(&self, record: &Record) {
        self.0.cores.open_gate(&gate_of(record)).await;
    }

    fn part(&self, record: &Record) -> Result<Part, String> {
        self.0.part_of(record)
    }

    async fn put_in_force(&self, record: &Record) -> Result<(), String> {
        match &record.split {
            Some(split) => self.0.put_split_in_force(record, split).await,
            None => self.0.put_move_in_force(record).await,
        }
    }

    fn now_s(&self) -> u64 {
        self.0.rt.wall_us() / 1_000_000
    }

    fn note(&self, words: &str) {
        (self.0.hooks.log)(words);
    }
}

/// As the data plane shows the partition that has the rows.
fn gate_of(record: &Record) -> String {
    let table = record.table_shown();
    match &record.split {
        None => gate(&table, &record.partition),
        Some(split) => gate(&table, split.of.as_ref().map_or("", |of| &of.partition)),
    }
}

/// As the data plane shows a partition, or the default one.
pub(crate) fn gate(table_shown: &str, partition: &str) -> String {
    match partition {
        "" => format!("{table_shown} (default)"),
        name => format!("{table_shown}.{name}"),
    }
}

/// Words for a table that has rows of another partition as well.
pub(crate) fn shared_table(map: &Map, home: &Home) -> Option<String> {
    let shares = |other: &&Home| {
        (other.hostgroup, &other.schema, &other.table)
            == (home.hostgroup, &home.schema, &home.table)
            && other.name != home.name
    };
    let other = map.tables().flat_map(|table| &table.homes).find(shares)?;
    Some(format!(
        "its table {} has rows of '{}' as well, and only a table of its own is moved",
        home.table, other.name
    ))
}

impl Shared {
    /// Has statements for a partition wait, until those that began before are over.
    pub(crate) async fn hold_partition(&self, gate: &str, within: Duration) -> Result<(), String> {
        let closes = self.cores.close_gate(gate, within + GATE_SLACK);
        match self.rt.timeout(within, closes).await {
            Ok(true) => Ok(()),
            _ => Err("statements for it did not end in time".to_owned()),
        }
    }

    /// Runs moves, those first that a process before this one has begun.
    pub(crate) async fn keep_moves(self: Rc<Self>) {
        self.resume_moves();
        loop {
            for record in self.moves.begun.take() {
                let shared = self.clone();
                let running = Running::begin(shared.clone(), record.id);
                self.rt.spawn(async move {
                    if let Some(record) = shared.turn_of(record).await {
                        mover::run(&shared.rt, &Ground(&shared), record).await;
                    }
                    drop(running);
                });
            }
            self.moves.begins.wait().await;
        }
    }

    /// Waits until a move may begin that comes behind others; `None` if it does not.
    async fn turn_of(&self, mut record: Record) -> Option<Record> {
        while record.state == State::Waiting {
            if self.moves.stopped.get() {
                return None;
            }
            if self.moves.cancelled.borrow().contains(&record.id) {
                record.state = State::Cancelled;
            } else if self
                .splits_of(&record.schema, &record.table, record.id)
                .is_empty()
            {
                match self.plan_again(&record).await {
                    Ok(planned) => record = planned,
                    Err(said) => record.last_error = said.words(),
                }
            }
            record.changed_at = self.rt.wall_us() / 1_000_000;
            let kept = self.keep_move(&record).map_err(|error| error.to_string());
            record.last_error = kept.err().unwrap_or(record.last_error);
            if record.state == State::Waiting {
                let _nobody_ended = self.rt.timeout(TURN, self.moves.ended.wait()).await;
            }
        }
        (!record.state.is_over()).then_some(record)
    }

    /// Partitions that are being added to a table, those before a number, in their order.
    pub(crate) fn splits_of(&self, schema: &str, table: &str, before: u64) -> Vec<Record> {
        let records = self.moves.records.borrow();
        let all = records.values().filter(|record| {
            record.split.is_some()
                && !record.state.is_over()
                && record.id < before
                && (record.schema.as_str(), record.table.as_str()) == (schema, table)
        });
        all.cloned().collect()
    }

    /// Begins a move that waits for its turn.
    pub(crate) fn queue(&self, mut record: Record) -> Result<Reply, Said> {
        record.state = State::Waiting;
        self.number(&mut record);
        self.keep_move(&record)?;
        let info = format!(
            "{} waits until those before it are over; HSCALE SHOW MOVES tells how far they are",
            record.shown()
        );
        self.run_move(record);
        Ok(Reply::Done { affected: 1, info })
    }

    /// Gives a move the next number.
    fn number(&self, record: &mut Record) {
        let last = self.moves.records.borrow().keys().next_back().copied();
        record.id = last.unwrap_or(0) + 1;
    }

    fn run_move(&self, record: Record) {
        self.moves.begun.borrow_mut().push(record);
        self.moves.begins.notify_one();
    }

    /// Goes on with the moves that are kept.
    fn resume_moves(&self) {
        let kept = match kept_moves(self.engine.borrow().conn()) {
            Ok(kept) => kept,
            Err(error) => {
                (self.hooks.log)(&format!(
                    "moves of partitions are not gone on with: {error}"
                ));
                return;
            }
        };
        let mut records = self.moves.records.borrow_mut();
        records.clear();
        records.extend(kept.into_iter().map(|record| (record.id, record)));
        let all: Vec<_> = records.values().cloned().collect();
        drop(records);
        for record in all.into_iter().filter(|record| !record.state.is_over()) {
            (self.hooks.log)(&format!(
                "{} goes on: {}",
                record.shown(),
                record.state.name()
            ));
            self.run_move(record);
        }
    }

    /// Another process takes over, or has failed to: moves go on in one process only.
    pub(crate) async fn stop_moves(&self, stop: bool) {
        if self.moves.stopped.replace(stop) == stop {
            return;
        }
        if !stop {
            return self.resume_moves();
        }
        let until = self.rt.now() + STOPS_WITHIN;
        while self.moves.running.get() > 0 && self.rt.now() < until {
            let left = until - self.rt.now();
            let _late = self.rt.timeout(left, self.moves.ended.wait()).await;
        }
    }

    /// `HSCALE MOVE_PARTITION`.
    pub(crate) async fn begin_move(
        &self,
        (schema, table, partition): (&str, &str, &str),
        to: u32,
    ) -> Result<Reply, Said> {
        let mut record = self.new_record((schema, table, partition), to)?;
        self.locate(&mut record)?;
        if record.database.is_empty() {
            let found = mover::schema_of(&self.rt, &Ground(self), &record).await;
            record.database = found.map_err(Said::Sql)?;
        }
        self.begin_record(record).await
    }

    /// Looks whether all is there that a move needs.
    pub(crate) async fn look_for(&self, record: &Record) -> Result<(), Said> {
        self.refuse_second_move(record)?;
        let ground = Ground(self);
        let looks = mover::look(&self.rt, &ground, record);
        looks.await.map_err(Said::Sql)?;
        self.refuse_second_move(record)
    }

    /// Looks whether all is there that a move needs, and begins it.
    pub(crate) async fn begin_record(&self, mut record: Record) -> Result<Reply, Said> {
        self.look_for(&record).await?;
        // Nobody else has begun one since.
        self.number(&mut record);
        self.keep_move(&record)?;
        let info = format!(
            "{} has begun; HSCALE SHOW MOVES tells how far it is",
            record.shown()
        );
        self.run_move(record);
        Ok(Reply::Done { affected: 1, info })
    }

    /// A move that has no number yet.
    pub(crate) fn new_record(&self, of: (&str, &str, &str), to: u32) -> Result<Record, Said> {
        if self.moves.stopped.get() {
            return Err("another process takes over, and moves go on there".into());
        }
        let mut record = Record::new(0, of, self.rt.wall_us() / 1_000_000);
        record.to = to;
        Ok(record)
    }

    /// Where the partition is now, by the map that is in force.
    fn locate(&self, record: &mut Record) -> Result<(), Said> {
        let snapshot = self.snapshot.borrow();
        let map: &Map = &snapshot.shards;
        let is_it = |name: &str, own: &str| name.eq_ignore_ascii_case(own);
        let mut tables = map.tables().filter(|table| {
            is_it(&table.schema, &record.schema) && is_it(&table.name, &record.table)
        });
        let Some(table) = tables.next().filter(|table| table.kind == Kind::Sharded) else {
            let words = format!(
                "argument 1 (table): '{}' is not set up",
                record.table_shown()
            );
            return Err(words.into());
        };
        let mut homes = table.homes.iter().skip(1);
        let Some(home) = homes.find(|home| home.name == record.partition) else {
            return Err(format!(
                "argument 2 (partition): '{}' has no partition '{}'",
                record.table_shown(),
                record.partition
            )
            .into());
        };
        if home.made {
            return Err(format!(
                "argument 2 (partition): a proxy has made it by itself; HSCALE ADD_PARTITION('{}', '{}', '{}', {}) first makes it one of the map's rows",
                table.shown(),
                home.name,
                home.value,
                home.hostgroup
            )
            .into());
        }
        if home.hostgroup == record.to {
            let words = format!(
                "argument 3 (hostgroup): it is on hostgroup {} already",
                record.to
            );
            return Err(words.into());
        }
        if let Some(words) = shared_table(map, home) {
            return Err(format!("argument 2 (partition): {words}").into());
        }
        (record.schema, record.table) = (table.schema.clone(), table.name.clone());
        (record.from, record.physical) = (home.hostgroup, home.table.clone());
        record.database = match home.schema.as_str() {
            "" => table.schema.clone(),
            schema => schema.to_owned(),
        };
        Ok(())
    }

    fn refuse_second_move(&self, record: &Record) -> Result<(), Said> {
        let records = self.moves.records.borrow();
        let mut others = records
            .values()
            .filter(|other| !other.state.is_over() && other.state != State::Waiting);
        match others.find(|other| {
            (&other.database, &other.physical) == (&record.database, &record.physical)
        }) {
            Some(other) => Err(format!("{} is under way", other.shown()).into()),
            None => Ok(()),
        }
    }

    /// `HSCALE CANCEL_MOVE`.
    pub(crate) fn cancel_move(&self, of: (&str, &str, &str)) -> Result<Reply, Said> {
        let record = self.last_move(of, |record| !record.state.is_over());
        let record = record.ok_or_else(|| Said::Sql("no move of it is under way".to_owned()))?;
        if record.state == State::CuttingOver {
            return Err("it is being cut over, and is done in a moment".into());
        }
        self.moves.cancelled.borrow_mut().insert(record.id);
        Ok(Reply::Done {
            affected: 1,
            info: format!("{} ends, and what it has made is removed", record.shown()),
        })
    }

    /// `HSCALE DROP_OLD`.
    pub(crate) async fn drop_old(&self, of: (&str, &str, &str)) -> Result<Reply, Said> {
        let left = |record: &Record| record.state == State::Done && record.fence.is_some();
        let record = self.last_move(of, left);
        let mut record =
            record.ok_or_else(|| Said::Sql("no move of it has left a table".to_owned()))?;
        let dropped = mover::drop_old(&self.rt, &Ground(self), &mut record).await;
        dropped.map_err(Said::Sql)?;
        Ok(Reply::Done {
            affected: 1,
            info: String::new(),
        })
    }

    fn last_move(
        &self,
        (schema, table, partition): (&str, &str, &str),
        is_wanted: impl Fn(&Record) -> bool,
    ) -> Option<Record> {
        let records = self.moves.records.borrow();
        let mut all = records.values().rev();
        all.find(|record| {
            record.schema.eq_ignore_ascii_case(schema)
                && record.table.eq_ignore_ascii_case(table)
                && record.partition == partition
                && is_wanted(record)
        })
        .cloned()
    }

    pub(crate) async fn place_of_writer(&self, hostgroup: u32) -> Result<Place, String> {
        let observed = self.ask_monitor(ToMonitor::Seen).await;
        let observed = observed.map_err(|said| said.words())?;
        let snapshot = self.snapshot.borrow().clone();
        let key = monitor::writer_of(&snapshot, &observed, hostgroup)
            .ok_or_else(|| format!("no server of hostgroup {hostgroup} takes writes"))?;
        let mut who = monitor::who_asks(&key, &snapshot, REACHED_WITHIN);
        (who.silent, who.whole) = (SILENT_MAX, SILENT_MAX);
        Ok(Place {
            host: (*key.host).into(),
            port: key.port,
            who,
        })
    }

    fn keep_move(&self, record: &Record) -> Result<(), SqlError> {
        let mut records = self.moves.records.borrow_mut();
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
            self.moves.cancelled.borrow_mut().remove(&record.id);
            self.moves.lags.borrow_mut().remove(&record.id);
        }
        drop(records);
        let text = serde_json::to_string(record).unwrap_or_default();
        self.engine.borrow().transaction(|conn| {
            for id in &over[..surplus] {
                conn.execute("DELETE FROM disk.saved_moves WHERE id = ?1", [id])?;
            }
            let sql = "INSERT OR REPLACE INTO disk.saved_moves VALUES (?1, ?2)";
            conn.execute(sql, (record.id, &text)).map(drop)?;
            Ok(())
        })
    }

    /// Changes the row of the partition, and loads and saves the map.
    async fn put_move_in_force(&self, record: &Record) -> Result<(), String> {
        let moves = |from: u32, to: u32| {
            let sql = "UPDATE main.mysql_shard_partitions SET hostgroup_id = ?1 WHERE schemaname = ?2 COLLATE NOCASE \
                 AND table_name = ?3 COLLATE NOCASE AND partition_name = ?4 AND hostgroup_id = ?5";
            let Record {
                schema,
                table,
                partition,
                ..
            } = record;
            let changed = self
                .engine
                .borrow()
                .transaction(|conn| Ok(conn.execute(sql, (to, schema, table, partition, from))?));
            changed.map_err(|error| error.to_string())
        };
        // It may be so already: a process before this one has ended behind it.
        if moves(record.from, record.to)? == 0 && moves(record.to, record.to)? == 0 {
            return Err(format!(
                "mysql_shard_partitions has no such partition on hostgroup {} any more",
                record.from
            ));
        }
        self.cluster.edited(Module::Shards);
        if let Err(refused) = self.load(Module::Shards).await {
            moves(record.to, record.from)?;
            return Err(refused.words());
        }
        self.save_map_of(record);
        Ok(())
    }

    /// Saves the map that a move has put in force.
    pub(crate) fn save_map_of(&self, record: &Record) {
        if let Err(said) = self.save(Module::Shards) {
            (self.hooks.log)(&format!(
                "{}: its map is in force, and not saved: {}; SAVE MYSQL SHARDS TO DISK",
                record.shown(),
                said.words()
            ));
        }
    }

    /// Rows of `stats_millrace_moves`.
    pub(crate) fn move_rows(&self) -> Vec<MoveRow> {
        let lags = self.moves.lags.borrow();
        let records = self.moves.records.borrow();
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
    pub(crate) fn show_moves(&self) -> Reply {
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
        for row in self.move_rows() {
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

fn kept_moves(conn: &Connection) -> Result<Vec<Record>, String> {
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
