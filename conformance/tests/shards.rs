//! Very many: schemas on a server, rows of fast routing, users and servers.
//!
//! `make stress` takes the numbers of those who asked for it (`MILLRACE_STRESS=1`): 50,000 schemas,
//! a million users.
#![forbid(unsafe_code)]

use std::fmt::Write as _;
use std::time::Instant;

use conformance::proxy::{Driver, Proxy, Wish, command_line};
use conformance::servers::{Server, Vendor};
use conformance::trials::{self, expect, same};

type Outcome = Result<(), String>;

fn main() {
    trials::run(&[
        (
            "schemas_without_number_are_routed_and_cached_each_by_itself",
            many_schemas,
        ),
        (
            "users_and_servers_without_number_are_loaded",
            many_users_and_servers,
        ),
    ])
}

fn stress() -> bool {
    std::env::var_os("MILLRACE_STRESS").is_some()
}

/// As many as one command line may hold.
const AT_ONCE: usize = 1000;

/// Only says how long it took: nothing depends on it.
fn timed<T>(what: &str, work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    let begun = Instant::now();
    let done = work()?;
    if stress() {
        eprintln!("{what}: {:.2} s", begun.elapsed().as_secs_f64());
    }
    Ok(done)
}

/// A31, A33, A34: one of the schemas after the other is used and asked; the first rule gives all
/// answers a time to live, and the chain goes on to fast routing, which has a row for each.
fn many_schemas(driver: Driver) -> Outcome {
    let count = if stress() { 50_000 } else { 300 };
    let server = Server::start(Vendor::MariaDb)?;
    let other = Server::start(Vendor::MariaDb)?;
    let mut wish = Wish::in_front_of(&server);
    let _ = write!(
        wish.servers,
        ",\n{{ address = \"127.0.0.1\", port = {}, hostgroup = 1 }}",
        other.port
    );
    let proxy = Proxy::start(driver, &wish)?;
    let shards: Vec<usize> = (10_001..=10_000 + count).collect();
    // Even numbers are on one server, odd ones on the other: a statement that is sent to the wrong
    // one fails.
    timed(&format!("CREATE DATABASE {count} times"), || {
        for some in shards.chunks(AT_ONCE) {
            for (home, rest) in [(&server, 0), (&other, 1)] {
                let create: String = some
                    .iter()
                    .filter(|shard| *shard % 2 == rest)
                    .map(|shard| format!("CREATE DATABASE shard_{shard};"))
                    .collect();
                home.root(&create)?;
            }
        }
        Ok(())
    })?;
    proxy.admin(&format!(
        "INSERT INTO mysql_query_rules (active, username, cache_ttl) VALUES (1, 'app', 1200000); \
         INSERT INTO mysql_query_rules_fast_routing (username, schemaname, flagIN, destination_hostgroup, comment) \
         WITH RECURSIVE n (i) AS (SELECT 10001 UNION ALL SELECT i + 1 FROM n WHERE i < {}) SELECT 'app', 'shard_' || i, 0, i % 2, '' FROM n",
        10_000 + count
    ))?;
    // A row for each schema and statement shall be kept, even if one core gets all of the clients.
    proxy.admin(&format!(
        "SET mysql-query_digests_max_entries = {}; LOAD MYSQL VARIABLES TO RUNTIME",
        4 * count.max(1000)
    ))?;
    timed("LOAD of its fast routing", || {
        proxy.admin("LOAD MYSQL QUERY RULES TO RUNTIME")
    })?;
    same(
        &proxy.admin("SELECT COUNT(*) FROM runtime_mysql_query_rules_fast_routing")?,
        &count.to_string(),
    )?;

    let ours = "SELECT COALESCE(SUM(count_star), 0) FROM stats_mysql_query_digest WHERE digest_text IN ('SELECT ?', 'SELECT SCHEMA()')";
    for (round, sent) in [("sent", 2 * count), ("from the cache", 2 * count)] {
        timed(
            &format!("{count} times USE and two SELECTs, {round}"),
            || {
                for some in shards.chunks(AT_ONCE) {
                    let sql: String = some
                        .iter()
                        .map(|shard| format!("USE shard_{shard};\nSELECT 1;SELECT SCHEMA();\n"))
                        .collect();
                    let wanted: Vec<String> = some
                        .iter()
                        .map(|shard| format!("1\nshard_{shard}"))
                        .collect();
                    same(&proxy.query(&sql)?, &wanted.join("\n"))?;
                }
                Ok(())
            },
        )?;
        same(
            &proxy.admin(&format!("{ours} AND hostgroup >= 0"))?,
            &sent.to_string(),
        )?;
    }
    same(
        &proxy.admin(&format!("{ours} AND hostgroup = -1"))?,
        &(2 * count).to_string(),
    )?;
    // Each half went to its server, by the schema.
    let wrong = "SELECT COUNT(*) FROM stats_mysql_query_digest WHERE schemaname LIKE 'shard\\_%' ESCAPE '\\' AND hostgroup >= 0 \
                 AND hostgroup <> CAST(SUBSTR(schemaname, 7) AS INT) % 2 AND digest_text LIKE 'SELECT%'";
    same(&proxy.admin(wrong)?, "0")?;
    let seen = "SELECT COUNT(DISTINCT schemaname) FROM stats_mysql_query_digest WHERE digest_text = 'SELECT ?' AND schemaname LIKE 'shard%'";
    same(&proxy.admin(seen)?, &count.to_string())
}

/// A50: users and servers come in by SQL, are loaded, and work at once.
fn many_users_and_servers(driver: Driver) -> Outcome {
    let (users, servers) = if stress() {
        (1_000_000, 2_000)
    } else {
        (20_000, 2_000)
    };
    let server = Server::start(Vendor::MariaDb)?;
    let proxy = Proxy::start(driver, &Wish::in_front_of(&server))?;
    timed(&format!("INSERT of {users} users"), || {
        proxy.admin(&format!(
            "INSERT INTO mysql_users (username, password, default_hostgroup) \
             WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {users}) SELECT 'user_' || i, 'secret', 0 FROM n; \
             UPDATE mysql_users SET username = 'app_too' WHERE username = 'user_{users}'"
        ))
    })?;
    timed(&format!("LOAD of {users} users"), || {
        proxy.admin("LOAD MYSQL USERS TO RUNTIME")
    })?;
    let seconds = "INSERT INTO mysql_servers (hostgroup_id, hostname, port) \
                   WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {}) \
                   SELECT 1000 + i / 10, '10.9.' || (i / 250) || '.' || (i % 250 + 1), 3306 FROM n";
    proxy.admin(&seconds.replace("{}", &servers.to_string()))?;
    timed(&format!("LOAD of {servers} servers"), || {
        proxy.admin("LOAD MYSQL SERVERS TO RUNTIME")
    })?;
    same(
        &proxy.admin("SELECT COUNT(*) FROM runtime_mysql_servers")?,
        &(servers + 1).to_string(),
    )?;
    // Each is there twice, as ProxySQL shows it: towards clients and towards servers.
    same(
        &proxy.admin("SELECT COUNT(*) FROM runtime_mysql_users")?,
        &(2 * (users + 3)).to_string(),
    )?;
    // One in the middle comes in; who has another password does not.
    server.root("CREATE USER user_777@'%' IDENTIFIED BY 'secret'")?;
    same(
        &command_line(proxy.port, "user_777", "secret", &[], "SELECT 7")?,
        "7",
    )?;
    let refused = command_line(proxy.port, "user_778", "guess", &[], "SELECT 7")
        .err()
        .unwrap_or_default();
    expect(refused.contains("1045"), || refused.clone())
}
