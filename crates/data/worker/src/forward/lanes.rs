//! Pipelining: a short read of a session without state joins others in flight on one connection,
//! see `backend::Lane`. Whatever does not go well there is asked in the ordinary way, as if it had
//! never been.

use crate::forward::ready::sees;
use crate::forward::relay::{Flags, Follower};
use crate::memory::finds::found_by;
use crate::seen::traces::Mark;
use crate::session::answer::Complaint;
use crate::session::{Ended, Session};
use crate::statement::prepared::Execution as Executing;
use crate::statement::{Job, Told, What};
use backend::{
    ANSWER_LEN_MAX, Backend, BackendFailed, Execution, Joined, Landed, Names, Request, Sees,
    Tracking, Want,
};
use bridge::Counter;
use hashbrown::HashMap;
use net::NetError;
use rt::{Chunk, Either, Instant};
use std::cell::RefCell;
use std::ops::ControlFlow;
use std::time::Duration;
use wire::caps;
use wire::outline::Count;
use wire::response::{Expect, Outcome, Recode, Response};

/// Longer statements do not join.
const TEXT_LEN_MAX: usize = 4 << 10;
/// So often a statement must have been answered quickly and briefly before it joins.
const KNOWN: u32 = 4;
/// Time of a quick answer at most, in microseconds, on the average.
const QUICK_US: u64 = 10_000;
/// Length of a brief answer at most, in bytes.
const BRIEF_LEN_MAX: u64 = ANSWER_LEN_MAX as u64 / 4;
/// After one that was not as expected, a statement stays alone for so long.
const ALONE: Duration = Duration::from_secs(10);
/// Time after which it is looked at again what a statement takes on a connection of its own.
const FRESH: Duration = Duration::from_secs(1);
/// Digests that are remembered.
const DIGESTS_MAX: usize = 4096;

/// Knowledge of answers, by digest and hostgroup.
#[derive(Default)]
pub(crate) struct Brief(RefCell<HashMap<(u64, u32), Habit, foldhash::fast::RandomState>>);

#[derive(Default)]
struct Habit {
    times: u32,
    average_us: u64,
    /// When it was last answered in a lane.
    in_lane: Option<Instant>,
    elsewhere: Option<Elsewhere>,
    alone_until: Option<Instant>,
}

/// How long it takes on a connection of its own.
#[derive(Clone, Copy)]
struct Elsewhere {
    average_us: u64,
    seen: Instant,
    /// When one was last sent to see.
    looked: Instant,
}

/// How long a statement took, where.
#[derive(Clone, Copy)]
enum Took {
    /// In a lane, from when it was the first: it kept the others waiting for so long.
    InLane(Duration),
    /// On a connection of its own. A busy server has it wait for many others meanwhile.
    Alone(Duration),
}

impl Brief {
    fn is_known(&self, key: (u64, u32), now: Instant) -> bool {
        self.0.borrow().get(&key).is_some_and(|habit| {
            habit.times >= KNOWN
                && habit.average_us <= QUICK_US
                && habit.alone_until.is_none_or(|until| until <= now)
        })
    }

    /// Learns from an answer. What lanes tell counts more than what a busy server needs elsewhere,
    /// or statements would leave them when they help most.
    fn answered(&self, key: (u64, u32), took: Took, bytes: u64, now: Instant) {
        let mut all = self.0.borrow_mut();
        if all.len() >= DIGESTS_MAX && !all.contains_key(&key) {
            // Rare, and those that matter are soon known again.
            all.clear();
        }
        let habit = all.entry(key).or_default();
        if bytes > BRIEF_LEN_MAX {
            habit.alone_until = Some(now + ALONE);
            return;
        }
        let took = match took {
            Took::InLane(took) => {
                habit.in_lane = Some(now);
                took
            }
            Took::Alone(took) => {
                let us = micros(took);
                let before = habit
                    .elsewhere
                    .filter(|elsewhere| now - elsewhere.seen < ALONE);
                let average_us = before.map_or(us, |elsewhere| mean_with(elsewhere.average_us, us));
                habit.elsewhere = Some(Elsewhere {
                    average_us,
                    seen: now,
                    looked: now,
                });
                if habit.in_lane.is_some_and(|at| now - at < ALONE) {
                    return;
                }
                took
            }
        };
        let us = micros(took);
        habit.average_us = if habit.times == 0 {
            us
        } else {
            mean_with(habit.average_us, us)
        };
        habit.times = habit.times.saturating_add(1);
    }

    /// How long it takes on a connection of its own, if that was seen lately. Where that was a
    /// second ago one statement is told nothing: it waits for no lane that is full, and is seen.
    fn elsewhere(&self, key: (u64, u32), now: Instant) -> Duration {
        let mut all = self.0.borrow_mut();
        let Some(elsewhere) = all.get_mut(&key).and_then(|habit| habit.elsewhere.as_mut()) else {
            return Duration::ZERO;
        };
        if now - elsewhere.seen >= ALONE {
            return Duration::ZERO;
        }
        if now - elsewhere.looked >= FRESH {
            elsewhere.looked = now;
            return Duration::ZERO;
        }
        Duration::from_micros(elsewhere.average_us)
    }

    fn was_unfit(&self, key: (u64, u32), now: Instant) {
        if let Some(habit) = self.0.borrow_mut().get_mut(&key) {
            habit.alone_until = Some(now + ALONE);
        }
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// The mean of about eight.
fn mean_with(mean: u64, one: u64) -> u64 {
    mean - mean / 8 + one / 8
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_joins_when_it_is_known_to_be_quick_and_brief() {
        let (brief, key) = (Brief::default(), (7, 1));
        let at = |s: u64| Instant::from_ns(s * 1_000_000_000);
        for _ in 0..KNOWN {
            assert!(!brief.is_known(key, at(0)));
            brief.answered(key, Took::Alone(Duration::from_micros(200)), 100, at(0));
        }
        assert!(brief.is_known(key, at(0)));
        assert!(!brief.is_known((7, 2), at(0)));
        // One long answer, and it stays alone for a while.
        brief.answered(
            key,
            Took::Alone(Duration::from_micros(200)),
            BRIEF_LEN_MAX + 1,
            at(1),
        );
        assert!(!brief.is_known(key, at(2)));
        assert!(brief.is_known(key, at(60)));
        brief.was_unfit(key, at(60));
        assert!(!brief.is_known(key, at(61)));
        // Slow ones make it slow.
        (0..50).for_each(|_| {
            brief.answered(key, Took::Alone(Duration::from_millis(100)), 100, at(100))
        });
        assert!(!brief.is_known(key, at(200)));
    }

    #[test]
    fn a_busy_server_makes_nothing_slow_that_lanes_answer_quickly() {
        let (brief, key) = (Brief::default(), (7, 1));
        let at = |s: u64| Instant::from_ns(s * 1_000_000_000);
        (0..KNOWN)
            .for_each(|_| brief.answered(key, Took::Alone(Duration::from_millis(9)), 100, at(0)));
        brief.answered(key, Took::InLane(Duration::from_micros(50)), 100, at(1));
        let alone = |s| {
            (0..50).for_each(|_| {
                brief.answered(key, Took::Alone(Duration::from_millis(30)), 100, at(s))
            })
        };
        alone(2);
        assert!(brief.is_known(key, at(2)));
        // A long answer counts wherever it came.
        brief.answered(key, Took::Alone(Duration::ZERO), BRIEF_LEN_MAX + 1, at(2));
        assert!(!brief.is_known(key, at(3)));
        // So long others wait for a lane; and one looks now and then whether that is still true.
        let slow = brief.elsewhere(key, at(2));
        assert!(
            slow > Duration::from_millis(25) && slow <= Duration::from_millis(30),
            "{slow:?}"
        );
        assert_eq!(brief.elsewhere(key, at(4)), Duration::ZERO);
        assert_eq!(brief.elsewhere(key, at(4)), slow);
        assert_eq!(brief.elsewhere((7, 2), at(4)), Duration::ZERO);
        // Nobody has gone there for long: the server may be idle by now.
        assert_eq!(brief.elsewhere(key, at(5)), Duration::ZERO);
        assert_eq!(brief.elsewhere(key, at(5)), slow);
        assert_eq!(
            [brief.elsewhere(key, at(12)), brief.elsewhere(key, at(12))],
            [Duration::ZERO; 2]
        );
        // Lanes have told nothing for a while.
        alone(40);
        assert!(!brief.is_known(key, at(40)));
        // What keeps others waiting is slow in lanes, too.
        (0..200).for_each(|_| {
            brief.answered(key, Took::InLane(Duration::from_micros(50)), 100, at(50))
        });
        assert!(brief.is_known(key, at(50)));
        (0..50).for_each(|_| {
            brief.answered(key, Took::InLane(Duration::from_millis(30)), 100, at(51))
        });
        assert!(!brief.is_known(key, at(51)));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let brief = Brief::default();
        for digest in 0..3 * DIGESTS_MAX as u64 {
            brief.answered(
                (digest, 0),
                Took::Alone(Duration::ZERO),
                1,
                Instant::from_ns(0),
            );
        }
        assert!(brief.0.borrow().len() <= DIGESTS_MAX);
    }
}
