//! A connection for a command: an idle one that fits, else a new one, else wait for either.

use crate::connection::backend::Backend;
use crate::connection::place::{Place, WhyNot};
use crate::cores::neighbours::{GIVE_WAY, LOOK_AGAIN};
use crate::cores::word::Why;
use crate::failure::BackendFailed;
use crate::find::pace::{Rate, Token};
use crate::hostgroup::chooser::in_turn;
use crate::hostgroup::group::Group;
use crate::hostgroup::queue::Standing;
use crate::hostgroup::shares::Shares;
use crate::open::taken::Taken;
use crate::pool::admit::Vain;
use crate::pool::pools::Pools;
use crate::session::key::{Key, OF_CLIENT};
use crate::session::login::Attempt;
use crate::session::want::Want;
use bridge::Counter;
use rt::Instant;
use rt::permits::Permits;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

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
        let standing = group.admission.standing(want, self.rt.now());
        let backend = self.take_shared(&group, want, standing.rank)?;
        self.was_at_hand();
        Some(backend)
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
        let (limit, is_shorter) = group.admission.wait_max(limit);
        let standing = group.admission.standing(want, begun);
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
        let others_wait = !group.queue.is_empty();
        group
            .admission
            .has_served(standing, self.rt.now(), others_wait);
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
                    room.has_slot(slot);
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
                    room.has_slot(slot);
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
}

/// Report to the other cores on the first in our line. However its wait ends, the report ends with
/// it.
struct Told(Vec<Arc<Permits>>, usize);

impl Told {
    pub(crate) fn tell(group: &Group, line: usize, since: Instant, now: Instant) -> Self {
        // Only where it would take room that there is not: elsewhere others would close for it what
        // nobody lacks. Where the hostgroup itself is full, any server of it makes some.
        let places = group.places.borrow();
        // With priorities another core must not take what comes free because it did not know who
        // waits here: room that is left to somebody else is no room, either.
        let is_wanted =
            |place: &Place| group.admission.is_by_priority() && place.room.of_server.wanted() > 0;
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
