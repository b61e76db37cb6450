//! How long a session keeps a connection for itself, how many are opened, and what else of the pool
//! an operator may set.
#![forbid(unsafe_code)]

mod left;

use conformance::beside::{asked, beside, set, settled};
use conformance::by_hand::{self, Raw};
use conformance::clients::{Client, app};
use conformance::proxy::{Driver, Proxy};
use conformance::servers::{Server, Vendor, vendors};
use conformance::trials::{self, expect, same, soon};
use conformance::watch::HANGS;
use std::time::{Duration, Instant};
use std::{fs, thread};

use left::{
    PROGRAMS, completion_type, forgets, hidden_state, init_connect, latin1_schema,
    left_transaction, other_init_connect, programs, put_right, recalled, reset_of_held, routines,
    told_late, told_later,
};

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
