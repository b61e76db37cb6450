//! Lines of statements that wait for a hostgroup: in which order, how many, for how long, and for the limit of
//! statements in flight that follows latency.
#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use conformance::by_hand::{self, Raw};
use conformance::clients::app;
use conformance::proxy::{Driver, Proxy};
use conformance::servers::{Server, Vendor};
use conformance::trials::{self, expect, same, until};

type Outcome = Result<(), String>;
type Answer = Result<Vec<Vec<String>>, String>;

fn main() {
    trials::run(&[
        (
            "a_higher_priority_is_served_before_those_who_came_first",
            priorities,
        ),
        ("of_two_that_wait_the_cheaper_one_is_served_first", costs),
        ("the_last_of_too_many_is_sent_away", shedding),
        ("the_limit_follows_latency_and_lets_go", adaptive),
        ("a_transaction_waits_for_no_slot", transactions),
    ])
}

/// A server with the tables of these tests, a proxy that opens one connection to it, and somebody
/// who can have statements wait: they are blocked while he locks table `gate`.
struct Bench {
    _server: Server,
    proxy: Proxy,
    keeper: Raw,
}

impl Bench {
    fn new(driver: Driver, settings: &str) -> Result<Self, String> {
        let (server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
        server.root(
            "CREATE SCHEMA w; CREATE TABLE w.gate (n INT); CREATE TABLE w.counter (id INT PRIMARY KEY, n INT) ENGINE=InnoDB; \
             INSERT INTO w.counter VALUES (1, 0), (2, 0); GRANT ALL ON w.* TO app@'%'; \
             CREATE TABLE w.log (id INT AUTO_INCREMENT PRIMARY KEY, who VARCHAR(20))",
        )?;
        proxy.admin(&format!(
            "INSERT INTO mysql_hostgroup_attributes (hostgroup_id, hostgroup_settings) VALUES (0, '{settings}'); \
             LOAD MYSQL SERVERS TO RUNTIME"
        ))?;
        let keeper = Raw::log_in(server.port).map_err(|error| error.to_string())?;
        Ok(Self {
            _server: server,
            proxy,
            keeper,
        })
    }

    fn has_one_connection(&self) -> Outcome {
        let sql = "UPDATE mysql_servers SET max_connections = 1; LOAD MYSQL SERVERS TO RUNTIME";
        self.proxy.admin(sql).map(drop)
    }

    /// Begins the proxy again with one core: between cores, order holds to some milliseconds.
    fn has_one_core(&mut self) -> Outcome {
        self.proxy.admin(
            "SET mysql-threads = 1; SAVE MYSQL VARIABLES TO DISK; SAVE MYSQL SERVERS TO DISK; SAVE MYSQL USERS TO DISK; \
             SAVE MYSQL QUERY RULES TO DISK",
        )?;
        self.proxy.restart()
    }

    /// Sends a statement by a client of its own.
    fn sends(&self, high: bool, sql: &str) -> Result<JoinHandle<Answer>, String> {
        let mut client = self.client(high)?;
        let sql = sql.to_owned();
        Ok(thread::spawn(move || ask(&mut client, &sql)))
    }

    /// A client: of user `app`, who has the highest priority where one is said, or of the other.
    fn client(&self, high: bool) -> Result<Raw, String> {
        let client = match high {
            true => Raw::log_in_as(&app(self.proxy.port), 0, 0),
            false => Raw::log_in(self.proxy.port),
        };
        client.map_err(|error| error.to_string())
    }

    /// Blocks the only connection: the client's statement waits at the server.
    fn blocks(&mut self) -> Result<JoinHandle<Answer>, String> {
        ask(&mut self.keeper, "LOCK TABLES w.gate WRITE")?;
        let blocked = self.sends(false, "SELECT COUNT(*) FROM w.gate")?;
        until("1", || {
            self.proxy
                .admin("SELECT SUM(ConnUsed) FROM stats_mysql_connection_pool")
        })?;
        Ok(blocked)
    }

    fn lets_go(&mut self, blocked: JoinHandle<Answer>) -> Outcome {
        ask(&mut self.keeper, "UNLOCK TABLES")?;
        answered(blocked)?;
        Ok(())
    }

    /// Waits until so many statements do.
    fn wait(&self, count: usize) -> Outcome {
        until(&count.to_string(), || {
            self.proxy
                .admin("SELECT COALESCE(SUM(waiting), 0) FROM stats_millrace_admission")
        })
    }

    /// Names of those who wrote into the log, in order.
    fn order(&mut self) -> Result<String, String> {
        let rows = ask(&mut self.keeper, "SELECT who FROM w.log ORDER BY id")?;
        ask(&mut self.keeper, "TRUNCATE w.log")?;
        Ok(rows.concat().join(" "))
    }
}

fn ask(client: &mut Raw, sql: &str) -> Answer {
    client.ask(sql).map_err(|error| format!("{sql}: {error}"))
}

fn answered(client: JoinHandle<Answer>) -> Answer {
    client
        .join()
        .map_err(|_| "a client has panicked".to_owned())?
}

fn log(who: &str) -> String {
    format!("INSERT INTO w.log (who) VALUES ('{who}')")
}

fn priorities(driver: Driver) -> Outcome {
    let mut bench = Bench::new(driver, "{\"admission\": \"priority\"}")?;
    bench.has_one_connection()?;
    bench.proxy.admin(
        "UPDATE mysql_users SET attributes = '{\"priority\": 10}' WHERE username = 'app'; \
         UPDATE mysql_users SET attributes = '{\"priority\": 0}' WHERE username = 'open'; LOAD MYSQL USERS TO RUNTIME; \
         INSERT INTO mysql_query_rules (rule_id, active, match_pattern, attributes) VALUES (7, 1, 'by rule', '{\"priority\": 9}'); \
         LOAD MYSQL QUERY RULES TO RUNTIME",
    )?;
    bench.has_one_core()?;
    let told = bench.proxy.admin("EXPLAIN ROUTE 'SELECT 1' AS app")?;
    expect(
        told.contains("10 among those who wait for hostgroup 0, said by its user"),
        || told.clone(),
    )?;
    let told = bench
        .proxy
        .admin("EXPLAIN ROUTE 'SELECT \"by rule\"' AS app")?;
    expect(
        told.contains("9 among those who wait for hostgroup 0, said by rule 7"),
        || told.clone(),
    )?;
    // Ten steps are worth five seconds: a machine on which the last of them comes later tries again.
    for _ in 0..10 {
        let blocked = bench.blocks()?;
        let begun = Instant::now();
        let mut clients = Vec::new();
        for n in 1..=3 {
            clients.push(bench.sends(false, &log("low"))?);
            bench.wait(n)?;
        }
        clients.push(bench.sends(false, &log("by rule"))?);
        bench.wait(4)?;
        clients.push(bench.sends(true, &log("high"))?);
        bench.wait(5)?;
        let took = begun.elapsed();
        let of = "SELECT GROUP_CONCAT(priority || ':' || waiting) FROM stats_millrace_admission";
        same(&bench.proxy.admin(of)?, "0:3,9:1,10:1")?;
        bench.lets_go(blocked)?;
        clients
            .into_iter()
            .try_for_each(|one| answered(one).map(drop))?;
        let order = bench.order()?;
        // Of the two others either may be first: half a second is between them.
        let is_right = order == "high by rule low low low" || order == "by rule high low low low";
        if took < Duration::from_secs(4) {
            return expect(is_right, || order);
        }
    }
    Err("this machine is too slow to see it".to_owned())
}

fn costs(driver: Driver) -> Outcome {
    let mut bench = Bench::new(driver, "{\"admission\": \"priority\"}")?;
    bench.has_one_connection()?;
    // Costs are each core's.
    bench.has_one_core()?;
    let dear = "INSERT INTO w.log (who) SELECT 'dear' FROM (SELECT SLEEP(2)) AS s";
    let cheap = log("cheap");
    for sql in [dear, &cheap, &cheap] {
        answered(bench.sends(false, sql)?)?;
    }
    bench.order()?;
    // A cost of two seconds and one of nearly none are 0.4 seconds apart at most.
    for _ in 0..20 {
        let blocked = bench.blocks()?;
        let (mut first, second) = (bench.client(false)?, bench.client(false)?);
        let begun = Instant::now();
        first.query(dear).map_err(|error| error.to_string())?;
        bench.wait(1)?;
        let sql = cheap.clone();
        let second = thread::spawn(move || {
            let mut second = second;
            ask(&mut second, &sql)
        });
        bench.wait(2)?;
        let took = begun.elapsed();
        bench.lets_go(blocked)?;
        answered(second)?;
        first.packet().map_err(|error| error.to_string())?;
        let order = bench.order()?;
        if took < Duration::from_millis(300) {
            return same(&order, "cheap dear");
        }
    }
    // On a machine as slow as that, `cargo test -p plan` is what shows it.
    Ok(())
}

fn shedding(driver: Driver) -> Outcome {
    let settings = "{\"admission\": \"priority\", \"queue_max\": 2}";
    let mut bench = Bench::new(driver, settings)?;
    bench.has_one_connection()?;
    bench.proxy.admin(
        "UPDATE mysql_users SET attributes = '{\"priority\": 10}' WHERE username = 'app'; LOAD MYSQL USERS TO RUNTIME; \
         SET mysql-connect_timeout_server_max = 600000; LOAD MYSQL VARIABLES TO RUNTIME",
    )?;
    let blocked = bench.blocks()?;
    let mut usual = Vec::new();
    for n in 1..=2 {
        usual.push(bench.sends(false, &log("usual"))?);
        bench.wait(n)?;
    }
    // One more of the same is the last, and is told at once; its session goes on.
    let mut third = bench.client(false)?;
    let said = ask(&mut third, &log("third")).err().unwrap_or_default();
    let words = "Too many statements wait for hostgroup 0: 2 (queue_max), and this one is the last of them; try again in about ";
    expect(said.contains("9001") && said.contains(words), || {
        said.clone()
    })?;
    ask(&mut third, "SET @x = 1")?;
    // One of a higher priority takes the place of one that waits, on whichever core.
    let high = bench.sends(true, &log("high"))?;
    until("1", || {
        bench
            .proxy
            .admin("SELECT waiting FROM stats_millrace_admission WHERE priority = 10")
    })?;
    bench.wait(2)?;
    bench.lets_go(blocked)?;
    answered(high)?;
    let ends: Vec<_> = usual.into_iter().map(answered).collect();
    let refused = |end: &&Answer| end.as_ref().is_err_and(|said| said.contains(words));
    expect(
        ends.iter().filter(refused).count() == 1 && ends.iter().any(Result::is_ok),
        || format!("{ends:?}"),
    )?;
    let order = bench.order()?;
    expect(["high usual", "usual high"].contains(&&*order), || order)?;
    until("2", || {
        bench
            .proxy
            .admin("SELECT shed FROM stats_millrace_admission WHERE priority = 5")
    })?;
    // Time is up for who waits longer than queue_ms.
    bench.proxy.admin(
        "UPDATE mysql_hostgroup_attributes SET hostgroup_settings = '{\"queue_ms\": 100}'; LOAD MYSQL SERVERS TO RUNTIME",
    )?;
    let blocked = bench.blocks()?;
    let said = ask(&mut third, "SELECT 1").err().unwrap_or_default();
    expect(
        said.contains("9001") && said.contains("as long as it may (queue_ms); try again in about"),
        || said.clone(),
    )?;
    bench.lets_go(blocked)?;
    ask(&mut third, "SELECT 1").map(drop)
}

/// Clients that ask the same again and again, until told to stop.
struct Crowd<'a> {
    stop: &'a AtomicBool,
}

impl Drop for Crowd<'_> {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Asks the same with so many clients while this runs.
fn while_asked(
    bench: &Bench,
    clients: usize,
    sql: &str,
    then: impl FnOnce() -> Outcome,
) -> Outcome {
    let stop = AtomicBool::new(false);
    let mut all = Vec::new();
    for _ in 0..clients {
        all.push(bench.client(false)?);
    }
    thread::scope(|scope| {
        let stop = &stop;
        let asking: Vec<_> = all
            .into_iter()
            .map(|mut client| {
                scope.spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        ask(&mut client, sql)?;
                    }
                    Ok::<_, String>(())
                })
            })
            .collect();
        let crowd = Crowd { stop };
        let done = then();
        drop(crowd);
        for client in asking {
            client
                .join()
                .map_err(|_| "a client has panicked".to_owned())??;
        }
        done
    })
}

fn adaptive(driver: Driver) -> Outcome {
    let settings =
        "{\"concurrency\": \"adaptive\", \"concurrency_min\": 2, \"concurrency_max\": 100}";
    let bench = Bench::new(driver, settings)?;
    bench
        .proxy
        .admin("SET mysql-connect_timeout_server_max = 600000; LOAD MYSQL VARIABLES TO RUNTIME")?;
    let is = |condition: &str| {
        let sql = format!("SELECT {condition} FROM stats_millrace_concurrency");
        until("1", || bench.proxy.admin(&sql))
    };
    is("concurrency_limit = 20")?;
    // All of them change one row, and take ten milliseconds of it: the latency is as high as the
    // number in flight.
    let slow = "UPDATE w.counter SET n = n + 1 WHERE id = 1 AND SLEEP(0.01) = 0";
    while_asked(&bench, 2, slow, || is("baseline_us > 0"))?;
    while_asked(&bench, 60, slow, || {
        is("concurrency_limit <= 12")?;
        is("in_flight <= concurrency_limit AND latency_us > 0")?;
        let waiting = "SELECT SUM(waiting) > 30 FROM stats_millrace_admission";
        until("1", || bench.proxy.admin(waiting))
    })?;
    let low = "SELECT concurrency_limit FROM stats_millrace_concurrency";
    let low = bench.proxy.admin(low)?;
    // What these do they do side by side. How fast the limit rises depends on how long it was held
    // down.
    let aside = "SELECT SLEEP(0.02)";
    while_asked(&bench, 60, aside, || {
        is(&format!("concurrency_limit > {}", low.trim()))
    })?;
    is("in_flight = 0")
}

fn transactions(driver: Driver) -> Outcome {
    let settings =
        "{\"concurrency\": \"adaptive\", \"concurrency_min\": 1, \"concurrency_max\": 1}";
    let bench = Bench::new(driver, settings)?;
    let mut holder = bench.client(false)?;
    ask(&mut holder, "BEGIN")?;
    ask(&mut holder, "UPDATE w.counter SET n = 10 WHERE id = 1")?;
    let is = |table: &str, condition: &str| {
        let sql = format!("SELECT {condition} FROM {table}");
        until("1", || bench.proxy.admin(&sql))
    };
    // A transaction that does nothing is none of those in flight.
    is("stats_millrace_concurrency", "in_flight = 0")?;
    // Who has the only slot waits for the row; another waits for the slot.
    let blocked = bench.sends(false, "UPDATE w.counter SET n = 11 WHERE id = 1")?;
    is("stats_millrace_concurrency", "in_flight = 1")?;
    let behind = bench.sends(false, "SELECT 1")?;
    bench.wait(1)?;
    // The transaction goes on nevertheless, and with it all others.
    ask(&mut holder, "UPDATE w.counter SET n = 12 WHERE id = 2")?;
    ask(&mut holder, "COMMIT")?;
    answered(blocked)?;
    answered(behind)?;
    is("stats_millrace_concurrency", "in_flight = 0")
}
