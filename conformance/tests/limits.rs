//! What one session may do to another, and what the proxy does to a server for a client: KILL, and
//! its end when a client leaves.
#![forbid(unsafe_code)]

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use conformance::beside::beside;
use conformance::by_hand::{self, Raw};
use conformance::clients::{Client, app};
use conformance::proxy::{self, Driver, Proxy, Wish};
use conformance::raw as packets;
use conformance::relay;
use conformance::servers::{Server, Vendor, vendors};
use conformance::trials::{self, expect, same, vendors_in_turn};
use conformance::watch::HANGS;
use wire::caps;
use wire::frame::{Algorithm, Codecs, Frames};
use wire::response::Expect;

type Outcome = Result<(), String>;

fn main() {
    trials::run_on_both(&[
        (
            "kill_query_ends_a_statement_and_leaves_its_transaction",
            kill_query,
        ),
        ("kill_ends_a_session_and_what_it_runs", kill_connection),
        (
            "a_kill_in_the_middle_of_a_row_writes_nothing_into_it",
            half_a_row,
        ),
        (
            "kill_query_ends_the_load_of_a_file_and_leaves_the_session",
            half_a_file,
        ),
        (
            "a_statement_that_is_over_its_time_ends_without_its_transaction",
            over_time,
        ),
        (
            "a_kill_during_the_delay_of_a_rule_is_heard_and_nothing_is_sent",
            delayed,
        ),
        (
            "a_frame_that_says_nothing_is_answered_before_the_end",
            unreadable_frame,
        ),
        ("a_client_that_reads_nothing_is_killed_and_timed_out", deaf),
        ("a_user_kills_only_what_is_his_and_there", strangers),
        ("a_kill_is_understood_in_all_its_forms", forms),
        (
            "a_kill_that_is_prepared_ends_what_its_parameter_says",
            prepared_kills,
        ),
        ("kill_user_ends_what_is_ones_own_on_all_cores", kill_user),
        (
            "a_transaction_that_is_open_for_too_long_ends_with_its_session",
            long_transaction,
        ),
        (
            "a_client_that_leaves_in_the_middle_of_its_file_is_gone_at_once",
            left_file,
        ),
        (
            "a_transaction_that_begins_anew_is_as_young_as_that",
            chained,
        ),
        ("a_transaction_is_silent_for_so_long", idle_transaction),
        (
            "who_has_set_how_long_he_may_be_silent_is_sent_away_then",
            own_patience,
        ),
        ("clients_that_are_silent_are_probed", probed),
        ("who_sends_a_statement_is_not_silent", slow_statement),
        ("last_words_are_numbered_as_the_answer", last_words),
        (
            "who_waits_for_his_own_variables_hears_a_kill",
            asks_own_variables,
        ),
        (
            "kill_query_while_something_is_asked_ends_no_transaction",
            asks_in_a_transaction,
        ),
        ("a_kill_query_that_comes_too_late_ends_nothing", late_kill),
        (
            "a_statement_that_is_too_large_is_refused_and_the_session_goes_on",
            too_large,
        ),
        (
            "a_bell_that_rings_while_a_statement_arrives_loses_none_of_it",
            half_a_statement,
        ),
        (
            "a_client_that_leaves_ends_what_the_server_does_for_it",
            leaving,
        ),
        (
            "a_client_that_leaves_where_its_account_is_full_ends_what_the_server_does",
            leaving_what_is_full,
        ),
        (
            "where_a_statement_was_killed_nobody_else_is_before_another_was_answered",
            killed_and_free,
        ),
        ("a_kill_hits_nobody_at_a_servers_successor", successor),
        (
            "a_kill_finds_its_connection_by_the_port_or_the_number",
            found_by_port_or_number,
        ),
    ])
}

fn one(driver: Driver, vendor: Vendor) -> Result<(Server, Proxy), String> {
    by_hand::one(driver, vendor)
}

fn log_in(proxy: &Proxy) -> Result<Raw, String> {
    Raw::log_in(proxy.port).map_err(|error| error.to_string())
}

/// Waits until so many connections of the server run the text.
fn running(server: &Server, text: &str, wanted: usize) -> Outcome {
    let until = Instant::now() + HANGS;
    loop {
        let said = server.root("SHOW FULL PROCESSLIST")?;
        let found = said.lines().filter(|line| line.contains(text)).count();
        if found == wanted {
            return Ok(());
        }
        expect(Instant::now() < until, || {
            format!("{wanted} statements like {text} were wanted:\n{said}")
        })?;
        thread::sleep(Duration::from_millis(30));
    }
}

fn is_error(said: &io::Result<Vec<Vec<String>>>, code: &str) -> Outcome {
    expect(
        said.as_ref()
            .is_err_and(|error| error.to_string().starts_with(code)),
        || format!("error {code} was wanted: {said:?}"),
    )
}

fn asked(client: &mut Raw, sql: &str) -> Result<Vec<Vec<String>>, String> {
    client.ask(sql).map_err(|error| format!("{sql}: {error}"))
}

/// A row that lacks a few bytes would be completed by an error's.
fn half_a_row(driver: Driver) -> Outcome {
    const ROWS: &str = "SELECT REPEAT('x', 40) FROM conf.numbers a, conf.numbers b, conf.numbers c WHERE c.id < 20";
    for vendor in vendors_in_turn() {
        let (server, proxy) = one(driver, vendor)?;
        let mut killer = log_in(&proxy)?;
        for turn in 0..4 {
            let mut client = log_in(&proxy)?;
            client.query(ROWS).map_err(|error| error.to_string())?;
            running(&server, "REPEAT", 1)?;
            // The count of columns, the column, its EOF, and what comes before it reads no more:
            // what is on its way then ends anywhere.
            for _ in 0..200 {
                client
                    .packet()
                    .map_err(|error| format!("{vendor}: {error}"))?;
            }
            thread::sleep(Duration::from_millis(300));
            asked(&mut killer, &format!("KILL {}", client.id))?;
            let mut rows = 0_u64;
            while let Ok(row) = client.packet() {
                rows += 1;
                let whole = row.len() == 41 && row[1..].iter().all(|byte| *byte == b'x');
                expect(whole, || {
                    format!(
                        "{vendor}, turn {turn}: row {rows} is {}",
                        row.escape_ascii()
                    )
                })?;
            }
            expect(rows > 0, || {
                format!("{vendor}: there was no row after the KILL")
            })?;
            running(&server, "REPEAT", 0)?;
        }
    }
    Ok(())
}

/// The file is read to its end, and then the server says that it was interrupted.
fn half_a_file(driver: Driver) -> Outcome {
    const LOAD: &[u8] =
        b"\x03LOAD DATA LOCAL INFILE 'x' INTO TABLE conf.scratch FIELDS TERMINATED BY ','";
    for vendor in vendors_in_turn() {
        let server = Server::start(vendor)?;
        let mut wish = Wish::in_front_of(&server);
        wish.variables
            .push_str("    enable_load_data_local_infile = true\n");
        let proxy = Proxy::start(driver, &wish)?;
        let _ = Client::MariaDbCli.run(
            app(server.port),
            &conformance::cache::root().join("conformance/scenarios/warm-up.txt"),
        );
        let mut client = packets::Raw::log_in(proxy.port, caps::LOCAL_FILES | caps::DEPRECATE_EOF)?;
        client.query("BEGIN")?;
        client.query("INSERT INTO conf.scratch VALUES (1, 'kept')")?;
        let asks = client.ask(LOAD, Expect::Query)?;
        expect(asks.contains("wants a file"), || {
            format!("{vendor}: {asks}")
        })?;
        client.send(2, "2,two\n".repeat(10_000).as_bytes())?;
        running(&server, "LOAD DATA", 1)?;
        proxy.admin(&format!("KILL QUERY {}", client.id))?;
        thread::sleep(Duration::from_millis(300));
        client.send(3, b"3,three\n")?;
        client.send(4, b"")?;
        let said = client.answer(Expect::Query)?;
        expect(said.contains(r"5 \xff%\x05#70100"), || {
            format!("{vendor}: error 1317 was wanted: {said}")
        })?;
        let kept = client.query("SELECT words FROM conf.scratch WHERE id IN (1, 3)")?;
        expect(kept.contains("kept") && !kept.contains("three"), || {
            format!("{vendor}: {kept}")
        })?;
        client.query("ROLLBACK")?;
    }
    Ok(())
}

/// Its server reads nothing of it just then.
fn left_file(driver: Driver) -> Outcome {
    let server = Server::start(Vendor::MariaDb)?;
    let mut wish = Wish::in_front_of(&server);
    wish.variables
        .push_str("    enable_load_data_local_infile = true\n");
    let proxy = Proxy::start(driver, &wish)?;
    let _ = Client::MariaDbCli.run(
        app(server.port),
        &conformance::cache::root().join("conformance/scenarios/warm-up.txt"),
    );
    let mut client = packets::Raw::log_in(proxy.port, caps::LOCAL_FILES | caps::DEPRECATE_EOF)?;
    let asks = client.ask(
        b"\x03LOAD DATA LOCAL INFILE 'x' INTO TABLE conf.scratch FIELDS TERMINATED BY ','",
        Expect::Query,
    )?;
    expect(asks.contains("wants a file"), || asks)?;
    let received = || -> Result<u64, String> {
        let said =
            proxy.admin("SELECT Variable_Value FROM stats_mysql_global WHERE Variable_Name = 'Queries_frontends_bytes_recv'")?;
        said.trim().parse().map_err(|_| said.clone())
    };
    server.signal("STOP");
    let (row, before) = ("2,two\n".repeat(2_000), received()?);
    let (mut seq, mut sent) = (2_u8, 0);
    // Until the proxy reads no more of it.
    let waits = loop {
        client.send(seq, row.as_bytes())?;
        (seq, sent) = (seq.wrapping_add(1), sent + row.len() as u64 + 4);
        let until = Instant::now() + Duration::from_secs(1);
        while received()? - before < sent && Instant::now() < until {
            thread::sleep(Duration::from_millis(5));
        }
        if received()? - before < sent || sent > 64 << 20 {
            break sent <= 64 << 20;
        }
        // Faster while the way is long.
        for _ in 0..40 {
            if received()? - before < sent {
                break;
            }
            client.send(seq, row.as_bytes())?;
            (seq, sent) = (seq.wrapping_add(1), sent + row.len() as u64 + 4);
            thread::sleep(Duration::from_millis(2));
        }
    };
    let id = client.id;
    drop(client);
    let gone = trials::soon("0", || {
        let listed = proxy.admin(&format!(
            "SELECT COUNT(*) FROM stats_mysql_processlist WHERE SessionID = {id}"
        ))?;
        Ok(listed.trim().to_owned())
    });
    server.signal("CONT");
    expect(waits, || {
        "a server that does not read takes it all".to_owned()
    })?;
    gone
}

fn delayed(driver: Driver) -> Outcome {
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

/// MariaDB closes the connection without a word, and MySQL waits: a client learns nothing.
fn unreadable_frame(driver: Driver) -> Outcome {
    let (server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    let _the_login_is_known = server.root("SELECT 1")?;
    let mut client = packets::Raw::log_in(proxy.port, caps::COMPRESS)?;
    // A frame of ten bytes that are a hundred when unpacked, which they cannot be.
    let words = client.last_words(b"\x0a\0\0\0\x64\0\0notzlib!!!")?;
    let mut said = Vec::new();
    let unpacked =
        Frames::new(Algorithm::Zlib, 6).unpack(&words, &mut said, &mut Codecs::default());
    expect(unpacked.is_ok_and(|used| used == words.len()), || {
        format!("{}", words.escape_ascii())
    })?;
    // The numbers of a frame and a packet that answer.
    expect(words.get(3) == Some(&1) && said.get(3) == Some(&1), || {
        format!("{}", said.escape_ascii())
    })?;
    expect(said.get(4..7) == Some(b"\xff\x85\x04"), || {
        format!("error 1157 was wanted: {}", said.escape_ascii())
    })?;
    expect(proxy.says("a compressed frame that is not zlib"), || {
        proxy.log()
    })
}

/// Statement that runs until somebody ends it, and does not look whether its client is still there.
const LONG: &str = "SELECT 'ENDLESS', COUNT(*) FROM conf.numbers a, conf.numbers b, conf.numbers c WHERE a.id * b.id % 7 + c.id < RAND() * 0 - 1";

fn kill_query(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let (server, proxy) = one(driver, vendor)?;
        // Several, so that some are on the killer's core and some are not.
        let mut killer = log_in(&proxy)?;
        for turn in 0..6 {
            let mut client = log_in(&proxy)?;
            let id = client.id;
            asked(&mut client, "BEGIN")?;
            asked(
                &mut client,
                &format!("INSERT INTO conf.scratch VALUES ({turn}, 'kept')"),
            )?;
            let runs = thread::spawn(move || {
                let said = client.ask(LONG);
                (client, said)
            });
            running(&server, "ENDLESS", 1)?;
            asked(&mut killer, &format!("KILL QUERY {id}"))?;
            let (mut client, said) = runs.join().map_err(|_| "the client panicked".to_owned())?;
            is_error(&said, "1317")?;
            running(&server, "ENDLESS", 0)?;
            // Its transaction is where it was.
            let kept = asked(&mut client, "SELECT COUNT(*) FROM conf.scratch")?;
            expect(kept == [[(turn + 1).to_string()]], || {
                format!("{vendor}: the transaction has {kept:?}")
            })?;
            asked(&mut client, "COMMIT")?;
        }
        let there = asked(&mut killer, "SELECT COUNT(*) FROM conf.scratch")?;
        expect(there == [["6"]], || {
            format!("{vendor}: committed were {there:?}")
        })?;
    }
    Ok(())
}

/// Ends a statement that takes too long: what else is on the connection stays there; where nothing
/// is, the connection goes.
fn over_time(driver: Driver) -> Outcome {
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

fn kill_connection(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let (server, proxy) = one(driver, vendor)?;
        let mut killer = log_in(&proxy)?;
        for by_command in [false, true] {
            let mut client = log_in(&proxy)?;
            let id = client.id;
            let runs = thread::spawn(move || (client.ask(LONG), client.ask("SELECT 1")));
            running(&server, "ENDLESS", 1)?;
            if by_command {
                let mut payload = vec![0x0c];
                payload.extend_from_slice(&id.to_le_bytes());
                killer
                    .command(&payload)
                    .map_err(|error| error.to_string())?;
                killer.rows().map_err(|error| error.to_string())?;
            } else {
                asked(&mut killer, &format!("KILL {id}"))?;
            }
            let (during, after) = runs.join().map_err(|_| "the client panicked".to_owned())?;
            expect(during.is_err() && after.is_err(), || {
                format!("{vendor}: {during:?}, then {after:?}")
            })?;
            running(&server, "ENDLESS", 0)?;
        }
        // Somebody who does nothing.
        let mut idle = log_in(&proxy)?;
        asked(&mut idle, "SELECT 1")?;
        asked(&mut killer, &format!("KILL CONNECTION {}", idle.id))?;
        let after = idle.ask("SELECT 1");
        expect(after.is_err(), || {
            format!("{vendor}: {after:?} of a killed session")
        })?;
        // Oneself.
        let said = killer.ask("KILL CONNECTION_ID()");
        is_error(
            &said,
            if vendor == Vendor::MariaDb {
                "1927"
            } else {
                "1317"
            },
        )?;
        expect(killer.ask("SELECT 1").is_err(), || {
            format!("{vendor}: a session outlived its own KILL")
        })?;
    }
    Ok(())
}

/// More than all buffers on the way take.
const MUCH: &[u8] =
    b"\x03SELECT 'MUCH', a.id, REPEAT('x', 500) FROM conf.numbers a, conf.numbers b LIMIT 1000000";

fn deaf(driver: Driver) -> Outcome {
    let (server, proxy) = one(driver, Vendor::MariaDb)?;
    let mut killer = log_in(&proxy)?;
    for by_time in [false, true] {
        if by_time {
            proxy.admin("SET mysql-default_query_timeout=3000; LOAD MYSQL VARIABLES TO RUNTIME")?;
        }
        let mut client = log_in(&proxy)?;
        client.command(MUCH).map_err(|error| error.to_string())?;
        running(&server, "MUCH", 1)?;
        // Until nothing more goes into any buffer.
        thread::sleep(Duration::from_secs(2));
        if !by_time {
            asked(&mut killer, &format!("KILL {}", client.id))?;
        }
        running(&server, "MUCH", 0)?;
        drop(client);
    }
    Ok(())
}

fn strangers(driver: Driver) -> Outcome {
    let (_server, proxy) = one(driver, Vendor::MariaDb)?;
    let mut client = log_in(&proxy)?;
    let refused = |sql: &str, code: &str| {
        let said = proxy.query(sql);
        expect(
            said.as_ref().is_err_and(|words| words.contains(code)),
            || format!("{sql}: {code} was wanted: {said:?}"),
        )
    };
    refused(
        &format!("KILL {}", client.id),
        &format!(
            "ERROR 1095 (HY000) at line 1: You are not owner of thread {}",
            client.id
        ),
    )?;
    refused(&format!("KILL QUERY {}", client.id), "ERROR 1095")?;
    refused(
        "KILL 4000000000",
        "ERROR 1094 (HY000) at line 1: Unknown thread id: 4000000000",
    )?;
    refused(
        "KILL USER open",
        "ERROR 1095 (HY000) at line 1: Operation KILL USER failed for open@%",
    )?;
    let said = asked(&mut client, "SELECT 'here'")?;
    same(&said[0][0], "here")
}

/// A statement runs that is ended by each of these.
fn forms(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let (server, proxy) = one(driver, vendor)?;
        let mut killer = Raw::log_in_for_several(proxy.port).map_err(|error| error.to_string())?;
        let mut client = log_in(&proxy)?;
        let id = client.id;
        for kills in [
            &[format!("KILL HARD QUERY {id}")][..],
            &[format!("KILL SOFT QUERY {id}")],
        ] {
            client.query(LONG).map_err(|error| error.to_string())?;
            running(&server, "ENDLESS", 1)?;
            for sql in kills {
                asked(&mut killer, sql)?;
            }
            is_error(&client.rows(), "1317")?;
        }
        client.query(LONG).map_err(|error| error.to_string())?;
        running(&server, "ENDLESS", 1)?;
        killer
            .query(&format!(
                "SELECT 'before'; KILL QUERY {id}; SELECT 'behind'"
            ))
            .map_err(|error| error.to_string())?;
        let said = (0..3)
            .map(|_| {
                Ok(killer
                    .rows()
                    .map_err(|error| error.to_string())?
                    .concat()
                    .concat())
            })
            .collect::<Result<Vec<_>, String>>()?;
        expect(said == ["before", "", "behind"], || {
            format!("{vendor}: {said:?}")
        })?;
        is_error(&client.rows(), "1317")?;
        for sql in ["KILL (SELECT 7)", "KILL QUERY 7 / 1", "KILL 1 - 2"] {
            is_error(&killer.ask(sql), "1235")?;
        }
        // A server's own number of a statement.
        let said = killer
            .ask("KILL QUERY ID 7")
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default();
        expect(
            said.contains("1235") && said.contains("number of a statement"),
            || format!("{vendor}: {said}"),
        )?;
        if vendor == Vendor::MySql {
            is_error(&killer.ask("KILL USER open"), "1235")?;
        }
        asked(&mut killer, &format!("KILL SOFT CONNECTION {id}"))?;
        expect(client.ask("SELECT 1").is_err(), || {
            format!("{vendor}: a session outlived a KILL")
        })?;
        asked(&mut killer, "SELECT 1")?;
    }
    Ok(())
}

/// COM_STMT_PREPARE of what has no columns; the id.
fn prepare(client: &mut Raw, text: &str) -> io::Result<Vec<u8>> {
    client.command(&[b"\x16", text.as_bytes()].concat())?;
    let ok = client.packet()?;
    if ok.first() == Some(&0xff) {
        return Err(by_hand::complaint(&ok));
    }
    if ok[7..9] != [0, 0] {
        while client.packet()?.first() != Some(&0xfe) {}
    }
    Ok(ok[1..5].to_vec())
}

/// COM_STMT_EXECUTE of a KILL with these parameters: NULL bits, 1, types, values.
fn execute(client: &mut Raw, id: &[u8], params: &[u8]) -> io::Result<Vec<Vec<String>>> {
    client.command(&[b"\x17", id, &[0, 1, 0, 0, 0], params].concat())?;
    client.rows()
}

/// By a library that prepares whatever has parameters (Go, Rust, Node).
fn prepared_kills(driver: Driver) -> Outcome {
    let said = |error: io::Error| error.to_string();
    for vendor in vendors_in_turn() {
        let (server, proxy) = one(driver, vendor)?;
        let (mut killer, mut client) = (log_in(&proxy)?, log_in(&proxy)?);
        let (id, text) = (u64::from(client.id), client.id.to_string());
        let mut ends =
            |killer: &mut Raw, kill: &mut dyn FnMut(&mut Raw) -> io::Result<Vec<Vec<String>>>| {
                client.query(LONG).map_err(said)?;
                running(&server, "ENDLESS", 1)?;
                kill(killer).map_err(said)?;
                is_error(&client.rows(), "1317")
            };
        ends(&mut killer, &mut |killer| {
            killer.ask(&format!("KILL QUERY '{id}'"))
        })?;
        let written = prepare(&mut killer, &format!("KILL QUERY {id}")).map_err(said)?;
        ends(&mut killer, &mut |killer| execute(killer, &written, b""))?;
        // MySQL takes no parameter there, and says so itself.
        let mut direct = log_in_to(&server)?;
        let told = prepare(&mut direct, "KILL QUERY ?").map(drop).map_err(said);
        let prepared = prepare(&mut killer, "KILL QUERY ?").map_err(said);
        expect(prepared.clone().map(drop) == told, || {
            format!("{vendor}: {prepared:?} instead of {told:?}")
        })?;
        let Ok(query) = prepared else { continue };
        let string = [&[0, 1, 0xfd, 0, text.len() as u8], text.as_bytes()].concat();
        let longlong = [&[0, 1, 8, 0][..], &id.to_le_bytes()].concat();
        let double = [&[0, 1, 5, 0][..], &(id as f64).to_le_bytes()].concat();
        for params in [&string, &longlong, &double] {
            ends(&mut killer, &mut |killer| execute(killer, &query, params))?;
        }
        let whole = prepare(&mut killer, "KILL ?").map_err(said)?;
        let other = [&[0, 1, 8, 0][..], &4_000_000_000_u64.to_le_bytes()].concat();
        let nothing = [1, 1, 6, 0];
        for (params, code) in [
            (&other[..], "1094"),
            (&nothing, "1094"),
            (&[0, 1, 0xfd, 0, 1, b'x'], "1235"),
        ] {
            is_error(&execute(&mut killer, &whole, params), code)?;
        }
        execute(&mut killer, &whole, &longlong).map_err(said)?;
        expect(client.ask("SELECT 1").is_err(), || {
            format!("{vendor}: a session outlived a prepared KILL")
        })?;
        asked(&mut killer, "SELECT 1")?;
    }
    Ok(())
}

fn log_in_to(server: &Server) -> Result<Raw, String> {
    Raw::log_in(server.port).map_err(|error| error.to_string())
}

fn kill_user(driver: Driver) -> Outcome {
    let (server, proxy) = one(driver, Vendor::MariaDb)?;
    let _ = Client::MariaDbCli.run(
        app(server.port),
        &conformance::cache::root().join("conformance/scenarios/warm-up.txt"),
    );
    let mut other = packets::Raw::log_in(proxy.port, 0)?;
    // On both cores.
    let mut clients: Vec<Raw> = (0..6).map(|_| log_in(&proxy)).collect::<Result<_, _>>()?;
    let mut killer = log_in(&proxy)?;
    for sql in [
        "KILL USER nobody",
        "KILL USER open@'10.9.9.9'",
        "KILL USER app@10.9.9.9",
    ] {
        asked(&mut killer, sql)?;
    }
    is_error(&killer.ask("KILL USER app"), "1095")?;
    for client in &mut clients {
        client.query(LONG).map_err(|error| error.to_string())?;
    }
    running(&server, "ENDLESS", clients.len())?;
    is_error(&killer.ask("KILL QUERY USER 'open'@127.0.0.1"), "1317")?;
    for client in &mut clients {
        is_error(&client.rows(), "1317")?;
        asked(client, "SELECT 'here'")?;
    }
    is_error(&killer.ask("KILL USER CURRENT_USER"), "1927")?;
    for client in clients.iter_mut().chain([&mut killer]) {
        expect(client.ask("SELECT 1").is_err(), || {
            "a session outlived KILL USER".to_owned()
        })?;
    }
    let said = other.query("SELECT 'here'")?;
    expect(said.contains("here"), || said)
}

fn long_transaction(driver: Driver) -> Outcome {
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

fn chained(driver: Driver) -> Outcome {
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
fn idle_transaction(driver: Driver) -> Outcome {
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
fn own_patience(driver: Driver) -> Outcome {
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
fn probed(driver: Driver) -> Outcome {
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
fn slow_statement(driver: Driver) -> Outcome {
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

/// Else client libraries say that packets are out of order.
fn last_words(driver: Driver) -> Outcome {
    let (server, proxy) = one(driver, Vendor::MariaDb)?;
    let _ = Client::MariaDbCli.run(
        app(server.port),
        &conformance::cache::root().join("conformance/scenarios/warm-up.txt"),
    );
    for malformed in [false, true] {
        let mut client = packets::Raw::log_in(proxy.port, 0)?;
        // COM_PROCESS_KILL of oneself, and a COM_CHANGE_USER to nobody.
        let command = if malformed {
            b"\x11app\0\x14short".to_vec()
        } else {
            [&[0x0C], &client.id.to_le_bytes()[..]].concat()
        };
        client.send(0, &command)?;
        let (seq, words) = client.packet()?;
        expect(seq == 1 && words.first() == Some(&0xff), || {
            format!("{seq} {}", words.escape_ascii())
        })?;
    }
    Ok(())
}

/// The text of a PREPARE is in a variable that has to be asked for, and the server does not answer.
fn asks_own_variables(driver: Driver) -> Outcome {
    for ends in ["KILL QUERY", "KILL CONNECTION", ""] {
        let (server, proxy) = one(driver, Vendor::MariaDb)?;
        let _ = Client::MariaDbCli.run(
            app(server.port),
            &conformance::cache::root().join("conformance/scenarios/warm-up.txt"),
        );
        let mut client = packets::Raw::log_in(proxy.port, 0)?;
        let id = client.id;
        client.query("BEGIN")?;
        client.query("SET @text = CONCAT('SELECT ', 5)")?;
        server.signal("STOP");
        client.send(0, b"\x03PREPARE s FROM @text")?;
        let listed = || {
            proxy.admin(&format!("SELECT COUNT(*) FROM stats_mysql_processlist WHERE SessionID = {id} AND command = 'Query'"))
        };
        trials::soon("1", || Ok(listed()?.trim().to_owned()))?;
        let (command, code) = match ends {
            "" => (
                "UPDATE mysql_servers SET status = 'OFFLINE_HARD'; LOAD MYSQL SERVERS TO RUNTIME"
                    .to_owned(),
                1053_u16,
            ),
            kill => (format!("{kill} {id}"), 1317),
        };
        proxy.admin(&command)?;
        let said = client.packet();
        server.signal("CONT");
        let (seq, words) = said.map_err(|error| format!("{command}: {error}"))?;
        let wanted = [&[0xff], &code.to_le_bytes()[..]].concat();
        expect(seq == 1 && words.starts_with(&wanted), || {
            format!("{command}: {seq} {}", words.escape_ascii())
        })?;
    }
    Ok(())
}

/// A statement in a transaction needs something that has to be asked for first, or prepared there.
/// KILL QUERY ends the statement, and not the connection with the transaction.
fn asks_in_a_transaction(driver: Driver) -> Outcome {
    for prepared in [false, true] {
        let (server, proxy) = one(driver, Vendor::MariaDb)?;
        let mut client = log_in(&proxy)?;
        client
            .command(b"\x16SELECT 7")
            .map_err(|error| error.to_string())?;
        let id = client
            .packet()
            .map_err(|error| error.to_string())?
            .get(1..5)
            .map(<[u8]>::to_vec)
            .unwrap_or_default();
        for _definition_and_end in 0..2 {
            client.packet().map_err(|error| error.to_string())?;
        }
        // Where it is prepared there is somebody else now.
        let mut other = beside(&proxy, &client)?;
        for sql in ["BEGIN", "INSERT INTO conf.scratch VALUES (2, 'of another')"] {
            asked(&mut other, sql)?;
        }
        for sql in [
            "BEGIN",
            "INSERT INTO conf.scratch VALUES (1, 'kept')",
            "SET @text = CONCAT('SELECT ', 5)",
        ] {
            asked(&mut client, sql)?;
        }
        server.signal("STOP");
        let execute = [&b"\x17"[..], &id, &[0, 1, 0, 0, 0]].concat();
        client
            .command(if prepared {
                &execute
            } else {
                b"\x03PREPARE s FROM @text"
            })
            .map_err(|error| error.to_string())?;
        let listed = format!(
            "SELECT COUNT(*) FROM stats_mysql_processlist WHERE SessionID = {} AND command <> 'Sleep'",
            client.id
        );
        let killed = trials::soon("1", || Ok(proxy.admin(&listed)?.trim().to_owned()))
            .and_then(|()| proxy.admin(&format!("KILL QUERY {}", client.id)));
        server.signal("CONT");
        killed?;
        // Whether it came in time for the statement itself is nobody's concern.
        let said = if prepared {
            up_to_eofs(&mut client, 2)
        } else {
            client.rows().map(drop).map_err(|error| error.to_string())
        };
        if let Err(error) = said {
            expect(error.starts_with("1317"), || {
                format!("prepared: {prepared}: {error}")
            })?;
        }
        let kept = asked(&mut client, "SELECT COUNT(*) FROM conf.scratch")?;
        expect(kept == [["1"]], || {
            format!("prepared: {prepared}: the transaction has {kept:?}")
        })?;
    }
    Ok(())
}

/// Reads rows as a prepared statement has them.
fn up_to_eofs(client: &mut Raw, eofs: usize) -> Outcome {
    let mut seen = 0;
    while seen < eofs {
        let packet = client.packet().map_err(|error| error.to_string())?;
        match packet.first() {
            Some(0xfe) if packet.len() < 9 => seen += 1,
            Some(0xff) => return Err(by_hand::complaint(&packet).to_string()),
            _ => {}
        }
    }
    Ok(())
}

/// KILL for a statement that had ended: it does not end what the session does next, not even
/// becoming somebody else.
fn late_kill(driver: Driver) -> Outcome {
    let (server, proxy) = one(driver, Vendor::MariaDb)?;
    let _ = Client::MariaDbCli.run(
        app(server.port),
        &conformance::cache::root().join("conformance/scenarios/warm-up.txt"),
    );
    server.root("CREATE USER fast@'%' IDENTIFIED BY 'secret'; GRANT ALL ON *.* TO fast@'%'")?;
    proxy.admin("INSERT INTO mysql_users (username, password, default_hostgroup, fast_forward) VALUES ('fast', 'secret', 0, 1); LOAD MYSQL USERS TO RUNTIME")?;
    let mut client = packets::Raw::log_in(proxy.port, 0)?;
    let kill = format!("KILL QUERY {}", client.id);
    for user in ["fast", "app"] {
        client.query("SELECT 1")?;
        proxy.admin(&kill)?;
        client.change_user(user)?;
    }
    proxy.admin(&kill)?;
    let said = client.query("SELECT 'here'")?;
    expect(said.contains("here"), || said)
}

fn leaving(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let (server, proxy) = one(driver, vendor)?;
        let clients: Vec<Raw> = (0..4)
            .map(|_| {
                let mut client = log_in(&proxy)?;
                client.query(LONG).map_err(|error| error.to_string())?;
                Ok(client)
            })
            .collect::<Result<_, String>>()?;
        running(&server, "ENDLESS", 4)?;
        drop(clients);
        running(&server, "ENDLESS", 0)?;
    }
    Ok(())
}

/// Reasons to keep the connection of an interrupted statement may end without a command there. A
/// rule allows that it is shared, its warnings are over with the next statement. As many
/// connections as the account may have: none is left to say KILL, but for one that nobody uses.
fn leaving_what_is_full(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let (server, proxy) = one(driver, vendor)?;
        // Only connections that are opened from then on are counted.
        server.root("ALTER USER open@'%' WITH MAX_USER_CONNECTIONS 3")?;
        let mut clients: Vec<Raw> = (0..3)
            .map(|_| log_in(&proxy))
            .collect::<Result<_, String>>()?;
        for client in &mut clients {
            asked(client, "BEGIN")?;
            asked(client, "SELECT COUNT(*) FROM conf.types")?;
        }
        let direct = Raw::log_in(server.port)
            .map(|_| "let in".to_owned())
            .unwrap_or_else(|error| error.to_string());
        let listed = server.root("SHOW FULL PROCESSLIST")?;
        expect(direct.contains("max_user_connections"), || {
            format!("{vendor}: {direct}: {listed}")
        })?;
        // Two of three are on one of the two cores.
        clients.sort_by_key(|client| client.id % 2);
        if clients[0].id % 2 != clients[1].id % 2 {
            clients.reverse();
        }
        let mut slow = clients.remove(0);
        slow.query(LONG).map_err(|error| error.to_string())?;
        running(&server, "ENDLESS", 1)?;
        asked(&mut clients[0], "COMMIT")?;
        drop(slow);
        running(&server, "ENDLESS", 0).map_err(|error| format!("{vendor}: {error}"))?;
        let said = asked(&mut clients[1], "SELECT 'kept'")?;
        expect(said[0][0] == "kept", || format!("{vendor}: {said:?}"))?;
    }
    Ok(())
}

fn killed_and_free(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let (server, proxy) = one(driver, vendor)?;
        let mut killer = log_in(&proxy)?;
        proxy.admin(&format!(
            "INSERT INTO mysql_servers (hostgroup_id, hostname, port) VALUES (1, '127.0.0.1', {}); LOAD MYSQL SERVERS TO RUNTIME; \
             INSERT INTO mysql_query_rules (rule_id, active, match_pattern, multiplex, destination_hostgroup, apply) \
             VALUES (1, 1, 'kept', 0, 0, 1), (2, 1, 'ENDLESS', 1, 0, 1), (3, 1, 'besides', NULL, 1, 1); LOAD MYSQL QUERY RULES TO RUNTIME",
            server.port
        ))?;
        for warns in [0, 1] {
            proxy.admin(&format!(
                "SET mysql-handle_warnings = {warns}; SET mysql-handle_warnings_delay_ms = 0; LOAD MYSQL VARIABLES TO RUNTIME"
            ))?;
            let mut client = log_in(&proxy)?;
            // It need not wait for a connection there later on: that it had the warnings asked for.
            asked(&mut client, "SELECT 'besides' FROM conf.numbers LIMIT 1")?;
            asked(&mut client, "SELECT 'kept'")?;
            client.query(LONG).map_err(|error| error.to_string())?;
            running(&server, "ENDLESS", 1)?;
            asked(&mut killer, &format!("KILL QUERY {}", client.id))?;
            is_error(&client.rows(), "1317")?;
            asked(&mut client, "SELECT 'besides' FROM conf.numbers LIMIT 1")?;
            let free = proxy.admin("SELECT SUM(ConnUsed + ConnFree) FROM stats_mysql_connection_pool WHERE hostgroup = 0")?;
            expect(free.trim() == "0", || {
                format!("{vendor}, warnings: {warns}: {free} connections are left")
            })?;
            let said = asked(&mut client, "SELECT 'here'")?.concat();
            expect(said == ["here"], || format!("{vendor}: {said:?}"))?;
            drop(client);
            proxy.admin(
                "UPDATE mysql_servers SET status = 'OFFLINE_HARD' WHERE hostgroup_id = 0; LOAD MYSQL SERVERS TO RUNTIME; \
                         UPDATE mysql_servers SET status = 'ONLINE' WHERE hostgroup_id = 0; LOAD MYSQL SERVERS TO RUNTIME",
            )?;
        }
    }
    Ok(())
}

/// A proxy before an address at which servers may come and go.
fn before(driver: Driver, port: u16) -> Result<Proxy, String> {
    let wish = Wish {
        servers: format!(
            "{{ address = \"127.0.0.1\", port = {port}, hostgroup = 0, max_connections = 100 }}"
        ),
        users: proxy::OPEN_USER.to_owned(),
        ..Wish::default()
    };
    Proxy::start(driver, &wish)
}

/// The first has vanished, as a machine does behind a floating address, and the second has given
/// the number to somebody else of the same name.
fn successor(driver: Driver) -> Outcome {
    let told = ["--proxy-protocol-networks=*"];
    let servers = [
        Server::start_with(Vendor::MariaDb, &told)?,
        Server::start_with(Vendor::MariaDb, &told)?,
    ];
    for server in &servers {
        server.root(by_hand::CREATE_USER)?;
    }
    let [first, second] = &servers;
    let at = Arc::new(AtomicU16::new(first.port));
    let proxy = before(
        driver,
        relay::start_before(&at, true).map_err(|error| error.to_string())?,
    )?;
    let log_in_to = |server: &Server| Raw::log_in(server.port).map_err(|error| error.to_string());
    // The second is not to be there already when the number is given.
    for _ in 0..30 {
        log_in_to(first)?;
    }
    let (mut client, mut killer) = (log_in(&proxy)?, log_in(&proxy)?);
    client.query(LONG).map_err(|error| error.to_string())?;
    running(first, "ENDLESS", 1)?;
    let number =
        first.root("SELECT ID FROM information_schema.PROCESSLIST WHERE INFO LIKE '%ENDLESS%RAND%' AND USER = 'open'")?;
    let number: u32 = number
        .lines()
        .last()
        .and_then(|line| line.trim().parse().ok())
        .ok_or(number)?;
    at.store(second.port, Ordering::Relaxed);
    let mut stranger = loop {
        let stranger = log_in_to(second)?;
        expect(stranger.id <= number, || {
            format!("{number} was to be free, {} is next", stranger.id)
        })?;
        if stranger.id == number {
            break stranger;
        }
    };
    stranger
        .query("SELECT SLEEP(2)")
        .map_err(|error| error.to_string())?;
    drop(client);
    trials::soon("true", || {
        Ok(proxy
            .log()
            .contains(&format!(
                "connection {number} is, or may be, no longer ours"
            ))
            .to_string())
    })?;
    let undisturbed = stranger
        .rows()
        .map_err(|error| format!("the stranger: {error}"))?;
    expect(undisturbed == [["0"]], || format!("{undisturbed:?}"))?;
    // What is ours there is found.
    let mut client = log_in(&proxy)?;
    client.query(LONG).map_err(|error| error.to_string())?;
    running(second, "ENDLESS", 1)?;
    asked(&mut killer, &format!("KILL QUERY {}", client.id))?;
    is_error(&client.rows(), "1317")
}

/// Of a user without privileges, directly and by a relay that servers know nothing of: they see its
/// ports.
fn found_by_port_or_number(driver: Driver) -> Outcome {
    let vendors = vendors();
    let all = [
        (Vendor::MariaDb, &[][..]),
        (Vendor::MySql, &[]),
        (Vendor::MySql, &["--performance-schema=ON"]),
    ];
    for (vendor, options) in all
        .into_iter()
        .filter(|(vendor, _)| vendors.contains(vendor))
    {
        let server = Server::start_with(vendor, options)?;
        server.root("CREATE USER open@'%'; GRANT SELECT ON conf.* TO open@'%'")?;
        let at = Arc::new(AtomicU16::new(server.port));
        let relayed = relay::start_before(&at, false).map_err(|error| error.to_string())?;
        for port in [server.port, relayed] {
            let proxy = before(driver, port)?;
            let (mut client, mut killer) = (log_in(&proxy)?, log_in(&proxy)?);
            client.query(LONG).map_err(|error| error.to_string())?;
            running(&server, "ENDLESS", 1)?;
            asked(&mut killer, &format!("KILL QUERY {}", client.id))?;
            is_error(&client.rows(), "1317")?;
            running(&server, "ENDLESS", 0)?;
        }
    }
    Ok(())
}

/// A statement of about so many bytes.
fn statement_of(bytes: usize) -> String {
    format!("SELECT LENGTH('{}')", "x".repeat(bytes))
}

fn too_large(driver: Driver) -> Outcome {
    let (_server, proxy) = one(driver, Vendor::MariaDb)?;
    proxy.admin("SET mysql-max_allowed_packet = 4194304; LOAD MYSQL VARIABLES TO RUNTIME")?;
    let mut client = log_in(&proxy)?;
    asked(&mut client, "BEGIN")?;
    asked(&mut client, "INSERT INTO conf.scratch VALUES (1, 'kept')")?;
    // In one piece, and in several.
    for bytes in [4_300_000, 40 << 20] {
        is_error(&client.ask(&statement_of(bytes)), "1153")?;
        let kept = asked(&mut client, "SELECT COUNT(*) FROM conf.scratch")?;
        expect(kept == [["1"]], || format!("the transaction has {kept:?}"))?;
    }
    let said = asked(&mut client, &statement_of(4_100_000))?;
    expect(said == [["4100000"]], || format!("{said:?}"))
}

fn half_a_statement(driver: Driver) -> Outcome {
    let (_server, proxy) = one(driver, Vendor::MariaDb)?;
    let mut client = log_in(&proxy)?;
    let mut killer = log_in(&proxy)?;
    let text = statement_of(300_000);
    let mut bytes = (text.len() as u32 + 1).to_le_bytes().to_vec();
    bytes[3] = 0;
    bytes.push(3);
    bytes.extend_from_slice(text.as_bytes());
    let (begin, end) = bytes.split_at(100_000);
    client.bytes(begin).map_err(|error| error.to_string())?;
    // There is nothing that it could end yet.
    for _ in 0..3 {
        asked(&mut killer, &format!("KILL QUERY {}", client.id))?;
        asked(&mut killer, "SELECT SLEEP(0.05)")?;
    }
    client.bytes(end).map_err(|error| error.to_string())?;
    let said = client.rows().map_err(|error| error.to_string())?;
    expect(said == [["300000"]], || format!("{said:?}"))
}
