//! Limits that hold for a fleet: three proxies in front of one server never have more connections
//! together than one may, and what one of them does not use is the others' soon.
#![forbid(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use conformance::by_hand::{CREATE_USER, Raw, USER};
use conformance::etcd::Etcd;
use conformance::proxy::{Driver, Proxy, Wish};
use conformance::servers::{Server, Vendor};
use conformance::trials::{self, expect};

type Outcome = Result<(), String>;

fn main() {
    trials::run_once(&[
        (
            "a_server_never_has_more_connections_of_a_fleet_than_its_row_says",
            servers,
        ),
        ("a_user_has_as_many_clients_as_his_row_says", users),
        ("a_rate_is_that_of_all_proxies_together", rates),
    ])
}

/// Of the server, for all proxies together.
const MAX: usize = 30;
/// Clients of a proxy, each with a statement at all times.
const CROWD: usize = 24;

struct Fleet {
    proxies: Vec<Proxy>,
    etcd: Etcd,
    server: Arc<Server>,
}

impl Fleet {
    fn start(driver: Driver) -> Result<Self, String> {
        let server = Server::start(Vendor::MariaDb)?;
        server.root(CREATE_USER)?;
        let etcd = Etcd::start(1)?;
        let mut wish = Wish::in_front_of(&server);
        wish.add_open_user();
        wish.variables += "    monitor_enabled = false\n    free_connections_pct = 100\n";
        let mut proxies = Vec::new();
        for _ in 0..3 {
            let proxy = Proxy::start(driver, &wish)?;
            let store = etcd.store();
            // What the first has loaded is what all have; nobody's passwords are in the store.
            proxy.admin(&format!(
                "UPDATE mysql_servers SET max_connections = {MAX}; LOAD MYSQL SERVERS TO RUNTIME; \
                 SET admin-cluster_store = '{store}'; LOAD ADMIN VARIABLES TO RUNTIME"
            ))?;
            proxies.push(proxy);
        }
        let fleet = Self {
            proxies,
            etcd,
            server: Arc::new(server),
        };
        fleet.shared_by(3, Duration::from_secs(15))?;
        Ok(fleet)
    }

    /// The first proxy that runs shows shares of so many proxies, and all of the limit is given.
    fn shared_by(&self, count: usize, within: Duration) -> Outcome {
        let sql =
            "SELECT COUNT(*), SUM(share) FROM stats_millrace_shares WHERE what LIKE 'server 0 %'";
        in_time(within, || {
            let said = self.proxies[0].admin(sql)?;
            Ok((said.trim() == format!("{count}\t{MAX}"), said))
        })
    }

    /// This proxy's share of the limit, as itself shows it.
    fn share(&self, nth: usize) -> Result<usize, String> {
        let proxy = &self.proxies[nth];
        let said = proxy.admin(&format!(
            "SELECT share FROM stats_millrace_shares WHERE what LIKE 'server 0 %' AND proxy LIKE '%:{}'",
            proxy.admin_port
        ))?;
        said.trim()
            .parse()
            .map_err(|_| format!("no share: {said:?}"))
    }

    fn gets(&self, nth: usize, at_least: usize, within: Duration) -> Result<Duration, String> {
        let begun = Instant::now();
        in_time(within, || {
            let share = self.share(nth)?;
            Ok((share >= at_least, format!("proxy {nth} has {share}")))
        })?;
        Ok(begun.elapsed())
    }
}

fn in_time(within: Duration, mut is_so: impl FnMut() -> Result<(bool, String), String>) -> Outcome {
    let until = Instant::now() + within;
    loop {
        let (is_so, said) = is_so()?;
        if is_so {
            return Ok(());
        }
        expect(Instant::now() < until, || {
            format!("not within {within:?}: {said}")
        })?;
        thread::sleep(Duration::from_millis(50));
    }
}

/// Clients of one proxy that ask without pause until they are told to stop.
struct Crowd {
    stops: Arc<AtomicBool>,
    asked: Arc<AtomicU64>,
    failed: Arc<AtomicU64>,
    clients: Vec<JoinHandle<()>>,
}

impl Crowd {
    fn of(proxy: &Proxy) -> Self {
        let mut crowd = Self {
            stops: Arc::default(),
            asked: Arc::default(),
            failed: Arc::default(),
            clients: Vec::new(),
        };
        for _ in 0..CROWD {
            let (port, stops) = (proxy.port, crowd.stops.clone());
            let (asked, failed) = (crowd.asked.clone(), crowd.failed.clone());
            crowd.clients.push(thread::spawn(move || {
                let Ok(mut client) = Raw::log_in(port) else {
                    failed.fetch_add(1, Ordering::Relaxed);
                    return;
                };
                while !stops.load(Ordering::Relaxed) {
                    if client.ask("SELECT SLEEP(0.03)").is_err() {
                        failed.fetch_add(1, Ordering::Relaxed);
                        return;
                    }
                    asked.fetch_add(1, Ordering::Relaxed);
                }
            }));
        }
        crowd
    }

    /// Each of them has had every answer.
    fn ends(self) -> Outcome {
        let failed = self.leaves();
        expect(failed == 0, || format!("{failed} statements failed"))
    }

    fn leaves(self) -> u64 {
        self.stops.store(true, Ordering::Relaxed);
        for client in self.clients {
            let _ended = client.join();
        }
        self.failed.load(Ordering::Relaxed)
    }
}

/// Looks all the time how many connections the server has.
struct Watch {
    over: Arc<AtomicBool>,
    most: Arc<AtomicUsize>,
    looks: JoinHandle<Result<usize, String>>,
}

impl Watch {
    fn on(server: &Arc<Server>) -> Self {
        let (over, most) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
        let (stops, found, server) = (over.clone(), most.clone(), server.clone());
        let looks = thread::spawn(move || {
            let mut looks = 0;
            while !stops.load(Ordering::Relaxed) {
                let sql = format!(
                    "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = '{USER}'"
                );
                let said = server.root(&sql)?;
                let count = said.lines().last().and_then(|line| line.parse().ok());
                let count = count.ok_or_else(|| said.clone())?;
                found.fetch_max(count, Ordering::Relaxed);
                looks += 1;
            }
            Ok(looks)
        });
        Self { over, most, looks }
    }

    fn most(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }

    /// `given_up`: a machine so slow that etcd did not hear of a proxy that lived. Then there may be
    /// more connections for a while, as the page says.
    fn ends(self, given_up: bool) -> Outcome {
        self.over.store(true, Ordering::Relaxed);
        let most = self.most();
        let looks = self.looks.join().map_err(|_| "nobody looked")??;
        eprintln!("at most {most} connections in {looks} looks");
        expect(looks > 5, || format!("only {looks} looks"))?;
        expect(given_up || most <= MAX, || {
            format!("{most} connections, and {MAX} may be")
        })
    }
}

fn servers(driver: Driver) -> Outcome {
    let mut fleet = Fleet::start(driver)?;
    let watch = Watch::on(&fleet.server);
    let (one, two, three) = (
        Crowd::of(&fleet.proxies[0]),
        Crowd::of(&fleet.proxies[1]),
        Crowd::of(&fleet.proxies[2]),
    );
    thread::sleep(Duration::from_secs(4));
    // All want more, and each has as much.
    for nth in 0..3 {
        let share = fleet.share(nth)?;
        expect((9..=11).contains(&share), || {
            format!("proxy {nth} has {share}")
        })?;
    }
    let count = |of: fn(&Crowd) -> u64| [&one, &two, &three].map(of);
    expect(watch.most() >= MAX - 3, || {
        let list = fleet.server.root("SHOW PROCESSLIST");
        let failed = count(|crowd| crowd.failed.load(Ordering::Relaxed));
        let asked = count(|crowd| crowd.asked.load(Ordering::Relaxed));
        let most = watch.most();
        format!("only {most} are used, {asked:?} asked, {failed:?} failed: {list:?}")
    })?;
    // Another process takes over from one: both have its part, and its clients go on.
    let mut old = fleet.proxies[2].upgrade(&[])?;
    let ended = old.wait(Duration::from_secs(60)).is_some();
    expect(ended, || fleet.proxies[2].log())?;
    let has_as_much = || {
        let share = fleet.share(2)?;
        Ok((
            (9..=11).contains(&share),
            format!("the new process has {share}"),
        ))
    };
    in_time(Duration::from_secs(15), has_as_much)?;
    // One goes idle: the others get its part.
    three.ends()?;
    for nth in 0..2 {
        let took = fleet.gets(nth, 14, Duration::from_secs(15))?;
        eprintln!("{driver}: proxy {nth} had its part of an idle one after {took:?}");
    }
    // One dies: when its lease is over, the other has nearly all.
    fleet.proxies[1].kill();
    let took = fleet.gets(0, 26, Duration::from_secs(25))?;
    eprintln!("{driver}: the first had the part of a dead one after {took:?}");
    two.leaves();
    // Without etcd shares stay, and traffic goes on.
    fleet.etcd.kill_all();
    let before = one.asked.load(Ordering::Relaxed);
    thread::sleep(Duration::from_secs(3));
    let asked = one.asked.load(Ordering::Relaxed) - before;
    expect(asked > 100, || format!("only {asked} answers without etcd"))?;
    expect(fleet.share(0)? >= 26, || {
        "its share went with etcd".to_owned()
    })?;
    one.ends()?;
    // One that starts without etcd has the least share.
    fleet.proxies[1].restart()?;
    fleet.proxies[1].query("SELECT 1")?;
    let given_up = fleet.proxies.iter().any(|proxy| {
        let log = proxy.log();
        log.contains("has given its shares to others")
    });
    watch.ends(given_up)
}

fn users(driver: Driver) -> Outcome {
    let fleet = Fleet::start(driver)?;
    const CLIENTS: usize = 12;
    for proxy in &fleet.proxies {
        proxy.admin(&format!(
            "UPDATE mysql_users SET max_connections = {CLIENTS} WHERE username = '{USER}'; \
             LOAD MYSQL USERS TO RUNTIME LOCAL"
        ))?;
    }
    // One after another comes to each: no more are let in than he may have, and soon so many are.
    let mut clients: Vec<Vec<Raw>> = vec![Vec::new(), Vec::new(), Vec::new()];
    let count = |clients: &[Vec<Raw>]| clients.iter().map(Vec::len).sum::<usize>();
    in_time(Duration::from_secs(20), || {
        for (proxy, let_in) in fleet.proxies.iter().zip(&mut clients) {
            let_in.extend(Raw::log_in(proxy.port));
        }
        let now = count(&clients);
        expect(now <= CLIENTS, || {
            format!("{now} clients, and {CLIENTS} may be")
        })?;
        Ok((now >= CLIENTS - 1, format!("{now} clients")))
    })?;
    // All leave two of them: the third lets in as many as there may be.
    clients.truncate(1);
    in_time(Duration::from_secs(20), || {
        clients[0].extend(Raw::log_in(fleet.proxies[0].port));
        let now = count(&clients);
        expect(now <= CLIENTS, || {
            format!("{now} clients, and {CLIENTS} may be")
        })?;
        Ok((now >= CLIENTS - 2, format!("{now} clients at one proxy")))
    })
}

fn rates(driver: Driver) -> Outcome {
    const PER_S: u64 = 90;
    let fleet = Fleet::start(driver)?;
    for proxy in &fleet.proxies {
        proxy.admin(&format!(
            "UPDATE mysql_users SET attributes = '{{\"statements_per_sec\": {PER_S}}}' WHERE username = '{USER}'; \
             LOAD MYSQL USERS TO RUNTIME LOCAL"
        ))?;
    }
    let answers = |crowds: &[Crowd]| -> u64 {
        crowds
            .iter()
            .map(|crowd| crowd.asked.load(Ordering::Relaxed))
            .sum()
    };
    let in_four_seconds = |crowds: &[Crowd]| {
        thread::sleep(Duration::from_secs(6));
        let (begun, before) = (Instant::now(), answers(crowds));
        thread::sleep(Duration::from_secs(4));
        (answers(crowds) - before) * 4000 / u64::try_from(begun.elapsed().as_millis()).unwrap_or(1)
    };
    let mut crowds: Vec<_> = fleet.proxies.iter().map(Crowd::of).collect();
    let count = in_four_seconds(&crowds);
    eprintln!("{driver}: {count} answers of three proxies in four seconds");
    expect((PER_S * 3..=PER_S * 4 + 10).contains(&count), || {
        format!("{count} answers of three")
    })?;
    // One proxy alone has nearly all of it.
    for crowd in crowds.drain(1..) {
        crowd.leaves();
    }
    let count = in_four_seconds(&crowds);
    eprintln!("{driver}: {count} answers of one proxy in four seconds");
    expect((PER_S * 3..=PER_S * 4 + 10).contains(&count), || {
        format!("{count} answers of one")
    })
}
