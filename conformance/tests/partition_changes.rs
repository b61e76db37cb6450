//! Changes of several partitions on two servers: all make them, or none, whoever is killed meanwhile.
#![forbid(unsafe_code)]

use conformance::beside::asked;
use conformance::by_hand::Raw;
use conformance::halves::{World, configured, error, log_in};
use conformance::library;
use conformance::proxy::Driver;
use conformance::servers::{Server, Vendor, vendors};
use conformance::trials::{self, expect, same, soon, vendors_in_turn};
use mysql_async::prelude::Queryable as _;
use std::thread;
use std::time::Duration;

type Outcome = Result<(), String>;

/// Attributes of the users.
const CHANGES: &str = r#"{"partition_changes":"xa"}"#;
/// A change of all partitions.
const ALL: &[&str] = &["UPDATE t SET x = x + 1"];

fn main() {
    trials::run_once(&[
        (
            "a_change_of_several_partitions_answers_as_one_of_one_table",
            together,
        ),
        (
            "rows_of_returning_come_in_the_order_of_the_statement",
            returning,
        ),
        (
            "a_change_that_one_partition_refuses_is_made_by_none",
            refused,
        ),
        ("a_change_that_nobody_waits_for_is_made_by_none", ended),
        (
            "a_change_ends_the_use_of_what_was_cached_of_its_table",
            cached,
        ),
        (
            "what_is_in_doubt_when_a_proxy_is_killed_ends_as_was_decided",
            proxy_killed,
        ),
        (
            "what_is_decided_is_done_by_a_server_that_was_killed_before",
            server_killed,
        ),
        ("the_first_outcome_that_is_written_counts", first_counts),
        (
            "a_proxy_that_stood_still_learns_that_others_have_decided",
            stood_still,
        ),
        (
            "the_sum_of_a_bank_stays_when_proxy_and_servers_are_killed",
            bank,
        ),
    ])
}

/// Statements on `t`; the same on a whole table, which has its name instead.
const TOGETHER: &[&str] = &[
    "INSERT INTO t (id, name) VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd'), (5, 'e'), (-1, 'f')",
    "UPDATE t SET x = x + 1 WHERE id IN (1, 2, 3, 77)",
    "UPDATE t SET x = 1 WHERE id < 4",
    "REPLACE INTO t (id, name, x) VALUES (1, 'z', 9), (6, 'y', 8), (7, 'x', 7)",
    "INSERT IGNORE INTO t (id, x) VALUES (1, 1), (8, 1), (2, 2)",
    "INSERT INTO t (id, x) VALUES (1, 1), (9, 1) ON DUPLICATE KEY UPDATE x = x + 100",
    "DELETE FROM t WHERE x > 100 OR id = 3",
    "UPDATE t SET name = CONCAT(name, '!') WHERE id = 10 OR id = 11",
    "DELETE FROM t",
];

#[tokio::main(flavor = "current_thread")]
async fn together(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let it = World::new(driver, vendor, CHANGES)?;
        let words = |error: mysql_async::Error| error.to_string();
        let mut parts = library::come_in(it.proxy.port).await.map_err(words)?;
        let mut whole = library::come_in(it.one.port).await.map_err(words)?;
        for sql in TOGETHER {
            let asked = sql
                .replace("INTO t ", "INTO whole ")
                .replace("FROM t", "FROM whole");
            let asked = asked.replace("UPDATE t ", "UPDATE whole ");
            whole.query_drop(&asked).await.map_err(words)?;
            parts
                .query_drop(*sql)
                .await
                .map_err(|error| format!("{vendor}: {sql}: {error}"))?;
            let said = |conn: &mysql_async::Conn| {
                let (affected, info) = (conn.affected_rows(), conn.info().into_owned());
                format!("{affected} rows, {info}, {} warnings", conn.get_warnings())
            };
            let (found, wanted) = (said(&parts), said(&whole));
            expect(found == wanted, || {
                format!("{vendor}: {sql}: {found} instead of {wanted}")
            })?;
            let rows = "SELECT * FROM t ORDER BY id";
            let found: Vec<(i32, String, i32)> = parts.query(rows).await.map_err(words)?;
            let rows = "SELECT * FROM whole ORDER BY id";
            let wanted: Vec<(i32, String, i32)> = whole.query(rows).await.map_err(words)?;
            expect(found == wanted, || {
                format!("{vendor}: {sql}: {found:?} instead of {wanted:?}")
            })?;
        }
        // Prepared, with values that need several.
        let insert = "INSERT INTO t (id, name) VALUES (?, ?), (?, ?)";
        parts
            .exec_drop(insert, (1, "it's", 2, "two"))
            .await
            .map_err(|error| format!("{vendor}: {insert}: {error}"))?;
        let changed = parts
            .exec_iter("UPDATE t SET x = ? WHERE id IN (?, ?)", (7, 1, 2))
            .await
            .map_err(|error| format!("{vendor}: prepared: {error}"))?
            .affected_rows();
        same(&changed.to_string(), "2")?;
        same(&it.rows()?, "2:7 1:7")?;
        // Numbers that are given are no numbers that a table gives.
        parts
            .query_drop("INSERT INTO numbered (k, id) VALUES (1, 5), (2, 6), (3, 7)")
            .await
            .map_err(|error| format!("{vendor}: numbered: {error}"))?;
        let last: Option<u64> = parts
            .query_first("SELECT LAST_INSERT_ID()")
            .await
            .map_err(words)?;
        expect(last == Some(0), || format!("{vendor}: {last:?}"))?;
        // Each copy of a reference table has the same, the time of a default among it.
        parts
            .query_drop("INSERT INTO kinds (id, name) VALUES (2, 'b')")
            .await
            .map_err(|error| format!("{vendor}: kinds: {error}"))?;
        let copy = "SELECT GROUP_CONCAT(id, name, at ORDER BY id) FROM conf.kinds";
        same(&it.one.root(copy)?, &it.two.root(copy)?)?;
        same(&it.prepared()?, "0 0")?;
        soon("0", || it.decisions())?;
        let counted = it.proxy.admin("SELECT Variable_Value + 0 > 5 FROM stats_mysql_global WHERE Variable_Name = 'Millrace_partition_changes'")?;
        same(&counted, "1")?;
    }
    Ok(())
}

/// Changes that are answered with rows, in an order that the statement says; and in one that it does not.
const RETURNING: &[&str] = &[
    "INSERT INTO t (id, name) VALUES (7, 'a'), (2, 'b'), (3, 'c'), (8, 'd'), (5, 'e'), (1, 'f') RETURNING id, t.name AS n, x + id, NULL",
    "INSERT IGNORE INTO t (id, x) VALUES (3, 1), (10, 1), (2, 2), (4, 9), (8, 1), (9, 3) RETURNING t.*",
    "INSERT INTO t (id, x) VALUES (8, 1), (11, 1), (3, 0), (7, 5) ON DUPLICATE KEY UPDATE x = x + VALUES(x) RETURNING id, x",
    "REPLACE INTO t (id, name, x) VALUES (1, 'z', 9), (6, 'y', 8), (7, 'x', 7), (1, 'w', 6) RETURNING id, name, x",
    "INSERT IGNORE INTO t (id) VALUES (1), (2), (3) RETURNING id",
    "INSERT IGNORE INTO t (id, x) VALUES (20, 'seven'), (21, 1), (22, 'eight') RETURNING id, x",
    "DELETE FROM t WHERE id IN (7, 3, 99) OR x > 100 RETURNING id, name",
    "DELETE FROM t WHERE id < 0 RETURNING id",
    "DELETE FROM t RETURNING id, CONCAT(t.name, '!')",
];

/// A statement's answer: columns, rows, warnings, and what is remembered of it.
async fn returned(
    conn: &mut mysql_async::Conn,
    sql: &str,
    values: Option<mysql_async::Params>,
) -> Result<String, String> {
    let words = |error: mysql_async::Error| format!("{sql}: {error}");
    let (columns, rows) = match values {
        None => {
            let mut result = conn.query_iter(sql).await.map_err(words)?;
            let columns = result.columns();
            let rows: Vec<mysql_async::Row> = result.collect().await.map_err(words)?;
            (columns, rows)
        }
        Some(values) => {
            let mut result = conn.exec_iter(sql, values).await.map_err(words)?;
            let columns = result.columns();
            let rows: Vec<mysql_async::Row> = result.collect().await.map_err(words)?;
            (columns, rows)
        }
    };
    let warnings = conn.get_warnings();
    let columns = columns.iter().flat_map(|columns| columns.iter());
    let columns: Vec<_> = columns
        .map(|column| format!("{} {:?}", column.name_str(), column.column_type()))
        .collect();
    let mut rows: Vec<_> = rows
        .into_iter()
        .map(|row| format!("{:?}", row.unwrap()))
        .collect();
    if sql.starts_with("DELETE") {
        rows.sort();
    }
    let counted: Option<(i64, i64)> = conn
        .query_first("SELECT ROW_COUNT(), LAST_INSERT_ID()")
        .await
        .map_err(words)?;
    Ok(format!(
        "{columns:?} {rows:?}, {warnings} warnings, {counted:?}"
    ))
}

#[tokio::main(flavor = "current_thread")]
async fn returning(driver: Driver) -> Outcome {
    let vendor = Vendor::MariaDb;
    let it = World::new(driver, vendor, CHANGES)?;
    let words = |error: mysql_async::Error| error.to_string();
    let mut parts = library::come_in(it.proxy.port).await.map_err(words)?;
    let mut whole = library::come_in(it.one.port).await.map_err(words)?;
    for conn in [&mut parts, &mut whole] {
        conn.query_drop("SET sql_mode = ''").await.map_err(words)?;
    }
    for sql in RETURNING {
        let asked = sql.replace("INTO t ", "INTO whole ");
        let asked = asked
            .replace("FROM t ", "FROM whole ")
            .replace("t.", "whole.");
        let wanted = returned(&mut whole, &asked, None).await?;
        let found = returned(&mut parts, sql, None).await?;
        let found = found.replace("t.", "whole.");
        expect(found == wanted, || {
            format!("{sql}: {found} instead of {wanted}")
        })?;
    }
    // Prepared: a row of the binary protocol each.
    let insert =
        "INSERT INTO t (id, name, x) VALUES (?, ?, ?), (?, ?, ?), (?, ?, ?) RETURNING name, id, x";
    let values = || mysql_async::Params::from((5, "it's", 1, 2, "b", 2, 1, "c", 3));
    let wanted = insert.replace("INTO t ", "INTO whole ");
    let wanted = returned(&mut whole, &wanted, Some(values())).await?;
    same(
        &returned(&mut parts, insert, Some(values())).await?,
        &wanted,
    )?;
    let delete = "DELETE FROM t WHERE id > ? RETURNING id, name";
    let wanted = delete.replace("FROM t ", "FROM whole ");
    let wanted = returned(&mut whole, &wanted, Some((1,).into())).await?;
    same(
        &returned(&mut parts, delete, Some((1,).into())).await?,
        &wanted,
    )?;
    same(&it.rows()?, "NULL 1:3")?;
    let mut client = log_in(it.proxy.port)?;
    for (sql, words) in [
        (
            "INSERT INTO t (id) VALUES (4), (2), (1), (3) RETURNING id",
            "1062",
        ),
        (
            "INSERT INTO numbered (k) VALUES (1), (2) RETURNING id",
            "numbers its rows by itself",
        ),
        (
            "DELETE FROM t ORDER BY id RETURNING id",
            "leave ORDER BY out",
        ),
    ] {
        let said = client.ask(sql).err();
        let said = said.map_or_else(String::new, |error| error.to_string());
        expect(said.contains(words), || format!("{sql}: {said}"))?;
        same(&it.rows()?, "NULL 1:3")?;
    }
    // One copy of a reference table tells.
    let rows = asked(
        &mut client,
        "INSERT INTO kinds (id, name) VALUES (8, 'h'), (7, 'g') RETURNING id",
    )?;
    same(&rows.concat().concat(), "87")?;
    let copy = "SELECT GROUP_CONCAT(id, name, at ORDER BY id) FROM conf.kinds";
    same(&it.one.root(copy)?, &it.two.root(copy)?)?;
    same(&it.prepared()?, "0 0")
}

fn refused(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let mut it = World::new(driver, vendor, CHANGES)?;
        let mut client = it.filled()?;
        let mut says = |it: &World, sql: &str, words: &str| {
            let said = match client.ask(sql) {
                Ok(rows) => format!("{rows:?}"),
                Err(error) => error.to_string(),
            };
            expect(said.contains(words), || format!("{vendor}: {sql}: {said}"))?;
            same(&it.rows()?, "0:0,2:0 1:0,3:0")?;
            same(&it.prepared()?, "0 0")
        };
        says(&it, "INSERT INTO t (id) VALUES (4), (5), (3)", "1062")?;
        says(
            &it,
            "INSERT INTO numbered (k) VALUES (1), (2)",
            "numbers its rows by itself",
        )?;
        says(
            &it,
            "INSERT INTO kinds (id, name) VALUES (5, UUID())",
            "UUID() would be another value",
        )?;
        says(&it, "DELETE FROM t LIMIT 3", "up to a LIMIT")?;
        says(&it, "UPDATE t SET x = x + @x", "without variables")?;
        says(&it, "SET autocommit = 0", "[]")?;
        says(&it, "DELETE FROM t", "autocommit = 0")?;
        says(&it, "SET autocommit = 1", "[]")?;
        says(&it, "BEGIN", "[]")?;
        says(&it, "SELECT x FROM t WHERE id = 0", "0")?;
        says(&it, "DELETE FROM t", "a transaction is open")?;
        says(&it, "ROLLBACK", "[]")?;
        // The table of outcomes is not there.
        it.one
            .root("RENAME TABLE millrace.decisions TO millrace.gone")?;
        says(&it, "UPDATE t SET x = 5", "cannot be written")?;
        it.one
            .root("RENAME TABLE millrace.gone TO millrace.decisions")?;
        // A row that somebody else has.
        let mut other = log_in(it.two.port)?;
        asked(&mut other, "BEGIN")?;
        asked(&mut other, "SELECT * FROM t_3 WHERE id = 3 FOR UPDATE")?;
        for server in [&it.one, &it.two] {
            server.root("SET GLOBAL innodb_lock_wait_timeout = 1")?;
        }
        drop(client);
        let mut client = log_in(it.proxy.port)?;
        asked(&mut client, "SET innodb_lock_wait_timeout = 1")?;
        let said = client.ask("UPDATE t SET x = 5").err();
        let said = said.map_or_else(String::new, |error| error.to_string());
        expect(said.starts_with("1205"), || format!("{vendor}: {said}"))?;
        same(&it.rows()?, "0:0,2:0 1:0,3:0")?;
        // Its server goes: the others roll back.
        asked(&mut client, "SET innodb_lock_wait_timeout = 100")?;
        client
            .query("UPDATE t SET x = 5")
            .map_err(|error| error.to_string())?;
        soon("1", || {
            let said = it.two.root("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE info LIKE 'UPDATE `t_3`%'")?;
            Ok(said.lines().last().unwrap_or_default().trim().to_owned())
        })?;
        it.proxy.admin(
            "SET mysql-connect_timeout_server_max = 1000; LOAD MYSQL VARIABLES TO RUNTIME",
        )?;
        it.two.kill();
        let said = error(&mut client);
        expect(said.starts_with("9001") || said.starts_with("2013"), || {
            format!("{vendor}: {said}")
        })?;
        it.two.restart()?;
        soon("0:0,2:0 1:0,3:0", || it.rows())?;
        same(&it.prepared()?, "0 0")?;
    }
    Ok(())
}

/// KILL, a time limit and a client that leaves, while one partition waits for a lock.
fn ended(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let it = World::new(driver, vendor, CHANGES)?;
        let mut client = it.filled()?;
        let mut other = log_in(it.two.port)?;
        asked(&mut other, "BEGIN")?;
        asked(&mut other, "SELECT * FROM t_3 WHERE id = 3 FOR UPDATE")?;
        let waits = || {
            let said = it.two.root("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE info LIKE 'UPDATE `t_3`%'")?;
            Ok(said.lines().last().unwrap_or_default().trim().to_owned())
        };
        // Nobody has locks there any more.
        let none_stays = || {
            soon("0", waits)?;
            let mut free = log_in(it.one.port)?;
            let sql = "SELECT COUNT(*) FROM (SELECT id FROM t_0 FOR UPDATE) AS a";
            same(&asked(&mut free, sql)?.concat().concat(), "1")?;
            same(&it.rows()?, "0:0,2:0 1:0,3:0")
        };
        let change = "UPDATE t SET x = 5";
        let id = asked(&mut client, "SELECT CONNECTION_ID()")?
            .concat()
            .concat();
        client.query(change).map_err(|error| error.to_string())?;
        soon("1", waits)?;
        let mut killer = log_in(it.proxy.port)?;
        asked(&mut killer, &format!("KILL QUERY {id}"))?;
        let said = error(&mut client);
        expect(said.starts_with("1317"), || format!("{vendor}: {said}"))?;
        none_stays()?;
        it.proxy
            .admin("SET mysql-default_query_timeout = 1000; LOAD MYSQL VARIABLES TO RUNTIME")?;
        client.query(change).map_err(|error| error.to_string())?;
        let said = error(&mut client);
        expect(said.contains("query_timeout exceeded"), || {
            format!("{vendor}: {said}")
        })?;
        none_stays()?;
        it.proxy
            .admin("SET mysql-default_query_timeout = 36000000; LOAD MYSQL VARIABLES TO RUNTIME")?;
        let mut leaving = log_in(it.proxy.port)?;
        leaving.query(change).map_err(|error| error.to_string())?;
        soon("1", waits)?;
        drop(leaving);
        none_stays()?;
        asked(&mut other, "ROLLBACK")?;
        asked(&mut client, change)?;
        same(&it.rows()?, "0:5,2:5 1:5,3:5")?;
    }
    Ok(())
}

fn cached(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let it = World::new(driver, vendor, CHANGES)?;
        let mut client = it.filled()?;
        it.proxy.admin(
            "INSERT INTO mysql_query_rules (rule_id, active, match_digest, cache_ttl, attributes, apply) VALUES (1, 1, '^SELECT x FROM t', 600000, '{\"cache_invalidate\":true}', 1); \
             LOAD MYSQL QUERY RULES TO RUNTIME",
        )?;
        let read = "SELECT x FROM t WHERE id = 3";
        same(&asked(&mut client, read)?.concat().concat(), "0")?;
        it.two.root("UPDATE conf.t_3 SET x = 1")?;
        same(&asked(&mut client, read)?.concat().concat(), "0")?;
        asked(&mut client, "UPDATE t SET x = x + 1 WHERE id IN (2, 3)")?;
        same(&asked(&mut client, read)?.concat().concat(), "2")?;
    }
    Ok(())
}

fn proxy_killed(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        for is_decided in [false, true] {
            let mut it = World::new(driver, vendor, CHANGES)?;
            drop(it.filled()?);
            let (client, mut holder) = it.in_doubt(ALL)?;
            it.proxy.kill();
            drop(client);
            if !is_decided {
                // What the dead proxy has said last is not done.
                for id in it.waiting()? {
                    asked(&mut holder, &format!("KILL {id}"))?;
                }
                soon("0", || it.waits())?;
            }
            asked(&mut holder, "UNLOCK TABLES")?;
            soon("0", || it.waits())?;
            same(&it.prepared()?, "1 1")?;
            it.proxy.restart()?;
            soon("0 0", || it.prepared())?;
            let wanted = match is_decided {
                true => "0:1,2:1 1:1,3:1",
                false => "0:0,2:0 1:0,3:0",
            };
            let found = it.rows()?;
            expect(found == wanted, || {
                format!("{vendor}: {found} instead of {wanted}\n{}", it.proxy.log())
            })?;
            let said = if is_decided {
                "committed, as was decided"
            } else {
                "rolled back"
            };
            expect(it.proxy.says(said), || it.proxy.log())?;
            let mut client = log_in(it.proxy.port)?;
            asked(&mut client, "UPDATE t SET x = 7")?;
            same(&it.rows()?, "0:7,2:7 1:7,3:7")?;
        }
    }
    Ok(())
}

fn server_killed(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let mut it = World::new(driver, vendor, CHANGES)?;
        drop(it.filled()?);
        let (mut client, mut holder) = it.in_doubt(ALL)?;
        it.two.kill();
        asked(&mut holder, "UNLOCK TABLES")?;
        // It is decided, and the client hears so.
        let said = error(&mut client);
        expect(said == "[]", || format!("{vendor}: {said}"))?;
        it.two.restart()?;
        soon("0 0", || it.prepared())?;
        same(&it.rows()?, "0:1,2:1 1:1,3:1")?;
        // The server of the outcomes goes: nobody knows, until it is back.
        let (mut client, holder) = it.in_doubt(ALL)?;
        it.one.kill();
        drop(holder);
        let said = error(&mut client);
        expect(said.contains("is not known"), || {
            format!("{vendor}: {said}")
        })?;
        it.one.restart()?;
        soon("0 0", || it.prepared())?;
        same(&it.rows()?, "0:1,2:1 1:1,3:1")?;
    }
    Ok(())
}

/// Somebody else has decided before.
fn first_counts(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let it = World::new(driver, vendor, CHANGES)?;
        drop(it.filled()?);
        let (mut client, mut holder) = it.in_doubt(ALL)?;
        let said = it.one.root("SELECT info FROM information_schema.PROCESSLIST WHERE info LIKE 'INSERT INTO `millrace`%'")?;
        let name = said.split('\'').nth(1).unwrap_or_default().to_owned();
        expect(name.starts_with("millrace-"), || said.clone())?;
        asked(
            &mut holder,
            &format!(
                "INSERT INTO millrace.decisions (transaction, outcome) VALUES ('{name}', 'abort')"
            ),
        )?;
        asked(&mut holder, "UNLOCK TABLES")?;
        let said = error(&mut client);
        expect(said.contains("took too long"), || {
            format!("{vendor}: {said}")
        })?;
        soon("0 0", || it.prepared())?;
        same(&it.rows()?, "0:0,2:0 1:0,3:0")?;
    }
    Ok(())
}

fn signal(id: u32, name: &str) -> Outcome {
    let done = std::process::Command::new("kill")
        .args([format!("-{name}"), id.to_string()])
        .status();
    let done = done.map_err(|error| error.to_string())?;
    expect(done.success(), || format!("{name}: {done}"))
}

fn stood_still(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let it = World::new(driver, vendor, CHANGES)?;
        drop(it.filled()?);
        let (mut client, mut holder) = it.in_doubt(ALL)?;
        signal(it.proxy.id(), "STOP")?;
        let other = configured(it.driver, &it.wish, CHANGES)?;
        for id in it.waiting()? {
            asked(&mut holder, &format!("KILL {id}"))?;
        }
        soon("0", || it.waits())?;
        asked(&mut holder, "UNLOCK TABLES")?;
        // MariaDB lets nobody else end a branch whose connection lives.
        if vendor == Vendor::MySql {
            soon("0 0", || it.prepared())?;
            same(&it.rows()?, "0:0,2:0 1:0,3:0")?;
        } else {
            soon("1", || it.decisions())?;
        }
        signal(it.proxy.id(), "CONT")?;
        let said = error(&mut client);
        expect(said.contains("rolled back"), || format!("{vendor}: {said}"))?;
        soon("0 0", || it.prepared())?;
        same(&it.rows()?, "0:0,2:0 1:0,3:0")?;
        drop(other);
    }
    Ok(())
}

const ACCOUNTS: u64 = 16;
const SUM: u64 = ACCOUNTS * 1000;

/// Moves money between accounts until it is told to stop; errors are what they are.
fn transfers(port: u16, seed: u64, stop: &std::sync::atomic::AtomicBool) -> u64 {
    let (mut state, mut done) = (seed, 0);
    let mut below = |limit: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % limit
    };
    let mut client: Option<Raw> = None;
    while !stop.load(std::sync::atomic::Ordering::Relaxed) {
        let Some(open) = &mut client else {
            client = log_in(port).ok();
            thread::sleep(Duration::from_millis(20));
            continue;
        };
        let (from, to, money) = (below(ACCOUNTS), below(ACCOUNTS), below(50));
        let sql = format!(
            "UPDATE t SET x = x + CASE id WHEN {from} THEN -{money} ELSE {money} END WHERE id IN ({from}, {to})"
        );
        if from == to {
            continue;
        }
        match open.ask(&sql) {
            Ok(_) => done += 1,
            Err(error) if error.kind() == std::io::ErrorKind::Other => {}
            Err(_) => client = None,
        }
    }
    done
}

fn bank(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let mut it = World::new(driver, vendor, CHANGES)?;
        let mut client = log_in(it.proxy.port)?;
        let rows: Vec<_> = (0..ACCOUNTS).map(|id| format!("({id}, 1000)")).collect();
        asked(
            &mut client,
            &format!("INSERT INTO t (id, x) VALUES {}", rows.join(", ")),
        )?;
        for server in [&it.one, &it.two] {
            server.root("SET GLOBAL innodb_lock_wait_timeout = 2")?;
        }
        it.proxy.admin("SET mysql-connect_timeout_server_max = 2000; LOAD MYSQL VARIABLES TO RUNTIME; SAVE MYSQL VARIABLES TO DISK")?;
        let stop = std::sync::atomic::AtomicBool::new(false);
        let port = it.proxy.port;
        let done = thread::scope(|scope| {
            let clients: Vec<_> = (0..4)
                .map(|seed| {
                    scope.spawn({
                        let stop = &stop;
                        move || transfers(port, seed + 1, stop)
                    })
                })
                .collect();
            let killed = kills(&mut it);
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            let done: u64 = clients.into_iter().map(|one| one.join().unwrap_or(0)).sum();
            killed.map(|()| done)
        })?;
        expect(done > 50, || format!("{vendor}: only {done} transfers"))?;
        soon("0 0", || it.prepared())?;
        let sum = |server: &Server, tables: [&str; 2]| {
            let said = server.root(&format!(
                "SELECT (SELECT SUM(x) FROM conf.{}) + (SELECT SUM(x) FROM conf.{})",
                tables[0], tables[1]
            ))?;
            let last = said.lines().last().unwrap_or_default().trim().to_owned();
            last.parse::<i64>()
                .map_err(|error| format!("{said}: {error}"))
        };
        let all = sum(&it.one, ["t_0", "t_2"])? + sum(&it.two, ["t_1", "t_3"])?;
        expect(all == SUM.cast_signed(), || {
            format!("{vendor}: {all} instead of {SUM}\n{}", it.proxy.log())
        })?;
        eprintln!("{vendor}: {done} transfers, and the sum is {all}");
    }
    Ok(())
}

/// Kills whoever is there, in turn.
fn kills(it: &mut World) -> Outcome {
    let pause = || thread::sleep(Duration::from_millis(1500));
    for _ in 0..3 {
        pause();
        it.proxy.kill();
        it.proxy.restart()?;
        pause();
        it.two.kill();
        it.two.restart()?;
        pause();
        it.one.kill();
        it.one.restart()?;
    }
    pause();
    Ok(())
}
