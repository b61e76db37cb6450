//! A part of a snapshot: a module of which something is in force, and all that is done with it.

use super::tables::{Line, PartTable, Pieces, Sight, Tables};
use crate::engine::SqlError;
use crate::tables::Module;
use config::{Help, Refusal, Snapshot};
use rusqlite::Connection;

/// Notices about what was built, or every reason against it.
pub(crate) type Outcome = Result<Vec<Refusal>, Vec<Refusal>>;

/// Change of a snapshot by rows that were read; on this thread or on another.
pub(crate) type Change = Box<dyn FnOnce(&mut Snapshot, &dyn Help) -> Outcome + Send>;

/// Operations of LOAD, SAVE and other proxies on a part.
pub(crate) trait Moved: Sync {
    fn module(&self) -> Module;

    /// Its tables; none if it consists of variables.
    fn tables(&self) -> &'static [PartTable];

    /// Reads what memory has of the part, or tells every reason against a row.
    fn read(&self, conn: &Connection) -> Result<Change, Vec<Refusal>>;

    /// Reads what another proxy has given of the part.
    fn take(&self, pieces: &Pieces, help: &dyn Help) -> Result<Change, Vec<Refusal>>;

    /// Writes what is in force into a schema; of variables those that are `wanted`.
    fn write(
        &self,
        conn: &Connection,
        schema: &str,
        snapshot: &Snapshot,
        wanted: &dyn Fn(&str) -> bool,
    ) -> Result<(), SqlError>;

    /// Tells what other proxies get of what is in force, a line of JSON a row, each with its table.
    fn lines(&self, snapshot: &Snapshot, line: &mut Line<'_>);

    /// Fills the `runtime_` copy of one of its tables; `sight` tells how the servers are.
    fn show(
        &self,
        conn: &Connection,
        table: &str,
        snapshot: &Snapshot,
        sight: &Sight,
    ) -> Result<(), SqlError>;
}

/// A module that consists of tables.
pub(super) trait Part: Sync {
    const MODULE: Module;

    /// Its rows: a tuple with a `Vec` for each table, in the order in which they are told.
    type Rows: Tables;

    /// Puts them into the next snapshot.
    fn build(next: &mut Snapshot, rows: Self::Rows, help: &dyn Help) -> Outcome;
}

impl<P: Part> Moved for P {
    fn module(&self) -> Module {
        P::MODULE
    }

    fn tables(&self) -> &'static [PartTable] {
        P::Rows::TABLES
    }

    fn read(&self, conn: &Connection) -> Result<Change, Vec<Refusal>> {
        let rows = P::Rows::read(conn)?;
        Ok(Box::new(move |next, help| P::build(next, rows, help)))
    }

    fn take(&self, pieces: &Pieces, help: &dyn Help) -> Result<Change, Vec<Refusal>> {
        let rows = P::Rows::take(pieces, help)?;
        Ok(Box::new(move |next, help| P::build(next, rows, help)))
    }

    fn write(
        &self,
        conn: &Connection,
        schema: &str,
        snapshot: &Snapshot,
        _wanted: &dyn Fn(&str) -> bool,
    ) -> Result<(), SqlError> {
        P::Rows::write(conn, schema, snapshot)
    }

    fn lines(&self, snapshot: &Snapshot, line: &mut Line<'_>) {
        P::Rows::lines(snapshot, line);
    }

    fn show(
        &self,
        conn: &Connection,
        table: &str,
        snapshot: &Snapshot,
        sight: &Sight,
    ) -> Result<(), SqlError> {
        P::Rows::show(conn, table, snapshot, sight)
    }
}

/// Rows, with a pause now and then.
pub(super) fn paused<'p, T: 'p>(rows: Vec<T>, help: &'p dyn Help) -> impl Iterator<Item = T> + 'p {
    let at_once = |(at, row)| {
        if at % 64 == 0 {
            help.pause();
        }
        row
    };
    rows.into_iter().enumerate().map(at_once)
}
