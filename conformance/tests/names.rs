//! Servers by names that move, and by names of several addresses.
#![forbid(unsafe_code)]

use conformance::by_hand::{self, Raw};
use conformance::dns::{self, Dns, Says};
use conformance::process::TempFolder;
use conformance::proxy::{Driver, Proxy, Wish};
use conformance::servers::{Server, Start, Vendor};
use conformance::trials::{self, expect, same, soon};
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

type Outcome = Result<(), String>;

const FIRST: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 1);
const SECOND: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// Which server answers.
const WHO: &str = "SELECT @@server_id";

fn main() {
    let missing = dns::missing();
    trials::run_once_unless(
        missing.as_deref(),
        &[(
            "connections_follow_a_name_and_each_of_its_addresses_has_its_health",
            follows,
        )],
    )
}

/// Two servers on one port of two addresses, and a proxy that knows them by a name.
struct Scene {
    servers: [Server; 2],
    dns: Dns,
    proxy: Proxy,
    _folder: TempFolder,
}

impl Scene {
    fn start(driver: Driver) -> Result<Self, String> {
        let first = Server::start_with(Vendor::MariaDb, &["--server-id=1"])?;
        let options = ["--server-id=2", "--bind-address=127.0.0.2"];
        let second = Server::start_as(&Start {
            options: options.map(str::to_owned).to_vec(),
            port: Some(first.port),
            ..Start::of(Vendor::MariaDb)?
        })?;
        // It was waited for at the address of the first.
        soon("1", || {
            Ok(second.root("SELECT 1").map_or_else(|error| error, last))
        })?;
        let servers = [first, second];
        for server in &servers {
            server.root(by_hand::CREATE_USER)?;
        }
        let words = |error: std::io::Error| error.to_string();
        let folder = TempFolder::new("names").map_err(words)?;
        let dns = Dns::start(Says::At(&[FIRST])).map_err(words)?;
        let mut wish = Wish::in_front_of(&servers[0]);
        wish.servers = wish.servers.replace("127.0.0.1", "db.test");
        wish.add_open_user();
        wish.starter = Some(dns::starter(folder.path(), &dns)?);
        wish.variables.push_str(
            "    monitor_enabled = true\n    monitor_ping_interval = 200\n    \
             monitor_ping_timeout = 200\n    monitor_local_dns_cache_ttl = 1000\n    \
             monitor_local_dns_cache_refresh_interval = 200\n",
        );
        Ok(Self {
            proxy: Proxy::start(driver, &wish)?,
            servers,
            dns,
            _folder: folder,
        })
    }

    fn client(&self) -> Result<Raw, String> {
        Raw::log_in(self.proxy.port).map_err(|error| error.to_string())
    }

    /// Connections of the proxy's clients at a server.
    fn connections(&self, at: usize) -> Result<String, String> {
        let all = "SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'open'";
        self.servers[at].root(all).map(last)
    }

    /// Waits until a new statement is answered by this server.
    fn is_served_by(&self, id: &str) -> Outcome {
        let mut client = self.client()?;
        soon(id, || asked(&mut client, WHO))
    }

    /// Waits until a column of an address is this.
    fn address_is(&self, address: Ipv4Addr, column: &str, wanted: &str) -> Outcome {
        soon(wanted, || {
            let asked = self.proxy.admin(&format!(
                "SELECT {column} FROM stats_millrace_addresses WHERE hostname = 'db.test' AND address = '{address}'"
            ))?;
            Ok(last(asked))
        })
    }
}

fn last(said: String) -> String {
    said.lines().last().unwrap_or_default().to_owned()
}

fn asked(client: &mut Raw, sql: &str) -> Result<String, String> {
    let rows = client.ask(sql).map_err(|error| format!("{sql}: {error}"))?;
    Ok(rows.concat().concat())
}

fn follows(driver: Driver) -> Outcome {
    let scene = Scene::start(driver)?;
    moves(&scene)?;
    moves_under_traffic(&scene)?;
    leaves_a_dead_address(&scene)?;
    outlives(&scene)?;
    uses_the_first_that_answers(&scene)?;
    uses_all(&scene)
}

/// Idle connections close, one that is in use goes on to its next idle moment.
fn moves(scene: &Scene) -> Outcome {
    // Who came before the name was looked up has a connection by name.
    scene.address_is(FIRST, "in_use", "1")?;
    let mut clients = [scene.client()?, scene.client()?, scene.client()?];
    for client in &mut clients {
        asked(client, "BEGIN")?;
        same(&asked(client, WHO)?, "1")?;
    }
    let [first, begun, other] = &mut clients;
    asked(first, "COMMIT")?;
    asked(other, "COMMIT")?;
    soon("3", || scene.connections(0))?;
    scene.dns.says(Says::At(&[SECOND]));
    soon("1", || scene.connections(0))?;
    same(&asked(first, WHO)?, "2")?;
    same(&asked(begun, WHO)?, "1")?;
    let left = "the name leads there no more";
    scene.address_is(FIRST, "why", left)?;
    scene.address_is(FIRST, "ConnUsed", "1")?;
    asked(begun, "COMMIT")?;
    soon("0", || scene.connections(0))?;
    same(&asked(begun, WHO)?, "2")?;
    // Nobody has a connection there: it is forgotten.
    scene.address_is(FIRST, "COUNT(*)", "0")?;
    let proxy = &scene.proxy;
    expect(proxy.says("'db.test' is at 127.0.0.2 now"), || proxy.log())
}

/// Clients that ask all the time notice nothing of a name that moves from one live server to another.
fn moves_under_traffic(scene: &Scene) -> Outcome {
    let (over, statements) = (AtomicBool::new(false), AtomicU64::new(0));
    let asks = || -> Outcome {
        let mut client = scene.client()?;
        while !over.load(Ordering::Relaxed) {
            asked(&mut client, WHO)?;
            statements.fetch_add(1, Ordering::Relaxed);
        }
        same(&asked(&mut client, WHO)?, "2")
    };
    thread::scope(|threads| {
        let clients: Vec<_> = (0..4).map(|_| threads.spawn(asks)).collect();
        let moved = [&[FIRST], &[SECOND], &[FIRST], &[SECOND]]
            .iter()
            .zip(["1", "2", "1", "2"]);
        let outcome = moved.into_iter().try_for_each(|(at, id)| {
            scene.dns.says(Says::At(*at));
            scene.is_served_by(id)?;
            let before = statements.load(Ordering::Relaxed);
            let goes_on = || Ok((statements.load(Ordering::Relaxed) > before + 100).to_string());
            soon("true", goes_on)
        });
        over.store(true, Ordering::Relaxed);
        for client in clients {
            client.join().map_err(|_| "a client panicked")??;
        }
        outcome
    })
}

/// Whoever is left at an address that does not answer any more is cut off, and waits for nobody.
fn leaves_a_dead_address(scene: &Scene) -> Outcome {
    scene.dns.says(Says::At(&[FIRST]));
    scene.is_served_by("1")?;
    let mut begun = scene.client()?;
    asked(&mut begun, "BEGIN")?;
    same(&asked(&mut begun, WHO)?, "1")?;
    scene.dns.says(Says::At(&[SECOND]));
    scene.is_served_by("2")?;
    scene.servers[0].signal("STOP");
    // The server says nothing for ever: it is the proxy that ends this.
    let told = begun.packet().map_err(|error| error.to_string())?;
    let told = by_hand::complaint(&told).to_string();
    expect(told.contains("taken out of service"), || told.clone())?;
    let proxy = &scene.proxy;
    let words = format!(
        "db.test:{} (127.0.0.1) does not answer",
        scene.servers[0].port
    );
    expect(proxy.says(&words), || proxy.log())?;
    scene.servers[0].signal("CONT");
    scene.is_served_by("2")
}

/// The name server is of no use, or silent: servers are where they were, also for new connections,
/// and nobody waits long.
fn outlives(scene: &Scene) -> Outcome {
    let (dns, proxy) = (&scene.dns, &scene.proxy);
    dns.says(Says::Failed);
    expect(proxy.says("nobody says where 'db.test' is"), || proxy.log())?;
    for says in [Says::Failed, Says::Nothing] {
        dns.says(says);
        let since = Instant::now();
        let mut clients = (0..6)
            .map(|_| scene.client())
            .collect::<Result<Vec<_>, _>>()?;
        for client in &mut clients {
            asked(client, "BEGIN")?;
            same(&asked(client, WHO)?, "2")?;
        }
        expect(since.elapsed() < Duration::from_secs(8), || {
            format!("{says:?}: {:?}", since.elapsed())
        })?;
    }
    dns.says(Says::At(&[FIRST]));
    scene.is_served_by("1")
}

/// Of two addresses the first that answers is used, and an operator reads why not the other.
fn uses_the_first_that_answers(scene: &Scene) -> Outcome {
    let route = |wanted: &str| {
        soon("true", || {
            let told = scene.proxy.admin("EXPLAIN ROUTE 'SELECT 1' AS open")?;
            Ok(told.contains(wanted).to_string())
        })
    };
    let port = scene.servers[0].port;
    scene.dns.says(Says::At(&[SECOND, FIRST]));
    scene.address_is(SECOND, "health", "well")?;
    scene.is_served_by("1")?;
    route(&format!(
        "db.test at 127.0.0.2:{port}: not used: the first that answers is 127.0.0.1"
    ))?;
    scene.servers[0].signal("STOP");
    scene.is_served_by("2")?;
    scene.address_is(FIRST, "health", "missing")?;
    route(&format!(
        "db.test:{port} at 127.0.0.2 in hostgroup 0: may serve"
    ))?;
    route(&format!(
        "db.test at 127.0.0.1:{port}: not used: does not answer"
    ))?;
    scene.servers[0].signal("CONT");
    scene.is_served_by("1")
}

/// With `dns` = `all` each address is a server of its own.
fn uses_all(scene: &Scene) -> Outcome {
    scene.proxy.admin(
        "INSERT INTO mysql_hostgroup_attributes (hostgroup_id, hostgroup_settings) VALUES (0, '{\"dns\": \"all\"}'); \
         LOAD MYSQL SERVERS TO RUNTIME",
    )?;
    let mut client = scene.client()?;
    let mut share = || -> Result<String, String> {
        let mut said = [0_u32; 2];
        for _ in 0..20 {
            match asked(&mut client, WHO)?.as_str() {
                "1" => said[0] += 1,
                _ => said[1] += 1,
            }
        }
        Ok(format!("{said:?}"))
    };
    soon("[10, 10]", &mut share)?;
    let placed = "SELECT GROUP_CONCAT(hostname) FROM (SELECT hostname FROM runtime_mysql_servers ORDER BY hostname)";
    same(&last(scene.proxy.admin(placed)?), "127.0.0.1,127.0.0.2")?;
    scene.servers[1].signal("STOP");
    scene.address_is(SECOND, "health", "missing")?;
    soon("[20, 0]", &mut share)?;
    scene.servers[1].signal("CONT");
    soon("[10, 10]", &mut share)?;
    // It has one address less: what was there ends.
    scene.dns.says(Says::At(&[SECOND]));
    soon("[0, 20]", &mut share)?;
    soon("0", || scene.connections(0))
}
