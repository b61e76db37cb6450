//! Statements, transactions and silence that take too long.

use std::time::{Duration, Instant};
use std::{io, thread};

use conformance::by_hand::Raw;
use conformance::proxy::{Driver, Proxy};
use conformance::raw as packets;
use conformance::servers::Vendor;
use conformance::trials::{self, expect, same, vendors_in_turn};
use conformance::watch::HANGS;
use wire::caps;

use super::kills::LONG;
use super::{Outcome, asked, is_error, log_in, one, running};

pub(super) fn delayed(driver: Driver) -> Outcome {
    let (server, proxy) = one(driver, Vendor::MariaDb)?;
    proxy
        .admin("INSERT INTO mysql_query_rules (rule_id, active, match_digest, delay, apply) VALUES (1, 1, '^INSERT', 4000, 1)")?;
    proxy.admin("LOAD MYSQL QUERY RULES TO RUNTIME")?;
    let mut killer = log_in(&proxy)?;
    for (id, kill) in [(1, "KILL QUERY"), (2, "KILL")] {
        let mut client = log_in(&proxy)?;
        client
            .query(&format!("INSERT INTO conf.scratch VALUES ({id}, 'late')"))
            .map_err(|error| error.to_string())?;
        thread::sleep(Duration::from_millis(200));
        asked(&mut killer, &format!("{kill} {}", client.id))?;
        let said = client.rows();
        match kill {
            "KILL QUERY" => is_error(&said, "1317")?,
            _ => expect(
                said.as_ref()
                    .is_err_and(|error| error.kind() != io::ErrorKind::Other),
                || format!("{kill}: {said:?}"),
            )?,
        }
        let goes_on = client.ask("SELECT 1").is_ok();
        expect(goes_on == (kill == "KILL QUERY"), || {
            format!("after {kill} the session goes on: {goes_on}")
        })?;
    }
    // Whose delay began later is served, and they are not.
    asked(&mut killer, "INSERT INTO conf.scratch VALUES (3, 'later')")?;
    let there = server.root("SELECT * FROM conf.scratch")?;
    same(there.trim(), "id\twords\n3\tlater")
}

/// Ends a statement that takes too long: what else is on the connection stays there; where nothing
/// is, the connection goes.
pub(super) fn over_time(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let (server, proxy) = one(driver, vendor)?;
        proxy.admin(
            "INSERT INTO mysql_query_rules (rule_id, active, match_pattern, timeout, apply) VALUES (1, 1, 'ENDLESS|FOR UPDATE', 400, 1); LOAD MYSQL QUERY RULES TO RUNTIME",
        )?;
        let mut client = log_in(&proxy)?;
        let is_late = |client: &mut Raw, sql: &str| -> Outcome {
            let said = client.ask(sql);
            let words =
                "1907 70100 Query execution was interrupted, query_timeout exceeded (400ms)";
            let right = said
                .as_ref()
                .is_err_and(|error| error.to_string().replace('#', "") == words);
            expect(right, || format!("{vendor}: {sql}: {said:?}"))
        };
        // Nothing is there.
        is_late(&mut client, LONG)?;
        running(&server, "ENDLESS", 0)?;
        for turn in 0..2 {
            asked(&mut client, "BEGIN")?;
            asked(
                &mut client,
                &format!("INSERT INTO conf.scratch VALUES ({turn}, 'kept')"),
            )?;
            let number = asked(
                &mut client,
                "SELECT CONNECTION_ID() + 0 * IFNULL(IS_USED_LOCK('none'), 0)",
            )?;
            is_late(&mut client, LONG)?;
            running(&server, "ENDLESS", 0)?;
            let kept =
                asked(&mut client, "SELECT COUNT(*), CONNECTION_ID() + 0 * IFNULL(IS_USED_LOCK('none'), 0) FROM conf.scratch")?
                    .concat();
            expect(
                kept == [(turn + 1).to_string(), number.concat().concat()],
                || format!("{vendor}: {kept:?}, {number:?}"),
            )?;
            asked(&mut client, "COMMIT")?;
        }
        // It waits for a lock, and the session has one, too.
        let mut other = log_in(&proxy)?;
        asked(&mut client, "SELECT GET_LOCK('over_time', 1)")?;
        asked(&mut client, "CREATE TEMPORARY TABLE conf.mine (id INT)")?;
        asked(&mut other, "BEGIN")?;
        asked(&mut other, "UPDATE conf.scratch SET words = 'locked'")?;
        is_late(&mut client, "SELECT id FROM conf.scratch FOR UPDATE")?;
        asked(&mut client, "INSERT INTO conf.mine VALUES (5)")?;
        let locked = asked(&mut other, "SELECT IS_USED_LOCK('over_time') IS NOT NULL")?;
        expect(locked == [["1"]], || format!("{vendor}: {locked:?}"))?;
        asked(&mut other, "COMMIT")?;
        let there = asked(
            &mut client,
            "SELECT COUNT(*) FROM conf.scratch WHERE words = 'locked' FOR UPDATE",
        )?;
        expect(there == [["2"]], || format!("{vendor}: {there:?}"))?;
        // Only the server's answer that was interrupted is replaced.
        asked(&mut client, "BEGIN")?;
        let (code, rest) = (
            "1317",
            "SELECT 'ENDLESS', REPEAT('x', 20000), SLEEP(0.05) FROM conf.numbers",
        );
        client.query(rest).map_err(|error| error.to_string())?;
        let said = client.each_row(|_| ());
        expect(
            said.as_ref()
                .is_err_and(|error| error.to_string().starts_with(code)),
            || format!("{vendor}: {said:?}"),
        )?;
        asked(&mut client, "ROLLBACK")?;
        let mine = asked(&mut client, "SELECT id FROM conf.mine")?;
        expect(mine == [["5"]], || format!("{vendor}: {mine:?}"))?;
        drop(client);
        in_the_buffer(vendor, &proxy)?;
    }
    Ok(())
}

/// Rows that its server has, and has not sent, when the statement is interrupted: the error is the
/// first packet of the answer.
fn in_the_buffer(vendor: Vendor, proxy: &Proxy) -> Outcome {
    proxy.admin(
        "INSERT INTO mysql_query_rules (rule_id, active, match_pattern, timeout, apply) VALUES (2, 1, 'SLOWLY', 1500, 1); LOAD MYSQL QUERY RULES TO RUNTIME",
    )?;
    const SLOWLY: &str = "SELECT /* SLOWLY */ id, SLEEP(0.4) FROM conf.numbers LIMIT 40";
    const LATE: &str =
        r"\xffs\x07#70100Query execution was interrupted, query_timeout exceeded (1500ms)";
    let mut client = packets::Raw::log_in(
        proxy.port,
        caps::MULTI_STATEMENTS | caps::MULTI_RESULTS | caps::DEPRECATE_EOF,
    )?;
    client.query("BEGIN")?;
    client.query("INSERT INTO conf.scratch VALUES (77, 'kept')")?;
    client.prepare(SLOWLY)?;
    let said = client.query(SLOWLY)?;
    expect(said.trim() == format!("1 {LATE}"), || {
        format!("{vendor}: {said}")
    })?;
    let said = client.execute(0, 0, b"")?;
    expect(said.trim() == format!("1 {LATE}"), || {
        format!("{vendor}: prepared: {said}")
    })?;
    // The second of two goes on where the first has ended.
    let said = client.query(&format!("SELECT 1; {SLOWLY}"))?;
    let packets: Vec<_> = said
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let numbers: Vec<usize> = packets
        .iter()
        .filter_map(|line| line.split_whitespace().next()?.parse().ok())
        .collect();
    let in_order = numbers
        .iter()
        .enumerate()
        .all(|(at, number)| *number == at + 1)
        && numbers.len() == packets.len();
    expect(
        in_order && numbers.len() > 3 && said.trim().ends_with(LATE),
        || format!("{vendor}: {said}"),
    )?;
    let kept = client.query("SELECT words FROM conf.scratch WHERE id = 77")?;
    expect(kept.contains("kept"), || format!("{vendor}: {kept}"))?;
    client.query("ROLLBACK")?;
    let gone = client.query("SELECT words FROM conf.scratch WHERE id = 77")?;
    expect(!gone.contains("kept"), || format!("{vendor}: {gone}"))
}

pub(super) fn long_transaction(driver: Driver) -> Outcome {
    let (_server, proxy) = one(driver, Vendor::MariaDb)?;
    proxy.admin("SET mysql-max_transaction_time=2500; LOAD MYSQL VARIABLES TO RUNTIME")?;
    let mut other = log_in(&proxy)?;
    let mut client = log_in(&proxy)?;
    asked(&mut client, "BEGIN")?;
    asked(
        &mut client,
        "INSERT INTO conf.scratch VALUES (1, 'never committed')",
    )?;
    let until = Instant::now() + HANGS;
    // It is never silent for long, so that no other limit ends it.
    while client.ask("SELECT 1").is_ok() {
        asked(&mut other, "SELECT 1")?;
        expect(Instant::now() < until, || {
            "the transaction is open for 20 seconds".to_owned()
        })?;
        thread::sleep(Duration::from_millis(100));
    }
    // Whoever has no transaction goes on.
    let there = asked(&mut other, "SELECT COUNT(*) FROM conf.scratch")?;
    expect(there == [["0"]], || format!("committed were {there:?}"))
}

pub(super) fn chained(driver: Driver) -> Outcome {
    let (_server, proxy) = one(driver, Vendor::MariaDb)?;
    proxy.admin("SET mysql-max_transaction_time=2500; LOAD MYSQL VARIABLES TO RUNTIME")?;
    for again in ["COMMIT AND CHAIN", "BEGIN"] {
        let mut client = log_in(&proxy)?;
        asked(&mut client, "BEGIN")?;
        for _ in 0..12 {
            thread::sleep(Duration::from_millis(250));
            asked(&mut client, again)?;
        }
    }
    Ok(())
}

/// SET TRANSACTION is none yet.
pub(super) fn idle_transaction(driver: Driver) -> Outcome {
    let (_server, proxy) = one(driver, Vendor::MariaDb)?;
    proxy.admin("SET mysql-max_transaction_idle_time=1000; LOAD MYSQL VARIABLES TO RUNTIME")?;
    let (mut open, mut announced, mut none) = (log_in(&proxy)?, log_in(&proxy)?, log_in(&proxy)?);
    asked(&mut open, "BEGIN")?;
    asked(
        &mut announced,
        "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
    )?;
    asked(&mut none, "SELECT 1")?;
    let last = open.packet().map_err(|error| error.to_string())?;
    expect(last.first() == Some(&0xff), || {
        last.escape_ascii().to_string()
    })?;
    expect(open.packet().is_err(), || "the session goes on".to_owned())?;
    thread::sleep(Duration::from_millis(500));
    asked(&mut announced, "SELECT 1")?;
    asked(&mut none, "SELECT 1").map(drop)
}

/// A server closes the connection then, and not sooner for anybody else.
pub(super) fn own_patience(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let (_server, proxy) = one(driver, vendor)?;
        let (mut short, mut other) = (log_in(&proxy)?, log_in(&proxy)?);
        asked(&mut other, "SELECT 1")?;
        asked(&mut short, "SET SESSION wait_timeout = 1")?;
        same(
            &asked(&mut short, "SELECT @@wait_timeout")?
                .concat()
                .concat(),
            "1",
        )?;
        let last = short.packet().map_err(|error| error.to_string())?;
        let code = last
            .get(1..3)
            .map(|code| u16::from_le_bytes([code[0], code[1]]));
        expect(last.first() == Some(&0xff) && code == Some(4031), || {
            last.escape_ascii().to_string()
        })?;
        expect(short.packet().is_err(), || "the session goes on".to_owned())?;
        asked(&mut other, "SELECT 1")?;
    }
    Ok(())
}

/// One whose machine has lost its power says no farewell: the kernel asks (timer 02 of the accepted
/// socket, proc(5)).
pub(super) fn probed(driver: Driver) -> Outcome {
    let (_server, proxy) = one(driver, Vendor::MariaDb)?;
    let timers = || -> Result<Vec<String>, String> {
        let table = std::fs::read_to_string("/proc/net/tcp").map_err(|error| error.to_string())?;
        let here = format!("0100007F:{:04X}", proxy.port);
        let fields = table
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>());
        let ours = fields
            .filter(|fields| fields.get(1) == Some(&here.as_str()) && fields.get(3) == Some(&"01"));
        Ok(ours
            .filter_map(|fields| fields.get(5).map(|timer| timer[..2].to_owned()))
            .collect())
    };
    let _client = log_in(&proxy)?;
    trials::soon("02", || Ok(timers()?.concat()))?;
    proxy.admin("SET mysql-use_tcp_keepalive=false; LOAD MYSQL VARIABLES TO RUNTIME")?;
    let _another = log_in(&proxy)?;
    trials::soon("0002", || {
        let mut timers = timers()?;
        timers.sort();
        Ok(timers.concat())
    })
}

/// Byte for byte, for longer than it may be silent: it is that only when nothing comes any more,
/// and its transaction is no younger for it.
pub(super) fn slow_statement(driver: Driver) -> Outcome {
    let text = b"\x03SELECT 'slow and steady'";
    let bytes = [&(text.len() as u32).to_le_bytes()[..], text].concat();
    let (_server, proxy) = one(driver, Vendor::MariaDb)?;
    let slowly = |client: &mut Raw, bytes: &[u8]| {
        for byte in bytes {
            client.bytes(&[*byte])?;
            thread::sleep(Duration::from_millis(100));
        }
        Ok::<_, io::Error>(())
    };
    for (limit, begins) in [
        ("mysql-max_transaction_idle_time", "BEGIN"),
        ("mysql-wait_timeout", "SELECT 1"),
    ] {
        proxy.admin(&format!(
            "SET {limit}=1000; LOAD MYSQL VARIABLES TO RUNTIME"
        ))?;
        let mut client = log_in(&proxy)?;
        asked(&mut client, begins)?;
        slowly(&mut client, &bytes).map_err(|error| format!("{limit}: {error}"))?;
        let said = client.rows().map_err(|error| format!("{limit}: {error}"))?;
        expect(said == [["slow and steady"]], || format!("{said:?}"))?;
        // It says no more.
        client
            .bytes(&bytes[..8])
            .map_err(|error| error.to_string())?;
        let last = client.packet().map_err(|error| error.to_string())?;
        expect(last.starts_with(b"\xff\xbf\x0f"), || {
            last.escape_ascii().to_string()
        })?;
    }
    proxy.admin("SET mysql-wait_timeout=28800000; SET mysql-max_transaction_time=1500; LOAD MYSQL VARIABLES TO RUNTIME")?;
    let mut client = log_in(&proxy)?;
    asked(&mut client, "BEGIN")?;
    let begun = Instant::now();
    let _until_it_is_gone = slowly(&mut client, &[&bytes[..], &bytes].concat());
    let last = client.packet();
    let is_ended = last
        .as_ref()
        .map_or(true, |last| last.starts_with(b"\xff\xbf\x0f"));
    expect(is_ended && begun.elapsed() < HANGS, || {
        format!("{last:?} after {:?}", begun.elapsed())
    })
}
