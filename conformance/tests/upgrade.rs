//! A new process takes over from the one that serves: nobody is refused, no statement fails, and
//! sessions go on with all that they have set.
#![forbid(unsafe_code)]

use conformance::beside::asked;
use conformance::by_hand::{self, Raw};
use conformance::process::free_port;
use conformance::proxy::{Driver, Proxy};
use conformance::servers::{Server, Vendor};
use conformance::statements::{prepare, rows_of};
use conformance::trials::{self, expect, same, soon};
use conformance::watch::HANGS;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

type Outcome = Result<(), String>;

fn main() {
    trials::run(&[
        ("nobody_is_refused_and_sessions_go_on", goes_on),
        ("who_cannot_take_over_leaves_all_as_it_was", stays),
        ("more_and_fewer_cores_serve_the_same_clients", other_cores),
        ("who_stays_is_served_until_the_deadline", deadline),
        ("limits_of_servers_hold_for_both_processes", limits),
        ("totals_go_on_and_nothing_is_counted_twice", totals),
    ])
}

fn said(error: impl ToString) -> String {
    error.to_string()
}

fn one(driver: Driver) -> Result<(Server, Proxy), String> {
    by_hand::one(driver, Vendor::MariaDb)
}

/// Clients that come, ask and go, and some that stay, until they are told to end.
struct Load {
    ends: Arc<AtomicBool>,
    asked: Arc<AtomicU64>,
    clients: Vec<thread::JoinHandle<Outcome>>,
}

impl Load {
    fn begin(port: u16) -> Self {
        let (ends, asked) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let clients = (0..6).map(|nth| {
            let (ends, count) = (ends.clone(), asked.clone());
            thread::spawn(move || {
                let mut stays = None;
                while !ends.load(Ordering::Relaxed) {
                    let mut client = match stays.take() {
                        Some(client) => client,
                        None => Raw::log_in(port).map_err(|error| format!("login: {error}"))?,
                    };
                    let stayed = nth % 2 == 0;
                    let rows = client.ask("SELECT 1 + 1");
                    let rows =
                        rows.map_err(|error| format!("one that stays: {stayed}: {error}"))?;
                    expect(rows == [["2"]], || format!("{rows:?}"))?;
                    count.fetch_add(1, Ordering::Relaxed);
                    stays = stayed.then_some(client);
                }
                Ok(())
            })
        });
        Self {
            clients: clients.collect(),
            ends,
            asked,
        }
    }

    /// How many answers came; no client may have seen an error.
    fn end(self) -> Result<u64, String> {
        self.ends.store(true, Ordering::Relaxed);
        for client in self.clients {
            client.join().map_err(|_| "a client has panicked")??;
        }
        Ok(self.asked.load(Ordering::Relaxed))
    }
}

fn number(client: &mut Raw) -> Result<String, String> {
    Ok(asked(client, "SELECT CONNECTION_ID()")?.concat().concat())
}

fn goes_on(driver: Driver) -> Outcome {
    let (server, mut proxy) = one(driver)?;
    server.root(
        "CREATE TABLE conf.upgraded (id INT PRIMARY KEY AUTO_INCREMENT, words VARCHAR(20))",
    )?;
    // What is in force counts, saved or not.
    proxy.admin("SET mysql-max_allowed_packet = 33554432; LOAD MYSQL VARIABLES TO RUNTIME")?;
    let port = proxy.port;
    let log_in = || Raw::log_in(port).map_err(said);
    let (mut idle, mut writes) = (log_in()?, log_in()?);
    for text in [
        "USE conf",
        "SET @x = 'kept', sql_mode = 'ANSI_QUOTES', @@session.max_join_size = 4711",
        "SET NAMES latin1",
        "INSERT INTO upgraded (words) VALUES ('before')",
    ] {
        asked(&mut idle, text)?;
    }
    const STATE: &str = "SELECT CONNECTION_ID(), DATABASE(), @x, @@sql_mode, @@max_join_size, @@character_set_client, \
                         LAST_INSERT_ID(), \"words\" FROM upgraded WHERE id = 1";
    let before = asked(&mut idle, STATE)?;
    let id = prepare(
        &mut idle,
        "SELECT words, 'prepared' FROM upgraded WHERE id = 1",
    )?;
    let row = rows_of(&mut idle, id)?;
    asked(&mut writes, "BEGIN")?;
    asked(
        &mut writes,
        "INSERT INTO conf.upgraded (words) VALUES ('in the middle')",
    )?;
    let load = Load::begin(proxy.port);
    thread::sleep(Duration::from_millis(300));

    let mut old = proxy.upgrade(&[])?;

    thread::sleep(Duration::from_millis(300));
    let answers = load.end()?;
    expect(answers > 100, || format!("{answers} answers"))?;
    let after =
        asked(&mut idle, STATE).map_err(|error| format!("idle: {error}: {}", proxy.log()))?;
    expect(before == after, || format!("{before:?} became {after:?}"))?;
    same(&rows_of(&mut idle, id)?, &row)?;
    same(
        &proxy.admin("SELECT @@mysql-max_allowed_packet")?,
        "33554432",
    )?;
    // Who has a transaction open ends it where he began it, and goes then.
    expect(old.ended().is_none(), || {
        "the old process ended too soon".to_owned()
    })?;
    asked(&mut writes, "COMMIT")?;
    same(
        &asked(&mut writes, "SELECT COUNT(*) FROM conf.upgraded")?
            .concat()
            .concat(),
        "2",
    )?;
    let ended = old.wait(Duration::from_secs(60));
    expect(ended.is_some_and(|status| status.success()), || {
        format!("the old process: {ended:?}: {}", proxy.log())
    })?;
    asked(&mut writes, "DO 1")?;
    // Numbers are the same, and a KILL finds them.
    let (mut killer, victim) = (log_in()?, number(&mut idle)?);
    asked(&mut killer, &format!("KILL {victim}"))?;
    expect(asked(&mut idle, "DO 1").is_err(), || {
        "the KILL did nothing".to_owned()
    })?;
    let pid = fs::read_to_string(proxy.data().join("millrace.pid")).map_err(said)?;
    same(&pid, &proxy.id().to_string())?;
    let settled = || {
        proxy.admin("SELECT variable_value + 0 >= 2 FROM stats_mysql_global WHERE variable_name = 'Millrace_sessions_settled'")
    };
    soon("1\n", settled)
}

/// A process with another driver, somebody who says nothing, and one that is killed before it serves.
fn stays(driver: Driver) -> Outcome {
    let (_server, mut proxy) = one(driver)?;
    let mut client = Raw::log_in(proxy.port).map_err(said)?;
    asked(&mut client, "SET @x = 1")?;
    proxy.admin("PROXYSQL READONLY")?;
    let other = if driver == Driver::Epoll {
        "uring"
    } else {
        "epoll"
    };
    match proxy.upgrade(&["--io-driver", other]) {
        Ok(_) => return Err("it took over with another driver".to_owned()),
        Err(words) => expect(words.contains("cannot take over"), || words.clone())?,
    }
    let silent = UnixStream::connect(proxy.data().join("millrace_upgrade.sock")).map_err(said)?;
    drop(silent);
    // What an operator has forbidden stays so, and changes are accepted again.
    let forbidden = proxy.admin("DELETE FROM mysql_query_rules");
    expect(forbidden.is_err(), || format!("{forbidden:?}"))?;
    proxy.admin("PROXYSQL READWRITE; INSERT INTO mysql_query_rules (rule_id) VALUES (4711)")?;
    let loads = || proxy.admin("LOAD MYSQL SERVERS TO RUNTIME; SELECT 1");
    soon("1\n", loads)?;
    same(&asked(&mut client, "SELECT @x")?.concat().concat(), "1")?;
    same(&proxy.query("SELECT 2")?, "2")?;
    // And the next may take over.
    let mut old = proxy.upgrade(&[])?;
    same(&asked(&mut client, "SELECT @x")?.concat().concat(), "1")?;
    expect(old.wait(Duration::from_secs(60)).is_some(), || proxy.log())
}

fn other_cores(driver: Driver) -> Outcome {
    let (_server, mut proxy) = one(driver)?;
    for threads in [4, 1, 2] {
        proxy.admin(&format!(
            "SET mysql-threads = {threads}; LOAD MYSQL VARIABLES TO RUNTIME"
        ))?;
        let load = Load::begin(proxy.port);
        let mut clients = Vec::new();
        for _ in 0..8 {
            clients.push(Raw::log_in(proxy.port).map_err(said)?);
        }
        let numbers: Vec<_> = clients.iter_mut().map(number).collect::<Result<_, _>>()?;
        let mut old = proxy.upgrade(&[])?;
        load.end()?;
        for (client, before) in clients.iter_mut().zip(&numbers) {
            same(&number(client)?, before)?;
        }
        expect(old.wait(Duration::from_secs(60)).is_some(), || proxy.log())?;
        for (client, before) in clients.iter_mut().zip(&numbers) {
            let mut killer = Raw::log_in(proxy.port).map_err(said)?;
            asked(&mut killer, &format!("KILL {before}"))?;
            expect(asked(client, "DO 1").is_err(), || {
                "the KILL did nothing".to_owned()
            })?;
        }
    }
    Ok(())
}

/// A `mariadb` client that is asked one statement after another.
struct Terminal(Child, BufReader<ChildStdout>);

impl Terminal {
    fn begin(port: u16, options: &[&str]) -> Result<Self, String> {
        let mut child = Command::new("mariadb")
            .args(["--no-defaults", "-h127.0.0.1", "-N", "-B", "--unbuffered"])
            .args(["--skip-reconnect", "--user", by_hand::USER])
            .arg(format!("-P{port}"))
            .args(options)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(said)?;
        let answers = child.stdout.take().ok_or("no answers")?;
        Ok(Self(child, BufReader::new(answers)))
    }

    /// The first line of the answer; none if the client has ended.
    fn ask(&mut self, sql: &str) -> Option<String> {
        let questions = self.0.stdin.as_mut()?;
        writeln!(questions, "{sql};").ok()?;
        questions.flush().ok()?;
        let mut line = String::new();
        self.1.read_line(&mut line).ok()?;
        (!line.is_empty()).then(|| line.trim_end().to_owned())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Sessions with TLS or compression stay where they are and work on, while others like them are
/// served by the new process; at the deadline they end, never inside of a statement.
fn deadline(driver: Driver) -> Outcome {
    let (_server, mut proxy) = one(driver)?;
    proxy.admin("SET mysql-upgrade_deadline_ms = 3000; LOAD MYSQL VARIABLES TO RUNTIME")?;
    let kinds: [&[&str]; 3] = [&["--ssl"], &["--compress"], &["--ssl", "--compress"]];
    let begin = |port| {
        let begun = kinds.iter().map(|options| Terminal::begin(port, options));
        begun.collect::<Result<Vec<_>, _>>()
    };
    let mut stay = begin(proxy.port)?;
    for client in &mut stay {
        same(
            &client.ask("SET @x = 7; SELECT @x").unwrap_or_default(),
            "7",
        )?;
    }
    let mut old = proxy.upgrade(&[])?;
    let mut come = begin(proxy.port)?;
    for client in stay.iter_mut().chain(&mut come) {
        let told = client.ask("SELECT 'served'").unwrap_or_default();
        same(&told, "served").map_err(|words| format!("{words}: {}", proxy.log()))?;
    }
    for client in &mut stay {
        same(&client.ask("SELECT @x").unwrap_or_default(), "7")?;
    }
    expect(old.ended().is_none(), || "it did not wait".to_owned())?;
    // This one begins before the deadline and ends behind it.
    let asks = thread::spawn(move || {
        let told = stay[2].ask("SELECT 'whole', SLEEP(5)");
        (told, stay)
    });
    let ended = old.wait(Duration::from_secs(60));
    expect(ended.is_some_and(|status| status.success()), || proxy.log())?;
    let (told, mut stay) = asks.join().map_err(|_| "a client has panicked")?;
    same(&told.unwrap_or_default(), "whole\t0")?;
    expect(stay[0].ask("SELECT 1").is_none(), || {
        "it was served by a process that has ended".to_owned()
    })?;
    for client in &mut come {
        same(&client.ask("SELECT 'still'").unwrap_or_default(), "still")?;
    }
    Ok(())
}

/// So many clients may be there, and the old process has some of them that cannot move.
fn no_more_clients(proxy: &Proxy, all: usize, there: usize) -> Outcome {
    let log_in = || Raw::log_in(proxy.port).map_err(said);
    let others = (there..all)
        .map(|_| log_in())
        .collect::<Result<Vec<_>, _>>()?;
    let refused = |words: &str| {
        soon("true", || {
            let told = log_in().err().unwrap_or_default();
            Ok(told.contains(words).to_string())
        })
    };
    refused("max_user_connections")?;
    let load = "LOAD MYSQL USERS TO RUNTIME; LOAD MYSQL VARIABLES TO RUNTIME";
    proxy.admin(&format!(
        "UPDATE mysql_users SET max_connections = 1000; SET mysql-max_connections = {all}; {load}"
    ))?;
    refused("Too many connections")?;
    drop(others);
    let more = format!("SET mysql-max_connections = 1000; {load}");
    proxy.admin(&more).map(drop)
}

/// While transactions keep connections of the old process, the new one opens no more than are left,
/// and its clients wait. It lets no more of them in than both may have.
fn limits(driver: Driver) -> Outcome {
    const MAX: usize = 4;
    const CLIENTS: usize = 5;
    let (server, mut proxy) = one(driver)?;
    proxy.admin(&format!(
        "UPDATE mysql_servers SET max_connections = {MAX}; LOAD MYSQL SERVERS TO RUNTIME; \
         UPDATE mysql_users SET max_connections = {CLIENTS}; LOAD MYSQL USERS TO RUNTIME; \
         SET mysql-connect_timeout_server_max = 60000; LOAD MYSQL VARIABLES TO RUNTIME"
    ))?;
    let port = proxy.port;
    let begin = move || {
        let mut client = Raw::log_in(port).map_err(said)?;
        asked(&mut client, "BEGIN")?;
        asked(&mut client, "SELECT 1")?;
        Ok::<_, String>(client)
    };
    let mut keep = vec![begin()?, begin()?];
    let connections = || {
        let told = server.root(&format!(
            "SELECT COUNT(*) FROM information_schema.processlist WHERE user = '{}'",
            by_hand::USER
        ))?;
        Ok::<_, String>(told.lines().last().unwrap_or_default().trim().to_owned())
    };
    let mut old = proxy.upgrade(&[])?;
    no_more_clients(&proxy, CLIENTS, keep.len())?;
    let done = Arc::<AtomicU64>::default();
    let wait: Vec<_> = (0..MAX)
        .map(|_| {
            let done = done.clone();
            thread::spawn(move || {
                let mut client = begin()?;
                done.fetch_add(1, Ordering::Relaxed);
                // Keeps it until all others could have got one.
                thread::sleep(Duration::from_millis(500));
                asked(&mut client, "COMMIT").map(drop)
            })
        })
        .collect();
    let looks = |times: usize| {
        for _ in 0..times {
            let now: usize = connections()?.parse().map_err(said)?;
            expect(now <= MAX, || format!("{now} connections: {}", proxy.log()))?;
            thread::sleep(Duration::from_millis(20));
        }
        Ok::<_, String>(())
    };
    looks(20)?;
    for mut client in keep.drain(..) {
        asked(&mut client, "COMMIT")?;
        looks(10)?;
    }
    for one in wait {
        one.join().map_err(|_| "a client has panicked")??;
    }
    same(&done.load(Ordering::Relaxed).to_string(), "4")?;
    expect(old.wait(Duration::from_secs(60)).is_some(), || proxy.log())?;
    // With the old one gone the limit is the new one's alone.
    let all = (0..MAX).map(|_| begin()).collect::<Result<Vec<_>, _>>()?;
    same(&connections()?, &MAX.to_string())?;
    drop(all);
    Ok(())
}

/// Samples of totals over HTTP: statements of clients, statements sent to servers, SELECTs.
fn scrape(port: u16) -> Result<[f64; 3], String> {
    let words = |error: std::io::Error| format!("metrics: {error}");
    let mut socket = TcpStream::connect(("127.0.0.1", port)).map_err(words)?;
    socket.set_read_timeout(Some(HANGS)).map_err(words)?;
    socket
        .write_all(b"GET /metrics HTTP/1.0\r\nHost: x\r\n\r\n")
        .map_err(words)?;
    let mut text = String::new();
    socket.read_to_string(&mut text).map_err(words)?;
    expect(text.contains("proxysql_questions_total"), || text.clone())?;
    // What was never counted is not there.
    let value = |sample: &str| {
        let line = text.lines().find(|line| line.starts_with(sample));
        line.and_then(|line| line.rsplit(' ').next()?.parse().ok())
            .unwrap_or(0.0)
    };
    Ok([
        value("proxysql_questions_total "),
        value("proxysql_connpool_conns_queries_total{"),
        value("millrace_command_latency_seconds_count{command=\"SELECT\"}"),
    ])
}

/// Whoever reads the totals sees none go down, while a process takes over and another serves on.
fn totals(driver: Driver) -> Outcome {
    let (_server, mut proxy) = one(driver)?;
    let port = free_port().map_err(said)?;
    proxy.admin(&format!(
        "SET admin-restapi_port = {port}; SET admin-restapi_enabled = 'true'; \
         LOAD ADMIN VARIABLES TO RUNTIME"
    ))?;
    soon("true", || Ok(scrape(port).is_ok().to_string()))?;
    // Two processes later they are what three have counted.
    let mut counted = 0;
    for _ in 0..2 {
        let (load, ends) = (Load::begin(proxy.port), Arc::<AtomicBool>::default());
        let until = ends.clone();
        let watches = thread::spawn(move || {
            let (mut last, mut times) = ([0.0; 3], 0);
            while !until.load(Ordering::Relaxed) {
                let now = scrape(port)?;
                let falls = now.iter().zip(last).any(|(now, last)| *now < last);
                expect(!falls, || format!("{last:?} became {now:?}"))?;
                (last, times) = (now, times + 1);
            }
            Ok::<_, String>(times)
        });
        // It stays where it is.
        let mut stays = Terminal::begin(proxy.port, &["--ssl"])?;
        let mut comes = Raw::log_in(proxy.port).map_err(said)?;
        const SQL: &str = "SELECT 'counted', 1";
        for _ in 0..5 {
            same(&stays.ask(SQL).unwrap_or_default(), "counted\t1")?;
            asked(&mut comes, SQL)?;
        }
        let mut old = proxy.upgrade(&[])?;
        for _ in 0..5 {
            same(&stays.ask(SQL).unwrap_or_default(), "counted\t1")?;
            asked(&mut comes, SQL)?;
        }
        counted += 20;
        let answers = load.end()?;
        ends.store(true, Ordering::Relaxed);
        let scrapes = watches.join().map_err(|_| "the watcher has panicked")??;
        expect(scrapes > 3, || {
            format!("{scrapes} scrapes, {answers} answers")
        })?;
        drop(stays);
        expect(old.wait(Duration::from_secs(60)).is_some(), || proxy.log())?;
        let rows = |table: &str| {
            let of = "digest_text = 'SELECT ?,?' OR digest_text = 'SELECT ?, ?'";
            proxy.admin(&format!("SELECT SUM(count_star) FROM {table} WHERE {of}"))
        };
        soon(&format!("{counted}\n"), || rows("stats_mysql_query_digest"))?;
        // Each session says more than its statements; the classes count what was asked.
        let [_, queries, selects] = scrape(port)?;
        expect(selects <= queries, || format!("{selects} of {queries}"))?;
    }
    let take = "SELECT SUM(count_star) FROM stats_mysql_query_digest_reset WHERE digest_text LIKE 'SELECT ?,%'";
    same(&proxy.admin(take)?, &counted.to_string())?;
    same(&proxy.admin(take)?, "NULL")
}
