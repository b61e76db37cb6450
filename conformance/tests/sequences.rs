//! Rows of sharded tables get their numbers from a sequence: clients see what AUTO_INCREMENT of one
//! table would show, and no number is given twice.
#![forbid(unsafe_code)]

use conformance::beside::asked;
use conformance::by_hand::{self, Raw};
use conformance::library;
use conformance::proxy::{Driver, Proxy, Wish};
use conformance::servers::{Server, Vendor, vendors};
use conformance::trials::{self, expect, same};
use mysql_async::prelude::Queryable as _;
use std::collections::BTreeSet;
use std::thread;

type Outcome = Result<(), String>;

fn main() {
    trials::run_once(&[
        (
            "numbered_rows_are_as_those_of_one_table_with_auto_increment",
            as_one_table,
        ),
        ("no_number_is_given_twice_by_two_proxies", twice),
        ("what_cannot_be_numbered_is_refused_in_a_sentence", refused),
    ])
}

/// As the page has it.
const SEQUENCES: &str = "CREATE DATABASE millrace; \
    CREATE TABLE millrace.sequences (name VARCHAR(129) PRIMARY KEY, next_number BIGINT UNSIGNED NOT NULL) ENGINE=InnoDB; \
    INSERT INTO millrace.sequences VALUES ('orders', 1), ('notes', 1); GRANT ALL ON *.* TO app@'%'";
const COLUMNS: &str = "(id BIGINT AUTO_INCREMENT PRIMARY KEY, customer INT NOT NULL, what VARCHAR(20), UNIQUE (what))";
const MAP: &str = "INSERT INTO mysql_shard_tables (table_name, key_column, key_type, `function`, default_table, default_hostgroup) \
        VALUES ('orders', 'customer', 'INT', 'MOD(2)', 'orders_0', 1), ('notes', 'id', 'BIGINT', 'MOD(2)', 'notes_0', 1); \
     INSERT INTO mysql_shard_partitions (table_name, partition_name, partition_value, hostgroup_id) VALUES \
        ('orders', '1', '1', 2), ('notes', '1', '1', 2); \
     LOAD MYSQL SHARDS TO RUNTIME; HSCALE ADD_SEQUENCE('orders', 'id'); HSCALE ADD_SEQUENCE('notes', 'id'); \
     UPDATE mysql_users SET attributes = '{\"partition_changes\":\"xa\"}'; LOAD MYSQL USERS TO RUNTIME; SAVE MYSQL USERS TO DISK; \
     SET mysql-sharding_decisions = 'millrace.decisions'; SET mysql-sharding_decisions_hostgroup = 1; \
     SET mysql-sharding_sequences = 'millrace.sequences'; SET mysql-sharding_sequences_hostgroup = 1; \
     LOAD MYSQL VARIABLES TO RUNTIME; SAVE MYSQL VARIABLES TO DISK";

/// Two servers with a partition of each table; the first has the sequences.
struct World {
    one: Server,
    two: Server,
    proxy: Proxy,
    wish: Wish,
}

fn world(driver: Driver, vendor: Vendor) -> Result<World, String> {
    let (one, two) = (Server::start(vendor)?, Server::start(vendor)?);
    for server in [&one, &two] {
        server.root(by_hand::CREATE_USER)?;
        server.root("GRANT ALL ON *.* TO app@'%'")?;
    }
    one.root(&format!(
        "{SEQUENCES}; CREATE TABLE millrace.decisions (transaction VARCHAR(64) CHARACTER SET ascii PRIMARY KEY, \
         outcome VARCHAR(8) NOT NULL, at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP) ENGINE=InnoDB; \
         USE conf; CREATE TABLE orders_0 {COLUMNS}; CREATE TABLE notes_0 {COLUMNS}; CREATE TABLE whole {COLUMNS}"
    ))?;
    two.root(&format!(
        "USE conf; CREATE TABLE orders_1 {COLUMNS}; CREATE TABLE notes_1 {COLUMNS}"
    ))?;
    let mut wish = Wish::in_front_of(&one);
    for (server, hostgroup) in [(&one, 1), (&two, 2)] {
        wish.add(hostgroup, server);
    }
    wish.add_open_user();
    let proxy = Proxy::start(driver, &wish)?;
    proxy.admin(MAP)?;
    Ok(World {
        one,
        two,
        proxy,
        wish,
    })
}

/// Statements on a table of which one partition is on each server.
const TEXTS: &[&str] = &[
    "INSERT INTO t (customer, what) VALUES (1, 'a')",
    "INSERT INTO t (customer, what) VALUES (2, 'b'), (4, 'c'), (6, 'd')",
    "INSERT INTO t (customer, what) VALUES (1, 'e'), (2, 'f'), (3, 'g')",
    "INSERT INTO t (id, customer, what) VALUES (NULL, 1, 'h')",
    "INSERT INTO t (customer, id, what) VALUES (2, DEFAULT, 'i')",
    "INSERT INTO t SET customer = 3, what = 'j'",
    "REPLACE INTO t (customer, what) VALUES (2, 'k')",
    "UPDATE t SET what = what WHERE customer = 77",
    "SELECT COUNT(*) FROM t WHERE customer = 1",
];

/// Affected rows and the insert id of the answer, and what `LAST_INSERT_ID()` is then.
async fn said(conn: &mut mysql_async::Conn, sql: &str) -> Result<String, String> {
    let words = |error: mysql_async::Error| format!("{sql}: {error}");
    conn.query_drop(sql).await.map_err(words)?;
    let (affected, id) = (conn.affected_rows(), conn.last_insert_id());
    let last: Option<u64> = conn
        .query_first("SELECT LAST_INSERT_ID()")
        .await
        .map_err(words)?;
    Ok(format!("{affected} rows, id {id:?}, last {last:?}"))
}

#[tokio::main(flavor = "current_thread")]
async fn as_one_table(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let it = world(driver, vendor)?;
        it.proxy
            .admin("SET mysql-sharding_sequence_block = 1; LOAD MYSQL VARIABLES TO RUNTIME")?;
        let words = |error: mysql_async::Error| error.to_string();
        for table in ["orders", "notes"] {
            it.one.root("TRUNCATE conf.whole")?;
            let mut parts = library::come_in(it.proxy.port).await.map_err(words)?;
            let mut whole = library::come_in(it.one.port).await.map_err(words)?;
            for sql in TEXTS {
                let of = |table: &str| {
                    sql.replace(" t ", &format!(" {table} "))
                        .replace("UPDATE t", &format!("UPDATE {table}"))
                };
                let found = said(&mut parts, &of(table)).await?;
                let wanted = said(&mut whole, &of("whole")).await?;
                same(&found, &wanted)
                    .map_err(|error| format!("{vendor}, {table}: {sql}: {error}"))?;
            }
            for round in 0..3 {
                // In a transaction, as its number leads, and with values of its own.
                let customer = 1 + round % 2;
                let what = format!("p{round}");
                for (conn, table) in [(&mut parts, table), (&mut whole, "whole")] {
                    let insert = format!("INSERT INTO {table} (customer, what) VALUES (?, ?)");
                    conn.exec_drop(insert, (customer, &what))
                        .await
                        .map_err(|error| format!("{vendor}, {table}, prepared: {error}"))?;
                }
                same(
                    &format!("{:?}", parts.last_insert_id()),
                    &format!("{:?}", whole.last_insert_id()),
                )
                .map_err(|error| format!("{vendor}, {table}, prepared: {error}"))?;
            }
            let rows = |table: &str| format!("SELECT id, customer, what FROM {table} ORDER BY id");
            type Row = (u64, i32, String);
            let found: Vec<Row> = parts.query(rows(table)).await.map_err(words)?;
            let wanted: Vec<Row> = whole.query(rows("whole")).await.map_err(words)?;
            expect(found == wanted, || {
                format!("{vendor}, {table}: {found:?} instead of {wanted:?}")
            })?;
        }
        in_a_transaction(&it, vendor)?;
    }
    Ok(())
}

/// A row's number is known in its transaction, where another statement asks for it.
fn in_a_transaction(it: &World, vendor: Vendor) -> Outcome {
    let words = |error: std::io::Error| error.to_string();
    let mut client = Raw::log_in(it.proxy.port).map_err(words)?;
    for sql in [
        "USE conf",
        "/* hostgroup=2 */ BEGIN",
        "INSERT INTO orders (customer, what) VALUES (1, 'x'), (3, 'y')",
    ] {
        asked(&mut client, sql)?;
    }
    let last = asked(&mut client, "SELECT LAST_INSERT_ID()")?
        .concat()
        .concat();
    let row = "SELECT what FROM orders WHERE customer = 1 AND id = LAST_INSERT_ID()";
    same(&asked(&mut client, row)?.concat().concat(), "x")
        .map_err(|error| format!("{vendor}: {error}"))?;
    let next =
        "INSERT INTO orders (customer, what) VALUES (1, 'x') ON DUPLICATE KEY UPDATE what = 'xx'";
    // A row that is there keeps its number, and that is the answer's.
    same(
        &client
            .ask(next)
            .map(|rows| rows.len().to_string())
            .map_err(words)?,
        "0",
    )?;
    same(
        &asked(&mut client, "SELECT LAST_INSERT_ID()")?
            .concat()
            .concat(),
        &last,
    )
    .map_err(|error| format!("{vendor}, a row that was there: {error}"))?;
    asked(&mut client, "COMMIT")?;
    Ok(())
}

/// Four clients at each of two proxies, of which one is killed and comes back.
fn twice(driver: Driver) -> Outcome {
    let mut it = world(driver, Vendor::MariaDb)?;
    let other = Proxy::start(driver, &it.wish)?;
    other.admin(MAP)?;
    const ROWS: usize = 150;
    let written = |port: u16, nth: usize| {
        thread::spawn(move || {
            let mut numbers = Vec::new();
            let Ok(mut client) = Raw::log_in(port) else {
                return numbers;
            };
            let _in = client.ask("USE conf");
            for row in 0..ROWS {
                let (table, what) = (["orders", "notes"][row % 2], format!("{port}.{nth}.{row}"));
                let insert =
                    format!("INSERT INTO {table} (customer, what) VALUES ({row}, '{what}')");
                if client.ask(&insert).is_err() {
                    return numbers;
                }
                let last = client.ask("SELECT LAST_INSERT_ID()");
                let Ok(last) = last.map(|rows| rows.concat().concat()) else {
                    return numbers;
                };
                numbers.push((table, last, what));
            }
            numbers
        })
    };
    let (first, second) = (it.proxy.port, other.port);
    let clients: Vec<_> = (0..4)
        .flat_map(|nth| [written(first, nth), written(second, nth)])
        .collect();
    thread::sleep(std::time::Duration::from_millis(300));
    it.proxy.kill();
    it.proxy.restart()?;
    let mut told = Vec::new();
    for client in clients {
        told.extend(client.join().map_err(|_| "a client panicked")?);
    }
    let again: Vec<_> = (9..11).map(|nth| written(it.proxy.port, nth)).collect();
    for client in again {
        let numbers = client.join().map_err(|_| "a client panicked")?;
        same(&numbers.len().to_string(), &ROWS.to_string())?;
        told.extend(numbers);
    }
    expect(told.len() >= 4 * ROWS + 2 * ROWS, || {
        format!("{} rows", told.len())
    })?;
    let known: BTreeSet<_> = told.iter().map(|(table, id, _)| (table, id)).collect();
    expect(known.len() == told.len(), || {
        "a number was told twice".into()
    })?;
    // Each row has the number that its client was told.
    let mut rows = BTreeSet::new();
    for (server, tables) in [
        (&it.one, ["orders_0", "notes_0"]),
        (&it.two, ["orders_1", "notes_1"]),
    ] {
        for table in tables {
            let said = server.root(&format!("SELECT id, what FROM conf.{table}"))?;
            let name = table.split('_').next().unwrap_or_default();
            for line in said.lines().filter(|line| line.contains('.')) {
                rows.insert(format!("{name} {}", line.replace('\t', " ")));
            }
        }
    }
    for (table, id, what) in &told {
        expect(rows.contains(&format!("{table} {id} {what}")), || {
            format!("{what} of {table} has not the number {id}")
        })?;
    }
    Ok(())
}

fn refused(driver: Driver) -> Outcome {
    let vendor = Vendor::MariaDb;
    let it = world(driver, vendor)?;
    let words = |error: std::io::Error| error.to_string();
    let mut client = Raw::log_in(it.proxy.port).map_err(words)?;
    asked(&mut client, "USE conf")?;
    let mut refusal = |sql: &str| match client.ask(sql) {
        Ok(rows) => format!("{rows:?}"),
        Err(error) => error.to_string(),
    };
    let insert = "INSERT INTO orders (customer, what) VALUES (1, 'a')";
    for (sql, wanted) in [
        (
            "INSERT INTO orders (id, customer) VALUES (0, 1)",
            "say NULL, or leave the column out",
        ),
        (
            "INSERT INTO orders (id, customer) VALUES (1 + 1, 1)",
            "no plain number",
        ),
        (
            "INSERT INTO orders (customer) VALUES (1), (3) ON DUPLICATE KEY UPDATE what = 'x'",
            "say it row by row",
        ),
    ] {
        let said = refusal(sql);
        expect(
            said.contains("HSCALE-1000") && said.contains(wanted),
            || format!("{sql}: {said}"),
        )?;
    }
    it.one
        .root("DELETE FROM millrace.sequences WHERE name = 'orders'")?;
    let said = refusal(insert);
    expect(
        said.contains("INSERT INTO `millrace`.`sequences` (name, next_number) VALUES ('orders', "),
        || said.clone(),
    )?;
    it.one
        .root("RENAME TABLE millrace.sequences TO millrace.away")?;
    let said = refusal(insert);
    expect(
        said.contains("1146") && said.contains("the sequence of orders gave no numbers"),
        || said.clone(),
    )?;
    it.one.root("RENAME TABLE millrace.away TO millrace.sequences; INSERT INTO millrace.sequences VALUES ('orders', 500)")?;
    it.proxy
        .admin("SET mysql-sharding_sequences = ''; LOAD MYSQL VARIABLES TO RUNTIME")?;
    let said = refusal(insert);
    expect(
        said.contains("set mysql-sharding_sequences to schema.table"),
        || said.clone(),
    )?;
    it.proxy.admin(
        "SET mysql-sharding_sequences = 'millrace.sequences'; LOAD MYSQL VARIABLES TO RUNTIME",
    )?;
    same(&refusal(insert), "[]")?;
    same(
        it.two
            .root("SELECT id FROM conf.orders_1")?
            .lines()
            .last()
            .unwrap_or_default(),
        "500",
    )?;
    let said = it.proxy.admin("HSCALE ADD_SEQUENCE('orders', 'id')");
    expect(
        said.as_ref()
            .is_err_and(|error| error.contains("has a sequence for 'id' already")),
        || format!("{said:?}"),
    )?;
    let said = it.proxy.admin(&format!(
        "EXPLAIN ROUTE '{}' IN conf",
        insert.replace('\'', "''")
    ))?;
    expect(
        said.contains("1 stands for the first")
            && said.contains("(customer, what, `id`) VALUES (1, 'a', 1)"),
        || said.clone(),
    )
}
