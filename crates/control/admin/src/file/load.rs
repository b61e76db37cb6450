//! From a file's settings to the rows of memory. What is not understood is refused by line, never
//! left out silently.

use super::{File, Setting, Value, refusal};
use crate::engine::{Engine, SqlError};
use crate::tables::Module;
use config::Refusal;
use rusqlite::Connection;

/// What a list of a file is: its name, the table, other names of columns, and the module.
type List = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
    Module,
);

const LISTS: &[List] = &[
    (
        "mysql_servers",
        "mysql_servers",
        &[("address", "hostname"), ("hostgroup", "hostgroup_id")],
        Module::Servers,
    ),
    ("mysql_users", "mysql_users", &[], Module::Users),
    ("mysql_query_rules", "mysql_query_rules", &[], Module::Rules),
    (
        "mysql_query_rules_fast_routing",
        "mysql_query_rules_fast_routing",
        &[],
        Module::Rules,
    ),
    (
        "mysql_query_rewrite",
        "mysql_query_rewrite",
        &[],
        Module::Rules,
    ),
    (
        "mysql_hostgroup_attributes",
        "mysql_hostgroup_attributes",
        &[("hostgroup", "hostgroup_id")],
        Module::Servers,
    ),
    (
        "mysql_servers_ssl_params",
        "mysql_servers_ssl_params",
        &[("address", "hostname")],
        Module::Servers,
    ),
    (
        "mysql_replication_hostgroups",
        "mysql_replication_hostgroups",
        &[],
        Module::Servers,
    ),
    (
        "mysql_group_replication_hostgroups",
        "mysql_group_replication_hostgroups",
        &[],
        Module::Servers,
    ),
    (
        "mysql_galera_hostgroups",
        "mysql_galera_hostgroups",
        &[],
        Module::Servers,
    ),
    (
        "mysql_aws_aurora_hostgroups",
        "mysql_aws_aurora_hostgroups",
        &[],
        Module::Servers,
    ),
    ("scheduler", "scheduler", &[], Module::Scheduler),
    ("restapi", "restapi_routes", &[], Module::RestApi),
    ("restapi_routes", "restapi_routes", &[], Module::RestApi),
    (
        "proxysql_servers",
        "proxysql_servers",
        &[("address", "hostname")],
        Module::ProxysqlServers,
    ),
    (
        "mysql_firewall_whitelist_users",
        "mysql_firewall_whitelist_users",
        &[],
        Module::Firewall,
    ),
    (
        "mysql_firewall_whitelist_rules",
        "mysql_firewall_whitelist_rules",
        &[],
        Module::Firewall,
    ),
    (
        "mysql_firewall_whitelist_sqli_fingerprints",
        "mysql_firewall_whitelist_sqli_fingerprints",
        &[],
        Module::Firewall,
    ),
];

/// false and true in variables,
const WORDS: [&str; 2] = ["false", "true"];
/// and in the columns of tables. In quotes they are texts, save in a column of numbers.
const NUMBERS: [&str; 2] = ["0", "1"];

/// Groups of variables.
const GROUPS: &[(&str, Module)] = &[
    ("mysql_variables", Module::MysqlVariables),
    ("admin_variables", Module::AdminVariables),
    ("sqliteserver_variables", Module::SqliteVariables),
];

/// Settings of the process itself. What is `false` is accepted and without effect.
pub const KNOWN: &[(&str, bool)] = &[
    ("datadir", true),
    ("errorlog", true),
    ("pidfile", true),
    ("uuid", false),
    ("restart_on_missing_heartbeats", false),
    ("execute_on_exit_failure", false),
    ("cluster_sync_interfaces", false),
    ("sqlite3_plugin", false),
    ("web_interface_plugin", false),
    ("ldap_auth_plugin", false),
];

/// What a file says of the process itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// Where the databases are.
    pub datadir: Option<String>,
    /// Where the log goes.
    pub errorlog: Option<String>,
    /// Where the process id is written.
    pub pidfile: Option<String>,
    /// Settings that were accepted and have no effect.
    pub without_effect: Vec<String>,
}

impl Settings {
    pub(super) fn of(file: &File) -> Result<Self, Vec<Refusal>> {
        let mut settings = Self::default();
        let mut refused = Vec::new();
        for setting in &file.settings {
            let is_rows = LISTS.iter().any(|(name, ..)| *name == setting.name)
                || GROUPS.iter().any(|(name, _)| *name == setting.name);
            if is_rows {
                continue;
            }
            match (
                KNOWN.iter().find(|(name, _)| *name == setting.name),
                setting.value.one(WORDS),
            ) {
                (Some((_, false)), _) => settings.without_effect.push(setting.name.clone()),
                (Some((name, true)), Some(text)) => match *name {
                    "datadir" => settings.datadir = Some(text.to_owned()),
                    "errorlog" => settings.errorlog = Some(text.to_owned()),
                    _ => settings.pidfile = Some(text.to_owned()),
                },
                (Some(_), _) => refused.push(wrong(file, setting, "must be one value")),
                (None, _) => refused.push(wrong(file, setting, "is not a setting")),
            }
        }
        if refused.is_empty() {
            Ok(settings)
        } else {
            Err(refused)
        }
    }
}

fn wrong(file: &File, setting: &Setting, words: &str) -> Refusal {
    refusal(format!(
        "{} line {}: '{}' {words}",
        file.name, setting.line, setting.name
    ))
}

/// Puts what a file says of `modules` into memory, over what is there; how many rows and variables
/// that were. On any refusal memory stays as it was.
pub(crate) fn into_memory(
    engine: &Engine,
    file: &File,
    modules: &[Module],
) -> Result<u64, Vec<Refusal>> {
    let mut refused = Vec::new();
    if let Err(more) = file.process() {
        refused.extend(more);
    }
    let mut count = 0;
    let outcome = engine.transaction(|conn| {
        for setting in &file.settings {
            let group = GROUPS
                .iter()
                .find(|(name, module)| *name == setting.name && modules.contains(module));
            let list = LISTS
                .iter()
                .find(|(name, _, _, module)| *name == setting.name && modules.contains(module));
            count += match (group, list) {
                (Some((_, module)), _) => variables(conn, file, setting, *module, &mut refused)?,
                (_, Some((_, table, others, _))) => {
                    rows(conn, file, setting, table, others, &mut refused)?
                }
                (None, None) => 0,
            };
        }
        // Everything or nothing.
        if refused.is_empty() {
            Ok(count)
        } else {
            Err(SqlError(String::new()))
        }
    });
    match outcome {
        Ok(count) => Ok(count),
        Err(error) if refused.is_empty() => Err(vec![refusal(error.0)]),
        Err(_) => Err(refused),
    }
}

fn variables(
    conn: &Connection,
    file: &File,
    setting: &Setting,
    module: Module,
    refused: &mut Vec<Refusal>,
) -> Result<u64, SqlError> {
    let Value::Group(variables) = &setting.value else {
        refused.push(wrong(file, setting, "must be a group of variables"));
        return Ok(0);
    };
    let mut insert =
        conn.prepare("INSERT OR REPLACE INTO main.global_variables VALUES (?1, ?2)")?;
    let mut count = 0;
    for variable in variables {
        let name = format!("{}{}", module.prefix().unwrap_or_default(), variable.name);
        let Some(known) = config::Variable::named(&name) else {
            refused.push(wrong(
                file,
                variable,
                &format!("is not a variable of {}", setting.name),
            ));
            continue;
        };
        let Some(text) = variable.value.one(WORDS) else {
            refused.push(wrong(file, variable, "must be one value"));
            continue;
        };
        match known.check(text) {
            Ok(text) => count += insert.execute([name, text])? as u64,
            Err(reason) => refused.push(refusal(format!(
                "{} line {}: {reason}",
                file.name, variable.line
            ))),
        }
    }
    Ok(count)
}

/// The column that SQLite fills by itself with the next number, where a table has one.
fn numbered(conn: &Connection, table: &str) -> Result<Option<String>, SqlError> {
    let mut select = conn.prepare(
        "SELECT name FROM pragma_table_info(?1, 'main') WHERE pk = 1 AND type = 'INTEGER'",
    )?;
    let mut names = select.query_map([table], |row| row.get(0))?;
    Ok(names.next().transpose()?)
}

/// The columns of a table, and whether they hold numbers.
fn columns(conn: &Connection, table: &str) -> Result<Vec<(String, bool)>, SqlError> {
    let mut select =
        conn.prepare("SELECT name, type LIKE '%INT%' FROM pragma_table_info(?1, 'main')")?;
    let columns = select.query_map([table], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(columns.collect::<Result<_, _>>()?)
}

fn rows(
    conn: &Connection,
    file: &File,
    setting: &Setting,
    table: &str,
    others: &[(&str, &str)],
    refused: &mut Vec<Refusal>,
) -> Result<u64, SqlError> {
    let Value::List(rows) = &setting.value else {
        refused.push(wrong(file, setting, "must be a list of groups"));
        return Ok(0);
    };
    let (columns, numbered) = (columns(conn, table)?, numbered(conn, table)?);
    let mut count = 0;
    for row in rows {
        let Value::Group(cells) = row else {
            refused.push(wrong(file, setting, "must be a list of groups"));
            continue;
        };
        let (mut names, mut values, mut known) = (Vec::new(), Vec::new(), true);
        for cell in cells {
            let name = others
                .iter()
                .find(|(other, _)| *other == cell.name)
                .map_or(cell.name.as_str(), |(_, name)| name);
            let column = columns
                .iter()
                .find(|(column, _)| column.eq_ignore_ascii_case(name));
            match (column, cell.value.one(NUMBERS)) {
                (Some((column, is_number)), Some(text)) => {
                    let word = WORDS
                        .iter()
                        .position(|word| *is_number && text.eq_ignore_ascii_case(word));
                    names.push(format!("\"{column}\""));
                    values.push(word.map_or(text, |at| NUMBERS[at]));
                }
                (Some(_), _) => {
                    refused.push(wrong(file, cell, "must be one value"));
                    known = false;
                }
                (None, _) => {
                    refused.push(wrong(file, cell, &format!("is not a column of {table}")));
                    known = false;
                }
            }
        }
        if !known {
            continue;
        }
        let line = cells.first().map_or(setting.line, |cell| cell.line);
        // Otherwise each time that the file is read adds one more.
        if let Some(number) = numbered
            .as_ref()
            .filter(|number| !names.contains(&format!("\"{number}\"")))
        {
            refused.push(refusal(format!(
                "{} line {line}: {table}: a row must say its {number}",
                file.name
            )));
            continue;
        }
        let marks = vec!["?"; names.len()].join(", ");
        let insert = if names.is_empty() {
            format!("INSERT OR REPLACE INTO main.{table} DEFAULT VALUES")
        } else {
            format!(
                "INSERT OR REPLACE INTO main.{table} ({}) VALUES ({marks})",
                names.join(", ")
            )
        };
        match conn.execute(&insert, rusqlite::params_from_iter(values)) {
            Ok(_) => count += 1,
            Err(error) => {
                refused.push(refusal(format!(
                    "{} line {line}: {table}: {}",
                    file.name,
                    SqlError::from(error)
                )));
            }
        }
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Reply, View};

    fn loaded(name: &str, text: &str) -> Result<(Engine, u64), Vec<String>> {
        let engine = Engine::open(None, View::Admin).unwrap();
        let file = File::parse(name, text).map_err(|refusal| vec![refusal.to_string()])?;
        let count = into_memory(&engine, &file, Module::ALL);
        count
            .map(|count| (engine, count))
            .map_err(|all| all.iter().map(ToString::to_string).collect())
    }

    fn rows(engine: &Engine, sql: &str) -> Vec<Vec<String>> {
        match engine.run(sql, &[]).unwrap() {
            Reply::Rows(grid) => grid.texts(),
            Reply::Done { .. } => panic!("no rows"),
        }
    }

    const CNF: &str = r#"
datadir="/var/lib/proxysql"
admin_variables= { admin_credentials="admin:admin;radmin:x" }
mysql_variables=
{
    threads=4
    max_connections=2048
    have_ssl=false
    interfaces="0.0.0.0:6033"
}
mysql_servers =
(
    { address="127.0.0.1", port=3306, hostgroup=0, max_connections=200 },
    { hostname="db2", hostgroup_id=1 }
)
mysql_users: ( { username = "root", password = "", default_hostgroup = 0, active = true } )
mysql_query_rules: ( { rule_id=1 active=1 match_pattern="^SELECT .* FOR UPDATE$" destination_hostgroup=0 apply=1 } )
"#;

    const TOML: &str = r#"
datadir = "/var/lib/proxysql"
[admin_variables]
admin_credentials = "admin:admin;radmin:x"
[mysql_variables]
threads = 4
max_connections = 2_048
have_ssl = false
interfaces = "0.0.0.0:6033"
[[mysql_servers]]
address = "127.0.0.1"
port = 3306
hostgroup = 0
max_connections = 200
[[mysql_servers]]
hostname = "db2"
hostgroup_id = 1
[[mysql_users]]
username = "root"
password = ""
active = true
[[mysql_query_rules]]
rule_id = 1
active = 1
match_pattern = "^SELECT .* FOR UPDATE$"
destination_hostgroup = 0
apply = 1
"#;

    #[test]
    fn both_grammars_give_the_same_rows() {
        let look = |(engine, count): (Engine, u64)| {
            let mut all = rows(&engine, "SELECT * FROM mysql_servers ORDER BY 1");
            all.extend(rows(
                &engine,
                "SELECT username, password, active FROM mysql_users",
            ));
            all.extend(rows(
                &engine,
                "SELECT rule_id, match_pattern, re_modifiers FROM mysql_query_rules",
            ));
            all.extend(rows(&engine, "SELECT * FROM global_variables ORDER BY 1"));
            (all, count)
        };
        let (cnf, toml) = (
            look(loaded("proxysql.cnf", CNF).unwrap()),
            look(loaded("millrace.toml", TOML).unwrap()),
        );
        assert_eq!(cnf, toml);
        assert_eq!(cnf.1, 9);
        assert_eq!(cnf.0[0][..4], ["0", "127.0.0.1", "3306", "0"]);
        assert!(
            cnf.0
                .contains(&vec!["mysql-have_ssl".into(), "false".into()])
        );
    }

    #[test]
    fn true_and_false_in_quotes_are_texts() {
        let cnf = r#"mysql_users: ( { username = "true", password = "false", active = FALSE, use_ssl = true, comment = "true" } )"#;
        let toml = "[[mysql_users]]\nusername = 'true'\npassword = 'false'\nactive = false\nuse_ssl = true\ncomment = 'true'\n";
        for (name, text) in [("p.cnf", cnf), ("m.toml", toml)] {
            let (engine, _) = loaded(name, text).unwrap();
            let found = rows(
                &engine,
                "SELECT username, password, active, use_ssl, comment FROM mysql_users",
            );
            assert_eq!(found, [["true", "false", "0", "1", "true"]], "{name}");
        }
        let quoted = r#"mysql_users: ( { username = "u", password = "True", active = "false", use_ssl = "True" } )"#;
        let (engine, _) = loaded("p.cnf", quoted).unwrap();
        assert_eq!(
            rows(&engine, "SELECT password, active, use_ssl FROM mysql_users"),
            [["True", "0", "1"]]
        );
        let refused = loaded(
            "p.cnf",
            r#"mysql_users: ( { username = "u", active = "yes" } )"#,
        )
        .unwrap_err();
        assert_eq!(
            refused,
            ["p.cnf line 1: mysql_users: CHECK constraint failed: active IN (0,1)"]
        );
    }

    #[test]
    fn a_file_that_is_read_again_adds_nothing_and_rows_with_numbers_say_theirs() {
        let file = |text: &str| File::parse("p.cnf", text).unwrap();
        let (engine, _) = loaded("p.cnf", CNF).unwrap();
        into_memory(&engine, &file(CNF), Module::ALL).unwrap();
        assert_eq!(
            rows(&engine, "SELECT count(*) FROM mysql_query_rules"),
            [["1"]]
        );
        for (list, number) in [
            (
                "mysql_query_rules: ( { active=1 }, { rule_id=7 }, { } )",
                "rule_id",
            ),
            (
                "mysql_query_rewrite: ( { pattern=\"a\" }, { rewrite_id=7 }, { } )",
                "rewrite_id",
            ),
            ("scheduler: ( { filename=\"a\" }, { } )", "id"),
            ("restapi: ( { uri=\"a\" }, { } )", "id"),
        ] {
            let refused = into_memory(&engine, &file(list), Module::ALL).unwrap_err();
            let own = refused.iter().filter(|refusal| {
                refusal
                    .to_string()
                    .ends_with(&format!(": a row must say its {number}"))
            });
            assert_eq!(own.count(), 2, "{refused:?}");
        }
        assert_eq!(
            rows(&engine, "SELECT count(*) FROM mysql_query_rules"),
            [["1"]]
        );
    }

    #[test]
    fn what_is_not_understood_is_refused_with_its_line_and_nothing_is_loaded() {
        let text = "datadirr=\"x\"\nmysql_variables={ thread=4\n max_connections=0 }\nmysql_servers=( { address=\"a\" hostgroup=0\n prot=1 } )\n\
                    mysql_users=( { username=\"u\", active=7 } )\nscheduler=1";
        let refused = loaded("p.cnf", text).unwrap_err();
        assert_eq!(
            refused,
            [
                "p.cnf line 1: 'datadirr' is not a setting",
                "p.cnf line 2: 'thread' is not a variable of mysql_variables",
                "p.cnf line 3: mysql-max_connections must be from 1 to 1000000; '0' is not",
                "p.cnf line 5: 'prot' is not a column of mysql_servers",
                "p.cnf line 6: mysql_users: CHECK constraint failed: active IN (0,1)",
                "p.cnf line 7: 'scheduler' must be a list of groups",
            ]
        );
        assert_eq!(loaded("m.toml", "a = 1\nb = ").unwrap_err().len(), 1);
    }
}
