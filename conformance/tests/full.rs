//! Servers that take no more connections, of anybody, of one account, or in one second: who has his
//! goes on, and nobody else pays.
#![forbid(unsafe_code)]

use std::io::Write as _;
use std::net::TcpListener;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use conformance::beside::{asked, set};
use conformance::by_hand::{self, Raw};
use conformance::clients::Login;
use conformance::proxy::{self, Driver, Proxy, Wish};
use conformance::servers::{Server, Vendor};
use conformance::trials::{self, expect, same, soon, vendors_in_turn};

type Outcome = Result<(), String>;

/// Waiting in vain would hang.
const PATIENT: &str = "SET mysql-connect_timeout_server_max=600000";

fn main() {
    trials::run_on_both(&[
        (
            "an_account_with_all_its_connections_keeps_nobody_else_from_a_server",
            full_account,
        ),
        (
            "an_account_with_all_its_connections_is_not_tried_by_each_who_waits",
            tried_seldom,
        ),
        (
            "who_waits_at_a_full_server_gets_what_comes_free_in_his_turn",
            full_in_turns,
        ),
        (
            "a_connection_that_many_share_is_given_back_where_there_can_be_no_other",
            full_beside_lanes,
        ),
        (
            "reads_go_to_the_writer_where_nobody_says_where_the_reader_is",
            reader_without_address,
        ),
        ("a_server_in_offline_mode_is_left_to_itself", offline),
        (
            "who_waits_for_the_pace_is_served_in_the_order_in_which_they_came",
            paced_in_order,
        ),
        (
            "who_waits_for_the_pace_gets_what_comes_free_in_his_turn",
            paced_beside_others,
        ),
        (
            "a_server_that_is_full_is_left_to_those_who_have_a_connection",
            full_beside_another,
        ),
        (
            "a_server_that_is_full_takes_nothing_from_the_others_of_a_full_hostgroup",
            full_beside_full,
        ),
        (
            "a_server_that_says_nothing_takes_nothing_from_the_others_of_a_full_hostgroup",
            silent_beside_full,
        ),
        (
            "who_waits_for_the_pace_of_new_connections_closes_none_and_stops_nobody",
            paced,
        ),
        ("what_this_machine_lacks_takes_no_server_away", lacking),
        ("a_connection_that_cannot_be_lent_stays_open", not_lent),
        ("a_server_that_lets_in_and_says_no_more_is_shunned", hanging),
        (
            "a_kill_closes_nothing_of_an_account_that_may_open_nothing_this_hour",
            by_the_hour,
        ),
    ])
}

/// A server, and a proxy that knows two users of it: `open`, and `few` with the password `wenige`.
fn two_users(driver: Driver, vendor: Vendor, few: &str) -> Result<(Server, Proxy), String> {
    let server = Server::start(vendor)?;
    server.root(by_hand::CREATE_USER)?;
    server.root(&format!(
        "CREATE USER few@'%' IDENTIFIED BY 'wenige' {few}; GRANT ALL ON *.* TO few@'%'"
    ))?;
    let mut wish = Wish::in_front_of(&server);
    let user = "{ username = \"few\", password = \"wenige\", default_hostgroup = 0 }";
    wish.users = format!("{},\n{},\n{user}", wish.users, proxy::OPEN_USER);
    let proxy = Proxy::start(driver, &wish)?;
    Ok((server, proxy))
}

fn open(proxy: &Proxy) -> Result<Raw, String> {
    Raw::log_in(proxy.port).map_err(|error| error.to_string())
}

fn few(proxy: &Proxy) -> Result<Raw, String> {
    let login = Login {
        port: proxy.port,
        user: "few",
        password: "wenige",
    };
    Raw::log_in_as(&login, 0, 0).map_err(|error| error.to_string())
}

/// No file descriptor is left for new connections for a while: those that are open go on, and who
/// waits is served as soon as there are more.
fn lacking(driver: Driver) -> Outcome {
    let (_server, proxy) = two_users(driver, Vendor::MariaDb, "")?;
    set(&proxy, PATIENT)?;
    let mut clients: Vec<Raw> = (0..8).map(|_| open(&proxy)).collect::<Result<_, _>>()?;
    asked(&mut clients[0], "BEGIN")?;
    asked(&mut clients[0], "SELECT 1")?;
    limit_descriptors(&proxy, "3")?;
    let waiting: Vec<_> = clients
        .drain(1..)
        .map(|mut client| {
            thread::spawn(move || {
                asked(&mut client, "BEGIN")
                    .and_then(|_| asked(&mut client, "SELECT SLEEP(0.01)"))
                    .and_then(|_| asked(&mut client, "COMMIT"))
            })
        })
        .collect();
    soon("true", || {
        Ok(proxy.log().contains("no more file descriptors").to_string())
    })?;
    thread::sleep(Duration::from_secs(1));
    asked(&mut clients[0], "SELECT 1")?;
    limit_descriptors(&proxy, "1024")?;
    let said = proxy.admin("SELECT DISTINCT status FROM stats_mysql_connection_pool")?;
    same(said.trim(), "ONLINE")?;
    for one in waiting {
        one.join()
            .map_err(|_| "a client has panicked".to_owned())??;
    }
    asked(&mut open(&proxy)?, "SELECT 1").map(drop)
}

fn limit_descriptors(proxy: &Proxy, max: &str) -> Outcome {
    let told = Command::new("prlimit")
        .args([
            "--pid",
            &proxy.id().to_string(),
            &format!("--nofile={max}:"),
        ])
        .status();
    expect(told.is_ok_and(|status| status.success()), || {
        "prlimit failed".to_owned()
    })
}

/// To lend a connection to another core takes a descriptor. Where there is none it goes on where it
/// is.
fn not_lent(driver: Driver) -> Outcome {
    let (server, proxy) = two_users(driver, Vendor::MariaDb, "")?;
    set(&proxy, "SET mysql-connect_timeout_server_max=1000")?;
    let mut clients = [open(&proxy)?, open(&proxy)?];
    while clients[0].id % 2 == clients[1].id % 2 {
        clients[1] = open(&proxy)?;
    }
    let [first, second] = &mut clients;
    asked(first, "SELECT 1")?;
    let opened =
        || server.root("SELECT MAX(ID) FROM information_schema.PROCESSLIST WHERE USER = 'open'");
    let before = opened()?;
    limit_descriptors(&proxy, "3")?;
    let refused = second.ask("SELECT 2");
    expect(refused.is_err(), || {
        format!("served without a descriptor: {refused:?}")
    })?;
    asked(first, "SELECT 3")?;
    same(&opened()?, &before)?;
    limit_descriptors(&proxy, "1024")?;
    asked(second, "SELECT 4").map(drop)
}

/// Server that takes logins, and where `init_connect` has no answer.
fn hanging(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let (_server, proxy) = two_users(driver, vendor, "")?;
        set(
            &proxy,
            "SET mysql-connect_timeout_server=100; SET mysql-connect_timeout_server_max=2000; SET mysql-shun_on_failures=3",
        )?;
        set(&proxy, "SET mysql-init_connect='DO SLEEP(20)'")?;
        let refused = open(&proxy)?.ask("SELECT 1");
        expect(refused.is_err(), || {
            format!("{vendor}: served by a server that hangs: {refused:?}")
        })?;
        let said = proxy.admin("SELECT DISTINCT status FROM stats_mysql_connection_pool")?;
        expect(said.contains("SHUNNED"), || format!("{vendor}: {said:?}"))?;
    }
    Ok(())
}

fn full_account(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let (_server, proxy) = two_users(driver, vendor, "WITH MAX_USER_CONNECTIONS 1")?;
        set(&proxy, PATIENT)?;
        let mut holder = few(&proxy)?;
        asked(&mut holder, "BEGIN")?;
        asked(&mut holder, "SELECT 1")?;
        // Of both cores.
        let waiting: Vec<_> = (0..2)
            .map(|_| {
                let mut client = few(&proxy)?;
                Ok(thread::spawn(move || asked(&mut client, "SELECT 'served'")))
            })
            .collect::<Result<_, String>>()?;
        let mut others = [open(&proxy)?, open(&proxy)?];
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(2) {
            for other in &mut others {
                // Each needs a connection of its own, and gives it back.
                asked(other, "BEGIN")?;
            }
            for other in &mut others {
                asked(other, "COMMIT")?;
            }
            let said = proxy.admin("SELECT DISTINCT status FROM stats_mysql_connection_pool")?;
            same(said.trim(), "ONLINE").map_err(|error| format!("{vendor}: {error}"))?;
        }
        expect(waiting.iter().all(|one| !one.is_finished()), || {
            format!("{vendor}: a second connection was let in")
        })?;
        asked(&mut holder, "COMMIT")?;
        for one in waiting {
            let said = one.join().map_err(|_| "a client panicked".to_owned())?;
            same(
                &said
                    .map_err(|error| format!("{vendor}: {error}"))?
                    .concat()
                    .concat(),
                "served",
            )?;
        }
    }
    Ok(())
}

/// Connections that are closed make no room before the hour is over. Clients that leave in the
/// middle of a statement cost nothing but their own connections.
fn by_the_hour(driver: Driver) -> Outcome {
    const MAX: usize = 8;
    for vendor in vendors_in_turn() {
        let (server, proxy) = two_users(
            driver,
            vendor,
            &format!("WITH MAX_CONNECTIONS_PER_HOUR {MAX}"),
        )?;
        let mut clients = (0..MAX)
            .map(|_| few(&proxy))
            .collect::<Result<Vec<_>, _>>()?;
        let open = || -> Result<usize, String> {
            let said = server
                .root("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = 'few'")?;
            said.lines()
                .last()
                .unwrap_or_default()
                .trim()
                .parse()
                .map_err(|_| said)
        };
        // A connection for each.
        for client in &mut clients {
            asked(client, "BEGIN")?;
            asked(client, "SELECT 1")?;
        }
        expect(open()? == MAX, || {
            format!("{vendor}: not all have a connection of their own")
        })?;
        for client in &mut clients {
            asked(client, "COMMIT")?;
        }
        // Of both cores.
        for mut leaver in clients.drain(..2).collect::<Vec<_>>() {
            leaver
                .query("SELECT SLEEP(3600)")
                .map_err(|error| error.to_string())?;
            soon("1", || {
                let said = server.root("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO = 'SELECT SLEEP(3600)'")?;
                Ok(said.lines().last().unwrap_or_default().to_owned())
            })?;
        }
        thread::sleep(Duration::from_secs(2));
        let left = open()?;
        expect(left >= MAX - 2, || {
            format!("{vendor}: {left} connections are left of {MAX}, and nobody may open others")
        })?;
        for client in &mut clients {
            same(
                &asked(client, "SELECT 'served'")?.concat().concat(),
                "served",
            )
            .map_err(|error| format!("{vendor}: {error}"))?;
        }
    }
    Ok(())
}

/// Many wait for the few connections of an account: whether the server takes one more is tried ten
/// times a second on each core, however many wait.
fn tried_seldom(driver: Driver) -> Outcome {
    let (_server, proxy) = two_users(driver, Vendor::MariaDb, "WITH MAX_USER_CONNECTIONS 3")?;
    set(&proxy, PATIENT)?;
    let refused = || -> Result<u64, String> {
        let said = proxy.admin("SELECT SUM(ConnERR) FROM stats_mysql_connection_pool")?;
        said.trim().parse().map_err(|_| format!("{said:?}"))
    };
    let clients: Vec<Raw> = (0..60).map(|_| few(&proxy)).collect::<Result<_, _>>()?;
    let over = Arc::new(AtomicBool::new(false));
    let works: Vec<_> = clients
        .into_iter()
        .map(|mut client| {
            let over = over.clone();
            thread::spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    asked(&mut client, "SELECT SLEEP(0.1)")?;
                }
                Ok::<_, String>(())
            })
        })
        .collect();
    // All have begun, and been refused.
    soon("true", || {
        let waiting = proxy.admin("SELECT SUM(waiting) > 40 FROM stats_mysql_hostgroup_pool")?;
        Ok((waiting.trim() == "1" && refused()? > 0).to_string())
    })?;
    let begun = Instant::now();
    let before = refused()?;
    thread::sleep(Duration::from_secs(2));
    let tried = refused()? - before;
    let at_most = 25 * (begun.elapsed().as_millis() as u64) / 1000 + 5;
    over.store(true, Ordering::Relaxed);
    works
        .into_iter()
        .try_for_each(|one| one.join().map_err(|_| "a client panicked".to_owned())?)?;
    expect((1..=at_most).contains(&tried), || {
        format!("tried {tried} times, and not {at_most} at most")
    })
}

/// The server lets nobody in besides one, whose connection is seldom idle: all who want it have it
/// in turns.
fn full_in_turns(driver: Driver) -> Outcome {
    const TURNS: usize = 100;
    let (_server, proxy) = two_users(driver, Vendor::MariaDb, "WITH MAX_USER_CONNECTIONS 1")?;
    set(&proxy, PATIENT)?;
    // All on one core: between cores a connection takes its time.
    let mut clients = vec![few(&proxy)?];
    let mut others = Vec::new();
    while clients.len() < 6 {
        let next = few(&proxy)?;
        if next.id % 2 == clients[0].id % 2 {
            clients.push(next)
        } else {
            others.push(next)
        }
    }
    asked(&mut clients[0], "SELECT 1")?;
    let done: Arc<Vec<AtomicUsize>> =
        Arc::new(clients.iter().map(|_| AtomicUsize::new(0)).collect());
    let working: Vec<_> = clients
        .into_iter()
        .enumerate()
        .map(|(n, mut client)| {
            let done = done.clone();
            thread::spawn(move || {
                for _ in 0..TURNS {
                    asked(&mut client, "SELECT SLEEP(0.002)")?;
                    done[n].fetch_add(1, Ordering::Relaxed);
                }
                Ok::<_, String>(
                    done.iter()
                        .map(|count| count.load(Ordering::Relaxed))
                        .collect::<Vec<_>>(),
                )
            })
        })
        .collect();
    let ends: Vec<Vec<usize>> = working
        .into_iter()
        .map(|one| one.join().map_err(|_| "a client panicked".to_owned())?)
        .collect::<Result<_, _>>()?;
    let first = ends
        .iter()
        .min_by_key(|seen| seen.iter().sum::<usize>())
        .ok_or("nobody has ended")?;
    expect(first.iter().all(|count| *count > TURNS / 2), || {
        format!("when the first had ended: {first:?}")
    })
}

/// The only connection of an account is shared by reads in flight that never end: a transaction
/// gets it all the same.
fn full_beside_lanes(driver: Driver) -> Outcome {
    let (_server, proxy) = two_users(driver, Vendor::MariaDb, "WITH MAX_USER_CONNECTIONS 1")?;
    set(&proxy, PATIENT)?;
    let row = "REPLACE INTO mysql_hostgroup_attributes (hostgroup_id, hostgroup_settings) VALUES (0, '{\"pipelining\": 16}')";
    proxy.admin(&format!("{row}; LOAD MYSQL SERVERS TO RUNTIME"))?;
    let mut clients = vec![few(&proxy)?];
    let mut others = Vec::new();
    while clients.len() < 6 {
        let next = few(&proxy)?;
        if next.id % 2 == clients[0].id % 2 {
            clients.push(next)
        } else {
            others.push(next)
        }
    }
    let over = Arc::new(AtomicBool::new(false));
    let mut writer = clients.remove(0);
    let reading: Vec<_> = clients
        .into_iter()
        .map(|mut client| {
            let over = over.clone();
            thread::spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    asked(&mut client, "SELECT id FROM conf.numbers WHERE id = 7")?;
                }
                Ok::<_, String>(())
            })
        })
        .collect();
    soon("true", || {
        let said = proxy
            .admin("SELECT Variable_Value + 0 > 100 FROM stats_mysql_global WHERE Variable_Name = 'Millrace_statements_pipelined'")?;
        Ok((said.trim() == "1").to_string())
    })?;
    for _ in 0..10 {
        for statement in ["BEGIN", "SELECT 1", "COMMIT"] {
            asked(&mut writer, statement)?;
        }
    }
    over.store(true, Ordering::Relaxed);
    reading
        .into_iter()
        .try_for_each(|one| one.join().map_err(|_| "a client panicked".to_owned())?)
}

fn reader_without_address(driver: Driver) -> Outcome {
    let (server, proxy) = two_users(driver, Vendor::MariaDb, "")?;
    set(&proxy, "SET mysql-connect_timeout_server_max=2000")?;
    proxy.admin(
        "INSERT INTO mysql_servers (hostgroup_id, hostname, port) VALUES (1, 'nobody.invalid', 3306); \
         REPLACE INTO mysql_hostgroup_attributes (hostgroup_id, hostgroup_settings) VALUES (0, '{\"read_hostgroup\": 1}'); \
         LOAD MYSQL SERVERS TO RUNTIME",
    )?;
    for mut client in [open(&proxy)?, open(&proxy)?] {
        let answered = || {
            asked(&mut client, "SELECT @@port")
                .map(|said| said.concat().concat())
                .or_else(|_| Ok(String::new()))
        };
        soon(&server.port.to_string(), answered)?;
    }
    Ok(())
}

/// A server that lets nobody in and says why, for as long as the test lasts, and how often it has.
fn refuses_all(why: &'static [u8]) -> Result<(u16, Arc<AtomicUsize>), String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    let port = listener
        .local_addr()
        .map_err(|error| error.to_string())?
        .port();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut packet = vec![why.len() as u8, 0, 0, 0];
            packet.extend_from_slice(why);
            count.fetch_add(1, Ordering::Relaxed);
            let _gone = stream.and_then(|mut stream| stream.write_all(&packet));
        }
    });
    Ok((port, asked))
}

fn offline(driver: Driver) -> Outcome {
    let server = Server::start(Vendor::MariaDb)?;
    server.root(by_hand::CREATE_USER)?;
    let mut wish = Wish::in_front_of(&server);
    wish.add_open_user();
    let (port, _) = refuses_all(b"\xff\xd8\x0bThe server is currently in offline mode")?;
    let other = format!(
        "{{ address = \"127.0.0.1\", port = {port}, hostgroup = 0, max_connections = 2000 }}"
    );
    wish.servers = format!("{},\n{other}", wish.servers);
    let proxy = Proxy::start(driver, &wish)?;
    let mut clients: Vec<Raw> = (0..30).map(|_| open(&proxy)).collect::<Result<_, _>>()?;
    for client in &mut clients {
        // None of them finds an idle one.
        asked(client, "BEGIN")?;
        asked(client, "SELECT 1")?;
    }
    let tried = proxy.admin("SELECT SUM(ConnERR) > 0 FROM stats_mysql_connection_pool")?;
    same(tried.trim(), "1")
}

fn paced(driver: Driver) -> Outcome {
    let (server, proxy) = two_users(driver, Vendor::MariaDb, "")?;
    // Sessions of both cores, whose connections are idle then.
    let mut others = [open(&proxy)?, open(&proxy)?];
    for statement in ["BEGIN", "COMMIT"] {
        for other in &mut others {
            asked(other, statement)?;
        }
    }
    let connections = || {
        server.root("SELECT ID FROM information_schema.PROCESSLIST WHERE USER = 'open' ORDER BY ID")
    };
    let before = connections()?;
    set(
        &proxy,
        "SET mysql-throttle_connections_per_sec_to_hostgroup=1; SET mysql-connect_timeout_server_max=600000",
    )?;
    let waiting: Vec<_> = (0..6)
        .map(|_| {
            let mut client = few(&proxy)?;
            Ok(thread::spawn(move || {
                asked(&mut client, "BEGIN")?;
                Ok::<_, String>(client)
            }))
        })
        .collect::<Result<_, String>>()?;
    thread::sleep(Duration::from_millis(300));
    let mut turns = 0;
    while waiting.iter().any(|one| !one.is_finished()) {
        for statement in ["BEGIN", "COMMIT"] {
            for other in &mut others {
                asked(other, statement)?;
            }
        }
        turns += 1;
        thread::sleep(Duration::from_millis(10));
    }
    let _held: Vec<Raw> = waiting
        .into_iter()
        .map(|one| one.join().map_err(|_| "a client panicked".to_owned())?)
        .collect::<Result<_, _>>()?;
    same(&connections()?, &before)?;
    // More than what a single wait leaves room for.
    expect(turns > 2, || {
        format!("others had {turns} turns while six waited")
    })
}

/// New ones come all the time, more than may be opened: each waits for those before it, and is
/// counted among those who wait.
fn paced_in_order(driver: Driver) -> Outcome {
    let (_server, proxy) = two_users(driver, Vendor::MariaDb, "")?;
    set(
        &proxy,
        "SET mysql-throttle_connections_per_sec_to_hostgroup=2; SET mysql-connect_timeout_server_max=600000",
    )?;
    let served = Arc::new(Mutex::new(Vec::new()));
    // All on one core, which has a line of its own: new sessions go where there are fewer.
    let (mut clients, mut others) = (vec![few(&proxy)?], Vec::new());
    while clients.len() < 14 {
        let next = few(&proxy)?;
        if next.id % 2 == clients[0].id % 2 {
            clients.push(next)
        } else {
            others.push(next)
        }
    }
    let mut waiting = Vec::new();
    for (n, mut client) in clients.into_iter().enumerate() {
        let served = served.clone();
        client.query("BEGIN").map_err(|error| error.to_string())?;
        waiting.push(thread::spawn(move || -> Result<Raw, String> {
            client.packet().map_err(|error| error.to_string())?;
            served.lock().map_err(|error| error.to_string())?.push(n);
            Ok(client)
        }));
        thread::sleep(Duration::from_millis(10));
    }
    let said =
        proxy.admin("SELECT waiting > 3 FROM stats_mysql_hostgroup_pool WHERE hostgroup = 0")?;
    same(said.trim(), "1")?;
    let _held: Vec<Raw> = waiting
        .into_iter()
        .map(|one| one.join().map_err(|_| "a client panicked".to_owned())?)
        .collect::<Result<_, _>>()?;
    let served = served.lock().map_err(|error| error.to_string())?;
    // Those of one second are let in together.
    let late = |(at, n): (usize, &usize)| at.abs_diff(*n) > 3;
    expect(!served.iter().enumerate().any(late), || {
        format!("served as {served:?}")
    })
}

/// Those who come again and again have all connections there are: who may open none gets one of
/// them before those who came later.
fn paced_beside_others(driver: Driver) -> Outcome {
    let (_server, proxy) = two_users(driver, Vendor::MariaDb, "")?;
    let mut busy: Vec<Raw> = (0..8).map(|_| open(&proxy)).collect::<Result<_, _>>()?;
    for statement in ["BEGIN", "COMMIT"] {
        for client in &mut busy[..4] {
            asked(client, statement)?;
        }
    }
    set(
        &proxy,
        "SET mysql-throttle_connections_per_sec_to_hostgroup=1; SET mysql-connect_timeout_server_max=600000",
    )?;
    let (over, turns) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicUsize::new(0)),
    );
    let busy: Vec<_> = busy
        .into_iter()
        .map(|mut client| {
            let (over, turns) = (over.clone(), turns.clone());
            thread::spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    asked(&mut client, "SELECT SLEEP(0.01)")?;
                    turns.fetch_add(1, Ordering::Relaxed);
                }
                Ok::<_, String>(())
            })
        })
        .collect();
    let waiting: Vec<_> = (0..15)
        .map(|_| {
            let (mut client, turns) = (open(&proxy)?, turns.clone());
            Ok(thread::spawn(move || {
                let before = turns.load(Ordering::Relaxed);
                asked(&mut client, "SELECT SLEEP(0.01), 'served'")?;
                Ok::<_, String>(turns.load(Ordering::Relaxed) - before)
            }))
        })
        .collect::<Result<_, String>>()?;
    let waited: Vec<usize> = waiting
        .into_iter()
        .map(|one| one.join().map_err(|_| "a client panicked".to_owned())?)
        .collect::<Result<_, _>>()?;
    over.store(true, Ordering::Relaxed);
    busy.into_iter()
        .try_for_each(|one| one.join().map_err(|_| "a client panicked".to_owned())?)?;
    // Connections of their own would come one a second, and the last after some thousand turns of
    // the busy.
    expect(waited.iter().all(|turns| *turns < 300), || {
        format!("the busy had {waited:?} turns meanwhile")
    })
}

/// The weights send nearly all to a server that takes nobody (error 1040): another has room, and
/// then idle connections.
fn full_beside_another(driver: Driver) -> Outcome {
    let server = Server::start(Vendor::MariaDb)?;
    server.root(by_hand::CREATE_USER)?;
    let mut wish = Wish::in_front_of(&server);
    wish.add_open_user();
    let (port, tried) = refuses_all(b"\xff\x10\x04Too many connections")?;
    let other = format!(
        "{{ address = \"127.0.0.1\", port = {port}, hostgroup = 0, max_connections = 2000, weight = 1000 }}"
    );
    wish.servers = format!("{},\n{other}", wish.servers);
    let proxy = Proxy::start(driver, &wish)?;
    let mut clients: Vec<Raw> = (0..20).map(|_| open(&proxy)).collect::<Result<_, _>>()?;
    let begun = Instant::now();
    for statement in ["BEGIN", "COMMIT", "SELECT 1", "SELECT 2", "SELECT 3"] {
        for client in &mut clients {
            asked(client, statement)?;
        }
    }
    let tried = tried.load(Ordering::Relaxed);
    let at_most = once_a_second(begun);
    expect((1..=at_most).contains(&tried), || {
        format!(
            "the full server was tried {tried} times in {:?}",
            begun.elapsed()
        )
    })
}

/// By the weights half of the connections of its hostgroup are a server's that takes nobody: the
/// other's are not closed for it.
fn full_beside_full(driver: Driver) -> Outcome {
    let (port, tried) = refuses_all(b"\xff\x10\x04Too many connections")?;
    let (begun, opened) = beside(driver, port, 3)?;
    let tried = tried.load(Ordering::Relaxed);
    let at_most = once_a_second(begun);
    expect((1..=at_most).contains(&tried), || {
        format!("the full server was tried {tried} times")
    })?;
    expect(opened <= at_most, || {
        format!("{opened} connections to the other were opened")
    })
}

/// How often two cores may have tried whether a server takes connections again: once a second each.
fn once_a_second(begun: Instant) -> usize {
    2 * (begun.elapsed().as_secs() as usize + 2)
}

/// Half of the connections of a hostgroup are by the weights a server's that takes them and says
/// nothing. The other's are not closed for it.
fn silent_beside_full(driver: Driver) -> Outcome {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    let port = listener
        .local_addr()
        .map_err(|error| error.to_string())?
        .port();
    let tried = Arc::new(AtomicUsize::new(0));
    let count = tried.clone();
    thread::spawn(move || {
        let mut all = Vec::new();
        for stream in listener.incoming() {
            count.fetch_add(1, Ordering::Relaxed);
            all.push(stream);
        }
    });
    let (begun, opened) = beside(driver, port, 8)?;
    // Each of two cores tries it once in ten seconds.
    let tried = tried.load(Ordering::Relaxed);
    let at_most = 2 * (begun.elapsed().as_secs() as usize / 10 + 1);
    expect((1..=at_most).contains(&tried), || {
        format!("the silent server was tried {tried} times")
    })?;
    expect(opened <= 2 * at_most, || {
        format!("{opened} connections to the other were opened")
    })
}

/// A server has all connections of a full hostgroup, and another comes back there. When it came,
/// and how many connections were opened to the first in so many seconds of statements.
fn beside(driver: Driver, port: u16, seconds: u64) -> Result<(Instant, usize), String> {
    let server = Server::start(Vendor::MariaDb)?;
    server.root(by_hand::CREATE_USER)?;
    let mut wish = Wish::in_front_of(&server);
    wish.add_open_user();
    let other = format!(
        "{{ address = \"127.0.0.1\", port = {port}, hostgroup = 0, max_connections = 2000 }}"
    );
    wish.servers = format!("{},\n{other}", wish.servers);
    let proxy = Proxy::start(driver, &wish)?;
    let status = |status: &str| {
        proxy.admin(&format!(
            "UPDATE mysql_servers SET status = '{status}' WHERE hostgroup_id = 0 AND port = {port}; LOAD MYSQL SERVERS TO RUNTIME"
        ))
    };
    let number = |column: &str| -> Result<usize, String> {
        let sql = format!(
            "SELECT {column} FROM stats_mysql_connection_pool WHERE hostgroup = 0 AND srv_port = {}",
            server.port
        );
        let said = proxy.admin(&sql)?;
        said.trim()
            .parse()
            .map_err(|_| format!("{column}: {said:?}"))
    };
    proxy.admin(
        "REPLACE INTO mysql_hostgroup_attributes (hostgroup_id, free_connections_pct, connection_warming, hostgroup_settings) \
         VALUES (0, 100, 1, '{\"max_connections\": 4}')",
    )?;
    status("OFFLINE_HARD")?;
    let mut clients: Vec<Raw> = (0..4).map(|_| open(&proxy)).collect::<Result<_, _>>()?;
    asked(&mut clients[0], "SELECT 1")?;
    soon("4", || Ok(number("ConnUsed + ConnFree")?.to_string()))?;
    let (opened, begun) = (number("ConnOK")?, Instant::now());
    status("ONLINE")?;
    while begun.elapsed() < Duration::from_secs(seconds) {
        for client in &mut clients {
            asked(client, "SELECT 1")?;
        }
    }
    Ok((begun, number("ConnOK")? - opened))
}
