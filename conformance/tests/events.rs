//! The events log: which statements are in its files and what of them, in both formats; that
//! nothing is lost or torn while files change, and what happens where there can be no file.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::thread;

use conformance::by_hand::{self, Raw};
use conformance::process::output;
use conformance::proxy::{Driver, Proxy, program};
use conformance::servers::Vendor;
use conformance::trials::{self, expect, same, soon};
use conformance::watch::HANGS;
use serde_json::Value;

type Outcome = Result<(), String>;

fn main() {
    trials::run(&[
        (
            "a_rule_logs_what_it_matches_and_the_record_says_what_was_done",
            a_rule_logs_what_it_matches,
        ),
        ("mysql_is_logged_as_mariadb_is", mysql_is_logged),
        (
            "files_change_under_traffic_and_no_record_is_lost_or_torn",
            files_change_under_traffic,
        ),
        (
            "flush_logs_begins_the_next_file_behind_all_that_was_answered",
            flush_logs,
        ),
        (
            "a_log_that_cannot_be_written_is_told_and_harms_nobody",
            no_file,
        ),
        (
            "what_waits_is_written_when_the_proxy_ends",
            what_waits_is_written,
        ),
        (
            "what_ends_with_its_client_is_logged",
            what_ends_with_its_client_is_logged,
        ),
        (
            "what_is_refused_before_rules_are_asked_is_logged_by_default",
            what_is_refused_before_rules_are_asked,
        ),
        (
            "what_was_answered_before_the_log_ends_is_in_it_and_nothing_is_lost",
            what_was_answered_before_the_log_ends,
        ),
        (
            "a_reader_that_goes_ends_the_showing_without_a_word",
            a_reader_that_goes,
        ),
    ])
}

fn begin(proxy: &Proxy, format: u8, more: &str) -> Outcome {
    let sql = format!(
        "SET mysql-eventslog_filename = 'ev'; SET mysql-eventslog_format = {format}; {more} LOAD MYSQL VARIABLES TO RUNTIME"
    );
    proxy.admin(&sql).map(drop)
}

fn all(proxy: &Proxy) -> Outcome {
    begin(proxy, 1, "SET mysql-eventslog_default_log = 1;")
}

/// Its files, in order.
fn files(proxy: &Proxy) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(proxy.data()).map_err(|error| error.to_string())?;
    let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| {
        path.file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with("ev."))
    });
    files.sort();
    Ok(files)
}

/// Returns what `millrace events` shows of some files.
fn shown(files: &[PathBuf]) -> Result<Vec<Value>, String> {
    let (fine, words) = output(Command::new(program()?).arg("events").args(files), HANGS)?;
    expect(fine, || format!("{files:?}: {words}"))?;
    words
        .lines()
        .map(|line| serde_json::from_str(line).map_err(|error| format!("{line}: {error}")))
        .collect()
}

/// The statements of all files, after a flush.
fn logged(proxy: &Proxy) -> Result<Vec<Value>, String> {
    proxy.admin("PROXYSQL FLUSH LOGS")?;
    shown(&files(proxy)?)
}

fn queries(events: &[Value]) -> Vec<&str> {
    events
        .iter()
        .filter_map(|event| event["query"].as_str())
        .collect()
}

fn counted(proxy: &Proxy, name: &str) -> Result<u64, String> {
    let said =
        proxy.admin(&format!("SELECT Variable_Value FROM stats_mysql_global WHERE Variable_Name = 'Millrace_events_{name}'"))?;
    said.trim().parse().map_err(|_| said)
}

fn log_in(proxy: &Proxy) -> Result<Raw, String> {
    Raw::log_in(proxy.port).map_err(|error| error.to_string())
}

fn asked(client: &mut Raw, sql: &str) -> Outcome {
    client
        .ask(sql)
        .map(drop)
        .map_err(|error| format!("{sql}: {error}"))
}

fn a_rule_logs_what_it_matches(driver: Driver) -> Outcome {
    ruled(driver, Vendor::MariaDb)
}

fn mysql_is_logged(driver: Driver) -> Outcome {
    ruled(driver, Vendor::MySql)
}

fn ruled(driver: Driver, vendor: Vendor) -> Outcome {
    let (server, proxy) = by_hand::one(driver, vendor)?;
    server.root(
        "CREATE TABLE conf.logged (id INT AUTO_INCREMENT PRIMARY KEY, v INT); INSERT INTO conf.logged VALUES (41, 1), (42, 2)",
    )?;
    proxy.admin(
        "INSERT INTO mysql_query_rules (rule_id, active, match_digest, log) VALUES (1, 1, 'logged', 1);
         INSERT INTO mysql_query_rules (rule_id, active, match_digest, log) VALUES (2, 1, 'not this', 0);
         INSERT INTO mysql_query_rules (rule_id, active, match_pattern, replace_pattern) VALUES (3, 1, 'VALUES . 77', 'VALUES ( 78');
         INSERT INTO mysql_query_rules (rule_id, active, match_digest, error_msg, log, apply) VALUES (4, 1, 'forbidden', 'no', 1, 1);
         LOAD MYSQL QUERY RULES TO RUNTIME",
    )?;
    for format in [1, 2] {
        begin(&proxy, format, "")?;
        let mut one = log_in(&proxy)?;
        let mut other = log_in(&proxy)?;
        asked(&mut one, "SELECT 1")?;
        asked(
            &mut one,
            "SELECT * FROM conf.logged WHERE id > 40 AND id < 43",
        )?;
        asked(&mut one, "USE conf")?;
        asked(&mut other, "INSERT INTO conf.logged (v) VALUES ( 77)")?;
        // A later rule with a value counts.
        asked(&mut one, "SELECT /*'*/ 'x' AS `not this` FROM conf.logged")?;
        expect(other.ask("SELECT forbidden").is_err(), || {
            "a rule forbids it".to_owned()
        })?;
        let id = prepared(&mut one, "SELECT v FROM logged WHERE id = 42")?;
        executed(&mut one, id)?;
        expect(
            prepared(&mut other, "SELECT nonsense FROM conf.logged").is_err(),
            || "there is no such column".to_owned(),
        )?;
        proxy.admin("PROXYSQL FLUSH LOGS")?;

        let files = files(&proxy)?;
        let last = &files[files.len() - 2..files.len() - 1];
        let events = shown(last)?;
        if format == 2 {
            let text = fs::read_to_string(&last[0]).map_err(|error| error.to_string())?;
            let lines: Vec<Value> = text
                .lines()
                .map(|line| serde_json::from_str(line).unwrap_or_default())
                .collect();
            expect(lines == events, || text)?;
        }
        let by_text: BTreeMap<&str, &Value> = events
            .iter()
            .map(|event| (event["query"].as_str().unwrap_or(""), event))
            .collect();
        let wanted = [
            "INSERT INTO conf.logged (v) VALUES ( 78)",
            "SELECT * FROM conf.logged WHERE id > 40 AND id < 43",
            "SELECT forbidden",
            "SELECT nonsense FROM conf.logged",
            "SELECT v FROM logged WHERE id = 42",
        ];
        expect(by_text.keys().copied().eq(wanted), || {
            format!("{events:#?}")
        })?;
        expect(events.len() == 6, || {
            format!("a statement is there once, what was prepared as often as it came: {events:#?}")
        })?;

        let says = |event: &Value, key: &str, value: Value| {
            expect(event[key] == value, || format!("{key} of {event:#}"))
        };
        let server_at = format!("127.0.0.1:{}", server.port);
        for event in &events {
            says(event, "username", by_hand::USER.into())?;
            let client = event["client"]
                .as_str()
                .and_then(|client| client.strip_prefix("127.0.0.1:"))
                .and_then(|port| port.parse::<u16>().ok());
            expect(client.is_some(), || format!("{event:#}"))?;
            let number = |key: &str| event[key].as_u64().unwrap_or_default();
            let (began, ended) = (
                number("starttime_timestamp_us"),
                number("endtime_timestamp_us"),
            );
            expect(
                began > 1_700_000_000_000_000 && ended - began == number("duration_us"),
                || format!("{event:#}"),
            )?;
            if event["query"] != "SELECT forbidden" {
                says(event, "server", server_at.as_str().into())?;
                says(event, "hostgroup_id", 0.into())?;
            }
        }
        let read = by_text[wanted[1]];
        says(read, "event", "COM_QUERY".into())?;
        says(read, "thread_id", one.id.into())?;
        says(read, "rows_sent", 2.into())?;
        let digest = "SELECT * FROM conf.logged WHERE id > ? AND id < ?";
        let known = proxy.admin(&format!(
            "SELECT digest FROM stats_mysql_query_digest WHERE digest_text = '{digest}'"
        ))?;
        expect(
            read["digest"]
                .as_str()
                .is_some_and(|said| said.eq_ignore_ascii_case(known.trim())),
            || format!("{known}: {read:#}"),
        )?;
        let write = by_text[wanted[0]];
        says(write, "thread_id", other.id.into())?;
        says(write, "rows_affected", 1.into())?;
        expect(
            write["last_insert_id"].as_u64().is_some_and(|id| id > 42),
            || format!("{write:#}"),
        )?;
        let refused = by_text["SELECT forbidden"];
        says(refused, "hostgroup_id", (-1).into())?;
        says(refused, "server", Value::Null)?;
        let of_id: Vec<_> = events
            .iter()
            .filter(|event| event["query"] == wanted[4])
            .collect();
        says(of_id[0], "event", "COM_STMT_PREPARE".into())?;
        says(of_id[0], "client_stmt_id", id.into())?;
        says(of_id[0], "schemaname", "conf".into())?;
        says(of_id[1], "event", "COM_STMT_EXECUTE".into())?;
        says(of_id[1], "client_stmt_id", id.into())?;
        says(of_id[1], "rows_sent", 1.into())?;
        says(by_text[wanted[3]], "client_stmt_id", 0.into())?;
    }
    // What rules leave open is said by a variable.
    begin(&proxy, 1, "SET mysql-eventslog_default_log = 1;")?;
    let mut client = log_in(&proxy)?;
    asked(&mut client, "SELECT 'by default'")?;
    asked(&mut client, "SELECT 'x' AS `not this`")?;
    let events = logged(&proxy)?;
    let texts = queries(&events);
    expect(
        texts.contains(&"SELECT 'by default'") && !texts.contains(&"SELECT 'x' AS `not this`"),
        || format!("{texts:?}"),
    )?;
    same(
        &counted(&proxy, "logged")?.to_string(),
        &events.len().to_string(),
    )?;
    same(&counted(&proxy, "dropped")?.to_string(), "0")?;
    // And no name ends it.
    proxy.admin("SET mysql-eventslog_filename = ''; LOAD MYSQL VARIABLES TO RUNTIME")?;
    asked(&mut client, "SELECT 'too late'")?;
    expect(
        !queries(&logged(&proxy)?).contains(&"SELECT 'too late'"),
        || "it is logged".to_owned(),
    )
}

/// COM_STMT_PREPARE of a statement without parameters; its number.
fn prepared(client: &mut Raw, sql: &str) -> Result<u32, String> {
    let run = |client: &mut Raw| {
        let mut payload = vec![0x16];
        payload.extend_from_slice(sql.as_bytes());
        client.command(&payload)?;
        let said = client.packet()?;
        if said.first() == Some(&0xff) {
            return Err(by_hand::complaint(&said));
        }
        let columns = u16::from_le_bytes([said[5], said[6]]);
        for _ in 0..columns + u16::from(columns > 0) {
            client.packet()?;
        }
        Ok(u32::from_le_bytes([said[1], said[2], said[3], said[4]]))
    };
    run(client).map_err(|error| format!("{sql}: {error}"))
}

/// COM_STMT_EXECUTE, without parameters.
fn executed(client: &mut Raw, id: u32) -> Outcome {
    let mut payload = vec![0x17];
    payload.extend(id.to_le_bytes());
    payload.extend([0, 1, 0, 0, 0]);
    client
        .command(&payload)
        .and_then(|()| client.each_row(|_| ()))
        .map_err(|error| error.to_string())
}

fn files_change_under_traffic(driver: Driver) -> Outcome {
    const CLIENTS: usize = 6;
    const EACH: usize = 500;
    let (_server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    for (round, format) in [1_u8, 2].into_iter().enumerate() {
        begin(
            &proxy,
            format,
            "SET mysql-eventslog_filesize = 1048576; SET mysql-eventslog_default_log = 1;",
        )?;
        let before = files(&proxy)?.len();
        thread::scope(|scope| {
            let clients: Vec<_> = (0..CLIENTS)
                .map(|client| {
                    let proxy = &proxy;
                    scope.spawn(move || {
                        let mut raw = log_in(proxy)?;
                        let padding = "x".repeat(3000);
                        (0..EACH).try_for_each(|n| {
                            asked(
                                &mut raw,
                                &format!("SELECT 'r{round}c{client}n{n}' /* {padding} */"),
                            )
                        })
                    })
                })
                .collect();
            for _ in 0..5 {
                proxy.admin("PROXYSQL FLUSH LOGS")?;
            }
            clients
                .into_iter()
                .try_for_each(|client| client.join().map_err(|_| "a client panicked".to_owned())?)
        })?;
        proxy.admin("PROXYSQL FLUSH LOGS")?;
        let files = files(&proxy)?;
        // Six flushes make seven files, which is too few for nine megabytes.
        expect(files.len() > before + 6, || format!("{files:?}"))?;
        for file in &files {
            let len = fs::metadata(file).map_err(|error| error.to_string())?.len();
            expect(len < 1_048_576 + 8192, || {
                format!("{} has {len} bytes", file.display())
            })?;
        }
        let events = shown(&files)?;
        let mut seen = BTreeMap::new();
        for text in queries(&events) {
            *seen
                .entry(text.split(' ').nth(1).unwrap_or_default().to_owned())
                .or_insert(0) += 1;
        }
        let twice = seen.iter().find(|(_, times)| **times != 1);
        expect(twice.is_none(), || format!("{twice:?}"))?;
        let wanted = (round + 1) * CLIENTS * EACH;
        expect(seen.len() == wanted, || {
            format!("{} of {wanted}", seen.len())
        })?;
        expect(
            counted(&proxy, "logged")? == wanted as u64 && counted(&proxy, "dropped")? == 0,
            || "counted otherwise".to_owned(),
        )?;
    }
    Ok(())
}

fn flush_logs(driver: Driver) -> Outcome {
    let (_server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    all(&proxy)?;
    let mut one = log_in(&proxy)?;
    let mut other = log_in(&proxy)?;
    for round in 0..5 {
        asked(&mut one, &format!("SELECT {round}, 1"))?;
        asked(&mut other, &format!("SELECT {round}, 2"))?;
        proxy.admin("PROXYSQL FLUSH LOGS")?;
        let files = files(&proxy)?;
        expect(files.len() == round + 2, || format!("{files:?}"))?;
        let events = shown(&files[round..=round])?;
        let mut texts = queries(&events);
        texts.sort_unstable();
        expect(
            texts == [format!("SELECT {round}, 1"), format!("SELECT {round}, 2")],
            || format!("{texts:?}"),
        )?;
    }
    Ok(())
}

fn no_file(driver: Driver) -> Outcome {
    let (_server, mut proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    let folder = proxy.data().join("logs");
    let refused = proxy
        .admin("SET mysql-eventslog_default_log = 1; SET mysql-eventslog_filename = 'logs/ev'; LOAD MYSQL VARIABLES TO RUNTIME");
    let words = format!(
        "MYSQL VARIABLES not loaded, nothing was changed: mysql-eventslog_filename = 'logs/ev': the directory {} does not exist",
        folder.display()
    );
    expect(
        refused.as_ref().is_err_and(|said| said.contains(&words)),
        || format!("{refused:?}"),
    )?;
    let in_force = "SELECT variable_value FROM runtime_global_variables WHERE variable_name = 'mysql-eventslog_filename'";
    same(&proxy.admin(in_force)?, "")?;

    fs::create_dir(&folder).map_err(|error| error.to_string())?;
    proxy.admin("LOAD MYSQL VARIABLES TO RUNTIME; SAVE MYSQL VARIABLES TO DISK")?;
    let mut client = log_in(&proxy)?;
    asked(&mut client, "SELECT 'written'")?;
    proxy.admin("PROXYSQL FLUSH LOGS")?;
    same(
        &shown(&[folder.join("ev.00000001")])?[0]["query"].to_string(),
        "\"SELECT 'written'\"",
    )?;

    // The directory goes while the proxy does not run: it starts all the same.
    proxy.kill();
    fs::remove_dir_all(&folder).map_err(|error| error.to_string())?;
    proxy.restart()?;
    let mut client = log_in(&proxy)?;
    for _ in 0..10 {
        asked(&mut client, "SELECT 'lost'")?;
    }
    let flushed = proxy.admin("PROXYSQL FLUSH LOGS");
    expect(
        flushed
            .as_ref()
            .is_err_and(|said| said.contains("does not exist")),
        || format!("{flushed:?}"),
    )?;
    same(&counted(&proxy, "dropped")?.to_string(), "10")?;
    let words = "the events log: mysql-eventslog_filename = 'logs/ev'";
    expect(proxy.says(words), || proxy.log())?;
    expect(proxy.log().matches(words).count() == 1, || proxy.log())?;

    fs::create_dir(&folder).map_err(|error| error.to_string())?;
    proxy.admin("PROXYSQL FLUSH LOGS")?;
    asked(&mut client, "SELECT 'again'")?;
    soon("1", || {
        counted(&proxy, "logged").map(|logged| logged.to_string())
    })?;
    same(
        &shown(&[folder.join("ev.00000001")])?[0]["query"].to_string(),
        "\"SELECT 'again'\"",
    )?;
    expect(
        proxy.says("the events log is written again; 10 statements are not in it"),
        || proxy.log(),
    )
}

fn what_waits_is_written(driver: Driver) -> Outcome {
    let (_server, mut proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    all(&proxy)?;
    let mut clients = [log_in(&proxy)?, log_in(&proxy)?];
    for n in 0..50 {
        for client in &mut clients {
            asked(client, &format!("SELECT {n}"))?;
        }
    }
    expect(proxy.terminate(HANGS), || proxy.log())?;
    let events = shown(&files(&proxy)?)?;
    expect(events.len() == 100, || format!("{} of 100", events.len()))
}

/// A server may have done what nobody hears the answer of.
fn what_ends_with_its_client_is_logged(driver: Driver) -> Outcome {
    let (_server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    all(&proxy)?;
    let mut client = log_in(&proxy)?;
    client
        .query("SELECT SLEEP(600)")
        .map_err(|error| error.to_string())?;
    soon("1", || {
        proxy
            .admin("SELECT COUNT(*) FROM stats_mysql_processlist WHERE info = 'SELECT SLEEP(600)'")
            .map(|n| n.trim().to_owned())
    })?;
    drop(client);
    soon("1", || {
        counted(&proxy, "logged").map(|logged| logged.to_string())
    })?;
    let events = logged(&proxy)?;
    expect(
        queries(&events) == ["SELECT SLEEP(600)"] && events[0]["hostgroup_id"] == 0,
        || format!("{events:#?}"),
    )
}

fn what_is_refused_before_rules_are_asked(driver: Driver) -> Outcome {
    let (_server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    begin(
        &proxy,
        1,
        "SET mysql-eventslog_default_log = 1; SET mysql-stmts_per_client_max = 1;",
    )?;
    let mut client = log_in(&proxy)?;
    prepared(&mut client, "SELECT 1")?;
    expect(prepared(&mut client, "SELECT 2").is_err(), || {
        "there is one already".to_owned()
    })?;
    expect(client.ask("PREPARE s FROM 'SELECT 3'").is_err(), || {
        "there is one already".to_owned()
    })?;
    let events = logged(&proxy)?;
    expect(
        queries(&events) == ["SELECT 1", "SELECT 2", "SELECT 3"],
        || format!("{events:#?}"),
    )?;
    for (event, kind) in events.iter().skip(1).zip(["COM_STMT_PREPARE", "COM_QUERY"]) {
        expect(
            event["event"] == kind && event["hostgroup_id"] == -1 && event["server"] == Value::Null,
            || format!("{event:#}"),
        )?;
    }
    expect(events[1]["client_stmt_id"] == 0, || {
        format!("{:#}", events[1])
    })?;
    // A rule logs what it matches, and this is shown to none.
    proxy.admin(
        "SET mysql-eventslog_default_log = 0; LOAD MYSQL VARIABLES TO RUNTIME;
         INSERT INTO mysql_query_rules (rule_id, active, match_digest, log) VALUES (1, 1, 'SELECT', 1); LOAD MYSQL QUERY RULES TO RUNTIME",
    )?;
    expect(prepared(&mut client, "SELECT 4").is_err(), || {
        "there is one already".to_owned()
    })?;
    expect(!queries(&logged(&proxy)?).contains(&"SELECT 4"), || {
        "it is logged".to_owned()
    })
}

fn what_was_answered_before_the_log_ends(driver: Driver) -> Outcome {
    let (_server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    all(&proxy)?;
    let mut clients = [log_in(&proxy)?, log_in(&proxy)?];
    for client in &mut clients {
        asked(client, "SELECT 'last words'")?;
    }
    // One that is still at work when it ends.
    clients[1]
        .query("SELECT SLEEP(1)")
        .map_err(|error| error.to_string())?;
    soon("1", || {
        proxy
            .admin("SELECT COUNT(*) FROM stats_mysql_processlist WHERE command = 'Query' AND info = 'SELECT SLEEP(1)'")
            .map(|n| n.trim().to_owned())
    })?;
    proxy.admin("SET mysql-eventslog_filename = ''; LOAD MYSQL VARIABLES TO RUNTIME")?;
    let events = shown(&files(&proxy)?)?;
    expect(queries(&events) == ["SELECT 'last words'"; 2], || {
        format!("{events:#?}")
    })?;
    soon("0", || {
        proxy
            .admin("SELECT COUNT(*) FROM stats_mysql_processlist WHERE command = 'Query' AND info = 'SELECT SLEEP(1)'")
            .map(|n| n.trim().to_owned())
    })?;
    // The thread of the log has it when it has been told to begin another file.
    proxy.admin("PROXYSQL FLUSH LOGS")?;
    expect(
        counted(&proxy, "logged")? == 2 && counted(&proxy, "dropped")? == 0,
        || "counted otherwise".to_owned(),
    )
}

fn a_reader_that_goes(driver: Driver) -> Outcome {
    let (_server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    for format in [1, 2] {
        begin(&proxy, format, "SET mysql-eventslog_default_log = 1;")?;
        let mut client = log_in(&proxy)?;
        asked(&mut client, "SELECT 1")?;
        proxy.admin("PROXYSQL FLUSH LOGS")?;
        let (reader, writer) = std::io::pipe().map_err(|error| error.to_string())?;
        drop(reader);
        let mut command = Command::new(program()?);
        let ended = command
            .arg("events")
            .args(files(&proxy)?)
            .stdout(writer)
            .output()
            .map_err(|error| error.to_string())?;
        expect(ended.status.success() && ended.stderr.is_empty(), || {
            format!("{ended:?}")
        })?;
    }
    Ok(())
}
