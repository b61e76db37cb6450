//! Many clients that use all that a session can hold, over few connections to real servers, while
//! servers die, hang and come back, clients vanish or are killed, and operators load other
//! configurations. Each client knows what its session has to be.
//!
//! `make soak MINUTES=30` goes on for so long (`MILLRACE_SOAK_MINUTES`); `make test` plays a few
//! seconds of it.
#![forbid(unsafe_code)]

mod client;
mod found;
mod ledger;
mod weather;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use conformance::by_hand;
use conformance::proxy::{Driver, Proxy, Wish};
use conformance::servers::{Server, Vendor};
use conformance::trials::{self, expect, soon};
use ledger::Ledger;
use tokio::task::JoinSet;

const CLIENTS: u32 = 24;
/// Connections to the server of each of the two hostgroups.
const CONNECTIONS: u32 = 10;

fn main() {
    trials::run_on_both(&[
        ("the_clients_know_what_servers_do", direct),
        (
            "warnings_are_those_of_the_last_statement_wherever_it_ran",
            found::diagnostics,
        ),
        (
            "what_an_expression_has_set_outlives_a_preparation",
            found::expressions,
        ),
        ("an_inserts_id_outlives_its_connection", found::insert_ids),
        (
            "a_statement_that_reads_rows_stays_in_its_transaction_whatever_it_releases",
            found::user_locks_beside_a_transaction,
        ),
        (
            "a_user_lock_is_released_where_it_was_taken",
            found::user_locks,
        ),
        (
            "sessions_keep_their_state_over_few_connections",
            undisturbed,
        ),
        ("sessions_keep_their_state_whatever_breaks", disturbed),
    ])
}

/// A long soak is on every server that is here, or on the one that `MILLRACE_SOAK_VENDOR` names
/// (`mariadb`, `mysql`); a short one takes another for each driver. MariaDB always is, or nothing
/// of this programme runs.
fn vendors(driver: Driver) -> Vec<Vendor> {
    let wanted = std::env::var("MILLRACE_SOAK_VENDOR").ok();
    let here = |vendor: &Vendor| {
        vendor.programs().is_ok()
            && wanted
                .as_ref()
                .is_none_or(|name| **name == vendor.to_string())
    };
    let all: Vec<Vendor> = [Vendor::MariaDb, Vendor::MySql]
        .into_iter()
        .filter(here)
        .collect();
    assert!(
        !all.is_empty(),
        "MILLRACE_SOAK_VENDOR names no server that is here: {wanted:?}"
    );
    match driver {
        _ if minutes().is_some() => all,
        Driver::Uring => all.into_iter().take(1).collect(),
        Driver::Epoll => all.into_iter().next_back().into_iter().collect(),
    }
}

/// A soak without a proxy is what all that the clients know comes from.
fn direct(driver: Driver) -> Result<(), String> {
    for vendor in vendors(driver) {
        let server = start(vendor)?;
        let ledger = Arc::new(Ledger::default());
        let crowd = gather(&ledger, vendor, server.port, 1);
        std::thread::sleep(calm_time());
        ledger.over.store(true, Ordering::SeqCst);
        crowd
            .join()
            .map_err(|_| "the clients panicked".to_owned())??;
        judge(&server, &ledger)?;
        println!("{vendor} directly: {}", ledger.close()?);
    }
    Ok(())
}

fn undisturbed(driver: Driver) -> Result<(), String> {
    vendors(driver)
        .into_iter()
        .try_for_each(|vendor| soak(driver, vendor, false))
}

fn disturbed(driver: Driver) -> Result<(), String> {
    vendors(driver)
        .into_iter()
        .try_for_each(|vendor| soak(driver, vendor, true))
}

fn minutes() -> Option<f64> {
    std::env::var("MILLRACE_SOAK_MINUTES")
        .ok()
        .and_then(|words| words.parse().ok())
}

/// How long things break.
fn rough_time() -> Duration {
    minutes().map_or(Duration::from_secs(4), |minutes| {
        Duration::from_secs_f64(minutes * 60.0)
    })
}

/// How long nothing does.
fn calm_time() -> Duration {
    (rough_time() / 10).max(Duration::from_secs(1))
}

const FIXTURE: &str = "
CREATE TABLE conf.one (n INT) ENGINE=InnoDB; INSERT INTO conf.one VALUES (1);
CREATE TABLE conf.log (tag VARCHAR(40), KEY (tag)) ENGINE=InnoDB;
CREATE TABLE conf.ids (id BIGINT PRIMARY KEY AUTO_INCREMENT, tag VARCHAR(40)) ENGINE=InnoDB;
CREATE TABLE conf.locked (tag VARCHAR(40)) ENGINE=InnoDB;
CREATE TABLE conf.fires (tag VARCHAR(40)) ENGINE=InnoDB;
CREATE TABLE conf.same (n INT) ENGINE=InnoDB; INSERT INTO conf.same VALUES (1);
DELIMITER //
CREATE PROCEDURE conf.zone(z VARCHAR(10)) BEGIN SET time_zone = z; END //
CREATE FUNCTION conf.remember(v VARCHAR(40)) RETURNS VARCHAR(40) NOT DETERMINISTIC NO SQL BEGIN SET @a = v; RETURN v; END //
CREATE TRIGGER conf.fired BEFORE INSERT ON conf.fires FOR EACH ROW BEGIN SET @b = NEW.tag; END //
DELIMITER ;
";

/// Reads go to hostgroup 1, all else to 0: the same server, so that each client knows what it must
/// find.
fn wish(server: &Server) -> Wish {
    let mut wish = Wish::in_front_of(server);
    let place = |hostgroup| {
        format!(
            "{{ address = \"127.0.0.1\", port = {}, hostgroup = {hostgroup}, max_connections = {CONNECTIONS} }}",
            server.port
        )
    };
    wish.servers = format!("{},\n{}", place(0), place(1));
    wish.add_open_user();
    wish.rules = "{ rule_id = 1, active = 1, match_digest = \"FROM conf.same\", destination_hostgroup = 1, cache_ttl = 300, apply = 1 },\n\
                  { rule_id = 2, active = 1, match_digest = \"^SELECT.*LOCK IN SHARE MODE\", destination_hostgroup = 0, apply = 1 },\n\
                  { rule_id = 3, active = 1, match_digest = \"^SELECT\", destination_hostgroup = 1, apply = 1 }"
        .to_owned();
    wish.variables
        .push_str("    shun_recovery_time_sec = 1\n    connect_timeout_server_max = 30000\n");
    wish
}

fn start(vendor: Vendor) -> Result<Server, String> {
    // What is acknowledged outlives kill -9.
    let server = Server::start_with(
        vendor,
        &[
            "--innodb-flush-log-at-trx-commit=2",
            "--innodb-doublewrite=1",
        ],
    )?;
    server.root(by_hand::CREATE_USER)?;
    server.root(FIXTURE)?;
    Ok(server)
}

fn soak(driver: Driver, vendor: Vendor, rough: bool) -> Result<(), String> {
    let mut server = start(vendor)?;
    let mut proxy = Proxy::start(driver, &wish(&server))?;
    let seed = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(1, |since| since.subsec_nanos().into());
    let ledger = Arc::new(Ledger::default());
    ledger.rough.store(rough, Ordering::SeqCst);
    let crowd = gather(&ledger, vendor, proxy.port, seed);
    if rough {
        let until = Instant::now() + rough_time();
        let broke = weather::break_things(&mut server, &mut proxy, &ledger, until, seed);
        // Then nothing breaks any more, and nothing has an excuse.
        std::thread::sleep(Duration::from_secs(2));
        ledger.rough.store(false, Ordering::SeqCst);
        broke?;
    }
    std::thread::sleep(calm_time());
    ledger.over.store(true, Ordering::SeqCst);
    crowd
        .join()
        .map_err(|_| "the clients panicked".to_owned())??;
    expect(proxy.runs(), || format!("Millrace ended:\n{}", proxy.log()))?;
    at_rest(&server, &proxy)?;
    judge(&server, &ledger)?;
    let words = ledger
        .close()
        .map_err(|words| format!("{words}\n{}", proxy.log()))?;
    println!("{vendor} {driver}: {words}");
    Ok(())
}

fn judge(server: &Server, ledger: &Ledger) -> Result<(), String> {
    let said = server.root("SELECT tag, COUNT(*) FROM conf.log GROUP BY tag")?;
    let lines = said.lines().filter_map(|line| line.split_once('\t'));
    let there: HashMap<String, u64> = lines
        .filter_map(|(tag, n)| Some((tag.to_owned(), n.parse().ok()?)))
        .collect();
    ledger.judge(&there);
    Ok(())
}

fn gather(
    ledger: &Arc<Ledger>,
    vendor: Vendor,
    port: u16,
    seed: u64,
) -> JoinHandle<Result<(), String>> {
    let ledger = ledger.clone();
    std::thread::spawn(move || crowd(&ledger, vendor, port, seed))
}

/// All clients, until it is over.
fn crowd(ledger: &Arc<Ledger>, vendor: Vendor, port: u16, seed: u64) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let mut set = JoinSet::new();
        for number in 0..CLIENTS {
            set.spawn(client::live(ledger.clone(), vendor, port, number, seed));
        }
        while let Some(one) = set.join_next().await {
            one.map_err(|error| error.to_string())?;
        }
        Ok(())
    })
}

/// When all have left, nothing of them is left.
fn at_rest(server: &Server, proxy: &Proxy) -> Result<(), String> {
    let global = |name: &str| {
        format!("SELECT Variable_Value FROM stats_mysql_global WHERE Variable_Name = '{name}'")
    };
    soon("0", || {
        Ok(proxy
            .admin(&global("Client_Connections_connected"))?
            .trim()
            .to_owned())
    })?;
    soon("0", || {
        Ok(proxy
            .admin("SELECT SUM(ConnUsed) FROM stats_mysql_connection_pool")?
            .trim()
            .to_owned())
    })?;
    soon("0", || {
        Ok(proxy
            .admin(&global("Millrace_tasks_panicked"))?
            .trim()
            .to_owned())
    })?;
    soon("0", || server.transactions("TRUE"))?;
    let idle = "SELECT COUNT(*) > 20 FROM information_schema.processlist WHERE user = 'app'";
    soon("0", || {
        Ok(server
            .root(idle)?
            .lines()
            .last()
            .unwrap_or_default()
            .to_owned())
    })
}
