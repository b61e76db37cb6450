//! A world: what is in it, what breaks, and what must be true when all is over.

use crate::chance::Chance;
use crate::client::Client;
use crate::cores::{self, Start};
use crate::judge::{Judge, Verdict};
use crate::programme::{self, Manners};
use crate::scripts::{self, Doing};
use crate::server::{COURIER, MIRROR, Nature, PASSWORD, SLEEPER, Server, judge_copies};
use bridge::{Ask, Counter, Counts, Report, ToCore};
use config::{
    HostgroupAttributesRow, RuleRow, Rules, ServerRow, Servers, Snapshot, Status, UserRow, Users,
    Variables,
};
use rt::sim::{Faults, Limits};
use rt::{Address, Rt, mailbox};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// How bad it gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weather {
    /// Nothing goes wrong, and nothing takes time.
    Calm,
    /// Bytes are late and come in pieces; nothing is lost.
    Windy,
    /// Bytes are late and come in pieces, and servers hang up when they like. The network does not
    /// break.
    Fickle,
    /// Connections break too.
    Stormy,
    /// Servers crash and freeze and come back as well.
    Disastrous,
}

/// A world before it begins.
#[derive(Debug, Clone)]
pub struct World {
    /// Everything else follows from it.
    pub seed: u64,
    /// How bad it gets.
    pub weather: Weather,
    /// How many clients there are.
    pub clients: u64,
    /// How many cores share the work.
    pub cores: u32,
    /// `max_connections` of each server.
    pub connections: u32,
    /// How many users the clients are: connections of one serve no other.
    pub users: usize,
    /// How many statements may be in flight on one connection.
    pub depth: u32,
    /// Some clients have connections of their own.
    pub courier: bool,
    /// The cores say that they are MariaDB, and servers have its bulk execute.
    pub mariadb: bool,
    /// So many bytes per second a client is sent at most; 0 for no limit.
    pub bytes_per_second: u64,
    /// How many connections all cores together may open to a server in a second; 0 for no limit.
    pub pace: u32,
    /// Somebody takes servers out of service and brings them back.
    pub operator: bool,
    /// How much more often than in one of a hundred stories somebody says KILL.
    pub kills: u64,
    /// Reads go to the replica by what they are, not by rules, but so many milliseconds after a
    /// write of their session.
    pub split: Option<u32>,
    /// The replica is behind its source by no more than this.
    pub lag: Duration,
    /// Sessions have a schema, and what is in the log may be answered from the cache until it is
    /// written.
    pub cached: bool,
    /// Statements are copied to a server that freezes and crashes in all weathers.
    pub mirror: bool,
    /// The schema that the first server has not, and the one that the second has not.
    pub missing: [Option<&'static str>; 2],
    /// The password of an account expires, whose clients can set another, or cannot.
    pub expires: bool,
    /// A transaction whose server is lost is run again.
    pub replays: bool,
    /// A script stands in the way of all sessions.
    pub script: Option<Doing>,
    /// Faults of the network: what goes wrong with bytes.
    pub faults: Faults,
}

impl World {
    /// The world of this seed.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        let weather = match seed % 5 {
            0 => Weather::Calm,
            1 => Weather::Windy,
            2 => Weather::Fickle,
            3 => Weather::Stormy,
            _ => Weather::Disastrous,
        };
        Self::with(seed, weather)
    }

    /// The world of this seed in this weather.
    #[must_use]
    pub fn with(seed: u64, weather: Weather) -> Self {
        let mut chance = Chance::new(seed, 1);
        let clients = chance.between(3, 8);
        let connections = u32::try_from(chance.between(1, 4)).unwrap_or(1);
        let mut part = |of: u64| chance.below(of + 1) as f64 / 1000.0;
        let mut faults = Faults::perfect();
        if weather != Weather::Calm {
            faults.split = part(500);
            faults.partial = part(300);
            faults.stall = part(30);
            faults.shuffle = part(1) > 0.0;
            faults.latency_max = Duration::from_micros(chance.below(5_000));
            faults.stall_max = Duration::from_millis(chance.between(1, 300));
        }
        if matches!(weather, Weather::Stormy | Weather::Disastrous) {
            faults.reset = chance.below(15) as f64 / 1000.0;
            faults.refuse = chance.below(60) as f64 / 1000.0;
            faults.lose_connect = chance.below(10) as f64 / 1000.0;
        }
        let cores = u32::try_from(chance.between(1, 3)).unwrap_or(1);
        let depth = *chance.one_of(&[0, 2, 3, 16]);
        let users = if chance.percent(75) { 1 } else { 2 };
        let bytes_per_second = if chance.percent(30) {
            chance.between(50_000, 2_000_000)
        } else {
            0
        };
        if chance.percent(50) {
            faults.slow = Duration::from_micros(chance.between(10, 500));
            faults.shuffle = true;
        }
        let courier = chance.percent(30);
        // They keep theirs as long as they stay, and others need some, too.
        let connections = if courier {
            connections.max(COURIERS_MAX + 1)
        } else {
            connections
        };
        let mariadb = seed % 3 == 1;
        let pace = if chance.percent(25) {
            *chance.one_of(&[1, 2, 5, 20])
        } else {
            0
        };
        let operator = chance.percent(35);
        let mut chance = Chance::new(seed, 20);
        let behind = *chance.one_of(&[0, 1, 5, 30, 200]);
        let split = if chance.percent(40) {
            Some(if chance.percent(60) { behind } else { 0 })
        } else {
            None
        };
        let mut later = Chance::new(seed, 21);
        let missing = if later.percent(40) {
            *later.one_of(&MISSING)
        } else {
            [None; 2]
        };
        let expires = later.percent(30) && !courier;
        // They keep those on which a server wants a new password, and others need some, too.
        let connections = if expires {
            connections.max(SLEEPERS_MAX + 1)
        } else {
            connections
        };
        Self {
            seed,
            weather,
            clients,
            cores,
            connections,
            users,
            depth,
            courier,
            mariadb,
            bytes_per_second,
            pace,
            operator,
            kills: 0,
            mirror: chance.percent(35),
            missing,
            expires,
            replays: Chance::new(seed, 22).percent(40),
            script: Doing::of(seed),
            split,
            // Nobody reads what they write who have connections of their own.
            cached: chance.percent(40) && !courier,
            lag: Duration::from_millis(behind.into()),
            faults,
        }
    }

    /// A snapshot with its script and nothing else.
    fn base(&self) -> Snapshot {
        Snapshot {
            scripts: Arc::new(scripts::of(self.script)),
            ..Snapshot::default()
        }
    }

    /// Whether something breaks at all.
    pub(crate) fn rough(&self) -> bool {
        self.breaks() || self.weather == Weather::Fickle
    }

    /// Whether the network does, of which nobody tells.
    pub(crate) fn breaks(&self) -> bool {
        matches!(self.weather, Weather::Stormy | Weather::Disastrous)
    }

    /// An end is heard of up to so long after it was. A server that is frozen hears of it when it
    /// thaws.
    fn late(&self) -> Duration {
        let frozen = if self.weather == Weather::Disastrous {
            FROZEN_MAX
        } else {
            Duration::ZERO
        };
        4 * self.faults.latency_max
            + 2 * self.faults.stall_max
            + 500 * self.faults.slow
            + Duration::from_millis(50)
            + frozen
    }
}

const LIMITS: Limits = Limits {
    time_max: Duration::from_secs(4 * 3600),
    turns_max: 20_000_000,
};
/// Cores listen after so long.
const BEGINNING: Duration = Duration::from_millis(100);
/// So many clients have connections of their own, where some have.
const COURIERS_MAX: u32 = 2;
/// Of so many clients the password may expire.
const SLEEPERS_MAX: u32 = 2;
/// Schemas that two servers may lack.
const MISSING: [[Option<&str>; 2]; 4] = [
    [None, Some("red")],
    [Some("blue"), None],
    [Some("blue"), Some("red")],
    [Some("red"), Some("red")],
];
/// After the last fault: so long until nothing has an excuse any more.
const BREATH: Duration = Duration::from_secs(2);
/// So many clients come then.
const NEWCOMERS: u64 = 3;
/// So long a server is frozen at most.
const FROZEN_MAX: Duration = Duration::from_secs(5);
/// After the last client: so long until nothing is left. A server that was shunned is back, and a
/// lost connect is given up.
const SETTLE: Duration = Duration::from_secs(150);

/// Runs a world to its end.
///
/// # Panics
/// The world never ends: it reaches the limits of virtual time or of turns, or nothing can ever
/// happen.
#[must_use]
pub fn run(world: &World) -> Verdict {
    let world = world.clone();
    rt::sim::run_with(world.seed, world.faults.clone(), LIMITS, |rt| async move {
        play(rt, &world).await
    })
}

/// Two servers, the cores before them, and who looks on.
#[derive(Clone)]
pub(crate) struct Stage {
    pub(crate) rt: Rt,
    pub(crate) judge: Rc<Judge>,
    pub(crate) master: Rc<Server>,
    pub(crate) replica: Rc<Server>,
    mirror: Rc<Server>,
    proxy: Address,
}

/// The cores, as those reach them who direct them.
struct Cores {
    tells: Vec<mailbox::Sender<ToCore>>,
    ended: Vec<rt::local::Receiver<()>>,
    noted: mailbox::Receiver<String>,
}

impl Stage {
    async fn set(rt: &Rt, world: &World) -> (Self, Cores) {
        let judge = Rc::new(Judge::new(rt.clone(), world.rough()));
        let panicked = judge.clone();
        rt.on_panic(move |words| panicked.accuse("core", &format!("a task panicked: {words}")));
        judge.tell("world", &format!("{world:?}"));
        let fickle = world.weather == Weather::Fickle;
        let nature = Nature {
            fickle,
            able: world.courier,
            bulk: world.mariadb,
            late: world.late(),
        };
        let master = Server::start(
            rt,
            &judge,
            "a",
            address("10.0.0.1:3306"),
            nature,
            Chance::new(world.seed, 10),
        );
        let replica = Server::start(
            rt,
            &judge,
            "b",
            address("10.0.0.2:3306"),
            nature,
            Chance::new(world.seed, 11),
        );
        let mirror = Server::start(
            rt,
            &judge,
            MIRROR,
            address("10.0.0.3:3306"),
            nature,
            Chance::new(world.seed, 12),
        );
        replica.follow(&master, world.lag, world.split.is_some());
        for (server, missing) in [&master, &replica].into_iter().zip(world.missing) {
            server.ground.borrow_mut().missing = missing;
        }
        let proxy = address("127.0.0.1:6033");
        let (notes, noted) = mailbox::channel::<String>(100_000);
        let start = Start {
            seed: world.seed,
            cores: world.cores,
            snapshot: Arc::new(snapshot(world, 1, [Status::Online; 2])),
            proxy: proxy.clone(),
            notes,
            look: Arc::new(|_, _| ()),
        };
        let (tells, ended) = cores::start(rt, &judge, &start);
        // They begin to listen.
        rt.sleep(BEGINNING).await;
        (
            Self {
                rt: rt.clone(),
                judge,
                master,
                replica,
                mirror,
                proxy,
            },
            Cores {
                tells,
                ended,
                noted,
            },
        )
    }

    /// A client without anything particular.
    pub(crate) async fn enter(&self) -> Client {
        self.enter_as("miller", 0).await
    }

    /// One of this user, with these capabilities beside others.
    pub(crate) async fn enter_as(&self, user: &str, more: wire::caps::Caps) -> Client {
        let entered = Client::log_in(
            &self.rt,
            &self.proxy,
            user,
            None,
            45,
            more,
            &mut Chance::new(1, 1),
        )
        .await;
        entered.unwrap_or_else(|refused| panic!("a client of a scene is let in: {refused}"))
    }
}

/// Plays a plot in a world to its end.
pub(crate) fn perform<F: Future<Output = ()>>(
    world: &World,
    plot: impl FnOnce(Stage) -> F,
) -> Verdict {
    rt::sim::run_with(world.seed, world.faults.clone(), LIMITS, |rt| async move {
        let (stage, cores) = Stage::set(&rt, world).await;
        plot(stage.clone()).await;
        if let Some(Report::Global(counts)) =
            ask_all(&rt, &stage.judge, &cores.tells, Ask::Global).await
        {
            stage.judge.between.set(between(&counts));
        }
        stage.judge.verdict(world.seed)
    })
}

async fn play(rt: Rt, world: &World) -> Verdict {
    let (stage, cores) = Stage::set(&rt, world).await;
    let Stage {
        judge,
        master,
        replica,
        mirror,
        proxy,
        ..
    } = stage;
    let Cores {
        tells,
        ended: cores_ended,
        noted,
    } = cores;
    let chance = |who: u64| Chance::new(world.seed, who);

    // Clients, and what happens to the servers meanwhile.
    let lives = clients(&rt, &judge, world, &proxy, 0..world.clients);
    let (done, all_online) = rt::local::oneshot();
    if world.operator {
        let operator = Operator {
            rt: rt.clone(),
            judge: judge.clone(),
            world: world.clone(),
            tells: tells.clone(),
        };
        rt.spawn(async move {
            operator.work(Chance::new(operator.world.seed, 4)).await;
            let _nobody = done.send(());
        });
    } else {
        drop(done);
    }
    if world.expires {
        rt.spawn(expire(rt.clone(), judge.clone(), chance(6)));
    }
    let (recovers, recovered) = rt::local::oneshot();
    if world.mirror {
        let (rt, judge, mirror, chance) = (rt.clone(), judge.clone(), mirror.clone(), chance(5));
        rt.clone().spawn(async move {
            disasters(&rt, &judge, &[mirror], chance).await;
            let _nobody = recovers.send(());
        });
    } else {
        drop(recovers);
    }
    if world.weather == Weather::Disastrous {
        disasters(&rt, &judge, &[master.clone(), replica.clone()], chance(2)).await;
    }
    for life in lives {
        let _panicked_or_over = life.await;
    }
    let _or_nobody_is_there = all_online.await;
    let _or_there_is_none = recovered.await;

    // Nothing breaks any more: newcomers are served as if nothing had been, everything comes to
    // rest, and so is who comes after that.
    let hand = rt.sim_faults().expect("this is the simulated world");
    hand.set(Faults {
        slow: world.faults.slow,
        shuffle: world.faults.shuffle,
        ..Faults::perfect()
    });
    if world.rough() {
        rt.sleep(BREATH).await;
        judge.rough.set(false);
        judge.tell("world", "nothing breaks any more");
        for life in clients(
            &rt,
            &judge,
            world,
            &proxy,
            world.clients + 1..world.clients + 1 + NEWCOMERS,
        ) {
            let _panicked_or_over = life.await;
        }
    }
    rt.sleep(SETTLE).await;
    programme::live(
        rt.clone(),
        judge.clone(),
        proxy,
        world.clients,
        Manners::of(world, false),
        chance(3),
    )
    .await;
    rt.sleep(SETTLE).await;
    judge_rest(&rt, &judge, &tells, world.connections).await;
    for server in [&master, &replica] {
        let left = server.couriers.get();
        judge.check(left == 0, server.name, || {
            format!("{left} connections are left of clients who had them to themselves")
        });
    }

    // It ends when it is told to.
    for (tell, core_ended) in tells.into_iter().zip(cores_ended) {
        let stop = tell.clone();
        let done = Box::new(move |()| drop(stop.try_send(ToCore::Stop)));
        let _full = tell.try_send(ToCore::Drain { done });
        let ended = rt.timeout(Duration::from_secs(10), core_ended).await;
        judge.check(ended.is_ok(), "core", || {
            "does not end when it is told to".to_owned()
        });
    }
    for server in [&master, &replica] {
        judge.judge_connections(server.name, world.connections, world.late());
        judge.judge_offline(server.name, world.late());
    }
    judge.judge_connections(mirror.name, world.connections, world.late() + FROZEN_MAX);
    judge_copies(&judge, &mirror.ground.borrow().log);
    judge.judge_log(&master.ground.borrow().log);
    judge.check(replica.ground.borrow().log.is_empty(), "log", || {
        "something was written to the replica".to_owned()
    });
    while let Some(words) = noted.try_recv() {
        judge.tell("core noted", &words);
    }
    judge.verdict(world.seed)
}

/// Clients with these numbers, and the ends of their lives.
fn clients(
    rt: &Rt,
    judge: &Rc<Judge>,
    world: &World,
    proxy: &Address,
    numbers: std::ops::Range<u64>,
) -> Vec<rt::local::Receiver<()>> {
    let first = numbers.start;
    let begin = |number: u64| {
        let (done, ended) = rt::local::oneshot();
        let courier = world.courier && number - first < COURIERS_MAX.into();
        let sleeper = world.expires && number - first < SLEEPERS_MAX.into();
        let mut manners = Manners::of(world, courier);
        manners.sleeper = sleeper;
        let life = programme::live(
            rt.clone(),
            judge.clone(),
            proxy.clone(),
            number,
            manners,
            Chance::new(world.seed, 100 + number),
        );
        rt.spawn(async move {
            life.await;
            let _nobody = done.send(());
        });
        ended
    };
    numbers.map(begin).collect()
}

fn chance_of(chance: &mut Chance, most: Duration) -> Duration {
    Duration::from_micros(chance.between(1, u64::try_from(most.as_micros()).unwrap_or(1)))
}

/// Servers crash or freeze and come back, a few times.
async fn disasters(rt: &Rt, judge: &Judge, servers: &[Rc<Server>], mut chance: Chance) {
    let hand = rt.sim_faults().expect("this is the simulated world");
    for _ in 0..chance.between(1, 4) {
        rt.sleep(Duration::from_millis(chance.between(5, 400)))
            .await;
        let server = chance.one_of(servers);
        if chance.percent(40) {
            judge.tell("world", &format!("server {} freezes", server.name));
            hand.freeze(&server.at);
            rt.sleep(chance_of(&mut chance, FROZEN_MAX)).await;
            hand.thaw(&server.at);
            judge.tell("world", &format!("server {} thaws", server.name));
            continue;
        }
        judge.tell("world", &format!("server {} crashes", server.name));
        server.crash();
        hand.crash(&server.at);
        rt.sleep(Duration::from_millis(chance.between(1, 3000)))
            .await;
        hand.restore(&server.at);
        judge.tell("world", &format!("server {} is back", server.name));
    }
}

/// A password expires, at once or later, and again.
async fn expire(rt: Rt, judge: Rc<Judge>, mut chance: Chance) {
    if chance.percent(50) {
        judge.expire();
    }
    for _ in 0..chance.between(1, 4) {
        rt.sleep(Duration::from_millis(chance.between(5, 400)))
            .await;
        judge.expire();
    }
}

/// Asks all cores, and returns what they say of this together.
async fn ask_all(
    rt: &Rt,
    judge: &Judge,
    tells: &[mailbox::Sender<ToCore>],
    what: Ask,
) -> Option<Report> {
    let mut merged: Option<Report> = None;
    for tell in tells {
        let (answer, answered) = mailbox::channel(1);
        let reply = Box::new(move |report| drop(answer.try_send(report)));
        let _full = tell.try_send(ToCore::Ask {
            what,
            reset: false,
            reply,
        });
        let Ok(Some(report)) = rt.timeout(Duration::from_secs(1), answered.recv()).await else {
            judge.accuse("core", &format!("{what:?} is not answered"));
            continue;
        };
        match &mut merged {
            Some(merged) => merged.merge(report),
            None => merged = Some(report),
        }
    }
    merged
}

/// As [`Verdict::between`].
fn between(counts: &Counts) -> [u64; 4] {
    let all = [
        Counter::StatementsInLanes,
        Counter::ServerConnectionsLent,
        Counter::ClientsHandedOver,
        Counter::StatementsWaitedForLane,
    ];
    all.map(|counter| counts.value(counter))
}

/// Checks what the cores say of themselves when all clients have left.
async fn judge_rest(rt: &Rt, judge: &Judge, tells: &[mailbox::Sender<ToCore>], max: u32) {
    for what in [Ask::Global, Ask::Pool, Ask::Processes] {
        let Some(report) = ask_all(rt, judge, tells, what).await else {
            continue;
        };
        match report {
            Report::Global(counts) => {
                judge.between.set(between(&counts));
                judge.judge_closed(counts.value(Counter::ClientConnectionsLost));
                let replayed = counts.value(Counter::TransactionReplaysSucceeded);
                judge.hit("a transaction replayed", replayed);
                for counter in [
                    Counter::ClientConnectionsConnected,
                    Counter::ClientConnectionsNonIdle,
                    Counter::TasksPanicked,
                    Counter::StmtClientActiveTotal,
                ] {
                    let n = counts.value(counter);
                    judge.check(n == 0, "core", || {
                        format!("{counter:?} is {n} when all have left")
                    });
                }
            }
            Report::Pool(rows) => {
                for row in rows {
                    judge.check(row.used == 0, "core", || {
                        format!("{} connections to {} are still used", row.used, row.host)
                    });
                    judge.check(row.free <= u64::from(max), "core", || {
                        format!("{} idle connections to {}", row.free, row.host)
                    });
                }
            }
            Report::Processes(rows) => {
                judge.check(rows.is_empty(), "core", || {
                    format!("{} sessions are left: {rows:?}", rows.len())
                });
            }
            _ => judge.accuse(
                "core",
                &format!("{what:?} was answered with something else"),
            ),
        }
    }
}

fn address(text: &str) -> Address {
    text.parse().expect("an address of this file")
}

/// Takes servers out of service, while sessions run, and brings them back.
struct Operator {
    rt: Rt,
    judge: Rc<Judge>,
    world: World,
    tells: Vec<mailbox::Sender<ToCore>>,
}

impl Operator {
    async fn work(&self, mut chance: Chance) {
        let mut generation = 1;
        for _ in 0..chance.between(1, 3) {
            self.rt
                .sleep(Duration::from_millis(chance.between(5, 400)))
                .await;
            // Of OFFLINE_HARD sessions are told as of a server that is gone.
            let hard = self.world.rough() && chance.percent(50);
            let status = if hard {
                Status::OfflineHard
            } else {
                Status::OfflineSoft
            };
            let at = usize::from(chance.percent(50));
            let mut all = [Status::Online; 2];
            all[at] = status;
            let server = ["a", "b"][at];
            generation += 1;
            self.load(
                snapshot(&self.world, generation, all),
                &format!("server {server} is to be {}", status.name()),
            )
            .await;
            let offline = self.judge.goes_offline(server, hard);
            self.rt
                .sleep(Duration::from_millis(chance.between(1, 3000)))
                .await;
            self.judge.comes_online(offline);
            generation += 1;
            self.load(
                snapshot(&self.world, generation, [Status::Online; 2]),
                &format!("server {server} is to be ONLINE"),
            )
            .await;
        }
    }

    /// Every core works under it when this returns.
    async fn load(&self, snapshot: Snapshot, words: &str) {
        self.judge.tell("operator", words);
        let snapshot = Arc::new(snapshot);
        for tell in &self.tells {
            let (answer, answered) = mailbox::channel(1);
            let done = Box::new(move |()| drop(answer.try_send(())));
            let _full = tell.try_send(ToCore::Load {
                snapshot: snapshot.clone(),
                done,
            });
            let loaded = self
                .rt
                .timeout(Duration::from_secs(1), answered.recv())
                .await;
            self.judge
                .check(matches!(loaded, Ok(Some(()))), "core", || {
                    format!("{words}: not loaded within a second")
                });
        }
    }
}

/// `mysql-init_connect` of a world.
fn begins(world: &World) -> &'static str {
    match (world.seed >> 7 & 1, world.seed >> 8 & 1) {
        (1, _) if world.expires => "DO 0",
        (_, 1) => "SET div_precision_increment=5",
        _ => "",
    }
}

/// Half of the worlds ask a silent session's connection soon, half when somebody needs it.
fn lingers(world: &World) -> [(&'static str, &'static str); 2] {
    let ms = if world.seed >> 9 & 1 == 1 {
        "5"
    } else {
        "10000"
    };
    [
        ("mysql-handle_warnings_delay_ms", ms),
        ("mysql-auto_increment_delay_multiplex_timeout_ms", ms),
    ]
}

/// Two servers, two hostgroups, and the two classic rules.
fn snapshot(world: &World, generation: u64, statuses: [Status; 2]) -> Snapshot {
    let bytes_per_second = world.bytes_per_second.to_string();
    let pace = if world.pace == 0 {
        "1000000".to_owned()
    } else {
        world.pace.to_string()
    };
    let begins = begins(world);
    let settings = [
        (
            "mysql-throttle_connections_per_sec_to_hostgroup",
            pace.as_str(),
        ),
        (
            "mysql-throttle_max_bytes_per_second_to_client",
            bytes_per_second.as_str(),
        ),
        ("mysql-have_ssl", "false"),
        (
            "mysql-server_version",
            if world.mariadb {
                "10.11.6-MariaDB"
            } else {
                "8.0.11"
            },
        ),
        (
            "mysql-reset_connection_algorithm",
            if world.seed >> 5 & 1 == 1 { "1" } else { "2" },
        ),
        ("mysql-enable_load_data_local_infile", "true"),
        ("mysql-query_cache_soft_ttl_pct", "50"),
        (
            "mysql-default_authentication_plugin",
            "mysql_native_password",
        ),
        ("mysql-init_connect", begins),
        // Waiting for others is no error here, however long they take.
        ("mysql-connect_timeout_server_max", "300000"),
        (
            "mysql-server_compression_algorithm",
            if world.seed >> 4 & 1 == 1 {
                "zstd"
            } else {
                "zlib"
            },
        ),
    ];
    let (variables, _) = Variables::build(settings.into_iter().chain(lingers(world)))
        .expect("settings of this file");
    let user = |name: &str| UserRow {
        username: name.to_owned(),
        password: Some(PASSWORD.to_owned()),
        ..UserRow::default()
    };
    let server = |hostgroup_id, hostname: &str, status: Status| ServerRow {
        hostgroup_id,
        status: status.name().to_owned(),
        hostname: hostname.to_owned(),
        max_connections: i64::from(world.connections),
        // Each seed has its own mixture.
        compression: i64::from(world.seed >> (2 + hostgroup_id) & 1 == 1),
        ..ServerRow::default()
    };
    let rule = |rule_id, pattern: &str, hostgroup| RuleRow {
        rule_id,
        active: 1,
        match_digest: Some(pattern.to_owned()),
        destination_hostgroup: Some(hostgroup),
        apply: 1,
        ..RuleRow::default()
    };
    let courier = UserRow {
        fast_forward: 1,
        ..user(COURIER)
    };
    let all = [user("miller"), user("baker"), courier, user(SLEEPER)];
    let users = Users::build(all, &variables).expect("users of this file");
    let settings = |hostgroup_id, hostgroup_settings| HostgroupAttributesRow {
        hostgroup_id,
        hostgroup_settings,
        ..HostgroupAttributesRow::default()
    };
    let pipelining = settings(1, format!(r#"{{"pipelining":{}}}"#, world.depth));
    let split = world
        .split
        .map(|ms| format!(r#""read_hostgroup":1,"read_after_write_ms":{ms}"#));
    let replays = world
        .replays
        .then(|| r#""transaction_replay":1"#.to_owned());
    let of_writer: Vec<_> = split.into_iter().chain(replays).collect();
    let of_writer = settings(0, format!("{{{}}}", of_writer.join(",")));
    let servers = [
        server(0, "10.0.0.1", statuses[0]),
        server(1, "10.0.0.2", statuses[1]),
        server(2, "10.0.0.3", Status::Online),
    ];
    let servers =
        Servers::build(servers, [pipelining, of_writer], []).expect("servers of this file");
    let cached = RuleRow {
        match_digest: None,
        match_pattern: Some(format!("^{}$", programme::SAME)),
        cache_ttl: Some(2000),
        cache_timeout: Some(100),
        attributes: r#"{"cache_invalidate":true}"#.to_owned(),
        ..rule(2, "", 1)
    };
    let mut rules = vec![cached];
    if world.mirror {
        let attributes = if world.seed >> 6 & 1 == 1 {
            r#"{"mirror_compare":true}"#
        } else {
            ""
        };
        rules.push(RuleRow {
            match_digest: None,
            match_pattern: Some(".".to_owned()),
            destination_hostgroup: None,
            mirror_hostgroup: Some(2),
            attributes: attributes.to_owned(),
            apply: 0,
            ..rule(-1, "", 0)
        });
    }
    if world.cached {
        let lines = RuleRow {
            match_digest: None,
            match_pattern: Some("^SELECT 'cached' FROM ".to_owned()),
            cache_ttl: Some(10_000),
            cache_timeout: Some(100),
            attributes: r#"{"cache_invalidate":true}"#.to_owned(),
            ..rule(4, "", 0)
        };
        // Before those that end here.
        rules.push(RuleRow {
            rule_id: 0,
            ..lines
        });
    }
    if world.split.is_none() {
        rules.extend([rule(1, "^SELECT.*FOR UPDATE", 0), rule(3, "^SELECT", 1)]);
    }
    let rules = Rules::build(rules, [], &variables).expect("rules of this file");
    Snapshot {
        generation,
        variables: Arc::new(variables),
        users: Arc::new(users),
        servers: Arc::new(servers),
        rules: Arc::new(rules),
        ..world.base()
    }
}
