//! Copying, catching up, comparing. Each chunk is read by itself: whatever changes meanwhile is told
//! by the log, and read again.

use crate::check::is_mariadb;
use crate::feed::Feed;
use crate::outlets::{Outlets, Sum};
use crate::record::{Record, State};
use crate::source::{self, one, text};
use crate::table::{Key, Table};
use crate::world::{Place, Trouble, World, keep, open};
use line::Line;
use rt::{Instant, Rt};
use std::cell::Cell;
use std::time::Duration;

/// Rows that are read again at once.
const AGAIN_AT_ONCE: usize = 500;
/// Time between two times that what has become of a move is kept.
const KEPT: Duration = Duration::from_secs(1);
/// With nothing to do, it is looked so often.
pub(crate) const LOOK: Duration = Duration::from_millis(100);
/// The log may take so long to come to where the server is.
const COMES_WITHIN: Duration = Duration::from_secs(60);

/// A place of the source's log, by both of its names.
pub(crate) struct Mark {
    pub(crate) place: binlog::Place,
    gtids: String,
}

/// A move at work.
pub(crate) struct Work<'w, W> {
    pub(crate) rt: &'w Rt,
    pub(crate) world: &'w W,
    pub(crate) record: &'w mut Record,
    pub(crate) table: &'w Table,
    pub(crate) feed: &'w Feed,
    pub(crate) source: Line,
    pub(crate) outlets: Outlets,
    /// Where the source is.
    pub(crate) place: Place,
    pub(crate) kept_at: Instant,
    /// Both were even the last time.
    pub(crate) even_at: Cell<Instant>,
}

/// All that a server has executed, in its own words.
pub(crate) async fn executed(line: &mut Line) -> Result<String, Trouble> {
    let sql = match is_mariadb(line) {
        true => "SELECT @@GLOBAL.gtid_binlog_pos",
        false => "SELECT REPLACE(@@GLOBAL.gtid_executed, '\\n', '')",
    };
    one(line, sql).await
}

/// Where a server's log is now.
pub(crate) async fn mark(line: &mut Line) -> Result<Mark, Trouble> {
    let gtids = executed(line).await?;
    let sql = match is_mariadb(line) {
        true => "SHOW MASTER STATUS",
        false => "SHOW BINARY LOG STATUS",
    };
    let rows = line.ask(sql).await?;
    let row = rows.first();
    let file = row.map(|row| text(row, 0)).unwrap_or_default();
    let end = row.and_then(|row| text(row, 1).parse().ok());
    let end = end.ok_or_else(|| Trouble::Again("the source says no place of its log".into()))?;
    Ok(Mark {
        place: binlog::Place::new(&file, end),
        gtids,
    })
}

impl<W: World> Work<'_, W> {
    pub(crate) fn enter(&mut self, state: State) {
        self.record.state = state;
        self.keep();
    }

    pub(crate) fn keep(&mut self) {
        self.kept_at = self.rt.now();
        keep(self.world, self.record);
    }

    fn is_wanted(&self) -> Result<(), Trouble> {
        match (
            self.world.is_cancelled(self.record.id),
            self.world.is_stopped(),
        ) {
            (_, true) => Err(Trouble::Stopped),
            (true, false) => Err(Trouble::Cancelled),
            (false, false) => Ok(()),
        }
    }

    /// Between two steps: whether it shall go on, and what is told.
    async fn between(&mut self) -> Result<(), Trouble> {
        self.is_wanted()?;
        if let Some(words) = self.feed.broken.take() {
            return Err(Trouble::Over(words));
        }
        if self.feed.said.take() {
            self.was_said().await?;
        }
        if self.feed.is_even() {
            self.even_at.set(self.rt.now());
        }
        let lag = self.rt.now() - self.even_at.get();
        self.world.lags(self.record.id, lag);
        if self.rt.now() >= self.kept_at + KEPT {
            self.keep();
        }
        Ok(())
    }

    /// A statement has named the table, or may have.
    async fn was_said(&mut self) -> Result<(), Trouble> {
        let (schema, name) = (&self.record.database, &self.record.physical);
        let definition = source::definition(&mut self.source, schema, name).await?;
        if definition != self.record.definition {
            return Err(Trouble::Over(format!(
                "the definition of {schema}.{name} has changed meanwhile"
            )));
        }
        Err(Trouble::Anew(format!(
            "a statement of the source's log may have changed all of {schema}.{name}, and rows are copied anew"
        )))
    }

    /// Copies the rows that are not copied yet.
    pub(crate) async fn copy(&mut self) -> Result<(), Trouble> {
        while !self.record.copied {
            let began = self.rt.now();
            self.between().await?;
            self.apply_some().await?;
            let pace = self.world.pace();
            let sql = self
                .table
                .chunk(self.record.copied_to.as_ref(), pace.rows_at_once);
            let rows = self.source.ask(&sql).await?;
            self.record.rows_copied += self.outlets.write(self.table, &rows).await?;
            let count = rows.len() as u64;
            match rows.last().filter(|_| count == pace.rows_at_once) {
                Some(last) => {
                    self.record.copied_to = Some(self.table.key_of(last).map_err(Trouble::Over)?);
                }
                None => self.record.copied = true,
            }
            if let Some(nanos) = (count * 1_000_000_000).checked_div(pace.rows_per_second) {
                self.wait_until(began + Duration::from_nanos(nanos)).await?;
            }
        }
        self.keep();
        Ok(())
    }

    /// Waits, and does meanwhile what comes.
    async fn wait_until(&mut self, until: Instant) -> Result<(), Trouble> {
        while self.rt.now() < until {
            self.between().await?;
            let left = until - self.rt.now();
            self.rt.sleep(left.min(LOOK)).await;
        }
        Ok(())
    }

    /// Reads some of what has changed again.
    async fn apply_some(&mut self) -> Result<(), Trouble> {
        let keys = self.feed.take(AGAIN_AT_ONCE);
        let applied = self.apply(&keys).await;
        if applied.is_err() {
            self.feed.give_back(keys);
        }
        applied
    }

    async fn apply(&mut self, keys: &[Key]) -> Result<(), Trouble> {
        if keys.is_empty() {
            return Ok(());
        }
        self.record.rows_applied += keys.len() as u64;
        let source = &mut self.source;
        self.outlets.apply(source, self.table, keys).await
    }

    /// Until the target has all that the source has now; what changes meanwhile waits.
    pub(crate) async fn be_even(&mut self) -> Result<(), Trouble> {
        let mark = mark(&mut self.source).await?;
        while !self.feed.is_past(&mark.place) {
            self.between().await?;
            match self.feed.is_even() {
                true => self.listen(LOOK).await,
                false => self.apply_some().await?,
            }
        }
        let keys = self.feed.take(usize::MAX);
        for (at, some) in keys.chunks(AGAIN_AT_ONCE).enumerate() {
            let applied = match self.between().await {
                Ok(()) => self.apply(some).await,
                Err(trouble) => Err(trouble),
            };
            if applied.is_err() {
                self.feed.give_back(keys[at * AGAIN_AT_ONCE..].to_vec());
                return applied;
            }
        }
        self.record.position = Some(mark.gtids);
        self.even_at.set(self.rt.now());
        Ok(())
    }

    /// Until something is told.
    async fn listen(&self, within: Duration) {
        let _late = self.rt.timeout(within, self.feed.bell.heard()).await;
    }

    /// Waits until all before this place was told.
    pub(crate) async fn come_to(&self, mark: &Mark, within: Duration) -> Result<(), Trouble> {
        let until = self.rt.now() + within;
        while !self.feed.is_past(&mark.place) {
            if self.rt.now() >= until {
                return Err(Trouble::Again("its log does not come in time".to_owned()));
            }
            self.listen(LOOK).await;
        }
        Ok(())
    }

    /// Compares all rows with a snapshot of the source. What changes meanwhile waits.
    pub(crate) async fn verify(&mut self) -> Result<(), Trouble> {
        let mut snapshot = open(self.rt, &self.place).await?;
        // A MySQL wants one for queries in others, though all names have their own.
        let uses = format!("USE {}", crate::table::name(&self.record.database));
        snapshot.ask(&uses).await?;
        self.outlets.enter(&self.record.database).await?;
        snapshot
            .ask("START TRANSACTION WITH CONSISTENT SNAPSHOT")
            .await?;
        // All that the snapshot has is before this.
        let mark = mark(&mut self.source).await?;
        self.come_to(&mark, COMES_WITHIN).await?;
        // Some of it is perhaps not in the snapshot: that is read again afterwards.
        for keys in self.feed.all().chunks(AGAIN_AT_ONCE) {
            self.outlets.apply(&mut snapshot, self.table, keys).await?;
        }
        let mut after: Option<Key> = None;
        loop {
            self.is_wanted()?;
            let rows_at_once = self.world.pace().rows_at_once;
            let end = self.table.end_of_chunk(after.as_ref(), rows_at_once);
            let end = snapshot.ask(&end).await?;
            let upto = end.first().map(|row| self.table.key_alone(row));
            let upto = upto.transpose().map_err(Trouble::Over)?;
            let of = (&mut snapshot, self.table);
            let between = (after.as_ref(), upto.as_ref());
            let (here, there) = self.outlets.sums(of, between).await?;
            if here != there {
                return Err(differs(after.as_ref(), (&here, &there)));
            }
            if upto.is_none() {
                return Ok(());
            }
            after = upto;
        }
    }
}

fn differs(after: Option<&Key>, (here, there): (&[Sum], &[Sum])) -> Trouble {
    let count = |sums: &[Sum]| sums.iter().map(|sum| sum.rows).sum::<u64>();
    Trouble::Anew(format!(
        "rows behind the key ({}) differ, {} at the source and {} at the target; they are copied anew",
        after.map(|key| key.join(", ")).unwrap_or_default(),
        count(here),
        count(there)
    ))
}
