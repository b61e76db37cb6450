//! Aggregates in two steps: what each partition has computed, and what becomes of it.

use crate::decimal::Decimal;
use crate::order::{Column, Kind, Ranked, float, float_text};
use crate::recipe::{Key, Slot};
use sql::tree::{Call, Expression, Node};
use std::cmp::Ordering;

/// Something that is computed over the rows of a group.
#[derive(Debug, Clone, PartialEq)]
pub struct Aggregate {
    /// Where its value is, in a partition's row and in the end.
    pub out: Slot,
    /// How the values of two partitions become one.
    pub does: Does,
}

/// How the values of two partitions become one.
#[derive(Debug, Clone, PartialEq)]
#[allow(
    missing_docs,
    reason = "the fields are the columns that are needed besides"
)]
pub enum Does {
    /// COUNT: they are added.
    Count,
    /// SUM: they are added, NULL being nothing.
    Sum,
    /// MIN, MAX: the better one stays.
    Extreme {
        weight: Slot,
        pad: Slot,
        greatest: bool,
    },
    /// AVG: the sum of all by the number of all, with the digits that the server has said.
    Average { sum: Slot, count: Slot },
    /// Variance and standard deviation, by the means and variances of the partitions.
    Spread {
        count: Slot,
        mean: Slot,
        variance: Slot,
        sample: bool,
        root: bool,
    },
    /// GROUP_CONCAT: one behind the other.
    Concat { separator: Vec<u8>, bytes_max: Slot },
    /// BIT_AND.
    And,
    /// BIT_OR.
    Or,
    /// BIT_XOR.
    Xor,
    /// ANY_VALUE: the first that was seen.
    First,
}

const NAMES: &[&str] = &[
    "COUNT",
    "SUM",
    "MIN",
    "MAX",
    "AVG",
    "STD",
    "STDDEV",
    "STDDEV_POP",
    "STDDEV_SAMP",
    "VARIANCE",
    "VAR_POP",
    "VAR_SAMP",
    "GROUP_CONCAT",
    "BIT_AND",
    "BIT_OR",
    "BIT_XOR",
    "ANY_VALUE",
    "JSON_ARRAYAGG",
    "JSON_OBJECTAGG",
    "JSON_ARRAY_AGG",
    "MEDIAN",
    "PERCENTILE_CONT",
    "ST_COLLECT",
];

/// Whether a function of this name is one.
pub(crate) fn is_aggregate(name: &[u8]) -> bool {
    NAMES
        .iter()
        .any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
}

/// The aggregate that an expression is, if it is one alone.
pub(crate) fn called<'t, 'a>(expression: &'t Expression<'a>) -> Option<&'t Call<'a>> {
    match &expression.node {
        Node::Call(call) if is_aggregate(&call.name.text) => Some(call),
        _ => None,
    }
}

/// A row of a partition; NULL is `None`.
pub type Cells = Vec<Option<Vec<u8>>>;

/// A row, with the columns that it has.
pub(crate) struct Table<'c> {
    pub(crate) columns: &'c [Column],
    /// Those that clients get.
    pub(crate) visible: usize,
}

impl Table<'_> {
    pub(crate) const fn at(&self, slot: Slot) -> usize {
        match slot {
            Slot::Item(at) => at,
            Slot::Hidden(at) => self.visible + at,
        }
    }

    pub(crate) fn column(&self, slot: Slot) -> Option<Column> {
        self.columns.get(self.at(slot)).copied()
    }

    pub(crate) fn cell<'r>(&self, row: &'r Cells, slot: Slot) -> Option<&'r [u8]> {
        row.get(self.at(slot))?.as_deref()
    }

    fn put(&self, row: &mut Cells, slot: Slot, value: Option<Vec<u8>>) {
        if let Some(cell) = row.get_mut(self.at(slot)) {
            *cell = value;
        }
    }
}

/// Why two values do not become one.
fn unread(what: &str) -> String {
    format!("a partition has answered with {what} that cannot be put together")
}

impl Aggregate {
    /// As a key of the order in the end.
    pub(crate) const fn key(&self, descending: bool) -> Key {
        let (weight, pad) = match &self.does {
            Does::Extreme { weight, pad, .. } => (*weight, *pad),
            _ => (self.out, self.out),
        };
        Key {
            value: self.out,
            weight,
            pad,
            descending,
            source: None,
        }
    }

    /// Whether its columns can be put together at all.
    pub(crate) fn check(&self, table: &Table<'_>) -> Result<(), String> {
        let kind = table.column(self.out).map(|column| column.kind);
        let fits = match &self.does {
            Does::Sum | Does::Average { .. } => matches!(kind, Some(Kind::Exact | Kind::Float)),
            Does::And | Does::Or | Does::Xor | Does::Count => kind == Some(Kind::Exact),
            Does::Extreme { .. } => !matches!(kind, Some(Kind::Other) | None),
            Does::Spread { .. } | Does::Concat { .. } | Does::First => kind.is_some(),
        };
        match fits {
            true => Ok(()),
            false => Err("an aggregate over JSON or geometry, or bits of strings, cannot be put together over several partitions; compute with a number instead (column + 0)".into()),
        }
    }

    /// Adds the row of another partition to what there is.
    pub(crate) fn add(
        &self,
        table: &Table<'_>,
        into: &mut Cells,
        row: &Cells,
    ) -> Result<(), String> {
        match &self.does {
            Does::Count | Does::Sum => sum(table, into, row, self.out),
            Does::Average { sum: total, count } => {
                sum(table, into, row, *total)?;
                sum(table, into, row, *count)
            }
            Does::Extreme {
                weight,
                pad,
                greatest,
            } => self.extreme(table, into, row, (*weight, *pad, *greatest)),
            Does::Spread {
                count,
                mean,
                variance,
                ..
            } => spread(table, into, row, [*count, *mean, *variance]),
            Does::Concat { separator, .. } => {
                let joined = match (table.cell(into, self.out), table.cell(row, self.out)) {
                    (Some(one), Some(two)) => Some([one, separator, two].concat()),
                    (one, two) => one.or(two).map(<[u8]>::to_vec),
                };
                table.put(into, self.out, joined);
                Ok(())
            }
            Does::And => bits(table, into, row, self.out, |one, two| one & two),
            Does::Or => bits(table, into, row, self.out, |one, two| one | two),
            Does::Xor => bits(table, into, row, self.out, |one, two| one ^ two),
            Does::First => {
                if table.cell(into, self.out).is_none() {
                    table.put(
                        into,
                        self.out,
                        table.cell(row, self.out).map(<[u8]>::to_vec),
                    );
                }
                Ok(())
            }
        }
    }

    fn extreme(
        &self,
        table: &Table<'_>,
        into: &mut Cells,
        row: &Cells,
        (weight, pad, greatest): (Slot, Slot, bool),
    ) -> Result<(), String> {
        let kind = table
            .column(self.out)
            .map_or(Kind::Other, |column| column.kind.of_aggregate());
        let ranked = |row: &Cells| {
            let cell = |slot| table.cell(row, slot);
            Ranked::of(kind, cell(self.out), cell(weight), cell(pad))
                .ok_or_else(|| unread("a value"))
        };
        let (was, new) = (ranked(into)?, ranked(row)?);
        let wanted = if greatest {
            Ordering::Greater
        } else {
            Ordering::Less
        };
        // NULL is nothing here.
        let is_better = match (&was, &new) {
            (_, Ranked::Null) => false,
            (Ranked::Null, _) => true,
            _ => new.compared(&was) == wanted,
        };
        if is_better {
            for slot in [self.out, weight, pad] {
                table.put(into, slot, table.cell(row, slot).map(<[u8]>::to_vec));
            }
        }
        Ok(())
    }

    /// When all partitions are in: what has to be computed from the rest.
    pub(crate) fn finish(&self, table: &Table<'_>, row: &mut Cells) -> Result<(), String> {
        let value = match &self.does {
            Does::Average { sum, count } => average(table, row, (self.out, *sum, *count))?,
            Does::Spread {
                count,
                variance,
                sample,
                root,
                ..
            } => {
                let number = |slot| table.cell(row, slot).and_then(float);
                let count = number(*count).unwrap_or_default();
                let over = if *sample { count - 1.0 } else { count };
                let variance = number(*variance)
                    .filter(|_| over > 0.0)
                    .map(|variance| variance * count / over);
                let value = variance.map(|variance| {
                    if *root {
                        variance.max(0.0).sqrt()
                    } else {
                        variance
                    }
                });
                let decimals = table.column(self.out).map_or(0, |column| column.decimals);
                value.map(|value| float_text(value, decimals))
            }
            Does::Concat { bytes_max, .. } => {
                let max = table
                    .cell(row, *bytes_max)
                    .and_then(|text| std::str::from_utf8(text).ok()?.parse::<usize>().ok());
                let joined = table.cell(row, self.out).map(<[u8]>::to_vec);
                if joined
                    .as_ref()
                    .is_some_and(|joined| max.is_none_or(|max| joined.len() > max))
                {
                    return Err("GROUP_CONCAT over several partitions is longer than group_concat_max_len, and where it would be cut is not certain; give that variable a greater value".into());
                }
                joined
            }
            _ => return Ok(()),
        };
        table.put(row, self.out, value);
        Ok(())
    }
}

fn sum(table: &Table<'_>, into: &mut Cells, row: &Cells, slot: Slot) -> Result<(), String> {
    let column = table
        .column(slot)
        .ok_or_else(|| unread("too few columns"))?;
    let (kind, decimals) = (column.kind, column.decimals);
    let (one, two) = (table.cell(into, slot), table.cell(row, slot));
    let total = match (one, two) {
        (Some(one), Some(two)) if kind == Kind::Float => {
            let (one, two) = (float(one).zip(float(two))).ok_or_else(|| unread("a number"))?;
            float_text(one + two, decimals)
        }
        (Some(one), Some(two)) => {
            let both = Decimal::parse(one).zip(Decimal::parse(two));
            let (one, two) = both.ok_or_else(|| unread("a number"))?;
            one.plus(&two).to_string().into_bytes()
        }
        (one, two) => match one.or(two) {
            Some(only) => only.to_vec(),
            None => return Ok(()),
        },
    };
    table.put(into, slot, Some(total));
    Ok(())
}

fn average(
    table: &Table<'_>,
    row: &Cells,
    (out, sum, count): (Slot, Slot, Slot),
) -> Result<Option<Vec<u8>>, String> {
    let Some(total) = table.cell(row, sum) else {
        return Ok(None);
    };
    let count = table
        .cell(row, count)
        .and_then(|text| std::str::from_utf8(text).ok()?.parse::<u64>().ok());
    let count = count
        .filter(|count| *count > 0)
        .ok_or_else(|| unread("a count"))?;
    let column = table.column(out).ok_or_else(|| unread("too few columns"))?;
    if column.kind == Kind::Float {
        let total = float(total).ok_or_else(|| unread("a number"))?;
        return Ok(Some(float_text(total / count as f64, column.decimals)));
    }
    let total = Decimal::parse(total).ok_or_else(|| unread("a number"))?;
    Ok(Some(
        total
            .over(count, column.decimals.into())
            .to_string()
            .into_bytes(),
    ))
}

/// Chan's formula: of two sets with their numbers, means and variances those of both.
fn spread(
    table: &Table<'_>,
    into: &mut Cells,
    row: &Cells,
    [count, mean, variance]: [Slot; 3],
) -> Result<(), String> {
    let read = |row: &Cells| {
        let number = |slot| table.cell(row, slot).and_then(float);
        (
            number(count).unwrap_or_default(),
            number(mean),
            number(variance),
        )
    };
    let (one, two) = (read(into), read(row));
    let (n, m, v) = match (one, two) {
        (_, (_, None, _) | (_, _, None)) => return Ok(()),
        ((_, None, _) | (_, _, None), (n, Some(m), Some(v))) => (n, m, v),
        ((n1, Some(m1), Some(v1)), (n2, Some(m2), Some(v2))) => {
            let n = n1 + n2;
            let apart = m2 - m1;
            let squares = v1 * n1 + v2 * n2 + apart * apart * n1 * n2 / n;
            (n, m1 + apart * n2 / n, squares / n)
        }
    };
    for (slot, value) in [(count, n), (mean, m), (variance, v)] {
        table.put(into, slot, Some(value.to_string().into_bytes()));
    }
    Ok(())
}

fn bits(
    table: &Table<'_>,
    into: &mut Cells,
    row: &Cells,
    slot: Slot,
    both: impl Fn(u64, u64) -> u64,
) -> Result<(), String> {
    let number = |row: &Cells| {
        let text = table.cell(row, slot)?;
        std::str::from_utf8(text).ok()?.parse::<u64>().ok()
    };
    let (one, two) = number(into)
        .zip(number(row))
        .ok_or_else(|| unread("bits"))?;
    table.put(into, slot, Some(both(one, two).to_string().into_bytes()));
    Ok(())
}
