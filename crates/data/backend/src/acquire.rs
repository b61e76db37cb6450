//! A connection for a command: an idle one that fits, else a new one, else wait for either.

use crate::backend::Backend;
use crate::chooser::in_turn;
use crate::failure::BackendFailed;
use crate::flight::Slot;
use crate::key::{Key, OF_CLIENT};
use crate::lend::Why;
use crate::login::Attempt;
use crate::pace::{Rate, Token};
use crate::place::{Place, WhyNot};
use crate::pools::{Group, Pools};
use crate::queue::Standing;
use crate::shares::Shares;
use crate::sync::Need;
use crate::want::{Executes, Want};
use bridge::Counter;
use rt::Instant;
use rt::permits::Permits;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// How often the first in line looks again by itself: permits of other cores ring no bell here.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// So much longer the first in another core's line must have waited than ours before we leave a
/// server's room to it. Less would have connections closed here and opened there all the time.
pub(crate) const GIVE_WAY: Duration = Duration::from_millis(50);
/// Time that the first in another core's line must have waited longer than ours, where the
/// connection itself can go there: nothing is closed and opened.
pub(crate) const LEND_WAY: Duration = Duration::from_millis(5);

/// Who was refused by servers that are full, or has tried in vain often enough, tries again after
/// so long.
const ASK_FULL_AGAIN: Duration = Duration::from_millis(100);

/// A server answers the question for an insert's id within that, or a new connection is opened
/// meanwhile.
const LEAVES_WITHIN: Duration = Duration::from_millis(5);

/// Connection, or room for one, that a place in the line is good for.
enum Got {
    Idle(Box<Backend>),
    /// Room for a new connection, and what allows it where so many are allowed in a second.
    Room(Taken, Option<Token>),
    /// Room for which a connection to another server was closed: a borrowed one would leave it empty.
    Made(Taken, Option<Token>),
    /// Room only if something is closed for it, and another core may have a connection to this
    /// server.
    Elsewhere(Rc<Place>),
}

/// Room that a server of a hostgroup has for a session that found no connection idle.
enum Permitted {
    Room(Taken),
    /// As [`Got::Made`].
    Made(Taken),
    /// As [`Got::Elsewhere`].
    Elsewhere(Rc<Place>),
}

/// Why somebody waits no more, and gets nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Vain {
    /// The time is over.
    Late,
    /// Too many wait, and it is the last of them.
    Full,
}

/// A permit of a server, given back when dropped.
/// As long as there is one, a connection is being opened there.
pub(crate) struct Taken(Option<Rc<Place>>, Option<Slot>);

impl Taken {
    /// One of a server of which no more than `max` are taken yet.
    pub(crate) fn of(place: &Rc<Place>, max: u32) -> Option<Self> {
        place.try_take(max).then(|| {
            place.opening.set(place.opening.get() + 1);
            Self(Some(place.clone()), None)
        })
    }

    /// The slot of the statement for which it was taken.
    pub(crate) fn take_slot(&mut self) -> Option<Slot> {
        self.1.take()
    }

    pub(crate) fn place(&self) -> &Rc<Place> {
        self.0
            .as_ref()
            .expect("only keep() takes it, and consumes self")
    }

    /// Leaves the permit to a connection, to which it belongs from now on.
    pub(crate) fn keep(mut self) {
        if let Some(place) = self.0.take() {
            place.opening.set(place.opening.get().saturating_sub(1));
        }
    }
}

/// A copy that has a connection, or is about to: one of a limited number over all cores. Given back
/// when dropped.
pub struct Spare(Arc<Permits>);

impl std::fmt::Debug for Spare {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Spare({} taken)", self.0.taken())
    }
}

impl Drop for Spare {
    fn drop(&mut self) {
        self.0.give();
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        if let Some(place) = self.0.take() {
            place.opening.set(place.opening.get().saturating_sub(1));
            place.room.give();
        }
    }
}

impl Pools {
    /// An idle connection, if there is one and nobody waits for it.
    #[must_use]
    pub fn at_once(&self, want: &Want<'_>) -> Option<Box<Backend>> {
        if let Some(at) = want.at {
            return self.at_once_at(want, at);
        }
        let group = self.group(want.hostgroup);
        if !group.queue.is_empty() {
            return None;
        }
        let standing = group.standing(want, self.rt.now());
        let backend = self.take_shared(&group, want, standing.rank)?;
        self.was_at_hand();
        Some(backend)
    }

    /// Returns an idle connection to this server, if there is one and nobody waits for it.
    pub(crate) fn at_once_to(
        &self,
        group: &Group,
        place: &Rc<Place>,
        want: &Want<'_>,
    ) -> Option<Box<Backend>> {
        if want.new_connection
            || !group.queue.is_empty()
            || self.is_offered(group, want, self.rt.now())
        {
            return None;
        }
        let backend = self.take_from(place, want)?;
        self.was_at_hand();
        Some(backend)
    }

    fn was_at_hand(&self) {
        self.tally.up(Counter::MyhgmPoolGet);
        self.tally.up(Counter::ConnPoolGetConnImmediate);
        self.tally.up(Counter::MyhgmPoolGetOk);
    }

    /// Waits until a copy may have a connection, because no client waits for one or will soon. What
    /// is taken then has to be taken at once, and the copy counts as one until what this returns is
    /// dropped.
    ///
    /// # Errors
    /// [`BackendFailed::Timeout`] after `mysql-connect_timeout_server_max`.
    pub async fn until_spare(&self, want: &Want<'_>) -> Result<Spare, BackendFailed> {
        let (begun, group) = (self.rt.now(), self.group(want.hostgroup));
        let limit = Duration::from_millis(want.snapshot.variables.mysql_connect_timeout_server_max);
        let copies = group.copies.get_or_init(|| {
            self.registry
                .get(&format!("copies in hostgroup {}", want.hostgroup))
        });
        loop {
            let spare = group.has_spare() && !group.paced.waits_for(&self.key_of(&group, want));
            if spare && copies.try_take(group.copies_max()) {
                return Ok(Spare(copies.clone()));
            }
            if !spare {
                self.ask_for_spare(&group, want);
            }
            let waited = self.rt.now() - begun;
            if waited >= limit {
                let waited_ms = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
                return Err(BackendFailed::Timeout {
                    hostgroup: want.hostgroup,
                    waited_ms,
                    last: None,
                });
            }
            self.rt.sleep(LOOK_AGAIN.min(limit - waited)).await;
        }
    }

    /// Other cores may have a connection idle that they can spare: what they send is idle here.
    /// Asked once in a while, however many copies wait.
    fn ask_for_spare(&self, group: &Group, want: &Want<'_>) {
        let now = self.rt.now();
        let just_asked = group
            .asked_for_spare
            .get()
            .is_some_and(|asked| now - asked < LOOK_AGAIN);
        if !just_asked && group.queue.is_empty() && group.is_elsewhere() {
            group.asked_for_spare.set(Some(now));
            self.ask_to_spare(want);
        }
    }

    /// A connection to a server of the hostgroup, for this session alone until it is released.
    /// Cancel-safe.
    ///
    /// # Errors
    /// [`BackendFailed::Timeout`] after `mysql-connect_timeout_server_max`;
    /// [`BackendFailed::Refused`] when the server refuses the user.
    pub async fn acquire(&self, want: &Want<'_>) -> Result<Box<Backend>, BackendFailed> {
        if let Some(at) = want.at {
            return Box::pin(self.acquire_at(want, at)).await;
        }
        self.tally.up(Counter::MyhgmPoolGet);
        let group = self.group(want.hostgroup);
        let result = self.open_or_wait(&group, want).await;
        self.tally.up(match &result {
            Ok(_) => Counter::ConnPoolGetConnSuccess,
            Err(BackendFailed::Timeout { .. }) => Counter::MaxConnectTimeouts,
            Err(_) => Counter::ConnPoolGetConnFailure,
        });
        result
    }

    async fn open_or_wait(
        &self,
        group: &Group,
        want: &Want<'_>,
    ) -> Result<Box<Backend>, BackendFailed> {
        let v = &want.snapshot.variables;
        let begun = self.rt.now();
        let limit = Duration::from_millis(v.mysql_connect_timeout_server_max);
        let (limit, is_shorter) = group.wait_max(limit);
        let standing = group.standing(want, begun);
        let mut last = None;
        let (mut attempts, mut waited) = (0, false);
        let mut full = false;
        let mut lends = true;
        loop {
            // A server that takes connections and says nothing, or is down again and again, has
            // room each time.
            let in_time = attempts == 0 && !waited || self.rt.now() - begun < limit;
            let got = if in_time {
                self.my_turn(group, want, standing, limit, lends).await
            } else {
                Err(Vain::Late)
            };
            let got = match got {
                Ok(got) => got,
                Err(vain) => {
                    let shorter = is_shorter && last.is_none();
                    return Err(self.in_vain(group, want, (standing, vain, shorter), last));
                }
            };
            let (room, token, made) = match got {
                Got::Idle(backend) => return Ok(backend),
                Got::Room(room, token) => (room, token, false),
                Got::Made(room, token) => (room, token, true),
                Got::Elsewhere(place) => {
                    if let Some(backend) = Box::pin(self.borrow(&place, want)).await {
                        return Ok(backend);
                    }
                    lends = false;
                    continue;
                }
            };
            if !want.new_connection
                && !made
                && lends
                && self.others_have(room.place())
                && let Some(backend) = Box::pin(self.borrow(room.place(), want)).await
            {
                return Ok(backend);
            }
            if self.has_just_been_asked(room.place(), want) {
                // Nobody has to be in its way for whom a connection is idle.
                drop((room, token));
                waited = true;
                if let Some(backend) = self
                    .wait_beside(group, want, standing, limit, ASK_FULL_AGAIN)
                    .await
                {
                    return Ok(backend);
                }
                continue;
            }
            if let Some(token) = token {
                token.use_up(&self.rt);
            }
            let key = Key {
                user: want.user.into(),
                caps: want.caps & OF_CLIENT,
                client: room.place().client_of(want),
            };
            match Box::pin(self.open(room, want, key)).await {
                // OFFLINE_HARD since it was begun.
                Ok(backend) if backend.place().is_cut_off() => self.release(backend),
                Ok(backend) => return Ok(backend),
                Err(Attempt::Final(failed)) => return Err(failed),
                Err(Attempt::Again(why) | Attempt::Unreached(why)) => last = Some(why),
                Err(Attempt::Full { why, .. } | Attempt::Lacking(why)) => {
                    last = Some(why);
                    full = !self.another_may_do(group, want);
                }
            }
            attempts += 1;
            let quick =
                attempts <= v.mysql_connect_retries_on_failure && !std::mem::take(&mut full);
            let pause = if quick {
                Duration::from_millis(v.mysql_connect_retries_delay.max(1))
            } else {
                ASK_FULL_AGAIN
            };
            if let Some(backend) = self.wait_beside(group, want, standing, limit, pause).await {
                return Ok(backend);
            }
        }
    }

    /// Somebody has waited in vain. `shorter`: for less long than elsewhere, and nothing but others
    /// kept it from being served.
    fn in_vain(
        &self,
        group: &Group,
        want: &Want<'_>,
        (standing, vain, shorter): (Standing, Vain, bool),
        last: Option<String>,
    ) -> BackendFailed {
        let full = vain == Vain::Full;
        if full || shorter && group.may_serve(want, self.rt.now()) {
            return self.shed(group, (want.hostgroup, standing), full);
        }
        let begun = standing.came;
        let waited = (self.rt.now() - begun).as_millis();
        let waited_ms = u64::try_from(waited).unwrap_or(u64::MAX);
        self.tell_in_vain(group, want, waited_ms, last.as_deref());
        BackendFailed::Timeout {
            hostgroup: want.hostgroup,
            waited_ms,
            last,
        }
    }

    /// Somebody has waited in vain: why, as far as it is known.
    fn tell_in_vain(&self, group: &Group, want: &Want<'_>, waited_ms: u64, last: Option<&str>) {
        let now = self.rt.now();
        if group
            .told
            .get()
            .is_some_and(|told| now - told < Duration::from_secs(1))
        {
            return;
        }
        group.told.set(Some(now));
        let places = group.places.borrow();
        let all: Vec<_> = places.iter().map(|place| place.may_serve(now)).collect();
        let none_may = all.iter().all(Result::is_err);
        let is_off =
            |may: &Result<(), WhyNot>| matches!(may, Err(WhyNot::Offline | WhyNot::NoWeight));
        let why = match (last, places.is_empty()) {
            (Some(last), _) => format!("the last attempt: {last}"),
            (None, true) => "it has no server in mysql_servers".to_owned(),
            (None, false) if all.iter().all(is_off) => {
                "none of its servers is ONLINE with a weight above 0".to_owned()
            }
            (None, false) if none_may && all.contains(&Err(WhyNot::OneOfTooMany)) => {
                "more of its servers are ONLINE than its max_num_online_servers allows, and which of them are right is not for the proxy to say".to_owned()
            }
            (None, false) if none_may && !all.contains(&Err(WhyNot::Shunned)) => {
                "its servers are too far behind, or take too long to answer".to_owned()
            }
            (None, false) if none_may => {
                "its servers are shunned after failures to connect".to_owned()
            }
            (None, false) if self.rate(group, want).is_some_and(|rate| rate.is_used_up()) => {
                "more new connections were wanted than mysql-throttle_connections_per_sec_to_hostgroup, or throttle_connections_per_sec of the hostgroup, allows"
                    .to_owned()
            }
            (None, false) => {
                "all its connections are in use, as many as max_connections of its servers, or of its hostgroup_settings, allows"
                    .to_owned()
            }
        };
        let (id, user) = (want.hostgroup, want.user);
        self.note(&format!(
            "user '{user}' got no connection to hostgroup {id} within {waited_ms} ms: {why}"
        ));
    }

    /// Waits in line, if there is one, until there is something for this session, or the time is
    /// over. `lends`: as [`Self::permitted`].
    async fn my_turn(
        &self,
        group: &Group,
        want: &Want<'_>,
        standing: Standing,
        limit: Duration,
        lends: bool,
    ) -> Result<Got, Vain> {
        if group.queue.is_empty()
            && let Some(got) = self.without_waiting(group, want, standing, lends)
        {
            return Ok(got);
        }
        // Given back when the place in line is.
        let _seat = self.sit_down(group, (want.hostgroup, standing))?;
        let got = self.in_line(group, want, standing, limit, lends).await?;
        group.has_served(standing, self.rt.now());
        Ok(got)
    }

    /// Looks, where nobody waits.
    fn without_waiting(
        &self,
        group: &Group,
        want: &Want<'_>,
        Standing { came, rank, .. }: Standing,
        lends: bool,
    ) -> Option<Got> {
        if let Some(backend) = self.take_shared(group, want, rank) {
            return Some(Got::Idle(backend));
        }
        let one_could_leave = !want.new_connection
            && !group.lingering.is_empty()
            && group.lingering.is_due(came, &self.key_of(group, want));
        if one_could_leave || self.must_slow_down(group, want, rank) {
            return None;
        }
        self.look(group, want, rank, lends)
    }

    /// Stands in line: as [`Self::my_turn`].
    async fn in_line(
        &self,
        group: &Group,
        want: &Want<'_>,
        standing: Standing,
        limit: Duration,
        lends: bool,
    ) -> Result<Got, Vain> {
        let (begun, rank) = (standing.came, standing.rank);
        self.tally.up(Counter::ServerConnectionsDelayed);
        let mut turn = group.queue.join(standing);
        self.tell_last(group);
        let mut told = None;
        let mut asked: Option<Instant> = None;
        let mut paced = None;
        // Rather than opening a connection. Each who waits tells one: together they wait no longer
        // than the first.
        let presses = !want.new_connection
            && !self.lacks_slots(group, want, rank)
            && !group.lingering.is_empty()
            && group
                .lingering
                .press(self.rt.now(), &self.key_of(group, want));
        let mut left_by = presses.then(|| self.rt.now() + LEAVES_WITHIN);
        loop {
            if turn.is_shed() {
                return Err(Vain::Full);
            }
            if turn.is_first() && self.lacks_slots(group, want, rank) {
                // Connections help nobody before one is free.
                drop(told.take());
                told = Some(Told::slots(group, self.line, rank));
            } else if turn.is_first() {
                if let Some(backend) = self.take_shared(group, want, rank) {
                    return Ok(Got::Idle(backend));
                }
                if let Some(place) = &paced {
                    self.pass_offer(group, place);
                }
                let now = self.rt.now();
                let left = left_by.map_or(Duration::ZERO, |by| by - now);
                if !left.is_zero() {
                    let _called_or_too_late = self.rt.timeout(left, turn.called()).await;
                    continue;
                }
                let slow = self.must_slow_down(group, want, rank);
                if !slow && let Some(got) = self.look(group, want, rank, lends) {
                    return Ok(got);
                }
                // The other cores shall know how long we wait; servers may have come or gone since
                // the last look.
                drop(told.take());
                // What a session of another user keeps only for its memory makes room as well.
                if !slow && left_by.is_none() && group.lingering.press_any(self.rt.now()) {
                    left_by = Some(self.rt.now() + LEAVES_WITHIN);
                    // Else what comes free there meanwhile goes to who came later.
                    told = Some(self.tell_others(group, want, rank, &mut asked));
                    continue;
                }
                left_by = None;
                if slow || self.must_slow_down(group, want, rank) {
                    // Not in the way of those for whom a connection is idle.
                    drop(turn);
                    let place =
                        paced.get_or_insert_with(|| self.stand_aside(group, want, standing, true));
                    if let Some(backend) = self
                        .wait_for_pace(group, want, place, begun + limit, &mut asked)
                        .await
                    {
                        return Ok(Got::Idle(backend));
                    }
                    turn = group.queue.join(standing);
                    if self.rt.now() - begun >= limit {
                        return Err(Vain::Late);
                    }
                    continue;
                }
                group.lanes.ring();
                told = Some(self.tell_others(group, want, rank, &mut asked));
            }
            let left = limit.saturating_sub(self.rt.now() - begun);
            if left.is_zero() {
                return Err(Vain::Late);
            }
            if let Some(place) = &paced {
                // Behind another in this line nobody looks at what was offered in that one.
                self.pass_offer(group, place);
            }
            let nap = if told.is_some() || paced.is_some() {
                left.min(LOOK_AGAIN)
            } else {
                left
            };
            let _called_or_time_to_look = self.rt.timeout(nap, turn.called()).await;
        }
    }

    /// Tells the other cores since when the first in line waits, and asks them for a connection.
    fn tell_others(
        &self,
        group: &Group,
        want: &Want<'_>,
        rank: Instant,
        asked: &mut Option<Instant>,
    ) -> Told {
        let told = Told::tell(group, self.line, rank, self.rt.now());
        self.ask_now_and_then(want, Why::NoRoom, asked);
        told
    }

    /// Of connections that would serve. The servers of a hostgroup are alike in whether they are
    /// told of clients.
    pub(crate) fn key_of(&self, group: &Group, want: &Want<'_>) -> Key {
        let client = group
            .places
            .borrow()
            .first()
            .and_then(|place| place.client_of(want));
        Key {
            user: want.user.into(),
            caps: want.caps & OF_CLIENT,
            client,
        }
    }

    /// Asks the other cores, unless that was a moment ago.
    pub(crate) fn ask_now_and_then(&self, want: &Want<'_>, why: Why, asked: &mut Option<Instant>) {
        let now = self.rt.now();
        if asked.is_none_or(|asked| now - asked >= LOOK_AGAIN) {
            *asked = Some(now);
            self.ask_for(want, why);
        }
    }

    /// An idle one that is left to nobody who came before.
    fn take_shared(&self, group: &Group, want: &Want<'_>, since: Instant) -> Option<Box<Backend>> {
        if want.new_connection || self.is_offered(group, want, since) {
            None
        } else {
            self.take_idle(group, want, (since, true))
        }
    }

    fn look(&self, group: &Group, want: &Want<'_>, since: Instant, lends: bool) -> Option<Got> {
        if let Some(backend) = self.take_shared(group, want, since) {
            return Some(Got::Idle(backend));
        }
        let rate = self.rate(group, want);
        if rate.as_ref().is_some_and(Rate::is_used_up) {
            return None;
        }
        let (room, made) = match self.permitted(group, want, since, lends)? {
            Permitted::Room(room) => (room, false),
            Permitted::Made(room) => (room, true),
            Permitted::Elsewhere(place) => return Some(Got::Elsewhere(place)),
        };
        match rate.map(|rate| rate.take()) {
            // Another core may have been faster.
            Some(None) => None,
            token if made => Some(Got::Made(room, token.flatten())),
            token => Some(Got::Room(room, token.flatten())),
        }
    }

    /// Does somebody on another core wait for the server?
    pub(crate) fn is_wanted_elsewhere(&self, place: &Place) -> bool {
        self.gives_way(place, None, Duration::ZERO)
    }

    /// Does somebody on another core wait so much longer for this server than whoever came to us at
    /// `since`?
    pub(crate) fn gives_way(
        &self,
        place: &Place,
        since: Option<Instant>,
        longer: Duration,
    ) -> bool {
        // One look at a counter is all that it costs while nobody waits.
        if place.room.of_server.wanted() == 0 {
            return false;
        }
        place
            .room
            .of_server
            .waits_elsewhere(self.line)
            .is_some_and(|other| {
                since.is_none_or(|since| {
                    other.saturating_add(u64::try_from(longer.as_nanos()).unwrap_or(u64::MAX))
                        < since.as_ns()
                })
            })
    }

    /// A server that takes work, and a permit to connect to it. An idle connection that fits nobody
    /// here is closed for it, unless another core may lend one (`lends`) of a server that has its
    /// share. One that said a moment ago that it takes no more is among the last that are asked.
    fn permitted(
        &self,
        group: &Group,
        want: &Want<'_>,
        since: Instant,
        lends: bool,
    ) -> Option<Permitted> {
        let now = self.rt.now();
        let places = group.places.borrow();
        let takes = |place: &Place| place.serves_for(want, now) && self.lets_in(place, want, since);
        let all: Vec<&Rc<Place>> = in_turn(&places, takes).collect();
        let (well, full) = all
            .iter()
            .partition::<Vec<&Rc<Place>>, _>(|place| !place.comes_last(want.user, now));
        // What another has to give up is for those that have too few.
        let shares = Shares::to_give(&places, now);
        let (short, well) = well
            .into_iter()
            .partition(|place| shares.as_ref().is_some_and(|shares| shares.is_short(place)));
        for mut open in [short, well, full] {
            while !open.is_empty() {
                let place = open.remove(group.chooser.next(&open, now)?);
                if self.gives_way(place, Some(since), GIVE_WAY) {
                    continue;
                }
                let max = place.row_max();
                if let Some(mut room) = Taken::of(place, max) {
                    let Ok(slot) = place.in_flight.slot(want.waits) else {
                        continue;
                    };
                    room.1 = slot;
                    group.chooser.had(&all, place, now, || self.rt.random());
                    return Some(Permitted::Room(room));
                }
                let is_short = shares.as_ref().is_some_and(|shares| shares.is_short(place));
                // Where nothing is idle here that could go, a statement waits or shares instead.
                if lends
                    && !is_short
                    && !want.new_connection
                    && place.gives_room(&places, now).is_some()
                    && self.others_have_one_of(place)
                {
                    return Some(Permitted::Elsewhere((*place).clone()));
                }
                // One goes that is for somebody with another user or schema: its room is worth more
                // than itself.
                let has_room = place.make_room(&places, now, &self.tally);
                if let Some(mut room) = has_room.then(|| Taken::of(place, max)).flatten() {
                    let Ok(slot) = place.in_flight.slot(want.waits) else {
                        continue;
                    };
                    room.1 = slot;
                    group.chooser.had(&all, place, now, || self.rt.random());
                    return Some(if is_short {
                        Permitted::Made(room)
                    } else {
                        Permitted::Room(room)
                    });
                }
            }
        }
        None
    }

    /// Whether a server has just said that it takes no more: one at a time asks again, as often as
    /// one sleeps between.
    fn has_just_been_asked(&self, place: &Place, want: &Want<'_>) -> bool {
        let now = self.rt.now();
        // Who asks here is being counted.
        place.has_said_full(want.user, now, ASK_FULL_AGAIN)
            || place.opening.get() > 1 && place.said_to_be_full(want.user, now)
    }

    /// Whether a server of the hostgroup has room, and has not just said that it takes no more.
    fn another_may_do(&self, group: &Group, want: &Want<'_>) -> bool {
        let now = self.rt.now();
        let places = group.places.borrow();
        in_turn(&places, |place| place.serves_for(want, now))
            .any(|place| !place.is_full() && !place.said_to_be_full(want.user, now))
    }

    /// An idle connection for this session: of the server that the weights choose, else of any; the
    /// one that needs least to be brought there. `since`: its rank. `opens`: if there is none, one
    /// may be opened.
    pub(crate) fn take_idle(
        &self,
        group: &Group,
        want: &Want<'_>,
        (since, opens): (Instant, bool),
    ) -> Option<Box<Backend>> {
        let now = self.rt.now();
        let places = group.places.borrow();
        let takes = |place: &Place| place.serves_for(want, now) && self.lets_in(place, want, since);
        if let [only] = places.as_slice() {
            return if takes(only) {
                self.take_from(only, want)
            } else {
                None
            };
        }
        let open: Vec<&Rc<Place>> = in_turn(&places, takes).collect();
        let place = open[group.chooser.next(&open, now)?];
        let took = |place: &Rc<Place>| {
            let backend = self.take_from(place, want)?;
            group.chooser.had(&open, place, now, || self.rt.random());
            Some(backend)
        };
        if let Some(backend) = took(place) {
            return Some(backend);
        }
        // Rather a new connection to the chosen server than always the old ones to another, while
        // it has room, or another has some of its.
        if opens && place.may_have_more(&places, want.user, now) {
            return None;
        }
        open.iter().find_map(|place| took(place))
    }

    pub(crate) fn take_from(&self, place: &Rc<Place>, want: &Want<'_>) -> Option<Box<Backend>> {
        let (caps, client) = (want.caps & OF_CLIENT, place.client_of(want));
        // All may be dead.
        loop {
            let mut idle = place.idle.borrow_mut();
            let (mut best, mut seen) = (None::<(Fit, usize)>, 0);
            for (at, backend) in idle.iter().enumerate().rev() {
                if backend.key.caps != caps
                    || backend.key.client != client
                    || *backend.key.user != *want.user
                {
                    continue;
                }
                let fit = fit(backend, want);
                if fit > best.map_or(Fit::No, |(fit, _)| fit) {
                    best = Some((fit, at));
                }
                if fit == Fit::Exact {
                    break;
                }
                seen += 1;
                // Rather a statement prepared once more than a long look.
                if seen > LOOKED_AT && best.is_some_and(|(fit, _)| fit == Fit::Unprepared) {
                    break;
                }
            }
            let at = best?.1;
            let slot = place.in_flight.slot(want.waits).ok()?;
            let mut backend = idle.swap_remove(at);
            drop(idle);
            if backend.conn.is_idle() {
                backend.slot = slot;
                backend.in_use = true;
                place.begin_use();
                return Some(backend);
            }
            // The server has closed it, or spoke unasked.
            self.tally.up(Counter::ServerConnectionsAborted);
            self.unhealthy(&backend, "the server has closed it, or spoke unasked");
        }
    }
}

/// Connections that are looked at for one that has a statement prepared as well.
const LOOKED_AT: usize = 16;

/// How well a connection fits, worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    No,
    Some,
    Unprepared,
    Exact,
}

fn fit(backend: &Backend, want: &Want<'_>) -> Fit {
    let exact = || {
        let prepared = |wants: Executes<'_>| backend.was_left_with(wants);
        if want.executes.is_none_or(prepared) {
            Fit::Exact
        } else {
            Fit::Unprepared
        }
    };
    if backend.has_all(want.state, want.remembered, want.tracking) {
        return exact();
    }
    match backend.need(
        want.state,
        want.user_variables,
        want.remembered,
        want.tracking,
    ) {
        Need::Nothing => exact(),
        Need::Another => Fit::No,
        Need::Steps { .. } | Need::Reset => Fit::Some,
    }
}

/// Report to the other cores on the first in our line. However its wait ends, the report ends with
/// it.
struct Told(Vec<Arc<Permits>>, usize);

impl Told {
    fn tell(group: &Group, line: usize, since: Instant, now: Instant) -> Self {
        // Only where it would take room that there is not: elsewhere others would close for it what
        // nobody lacks. Where the hostgroup itself is full, any server of it makes some.
        let places = group.places.borrow();
        // With priorities another core must not take what comes free because it did not know who
        // waits here: room that is left to somebody else is no room, either.
        let is_wanted = |place: &Place| group.is_by_priority() && place.room.of_server.wanted() > 0;
        let makes_room = |place: &Place| {
            place.is_group_full() || (place.is_full() || is_wanted(place)) && place.serves(now)
        };
        let permits: Vec<_> = in_turn(&places, makes_room)
            .map(|place| place.room.of_server.clone())
            .collect();
        for one in &permits {
            one.wait_since(line, since.as_ns());
        }
        Self(permits, line)
    }
}

impl Told {
    /// Report on who waits for a slot.
    fn slots(group: &Group, line: usize, rank: Instant) -> Self {
        let places = group.places.borrow();
        let permits: Vec<_> = places
            .iter()
            .filter_map(|place| place.in_flight.slots())
            .collect();
        for one in &permits {
            one.wait_since(line, rank.as_ns());
        }
        Self(permits, line)
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        for permits in &self.0 {
            permits.wait_no_more(self.1);
        }
    }
}
