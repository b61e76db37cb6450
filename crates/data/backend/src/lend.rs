//! Idle connections that go from one core to another: who has none and needs one asks, who has one
//! that fits sends it.
//!
//! A connection is asked for by the first of a line only, and by who is about to open one although
//! other cores have some. What is sent joins the idle connections of the core that asked; its
//! permit travels with it.

use crate::acquire::{LEND_WAY, LOOK_AGAIN};
use crate::backend::{Backend, Idle};
use crate::chooser::in_turn;
use crate::hold::Holds;
use crate::key::{Key, OF_CLIENT};
use crate::lease::{Lasting, Lease, Local, Unreported};
use crate::place::Place;
use crate::pools::{Group, Pools};
use crate::prepared::Here;
use crate::room::Room;
use crate::slots::Slots;
use crate::state::{Names, State, UserValue, UserVariables, Variables};
use crate::want::Want;
use bridge::Counter;
use net::{Hello, Parted};
use rt::local::Notify;
use rt::{Instant, NotHanded, Rt};
use std::cell::{Cell, RefCell};
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use wire::caps::Caps;

/// So long who could open a connection waits for the answers of the others.
const ANSWER: Duration = Duration::from_millis(5);
/// So long a wish that could not be granted is remembered: who still waits asks again before.
const REMEMBERED: Duration = Duration::from_millis(60);
/// So long after somebody has begun to wait, what it asks may not have been heard yet.
const JUST_NOW: Duration = Duration::from_millis(10);
/// So long what came for a copy is not sent on to another core's: whoever waits for it here looks
/// again within.
const FOR_A_COPY: Duration = LOOK_AGAIN.saturating_mul(2);
/// Wishes of other cores that a hostgroup remembers.
const WISHES_MAX: usize = 64;

/// Message from one core's pools to another's.
#[derive(Debug)]
pub enum Word {
    /// Somebody waits for an idle connection.
    Wanted(Wanted),
    /// Here is one.
    Lent(Box<Lent>),
    /// There is none to spare: the number of the wish.
    NotLent(u64),
    /// A server has said what it can do.
    Met(Met),
    /// A server has no room for another prepared statement: a number of whoever waits for it.
    Crowded(Crowded, u64),
    /// Answer to [`Word::Crowded`], with its number: what nobody needed there was closed.
    Uncrowded(u64),
    /// A slot of a hostgroup's server is free.
    Slot(u32),
    /// The last who waits for a hostgroup is to leave.
    Shed(u32),
}

/// A server that has as many prepared statements as it may.
#[derive(Debug, Clone)]
pub struct Crowded {
    pub(crate) host: Arc<str>,
    pub(crate) port: u16,
    /// How many those are, as far as it says so.
    pub(crate) allowed: Option<u32>,
}

/// Word of what a server's greeting has told, to whoever has not met it.
#[derive(Debug, Clone)]
pub struct Met {
    host: Arc<str>,
    port: u16,
    bulk: bool,
}

/// Connection that somebody waits for.
#[derive(Debug, Clone)]
pub struct Wanted {
    hostgroup: u32,
    /// Of this server, whose turn it is; of any if `None`.
    at: Option<(Arc<str>, u16)>,
    pub(crate) user: Arc<str>,
    caps: Caps,
    /// Of the asking core; 0 when nobody waits for the answer itself.
    number: u64,
    why: Why,
}

/// Why somebody asks the other cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    /// Wish for a connection in place of a new one: the asking core would open one.
    Spare,
    /// For a copy, of which no client may know.
    Copies,
    /// No room is left at its servers: one that fits nobody is to be closed for it.
    NoRoom,
    /// So many were opened in this second. Nothing is to be closed for that; what comes free is for
    /// it before those who have waited less.
    Pace {
        /// Since when it waits.
        since: Instant,
    },
}

/// A connection on its way. Dropped, it is closed and its permit given back.
pub struct Lent {
    conn: Option<Parted>,
    permit: Option<Room>,
    hostgroup: u32,
    host: Arc<str>,
    port: u16,
    at: Option<IpAddr>,
    hello: Hello,
    user: Box<str>,
    caps: Caps,
    /// Nothing holds it: modes are all that there is.
    holds: Holds,
    /// None once it has arrived.
    state: Option<SentState>,
    init_connect: Option<Box<str>>,
    /// Number of the first slot: the names there are used again from it on.
    first_slot: u32,
    lasting: Lasting,
    number: u64,
}

impl std::fmt::Debug for Lent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Lent({} {}:{})", self.hostgroup, self.host, self.port)
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(permit) = self.permit.take() {
            permit.give();
        }
    }
}

/// [`Names`] between threads.
#[derive(Debug)]
enum SentNames {
    Collation(u16),
    Written(Box<str>),
    Unknown,
}

impl From<&Names> for SentNames {
    fn from(names: &Names) -> Self {
        match names {
            Names::Collation(id) => Self::Collation(*id),
            Names::Written(words) => Self::Written((&**words).into()),
            Names::Unknown => Self::Unknown,
        }
    }
}

impl From<&SentNames> for Names {
    fn from(names: &SentNames) -> Self {
        match names {
            SentNames::Collation(id) => Self::Collation(*id),
            SentNames::Written(words) => Self::Written((&**words).into()),
            SentNames::Unknown => Self::Unknown,
        }
    }
}

/// A user variable between threads.
#[derive(Debug)]
struct SentValue {
    name: Box<str>,
    literal: Box<str>,
    names: Option<SentNames>,
    null: bool,
}

/// [`State`] between threads.
#[derive(Debug)]
struct SentState {
    schema: Box<str>,
    names: SentNames,
    autocommit: bool,
    variables: Option<Variables>,
    user: Vec<SentValue>,
}

impl From<&State> for SentState {
    fn from(state: &State) -> Self {
        let State {
            schema,
            names,
            autocommit,
            variables,
            user: _,
        } = state;
        let sent = |(name, value): (&str, &UserValue)| SentValue {
            name: name.into(),
            literal: value.literal.clone(),
            names: value.names.as_ref().map(SentNames::from),
            null: value.null,
        };
        Self {
            schema: (&**schema).into(),
            names: SentNames::from(names),
            autocommit: *autocommit,
            variables: variables.as_deref().cloned(),
            user: state.user_variables().map(sent).collect(),
        }
    }
}

impl From<SentState> for State {
    fn from(sent: SentState) -> Self {
        let SentState {
            schema,
            names,
            autocommit,
            variables,
            user,
        } = sent;
        let value = |sent: SentValue| {
            let value = UserValue {
                literal: sent.literal,
                names: sent.names.as_ref().map(Names::from),
                null: sent.null,
            };
            (sent.name, value)
        };
        let user: UserVariables = user.into_iter().map(value).collect();
        Self {
            schema: (&*schema).into(),
            names: Names::from(&names),
            autocommit,
            variables: variables.map(Rc::new),
            user: (!user.is_empty()).then(|| Rc::new(user)),
        }
    }
}

/// The other cores, as the pools of this one reach them. By default there are none.
#[derive(Default)]
pub(crate) struct Neighbours {
    /// Says a word to a core; whether it was left there.
    speak: RefCell<Option<Speak>>,
    others: RefCell<Vec<u32>>,
    last: Cell<u64>,
    /// Who waits for answers.
    asked: RefCell<Vec<Rc<Asked>>>,
}

/// Says a word to a core of this index, and whether that was possible.
pub type Speak = Box<dyn Fn(u32, Word) -> Result<(), ()>>;

impl Neighbours {
    /// How many cores there are, ours included.
    pub(crate) fn cores(&self) -> usize {
        self.others.borrow().len() + 1
    }

    /// Their indexes.
    pub(crate) fn others(&self) -> Vec<u32> {
        self.others.borrow().clone()
    }

    pub(crate) fn say(&self, to: u32, word: Word) -> Result<(), ()> {
        self.speak
            .borrow()
            .as_ref()
            .map_or(Err(()), |speak| speak(to, word))
    }
}

/// Somebody who waits for answers.
#[derive(Default)]
pub(crate) struct Asked {
    number: u64,
    unanswered: Cell<usize>,
    bell: Notify,
}

impl Asked {
    /// One more is to answer.
    pub(crate) fn is_expected(&self) {
        self.unanswered.set(self.unanswered.get() + 1);
    }

    /// One has.
    pub(crate) fn answer(&self) {
        self.unanswered.set(self.unanswered.get().saturating_sub(1));
        self.bell.notify_one();
    }

    /// Returns when all have, or it takes too long.
    pub(crate) async fn all_answered(&self, rt: &Rt, within: Duration) {
        let until = rt.now() + within;
        while self.unanswered.get() > 0 && rt.now() < until {
            let _late = rt.timeout(until - rt.now(), self.bell.wait()).await;
        }
    }
}

/// A wish of another core.
struct Wish {
    core: u32,
    wanted: Wanted,
    at: Instant,
}

/// Wishes that other cores have of a hostgroup.
#[derive(Default)]
pub(crate) struct Wishes(RefCell<Vec<Wish>>);

impl Wishes {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    fn remember(&self, core: u32, wanted: Wanted, now: Instant) {
        let mut all = self.0.borrow_mut();
        // One for each core, reason and kind: who waits first there.
        let same = |wish: &Wish| {
            let (one, other) = (&wish.wanted, &wanted);
            let reason = std::mem::discriminant(&one.why) == std::mem::discriminant(&other.why);
            wish.core == core && reason && one.caps == other.caps && one.user == other.user
        };
        all.retain(|wish| !same(wish) && now - wish.at < REMEMBERED);
        if all.len() < WISHES_MAX {
            all.push(Wish {
                core,
                wanted,
                at: now,
            });
        }
    }

    /// Whether somebody there waits for the pace, whom a connection of this kind would serve.
    pub(crate) fn wants(&self, key: &Key, now: Instant) -> bool {
        let is_wanted = |wish: &Wish| {
            let wanted = &wish.wanted;
            matches!(wanted.why, Why::Pace { .. })
                && now - wish.at < REMEMBERED
                && key.client.is_none()
                && key.caps == wanted.caps
                && *key.user == *wanted.user
        };
        self.0.borrow().iter().any(is_wanted)
    }

    /// The oldest wish that this connection would grant, of those that are older than who waits
    /// here since then: `room` says it of those who want room.
    fn take_for(
        &self,
        backend: &Backend,
        now: Instant,
        room: bool,
        since: Option<Instant>,
    ) -> Option<(u32, Wanted)> {
        let mut all = self.0.borrow_mut();
        if all.is_empty() {
            return None;
        }
        all.retain(|wish| now - wish.at < REMEMBERED);
        let is_first = |why| match why {
            Why::Pace { since: theirs } => since.is_none_or(|since| theirs + LEND_WAY < since),
            Why::Spare | Why::Copies | Why::NoRoom => room,
        };
        let at = all
            .iter()
            .position(|wish| is_first(wish.wanted.why) && is_fit(backend, &wish.wanted))?;
        let wish = all.remove(at);
        Some((wish.core, wish.wanted))
    }
}

/// Could the session that asks bring its state there? Whoever takes it there says that in the end.
fn is_fit(backend: &Backend, wanted: &Wanted) -> bool {
    backend.key.caps == wanted.caps && *backend.key.user == *wanted.user && may_travel(backend)
}

/// Whether a connection may go to another core. What only this core can know does not travel; nor
/// does a compressed stream, nor what was opened for the clients of one address.
fn may_travel(backend: &Backend) -> bool {
    backend.key.client.is_none()
        && backend.local.owned.is_none()
        && backend.local.unreported == Unreported::Nothing
        && !backend.local.strange_variables
        && backend.conn.compression().is_none()
}

impl Pools {
    /// There are other cores, `others` by their indexes, and this is how they are spoken to.
    pub fn meet(&self, others: Vec<u32>, speak: Speak) {
        self.neighbours.others.replace(others);
        self.neighbours.speak.replace(Some(speak));
    }

    /// A core has said this.
    pub fn hear(self: &Rc<Self>, from: u32, word: Word) {
        match word {
            Word::Wanted(wanted) => self.wanted(from, wanted),
            Word::Lent(lent) => self.arrived(*lent),
            Word::NotLent(number) => self.answered(number),
            Word::Met(met) => self.heard_of(&met.host, met.port, met.bulk),
            Word::Crowded(crowded, number) => self.hear_of_crowd(from, crowded, number),
            Word::Uncrowded(number) => self.answered(number),
            Word::Slot(hostgroup) => self.hear_of_slot(hostgroup),
            Word::Shed(hostgroup) => self.hear_of_shedding(hostgroup),
        }
    }

    /// Tells all others what a server can do.
    pub(crate) fn tell_of(&self, host: &Arc<str>, port: u16, bulk: bool) {
        for core in self.neighbours.others.borrow().iter() {
            // Who cannot be told meets the server in the end.
            let _full = self.neighbours.say(
                *core,
                Word::Met(Met {
                    host: host.clone(),
                    port,
                    bulk,
                }),
            );
        }
    }

    /// Asks all others. Nobody waits for the answers: what comes joins the idle connections here,
    /// and the line is called.
    pub(crate) fn ask_for(&self, want: &Want<'_>, why: Why) {
        if !want.new_connection {
            self.ask(want, None, 0, why);
        }
    }

    /// Asks all others for one that they do not need, in the same way.
    pub(crate) fn ask_to_spare(&self, want: &Want<'_>) {
        self.ask(want, None, 0, Why::Copies);
    }

    /// Whether some other core may have a connection to the server, for which room was just taken.
    pub(crate) fn others_have(&self, place: &Place) -> bool {
        self.taken_elsewhere(place) > 1 && !self.neighbours.others.borrow().is_empty()
    }

    /// Whether some other core may have a connection to the server.
    pub(crate) fn others_have_one_of(&self, place: &Place) -> bool {
        self.taken_elsewhere(place) > 0 && !self.neighbours.others.borrow().is_empty()
    }

    /// Connections to the server that are none of this core's, be it that they are being opened.
    fn taken_elsewhere(&self, place: &Place) -> u64 {
        let own = place.numbers.used.get() + place.idle.borrow().len() as u64;
        u64::from(place.taken()).saturating_sub(own)
    }

    /// Asks all others for a connection to this server, and waits a moment for what comes.
    pub(crate) async fn borrow(&self, place: &Rc<Place>, want: &Want<'_>) -> Option<Box<Backend>> {
        let asking = self.begin_asking();
        let asked = &asking.asked;
        let at = (place.host().clone(), place.server().port);
        asked
            .unanswered
            .set(self.ask(want, Some(at), asked.number, Why::Spare));
        let until = self.rt.now() + ANSWER;
        while asked.unanswered.get() > 0 && self.rt.now() < until {
            let _late = self
                .rt
                .timeout(until - self.rt.now(), asked.bell.wait())
                .await;
            if let Some(backend) = self.take_from(place, want) {
                return Some(backend);
            }
        }
        None
    }

    /// Somebody is about to ask the other cores.
    pub(crate) fn begin_asking(&self) -> Asking<'_> {
        let number = self.neighbours.last.get() + 1;
        self.neighbours.last.set(number);
        let asked = Rc::new(Asked {
            number,
            ..Asked::default()
        });
        self.neighbours.asked.borrow_mut().push(asked.clone());
        Asking { pools: self, asked }
    }

    /// As if a core that waits had asked.
    #[cfg(test)]
    pub(crate) fn hear_of_a_wish(&self, hostgroup: u32) {
        self.wanted(
            1,
            Wanted {
                hostgroup,
                at: None,
                user: "app".into(),
                caps: 0,
                number: 0,
                why: Why::NoRoom,
            },
        );
    }

    /// How many were asked.
    fn ask(&self, want: &Want<'_>, at: Option<(Arc<str>, u16)>, number: u64, why: Why) -> usize {
        let speak = self.neighbours.speak.borrow();
        let Some(speak) = speak.as_ref() else {
            return 0;
        };
        let now = self.rt.now();
        if !self
            .group(want.hostgroup)
            .places
            .borrow()
            .iter()
            .any(|place| place.serves(now))
        {
            // What would be lent could not be used here.
            return 0;
        }
        let wanted = Wanted {
            hostgroup: want.hostgroup,
            at,
            user: want.user.into(),
            caps: want.caps & OF_CLIENT,
            number,
            why,
        };
        let others = self.neighbours.others.borrow();
        others
            .iter()
            .filter(|core| speak(**core, Word::Wanted(wanted.clone())).is_ok())
            .count()
    }

    /// Another core wants one.
    fn wanted(&self, from: u32, wanted: Wanted) {
        let group = self.groups.borrow().get(&wanted.hostgroup).cloned();
        let refuse = |wanted: &Wanted| {
            if wanted.number != 0 {
                // Who cannot be told waits a little longer.
                let _full = self.neighbours.say(from, Word::NotLent(wanted.number));
            }
        };
        let Some(group) = group else {
            return refuse(&wanted);
        };
        let now = self.rt.now();
        let just_came = || {
            group
                .spare_came
                .get()
                .is_some_and(|came| now - came < FOR_A_COPY)
        };
        if wanted.why == Why::Copies && (!group.has_spare() || just_came()) {
            return;
        }
        let is_offered = || {
            group.paced.is_offered(
                &Key {
                    user: (&*wanted.user).into(),
                    caps: wanted.caps,
                    client: None,
                },
                now,
            )
        };
        let wanted_here = !group.queue.is_empty() || !group.paced.is_empty() && is_offered();
        let spare = if wanted_here {
            None
        } else {
            self.spare(&group, &wanted)
        };
        if let Some(backend) = spare {
            return self.lend(from, backend, wanted.number);
        }
        refuse(&wanted);
        if !wanted_here && wanted.why != Why::Copies {
            // What it leaves is lent when it is given back.
            let key = Key {
                user: (&*wanted.user).into(),
                caps: wanted.caps,
                client: None,
            };
            let _one_less = group.lingering.press(now, &key)
                || matches!(wanted.why, Why::NoRoom) && group.lingering.press_any(now);
        }
        match wanted.why {
            Why::Spare => return,
            Why::Copies => {
                if !wanted_here {
                    self.make_room(&group, FOR_A_COPY);
                }
                return;
            }
            Why::NoRoom if !wanted_here => self.make_room(&group, Duration::ZERO),
            Why::NoRoom | Why::Pace { .. } => {}
        }
        group.wishes.remember(from, wanted, now);
    }

    /// The idle connection that was used longest ago, of those that fit.
    fn spare(&self, group: &Group, wanted: &Wanted) -> Option<Box<Backend>> {
        let now = self.rt.now();
        let places = group.places.borrow();
        let is_meant = |place: &Place| {
            let at = wanted.at.as_ref();
            let is_it = at.is_none_or(|(host, port)| {
                **host == **place.host() && *port == place.server().port
            });
            is_it && place.serves(now)
        };
        for place in in_turn(&places, is_meant) {
            let mut idle = place.idle.borrow_mut();
            if let Some(at) = idle
                .iter()
                .position(|backend| is_fit(backend, wanted) && backend.conn.is_idle())
            {
                return Some(idle.remove(at));
            }
        }
        None
    }

    /// One that fits nobody there, or cannot go there, keeps others out. Idle for so long, nobody
    /// here is about to take it.
    fn make_room(&self, group: &Group, idle_for: Duration) {
        let now = self.rt.now();
        for place in group.places.borrow().iter() {
            let full = place.is_full();
            let mut idle = place.idle.borrow_mut();
            if full
                && idle
                    .first()
                    .is_some_and(|first| now - first.lasting.since >= idle_for)
            {
                self.tally.up(Counter::MyhgmPoolDestroy);
                drop(idle.remove(0));
                return;
            }
        }
    }

    /// A connection that was just given back: to the core that has waited for it, if one has for
    /// longer than who waits here since then. `room`: others have, for room.
    pub(crate) fn pass_on(
        &self,
        group: &Group,
        backend: Box<Backend>,
        room: bool,
        since: Option<Instant>,
    ) -> Option<Box<Backend>> {
        match group.wishes.take_for(&backend, self.rt.now(), room, since) {
            Some((core, wanted)) => {
                self.lend(core, backend, wanted.number);
                None
            }
            None => Some(backend),
        }
    }

    /// Who waits elsewhere has begun just now. What it asks is on its way, and the connection is
    /// lent to it, or closed for it, when that is heard.
    pub(crate) fn is_about_to_be_asked_for(
        &self,
        group: &Group,
        place: &Place,
        backend: &Backend,
    ) -> bool {
        let now = self.rt.now().as_ns();
        let just_now = |since: u64| now.saturating_sub(since) < JUST_NOW.as_nanos() as u64;
        group.wishes.is_empty()
            && may_travel(backend)
            && place
                .room
                .of_server
                .waits_elsewhere(self.line)
                .is_some_and(just_now)
    }

    fn lend(&self, to: u32, mut backend: Box<Backend>, number: u64) {
        let (neighbours, tally) = (self.neighbours.clone(), self.tally.clone());
        let group = self.group(backend.place.server().hostgroup);
        self.rt.spawn(async move {
            let conn = match backend.conn.part().await {
                Ok(conn) => conn,
                Err(why) => {
                    if why == NotHanded::Stays && backend.place.keeps() {
                        // This process has no descriptor to lend it with: it goes on serving here.
                        let (place, key) = (backend.place.clone(), backend.key.clone());
                        place.idle.borrow_mut().push(backend);
                        group.paced.offer(&key);
                    } else {
                        // It has spoken unasked, or is over. Its permit is free now.
                        drop(backend);
                    }
                    group.queue.call();
                    let _full = neighbours.say(to, Word::NotLent(number));
                    return;
                }
            };
            let lent = Box::new(Lent::of(&mut backend, conn, number));
            drop(backend);
            tally.up(Counter::ServerConnectionsLent);
            // If it cannot be said, the connection is closed, and its permit free.
            let _full = neighbours.say(to, Word::Lent(lent));
        });
    }

    /// Another core has sent one.
    fn arrived(&self, mut lent: Lent) {
        #[cfg(feature = "planted")]
        if crate::planted::FORGET_LENT.get() {
            if let Some(state) = &mut lent.state {
                (state.variables, state.user) = (None, Vec::new());
            }
        }
        let group = self.group(lent.hostgroup);
        let number = lent.number;
        let place = group
            .places
            .borrow()
            .iter()
            .find(|place| place.is_of(&lent.host, lent.port, lent.at))
            .cloned();
        // A LOAD may have lowered a limit while it was on its way.
        let may_stay = |place: &Rc<Place>| {
            place.keeps()
                && !place.is_over()
                && place.is_alike(&lent.lasting.opened_as, lent.init_connect.as_deref())
        };
        if let Some(place) = place.filter(may_stay)
            && let Some(state) = lent.state.take()
            && let Some(conn) = lent.conn.take().and_then(|conn| conn.adopt(&self.rt).ok())
        {
            self.note_greeting(&place, &lent.hello);
            let backend = Backend {
                conn,
                hello: lent.hello.clone(),
                holds: lent.holds,
                idle: Idle::Proven,
                interrupted: false,
                place: place.clone(),
                key: Key {
                    user: (&*lent.user).into(),
                    caps: lent.caps,
                    client: None,
                },
                told_client: None,
                state: state.into(),
                init_connect: lent.init_connect.take().map(|text| (&*text).into()),
                prepared: Here::default(),
                slots: Slots::beginning_at(lent.first_slot),
                retired: false,
                tally: self.tally.clone(),
                in_use: false,
                slot: None,
                lent: false,
                local: Local::after(&lent.lasting),
                lasting: lent.lasting.clone(),
                lease: Lease::default(),
            };
            self.tally.up(Counter::ServerConnectionsConnected);
            // The permit is the new one's.
            lent.permit = None;
            let key = backend.key.clone();
            place.idle.borrow_mut().push(Box::new(backend));
            if number == 0 {
                // Else it is for who asked.
                group.paced.offer(&key);
            }
            let now = self.rt.now();
            if group
                .asked_for_spare
                .get()
                .is_some_and(|asked| now - asked < FOR_A_COPY)
            {
                group.spare_came.set(Some(now));
            }
        }
        drop(lent);
        group.queue.call();
        self.answered(number);
    }

    /// One of those that were asked has answered.
    fn answered(&self, number: u64) {
        let asked = self
            .neighbours
            .asked
            .borrow()
            .iter()
            .find(|asked| asked.number == number)
            .cloned();
        if let Some(asked) = asked {
            asked.answer();
        }
    }
}

impl Lent {
    fn of(backend: &mut Backend, conn: Parted, number: u64) -> Self {
        // Statements that are prepared there are this core's to know.
        backend.close_all_prepared();
        // Its permit is not given back when the rest of it is dropped.
        backend.lent = true;
        let server = backend.place.server();
        Self {
            conn: Some(conn),
            permit: Some(backend.place.room.clone()),
            hostgroup: server.hostgroup,
            host: backend.place.host().clone(),
            port: server.port,
            at: backend.place.at(),
            hello: backend.hello.clone(),
            user: (&*backend.key.user).into(),
            caps: backend.key.caps,
            holds: Holds::with_modes(backend.holds.modes(), backend.state.autocommit),
            state: Some(SentState::from(&backend.state)),
            init_connect: backend.init_connect.as_deref().map(Into::into),
            first_slot: backend.slots.first(),
            lasting: backend.lasting.clone(),
            number,
        }
    }
}

/// Who asks is forgotten when it does not wait any more.
pub(crate) struct Asking<'a> {
    pools: &'a Pools,
    pub(crate) asked: Rc<Asked>,
}

impl Asking<'_> {
    /// Tells all other cores; each is to answer.
    pub(crate) fn tell_all(&self, word: impl Fn(u64) -> Word) {
        let neighbours = &self.pools.neighbours;
        for core in neighbours.others.borrow().iter() {
            if neighbours.say(*core, word(self.asked.number)).is_ok() {
                self.asked.is_expected();
            }
        }
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        let number = self.asked.number;
        self.pools
            .neighbours
            .asked
            .borrow_mut()
            .retain(|asked| asked.number != number);
    }
}
