//! SELECTs of all kinds, over columns of all kinds.

use crate::{Chance, Outcome, Place, Table, World, told};
use conformance::partitions::shown;
use conformance::proxy::Driver;
use conformance::servers::vendors;
use conformance::trials::expect;

const SELECTS: &str = include_str!("selects.sql");

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
pub(crate) async fn selects(driver: Driver) -> Outcome {
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
