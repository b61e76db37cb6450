//! The cut: the moment at which the partition is elsewhere. The proxy holds its statements, the server
//! keeps others off by a lock of the table, the last changes follow, and the old table gets another
//! name. Whoever comes by an old map finds no table there, and nothing is lost.

use crate::record::{Record, State};
use crate::source::{self, is_there};
use crate::table::{Key, name, quoted};
use crate::work::{Work, mark};
use crate::world::{Trouble, World, keep, open};
use line::{Failed, Line};
use rt::{Instant, Rt};
use std::time::Duration;

/// Rows that are read again at once.
const AT_ONCE: usize = 500;

/// Cuts over, or leaves everything as it was.
pub(crate) async fn cut<W: World>(work: &mut Work<'_, W>) -> Result<(), Trouble> {
    let within = work.world.pace().cut_over;
    if work.record.split.is_some() {
        // Rows were told apart by the map as it was.
        drop(work.world.part(work.record).map_err(Trouble::Over)?);
    }
    let mut line = open(work.rt, &work.place).await?;
    let own = source::one(&mut line, "SELECT CONNECTION_ID()").await?;
    let patience = within.as_secs().max(1);
    line.ask(&format!("SET lock_wait_timeout = {patience}"))
        .await?;
    let until = work.rt.now() + within;
    let held = work.world.hold(work.record, within).await;
    let done = match held {
        Ok(()) => held_still(work, &mut line, until).await,
        Err(words) => Err(Trouble::Again(words)),
    };
    if done.is_err() && work.record.fence.is_none() {
        // Whoever waits for the lock waits no longer.
        drop(line);
        drop(work.source.ask(&format!("KILL {own}")).await);
    }
    work.world.release(work.record).await;
    done
}

fn left(rt: &Rt, until: Instant) -> Result<Duration, Trouble> {
    let now = rt.now();
    match now < until {
        true => Ok(until - now),
        false => Err(Trouble::Again(
            "it could not be cut over in time (mysql-sharding_cut_over_ms_max), and is tried again"
                .into(),
        )),
    }
}

/// Locks the table, once all transactions that have touched it are over.
async fn lock<W: World>(
    work: &Work<'_, W>,
    line: &mut Line,
    within: Duration,
) -> Result<(), Trouble> {
    let of_it = quoted(&work.record.database, &work.record.physical);
    let lock = format!("LOCK TABLES {of_it} WRITE");
    match work.rt.timeout(within, line.ask(&lock)).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(failed)) => Err(Trouble::Again(format!(
            "open transactions on it did not end in time, or it cannot be locked, and it is tried again: {failed}"
        ))),
        Err(_late) => Err(Trouble::Again(
            "open transactions on it did not end in time, and it is tried again".into(),
        )),
    }
}

/// No statement of the proxy is under way, but for transactions.
async fn held_still<W: World>(
    work: &mut Work<'_, W>,
    line: &mut Line,
    until: Instant,
) -> Result<(), Trouble> {
    lock(work, line, left(work.rt, until)?).await?;
    // Nobody changes it from here on.
    let mark = mark(&mut work.source).await?;
    work.come_to(&mark, left(work.rt, until)?).await?;
    let keys: Vec<Key> = work.feed.take(usize::MAX);
    for some in keys.chunks(AT_ONCE) {
        let applied = match left(work.rt, until) {
            Ok(_) => work.outlets.apply(line, work.table, some).await,
            Err(late) => Err(late),
        };
        if let Err(trouble) = applied {
            work.feed.give_back(keys);
            return Err(trouble);
        }
    }
    if work.feed.said.get() {
        return Err(Trouble::Again("a statement has named the table".into()));
    }
    if work.record.split.is_some()
        && let Some(next) = source::counter(line, work.table).await?
    {
        work.outlets.count_on(next).await?;
    }
    left(work.rt, until)?;
    rename(work, line).await?;
    drop(line.ask("UNLOCK TABLES").await);
    finish(work.world, work.record, &mut work.source).await
}

/// Gives the old table its new name, which is written down before.
async fn rename<W: World>(work: &mut Work<'_, W>, line: &mut Line) -> Result<(), Trouble> {
    let schema = &work.record.database;
    let (of_it, old) = (
        quoted(schema, &work.record.physical),
        work.record.old_name(),
    );
    let renames = format!("ALTER TABLE {of_it} RENAME TO {}", quoted(schema, &old));
    work.record.fence = Some(old);
    work.record.state = State::CuttingOver;
    if let Err(words) = work.world.keep(work.record) {
        work.record.fence = None;
        return Err(Trouble::Again(words));
    }
    match line.ask(&renames).await {
        Ok(_) => Ok(()),
        Err(Failed::Said { words, .. }) => {
            work.record.fence = None;
            Err(Trouble::Again(words))
        }
        // Nobody knows whether it has: it is looked at anew.
        Err(Failed::Lost(words)) => Err(Trouble::Again(words)),
    }
}

/// Puts the map in force; if that is refused, the table gets its name back.
async fn finish<W: World>(
    world: &W,
    record: &mut Record,
    source: &mut Line,
) -> Result<(), Trouble> {
    let Err(words) = world.put_in_force(record).await else {
        record.state = State::Done;
        if record.is_bare() {
            // It is in use under its new name.
            record.fence = None;
        }
        record.last_error.clear();
        keep(world, record);
        world.note(&format!("{}: done", record.shown()));
        return Ok(());
    };
    let Some(old) = record.fence.clone() else {
        return Err(Trouble::Again(words));
    };
    let back = format!(
        "RENAME TABLE {} TO {}",
        quoted(&record.database, &old),
        quoted(&record.database, &record.physical)
    );
    source.ask(&back).await?;
    record.fence = None;
    record.state = State::CatchingUp;
    keep(world, record);
    Err(Trouble::Again(format!(
        "the map could not be changed, and all is as it was: {words}"
    )))
}

/// Looks whether the old table has its new name: the process or the server ended in the middle of the
/// cut.
pub(crate) async fn settle<W: World>(
    rt: &Rt,
    world: &W,
    record: &mut Record,
) -> Result<(), Trouble> {
    let Some(old) = record.fence.clone() else {
        return Ok(());
    };
    let place = world.writer(record.from).await.map_err(Trouble::Again)?;
    let mut source = open(rt, &place).await?;
    let has_old = is_there(&mut source, &record.database, &old).await?;
    let has_it = is_there(&mut source, &record.database, &record.physical).await?;
    match (has_old, has_it) {
        // All of it was at the target before.
        (true, false) => finish(world, record, &mut source).await,
        (false, true) => {
            record.fence = None;
            record.state = State::CatchingUp;
            keep(world, record);
            Ok(())
        }
        _ => Err(Trouble::Over(format!(
            "the source has {} of {} and {}; look which rows are right, nothing was removed",
            if has_it { "both" } else { "none" },
            name(&record.physical),
            name(&old)
        ))),
    }
}
