//! Acts of one session upon another, and what the proxy does to a server for a client: KILL, and
//! its end when a client leaves.
#![forbid(unsafe_code)]

mod kills;
mod time;

use std::time::{Duration, Instant};
use std::{io, thread};

use conformance::beside::beside;
use conformance::by_hand::{self, Raw};
use conformance::clients::{Client, app};
use conformance::proxy::{Driver, Proxy, Wish};
use conformance::raw as packets;
use conformance::servers::{Server, Vendor};
use conformance::trials::{self, expect, vendors_in_turn};
use conformance::watch::HANGS;
use wire::caps;
use wire::frame::{Algorithm, Codecs, Frames};
use wire::response::Expect;

use kills::{
    LONG, forms, found_by_port_or_number, kill_connection, kill_query, kill_user, killed_and_free,
    late_kill, prepared_kills, strangers, successor,
};
use time::{
    chained, delayed, idle_transaction, long_transaction, over_time, own_patience, probed,
    slow_statement,
};

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
