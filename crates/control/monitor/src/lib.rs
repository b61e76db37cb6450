//! The monitor: a thread that asks every server whether it is there, whether it may write and how
//! far it is behind, and tells the cores what it has seen. It decides nothing: who serves where
//! follows by [`topology::placed`].
//!
//! docs/features/monitoring.md
#![forbid(unsafe_code)]

mod doubt;
mod feeds;
mod history;
mod leaving;
mod names;
mod untold;
mod watch;
mod writers;

use bridge::{CheckRow, Done, Sign, ToCore, ToMonitor};
use config::{Server, Servers, Snapshot, Status, Topology, Variables};
pub use doubt::writer_of;
use feeds::Readers;
use history::History;
use line::Connectors;
use names::Names;
use rt::local::Bell;
use rt::{Rt, mailbox};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use topology::{Observed, Placed, Policy, Role, ServerKey, Serves};
pub use watch::who_asks;
use watch::{Interest, Watch};

/// Settings and neighbours that the monitor needs.
pub struct Setup {
    /// Snapshot that is in force at the start.
    pub snapshot: Arc<Snapshot>,
    /// Servers are not checked, whatever `mysql-monitor_enabled` says: `--no-monitor`.
    pub off: bool,
    /// Letters that tell the monitor something, or ask it.
    pub letters: mailbox::Receiver<ToMonitor>,
    /// Tells all cores something; whether all could be told.
    pub tell: Tell,
    /// The data directory, which keeps who is the writer of each topology for the next start.
    pub datadir: PathBuf,
    /// Hears what an operator should read.
    pub note: Box<dyn Fn(&str)>,
    /// Microseconds since 1970.
    pub clock: Box<dyn Fn() -> u64>,
}

/// Tells all cores what this makes, each its own; whether all could be told.
pub type Tell = Box<dyn Fn(&dyn Fn() -> ToCore) -> bool>;

/// Servers by the hostgroup whose writer they are.
pub type Writers = BTreeMap<u32, ServerKey>;

/// A core whose mailbox is full is told again after this.
const AGAIN: Duration = Duration::from_millis(5);

/// For each server that is watched so long passes between two looks at all that was seen.
const LOOK_COSTS: Duration = Duration::from_micros(30);

/// A server that no row names: the topology whose servers know it, and a row that is made up.
pub(crate) type Found = (Arc<Topology>, Arc<Server>);

pub(crate) struct Monitor {
    rt: Rt,
    snapshot: RefCell<Arc<Snapshot>>,
    /// By what is asked: a row's host, or an address of its name.
    watched: RefCell<BTreeMap<ServerKey, Rc<Watch>>>,
    /// Hosts and ports of all rows, and of servers that others know.
    rows: RefCell<BTreeSet<ServerKey>>,
    observed: RefCell<Arc<Observed>>,
    /// Places of all servers, by what was observed last.
    placed: RefCell<Placed>,
    /// Some watch has seen something that matters.
    news: Bell,
    /// Another configuration is in force.
    loads: Bell,
    found: RefCell<BTreeMap<ServerKey, Found>>,
    history: RefCell<History>,
    readers: Readers,
    names: Names,
    pub(crate) connectors: Connectors,
    /// Hostgroups of writers in which nobody serves.
    lacking: RefCell<BTreeSet<u32>>,
    /// Hostgroups of writers for which several servers say that they may write.
    rivals: RefCell<BTreeSet<u32>>,
    off: bool,
    /// The checks count, by `mysql-monitor_enabled`.
    counts: Cell<bool>,
    tell_cores: Tell,
    writers: writers::File,
    note: Box<dyn Fn(&str)>,
    clock: Box<dyn Fn() -> u64>,
}

/// Runs until nobody can tell it anything any more.
pub async fn run(rt: Rt, setup: Setup) {
    let monitor = Rc::new(Monitor {
        rt,
        snapshot: RefCell::new(setup.snapshot.clone()),
        watched: RefCell::default(),
        rows: RefCell::default(),
        observed: RefCell::default(),
        placed: RefCell::default(),
        news: Bell::new(),
        loads: Bell::new(),
        found: RefCell::default(),
        history: RefCell::default(),
        readers: Readers::default(),
        names: Names::default(),
        connectors: Connectors::default(),
        lacking: RefCell::default(),
        rivals: RefCell::default(),
        off: setup.off,
        counts: Cell::new(true),
        tell_cores: setup.tell,
        writers: writers::File::of(&setup.datadir),
        note: setup.note,
        clock: setup.clock,
    });
    monitor.recall_writers();
    monitor.load(setup.snapshot);
    monitor.rt.spawn(doubt::settle(monitor.clone()));
    monitor.rt.spawn(leaving::forget(monitor.clone()));
    monitor.rt.spawn(untold::look(monitor.clone()));
    monitor.rt.spawn(monitor.clone().see_news());
    while let Some(letter) = setup.letters.recv().await {
        match letter {
            ToMonitor::Load(snapshot) => monitor.load(snapshot),
            ToMonitor::Checks { of, reply } => reply(monitor.history.borrow().rows(of)),
            ToMonitor::Seen(reply) => reply(monitor.observed.borrow().clone()),
            ToMonitor::Counts(reply) => reply(Done {
                checks: monitor.history.borrow().counts(),
                ..monitor.names.done()
            }),
            ToMonitor::Gtids(reply) => reply(monitor.readers.rows()),
            ToMonitor::Logs(reply) => reply(monitor.readers.logs()),
            ToMonitor::Look(server, Sign::Failed) => monitor.look(&server),
            ToMonitor::Look(server, Sign::Silent) => monitor.ping(&server),
        }
    }
}

/// As it would be with `mysql-monitor_enabled` off.
fn without_checks(snapshot: &Snapshot) -> Arc<Snapshot> {
    let variables = Variables {
        mysql_monitor_enabled: false,
        ..Variables::clone(&snapshot.variables)
    };
    Arc::new(Snapshot {
        variables: Arc::new(variables),
        ..snapshot.clone()
    })
}

impl Monitor {
    fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.borrow().clone()
    }

    /// Watches the servers of a configuration: those that are new, and no more those that are gone.
    fn load(self: &Rc<Self>, snapshot: Arc<Snapshot>) {
        let snapshot = if self.off {
            without_checks(&snapshot)
        } else {
            snapshot
        };
        self.counts.set(snapshot.variables.mysql_monitor_enabled);
        self.connectors.renew();
        self.snapshot.replace(snapshot);
        self.watch();
        self.names.look_again();
        self.follow_readers();
        let watched = self.watched.borrow();
        watched.values().for_each(|watch| watch.look_again());
        drop(watched);
        // What was not worth telling under the rows of before may be under these.
        self.see();
        self.loads.ring();
        self.rt.spawn(self.clone().publish());
    }

    /// Follows the readers and logs that rows and hostgroups name.
    fn follow_readers(self: &Rc<Self>) {
        let wanted = feeds::wanted(&self.snapshot().servers);
        self.readers.follow(self, &wanted);
    }

    /// A server that no row names.
    pub(crate) fn found(&self, key: &ServerKey) -> Option<Found> {
        self.found.borrow().get(key).cloned()
    }

    /// Watches all servers that rows name or that others know, and no more those that are gone. Of a
    /// name each address is watched.
    fn watch(self: &Rc<Self>) {
        let snapshot = self.snapshot();
        let mut rows: BTreeMap<ServerKey, Vec<Arc<Server>>> = BTreeMap::new();
        for row in snapshot.servers.iter().flat_map(|one| &one.servers) {
            rows.entry(ServerKey::of(row))
                .or_default()
                .push(row.clone());
        }
        rows.retain(|_, rows| rows.iter().any(|row| row.status != Status::OfflineHard));
        for key in self.found.borrow().keys() {
            rows.entry(key.clone()).or_default();
        }
        let names = rows
            .keys()
            .filter(|key| names::is_name(&key.host, key.port));
        let names = names.map(|key| key.host.clone()).collect();
        self.names.follow(self, &names);
        let mut wanted: BTreeMap<ServerKey, Interest> = BTreeMap::new();
        for (key, rows) in &rows {
            for at in self.names.keys_of(key) {
                let interest = wanted.entry(at).or_default();
                interest.keys.push(key.clone());
                interest.rows.extend(rows.iter().cloned());
            }
        }
        self.rows.replace(rows.into_keys().collect());
        let mut watched = self.watched.borrow_mut();
        watched.retain(|key, watch| {
            let stays = wanted.contains_key(key);
            if !stays {
                watch.stop();
            }
            stays
        });
        let observed = self.observed.borrow().clone();
        for (key, interest) in wanted {
            let watch = watched.entry(key).or_insert_with_key(|key| {
                // Until it has answered, it is what the name was.
                let lead = |row: &ServerKey| observed.lead(&row.host, row.port);
                let of_name = interest.keys.iter().find(|row| lead(row).is_some());
                let before = of_name.map(|row| observed.of(row));
                let watch = Rc::new(Watch::new(key.clone(), before));
                self.rt.spawn(watch.clone().run(self.clone()));
                watch
            });
            watch.is_for(interest);
        }
    }

    /// Names lead elsewhere: they are watched there, and those who serve may be others.
    pub(crate) fn names_have_changed(self: &Rc<Self>) {
        self.watch();
        self.tell();
    }

    /// Where to ask a server of this host: at the address of its name that is in use.
    pub(crate) fn host_of(&self, key: &ServerKey) -> Arc<str> {
        let lead = self.observed.borrow().lead(&key.host, key.port);
        lead.map_or_else(|| key.host.clone(), |ip| ip.to_string().into())
    }

    /// Pings a server now, at all of its addresses that are in use.
    fn ping(&self, key: &ServerKey) {
        for watch in self.watched.borrow().values() {
            if *watch.key() == *key || watch.is_of(|row| row == key) {
                watch.look_now(Sign::Silent);
            }
        }
    }

    /// Looks at a server now, and at those with which it has a topology: one of them may be what it
    /// was.
    fn look(&self, key: &ServerKey) {
        self.names.look_now(&key.host);
        let snapshot = self.snapshot();
        let has = |hostgroups: &[u32], wanted: &ServerKey| {
            let all = snapshot.servers.iter();
            let mut rows = all
                .filter(|one| hostgroups.contains(&one.id))
                .flat_map(|one| &one.servers);
            rows.any(|row| ServerKey::of(row) == *wanted)
        };
        let topologies = snapshot.servers.topologies().iter();
        let own: Vec<_> = topologies
            .map(|topology| topology.hostgroups())
            .filter(|hostgroups| has(hostgroups, key))
            .collect();
        for watch in self.watched.borrow().values() {
            let is_own = |other: &ServerKey| {
                other == key || own.iter().any(|hostgroups| has(hostgroups, other))
            };
            if *watch.key() == *key || watch.is_of(is_own) {
                watch.look_now(Sign::Failed);
            }
        }
    }

    /// Tells the cores what was seen, if that changes anything for them.
    pub(crate) fn tell(&self) {
        self.news.ring();
    }

    /// Looks at what the watches have seen: at once, and then not before a pause. Each look is at all
    /// servers, here and on every core, and thousands of them may answer within a second.
    async fn see_news(self: Rc<Self>) {
        loop {
            self.news.heard().await;
            if self.see() {
                self.rt.spawn(self.clone().publish());
            }
            let servers = u32::try_from(self.watched.borrow().len());
            self.rt
                .sleep(LOOK_COSTS * servers.unwrap_or(u32::MAX))
                .await;
        }
    }

    /// Gathers what all watches see; whether that changes who serves.
    fn see(self: &Rc<Self>) -> bool {
        let snapshot = self.snapshot();
        let before = self.observed.borrow().clone();
        let mut now = Observed {
            generation: before.generation + 1,
            writers: before.writers.clone(),
            ..Observed::default()
        };
        if self.counts.get() {
            self.gather(&mut now);
        }
        let policy = Policy::of(&snapshot.variables);
        let is = topology::placed(&snapshot.servers, &now, &policy);
        now.writers = is.writers.clone();
        if before.writers != now.writers {
            self.remember(&now.writers);
        }
        self.see_who_lacks_a_writer(&snapshot.servers, &is);
        self.see_rivals(&snapshot.servers, &now);
        for (hostgroup, writer) in &now.writers {
            let before = before.writers.get(hostgroup);
            if before != Some(writer) {
                let before = before.map_or_else(String::new, |one| format!(", no more {one}"));
                self.note(&format!(
                    "{writer} is the writer of hostgroup {hostgroup}{before}"
                ));
            }
        }
        let was = self.placed.borrow();
        self.tell_refused(&was, &is);
        let changes = was.hostgroups != is.hostgroups
            || was.elsewhere != is.elsewhere
            || before.writers != now.writers;
        drop(was);
        self.readers.follow_names(&before, &now);
        self.observed.replace(Arc::new(now));
        let found = self.found.replace(is.found.clone());
        self.placed.replace(is);
        self.tell_found(&found);
        if found.keys().ne(self.found.borrow().keys()) {
            self.watch();
        }
        changes
    }

    /// Sights of all watches: of each row, and of each address of its name.
    fn gather(&self, now: &mut Observed) {
        now.names = self.names.known();
        let rows = self.rows.borrow();
        for (key, watch) in &*self.watched.borrow() {
            if rows.contains(key) {
                now.servers.insert(key.clone(), watch.seen());
            }
            if watch.is_of(|row| row != key) {
                now.addresses.insert(key.clone(), watch.seen());
            }
        }
        for row in &*rows {
            if let Some(seen) = now.by_address(row).cloned() {
                now.servers.insert(row.clone(), seen);
            }
        }
    }

    /// Who was the writer of each topology before the start.
    fn recall_writers(&self) {
        match self.writers.read() {
            Ok(writers) => {
                self.observed.replace(Arc::new(Observed {
                    writers,
                    ..Observed::default()
                }));
            }
            Err(error) => self.note(&format!("nobody knows who the writers were: {error}")),
        }
    }

    fn remember(&self, writers: &Writers) {
        if let Err(error) = self.writers.write(writers) {
            self.note(&format!(
                "who writes is not kept for the next start: {error}"
            ));
        }
    }

    /// Where nobody may write, all servers of the topology are looked at until somebody may.
    fn see_who_lacks_a_writer(&self, declared: &Servers, placed: &Placed) {
        let serve = |hostgroup: &u32| {
            let places = placed.hostgroups.get(hostgroup).into_iter().flatten();
            places.filter(|place| place.serves == Serves::Yes).count()
        };
        let mut lacking = BTreeSet::new();
        for topology in declared.topologies().iter().filter(|one| one.is_active()) {
            let (writers, hostgroups) = (topology.writers(), topology.hostgroups());
            if serve(&writers) > 0 {
                continue;
            }
            lacking.insert(writers);
            if !self.lacking.borrow().contains(&writers) {
                self.note(&format!(
                    "nobody gets the writes of hostgroup {writers}: they wait for a server that may write"
                ));
                let all = hostgroups.iter().filter_map(|id| placed.hostgroups.get(id));
                let keys: BTreeSet<_> = all.flatten().map(|place| place.key_at()).collect();
                let watched = self.watched.borrow();
                let all = keys.iter().filter_map(|key| watched.get(key));
                all.for_each(|watch| watch.look_now(Sign::Failed));
            }
        }
        let before = self.lacking.replace(lacking);
        for writers in before.difference(&self.lacking.borrow()) {
            self.note(&format!("writes of hostgroup {writers} are served again"));
        }
    }

    /// Tells an operator which servers get no writes although they say that they may write, and why.
    fn tell_refused(&self, was: &Placed, is: &Placed) {
        let refused = |placed: &Placed| -> BTreeMap<ServerKey, String> {
            let all = placed.hostgroups.values().flatten();
            let refused = all.filter_map(|place| {
                let why = place.why.as_ref().filter(|why| why.denies_writes())?;
                Some((place.key_at(), why.to_string()))
            });
            refused.collect()
        };
        let before = refused(was);
        for (key, why) in refused(is) {
            if before.get(&key) != Some(&why) {
                self.note_change(&format!("{key} gets no writes: {why}"));
            }
        }
    }

    /// Where several servers say that they may write, it matters who replicates from whom.
    fn see_rivals(&self, declared: &Servers, observed: &Observed) {
        let mut rivals = BTreeSet::new();
        for topology in declared.topologies().iter().filter(|one| one.is_active()) {
            let hostgroups = topology.hostgroups();
            let own = hostgroups.iter().filter_map(|id| declared.hostgroup(*id));
            let rows = own.flat_map(|one| &one.servers);
            let keys: BTreeSet<_> = rows.map(|row| ServerKey::of(row)).collect();
            let may_write = |key: &&ServerKey| {
                let told = observed.told(key, topology.kind());
                told.role == Role::ReadOnly(false) && !told.is_missed
            };
            if keys.iter().filter(may_write).count() > 1 {
                rivals.insert(topology.writers());
            }
        }
        self.rivals.replace(rivals);
    }

    /// Whether several servers say that they may write in this hostgroup.
    pub(crate) fn has_rivals(&self, hostgroup: u32) -> bool {
        self.rivals.borrow().contains(&hostgroup)
    }

    /// Whether nobody gets the writes of this hostgroup.
    pub(crate) fn lacks_a_writer(&self, hostgroup: u32) -> bool {
        self.lacking.borrow().contains(&hostgroup)
    }

    /// Tells an operator who has come and gone that no row names.
    fn tell_found(&self, before: &BTreeMap<ServerKey, Found>) {
        let now = self.found.borrow();
        for key in now.keys().filter(|key| !before.contains_key(*key)) {
            self.note_change(&format!(
                "{key}, which no row names, is in a cluster of these servers"
            ));
        }
        for key in before.keys().filter(|key| !now.contains_key(*key)) {
            self.note_change(&format!("{key}, which no row names, is gone"));
        }
    }

    /// Tells the cores until all know what is newest; what is older is never said behind it.
    async fn publish(self: Rc<Self>) {
        loop {
            let newest = self.observed.borrow().clone();
            if (self.tell_cores)(&|| ToCore::Observe(newest.clone())) {
                return;
            }
            self.rt.sleep(AGAIN).await;
        }
    }

    /// Keeps what a check has found.
    pub(crate) fn record(&self, check: bridge::Check, row: CheckRow) {
        let keep_us = self.snapshot().variables.mysql_monitor_history * 1000;
        self.history.borrow_mut().add(check, row, keep_us);
    }

    /// Tells an operator of a change of servers, if he wants that
    /// (`mysql-hostgroup_manager_verbose`).
    pub(crate) fn note_change(&self, words: &str) {
        let snapshot = self.snapshot.borrow();
        if snapshot.variables.mysql_hostgroup_manager_verbose > 0 {
            self.note(words);
        }
    }

    pub(crate) fn note(&self, words: &str) {
        (self.note)(&format!("monitor: {words}"));
    }
}
