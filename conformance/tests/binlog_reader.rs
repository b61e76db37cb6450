//! `millrace binlog-reader` before a MySQL: what it tells, when, and what becomes of who listens
//! when the server is another.
#![forbid(unsafe_code)]

use conformance::beside::asked;
use conformance::binlog_reader::Reader;
use conformance::by_hand::{self, Raw};
use conformance::proxy::Driver;
use conformance::servers::{Server, Vendor};
use conformance::trials::{self, expect, same, soon};
use std::thread;
use std::time::{Duration, Instant};

type Outcome = Result<(), String>;

fn main() {
    let missing = Vendor::MySql.programs().err();
    trials::run_once_unless(
        missing.as_deref(),
        &[
            ("what_is_told_can_be_read", can_be_read),
            ("each_client_is_told_in_its_words", words),
            (
                "another_server_is_not_taken_for_the_one_before",
                another_server,
            ),
            ("who_may_not_follow_is_told_why", not_allowed),
            ("little_is_said_and_soon", little_and_soon),
        ],
    )
}

const GTIDS: [&str; 3] = [
    "--gtid-mode=ON",
    "--enforce-gtid-consistency=ON",
    "--log-bin=log",
];

fn server() -> Result<Server, String> {
    let server = Server::start_with(Vendor::MySql, &GTIDS)?;
    server.root("RESET BINARY LOGS AND GTIDS")?;
    server.root(by_hand::CREATE_USER)?;
    server.root("CREATE DATABASE d; CREATE TABLE d.t (a INT PRIMARY KEY)")?;
    Ok(server)
}

fn log_in(server: &Server) -> Result<Raw, String> {
    Raw::log_in(server.port).map_err(|error| error.to_string())
}

/// The server waits between its log and its tables: who tells what the log has tells too much.
fn can_be_read(_: Driver) -> Outcome {
    let server = server()?;
    server.root("SET GLOBAL sync_binlog = 0, GLOBAL binlog_group_commit_sync_delay = 200000")?;
    let reader = Reader::of(&server, &[])?;
    let (mut told, set) = reader.client()?;
    expect(set.starts_with("ST=") && set.ends_with(":1-4"), || {
        set.clone()
    })?;
    let mut eyes = log_in(&server)?;
    let port = server.port;
    let writes = thread::spawn(move || -> Outcome {
        let mut hands = Raw::log_in(port).map_err(|error| error.to_string())?;
        for a in 1..=5 {
            asked(&mut hands, &format!("INSERT INTO d.t VALUES ({a})"))?;
        }
        Ok(())
    });
    for a in 1..=5 {
        let line = told.line()?.ok_or("the reader has gone")?;
        let rows = asked(&mut eyes, "SELECT count(*) FROM d.t")?;
        same(&rows.concat().concat(), &a.to_string())?;
        expect(line.ends_with(&(a + 4).to_string()), || line.clone())?;
    }
    writes.join().map_err(|_| "the writer panicked")?
}

/// A24, A26: who connects is pushed what there is and what comes. Numbers for each consumer there is,
/// intervals for who asked for them.
fn words(_: Driver) -> Outcome {
    let server = server()?;
    let uuid = server.root("SELECT @@server_uuid")?;
    let uuid = uuid.lines().last().unwrap_or_default().to_owned();
    let short = uuid.replace('-', "");
    let plain = Reader::of(&server, &[])?;
    let batched = Reader::of(&server, &["-b", "1", "-t", "500"])?;
    let (mut one, set) = plain.client()?;
    same(&set, &format!("ST={uuid}:1-4"))?;
    let (mut other, set) = batched.client()?;
    same(&set, &format!("ST={uuid}:1-4"))?;
    let mut hands = log_in(&server)?;
    // A tag has no place there.
    asked(&mut hands, "SET gtid_next = 'AUTOMATIC:tag'")?;
    asked(&mut hands, "INSERT INTO d.t VALUES (0)")?;
    asked(&mut hands, "SET gtid_next = 'AUTOMATIC'")?;
    for a in 1..=3 {
        asked(&mut hands, &format!("INSERT INTO d.t VALUES ({a})"))?;
    }
    for line in [format!("I1={short}:5"), "I2=6".into(), "I2=7".into()] {
        same(&one.line()?.unwrap_or_default(), &line)?;
    }
    same(
        &other.line()?.unwrap_or_default(),
        &format!("I3={short}:5-7"),
    )?;
    asked(&mut hands, "INSERT INTO d.t VALUES (4)")?;
    same(&other.line()?.unwrap_or_default(), "I4=8")?;
    same(&one.line()?.unwrap_or_default(), "I2=8")?;
    // Nobody says anything to a reader.
    one.say("hello")?;
    same(&format!("{:?}", one.line()?), "None")?;
    // Who comes now begins with all of it.
    let (_, set) = plain.client()?;
    same(&set, &format!("ST={uuid}:1-8"))
}

/// Its clients are sent away, and are told anew.
fn another_server(_: Driver) -> Outcome {
    let mut server = server()?;
    let reader = Reader::of(&server, &[])?;
    let (mut told, before) = reader.client()?;
    let _made_anew = std::fs::remove_file(server.tls_file("auto.cnf"));
    server.restart()?;
    same(&format!("{:?}", told.line()?), "None")?;
    server.root("RESET BINARY LOGS AND GTIDS; CREATE TABLE d.u (a INT)")?;
    let (_, after) = reader.client()?;
    expect(
        after.ends_with(":1-1") && after[..39] != before[..39],
        || format!("{before} {after}"),
    )
}

fn not_allowed(_: Driver) -> Outcome {
    let server = server()?;
    server.root("CREATE USER poor@'%'")?;
    let reader = Reader::of_user(&server, "poor", &[])?;
    let says = |words: &str| soon("true", || Ok(reader.log().contains(words).to_string()));
    says("the account 'poor' needs REPLICATION SLAVE there")?;
    // It goes on when he may.
    server.root("GRANT REPLICATION SLAVE ON *.* TO poor@'%'")?;
    reader.client()?;
    says("is followed again")?;
    for (option, words) in [
        ("--gtid-mode=OFF", "its gtid_mode is OFF"),
        ("--gtid-mode=ON", "it writes no binary log"),
    ] {
        let options = [option, "--enforce-gtid-consistency=ON"];
        let other = Server::start_with(Vendor::MySql, &options)?;
        other.root(by_hand::CREATE_USER)?;
        let reader = Reader::of(&other, &[])?;
        soon("true", || Ok(reader.log().contains(words).to_string()))?;
    }
    Ok(())
}

/// A25 and A30: bytes for each transaction, and how long after its OK a client is told of it.
fn little_and_soon(_: Driver) -> Outcome {
    const COMMITS: usize = 300;
    let server = server()?;
    let reader = Reader::of(&server, &[])?;
    let (mut told, _) = reader.client()?;
    let mut hands = log_in(&server)?;
    let hears = thread::spawn(move || -> Result<(Vec<Instant>, usize), String> {
        let (mut when, mut bytes) = (Vec::new(), 0);
        while when.len() < COMMITS {
            let line = told.line()?.ok_or("the reader has gone")?;
            when.push(Instant::now());
            bytes += line.len() + 1;
        }
        Ok((when, bytes))
    });
    let mut done = Vec::new();
    for a in 1..=COMMITS {
        asked(&mut hands, &format!("INSERT INTO d.t VALUES ({a})"))?;
        done.push(Instant::now());
        // 100 a second.
        thread::sleep(Duration::from_millis(10));
    }
    let (when, bytes) = hears.join().map_err(|_| "who hears panicked")??;
    let mut late: Vec<_> = done
        .iter()
        .zip(&when)
        .map(|(done, when)| when.saturating_duration_since(*done))
        .collect();
    late.sort_unstable();
    let (half, most) = (late[COMMITS / 2], late[COMMITS * 99 / 100]);
    println!(
        "told behind the OK: p50 {half:?}, p99 {most:?}; {:.1} bytes a transaction",
        bytes as f64 / COMMITS as f64
    );
    expect(bytes < 10 * COMMITS, || format!("{bytes} bytes"))?;
    // A machine that does much else is late now and then.
    expect(half < Duration::from_millis(5), || format!("{half:?}"))
}
