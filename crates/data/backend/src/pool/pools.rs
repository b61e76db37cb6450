//! All servers of this core, and the connections that wait there for a session.

use crate::connection::place::Place;
use crate::cores::neighbours::{Neighbours, Speak};
use crate::hostgroup::group::Group;
use crate::pool::own_modes::OwnModes;
use crate::servers::server::{Server, Servers};
use crate::tally::Tally;
use bridge::Sign;
use hashbrown::HashMap;
use net::tls::{Connector, Settings};
use rt::local::Notify;
use rt::permits::Registry;
use rt::{Instant, Rt};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;
use topology::ServerKey;

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
    pub(crate) resets: Cell<u64>,
    pub(crate) resets_max: Cell<u64>,
    /// Connections that are open only to say KILL.
    pub(crate) kills: Cell<u32>,
    /// KILLs that wait until their server lets somebody in.
    pub(crate) kills_waiting: Cell<u32>,
    /// Who hears that something is wrong with a server.
    trouble: RefCell<Option<Trouble>>,
    /// Rung when servers were placed anew.
    pub(crate) adopted: Notify,
    note: Note,
    /// Greatest age of a connection, from the configuration, for the sweep.
    pub(crate) max_age: Cell<Duration>,
    pub(crate) free_pct: Cell<u64>,
    pub(crate) own_modes: Cell<OwnModes>,
    pub(crate) all_have_bulk: Cell<bool>,
    pub(crate) upgrades: Cell<u64>,
}

impl std::fmt::Debug for Pools {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pools").finish_non_exhaustive()
    }
}

/// Hears of a server.
type Trouble = Box<dyn Fn(ServerKey, Sign)>;

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

    pub(crate) fn tell(&self, host: &str, port: u16, sign: Sign) {
        if let Some(server) = self.servers.at(host, port)
            && server.may_be_looked_at(self.rt.now())
            && let Some(hears) = &*self.trouble.borrow()
        {
            let host = server.host.clone();
            hears(ServerKey { host, port }, sign);
        }
    }

    /// The server at an address, be it that it has no place yet.
    pub(crate) fn server_at(&self, key: &ServerKey) -> Rc<Server> {
        self.servers.at_or_new(&key.host, key.port)
    }

    pub(crate) fn group(&self, hostgroup: u32) -> Rc<Group> {
        self.groups
            .borrow_mut()
            .entry(hostgroup)
            .or_default()
            .clone()
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

    /// There are other cores, `others` by their indexes, and this is how they are spoken to.
    pub fn meet(&self, others: Vec<u32>, speak: Speak) {
        self.neighbours.meet(others, speak);
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

    /// Does somebody on another core wait for the server?
    pub(crate) fn is_wanted_elsewhere(&self, place: &Place) -> bool {
        self.gives_way(place, None, Duration::ZERO)
    }

    pub(crate) fn place_at(&self, hostgroup: u32, (host, port): (&str, u16)) -> Option<Rc<Place>> {
        let group = self.group(hostgroup);
        let is_it =
            |of: &&Rc<Place>| **of.host() == *host && of.server().port == port && !of.has_left();
        group.places.borrow().iter().find(is_it).cloned()
    }
}
