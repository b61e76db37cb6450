//! HAVING: conditions on groups when all partitions are in.

use crate::aggregate::{Aggregate, Cells, Table, called};
use crate::decimal::Decimal;
use crate::edit::Piece;
use crate::order::{Kind, float};
use crate::recipe::{Planner, Slot};
use sql::tree::{Comparison, Expression, Literal, Node};
use std::cmp::Ordering;

/// A condition: numbers are compared, and that is all.
#[derive(Debug, Clone, PartialEq)]
pub enum Having {
    /// All are true.
    And(Vec<Self>),
    /// One is true.
    Or(Vec<Self>),
    /// This condition is false.
    Not(Box<Self>),
    /// Two numbers.
    Compare(Comparison, Operand, Operand),
    /// The operand is NULL.
    IsNull(Operand),
}

/// Something that is compared.
#[derive(Debug, Clone, PartialEq)]
pub enum Operand {
    /// A cell.
    Cell(Slot),
    /// A number that is written out.
    Number(Decimal),
}

impl Having {
    /// Reads a condition; aggregates that are not selected are asked for besides.
    pub(crate) fn read<'a>(
        planner: &mut Planner<'_, 'a>,
        condition: &Expression<'a>,
        aggregates: &mut Vec<Aggregate>,
    ) -> Result<Self, String> {
        let mut all = |list: &[Expression<'a>], planner: &mut Planner<'_, 'a>| {
            list.iter()
                .map(|one| Self::read(planner, one, aggregates))
                .collect::<Result<Vec<_>, _>>()
        };
        Ok(match &condition.node {
            Node::And(list) => Self::And(all(list, planner)?),
            Node::Or(list) => Self::Or(all(list, planner)?),
            Node::Not(one) => Self::Not(Box::new(Self::read(planner, one, aggregates)?)),
            Node::IsNull(one) => Self::IsNull(operand(planner, one, aggregates)?),
            Node::Compare(comparison, sides) => {
                let [left, right] = &**sides;
                let left = operand(planner, left, aggregates)?;
                Self::Compare(*comparison, left, operand(planner, right, aggregates)?)
            }
            Node::Between(three) => {
                let [one, low, high] = &**three;
                let [one, low, high] = [
                    operand(planner, one, aggregates)?,
                    operand(planner, low, aggregates)?,
                    operand(planner, high, aggregates)?,
                ];
                Self::And(vec![
                    Self::Compare(Comparison::GreaterOrEqual, one.clone(), low),
                    Self::Compare(Comparison::LessOrEqual, one, high),
                ])
            }
            _ => return Err(refused(planner, condition)),
        })
    }

    /// Whether every cell of it is a number.
    pub(crate) fn check(&self, table: &Table<'_>) -> Result<(), String> {
        let fine = |operand: &Operand| match operand {
            Operand::Number(_) => true,
            Operand::Cell(slot) => table
                .column(*slot)
                .is_some_and(|column| matches!(column.kind, Kind::Exact | Kind::Float)),
        };
        match self {
            Self::And(all) | Self::Or(all) => all.iter().try_for_each(|one| one.check(table)),
            Self::Not(one) => one.check(table),
            Self::Compare(_, one, two) if fine(one) && fine(two) => Ok(()),
            Self::IsNull(_) => Ok(()),
            Self::Compare(..) => Err("HAVING compares something else than numbers, which cannot be put together over several partitions; say it in WHERE, or compare in the application".into()),
        }
    }

    /// Whether a group stays; `None` is unknown, as in SQL.
    pub(crate) fn holds(&self, table: &Table<'_>, row: &Cells) -> Option<bool> {
        match self {
            Self::And(all) => {
                let truths: Vec<_> = all.iter().map(|one| one.holds(table, row)).collect();
                match () {
                    () if truths.contains(&Some(false)) => Some(false),
                    () if truths.contains(&None) => None,
                    () => Some(true),
                }
            }
            Self::Or(all) => {
                let truths: Vec<_> = all.iter().map(|one| one.holds(table, row)).collect();
                match () {
                    () if truths.contains(&Some(true)) => Some(true),
                    () if truths.contains(&None) => None,
                    () => Some(false),
                }
            }
            Self::Not(one) => one.holds(table, row).map(|truth| !truth),
            Self::IsNull(operand) => Some(match operand {
                Operand::Cell(slot) => table.cell(row, *slot).is_none(),
                Operand::Number(_) => false,
            }),
            Self::Compare(comparison, one, two) => {
                let order = compared(table, row, one, two);
                if *comparison == Comparison::NullSafe {
                    let null = |operand: &Operand| matches!(operand, Operand::Cell(slot) if table.cell(row, *slot).is_none());
                    return Some(
                        order.map_or_else(
                            || null(one) && null(two),
                            |order| order == Ordering::Equal,
                        ),
                    );
                }
                order.map(|order| match comparison {
                    Comparison::Equal | Comparison::NullSafe => order == Ordering::Equal,
                    Comparison::Unequal => order != Ordering::Equal,
                    Comparison::Less => order == Ordering::Less,
                    Comparison::LessOrEqual => order != Ordering::Greater,
                    Comparison::Greater => order == Ordering::Greater,
                    Comparison::GreaterOrEqual => order != Ordering::Less,
                })
            }
        }
    }
}

/// The order of two numbers; none if one is NULL.
fn compared(table: &Table<'_>, row: &Cells, one: &Operand, two: &Operand) -> Option<Ordering> {
    let is_float = |operand: &Operand| matches!(operand, Operand::Cell(slot) if table.column(*slot).is_some_and(|column| column.kind == Kind::Float));
    let text = |operand: &Operand| match operand {
        Operand::Cell(slot) => table.cell(row, *slot).map(<[u8]>::to_vec),
        Operand::Number(number) => Some(number.to_string().into_bytes()),
    };
    let (left, right) = (text(one)?, text(two)?);
    if is_float(one) || is_float(two) {
        return float(&left)?.partial_cmp(&float(&right)?);
    }
    Some(Decimal::parse(&left)?.cmp(&Decimal::parse(&right)?))
}

fn refused(planner: &Planner<'_, '_>, condition: &Expression<'_>) -> String {
    format!(
        "HAVING {} cannot be put together over several partitions; compare aggregates with numbers, and nothing else",
        planner.said(&condition.at)
    )
}

fn operand<'a>(
    planner: &mut Planner<'_, 'a>,
    expression: &Expression<'a>,
    aggregates: &mut Vec<Aggregate>,
) -> Result<Operand, String> {
    if let Node::Literal(Literal::Number(digits, negative)) = &expression.node {
        let sign = if *negative { "-" } else { "" };
        let text = [sign.as_bytes(), digits].concat();
        return Decimal::parse(&text)
            .map(Operand::Number)
            .ok_or_else(|| refused(planner, expression));
    }
    if let Some(item) = planner.item_of(expression) {
        return Ok(Operand::Cell(Slot::Item(item)));
    }
    if let Some(call) = called(expression) {
        let out = planner.hide(vec![Piece::Copy(expression.at.clone())]);
        let aggregate = planner.computed(call, &expression.at, out)?;
        if !aggregates.contains(&aggregate) {
            aggregates.push(aggregate);
        }
        return Ok(Operand::Cell(out));
    }
    match &expression.node {
        // A key of the group, or what follows from it.
        Node::Column(_) => Ok(Operand::Cell(
            planner.hide(vec![Piece::Copy(expression.at.clone())]),
        )),
        _ => Err(refused(planner, expression)),
    }
}
