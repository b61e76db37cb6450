//! Look-ups: a second column of a sharded table tells its partition. Statements by it are compared with
//! one table of all rows, while rows come and go. docs/features/look-ups.md
#![forbid(unsafe_code)]

use conformance::by_hand;
use conformance::library;
use conformance::proxy::{Driver, Proxy, Wish};
use conformance::servers::{Server, Vendor, vendors};
use conformance::trials::{self, expect, same};
use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Row, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

type Outcome = Result<(), String>;

fn main() {
    trials::run_once(&[("rows_are_found_by_another_column", found)])
}

/// Two servers with partitions of `users`, and a table with all rows on the first.
struct World {
    vendor: Vendor,
    one: Server,
    _two: Server,
    proxy: Proxy,
}

const USERS: &str = "(id INT NOT NULL, nickname VARCHAR(30) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci NOT NULL, \
     email VARCHAR(60) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci, phone VARCHAR(20) CHARACTER SET latin1 NOT NULL DEFAULT '', \
     age INT, PRIMARY KEY (id, nickname), KEY (email)) ENGINE=InnoDB";
const RIGHTS: &str = "CREATE USER monitor@'%' IDENTIFIED BY 'monitor'; \
     GRANT SELECT, INSERT, UPDATE, CREATE, LOCK TABLES, TRIGGER ON conf.* TO monitor@'%'; GRANT ALL ON *.* TO app@'%'";
const DECISIONS: &str = "CREATE DATABASE millrace; CREATE TABLE millrace.decisions (transaction VARCHAR(64) CHARACTER SET ascii PRIMARY KEY, \
    outcome VARCHAR(8) NOT NULL, at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP) ENGINE=InnoDB; \
    GRANT SELECT, INSERT ON millrace.decisions TO monitor@'%'";
const MAP: &str = "INSERT INTO mysql_shard_tables (table_name, key_column, key_type, `function`, default_table, default_hostgroup) \
        VALUES ('users', 'nickname', 'VARCHAR', 'PREFIX(3)', 'users_default', 1); \
     INSERT INTO mysql_shard_partitions (table_name, partition_name, partition_value, hostgroup_id) VALUES \
        ('users', 'nick1', 'mar', 1), ('users', 'nick2', 'foo', 2), ('users', 'nick3', 'bar', 2); \
     LOAD MYSQL SHARDS TO RUNTIME; \
     UPDATE mysql_users SET attributes = '{\"partition_changes\":\"xa\"}'; LOAD MYSQL USERS TO RUNTIME; \
     SET mysql-sharding_decisions = 'millrace.decisions'; SET mysql-sharding_decisions_hostgroup = 1; \
     SET mysql-sharding_move_rows_at_once = 100; LOAD MYSQL VARIABLES TO RUNTIME";

fn world(driver: Driver, vendor: Vendor) -> Result<World, String> {
    let (one, two) = (Server::start(vendor)?, Server::start(vendor)?);
    for server in [&one, &two] {
        server.root(by_hand::CREATE_USER)?;
        server.root(RIGHTS)?;
        if vendor == Vendor::MySql {
            server.root("GRANT XA_RECOVER_ADMIN ON *.* TO monitor@'%'")?;
        }
    }
    one.root(&format!(
        "USE conf; CREATE TABLE users_default {USERS}; CREATE TABLE users_nick1 {USERS}; CREATE TABLE whole_users {USERS}; {DECISIONS}"
    ))?;
    two.root(&format!(
        "USE conf; CREATE TABLE users_nick2 {USERS}; CREATE TABLE users_nick3 {USERS}"
    ))?;
    let mut wish = Wish::in_front_of(&one);
    for (server, hostgroup) in [(&one, 1), (&two, 2)] {
        wish.add(hostgroup, server);
    }
    wish.add_open_user();
    let proxy = Proxy::start(driver, &wish)?;
    proxy.admin(MAP)?;
    Ok(World {
        vendor,
        one,
        _two: two,
        proxy,
    })
}

impl World {
    /// Statements that have needed all partitions so far.
    fn scans(&self) -> Result<String, String> {
        self.proxy
            .admin("SELECT all_partitions + some_partitions FROM stats_mysql_shards")
            .map(|said| said.lines().last().unwrap_or_default().to_owned())
    }

    fn counter(&self, name: &str) -> Result<u64, String> {
        let sql =
            format!("SELECT Variable_Value FROM stats_mysql_global WHERE Variable_Name = '{name}'");
        let said = self.proxy.admin(&sql)?;
        let last = said.lines().last().unwrap_or_default();
        last.trim().parse().map_err(|_| format!("{name}: {said}"))
    }
}

/// A client of the proxy, and one of the server that has all rows.
struct Beside {
    vendor: Vendor,
    parts: Conn,
    whole: Conn,
}

impl Beside {
    async fn of(it: &World) -> Result<Self, String> {
        let words = |error: mysql_async::Error| error.to_string();
        Ok(Self {
            vendor: it.vendor,
            parts: library::come_in(it.proxy.port).await.map_err(words)?,
            whole: library::come_in(it.one.port).await.map_err(words)?,
        })
    }

    /// Says a statement about `{users}` to both, which must answer the same.
    async fn say(&mut self, sql: &str, values: &[Value]) -> Outcome {
        let found = said(&mut self.parts, &sql.replace("{users}", "users"), values).await;
        let whole = sql.replace("{users}", "whole_users");
        let wanted = said(&mut self.whole, &whole, values).await;
        let vendor = self.vendor;
        expect(found == wanted, || {
            format!("{vendor}: {sql} {values:?}: {found} instead of {wanted}")
        })
    }

    async fn refused(&mut self, sql: &str, words: &str) -> Outcome {
        let found = said(&mut self.parts, &sql.replace("{users}", "users"), &[]).await;
        let vendor = self.vendor;
        expect(found.contains(words), || {
            format!("{vendor}: {sql}: {found} instead of {words}")
        })
    }
}

/// Rows, or what a client is told of a change.
async fn said(conn: &mut Conn, sql: &str, values: &[Value]) -> String {
    let rows: Result<Vec<Row>, _> = match values.is_empty() {
        true => conn.query(sql).await,
        false => conn.exec(sql, values.to_vec()).await,
    };
    match rows {
        Ok(rows) => {
            let mut rows: Vec<_> = rows
                .into_iter()
                .map(|row| {
                    let cells = row.unwrap().into_iter();
                    let cells = cells.map(|cell| cell.as_sql(true).replace('\'', ""));
                    cells.collect::<Vec<_>>().join(",")
                })
                .collect();
            rows.sort();
            format!("{} changed, {}", conn.affected_rows(), rows.join("; "))
        }
        Err(mysql_async::Error::Server(error)) if error.message.contains("HSCALE") => error.message,
        Err(mysql_async::Error::Server(error)) => format!("error {}", error.code),
        Err(error) => format!("{error}"),
    }
}

const BY_EMAIL: &str = "SELECT id, nickname, email FROM {users} WHERE email = ";

#[tokio::main(flavor = "current_thread")]
async fn found(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let it = world(driver, vendor)?;
        let within = |words: String| format!("{vendor}: {words}");
        added_while_rows_come(&it).await.map_err(within)?;
        let mut both = Beside::of(&it).await?;
        asked(&it, &mut both).await.map_err(within)?;
        changed(&it, &mut both).await.map_err(within)?;
        at_random(&it, &mut both).await.map_err(within)?;
        refused(&it, &mut both).await.map_err(within)?;
    }
    Ok(())
}

/// Rows of before, rows that come while the look-up is filled, and one of a transaction that was open
/// when it was added: each is found by its email at one partition.
async fn added_while_rows_come(it: &World) -> Outcome {
    let words = |error: mysql_async::Error| error.to_string();
    let mut both = Beside::of(it).await?;
    for first in (0..800).step_by(100) {
        let nicknames = ["marvel", "foobar", "barney", "other"];
        let rows = (first..first + 100).map(|id| {
            let nickname = nicknames[id % 4];
            format!("({id}, '{nickname}{id}', 'old{id}@x', '{}')", id % 50)
        });
        let rows = rows.collect::<Vec<_>>().join(", ");
        both.say(
            &format!("INSERT INTO {{users}} (id, nickname, email, phone) VALUES {rows}"),
            &[],
        )
        .await?;
    }
    let mut open = library::come_in(it.proxy.port).await.map_err(words)?;
    open.query_drop("/* hostgroup=1 */ BEGIN")
        .await
        .map_err(words)?;
    let late = "INSERT INTO users (id, nickname, email) VALUES (9999, 'marlate', 'late@x')";
    open.query_drop(late).await.map_err(words)?;
    // Nothing but the look-up is missing.
    let again = it.proxy.admin("HSCALE FILL_LOOKUP('users', 'email')");
    expect(
        again.is_err_and(|words| words.contains("has no look-up")),
        || "a look-up that is not there was filled".to_owned(),
    )?;
    it.proxy.admin("HSCALE ADD_LOOKUP('users', 'email', 2)")?;
    it.proxy
        .admin("HSCALE ADD_LOOKUP('users', 'phone', 1, 'conf.phones')")?;
    let (ends, next) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicU32::new(0)),
    );
    let writer = {
        let (ends, next, port) = (ends.clone(), next.clone(), it.proxy.port);
        std::thread::spawn(move || write_meanwhile(port, &ends, &next))
    };
    let filled = {
        let commits = async {
            tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
            open.query_drop("COMMIT").await.map_err(words)
        };
        let fills = async {
            let admin = it.proxy.admin_port;
            let fill = tokio::task::spawn_blocking(move || {
                let fill =
                    "HSCALE FILL_LOOKUP('users', 'email'); HSCALE FILL_LOOKUP('users', 'phone')";
                conformance::proxy::command_line(admin, "admin", "admin", &[], fill)
            });
            fill.await.map_err(|error| error.to_string())?
        };
        let (committed, filled) = tokio::join!(commits, fills);
        committed.and(filled)
    };
    ends.store(true, Ordering::Relaxed);
    let written = writer
        .join()
        .map_err(|_| "the writer has ended".to_owned())??;
    filled?;
    expect(written > 0, || "nothing was written meanwhile".to_owned())?;
    same(
        &it.proxy
            .admin("SELECT column_name, state FROM runtime_mysql_shard_lookups ORDER BY 1")?,
        "email\tREADY\nphone\tREADY",
    )?;
    let scans = it.scans()?;
    let mut client = library::come_in(it.proxy.port).await.map_err(words)?;
    let emails = (0..800)
        .step_by(37)
        .map(|id| (id, format!("old{id}@x")))
        .chain((0..written).map(|id| (10_000 + id, format!("new{id}@x"))))
        .chain([(9999, "late@x".to_owned())]);
    for (id, email) in emails {
        let found: Option<u32> = client
            .exec_first("SELECT id FROM users WHERE email = ?", (&email,))
            .await
            .map_err(words)?;
        expect(found.is_some_and(|found| found % 1_000_000 == id), || {
            format!("{email}: {found:?} instead of {id}")
        })?;
    }
    same(&it.scans()?, &scans)?;
    client
        .query_drop("DELETE FROM users WHERE id >= 9999")
        .await
        .map_err(words)
}

/// Inserts rows, and gives them other ids, behind and before those that are read; how many.
#[tokio::main(flavor = "current_thread")]
async fn write_meanwhile(port: u16, ends: &AtomicBool, next: &AtomicU32) -> Result<u32, String> {
    let words = |error: mysql_async::Error| error.to_string();
    let mut client = library::come_in(port).await.map_err(words)?;
    while !ends.load(Ordering::Relaxed) {
        let id = next.load(Ordering::Relaxed);
        let nickname = ["marvel", "foobar", "barney", "other"][id as usize % 4];
        let sql = format!(
            "INSERT INTO users (id, nickname, email) VALUES ({}, '{nickname}', 'new{id}@x')",
            10_000 + id
        );
        client.query_drop(sql).await.map_err(words)?;
        let sql = format!(
            "UPDATE users SET id = id + 1000000 WHERE nickname = '{nickname}' AND id = {}",
            10_000 + id
        );
        client.query_drop(sql).await.map_err(words)?;
        next.store(id + 1, Ordering::Relaxed);
    }
    Ok(next.load(Ordering::Relaxed))
}

/// Whatever is asked by email is answered as by one table; what is looked up needs one partition.
async fn asked(it: &World, both: &mut Beside) -> Outcome {
    let explained = it
        .proxy
        .admin("EXPLAIN ROUTE 'SELECT id FROM users WHERE email = ''old3@x''' IN conf")?;
    expect(
        explained.contains("users: its email is looked up on hostgroup 2: (SELECT 0, in_bucket FROM `users_email_lookup`"),
        || explained.clone(),
    )?;
    let scans = it.scans()?;
    for sql in [
        "SELECT id FROM {users} WHERE email = 'old3@x'",
        "SELECT id FROM {users} WHERE 'OLD3@X' = email AND age IS NULL",
        "SELECT id FROM {users} WHERE email = 'old3@x ' FOR UPDATE",
        "SELECT u.id FROM {users} AS u WHERE u.email IN ('old3@x', 'old7@x')",
        "SELECT COUNT(*) FROM conf.{users} WHERE email = 'old3@x'",
        "UPDATE {users} SET age = 7 WHERE email = 'old3@x'",
        "DELETE FROM {users} WHERE email = 'old5@x' AND phone = '5'",
    ] {
        both.say(sql, &[]).await?;
    }
    for email in ["old3@x", "OLD4@x", "old11@x"] {
        let sql = format!("{BY_EMAIL}?");
        both.say(&sql, &[email.into()]).await?;
        both.say(
            "UPDATE {users} SET age = ? WHERE email = ?",
            &[8.into(), email.into()],
        )
        .await?;
    }
    both.say("/* hostgroup=1 */ BEGIN", &[]).await?;
    both.say(&format!("{BY_EMAIL}'old3@x'"), &[]).await?;
    both.say("COMMIT", &[]).await?;
    same(&it.scans()?, &scans)?;
    // These are asked everywhere.
    for sql in [
        "SELECT id FROM {users} WHERE email = 'nobody@x'",
        "SELECT id FROM {users} WHERE email = 'old3@x' OR id = 8",
        "SELECT id FROM {users} WHERE email LIKE 'old3%'",
        "SELECT id FROM {users} WHERE email = _binary'OLD3@x'",
        "SELECT id FROM {users} WHERE email = CONCAT('old', '3@x')",
        "SELECT COUNT(*) FROM {users} WHERE phone = '7'",
        "SELECT COUNT(*) FROM {users} WHERE email IS NULL",
    ] {
        both.say(sql, &[]).await?;
    }
    let missed = it.counter("Millrace_lookups_missed")?;
    expect(missed > 0, || "no look-up has missed".to_owned())
}

/// Rows that are written one way or another are found afterwards.
async fn changed(it: &World, both: &mut Beside) -> Outcome {
    let steps: &[(&str, &[&str])] = &[
        (
            "INSERT INTO {users} (id, nickname, email) VALUES (3000, 'martha', 'a@x')",
            &["a@x"],
        ),
        (
            "INSERT INTO {users} (id, nickname, email) VALUES (3001, 'foolish', 'A@x'), (3002, 'bart', 'b@x'), (3003, 'nobody', NULL)",
            &["a@x", "B@X"],
        ),
        (
            "INSERT INTO {users} SET id = 3004, nickname = 'nob', email = 'c@x'",
            &["c@x"],
        ),
        (
            "INSERT INTO {users} VALUES (3005, 'marc', 'd@x', '1', 1)",
            &["d@x"],
        ),
        (
            "INSERT INTO {users} (id, nickname) VALUES (3006, 'marc')",
            &["d@x"],
        ),
        (
            "UPDATE {users} SET email = 'e@x' WHERE nickname = 'martha'",
            &["e@x", "a@x"],
        ),
        (
            "UPDATE {users} SET email = 'f@x', age = 5 WHERE email = 'e@x'",
            &["f@x", "e@x"],
        ),
        (
            "UPDATE {users} SET nickname = 'barbar', phone = '9' WHERE email = 'f@x'",
            &["f@x"],
        ),
        (
            "UPDATE {users} SET nickname = 'foofoo', email = 'g@x', phone = '77' WHERE id = 3000",
            &["g@x", "f@x"],
        ),
        (
            "UPDATE {users} SET nickname = 'foofoo', email = 'h@x', phone = '77' WHERE nickname = 'foofoo'",
            &["h@x"],
        ),
        (
            "UPDATE {users} SET email = 'i@x' WHERE age = 5",
            &["i@x", "h@x"],
        ),
        ("UPDATE {users} SET email = NULL WHERE id = 3002", &["b@x"]),
        (
            "REPLACE INTO {users} (id, nickname, email) VALUES (3004, 'nob', 'j@x')",
            &["j@x", "c@x"],
        ),
        (
            "INSERT INTO {users} (id, nickname, email) VALUES (3004, 'nob', 'k@x') ON DUPLICATE KEY UPDATE email = VALUES(email)",
            &["k@x", "j@x"],
        ),
        (
            "INSERT INTO {users} (id, nickname, email) VALUES (3004, 'nob', 'k@x') ON DUPLICATE KEY UPDATE email = 'l@x'",
            &["k@x", "l@x"],
        ),
        ("DELETE FROM {users} WHERE email = 'l@x'", &["l@x"]),
        (
            "INSERT INTO {users} (id, nickname, email) VALUES (3007, 'foo', 'l@x')",
            &["l@x"],
        ),
        (
            "INSERT IGNORE INTO {users} (id, nickname, email) VALUES (3007, 'foo', 'm@x')",
            &["m@x", "l@x"],
        ),
        (
            "INSERT INTO {users} (id, nickname, email) VALUES (3007, 'foo', 'n@x')",
            &["n@x"],
        ),
    ];
    for (sql, emails) in steps {
        both.say(sql, &[]).await?;
        for email in *emails {
            both.say(&format!("{BY_EMAIL}'{email}'"), &[]).await?;
        }
    }
    let insert = "INSERT INTO {users} (id, nickname, email) VALUES (?, ?, ?)";
    for (id, nickname, email) in [(3100, "marvin", "it's \\ é@x"), (3101, "fool", "p@x")] {
        let values = [id.into(), nickname.into(), email.into()];
        both.say(insert, &values).await?;
        both.say(&format!("{BY_EMAIL}?"), &[email.into()]).await?;
    }
    // What is rolled back is not there, and what others see in a transaction neither.
    both.say("/* hostgroup=1 */ BEGIN", &[]).await?;
    both.say(insert, &[3200.into(), "marvin".into(), "q@x".into()])
        .await?;
    both.say(&format!("{BY_EMAIL}'q@x'"), &[]).await?;
    both.say("ROLLBACK", &[]).await?;
    both.say(&format!("{BY_EMAIL}'q@x'"), &[]).await?;
    // Another collation, and a default.
    both.say("SELECT id FROM {users} WHERE phone = '77'", &[])
        .await?;
    both.say("SELECT COUNT(*) FROM {users} WHERE phone = ''", &[])
        .await?;
    expect(it.counter("Millrace_lookups_written")? > 20, || {
        "entries were not counted".to_owned()
    })
}

/// Random changes and questions, some of them in transactions.
async fn at_random(it: &World, both: &mut Beside) -> Outcome {
    let mut state: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut random = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    for turn in 0..150 {
        let nickname = ["mara", "marb", "fooa", "foob", "bara", "zoe"][random(6) as usize];
        let (id, email) = (5000 + random(12), format!("r{}@x", random(8)));
        let other = format!("R{}@X", random(8));
        let sql = match random(9) {
            0 | 1 => format!(
                "INSERT INTO {{users}} (id, nickname, email) VALUES ({id}, '{nickname}', '{email}')"
            ),
            2 => format!(
                "REPLACE INTO {{users}} (id, nickname, email) VALUES ({id}, '{nickname}', '{email}')"
            ),
            3 => format!(
                "UPDATE {{users}} SET email = '{other}' WHERE nickname = '{nickname}' AND id = {id}"
            ),
            4 => format!("UPDATE {{users}} SET email = '{other}' WHERE email = '{email}'"),
            5 => format!("DELETE FROM {{users}} WHERE email = '{email}' AND id = {id}"),
            6 => {
                format!("UPDATE {{users}} SET age = age + 1 WHERE email IN ('{email}', '{other}')")
            }
            7 => format!(
                "INSERT INTO {{users}} (id, nickname, email) VALUES ({id}, '{nickname}', '{email}') ON DUPLICATE KEY UPDATE email = VALUES(email)"
            ),
            _ => format!("DELETE FROM {{users}} WHERE nickname = '{nickname}' AND id = {id}"),
        };
        both.say(&sql, &[]).await?;
        both.say(&format!("{BY_EMAIL}'{email}'"), &[]).await?;
        if turn % 50 == 0 {
            both.say(
                "SELECT id, nickname, email, age FROM {users} WHERE id >= 5000",
                &[],
            )
            .await?;
        }
    }
    let asked = it.counter("Millrace_lookups_asked")?;
    expect(asked > 150, || format!("{asked} questions only"))
}

async fn refused(it: &World, both: &mut Beside) -> Outcome {
    for (sql, words) in [
        (
            "INSERT INTO {users} (id, nickname, email) VALUES (1, 'a', LOWER('A'))",
            "must be written out",
        ),
        (
            "UPDATE {users} SET email = CONCAT(email, 'x') WHERE nickname = 'marvel0'",
            "must be written out",
        ),
        (
            "UPDATE {users} SET nickname = 'foox' WHERE nickname = 'marvel0'",
            "set email as well",
        ),
        (
            "INSERT INTO {users} (id, nickname, email) SELECT id, nickname, email FROM whole_users",
            "get no entry",
        ),
        ("ALTER TABLE {users} MODIFY email VARCHAR(100)", "looked up"),
        (
            "ALTER TABLE {users} CONVERT TO CHARACTER SET latin1",
            "looked up",
        ),
        ("CREATE UNIQUE INDEX u ON {users} (email)", "unique key"),
    ] {
        both.refused(sql, words).await?;
    }
    for (sql, words) in [
        (
            "HSCALE ADD_LOOKUP('users', 'email', 1)",
            "has a look-up already",
        ),
        (
            "HSCALE ADD_LOOKUP('users', 'nickname', 1)",
            "needs no look-up",
        ),
        ("HSCALE ADD_LOOKUP('users', 'nothing', 1)", "no such column"),
        ("HSCALE ADD_LOOKUP('others', 'email', 1)", "is not set up"),
        ("HSCALE FILL_LOOKUP('users', 'email')", "is READY"),
        (
            "UPDATE mysql_shard_tables SET key_type = 'VARCHAR BINARY'; LOAD MYSQL SHARDS TO RUNTIME",
            "bucket_of",
        ),
    ] {
        let said = it.proxy.admin(sql);
        expect(
            said.as_ref().is_err_and(|said| said.contains(words)),
            || format!("{sql}: {said:?} instead of {words}"),
        )?;
    }
    Ok(())
}
