//! The cut: the moment at which the partition is elsewhere. The proxy holds its statements, the server
//! keeps others off by a lock of the table, the last changes follow, and the old table gets another
//! name. Whoever comes by an old map finds no table there, and nothing is lost.

use crate::record::{Record, State};
use crate::source::{self, is_there};
use crate::table::{Key, Table, name, quoted};
use crate::work::{Work, all_of, mark};
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
    let (mut lines, mut own) = (Vec::new(), Vec::new());
    let patience = within.as_secs().max(1);
    for source in &work.sources {
        let mut line = open(work.rt, &source.place).await?;
        own.push(source::one(&mut line, "SELECT CONNECTION_ID()").await?);
        line.ask(&format!("SET lock_wait_timeout = {patience}"))
            .await?;
        lines.push(line);
    }
    let until = work.rt.now() + within;
    let held = work.world.hold(work.record, within).await;
    let done = match held {
        Ok(()) => held_still(work, &mut lines, until).await,
        Err(words) => Err(Trouble::Again(words)),
    };
    if done.is_err() && !work.record.is_fenced() {
        // Whoever waits for a lock waits no longer.
        drop(lines);
        for (source, own) in work.sources.iter_mut().zip(own) {
            drop(source.line.ask(&format!("KILL {own}")).await);
        }
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

/// Locks a table, once all transactions that have touched it are over.
async fn lock(
    (rt, line): (&Rt, &mut Line),
    table: &Table,
    within: Duration,
) -> Result<(), Trouble> {
    let of_it = quoted(&table.schema, &table.name);
    let lock = format!("LOCK TABLES {of_it} WRITE");
    match rt.timeout(within, line.ask(&lock)).await {
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
    lines: &mut [Line],
    until: Instant,
) -> Result<(), Trouble> {
    for (source, line) in work.sources.iter().zip(&mut *lines) {
        lock((work.rt, line), source.table, left(work.rt, until)?).await?;
    }
    // Nobody changes them from here on.
    let mut marks = Vec::new();
    for source in &mut work.sources {
        marks.push(mark(&mut source.line).await?);
    }
    work.come_to(&marks, left(work.rt, until)?).await?;
    let taken = work.take(usize::MAX);
    let applied = match last_changes(work, lines, (&all_of(&taken), until)).await {
        // No other change will make them go together.
        Err(Trouble::Meets(words)) => Err(Trouble::Over(words)),
        applied => applied,
    };
    if applied.is_err() {
        work.give_back(taken);
        return applied;
    }
    if work.sources.iter().any(|source| source.feed.said.get()) {
        return Err(Trouble::Again("a statement has named the table".into()));
    }
    if work.record.split.is_some() || work.record.merge.is_some() {
        let mut next = None;
        for (source, line) in work.sources.iter().zip(&mut *lines) {
            next = next.max(source::counter(line, source.table).await?);
        }
        if let Some(next) = next {
            work.outlets.count_on(next).await?;
        }
    }
    left(work.rt, until)?;
    rename(work, lines).await?;
    for line in lines {
        drop(line.ask("UNLOCK TABLES").await);
    }
    finish(work.rt, work.world, work.record).await
}

/// Reads what has changed last again, on the lines that have the locks.
async fn last_changes<W: World>(
    work: &mut Work<'_, W>,
    lines: &mut [Line],
    (keys, until): (&[Key], Instant),
) -> Result<(), Trouble> {
    if work.record.merge.is_some() {
        work.outlets.remove_all(keys, AT_ONCE).await?;
    }
    let sources = work.sources.iter().map(|source| source.table);
    let mut sources: Vec<_> = lines.iter_mut().zip(sources).collect();
    for some in keys.chunks(AT_ONCE) {
        left(work.rt, until)?;
        work.outlets.apply(&mut sources, some).await?;
    }
    Ok(())
}

/// Gives the old tables their new names, which are written down before.
async fn rename<W: World>(work: &mut Work<'_, W>, lines: &mut [Line]) -> Result<(), Trouble> {
    let mut renames = Vec::new();
    for at in 0..work.record.origins() {
        let old = work.record.old_name(at);
        let origin = work.record.origin(at);
        renames.push(format!(
            "ALTER TABLE {} RENAME TO {}",
            quoted(origin.database, origin.physical),
            quoted(origin.database, &old)
        ));
        *origin.fence = Some(old);
    }
    work.record.state = State::CuttingOver;
    if let Err(words) = work.world.keep(work.record) {
        work.record.is_open();
        return Err(Trouble::Again(words));
    }
    for (at, (line, renames)) in lines.iter_mut().zip(renames).enumerate() {
        match line.ask(&renames).await {
            Ok(_) => {}
            Err(Failed::Said { words, .. }) if at == 0 => {
                work.record.is_open();
                return Err(Trouble::Again(words));
            }
            // The first one has its new name, or nobody knows whether this one has: both are looked at
            // anew.
            Err(failed) => return Err(Trouble::Again(failed.to_string())),
        }
    }
    Ok(())
}

/// Puts the map in force; if that is refused, the tables get their names back.
async fn finish<W: World>(rt: &Rt, world: &W, record: &mut Record) -> Result<(), Trouble> {
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
    for at in 0..record.origins() {
        name_back(rt, world, record, at).await?;
    }
    go_back(world, record);
    Err(Trouble::Again(format!(
        "the map could not be changed, and all is as it was: {words}"
    )))
}

/// Gives an old table the name that it had.
async fn name_back<W: World>(
    rt: &Rt,
    world: &W,
    record: &mut Record,
    at: usize,
) -> Result<(), Trouble> {
    let origin = record.origin(at);
    let Some(old) = &*origin.fence else {
        return Ok(());
    };
    let back = format!(
        "RENAME TABLE {} TO {}",
        quoted(origin.database, old),
        quoted(origin.database, origin.physical)
    );
    let place = world.writer(origin.hostgroup).await;
    let mut line = open(rt, &place.map_err(Trouble::Again)?).await?;
    line.ask(&back).await?;
    Ok(())
}

/// All is as it was before the cut.
fn go_back<W: World>(world: &W, record: &mut Record) {
    record.is_open();
    record.state = State::CatchingUp;
    keep(world, record);
}

/// Looks whether the old tables have their new names: the process or a server ended in the middle of the
/// cut.
pub(crate) async fn settle<W: World>(
    rt: &Rt,
    world: &W,
    record: &mut Record,
) -> Result<(), Trouble> {
    let mut renamed = Vec::new();
    for at in 0..record.origins() {
        let origin = record.origin(at);
        let Some(old) = origin.fence.clone() else {
            renamed.push(false);
            continue;
        };
        let (schema, physical) = (origin.database.to_owned(), origin.physical.to_owned());
        let place = world.writer(origin.hostgroup).await;
        let mut line = open(rt, &place.map_err(Trouble::Again)?).await?;
        let has_old = is_there(&mut line, &schema, &old).await?;
        let has_it = is_there(&mut line, &schema, &physical).await?;
        if has_old == has_it {
            return Err(Trouble::Over(format!(
                "the source has {} of {} and {}; look which rows are right, nothing was removed",
                if has_it { "both" } else { "none" },
                name(&physical),
                name(&old)
            )));
        }
        renamed.push(has_old);
    }
    // All of it was at the target before.
    if renamed.iter().all(|renamed| *renamed) {
        return finish(rt, world, record).await;
    }
    for (at, renamed) in renamed.into_iter().enumerate() {
        if renamed {
            name_back(rt, world, record, at).await?;
        }
    }
    go_back(world, record);
    Ok(())
}
