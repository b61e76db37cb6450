//! From the rows in memory to the next snapshot: all reasons against it at once, or the whole.

use crate::engine::SqlError;
use crate::rows::{self, sql_refusal};
use crate::tables::{Kind, Module, Runtime};
use crate::{access, engine::Engine};
use config::{FastRoutingRow, Firewall, FirewallFingerprintRow, FirewallRuleRow, FirewallUserRow, HostgroupAttributesRow, Refusal, ServerRow, SslParamsRow};
use config::{RewriteRow, Rewrites, RuleRow, Rules, Servers, Snapshot, UserRow, Users, Variables};
use rusqlite::Connection;
use std::sync::Arc;

/// A snapshot that differs from `now` in one module, and what there is to say about it.
pub(crate) fn module(engine: &Engine, now: &Snapshot, module: Module) -> Result<(Snapshot, Vec<Refusal>), Vec<Refusal>> {
    let conn = engine.conn();
    let mut next = Snapshot { generation: now.generation + 1, ..now.clone() };
    let mut refused = not_yet(conn, module);
    let built = match module {
        Module::Servers => servers(conn).map(|servers| {
            let notices = servers.notices().to_vec();
            next.servers = Arc::new(servers);
            notices
        }),
        Module::Users => rows::read::<UserRow>(conn, "").and_then(|rows| users(&mut next, rows)),
        Module::Rules => all_rules(conn, &now.variables, &mut next),
        Module::Firewall => firewall(conn).map(|firewall| {
            next.firewall = Arc::new(firewall);
            everybody_is_refused(&next)
        }),
        other => match other.prefix() {
            Some(prefix) => variables(conn, prefix, &mut next),
            None => Ok(Vec::new()),
        },
    };
    match built {
        Ok(notices) if refused.is_empty() => Ok((next, notices)),
        Ok(_) => Err(refused),
        Err(more) => {
            refused.extend(more);
            Err(refused)
        }
    }
}

/// A snapshot in which one user is as memory has it.
pub(crate) fn one_user(engine: &Engine, now: &Snapshot, name: &str) -> Result<Snapshot, Vec<Refusal>> {
    let only = format!("WHERE username = {}", crate::commands::literal(name));
    let mine = rows::read::<UserRow>(engine.conn(), &only)?;
    if mine.is_empty() {
        return Err(vec![Refusal {
            table: "mysql_users",
            row: String::new(),
            column: "username",
            words: format!("'{name}' is not there"),
        }]);
    }
    let mut next = Snapshot { generation: now.generation + 1, ..now.clone() };
    let others = now.users.rows().into_iter().filter(|row| row.username != name);
    users(&mut next, others.chain(mine).collect())?;
    Ok(next)
}

/// Why the rows of tables that nothing here works by are refused.
fn not_yet(conn: &Connection, module: Module) -> Vec<Refusal> {
    let mut refused = Vec::new();
    for table in module.tables() {
        let Kind::Declared { runtime: Runtime::NotYet { unless, does }, .. } = table.kind else { continue };
        let harmless = if unless.is_empty() { "0" } else { unless };
        let count =
            conn.query_row(&format!("SELECT count(*) FROM main.{} WHERE NOT ({harmless})", table.name), [], |row| row.get(0));
        let words = match count {
            Ok(0) => continue,
            Ok(1) => format!("has 1 row, but this version {does} yet; without it, the rest can be loaded"),
            Ok(count) => format!("has {count} rows, but this version {does} yet; without them, the rest can be loaded"),
            Err(error) => SqlError::from(error).0,
        };
        refused.push(Refusal { table: table.name, row: String::new(), column: "", words });
    }
    refused
}

fn servers(conn: &Connection) -> Result<Servers, Vec<Refusal>> {
    let (servers, attributes, ssl) =
        (rows::read::<ServerRow>(conn, ""), rows::read::<HostgroupAttributesRow>(conn, ""), rows::read::<SslParamsRow>(conn, ""));
    match (servers, attributes, ssl) {
        (Ok(servers), Ok(attributes), Ok(ssl)) => Servers::build(servers, attributes, ssl),
        (servers, attributes, ssl) => Err([servers.err(), attributes.err(), ssl.err()].into_iter().flatten().flatten().collect()),
    }
}

fn users(next: &mut Snapshot, rows: Vec<UserRow>) -> Result<Vec<Refusal>, Vec<Refusal>> {
    next.users = Arc::new(Users::build(rows, &next.variables)?);
    Ok(Vec::new())
}

fn all_rules(conn: &Connection, variables: &Variables, next: &mut Snapshot) -> Result<Vec<Refusal>, Vec<Refusal>> {
    let rewrites = rows::read::<RewriteRow>(conn, "").and_then(Rewrites::build);
    match (rules(conn, variables), rewrites) {
        (Ok(rules), Ok(rewrites)) => {
            let notices = rules.notices().to_vec();
            (next.rules, next.rewrites) = (Arc::new(rules), Arc::new(rewrites));
            Ok(notices)
        }
        (rules, rewrites) => Err([rules.err(), rewrites.err()].into_iter().flatten().flatten().collect()),
    }
}

fn rules(conn: &Connection, variables: &Variables) -> Result<Rules, Vec<Refusal>> {
    match (rows::read::<RuleRow>(conn, ""), rows::read::<FastRoutingRow>(conn, "")) {
        (Ok(rules), Ok(fast)) => Rules::build(rules, fast, variables),
        (rules, fast) => Err([rules.err(), fast.err()].into_iter().flatten().flatten().collect()),
    }
}

fn firewall(conn: &Connection) -> Result<Firewall, Vec<Refusal>> {
    let (users, rules) = (rows::read::<FirewallUserRow>(conn, ""), rows::read::<FirewallRuleRow>(conn, ""));
    match (users, rules, rows::read::<FirewallFingerprintRow>(conn, "")) {
        (Ok(users), Ok(rules), Ok(fingerprints)) => Firewall::build(users, rules, fingerprints),
        (users, rules, fingerprints) => {
            Err([users.err(), rules.err(), fingerprints.err()].into_iter().flatten().flatten().collect())
        }
    }
}

/// A firewall that nobody has told anything is easily switched on.
fn everybody_is_refused(next: &Snapshot) -> Vec<Refusal> {
    let is_empty = next.firewall.user_rows().next().is_none() && next.firewall.rule_rows().next().is_none();
    if !next.variables.mysql_firewall_whitelist_enabled || !is_empty {
        return Vec::new();
    }
    let words = "is true, and the firewall has neither users nor rules in force: every statement of every user is refused".into();
    Vec::from([Refusal { table: "global_variables", row: String::new(), column: "mysql-firewall_whitelist_enabled", words }])
}

fn variables(conn: &Connection, prefix: &str, next: &mut Snapshot) -> Result<Vec<Refusal>, Vec<Refusal>> {
    let pairs = read_variables(conn, prefix).map_err(|error| vec![sql_refusal("global_variables", error)])?;
    let (built, mut notices) = next.variables.with(pairs)?;
    if prefix == "admin-" {
        access::check(&built)?;
    }
    let old = std::mem::replace(&mut next.variables, Arc::new(built));
    // What was built under other values of these must be as valid under the new ones.
    if old.mysql_have_ssl != next.variables.mysql_have_ssl {
        users(next, next.users.rows())?;
    }
    if old.mysql_query_processor_regex != next.variables.mysql_query_processor_regex {
        let fast: Vec<_> = next.rules.fast().rows().collect();
        next.rules = Arc::new(Rules::build(next.rules.rows().cloned(), fast, &next.variables)?);
    }
    if !old.mysql_firewall_whitelist_enabled {
        notices.extend(everybody_is_refused(next));
    }
    Ok(notices)
}

fn read_variables(conn: &Connection, prefix: &str) -> Result<Vec<(String, String)>, SqlError> {
    let mut select = conn.prepare(
        "SELECT variable_name, CAST(variable_value AS TEXT) FROM main.global_variables \
         WHERE substr(variable_name, 1, length(?1)) = ?1 ORDER BY 1",
    )?;
    let pairs = select.query_map([prefix], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(pairs.collect::<Result<_, _>>()?)
}
