//! Partitions that are made by themselves: a statement whose key has none waits until the control plane
//! has made it, and one that may read of any waits until it has looked for new ones.
//!
//! docs/features/automatic-partitions.md

use crate::command::job::{Text, What};
use crate::command::trouble::Ended;
use crate::decide::facts::Settled;
use crate::known::answer::Complaint;
use crate::known::epoch::Epoch;
use crate::session::Session;
use bridge::{Partition, Wanted};
use plan::Answer;
use rt::mailbox;
use std::rc::Rc;
use std::time::Duration;

/// Partitions that one statement may have made.
const MADE_MAX: usize = 64;

/// Result of a wait for partitions.
pub(crate) enum Made {
    /// None is missing, as far as anybody needs to know.
    IsThere,
    /// All are there, under this configuration if another has come.
    Now(Option<Rc<Epoch>>),
    /// One is not there, and this is the answer.
    Not(Complaint),
    /// The client has its answer: somebody has ended the statement.
    Told,
}

impl Session {
    /// Waits until the partitions that a statement needs are there.
    pub(crate) async fn partitions_for(
        &mut self,
        epoch: &Epoch,
        read: Text<'_>,
        (what, settled): (What<'_>, Settled),
    ) -> Result<Made, Ended> {
        let mut fresh: Option<Rc<Epoch>> = None;
        let variables = epoch.snapshot.variables.clone();
        let within = Duration::from_millis(variables.mysql_connect_timeout_server_max);
        for turn in 0..=MADE_MAX {
            let now = fresh.as_deref().unwrap_or(epoch);
            let mut plan = self.decide_with(now, read, what, settled);
            let Some(Answer::Partition { table, bucket }) = plan.answer.take() else {
                return Ok(match turn {
                    0 => Made::IsThere,
                    _ => Made::Now(fresh),
                });
            };
            let Some(table) = now.snapshot.shards.numbered(table).cloned() else {
                return Ok(Made::IsThere);
            };
            if turn == MADE_MAX {
                let words = format!(
                    "it has keys of more than {MADE_MAX} partitions of {} that are not there yet; say it in several statements",
                    table.shown()
                );
                return Ok(Made::Not(not_made(&words)));
            }
            let is_look = bucket.is_none();
            let (tell, told) = mailbox::channel(1);
            let wanted = Wanted::Partition(Partition {
                schema: table.schema.as_str().into(),
                table: table.name.as_str().into(),
                bucket: bucket.clone(),
                reply: Box::new(move |made| drop(tell.try_send(made))),
            });
            if !(self.core.wants)(wanted) {
                return Ok(Made::Not(not_made("the control plane has too much to do")));
            }
            let (rt, mut answer) = (self.core.rt.clone(), None);
            let waits = async {
                answer = rt.timeout(within, told.recv()).await.ok().flatten();
            };
            if self.pause_while_wanted(waits).await?.is_break() {
                return Ok(Made::Told);
            }
            let wanted = bucket.map_or_else(
                || format!("whether {} has new partitions is not known", table.shown()),
                |bucket| {
                    format!(
                        "the partition of '{bucket}' of {} is not there",
                        table.shown()
                    )
                },
            );
            match answer {
                Some(Ok(())) => fresh = Some(self.core.epoch()),
                Some(Err(words)) => return Ok(Made::Not(not_made(&format!("{wanted}: {words}")))),
                None => {
                    let words = format!(
                        "{wanted}: no answer within {} ms (mysql-connect_timeout_server_max)",
                        within.as_millis()
                    );
                    return Ok(Made::Not(not_made(&words)));
                }
            }
            if is_look {
                return Ok(Made::Now(fresh));
            }
        }
        Ok(Made::Now(fresh))
    }
}

/// An error that may be over soon.
fn not_made(words: &str) -> Complaint {
    Complaint::new(wire::errors::UNKNOWN_ERROR, format!("HSCALE-1001: {words}"))
}
