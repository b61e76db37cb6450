//! Idle connections that go from one core to another: who has none and needs one asks, who has one
//! that fits sends it.
//!
//! A connection is asked for by the first of a line only, and by who is about to open one although
//! other cores have some. What is sent joins the idle connections of the core that asked; its
//! permit travels with it.

use crate::Unreported;
use crate::acquire::{LEND_WAY, LOOK_AGAIN};
use crate::backend::{Backend, Idle, Key};
use crate::connect::OF_CLIENT;
use crate::place::{OpenedAs, Place};
use crate::pools::{Group, Pools, Want};
use crate::prepared::Here;
use crate::room::Room;
use crate::slots::Slots;
use crate::state::{UserValue, UserVariables, Variables};
use crate::sync::Ways;
use crate::track::Told;
use crate::{Holds, Names, State};
use bridge::Counter;
use net::{Hello, Parted};
use rt::local::Notify;
use rt::{Instant, NotHanded};
use std::cell::{Cell, RefCell};
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

/// What one core's pools say to another's.
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
}

/// What a server's greeting has told, to whoever has not met it.
#[derive(Debug, Clone)]
pub struct Met {
    host: Arc<str>,
    port: u16,
    bulk: bool,
}

/// What somebody waits for.
#[derive(Debug, Clone)]
pub struct Wanted {
    hostgroup: u32,
    pub(crate) user: Arc<str>,
    caps: Caps,
    /// Of the asking core; 0 when nobody waits for the answer itself.
    number: u64,
    why: Why,
}

/// Why somebody asks the other cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    /// It would open one.
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
    opened_as: OpenedAs,
    hello: Hello,
    user: Box<str>,
    caps: Caps,
    schema: Box<str>,
    names: SentNames,
    autocommit: bool,
    variables: Option<Variables>,
    user_variables: Vec<SentValue>,
    ways: Ways,
    init_connect: Option<Box<str>>,
    closing: Vec<u8>,
    several: bool,
    /// Number of the first slot: the names there are used again from it on.
    first_slot: u32,
    modes: u16,
    tracking: Option<Arc<Told>>,
    told_of_transactions: bool,
    last_session: u64,
    drew: u64,
    warnings_left: bool,
    insert_id: Option<u64>,
    opened: Instant,
    since: Instant,
    pinged: Instant,
    queries: u64,
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

    fn say(&self, to: u32, word: Word) -> Result<(), ()> {
        self.speak
            .borrow()
            .as_ref()
            .map_or(Err(()), |speak| speak(to, word))
    }
}

struct Asked {
    number: u64,
    unanswered: Cell<usize>,
    bell: Notify,
}

/// A wish of another core.
struct Wish {
    core: u32,
    wanted: Wanted,
    at: Instant,
}

/// What other cores want of a hostgroup.
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

/// What only this core can know does not travel; nor does a compressed stream, nor what was opened
/// for the clients of one address.
fn may_travel(backend: &Backend) -> bool {
    backend.key.client.is_none()
        && backend.owned.is_none()
        && backend.unreported == Unreported::Nothing
        && !backend.strange_variables
        && backend.conn.compression().is_none()
}

impl Lent {
    /// Nothing holds what is lent.
    const fn holds(&self) -> Holds {
        Holds::with_modes(self.modes, self.autocommit)
    }
}

impl Pools {
    /// There are other cores, `others` by their indexes, and this is how they are spoken to.
    pub fn meet(&self, others: Vec<u32>, speak: Speak) {
        self.neighbours.others.replace(others);
        self.neighbours.speak.replace(Some(speak));
    }

    /// A core has said this.
    pub fn hear(&self, from: u32, word: Word) {
        match word {
            Word::Wanted(wanted) => self.wanted(from, wanted),
            Word::Lent(lent) => self.arrived(*lent),
            Word::NotLent(number) => self.answered(number),
            Word::Met(met) => self.heard_of(&met.host, met.port, met.bulk),
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
            self.ask(want, 0, why);
        }
    }

    /// Asks all others for one that they do not need, in the same way.
    pub(crate) fn ask_to_spare(&self, want: &Want<'_>) {
        self.ask(want, 0, Why::Copies);
    }

    /// Whether some other core may have a connection to the server.
    pub(crate) fn others_have(&self, place: &Place) -> bool {
        let own = place.numbers.used.get() + place.idle.borrow().len() as u64;
        // The room that was taken for a new one counts, too.
        u64::from(place.taken()) > own + 1 && !self.neighbours.others.borrow().is_empty()
    }

    /// Asks all others, and waits a moment for what comes.
    pub(crate) async fn borrow(&self, group: &Group, want: &Want<'_>) -> Option<Box<Backend>> {
        let number = self.neighbours.last.get() + 1;
        self.neighbours.last.set(number);
        let asked = Rc::new(Asked {
            number,
            unanswered: Cell::new(0),
            bell: Notify::new(),
        });
        self.neighbours.asked.borrow_mut().push(asked.clone());
        let _until_it_ends = Asking {
            pools: self,
            number,
        };
        asked.unanswered.set(self.ask(want, number, Why::Spare));
        let until = self.rt.now() + ANSWER;
        while asked.unanswered.get() > 0 && self.rt.now() < until {
            let _late = self
                .rt
                .timeout(until - self.rt.now(), asked.bell.wait())
                .await;
            if let Some(backend) = self.take_idle(group, want, true) {
                return Some(backend);
            }
        }
        None
    }

    /// As if a core that waits had asked.
    #[cfg(test)]
    pub(crate) fn hear_of_a_wish(&self, hostgroup: u32) {
        self.wanted(
            1,
            Wanted {
                hostgroup,
                user: "app".into(),
                caps: 0,
                number: 0,
                why: Why::NoRoom,
            },
        );
    }

    /// How many were asked.
    fn ask(&self, want: &Want<'_>, number: u64, why: Why) -> usize {
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
            .any(|place| place.takes(now) && place.weight() > 0)
        {
            // What would be lent could not be used here.
            return 0;
        }
        let wanted = Wanted {
            hostgroup: want.hostgroup,
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
        for place in places
            .iter()
            .filter(|place| place.takes(now) && place.weight() > 0)
        {
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
                    .is_some_and(|first| now - first.since >= idle_for)
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
            (lent.variables, lent.user_variables) = (None, Vec::new());
        }
        let group = self.group(lent.hostgroup);
        let number = lent.number;
        let place = group
            .places
            .borrow()
            .iter()
            .find(|p| **p.host() == *lent.host && p.server().port == lent.port)
            .cloned();
        // A LOAD may have lowered a limit while it was on its way.
        let may_stay = |place: &Rc<Place>| {
            place.keeps()
                && !place.is_over()
                && place.is_alike(&lent.opened_as, lent.init_connect.as_deref())
        };
        if let Some(place) = place.filter(may_stay)
            && let Some(conn) = lent.conn.take().and_then(|conn| conn.adopt(&self.rt).ok())
        {
            self.note_greeting(&place, &lent.hello);
            let user: UserVariables = std::mem::take(&mut lent.user_variables)
                .into_iter()
                .map(|sent| {
                    (
                        sent.name,
                        UserValue {
                            literal: sent.literal,
                            names: sent.names.as_ref().map(Names::from),
                            null: sent.null,
                        },
                    )
                })
                .collect();
            let state = State {
                schema: (&*lent.schema).into(),
                names: Names::from(&lent.names),
                autocommit: lent.autocommit,
                variables: lent.variables.take().map(Rc::new),
                user: (!user.is_empty()).then(|| Rc::new(user)),
            };
            let backend = Backend {
                conn,
                hello: lent.hello.clone(),
                holds: lent.holds(),
                unread: crate::Unread::default(),
                owned: None,
                glimpse: None,
                insert_id: lent.insert_id,
                warnings_left: lent.warnings_left,
                others_warnings: lent.warnings_left,
                undisturbed: None,
                finder: None,
                interrupted: false,
                insert_id_left: 0,
                insert_id_until: None,
                warnings_until: None,
                found_rows_until: None,
                warned: None,
                delayed_until: None,
                idle: Idle::Proven,
                last_session: lent.last_session,
                drew: lent.drew,
                place: place.clone(),
                opened_as: lent.opened_as.clone(),
                key: Key {
                    user: (&*lent.user).into(),
                    caps: lent.caps,
                    client: None,
                },
                told_client: None,
                state,
                ways: lent.ways,
                init_connect: lent.init_connect.take().map(|text| (&*text).into()),
                prepared: Here::default(),
                slots: Slots::beginning_at(lent.first_slot),
                closing: std::mem::take(&mut lent.closing),
                strays: false,
                several: lent.several,
                plain_quotes: false,
                reads_by_split: false,
                knew_found_rows: false,
                tracking: lent.tracking.take(),
                unreported: Unreported::Nothing,
                strange_variables: false,
                meant_otherwise: false,
                programs: crate::left::Programs {
                    told_of_transactions: lent.told_of_transactions,
                    ..Default::default()
                },
                retired: false,
                opened: lent.opened,
                since: lent.since,
                pinged: lent.pinged,
                queries: lent.queries,
                tally: self.tally.clone(),
                in_use: false,
                lent: false,
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
            asked
                .unanswered
                .set(asked.unanswered.get().saturating_sub(1));
            asked.bell.notify_one();
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
            opened_as: backend.opened_as.clone(),
            hello: backend.hello.clone(),
            user: (&*backend.key.user).into(),
            caps: backend.key.caps,
            schema: (&*backend.state.schema).into(),
            names: SentNames::from(&backend.state.names),
            autocommit: backend.state.autocommit,
            variables: backend.state.variables.as_deref().cloned(),
            user_variables: backend
                .state
                .user_variables()
                .map(|(name, value)| SentValue {
                    name: name.into(),
                    literal: value.literal.clone(),
                    names: value.names.as_ref().map(SentNames::from),
                    null: value.null,
                })
                .collect(),
            ways: backend.ways,
            init_connect: backend.init_connect.as_deref().map(Into::into),
            closing: std::mem::take(&mut backend.closing),
            several: backend.several,
            first_slot: backend.slots.first(),
            modes: backend.holds.modes(),
            tracking: backend.tracking.take(),
            told_of_transactions: backend.programs.told_of_transactions,
            last_session: backend.last_session,
            drew: backend.drew,
            warnings_left: backend.warnings_left,
            insert_id: backend.insert_id,
            opened: backend.opened,
            since: backend.since,
            pinged: backend.pinged,
            queries: backend.queries,
            number,
        }
    }
}

/// Who asks is forgotten when it does not wait any more.
struct Asking<'a> {
    pools: &'a Pools,
    number: u64,
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.pools
            .neighbours
            .asked
            .borrow_mut()
            .retain(|asked| asked.number != self.number);
    }
}
