//! Partitions of sharded tables that move to another server while traffic flows. [`run`] brings one
//! from wherever its [`Record`] says that it is to its end.
//!
//! `there.rs` looks whether there is anything to move; `record.rs` is what survives the process;
//! `world.rs` is the proxy as a move needs it; `table.rs` has the texts of SQL; `check.rs` says what is missing. `course.rs` goes from step to
//! step: `work.rs` copies, catches up and compares, and `cut.rs` is the moment at which the partition
//! is elsewhere. `outlets.rs` has the tables that rows go to, `feed.rs` what the log tells meanwhile.
//!
//! docs/features/moves.md, docs/decisions/0040-a-move-reads-changed-rows-again.md
#![forbid(unsafe_code)]

mod alike;
mod check;
mod course;
mod cut;
mod feed;
mod lookup;
mod outlets;
mod record;
mod source;
mod table;
mod there;
mod work;
mod world;

pub use alike::{Alike, has_rows_of, make_alike};
pub use lookup::{
    Filling, LookedUpColumn, drop_lookup, fill, look_at_column, make_lookup, snapshot,
};
pub use record::{Merge, Of, Record, Split, State};
pub use there::{There, look_there, schemas_with};
pub use world::{Pace, Part, Place, World};

use line::Failed;
use rt::Rt;
use std::time::Duration;
use world::{Trouble, keep, open};

/// Time after which what failed is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// Rows are copied anew so often; then it is given up.
const COPIES_MAX: u64 = 5;

/// Brings a move to its end, whatever is lost and comes back meanwhile.
pub async fn run<W: World>(rt: &Rt, world: &W, mut record: Record) {
    while !record.state.is_over() && !world.is_stopped() {
        let went = match record.ending {
            Some(ending) => undo(rt, world, &mut record, ending).await,
            None => course::go_on(rt, world, &mut record).await,
        };
        let Err(trouble) = went else {
            continue;
        };
        let trouble = match trouble {
            Trouble::HasRows => match has_rows(rt, world, &mut record).await {
                Ok(()) => continue,
                Err(trouble) => trouble,
            },
            trouble => trouble,
        };
        let words = match trouble {
            Trouble::Again(words) | Trouble::Meets(words) => words,
            Trouble::Anew(words) => {
                record.begin_anew();
                if record.copies > COPIES_MAX {
                    record.ending = Some(State::Failed);
                }
                words
            }
            Trouble::Over(words) => {
                record.ending = Some(State::Failed);
                words
            }
            Trouble::Stopped | Trouble::HasRows => return,
            Trouble::Cancelled => {
                record.ending = Some(State::Cancelled);
                String::new()
            }
        };
        if !words.is_empty() && record.last_error != words {
            world.note(&format!("{}: {words}", record.shown()));
        }
        record.last_error = words;
        keep(world, &mut record);
        if record.ending.is_none() || !record.last_error.is_empty() {
            rt.sleep(AGAIN).await;
        }
    }
}

/// The part has rows after all: it begins anew, with a table for those that stay.
async fn has_rows<W: World>(rt: &Rt, world: &W, record: &mut Record) -> Result<(), Trouble> {
    drop_made(rt, world, record).await?;
    if let Some(split) = &mut record.split {
        split.bare = false;
    }
    (record.position, record.copied_to, record.copied) = (None, None, false);
    record.state = State::Copying;
    keep(world, record);
    Ok(())
}

/// Removes what a move has made at its target.
async fn undo<W: World>(
    rt: &Rt,
    world: &W,
    record: &mut Record,
    ending: State,
) -> Result<(), Trouble> {
    // Behind the cut the rows are there, and nowhere else.
    if record.made && !record.is_fenced() {
        drop_made(rt, world, record).await?;
    }
    record.state = ending;
    keep(world, record);
    world.note(&format!("{}: {}", record.shown(), ending.name()));
    Ok(())
}

/// Drops the tables that a move has made for rows.
async fn drop_made<W: World>(rt: &Rt, world: &W, record: &mut Record) -> Result<(), Trouble> {
    for (hostgroup, schema, table) in record.outlets() {
        let place = world.writer(hostgroup).await.map_err(Trouble::Again)?;
        let mut line = open(rt, &place).await?;
        let name = table::quoted(schema, table);
        line.ask(&format!("DROP TABLE IF EXISTS {name}")).await?;
    }
    record.made = false;
    Ok(())
}

/// Looks whether a move can be begun.
///
/// # Errors
/// All that is missing.
pub async fn look<W: World>(rt: &Rt, world: &W, record: &Record) -> Result<(), String> {
    let here = world.writer(record.from).await?;
    let there = world.writer(record.to).await?;
    let looks = async {
        let (mut source, mut target) = (open(rt, &here).await?, open(rt, &there).await?);
        check::check(record, (&mut source, &mut target), (&here, &there)).await?;
        let own = source::parted_table(&mut source, record).await?;
        if let Some(merge) = &record.merge {
            let other = source::table(&mut target, &merge.database, &merge.physical).await?;
            course::are_alike(&own, &other)?;
        }
        let mut taken = record.outlets();
        if let Some(split) = record.split.as_ref().filter(|split| split.bare) {
            taken.push((record.from, &record.database, &split.rest));
        }
        for (hostgroup, schema, table) in taken {
            let is_there = match hostgroup == record.to {
                true => source::is_there(&mut target, schema, table).await?,
                false => source::is_there(&mut source, schema, table).await?,
            };
            if is_there {
                let words = outlets::has_already(schema, table);
                return Err(Trouble::Over(words));
            }
        }
        Ok(())
    };
    looks.await.map_err(|trouble: Trouble| trouble.words())
}

/// The schema in which the source has the table, where the map does not say.
///
/// # Errors
/// There is none, or there are several.
pub async fn schema_of<W: World>(
    rt: &Rt,
    world: &W,
    (hostgroup, table): (u32, &str),
) -> Result<String, String> {
    let here = world.writer(hostgroup).await?;
    let words = |failed: Failed| failed.to_string();
    let mut line = open(rt, &here).await.map_err(words)?;
    let found = there::schemas_of(&mut line, table).await.map_err(words)?;
    match found.as_slice() {
        [only] => Ok(only.clone()),
        [] => Err(format!("the source has no table {table}")),
        several => Err(format!(
            "the source has a table {table} in {}, and the map does not say which is meant: set physical_schema of the partition",
            several.join(" and ")
        )),
    }
}

/// Drops the table that a move has left behind under another name.
///
/// # Errors
/// The table is not dropped.
pub async fn drop_old<W: World>(rt: &Rt, world: &W, record: &mut Record) -> Result<(), String> {
    if !record.is_fenced() {
        return Err(format!("{} has left no table", record.shown()));
    }
    let words = |failed: Failed| failed.to_string();
    for at in 0..record.origins() {
        let origin = record.origin(at);
        let Some(old) = origin.fence.clone() else {
            continue;
        };
        let name = table::quoted(origin.database, &old);
        let place = world.writer(origin.hostgroup).await?;
        let mut line = open(rt, &place).await.map_err(words)?;
        line.ask(&format!("DROP TABLE IF EXISTS {name}"))
            .await
            .map_err(words)?;
        *record.origin(at).fence = None;
    }
    record.changed_at = world.now_s();
    world.keep(record)
}
