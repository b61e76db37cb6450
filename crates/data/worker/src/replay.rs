//! Transaction replay: what a transaction has done is done again where its server is lost.
//!
//! docs/features/transaction-replay.md

pub(crate) mod exchange;
pub(crate) mod marks;
pub(crate) mod rerun;

use crate::command::job::{Job, What};
use crate::command::trouble::{Ended, Failed};
use crate::command::withheld::runs_others;
use crate::core::alone;
use crate::known::answer::Complaint;
use crate::known::epoch::Epoch;
use crate::reach::demoted::commits;
use crate::replay::rerun::{Change, Ran};
use crate::session::Session;
use crate::session::course::{Course, Sum, Unfit, only_rolls_back};
use backend::{Backend, BackendFailed, Hold, Holds, Idle, Sees, Tracking, Want};
use bridge::Counter;
use plan::Plan;
use rt::{Either, Instant};
use std::time::Duration;
use wire::response::Summed;
use wire::status;

/// So long after a server has not taken a transaction another one is asked, if nothing is heard of
/// them meanwhile.
const ASK_AGAIN: Duration = Duration::from_millis(200);
/// So long after a writer has refused to write one is asked, if nothing is heard of it meanwhile.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// The connection that a transaction was on before it is run again.
enum Old {
    /// Lost.
    Gone,
    /// Rolled back, and the first to be asked.
    First(Box<Backend>),
    /// Of a server that takes no writes any more: kept until the transaction stands elsewhere, and its
    /// client goes on there if it never does.
    Demoted(Box<Backend>),
}

/// Outcome of an attempt to go on in spite of a failure.
#[derive(Debug)]
pub(crate) enum Replayed {
    /// The statement may be said again.
    Again,
    /// There is nothing any more to be done: a ROLLBACK has nothing to roll back, a COMMIT nothing to commit,
    /// or it was found to be done.
    Over,
    /// The statement may not; words for the client, if the failure has cost a transaction that was to be
    /// replayed.
    Not(Option<&'static str>),
}

impl Session {
    /// A statement is about to be sent: it may be the first of a transaction, or the next.
    pub(crate) fn begins_course(&mut self, job: &Job<'_>) {
        if self.global.is_some() {
            // It has branches, and one alone is not run again.
            self.course = None;
            return;
        }
        if let Some(course) = &self.course
            && course.is_open
            && !self.held.has(course.hostgroup, Hold::Transaction)
        {
            // It was given back with all that the session had.
            self.course = None;
        }
        if let Some(course) = &mut self.course
            && course.is_open
        {
            (course.sent, course.sum) = (false, None);
            return;
        }
        self.course = None;
        let hostgroup = job.plan.hostgroup();
        let servers = &job.epoch.snapshot.servers;
        let wish = servers
            .hostgroup(hostgroup)
            .and_then(|group| group.attributes.replay.as_ref());
        // What the split has led to a reader is that one's.
        let may_be = |_: &&config::Replay| !self.is_relayed() && !job.plan.why.is_read();
        if let Some(wish) = wish.filter(may_be) {
            let mut course = Course::new(hostgroup, wish.clone(), self.state.clone());
            let holds = self.held_for(hostgroup);
            course.is_open = holds.has(Hold::Transaction);
            if holds.carry_state() {
                course.spoil(Unfit::Statement);
            }
            self.course = Some(Box::new(course));
        }
    }

    /// Whether a statement is, or may begin, what is replayed when its server is lost.
    pub(crate) fn may_be_replayed(&self, epoch: &Epoch, plan: &Plan) -> bool {
        let servers = &epoch.snapshot.servers;
        let is_wished = |hostgroup| {
            let group: Option<&config::Hostgroup> = servers.hostgroup(hostgroup);
            group.is_some_and(|group| group.attributes.replay.is_some())
        };
        self.course.is_some() || servers.replays() && is_wished(plan.hostgroup())
    }

    /// Reasons that keep the connection of a hostgroup.
    fn held_for(&self, hostgroup: u32) -> Holds {
        let mut held = self.held.iter();
        held.find(|(of, _)| *of == hostgroup)
            .map_or_else(Holds::default, |(_, backend)| backend.holds)
    }

    /// The command is on its way; whether its answer is to be summed up.
    pub(crate) fn course_is_sent(&mut self, job: &Job<'_>) -> bool {
        let Some(course) = &mut self.course else {
            return false;
        };
        course.sent = true;
        course.spoilt.is_none() && course.takes(job)
    }

    /// The answer has ended.
    pub(crate) fn course_has_sum(&mut self, summed: &Summed) {
        if let Some(course) = &mut self.course {
            course.sum = Some(Sum::of(summed));
        }
    }

    /// A statement was answered: it is kept, if it is of a transaction.
    pub(crate) fn goes_on_course(&mut self, job: &Job<'_>) {
        let Some(course) = &self.course else { return };
        let holds = self.held_for(course.hostgroup);
        if !holds.has(Hold::Transaction) {
            self.course = None;
            return;
        }
        let is_elsewhere = job.plan.hostgroup() != course.hostgroup;
        let is_over = job.class.ends_transaction;
        let lexing = self.lexing_of(job.what);
        let is_as_begun = self.state == course.state;
        let Some(course) = &mut self.course else {
            return;
        };
        course.is_open = true;
        if course.spoilt.is_some() || is_elsewhere {
            return;
        }
        if is_over || !is_as_begun {
            // Another one has begun with it, or its state would have to change on the way.
            course.spoil(Unfit::Statement);
        } else {
            course.add(job, lexing, holds);
        }
    }

    /// Whether an error 1213 of this statement is not for its client, because the transaction is
    /// run again.
    pub(crate) fn retries_deadlock(&self, job: &Job<'_>) -> bool {
        self.course.as_ref().is_some_and(|course| {
            course.wish.retry_on_deadlock
                && !course.steps.is_empty()
                && !course.is_doubtful
                && course.attempts < course.wish.attempts
                && self.state == course.state
                && !matches!(job.what, What::Prepare(_))
                && course.takes(job)
        })
    }

    /// A statement has failed of whose answer its client has nothing: whether it can be said again,
    /// where all that was before it in its transaction is done.
    pub(crate) async fn replay(
        &mut self,
        job: &Job<'_>,
        failure: &BackendFailed,
        state_lost: bool,
    ) -> Result<Replayed, Ended> {
        let Some(course) = &mut self.course else {
            return Ok(Replayed::Not(None));
        };
        let is_deadlock = matches!(failure, BackendFailed::Deadlock { .. });
        let is_refused = matches!(failure, BackendFailed::ReadOnly { .. });
        let is_lost = matches!(
            failure,
            BackendFailed::BrokeBefore(_) | BackendFailed::BrokeAfter(_) | BackendFailed::CutOff
        );
        let (hostgroup, is_open) = (course.hostgroup, course.is_open);
        let is_held = self.held.has(hostgroup, Hold::Transaction);
        let concerns_it = is_deadlock
            || is_refused && is_held && is_open
            || is_lost && !is_held && (state_lost || !is_open);
        if !concerns_it || job.plan.hostgroup() != hostgroup && !is_open {
            return Ok(Replayed::Not(None));
        }
        // What was refused has done nothing: of a refused COMMIT all is rolled back.
        let unsent = !course.sent || is_refused || matches!(failure, BackendFailed::BrokeBefore(_));
        let is_first = job.class.begins_transaction || !self.state.autocommit;
        if !is_open && (!is_first || state_lost || course.spoilt.is_some() || !course.takes(job)) {
            self.course = None;
            return Ok(Replayed::Not(None));
        }
        if course.spoilt.is_none() {
            let rolls_back = only_rolls_back(job);
            #[cfg(debug_assertions)]
            let unsent = unsent
                || backend::planted::REPEAT_COMMITS.get()
                    && job.class.command == sql::CommandCounter::Commit;
            if rolls_back && self.state.variable("completion_type").is_none() {
                self.course = None;
                return Ok(Replayed::Over);
            }
            let commits = commits(job) && !job.class.begins_transaction && !job.class.releases;
            if !unsent && commits && !course.writes() {
                self.course = None;
                return Ok(Replayed::Over);
            }
            let is_marked = commits && course.mark.is_some();
            if !unsent && !is_marked && (course.is_doubtful || !course.takes(job)) {
                let ends = job.class.ends_transaction;
                course.spoil(if ends {
                    Unfit::Commit
                } else {
                    Unfit::Statement
                });
            } else if self.state != course.state {
                course.spoil(Unfit::Statement);
            }
        }
        let next = Change {
            text: job.sent(),
            lexing: self.lexing_of(job.what),
            schema: &job.what.prepared_in().unwrap_or(&self.state.schema).clone(),
        };
        let kept = match is_deadlock || is_refused {
            true => self.held.take(hostgroup),
            false => None,
        };
        let old = match kept {
            Some(backend) if is_refused => Old::Demoted(backend),
            Some(backend) => Old::First(backend),
            None => Old::Gone,
        };
        self.run_again(old, Some(next)).await
    }

    /// Whether such a refusal is not for the client: the statement waits for the next writer, or its
    /// transaction is run again there. Asked before the statement is sent.
    pub(crate) fn withholds_refusal(&self, backend: &Backend, job: &Job<'_>) -> bool {
        self.may_wait_for_a_writer(backend, job)
            || self.course.is_some() && self.replays_refused(backend, job)
    }

    /// Whether the transaction on this connection is run again if a statement of it is refused.
    #[cold]
    fn replays_refused(&self, backend: &Backend, job: &Job<'_>) -> bool {
        let Some(course) = self.course.as_deref() else {
            return false;
        };
        let servers = &job.epoch.snapshot.servers;
        let only_reads = backend.holds.transaction_flags() & status::IN_TRANS_READONLY != 0;
        let hostgroup = job.plan.hostgroup();
        servers.is_of_writers(hostgroup)
            && job.epoch.snapshot.variables.mysql_monitor_enabled
            && self.is_course_on(hostgroup, backend)
            && course.spoilt.is_none()
            && !course.is_doubtful
            && course.attempts < course.wish.attempts
            && self.state == course.state
            && (course.takes(job) || commits(job))
            && !runs_others(job.class)
            && !only_reads
            && !self.wants_to_read_only()
    }

    /// Whether this connection has the transaction that may be replayed.
    pub(crate) fn is_course_on(&self, hostgroup: u32, backend: &Backend) -> bool {
        let is_here = |course: &Course| course.is_open && course.hostgroup == hostgroup;
        backend.holds.has(Hold::Transaction) && self.course.as_deref().is_some_and(is_here)
    }

    /// No statement runs, and the connection of the transaction is lost. `complaint`: for a client
    /// whose transaction is not replayed.
    pub(crate) async fn replay_at_rest(&mut self, complaint: Complaint) -> Result<(), Ended> {
        let Some(course) = self.course.as_mut().filter(|course| course.is_open) else {
            return Err(Ended::Told(complaint));
        };
        if self.state != course.state {
            course.spoil(Unfit::Statement);
        }
        // That was of a statement before.
        self.entry.interrupted.set(false);
        match self.run_again(Old::Gone, None).await? {
            Replayed::Again | Replayed::Over => Ok(()),
            Replayed::Not(words) => Err(Ended::Told(explained(complaint, words))),
        }
    }

    /// Runs the course again, here or on another server, and counts it.
    async fn run_again(&mut self, old: Old, next: Option<Change<'_>>) -> Result<Replayed, Ended> {
        let Some(mut course) = self.course.take() else {
            return Ok(Replayed::Not(None));
        };
        self.core.tally.up(Counter::TransactionReplays);
        let (first, demoted) = match old {
            Old::Gone => (None, None),
            Old::First(backend) => (Some(backend), None),
            Old::Demoted(backend) => (None, Some(backend)),
        };
        let outcome = match (course.spoilt, first, &demoted) {
            (Some(unfit), Some(backend), _) => {
                self.held.put(course.hostgroup, backend);
                Ok(Ran::Unfit(unfit))
            }
            (Some(unfit), None, _) => Ok(Ran::Unfit(unfit)),
            (None, first, demoted) => {
                let demoted = demoted.as_deref();
                self.run_until_it_stands(&mut course, (first, demoted), next)
                    .await
            }
        };
        if let Some(backend) = demoted {
            match outcome {
                // Its transaction ends with it.
                Ok(Ran::Same) => self.core.pools.give_up(backend),
                _ => {
                    self.entry.works_on(course.hostgroup, &backend);
                    self.held.put(course.hostgroup, backend);
                }
            }
        }
        Ok(match outcome? {
            Ran::Same => {
                self.core.tally.up(Counter::TransactionReplaysSucceeded);
                (course.sent, course.sum) = (false, None);
                self.course = Some(course);
                Replayed::Again
            }
            Ran::Landed => {
                self.core.tally.up(Counter::TransactionReplaysLanded);
                // Its answer would have told of a GTID.
                self.has_written_at(course.hostgroup);
                Replayed::Over
            }
            Ran::Unfit(unfit) => self.cannot_replay(&course, unfit),
            Ran::NotNow => self.cannot_replay(&course, Unfit::GaveUp),
        })
    }

    fn cannot_replay(&self, course: &Course, unfit: Unfit) -> Replayed {
        if let Some(mark) = course.mark.as_ref().filter(|_| course.sent) {
            mark.is_doubtful.set(true);
        }
        self.note_unfit(course.hostgroup, unfit);
        Replayed::Not(Some(unfit.words()))
    }

    /// A part of an answer is with the client: what it has lost is counted.
    pub(crate) fn cannot_replay_half(&mut self, state_lost: bool) {
        let open = self
            .course
            .take()
            .filter(|course| state_lost && course.is_open);
        if let Some(course) = open {
            self.core.tally.up(Counter::TransactionReplays);
            self.note_unfit(course.hostgroup, course.spoilt.unwrap_or(Unfit::Partial));
        }
    }

    fn note_unfit(&self, hostgroup: u32, unfit: Unfit) {
        self.core.tally.up(unfit.counter());
        let (id, words) = (self.entry.id, unfit.words());
        self.core.note(&format!(
            "session {id}: a transaction on hostgroup {hostgroup} was not replayed: {words}"
        ));
    }

    /// Waits for servers until one has taken the whole course, or says that none ever will.
    async fn run_until_it_stands(
        &mut self,
        course: &mut Course,
        (mut own, demoted): (Option<Box<Backend>>, Option<&Backend>),
        next: Option<Change<'_>>,
    ) -> Result<Ran, Ended> {
        let rt = self.core.rt.clone();
        let until = rt.now() + Duration::from_millis(course.wish.timeout_ms.into());
        if let Some(demoted) = demoted
            && !self.has_left(demoted, until).await?
        {
            return Ok(Ran::NotNow);
        }
        loop {
            let is_own = own.is_some();
            let backend = match own.take() {
                Some(backend) => backend,
                None => match self.connection_to_anybody(course, until).await? {
                    Some(backend) => backend,
                    None => return Ok(Ran::NotNow),
                },
            };
            if course.attempts >= course.wish.attempts {
                self.core.pools.give_up(backend);
                return Ok(Ran::NotNow);
            }
            course.attempts += 1;
            match self
                .try_there(backend, course, (is_own, next), until)
                .await?
            {
                Ran::NotNow => {}
                ran => return Ok(ran),
            }
            let pools = self.core.pools.clone();
            let left = (until - rt.now()).min(ASK_AGAIN);
            let pause = async {
                let _changed_or_not = rt.timeout(left, pools.are_placed_anew()).await;
            };
            if self.unless_ended(pause).await?.is_none() || rt.now() >= until {
                return Ok(Ran::NotNow);
            }
        }
    }

    /// Waits until new work goes to another server than this one, or for a moment; whether nobody has
    /// ended the statement.
    async fn has_left(&self, demoted: &Backend, until: Instant) -> Result<bool, Ended> {
        let (rt, pools) = (self.core.rt.clone(), self.core.pools.clone());
        let last = until.min(rt.now() + LOOK_AGAIN);
        while demoted.place().keeps() && rt.now() < last {
            let pause = async {
                let _changed_or_not = rt.timeout(last - rt.now(), pools.are_placed_anew()).await;
            };
            if self.unless_ended(pause).await?.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A connection to whoever serves now; `None` when the time is over or somebody has ended it.
    async fn connection_to_anybody(
        &self,
        course: &Course,
        until: Instant,
    ) -> Result<Option<Box<Backend>>, Ended> {
        let rt = self.core.rt.clone();
        loop {
            let epoch = self.core.epoch();
            let want = Want {
                hostgroup: course.hostgroup,
                user: &self.user.username,
                secret: &self.secret,
                caps: self.caps,
                collation: self.collation,
                session: self.entry.id,
                attributes: &self.attributes,
                client: self.entry.address,
                state: &course.state,
                user_variables: Sees::Variables,
                remembered: None,
                tracking: Tracking::Any,
                snapshot: &epoch.snapshot,
                new_connection: false,
                must_see: None,
                like: None,
                executes: None,
                priority: self.user.priority().unwrap_or(config::PRIORITY_USUAL),
                cost_ns: None,
                // Its transaction has begun: it does not wait behind others.
                waits: false,
                at: None,
            };
            let left = until - rt.now();
            let acquired = rt.timeout(left, self.core.pools.acquire(&want));
            match self.unless_ended(acquired).await? {
                Some(Ok(Ok(backend))) => return Ok(Some(backend)),
                Some(Err(_)) | None => return Ok(None),
                // Servers may come back.
                Some(Ok(Err(_))) => {}
            }
            let left = (until - rt.now()).min(ASK_AGAIN);
            if self.unless_ended(rt.sleep(left)).await?.is_none() || rt.now() >= until {
                return Ok(None);
            }
        }
    }

    /// One attempt. The connection is the session's when all is the same; else it is cleaned, or
    /// closed.
    async fn try_there(
        &mut self,
        mut backend: Box<Backend>,
        course: &Course,
        (is_own, next): (bool, Option<Change<'_>>),
        until: Instant,
    ) -> Result<Ran, Ended> {
        let (core, rt) = (self.core.clone(), self.core.rt.clone());
        self.entry.works_on(course.hostgroup, &backend);
        if is_own {
            backend.has_failed_unseen();
        }
        let snapshot = core.epoch().snapshot.clone();
        let ran = {
            let run = async {
                if is_own {
                    rerun::roll_back(&mut backend, course).await?;
                }
                alone::takes(&mut backend);
                rerun::run(&mut backend, course, next, &snapshot).await
            };
            let left = until - rt.now();
            self.unless_ended(rt.timeout(left, Box::pin(run))).await
        };
        match ran {
            Ok(Some(Ok(Ok(Ran::Same)))) if backend.idle == Idle::Proven => {
                if course.is_open && !backend.holds.has(Hold::Transaction) {
                    core.pools.give_up(backend);
                    return Ok(Ran::Unfit(Unfit::Differs));
                }
                self.held.put(course.hostgroup, backend);
                Ok(Ran::Same)
            }
            Ok(Some(Ok(Ok(ran)))) => {
                core.pools.give_up(backend);
                Ok(if ran == Ran::Same { Ran::NotNow } else { ran })
            }
            Ok(Some(Ok(Err(failed)))) => {
                self.have_it_looked_at(&backend, &Failed::Backend(failed));
                core.pools.abandon(backend);
                Ok(Ran::NotNow)
            }
            Ok(Some(Err(_)) | None) => {
                core.pools.abandon(backend);
                Ok(Ran::Unfit(Unfit::GaveUp))
            }
            Err(ended) => {
                core.pools.abandon(backend);
                Err(ended)
            }
        }
    }

    /// The result of this; `None` when somebody has ended the statement or the session first.
    async fn unless_ended<T>(&self, work: impl Future<Output = T>) -> Result<Option<T>, Ended> {
        let gone = rt::select(self.client.socket().closed(), self.entry.told_to_end());
        match rt::select(work, gone).await {
            Either::Left(done) => Ok(Some(done)),
            Either::Right(Either::Left(())) => Err(Ended::Gone),
            Either::Right(Either::Right(())) => Ok(None),
        }
    }
}

/// The complaint, with the reason why its transaction was not replayed.
pub(crate) fn explained(complaint: Complaint, words: Option<&'static str>) -> Complaint {
    match words {
        None => complaint,
        Some(why) => Complaint {
            words: format!(
                "{}; its transaction was not replayed: {why}",
                complaint.words
            ),
            ..complaint
        },
    }
}
