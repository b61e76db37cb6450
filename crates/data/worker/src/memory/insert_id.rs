//! `LAST_INSERT_ID()` follows the session. A server is asked for it before its connection is given back, so
//! that an insert binds nobody to its connection.

use crate::command::job::{Job, What};
use crate::command::trouble::Failed;
use crate::known::generated::Origin;
use crate::memory::row::{After, Asking, Memory, lingers_until, nothing_lost};
use crate::session::Session;
use crate::session::insert_id::InsertId;
use backend::{Backend, Hold};
use bridge::Counter;
use plan::Given;
use sql::{Class, CommandCounter, Leaves, Reads};
use wire::response::{Outcome, Response};

pub(crate) static MEMORY: Memory = Memory {
    holds: &[Hold::InsertId],
    reads: Reads::LAST_INSERT_ID,
    fragile: false,
    is_there: |_, backend| backend.holds.has(Hold::InsertId),
    ask: |session, backend, how| Box::pin(session.ask_insert_id(backend, how)),
    // The answers of its connection have said what it is.
    lose: nothing_lost,
};

/// May it change what `LAST_INSERT_ID()` is without saying so in its answer? `ok`: the answer is an
/// OK, neither rows nor an error: MariaDB's `INSERT … RETURNING` has no id in its answer, and an
/// insert that fails may have made some before.
fn changes_unsaid(class: &Class<'_>, ok: bool) -> bool {
    class.leaves.intersects(Leaves::LAST_INSERT_ID)
        || class.command == CommandCounter::Call
        || class.inserts && !ok
}

impl Session {
    /// A statement has ended whose answer has this id.
    pub(crate) fn learn_insert_id(
        &mut self,
        backend: &mut Backend,
        job: &Job<'_>,
        id: u64,
        response: &Response,
    ) {
        let ok = response.row_count() >= 0;
        if matches!(job.what, What::Prepare(_)) {
            return;
        }
        if let Some(given) = job.plan.numbered() {
            return self.insert_id_is_given(backend, (given, id), response);
        }
        let unsaid = changes_unsaid(job.class, ok);
        if id == 0 && !unsaid {
            if job.class.ddl {
                job.epoch.generated.borrow_mut().forget();
            }
            return;
        }
        let statements = job
            .epoch
            .snapshot
            .variables
            .mysql_auto_increment_delay_multiplex;
        if statements == 0 && !unsaid {
            // Nobody here needs more than the answer says.
            **self
                .remembered
                .insert_id
                .borrow_mut()
                .get_or_insert_default() = InsertId {
                value: id,
                ..InsertId::default()
            };
            backend.lasting.insert_id = None;
            backend.holds.remove(Hold::InsertId);
            return;
        }
        // Made by the server or chosen by the client: it is what it was. Only of the connection nobody
        // knows then.
        if !unsaid && self.certain_insert_id() == Some(id) {
            backend.lasting.insert_id = backend.lasting.insert_id.filter(|known| *known == id);
            backend.holds.remove(Hold::InsertId);
            return;
        }
        if !unsaid && let Some(origin) = self.origin_of(job, backend, id) {
            return match origin {
                Origin::Made => self.insert_id_is(backend, id),
                Origin::Chosen => {}
            };
        }
        let hostgroup = job.plan.hostgroup();
        let elsewhere = {
            let mut known = self.remembered.insert_id.borrow_mut();
            let known = known.get_or_insert_default();
            known.say_from(hostgroup, id)
        };
        if elsewhere {
            // That of an insert elsewhere is over.
            self.held.forget_inserts();
            self.let_go_of_free();
        }
        self.core.tally.up(Counter::KeptForInsertId);
        backend.holds.add(Hold::InsertId);
        backend.lease.insert_id_left = statements;
    }

    /// Rows of a statement were numbered here. `id`: the one in the server's answer, which has the
    /// number of its last row, or 0.
    fn insert_id_is_given(
        &mut self,
        backend: &mut Backend,
        (given, id): (Given, u64),
        response: &Response,
    ) {
        let is_there = match response.outcome() {
            Outcome::Err { .. } => false,
            _ => response.affected_rows() > 0 || response.columns() > 0,
        };
        backend.holds.remove(Hold::InsertId);
        if is_there {
            let value = if given.may_update && id > 0 {
                id
            } else {
                given.first
            };
            self.numbered_from(value);
            backend.lasting.insert_id = None;
        }
    }

    /// `LAST_INSERT_ID()` is this, whatever servers know.
    pub(crate) fn numbered_from(&mut self, value: u64) {
        **self
            .remembered
            .insert_id
            .borrow_mut()
            .get_or_insert_default() = InsertId {
            value,
            ..InsertId::default()
        };
        self.held.forget_inserts();
        self.let_go_of_free();
    }

    /// This is `LAST_INSERT_ID()` for certain, and no connection is needed for it.
    fn insert_id_is(&mut self, backend: &mut Backend, id: u64) {
        **self
            .remembered
            .insert_id
            .borrow_mut()
            .get_or_insert_default() = InsertId {
            value: id,
            ..InsertId::default()
        };
        backend.lasting.insert_id = Some(id);
        backend.holds.remove(Hold::InsertId);
        // That of an insert elsewhere is over.
        self.held.forget_inserts();
        self.let_go_of_free();
    }

    /// `LAST_INSERT_ID()`, if no connection knows better.
    pub(crate) fn certain_insert_id(&self) -> Option<u64> {
        match self.remembered.insert_id.borrow().as_ref() {
            None => Some(0),
            Some(known) => known.from.is_none().then_some(known.value),
        }
    }

    /// A statement on the connection of an insert is over: one less until the time begins that
    /// its client may be silent. Nobody is asked for the id before that, or before somebody needs
    /// the connection.
    pub(crate) fn count_down_insert_id(&self, job: &Job<'_>, backend: &mut Backend) {
        if !backend.holds.has(Hold::InsertId) {
            return;
        }
        if backend.lease.insert_id_left > 0 {
            backend.lease.insert_id_left -= 1;
            backend.lease.insert_id_until = lingers_until(&job.epoch.snapshot, self.core.rt.now());
            return;
        }
        if backend.lease.insert_id_until.is_some() {
            return;
        }
        // No time ends it, so the statements do.
        // Warnings are asked for before, in the client's next silence.
        let programs = if backend.says_what_is_left().is_some() {
            [Hold::Procedure, Hold::Routine]
        } else {
            [Hold::Unread; 2]
        };
        let found = if backend.lease.found_rows_until.is_some() {
            Hold::FoundRows
        } else {
            Hold::Unread
        };
        let waits = backend.holds.are_only(&[
            Hold::InsertId,
            Hold::Diagnostics,
            Hold::Unread,
            found,
            programs[0],
            programs[1],
        ]);
        backend.lease.insert_id_until = waits.then(|| self.core.rt.now());
    }

    async fn ask_insert_id(&mut self, backend: &mut Backend, how: Asking) -> Result<After, Failed> {
        backend.holds.remove(Hold::InsertId);
        let hostgroup = backend.place().server().hostgroup;
        let before = backend.lasting.insert_id;
        let mut known = self.remembered.insert_id.take().unwrap_or_default();
        let asked = self.ask_id(backend, known.asks.take(), how.limit_ms).await;
        match &asked {
            Ok(Some(now)) => known.hear(hostgroup, before, *now),
            Ok(None) | Err(_) => known.lose(hostgroup),
        }
        self.remembered.insert_id.replace(Some(known));
        asked.map(|_| After::Told)
    }

    pub(crate) fn known_insert_id(&self) -> u64 {
        let known = self.remembered.insert_id.borrow();
        known.as_ref().map_or(0, |known| {
            known.now(|hostgroup| self.held.has(hostgroup, Hold::InsertId))
        })
    }
}
