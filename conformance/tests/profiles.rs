//! Views that servers give a session of its own statements, profiles and traces: nothing of the proxy's is
//! among it.
#![forbid(unsafe_code)]

use conformance::beside::asked;
use conformance::by_hand::{self, Raw};
use conformance::proxy::Driver;
use conformance::servers::vendors;
use conformance::trials::{self, expect, same};
use std::thread;
use std::time::Duration;

type Outcome = Result<(), String>;

fn main() {
    trials::run(&[
        ("profiles_are_of_what_the_session_has_said", profiled),
        ("a_trace_is_of_the_statement_before", traced),
        (
            "what_was_said_while_it_was_profiled_is_known_after_it",
            known,
        ),
    ])
}

/// Routines, a trigger and a table of a few rows.
const OBJECTS: &str = "
    CREATE FUNCTION conf.f(a TEXT) RETURNS INT DETERMINISTIC RETURN LENGTH(a) > 0;
    CREATE PROCEDURE conf.p() SELECT 1 INTO @got;
    CREATE TABLE conf.traced (id INT AUTO_INCREMENT PRIMARY KEY, a INT);
    CREATE TABLE conf.fired (a INT);
    CREATE TRIGGER conf.fires BEFORE INSERT ON conf.fired FOR EACH ROW SET @fired = NEW.a;
    INSERT INTO conf.traced (a) VALUES (1), (2), (3);";

/// Statements that leave a question to whoever shares connections.
const STATEMENTS: [&str; 16] = [
    "SELECT CAST('x' AS DECIMAL)",
    "INSERT INTO traced (a) VALUES (5)",
    "SELECT f('text')",
    "CALL p()",
    "SET @a = 1 + 1",
    "SET @b = (SELECT MAX(id) FROM numbers)",
    "SELECT @a, @b",
    "SET time_zone = '+01:00'",
    "SET sql_mode = CONCAT(@@sql_mode, ',NO_ZERO_DATE')",
    "SELECT SQL_CALC_FOUND_ROWS id FROM numbers LIMIT 1",
    "INSERT INTO fired VALUES (3)",
    "SELECT nosuch FROM traced",
    "SHOW VARIABLES LIKE 'autocommit'",
    "UPDATE traced SET a = a + 1 WHERE id = 1",
    "SELECT GET_LOCK('traced', 1)",
    "SELECT RELEASE_LOCK('traced')",
];

/// A client that has said something before. What has no answer for a while may be asked for behind
/// its back.
fn come(port: u16) -> Result<Raw, String> {
    let mut client = Raw::log_in_to(port, b"conf").map_err(|error| error.to_string())?;
    for before in [
        "SELECT f('before')",
        "SET @before = 1 + 1",
        "INSERT INTO traced (a) VALUES (4)",
    ] {
        say(&mut client, before);
    }
    Ok(client)
}

fn say(client: &mut Raw, statement: &str) {
    let _may_fail = client.ask(statement);
    thread::sleep(Duration::from_millis(30));
}

fn profiled(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (server, proxy) = by_hand::one(driver, vendor)?;
        server.root(OBJECTS)?;
        let shown = |port| -> Result<String, String> {
            let mut client = come(port)?;
            for statement in ["SET profiling_history_size = 100", "SET profiling = 1"] {
                asked(&mut client, statement)?;
            }
            for statement in STATEMENTS {
                say(&mut client, statement);
            }
            let profiles = asked(&mut client, "SHOW PROFILES")?;
            let texts: Vec<_> = profiles
                .into_iter()
                .filter_map(|row| row.last().cloned())
                .collect();
            Ok(texts.join("\n"))
        };
        let direct = shown(server.port)?;
        expect(direct.contains("SET @a = 1 + 1"), || direct.clone())?;
        same(&shown(proxy.port)?, &direct).map_err(|why| format!("{vendor}: {why}"))?;
    }
    Ok(())
}

fn traced(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (server, proxy) = by_hand::one(driver, vendor)?;
        server.root(OBJECTS)?;
        let shown = |port| -> Result<String, String> {
            let mut client = come(port)?;
            asked(&mut client, "SET optimizer_trace = 'enabled=on'")?;
            let mut seen = String::new();
            for statement in STATEMENTS {
                say(&mut client, statement);
                // The first line is the query of the trace.
                for trace in asked(
                    &mut client,
                    "SELECT QUERY, f(TRACE) FROM information_schema.OPTIMIZER_TRACE",
                )? {
                    seen += &format!("{statement}: {trace:?}\n");
                }
            }
            Ok(seen)
        };
        let direct = shown(server.port)?;
        expect(direct.contains("SELECT f('text')"), || direct.clone())?;
        same(&shown(proxy.port)?, &direct).map_err(|why| format!("{vendor}: {why}"))?;
    }
    Ok(())
}

/// Values that a session has set go with it to other connections again, once profiling is off.
fn known(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (server, proxy) = by_hand::one(driver, vendor)?;
        server.root(OBJECTS)?;
        let mut client = come(proxy.port)?;
        for statement in ["SET profiling = 1"].iter().chain(&STATEMENTS) {
            say(&mut client, statement);
        }
        say(&mut client, "SET profiling = 0");
        let read = "SELECT @a, @b > 0, @@time_zone, @@sql_mode LIKE '%NO_ZERO_DATE%', @got, @fired";
        for _ in 0..2 {
            let found = asked(&mut client, read)?;
            expect(found == [["2", "1", "+01:00", "1", "1", "3"]], || {
                format!("{vendor}: {found:?}")
            })?;
        }
    }
    Ok(())
}
