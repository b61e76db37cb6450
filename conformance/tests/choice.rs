//! Which server of a hostgroup gets a statement.
#![forbid(unsafe_code)]

use conformance::beside::beside;
use conformance::by_hand::{self, Raw};
use conformance::proxy::{Driver, Proxy, Wish};
use conformance::servers::{Server, Vendor};
use conformance::trials::{self, expect, same, soon};

type Outcome = Result<(), String>;

fn main() {
    trials::run_once(&[
        (
            "a_server_of_weight_zero_serves_when_no_other_can",
            weight_zero,
        ),
        (
            "the_server_with_less_outstanding_gets_the_next_statement",
            outstanding,
        ),
        ("the_server_that_answers_sooner_gets_most", latency),
        (
            "a_server_that_comes_back_gets_its_weight_little_by_little",
            slow_start,
        ),
    ])
}

fn log_in(proxy: &Proxy) -> Result<Raw, String> {
    Raw::log_in(proxy.port).map_err(|error| error.to_string())
}

/// Two servers in hostgroup 0 with these weights and settings.
fn two(driver: Driver, weights: [u32; 2], settings: &str) -> Result<([Server; 2], Proxy), String> {
    let servers = [
        Server::start(Vendor::MariaDb)?,
        Server::start(Vendor::MariaDb)?,
    ];
    for server in &servers {
        server.root(by_hand::CREATE_USER)?;
    }
    let mut wish = Wish::in_front_of(&servers[0]);
    wish.add_open_user();
    wish.variables
        .push_str("    shun_on_failures = 1\n    shun_recovery_time_sec = 1\n");
    let proxy = Proxy::start(driver, &wish)?;
    let rows = servers
        .iter()
        .zip(weights)
        .map(|(server, weight)| format!("(0, '127.0.0.1', {}, {weight})", server.port))
        .collect::<Vec<_>>()
        .join(", ");
    proxy.admin(&format!(
        "DELETE FROM mysql_servers; \
         INSERT INTO mysql_servers (hostgroup_id, hostname, port, weight) VALUES {rows}; \
         INSERT INTO mysql_hostgroup_attributes (hostgroup_id, hostgroup_settings) VALUES (0, '{settings}'); \
         LOAD MYSQL SERVERS TO RUNTIME"
    ))?;
    Ok((servers, proxy))
}

/// Ports of the servers that answer this client's next statements, each once.
fn reached(client: &mut Raw) -> Result<String, String> {
    let mut ports = Vec::new();
    for _ in 0..8 {
        match client.ask("SELECT @@port") {
            Ok(rows) => ports.push(rows.concat().concat()),
            // The connection broke under it.
            Err(words) if words.to_string().contains("2013") => {}
            Err(words) => return Err(words.to_string()),
        }
    }
    ports.sort_unstable();
    ports.dedup();
    Ok(ports.join(" "))
}

fn weight_zero(driver: Driver) -> Outcome {
    let (mut servers, proxy) = two(driver, [1, 0], r#"{"weight_zero":"last"}"#)?;
    let [first, last] = [0, 1].map(|at| servers[at].port.to_string());
    let explained = || proxy.admin("EXPLAIN ROUTE 'SELECT 1' AS open");
    let says = |words: &str| {
        let told = explained()?;
        expect(told.contains(words), || format!("{words}: {told}"))
    };
    let mut client = log_in(&proxy)?;
    soon(&first, || reached(&mut client))?;
    says("serves when no other can: its weight is 0")?;
    servers[0].kill();
    soon(&last, || reached(&mut client))?;
    servers[0].restart()?;
    soon(&first, || reached(&mut client))?;
    proxy.admin(
        "UPDATE mysql_servers SET status = 'OFFLINE_SOFT' WHERE weight = 1; LOAD MYSQL SERVERS TO RUNTIME",
    )?;
    same(&reached(&mut client)?, &last)?;
    says("may serve, since no other can: its weight is 0")
}

/// How many of so many statements each of the servers answers.
fn counts(
    client: &mut Raw,
    servers: &[Server; 2],
    sql: &str,
    n: usize,
) -> Result<[usize; 2], String> {
    let mut counts = [0; 2];
    for _ in 0..n {
        let port = client.ask(sql).map_err(|words| words.to_string())?.concat();
        for (server, count) in servers.iter().zip(&mut counts) {
            *count += usize::from(port.last() == Some(&server.port.to_string()));
        }
    }
    Ok(counts)
}

fn outstanding(driver: Driver) -> Outcome {
    let (servers, proxy) = two(driver, [1, 1], r#"{"balance":"least_outstanding"}"#)?;
    let mut client = log_in(&proxy)?;
    let idle = counts(&mut client, &servers, "SELECT @@port", 20)?;
    same(&format!("{idle:?}"), "[10, 10]")?;
    let mut clients = Vec::new();
    for _ in 0..4 {
        let mut one = beside(&proxy, &client)?;
        one.ask("BEGIN").map_err(|words| words.to_string())?;
        let at = counts(&mut one, &servers, "SELECT @@port", 1)?;
        clients.push((one, at));
    }
    let of_first = clients.iter().filter(|(_, at)| *at == [1, 0]).count();
    same(&of_first.to_string(), "2")?;
    // Whoever is at the second ends: all goes there while the first has two.
    for (one, at) in &mut clients {
        if *at == [0, 1] {
            one.ask("COMMIT").map_err(|words| words.to_string())?;
        }
    }
    let busy = counts(&mut client, &servers, "SELECT @@port", 20)?;
    same(&format!("{busy:?}"), "[0, 20]")?;
    let shown = proxy
        .admin("SELECT balance, weight, started_pct, used FROM stats_mysql_choice ORDER BY used")?;
    same(
        shown.trim(),
        "least_outstanding\t1\t100\t0\nleast_outstanding\t1\t100\t2",
    )?;
    let explained = proxy.admin("EXPLAIN ROUTE 'SELECT 1' AS open")?;
    expect(
        explained.contains("hostgroup 0 chooses by least_outstanding"),
        || explained.clone(),
    )
}

fn latency(driver: Driver) -> Outcome {
    let (servers, proxy) = two(driver, [1, 1], r#"{"balance":"latency"}"#)?;
    for (server, takes) in servers.iter().zip([0.05, 0.0]) {
        server.root("CREATE TABLE conf.takes (seconds DOUBLE)")?;
        server.root(&format!("INSERT INTO conf.takes VALUES ({takes})"))?;
    }
    let mut client = log_in(&proxy)?;
    let asks = "SELECT SLEEP(seconds), @@port FROM conf.takes";
    let counts = counts(&mut client, &servers, asks, 60)?;
    // It is tried once, and again every now and then.
    expect(counts[0] <= 6 && counts[0] > 0, || format!("{counts:?}"))?;
    let shown = proxy
        .admin("SELECT COUNT(*) FROM stats_mysql_choice WHERE answers_us BETWEEN 1 AND 40000")?;
    same(shown.trim(), "1")
}

fn slow_start(driver: Driver) -> Outcome {
    let (servers, proxy) = two(driver, [1, 1], "")?;
    proxy.admin(
        "UPDATE mysql_hostgroup_attributes SET hostgroup_settings = '{\"slow_start_ms\":600000}'; LOAD MYSQL SERVERS TO RUNTIME",
    )?;
    let mut client = log_in(&proxy)?;
    let mut reads = || counts(&mut client, &servers, "SELECT @@port", 100);
    let both = reads()?;
    same(&format!("{both:?}"), "[50, 50]")?;
    let is = |status: &str| {
        proxy.admin(&format!(
            "UPDATE mysql_servers SET status = '{status}' WHERE port = {}; LOAD MYSQL SERVERS TO RUNTIME",
            servers[1].port
        ))
    };
    is("OFFLINE_SOFT")?;
    same(&format!("{:?}", reads()?), "[100, 0]")?;
    is("ONLINE")?;
    let back = reads()?;
    expect(back[1] <= 5, || format!("{back:?}"))?;
    let shown = proxy.admin("SELECT started_pct < 50 FROM stats_mysql_choice ORDER BY 1")?;
    same(shown.trim(), "0\n1")?;
    // It has its weight when the time is over: here, at once.
    proxy.admin(
        "UPDATE mysql_hostgroup_attributes SET hostgroup_settings = ''; LOAD MYSQL SERVERS TO RUNTIME",
    )?;
    let both = reads()?;
    expect(both[1].abs_diff(50) <= 3, || format!("{both:?}"))
}
