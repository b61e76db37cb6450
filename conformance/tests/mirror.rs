//! Copies for mirrors beside real servers: the client notices nothing, and what is compared is told.
#![forbid(unsafe_code)]

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use conformance::proxy::{Driver, Proxy, Wish};
use conformance::servers::{Server, Vendor};
use conformance::trials::{self, expect, same};

type Outcome = Result<(), String>;

fn main() {
    trials::run(&[
        ("a_copy_arrives_with_the_sessions_schema_and_variables", a_copy_arrives_with_the_sessions_schema_and_variables),
        ("a_mirror_that_is_down_or_slow_or_full_is_not_noticed", a_mirror_that_is_down_or_slow_or_full_is_not_noticed),
        ("comparing_finds_a_planted_difference", comparing_finds_a_planted_difference),
        ("a_result_with_too_many_rows_ends_with_an_error", a_result_with_too_many_rows_ends_with_an_error),
    ])
}

struct Two {
    main: Server,
    mirror: Server,
    proxy: Proxy,
}

fn two(driver: Driver) -> Result<Two, String> {
    let main = Server::start(Vendor::MariaDb)?;
    let mirror = Server::start(Vendor::MariaDb)?;
    let mut wish = Wish::in_front_of(&main);
    let _ = write!(wish.servers, ",\n{{ address = \"127.0.0.1\", port = {}, hostgroup = 9 }}", mirror.port);
    // Nobody listens on port 1.
    let _ = write!(wish.servers, ",\n{{ address = \"127.0.0.1\", port = 1, hostgroup = 8 }}");
    let proxy = Proxy::start(driver, &wish)?;
    Ok(Two { main, mirror, proxy })
}

/// Asks until the answer is this one.
fn until(wanted: &str, ask: impl Fn() -> Result<String, String>) -> Outcome {
    let begun = Instant::now();
    loop {
        let said = ask()?;
        let last = said.lines().last().unwrap_or_default();
        if last == wanted || begun.elapsed() > Duration::from_secs(20) {
            return same(last, wanted);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

impl Two {
    fn rules(&self, rows: &str) -> Outcome {
        self.proxy
            .admin(&format!(
                "DELETE FROM mysql_query_rules; \
                 INSERT INTO mysql_query_rules (rule_id, active, match_digest, mirror_hostgroup, mirror_flagOUT, flagIN, match_pattern, replace_pattern, attributes) VALUES {rows}; \
                 LOAD MYSQL QUERY RULES TO RUNTIME;"
            ))
            .map(drop)
    }

    fn global(&self, name: &str) -> Result<String, String> {
        self.proxy.admin(&format!("SELECT Variable_Value FROM stats_mysql_global WHERE Variable_Name = '{name}'"))
    }
}

/// A69: one of the reasons to understand SQL. The copy is rewritten on its own way, and the client's is not.
fn a_copy_arrives_with_the_sessions_schema_and_variables(driver: Driver) -> Outcome {
    let two = two(driver)?;
    two.rules("(1, 1, '^INSERT', 9, 100, 0, NULL, NULL, ''), (2, 1, NULL, NULL, NULL, 100, 'client', 'mirror', '')")?;
    two.proxy.query("USE conf; SET time_zone = '+05:00'; BEGIN; INSERT INTO scratch VALUES (1, CONCAT('client ', @@session.time_zone)); ROLLBACK")?;
    until("1\tmirror +05:00", || two.mirror.root("SELECT * FROM conf.scratch"))?;
    // Rolled back here; the copy stands for itself.
    same(&two.main.root("SELECT COUNT(*) FROM conf.scratch")?.replace("COUNT(*)", ""), "0")?;
    until("1", || two.proxy.admin("SELECT count_star FROM stats_mysql_query_digest WHERE hostgroup = 9"))?;
    two.proxy.query("USE conf; INSERT INTO scratch VALUES (LAST_INSERT_ID(), 'x')")?;
    until("1", || two.global("Millrace_mirror_left_out"))
}

fn a_mirror_that_is_down_or_slow_or_full_is_not_noticed(driver: Driver) -> Outcome {
    let two = two(driver)?;
    two.proxy.admin("SET mysql-mirror_max_concurrency=1; SET mysql-mirror_max_queue_length=2; SET mysql-connect_timeout_server_max=500; LOAD MYSQL VARIABLES TO RUNTIME")?;
    two.rules("(1, 1, '^SELECT', 8, NULL, 0, NULL, NULL, '')")?;
    let many = "SELECT 7;".repeat(40);
    same(two.proxy.query(&many)?.lines().filter(|line| *line == "7").count().to_string().as_str(), "40")?;
    let dropped = two.global("Millrace_mirror_dropped")?;
    expect(dropped.lines().last().is_some_and(|n| n.trim() != "0"), || format!("dropped {dropped}"))?;
    until("0", || two.global("Mirror_queue_length"))?;
    until("0", || two.global("Mirror_concurrency"))?;
    // A copy that sleeps where the client's does not.
    two.rules("(1, 1, '^SELECT', 9, 100, 0, NULL, NULL, ''), (2, 1, NULL, NULL, NULL, 100, '0.001', '3', '')")?;
    two.proxy.query("SELECT SLEEP(0.001)")?;
    // The client has its answer while the copy still runs.
    same(two.global("Mirror_concurrency")?.lines().last().unwrap_or_default(), "1")
}

fn comparing_finds_a_planted_difference(driver: Driver) -> Outcome {
    let two = two(driver)?;
    two.main.root("INSERT INTO conf.scratch VALUES (1, 'a'), (2, 'b')")?;
    two.mirror.root("INSERT INTO conf.scratch VALUES (2, 'b'), (1, 'a')")?;
    two.rules("(1, 1, 'scratch', 9, NULL, 0, NULL, NULL, '{\"mirror_compare\":true}')")?;
    let verdict = || two.proxy.admin("SELECT count_star, same, different, errors, last_difference FROM stats_mysql_mirror_digest");
    two.proxy.query("SELECT * FROM conf.scratch")?;
    until("1\t1\t0\t0\t", verdict)?;
    two.mirror.root("UPDATE conf.scratch SET words = 'B' WHERE words = 'b'")?;
    two.proxy.query("SELECT * FROM conf.scratch")?;
    until("2\t1\t1\t0\t2 rows each, with other values", verdict)?;
    two.mirror.root("DROP TABLE conf.child, conf.scratch")?;
    two.proxy.query("SELECT * FROM conf.scratch")?;
    until("3\t1\t1\t1\tclient: no error, mirror: error 1146", verdict)
}

fn a_result_with_too_many_rows_ends_with_an_error(driver: Driver) -> Outcome {
    let two = two(driver)?;
    two.rules("(1, 1, 'seq_', NULL, NULL, 0, NULL, NULL, '{\"max_rows\":5}')")?;
    let fits = two.proxy.query("SELECT seq FROM conf.seq_1_to_5")?;
    same(fits.lines().last().unwrap_or_default(), "5")?;
    for many in ["SELECT seq FROM conf.seq_1_to_6", "SELECT seq, REPEAT('x', 1000) FROM conf.seq_1_to_100000"] {
        let refused = two.proxy.query(many).err().unwrap_or_default();
        expect(refused.contains("1104") && refused.contains("more than 5 rows"), || refused.clone())?;
    }
    same(two.global("Millrace_rows_limited")?.lines().last().unwrap_or_default(), "2")?;
    // The rest is read and thrown away where the connection is the session's: it goes on.
    let said = two.proxy.query("BEGIN; SELECT 1; SELECT seq FROM conf.seq_1_to_6").err().unwrap_or_default();
    expect(said.contains("1104"), || said.clone())
}
