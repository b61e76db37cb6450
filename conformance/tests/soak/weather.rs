//! What goes wrong in a soak, and what operators do meanwhile.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use conformance::by_hand::Raw;
use conformance::proxy::Proxy;
use conformance::servers::Server;

use crate::client::Chance;
use crate::ledger::Ledger;

/// Breaks things until the time is over, and puts all right again.
pub(crate) fn break_things(
    server: &mut Server,
    proxy: &mut Proxy,
    ledger: &Ledger,
    until: Instant,
    seed: u64,
) -> Result<(), String> {
    let mut chance = Chance::new(seed, 9999);
    let mut vanishing = Vec::new();
    while Instant::now() < until && !ledger.over.load(Ordering::SeqCst) {
        pause(&mut chance, 300);
        match chance.below(20) {
            0 => {
                server.kill();
                pause(&mut chance, 1500);
                server.restart()?;
            }
            1 => {
                server.signal("STOP");
                pause(&mut chance, 1500);
                server.signal("CONT");
            }
            2..=4 => kill_on_server(server, &mut chance),
            5..=7 => kill_session(proxy, &mut chance)?,
            8..=10 => vanish(proxy, &mut chance, &mut vanishing),
            11 => offline(proxy, &mut chance)?,
            12 | 13 => limit(proxy, &mut chance)?,
            14 | 15 => pipelining(proxy, &mut chance)?,
            16 => load(proxy, "LOAD MYSQL USERS TO RUNTIME")?,
            17 => {
                let on = chance.below(2);
                load(
                    proxy,
                    &format!(
                        "UPDATE mysql_query_rules SET active = {on} WHERE rule_id = 1; LOAD MYSQL QUERY RULES TO RUNTIME"
                    ),
                )?;
            }
            18 => {
                let name = [
                    "mysql-free_connections_pct",
                    "mysql-ping_interval_server_msec",
                    "mysql-throttle_max_bytes_per_second_to_client",
                ];
                let (name, values) = match chance.below(3) {
                    0 => (name[0], ["0", "10", "100"]),
                    1 => (name[1], ["1000", "10000", "60000"]),
                    _ => (name[2], ["0", "0", "2000000"]),
                };
                let value = values[usize::try_from(chance.below(3)).unwrap_or(0)];
                load(
                    proxy,
                    &format!("SET {name} = {value}; LOAD MYSQL VARIABLES TO RUNTIME"),
                )?;
            }
            _ => {
                let age = ["0", "1000"][usize::try_from(chance.below(2)).unwrap_or(0)];
                load(
                    proxy,
                    &format!(
                        "SET mysql-connection_max_age_ms = {age}; LOAD MYSQL VARIABLES TO RUNTIME"
                    ),
                )?;
            }
        }
    }
    load(
        proxy,
        "UPDATE mysql_servers SET status = 'ONLINE', max_connections = 10; LOAD MYSQL SERVERS TO RUNTIME",
    )
}

fn pause(chance: &mut Chance, most_ms: u64) {
    thread::sleep(Duration::from_millis(chance.below(most_ms)));
}

fn load(proxy: &Proxy, sql: &str) -> Result<(), String> {
    proxy
        .admin(sql)
        .map(drop)
        .map_err(|error| format!("{sql}: {error}\n{}", proxy.log()))
}

/// Some connection of the proxy, busy or idle, ends at the server.
fn kill_on_server(server: &Server, chance: &mut Chance) {
    let Ok(said) = server.root("SELECT id FROM information_schema.processlist WHERE user = 'app'")
    else {
        return;
    };
    let ids: Vec<&str> = said.lines().skip(1).collect();
    let Some(id) = ids.get(usize::try_from(chance.below(ids.len().max(1) as u64)).unwrap_or(0))
    else {
        return;
    };
    let what = if chance.below(2) == 0 {
        "QUERY"
    } else {
        "CONNECTION"
    };
    let _gone_meanwhile = server.root(&format!("KILL {what} {id}"));
}

fn kill_session(proxy: &Proxy, chance: &mut Chance) -> Result<(), String> {
    let said = proxy.admin("SELECT SessionID FROM stats_mysql_processlist WHERE user = 'app'")?;
    let ids: Vec<&str> = said.lines().collect();
    if let Some(id) = ids.get(usize::try_from(chance.below(ids.len().max(1) as u64)).unwrap_or(0)) {
        let what = if chance.below(4) > 0 {
            "QUERY"
        } else {
            "CONNECTION"
        };
        let _gone_meanwhile = proxy.admin(&format!("KILL {what} {id}"));
    }
    Ok(())
}

/// Clients that leave without a word, in the middle of something.
fn vanish(proxy: &Proxy, chance: &mut Chance, vanishing: &mut Vec<Raw>) {
    vanishing.clear();
    for _ in 0..chance.below(6) {
        let Ok(mut client) = Raw::log_in(proxy.port) else {
            continue;
        };
        let begun = [
            "BEGIN",
            "SET @a = 'leaked'",
            "CREATE TEMPORARY TABLE conf.left_behind (a INT)",
            "DO GET_LOCK('left behind', 0)",
            "SET time_zone = '+09:00', @b = 'leaked'",
        ];
        for _ in 0..chance.below(3) {
            let _refused = client.ask(begun[usize::try_from(chance.below(5)).unwrap_or(0)]);
        }
        let last = [
            "SELECT a.id, REPEAT('x', 500) FROM conf.numbers a, conf.numbers b LIMIT 20000",
            "SELECT SLEEP(0.3)",
            "INSERT INTO conf.ids (tag) VALUES ('leaked')",
            "COMMIT",
        ];
        let _refused = client.query(last[usize::try_from(chance.below(4)).unwrap_or(0)]);
        if chance.below(2) == 0 {
            let _some = client.packet();
        }
        if chance.below(2) == 0 {
            vanishing.push(client);
        }
    }
}

fn offline(proxy: &Proxy, chance: &mut Chance) -> Result<(), String> {
    let (group, how) = (
        chance.below(2),
        ["OFFLINE_SOFT", "OFFLINE_HARD"][usize::try_from(chance.below(2)).unwrap_or(0)],
    );
    load(
        proxy,
        &format!(
            "UPDATE mysql_servers SET status = '{how}' WHERE hostgroup_id = {group}; LOAD MYSQL SERVERS TO RUNTIME"
        ),
    )?;
    pause(chance, 800);
    load(
        proxy,
        "UPDATE mysql_servers SET status = 'ONLINE'; LOAD MYSQL SERVERS TO RUNTIME",
    )
}

fn limit(proxy: &Proxy, chance: &mut Chance) -> Result<(), String> {
    let max = 4 + chance.below(10);
    load(
        proxy,
        &format!("UPDATE mysql_servers SET max_connections = {max}; LOAD MYSQL SERVERS TO RUNTIME"),
    )
}

fn pipelining(proxy: &Proxy, chance: &mut Chance) -> Result<(), String> {
    let depth = [0, 4, 16][usize::try_from(chance.below(3)).unwrap_or(0)];
    load(
        proxy,
        &format!(
            "REPLACE INTO mysql_hostgroup_attributes (hostgroup_id, hostgroup_settings) VALUES (1, '{{\"pipelining\":{depth}}}'); \
             LOAD MYSQL SERVERS TO RUNTIME"
        ),
    )
}
