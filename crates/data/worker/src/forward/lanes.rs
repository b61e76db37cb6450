//! Pipelining: a short read of a session without state joins others in flight on one connection,
//! see `backend::Lane`. Whatever does not go well there is asked in the ordinary way, as if it had
//! never been.

use crate::command::follower::{Flags, Follower};
use crate::command::job::{Job, Told, What};
use crate::command::prepared::Execution as Executing;
use crate::command::reads::sees;
use crate::command::trouble::Ended;
use crate::known::answer::Complaint;
use crate::known::finds::found_by;
use crate::known::habits::Took;
use crate::seen::traces::Mark;
use crate::session::Session;
use backend::{
    Backend, BackendFailed, Execution, Joined, Landed, Names, Request, Sees, Tracking, Want,
};
use bridge::Counter;
use net::NetError;
use rt::{Chunk, Either};
use std::ops::ControlFlow;
use std::time::Duration;
use wire::caps;
use wire::outline::Count;
use wire::response::{Expect, Outcome, Recode, Response};

/// Longer statements do not join.
const TEXT_LEN_MAX: usize = 4 << 10;

/// How its wait in a lane ended.
enum Event {
    Landed(Landed),
    Gone,
    Told,
    Late,
}

impl Session {
    /// Whether its answer shall be remembered as its habit.
    pub(crate) fn has_habits(&self, job: &Job<'_>) -> bool {
        self.depth(job).is_some()
    }

    /// Statements that may be in flight on one connection to the hostgroup of this one; `None` if
    /// it does not join others.
    fn depth(&self, job: &Job<'_>) -> Option<u32> {
        let is_named = || self.named_server(job.plan.hostgroup()).is_some();
        if !job.epoch.pipelines || job.plan.must_see().is_some() || is_named() {
            return None;
        }
        let snapshot = &job.epoch.snapshot;
        let v = &snapshot.variables;
        let attributes = &snapshot.servers.hostgroup(job.plan.hostgroup())?.attributes;
        let allowed = attributes.pipelining > 1
            && attributes.multiplex
            && v.mysql_multiplexing
            && v.mysql_connection_delay_multiplex_ms == 0
            && job.plan.multiplex != Some(0)
            && job.plan.reconnect.unwrap_or(v.mysql_default_reconnect);
        (allowed && self.may_join(job)).then_some(attributes.pipelining)
    }

    /// Whether a statement may join a lane. Such a one only reads, its answer is the same on every
    /// connection with the session's settings, and nothing of the session is anywhere.
    fn may_join(&self, job: &Job<'_>) -> bool {
        let (class, plan) = (job.class, job.plan);
        let text = job.sent();
        self.may_go_there(job.what)
            && class.plain_read
            && class.reads.is_empty()
            && class.leaves.is_empty()
            && sees(job) != Sees::Variables
            && self.tracking(job) == Tracking::Any
            && !self.state.tracks()
            && self.held.is_empty()
            && self.global.is_none()
            && self.state.autocommit
            && self.state.names != Names::Unknown
            && self.turn.is_first_and_last()
            && plan.gather.is_none()
            && !plan.new_connection
            && plan.rows_max().is_none()
            && plan.mirror.as_ref().is_none_or(|mirror| !mirror.compare)
            && text.len() <= TEXT_LEN_MAX
            && sql::reads_alike(text)
            && self.tells_found_rows(job)
            && !(caps::has(self.caps, caps::MULTI_STATEMENTS) && text.contains(&b';'))
    }

    /// A text, or an execution that is one command and means what it would mean if it were prepared
    /// now.
    fn may_go_there(&self, what: What<'_>) -> bool {
        match what {
            What::Query(_) => true,
            What::Execute(execution) => {
                let prepared = execution.prepared();
                !execution.is_bulk()
                    && !execution.opens_cursor()
                    && execution.long().next().is_none()
                    && execution.params().len() <= TEXT_LEN_MAX
                    && prepared.own().is_none()
                    && *prepared.schema == *self.state.schema
                    && prepared.means_as_now(&self.state)
            }
            _ => false,
        }
    }

    /// Whether its rows tell what FOUND_ROWS() is: no connection of the session can be asked.
    fn tells_found_rows(&self, job: &Job<'_>) -> bool {
        !job.class.limits || found_by(job.class, job.sent(), 0, None).is_some()
    }

    /// Remembers how long it took, and how much came.
    pub(crate) fn note_habit(&self, job: &Job<'_>, took: Duration, bytes: u64) {
        if let Some(digest) = job.digest {
            self.core.brief.answered(
                (digest, job.plan.hostgroup()),
                Took::Alone(took),
                bytes,
                self.core.rt.now(),
            );
        }
    }

    /// Answers over a lane, or lets the statement through.
    pub(crate) async fn pipelined(&mut self, job: &Job<'_>) -> Result<ControlFlow<Told>, Ended> {
        let Some(depth) = self.depth(job) else {
            return Ok(ControlFlow::Continue(()));
        };
        let hostgroup = job.plan.hostgroup();
        let key = match job.digest {
            Some(digest)
                if self
                    .core
                    .brief
                    .is_known((digest, hostgroup), self.core.rt.now()) =>
            {
                (digest, hostgroup)
            }
            _ => return Ok(ControlFlow::Continue(())),
        };
        let want = Want {
            remembered: None,
            tracking: Tracking::Any,
            new_connection: false,
            ..self.want(job)
        };
        let theirs = match job.what {
            What::Query(attributes) => attributes,
            What::Execute(execution) => &execution.attributes,
            _ => return Ok(ControlFlow::Continue(())),
        };
        let attributes = self.attributes_for(job, theirs, caps::QUERY_ATTRIBUTES);
        if attributes.bytes().len() > TEXT_LEN_MAX {
            return Ok(ControlFlow::Continue(()));
        }
        let elsewhere = self.core.brief.elsewhere(key, self.core.rt.now());
        let joined = match job.what {
            What::Execute(execution) => {
                let write = |out: &mut Vec<u8>, id: u32, caps: caps::Caps| {
                    execution.write(out, id, &attributes, caps)
                };
                let request = Execution {
                    statement: execution.prepared(),
                    bindings: execution.bindings,
                    params: execution.sent_params(),
                    write: &write,
                    max: job.epoch.snapshot.variables.mysql_max_stmts_per_connection,
                };
                self.core
                    .pools
                    .join(&want, &Request::Execution(request), depth, elsewhere)
            }
            _ => self.core.pools.join(
                &want,
                &Request::Text(job.sent(), &attributes),
                depth,
                elsewhere,
            ),
        };
        let Some(joined) = joined else {
            return Ok(ControlFlow::Continue(()));
        };
        if matches!(job.what, What::Execute(_)) {
            self.core.tally.up(Counter::ComBackendStmtExecute);
        }
        self.entry.uses(hostgroup, joined.place(), joined.local());
        let began = self.core.rt.now();
        let ended = Box::pin(self.fly(job, joined)).await;
        let now = self.core.rt.now();
        if job.epoch.snapshot.variables.mysql_stats_time_backend_query {
            self.core.tally.add(
                Counter::BackendQueryTimeNsec,
                u64::try_from((now - began).as_nanos()).unwrap_or(u64::MAX),
            );
        }
        match ended? {
            ControlFlow::Break((told, took, bytes)) => {
                self.core
                    .brief
                    .answered(key, Took::InLane(took), bytes, now);
                Ok(ControlFlow::Break(told))
            }
            ControlFlow::Continue(unfit) => {
                self.core.tally.up(Counter::StatementsLeftLane);
                if unfit {
                    self.core.brief.was_unfit(key, now);
                }
                Ok(ControlFlow::Continue(()))
            }
        }
    }

    /// Waits for the answer; with it come how long it took and how many bytes it was. Continue:
    /// whether the statement shall stay alone.
    async fn fly(
        &mut self,
        job: &Job<'_>,
        mut joined: Joined,
    ) -> Result<ControlFlow<(Told, Duration, u64), bool>, Ended> {
        let began = self.core.rt.now();
        let limit_ms = self.limit_ms(job);
        self.mark(Mark::Asked);
        let wait = {
            let gone = rt::select(self.client.socket().closed(), self.entry.told(false));
            let landed = rt::select(&mut joined.answer, gone);
            self.core
                .rt
                .timeout(Duration::from_millis(limit_ms), landed)
                .await
        };
        let event = match wait {
            Ok(Either::Left(landed)) => {
                Event::Landed(landed.unwrap_or(Landed::Alone { unfit: false }))
            }
            Ok(Either::Right(Either::Left(()))) => Event::Gone,
            Ok(Either::Right(Either::Right(()))) => Event::Told,
            Err(_late) => Event::Late,
        };
        let complaint = match event {
            Event::Landed(Landed::Answer {
                bytes,
                response,
                took,
            }) => {
                let (server, len) = (joined.caps(), bytes.len() as u64);
                self.mark(Mark::Answered);
                self.recall_read(
                    job,
                    response.rows(),
                    matches!(response.outcome(), Outcome::Err { .. }),
                );
                let told = self.give(job, bytes, *response, server).await?;
                return Ok(ControlFlow::Break((told, took, len)));
            }
            Event::Landed(Landed::Alone { unfit }) => return Ok(ControlFlow::Continue(unfit)),
            // Its server is taken away: another has the answer, too.
            Event::Told if self.entry.cut.get() && !self.entry.killed.get() => {
                joined.leave(None);
                return Ok(ControlFlow::Continue(false));
            }
            Event::Gone => {
                let killing = job
                    .epoch
                    .snapshot
                    .variables
                    .mysql_kill_backend_connection_when_disconnect;
                let killing = killing.then(|| self.killing_of(&joined));
                joined.leave(killing);
                return Err(Ended::Gone);
            }
            Event::Told => Complaint::interrupted(),
            Event::Late => Complaint::of(&BackendFailed::TooSlow { limit_ms }),
        };
        // Others may wait for theirs on the connection: the server is told only when nobody does.
        let killing = self.killing_of(&joined);
        joined.leave(Some(killing));
        if self.entry.killed.get() {
            return Err(Ended::Told(complaint));
        }
        self.doubt_found_rows(job);
        self.refuse(&complaint).await?;
        Ok(ControlFlow::Break((
            Told::default(),
            self.core.rt.now() - began,
            0,
        )))
    }

    /// The client gets the answer, in its own dialect, and the cache, if it is to be kept.
    async fn give(
        &mut self,
        job: &Job<'_>,
        bytes: Vec<u8>,
        response: Response,
        server: caps::Caps,
    ) -> Result<Told, Ended> {
        let execution = if let What::Execute(execution) = job.what {
            Some(execution)
        } else {
            None
        };
        let remembers = execution.is_some() && caps::has(self.caps, caps::MARIADB_CACHE_METADATA);
        let known = execution.and_then(Executing::known_columns);
        let known = known.filter(|known| Count::of(&bytes).may_differ(*known));
        let is_needed = remembers || known.is_some() || Recode::is_needed(server, self.caps);
        let (out, follower) = if is_needed {
            let expect = if execution.is_some() {
                Expect::Execute
            } else {
                Expect::Query
            };
            // Who shares a lane holds nothing elsewhere.
            let flags = Flags {
                before: response.status(),
                elsewhere: 0,
            };
            let mut follower =
                Follower::new(expect, (server, self.caps), None, self.turn, 0, flags);
            let before = execution.and_then(|execution| execution.outline.take());
            if let Follower::Other(recode) = &mut follower {
                // What is kept for others has to be whole.
                recode.spare(before, self.cached.filling.is_none());
            }
            if let Some(known) = known {
                follower.knowing(known, &bytes, || {
                    Follower::anew(expect, (server, self.caps), None, self.turn, 0, flags)
                });
            }
            let (out, _end) = follower
                .follow(Chunk::from(bytes))
                .map_err(NetError::Malformed)?;
            if let Some(execution) = execution {
                execution.outline.set(follower.outline(before));
            }
            (out.into_vec(), follower)
        } else {
            (bytes, Follower::Same(response))
        };
        if let Some(execution) = execution {
            execution.told_columns(follower.response().columns());
        }
        if let Some(filling) = &mut self.cached.filling {
            filling.gathered.restart();
            filling.gathered.add(&out);
            filling.ended(follower.response());
        }
        self.turn.sent = follower.last_seq();
        self.turn.failed = false;
        self.learn_modes(follower.response().status());
        let told = Told {
            rows_sent: follower.response().rows(),
            row_count: follower.response().row_count(),
            ..Told::default()
        };
        self.core
            .tally
            .add(Counter::QueriesFrontendsBytesSent, out.len() as u64);
        self.hand_over(out).await?;
        Ok(told)
    }
}

/// How many bytes have come over a connection.
pub(crate) fn received(backend: &Backend) -> u64 {
    backend.conn.bytes().0
}
