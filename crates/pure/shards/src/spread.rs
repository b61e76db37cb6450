//! A statement's partitions: certain, or all that may have rows of it, or a sentence that refuses.

use crate::case::Case;
use crate::condition::{Homes, KeyOf, both};
use crate::cuts::{Cut, named_as_written, renamed};
use crate::ddl;
use crate::definitions;
use crate::facts::{Facts, explained};
use crate::hints::{Hints, Said, hints};
use crate::key::Reading;
use crate::load_data;
use crate::map::{Kind, Map, literal};
use crate::rekey::NewKey;
use crate::renamed;
use crate::routed::{Leg, Routed, Spread};
use crate::scopes::{Scope, Use, every, named};
use crate::written::written;
use sql::tree::{
    Comparison, Expression, Insert, Item, Join, Name, Node, Source, Statement, Tree, tree,
};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// Statements that may name a table and are none of its: they set, begin, end.
const HARMLESS: &[&str] = &[
    "SET",
    "USE",
    "BEGIN",
    "START",
    "COMMIT",
    "ROLLBACK",
    "SAVEPOINT",
    "RELEASE",
    "KILL",
    "XA",
    "GRANT",
    "REVOKE",
    "DEALLOCATE",
    "EXECUTE",
    "PREPARE",
];

/// Functions whose value is another one at each server.
pub(crate) const CHANCES: &[&str] = &[
    "RAND",
    "UUID",
    "UUID_SHORT",
    "UUID_V4",
    "UUID_V7",
    "RANDOM_BYTES",
    "SYS_GUID",
    "CONNECTION_ID",
];

/// Tables of the map that one statement may name.
pub(crate) const USES_MAX: usize = 64;

/// Reads a statement by a map.
#[must_use]
pub fn spread(map: &Map, text: &[u8], facts: &Facts<'_>) -> Routed {
    if map.is_empty() {
        return Routed::of(Spread::Plain);
    }
    let (table, asks_catalogue) = may_name(map, text, facts);
    let Some(table) = table else {
        return Routed {
            asks_catalogue,
            ..Routed::of(Spread::Plain)
        };
    };
    let begin = explained(text, facts.lexing);
    let Some(tree) = tree(&text[begin..], facts.lexing, facts.quotes) else {
        let first = facts.lexing.words(text).next();
        return match first {
            Some(word) if word.is_any(HARMLESS) => Routed::of(Spread::Plain),
            _ => renamed::route(map, text, facts)
                .or_else(|| ddl::route(map, text, facts))
                .or_else(|| definitions::route(map, text, facts, table))
                .or_else(|| load_data::route(map, text, facts))
                .unwrap_or_else(|| Routed {
                    table,
                    ..Routed::refused(not_understood(text, facts))
                }),
        };
    };
    let mut routed = of_tree(map, &tree, (&text[begin..], begin > 0), facts);
    if begin > 0 {
        shift(&mut routed.spread, begin);
        // A statement that is explained is not done.
        (routed.from_query, routed.rekeyed) = (None, None);
    }
    routed
}

/// Sentence about a statement that has no tree, and is none of those that are read without one.
fn not_understood(text: &[u8], facts: &Facts<'_>) -> &'static str {
    let mut words = facts.lexing.words(text);
    let first = words.next();
    let begins_with = |verbs: &[&str]| first.is_some_and(|word| word.is_any(verbs));
    if begins_with(&["TABLE"]) {
        "a statement that begins with TABLE is not read; say SELECT * FROM before its name"
    } else if begins_with(&["SELECT", "WITH"]) && words.any(|word| word.is("INTO")) {
        "rows that go INTO variables or a file are those of one server; read them, and SET the variables"
    } else {
        "it names a sharded table and is not understood whole; say it as a plain SELECT, INSERT, UPDATE or DELETE, or do it on the server of each partition"
    }
}

/// Moves the cuts by what stands before the statement.
fn shift(spread: &mut Spread, by: usize) {
    let legs = match spread {
        Spread::Point(leg) => std::slice::from_mut(leg),
        Spread::Some(legs) | Spread::All(legs) => legs,
        Spread::Plain | Spread::Refused(_) => return,
    };
    for cut in legs.iter_mut().flat_map(|leg| &mut leg.cuts) {
        cut.at = cut.at.start + by..cut.at.end + by;
    }
}

/// The first of a text's names that may be a table of the map, by its number; and whether the text may
/// ask which tables there are.
fn may_name(map: &Map, text: &[u8], facts: &Facts<'_>) -> (Option<u32>, bool) {
    let (mut found, mut asks_catalogue, mut first) = (None, false, true);
    sql::names(text, facts.lexing, |schema, name| {
        asks_catalogue |= match schema {
            Some(schema) => schema.eq_ignore_ascii_case(b"information_schema"),
            None => std::mem::take(&mut first) && name.eq_ignore_ascii_case(b"SHOW"),
        };
        let schema = schema.unwrap_or(facts.schema.as_bytes());
        // A qualifier may be a schema or a table.
        if found.is_none() {
            let table = map.table(schema, name);
            let table = table.or_else(|| map.table(facts.schema.as_bytes(), name));
            found = table.map(|table| table.number);
        }
    });
    (found, asks_catalogue)
}

/// Routes what a tree says. `is_explained`: the statement is not done.
fn of_tree<'a>(
    map: &Map,
    tree: &Tree<'a>,
    (text, is_explained): (&[u8], bool),
    facts: &Facts<'a>,
) -> Routed {
    let statement = &tree.statement;
    let found = named(statement, map, facts.schema.as_bytes());
    if found.uses.is_empty() {
        return Routed::of(Spread::Plain);
    }
    if found.uses.len() > USES_MAX {
        return Routed {
            table: found.uses[0].table.number,
            ..Routed::refused(format!(
                "it names sharded tables more than {USES_MAX} times; say it in several statements"
            ))
        };
    }
    if let Some(words) = found.unknown() {
        return Routed {
            table: found.uses[0].table.number,
            ..Routed::refused(words)
        };
    }
    let hints = match facts.comment.map_or_else(|| Ok(Hints::default()), hints) {
        Ok(hints) => hints,
        Err(words) => {
            return Routed {
                table: found.uses[0].table.number,
                ..Routed::refused(words)
            };
        }
    };
    let case = Case {
        statement,
        text,
        found: &found,
        facts,
        hints: &hints,
        wanted: &RefCell::default(),
    };
    let mut routed = case.route();
    if !is_explained {
        case.write_entries(&mut routed);
        routed.returns = !returning(statement).is_empty();
    }
    routed.looks_up = case.wanted.borrow().is_told;
    routed.lookups = case.wanted_lookups();
    if matches!(routed.spread, Spread::Refused(_)) {
        // The partition that a hint names may have been made since; and what is refused here may be
        // finished on a server, from all partitions.
        let mut automatic = found.uses.iter().filter(|one| one.table.is_automatic());
        routed.looks = automatic.next().map(|one| one.table.number);
    }
    if facts.prepares {
        routed.spread = match routed.spread {
            Spread::Some(mut legs) | Spread::All(mut legs) => Spread::Point(legs.swap_remove(0)),
            other => other,
        };
    }
    routed.parameters = tree.parameters;
    routed.table = found.uses[0].table.number;
    routed.writes = !matches!(statement, Statement::Query(_) | Statement::Describe(_));
    if let Statement::Describe(table) = statement {
        let home = found.uses.first().and_then(|one| one.table.homes.first());
        let logical = String::from_utf8_lossy(&table.name.text).into_owned();
        routed.told = home.map(|home| [home.table.clone(), logical]);
    }
    routed
}

impl<'t, 'a, 'm> Case<'_, 't, 'a, 'm> {
    fn route(&self) -> Routed {
        let uses = &self.found.uses;
        if let Some(read) = self.read_by_returning() {
            return Routed::refused(format!(
                "its RETURNING reads the sharded table {read} in a query; read it with a statement of its own"
            ));
        }
        if let Statement::Insert(insert) = self.statement
            && let Some(query) = &insert.query
        {
            return self.insert_query(insert, query);
        }
        if let Some(plain) = self.found.plain.first() {
            let plain = plain.shown();
            return Routed::refused(format!(
                "it reads the plain table {plain} beside the sharded table {}; make {plain} a reference table, or read the two one after the other",
                uses[0].table.shown()
            ));
        }
        match self.statement {
            Statement::Insert(insert) if uses.len() > 1 => Routed::refused(format!(
                "rows of a query cannot be inserted into {} here; read them first, and insert them with VALUES",
                insert_target(insert)
            )),
            Statement::Insert(insert) if uses[0].table.kind == Kind::Sharded => {
                self.insert(insert, &uses[0])
            }
            Statement::Insert(_) => self.everywhere(&uses[0]),
            Statement::Describe(_) => self.legs_at(vec![vec![0; uses.len()]], false),
            Statement::Query(_) | Statement::Update(_) | Statement::Delete(_) => self.rows(),
        }
    }

    /// A table that a query in the RETURNING of an INSERT reads.
    fn read_by_returning(&self) -> Option<String> {
        let Statement::Insert(insert) = self.statement else {
            return None;
        };
        let from = insert.returning.first()?.at.start;
        let mut uses = self.found.uses.iter();
        let read = uses.find(|one| one.name.at().start >= from)?;
        Some(read.table.shown())
    }

    /// A change of a reference table is one on each of its homes.
    fn everywhere(&self, one: &Use<'t, 'a, 'm>) -> Routed {
        if let Some(refused) = self.by_chance().or_else(|| self.bounded_change()) {
            return Routed::refused(refused);
        }
        let homes = (0..one.table.homes.len()).map(|home| vec![home]).collect();
        let mut routed = self.legs_at(homes, true);
        routed.copies = true;
        routed.reasons.push(format!(
            "{} is a reference table: a change is made everywhere",
            one.table.shown()
        ));
        routed
    }

    /// Routes what reads or changes rows that are there.
    fn rows(&self) -> Routed {
        let uses = &self.found.uses;
        let sharded: Vec<usize> = (0..uses.len())
            .filter(|at| uses[*at].table.kind == Kind::Sharded)
            .collect();
        let new_key = self.new_key();
        if let NewKey::Refused(words, makes) = new_key {
            return Routed {
                makes,
                ..Routed::refused(words)
            };
        }
        if sharded.is_empty() {
            return match self.statement {
                Statement::Query(_) => self.legs_at(vec![vec![0; uses.len()]], false),
                _ if uses.len() == 1 => self.everywhere(&uses[0]),
                _ => Routed::refused(
                    "it changes a reference table with another beside it; change one at a time",
                ),
            };
        }
        if let Some(refused) = self.changes_reference() {
            return Routed::refused(refused);
        }
        let mut reasons = Vec::new();
        let mut homes = Vec::new();
        for at in &sharded {
            match self.homes(&uses[*at], &mut reasons) {
                Ok(found) => homes.push(found),
                Err(words) => return Routed::refused(words),
            }
        }
        self.beside_each_other(&sharded, &mut homes);
        let rekeyed = match self.moves(&new_key, &mut homes) {
            Ok(rekeyed) => rekeyed,
            Err(words) => return Routed::refused(words),
        };
        let mut looks = None;
        let mut routed = match self.combined(&sharded, &homes, &mut reasons) {
            Ok((legs, all)) => {
                looks = self.looks(&legs);
                self.legs_at(legs, all)
            }
            Err(words) => Routed::refused(words),
        };
        routed.looks = looks;
        if let Spread::Some(_) | Spread::All(_) = &routed.spread
            && let Some(words) = self.bounded_change().or_else(|| self.ordered_change())
        {
            return Routed::refused(words);
        }
        reasons.append(&mut routed.reasons);
        routed.reasons = reasons;
        if let (Some(rekeyed), NewKey::At(home, _)) = (rekeyed, &new_key) {
            self.lead_rekeyed(&mut routed, rekeyed, *home);
        }
        routed
    }

    /// The homes of each leg of a query, for each use; and whether that is all there are.
    ///
    /// # Errors
    /// A sentence: why its rows are not those of partitions side by side.
    pub(crate) fn read_legs(&self) -> Result<(Vec<Vec<usize>>, bool), String> {
        let uses = &self.found.uses;
        let is_sharded = |at: &usize| uses[*at].table.kind == Kind::Sharded;
        let sharded: Vec<usize> = (0..uses.len()).filter(is_sharded).collect();
        let (mut homes, mut reasons) = (Vec::new(), Vec::new());
        for at in &sharded {
            homes.push(self.homes(&uses[*at], &mut reasons)?);
        }
        self.beside_each_other(&sharded, &mut homes);
        self.combined(&sharded, &homes, &mut reasons)
    }

    /// The first table whose partitions are made by themselves and of which a leg asks the default one:
    /// it has what no partition is known to have.
    fn looks(&self, legs: &[Vec<usize>]) -> Option<u32> {
        let uses = self.found.uses.iter().enumerate();
        let mut automatic = uses.filter(|(_, one)| one.table.is_automatic());
        let asks_default = |at: usize| legs.iter().any(|homes| homes.get(at) == Some(&0));
        let found = automatic.find(|(at, _)| asks_default(*at));
        found.map(|(_, one)| one.table.number)
    }

    /// A change of several tables at once might change one home of a reference table.
    fn changes_reference(&self) -> Option<String> {
        if matches!(self.statement, Statement::Query(_)) {
            return None;
        }
        let is_reference =
            |one: &&Use<'_, '_, '_>| one.scope == 0 && one.table.kind == Kind::Reference;
        let one = self.found.uses.iter().find(is_reference)?;
        Some(format!(
            "it may change the reference table {} on one server only; change one table at a time",
            one.table.shown()
        ))
    }

    /// A value of chance would be another one in each copy.
    fn by_chance(&self) -> Option<String> {
        let mut found = None;
        every(self.statement, &mut |expression| {
            if let Node::Call(call) = &expression.node {
                let name = String::from_utf8_lossy(&call.name.text).to_uppercase();
                if CHANCES.contains(&&*name) {
                    found = Some(name);
                }
            }
        });
        found.map(|name| format!("{name}() would be another value in each copy of a reference table; compute it first"))
    }

    /// A LIMIT would be done once on each partition.
    fn bounded_change(&self) -> Option<String> {
        let limit = match self.statement {
            Statement::Update(update) => update.limit.is_some(),
            Statement::Delete(delete) => delete.limit.is_some(),
            _ => false,
        };
        limit.then(|| "it changes rows of several partitions up to a LIMIT, and which ones is not certain; name the key in its WHERE".into())
    }

    /// Rows that RETURNING tells come partition by partition.
    fn ordered_change(&self) -> Option<String> {
        let Statement::Delete(delete) = self.statement else {
            return None;
        };
        let is_told = !delete.order.is_empty() && !delete.returning.is_empty();
        is_told.then(|| "the rows of its RETURNING are those of several partitions, and have no order; leave ORDER BY out".into())
    }

    /// The homes that a use may need.
    pub(crate) fn homes(
        &self,
        one: &Use<'t, 'a, 'm>,
        reasons: &mut Vec<String>,
    ) -> Result<Homes, String> {
        if self.hints.scan {
            reasons.push("every partition is read, by a hint".into());
            return Ok(None);
        }
        if let Some(home) = self.bound(one)? {
            reasons.push(format!("{}: by a hint", one.table.shown()));
            return Ok(Some(BTreeSet::from([home])));
        }
        let scope = self.found.scopes[one.scope];
        let outer = scope.tables.iter().any(|joined| joined.join != Join::Inner);
        let key = |seen: usize| {
            let is_certain = scope.is_certain(one.position, seen, &one.table.column);
            KeyOf {
                outer,
                ..KeyOf::of(one, is_certain, self.facts.parameters)
            }
        };
        let conditions = scope
            .conditions(one.position)
            .map(|(condition, seen)| key(seen).homes(condition));
        let homes = conditions.reduce(both).flatten();
        let table = one.table.shown();
        if homes.as_ref().is_none_or(|homes| homes.len() > 1)
            && let Some(looked_up) = self.looked_up(one, reasons)
        {
            return Ok(both(homes, Some(looked_up)));
        }
        reasons.push(match &homes {
            None => format!("{table}: nothing in it says which {}", one.table.column),
            Some(homes) if homes.is_empty() => format!("{table}: no row can fulfil it"),
            Some(_) => format!("{table}: by its {}", one.table.column),
        });
        Ok(homes)
    }

    /// The home that a hint says.
    fn bound(&self, one: &Use<'t, 'a, 'm>) -> Result<Option<usize>, String> {
        let table = one.table;
        let is_meant = |name: &str| {
            name.eq_ignore_ascii_case(&table.name)
                || name.as_bytes().eq_ignore_ascii_case(one.name.called())
        };
        let Some((_, said)) = self.hints.said.iter().find(|(name, _)| is_meant(name)) else {
            return Ok(None);
        };
        match said {
            Said::Partition(name) => match table.home_named(name) {
                Some(home) => Ok(Some(home)),
                None => Err(format!(
                    "{} has no partition '{name}', which a hint names",
                    table.shown()
                )),
            },
            Said::Key(key) => match table.stored(&literal(key)) {
                Reading::Is(value) => Ok(table.home_of_key(&value)),
                _ => Err(format!(
                    "which partition of {} has the key '{key}' of a hint is not certain",
                    table.shown()
                )),
            },
        }
    }

    /// Tables whose keys are equal have their rows beside each other.
    pub(crate) fn beside_each_other(&self, sharded: &[usize], homes: &mut [Homes]) {
        let uses = &self.found.uses;
        // Once for each table that may tell another.
        for _ in 0..sharded.len() {
            for one in 0..sharded.len() {
                for other in 0..sharded.len() {
                    let (a, b) = (&uses[sharded[one]], &uses[sharded[other]]);
                    if one == other || !self.keys_are_equal(a, b) {
                        continue;
                    }
                    let Some(told) = homes[one].as_ref().filter(|_| a.table.lies_beside(b.table))
                    else {
                        continue;
                    };
                    let beside = |home: &usize| a.table.home_beside(*home, b.table);
                    let told = told.iter().filter_map(beside).collect();
                    homes[other] = both(homes[other].take(), Some(told));
                }
            }
        }
    }

    /// Whether every row of `b` that matters has the key of a row of `a`.
    fn keys_are_equal(&self, a: &Use<'t, 'a, 'm>, b: &Use<'t, 'a, 'm>) -> bool {
        if a.scope != b.scope {
            return false;
        }
        let scope = self.found.scopes[a.scope];
        let key = |one: &Use<'t, 'a, 'm>, seen| {
            let is_certain = scope.is_certain(one.position, seen, &one.table.column);
            KeyOf::of(one, is_certain, None)
        };
        let joined = |(condition, seen): (&Expression<'a>, usize)| {
            equates(condition, key(a, seen), key(b, seen))
        };
        scope.conditions(b.position).any(joined) || uses_key(&scope, a, b)
    }

    /// The homes of each leg, for each use; and whether that is all there are.
    fn combined(
        &self,
        sharded: &[usize],
        homes: &[Homes],
        reasons: &mut Vec<String>,
    ) -> Result<(Vec<Vec<usize>>, bool), String> {
        let uses = &self.found.uses;
        let first = uses[sharded[0]].table;
        let one_each = self.one_each(sharded, homes);
        if let Some(homes) = one_each {
            return self
                .on_one_server(sharded, &homes)
                .map(|leg| (vec![leg], false));
        }
        let pairs = self.pairs(sharded)?;
        // Where one home is empty of what is asked, others are not.
        let mut wanted = BTreeSet::new();
        let mut every = false;
        for (set, pairs) in homes.iter().zip(&pairs) {
            match set {
                None => every = true,
                Some(set) => {
                    wanted.extend((0..first.homes.len()).filter(|home| set.contains(&pairs[*home])))
                }
            }
        }
        let is_union = sharded
            .iter()
            .any(|at| uses[*at].scope != uses[sharded[0]].scope);
        if !is_union && sharded.len() > 1 {
            // In a join each table must have its rows there.
            wanted = (0..first.homes.len())
                .filter(|home| {
                    homes.iter().zip(&pairs).all(|(set, pairs)| {
                        set.as_ref().is_none_or(|set| set.contains(&pairs[*home]))
                    })
                })
                .collect();
            every = false;
        }
        if every {
            wanted = (0..first.homes.len()).collect();
        }
        if wanted.is_empty() {
            wanted.insert(0);
        }
        if wanted.len() > 1 {
            self.repeats(sharded)?;
        }
        if sharded.len() > 1 {
            reasons.push("its tables lie beside each other, partition by partition".into());
        }
        let all = wanted.len() == first.homes.len() && first.homes.len() > 1;
        let mut legs = Vec::new();
        for home in wanted {
            let homes: Vec<usize> = pairs.iter().map(|pairs| pairs[home]).collect();
            legs.push(self.on_one_server(sharded, &homes)?);
        }
        Ok((legs, all))
    }

    /// The home of each use, if no one has more. Of what is empty, one that is on the same server.
    fn one_each(&self, sharded: &[usize], homes: &[Homes]) -> Option<Vec<usize>> {
        let uses = &self.found.uses;
        let of = |at: usize| &uses[sharded[at]].table.homes;
        let known = homes.iter().enumerate().find_map(|(at, set)| {
            let home = set.as_ref()?.first()?;
            of(at).get(*home).map(|home| home.hostgroup)
        });
        let beside = |at: usize| of(at).iter().position(|home| Some(home.hostgroup) == known);
        let one = |(at, set): (usize, &Homes)| match set {
            Some(set) if set.is_empty() => Some(beside(at).unwrap_or(0)),
            Some(set) if set.len() == 1 => set.first().copied(),
            _ => None,
        };
        homes.iter().enumerate().map(one).collect()
    }

    /// For each use, its home beside each home of the first.
    fn pairs(&self, sharded: &[usize]) -> Result<Vec<Vec<usize>>, String> {
        let uses = &self.found.uses;
        let first = &uses[sharded[0]];
        let mut pairs = vec![(0..first.table.homes.len()).collect::<Vec<_>>()];
        let mut linked = vec![sharded[0]];
        if let Some(inner) = sharded
            .iter()
            .find(|at| !self.found.scopes[uses[**at].scope].top)
        {
            return Err(format!(
                "it reads {} in a query inside another, over more than one partition; name the key in each of the two, or read them one after the other",
                uses[*inner].table.shown()
            ));
        }
        for at in &sharded[1..] {
            let other = &uses[*at];
            let homes = || {
                (0..first.table.homes.len()).map(|home| first.table.home_beside(home, other.table))
            };
            let beside = match first.table.lies_beside(other.table) {
                true => homes().collect::<Option<Vec<_>>>(),
                false => None,
            };
            let is_linked = other.scope != first.scope && self.is_linked_alone(sharded, other)
                || linked.iter().any(|with| {
                    self.keys_are_equal(&uses[*with], other)
                        || self.keys_are_equal(other, &uses[*with])
                })
                || self.is_linked_by_others(sharded, &linked, *at);
            match beside {
                Some(homes) if is_linked => pairs.push(homes),
                Some(_) => {
                    return Err(format!(
                        "it reads {} and {} over more than one partition, and they are not joined by {} = {}; join them by their keys, or name the key of each",
                        first.table.shown(),
                        other.table.shown(),
                        first.table.column,
                        other.table.column
                    ));
                }
                None => {
                    return Err(format!(
                        "it joins {} and {} over more than one partition, and their partitions do not lie beside each other; give both the same function, values and hostgroups, or name the key of each",
                        first.table.shown(),
                        other.table.shown()
                    ));
                }
            }
            linked.push(*at);
        }
        Ok(pairs)
    }

    /// A row that does not come from a sharded table would come from every partition.
    fn repeats(&self, sharded: &[usize]) -> Result<(), String> {
        for (number, scope) in self
            .found
            .scopes
            .iter()
            .enumerate()
            .filter(|(_, scope)| scope.top)
        {
            let is_clear = scope.tables.iter().all(|joined| joined.join != Join::Other);
            let has_rows = sharded.iter().any(|at| {
                let one = &self.found.uses[*at];
                let joined = scope.tables.get(one.position);
                one.scope == number && joined.is_some_and(|joined| joined.join == Join::Inner)
            });
            if !has_rows || !is_clear && scope.tables.len() > 1 {
                return Err("a part of its rows comes from no sharded table, or an outer join keeps rows that have none; each partition would give them again: let the sharded table stand first, with JOIN or LEFT JOIN behind it, or name its key".into());
            }
        }
        Ok(())
    }

    /// In another part of a UNION, a table needs no link; two of them do.
    fn is_linked_alone(&self, sharded: &[usize], other: &Use<'t, 'a, 'm>) -> bool {
        let uses = &self.found.uses;
        sharded
            .iter()
            .filter(|at| uses[**at].scope == other.scope)
            .count()
            == 1
    }

    /// A table further right may link the two.
    fn is_linked_by_others(&self, sharded: &[usize], linked: &[usize], at: usize) -> bool {
        let uses = &self.found.uses;
        let equal = |a: usize, b: usize| {
            self.keys_are_equal(&uses[a], &uses[b]) || self.keys_are_equal(&uses[b], &uses[a])
        };
        sharded.iter().any(|via| {
            *via != at && equal(*via, at) && linked.iter().any(|known| equal(*known, *via))
        })
    }

    /// The home of every use, reference tables included, if all are on one hostgroup.
    fn on_one_server(&self, sharded: &[usize], homes: &[usize]) -> Result<Vec<usize>, String> {
        let uses = &self.found.uses;
        let home_of: BTreeMap<usize, usize> =
            sharded.iter().copied().zip(homes.iter().copied()).collect();
        let hostgroup_of = |at: usize, home: usize| uses[at].table.homes[home].hostgroup;
        let hostgroup = hostgroup_of(sharded[0], homes[0]);
        let mut leg = Vec::new();
        for (at, one) in uses.iter().enumerate() {
            let home = match home_of.get(&at) {
                Some(home) => *home,
                None => one
                    .table
                    .homes
                    .iter()
                    .position(|home| home.hostgroup == hostgroup)
                    .ok_or_else(|| format!("the reference table {} is not on hostgroup {hostgroup}; add it there in mysql_shard_partitions", one.table.shown()))?,
            };
            if hostgroup_of(at, home) != hostgroup {
                return Err(format!(
                    "it needs {} on hostgroup {hostgroup} and {} on hostgroup {} at once; read them one after the other",
                    uses[sharded[0]].table.shown(),
                    one.table.shown(),
                    hostgroup_of(at, home)
                ));
            }
            leg.push(home);
        }
        Ok(leg)
    }

    /// Legs at these homes, one for each table that is there: partitions may share a table.
    pub(crate) fn legs_at(&self, legs: Vec<Vec<usize>>, all: bool) -> Routed {
        let uses = &self.found.uses;
        let mut seen = BTreeMap::new();
        let mut made: Vec<Leg> = Vec::new();
        for homes in legs {
            let chosen: Vec<_> = uses
                .iter()
                .zip(&homes)
                .map(|(one, home)| &one.table.homes[*home])
                .collect();
            let physical: Vec<_> = chosen
                .iter()
                .map(|home| (home.hostgroup, &home.schema, &home.table))
                .collect();
            let shown = uses
                .iter()
                .zip(&chosen)
                .map(|(one, home)| one.table.shown_at(home));
            if let Some(at) = seen.get(&physical) {
                let leg: &mut Leg = &mut made[*at];
                let more: Vec<_> = shown
                    .filter(|name| !leg.partitions.contains(name))
                    .collect();
                leg.partitions.extend(more);
                continue;
            }
            let mut partitions: Vec<String> = Vec::new();
            shown.for_each(|name| {
                if !partitions.contains(&name) {
                    partitions.push(name)
                }
            });
            let cuts = uses
                .iter()
                .zip(&chosen)
                .flat_map(|(one, home)| renamed(self.statement, one.name, home));
            let mut cuts: Vec<_> = cuts.collect();
            cuts.extend(named_as_written(self.statement, self.text, &cuts));
            seen.insert(physical, made.len());
            made.push(Leg {
                hostgroup: chosen.first().map_or(0, |home| home.hostgroup),
                partitions,
                cuts,
                rows: Vec::new(),
            });
        }
        Routed::of(match (made.len(), all) {
            (0 | 1, _) => made.pop().map_or_else(
                || Spread::Refused("it has nowhere to go".into()),
                Spread::Point,
            ),
            (_, true) => Spread::All(made),
            (_, false) => Spread::Some(made),
        })
    }

    /// INSERT and REPLACE: the home of each row.
    fn insert(&self, insert: &Insert<'a>, one: &Use<'t, 'a, 'm>) -> Routed {
        let table = one.table;
        let (name, column) = (table.shown(), &table.column);
        let Some(columns) = &insert.columns else {
            return Routed::refused(format!(
                "the columns of {name} are asked of a server when the INSERT runs; name them to see which partition it goes to"
            ));
        };
        let Some(at) = columns.iter().position(|named| named.is(column.as_bytes())) else {
            return Routed::refused(format!(
                "an INSERT into {name} must have a value for {column}, by which the table is spread"
            ));
        };
        let key = KeyOf::of(one, true, self.facts.parameters);
        if insert
            .duplicate
            .iter()
            .any(|(assigned, _)| key.is(assigned))
        {
            return Routed::refused(format!(
                "ON DUPLICATE KEY UPDATE must not change {column}, by which {name} is spread"
            ));
        }
        let bound = match self.bound(one) {
            Ok(bound) => bound,
            Err(words) => return Routed::refused(words),
        };
        let is_open = |value: &Expression<'_>| matches!(value.node, Node::Parameter(_));
        let mut keys = insert.rows.iter().filter_map(|row| row.values.get(at));
        let waits = self.facts.prepares && keys.any(is_open);
        let mut rows_of: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        let mut makes = None;
        for (number, row) in insert.rows.iter().enumerate() {
            let value = row
                .values
                .get(at)
                .filter(|_| row.values.len() == columns.len());
            let Some(value) = value else {
                // Any server says that there are more or fewer values than columns.
                return self.legs_at(vec![vec![0]], false);
            };
            let home = match written(table, key, value, &mut makes) {
                // A row with any partition's table: what is prepared has all of them.
                _ if waits => bound.unwrap_or(0),
                Ok(home) => home,
                Err(words) => match bound.filter(|_| makes.is_none()) {
                    // Somebody knows better, and has said so.
                    Some(home) => home,
                    None => {
                        return Routed {
                            makes,
                            ..Routed::refused(words)
                        };
                    }
                },
            };
            if let Some(bound) = bound
                && bound != home
            {
                let wanted = &table.homes[home].name;
                return Routed::refused(format!(
                    "row {} of it belongs to the partition '{wanted}' of {name}, not to the one that a hint names",
                    number + 1
                ));
            }
            rows_of.entry(home).or_default().push(number);
        }
        self.insert_legs(insert, one, &rows_of)
    }

    /// Whether RETURNING may tell of fewer rows than an INSERT has, so that which ones is not known.
    fn returns_fewer(&self, insert: &Insert<'a>) -> bool {
        !insert.returning.is_empty() && (self.ignores() || !insert.duplicate.is_empty())
    }

    /// A leg for each home that gets rows, without the rows of the others.
    fn insert_legs(
        &self,
        insert: &Insert<'a>,
        one: &Use<'t, 'a, 'm>,
        rows_of: &BTreeMap<usize, Vec<usize>>,
    ) -> Routed {
        let mut by_table: BTreeMap<_, (usize, Vec<usize>)> = BTreeMap::new();
        for (home, rows) in rows_of {
            let there = &one.table.homes[*home];
            let physical = (there.hostgroup, &there.schema, &there.table);
            let (_, all) = by_table.entry(physical).or_insert((*home, Vec::new()));
            all.extend(rows);
        }
        let several = by_table.len() > 1;
        let of_tables = by_table.into_values();
        let shares: Vec<_> = match several && self.returns_fewer(insert) {
            true => in_runs(of_tables),
            false => of_tables.collect(),
        };
        let mut legs = Vec::new();
        for (home, mut rows) in shares {
            let mut routed = self.legs_at(vec![vec![home]], false);
            if let Spread::Point(leg) = &mut routed.spread {
                rows.sort_unstable();
                // What is prepared keeps all of its `?`.
                if several && !self.facts.prepares {
                    leg.cuts.extend(without_others(insert, &rows));
                }
                leg.rows = rows;
                legs.push(leg.clone());
            }
        }
        let mut routed = Routed::of(match legs.len() {
            1 => legs.pop().map_or(Spread::Plain, Spread::Point),
            _ => Spread::Some(legs),
        });
        let column = &one.table.column;
        routed.reasons.push(format!(
            "{}: by the {column} of its rows",
            one.table.shown()
        ));
        routed
    }
}

/// Items of the RETURNING of a change.
fn returning<'t, 'a>(statement: &'t Statement<'a>) -> &'t [Item<'a>] {
    match statement {
        Statement::Insert(insert) => &insert.returning,
        Statement::Delete(delete) => &delete.returning,
        Statement::Query(_) | Statement::Update(_) | Statement::Describe(_) => &[],
    }
}

/// Rows of each home, in pieces between which no other home has any.
fn in_runs(shares: impl Iterator<Item = (usize, Vec<usize>)>) -> Vec<(usize, Vec<usize>)> {
    let rows = shares.flat_map(|(home, rows)| rows.into_iter().map(move |row| (row, home)));
    let homes: BTreeMap<usize, usize> = rows.collect();
    let mut runs: Vec<(usize, Vec<usize>)> = Vec::new();
    for (row, home) in homes {
        match runs.last_mut().filter(|(last, _)| *last == home) {
            Some((_, run)) => run.push(row),
            None => runs.push((home, vec![row])),
        }
    }
    runs
}

fn insert_target(insert: &Insert<'_>) -> String {
    String::from_utf8_lossy(&insert.table.name.text).into_owned()
}

/// Whether a condition, or one of those that it joins by AND, says that two keys are equal.
fn equates<'a>(condition: &Expression<'a>, one: KeyOf<'_, 'a>, other: KeyOf<'_, 'a>) -> bool {
    match &condition.node {
        Node::And(all) => all.iter().any(|inner| equates(inner, one, other)),
        Node::Compare(Comparison::Equal, sides) => {
            let is = |side: &Expression<'a>, key: KeyOf<'_, 'a>| matches!(&side.node, Node::Column(parts) if key.is(parts));
            let are = |(left, right)| {
                is(left, one) && is(right, other) || is(left, other) && is(right, one)
            };
            let [left, right] = &**sides;
            match (&left.node, &right.node) {
                (Node::Row(left), Node::Row(right)) => {
                    left.len() == right.len() && left.iter().zip(right).any(are)
                }
                _ => are((left, right)),
            }
        }
        _ => false,
    }
}

/// Whether USING joins two tables by what is the key of both.
fn uses_key(scope: &Scope<'_, '_>, a: &Use<'_, '_, '_>, b: &Use<'_, '_, '_>) -> bool {
    let is_key =
        |name: &Name<'_>| name.is(a.table.column.as_bytes()) && name.is(b.table.column.as_bytes());
    let (first, second) = (a.position.min(b.position), a.position.max(b.position));
    let plain = |joined: &sql::tree::Joined<'_>| joined.join != Join::Other;
    // Between the two only tables that USING joins by the same column.
    scope.tables.iter().all(plain)
        && (first + 1..=second).all(|at| {
            scope.tables.get(at).is_some_and(|joined| {
                matches!(joined.source, Source::Table(_)) && joined.using.iter().any(is_key)
            })
        })
        && a.position < b.position
}

/// Cuts that take out all rows but these.
fn without_others(insert: &Insert<'_>, rows: &[usize]) -> Vec<Cut> {
    let mut cuts = Vec::new();
    let (Some(first), Some(last)) = (insert.rows.first(), insert.rows.last()) else {
        return cuts;
    };
    // Between two that stay, a comma; what was there goes with what is left out.
    let mut from = first.at.start;
    for (number, row) in rows.iter().enumerate() {
        let Some(row) = insert.rows.get(*row) else {
            continue;
        };
        let comma = if number == 0 { "" } else { ", " };
        cuts.push(Cut::new(from..row.at.start, comma));
        from = row.at.end;
    }
    cuts.push(Cut::new(from..last.at.end, ""));
    cuts
}
