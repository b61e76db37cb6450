//! CREATE TABLE, TRUNCATE, ALTER, CREATE INDEX and DROP INDEX of a sharded table: what each partition is
//! told, one after another.
//!
//! <https://dev.mysql.com/doc/refman/9.4/en/create-table.html>
//! <https://dev.mysql.com/doc/refman/9.4/en/alter-table.html>
//! <https://dev.mysql.com/doc/refman/9.4/en/create-index.html>

use crate::cuts::{Cut, physical_of};
use crate::definitions::renaming;
use crate::facts::Facts;
use crate::hints::{Hints, Said, hints};
use crate::map::{Home, Map, Table};
use crate::routed::{Leg, Routed, Spread};
use sql::words::{Kind, Token, unquote};
use std::ops::Range;

/// Words behind which a name is that of a column which is changed.
const CHANGES: &[&str] = &[
    "CHANGE", "MODIFY", "DROP", "ALTER", "COLUMN", "EXISTS", "RENAME",
];
/// Words of an ALTER that would do something else to one partition than to all.
const OTHERS: &[&str] = &[
    "REFERENCES",
    "PARTITION",
    "PARTITIONING",
    "EXCHANGE",
    "TABLESPACE",
    "UNION",
    "IF",
];
/// Words between CREATE or DROP and INDEX.
const INDEXES: &[&str] = &["UNIQUE", "FULLTEXT", "SPATIAL", "ONLINE", "OFFLINE"];
/// Words of an ALTER that may make a key.
const UNIQUE: &[&str] = &["UNIQUE", "PRIMARY"];
/// Words between INDEX and ON: a name, and `USING BTREE`.
const INDEX_WORDS_MAX: usize = 4;
/// Words that RENAME may be about, but for the table.
const RENAMED: &[&str] = &["COLUMN", "INDEX", "KEY"];

/// A statement about one table.
struct Statement<'a> {
    /// Its words, for people.
    verb: &'static str,
    schema: Option<Vec<u8>>,
    name: Vec<u8>,
    /// Place of the name, with its schema.
    at: Range<usize>,
    /// Whether it makes an index unique.
    unique: bool,
    rest: Vec<Token<'a>>,
}

/// Verb of a statement with nothing behind the table.
const TRUNCATE: &str = "TRUNCATE";
const CREATE: &str = "CREATE TABLE";
/// Words of a CREATE TABLE whose columns are those of others.
const FROM_OTHERS: &[&str] = &["LIKE", "SELECT"];

fn with_article(verb: &str) -> String {
    let article = if verb.starts_with('A') { "an" } else { "a" };
    format!("{article} {verb}")
}

/// Where a statement of this file goes that is about a sharded table; `None` for anything else.
pub(crate) fn route(map: &Map, text: &[u8], facts: &Facts<'_>) -> Option<Routed> {
    let statement = read(text, facts)?;
    let schema = statement
        .schema
        .as_deref()
        .unwrap_or(facts.schema.as_bytes());
    let table = map.table(schema, &statement.name)?;
    let mut routed = match homes(&statement, table, facts) {
        Ok(homes) => Routed::of(spread(&statement, table, &homes)),
        Err(words) => Routed::refused(words),
    };
    routed.table = table.number;
    routed.looks = table.is_automatic().then_some(table.number);
    (routed.writes, routed.in_turn) = (true, true);
    Some(routed)
}

fn read<'a>(text: &'a [u8], facts: &Facts<'_>) -> Option<Statement<'a>> {
    // What a server makes of an executable comment is not known.
    if text
        .windows(3)
        .any(|three| three == b"/*!" || three == b"/*M")
    {
        return None;
    }
    let mut words = facts.lexing.words(text).peekable();
    let first = words.next()?;
    let names_table = words.next_if(|word| word.is("TABLE")).is_some();
    let (verb, unique) = match names_table {
        true if first.is("ALTER") => ("ALTER", false),
        _ if first.is("TRUNCATE") => (TRUNCATE, false),
        true if first.is("CREATE") => {
            if words.next_if(|word| word.is("IF")).is_some() {
                words.next_if(|word| word.is("NOT"))?;
                words.next_if(|word| word.is("EXISTS"))?;
            }
            (CREATE, false)
        }
        false if first.is("CREATE") || first.is("DROP") => {
            ("CREATE INDEX or DROP INDEX", index(&mut words)?)
        }
        _ => return None,
    };
    let is_name = |word: &Token<'_>| matches!(word.kind, Kind::Word | Kind::Name);
    let mut name = words.next().filter(is_name)?;
    let start = name.start;
    let mut schema = None;
    if words.next_if(|word| word.is_sign(b'.')).is_some() {
        schema = Some(unquote(name.text).into_owned());
        name = words.next().filter(is_name)?;
    }
    let rest: Vec<_> = words.collect();
    if verb == CREATE && rest.iter().any(|word| word.is_any(FROM_OTHERS)) {
        return None;
    }
    Some(Statement {
        verb,
        schema,
        name: unquote(name.text).into_owned(),
        at: start..name.end(),
        unique,
        rest,
    })
}

/// Reads from CREATE or DROP to the ON of an index; whether it is unique.
fn index<'a>(words: &mut impl Iterator<Item = Token<'a>>) -> Option<bool> {
    let mut unique = false;
    let word = words.find(|word| {
        unique |= word.is("UNIQUE");
        !word.is_any(INDEXES)
    })?;
    word.is("INDEX").then_some(())?;
    let name_and_type = words.by_ref().take(INDEX_WORDS_MAX + 1);
    let mut before = name_and_type.take_while(|word| !word.is("ON"));
    let is_other = before.any(|word| word.is("IF") || word.is_sign(b'('));
    (!is_other).then_some(unique)
}

/// The homes that it is for: all, or that of a hint.
fn homes<'m>(
    statement: &Statement<'_>,
    table: &'m Table,
    facts: &Facts<'_>,
) -> Result<Vec<&'m Home>, String> {
    let shown = table.shown();
    let end = statement.rest.iter().position(|word| word.is_sign(b';'));
    let rest = &statement.rest[..end.unwrap_or(statement.rest.len())];
    let is_alone = end.is_none_or(|end| end + 1 == statement.rest.len());
    if !is_alone || statement.verb == TRUNCATE && !rest.is_empty() {
        return Err(format!(
            "more than the name of {shown} is in it; say it alone"
        ));
    }
    let is_key =
        |word: &Token<'_>| unquote(word.text).eq_ignore_ascii_case(table.column.as_bytes());
    if statement.verb == CREATE && !rest.iter().any(is_key) {
        return Err(format!(
            "{shown} is spread by its {}, and the table has no such column; name the column so",
            table.column
        ));
    }
    let mut before: Option<&Token<'_>> = None;
    for word in rest {
        if before.is_some_and(|before| before.is("RENAME")) && !word.is_any(RENAMED) {
            return Err(renaming(&shown));
        }
        if word.is_any(OTHERS) {
            let word = String::from_utf8_lossy(word.text);
            return Err(format!(
                "{word} in {} of {shown} cannot be done for all of its partitions; do it on the server of each",
                with_article(statement.verb)
            ));
        }
        let changes = before.is_some_and(|before| before.is_any(CHANGES));
        if changes && is_key(word) {
            return Err(format!(
                "it changes {}, by which {shown} is spread; make another table, and move the rows",
                table.column
            ));
        }
        let looked_up = table.lookups.iter().find(|lookup| {
            let column = lookup.column.as_bytes();
            word.is("CONVERT") || changes && unquote(word.text).eq_ignore_ascii_case(column)
        });
        if let Some(lookup) = looked_up {
            return Err(format!(
                "it changes {}, by which rows of {shown} are looked up; take its row out of mysql_shard_lookups first, and LOAD MYSQL SHARDS TO RUNTIME",
                lookup.column
            ));
        }
        before = Some(word);
    }
    let is_unique = statement.unique || rest.iter().any(|word| word.is_any(UNIQUE));
    if is_unique && let Some(lookup) = table.lookups.iter().find(|lookup| lookup.same_key) {
        return Err(format!(
            "a new unique key of {shown} may take rows for the same that its look-up by {} has apart; take its row out of mysql_shard_lookups first, and LOAD MYSQL SHARDS TO RUNTIME",
            lookup.column
        ));
    }
    let hints = facts.comment.map_or_else(|| Ok(Hints::default()), hints)?;
    let meant = |name: &str| name.eq_ignore_ascii_case(&table.name);
    match hints.said.iter().find(|(name, _)| meant(name)) {
        None => Ok(table.homes.iter().collect()),
        Some((_, Said::Partition(name))) => match table.home_named(name) {
            Some(home) => Ok(vec![&table.homes[home]]),
            None => Err(format!(
                "{shown} has no partition '{name}', which a hint names"
            )),
        },
        Some((_, Said::Key(_))) => Err(format!(
            "{} of one partition of {shown} needs the hint hscale.partition({}) = 'name'",
            with_article(statement.verb),
            table.name
        )),
    }
}

/// A leg for each table that is there: partitions may share one.
fn spread(statement: &Statement<'_>, table: &Table, homes: &[&Home]) -> Spread {
    let mut legs: Vec<(&Home, Leg)> = Vec::new();
    for home in homes {
        let shown = table.shown_at(home);
        let place = |home: &Home| (home.hostgroup, home.schema.clone(), home.table.clone());
        if let Some((_, leg)) = legs
            .iter_mut()
            .find(|(known, _)| place(known) == place(home))
        {
            leg.partitions.push(shown);
            continue;
        }
        let schema = statement.schema.as_deref().map(String::from_utf8_lossy);
        let name = physical_of(home, schema.as_deref());
        legs.push((
            home,
            Leg {
                hostgroup: home.hostgroup,
                partitions: vec![shown],
                cuts: vec![Cut::new(statement.at.clone(), name)],
                rows: Vec::new(),
            },
        ));
    }
    let mut legs: Vec<Leg> = legs.into_iter().map(|(_, leg)| leg).collect();
    match legs.len() {
        1 => legs.pop().map_or(Spread::Plain, Spread::Point),
        _ => Spread::All(legs),
    }
}
