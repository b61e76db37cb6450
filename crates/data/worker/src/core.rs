//! A core: its number, its sessions and servers, counters, and values that all of its sessions share.

pub(crate) mod adopt;
pub(crate) mod alone;
pub(crate) mod audit;
pub(crate) mod calls;
pub(crate) mod fetching;
pub(crate) mod gates;
pub(crate) mod guests;
pub(crate) mod hosts;
pub(crate) mod keeper;
pub(crate) mod lasting;
pub(crate) mod mirrors;
pub(crate) mod operators;
pub(crate) mod peers;
pub(crate) mod roster;
pub(crate) mod watching;

use crate::core::gates::Gates;
use crate::core::guests::Scripting;
use crate::core::lasting::{Once, lasting};
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
use crate::seen::audit::{Auditor, Audits};
use crate::seen::compare::Verdicts;
use crate::seen::events::{Hand, Outbox};
use crate::seen::stats::{Alarms, Commands, Digests, Errors, Failed, Latencies};
use crate::seen::traces::{TakeTraced, Tracer};
use backend::{Hold, Pools, Statements, Tally};
use bridge::{
    AddressRow, Ask, CoreRow, Counter, Counts, Doing, HeldRow, Lines, ProcessRow, Report, Sign,
    Take, ToCore, UserRow,
};
use cache::{Cache, Flights};
use config::Snapshot;
use net::tls::Acceptor;
use rt::local::Notify;
use rt::permits::{Permits, Registry};
use rt::{Address, Either, Instant, ListenOptions, Listener, Rt, mailbox};
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

/// Time that PROXYSQL STOP waits for sessions that were told to end.
const CLOSES_WITHIN: Duration = Duration::from_secs(2);

/// Senders and receivers of a mailbox for each core.
#[must_use]
pub fn mailboxes<T: Send>(
    cores: u32,
    capacity: usize,
) -> (Vec<mailbox::Sender<T>>, Vec<mailbox::Receiver<T>>) {
    (0..cores).map(|_| mailbox::channel(capacity)).unzip()
}

/// Hears of a partition that somebody needs; whether there was room for it.
pub type MakePartition = Arc<dyn Fn(bridge::Partition) -> bool + Send + Sync>;

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
    /// Has the control plane make a partition, or look for new ones; whether it has heard.
    pub make: MakePartition,
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
    observed: RefCell<Arc<Observed>>,
    epoch: RefCell<Rc<Epoch>>,
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
    pub(crate) gates: Rc<Gates>,
    pub(crate) numbers: Blocks,
    pub(crate) make: MakePartition,
    pub(crate) scripting: Scripting,
    pub(crate) verdicts: Verdicts,
    default_schema: RefCell<Rc<str>>,
    acceptor: RefCell<Option<Acceptor>>,
    /// When it did.
    pub(crate) began: Instant,
    last_session: Cell<u32>,
    last_life: Cell<u64>,
    accepting: Cell<bool>,
    /// PROXYSQL STOP: nobody is served.
    closed: Cell<bool>,
    draining: Cell<bool>,
    /// When a process that has left its listeners is told of no client any more.
    overlooked_until: Cell<Option<Instant>>,
    /// Listeners that accept.
    listening: Cell<usize>,
    /// Another process accepts clients.
    left_to_another: Cell<bool>,
    /// Takes sessions that go there.
    takes_sessions: RefCell<Option<Take>>,
    /// Rung when accepting stops or resumes.
    doors: Notify,
    /// Rung when a session has ended.
    left: Notify,
    users: RefCell<BTreeMap<Rc<str>, u64>>,
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
struct Ways {
    listen: Vec<Address>,
    from_peers: mailbox::Receiver<FromPeer>,
    mailbox: mailbox::Receiver<ToCore>,
    ready: bridge::Reply<()>,
}

/// Tells of a server that is in trouble.
fn teller(look: Arc<dyn Fn(ServerKey, Sign) + Send + Sync>) -> impl Fn(ServerKey, Sign) {
    move |server, sign| look(server, sign)
}

/// Runs a core until it is told to stop.
///
/// # Errors
/// A listener cannot be opened; the error names it.
pub async fn run(rt: Rt, setup: Setup) -> std::io::Result<()> {
    let (core, ways) = Core::new(rt, setup);
    begin_tasks(&core, ways.listen, ways.from_peers)?;
    core.fit_cache();
    core.begin_timers(&core.epoch().snapshot.scripts);
    (ways.ready)(());
    core.obey(&ways.mailbox).await;
    Ok(())
}

/// Number of a core's first session. What clients write into tables as their CONNECTION_ID() should not
/// be what another proxy's clients write, or this one's did before it was started anew.
fn first_session(rt: &Rt, setup: &Setup) -> u32 {
    let first = rt.random() % u64::from(session_ids(setup.index, setup.cores));
    u32::try_from(first).unwrap_or_default()
}

/// Where the core accepts, unless it does not yet. A process that this one takes over from may have
/// had more cores: the last one here accepts for those, too.
fn listeners(
    core: &Core,
    addresses: Vec<Address>,
) -> std::io::Result<Vec<(Address, Option<Listener>)>> {
    let mut all = Vec::new();
    let is_last = core.index + 1 == core.cores;
    for address in addresses {
        if !core.accepting.get() {
            all.push((address, None));
            continue;
        }
        if rt::is_inherited(&address) {
            core.overlooked_until
                .set(Some(core.rt.now() + LEAVES_WITHIN));
        }
        all.push((address.clone(), Some(listen(&core.rt, &address)?)));
        while is_last && rt::is_inherited(&address) {
            all.push((address.clone(), Some(listen(&core.rt, &address)?)));
        }
    }
    Ok(all)
}

/// Begins the tasks that a core lives by.
fn begin_tasks(
    core: &Rc<Core>,
    addresses: Vec<Address>,
    from_peers: mailbox::Receiver<FromPeer>,
) -> std::io::Result<()> {
    for (address, listener) in listeners(core, addresses)? {
        core.listening.set(core.listening.get() + 1);
        let (host, first) = (core.clone(), Once::new(listener));
        lasting(core, format!("accept on {address}"), move || {
            host.clone()
                .welcome(address.clone(), first.take().flatten())
        });
    }
    let (host, from_peers) = (core.clone(), Rc::new(from_peers));
    lasting(core, "hear the other cores".into(), move || {
        host.clone().hear_peers(from_peers.clone())
    });
    let host = core.clone();
    lasting(core, "sweep".into(), move || host.clone().sweep());
    if core.index == 0 {
        // It is one for all cores.
        let host = core.clone();
        lasting(core, "sweep the cache".into(), move || {
            host.clone().sweep_cache()
        });
    }
    Ok(())
}

/// How long a process that has left its listeners may be told of clients: its rings are in the
/// kernel's line beside ours until it has cancelled them.
const LEAVES_WITHIN: Duration = Duration::from_secs(10);
/// So long such a client may wait.
const OVERLOOKED_FOR: Duration = Duration::from_millis(50);
/// How often a core that another process has taken over from looks whether it is deserted.
const LOOKS_AGAIN: Duration = Duration::from_millis(20);

/// The lowest number of a session. None is one that a server may give to a connection, which it
/// shows in its lists: a KILL of that would end a stranger. And all are below twice this: clients
/// may keep them in a signed integer of 32 bits.
pub(crate) const SESSIONS_FROM: u32 = 1 << 30;

/// How many numbers of sessions this core has.
fn session_ids(index: u32, cores: u32) -> u32 {
    (SESSIONS_FROM - 1 - index) / cores + 1
}

fn listen(rt: &Rt, address: &Address) -> std::io::Result<Listener> {
    let reuse_port = matches!(address, Address::Tcp(_));
    rt.listen(
        address,
        ListenOptions {
            backlog: 4096,
            reuse_port,
            ..ListenOptions::default()
        },
    )
    .map_err(|error| {
        std::io::Error::new(error.kind(), format!("cannot listen on {address}: {error}"))
    })
}

impl Core {
    /// A core, and the ways to it: nobody comes in yet.
    fn new(rt: Rt, setup: Setup) -> (Rc<Self>, Ways) {
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
            make: setup.make,
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

    /// Text that a script appends to a file of its own.
    pub(crate) fn append(&self, file: &str, text: &[u8]) {
        self.note.append(file, text);
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
    fn fit_cache(self: &Rc<Self>) {
        let bytes = self.epoch().snapshot.variables.mysql_query_cache_size_MB << 20;
        if self.index == 0 && self.cache.capacity() != bytes {
            self.rt.spawn(self.clone().resize_cache(bytes));
        }
    }

    /// Accepts clients while the door is open.
    async fn welcome(self: Rc<Self>, address: Address, mut listener: Option<Listener>) {
        loop {
            if self.draining.get() {
                return;
            }
            if self.left_to_another.get() {
                // Another process accepts now; what has been accepted here already is served here.
                if let Some(open) = &listener {
                    while let Some(client) = open.accept_last().await {
                        self.place(client);
                    }
                }
                self.listening.set(self.listening.get() - 1);
                return;
            }
            if !self.accepting.get() {
                listener = None;
                self.doors.wait().await;
                continue;
            }
            let open = match listener.take() {
                Some(open) => open,
                None => match listen(&self.rt, &address) {
                    Ok(open) => open,
                    Err(error) => {
                        self.note(&error.to_string());
                        self.rt.sleep(Duration::from_secs(1)).await;
                        continue;
                    }
                },
            };
            let comes = rt::select(open.accept_for_any(), self.doors.wait());
            let came = match self.looks_for_overlooked() {
                false => comes.await,
                true => match self.rt.timeout(OVERLOOKED_FOR, comes).await {
                    Ok(came) => came,
                    Err(_nobody) => {
                        open.look_again();
                        listener = Some(open);
                        continue;
                    }
                },
            };
            match came {
                Either::Left(Ok(client)) => {
                    self.tally.up(Counter::ClientConnectionsCreated);
                    self.place(client);
                }
                Either::Left(Err(error)) => {
                    // Too many open files, most often: wait for some to close.
                    self.note(&format!("cannot accept on {address}: {error}"));
                    self.rt.sleep(Duration::from_millis(100)).await;
                }
                Either::Right(()) => {}
            }
            listener = Some(open);
        }
    }

    /// Whether a listener that another process has left may have a client that the kernel told only
    /// that one of.
    fn looks_for_overlooked(&self) -> bool {
        let until = self.overlooked_until.get();
        until.is_some_and(|until| self.rt.now() < until)
    }

    async fn sweep(self: Rc<Self>) {
        loop {
            self.rt.sleep(Duration::from_millis(250)).await;
            self.pools.sweep(&self.epoch().snapshot);
            self.outbox.hand_over();
        }
    }

    /// Rows of `stats_millrace_addresses`.
    fn report_addresses(&self) -> Vec<AddressRow> {
        let (epoch, observed) = (self.epoch(), self.observed.borrow());
        let placed = placed(&epoch.snapshot, &observed);
        let all = topology::addresses(&epoch.snapshot.servers, &observed, &placed);
        let row = |one: topology::Address| {
            let (seen, key) = (observed.of(&one.key), &one.key);
            let (used, free) = self.pools.connections_at(&one.host, &key.host, key.port);
            AddressRow {
                port: key.port,
                address: key.host.clone(),
                in_use: one.why.is_none(),
                why: one.why.map(|why| why.to_string()),
                health: seen.reach.name(),
                ping_us: seen.ping_us,
                uuid: seen.uuid.clone(),
                used,
                free,
                host: one.host,
            }
        };
        all.into_iter().map(row).collect()
    }

    /// Works under another configuration from now on.
    fn load(self: &Rc<Self>, snapshot: &Snapshot) {
        let before = self.epoch();
        let epoch = Rc::new(before.next(snapshot));
        let same = Arc::ptr_eq(&before.snapshot.servers, &epoch.snapshot.servers)
            && Arc::ptr_eq(&before.snapshot.variables, &epoch.snapshot.variables)
            && backend::ask_for_the_same_gtids(&before.snapshot, &epoch.snapshot);
        if same {
            self.pools.renew();
        } else {
            self.adopt(&epoch.snapshot);
        }
        self.epoch.replace(epoch.clone());
        self.watch_as(&before.snapshot.rules, &epoch.snapshot.rules);
        self.fit_cache();
        // What was counted under the configuration before is written under it.
        self.outbox.hand_over();
        if !Arc::ptr_eq(&before.snapshot.scripts, &epoch.snapshot.scripts) {
            self.begin_timers(&epoch.snapshot.scripts);
        }
    }

    /// Does what the control plane says until it is told to stop; during a drain, too.
    async fn obey(self: &Rc<Self>, mailbox: &mailbox::Receiver<ToCore>) {
        while let Some(message) = mailbox.recv().await {
            match message {
                ToCore::Load { snapshot, done } => {
                    self.load(&snapshot);
                    done(());
                }
                ToCore::Observe(observed) => {
                    self.observed.replace(observed);
                    self.adopt(&self.epoch().snapshot);
                }
                ToCore::Executed { server, what } => self.pools.executed(&server, &what),
                ToCore::AsOf { server, ms } => self.pools.is_as_of(&server, ms),
                ToCore::Touched(touched) => self.others_wrote(&touched),
                ToCore::Ask {
                    what: Ask::QueryCache,
                    reply,
                    ..
                } if self.index == 0 => {
                    self.rt.spawn(self.clone().list_cache(reply));
                }
                ToCore::Ask {
                    what: Ask::Digests,
                    reset,
                    reply,
                } => {
                    let listing = self.digests.list(reset);
                    self.rt.spawn(self.clone().list_digests(listing, reply));
                }
                ToCore::Ask {
                    what: Ask::Prepared,
                    reply,
                    ..
                } => {
                    self.rt.spawn(self.clone().list_prepared(reply));
                }
                ToCore::ClientHost { address, failed } => {
                    self.note_login(address, failed);
                }
                ToCore::FlushClientHosts { done } => {
                    self.hosts.flush();
                    done(());
                }
                ToCore::FlushCache { which, reply } => match self.index {
                    0 => self.rt.spawn(self.clone().flush_cache(which, reply)),
                    // It is one for all cores.
                    _ => reply(0),
                },
                ToCore::Ask { what, reset, reply } => reply(self.report(what, reset)),
                ToCore::Fetching { key, reply } => self.fetching(&key, reply),
                ToCore::Kill {
                    session,
                    statement_only,
                    owner,
                    reply,
                } => {
                    reply(self.roster.kill(session, statement_only, owner.as_deref()));
                }
                ToCore::KillUser {
                    user,
                    host,
                    but,
                    does,
                    reply,
                } => {
                    reply(self.roster.kill_user(&user, host.as_deref(), but, does));
                }
                ToCore::Gate {
                    partition,
                    closed_for,
                    done,
                } => self.gates.set(&self.rt, partition, closed_for, done),
                ToCore::HandOverEvents { done } => {
                    self.outbox.hand_over();
                    done(());
                }
                ToCore::Accept(open) => {
                    self.accepting.set(open);
                    self.closed.set(self.closed.get() && !open);
                    self.doors.notify_all();
                }
                ToCore::Close { done } => self.close(done),
                ToCore::ReloadTls {
                    certificate,
                    key,
                    authorities,
                } => match Acceptor::asking(&certificate, &key, &authorities) {
                    Ok(acceptor) => {
                        self.acceptor.replace(Some(acceptor));
                    }
                    Err(error) => self.note(&format!("the certificate was not reloaded: {error}")),
                },
                ToCore::Drain { done } => self.drain(done),
                ToCore::Leave { take, done } => self.leave(take, done),
                ToCore::Settle(moved) => self.settle(moved),
                ToCore::Stop => return,
            }
        }
    }

    /// Lets nobody in, and sessions end when they hold nothing. Answers when they are gone, or have
    /// had their time.
    fn drain(self: &Rc<Self>, done: bridge::Reply<()>) {
        self.draining.set(true);
        let deadline_ms = self.epoch().snapshot.variables.mysql_shutdown_deadline_ms;
        if self.index == 0 {
            self.note(&format!(
                "draining: sessions have {deadline_ms} ms to end; a second signal ends at once"
            ));
        }
        self.doors.notify_all();
        self.roster.ring();
        let core = self.clone();
        self.rt.spawn(async move {
            let _gone_or_late = core
                .rt
                .timeout(Duration::from_millis(deadline_ms), core.drained())
                .await;
            done(());
        });
    }

    /// Lets sessions that can go to another process go, now and whenever one can. Answers when none
    /// is left, or all have had their time.
    fn leave(self: &Rc<Self>, take: Option<Take>, done: bridge::Reply<()>) {
        self.left_to_another.set(true);
        self.takes_sessions.replace(take);
        self.doors.notify_all();
        self.roster.ring();
        let deadline_ms = self.epoch().snapshot.variables.mysql_upgrade_deadline_ms;
        let core = self.clone();
        self.rt.spawn(async move {
            let time = Duration::from_millis(deadline_ms);
            let _gone_or_late = core.rt.timeout(time, core.deserted()).await;
            // Who is in the middle of something ends behind it.
            core.draining.set(true);
            core.roster.ring();
            let _gone_or_late = core.rt.timeout(CLOSES_WITHIN, core.drained()).await;
            done(());
        });
    }

    /// Puts a session on the roster; one that came in while the others were told to end is told so.
    pub(crate) fn enrol(&self, entry: Rc<Entry>) {
        let id = entry.id;
        self.roster.add(entry);
        if self.closed.get() {
            self.roster.kill(id, false, None);
        }
    }

    /// Lets nobody in and ends every session. Answers when they are gone, or have had their time.
    fn close(self: &Rc<Self>, done: bridge::Reply<()>) {
        self.accepting.set(false);
        self.closed.set(true);
        self.doors.notify_all();
        self.roster.kill_all();
        let core = self.clone();
        self.rt.spawn(async move {
            let _gone_or_late = core.rt.timeout(CLOSES_WITHIN, core.drained()).await;
            done(());
        });
    }

    /// Resolves when nobody is here any more, and nobody is about to come in.
    async fn deserted(&self) {
        while self.listening.get() > 0 || self.clients_here() > 0 {
            self.rt.sleep(LOOKS_AGAIN).await;
        }
    }

    async fn drained(&self) {
        while self.roster.len() > 0 {
            self.left.wait().await;
        }
    }

    fn counts(&self) -> Counts {
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

    fn report(&self, what: Ask, reset: bool) -> Report {
        match what {
            Ask::Global => Report::Global(self.counts()),
            Ask::Pool => Report::Pool(self.pools.report(reset)),
            Ask::Processes => Report::Processes(self.processes()),
            // They are listed piece by piece.
            Ask::Digests => Report::Digests(Vec::new()),
            Ask::Hostgroups => Report::Hostgroups(self.latencies.rows(reset)),
            Ask::Choice => Report::Choice(self.pools.report_choices()),
            Ask::Addresses => Report::Addresses(self.report_addresses()),
            Ask::Admission => Report::Admission(self.pools.report_admission()),
            Ask::Concurrency => Report::Concurrency(self.pools.report_concurrency()),
            Ask::HostgroupPool => Report::HostgroupPool(self.pools.report_groups()),
            Ask::Rules => Report::Rules(self.epoch().hits(reset)),
            Ask::Commands => Report::Commands(self.commands.rows(reset)),
            Ask::Users => Report::Users(
                self.users
                    .borrow()
                    .iter()
                    .map(|(user, n)| UserRow {
                        username: user.as_ref().into(),
                        connections: *n,
                    })
                    .collect(),
            ),
            Ask::Errors => Report::Errors(self.errors.rows(reset)),
            Ask::QueryCache => Report::QueryCache(Vec::new()),
            Ask::Prepared => Report::Prepared(Vec::new()),
            Ask::FreeConnections => Report::FreeConnections(self.pools.free_connections()),
            Ask::Mirror => Report::Mirror(self.verdicts.rows(reset)),
            Ask::Hooks => Report::Hooks(self.scripting.hooks.rows(reset)),
            Ask::Shards => Report::Shards(self.epoch().spreads(reset)),
            Ask::ShardDdl => Report::ShardDdl(self.in_turn.rows(reset)),
            Ask::Alarms => Report::Alarms(self.alarms.rows(reset)),
            Ask::Core => Report::Cores(vec![self.row(reset)]),
            Ask::ClientHosts => {
                // All cores have the same.
                let rows = if self.index == 0 {
                    self.hosts.rows()
                } else {
                    Vec::new()
                };
                if reset {
                    self.hosts.flush();
                }
                Report::ClientHosts(rows)
            }
        }
    }

    fn row(&self, reset: bool) -> CoreRow {
        let turns = self.rt.turns(reset);
        CoreRow {
            core: self.index,
            sessions: self.roster.len() as u64,
            tasks: self.rt.tasks() as u64,
            turns: turns.count,
            busy_us: turns.busy_us,
            longest_us: turns.longest_us,
            longest_cpu_us: turns.longest_cpu_us,
            long: turns.long,
            long_cpu: turns.long_cpu,
        }
    }

    fn processes(&self) -> Vec<ProcessRow> {
        let now = self.rt.now();
        let extended = self
            .epoch()
            .snapshot
            .variables
            .mysql_show_processlist_extended
            > 0;
        let rows = self.roster.all().into_iter().map(|entry| {
            let server = entry.server.borrow();
            let (local_host, local_port) = match server.as_ref().map(|(_, local)| local) {
                Some(Address::Tcp(at)) => (at.ip().to_string(), at.port()),
                Some(Address::Unix(path)) => (path.display().to_string(), 0),
                None => (String::new(), 0),
            };
            let held = entry.holding.borrow();
            let here = held
                .iter()
                .filter(|held| Some(held.hostgroup) == entry.hostgroup.get());
            let flags = here.flat_map(|held| held.holds.iter()).map(Hold::flag);
            let status_flags = flags.fold(0, |all, flag| all | flag);
            let held = held.iter().map(|held| HeldRow {
                hostgroup: held.hostgroup,
                host: held.place.host().clone(),
                port: held.place.server().port,
                server_thread_id: held.server_thread_id,
                holds: held.holds.iter().map(|hold| format!("{hold:?}")).collect(),
                held_ms: u64::try_from((now - held.since).as_millis()).unwrap_or(u64::MAX),
            });
            ProcessRow {
                held: held.collect(),
                status_flags,
                core: self.index,
                session: entry.id,
                user: entry.user.borrow().to_string(),
                schema: entry.schema.borrow().to_string(),
                client_host: entry.client.0.clone(),
                client_port: entry.client.1,
                hostgroup: entry.hostgroup.get(),
                local_host,
                local_port,
                server_host: server
                    .as_ref()
                    .map_or_else(String::new, |(place, _)| place.host().to_string()),
                server_port: server.as_ref().map_or(0, |(place, _)| place.server().port),
                command: entry.command.get(),
                time_ms: u64::try_from((now - entry.since.get()).as_millis()).unwrap_or(u64::MAX),
                info: entry.info(),
                attributes: if extended {
                    attributes(&entry)
                } else {
                    Vec::new()
                },
            }
        });
        rows.collect()
    }
}

/// Returns what the client of a session has said of itself.
fn attributes(entry: &Entry) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    entry
        .attributes
        .borrow()
        .iter()
        .map(|(name, value)| (text(name), text(value)))
        .collect()
}

/// Entries that are looked at before others have their turn.
const SWEPT_AT_ONCE: usize = 256;

impl Core {
    /// So many bytes from now on.
    pub(crate) async fn resize_cache(self: Rc<Self>, bytes: u64) {
        for () in self.cache.set_capacity(bytes) {
            self.rt.yield_now().await;
        }
    }
}
