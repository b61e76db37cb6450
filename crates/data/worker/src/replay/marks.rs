//! A mark that a COMMIT leaves in a table of the operator's, and what it tells when the answer to the
//! COMMIT was lost.
//!
//! docs/decisions/0064-a-commit-leaves-a-mark.md

use crate::command::job::Job;
use crate::command::trouble::{Failed, Trouble};
use crate::core::alone;
use crate::core::marks::Mark;
use crate::known::demoted;
use crate::memory::row::Asking;
use crate::memory::warnings;
use crate::reach::demoted::commits;
use crate::replay::exchange::{BUSY, exchange};
use crate::session::Session;
use crate::session::course::{Course, Said, Unfit};
use backend::{Backend, BackendFailed, Hold, Holds};
use bridge::Counter;
use config::{Servers, TopologyKind};
use sql::Reads;
use wire::attributes::Attributes;
use wire::response::{Outcome, Summed};
use wire::rows::Rows;
use wire::{definition, errors, status};

/// Errors that say that no mark can be left there, and that the transaction is as it was.
const NO_MARKS: [u16; 5] = [
    errors::DB_ACCESS_DENIED.number,
    errors::UNKNOWN_DATABASE.number,
    errors::UNKNOWN_COLUMN.number,
    errors::TABLE_ACCESS_DENIED.number,
    errors::NO_SUCH_TABLE.number,
];

/// Statements around a question, so that a server answers it when it has done all that it got before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Applied {
    /// Its channels are asked how far they are.
    Channels,
    /// A variable of the session has it wait.
    Waits {
        before: &'static str,
        behind: &'static str,
    },
    /// Servers that share what is stored.
    Always,
}

impl Applied {
    fn of(servers: &Servers, hostgroup: u32) -> Self {
        let mut all = servers.topologies().iter();
        let one = all.find(|one| one.writers() == hostgroup && one.is_active());
        match one.map(|one| one.kind()) {
            Some(TopologyKind::Group) => Self::Waits {
                before: "SET SESSION group_replication_consistency = 'BEFORE'",
                behind: "SET SESSION group_replication_consistency = DEFAULT",
            },
            Some(TopologyKind::Galera) => Self::Waits {
                before: "SET SESSION wsrep_sync_wait = 7",
                behind: "SET SESSION wsrep_sync_wait = DEFAULT",
            },
            Some(TopologyKind::Aurora) => Self::Always,
            Some(TopologyKind::Replication) | None => Self::Channels,
        }
    }
}

/// Result of looking for a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Looked {
    /// The mark is there: the transaction was committed.
    Landed,
    /// Nothing of it is there, nor will ever be.
    Missing,
    /// The server has not done yet all that it got from another, or the transaction is not over.
    NotYet,
    /// Nobody can tell, and why.
    Unknown(Unfit),
}

impl Session {
    /// A COMMIT is about to be sent: it leaves a mark, if the operator wants one of this transaction.
    ///
    /// # Errors
    /// The connection on which that has failed, its holds from before, and why.
    pub(crate) async fn leave_mark(
        &mut self,
        job: &Job<'_>,
    ) -> Result<(), (Box<Backend>, Holds, Trouble)> {
        let Some(course) = self.course.as_deref_mut() else {
            return Ok(());
        };
        let before = course.mark.take();
        let is_as_begun = self.state == course.state;
        let wanted = course.wish.marks.clone().filter(|_| {
            commits(job)
                && !job.class.begins_transaction
                && !job.class.releases
                && course.is_open
                && course.hostgroup == job.plan.hostgroup()
                && course.spoilt.is_none()
                && is_as_begun
                && !course.is_doubtful
                && course.writes()
        });
        let Some(table) = wanted else { return Ok(()) };
        let hostgroup = course.hostgroup;
        let mark = match before {
            Some(mut mark) => {
                mark.renew();
                mark
            }
            None => self.core.marks.next(&self.core.rt, &table),
        };
        let Some(mut backend) = self.held.take(hostgroup) else {
            return Ok(());
        };
        self.entry.works_on(hostgroup, &backend);
        let limit_ms = self.limit_ms(job);
        let asked = self.ask_what_a_mark_ends(&mut backend, limit_ms).await;
        let kept = backend.holds;
        let said = match asked {
            Ok(()) => {
                let leaves = Box::pin(leave(&mut backend, &mark));
                self.prepared_for(limit_ms, leaves, false).await
            }
            Err(why) => Err(why),
        };
        match said {
            Ok(Left::There) => {
                if let Some(course) = self.course.as_deref_mut() {
                    course.mark = Some(mark);
                }
            }
            Ok(Left::Nowhere(words)) => {
                self.core.tally.up(Counter::TransactionMarksMissing);
                self.core.note(&format!(
                    "hostgroup {hostgroup}: a COMMIT leaves no mark in {table}: {words}"
                ));
            }
            Err(why) => {
                let trouble = Trouble::before_the_command(why, false);
                return Err((backend, kept, trouble));
            }
        }
        self.held.put(hostgroup, backend);
        Ok(())
    }

    /// Whether this is a COMMIT that has left a mark.
    pub(crate) fn has_left_mark(&self, job: &Job<'_>) -> bool {
        let is_marked = |course: &Course| course.mark.is_some();
        self.course.as_deref().is_some_and(is_marked) && commits(job)
    }

    /// A MariaDB keeps the warnings of the statement before over a COMMIT, and not over a mark.
    async fn ask_what_a_mark_ends(
        &mut self,
        backend: &mut Backend,
        limit_ms: u64,
    ) -> Result<(), Failed> {
        if !backend.hello.is_mariadb() || !backend.holds.has(Hold::Diagnostics) {
            return Ok(());
        }
        let how = Asking {
            insists: true,
            ended: Reads::NONE,
            ..Asking::before_a_statement(limit_ms)
        };
        self.ask_for(backend, &[&warnings::MEMORY], how).await?;
        Ok(())
    }
}

/// Outcome of leaving a mark.
enum Left {
    There,
    /// Nothing, and why.
    Nowhere(String),
}

async fn leave(backend: &mut Backend, mark: &Mark) -> Result<Left, BackendFailed> {
    // It leaves nothing else on the connection, and an error has done nothing.
    let kept = backend.holds;
    let summed = exchange_text(backend, &mark.statement()).await?;
    backend.holds = kept;
    let response = summed.response();
    match response.outcome() {
        // Otherwise the transaction was over before, and the mark says nothing of it.
        Outcome::Ok if response.status() & status::IN_TRANS != 0 => Ok(Left::There),
        Outcome::Err {
            code,
            state,
            message,
        } => {
            let words = String::from_utf8_lossy(message).into_owned();
            if NO_MARKS.contains(&code) {
                Ok(Left::Nowhere(words))
            } else if demoted::is_meant(code, message) {
                Err(BackendFailed::ReadOnly {
                    code,
                    message: words,
                })
            } else {
                // It may have ended the transaction: its COMMIT is not said.
                Err(BackendFailed::Sync {
                    code,
                    state,
                    message: words,
                })
            }
        }
        _ => Ok(Left::Nowhere("no transaction was open".to_owned())),
    }
}

/// Looks for the mark of a course whose COMMIT was sent, on a connection that may be to another server.
pub(super) async fn look(
    backend: &mut Backend,
    course: &Course,
    mark: &Mark,
    servers: &Servers,
) -> Result<Looked, BackendFailed> {
    // Variables are set here, which nobody else is to find.
    backend.retire();
    let applied = Applied::of(servers, course.hostgroup);
    match applied {
        Applied::Channels => {
            let question = topology::lag_question(&backend.hello.version);
            let Ok(rows) = read(backend, course, question).await? else {
                return Ok(Looked::Unknown(Unfit::Blind));
            };
            let has_applied = topology::has_applied_all(&names(&rows), &rows.rows);
            #[cfg(debug_assertions)]
            let has_applied = has_applied || backend::planted::LOOK_EARLY.get();
            if !has_applied {
                return Ok(Looked::NotYet);
            }
        }
        Applied::Waits { before, .. } => {
            if read(backend, course, before).await?.is_err() {
                return Ok(Looked::Unknown(Unfit::Blind));
            }
        }
        Applied::Always => {}
    }
    let found = match read(backend, course, &mark.question()).await? {
        Ok(rows) => rows.rows,
        Err(code) if BUSY.contains(&code) => return Ok(Looked::NotYet),
        Err(_) => return Ok(Looked::Unknown(Unfit::Commit)),
    };
    if let Applied::Waits { behind, .. } = applied {
        let _begins_with_it = read(backend, course, behind).await?;
    }
    #[cfg(debug_assertions)]
    match (
        backend::planted::MISS_MARKS.get(),
        backend::planted::TRUST_MARKS.get(),
    ) {
        (true, _) => return Ok(Looked::Missing),
        (_, true) => return Ok(Looked::Landed),
        _ => {}
    }
    Ok(match found.first().and_then(|row| row.first()) {
        Some(Some(number)) if mark.is(number) => Looked::Landed,
        _ => Looked::Missing,
    })
}

/// Names of columns.
fn names(rows: &Rows) -> Vec<Box<str>> {
    let name = |definition: &Vec<u8>| {
        // Catalog, schema, table, its own name, the column's.
        let names = definition::names(definition).unwrap_or_default();
        String::from_utf8_lossy(names[4]).into()
    };
    rows.definitions.iter().map(name).collect()
}

/// Says a text in the state of a course; its rows, or the number of its error.
async fn read(
    backend: &mut Backend,
    course: &Course,
    text: &str,
) -> Result<Result<Rows, u16>, BackendFailed> {
    alone::come_to(backend, &course.state, &sql::class(text.as_bytes())).await?;
    backend.look_at_answer();
    let summed = exchange_text(backend, text).await?;
    let seen = backend.seen_answer().unwrap_or_default();
    if let Outcome::Err { code, .. } = summed.response().outcome() {
        return Ok(Err(code));
    }
    Ok(Ok(
        wire::rows::read(&seen, backend.hello.caps).unwrap_or_default()
    ))
}

async fn exchange_text(backend: &mut Backend, text: &str) -> Result<Summed, BackendFailed> {
    let said = Said::Text(text.as_bytes().into(), Attributes::NONE);
    exchange(backend, (&said, &sql::class(text.as_bytes())), 0).await
}
