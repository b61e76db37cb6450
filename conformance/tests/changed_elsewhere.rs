//! The cache and writes that do not come through the proxy: it follows the server's log.
#![forbid(unsafe_code)]

use conformance::beside::asked;
use conformance::by_hand::{self, Raw};
use conformance::proxy::{Driver, Proxy, Wish};
use conformance::servers::{Server, Vendor, vendors};
use conformance::trials::{self, expect, same, soon};
use std::thread;
use std::time::{Duration, Instant};

type Outcome = Result<(), String>;

fn main() {
    trials::run_once(&[
        ("what_others_commit_ends_the_use_of_what_was_read", ends),
        (
            "an_answer_that_was_asked_for_before_is_not_kept",
            on_its_way,
        ),
        ("without_the_log_times_to_live_count", without),
    ])
}

/// The monitor's account.
const FOLLOWS: &str = "follows";

struct World {
    server: Server,
    proxy: Proxy,
}

/// A server whose log the account may follow, or may not, and a proxy that keeps answers for an hour.
fn world(driver: Driver, vendor: Vendor, may: bool) -> Result<World, String> {
    let options: &[&str] = match vendor {
        Vendor::MySql => &[
            "--gtid-mode=ON",
            "--enforce-gtid-consistency=ON",
            "--log-bin=log",
        ],
        Vendor::MariaDb => &["--log-bin=log", "--binlog-format=ROW"],
    };
    let server = Server::start_with(vendor, options)?;
    server.root(by_hand::CREATE_USER)?;
    server.root(&format!("CREATE USER {FOLLOWS}@'%' IDENTIFIED BY 'pw'"))?;
    server.root(
        "CREATE DATABASE d; CREATE TABLE d.t (a INT PRIMARY KEY); CREATE TABLE d.u (a INT PRIMARY KEY); INSERT INTO d.t VALUES (1)",
    )?;
    if may {
        grant(&server)?;
    }
    let mut wish = Wish::in_front_of(&server);
    wish.add_open_user();
    wish.variables.push_str(&format!(
        "    monitor_username = \"{FOLLOWS}\"\n    monitor_password = \"pw\"\n    binlog_reader_connect_retry_msec = 200\n"
    ));
    wish.rules = "{ rule_id = 1, active = 1, match_digest = \"^SELECT\", cache_ttl = 3600000, \
                  attributes = \"{\\\"cache_invalidate\\\":true}\", apply = 1 }"
        .to_owned();
    let proxy = Proxy::start(driver, &wish)?;
    proxy.admin(
        "INSERT INTO mysql_hostgroup_attributes (hostgroup_id, hostgroup_settings) VALUES \
         (0, '{\"cache_invalidate\": \"binlog\"}'); LOAD MYSQL SERVERS TO RUNTIME",
    )?;
    let world = World { server, proxy };
    if may {
        soon("1", || world.log("followed"))?;
    }
    Ok(world)
}

fn grant(server: &Server) -> Outcome {
    let sql = format!("GRANT REPLICATION SLAVE ON *.* TO {FOLLOWS}@'%'");
    server.root(&sql).map(drop)
}

impl World {
    fn log(&self, column: &str) -> Result<String, String> {
        let sql = format!("SELECT {column} FROM stats_millrace_logs");
        Ok(self.proxy.admin(&sql)?.trim().to_owned())
    }

    fn client(&self) -> Result<Raw, String> {
        Raw::log_in(self.proxy.port).map_err(|error| error.to_string())
    }

    fn direct(&self) -> Result<Raw, String> {
        Raw::log_in(self.server.port).map_err(|error| error.to_string())
    }

    fn hits(&self) -> Result<u64, String> {
        let said = self.proxy.admin(
            "SELECT Variable_Value FROM stats_mysql_global WHERE Variable_Name = 'Query_Cache_count_GET_OK'",
        )?;
        said.trim().parse().map_err(|_| said)
    }
}

fn count(client: &mut Raw, table: &str) -> Result<String, String> {
    Ok(asked(client, &format!("SELECT count(*) FROM d.{table}"))?
        .concat()
        .concat())
}

fn ends(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let ended = ends_of(driver, vendor);
        ended.map_err(|words| format!("{vendor}: {words}"))?;
    }
    Ok(())
}

/// Rows, a statement, DDL; other tables' answers stay.
fn ends_of(driver: Driver, vendor: Vendor) -> Outcome {
    let world = world(driver, vendor, true)?;
    let (mut client, mut direct) = (world.client()?, world.direct()?);
    same(&count(&mut client, "u")?, "0")?;
    let mut late = Vec::new();
    for a in 2..=30 {
        same(&count(&mut client, "t")?, &(a - 1).to_string())?;
        same(&count(&mut client, "t")?, &(a - 1).to_string())?;
        asked(&mut direct, &format!("INSERT INTO d.t VALUES ({a})"))?;
        let done = Instant::now();
        while count(&mut client, "t")? != a.to_string() {
            expect(done.elapsed() < Duration::from_secs(60), || {
                format!("{a} rows are not seen: {}", world.proxy.log())
            })?;
            // Others need the processors as well.
            thread::sleep(Duration::from_micros(200));
        }
        late.push(done.elapsed());
    }
    late.sort_unstable();
    println!(
        "{vendor}: seen behind the OK: p50 {:?}, most {:?}",
        late[late.len() / 2],
        late[late.len() - 1]
    );
    let before = world.hits()?;
    same(&count(&mut client, "u")?, "0")?;
    expect(world.hits()? == before + 1, || "it was not kept".to_owned())?;
    asked(&mut direct, "SET SESSION binlog_format = 'STATEMENT'")?;
    asked(&mut direct, "DELETE FROM d.t WHERE a > 10")?;
    soon("10", || count(&mut client, "t"))?;
    asked(&mut direct, "TRUNCATE TABLE d.t")?;
    soon("0", || count(&mut client, "t"))?;
    // What a session writes itself it sees at once, as ever.
    asked(&mut client, "INSERT INTO d.t VALUES (1)")?;
    same(&count(&mut client, "t")?, "1")
}

/// A read takes a second. What others write meanwhile it does not see, and it is not kept.
fn on_its_way(driver: Driver) -> Outcome {
    let vendor = vendors().pop().unwrap_or(Vendor::MariaDb);
    let world = world(driver, vendor, true)?;
    let (mut client, mut direct) = (world.client()?, world.direct()?);
    asked(
        &mut direct,
        "INSERT INTO d.u WITH RECURSIVE n AS (SELECT 1 a UNION ALL SELECT a + 1 FROM n WHERE a < 1000) SELECT a FROM n",
    )?;
    const LONG: &str = "SELECT count(*) FROM d.t a JOIN d.u b JOIN d.u c WHERE sha2(concat(a.a, b.a, c.a), 224) <> ''";
    let writes = thread::spawn(move || -> Outcome {
        thread::sleep(Duration::from_millis(200));
        asked(&mut direct, "INSERT INTO d.t VALUES (2)").map(drop)
    });
    let old = asked(&mut client, LONG)?.concat().concat();
    writes.join().map_err(|_| "the writer panicked")??;
    same(&old, "1000000")?;
    let new = asked(&mut client, LONG)?.concat().concat();
    same(&new, "2000000")?;
    let before = world.hits()?;
    same(&asked(&mut client, LONG)?.concat().concat(), "2000000")?;
    expect(world.hits()? == before + 1, || "it was not kept".to_owned())
}

/// The log and a table say so; what was kept is of no use when the log can be followed.
fn without(driver: Driver) -> Outcome {
    let vendor = vendors().pop().unwrap_or(Vendor::MariaDb);
    let world = world(driver, vendor, false)?;
    let says = world.proxy.says("needs REPLICATION SLAVE");
    expect(says, || world.proxy.log())?;
    let says = world.proxy.says("their times to live do");
    expect(says, || world.proxy.log())?;
    same(&world.log("followed")?, "0")?;
    let (mut client, mut direct) = (world.client()?, world.direct()?);
    same(&count(&mut client, "t")?, "1")?;
    asked(&mut direct, "INSERT INTO d.t VALUES (2)")?;
    thread::sleep(Duration::from_millis(500));
    same(&count(&mut client, "t")?, "1")?;
    grant(&world.server)?;
    soon("2", || count(&mut client, "t"))?;
    same(&world.log("followed")?, "1")?;
    same(&world.log("used_for")?, "cache_invalidate")
}
