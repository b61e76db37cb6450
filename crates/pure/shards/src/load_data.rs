//! LOAD DATA LOCAL INFILE into a sharded table: what the statement says.
//!
//! <https://dev.mysql.com/doc/refman/9.4/en/load-data.html>

use crate::cuts::{Cut, cut, physical_of};
use crate::facts::Facts;
use crate::loaded::{Format, Loaded, LoadedPlace};
use crate::lookups::of_file;
use crate::map::{Kind, Map, Table};
use crate::routed::Routed;
use sql::Lexing;
use sql::words::{Kind as Word, Token, unquote};
use std::iter::Peekable;
use std::ops::Range;

/// A statement, as far as it is the same for all partitions.
struct Said<'t> {
    file: Vec<u8>,
    schema: Option<String>,
    name: Vec<u8>,
    at: Range<usize>,
    format: Format,
    skipped: u64,
    /// Place of `IGNORE n LINES`.
    skips: Option<Range<usize>>,
    columns: Option<Vec<Vec<u8>>>,
    /// Behind what is understood.
    rest: Option<Token<'t>>,
}

/// The table of a LOAD DATA LOCAL, and the schema that is meant, if it lists no columns.
pub(crate) fn unlisted<'m>(
    map: &'m Map,
    text: &[u8],
    schema: &str,
    lexing: Lexing,
) -> Option<(&'m Table, Option<String>, String)> {
    if !lexing.words(text).next()?.is("LOAD") {
        return None;
    }
    let said = read(text, lexing).ok().flatten()?;
    let meant = said.schema.clone().unwrap_or_else(|| schema.to_owned());
    let table = map.table(meant.as_bytes(), &said.name)?;
    let is_meant = said.columns.is_none() && table.kind == Kind::Sharded;
    is_meant.then_some((table, said.schema, meant))
}

/// Where the rows of a LOAD DATA go; `None` for anything else.
pub(crate) fn route(map: &Map, text: &[u8], facts: &Facts<'_>) -> Option<Routed> {
    if !facts.lexing.words(text).next()?.is("LOAD") {
        return None;
    }
    let said = match read(text, facts.lexing) {
        Ok(said) => said?,
        Err(words) => return Some(Routed::refused(words)),
    };
    let schema = said.schema.as_deref().unwrap_or(facts.schema);
    let table = map.table(schema.as_bytes(), &said.name)?;
    let mut routed = match loaded(table, &said, text, facts) {
        Ok(loaded) => {
            let mut routed = Routed::refused("rows of a file are not sent from here");
            routed.reasons.push(format!(
                "{}: rows of the file go by their {}",
                table.shown(),
                table.column
            ));
            routed.loaded = Some(loaded);
            routed
        }
        Err(words) => Routed::refused(words),
    };
    (routed.table, routed.writes) = (table.number, true);
    Some(routed)
}

fn loaded(
    table: &Table,
    said: &Said<'_>,
    text: &[u8],
    facts: &Facts<'_>,
) -> Result<Loaded, String> {
    let (name, column) = (table.shown(), &table.column);
    if table.kind == Kind::Reference {
        return Err(format!(
            "{name} is a reference table, and a file is read once; load it into the copy on each server"
        ));
    }
    if let Some(rest) = &said.rest {
        return Err(format!(
            "'{}' in a LOAD DATA of {name} is not understood; name columns only, without variables and SET",
            String::from_utf8_lossy(rest.text)
        ));
    }
    let schema = said.schema.as_deref().unwrap_or(facts.schema);
    let known = facts
        .columns
        .and_then(|known| known.described.of(table.number, schema));
    let is_key = |name: &[u8]| name.eq_ignore_ascii_case(column.as_bytes());
    let (columns, key) = match (&said.columns, known) {
        (Some(named), _) => (named.len(), named.iter().position(|name| is_key(name))),
        (None, Some(known)) => {
            let mut names = known.names.iter();
            (
                known.names.len(),
                names.position(|name| is_key(name.as_bytes())),
            )
        }
        (None, None) => {
            return Err(format!(
                "the columns of {name} are asked of a server when the LOAD DATA runs; name them to see where its rows go"
            ));
        }
    };
    let key = key.ok_or_else(|| {
        format!("rows of {name} must have a value for {column}, by which the table is spread")
    })?;
    if let Some(sequence) = &table.sequence {
        return Err(format!(
            "rows of {name} get their {sequence} from a sequence, and those of a file get none; insert them"
        ));
    }
    if let Some(lookup) = table.lookups.first() {
        return Err(of_file(table, lookup));
    }
    let mut loaded = Loaded {
        table: table.number,
        file: said.file.clone(),
        format: said.format.clone(),
        key,
        columns,
        skipped: said.skipped,
        places: Vec::new(),
        place_of: Vec::new(),
    };
    let mut tables = Vec::new();
    for home in &table.homes {
        let shown = table.shown_at(home);
        let place = (home.hostgroup, physical_of(home, said.schema.as_deref()));
        if let Some(at) = tables.iter().position(|known| *known == place) {
            let partitions = &mut loaded.places[at].partitions;
            *partitions = format!("{partitions} and {shown}");
            loaded.place_of.push(at);
            continue;
        }
        let mut cuts = vec![Cut::new(said.at.clone(), place.1.clone())];
        cuts.extend(said.skips.clone().map(|at| Cut::new(at, "")));
        loaded.place_of.push(tables.len());
        loaded.places.push(LoadedPlace {
            hostgroup: home.hostgroup,
            partitions: shown,
            text: cut(text, &cuts),
        });
        tables.push(place);
    }
    Ok(loaded)
}

/// Reads a LOAD DATA LOCAL. `None`: it is another LOAD.
///
/// # Errors
/// A sentence: what in it cannot be done for partitions.
fn read(text: &[u8], lexing: Lexing) -> Result<Option<Said<'_>>, String> {
    let mut words = lexing.words(text).peekable();
    let mut skip = |all: &[&str]| words.next_if(|word| word.is_any(all)).is_some();
    if !skip(&["LOAD"]) || !skip(&["DATA"]) {
        return Ok(None);
    }
    skip(&["LOW_PRIORITY", "CONCURRENT"]);
    if !skip(&["LOCAL"]) {
        return Err(
            "a file of one server cannot be loaded into partitions of several; say LOAD DATA LOCAL"
                .into(),
        );
    }
    if !skip(&["INFILE"]) {
        return Ok(None);
    }
    let Some(file) = string(&mut words, lexing)? else {
        return Ok(None);
    };
    words.next_if(|word| word.is_any(&["REPLACE", "IGNORE"]));
    for word in ["INTO", "TABLE"] {
        if words.next_if(|next| next.is(word)).is_none() {
            return Ok(None);
        }
    }
    let Some((schema, name, at)) = table(&mut words) else {
        return Ok(None);
    };
    let mut said = Said {
        file,
        schema,
        name,
        at,
        format: Format::default(),
        skipped: 0,
        skips: None,
        columns: None,
        rest: None,
    };
    if words.next_if(|word| word.is("CHARACTER")).is_some() {
        words.next_if(|word| word.is("SET"));
        let charset = words.next();
        let is_mixed = |word: &Token<'_>| {
            unquote(word.text).eq_ignore_ascii_case(b"gb18030")
                || word.is_any(&[
                    "SJIS", "CP932", "GBK", "BIG5", "EUCKR", "EUCJPMS", "UJIS", "GB2312",
                ])
        };
        if charset.as_ref().is_some_and(is_mixed) {
            return Err("in this CHARACTER SET a byte of a letter may look like the end of a field; load a file in utf8mb4".into());
        }
    }
    said.format(&mut words, lexing)?;
    said.skips(&mut words)?;
    said.columns(&mut words);
    words.next_if(|word| word.is_sign(b';'));
    said.rest = words.next();
    Ok(Some(said))
}

fn table<'t>(
    words: &mut Peekable<impl Iterator<Item = Token<'t>>>,
) -> Option<(Option<String>, Vec<u8>, Range<usize>)> {
    let is_name = |word: &Token<'_>| matches!(word.kind, Word::Word | Word::Name);
    let mut name = words.next_if(is_name)?;
    let start = name.start;
    let mut schema = None;
    if words.next_if(|word| word.is_sign(b'.')).is_some() {
        schema = Some(String::from_utf8_lossy(&unquote(name.text)).into_owned());
        name = words.next_if(is_name)?;
    }
    let end = name.end();
    Some((schema, unquote(name.text).into_owned(), start..end))
}

/// A string, if one is next.
fn string<'t>(
    words: &mut Peekable<impl Iterator<Item = Token<'t>>>,
    lexing: Lexing,
) -> Result<Option<Vec<u8>>, String> {
    let Some(word) = words.next_if(|word| word.kind == Word::String) else {
        return Ok(None);
    };
    if word.text.contains(&b'\\') && lexing != Lexing::Escapes {
        return Err("whether a backslash escapes in its strings is not certain; SET NAMES utf8mb4 and leave NO_BACKSLASH_ESCAPES out of sql_mode".into());
    }
    Ok(Some(unquote(word.text).into_owned()))
}

impl<'t> Said<'t> {
    /// FIELDS and LINES.
    fn format(
        &mut self,
        words: &mut Peekable<impl Iterator<Item = Token<'t>>>,
        lexing: Lexing,
    ) -> Result<(), String> {
        let mut is_lines = None;
        loop {
            if words
                .next_if(|word| word.is_any(&["FIELDS", "COLUMNS"]))
                .is_some()
            {
                is_lines = Some(false);
            } else if words.next_if(|word| word.is("LINES")).is_some() {
                is_lines = Some(true);
            }
            let Some(lines) = is_lines else { break };
            words.next_if(|word| word.is("OPTIONALLY"));
            let options = ["TERMINATED", "ENCLOSED", "ESCAPED", "STARTING"];
            let Some(option) = words.next_if(|word| word.is_any(&options)) else {
                break;
            };
            words.next_if(|word| word.is("BY"));
            let Some(value) = string(words, lexing)? else {
                return Err(
                    "the ends of fields and lines of its file must be strings in quotes".into(),
                );
            };
            let format = &mut self.format;
            match () {
                () if option.is("TERMINATED") && lines => format.line_end = value,
                () if option.is("TERMINATED") => format.field_end = value,
                () if option.is("STARTING") => format.line_start = value,
                () if option.is("ENCLOSED") => format.enclosed = value.first().copied(),
                () => format.escaped = value.first().copied(),
            }
        }
        self.format.may_be_read()
    }

    /// IGNORE n LINES.
    fn skips(
        &mut self,
        words: &mut Peekable<impl Iterator<Item = Token<'t>>>,
    ) -> Result<(), String> {
        let Some(ignore) = words.next_if(|word| word.is("IGNORE")) else {
            return Ok(());
        };
        let number = words.next();
        let digits = number.as_ref().map_or(&b""[..], |word| word.text);
        let digits = std::str::from_utf8(digits).unwrap_or_default();
        let lines = words.next_if(|word| word.is_any(&["LINES", "ROWS"]));
        let (Ok(skipped), Some(lines)) = (digits.parse(), lines) else {
            return Err("the number of lines that are left out must be written out".into());
        };
        self.skipped = skipped;
        self.skips = Some(ignore.start..lines.end());
        Ok(())
    }

    fn columns(&mut self, words: &mut Peekable<impl Iterator<Item = Token<'t>>>) {
        if words.next_if(|word| word.is_sign(b'(')).is_none() {
            return;
        }
        let is_name = |word: &Token<'_>| matches!(word.kind, Word::Word | Word::Name);
        let mut columns = Vec::new();
        while let Some(name) = words.next_if(is_name) {
            columns.push(unquote(name.text).into_owned());
            words.next_if(|word| word.is_sign(b','));
        }
        words.next_if(|word| word.is_sign(b')'));
        if !columns.is_empty() {
            self.columns = Some(columns);
        }
    }
}
