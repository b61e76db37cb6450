//! Transactions whose server dies, and that go on elsewhere; and those that may not.
//!
//! docs/features/transaction-replay.md
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use conformance::by_hand::{self, Raw};
use conformance::proxy::{Driver, Proxy, Wish};
use conformance::relay::{self, Lost};
use conformance::servers::{Server, Vendor, vendors};
use conformance::trials::{self, expect, same, soon};

type Outcome = Result<(), String>;

fn main() {
    trials::run(&[
        (
            "a_transaction_goes_on_where_another_server_is",
            goes_on_elsewhere,
        ),
        (
            "an_idle_transaction_leaves_a_server_that_is_cut_off",
            at_rest,
        ),
        ("a_result_that_differs_is_an_error", differs),
        ("a_lost_commit_is_never_said_again", lost_commit),
        (
            "the_mark_of_a_lost_commit_tells_what_became_of_it",
            marked_commit,
        ),
        ("a_mark_ends_nothing_that_a_commit_leaves", leaves),
        ("the_victim_of_a_deadlock_is_run_again", deadlock),
        ("what_cannot_be_run_again_ends_as_before", unfit),
        (
            "under_kill_9_nothing_is_lost_and_nothing_is_done_twice",
            under_kills,
        ),
    ])
}

/// Tables of each server.
const TABLES: &str = "CREATE DATABASE re; \
    CREATE TABLE re.t (a INT, b INT) ENGINE=InnoDB; \
    CREATE TABLE re.made (id INT AUTO_INCREMENT PRIMARY KEY, a INT) ENGINE=InnoDB; \
    CREATE TABLE re.mine (a INT) ENGINE=MyISAM; \
    CREATE TABLE re.acc (id INT PRIMARY KEY, sum INT NOT NULL) ENGINE=InnoDB; \
    INSERT INTO re.acc VALUES (1, 1000), (2, 1000), (3, 1000), (4, 1000); \
    CREATE TABLE re.done (n BIGINT, a INT, b INT) ENGINE=InnoDB";

/// A proxy before these ports, the first of which serves as long as it can.
fn before(
    driver: Driver,
    servers: &[&Server],
    ports: &[u16],
    settings: &str,
) -> Result<Proxy, String> {
    for server in servers {
        server.root(by_hand::CREATE_USER)?;
        server.root(TABLES)?;
    }
    let mut wish = Wish::in_front_of(servers[0]);
    wish.add_open_user();
    wish.variables = format!(
        "{}\nmonitor_enabled = false\nshun_recovery_time_sec = 1\nconnect_timeout_server_max = 5000",
        wish.variables
    );
    let of = |(at, port): (usize, &u16)| {
        let weight = u16::from(at == 0);
        format!("{{ address = \"127.0.0.1\", port = {port}, hostgroup = 0, weight = {weight} }}")
    };
    wish.servers = ports
        .iter()
        .enumerate()
        .map(of)
        .collect::<Vec<_>>()
        .join(",\n");
    let proxy = Proxy::start(driver, &wish)?;
    proxy.admin(&format!(
        "INSERT INTO mysql_hostgroup_attributes (hostgroup_id, hostgroup_settings) \
         VALUES (0, '{{\"weight_zero\": \"last\", \"transaction_replay\": 1, \
         \"transaction_replay_timeout_ms\": 300000{settings}}}'); LOAD MYSQL SERVERS TO RUNTIME"
    ))?;
    Ok(proxy)
}

/// Two servers, and a proxy before them.
fn two(driver: Driver, vendor: Vendor, settings: &str) -> Result<([Server; 2], Proxy), String> {
    let servers = [Server::start(vendor)?, Server::start(vendor)?];
    let ports = [servers[0].port, servers[1].port];
    let proxy = before(driver, &[&servers[0], &servers[1]], &ports, settings)?;
    Ok((servers, proxy))
}

fn log_in(proxy: &Proxy) -> Result<Raw, String> {
    Raw::log_in(proxy.port).map_err(|error| error.to_string())
}

/// Says these one after the other, and returns the rows of the last.
fn say(client: &mut Raw, texts: &[&str]) -> Result<String, String> {
    let mut last = Vec::new();
    for sql in texts {
        last = client.ask(sql).map_err(|error| format!("{sql}: {error}"))?;
    }
    Ok(last
        .iter()
        .map(|row| row.join(" "))
        .collect::<Vec<_>>()
        .join(", "))
}

/// Counters of replays that are not zero, by the end of their names.
fn counted(proxy: &Proxy) -> Result<String, String> {
    let said = proxy.admin(
        "SELECT replace(replace(Variable_Name, 'Millrace_', ''), 'transaction_replays', 'replays') || '=' || Variable_Value \
         FROM stats_mysql_global WHERE Variable_Value > 0 AND (Variable_Name LIKE 'Millrace_transaction_replays%' \
         OR Variable_Name = 'Millrace_changes_in_doubt') ORDER BY 1",
    )?;
    Ok(said.trim().replace('\n', " "))
}

/// The first column of what root reads there, in one line.
fn there(server: &Server, sql: &str) -> Result<String, String> {
    let said = server.root(sql)?;
    Ok(said.lines().skip(1).collect::<Vec<_>>().join(" "))
}

/// COM_STMT_PREPARE of a statement with two integers; its id.
fn prepare(client: &mut Raw, sql: &str) -> Result<u32, String> {
    let words = |error: std::io::Error| format!("{sql}: {error}");
    client
        .command(&[&[0x16], sql.as_bytes()].concat())
        .map_err(words)?;
    let first = client.packet().map_err(words)?;
    let id = first.get(1..5).and_then(|id| <[u8; 4]>::try_from(id).ok());
    let id = id
        .filter(|_| first.first() == Some(&0))
        .map(u32::from_le_bytes);
    let id = id.ok_or_else(|| by_hand::complaint(&first).to_string())?;
    let (columns, params) = (
        u16::from_le_bytes([first[5], first[6]]),
        u16::from_le_bytes([first[7], first[8]]),
    );
    for definitions in [params, columns].into_iter().filter(|count| *count > 0) {
        for _with_its_end in 0..=definitions {
            client.packet().map_err(words)?;
        }
    }
    Ok(id)
}

/// COM_STMT_EXECUTE with two integers, of a statement without rows.
fn execute(client: &mut Raw, id: u32, values: [i32; 2]) -> Result<(), String> {
    let mut payload = vec![0x17];
    payload.extend_from_slice(&id.to_le_bytes());
    payload.extend_from_slice(&[0, 1, 0, 0, 0, 0, 1, 3, 0, 3, 0]);
    values
        .iter()
        .for_each(|value| payload.extend_from_slice(&value.to_le_bytes()));
    let answer = client.command(&payload).and_then(|()| client.packet());
    match answer.map_err(|error| error.to_string())? {
        ok if ok.first() == Some(&0) => Ok(()),
        error => Err(by_hand::complaint(&error).to_string()),
    }
}

/// Killed between statements: whatever comes next finds all that was done on the other server.
fn goes_on_elsewhere(driver: Driver) -> Outcome {
    let cases = [
        ("SET autocommit = 0", "COMMIT", "1 7"),
        ("BEGIN", "INSERT INTO re.t VALUES (2, 0)", "1 2 7 9"),
        (
            "START TRANSACTION",
            "SELECT a FROM re.t FOR UPDATE",
            "1 7 9",
        ),
        ("BEGIN", "ROLLBACK", ""),
    ];
    for vendor in vendors() {
        let most = if vendor == Vendor::MariaDb { 4 } else { 2 };
        for (begins, next, rows) in &cases[..most] {
            killed_before(driver, vendor, (begins, next), rows)
                .map_err(|words| format!("{vendor}, {begins}, {next}: {words}"))?;
        }
    }
    in_flight(driver)
}

/// The server is killed behind statements of all kinds. `rows`: what is there in the end.
fn killed_before(
    driver: Driver,
    vendor: Vendor,
    (begins, next): (&str, &str),
    rows: &str,
) -> Outcome {
    let ([mut first, second], proxy) = two(driver, vendor, "")?;
    let mut client = log_in(&proxy)?;
    let port = say(&mut client, &["USE re", "SELECT @@port"])?;
    same(&port, &first.port.to_string())?;
    say(&mut client, &[begins])?;
    let id = prepare(&mut client, "INSERT INTO re.t VALUES (?, ?)")?;
    let texts = [
        "INSERT INTO re.t VALUES (1, RAND() * 1000)",
        "INSERT INTO made (a) VALUES (5)",
        "INSERT INTO made (a) SELECT LAST_INSERT_ID()",
        "SAVEPOINT s",
        "DELETE FROM re.t",
        "ROLLBACK TO s",
        "SELECT a FROM re.t",
    ];
    say(&mut client, &texts)?;
    execute(&mut client, id, [7, 8])?;
    first.kill();
    say(&mut client, &[next]).map_err(|words| format!("{words}; {}", proxy.log()))?;
    let ends = matches!(next, "COMMIT" | "ROLLBACK");
    if !ends {
        same(&there(&second, "SELECT COUNT(*) FROM re.t")?, "0")?;
        execute(&mut client, id, [9, 9])?;
        say(&mut client, &["COMMIT"])?;
    }
    same(&there(&second, "SELECT a FROM re.t ORDER BY a")?, rows)?;
    let ids = "SELECT CONCAT(id, ':', a) FROM re.made ORDER BY id";
    let rolled_back = next == "ROLLBACK";
    same(
        &there(&second, ids)?,
        if rolled_back { "" } else { "1:5 2:1" },
    )?;
    // The session is as it was in all else.
    let after = ["COMMIT", "INSERT INTO t VALUES (3, 3)", "COMMIT"];
    say(&mut client, &after)?;
    same(
        &there(&second, "SELECT COUNT(*) FROM re.t WHERE a = 3")?,
        "1",
    )?;
    let counts = if rolled_back {
        ""
    } else {
        "replays=1 replays_succeeded=1"
    };
    same(&counted(&proxy)?, counts)
}

/// Killed while a statement waits for a lock there: it runs where nobody has it.
fn in_flight(driver: Driver) -> Outcome {
    let ([mut first, second], proxy) = two(driver, Vendor::MariaDb, "")?;
    let mut other = Raw::log_in(first.port).map_err(|error| error.to_string())?;
    say(
        &mut other,
        &["BEGIN", "UPDATE re.acc SET sum = 0 WHERE id = 1"],
    )?;
    let mut client = log_in(&proxy)?;
    say(
        &mut client,
        &["BEGIN", "UPDATE re.acc SET sum = sum - 1 WHERE id = 2"],
    )?;
    let update = "UPDATE re.acc SET sum = sum + 1 WHERE id = 1";
    client.query(update).map_err(|error| error.to_string())?;
    let waits = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE 'UPDATE re.acc SET sum = sum + 1%'";
    soon("1", || there(&first, waits))?;
    first.kill();
    client
        .rows()
        .map_err(|error| format!("{error}; {}", proxy.log()))?;
    say(&mut client, &["COMMIT"])?;
    same(
        &there(&second, "SELECT sum FROM re.acc WHERE id < 3 ORDER BY id")?,
        "1001 999",
    )?;
    same(&counted(&proxy)?, "replays=1 replays_succeeded=1")
}

/// An operator takes the server away: the session hears nothing of it.
fn at_rest(driver: Driver) -> Outcome {
    let ([first, second], proxy) = two(driver, Vendor::MariaDb, "")?;
    let mut client = log_in(&proxy)?;
    say(&mut client, &["BEGIN", "INSERT INTO re.t VALUES (1, 1)"])?;
    proxy.admin(&format!(
        "UPDATE mysql_servers SET status = 'OFFLINE_HARD' WHERE port = {}; LOAD MYSQL SERVERS TO RUNTIME",
        first.port
    ))?;
    soon("replays=1 replays_succeeded=1", || counted(&proxy))
        .map_err(|words| format!("{words}; {}", proxy.log()))?;
    say(&mut client, &["COMMIT"])?;
    same(&there(&second, "SELECT a FROM re.t")?, "1")?;
    same(&there(&first, "SELECT a FROM re.t")?, "")
}

/// A value that was read there is not here: the client hears of it, and nothing is left.
fn differs(driver: Driver) -> Outcome {
    for (settings, read, wanted) in [
        (
            "",
            "SELECT sum FROM re.acc WHERE id = 4",
            "replays=1 replays_differed=1",
        ),
        (
            "",
            "INSERT INTO re.made (a) VALUES (98765)",
            "replays=1 replays_differed=1",
        ),
        (
            ", \"transaction_replay_checksum\": \"no_insert_id\"",
            "INSERT INTO re.made (a) VALUES (98765)",
            "replays=1 replays_succeeded=1",
        ),
        (
            ", \"transaction_replay_checksum\": \"result_only\"",
            "UPDATE re.acc SET sum = 5 WHERE sum = 1000",
            "replays=1 replays_succeeded=1",
        ),
    ] {
        let ([mut first, second], proxy) = two(driver, Vendor::MariaDb, settings)?;
        second
            .root("UPDATE re.acc SET sum = 77 WHERE id = 4; INSERT INTO re.made (a) VALUES (0)")?;
        let mut client = log_in(&proxy)?;
        say(
            &mut client,
            &["BEGIN", "INSERT INTO re.t VALUES (98765, 1)", read],
        )?;
        first.kill();
        let said = say(&mut client, &["INSERT INTO re.t VALUES (2, 2)"]);
        same(&counted(&proxy)?, wanted)
            .map_err(|words| format!("{read}: {words}; {}", proxy.log()))?;
        if wanted.contains("succeeded") {
            said?;
            continue;
        }
        expect(said.is_err(), || format!("{read}: the session goes on"))?;
        soon("0", || second.transactions("TRUE"))?;
        same(&there(&second, "SELECT COUNT(*) FROM re.t")?, "0")?;
        let log = proxy.log();
        expect(log.contains("was not replayed: a result differed"), || {
            log.clone()
        })?;
        expect(!log.contains("98765"), || {
            format!("a value is in the log: {log}")
        })?;
    }
    Ok(())
}

/// A COMMIT, and a write without a transaction, that landed and whose answer was lost.
fn lost_commit(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let server = Server::start(vendor)?;
        let loses = relay::LastWords::default();
        let port =
            relay::start_that_loses(server.port, &loses).map_err(|error| error.to_string())?;
        let proxy = before(driver, &[&server], &[port], "")?;
        for (at, (texts, last)) in [
            (&["BEGIN", "INSERT INTO re.t VALUES (1, 1)"][..], "COMMIT"),
            (
                &["SET autocommit = 0", "INSERT INTO re.t VALUES (1, 1)"][..],
                "COMMIT",
            ),
            (
                &["BEGIN", "INSERT INTO re.t VALUES (1, 1)"][..],
                "CREATE TABLE re.new (a INT)",
            ),
            (&["BEGIN", "INSERT INTO re.t VALUES (1, 1)"][..], "BEGIN"),
            (&["DO 1"][..], "INSERT INTO re.t VALUES (1, 1)"),
        ]
        .into_iter()
        .enumerate()
        {
            let mut client = log_in(&proxy)?;
            say(&mut client, texts)?;
            *loses.lock().map_err(|error| error.to_string())? = Some(last.as_bytes().to_vec());
            let said = say(&mut client, &[last]);
            expect(said.is_err(), || {
                format!("{vendor}: {last}: the client hears of nothing")
            })?;
            let rows = there(&server, "SELECT COUNT(*) FROM re.t")?;
            same(&rows, &(at + 1).to_string())
                .map_err(|words| format!("{vendor}, {last}: {words}"))?;
        }
        let wanted = "changes_in_doubt=4 replays=4 replays_commits=2 replays_unfit=2";
        same(&counted(&proxy)?, wanted).map_err(|words| format!("{vendor}: {words}"))?;
    }
    Ok(())
}

/// The table of marks, as docs/features/transaction-replay.md has it.
const MARKS: &str = "CREATE DATABASE millrace; CREATE TABLE millrace.marks ( \
    proxy BIGINT UNSIGNED NOT NULL, slot INT UNSIGNED NOT NULL, mark BIGINT UNSIGNED NOT NULL, \
    at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, PRIMARY KEY (proxy, slot)) ENGINE=InnoDB";

/// A COMMIT that landed and whose answer was lost or is an error that leaves it open, one that never came, and one that the server
/// is still at when its client looks: each is done once, and its client reads OK. Without a table, and without the
/// right to see what is applied, it is an error as before.
fn marked_commit(driver: Driver) -> Outcome {
    for vendor in vendors() {
        for what in [Lost::Answer, Lost::Command, Lost::Connection, Lost::Error] {
            let server = Server::start(vendor)?;
            server.root(MARKS)?;
            let loses = relay::LastWords::default();
            let port = relay::start_that_loses_so(server.port, &loses, what)
                .map_err(|error| error.to_string())?;
            let marks = ", \"transaction_replay_marks\": \"millrace.marks\"";
            let proxy = before(driver, &[&server], &[port], marks)?;
            let words = |words: String| format!("{vendor}, {what:?}: {words}; {}", proxy.log());
            for (at, begin) in ["BEGIN", "SET autocommit = 0"].into_iter().enumerate() {
                let mut client = log_in(&proxy)?;
                say(&mut client, &[begin, "INSERT INTO re.t VALUES (1, 1)"])?;
                *loses.lock().map_err(|error| error.to_string())? = Some(b"COMMIT".to_vec());
                say(&mut client, &["COMMIT"]).map_err(words)?;
                // The session goes on as if nothing had been.
                let said = say(&mut client, &["SELECT COUNT(*) FROM re.t"]);
                same(&said.map_err(words)?, &(at + 1).to_string()).map_err(words)?;
                same(
                    &there(&server, "SELECT COUNT(*) FROM re.t")?,
                    &(at + 1).to_string(),
                )
                .map_err(words)?;
            }
            let wanted = match what {
                Lost::Command => "replays=2 replays_succeeded=2",
                Lost::Answer | Lost::Connection | Lost::Error => "replays=2 replays_landed=2",
            };
            same(&counted(&proxy)?, wanted).map_err(words)?;
        }
        blind_commits(driver, vendor)?;
    }
    Ok(())
}

/// Transactions whose last statement has warnings, ids and numbers of rows, and what is asked behind their
/// COMMITs: it is the same directly.
fn leaves(driver: Driver) -> Outcome {
    const WORK: [&[&str]; 5] = [
        &["INSERT INTO re.made (a) VALUES (1), (2)"],
        &["INSERT INTO re.t VALUES ('1x', 7)"],
        &[
            "UPDATE re.acc SET sum = sum + 1",
            "SELECT CAST('a' AS SIGNED)",
        ],
        &["DELETE FROM re.made", "SELECT id FROM re.acc LIMIT 2"],
        &[
            "INSERT INTO re.made (a) VALUES (9)",
            "REPLACE INTO re.acc VALUES (1, 5)",
        ],
    ];
    const ASKS: [&str; 5] = [
        "SHOW WARNINGS",
        "SHOW COUNT(*) WARNINGS",
        "SELECT ROW_COUNT()",
        "SELECT FOUND_ROWS()",
        "SELECT LAST_INSERT_ID()",
    ];
    for vendor in vendors() {
        let server = Server::start(vendor)?;
        server.root(MARKS)?;
        let marks = ", \"transaction_replay_marks\": \"millrace.marks\"";
        let proxy = before(driver, &[&server], &[server.port], marks)?;
        let said = |port: u16, work: &[&str], asks: &str| {
            let mut client = Raw::log_in(port).map_err(|error| error.to_string())?;
            let before = ["SET sql_mode = ''", "SELECT 1, 2", "BEGIN"];
            say(&mut client, &before)?;
            say(&mut client, work)?;
            client.query("COMMIT").map_err(|error| error.to_string())?;
            let committed = client.packet().map_err(|error| error.to_string())?;
            let answer = client.ask(asks).map_err(|error| error.to_string())?;
            Ok::<_, String>(format!("{committed:?} {answer:?}"))
        };
        let mut admin = Raw::log_in(server.port).map_err(|error| error.to_string())?;
        let mut transactions = 0;
        for (work, asks) in WORK.iter().flat_map(|work| ASKS.map(|asks| (work, asks))) {
            // Each begins with the same rows.
            let reset = [
                "DELETE FROM re.made",
                "ALTER TABLE re.made AUTO_INCREMENT = 1",
            ];
            say(&mut admin, &reset)?;
            let wanted = said(server.port, work, asks)?;
            say(&mut admin, &reset)?;
            let got = said(proxy.port, work, asks)?;
            same(&got, &wanted).map_err(|words| format!("{vendor}, {work:?}, {asks}: {words}"))?;
            transactions += 1;
        }
        let left = there(
            &server,
            "SELECT SUM(mark) > 0, COUNT(*) FROM millrace.marks",
        )?;
        same(&left, &format!("1\t{transactions}"))?;
    }
    Ok(())
}

/// Commits of which no mark tells.
fn blind_commits(driver: Driver, vendor: Vendor) -> Outcome {
    let server = Server::start(vendor)?;
    let loses = relay::LastWords::default();
    let port = relay::start_that_loses(server.port, &loses).map_err(|error| error.to_string())?;
    let marks = ", \"transaction_replay_marks\": \"millrace.marks\"";
    let proxy = before(driver, &[&server], &[port], marks)?;
    let lose = || -> Result<Result<String, String>, String> {
        let mut client = log_in(&proxy)?;
        say(&mut client, &["BEGIN", "INSERT INTO re.t VALUES (1, 1)"])?;
        *loses.lock().map_err(|error| error.to_string())? = Some(b"COMMIT".to_vec());
        Ok(say(&mut client, &["COMMIT"]))
    };
    let said = lose()?;
    expect(said.is_err(), || format!("{vendor}: {said:?}"))?;
    soon("true", || {
        Ok(proxy.log().contains("COMMIT was lost").to_string())
    })?;
    // A COMMIT that is not lost is done without its mark.
    let mut client = log_in(&proxy)?;
    say(
        &mut client,
        &["BEGIN", "INSERT INTO re.t VALUES (2, 2)", "COMMIT"],
    )?;
    // One that has only read has nothing to lose.
    say(&mut client, &["BEGIN", "SELECT COUNT(*) FROM re.t"])?;
    *loses.lock().map_err(|error| error.to_string())? = Some(b"COMMIT".to_vec());
    say(&mut client, &["COMMIT"]).map_err(|words| format!("{words}; {}", proxy.log()))?;
    let missing = proxy.admin(
        "SELECT Variable_Value FROM stats_mysql_global WHERE Variable_Name = 'Millrace_transaction_marks_missing'",
    )?;
    same(missing.trim(), "2")?;
    server.root(MARKS)?;
    server.root(
        "REVOKE ALL PRIVILEGES, GRANT OPTION FROM open@'%'; GRANT SELECT, INSERT, UPDATE, DELETE ON *.* TO open@'%'",
    )?;
    let said = lose()?;
    expect(said.is_err(), || format!("{vendor}: {said:?}"))?;
    soon("true", || {
        Ok(proxy.log().contains("REPLICATION CLIENT").to_string())
    })?;
    same(&there(&server, "SELECT COUNT(*) FROM re.t")?, "3")
}

/// Two clients that wait for each other: one of them is run again when the other is done.
fn deadlock(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let ([first, _second], proxy) = two(
            driver,
            vendor,
            ", \"transaction_replay_retry_on_deadlock\": 1",
        )?;
        let deadlocks =
            "SELECT COUNT FROM information_schema.INNODB_METRICS WHERE NAME = 'lock_deadlocks'";
        first.root("SET GLOBAL innodb_monitor_enable = 'lock_deadlocks'")?;
        let [mut one, mut other] = [log_in(&proxy)?, log_in(&proxy)?];
        say(
            &mut one,
            &["BEGIN", "UPDATE re.acc SET sum = sum - 10 WHERE id = 1"],
        )?;
        say(
            &mut other,
            &[
                "SET autocommit = 0",
                "UPDATE re.acc SET sum = sum - 20 WHERE id = 2",
            ],
        )?;
        let mut done = Vec::new();
        for (client, sql) in [
            (&mut one, "UPDATE re.acc SET sum = sum + 10 WHERE id = 2"),
            (&mut other, "UPDATE re.acc SET sum = sum + 20 WHERE id = 1"),
        ] {
            client.query(sql).map_err(|error| error.to_string())?;
        }
        // Who is not the victim ends first; the victim waits for its COMMIT.
        for mut client in [one, other] {
            done.push(thread::spawn(move || {
                let ended = client.rows().and_then(|_| client.ask("COMMIT"));
                ended.map_err(|error| error.to_string())
            }));
        }
        for client in done {
            let ended = client.join().map_err(|_| "a client panicked".to_owned())?;
            ended.map_err(|words| format!("{vendor}: {words}; {}", proxy.log()))?;
        }
        same(&there(&first, deadlocks)?, "1")?;
        same(
            &there(&first, "SELECT sum FROM re.acc WHERE id < 3 ORDER BY id")?,
            "1010 990",
        )?;
        same(&counted(&proxy)?, "replays=1 replays_succeeded=1")
            .map_err(|words| format!("{vendor}: {words}; {}", proxy.log()))?;
    }
    Ok(())
}

/// Statements, tables and sizes with which a transaction is not replayed.
fn unfit(driver: Driver) -> Outcome {
    for (settings, sql, wanted) in [
        (
            "",
            "CREATE TEMPORARY TABLE re.mine2 (a INT)",
            "replays=1 replays_unfit=1",
        ),
        ("", "SELECT GET_LOCK('re', 1)", "replays=1 replays_unfit=1"),
        ("", "SET @a = 1", "replays=1 replays_unfit=1"),
        ("", "SET time_zone = '+01:00'", "replays=1 replays_unfit=1"),
        (
            "",
            "INSERT INTO re.mine VALUES (1)",
            "replays=1 replays_unfit=1",
        ),
        ("", "CALL re.nothing()", "replays=1 replays_unfit=1"),
        (
            ", \"transaction_replay_max_size\": 500",
            "SELECT 'a text that is a little longer, and has its place among those that are kept'",
            "replays=1 replays_too_large=1",
        ),
    ] {
        let ([mut first, second], proxy) = two(driver, Vendor::MariaDb, settings)?;
        for server in [&first, &second] {
            server.root("CREATE PROCEDURE re.nothing() BEGIN END")?;
        }
        let mut client = log_in(&proxy)?;
        say(
            &mut client,
            &["BEGIN", "INSERT INTO re.t VALUES (1, 1)", sql],
        )?;
        say(&mut client, &["SELECT 1", "SELECT 2"])?;
        first.kill();
        let said = say(&mut client, &["INSERT INTO re.t VALUES (2, 2)"]);
        expect(said.is_err(), || format!("{sql}: the session goes on"))?;
        same(&counted(&proxy)?, wanted)
            .map_err(|words| format!("{sql}: {words}; {}", proxy.log()))?;
        same(&there(&second, "SELECT COUNT(*) FROM re.t")?, "0")?;
        same(&there(&second, "SELECT COUNT(*) FROM re.mine")?, "0")?;
    }
    Ok(())
}

/// Transfers of a client, each with a number of its own.
#[derive(Default)]
struct Transfers {
    /// Those whose COMMIT was answered.
    done: Vec<u64>,
    /// Those whose COMMIT was not.
    in_doubt: Vec<u64>,
}

/// Makes transfers until it is told to stop. Only a COMMIT may fail.
fn transfer(
    port: u16,
    from: u64,
    over: &AtomicBool,
    count: &AtomicU64,
) -> Result<Transfers, String> {
    let mut transfers = Transfers::default();
    let mut client = None;
    for n in (from..).step_by(10) {
        if over.load(Ordering::Relaxed) {
            break;
        }
        let one = match &mut client {
            Some(one) => one,
            none => none.insert(Raw::log_in(port).map_err(|error| error.to_string())?),
        };
        let (a, b) = (1 + n % 4, 1 + (n / 10) % 4);
        let texts = [
            "BEGIN".to_owned(),
            format!("INSERT INTO re.done VALUES ({n}, {a}, {b})"),
            format!("UPDATE re.acc SET sum = sum - 1 WHERE id = {}", a.min(b)),
            format!("UPDATE re.acc SET sum = sum + 1 WHERE id = {}", a.max(b)),
        ];
        for sql in &texts {
            one.ask(sql)
                .map_err(|error| format!("{n}: {sql}: {error}"))?;
        }
        match one.ask("COMMIT") {
            Ok(_) => {
                transfers.done.push(n);
                count.fetch_add(1, Ordering::Relaxed);
            }
            Err(_lost) => {
                transfers.in_doubt.push(n);
                client = None;
            }
        }
    }
    Ok(transfers)
}

/// Clients that move money while their server is killed and comes back.
fn under_kills(driver: Driver) -> Outcome {
    // What it has acknowledged it has.
    let keeps = ["--innodb-flush-log-at-trx-commit=1"];
    let mut server = Server::start_with(Vendor::MariaDb, &keeps)?;
    let settings =
        ", \"transaction_replay_attempts\": 1000, \"transaction_replay_retry_on_deadlock\": 1";
    let proxy = before(driver, &[&server], &[server.port], settings)?;
    let (over, count) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicU64::new(0)),
    );
    let clients: Vec<_> = (0..6)
        .map(|from| {
            let (port, over, count) = (proxy.port, over.clone(), count.clone());
            thread::spawn(move || transfer(port, from, &over, &count))
        })
        .collect();
    let more = |many: u64| {
        let wanted = count.load(Ordering::Relaxed) + many;
        let is_there = || {
            let is_over = clients.iter().any(thread::JoinHandle::is_finished);
            Ok((is_over || count.load(Ordering::Relaxed) >= wanted).to_string())
        };
        soon("true", is_there)
    };
    for _kill in 0..3 {
        more(30)?;
        server.restart()?;
    }
    more(30)?;
    over.store(true, Ordering::Relaxed);
    let mut all = Transfers::default();
    for client in clients {
        let own = client.join().map_err(|_| "a client panicked".to_owned())?;
        let own = own.map_err(|words| format!("{words}; {}", proxy.log()))?;
        all.done.extend(own.done);
        all.in_doubt.extend(own.in_doubt);
    }
    let said = there(&server, "SELECT n FROM re.done")?;
    let mut times: BTreeMap<u64, u32> = BTreeMap::new();
    for n in said.split_whitespace().filter_map(|n| n.parse().ok()) {
        *times.entry(n).or_default() += 1;
    }
    let twice: Vec<_> = times.iter().filter(|(_, times)| **times > 1).collect();
    expect(twice.is_empty(), || format!("done twice: {twice:?}"))?;
    let lost: Vec<_> = all.done.iter().filter(|n| !times.contains_key(n)).collect();
    expect(lost.is_empty(), || {
        format!("acknowledged, and not there: {lost:?}")
    })?;
    let known = all.done.len()
        + all
            .in_doubt
            .iter()
            .filter(|n| times.contains_key(n))
            .count();
    same(&times.len().to_string(), &known.to_string())?;
    same(&there(&server, "SELECT SUM(sum) FROM re.acc")?, "4000")?;
    let counts = counted(&proxy)?;
    expect(counts.contains("replays_succeeded"), || {
        format!("nothing was replayed: {counts}")
    })
}
