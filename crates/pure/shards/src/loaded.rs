//! LOAD DATA LOCAL INFILE into a sharded table: what the statement says of the file, and which partition
//! each of its rows belongs to.
//!
//! <https://dev.mysql.com/doc/refman/9.4/en/load-data.html>

use crate::cuts::{Cut, cut, physical_of};
use crate::lookups::of_file;
use crate::map::{Kind, Map, Table};
use crate::spread::{Facts, Routed, home_written};
use sql::Lexing;
use sql::tree::Literal;
use sql::words::{Kind as Word, Token, unquote};
use std::iter::Peekable;
use std::ops::Range;

/// A LOAD DATA LOCAL whose rows go to several partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// Number of the table in its map.
    pub table: u32,
    /// Name of the file, for the client.
    pub file: Vec<u8>,
    /// How rows are written in it.
    pub format: Format,
    /// Which field is the key, from 0.
    pub key: usize,
    /// Fields that a row has.
    pub columns: usize,
    /// Lines at the beginning that are left out.
    pub skipped: u64,
    /// Tables with rows of partitions.
    pub places: Vec<LoadedPlace>,
    /// For each home of the table its place.
    place_of: Vec<usize>,
}

/// A table with rows of partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadedPlace {
    /// The writer's hostgroup.
    pub hostgroup: u32,
    /// The partitions, for people.
    pub partitions: String,
    /// Statement that loads its rows.
    pub text: Vec<u8>,
}

/// How rows and fields end in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Format {
    field_end: Vec<u8>,
    enclosed: Option<u8>,
    escaped: Option<u8>,
    line_start: Vec<u8>,
    line_end: Vec<u8>,
}

impl Default for Format {
    fn default() -> Self {
        Self {
            field_end: b"\t".to_vec(),
            enclosed: None,
            escaped: Some(b'\\'),
            line_start: Vec::new(),
            line_end: b"\n".to_vec(),
        }
    }
}

impl Loaded {
    /// The place of a row with this key.
    ///
    /// # Errors
    /// A sentence: why that is not known.
    pub fn place(&self, table: &Table, key: &Field) -> Result<usize, String> {
        let literal = match key {
            Field::Null => Literal::Null,
            Field::Text(text) => Literal::Text(text.as_slice().into()),
            Field::Missing => {
                return Err(format!(
                    "it has no value for {}, by which {} is spread",
                    table.column,
                    table.shown()
                ));
            }
        };
        let home = home_written(table, &literal, &mut None)?;
        Ok(self.place_of.get(home).copied().unwrap_or_default())
    }
}

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

impl Format {
    fn may_be_read(&self) -> Result<(), String> {
        let all = [&self.field_end, &self.line_end, &self.line_start];
        let is_ascii = all.iter().all(|text| text.is_ascii())
            && self.enclosed.is_none_or(|byte| byte.is_ascii())
            && self.escaped.is_none_or(|byte| byte.is_ascii());
        if self.field_end.is_empty() || self.line_end.is_empty() || !is_ascii {
            return Err("fields and lines of its file must end with ASCII of their own, which rows are told apart by".into());
        }
        if self.field_end == self.line_end {
            return Err(
                "fields and lines of its file end alike; give them ends of their own".into(),
            );
        }
        Ok(())
    }
}

/// A field as a server reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Field {
    /// The row has fewer fields.
    Missing,
    /// NULL.
    Null,
    /// Text, without enclosing and escapes.
    Text(Vec<u8>),
}

/// Step of reading a file.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// More of the file is needed.
    Needs,
    /// A row as it stands in the file, with its end, and the field that is its key.
    Row(Range<usize>, Field),
    /// The file has no more rows.
    End,
}

/// Reads a file piece by piece, as servers do.
#[derive(Debug)]
pub struct Rows<'l> {
    loaded: &'l Loaded,
    bytes: Vec<u8>,
    /// Read so far.
    at: usize,
    /// The bytes that were there when a row was not whole. It is tried again when there are twice as
    /// many.
    tried: usize,
    skipped: u64,
    has_ended: bool,
}

/// Bytes that have been read and still lie in the buffer, before the rest is moved to its front.
const READ_MAX: usize = 256 << 10;

/// The row is not whole yet.
#[derive(Debug)]
struct Short;

impl<'l> Rows<'l> {
    /// Of a file that is to come.
    #[must_use]
    pub const fn of(loaded: &'l Loaded) -> Self {
        Self {
            loaded,
            bytes: Vec::new(),
            at: 0,
            tried: 0,
            skipped: 0,
            has_ended: false,
        }
    }

    /// Takes what has come. Places of earlier rows are gone.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.at > READ_MAX || self.at == self.bytes.len() {
            self.bytes.drain(..self.at);
            self.at = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Notes that nothing comes any more.
    pub const fn end(&mut self) {
        self.has_ended = true;
    }

    /// Bytes that have come and were not read.
    #[must_use]
    pub const fn unread(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Bytes of a row.
    #[must_use]
    pub fn bytes(&self, row: &Range<usize>) -> &[u8] {
        self.bytes.get(row.clone()).unwrap_or_default()
    }

    /// The next row.
    pub fn step(&mut self) -> Step {
        let have = self.unread();
        if !self.has_ended && have < self.tried {
            return Step::Needs;
        }
        match self.row() {
            Ok(step) => {
                self.tried = 0;
                step
            }
            Err(Short) => {
                self.tried = have * 2;
                Step::Needs
            }
        }
    }

    fn row(&mut self) -> Result<Step, Short> {
        let format = &self.loaded.format;
        let mut reader = Reader {
            bytes: &self.bytes,
            at: self.at,
            has_ended: self.has_ended,
        };
        while self.skipped < self.loaded.skipped {
            let is_there = reader.skip_line(format)?;
            self.at = reader.at;
            if !is_there {
                return Ok(Step::End);
            }
            self.skipped += 1;
        }
        if !reader.find_start(format)? {
            self.at = self.bytes.len();
            return Ok(Step::End);
        }
        let (mut key, mut number) = (Field::Missing, 0);
        // From here on the row is sent; what is before its start is left out, as by a server.
        let start = reader.at - format.line_start.len();
        loop {
            let Some((field, ends)) = reader.field(format)? else {
                if number == 0 {
                    self.at = reader.at;
                    return Ok(Step::End);
                }
                break;
            };
            if number == self.loaded.key {
                key = field;
            }
            number += 1;
            match ends {
                Ends::Line => break,
                Ends::Field if number == self.loaded.columns => {
                    reader.skip_line(format)?;
                    break;
                }
                Ends::Field => {}
            }
        }
        self.at = reader.at;
        Ok(Step::Row(start..reader.at, key))
    }
}

/// End of a field.
enum Ends {
    Field,
    Line,
}

struct Reader<'b> {
    bytes: &'b [u8],
    at: usize,
    has_ended: bool,
}

impl Reader<'_> {
    /// The next byte; none at the end of the file.
    fn next(&mut self) -> Result<Option<u8>, Short> {
        match self.bytes.get(self.at) {
            Some(byte) => {
                self.at += 1;
                Ok(Some(*byte))
            }
            None if self.has_ended => Ok(None),
            None => Err(Short),
        }
    }

    /// Whether the byte before begins this word, which is read then.
    fn is(&mut self, word: &[u8]) -> Result<bool, Short> {
        let have = &self.bytes[self.at - 1..];
        if have.starts_with(word) {
            self.at += word.len() - 1;
            return Ok(true);
        }
        match word.starts_with(have) && !self.has_ended {
            true => Err(Short),
            false => Ok(false),
        }
    }

    /// Reads up to the end of a line, whatever is in it. False at the end of the file.
    fn skip_line(&mut self, format: &Format) -> Result<bool, Short> {
        while self.next()?.is_some() {
            if self.is(&format.line_end)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Reads up to where a row begins. False if none does.
    fn find_start(&mut self, format: &Format) -> Result<bool, Short> {
        if format.line_start.is_empty() {
            return Ok(true);
        }
        while self.next()?.is_some() {
            if self.is(&format.line_start)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Reads a field as servers do; none at the end of the file.
    fn field(&mut self, format: &Format) -> Result<Option<(Field, Ends)>, Short> {
        let Some(first) = self.next()? else {
            return Ok(None);
        };
        let (mut text, mut is_null) = (Vec::new(), false);
        let enclosed = format.enclosed.filter(|byte| *byte == first);
        match enclosed {
            Some(byte) => text.push(byte),
            None => self.at -= 1,
        }
        let is_end = |reader: &mut Self, byte: u8, end: &[u8]| {
            Ok::<_, Short>(end.first() == Some(&byte) && reader.is(end)?)
        };
        let (is_enclosed, ends) = loop {
            let Some(byte) = self.next()? else {
                break (false, Ends::Line);
            };
            if format.escaped == Some(byte) {
                let Some(next) = self.next()? else {
                    text.push(byte);
                    break (false, Ends::Line);
                };
                if format.escaped != format.enclosed || next == byte {
                    is_null |= next == b'N';
                    text.push(unescaped(next));
                    continue;
                }
                self.at -= 1;
            }
            if enclosed.is_none() {
                if is_end(self, byte, &format.line_end)? {
                    break (false, Ends::Line);
                }
                if is_end(self, byte, &format.field_end)? {
                    break (false, Ends::Field);
                }
            } else if enclosed == Some(byte) {
                match self.next()? {
                    // It is doubled.
                    Some(next) if next == byte => {}
                    None => break (true, Ends::Line),
                    Some(next) => {
                        if is_end(self, next, &format.line_end)? {
                            break (true, Ends::Line);
                        }
                        if is_end(self, next, &format.field_end)? {
                            break (true, Ends::Field);
                        }
                        self.at -= 1;
                    }
                }
            }
            text.push(byte);
        };
        if is_enclosed {
            text.remove(0);
        }
        let says_null = !is_enclosed && format.enclosed.is_some() && text == b"NULL";
        let field = match says_null || is_null && text.len() == 1 {
            true => Field::Null,
            false => Field::Text(text),
        };
        Ok(Some((field, ends)))
    }
}

/// Meaning of a byte behind the one that escapes.
const fn unescaped(byte: u8) -> u8 {
    match byte {
        b'n' => b'\n',
        b't' => b'\t',
        b'r' => b'\r',
        b'b' => 8,
        b'0' => 0,
        b'Z' => 0x1A,
        other => other,
    }
}

/// Fuzz target: however a file is cut, its rows are the same, and together they are no more than it.
#[doc(hidden)]
pub fn fuzz_file(data: &[u8]) {
    let [pieces, kind, file @ ..] = data else {
        return;
    };
    let byte = |bit: u8, byte: u8| (kind & bit != 0).then_some(byte);
    let loaded = Loaded {
        table: 0,
        file: Vec::new(),
        format: Format {
            field_end: if kind & 1 != 0 { b"," } else { b"\t" }.to_vec(),
            enclosed: byte(2, b'"'),
            escaped: byte(4, b'\\').or_else(|| byte(8, b'"')),
            line_start: if kind & 16 != 0 { &b"ab"[..] } else { b"" }.to_vec(),
            line_end: if kind & 32 != 0 { &b"\r\n"[..] } else { b"\n" }.to_vec(),
        },
        key: usize::from(kind & 64 != 0),
        columns: 2,
        skipped: u64::from(kind >> 7),
        places: Vec::new(),
        place_of: Vec::new(),
    };
    let read = |piece: usize| {
        let (mut rows, mut all, mut sum) = (Rows::of(&loaded), Vec::new(), 0);
        let mut pieces = file.chunks(piece);
        loop {
            match rows.step() {
                Step::Needs => match pieces.next() {
                    Some(piece) => rows.push(piece),
                    None => rows.end(),
                },
                Step::Row(at, key) => {
                    sum += at.len();
                    all.push((rows.bytes(&at).to_vec(), key));
                }
                Step::End => break,
            }
        }
        assert!(sum <= file.len());
        all
    };
    assert_eq!(read(usize::from(*pieces) + 1), read(file.len().max(1)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(format: Format, skipped: u64, file: &str) -> Vec<(String, Field)> {
        let loaded = Loaded {
            table: 0,
            file: Vec::new(),
            format,
            key: 1,
            columns: 2,
            skipped,
            places: Vec::new(),
            place_of: Vec::new(),
        };
        let mut rows = Rows::of(&loaded);
        rows.push(file.as_bytes());
        rows.end();
        let mut all = Vec::new();
        while let Step::Row(at, key) = rows.step() {
            let text = String::from_utf8_lossy(rows.bytes(&at)).into_owned();
            all.push((text, key));
        }
        all
    }

    fn text(text: &str) -> Field {
        Field::Text(text.into())
    }

    #[test]
    fn rows_of_the_usual_format_end_with_lines() {
        let found = rows(
            Format::default(),
            1,
            "skipped\na\tb\n\\\t\t\\N\nx\\\ny\tit\\\\\n\nlast\tz\trest\tmore",
        );
        let row = |bytes: &str, key| (bytes.to_owned(), key);
        let wanted = [
            row("a\tb\n", text("b")),
            row("\\\t\t\\N\n", Field::Null),
            row("x\\\ny\tit\\\\\n", text("it\\")),
            row("\n", Field::Missing),
            row("last\tz\trest\tmore", text("z")),
        ];
        assert_eq!(found, wanted);
    }

    #[test]
    fn enclosed_fields_have_the_ends_of_others_in_them() {
        let format = Format {
            field_end: b",".to_vec(),
            enclosed: Some(b'"'),
            line_end: b"\r\n".to_vec(),
            ..Format::default()
        };
        let found = rows(
            format,
            0,
            "1,\"a,\r\n\"\"b\"\"\"\r\n2,NULL\r\n3,\"NULL\"\r\n4,un\"quoted\r\n\"5,\",\"open",
        );
        let keys: Vec<_> = found.into_iter().map(|(_, key)| key).collect();
        let wanted = [
            text("a,\r\n\"b\""),
            Field::Null,
            text("NULL"),
            text("un\"quoted"),
            text("\"open"),
        ];
        assert_eq!(keys, wanted);
    }

    #[test]
    fn rows_begin_where_their_start_is() {
        let format = Format {
            line_start: b"xxx".to_vec(),
            ..Format::default()
        };
        let found = rows(format, 0, "junk xxxa\tb\nno row\nxxxc\td\nxx");
        let row = |bytes: &str, key| (bytes.to_owned(), key);
        assert_eq!(
            found,
            [row("xxxa\tb\n", text("b")), row("xxxc\td\n", text("d"))]
        );
    }

    #[test]
    fn a_file_has_the_rows_that_it_has_however_it_is_cut() {
        let file = b"\0\x27x\"a,b\"\r\n\\,\"\"\"\r\n\r\nab1,2\r\nab\"3\",4";
        for pieces in 0..20 {
            for kind in 0..=255 {
                let mut data = file.to_vec();
                (data[0], data[1]) = (pieces, kind);
                fuzz_file(&data);
            }
        }
    }
}
