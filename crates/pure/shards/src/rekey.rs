//! An UPDATE that gives rows another key: rows whose new key belongs to another partition move there.
//!
//! Each partition makes the UPDATE as it is said. Then rows of the new key are at partitions where none
//! belongs: those are the ones that move.

use crate::case::Case;
use crate::condition::{Homes, KeyOf};
use crate::cuts::physical;
use crate::key::{Key, Reading, Value, integer};
use crate::map::{Home, Kind, Table};
use crate::rekeyed::{Place, Rekeyed};
use crate::routed::{Routed, Spread};
use crate::rows::PartitionRow;
use crate::scopes::Use;
use crate::written::written;
use sql::tree::{Expression, Join, Literal, Node, Source, Statement};

/// The new key of an UPDATE's rows.
#[derive(Debug)]
pub(crate) enum NewKey {
    /// The key stays.
    None,
    /// All rows get one key, of this home, and fulfil this condition then.
    At(usize, Vec<u8>),
    /// Nobody knows, and why. The row is that of a partition which must be made first.
    Refused(String, Option<PartitionRow>),
    /// The statement is prepared: the key is one of its `?`.
    Later,
}

impl<'t, 'a, 'm> Case<'_, 't, 'a, 'm> {
    /// Reads which key an UPDATE assigns.
    pub(crate) fn new_key(&self) -> NewKey {
        let Statement::Update(update) = self.statement else {
            return NewKey::None;
        };
        let own = |one: &&Use<'_, '_, '_>| one.scope == 0 && one.table.kind == Kind::Sharded;
        for one in self.found.uses.iter().filter(own) {
            // Qualified or not, a name that may be the key's is taken for it.
            let key = KeyOf::of(one, true, self.facts.parameters);
            let mut assigned = update.assigned.iter();
            let mut of_key = assigned.by_ref().filter(|(column, _)| key.is(column));
            let Some((_, value)) = of_key.next() else {
                continue;
            };
            let again = of_key.next();
            let stays = |value: &Expression<'a>| matches!(&value.node, Node::Column(parts) if key.is(parts));
            let is_single = matches!(&update.tables[..], [only] if only.join == Join::Inner && matches!(only.source, Source::Table(_)));
            let (name, column) = (one.table.shown(), &one.table.column);
            if again.is_some() || !is_single {
                let words = format!(
                    "it changes {column}, by which {name} is spread, together with other tables or twice; change it alone"
                );
                return NewKey::Refused(words, None);
            }
            if stays(value) {
                return NewKey::None;
            }
            if self.facts.prepares && matches!(value.node, Node::Parameter(_)) {
                return NewKey::Later;
            }
            return self.assigned(one, key, value);
        }
        NewKey::None
    }

    fn assigned(
        &self,
        one: &Use<'t, 'a, 'm>,
        key: KeyOf<'_, 'a>,
        value: &Expression<'a>,
    ) -> NewKey {
        let mut makes = None;
        let home = match written(one.table, key, value, &mut makes) {
            Ok(home) => home,
            Err(words) => return NewKey::Refused(words, makes),
        };
        let literal = key.literal(value).unwrap_or(Literal::Null);
        let said = self.text.get(value.at.clone()).unwrap_or_default();
        NewKey::At(home, condition(one.table, &literal, said))
    }

    /// Rows that move, if some may. The partition that gets them is then among those of the statement.
    ///
    /// # Errors
    /// A sentence: what cannot be said of rows that move.
    pub(crate) fn moves(
        &self,
        new_key: &NewKey,
        homes: &mut [Homes],
    ) -> Result<Option<Rekeyed>, String> {
        let (NewKey::At(to, condition), Some(asked)) = (new_key, homes.first_mut()) else {
            return Ok(None);
        };
        let one = &self.found.uses[0];
        let from: Vec<usize> = match &*asked {
            Some(homes) => homes.iter().copied().collect(),
            None => (0..one.table.homes.len()).collect(),
        };
        let Some(rekeyed) = self.rekeyed(one, &from, (*to, condition)) else {
            return Ok(None);
        };
        let name = one.table.shown();
        if self.found.uses.len() > 1 {
            return Err(format!(
                "it moves rows of {name} to another partition, and reads another sharded table; read that one first"
            ));
        }
        let mut words = self.facts.lexing.words(self.text).skip(1);
        if words.by_ref().take(2).any(|word| word.is("IGNORE")) {
            return Err(format!(
                "UPDATE IGNORE may move rows of {name} to another partition, where they are not left out; leave IGNORE out"
            ));
        }
        if let Some(homes) = asked {
            homes.insert(*to);
        }
        Ok(Some(rekeyed))
    }

    /// Notes with a route which of its legs gets rows.
    pub(crate) fn lead_rekeyed(&self, routed: &mut Routed, rekeyed: Rekeyed, to: usize) {
        let (Spread::Some(legs) | Spread::All(legs)) = &routed.spread else {
            return;
        };
        let table = self.found.uses[0].table;
        let shown = table.shown_at(&table.homes[to]);
        let to_leg = legs.iter().position(|leg| leg.partitions.contains(&shown));
        routed.reasons.push(format!(
            "{}: rows of another partition move to {shown}",
            table.shown()
        ));
        routed.rekeyed = to_leg.map(|to_leg| Rekeyed { to_leg, ..rekeyed });
    }

    /// Rows that move when all rows of an UPDATE get a key of this home.
    fn rekeyed(
        &self,
        one: &Use<'t, 'a, 'm>,
        homes: &[usize],
        (to, condition): (usize, &[u8]),
    ) -> Option<Rekeyed> {
        let place = |home: &Home| Place {
            hostgroup: home.hostgroup,
            table: physical(home, one.name),
            schema: match (&*home.schema, &one.name.schema) {
                ("", Some(said)) => String::from_utf8_lossy(&said.text).into_owned(),
                (schema, _) => schema.to_owned(),
            },
            name: home.table.clone(),
        };
        let to = place(&one.table.homes[to]);
        let mut from: Vec<Place> = Vec::new();
        for home in homes {
            let place = place(&one.table.homes[*home]);
            if place != to && !from.contains(&place) {
                from.push(place);
            }
        }
        (!from.is_empty()).then_some(Rekeyed {
            to,
            to_leg: 0,
            from,
            condition: condition.to_vec(),
        })
    }
}

/// Condition that rows with this key fulfil, and no others. A string is compared as a string, a number as
/// a number, whatever the column is.
fn condition(table: &Table, literal: &Literal<'_>, said: &[u8]) -> Vec<u8> {
    let key = format!("`{}` <=> ", table.column.replace('`', "``"));
    let number = |reading| match reading {
        Reading::Is(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    };
    let value = match (literal, table.key) {
        (Literal::Null, _) => b"NULL".to_vec(),
        (_, Key::Number { .. }) => number(integer(literal)).into_bytes(),
        (Literal::Text(_), _) => said.to_vec(),
        _ => format!("'{}'", number(integer(literal))).into_bytes(),
    };
    [key.as_bytes(), &value].concat()
}
