//! All servers of this core, and the connections that wait there for a session.

use crate::acquire::{GIVE_WAY, LEND_WAY, LOOK_AGAIN};
use crate::admission::Admission;
use crate::backend::{Backend, Idle};
use crate::chooser::Chooser;
use crate::connect::init_connect;
use crate::gtids::Sources;
use crate::hold::Hold;
use crate::lane::Lanes;
use crate::lease::{Lease, Unreported};
use crate::lend::{Neighbours, Wishes};
use crate::linger::{Lingering, Lingers};
use crate::pace::pace_of;
use crate::place::Place;
use crate::queue::Queue;
use crate::room::{self, Room};
use crate::server::Servers;
use crate::tally::Tally;
use crate::want::Shows;
use bridge::{ChoiceRow, Counter, FreeConnectionRow, HostgroupPoolRow, PoolRow, Sign};
use config::{Balance, Server, Snapshot};
use hashbrown::{HashMap, HashSet};
use net::Hello;
use net::tls::{Connector, Settings};
use rt::Rt;
use rt::local::Notify;
use rt::permits::{Permits, Registry};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use topology::{Placed, ServerKey, Serves};

/// Hears what an operator should read.
type Note = Box<dyn Fn(&str)>;

/// The servers of this core.
pub struct Pools {
    pub(crate) rt: Rt,
    pub(crate) tally: Rc<Tally>,
    pub(crate) groups: RefCell<BTreeMap<u32, Rc<Group>>>,
    pub(crate) connectors: RefCell<HashMap<Settings, Connector>>,
    pub(crate) registry: Registry,
    pub(crate) servers: Servers,
    /// Which line of waiting commands is ours, among those of all cores.
    pub(crate) line: usize,
    pub(crate) neighbours: Rc<Neighbours>,
    /// How often idle connections are asked, and how long an answer may take.
    pub(crate) pings: Cell<Option<(Duration, Duration)>>,
    /// Whether it is told when one is found unusable.
    pub(crate) log_unhealthy: Cell<bool>,
    /// Connections that are being reset, and how many may be.
    resets: Cell<u64>,
    pub(crate) resets_max: Cell<u64>,
    /// Connections that are open only to say KILL.
    pub(crate) kills: Cell<u32>,
    /// KILLs that wait until their server lets somebody in.
    pub(crate) kills_waiting: Cell<u32>,
    /// Who hears that something is wrong with a server.
    trouble: RefCell<Option<Trouble>>,
    /// Rung when servers were placed anew.
    adopted: Notify,
    note: Note,
    /// Greatest age of a connection, from the configuration, for the sweep.
    pub(crate) max_age: Cell<Duration>,
    free_pct: Cell<u64>,
    own_modes: Cell<OwnModes>,
    all_have_bulk: Cell<bool>,
    upgrades: Cell<u64>,
}

/// How the servers of a core read texts for sessions that have not said how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnModes {
    /// Of [`crate::MODES`] those that all servers have; who has not said anything has none. A
    /// client quotes by them.
    pub flags: u16,
    /// Not all of them read a backslash alike.
    pub differ: bool,
    /// By itself one gives a session a character set in which a backslash or a backquote may be
    /// part of a character.
    pub shifts: bool,
    /// The byte above ASCII that is a blank in the character sets that they give by themselves.
    pub blank: Option<sql::Blank>,
}

/// The character sets in which a backslash or a backquote may be the second byte of a character.
pub const SHIFTING: [&str; 5] = ["big5", "cp932", "gb18030", "gbk", "sjis"];

impl OwnModes {
    /// Of servers, by what all connections of each have said and what any of them has: a flag that
    /// a client is told wrongly makes it quote so that its texts end where they should not.
    fn of(said: &[Option<(u16, u16)>]) -> Self {
        let all = said
            .iter()
            .map(|said| said.map_or(0, |(all, _)| all))
            .reduce(|a, b| a & b)
            .unwrap_or(0);
        let any = said.iter().flatten().fold(0, |flags, (_, any)| flags | any);
        Self {
            flags: all,
            differ: any & !all & wire::status::NO_BACKSLASH_ESCAPES != 0,
            shifts: false,
            blank: None,
        }
    }
}

impl std::fmt::Debug for Pools {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pools").finish_non_exhaustive()
    }
}

/// Hears of a server.
type Trouble = Box<dyn Fn(ServerKey, Sign)>;

/// A hostgroup of this core.
#[derive(Default)]
pub(crate) struct Group {
    pub(crate) places: RefCell<Vec<Rc<Place>>>,
    /// Commands of this core that wait for a connection.
    pub(crate) queue: Queue,
    /// Those of them who may not open one yet: so many were opened in the last second.
    pub(crate) paced: Queue,
    /// Who waits in which order, and for how long.
    pub(crate) admission: Admission,
    /// Whether statements in flight at its servers are limited.
    limited: Cell<bool>,
    /// Copies for mirrors that have one of its connections, over all cores.
    pub(crate) copies: OnceCell<Arc<Permits>>,
    /// Connections opened in the last second, over all cores; counted where that is limited.
    pub(crate) opened: OnceCell<Arc<Permits>>,
    /// How many may be, as the last configuration says.
    pub(crate) pace_max: Cell<Option<u64>>,
    /// When other cores were last asked for a connection for a copy.
    pub(crate) asked_for_spare: Cell<Option<rt::Instant>>,
    /// When one came while copies waited.
    pub(crate) spare_came: Cell<Option<rt::Instant>>,
    pub(crate) chooser: Chooser,
    pub(crate) lanes: Lanes,
    pub(crate) lingering: Lingering,
    /// Connections that other cores wait for.
    pub(crate) wishes: Wishes,
    /// When an operator was last told that somebody waited in vain.
    pub(crate) told: Cell<Option<rt::Instant>>,
    /// Idle connections kept, in percent of `max_connections`, where the hostgroup says otherwise
    /// than the variable.
    free_pct: Cell<Option<u32>>,
    /// When somebody last found that nobody served.
    idle_since: Cell<Option<rt::Instant>>,
    /// Whether connections are opened ahead until there are so many.
    pub(crate) warms: Cell<bool>,
}

impl Group {
    /// Whether statements in flight at its servers are limited.
    pub(crate) fn is_limited(&self) -> bool {
        self.limited.get()
    }
}

impl Pools {
    /// None yet. `registry` counts the connections of a server over all cores.
    #[must_use]
    pub fn new(
        rt: Rt,
        registry: Registry,
        tally: Rc<Tally>,
        note: impl Fn(&str) + 'static,
    ) -> Self {
        Self {
            rt,
            tally,
            groups: RefCell::default(),
            connectors: RefCell::default(),
            line: registry.line(),
            neighbours: Rc::default(),
            pings: Cell::new(None),
            log_unhealthy: Cell::new(false),
            resets: Cell::new(0),
            resets_max: Cell::new(50),
            kills: Cell::new(0),
            kills_waiting: Cell::new(0),
            trouble: RefCell::default(),
            adopted: Notify::new(),
            registry,
            servers: Servers::default(),
            note: Box::new(note),
            max_age: Cell::new(Duration::ZERO),
            free_pct: Cell::new(10),
            own_modes: Cell::new(OwnModes {
                flags: 0,
                differ: false,
                shifts: false,
                blank: None,
            }),
            all_have_bulk: Cell::new(false),
            upgrades: Cell::new(0),
        }
    }

    /// Whether some server of the hostgroup takes new work now, and one has at every look for so
    /// many milliseconds.
    #[must_use]
    pub fn takes(&self, hostgroup: u32, for_ms: u64) -> bool {
        let now = self.rt.now();
        let groups = self.groups.borrow();
        let Some(group) = groups.get(&hostgroup) else {
            return false;
        };
        if !group.places.borrow().iter().any(|place| place.serves(now)) {
            group.idle_since.set(Some(now));
            return false;
        }
        let since = group.idle_since.get();
        since.is_none_or(|since| now - since >= Duration::from_millis(for_ms))
    }

    /// Resolves when no server of the hostgroup takes new work that must see these.
    pub async fn until_nobody_serves(&self, hostgroup: u32, must_see: Option<Shows<'_>>) {
        let shows = || must_see.is_none_or(|what| self.shows(hostgroup, what));
        while self.takes(hostgroup, 0) && shows() {
            let _placed_anew_or_time_to_look =
                self.rt.timeout(LOOK_AGAIN, self.are_placed_anew()).await;
        }
    }

    pub(crate) fn note(&self, words: &str) {
        (self.note)(words);
    }

    /// Another configuration, which may have the same servers: files behind the same names may have
    /// changed.
    pub fn renew(&self) {
        self.connectors.borrow_mut().clear();
    }

    /// Whom to tell that something is wrong with a server.
    pub fn tell_of_trouble(&self, hears: impl Fn(ServerKey, Sign) + 'static) {
        self.trouble.replace(Some(Box::new(hears)));
    }

    /// Something has failed at the server of this host and port. Passed on at most ten times a
    /// second.
    pub fn have_looked_at(&self, host: &str, port: u16) {
        self.tell(host, port, Sign::Failed);
    }

    fn tell(&self, host: &str, port: u16, sign: Sign) {
        if let Some(server) = self.servers.at(host, port)
            && server.may_be_looked_at(self.rt.now())
            && let Some(hears) = &*self.trouble.borrow()
        {
            let host = server.host.clone();
            hears(ServerKey { host, port }, sign);
        }
    }

    /// The server at an address, be it that it has no place yet.
    pub(crate) fn server_at(&self, key: &ServerKey) -> Rc<crate::server::Server> {
        self.servers.at_or_new(&key.host, key.port)
    }

    /// Resolves when servers are placed anew, by an operator or by what checks have seen.
    pub async fn are_placed_anew(&self) {
        self.adopted.wait().await;
    }

    /// Work with these servers from now on. Connections to servers that left close when they are
    /// given back.
    pub fn adopt(&self, snapshot: &Snapshot, placed: &Placed) {
        self.renew();
        self.max_age.set(Duration::from_millis(
            snapshot.variables.mysql_connection_max_age_ms,
        ));
        self.free_pct
            .set(snapshot.variables.mysql_free_connections_pct);
        self.adopt_pings(&snapshot.variables);
        let now = self.rt.now();
        let mut groups = self.groups.borrow_mut();
        for id in placed.hostgroups.keys() {
            groups.entry(*id).or_default();
        }
        for hostgroup in snapshot.servers.iter() {
            groups.entry(hostgroup.id).or_default();
        }
        let sources = Sources::of(snapshot);
        for (id, group) in groups.iter() {
            group.free_pct.set(
                snapshot
                    .servers
                    .hostgroup(*id)
                    .and_then(|h| h.attributes.free_connections_pct),
            );
            let attributes = snapshot.servers.hostgroup(*id).map(|one| &one.attributes);
            group
                .chooser
                .balance
                .set(attributes.map_or(Balance::Weight, |one| one.balance));
            let mut places = group.places.borrow_mut();
            let among_others = places.iter().any(|place| place.served());
            let here = placed.hostgroups.get(id).map_or(&[][..], Vec::as_slice);
            let moved = |row: &Server, at| placed.has_moved(&snapshot.servers, row, at);
            self.adopt_places(&mut places, here, moved);
            let header = snapshot
                .servers
                .hostgroup(*id)
                .map_or(0, |h| h.attributes.proxy_protocol);
            let max = snapshot
                .servers
                .hostgroup(*id)
                .and_then(|h| h.attributes.max_connections);
            let begins = init_connect(snapshot, *id);
            let online = here
                .iter()
                .filter(|place| place.serves == Serves::Yes)
                .count();
            let online_max = snapshot
                .servers
                .hostgroup(*id)
                .map(|h| h.attributes.max_num_online_servers);
            let too_many = online_max.is_some_and(|max| online > max as usize);
            for place in places.iter() {
                place.is_chosen_by(attributes, among_others, now);
                place.group_max.set(max.unwrap_or(room::UNLIMITED));
                place.one_of_too_many.set(too_many);
                place.shrink();
                place.speaks(header);
                place.begins_with(begins);
                place.collects(sources.has(*id));
                place
                    .hides_gtids
                    .set(!snapshot.variables.mysql_client_session_track_gtid);
                place
                    .resets_by_login
                    .set(snapshot.variables.mysql_reset_connection_algorithm == 1);
            }
            // What is to go is not kept for what it remembers.
            group
                .lingering
                .press_of(|place| !place.keeps() || place.is_over());
            let admission = attributes.map(|one| one.admission).unwrap_or_default();
            group.admission.settings.set(admission);
            group.limited.set(admission.concurrency.is_some());
            for place in places.iter() {
                place.limits(admission.concurrency, &self.registry);
            }
            group.warms.set(warms(snapshot, *id));
            group.pace_max.set(Some(pace_of(snapshot, *id)));
            group.paced.call();
            group.queue.call();
        }
        drop(groups);
        self.servers.sweep();
        self.compare_servers();
        self.adopted.notify_all();
    }

    /// The servers of a hostgroup. Connections of those that left close when they are given back.
    /// `moved`: those that serve elsewhere in their topology now, or whose name leads elsewhere, and
    /// end what they have here.
    fn adopt_places(
        &self,
        places: &mut Vec<Rc<Place>>,
        here: &[topology::Place],
        moved: impl Fn(&Server, Option<IpAddr>) -> bool,
    ) {
        let now = self.rt.now();
        // There may be thousands in one hostgroup, and sessions wait meanwhile.
        type Key<'a> = (&'a str, u16, Option<IpAddr>);
        type ByAddress<'a, T> = HashMap<Key<'a>, T, foldhash::fast::RandomState>;
        let new: ByAddress<'_, &topology::Place> = here
            .iter()
            .map(|one| ((&*one.server.hostname, one.server.port, one.at), one))
            .collect();
        for place in places.iter() {
            let old = place.server();
            match new.get(&(&*old.hostname, old.port, place.at())) {
                Some(placed) => place.update(placed, now),
                None => place.leave(moved(&old, place.at())),
            }
        }
        places.retain(|place| !place.is_done());
        let known: Vec<_> = places
            .iter()
            .map(|place| (place.server(), place.at()))
            .collect();
        let known: HashSet<Key<'_>, foldhash::fast::RandomState> = known
            .iter()
            .map(|(server, at)| (&*server.hostname, server.port, *at))
            .collect();
        for one in here {
            let row = &one.server;
            if !known.contains(&(&*row.hostname, row.port, one.at)) {
                let room = Room::of(&self.registry, row.hostgroup, &row.hostname, row.port);
                let place = Place::new(row.clone(), room, self.servers.of(row, one.at));
                place.update(one, now);
                places.push(place);
            }
        }
    }

    pub(crate) fn group(&self, hostgroup: u32) -> Rc<Group> {
        self.groups
            .borrow_mut()
            .entry(hostgroup)
            .or_default()
            .clone()
    }

    /// Give a connection back. It is kept only when it may be shared, and its protocol state is
    /// proven idle.
    pub fn release(&self, backend: Box<Backend>) {
        self.release_shared(backend);
    }

    /// Gives back a connection of which nobody knows what is on its way there: it is closed.
    pub fn abandon(&self, mut backend: Box<Backend>) {
        backend.idle = Idle::Doubtful;
        self.release(backend);
    }

    /// Gives a connection back. Whether somebody else may have it: it is idle here, on its way to
    /// another core, or closed to leave its room to who waits.
    pub(crate) fn release_shared(&self, mut backend: Box<Backend>) -> bool {
        let hostgroup = backend.place.server().hostgroup;
        backend.in_use = false;
        backend.place.end_use();
        let had_slot = backend.slot.take().is_some();
        backend.close_meant_otherwise();
        backend.lease = Lease::default();
        backend.lasting.since = self.rt.now();
        let place = backend.place.clone();
        let shareable = backend.idle == Idle::Proven
            && backend.holds.is_empty()
            && !backend.retired
            && !backend.interrupted
            && backend.local.unreported == Unreported::Nothing
            && backend.conn.is_idle();
        let young = self.max_age.get().is_zero()
            || self.rt.now() - backend.lasting.opened < self.max_age.get();
        let group = self.group(hostgroup);
        if had_slot {
            self.has_freed_slot(&group, &place);
        }
        let paced = group.paced.first_since_for(&backend.key);
        let since = [group.queue.first_since(), paced]
            .into_iter()
            .flatten()
            .min();
        // Others shall not have in clear what is to be encrypted since, nor what another client was
        // named for, nor what began otherwise.
        let alike = place.is_alike(&backend.lasting.opened_as, backend.init_connect.as_deref());
        let may_be_shared = shareable && young && alike && place.keeps();
        let mut kept = may_be_shared.then_some(backend);
        if place.is_over() {
            // A LOAD has lowered a limit: it goes, whoever waits.
            kept = None;
        }
        if kept.is_some() && !group.wishes.is_empty() {
            let room = self.gives_way(&place, since, LEND_WAY);
            kept = kept.and_then(|backend| self.pass_on(&group, backend, room, since));
            if kept.is_none() {
                // It is on its way to who has waited longest.
                group.queue.call();
                return may_be_shared;
            }
        }
        let will_travel = |backend: &Backend| {
            since.is_none() && self.is_about_to_be_asked_for(&group, &place, backend)
        };
        let goes = kept.as_ref().is_some_and(|backend| {
            self.gives_way(&place, since, GIVE_WAY) && !will_travel(backend)
        });
        match kept.filter(|_| !goes) {
            Some(backend) => {
                self.note_modes(&backend);
                self.tally.up(Counter::MyhgmPoolPush);
                let key = paced.is_some().then(|| backend.key.clone());
                place.idle.borrow_mut().push(backend);
                if let Some(key) = key {
                    group.paced.offer(&key);
                }
            }
            None => self.tally.up(Counter::MyhgmPoolDestroy),
        }
        group.queue.call();
        may_be_shared
    }

    /// A session goes on as if it had just begun: what others could wait for, or see, of what it
    /// did is gone from the server when this returns, as it is where the server itself is asked for
    /// a reset. Where that takes more than five seconds, or cannot be, the connection is closed.
    pub async fn clean(&self, mut backend: Box<Backend>) {
        if backend.idle == Idle::Proven && backend.conn.is_idle() {
            self.reset(&mut backend).await;
        } else {
            self.tally.up(Counter::KilledBackendConnections);
        }
        self.release(backend);
    }

    /// Ends the transaction of a session that has ended in it. All else that is set there is known,
    /// and serves the next of its kind.
    async fn roll_back(&self, backend: &mut Backend) {
        let ended = self
            .rt
            .timeout(Duration::from_secs(5), backend.roll_back())
            .await;
        if !matches!(ended, Ok(Ok(()))) {
            backend.idle = Idle::Doubtful;
        }
    }

    pub(crate) async fn reset(&self, backend: &mut Backend) {
        let reset = self
            .rt
            .timeout(Duration::from_secs(5), backend.reset())
            .await;
        if !matches!(reset, Ok(Ok(()))) {
            backend.idle = Idle::Doubtful;
        }
    }

    /// A session ends while it holds a connection: clean it aside and give it back, or close it.
    pub fn give_up(self: &Rc<Self>, mut backend: Box<Backend>) {
        if backend.idle != Idle::Proven || !backend.conn.is_idle() {
            self.tally.up(Counter::KilledBackendConnections);
            self.release(backend);
            return;
        }
        if !backend.holds.need_reset() && backend.local.unreported == Unreported::Nothing {
            if backend.holds.has(Hold::InsertId) {
                backend.lasting.insert_id = None;
            }
            backend.holds.clear();
            self.release(backend);
            return;
        }
        if self.resets.get() >= self.resets_max.get() {
            // So many were given up at once that closing it is sooner done.
            self.abandon(backend);
            return;
        }
        self.resets.set(self.resets.get() + 1);
        let pools = self.clone();
        let rolls_back =
            backend.holds.end_with_transaction() && backend.local.unreported == Unreported::Nothing;
        self.rt.spawn(async move {
            if rolls_back {
                pools.roll_back(&mut backend).await;
            } else {
                pools.reset(&mut backend).await;
            }
            pools.resets.set(pools.resets.get() - 1);
            pools.release(backend);
        });
    }

    /// How often a server has greeted with another version than before.
    #[must_use]
    pub fn upgrades(&self) -> u64 {
        self.upgrades.get()
    }

    /// How servers read texts by themselves, as far as connections have told.
    #[must_use]
    pub fn own_modes(&self) -> OwnModes {
        self.own_modes.get()
    }

    /// A connection on which no session has set anything tells how its server reads texts.
    #[inline]
    pub(crate) fn note_modes(&self, backend: &Backend) {
        let flags = backend.holds.modes();
        let before = backend.place.own_modes.get();
        if before != Some((flags, flags)) && backend.state.variables.is_none() {
            let both = before.map_or((flags, flags), |(all, any)| (all & flags, any | flags));
            if before != Some(both) {
                backend.place.own_modes.set(Some(both));
                self.compare_servers();
            }
        }
    }

    /// Whether every server that takes work is known to have MariaDB's bulk execute, as far as
    /// connections have told; without servers none has.
    #[must_use]
    pub fn all_have_bulk(&self) -> bool {
        self.all_have_bulk.get()
    }

    /// Notes what a server's greeting says of character sets, and whether it has MariaDB's bulk
    /// execute.
    pub(crate) fn note_greeting(&self, place: &Place, hello: &Hello) {
        let mut version = place.known.version.borrow_mut();
        if version
            .as_ref()
            .is_some_and(|before| **before != *hello.version)
        {
            self.upgrades.set(self.upgrades.get() + 1);
        }
        if version
            .as_ref()
            .is_none_or(|before| **before != *hello.version)
        {
            *version = Some(hello.version.as_str().into());
        }
        drop(version);
        let other_collation = place.known.own_collation.replace(hello.collation) != hello.collation;
        let bulk = wire::bulk::is_known(hello.offered);
        if place.known.has_bulk.get() != Some(bulk) {
            let port = place.server().port;
            self.heard_of(place.host(), port, bulk);
            self.tell_of(place.host(), port, bulk);
        } else if other_collation {
            self.compare_servers();
        }
    }

    /// Notes what another core was told by a server.
    #[cold]
    pub(crate) fn heard_of(&self, host: &str, port: u16, bulk: bool) {
        if let Some(server) = self.servers.at(host, port) {
            server.has_bulk.set(Some(bulk));
        }
        self.compare_servers();
    }

    #[cold]
    fn compare_servers(&self) {
        let (mut said, mut shifts, mut blank, mut bulk) =
            (Vec::new(), false, None::<sql::Blank>, None);
        for group in self.groups.borrow().values() {
            for place in group
                .places
                .borrow()
                .iter()
                .filter(|place| !place.has_left())
            {
                said.push(place.own_modes.get());
                let collation = wire::charset::by_id(u16::from(place.known.own_collation.get()));
                shifts |= collation.is_some_and(|collation| SHIFTING.contains(&collation.charset));
                if let Some(own) = collation.and_then(|collation| sql::Blank::of(collation.charset))
                {
                    blank = Some(blank.map_or(own, |others| others.or(own)));
                }
                if place.is_working() {
                    bulk = Some(bulk.unwrap_or(true) && place.known.has_bulk.get() == Some(true));
                }
            }
        }
        self.own_modes.set(OwnModes {
            shifts,
            blank,
            ..OwnModes::of(&said)
        });
        self.all_have_bulk.set(bulk == Some(true));
    }

    /// Idle connections that all cores together keep of a server.
    pub(crate) fn kept_free(&self, group: &Group, place: &Place) -> u32 {
        let free_pct = group
            .free_pct
            .get()
            .map_or_else(|| self.free_pct.get(), u64::from);
        u32::try_from((u64::from(place.connections_max()) * free_pct).div_ceil(100))
            .unwrap_or(u32::MAX)
    }

    /// A session has fallen silent, and only what this connection remembers for it keeps that: it
    /// may be asked for.
    pub fn lingers(&self, backend: &Backend, who: &Rc<dyn Lingers>) {
        let group = self.group(backend.place.server().hostgroup);
        group.lingering.add(&backend.key, &backend.place, who);
    }

    /// Once in a while: close what is closed, too old or too many, and open ahead where that is
    /// wanted.
    pub fn sweep(self: &Rc<Self>, snapshot: &Snapshot) {
        // A hint may name any hostgroup. Who waits for one that has no servers holds it, and finds
        // what a LOAD brings.
        self.groups
            .borrow_mut()
            .retain(|_, group| Rc::strong_count(group) > 1 || !group.places.borrow().is_empty());
        let now = self.rt.now();
        let cores = self.neighbours.cores();
        for group in self.groups.borrow().values() {
            let mut places = group.places.borrow_mut();
            if places.iter().any(|place| place.is_over()) {
                // Other proxies of the fleet have got more of its limit.
                group.lingering.press_of(|place| place.is_over());
            }
            for place in places.iter() {
                place.known.allowed.age(now);
                place.shrink();
                if place.falls_silent() {
                    self.tell(place.host(), place.server().port, Sign::Silent);
                }
                let keep_of_all = self.kept_free(group, place);
                let keep = (keep_of_all as usize).div_ceil(cores).max(1);
                let wanted = self.gives_way(place, group.queue.first_since(), GIVE_WAY);
                let mut idle = place.idle.borrow_mut();
                let max_age = self.max_age.get();
                idle.retain(|b| {
                    if !b.conn.is_idle() {
                        self.unhealthy(b, "the server has closed it, or spoke unasked");
                        return false;
                    }
                    max_age.is_zero() || now - b.lasting.opened < max_age
                });
                // One for each core that waits; where more are wanted, the next sweep closes more.
                let asked_for = if wanted {
                    place.room.of_server.wanted() as usize
                } else {
                    0
                };
                let mut surplus = idle
                    .len()
                    .saturating_sub(keep)
                    .max(asked_for.min(idle.len()));
                if group.warms.get() && !wanted {
                    // They are opened where a client came, and go to the cores that need them.
                    surplus = surplus.min(place.taken().saturating_sub(keep_of_all) as usize);
                }
                idle.drain(..surplus);
                drop(idle);
                if group.warms.get() && !wanted {
                    self.warm(group, place, snapshot);
                }
                self.ping(group, place, now);
            }
            places.retain(|place| !place.is_done());
            group.queue.call();
        }
        self.compare_servers();
    }

    /// Rows of `stats_mysql_connection_pool`.
    #[must_use]
    pub fn report(&self, reset: bool) -> Vec<PoolRow> {
        let now = self.rt.now();
        let groups = self.groups.borrow();
        let rows = groups
            .values()
            .flat_map(|g| {
                g.places
                    .borrow()
                    .iter()
                    .map(|p| p.report(now, reset))
                    .collect::<Vec<_>>()
            })
            .collect();
        // A server whose name leads elsewhere may have connections there still.
        bridge::joined(rows)
    }

    /// Connections to an address and port of which the host is the name, or that by itself: those in
    /// use, and those that are idle.
    #[must_use]
    pub fn connections_at(&self, host: &str, address: &str, port: u16) -> (u64, u64) {
        let groups = self.groups.borrow();
        let (mut used, mut free) = (0, 0);
        let by_name = address.parse().ok();
        for group in groups.values() {
            let places = group.places.borrow();
            let there = |place: &&Rc<Place>| {
                place.is_of(host, port, by_name) || place.is_of(address, port, None)
            };
            for place in places.iter().filter(there) {
                used += place.numbers.used.get();
                free += place.idle.borrow().len() as u64;
            }
        }
        (used, free)
    }

    /// Rows of `stats_mysql_hostgroup_pool`.
    #[must_use]
    pub fn report_groups(&self) -> Vec<HostgroupPoolRow> {
        let now = self.rt.now();
        self.groups
            .borrow()
            .iter()
            .filter_map(|(id, group)| group.report(*id, now))
            .collect()
    }

    /// Rows of `stats_mysql_choice`.
    #[must_use]
    pub fn report_choices(&self) -> Vec<ChoiceRow> {
        let now = self.rt.now();
        let groups = self.groups.borrow();
        let of = |group: &Rc<Group>| -> Vec<_> {
            let (places, balance) = (group.places.borrow(), group.chooser.balance.get());
            places
                .iter()
                .filter(|place| !place.has_left())
                .map(|place| place.report_choice(balance, now))
                .collect()
        };
        groups.values().flat_map(of).collect()
    }

    /// Rows of `stats_mysql_free_connections`.
    #[must_use]
    pub fn free_connections(&self) -> Vec<FreeConnectionRow> {
        let now = self.rt.now();
        let mut rows = Vec::new();
        for (id, group) in self.groups.borrow().iter() {
            for place in group.places.borrow().iter() {
                for backend in place.idle.borrow().iter() {
                    rows.push(backend.free_row(*id, now));
                }
            }
        }
        rows
    }
}

/// Whether connections to a hostgroup are opened ahead. A row says it for its hostgroup, whatever
/// the variable says.
fn warms(snapshot: &Snapshot, hostgroup: u32) -> bool {
    let own = snapshot
        .servers
        .hostgroup(hostgroup)
        .map(|group| &group.attributes)
        .filter(|attributes| attributes.row().is_some());
    own.map_or(snapshot.variables.mysql_connection_warming, |attributes| {
        attributes.connection_warming
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use wire::status::{ANSI_QUOTES, NO_BACKSLASH_ESCAPES};

    #[test]
    fn nothing_is_kept_of_hostgroups_that_nobody_has_configured() {
        testing::with_several(|_rt, pools, place| async move {
            let (pools, snapshot) = (Rc::new(pools), Snapshot::default());
            pools.group(0).places.borrow_mut().push(place);
            let waits = pools.group(7);
            for number in 1000..2000 {
                drop(pools.group(number));
                pools.hear_of_a_wish(5000 + number);
            }
            pools.sweep(&snapshot);
            assert_eq!(
                pools.groups.borrow().keys().copied().collect::<Vec<_>>(),
                [0, 7]
            );
            assert!(
                Rc::ptr_eq(&waits, &pools.group(7)),
                "who waits there finds what a LOAD brings"
            );
        });
    }

    #[test]
    fn a_client_is_told_what_all_servers_do() {
        let of = |said: &[Option<(u16, u16)>]| {
            let own = OwnModes::of(said);
            (own.flags, own.differ)
        };
        let alike = |flags| Some((flags, flags));
        assert_eq!(of(&[]), (0, false));
        assert_eq!(of(&[None, alike(0)]), (0, false));
        assert_eq!(
            of(&[alike(NO_BACKSLASH_ESCAPES)]),
            (NO_BACKSLASH_ESCAPES, false)
        );
        assert_eq!(of(&[alike(ANSI_QUOTES), alike(0)]), (0, false));
        // One that has not said anything, another cluster, and one whose connections are of two
        // kinds.
        assert_eq!(of(&[alike(NO_BACKSLASH_ESCAPES), None]), (0, true));
        assert_eq!(
            of(&[alike(NO_BACKSLASH_ESCAPES | ANSI_QUOTES), alike(0)]),
            (0, true)
        );
        assert_eq!(of(&[Some((0, NO_BACKSLASH_ESCAPES))]), (0, true));
    }
}
