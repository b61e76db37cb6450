//! Tuples of rows: what is done with all tables of a part, written once for each number of tables.

use crate::engine::SqlError;
use crate::rows::{self, Mapped, sql_refusal};
use bridge::Report;
use config::{Help, Refusal, Snapshot};
use rusqlite::Connection;
use std::sync::Arc;
use topology::Observed;

/// The rows of a module as a proxy gives them, each piece with its table and a row a line.
pub(crate) type Pieces = Vec<(String, Vec<u8>)>;

/// Function that is told a row, as JSON, and its table.
pub(crate) type Line<'l> = dyn FnMut(&'static str, &[u8]) + 'l;

/// How the servers are, as far as a `runtime_` table shows it.
#[derive(Default)]
pub(crate) struct Sight {
    /// As the cores see them.
    pub(crate) pool: Option<Report>,
    /// As the monitor sees them.
    pub(crate) observed: Arc<Observed>,
}

/// A table of a part.
pub(crate) struct PartTable {
    pub(crate) name: &'static str,
    /// See [`InForce::IS_LARGE`].
    pub(super) is_large: bool,
    /// As rows have them.
    pub(crate) columns: &'static [&'static str],
    /// See [`Mapped::KINDS`].
    pub(crate) kinds: &'static [&'static str],
}

/// A row that can be in force.
pub(super) trait InForce: Mapped + Send + 'static {
    /// So many are usual that its `runtime_` copy is filled only when something else is in force.
    const IS_LARGE: bool = false;

    /// Those that are.
    fn in_force(snapshot: &Snapshot) -> impl Iterator<Item = Self>;

    /// Returns what the `runtime_` copy of the table shows.
    fn shown(snapshot: &Snapshot, _sight: &Sight) -> impl Iterator<Item = Self> {
        Self::in_force(snapshot)
    }
}

/// The rows of several tables.
pub(super) trait Tables: Sized + Send + 'static {
    const TABLES: &'static [PartTable];

    /// Reads what memory has, or tells the reasons against each row of each table.
    fn read(conn: &Connection) -> Result<Self, Vec<Refusal>>;

    /// Reads what another proxy has given.
    fn take(pieces: &Pieces, help: &dyn Help) -> Result<Self, Vec<Refusal>>;

    /// Makes the tables of a schema hold what is in force, and nothing else.
    fn write(conn: &Connection, schema: &str, snapshot: &Snapshot) -> Result<(), SqlError>;

    /// Tells what is in force, row by row.
    fn lines(snapshot: &Snapshot, line: &mut Line<'_>);

    /// Fills one `runtime_` table.
    fn show(
        conn: &Connection,
        table: &str,
        snapshot: &Snapshot,
        sight: &Sight,
    ) -> Result<(), SqlError>;
}

/// For this many tables, and for fewer.
macro_rules! tables {
    () => {};
    ($first:ident $($more:ident)*) => {
        tables! { $($more)* }

        impl<$first: InForce, $($more: InForce),*> Tables for (Vec<$first>, $(Vec<$more>),*) {
            const TABLES: &'static [PartTable] = &[table::<$first>(), $(table::<$more>()),*];

            fn read(conn: &Connection) -> Result<Self, Vec<Refusal>> {
                let mut refused = Vec::new();
                let rows = (
                    read::<$first>(conn, &mut refused),
                    $(read::<$more>(conn, &mut refused)),*
                );
                if refused.is_empty() { Ok(rows) } else { Err(refused) }
            }

            fn take(pieces: &Pieces, help: &dyn Help) -> Result<Self, Vec<Refusal>> {
                Ok((take::<$first>(pieces, help)?, $(take::<$more>(pieces, help)?),*))
            }

            fn write(conn: &Connection, schema: &str, snapshot: &Snapshot) -> Result<(), SqlError> {
                rows::replace_in(conn, schema, $first::TABLE, $first::in_force(snapshot))?;
                $(rows::replace_in(conn, schema, $more::TABLE, $more::in_force(snapshot))?;)*
                Ok(())
            }

            fn lines(snapshot: &Snapshot, line: &mut Line<'_>) {
                lines::<$first>(snapshot, line);
                $(lines::<$more>(snapshot, line);)*
            }

            fn show(
                conn: &Connection,
                table: &str,
                snapshot: &Snapshot,
                sight: &Sight,
            ) -> Result<(), SqlError> {
                match table {
                    name if name == $first::TABLE => show::<$first>(conn, snapshot, sight),
                    $(name if name == $more::TABLE => show::<$more>(conn, snapshot, sight),)*
                    _ => Ok(()),
                }
            }
        }
    };
}

tables! { A B C D E F G H }

const fn table<T: InForce>() -> PartTable {
    PartTable {
        name: T::TABLE,
        is_large: T::IS_LARGE,
        columns: T::COLUMNS,
        kinds: T::KINDS,
    }
}

fn read<T: InForce>(conn: &Connection, refused: &mut Vec<Refusal>) -> Vec<T> {
    rows::read(conn, "").unwrap_or_else(|wrong| {
        refused.extend(wrong);
        Vec::new()
    })
}

/// Of what was given, the rows of one table.
fn take<T: Mapped>(pieces: &Pieces, help: &dyn Help) -> Result<Vec<T>, Vec<Refusal>> {
    let mut rows = Vec::new();
    for (_, text) in pieces.iter().filter(|(table, _)| table == T::TABLE) {
        help.pause();
        for line in text.split(|byte| *byte == b'\n') {
            let row = T::read_json(line)
                .map_err(|error| vec![no_row(T::TABLE, rows.len() + 1, &error)])?;
            rows.push(row);
        }
    }
    Ok(rows)
}

/// Where it does not fit, and not what stands there: it may be a password, and this is for the log.
pub(super) fn no_row(table: &'static str, nth: usize, error: &serde_json::Error) -> Refusal {
    let words = format!(
        "has no row of this version as number {nth}: it does not fit at its byte {}",
        error.column()
    );
    sql_refusal(table, SqlError(words))
}

fn lines<T: InForce>(snapshot: &Snapshot, line: &mut Line<'_>) {
    let mut text = Vec::new();
    for row in T::in_force(snapshot) {
        text.clear();
        row.write_json(&mut text);
        line(T::TABLE, &text);
    }
}

fn show<T: InForce>(conn: &Connection, snapshot: &Snapshot, sight: &Sight) -> Result<(), SqlError> {
    let rows = T::shown(snapshot, sight);
    rows::replace(conn, &format!("runtime_{}", T::TABLE), rows)
}
