//! Look-ups of a statement: the questions that tell where its rows are, and the entries that must be
//! there before they are.

use crate::case::Case;
use crate::condition::{Homes, KeyOf, both};
use crate::cuts::physical_of;
use crate::key::Reading;
use crate::lookups::{Asked, Entry, Lookup, Wanted};
use crate::map::Table;
use crate::routed::{Routed, Spread};
use crate::scopes::Use;
use sql::tree::{
    Comparison, Expression, Insert, Join, Literal, Name, Node, Source, Statement, Update,
};
use std::collections::BTreeSet;

/// Values that one statement looks up at most.
const VALUES_MAX: usize = 100;

/// Value of a column as a statement says it.
enum Said {
    Null,
    /// As SQL has it.
    Value(Vec<u8>),
    /// Nobody knows before the server computes it.
    Computed,
    /// A `?` without a value.
    Open,
}

impl Lookup {
    /// The name of its table in a statement that says this schema, or none.
    fn name(&self, said: Option<&Name<'_>>) -> String {
        let said = said.map(|schema| String::from_utf8_lossy(&schema.text));
        physical_of(&self.home, said.as_deref())
    }

    /// Value that needs an entry; none for NULL, which no comparison finds.
    fn needed(&self, said: Said) -> Result<Option<Vec<u8>>, ()> {
        match said {
            Said::Null if self.is_nullable => Ok(None),
            Said::Null => Ok(Some(b"NULL".to_vec())),
            Said::Value(text) => Ok(Some(text)),
            Said::Open => Ok(None),
            Said::Computed => Err(()),
        }
    }
}

impl<'t, 'a, 'm> Case<'_, 't, 'a, 'm> {
    /// Look-ups that must be asked or told before it is known where the statement goes.
    pub(crate) fn wanted_lookups(&self) -> Option<Wanted> {
        let wanted = self.wanted.take();
        (!wanted.asks.is_empty() || !wanted.writes.is_empty()).then_some(wanted)
    }

    /// Homes that look-ups say; `None` for all.
    pub(crate) fn looked_up(&self, one: &Use<'t, 'a, 'm>, reasons: &mut Vec<String>) -> Homes {
        let mut homes = None;
        for (lookup, asked) in self.questions(one) {
            let (table, Lookup { column, .. }) = (one.table.shown(), lookup);
            let Some(looked) = self.facts.looked else {
                self.wanted.borrow_mut().is_told = true;
                reasons.push(format!(
                    "{table}: its {column} is looked up on hostgroup {}: {}",
                    asked.hostgroup,
                    String::from_utf8_lossy(&asked.text)
                ));
                continue;
            };
            match looked.answers.get(&asked) {
                None => self.wanted.borrow_mut().asks.push(asked),
                Some(None) => {
                    reasons.push(format!("{table}: nothing certain is known of its {column}"))
                }
                Some(Some(entries)) => {
                    reasons.push(format!("{table}: by a look-up of its {column}"));
                    homes = both(homes, one.table.homes_of(entries));
                }
            }
        }
        homes
    }

    /// Questions that tell buckets of the rows that matter, with the look-ups that answer them.
    fn questions(&self, one: &Use<'t, 'a, 'm>) -> Vec<(&'m Lookup, Asked)> {
        let scope = self.found.scopes[one.scope];
        let key = KeyOf::of(one, scope.tables.len() == 1, self.facts.parameters);
        let mut all = Vec::new();
        let ready = one.table.lookups.iter().filter(|lookup| lookup.is_ready);
        if self.facts.prepares || self.facts.looked.is_some_and(|looked| looked.in_bytes) {
            return all;
        }
        for lookup in ready {
            for condition in scope.conjuncts(one.position) {
                let Some(values) = self.values_of(lookup, key, condition) else {
                    continue;
                };
                if (1..=VALUES_MAX).contains(&values.len()) {
                    let said = one.name.schema.as_ref();
                    all.push((lookup, lookup.question(&lookup.name(said), &values)));
                }
            }
        }
        all
    }

    /// Values of a column that a condition names, none of them NULL.
    fn values_of(
        &self,
        lookup: &Lookup,
        key: KeyOf<'_, 'a>,
        condition: &Expression<'a>,
    ) -> Option<Vec<Vec<u8>>> {
        let is_it = |expression: &Expression<'a>| matches!(&expression.node, Node::Column(parts) if key.is_column(parts, &lookup.column));
        let value = |expression: &Expression<'a>| match self.said(expression) {
            Said::Value(text) if compares_by_collation(&text) => Some(text),
            Said::Open => Some(b"?".to_vec()),
            _ => None,
        };
        match &condition.node {
            Node::Compare(Comparison::Equal | Comparison::NullSafe, sides) => {
                let [left, right] = &**sides;
                let other = match (is_it(left), is_it(right)) {
                    (true, false) => right,
                    (false, true) => left,
                    _ => return None,
                };
                value(other).map(|value| vec![value])
            }
            Node::In(column, list) if is_it(column) => list.iter().map(value).collect(),
            _ => None,
        }
    }

    fn said(&self, value: &Expression<'a>) -> Said {
        match &value.node {
            Node::Literal(Literal::Null) => Said::Null,
            Node::Literal(_) => match self.text.get(value.at.clone()) {
                Some(text) => Said::Value(text.to_vec()),
                None => Said::Computed,
            },
            Node::Parameter(number) => {
                let bound = self.facts.bound.and_then(|all| all.get(*number));
                match bound {
                    None if self.facts.looked.is_none() => Said::Open,
                    None => Said::Computed,
                    Some(sql::bound::Bound::Null) => Said::Null,
                    Some(bound) => bound
                        .sql(self.facts.lexing)
                        .map_or(Said::Computed, Said::Value),
                }
            }
            _ => Said::Computed,
        }
    }

    fn is_default(&self, value: &Expression<'_>) -> bool {
        let text = self.text.get(value.at.clone()).unwrap_or_default();
        text.eq_ignore_ascii_case(b"DEFAULT")
    }

    /// Whether what is wrong with values is ignored.
    pub(crate) fn ignores(&self) -> bool {
        let mut words = self.facts.lexing.words(self.text).skip(1).take(2);
        words.any(|word| word.is("IGNORE"))
    }

    /// Notes the entries that must be written before the statement is sent, or refuses it.
    pub(crate) fn write_entries(&self, routed: &mut Routed) {
        let is_done = matches!(
            routed.spread,
            Spread::Point(_) | Spread::Some(_) | Spread::All(_)
        );
        if !is_done || self.facts.prepares || !self.wanted.borrow().asks.is_empty() {
            return;
        }
        let entries = match self.statement {
            Statement::Insert(insert) => self.entries_of_insert(insert),
            Statement::Update(update) => self.entries_of_update(update),
            Statement::Query(_) | Statement::Delete(_) | Statement::Describe(_) => return,
        };
        let entries = match entries {
            Ok(entries) => entries,
            Err(words) => {
                *routed = Routed::refused(words);
                return;
            }
        };
        for asked in entries.into_iter().filter(|asked| asked.values > 0) {
            match self.facts.looked {
                None => routed.reasons.push(format!(
                    "its entries are written first on hostgroup {}: {}",
                    asked.hostgroup,
                    String::from_utf8_lossy(&asked.text)
                )),
                Some(looked) if looked.written.contains(&asked) => {}
                Some(_) => self.wanted.borrow_mut().writes.push(asked),
            }
        }
    }

    fn entries_of_insert(&self, insert: &Insert<'a>) -> Result<Vec<Asked>, String> {
        let mut all = Vec::new();
        let Some(one) = self.found.uses.first().filter(|one| one.is_of(insert)) else {
            return Ok(all);
        };
        let (Some(columns), said) = (&insert.columns, insert.table.schema.as_ref()) else {
            return Ok(all);
        };
        let key = KeyOf::of(one, true, self.facts.parameters);
        let at = |called: &str| columns.iter().position(|named| named.is(called.as_bytes()));
        for lookup in &one.table.lookups {
            let mut entries = BTreeSet::new();
            let place = at(&lookup.column);
            let again = self.assigned_again(insert, lookup, key)?;
            let whole = insert
                .rows
                .iter()
                .filter(|row| row.values.len() == columns.len());
            for row in whole {
                let value = match place.and_then(|at| row.values.get(at)) {
                    None => lookup.omitted(),
                    Some(value) if self.is_default(value) => lookup.omitted(),
                    Some(value) => lookup
                        .needed(self.said(value))
                        .map_err(|()| computed(one.table, lookup))?,
                };
                let Some(value) = value else {
                    continue;
                };
                let entry = at(&one.table.column)
                    .and_then(|at| self.entry_of(one.table, key, row.values.get(at)?))
                    .unwrap_or(Entry::Any);
                if again == Again::OfRow && !lookup.same_key {
                    entries.insert((value.clone(), Entry::Any));
                }
                entries.insert((value, entry));
            }
            if let Again::Is(Some(value)) = again {
                entries.insert((value, Entry::Any));
            }
            all.push(lookup.entries(&lookup.name(said), &entries, self.ignores()));
        }
        Ok(all)
    }

    /// Value that a row gets which is there already.
    fn assigned_again(
        &self,
        insert: &Insert<'a>,
        lookup: &Lookup,
        key: KeyOf<'_, 'a>,
    ) -> Result<Again, String> {
        let mut again = Again::Not;
        for (parts, value) in &insert.duplicate {
            let is_it = |parts: &[Name<'_>]| {
                parts
                    .last()
                    .is_some_and(|name| name.is(lookup.column.as_bytes()))
            };
            if !is_it(parts) {
                continue;
            }
            let next = match &value.node {
                Node::Column(own) if key.is_column(own, &lookup.column) => Again::Not,
                // A row's alias stands before it.
                Node::Column(own) if own.len() == 2 && is_it(own) => Again::OfRow,
                Node::Call(call) if call.name.is(b"VALUES") || call.name.is(b"VALUE") => {
                    match &call.arguments[..] {
                        [
                            Expression {
                                node: Node::Column(own),
                                ..
                            },
                        ] if is_it(own) => Again::OfRow,
                        _ => return Err(computed(key.table, lookup)),
                    }
                }
                _ if self.is_default(value) => Again::Is(lookup.omitted()),
                _ => Again::Is(
                    lookup
                        .needed(self.said(value))
                        .map_err(|()| computed(key.table, lookup))?,
                ),
            };
            if again != Again::Not {
                return Err(changes(key.table, lookup));
            }
            again = next;
        }
        Ok(again)
    }

    fn entry_of(&self, table: &Table, key: KeyOf<'_, 'a>, value: &Expression<'a>) -> Option<Entry> {
        match table.stored(&key.literal(value)?) {
            Reading::Is(value) => Some(table.entry(&value)),
            _ => None,
        }
    }

    fn entries_of_update(&self, update: &Update<'a>) -> Result<Vec<Asked>, String> {
        let mut all = Vec::new();
        let is_single = matches!(&update.tables[..], [only] if only.join == Join::Inner && matches!(only.source, Source::Table(_)));
        let own = |one: &&Use<'t, 'a, 'm>| one.scope == 0 && !one.table.lookups.is_empty();
        for one in self.found.uses.iter().filter(own) {
            // Qualified or not, a name that may be the column's is taken for it.
            let key = KeyOf::of(one, true, self.facts.parameters);
            let rows = self.entries_of_rows(one, key);
            let mut keys = update.assigned.iter().filter(|(parts, value)| {
                let stays = matches!(&value.node, Node::Column(own) if key.is(own));
                key.is(parts) && !stays
            });
            let new_key = keys
                .next()
                .map(|(_, value)| self.entry_of(one.table, key, value).unwrap_or(Entry::Any));
            for lookup in &one.table.lookups {
                let assigned = update.assigned.iter().filter(|(parts, value)| {
                    let is_it = |parts: &[Name<'_>]| key.is_column(parts, &lookup.column);
                    let stays = matches!(&value.node, Node::Column(own) if is_it(own));
                    is_it(parts) && !stays
                });
                let values: Vec<_> = assigned.map(|(_, value)| value).collect();
                let values = match values[..] {
                    [] => match &new_key {
                        Some(entry) if rows != Some(BTreeSet::from([entry.clone()])) => {
                            self.values_known(one, key, lookup)?
                        }
                        _ => continue,
                    },
                    [value] if is_single => {
                        let value = match self.is_default(value) {
                            true => lookup.omitted(),
                            false => lookup
                                .needed(self.said(value))
                                .map_err(|()| computed(one.table, lookup))?,
                        };
                        value.into_iter().collect()
                    }
                    _ => return Err(changes(one.table, lookup)),
                };
                let any = || BTreeSet::from([Entry::Any]);
                let own = match &new_key {
                    Some(entry) => BTreeSet::from([entry.clone()]),
                    None => rows.clone().unwrap_or_else(any),
                };
                let pairs = values
                    .iter()
                    .flat_map(|value| own.iter().map(|entry| (value.clone(), entry.clone())));
                let said = one.name.schema.as_ref();
                all.push(lookup.entries(&lookup.name(said), &pairs.collect(), self.ignores()));
            }
        }
        Ok(all)
    }

    /// Values of a column that all rows of an UPDATE have, as its WHERE names them.
    fn values_known(
        &self,
        one: &Use<'t, 'a, 'm>,
        key: KeyOf<'_, 'a>,
        lookup: &Lookup,
    ) -> Result<Vec<Vec<u8>>, String> {
        let scope = self.found.scopes[one.scope];
        let mut conditions = scope.conjuncts(one.position).into_iter();
        let known = conditions.find_map(|condition| self.values_of(lookup, key, condition));
        known.ok_or_else(|| {
            let (name, column) = (one.table.shown(), &lookup.column);
            format!(
                "it gives rows of {name} another {}, and their {column}, by which they are looked up, is not in it; set {column} as well, or name it in the WHERE",
                one.table.column
            )
        })
    }

    /// Entries of the rows that a statement is about, where it names their keys, or values that are
    /// looked up.
    fn entries_of_rows(
        &self,
        one: &Use<'t, 'a, 'm>,
        key: KeyOf<'_, 'a>,
    ) -> Option<BTreeSet<Entry>> {
        let scope = self.found.scopes[one.scope];
        let mut conditions = scope.conjuncts(one.position).into_iter();
        if let Some(entries) = conditions.find_map(|condition| key.entries(condition)) {
            return Some(entries);
        }
        let looked = self.facts.looked?;
        let answer = |(_, asked): (&Lookup, Asked)| looked.answers.get(&asked)?.clone();
        self.questions(one).into_iter().find_map(answer)
    }
}

/// Whether a value is compared as the column's collation says: a plain string or number, and not bytes,
/// for which two entries may be one.
fn compares_by_collation(value: &[u8]) -> bool {
    let is_number = |byte: &u8| byte.is_ascii_digit() || b"+-.".contains(byte);
    match value.first() {
        Some(b'\'' | b'"') => true,
        Some(b'D' | b'T') => value.ends_with(b"'"),
        _ => value.iter().all(is_number),
    }
}

/// Value of a row that is there already, behind ON DUPLICATE KEY UPDATE.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Again {
    /// Stays as it was.
    Not,
    /// Is that of the row which was to be inserted.
    OfRow,
    /// Is this; none for NULL.
    Is(Option<Vec<u8>>),
}

fn computed(table: &Table, lookup: &Lookup) -> String {
    format!(
        "the value of {}, by which rows of {} are looked up, must be written out; compute it first",
        lookup.column,
        table.shown()
    )
}

fn changes(table: &Table, lookup: &Lookup) -> String {
    format!(
        "it changes {}, by which rows of {} are looked up, together with other tables or twice; change it alone",
        lookup.column,
        table.shown()
    )
}
