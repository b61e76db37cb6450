//! From a file's settings to the rows of memory. Nothing is left out silently: an unknown name or a row
//! that its table does not take is a warning, as ProxySQL leaves both out. An address, a rule or a row
//! of a firewall that cannot be honoured is a reason against the file.

use super::constraints::{Again, Constraints, Seen, shown};
use super::names::{self, GROUPS, Meant, lists};
use super::read::File;
use super::tree::{NUMBERS, Place, Setting, Value, WORDS, about, refusal};
use crate::build::IF_UNREADABLE;
use crate::engine::{Engine, SqlError};
use crate::tables::Module;
use config::{Kind, Refusal, Variable};
use rusqlite::types::Value as Cell;
use rusqlite::{Connection, OptionalExtension as _, params_from_iter};

/// Other names of columns, in every list whose table has them.
const OTHER_COLUMNS: &[(&str, &str)] = &[("address", "hostname"), ("hostgroup", "hostgroup_id")];

/// Values of columns that a row of a file does not say, where they are others than the table's: ProxySQL
/// takes a rule in a file to be meant.
const FILE_DEFAULTS: &[(&str, &str, i64)] = &[("mysql_query_rules", "active", 1)];
/// Columns whose default stands for any unknown word, as in ProxySQL's files.
const DEFAULT_IF_UNKNOWN: &[(&str, &str)] = &[
    ("mysql_servers", "status"),
    ("mysql_replication_hostgroups", "check_type"),
];
/// Beginnings of the tables in which a row left out could open a door.
const GUARDS: &[&str] = &["mysql_firewall_", "mysql_query_rules"];
/// The list in which a negative number says that a column has none, as in ProxySQL's files.
const NEGATIVE_IS_NONE: &str = "mysql_query_rules";

/// Outcome of a file: rows, warnings and reasons against it.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// Rows and variables that were taken.
    pub(crate) count: u64,
    /// Names and values that were left out or read as others.
    pub(crate) warnings: Vec<Refusal>,
    /// Reasons against the file.
    pub(crate) refused: Vec<Refusal>,
}

impl Told {
    fn warn(&mut self, setting: &Setting, words: &str) {
        self.warnings.push(about(setting, words));
    }

    fn refuse(&mut self, setting: &Setting, words: &str) {
        self.refused.push(about(setting, words));
    }

    /// A row that its table does not take: without it the others count.
    fn leave_out(&mut self, at: &Place, table: &str, words: &str) {
        if GUARDS.iter().any(|begin| table.starts_with(begin)) {
            self.refused
                .push(refusal(format!("{at}: {table}: {words}")));
        } else {
            let words = format!("{at}: {table}: {words}; this row is left out");
            self.warnings.push(refusal(words));
        }
    }
}

/// Puts what a file says of `modules` into memory, over what is there. On any refusal memory stays
/// as it was.
pub(crate) fn into_memory(
    engine: &Engine,
    file: &File,
    modules: &[Module],
) -> Result<Told, Vec<Refusal>> {
    let mut told = Told::default();
    match file.process() {
        Ok(settings) => told.warnings = settings.warnings,
        Err(refused) => told.refused = refused,
    }
    let outcome = engine.transaction(|conn| {
        put(conn, file, modules, &mut told)?;
        // Everything or nothing.
        if told.refused.is_empty() {
            Ok(())
        } else {
            Err(SqlError(String::new()))
        }
    });
    match outcome {
        Ok(()) => Ok(told),
        Err(error) if told.refused.is_empty() => Err(vec![refusal(error.0)]),
        Err(_) => Err(told.refused),
    }
}

/// Puts what can be taken of a file into memory, so that all reasons against it can be told at once:
/// those of the rows that cannot, and those that a LOAD would have against the others.
pub(crate) fn as_far_as_possible(engine: &Engine, file: &File) -> Told {
    let mut told = Told::default();
    let outcome = engine.transaction(|conn| put(conn, file, Module::ALL, &mut told));
    told.refused
        .extend(outcome.err().map(|error| refusal(error.0)));
    told
}

fn put(
    conn: &Connection,
    file: &File,
    modules: &[Module],
    told: &mut Told,
) -> Result<(), SqlError> {
    for setting in &file.settings {
        let group = GROUPS
            .iter()
            .find(|(name, module)| *name == setting.name && modules.contains(module));
        let list =
            lists().find(|(name, _, module)| *name == setting.name && modules.contains(module));
        match (group, list) {
            (Some((_, module)), _) => variables(conn, setting, *module, told)?,
            (_, Some((_, table, _))) => rows(conn, setting, table, told)?,
            (None, None) => {}
        }
    }
    Ok(())
}

fn variables(
    conn: &Connection,
    setting: &Setting,
    module: Module,
    told: &mut Told,
) -> Result<(), SqlError> {
    let Value::Group(variables) = &setting.value else {
        told.refuse(setting, "must be a group of variables");
        return Ok(());
    };
    let prefix = module.prefix().unwrap_or_default();
    let mut insert =
        conn.prepare("INSERT OR REPLACE INTO main.global_variables VALUES (?1, ?2)")?;
    for variable in variables {
        let known = match names::variable(&setting.name, prefix, &variable.name) {
            Meant::Plainly(known) => known,
            Meant::Nearly(known, words) => {
                told.warn(variable, &words);
                known
            }
            Meant::Nothing(words) => {
                told.warn(variable, &words);
                continue;
            }
        };
        let Some(text) = spelled(known, &variable.value) else {
            told.refuse(variable, "must be one value");
            continue;
        };
        match known.check(text) {
            Ok(text) => told.count += insert.execute([known.name, &text])? as u64,
            Err(reason) if is_harmless(known) => {
                let stays = in_memory(conn, known)?;
                let words = format!("{}: {reason}, so it stays {stays}", variable.at);
                told.warnings.push(refusal(words));
            }
            Err(reason) => {
                let words = format!("{}: {reason}", variable.at);
                told.refused.push(refusal(words));
            }
        }
    }
    Ok(())
}

/// A value as a variable spells it: true and false are 1 and 0 for one that is a number.
fn spelled<'v>(known: &Variable, value: &'v Value) -> Option<&'v str> {
    if !matches!(known.kind, Kind::Int { .. }) {
        return value.one(WORDS);
    }
    let text = value.one(NUMBERS)?;
    let word = WORDS
        .iter()
        .position(|word| text.eq_ignore_ascii_case(word));
    Some(word.map_or(text, |at| NUMBERS[at]))
}

/// Whether a start may go on with the value of before where the file has an impossible one, as
/// ProxySQL does. Not with another address than the operator wanted, nor past a firewall.
fn is_harmless(known: &Variable) -> bool {
    let guards = IF_UNREADABLE.iter().any(|(name, _)| *name == known.name);
    !guards && !matches!(known.kind, Kind::Interfaces | Kind::Networks)
}

fn in_memory(conn: &Connection, known: &Variable) -> Result<String, SqlError> {
    let sql =
        "SELECT CAST(variable_value AS TEXT) FROM main.global_variables WHERE variable_name = ?1";
    let value = conn.query_row(sql, [known.name], |row| row.get(0));
    Ok(value.optional()?.unwrap_or_else(|| known.default.into()))
}

fn rows(
    conn: &Connection,
    setting: &Setting,
    table: &str,
    told: &mut Told,
) -> Result<(), SqlError> {
    let Value::List(rows) = &setting.value else {
        told.refuse(setting, "must be a list of groups");
        return Ok(());
    };
    let constraints = Constraints::of(conn, table)?;
    let marks = vec!["?"; constraints.columns.len()].join(", ");
    let mut insert = conn.prepare(&format!(
        "INSERT OR REPLACE INTO main.{table} VALUES ({marks})"
    ))?;
    let mut seen = Seen::default();
    for row in rows {
        let Value::Group(cells) = row else {
            told.refuse(setting, "must be a list of groups");
            continue;
        };
        let at = cells.first().map_or(&setting.at, |cell| &cell.at);
        let Some(mut values) = whole(&constraints, cells, table, told) else {
            continue;
        };
        // Otherwise each time that the file is read adds one more.
        let number = constraints.numbered.filter(|at| values[*at] == Cell::Null);
        if let Some(number) = number {
            let number = &constraints.columns[number].name;
            told.leave_out(at, table, &format!("a row must say its {number}"));
            continue;
        }
        let (unknown, broken): (Vec<_>, Vec<_>) = constraints
            .broken(conn, &values)?
            .into_iter()
            .partition(|(column, _)| DEFAULT_IF_UNKNOWN.contains(&(table, *column)));
        if !broken.is_empty() {
            let words: Vec<_> = broken.into_iter().map(|(_, words)| words).collect();
            told.leave_out(at, table, &words.join(", "));
            continue;
        }
        for (column, words) in unknown {
            if let Some(column) = constraints.column(column) {
                values[column] = constraints.columns[column].default.clone();
                let default = shown(&values[column]);
                let words = format!("{at}: {table}: {words}, so it is {default}");
                told.warnings.push(refusal(words));
            }
        }
        match seen.add(&constraints, &values, at) {
            Some(Again::Same(first)) => {
                let first = first.seen_from(at);
                let words = format!("{at}: {table}: the row of {first} once more; it counts once");
                told.warnings.push(refusal(words));
                continue;
            }
            Some(Again::Other(key, first)) => {
                let first = first.seen_from(at);
                let words =
                    format!("{at}: {table}: takes the place of the row with {key} in {first}");
                told.warnings.push(refusal(words));
                told.count -= 1;
            }
            None => {}
        }
        match insert.execute(params_from_iter(values)) {
            Ok(_) => told.count += 1,
            Err(error) => told.leave_out(at, table, &SqlError::from(error).0),
        }
    }
    Ok(())
}

/// A row with a value for each of its columns; `None` if one was refused.
fn whole(
    constraints: &Constraints,
    cells: &[Setting],
    table: &str,
    told: &mut Told,
) -> Option<Vec<Cell>> {
    let columns = &constraints.columns;
    let is_there = |(_, name): &&(&str, &str)| constraints.column(name).is_some();
    let others = || OTHER_COLUMNS.iter().filter(is_there);
    let mut values: Vec<_> = columns
        .iter()
        .map(|column| column.default.clone())
        .collect();
    for (_, name, value) in FILE_DEFAULTS.iter().filter(|(of, ..)| *of == table) {
        if let Some(at) = constraints.column(name) {
            values[at] = Cell::Integer(*value);
        }
    }
    let mut set_by: Vec<Option<&Setting>> = vec![None; columns.len()];
    let mut is_whole = true;
    for cell in cells {
        let other = others().find(|(other, _)| *other == cell.name);
        let name = other.map_or(cell.name.as_str(), |(_, name)| name);
        let Some(at) = constraints.column(name) else {
            let known = columns.iter().map(|column| column.name.as_str());
            let known = known.chain(others().map(|(other, _)| *other));
            let words = names::unknown(&cell.name, &format!("column of {table}"), known);
            told.warn(cell, &words);
            continue;
        };
        if let Some(before) = set_by[at] {
            let first = before.at.seen_from(&cell.at);
            let words = format!("is what '{}' in {first} is, too", before.name);
            if before.name == cell.name {
                told.refuse(cell, &words);
                is_whole = false;
                continue;
            }
            // Of both names ProxySQL reads the shorter one.
            let counts = if other.is_some() {
                &cell.name
            } else {
                &before.name
            };
            told.warn(cell, &format!("{words}: '{counts}' counts"));
            if other.is_none() {
                continue;
            }
        }
        set_by[at] = Some(cell);
        if let Some(text) = cell.value.one(NUMBERS) {
            if text.contains('\x08') {
                // No text of a table has one, and a pattern with it matches nothing.
                told.warn(
                    cell,
                    "has a backspace for its \\b; write \\\\b for a word boundary",
                );
            }
            let may_be_none = table == NEGATIVE_IS_NONE && columns[at].default == Cell::Null;
            values[at] = match columns[at].is_number.then(|| number(text)) {
                Some(Cell::Integer(..0)) if may_be_none => Cell::Null,
                Some(number) => number,
                None => Cell::Text(text.to_owned()),
            };
        } else {
            told.refuse(cell, "must be one value");
            is_whole = false;
        }
    }
    is_whole.then_some(values)
}

/// A text in a column of numbers, as SQLite would keep it: a number if it is one.
fn number(text: &str) -> Cell {
    let word = WORDS
        .iter()
        .position(|word| text.eq_ignore_ascii_case(word));
    let trimmed = word.map_or(text, |at| NUMBERS[at]).trim();
    let whole = trimmed.strip_suffix(".0").unwrap_or(trimmed);
    match whole.parse() {
        Ok(number) => Cell::Integer(number),
        Err(_) => Cell::Text(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Reply, View};

    fn loaded(name: &str, text: &str) -> Result<(Engine, u64), Vec<String>> {
        let (engine, told) = told(name, text)?;
        Ok((engine, told.count))
    }

    fn told(name: &str, text: &str) -> Result<(Engine, Told), Vec<String>> {
        let engine = Engine::open(None, View::Admin).unwrap();
        let file = File::parse(name, text).map_err(|refusal| vec![refusal.to_string()])?;
        let told = into_memory(&engine, &file, Module::ALL);
        told.map(|told| (engine, told))
            .map_err(|all| all.iter().map(ToString::to_string).collect())
    }

    /// A file that is taken, and its warnings.
    fn warned(text: &str) -> (Engine, Vec<String>) {
        let (engine, told) = told("p.cnf", text).unwrap();
        let warnings = told.warnings.iter().map(ToString::to_string).collect();
        (engine, warnings)
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
        let (_, told) = warned(r#"mysql_users: ( { username = "u", active = "yes" } )"#);
        assert_eq!(
            told,
            [
                "p.cnf line 1: mysql_users: active must be a whole number; 'yes' is not; this row is left out"
            ]
        );
    }

    /// Facts of ProxySQL's reader of files, which has other defaults than its tables.
    #[test]
    fn a_rule_of_a_file_is_active_and_negative_numbers_are_none() {
        let text = r#"mysql_query_rules: (
            { rule_id=1 match_pattern="^SELECT" destination_hostgroup=2 cache_ttl=-1 flagOUT=-1 apply=1 },
            { rule_id=2 active=0 match_pattern="x" destination_hostgroup=-1 timeout=5 } )"#;
        for name in ["p.cnf", "p.toml"] {
            let text = match name {
                "p.cnf" => text,
                _ => {
                    "[[mysql_query_rules]]\nrule_id = 1\nmatch_pattern = '^SELECT'\ndestination_hostgroup = 2\ncache_ttl = -1\napply = 1\n\
                      [[mysql_query_rules]]\nrule_id = 2\nactive = 0\nmatch_pattern = 'x'\ntimeout = 5\n"
                }
            };
            let (engine, _) = loaded(name, text).unwrap();
            assert_eq!(
                rows(
                    &engine,
                    "SELECT rule_id, active, destination_hostgroup, cache_ttl IS NULL, flagOUT IS NULL, timeout FROM mysql_query_rules ORDER BY 1"
                ),
                [
                    ["1", "1", "2", "1", "1", "NULL"],
                    ["2", "0", "NULL", "1", "1", "5"]
                ],
                "{name}"
            );
        }
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
            let told = match into_memory(&engine, &file(list), Module::ALL) {
                Ok(told) => told.warnings,
                Err(refused) => refused,
            };
            let words = format!(": a row must say its {number}");
            let own = told.iter().filter(|one| one.to_string().contains(&words));
            assert_eq!(own.count(), 2, "{told:?}");
        }
        assert_eq!(
            rows(&engine, "SELECT count(*) FROM mysql_query_rules"),
            [["1"]]
        );
    }

    #[test]
    fn what_cannot_be_honoured_is_refused_with_its_line_and_nothing_is_loaded() {
        let text = "datadir={}\nmysql_variables={ threads=4\n interfaces=\"nowhere\" }\nmysql_servers=( { address=\"a\" hostgroup=0 } )\n\
                    mysql_query_rules=( { rule_id=1, active=7 } )\nscheduler=1\nmysql_servers_ssl_params=( 1 )";
        let refused = loaded("p.cnf", text).unwrap_err();
        assert_eq!(
            refused,
            [
                "p.cnf line 1: 'datadir' must be one value",
                "p.cnf line 3: mysql-interfaces must be a list of ip:port or /path separated by ';'; 'nowhere' is not",
                "p.cnf line 5: mysql_query_rules: active must be 0 or 1; '7' is not",
                "p.cnf line 6: 'scheduler' must be a list of groups",
                "p.cnf line 7: 'mysql_servers_ssl_params' must be a list of groups",
            ]
        );
        assert_eq!(loaded("m.toml", "a = 1\nb = ").unwrap_err().len(), 1);
    }

    #[test]
    fn unknown_names_are_warnings_that_say_what_was_meant() {
        let text = r#"admin_variables = { hash_passwords=true
  debug=true  admin-web_enabled="true" threads=7 }
mysql_variables = { interfaces="127.0.0.1:6033"
  forward_autocommit=false mysql-auditlog_filename="audit" conect_timeout_server=3000 mysql-client_found_rows=true }
mysql-hostgroups = { writer=10 }
mysql_severs = ()
pgsql_servers = ()
mysql_servers = ( { address="127.0.0.1", port=3306, hostgroup=0, connect_timeout=5, max_conections=7 } )
uuid = "x"
"#;
        let (engine, warnings) = warned(text);
        assert_eq!(
            warnings,
            [
                "p.cnf line 5: 'mysql-hostgroups' is no setting of this version and is left out",
                "p.cnf line 6: 'mysql_severs' is no setting of this version and is left out; did you mean 'mysql_servers'?",
                "p.cnf line 7: 'pgsql_servers' is left out: Millrace does not speak PostgreSQL's protocol",
                "p.cnf line 9: 'uuid' is accepted, and has no effect here",
                "p.cnf line 1: 'hash_passwords' is a variable of older versions of ProxySQL and is left out; now mysql_users takes \
                 passwords in clear and hashed, and keeps them as they are written",
                "p.cnf line 2: 'debug' is a variable of older versions of ProxySQL and is left out; now `errorlog` names the file of the log",
                "p.cnf line 2: 'admin-web_enabled' is read as 'web_enabled': names in admin_variables stand without 'admin-'",
                "p.cnf line 2: 'threads' is left out: it is no variable of admin_variables, but one of mysql_variables; write it there",
                "p.cnf line 4: 'forward_autocommit' is a variable of older versions of ProxySQL and is left out; now autocommit belongs to \
                 the session and is set on every connection that serves it",
                "p.cnf line 4: 'mysql-auditlog_filename' is read as 'auditlog_filename': names in mysql_variables stand without 'mysql-'",
                "p.cnf line 4: 'conect_timeout_server' is no variable of mysql_variables and is left out; did you mean 'connect_timeout_server'?",
                "p.cnf line 4: 'mysql-client_found_rows' is a variable of older versions of ProxySQL and is left out; now \
                 mysql-server_capabilities offers CLIENT_FOUND_ROWS, and each client chooses",
                "p.cnf line 8: 'connect_timeout' is no column of mysql_servers and is left out",
                "p.cnf line 8: 'max_conections' is no column of mysql_servers and is left out; did you mean 'max_connections'?",
            ]
        );
        assert_eq!(
            rows(
                &engine,
                "SELECT hostname, max_connections FROM mysql_servers"
            ),
            [["127.0.0.1", "1000"]]
        );
        let set = "SELECT * FROM global_variables WHERE variable_name IN ('admin-web_enabled', 'mysql-auditlog_filename', 'mysql-threads')";
        assert_eq!(
            rows(&engine, set),
            [
                ["admin-web_enabled", "true"],
                ["mysql-auditlog_filename", "audit"]
            ]
        );
    }

    #[test]
    fn a_backslash_and_b_is_a_backspace_and_said_to_be_none_of_an_expression() {
        let text = r#"mysql_query_rules = ( { rule_id=1 match_pattern="\bSELECT\d" }, { rule_id=2 match_pattern="\\bSELECT" } )"#;
        let (engine, warnings) = warned(text);
        assert_eq!(
            warnings,
            [
                r"p.cnf line 1: 'match_pattern' has a backspace for its \b; write \\b for a word boundary"
            ]
        );
        assert_eq!(
            rows(&engine, "SELECT match_pattern FROM mysql_query_rules"),
            [["\x08SELECT\\d"], ["\\bSELECT"]]
        );
    }

    #[test]
    fn a_number_takes_true_and_false_and_keeps_what_it_had_where_it_is_given_an_impossible_one() {
        let text = "mysql_variables = { set_query_lock_on_hostgroup=false\n handle_warnings=\"TRUE\"\n stacksize=8388608\n\
                    threads=0\n max_connections=\"many\"\n multiplexing=\"maybe\"\n default_charset=\"klingon\" have_compress=0 }";
        let (engine, warnings) = warned(text);
        assert_eq!(
            warnings,
            [
                "p.cnf line 3: mysql-stacksize must be from 262144 to 4194304; '8388608' is not, so it stays 1048576",
                "p.cnf line 4: mysql-threads must be from 1 to 255; '0' is not, so it stays 4",
                "p.cnf line 5: mysql-max_connections must be from 1 to 1000000; 'many' is not, so it stays 10000",
                "p.cnf line 6: mysql-multiplexing must be true or false; 'maybe' is not, so it stays true",
                "p.cnf line 7: mysql-default_charset must be the name of a character set; 'klingon' is not, so it stays utf8",
            ]
        );
        assert_eq!(
            rows(&engine, "SELECT * FROM global_variables ORDER BY 1"),
            [
                ["mysql-handle_warnings", "1"],
                ["mysql-have_compress", "false"],
                ["mysql-set_query_lock_on_hostgroup", "0"]
            ]
        );
        // Read over other values, it is those that stay.
        let later = File::parse("p.cnf", "mysql_variables={ handle_warnings=5 }").unwrap();
        let later = into_memory(&engine, &later, Module::ALL).unwrap().warnings;
        assert!(later[0].words.ends_with("so it stays 1"), "{later:?}");
        let guard = "mysql_variables={ firewall_whitelist_enabled=\"maybe\" }";
        assert!(
            loaded("p.cnf", guard).is_err(),
            "nobody may pass a firewall"
        );
    }

    /// Facts of ProxySQL's reader of files: it leaves out such rows, and the rest serves.
    #[test]
    fn rows_that_break_a_constraint_are_left_out_and_told_with_their_lines() {
        let text = r#"mysql_replication_hostgroups = (
  { writer_hostgroup=10 reader_hostgroup=10 },
  { reader_hostgroup=20 },
  { writer_hostgroup=1, reader_hostgroup=2, check_type="often" } )
mysql_servers = (
  { address="a" },
  { port=70000 weight="heavy" },
  { address="a" comment="another" status="online_soft" },
  { hostname="c" address="b" } )
mysql_aws_aurora_hostgroups = ( { writer_hostgroup=1 reader_hostgroup=0 domain_name="aws" max_lag_ms=5 } )
mysql_galera_hostgroups = ( { writer_hostgroup=1 backup_writer_hostgroup=1 reader_hostgroup=2 offline_hostgroup=3 } )
mysql_users = ( { username="u" default_hostgroup=1 }, { username="u" default_hostgroup=2 } )
mysql_query_rules = ( { rule_id=1 match_pattern="a" }, { rule_id=1 match_pattern="b" } )
"#;
        let (engine, told) = warned(text);
        assert_eq!(
            told,
            [
                "p.cnf line 2: mysql_replication_hostgroups: reader_hostgroup and writer_hostgroup are both 10; this row is left out",
                "p.cnf line 3: mysql_replication_hostgroups: writer_hostgroup is missing; this row is left out",
                "p.cnf line 4: mysql_replication_hostgroups: check_type must be read_only, innodb_read_only, super_read_only, \
                 read_only|innodb_read_only or read_only&innodb_read_only; 'often' is not, so it is read_only",
                "p.cnf line 7: mysql_servers: hostname is missing, weight must be a whole number; 'heavy' is not, \
                 port must be from 0 to 65535; '70000' is not; this row is left out",
                "p.cnf line 8: mysql_servers: status must be ONLINE, SHUNNED, OFFLINE_SOFT or OFFLINE_HARD; 'online_soft' is not, so it is ONLINE",
                "p.cnf line 8: mysql_servers: takes the place of the row with hostgroup_id 0, hostname a, port 3306 in line 6",
                "p.cnf line 9: 'address' is what 'hostname' in line 9 is, too: 'address' counts",
                "p.cnf line 10: mysql_aws_aurora_hostgroups: reader_hostgroup must be at least 1; '0' is not, \
                 domain_name must begin with '.'; 'aws' does not, max_lag_ms must be from 10 to 600000; '5' is not; this row is left out",
                "p.cnf line 11: mysql_galera_hostgroups: backup_writer_hostgroup and writer_hostgroup are both 1; this row is left out",
                "p.cnf line 12: mysql_users: takes the place of the row with username u, backend 1 in line 12",
                "p.cnf line 13: mysql_query_rules: takes the place of the row with rule_id 1 in line 13",
            ]
        );
        assert_eq!(
            rows(
                &engine,
                "SELECT hostname, comment, status FROM mysql_servers ORDER BY 1"
            ),
            [["a", "another", "ONLINE"], ["b", "", "ONLINE"]]
        );
        assert_eq!(
            rows(
                &engine,
                "SELECT u.username, default_hostgroup, match_pattern FROM mysql_users u, mysql_query_rules"
            ),
            [["u", "2", "b"]]
        );
        assert_eq!(
            rows(&engine, "SELECT * FROM mysql_galera_hostgroups"),
            Vec::<Vec<String>>::new()
        );
    }

    #[test]
    fn rules_and_rows_of_a_firewall_that_break_a_constraint_stop_the_file() {
        let text = r#"mysql_query_rules = ( { rule_id=1 replace_pattern="x" flagIN=-1 }, { rule_id=2 attributes="{" } )
mysql_query_rules_fast_routing = ( { username="u" schemaname="s" flagIN=0 destination_hostgroup=1 comment="c" },
  { schemaname="s" flagIN=0 destination_hostgroup=1 } )
mysql_firewall_whitelist_users = ( { username="u" mode="ON" } )
"#;
        assert_eq!(
            loaded("p.cnf", text).unwrap_err(),
            [
                "p.cnf line 1: mysql_query_rules: flagIN must be at least 0; '-1' is not, replace_pattern needs a match_pattern",
                "p.cnf line 1: mysql_query_rules: attributes must be JSON, or empty; '{' is not",
                "p.cnf line 3: mysql_query_rules_fast_routing: username is missing",
                "p.cnf line 4: mysql_firewall_whitelist_users: client_address is missing, mode must be OFF, DETECTING or PROTECTING; 'ON' is not",
            ]
        );
    }

    #[test]
    fn a_row_that_stands_twice_counts_once() {
        let twice = "mysql_servers = ( { address=\"a\" },\n { address=\"a\" } )";
        let (engine, warnings) = warned(twice);
        assert_eq!(
            warnings,
            ["p.cnf line 2: mysql_servers: the row of line 1 once more; it counts once"]
        );
        assert_eq!(rows(&engine, "SELECT count(*) FROM mysql_servers"), [["1"]]);
        let shared = "mysql_replication_hostgroups = ( { writer_hostgroup=1, reader_hostgroup=2 },\n { writer_hostgroup=3, reader_hostgroup=2 } )";
        let (engine, warnings) = warned(shared);
        assert_eq!(
            warnings,
            [
                "p.cnf line 2: mysql_replication_hostgroups: takes the place of the row with reader_hostgroup 2 in line 1"
            ]
        );
        let left = "SELECT writer_hostgroup FROM mysql_replication_hostgroups";
        assert_eq!(rows(&engine, left), [["3"]]);
    }
}
