//! INSERTs whose id is `LAST_INSERT_ID()` for certain, so that nobody has to be asked for it.
//!
//! A server's OK has the first id that it made, or, if it made none, the one that the client chose;
//! `LAST_INSERT_ID()` is the former only. An INSERT that does not name the AUTO_INCREMENT column of
//! its table chooses none. One that names it has chosen it if its only row has that very number
//! there. Which column that is the server is asked once, with an INSERT of its kind, and again after
//! a while, or after a definition has changed.

use crate::command::job::{Job, What};
use crate::command::trouble::Failed;
use crate::known::generated::{Asks, Kind, Made, Origin, Says};
use crate::session::Session;
use backend::{Backend, Hold, Idle, Unreported};
use sql::Inserted;
use wire::execute::Value;

/// Bytes of a name that servers are asked about.
const NAME_LEN_MAX: usize = 64;

/// Columns of which it is remembered what was written: the numbered one is among the first.
const WROTE_MAX: usize = 16;

/// So many INSERTs of a kind are worth a question: less than two of a hundred statements more for a server.
const OFTEN: u8 = 64;

/// Value that an INSERT writes for one of its columns: a number, or none for NULL and DEFAULT. `None` for any
/// other.
fn written(job: &Job<'_>, escapes: bool, column: usize) -> Option<Option<u64>> {
    Some(
        match (sql::inserted(job.sent(), escapes, column)?, job.what) {
            (Inserted::Parameter(at), What::Execute(execution)) => {
                match execution.values().ok()?.into_iter().nth(at)? {
                    Value::Null => None,
                    Value::Int(number) => Some(u64::try_from(number).ok()?),
                    Value::Uint(number) => Some(number),
                    _ => return None,
                }
            }
            (Inserted::Parameter(_), _) => return None,
            (Inserted::Number(number), _) => Some(number),
            (Inserted::None, _) => None,
        },
    )
}

/// Meaning of the ids of a kind of INSERT that names the AUTO_INCREMENT column in this place and has written this
/// value there, by the id in its answer and what `LAST_INSERT_ID()` was behind it. `before`: as far as it was known. A
/// server that takes 0 for a value answers it with no id.
fn learnt(
    at: usize,
    wrote: Option<Option<u64>>,
    (id, last): (u64, u64),
    before: Option<Says>,
) -> Says {
    let made = match wrote {
        Some(None | Some(0)) if last == id => Made::Seen,
        // It may have been the last id before.
        Some(Some(chosen)) if chosen == id && last == id => {
            return before.unwrap_or(Says::Unasked(0));
        }
        Some(Some(chosen)) if chosen == id => match before {
            Some(Says::Column { made, .. }) => made,
            // Of those that were counted, some may have had no number.
            Some(Says::Unasked(times)) => Made::Unasked(times),
            _ => Made::Unasked(0),
        },
        _ => return Says::Nothing,
    };
    Says::Column { at, made }
}

/// Origin of an id in the answer to an INSERT that has written this value for the AUTO_INCREMENT column.
fn origin(wrote: Option<Option<u64>>, made: Made, id: u64) -> Option<Origin> {
    match wrote? {
        None | Some(0) => (made == Made::Seen).then_some(Origin::Made),
        Some(number) => (number == id).then_some(Origin::Chosen),
    }
}

impl Session {
    /// Origin of the id with which an INSERT was answered, if that is certain. If nobody knows, it is
    /// noted what to ask for.
    pub(crate) fn origin_of(&self, job: &Job<'_>, backend: &Backend, id: u64) -> Option<Origin> {
        let epoch = job.epoch;
        if job.class.ddl {
            epoch.generated.borrow_mut().forget();
        }
        let plain = match job.what {
            What::Query(_) => job.is_as_written(),
            What::Execute(execution) => !execution.is_bulk(),
            _ => false,
        };
        let digest = job
            .digest
            .filter(|_| plain && id != 0 && job.class.inserts)?;
        // A temporary table hides one that lasts.
        if job.class.multi
            || !job.class.leaves.is_empty()
            || backend.holds.has(Hold::TemporaryTable)
            || job.text.len() >= epoch.digest.max_query_length
        {
            return None;
        }
        let schema = job.what.prepared_in().unwrap_or(&self.state.schema);
        let kind = (digest, job.plan.hostgroup(), schema.clone());
        let now = self.core.rt.now();
        let escapes = self.lexing_of(job.what).escapes();
        let says = epoch.generated.borrow().get(&kind, now);
        // Of so many nobody has asked, and what is known meanwhile.
        let (times, next) = match says {
            Some(Says::Generated) => return Some(Origin::Made),
            Some(Says::Column { at, made }) => {
                let wrote = written(job, escapes, at);
                match (wrote, made) {
                    (Some(None | Some(0)), Made::Unasked(times)) => {
                        let times = times.saturating_add(1);
                        let made = Made::Unasked(times);
                        (times, Says::Column { at, made })
                    }
                    _ => return origin(wrote, made, id),
                }
            }
            Some(Says::Nothing) => return None,
            Some(Says::Unasked(times)) => {
                let times = times.saturating_add(1);
                (times, Says::Unasked(times))
            }
            None => (1, Says::Unasked(1)),
        };
        let Some(mut asks) = asks(job, escapes, kind.clone(), id) else {
            epoch.generated.borrow_mut().set(kind, Says::Nothing, now);
            return None;
        };
        epoch.generated.borrow_mut().set(kind, next, now);
        asks.comes_often = times >= OFTEN;
        let mut known = self.remembered.insert_id.borrow_mut();
        known.get_or_insert_default().asks = Some(Box::new(asks));
        None
    }

    /// Whether to ask now for what nobody knows of INSERTs that come often: no connection is kept for them any
    /// more.
    pub(crate) fn is_to_learn_of_inserts(&self, backend: &Backend) -> bool {
        let comes_often = || {
            let known = self.remembered.insert_id.borrow();
            let asks = known.as_ref().and_then(|known| known.asks.as_ref());
            asks.is_some_and(|asks| asks.comes_often)
        };
        backend.idle == Idle::Proven
            && backend.holds.is_only(Hold::InsertId)
            && backend.local.unreported == Unreported::Nothing
            && comes_often()
    }

    /// Asks a connection for `LAST_INSERT_ID()`; with it, where that is to be known, for the
    /// AUTO_INCREMENT column of the table. `None` if the server does not say.
    pub(crate) async fn ask_id(
        &mut self,
        backend: &mut Backend,
        asks: Option<Box<Asks>>,
        limit_ms: u64,
    ) -> Result<Option<u64>, Failed> {
        // A question about tables would be a part of the transaction, and may begin one.
        let free = !backend.holds.has(Hold::Transaction) && !backend.holds.is_manual();
        let Some(asks) = asks.filter(|_| free) else {
            let asked = backend.ask_insert_id();
            return self
                .watched(limit_ms, asked, self.entry.told_to_leave())
                .await;
        };
        let asked = backend.ask_generated(&asks.schema, &asks.table);
        let told = self
            .watched(limit_ms, asked, self.entry.told_to_leave())
            .await?;
        let Some((last, column)) = told else {
            return Ok(None);
        };
        let place = |column: &String| {
            let mut names = asks.columns.iter();
            names.position(|name| name.eq_ignore_ascii_case(column))
        };
        let (epoch, now) = (self.core.epoch(), self.core.rt.now());
        let says = match column {
            Some(column) => match place(&column) {
                Some(at) => {
                    let wrote = asks.wrote.get(at).copied().flatten();
                    let before = epoch.generated.borrow().get(&asks.kind, now);
                    learnt(at, wrote, (asks.id, last), before)
                }
                None if last == asks.id => Says::Generated,
                None => Says::Nothing,
            },
            None => Says::Nothing,
        };
        epoch.generated.borrow_mut().set(asks.kind, says, now);
        Ok(Some(last))
    }
}

/// Returns what to ask about an INSERT; `None` if it names no columns, or not in ASCII.
fn asks(job: &Job<'_>, escapes: bool, kind: Kind, id: u64) -> Option<Asks> {
    let read = sql::insert(job.sent(), escapes)?;
    let text = |name: &[u8]| {
        let plain = name
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'-'));
        let fits = plain && !name.is_empty() && name.len() <= NAME_LEN_MAX;
        fits.then(|| String::from_utf8_lossy(name).into_owned())
    };
    let schema = match &read.schema {
        Some(schema) => text(schema)?,
        None => text(kind.2.as_bytes())?,
    };
    Some(Asks {
        kind,
        schema,
        table: text(&read.table)?,
        columns: read
            .columns
            .iter()
            .map(|name| text(name))
            .collect::<Option<_>>()?,
        wrote: (0..read.columns.len().min(WROTE_MAX))
            .map(|column| written(job, escapes, column))
            .collect(),
        id,
        comes_often: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_chosen_if_the_column_has_it_and_made_if_that_was_seen() {
        let column = |made| Says::Column { at: 0, made };
        let (seen, chosen) = (column(Made::Seen), column(Made::Unasked(0)));
        for (wrote, id, last, before, says) in [
            (Some(None), 5, 5, None, seen),
            (Some(Some(0)), 5, 5, None, seen),
            (Some(Some(0)), 5, 5, Some(chosen), seen),
            (Some(None), 5, 4, None, Says::Nothing),
            (Some(None), 5, 4, Some(chosen), Says::Nothing),
            (Some(Some(5)), 5, 4, None, chosen),
            (
                Some(Some(5)),
                5,
                4,
                Some(Says::Unasked(7)),
                column(Made::Unasked(7)),
            ),
            (Some(Some(5)), 5, 4, Some(seen), seen),
            (Some(Some(5)), 5, 5, None, Says::Unasked(0)),
            (Some(Some(5)), 5, 5, Some(seen), seen),
            (Some(Some(5)), 6, 6, Some(seen), Says::Nothing),
            (None, 5, 5, None, Says::Nothing),
        ] {
            let learnt = learnt(0, wrote, (id, last), before);
            assert_eq!(learnt, says, "{wrote:?} {id} {last} {before:?}");
        }
        for (wrote, made, id, wanted) in [
            (Some(None), Made::Seen, 5, Some(Origin::Made)),
            (Some(Some(0)), Made::Seen, 5, Some(Origin::Made)),
            (Some(None), Made::Unasked(3), 5, None),
            (Some(Some(5)), Made::Unasked(3), 5, Some(Origin::Chosen)),
            (Some(Some(5)), Made::Seen, 6, None),
            (None, Made::Seen, 5, None),
        ] {
            assert_eq!(origin(wrote, made, id), wanted, "{wrote:?} {made:?} {id}");
        }
    }
}
