//! Which names of a statement servers may tell apart by their case: those of tables, their schemas
//! and their aliases (MySQL manual, "Identifier Case Sensitivity"). Names of columns and functions
//! are the same in any case, but for the columns of a result: these have the titles that the text
//! gives them.

use crate::parts::Part;

/// Statements that are read here; in others each name counts.
const READ: [&str; 7] = [
    "DELETE", "INSERT", "REPLACE", "SELECT", "UPDATE", "VALUES", "WITH",
];
/// Words behind which tables are named.
const BEFORE_TABLES: [&str; 10] = [
    "DELETE",
    "FROM",
    "INSERT",
    "INTO",
    "JOIN",
    "REPLACE",
    "STRAIGHT_JOIN",
    "TABLE",
    "UPDATE",
    "WITH",
];
/// Words that end a list of tables.
const BEHIND_TABLES: [&str; 9] = [
    "GROUP", "HAVING", "LIMIT", "ORDER", "SELECT", "SET", "VALUES", "WHERE", "WINDOW",
];

/// Where in a statement we are.
#[derive(Clone, Copy, Default)]
struct At {
    /// Names here are those of tables.
    tables: bool,
    /// A comma leads to the next table.
    listed: bool,
    /// Whether what is here gives a column of the result its title.
    titles: bool,
}

/// For each part whether its case may count. In doubt it does.
pub(crate) fn counts(parts: &[Part<'_>]) -> Vec<bool> {
    let is = |part: Option<&Part<'_>>, words: &[&str]| match part {
        Some(Part::Keyword(word)) => words
            .iter()
            .any(|known| word.eq_ignore_ascii_case(known.as_bytes())),
        _ => false,
    };
    let first = parts.iter().find(|part| !matches!(part, Part::Sign(b'(')));
    if !is(first, &READ) {
        return vec![true; parts.len()];
    }
    let mut counts = vec![false; parts.len()];
    let (mut here, mut around) = (At::default(), Vec::new());
    let mut before: Option<&Part<'_>> = None;
    for (nth, part) in parts.iter().enumerate() {
        match part {
            Part::Name(_) => {
                let next = parts.get(nth + 1);
                // Functions are called in any case, also where they are selected.
                let titles = here.titles && !matches!(next, Some(Part::Sign(b'(')));
                counts[nth] = here.tables || titles || matches!(next, Some(Part::Sign(b'.')));
            }
            // ON DUPLICATE KEY UPDATE a = …
            Part::Keyword(_) if is(Some(part), &["UPDATE"]) && is(before, &["KEY"]) => {
                here = At::default()
            }
            Part::Keyword(_) if is(Some(part), &BEFORE_TABLES) => {
                here = At {
                    tables: true,
                    listed: true,
                    titles: false,
                }
            }
            Part::Keyword(_) if is(Some(part), &["SELECT", "RETURNING"]) => {
                here = At {
                    titles: true,
                    ..At::default()
                }
            }
            Part::Keyword(_) if is(Some(part), &BEHIND_TABLES) => here = At::default(),
            Part::Keyword(_) if is(Some(part), &["ON"]) => here.tables = false,
            Part::Sign(b',') => here.tables = here.listed,
            Part::Sign(b'(') => {
                around.push(here);
                // Of a function, or a list of columns.
                let of_name = matches!(before, Some(Part::Name(_)));
                here = if here.tables && !of_name {
                    here
                } else {
                    At {
                        titles: here.titles,
                        ..At::default()
                    }
                };
            }
            Part::Sign(b')') => here = around.pop().unwrap_or_default(),
            _ => {}
        }
        before = Some(part);
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexing::Lexing;
    use crate::parts::Parts;

    /// The names whose case counts.
    fn counted(sql: &str) -> Vec<String> {
        let parts: Vec<_> = Parts::of(sql.as_bytes(), Lexing::Escapes).collect();
        let of = |(part, counts): (&Part<'_>, bool)| match part {
            Part::Name(name) if counts => Some(String::from_utf8_lossy(name).into_owned()),
            _ => None,
        };
        parts.iter().zip(counts(&parts)).filter_map(of).collect()
    }

    #[test]
    fn the_case_of_tables_counts_and_that_of_columns_does_not() {
        for (sql, wanted) in [
            ("SELECT a, f(b) FROM t WHERE c = 1 ORDER BY d, e", "a b t"),
            (
                "SELECT t.a, s.t.b, `c` FROM s.t AS x, u",
                "t a s t b c s t x u",
            ),
            ("SELECT a FROM t JOIN u ON b = c, v WHERE d", "a t u v"),
            (
                "SELECT a FROM (t, u) LEFT JOIN v USING (b) WHERE c IN (SELECT d FROM w x WHERE e)",
                "a t u v b d w x",
            ),
            (
                "SELECT a FROM (SELECT b FROM t) x GROUP BY c HAVING d",
                "a b t x",
            ),
            ("SELECT (SELECT a FROM t LIMIT 1), b FROM u", "a t b u"),
            (
                "INSERT INTO t (a, b) VALUES (c, f(d)) ON DUPLICATE KEY UPDATE e = f, g = h",
                "t",
            ),
            ("INSERT INTO t (a) SELECT b FROM u", "t b u"),
            ("UPDATE t, u SET a = b, t.c = d WHERE e", "t u t"),
            (
                "UPDATE t JOIN (SELECT a FROM u) x ON b = c SET d = 1",
                "t a u x",
            ),
            (
                "DELETE x, y FROM t x JOIN u y ON a = b WHERE c",
                "x y t x u y",
            ),
            ("WITH x AS (SELECT a FROM t) SELECT b FROM x", "x a t b x"),
            ("(SELECT a FROM t) UNION (SELECT b FROM u)", "a t b u"),
            (
                "SELECT a FROM t WHERE b = f(c, d) AND (e, g) = (1, 2)",
                "a t",
            ),
            // Where nobody has looked closer, all count.
            ("CREATE INDEX i ON t (a)", "i t a"),
        ] {
            assert_eq!(counted(sql).join(" "), wanted, "{sql}");
        }
    }
}
