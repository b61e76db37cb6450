//! The task of a lane: it sends what has joined, follows the answers, and gives each session its
//! own.

use crate::connection::backend::{Backend, Idle};
use crate::connection::place::bump;
use crate::hostgroup::group::Group;
use crate::hostgroup::lane::{ANSWER_LEN_MAX, Flying, Landed, Lane, PATIENCE, What};
use crate::pool::pools::Pools;
use crate::session::key::Key;
use bridge::Counter;
use rt::{Chunk, Either, Instant};
use std::rc::Rc;
use std::time::Duration;
use wire::response::{Follow, Outcome, Response};
use wire::status;

/// Bytes up to which a longer answer is followed, for those behind it; then the lane ends.
const DRAINED_LEN_MAX: usize = 256 << 10;
/// A lane without statements is given back after so long.
const REST: Duration = Duration::from_millis(20);
/// So long those on another core may wait for a server before a lane there that is never without
/// work gives its connection to them.
const TURN: Duration = Duration::from_millis(100);
/// So long a statement may take to be prepared for the next time, while nobody waits for it.
const PREPARING_MAX: Duration = Duration::from_secs(1);
/// "Prepared statement needs to be re-prepared".
const NEEDS_REPREPARE: u16 = 1615;
/// "Unknown prepared statement handler".
const UNKNOWN_STATEMENT: u16 = 1243;

/// The task of a lane.
pub(super) struct Run {
    pub(super) pools: Rc<Pools>,
    pub(super) group: Rc<Group>,
    pub(super) lane: Rc<Lane>,
}

impl Drop for Run {
    /// However it ends.
    fn drop(&mut self) {
        self.lane.closed.set(true);
        self.group
            .lanes
            .all
            .borrow_mut()
            .retain(|lane| !Rc::ptr_eq(lane, &self.lane));
        self.lane.send_away(0);
    }
}

impl Run {
    pub(super) async fn on(&self, mut backend: Box<Backend>) {
        let healthy = self.fly(&mut backend).await;
        self.lane.closed.set(true);
        backend.prepared = self.lane.prepared.take();
        if !healthy {
            backend.idle = Idle::Doubtful;
            let killing = self
                .lane
                .killing
                .take()
                .filter(|_| self.lane.nobody_waits());
            self.lane.send_away(0);
            self.pools.release(backend);
            if let Some(killing) = killing {
                let _if_not_the_closed_connection_ends_it = self.pools.kill(&killing).await;
            }
            return;
        }
        self.pools.release(backend);
    }

    /// Until it is to be given back (`true`) or closed.
    async fn fly(&self, backend: &mut Backend) -> bool {
        let lane = &self.lane;
        loop {
            let out = std::mem::take(&mut *lane.outgoing.borrow_mut());
            if !out.is_empty() {
                let n = lane.outgoing_n.take();
                bump(&lane.place.numbers.queries, n - 1);
                backend.lasting.queries += n - 1;
                // A server that does not read must not keep everybody here waiting.
                if !matches!(
                    self.pools
                        .rt
                        .timeout(PATIENCE, backend.send(Chunk::from(out)))
                        .await,
                    Ok(Ok(()))
                ) {
                    return false;
                }
            }
            if lane.is_left() || lane.place.is_cut_off() && lane.nobody_waits() {
                // Nobody waits for what the server does here.
                return false;
            }
            let now = self.pools.rt.now();
            let max_age = self.pools.max_age.get();
            let is_old = !max_age.is_zero() && now - backend.lasting.opened >= max_age;
            if is_old
                || !lane
                    .place
                    .is_alike(&backend.lasting.opened_as, backend.init_connect.as_deref())
                || lane.place.weight() == 0
                || lane.place.has_left()
            {
                // Nobody joins; it runs empty, and is closed when it is given back.
                lane.closed.set(true);
            }
            if self.is_all_there_can_be(&backend.key, now)
                || lane.place.is_over()
                || self.gives_way(now)
            {
                // Nobody joins: who waits has it as soon as it is empty, or a lower limit.
                lane.closed.set(true);
            }
            let nobodys = lane
                .flying
                .borrow()
                .front()
                .is_some_and(|head| head.answer.is_none());
            let head = lane.flying.borrow().front().map(|head| head.since);
            if head.is_none()
                && (lane.closed.get()
                    || self.is_wanted(&backend.key, now)
                    || !lane.place.serves(now))
            {
                return true;
            }
            let patience = match head {
                None => REST,
                // Nobody is behind it any more: its own session knows how long it may take.
                Some(_) if lane.closed.get() && lane.len() == 1 && !nobodys => {
                    Duration::from_secs(3600)
                }
                Some(since) if lane.closed.get() && lane.len() == 1 => PREPARING_MAX
                    .saturating_sub(now - since)
                    .max(Duration::from_millis(1)),
                Some(since) => PATIENCE
                    .saturating_sub(now - since)
                    .max(Duration::from_millis(1)),
            };
            match self
                .pools
                .rt
                .timeout(patience, rt::select(backend.recv(), lane.news.heard()))
                .await
            {
                Ok(Either::Left(Ok(chunk))) => {
                    if !self.came(backend, &chunk) {
                        return false;
                    }
                }
                Ok(Either::Left(Err(_broken))) => return false,
                Ok(Either::Right(())) => {}
                Err(_rested) if head.is_none() => return true,
                Err(_late) => {
                    if !self.is_worth_waiting_for() {
                        return false;
                    }
                }
            }
        }
    }

    fn is_wanted(&self, key: &Key, now: Instant) -> bool {
        let group = &self.group;
        let for_pace = || group.paced.waits_for(key) || group.wishes.wants(key, now);
        !group.queue.is_empty()
            || self.pools.is_wanted_elsewhere(&self.lane.place)
            || for_pace() && self.is_one_of_many(key)
    }

    /// Whether somebody on another core has waited long for its server, and no other lane there
    /// runs empty for that: one at a time.
    fn gives_way(&self, now: Instant) -> bool {
        let place = &self.lane.place;
        let is_there = |lane: &Rc<Lane>| Rc::ptr_eq(&lane.place, place) && lane.closed.get();
        self.pools.gives_way(place, Some(now), TURN)
            && !self.group.lanes.all.borrow().iter().any(is_there)
    }

    /// Whether others wait for a connection like this one, and the server has just said that it
    /// takes no more of their user: none will be opened for them.
    fn is_all_there_can_be(&self, key: &Key, now: Instant) -> bool {
        self.group.paced.waits_for(key) && self.lane.place.said_to_be_full(&key.user, now)
    }

    /// Whether who may share this lane has another.
    fn is_one_of_many(&self, key: &Key) -> bool {
        let same = |lane: &&Rc<Lane>| {
            !lane.closed.get() && *lane.user == *key.user && lane.own_caps == key.caps
        };
        self.group.lanes.all.borrow().iter().filter(same).count() > 1
    }

    /// The first takes long: those behind it do not wait for it. False if it is nobody's, prepared
    /// for the next time, and has taken too long for that: its own session has gone the ordinary
    /// way, and it would stay here for as long as a table is locked.
    fn is_worth_waiting_for(&self) -> bool {
        let now = self.pools.rt.now();
        let head = self
            .lane
            .flying
            .borrow()
            .front()
            .map(|head| (now - head.since, head.answer.is_none()));
        let Some((waited, nobodys)) = head.filter(|(waited, _)| *waited >= PATIENCE) else {
            return true;
        };
        self.lane.closed.set(true);
        if self.lane.len() > 1 || nobodys {
            self.group.lanes.went_badly(now);
        }
        // What they have sent is on its way already: the connection is closed behind the first.
        if self.lane.send_away(1) > 0 {
            self.lane.left_behind.set(true);
        }
        if !nobodys || waited < PREPARING_MAX {
            return true;
        }
        self.lane.killing.replace(self.lane.learner.take());
        false
    }

    /// Bytes came: each answer to whom it belongs. False when the connection is of no more use.
    fn came(&self, backend: &mut Backend, chunk: &[u8]) -> bool {
        let mut rest = chunk;
        while !rest.is_empty() {
            let mut flying = self.lane.flying.borrow_mut();
            // What nobody has asked is nobody's.
            let Some(head) = flying.front_mut().filter(|head| head.unsent.is_none()) else {
                return false;
            };
            let Ok(follow) = head.response.follow(rest) else {
                return false;
            };
            let (used, ended) = match follow {
                Follow::More => (rest.len(), false),
                Follow::Ended { used } => (used, true),
            };
            if head.drained > 0 || head.bytes.len() + used > ANSWER_LEN_MAX {
                head.drained += std::mem::take(&mut head.bytes).len() + used;
                if head.drained > DRAINED_LEN_MAX {
                    return self.overflows(flying.pop_front());
                }
            } else {
                head.bytes.extend_from_slice(&rest[..used]);
            }
            rest = &rest[used..];
            if !ended {
                return true;
            }
            let Some(head) = flying.pop_front() else {
                return false;
            };
            drop(flying);
            self.lane.sent.set(self.lane.sent.get() - 1);
            let Flying {
                what,
                answer,
                response,
                bytes,
                drained,
                since,
                ..
            } = head;
            let unchanged = self.is_unchanged(backend, what, &response);
            let plain = drained == 0 && is_plain(&response);
            // Each is measured from when it is the first.
            let now = self.pools.rt.now();
            let took = now - since;
            let landed = if plain && unchanged {
                if answer.is_some() {
                    self.pools.tally.up(Counter::StatementsInLanes);
                }
                Landed::Answer {
                    bytes,
                    response: Box::new(response),
                    took,
                }
            } else {
                Landed::Alone { unfit: true }
            };
            #[cfg(debug_assertions)]
            let answer = self.somebody_elses(answer);
            let _left_already = answer.map(|answer| answer.send(landed));
            if !unchanged {
                // What follows ran on another state than its session's.
                return false;
            }
            self.lane.took(took);
            if let Some(next) = self.lane.flying.borrow_mut().front_mut() {
                next.since = now;
            }
            if self.lane.sent.get() == 0 {
                backend.ended(chunk.len() - rest.len(), chunk.len());
            }
            if self.lane.left_behind.get() {
                return false;
            }
            self.group.lanes.went_well();
            self.lane
                .send_next(self.group.lanes.depth.get() as usize, now);
        }
        true
    }

    /// Whose answer it is, if it is not that of the one who asked.
    #[cfg(debug_assertions)]
    fn somebody_elses(
        &self,
        answer: Option<rt::local::Sender<Landed>>,
    ) -> Option<rt::local::Sender<Landed>> {
        let mut flying = self.lane.flying.borrow_mut();
        match flying.front_mut().and_then(|next| next.answer.as_mut()) {
            Some(next) if crate::planted::ANSWER_NEXT.get() => {
                answer.map(|answer| std::mem::replace(next, answer))
            }
            _ => answer,
        }
    }

    fn overflows(&self, head: Option<Flying>) -> bool {
        if let Some(answer) = head.and_then(|head| head.answer) {
            let _left_already = answer.send(Landed::Alone { unfit: true });
        }
        false
    }

    /// Whether the connection is as it was, after what its answer tells of prepared statements.
    fn is_unchanged(&self, backend: &mut Backend, what: What, response: &Response) -> bool {
        // They are the connection's while it learns.
        let with = |backend: &mut Backend, learn: &dyn Fn(&mut Backend)| {
            let here = &mut *self.lane.prepared.borrow_mut();
            std::mem::swap(here, &mut backend.prepared);
            learn(backend);
            std::mem::swap(here, &mut backend.prepared);
        };
        match (what, response.outcome()) {
            (
                What::Execution(id),
                Outcome::Err {
                    code: NEEDS_REPREPARE | UNKNOWN_STATEMENT,
                    ..
                },
            ) => {
                with(backend, &|backend| backend.forget_statement(id));
            }
            (What::Preparing(statement, max), _) => {
                if let Some(there) = response.prepared() {
                    // One that was refused stays among those that are learnt, and is not tried
                    // again here.
                    self.lane
                        .learning
                        .borrow_mut()
                        .retain(|number| *number != statement.number);
                    with(backend, &|backend| {
                        backend.learn_prepared_beside(&statement, &there, max)
                    });
                }
                return !response.is_session_track_lost()
                    && response.session_track().is_empty()
                    && backend.holds.is_empty();
            }
            _ => {}
        }
        leaves_no_trace(response)
    }
}

/// One result and nothing to tell of it.
fn is_plain(response: &Response) -> bool {
    matches!(response.outcome(), Outcome::Ok)
        && response.results() == 1
        && response.columns() > 0
        && response.warnings() == 0
}

/// The connection is as it was. Of an error nothing is known but that it was one, which changes
/// nothing in a read.
fn leaves_no_trace(response: &Response) -> bool {
    let known = match response.outcome() {
        Outcome::Ok => response.is_status_known() && response.status() & status::AUTOCOMMIT != 0,
        Outcome::Err { .. } => true,
        Outcome::LocalInfile(_) => false,
    };
    let open = status::IN_TRANS | status::IN_TRANS_READONLY | status::CURSOR_EXISTS;
    known
        && response.status() & open == 0
        && !response.is_session_track_lost()
        && response.session_track().is_empty()
}
