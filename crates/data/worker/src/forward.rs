//! The last stage: a connection, the session's state on it, the command there and the answer back.

pub(crate) mod infile;
pub(crate) mod lanes;
pub(crate) mod learn;
pub(crate) mod relay;
pub(crate) mod usual;
pub(crate) mod withheld;

use crate::command::asked::{Asked, Knows};
use crate::command::job::{Job, Told, What};
use crate::command::trouble::{Ended, Failed, Heard, Trouble};
use crate::command::withheld::{Withhold, only_prepares, runs_others};
use crate::forward::relay::{Ask, doubt_interrupted, relay};
use crate::known::answer::Complaint;
use crate::memory::drain::Whom;
use crate::memory::row::{Asking, Memory};
use crate::memory::{insert_id, locks, row};
use crate::reach::asked::told_before;
use crate::reach::demoted::Waited;
use crate::replay::{Replayed, explained};
use crate::seen::traces::Mark;
use crate::session::Session;
use backend::{Backend, BackendFailed, Hold, Holds, Idle, Shows, Unreported};
use bridge::{Counter, Failure, Retry};
use net::NetError;
use rt::{Chunk, Instant};
use sql::{CommandCounter, Leaves, Reads};
use std::cell::Cell;
use std::ops::ControlFlow;
use std::time::Duration;
use wire::packet;
use wire::response::Outcome;

impl Session {
    pub(crate) async fn forward(&mut self, job: &Job<'_>) -> Result<Told, Ended> {
        let v = &job.epoch.snapshot.variables;
        if !job.usual {
            if let ControlFlow::Break(told) = self.wait_as_asked(job).await? {
                return Ok(told);
            }
            if let ControlFlow::Break(told) = self.pipelined(job).await? {
                return Ok(told);
            }
        }
        let mut tries = job
            .plan
            .retries
            .map_or(v.mysql_query_retries_on_failure, u64::from);
        let mut demoted = None;
        if self.course.is_some() || job.epoch.snapshot.servers.replays() {
            self.begins_course(job);
        }
        loop {
            // One that is kept for the warnings of the statement before is asked for its rows as
            // well.
            let kept = |hold| self.held.has(job.plan.hostgroup(), hold);
            let knows = job.class.reads.intersects(Reads::FOUND_ROWS)
                && (kept(Hold::FoundRows) || kept(Hold::Diagnostics));
            let trouble = match self.attempt_marked(job).await {
                Ok(told) => {
                    self.goes_on_course(job);
                    return Ok(told);
                }
                Err(trouble) => trouble,
            };
            let (heard, state_lost) = (trouble.heard, trouble.state_lost);
            let failure = match self.by_the_server(job, trouble).await? {
                ControlFlow::Continue(failure) => failure,
                ControlFlow::Break(told) => return Ok(told),
            };
            match Box::pin(self.goes_on(job, &failure, &mut demoted)).await? {
                Waited::Again => continue,
                Waited::Told(told) => return Ok(told),
                Waited::InVain => {}
            }
            if heard == Heard::All {
                // It is told when it asks for something again.
                self.entry.rests(self.core.rt.now());
                return Err(Ended::Told(Complaint::of(&failure)));
            }
            if heard == Heard::Part {
                self.cannot_replay_half(state_lost);
                // Half of it is with the client; only the end of the connection says that the rest
                // is missing.
                return Err(Ended::Broken);
            }
            if !state_lost && self.has_lost_branch() {
                let complaint = self.tells_of_lost_branch(&failure);
                self.refuse(&complaint).await?;
                return Ok(Told::default());
            }
            let unfit = match self.course {
                None => None,
                Some(_) => match Box::pin(self.replay(job, &failure, state_lost)).await? {
                    Replayed::Again => continue,
                    Replayed::Over => {
                        self.say("").await?;
                        return Ok(Told::default());
                    }
                    Replayed::Not(words) => words,
                },
            };
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
            self.learn_failure(job, &failure);
            self.count_doubt(job, &failure, state_lost);
            let complaint = self.says_or_ends(job, &failure, state_lost, unfit)?;
            self.refuse(&complaint).await?;
            return Ok(Told::default());
        }
    }

    /// The failure of a server; of any other a client is told, or its session ends.
    pub(crate) async fn by_the_server(
        &mut self,
        job: &Job<'_>,
        trouble: Trouble,
    ) -> Result<ControlFlow<Told, BackendFailed>, Ended> {
        let Trouble {
            why,
            heard,
            state_lost,
        } = trouble;
        let failure = match why {
            Failed::Client => return Err(Ended::Gone),
            // As below.
            Failed::Killed if heard != Heard::Nothing => return Err(Ended::Broken),
            Failed::Killed if self.entry.killed.get() => return Err(why.ends()),
            Failed::Killed | Failed::Unsent if state_lost => return Err(why.ends()),
            Failed::Killed | Failed::Unsent => {
                self.doubt_found_rows(job);
                self.refuse(&Complaint::interrupted()).await?;
                return Ok(ControlFlow::Break(Told::default()));
            }
            Failed::Cut => {
                self.doubt_found_rows(job);
                return Ok(ControlFlow::Break(Told {
                    rows_sent: job.plan.rows_max().unwrap_or_default(),
                    ..Told::default()
                }));
            }
            Failed::Backend(failure) => failure,
            Failed::Stale => unreachable!("attempt() deals with it"),
        };
        Ok(ControlFlow::Continue(failure))
    }

    /// A client is told of a failure.
    fn learn_failure(&mut self, job: &Job<'_>, failure: &BackendFailed) {
        if let BackendFailed::Sync { code, .. } = failure {
            // What one server has accepted another refuses.
            job.epoch.accepted.borrow_mut().forget();
            self.core.doubt_schemas(*code);
        } else {
            self.doubt_found_rows(job);
        }
        if let BackendFailed::ReadOnly { .. } = failure {
            self.learn_refusal(job);
        }
    }

    /// Counts a change of which nobody knows whether it was done.
    fn count_doubt(&self, job: &Job<'_>, failure: &BackendFailed, state_lost: bool) {
        let was_sent = matches!(
            failure,
            BackendFailed::BrokeAfter(_) | BackendFailed::CutOff
        );
        let class = job.class;
        let commits = class.command == CommandCounter::Commit || class.ddl;
        let writes = class.may_write() && !class.ends_transaction && self.state.autocommit;
        if was_sent && (commits || writes && !state_lost) {
            self.core.tally.up(Counter::ChangesInDoubt);
        }
    }

    /// Words for a client whose session goes on behind a failure. `unfit`: why its transaction was
    /// not replayed.
    fn says_or_ends(
        &self,
        job: &Job<'_>,
        failure: &BackendFailed,
        state_lost: bool,
        unfit: Option<&'static str>,
    ) -> Result<Complaint, Ended> {
        let (complaint, is_out) = self.tells_of(job, failure);
        let complaint = explained(complaint, unfit);
        #[cfg(debug_assertions)]
        if backend::planted::HANG_UP.get() {
            return Err(Ended::Broken);
        }
        if state_lost || is_out {
            // A transaction, a lock or a variable went with the connection: a client that went on
            // would not know.
            return Err(Ended::Told(complaint));
        }
        Ok(complaint)
    }

    /// Remembers for how long a statement has kept a connection, where that decides who waits.
    #[cold]
    fn note_cost(&self, job: &Job<'_>, since: Instant) {
        if let Some(digest) = job.digest {
            let took = self.core.rt.now() - since;
            self.core.costs.learn(digest, job.plan.hostgroup(), took);
        }
    }

    /// An attempt; a COMMIT leaves its mark first, where that is wanted.
    async fn attempt_marked(&mut self, job: &Job<'_>) -> Result<Told, Trouble> {
        if self.course.is_some()
            && let Err((backend, kept, trouble)) = Box::pin(self.leave_mark(job)).await
        {
            return Err(self.part_in_trouble(job.plan.hostgroup(), backend, kept, trouble));
        }
        self.attempt(job).await
    }

    async fn attempt(&mut self, job: &Job<'_>) -> Result<Told, Trouble> {
        let hostgroup = job.plan.hostgroup();
        if !job.usual {
            if !self.held.is_empty() {
                Box::pin(self.remember_elsewhere(job)).await?;
            }
            self.leave_cut_off_for(job)?;
            self.changes_server(job);
        }
        let ahead = job.ahead.and_then(Cell::take);
        let (held, ahead) = match ahead {
            Some(ahead) => (Some(ahead.backend), ahead.asked),
            None => (self.held.take(hostgroup), None),
        };
        let mut backend = match held {
            Some(mut backend) => {
                if job.epoch.admission {
                    backend.takes_off();
                }
                backend
            }
            None => match self.core.pools.at_once(&self.want(job)) {
                Some(backend) => backend,
                None => {
                    let since = self.core.rt.now();
                    let backend = self.wait_for_one(job).await?;
                    self.mark(Mark::Waited(since));
                    backend
                }
            },
        };
        if ahead.is_none() {
            self.entry.works_on(hostgroup, &backend);
        }
        let begun = job.epoch.priorities.then(|| self.core.rt.now());
        if !job.usual && matches!(self.must_see(job.plan), Some(Shows::Gtids(_))) {
            backend.place().is_seen_at();
        }
        let kept = backend.holds;
        let usual = ahead.is_some() || job.usual && self.is_usual_there(&backend, job);
        let result = match usual {
            true => match self.ask_usual(&mut backend, job, ahead).await {
                Err(Trouble {
                    why: Failed::Stale, ..
                }) => Box::pin(self.on(&mut backend, job, false)).await,
                done => done,
            },
            false => self.on_with_room(&mut backend, job).await,
        };
        if let Some(begun) = begun.filter(|_| result.is_ok()) {
            self.note_cost(job, begun);
        }
        match result {
            Ok(told) if usual => {
                if let ControlFlow::Continue(backend) = self.settle_usual(hostgroup, backend) {
                    let settled = Box::pin(self.settle(job, hostgroup, backend)).await;
                    settled.map_err(Trouble::behind)?;
                }
                Ok(told)
            }
            Ok(told) => {
                if job.class.leaves.intersects(Leaves::DATABASE) {
                    self.core.forget_schemas();
                }
                let settled = self.settle(job, hostgroup, backend).await;
                settled.map_err(Trouble::behind)?;
                Ok(told)
            }
            Err(trouble) => Err(self.part_in_trouble(hostgroup, backend, kept, trouble)),
        }
    }

    /// Parts with a connection on which a statement has failed, or keeps it. `kept`: what held it
    /// before.
    fn part_in_trouble(
        &mut self,
        hostgroup: u32,
        mut backend: Box<Backend>,
        kept: Holds,
        trouble: Trouble,
    ) -> Trouble {
        let why = &trouble.why;
        self.have_it_looked_at(&backend, why);
        let alive = backend.idle == Idle::Proven && why.leaves_it_alive();
        if alive && (!kept.is_empty() || backend.holds.has(Hold::Branch)) {
            // What would have run in another schema did not.
            backend.strays_no_more();
            // What held it may have been asked for by now.
            self.held
                .keep_or_release(hostgroup, backend, &self.core.pools);
            return trouble;
        }
        if !why.leaves_it_alive() && !matches!(why, Failed::Backend(BackendFailed::Unfit)) {
            // Whatever came was not learnt, and a KILL may be on its way, even if the answer had
            // ended: it is nobody's any more.
            backend.idle = Idle::Doubtful;
            self.may_write_yet();
        }
        self.lose_memories(kept);
        let is_branch = self.loses_branch(backend.holds);
        self.core.pools.release(backend);
        trouble.losing(!alive && !is_branch && kept.carry_state())
    }

    /// A statement must find what was set, and the id of what was inserted, on connections that are
    /// kept for other hostgroups.
    async fn remember_elsewhere(&mut self, job: &Job<'_>) -> Result<(), Trouble> {
        if !job.class.reads.intersects(Reads::WARNINGS) {
            let whom = Whom::Command {
                limit_ms: self.limit_ms(job),
                answered: false,
            };
            let read = self.read_back_elsewhere(Some(job.plan.hostgroup()), whom);
            read.await?;
        }
        self.ask_id_elsewhere(job).await
    }

    /// Whether the statement goes on in spite of this failure: elsewhere, or when there is a writer.
    async fn goes_on(
        &mut self,
        job: &Job<'_>,
        failure: &BackendFailed,
        demoted: &mut Option<Instant>,
    ) -> Result<Waited, Ended> {
        match failure {
            BackendFailed::NobodyServes { .. } => {
                self.forward_elsewhere(job).await.map(Waited::Told)
            }
            // A transaction does not wait alone: it is run again as a whole.
            BackendFailed::ReadOnly { .. }
                if self.held.has(job.plan.hostgroup(), Hold::Transaction) =>
            {
                Ok(Waited::InVain)
            }
            BackendFailed::ReadOnly { .. } => self.wait_for_a_writer(job, demoted).await,
            _ => Ok(Waited::InVain),
        }
    }

    /// Where somebody serves; or where it was, for as long as it waits there.
    async fn forward_elsewhere(&mut self, job: &Job<'_>) -> Result<Told, Ended> {
        let mut plan = job.plan.clone();
        self.go_where_somebody_serves(job.epoch, job.class, &mut plan);
        let job = Job {
            plan: &plan,
            stays: true,
            usual: false,
            ..*job
        };
        self.forward(&job).await
    }

    /// Errors of which the client does not hear, because it is done elsewhere, or again.
    fn withholds(&self, backend: &Backend, job: &Job<'_>) -> Withhold {
        Withhold {
            demoted: self.withholds_refusal(backend, job),
            deadlock: self.retries_deadlock(job),
            halfway: self.has_left_mark(job),
            ..Withhold::NOTHING
        }
    }

    /// On this connection; once more, if its server had no room for another prepared statement.
    async fn on_with_room(
        &mut self,
        backend: &mut Backend,
        job: &Job<'_>,
    ) -> Result<Told, Trouble> {
        match self.on(backend, job, true).await {
            Err(trouble) if trouble.heard == Heard::Nothing => {
                if Box::pin(self.make_room(backend, job, &trouble.why)).await? {
                    Box::pin(self.on(backend, job, false)).await
                } else {
                    Err(trouble)
                }
            }
            done => done,
        }
    }

    /// State, command, answer, and what is to be learnt from it. `first`: there may be another try.
    async fn on(
        &mut self,
        backend: &mut Backend,
        job: &Job<'_>,
        first: bool,
    ) -> Result<Told, Trouble> {
        let limit_ms = self.limit_ms(job);
        let mut stale_allowed = match job.what {
            What::Execute(_) | What::Dynamic(_) => !runs_others(job.class),
            _ => false,
        };
        let mut given = self.names_to_give(job);
        let untold = backend.local.unreported == Unreported::Change;
        loop {
            // What a name is prepared under would be set over what nobody has asked for yet.
            let unread = !given.is_empty() && backend.holds.has(Hold::Unread);
            if unread || !self.is_ready(backend, job) {
                Box::pin(self.make_ready(backend, job))
                    .await
                    .map_err(|why| Trouble::before_the_command(why, untold))?;
            }
            // A server that wants a new password first says so to the statement.
            if !given.is_empty() && !backend.holds.has(Hold::ExpiredPassword) {
                if backend.local.unreported != Unreported::Nothing {
                    // What we prepare would be told it, and what it tells of is asked for: it would
                    // be set over.
                    Box::pin(self.read_back(backend, limit_ms, false))
                        .await
                        .map_err(|why| Trouble::before_the_command(why, untold))?;
                }
                Box::pin(self.give_names(backend, job, &mut given))
                    .await
                    .map_err(|why| Trouble::before_the_command(why, untold))?;
                // They were prepared in the schemas and modes that they mean.
                if !self.is_ready(backend, job) {
                    Box::pin(self.make_ready(backend, job))
                        .await
                        .map_err(|why| Trouble::before_the_command(why, untold))?;
                }
            }
            self.begin_branch(backend, job).await?;
            let alone = !self.remembered.uncounted.get()
                && backend.is_undisturbed(self.life, self.entry.statement.get().wrapping_sub(1));
            let knows = Knows {
                row_count: alone,
                found_rows: self.knows_found_rows(backend),
                warns: !backend.hello.is_mariadb(),
                last_gtid: self.leaves_last_gtid(backend),
                kept: backend.holds.has(Hold::NotAllowed),
            };
            backend.lease.knew_found_rows = knows.found_rows;
            backend.serves(self.life);
            let asked = self.command_for(backend, job, knows).await?;
            let Asked {
                command,
                expect,
                shown,
                executed,
            } = asked;
            let held = backend.holds;
            // The answer tells of a statement before, too.
            let tells_of_before = backend.local.unreported == Unreported::Change;
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
            self.look_for_values(backend, job);
            if job.class.multi {
                // Its parts are not looked at one by one.
                backend.holds.add(Hold::UnknownState);
            }
            let sent = packet::last_seq_of_framed(command.len());
            if command.len() as u64 > job.epoch.snapshot.variables.mysql_threshold_query_length {
                backend.retire();
            }
            let sum = self.course_is_sent(job);
            self.send(backend, Chunk::from(command), limit_ms).await?;
            // What fails halfway leaves nobody sure of what the client was told.
            let (outline, columns) = told_before(job.what);
            let ask = Ask {
                expect,
                sent,
                shown,
                limit_ms,
                withhold: Withhold {
                    stale: executed.filter(|_| stale_allowed),
                    crowd: first && only_prepares(job),
                    ..self.withholds(backend, job)
                },
                rows_max: job.plan.rows_max(),
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
                sum,
                call: job.class.command == CommandCounter::Call,
                outline,
                columns,
                first_number: job
                    .plan
                    .numbered()
                    .filter(|given| !given.may_update)
                    .map(|given| given.first),
                of_partition: job.plan.partition.is_some(),
                ..Ask::for_all_of(expect)
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
                    backend.local.undisturbed = Some(self.entry.statement.get());
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
                Err(Trouble {
                    why: Failed::Stale, ..
                }) => {
                    // The server has lost the statement, or cannot bring it up to date: prepared
                    // anew, once.
                    stale_allowed = false;
                    self.is_stale(backend, job, executed, outline);
                }
                Err(failed) => return Err(failed),
            }
        }
    }

    /// A memory that is asked for as soon as a statement has ended.
    fn asked_behind(&self, backend: &Backend) -> Option<&'static Memory> {
        // Before the id of an insert, which the question leaves as it is: each would wait for the
        // other.
        let asks_for_locks = backend.idle == Idle::Proven
            && backend
                .holds
                .are_only(&[Hold::UserLock, Hold::Unread, Hold::InsertId, Hold::Delay])
            && backend.local.unreported == Unreported::Nothing
            && backend.doubts_locks();
        if asks_for_locks {
            return Some(&locks::MEMORY);
        }
        self.is_to_learn_of_inserts(backend)
            .then_some(&insert_id::MEMORY)
    }

    /// Keep the connection, or give it back.
    pub(crate) async fn settle(
        &mut self,
        job: &Job<'_>,
        hostgroup: u32,
        mut backend: Box<Backend>,
    ) -> Result<(), Failed> {
        let v = &job.epoch.snapshot.variables;
        let group = job.epoch.snapshot.servers.hostgroup(hostgroup);
        let allowed = v.mysql_multiplexing
            && !self.is_relayed()
            && group.is_none_or(|group| group.attributes.multiplex);
        match job.plan.multiplex {
            Some(0) => backend.holds.add(Hold::NotAllowed),
            Some(1) if allowed => backend.holds.remove(Hold::NotAllowed),
            _ if !allowed => backend.holds.add(Hold::NotAllowed),
            _ => {}
        }
        if let Some(memory) = self.asked_behind(&backend) {
            let how = Asking::behind_a_statement(self.limit_ms(job));
            let asked = Box::pin(self.ask_for(&mut backend, &[memory], how)).await;
            if asked.is_err() {
                self.core.pools.release(backend);
                return asked.map(drop);
            }
        }
        backend.wait_for_silence(self.core.rt.now(), row::SILENT);
        self.count_down_insert_id(job, &mut backend);
        if backend.local.unreported != Unreported::Nothing
            && backend.idle == Idle::Proven
            && backend.holds.is_empty()
        {
            let noise = backend.local.unreported == Unreported::Noise;
            let heard = Box::pin(self.hear(&mut backend, self.limit_ms(job), true)).await;
            if heard.is_err() {
                // What it has changed is not known there.
                self.core.pools.abandon(backend);
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
                self.core.pools.abandon(backend);
                return asked;
            }
        }
        if backend.holds.has(Hold::Diagnostics) {
            self.keep_warnings_for_a_while(&mut backend, v);
        }
        if v.mysql_connection_delay_multiplex_ms > 0 {
            backend.holds.add(Hold::Delay);
            backend.lease.delayed_until = Some(
                self.core.rt.now() + Duration::from_millis(v.mysql_connection_delay_multiplex_ms),
            );
        }
        if backend.idle == Idle::Proven {
            let pools = &self.core.pools;
            self.held.keep_or_release(hostgroup, backend, pools);
            return Ok(());
        }
        // The server has said something after its answer: it ends the connection, and what the
        // session has there goes with it.
        let kept = backend.holds;
        self.lose_memories(kept);
        self.core.pools.release(backend);
        if kept.carry_state() {
            Err(Failed::Backend(BackendFailed::BrokeAfter(NetError::Closed)))
        } else {
            Ok(())
        }
    }
}
