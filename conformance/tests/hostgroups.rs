//! Settings of a hostgroup, `mysql_hostgroup_attributes`: how many connections it may have.
#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use conformance::by_hand::{self, Raw};
use conformance::clients::{Client, app};
use conformance::compare::difference;
use conformance::proxy::{Driver, Proxy, Wish};
use conformance::raw;
use conformance::servers::{Server, Vendor, vendors};
use conformance::trials::{self, expect, same, soon};
use conformance::watch::HANGS;
use wire::caps::{self, Caps};

type Outcome = Result<(), String>;

fn main() {
    trials::run(&[
        (
            "all_servers_of_a_hostgroup_together_have_no_more_connections_than_it_may_have",
            crowded,
        ),
        (
            "who_waits_for_a_hostgroup_is_served_in_the_order_in_which_they_came",
            in_order,
        ),
        (
            "the_limit_of_a_hostgroup_is_changed_while_it_is_in_use",
            changed,
        ),
        (
            "a_server_that_returns_to_a_full_hostgroup_gets_its_share",
            returned,
        ),
        (
            "a_server_that_returns_to_a_full_hostgroup_gets_its_share_of_what_many_share",
            returned_to_lanes,
        ),
        (
            "a_hostgroup_with_more_servers_online_than_it_may_have_takes_no_work",
            too_many,
        ),
        (
            "an_idle_connection_to_another_server_makes_room_in_its_hostgroup",
            idle_elsewhere,
        ),
        (
            "servers_have_their_share_of_statements_whatever_the_number_of_clients",
            shares,
        ),
        (
            "a_transaction_of_another_hostgroup_is_in_the_flags_of_every_answer",
            shown_everywhere,
        ),
    ])
}

fn log_in(proxy: &Proxy) -> Result<Raw, String> {
    Raw::log_in(proxy.port).map_err(|error| error.to_string())
}

fn asked(client: &mut Raw, sql: &str) -> Result<Vec<Vec<String>>, String> {
    client.ask(sql).map_err(|error| format!("{sql}: {error}"))
}

/// Two servers in hostgroup 0, and the first of them in hostgroup 1, too, where statements with the
/// word `besides` go.
fn two(driver: Driver) -> Result<([Server; 2], Proxy), String> {
    let servers = [
        Server::start(Vendor::MariaDb)?,
        Server::start(Vendor::MariaDb)?,
    ];
    for server in &servers {
        server.root(by_hand::CREATE_USER)?;
    }
    let mut wish = Wish::in_front_of(&servers[0]);
    wish.add_open_user();
    let of = |server: &Server, hostgroup: u32| {
        format!(
            "{{ address = \"127.0.0.1\", port = {}, hostgroup = {hostgroup}, max_connections = 2000 }}",
            server.port
        )
    };
    wish.servers = [of(&servers[0], 0), of(&servers[1], 0), of(&servers[0], 1)].join(",\n");
    wish.rules = "{ rule_id = 7, active = 1, match_digest = \"besides\", destination_hostgroup = 1, apply = 1 }".to_owned();
    let proxy = Proxy::start(driver, &wish)?;
    Ok((servers, proxy))
}

/// `settings` of hostgroup 0 from now on.
fn settle(proxy: &Proxy, settings: &str) -> Result<String, String> {
    proxy.admin(&format!(
        "REPLACE INTO mysql_hostgroup_attributes (hostgroup_id, hostgroup_settings) VALUES (0, '{settings}'); LOAD MYSQL SERVERS TO RUNTIME"
    ))
}

/// Columns of the row of hostgroup 0.
fn shown(proxy: &Proxy, columns: &str) -> Result<String, String> {
    let said = proxy.admin(&format!(
        "SELECT {columns} FROM stats_mysql_hostgroup_pool WHERE hostgroup = 0"
    ))?;
    Ok(said.trim().replace('\t', " "))
}

/// Each server gets its weight's share, also of one client and of few statements: nobody waits for
/// chance to even it out.
fn shares(driver: Driver) -> Outcome {
    let (server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    for (weights, clients) in [([1, 1, 1], 1), ([1, 2, 1], 1), ([1, 1, 1], 5)] {
        // One server by three names: what it is sent by each is counted.
        let names = ["127.0.0.1", "127.1", "localhost"];
        let rows: Vec<_> = names
            .iter()
            .zip(weights)
            .map(|(name, weight)| format!("(0, '{name}', {}, {weight})", server.port))
            .collect();
        proxy.admin(&format!(
            "DELETE FROM mysql_servers; INSERT INTO mysql_servers (hostgroup_id, hostname, port, \
             weight) VALUES {}; LOAD MYSQL SERVERS TO RUNTIME; \
             SELECT count(*) FROM stats_mysql_connection_pool_reset",
            rows.join(", ")
        ))?;
        let mut all = (0..clients)
            .map(|_| log_in(&proxy))
            .collect::<Result<Vec<_>, _>>()?;
        for _ in 0..240 / clients {
            for client in &mut all {
                asked(client, "SELECT 1")?;
            }
        }
        let said = proxy.admin(
            "SELECT srv_host, Queries FROM stats_mysql_connection_pool WHERE hostgroup = 0",
        )?;
        let total: u32 = weights.iter().sum();
        for (name, weight) in names.iter().zip(weights) {
            let queries: u32 = said
                .lines()
                .find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
                .ok_or_else(|| format!("{name} is not there: {said}"))?;
            let share = 240 * weight / total;
            // Its connections are brought to the session's state first.
            expect((share - 12..=share + 24).contains(&queries), || {
                format!("{weights:?}, {clients} clients: {said}")
            })?;
        }
    }
    Ok(())
}

/// Two take themselves for the only one: neither gets anything new until a LOAD says which it is; a
/// transaction goes on where it is.
fn too_many(driver: Driver) -> Outcome {
    let (servers, proxy) = two(driver)?;
    let mut begun = log_in(&proxy)?;
    asked(&mut begun, "BEGIN")?;
    let here = asked(&mut begun, "SELECT @@port")?;
    proxy.admin("SET mysql-connect_timeout_server_max = 500; LOAD MYSQL VARIABLES TO RUNTIME")?;
    let at_most = |max: u32| {
        let row =
            "REPLACE INTO mysql_hostgroup_attributes (hostgroup_id, max_num_online_servers) VALUES";
        proxy
            .admin(&format!("{row} (0, {max}); LOAD MYSQL SERVERS TO RUNTIME"))
            .map(drop)
    };
    at_most(2)?;
    let mut client = log_in(&proxy)?;
    asked(&mut client, "SELECT 1")?;
    at_most(1)?;
    for client in [&mut client, &mut log_in(&proxy)?] {
        let refused = asked(client, "SELECT @@port").err().unwrap_or_default();
        expect(refused.contains("9001"), || {
            format!("with two online: {refused:?}")
        })?;
    }
    same(
        &asked(&mut client, "SELECT 1 AS besides")?.concat().concat(),
        "1",
    )?;
    soon("true", || {
        Ok(proxy.log().contains("max_num_online_servers").to_string())
    })?;
    same(
        &asked(&mut begun, "SELECT @@port")?.concat().concat(),
        &here.concat().concat(),
    )?;
    asked(&mut begun, "COMMIT")?;
    let first = servers[0].port;
    let offline = format!(
        "UPDATE mysql_servers SET status = 'OFFLINE_SOFT' WHERE hostgroup_id = 0 AND port = {first}"
    );
    proxy.admin(&format!("{offline}; LOAD MYSQL SERVERS TO RUNTIME"))?;
    for client in [&mut client, &mut begun] {
        same(
            &asked(client, "SELECT @@port")?.concat().concat(),
            &servers[1].port.to_string(),
        )?;
    }
    Ok(())
}

fn crowded(driver: Driver) -> Outcome {
    const MAX: usize = 4;
    let (servers, proxy) = two(driver)?;
    proxy
        .admin("SET mysql-connect_timeout_server_max = 600000; LOAD MYSQL VARIABLES TO RUNTIME")?;
    settle(&proxy, &format!("{{\"max_connections\": {MAX}}}"))?;
    // The same server in another hostgroup has its own connections, and more of them.
    let mut besides: Vec<Raw> = (0..MAX * 2)
        .map(|_| log_in(&proxy))
        .collect::<Result<_, _>>()?;
    for client in &mut besides {
        asked(client, "CREATE TEMPORARY TABLE conf.besides (id INT)")?;
    }
    let clients: Vec<Raw> = (0..60).map(|_| log_in(&proxy)).collect::<Result<_, _>>()?;
    let mut working = Vec::new();
    let seen = Arc::new(AtomicBool::new(false));
    let patience = Instant::now() + HANGS;
    for (tag, mut client) in clients.into_iter().enumerate() {
        let seen = seen.clone();
        working.push(thread::spawn(move || -> Outcome {
            // Whoever looks sees few of the turns where the machine has other work, and so they go
            // on until all are seen in use.
            for turn in (0..).take_while(|turn| {
                *turn < 5 || !seen.load(Ordering::Relaxed) && Instant::now() < patience
            }) {
                if tag.is_multiple_of(2) {
                    asked(&mut client, "BEGIN")?;
                }
                let said = asked(
                    &mut client,
                    &format!("SELECT 'crowd', {tag}, {turn}, SLEEP(0.05)"),
                )?
                .concat();
                same(&said.join(" "), &format!("crowd {tag} {turn} 0"))?;
                if tag.is_multiple_of(2) {
                    asked(&mut client, "COMMIT")?;
                }
            }
            Ok(())
        }));
    }
    let (mut most, mut busiest, mut looks) = (0, 0, 0);
    while working.iter().any(|one| !one.is_finished()) {
        let running = |server: &Server| -> Result<usize, String> {
            Ok(server
                .root("SHOW FULL PROCESSLIST")?
                .lines()
                .filter(|line| line.contains("'crowd'"))
                .count())
        };
        // What begins between the two looks, on the second, is not beside what has ended on the
        // first.
        let (first, second, again) = (
            running(&servers[0])?,
            running(&servers[1])?,
            shown(&proxy, "connections, used")?,
        );
        let (open, used) = again
            .split_once(' ')
            .ok_or_else(|| format!("{again:?} are no two numbers"))?;
        (most, looks) = (most.max(first).max(second), looks + 1);
        busiest = busiest.max(used.parse().map_err(|_| format!("{used} are in use"))?);
        seen.fetch_or(busiest >= MAX, Ordering::Relaxed);
        expect(first.max(second) <= MAX, || {
            format!("{first} and {second} statements run at once")
        })?;
        expect(open.parse().is_ok_and(|open: usize| open <= MAX), || {
            format!("{open} connections are open")
        })?;
        for (at, client) in besides.iter_mut().enumerate() {
            same(
                &asked(client, &format!("SELECT 'besides', {at}"))?
                    .concat()
                    .join(" "),
                &format!("besides {at}"),
            )?;
        }
    }
    for one in working {
        one.join().map_err(|_| "a client panicked".to_owned())??;
    }
    // Which servers the few connections are to is drawn, and a look at a server sees what runs at
    // that moment; but sixty wait for what there is.
    expect(busiest == MAX, || {
        format!("in {looks} looks {most} ran at once at most, and {busiest} were in use")
    })?;
    let opened =
        "SELECT SUM(ConnUsed + ConnFree) FROM stats_mysql_connection_pool WHERE hostgroup =";
    let here: usize = proxy
        .admin(&format!("{opened} 0"))?
        .trim()
        .parse()
        .map_err(|_| "no number".to_owned())?;
    expect(here <= MAX, || {
        format!("{here} connections are in hostgroup 0")
    })?;
    same(&shown(&proxy, "max_connections, used, waiting")?, "4 0 0")?;
    let others = proxy
        .admin("SELECT max_connections, used, connections = used + free FROM stats_mysql_hostgroup_pool WHERE hostgroup = 1")?;
    same(others.trim(), &format!("NULL\t{}\t1", MAX * 2))
}

/// The other server has all connections of the hostgroup, by clients that come one after another
/// and by more than there are connections.
fn returned(driver: Driver) -> Outcome {
    let (servers, proxy) = two(driver)?;
    settle(&proxy, "{\"max_connections\": 4}")?;
    proxy.admin(
        "UPDATE mysql_hostgroup_attributes SET free_connections_pct = 100, connection_warming = 1; LOAD MYSQL SERVERS TO RUNTIME",
    )?;
    let status = |status: &str| {
        proxy.admin(&format!(
            "UPDATE mysql_servers SET status = '{status}' WHERE hostgroup_id = 0 AND port = {}; LOAD MYSQL SERVERS TO RUNTIME",
            servers[1].port
        ))
    };
    let per_server = |column: &str| -> Result<String, String> {
        let said = proxy.admin(&format!(
            "SELECT {column} FROM stats_mysql_connection_pool WHERE hostgroup = 0 ORDER BY srv_port = {}",
            servers[1].port
        ))?;
        Ok(said.trim().replace('\n', " "))
    };
    for crowd in [false, true] {
        status("OFFLINE_HARD")?;
        let mut clients: Vec<Raw> = (0..8).map(|_| log_in(&proxy)).collect::<Result<_, _>>()?;
        asked(&mut clients[0], "SELECT 1")?;
        // The others are opened ahead.
        soon("4 0", || per_server("ConnUsed + ConnFree"))?;
        status("ONLINE")?;
        // Until the other has its half; then they stay as they are.
        let (mut opened, mut fewest) = (None, u64::MAX);
        let all_opened = || -> Result<u64, String> {
            Ok(per_server("ConnOK")?
                .split(' ')
                .filter_map(|number| number.parse::<u64>().ok())
                .sum())
        };
        for turn in 0..4000 {
            if crowd {
                for client in &mut clients {
                    client
                        .query("SELECT SLEEP(0.005)")
                        .map_err(|error| error.to_string())?;
                }
                for client in &mut clients {
                    client.rows().map_err(|error| error.to_string())?;
                }
            } else {
                for client in &mut clients {
                    asked(client, "SELECT @@port")?;
                }
            }
            if turn % 20 == 0 && opened.is_none() && per_server("ConnUsed + ConnFree")? == "2 2" {
                opened = Some(all_opened()?);
            }
            if let Some(before) = opened.filter(|_| turn % 20 == 19) {
                let now = all_opened()?;
                fewest = fewest.min(now - before);
                if fewest <= 4 {
                    break;
                }
                // A core that waits long on a busy machine has another give way: not in each span.
                opened = Some(now);
            }
        }
        // What a core closed to make room last is opened again with the next statements.
        soon("2 2", || {
            for client in &mut clients {
                asked(client, "SELECT @@port")?;
            }
            per_server("ConnUsed + ConnFree")
        })?;
        expect(fewest <= 4, || {
            format!("crowd: {crowd}: {fewest} connections at least were opened for 160 statements")
        })?;
    }
    Ok(())
}

/// The other server has all connections of the hostgroup, and short reads in flight on them without
/// a pause.
fn returned_to_lanes(driver: Driver) -> Outcome {
    let (servers, proxy) = two(driver)?;
    settle(&proxy, "{\"max_connections\": 4, \"pipelining\": 16}")?;
    let status = |status: &str| {
        proxy.admin(&format!(
            "UPDATE mysql_servers SET status = '{status}' WHERE hostgroup_id = 0 AND port = {}; LOAD MYSQL SERVERS TO RUNTIME",
            servers[1].port
        ))
    };
    let per_server = |column: &str| -> Result<Vec<u64>, String> {
        let said = proxy.admin(&format!(
            "SELECT {column} FROM stats_mysql_connection_pool WHERE hostgroup = 0 ORDER BY srv_port = {}",
            servers[1].port
        ))?;
        said.split_whitespace()
            .map(|number| number.parse().map_err(|_| format!("{said:?}")))
            .collect()
    };
    status("OFFLINE_HARD")?;
    let over = Arc::new(AtomicBool::new(false));
    let works: Vec<_> = (0..24)
        .map(|_| {
            let (mut client, over) = (log_in(&proxy)?, over.clone());
            Ok(thread::spawn(move || -> Outcome {
                let mut n = 0;
                while !over.load(Ordering::Relaxed) {
                    asked(&mut client, &format!("SELECT {n}"))?;
                    n += 1;
                }
                Ok(())
            }))
        })
        .collect::<Result<_, String>>()?;
    thread::sleep(Duration::from_secs(1));
    same(&per_server("ConnUsed + ConnFree")?[1].to_string(), "0")?;
    status("ONLINE")?;
    // Its two, or as many as there are, and half of the statements then.
    soon("true", || {
        let open = per_server("ConnUsed + ConnFree")?;
        let before = per_server("Queries")?;
        thread::sleep(Duration::from_millis(300));
        let after = per_server("Queries")?;
        let (one, other) = (after[0] - before[0], after[1] - before[1]);
        Ok((open[1] > 0 && other * 100 / (one + other).max(1) >= 30).to_string())
    })?;
    over.store(true, Ordering::Relaxed);
    works
        .into_iter()
        .try_for_each(|one| one.join().map_err(|_| "a client panicked".to_owned())?)
}

fn in_order(driver: Driver) -> Outcome {
    let (_servers, proxy) = two(driver)?;
    settle(&proxy, "{\"max_connections\": 1}")?;
    let mut holder = log_in(&proxy)?;
    asked(&mut holder, "BEGIN")?;
    // Sessions of both cores, one after another. The server says when each was served.
    let clients: Vec<Raw> = (0..6).map(|_| log_in(&proxy)).collect::<Result<_, _>>()?;
    let served = Arc::new(Mutex::new(Vec::new()));
    let mut waiting = Vec::new();
    for (n, mut client) in clients.into_iter().enumerate() {
        let served = served.clone();
        waiting.push(thread::spawn(move || -> Outcome {
            let at = asked(&mut client, "SELECT SYSDATE(6)")?;
            let mut served = served.lock().map_err(|error| error.to_string())?;
            served.push((at, n));
            Ok(())
        }));
        soon(&(n + 1).to_string(), || shown(&proxy, "waiting"))?;
        thread::sleep(Duration::from_millis(60));
    }
    same(
        &shown(
            &proxy,
            "longest_wait_ms > 250, max_connections, connections",
        )?,
        "1 1 1",
    )?;
    asked(&mut holder, "COMMIT")?;
    for one in waiting {
        one.join().map_err(|_| "a client panicked".to_owned())??;
    }
    let mut served = served.lock().map_err(|error| error.to_string())?.clone();
    served.sort();
    let order: Vec<_> = served.into_iter().map(|(_, n)| n).collect();
    same(&format!("{order:?}"), "[0, 1, 2, 3, 4, 5]")?;
    // Nobody waits longer than is allowed, and the log says what for.
    proxy.admin("SET mysql-connect_timeout_server_max = 300; LOAD MYSQL VARIABLES TO RUNTIME")?;
    asked(&mut holder, "BEGIN")?;
    for mut other in [log_in(&proxy)?, log_in(&proxy)?] {
        let said = other.ask("SELECT 1");
        expect(
            said.as_ref()
                .is_err_and(|error| error.to_string().starts_with("9001")),
            || format!("{said:?}"),
        )?;
    }
    expect(
        proxy.says(
            "as many as max_connections of its servers, or of its hostgroup_settings, allows",
        ),
        || proxy.log(),
    )?;
    asked(&mut holder, "COMMIT").map(drop)
}

fn changed(driver: Driver) -> Outcome {
    let (_servers, proxy) = two(driver)?;
    proxy.admin("SET mysql-connect_timeout_server_max = 300; LOAD MYSQL VARIABLES TO RUNTIME")?;
    let mut clients: Vec<Raw> = (0..6).map(|_| log_in(&proxy)).collect::<Result<_, _>>()?;
    for client in &mut clients {
        asked(client, "BEGIN")?;
    }
    same(
        &shown(&proxy, "max_connections, connections, used")?,
        "NULL 6 6",
    )?;
    settle(&proxy, "{\"max_connections\": 2}")?;
    // What is in use stays, and no more is opened.
    for (at, client) in clients.iter_mut().enumerate() {
        same(
            &asked(client, &format!("SELECT {at}"))?.concat().concat(),
            &at.to_string(),
        )?;
    }
    let no_more = |proxy: &Proxy| -> Outcome {
        for mut other in [log_in(proxy)?, log_in(proxy)?] {
            let said = other.ask("SELECT 1");
            expect(
                said.as_ref()
                    .is_err_and(|error| error.to_string().starts_with("9001")),
                || format!("{said:?}"),
            )?;
        }
        Ok(())
    };
    no_more(&proxy)?;
    // What is given back is closed while there are too many.
    for (at, client) in clients.iter_mut().enumerate().take(4) {
        asked(client, "COMMIT")?;
        soon(&format!("2 {}", 5 - at), || {
            shown(&proxy, "max_connections, connections")
        })?;
    }
    no_more(&proxy)?;
    asked(&mut clients[4], "COMMIT")?;
    for client in &mut clients[..5] {
        asked(client, "SELECT 1")?;
    }
    same(&shown(&proxy, "max_connections, connections")?, "2 2")?;
    for (strange, words) in [
        ("{\"max_connections\": 0}", "must be from 1 to 4294967294"),
        (
            "{\"max_connections\": \"2\"}",
            "must be from 1 to 4294967294",
        ),
        ("{\"max_connection\": 2}", "which is not known"),
        ("[2]", "must be a JSON object"),
    ] {
        let said = settle(&proxy, strange);
        expect(
            said.as_ref()
                .is_err_and(|said| said.contains(words) && said.contains("hostgroup_settings")),
            || format!("{strange}: {said:?}"),
        )?;
    }
    same(&shown(&proxy, "max_connections, connections")?, "2 2")?;
    asked(&mut clients[5], "COMMIT")?;
    settle(&proxy, "")?;
    for client in &mut clients {
        asked(client, "BEGIN")?;
    }
    same(
        &shown(&proxy, "max_connections, connections, used")?,
        "NULL 6 6",
    )
}

/// Users of both cores, and two servers: whose idle connection it is does not matter where the
/// hostgroup is full.
fn idle_elsewhere(driver: Driver) -> Outcome {
    let (_servers, proxy) = two(driver)?;
    settle(&proxy, "{\"max_connections\": 1}")?;
    let mut clients: Vec<Raw> = (0..4).map(|_| log_in(&proxy)).collect::<Result<_, _>>()?;
    let begun = Instant::now();
    for _ in 0..6 {
        for client in &mut clients {
            asked(client, "SELECT 1")?;
        }
        same(proxy.query("SELECT 2")?.trim(), "2")?;
        same(&shown(&proxy, "connections")?, "1")?;
    }
    expect(begun.elapsed() < Duration::from_secs(20), || {
        format!("it took {:?}", begun.elapsed())
    })
}

/// Statements with the word `besides` go to hostgroup 1, those with `cached` to the cache, while a
/// transaction is open in hostgroup 0. Every flag is the one that the server itself would send, on a
/// connection that has everything.
fn shown_everywhere(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let server = Server::start(vendor)?;
        let mut wish = Wish::in_front_of(&server);
        wish.servers = format!(
            "{},\n{}",
            wish.servers,
            wish.servers.replace("hostgroup = 0", "hostgroup = 1")
        );
        wish.users = wish.users.replace(
            "default_hostgroup = 0",
            "default_hostgroup = 0, transaction_persistent = 0",
        );
        wish.rules = "{ rule_id = 6, active = 1, match_pattern = \"cached\", destination_hostgroup = 1, cache_ttl = 60000, apply = 1 },\n\
                      { rule_id = 7, active = 1, match_pattern = \"besides\", destination_hostgroup = 1, apply = 1 }"
            .to_owned();
        let proxy = Proxy::start(driver, &wish)?;
        // The password is in the server's cache then.
        let warm_up = conformance::cache::root().join("conformance/scenarios/warm-up.txt");
        let _any = Client::MariaDbCli.run(app(server.port), &warm_up);
        for caps in [
            0,
            caps::DEPRECATE_EOF,
            caps::SESSION_TRACK | caps::DEPRECATE_EOF,
        ] {
            let direct = all_kinds(server.port, caps)?;
            let through = all_kinds(proxy.port, caps)?;
            if let Some(difference) = difference(&direct, &through) {
                return Err(format!(
                    "{vendor} {caps:x}\n{difference}\ndirect:\n{direct}\nthrough:\n{through}"
                ));
            }
        }
    }
    Ok(())
}

/// All kinds of answers, before, in and behind a transaction.
fn all_kinds(port: u16, caps: Caps) -> Result<String, String> {
    let mut raw = raw::Raw::log_in(port, caps | caps::MULTI_STATEMENTS)?;
    let mut seen = String::new();
    let begins = [
        "DO 0",
        "BEGIN",
        "START TRANSACTION READ ONLY",
        "SET autocommit = 0",
    ];
    for (nth, begin) in begins.into_iter().enumerate() {
        seen += &raw.query(begin)?;
        // With autocommit off it begins here, and the EOF before these rows is not what is tested.
        let _rows = raw.query("SELECT id FROM conf.numbers WHERE id = 1")?;
        for sql in [
            "SELECT 'besides'",
            "SELECT 'cached'",
            "SELECT 'cached'",
            "SELECT 'besides' LIMIT 0",
            "DO 'besides'",
            "SELECT 'besides'; DO 1; SELECT 2",
            "SET @besides = 1",
        ] {
            seen += &raw.query(sql)?;
        }
        seen += &raw.prepare("SELECT 'besides', ? AS x")?;
        let one = b"\0\x01\x03\0\x08\0\0\0";
        seen += &raw.execute(nth, 0, one)?;
        seen += &raw.execute(nth, 1, one)?;
        seen += &raw.fetch(nth, 2)?;
        seen += &raw.query("COMMIT")?;
        seen += &raw.query("SELECT 'besides'")?;
    }
    Ok(seen)
}
