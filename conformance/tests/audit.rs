//! The audit log: clients that come, are refused, become somebody else, and leave.
#![forbid(unsafe_code)]

use std::fs;
use std::process::Command;

use conformance::by_hand::{self, Raw};
use conformance::proxy::{Driver, Proxy};
use conformance::raw;
use conformance::servers::Vendor;
use conformance::trials::{self, expect, same, soon};
use serde_json::Value;

type Outcome = Result<(), String>;

fn main() {
    trials::run(&[
        ("clients_that_come_and_go_are_in_it", who_comes_and_goes),
        (
            "clients_that_become_another_or_are_ended_are_in_it",
            who_becomes_another,
        ),
        (
            "a_name_that_cannot_be_is_refused_and_an_empty_one_ends_it",
            names,
        ),
    ])
}

/// Event, user, schema and the beginning of the reason, of each line of all files.
fn lines(proxy: &Proxy) -> Result<Vec<(String, Value)>, String> {
    let mut files: Vec<_> = fs::read_dir(proxy.data())
        .map_err(|error| error.to_string())?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with("au."))
        })
        .collect();
    files.sort();
    let mut all = Vec::new();
    for file in files {
        for line in fs::read_to_string(&file)
            .map_err(|error| error.to_string())?
            .lines()
        {
            let line: Value =
                serde_json::from_str(line).map_err(|error| format!("{line}: {error}"))?;
            let event = line["event"].as_str().unwrap_or_default();
            all.push((event.trim_start_matches("MySQL_Client_").to_owned(), line));
        }
    }
    Ok(all)
}

fn events(proxy: &Proxy) -> Result<String, String> {
    let all = lines(proxy)?;
    Ok(all
        .iter()
        .map(|(event, line)| {
            format!(
                "{event} {} {}",
                line["username"].as_str().unwrap_or_default(),
                line["schemaname"].as_str().unwrap_or_default()
            )
        })
        .map(|line| line.trim().to_owned())
        .collect::<Vec<_>>()
        .join(", "))
}

/// Event and user of the last line.
fn last(proxy: &Proxy) -> Result<String, String> {
    let all = events(proxy)?;
    let line = all.rsplit(", ").next().unwrap_or_default();
    Ok(line.to_owned())
}

fn begin(proxy: &Proxy) -> Outcome {
    proxy
        .admin("SET mysql-auditlog_filename = 'au'; LOAD MYSQL VARIABLES TO RUNTIME")
        .map(drop)
}

fn who_comes_and_goes(driver: Driver) -> Outcome {
    let (_server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    // Nobody is in it who came before it was there, until he leaves.
    let early = Raw::log_in(proxy.port).map_err(|error| error.to_string())?;
    begin(&proxy)?;
    drop(early);
    soon("Close open", || events(&proxy))?;

    let client = |user: &str, password: &str, sql: &str| {
        Command::new("mariadb")
            .args([
                "--no-defaults",
                "-h127.0.0.1",
                "--skip-ssl",
                &format!("-P{}", proxy.port),
            ])
            .args([
                format!("-u{user}"),
                format!("-p{password}"),
                "-e".into(),
                sql.into(),
            ])
            .output()
            .map_err(|error| error.to_string())
    };
    client("app", "secret", "USE conf; SELECT 1; USE nosuch")?;
    client("app", "wrong", "SELECT 1")?;
    let begun = "Close open, Connect_OK app, Init_DB app conf";
    soon(
        &format!("{begun}, Quit app conf, Close app conf, Connect_ERR app"),
        || events(&proxy),
    )?;
    let all = lines(&proxy)?;
    let of = |event: &str| {
        all.iter()
            .rfind(|(name, _)| name == event)
            .map(|(_, line)| line.clone())
            .unwrap_or_default()
    };
    let refused = of("Connect_ERR");
    expect(
        refused["extra_info"]
            .as_str()
            .is_some_and(|why| why.contains("Access denied for user 'app'@'127.0.0.1'"))
            && !refused.to_string().contains("wrong"),
        || refused.to_string(),
    )?;
    let (came, closed) = (of("Connect_OK"), of("Close"));
    expect(
        came["client_addr"] == closed["client_addr"]
            && came["thread_id"] == closed["thread_id"]
            && came["proxy_addr"] == format!("127.0.0.1:{}", proxy.port)
            && came["ssl"] == false
            && closed["creation_time"] == came["time"]
            && closed["duration"]
                .as_str()
                .is_some_and(|words| words.ends_with("ms")),
        || format!("{came}\n{closed}"),
    )?;
    nothing_is_dropped(&proxy)
}

fn nothing_is_dropped(proxy: &Proxy) -> Outcome {
    let dropped = proxy.admin("SELECT Variable_Value FROM stats_mysql_global WHERE Variable_Name = 'Millrace_audit_dropped'")?;
    same(&dropped, "0")
}

/// Somebody else on the same connection, or refused there; and a session that an operator ends.
fn who_becomes_another(driver: Driver) -> Outcome {
    let (_server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    begin(&proxy)?;
    let mut other = raw::Raw::log_in(proxy.port, 0)?;
    other.change_user("app")?;
    soon("Change_User_OK app", || last(&proxy))?;
    let mut refused = raw::Raw::log_in(proxy.port, 0)?;
    expect(refused.change_user("nobody").is_err(), || {
        "nobody is let in".to_owned()
    })?;
    soon("Change_User_ERR app", || {
        let all = lines(&proxy)?;
        let found = all
            .iter()
            .rfind(|(event, _)| event.starts_with("Change_User"));
        Ok(found
            .map(|(event, line)| {
                format!("{event} {}", line["username"].as_str().unwrap_or_default())
            })
            .unwrap_or_default())
    })?;
    drop(refused);
    let all = lines(&proxy)?;
    let number = all
        .iter()
        .rfind(|(event, _)| event == "Change_User_OK")
        .map(|(_, line)| line["thread_id"].clone())
        .unwrap_or_default();
    proxy.admin(&format!("KILL CONNECTION {number}"))?;
    soon(
        "Close The session was ended by the proxy's operator",
        || {
            let all = lines(&proxy)?;
            let ended = all
                .iter()
                .rfind(|(event, line)| event == "Close" && line["thread_id"] == number);
            Ok(ended
                .map(|(event, line)| {
                    format!(
                        "{event} {}",
                        line["extra_info"].as_str().unwrap_or_default()
                    )
                })
                .unwrap_or_default())
        },
    )?;
    nothing_is_dropped(&proxy)
}

fn names(driver: Driver) -> Outcome {
    let (_server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    let refused = proxy
        .admin("SET mysql-auditlog_filename = 'nosuch/au'; LOAD MYSQL VARIABLES TO RUNTIME")
        .err()
        .unwrap_or_default();
    expect(
        refused.contains("mysql-auditlog_filename = 'nosuch/au': the directory")
            && refused.contains("nothing was changed"),
        || refused.clone(),
    )?;
    proxy.query("DO 1")?;
    begin(&proxy)?;
    proxy.query("DO 1")?;
    soon("Connect_OK, Quit, Close", || {
        let all = lines(&proxy)?;
        Ok(all
            .into_iter()
            .map(|(event, _)| event)
            .collect::<Vec<_>>()
            .join(", "))
    })?;
    proxy.admin("SET mysql-auditlog_filename = ''; LOAD MYSQL VARIABLES TO RUNTIME")?;
    proxy.query("DO 1")?;
    proxy.admin("PROXYSQL FLUSH LOGS")?;
    same(&lines(&proxy)?.len().to_string(), "3")
}
