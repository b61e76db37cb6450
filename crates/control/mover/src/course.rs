//! The course of a move: from wherever its record says that it is, over copying, catching up and comparing, to the
//! cut.

use crate::check::check;
use crate::cut::{cut, settle};
use crate::feed::Feed;
use crate::outlets::Outlets;
use crate::record::{Record, State};
use crate::source;
use crate::table::{Table, quoted};
use crate::work::{LOOK, Source, Work, executed};
use crate::world::{Place, Trouble, World, keep, open};
use binlog::Watch;
use line::Line;
use reader::{Server, follow_table};
use rt::{Either, Rt};
use std::cell::Cell;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

/// ER_MASTER_FATAL_ERROR_READING_BINLOG: what is asked for is not in the log any more.
const LOG_IS_GONE: &str = "1236";

/// Goes on with a move from where it is to its end.
pub(crate) async fn go_on<W: World>(
    rt: &Rt,
    world: &W,
    record: &mut Record,
) -> Result<(), Trouble> {
    if record.is_fenced() {
        return settle(rt, world, record).await;
    }
    if world.is_cancelled(record.id) {
        return Err(Trouble::Cancelled);
    }
    let here = world.writer(record.from).await.map_err(Trouble::Again)?;
    let there = world.writer(record.to).await.map_err(Trouble::Again)?;
    let (mut source, mut target) = (open(rt, &here).await?, open(rt, &there).await?);
    check(record, (&mut source, &mut target), (&here, &there)).await?;
    let mut tables = vec![source::parted_table(&mut source, record).await?];
    let mut lines = vec![(source, here.clone())];
    if let Some(merge) = &record.merge {
        let mut other = open(rt, &there).await?;
        let table = source::table(&mut other, &merge.database, &merge.physical).await?;
        are_alike(&tables[0], &table)?;
        tables.push(table);
        lines.push((other, there.clone()));
    }
    let feeds: Vec<Feed> = tables.iter().map(|_| Feed::default()).collect();
    let ends = (target, &here, &there);
    let last = tables.last().unwrap_or(&tables[0]);
    let mut outlets = Outlets::open(rt, world, (record, last), ends).await?;
    let of = lines.iter_mut().zip(&tables);
    let mut of: Vec<_> = of.map(|((line, _), table)| (line, table)).collect();
    outlets.prepare(world, record, &mut of).await?;
    drop(of);
    let (mut follows, mut sources) = (Vec::new(), Vec::new());
    for (at, (mut line, place)) in lines.into_iter().enumerate() {
        let (table, feed) = (&tables[at], &feeds[at]);
        let from = begins_at(world, record, (at, &mut line)).await?;
        follows.push(Box::pin(follow(rt, (place.clone(), from), (table, feed))));
        sources.push(Source {
            table,
            feed,
            line,
            place,
        });
    }
    let works = Work {
        rt,
        world,
        record,
        sources,
        outlets,
        kept_at: rt.now(),
        even_at: Cell::new(rt.now()),
    };
    match rt::select(
        std::pin::pin!(first(follows)),
        std::pin::pin!(complete(works)),
    )
    .await
    {
        Either::Left(why) if why.contains(LOG_IS_GONE) => Err(Trouble::Anew(format!(
            "what has changed is not in the source's log any more, and rows are copied anew: {why}"
        ))),
        Either::Left(why) => Err(Trouble::Again(format!("the source's log: {why}"))),
        Either::Right(ended) => ended,
    }
}

/// The first of these that ends.
async fn first<F: Future<Output = String>>(mut all: Vec<Pin<Box<F>>>) -> String {
    poll_fn(|cx| {
        let mut all = all.iter_mut().map(|one| one.as_mut().poll(cx));
        all.find(Poll::is_ready).unwrap_or(Poll::Pending)
    })
    .await
}

/// The place of a source's log from which its changes are told.
async fn begins_at<W: World>(
    world: &W,
    record: &mut Record,
    (at, line): (usize, &mut Line),
) -> Result<String, Trouble> {
    if let Some(from) = &*record.origin(at).position {
        return Ok(from.clone());
    }
    let from = executed(line).await?;
    *record.origin(at).position = Some(from.clone());
    keep(world, record);
    Ok(from)
}

/// Follows the log of a source from a place on, until it cannot. Why that is.
async fn follow(rt: &Rt, (place, from): (Place, String), (table, feed): (&Table, &Feed)) -> String {
    let unsigned = table.columns.iter().map(|column| column.unsigned);
    let watch = Watch::new(
        table.schema.as_bytes(),
        table.name.as_bytes(),
        unsigned.collect(),
    );
    let server = Server {
        host: place.host,
        port: place.port,
        who: place.who,
        may_be_mariadb: true,
    };
    let tell = |changed| feed.hear(table, changed);
    follow_table(rt, &server, &from, watch, || feed.has_room(), tell).await
}

/// Refuses two tables whose rows cannot come together in one.
pub(crate) fn are_alike(one: &Table, other: &Table) -> Result<(), Trouble> {
    match one.is_like(other) {
        true => Ok(()),
        false => Err(Trouble::Over(format!(
            "{} and {} differ in their columns or keys",
            quoted(&one.schema, &one.name),
            quoted(&other.schema, &other.name)
        ))),
    }
}

async fn complete<W: World>(mut work: Work<'_, W>) -> Result<(), Trouble> {
    work.record.last_error.clear();
    work.copy().await?;
    loop {
        work.enter(State::CatchingUp);
        work.be_even().await?;
        work.enter(State::Verifying);
        work.verify().await?;
        work.enter(State::CatchingUp);
        if cut_over(&mut work).await? {
            return Ok(());
        }
    }
}

/// Tries until it is cut over; whether it is. After many tries it is compared again.
async fn cut_over<W: World>(work: &mut Work<'_, W>) -> Result<bool, Trouble> {
    const TRIES: u32 = 20;
    for tries in 1..=TRIES {
        work.be_even().await?;
        match cut(work).await {
            Ok(()) => return Ok(true),
            Err(Trouble::Again(words)) => {
                work.record.tries += 1;
                work.record.last_error = words;
                work.enter(State::CatchingUp);
            }
            Err(other) => return Err(other),
        }
        let until = work.rt.now() + Duration::from_millis(250) * tries;
        while work.rt.now() < until {
            work.be_even().await?;
            work.rt.sleep(LOOK).await;
        }
    }
    Ok(false)
}
