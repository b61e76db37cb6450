//! What must be changed in a statement's text so that a partition's server understands it and names
//! of results stay the logical ones.

use crate::map::Home;
use crate::scopes::every_that_sees;
use sql::tree::{Joined, Name, Node, Source, Statement, TableName};
use std::ops::Range;

/// A piece of a text, and what takes its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// Which piece.
    pub at: Range<usize>,
    /// Bytes that take the place of the piece.
    pub with: Vec<u8>,
}

impl Cut {
    pub(crate) fn new(at: Range<usize>, with: impl Into<Vec<u8>>) -> Self {
        Self {
            at,
            with: with.into(),
        }
    }
}

/// A text with its cuts done; of two that meet, the second is left out.
#[must_use]
pub fn cut(text: &[u8], cuts: &[Cut]) -> Vec<u8> {
    let mut cuts: Vec<&Cut> = cuts.iter().collect();
    cuts.sort_by_key(|cut| cut.at.start);
    let mut out = Vec::with_capacity(text.len() + 32);
    let mut at = 0;
    for cut in cuts {
        if cut.at.start < at {
            continue;
        }
        if let Some(before) = text.get(at..cut.at.start) {
            out.extend_from_slice(before);
            out.extend_from_slice(&cut.with);
            at = cut.at.end;
        }
    }
    out.extend_from_slice(text.get(at..).unwrap_or_default());
    out
}

pub(crate) fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// The name of a home as a statement says it.
pub(crate) fn physical(home: &Home, name: &TableName<'_>) -> String {
    let schema = name.schema.as_ref();
    let schema = schema.map(|schema| String::from_utf8_lossy(&schema.text));
    physical_of(home, schema.as_deref())
}

/// The name of a home in a statement that says this schema, or none.
pub(crate) fn physical_of(home: &Home, said: Option<&str>) -> String {
    let table = quoted(&home.table);
    match (&*home.schema, said) {
        ("", None) => table,
        ("", Some(schema)) | (schema, _) => format!("{}.{table}", quoted(schema)),
    }
}

/// Whether a home has the name that the statement says.
fn is_as_written(home: &Home, name: &TableName<'_>) -> bool {
    home.table.as_bytes() == &*name.name.text && home.schema.is_empty()
}

/// The cuts that make a statement name a home instead of a table.
pub(crate) fn renamed<'a>(
    statement: &Statement<'a>,
    table: &TableName<'a>,
    home: &Home,
) -> Vec<Cut> {
    if is_as_written(home, table) {
        return Vec::new();
    }
    if let (Statement::Describe(_), Some(schema)) = (statement, &table.alias) {
        // The schema stands behind the table, and servers would take it.
        let said = String::from_utf8_lossy(&schema.text);
        let at = table.name.at.start..schema.at.end;
        return vec![Cut::new(at, physical_of(home, Some(&said)))];
    }
    let physical = physical(home, table);
    let mut cuts = Vec::new();
    let takes_alias = match statement {
        Statement::Query(_) | Statement::Update(_) => true,
        // Not every server knows an alias in a DELETE from one table.
        Statement::Delete(delete) => {
            let is_it = |joined: &Joined<'_>| matches!(&joined.source, Source::Table(own) if own.at() == table.at());
            !delete.targets.is_empty() || !delete.tables.iter().any(is_it)
        }
        Statement::Insert(insert) => insert.table.at() != table.at(),
        Statement::Describe(_) => false,
    };
    if !takes_alias {
        cuts.push(Cut::new(table.at(), physical.clone()));
        qualifiers((statement, true), table, &mut |parts, qualifiers| {
            let start = parts[0].at.start;
            let end = parts[qualifiers - 1].at.end;
            cuts.push(Cut::new(start..end, physical.clone()));
        });
        return cuts;
    }
    let with = match &table.alias {
        Some(_) => physical,
        None => format!(
            "{physical} AS {}",
            quoted(&String::from_utf8_lossy(&table.name.text))
        ),
    };
    cuts.push(Cut::new(table.at(), with));
    if let Statement::Delete(delete) = statement {
        for target in &delete.targets {
            if let Some(schema) = &target.schema
                && target.name.is(table.called())
            {
                cuts.push(Cut::new(schema.at.start..target.name.at.start, ""));
            }
        }
    }
    // The schema of a column would have to be the partition's.
    qualifiers((statement, false), table, &mut |parts, qualifiers| {
        if let [schema, table, ..] = parts
            && qualifiers == 2
        {
            cuts.push(Cut::new(schema.at.start..table.at.start, ""));
        }
    });
    cuts
}

/// Characters that an alias may have.
const ALIAS_MAX: usize = 255;

/// Aliases for what a SELECT or RETURNING computes without one: its name in the result is its text, which the cuts
/// would change.
pub(crate) fn named_as_written(statement: &Statement<'_>, text: &[u8], cuts: &[Cut]) -> Vec<Cut> {
    let items = match statement {
        Statement::Query(query) => query.selects.first().map_or(&[][..], |first| &first.items),
        Statement::Insert(insert) => &insert.returning,
        Statement::Delete(delete) => &delete.returning,
        Statement::Update(_) | Statement::Describe(_) => &[],
    };
    let is_cut = |at: &Range<usize>| {
        let mut inside = cuts.iter();
        inside.any(|cut| at.start <= cut.at.start && cut.at.end <= at.end)
    };
    let mut names = Vec::new();
    for item in items {
        let is_name = matches!(item.expression.node, Node::Column(_) | Node::Star(_));
        if is_name || item.alias.is_some() || !is_cut(&item.at) {
            continue;
        }
        let written = text.get(item.at.clone());
        if let Some(written) = written.and_then(|written| std::str::from_utf8(written).ok())
            && written.chars().count() <= ALIAS_MAX
        {
            let end = item.at.end;
            names.push(Cut::new(end..end, format!(" AS {}", quoted(written))));
        }
    }
    names
}

/// The cuts that make the RETURNING of an INSERT name a home.
pub(crate) fn returned<'a>(
    statement: &Statement<'a>,
    table: &TableName<'a>,
    (home, text): (&Home, &[u8]),
) -> Vec<Cut> {
    let Statement::Insert(insert) = statement else {
        return Vec::new();
    };
    let Some(first) = insert.returning.first() else {
        return Vec::new();
    };
    let mut cuts = renamed(statement, table, home);
    cuts.retain(|cut| cut.at.start >= first.at.start);
    cuts.extend(named_as_written(statement, text, &cuts));
    cuts
}

/// Calls `each` with the names of every column that is qualified by this table, and how many of them
/// are no column. `is_target`: the table is the statement's own, and what queries inside call so is
/// another one.
fn qualifiers<'t, 'a>(
    (statement, is_target): (&'t Statement<'a>, bool),
    table: &TableName<'_>,
    each: &mut dyn FnMut(&[Name<'a>], usize),
) {
    let called = table.called();
    let mut check = |parts: &[Name<'a>], qualifiers: usize| {
        if qualifiers > 0 && parts[qualifiers - 1].is(called) {
            each(parts, qualifiers);
        }
    };
    let sees = is_target.then_some(called);
    every_that_sees(statement, sees, &mut |expression| match &expression.node {
        Node::Column(parts) => check(parts, parts.len() - 1),
        Node::Star(parts) => check(parts, parts.len()),
        _ => {}
    });
    let assigned = match statement {
        Statement::Update(update) => &update.assigned,
        Statement::Insert(insert) => &insert.duplicate,
        _ => return,
    };
    assigned
        .iter()
        .for_each(|(column, _)| check(column, column.len() - 1));
}
