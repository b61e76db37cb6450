//! Copying, catching up, comparing. Each chunk is read by itself: whatever changes meanwhile is told
//! by the log, and read again.

use crate::check::is_mariadb;
use crate::feed::Feed;
use crate::outlets::{From, Outlets, Sum};
use crate::record::{Record, State};
use crate::source::{self, one, text};
use crate::table::{Key, Table};
use crate::world::{Place, Trouble, World, keep, open};
use line::Line;
use rt::{Instant, Rt};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

/// Rows that are read again at once.
const AGAIN_AT_ONCE: usize = 500;
/// Time between two times that what has become of a move is kept.
const KEPT: Duration = Duration::from_secs(1);
/// Rows of two partitions that do not go together are read again so often.
const MEETS_MAX: usize = 3;
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
    /// In the order of the record's origins.
    pub(crate) sources: Vec<Source<'w>>,
    pub(crate) outlets: Outlets,
    pub(crate) kept_at: Instant,
    /// Both were even the last time.
    pub(crate) even_at: Cell<Instant>,
}

/// A table that rows come from.
pub(crate) struct Source<'w> {
    pub(crate) table: &'w Table,
    pub(crate) feed: &'w Feed,
    pub(crate) line: Line,
    /// Where it is.
    pub(crate) place: Place,
}

impl Source<'_> {
    pub(crate) fn from(&mut self) -> From<'_, '_> {
        (&mut self.line, self.table)
    }
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
        for at in 0..self.sources.len() {
            let feed = self.sources[at].feed;
            if let Some(words) = feed.broken.take() {
                return Err(Trouble::Over(words));
            }
            if feed.said.take() {
                self.was_said(at).await?;
            }
        }
        if self.is_told() {
            self.even_at.set(self.rt.now());
        }
        let lag = self.rt.now() - self.even_at.get();
        self.world.lags(self.record.id, lag);
        if self.rt.now() >= self.kept_at + KEPT {
            self.keep();
        }
        Ok(())
    }

    /// Whether nothing that was told waits.
    fn is_told(&self) -> bool {
        self.sources.iter().all(|source| source.feed.is_even())
    }

    /// A statement has named a table, or may have.
    async fn was_said(&mut self, at: usize) -> Result<(), Trouble> {
        let source = &mut self.sources[at];
        let (schema, name) = (&source.table.schema, &source.table.name);
        let definition = source::definition(&mut source.line, schema, name).await?;
        if definition != *self.record.origin(at).definition {
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
        for at in 0..self.sources.len() {
            while !*self.record.origin(at).copied {
                let began = self.rt.now();
                self.between().await?;
                self.apply_some().await?;
                let pace = self.world.pace();
                let (count, last) = match self.record.merge.is_some() {
                    true => self.copy_together(at, pace.rows_at_once).await?,
                    false => self.copy_some(at, pace.rows_at_once).await?,
                };
                let origin = self.record.origin(at);
                match last.filter(|_| count == pace.rows_at_once) {
                    Some(last) => *origin.copied_to = Some(last),
                    None => *origin.copied = true,
                }
                if let Some(nanos) = (count * 1_000_000_000).checked_div(pace.rows_per_second) {
                    self.wait_until(began + Duration::from_nanos(nanos)).await?;
                }
            }
        }
        self.keep();
        Ok(())
    }

    /// Copies rows behind those that were; how many it has read, and the last key.
    async fn copy_some(&mut self, at: usize, most: u64) -> Result<(u64, Option<Key>), Trouble> {
        let after = self.record.origin(at).copied_to.clone();
        let source = &mut self.sources[at];
        let sql = source.table.chunk(after.as_ref(), most);
        let rows = source.line.ask(&sql).await?;
        self.record.rows_copied += self.outlets.write(source.table, &rows).await?;
        let last = rows.last().map(|row| source.table.key_of(row));
        let last = last.transpose().map_err(Trouble::Over)?;
        Ok((rows.len() as u64, last))
    }

    /// Copies rows to where those of another table have come, or come.
    async fn copy_together(&mut self, at: usize, most: u64) -> Result<(u64, Option<Key>), Trouble> {
        let after = self.record.origin(at).copied_to.clone();
        let source = &mut self.sources[at];
        let sql = source.table.keys_of_chunk(after.as_ref(), most);
        let rows = source.line.ask(&sql).await?;
        let keys = rows.iter().map(|row| source.table.key_alone(row));
        let keys = keys.collect::<Result<Vec<_>, _>>().map_err(Trouble::Over)?;
        for some in keys.chunks(AGAIN_AT_ONCE) {
            match self.bring(some).await {
                // What is in their way may be gone when more was told.
                Err(Trouble::Meets(_)) => self.sources[at].feed.give_back(some.to_vec()),
                brought => brought?,
            }
        }
        self.record.rows_copied += keys.len() as u64;
        Ok((keys.len() as u64, keys.last().cloned()))
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

    /// Brings the rows of these keys to where they belong, as they are now.
    async fn bring(&mut self, keys: &[Key]) -> Result<(), Trouble> {
        let mut sources: Vec<_> = self.sources.iter_mut().map(Source::from).collect();
        self.outlets.apply(&mut sources, keys).await
    }

    /// Takes keys that wait, up to so many of each source.
    pub(crate) fn take(&self, most: usize) -> Vec<Vec<Key>> {
        let sources = self.sources.iter();
        sources.map(|source| source.feed.take(most)).collect()
    }

    /// These wait again.
    pub(crate) fn give_back(&self, taken: Vec<Vec<Key>>) {
        for (source, keys) in self.sources.iter().zip(taken) {
            source.feed.give_back(keys);
        }
    }

    /// Reads some of what has changed again.
    async fn apply_some(&mut self) -> Result<(), Trouble> {
        let taken = self.take(AGAIN_AT_ONCE);
        let applied = self.apply(&all_of(&taken)).await;
        if applied.is_err() {
            self.give_back(taken);
        }
        match applied {
            // When all of it was told, they may go together.
            Err(Trouble::Meets(_)) => {
                self.listen(LOOK).await;
                Ok(())
            }
            applied => applied,
        }
    }

    async fn apply(&mut self, keys: &[Key]) -> Result<(), Trouble> {
        if keys.is_empty() {
            return Ok(());
        }
        self.record.rows_applied += keys.len() as u64;
        self.bring(keys).await
    }

    /// Until the target has all that the sources have now; what changes meanwhile waits.
    pub(crate) async fn be_even(&mut self) -> Result<(), Trouble> {
        let mut tries = 0;
        loop {
            match self.be_even_once().await {
                // A row may be on its way from one partition to the other.
                Err(Trouble::Meets(words)) if tries < MEETS_MAX => {
                    tries += 1;
                    self.record.last_error = words;
                    self.wait_until(self.rt.now() + KEPT).await?;
                }
                Err(Trouble::Meets(words)) => return Err(Trouble::Over(words)),
                ended => return ended,
            }
        }
    }

    async fn be_even_once(&mut self) -> Result<(), Trouble> {
        // Where nothing else comes, this is where a statement is heard of.
        self.between().await?;
        let mut marks = Vec::new();
        for source in &mut self.sources {
            marks.push(mark(&mut source.line).await?);
        }
        while !self.is_past(&marks) {
            self.between().await?;
            match self.is_told() {
                true => self.listen(LOOK).await,
                false => self.apply_some().await?,
            }
        }
        let taken = self.take(usize::MAX);
        let applied = self.apply_all(&all_of(&taken)).await;
        if applied.is_err() {
            self.give_back(taken);
            return applied;
        }
        for (at, mark) in marks.into_iter().enumerate() {
            *self.record.origin(at).position = Some(mark.gtids);
        }
        self.even_at.set(self.rt.now());
        Ok(())
    }

    /// Reads all of these again.
    async fn apply_all(&mut self, keys: &[Key]) -> Result<(), Trouble> {
        if self.record.merge.is_some() {
            // A row that is gone is in the way of none.
            self.outlets.remove_all(keys, AGAIN_AT_ONCE).await?;
        }
        for some in keys.chunks(AGAIN_AT_ONCE) {
            self.between().await?;
            self.apply(some).await?;
        }
        Ok(())
    }

    fn is_past(&self, marks: &[Mark]) -> bool {
        let mut both = self.sources.iter().zip(marks);
        both.all(|(source, mark)| source.feed.is_past(&mark.place))
    }

    /// Until something is told.
    async fn listen(&self, within: Duration) {
        let bells = self.sources.iter();
        let mut bells: Vec<_> = bells
            .map(|source| Box::pin(source.feed.bell.heard()))
            .collect();
        let any = poll_fn(|cx| {
            let mut all = bells.iter_mut();
            match all.any(|bell| bell.as_mut().poll(cx).is_ready()) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        });
        let _late = self.rt.timeout(within, any).await;
    }

    /// Waits until all before these places was told.
    pub(crate) async fn come_to(&self, marks: &[Mark], within: Duration) -> Result<(), Trouble> {
        let until = self.rt.now() + within;
        while !self.is_past(marks) {
            if self.rt.now() >= until {
                return Err(Trouble::Again("its log does not come in time".to_owned()));
            }
            self.listen(LOOK).await;
        }
        Ok(())
    }

    /// Compares all rows with snapshots of the sources. What changes meanwhile waits.
    pub(crate) async fn verify(&mut self) -> Result<(), Trouble> {
        let mut snapshots = Vec::new();
        for source in &self.sources {
            let mut snapshot = open(self.rt, &source.place).await?;
            // A MySQL wants one for queries in others, though all names have their own.
            let uses = format!("USE {}", crate::table::name(&source.table.schema));
            snapshot.ask(&uses).await?;
            snapshot
                .ask("START TRANSACTION WITH CONSISTENT SNAPSHOT")
                .await?;
            snapshots.push(snapshot);
        }
        self.outlets.enter().await?;
        // All that the snapshots have is before these.
        let mut marks = Vec::new();
        for source in &mut self.sources {
            marks.push(mark(&mut source.line).await?);
        }
        self.come_to(&marks, COMES_WITHIN).await?;
        let tables: Vec<&Table> = self.sources.iter().map(|source| source.table).collect();
        let mut snapshots: Vec<From<'_, '_>> = snapshots.iter_mut().zip(tables).collect();
        // Some of it is perhaps not in the snapshots: that is read again afterwards.
        let told: Vec<_> = self
            .sources
            .iter()
            .map(|source| source.feed.all())
            .collect();
        let told = all_of(&told);
        if self.record.merge.is_some() {
            self.outlets.remove_all(&told, AGAIN_AT_ONCE).await?;
        }
        for keys in told.chunks(AGAIN_AT_ONCE) {
            self.outlets.apply(&mut snapshots, keys).await?;
        }
        let mut after: Option<Key> = None;
        loop {
            self.is_wanted()?;
            let rows_at_once = self.world.pace().rows_at_once;
            let upto = match &mut *snapshots {
                [(snapshot, table)] => {
                    let end = table.end_of_chunk(after.as_ref(), rows_at_once);
                    let end = snapshot.ask(&end).await?;
                    let upto = end.first().map(|row| table.key_alone(row));
                    upto.transpose().map_err(Trouble::Over)?
                }
                // No server has the rows of all, but the target.
                _ => {
                    self.outlets
                        .end_of_chunk(after.as_ref(), rows_at_once)
                        .await?
                }
            };
            let between = (after.as_ref(), upto.as_ref());
            let (here, there) = self.outlets.sums(&mut snapshots, between).await?;
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

/// The keys of several sources, each once.
pub(crate) fn all_of(taken: &[Vec<Key>]) -> Vec<Key> {
    match taken {
        [only] => only.clone(),
        several => {
            let all: BTreeSet<&Key> = several.iter().flatten().collect();
            all.into_iter().cloned().collect()
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
