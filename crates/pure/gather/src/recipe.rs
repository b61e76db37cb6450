//! What each partition is asked, and what is made of its rows.

use crate::aggregate::{Aggregate, Cells, Does, Table, called, is_aggregate};
use crate::edit::{Edit, Piece, edited};
use crate::having::Having;
use crate::order::{Column, Kind};
use shards::Leg;
use sql::Lexing;
use sql::tree::{DoubleQuotes, expressions, tree, walk};
use sql::tree::{
    Expression, Item, Joint, Limit, Literal, Node, Order, Query, Select, Statement, Tree,
};
use std::fmt;
use std::ops::Range;

/// A cell of a row: one that the client sees, or one behind those.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    /// The column that was selected there.
    Item(usize),
    /// A column that was added, and that no client gets.
    Hidden(usize),
}

/// A key by which rows are in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// Its value.
    pub value: Slot,
    /// Its weights, if it is a string.
    pub weight: Slot,
    /// Weights of a blank, where blanks at the end do not count.
    pub pad: Slot,
    /// The greatest first.
    pub descending: bool,
    /// Place of its expression in the text; none for an aggregate.
    pub source: Option<Range<usize>>,
}

/// How the results of several partitions become one.
#[derive(Debug, Clone, PartialEq)]
pub struct Recipe {
    /// Changes of the text, the same for every partition.
    pub edits: Vec<Edit>,
    /// Columns at the end that no client gets.
    pub hidden: usize,
    /// The order in which each partition gives its rows; empty for any.
    pub keys: Vec<Key>,
    /// Rows that are equal in all keys are one.
    pub distinct: bool,
    /// Rows of one group become one.
    pub grouping: Option<Grouping>,
    /// So many rows are left out first.
    pub offset: u64,
    /// No more than these are given.
    pub limit: Option<u64>,
    /// Whether the statement asks what time it is: each partition must be told the same.
    pub same_moment: bool,
    /// Names of a table that rows tell of.
    pub names: Option<Names>,
}

/// Names of a table, where a server tells of it: SHOW CREATE TABLE, SHOW INDEX.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    /// Name on its server.
    pub physical: Box<[u8]>,
    /// Name for applications.
    pub logical: Box<[u8]>,
}

/// Characters of a definition in front of the table's name.
const BEFORE_NAME: &[&[u8]] = &[b"CREATE TABLE `", b"CREATE TABLE \"", b"CREATE TABLE "];

impl Names {
    /// Says the logical name in a row: in its first column, and at the head of a definition.
    pub fn say(&self, row: &mut Cells) {
        let Some((Some(first), others)) = row.split_first_mut() else {
            return;
        };
        if **first != *self.physical {
            return;
        }
        *first = self.logical.to_vec();
        if let Some(Some(definition)) = others.first_mut()
            && let Some(head) = BEFORE_NAME.iter().find(|head| definition.starts_with(head))
            && definition[head.len()..].starts_with(&self.physical)
        {
            let name = head.len()..head.len() + self.physical.len();
            definition.splice(name, self.logical.iter().copied());
        }
    }
}

/// How rows of one group become one.
#[derive(Debug, Clone, PartialEq)]
pub struct Grouping {
    /// So many keys make a group; without any, all rows are one.
    pub keys: usize,
    /// Aggregates that are computed.
    pub aggregates: Vec<Aggregate>,
    /// Groups that stay.
    pub having: Option<Having>,
    /// The order of groups in the end; empty where they come in order.
    pub sort: Vec<Key>,
}

impl Recipe {
    /// The whole result of one server, as it comes.
    #[must_use]
    pub fn as_it_comes(text: &[u8], lexing: Lexing) -> Self {
        Self {
            edits: Vec::new(),
            hidden: 0,
            keys: Vec::new(),
            distinct: false,
            grouping: None,
            offset: 0,
            limit: None,
            same_moment: lexing.words(text).any(|word| word.is_any(MOMENTS)),
            names: None,
        }
    }

    /// Looks whether rows with these columns, hidden ones included, can be put together. Places of keys
    /// that are ENUM or SET, of which the text has no order.
    ///
    /// # Errors
    /// A sentence: what of these types cannot be put together.
    pub fn listed(&self, columns: &[Column]) -> Result<Vec<Range<usize>>, String> {
        let visible = columns
            .len()
            .checked_sub(self.hidden)
            .filter(|visible| *visible > 0);
        let visible = visible.ok_or("a partition has answered with too few columns")?;
        let table = Table { columns, visible };
        let sorted = self.grouping.iter().flat_map(|grouping| &grouping.sort);
        let mut listed = Vec::new();
        for key in self.keys.iter().chain(sorted) {
            let kind = table.column(key.value).map(|column| column.kind);
            match (kind, &key.source) {
                (None, _) => return Err("a partition has answered with too few columns".into()),
                (Some(Kind::Listed), Some(source)) => listed.push(source.clone()),
                (Some(Kind::Listed), None) => return Err("the order of MIN or MAX of an ENUM or SET cannot be put together over several partitions; order by something else".into()),
                (Some(Kind::Other), _) => return Err("the order of JSON or geometry cannot be put together over several partitions; order or group by something else".into()),
                _ => {}
            }
        }
        if let Some(grouping) = &self.grouping {
            let mut aggregates = grouping.aggregates.iter();
            aggregates.try_for_each(|one| one.check(&table))?;
            let mut having = grouping.having.iter();
            having.try_for_each(|one| one.check(&table))?;
        }
        Ok(listed)
    }

    /// The text that a partition is asked.
    #[must_use]
    pub fn text(&self, leg: &Leg, original: &[u8]) -> Vec<u8> {
        edited(leg, original, &self.edits)
    }
}

/// Reads a SELECT that goes to several partitions.
///
/// # Errors
/// A sentence: what cannot be done, and what to do instead.
pub fn recipe(text: &[u8], tree: &Tree<'_>) -> Result<Recipe, String> {
    numbered(text, tree, &[])
}

/// Reads a SELECT whose partitions have answered with these columns to its first recipe: keys that are
/// ENUM or SET are ordered by their numbers.
///
/// # Errors
/// A sentence: what of these types cannot be done.
pub fn recipe_for(text: &[u8], tree: &Tree<'_>, columns: &[Column]) -> Result<Recipe, String> {
    let first = recipe(text, tree)?;
    let listed = first.listed(columns)?;
    numbered(text, tree, &listed)
}

/// Reads a SELECT; the keys at these places are asked for as numbers, too.
fn numbered(text: &[u8], tree: &Tree<'_>, numbered: &[Range<usize>]) -> Result<Recipe, String> {
    let Statement::Query(query) = &tree.statement else {
        return Err("only rows that are read can be put together".into());
    };
    if !query.with.is_empty() {
        return Err("WITH cannot be put together over several partitions; write its query in place of its name".into());
    }
    for select in &query.selects {
        plain_enough(select)?;
    }
    match &query.selects[..] {
        [_] if !query.order.is_empty() || query.limit.is_some() => Err("ORDER BY or LIMIT behind parentheses cannot be put together over several partitions; leave the parentheses out".into()),
        [select] => {
            let planner = Planner {
                text,
                select,
                locks: query.locks,
                hidden: Vec::new(),
                edits: Vec::new(),
                numbered,
            };
            planner.select()
        }
        _ => union(query),
    }
}

/// Tells in words what becomes of a statement that reads several partitions.
#[must_use]
pub fn told(text: &[u8], lexing: Lexing, quotes: DoubleQuotes) -> String {
    let Some(asked) = tree(text, lexing, quotes) else {
        return "it is not understood whole".into();
    };
    match recipe(text, &asked) {
        Ok(recipe) => recipe.to_string(),
        Err(words) => words,
    }
}

/// Refuses what is refused wherever it stands.
fn plain_enough(select: &Select<'_>) -> Result<(), String> {
    if select.windows {
        return Err("window functions (OVER) cannot be put together over several partitions; name the key in its WHERE".into());
    }
    if select.rollup {
        return Err("WITH ROLLUP cannot be put together over several partitions; ask for the sums with a second statement".into());
    }
    if select.counts_found {
        return Err("SQL_CALC_FOUND_ROWS cannot be put together over several partitions; ask for SELECT COUNT(*) with a second statement".into());
    }
    let mut variable = false;
    for expression in expressions(select) {
        walk(
            expression,
            &mut |inner| {
                variable |= matches!(&inner.node, Node::Variable(inside) if !inside.is_empty())
            },
        );
    }
    if variable {
        return Err("a variable that is assigned in a SELECT would be another on each partition; count in the application".into());
    }
    Ok(())
}

/// UNION ALL: rows of each partition, one behind another.
fn union(query: &Query<'_>) -> Result<Recipe, String> {
    if query.joints.iter().any(|joint| *joint != Joint::UnionAll) {
        return Err("only UNION ALL can be put together over several partitions; say it so, and SELECT DISTINCT from each".into());
    }
    if !query.order.is_empty() {
        return Err("ORDER BY behind UNION ALL cannot be put together over several partitions; order the rows of each SELECT".into());
    }
    for select in &query.selects {
        let aggregates = select
            .items
            .iter()
            .any(|item| has_aggregate(&item.expression));
        let plain = !aggregates
            && !select.distinct
            && select.group.is_empty()
            && select.limit.is_none()
            && select.having.is_none();
        if !plain {
            return Err("a part of UNION ALL with DISTINCT, GROUP BY, HAVING, LIMIT or an aggregate cannot be put together over several partitions; ask for each part alone".into());
        }
    }
    let mut edits = Vec::new();
    let (offset, limit) = bounds(query.limit.as_ref(), true, &mut edits)?;
    Ok(Recipe {
        edits,
        hidden: 0,
        keys: Vec::new(),
        distinct: false,
        grouping: None,
        offset,
        limit,
        same_moment: query.selects.iter().any(asks_the_time),
        names: None,
    })
}

/// Numbers of a LIMIT. Each partition is asked for all that may be needed of it, or for everything.
fn bounds(
    limit: Option<&Limit<'_>>,
    pushed: bool,
    edits: &mut Vec<Edit>,
) -> Result<(u64, Option<u64>), String> {
    let Some(limit) = limit else {
        return Ok((0, None));
    };
    let number = |expression: &Expression<'_>| match &expression.node {
        Node::Literal(Literal::Number(digits, false)) => {
            std::str::from_utf8(digits).ok()?.parse::<u64>().ok()
        }
        _ => None,
    };
    let words = "LIMIT over several partitions needs numbers that are written out";
    let rows = number(&limit.rows).ok_or(words)?;
    let offset = limit.offset.as_ref().map_or(Some(0), number).ok_or(words)?;
    let with = match pushed {
        true => format!("LIMIT {}", rows.saturating_add(offset)),
        false => String::new(),
    };
    edits.push(Edit {
        at: limit.at.clone(),
        with: vec![Piece::Text(with)],
    });
    Ok((offset, Some(rows)))
}

/// Whether it makes one row of many. ANY_VALUE alone does not.
fn makes_groups(expression: &Expression<'_>) -> bool {
    let mut found = false;
    walk(expression, &mut |inner| {
        found |= matches!(&inner.node, Node::Call(call) if is_aggregate(&call.name.text) && !call.name.is(b"ANY_VALUE"));
    });
    found
}

fn has_aggregate(expression: &Expression<'_>) -> bool {
    let mut found = false;
    walk(expression, &mut |inner| {
        found |= matches!(&inner.node, Node::Call(call) if is_aggregate(&call.name.text));
    });
    found
}

const MOMENTS: &[&str] = &[
    "NOW",
    "CURDATE",
    "CURTIME",
    "CURRENT_DATE",
    "CURRENT_TIME",
    "CURRENT_TIMESTAMP",
    "LOCALTIME",
    "LOCALTIMESTAMP",
    "UNIX_TIMESTAMP",
    "UTC_DATE",
    "UTC_TIME",
    "UTC_TIMESTAMP",
];
const CHANCES: &[&str] = &["RAND", "UUID", "UUID_SHORT", "RANDOM_BYTES", "SLEEP"];

fn calls_any(expression: &Expression<'_>, names: &[&str]) -> bool {
    let among = |name: &[u8]| {
        names
            .iter()
            .any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
    };
    let mut found = false;
    walk(expression, &mut |inner| match &inner.node {
        Node::Call(call) => found |= among(&call.name.text),
        Node::Column(parts) if parts.len() == 1 => found |= among(&parts[0].text),
        _ => {}
    });
    found
}

fn asks_the_time(select: &Select<'_>) -> bool {
    expressions(select).any(|expression| calls_any(expression, MOMENTS))
}

/// `ORDER BY NULL`: any order will do.
const fn is_nothing(order: &Order<'_>) -> bool {
    matches!(order.expression.node, Node::Literal(Literal::Null))
}

/// A SELECT that is being read.
pub(crate) struct Planner<'t, 'a> {
    text: &'t [u8],
    pub(crate) select: &'t Select<'a>,
    locks: bool,
    hidden: Vec<Vec<Piece>>,
    edits: Vec<Edit>,
    /// Places of keys that are ordered by their numbers.
    numbered: &'t [Range<usize>],
}

impl<'t, 'a> Planner<'t, 'a> {
    fn select(mut self) -> Result<Recipe, String> {
        let select = self.select;
        let mut parts = select.items.iter().map(|item| &item.expression);
        let aggregates =
            parts.any(makes_groups) || select.having.as_ref().is_some_and(makes_groups);
        let grouped = aggregates || !select.group.is_empty();
        if select.having.is_some() && !grouped {
            return Err("HAVING without GROUP BY cannot be put together over several partitions; say it in WHERE".into());
        }
        if let Some(key) = select
            .order
            .iter()
            .find(|key| calls_any(&key.expression, CHANCES))
        {
            return Err(format!(
                "ORDER BY {} is another on each partition; order in the application",
                self.said(&key.expression.at)
            ));
        }
        let same_moment = asks_the_time(select);
        if self.locks && (select.distinct || !select.group.is_empty()) {
            return Err("FOR UPDATE or FOR SHARE beside DISTINCT or groups cannot be put together over several partitions; lock the rows with a statement of its own".into());
        }
        let mut recipe = match (grouped, select.distinct) {
            (true, true) => return Err("DISTINCT beside aggregates or GROUP BY cannot be put together over several partitions; leave DISTINCT out".into()),
            (true, false) => self.grouped()?,
            (false, distinct) => self.rows(distinct)?,
        };
        // Keys of the order stand before it, so that a LIMIT stays behind.
        let last = select.items.last().map_or(0, |item| item.at.end);
        let mut with = Vec::new();
        for pieces in &self.hidden {
            with.push(Piece::Text(", ".into()));
            with.extend(pieces.iter().cloned());
        }
        if !with.is_empty() {
            self.edits.push(Edit {
                at: last..last,
                with,
            });
        }
        recipe.hidden = self.hidden.len();
        recipe.edits = self.edits;
        recipe.same_moment = same_moment;
        Ok(recipe)
    }

    /// Rows as they are, in order.
    fn rows(&mut self, distinct: bool) -> Result<Recipe, String> {
        let select = self.select;
        let mut keys = Vec::new();
        let mut keyed = vec![false; select.items.len()];
        for order in select.order.iter().filter(|order| !is_nothing(order)) {
            let (source, item, _) = self.resolved(&order.expression)?;
            match item {
                Some(item) => keyed[item] = true,
                None if distinct => {
                    return Err(format!(
                        "SELECT DISTINCT cannot be in the order of {}, which it does not select; select it as well",
                        self.said(&source)
                    ));
                }
                None => {}
            }
            keys.push(self.key(&source, item, order.descending));
        }
        if distinct {
            self.distinct(&mut keys, &keyed)?;
        }
        let (offset, limit) = bounds(select.limit.as_ref(), true, &mut self.edits)?;
        Ok(Recipe {
            edits: Vec::new(),
            hidden: 0,
            keys,
            distinct,
            grouping: None,
            offset,
            limit,
            same_moment: false,
            names: None,
        })
    }

    /// Rows that are equal come one behind another if all columns are keys.
    fn distinct(&mut self, keys: &mut Vec<Key>, keyed: &[bool]) -> Result<(), String> {
        let select = self.select;
        let mut more = Vec::new();
        for (at, item) in select.items.iter().enumerate() {
            if matches!(item.expression.node, Node::Star(_)) {
                return Err("SELECT DISTINCT * cannot be put together over several partitions; name the columns".into());
            }
            if !keyed[at] {
                keys.push(self.key(&item.expression.at, Some(at), false));
                more.push((item.expression.at.clone(), Some(at), false));
            }
        }
        self.append_order(&more, !select.order.is_empty());
        Ok(())
    }

    /// More keys at the end of ORDER BY, which is there or not.
    fn append_order(&mut self, more: &[Grouped], is_there: bool) {
        if more.is_empty() {
            return;
        }
        let mut with = vec![Piece::Text(if is_there {
            ", ".into()
        } else {
            " ORDER BY ".into()
        })];
        for (number, (source, item, descending)) in more.iter().enumerate() {
            if number > 0 {
                with.push(Piece::Text(", ".into()));
            }
            with.push(match item {
                Some(item) => Piece::Text((item + 1).to_string()),
                None => Piece::Copy(source.clone()),
            });
            with.push(Piece::Text(if *descending {
                " DESC ".into()
            } else {
                " ".into()
            }));
        }
        let select = self.select;
        let end = match (is_there, &select.limit) {
            (true, _) => select.order_at.end,
            (false, Some(limit)) => limit.at.start,
            (false, None) => select.at.end,
        };
        self.edits.push(Edit { at: end..end, with });
    }

    /// GROUP BY, or aggregates over everything.
    fn grouped(&mut self) -> Result<Recipe, String> {
        let select = self.select;
        let mut sources = Vec::new();
        for group in &select.group {
            sources.push(self.resolved(&group.expression)?);
        }
        let mut aggregates = Vec::new();
        for (at, item) in select.items.iter().enumerate() {
            if let Some(aggregate) = self.aggregate(item, at)? {
                aggregates.push(aggregate);
            }
        }
        let having = match &select.having {
            Some(condition) => {
                self.edits.push(Edit {
                    at: select.having_at.clone(),
                    with: Vec::new(),
                });
                Some(Having::read(self, condition, &mut aggregates)?)
            }
            None => None,
        };
        let sort = self.sort(&mut sources, &aggregates)?;
        let keys: Vec<Key> = sources
            .iter()
            .map(|(source, item, descending)| self.group_key(source, *item, *descending))
            .collect();
        if !select.order.is_empty() {
            self.edits.push(Edit {
                at: select.order_at.clone(),
                with: Vec::new(),
            });
        }
        self.append_order(&sources, false);
        let (offset, limit) = bounds(select.limit.as_ref(), false, &mut self.edits)?;
        Ok(Recipe {
            edits: Vec::new(),
            hidden: 0,
            grouping: Some(Grouping {
                keys: keys.len(),
                aggregates,
                having,
                sort,
            }),
            keys,
            distinct: false,
            offset,
            limit,
            same_moment: false,
            names: None,
        })
    }

    /// The order in the end. Keys of groups come first where that is all that is asked; then no row
    /// has to wait.
    fn sort(
        &mut self,
        sources: &mut Vec<Grouped>,
        aggregates: &[Aggregate],
    ) -> Result<Vec<Key>, String> {
        let select = self.select;
        let mut wanted = Vec::new();
        for order in select.order.iter().filter(|order| !is_nothing(order)) {
            let (source, item, _) = self.resolved(&order.expression)?;
            wanted.push((source, item, order.descending));
        }
        let position = |(source, item, _): &Grouped| {
            sources
                .iter()
                .position(|(own, of, _)| own == source || of.is_some() && of == item)
        };
        let positions: Option<Vec<_>> = wanted.iter().map(position).collect();
        if let Some(positions) = positions {
            let mut ordered: Vec<Grouped> = Vec::new();
            for (at, (.., descending)) in positions.iter().zip(&wanted) {
                let (source, item, _) = sources[*at].clone();
                if !ordered.iter().any(|(known, ..)| *known == source) {
                    ordered.push((source, item, *descending));
                }
            }
            let rest = sources
                .iter()
                .filter(|(source, ..)| !ordered.iter().any(|(known, ..)| known == source));
            let rest: Vec<_> = rest.cloned().collect();
            ordered.extend(rest);
            *sources = ordered;
            return Ok(Vec::new());
        }
        let mut keys = Vec::new();
        for (source, item, descending) in wanted {
            let computed = aggregates
                .iter()
                .find(|aggregate| item.is_some_and(|item| aggregate.out == Slot::Item(item)));
            keys.push(match computed {
                Some(aggregate) => aggregate.key(descending),
                None if item.is_none() && self.holds_aggregate(&source) => {
                    return Err(format!("the order of groups by {} cannot be put together over several partitions; select it, and order by its name", self.said(&source)));
                }
                None => self.group_key(&source, item, descending),
            });
        }
        Ok(keys)
    }

    /// Whether ORDER BY has an aggregate at this place.
    fn holds_aggregate(&self, source: &Range<usize>) -> bool {
        let order = self
            .select
            .order
            .iter()
            .find(|key| key.expression.at == *source);
        order.is_some_and(|key| has_aggregate(&key.expression))
    }

    /// Returns what is computed for an item; `None` for what is a key of the group, or follows from
    /// it.
    fn aggregate(&mut self, item: &Item<'a>, at: usize) -> Result<Option<Aggregate>, String> {
        if let Node::Star(_) = item.expression.node {
            return Err("SELECT * beside aggregates cannot be put together over several partitions; name the columns".into());
        }
        let out = Slot::Item(at);
        match called(&item.expression) {
            Some(call) => self.computed(call, &item.expression.at, out).map(Some),
            None if has_aggregate(&item.expression) => Err(format!(
                "{} computes with aggregates, which cannot be put together over several partitions; select each aggregate alone, and compute in the application",
                self.said(&item.expression.at)
            )),
            None => Ok(None),
        }
    }

    /// An aggregate, with what it needs besides.
    pub(crate) fn computed(
        &mut self,
        call: &sql::tree::Call<'_>,
        at: &Range<usize>,
        out: Slot,
    ) -> Result<Aggregate, String> {
        let name = String::from_utf8_lossy(&call.name.text).to_ascii_uppercase();
        let is_extreme = matches!(name.as_str(), "MIN" | "MAX");
        if call.distinct && !is_extreme {
            return Err(format!(
                "{} cannot be put together over several partitions; SELECT DISTINCT the values, and count or add them in the application",
                self.said(at)
            ));
        }
        let argument = call.arguments.first().map(|argument| argument.at.clone());
        let of = |function: &str| {
            let argument = argument.clone().unwrap_or_else(|| at.clone());
            vec![
                Piece::Text(format!("{function}(")),
                Piece::Copy(argument),
                Piece::Text(")".into()),
            ]
        };
        let does = match (name.as_str(), call.arguments.len()) {
            ("COUNT", 1) => Does::Count,
            ("SUM", 1) => Does::Sum,
            ("MIN" | "MAX", 1) => {
                let item = match out {
                    Slot::Item(item) => Some(item),
                    Slot::Hidden(_) => None,
                };
                let key = self.key(at, item, false);
                Does::Extreme {
                    weight: key.weight,
                    pad: key.pad,
                    greatest: name == "MAX",
                }
            }
            ("AVG", 1) => Does::Average {
                sum: self.hide(of("SUM")),
                count: self.hide(of("COUNT")),
            },
            ("STD" | "STDDEV" | "STDDEV_POP" | "STDDEV_SAMP" | "VARIANCE" | "VAR_POP" | "VAR_SAMP", 1) => Does::Spread {
                count: self.hide(of("COUNT")),
                mean: self.hide([of("AVG"), vec![Piece::Text("+0e0".into())]].concat()),
                variance: self.hide(of("VAR_POP")),
                sample: name.ends_with("SAMP"),
                root: name.starts_with("STD"),
            },
            ("BIT_AND", 1) => Does::And,
            ("BIT_OR", 1) => Does::Or,
            ("BIT_XOR", 1) => Does::Xor,
            ("ANY_VALUE", 1) => Does::First,
            ("GROUP_CONCAT", 1..) if call.order.is_empty() && !call.has_words => Does::Concat {
                separator: separator(call.separator)?,
                bytes_max: self.hide(vec![Piece::Text("@@group_concat_max_len".into())]),
            },
            ("GROUP_CONCAT", _) => return Err("GROUP_CONCAT with ORDER BY or LIMIT cannot be put together over several partitions; select the rows in order, and join them in the application".into()),
            _ => return Err(format!("{} cannot be put together over several partitions; select the rows, and compute in the application", self.said(at))),
        };
        Ok(Aggregate { out, does })
    }

    /// A column more, which no client gets.
    pub(crate) fn hide(&mut self, pieces: Vec<Piece>) -> Slot {
        if let Some(known) = self.hidden.iter().position(|known| *known == pieces) {
            return Slot::Hidden(known);
        }
        self.hidden.push(pieces);
        Slot::Hidden(self.hidden.len() - 1)
    }

    /// A key: its value, and its weights in case that it is a string. Whether blanks at its end count
    /// is asked of its collation.
    pub(crate) fn key(
        &mut self,
        source: &Range<usize>,
        item: Option<usize>,
        descending: bool,
    ) -> Key {
        self.weighed(source, item, descending, ["", ""])
    }

    /// A key of a group: servers want to see that it has one of its weights.
    fn group_key(&mut self, source: &Range<usize>, item: Option<usize>, descending: bool) -> Key {
        self.weighed(source, item, descending, ["MIN(", ")"])
    }

    fn weighed(
        &mut self,
        source: &Range<usize>,
        item: Option<usize>,
        descending: bool,
        [before, behind]: [&str; 2],
    ) -> Key {
        let copy = || Piece::Copy(source.clone());
        let text = |text: &str| Piece::Text(text.into());
        if self.numbered.contains(source) {
            let number = [
                text(before),
                text("CAST("),
                copy(),
                text(" AS UNSIGNED)"),
                text(behind),
            ];
            let number = self.hide(number.into());
            return Key {
                value: number,
                weight: number,
                pad: number,
                descending,
                source: Some(source.clone()),
            };
        }
        let value = match item {
            Some(item) if !self.has_star() => Slot::Item(item),
            _ => self.hide(vec![copy()]),
        };
        let weight = self.hide(vec![
            text(before),
            text("WEIGHT_STRING("),
            copy(),
            text(")"),
            text(behind),
        ]);
        let pad = self.hide(vec![
            text(before),
            text("IF(CONCAT(LEFT("),
            copy(),
            text(", 0), ' ') = LEFT("),
            copy(),
            text(", 0), WEIGHT_STRING(CONCAT(LEFT("),
            copy(),
            text(", 0), ' ')), NULL)"),
            text(behind),
        ]);
        Key {
            value,
            weight,
            pad,
            descending,
            source: Some(source.clone()),
        }
    }

    fn has_star(&self) -> bool {
        self.select
            .items
            .iter()
            .any(|item| matches!(item.expression.node, Node::Star(_)))
    }

    /// Returns what a key of ORDER BY or GROUP BY means: its text, and the item that it is.
    fn resolved(&self, key: &Expression<'a>) -> Result<Grouped, String> {
        let items = &self.select.items;
        if let Node::Literal(Literal::Number(digits, false)) = &key.node {
            let position = std::str::from_utf8(digits)
                .ok()
                .and_then(|digits| digits.parse::<usize>().ok());
            let at = position.and_then(|position| position.checked_sub(1));
            let item = at.and_then(|at| items.get(at)).filter(|_| !self.has_star());
            return match (at, item) {
                (Some(at), Some(item)) => Ok((item.expression.at.clone(), Some(at), false)),
                _ => Err(format!(
                    "the position {} says no column for certain; name the column",
                    self.said(&key.at)
                )),
            };
        }
        let bare = match &key.node {
            Node::Column(parts) if parts.len() == 1 => parts.first(),
            _ => None,
        };
        let same_text = |item: &Item<'_>| {
            self.text.get(item.expression.at.clone()) == self.text.get(key.at.clone())
        };
        let named = |item: &Item<'_>| {
            let alias = item.alias.as_ref();
            bare.is_some_and(|bare| alias.is_some_and(|alias| alias.is(&bare.text)))
        };
        let found = items
            .iter()
            .position(named)
            .or_else(|| items.iter().position(same_text));
        if let Some(at) = found {
            return Ok((items[at].expression.at.clone(), Some(at), false));
        }
        let mut hidden = None;
        walk(key, &mut |inner| {
            if let Node::Column(parts) = &inner.node
                && let [name] = &parts[..]
                && items.iter().any(|item| {
                    item.alias
                        .as_ref()
                        .is_some_and(|alias| alias.is(&name.text))
                })
            {
                hidden = Some(String::from_utf8_lossy(&name.text).into_owned());
            }
        });
        match hidden {
            Some(name) => Err(format!(
                "{} computes with the name {name} of what is selected; order or group by the name alone",
                self.said(&key.at)
            )),
            None => Ok((key.at.clone(), None, false)),
        }
    }

    pub(crate) fn said(&self, at: &Range<usize>) -> String {
        let text = self.text.get(at.clone()).unwrap_or_default();
        String::from_utf8_lossy(text).chars().take(80).collect()
    }

    /// The item of this name or text.
    pub(crate) fn item_of(&self, expression: &Expression<'a>) -> Option<usize> {
        self.resolved(expression).ok().and_then(|(_, item, _)| item)
    }
}

/// A key of GROUP BY or ORDER BY: its text, the item that it is, DESC.
type Grouped = (Range<usize>, Option<usize>, bool);

/// The separator of GROUP_CONCAT, a comma if none is given.
fn separator(written: Option<&[u8]>) -> Result<Vec<u8>, String> {
    let Some(written) = written else {
        return Ok(b",".to_vec());
    };
    let said = sql::dynamic::string(written, true)
        .filter(|said| !written.contains(&b'\\') && said.is_ascii());
    let said = said.ok_or("the SEPARATOR of GROUP_CONCAT over several partitions must be plain ASCII without a backslash")?;
    Ok(said.into_owned())
}

fn keys(number: usize) -> String {
    match number {
        1 => "1 key".into(),
        number => format!("{number} keys"),
    }
}

/// In words, for EXPLAIN ROUTE and tests.
impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        match &self.grouping {
            Some(grouping) if grouping.keys == 0 => parts.push("all rows become one".to_owned()),
            Some(grouping) => parts.push(format!(
                "rows of one group become one, by {}",
                keys(grouping.keys)
            )),
            None if self.distinct => parts.push("merged, equal rows once".into()),
            None if self.keys.is_empty() => parts.push("one behind another".into()),
            None => parts.push(format!("merged by {}", keys(self.keys.len()))),
        }
        if let Some(grouping) = &self.grouping {
            if grouping.having.is_some() {
                parts.push("HAVING in the end".into());
            }
            if !grouping.sort.is_empty() {
                parts.push(format!("sorted in memory by {}", keys(grouping.sort.len())));
            }
        }
        if self.offset > 0 {
            parts.push(format!("{} rows left out", self.offset));
        }
        if let Some(limit) = self.limit {
            parts.push(format!("{limit} rows at most"));
        }
        if self.same_moment {
            parts.push("with the same time everywhere".into());
        }
        f.write_str(&parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_has_the_name_for_applications() {
        let names = Names {
            physical: b"users_default"[..].into(),
            logical: b"users"[..].into(),
        };
        let said = |cells: &[&str]| {
            let mut row: Cells = cells
                .iter()
                .map(|cell| Some(cell.as_bytes().to_vec()))
                .collect();
            names.say(&mut row);
            let text = |cell: Option<Vec<u8>>| {
                String::from_utf8_lossy(&cell.unwrap_or_default()).into_owned()
            };
            row.into_iter().map(text).collect::<Vec<_>>()
        };
        let definition = "CREATE TABLE `users_default` (\n `users_default` INT)";
        let wanted = ["users", "CREATE TABLE `users` (\n `users_default` INT)"];
        assert_eq!(said(&["users_default", definition]), wanted);
        assert_eq!(
            said(&["users_default", "0", "PRIMARY"]),
            ["users", "0", "PRIMARY"]
        );
        assert_eq!(said(&["name", "users_default"]), ["name", "users_default"]);
    }
}
