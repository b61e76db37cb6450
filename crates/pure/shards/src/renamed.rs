//! RENAME TABLE, and ALTER TABLE with nothing but RENAME, of sharded tables: the map calls them by other
//! names, and their tables on servers keep theirs.
//!
//! docs/decisions/0068-a-renamed-table-is-renamed-in-the-map.md

use crate::cuts::{Cut, physical_of, quoted};
use crate::definitions::name;
use crate::facts::Facts;
use crate::map::{Map, Table};
use crate::routed::{Leg, Routed, Spread};
use sql::words::Token;
use std::iter::Peekable;

/// A table that gets another name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rename {
    /// Its schema, as the map has it; empty for any.
    pub schema: String,
    /// Its name so far.
    pub from: String,
    /// Its new name.
    pub to: String,
    /// The new name as the statement says it, quoted, with the schema if there is one.
    pub said: String,
}

/// A name in a statement.
#[derive(Clone)]
struct Said {
    /// The session's own, if none is said.
    schema: String,
    /// Whether the schema is said.
    has_schema: bool,
    name: String,
}

impl Said {
    fn is(&self, other: &Self) -> bool {
        self.schema.eq_ignore_ascii_case(&other.schema)
            && self.name.eq_ignore_ascii_case(&other.name)
    }

    fn shown(&self) -> String {
        match self.has_schema {
            true => format!("{}.{}", quoted(&self.schema), quoted(&self.name)),
            false => quoted(&self.name),
        }
    }
}

/// Names that tables have while a statement goes from one to the next.
struct Names<'m> {
    map: &'m Map,
    /// Meaning of names from here on; the last counts.
    changed: Vec<(Said, Option<u32>)>,
}

impl Names<'_> {
    /// Number of the sharded table of a name.
    fn table(&self, said: &Said) -> Option<u32> {
        let mut changed = self.changed.iter().rev();
        match changed.find(|(name, _)| name.is(said)) {
            Some((_, table)) => *table,
            None => {
                let found = self.map.table(said.schema.as_bytes(), said.name.as_bytes());
                found.map(|table| table.number)
            }
        }
    }
}

/// Where a statement goes that gives a sharded table another name; `None` for anything else.
pub(crate) fn route(map: &Map, text: &[u8], facts: &Facts<'_>) -> Option<Routed> {
    // What a server makes of an executable comment is not known.
    if text
        .windows(3)
        .any(|three| three == b"/*!" || three == b"/*M")
    {
        return None;
    }
    let mut words = facts.lexing.words(text).peekable();
    let first = words.next()?;
    words.next_if(|word| word.is_any(&["TABLE", "TABLES"]))?;
    let pairs = match () {
        () if first.is("RENAME") => listed(map, &mut words, facts)?,
        () if first.is("ALTER") => {
            let from = said(map, &mut words, facts)?;
            words.next_if(|word| word.is("RENAME"))?;
            words.next_if(|word| word.is_any(&["TO", "AS"]) || word.is_sign(b'='));
            vec![(from, said(map, &mut words, facts)?)]
        }
        () => return None,
    };
    words.next_if(|word| word.is_sign(b';'));
    if words.next().is_some() {
        return None;
    }
    let mut names = Names {
        map,
        changed: Vec::new(),
    };
    match renames(&mut names, &pairs) {
        Ok(renamed) => routed(map, &renamed, text),
        Err((table, words)) => Some(Routed {
            table,
            writes: true,
            ..Routed::refused(words)
        }),
    }
}

/// `a TO b, c TO d`.
fn listed<'t>(
    map: &Map,
    words: &mut Peekable<impl Iterator<Item = Token<'t>>>,
    facts: &Facts<'_>,
) -> Option<Vec<(Said, Said)>> {
    let mut pairs = Vec::new();
    loop {
        let from = said(map, words, facts)?;
        words.next_if(|word| word.is("TO"))?;
        pairs.push((from, said(map, words, facts)?));
        if words.next_if(|word| word.is_sign(b',')).is_none() {
            return Some(pairs);
        }
    }
}

fn said<'t>(
    map: &Map,
    words: &mut Peekable<impl Iterator<Item = Token<'t>>>,
    facts: &Facts<'_>,
) -> Option<Said> {
    let named = name(map, words, facts)?;
    Some(Said {
        has_schema: named.schema.is_some(),
        schema: named.schema.unwrap_or_else(|| facts.schema.to_owned()),
        name: named.name,
    })
}

/// The sharded tables that get another name, with the last that each gets.
///
/// # Errors
/// A sentence, and the number of the table that it is about.
fn renames(
    names: &mut Names<'_>,
    pairs: &[(Said, Said)],
) -> Result<Vec<(u32, Said)>, (u32, String)> {
    let mut renamed: Vec<(u32, Said)> = Vec::new();
    let mut is_mixed = false;
    for (from, to) in pairs {
        let (table, taken) = (names.table(from), names.table(to));
        if let Some(other) = taken.filter(|other| table != Some(*other)) {
            let words = format!(
                "{} is sharded, and another table would get its name; give that one another name first",
                to.name
            );
            return Err((other, words));
        }
        let Some(table) = table else {
            is_mixed = true;
            continue;
        };
        if !from.schema.eq_ignore_ascii_case(&to.schema) {
            let words = format!(
                "{} is sharded, and stays in its schema; leave the schema of the new name out",
                from.name
            );
            return Err((table, words));
        }
        names.changed.push((from.clone(), None));
        names.changed.push((to.clone(), Some(table)));
        match renamed.iter_mut().find(|(other, _)| *other == table) {
            Some((_, last)) => *last = to.clone(),
            None => renamed.push((table, to.clone())),
        }
    }
    match renamed.first().filter(|_| is_mixed) {
        Some((table, _)) => Err((
            *table,
            "it gives sharded tables and others new names; rename each kind by itself".into(),
        )),
        None => Ok(renamed),
    }
}

/// A leg for each table on a server: its name is asked for, and stays. `None` if no table is sharded.
fn routed(map: &Map, renamed: &[(u32, Said)], text: &[u8]) -> Option<Routed> {
    let mut legs: Vec<Leg> = Vec::new();
    let (mut renames, mut reasons) = (Vec::new(), Vec::new());
    for (number, to) in renamed {
        let table: &Table = map.numbered(*number)?;
        for home in &table.homes {
            let name = physical_of(home, to.has_schema.then_some(&*to.schema));
            let cut = Cut::new(0..text.len(), format!("RENAME TABLE {name} TO {name}"));
            let (cuts, shown) = (vec![cut], table.shown_at(home));
            let is_there = |leg: &&mut Leg| leg.hostgroup == home.hostgroup && leg.cuts == cuts;
            match legs.iter_mut().find(is_there) {
                Some(leg) => leg.partitions.push(shown),
                None => legs.push(Leg {
                    hostgroup: home.hostgroup,
                    partitions: vec![shown],
                    cuts,
                    rows: Vec::new(),
                }),
            }
        }
        reasons.push(format!(
            "{} gets the name {} in the map, and its tables on servers keep theirs",
            table.shown(),
            to.name
        ));
        renames.push(Rename {
            schema: table.schema.clone(),
            from: table.name.clone(),
            to: to.name.clone(),
            said: to.shown(),
        });
    }
    let (table, _) = renamed.first()?;
    Some(Routed {
        table: *table,
        writes: true,
        in_turn: true,
        renames,
        reasons,
        ..Routed::of(Spread::All(legs))
    })
}
