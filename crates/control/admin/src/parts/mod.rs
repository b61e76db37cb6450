//! The modules of which something is in force, one file a module: its tables in order, and how
//! their rows become a part of a snapshot.
//!
//! LOAD, SAVE, `runtime_` tables, checksums and what proxies take from each other all go by
//! [`PARTS`]. ARCHITECTURE.md says how a table is added.

mod clickhouse;
mod firewall;
mod part;
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
pub(crate) use part::Outcome;
pub(crate) use scripts::read_scripts_again;
pub(crate) use tables::{Line, PartTable, Pieces, Sight};
pub(crate) use users::build as build_users;
#[cfg(test)]
pub(crate) use variables::NOT_SHARED;
pub(crate) use variables::{
    Pairs, TABLE as VARIABLES, checked as checked_variables, is_shared, read as read_variables,
    saved as saved_variables,
};

use crate::tables::Module;
use part::Moved;

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
            let mut names: Vec<_> = crate::tables::of(module)
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
