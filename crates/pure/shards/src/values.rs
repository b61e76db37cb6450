//! Queries inside of a change that may be read before it, so that their values stand in their place.

use crate::facts::Facts;
use crate::scopes::every;
use crate::spread::CHANCES;
use sql::tree::{Expression, Joined, Node, Order, Query, Source, Statement, tree, walk};
use std::ops::Range;

/// Queries of one statement that are read first.
const INNER_MAX: usize = 16;

/// A query inside of a change, which names nothing around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inner {
    /// Place in the text, without the parentheses.
    pub at: Range<usize>,
    /// Meaning of its rows.
    pub means: Means,
}

/// Meaning of a query's rows for the statement around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Means {
    /// IN: all of them.
    List,
    /// A value: there is one row at most.
    One,
    /// EXISTS.
    Exists,
}

/// The queries inside of an UPDATE or DELETE; `None` where there are none, or one whose rows cannot stand
/// in its place. Whether one names columns of the tables around it only a server can say.
#[must_use]
pub fn inner_queries(text: &[u8], facts: &Facts<'_>) -> Option<Vec<Inner>> {
    let tree = tree(text, facts.lexing, facts.quotes)?;
    let mut queries = Vec::new();
    match &tree.statement {
        Statement::Update(update) => {
            has_tables_only(&update.tables)?;
            let assigned = update.assigned.iter().map(|(_, value)| value);
            let rest = of_rows(&update.tables, &update.condition, &update.order);
            assigned
                .chain(rest)
                .for_each(|one| outermost(one, &mut queries));
        }
        // Its rows are no text where it is prepared.
        Statement::Delete(delete) if delete.returning.is_empty() => {
            has_tables_only(&delete.tables)?;
            let all = of_rows(&delete.tables, &delete.condition, &delete.order);
            all.for_each(|one| outermost(one, &mut queries));
        }
        _ => return None,
    }
    // Of chance there is another value for each row.
    let mut by_chance = false;
    every(&tree.statement, &mut |expression| {
        if let Node::Call(call) = &expression.node {
            by_chance |= CHANCES.iter().any(|name| call.name.is(name.as_bytes()));
        }
    });
    (!by_chance && (1..=INNER_MAX).contains(&queries.len())).then_some(())?;
    let inner = queries.into_iter().map(|query| {
        let means = means(text.get(..query.at.start)?, facts)?;
        Some(Inner {
            at: query.at.clone(),
            means,
        })
    });
    inner.collect()
}

/// Expressions that say which rows are meant, and in which order.
fn of_rows<'t, 'a>(
    tables: &'t [Joined<'a>],
    condition: &'t Option<Expression<'a>>,
    order: &'t [Order<'a>],
) -> impl Iterator<Item = &'t Expression<'a>> {
    let ons = tables.iter().filter_map(|joined| joined.on.as_ref());
    let keys = order.iter().map(|key| &key.expression);
    condition.iter().chain(ons).chain(keys)
}

fn has_tables_only(tables: &[Joined<'_>]) -> Option<()> {
    let is_table = |joined: &Joined<'_>| matches!(joined.source, Source::Table(_));
    tables.iter().all(is_table).then_some(())
}

fn outermost<'t, 'a>(expression: &'t Expression<'a>, queries: &mut Vec<&'t Query<'a>>) {
    walk(expression, &mut |inner| {
        if let Node::Query(query) = &inner.node {
            queries.push(query);
        }
    });
}

/// Meaning of a query behind this text.
fn means(before: &[u8], facts: &Facts<'_>) -> Option<Means> {
    let words = facts.lexing.words(before);
    let last = words.filter(|word| !word.is_sign(b'(')).last()?;
    if last.is_any(&["ANY", "SOME", "ALL"]) {
        return None;
    }
    Some(match last {
        _ if last.is("IN") => Means::List,
        _ if last.is("EXISTS") => Means::Exists,
        _ => Means::One,
    })
}
