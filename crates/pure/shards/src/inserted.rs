//! INSERT and REPLACE of a query into a sharded table.
//!
//! Where the query hands the key of a table on whose partitions lie beside those of the target, each
//! partition does its part. All other rows are read first and then inserted where they belong:
//! [`FromQuery`] says how.

use crate::case::Case;
use crate::condition::KeyOf;
use crate::cuts::{Cut, physical, returned};
use crate::from_query::FromQuery;
use crate::lookups::of_query;
use crate::map::{Home, Kind, Table};
use crate::routed::{Leg, Routed, Spread};
use crate::scopes::{ALL_SEEN, Use, named};
use sql::tree::{Expression, Insert, Name, Node, Query, Select, Statement, tree, walk};

/// Aggregates, whose value is one of all partitions.
const AGGREGATES: &[&str] = &[
    "COUNT",
    "SUM",
    "MIN",
    "MAX",
    "AVG",
    "GROUP_CONCAT",
    "JSON_ARRAYAGG",
    "JSON_OBJECTAGG",
    "STD",
    "STDDEV",
    "STDDEV_POP",
    "STDDEV_SAMP",
    "VARIANCE",
    "VAR_POP",
    "VAR_SAMP",
    "BIT_AND",
    "BIT_OR",
    "BIT_XOR",
];

impl<'t, 'a, 'm> Case<'_, 't, 'a, 'm> {
    /// Routes an INSERT of a query.
    pub(crate) fn insert_query(&self, insert: &'t Insert<'a>, query: &'t Query<'a>) -> Routed {
        let target = self.found.uses.first().filter(|one| one.is_of(insert));
        let Some(one) = target else {
            return self.read_first(insert, query, None);
        };
        if one.table.kind == Kind::Reference {
            return Routed::refused(format!(
                "rows of a query cannot be inserted into the reference table {}, whose copies may get different ones; read them first, and insert them with VALUES",
                one.table.shown()
            ));
        }
        let (name, column) = (one.table.shown(), &one.table.column);
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
        if let Some(lookup) = one.table.lookups.first() {
            return Routed::refused(of_query(one.table, lookup));
        }
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
        if let Some(routed) = self.pushed_down(insert, query, (one, at)) {
            return routed;
        }
        self.read_first(insert, query, Some((one, at)))
    }

    /// Has the rows of a query read first. `target`: the sharded table that gets them, and which of the
    /// columns is its key.
    fn read_first(
        &self,
        insert: &'t Insert<'a>,
        query: &'t Query<'a>,
        target: Option<(&Use<'t, 'a, 'm>, usize)>,
    ) -> Routed {
        let refused = |words: &str| Routed::refused(words);
        if !insert.duplicate.is_empty() {
            return refused(
                "rows of its query go to partitions elsewhere, and what ON DUPLICATE KEY UPDATE names of them is not known there; read them first, and insert them with VALUES",
            );
        }
        if !insert.returning.is_empty() {
            return refused(
                "rows of its query go to several partitions, and RETURNING would have to put them together; leave RETURNING out",
            );
        }
        let Some(behind) = self.behind_the_name(insert, query) else {
            return refused(
                "more than a query stands behind the columns; say INSERT … SELECT alone",
            );
        };
        let columns = insert.columns.as_deref();
        if let Some((one, _)) = target
            && let Some(sequence) = &one.table.sequence
            && !columns
                .unwrap_or_default()
                .iter()
                .any(|named| named.is(sequence.as_bytes()))
        {
            let name = one.table.shown();
            return Routed::refused(format!(
                "rows of {name} get their {sequence} from a sequence, and those of a query get none; select a {sequence} as well"
            ));
        }
        let said = insert.table.schema.as_ref();
        let mut routed = refused(
            "rows of its query are read first and inserted then, and that cannot be explained; EXPLAIN the query alone",
        );
        let name_at = insert.table.at();
        routed.from_query = Some(FromQuery {
            query: query.at.clone(),
            table: target.map(|(one, _)| one.table.number),
            key: target.map_or(0, |(_, at)| at),
            columns: columns.map(<[_]>::len),
            partitions: target.map_or_else(String::new, |(one, _)| one.table.all_shown()),
            hostgroup: 0,
            before: self.text.get(..name_at.start).unwrap_or_default().to_vec(),
            behind,
            said: said.map(|said| String::from_utf8_lossy(&said.text).into_owned()),
            plain: String::from_utf8_lossy(self.text.get(name_at).unwrap_or_default()).into_owned(),
        });
        routed.reasons.push(match target {
            Some((one, _)) => format!(
                "{}: rows of its query are read, and inserted by their {}",
                one.table.shown(),
                one.table.column
            ),
            None => "rows of its query are read first".into(),
        });
        routed
    }

    /// The text between the table's name and its query; none if something stands behind the query.
    fn behind_the_name(&self, insert: &Insert<'a>, query: &Query<'a>) -> Option<Vec<u8>> {
        let before = self.text.get(insert.table.at().end..query.at.start)?;
        let mut before = before.trim_ascii_end();
        let mut braces = 0;
        while let Some(less) = before.strip_suffix(b"(") {
            before = less.trim_ascii_end();
            braces += 1;
        }
        let mut rest = self.facts.lexing.words(self.text.get(query.at.end..)?);
        let closes = rest.all(|word| {
            let closes = word.is_sign(b')') && braces > 0;
            braces -= usize::from(closes);
            closes || word.is_sign(b';')
        });
        (closes && braces == 0).then(|| before.to_vec())
    }

    /// Has each partition insert its own rows, if the key is handed on.
    fn pushed_down(
        &self,
        insert: &Insert<'a>,
        query: &Query<'a>,
        (target, at): (&Use<'t, 'a, 'm>, usize),
    ) -> Option<Routed> {
        let [select] = &query.selects[..] else {
            return None;
        };
        let is_simple = target.table.sequence.is_none()
            && query.with.is_empty()
            && self.found.plain.is_empty()
            && !insert.duplicate.iter().any(is_qualified);
        is_simple.then_some(())?;
        let (text, facts) = (self.text.get(query.at.clone())?, self.facts);
        let tree = tree(text, facts.lexing, facts.quotes)?;
        let found = named(&tree.statement, self.found.map, facts.schema.as_bytes());
        let inner = Case {
            statement: &tree.statement,
            text,
            found: &found,
            facts,
            hints: self.hints,
            wanted: self.wanted,
        };
        let source = inner.hands_on(at, target.table)?;
        let (legs, all) = inner.read_legs().ok()?;
        if legs.len() > 1 && !is_row_by_row(select) {
            return None;
        }
        let mut made: Vec<Leg> = Vec::new();
        let mut places = Vec::new();
        for homes in &legs {
            let of_source = found.uses[source].table;
            let home = of_source.home_beside(homes[source], target.table)?;
            let home = &target.table.homes[home];
            let Spread::Point(mut leg) = inner.legs_at(vec![homes.clone()], false).spread else {
                return None;
            };
            (leg.hostgroup == home.hostgroup).then_some(())?;
            // Two partitions whose rows are in one table here and in two there would be mixed up.
            let (to, from) = (physical(home, &insert.table), leg.cuts.clone());
            let place = (leg.hostgroup, to.clone(), from.clone());
            if places.contains(&place) {
                continue;
            }
            let is_from = |known: &(u32, String, Vec<Cut>)| known.0 == place.0 && known.2 == from;
            if places.iter().any(is_from) {
                return None;
            }
            places.push(place);
            for cut in &mut leg.cuts {
                cut.at = cut.at.start + query.at.start..cut.at.end + query.at.start;
            }
            leg.cuts.push(Cut::new(insert.table.at(), to));
            self.leads_home(insert, (target.table, home), &mut leg);
            made.push(leg);
        }
        let mut routed = Routed::of(match (made.len(), all) {
            (0 | 1, _) => Spread::Point(made.pop()?),
            (_, true) => Spread::All(made),
            (_, false) => Spread::Some(made),
        });
        let automatic = |one: &&Use<'_, '_, '_>| one.table.is_automatic();
        let automatic = self.found.uses.iter().find(automatic);
        routed.looks = automatic.map(|one| one.table.number);
        routed.reasons.push(format!(
            "{}: each partition inserts its own rows, as the key is handed on",
            target.table.shown()
        ));
        Some(routed)
    }

    /// Has a leg tell of rows that a home gets.
    fn leads_home(&self, insert: &Insert<'a>, (table, home): (&Table, &Home), leg: &mut Leg) {
        let returned = returned(self.statement, &insert.table, (home, self.text));
        leg.cuts.extend(returned);
        let own = table.shown_at(home);
        if !leg.partitions.contains(&own) {
            leg.partitions.insert(0, own);
        }
    }

    /// The table of a query whose key is this item, if its partitions lie beside those of another one.
    fn hands_on(&self, at: usize, target: &Table) -> Option<usize> {
        let Statement::Query(query) = self.statement else {
            return None;
        };
        let select = query.selects.first()?;
        let is_star = |expression: &Expression<'_>| matches!(expression.node, Node::Star(_));
        if select.items.iter().any(|item| is_star(&item.expression)) {
            return None;
        }
        let item = select.items.get(at)?;
        let Node::Column(parts) = &item.expression.node else {
            return None;
        };
        self.found.uses.iter().position(|one| {
            let scope = self.found.scopes[one.scope];
            let is_certain = scope.is_certain(one.position, ALL_SEEN, &one.table.column);
            let key = KeyOf::of(one, is_certain, None);
            let lies_beside = one.table.number == target.number || one.table.lies_beside(target);
            one.scope == 0 && one.table.kind == Kind::Sharded && lies_beside && key.is(parts)
        })
    }
}

/// Whether an assignment has a column with its table before it.
fn is_qualified((column, value): &(Vec<Name<'_>>, Expression<'_>)) -> bool {
    let mut found = column.len() > 1;
    walk(value, &mut |inner| {
        found |= matches!(&inner.node, Node::Column(parts) if parts.len() > 1);
    });
    found
}

/// Whether rows of a SELECT are the same, whichever others are read beside them.
fn is_row_by_row(select: &Select<'_>) -> bool {
    let mut has_aggregate = false;
    for item in &select.items {
        walk(&item.expression, &mut |inner| {
            if let Node::Call(call) = &inner.node {
                let name = String::from_utf8_lossy(&call.name.text).to_uppercase();
                has_aggregate |= call.over || AGGREGATES.contains(&&*name);
            }
        });
    }
    !has_aggregate
        && !select.distinct
        && !select.counts_found
        && !select.windows
        && !select.rollup
        && select.group.is_empty()
        && select.having.is_none()
        && select.limit.is_none()
}

impl Use<'_, '_, '_> {
    /// Whether it is the target of an INSERT.
    pub(crate) fn is_of(&self, insert: &Insert<'_>) -> bool {
        self.name.at() == insert.table.at()
    }
}
