//! TRUNCATE and ALTER of all partitions, one after another: no server takes them back. What was done
//! where is kept, so that somebody can do the rest.

use crate::command::job::{Job, Told, What};
use crate::command::trouble::Ended;
use crate::core::alone;
use crate::known::answer::Complaint;
use crate::partitions::asking::{Asking, Stopped};
use crate::partitions::made::{Made, answer};
use crate::partitions::said::{refusal, say};
use crate::session::Session;
use plan::{Gather, Part};
use std::ops::ControlFlow;

/// Has one partition do it after another, and ends at the first that does not.
pub(crate) async fn run(
    session: &mut Session,
    job: &Job<'_>,
    gather: &Gather,
) -> Result<Told, Ended> {
    if let ControlFlow::Break(told) = session.wait_as_asked(job).await? {
        return Ok(told);
    }
    let core = session.core.clone();
    let id = core.rt.wall_us() << 8 | u64::from(core.index & 0xff);
    let seconds = || core.rt.wall_us() / 1_000_000;
    core.in_turn.begin(id, job.sent(), seconds(), gather);
    let asking = session.asking(job, true);
    let mut all = Made::default();
    for (number, part) in (0..).zip(&gather.parts) {
        core.in_turn.now(id, number, ("runs", ""), seconds());
        let stopped = match Box::pin(one(session, job, &asking, part)).await {
            Ok(made) => {
                all.add(made);
                core.in_turn.now(id, number, ("done", ""), seconds());
                continue;
            }
            Err(stopped) => stopped,
        };
        let complaint = match stopped {
            Stopped::Gone | Stopped::Told => Complaint::interrupted(),
            Stopped::Failed(ref failed) => Complaint::of(failed),
            Stopped::Said(ref complaint) => complaint.clone(),
        };
        let state = ("failed", complaint.words.as_str());
        core.in_turn.now(id, number, state, seconds());
        if matches!(stopped, Stopped::Gone) {
            return Err(Ended::Gone);
        }
        if session.entry.killed.get() {
            return Err(Ended::Told(complaint));
        }
        let words = format!(
            "{} - HSCALE-1000: at {}; {number} of {} partitions have done it, stats_mysql_shard_ddl has which; do the rest with the hint hscale.partition(table) = 'name'",
            complaint.words,
            part.partitions,
            gather.parts.len()
        );
        let state = String::from_utf8_lossy(&complaint.state).into_owned();
        let complaint = Complaint::with(complaint.code, &state, words);
        session.refuse(&complaint).await?;
        return Ok(Told {
            row_count: -1,
            ..Told::default()
        });
    }
    answer(session, &all).await
}

/// Has one partition do it, on a connection that is nobody's.
pub(crate) async fn one(
    session: &Session,
    job: &Job<'_>,
    asking: &Asking<'_>,
    part: &Part,
) -> Result<Made, Stopped> {
    let wanted = (asking, &asking.state);
    let mut backend = session.connection_for(job, wanted, part.hostgroup).await?;
    session.entry.works_on(part.hostgroup, &backend);
    alone::takes(&mut backend);
    let attributes = match job.what {
        What::Query(attributes) => Some(attributes),
        _ => None,
    };
    let leg = session.leg(&backend);
    let said = {
        let done = async {
            alone::come_to(&mut backend, &asking.state, &asking.class).await?;
            alone::before(&mut backend, &asking.class);
            say(&mut backend, &part.text, attributes).await
        };
        session.unless_stopped(asking, Box::pin(done)).await
    };
    let answer = match said {
        Ok(Ok(answer)) => answer,
        Ok(Err(failed)) => {
            leg.ends(Some(0));
            session.core.pools.abandon(backend);
            return Err(failed.into());
        }
        Err(stopped) => {
            session.end_on_server(&backend);
            session.core.pools.abandon(backend);
            return Err(stopped);
        }
    };
    leg.ends(refusal(&answer).map(|(code, _)| code));
    alone::learn(&mut backend, &asking.class, &answer.response);
    let made = Made::of(&answer, backend.hello.caps);
    let refused = refusal(&answer);
    alone::gives_back(&session.core, backend);
    match refused {
        None => Ok(made),
        Some((_, complaint)) => Err(Stopped::Said(complaint)),
    }
}
