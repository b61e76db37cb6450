//! A connection on which statements of several sessions are in flight, in order: a lane.
//!
//! Only reads go there that may as well be asked again, and no session sees a byte before its
//! answer is whole. So whatever is not a plain, small answer ends in [`Landed::Alone`]: the session
//! asks in the ordinary way, as if nothing had been.
//!
//! ```text
//! join() ─> outgoing ─┐                    ┌─ whole, small, nothing but rows ─> Landed::Answer
//!                     ├─ the lane's task ──┤
//!                     └─ flying, in order ─┴─ anything else, late, broken ────> Landed::Alone
//! ```
//!
//! A prepared statement joins where the server knows it already. Where it does not, the lane has it
//! prepared for the next time: nobody waits for that.

use crate::connection::backend::{Backend, NOBODY};
use crate::connection::killing::Killing;
use crate::connection::lease::OpenedAs;
use crate::connection::place::Place;
use crate::hostgroup::shares::Shares;
use crate::session::key::OF_CLIENT;
use crate::session::need::{self, Foreign, Need, Ways};
use crate::session::prepared::{Bindings, Here, Prepared};
use crate::session::state::State;
use crate::session::want::Want;
use rt::local::{Bell, Receiver, Sender, oneshot};
use rt::{Address, Instant};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;
use wire::attributes::Attributes;
use wire::caps::Caps;
use wire::response::{Expect, Response};

/// An answer in a lane is at most so long: it is gathered before its session gets it.
pub const ANSWER_LEN_MAX: usize = 16 << 10;
/// Who is behind a statement that takes longer leaves the lane.
pub(crate) const PATIENCE: Duration = Duration::from_millis(50);
/// After lanes of a hostgroup had to be left, none is begun for so long.
const PAUSE: Duration = Duration::from_secs(1);
/// A statement joins those before it rather than another lane while they will be answered within
/// this. A server spends least on a statement that it finds waiting when it has answered the one
/// before, and sleeps between statements on lanes that are nearly empty.
pub(crate) const WAIT_MAX: Duration = Duration::from_millis(1);
/// A statement that has taken so many times as long as they do on the average is one that is slow
/// for once.
const STUCK_AFTER: u64 = 4;
/// The time that a statement of a lane takes is the mean of about so many.
const MEAN_OF: u64 = 16;
/// How many statements a lane has in flight at first.
const DEPTH_FIRST: u32 = 4;
/// So many may be being prepared in a lane, or have been refused there.
const LEARNT_MAX: usize = 32;
/// A client's statement that has no cursor: on a lane there is none.
const NO_CURSOR: u32 = 0;
const COM_STMT_PREPARE: u8 = 0x16;

/// End of a session's statement in a lane, with its answer or without.
#[derive(Debug)]
pub enum Landed {
    /// All of it: one result, without warnings, and nothing has changed.
    Answer {
        /// As the server sent it.
        bytes: Vec<u8>,
        /// Response, as far as it is known.
        response: Box<Response>,
        /// From when it was the first of its lane.
        took: Duration,
    },
    /// Ask in the ordinary way. `unfit`: the answer was none that may be given here, as the next
    /// will be.
    Alone {
        /// Whether the statement itself is the reason.
        unfit: bool,
    },
}

/// Statement that joins a lane.
#[derive(Clone, Copy)]
pub enum Request<'a> {
    /// A text with its attributes.
    Text(&'a [u8], &'a Attributes),
    /// An execution without a cursor of a statement that means there what it means to its session.
    Execution(Execution<'a>),
}

/// One execution of a prepared statement.
#[derive(Clone, Copy)]
pub struct Execution<'a> {
    /// Statement that is executed.
    pub statement: &'a Rc<Prepared>,
    /// Kinds of parameters that its client has bound to the statement, with this execution.
    pub bindings: &'a Bindings,
    /// Parameters that it has for its client.
    pub params: usize,
    /// Writes the payload for a server with these capabilities that knows it by this id.
    pub write: &'a dyn Fn(&mut Vec<u8>, u32, Caps),
    /// Statements that a connection may know: `mysql-max_stmts_per_connection`.
    pub max: u64,
}

impl std::fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text, _) => write!(f, "Text({})", text.escape_ascii()),
            Self::Execution(execution) => {
                write!(f, "Execution({})", execution.statement.sql.escape_ascii())
            }
        }
    }
}

/// Kind of a statement in flight.
pub(crate) enum What {
    Text,
    /// Of what the server knows by this id.
    Execution(u32),
    /// For the next time. So many may be known.
    Preparing(Rc<Prepared>, u64),
}

/// A statement in flight, or behind those that are.
pub(crate) struct Flying {
    pub(crate) what: What,
    /// Command that is still to be sent: as many statements as may be are in flight.
    pub(crate) unsent: Option<Vec<u8>>,
    joined: Instant,
    /// Whose it is; of what is prepared for the next time, nobody's.
    pub(crate) answer: Option<Sender<Landed>>,
    pub(crate) response: Response,
    pub(crate) bytes: Vec<u8>,
    /// Of an answer that is too long.
    pub(crate) drained: usize,
    /// When it became the first.
    pub(crate) since: Instant,
}

/// A connection, as those see it who share it.
pub struct Lane {
    pub(crate) place: Rc<Place>,
    local: Address,
    peer: Address,
    our_end: Address,
    thread_id: u32,
    caps: Caps,
    pub(crate) user: Rc<str>,
    pub(crate) own_caps: Caps,
    client: Option<IpAddr>,
    state: State,
    ways: Ways,
    /// Statements that the server has prepared: the connection has them back at the end.
    pub(crate) prepared: RefCell<Here>,
    /// Statements that were to be prepared here, for whoever executes them next.
    pub(crate) learning: RefCell<Vec<u64>>,
    is_mariadb: bool,
    pub(crate) outgoing: RefCell<Vec<u8>>,
    /// Commands in `outgoing`.
    pub(crate) outgoing_n: Cell<u64>,
    pub(crate) flying: RefCell<VecDeque<Flying>>,
    /// So many of them are sent.
    pub(crate) sent: Cell<usize>,
    /// Nanoseconds from answer to answer, as long as any is due.
    pace_ns: Cell<u64>,
    /// Nobody joins any more.
    pub(crate) closed: Cell<bool>,
    /// Some left it while their statements were on their way.
    pub(crate) left_behind: Cell<bool>,
    /// How the server is told to end what runs, once nobody waits for it.
    pub(crate) killing: RefCell<Option<Killing>>,
    /// Way to have the server end what is prepared for the next time, once nobody waits for it.
    pub(crate) learner: RefCell<Option<Killing>>,
    /// How it was opened.
    opened_as: OpenedAs,
    init_connect: Option<Rc<str>>,
    pub(crate) news: Bell,
}

impl std::fmt::Debug for Lane {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Lane({} in flight on {:?})",
            self.flying.borrow().len(),
            self.place
        )
    }
}

/// The lanes of a hostgroup on this core.
pub(crate) struct Lanes {
    pub(crate) all: RefCell<Vec<Rc<Lane>>>,
    /// Statements that may be in flight on each: more while all goes well, fewer when somebody had
    /// to leave.
    pub(crate) depth: Cell<u32>,
    /// Statements in flight that the configuration allows on each lane.
    pub(crate) depth_max: Cell<u32>,
    pub(crate) pause_until: Cell<Option<Instant>>,
}

/// Conditions that a statement finds that would join a lane.
pub(crate) struct May {
    /// Statements in flight on each lane.
    pub(crate) depth: usize,
    /// How long it is kept waiting at most.
    pub(crate) wait_max: Duration,
    pub(crate) now: Instant,
}

/// Lanes that a statement may join.
#[derive(Default)]
pub(crate) struct Found {
    /// How many serve it, full or not.
    pub(crate) serving: usize,
    /// The first that answers within [`WAIT_MAX`].
    pub(crate) soonest: Option<Rc<Lane>>,
    /// The one that has fewest in flight.
    pub(crate) emptiest: Option<Rc<Lane>>,
    /// Of those that are full, the one that will answer first.
    pub(crate) shortest: Option<Rc<Lane>>,
    /// One that would serve it, and whose server does not know what is executed.
    pub(crate) ignorant: Option<Rc<Lane>>,
}

impl Default for Lanes {
    fn default() -> Self {
        Self {
            all: RefCell::default(),
            depth: Cell::new(DEPTH_FIRST),
            depth_max: Cell::new(0),
            pause_until: Cell::new(None),
        }
    }
}

impl Lanes {
    /// Somebody waits for a connection: those without work give theirs back.
    pub(crate) fn ring(&self) {
        for lane in self.all.borrow().iter() {
            lane.news.ring();
        }
    }

    /// Of those that serve.
    pub(crate) fn find(
        &self,
        may: &May,
        request: &Request<'_>,
        serves: impl Fn(&Lane) -> bool,
    ) -> Found {
        let &May {
            depth,
            wait_max,
            now,
        } = may;
        let mut found = Found::default();
        for lane in self.all.borrow().iter().filter(|lane| serves(lane)) {
            if !lane.knows(request) {
                found.ignorant.get_or_insert_with(|| lane.clone());
                continue;
            }
            found.serving += 1;
            let len = lane.len();
            if len >= depth {
                let best = found
                    .shortest
                    .as_ref()
                    .and_then(|shortest: &Rc<Lane>| shortest.wait(now));
                if lane
                    .wait(now)
                    .is_some_and(|wait| wait <= wait_max && best.is_none_or(|best| wait < best))
                {
                    found.shortest = Some(lane.clone());
                }
                continue;
            }
            if found.soonest.is_none()
                && answers_soon(len, lane.pace_ns.get(), lane.head_waits(now))
            {
                found.soonest = Some(lane.clone());
            }
            if !lane.is_stuck(now, wait_max)
                && found
                    .emptiest
                    .as_ref()
                    .is_none_or(|emptiest| len < emptiest.len())
            {
                found.emptiest = Some(lane.clone());
            }
        }
        found
    }

    /// A server that has too few connections of a full hostgroup gets one that is a lane of another
    /// which has too many: the one with fewest statements runs empty. One at a time.
    pub(crate) fn give_up_for(&self, place: &Place, places: &[Rc<Place>], now: Instant) {
        let Some(shares) = Shares::of(places, now).filter(|shares| shares.is_short(place)) else {
            return;
        };
        let all = self.all.borrow();
        let of_others = || all.iter().filter(|lane| shares.is_over(&lane.place));
        if !of_others().any(|lane| lane.closed.get())
            && let Some(lane) = of_others().min_by_key(|lane| lane.len())
        {
            lane.closed.set(true);
            lane.news.ring();
        }
    }

    pub(crate) fn went_well(&self) {
        self.depth
            .set((self.depth.get() + 1).min(self.depth_max.get()));
    }

    pub(crate) fn went_badly(&self, now: Instant) {
        self.depth.set((self.depth.get() / 2).max(1));
        self.pause_until.set(Some(now + PAUSE));
    }
}

/// A statement that has joined a lane.
pub struct Joined {
    /// Where its answer comes.
    pub answer: Receiver<Landed>,
    lane: Rc<Lane>,
}

impl std::fmt::Debug for Joined {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.lane.fmt(f)
    }
}

impl Joined {
    /// The server.
    #[must_use]
    pub fn place(&self) -> &Rc<Place> {
        &self.lane.place
    }

    /// Our end of the connection.
    #[must_use]
    pub fn local(&self) -> &Address {
        &self.lane.local
    }

    /// Its end.
    #[must_use]
    pub fn peer(&self) -> &Address {
        &self.lane.peer
    }

    /// As [`Backend::our_end`].
    #[must_use]
    pub fn our_end(&self) -> &Address {
        &self.lane.our_end
    }

    /// The server's number of the connection.
    #[must_use]
    pub fn thread_id(&self) -> u32 {
        self.lane.thread_id
    }

    /// Returns the capabilities that the lane's server and we have agreed on.
    #[must_use]
    pub fn caps(&self) -> Caps {
        self.lane.caps
    }

    /// Nobody waits for this statement any more. `killing`: how it is ended on the server when
    /// nobody waits for another one there either.
    pub fn leave(self, killing: Option<Killing>) {
        let Self { answer, lane } = self;
        drop(answer);
        if let Some(killing) = killing {
            lane.killing.replace(Some(killing));
        }
        lane.news.ring();
    }
}

impl Lane {
    pub(crate) fn serves(&self, want: &Want<'_>, now: Instant) -> bool {
        let foreign = Foreign {
            statement: false,
            variables: false,
            strange: false,
        };
        !self.closed.get()
            && *self.user == *want.user
            && self.own_caps == want.caps & OF_CLIENT
            && self.client == self.place.client_of(want)
            && self.place.serves(now)
            && self
                .place
                .is_alike(&self.opened_as, self.init_connect.as_deref())
            && need::whole_need(&self.state, want.state, false, foreign, self.ways) == Need::Nothing
    }

    pub(crate) fn len(&self) -> usize {
        self.flying.borrow().len()
    }

    /// Whether the first has waited for clearly longer than one does there, and than anybody waits:
    /// who comes behind it waits with it.
    fn is_stuck(&self, now: Instant, wait_max: Duration) -> bool {
        let slow = Duration::from_nanos(self.pace_ns.get().saturating_mul(STUCK_AFTER));
        self.head_waits(now) > wait_max.max(slow)
    }

    /// How long one that joins will wait, if that can be told.
    fn wait(&self, now: Instant) -> Option<Duration> {
        let pace = Some(self.pace_ns.get()).filter(|ns| *ns > 0)?;
        Some(self.head_waits(now) + Duration::from_nanos((self.len() as u64).saturating_mul(pace)))
    }

    /// Returns the bindings that decide whether an execution finds its statement there: MariaDB
    /// reads each by its own types.
    fn sticky<'b>(&self, bindings: &'b Bindings) -> &'b Bindings {
        if self.is_mariadb {
            &Bindings::NONE
        } else {
            bindings
        }
    }

    /// Whether the server knows what is executed.
    pub(crate) fn knows(&self, request: &Request<'_>) -> bool {
        match request {
            Request::Text(..) => true,
            Request::Execution(execution) => {
                let prepared = self.prepared.borrow();
                let at = prepared.at(
                    execution.statement.number,
                    NO_CURSOR,
                    self.sticky(execution.bindings),
                );
                at.is_some_and(|at| prepared.params_at(at) == Some(execution.params))
            }
        }
    }

    /// Has the server prepare it, once: the next execution finds it there.
    pub(crate) fn learn(
        &self,
        want: &Want<'_>,
        execution: &Execution<'_>,
        depth: usize,
        now: Instant,
    ) {
        let Execution { statement, max, .. } = execution;
        let mut learning = self.learning.borrow_mut();
        let means_it =
            *statement.schema == *self.state.schema && statement.means_as_now(&self.state);
        if !means_it || learning.len() >= LEARNT_MAX || learning.contains(&statement.number) {
            return;
        }
        learning.push(statement.number);
        self.learner.replace(Some(self.killing_for(want)));
        let preparing = What::Preparing(Rc::clone(statement), *max);
        self.send(preparing, Expect::Prepare, None, depth, now, |out| {
            out.push(COM_STMT_PREPARE);
            out.extend_from_slice(statement.behind());
        });
    }

    /// How the server is told to end what this session has had sent.
    fn killing_for(&self, want: &Want<'_>) -> Killing {
        Killing {
            place: self.place.clone(),
            address: self.peer.clone(),
            our_end: self.our_end.clone(),
            thread_id: self.thread_id,
            statement_only: false,
            user: want.user.to_owned(),
            secret: want.secret.clone(),
            client: want.client,
            snapshot: want.snapshot.clone(),
        }
    }

    /// Sends it, or puts it behind what is in flight, if that is as much as may be.
    pub(crate) fn send(
        &self,
        what: What,
        expect: Expect,
        answer: Option<Sender<Landed>>,
        depth: usize,
        now: Instant,
        write: impl FnOnce(&mut Vec<u8>),
    ) {
        let sent = self.sent.get();
        let unsent = if sent < depth && sent == self.len() {
            wire::packet::append_with(&mut self.outgoing.borrow_mut(), &mut 0, write);
            self.count_sent();
            None
        } else {
            let mut unsent = Vec::new();
            wire::packet::append_with(&mut unsent, &mut 0, write);
            Some(unsent)
        };
        let response = Response::expect(expect, self.caps).to_packet(0);
        let one = Flying {
            what,
            unsent,
            joined: now,
            answer,
            response,
            bytes: Vec::new(),
            drained: 0,
            since: now,
        };
        self.flying.borrow_mut().push_back(one);
    }

    fn count_sent(&self) {
        self.outgoing_n.set(self.outgoing_n.get() + 1);
        self.sent.set(self.sent.get() + 1);
        self.news.ring();
    }

    /// Sends the next, as one has been answered. Where that has waited for too long it leaves, and
    /// those behind it do: things are not as they seemed.
    pub(crate) fn send_next(&self, depth: usize, now: Instant) {
        loop {
            let at = self.sent.get();
            let mut flying = self.flying.borrow_mut();
            let Some(next) = flying.get_mut(at).filter(|_| at < depth) else {
                return;
            };
            if now - next.joined >= PATIENCE {
                drop(flying);
                self.send_away(at);
                return;
            }
            if next.answer.as_ref().is_some_and(Sender::is_closed) {
                // Nobody waits for it any more.
                flying.remove(at);
                continue;
            }
            if at == 0 {
                next.since = now;
            }
            self.outgoing
                .borrow_mut()
                .append(&mut next.unsent.take().unwrap_or_default());
            self.count_sent();
        }
    }

    /// Of what the server [`knows`](Self::knows).
    pub(crate) fn join(
        self: &Rc<Self>,
        request: &Request<'_>,
        depth: usize,
        now: Instant,
    ) -> Option<Joined> {
        let (tell, answer) = oneshot();
        match request {
            Request::Text(text, attributes) => {
                self.send(What::Text, Expect::Query, Some(tell), depth, now, |out| {
                    wire::attributes::write_query(out, text, attributes, self.caps);
                });
            }
            Request::Execution(execution) => {
                let bindings = self.sticky(execution.bindings);
                let id = self.prepared.borrow_mut().id(
                    execution.statement.number,
                    NO_CURSOR,
                    bindings,
                )?;
                #[cfg(debug_assertions)]
                let id = if crate::planted::ANOTHER_OF_LANE.get() {
                    self.prepared.borrow().ids()[0]
                } else {
                    id
                };
                self.send(
                    What::Execution(id),
                    Expect::Execute,
                    Some(tell),
                    depth,
                    now,
                    |out| (execution.write)(out, id, self.caps),
                );
            }
        }
        Some(Joined {
            answer,
            lane: self.clone(),
        })
    }

    /// Those from this place of the row on ask elsewhere. How many of them had been sent.
    pub(crate) fn send_away(&self, from: usize) -> usize {
        let gone: Vec<Flying> = {
            let mut flying = self.flying.borrow_mut();
            let from = from.min(flying.len());
            flying.drain(from..).collect()
        };
        let n = self.sent.get().saturating_sub(from);
        self.sent.set(self.sent.get() - n);
        for one in gone {
            if let What::Preparing(statement, _) = &one.what {
                self.learning
                    .borrow_mut()
                    .retain(|number| *number != statement.number);
            }
            let _gone_already = one
                .answer
                .map(|answer| answer.send(Landed::Alone { unfit: false }));
        }
        n
    }

    /// How long the first has been that.
    fn head_waits(&self, now: Instant) -> Duration {
        self.flying
            .borrow()
            .front()
            .map_or(Duration::ZERO, |head| now - head.since)
    }

    /// One was answered so long after it came first.
    pub(crate) fn took(&self, time: Duration) {
        let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let mean = self.pace_ns.get();
        let sum = mean.saturating_mul(MEAN_OF - 1).saturating_add(time);
        self.pace_ns
            .set(if mean == 0 { time } else { sum / MEAN_OF }.max(1));
    }

    /// Whether somebody has asked here, and nobody waits for it any more.
    pub(crate) fn is_left(&self) -> bool {
        self.flying.borrow().iter().any(|one| one.answer.is_some()) && self.nobody_waits()
    }

    /// Whether all that is in flight is nobody's, or not any more.
    pub(crate) fn nobody_waits(&self) -> bool {
        self.flying
            .borrow()
            .iter()
            .all(|one| one.answer.as_ref().is_none_or(Sender::is_closed))
    }

    /// Returns the lane that a connection becomes. Its prepared statements are the lane's until its end.
    pub(crate) fn of(backend: &mut Backend) -> Self {
        backend.lasting.last_session = NOBODY;
        backend.lasting.warnings_left = true;
        Self {
            place: backend.place.clone(),
            local: backend.conn.socket().local(),
            peer: backend.conn.socket().peer(),
            our_end: backend.our_end(),
            thread_id: backend.hello.thread_id,
            caps: backend.hello.caps,
            user: backend.key.user.clone(),
            own_caps: backend.key.caps,
            client: backend.key.client,
            state: backend.state.clone(),
            ways: backend.lasting.ways,
            prepared: RefCell::new(std::mem::take(&mut backend.prepared)),
            learning: RefCell::default(),
            is_mariadb: backend.hello.is_mariadb(),
            outgoing: RefCell::default(),
            outgoing_n: Cell::new(0),
            flying: RefCell::default(),
            sent: Cell::new(0),
            pace_ns: Cell::new(0),
            closed: Cell::new(false),
            left_behind: Cell::new(false),
            killing: RefCell::default(),
            learner: RefCell::default(),
            opened_as: backend.lasting.opened_as.clone(),
            init_connect: backend.init_connect.clone(),
            news: Bell::new(),
        }
    }
}

/// Whether a statement behind so many, each of which takes so long, is not kept waiting; the first
/// of them has waited for its answer for so long already. Where the time is not known yet, behind
/// none.
fn answers_soon(before: usize, pace_ns: u64, head_waits: Duration) -> bool {
    let each = (before as u64).saturating_mul(pace_ns);
    before == 0 || pace_ns > 0 && each <= WAIT_MAX.as_nanos() as u64 && head_waits <= WAIT_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quick_statements_share_a_lane_and_slow_ones_find_another() {
        let soon = |before, pace_ns| answers_soon(before, pace_ns, Duration::ZERO);
        assert!(soon(0, 0), "an empty lane answers at once");
        assert!(!soon(1, 0), "nobody knows how long the first takes");
        // Point selects at 25 µs, and reads of half a millisecond.
        assert!(soon(40, 25_000) && !soon(41, 25_000));
        assert!(soon(2, 500_000) && !soon(3, 500_000));
        assert!(!soon(1, u64::MAX));
        // One that is slow for once has nobody join behind it.
        assert!(!answers_soon(1, 25_000, Duration::from_millis(2)));
    }

    #[test]
    fn nobody_joins_behind_one_that_is_slow_for_once_while_another_lane_answers() {
        crate::testing::with_several(|_rt, _pools, place| async move {
            let at = |us: u64| Instant::from_ns(us * 1000);
            let text = Request::Text(b"SELECT 1", &Attributes::NONE);
            let lane = |in_flight: u64, since: u64| {
                let lane = Rc::new(Lane {
                    place: place.clone(),
                    local: "10.0.0.1:1".parse().unwrap(),
                    peer: "10.0.0.1:2".parse().unwrap(),
                    our_end: "10.0.0.1:1".parse().unwrap(),
                    thread_id: 1,
                    caps: 0,
                    user: "app".into(),
                    own_caps: 0,
                    client: None,
                    state: State::new("", 45),
                    ways: Ways::of_login(crate::session::state::Collations::Mysql, 0, 0),
                    prepared: RefCell::default(),
                    learning: RefCell::default(),
                    is_mariadb: true,
                    outgoing: RefCell::default(),
                    outgoing_n: Cell::new(0),
                    flying: RefCell::default(),
                    sent: Cell::new(0),
                    pace_ns: Cell::new(300_000),
                    closed: Cell::new(false),
                    left_behind: Cell::new(false),
                    killing: RefCell::default(),
                    learner: RefCell::default(),
                    opened_as: place.opened_as(),
                    init_connect: None,
                    news: Bell::new(),
                });
                for _ in 0..in_flight {
                    drop(lane.join(&text, 16, at(since)));
                }
                lane
            };
            let found_when = |lanes: &[&Rc<Lane>], now, wait_us| {
                let all = Lanes::default();
                all.all
                    .borrow_mut()
                    .extend(lanes.iter().map(|lane| Rc::clone(lane)));
                let may = May {
                    depth: 16,
                    wait_max: Duration::from_micros(wait_us),
                    now: at(now),
                };
                all.find(&may, &text, |_| true)
            };
            let found = |lanes: &[&Rc<Lane>], now| found_when(lanes, now, 1_000);
            let (slow, busy) = (lane(1, 0), lane(6, 4_500));
            let one = found(&[&slow, &busy], 5_000);
            assert!(one.soonest.is_none() && one.serving == 2);
            assert!(one.emptiest.is_some_and(|lane| Rc::ptr_eq(&lane, &busy)));
            assert!(found(&[&slow], 5_000).emptiest.is_none());
            assert!(found(&[&slow], 1_100).emptiest.is_some());
            // It is no faster elsewhere.
            assert!(found_when(&[&slow], 5_000, 6_000).emptiest.is_some());
            // What is full is waited for as long as the statement may: 17 at 300 us each, or 20.
            let (full, fuller) = (lane(17, 5_000), lane(20, 5_000));
            let both = |elsewhere| found_when(&[&fuller, &full], 5_000, elsewhere);
            assert!(
                both(5_000).shortest.is_none()
                    && both(5_100).soonest.is_none()
                    && both(5_100).emptiest.is_none()
            );
            assert!(
                both(9_000)
                    .shortest
                    .is_some_and(|lane| Rc::ptr_eq(&lane, &full))
            );
            assert_eq!(full.wait(at(5_000)), Some(Duration::from_micros(5_100)));
            full.pace_ns.set(0);
            assert!(
                both(9_000)
                    .shortest
                    .is_some_and(|lane| Rc::ptr_eq(&lane, &fuller)),
                "nobody knows how long the other takes"
            );
            // Of 17, one is not sent before another is answered; and what has waited for too long
            // is not sent at all.
            let unsent = |lane: &Lane| {
                lane.flying
                    .borrow()
                    .iter()
                    .filter(|one| one.unsent.is_some())
                    .count()
            };
            assert_eq!(
                (
                    unsent(&full),
                    full.sent.get(),
                    unsent(&fuller),
                    fuller.sent.get()
                ),
                (1, 16, 4, 16)
            );
            fuller.flying.borrow_mut().pop_front();
            fuller.sent.set(15);
            fuller
                .flying
                .borrow_mut()
                .iter_mut()
                .for_each(|one| one.answer = None);
            // A deeper lane has nobody go before those who wait.
            drop(fuller.join(&text, 32, at(5_100)));
            assert_eq!((unsent(&fuller), fuller.sent.get()), (5, 15));
            fuller.send_next(16, at(5_200));
            assert_eq!((unsent(&fuller), fuller.sent.get()), (4, 16));
            fuller.send_next(17, at(60_000));
            assert_eq!(
                (unsent(&fuller), fuller.sent.get(), fuller.len()),
                (0, 16, 16)
            );
        });
    }
}
