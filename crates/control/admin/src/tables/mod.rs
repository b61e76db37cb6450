//! Every admin table, one value each. The `runtime_`, `disk` and `_reset` copies are derived from it.

mod declared;
mod history;
mod module;
mod monitor;
mod stats;
mod table;

pub use module::Module;
pub use table::{Kind, Observe, Role, Runtime, Schema, Table, TableCopy};

/// The one list.
pub const TABLES: &[&[Table]] = &[
    declared::TABLES,
    stats::TABLES,
    monitor::TABLES,
    history::TABLES,
];

/// All of them.
pub fn all() -> impl Iterator<Item = &'static Table> {
    TABLES.iter().copied().flatten()
}

/// The tables of a module.
pub fn of(module: Module) -> impl Iterator<Item = &'static Table> {
    let is_its = move |table: &&Table| matches!(table.kind, Kind::Declared { module: own, .. } if own == module);
    all().filter(is_its)
}

/// Every table of every schema.
#[must_use]
pub fn copies() -> Vec<TableCopy> {
    all().flat_map(Table::copies).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_declared_once_and_its_columns_are_the_same_in_every_copy() {
        let mut seen: Vec<_> = copies()
            .iter()
            .map(|copy| (copy.schema.name(), copy.name.clone()))
            .collect();
        let count = seen.len();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), count);
        for table in all() {
            assert!(table.about.ends_with('.'), "{}", table.name);
            assert!(
                table
                    .copies()
                    .iter()
                    .all(|copy| copy.ddl("x").ends_with(table.columns))
            );
        }
    }

    #[test]
    fn every_module_has_tables_or_variables() {
        for module in Module::ALL {
            assert!(
                module.prefix().is_some() != (of(*module).count() > 0),
                "{module:?}"
            );
        }
    }
}
