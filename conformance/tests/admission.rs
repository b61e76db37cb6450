//! Rates of users, hostgroups and rules: `statements_per_sec`.
#![forbid(unsafe_code)]

use std::thread;
use std::time::{Duration, Instant};

use conformance::by_hand::{self, Raw};
use conformance::proxy::{Driver, Proxy};
use conformance::servers::Vendor;
use conformance::trials::{self, expect};

type Outcome = Result<(), String>;

fn main() {
    trials::run(&[(
        "a_rate_holds_over_all_cores_and_the_rest_waits_or_is_told",
        rates,
    )])
}

fn log_in(proxy: &Proxy) -> Result<Raw, String> {
    Raw::log_in(proxy.port).map_err(|error| error.to_string())
}

/// Answers that so many clients get within this time to this statement.
fn answers(proxy: &Proxy, clients: usize, sql: &str, within: Duration) -> Result<usize, String> {
    thread::scope(|scope| {
        let ask = || {
            let mut client = log_in(proxy)?;
            let (begun, mut answered) = (Instant::now(), 0);
            while begun.elapsed() < within {
                client.ask(sql).map_err(|error| error.to_string())?;
                answered += usize::from(begun.elapsed() < within);
            }
            Ok::<_, String>(answered)
        };
        let all: Vec<_> = (0..clients).map(|_| scope.spawn(ask)).collect();
        let each = all
            .into_iter()
            .map(|one| one.join().map_err(|_| "a client ended".to_owned())?);
        each.sum()
    })
}

fn rates(driver: Driver) -> Outcome {
    let (_server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    proxy.admin(
        "UPDATE mysql_users SET attributes = '{\"statements_per_sec\": 50}' WHERE username = 'open'; \
         LOAD MYSQL USERS TO RUNTIME",
    )?;
    let count = answers(&proxy, 8, "SELECT 1", Duration::from_secs(3))?;
    // Three seconds, and a tenth at once.
    expect((120..=156).contains(&count), || {
        format!("{count} of 155 answers")
    })?;
    // Of two rates the lower one: here of a rule, for what it matches.
    proxy.admin(
        "INSERT INTO mysql_query_rules (rule_id, active, match_digest, attributes) \
         VALUES (1, 1, 'SELECT .[+].', '{\"statements_per_sec\": 10}'); LOAD MYSQL QUERY RULES TO RUNTIME",
    )?;
    let count = answers(&proxy, 4, "SELECT 1 + 1", Duration::from_secs(2))?;
    expect((15..=22).contains(&count), || {
        format!("{count} of 21 answers")
    })?;
    let count = answers(&proxy, 4, "SELECT 1", Duration::from_secs(1))?;
    expect(count >= 35, || {
        format!("{count} answers of what the rule does not match")
    })?;
    // Who would wait too long is told, whose rate it is; a transaction does not wait.
    proxy.admin(
        "UPDATE mysql_users SET attributes = ''; LOAD MYSQL USERS TO RUNTIME; DELETE FROM mysql_query_rules; \
         LOAD MYSQL QUERY RULES TO RUNTIME; SET mysql-connect_timeout_server_max = 500; LOAD MYSQL VARIABLES TO RUNTIME; \
         INSERT INTO mysql_hostgroup_attributes (hostgroup_id, hostgroup_settings) VALUES (0, '{\"statements_per_sec\": 1}'); \
         LOAD MYSQL SERVERS TO RUNTIME",
    )?;
    let mut client = log_in(&proxy)?;
    let begun = Instant::now();
    for sql in ["BEGIN", "SELECT 1", "SELECT 2", "COMMIT"] {
        client.ask(sql).map_err(|error| format!("{sql}: {error}"))?;
    }
    expect(begun.elapsed() < Duration::from_millis(900), || {
        format!("a transaction took {:?}", begun.elapsed())
    })?;
    let said = client.ask("SELECT 3").err().map(|error| error.to_string());
    let words = "Too many statements of hostgroup 0: 1 are sent in a second";
    expect(
        said.as_ref()
            .is_some_and(|said| said.starts_with("9001") && said.contains(words)),
        || format!("{said:?}"),
    )?;
    // The session lives, and what is sent later is answered.
    thread::sleep(Duration::from_secs(5));
    client
        .ask("SELECT 4")
        .map(drop)
        .map_err(|error| error.to_string())
}
