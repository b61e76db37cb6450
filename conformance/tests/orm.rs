//! A thousand clients that do what an ORM does and are idle most of the time: how many connections
//! to the server that takes.
#![forbid(unsafe_code)]

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use conformance::by_hand::{self, Raw};
use conformance::library;
use conformance::proxy::{Driver, Proxy, Wish};
use conformance::servers::{Server, Vendor};
use conformance::trials::{self, expect, same};
use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

type Outcome = Result<(), String>;

/// Clients that are logged in.
const CLIENTS: u64 = 1_000;
/// Clients that have something to do at the same time.
const BUSY: usize = 20;
/// Times that each has something to do.
const ROUNDS: u64 = 3;
/// All of it, at most: this client has no patience of its own.
const AT_MOST: Duration = Duration::from_secs(300);

fn main() {
    // A test has two descriptors of each of its clients.
    let _as_far_as_it_goes = rlimit::increase_nofile_limit(u64::MAX);
    trials::run(&[
        (
            "idle_clients_of_an_orm_on_mariadb_need_no_connections",
            |driver| idle_clients(driver, Vendor::MariaDb, None),
        ),
        (
            "idle_clients_of_an_orm_on_mysql_need_no_connections",
            |driver| idle_clients(driver, Vendor::MySql, None),
        ),
        (
            "a_thousand_clients_make_do_with_a_connection_for_each_that_is_busy",
            |driver| idle_clients(driver, Vendor::MariaDb, Some(BUSY as u64)),
        ),
        ("last_insert_id_on_mariadb_follows_its_session", |driver| {
            last_insert_ids(driver, Vendor::MariaDb)
        }),
        ("last_insert_id_on_mysql_follows_its_session", |driver| {
            last_insert_ids(driver, Vendor::MySql)
        }),
    ])
}

/// Says what an ORM says when it opens a connection for its own pool, and sets what only this
/// client has.
async fn begin(port: u16, tag: u64) -> Result<Conn, String> {
    let failed = |error: mysql_async::Error| format!("client {tag} does not come in: {error}");
    let mut conn = library::come_in(port).await.map_err(failed)?;
    for set in [
        "SET NAMES utf8mb4",
        "SET SESSION sql_mode = CONCAT(@@sql_mode, ',NO_ZERO_DATE')",
        "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
        &format!("SET SESSION group_concat_max_len = {}", 2_000 + tag),
        &format!("SET @application = 'web-{tag}'"),
    ] {
        conn.query_drop(set).await.map_err(failed)?;
    }
    Ok(conn)
}

/// One request to the application: a few reads, a transaction with prepared statements, and what
/// the client has set is still there.
async fn request(tag: u64, round: u64, conn: &mut Conn) -> Outcome {
    let failed = |error: mysql_async::Error| format!("client {tag} in round {round}: {error}");
    let about: Option<(String, u64, String)> = conn
        .query_first(
            "SELECT @application, @@group_concat_max_len, @@sql_mode LIKE '%NO_ZERO_DATE%'",
        )
        .await
        .map_err(failed)?;
    let wanted = Some((format!("web-{tag}"), 2_000 + tag, "1".to_owned()));
    expect(about == wanted, || {
        format!("client {tag} in round {round} was told {about:?}")
    })?;
    conn.query_drop("BEGIN").await.map_err(failed)?;
    conn.exec_drop(
        "INSERT INTO counted (words) VALUES (?)",
        (format!("{tag} {round}"),),
    )
    .await
    .map_err(failed)?;
    let id = conn.last_insert_id().unwrap_or_default();
    let words: Option<String> = conn
        .exec_first("SELECT words FROM counted WHERE id = ?", (id,))
        .await
        .map_err(failed)?;
    expect(words.as_deref() == Some(&format!("{tag} {round}")), || {
        format!("client {tag} read {words:?} as its own")
    })?;
    conn.exec_drop(
        "UPDATE counted SET words = ? WHERE id = ?",
        (format!("{tag} done"), id),
    )
    .await
    .map_err(failed)?;
    conn.query_drop("COMMIT").await.map_err(failed)?;
    if round % 2 == 1 {
        let last: Option<u64> = conn
            .query_first("SELECT LAST_INSERT_ID()")
            .await
            .map_err(failed)?;
        expect(last == Some(id), || {
            format!("client {tag} inserted {id}, and LAST_INSERT_ID() is {last:?}")
        })?;
    }
    Ok(())
}

fn number(text: &str) -> u64 {
    text.split_whitespace()
        .last()
        .and_then(|n| n.parse().ok())
        .unwrap_or(u64::MAX)
}

/// `limit`: how many connections the server may be given.
fn idle_clients(driver: Driver, vendor: Vendor, limit: Option<u64>) -> Outcome {
    let server = Server::start(vendor)?;
    server.root(by_hand::CREATE_USER)?;
    let before = number(&server.root("SHOW GLOBAL STATUS LIKE 'Max_used_connections'")?);
    let mut proxy = Proxy::start(driver, &Wish::in_front_of(&server))?;
    let port = proxy.port;
    if let Some(limit) = limit {
        proxy.admin(&format!(
            "UPDATE mysql_servers SET max_connections = {limit}"
        ))?;
        proxy.admin("LOAD MYSQL SERVERS TO RUNTIME")?;
    }
    let begun = Instant::now();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let busy = Arc::new(Semaphore::new(BUSY));
        let mut clients = JoinSet::new();
        for tag in 0..CLIENTS {
            let busy = busy.clone();
            clients.spawn(async move {
                let turn = async || busy.acquire().await.map_err(|error| error.to_string());
                let permit = turn().await?;
                let mut conn = begin(port, tag).await?;
                drop(permit);
                for round in 0..ROUNDS {
                    // Whoever else waits comes first: between two requests a client is idle for as
                    // long as all others take.
                    let _permit = turn().await?;
                    request(tag, round, &mut conn).await?;
                }
                Ok::<_, String>(conn)
            });
        }
        let mut crowd = Vec::new();
        let all = async {
            while let Some(one) = clients.join_next().await {
                crowd.push(one.map_err(|error| error.to_string())??);
            }
            Ok::<_, String>(())
        };
        let all = tokio::time::timeout(AT_MOST, all).await;
        all.unwrap_or_else(|_| {
            Err(format!(
                "{} of {CLIENTS} clients were served within {AT_MOST:?}",
                crowd.len()
            ))
        })
    })?;
    let opened = number(&server.root("SHOW GLOBAL STATUS LIKE 'Max_used_connections'")?);
    let pool = proxy.admin(
        "SELECT ConnUsed, ConnFree, ConnOK, MaxConnUsed, Queries FROM stats_mysql_connection_pool",
    )?;
    let took = begun.elapsed().as_secs_f64();
    println!(
        "{driver}, {vendor}: {CLIENTS} clients, {BUSY} busy at once: {opened} connections at once (before: {before}) in {took:.1} s; pool {pool:?}"
    );
    // Cores lend each other what they have instead of closing it for another one.
    let made = pool
        .split('\t')
        .nth(2)
        .and_then(|made| made.parse::<u64>().ok())
        .unwrap_or(0);
    expect(limit.is_none() || made < 800, || {
        format!("{made} connections were opened in all")
    })?;
    // Each of two cores has idle connections of its own, as many as it ever used at once. A server
    // counts a connection that was closed until its thread has ended.
    let most = limit.map_or(4 * BUSY as u64, |limit| limit + limit / 4 + before);
    expect(opened <= most, || {
        format!("{opened} connections were open at once for {BUSY} busy clients")
    })?;
    expect(proxy.runs(), || proxy.log())
}

/// Who says it, and what. The pauses are long enough for a session to give its connection back; the
/// other one takes it then.
const SAID: &[(usize, &str)] = &[
    (0, "SELECT LAST_INSERT_ID()"),
    (0, "INSERT INTO conf.made (words) VALUES ('a')"),
    (1, "SELECT LAST_INSERT_ID()"),
    (1, "INSERT INTO conf.made (words) VALUES ('b'), ('c')"),
    (0, "SELECT LAST_INSERT_ID(), @@last_insert_id, @@identity"),
    (1, "SELECT LAST_INSERT_ID()"),
    // An id that the client chose is in the answer, and changes nothing.
    (0, "INSERT INTO conf.made (id, words) VALUES (1000, 'd')"),
    (1, "SELECT 1"),
    (0, "SELECT LAST_INSERT_ID()"),
    (
        0,
        "INSERT INTO conf.made (words) SELECT CONCAT('e', LAST_INSERT_ID())",
    ),
    (1, "SELECT words FROM conf.made ORDER BY id DESC LIMIT 1"),
    (0, "SELECT LAST_INSERT_ID(77)"),
    (1, "SELECT LAST_INSERT_ID()"),
    (0, "SELECT LAST_INSERT_ID()"),
    (
        1,
        "UPDATE conf.made SET words = LAST_INSERT_ID(5000) WHERE id = 1",
    ),
    (0, "SELECT LAST_INSERT_ID()"),
    (1, "SELECT LAST_INSERT_ID()"),
    (0, "CALL conf.make()"),
    (1, "SELECT LAST_INSERT_ID()"),
    (0, "SELECT LAST_INSERT_ID()"),
    (1, "SELECT conf.last_made()"),
    (0, "BEGIN"),
    (0, "INSERT INTO conf.made (words) VALUES ('f')"),
    (1, "SELECT LAST_INSERT_ID()"),
    (0, "ROLLBACK"),
    (1, "SELECT 1"),
    (0, "SELECT LAST_INSERT_ID()"),
    (1, "INSERT INTO conf.made (id, words) VALUES (1, 'taken')"),
    (0, "SELECT 1"),
    (1, "SELECT LAST_INSERT_ID()"),
    // MySQL does not know it; MariaDB says no id in its answer.
    (0, "INSERT INTO conf.made (words) VALUES ('g') RETURNING id"),
    (1, "SELECT LAST_INSERT_ID()"),
    (0, "SELECT LAST_INSERT_ID()"),
    (
        1,
        "INSERT INTO conf.made (id, words) VALUES (NULL, 'h'), (1, 'taken')",
    ),
    (0, "SELECT LAST_INSERT_ID()"),
    (1, "SELECT LAST_INSERT_ID()"),
    (0, "UPDATE conf.made SET words = 'z' WHERE id < 3"),
    (1, "SELECT ROW_COUNT()"),
    (0, "SELECT ROW_COUNT(), LAST_INSERT_ID()"),
    (0, "SELECT ROW_COUNT()"),
];

const MADE: &str = "DROP TABLE IF EXISTS conf.made;
    CREATE TABLE conf.made (id BIGINT PRIMARY KEY AUTO_INCREMENT, words VARCHAR(99)) ENGINE=InnoDB;
    DROP PROCEDURE IF EXISTS conf.make; DROP FUNCTION IF EXISTS conf.last_made;
    CREATE PROCEDURE conf.make() INSERT INTO conf.made (words) VALUES ('by a procedure');
    CREATE FUNCTION conf.last_made() RETURNS BIGINT READS SQL DATA RETURN LAST_INSERT_ID();";

/// Returns what two clients of this port are told.
fn told(server: &Server, port: u16, pause: Duration) -> Result<Vec<String>, String> {
    server.root(MADE)?;
    let failed = |error: std::io::Error| error.to_string();
    let mut two = [
        Raw::log_in(port).map_err(failed)?,
        Raw::log_in(port).map_err(failed)?,
    ];
    while two[0].id % 2 != two[1].id % 2 {
        // Sessions of one core share its connections.
        two[1] = Raw::log_in(port).map_err(failed)?;
    }
    let mut all = Vec::new();
    for (who, sql) in SAID {
        let said = two
            .get_mut(*who)
            .ok_or("nobody")?
            .ask(sql)
            .map_err(|error| error.to_string());
        all.push(format!("{who}: {sql}: {said:?}"));
        thread::sleep(pause);
    }
    Ok(all)
}

fn last_insert_ids(driver: Driver, vendor: Vendor) -> Outcome {
    let server = Server::start(vendor)?;
    server.root(by_hand::CREATE_USER)?;
    let mut wish = Wish::in_front_of(&server);
    wish.add_open_user();
    let proxy = Proxy::start(driver, &wish)?;
    let direct = told(&server, server.port, Duration::ZERO)?;
    for (statements, pause_ms) in [(5, 40), (5, 0), (1, 0)] {
        let set = format!(
            "SET mysql-auto_increment_delay_multiplex = {statements}; LOAD MYSQL VARIABLES TO RUNTIME"
        );
        proxy.admin(&set)?;
        for (proxied, direct) in told(&server, proxy.port, Duration::from_millis(pause_ms))?
            .iter()
            .zip(&direct)
        {
            same(proxied, direct).map_err(|error| {
                format!("{statements} statements, {pause_ms} ms between: {error}")
            })?;
        }
    }
    Ok(())
}
