//! Numbers of a sequence for rows that name none: what AUTO_INCREMENT does for a table on one server.
//!
//! The numbers stand in the text that is routed, so that the key may be the numbered column, and so
//! that rows of several partitions are numbered in their order.

use crate::cuts::{Cut, cut};
use crate::facts::{Facts, Numbering, explained};
use crate::map::{Map, Table};
use crate::xa::quoted_table;
use sql::tree::{Expression, Insert, Literal, Node, Statement, tree};

/// A statement's rows, as a sequence sees them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Numbered {
    /// No table with a sequence gets a row without a number.
    Not,
    /// So many rows have none, and the sequence is that of the table of this number.
    Wants {
        /// Number of the table in its map.
        table: u32,
        /// Rows without a number.
        count: u32,
    },
    /// All rows have theirs.
    Done {
        /// Number of the table in its map.
        table: u32,
        /// The statement with the numbers in it.
        text: Vec<u8>,
        /// First number that was put in.
        first: u64,
        /// Whether the row may be one that is there already: the server's answer has its number.
        may_update: bool,
        /// Whether the statement has RETURNING.
        returns: bool,
    },
    /// The statement cannot be numbered, and why; with the table's number.
    Refused(u32, String),
}

/// Rows that one statement may have numbered.
const ROWS_MAX: usize = 1_000_000;

/// Puts numbers into an INSERT or REPLACE whose table has a sequence.
#[must_use]
pub fn number(map: &Map, text: &[u8], facts: &Facts<'_>) -> Numbered {
    if !map.has_sequences() {
        return Numbered::Not;
    }
    let mut words = facts.lexing.words(text);
    if !words
        .next()
        .is_some_and(|first| first.is_any(&["INSERT", "REPLACE", "EXPLAIN", "DESC", "DESCRIBE"]))
    {
        return Numbered::Not;
    }
    let begin = explained(text, facts.lexing);
    let Some(tree) = tree(&text[begin..], facts.lexing, facts.quotes) else {
        return Numbered::Not;
    };
    let Statement::Insert(insert) = &tree.statement else {
        return Numbered::Not;
    };
    let schema = insert.table.schema.as_ref();
    let schema = schema.map_or(facts.schema.as_bytes(), |schema| &schema.text);
    let Some(table) = map.table(schema, &insert.table.name.text) else {
        return Numbered::Not;
    };
    let Some(column) = table.sequence.as_deref().filter(|_| insert.query.is_none()) else {
        return Numbered::Not;
    };
    let case = Rows {
        text,
        begin,
        insert,
        table,
        column,
        facts,
    };
    case.numbered()
        .unwrap_or_else(|words| Numbered::Refused(table.number, words))
}

/// Rows of an INSERT into a table with a sequence.
struct Rows<'c, 'a> {
    text: &'c [u8],
    /// Where the INSERT begins; EXPLAIN may stand before it.
    begin: usize,
    insert: &'c Insert<'a>,
    table: &'c Table,
    column: &'c str,
    facts: &'c Facts<'a>,
}

impl Rows<'_, '_> {
    fn numbered(&self) -> Result<Numbered, String> {
        let Some(columns) = self.insert.columns.as_ref().filter(|all| !all.is_empty()) else {
            // Its columns have to be named anyway.
            return Ok(Numbered::Not);
        };
        let at = columns
            .iter()
            .position(|named| named.is(self.column.as_bytes()));
        let rows = &self.insert.rows;
        if rows.iter().any(|row| row.values.len() != columns.len()) {
            return Ok(Numbered::Not);
        }
        let mut lacking = Vec::new();
        for (nth, row) in rows.iter().enumerate() {
            let lacks = match at.and_then(|at| row.values.get(at)) {
                None => true,
                Some(value) => self.lacks(value)?,
            };
            lacking.extend(lacks.then_some(nth));
        }
        let count = lacking.len();
        if count == 0 {
            return Ok(Numbered::Not);
        }
        self.may_be_numbered(count)?;
        let wanted = u32::try_from(count).unwrap_or(u32::MAX);
        let numbers = match self.begin {
            0 => self.facts.numbers,
            _ => Numbering::Whichever,
        };
        let first = match numbers {
            Numbering::Untaken => {
                return Ok(Numbered::Wants {
                    table: self.table.number,
                    count: wanted,
                });
            }
            Numbering::Whichever => 1,
            Numbering::Taken(numbers) if numbers.count >= wanted => numbers.first,
            Numbering::Taken(_) => {
                return Err("its sequence has changed meanwhile; say it again".into());
            }
        };
        let mut cuts = Vec::new();
        if at.is_none() && !self.is_set() {
            let behind = columns.last().map_or(0, |last| last.at.end);
            cuts.push(self.put(behind..behind, format!(", `{}`", self.quoted())));
        }
        for (nth, number) in lacking.iter().zip(first..) {
            let row = &rows[*nth];
            cuts.push(match at.and_then(|at| row.values.get(at)) {
                Some(value) => self.put(value.at.clone(), number.to_string()),
                None if self.is_set() => {
                    let set = format!(", `{}` = {number}", self.quoted());
                    self.put(row.at.end..row.at.end, set)
                }
                None => {
                    let inside = row.at.end.saturating_sub(1);
                    self.put(inside..inside, format!(", {number}"))
                }
            });
        }
        Ok(Numbered::Done {
            table: self.table.number,
            returns: !self.insert.returning.is_empty(),
            text: cut(self.text, &cuts),
            first,
            may_update: !self.insert.duplicate.is_empty(),
        })
    }

    fn quoted(&self) -> String {
        self.column.replace('`', "``")
    }

    fn put(&self, at: std::ops::Range<usize>, with: String) -> Cut {
        Cut::new(at.start + self.begin..at.end + self.begin, with)
    }

    /// Whether the statement is `INSERT … SET`.
    fn is_set(&self) -> bool {
        let row = self.insert.rows.first().map_or(0, |row| row.at.start);
        let first = self
            .facts
            .lexing
            .words(&self.text[self.begin + row..])
            .next();
        let begins_a_row = self.text.get(self.begin + row) == Some(&b'(');
        !begins_a_row && !first.is_some_and(|word| word.is("ROW"))
    }

    /// Whether a row with this value of the column has no number.
    fn lacks(&self, value: &Expression<'_>) -> Result<bool, String> {
        let (name, column) = (self.table.shown(), self.column);
        let is_default = |value: &Expression<'_>| {
            let said = self
                .text
                .get(self.begin + value.at.start..self.begin + value.at.end);
            said.is_some_and(|said| said.eq_ignore_ascii_case(b"DEFAULT"))
        };
        let written = match (&value.node, self.facts.parameters) {
            // Which of both is known when it has a value.
            (Node::Parameter(_), None) => return Ok(false),
            (Node::Parameter(nth), Some(values)) => values.get(*nth),
            (Node::Literal(literal), _) => Some(literal),
            _ => None,
        };
        let digits = match written {
            Some(Literal::Null) => return Ok(true),
            Some(Literal::Number(digits, _)) => Some(&**digits),
            Some(Literal::Text(text)) => Some(&**text),
            _ if is_default(value) => return Ok(true),
            _ => None,
        };
        let digits =
            digits.filter(|digits| !digits.is_empty() && digits.iter().all(u8::is_ascii_digit));
        match digits {
            Some(digits) if digits.iter().any(|digit| *digit != b'0') => Ok(false),
            Some(_) => Err(format!(
                "0 as the {column} of {name} means a new number to one server and 0 to another; say NULL, or leave the column out"
            )),
            None => Err(format!(
                "the {column} of {name} has a sequence, and this value of it is no plain number; write the number out, say NULL, or leave the column out"
            )),
        }
    }

    fn may_be_numbered(&self, count: usize) -> Result<(), String> {
        let name = self.table.shown();
        if !self.insert.duplicate.is_empty() && self.insert.rows.len() > 1 {
            return Err(format!(
                "rows of {name} get their numbers from its sequence, and which of several rows are new would not be known behind ON DUPLICATE KEY UPDATE; say it row by row"
            ));
        }
        if count > ROWS_MAX {
            return Err(format!("it has more than {ROWS_MAX} rows without a number"));
        }
        Ok(())
    }
}

/// The table of sequences: a row for each, with its `name` and its `next_number`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sequences {
    /// Hostgroup whose writer has it.
    pub hostgroup: u32,
    /// As statements say it.
    table: String,
}

impl Sequences {
    /// Of `schema.table`; `None` for what is none.
    #[must_use]
    pub fn of(hostgroup: u32, table: &str) -> Option<Self> {
        let table = quoted_table(table)?;
        Some(Self { hostgroup, table })
    }

    /// Takes so many numbers of a table's sequence. The insert id of the OK is the first number behind
    /// them; 0 if the sequence has no row.
    #[must_use]
    pub fn take(&self, name: &str, count: u32) -> String {
        let (table, hex) = (&self.table, hex(name));
        format!(
            "UPDATE {table} SET next_number = LAST_INSERT_ID(next_number + {count}) WHERE name = _utf8mb4 0x{hex}"
        )
    }

    /// Words for an operator whose sequence has no row yet.
    #[must_use]
    pub fn how_to_begin(&self, name: &str) -> String {
        format!(
            "INSERT INTO {} (name, next_number) VALUES ('{}', <a number that no row has, nor any after it>) on hostgroup {} begins it",
            self.table,
            name.replace('\'', "''"),
            self.hostgroup
        )
    }
}

pub(crate) fn hex(text: &str) -> String {
    use std::fmt::Write;
    let mut hex = String::with_capacity(text.len() * 2);
    for byte in text.bytes() {
        let _never = write!(hex, "{byte:02x}");
    }
    hex
}
