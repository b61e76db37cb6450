//! Results of partitions that the proxy puts together, beside the result of one table that has all their
//! rows: SELECTs over three partitions on two servers.
#![forbid(unsafe_code)]

mod finished;

use conformance::partitions::{ask, shown};
use conformance::proxy::{Driver, Proxy, Wish};
use conformance::servers::{Server, Vendor, vendors};
use conformance::trials::{self, expect};
use conformance::{by_hand, library};
use mysql_async::prelude::Queryable as _;
use mysql_async::{Column, Conn, Params, Row, Value};
use std::fmt::Write as _;

use finished::{finished, finished_as_prepared, finished_or_not, randomly_finished};

type Outcome = Result<(), String>;

fn main() {
    trials::run_once(&[
        ("rows_of_partitions_are_those_of_one_table", rows),
        (
            "prepared_selects_over_partitions_are_as_over_one_table",
            prepared,
        ),
        (
            "random_selects_over_partitions_are_as_over_one_table",
            random,
        ),
        ("what_has_no_certain_order_is_refused", refused),
        ("what_cannot_be_merged_is_finished_on_a_server", finished),
        (
            "random_selects_are_finished_as_over_tables_in_one_place",
            randomly_finished,
        ),
        (
            "prepared_selects_are_finished_as_over_tables_in_one_place",
            finished_as_prepared,
        ),
        (
            "what_is_finished_ends_whole_or_with_an_error",
            finished_or_not,
        ),
    ])
}

/// Those whose order is certain, in which every row has its place.
const IN_ORDER: &[&str] = &[
    "SELECT * FROM t ORDER BY k",
    "SELECT k, b FROM t ORDER BY b, k",
    "SELECT b, k FROM t ORDER BY b DESC, k DESC LIMIT 20",
    "SELECT k FROM t ORDER BY a, c DESC, k LIMIT 7, 30",
    "SELECT k, c FROM t ORDER BY c, k LIMIT 25 OFFSET 10",
    "SELECT k FROM t ORDER BY d DESC, f, k",
    "SELECT k FROM t ORDER BY g, h DESC, k",
    "SELECT k FROM t ORDER BY e DESC, k",
    "SELECT k FROM t ORDER BY at, k LIMIT 40",
    "SELECT k, a + 1 AS x FROM t ORDER BY x DESC, k",
    "SELECT t.k, CONCAT(b, h) FROM t ORDER BY CONCAT(b, h), k",
    "SELECT k FROM t WHERE b = 'a' ORDER BY 1",
    "SELECT DISTINCT a FROM t ORDER BY a",
    "SELECT DISTINCT c, a FROM t ORDER BY a DESC, c LIMIT 10",
    "SELECT DISTINCT d, f FROM t ORDER BY d, f",
    "SELECT COUNT(*), COUNT(a), SUM(a), SUM(c), SUM(e), MIN(a), MAX(c), MIN(d), MAX(f), MIN(g), MAX(e) FROM t",
    "SELECT AVG(a), AVG(c), AVG(e), AVG(k) FROM t",
    "SELECT SUM(a), AVG(c), MIN(b), COUNT(*), MAX(d) FROM t WHERE k < 0",
    "SELECT MIN(h), MAX(h), MIN(g), MAX(at) FROM t",
    "SELECT BIT_AND(k), BIT_OR(k), BIT_XOR(k) FROM t",
    "SELECT BIT_AND(k), BIT_OR(k), BIT_XOR(k) FROM t WHERE k < 0",
    "SELECT a, COUNT(*), SUM(c), AVG(c), MIN(d) FROM t GROUP BY a ORDER BY a",
    "SELECT a, COUNT(*) AS n FROM t GROUP BY a ORDER BY n DESC, a LIMIT 5",
    "SELECT COUNT(*), SUM(k) FROM t GROUP BY b ORDER BY b",
    "SELECT COUNT(*), SUM(k), MAX(h) FROM t GROUP BY h ORDER BY h DESC",
    "SELECT a, d, COUNT(*) FROM t GROUP BY a, d ORDER BY d DESC, a LIMIT 12 OFFSET 3",
    "SELECT a, SUM(c) AS s FROM t GROUP BY a HAVING s > 100 AND COUNT(*) > 3 ORDER BY s, a",
    "SELECT a FROM t GROUP BY a HAVING SUM(k) BETWEEN 1000 AND 6000 OR AVG(c) IS NULL ORDER BY a",
    "SELECT YEAR(d) AS y, COUNT(*), AVG(a) FROM t GROUP BY y ORDER BY y",
    "SELECT a, VAR_POP(k), STDDEV_SAMP(k) FROM t WHERE a = 1 AND k < 4 GROUP BY a ORDER BY a",
    "SELECT a DIV 3, MAX(k) FROM t GROUP BY a DIV 3 ORDER BY MAX(k)",
    "SELECT a DIV 3 AS x, MAX(k) AS y FROM t GROUP BY a DIV 3 ORDER BY y",
    "SELECT COUNT(*) FROM t HAVING COUNT(*) > 100000",
    "SELECT k FROM t WHERE k IN (1, 2, 3, 4) ORDER BY k",
    "SELECT x.k, y.b FROM t x JOIN t y ON x.k = y.k ORDER BY y.k LIMIT 15",
    "SELECT k FROM t ORDER BY n, k",
    "SELECT *, n AS m FROM t ORDER BY m DESC, k LIMIT 30",
    "SELECT DISTINCT n FROM t ORDER BY n DESC",
    "SELECT DISTINCT a, n FROM t ORDER BY a, n",
    "SELECT n, COUNT(*), MIN(n), MAX(n) FROM t GROUP BY n ORDER BY n",
    "SELECT n, a, SUM(c) AS s FROM t GROUP BY n, a ORDER BY s, n DESC, a",
    "SELECT MIN(n), MAX(n), COUNT(n), SUM(n) FROM t",
    "SELECT k FROM u ORDER BY st DESC, k",
    "SELECT st, y, COUNT(*) FROM u GROUP BY st, y ORDER BY y, st",
    "SELECT DISTINCT bi FROM u ORDER BY bi DESC",
    "SELECT bi, COUNT(*), MIN(y), MAX(y) FROM u GROUP BY bi ORDER BY bi",
    "SELECT MIN(st), MAX(st), MIN(bi + 0), SUM(bg), AVG(bg), MAX(bg) FROM u",
    "SELECT k FROM t ORDER BY k FOR UPDATE",
];

/// Those of which any order is right.
const IN_ANY_ORDER: &[&str] = &[
    "SELECT * FROM t",
    "SELECT k, b, c FROM t WHERE a IS NULL",
    "SELECT DISTINCT a, d FROM t",
    "SELECT DISTINCT LOWER(h) FROM t",
    "SELECT a, COUNT(*) FROM t GROUP BY a",
    "SELECT COUNT(*) FROM t GROUP BY b, h",
    "SELECT a, c FROM t GROUP BY a, c",
    "SELECT k FROM t WHERE a = 1 UNION ALL SELECT a FROM t WHERE k < 50",
];

/// Servers and proxy with two tables of the same rows: one whole, and one in partitions by the
/// remainder of k.
struct World {
    servers: [Server; 2],
    proxy: Proxy,
}

impl World {
    /// A client of the server that has the whole table, and one of the proxy.
    async fn come_in(&self) -> Result<[Conn; 2], String> {
        let words = |error: mysql_async::Error| error.to_string();
        let mut conns = [
            library::come_in(self.servers[0].port)
                .await
                .map_err(words)?,
            library::come_in(self.proxy.port).await.map_err(words)?,
        ];
        for conn in &mut conns {
            conn.query_drop("USE whole").await.map_err(words)?;
        }
        Ok(conns)
    }
}

/// Columns of all kinds: what is copied must be what it was.
const COLUMNS_OF_U: &str = "(k INT PRIMARY KEY, v INT NULL, fl FLOAT, ts TIMESTAMP(3) NULL, bi BIT(9), y YEAR, \
    la VARCHAR(20) CHARACTER SET latin1, st SET('p', 'q', 'r''s'), js JSON, ge POINT, bl BLOB, ut VARCHAR(9) CHARACTER SET utf16, \
    bg BIGINT UNSIGNED, dd DATE, ze INT(5) ZEROFILL, db DOUBLE, ge2 INT GENERATED ALWAYS AS (v + 1) VIRTUAL)";

const COLUMNS_OF_P: &str =
    "(id INT NOT NULL, name VARCHAR(10) CHARACTER SET utf8mb4 NOT NULL, KEY (id))";

const COLUMNS: &str = "(k INT PRIMARY KEY, a INT NULL, b VARCHAR(20) CHARACTER SET utf8mb4, c DECIMAL(12,3), d DATE, \
    at DATETIME(3), e DOUBLE, f TIME, g VARBINARY(8), h VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, n ENUM('z', 'y', 'x'))";

fn world(driver: Driver, vendor: Vendor) -> Result<World, String> {
    let servers = [Server::start(vendor)?, Server::start(vendor)?];
    for server in &servers {
        server.root(by_hand::CREATE_USER)?;
        server.root(&format!(
            "CREATE DATABASE whole; CREATE DATABASE parts; CREATE TABLE whole.t {COLUMNS}; GRANT ALL ON *.* TO app@'%'"
        ))?;
    }
    let mut wish = Wish::in_front_of(&servers[0]);
    let other = format!(
        ",\n{{ address = \"127.0.0.1\", port = {}, hostgroup = 1 }}",
        servers[1].port
    );
    wish.servers.push_str(&other);
    let proxy = Proxy::start(driver, &wish)?;
    if vendor == Vendor::MySql {
        proxy.admin(
            "SET mysql-sharding_scratch = 'hostgroup'; SET mysql-sharding_scratch_hostgroup = 1; LOAD MYSQL VARIABLES TO RUNTIME",
        )?;
    }
    proxy.admin(
        "INSERT INTO mysql_shard_tables (table_name, key_column, key_type, `function`, default_schema, default_table) \
            VALUES ('t', 'k', 'INT', 'MOD(3)', 'parts', 't_default'); \
         INSERT INTO mysql_shard_partitions (table_name, partition_name, partition_value, hostgroup_id, physical_schema) \
            VALUES ('t', '0', '0', 0, 'parts'), ('t', '1', '1', 1, 'parts'), ('t', '2', '2', 1, 'parts'); \
         INSERT INTO mysql_shard_tables (table_name, key_column, key_type, `function`, default_schema, default_table, default_hostgroup) \
            VALUES ('u', 'k', 'INT', 'MOD(2)', 'parts', 'u_default', 1); \
         INSERT INTO mysql_shard_partitions (table_name, partition_name, partition_value, hostgroup_id, physical_schema) \
            VALUES ('u', '0', '0', 0, 'parts'); \
         LOAD MYSQL SHARDS TO RUNTIME",
    )?;
    for (server, table) in [(0, "t_default"), (0, "t_0"), (1, "t_1"), (1, "t_2")] {
        servers[server].root(&format!("CREATE TABLE parts.{table} {COLUMNS}"))?;
    }
    let rows: Vec<String> = (1..=240).map(row).collect();
    servers[0].root(&format!(
        "SET NAMES utf8mb4; INSERT INTO whole.t VALUES {}",
        rows.join(", ")
    ))?;
    for part in 0..3 {
        let own: Vec<_> = rows
            .iter()
            .zip(1..)
            .filter(|(_, k)| k % 3 == part)
            .map(|(row, _)| row.as_str())
            .collect();
        let server = &servers[usize::from(part > 0)];
        server.root(&format!(
            "SET NAMES utf8mb4; INSERT INTO parts.t_{part} VALUES {}",
            own.join(", ")
        ))?;
    }
    others(&servers)?;
    Ok(World { servers, proxy })
}

/// A table in other partitions, and one that is whole.
fn others(servers: &[Server; 2]) -> Result<(), String> {
    let [first, second] = servers;
    // Session settings decide what a literal means here, and later nothing may.
    const MODE: &str =
        "SET NAMES utf8mb4; SET sql_mode = 'ALLOW_INVALID_DATES'; SET time_zone = '+00:00'; ";
    let row = |k: u32| {
        let v = match k % 7 {
            0 => "NULL".to_owned(),
            rest => rest.to_string(),
        };
        format!(
            "({k}, {v}, 0.1 * {k}, {}, {}, {}, '{}', '{}', '{{\"a\": {k}, \"b\": \"\u{e4}\"}}', \
             POINT({k}, 1.5), X'00275C{:02X}', '{}', 18446744073709551600 + {}, '{}', {k}, 1 / {k} * 1e10)",
            ["NULL", "'2008-12-24 10:00:00.125'", "0"][k as usize % 3],
            k * 3,
            [2008, 1999, 0][k as usize % 3],
            ["\u{e4}", "it''s", "\\\\"][k as usize % 3],
            ["p", "p,q", "r''s", ""][k as usize % 4],
            k + 100,
            ["\u{1f600}", "\u{df} "][k as usize % 2],
            k % 16,
            ["2008-12-24", "0000-00-00", "2008-02-31"][k as usize % 3],
        )
    };
    let names = "(k, v, fl, ts, bi, y, la, st, js, ge, bl, ut, bg, dd, ze, db)";
    let insert = |table: &str, wanted: &dyn Fn(u32) -> bool| {
        let rows: Vec<_> = (1..=60).filter(|k| wanted(*k)).map(row).collect();
        format!(
            "{MODE}CREATE TABLE {table} {COLUMNS_OF_U}; INSERT INTO {table} {names} VALUES {}",
            rows.join(", ")
        )
    };
    first.root(&insert("whole.u", &|_| true))?;
    first.root(&insert("parts.u_0", &|k| k % 2 == 0))?;
    second.root(&insert("parts.u_default", &|k| k % 2 == 1))?;
    first.root(&format!(
        "{MODE}CREATE TABLE whole.p {COLUMNS_OF_P}; \
         INSERT INTO whole.p VALUES (0, 'zero'), (1, 'one'), (1, 'ONE'), (3, '\u{e4}'), (5, 'x'), (8, ''), (200, 'far')"
    ))?;
    Ok(())
}

/// The row of a key: the same for the same key.
fn row(k: u32) -> String {
    let mut seed = u64::from(k).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut below = |limit: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed >> 20) as usize % limit
    };
    let words = [
        "a", "A", "ä", "a ", "b", "B", "ß", "ss", "z", "Zebra", "", "o\u{301}", "ó", "x\t",
    ];
    let mut out = format!("({k}");
    let or_null = |text: String, null: usize| if null == 0 { "NULL".to_owned() } else { text };
    let a = below(9);
    let _ = write!(out, ", {}", or_null(a.to_string(), below(8)));
    let word = words[below(words.len())];
    let _ = write!(out, ", {}", or_null(format!("'{word}'"), below(9)));
    let c = format!(
        "{}{}.{:03}",
        if below(3) == 0 { "-" } else { "" },
        below(500),
        below(1000)
    );
    let _ = write!(out, ", {}", or_null(c, below(10)));
    let _ = write!(
        out,
        ", '20{:02}-0{}-1{}'",
        below(3) + 7,
        below(9) + 1,
        below(10)
    );
    let _ = write!(
        out,
        ", '2008-12-2{} 10:0{}:00.{:03}'",
        below(10),
        below(10),
        below(1000)
    );
    let e = format!("{}.5", below(100));
    let _ = write!(out, ", {}", or_null(e, below(10)));
    let _ = write!(
        out,
        ", '{}{}:0{}:00'",
        if below(4) == 0 { "-" } else { "" },
        below(200),
        below(10)
    );
    let _ = write!(out, ", X'{:02X}{:02X}'", below(256), below(3));
    let _ = write!(out, ", '{}'", words[below(words.len())]);
    let _ = write!(out, ", '{}')", ["z", "y", "x"][below(3)]);
    out
}

#[tokio::main(flavor = "current_thread")]
async fn rows(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let world = world(driver, vendor)?;
        let [mut whole, mut parts] = world.come_in().await?;
        let mut wrong = Vec::new();
        let all = IN_ORDER
            .iter()
            .map(|sql| (sql, true))
            .chain(IN_ANY_ORDER.iter().map(|sql| (sql, false)));
        for (sql, in_order) in all {
            let (_, mut wanted) = ask(&mut whole, sql).await?;
            let mut found = match ask(&mut parts, sql).await.map(|(_, rows)| rows) {
                Ok(found) => found,
                Err(words) => {
                    wrong.push(format!("{sql}: {words}"));
                    continue;
                }
            };
            if !in_order {
                wanted.sort();
                found.sort();
            }
            if wanted != found {
                wrong.push(format!(
                    "{sql}:\n{}\ninstead of\n{}",
                    shown(&found),
                    shown(&wanted)
                ));
            }
        }
        expect(wrong.is_empty(), || {
            format!(
                "{vendor}: {} of {}:\n{}",
                wrong.len(),
                IN_ORDER.len() + IN_ANY_ORDER.len(),
                wrong.join("\n\n")
            )
        })?;
    }
    Ok(())
}

/// SELECTs with values for their places, in which every row has its own.
fn with_values() -> Vec<(&'static str, Vec<Value>)> {
    let day = Value::Date(2008, 12, 24, 0, 0, 0, 0);
    let moment = Value::Date(2008, 12, 24, 10, 5, 0, 0);
    vec![
        (
            "SELECT k, a, b, c, d, at, e, f, g, h FROM t WHERE k IN (?, ?, ?) ORDER BY k",
            vec![3.into(), 4.into(), Value::from("5")],
        ),
        (
            "SELECT k FROM t ORDER BY h, k LIMIT ?, ?",
            vec![5.into(), 40.into()],
        ),
        (
            "SELECT k FROM t WHERE a <=> ? ORDER BY k LIMIT ? OFFSET ?",
            vec![Value::NULL, 7.into(), 1.into()],
        ),
        (
            "SELECT k, a - ? FROM t WHERE b = ? AND e > ? ORDER BY k",
            vec![Value::from(-7), "\u{e4}".into(), 1.5.into()],
        ),
        (
            "SELECT k FROM t WHERE d >= ? AND at < ? AND f < ? ORDER BY k",
            vec![day.clone(), moment, Value::Time(true, 1, 2, 3, 4, 5)],
        ),
        (
            "SELECT h, k FROM t WHERE CONCAT(h, ?) LIKE ? AND k < ? ORDER BY h DESC, k",
            vec!["it's \\ \"".into(), "%t's%\"".into(), 100.into()],
        ),
        (
            "SELECT a, COUNT(*), SUM(k + ?), AVG(c) FROM t WHERE k <> ? GROUP BY a HAVING COUNT(*) > 2 ORDER BY a",
            vec![1.into(), 7.into()],
        ),
        (
            "SELECT k, g FROM t WHERE g > ? AND d <> ? ORDER BY g, k",
            vec![Value::Bytes(vec![0x20, 0]), day],
        ),
        (
            "SELECT COUNT(*), MIN(at), MAX(f), SUM(e) FROM t WHERE k < ?",
            vec![0.into()],
        ),
    ]
}

/// Rows of a prepared SELECT, with names and types of its columns: those of the preparation, too.
async fn executed(conn: &mut Conn, sql: &str, values: Vec<Value>) -> Result<String, String> {
    let words = |error: mysql_async::Error| format!("{sql}: {error}");
    let statement = conn.prep(sql).await.map_err(words)?;
    let told = |columns: &[Column]| {
        let one = |column: &Column| format!("{} {:?}", column.name_str(), column.column_type());
        columns.iter().map(one).collect::<Vec<_>>().join(", ")
    };
    let mut out = format!("{}\n", told(&statement.columns()));
    let values = match values.is_empty() {
        true => Params::Empty,
        false => Params::Positional(values),
    };
    let rows: Vec<Row> = conn.exec(&statement, values).await.map_err(words)?;
    let _ = writeln!(
        out,
        "{}",
        rows.first()
            .map_or_else(String::new, |row| told(row.columns_ref()))
    );
    for row in rows {
        let _ = writeln!(out, "{:?}", row.unwrap());
    }
    Ok(out)
}

#[tokio::main(flavor = "current_thread")]
async fn prepared(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let world = world(driver, vendor)?;
        let [mut whole, mut parts] = world.come_in().await?;
        let plain = IN_ORDER.iter().map(|sql| (*sql, Vec::new()));
        let mut wrong = Vec::new();
        for (sql, values) in plain.chain(with_values()) {
            let wanted = executed(&mut whole, sql, values.clone()).await?;
            for again in [false, true] {
                let found = executed(&mut parts, sql, values.clone()).await;
                let found = found.unwrap_or_else(|words| words);
                // What a library remembers of a statement is what the execution before said.
                let rows = |told: &str| told.split_once('\n').map(|(_, rows)| rows.to_owned());
                if found != wanted && !(again && rows(&found) == rows(&wanted)) {
                    wrong.push(format!("{sql}:\n{found}\ninstead of\n{wanted}"));
                }
            }
        }
        expect(wrong.is_empty(), || {
            format!("{vendor}: {}:\n{}", wrong.len(), wrong.join("\n\n"))
        })?;
        let order = "SELECT k FROM t ORDER BY ?";
        let said = executed(&mut parts, order, vec![1.into()]).await;
        let said = said.err().unwrap_or_default();
        expect(said.contains("a number of ORDER BY"), || said.clone())?;
    }
    Ok(())
}

/// Expressions that are selected, and ordered and grouped by.
const EXPRESSIONS: &[&str] = &[
    "a",
    "c",
    "d",
    "at",
    "e",
    "f",
    "g",
    "h",
    "b",
    "a + k",
    "CONCAT(b, h)",
    "LENGTH(b)",
    "UPPER(h)",
    "c * 2",
    "-a",
    "IFNULL(a, 0)",
    "YEAR(d)",
    "a DIV 3",
    "k % 7",
    "LEFT(b, 1)",
    "t.a",
    "whole.t.c",
];
/// Those of which equal values look the same: of 'a' and 'a ' in one group, either may be shown.
const EXACT: &[&str] = &[
    "a",
    "c",
    "d",
    "f",
    "RTRIM(h)",
    "YEAR(d)",
    "a DIV 3",
    "k % 7",
    "g",
    "t.a",
    "whole.t.d",
];
const AGGREGATES: &[&str] = &[
    "COUNT(*)",
    "COUNT(a)",
    "SUM(a)",
    "SUM(c)",
    "SUM(e)",
    "AVG(a)",
    "AVG(c)",
    "MIN(a)",
    "MAX(c)",
    "MIN(d)",
    "MAX(f)",
    "MIN(h)",
    "MAX(g)",
    "BIT_XOR(k)",
    "SUM(k + a)",
    "MAX(LENGTH(b))",
    "MIN(whole.t.at)",
];
const CONDITIONS: &[&str] = &[
    "",
    "",
    " WHERE a IS NOT NULL",
    " WHERE k > 100",
    " WHERE b = 'A'",
    " WHERE k IN (3, 4, 5, 77)",
    " WHERE h LIKE 'z%' OR c > 0",
    " WHERE k < 0",
];

/// A SELECT in which every row has its place.
fn select(below: &mut dyn FnMut(usize) -> usize) -> String {
    let mut some = |among: &'static [&'static str], at_most: usize| {
        let many = 1 + below(at_most);
        let mut chosen: Vec<&str> = Vec::new();
        for _ in 0..many {
            let one = among[below(among.len())];
            if !chosen.contains(&one) {
                chosen.push(one);
            }
        }
        chosen
    };
    let (exact, any, aggregates) = (some(EXACT, 3), some(EXPRESSIONS, 3), some(AGGREGATES, 4));
    let condition = CONDITIONS[below(CONDITIONS.len())];
    let mut directed = |keys: &[&str]| {
        let one = |key: &&str| format!("{key}{}", ["", " DESC", " ASC"][below(3)]);
        keys.iter().map(one).collect::<Vec<_>>().join(", ")
    };
    let (by_exact, by_any) = (directed(&exact), directed(&any));
    let limit = match below(4) {
        0 => format!(" LIMIT {}", below(50)),
        1 => format!(" LIMIT {} OFFSET {}", below(50), below(30)),
        2 => format!(" LIMIT {}, {}", below(30), below(50)),
        _ => String::new(),
    };
    let having = [
        "",
        "",
        " HAVING COUNT(*) > 2",
        " HAVING SUM(k) < 2000 OR MIN(a) IS NULL",
    ][below(4)];
    match below(4) {
        0 => format!(
            "SELECT k, {} FROM t{condition} ORDER BY {by_any}, k{limit}",
            any.join(", ")
        ),
        1 => format!(
            "SELECT DISTINCT {} FROM t{condition} ORDER BY {by_exact}{limit}",
            exact.join(", ")
        ),
        2 => format!("SELECT {} FROM t{condition}", aggregates.join(", ")),
        _ => {
            let order = match below(2) {
                0 => by_exact,
                _ => format!("{} DESC, {by_exact}", exact.len() + 1),
            };
            let (keys, all) = (exact.join(", "), aggregates.join(", "));
            format!(
                "SELECT {keys}, {all} FROM t{condition} GROUP BY {keys}{having} ORDER BY {order}{limit}"
            )
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn random(driver: Driver) -> Outcome {
    let mut seed: u64 = if driver == Driver::Epoll { 11 } else { 12 };
    let mut below = |limit: usize| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % limit
    };
    for vendor in vendors() {
        let world = world(driver, vendor)?;
        let [mut whole, mut parts] = world.come_in().await?;
        for _ in 0..400 {
            let sql = select(&mut below);
            let (_, wanted) = ask(&mut whole, &sql).await?;
            let found = ask(&mut parts, &sql).await.map(|(_, rows)| rows);
            let found = found.map_err(|words| format!("{vendor}: {sql}: {words}"))?;
            expect(wanted == found, || {
                format!(
                    "{vendor}: {sql}:\n{}\ninstead of\n{}",
                    shown(&found),
                    shown(&wanted)
                )
            })?;
        }
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn refused(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let world = world(driver, vendor)?;
        let [_, mut parts] = world.come_in().await?;
        for (sql, words) in [
            ("SELECT k INTO @k FROM t", "rows that go INTO variables"),
            (
                "SELECT COUNT(DISTINCT a) FROM t FOR UPDATE",
                "it locks what it reads",
            ),
        ] {
            let said = match ask(&mut parts, sql).await.map(|(_, rows)| rows) {
                Ok(rows) => shown(&rows),
                Err(words) => words,
            };
            expect(said.contains(words), || format!("{vendor}: {sql}: {said}"))?;
        }
        let ordered = ask(&mut parts, "SELECT k FROM t ORDER BY n + 0, k")
            .await?
            .1;
        expect(ordered.len() == 240, || ordered.len().to_string())?;
    }
    Ok(())
}
