//! A SELECT that one server finishes: rows of its tables are copied there, into tables that are seen by
//! one connection only.
//!
//! Rows that cannot matter are left out where that is certain. A row too many does no harm, since the
//! server reads the whole statement.

use crate::case::Case;
use crate::condition::Homes;
use crate::cuts::{Cut, cut, named_as_written, physical, renamed};
use crate::facts::Facts;
use crate::hints::hints;
use crate::map::{Home, Kind, Map, Table};
use crate::scopes::{Named, Scope, Use, every, named};
use crate::spread::{CHANCES, USES_MAX};
use sql::Lexing;
use sql::tree::{Call, DoubleQuotes, Expression, Join, Node, Source, Statement, TableName};
use sql::tree::{tree, walk};
use sql::words::{Kind as Token, unquote};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// A SELECT, and what is copied for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finish {
    /// Tables whose rows it needs.
    pub tables: Vec<Copied>,
    /// Changes of its text: copies in place of the tables.
    pub cuts: Vec<Cut>,
    /// Columns that it may read.
    pub columns: Columns,
}

/// A table of which rows are copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copied {
    /// Name of the table, for people.
    pub shown: String,
    /// Where its rows are.
    pub sources: Vec<Origin>,
    /// Condition that rows fulfil that matter, without qualifiers; empty for all.
    pub condition: Vec<u8>,
    /// Its copies as SQL has them, one for each place in the statement: MySQL reads a temporary
    /// table once in a statement.
    pub copies: Vec<String>,
    /// Column that a unique key of one home must have to be one of all; `None`: any is.
    pub key: Option<String>,
}

/// One table with rows of a table that is copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The writer's hostgroup; `None`: where the statement would go if no table were sharded.
    pub hostgroup: Option<u32>,
    /// The partitions, for people.
    pub partitions: String,
    /// Its name as SQL has it.
    pub table: String,
}

/// Columns that a statement may read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Columns {
    /// All of each table.
    All,
    /// Those of these names in lower case, and those whose names are not ASCII.
    Named(BTreeSet<Vec<u8>>),
}

impl Columns {
    /// Whether a column of this name may be read.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Named(names) => {
                !name.is_ascii() || names.contains(name.to_ascii_lowercase().as_bytes())
            }
        }
    }
}

impl Finish {
    /// The statement as it reads the copies.
    #[must_use]
    pub fn text(&self, original: &[u8]) -> Vec<u8> {
        cut(original, &self.cuts)
    }
}

/// Reads a SELECT that one server shall finish. `None`: it is no SELECT that is understood, or names no
/// sharded table.
///
/// # Errors
/// A sentence: why it cannot be finished, and what to do instead.
#[must_use]
pub fn finish(map: &Map, text: &[u8], facts: &Facts<'_>) -> Option<Result<Finish, String>> {
    let tree = tree(text, facts.lexing, facts.quotes)?;
    if !matches!(tree.statement, Statement::Query(_)) {
        return None;
    }
    let found = named(&tree.statement, map, facts.schema.as_bytes());
    if found.uses.is_empty() || found.uses.len() + found.plain.len() > USES_MAX {
        return None;
    }
    if let Some(words) = found.unknown() {
        return Some(Err(words));
    }
    let hints = facts
        .comment
        .map(hints)
        .transpose()
        .ok()?
        .unwrap_or_default();
    let case = Case {
        statement: &tree.statement,
        text,
        found: &found,
        facts,
        hints: &hints,
        wanted: &RefCell::default(),
    };
    Some(Finishing { case, text }.finish())
}

/// A place of a table in the statement.
struct Place<'t, 'a> {
    name: &'t TableName<'a>,
    scope: usize,
    position: usize,
}

/// A table with all its places.
struct Group<'t, 'a, 'm> {
    table: Option<&'m Table>,
    places: Vec<Place<'t, 'a>>,
    homes: Homes,
}

struct Finishing<'c, 't, 'a, 'm> {
    case: Case<'c, 't, 'a, 'm>,
    text: &'c [u8],
}

impl<'t, 'a, 'm> Finishing<'_, 't, 'a, 'm> {
    fn finish(&self) -> Result<Finish, String> {
        let lexing = self.case.facts.lexing;
        unfit(self.text, lexing)?;
        self.same_names()?;
        let mut made = Finish {
            tables: Vec::new(),
            cuts: Vec::new(),
            columns: self.columns(),
        };
        let mut number = 0;
        for group in self.groups()? {
            let mut copies = Vec::new();
            for place in &group.places {
                number += 1;
                let home = named_copy(number);
                copies.push(physical(&home, place.name));
                let cuts = renamed(self.case.statement, place.name, &home);
                made.cuts.extend(cuts);
            }
            made.tables.push(self.copied(&group, copies));
        }
        // A column's schema is cut once for each table that is called so.
        made.cuts.sort_by_key(|cut| (cut.at.start, cut.at.end));
        made.cuts.dedup();
        let names = named_as_written(self.case.statement, self.text, &made.cuts);
        made.cuts.extend(names);
        Ok(made)
    }

    /// Every table, each once, in the order of the statement.
    fn groups(&self) -> Result<Vec<Group<'t, 'a, 'm>>, String> {
        let Named { uses, plain, .. } = self.case.found;
        let is_sharded = |at: &usize| uses[*at].table.kind == Kind::Sharded;
        let sharded: Vec<usize> = (0..uses.len()).filter(is_sharded).collect();
        let mut homes = Vec::new();
        for at in &sharded {
            homes.push(self.case.homes(&uses[*at], &mut Vec::new())?);
        }
        self.case.beside_each_other(&sharded, &mut homes);
        let mut homes_of: BTreeMap<usize, Homes> = sharded.into_iter().zip(homes).collect();
        let mut groups: Vec<Group<'t, 'a, 'm>> = Vec::new();
        for (at, one) in uses.iter().enumerate() {
            let reference = || Some(BTreeSet::from([0]));
            let homes = homes_of.remove(&at).unwrap_or_else(reference);
            let of = |group: &&mut Group<'t, 'a, 'm>| {
                let is_same = |table: &Table| table.number == one.table.number;
                group.table.is_some_and(is_same) && self.is_same(group.places[0].name, one.name)
            };
            let place = Place::of(one);
            match groups.iter_mut().find(of) {
                Some(group) => {
                    group.places.push(place);
                    group.homes = group.homes.take().zip(homes).map(|(a, b)| &a | &b);
                }
                None => groups.push(Group {
                    table: Some(one.table),
                    places: vec![place],
                    homes,
                }),
            }
        }
        for one in plain {
            let of = |group: &&mut Group<'t, 'a, 'm>| {
                group.table.is_none() && self.is_same(group.places[0].name, one.name)
            };
            let place = Place {
                name: one.name,
                scope: one.scope,
                position: one.position,
            };
            match groups.iter_mut().find(of) {
                Some(group) => group.places.push(place),
                None => groups.push(Group {
                    table: None,
                    places: vec![place],
                    homes: None,
                }),
            }
        }
        Ok(groups)
    }

    /// Whether two names are those of one table.
    fn is_same(&self, one: &TableName<'_>, other: &TableName<'_>) -> bool {
        self.schema(one) == self.schema(other) && one.name.text == other.name.text
    }

    fn schema<'n>(&'n self, name: &'n TableName<'_>) -> &'n [u8] {
        let own = self.case.facts.schema.as_bytes();
        name.schema.as_ref().map_or(own, |schema| &schema.text)
    }

    /// Refuses columns with a schema where two tables of different schemas are called alike: without
    /// the schema nobody could tell which is meant.
    fn same_names(&self) -> Result<(), String> {
        let Named { uses, plain, .. } = self.case.found;
        let names: Vec<_> = uses
            .iter()
            .map(|one| one.name)
            .chain(plain.iter().map(|one| one.name))
            .collect();
        let mut doubtful = None;
        every(self.case.statement, &mut |expression| {
            let qualifiers = match &expression.node {
                Node::Column(parts) => &parts[..parts.len() - 1],
                Node::Star(parts) => &parts[..],
                _ => return,
            };
            let [_, table] = qualifiers else { return };
            let mut schemas = names
                .iter()
                .filter(|name| table.is(name.called()))
                .map(|name| self.schema(name));
            let first = schemas.next();
            if schemas.any(|other| Some(other) != first) {
                doubtful = Some(String::from_utf8_lossy(&table.text).into_owned());
            }
        });
        doubtful.map_or(Ok(()), |name| {
            Err(format!(
                "two tables of different schemas are called {name} in it, and columns name the schema; give each an alias of its own"
            ))
        })
    }

    fn copied(&self, group: &Group<'t, 'a, 'm>, copies: Vec<String>) -> Copied {
        let first = group.places[0].name;
        let mut copied = Copied {
            shown: String::from_utf8_lossy(&first.name.text).into_owned(),
            sources: Vec::new(),
            condition: self.condition(group),
            copies,
            key: None,
        };
        let Some(table) = group.table else {
            let home = Home {
                table: copied.shown.clone(),
                ..named_copy(0)
            };
            copied.sources.push(Origin {
                hostgroup: None,
                partitions: copied.shown.clone(),
                table: physical(&home, first),
            });
            return copied;
        };
        copied.shown = table.shown();
        let mut seen: BTreeMap<_, usize> = BTreeMap::new();
        let is_wanted = |at: &usize| match &group.homes {
            // Its columns must be known, even if no row is read.
            Some(homes) if homes.is_empty() => *at == 0,
            Some(homes) => homes.contains(at),
            None => true,
        };
        for at in (0..table.homes.len()).filter(is_wanted) {
            let home = &table.homes[at];
            let shown = table.shown_at(home);
            let known = (home.hostgroup, &home.schema, &home.table);
            match seen.get(&known) {
                Some(known) => {
                    let origin: &mut Origin = &mut copied.sources[*known];
                    origin.partitions = format!("{} and {shown}", origin.partitions);
                }
                None => {
                    seen.insert(known, copied.sources.len());
                    copied.sources.push(Origin {
                        hostgroup: Some(home.hostgroup),
                        partitions: shown,
                        table: physical(home, first),
                    });
                }
            }
        }
        copied.key = (copied.sources.len() > 1).then(|| table.column.clone());
        copied
    }

    /// Condition that rows of a table fulfil that matter in one of its places.
    fn condition(&self, group: &Group<'t, 'a, 'm>) -> Vec<u8> {
        let mut all = Vec::new();
        for place in &group.places {
            let own = self.conditions_of(place);
            if own.is_empty() {
                return Vec::new();
            }
            all.push([b"(", &own.join(&b") AND ("[..])[..], b")"].concat());
        }
        match all.len() {
            1 => all.remove(0),
            _ => [b"(", &all.join(&b") OR ("[..])[..], b")"].concat(),
        }
    }

    /// The conditions on a table alone, each without qualifiers.
    fn conditions_of(&self, place: &Place<'t, 'a>) -> Vec<Vec<u8>> {
        let scope: Scope<'t, 'a> = self.case.found.scopes[place.scope];
        let is_alone = scope.top
            && matches!(scope.tables, [one] if matches!(one.source, Source::Table(_)) && one.join == Join::Inner);
        let conjuncts = scope.conjuncts(place.position).into_iter();
        conjuncts
            .filter_map(|conjunct| self.own(conjunct, place.name, is_alone))
            .collect()
    }

    /// A condition without qualifiers, if it is certain that it is about this table alone and is true
    /// wherever it is asked.
    fn own(
        &self,
        condition: &Expression<'a>,
        name: &TableName<'a>,
        is_alone: bool,
    ) -> Option<Vec<u8>> {
        let (mut is_own, mut cuts) = (true, Vec::new());
        let start = condition.at.start;
        walk(condition, &mut |inner| match &inner.node {
            Node::Column(parts) => {
                is_own &= match &parts[..] {
                    [_] => is_alone,
                    [table, _] => *table.text == *name.called(),
                    [schema, table, _] => {
                        *table.text == *name.called() && *schema.text == *self.schema(name)
                    }
                    _ => false,
                };
                if let [first, .., column] = &parts[..] {
                    let at = first.at.start - start..column.at.start - start;
                    cuts.push(Cut::new(at, ""));
                }
            }
            Node::Call(call) => is_own &= is_same_everywhere(call),
            Node::Query(_) | Node::Variable(_) | Node::Parameter(_) | Node::Star(_) => {
                is_own = false;
            }
            _ => {}
        });
        let text = self.text.get(condition.at.clone()).filter(|_| is_own)?;
        Some(cut(text, &cuts))
    }

    /// Columns that may be read: every name in the text may be one.
    fn columns(&self) -> Columns {
        let (mut stars, mut counted) = (0, 0);
        every(
            self.case.statement,
            &mut |expression| match &expression.node {
                Node::Star(_) => stars += 1,
                Node::Call(call) if call.name.is(b"COUNT") => {
                    let is_star = |argument: &&Expression<'_>| matches!(&argument.node, Node::Star(of) if of.is_empty());
                    counted += call.arguments.iter().filter(is_star).count();
                }
                _ => {}
            },
        );
        if stars > counted {
            return Columns::All;
        }
        let mut names = BTreeSet::new();
        for token in self.case.facts.lexing.words(self.text) {
            let may_be_name = match token.kind {
                Token::Word | Token::Name => true,
                Token::String => {
                    self.case.facts.quotes == DoubleQuotes::Unsure && token.text.starts_with(b"\"")
                }
                Token::Sign => false,
            };
            if token.is("NATURAL") {
                return Columns::All;
            }
            if may_be_name {
                names.insert(unquote(token.text).to_ascii_lowercase());
            }
        }
        Columns::Named(names)
    }
}

impl<'t, 'a> Place<'t, 'a> {
    fn of(one: &Use<'t, 'a, '_>) -> Self {
        Self {
            name: one.name,
            scope: one.scope,
            position: one.position,
        }
    }
}

/// Whether a function has the same value at each server and for each row, and is none of a window.
fn is_same_everywhere(call: &Call<'_>) -> bool {
    let is_chance = CHANCES.iter().any(|name| call.name.is(name.as_bytes()));
    !call.over && !is_chance && !call.name.is(b"SLEEP")
}

/// The name that a copy has in its schema.
fn named_copy(number: usize) -> Home {
    Home {
        name: String::new(),
        hostgroup: 0,
        schema: String::new(),
        table: format!("millrace_{number}"),
        value: String::new(),
        made: false,
    }
}

/// Refuses what a copy has not, or cannot do for its table.
fn unfit(text: &[u8], lexing: Lexing) -> Result<(), String> {
    let mut words = lexing.words(text);
    while let Some(word) = words.next() {
        let next = words.peek();
        let is_next = |keywords: &[&str]| next.is_some_and(|next| next.is_any(keywords));
        let calls = next.is_some_and(|next| next.is_sign(b'('));
        let hints = word.is_any(&["USE", "FORCE", "IGNORE"]) && is_next(&["INDEX", "KEY"]);
        let words = if hints {
            "it is finished on one server, on copies without the indexes that it names; leave USE, FORCE or IGNORE INDEX out"
        } else if word.is("SQL_CALC_FOUND_ROWS") {
            "SQL_CALC_FOUND_ROWS cannot be put together over several partitions; ask for SELECT COUNT(*) with a second statement"
        } else if word.is("MATCH") && calls {
            "it is finished on one server, on copies without the FULLTEXT index of MATCH; search in a statement of its own"
        } else if word.is("DEFAULT") && calls {
            "it is finished on one server, on copies without the columns' defaults; write the value in place of DEFAULT()"
        } else {
            continue;
        };
        return Err(words.into());
    }
    Ok(())
}
