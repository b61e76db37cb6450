//! A core: its number, its sessions and servers, counters, and values that all of its sessions share.

pub(crate) mod adopt;
pub(crate) mod alone;
pub(crate) mod audit;
pub(crate) mod calls;
pub(crate) mod fetching;
pub(crate) mod gates;
pub(crate) mod guests;
pub(crate) mod hosts;
pub(crate) mod lasting;
pub(crate) mod marks;
pub(crate) mod mirrors;
pub(crate) mod operators;
pub(crate) mod peers;
pub(crate) mod roster;
pub(crate) mod shared_writes;
pub(crate) mod watching;

use crate::core::gates::Gates;
use crate::core::guests::Scripting;
use crate::core::mirrors::Mirrors;
use crate::core::peers::{FromPeer, Loads, Peer};
use crate::core::roster::{Entry, Roster};
use crate::known::asking::Asking;
use crate::known::costs::Costs;
use crate::known::demoted;
use crate::known::epoch::{Epoch, placed};
use crate::known::habits::Brief;
use crate::known::hosts::Hosts;
use crate::known::in_turn::InTurn;
use crate::known::numbers::Blocks;
use crate::known::scratch::Scratch;
use crate::known::shared_writes::SharedWrites;
use crate::seen::audit::{Auditor, Audits};
use crate::seen::compare::Verdicts;
use crate::seen::events::{Hand, Outbox};
use crate::seen::stats::{Alarms, Commands, Digests, Errors, Failed, Latencies};
use crate::seen::traces::{TakeTraced, Tracer};
use backend::{Pools, Statements, Tally};
use bridge::{Counter, Counts, Doing, Lines, Sign, Take, ToCore};
use cache::{Cache, Flights};
use config::Snapshot;
use net::tls::Acceptor;
use rt::local::Notify;
use rt::permits::{Permits, Registry};
use rt::{Address, Instant, Rt, mailbox};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use topology::{Observed, ServerKey};

/// Cache and scripts' values that all cores keep together, behind locks that are held for one
/// operation, and whoever makes HTTP calls of scripts.
#[derive(Clone)]
pub struct Kept {
    cache: Cache,
    scripts: script::Shared,
    calls: bridge::HttpCalls,
}

impl std::fmt::Debug for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Kept({:?}, {:?})", self.cache, self.scripts)
    }
}

impl Kept {
    /// Nothing yet. `seed`: chance, so that clients cannot choose keys that collide.
    #[must_use]
    pub fn new(seed: u64, calls: bridge::HttpCalls) -> Self {
        Self {
            cache: Cache::new(seed),
            scripts: script::Shared::default(),
            calls,
        }
    }
}

/// Senders and receivers of a mailbox for each core.
#[must_use]
pub fn mailboxes<T: Send>(
    cores: u32,
    capacity: usize,
) -> (Vec<mailbox::Sender<T>>, Vec<mailbox::Receiver<T>>) {
    (0..cores).map(|_| mailbox::channel(capacity)).unzip()
}

/// Hears of what a statement wants of the control plane; whether there was room for it.
pub type Wants = Arc<dyn Fn(bridge::Wanted) -> bool + Send + Sync>;

/// Values and channels that a core is started with.
pub struct Setup {
    /// Which of them it is, from 0.
    pub index: u32,
    /// How many there are.
    pub cores: u32,
    /// The first configuration, made for this core: `Snapshot::for_core`.
    pub snapshot: Arc<Snapshot>,
    /// Limits over all cores; the same for all.
    pub registry: Registry,
    /// Results and values of scripts over all cores; the same for all.
    pub kept: Kept,
    /// Where clients come in, and operators.
    pub listen: Vec<Address>,
    /// Clients are let in from the start on; else after `ToCore::Accept(true)`.
    pub open: bool,
    /// Our certificate; none if there is no TLS.
    pub acceptor: Option<Acceptor>,
    /// All cores but this one, by their index.
    pub peers: Vec<Option<Peer>>,
    /// Messages of the other cores.
    pub from_peers: mailbox::Receiver<FromPeer>,
    /// Messages of the control plane, and now and then of a peer.
    pub mailbox: mailbox::Receiver<ToCore>,
    /// Hears what an operator should read.
    pub note: Arc<dyn Lines>,
    /// Has the monitor look at a server now.
    pub look: Arc<dyn Fn(ServerKey, Sign) + Send + Sync>,
    /// Has the control plane do what a statement waits for; whether it has heard.
    pub wants: Wants,
    /// Takes statements for the events log.
    pub events: Hand,
    /// Takes what clients do for the audit log.
    pub audit: Audits,
    /// Takes statements that are traced.
    pub traces: TakeTraced,
    /// Place where the core says what it is at.
    pub doing: Arc<Doing>,
    /// Called when the listeners are open.
    pub ready: bridge::Reply<()>,
}

impl std::fmt::Debug for Setup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Setup of core {} of {}", self.index, self.cores)
    }
}

/// A core of the data plane.
pub struct Core {
    pub(crate) rt: Rt,
    pub(crate) index: u32,
    pub(crate) cores: u32,
    pub(crate) peers: Vec<Option<Peer>>,
    /// Addresses of the console of scripts, since the start.
    pub(crate) console: Vec<Address>,
    pub(crate) loads: Loads,
    /// State of the servers, as it was seen.
    pub(crate) observed: RefCell<Arc<Observed>>,
    pub(crate) epoch: RefCell<Rc<Epoch>>,
    registry: Registry,
    pub(crate) pools: Rc<Pools>,
    pub(crate) cache: Cache,
    pub(crate) flights: Flights,
    pub(crate) statements: Statements,
    pub(crate) tally: Rc<Tally>,
    pub(crate) brief: Brief,
    pub(crate) costs: Costs,
    pub(crate) digests: Digests,
    pub(crate) commands: Commands,
    pub(crate) latencies: Latencies,
    pub(crate) errors: Errors,
    pub(crate) alarms: Alarms,
    pub(crate) outbox: Outbox,
    pub(crate) tracer: Tracer,
    pub(crate) auditor: Auditor,
    /// Clients that fail to log in.
    pub(crate) hosts: Hosts,
    /// When an operator was last told of a client that made no sense.
    told: Cell<Option<Instant>>,
    pub(crate) roster: Roster,
    pub(crate) doing: Arc<Doing>,
    pub(crate) scratch: Scratch,
    pub(crate) mirrors: Mirrors,
    pub(crate) in_turn: InTurn,
    pub(crate) marks: Rc<marks::Rows>,
    pub(crate) gates: Rc<Gates>,
    pub(crate) numbers: Blocks,
    pub(crate) wants: Wants,
    pub(crate) scripting: Scripting,
    pub(crate) verdicts: Verdicts,
    default_schema: RefCell<Rc<str>>,
    pub(crate) acceptor: RefCell<Option<Acceptor>>,
    /// When it did.
    pub(crate) began: Instant,
    last_session: Cell<u32>,
    last_life: Cell<u64>,
    pub(crate) accepting: Cell<bool>,
    /// PROXYSQL STOP: nobody is served.
    pub(crate) closed: Cell<bool>,
    pub(crate) draining: Cell<bool>,
    /// When a process that has left its listeners is told of no client any more.
    pub(crate) overlooked_until: Cell<Option<Instant>>,
    /// Listeners that accept.
    pub(crate) listening: Cell<usize>,
    /// Another process accepts clients.
    pub(crate) left_to_another: Cell<bool>,
    /// Takes sessions that go there.
    pub(crate) takes_sessions: RefCell<Option<Take>>,
    /// Rung when accepting stops or resumes.
    pub(crate) doors: Notify,
    /// Rung when a session has ended.
    pub(crate) left: Notify,
    pub(crate) users: RefCell<BTreeMap<Rc<str>, u64>>,
    pub(crate) shared_writes: SharedWrites,
    /// Who asks for FOUND_ROWS().
    pub(crate) asking_found_rows: Asking,
    /// Who asks for LASTVAL().
    pub(crate) asking_lastval: Asking,
    note: Arc<dyn Lines>,
}

impl std::fmt::Debug for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Core {}", self.index)
    }
}

/// A place among a limited number, given back when dropped.
pub(crate) struct Seat(pub(crate) Option<Arc<Permits>>);

impl Seat {
    fn take(permits: Arc<Permits>, max: u32) -> Option<Self> {
        permits.try_take(max).then(|| Self(Some(permits)))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Some(permits) = &self.0 {
            permits.give();
        }
    }
}

/// Ways by which a core is reached once it runs.
pub(crate) struct Ways {
    pub(crate) listen: Vec<Address>,
    pub(crate) from_peers: mailbox::Receiver<FromPeer>,
    pub(crate) mailbox: mailbox::Receiver<ToCore>,
    pub(crate) ready: bridge::Reply<()>,
}

/// Tells of a server that is in trouble.
fn teller(look: Arc<dyn Fn(ServerKey, Sign) + Send + Sync>) -> impl Fn(ServerKey, Sign) {
    move |server, sign| look(server, sign)
}

/// Number of a core's first session. What clients write into tables as their CONNECTION_ID() should not
/// be what another proxy's clients write, or this one's did before it was started anew.
fn first_session(rt: &Rt, setup: &Setup) -> u32 {
    let first = rt.random() % u64::from(session_ids(setup.index, setup.cores));
    u32::try_from(first).unwrap_or_default()
}

/// The lowest number of a session. None is one that a server may give to a connection, which it
/// shows in its lists: a KILL of that would end a stranger. And all are below twice this: clients
/// may keep them in a signed integer of 32 bits.
pub(crate) const SESSIONS_FROM: u32 = 1 << 30;

/// How many numbers of sessions this core has.
fn session_ids(index: u32, cores: u32) -> u32 {
    (SESSIONS_FROM - 1 - index) / cores + 1
}

impl Core {
    /// A core, and the ways to it: nobody comes in yet.
    pub(crate) fn new(rt: Rt, setup: Setup) -> (Rc<Self>, Ways) {
        let tally = Rc::new(Tally::default());
        let note = setup.note.clone();
        let pools = Rc::new(Pools::new(
            rt.clone(),
            setup.registry.clone(),
            tally.clone(),
            move |words| note.line(words),
        ));
        let epoch = Rc::new(Epoch::new(&setup.snapshot));
        let observed = Arc::<Observed>::default();
        pools.adopt(&epoch.snapshot, &placed(&epoch.snapshot, &observed));
        let first = first_session(&rt, &setup);
        let (others, speak) = peers::speak(setup.index, &setup.peers);
        pools.meet(others, speak);
        pools.tell_of_trouble(teller(setup.look));
        let core = Rc::new(Self {
            rt: rt.clone(),
            index: setup.index,
            cores: setup.cores,
            peers: setup.peers,
            loads: Loads::new(&setup.registry, setup.index, setup.cores),
            epoch: RefCell::new(epoch),
            observed: RefCell::new(observed),
            registry: setup.registry,
            pools,
            cache: setup.kept.cache,
            flights: Flights::default(),
            numbers: Blocks::default(),
            wants: setup.wants,
            statements: Statements::default(),
            tally,
            brief: Brief::default(),
            costs: Costs::default(),
            digests: Digests::default(),
            commands: Commands::default(),
            latencies: Latencies::default(),
            errors: Errors::default(),
            alarms: Alarms::default(),
            outbox: Outbox::new(setup.events),
            auditor: Auditor::new(setup.audit),
            tracer: Tracer::new(setup.traces),
            hosts: Hosts::default(),
            told: Cell::new(None),
            roster: Roster::default(),
            doing: setup.doing,
            scratch: Scratch::default(),
            mirrors: Mirrors::default(),
            in_turn: InTurn::default(),
            marks: Rc::default(),
            gates: Rc::default(),
            console: operators::addresses(&setup.snapshot.variables),
            scripting: Scripting::with(setup.kept.scripts, setup.kept.calls),
            verdicts: Verdicts::default(),
            default_schema: RefCell::new("".into()),
            acceptor: RefCell::new(setup.acceptor),
            last_session: Cell::new(first),
            last_life: Cell::new(0),
            began: rt.now(),
            accepting: Cell::new(setup.open),
            closed: Cell::new(!setup.open),
            draining: Cell::new(false),
            overlooked_until: Cell::new(None),
            listening: Cell::new(0),
            left_to_another: Cell::new(false),
            takes_sessions: RefCell::default(),
            doors: Notify::new(),
            left: Notify::new(),
            users: RefCell::default(),
            asking_found_rows: Asking::default(),
            shared_writes: SharedWrites::default(),
            asking_lastval: Asking::default(),
            note: setup.note,
        });
        let ways = Ways {
            listen: setup.listen,
            from_peers: setup.from_peers,
            mailbox: setup.mailbox,
            ready: setup.ready,
        };
        (core, ways)
    }

    pub(crate) fn epoch(&self) -> Rc<Epoch> {
        self.epoch.borrow().clone()
    }

    pub(crate) fn acceptor(&self) -> Option<Acceptor> {
        self.acceptor.borrow().clone()
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.get()
    }

    /// Whether another process accepts clients, and sessions go there.
    pub(crate) fn is_left(&self) -> bool {
        self.left_to_another.get()
    }

    /// Who takes sessions that go to another process, if one takes over.
    pub(crate) fn takes_sessions(&self) -> Option<Take> {
        self.takes_sessions.borrow().clone()
    }

    /// Nobody is served: whoever comes in is told to end.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.get()
    }

    /// An error that a server gave.
    pub(crate) fn count_error(&self, failed: &Failed<'_>) {
        if demoted::is_meant(failed.errno, failed.message.as_bytes())
            && self
                .epoch()
                .snapshot
                .servers
                .is_of_writers(failed.hostgroup)
        {
            self.pools.have_looked_at(failed.host, failed.port);
        }
        if !self.errors.count(failed) {
            self.tally.up(Counter::ErrorsDropped);
        }
    }

    pub(crate) fn note(&self, words: &str) {
        self.note.line(words);
    }

    /// Work on a file of a script.
    pub(crate) fn file(&self, work: bridge::FileWork) {
        self.note.file(work);
    }

    /// A mail of a script.
    pub(crate) fn mail(&self, mail: bridge::Mail) {
        self.note.mail(mail);
    }

    /// Of what anybody can bring about as often as he likes: once a second.
    pub(crate) fn note_seldom(&self, words: &str) {
        let now = self.rt.now();
        if self
            .told
            .get()
            .is_none_or(|told| now - told >= Duration::from_secs(1))
        {
            self.told.set(Some(now));
            self.note(words);
        }
    }

    /// `mysql-default_schema`, shared by the statistics of all sessions without a schema.
    pub(crate) fn default_schema(&self, name: &str) -> Rc<str> {
        if **self.default_schema.borrow() != *name {
            self.default_schema.replace(name.into());
        }
        self.default_schema.borrow().clone()
    }

    /// One that no session has, over all cores. After the last they begin anew.
    pub(crate) fn next_session_id(&self) -> u32 {
        let rounds = session_ids(self.index, self.cores);
        loop {
            let n = self.last_session.get() % rounds;
            self.last_session.set(n + 1);
            let id = SESSIONS_FROM + n * self.cores + self.index; // < 2 * SESSIONS_FROM
            if !self.roster.has(id) {
                return id;
            }
        }
    }

    /// Returns a number that tells a session, until it forgets all, from every other that there has
    /// been on any core; neither 0 nor [`backend::NOBODY`].
    pub(crate) fn next_life(&self) -> u64 {
        let n = self.last_life.get();
        self.last_life.set(n + 1);
        n * u64::from(self.cores) + u64::from(self.index) + 1
    }

    /// This core's part of a number for all cores, rounded up.
    pub(crate) fn share(&self, all: u64) -> u64 {
        all.div_ceil(u64::from(self.cores.max(1)))
    }

    /// Counters of limits over all cores.
    pub(crate) fn permits(&self) -> &Registry {
        &self.registry
    }

    pub(crate) fn seat(&self, max: u64) -> Option<Seat> {
        let clients = self.registry.get("clients");
        Seat::take(clients, u32::try_from(max).unwrap_or(u32::MAX))
    }

    pub(crate) fn user_seat(&self, user: &str, max: u32) -> Option<Seat> {
        Seat::take(self.registry.shared(&format!("user {user}")), max)
    }

    /// Seats of a session that comes from the process before. It has been let in: a limit that is lower now is
    /// for those who come.
    pub(crate) fn seats_from_another(&self, user: &str) -> Option<[Seat; 2]> {
        let seats = [self.seat(u64::MAX)?, self.user_seat(user, u32::MAX)?];
        for permits in seats.iter().filter_map(|seat| seat.0.as_ref()) {
            permits.came_here();
        }
        Some(seats)
    }

    pub(crate) fn user_came(&self, user: &Rc<str>) {
        *self.users.borrow_mut().entry(user.clone()).or_default() += 1;
    }

    pub(crate) fn user_went(&self, user: &Rc<str>) {
        let mut users = self.users.borrow_mut();
        if let Some(n) = users.get_mut(user) {
            *n -= 1;
            if *n == 0 {
                users.remove(user);
            }
        }
    }

    pub(crate) fn session_ended(&self, id: u32) {
        self.roster.remove(id);
        self.left.notify_all();
    }

    /// The cache is one for all cores: the first of them gives it the size that is configured.
    pub(crate) fn fit_cache(self: &Rc<Self>) {
        let bytes = self.epoch().snapshot.variables.mysql_query_cache_size_MB << 20;
        if self.index == 0 && self.cache.capacity() != bytes {
            self.rt.spawn(self.clone().resize_cache(bytes));
        }
    }

    /// Puts a session on the roster; one that came in while the others were told to end is told so.
    pub(crate) fn enrol(&self, entry: Rc<Entry>) {
        let id = entry.id;
        self.roster.add(entry);
        if self.closed.get() {
            self.roster.kill(id, false, None);
        }
    }

    pub(crate) fn counts(&self) -> Counts {
        let mut counts = self.tally.counts();
        counts.set(Counter::TasksPanicked, self.rt.panics());
        counts.set(Counter::StmtCached, self.statements.len() as u64);
        let (by_clients, on_servers) = self.statements.in_use();
        counts.set(Counter::StmtClientActiveUnique, by_clients);
        counts.set(Counter::StmtServerActiveUnique, on_servers);
        counts.set(Counter::DigestsBytes, self.digests.bytes());
        let (written, lost) = self.outbox.written_and_lost();
        counts.set(Counter::EventsLogged, written);
        counts.set(Counter::EventsDropped, lost);
        let (sent, dropped) = self.tracer.fates.numbers();
        counts.set(Counter::TracesSent, sent);
        counts.set(Counter::TracesDropped, dropped);
        let (open, locked) = self.roster.open_and_locked(&self.epoch().snapshot);
        counts.set(Counter::ActiveTransactions, open);
        counts.set(Counter::ClientConnectionsLocked, locked);
        if self.index == 0 {
            let cache = self.cache.numbers();
            counts.set(
                Counter::QueryCacheMemoryBytes,
                cache.bytes + cache.gathering,
            );
            counts.set(Counter::QueryCacheEntries, cache.entries);
            counts.set(Counter::QueryCachePurged, cache.purged);
        }
        counts
    }
}

/// Entries that are looked at before others have their turn.
pub(crate) const SWEPT_AT_ONCE: usize = 256;

impl Core {
    /// So many bytes from now on.
    async fn resize_cache(self: Rc<Self>, bytes: u64) {
        for () in self.cache.set_capacity(bytes) {
            self.rt.yield_now().await;
        }
    }
}
