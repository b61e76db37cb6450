//! The 22 questions of TPC-H, over tables with few rows.

use crate::{Chance, Outcome, Place, Row, Table, World, told};
use conformance::partitions::shown;
use conformance::proxy::Driver;
use conformance::servers::{Vendor, vendors};
use conformance::trials::expect;

const TPCH: &str = include_str!("tpch.sql");

/// Parts of the file: each begins with a line `-- name`.
fn part(name: &str) -> Result<&'static str, String> {
    let head = format!("-- {name}\n");
    let at = TPCH.find(&head).ok_or_else(|| name.to_owned())?;
    let text = &TPCH[at + head.len()..];
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
    for statement in part("schema")?.split(';') {
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
pub(crate) async fn questions(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let world = World::with(driver, vendor, &tpch(7)?)?;
        let [mut whole, mut parts] = world.come_in().await?;
        let (mut wrong, mut empty) = (Vec::new(), Vec::new());
        for number in 1..=22 {
            let sql = part(&format!("q{number}"))?;
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
