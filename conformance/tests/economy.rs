//! What applications cost their servers: the statements that arrive there, and the connections that
//! idle clients keep.
#![forbid(unsafe_code)]

use conformance::beside::{asked, beside, narrow, settled};
use conformance::by_hand::{self, Raw};
use conformance::clients::{Client, app};
use conformance::proxy::{Driver, Proxy, Wish};
use conformance::servers::{Server, Vendor, vendors};
use conformance::trials::{self, expect, same, soon};
use std::time::Duration;

type Outcome = Result<(), String>;

fn main() {
    trials::run(&[
        (
            "idle_clients_with_autocommit_off_keep_no_connection",
            idle_with_autocommit_off,
        ),
        (
            "transactions_with_autocommit_off_are_kept_apart_on_shared_connections",
            apart_with_autocommit_off,
        ),
        (
            "a_table_without_transactions_is_kept_until_the_transaction_ends",
            without_transactions,
        ),
        (
            "who_leaves_in_a_transaction_is_rolled_back_and_the_connection_serves_on",
            rolled_back,
        ),
        (
            "who_connects_for_each_request_pays_for_its_sets_once",
            connecting,
        ),
        (
            "values_that_a_server_has_told_are_told_again_as_it_would",
            values,
        ),
        (
            "who_tracks_its_session_is_told_the_same_of_a_set_that_is_known",
            tracked,
        ),
        (
            "a_set_that_is_refused_is_not_taken_at_its_word_and_warnings_are_shown_again",
            refused,
        ),
        (
            "inserts_and_warnings_that_nobody_asks_for_cost_no_question",
            unasked,
        ),
        (
            "clients_that_think_cost_their_server_their_own_statements",
            thinking,
        ),
        ("statements_that_come_again_pass_no_stage", at_once),
        (
            "last_insert_id_is_as_direct_whoever_shares_the_connection",
            last_insert_id,
        ),
        (
            "a_connection_that_lingers_is_there_for_whoever_needs_one",
            pressed,
        ),
    ])
}

fn log_in(proxy: &Proxy) -> Result<Raw, String> {
    Raw::log_in(proxy.port).map_err(|error| error.to_string())
}

/// How often the server was sent these kinds of statements (`Com_select`).
fn counted<const N: usize>(server: &Server, names: [&str; N]) -> Result<[u64; N], String> {
    let said = server.root("SHOW GLOBAL STATUS LIKE 'Com\\_%'")?;
    let mut counts = [0; N];
    for (count, name) in counts.iter_mut().zip(names) {
        let line = said.lines().find_map(|line| line.strip_prefix(name));
        *count = line
            .and_then(|value| value.trim().parse().ok())
            .ok_or_else(|| format!("there is no {name}"))?;
    }
    Ok(counts)
}

fn used(proxy: &Proxy) -> Result<String, String> {
    let sql = "SELECT SUM(ConnUsed) FROM stats_mysql_connection_pool";
    Ok(proxy.admin(sql)?.trim().to_owned())
}

/// Forty clients of a server that lets in four at once say what PyMySQL says at login, read, and
/// commit. Then each is silent, and none keeps anything.
fn idle_with_autocommit_off(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (server, proxy) = by_hand::one(driver, vendor)?;
        proxy
            .admin("UPDATE mysql_servers SET max_connections = 4; LOAD MYSQL SERVERS TO RUNTIME")?;
        let [before] = counted(&server, ["Com_set_option"])?;
        let mut clients = Vec::new();
        for _ in 0..40 {
            let mut client = log_in(&proxy)?;
            asked(&mut client, "SET AUTOCOMMIT = 0")?;
            same(&settled(&proxy, &mut client)?, "")?;
            clients.push(client);
        }
        same(&used(&proxy)?, "0").map_err(|error| format!("{vendor}, in use: {error}"))?;
        for client in &mut clients {
            same(
                &asked(client, "SELECT @@autocommit")?.concat().concat(),
                "0",
            )?;
            asked(client, "SELECT id FROM conf.numbers WHERE id = 1")?;
            same(&settled(&proxy, client)?, "Transaction")
                .map_err(|error| format!("{vendor}, after a read: {error}"))?;
            asked(client, "COMMIT")?;
            same(&settled(&proxy, client)?, "")
                .map_err(|error| format!("{vendor}, after COMMIT: {error}"))?;
            // Nothing to commit is nothing to say.
            asked(client, "COMMIT")?;
        }
        same(&used(&proxy)?, "0")?;
        let [set, commits] = counted(&server, ["Com_set_option", "Com_commit"])?;
        let set = set - before;
        // Each connection is told once, and perhaps what it is to track.
        expect(set <= 12, || {
            format!("{vendor}: {set} SETs for 4 connections")
        })?;
        expect((40..60).contains(&commits), || {
            format!("{vendor}: {commits} COMMITs for 40 transactions")
        })?;
    }
    Ok(())
}

/// Rows that one client has not committed are seen by nobody else, whatever connections the clients
/// share. An error inside leaves the transaction open.
fn apart_with_autocommit_off(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (server, proxy) = by_hand::one(driver, vendor)?;
        server
            .root("CREATE TABLE conf.apart (id INT PRIMARY KEY, word VARCHAR(20)) ENGINE=InnoDB")?;
        let (mut one, mut other, mut plain) = (log_in(&proxy)?, log_in(&proxy)?, log_in(&proxy)?);
        for client in [&mut one, &mut other] {
            asked(client, "SET autocommit = OFF")?;
        }
        let count = "SELECT COUNT(*) FROM conf.apart";
        let seen = |client: &mut Raw| asked(client, count).map(|rows| rows.concat().concat());
        for round in 0..5 {
            asked(
                &mut one,
                &format!("INSERT INTO conf.apart VALUES ({round}, 'one')"),
            )?;
            let again = one.ask(&format!("INSERT INTO conf.apart VALUES ({round}, 'one')"));
            expect(again.is_err(), || "a key was taken twice".to_owned())?;
            same(&seen(&mut other)?, &round.to_string())?;
            same(&seen(&mut plain)?, &round.to_string())?;
            same(&seen(&mut one)?, &(round + 1).to_string())?;
            asked(&mut one, "COMMIT")?;
            // A snapshot begins with the first read, and lasts.
            same(&seen(&mut other)?, &round.to_string())?;
            asked(&mut other, "ROLLBACK")?;
            same(&seen(&mut other)?, &(round + 1).to_string())?;
            asked(&mut other, "COMMIT")?;
            same(&seen(&mut plain)?, &(round + 1).to_string())?;
        }
        asked(&mut one, "DELETE FROM conf.apart")?;
        asked(&mut one, "SET autocommit = 1")?;
        same(&seen(&mut plain)?, "0").map_err(|error| format!("{vendor}: {error}"))?;
        same(
            &asked(&mut one, "SELECT @@autocommit")?.concat().concat(),
            "1",
        )?;
    }
    Ok(())
}

/// With autocommit off a server keeps a table of MyISAM locked against ALTER until the transaction
/// ends, and tells of no transaction. So the connection is the client's until then.
fn without_transactions(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (server, proxy) = by_hand::one(driver, vendor)?;
        server.root(
            "CREATE TABLE conf.old (id INT) ENGINE=MyISAM; INSERT INTO conf.old VALUES (1)",
        )?;
        let mut client = log_in(&proxy)?;
        asked(&mut client, "SET autocommit = 0")?;
        for (reads, ends) in [
            ("SELECT * FROM conf.old", "COMMIT"),
            ("INSERT INTO conf.old VALUES (2)", "ROLLBACK"),
            (
                "SELECT COUNT(*) FROM conf.old",
                "CREATE TABLE conf.new (id INT)",
            ),
            ("SELECT * FROM conf.old", "SET autocommit = 1"),
        ] {
            asked(&mut client, reads)?;
            same(&settled(&proxy, &mut client)?, "AutocommitOff")
                .map_err(|error| format!("{vendor}, after {reads}: {error}"))?;
            let mut other = beside(&proxy, &client)?;
            asked(&mut other, "SET lock_wait_timeout = 1")?;
            let altered = other.ask("ALTER TABLE conf.old COMMENT = 'x'");
            // MariaDB lets go of such a table when its statement ends.
            expect(altered.is_err() == (vendor == Vendor::MySql), || {
                format!("{vendor}, after {reads}: {altered:?}")
            })?;
            asked(&mut client, ends)?;
            // The server is asked for the warning of a ROLLBACK that cannot take all back.
            soon("", || settled(&proxy, &mut client))
                .map_err(|error| format!("{vendor}, after {ends}: {error}"))?;
            asked(&mut other, "ALTER TABLE conf.old COMMENT = 'x'")?;
        }
    }
    Ok(())
}

/// A client that goes without COMMIT has changed nothing, holds no lock, and its connection needs
/// nothing but a ROLLBACK for the next client of its kind.
fn rolled_back(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (server, proxy) = by_hand::one(driver, vendor)?;
        server.root("CREATE TABLE conf.left_open (id INT PRIMARY KEY) ENGINE=InnoDB")?;
        narrow(&proxy)?;
        let mut first = log_in(&proxy)?;
        for say in [
            "SET NAMES latin1, autocommit = 0, sql_mode = 'ANSI'",
            "INSERT INTO conf.left_open VALUES (1)",
        ] {
            asked(&mut first, say)?;
        }
        let [sets] = counted(&server, ["Com_set_option"])?;
        for round in 0..10 {
            drop(first);
            soon("0", || used(&proxy))?;
            first = log_in(&proxy)?;
            asked(
                &mut first,
                "SET NAMES latin1, autocommit = 0, sql_mode = 'ANSI'",
            )?;
            same(
                &asked(&mut first, "SELECT COUNT(*) FROM conf.left_open")?
                    .concat()
                    .concat(),
                "0",
            )
            .map_err(|error| format!("{vendor}, round {round}: {error}"))?;
            asked(&mut first, "INSERT INTO conf.left_open VALUES (1)")?;
        }
        let again = counted(&server, ["Com_set_option"])?[0] - sets;
        expect(again <= 4, || {
            format!("{vendor}: {again} SETs for ten clients that said one each")
        })?;
        drop(first);
        soon("0", || used(&proxy))?;
        server.root("ALTER TABLE conf.left_open COMMENT = 'free'")?;
    }
    Ok(())
}

/// Statements that applications say before their first query.
const STARTS: [(&str, &[&str]); 6] = [
    (
        "WordPress",
        &[
            "SET NAMES 'utf8mb4' COLLATE 'utf8mb4_unicode_520_ci'",
            "SELECT @@SESSION.sql_mode",
            "SET SESSION sql_mode='NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO'",
        ],
    ),
    (
        "Connector/J",
        &[
            "/* connector */SELECT  @@session.auto_increment_increment AS auto_increment_increment, \
             @@character_set_client AS character_set_client, @@init_connect AS init_connect, \
             @@max_allowed_packet AS max_allowed_packet, @@time_zone AS time_zone, \
             @@sql_mode AS sql_mode, @@wait_timeout AS wait_timeout",
            "SET character_set_results = NULL",
            "SET autocommit=1",
        ],
    ),
    (
        "Rails",
        &[
            "SET NAMES utf8mb4, @@SESSION.sql_mode = CONCAT(@@sql_mode, ',STRICT_ALL_TABLES'), \
             @@SESSION.sql_auto_is_null = 0, @@SESSION.wait_timeout = 2147483",
        ],
    ),
    (
        "Laravel",
        &[
            "set names 'utf8mb4' collate 'utf8mb4_unicode_ci'",
            "set session sql_mode='ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION'",
        ],
    ),
    (
        "Django",
        &[
            "SET SQL_AUTO_IS_NULL = 0",
            "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
            "SET autocommit = 1",
        ],
    ),
    ("PyMySQL", &["SET NAMES utf8mb4", "SET AUTOCOMMIT = 0"]),
];

/// How often each of them is asked for a page.
const REQUESTS: u64 = 30;

/// Question for what the session has then: none that the proxy knows by heart.
const STATE: &str = "SELECT @@sql_mode, @@collation_connection, @@character_set_results, \
                     @@sql_auto_is_null, @@wait_timeout, @@autocommit, 1";

/// Connects, starts as an application does, reads three rows and goes; what it was told, and what
/// the session has.
fn request(port: u16, start: &[&str]) -> Result<String, String> {
    let mut client = Raw::log_in(port).map_err(|error| error.to_string())?;
    let mut state = String::new();
    for say in start {
        state += &asked(&mut client, say)?.concat().join(" ");
    }
    state += &asked(&mut client, STATE)?.concat().join(" ");
    for id in 1..3 {
        asked(
            &mut client,
            &format!("SELECT id FROM conf.numbers WHERE id = {id}"),
        )?;
    }
    asked(&mut client, "COMMIT")?;
    Ok(state)
}

/// No SET, and three SELECTs a request; the client that counts asks for one itself at MySQL.
fn is_its_own(counts: Option<&[u64; 2]>) -> bool {
    counts.is_some_and(|[sets, selects]| *sets == 0 && selects.wrapping_sub(3 * REQUESTS) <= 1)
}

/// A request of an application costs its server the queries of the application, and nothing that
/// was said there before; its session has all the same what it has directly.
fn connecting(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (server, proxy) = by_hand::one(driver, vendor)?;
        for (name, start) in STARTS {
            let direct = request(server.port, start)?;
            // On each core, and on connections that cores lend each other, which a busy machine
            // has do in any number of requests: in the end nothing is said twice.
            let mut counts = Vec::new();
            for _ in 0..6 {
                let before = counted(&server, ["Com_set_option", "Com_select"])?;
                for _ in 0..REQUESTS {
                    same(&request(proxy.port, start)?, &direct)
                        .map_err(|error| format!("{vendor}, {name}: {error}"))?;
                }
                let after = counted(&server, ["Com_set_option", "Com_select"])?;
                counts.push([after[0] - before[0], after[1] - before[1]]);
                if is_its_own(counts.last()) {
                    break;
                }
            }
            expect(is_its_own(counts.last()), || {
                format!(
                    "{vendor}, {name}: SETs and SELECTs for {REQUESTS} requests each: {counts:?}"
                )
            })?;
        }
    }
    Ok(())
}

/// Libraries that ask for session tracking (MySQL's and MariaDB's own) are told of what a SET has
/// changed; so they are where no server was asked.
fn tracked(driver: Driver) -> Outcome {
    use conformance::raw::Raw;
    use wire::caps;
    for vendor in vendors() {
        let (server, proxy) = by_hand::one(driver, vendor)?;
        // The first full login of an account is over TLS; raw logins are quick ones.
        let _ = Client::MariaDbCli.run(
            app(server.port),
            &conformance::cache::root().join("conformance/scenarios/warm-up.txt"),
        );
        for say in [
            "SET NAMES latin1",
            "SET autocommit = 0",
            "SET time_zone = '+01:00'",
            "SET sql_mode = 'ANSI'",
            "SET SESSION sort_buffer_size = 100000",
        ] {
            let once = |port| -> Result<String, String> {
                Raw::log_in(port, caps::SESSION_TRACK)?.query(say)
            };
            let direct = once(server.port)?;
            // Each core learns it by itself, and nobody says which one a client comes to.
            let mut free_of_charge = 0;
            for _ in 0..30 {
                let before = counted(&server, ["Com_set_option"])?;
                let told = once(proxy.port)?;
                same(&told, &direct).map_err(|error| format!("{vendor}, {say}: {error}"))?;
                if counted(&server, ["Com_set_option"])? == before {
                    free_of_charge += 1;
                }
            }
            expect(free_of_charge >= 20, || {
                format!("{vendor}, {say}: {free_of_charge} of 30 cost nothing")
            })?;
        }
    }
    Ok(())
}

/// Values of variables that a server has told are told again as it would tell them, to whoever has
/// set the same; what is set since, or may be otherwise at each server, is asked anew.
fn values(driver: Driver) -> Outcome {
    use conformance::raw::Raw;
    use wire::caps;
    for vendor in vendors() {
        let (server, proxy) = by_hand::one(driver, vendor)?;
        let _ = Client::MariaDbCli.run(
            app(server.port),
            &conformance::cache::root().join("conformance/scenarios/warm-up.txt"),
        );
        let says = [
            "SELECT @@session.sql_mode",
            "SELECT @@time_zone AS t, @@autocommit, @@wait_timeout AS w LIMIT 1",
            "SELECT FOUND_ROWS()",
            "SET time_zone = '+02:00', sql_mode = 'ANSI'",
            "SELECT @@session.sql_mode",
            "SELECT @@time_zone AS t, @@autocommit, @@wait_timeout AS w LIMIT 1",
            "SET NAMES latin1",
            "SELECT @@session.sql_mode",
            "SELECT @@version_comment LIMIT 1",
            "SELECT @@sql_mode FROM (SELECT 1) AS x",
            "BEGIN",
            "SELECT @@session.sql_mode",
            "ROLLBACK",
        ];
        for capabilities in [0, caps::DEPRECATE_EOF, caps::SESSION_TRACK] {
            let all = |port| -> Result<Vec<String>, String> {
                let mut client = Raw::log_in(port, capabilities)?;
                says.iter().map(|say| client.query(say)).collect()
            };
            let direct = all(server.port)?;
            let mut costs = Vec::new();
            for _ in 0..12 {
                let before = counted(&server, ["Com_select"])?;
                let told = all(proxy.port)?;
                for ((say, told), direct) in says.iter().zip(&told).zip(&direct) {
                    same(told, direct).map_err(|error| format!("{vendor}, {say}: {error}"))?;
                }
                costs.push(counted(&server, ["Com_select"])?[0] - before[0]);
            }
            // The one that names a table, and the one in a transaction; the client that counts asks
            // for one itself at MySQL. Each core asks anew every minute, and the machine may be slow.
            let told_again = costs.iter().filter(|cost| matches!(cost, 2 | 3)).count();
            expect(told_again >= 8, || {
                format!("{vendor}: SELECTs on the server: {costs:?}")
            })?;
        }
    }
    Ok(())
}

/// A server says no each time, and the warnings of a SET that is known are those that the server
/// gave.
fn refused(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (server, proxy) = by_hand::one(driver, vendor)?;
        for _ in 0..3 {
            let mut client = log_in(&proxy)?;
            for say in ["SET sql_mode = 'NONSENSE'", "SET NAMES klingon"] {
                expect(client.ask(say).is_err(), || format!("{vendor}: {say}"))?;
            }
            let mut client = log_in(&proxy)?;
            asked(&mut client, "SET SESSION group_concat_max_len = 1")?;
            let warnings = asked(&mut client, "SHOW WARNINGS")?;
            expect(warnings.len() == 1, || format!("{vendor}: {warnings:?}"))?;
            same(
                &asked(&mut client, "SELECT @@group_concat_max_len")?
                    .concat()
                    .concat(),
                "4",
            )?;
        }
        // Whose value depends on more than what the session has set.
        for n in 1..4 {
            server.root(&format!("SET GLOBAL long_query_time = {n}"))?;
            let mut client = log_in(&proxy)?;
            asked(
                &mut client,
                "SET SESSION long_query_time = @@global.long_query_time",
            )?;
            let said = asked(&mut client, "SELECT @@long_query_time")?
                .concat()
                .concat();
            expect(said.starts_with(&n.to_string()), || {
                format!("{vendor}: {said}")
            })?;
        }
    }
    Ok(())
}

/// A server and a proxy whose sessions linger for an hour unless somebody needs their connections.
fn lingering(driver: Driver, vendor: Vendor) -> Result<(Server, Proxy), String> {
    let server = Server::start(vendor)?;
    server.root(by_hand::CREATE_USER)?;
    let mut wish = Wish::in_front_of(&server);
    wish.add_open_user();
    wish.variables.push_str(
        "\nhandle_warnings_delay_ms = 3600000\nauto_increment_delay_multiplex_timeout_ms = 3600000\n\
         connect_timeout_server_max = 5000",
    );
    let proxy = Proxy::start(driver, &wish)?;
    Ok((server, proxy))
}

const NUMBERED: &str = "CREATE TABLE conf.numbered (id INT AUTO_INCREMENT PRIMARY KEY, word VARCHAR(20)) ENGINE=InnoDB";

/// A client inserts, and is warned, with pauses in which it could be asked for what it left.
fn unasked(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (server, proxy) = lingering(driver, vendor)?;
        server.root(NUMBERED)?;
        let mut client = log_in(&proxy)?;
        for (say, kind) in [
            (
                "INSERT INTO conf.numbered (word) VALUES ('a')",
                "Com_insert",
            ),
            ("INSERT INTO conf.numbered VALUES (NULL, 'b')", "Com_insert"),
            ("SELECT CAST('x' AS SIGNED)", "Com_select"),
        ] {
            asked(&mut client, say)?;
            let kinds = ["Com_insert", "Com_select", "Com_show_warnings"];
            let before = counted(&server, kinds)?;
            for _ in 0..40 {
                asked(&mut client, say)?;
                std::thread::sleep(Duration::from_millis(12));
            }
            let after = counted(&server, kinds)?;
            for (at, name) in kinds.iter().enumerate() {
                let wanted = if *name == kind { 40 } else { 0 };
                // The client that counts asks one question of its own.
                let most = wanted + u64::from(*name == "Com_select");
                let more = after[at] - before[at];
                expect((wanted..=most).contains(&more), || {
                    format!("{vendor}: {say} forty times is {more} {name}")
                })?;
            }
        }
    }
    Ok(())
}

/// Twenty clients insert, read, change and are warned, with pauses between. Their server gets what
/// they say and no more, on fewer connections than they are.
fn thinking(driver: Driver) -> Outcome {
    const CLIENTS: usize = 20;
    const ROUNDS: usize = 15;
    for vendor in vendors() {
        let (server, proxy) = lingering(driver, vendor)?;
        server.root(NUMBERED)?;
        let life = |n: usize, rounds: usize| -> Outcome {
            let mut client = log_in(&proxy)?;
            for round in 0..rounds {
                for say in [
                    "INSERT INTO conf.numbered (word) VALUES ('x')",
                    "SELECT COUNT(*) FROM conf.numbers",
                    "UPDATE conf.numbered SET word = 'y' WHERE id = 1",
                    "SELECT word FROM conf.numbered WHERE id = 1",
                ] {
                    asked(&mut client, say)?;
                    let pause = (n * 7 + round * 11) % 23;
                    std::thread::sleep(Duration::from_millis(pause as u64));
                }
            }
            Ok(())
        };
        let together = |clients: usize, rounds: usize| -> Outcome {
            let life = &life;
            std::thread::scope(|scope| {
                let lives: Vec<_> = (0..clients)
                    .map(|n| scope.spawn(move || life(n, rounds)))
                    .collect();
                lives.into_iter().try_for_each(|life| {
                    life.join()
                        .unwrap_or_else(|_| Err("a client is gone".to_owned()))
                })
            })
        };
        // Each core asks which column is numbered, when somebody needs a connection that lingers.
        together(CLIENTS, 3)?;
        let kinds = ["Com_insert", "Com_select", "Com_update"];
        let before = counted(&server, kinds)?;
        together(CLIENTS, ROUNDS)?;
        let after = counted(&server, kinds)?;
        let own = (CLIENTS * ROUNDS) as u64;
        for ((name, wanted), (before, after)) in kinds
            .iter()
            .zip([own, 2 * own, own])
            .zip(before.iter().zip(after))
        {
            let more = after - before;
            expect(more >= wanted && more <= wanted + wanted / 50 + 1, || {
                format!("{vendor}: {more} {name} where the clients have said {wanted}")
            })?;
        }
    }
    Ok(())
}

/// Texts with other values each time, executions of what is prepared and whole transactions are decided once and
/// answered at once, with ids that the client has chosen, too. Nothing but the cost of a query would show it
/// otherwise.
fn at_once(driver: Driver) -> Outcome {
    const ROUNDS: u32 = 50;
    let said = |error: std::io::Error| error.to_string();
    let seen = |proxy: &Proxy| -> Result<u32, String> {
        let count = proxy.admin(
            "SELECT Variable_Value FROM stats_mysql_global WHERE Variable_Name = 'Millrace_statements_at_once'",
        )?;
        count.trim().parse().map_err(|_| count)
    };
    for vendor in vendors() {
        let (server, proxy) = by_hand::one(driver, vendor)?;
        server.root(NUMBERED)?;
        server.root("INSERT INTO conf.numbered VALUES (1, 'a')")?;
        let mut client = log_in(&proxy)?;
        client
            .command(b"\x16SELECT word FROM conf.numbered WHERE id = 1")
            .map_err(said)?;
        let prepared = client.packet().map_err(said)?;
        while client.packet().map_err(said)?.first() != Some(&0xfe) {}
        let execute = [b"\x17", &prepared[1..5], &[0, 1, 0, 0, 0]].concat();
        let mut round = |n: u32| -> Result<u32, String> {
            let texts = [
                format!("SELECT word FROM conf.numbered WHERE id = {n}"),
                format!("UPDATE conf.numbered SET word = 'b{n}' WHERE id = 1"),
                "BEGIN".to_owned(),
                format!("SELECT word FROM conf.numbered WHERE id = {n}"),
                format!("DELETE FROM conf.numbered WHERE id = {}", 1000 + n),
                format!(
                    "INSERT INTO conf.numbered (id, word) VALUES ({}, 'c')",
                    1000 + n
                ),
                "COMMIT".to_owned(),
                // The same digest, and the server makes the id.
                format!("INSERT INTO conf.numbered (id, word) VALUES (0, 'd{n}')"),
            ];
            for text in &texts {
                asked(&mut client, text)?;
            }
            client.command(&execute).map_err(said)?;
            client.each_row(|_| ()).map_err(said)?;
            Ok(texts.len() as u32 + 1)
        };
        // What an INSERT's id means is asked when it has come often.
        for n in 0..70 {
            round(n)?;
        }
        let before = seen(&proxy)?;
        let all = (70..70 + ROUNDS).try_fold(0, |all, n| Ok::<_, String>(all + round(n)?))?;
        let at_once = seen(&proxy)? - before;
        expect(at_once >= all - all / 20, || {
            format!("{vendor}: {at_once} of {all} statements")
        })?;
    }
    Ok(())
}

/// Statements that show what a server calls the last id, in the ways in which it may come about.
const IDS: &[&str] = &[
    "SELECT LAST_INSERT_ID()",
    "INSERT INTO conf.numbered (word) VALUES ('made')",
    "SELECT LAST_INSERT_ID()",
    "SELECT LAST_INSERT_ID() AS `id`",
    "INSERT INTO conf.numbered (word) VALUES ('one'), ('two'), ('three')",
    "SELECT LAST_INSERT_ID()",
    "INSERT INTO conf.numbered (id, word) VALUES (1000, 'chosen')",
    "SELECT LAST_INSERT_ID()",
    "INSERT INTO conf.numbered VALUES (NULL, 'made')",
    "SELECT LAST_INSERT_ID() + 1",
    "INSERT INTO conf.numbered SET word = 'set'",
    "SELECT LAST_INSERT_ID()",
    "INSERT INTO conf.numbered (id, word) VALUES (2000, 'chosen again')",
    "SELECT LAST_INSERT_ID()",
    "INSERT INTO conf.numbered (word, id) VALUES ('made', NULL)",
    "SELECT LAST_INSERT_ID()",
    "INSERT INTO conf.numbered (word, id) VALUES ('chosen', 3000)",
    "SELECT LAST_INSERT_ID()",
    "INSERT INTO conf.numbered (word, id) VALUES ('made', 0)",
    "SELECT LAST_INSERT_ID()",
    "INSERT INTO conf.numbered (id, word) VALUES ('4000', 'chosen'), (NULL, 'made')",
    "SELECT LAST_INSERT_ID()",
    "INSERT INTO conf.numbered (id, word) VALUES (5000 + 1, 'chosen')",
    "SELECT LAST_INSERT_ID()",
    "INSERT IGNORE INTO conf.numbered (id, word) VALUES (1000, 'again')",
    "SELECT LAST_INSERT_ID()",
    "INSERT INTO conf.numbered (id, word) VALUES (1000, 'again') ON DUPLICATE KEY UPDATE word = 'other'",
    "SELECT LAST_INSERT_ID()",
    "BEGIN",
    "INSERT INTO conf.numbered (word) VALUES ('inside')",
    "SELECT LAST_INSERT_ID()",
    "COMMIT",
    "SELECT LAST_INSERT_ID()",
    "REPLACE INTO conf.numbered (word) VALUES ('replaced')",
    "SELECT LAST_INSERT_ID()",
    "SELECT LAST_INSERT_ID(7)",
    "SELECT LAST_INSERT_ID()",
    "INSERT INTO conf.numbered (word) SELECT 'selected'",
    "SELECT id = LAST_INSERT_ID() FROM conf.numbered ORDER BY id DESC LIMIT 1",
    "UPDATE conf.numbered SET word = 'x' WHERE id = LAST_INSERT_ID()",
    // A server tells of a trigger's change without a name: the connection is its session's.
    "INSERT INTO conf.triggered (word) VALUES ('by a trigger')",
    "SELECT LAST_INSERT_ID()",
    "INSERT INTO conf.triggered (word) VALUES ('by a trigger')",
    "SELECT LAST_INSERT_ID()",
    "INSERT INTO conf.triggered (id, word) VALUES (NULL, 'by a trigger')",
    "SELECT LAST_INSERT_ID()",
    "INSERT IGNORE INTO conf.triggered (id, word) VALUES (9000, 'by a trigger')",
    "SELECT LAST_INSERT_ID()",
];

/// Says [`IDS`] directly and through one connection that others use in between. All is said more
/// than once, so that what is learnt the first time is used later.
fn last_insert_id(driver: Driver) -> Outcome {
    use conformance::raw::Raw;
    const TABLES: &str = "DROP TABLE IF EXISTS conf.numbered, conf.triggered; \
        CREATE TABLE conf.numbered (id INT AUTO_INCREMENT PRIMARY KEY, word VARCHAR(20)) ENGINE=InnoDB; \
        CREATE TABLE conf.triggered (id INT AUTO_INCREMENT PRIMARY KEY, word VARCHAR(20)) ENGINE=InnoDB; \
        CREATE TRIGGER conf.numbers_it BEFORE INSERT ON conf.triggered FOR EACH ROW SET NEW.id = FLOOR(RAND() * 0) + 5 + (SELECT COUNT(*) FROM conf.numbered)";
    for vendor in vendors() {
        let (server, proxy) = lingering(driver, vendor)?;
        let _ = Client::MariaDbCli.run(
            app(server.port),
            &conformance::cache::root().join("conformance/scenarios/warm-up.txt"),
        );
        narrow(&proxy)?;
        for round in 0..3 {
            let said = |port: u16, others: bool| -> Result<String, String> {
                server.root(TABLES)?;
                let mut client = Raw::log_in(port, 0)?;
                let (mut all, mut inside) = (String::new(), false);
                for say in IDS {
                    // Whether a server has used an index is not what its client has asked.
                    let answer = client.query(say)?.replace("\\\"\\x00", "\\x02\\x00");
                    all.push_str(&format!("{say}: {answer}\n"));
                    inside |= *say == "BEGIN" || say.contains("trigger");
                    inside &= *say != "COMMIT";
                    if others && !inside {
                        Raw::log_in(port, 0)?.query("SELECT LAST_INSERT_ID(4321)")?;
                    }
                }
                Ok(all)
            };
            let direct = said(server.port, false)?;
            for others in [false, true] {
                let through = said(proxy.port, others)?;
                let mut pairs = through.lines().zip(direct.lines());
                if let Some((found, wanted)) = pairs.find(|(found, wanted)| found != wanted) {
                    let others = if others { " with others" } else { "" };
                    return Err(format!(
                        "{vendor}, round {round}{others}: {found:?} instead of {wanted:?} of\n{direct}"
                    ));
                }
            }
        }
    }
    Ok(())
}

/// With one connection for all: a session that keeps it for an id or for warnings is asked for them
/// when another needs it, of the same user or another, on the same core or another; and when the
/// server is to go.
fn pressed(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (server, proxy) = lingering(driver, vendor)?;
        server.root(NUMBERED)?;
        narrow(&proxy)?;
        let mut clients = Vec::new();
        for n in 1..7 {
            let mut client = log_in(&proxy)?;
            asked(
                &mut client,
                "INSERT INTO conf.numbered VALUES (NULL, 'kept')",
            )?;
            same(&settled(&proxy, &mut client)?, "InsertId")?;
            clients.push((n, client));
        }
        for (n, client) in &mut clients {
            let id = asked(client, "SELECT LAST_INSERT_ID() + 0")?
                .concat()
                .concat();
            same(&id, &n.to_string()).map_err(|error| format!("{vendor}: {error}"))?;
            asked(client, "SELECT CAST('x' AS SIGNED)")?;
            same(&settled(&proxy, client)?, "Diagnostics")?;
        }
        for (_, client) in &mut clients {
            let warnings = asked(client, "SHOW WARNINGS")?;
            expect(warnings.len() == 1, || format!("{vendor}: {warnings:?}"))?;
        }
        // One session keeps connections of two hostgroups: both are there for others.
        proxy.admin(&format!(
            "INSERT INTO mysql_servers (hostgroup_id, hostname, port, max_connections) VALUES (1, '127.0.0.1', {}, 1); \
             INSERT INTO mysql_query_rules (active, match_digest, destination_hostgroup, apply) VALUES (1, '^SELECT CAST', 1, 1); \
             LOAD MYSQL SERVERS TO RUNTIME; LOAD MYSQL QUERY RULES TO RUNTIME",
            server.port
        ))?;
        let mut both = log_in(&proxy)?;
        asked(&mut both, "SELECT CAST('x' AS SIGNED)")?;
        same(&settled(&proxy, &mut both)?, "Diagnostics")?;
        asked(&mut both, "INSERT INTO conf.numbered VALUES (NULL, 'kept')")?;
        asked(&mut both, "SELECT CAST('x' AS SIGNED)")?;
        same(&settled(&proxy, &mut both)?, "Diagnostics InsertId")?;
        // Nobody needs the one that was listed first.
        let mut other = beside(&proxy, &both)?;
        asked(&mut other, "SELECT COUNT(*) FROM conf.numbered")?;
        same(
            &asked(&mut both, "SELECT LAST_INSERT_ID() + 0")?
                .concat()
                .concat(),
            "7",
        )?;
        drop(both);
        // Another user needs a connection of his own.
        asked(
            &mut clients[0].1,
            "INSERT INTO conf.numbered VALUES (NULL, 'kept')",
        )?;
        proxy.query("SELECT 1")?;
        let id = asked(&mut clients[0].1, "SELECT LAST_INSERT_ID()")?
            .concat()
            .concat();
        same(&id, "8").map_err(|error| format!("{vendor}: {error}"))?;
        // A server that is to go gets its connections back.
        asked(
            &mut clients[1].1,
            "INSERT INTO conf.numbered VALUES (NULL, 'kept')",
        )?;
        proxy.admin(
            "UPDATE mysql_servers SET status = 'OFFLINE_SOFT'; LOAD MYSQL SERVERS TO RUNTIME",
        )?;
        soon("0", || used(&proxy))?;
    }
    Ok(())
}
