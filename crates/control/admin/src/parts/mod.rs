//! The modules of which something is in force, one file a module: its tables in order, and how
//! their rows become a part of a snapshot.
//!
//! LOAD, SAVE, `runtime_` tables, checksums and what proxies take from each other all go by
//! [`PARTS`]. ARCHITECTURE.md says how a table is added.

mod clickhouse;
mod firewall;
mod proxies;
mod rest;
mod rules;
mod scheduler;
mod scripts;
mod servers;
mod shards;
mod tables;
mod users;
mod variables;

pub(crate) use firewall::{of_user, unseen};
pub(crate) use tables::{Line, Pieces};
pub(crate) use users::build as build_users;
#[cfg(test)]
pub(crate) use variables::NOT_SHARED;
pub(crate) use variables::{
    Pairs, TABLE as VARIABLES, checked as checked_variables, is_shared, read as read_variables,
    saved as saved_variables,
};

use crate::engine::SqlError;
use crate::tables::Module;
use bridge::Report;
use config::{Help, Refusal, Snapshot};
use rusqlite::Connection;
use std::sync::Arc;
use tables::Tables;
use topology::Observed;

/// Notices about what was built, or every reason against it.
pub(crate) type Outcome = Result<Vec<Refusal>, Vec<Refusal>>;

/// Change of a snapshot by rows that were read; on this thread or on another.
pub(crate) type Change = Box<dyn FnOnce(&mut Snapshot, &dyn Help) -> Outcome + Send>;

/// How the servers are, as far as a `runtime_` table shows it.
#[derive(Default)]
pub(crate) struct Sight {
    /// As the cores see them.
    pub(crate) pool: Option<Report>,
    /// As the monitor sees them.
    pub(crate) observed: Arc<Observed>,
}

/// Every module of which something can be in force.
const PARTS: &[&dyn Moved] = &[
    &servers::Servers,
    &users::Users,
    &rules::Rules,
    &firewall::Firewall,
    &shards::Shards,
    &scripts::Scripts,
    &proxies::Proxies,
    &scheduler::Scheduler,
    &rest::Rest,
    &clickhouse::ClickhouseUsers,
    &variables::Family(Module::MysqlVariables),
    &variables::Family(Module::AdminVariables),
    &variables::Family(Module::SqliteVariables),
    &variables::Family(Module::ClickhouseVariables),
];

/// The part that is this module; none if nothing of it is ever in force.
pub(crate) fn of(module: Module) -> Option<&'static dyn Moved> {
    PARTS.iter().copied().find(|part| part.module() == module)
}

/// The part to which a table belongs.
pub(crate) fn with_table(name: &str) -> Option<&'static dyn Moved> {
    let has = |part: &&dyn Moved| part.tables().iter().any(|table| table.name == name);
    PARTS.iter().copied().find(has)
}

/// Whether a table may have so many rows that its `runtime_` copy is filled only when something
/// else is in force.
pub(crate) fn is_large(name: &str) -> bool {
    let mut tables = PARTS.iter().flat_map(|part| part.tables());
    tables.any(|table| table.name == name && table.is_large)
}

/// A module that consists of tables.
trait Part: Sync {
    const MODULE: Module;

    /// Its rows: a tuple with a `Vec` for each table, in the order in which they are told.
    type Rows: Tables;

    /// Puts them into the next snapshot.
    fn build(next: &mut Snapshot, rows: Self::Rows, help: &dyn Help) -> Outcome;
}

/// A table of a part.
pub(crate) struct PartTable {
    pub(crate) name: &'static str,
    /// See [`is_large`].
    is_large: bool,
    /// As rows have them.
    pub(crate) columns: &'static [&'static str],
    /// See [`crate::rows::Mapped::KINDS`].
    pub(crate) kinds: &'static [&'static str],
}

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
fn paused<'p, T: 'p>(rows: Vec<T>, help: &'p dyn Help) -> impl Iterator<Item = T> + 'p {
    let at_once = |(at, row)| {
        if at % 64 == 0 {
            help.pause();
        }
        row
    };
    rows.into_iter().enumerate().map(at_once)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Engine, View};
    use crate::tables::{Kind, Runtime};

    #[test]
    fn parts_have_the_tables_that_are_declared_as_honoured() {
        let honoured = |module: Module| {
            let is_honoured = |table: &&crate::tables::Table| {
                let Kind::Declared { runtime, .. } = table.kind else {
                    return false;
                };
                runtime == Runtime::Honoured
            };
            let mut names: Vec<_> = module
                .tables()
                .filter(is_honoured)
                .map(|t| t.name)
                .collect();
            names.sort_unstable();
            names
        };
        for module in Module::ALL {
            let of_part = of(*module).map_or(&[][..], |part| part.tables());
            let mut names: Vec<_> = of_part.iter().map(|table| table.name).collect();
            names.sort_unstable();
            assert_eq!(names, honoured(*module), "{module:?}");
            assert!(of(*module).is_some() || module.prefix().is_none());
        }
    }

    /// A37, A38: what is read and written is what the tables have.
    #[test]
    fn the_columns_of_rows_are_the_columns_of_their_tables() {
        let engine = Engine::open(None, View::Admin).unwrap();
        for table in PARTS.iter().flat_map(|part| part.tables()) {
            let (_, columns) = engine
                .describe(&format!("SELECT * FROM {}", table.name), |_| false)
                .unwrap();
            assert_eq!(columns, table.columns, "{}", table.name);
        }
    }
}
