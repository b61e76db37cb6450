//! What sessions and cores share: clients over the cores, connections between them, and connections
//! in flight.
#![forbid(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use conformance::beside::settled;
use conformance::by_hand::{self, Raw};
use conformance::cache;
use conformance::clients::{Client, app};
use conformance::proxy::{Driver, Proxy, Wish};
use conformance::raw;
use conformance::servers::{Server, Vendor};
use conformance::trials::{self, expect, soon, vendors_in_turn};
use conformance::watch::HANGS;

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
    let work = |tag: usize, client: &mut Raw| -> Outcome {
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

fn hanging(driver: Driver) -> Outcome {
    let (well, hangs) = (
        Server::start(Vendor::MariaDb)?,
        Server::start(Vendor::MariaDb)?,
    );
    for server in [&well, &hangs] {
        server.root(by_hand::CREATE_USER)?;
    }
    let mut wish = wish(&well);
    wish.servers = format!(
        "{},\n{{ address = \"127.0.0.1\", port = {}, hostgroup = 1, max_connections = 3 }}",
        wish.servers, hangs.port
    );
    let proxy = Proxy::start(driver, &wish)?;
    pipeline(&proxy, &[0, 1], 4)?;
    let there = "SELECT /* hostgroup=1 */ 1";
    let mut stuck: Vec<Raw> = (0..12).map(|_| log_in(&proxy)).collect::<Result<_, _>>()?;
    for client in &mut stuck {
        for _ in 0..5 {
            asked(client, there)?;
        }
    }
    hangs.signal("STOP");
    for client in &mut stuck {
        client.query(there).map_err(|error| error.to_string())?;
    }
    running(&proxy, 12)?;
    // On both cores.
    let mut others: Vec<Raw> = (0..4).map(|_| log_in(&proxy)).collect::<Result<_, _>>()?;
    for n in 0..100 {
        for client in &mut others {
            same(
                asked(client, &format!("SELECT {n}"))?,
                vec![vec![n.to_string()]],
            )?;
        }
    }
    hangs.signal("CONT");
    let mut served = 0;
    for client in &mut stuck {
        match client.rows() {
            Ok(rows) => {
                same(rows, vec![vec!["1".to_owned()]])?;
                served += 1;
            }
            // One that stood in line for a connection that could not be opened meanwhile.
            Err(error) => expect(error.to_string().starts_with("9001"), || error.to_string())?,
        }
    }
    expect(served > 0, || {
        "the server was forgotten, and nobody was served when it went on".to_owned()
    })
}

fn pipeline(proxy: &Proxy, hostgroups: &[u32], depth: u32) -> Outcome {
    for hostgroup in hostgroups {
        let row = format!("({hostgroup}, '{{\"pipelining\": {depth}}}')");
        proxy.admin(&format!("REPLACE INTO mysql_hostgroup_attributes (hostgroup_id, hostgroup_settings) VALUES {row}"))?;
    }
    proxy.admin("LOAD MYSQL SERVERS TO RUNTIME").map(drop)
}

fn pipelined(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let (_server, proxy) = one_of(driver, vendor)?;
        let workers = |proxy: &Proxy| -> Outcome {
            let clients: Vec<Raw> = (0..24).map(|_| log_in(proxy)).collect::<Result<_, _>>()?;
            let works = clients.into_iter().enumerate().map(|(who, mut client)| {
                thread::spawn(move || {
                    for n in 0..100 {
                        let own = who * 1000 + n;
                        let rows = asked(&mut client, &format!("SELECT {own}, 'of {who}'"))?;
                        same(rows, vec![vec![own.to_string(), format!("of {who}")]])?;
                        if n % 25 == 24 {
                            // What is one's own stays one's own.
                            asked(&mut client, &format!("SET @own = {own}"))?;
                            same(
                                asked(&mut client, "SELECT @own")?,
                                vec![vec![own.to_string()]],
                            )?;
                        }
                    }
                    Ok::<_, String>(())
                })
            });
            let works: Vec<_> = works.collect();
            works
                .into_iter()
                .try_for_each(|one| one.join().map_err(|_| "a client panicked".to_owned())?)
        };
        workers(&proxy)?;
        same(counted(&proxy, "Millrace_statements_pipelined")?, 0)?;
        pipeline(&proxy, &[0], 16)?;
        workers(&proxy)?;
        let shared = counted(&proxy, "Millrace_statements_pipelined")?;
        // How many depends on how quick the machine is.
        expect(shared > 0, || {
            format!("{vendor}: none of 2400 shared a connection")
        })?;
        let said = proxy.admin(
            "SELECT SUM(count_star) FROM stats_mysql_query_digest WHERE digest_text = 'SELECT ?,?'",
        )?;
        same(said.trim(), "4800")?;
    }
    Ok(())
}

/// Clients are told what they are told over connections of their own, byte for byte.
fn pipelined_executions(driver: Driver) -> Outcome {
    const ONE: &str = "SELECT ? AS given, 'one' AS statement";
    const OTHER: &str = "SELECT ? AS given, 'other' AS statement";
    for vendor in vendors_in_turn() {
        let (server, proxy) = one_of(driver, vendor)?;
        // MySQL lets an account in by a full exchange first.
        let warm_up = cache::root().join("conformance/scenarios/warm-up.txt");
        let _has_been_there = Client::MariaDbCli.run(app(server.port), &warm_up);
        pipeline(&proxy, &[0], 16)?;
        let work = |who: u64| {
            let (direct, through) = (server.port, proxy.port);
            thread::spawn(move || {
                let [mut direct, mut through] =
                    [raw::Raw::log_in(direct, 0)?, raw::Raw::log_in(through, 0)?];
                // Not all in the same order: their numbers differ, of a client and on a server.
                let texts = if who.is_multiple_of(2) {
                    [ONE, OTHER]
                } else {
                    [OTHER, ONE]
                };
                for text in texts {
                    direct.prepare(text)?;
                    through.prepare(text)?;
                }
                for n in 0..100_u64 {
                    let value = (who * 1_000_000 + n).to_le_bytes();
                    let word = format!("{who}-{n}");
                    // Some say it as a number, and some as a text, which MySQL reads otherwise.
                    let params = match who % 3 {
                        0 => [
                            &[0, 1, 0xfd, 0, u8::try_from(word.len()).unwrap_or(0)],
                            word.as_bytes(),
                        ]
                        .concat(),
                        _ => [&[0, 1, 8, 0][..], &value].concat(),
                    };
                    let nth = usize::from(n % 3 == 0);
                    let (wanted, found) = (
                        direct.execute(nth, 0, &params)?,
                        through.execute(nth, 0, &params)?,
                    );
                    expect(wanted == found, || {
                        format!("{who}, {n}: {found}\ninstead of\n{wanted}")
                    })?;
                }
                Ok::<_, String>(())
            })
        };
        until_shared(&proxy, || {
            let works: Vec<_> = (1..=12).map(work).collect();
            works
                .into_iter()
                .try_for_each(|one| one.join().map_err(|_| "a client panicked".to_owned())?)
        })?;
        let ran = counted(&proxy, "Com_backend_stmt_execute")?;
        expect(ran >= 12 * 100, || format!("{vendor}: {ran} executions"))?;
    }
    Ok(())
}

fn unfit(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let (_server, proxy) = one_of(driver, vendor)?;
        pipeline(&proxy, &[0], 16)?;
        let mut client = log_in(&proxy)?;
        until_shared(&proxy, || {
            asked(&mut client, "SELECT EXP(1)")?;
            asked(&mut client, "SELECT REPEAT('x', 3)")?;
            asked(&mut client, "SELECT CAST('1' AS SIGNED)").map(drop)
        })?;
        let said = client.ask("SELECT EXP(1000)");
        expect(
            said.as_ref()
                .is_err_and(|error| error.to_string().starts_with("1690")),
            || format!("{said:?}"),
        )?;
        let told = asked(&mut client, "SHOW WARNINGS")?;
        expect(told.iter().any(|row| row[1] == "1690"), || {
            format!("{told:?}")
        })?;
        same(
            asked(&mut client, "SELECT CAST('x' AS SIGNED)")?,
            vec![vec!["0".to_owned()]],
        )?;
        let told = asked(&mut client, "SHOW WARNINGS")?;
        expect(told.len() == 1, || format!("{told:?}"))?;
        for len in [20_000, 1_000_000, 3] {
            let rows = asked(&mut client, &format!("SELECT REPEAT('x', {len})"))?;
            same(rows.concat().concat().len(), len)?;
        }
        same(asked(&mut client, "SELECT 1")?, vec![vec!["1".to_owned()]])?;
    }
    Ok(())
}

fn killed(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let (server, proxy) = one_of(driver, vendor)?;
        pipeline(&proxy, &[0], 16)?;
        let read = "SELECT COUNT(*) FROM conf.counted";
        let mut clients: Vec<Raw> = (0..8).map(|_| log_in(&proxy)).collect::<Result<_, _>>()?;
        until_shared(&proxy, || {
            clients
                .iter_mut()
                .try_for_each(|client| asked(client, read).map(drop))
        })?;
        // Nobody can read now.
        let mut locker = Raw::log_in(server.port).map_err(|error| error.to_string())?;
        asked(&mut locker, "LOCK TABLES conf.counted WRITE")?;
        for client in &mut clients {
            client.query(read).map_err(|error| error.to_string())?;
        }
        running(&proxy, clients.len())?;
        for at in [0, 5] {
            proxy.admin(&format!("KILL QUERY {}", clients[at].id))?;
            let said = clients[at].rows();
            expect(
                said.as_ref()
                    .is_err_and(|error| error.to_string().starts_with("1317")),
                || format!("{vendor}: {said:?}"),
            )?;
        }
        // One just leaves.
        drop(clients.remove(3));
        asked(&mut locker, "UNLOCK TABLES")?;
        for (at, client) in clients.iter_mut().enumerate() {
            if ![0, 4].contains(&at) {
                let rows = client
                    .rows()
                    .map_err(|error| format!("{vendor}: {at}: {error}"))?;
                same(rows.len(), 1)?;
            }
        }
        for client in &mut clients {
            same(asked(client, read)?.len(), 1)?;
        }
    }
    Ok(())
}

/// Two servers of one hostgroup.
fn weighed(driver: Driver) -> Outcome {
    let servers = [
        Server::start(Vendor::MariaDb)?,
        Server::start(Vendor::MariaDb)?,
    ];
    for server in &servers {
        server.root(by_hand::CREATE_USER)?;
    }
    let mut wish = wish(&servers[0]);
    wish.servers = format!(
        "{},\n{{ address = \"127.0.0.1\", port = {}, hostgroup = 0, max_connections = 2000 }}",
        wish.servers, servers[1].port
    );
    let proxy = Proxy::start(driver, &wish)?;
    pipeline(&proxy, &[0], 16)?;
    let mut first = log_in(&proxy)?;
    until_shared(&proxy, || {
        (0..20).try_for_each(|n| asked(&mut first, &format!("SELECT {n}")).map(drop))
    })?;
    let over = Arc::new(AtomicBool::new(false));
    let works: Vec<_> = (0..16)
        .map(|_| {
            let (mut client, over) = (log_in(&proxy)?, over.clone());
            Ok(thread::spawn(move || {
                let mut n = 0;
                while !over.load(Ordering::Relaxed) {
                    asked(&mut client, &format!("SELECT {n}"))?;
                    n += 1;
                }
                Ok::<_, String>(())
            }))
        })
        .collect::<Result<_, String>>()?;
    let asked_of = |server: &Server| -> Result<u64, String> {
        let sql = format!(
            "SELECT Queries FROM stats_mysql_connection_pool WHERE srv_port = {}",
            server.port
        );
        let said = proxy.admin(&sql)?;
        said.trim().parse().map_err(|_| format!("{said:?} queries"))
    };
    let counted = |pause: u64| {
        let before = [asked_of(&servers[0])?, asked_of(&servers[1])?];
        thread::sleep(Duration::from_millis(pause));
        Ok::<_, String>([
            asked_of(&servers[0])? - before[0],
            asked_of(&servers[1])? - before[1],
        ])
    };
    thread::sleep(Duration::from_millis(200));
    let [one, other] = counted(1500)?;
    let share = one * 100 / (one + other).max(1);
    expect((35..=65).contains(&share), || format!("{one} and {other}"))?;
    proxy.admin(&format!(
        "UPDATE mysql_servers SET weight = 0 WHERE port = {}; LOAD MYSQL SERVERS TO RUNTIME",
        servers[0].port
    ))?;
    thread::sleep(Duration::from_millis(200));
    let [one, other] = counted(500)?;
    expect(one == 0 && other > 0, || {
        format!("{one} where the weight is 0, and {other}")
    })?;
    over.store(true, Ordering::Relaxed);
    works
        .into_iter()
        .try_for_each(|one| one.join().map_err(|_| "a client panicked".to_owned())?)
}

/// Transactions wait for connections of their own, of which one a second may be opened: short reads
/// go on together.
fn shared_at_a_pace(driver: Driver) -> Outcome {
    let (_server, proxy) = one_of(driver, Vendor::MariaDb)?;
    pipeline(&proxy, &[0], 16)?;
    let mut first = log_in(&proxy)?;
    until_shared(&proxy, || {
        (0..20).try_for_each(|n| asked(&mut first, &format!("SELECT {n}")).map(drop))
    })?;
    let over = Arc::new(AtomicBool::new(false));
    let readers: Vec<_> = (0..40)
        .map(|_| {
            let (mut client, over) = (log_in(&proxy)?, over.clone());
            Ok(thread::spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    asked(&mut client, "SELECT 1")?;
                }
                Ok::<_, String>(())
            }))
        })
        .collect::<Result<_, String>>()?;
    thread::sleep(Duration::from_millis(500));
    proxy.admin(
        "SET mysql-throttle_connections_per_sec_to_hostgroup = 1; LOAD MYSQL VARIABLES TO RUNTIME",
    )?;
    let writers: Vec<_> = (0..8)
        .map(|_| {
            let mut client = log_in(&proxy)?;
            Ok(thread::spawn(move || {
                asked(&mut client, "BEGIN")?;
                thread::sleep(Duration::from_secs(3));
                asked(&mut client, "COMMIT").map(drop)
            }))
        })
        .collect::<Result<_, String>>()?;
    thread::sleep(Duration::from_secs(1));
    let before = counted(&proxy, "Millrace_statements_pipelined")?;
    thread::sleep(Duration::from_secs(2));
    let shared = counted(&proxy, "Millrace_statements_pipelined")? - before;
    over.store(true, Ordering::Relaxed);
    let all = readers.into_iter().chain(writers);
    all.map(|one| one.join().map_err(|_| "a client panicked".to_owned())?)
        .collect::<Result<Vec<()>, String>>()?;
    expect(shared > 200, || {
        format!("{shared} statements were answered in lanes")
    })
}

/// FOUND_ROWS() of a statement that was killed could not be asked for, and the count of the
/// statement before is not its.
fn found_when_killed(driver: Driver) -> Outcome {
    let (server, proxy) = one_of(driver, Vendor::MariaDb)?;
    pipeline(&proxy, &[0], 16)?;
    let read = "SELECT id FROM conf.counted LIMIT 7";
    let mut client = log_in(&proxy)?;
    until_shared(&proxy, || asked(&mut client, read).map(drop))?;
    let mut locker = Raw::log_in(server.port).map_err(|error| error.to_string())?;
    asked(&mut locker, "LOCK TABLES conf.counted WRITE")?;
    same(
        asked(
            &mut client,
            "SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 LIMIT 3",
        )?
        .len(),
        3,
    )?;
    client.query(read).map_err(|error| error.to_string())?;
    running(&proxy, 1)?;
    proxy.admin(&format!("KILL QUERY {}", client.id))?;
    let said = client.rows();
    expect(
        said.as_ref()
            .is_err_and(|error| error.to_string().starts_with("1317")),
        || format!("{said:?}"),
    )?;
    asked(&mut locker, "UNLOCK TABLES")?;
    let said = client.ask("SELECT FOUND_ROWS()");
    expect(
        said.as_ref()
            .is_err_and(|error| error.to_string().starts_with("1235")),
        || format!("{said:?}"),
    )
}

/// Statement that leaves something on its connection, what its session says elsewhere next, and
/// what it asks then.
struct Left {
    variables: &'static str,
    before: &'static str,
    leaves: &'static str,
    holds: &'static str,
    elsewhere: &'static str,
    asks: &'static [&'static str],
}

const NO_SILENCE: &str = "SET mysql-handle_warnings_delay_ms=0; SET mysql-auto_increment_delay_multiplex=1000000;
    SET mysql-auto_increment_delay_multiplex_timeout_ms=0; SET mysql-connection_delay_multiplex_ms=0";
const LEFT: &[Left] = &[
    Left {
        variables: NO_SILENCE,
        before: "DO 0",
        leaves: "SELECT CAST('x' AS SIGNED)",
        holds: "Diagnostics",
        elsewhere: "SELECT 2",
        asks: &["SHOW WARNINGS"],
    },
    // Who asks servers for warnings has them kept.
    Left {
        variables: NO_SILENCE,
        before: "GET DIAGNOSTICS @n = NUMBER",
        leaves: "SELECT CAST('x' AS SIGNED)",
        holds: "Diagnostics",
        elsewhere: "SELECT COUNT(*) > 0 FROM conf.counted",
        asks: &["SHOW WARNINGS"],
    },
    // More than is kept.
    Left {
        variables: NO_SILENCE,
        before: "SET SESSION max_error_count = 400",
        leaves: "SELECT COUNT(CAST(CONCAT(REPEAT('x', 60), a.id, b.id) AS SIGNED)) FROM conf.counted a, conf.counted b, conf.counted c",
        holds: "Diagnostics",
        elsewhere: "SELECT COUNT(*) > 0 FROM conf.counted",
        asks: &["SHOW WARNINGS"],
    },
    Left {
        variables: NO_SILENCE,
        before: "DO 0",
        leaves: "INSERT INTO conf.counted VALUES (NULL, '{who}')",
        holds: "InsertId",
        elsewhere: "SELECT 2",
        asks: &["SELECT LAST_INSERT_ID() = (SELECT id FROM conf.counted WHERE words = '{who}')"],
    },
    Left {
        variables: NO_SILENCE,
        before: "SET SESSION sql_mode = ''",
        leaves: "INSERT INTO conf.counted (words) VALUES ('{who} with more letters than fit'), (1)",
        holds: "Diagnostics InsertId",
        elsewhere: "SELECT 2",
        asks: &[
            "SHOW WARNINGS",
            "SELECT LAST_INSERT_ID() = (SELECT id FROM conf.counted WHERE words LIKE '{who} with%')",
        ],
    },
    Left {
        variables: NO_SILENCE,
        before: "DO 0",
        leaves: "SELECT CAST('12x' AS SIGNED) INTO @a",
        holds: "Diagnostics Unread",
        elsewhere: "SELECT @a",
        asks: &["SELECT @a + 1"],
    },
    Left {
        variables: NO_SILENCE,
        before: "DO 0",
        leaves: "SELECT SQL_CALC_FOUND_ROWS id FROM conf.found LIMIT 1",
        holds: "FoundRows",
        elsewhere: "DELETE FROM conf.counted WHERE id < 0",
        asks: &["SELECT FOUND_ROWS()", "SELECT FOUND_ROWS()"],
    },
    // More warnings than MariaDB lists: their number would be asked for by a SELECT.
    Left {
        variables: NO_SILENCE,
        before: "DO 0",
        leaves: "SELECT SQL_CALC_FOUND_ROWS CAST(CONCAT('x', a.id) AS SIGNED) FROM conf.found a, conf.found b LIMIT 100",
        holds: "Diagnostics FoundRows",
        elsewhere: "DELETE FROM conf.counted WHERE id < 0",
        asks: &["SELECT FOUND_ROWS()"],
    },
    Left {
        variables: "SET mysql-connection_delay_multiplex_ms=300000",
        before: "DO 0",
        leaves: "SELECT 1",
        holds: "Delay",
        elsewhere: "SELECT 2",
        // Who is silent keeps it as long as the operator wants.
        asks: &[],
    },
];

fn crossing(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let server = Server::start(vendor)?;
        server.root(by_hand::CREATE_USER)?;
        server.root("INSERT INTO conf.counted (words) WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 12) SELECT 'many' FROM n")?;
        server.root("CREATE TABLE conf.found AS SELECT id FROM conf.counted")?;
        let mut wish = wish(&server);
        let of = |hostgroup| {
            format!(
                "{{ address = \"127.0.0.1\", port = {}, hostgroup = {hostgroup}, max_connections = 1 }}",
                server.port
            )
        };
        wish.servers = format!("{},\n{}", of(0), of(1));
        wish.variables
            .push_str("    connect_timeout_server_max = 4000\n");
        let proxy = Proxy::start(driver, &wish)?;
        proxy.admin("INSERT INTO mysql_query_rules (rule_id, active, match_pattern, destination_hostgroup, apply) VALUES (1, 1, 'in two', 1, 1);
            LOAD MYSQL QUERY RULES TO RUNTIME")?;
        for left in LEFT {
            cross(&server, &proxy, left)
                .map_err(|error| format!("{vendor}, {}: {error}", left.leaves))?;
        }
    }
    Ok(())
}

/// Action of a session while a connection elsewhere is another's.
enum Meanwhile {
    Ask(&'static str),
    Prepare(&'static str),
}

/// FOUND_ROWS() of a connection that was given back is the session's to answer, where it can; else
/// it is said that nobody can.
fn found_rows(driver: Driver) -> Outcome {
    const DELETE: Meanwhile = Meanwhile::Ask("DELETE FROM conf.counted WHERE id < 0 /* in two */");
    for vendor in vendors_in_turn() {
        let server = Server::start(vendor)?;
        server.root(by_hand::CREATE_USER)?;
        server.root("CREATE TABLE conf.found (id INT); INSERT INTO conf.found VALUES (1), (2), (3), (4), (5)")?;
        let mut wish = wish(&server);
        let of = |hostgroup| {
            format!(
                "{{ address = \"127.0.0.1\", port = {}, hostgroup = {hostgroup}, max_connections = 1 }}",
                server.port
            )
        };
        wish.servers = format!("{},\n{}", of(0), of(1));
        let proxy = Proxy::start(driver, &wish)?;
        proxy.admin(&format!("{NO_SILENCE}; LOAD MYSQL VARIABLES TO RUNTIME;
            INSERT INTO mysql_query_rules (rule_id, active, match_pattern, destination_hostgroup, apply) VALUES (1, 1, 'in two', 1, 1);
            LOAD MYSQL QUERY RULES TO RUNTIME"))?;
        let given_back = |meanwhile: &Meanwhile, dies: bool| {
            let (mut client, mut blocker) = (log_in(&proxy)?, log_in(&proxy)?);
            let id = asked(
                &mut client,
                "SELECT CONNECTION_ID() + 0 * IFNULL(IS_USED_LOCK('none'), 0)",
            )?
            .concat()
            .concat();
            asked(
                &mut client,
                "SELECT SQL_CALC_FOUND_ROWS id FROM conf.found LIMIT 1",
            )?;
            asked(&mut blocker, "BEGIN /* in two */")?;
            if dies {
                server.root(&format!("KILL {id}"))?;
                thread::sleep(Duration::from_millis(50));
            }
            let payload = match meanwhile {
                Meanwhile::Ask(sql) => [b"\x03", sql.as_bytes()].concat(),
                Meanwhile::Prepare(sql) => [b"\x16", sql.as_bytes()].concat(),
            };
            client
                .command(&payload)
                .map_err(|error| error.to_string())?;
            thread::sleep(Duration::from_millis(200));
            asked(&mut blocker, "COMMIT /* in two */")?;
            prepared(&mut client, matches!(meanwhile, Meanwhile::Prepare(_)))?;
            Ok::<_, String>(client)
        };
        let fails = |client: &mut Raw, sql: &str, words: &str| {
            let said = asked(client, sql);
            expect(
                said.as_ref()
                    .is_err_and(|said| said.contains("1235") && said.contains(words)),
                || format!("{vendor}: {sql}: {said:?}"),
            )
        };
        for meanwhile in [&DELETE, &Meanwhile::Prepare("SELECT 2 /* in two */")] {
            let mut client = given_back(meanwhile, false)?;
            same(
                asked(&mut client, "SELECT FOUND_ROWS() + 1")?,
                vec![vec!["6".to_owned()]],
            )?;
            same(
                asked(&mut client, "SELECT FOUND_ROWS() + 0")?,
                vec![vec!["1".to_owned()]],
            )?;
            drop(client);
            let mut client = given_back(meanwhile, false)?;
            asked(&mut client, "SELECT FOUND_ROWS() INTO @n")?;
            same(asked(&mut client, "SELECT @n")?, vec![vec!["5".to_owned()]])?;
            drop(client);
            let mut client = given_back(meanwhile, false)?;
            same(
                asked(&mut client, "SELECT FOUND_ROWS()")?,
                vec![vec!["5".to_owned()]],
            )?;
            drop(client);
            let mut client = given_back(meanwhile, false)?;
            client
                .command(b"\x16SELECT FOUND_ROWS()")
                .map_err(|error| error.to_string())?;
            let id = prepared(&mut client, true)?;
            client
                .command(&[&[0x17][..], &id.to_le_bytes(), &[0, 1, 0, 0, 0]].concat())
                .map_err(|error| error.to_string())?;
            let mut rows = Vec::new();
            client
                .each_row(|row| rows.push(row.to_vec()))
                .map_err(|error| format!("{vendor}, prepared: {error}"))?;
            same(rows, vec![[&[0, 0, 5][..], &[0; 7]].concat()])?;
        }
        // What finds nothing by an error, or one row for none, may leave the number as it was: that
        // of whoever was there before.
        let calculated = "SELECT SQL_CALC_FOUND_ROWS MAX(id) FROM conf.found WHERE 1 = 0";
        for sql in [
            "SELECT SQL_CALC_FOUND_ROWS id FROM conf.nothing LIMIT 1",
            calculated,
        ] {
            let (mut client, mut other) = (log_in(&proxy)?, log_in(&proxy)?);
            let mut direct = Raw::log_in(server.port).map_err(|error| error.to_string())?;
            asked(&mut other, "SELECT id FROM conf.found")?;
            let (_, wanted) = (
                direct.ask(sql),
                asked(&mut direct, "SELECT FOUND_ROWS()")?.concat().concat(),
            );
            let (_, told) = (client.ask(sql), asked(&mut client, "SELECT FOUND_ROWS()"));
            let said = told
                .as_ref()
                .map_or_else(ToString::to_string, |rows| rows.concat().concat());
            expect(said == wanted || said.contains("1235"), || {
                format!("{vendor}: {sql}: {said} instead of {wanted}")
            })?;
        }
        let mut client = given_back(&DELETE, true)?;
        fails(&mut client, "SELECT FOUND_ROWS()", "lost")?;
        fails(&mut client, "SELECT FOUND_ROWS() + 0", "lost")?;
        asked(&mut client, "SELECT id FROM conf.found")?;
        // Nothing is selected by preparing.
        client
            .command(b"\x16SELECT 2")
            .map_err(|error| error.to_string())?;
        prepared(&mut client, true)?;
        let mut other = log_in(&proxy)?;
        asked(&mut other, "SELECT id FROM conf.found LIMIT 2")?;
        same(
            asked(&mut client, "SELECT FOUND_ROWS()")?,
            vec![vec!["5".to_owned()]],
        )?;
    }
    Ok(())
}

/// The answer to a COM_STMT_PREPARE of a statement of one column: its id. To anything else: an OK.
fn prepared(client: &mut Raw, is: bool) -> Result<u32, String> {
    let said = client.packet().map_err(|error| error.to_string())?;
    expect(said[0] == 0, || by_hand::complaint(&said).to_string())?;
    for _ in 0..if is { 2 } else { 0 } {
        client.packet().map_err(|error| error.to_string())?;
    }
    Ok(u32::from_le_bytes([said[1], said[2], said[3], said[4]]))
}

/// Two sessions that have each other's next connection, and what they are told then; beside one
/// without a proxy.
fn cross(server: &Server, proxy: &Proxy, left: &'static Left) -> Outcome {
    proxy.admin(&format!(
        "{}; LOAD MYSQL VARIABLES TO RUNTIME",
        left.variables
    ))?;
    let said = |client: &mut Raw, who: &str, sql: &str| asked(client, &sql.replace("{who}", who));
    let mut direct = Raw::log_in(server.port).map_err(|error| error.to_string())?;
    let mut wanted = Vec::new();
    for sql in [left.before, left.leaves, left.elsewhere] {
        said(&mut direct, "direct", sql)?;
    }
    for sql in left.asks {
        wanted.push(said(&mut direct, "direct", sql)?);
    }
    let mut sessions = Vec::new();
    for (who, here, there) in [
        ("one", "/* in one */", "/* in two */"),
        ("two", "/* in two */", "/* in one */"),
    ] {
        let mut client = log_in(proxy)?;
        said(&mut client, who, &format!("{} {here}", left.before))?;
        said(&mut client, who, &format!("{} {here}", left.leaves))?;
        let holds = proxy.admin(&format!(
            "SELECT hold FROM stats_mysql_session_holds WHERE SessionID = {} ORDER BY hold",
            client.id
        ))?;
        let holds = holds.lines().collect::<Vec<_>>().join(" ");
        // MySQL warns of SQL_CALC_FOUND_ROWS.
        expect(
            holds == left.holds || holds == format!("Diagnostics {}", left.holds),
            || format!("held for {holds:?}"),
        )?;
        sessions.push((who, there, client));
    }
    let begun = sessions.into_iter().map(|(who, there, mut client)| {
        thread::spawn(move || {
            let elsewhere = format!("{} {there}", left.elsewhere.replace("{who}", who));
            asked(&mut client, &elsewhere).map(|_| (who, client))
        })
    });
    let done: Vec<_> = begun
        .collect::<Vec<_>>()
        .into_iter()
        .map(|one| one.join().map_err(|_| "panicked".to_owned()))
        .collect();
    for one in done {
        let (who, mut client) = one??;
        for (sql, wanted) in left.asks.iter().zip(&wanted) {
            let found = said(&mut client, who, sql)?;
            expect(found == *wanted, || {
                format!("{who}: {sql}: {found:?} instead of {wanted:?}")
            })?;
        }
        client.command(&[1]).map_err(|error| error.to_string())?;
    }
    Ok(())
}
