//! Columns of tables in their order, as servers have told them.

use std::collections::BTreeMap;

/// Columns of a table that rows without a list have values for, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ColumnOrder {
    /// Names as the server has them.
    pub names: Vec<String>,
}

impl ColumnOrder {
    /// Reads rows of `SHOW COLUMNS`. Invisible columns are left out, as servers do.
    #[must_use]
    pub fn read(rows: &[Vec<Option<Vec<u8>>>]) -> Self {
        let text = |row: &Vec<Option<Vec<u8>>>, at: usize| {
            let cell = row.get(at)?.as_deref()?;
            Some(String::from_utf8_lossy(cell).into_owned())
        };
        let names = rows.iter().filter_map(|row| {
            let name = text(row, 0)?;
            let extra = text(row, row.len().checked_sub(1)?).unwrap_or_default();
            (!extra.to_ascii_uppercase().contains("INVISIBLE")).then_some(name)
        });
        Self {
            names: names.collect(),
        }
    }

    pub(crate) fn is_ascii(&self) -> bool {
        self.names.iter().all(|name| name.is_ascii())
    }
}

/// Orders of columns that servers have told, by the number of their table in its map and by the schema
/// that a statement means.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Described(BTreeMap<(u32, String), ColumnOrder>);

impl Described {
    /// Remembers the columns of a table.
    pub fn learn(&mut self, table: u32, schema: &str, columns: ColumnOrder) {
        self.0.insert((table, schema.to_owned()), columns);
    }

    /// Forgets those of which this is not true.
    pub fn retain(&mut self, mut keeps: impl FnMut(u32, &str) -> bool) {
        self.0.retain(|(table, schema), _| keeps(*table, schema));
    }

    /// The columns of a table.
    #[must_use]
    pub fn of(&self, table: u32, schema: &str) -> Option<&ColumnOrder> {
        // A look-up by borrowed parts would need a map of maps.
        self.0.get(&(table, schema.to_owned()))
    }

    /// Whether nothing is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Knowledge of columns that a statement may be read by.
#[derive(Debug, Clone, Copy)]
pub struct KnownColumns<'a> {
    /// Tables whose columns were asked for.
    pub described: &'a Described,
    /// Whether the statement is written in UTF-8, as the names are.
    pub is_utf8: bool,
}

/// Columns that a server must be asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undescribed {
    /// Number of the table in its map.
    pub table: u32,
    /// The schema that the statement means; empty for none.
    pub schema: String,
    /// Hostgroups that have the table, with its name there as SQL has it.
    pub places: Vec<(u32, String)>,
}
