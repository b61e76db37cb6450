//! The rows of one table, out of a log that has many.

use crate::column::{Column, columns};
use crate::event::{Event, Rows, Table, Text};
use crate::packed;
use crate::rows::Row;
use crate::touched::Touched;
use wire::Malformed;

/// So many rows of one transaction are kept for whoever watches.
const ROWS_MAX: usize = 1_000_000;
const TOO_MANY: Malformed = Malformed::new("a transaction that changes too many rows");
const OTHER_COLUMNS: Malformed = Malformed::new("a table with other columns than it had");

/// One table that is watched. It sees the events of a log, in order, and keeps the rows of the
/// transaction that goes on.
#[derive(Debug)]
pub struct Watch {
    schema: Box<[u8]>,
    name: Box<[u8]>,
    /// Whether each column is a number without a sign, as its definition has it.
    unsigned: Vec<bool>,
    /// Its number, and its columns, while there is one.
    known: Option<(u64, Vec<Column>)>,
    rows: Vec<Row>, // <= ROWS_MAX
    /// A statement has named it, or has names that are not known.
    said: bool,
}

impl Watch {
    /// Watches this table. `unsigned`: for each column, whether it is a number without a sign.
    #[must_use]
    pub fn new(schema: &[u8], name: &[u8], unsigned: Vec<bool>) -> Self {
        Self {
            schema: schema.into(),
            name: name.into(),
            unsigned,
            known: None,
            rows: Vec::new(),
            said: false,
        }
    }

    /// Sees an event.
    ///
    /// # Errors
    /// Rows of the table cannot be read, or are too many.
    pub fn see(&mut self, event: &Event<'_>) -> Result<(), Malformed> {
        match event {
            Event::Begins { .. } => self.rows.clear(),
            Event::Table(table) => self.knows(table)?,
            Event::Rows(rows) => self.changes(rows)?,
            Event::Text(text) => self.hears(text),
            Event::PackedText(text) => match packed::text(text.sql)? {
                Some(sql) => self.hears(&Text { sql: &sql, ..*text }),
                None => self.said = true,
            },
            Event::Incident => self.said = true,
            _ => {}
        }
        Ok(())
    }

    /// Rows that were changed since the transaction began; they are not kept any longer.
    pub fn take(&mut self) -> Vec<Row> {
        std::mem::take(&mut self.rows)
    }

    /// Whether a statement has named it, or may have; that is not told again.
    pub fn take_said(&mut self) -> bool {
        std::mem::take(&mut self.said)
    }

    fn hears(&mut self, text: &Text<'_>) {
        let mut touched = Touched::default();
        touched.add_text(text);
        let is_it = |(schema, name): (&[u8], &[u8])| {
            schema.eq_ignore_ascii_case(&self.schema) && name.eq_ignore_ascii_case(&self.name)
        };
        self.said |= touched.is_everything() || touched.names().any(is_it);
    }

    fn knows(&mut self, table: &Table<'_>) -> Result<(), Malformed> {
        if table.schema != &*self.schema || table.name != &*self.name {
            // Numbers are given again.
            if self
                .known
                .as_ref()
                .is_some_and(|(number, _)| *number == table.number)
            {
                self.known = None;
            }
            return Ok(());
        }
        let mut columns = columns(table.columns)?;
        if columns.len() != self.unsigned.len() {
            return Err(OTHER_COLUMNS);
        }
        for (column, unsigned) in columns.iter_mut().zip(&self.unsigned) {
            column.unsigned = Some(*unsigned);
        }
        self.known = Some((table.number, columns));
        Ok(())
    }

    fn changes(&mut self, rows: &Rows<'_>) -> Result<(), Malformed> {
        let Some((_, columns)) = self
            .known
            .as_ref()
            .filter(|(number, _)| *number == rows.table)
        else {
            return Ok(());
        };
        self.rows.extend(rows.read(columns)?);
        match self.rows.len() > ROWS_MAX {
            true => Err(TOO_MANY),
            false => Ok(()),
        }
    }
}
