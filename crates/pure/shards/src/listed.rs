//! An INSERT without a list of columns gets one: only the order of a table's columns tells which value
//! is the key.
//!
//! The list stands in the text that is routed and sent. So a row goes where its key belongs, even if
//! somebody has changed the order of the columns meanwhile.

use crate::cuts::{Cut, cut, physical_of, quoted};
use crate::described::{KnownColumns, Undescribed};
use crate::facts::{Facts, explained};
use crate::load_data::unlisted;
use crate::map::{Kind, Map, Table};
use sql::Lexing;
use sql::tree::{Statement, tree};
use sql::words::{Kind as Word, Token, unquote};

/// An INSERT that may lack its list of columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listed {
    /// Nothing to do: none is lacking, or no sharded table is written to.
    Not,
    /// The columns are not known yet.
    Wants(Undescribed),
    /// The statement with a list.
    Done(Vec<u8>),
    /// There is no list, and why; with the table's number.
    Refused(u32, String),
}

/// Words between INSERT and the table.
const BEFORE_TABLE: &[&str] = &["LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY", "IGNORE", "INTO"];

/// The table of a text that may be an INSERT into a sharded table without a list of columns: its number,
/// and the schema that is meant. No tree is made.
#[must_use]
pub fn lacks_columns(
    map: &Map,
    text: &[u8],
    schema: &str,
    lexing: Lexing,
) -> Option<(u32, String)> {
    if map.is_empty() {
        return None;
    }
    if let Some((table, _, schema)) = unlisted(map, text, schema, lexing) {
        return Some((table.number, schema));
    }
    let (table, schema) = target(map, text, schema, lexing)?;
    Some((table.number, schema))
}

/// The table that such an INSERT writes to.
fn target<'m>(
    map: &'m Map,
    text: &[u8],
    schema: &str,
    lexing: Lexing,
) -> Option<(&'m Table, String)> {
    let mut words = lexing.words(&text[explained(text, lexing)..]).peekable();
    if !words.next()?.is_any(&["INSERT", "REPLACE"]) {
        return None;
    }
    while words.next_if(|word| word.is_any(BEFORE_TABLE)).is_some() {}
    let is_name = |word: &Token<'_>| matches!(word.kind, Word::Word | Word::Name);
    let mut name = words.next().filter(is_name)?;
    let mut said = None;
    if words.next_if(|word| word.is_sign(b'.')).is_some() {
        said = Some(name);
        name = words.next().filter(is_name)?;
    }
    let mut next = words.next()?;
    if next.is_sign(b'(') {
        // A query in parentheses, or a list.
        next = words.find(|word| !word.is_sign(b'('))?;
        next.is_any(&["SELECT", "WITH"]).then_some(())?;
    }
    next.is_any(&["VALUES", "VALUE", "SELECT", "WITH"])
        .then_some(())?;
    let schema = said.map_or_else(|| schema.as_bytes().into(), |said| unquote(said.text));
    let table = map.table(&schema, &unquote(name.text))?;
    let schema = String::from_utf8_lossy(&schema).into_owned();
    (table.kind == Kind::Sharded).then_some((table, schema))
}

/// Puts a list of columns into an INSERT or REPLACE that has none.
#[must_use]
pub fn list(map: &Map, text: &[u8], facts: &Facts<'_>) -> Listed {
    if map.is_empty() {
        return Listed::Not;
    }
    if let Some((table, said, schema)) = unlisted(map, text, facts.schema, facts.lexing) {
        let known = |known: KnownColumns<'_>| known.described.of(table.number, &schema).is_some();
        return match facts.columns.is_none_or(known) {
            true => Listed::Not,
            false => Listed::Wants(Undescribed {
                table: table.number,
                places: places(table, said.as_deref()),
                schema,
            }),
        };
    }
    if target(map, text, facts.schema, facts.lexing).is_none() {
        return Listed::Not;
    }
    let begin = explained(text, facts.lexing);
    let Some(tree) = tree(&text[begin..], facts.lexing, facts.quotes) else {
        return Listed::Not;
    };
    let Statement::Insert(insert) = &tree.statement else {
        return Listed::Not;
    };
    let said = insert.table.schema.as_ref();
    let said = said.map(|schema| String::from_utf8_lossy(&schema.text));
    let schema = said.as_deref().unwrap_or(facts.schema);
    let Some(table) = map.table(schema.as_bytes(), &insert.table.name.text) else {
        return Listed::Not;
    };
    let at = begin + insert.table.name.at.end;
    let with = |list: String| Listed::Done(cut(text, &[Cut::new(at..at, list)]));
    if insert.columns.is_some() || table.kind != Kind::Sharded {
        return Listed::Not;
    }
    // Rows of nothing are rows of defaults.
    if insert.query.is_none() && insert.rows.iter().all(|row| row.values.is_empty()) {
        return with(" ()".into());
    }
    let Some(known) = facts.columns else {
        return Listed::Not;
    };
    let Some(columns) = known.described.of(table.number, schema) else {
        return Listed::Wants(Undescribed {
            table: table.number,
            schema: schema.to_owned(),
            places: places(table, said.as_deref()),
        });
    };
    if !columns.is_ascii() && !known.is_utf8 {
        let words = format!(
            "columns of {} are not ASCII, and an INSERT without a list of them is told their names in UTF-8; SET NAMES utf8mb4 first, or name them",
            table.shown()
        );
        return Listed::Refused(table.number, words);
    }
    let names: Vec<_> = columns.names.iter().map(|name| quoted(name)).collect();
    with(format!(" ({})", names.join(", ")))
}

/// Where a table is, each place once.
fn places(table: &Table, said: Option<&str>) -> Vec<(u32, String)> {
    let mut places: Vec<(u32, String)> = Vec::new();
    for home in &table.homes {
        let place = (home.hostgroup, physical_of(home, said));
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::described::ColumnOrder;
    use crate::rows::TableRow;

    fn map() -> Map {
        let row = TableRow {
            table_name: "users".into(),
            key_column: "nickname".into(),
            function: "PREFIX(3)".into(),
            default_table: "users_default".into(),
            default_hostgroup: 1,
            ..TableRow::default()
        };
        Map::build(vec![row], Vec::new()).unwrap()
    }

    #[test]
    fn an_insert_without_a_list_is_told_from_others_by_its_words() {
        for (text, lacks) in [
            ("INSERT INTO users VALUES (1)", true),
            ("insert ignore `users` value (1)", true),
            ("REPLACE INTO shop.users VALUES ROW(1)", true),
            ("INSERT INTO users SELECT 1", true),
            ("INSERT INTO users (SELECT 1)", true),
            ("INSERT INTO users ((SELECT 1))", true),
            ("EXPLAIN INSERT INTO users VALUES (1)", true),
            ("INSERT INTO users (a) VALUES (1)", false),
            ("INSERT INTO users () VALUES ()", false),
            ("INSERT INTO users SET a = 1", false),
            ("INSERT INTO others VALUES (1)", false),
            ("UPDATE users SET a = 1", false),
            ("INSERT INTO users", false),
            ("INSERT INTO", false),
        ] {
            let found = lacks_columns(&map(), text.as_bytes(), "shop", Lexing::Escapes);
            let wanted = lacks.then(|| (0, "shop".to_owned()));
            assert_eq!(found, wanted, "{text}");
        }
    }

    #[test]
    fn columns_are_read_in_their_order_without_invisible_ones() {
        let row = |name: &str, extra: &str| {
            let cells = [name, "int", "YES", "", "", extra];
            cells.map(|cell| Some(cell.as_bytes().to_vec())).to_vec()
        };
        let rows = [
            row("b", ""),
            row("c", "INVISIBLE"),
            row("a", "STORED GENERATED"),
        ];
        assert_eq!(ColumnOrder::read(&rows).names, ["b", "a"]);
    }
}
