//! Rows of several partitions become one result: a machine that asks for rows and gives rows.

use crate::aggregate::{Cells, Table};
use crate::order::{Column, Kind, Ranked};
use crate::recipe::{Key, Recipe};
use std::cmp::Ordering;
use std::collections::VecDeque;

/// A row; NULL is `None`, everything else the text that a server writes for it.
pub type Row = Cells;

/// Next step of a merge.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// The next row of this partition has to be given, or its end.
    Needs(usize),
    /// A row for the client.
    Row(Row),
    /// No row comes any more; partitions may have more, which nobody needs.
    Done,
    /// The client gets this error.
    Failed(String),
}

/// Groups that are sorted in memory.
pub const SORTED_ROWS_MAX: usize = 100_000;
/// Bytes of them.
pub const SORTED_BYTES_MAX: usize = 64 << 20;

/// A row of a partition, with its keys.
struct Head {
    row: Row,
    keys: Vec<Ranked>,
}

/// A partition.
enum Source {
    /// Its next row is not here.
    Unknown,
    /// This is its next row.
    Next(Head),
    /// The partition has no more rows.
    Ended,
}

/// Merges the rows of several partitions.
pub struct Merge<'r> {
    recipe: &'r Recipe,
    columns: Vec<Column>,
    /// Columns that clients get.
    visible: usize,
    sources: Vec<Source>,
    /// The group that is being put together, or the last row that was given of those that are
    /// distinct.
    open: Option<Head>,
    /// Groups that wait for the order in the end.
    sorting: Vec<Head>,
    sorting_bytes: usize,
    /// Rows that are ready.
    ready: VecDeque<Row>,
    gathered: bool,
    left_out: u64,
    given: u64,
}

impl<'r> Merge<'r> {
    /// With the columns of the partitions' results, hidden ones included.
    ///
    /// # Errors
    /// A sentence: what of these types cannot be put together.
    pub fn new(
        recipe: &'r Recipe,
        columns: Vec<Column>,
        partitions: usize,
    ) -> Result<Self, String> {
        if !recipe.listed(&columns)?.is_empty() {
            return Err("the order of an ENUM or SET cannot be put together over several partitions; order or group by column + 0".into());
        }
        let visible = columns.len() - recipe.hidden;
        Ok(Self {
            recipe,
            columns,
            visible,
            sources: (0..partitions).map(|_| Source::Unknown).collect(),
            open: None,
            sorting: Vec::new(),
            sorting_bytes: 0,
            ready: VecDeque::new(),
            gathered: false,
            left_out: 0,
            given: 0,
        })
    }

    /// The next row of a partition, or its end.
    pub fn give(&mut self, partition: usize, row: Option<Row>) -> Result<(), String> {
        let next = match row {
            None => Source::Ended,
            Some(row) if row.len() == self.columns.len() => Source::Next(Head {
                keys: ranked(&self.table(), &row, &self.recipe.keys)?,
                row,
            }),
            Some(_) => return Err("a partition has answered with another number of columns".into()),
        };
        if let Some(source) = self.sources.get_mut(partition) {
            *source = next;
        }
        Ok(())
    }

    /// Returns what comes next.
    pub fn step(&mut self) -> Step {
        loop {
            if self.recipe.limit.is_some_and(|limit| self.given >= limit) {
                return Step::Done;
            }
            if let Some(row) = self.ready.pop_front() {
                if self.left_out < self.recipe.offset {
                    self.left_out += 1;
                    continue;
                }
                self.given += 1;
                return Step::Row(self.shown(row));
            }
            if self.gathered {
                return Step::Done;
            }
            if let Some(needed) = self.needed() {
                return Step::Needs(needed);
            }
            let taken = self.least().and_then(|at| self.take(at));
            if let Err(words) = self.gather(taken) {
                return Step::Failed(words);
            }
        }
    }

    fn table(&self) -> Table<'_> {
        Table {
            columns: &self.columns,
            visible: self.visible,
        }
    }

    fn shown(&self, mut row: Row) -> Row {
        row.truncate(self.visible);
        row
    }

    /// Whether partitions' rows must come in their order. If not, any partition's next row may be
    /// given for the one that is asked for.
    #[must_use]
    pub const fn is_in_order(&self) -> bool {
        !self.recipe.keys.is_empty()
    }

    /// The partition whose next row must be known: in order, every one's.
    fn needed(&self) -> Option<usize> {
        let is_next = |source: &Source| matches!(source, Source::Next(_));
        if !self.is_in_order() && self.sources.iter().any(is_next) {
            return None;
        }
        let is_unknown = |source: &Source| matches!(source, Source::Unknown);
        self.sources.iter().position(is_unknown)
    }

    /// The partition whose next row is the least; of equals the first.
    fn least(&self) -> Option<usize> {
        let mut least: Option<(usize, &Head)> = None;
        for (at, source) in self.sources.iter().enumerate() {
            let Source::Next(head) = source else {
                continue;
            };
            let is_less = least.is_none_or(|(_, known)| {
                by_keys(&head.keys, &known.keys, &self.recipe.keys) == Ordering::Less
            });
            if is_less {
                least = Some((at, head));
            }
        }
        least.map(|(at, _)| at)
    }

    fn take(&mut self, at: usize) -> Option<Head> {
        match std::mem::replace(self.sources.get_mut(at)?, Source::Unknown) {
            Source::Next(head) => Some(head),
            _ => None,
        }
    }

    /// Does what the recipe says with the next row of all; without one, all are in.
    fn gather(&mut self, next: Option<Head>) -> Result<(), String> {
        match (self.recipe.grouping.is_some(), next) {
            (true, Some(head)) => self.group(head),
            (true, None) => self.end_groups(),
            (false, Some(head)) => {
                let keys = &self.recipe.keys;
                let is_new = !self.recipe.distinct
                    || self.open.as_ref().is_none_or(|last| {
                        by_keys(&last.keys, &head.keys, keys) != Ordering::Equal
                    });
                if is_new {
                    self.ready.push_back(head.row.clone());
                    self.open = self.recipe.distinct.then_some(head);
                }
                Ok(())
            }
            (false, None) => {
                self.gathered = true;
                Ok(())
            }
        }
    }

    /// A row of the open group, or the first of another.
    fn group(&mut self, head: Head) -> Result<(), String> {
        let Some(grouping) = &self.recipe.grouping else {
            return Ok(());
        };
        let keys = &self.recipe.keys[..grouping.keys];
        let mut open = match self.open.take() {
            Some(open) if by_keys(&open.keys, &head.keys, keys) == Ordering::Equal => open,
            Some(open) => {
                self.open = Some(head);
                return self.close(open);
            }
            None => {
                self.open = Some(head);
                return Ok(());
            }
        };
        let table = self.table();
        for aggregate in &grouping.aggregates {
            aggregate.add(&table, &mut open.row, &head.row)?;
        }
        self.open = Some(open);
        Ok(())
    }

    /// All rows of a group are in.
    fn close(&mut self, mut group: Head) -> Result<(), String> {
        let Some(grouping) = &self.recipe.grouping else {
            return Ok(());
        };
        let table = self.table();
        for aggregate in &grouping.aggregates {
            aggregate.finish(&table, &mut group.row)?;
        }
        let stays = grouping
            .having
            .as_ref()
            .is_none_or(|having| having.holds(&table, &group.row) == Some(true));
        if !stays {
            return Ok(());
        }
        if grouping.sort.is_empty() {
            self.ready.push_back(group.row);
            return Ok(());
        }
        group.keys = ranked(&table, &group.row, &grouping.sort)?;
        self.sorting_bytes += group.row.iter().flatten().map(Vec::len).sum::<usize>();
        self.sorting.push(group);
        if self.sorting.len() > SORTED_ROWS_MAX || self.sorting_bytes > SORTED_BYTES_MAX {
            return Err(format!(
                "there are more than {SORTED_ROWS_MAX} groups, or {SORTED_BYTES_MAX} bytes of them, to be sorted; order by the keys of the groups, or say more in WHERE"
            ));
        }
        Ok(())
    }

    fn end_groups(&mut self) -> Result<(), String> {
        if let Some(open) = self.open.take() {
            self.close(open)?;
        }
        if let Some(grouping) = &self.recipe.grouping {
            self.sorting
                .sort_by(|one, two| by_keys(&one.keys, &two.keys, &grouping.sort));
        }
        self.ready
            .extend(self.sorting.drain(..).map(|group| group.row));
        self.gathered = true;
        Ok(())
    }
}

fn ranked(table: &Table<'_>, row: &Row, keys: &[Key]) -> Result<Vec<Ranked>, String> {
    let one = |key: &Key| {
        let kind = table
            .column(key.value)
            .map_or(Kind::Other, |column| column.kind);
        let cell = |slot| table.cell(row, slot);
        Ranked::of(kind, cell(key.value), cell(key.weight), cell(key.pad))
            .ok_or_else(|| "a partition has answered with a key that has no order".to_owned())
    };
    keys.iter().map(one).collect()
}

fn by_keys(one: &[Ranked], two: &[Ranked], keys: &[Key]) -> Ordering {
    for ((one, two), key) in one.iter().zip(two).zip(keys) {
        let order = one.compared(two);
        let order = if key.descending {
            order.reverse()
        } else {
            order
        };
        if order != Ordering::Equal {
            return order;
        }
    }
    Ordering::Equal
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::recipe;
    use sql::Lexing;
    use sql::tree::{DoubleQuotes, tree};

    /// Numbers, of which 0 is NULL here; weights are none.
    type Numbers = Vec<Vec<i64>>;

    const EXACT: Column = Column {
        kind: Kind::Exact,
        decimals: 0,
    };

    fn cell(number: i64) -> Option<Vec<u8>> {
        (number != 0).then(|| number.to_string().into_bytes())
    }

    /// Gives rows of partitions, each of which has the hidden columns behind `row`.
    fn merged(sql: &str, width: usize, parts: &[Vec<Row>]) -> Result<Vec<Row>, String> {
        let asked = tree(sql.as_bytes(), Lexing::Escapes, DoubleQuotes::Strings).unwrap();
        let recipe = recipe(sql.as_bytes(), &asked)?;
        let mut merge = Merge::new(&recipe, vec![EXACT; width + recipe.hidden], parts.len())?;
        let mut sources: Vec<_> = parts.iter().map(|part| part.iter()).collect();
        let mut out = Vec::new();
        loop {
            match merge.step() {
                Step::Needs(at) => {
                    let row = sources[at].next().map(|row| {
                        let mut row = row.clone();
                        row.resize(width + recipe.hidden, None);
                        row
                    });
                    merge.give(at, row)?;
                }
                Step::Row(row) => out.push(row),
                Step::Done => return Ok(out),
                Step::Failed(words) => return Err(words),
            }
        }
    }

    fn rows(numbers: &Numbers) -> Vec<Row> {
        numbers
            .iter()
            .map(|row| row.iter().copied().map(cell).collect())
            .collect()
    }

    /// Random rows of two columns, in partitions.
    fn random(seed: u64) -> Vec<Numbers> {
        let mut state = seed | 1;
        let mut below = move |limit: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) % limit
        };
        let mut parts = vec![Numbers::new(); 1 + below(5) as usize];
        for _ in 0..below(60) {
            let at = below(parts.len() as u64) as usize;
            parts[at].push(vec![below(7) as i64 - 3, below(100) as i64 - 50]);
        }
        parts
    }

    #[test]
    fn rows_that_are_merged_are_those_that_are_sorted() {
        for seed in 1..400 {
            let parts = random(seed);
            // NULL, which is 0 here, comes before all numbers.
            let key = |row: &Vec<i64>| {
                let rank = |number: i64| (number != 0, number);
                (std::cmp::Reverse(rank(row[0])), rank(row[1]))
            };
            let mut truth: Numbers = parts.concat();
            truth.sort_by_key(key);
            let truth: Numbers = truth.into_iter().skip(2).take(20).collect();
            let sorted: Vec<_> = parts
                .iter()
                .map(|part| {
                    let mut part = part.clone();
                    part.sort_by_key(key);
                    rows(&part)
                })
                .collect();
            let sql = "SELECT a, b FROM t ORDER BY a DESC, b LIMIT 20 OFFSET 2";
            assert_eq!(
                merged(sql, 2, &sorted).unwrap(),
                rows(&truth),
                "seed {seed}"
            );
        }
    }

    #[test]
    fn groups_of_partitions_become_those_of_all() {
        for seed in 1..400 {
            let parts = random(seed);
            let grouped = |numbers: &Numbers| {
                let mut groups = std::collections::BTreeMap::<(bool, i64), i64>::new();
                for row in numbers {
                    *groups.entry((row[0] != 0, row[0])).or_default() += 1;
                }
                groups
                    .into_iter()
                    .map(|((_, a), n)| vec![a, n])
                    .collect::<Numbers>()
            };
            let sorted: Vec<_> = parts.iter().map(|part| rows(&grouped(part))).collect();
            let sql = "SELECT a, COUNT(*) FROM t GROUP BY a";
            assert_eq!(
                merged(sql, 2, &sorted).unwrap(),
                rows(&grouped(&parts.concat())),
                "seed {seed}"
            );
            let mut truth = grouped(&parts.concat());
            truth.retain(|row| row[1] > 3);
            truth.sort_by_key(|row| (-row[1], row[0] != 0, row[0]));
            let sql = "SELECT a, COUNT(*) n FROM t GROUP BY a HAVING n > 3 ORDER BY n DESC, a";
            assert_eq!(
                merged(sql, 2, &sorted).unwrap(),
                rows(&truth),
                "seed {seed}"
            );
        }
    }

    #[test]
    fn rows_without_an_order_come_as_they_are_and_no_more_than_asked() {
        let parts = [rows(&vec![vec![1], vec![2]]), rows(&vec![vec![3]])];
        let all = |sql| merged(sql, 1, &parts).unwrap().len();
        assert_eq!(all("SELECT a FROM t"), 3);
        assert_eq!(all("SELECT a FROM t LIMIT 2"), 2);
        assert_eq!(all("SELECT a FROM t LIMIT 0"), 0);
        assert_eq!(all("SELECT a FROM t LIMIT 1, 5"), 2);
    }

    #[test]
    fn an_answer_that_is_none_is_an_error_and_no_panic() {
        let short = [vec![vec![cell(1)]]];
        let sql = "SELECT a FROM t ORDER BY a";
        let asked = tree(sql.as_bytes(), Lexing::Escapes, DoubleQuotes::Strings).unwrap();
        let recipe = recipe(sql.as_bytes(), &asked).unwrap();
        assert!(Merge::new(&recipe, vec![EXACT], 1).is_err());
        let mut merge = Merge::new(&recipe, vec![EXACT; 3], 1).unwrap();
        assert!(merge.give(0, Some(short[0][0].clone())).is_err());
        let wrong = vec![Some(b"x".to_vec()), None, None];
        assert!(merge.give(0, Some(wrong)).is_err());
        merge.give(7, None).unwrap();
        assert_eq!(merge.step(), Step::Needs(0));
    }

    #[test]
    fn too_many_groups_to_sort_are_an_error() {
        let many: Numbers = (1..=SORTED_ROWS_MAX as i64 + 2)
            .map(|a| vec![a, 1])
            .collect();
        let sql = "SELECT a, COUNT(*) n FROM t GROUP BY a ORDER BY n";
        let said = merged(sql, 2, &[rows(&many)]).unwrap_err();
        assert!(
            said.starts_with("there are more than 100000 groups"),
            "{said}"
        );
    }
}
