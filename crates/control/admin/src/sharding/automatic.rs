//! Partitions that are made by themselves: what all proxies have made is learnt from one table, and what
//! a statement needs is made, once for all of them.
//!
//! docs/features/automatic-partitions.md

use crate::said::Said;
use crate::sharding::partitions::writer_of;
use crate::shared::Shared;
use bridge::{Partition, Renamed};
use config::{ShardPartitionRow, Snapshot};
use line::{Failed, Line};
use mover::{Alike, Place, There, look_there};
use rt::mailbox::Receiver;
use shards::{Home, MadeRow, Map, Partitions, Table};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// The table may be so busy with other proxies that a partition is tried so often.
const TRIES_MAX: u32 = 8;
/// A server may take so long for an answer.
const ANSWERS_WITHIN: Duration = Duration::from_secs(8);
/// Seconds after which the server ends a transaction whose proxy has gone without a word.
const GONE_AFTER_S: u32 = 30;
/// Seconds for which one waits for another that makes a partition.
const WAITS_S: u32 = 5;
/// ER_DUP_ENTRY, ER_LOCK_DEADLOCK, ER_LOCK_WAIT_TIMEOUT; ER_CHECKREAD: somebody else was first.
const OTHERS_FIRST: [u16; 4] = [1062, 1213, 1205, 1020];

/// Schema and name of a table, as the map has them.
type Named = (Box<str>, Box<str>);

/// A table whose partitions somebody asks for.
#[derive(Default)]
struct Asked {
    waiting: RefCell<Vec<Partition>>,
    /// A task answers those that wait.
    is_answered: Cell<bool>,
    /// The connection to the server that has the table of partitions, while nobody asks.
    idle: RefCell<Option<Open>>,
}

/// A connection to the table of partitions, and what was read there.
struct Open {
    line: Line,
    place: Place,
    of: Partitions,
    /// The last partition that was read.
    last: Option<MadeRow>,
}

/// Ends the task's right to answer, also where a defect ends the task.
struct Answers(Rc<Asked>);

impl Drop for Answers {
    fn drop(&mut self) {
        self.0.is_answered.set(false);
    }
}

impl Shared {
    /// Answers statements that need partitions, or give tables other names.
    pub(crate) async fn do_wanted(self: Rc<Self>, wanted: Receiver<bridge::Wanted>) {
        // All tables whose partitions were asked for.
        let mut tables: BTreeMap<Named, Rc<Asked>> = BTreeMap::new();
        while let Some(one) = wanted.recv().await {
            let one = match one {
                bridge::Wanted::Partition(one) => one,
                bridge::Wanted::Renamed(Renamed { tables, reply }) => {
                    let shared = self.clone();
                    self.rt.spawn(async move {
                        reply(shared.rename_tables(&tables).await);
                    });
                    continue;
                }
            };
            let key = (one.schema.clone(), one.table.clone());
            let asked = tables.entry(key).or_default().clone();
            asked.waiting.borrow_mut().push(one);
            if !asked.is_answered.replace(true) {
                self.rt.spawn(self.clone().answer_those(Answers(asked)));
            }
        }
    }

    async fn answer_those(self: Rc<Self>, answers: Answers) {
        loop {
            // All that have come before it begins are answered by one look.
            let waiting = answers.0.waiting.take();
            let Some(first) = waiting.first() else {
                return;
            };
            let (schema, name) = (first.schema.clone(), first.table.clone());
            let idle = answers.0.idle.take();
            let known = self.know_all((&schema, &name), idle).await;
            let (mut open, known) = match known {
                Ok(open) => (Some(open), Ok(())),
                Err(words) => (None, Err(words)),
            };
            for one in waiting {
                let told = match (&known, &one.bucket, &mut open) {
                    (Err(words), ..) => Err(words.clone()),
                    (Ok(()), Some(bucket), Some(open)) => {
                        self.have_made(open, (&schema, &name), bucket).await
                    }
                    _ => Ok(()),
                };
                if let (Err(words), Some(bucket)) = (&told, &one.bucket) {
                    let log = &self.hooks.log;
                    log(&format!(
                        "no partition of {name} is made for '{bucket}': {words}"
                    ));
                }
                (one.reply)(told);
            }
            *answers.0.idle.borrow_mut() = open;
        }
    }

    /// The table as it is in the map now.
    fn table_now(&self, (schema, name): (&str, &str)) -> Result<(Arc<Map>, Arc<Table>), String> {
        let map = self.snapshot.borrow().shards.clone();
        let is_it = |table: &&Arc<Table>| table.schema == schema && table.name == name;
        let table = map.tables().find(is_it).cloned();
        let table = table.filter(|table| table.is_automatic());
        let table = table.ok_or("its table is not in the map any more")?;
        Ok((map, table))
    }

    /// Learns of all partitions that any proxy has made until now.
    async fn know_all(&self, of: (&str, &str), idle: Option<Open>) -> Result<Open, String> {
        let partitions = self.snapshot.borrow().variables.partitions();
        let partitions =
            partitions.ok_or("mysql-sharding_partitions must be schema.table, and is not")?;
        let place = writer_of(self, partitions.hostgroup).await?;
        if let Some(mut open) = idle.filter(|open| open.of == partitions && open.place == place) {
            match self.read(&mut open, of).await {
                Ok(()) => return Ok(open),
                // A connection that was idle may have been closed meanwhile.
                Err(Trouble::Lost(_)) => {}
                Err(Trouble::Said(words)) => return Err(words),
            }
        }
        let mut who = place.who.clone();
        (who.silent, who.whole) = (ANSWERS_WITHIN, ANSWERS_WITHIN);
        let line = Line::open(&self.rt, &place.host, place.port, &who).await;
        let mut line = line.map_err(|failed| Trouble::of(failed, &partitions).words())?;
        for sql in [
            "SET NAMES utf8mb4".to_owned(),
            format!(
                "SET SESSION innodb_lock_wait_timeout = {WAITS_S}, SESSION wait_timeout = {GONE_AFTER_S}"
            ),
            "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED".to_owned(),
        ] {
            let set = line.ask(&sql).await;
            set.map_err(|failed| Trouble::of(failed, &partitions).words())?;
        }
        let mut open = Open {
            line,
            place,
            of: partitions,
            last: None,
        };
        self.read(&mut open, of).await.map_err(Trouble::words)?;
        Ok(open)
    }

    /// Reads what is new in the table of partitions, and puts it into the map.
    async fn read(&self, open: &mut Open, of: (&str, &str)) -> Result<(), Trouble> {
        loop {
            let (_, table) = self.table_now(of).map_err(Trouble::Said)?;
            let from = open.last.as_ref().map_or(0, |last| last.number);
            let sql = open.of.question(&table.kept_as(), from);
            let rows = open.line.ask(&sql).await;
            let rows = rows.map_err(|failed| Trouble::of(failed, &open.of))?;
            let rows: Option<Vec<_>> = rows
                .iter()
                .map(|row| Partitions::read(&table, row))
                .collect();
            let rows = rows.ok_or_else(|| {
                Trouble::Said("a row of the table of partitions is not understood".to_owned())
            })?;
            // The last one that was read is read again: somebody may have emptied the table.
            if let Some(last) = open.last.take()
                && rows.first() != Some(&last)
            {
                continue;
            }
            let is_all = rows.len() < shards::READ_AT_ONCE;
            open.last = rows.last().cloned();
            let rows = rows.into_iter().map(|made| made.row).collect();
            self.learn_of(rows).await.map_err(Trouble::Said)?;
            if is_all {
                return Ok(());
            }
        }
    }

    /// Puts partitions that were made into the map, at all cores.
    async fn learn_of(&self, mut rows: Vec<ShardPartitionRow>) -> Result<(), String> {
        let is_new = |row: &ShardPartitionRow| !self.snapshot.borrow().shards.has_made(row);
        rows.retain(is_new);
        if rows.is_empty() && self.cores.behind() == 0 {
            return Ok(());
        }
        // A LOAD may be on its way to the cores.
        let _alone = self.alone().await;
        rows.retain(is_new);
        if rows.is_empty() {
            // A core may be late with those that were learnt of before.
            return match self.cores.behind() {
                0 => Ok(()),
                _ => Err("not all cores have the newest map yet".to_owned()),
            };
        }
        let now = self.snapshot.borrow().clone();
        let map = now.shards.with_made(&rows).map_err(|refused| {
            let words = refused
                .iter()
                .map(|one| format!("{}: {} {}", one.row, one.column, one.words));
            format!(
                "partitions that were made do not go together with the map: {}",
                words.collect::<Vec<_>>().join("; ")
            )
        })?;
        let next = Snapshot {
            generation: now.generation + 1,
            shards: Arc::new(map),
            ..now
        };
        let before = self.snapshot.replace(next.clone());
        (self.hooks.in_force)(&next);
        self.aside.later(move || drop(before));
        let (confirmed, _) = self.cores.load(&next, &self.aside).await;
        match confirmed == self.cores.len() {
            true => Ok(()),
            false => Err("not all cores have the newest map yet".to_owned()),
        }
    }

    /// Has the partition of a bucket made, unless it is there.
    async fn have_made(
        &self,
        open: &mut Open,
        of: (&str, &str),
        bucket: &str,
    ) -> Result<(), String> {
        for turn in 0..TRIES_MAX {
            if turn > 0 {
                self.read(open, of).await.map_err(Trouble::words)?;
            }
            let (map, table) = self.table_now(of)?;
            let bucket = table.bucket_written(bucket);
            let bucket = bucket.ok_or("the table is spread by something else now")?;
            let Some(row) = table.next_partition(&bucket) else {
                return Ok(());
            };
            let wanted = self.wanted(&map, &table, row).await?;
            self.refuse_rows(&wanted).await?;
            let number = open.last.as_ref().map_or(0, |last| last.number) + 1;
            let made = MadeRow {
                number,
                row: wanted.row.clone(),
            };
            match self.make(open, &wanted, &made).await {
                Ok(()) => {
                    open.last = Some(made);
                    (self.hooks.log)(&format!(
                        "partition '{}' of {} is made on hostgroup {}",
                        wanted.row.partition_name,
                        table.shown(),
                        wanted.row.hostgroup_id
                    ));
                    return self.learn_of(vec![wanted.row]).await;
                }
                Err(Trouble::Said(words)) => return Err(words),
                // Whether it is written down is seen by the next read.
                Err(Trouble::Lost(_)) if turn + 1 < TRIES_MAX => {}
                Err(Trouble::Lost(words)) => return Err(words),
            }
        }
        Err("other proxies make partitions of it all the time; try it again".to_owned())
    }

    /// All that is to be known of a partition before it is made.
    async fn wanted(
        &self,
        map: &Map,
        table: &Table,
        row: ShardPartitionRow,
    ) -> Result<Wanted, String> {
        let default: &Home = &table.homes[0];
        let hostgroup = u32::try_from(row.hostgroup_id).unwrap_or_default();
        let name = format!("{}_{}", table.physical, row.partition_name);
        if let Some(other) = map.owner(table, hostgroup, &name) {
            return Err(format!(
                "its table would be {name}, and that is one of {other}; HSCALE ADD_PARTITION('{}', '{}', '{}', {hostgroup}, 'another name') makes it",
                table.shown(),
                row.partition_name,
                row.partition_value
            ));
        }
        let from = writer_of(self, default.hostgroup).await?;
        let to = writer_of(self, hostgroup).await?;
        let schema = match default.schema.as_str() {
            "" => &table.schema,
            schema => schema,
        };
        let looked = look_there(&self.rt, &from, schema, &default.table).await?;
        let (schema, is_empty) = match looked {
            There::Empty(schema) => (schema, true),
            There::Rows(schema) => (schema, false),
            There::NoTable => {
                return Err(format!(
                    "there is no table {} on hostgroup {} that it could be made like",
                    default.table, default.hostgroup
                ));
            }
        };
        Ok(Wanted {
            row,
            shown: table.shown(),
            kept_as: table.kept_as(),
            name,
            like: default.table.clone(),
            schema,
            is_empty,
            condition: None,
            from,
            to,
        }
        .with_condition(table))
    }

    /// Rows of the bucket that are in the default table would not be found any more.
    async fn refuse_rows(&self, wanted: &Wanted) -> Result<(), String> {
        if wanted.is_empty {
            return Ok(());
        }
        let by_command = format!(
            "HSCALE ADD_PARTITION('{}', '{}', '{}', {}) moves them",
            wanted.shown,
            wanted.row.partition_name,
            wanted.row.partition_value,
            wanted.row.hostgroup_id
        );
        let Some(condition) = &wanted.condition else {
            return Err(format!(
                "{} has rows, and whether some are of it cannot be asked; {by_command}",
                wanted.like
            ));
        };
        let table = (wanted.schema.as_str(), wanted.like.as_str());
        match mover::has_rows_of(&self.rt, &wanted.from, table, condition).await? {
            true => Err(format!("{} has rows of it; {by_command}", wanted.like)),
            false => Ok(()),
        }
    }

    /// Makes a table and writes the partition down, both or, but for an empty table, none. While it is
    /// made, others that make one of the same sharded table wait.
    async fn make(&self, open: &mut Open, wanted: &Wanted, made: &MadeRow) -> Result<(), Trouble> {
        let record = open
            .of
            .record(&wanted.kept_as, made)
            .map_err(Trouble::Said)?;
        let trouble = |failed: Failed, of: &Partitions| match failed {
            Failed::Said { code, .. } if OTHERS_FIRST.contains(&code) => {
                Trouble::Lost("another proxy makes a partition of it".to_owned())
            }
            failed => Trouble::of(failed, of),
        };
        for sql in ["START TRANSACTION", &record] {
            if let Err(failed) = open.line.ask(sql).await {
                let _undone = open.line.ask("ROLLBACK").await;
                return Err(trouble(failed, &open.of));
            }
        }
        let alike = Alike {
            schema: &wanted.schema,
            name: &wanted.name,
            like: &wanted.like,
        };
        let places = (&wanted.from, &wanted.to);
        if let Err(words) = mover::make_alike(&self.rt, places, alike).await {
            let _undone = open.line.ask("ROLLBACK").await;
            return Err(Trouble::Said(words));
        }
        match open.line.ask("COMMIT").await {
            Ok(_) => Ok(()),
            Err(failed) => {
                let _undone = open.line.ask("ROLLBACK").await;
                Err(trouble(failed, &open.of))
            }
        }
    }
}

/// A partition that is about to be made.
struct Wanted {
    row: ShardPartitionRow,
    /// The sharded table, for people.
    shown: String,
    /// Its name by which partitions are written down.
    kept_as: String,
    /// Name of its own table.
    name: String,
    /// Name of the default table.
    like: String,
    /// Schema of both.
    schema: String,
    /// Whether the default table has no rows.
    is_empty: bool,
    /// Condition that the rows of it in the default table fulfil.
    condition: Option<String>,
    from: Place,
    to: Place,
}

impl Wanted {
    fn with_condition(mut self, table: &Table) -> Self {
        let bucket = table.bucket_written(&self.row.partition_value);
        self.condition = bucket.and_then(|bucket| table.rows_of(&bucket));
        self
    }
}

/// Why something is not known or made.
enum Trouble {
    /// A connection has broken, or others were faster: the next try may know more.
    Lost(String),
    /// A sentence for whoever waits.
    Said(String),
}

impl Trouble {
    fn of(failed: Failed, of: &Partitions) -> Self {
        let words = format!(
            "the table of partitions on hostgroup {} does not serve: {failed}",
            of.hostgroup
        );
        match failed {
            Failed::Lost(_) => Self::Lost(words),
            Failed::Said { .. } => Self::Said(words),
        }
    }

    fn words(self) -> String {
        let (Self::Lost(words) | Self::Said(words)) = self;
        words
    }
}

impl Shared {
    /// Refuses to add a partition that a proxy has made otherwise; whether it has made this one.
    pub(crate) fn is_made(&self, row: &ShardPartitionRow) -> Result<bool, Said> {
        let map = self.snapshot.borrow().shards.clone();
        let mut tables = map.tables();
        let is_its = |table: &&Arc<Table>| {
            (&table.schema, &table.name) == (&row.schemaname, &row.table_name)
        };
        let Some(table) = tables.find(is_its) else {
            return Ok(false);
        };
        let mut made = table.homes.iter().filter(|home| home.made);
        let Some(home) = made.find(|home| home.name == row.partition_name) else {
            return Ok(false);
        };
        let is_same = home.value == row.partition_value
            && i64::from(home.hostgroup) == row.hostgroup_id
            && row.physical_table.is_empty();
        match is_same {
            true => Ok(true),
            false => Err(format!(
                "argument 2 (partition): a proxy has made '{}' of '{}' for '{}' on hostgroup {}; say it so, and move it afterwards",
                home.name,
                table.shown(),
                home.value,
                home.hostgroup
            )
            .into()),
        }
    }
}
