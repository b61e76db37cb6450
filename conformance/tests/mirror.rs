//! Copies for mirrors beside real servers: the client notices nothing, and what is compared is
//! told.
#![forbid(unsafe_code)]

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use conformance::clients::{Client, app};
use conformance::process::resident_kib;
use conformance::proxy::{Driver, Proxy, Wish};
use conformance::raw::Raw;
use conformance::servers::{Server, Vendor, vendors};
use conformance::trials::{self, expect, same, until};
use wire::caps;

type Outcome = Result<(), String>;

fn main() {
    trials::run(&[
        (
            "a_copy_arrives_with_the_sessions_schema_and_variables",
            a_copy_arrives_with_the_sessions_schema_and_variables,
        ),
        (
            "a_mirror_that_is_down_or_slow_or_full_is_not_noticed",
            a_mirror_that_is_down_or_slow_or_full_is_not_noticed,
        ),
        (
            "a_copy_is_held_back_by_its_own_rules_and_the_client_is_not",
            held_back,
        ),
        (
            "copies_that_wait_are_bounded_with_all_that_they_keep",
            bounded,
        ),
        ("what_a_copy_writes_ends_the_use_of_what_was_read", watched),
        ("a_copy_takes_no_connection_that_a_client_may_want", spared),
        (
            "a_copy_gets_a_connection_that_is_idle_on_another_core",
            idle_elsewhere,
        ),
        (
            "comparing_finds_a_planted_difference",
            comparing_finds_a_planted_difference,
        ),
        (
            "comparing_finds_a_planted_difference_on_mysql",
            comparing_on_mysql,
        ),
        (
            "prepared_statements_are_copied_and_compared",
            prepared_statements_are_copied,
        ),
        (
            "prepared_statements_are_copied_and_compared_on_mysql",
            prepared_statements_on_mysql,
        ),
        (
            "a_copy_sees_no_other_sessions_user_variables",
            a_copy_sees_no_other_sessions_user_variables,
        ),
        (
            "what_the_triggers_of_a_copy_leave_is_nobodys",
            left_by_triggers,
        ),
        ("a_copy_is_read_as_its_session_means_it", read_as_meant),
        (
            "a_schema_that_a_copy_has_dropped_is_no_connections_schema",
            dropped_by_a_copy,
        ),
        (
            "who_may_not_send_several_statements_has_none_copied",
            who_may_not_send_several_statements_has_none_copied,
        ),
        (
            "a_mirror_with_a_binary_log_keeps_its_connections",
            with_a_binary_log,
        ),
        (
            "a_result_with_too_many_rows_ends_with_an_error",
            a_result_with_too_many_rows_ends_with_an_error,
        ),
    ])
}

struct Two {
    main: Server,
    mirror: Server,
    proxy: Proxy,
}

fn two(driver: Driver) -> Result<Two, String> {
    two_of(Vendor::MariaDb, driver)
}

fn two_of(vendor: Vendor, driver: Driver) -> Result<Two, String> {
    two_with(vendor, driver, &[])
}

/// Starts a server, a mirror with more options on its command line, and a proxy in front of them.
fn two_with(vendor: Vendor, driver: Driver, options: &[&str]) -> Result<Two, String> {
    let main = Server::start(vendor)?;
    let mirror = Server::start_with(vendor, options)?;
    let mut wish = Wish::in_front_of(&main);
    let _ = write!(
        wish.servers,
        ",\n{{ address = \"127.0.0.1\", port = {}, hostgroup = 9 }}",
        mirror.port
    );
    // Nobody listens on port 1.
    let _ = write!(
        wish.servers,
        ",\n{{ address = \"127.0.0.1\", port = 1, hostgroup = 8 }}"
    );
    let proxy = Proxy::start(driver, &wish)?;
    // Raw logins are quick ones; the first of an account is over TLS or by RSA.
    let _ = Client::MariaDbCli.run(
        app(main.port),
        &conformance::cache::root().join("conformance/scenarios/warm-up.txt"),
    );
    Ok(Two {
        main,
        mirror,
        proxy,
    })
}

/// Runs the test with two servers of MySQL, if there is a MySQL.
fn on_mysql(driver: Driver, test: impl Fn(Two) -> Outcome) -> Outcome {
    if let Err(why) = Vendor::MySql.programs() {
        eprintln!("SKIPPED: mirrors beside MySQL: {why}");
        return Ok(());
    }
    test(two_of(Vendor::MySql, driver)?)
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
        self.proxy.admin(&format!(
            "SELECT Variable_Value FROM stats_mysql_global WHERE Variable_Name = '{name}'"
        ))
    }
}

/// The copy is rewritten on its own way, and the client's is not.
fn a_copy_arrives_with_the_sessions_schema_and_variables(driver: Driver) -> Outcome {
    let two = two(driver)?;
    two.rules("(1, 1, '^INSERT', 9, 100, 0, NULL, NULL, ''), (2, 1, NULL, NULL, NULL, 100, 'client', 'mirror', '')")?;
    two.proxy.query("USE conf; SET time_zone = '+05:00'; BEGIN; INSERT INTO scratch VALUES (1, CONCAT('client ', @@session.time_zone)); ROLLBACK")?;
    until("1\tmirror +05:00", || {
        two.mirror.root("SELECT * FROM conf.scratch")
    })?;
    // Rolled back here; the copy stands for itself.
    same(
        &two.main
            .root("SELECT COUNT(*) FROM conf.scratch")?
            .replace("COUNT(*)", ""),
        "0",
    )?;
    until("1", || {
        two.proxy
            .admin("SELECT count_star FROM stats_mysql_query_digest WHERE hostgroup = 9")
    })?;
    two.proxy
        .query("USE conf; INSERT INTO scratch VALUES (LAST_INSERT_ID(), 'x')")?;
    until("1", || two.global("Millrace_mirror_left_out"))
}

/// A rule that only the copy goes through holds back the copy, and not the client's.
fn held_back(driver: Driver) -> Outcome {
    let two = two(driver)?;
    two.rules("(1, 1, '^INSERT', 9, 100, 0, NULL, NULL, ''), (2, 1, NULL, NULL, NULL, 100, 'client', 'mirror', '')")?;
    let delay = |ms: u32| {
        two.proxy.admin(&format!(
            "UPDATE mysql_query_rules SET delay = {ms} WHERE rule_id = 2; LOAD MYSQL QUERY RULES TO RUNTIME"
        ))
    };
    // The client would hang.
    delay(3_600_000)?;
    two.proxy
        .query("USE conf; INSERT INTO scratch VALUES (1, 'client')")?;
    delay(1000)?;
    let begun = Instant::now();
    two.proxy
        .query("USE conf; INSERT INTO scratch VALUES (2, 'client')")?;
    until("2\tmirror", || {
        two.mirror.root("SELECT * FROM conf.scratch")
    })?;
    let took = begun.elapsed();
    expect(took >= Duration::from_secs(1), || {
        format!("the copy came after {took:?}")
    })
}

fn a_mirror_that_is_down_or_slow_or_full_is_not_noticed(driver: Driver) -> Outcome {
    let two = two(driver)?;
    two.proxy.admin("SET mysql-mirror_max_concurrency=1; SET mysql-mirror_max_queue_length=2; SET mysql-connect_timeout_server_max=500; LOAD MYSQL VARIABLES TO RUNTIME")?;
    two.rules("(1, 1, '^SELECT', 8, NULL, 0, NULL, NULL, '')")?;
    let many = "SELECT 7;".repeat(40);
    same(
        two.proxy
            .query(&many)?
            .lines()
            .filter(|line| *line == "7")
            .count()
            .to_string()
            .as_str(),
        "40",
    )?;
    let dropped = two.global("Millrace_mirror_dropped")?;
    expect(
        dropped.lines().last().is_some_and(|n| n.trim() != "0"),
        || format!("dropped {dropped}"),
    )?;
    until("0", || two.global("Mirror_queue_length"))?;
    until("0", || two.global("Mirror_concurrency"))?;
    // A copy that sleeps where the client's does not.
    two.rules("(1, 1, '^SELECT', 9, 100, 0, NULL, NULL, ''), (2, 1, NULL, NULL, NULL, 100, '0.001', '3', '')")?;
    two.proxy.query("SELECT SLEEP(0.001)")?;
    // The client has its answer while the copy still runs.
    same(
        two.global("Mirror_concurrency")?
            .lines()
            .last()
            .unwrap_or_default(),
        "1",
    )
}

/// Each copy has the user variables of its moment, which are other ones each time.
fn bounded(driver: Driver) -> Outcome {
    let two = two(driver)?;
    two.proxy
        .admin("SET mysql-mirror_max_concurrency = 1; LOAD MYSQL VARIABLES TO RUNTIME")?;
    two.rules("(1, 1, '^SELECT', 8, NULL, 0, NULL, NULL, '')")?;
    let mut client = Raw::log_in(two.proxy.port, 0)?;
    client.query(&format!("SET @a = '{}'", "x".repeat(60_000)))?;
    let before = resident_kib(two.proxy.id());
    for n in 0..3_000 {
        client.query(&format!("SET @b = {n}"))?;
        client.query("SELECT 1")?;
    }
    // They would be 180 MB.
    let grown = resident_kib(two.proxy.id()).saturating_sub(before);
    expect(grown < 110 << 10, || {
        format!("{grown} KiB more are resident")
    })?;
    let dropped = two.global("Millrace_mirror_dropped")?;
    expect(
        dropped.lines().last().is_some_and(|n| n.trim() != "0"),
        || format!("dropped {dropped}"),
    )
}

/// Slow copies to where clients go as well.
fn spared(driver: Driver) -> Outcome {
    let two = two(driver)?;
    two.proxy.admin(
        "UPDATE mysql_servers SET max_connections = 4 WHERE hostgroup_id = 9; LOAD MYSQL SERVERS TO RUNTIME; \
         SET mysql-connect_timeout_server_max = 3000; LOAD MYSQL VARIABLES TO RUNTIME",
    )?;
    two.rules(
        "(1, 1, '^SELECT .* FROM conf.counted', 9, 100, 0, NULL, NULL, ''), (2, 1, NULL, NULL, NULL, 100, '0.001', '20', ''), \
         (3, 1, '^SELECT @@port', NULL, NULL, 0, NULL, NULL, '')",
    )?;
    two.proxy.admin(
        "UPDATE mysql_query_rules SET destination_hostgroup = 9, apply = 1 WHERE rule_id = 3; LOAD MYSQL QUERY RULES TO RUNTIME",
    )?;
    two.main
        .root("INSERT INTO conf.counted (words) VALUES ('x')")?;
    two.mirror
        .root("INSERT INTO conf.counted (words) VALUES ('x')")?;
    two.proxy
        .query(&"SELECT SLEEP(0.001) FROM conf.counted LIMIT 1;".repeat(10))?;
    let running = || {
        two.mirror
            .root("SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE '%SLEEP(20)%' AND info NOT LIKE '%info%'")
    };
    until("3", || running().map(|said| said.replace("COUNT(*)", "")))?;
    same(
        two.proxy.query("SELECT @@port")?.trim(),
        &two.mirror.port.to_string(),
    )?;
    same(running()?.replace("COUNT(*)", "").trim(), "3")
}

/// The only connection that may be is another core's, where clients go as well.
fn idle_elsewhere(driver: Driver) -> Outcome {
    let two = two(driver)?;
    two.proxy.admin(
        "UPDATE mysql_servers SET max_connections = 1 WHERE hostgroup_id = 9; LOAD MYSQL SERVERS TO RUNTIME; \
         SET mysql-connect_timeout_server_max = 3000; LOAD MYSQL VARIABLES TO RUNTIME",
    )?;
    two.rules("(1, 1, '^INSERT', 9, NULL, 0, NULL, NULL, ''), (3, 1, '^SELECT @@port', NULL, NULL, 0, NULL, NULL, '')")?;
    two.proxy.admin(
        "UPDATE mysql_query_rules SET destination_hostgroup = 9, apply = 1 WHERE rule_id = 3; LOAD MYSQL QUERY RULES TO RUNTIME",
    )?;
    let mut client = Raw::log_in(two.proxy.port, 0)?;
    let mut others = Vec::new();
    let mut writer = loop {
        let other = Raw::log_in(two.proxy.port, 0)?;
        // The proxy has two cores, and gives numbers that tell them apart.
        if other.id % 2 != client.id % 2 {
            break other;
        }
        others.push(other);
    };
    for turn in 1..=5 {
        let there = client.query("SELECT @@port")?;
        expect(there.contains(&two.mirror.port.to_string()), || {
            there.clone()
        })?;
        writer.query(&format!(
            "INSERT INTO conf.scratch VALUES ({turn}, 'copied')"
        ))?;
        until(&turn.to_string(), || {
            two.mirror.root("SELECT COUNT(*) FROM conf.scratch")
        })?;
    }
    same(
        two.global("Millrace_mirror_failed")?
            .lines()
            .last()
            .unwrap_or_default(),
        "0",
    )
}

/// The copy writes another table, and later than its client.
fn watched(driver: Driver) -> Outcome {
    let two = two(driver)?;
    two.rules(
        "(1, 1, '^INSERT', 9, 100, 0, NULL, NULL, ''), (2, 1, NULL, NULL, NULL, 100, 'scratch SELECT 1', 'counted (id, words) SELECT 7', ''), \
         (3, 1, '^SELECT COUNT', NULL, NULL, 0, NULL, NULL, '{\"cache_invalidate\":true}')",
    )?;
    two.proxy.admin(
        "UPDATE mysql_query_rules SET cache_ttl = 600000, destination_hostgroup = 9, apply = 1 WHERE rule_id = 3; LOAD MYSQL QUERY RULES TO RUNTIME",
    )?;
    let count = "SELECT COUNT(*) FROM conf.counted";
    let before: u64 = two
        .proxy
        .query(count)?
        .trim()
        .parse()
        .map_err(|error| format!("{error}"))?;
    same(two.proxy.query(count)?.trim(), &before.to_string())?;
    two.proxy
        .query("INSERT INTO conf.scratch SELECT 1, SLEEP(0.3)")?;
    // While the copy is on its way, what others read is not kept.
    two.proxy.query(&format!("{count}; {count}"))?;
    until(&(before + 1).to_string(), || two.proxy.query(count))
}

fn comparing_finds_a_planted_difference(driver: Driver) -> Outcome {
    comparing(two(driver)?)
}

fn comparing_on_mysql(driver: Driver) -> Outcome {
    on_mysql(driver, comparing)
}

fn prepared_statements_are_copied(driver: Driver) -> Outcome {
    prepared(two(driver)?)
}

fn prepared_statements_on_mysql(driver: Driver) -> Outcome {
    on_mysql(driver, prepared)
}

/// Executions with their parameters, also such as came ahead or were moved; preparing and fetching
/// are not copied.
fn prepared(two: Two) -> Outcome {
    two.proxy.admin(
        "INSERT INTO mysql_query_rewrite (rewrite_id, active, pattern, replacement) \
         VALUES (1, 1, 'REPLACE INTO conf.scratch (id, words) VALUES (?, ?)', 'REPLACE INTO conf.scratch (words, id) VALUES (?2, ?1)')",
    )?;
    two.rules("(1, 1, 'scratch', 9, NULL, 0, NULL, NULL, '{\"mirror_compare\":true}')")?;
    let mut client = Raw::log_in(two.proxy.port, 0)?;
    client.prepare("REPLACE INTO conf.scratch (id, words) VALUES (?, ?)")?;
    client.execute(0, 0, b"\0\x01\x03\0\xfd\0\x07\0\0\0\x05seven")?;
    client.execute(0, 0, b"\0\0\x08\0\0\0\x05eight")?;
    client.execute(0, 0, b"\x02\0\x09\0\0\0")?;
    let head = client.statement(0x18, 0);
    client.send(0, &[&head[..], b"\x01\0ahead"].concat())?;
    client.execute(0, 0, b"\0\0\x0a\0\0\0")?;
    until("10\tahead", || {
        two.mirror.root("SELECT * FROM conf.scratch ORDER BY id")
    })?;
    same(
        &two.mirror.root("SELECT * FROM conf.scratch ORDER BY id")?,
        &two.main.root("SELECT * FROM conf.scratch ORDER BY id")?,
    )?;

    let verdict = || {
        two.proxy
            .admin("SELECT count_star, same, different, errors FROM stats_mysql_mirror_digest WHERE digest_text LIKE 'SELECT%'")
    };
    client.prepare("SELECT words, id FROM conf.scratch WHERE id < ? ORDER BY id")?;
    client.execute(1, 0, b"\0\x01\x03\0\x09\0\0\0")?;
    until("1\t1\t0\t0", verdict)?;
    two.mirror
        .root("UPDATE conf.scratch SET words = 'other' WHERE id = 8")?;
    client.execute(1, 0, b"\0\0\x08\0\0\0")?;
    until("2\t2\t0\t0", verdict)?;
    client.execute(1, 0, b"\0\0\x09\0\0\0")?;
    until("3\t2\t1\t0", verdict)?;
    let failed = two.global("Millrace_mirror_failed")?;
    same(failed.lines().last().unwrap_or_default(), "0")
}

fn comparing(two: Two) -> Outcome {
    two.main
        .root("INSERT INTO conf.scratch VALUES (1, 'a'), (2, 'b')")?;
    two.mirror
        .root("INSERT INTO conf.scratch VALUES (2, 'b'), (1, 'a')")?;
    two.rules("(1, 1, 'scratch', 9, NULL, 0, NULL, NULL, '{\"mirror_compare\":true}')")?;
    let verdict = || {
        two.proxy.admin("SELECT count_star, same, different, errors, last_difference FROM stats_mysql_mirror_digest")
    };
    two.proxy.query("SELECT * FROM conf.scratch")?;
    until("1\t1\t0\t0\t", verdict)?;
    two.mirror
        .root("UPDATE conf.scratch SET words = 'B' WHERE words = 'b'")?;
    two.proxy.query("SELECT * FROM conf.scratch")?;
    until("2\t1\t1\t0\t2 rows each, with other values", verdict)?;
    two.mirror.root("DROP TABLE conf.child, conf.scratch")?;
    two.proxy.query("SELECT * FROM conf.scratch")?;
    until("3\t1\t1\t1\tclient: no error, mirror: error 1146", verdict)
}

/// Words that hide where no backslash escapes: a lock that the copy has taken does not stay on its
/// connection.
fn read_as_meant(driver: Driver) -> Outcome {
    let two = two(driver)?;
    for server in [&two.main, &two.mirror] {
        server.root("CREATE FUNCTION conf.grab() RETURNS INT RETURN GET_LOCK('job', 0)")?;
    }
    two.rules("(1, 1, '^SELECT', 9, NULL, 0, NULL, NULL, '')")?;
    let mut client = Raw::log_in(two.proxy.port, 0)?;
    let mut sent = 0;
    let mut copied = |client: &mut Raw, sql: &str| {
        client.query(sql)?;
        sent += 1;
        until(&sent.to_string(), || two.global("Millrace_mirror_sent"))?;
        until("NULL", || two.mirror.root("SELECT IS_USED_LOCK('job')"))
    };
    client.query("SET sql_mode = 'NO_BACKSLASH_ESCAPES'")?;
    let hides = r"SELECT '\', conf.grab() -- '";
    copied(&mut client, hides)?;
    // Also one that was prepared so, and is executed where backslashes escape again.
    client.prepare(hides)?;
    client.query("SET sql_mode = ''")?;
    client.execute(0, 0, b"")?;
    until("2", || two.global("Millrace_mirror_sent"))?;
    until("NULL", || two.mirror.root("SELECT IS_USED_LOCK('job')"))
}

/// Each core has its own connections to a mirror: so often that some of all come to the same one.
const OFTEN: usize = 8;

/// Sends what says `to_nine` to the mirror's hostgroup itself, and copies inserts there.
fn to_nine_or_copied(two: &Two) -> Outcome {
    let rules = "INSERT INTO mysql_query_rules (rule_id, active, match_pattern, destination_hostgroup, mirror_hostgroup, apply) \
                 VALUES (1, 1, 'to_nine', 9, NULL, 1), (2, 1, '^INSERT', NULL, 9, 1); LOAD MYSQL QUERY RULES TO RUNTIME";
    two.proxy.admin(rules).map(drop)
}

fn a_copy_sees_no_other_sessions_user_variables(driver: Driver) -> Outcome {
    let two = two(driver)?;
    to_nine_or_copied(&two)?;
    two.mirror
        .root("CREATE TRIGGER conf.who BEFORE INSERT ON conf.scratch FOR EACH ROW SET NEW.words = IFNULL(@who, 'nobody')")?;
    for n in 0..OFTEN {
        two.proxy.query(&format!(
            "SET @who = 'ann'; INSERT INTO conf.scratch VALUES ({n}, 'to_nine')"
        ))?;
    }
    for n in 0..OFTEN {
        two.proxy
            .query(&format!("INSERT INTO conf.scratch VALUES (10{n}, 'x')"))?;
        two.proxy.query(&format!(
            "SET @who = 'bob'; INSERT INTO conf.scratch VALUES (20{n}, 'x')"
        ))?;
    }
    let who = "SELECT GROUP_CONCAT(c ORDER BY c) FROM (SELECT CONCAT(words, ' ', COUNT(*)) AS c FROM conf.scratch GROUP BY words) AS t";
    until("ann 8,bob 8,nobody 8", || two.mirror.root(who))
}

fn left_by_triggers(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let two = two_of(vendor, driver)?;
        to_nine_or_copied(&two)?;
        two.mirror.root(
            "CREATE TRIGGER conf.leaves BEFORE INSERT ON conf.scratch FOR EACH ROW SET @email = NEW.words, SESSION time_zone = '+05:00'",
        )?;
        // The second of each fails, as its copy does, and an error tells of nothing.
        for n in (0..OFTEN).flat_map(|n| [n, n]) {
            let _the_second_fails = two
                .proxy
                .query(&format!("INSERT INTO conf.scratch VALUES ({n}, 'alice')"));
            let found = two
                .proxy
                .query("SELECT COALESCE(@email, 'nobody') AS to_nine, @@time_zone")?;
            expect(found.trim().ends_with("nobody\tSYSTEM"), || {
                format!("{vendor}, insert {n}: {found}")
            })?;
            // What is told late is told whoever writes next.
            let found = two
                .proxy
                .query("UPDATE conf.types SET id = id WHERE 'to_nine' = ''; SELECT @@time_zone")?;
            expect(found.trim().ends_with("SYSTEM"), || {
                format!("{vendor}, insert {n}, then a write: {found}")
            })?;
        }
    }
    Ok(())
}

/// MariaDB tells the number of each write's transaction: nothing that a copy would leave to
/// anybody.
fn with_a_binary_log(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let two = two_with(vendor, driver, &["--log-bin=log", "--server-id=1"])?;
        to_nine_or_copied(&two)?;
        for n in 0..50 {
            two.proxy
                .query(&format!("INSERT INTO conf.scratch VALUES ({n}, 'x')"))?;
        }
        until("50", || {
            two.mirror.root("SELECT COUNT(*) FROM conf.scratch")
        })?;
        until("0", || two.global("Mirror_concurrency"))?;
        same(
            two.global("MyHGM_myconnpoll_reset")?
                .lines()
                .last()
                .unwrap_or_default(),
            "0",
        )
        .map_err(|why| format!("{vendor}: {why}"))?;
    }
    Ok(())
}

fn dropped_by_a_copy(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let two = two_of(vendor, driver)?;
        two.proxy.admin(
            "INSERT INTO mysql_query_rules (rule_id, active, match_pattern, destination_hostgroup, mirror_hostgroup, apply)
             VALUES (1, 1, 'to_nine', 9, NULL, 1), (2, 1, '^DROP', NULL, 9, 1); LOAD MYSQL QUERY RULES TO RUNTIME",
        )?;
        for _ in 0..OFTEN {
            for server in [&two.main, &two.mirror] {
                server.root("CREATE DATABASE passing; CREATE TABLE passing.things (a INT)")?;
            }
            two.proxy.query("USE passing; DROP DATABASE passing")?;
            until("0", || {
                two.mirror.root("SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = 'passing'")
            })?;
            until("0", || two.global("Mirror_concurrency"))?;
            for server in [&two.main, &two.mirror] {
                server.root("CREATE DATABASE passing; CREATE TABLE passing.things (a INT)")?;
            }
            let found = two
                .proxy
                .query("USE passing; SELECT COUNT(*) AS to_nine FROM things")?;
            expect(found.trim().ends_with('0'), || format!("{vendor}: {found}"))?;
            for server in [&two.main, &two.mirror] {
                server.root("DROP DATABASE passing")?;
            }
        }
    }
    Ok(())
}

fn who_may_not_send_several_statements_has_none_copied(driver: Driver) -> Outcome {
    let two = two(driver)?;
    to_nine_or_copied(&two)?;
    for _ in 0..OFTEN {
        let mut may = Raw::log_in(two.proxy.port, caps::MULTI_STATEMENTS)?;
        may.query("SELECT ';' AS to_nine")?;
    }
    for n in 0..OFTEN {
        let mut may_not = Raw::log_in(two.proxy.port, 0)?;
        let said = may_not.query(&format!(
            "INSERT INTO conf.scratch VALUES ({n}, 'x'); DELETE FROM conf.scratch"
        ))?;
        expect(said.contains("SQL syntax"), || said.clone())?;
        may_not.query(&format!(
            "INSERT INTO conf.scratch VALUES (10{n}, 'kept; by all')"
        ))?;
    }
    until("8", || two.mirror.root("SELECT COUNT(*) FROM conf.scratch"))?;
    same(
        two.global("Millrace_mirror_left_out")?
            .lines()
            .last()
            .unwrap_or_default(),
        "8",
    )?;
    same(
        two.mirror
            .root("SELECT COUNT(*) FROM conf.scratch WHERE words = 'kept; by all'")?
            .lines()
            .last()
            .unwrap_or_default(),
        "8",
    )
}

fn a_result_with_too_many_rows_ends_with_an_error(driver: Driver) -> Outcome {
    let two = two(driver)?;
    two.rules("(1, 1, 'seq_', NULL, NULL, 0, NULL, NULL, '{\"max_rows\":5}')")?;
    let fits = two.proxy.query("SELECT seq FROM conf.seq_1_to_5")?;
    same(fits.lines().last().unwrap_or_default(), "5")?;
    for many in [
        "SELECT seq FROM conf.seq_1_to_6",
        "SELECT seq, REPEAT('x', 1000) FROM conf.seq_1_to_100000",
    ] {
        let refused = two.proxy.query(many).err().unwrap_or_default();
        expect(
            refused.contains("1104") && refused.contains("more than 5 rows"),
            || refused.clone(),
        )?;
    }
    same(
        two.global("Millrace_rows_limited")?
            .lines()
            .last()
            .unwrap_or_default(),
        "2",
    )?;
    // With a mirror: whether it has too many as well.
    two.rules("(1, 1, 'seq_|scratch', 9, NULL, 0, NULL, NULL, '{\"max_rows\":1,\"mirror_compare\":true}')")?;
    two.main
        .root("INSERT INTO conf.scratch VALUES (1, 'a'), (2, 'b')")?;
    for many in [
        "SELECT seq FROM conf.seq_1_to_6",
        "SELECT id FROM conf.scratch",
    ] {
        expect(
            two.proxy
                .query(many)
                .is_err_and(|words| words.contains("more than 1 rows")),
            || many.to_owned(),
        )?;
    }
    let verdicts = || {
        two.proxy.admin("SELECT group_concat(same || different || last_difference, ';') FROM (SELECT * FROM stats_mysql_mirror_digest ORDER BY same)")
    };
    until("01client: more than 1 rows, mirror: 0;10", verdicts)?;
    two.main.root("DELETE FROM conf.scratch")?;
    // What was kept while more rows were allowed is not served whole.
    let kept = "DELETE FROM mysql_query_rules; INSERT INTO mysql_query_rules (rule_id, active, match_pattern, cache_ttl, apply) VALUES (1, 1, 'seq_', 60000, 1)";
    two.proxy
        .admin(&format!("{kept}; LOAD MYSQL QUERY RULES TO RUNTIME"))?;
    two.proxy.query("SELECT seq FROM conf.seq_1_to_7")?;
    two.proxy.admin("UPDATE mysql_query_rules SET attributes = '{\"max_rows\":5}'; LOAD MYSQL QUERY RULES TO RUNTIME")?;
    let refused = two
        .proxy
        .query("SELECT seq FROM conf.seq_1_to_7")
        .err()
        .unwrap_or_default();
    expect(refused.contains("more than 5 rows"), || refused.clone())?;
    // The rest is read and thrown away where the connection is the session's: it goes on, whether
    // it came at once or not.
    let mut raw = Raw::log_in(two.proxy.port, 0)?;
    for many in [
        "SELECT seq FROM conf.seq_1_to_6",
        "SELECT seq, REPEAT('x', 1000) FROM conf.seq_1_to_5000",
    ] {
        raw.query("BEGIN")?;
        raw.query("INSERT INTO conf.scratch VALUES (1, 'a')")?;
        let said = raw.query(many)?;
        expect(
            said.lines()
                .last()
                .is_some_and(|last| last.contains("more than 5 rows")),
            || said.clone(),
        )?;
        let inside = raw.query("SELECT COUNT(*) FROM conf.scratch")?;
        expect(inside.contains("\\x011\n"), || inside.clone())?;
        raw.query("ROLLBACK")?;
        let after = raw.query("SELECT COUNT(*) FROM conf.scratch")?;
        expect(after.contains("\\x010\n"), || after.clone())?;
    }
    Ok(())
}
