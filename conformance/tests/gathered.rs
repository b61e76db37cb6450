//! Results of partitions that the proxy puts together, beside the result of one table that has all their
//! rows: SELECTs over three partitions on two servers.
#![forbid(unsafe_code)]

use conformance::by_hand;
use conformance::library;
use conformance::partitions::{ask, shown};
use conformance::proxy::{Driver, Proxy, Wish};
use conformance::servers::{Server, Vendor, vendors};
use conformance::trials::{self, expect};
use mysql_async::prelude::Queryable as _;
use mysql_async::{Column, Conn, Params, Row, Value};
use std::fmt::Write as _;

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

/// Those that a server finishes, in which every row has its place.
const FINISHED: &[&str] = &[
    "SELECT COUNT(DISTINCT a) FROM t",
    "SELECT COUNT(DISTINCT b), COUNT(DISTINCT h, d), SUM(DISTINCT a) FROM t WHERE k > 7",
    "SELECT SUM(a) / COUNT(c) + 1, ROUND(AVG(c), 2), MAX(k) - MIN(k) FROM t",
    "SELECT d, COUNT(DISTINCT b) n FROM t WHERE k > 20 GROUP BY d HAVING n > 1 ORDER BY n DESC, d",
    "SELECT a, SUM(c) * 2 FROM t GROUP BY a HAVING SUM(c) > AVG(k) ORDER BY a",
    "SELECT k, ROW_NUMBER() OVER (PARTITION BY a ORDER BY k), SUM(c) OVER (PARTITION BY d ORDER BY k) FROM t ORDER BY k",
    "SELECT k, RANK() OVER w FROM t WINDOW w AS (PARTITION BY f ORDER BY h, k) ORDER BY k",
    "SELECT a FROM t UNION SELECT k FROM t WHERE k < 12 ORDER BY a",
    "(SELECT k FROM t WHERE a = 1) UNION ALL (SELECT k FROM t WHERE a = 2 LIMIT 1000) ORDER BY k LIMIT 9",
    "SELECT k FROM t WHERE a = (SELECT MAX(a) FROM t) ORDER BY k",
    "SELECT k FROM t x WHERE EXISTS (SELECT 1 FROM t y WHERE y.a = x.a AND y.k > x.k AND y.d = x.d) ORDER BY k",
    "SELECT k FROM t WHERE k NOT IN (SELECT y.k FROM t y WHERE y.a > 3) ORDER BY k",
    "SELECT s.a, s.n FROM (SELECT a, COUNT(*) AS n FROM t GROUP BY a) s ORDER BY s.a",
    "WITH s AS (SELECT a, SUM(k) AS n FROM t GROUP BY a) SELECT s.a, s.n, COUNT(*) FROM s JOIN t ON t.a = s.a GROUP BY s.a, s.n ORDER BY s.a",
    "WITH t AS (SELECT k FROM t WHERE a = 1) SELECT COUNT(*), MAX(k) FROM t",
    "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT n.i, t.b FROM n JOIN t ON t.k = n.i ORDER BY n.i",
    "SELECT t.k, u.k, u.v FROM t JOIN u ON t.a = u.v WHERE t.k < 40 AND u.k > 3 ORDER BY t.k, u.k",
    "SELECT t.k, u.k FROM t LEFT JOIN u ON t.a = u.v AND u.k < 9 WHERE u.k IS NULL ORDER BY t.k",
    "SELECT u.k, t.h FROM t RIGHT JOIN u ON t.k = u.v AND t.a > 2 ORDER BY u.k",
    "SELECT t.k, p.name FROM t LEFT JOIN p ON p.id = t.a AND p.name <> 'x' ORDER BY t.k, p.name, HEX(p.name)",
    "SELECT p.id, COUNT(t.k) FROM p LEFT JOIN t ON t.a = p.id AND t.d > '2008-01-01' GROUP BY p.id ORDER BY p.id",
    "SELECT t.*, p.* FROM t JOIN p ON p.id = t.k ORDER BY t.k, HEX(p.name)",
    "SELECT k FROM t WHERE k IN (SELECT k FROM u WHERE v > 2) ORDER BY k",
    "SELECT * FROM u WHERE k IN (SELECT MAX(k) FROM u GROUP BY v) ORDER BY k",
    "SELECT * FROM u x WHERE EXISTS (SELECT 1 FROM p WHERE p.id <> x.k) ORDER BY k",
    "SELECT fl, COUNT(*) FROM u GROUP BY fl + 1 HAVING COUNT(DISTINCT k) > 0 ORDER BY fl",
    "SELECT COUNT(DISTINCT ts), COUNT(DISTINCT la), COUNT(DISTINCT st), MAX(bg) + 1, MIN(ze) + 0 FROM u WHERE ts > '2008-12-24 00:00:00'",
    "SELECT x.k, COUNT(DISTINCT x.b) FROM t x JOIN t y ON x.a = y.a GROUP BY x.k ORDER BY x.k LIMIT 5",
    "SELECT whole.t.a, COUNT(DISTINCT whole.t.h) FROM whole.t WHERE whole.t.k BETWEEN 10 AND 200 GROUP BY whole.t.a ORDER BY 1",
    "SELECT k, b, COUNT(DISTINCT a) FROM t GROUP BY k ORDER BY k",
    "SELECT a, GROUP_CONCAT(k ORDER BY c DESC, k) FROM t GROUP BY a ORDER BY a",
    "SELECT COUNT(*) FROM t, p",
    "SELECT DISTINCT a, COUNT(*) FROM t GROUP BY a, d ORDER BY a, COUNT(*)",
    "SELECT COUNT(DISTINCT k) FROM t WHERE k IN (1, 2, 4, 5)",
    "SELECT COUNT(DISTINCT k) FROM t WHERE at < NOW() AND b COLLATE utf8mb4_bin = 'a'",
    "SELECT k FROM u ORDER BY js, k",
    "SELECT k, n FROM t ORDER BY n, k",
    "SELECT d, COUNT(*) FROM t GROUP BY d ORDER BY d",
    "SELECT a, MIN(n) FROM t GROUP BY a ORDER BY MIN(n), a",
    "SELECT a, MAX(d) AS m FROM t GROUP BY a HAVING m > '2008-06-01' ORDER BY a",
    "SELECT n, COUNT(*) FROM t GROUP BY n HAVING n = 'x'",
    "SELECT k, SUM(a) OVER (PARTITION BY whole.t.d ORDER BY whole.t.k) AS s FROM t ORDER BY k",
    "(SELECT k, a FROM t) ORDER BY a, k LIMIT 7",
];

/// Those of which any order is right.
const FINISHED_IN_ANY_ORDER: &[&str] = &[
    "SELECT a, d, COUNT(*), SUM(c) FROM t GROUP BY a, d WITH ROLLUP",
    "SELECT d, COUNT(DISTINCT a) FROM t GROUP BY d",
    "SELECT d FROM t UNION SELECT dd FROM u WHERE v > 2",
];

/// Settings of a session that must not change any value that is copied.
const SETTINGS: &[&str] = &[
    "",
    "SET time_zone = '+05:30'",
    "SET NAMES latin1",
    "SET sql_mode = 'NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT,PAD_CHAR_TO_FULL_LENGTH'",
    "SET NAMES utf8mb4",
    "SET character_set_results = NULL",
    "SET NAMES utf8mb4, sql_select_limit = 17",
];

#[tokio::main(flavor = "current_thread")]
async fn finished(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let world = world(driver, vendor)?;
        let [mut whole, mut parts] = world.come_in().await?;
        let mut wrong = Vec::new();
        let all = FINISHED
            .iter()
            .map(|sql| (sql, true))
            .chain(FINISHED_IN_ANY_ORDER.iter().map(|sql| (sql, false)));
        let all: Vec<_> = all.collect();
        let settings = SETTINGS
            .iter()
            .filter(|set| vendor == Vendor::MariaDb || !set.contains("PAD_CHAR"));
        for set in settings {
            for conn in [&mut whole, &mut parts] {
                let set = if set.is_empty() { "DO 1" } else { set };
                conn.query_drop(set)
                    .await
                    .map_err(|error| error.to_string())?;
            }
            for (sql, in_order) in &all {
                if !in_order && set.contains("limit") {
                    continue;
                }
                let wanted = ask(&mut whole, sql).await;
                let found = ask(&mut parts, sql).await;
                let (mut wanted, mut found) = match (wanted, found) {
                    (Ok((_, wanted)), Ok((_, found))) => (wanted, found),
                    (Err(wanted), Err(found)) if wanted == found => continue,
                    (wanted, found) => {
                        let said = |answer: Result<_, String>| answer.err().unwrap_or_default();
                        let (wanted, found) = (said(wanted), said(found));
                        wrong.push(format!("{set}: {sql}: {found} instead of {wanted}"));
                        continue;
                    }
                };
                if !in_order {
                    wanted.sort();
                    found.sort();
                }
                if wanted != found {
                    let (found, wanted) = (shown(&found), shown(&wanted));
                    wrong.push(format!("{set}: {sql}:\n{found}\ninstead of\n{wanted}"));
                }
            }
        }
        expect(wrong.is_empty(), || {
            format!("{vendor}: {}:\n{}", wrong.len(), wrong.join("\n\n"))
        })?;
        counted(&world)?;
    }
    Ok(())
}

/// The table of numbers has seen what was finished.
fn counted(world: &World) -> Outcome {
    let told = world.proxy.admin(
        "SELECT finished > 30, rows_copied > 1000 FROM stats_mysql_shards WHERE table_name = 't'",
    )?;
    expect(told.split_whitespace().eq(["1", "1"]), || told.clone())
}

const FINISHING_AGGREGATES: &[&str] = &[
    "COUNT(DISTINCT b)",
    "COUNT(DISTINCT a, d)",
    "SUM(c) / COUNT(*)",
    "SUM(DISTINCT a)",
    "MAX(k) - MIN(a)",
    "CONCAT(MIN(g), '-', COUNT(*))",
    "IFNULL(AVG(c), 0) + 1",
    "SUM(k) * 2",
    "COUNT(*)",
    "MIN(d)",
];
const CONDITIONS_OF_X: &[&str] = &[
    "",
    " AND x.a IS NOT NULL",
    " AND x.k > 100",
    " AND x.b = 'A'",
    " AND x.k IN (3, 4, 5, 77)",
    " AND (x.h LIKE 'z%' OR x.c > 0)",
    " AND x.k < 0",
    " AND x.c > (SELECT AVG(c) FROM t)",
];
const CONDITIONS_OF_Y: &[&str] = &[
    "",
    " AND y.v > 2",
    " AND y.k < 30 AND y.v < x.k",
    " AND y.v IS NULL",
];

/// A SELECT that a server finishes, in which every row has its place.
fn finishing_select(below: &mut dyn FnMut(usize) -> usize) -> String {
    let exact = EXACT[below(EXACT.len() - 2)];
    let other = EXACT[below(EXACT.len() - 2)];
    let condition = CONDITIONS[below(CONDITIONS.len())];
    let of_x = CONDITIONS_OF_X[below(CONDITIONS_OF_X.len())];
    let of_y = CONDITIONS_OF_Y[below(CONDITIONS_OF_Y.len())];
    let join = ["JOIN", "LEFT JOIN"][below(2)];
    let limit = [
        String::new(),
        format!(" LIMIT {}, {}", below(20), below(40)),
    ][below(2)]
    .clone();
    let mut aggregate = || FINISHING_AGGREGATES[below(FINISHING_AGGREGATES.len())];
    let (one, two) = (aggregate(), aggregate());
    match below(7) {
        0 => format!(
            "SELECT {exact}, {one}, COUNT(DISTINCT {other}), {two} FROM t{condition} GROUP BY {exact} HAVING COUNT(DISTINCT k) + 1 > 2 ORDER BY {exact}{limit}"
        ),
        1 => format!(
            "SELECT x.k, x.h, y.k, y.la FROM t x {join} u y ON x.a = y.v{of_y} WHERE 1 = 1{of_x} ORDER BY x.k, y.k{limit}"
        ),
        2 => format!(
            "SELECT y.k, COUNT(x.k), COUNT(DISTINCT x.b), MIN(p.id) FROM u y {join} t x ON x.a = y.v{of_x} {join} p ON p.id = x.a WHERE y.k > 3 GROUP BY y.k ORDER BY y.k{limit}"
        ),
        3 => format!(
            "SELECT k, ROW_NUMBER() OVER (PARTITION BY {exact} ORDER BY k), SUM(c) OVER (PARTITION BY {other}) FROM t{condition} ORDER BY k{limit}"
        ),
        4 => format!(
            "SELECT a FROM t{condition} UNION SELECT x.k FROM t x WHERE x.k < 30{of_x} UNION SELECT v FROM u ORDER BY 1{limit}"
        ),
        5 => format!(
            "SELECT k FROM t x WHERE {exact} {} (SELECT {other} FROM t y WHERE y.k < {}){of_x} ORDER BY k{limit}",
            ["IN", "NOT IN"][below(2)],
            below(240),
            exact = exact.replace("t.", "x."),
            other = other.replace("t.", "y."),
        ),
        _ => format!(
            "WITH s AS (SELECT {exact} AS g, {one} AS n FROM t{condition} GROUP BY {exact}) SELECT s.n, x.k FROM s JOIN t x ON x.a <=> s.g WHERE 1 = 1{of_x} ORDER BY x.k, s.n{limit}"
        ),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn randomly_finished(driver: Driver) -> Outcome {
    let mut seed: u64 = if driver == Driver::Epoll { 21 } else { 22 };
    let mut below = |limit: usize| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % limit
    };
    for vendor in vendors() {
        let world = world(driver, vendor)?;
        let [mut whole, mut parts] = world.come_in().await?;
        for _ in 0..150 {
            let sql = finishing_select(&mut below);
            let wanted = ask(&mut whole, &sql).await.map(|(_, rows)| rows);
            let found = ask(&mut parts, &sql).await.map(|(_, rows)| rows);
            expect(wanted == found, || {
                let shown = |rows: &Result<Vec<_>, String>| match rows {
                    Ok(rows) => shown(rows),
                    Err(words) => words.clone(),
                };
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

/// Those whose values need several partitions when they are executed.
fn finished_with_values() -> Vec<(&'static str, Vec<Value>)> {
    vec![
        (
            "SELECT COUNT(DISTINCT a) FROM t WHERE k > ?",
            vec![5.into()],
        ),
        (
            "SELECT d, COUNT(DISTINCT b) FROM t WHERE h <> ? GROUP BY d HAVING COUNT(DISTINCT b) > ? ORDER BY d LIMIT ?",
            vec!["it's \\".into(), 1.into(), 7.into()],
        ),
        (
            "SELECT SUM(a) / COUNT(*) FROM t WHERE at < ?",
            vec![Value::Date(2008, 12, 24, 10, 5, 0, 0)],
        ),
        (
            "SELECT t.k, p.name FROM t JOIN p ON p.id = t.a WHERE t.k < ? ORDER BY t.k, HEX(p.name)",
            vec![50.into()],
        ),
        (
            "SELECT t.k, u.k, u.v FROM t JOIN u ON t.k = u.k WHERE t.k = ? AND u.k = ?",
            vec![6.into(), 6.into()],
        ),
        (
            "SELECT t.k, u.k, u.v FROM t JOIN u ON t.k = u.k WHERE t.k = ? AND u.k = ?",
            vec![7.into(), 7.into()],
        ),
        (
            "SELECT k FROM t WHERE a IN (SELECT v FROM u WHERE k > ?) AND k <> ? ORDER BY k",
            vec![40.into(), 3.into()],
        ),
        (
            "SELECT k, ROW_NUMBER() OVER (ORDER BY k DESC) FROM t WHERE a = ? ORDER BY k",
            vec![3.into()],
        ),
    ]
}

#[tokio::main(flavor = "current_thread")]
async fn finished_as_prepared(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let world = world(driver, vendor)?;
        let [mut whole, mut parts] = world.come_in().await?;
        for (sql, values) in finished_with_values() {
            let wanted = executed(&mut whole, sql, values.clone()).await?;
            for _ in 0..2 {
                let found = executed(&mut parts, sql, values.clone()).await;
                let mut found = found.unwrap_or_else(|words| words);
                if let Some(rest) = found.strip_prefix('\n')
                    && let Some((columns, _)) = rest.split_once('\n')
                {
                    // No server has its tables: its columns are told when it is executed.
                    found = format!("{columns}\n{rest}");
                }
                expect(found == wanted, || {
                    format!("{vendor}: {sql}:\n{found}\ninstead of\n{wanted}")
                })?;
            }
        }
    }
    Ok(())
}

/// Runs for hours on the server that finishes it.
const ENDLESS: &str = "SELECT COUNT(DISTINCT a.k + b.k * c.k + d.k) FROM t a, t b, t c, t d";
const RUNNING: &str = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE '%DISTINCT%millrace_4%' AND INFO NOT LIKE '%PROCESSLIST%'";

impl World {
    /// The server that finishes statements.
    fn scratch(&self) -> usize {
        usize::from(self.servers[0].vendor == Vendor::MySql)
    }

    /// Waits until the endless statement runs there, or does no more.
    async fn until_runs(&self, runs: bool) -> Outcome {
        let wanted = if runs { "1" } else { "0" };
        let server = &self.servers[self.scratch()];
        let mut told = String::new();
        for _ in 0..600 {
            told = server.root(RUNNING)?;
            if told.split_whitespace().last() == Some(wanted) {
                return Ok(());
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        Err(format!("{told} of them run instead of {wanted}"))
    }
}

/// The error of a statement.
async fn error_of(conn: &mut Conn, sql: &str) -> Result<String, String> {
    match ask(conn, sql).await {
        Ok((_, rows)) => Err(format!("{sql}: {}", shown(&rows))),
        Err(words) => Ok(words),
    }
}

/// No session sees a copy that was made for another statement.
async fn none_is_left(world: &World) -> Outcome {
    let [_, mut conn] = world.come_in().await?;
    for hostgroup in [0, 1].repeat(8) {
        let sql = format!("/* hostgroup={hostgroup} */ SELECT COUNT(*) FROM whole.millrace_1");
        let said = error_of(&mut conn, &sql).await?;
        expect(said.contains("doesn't exist"), || said.clone())?;
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn finished_or_not(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let mut world = world(driver, vendor)?;
        world
            .proxy
            .admin("SET mysql-multiplexing = 'true'; LOAD MYSQL VARIABLES TO RUNTIME")?;
        limited(&world).await?;
        named_twice(&world).await?;
        none_is_left(&world).await?;
        // KILL QUERY ends it, and leaves the session.
        let [_, mut conn] = world.come_in().await?;
        let [_, mut other] = world.come_in().await?;
        let id = conn.id();
        let running = tokio::spawn(async move {
            let said = error_of(&mut conn, ENDLESS).await;
            (
                said,
                ask(&mut conn, "SELECT COUNT(DISTINCT a) FROM t").await,
            )
        });
        world.until_runs(true).await?;
        let kill = format!("KILL QUERY {id}");
        other
            .query_drop(kill)
            .await
            .map_err(|error| error.to_string())?;
        let (said, after) = running.await.map_err(|error| error.to_string())?;
        let said = said?;
        expect(said.contains("1317"), || said.clone())?;
        after?;
        world.until_runs(false).await?;
        // So does a client that leaves.
        let [_, mut conn] = world.come_in().await?;
        let running = tokio::spawn(async move { error_of(&mut conn, ENDLESS).await });
        world.until_runs(true).await?;
        running.abort();
        world.until_runs(false).await?;
        none_is_left(&world).await?;
        // The server dies.
        let [_, mut conn] = world.come_in().await?;
        let running = tokio::spawn(async move { error_of(&mut conn, ENDLESS).await });
        world.until_runs(true).await?;
        let scratch = world.scratch();
        world.servers[scratch].kill();
        let said = running.await.map_err(|error| error.to_string())??;
        expect(said.contains("ERROR"), || said.clone())?;
    }
    Ok(())
}

/// A query of WITH that is named twice: MySQL cannot read a copy twice.
async fn named_twice(world: &World) -> Outcome {
    let [mut whole, mut parts] = world.come_in().await?;
    let sql = "WITH s AS (SELECT k, a FROM t WHERE k < 50) SELECT x.k, y.k FROM s x JOIN s y ON x.a = y.k ORDER BY x.k, y.k";
    let (_, wanted) = ask(&mut whole, sql).await?;
    match ask(&mut parts, sql).await {
        Ok((_, found)) => expect(found == wanted, || shown(&found)),
        Err(said) => expect(
            said.contains("write the query in place of its name"),
            || said.clone(),
        ),
    }
}

/// Limits are named, and `off` is.
async fn limited(world: &World) -> Outcome {
    let [_, mut conn] = world.come_in().await?;
    let big = "REPEAT('x', 600000)";
    world.servers[0].root(&format!(
        "CREATE TABLE whole.big (x LONGTEXT); INSERT INTO whole.big VALUES ({big}), ({big})"
    ))?;
    for (variable, value, usual, sql, words) in [
        (
            "max_rows",
            "100",
            "1000000",
            "SELECT COUNT(DISTINCT a) FROM t",
            "mysql-sharding_scratch_max_rows allows 100",
        ),
        (
            "max_MB",
            "1",
            "256",
            "SELECT COUNT(*) FROM t JOIN big ON x <> t.h",
            "mysql-sharding_scratch_max_MB allows 1",
        ),
    ] {
        let set = |value| {
            format!(
                "SET mysql-sharding_scratch_{variable} = {value}; LOAD MYSQL VARIABLES TO RUNTIME"
            )
        };
        world.proxy.admin(&set(value))?;
        let said = error_of(&mut conn, sql).await?;
        expect(said.contains(words), || said.clone())?;
        world.proxy.admin(&set(usual))?;
        ask(&mut conn, sql).await?;
    }
    for (sql, words) in [
        ("BEGIN", ""),
        ("SELECT 1 FROM p", ""),
        ("SELECT COUNT(DISTINCT a) FROM t", "a transaction is open"),
        ("COMMIT", ""),
        ("SELECT COUNT(DISTINCT a), @x FROM t", "HSCALE-1000"),
        (
            "SELECT t.k FROM t USE INDEX (PRIMARY) JOIN p ON p.id = t.a",
            "without the indexes",
        ),
    ] {
        match ask(&mut conn, sql).await {
            Err(said) => expect(!words.is_empty() && said.contains(words), || said.clone())?,
            Ok(_) => expect(words.is_empty(), || sql.to_owned())?,
        }
    }
    world
        .proxy
        .admin("SET mysql-sharding_scratch = 'off'; LOAD MYSQL VARIABLES TO RUNTIME")?;
    let said = error_of(&mut conn, "SELECT COUNT(DISTINCT a) FROM t").await?;
    expect(said.contains("SELECT DISTINCT the values"), || said.clone())?;
    let said = error_of(&mut conn, "SELECT t.k FROM t JOIN p ON p.id = t.a").await?;
    expect(said.contains("the plain table p"), || said.clone())?;
    let usual = ["map", "hostgroup"][world.scratch()];
    world.proxy.admin(&format!(
        "SET mysql-sharding_scratch = '{usual}'; LOAD MYSQL VARIABLES TO RUNTIME"
    ))?;
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn refused(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let world = world(driver, vendor)?;
        let [_, mut parts] = world.come_in().await?;
        for (sql, words) in [
            ("SELECT k INTO @k FROM t", "not understood whole"),
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
