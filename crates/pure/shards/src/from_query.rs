//! Rows of a query on their way into a sharded table: how they are read, and where each belongs.

use crate::cuts::physical_of;
use crate::map::Table;
use crate::written::home_written;
use sql::tree::Literal;
use std::ops::Range;

/// Rows of a query that are read, and inserted into a sharded table then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FromQuery {
    /// Place of the query in the text.
    pub query: Range<usize>,
    /// Number in its map of the table that gets the rows; none for a plain table.
    pub table: Option<u32>,
    /// Which of the columns is the key, from 0.
    pub key: usize,
    /// Number of the columns; none if they are not named.
    pub columns: Option<usize>,
    /// Partitions that may get rows, for people.
    pub partitions: String,
    /// Hostgroup of a plain table, where that is known.
    pub hostgroup: u32,
    /// Text before the table's name.
    pub(crate) before: Vec<u8>,
    /// Text behind it, up to the query.
    pub(crate) behind: Vec<u8>,
    /// Schema that the statement says.
    pub(crate) said: Option<String>,
    /// The table's name as the statement has it.
    pub(crate) plain: String,
}

/// A home that gets rows.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    /// The writer's hostgroup.
    pub hostgroup: u32,
    /// Name of the table there, as SQL has it.
    pub table: String,
    /// The partition, for people.
    pub partition: String,
}

/// A value of a row, as far as it matters for where the row belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyCell<'a> {
    /// NULL.
    Null,
    /// A number as a server writes it.
    Number(&'a [u8]),
    /// Anything else as a server writes it.
    Text(&'a [u8]),
}

impl FromQuery {
    /// Where a row belongs. `table`: that of [`FromQuery::table`].
    ///
    /// # Errors
    /// A sentence: why that is not known.
    pub fn home(&self, table: Option<&Table>, key: KeyCell<'_>) -> Result<Target, String> {
        let Some(table) = table else {
            return Ok(Target {
                hostgroup: self.hostgroup,
                table: self.plain.clone(),
                partition: self.plain.clone(),
            });
        };
        let literal = match key {
            KeyCell::Null => Literal::Null,
            KeyCell::Number(text) => match text.strip_prefix(b"-") {
                Some(digits) => Literal::Number(digits, true),
                None => Literal::Number(text, false),
            },
            KeyCell::Text(text) => Literal::Text(text.into()),
        };
        let home = &table.homes[home_written(table, &literal, &mut None)?];
        Ok(Target {
            hostgroup: home.hostgroup,
            table: physical_of(home, self.said.as_deref()),
            partition: table.shown_at(home),
        })
    }

    /// The beginning of an INSERT there, up to its first row.
    #[must_use]
    pub fn begins(&self, at: &Target) -> Vec<u8> {
        [&self.before, at.table.as_bytes(), &self.behind, b" VALUES "].concat()
    }
}
