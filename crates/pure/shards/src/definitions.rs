//! CREATE TABLE that reads another table or is temporary, DROP TABLE and RENAME of a sharded one: where they
//! go, or what to do instead.
//!
//! <https://dev.mysql.com/doc/refman/9.4/en/create-table-like.html>
//! <https://dev.mysql.com/doc/refman/9.4/en/rename-table.html>

use crate::cuts::{Cut, physical_of};
use crate::facts::Facts;
use crate::map::{Map, Table};
use crate::routed::{Leg, Routed, Spread};
use sql::words::{Kind, Token, unquote};
use std::iter::Peekable;
use std::ops::Range;
use std::sync::Arc;

/// A table that a statement names.
pub(crate) struct Named<'m> {
    table: Option<&'m Arc<Table>>,
    pub(crate) schema: Option<String>,
    pub(crate) name: String,
    at: Range<usize>,
}

/// Where a CREATE TABLE, DROP TABLE or RENAME TABLE goes that names a sharded table, of this number the
/// first; `None` for anything else.
pub(crate) fn route(map: &Map, text: &[u8], facts: &Facts<'_>, first_named: u32) -> Option<Routed> {
    let mut words = facts.lexing.words(text).peekable();
    let first = words.next()?;
    let verb = words.next_if(|word| word.is_any(&["TABLE", "TABLES", "TEMPORARY"]))?;
    let is_temporary = verb.is("TEMPORARY");
    if is_temporary {
        words.next_if(|word| word.is("TABLE"))?;
    }
    let routed = match () {
        () if first.is("CREATE") => create(map, words, facts, (first_named, is_temporary))?,
        () if first.is("DROP") => {
            let table = any(map, words, facts)?;
            refused(
                table,
                format!(
                    "{0} is sharded, and DROP would end it for good; take its rows out of mysql_shard_tables and mysql_shard_partitions, LOAD MYSQL SHARDS TO RUNTIME, and drop the table of each partition on its server",
                    table.shown()
                ),
            )
        }
        () if first.is("RENAME") => {
            let table = any(map, words, facts)?;
            refused(table, renaming(&table.shown()))
        }
        () => return None,
    };
    Some(routed)
}

/// Sentence about a sharded table that shall have another name, and more.
pub(crate) fn renaming(shown: &str) -> String {
    format!(
        "it gives {shown} another name, and more than that; say RENAME TABLE with the two names alone"
    )
}

fn refused(table: &Table, words: String) -> Routed {
    Routed {
        table: table.number,
        writes: true,
        ..Routed::refused(words)
    }
}

/// CREATE TABLE, from the table's name on.
fn create<'t>(
    map: &Map,
    mut words: Peekable<impl Iterator<Item = Token<'t>>>,
    facts: &Facts<'_>,
    (first_named, is_temporary): (u32, bool),
) -> Option<Routed> {
    if words.next_if(|word| word.is("IF")).is_some() {
        words.next_if(|word| word.is("NOT"))?;
        words.next_if(|word| word.is("EXISTS"))?;
    }
    let made = name(map, &mut words, facts)?;
    if let Some(table) = made.table {
        let shown = table.shown();
        let words = match is_temporary {
            true => format!(
                "a temporary table would have the name of {shown}, which is sharded; give it another one"
            ),
            false => format!(
                "{shown} is sharded, and its columns are those of another table; write them out, or make the table of each partition on its server"
            ),
        };
        return Some(refused(table, words));
    }
    words.next_if(|word| word.is_sign(b'('));
    if words.next_if(|word| word.is("LIKE")).is_some() {
        let like = name(map, &mut words, facts)?;
        let table = like.table?;
        let is_end = |word: &Token<'_>| word.is_sign(b')') || word.is_sign(b';');
        words.all(|word| is_end(&word)).then_some(())?;
        let home = table.homes.first()?;
        let mut routed = Routed::of(Spread::Point(Leg {
            hostgroup: home.hostgroup,
            partitions: vec![table.shown_at(home)],
            cuts: vec![Cut::new(like.at, physical_of(home, like.schema.as_deref()))],
            rows: Vec::new(),
        }));
        (routed.table, routed.writes) = (table.number, true);
        routed.reasons.push(format!(
            "a table like {} is made where its default partition is",
            table.shown()
        ));
        return Some(routed);
    }
    words.any(|word| word.is("SELECT")).then_some(())?;
    let table = map.numbered(first_named)?;
    Some(refused(
        table,
        format!(
            "rows of {0} are on several servers, and a CREATE TABLE … SELECT runs on one; CREATE the table first, and INSERT … SELECT into it",
            table.shown()
        ),
    ))
}

/// The first sharded table of a list of names.
fn any<'m, 't>(
    map: &'m Map,
    mut words: Peekable<impl Iterator<Item = Token<'t>>>,
    facts: &Facts<'_>,
) -> Option<&'m Arc<Table>> {
    if words.next_if(|word| word.is("IF")).is_some() {
        words.next_if(|word| word.is("EXISTS"))?;
    }
    loop {
        let named = name(map, &mut words, facts)?;
        if named.table.is_some() {
            return named.table;
        }
        words.next_if(|word| word.is_sign(b',') || word.is("TO"))?;
    }
}

pub(crate) fn name<'m, 't>(
    map: &'m Map,
    words: &mut Peekable<impl Iterator<Item = Token<'t>>>,
    facts: &Facts<'_>,
) -> Option<Named<'m>> {
    let is_name = |word: &Token<'_>| matches!(word.kind, Kind::Word | Kind::Name);
    let mut name = words.next_if(is_name)?;
    let start = name.start;
    let mut schema = None;
    if words.next_if(|word| word.is_sign(b'.')).is_some() {
        schema = Some(String::from_utf8_lossy(&unquote(name.text)).into_owned());
        name = words.next_if(is_name)?;
    }
    let said = schema.as_deref().unwrap_or(facts.schema);
    let named = unquote(name.text);
    Some(Named {
        table: map.table(said.as_bytes(), &named),
        name: String::from_utf8_lossy(&named).into_owned(),
        at: start..name.end(),
        schema,
    })
}
