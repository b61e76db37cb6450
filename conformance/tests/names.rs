//! Servers by names that move.
#![forbid(unsafe_code)]

use conformance::by_hand::{self, Raw};
use conformance::dns::{self, Dns, Says};
use conformance::process::TempFolder;
use conformance::proxy::{Driver, Proxy, Wish};
use conformance::relay;
use conformance::servers::{Server, Vendor};
use conformance::trials::{self, expect, same, soon};
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

type Outcome = Result<(), String>;

const FIRST: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 1);
const SECOND: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

fn main() {
    let missing = dns::missing();
    trials::run_once_unless(
        missing.as_deref(),
        &[(
            "connections_follow_a_name_that_moves_and_outlive_its_name_server",
            moves,
        )],
    )
}

fn log_in(proxy: &Proxy) -> Result<Raw, String> {
    Raw::log_in(proxy.port).map_err(|error| error.to_string())
}

fn asked(client: &mut Raw, sql: &str) -> Result<String, String> {
    let rows = client.ask(sql).map_err(|error| format!("{sql}: {error}"))?;
    Ok(rows.concat().concat())
}

fn moves(driver: Driver) -> Outcome {
    let servers = [
        Server::start(Vendor::MariaDb)?,
        Server::start(Vendor::MariaDb)?,
    ];
    for server in &servers {
        server.root(by_hand::CREATE_USER)?;
    }
    let ports = [0, 1].map(|at| servers[at].port.to_string());
    let words = |error: std::io::Error| error.to_string();
    // One port at two addresses, with a server behind each.
    relay::start_at((SECOND, servers[0].port).into(), servers[1].port).map_err(words)?;
    let folder = TempFolder::new("names").map_err(words)?;
    let dns = Dns::start(Says::At(FIRST)).map_err(words)?;
    let starter = dns::starter(folder.path(), &dns)?;
    let mut wish = Wish::in_front_of(&servers[0]);
    wish.servers = wish.servers.replace("127.0.0.1", "db.test");
    wish.users = format!("{},\n{}", wish.users, by_hand::USER_GROUP);
    wish.starter = Some(starter);
    wish.variables.push_str(
        "    monitor_enabled = true\n    monitor_local_dns_cache_ttl = 1000\n    \
         monitor_local_dns_cache_refresh_interval = 200\n",
    );
    let proxy = Proxy::start(driver, &wish)?;

    // Some connections are idle, one is in use.
    let mut clients = [log_in(&proxy)?, log_in(&proxy)?, log_in(&proxy)?];
    for client in &mut clients {
        asked(client, "BEGIN")?;
        same(&asked(client, "SELECT @@port")?, &ports[0])?;
    }
    let [first, begun, other] = &mut clients;
    asked(first, "COMMIT")?;
    asked(other, "COMMIT")?;
    let left = || {
        let all = "SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'open'";
        let said = servers[0].root(all)?;
        Ok(said.lines().last().unwrap_or_default().to_owned())
    };
    soon("3", left)?;
    dns.says(Says::At(SECOND));
    soon("1", left)?;
    same(&asked(first, "SELECT @@port")?, &ports[1])?;
    same(&asked(begun, "SELECT @@port")?, &ports[0])?;
    asked(begun, "COMMIT")?;
    soon("0", left)?;
    same(&asked(begun, "SELECT @@port")?, &ports[1])?;
    expect(proxy.says("'db.test' is at 127.0.0.2 now"), || proxy.log())?;

    outlives(&dns, &proxy, &ports[1])?;
    dns.says(Says::At(FIRST));
    let mut client = log_in(&proxy)?;
    soon(&ports[0], || asked(&mut client, "SELECT @@port"))
}

/// The name server is of no use, or silent: servers are where they were, also for new connections,
/// and nobody waits long.
fn outlives(dns: &Dns, proxy: &Proxy, port: &str) -> Outcome {
    dns.says(Says::Failed);
    expect(proxy.says("nobody says where 'db.test' is"), || proxy.log())?;
    for says in [Says::Failed, Says::Nothing] {
        dns.says(says);
        // What was known is old on each core.
        std::thread::sleep(Duration::from_millis(1500));
        let since = Instant::now();
        let mut clients = (0..6)
            .map(|_| log_in(proxy))
            .collect::<Result<Vec<_>, _>>()?;
        for client in &mut clients {
            asked(client, "BEGIN")?;
            same(&asked(client, "SELECT @@port")?, port)?;
        }
        expect(since.elapsed() < Duration::from_secs(8), || {
            format!("{says:?}: {:?}", since.elapsed())
        })?;
    }
    Ok(())
}
