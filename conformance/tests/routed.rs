//! The traps of routing by a key, on real servers: rows are written where the map says, and whatever a
//! condition asks for is found, as in one table that has all rows.
#![forbid(unsafe_code)]

use conformance::by_hand;
use conformance::partitions::{SCHEMA, ask, come_in, gathered, legs, shown};
use conformance::proxy::Driver;
use conformance::servers::{Server, Vendor, vendors};
use conformance::trials::{self, expect};
use mysql_async::Conn;
use mysql_async::prelude::Queryable as _;
use shards::{Map, PartitionRow, TableRow};

type Outcome = Result<(), String>;

fn main() {
    trials::run(&[
        (
            "what_a_condition_asks_for_is_found_in_its_partitions",
            conditions,
        ),
        ("joins_over_partitions_are_those_of_whole_tables", joins),
    ])
}

/// A table that is spread: name, type of its key, what the map knows of that, function, partitions.
type Spreading = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static [(&'static str, i64)],
);

const TABLES: &[Spreading] = &[
    (
        "ints",
        "INT",
        "INT",
        "MOD(4)",
        &[("0", 0), ("1", 1), ("2,3", 1)],
    ),
    (
        "tiny",
        "TINYINT",
        "TINYINT",
        "NONE()",
        &[("1..5", 1), ("7", 0), ("-1", 1)],
    ),
    (
        "divs",
        "BIGINT UNSIGNED",
        "",
        "DIV(10)",
        &[("0", 0), ("1..3", 1)],
    ),
    (
        "ranges",
        "BIGINT",
        "BIGINT",
        "RANGE()",
        &[("..-1", 1), ("0..9", 0), ("100..", 1)],
    ),
    ("hashed", "INT", "INT", "HASH(3)", &[("0", 0), ("1", 1)]),
    (
        "words",
        "VARCHAR(30) CHARACTER SET utf8mb4",
        "VARCHAR",
        "PREFIX(2)",
        &[("ma", 1), ("an", 0), ("7", 1)],
    ),
    (
        "exact",
        "VARCHAR(30) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
        "VARCHAR BINARY",
        "NONE()",
        &[("mar", 1), ("Mar", 0), ("", 1)],
    ),
    (
        "bytes",
        "VARBINARY(30)",
        "VARBINARY",
        "HASH(4)",
        &[("0..1", 1), ("2", 0)],
    ),
    (
        "unknown_text",
        "VARCHAR(30) CHARACTER SET latin1",
        "",
        "NONE()",
        &[("mar", 1), ("7", 1)],
    ),
    ("unknown_int", "INT", "", "NONE()", &[("7", 1), ("0", 1)]),
    (
        "enums",
        "ENUM('mar', 'anna', '7')",
        "ENUM",
        "NONE()",
        &[("mar", 1)],
    ),
    (
        "days",
        "DATETIME",
        "",
        "DATE('%Y-%m')",
        &[("2008-12", 1), ("2009-01", 0)],
    ),
    (
        "dates",
        "DATE",
        "DATE",
        "RANGE()",
        &[("2008-12-01..2008-12-31", 1)],
    ),
];

/// Literals that keys are compared with, and written as.
const LITERALS: &[&str] = &[
    "7",
    "'7'",
    "'007'",
    "7.0",
    "7.5",
    "'7.5'",
    "' 7 '",
    "'7x'",
    "1e0",
    "-1",
    "'-1'",
    "0",
    "-0",
    "'0'",
    "TRUE",
    "NULL",
    "''",
    "0x37",
    "3",
    "12",
    "'12'",
    "39",
    "100",
    "999999",
    "'mar'",
    "'Mar'",
    "'MAR '",
    "'mär'",
    "'ma'",
    "'marvel'",
    "'an'",
    "'anna'",
    "'ANNA  '",
    "'mar' 'k'",
    "X'6D6172'",
    "'2008-12-22'",
    "'2008-12-31 23:59:59'",
    "'2009-01-01'",
    "'2008-12-22 00:00:00'",
    "20081222",
    "'2008-12'",
    "'7e0'",
    "+7",
    "'+7'",
    "9.99",
    "(7)",
    "3 + 4",
    "'m\\0ar'",
    "'mar\\t'",
];

fn map() -> Result<Map, String> {
    let table = |(name, _, key_type, function, _): &Spreading| TableRow {
        table_name: (*name).into(),
        key_column: "k".into(),
        key_type: (*key_type).into(),
        function: (*function).into(),
        default_schema: "parts".into(),
        default_table: format!("{name}_default"),
        ..TableRow::default()
    };
    let partitions = TABLES.iter().flat_map(|(name, .., partitions)| {
        let one = move |(number, (value, hostgroup)): (usize, &(&str, i64))| PartitionRow {
            table_name: (*name).into(),
            partition_name: number.to_string(),
            partition_value: (*value).into(),
            hostgroup_id: *hostgroup,
            physical_schema: "parts".into(),
            ..PartitionRow::default()
        };
        partitions.iter().enumerate().map(one)
    });
    Map::build(TABLES.iter().map(table).collect(), partitions.collect())
        .map_err(|refused| format!("{refused:?}"))
}

struct World {
    servers: [Server; 2],
    map: Map,
}

fn world(vendor: Vendor) -> Result<World, String> {
    let servers = [Server::start(vendor)?, Server::start(vendor)?];
    for server in &servers {
        server.root(by_hand::CREATE_USER)?;
        server.root(&format!(
            "GRANT ALL ON *.* TO app@'%'; CREATE DATABASE {SCHEMA}; CREATE DATABASE parts"
        ))?;
    }
    for (name, key, _, _, partitions) in TABLES {
        let columns = format!("(id INT PRIMARY KEY, k {key} NULL, x INT)");
        servers[0].root(&format!(
            "CREATE TABLE {SCHEMA}.{name} {columns}; CREATE TABLE parts.{name}_default {columns}"
        ))?;
        for (number, (_, hostgroup)) in partitions.iter().enumerate() {
            let server = &servers[usize::try_from(*hostgroup).unwrap_or_default()];
            server.root(&format!("CREATE TABLE parts.{name}_{number} {columns}"))?;
        }
    }
    Ok(World {
        servers,
        map: map()?,
    })
}

/// Carries out a statement in each of its partitions.
async fn change(map: &Map, conns: &mut [Conn; 2], sql: &str) -> Result<(), String> {
    for leg in legs(map, sql)? {
        let text =
            String::from_utf8(leg.text(sql.as_bytes())).map_err(|error| error.to_string())?;
        let conn = &mut conns[leg.hostgroup as usize];
        conn.query_drop(&text)
            .await
            .map_err(|error| format!("{text}: {error}"))?;
    }
    Ok(())
}

/// Writes a row for each literal, to the partitions and to the whole table, unless the map or a server
/// refuses it; how many were written.
async fn fill(world: &World, conns: &mut [Conn; 2], name: &str) -> Result<usize, String> {
    let mut written = 0;
    for (id, literal) in LITERALS.iter().enumerate() {
        let sql = format!(
            "INSERT INTO {name} (id, k, x) VALUES ({id}, {literal}, {})",
            id % 5
        );
        if change(&world.map, conns, &sql).await.is_ok() {
            conns[0]
                .query_drop(&sql)
                .await
                .map_err(|error| format!("{sql}: only the partition takes it: {error}"))?;
            written += 1;
        }
    }
    Ok(written)
}

/// A condition on k, at random.
fn condition(below: &mut dyn FnMut(usize) -> usize, depth: usize) -> String {
    let literal =
        |below: &mut dyn FnMut(usize) -> usize| LITERALS[below(LITERALS.len())].to_owned();
    match below(if depth == 0 { 9 } else { 13 }) {
        0..=2 => format!("k = {}", literal(below)),
        3 => format!("{} = k", literal(below)),
        4 => format!("k <=> {}", literal(below)),
        5 => {
            let sign = ["<", "<=", ">", ">=", "<>"][below(5)];
            format!("k {sign} {}", literal(below))
        }
        6 => format!(
            "k IN ({}, {}, {})",
            literal(below),
            literal(below),
            literal(below)
        ),
        7 => format!("k BETWEEN {} AND {}", literal(below), literal(below)),
        8 => [
            "k IS NULL",
            "k IS NOT NULL",
            "x = 1",
            "k LIKE 'm%'",
            "k + 0 = 7",
            "NOT k = 7",
            "k = x",
        ][below(7)]
        .to_owned(),
        9 | 10 => format!(
            "({} OR {})",
            condition(below, depth - 1),
            condition(below, depth - 1)
        ),
        11 => format!(
            "{} AND {}",
            condition(below, depth - 1),
            condition(below, depth - 1)
        ),
        _ => format!("NOT ({})", condition(below, depth - 1)),
    }
}

async fn same(world: &World, conns: &mut [Conn; 2], sql: &str) -> Outcome {
    let wanted = ask(&mut conns[0], sql).await;
    let found = gathered(&world.map, conns, sql).await;
    let (mut wanted, mut found) = match (wanted, found) {
        (Ok((_, wanted)), Ok(found)) => (wanted, found),
        // A server that refuses a comparison may refuse it in one partition only where rows are.
        (Err(_), _) => return Ok(()),
        (Ok(_), Err(words)) => return Err(words),
    };
    wanted.sort();
    found.sort();
    expect(wanted == found, || {
        format!("{sql}:\n{}\ninstead of\n{}", shown(&found), shown(&wanted))
    })
}

#[tokio::main(flavor = "current_thread")]
async fn conditions(driver: Driver) -> Outcome {
    let mut seed: u64 = if driver == Driver::Epoll { 5 } else { 6 };
    let mut below = |limit: usize| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % limit
    };
    for vendor in vendors() {
        let world = world(vendor)?;
        let mut conns = come_in(&world.servers).await?;
        let mut wrong = Vec::new();
        for (name, ..) in TABLES {
            let written = fill(&world, &mut conns, name).await?;
            expect(written > 3, || {
                format!("{vendor}: {name} takes {written} rows only")
            })?;
            for literal in LITERALS {
                let sql = format!("SELECT id FROM {name} WHERE k = {literal}");
                wrong.extend(same(&world, &mut conns, &sql).await.err());
            }
            for _ in 0..150 {
                let sql = format!(
                    "SELECT id, x FROM {name} WHERE {}",
                    condition(&mut below, 2)
                );
                wrong.extend(same(&world, &mut conns, &sql).await.err());
            }
        }
        expect(wrong.is_empty(), || {
            format!("{vendor}: {} wrong:\n{}", wrong.len(), wrong.join("\n\n"))
        })?;
    }
    Ok(())
}

/// Joins of tables that lie beside each other: partitions of `ints` under two names, and conditions of
/// all kinds on both.
#[tokio::main(flavor = "current_thread")]
async fn joins(_: Driver) -> Outcome {
    for vendor in vendors() {
        let world = world(vendor)?;
        let mut conns = come_in(&world.servers).await?;
        for id in 0..60 {
            let k = if id % 11 == 0 {
                "NULL".to_owned()
            } else {
                (id % 13).to_string()
            };
            let sql = format!("INSERT INTO ints (id, k, x) VALUES ({id}, {k}, {})", id % 4);
            change(&world.map, &mut conns, &sql).await?;
            conns[0]
                .query_drop(&sql)
                .await
                .map_err(|error| error.to_string())?;
        }
        for join in [
            "ints a JOIN ints b ON a.k = b.k",
            "ints a, ints b WHERE a.k = b.k",
            "ints a JOIN ints b USING (k)",
            "ints a LEFT JOIN ints b ON a.k = b.k AND b.x = 1",
            "ints a LEFT JOIN ints b ON a.k = b.k AND a.x = 2",
            "ints a LEFT JOIN ints b USING (k)",
            "ints a JOIN ints b ON a.k = b.k AND a.id < b.id",
            "ints a LEFT JOIN ints b ON a.k = b.k AND b.id > 40",
        ] {
            for condition in [
                "",
                "a.k = 5",
                "b.k = 5",
                "b.k IS NULL",
                "b.id IS NULL",
                "a.k IN (1, 2, 3)",
                "b.k IN (1, 2) OR b.k IS NULL",
                "a.k IS NULL",
                "a.x = 1 AND b.x = 2",
                "b.k <=> NULL",
                "a.k = 5 AND b.k IS NULL",
                "a.k < 3",
                "NOT b.k = 5",
            ] {
                let word = if join.contains("WHERE") {
                    "AND"
                } else {
                    "WHERE"
                };
                let condition = if condition.is_empty() {
                    String::new()
                } else {
                    format!(" {word} ({condition})")
                };
                let sql = format!("SELECT a.id, b.id FROM {join}{condition}");
                same(&world, &mut conns, &sql)
                    .await
                    .map_err(|words| format!("{vendor}: {sql}: {words}"))?;
            }
        }
    }
    Ok(())
}
