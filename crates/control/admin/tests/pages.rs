//! The pages of `docs/admin`: every variable, table and counter, as they are declared.
//! `cargo xtask docs` writes them anew.
#![expect(
    clippy::unwrap_used,
    reason = "a declaration that SQLite refuses, or a page that cannot be written, fails the test"
)]

use admin::tables::{self, Kind, Module, Runtime, Schema, Table};
use bridge::Counter;
use config::{REGISTRY, Variable};
use rusqlite::Connection;
use std::fmt::Write as _;

#[test]
fn the_pages_are_as_variables_are_declared() {
    compare("variables.md", &variables());
}

#[test]
fn the_pages_are_as_tables_are_declared() {
    compare("tables.md", &tables());
}

#[test]
fn the_pages_are_as_counters_are_declared() {
    compare("counters.md", &counters());
}

fn compare(name: &str, told: &str) {
    let path = format!("{}/../../../docs/admin/{name}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(path, told).unwrap();
        return;
    }
    let page = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = (1..)
        .zip(page.lines().zip(told.lines()))
        .find(|(_, (a, b))| a != b);
    if let Some((number, (page, told))) = differs {
        panic!(
            "{name}:{number} is\n{page}\nand declared is\n{told}\n(`cargo xtask docs` writes it)"
        );
    }
    assert!(
        page == told,
        "{name} is not whole: `cargo xtask docs` writes it"
    );
}

/// Begins a page.
fn page(title: &str, words: &str) -> String {
    format!(
        "# {title}\n\n<!-- Written by `cargo xtask docs`; a test compares it with the declarations. -->\n\n{words}\n"
    )
}

/// Text for a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

/// Value for a cell, empty if there is none.
fn code(text: &str) -> String {
    match text {
        "" => String::new(),
        text => format!("`{}`", cell(text)),
    }
}

const VARIABLES: &str = "\
`SET name = value`, then `LOAD … VARIABLES TO RUNTIME` and `SAVE … VARIABLES TO DISK` \
([the admin port](../features/admin.md)). A change takes effect with the LOAD unless the sentence says otherwise. \
Other pages: [tables](tables.md), [counters](counters.md).";

fn variables() -> String {
    let mut text = page("Variables", VARIABLES);
    let families = [
        Module::MysqlVariables,
        Module::AdminVariables,
        Module::SqliteVariables,
        Module::ClickhouseVariables,
    ];
    for family in families {
        let prefix = family.prefix().unwrap();
        _ = writeln!(
            text,
            "\n## {}\n\n`LOAD {} TO RUNTIME`\n\n| variable | default | must be | |\n|---|---|---|---|",
            prefix.trim_end_matches('-'),
            family.words()
        );
        for variable in REGISTRY.iter().filter(|one| one.name.starts_with(prefix)) {
            text.push_str(&variable_line(variable));
        }
    }
    let shown = text.lines().filter(|line| line.starts_with("| `")).count();
    assert_eq!(shown, REGISTRY.len(), "a variable is of no family");
    text
}

fn variable_line(variable: &Variable) -> String {
    format!(
        "| `{}` | {} | {} | {} |\n",
        variable.name,
        code(variable.default),
        cell(&variable.range()),
        cell(&variable.description())
    )
}

const TABLES: &str = "\
As the [admin port](../features/admin.md) has them. Each stands in one place or in several: `runtime_` is what is in force, \
`disk` what was saved, `_reset` begins anew when it is read. Other pages: [variables](variables.md), [counters](counters.md).";

fn tables() -> String {
    let mut text = page("Tables", TABLES);
    for table in tables::all() {
        let copies: Vec<_> = table
            .copies()
            .into_iter()
            .map(|copy| format!("`{}.{}`", copy.schema.name(), copy.name))
            .collect();
        _ = write!(
            text,
            "\n## {}\n\n{}{}\n\nWhere: {}.\n\n{}",
            heading(table),
            table.about,
            moved(table),
            copies.join(", "),
            columns(table)
        );
    }
    text
}

/// Name as an operator writes it.
fn heading(table: &'static Table) -> String {
    match table.copies().first().map(|copy| copy.schema) {
        Some(Schema::Main) | None => table.name.to_owned(),
        Some(schema) => format!("{}.{}", schema.name(), table.name),
    }
}

/// Sentence about who moves its rows.
fn moved(table: &Table) -> String {
    let Kind::Declared {
        module, runtime, ..
    } = table.kind
    else {
        return String::new();
    };
    let loaded = format!(" `LOAD {} TO RUNTIME` puts it into force.", module.words());
    match runtime {
        Runtime::Honoured => loaded,
        Runtime::NotYet { does, .. } => format!("{loaded} This version {does}."),
    }
}

/// Columns as SQLite understands them, with what a value has to satisfy.
fn columns(table: &Table) -> String {
    // Two schemas have a table of one name.
    let database = Connection::open_in_memory().unwrap();
    let made = format!("CREATE TABLE {} {}", table.name, table.columns);
    // A table without columns would be no table: this also proves the declaration.
    database.execute_batch(&made).unwrap();
    let mut text =
        String::from("| column | type | default | key | must satisfy |\n|---|---|---|--:|---|\n");
    let mut statement = database
        .prepare("SELECT name, type, dflt_value, pk FROM pragma_table_info(?1)")
        .unwrap();
    let mut rows = statement.query([table.name]).unwrap();
    while let Some(row) = rows.next().unwrap() {
        let (name, kind): (String, String) = (row.get(0).unwrap(), row.get(1).unwrap());
        let default: Option<String> = row.get(2).unwrap();
        let key: u32 = row.get(3).unwrap();
        _ = writeln!(
            text,
            "| `{name}` | {kind} | {} | {} | {} |",
            code(default.as_deref().unwrap_or_default()),
            if key == 0 {
                String::new()
            } else {
                key.to_string()
            },
            code(&checked(table.columns, &name))
        );
    }
    text
}

/// Expression of a column's CHECK, which stands on the column's line.
fn checked(columns: &str, name: &str) -> String {
    let line = columns.lines().map(str::trim).find(|line| {
        line.strip_prefix(name)
            .is_some_and(|rest| rest.starts_with(' '))
    });
    let Some((_, rest)) = line.and_then(|line| line.split_once("CHECK")) else {
        return String::new();
    };
    let rest = rest.trim_start();
    let mut depth = 0;
    for (at, letter) in rest.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return rest[1..at].trim().to_owned();
        }
    }
    panic!("a CHECK of {name} does not end");
}

const COUNTERS: &str = "\
Rows of `stats_mysql_global` that cores count. Gauges go up and down, the rest only up until the process ends. The table has some more, \
which the process as a whole knows. Other pages: [variables](variables.md), [tables](tables.md).";

fn counters() -> String {
    let mut text = page("Counters", COUNTERS);
    text.push_str("\n| counter | |\n|---|---|\n");
    for counter in Counter::ALL {
        _ = writeln!(text, "| `{}` | {} |", counter.name(), cell(counter.about()));
    }
    text
}
