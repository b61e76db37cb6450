//! RENAME TABLE of sharded tables: servers are asked whether the user may and whether the new name is
//! free, and the control plane changes the map. No table on a server gets another name.
//!
//! docs/decisions/0068-a-renamed-table-is-renamed-in-the-map.md

use crate::command::job::{Job, Told};
use crate::command::trouble::Ended;
use crate::known::answer::Complaint;
use crate::partitions::asking::{Asking, Stopped};
use crate::partitions::in_turn::one;
use crate::partitions::made::{Made, answer};
use crate::session::Session;
use bridge::{NewName, Renamed, Wanted};
use plan::{Gather, Part};
use rt::mailbox;
use shards::Rename;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::time::Duration;

/// ER_TABLE_EXISTS_ERROR: what a server says that may rename a table, whose new name is its old one.
const IS_THERE: u16 = 1050;
/// ER_NO_SUCH_TABLE.
const NO_TABLE: u16 = 1146;

/// Looks whether all may be done, and has the map changed.
pub(crate) async fn run(
    session: &mut Session,
    job: &Job<'_>,
    gather: &Gather,
) -> Result<Told, Ended> {
    if let ControlFlow::Break(told) = session.wait_as_asked(job).await? {
        return Ok(told);
    }
    let asking = session.asking(job, false);
    let complaint = match look(session, job, &asking, gather).await {
        Ok(()) => match change_map(session, job, gather).await? {
            ControlFlow::Continue(Ok(())) => return answer(session, &Made::default()).await,
            ControlFlow::Continue(Err(complaint)) => complaint,
            ControlFlow::Break(told) => return Ok(told),
        },
        Err(stopped) => stopped.complaint(session.entry.killed.get())?,
    };
    session.refuse(&complaint).await?;
    Ok(Told {
        row_count: -1,
        ..Told::default()
    })
}

/// Asks the servers as the client's own user. A table that would get the name that it has keeps it, and
/// the server says so once it has looked at rights.
async fn look(
    session: &Session,
    job: &Job<'_>,
    asking: &Asking<'_>,
    gather: &Gather,
) -> Result<(), Stopped> {
    for part in &gather.parts {
        may_be(session, (job, asking), part, IS_THERE).await?;
    }
    let hostgroups: BTreeSet<u32> = gather.parts.iter().map(|part| part.hostgroup).collect();
    for hostgroup in hostgroups {
        for rename in &gather.renames {
            let text = format!("RENAME TABLE {0} TO {0}", rename.said);
            let part = Part {
                writer: hostgroup,
                hostgroup,
                partitions: rename.to.as_str().into(),
                text: text.into_bytes().into(),
                rows: Box::default(),
            };
            may_be(session, (job, asking), &part, NO_TABLE).await?;
        }
    }
    Ok(())
}

/// Refuses what a server does not answer with this error.
async fn may_be(
    session: &Session,
    (job, asking): (&Job<'_>, &Asking<'_>),
    part: &Part,
    wanted: u16,
) -> Result<(), Stopped> {
    match Box::pin(one(session, job, asking, part)).await {
        Err(Stopped::Said(complaint)) if complaint.code == wanted => Ok(()),
        Err(stopped) => Err(stopped),
        Ok(_) => Err(Stopped::Said(Complaint::new(
            wire::errors::UNKNOWN_ERROR,
            format!(
                "HSCALE-1001: whether {} may get another name is not known",
                part.partitions
            ),
        ))),
    }
}

fn new_name(rename: &Rename) -> NewName {
    NewName {
        schema: rename.schema.as_str().into(),
        from: rename.from.as_str().into(),
        to: rename.to.as_str().into(),
    }
}

/// Has the control plane change the map.
async fn change_map(
    session: &mut Session,
    job: &Job<'_>,
    gather: &Gather,
) -> Result<ControlFlow<Told, Result<(), Complaint>>, Ended> {
    let refused = |words: String| {
        let words = format!("HSCALE-1001: {words}");
        ControlFlow::Continue(Err(Complaint::new(wire::errors::UNKNOWN_ERROR, words)))
    };
    let variables = &job.epoch.snapshot.variables;
    let within = Duration::from_millis(variables.mysql_connect_timeout_server_max);
    let (tell, told) = mailbox::channel(1);
    let wanted = Wanted::Renamed(Renamed {
        tables: gather.renames.iter().map(new_name).collect(),
        reply: Box::new(move |done| drop(tell.try_send(done))),
    });
    if !(session.core.wants)(wanted) {
        return Ok(refused("the control plane has too much to do".to_owned()));
    }
    let (rt, mut answer) = (session.core.rt.clone(), None);
    let waits = async {
        answer = rt.timeout(within, told.recv()).await.ok().flatten();
    };
    if session.pause_while_wanted(waits).await?.is_break() {
        return Ok(ControlFlow::Break(Told {
            row_count: -1,
            ..Told::default()
        }));
    }
    Ok(match answer {
        Some(Ok(())) => ControlFlow::Continue(Ok(())),
        Some(Err(words)) => refused(words),
        None => refused(format!(
            "no answer within {} ms (mysql-connect_timeout_server_max), and the map has the old name or the new one",
            within.as_millis()
        )),
    })
}
