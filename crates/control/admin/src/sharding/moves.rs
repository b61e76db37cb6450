//! Partitions that move: what an operator says of them, and the proxy as the mover needs it.
//!
//! docs/features/moves.md

use crate::engine::Reply;
use crate::loading;
use crate::said::Said;
use crate::sharding::partitions::{gate, hold, save_map_of, shared_table, writer_of};
use crate::sharding::{merges, splits};
use crate::shared::Shared;
use crate::tables::Module;
use mover::{Pace, Part, Place, Record, State, World};
use shards::{Kind, Map};
use std::rc::Rc;
use std::time::Duration;

/// Moves that wait look so often whether it is their turn.
const TURN: Duration = Duration::from_secs(1);
/// Moves that go on end within this when another process takes over.
const STOPS_WITHIN: Duration = Duration::from_secs(10);

/// A move that goes on, until this is dropped.
struct Running {
    shared: Rc<Shared>,
    id: u64,
}

impl Running {
    fn begin(shared: Rc<Shared>, id: u64) -> Self {
        shared.moves.goes_on();
        Self { shared, id }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(words) = self.shared.moves.ends(self.id) {
            (self.shared.hooks.log)(&words);
        }
    }
}

/// The proxy, for one move.
struct Ground<'s>(&'s Shared);

impl World for Ground<'_> {
    async fn writer(&self, hostgroup: u32) -> Result<Place, String> {
        writer_of(self.0, hostgroup).await
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
        let kept = self.0.moves.keep(&self.0.engine, record);
        kept.map_err(|error| error.to_string())
    }

    fn lags(&self, id: u64, lag: Duration) {
        self.0.moves.lags(id, lag);
    }

    fn is_cancelled(&self, id: u64) -> bool {
        self.0.moves.is_cancelled(id)
    }

    fn is_stopped(&self) -> bool {
        self.0.moves.is_stopped()
    }

    async fn hold(&self, record: &Record, within: Duration) -> Result<(), String> {
        let until = self.0.rt.now() + within;
        for gate in gates_of(record) {
            let held = hold(self.0, &gate, until - self.0.rt.now()).await;
            held.map_err(|words| format!("{words}, and it is tried again"))?;
        }
        Ok(())
    }

    async fn release(&self, record: &Record) {
        for gate in gates_of(record) {
            self.0.cores.open_gate(&gate).await;
        }
    }

    fn part(&self, record: &Record) -> Result<Part, String> {
        splits::part_of(self.0, record)
    }

    async fn put_in_force(&self, record: &Record) -> Result<(), String> {
        match (&record.split, &record.merge) {
            (Some(split), _) => splits::put_in_force(self.0, record, split).await,
            (None, Some(merge)) => merges::put_in_force(self.0, record, merge).await,
            (None, None) => self.0.put_move_in_force(record).await,
        }
    }

    fn now_s(&self) -> u64 {
        self.0.rt.wall_us() / 1_000_000
    }

    fn note(&self, words: &str) {
        (self.0.hooks.log)(words);
    }
}

/// As the data plane shows the partitions that have the rows.
fn gates_of(record: &Record) -> Vec<String> {
    let table = record.table_shown();
    let own = match &record.split {
        None => &*record.partition,
        Some(split) => split.of.as_ref().map_or("", |of| &of.partition),
    };
    let other = record.merge.as_ref().map(|merge| &*merge.into);
    let all = [Some(own), other].into_iter().flatten();
    all.map(|partition| gate(&table, partition)).collect()
}

impl Shared {
    /// Runs moves, those first that a process before this one has begun.
    pub(crate) async fn keep_moves(self: Rc<Self>) {
        self.resume_moves();
        loop {
            for record in self.moves.to_run() {
                let shared = self.clone();
                let running = Running::begin(shared.clone(), record.id);
                self.rt.spawn(async move {
                    if let Some(record) = shared.turn_of(record).await {
                        mover::run(&shared.rt, &Ground(&shared), record).await;
                    }
                    drop(running);
                });
            }
            self.moves.one_begins().await;
        }
    }

    /// Waits until a move may begin that comes behind others; `None` if it does not.
    async fn turn_of(&self, mut record: Record) -> Option<Record> {
        let moves = &self.moves;
        while record.state == State::Waiting {
            if moves.is_stopped() {
                return None;
            }
            let is_next = moves
                .splits_of(&record.schema, &record.table, record.id)
                .is_empty();
            if moves.is_cancelled(record.id) {
                record.state = State::Cancelled;
            } else if is_next {
                match self.planned_now(&record).await {
                    Ok(planned) => record = planned,
                    Err(said) => record.last_error = said.words(),
                }
            }
            record.changed_at = self.now_s();
            let kept = moves.keep(&self.engine, &record);
            let kept = kept.map_err(|error| error.to_string());
            record.last_error = kept.err().unwrap_or(record.last_error);
            if record.state == State::Waiting {
                let _nobody_ended = self.rt.timeout(TURN, moves.one_ends()).await;
            }
        }
        (!record.state.is_over()).then_some(record)
    }

    /// A move that has waited, as it is now that its turn has come.
    async fn planned_now(&self, record: &Record) -> Result<Record, Said> {
        let planned = splits::plan_again(self, record).await?;
        self.look_for(&planned).await?;
        Ok(planned)
    }

    /// Begins a move that waits for its turn.
    pub(crate) fn queue(&self, mut record: Record) -> Result<Reply, Said> {
        record.state = State::Waiting;
        self.moves.number(&mut record);
        self.moves.keep(&self.engine, &record)?;
        let info = format!(
            "{} waits until those before it are over; HSCALE SHOW MOVES tells how far they are",
            record.shown()
        );
        self.moves.run(record);
        Ok(Reply::Done { affected: 1, info })
    }

    /// Goes on with the moves that are kept.
    fn resume_moves(&self) {
        let unfinished = match self.moves.read(self.engine.borrow().conn()) {
            Ok(unfinished) => unfinished,
            Err(error) => {
                (self.hooks.log)(&format!(
                    "moves of partitions are not gone on with: {error}"
                ));
                return;
            }
        };
        for record in unfinished {
            (self.hooks.log)(&format!(
                "{} goes on: {}",
                record.shown(),
                record.state.name()
            ));
            self.moves.run(record);
        }
    }

    /// Another process takes over, or has failed to: moves go on in one process only.
    pub(crate) async fn stop_moves(&self, stop: bool) {
        if self.moves.stop(stop) == stop {
            return;
        }
        if !stop {
            return self.resume_moves();
        }
        let until = self.rt.now() + STOPS_WITHIN;
        while self.moves.is_running() && self.rt.now() < until {
            let left = until - self.rt.now();
            let _late = self.rt.timeout(left, self.moves.one_ends()).await;
        }
    }

    /// `HSCALE MOVE_PARTITION`.
    pub(crate) async fn begin_move(
        &self,
        (schema, table, partition): (&str, &str, &str),
        to: u32,
    ) -> Result<Reply, Said> {
        let mut record = self
            .moves
            .begin((schema, table, partition), to, self.now_s())?;
        self.locate(&mut record)?;
        if record.database.is_empty() {
            record.database = self.schema_with(record.from, &record.physical).await?;
        }
        self.begin_record(record).await
    }

    /// The schema in which the writer of a hostgroup has a table, where the map does not say.
    pub(crate) async fn schema_with(&self, hostgroup: u32, table: &str) -> Result<String, Said> {
        let found = mover::schema_of(&self.rt, &Ground(self), (hostgroup, table)).await;
        found.map_err(Said::Sql)
    }

    /// Looks whether all is there that a move needs.
    pub(crate) async fn look_for(&self, record: &Record) -> Result<(), Said> {
        self.refuse_second_move(record)?;
        let ground = Ground(self);
        let looks = mover::look(&self.rt, &ground, record);
        looks.await.map_err(Said::Sql)?;
        self.refuse_second_move(record)
    }

    fn refuse_second_move(&self, record: &Record) -> Result<(), Said> {
        match self.moves.other_than(record) {
            Some(other) => Err(format!("{} is under way", other.shown()).into()),
            None => Ok(()),
        }
    }

    /// Looks whether all is there that a move needs, and begins it.
    pub(crate) async fn begin_record(&self, mut record: Record) -> Result<Reply, Said> {
        self.look_for(&record).await?;
        // Nobody else has begun one since.
        self.moves.number(&mut record);
        self.moves.keep(&self.engine, &record)?;
        let info = format!(
            "{} has begun; HSCALE SHOW MOVES tells how far it is",
            record.shown()
        );
        self.moves.run(record);
        Ok(Reply::Done { affected: 1, info })
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

    /// `HSCALE CANCEL_MOVE`.
    pub(crate) fn cancel_move(&self, of: (&str, &str, &str)) -> Result<Reply, Said> {
        let record = self.moves.last(of, |record| !record.state.is_over());
        let record = record.ok_or_else(|| Said::Sql("no move of it is under way".to_owned()))?;
        if record.state == State::CuttingOver {
            return Err("it is being cut over, and is done in a moment".into());
        }
        self.moves.cancel(record.id);
        Ok(Reply::Done {
            affected: 1,
            info: format!("{} ends, and what it has made is removed", record.shown()),
        })
    }

    /// `HSCALE DROP_OLD`.
    pub(crate) async fn drop_old(&self, of: (&str, &str, &str)) -> Result<Reply, Said> {
        let left = |record: &Record| record.state == State::Done && record.fence.is_some();
        let record = self.moves.last(of, left);
        let mut record =
            record.ok_or_else(|| Said::Sql("no move of it has left a table".to_owned()))?;
        let dropped = mover::drop_old(&self.rt, &Ground(self), &mut record).await;
        dropped.map_err(Said::Sql)?;
        Ok(Reply::Done {
            affected: 1,
            info: String::new(),
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
        if let Err(refused) = loading::load(self, Module::Shards).await {
            moves(record.to, record.from)?;
            return Err(refused.words());
        }
        save_map_of(self, record);
        Ok(())
    }
}
