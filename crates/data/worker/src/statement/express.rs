//! Statements that came before, of sessions that have nothing anywhere but perhaps a transaction. One
//! decision holds for all that differ in values only, be they written in a text or bound to what was
//! prepared. Such a statement passes no stage: it is sent at once, and it is done if its answer comes
//! in one piece and says nothing but rows, or how many were changed.
//!
//! Whatever is otherwise goes the long way ([`Session::whole_of`]), with the connection and what
//! came on it, if there is any. Only there do errors, retries, limits and half answers exist.

use crate::command::ahead::{Ahead, Sent};
use crate::command::asked::Executed;
use crate::command::follower::Follower;
#[cfg(debug_assertions)]
use crate::command::job::Text;
use crate::command::job::{Job, Told, What};
use crate::command::trouble::{Ended, Trouble};
use crate::forward::relay::{Ask, doubt_interrupted, flags_on};
use crate::known::answer::Complaint;
use crate::known::decisions::{For, Judged};
use crate::known::epoch::Epoch;
use crate::scripts::chain::Chain;
use crate::session::Session;
use crate::talk::stop::Stop;
use backend::{Backend, BackendFailed, Hold};
use bridge::Counter;
use config::Repeats;
use net::NetError;
use plan::{By, Plan};
use rt::{Chunk, Either, Instant};
#[cfg(debug_assertions)]
use shards::Numbering;
use sql::Class;
use std::cell::Cell;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::time::Duration;
#[cfg(debug_assertions)]
use wire::response::Response;
use wire::response::{Again, Expect, Head};
use wire::{caps, packet};

/// Bytes that came on a connection, or its failure, if anything came.
type Came = Option<Result<Chunk, BackendFailed>>;

/// Numbers of an answer that the client gets, and whether it is still there.
type Passed = (Told, Result<(), NetError>);

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
    /// Facts that a decision depends on, of a session that has nothing anywhere but perhaps a transaction
    /// on one connection, and of which nothing is asked. `None` for any other.
    fn stands<'s>(&'s self, what: What<'s>) -> Option<For<'s>> {
        let is_free = self.state.autocommit
            && self.next_flag_in.is_none()
            && self.course.is_none()
            && self.global.is_none()
            && self.sent.is_none()
            && self.scripts.as_deref().is_none_or(Chain::leaves_alone)
            && self.cached.is_unwatched()
            && !self.is_unsure()
            && self.core.gates.are_open()
            && !self.entry.killed.get();
        if !is_free {
            return None;
        }
        Some(For {
            user: &self.user,
            schema: what.prepared_in().unwrap_or(&self.state.schema),
            transaction: match self.held.is_empty() {
                true => None,
                false => Some(self.in_transaction_alone()?),
            },
        })
    }

    /// Where a transaction is open, if that is all that the session keeps a connection for.
    fn in_transaction_alone(&self) -> Option<u32> {
        let mut held = self.held.iter();
        let (hostgroup, backend) = held.next()?;
        let is_alone = backend.holds.is_only(Hold::Transaction)
            && !backend.place().is_cut_off()
            && held.next().is_none()
            && self.reads_on().is_none();
        is_alone.then_some(hostgroup)
    }

    /// Whether a text does nothing but read, change rows, or begin or end a transaction.
    fn is_plain_there(&self, class: &Class<'_>) -> bool {
        let bounds = class.begins_transaction || class.ends_transaction;
        !bounds || self.is_usual_bound(class)
    }

    /// The decision on a text that came before, if one holds.
    fn decided(
        &self,
        epoch: &Epoch,
        (text, judged): (&[u8], &Judged),
        what: What<'_>,
    ) -> Option<Rc<Plan>> {
        if !is_one_of_many(epoch, text) || !self.is_plain_there(&judged.class) {
            return None;
        }
        let plan = judged.decisions.of(self.stands(what)?)?;
        self.may_read_again(epoch, &plan).then_some(plan)
    }

    /// Whether the read/write split would lead a statement to the readers again that it has led there
    /// when the session had not written: it has not since, or long ago, and need not see it.
    fn may_read_again(&self, epoch: &Epoch, plan: &Plan) -> bool {
        let Some(wrote) = self.wrote.filter(|_| plan.why.is_read()) else {
            return true;
        };
        let Some(split) = plan::split_of(&epoch.snapshot, &self.user) else {
            return false;
        };
        let since = self.core.rt.now() - wrote;
        let writer = epoch
            .snapshot
            .servers
            .hostgroup(self.user.default_hostgroup);
        since >= Duration::from_millis(split.after_write_ms.into())
            && !writer.is_some_and(|writer| writer.attributes.reads_see_writes)
    }

    /// Remembers the decision on a statement that came before, if it holds for all that differ in
    /// values only.
    pub(crate) fn remember_decision(&self, job: &Job<'_>, judged: Option<&Judged>) {
        let Some(judged) = judged else { return };
        let Job { epoch, plan, .. } = *job;
        // A read that stays with the writer may do so because the session has just written.
        let may_be_led = || {
            plan.why.by == By::Default
                && (job.class.plain_read || job.class.begins_read_only)
                && plan::split_of(&epoch.snapshot, &self.user).is_some()
        };
        let holds = job.usual
            && is_one_of_many(epoch, job.text)
            && plan.repeats()
            && plan.remade().is_none()
            && plan.partition.is_none()
            && !may_be_led();
        if holds
            && let Some(stands) = self.stands(job.what)
            && stands.transaction.is_none_or(|at| at == plan.hostgroup())
            && stands.transaction.is_some() == (plan.why.by == By::Transaction)
        {
            judged.decisions.add(stands, plan);
        }
    }

    /// Does a statement that came before. `Continue` if no decision on it holds.
    pub(crate) async fn express(
        &mut self,
        epoch: &Epoch,
        (text, judged): (&[u8], &Judged),
        name: &'static str,
        what: What<'_>,
    ) -> Result<ControlFlow<()>, Ended> {
        let Some(plan) = self.decided(epoch, (text, judged), what) else {
            return Ok(ControlFlow::Continue(()));
        };
        #[cfg(debug_assertions)]
        self.would_be_decided_alike(epoch, (text, judged, &plan), what);
        let began = self.core.rt.now();
        let ahead = Cell::new(None);
        let job = Job {
            epoch,
            text,
            class: &judged.class,
            plan: &plan,
            digest: epoch.digests.then_some(judged.digest.0),
            what,
            stays: false,
            usual: true,
            ahead: Some(&ahead),
        };
        let at_hand = match self.held.is_empty() {
            true => self.core.pools.at_once(&self.want(&job)),
            false => self.held.take(plan.hostgroup()),
        };
        if at_hand.is_none() && plan.why.is_read() {
            // Perhaps nobody serves there, and it goes to the writer.
            return Ok(ControlFlow::Continue(()));
        }
        self.begins(&job, name, began);
        let asked = at_hand.and_then(|backend| self.asks_now(backend, &job, began));
        let (told, passed) = match asked {
            Some((backend, sent)) => {
                let answer = self.answer_of(&job, (judged, &sent), (backend, began));
                match answer.await {
                    ControlFlow::Break((backend, passed)) => {
                        self.core.tally.up(Counter::StatementsAtOnce);
                        self.gives_back(&job, backend).await?;
                        passed
                    }
                    ControlFlow::Continue((backend, came)) => {
                        ahead.set(Some(Ahead::asked(backend, (began, sent), came)));
                        (self.forward(&job).await?, Ok(()))
                    }
                }
            }
            None => (self.forward(&job).await?, Ok(())),
        };
        self.keep(&job);
        self.remember_it(&job, told, true);
        let digested = job.digest.map(|hash| (hash, &*judged.digest.1));
        self.count_known(&job, digested, began, told);
        passed?;
        Ok(ControlFlow::Break(()))
    }

    /// Counts it, and shows it to who looks.
    fn begins(&mut self, job: &Job<'_>, name: &'static str, now: Instant) {
        self.next_statement();
        self.core.tally.up(Counter::Questions);
        self.note_received(job.class, job.text, job.what);
        self.entry.begins(name, job.text, now);
        let doing = &self.core.doing;
        doing.begins(self.entry.id, job.digest.unwrap_or_default());
        job.epoch.count(job.plan);
        self.note_unwatched(job);
    }

    /// Sends a statement, if its connection has all it needs and nothing has to be waited for. If not,
    /// the connection and what could not be sent there go along with it.
    fn asks_now(
        &mut self,
        mut backend: Box<Backend>,
        job: &Job<'_>,
        now: Instant,
    ) -> Option<(Box<Backend>, Sent)> {
        let ahead = |ahead| {
            if let Some(place) = job.ahead {
                place.set(Some(ahead));
            }
            None
        };
        if !self.is_usual_there(&backend, job) {
            return ahead(Ahead::unsent(backend));
        }
        let executed = match job.what {
            What::Execute(execution) => match execution.known_there(&mut backend) {
                Some(id) => Some(Executed::Id(id)),
                None => return ahead(Ahead::unsent(backend)),
            },
            _ => None,
        };
        self.entry.works_on(job.plan.hostgroup(), &backend);
        let (mut command, sent) = self.writes_usual(&mut backend, job, executed);
        match backend.queue(&mut command) {
            Ok(true) => Some((backend, sent)),
            Ok(false) => {
                if let What::Execute(execution) = job.what {
                    execution.outline.set(sent.outline);
                }
                ahead(Ahead::unsent(backend))
            }
            Err(failed) => ahead(Ahead::asked(backend, (now, sent), Some(Err(failed)))),
        }
    }

    /// Waits for what comes. `Continue`, with what came, if that is not the answer, whole and well:
    /// the long way has to see it.
    async fn answer_of(
        &mut self,
        job: &Job<'_>,
        (judged, sent): (&Judged, &Sent),
        (mut backend, began): (Box<Backend>, Instant),
    ) -> ControlFlow<(Box<Backend>, Passed), (Box<Backend>, Came)> {
        let stop = Stop::after(Duration::from_millis(self.limit_ms(job)), began);
        let came = rt::select(backend.recv(), stop.next(self));
        let chunk = match self.alarm.until(stop.ends(), came).await {
            Ok(Either::Left(Ok(chunk))) => chunk,
            Ok(Either::Left(failed)) => return ControlFlow::Continue((backend, Some(failed))),
            // Whoever relays sees it as well.
            Ok(Either::Right(_)) | Err(_) => return ControlFlow::Continue((backend, None)),
        };
        let Some((follower, out)) = self.follows(&backend, (judged, sent), &chunk) else {
            return ControlFlow::Continue((backend, Some(Ok(chunk))));
        };
        backend.ended(chunk.len(), chunk.len());
        if backend.place().is_timed() {
            let now = self.core.rt.now();
            backend.place().has_answered(now - began, &chunk, now);
        }
        let out = out.unwrap_or(chunk);
        let passed = self.has_answer(&mut backend, job, (sent, &follower), out);
        ControlFlow::Break((backend, passed))
    }

    /// Follows an answer that is whole in these bytes and is well, and what the client gets for it, if
    /// not these very bytes. `None` for any other.
    fn follows(
        &self,
        backend: &Backend,
        (judged, sent): (&Judged, &Sent),
        came: &Chunk,
    ) -> Option<(Follower, Option<Chunk>)> {
        let caps = (backend.hello.caps, self.caps);
        // What else its packets say depends on the statement before or on what a client remembers.
        let is_alone = self.turn.sent == packet::last_seq_of_framed(sent.len)
            && !self.turn.more
            && !(sent.expect == Expect::Execute
                && caps::has(self.caps, caps::MARIADB_CACHE_METADATA));
        let again = match is_alone {
            true => self.known_answer(backend, (judged, sent), came),
            false => None,
        };
        if let Some(mut again) = again {
            let out = again.out.take().map(Chunk::from);
            #[cfg(debug_assertions)]
            self.would_be_followed_alike(backend, (sent, &again), (came, &out));
            return Some((Follower::Known(again), out));
        }
        let mut follower = Ask::to(sent, u64::MAX).begin_at(self, backend, came);
        let out = follower.whole(came)?;
        if is_alone {
            let written = out.as_ref().unwrap_or(came);
            let head = || Head::of(follower.response(), caps, came, written);
            judged.answers.remember(head);
        }
        Some((follower, out))
    }

    /// An answer that is told by how it begins.
    fn known_answer(
        &self,
        backend: &Backend,
        (judged, sent): (&Judged, &Sent),
        came: &Chunk,
    ) -> Option<Again> {
        let server = backend.hello.caps;
        if let Some(head) = judged.answers.known() {
            let before = flags_on(self, backend) | self.reading.flags();
            let has_as_many = |known| u32::from(known) == head.columns();
            return match sent.columns.is_none_or(has_as_many) {
                true => head.answer(sent.expect, (server, self.caps), came, before),
                false => None,
            };
        }
        let number = packet::last_seq_of_framed(sent.len);
        Again::ok(sent.expect, server, came, number)
    }

    /// Follows packet by packet: every test with real servers, and every simulated world, checks what
    /// is told by how an answer begins.
    #[cfg(debug_assertions)]
    fn would_be_followed_alike(
        &self,
        backend: &Backend,
        (sent, again): (&Sent, &Again),
        (came, out): (&Chunk, &Option<Chunk>),
    ) {
        let mut follower = Ask::to(sent, u64::MAX).begin_at(self, backend, came);
        let anew = follower.whole(came).expect("an answer that is whole");
        let written = |out: &Option<Chunk>| out.as_deref().unwrap_or(came).to_vec();
        assert_eq!(written(out), written(&anew));
        assert_eq!(again.last_seq, follower.last_seq());
        let said = |response: &Response| {
            let numbers = (response.rows(), response.columns(), response.results());
            let flags = (response.status(), response.warnings(), response.last_seq());
            let changed = (response.affected_rows(), response.insert_id());
            let tail = format!("{:?}", response.tail());
            (
                numbers,
                flags,
                changed,
                tail,
                response.row_count(),
                response.is_ended(),
            )
        };
        assert_eq!(said(&again.response), said(follower.response()));
    }

    /// Decides anew: every test with real servers, and every simulated world, checks what is remembered.
    #[cfg(debug_assertions)]
    fn would_be_decided_alike(
        &self,
        epoch: &Epoch,
        (text, judged, plan): (&[u8], &Judged, &Plan),
        what: What<'_>,
    ) {
        let read = Text::of(text, &judged.class);
        let anew = self.decide_with(epoch, read, what, Numbering::Untaken);
        assert_eq!(*plan, anew, "{}", String::from_utf8_lossy(text));
        let lexing = self.lexing_of(what);
        let class = lexing.class(text);
        assert_eq!(judged.class, class, "{}", String::from_utf8_lossy(text));
    }

    /// The answer is whole: the client gets it, and it is learnt from.
    fn has_answer(
        &mut self,
        backend: &mut Backend,
        job: &Job<'_>,
        (sent, follower): (&Sent, &Follower),
        out: Chunk,
    ) -> Passed {
        let bytes = Counter::QueriesFrontendsBytesSent;
        self.core.tally.add(bytes, out.len() as u64);
        self.turn.sent = follower.last_seq();
        self.turn.failed = false;
        if let What::Execute(execution) = job.what {
            execution.told(follower, sent.outline);
        }
        backend.local.undisturbed = Some(self.entry.statement.get());
        let told = match self.learn_usual(backend, job, follower) {
            Some(told) => told,
            None => self.learn(backend, job, follower, sent.executed),
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
