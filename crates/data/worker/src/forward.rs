//! The last stage: a connection, the session's state on it, the command there and the answer back.

use crate::answer::Complaint;
use crate::asked::{Asked, Knows};
use crate::insert_id;
use crate::lanes;
use crate::ready::sees;
use crate::relay::{Ask, Failed, doubt_interrupted, relay};
use crate::session::{Ended, Session};
use crate::statement::{Job, Told, What};
use backend::{Backend, BackendFailed, Hold, Idle, Unreported, Want};
use bridge::{Counter, Failure, Retry};
use net::NetError;
use rt::{Chunk, Either};
use sql::{CommandCounter, Leaves, Reads};
use std::ops::ControlFlow;
use std::time::Duration;
use wire::outline::Outline;
use wire::packet;
use wire::response::Outcome;

impl Session {
    pub(crate) async fn forward(&mut self, job: &Job<'_>) -> Result<Told, Ended> {
        let v = &job.epoch.snapshot.variables;
        let delay = job
            .plan
            .delay_ms
            .map_or(v.mysql_default_query_delay, u64::from);
        if delay > 0
            && let ControlFlow::Break(told) =
                self.wait_as_asked(Duration::from_millis(delay)).await?
        {
            return Ok(told);
        }
        if let ControlFlow::Break(told) = self.pipelined(job).await? {
            return Ok(told);
        }
        let mut tries = job
            .plan
            .retries
            .map_or(v.mysql_query_retries_on_failure, u64::from);
        loop {
            // One that is kept for the warnings of the statement before is asked for its rows as
            // well.
            let kept = |hold| self.held.has(job.plan.hostgroup(), hold);
            let knows = job.class.reads.intersects(Reads::FOUND_ROWS)
                && (kept(Hold::FoundRows) || kept(Hold::Diagnostics));
            let failed = match self.attempt(job).await {
                Ok(told) => return Ok(told),
                Err(failed) => failed,
            };
            let Trouble {
                why,
                answered,
                whole,
                state_lost,
            } = failed;
            let failure = match why {
                Failed::Client => return Err(Ended::Gone),
                // As below.
                Failed::Killed if answered => return Err(Ended::Broken),
                Failed::Killed if state_lost || self.entry.killed.get() => {
                    return Err(Ended::Told(interrupted()));
                }
                Failed::Unsent if state_lost => return Err(Ended::Told(interrupted())),
                Failed::Killed | Failed::Unsent => {
                    self.doubt_found_rows(job);
                    self.refuse(&interrupted()).await?;
                    return Ok(Told::default());
                }
                Failed::Cut => {
                    self.doubt_found_rows(job);
                    return Ok(Told {
                        rows_sent: job.plan.rows_max.unwrap_or_default(),
                        ..Told::default()
                    });
                }
                Failed::Backend(failure) => failure,
                Failed::Stale => unreachable!("attempt() deals with it"),
            };
            if whole {
                // It is told when it asks for something again.
                self.entry.rests(self.core.rt.now());
                return Err(Ended::Told(complaint_of(&failure)));
            }
            if answered {
                // Half of it is with the client; only the end of the connection says that the rest
                // is missing.
                return Err(Ended::Broken);
            }
            let again = match failure.retry() {
                Retry::Freely => true,
                Retry::IfHarmless => {
                    job.class.plain_read && job.plan.reconnect.unwrap_or(v.mysql_default_reconnect)
                }
                Retry::Never => false,
            };
            // Another connection would answer about a statement of its own.
            if again && !state_lost && tries > 0 && !knows && !self.asks_for_lost_warnings(job) {
                tries -= 1;
                self.core.tally.up(Counter::StatementsRetried);
                continue;
            }
            if matches!(failure, BackendFailed::Sync { .. }) {
                // What one server has accepted another refuses.
                job.epoch.accepted.borrow_mut().forget();
            } else {
                self.doubt_found_rows(job);
            }
            let complaint = complaint_of(&failure);
            #[cfg(feature = "planted")]
            if backend::planted::HANG_UP.get() {
                return Err(Ended::Broken);
            }
            if state_lost {
                // A transaction, a lock or a variable went with the connection: a client that went
                // on would not know.
                return Err(Ended::Told(complaint));
            }
            self.refuse(&complaint).await?;
            return Ok(Told::default());
        }
    }

    /// What a rule's `delay` or `mysql-default_query_delay` asks for. Who leaves or is told to end
    /// does not wait.
    async fn wait_as_asked(&mut self, delay: Duration) -> Result<ControlFlow<Told>, Ended> {
        let gone = rt::select(self.client.socket().closed(), self.entry.told_to_end());
        match rt::select(self.core.rt.sleep(delay), gone).await {
            Either::Left(()) => return Ok(ControlFlow::Continue(())),
            Either::Right(Either::Left(())) => return Err(Ended::Gone),
            Either::Right(Either::Right(())) if self.entry.killed.get() => {
                return Err(Ended::Told(interrupted()));
            }
            Either::Right(Either::Right(())) => {}
        }
        self.refuse(&interrupted()).await?;
        Ok(ControlFlow::Break(Told::default()))
    }

    /// The connection that a statement needs.
    pub(crate) fn want<'s>(&'s self, job: &Job<'s>) -> Want<'s> {
        Want {
            hostgroup: job.plan.hostgroup(),
            user: &self.user.username,
            secret: &self.secret,
            caps: self.caps,
            collation: self.collation,
            session: self.entry.id,
            attributes: &self.attributes,
            client: self.entry.address,
            state: &self.state,
            user_variables: sees(job),
            remembered: self.remembered(job),
            tracking: self.tracking(job),
            snapshot: &job.epoch.snapshot,
            new_connection: job.plan.new_connection,
            like: None,
        }
    }

    async fn attempt(&mut self, job: &Job<'_>) -> Result<Told, Trouble> {
        let hostgroup = job.plan.hostgroup();
        self.read_back_elsewhere(hostgroup, job).await?;
        if !self.held.is_empty() {
            let asked = Box::pin(self.ask_id_elsewhere(job)).await;
            asked.map_err(|(why, state_lost)| Trouble {
                why,
                answered: false,
                whole: false,
                state_lost,
            })?;
        }
        self.leave_cut_off_for(job)?;
        let mut backend = match self.held.take(hostgroup) {
            Some(backend) => backend,
            None => match self.core.pools.at_once(&self.want(job)) {
                Some(backend) => backend,
                None => self.wait_for_one(job).await?,
            },
        };
        self.entry.works_on(hostgroup, &backend);
        let kept = backend.holds;
        let result = self.on(&mut backend, job).await;
        match result {
            Ok(told) => {
                let settled = self.settle(job, hostgroup, backend).await;
                settled.map_err(Trouble::behind)?;
                Ok(told)
            }
            Err((why, answered)) => {
                // A server that refuses to take a state is still there, and idle; so is one that
                // was not told the statement yet.
                let alive = backend.idle == Idle::Proven
                    && matches!(
                        why,
                        Failed::Unsent
                            | Failed::Backend(
                                BackendFailed::Sync { .. }
                                    | BackendFailed::Kept
                                    | BackendFailed::ReadsOtherwise
                            )
                    );
                if alive && !kept.is_empty() {
                    // What would have run in another schema did not.
                    backend.strays_no_more();
                    // What held it may have been asked for by now.
                    if backend.holds.is_empty() {
                        self.core.pools.release(backend);
                    } else {
                        self.held.put(hostgroup, backend);
                    }
                    return Err(Trouble::before(why));
                }
                if !matches!(
                    why,
                    Failed::Unsent
                        | Failed::Backend(
                            BackendFailed::Sync { .. }
                                | BackendFailed::Kept
                                | BackendFailed::ReadsOtherwise
                                | BackendFailed::Unfit
                        )
                ) {
                    // Whatever came was not learnt, and a KILL may be on its way, even if the
                    // answer had ended: it is nobody's any more.
                    backend.idle = Idle::Doubtful;
                    self.may_write_yet();
                }
                if kept.has(Hold::FoundRows) {
                    self.keep_found_rows(None);
                }
                if matches!(&why, Failed::Backend(failed) if failed.is_sandbox()) {
                    // It stays one when the user has a new password.
                    backend.retire();
                }
                self.core.pools.release(backend);
                if kept.has(Hold::Diagnostics) {
                    self.lose_warnings();
                }
                Err(Trouble {
                    why,
                    answered,
                    whole: false,
                    state_lost: !alive && kept.carry_state(),
                })
            }
        }
    }

    /// A connection that is not there at once.
    async fn wait_for_one(&mut self, job: &Job<'_>) -> Result<Box<Backend>, Trouble> {
        if !self.held.is_empty() {
            let spared = Box::pin(self.give_back_what_is_spare(job)).await;
            spared.map_err(|(why, state_lost)| Trouble {
                why,
                answered: false,
                whole: false,
                state_lost,
            })?;
        }
        loop {
            let want = self.want(job);
            // Who leaves or is told to end leaves the line, too, and so does who loses a connection
            // that is kept.
            let gone = rt::select(self.client.socket().closed(), self.told_while_waiting());
            match rt::select(Box::pin(self.core.pools.acquire(&want)), gone).await {
                Either::Left(backend) => {
                    return backend.map_err(|failure| Trouble::before(Failed::Backend(failure)));
                }
                Either::Right(Either::Left(())) => return Err(Trouble::before(Failed::Client)),
                Either::Right(Either::Right(())) => {}
            }
            if self.entry.killed.get() || self.entry.interrupted.get() {
                return Err(Trouble::before(Failed::Killed));
            }
            self.leave_cut_off_for(job)?;
        }
    }

    /// Closes what is cut off. Nobody else knows warnings that went with it.
    fn leave_cut_off_for(&mut self, job: &Job<'_>) -> Result<(), Trouble> {
        if self.leave_cut_off() {
            return Err(Trouble::cut_off());
        }
        if self.asks_for_lost_warnings(job) {
            return Err(Trouble::before(Failed::Backend(BackendFailed::CutOff)));
        }
        Ok(())
    }

    /// Resolves when the session, or its statement, is to end, or a connection that it keeps is cut
    /// off.
    async fn told_while_waiting(&self) {
        let entry = &self.entry;
        while !entry.killed.get() && !entry.interrupted.get() && !self.held.has_cut_off() {
            entry.bell.heard().await;
        }
    }

    /// On this connection: state, command, answer, and what is to be learnt from it.
    async fn on(&mut self, backend: &mut Backend, job: &Job<'_>) -> Result<Told, (Failed, bool)> {
        let limit_ms = self.limit_ms(job);
        let mut stale_allowed = match job.what {
            What::Execute(_) | What::Dynamic(_) => !runs_others(job.class),
            _ => false,
        };
        let given = self.names_to_give(job);
        let untold = backend.unreported == Unreported::Change;
        loop {
            // What a name is prepared under would be set over what nobody has asked for yet.
            let unread = !given.is_empty() && backend.holds.has(Hold::Unread);
            if unread || !self.is_ready(backend, job) {
                Box::pin(self.make_ready(backend, job))
                    .await
                    .map_err(|why| before_it(why, untold))?;
            }
            // A server that wants a new password first says so to the statement.
            if !given.is_empty() && !backend.holds.has(Hold::ExpiredPassword) {
                if backend.unreported != Unreported::Nothing {
                    // What we prepare would be told it, and what it tells of is asked for: it would
                    // be set over.
                    Box::pin(self.read_back(backend, limit_ms, false))
                        .await
                        .map_err(|why| before_it(why, untold))?;
                }
                Box::pin(self.give_names(backend, job, &given))
                    .await
                    .map_err(|why| before_it(why, untold))?;
                // They were prepared in the schemas and modes that they mean.
                if !self.is_ready(backend, job) {
                    Box::pin(self.make_ready(backend, job))
                        .await
                        .map_err(|why| before_it(why, untold))?;
                }
            }
            self.is_read_alike(backend, job)
                .await
                .map_err(|why| (why, false))?;
            let alone = self.entry.counted.get()
                && backend.is_undisturbed(self.life, self.entry.statement.get().wrapping_sub(1));
            let knows = Knows {
                row_count: alone,
                found_rows: self.knows_found_rows(backend),
                warns: !backend.hello.is_mariadb(),
                last_gtid: self.leaves_last_gtid(backend),
                kept: backend.holds.has(Hold::NotAllowed),
            };
            backend.knew_found_rows = knows.found_rows;
            backend.serves(self.life);
            let asked = self
                .command_for(backend, job, knows)
                .await
                .map_err(|why| (why, false))?;
            let Asked {
                command,
                expect,
                shown,
                executed,
            } = asked;
            let held = backend.holds;
            // The answer tells of a statement before, too.
            let tells_of_before = backend.unreported == Unreported::Change;
            backend.holds.before(job.class);
            self.hold_for_routines(backend, job, held);
            self.draw(backend, job);
            if job
                .class
                .leaves
                .intersects(Leaves::GET_LOCK | Leaves::RELEASE_LOCK)
                && matches!(
                    job.what,
                    What::Query(_) | What::Dynamic(_) | What::Execute(_)
                )
            {
                backend.look_at_answer();
            }
            if job.class.multi {
                // Its parts are not looked at one by one.
                backend.holds.add(Hold::UnknownState);
            }
            let sent = last_seq(command.len());
            if command.len() as u64 > job.epoch.snapshot.variables.mysql_threshold_query_length {
                backend.retire();
            }
            self.send(backend, Chunk::from(command), limit_ms)
                .await
                .map_err(|why| (why, false))?;
            // What fails halfway leaves nobody sure of what the client was told.
            let (outline, columns) = told_before(job.what);
            let ask = Ask {
                expect,
                sent,
                shown,
                limit_ms,
                withhold_stale: executed.filter(|_| stale_allowed),
                rows_max: job.plan.rows_max,
                rows_before: 0,
                per_second: job
                    .epoch
                    .snapshot
                    .variables
                    .mysql_throttle_max_bytes_per_second_to_client,
                compare: job
                    .plan
                    .mirror
                    .as_ref()
                    .is_some_and(|mirror| mirror.compare),
                call: job.class.command == CommandCounter::Call,
                outline,
                columns,
            };
            let (sent, before) = (self.core.rt.now(), lanes::received(backend));
            let has_habits = self.has_habits(job);
            let relayed = relay(self, backend, &ask).await;
            if has_habits && relayed.is_ok() {
                self.note_habit(
                    job,
                    self.core.rt.now() - sent,
                    lanes::received(backend) - before,
                );
            }
            if job.epoch.snapshot.variables.mysql_stats_time_backend_query {
                let took =
                    u64::try_from((self.core.rt.now() - sent).as_nanos()).unwrap_or(u64::MAX);
                self.core.tally.add(Counter::BackendQueryTimeNsec, took);
            }
            match relayed {
                Ok(reply) => {
                    match (job.what, &ask.shown) {
                        (What::Execute(execution), _) => execution.told(&reply, outline),
                        (What::Prepare(preparing), Some(shown)) => {
                            preparing.outline.set(shown.outline.get())
                        }
                        _ => {}
                    }
                    backend.undisturbed = Some(self.entry.statement.get());
                    let told = self.learn(backend, job, &reply, executed);
                    if let (What::Execute(execution), Some(executed), Outcome::Err { .. }) =
                        (job.what, executed, reply.response().outcome())
                        && execution.long().next().is_some()
                    {
                        // What came ahead may still be there, and would be the next one's.
                        executed.forget(backend);
                    }
                    if !tells_of_before {
                        self.trust_routines(backend, job, held);
                    }
                    self.forget_names(&given);
                    doubt_interrupted(backend);
                    return Ok(told);
                }
                Err((Failed::Stale, _)) => {
                    // The server has lost the statement, or cannot bring it up to date: prepared
                    // anew, once.
                    stale_allowed = false;
                    if let What::Execute(execution) = job.what {
                        execution.outline.set(outline);
                    }
                    // The client does not know of the error, and the server does: its counts are
                    // that one's.
                    (backend.undisturbed, backend.finder) = (None, None);
                    (backend.warnings_left, backend.others_warnings) = (true, true);
                    if matches!(job.what, What::Dynamic(_)) {
                        backend.has_failed(Unreported::Noise);
                    }
                    if let Some(executed) = executed {
                        executed.is_stale(backend);
                    }
                }
                Err(failed) => return Err(failed),
            }
        }
    }

    /// Keep the connection, or give it back.
    async fn settle(
        &mut self,
        job: &Job<'_>,
        hostgroup: u32,
        mut backend: Box<Backend>,
    ) -> Result<(), Failed> {
        let v = &job.epoch.snapshot.variables;
        let group = job.epoch.snapshot.servers.hostgroup(hostgroup);
        let allowed = v.mysql_multiplexing && group.is_none_or(|group| group.attributes.multiplex);
        match job.plan.multiplex {
            Some(0) => backend.holds.add(Hold::NotAllowed),
            Some(1) if allowed => backend.holds.remove(Hold::NotAllowed),
            _ if !allowed => backend.holds.add(Hold::NotAllowed),
            _ => {}
        }
        // Before the id of an insert, which the question leaves as it is: each would wait for the
        // other.
        if backend.idle == Idle::Proven
            && backend
                .holds
                .are_only(&[Hold::UserLock, Hold::Unread, Hold::InsertId, Hold::Delay])
            && backend.unreported == Unreported::Nothing
            && backend.doubts_locks()
        {
            let asked =
                Box::pin(self.prepared_for(self.limit_ms(job), backend.ask_locks(), true)).await;
            if asked.is_err() {
                self.core.pools.release(backend);
                return asked;
            }
        }
        backend.wait_for_silence(self.core.rt.now(), insert_id::SILENT);
        self.count_down_insert_id(job, &mut backend);
        if backend.unreported != Unreported::Nothing
            && backend.idle == Idle::Proven
            && backend.holds.is_empty()
        {
            let noise = backend.unreported == Unreported::Noise;
            let heard = Box::pin(self.hear(&mut backend, self.limit_ms(job), true)).await;
            if heard.is_err() {
                // What it has changed is not known there.
                backend.idle = Idle::Doubtful;
                self.core.pools.release(backend);
                // Of what has not changed nothing is lost.
                return heard.or_else(|why| {
                    if noise && matches!(why, Failed::Backend(_)) {
                        Ok(())
                    } else {
                        Err(why)
                    }
                });
            }
        }
        if backend.idle == Idle::Proven && self.set_leaves_questions(&backend) {
            // Rare: it shall not make the future of every statement larger.
            let asked = Box::pin(self.ask_of_set(&mut backend, self.limit_ms(job))).await;
            if asked.is_err() {
                // Nobody knows any more what was set there.
                backend.idle = Idle::Doubtful;
                self.core.pools.release(backend);
                return asked;
            }
        }
        if backend.holds.has(Hold::Diagnostics) {
            self.keep_warnings_for_a_while(&mut backend, v);
        }
        if v.mysql_connection_delay_multiplex_ms > 0 {
            backend.holds.add(Hold::Delay);
            backend.delayed_until = Some(
                self.core.rt.now() + Duration::from_millis(v.mysql_connection_delay_multiplex_ms),
            );
        }
        if backend.idle == Idle::Proven {
            if backend.holds.is_empty() {
                self.core.pools.release(backend);
            } else {
                self.held.put(hostgroup, backend);
            }
            return Ok(());
        }
        // The server has said something after its answer: it ends the connection, and what the
        // session has there goes with it.
        let kept = backend.holds;
        if kept.has(Hold::FoundRows) {
            self.keep_found_rows(None);
        }
        self.core.pools.release(backend);
        if kept.has(Hold::Diagnostics) {
            self.lose_warnings();
        }
        if kept.carry_state() {
            Err(Failed::Backend(BackendFailed::BrokeAfter(NetError::Closed)))
        } else {
            Ok(())
        }
    }

    /// A statement that goes elsewhere must find what was set on connections that are held.
    async fn read_back_elsewhere(&mut self, hostgroup: u32, job: &Job<'_>) -> Result<(), Trouble> {
        if self.held.is_empty() || job.class.reads.intersects(Reads::WARNINGS) {
            return Ok(());
        }
        for other in self.held.unread() {
            if other == hostgroup {
                continue;
            }
            let Some(mut backend) = self.held.take(other) else {
                continue;
            };
            self.entry.works_on(other, &backend);
            match Box::pin(self.read_back(&mut backend, self.limit_ms(job), false)).await {
                Ok(()) if backend.holds.is_empty() => self.core.pools.release(backend),
                Ok(()) => self.held.put(other, backend),
                Err(Failed::Unsent) => {
                    self.held.put(other, backend);
                    return Err(Trouble::before(Failed::Unsent));
                }
                Err(why) => {
                    backend.idle = Idle::Doubtful;
                    self.core.pools.release(backend);
                    return Err(Trouble {
                        why,
                        answered: false,
                        whole: false,
                        state_lost: true,
                    });
                }
            }
        }
        Ok(())
    }
}

/// Whether it runs statements of its own: when it fails, some of them may be done.
fn runs_others(class: &sql::Class<'_>) -> bool {
    class.multi
        || class.command == CommandCounter::Call
        || class
            .leaves
            .intersects(Leaves::UNKNOWN_STATE | Leaves::SQL_EXECUTE)
}

/// Number of the last packet of a command of so many bytes, its headers included.
const fn last_seq(framed: usize) -> u8 {
    (framed.saturating_sub(packet::HEADER_LEN) / (packet::MAX_PAYLOAD + packet::HEADER_LEN)) as u8
}

/// Why an attempt failed, and how far it had come.
struct Trouble {
    why: Failed,
    /// The client has seen a part of the answer.
    answered: bool,
    /// It has all of it.
    whole: bool,
    /// The session's own state went with the connection.
    state_lost: bool,
}

impl Trouble {
    fn before(why: Failed) -> Self {
        Self {
            why,
            answered: false,
            whole: false,
            state_lost: false,
        }
    }

    /// The client has its answer, and something of its session is lost.
    const fn behind(why: Failed) -> Self {
        Self {
            why,
            answered: true,
            whole: true,
            state_lost: true,
        }
    }

    /// With what the session had there.
    const fn cut_off() -> Self {
        Self {
            why: Failed::Backend(BackendFailed::CutOff),
            answered: false,
            whole: false,
            state_lost: true,
        }
    }
}

fn complaint_of(failure: &BackendFailed) -> Complaint {
    let (code, sqlstate, words) = failure.to_client();
    Complaint::with(code, sqlstate, words)
}

fn interrupted() -> Complaint {
    Complaint::with(1317, "70100", "Query execution was interrupted")
}

/// What failed before a byte of the statement was sent, however much was said on the connection for
/// it. `untold`: what a failed statement has changed was not asked for, and may be gone with the
/// connection.
fn before_it(why: Failed, untold: bool) -> (Failed, bool) {
    match why {
        Failed::Backend(BackendFailed::BrokeAfter(error)) if !untold => {
            (Failed::Backend(BackendFailed::BrokeBefore(error)), false)
        }
        why => (why, false),
    }
}

/// The columns that the client of an execution remembers, and how many it knows of.
fn told_before(what: What<'_>) -> (Option<Outline>, Option<u16>) {
    match what {
        What::Execute(execution) => (execution.outline.take(), execution.known_columns()),
        _ => (None, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_other_statements_is_not_sent_again() {
        let runs = |text: &str| runs_others(&sql::class(text.as_bytes()));
        for text in [
            "CALL p()",
            "BEGIN NOT ATOMIC INSERT INTO t VALUES (1); EXECUTE s; END",
            "EXECUTE IMMEDIATE 'CALL p()'",
        ] {
            assert!(runs(text), "{text}");
        }
        for text in [
            "SELECT * FROM t WHERE a = ?",
            "INSERT INTO t VALUES (?)",
            "UPDATE t SET a = ?",
        ] {
            assert!(!runs(text), "{text}");
        }
    }

    #[test]
    fn the_last_packet_of_a_framed_command_is_known() {
        for len in [
            1,
            packet::MAX_PAYLOAD - 1,
            packet::MAX_PAYLOAD,
            packet::MAX_PAYLOAD + 1,
            2 * packet::MAX_PAYLOAD,
        ] {
            let (mut framed, mut next) = (Vec::new(), 0);
            packet::append(&mut framed, &mut next, &vec![0; len]);
            assert_eq!(last_seq(framed.len()), next - 1, "{len}");
        }
    }
}
