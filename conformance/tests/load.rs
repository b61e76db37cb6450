//! Millrace under more than it usually has: thousands of clients, results larger than memory should
//! ever hold, deaths and garbage while others work.
//!
//! `make stress` runs the same for longer (`MILLRACE_STRESS=1`).
#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::fs;
use std::io::Write as _;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use conformance::by_hand::{self, Raw};
use conformance::library;
use conformance::process::free_port;
use conformance::proxy::{Driver, Proxy, Wish};
use conformance::servers::{Server, Vendor};
use conformance::trials::{self, expect, same};
use conformance::watch::HANGS;
use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use tokio::task::JoinSet;

type Outcome = Result<(), String>;

/// Connections of the pool in every test here.
const POOL: u32 = 100;

fn main() {
    // A test has two descriptors of each of its thousands of clients at most.
    let _as_far_as_it_goes = rlimit::increase_nofile_limit(u64::MAX);
    trials::run_on_both(&[
        (
            "thousands_of_clients_get_their_own_answers_over_a_small_pool",
            thousands_of_clients,
        ),
        (
            "a_slow_reader_of_two_gigabytes_costs_no_memory_and_nobody_else",
            a_slow_reader,
        ),
        (
            "acknowledged_writes_outlive_kill_9_of_server_and_proxy",
            acknowledged_writes,
        ),
        (
            "garbage_on_every_port_disturbs_no_client",
            garbage_under_load,
        ),
    ])
}

fn stress() -> bool {
    std::env::var_os("MILLRACE_STRESS").is_some()
}

/// A server that keeps what it has acknowledged when it is killed, and a proxy before it with a
/// pool of [`POOL`].
fn one(driver: Driver, more: impl FnOnce(&mut Wish)) -> Result<(Server, Proxy), String> {
    let options = [
        "--innodb-flush-log-at-trx-commit=2",
        "--innodb-doublewrite=1",
    ];
    let server = Server::start_with(Vendor::MariaDb, &options)?;
    server.root(by_hand::CREATE_USER)?;
    server.root("CREATE TABLE conf.acknowledged (id BIGINT, KEY (id)) ENGINE=InnoDB")?;
    let mut wish = Wish::in_front_of(&server);
    wish.servers = wish.servers.replace(
        "max_connections = 2000",
        &format!("max_connections = {POOL}"),
    );
    wish.add_open_user();
    // Who waits behind thousands on a slow machine waits longer than the usual ten seconds.
    wish.variables
        .push_str("    connect_timeout_server_max = 120000\n");
    more(&mut wish);
    let proxy = Proxy::start(driver, &wish)?;
    Ok((server, proxy))
}

fn resident_megabytes(id: u32, field: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    line.and_then(|words| words.split_whitespace().next()?.parse::<u64>().ok())
        .unwrap_or_default()
        / 1024
}

fn runtime() -> Result<tokio::runtime::Runtime, String> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())
}

/// Waits for all tasks, and returns what they have come to. This client has no patience of its own:
/// who gets no answer at all would wait for ever.
async fn every<T: 'static>(mut set: JoinSet<Result<T, String>>) -> Result<Vec<T>, String> {
    let at_most = Duration::from_secs(if stress() { 3600 } else { 300 });
    let (mut all, many) = (Vec::new(), set.len());
    let ended = tokio::time::timeout(at_most, async {
        while let Some(one) = set.join_next().await {
            all.push(one.map_err(|error| error.to_string())??);
        }
        Ok::<_, String>(())
    });
    ended.await.unwrap_or_else(|_| {
        Err(format!(
            "not all of {many} clients were done within {at_most:?}"
        ))
    })?;
    Ok(all)
}

async fn come_in(port: u16, tag: u64) -> Result<(u64, Conn), String> {
    let conn = library::come_in(port)
        .await
        .map_err(|error| format!("client {tag} does not come in: {error}"))?;
    Ok((tag, conn))
}

/// A statement for everybody, a slow one, a prepared one and a small transaction: each must come
/// back with its own tag.
async fn work(tag: u64, conn: &mut Conn) -> Outcome {
    let failed = |error: mysql_async::Error| format!("client {tag}: {error}");
    let words = format!("words of {tag}");
    let said: Option<(u64, String)> = conn
        .query_first(format!("SELECT {tag}, '{words}', SLEEP(0.005)"))
        .await
        .map_err(failed)?
        .map(|(a, b, _): (_, _, u8)| (a, b));
    expect(said == Some((tag, words.clone())), || {
        format!("client {tag} was told {said:?}")
    })?;
    match tag % 10 {
        0 => {
            let said: Option<(u64, String)> = conn
                .exec_first("SELECT ?, ?", (tag, &words))
                .await
                .map_err(failed)?;
            expect(said == Some((tag, words)), || {
                format!("client {tag} was told {said:?}, prepared")
            })
        }
        1 => {
            conn.query_drop("BEGIN").await.map_err(failed)?;
            conn.query_drop(format!("INSERT INTO counted (words) VALUES ('{tag}')"))
                .await
                .map_err(failed)?;
            let id = conn.last_insert_id();
            let said: Option<String> = conn
                .query_first(format!(
                    "SELECT words FROM counted WHERE id = {}",
                    id.unwrap_or_default()
                ))
                .await
                .map_err(failed)?;
            conn.query_drop("ROLLBACK").await.map_err(failed)?;
            expect(said.as_deref() == Some(tag.to_string().as_str()), || {
                format!("client {tag} read {said:?} of its own insert")
            })
        }
        2 => {
            conn.query_drop(format!("SET @tag = {tag}"))
                .await
                .map_err(failed)?;
            let said: Option<u64> = conn.query_first("SELECT @tag").await.map_err(failed)?;
            conn.query_drop("SET @tag = NULL").await.map_err(failed)?;
            expect(said == Some(tag), || {
                format!("client {tag} was told {said:?} of its variable")
            })
        }
        _ => Ok(()),
    }
}

fn thousands_of_clients(driver: Driver) -> Outcome {
    let clients: u64 = if stress() { 9_000 } else { 5_000 };
    let rounds = if stress() { 20 } else { 1 };
    // A variable or a prepared statement keeps its connection; over a hundred of them at once would
    // wait for each other for ever.
    let holders = 90;
    // For the same reason an insert's id shall not keep one for the next statements.
    let (server, mut proxy) = one(driver, |wish| {
        wish.variables
            .push_str("    auto_increment_delay_multiplex = 0\n")
    })?;
    runtime()?.block_on(async {
        let mut crowd = Vec::new();
        for group in 0..clients / 250 {
            let mut set = JoinSet::new();
            for tag in group * 250..(group + 1) * 250 {
                set.spawn(come_in(proxy.port, tag));
            }
            crowd.extend(every(set).await?);
        }
        same(
            &proxy.admin("SELECT Variable_Value FROM stats_mysql_global WHERE Variable_Name='Client_Connections_connected'")?,
            &clients.to_string(),
        )?;
        for _ in 0..rounds {
            let mut set = JoinSet::new();
            for (tag, mut conn) in crowd.drain(..) {
                set.spawn(async move {
                    // Only some of them set what holds a connection.
                    let kind = if tag % 10 == 2 && tag / 10 >= holders { tag + 10_000_003 - tag % 10 } else { tag };
                    work(kind, &mut conn).await?;
                    Ok((tag, conn))
                });
            }
            crowd = every(set).await?;
        }
        let mut set = JoinSet::new();
        for (_, conn) in crowd {
            set.spawn(async move { conn.disconnect().await.map_err(|error| error.to_string()) });
        }
        every(set).await?;
        Ok::<(), String>(())
    })?;
    let used = server.root("SHOW GLOBAL STATUS LIKE 'Max_used_connections'")?;
    let used = used
        .split_whitespace()
        .last()
        .and_then(|n| n.parse::<u32>().ok())
        .unwrap_or(u32::MAX);
    // A server counts a connection until it has seen its end, so what is closed on one core for the
    // sake of another counts twice for a moment.
    expect(used <= 2 * POOL, || {
        format!("{used} connections were open at once, and {POOL} were allowed")
    })?;
    expect(proxy.runs(), || proxy.log())
}

/// Its bound: 48 MB more than it had before. What a stopped reader may leave in the proxy is a few
/// hundred kilobytes of buffers.
fn a_slow_reader(driver: Driver) -> Outcome {
    const MEGABYTES_MAX: u64 = 48;
    let rows: u64 = if stress() { 16_000 } else { 2_100 };
    let (_server, mut proxy) = one(driver, |_| {})?;
    let port = proxy.port;
    same(&proxy.query("SELECT 1")?, "1")?;
    let before = resident_megabytes(proxy.id(), "VmHWM:");
    let reads = thread::spawn(move || -> Result<(u64, u64), String> {
        let failed = |error: std::io::Error| format!("the slow reader: {error}");
        let mut reader = Raw::log_in(port).map_err(failed)?;
        let source = "conf.numbers a, (SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5) b";
        reader
            .query(&format!(
                "SELECT REPEAT('x', 1000000) FROM {source} LIMIT {rows}"
            ))
            .map_err(failed)?;
        let (mut count, mut bytes) = (0, 0);
        reader
            .each_row(|row| {
                count += 1;
                bytes += row.len() as u64;
                // Now and then it does nothing at all; between, the proxy goes as fast as it reads.
                if count % 400 == 100 {
                    thread::sleep(Duration::from_millis(400));
                } else if count % 20 == 0 {
                    thread::sleep(Duration::from_millis(5));
                }
            })
            .map_err(failed)?;
        Ok((count, bytes))
    });
    let mut served = 0;
    let mut other = Raw::log_in(port).map_err(|error| error.to_string())?;
    while !reads.is_finished() {
        let said = other
            .ask(&format!("SELECT {served}"))
            .map_err(|error| format!("another client: {error}"))?;
        expect(said == [[served.to_string()]], || {
            format!("another client was told {said:?}")
        })?;
        served += 1;
        thread::sleep(Duration::from_millis(2));
    }
    let (count, bytes) = reads
        .join()
        .map_err(|_| "the slow reader panicked".to_owned())??;
    expect(count == rows && bytes > rows * 1_000_000, || {
        format!("{count} rows of {rows}, {bytes} bytes")
    })?;
    expect(served > 10, || {
        format!("another client was served only {served} times meanwhile")
    })?;
    let after = resident_megabytes(proxy.id(), "VmHWM:");
    expect(after <= before + MEGABYTES_MAX, || {
        format!("resident memory went from {before} to {after} MB")
    })?;
    expect(proxy.runs(), || proxy.log())
}

/// Inserts that writers were told are done.
#[derive(Default)]
struct Ledger {
    next: AtomicU64,
    acknowledged: Mutex<Vec<u64>>,
    over: AtomicBool,
}

impl Ledger {
    /// Inserts one number after the other, each at most once: after an error it goes on with the
    /// next.
    fn write(&self, port: u16) {
        let mut conn = None;
        while !self.over.load(Ordering::Relaxed) {
            let Some(open) = conn.as_mut() else {
                conn = Raw::log_in(port).ok();
                if conn.is_none() {
                    thread::sleep(Duration::from_millis(20));
                }
                continue;
            };
            let id = self.next.fetch_add(1, Ordering::Relaxed);
            match open.ask(&format!("INSERT INTO conf.acknowledged VALUES ({id})")) {
                Ok(_) => self.acknowledged.lock().expect("no writer panics").push(id),
                Err(_) => conn = None,
            }
        }
    }

    /// Waits for so many acknowledgements more.
    fn more(&self, count: usize) -> Outcome {
        let until = Instant::now() + HANGS;
        let begun = self.count();
        while self.count() < begun + count {
            expect(Instant::now() < until, || {
                format!(
                    "only {} of {count} writes in a minute",
                    self.count() - begun
                )
            })?;
            thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    fn count(&self) -> usize {
        self.acknowledged.lock().expect("no writer panics").len()
    }
}

fn acknowledged_writes(driver: Driver) -> Outcome {
    let deaths = if stress() { 15 } else { 2 };
    // A server that is back shall be used at once.
    let (mut server, mut proxy) = one(driver, |wish| {
        wish.variables.push_str("    shun_recovery_time_sec = 1\n")
    })?;
    let ledger = Arc::new(Ledger::default());
    let port = proxy.port;
    let writers: Vec<_> = (0..40)
        .map(|_| {
            let ledger = ledger.clone();
            thread::spawn(move || ledger.write(port))
        })
        .collect();
    for _ in 0..deaths {
        ledger.more(500)?;
        server.kill();
        server.restart()?;
        ledger.more(500)?;
        proxy.restart()?;
    }
    ledger.more(500)?;
    ledger.over.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.join().map_err(|_| "a writer panicked".to_owned())?;
    }
    let said = server.root("SELECT id, COUNT(*) FROM conf.acknowledged GROUP BY id")?;
    let there: HashMap<u64, u64> = said
        .lines()
        .filter_map(|line| line.split_once('\t'))
        .filter_map(|(id, n)| Some((id.parse().ok()?, n.parse().ok()?)))
        .collect();
    let acknowledged = ledger
        .acknowledged
        .lock()
        .map_err(|error| error.to_string())?;
    let lost: Vec<_> = acknowledged
        .iter()
        .filter(|id| !there.contains_key(id))
        .take(10)
        .collect();
    expect(lost.is_empty(), || {
        format!("acknowledged, and not there: {lost:?}")
    })?;
    let twice: Vec<_> = there.iter().filter(|(_, n)| **n > 1).take(10).collect();
    expect(twice.is_empty(), || {
        format!("written once, and there more often: {twice:?}")
    })?;
    expect(proxy.runs(), || proxy.log())
}

/// Numbers that look like nothing.
struct Noise(u64);

impl Noise {
    fn byte(&mut self) -> u8 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as u8
    }

    /// Up to `max` bytes; every other time behind a header that fits them.
    fn bytes(&mut self, max: usize) -> Vec<u8> {
        let length = (usize::from(self.byte()) << 8 | usize::from(self.byte())) % max;
        let mut bytes: Vec<u8> = (0..length).map(|_| self.byte()).collect();
        if self.byte().is_multiple_of(2) && bytes.len() > 4 {
            let inner = (bytes.len() - 4) as u32;
            bytes[..3].copy_from_slice(&inner.to_le_bytes()[..3]);
            bytes[3] = self.byte() % 3;
        }
        bytes
    }
}

fn garbage_under_load(driver: Driver) -> Outcome {
    let rounds = if stress() { 3_000 } else { 150 };
    let embedded = free_port().map_err(|error| error.to_string())?;
    let (_server, mut proxy) = one(driver, |wish| {
        wish.flags.push("--sqlite3-server".to_owned());
        wish.variables.push_str(&format!(
            "}}\nsqliteserver_variables =\n{{\n    mysql_ifaces = \"127.0.0.1:{embedded}\"\n"
        ));
    })?;
    let over = Arc::new(AtomicBool::new(false));
    let port = proxy.port;
    let clients: Vec<_> = (0..24_u64)
        .map(|tag| {
            let over = over.clone();
            thread::spawn(move || -> Outcome {
                let mut client = Raw::log_in(port).map_err(|error| error.to_string())?;
                let mut turns = 0;
                // Whoever is late on a machine with other work is served as well.
                while turns == 0 || !over.load(Ordering::Relaxed) {
                    let said = client
                        .ask(&format!("SELECT {tag}, {turns}"))
                        .map_err(|error| format!("client {tag}: {error}"))?;
                    expect(said == [[tag.to_string(), turns.to_string()]], || {
                        format!("client {tag} was told {said:?}")
                    })?;
                    turns += 1;
                }
                Ok(())
            })
        })
        .collect();
    let mut noise = Noise(0x9e37_79b9_7f4a_7c15);
    for round in 0..rounds {
        for port in [proxy.port, proxy.admin_port, embedded] {
            let mut peer = TcpStream::connect(("127.0.0.1", port)).map_err(|error| {
                format!(
                    "round {round}, port {port}: {error}; Millrace says:\n{}",
                    proxy.log()
                )
            })?;
            // It may be refused in the middle of it.
            let _ = peer.write_all(&noise.bytes(6000));
        }
        let mut peer = UnixStream::connect(proxy.data().join("client.sock"))
            .map_err(|error| format!("client.sock: {error}"))?;
        let _ = peer.write_all(&noise.bytes(6000));
        // Somebody who knows how to come in, and then says commands of garbage.
        let mut known = Raw::log_in(proxy.port)
            .map_err(|error| format!("round {round}: {error}; Millrace says:\n{}", proxy.log()))?;
        for _ in 0..5 {
            let mut command = vec![noise.byte() % 0x24];
            command.extend_from_slice(&noise.bytes(200));
            // COM_QUIT, and what ends a server or another session of this user, are no garbage.
            if ![0x01, 0x08, 0x0c].contains(&command[0]) && known.command(&command).is_err() {
                break;
            }
        }
        let _ = known.bytes(&noise.bytes(600));
    }
    over.store(true, Ordering::Relaxed);
    for client in clients {
        client
            .join()
            .map_err(|_| "a client panicked".to_owned())??;
    }
    expect(proxy.runs(), || format!("Millrace ended:\n{}", proxy.log()))?;
    same(&proxy.query("SELECT 1")?, "1")?;
    same(&proxy.admin("SELECT Variable_Value FROM stats_mysql_global WHERE Variable_Name='Millrace_tasks_panicked'")?, "0")
}
