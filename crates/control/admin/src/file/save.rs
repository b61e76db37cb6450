//! Memory as a configuration file that can be read again: `SAVE CONFIG TO FILE`, `SELECT CONFIG
//! FILE`.

use crate::engine::SqlError;
use crate::tables::{self, Kind, Table};
use rusqlite::Connection;
use rusqlite::types::ValueRef;
use std::fmt::Write as _;

const HEAD: &str =
    "# Written by Millrace. The grammar is libconfig's, the names are those of the admin tables.
# A configuration file is read when there is no database yet, and with --initial or --reload.
";

/// Groups of variables, with the space that ProxySQL leaves behind some of their names.
const GROUPS: &[(&str, &str)] = &[
    ("admin_variables =", "admin-"),
    ("mysql_variables = ", "mysql-"),
    ("sqliteserver_variables = ", "sqliteserver-"),
    ("clickhouse_variables =", "clickhouse-"),
];

/// Lists that are always there, in ProxySQL's order.
const LISTS: &[&str] = &[
    "mysql_users",
    "mysql_query_rules",
    "mysql_servers",
    "mysql_replication_hostgroups",
    "mysql_group_replication_hostgroups",
    "mysql_galera_hostgroups",
    "mysql_aws_aurora_hostgroups",
    "scheduler",
    "proxysql_servers",
];

/// Lists that ProxySQL does not write, in our order: they are there if they have rows, and so is
/// every other table that is kept on disk.
const MORE: &[&str] = &[
    "mysql_query_rules_fast_routing",
    "mysql_query_rewrite",
    "mysql_hostgroup_attributes",
    "mysql_servers_ssl_params",
    "restapi_routes",
];

/// The lists, and whether they are always there.
fn lists() -> impl Iterator<Item = (&'static str, bool)> {
    let always = LISTS.iter().map(|table| (*table, true));
    let is_other = |table: &&Table| {
        let is_kept = matches!(table.kind, Kind::Declared { disk: true, .. });
        is_kept && !LISTS.contains(&table.name) && !MORE.contains(&table.name)
    };
    let others = tables::all().filter(is_other).map(|table| table.name);
    always.chain(
        MORE.iter()
            .copied()
            .chain(others)
            .map(|table| (table, false)),
    )
}

/// The text.
pub fn text(conn: &Connection) -> Result<String, SqlError> {
    let mut out = HEAD.to_owned();
    for (head, prefix) in GROUPS {
        let _ = write!(out, "{head}\n{{\n");
        let mut select = conn.prepare(
            "SELECT variable_name, variable_value FROM main.global_variables WHERE substr(variable_name, 1, length(?1)) = ?1 ORDER BY 1",
        )?;
        let mut rows = select.query([prefix])?;
        while let Some(row) = rows.next()? {
            let (name, value): (String, String) = (row.get(0)?, row.get(1)?);
            // What is left out is the default when it is read again.
            let means_something = |known: &config::Variable| {
                !known.default.is_empty() && known.check("").is_ok_and(|kept| kept.is_empty())
            };
            if value.is_empty() && !config::Variable::named(&name).is_some_and(means_something) {
                continue;
            }
            let _ = writeln!(out, "\t{}={}", &name[prefix.len()..], quoted(&value));
        }
        out += "}\n\n";
    }
    for (table, always) in lists() {
        let rows = rows(conn, table)?;
        if always || !rows.is_empty() {
            let _ = write!(out, "{table}:\n(\n{rows}\n)\n");
        }
    }
    Ok(out)
}

fn rows(conn: &Connection, table: &str) -> Result<String, SqlError> {
    let mut out = String::new();
    let with_default = texts_with_default(conn, table)?;
    let mut select = conn.prepare(&format!("SELECT * FROM main.{table}"))?;
    let names: Vec<String> = select
        .column_names()
        .into_iter()
        .map(str::to_owned)
        .collect();
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        if !out.is_empty() {
            out += ",\n";
        }
        out += "\t{\n";
        for (at, name) in names.iter().enumerate() {
            match row.get_ref(at)? {
                ValueRef::Null if with_default.contains(name) => {
                    let _ = writeln!(out, "\t\t{name}=\"\"");
                }
                ValueRef::Null => {}
                ValueRef::Integer(number) => {
                    let _ = writeln!(out, "\t\t{name}={number}");
                }
                ValueRef::Real(number) => {
                    let _ = writeln!(out, "\t\t{name}={number}");
                }
                ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
                    let _ = writeln!(
                        out,
                        "\t\t{name}={}",
                        quoted(&String::from_utf8_lossy(bytes))
                    );
                }
            }
        }
        out += "\t}";
    }
    Ok(out)
}

/// Columns of texts that would not be NULL again if they were left out: `re_modifiers`. An empty
/// one means the same.
fn texts_with_default(conn: &Connection, table: &str) -> Result<Vec<String>, SqlError> {
    let mut select = conn.prepare(
        "SELECT name FROM pragma_table_info(?1, 'main') \
         WHERE NOT \"notnull\" AND type NOT LIKE '%INT%' AND coalesce(dflt_value, 'NULL') <> 'NULL'",
    )?;
    let names = select.query_map([table], |row| row.get(0))?;
    Ok(names.collect::<Result<_, _>>()?)
}

fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out += "\\n",
            '\t' => out += "\\t",
            '\r' => out += "\\r",
            c if c.is_ascii_control() => {
                let _ = write!(out, "\\x{:02x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Engine, View};
    use crate::file::{File, into_memory};
    use crate::layers;
    use crate::tables::Module;

    #[test]
    fn what_is_saved_can_be_read_again() {
        let first = Engine::open(None, View::Admin).unwrap();
        layers::add_defaults(first.conn()).unwrap();
        for sql in [
            "INSERT INTO mysql_servers (hostgroup_id, hostname, comment) VALUES (1, 'a', 'say \"hi\"\\ and\ngo'), (2, 'b', 'a\x08b\x7f1\\x')",
            "INSERT INTO mysql_users (username, password) VALUES ('u', 'p;=')",
            "INSERT INTO mysql_query_rules (rule_id, active, match_pattern, apply) VALUES (5, 1, '^SELECT \\d', 1)",
            "INSERT INTO mysql_query_rules (rule_id, match_pattern, re_modifiers) VALUES (6, 'x', NULL), (7, 'x', 'GLOBAL')",
            "INSERT INTO mysql_query_rules_fast_routing VALUES ('u', 's', 0, 2, '')",
            "UPDATE global_variables SET variable_value = 77 WHERE variable_name = 'mysql-max_connections'",
            "UPDATE global_variables SET variable_value = '' WHERE variable_name IN ('admin-stats_credentials', 'mysql-default_schema')",
            "INSERT INTO mysql_users (username, password) VALUES ('true', 'false')",
        ] {
            first.run(sql, &[]).unwrap();
        }
        let saved = text(first.conn()).unwrap();
        assert!(saved.contains("\tmax_connections=\"77\"\n"), "{saved}");
        let second = Engine::open(None, View::Admin).unwrap();
        into_memory(
            &second,
            &File::parse("x.cnf", saved.as_str()).unwrap(),
            Module::ALL,
        )
        .unwrap();
        layers::add_defaults(second.conn()).unwrap();
        assert_eq!(text(second.conn()).unwrap(), saved);
        // A file knows no NULL; to a rule this is the same.
        first
            .run(
                "UPDATE mysql_query_rules SET re_modifiers = '' WHERE re_modifiers IS NULL",
                &[],
            )
            .unwrap();
        for table in [
            "global_variables",
            "mysql_users",
            "mysql_servers",
            "mysql_query_rules",
        ] {
            let rows = |engine: &Engine| {
                engine
                    .run(&format!("SELECT * FROM {table} ORDER BY 1, 2"), &[])
                    .unwrap()
            };
            assert_eq!(rows(&second), rows(&first), "{table}");
        }
    }
}
