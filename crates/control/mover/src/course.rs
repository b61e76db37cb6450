//! The course of a move: from wherever its record says that it is, over copying, catching up and comparing, to the
//! cut.

use crate::check::check;
use crate::cut::{cut, settle};
use crate::feed::Feed;
use crate::outlets::Outlets;
use crate::record::{Record, State};
use crate::source;
use crate::work::{LOOK, Work, executed};
use crate::world::{Trouble, World, keep, open};
use binlog::Watch;
use reader::{Server, follow_table};
use rt::{Either, Rt};
use std::cell::Cell;
use std::time::Duration;

/// ER_MASTER_FATAL_ERROR_READING_BINLOG: what is asked for is not in the log any more.
const LOG_IS_GONE: &str = "1236";

/// Goes on with a move from where it is to its end.
pub(crate) async fn go_on<W: World>(
    rt: &Rt,
    world: &W,
    record: &mut Record,
) -> Result<(), Trouble> {
    if record.fence.is_some() {
        return settle(rt, world, record).await;
    }
    if world.is_cancelled(record.id) {
        return Err(Trouble::Cancelled);
    }
    let here = world.writer(record.from).await.map_err(Trouble::Again)?;
    let there = world.writer(record.to).await.map_err(Trouble::Again)?;
    let (mut source, mut target) = (open(rt, &here).await?, open(rt, &there).await?);
    check(record, (&mut source, &mut target), (&here, &there)).await?;
    let table = source::parted_table(&mut source, record).await?;
    let ends = (target, &here, &there);
    let mut outlets = Outlets::open(rt, world, (record, &table), ends).await?;
    outlets
        .prepare(world, (record, &table), &mut source)
        .await?;
    if record.position.is_none() {
        record.position = Some(executed(&mut source).await?);
        keep(world, record);
    }
    let Some(from) = record.position.clone() else {
        return Err(Trouble::Again("nobody knows where its log is".to_owned()));
    };
    let unsigned = table.columns.iter().map(|column| column.unsigned);
    let watch = Watch::new(
        record.database.as_bytes(),
        record.physical.as_bytes(),
        unsigned.collect(),
    );
    let server = Server {
        host: here.host.clone(),
        port: here.port,
        who: here.who.clone(),
        may_be_mariadb: true,
    };
    let feed = Feed::default();
    let tell = |changed| feed.hear(&table, changed);
    let follows = follow_table(rt, &server, &from, watch, || feed.has_room(), tell);
    let works = Work {
        rt,
        world,
        record,
        table: &table,
        feed: &feed,
        source,
        outlets,
        place: here,
        kept_at: rt.now(),
        even_at: Cell::new(rt.now()),
    };
    match rt::select(std::pin::pin!(follows), std::pin::pin!(complete(works))).await {
        Either::Left(why) if why.contains(LOG_IS_GONE) => Err(Trouble::Anew(format!(
            "what has changed is not in the source's log any more, and rows are copied anew: {why}"
        ))),
        Either::Left(why) => Err(Trouble::Again(format!("the source's log: {why}"))),
        Either::Right(ended) => ended,
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
