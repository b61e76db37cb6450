//! `LAST_INSERT_ID()` follows the session. A server is asked for it before its connection is given
//! back, and a connection is told where a statement reads it, so that an insert binds nobody to its
//! connection.

use crate::generated::Asks;
use crate::left;
use crate::ready::executes_unread;
use crate::relay::Failed;
use crate::session::Session;
use crate::statement::{Job, What};
use backend::{Backend, BackendFailed, Hold, Idle, Lingers, Unreported};
use config::Snapshot;
use net::NetError;
use rt::Instant;
use sql::{Class, CommandCounter, Leaves, Reads};
use std::rc::Rc;
use std::time::Duration;

/// A client that is silent for so long leaves a connection on which programs of users have run:
/// what follows in the same request of an application comes sooner.
pub(crate) const SILENT: Duration = Duration::from_millis(5);

/// Until when a connection is kept for what it remembers of the statement that ends now, unless
/// somebody needs it before; `None` if time does not end it.
pub(crate) fn lingers_until(snapshot: &Snapshot, now: Instant) -> Option<Instant> {
    let limit = snapshot
        .variables
        .mysql_auto_increment_delay_multiplex_timeout_ms;
    (limit > 0).then(|| now + Duration::from_millis(limit))
}

/// Of the answers since a connection was last asked, so many ids are kept.
const SAID_MAX: usize = 16;

/// What `LAST_INSERT_ID()` is for a session. Most sessions never insert, and have no room for it.
pub(crate) type OfSession = Option<Box<InsertId>>;

/// What `LAST_INSERT_ID()` is for a session that has inserted.
#[derive(Debug, Default)]
pub(crate) struct InsertId {
    /// As far as it is certain.
    value: u64,
    /// The hostgroup whose connection knows better. An answer has the id of its row, too, if the
    /// client chose it, and then `LAST_INSERT_ID()` stays as it was.
    from: Option<u32>,
    /// What the answers there have said.
    said: Vec<u64>,
    /// What is to be asked of the table of the last INSERT, when that costs nothing else.
    pub(crate) asks: Option<Box<Asks>>,
}

impl InsertId {
    /// From now on the connection of this hostgroup knows better. Whether another did, or none.
    fn begin(&mut self, hostgroup: u32) -> bool {
        let new = self.from != Some(hostgroup);
        if new {
            self.said.clear();
            self.from = Some(hostgroup);
        }
        new
    }

    /// An answer there has this id, or none. Whether another connection knew better before, or
    /// none.
    fn say_from(&mut self, hostgroup: u32, id: u64) -> bool {
        let elsewhere = self.begin(hostgroup);
        if self.said.len() == SAID_MAX {
            self.said.remove(0);
        }
        self.said.extend((id != 0).then_some(id));
        elsewhere
    }

    /// The connection of a hostgroup has been asked. `before`: what it was there before the session
    /// came, if that is known.
    pub(crate) fn hear(&mut self, hostgroup: u32, before: Option<u64>, now: u64) {
        if self.from == Some(hostgroup) {
            // Made by the session, rather than left by another one.
            if before.is_some_and(|before| before != now) || self.said.contains(&now) {
                self.value = now;
            }
            self.from = None;
            self.said.clear();
        }
    }

    /// What it is as far as the session knows. `kept`: whether it still has the connection of a
    /// hostgroup that knows better; one that broke, or whose server was taken away, has said what
    /// it is in its answers.
    fn now(&self, kept: impl Fn(u32) -> bool) -> u64 {
        match self.from {
            Some(hostgroup) if !kept(hostgroup) => self.said.last().copied().unwrap_or(self.value),
            _ => self.value,
        }
    }

    /// The connection is gone.
    pub(crate) fn lose(&mut self, hostgroup: u32) {
        if self.from == Some(hostgroup) {
            self.value = self.said.pop().unwrap_or(self.value);
            self.from = None;
            self.said.clear();
        }
    }
}

/// May it change what `LAST_INSERT_ID()` is without saying so in its answer? `ok`: the answer is an
/// OK, neither rows nor an error: MariaDB's `INSERT … RETURNING` has no id in its answer, and an
/// insert that fails may have made some before.
fn changes_unsaid(class: &Class<'_>, ok: bool) -> bool {
    class.leaves.intersects(Leaves::LAST_INSERT_ID)
        || class.command == CommandCounter::Call
        || class.inserts && !ok
}

/// Whether the session's id must be where a statement runs. Functions and procedures of users may
/// read it, too; and of what changes it unsaid, nobody could say whether it did.
fn reads(job: &Job<'_>) -> bool {
    let class = job.class;
    let reads = class.reads.intersects(Reads::LAST_INSERT_ID)
        || class.leaves.intersects(Leaves::LAST_INSERT_ID)
        || class.leaves.intersects(Leaves::UNKNOWN_FUNCTION)
        || class.command == CommandCounter::Call;
    reads && !matches!(job.what, What::Prepare(..))
}

/// Whether a session goes on that had asked a connection for what it remembered, and lost it: what
/// the server would have said went with it; what its answer to the insert said is still known.
/// `carried`: it had more than that.
pub(crate) fn is_harmless(why: &Failed, carried: bool) -> bool {
    matches!(why, Failed::Backend(_)) && !carried
}

impl Session {
    /// A statement has ended whose answer has this id. `ok`: and is an OK.
    pub(crate) fn learn_insert_id(
        &mut self,
        backend: &mut Backend,
        job: &Job<'_>,
        id: u64,
        ok: bool,
    ) {
        if matches!(job.what, What::Prepare(_)) {
            return;
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
            **self.entry.insert_id.borrow_mut().get_or_insert_default() = InsertId {
                value: id,
                ..InsertId::default()
            };
            backend.insert_id = None;
            backend.holds.remove(Hold::InsertId);
            return;
        }
        if !unsaid && self.is_generated(job, backend, id) {
            return self.insert_id_is(backend, id);
        }
        let hostgroup = job.plan.hostgroup();
        let elsewhere = {
            let mut known = self.entry.insert_id.borrow_mut();
            let known = known.get_or_insert_default();
            known.say_from(hostgroup, id)
        };
        if elsewhere {
            // That of an insert elsewhere is over.
            self.held.forget_inserts();
            self.let_go_of_free();
        }
        backend.holds.add(Hold::InsertId);
        backend.insert_id_left = statements;
    }

    /// This is `LAST_INSERT_ID()` for certain, and no connection is needed for it.
    fn insert_id_is(&mut self, backend: &mut Backend, id: u64) {
        **self.entry.insert_id.borrow_mut().get_or_insert_default() = InsertId {
            value: id,
            ..InsertId::default()
        };
        backend.insert_id = Some(id);
        backend.holds.remove(Hold::InsertId);
        // That of an insert elsewhere is over.
        self.held.forget_inserts();
        self.let_go_of_free();
    }

    /// `LAST_INSERT_ID()`, if no connection knows better.
    pub(crate) fn certain_insert_id(&self) -> Option<u64> {
        match self.entry.insert_id.borrow().as_ref() {
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
        if backend.insert_id_left > 0 {
            backend.insert_id_left -= 1;
            backend.insert_id_until = lingers_until(&job.epoch.snapshot, self.core.rt.now());
            return;
        }
        if backend.insert_id_until.is_some() {
            return;
        }
        // No time ends it, so the statements do.
        // Warnings are asked for before, in the client's next silence.
        let programs = if backend.says_what_is_left().is_some() {
            [Hold::Procedure, Hold::Routine]
        } else {
            [Hold::Unread; 2]
        };
        let found = if backend.found_rows_until.is_some() {
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
        backend.insert_id_until = waits.then(|| self.core.rt.now());
    }

    /// The client has its answer. What only a memory keeps may be asked for by who needs a
    /// connection.
    pub(crate) fn lingers(&self) {
        if self.held.is_empty() {
            return;
        }
        for (_, backend) in self
            .held
            .iter()
            .filter(|(_, backend)| backend.lingers_until().is_some())
        {
            self.entry.lingers.set(true);
            let who: Rc<dyn Lingers> = self.entry.clone();
            self.core.pools.lingers(backend, &who);
        }
    }

    /// The client is silent: what only an insert's id or warnings keep is asked for them and given
    /// back.
    pub(crate) async fn leave_remembered(&mut self, now: Instant) -> Result<(), Failed> {
        let at_once = self.entry.leaves.take() || self.core.is_draining();
        while let Some((hostgroup, mut backend)) = self.held.take_due(now, at_once) {
            let carries = backend.holds.carry_state();
            let epoch = self.core.epoch();
            let v = &epoch.snapshot.variables;
            // A session whose state is there ends if the server does not answer: that takes more
            // than a busy machine. Nothing else is heard meanwhile.
            let limit_ms = if carries {
                v.mysql_connect_timeout_server_max
            } else {
                v.mysql_connect_timeout_server
            };
            let mut asked = Box::pin(self.ask_remembered(hostgroup, &mut backend, limit_ms)).await;
            if asked.is_ok() && backend.holds.is_only(Hold::Unread) {
                asked = Box::pin(self.read_back(&mut backend, limit_ms, true)).await;
                if asked.is_err() {
                    // Nobody knows any more what was set there.
                    backend.idle = Idle::Doubtful;
                }
            }
            let mut is_nobodys = false;
            if asked.is_ok() && left::is_all(&backend) {
                let left = Box::pin(self.ask_what_is_left(&mut backend, limit_ms)).await;
                is_nobodys = matches!(left, Ok(true));
                asked = left.map(drop);
            }
            let over = backend.idle != Idle::Proven && backend.holds.carry_state();
            if is_nobodys && backend.idle == Idle::Proven {
                self.core.pools.give_up(backend);
            } else if backend.idle == Idle::Proven && !backend.holds.is_empty() {
                self.held.put(hostgroup, backend);
            } else {
                self.core.pools.release(backend);
            }
            if asked.is_ok() && over {
                asked = Err(Failed::Backend(BackendFailed::BrokeAfter(NetError::Closed)));
            }
            match asked {
                Ok(()) => {}
                Err(why) if is_harmless(&why, carries) => {}
                Err(other) => return Err(other),
            }
        }
        Ok(())
    }

    async fn ask_remembered(
        &mut self,
        hostgroup: u32,
        backend: &mut Backend,
        limit_ms: u64,
    ) -> Result<(), Failed> {
        #[cfg(feature = "planted")]
        if backend::planted::LEAVE_UNASKED.get() {
            backend.holds.remove(Hold::Diagnostics);
            backend.holds.remove(Hold::InsertId);
            self.entry.insert_id.take();
        }
        // First: any other question would be the statement that they are about.
        if backend.holds.has(Hold::Diagnostics) {
            self.ask_warnings(backend, limit_ms).await?;
        }
        if backend.holds.has(Hold::Diagnostics) {
            return Ok(());
        }
        let forgets = || {
            backend.says_what_is_left().is_some()
                && self.knows_found_rows(backend)
                && self.found_rows().is_none()
        };
        if backend.holds.has(Hold::FoundRows) || forgets() {
            self.find_before(backend, limit_ms, true).await?;
        }
        if backend.unreported != Unreported::Nothing {
            self.hear(backend, limit_ms, true).await?;
        }
        if backend.holds.has(Hold::InsertId) {
            self.ask_insert_id(hostgroup, backend, limit_ms).await?;
        }
        if backend.doubts_locks() {
            self.watched(limit_ms, backend.ask_locks(), self.entry.told_to_leave())
                .await?;
        }
        Ok(())
    }

    pub(crate) async fn ask_insert_id(
        &mut self,
        hostgroup: u32,
        backend: &mut Backend,
        limit_ms: u64,
    ) -> Result<(), Failed> {
        if backend.unreported != Unreported::Nothing {
            // The question would take the answer to what was not told yet.
            self.hear(backend, limit_ms, true).await?;
        }
        backend.holds.remove(Hold::InsertId);
        let before = backend.insert_id;
        let mut known = self.entry.insert_id.take().unwrap_or_default();
        match self.ask_id(backend, known.asks.take(), limit_ms).await {
            Ok(Some(now)) => known.hear(hostgroup, before, now),
            Ok(None) => known.lose(hostgroup),
            Err(failed) => {
                known.lose(hostgroup);
                self.entry.insert_id.replace(Some(known));
                return Err(failed);
            }
        }
        self.entry.insert_id.replace(Some(known));
        Ok(())
    }

    /// Whether a statement must find the session's id where something else may be.
    pub(crate) fn lacks_insert_id(&self, backend: &Backend, job: &Job<'_>) -> bool {
        let own = backend.holds.has(Hold::InsertId);
        let other = || {
            self.insert_id_elsewhere(job).is_some()
                || backend.insert_id != Some(self.known_insert_id())
        };
        // What only the server knows may read it, too; there it is right after the session's own
        // insert.
        reads(job) && (own || other()) || executes_unread(job) && !own && other()
    }

    /// The hostgroup of another connection of the session's that knows better: where a transaction
    /// leads a statement away from an insert, both are kept.
    fn insert_id_elsewhere(&self, job: &Job<'_>) -> Option<u32> {
        let from = self
            .entry
            .insert_id
            .borrow()
            .as_ref()
            .and_then(|known| known.from)?;
        (from != job.plan.hostgroup() && self.held.has(from, Hold::InsertId)).then_some(from)
    }

    /// Asks there, before the statement has a connection. What would end with the question is asked
    /// for before. The second of an error: whether state of the session went with that connection.
    pub(crate) async fn ask_id_elsewhere(&mut self, job: &Job<'_>) -> Result<(), (Failed, bool)> {
        if !reads(job)
            && (!executes_unread(job) || self.held.has(job.plan.hostgroup(), Hold::InsertId))
        {
            return Ok(());
        }
        let Some(hostgroup) = self.insert_id_elsewhere(job) else {
            return Ok(());
        };
        let Some(mut backend) = self.held.take(hostgroup) else {
            return Ok(());
        };
        self.entry.works_on(hostgroup, &backend);
        let carries = backend.holds.carry_state();
        // A server that does not answer is not what the statement waits for, unless the session
        // ends with it.
        let patience = if carries {
            u64::MAX
        } else {
            job.epoch.snapshot.variables.mysql_connect_timeout_server
        };
        let asked = self
            .ask_before_leaving(hostgroup, &mut backend, self.limit_ms(job).min(patience))
            .await;
        let unsent = matches!(asked, Err(Failed::Unsent));
        if asked.is_err() && !unsent {
            backend.idle = Idle::Doubtful;
        }
        if backend.idle == Idle::Proven && !backend.holds.is_empty() {
            self.held.put(hostgroup, backend);
        } else {
            self.core.pools.release(backend);
        }
        match asked {
            Err(Failed::Unsent) => Err((Failed::Unsent, false)),
            Err(why) if !is_harmless(&why, carries) => Err((why, carries)),
            _ => Ok(()),
        }
    }

    async fn ask_before_leaving(
        &mut self,
        hostgroup: u32,
        backend: &mut Backend,
        limit_ms: u64,
    ) -> Result<(), Failed> {
        self.ask_remembered(hostgroup, backend, limit_ms).await?;
        if !backend.holds.has(Hold::InsertId) {
            return Ok(());
        }
        // There are too many warnings to be kept, and the statement that wants to know ends them
        // anyway.
        if backend.holds.has(Hold::FoundRows) {
            self.find_before(backend, limit_ms, true).await?;
        }
        self.ask_insert_id(hostgroup, backend, limit_ms).await
    }

    fn known_insert_id(&self) -> u64 {
        let known = self.entry.insert_id.borrow();
        known.as_ref().map_or(0, |known| {
            known.now(|hostgroup| self.held.has(hostgroup, Hold::InsertId))
        })
    }

    /// Sees to it.
    pub(crate) async fn bring_insert_id(
        &mut self,
        backend: &mut Backend,
        job: &Job<'_>,
    ) -> Result<(), Failed> {
        let limit_ms = self.limit_ms(job);
        if backend.holds.has(Hold::InsertId) {
            self.ask_insert_id(job.plan.hostgroup(), backend, limit_ms)
                .await?;
        }
        let value = self.known_insert_id();
        if backend.insert_id == Some(value) {
            return Ok(());
        }
        self.prepared_for(limit_ms, backend.tell_insert_id(value), false)
            .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The value is 3 so far; hostgroup 0 has said `said`, had `before` and has `now`.
    fn heard(said: &[u64], before: Option<u64>, now: u64) -> u64 {
        let mut id = InsertId {
            value: 3,
            from: Some(0),
            said: said.to_vec(),
            asks: None,
        };
        id.hear(1, None, 99);
        assert_eq!(id.value, 3, "of another hostgroup");
        id.hear(0, before, now);
        assert!(id.from.is_none() && id.said.is_empty());
        id.value
    }

    #[test]
    fn an_id_that_a_client_chose_is_no_last_insert_id() {
        assert_eq!(heard(&[5], Some(4), 5), 5, "made by the server");
        assert_eq!(
            heard(&[1000], Some(4), 4),
            3,
            "chosen by the client: what is there is another session's"
        );
        assert_eq!(heard(&[5, 1000], Some(4), 5), 5, "made, then chosen");
        assert_eq!(
            heard(&[4], Some(4), 4),
            4,
            "made in one table as in another before"
        );
        assert_eq!(
            heard(&[], Some(3), 77),
            77,
            "LAST_INSERT_ID(77), and no word of it"
        );
        assert_eq!(heard(&[5], None, 5), 5);
        assert_eq!(
            heard(&[1000], None, 4),
            3,
            "nobody knows what was there, but it is not ours"
        );
    }

    #[test]
    fn of_a_connection_that_is_gone_what_it_said_last_counts() {
        let mut id = InsertId {
            value: 3,
            from: Some(0),
            said: vec![5, 6],
            asks: None,
        };
        id.lose(1);
        assert_eq!(id.value, 3);
        id.lose(0);
        assert_eq!(id.value, 6);
    }
}
