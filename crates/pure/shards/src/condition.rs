//! Conditions on a key, and the homes that may have rows that fulfil them.

use crate::key::{Reading, Value};
use crate::lookups::Entry;
use crate::map::Table;
use crate::scopes::Use;
use sql::tree::{Comparison, Expression, Literal, Name, Node};
use std::collections::BTreeSet;

/// Homes of a table; `None` for all of them.
pub(crate) type Homes = Option<BTreeSet<usize>>;

/// A table's key in the conditions of a scope.
#[derive(Clone, Copy)]
pub(crate) struct KeyOf<'u, 'a> {
    pub(crate) table: &'u Table,
    /// The name by which columns call the table.
    pub(crate) called: &'u [u8],
    /// The schema that may stand before that name, as it is written; `None`: the session's.
    pub(crate) schema: Option<&'u [u8]>,
    /// No other table is there whose column it could be.
    pub(crate) alone: bool,
    /// An outer join may make its key NULL where no row of it is.
    pub(crate) outer: bool,
    /// Values of `?`.
    pub(crate) parameters: Option<&'u [Literal<'a>]>,
}

impl<'u, 'a> KeyOf<'u, 'a> {
    pub(crate) fn of<'t: 'u>(
        one: &Use<'t, 'a, 'u>,
        alone: bool,
        parameters: Option<&'u [Literal<'a>]>,
    ) -> Self {
        Self {
            table: one.table,
            called: one.name.called(),
            schema: one.name.schema.as_ref().map(|schema| &*schema.text),
            alone,
            outer: false,
            parameters,
        }
    }

    /// Homes of rows without a key. A row that an outer join makes up stands for rows elsewhere.
    fn of_null(self) -> Homes {
        (!self.outer).then(|| BTreeSet::from([0]))
    }

    /// Whether these names are the key.
    pub(crate) fn is(self, parts: &[Name<'_>]) -> bool {
        self.is_column(parts, &self.table.column)
    }

    /// Whether these names are a column of the table.
    pub(crate) fn is_column(self, parts: &[Name<'_>], called: &str) -> bool {
        let Some((column, qualifiers)) = parts.split_last() else {
            return false;
        };
        column.is(called.as_bytes())
            && match qualifiers {
                [] => self.alone,
                [table] => table.is(self.called),
                [schema, table] => {
                    table.is(self.called) && self.schema.is_some_and(|own| own == &*schema.text)
                }
                _ => false,
            }
    }

    fn is_key(self, expression: &Expression<'_>) -> bool {
        matches!(&expression.node, Node::Column(parts) if self.is(parts))
    }

    pub(crate) fn literal<'e>(self, expression: &'e Expression<'a>) -> Option<Literal<'a>>
    where
        'a: 'e,
    {
        match &expression.node {
            Node::Literal(literal) => Some(literal.clone()),
            Node::Parameter(number) => self.parameters?.get(*number).cloned(),
            _ => None,
        }
    }

    /// The homes that may have rows of which this is true.
    pub(crate) fn homes(self, condition: &Expression<'a>) -> Homes {
        match &condition.node {
            Node::And(all) => all.iter().map(|one| self.homes(one)).reduce(both).flatten(),
            Node::Or(all) => {
                let mut homes = BTreeSet::new();
                for one in all {
                    homes.extend(self.homes(one)?);
                }
                Some(homes)
            }
            Node::Compare(comparison, sides) => {
                let [left, right] = &**sides;
                if let (Node::Row(left), Node::Row(right)) = (&left.node, &right.node) {
                    self.rows_compared(*comparison, left, right)
                } else if self.is_key(left) {
                    self.compared(*comparison, right)
                } else if self.is_key(right) {
                    self.compared(turned(*comparison), left)
                } else {
                    None
                }
            }
            Node::In(key, list) => {
                let place = self.place_of_key(key)?;
                let mut homes = BTreeSet::new();
                for one in list {
                    homes.extend(self.equal(at_place(one, place)?)?);
                }
                Some(homes)
            }
            Node::Between(three) => {
                let [key, low, high] = &**three;
                self.is_key(key).then_some(())?;
                let low = self.bound(low)?;
                let high = self.bound(high)?;
                self.table.homes_between(Some(&low), Some(&high))
            }
            Node::IsNull(key) if self.is_key(key) => self.of_null(),
            _ => None,
        }
    }

    /// Buckets of rows of which this is true, where it names their keys.
    pub(crate) fn entries(self, condition: &Expression<'a>) -> Option<BTreeSet<Entry>> {
        let one = |value: &Expression<'a>| match self.table.compared(&self.literal(value)?) {
            Reading::Is(value) => Some(BTreeSet::from([self.table.entry(&value)])),
            Reading::Never => Some(BTreeSet::new()),
            Reading::Unsure => None,
        };
        match &condition.node {
            Node::Compare(Comparison::Equal, sides) => {
                let [left, right] = &**sides;
                match (self.is_key(left), self.is_key(right)) {
                    (true, false) => one(right),
                    (false, true) => one(left),
                    _ => None,
                }
            }
            Node::In(key, list) if self.is_key(key) => {
                let all = list.iter().map(one).collect::<Option<Vec<_>>>()?;
                Some(all.into_iter().flatten().collect())
            }
            _ => None,
        }
    }

    /// `(k, a) = (1, 2)`: each pair is equal.
    fn rows_compared(
        self,
        comparison: Comparison,
        left: &[Expression<'a>],
        right: &[Expression<'a>],
    ) -> Homes {
        let is_equality = matches!(comparison, Comparison::Equal | Comparison::NullSafe);
        (is_equality && left.len() == right.len()).then_some(())?;
        let pairs = left.iter().zip(right).map(|(left, right)| {
            match (self.is_key(left), self.is_key(right)) {
                (true, _) => self.compared(comparison, right),
                (false, true) => self.compared(comparison, left),
                (false, false) => None,
            }
        });
        pairs.reduce(both).flatten()
    }

    /// The key before IN: itself, or one of a row.
    fn place_of_key(self, before: &Expression<'a>) -> Option<Place> {
        match &before.node {
            Node::Row(all) => {
                let at = all.iter().position(|one| self.is_key(one))?;
                Some(Place::InRow(at, all.len()))
            }
            _ => self.is_key(before).then_some(Place::Itself),
        }
    }

    fn compared(self, comparison: Comparison, other: &Expression<'a>) -> Homes {
        let bound = || self.bound(other);
        match comparison {
            Comparison::Equal => self.equal(other),
            Comparison::NullSafe => match self.literal(other)? {
                Literal::Null => self.of_null(),
                _ => self.equal(other),
            },
            Comparison::Unequal => None,
            Comparison::Less | Comparison::LessOrEqual => {
                let bound = self.strict(bound()?, other, comparison == Comparison::Less, -1);
                self.table.homes_between(None, Some(&bound))
            }
            Comparison::Greater | Comparison::GreaterOrEqual => {
                let bound = self.strict(bound()?, other, comparison == Comparison::Greater, 1);
                self.table.homes_between(Some(&bound), None)
            }
        }
    }

    /// The next number, where the bound itself is not meant.
    fn strict(self, bound: Value, other: &Expression<'a>, strict: bool, step: i128) -> Value {
        let whole = || {
            let literal = self.literal(other);
            literal.is_some_and(|literal| matches!(self.table.compared(&literal), Reading::Is(_)))
        };
        match bound {
            Value::Number(number) if strict && whole() => {
                Value::Number(number.saturating_add(step))
            }
            bound => bound,
        }
    }

    fn bound(self, expression: &Expression<'a>) -> Option<Value> {
        let literal = self.literal(expression)?;
        self.table.key.bound(&literal, &self.table.function)
    }

    fn equal(self, expression: &Expression<'a>) -> Homes {
        match self.table.compared(&self.literal(expression)?) {
            Reading::Is(value) => Some(BTreeSet::from([self.table.home_of_key(&value)?])),
            Reading::Never => Some(BTreeSet::new()),
            Reading::Unsure => None,
        }
    }
}

/// Place of the key in what a list is compared with.
#[derive(Clone, Copy)]
enum Place {
    /// No row: all of it.
    Itself,
    /// This one of so many in a row.
    InRow(usize, usize),
}

/// The expression at the key's place, if it is of the same form.
fn at_place<'t, 'a>(one: &'t Expression<'a>, place: Place) -> Option<&'t Expression<'a>> {
    match (place, &one.node) {
        (Place::Itself, _) => Some(one),
        (Place::InRow(at, many), Node::Row(all)) if all.len() == many => all.get(at),
        (Place::InRow(..), _) => None,
    }
}

/// Homes that are among both.
pub(crate) fn both(one: Homes, other: Homes) -> Homes {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.intersection(&other).copied().collect()),
        (one, other) => one.or(other),
    }
}

const fn turned(comparison: Comparison) -> Comparison {
    match comparison {
        Comparison::Less => Comparison::Greater,
        Comparison::LessOrEqual => Comparison::GreaterOrEqual,
        Comparison::Greater => Comparison::Less,
        Comparison::GreaterOrEqual => Comparison::LessOrEqual,
        same => same,
    }
}
