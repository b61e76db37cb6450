//! Statements that came before, of sessions that have nothing anywhere. One decision holds for all
//! that differ in values only. Such a statement passes no stage: it is sent at once, and it is done
//! if its answer comes in one piece and says nothing but rows, or how many were changed.
//!
//! Whatever is otherwise goes the long way ([`Session::whole_of`]), with the connection and what
//! came on it, if there is any. Only there do errors, retries, limits and half answers exist.

use crate::ahead::{Ahead, Sent};
use crate::answer::Complaint;
use crate::epoch::Epoch;
use crate::relay::{Ask, Follower, doubt_interrupted};
use crate::session::{Ended, Session};
use crate::skeletons::Known;
#[cfg(debug_assertions)]
use crate::statement::Text;
use crate::statement::{Job, Told, What};
use crate::stop::Stop;
use crate::trouble::Trouble;
use crate::usual::only_reads_or_writes;
use backend::Backend;
use bridge::Counter;
use config::Repeats;
use net::NetError;
use plan::{By, Plan};
use rt::{Chunk, Either, Instant};
#[cfg(debug_assertions)]
use shards::Numbering;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::time::Duration;

/// Whether rules decide of a text as of all others that differ from it in values only and of which that is
/// true as well.
fn is_one_of_many(epoch: &Epoch, text: &[u8]) -> bool {
    match epoch.repeats {
        Repeats::Always => true,
        Repeats::OnOneLine => sql::is_on_one_line(text),
        Repeats::Never => false,
    }
}

impl Session {
    /// Whether the session has nothing anywhere, and nothing is asked of it: what is decided of it
    /// depends on its user and its schema only.
    fn has_nothing(&self) -> bool {
        self.held.is_empty()
            && self.state.autocommit
            && self.next_flag_in.is_none()
            && self.course.is_none()
            && self.sent.is_none()
            && self.scripts.is_none()
            && self.cached.is_unwatched()
            && !self.is_unsure()
            && self.core.gates.are_open()
            && !self.entry.killed.get()
    }

    /// The decision on a text that came before, if one holds.
    pub(crate) fn decided(&self, epoch: &Epoch, text: &[u8], known: &Known) -> Option<Rc<Plan>> {
        if !is_one_of_many(epoch, text) || !self.has_nothing() {
            return None;
        }
        known.decisions.of(&self.user, &self.state.schema)
    }

    /// Remembers the decision on a statement that came before, if it holds for all that differ in
    /// values only.
    pub(crate) fn remember_decision(&self, job: &Job<'_>, known: Option<&Known>) {
        let Some(known) = known else { return };
        let epoch = job.epoch;
        let by_split = || {
            job.plan.why.by == By::Default && plan::split_of(&epoch.snapshot, &self.user).is_some()
        };
        let holds = job.usual
            && is_one_of_many(epoch, job.text)
            && only_reads_or_writes(&known.class)
            && job.plan.repeats()
            && job.plan.remade().is_none()
            && job.plan.partition.is_none()
            && self.has_nothing()
            && !by_split();
        if holds && known.decisions.of(&self.user, &self.state.schema).is_none() {
            known
                .decisions
                .add(&self.user, &self.state.schema, job.plan);
        }
    }

    /// Does a statement that came before. `Continue` if it goes the long way from here on, with
    /// the connection that it has, if any.
    pub(crate) async fn express(
        &mut self,
        epoch: &Epoch,
        (text, known, plan): (&[u8], &Known, &Plan),
        name: &'static str,
        what: What<'_>,
    ) -> Result<ControlFlow<(), Option<Box<Ahead>>>, Ended> {
        let leaves = |ahead| Ok(ControlFlow::Continue(Some(ahead)));
        #[cfg(debug_assertions)]
        self.would_be_decided_alike(epoch, (text, known, plan), what);
        let began = self.core.rt.now();
        let job = Job {
            epoch,
            text,
            class: &known.class,
            plan,
            digest: epoch.digests.then_some(known.digest.0),
            what,
            stays: false,
            usual: true,
            ahead: None,
        };
        let Some(backend) = self.core.pools.at_once(&self.want(&job)) else {
            return Ok(ControlFlow::Continue(None));
        };
        let (mut backend, sent) = match self.asks_now(backend, &job, (name, began)) {
            ControlFlow::Continue(asked) => asked,
            ControlFlow::Break(ahead) => return leaves(ahead),
        };
        let stop = Stop::after(Duration::from_millis(self.limit_ms(&job)), began);
        let came = rt::select(backend.recv(), stop.next(self));
        let chunk = match self.alarm.until(stop.ends(), came).await {
            Ok(Either::Left(Ok(chunk))) => chunk,
            Ok(Either::Left(failed)) => {
                return leaves(Ahead::asked(backend, (began, sent), Some(failed)));
            }
            // Whoever relays sees it as well.
            Ok(Either::Right(_)) | Err(_) => {
                return leaves(Ahead::asked(backend, (began, sent), None));
            }
        };
        let mut follower = Ask::to(&sent, u64::MAX).begin(self, &backend);
        let Some(out) = follower.whole(&chunk) else {
            return leaves(Ahead::asked(backend, (began, sent), Some(Ok(chunk))));
        };
        backend.ended(chunk.len(), chunk.len());
        if backend.place().is_timed() {
            let now = self.core.rt.now();
            backend.place().has_answered(now - began, &chunk, now);
        }
        let out = out.unwrap_or(chunk);
        self.note_unwatched(&job);
        let (told, passed) = self.has_answer(&mut backend, &job, &follower, out);
        self.gives_back(&job, backend).await?;
        self.keep(&job);
        self.core.tally.up(Counter::Questions);
        epoch.count(plan);
        self.remember_it(&job, told, true);
        let digested = job.digest.map(|hash| (hash, &*known.digest.1));
        self.count_known(&job, digested, began, told);
        passed?;
        Ok(ControlFlow::Break(()))
    }

    /// Sends a statement, if its connection has all it needs and nothing has to be waited for.
    fn asks_now(
        &mut self,
        mut backend: Box<Backend>,
        job: &Job<'_>,
        (name, now): (&'static str, Instant),
    ) -> ControlFlow<Box<Ahead>, (Box<Backend>, Sent)> {
        if !self.is_usual_there(&backend, job) {
            return ControlFlow::Break(Ahead::unsent(backend));
        }
        self.next_statement();
        self.entry.begins(name, job.text, now);
        self.entry.works_on(job.plan.hostgroup(), &backend);
        let doing = &self.core.doing;
        doing.begins(self.entry.id, job.digest.unwrap_or_default());
        let (mut command, sent) = self.writes_usual(&mut backend, job, None);
        match backend.queue(&mut command) {
            Ok(true) => ControlFlow::Continue((backend, sent)),
            Ok(false) => ControlFlow::Break(Ahead::unsent(backend)),
            Err(failed) => {
                ControlFlow::Break(Ahead::asked(backend, (now, sent), Some(Err(failed))))
            }
        }
    }

    /// Decides anew: every test with real servers, and every simulated world, checks what is remembered.
    #[cfg(debug_assertions)]
    fn would_be_decided_alike(
        &self,
        epoch: &Epoch,
        (text, known, plan): (&[u8], &Known, &Plan),
        what: What<'_>,
    ) {
        let read = Text::of(text, &known.class);
        let anew = self.decide_with(epoch, read, what, Numbering::Untaken);
        assert_eq!(*plan, anew, "{}", String::from_utf8_lossy(text));
    }

    /// The answer is whole: the client gets it, and it is learnt from.
    fn has_answer(
        &mut self,
        backend: &mut Backend,
        job: &Job<'_>,
        follower: &Follower,
        out: Chunk,
    ) -> (Told, Result<(), NetError>) {
        let sent = Counter::QueriesFrontendsBytesSent;
        self.core.tally.add(sent, out.len() as u64);
        self.turn.sent = follower.last_seq();
        self.turn.failed = false;
        backend.local.undisturbed = Some(self.entry.statement.get());
        let told = match self.learn_usual(backend, job, follower) {
            Some(told) => told,
            None => self.learn(backend, job, follower, None),
        };
        doubt_interrupted(backend);
        (told, self.pass(out))
    }

    /// The connection is free again, or kept for a transaction.
    async fn gives_back(&mut self, job: &Job<'_>, backend: Box<Backend>) -> Result<(), Ended> {
        let hostgroup = job.plan.hostgroup();
        if let ControlFlow::Continue(backend) = self.settle_usual(hostgroup, backend) {
            let settled = Box::pin(self.settle(job, hostgroup, backend)).await;
            if let Err(trouble) = settled.map_err(Trouble::behind)
                && let ControlFlow::Continue(failure) = self.by_the_server(job, trouble).await?
            {
                self.entry.rests(self.core.rt.now());
                return Err(Ended::Told(Complaint::of(&failure)));
            }
        }
        match self.client.socket().is_full() {
            true => Box::pin(self.read_or_killed()).await,
            false => Ok(()),
        }
    }
}
