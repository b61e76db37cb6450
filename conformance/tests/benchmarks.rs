//! Statements that people bring to a proxy: the questions of TPC-H and what SELECT can say, over sharded
//! tables beside a server that has all rows.
#![forbid(unsafe_code)]

use conformance::library;
use conformance::partitions::{ask, shown};
use conformance::proxy::{Driver, Proxy, Wish};
use conformance::servers::{Server, Vendor, vendors};
use conformance::trials::{self, expect};
use mysql_async::Conn;
use mysql_async::prelude::Queryable as _;

type Outcome = Result<(), String>;

const TPCH: &str = include_str!("benchmarks/tpch.sql");
const SELECTS: &str = include_str!("benchmarks/selects.sql");

fn main() {
    trials::run_once(&[
        ("questions_of_tpch_are_answered_as_by_one_server", questions),
        ("selects_of_all_kinds_are_as_over_one_table", selects),
    ])
}

/// Chance from a seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }

    fn between(&mut self, least: usize, most: usize) -> usize {
        least + self.below(most - least + 1)
    }

    fn of<'t>(&mut self, among: &[&'t str]) -> &'t str {
        among[self.below(among.len())]
    }

    fn or_null(&mut self, value: String) -> String {
        match self.below(8) {
            0 => "NULL".to_owned(),
            _ => value,
        }
    }

    /// An amount of money, from cents.
    fn money(&mut self, least: usize, most: usize) -> String {
        let cents = self.between(least, most);
        format!("{}.{:02}", cents / 100, cents % 100)
    }
}

/// A row: its key, and its values as they are written.
type Row = (usize, String);

/// A table, and how it is spread.
struct Table {
    name: &'static str,
    columns: String,
    rows: Vec<Row>,
    place: Place,
}

enum Place {
    /// By the remainder of this column, over so many partitions.
    Sharded(&'static str, usize),
    /// On all servers.
    Reference,
    /// On the first server.
    Plain,
}

struct World {
    servers: [Server; 2],
    proxy: Proxy,
}

impl World {
    /// Two servers and a proxy. The first server has all tables in the schema `whole`, too.
    fn with(driver: Driver, vendor: Vendor, tables: &[Table]) -> Result<Self, String> {
        let servers = [Server::start(vendor)?, Server::start(vendor)?];
        let mut wish = Wish::in_front_of(&servers[0]);
        wish.add(1, &servers[1]);
        let proxy = Proxy::start(driver, &wish)?;
        for server in &servers {
            server.root(
                "CREATE DATABASE whole; CREATE DATABASE parts; GRANT ALL ON *.* TO app@'%'",
            )?;
        }
        let world = Self { servers, proxy };
        for table in tables {
            world.add(table)?;
        }
        world.proxy.admin("LOAD MYSQL SHARDS TO RUNTIME")?;
        Ok(world)
    }

    fn make(&self, server: usize, name: &str, columns: &str, rows: &[&Row]) -> Outcome {
        let server = &self.servers[server];
        server.root(&format!("CREATE TABLE {name} {columns}"))?;
        for rows in rows.chunks(500) {
            let values: Vec<_> = rows.iter().map(|(_, values)| values.as_str()).collect();
            server.root(&format!(
                "SET NAMES utf8mb4; SET time_zone = '+00:00'; INSERT INTO {name} VALUES {}",
                values.join(", ")
            ))?;
        }
        Ok(())
    }

    fn add(&self, table: &Table) -> Outcome {
        let Table { name, columns, .. } = table;
        let all: Vec<&Row> = table.rows.iter().collect();
        self.make(0, &format!("whole.{name}"), columns, &all)?;
        match table.place {
            Place::Plain => Ok(()),
            Place::Reference => {
                for server in [0, 1] {
                    self.make(server, &format!("parts.{name}_all"), columns, &all)?;
                }
                self.proxy.admin(&format!(
                    "INSERT INTO mysql_shard_tables (table_name, kind, default_schema, default_table) VALUES ('{name}', 'REFERENCE', 'parts', '{name}_all'); \
                     INSERT INTO mysql_shard_partitions (table_name, partition_name, hostgroup_id, physical_schema, physical_table) VALUES ('{name}', '1', 1, 'parts', '{name}_all')"
                ))?;
                Ok(())
            }
            Place::Sharded(key, many) => {
                self.make(0, &format!("parts.{name}_default"), columns, &[])?;
                self.proxy.admin(&format!(
                    "INSERT INTO mysql_shard_tables (table_name, key_column, key_type, `function`, default_schema, default_table) \
                     VALUES ('{name}', '{key}', 'INT', 'MOD({many})', 'parts', '{name}_default')"
                ))?;
                for part in 0..many {
                    let is_own = |row: &&Row| row.0 % many == part;
                    let own: Vec<_> = table.rows.iter().filter(is_own).collect();
                    self.make(part % 2, &format!("parts.{name}_{part}"), columns, &own)?;
                    self.proxy.admin(&format!(
                        "INSERT INTO mysql_shard_partitions (table_name, partition_name, partition_value, hostgroup_id, physical_schema) \
                         VALUES ('{name}', '{part}', '{part}', {}, 'parts')",
                        part % 2
                    ))?;
                }
                Ok(())
            }
        }
    }

    /// A client of the server that has the whole tables, and one of the proxy.
    async fn come_in(&self) -> Result<[Conn; 2], String> {
        let words = |error: mysql_async::Error| error.to_string();
        let ports = [self.servers[0].port, self.proxy.port];
        let mut conns = [
            library::come_in(ports[0]).await.map_err(words)?,
            library::come_in(ports[1]).await.map_err(words)?,
        ];
        for conn in &mut conns {
            let set = "SET NAMES utf8mb4, time_zone = '+00:00'";
            conn.query_drop(set).await.map_err(words)?;
            conn.query_drop("USE whole").await.map_err(words)?;
        }
        Ok(conns)
    }
}

/// Names of columns, and rows.
async fn told(conn: &mut Conn, sql: &str) -> Result<(Vec<String>, Vec<gather::Row>), String> {
    let words = |error: mysql_async::Error| error.to_string();
    let result = conn.query_iter(sql).await.map_err(words)?;
    let names = result.columns();
    let names = names.iter().flat_map(|columns| columns.iter());
    let names = names.map(|column| column.name_str().into_owned()).collect();
    result.drop_result().await.map_err(words)?;
    Ok((names, ask(conn, sql).await?.1))
}

/// Parts of a file: each begins with a line `-- name`.
fn part<'t>(file: &'t str, name: &str) -> Result<&'t str, String> {
    let head = format!("-- {name}\n");
    let at = file.find(&head).ok_or_else(|| name.to_owned())?;
    let text = &file[at + head.len()..];
    Ok(text.split("\n-- ").next().unwrap_or_default().trim())
}

const REGIONS: &[&str] = &["AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"];
/// Nations by number, with their regions.
const NATIONS: &[(&str, usize)] = &[
    ("ALGERIA", 0),
    ("ARGENTINA", 1),
    ("BRAZIL", 1),
    ("CANADA", 1),
    ("EGYPT", 4),
    ("ETHIOPIA", 0),
    ("FRANCE", 3),
    ("GERMANY", 3),
    ("INDIA", 2),
    ("INDONESIA", 2),
    ("IRAN", 4),
    ("IRAQ", 4),
    ("JAPAN", 2),
    ("JORDAN", 4),
    ("KENYA", 0),
    ("MOROCCO", 0),
    ("MOZAMBIQUE", 0),
    ("PERU", 1),
    ("CHINA", 2),
    ("ROMANIA", 3),
    ("SAUDI ARABIA", 4),
    ("VIETNAM", 2),
    ("RUSSIA", 3),
    ("UNITED KINGDOM", 3),
    ("UNITED STATES", 1),
];
/// Nations that are asked for are more frequent than others.
const FREQUENT: &[usize] = &[3, 6, 7, 2, 20, 8, 18];

impl Chance {
    fn nation(&mut self) -> usize {
        match self.below(3) {
            0 => self.below(NATIONS.len()),
            _ => FREQUENT[self.below(FREQUENT.len())],
        }
    }

    fn phone(&mut self, nation: usize) -> String {
        format!("{}-555-{:04}", nation + 10, self.below(10_000))
    }

    fn suppliers(&mut self) -> Vec<Row> {
        let mut row = |key: usize| {
            let nation = self.nation();
            let comment = match key % 9 {
                0 => "Customer and Complaints",
                _ => "fine",
            };
            let phone = self.phone(nation);
            let money = self.money(0, 999_999);
            format!(
                "({key}, 'Supplier#{key:09}', 'street {key}', {nation}, '{phone}', {money}, '{comment}')"
            )
        };
        (1..=30).map(|key| (key, row(key))).collect()
    }

    fn parts(&mut self) -> Vec<Row> {
        const TYPES: &[&str] = &[
            "ECONOMY ANODIZED STEEL",
            "PROMO BRUSHED BRASS",
            "MEDIUM POLISHED TIN",
            "STANDARD BURNISHED BRASS",
        ];
        let mut row = |key: usize| {
            format!(
                "({key}, '{} {}', 'Mfgr#{}', 'Brand#{}', '{}', {}, '{}', {}, 'none')",
                self.of(&["forest", "lime", "green"]),
                self.of(&["green", "rose", "puff"]),
                self.between(1, 5),
                self.of(&["12", "23", "34", "45"]),
                self.of(TYPES),
                self.of(&["15", "49", "14", "23", "9", "3"]),
                self.of(&["SM CASE", "SM BOX", "MED BOX", "MED BAG", "LG CASE"]),
                self.money(90_000, 200_000),
            )
        };
        (1..=90).map(|key| (key, row(key))).collect()
    }

    /// Four suppliers of each part.
    fn offers(&mut self) -> Vec<Row> {
        let mut all = Vec::new();
        for part in 1..=90 {
            for number in 0..4 {
                let (many, cost) = (self.between(1, 40), self.money(100, 100_000));
                let row = format!(
                    "({part}, {}, {many}, {cost}, 'none')",
                    supplier(part, number)
                );
                all.push((part, row));
            }
        }
        all
    }

    fn customers(&mut self) -> Vec<Row> {
        let mut row = |key: usize| {
            let nation = self.nation();
            let phone = self.phone(nation);
            let segment = self.of(&["BUILDING", "MACHINERY", "AUTOMOBILE"]);
            let money = self.money(0, 999_999);
            format!(
                "({key}, 'Customer#{key:09}', 'street {key}', {nation}, '{phone}', {money}, '{segment}', 'none')"
            )
        };
        (1..=120).map(|key| (key, row(key))).collect()
    }

    /// Orders, and their lines.
    fn orders(&mut self) -> [Vec<Row>; 2] {
        let (mut orders, mut lines) = (Vec::new(), Vec::new());
        for number in 1..=600 {
            let key = number * 4 - 3;
            let day = self.below(1400);
            let comment = self.of(&["fine", "special requests"]);
            let row = format!(
                "({key}, {}, '{}', {}, DATE '1993-01-01' + INTERVAL {day} DAY, '{}', 'Clerk#1', 0, '{comment}')",
                self.between(1, 80),
                self.of(&["F", "O", "P"]),
                self.money(100_000, 50_000_000),
                self.of(&["1-URGENT", "2-HIGH", "3-MEDIUM", "5-LOW"]),
            );
            orders.push((key, row));
            for line in 1..=self.between(1, 7) {
                lines.push((key, self.line(key, line, day)));
            }
        }
        [orders, lines]
    }

    fn line(&mut self, order: usize, line: usize, day: usize) -> String {
        let (part, offer) = (self.between(1, 90), self.below(4));
        let shipped = day + self.between(1, 121);
        let date = |day| format!("DATE '1993-01-01' + INTERVAL {day} DAY");
        format!(
            "({order}, {part}, {}, {line}, {}, {}, 0.{:02}, 0.{:02}, '{}', '{}', {}, {}, {}, '{}', '{}', 'none')",
            supplier(part, offer),
            self.between(1, 50),
            self.money(90_000, 9_000_000),
            self.below(11),
            self.below(9),
            self.of(&["R", "A", "N"]),
            self.of(&["O", "F"]),
            date(shipped),
            date(day + self.between(30, 90)),
            date(shipped + self.between(1, 30)),
            self.of(&["DELIVER IN PERSON", "COLLECT COD"]),
            self.of(&["MAIL", "SHIP", "AIR", "AIR REG"]),
        )
    }
}

/// A supplier of a part.
fn supplier(part: usize, number: usize) -> usize {
    1 + (part + number * 7) % 30
}

/// Tables of TPC-H, with few rows.
fn tpch(seed: u64) -> Result<Vec<Table>, String> {
    let mut chance = Chance(seed);
    let [orders, lines] = chance.orders();
    let mut tables = Vec::new();
    for statement in part(TPCH, "schema")?.split(';') {
        let (head, columns) = statement.split_once('(').ok_or("no columns")?;
        let columns = format!("({columns}");
        let name = head.trim().rsplit(' ').next().unwrap_or_default();
        let numbered = |names: Vec<String>| (0..).zip(names).collect::<Vec<Row>>();
        let (name, rows, place) = match name {
            "region" => {
                let rows = (0..)
                    .zip(REGIONS)
                    .map(|(key, name)| format!("({key}, '{name}', '')"));
                ("region", numbered(rows.collect()), Place::Reference)
            }
            "nation" => {
                let rows = (0..).zip(NATIONS);
                let rows = rows.map(|(key, (name, of))| format!("({key}, '{name}', {of}, '')"));
                ("nation", numbered(rows.collect()), Place::Reference)
            }
            "supplier" => ("supplier", chance.suppliers(), Place::Plain),
            "part" => ("part", chance.parts(), Place::Plain),
            "partsupp" => ("partsupp", chance.offers(), Place::Plain),
            "customer" => (
                "customer",
                chance.customers(),
                Place::Sharded("c_custkey", 2),
            ),
            "orders" => ("orders", orders.clone(), Place::Sharded("o_orderkey", 3)),
            "lineitem" => ("lineitem", lines.clone(), Place::Sharded("l_orderkey", 3)),
            other => return Err(other.to_owned()),
        };
        tables.push(Table {
            name,
            columns,
            rows,
            place,
        });
    }
    Ok(tables)
}

#[tokio::main(flavor = "current_thread")]
async fn questions(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let world = World::with(driver, vendor, &tpch(7)?)?;
        let [mut whole, mut parts] = world.come_in().await?;
        let (mut wrong, mut empty) = (Vec::new(), Vec::new());
        for number in 1..=22 {
            let sql = part(TPCH, &format!("q{number}"))?;
            let wanted = told(&mut whole, sql).await?;
            let has_any = wanted.1.iter().flatten().any(Option::is_some);
            empty.extend((!has_any).then_some(number));
            match told(&mut parts, sql).await {
                Ok(found) if found == wanted => {}
                Ok((names, rows)) => wrong.push(format!(
                    "q{number}: {names:?}\n{}\ninstead of {:?}\n{}",
                    shown(&rows),
                    wanted.0,
                    shown(&wanted.1)
                )),
                // MySQL reads a copy of a table once in a statement.
                Err(words)
                    if number == 15
                        && vendor == Vendor::MySql
                        && words.contains("write the query in place of its name") => {}
                Err(words) => wrong.push(format!("q{number}: {words}")),
            }
        }
        expect(wrong.is_empty(), || {
            format!("{vendor}: {}:\n{}", wrong.len(), wrong.join("\n\n"))
        })?;
        expect(empty.is_empty(), || {
            format!("{vendor}: no rows that would tell: {empty:?}")
        })?;
    }
    Ok(())
}

/// Columns of all kinds.
const COLUMNS: &str = "(k INT PRIMARY KEY, a INT NULL, b VARCHAR(20), c DECIMAL(12,3), d DATE, at DATETIME(3), e DOUBLE, f TIME, \
    n ENUM('z','y','x'), s SET('p','q','r'), j JSON, bi BIT(9), y YEAR, bu BIGINT UNSIGNED, ts TIMESTAMP NULL, x VARCHAR(20) COLLATE utf8mb4_bin)";

impl Chance {
    fn row(&mut self, key: usize) -> String {
        let values = [
            self.below(9).to_string(),
            format!(
                "'{}'",
                self.of(&["a", "A", "ä", "a ", "b", "z", "Zebra", "", "ß"])
            ),
            format!("{}{}", self.of(&["", "-"]), self.money(0, 50_000)),
            format!(
                "'200{}-0{}-1{}'",
                self.between(7, 9),
                self.between(1, 9),
                self.below(10)
            ),
            format!("'2008-12-2{} 10:0{}:00.5'", self.below(10), self.below(10)),
            format!("{}.5", self.below(100)),
            format!(
                "'{}{}:0{}:00'",
                self.of(&["", "-"]),
                self.below(200),
                self.below(10)
            ),
            format!("'{}'", self.of(&["z", "y", "x"])),
            format!("'{}'", self.of(&["p", "p,q", "r", "", "q,r"])),
            format!(
                "'{}'",
                self.of(&["{\"a\":1}", "[1,2]", "\"abc\"", "3", "3.5", "true"])
            ),
            self.below(512).to_string(),
            self.of(&["1999", "2008", "2024"]).to_owned(),
            (18_446_744_073_709_551_000 + self.below(600) as u64).to_string(),
            format!("'2008-12-2{} 10:0{}:00'", self.below(10), self.below(10)),
            format!("'{}'", self.of(&["a", "A", "ä", "b", "B"])),
        ];
        let values: Vec<_> = values
            .into_iter()
            .map(|value| self.or_null(value))
            .collect();
        format!("({key}, {})", values.join(", "))
    }
}

fn tables_of_all_kinds() -> Vec<Table> {
    let mut chance = Chance(5);
    let rows = (1..=120).map(|key| (key, chance.row(key))).collect();
    let mut other = |key: usize| format!("({key}, {}, 'u{}')", chance.between(1, 120), key % 7);
    let others = (1..=60).map(|key| (key, other(key))).collect();
    let named = |begin: &str, from, to| {
        let row = |key| (key, format!("({key}, '{begin}{key}')"));
        (from..to).map(row).collect()
    };
    let table = |name, columns: &str, rows, place| Table {
        name,
        columns: columns.to_owned(),
        rows,
        place,
    };
    let of_names = "(id INT PRIMARY KEY, name VARCHAR(10))";
    vec![
        table("t", COLUMNS, rows, Place::Sharded("k", 3)),
        table(
            "u",
            "(k INT PRIMARY KEY, v INT, w VARCHAR(10))",
            others,
            Place::Sharded("k", 2),
        ),
        table("p", of_names, named("n", 1, 20), Place::Plain),
        table("g", of_names, named("g", 0, 10), Place::Reference),
    ]
}

#[tokio::main(flavor = "current_thread")]
async fn selects(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let world = World::with(driver, vendor, &tables_of_all_kinds())?;
        let [mut whole, mut parts] = world.come_in().await?;
        let (mut wrong, mut unknown, mut all) = (Vec::new(), 0, 0);
        let lines = SELECTS.lines();
        for line in lines.filter(|line| !line.is_empty() && !line.starts_with("--")) {
            all += 1;
            let (sql, is_refused) = match line.strip_prefix("refused: ") {
                Some(sql) => (sql, true),
                None => (line, false),
            };
            let Ok(mut wanted) = told(&mut whole, sql).await else {
                // This vendor does not know it.
                unknown += 1;
                continue;
            };
            let mut found = match (told(&mut parts, sql).await, is_refused) {
                (Ok(_), true) => {
                    wrong.push(format!("{sql}: is not refused"));
                    continue;
                }
                (Err(words), true) if words.contains("HSCALE-1000") => continue,
                (Err(words), _) => {
                    wrong.push(format!("{sql}: {words}"));
                    continue;
                }
                (Ok(found), false) => found,
            };
            if !sql.contains("ORDER BY") {
                wanted.1.sort();
                found.1.sort();
            }
            if found != wanted {
                wrong.push(format!(
                    "{sql}: {:?}\n{}\ninstead of {:?}\n{}",
                    found.0,
                    shown(&found.1),
                    wanted.0,
                    shown(&wanted.1)
                ));
            }
        }
        expect(wrong.is_empty(), || {
            format!(
                "{vendor}: {} of {all}:\n{}",
                wrong.len(),
                wrong.join("\n\n")
            )
        })?;
        expect(unknown < all / 8, || {
            format!("{vendor}: {unknown} of {all}")
        })?;
    }
    Ok(())
}
