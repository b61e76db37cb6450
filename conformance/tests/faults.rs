//! What goes wrong around Millrace: servers die, hang and come back; it is killed itself; clients
//! leave or send garbage.
#![forbid(unsafe_code)]

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use conformance::by_hand;
use conformance::clients::{ALL, app};
use conformance::compare::difference;
use conformance::process::TempFolder;
use conformance::proxy::{Driver, Proxy, Wish};
use conformance::raw::Raw;
use conformance::relay;
use conformance::servers::{Server, Vendor};
use conformance::trials::{self, expect, same};
use conformance::watch::HANGS;
use wire::caps;

type Outcome = Result<(), String>;

fn main() {
    trials::run_on_both(&[
        (
            "a_killed_server_is_a_clean_error_and_a_restarted_one_is_used_again",
            a_killed_server,
        ),
        (
            "a_transaction_whose_server_died_ends_as_in_front_of_that_server",
            a_transaction_whose_server_died,
        ),
        (
            "what_was_saved_survives_kill_9",
            what_was_saved_survives_kill_9,
        ),
        ("sigterm_ends_it_in_time", sigterm_ends_it_in_time),
        ("garbage_on_every_port_harms_nobody", garbage_on_every_port),
        (
            "clients_that_vanish_leave_nothing_behind",
            clients_that_vanish,
        ),
        (
            "a_slow_reader_of_a_large_result_does_not_fill_memory",
            a_slow_reader,
        ),
        (
            "an_open_transaction_of_a_client_that_left_is_rolled_back",
            an_open_transaction_is_rolled_back,
        ),
        (
            "a_file_that_breaks_off_leaves_nothing_behind",
            a_file_that_breaks_off,
        ),
        (
            "a_cursor_whose_server_died_ends_the_session",
            a_cursor_whose_server_died,
        ),
        (
            "a_transaction_whose_server_leaves_behind_its_answer_is_not_gone_on_with",
            a_server_that_leaves,
        ),
    ])
}

/// An error that nobody asked for, in one piece with the OK before it: a server that was told to
/// end the connection says it so.
fn a_server_that_leaves(driver: Driver) -> Outcome {
    let server = Server::start(Vendor::MariaDb)?;
    server.root(by_hand::CREATE_USER)?;
    let words = relay::LastWords::default();
    let mut wish = Wish::in_front_of(&server);
    let port = relay::start_with(server.port, &words).map_err(|error| error.to_string())?;
    wish.servers = format!("{{ address = \"127.0.0.1\", port = {port}, hostgroup = 0 }}");
    wish.add_open_user();
    let proxy = Proxy::start(driver, &wish)?;
    let goodbye = b"\x1a\0\0\0\xff\x87\x07#70100Connection killed".to_vec();
    for kept in [
        "BEGIN",
        "SET autocommit = 0",
        "CREATE TEMPORARY TABLE conf.mine (a INT)",
        "LOCK TABLES conf.counted WRITE",
        "SELECT GET_LOCK('mine', 1)",
    ] {
        let mut client = by_hand::Raw::log_in(proxy.port).map_err(|error| error.to_string())?;
        let mut ask = |sql: &str| {
            client
                .ask(sql)
                .map_err(|error| format!("{kept}, {sql}: {error}"))
        };
        ask(kept)?;
        // All that has to be set for an INSERT is set now.
        ask("INSERT INTO conf.counted (words) VALUES ('none')")?;
        *words.lock().map_err(|error| error.to_string())? = Some(goodbye.clone());
        ask("INSERT INTO conf.counted (words) VALUES ('first')")?;
        let second = ask("INSERT INTO conf.counted (words) VALUES ('second')");
        expect(second.is_err(), || {
            format!("after {kept} the session goes on as if nothing was lost")
        })?;
        same(
            &server.root("SELECT count(*) FROM conf.counted WHERE words = 'second'")?,
            "count(*)\n0",
        )?;
    }
    // What a session has nothing of goes without a word.
    let mut client = by_hand::Raw::log_in(proxy.port).map_err(|error| error.to_string())?;
    for sql in ["SELECT 1", "SELECT 2", "SELECT 3"] {
        if sql == "SELECT 2" {
            *words.lock().map_err(|error| error.to_string())? = Some(goodbye.clone());
        }
        client.ask(sql).map_err(|error| format!("{sql}: {error}"))?;
    }
    Ok(())
}

fn one(driver: Driver) -> Result<(Server, Proxy), String> {
    let server = Server::start(Vendor::MariaDb)?;
    let proxy = Proxy::start(driver, &Wish::in_front_of(&server))?;
    Ok((server, proxy))
}

/// Tries until it works; gives up when it never will.
fn soon<T>(mut attempt: impl FnMut() -> Result<T, String>) -> Result<T, String> {
    let until = Instant::now() + HANGS;
    loop {
        match attempt() {
            Ok(found) => return Ok(found),
            Err(error) if Instant::now() > until => return Err(error),
            Err(_) => thread::sleep(Duration::from_millis(100)),
        }
    }
}

fn a_killed_server(driver: Driver) -> Outcome {
    let (mut server, mut proxy) = one(driver)?;
    same(&proxy.query("SELECT 1")?, "1")?;
    server.kill();
    let refused = proxy.query("SELECT 1");
    expect(
        refused.as_ref().is_err_and(|words| words.contains("ERROR")),
        || format!("an error was wanted: {refused:?}"),
    )?;
    expect(proxy.runs(), || format!("Millrace ended:\n{}", proxy.log()))?;
    server.restart()?;
    let said = soon(|| proxy.query("SELECT 2"))?;
    same(&said, "2")
}

/// Every library finds its own number for it, as in front of the server itself.
fn a_transaction_whose_server_died(driver: Driver) -> Outcome {
    let folder = TempFolder::new("lost").map_err(|error| error.to_string())?;
    let scenario = folder.path().join("lost.scenario");
    let lines = "connect database=conf tls=off\nbegin\n\
                 query INSERT INTO scratch (id, words) VALUES (1, 'x')\n\
                 query SELECT SLEEP(3600)\n";
    fs::write(&scenario, lines).map_err(|error| error.to_string())?;
    let (mut server, proxy) = one(driver)?;
    for client in ALL.iter().copied() {
        if client.missing().is_some() {
            continue;
        }
        let mut seen = Vec::new();
        for port in [server.port, proxy.port] {
            let scenario = scenario.clone();
            let (done, outcome) = mpsc::channel();
            let running = thread::spawn(move || {
                let _ = done.send(client.run(app(port), &scenario));
            });
            let sleeps = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO = 'SELECT SLEEP(3600)'";
            soon(|| same(&server.root(sleeps)?, "COUNT(*)\n1"))?;
            server.kill();
            let said = outcome
                .recv_timeout(HANGS)
                .map_err(|_| format!("{client} still waits"))?;
            let _ = running.join();
            seen.push(said.unwrap_or_else(|error| error));
            server.restart()?;
        }
        if let Some(words) = difference(&seen[0], &seen[1]) {
            return Err(format!("{client}: {words}"));
        }
    }
    expect(proxy.says("has ended: Lost connection"), || proxy.log())
}

fn what_was_saved_survives_kill_9(driver: Driver) -> Outcome {
    let (_server, mut proxy) = one(driver)?;
    for turn in 0..10 {
        proxy.admin(&format!(
            "INSERT INTO mysql_query_rules (rule_id, active, match_pattern, destination_hostgroup) VALUES ({turn}, 1, 'x{turn}', 1); SAVE MYSQL QUERY RULES TO DISK"
        ))?;
        proxy.kill();
        proxy.restart()?;
        let kept = proxy.admin("SELECT COUNT(*) FROM runtime_mysql_query_rules")?;
        same(&kept, &(turn + 1).to_string())?;
    }
    same(&proxy.query("SELECT 1")?, "1")
}

fn sigterm_ends_it_in_time(driver: Driver) -> Outcome {
    let (_server, mut proxy) = one(driver)?;
    same(&proxy.query("SELECT 1")?, "1")?;
    expect(proxy.terminate(HANGS), || {
        format!("it still runs:\n{}", proxy.log())
    })
}

fn garbage_on_every_port(driver: Driver) -> Outcome {
    let (_server, mut proxy) = one(driver)?;
    let mut seed: u64 = 0x9e37_79b9_7f4a_7c15;
    for round in 0..60 {
        for port in [proxy.port, proxy.admin_port] {
            let Ok(mut peer) = TcpStream::connect(("127.0.0.1", port)) else {
                return Err(format!("port {port} is gone"));
            };
            let _ = peer.set_read_timeout(Some(Duration::from_millis(200)));
            let mut greeting = [0; 128];
            let _ = peer.read(&mut greeting);
            let mut bytes = Vec::new();
            for _ in 0..(round * 17) % 4000 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                bytes.push((seed >> 33) as u8);
            }
            // Some of it looks like a packet at first.
            if round % 3 == 0 && bytes.len() > 4 {
                let length = (bytes.len() - 4) as u32;
                bytes[..3].copy_from_slice(&length.to_le_bytes()[..3]);
                bytes[3] = 1;
            }
            let _ = peer.write_all(&bytes);
            let _ = peer.read(&mut greeting);
        }
    }
    expect(proxy.runs(), || format!("Millrace ended:\n{}", proxy.log()))?;
    same(&proxy.query("SELECT 1")?, "1")?;
    same(&proxy.admin("SELECT 1")?, "1")
}

fn clients_that_vanish(driver: Driver) -> Outcome {
    let (server, proxy) = one(driver)?;
    for _ in 0..5 {
        // Idle connections that never log in, closed in every way.
        let peers: Vec<TcpStream> = (0..50)
            .filter_map(|_| TcpStream::connect(("127.0.0.1", proxy.port)).ok())
            .collect();
        for peer in &peers {
            let _ = peer.shutdown(Shutdown::Both);
        }
    }
    // Clients killed while their statement runs.
    for _ in 0..5 {
        let client = Vendor::MariaDb.programs()?.client;
        let mut child = std::process::Command::new(client)
            .args([
                "--no-defaults",
                "--protocol=tcp",
                "--host=127.0.0.1",
                "--skip-ssl",
                "--user=app",
                "--password=secret",
            ])
            .arg(format!("--port={}", proxy.port))
            .args(["-e", "SELECT SLEEP(300)"])
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .map_err(|error| error.to_string())?;
        thread::sleep(Duration::from_millis(400));
        let _ = child.kill();
        let _ = child.wait();
    }
    soon(|| {
        let left = server.root(
            "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'SELECT SLEEP%'",
        )?;
        same(left.trim().trim_start_matches("COUNT(*)"), "0")
            .map_err(|_| format!("statements of clients that left still run: {left}"))
    })?;
    same(&proxy.query("SELECT 1")?, "1")
}

fn a_slow_reader(driver: Driver) -> Outcome {
    let (_server, mut proxy) = one(driver)?;
    let client = Vendor::MariaDb.programs()?.client;
    let mut child = std::process::Command::new(client)
        .args([
            "--no-defaults",
            "--protocol=tcp",
            "--host=127.0.0.1",
            "--skip-ssl",
            "--user=app",
            "--password=secret",
            "--quick",
            "--batch",
        ])
        .arg(format!("--port={}", proxy.port))
        .args([
            "-e",
            "SELECT a.id, REPEAT('x', 500) FROM conf.numbers a, conf.numbers b LIMIT 1000000",
        ])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .map_err(|error| error.to_string())?;
    // Nothing reads the pipe: half a gigabyte has to wait in the server.
    thread::sleep(Duration::from_secs(4));
    let megabytes = resident_megabytes(proxy.id());
    let others = proxy.query("SELECT 1");
    let _ = child.kill();
    let _ = child.wait();
    same(&others?, "1")?;
    expect(megabytes < 200, || format!("{megabytes} MB are resident"))?;
    expect(proxy.runs(), || proxy.log())
}

fn resident_megabytes(id: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|words| words.split_whitespace().next()?.parse::<u64>().ok())
        .unwrap_or_default()
        / 1024
}

fn a_file_that_breaks_off(driver: Driver) -> Outcome {
    let mut server = Server::start(Vendor::MariaDb)?;
    let mut wish = Wish::in_front_of(&server);
    wish.variables
        .push_str("    enable_load_data_local_infile = true\n");
    let mut proxy = Proxy::start(driver, &wish)?;
    let begin = |port: u16| -> Result<Raw, String> {
        let mut client = Raw::log_in(port, caps::LOCAL_FILES)?;
        let wants = client.query("LOAD DATA LOCAL INFILE 'x' INTO TABLE conf.scratch")?;
        expect(wants.contains("wants a file"), || wants.clone())?;
        client.send(2, b"1\tone\n2\ttwo\n")?;
        Ok(client)
    };
    // The client leaves: nothing of its file stays, and the table is free.
    drop(begin(proxy.port)?);
    soon(|| {
        let running = server.root(
            "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'LOAD DATA%'",
        )?;
        same(running.trim().trim_start_matches("COUNT(*)"), "0")
    })?;
    same(&proxy.query("SELECT COUNT(*) FROM conf.scratch")?, "0")?;
    // A client cannot read on and goes on to its next statement: that is no part of the file, and
    // nobody reads it as one.
    for port in [server.port, proxy.port] {
        let told = begin(port)?
            .query("SELECT 'next'")
            .unwrap_or_else(|gone| gone);
        expect(!told.contains("next"), || told.clone())?;
        same(&proxy.query("SELECT COUNT(*) FROM conf.scratch")?, "0")?;
    }
    // The same with compression, where the numbers are those of frames. What was read stays in a
    // table without transactions.
    server.root("CREATE TABLE conf.stays (id INT, name TEXT) ENGINE = MyISAM")?;
    for port in [server.port, proxy.port] {
        let mut client = Raw::log_in(port, caps::LOCAL_FILES | caps::COMPRESS)?;
        let frame = |seq: u8, number: u8, payload: &[u8]| {
            let (inner, len) = (payload.len() as u8, payload.len() as u8 + 4);
            [&[len, 0, 0, seq, 0, 0, 0, inner, 0, 0, number][..], payload].concat()
        };
        let wanted = client.exchange(&frame(
            0,
            0,
            b"\x03LOAD DATA LOCAL INFILE 'x' INTO TABLE conf.stays",
        ))?;
        expect(wanted.ends_with(b"\xfbx"), || {
            wanted.escape_ascii().to_string()
        })?;
        let next = b"\x03SELECT '\n7\tseven\n', 'next'";
        let both = [frame(2, 2, b"1\tone\n2\ttwo\n"), frame(0, 0, next)].concat();
        let told = client.last_words(&both)?;
        expect(!told.windows(4).any(|words| words == b"next"), || {
            told.escape_ascii().to_string()
        })?;
        same(
            &proxy.query("SELECT COUNT(*) FROM conf.stays WHERE id = 7")?,
            "0",
        )?;
    }
    // The server leaves, as it does when its client is silent for too long: nothing of a client
    // that stays silent is kept.
    let silent = begin(proxy.port)?;
    let running = server
        .root("SELECT id FROM information_schema.processlist WHERE info LIKE 'LOAD DATA%'")?;
    server.root(&format!(
        "KILL CONNECTION {}",
        running.trim().trim_start_matches("id").trim()
    ))?;
    soon(|| {
        let listed = format!(
            "SELECT COUNT(*) FROM stats_mysql_processlist WHERE SessionID = {}",
            silent.id
        );
        same(proxy.admin(&listed)?.trim(), "0")
    })?;
    // It leaves while its client sends: the client is told by the end of its connection.
    let mut client = begin(proxy.port)?;
    server.kill();
    let mut seq = 2_u8;
    let cut = soon(|| {
        seq = seq.wrapping_add(1);
        let sent = client.send(seq, &[b'x'; 100_000]);
        expect(sent.is_err(), || "it still takes the file".into())
    });
    cut?;
    expect(proxy.runs(), || proxy.log())?;
    server.restart()?;
    let said = soon(|| proxy.query("SELECT COUNT(*) FROM conf.scratch"))?;
    same(&said, "0")
}

fn a_cursor_whose_server_died(driver: Driver) -> Outcome {
    let (mut server, proxy) = one(driver)?;
    let mut client = Raw::log_in(proxy.port, 0)?;
    client.prepare("SELECT id FROM conf.numbers")?;
    client.execute(0, 1, b"")?;
    client.fetch(0, 2)?;
    server.kill();
    let said = client.fetch(0, 2);
    expect(said.is_err(), || format!("an end was wanted: {said:?}"))?;
    expect(client.query("SELECT 1").is_err(), || {
        "the session went on without its rows".into()
    })
}

fn an_open_transaction_is_rolled_back(driver: Driver) -> Outcome {
    let (server, proxy) = one(driver)?;
    for turn in 0..5 {
        proxy.query(&format!(
            "BEGIN; INSERT INTO conf.scratch VALUES ({turn}, 'never committed')"
        ))?;
    }
    soon(|| {
        same(
            server
                .root("SELECT COUNT(*) FROM conf.scratch")?
                .trim()
                .trim_start_matches("COUNT(*)"),
            "0",
        )
    })?;
    // And the rows are not locked by a connection that was put back with its transaction.
    same(
        &proxy.query(
            "SET innodb_lock_wait_timeout=2; INSERT INTO conf.scratch VALUES (1, 'now'); SELECT COUNT(*) FROM conf.scratch",
        )?,
        "1",
    )
}
