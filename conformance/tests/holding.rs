//! How long a session keeps a connection for itself, how many are opened, and what else of the pool
//! an operator may set.
#![forbid(unsafe_code)]

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use conformance::beside::{asked, beside, beside_with, narrow, set, settled};
use conformance::by_hand::{self, Raw};
use conformance::clients::{Client, app};
use conformance::proxy::{Driver, Proxy};
use conformance::servers::{Server, Vendor, vendors};
use conformance::trials::{self, expect, same, soon};
use conformance::watch::HANGS;

type Outcome = Result<(), String>;

fn main() {
    trials::run(&[
        (
            "an_inserts_id_holds_for_so_many_statements_or_so_long",
            insert_ids,
        ),
        (
            "a_connection_is_kept_for_a_while_after_each_statement",
            delays,
        ),
        ("warnings_hold_unless_somebody_said_otherwise", warnings),
        (
            "connections_to_a_hostgroup_are_opened_no_faster_than_allowed",
            throttles,
        ),
        (
            "an_unknown_character_set_is_turned_away_or_replaced",
            unknown_charset,
        ),
        ("a_connection_is_put_right_for_the_next_session", put_right),
        ("tables_of_connections_say_what_is_so_of_each", told),
        ("init_connect_outlives_a_reset", init_connect),
        (
            "no_connection_is_left_of_another_init_connect",
            other_init_connect,
        ),
        (
            "a_session_that_is_reset_forgets_what_the_server_remembers",
            forgets,
        ),
        (
            "what_is_asked_on_the_side_ends_with_its_session",
            on_the_side,
        ),
        ("a_lock_that_is_held_is_not_reset_away", reset_of_held),
        (
            "a_client_that_leaves_after_its_begin_leaves_no_transaction",
            left_transaction,
        ),
        ("what_words_hide_is_nobody_elses", hidden_state),
        ("a_commit_begins_what_completion_type_says", completion_type),
        (
            "a_stored_function_leaves_nothing_to_the_next_session",
            routines,
        ),
        ("what_programs_change_is_the_sessions_own", programs),
        (
            "what_a_failed_statement_has_changed_is_nobody_elses",
            told_late,
        ),
        ("who_asks_for_tracking_is_told_what_a_server_tells", tracked),
        (
            "what_a_failed_statement_has_changed_outlives_an_answer_of_the_proxy",
            told_later,
        ),
        (
            "what_the_statement_before_has_left_is_known_on_any_connection",
            recalled,
        ),
        (
            "a_schema_of_a_latin1_client_is_the_same_on_any_connection",
            latin1_schema,
        ),
        (
            "a_read_is_tried_again_unless_somebody_said_otherwise",
            reconnects,
        ),
        ("a_rule_says_whether_a_connection_may_be_shared", by_rule),
    ])
}

fn one(driver: Driver) -> Result<(Server, Proxy), String> {
    one_of(driver, Vendor::MariaDb)
}

fn one_of(driver: Driver, vendor: Vendor) -> Result<(Server, Proxy), String> {
    by_hand::one(driver, vendor)
}

fn log_in(proxy: &Proxy) -> Result<Raw, String> {
    Raw::log_in(proxy.port).map_err(|error| error.to_string())
}

/// Columns of ProxySQL's, in its words.
fn told(driver: Driver) -> Outcome {
    let (_server, proxy) = one(driver)?;
    set(&proxy, "SET mysql-init_connect='SET @begun = 1'")?;
    let mut client = log_in(&proxy)?;
    asked(&mut client, "SET time_zone = '+01:00'")?;
    asked(&mut client, "SET autocommit = 0")?;
    asked(&mut client, "SELECT 1")?;
    let free = |columns: &str| {
        let (from, its) = ("stats_mysql_free_connections", "time_zone = '+01:00'");
        let said = proxy.admin(&format!("SELECT {columns} FROM {from} WHERE {its}"))?;
        Ok::<_, String>(said.trim_end().to_owned())
    };
    soon("SET @begun = 1\tNULL\t0", || {
        free("init_connect, sql_mode, autocommit")
    })?;
    let numbers = ["age_ms", "bytes_recv", "bytes_sent", "questions"]
        .map(|name| format!("JSON_EXTRACT(statistics, '$.{name}') >= 0"));
    same(&free(&numbers.join(", "))?, "1\t1\t1\t1")?;
    let version = "JSON_EXTRACT(mysql_info, '$.server_version') LIKE '%MariaDB%'";
    same(&free(version)?, "1")?;
    let descriptor = format!("/proc/{}/fd/{}", proxy.id(), free("fd")?);
    let socket = fs::read_link(&descriptor).map_err(|error| format!("{descriptor}: {error}"))?;
    expect(socket.to_string_lossy().starts_with("socket:"), || {
        format!("{descriptor} is {}", socket.display())
    })?;

    let flags = || {
        let said = proxy.admin("SELECT DISTINCT status_flags FROM stats_mysql_processlist")?;
        Ok::<_, String>(said.trim_end().to_owned())
    };
    same(&flags()?, "0")?;
    asked(&mut client, "CREATE TEMPORARY TABLE conf.mine (id INT)")?;
    asked(&mut client, "SELECT GET_LOCK('mine', 1)")?;
    soon("96", flags)
}

/// Insert that names no columns: whether the client has chosen its id only the server knows.
const INSERT: &str = "INSERT INTO conf.counted VALUES (NULL, 'held')";

fn insert_ids(driver: Driver) -> Outcome {
    let (_server, proxy) = one(driver)?;
    let mut client = log_in(&proxy)?;
    set(
        &proxy,
        "SET mysql-auto_increment_delay_multiplex=3; SET mysql-auto_increment_delay_multiplex_timeout_ms=0",
    )?;
    asked(&mut client, INSERT)?;
    for left in (0..3).rev() {
        same(settled(&proxy, &mut client)?.as_str(), "InsertId")?;
        asked(&mut client, "SELECT 1")?;
        if left == 0 {
            soon("", || settled(&proxy, &mut client))?;
        }
    }
    // By time, without another statement.
    set(
        &proxy,
        "SET mysql-auto_increment_delay_multiplex=1000000; SET mysql-auto_increment_delay_multiplex_timeout_ms=300",
    )?;
    asked(&mut client, INSERT)?;
    soon("", || settled(&proxy, &mut client))?;
    // A transaction keeps the connection anyway; the id waits for its end.
    asked(&mut client, "BEGIN")?;
    asked(&mut client, INSERT)?;
    // Who has inserted later has given it back by then.
    let mut later = beside(&proxy, &client)?;
    asked(&mut later, INSERT)?;
    soon("", || settled(&proxy, &mut later))?;
    same(
        settled(&proxy, &mut client)?.as_str(),
        "InsertId Transaction",
    )?;
    asked(&mut client, "ROLLBACK")?;
    soon("", || settled(&proxy, &mut client))
}

fn delays(driver: Driver) -> Outcome {
    let (_server, proxy) = one(driver)?;
    let mut client = log_in(&proxy)?;
    set(&proxy, "SET mysql-connection_delay_multiplex_ms=300000")?;
    asked(&mut client, "SELECT 1")?;
    same(settled(&proxy, &mut client)?.as_str(), "Delay")?;
    set(&proxy, "SET mysql-connection_delay_multiplex_ms=200")?;
    asked(&mut client, "SELECT 1")?;
    soon("", || settled(&proxy, &mut client))?;
    asked(&mut client, "SELECT 1").map(drop)
}

fn warnings(driver: Driver) -> Outcome {
    let (_server, proxy) = one(driver)?;
    let mut client = log_in(&proxy)?;
    let warn = "SELECT CAST('x' AS SIGNED)";
    set(&proxy, "SET mysql-handle_warnings_delay_ms=0")?;
    asked(&mut client, warn)?;
    same(settled(&proxy, &mut client)?.as_str(), "Diagnostics")?;
    expect(asked(&mut client, "SHOW WARNINGS")?.len() == 1, || {
        "the warning is gone".to_owned()
    })?;
    asked(&mut client, "SELECT 1")?;
    let groups = "INSERT INTO mysql_hostgroup_attributes (hostgroup_id, hostgroup_settings) VALUES";
    proxy.admin(&format!(
        "{groups} (0, '{{\"handle_warnings\": 0}}'); LOAD MYSQL SERVERS TO RUNTIME"
    ))?;
    asked(&mut client, warn)?;
    same(settled(&proxy, &mut client)?.as_str(), "")?;
    proxy.admin("UPDATE mysql_hostgroup_attributes SET hostgroup_settings = ''; LOAD MYSQL SERVERS TO RUNTIME")?;
    asked(&mut client, warn)?;
    same(settled(&proxy, &mut client)?.as_str(), "Diagnostics")?;
    set(&proxy, "SET mysql-handle_warnings=0")?;
    asked(&mut client, warn)?;
    same(settled(&proxy, &mut client)?.as_str(), "")
}

fn throttles(driver: Driver) -> Outcome {
    let (_server, proxy) = one(driver)?;
    let all_begin = || -> Result<Vec<Result<Raw, String>>, String> {
        let mut clients = Vec::new();
        for _ in 0..6 {
            clients.push(log_in(&proxy)?);
        }
        let begun = clients
            .into_iter()
            .map(|mut client| thread::spawn(move || asked(&mut client, "BEGIN").map(|_| client)));
        Ok(begun
            .collect::<Vec<_>>()
            .into_iter()
            .map(|one| {
                one.join()
                    .map_err(|_| "panicked".to_owned())
                    .and_then(|said| said)
            })
            .collect())
    };
    let limited = [
        "SET mysql-throttle_connections_per_sec_to_hostgroup=1",
        "SET mysql-connect_timeout_server_max=150",
    ];
    set(&proxy, &limited.join("; "))?;
    let begun = all_begin()?;
    let (good, bad): (Vec<_>, Vec<_>) = begun.iter().partition(|one| one.is_ok());
    expect(!good.is_empty() && !bad.is_empty(), || {
        format!("{} began, {} did not", good.len(), bad.len())
    })?;
    let is_late =
        |one: &&Result<Raw, String>| one.as_ref().is_err_and(|words| words.contains("9001"));
    expect(bad.iter().all(is_late), || {
        format!(
            "{:?}",
            bad.iter()
                .filter_map(|one| one.as_ref().err())
                .collect::<Vec<_>>()
        )
    })?;
    // Who waits long enough has his turn.
    set(
        &proxy,
        "SET mysql-connect_timeout_server_max=60000; SET mysql-throttle_connections_per_sec_to_hostgroup=2",
    )?;
    let patient = all_begin()?;
    expect(patient.iter().all(Result::is_ok), || {
        "a patient client was sent away".to_owned()
    })?;
    // The hostgroup's own limit is the lower one.
    drop((begun, patient));
    set(
        &proxy,
        "SET mysql-connect_timeout_server_max=150; SET mysql-throttle_connections_per_sec_to_hostgroup=1000000",
    )?;
    proxy.admin("INSERT INTO mysql_hostgroup_attributes (hostgroup_id, throttle_connections_per_sec, free_connections_pct) VALUES (0, 1, 0); LOAD MYSQL SERVERS TO RUNTIME")?;
    // Idle connections serve the first of them; those who come later need new ones.
    let mut stay = Vec::new();
    let throttled = (0..40).any(|_| {
        stay.push(all_begin());
        stay.last()
            .is_some_and(|all| all.as_ref().is_ok_and(|all| all.iter().any(Result::is_err)))
    });
    expect(throttled, || {
        "the hostgroup's limit does nothing".to_owned()
    })
}

fn unknown_charset(driver: Driver) -> Outcome {
    let (_server, proxy) = one(driver)?;
    let log_in = || Raw::log_in_with(proxy.port, b"", 17).map_err(|error| error.to_string());
    let (mut client, answer) = log_in()?;
    expect(answer.first() == Some(&0), || format!("{answer:?}"))?;
    same(
        asked(&mut client, "SELECT @@collation_connection")?
            .concat()
            .join("")
            .as_str(),
        "utf8mb3_general_ci",
    )?;
    expect(proxy.says("unknown character set 17"), || {
        "the log says nothing".to_owned()
    })?;
    set(&proxy, "SET mysql-handle_unknown_charset=0")?;
    let (_client, answer) = log_in()?;
    let words = String::from_utf8_lossy(&answer).into_owned();
    expect(
        answer.first() == Some(&0xff) && words.contains("Unknown character set"),
        || words,
    )
}

fn put_right(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (server, proxy) = one_of(driver, vendor)?;
        server.root("CREATE DATABASE one; CREATE DATABASE two; CREATE TABLE one.t (a INT); CREATE TABLE two.t (a INT);")?;
        narrow(&proxy)?;
        let isolation = if vendor == Vendor::MariaDb {
            "@@tx_isolation"
        } else {
            "@@transaction_isolation"
        };
        let what = format!(
            "SELECT DATABASE(), {isolation}, @@collation_connection, @@character_set_results, @@sql_mode, @@autocommit, @x"
        );
        // MySQL 8's default and one that all servers know; MariaDB takes the first for its own
        // default.
        for collation in [255, 45] {
            let log_in = |port| {
                Raw::log_in_with(port, b"", collation)
                    .map(|(raw, _)| raw)
                    .map_err(|error| error.to_string())
            };
            let mut direct = log_in(server.port)?;
            asked(&mut direct, "USE two")?;
            let wanted = asked(&mut direct, &what)?;
            for left in [
                &["SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE"][..],
                &["SET @x = 5, @y = 'y'"],
                &[
                    "SET sql_mode = 'ANSI'",
                    "SET SESSION TRANSACTION READ ONLY",
                    "SET @x = 6",
                ],
                &["SET NAMES latin1", "SET autocommit = 0", "SELECT 1"],
            ] {
                // Where the others are is settled before the first does what it leaves behind.
                let mut first = log_in(proxy.port)?;
                let mut second = beside_with(&proxy, &first, collation)?;
                asked(&mut second, "USE two")?;
                let mut third = beside_with(&proxy, &first, collation)?;
                asked(&mut third, "USE two")?;
                asked(&mut first, "USE one")?;
                for sql in left {
                    asked(&mut first, sql)?;
                }
                asked(&mut first, "SELECT @x")?;
                if left.iter().any(|sql| sql.contains("autocommit")) {
                    asked(&mut first, "SET autocommit = 1")?;
                }
                let found = asked(&mut second, &what)?;
                expect(found == wanted, || {
                    format!(
                        "{vendor}, {collation}, after {left:?}: {found:?} instead of {wanted:?}"
                    )
                })?;
                asked(&mut first, "SELECT 1")?;
                asked(&mut second, "INSERT INTO t VALUES (1)")?;
                let remembered = asked(&mut third, "SELECT LAST_INSERT_ID(), DATABASE()")?;
                expect(remembered.concat()[0] == "0", || {
                    format!("{vendor}, {collation}: {remembered:?}")
                })?;
            }
        }
        let rows =
            server.root("SELECT (SELECT COUNT(*) FROM one.t), (SELECT COUNT(*) FROM two.t)")?;
        expect(rows.trim_end().ends_with("0\t8"), || {
            format!("{vendor}: {rows}")
        })?;
    }
    Ok(())
}

/// Connections that wait in the pool began otherwise, and so did the one that a transaction keeps.
fn other_init_connect(driver: Driver) -> Outcome {
    let (_server, proxy) = one(driver)?;
    set(&proxy, "SET mysql-init_connect='SET lock_wait_timeout=11'")?;
    let (mut first, mut second) = (log_in(&proxy)?, log_in(&proxy)?);
    for client in [&mut first, &mut second] {
        asked(client, "BEGIN")?;
        asked(client, "SELECT 1 FROM conf.scratch")?;
    }
    asked(&mut second, "COMMIT")?;
    for wanted in ["12", "86400"] {
        let text = if wanted == "12" {
            "SET lock_wait_timeout=12"
        } else {
            ""
        };
        set(&proxy, &format!("SET mysql-init_connect='{text}'"))?;
        for _ in 0..10 {
            let seen = asked(&mut second, "SELECT @@lock_wait_timeout")?;
            expect(seen == [[wanted]], || {
                format!("{seen:?} where {wanted} is wanted")
            })?;
        }
        if wanted == "12" {
            let kept = asked(&mut first, "SELECT @@lock_wait_timeout")?;
            expect(kept == [["11"]], || format!("in a transaction {kept:?}"))?;
            asked(&mut first, "COMMIT")?;
        }
    }
    Ok(())
}

fn init_connect(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (_server, proxy) = one_of(driver, vendor)?;
        narrow(&proxy)?;
        set(
            &proxy,
            "SET mysql-init_connect=\"SET time_zone='+03:00', sql_mode='ANSI'\"",
        )?;
        let what = "SELECT @@time_zone, @@sql_mode LIKE '%ANSI%'";
        for left in [
            "SELECT 1",
            "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE",
            "SET sql_mode=''",
            "SET @x=1",
            "SET time_zone=DEFAULT",
        ] {
            let mut first = log_in(&proxy)?;
            asked(&mut first, left)?;
            asked(&mut first, "SELECT @x")?;
            let mut second = beside(&proxy, &first)?;
            let found = asked(&mut second, what)?;
            expect(found == [["+03:00", "1"]], || {
                format!("{vendor}, after {left}: {found:?}")
            })?;
            asked(&mut second, "SHOW WARNINGS")?;
            let found = asked(&mut second, what)?;
            expect(found == [["+03:00", "1"]], || {
                format!("{vendor}, after SHOW WARNINGS: {found:?}")
            })?;
        }
    }
    Ok(())
}

fn forgets(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (_server, proxy) = one_of(driver, vendor)?;
        narrow(&proxy)?;
        let mut client = log_in(&proxy)?;
        asked(&mut client, INSERT)?;
        let id = asked(&mut client, "SELECT LAST_INSERT_ID()")?;
        expect(id.concat() != ["0"], || format!("{vendor}: {id:?}"))?;
        asked(&mut client, INSERT)?;
        // COM_RESET_CONNECTION
        client
            .command(&[0x1f])
            .and_then(|()| client.rows())
            .map_err(|error| error.to_string())?;
        let id = asked(&mut client, "SELECT LAST_INSERT_ID()")?;
        expect(id.concat() == ["0"], || {
            format!("{vendor}: {id:?} after a reset")
        })?;
    }
    Ok(())
}

fn on_the_side(driver: Driver) -> Outcome {
    let (server, proxy) = one(driver)?;
    let mut first = log_in(&proxy)?;
    asked(&mut first, "SET sql_mode = 'ANSI'")?;
    asked(&mut first, "SELECT 1")?;
    // Whatever is to be set on this connection now has no answer.
    server.signal("STOP");
    let mut second = beside(&proxy, &first)?;
    let id = second.id;
    let waits = thread::spawn(move || second.ask("SELECT 2"));
    let listed = || {
        proxy.admin(&format!("SELECT COUNT(*) FROM stats_mysql_processlist WHERE SessionID = {id} AND command = 'Query'"))
    };
    soon("1", || Ok(listed()?.trim().to_owned()))?;
    proxy.admin(&format!("KILL CONNECTION {id}"))?;
    let said = waits.join().map_err(|_| "the client panicked".to_owned())?;
    server.signal("CONT");
    expect(
        said.as_ref()
            .is_err_and(|error| error.to_string().starts_with("1317")),
        || format!("killed: {said:?}"),
    )?;
    // A timeout of the statement counts, too.
    set(&proxy, "SET mysql-default_query_timeout=1000")?;
    let mut third = beside(&proxy, &first)?;
    asked(&mut first, "SELECT 1")?;
    server.signal("STOP");
    let said = third.ask("SELECT 3");
    server.signal("CONT");
    expect(
        said.as_ref()
            .is_err_and(|error| error.to_string().starts_with("1907")),
        || format!("{said:?}"),
    )?;
    // What has to be given up there before a PREPARE, on a connection that tells what changes.
    set(
        &proxy,
        "SET mysql-auto_increment_delay_multiplex_timeout_ms=0; SET mysql-connect_timeout_server_max=2500",
    )?;
    let mut fourth = log_in(&proxy)?;
    for sql in [
        INSERT,
        "PREPARE s FROM 'SELECT 4'",
        "PREPARE s FROM 'SELECT 4'",
    ] {
        asked(&mut fourth, sql)?;
    }
    server.signal("STOP");
    thread::sleep(Duration::from_millis(100));
    let said = fourth.ask("PREPARE s FROM 'SELECT 4'");
    // Nor does a connection have for ever that the server takes and never greets.
    let in_vain = proxy.query("SELECT 5");
    server.signal("CONT");
    expect(
        said.as_ref()
            .is_err_and(|error| error.to_string().starts_with("1907")),
        || format!("PREPARE: {said:?}"),
    )?;
    expect(
        in_vain.as_ref().is_err_and(|error| error.contains("9001")),
        || format!("a new connection: {in_vain:?}"),
    )
}

/// A name with a dot, and what stands behind the body of a program: none of it is left to the next
/// session on the connection.
fn hidden_state(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (server, proxy) = one_of(driver, vendor)?;
        server.root("CREATE TABLE conf.target (x INT)")?;
        narrow(&proxy)?;
        let mut first = log_in(&proxy)?;
        asked(&mut first, "USE conf")?;
        asked(&mut first, "SELECT @app.id := 42")?;
        let mut second = beside(&proxy, &first)?;
        let seen = asked(&mut second, "SELECT @app.id")?;
        same(&seen.concat().concat(), "NULL")?;
        // COM_SET_OPTION: several statements in one text.
        first
            .command(&[0x1b, 0, 0])
            .and_then(|()| first.packet())
            .map_err(|error| error.to_string())?;
        let trigger = |name: &str, when: &str| {
            format!(
                "CREATE TRIGGER {name} BEFORE {when} ON target FOR EACH ROW BEGIN SET NEW.x = 1; END"
            )
        };
        let migration = format!(
            "{}; SET foreign_key_checks=0; {}",
            trigger("a", "INSERT"),
            trigger("b", "UPDATE")
        );
        for text in [
            &*migration,
            "CREATE PROCEDURE p() SELECT 1 AS begin; SET foreign_key_checks=0; SELECT 1 AS END",
        ] {
            let said = first
                .query(text)
                .and_then(|()| first.packet())
                .and_then(|_| first.packet())
                .and_then(|_| first.rows());
            said.map_err(|error| format!("{text}: {error}"))?;
            let holds = settled(&proxy, &mut first)?;
            expect(holds.contains("UnknownState"), || {
                format!("{vendor}: held by {holds}: {text}")
            })?;
            same(
                &asked(&mut first, "SELECT @@foreign_key_checks")?
                    .concat()
                    .concat(),
                "0",
            )?;
            first
                .command(&[0x1f])
                .and_then(|()| first.packet())
                .map_err(|error| error.to_string())?;
            same(
                &asked(&mut second, "SELECT @@foreign_key_checks")?
                    .concat()
                    .concat(),
                "1",
            )?;
        }
    }
    Ok(())
}

/// Without a transaction a COMMIT does nothing, unless it is to begin one.
fn completion_type(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (_server, proxy) = one_of(driver, vendor)?;
        let mut client = log_in(&proxy)?;
        for sql in [
            "CREATE TABLE conf.chained (a INT)",
            "SET completion_type=1",
            "COMMIT",
            "INSERT INTO conf.chained VALUES (1)",
            "ROLLBACK",
            "SET completion_type=0",
            "COMMIT",
        ] {
            asked(&mut client, sql)?;
        }
        same(
            &asked(&mut client, "SELECT COUNT(*) FROM conf.chained")?
                .concat()
                .concat(),
            "0",
        )?;
    }
    Ok(())
}

/// Rather the end of the session than a lock that is gone without a word.
fn reset_of_held(driver: Driver) -> Outcome {
    let (server, proxy) = one(driver)?;
    let to = |hostgroup: u32| format!("/* hostgroup={hostgroup} */ ");
    proxy.admin(&format!(
        "INSERT INTO mysql_servers (hostgroup_id, hostname, port) VALUES (1, '127.0.0.1', {}); LOAD MYSQL SERVERS TO RUNTIME",
        server.port
    ))?;
    proxy.admin("INSERT INTO mysql_query_rules (rule_id, active, match_digest, destination_hostgroup, apply) VALUES (1, 1, '^SELECT', 1, 1); LOAD MYSQL QUERY RULES TO RUNTIME")?;
    let mut client = log_in(&proxy)?;
    asked(
        &mut client,
        "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE",
    )?;
    asked(&mut client, &format!("{}SELECT GET_LOCK('mine', 0)", to(1)))?;
    asked(&mut client, "SET SESSION tx_isolation = DEFAULT")?;
    let free = "SELECT IS_FREE_LOCK('mine')";
    let said = client.ask(&format!("{}SELECT 1", to(1)));
    let is_free = server.root(free)?.trim_end().ends_with('1');
    expect(said.is_err() || !is_free, || {
        format!("{said:?}, and the lock is gone")
    })?;
    Ok(())
}

/// Its answer is paid for slowly, and it leaves while it would have to wait.
fn left_transaction(driver: Driver) -> Outcome {
    let (server, proxy) = one(driver)?;
    let mut first = log_in(&proxy)?;
    let mut second = beside(&proxy, &first)?;
    set(
        &proxy,
        "SET mysql-kill_backend_connection_when_disconnect=0; SET mysql-throttle_max_bytes_per_second_to_client=10",
    )?;
    asked(&mut first, "BEGIN")?;
    drop(first);
    set(
        &proxy,
        "SET mysql-throttle_max_bytes_per_second_to_client=0",
    )?;
    soon("0", || {
        proxy
            .admin("SELECT SUM(ConnUsed) FROM stats_mysql_connection_pool")
            .map(|said| said.trim().to_owned())
    })?;
    asked(&mut second, INSERT)?;
    same(
        server
            .root("SELECT COUNT(*) FROM conf.counted WHERE words = 'held'")?
            .lines()
            .last()
            .unwrap_or_default(),
        "1",
    )
}

fn routines(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (server, proxy) = one_of(driver, vendor)?;
        server.root("SET GLOBAL log_bin_trust_function_creators = 1; CREATE FUNCTION conf.grab() RETURNS INT RETURN GET_LOCK('job', 0); CREATE FUNCTION conf.vouched() RETURNS INT RETURN 1; CREATE FUNCTION conf.single() RETURNS INT RETURN 1;")?;
        let mut first = log_in(&proxy)?;
        let mut second = beside(&proxy, &first)?;
        let got = asked(&mut first, "SELECT conf.grab()")?.concat();
        expect(got == ["1"], || format!("{vendor}: {got:?}"))?;
        // MariaDB also tells that something changed.
        let holds = settled(&proxy, &mut first)?;
        expect(holds.starts_with("Routine"), || {
            format!("{vendor}: {holds}")
        })?;
        let got = asked(&mut second, "SELECT conf.grab()")?.concat();
        expect(got == ["0"], || {
            format!("{vendor}: a lock was had by two: {got:?}")
        })?;
        // Functions of the server, and those that somebody vouches for, hold nothing. (`one` would be
        // noted by MariaDB, now and then, as a name of its own.)
        proxy.admin("INSERT INTO mysql_hostgroup_attributes (hostgroup_id, hostgroup_settings) VALUES (0, '{\"read_hostgroup\": 1, \"read_only_routines\": [\"conf.vouched\", \"conf.single\"]}'); LOAD MYSQL SERVERS TO RUNTIME")?;
        let mut third = log_in(&proxy)?;
        asked(&mut third, "BEGIN")?;
        asked(
            &mut third,
            "SELECT conf.vouched(), CONCAT('a', UPPER('b')), NOW()",
        )?;
        asked(&mut third, "COMMIT")?;
        same(settled(&proxy, &mut third)?.as_str(), "")?;
        // A prepared statement calls those of the schema that it was prepared in.
        server.root("CREATE FUNCTION conf2.single() RETURNS INT RETURN GET_LOCK('another', 0);")?;
        for sql in [
            "USE conf2",
            "PREPARE s FROM 'SELECT single()'",
            "USE conf",
            "EXECUTE s",
        ] {
            asked(&mut third, sql)?;
        }
        let holds = settled(&proxy, &mut third)?;
        expect(holds.starts_with("Routine"), || {
            format!("{vendor}, prepared elsewhere: {holds:?}")
        })?;
    }
    Ok(())
}

/// Triggers and procedures that change a session, with errors in the middle of it.
const PROGRAMS: &str = "CREATE TABLE conf.fires (a INT PRIMARY KEY); CREATE TABLE conf.sets (a INT);
    CREATE TRIGGER conf.fire BEFORE INSERT ON conf.fires FOR EACH ROW SET SESSION time_zone = '+05:00', max_sort_length = 500;
    CREATE TRIGGER conf.set BEFORE INSERT ON conf.sets FOR EACH ROW SET @of_trigger = 7;
    CREATE PROCEDURE conf.moves() SET SESSION time_zone = '+06:00', SESSION group_concat_max_len = 2000;
    CREATE PROCEDURE conf.hides() SELECT 5 INTO @hidden;";

fn programs(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (server, proxy) = one_of(driver, vendor)?;
        server.root(PROGRAMS)?;
        // A reader and a writer: what is changed on one connection is wanted on another.
        proxy.admin(&format!(
            "INSERT INTO mysql_servers (hostgroup_id, hostname, port) VALUES (1, '127.0.0.1', {}); LOAD MYSQL SERVERS TO RUNTIME",
            server.port
        ))?;
        set(
            &proxy,
            "SET mysql-auto_increment_delay_multiplex=0; SET mysql-set_query_lock_on_hostgroup=0",
        )?;
        let what =
            "SELECT @@time_zone, @@max_sort_length, @@group_concat_max_len, @of_trigger, @hidden";
        let elsewhere = format!("/* hostgroup=1 */ {what}");
        for (statements, holds) in [
            (&["INSERT INTO conf.fires VALUES (1)"][..], "Unread Untold"),
            // It fails after the trigger has run; an error does not tell, and MariaDB never tells
            // all of it.
            (
                &["INSERT INTO conf.fires VALUES (1)", "SELECT 1"],
                if vendor == Vendor::MariaDb {
                    ""
                } else {
                    "InsertId Unread Untold"
                },
            ),
            (&["INSERT INTO conf.sets VALUES (1)"], "Untold"),
            (&["CALL conf.moves()"], "InsertId Procedure Unread Untold"),
            (&["CALL conf.hides()"], "InsertId Procedure"),
        ] {
            let (mut direct, mut client) = (log_in_at(server.port)?, log_in(&proxy)?);
            asked(&mut direct, "USE conf")?;
            asked(&mut client, "USE conf")?;
            for sql in statements {
                let _duplicate = (direct.ask(sql), client.ask(sql));
                if statements.len() == 1 {
                    server.root("DELETE FROM conf.fires WHERE a = 1")?;
                    let _the_one_that_the_direct_client_wrote = client.ask(sql);
                }
            }
            // Values are asked for when the client has its answer.
            // On a slow machine it was silent between its statements, and has been asked then.
            let has_been_silent = statements.len() > 1 && settled(&proxy, &mut client)? == "Untold";
            soon(if has_been_silent { "Untold" } else { holds }, || {
                settled(&proxy, &mut client)
            })
            .map_err(|words| format!("{vendor}, {statements:?}: {words}"))?;
            let wanted = asked(&mut direct, what)?;
            let found = asked(
                &mut client,
                if holds.contains("Procedure") || holds.contains("Untold") {
                    what
                } else {
                    &elsewhere
                },
            )?;
            expect(found == wanted, || {
                format!("{vendor}, after {statements:?}: {found:?} instead of {wanted:?}")
            })?;
            // Whoever has that connection next has nothing of it.
            let mut next = beside(&proxy, &client)?;
            drop(client);
            let fresh = asked(&mut log_in_at(server.port)?, what)?;
            for sql in [what, &elsewhere, what] {
                let found = asked(&mut next, sql)?;
                expect(found == fresh, || {
                    format!(
                        "{vendor}, somebody else after {statements:?}: {found:?} instead of {fresh:?}"
                    )
                })?;
            }
        }
    }
    Ok(())
}

/// A trigger sets a variable of the user, and its statement fails: the server tells of it with the
/// answer to the next.
const FAILS: &str = "CREATE TABLE conf.once (a INT PRIMARY KEY); INSERT INTO conf.once VALUES (1);
    CREATE TRIGGER conf.leaves BEFORE INSERT ON conf.once FOR EACH ROW SET @of_trigger = 7;";

fn told_late(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (server, proxy) = one_of(driver, vendor)?;
        server.root(FAILS)?;
        set(
            &proxy,
            "SET mysql-auto_increment_delay_multiplex=0; SET mysql-set_query_lock_on_hostgroup=0",
        )?;
        let fails = "INSERT INTO conf.once VALUES (1)";
        for statements in [
            &[fails, "SELECT 1"][..],
            // It fails, too, and MySQL cries for nothing after that.
            &[
                fails,
                "PREPARE s FROM 'SELECT * FROM conf.missing'",
                "SELECT 1",
            ],
            &[
                "PREPARE s FROM 'SELECT * FROM conf.missing'",
                fails,
                "SELECT 1",
            ],
            // What is brought there before it has told.
            &[fails, "SET sql_mode = 'ANSI'", "SELECT 1"],
            &["PREPARE s FROM 'SELECT 2'", fails, "EXECUTE s"],
            &[fails, "USE conf2", "SELECT 1"],
        ] {
            let mut client = log_in(&proxy)?;
            let mut other = beside(&proxy, &client)?;
            for sql in statements {
                let _some_fail = client.ask(sql);
            }
            thread::sleep(Duration::from_millis(50));
            let of_trigger = asked(&mut other, "SELECT @of_trigger")?.concat();
            expect(of_trigger == ["NULL"], || {
                format!("{vendor}, after {statements:?}: somebody else has {of_trigger:?}")
            })?;
        }
    }
    Ok(())
}

fn told_later(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (server, proxy) = one_of(driver, vendor)?;
        server.root("CREATE TABLE conf.twice (a INT PRIMARY KEY); INSERT INTO conf.twice VALUES (1), (2);
            CREATE TRIGGER conf.zone BEFORE UPDATE ON conf.twice FOR EACH ROW SET SESSION time_zone = '+05:00'; CREATE PROCEDURE conf.nothing() DO 0;")?;
        set(&proxy, "SET mysql-handle_warnings_delay_ms=0")?;
        let fails = "UPDATE conf.twice SET a = 1 WHERE a = 2";
        for statements in [
            &[
                fails,
                "SELECT CONNECTION_ID()",
                "SELECT @@SESSION.time_zone",
            ][..],
            // What is prepared there by a name of the session is told it, before the CALL.
            &[
                "PREPARE s FROM 'SELECT 1'",
                fails,
                "CALL conf.nothing()",
                "SELECT @@SESSION.time_zone",
            ],
        ] {
            let (mut direct, mut client) = (log_in_at(server.port)?, log_in(&proxy)?);
            for sql in statements {
                let (wanted, found) = (direct.ask(sql).ok(), client.ask(sql).ok());
                let own = sql.contains("CONNECTION_ID");
                expect(own || found == wanted, || {
                    format!("{vendor}, {statements:?}: {sql}: {found:?} instead of {wanted:?}")
                })?;
            }
            // Wherever it goes then.
            let _another = beside(&proxy, &client)?.ask("BEGIN");
            let (wanted, found) = (
                direct.ask("SELECT @@time_zone").ok(),
                client.ask("SELECT @@time_zone").ok(),
            );
            expect(found == wanted, || {
                format!("{vendor}, after {statements:?}: {found:?} instead of {wanted:?}")
            })?;
        }
    }
    Ok(())
}

fn recalled(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (server, proxy) = one_of(driver, vendor)?;
        narrow(&proxy)?;
        let (mut direct, mut client) = (log_in_at(server.port)?, log_in(&proxy)?);
        let mut other = beside(&proxy, &client)?;
        for sql in [
            "SELECT id FROM conf.types",
            "SELECT FOUND_ROWS()",
            "SELECT FOUND_ROWS() AS `again`",
            "SELECT id FROM conf.types WHERE id < 0",
            "select found_rows() n",
        ] {
            // Somebody else has the same connection in between, with numbers of his own.
            asked(&mut other, "SELECT * FROM conf.numbers LIMIT 7")?;
            let (wanted, found) = (asked(&mut direct, sql)?, asked(&mut client, sql)?);
            expect(found == wanted, || {
                format!("{vendor}, {sql}: {found:?} instead of {wanted:?}")
            })?;
        }
        let own = client.id.to_string();
        for sql in [
            "SELECT CONNECTION_ID()",
            "BEGIN",
            "SELECT CONNECTION_ID() AS me",
            "COMMIT",
        ] {
            let said = asked(&mut client, sql)?.concat();
            expect(said.is_empty() || said == [own.as_str()], || {
                format!("{vendor}: {said:?} instead of {own}")
            })?;
        }
        // The answer of ours looks like theirs.
        use conformance::raw::Raw as Bytes;
        let warm_up = conformance::cache::root().join("conformance/scenarios/warm-up.txt");
        let _either_way = Client::MariaDbCli.run(app(server.port), &warm_up);
        {
            let caps = wire::caps::DEPRECATE_EOF;
            let (mut direct, mut client) = (
                Bytes::log_in(server.port, caps)?,
                Bytes::log_in(proxy.port, caps)?,
            );
            for sql in [
                "SELECT 1",
                "SELECT FOUND_ROWS()",
                "SELECT FOUND_ROWS() AS n",
            ] {
                let (wanted, found) = (direct.query(sql)?, client.query(sql)?);
                expect(found == wanted, || {
                    format!("{vendor}, {sql}:\n{found}\ninstead of\n{wanted}")
                })?;
            }
        }
    }
    Ok(())
}

fn latin1_schema(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (server, proxy) = one_of(driver, vendor)?;
        // The second is what the bytes of the first are when they are taken for latin1.
        server.root("CREATE DATABASE `caf\u{e9}`; CREATE DATABASE `caf\u{c3}\u{a9}`")?;
        narrow(&proxy)?;
        for (name, wanted) in [
            (&b"caf\xe9"[..], "636166C3A9"),
            (b"caf\xc3\xa9", "636166C383C2A9"),
        ] {
            let mut client = Raw::log_in_with(proxy.port, b"", 8)
                .map(|(raw, _)| raw)
                .map_err(|error| error.to_string())?;
            let mut other = beside(&proxy, &client)?;
            let init_db = [b"\x02", name].concat();
            client
                .command(&init_db)
                .and_then(|()| client.packet())
                .map_err(|error| error.to_string())?;
            for _ in 0..3 {
                // They have one connection between them.
                asked(&mut other, "USE conf")?;
                asked(&mut other, "SELECT DATABASE()")?;
                let found = asked(
                    &mut client,
                    "SELECT HEX(CONVERT(DATABASE() USING utf8mb4)), @@character_set_client",
                )?
                .concat();
                expect(found == [wanted, "latin1"], || {
                    format!("{vendor}: {found:?} instead of {wanted}")
                })?;
                same(settled(&proxy, &mut client)?.as_str(), "")?;
            }
        }
    }
    Ok(())
}

fn log_in_at(port: u16) -> Result<Raw, String> {
    Raw::log_in(port).map_err(|error| error.to_string())
}

/// All that the server says, session changes included, as a client with CLIENT_SESSION_TRACK sees
/// it.
fn tracked(driver: Driver) -> Outcome {
    use conformance::raw::Raw as Bytes;
    for vendor in vendors() {
        let (server, proxy) = one_of(driver, vendor)?;
        server.root(PROGRAMS)?;
        // MySQL shall know the account's password before a login without TLS.
        let warm_up = conformance::cache::root().join("conformance/scenarios/warm-up.txt");
        let _either_way = Client::MariaDbCli.run(app(server.port), &warm_up);
        let caps = wire::caps::SESSION_TRACK | wire::caps::DEPRECATE_EOF;
        for statements in [
            &[
                "INSERT INTO conf.sets VALUES (1)",
                "SET @x = 1",
                "SET time_zone = '+01:00'",
                "SET sql_mode = ''",
                "USE conf",
            ][..],
            &[
                "INSERT INTO conf.sets VALUES (1)",
                "SELECT @@session_track_system_variables, @@session_track_state_change",
                "SHOW VARIABLES LIKE 'session_track%'",
            ],
            &[
                "INSERT INTO conf.sets VALUES (1)",
                "SET session_track_state_change = 1",
                "SET @x = 1",
                "INSERT INTO conf.sets VALUES (1)",
                "SET sql_mode = ''",
            ],
            &[
                "SET session_track_system_variables = 'sql_mode'",
                "SET sql_mode = '', time_zone = '+02:00'",
                "CALL conf.moves()",
                "SET session_track_system_variables = DEFAULT",
                "CALL conf.moves()",
            ],
            &[
                "CALL conf.moves()",
                "BEGIN",
                "INSERT INTO conf.sets VALUES (1)",
                "COMMIT",
                "SELECT @@time_zone",
            ],
            &[
                "SET session_track_schema = 1, session_track_system_variables = 'autocommit,time_zone'",
                "INSERT INTO conf.sets VALUES (1)",
                "USE conf",
                "CALL conf.moves()",
                "SET sql_mode = '', time_zone = '+02:00'",
                "SELECT @@session_track_system_variables, @@session_track_schema, @@session_track_state_change",
                "INSERT INTO conf.sets VALUES (1)",
                "SET autocommit = 0",
                "SET autocommit = 1",
            ],
            &[
                "SET session_track_schema = 0, session_track_system_variables = ''",
                "INSERT INTO conf.sets VALUES (1)",
                "USE conf",
                "SET time_zone = '+02:00'",
                "SET session_track_schema = DEFAULT",
                "INSERT INTO conf.sets VALUES (1)",
                "USE conf",
            ],
            // With `*` MySQL tells a number of each statement, ours among them.
            &[
                "SET session_track_system_variables = 'max_sort_length'",
                "SET max_sort_length = 1025",
                "SET time_zone = '+02:00'",
            ],
        ] {
            let (mut direct, mut client) = (
                Bytes::log_in(server.port, caps)?,
                Bytes::log_in(proxy.port, caps)?,
            );
            for sql in statements {
                let (wanted, found) = (direct.query(sql)?, client.query(sql)?);
                expect(found == wanted, || {
                    format!("{vendor}, {sql} of {statements:?}:\n{found}\ninstead of\n{wanted}")
                })?;
            }
        }
    }
    Ok(())
}

/// Statement that runs until somebody ends it.
const LONG: &str = "SELECT 'ENDLESS', COUNT(*) FROM conf.numbers a, conf.numbers b, conf.numbers c WHERE a.id * b.id % 7 + c.id < c.id - c.id - 1";

/// The server's number of the connection that runs it, if it is another than this.
fn runner(server: &Server, not: &str) -> Result<String, String> {
    let until = Instant::now() + HANGS;
    loop {
        let said = server.root("SHOW FULL PROCESSLIST")?;
        let found = said
            .lines()
            .find(|line| line.contains("ENDLESS"))
            .and_then(|line| line.split('\t').next());
        if let Some(found) = found.filter(|found| *found != not) {
            return Ok(found.to_owned());
        }
        expect(Instant::now() < until, || {
            format!("nobody runs it:\n{said}")
        })?;
        thread::sleep(Duration::from_millis(30));
    }
}

fn reconnects(driver: Driver) -> Outcome {
    let (server, proxy) = one(driver)?;
    let begin = || -> Result<_, String> {
        let mut client = log_in(&proxy)?;
        Ok(thread::spawn(move || client.ask(LONG)))
    };
    let end = |id: &str| server.root(&format!("KILL {id}")).map(drop);
    let refused = |said: thread::Result<std::io::Result<Vec<Vec<String>>>>| {
        let said = said.map_err(|_| "the client panicked".to_owned())?;
        expect(
            said.as_ref()
                .is_err_and(|error| error.to_string().starts_with("2013")),
            || format!("{said:?}"),
        )
    };
    // Once more, and no more than mysql-query_retries_on_failure times.
    let client = begin()?;
    let first = runner(&server, "")?;
    end(&first)?;
    let second = runner(&server, &first)?;
    end(&second)?;
    refused(client.join())?;
    set(&proxy, "SET mysql-default_reconnect='false'")?;
    let client = begin()?;
    end(&runner(&server, &second)?)?;
    refused(client.join())?;
    // A rule knows better.
    proxy.admin("INSERT INTO mysql_query_rules (rule_id, active, match_digest, reconnect, apply) VALUES (1, 1, '.', 1, 1); LOAD MYSQL QUERY RULES TO RUNTIME")?;
    let client = begin()?;
    let first = runner(&server, "")?;
    end(&first)?;
    end(&runner(&server, &first)?)?;
    refused(client.join())
}

/// The column `multiplex` of a rule.
fn by_rule(driver: Driver) -> Outcome {
    let (_server, proxy) = one(driver)?;
    proxy.admin(
        "INSERT INTO mysql_query_rules (rule_id, active, match_digest, multiplex, apply) \
         VALUES (1, 1, 'kept', 0, 1), (2, 1, 'shared', 1, 1), (3, 1, 'either', 2, 1); LOAD MYSQL QUERY RULES TO RUNTIME",
    )?;
    let mut client = log_in(&proxy)?;
    for (sql, holds) in [
        ("SELECT 1 AS other", ""),
        ("SELECT 1 AS kept", "NotAllowed"),
        ("SELECT 1 AS other", "NotAllowed"),
        ("SELECT 1 AS either", "NotAllowed"),
        ("SELECT 1 AS shared", ""),
        // User variables travel anyway.
        ("SELECT @a := 1 AS either", ""),
        ("SELECT @a AS either", ""),
        ("SELECT @a := @a + 1 AS other", ""),
        // It takes no other hold away.
        ("SELECT GET_LOCK('by_rule', 1) AS shared", "UserLock"),
        ("SELECT 1 AS kept", "NotAllowed UserLock"),
        ("SELECT 1 AS shared", "UserLock"),
        ("SELECT RELEASE_LOCK('by_rule') AS shared", ""),
    ] {
        asked(&mut client, sql)?;
        let found = settled(&proxy, &mut client)?;
        expect(found == holds, || {
            format!("{sql}: '{found}' instead of '{holds}'")
        })?;
    }
    // An operator who forbids sharing is not overruled.
    set(&proxy, "SET mysql-multiplexing='false'")?;
    asked(&mut client, "SELECT 1 AS shared")?;
    same(&settled(&proxy, &mut client)?, "NotAllowed")
}
