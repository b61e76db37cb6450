//! Things that sessions and cores share: clients over the cores, connections between them, and connections
//! in flight.
#![forbid(unsafe_code)]

mod crossing;
mod lanes;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use conformance::beside::settled;
use conformance::by_hand::{self, Raw};
use conformance::proxy::{Driver, Proxy, Wish};
use conformance::servers::{Server, Vendor};
use conformance::trials::{self, expect, soon, vendors_in_turn};
use conformance::watch::HANGS;

use crossing::{crossing, found_rows};
use lanes::{
    found_when_killed, hanging, killed, pipelined, pipelined_executions, shared_at_a_pace, unfit,
    weighed,
};

type Outcome = Result<(), String>;

fn main() {
    trials::run_on_both(&[
        ("clients_are_spread_evenly_over_the_cores", spread),
        (
            "one_connection_serves_the_clients_of_two_cores_in_the_order_in_which_they_came",
            in_order,
        ),
        (
            "two_hundred_clients_of_two_cores_never_have_more_connections_than_allowed",
            crowded,
        ),
        (
            "a_user_has_no_more_sessions_than_allowed_on_all_cores_together",
            few_of_a_user,
        ),
        ("cores_lend_each_other_their_idle_connections", lent),
        ("a_hostgroup_whose_server_hangs_slows_no_other", hanging),
        (
            "short_reads_share_connections_and_each_gets_its_own_answer",
            pipelined,
        ),
        (
            "prepared_reads_share_connections_and_each_gets_its_own_answer",
            pipelined_executions,
        ),
        (
            "errors_warnings_and_long_results_leave_the_neighbours_alone",
            unfit,
        ),
        ("who_is_killed_leaves_and_the_neighbours_stay", killed),
        (
            "short_reads_are_spread_by_weight_and_leave_a_server_of_weight_zero",
            weighed,
        ),
        (
            "who_waits_for_the_pace_of_new_connections_leaves_a_lane_to_the_others",
            shared_at_a_pace,
        ),
        (
            "what_a_killed_read_has_found_is_not_that_of_the_one_before",
            found_when_killed,
        ),
        (
            "sessions_that_wait_keep_nothing_that_another_waits_for",
            crossing,
        ),
        (
            "found_rows_that_no_connection_knows_any_more_are_not_made_up",
            found_rows,
        ),
        (
            "a_character_that_ends_like_a_backslash_hides_nothing_of_its_statement",
            shifting,
        ),
    ])
}

fn same<T: PartialEq + std::fmt::Debug>(found: T, wanted: T) -> Outcome {
    if found == wanted {
        Ok(())
    } else {
        Err(format!("{found:?} instead of {wanted:?}"))
    }
}

fn wish(server: &Server) -> Wish {
    let mut wish = Wish::in_front_of(server);
    wish.add_open_user();
    wish
}

fn one_of(driver: Driver, vendor: Vendor) -> Result<(Server, Proxy), String> {
    by_hand::one(driver, vendor)
}

fn log_in(proxy: &Proxy) -> Result<Raw, String> {
    Raw::log_in(proxy.port).map_err(|error| error.to_string())
}

fn asked(client: &mut Raw, sql: &str) -> Result<Vec<Vec<String>>, String> {
    client.ask(sql).map_err(|error| format!("{sql}: {error}"))
}

fn counted(proxy: &Proxy, name: &str) -> Result<u64, String> {
    let said = proxy.admin(&format!(
        "SELECT Variable_Value FROM stats_mysql_global WHERE Variable_Name = '{name}'"
    ))?;
    said.trim()
        .parse()
        .map_err(|_| format!("{name} is {said:?}"))
}

/// Asks until statements share connections: they do when they are known to be quick, and a busy
/// machine makes them slow for a while.
fn until_shared(proxy: &Proxy, mut ask: impl FnMut() -> Outcome) -> Outcome {
    let until = Instant::now() + HANGS;
    let mut rounds = 0;
    while rounds < 10 || counted(proxy, "Millrace_statements_pipelined")? == 0 {
        expect(Instant::now() < until, || {
            let sql = "SELECT Variable_Name, Variable_Value FROM stats_mysql_global WHERE Variable_Name LIKE 'Millrace%' OR Variable_Name LIKE '%Quer%'";
            let digests = "SELECT digest_text, count_star, sum_time FROM stats_mysql_query_digest";
            format!(
                "nothing shared a connection in {rounds} rounds:\n{:?}\n{:?}",
                proxy.admin(sql),
                proxy.admin(digests)
            )
        })?;
        ask()?;
        rounds += 1;
    }
    Ok(())
}

/// Waits until so many sessions run a statement.
fn running(proxy: &Proxy, n: usize) -> Outcome {
    let sql = "SELECT COUNT(*) FROM stats_mysql_processlist WHERE command = 'Query'";
    soon(&n.to_string(), || Ok(proxy.admin(sql)?.trim().to_owned()))
}

/// In these character sets `\` is the second byte of some characters. What follows such a string
/// still asks for what its session has, on a connection that another session has used in between.
fn shifting(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let server = Server::start(vendor)?;
        server.root(by_hand::CREATE_USER)?;
        server.root(
            "CREATE TABLE conf.parents (id INT AUTO_INCREMENT PRIMARY KEY, v INT);
             CREATE TABLE conf.children (word VARBINARY(20), parent INT)",
        )?;
        let mut wish = wish(&server);
        wish.servers = wish
            .servers
            .replace("max_connections = 2000", "max_connections = 1");
        let proxy = Proxy::start(driver, &wish)?;
        let mut characters = vec![
            ("sjis", b"\x95\\"),
            ("cp932", b"\x95\\"),
            ("gbk", b"\xbf\\"),
            ("big5", b"\xa5\\"),
        ];
        if vendor == Vendor::MySql {
            characters.push(("gb18030", b"\xbf\\"));
        }
        for (at, (charset, character)) in (0_u32..).zip(characters) {
            let (mut one, mut other) = (log_in(&proxy)?, log_in(&proxy)?);
            asked(&mut one, &format!("SET NAMES {charset}"))?;
            asked(&mut one, "SET @x = 5")?;
            asked(&mut one, "INSERT INTO conf.parents (v) VALUES (1)")?;
            asked(&mut other, "SET @x = 6")?;
            asked(&mut other, "INSERT INTO conf.parents (v) VALUES (2)")?;
            let mut with = |before: &str, behind: &str| {
                let sql = [
                    b"\x03",
                    before.as_bytes(),
                    b"'",
                    character,
                    b"'",
                    behind.as_bytes(),
                ]
                .concat();
                one.command(&sql)
                    .and_then(|()| one.rows())
                    .map_err(|error| format!("{charset}: {before}…{behind}: {error}"))
            };
            with("INSERT INTO conf.children VALUES (", ", LAST_INSERT_ID())")?;
            same(
                with(
                    "SELECT COUNT(*) FROM conf.children WHERE 'a' <> ",
                    " AND @x = 5",
                )?,
                vec![vec![(at + 1).to_string()]],
            )?;
            let parents =
                server.root("SELECT v FROM conf.parents JOIN conf.children ON id = parent")?;
            same(
                parents
                    .split_whitespace()
                    .filter(|word| *word != "v")
                    .map(str::to_owned)
                    .collect::<Vec<_>>(),
                vec!["1".to_owned(); at as usize + 1],
            )?;
        }
    }
    Ok(())
}

fn spread(driver: Driver) -> Outcome {
    let (_server, proxy) = one_of(driver, Vendor::MariaDb)?;
    let per_core = || {
        let said = proxy.admin(
            "SELECT COUNT(*) FROM stats_mysql_processlist GROUP BY ThreadID ORDER BY ThreadID",
        )?;
        Ok::<_, String>(said.lines().collect::<Vec<_>>().join(" "))
    };
    // The harness has looked whether anybody listens, and a core may still count that connection.
    drop(log_in(&proxy)?);
    soon("", per_core)?;
    for n in 1..=4 {
        let clients: Vec<Raw> = (0..2 * n)
            .map(|_| log_in(&proxy))
            .collect::<Result<_, _>>()?;
        soon(&format!("{n} {n}"), per_core)?;
        drop(clients);
        soon("", per_core)?;
    }
    Ok(())
}

fn limit(proxy: &Proxy, connections: u32) -> Outcome {
    proxy.admin(&format!("UPDATE mysql_servers SET max_connections = {connections}; LOAD MYSQL SERVERS TO RUNTIME")).map(drop)
}

fn in_order(driver: Driver) -> Outcome {
    let (_server, proxy) = one_of(driver, Vendor::MariaDb)?;
    limit(&proxy, 1)?;
    let mut holder = log_in(&proxy)?;
    asked(&mut holder, "BEGIN")?;
    // Sessions of both cores, one after another.
    let clients: Vec<Raw> = (0..6).map(|_| log_in(&proxy)).collect::<Result<_, _>>()?;
    let mut waiting = Vec::new();
    for (n, mut client) in clients.into_iter().enumerate() {
        let sql = format!("INSERT INTO conf.counted (words) VALUES ('{n}')");
        waiting.push(thread::spawn(move || client.ask(&sql).map(drop)));
        running(&proxy, n + 1)?;
        thread::sleep(Duration::from_millis(50));
    }
    asked(&mut holder, "COMMIT")?;
    for one in waiting {
        one.join()
            .map_err(|_| "a client panicked".to_owned())?
            .map_err(|error| error.to_string())?;
    }
    let rows = asked(
        &mut holder,
        "SELECT words FROM conf.counted ORDER BY id DESC LIMIT 6",
    )?;
    same(rows.concat().join(" ").as_str(), "5 4 3 2 1 0")?;
    // Nobody waits longer than is allowed.
    proxy.admin("SET mysql-connect_timeout_server_max = 300; LOAD MYSQL VARIABLES TO RUNTIME")?;
    asked(&mut holder, "BEGIN")?;
    let mut others = vec![log_in(&proxy)?, log_in(&proxy)?];
    for other in &mut others {
        let said = other.ask("SELECT 1");
        expect(
            said.as_ref()
                .is_err_and(|error| error.to_string().starts_with("9001")),
            || format!("{said:?}"),
        )?;
    }
    asked(&mut holder, "COMMIT").map(drop)
}

/// Everybody wants one of five, for reads, writes and transactions; a server of another hostgroup
/// serves meanwhile as ever.
fn crowded(driver: Driver) -> Outcome {
    const CLIENTS: usize = 200;
    const MAX: usize = 5;
    let (server, proxy) = one_of(driver, Vendor::MariaDb)?;
    server.root("CREATE TABLE conf.served (tag INT, turn INT) ENGINE=InnoDB")?;
    limit(&proxy, u32::try_from(MAX).unwrap_or(5))?;
    proxy.admin(&format!(
        "SET mysql-connect_timeout_server_max = 120000; LOAD MYSQL VARIABLES TO RUNTIME; \
         INSERT INTO mysql_servers (hostgroup_id, hostname, port) VALUES (7, '127.0.0.1', {}); LOAD MYSQL SERVERS TO RUNTIME; \
         INSERT INTO mysql_query_rules (rule_id, active, match_digest, destination_hostgroup, apply) VALUES (7, 1, 'besides', 7, 1); \
         LOAD MYSQL QUERY RULES TO RUNTIME",
        server.port
    ))?;
    let clients: Vec<Raw> = (0..CLIENTS)
        .map(|_| log_in(&proxy))
        .collect::<Result<_, _>>()?;
    let seen = Arc::new(AtomicBool::new(false));
    let seen_too = seen.clone();
    let work = move |tag: usize, client: &mut Raw| -> Outcome {
        // However slow it is to look, somebody is seen beside somebody else.
        while tag < 10 && !seen_too.load(Ordering::Relaxed) {
            asked(client, "SELECT SLEEP(0.05)")?;
        }
        for turn in 0..4 {
            same(
                asked(client, &format!("SELECT {tag}, {turn}, SLEEP(0.005)"))?.concat(),
                vec![tag.to_string(), turn.to_string(), "0".to_owned()],
            )?;
            if tag.is_multiple_of(2) {
                asked(client, "BEGIN")?;
            }
            asked(
                client,
                &format!("INSERT INTO conf.served VALUES ({tag}, {turn})"),
            )?;
            if tag.is_multiple_of(2) {
                asked(client, "COMMIT")?;
            }
        }
        Ok(())
    };
    let mut working = Vec::new();
    for (tag, mut client) in clients.into_iter().enumerate() {
        let work = work.clone();
        working.push(thread::spawn(move || work(tag, &mut client)));
    }
    // A connection that was closed is on the server's list for a moment: what runs is what counts.
    // Those of hostgroup 7 say so.
    let mut besides = log_in(&proxy)?;
    let mut most = 0;
    while working.iter().any(|one| !one.is_finished()) {
        let said = server.root("SHOW FULL PROCESSLIST")?;
        let busy = |line: &&str| {
            let fields: Vec<&str> = line.split('\t').collect();
            fields.get(1) == Some(&by_hand::USER)
                && fields.get(4) == Some(&"Query")
                && !line.contains("besides")
        };
        let running = said.lines().filter(busy).count();
        most = most.max(running);
        seen.fetch_or(most > 1, Ordering::Relaxed);
        expect(running <= MAX, || {
            format!("{running} statements run at once:\n{said}")
        })?;
        same(
            asked(&mut besides, "SELECT 'besides'")?.concat(),
            vec!["besides".to_owned()],
        )?;
    }
    for one in working {
        one.join().map_err(|_| "a client panicked".to_owned())??;
    }
    expect(most > 1, || {
        format!("{most} statements ran at once at most")
    })?;
    let counted = "SELECT COUNT(*), COUNT(DISTINCT tag, turn) FROM conf.served";
    same(
        asked(&mut besides, counted)?.concat(),
        vec![(CLIENTS * 4).to_string(); 2],
    )?;
    let listed = format!(
        "SELECT COUNT(*) > {} FROM information_schema.processlist WHERE user = '{}'",
        MAX + 2,
        by_hand::USER
    );
    soon("0", || {
        Ok(server
            .root(&listed)?
            .lines()
            .last()
            .unwrap_or_default()
            .to_owned())
    })?;
    let used =
        "SELECT ConnUsed + ConnFree <= 5 FROM stats_mysql_connection_pool WHERE hostgroup = 0";
    soon("1", || Ok(proxy.admin(used)?.trim().to_owned()))
}

fn few_of_a_user(driver: Driver) -> Outcome {
    let (_server, proxy) = one_of(driver, Vendor::MariaDb)?;
    proxy.admin(&format!(
        "UPDATE mysql_users SET max_connections = 7 WHERE username = '{}'; LOAD MYSQL USERS TO RUNTIME",
        by_hand::USER
    ))?;
    for _ in 0..3 {
        let port = proxy.port;
        let coming: Vec<_> = (0..40)
            .map(|_| thread::spawn(move || Raw::log_in(port)))
            .collect();
        let came: Vec<_> = coming
            .into_iter()
            .map(|one| one.join().map_err(|_| "a client panicked".to_owned()))
            .collect::<Result<_, _>>()?;
        let (inside, refused): (Vec<_>, Vec<_>) = came.into_iter().partition(Result::is_ok);
        same(inside.len(), 7)?;
        for one in refused {
            let words = one.err().map(|error| error.to_string()).unwrap_or_default();
            expect(words.contains("max_user_connections"), || words.clone())?;
        }
        drop(inside);
        soon("0", || {
            Ok(proxy
                .admin("SELECT COUNT(*) FROM stats_mysql_processlist")?
                .trim()
                .to_owned())
        })?;
    }
    Ok(())
}

fn lent(driver: Driver) -> Outcome {
    let (server, proxy) = one_of(driver, Vendor::MariaDb)?;
    limit(&proxy, 1)?;
    let mut clients: Vec<Raw> = (0..2).map(|_| log_in(&proxy)).collect::<Result<_, _>>()?;
    // What one has set goes there with the connection, and is not the other's.
    asked(&mut clients[0], "SET sql_mode = 'ANSI'")?;
    for _ in 0..20 {
        let modes = clients.iter_mut().map(|client| {
            asked(
                client,
                "SELECT @@sql_mode LIKE '%ANSI%', CONNECTION_ID() > 0",
            )
        });
        let modes = modes.collect::<Result<Vec<_>, _>>()?;
        same(
            modes
                .concat()
                .iter()
                .map(|row| row[0].as_str())
                .collect::<String>()
                .as_str(),
            "10",
        )?;
    }
    // A user variable goes along, is found again, and is NULL for the other.
    asked(&mut clients[1], "SET @sack = 'rye', @weight = 40")?;
    for _ in 0..10 {
        let seen = clients
            .iter_mut()
            .map(|client| asked(client, "SELECT @sack, @weight + 2, CONNECTION_ID() > 0"));
        let seen = seen.collect::<Result<Vec<_>, _>>()?;
        same(
            seen.concat()
                .iter()
                .map(|row| format!("{row:?}"))
                .collect::<String>()
                .as_str(),
            "[\"NULL\", \"NULL\", \"1\"][\"rye\", \"42\", \"1\"]",
        )?;
    }
    // That a trigger has set something is still told on the other core; what it was is kept for its
    // session, until that begins anew.
    server.root("CREATE TABLE conf.sacks (weight INT); CREATE TRIGGER conf.weigh AFTER INSERT ON conf.sacks FOR EACH ROW SET SESSION max_sort_length = NEW.weight")?;
    for turn in 0..10 {
        for (client, weight) in clients.iter_mut().zip([1000 + turn, 2000 + turn]) {
            asked(client, &format!("INSERT INTO conf.sacks VALUES ({weight})"))?;
            let holds = settled(&proxy, client)?;
            expect(holds.contains("Untold"), || format!("held for {holds:?}"))?;
            same(
                asked(client, "SELECT @@max_sort_length, CONNECTION_ID() > 0")?[0][0].as_str(),
                weight.to_string().as_str(),
            )?;
            client.command(b"\x1f").map_err(|error| error.to_string())?;
            let ok = client.packet().map_err(|error| error.to_string())?;
            expect(ok.first() == Some(&0), || ok.escape_ascii().to_string())?;
        }
    }
    let opened = counted(&proxy, "Server_Connections_created")?;
    same(opened, 1)?;
    let lent = counted(&proxy, "Millrace_server_connections_lent")?;
    expect(lent >= 30, || format!("{lent} were lent"))
}
