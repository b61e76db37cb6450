//! Digests that have come most often lately: growth of their counts between two looks.

use crate::listing::cell;
use bridge::Table;
use std::collections::HashMap;

/// Seconds between two looks: for one the admin port lists all digests.
const EVERY_S: u64 = 10;
/// Seconds after which the last look says nothing of what is now.
const STALE_S: u64 = 60;
/// Digests of these seconds that are compared; those with the largest counts.
const COMPARED_MAX: usize = 1000;
/// Digests that are shown.
const SHOWN_MAX: usize = 5;

/// Digest, hostgroup and user.
type Key = [Box<str>; 3];

/// Times and microseconds of a digest.
type Counts = [u64; 2];

/// The last look, and what has grown before it.
#[derive(Debug, Default)]
pub(crate) struct Busiest {
    /// Seconds since 1970; 0 before the first look.
    at: u64,
    seen: HashMap<Key, Counts>,
    grown: Table,
}

impl Busiest {
    /// The question for the next look, if it is time for it.
    pub(crate) fn question(&self, now: u64) -> Option<String> {
        (now >= self.at + EVERY_S).then(|| {
            format!(
                "SELECT digest_text, hostgroup, username, sum(count_star), sum(sum_time), min(first_seen), max(last_seen), digest \
                 FROM stats_mysql_query_digest WHERE last_seen >= {} GROUP BY digest, hostgroup, username \
                 ORDER BY 4 DESC LIMIT {COMPARED_MAX}",
                now.saturating_sub(EVERY_S + EVERY_S / 2)
            )
        })
    }

    /// Compares the answer with the look before.
    pub(crate) fn look(&mut self, now: u64, answer: &Table) {
        let is_first = self.at == 0 || now > self.at + STALE_S;
        let took = now.saturating_sub(self.at).max(1);
        let mut seen = HashMap::new();
        let mut grown = Vec::new();
        for row in &answer.rows {
            let number = |at| cell(row, at).parse::<u64>().unwrap_or(0);
            let key = [7, 1, 2].map(|at| Box::from(cell(row, at)));
            let (counts, first_seen) = ([number(3), number(4)], number(5));
            let since = match self.seen.get(&key) {
                // Somebody has counted from 0 again.
                Some(before) if before[0] > counts[0] => counts,
                Some(before) => [0, 1].map(|at| counts[at].saturating_sub(before[at])),
                None if first_seen >= self.at => counts,
                // It was not among those that were compared.
                None => [0, 0],
            };
            if since[0] > 0 && !is_first {
                let usual = counts[0] as f64 / number(6).saturating_sub(first_seen).max(1) as f64;
                let rate = since[0] as f64 / took as f64;
                let shown = [
                    cell(row, 0).to_owned(),
                    cell(row, 1).to_owned(),
                    cell(row, 2).to_owned(),
                    format!("{rate:.1}"),
                    format!("{usual:.1}"),
                    (since[1] / took).to_string(),
                ];
                grown.push((since[0], shown));
            }
            seen.insert(key, counts);
        }
        grown.sort_by_key(|(times, _)| std::cmp::Reverse(*times));
        grown.truncate(SHOWN_MAX);
        let rows = grown.into_iter();
        self.grown.rows = rows
            .map(|(_, row)| row.into_iter().map(|cell| Some(cell.into())).collect())
            .collect();
        (self.at, self.seen) = (now, seen);
    }

    /// The digests that have grown most: text, hostgroup, user, times a second, times a second in all its
    /// life, microseconds of a second.
    pub(crate) fn table(&self) -> Table {
        self.grown.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(rows: &[(&str, u64, u64, u64)]) -> Table {
        let row = |(digest, count, time, first): &(&str, u64, u64, u64)| {
            let cells = [
                format!("SELECT {digest}"),
                "0".into(),
                "app".into(),
                count.to_string(),
                time.to_string(),
                first.to_string(),
                "1100".into(),
                (*digest).to_owned(),
            ];
            cells.into_iter().map(|cell| Some(cell.into())).collect()
        };
        Table {
            names: Vec::new(),
            rows: rows.iter().map(row).collect(),
        }
    }

    fn shown(busiest: &Busiest) -> Vec<String> {
        let table = busiest.table();
        let row = |row: &Vec<Option<Box<str>>>| {
            let cells: Vec<_> = (0..row.len()).map(|at| cell(row, at)).collect();
            cells.join("|")
        };
        table.rows.iter().map(row).collect()
    }

    #[test]
    fn what_grows_most_is_first_and_its_usual_rate_beside_it() {
        let mut busiest = Busiest::default();
        assert!(busiest.question(1000).is_some());
        busiest.look(1000, &answer(&[("a", 9000, 9000, 100), ("b", 10, 10, 100)]));
        assert_eq!(shown(&busiest), Vec::<String>::new());
        assert_eq!(busiest.question(1009), None);
        busiest.look(
            1010,
            &answer(&[
                ("a", 9010, 9500, 100),
                ("b", 5010, 60_010, 100),
                ("c", 20, 20, 1005),
            ]),
        );
        assert_eq!(
            shown(&busiest),
            [
                "SELECT b|0|app|500.0|5.0|6000",
                "SELECT c|0|app|2.0|0.2|2",
                "SELECT a|0|app|1.0|9.0|50"
            ]
        );
    }

    #[test]
    fn an_old_look_and_counts_that_begin_anew_show_no_flood() {
        let mut busiest = Busiest::default();
        busiest.look(1000, &answer(&[("a", 9000, 9000, 100)]));
        busiest.look(
            1010,
            &answer(&[("a", 30, 30, 1004), ("old", 800, 800, 100)]),
        );
        assert_eq!(shown(&busiest), ["SELECT a|0|app|3.0|0.3|3"]);
        busiest.look(2000, &answer(&[("a", 8000, 8000, 1004)]));
        assert_eq!(shown(&busiest), Vec::<String>::new());
    }
}
