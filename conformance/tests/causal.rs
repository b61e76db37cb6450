//! A session sees what it has written, wherever its reads go: MySQL with a replica that is held
//! back, and readers that tell what each has executed.
#![forbid(unsafe_code)]

use conformance::beside::asked;
use conformance::by_hand::{self, Raw};
use conformance::clients::Login;
use conformance::process::TempFolder;
use conformance::proxy::{Driver, Proxy, Wish};
use conformance::servers::{Programs, Server, Start, Vendor};
use conformance::trials::{self, expect, same, soon};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

type Outcome = Result<(), String>;

fn main() {
    trials::run_once(&[
        ("a_session_sees_its_writes_on_a_replica", own_writes),
        (
            "logs_of_servers_tell_the_same_without_readers",
            by_logs_of_mysql,
        ),
        ("logs_of_mariadb_tell_it_by_domain", by_logs_of_mariadb),
        ("gtids_are_shown_to_nobody_who_has_not_asked", not_shown),
        ("a_read_of_an_age_goes_where_rows_are_so_fresh", of_an_age),
        (
            "a_disk_that_is_full_loses_no_row_and_shows_no_old_one",
            full_disks,
        ),
    ])
}

/// A reader as ProxySQL's protocol has it, which asks its server what it has executed.
struct Reader {
    port: u16,
    over: Arc<AtomicBool>,
    works: Option<JoinHandle<()>>,
}

impl Reader {
    fn of(server: &Server) -> Result<Self, String> {
        let text = |error: std::io::Error| error.to_string();
        let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(text)?;
        let port = listener.local_addr().map_err(text)?.port();
        listener.set_nonblocking(true).map_err(text)?;
        let mut own = Raw::log_in(server.port).map_err(text)?;
        let over = Arc::new(AtomicBool::new(false));
        let ends = over.clone();
        let works = thread::spawn(move || {
            let mut clients: Vec<(TcpStream, String)> = Vec::new();
            while !ends.load(Ordering::Relaxed) {
                if let Ok((client, _)) = listener.accept() {
                    let _blocks = client.set_nonblocking(true);
                    clients.push((client, String::new()));
                }
                let Ok(rows) = own.ask("SELECT @@GLOBAL.gtid_executed") else {
                    return;
                };
                let executed = rows.concat().concat().replace('\n', "");
                clients.retain_mut(|(client, told)| {
                    // Nobody says anything to a reader.
                    let gone = !matches!(client.read(&mut [0]), Err(error) if error.kind() == ErrorKind::WouldBlock);
                    if *told == executed || gone {
                        return !gone;
                    }
                    let line = match told.is_empty() {
                        true => format!("ST={executed}\n"),
                        false => news(told, &executed),
                    };
                    told.clone_from(&executed);
                    client.write_all(line.as_bytes()).is_ok()
                });
                thread::sleep(Duration::from_millis(1));
            }
        });
        Ok(Self {
            port,
            over,
            works: Some(works),
        })
    }
}

/// Transactions that have come since, number by number.
fn news(before: &str, executed: &str) -> String {
    let last = |one: &str| {
        let (source, numbers) = one.split_once(':')?;
        let last = numbers.rsplit([':', '-']).next()?;
        Some((source.to_owned(), last.parse::<u64>().ok()?))
    };
    let known: Vec<_> = before.split(',').filter_map(last).collect();
    let mut lines = String::new();
    for (source, last) in executed.split(',').filter_map(last) {
        let first = known.iter().find(|(known, _)| *known == source);
        for number in first.map_or(1, |(_, number)| number + 1)..=last {
            lines.push_str(&format!("I1={}:{number}\n", source.replace('-', "")));
        }
    }
    lines
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        let _joined = self.works.take().map(JoinHandle::join);
    }
}

const GTIDS: [&str; 3] = [
    "--gtid-mode=ON",
    "--enforce-gtid-consistency=ON",
    "--log-bin=log",
];

struct World {
    source: Server,
    replica: Server,
    readers: Vec<Reader>,
    proxy: Proxy,
}

/// How the proxy knows what servers have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Readers,
    /// As [`FOLLOWS`], who may not yet.
    Logs(Vendor),
}

/// The monitor's account where logs are followed.
const FOLLOWS: &str = "follows";

/// A server and one that follows it, with an empty table.
fn replicated(vendor: Vendor) -> Result<(Server, Server), String> {
    replicated_as(vendor, |_, options| Server::start_with(vendor, options))
}

/// As [`replicated`], each started by this: by its number, from 0, and its options.
fn replicated_as(
    vendor: Vendor,
    start: impl Fn(usize, &[&str]) -> Result<Server, String>,
) -> Result<(Server, Server), String> {
    let (options, own, reset): (&[&str], &[&str], &str) = match vendor {
        Vendor::MySql => (&GTIDS, &[], "RESET BINARY LOGS AND GTIDS"),
        // Without it the replica's log has only its own writes.
        Vendor::MariaDb => (
            &["--log-bin=log"],
            &["--log-slave-updates=ON"],
            "RESET MASTER",
        ),
    };
    let source = start(0, options)?;
    let own = [options, &["--server-id=2", "--relay-log=relay"], own].concat();
    let mut replica = start(1, &own)?;
    let _made_anew = std::fs::remove_file(replica.tls_file("auto.cnf"));
    replica.restart()?;
    for server in [&source, &replica] {
        server.root(reset)?;
    }
    source.root(by_hand::CREATE_USER)?;
    source.root("CREATE DATABASE d; CREATE TABLE d.t (a INT PRIMARY KEY)")?;
    let (port, user) = (source.port, by_hand::USER);
    replica.root(&match vendor {
        Vendor::MySql => format!(
            "CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={port}, SOURCE_USER='{user}', \
             SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1; START REPLICA"
        ),
        Vendor::MariaDb => format!(
            "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={port}, MASTER_USER='{user}', MASTER_USE_GTID=slave_pos; START SLAVE"
        ),
    })?;
    Ok((source, replica))
}

/// Hostgroup 0 writes, and hostgroup 1 reads and must see what was written in 0.
fn world(driver: Driver, by: By) -> Result<World, String> {
    let vendor = match by {
        By::Readers => Vendor::MySql,
        By::Logs(vendor) => vendor,
    };
    world_of(driver, by, replicated(vendor)?)
}

fn world_of(driver: Driver, by: By, (source, replica): (Server, Server)) -> Result<World, String> {
    soon("0", || {
        let said = replica.root("SELECT count(*) FROM d.t");
        Ok(said.map_or_else(
            |words| words,
            |said| said.lines().last().unwrap_or_default().to_owned(),
        ))
    })?;
    let mut readers = Vec::new();
    if by == By::Readers {
        readers = vec![Reader::of(&source)?, Reader::of(&replica)?];
    } else {
        source.root(&format!("CREATE USER {FOLLOWS}@'%' IDENTIFIED BY 'pw'"))?;
    }
    let mut wish = Wish::in_front_of(&source);
    wish.add_open_user();
    wish.variables.push_str(&format!(
        "    monitor_username = \"{FOLLOWS}\"\n    monitor_password = \"pw\"\n    binlog_reader_connect_retry_msec = 200\n"
    ));
    let of = |server: &Server, hostgroup: u32| {
        let gtid_port = readers
            .get(hostgroup as usize)
            .map_or(0, |reader| reader.port);
        format!(
            "{{ address = \"127.0.0.1\", port = {}, gtid_port = {gtid_port}, hostgroup = {hostgroup} }}",
            server.port
        )
    };
    wish.servers = [of(&source, 0), of(&replica, 1)].join(",\n");
    wish.rules = "{ rule_id = 1, active = 1, match_digest = \"^SELECT\", destination_hostgroup = 1, gtid_from_hostgroup = 0, apply = 1 }".to_owned();
    let proxy = Proxy::start(driver, &wish)?;
    let world = World {
        source,
        replica,
        readers,
        proxy,
    };
    if by == By::Readers {
        world.is_told()?;
    }
    Ok(world)
}

impl World {
    /// Waits until the proxy knows what both servers have.
    fn is_told(&self) -> Outcome {
        soon("2", || {
            let told = self.proxy.admin(
                "SELECT count(*) FROM stats_mysql_gtid_executed WHERE gtid_executed <> ''",
            )?;
            Ok(told.trim().to_owned())
        })
    }
}

fn log_in(proxy: &Proxy) -> Result<Raw, String> {
    Raw::log_in(proxy.port).map_err(|error| error.to_string())
}

/// Where a read goes, and how many rows are there.
fn read(client: &mut Raw) -> Result<String, String> {
    Ok(asked(client, "SELECT @@port, count(*) FROM d.t")?
        .concat()
        .join(" "))
}

/// A22, A23, A24, A26, A27, A28: a read is at the replica while that has what the session wrote, and
/// where it was written otherwise. Nobody waits for a replica, and none is asked: a reader of
/// ProxySQL's protocol pushes what it has.
fn own_writes(driver: Driver) -> Outcome {
    let mut world = world(driver, By::Readers)?;
    let (there, behind) = (world.source.port, world.replica.port);
    let mut client = reads_follow_writes(&world)?;
    let proxy = &world.proxy;
    // A reader that is gone tells nothing, and what was told before is forgotten.
    drop(world.readers.pop());
    soon(&format!("{there} 3"), || read(&mut client))?;
    expect(proxy.says("tells nothing"), || proxy.log())?;
    let mut fresh = log_in(proxy)?;
    same(&read(&mut fresh)?, &format!("{behind} 3"))
}

fn by_logs_of_mysql(driver: Driver) -> Outcome {
    by_logs(driver, Vendor::MySql)
}

fn by_logs_of_mariadb(driver: Driver) -> Outcome {
    by_logs(driver, Vendor::MariaDb)
}

/// A29, and MariaDB beyond it: where no reader is, the proxy follows the logs, as soon as its account
/// may.
fn by_logs(driver: Driver, vendor: Vendor) -> Outcome {
    let world = world(driver, By::Logs(vendor))?;
    let World {
        source,
        replica,
        proxy,
        ..
    } = &world;
    let logs = |column: &str| -> Result<String, String> {
        let sql = format!("SELECT {column} FROM stats_millrace_logs");
        let said = proxy.admin(&sql)?;
        Ok(said.lines().collect::<Vec<_>>().join(" "))
    };
    // Nobody asks for it yet.
    same(&logs("port")?, "")?;
    proxy.admin(
        "INSERT INTO mysql_hostgroup_attributes (hostgroup_id, hostgroup_settings) VALUES \
         (0, '{\"causal_reads\": \"binlog\"}'), (1, '{\"causal_reads\": \"binlog\"}'); LOAD MYSQL SERVERS TO RUNTIME",
    )?;
    soon("0 0", || logs("followed"))?;
    let lacks = format!("the account '{FOLLOWS}' needs REPLICATION SLAVE there");
    expect(proxy.says(&lacks), || proxy.log())?;
    soon("2", || logs(&format!("sum(error LIKE '%{FOLLOWS}%')")))?;
    let mut client = log_in(proxy)?;
    asked(&mut client, "INSERT INTO d.t VALUES (0)")?;
    same(&read(&mut client)?, &format!("{} 1", source.port))?;
    asked(&mut client, "DELETE FROM d.t")?;
    source.root(&format!("GRANT REPLICATION SLAVE ON *.* TO {FOLLOWS}@'%'"))?;
    soon("1 1", || logs("followed"))?;
    world.is_told()?;
    expect(proxy.says("tells again"), || proxy.log())?;
    // The replica has the rest.
    soon(&format!("{} 0", replica.port), || read(&mut client))?;
    let mut client = reads_follow_writes(&world)?;
    hinted(&world, vendor)?;
    split(&world)?;
    shared(&world)?;
    if vendor == Vendor::MySql {
        late_acks(&world)?;
    }
    // Numbers begin anew: what was told of them before says nothing.
    replica.root(match vendor {
        Vendor::MySql => "STOP REPLICA; RESET BINARY LOGS AND GTIDS",
        Vendor::MariaDb => "STOP SLAVE; RESET MASTER",
    })?;
    soon(&format!("{} 3", source.port), || read(&mut client))?;
    expect(proxy.says("its GTIDs were reset"), || proxy.log())?;
    expect(logs("min(transactions) > 0")? == "1", || proxy.log())?;
    match vendor {
        Vendor::MySql => named(&world),
        Vendor::MariaDb => Ok(()),
    }
}

/// The hint `min_gtid`, of whoever knows what another session wrote; and no rule that sees to it.
fn hinted(world: &World, vendor: Vendor) -> Outcome {
    let World {
        source,
        replica,
        proxy,
        ..
    } = world;
    let rule = "UPDATE mysql_query_rules SET gtid_from_hostgroup = ";
    let load = "LOAD MYSQL QUERY RULES TO RUNTIME; LOAD MYSQL SERVERS TO RUNTIME";
    proxy.admin(&format!(
        "{rule} NULL; UPDATE mysql_hostgroup_attributes SET hostgroup_settings = '{{\"causal_reads\": \"binlog\", \"read_hostgroup\": 1}}' \
         WHERE hostgroup_id = 0; {load}"
    ))?;
    replica.root("STOP REPLICA SQL_THREAD")?;
    source.root("DELETE FROM d.t WHERE a = 1; INSERT INTO d.t VALUES (1)")?;
    let newest = source.root(match vendor {
        Vendor::MySql => {
            "SELECT concat(@@server_uuid, ':', regexp_substr(@@gtid_executed, '[0-9]+$'))"
        }
        Vendor::MariaDb => "SELECT @@gtid_binlog_pos",
    })?;
    let newest = newest.lines().last().unwrap_or_default().to_owned();
    let mut client = log_in(proxy)?;
    let mut port = |gtid: &str| -> Result<String, String> {
        let sql = format!("SELECT /* min_gtid={gtid} */ @@port FROM d.t LIMIT 1");
        Ok(asked(&mut client, &sql)?.concat().concat())
    };
    let old = match vendor {
        Vendor::MySql => {
            newest
                .split_once(':')
                .map_or("", |(uuid, _)| uuid)
                .to_owned()
                + ":1"
        }
        Vendor::MariaDb => "0-1-1".to_owned(),
    };
    same(&port(&old)?, &replica.port.to_string())?;
    for _ in 0..3 {
        same(&port(&newest)?, &source.port.to_string())?;
    }
    replica.root("START REPLICA")?;
    soon(&replica.port.to_string(), || port(&newest))?;
    proxy.admin(&format!("{rule} 0; {load}")).map(drop)
}

/// No rule, but the split: a session that has written reads what it wrote.
fn split(world: &World) -> Outcome {
    let World {
        source,
        replica,
        proxy,
        ..
    } = world;
    let load = "LOAD MYSQL QUERY RULES TO RUNTIME; LOAD MYSQL SERVERS TO RUNTIME";
    let settings = r#"{"causal_reads": "binlog", "read_hostgroup": 1, "read_after_write": "gtid"}"#;
    proxy.admin(&format!(
        "UPDATE mysql_query_rules SET active = 0; UPDATE mysql_hostgroup_attributes SET hostgroup_settings = '{settings}' WHERE hostgroup_id = 0; {load}"
    ))?;
    replica.root("STOP REPLICA SQL_THREAD")?;
    let mut client = log_in(proxy)?;
    same(&read_at(&mut client)?, &replica.port.to_string())?;
    let mut other = log_in(proxy)?;
    asked(&mut other, "UPDATE d.t SET a = a + 100 WHERE a = 3")?;
    asked(&mut other, "UPDATE d.t SET a = a - 100 WHERE a = 103")?;
    for _ in 0..3 {
        same(&read_at(&mut other)?, &source.port.to_string())?;
    }
    same(&read_at(&mut client)?, &replica.port.to_string())?;
    replica.root("START REPLICA")?;
    soon(&replica.port.to_string(), || read_at(&mut other))?;
    proxy
        .admin(&format!("UPDATE mysql_query_rules SET active = 1; {load}"))
        .map(drop)
}

/// The replica is itself a source that waits for an acknowledgment, which is 100 ms late: so long each transaction is
/// in its log before anybody can read it there.
fn late_acks(world: &World) -> Outcome {
    let World {
        source,
        replica,
        proxy,
        ..
    } = world;
    replica.root(
        "INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'; \
         SET GLOBAL rpl_semi_sync_source_timeout = 100",
    )?;
    let mut client = log_in(proxy)?;
    let count = source.root("SELECT count(*) FROM d.t")?;
    let count = count.lines().last().unwrap_or_default().trim();
    let before: u32 = count.parse().map_err(|_| format!("{count} rows"))?;
    for n in 1..=6 {
        // Behind a wait in vain it waits for nobody, until it is told to.
        replica.root(
            "SET GLOBAL rpl_semi_sync_source_enabled = 0; SET GLOBAL rpl_semi_sync_source_enabled = 1",
        )?;
        asked(
            &mut client,
            &format!("INSERT INTO d.t VALUES ({})", 2000 + n),
        )?;
        let rows = (before + n).to_string();
        soon(&replica.port.to_string(), || {
            let told = read(&mut client)?;
            let (port, seen) = told.split_once(' ').unwrap_or_default();
            same(seen, &rows).map_err(|words| format!("at {port}: {words}"))?;
            Ok(port.to_owned())
        })?;
    }
    let waited = replica.root("SHOW STATUS LIKE 'Rpl_semi_sync_source_no_tx'")?;
    let waited = waited.split_whitespace().last().unwrap_or_default();
    same(waited, "6")?;
    asked(&mut client, "DELETE FROM d.t WHERE a > 2000")?;
    soon(&format!("{} {before}", replica.port), || read(&mut client))?;
    replica
        .root("UNINSTALL PLUGIN rpl_semi_sync_source")
        .map(drop)
}

/// Why no server can have a small disk of its own here, if so.
fn no_small_disks() -> Option<String> {
    let may = Command::new("unshare").args(["-m", "true"]).output();
    let may = may.is_ok_and(|may| may.status.success());
    (!may).then(|| "no process may have a disk of its own here (unshare -m)".to_owned())
}

/// A script that starts this server with so many megabytes of disk in a folder.
fn with_small_disk(
    server: &Path,
    disk: &Path,
    script: &Path,
    megabytes: u32,
) -> Result<(), String> {
    let text = |error: std::io::Error| error.to_string();
    let inside = format!(
        "mount -t tmpfs -o size={megabytes}m tmpfs {} && exec \"$0\" \"$@\"",
        disk.display()
    );
    let words = format!(
        "#!/bin/sh\nexec unshare -m sh -c '{inside}' {} \"$@\"\n",
        server.display()
    );
    std::fs::write(script, words).map_err(text)?;
    std::fs::set_permissions(script, std::fs::Permissions::from_mode(0o755)).map_err(text)
}

/// Has the disks of these servers larger.
fn make_room(disk: &Path, servers: [&Server; 2]) -> Outcome {
    for server in servers {
        let id = server.id().to_string();
        let larger = ["-m", "-t", &id, "mount", "-o", "remount,size=200m"];
        let done = Command::new("nsenter").args(larger).arg(disk).output();
        let done = done.map_err(|error| error.to_string())?;
        expect(done.status.success(), || format!("{done:?}"))?;
    }
    Ok(())
}

/// The replica's disk is full first, and then the source's: sessions see their rows all the time, and what was
/// acknowledged is there.
fn full_disks(driver: Driver) -> Outcome {
    const ROW: &str = "repeat('x', 2000000)";
    if let Some(why) = no_small_disks() {
        println!("SKIPPED: {why}");
        return Ok(());
    }
    let text = |error: std::io::Error| error.to_string();
    let folder = TempFolder::new("disks").map_err(text)?;
    let disk = folder.path().join("disk");
    std::fs::create_dir(&disk).map_err(text)?;
    let scripts: [PathBuf; 2] = ["source", "replica"].map(|name| folder.path().join(name));
    let servers = replicated_as(Vendor::MySql, |number, options| {
        let mut start = Start::of(Vendor::MySql)?;
        let megabytes = [20, 8][number];
        with_small_disk(&start.programs.server, &disk, &scripts[number], megabytes)?;
        start.programs = Programs {
            server: scripts[number].clone(),
            ..start.programs
        };
        start.options = options.iter().map(ToString::to_string).collect();
        start
            .options
            .push(format!("--innodb-directories={}", disk.display()));
        // A replica whose disk is full stops at once.
        start
            .options
            .push("--replica-transaction-retries=0".to_owned());
        Server::start_as(&start)
    })?;
    let world = world_of(driver, By::Logs(Vendor::MySql), servers)?;
    let World {
        source,
        replica,
        proxy,
        ..
    } = &world;
    source.root(&format!(
        "GRANT REPLICATION SLAVE ON *.* TO {FOLLOWS}@'%'; \
         CREATE TABLE d.big (a INT PRIMARY KEY, b LONGBLOB) DATA DIRECTORY = '{}'",
        disk.display()
    ))?;
    proxy.admin(
        "INSERT INTO mysql_hostgroup_attributes (hostgroup_id, hostgroup_settings) VALUES \
         (0, '{\"causal_reads\": \"binlog\"}'), (1, '{\"causal_reads\": \"binlog\"}'); LOAD MYSQL SERVERS TO RUNTIME",
    )?;
    world.is_told()?;
    let mut client = log_in(proxy)?;
    let mut rows = 0;
    let seen = |client: &mut Raw, rows: u32| -> Result<String, String> {
        let told = asked(client, "SELECT @@port, count(*) FROM d.big")?.concat();
        same(&told[1], &rows.to_string()).map_err(|words| format!("at {}: {words}", told[0]))?;
        Ok(told[0].clone())
    };
    // Whatever goes on: a row that was acknowledged is seen.
    loop {
        let said = client.ask(&format!("INSERT INTO d.big VALUES ({}, {ROW})", rows + 1));
        match said {
            Ok(_) => rows += 1,
            Err(error) => {
                expect(error.to_string().contains("is full"), || error.to_string())?;
                break;
            }
        }
        expect(rows < 20, || "its disk is large".to_owned())?;
        seen(&mut client, rows)?;
    }
    let stopped = || {
        let said = replica.root(
            "SELECT count(*) FROM performance_schema.replication_applier_status_by_worker WHERE last_error_number = 1114",
        )?;
        Ok((said.lines().last().unwrap_or_default() != "0").to_string())
    };
    soon("true", stopped)?;
    same(&seen(&mut client, rows)?, &source.port.to_string())?;
    // With room on both disks all goes on.
    make_room(&disk, [source, replica])?;
    replica.root("START REPLICA")?;
    asked(
        &mut client,
        &format!("INSERT INTO d.big VALUES ({}, {ROW})", rows + 1),
    )?;
    rows += 1;
    soon(&replica.port.to_string(), || seen(&mut client, rows))
}

/// A server that tells no GTIDs any more is named, with the rule whose reads it does not serve.
fn named(world: &World) -> Outcome {
    let World { replica, proxy, .. } = world;
    let load = || proxy.admin("LOAD MYSQL SERVERS TO RUNTIME");
    let words = "gtid_mode is ON_PERMISSIVE: by rule 1,";
    replica.root("SET GLOBAL gtid_mode = ON_PERMISSIVE")?;
    load()?;
    expect(proxy.says(words), || proxy.log())
}

/// A user whose sessions see each other's writes, on whichever core they are: what one has an answer for, no
/// other reads too early.
fn shared(world: &World) -> Outcome {
    let World {
        source,
        replica,
        proxy,
        ..
    } = world;
    let set = |attributes: &str| {
        proxy.admin(&format!(
            "UPDATE mysql_users SET attributes = '{attributes}'; LOAD MYSQL USERS TO RUNTIME"
        ))
    };
    set(r#"{"causal_scope": "user"}"#)?;
    let (there, behind) = (source.port, replica.port);
    let mut writers = (0..4)
        .map(|_| log_in(proxy))
        .collect::<Result<Vec<_>, _>>()?;
    let mut workers = (0..8)
        .map(|_| log_in(proxy))
        .collect::<Result<Vec<_>, _>>()?;
    let before = source.root("SELECT count(*) FROM d.t")?;
    let before: usize = before
        .lines()
        .last()
        .unwrap_or_default()
        .parse()
        .map_err(|_| before.clone())?;
    // Nobody has written anything, and the replica has all that there was.
    soon(&format!("{behind} {before}"), || read(&mut workers[0]))?;
    replica.root("STOP REPLICA SQL_THREAD")?;
    for n in 0..24 {
        let writer = &mut writers[n % 4];
        asked(writer, &format!("INSERT INTO d.t VALUES ({})", 1000 + n))?;
        let rows = before + n + 1;
        for worker in &mut workers {
            same(&read(worker)?, &format!("{there} {rows}"))?;
        }
    }
    replica.root("START REPLICA")?;
    for worker in &mut workers {
        soon(&format!("{behind} {}", before + 24), || read(worker))?;
    }
    // And a session that comes later.
    asked(&mut writers[0], "DELETE FROM d.t WHERE a >= 1000")?;
    let mut later = log_in(proxy)?;
    soon(&format!("{behind} {before}"), || read(&mut later))?;
    set("").map(drop)
}

fn read_at(client: &mut Raw) -> Result<String, String> {
    let rows = asked(client, "SELECT @@port FROM d.t LIMIT 1")?;
    Ok(rows.concat().concat())
}

/// A session with three rows behind it, which the replica has.
fn reads_follow_writes(world: &World) -> Result<Raw, String> {
    let World {
        source,
        replica,
        proxy,
        ..
    } = world;
    let (there, behind) = (source.port, replica.port);
    let (mut client, mut other) = (log_in(proxy)?, log_in(proxy)?);
    same(&read(&mut client)?, &format!("{behind} 0"))?;
    replica.root("STOP REPLICA SQL_THREAD")?;
    asked(&mut client, "INSERT INTO d.t VALUES (1)")?;
    for _ in 0..5 {
        same(&read(&mut client)?, &format!("{there} 1"))?;
    }
    // Who has written nothing is not held up by others.
    same(&read(&mut other)?, &format!("{behind} 0"))?;
    // In a transaction it counts from its end.
    asked(&mut other, "BEGIN")?;
    asked(&mut other, "INSERT INTO d.t VALUES (2)")?;
    same(&read(&mut other)?, &format!("{there} 2"))?;
    asked(&mut other, "COMMIT")?;
    same(&read(&mut other)?, &format!("{there} 2"))?;
    replica.root("START REPLICA")?;
    for client in [&mut client, &mut other] {
        soon(&format!("{behind} 2"), || read(client))?;
    }
    // A prepared statement, and a session whose connection is another's: from then on at the replica.
    asked(&mut client, "INSERT INTO d.t VALUES (3)")?;
    let prepared = asked(&mut client, "SELECT count(*) FROM d.t")?;
    same(&prepared.concat().concat(), "3")?;
    soon(&format!("{behind} 3"), || read(&mut client))?;
    let counted = proxy.admin("SELECT Variable_Name FROM stats_mysql_global WHERE Variable_Name LIKE 'GTID%' AND Variable_Value > 0 ORDER BY 1")?;
    same(
        counted.trim(),
        "GTID_consistent_queries\nGTID_session_collected",
    )?;
    Ok(client)
}

/// Clients whose driver has session tracking, and who did not ask for GTIDs.
fn not_shown(driver: Driver) -> Outcome {
    let world = world(driver, By::Readers)?;
    let proxy = &world.proxy;
    let login = Login {
        port: proxy.port,
        user: by_hand::USER,
        password: "",
    };
    const SESSION_TRACK: u32 = 1 << 23;
    let mut client =
        Raw::log_in_as(&login, SESSION_TRACK, SESSION_TRACK).map_err(|error| error.to_string())?;
    let mut answer = |sql: &str| -> Result<Vec<u8>, String> {
        client.query(sql).map_err(|error| error.to_string())?;
        client.packet().map_err(|error| error.to_string())
    };
    let has_uuid = |packet: &[u8]| {
        packet.windows(2).filter(|two| two == b"-1").count() > 0 || packet.len() > 40
    };
    let ok = answer("INSERT INTO d.t VALUES (1)")?;
    expect(ok.first() == Some(&0) && !has_uuid(&ok), || {
        format!("{ok:?}")
    })?;
    answer("SET SESSION session_track_gtids = OWN_GTID")?;
    let ok = answer("INSERT INTO d.t VALUES (2)")?;
    expect(ok.len() > 40, || format!("{ok:?}"))?;
    // The operator has the last word.
    proxy
        .admin("SET mysql-client_session_track_gtid = 'false'; LOAD MYSQL VARIABLES TO RUNTIME")?;
    let ok = answer("INSERT INTO d.t VALUES (3)")?;
    expect(ok.first() == Some(&0) && !has_uuid(&ok), || {
        format!("{ok:?}")
    })
}

/// Milliseconds since 1970.
fn now_ms() -> Result<u128, String> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    Ok(since.map_err(|error| error.to_string())?.as_millis())
}

/// The hints `max_lag_ms` and `min_epoch_ms`: a read goes to a replica that is known to be so fresh,
/// and else to the writer.
fn of_an_age(driver: Driver) -> Outcome {
    let (source, replica) = replicated(Vendor::MariaDb)?;
    let mut wish = Wish::in_front_of(&source);
    wish.add_open_user();
    wish.variables.push_str(&format!(
        "    monitor_enabled = true\n    monitor_username = \"{}\"\n    monitor_password = \"\"\n    monitor_replication_lag_interval = 100\n",
        by_hand::USER
    ));
    wish.servers = format!(
        "{{ address = \"127.0.0.1\", port = {}, hostgroup = 0 }}, {{ address = \"127.0.0.1\", port = {}, hostgroup = 1, max_replication_lag = 600 }}",
        source.port, replica.port
    );
    let proxy = Proxy::start(driver, &wish)?;
    proxy.admin(
        "INSERT INTO mysql_hostgroup_attributes (hostgroup_id, hostgroup_settings) VALUES (0, '{\"read_hostgroup\":1}'); LOAD MYSQL SERVERS TO RUNTIME",
    )?;
    let mut client = log_in(&proxy)?;
    let mut at = |hint: &str| -> Result<String, String> {
        let rows = asked(&mut client, &format!("SELECT /* {hint} */ @@port"))?;
        Ok(rows.concat().concat())
    };
    let (writer, reader) = (source.port.to_string(), replica.port.to_string());
    same(&at("")?, &reader)?;
    soon(&reader, || at("max_lag_ms=20000"))?;
    // Nobody knows it within a second: servers tell whole ones.
    same(&at("max_lag_ms=900")?, &writer)?;
    let stopped_at = now_ms()?;
    replica.root("STOP SLAVE")?;
    same(&at("max_lag_ms=600000")?, &reader)?;
    same(
        &at(&format!("min_epoch_ms={}", stopped_at + 1000))?,
        &writer,
    )?;
    soon(&writer, || at("max_lag_ms=4000"))?;
    same(&at("")?, &reader)?;
    replica.root("START SLAVE")?;
    let since = format!("min_epoch_ms={}", now_ms()?);
    soon(&reader, || at(&since))?;
    soon(&reader, || at("max_lag_ms=20000"))?;
    // A transaction and an age at once are asked of the writer.
    same(&at("max_lag_ms=20000; min_gtid=0-1-1")?, &writer)?;
    let counted = proxy.admin(
        "SELECT CAST(Variable_Value AS INT) > 3 FROM stats_mysql_global WHERE Variable_Name = 'queries_with_max_lag_ms'",
    )?;
    same(&counted, "1")
}
