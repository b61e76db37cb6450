//! Variables, a family a module: they share one table, and what other parts were built with.

use super::part::{Change, Moved, Outcome};
use super::tables::{Line, PartTable, Pieces, Sight, no_row};
use super::{clickhouse, firewall, users};
use crate::access;
use crate::engine::SqlError;
use crate::rows::sql_refusal;
use crate::tables::Module;
use config::{Help, Refusal, Rewrites, Rules, Snapshot, Variables};
use rusqlite::Connection;
use std::sync::Arc;

/// Of these every proxy has its own: where it listens, and what depends on its machine.
/// `admin-version` cannot be set.
pub(crate) const NOT_SHARED: [&str; 17] = [
    "admin-cluster_key_file",
    "admin-cluster_store",
    "admin-mysql_ifaces",
    "admin-restapi_enabled",
    "admin-restapi_interface",
    "admin-restapi_port",
    "admin-telnet_admin_ifaces",
    "admin-telnet_stats_ifaces",
    "admin-version",
    "admin-web_enabled",
    "admin-web_interface",
    "admin-web_port",
    "clickhouse-mysql_ifaces",
    "clickhouse-threads",
    "mysql-interfaces",
    "mysql-script_console_ifaces",
    "mysql-threads",
];

/// Where they stand, in every family.
pub(crate) const TABLE: &str = "global_variables";

/// Whether other proxies have this variable of ours.
pub(crate) fn is_shared(variable: &str) -> bool {
    !NOT_SHARED.contains(&variable)
}

/// Names and values.
pub(crate) type Pairs = Vec<(String, String)>;

/// The variables of one module.
pub(super) struct Family(pub(super) Module);

impl Family {
    fn prefix(&self) -> &'static str {
        self.0.prefix().expect("a family of variables has a prefix")
    }

    fn change(&self, pairs: Pairs) -> Change {
        let prefix = self.prefix();
        Box::new(move |next, help| checked(pairs, prefix, next, help))
    }
}

impl Moved for Family {
    fn module(&self) -> Module {
        self.0
    }

    fn tables(&self) -> &'static [PartTable] {
        &[]
    }

    fn read(&self, conn: &Connection) -> Result<Change, Vec<Refusal>> {
        match read(conn, self.prefix()) {
            Ok(pairs) => Ok(self.change(pairs)),
            Err(error) => Err(vec![sql_refusal(TABLE, error)]),
        }
    }

    fn take(&self, pieces: &Pieces, _help: &dyn Help) -> Result<Change, Vec<Refusal>> {
        take(pieces, self.prefix()).map(|pairs| self.change(pairs))
    }

    fn write(
        &self,
        conn: &Connection,
        schema: &str,
        snapshot: &Snapshot,
        wanted: &dyn Fn(&str) -> bool,
    ) -> Result<(), SqlError> {
        let mut insert = conn.prepare(&format!(
            "INSERT OR REPLACE INTO {schema}.{TABLE} VALUES (?1, ?2)"
        ))?;
        for (name, value) in snapshot.variables.pairs() {
            if name.starts_with(self.prefix()) && wanted(name) {
                insert.execute([name, &value])?;
            }
        }
        Ok(())
    }

    fn lines(&self, snapshot: &Snapshot, line: &mut Line<'_>) {
        for pair in snapshot.variables.pairs() {
            if pair.0.starts_with(self.prefix()) && is_shared(pair.0) {
                line(TABLE, serde_json::json!(pair).to_string().as_bytes());
            }
        }
    }

    fn show(
        &self,
        _conn: &Connection,
        _table: &str,
        _snapshot: &Snapshot,
        _sight: &Sight,
    ) -> Result<(), SqlError> {
        // All families at once: see `observe::runtime`.
        Ok(())
    }
}

/// Of what was given, the variables of a family.
fn take(pieces: &Pieces, prefix: &str) -> Result<Pairs, Vec<Refusal>> {
    let mut pairs = Pairs::new();
    for (_, text) in pieces.iter().filter(|(table, _)| table == TABLE) {
        for line in text.split(|byte| *byte == b'\n') {
            let pair: (String, String) = serde_json::from_slice(line)
                .map_err(|error| vec![no_row(TABLE, pairs.len() + 1, &error)])?;
            // Nobody else says where this one listens.
            if pair.0.starts_with(prefix) && is_shared(&pair.0) {
                pairs.push(pair);
            }
        }
    }
    Ok(pairs)
}

/// Puts variables into the next snapshot, if an administrator can come in then.
pub(crate) fn checked(pairs: Pairs, prefix: &str, next: &mut Snapshot, help: &dyn Help) -> Outcome {
    let mut notices = build(pairs, next, help)?;
    if prefix == "admin-" {
        notices.extend(access::check(&next.variables)?);
        notices.extend(access::check_cluster(&next.variables));
    }
    if prefix == "clickhouse-" {
        notices.extend(clickhouse::check_tls(&next.variables, help));
    }
    Ok(notices)
}

fn build(pairs: Pairs, next: &mut Snapshot, help: &dyn Help) -> Outcome {
    let (built, mut notices) = next.variables.with(pairs)?;
    let old = std::mem::replace(&mut next.variables, Arc::new(built));
    // What was built under other values of these must be as valid under the new ones.
    if old.mysql_have_ssl != next.variables.mysql_have_ssl {
        users::build(next, next.users.rows(), help)?;
    }
    if old.mysql_query_processor_regex != next.variables.mysql_query_processor_regex {
        let fast: Vec<_> = next.rules.fast().rows().collect();
        let rules = next.rules.rows().cloned();
        next.rules = Arc::new(Rules::build_with_help(
            &next.rules,
            rules,
            fast,
            &next.variables,
            help,
        )?);
    }
    if !old.mysql_query_rewrite_check && next.variables.mysql_query_rewrite_check {
        next.rewrites = Arc::new(Rewrites::build(next.rewrites.rows().cloned(), true)?);
    }
    if !old.mysql_firewall_whitelist_enabled {
        notices.extend(firewall::everybody_is_refused(next));
    }
    let digests = |v: &Variables| (v.mysql_firewall_whitelist_enabled, v.digest_options());
    if digests(&old) != digests(&next.variables) {
        notices.extend(firewall::others_are_counted(next));
    }
    Ok(notices)
}

/// The variables of a family as memory has them.
pub(crate) fn read(conn: &Connection, prefix: &str) -> Result<Pairs, SqlError> {
    let text = |(name, bytes): (String, Vec<u8>)| match String::from_utf8(bytes) {
        Ok(value) => Ok((name, value)),
        Err(_) => Err(SqlError(format!("{name} must be a text in UTF-8"))),
    };
    saved(conn, prefix)?.into_iter().map(text).collect()
}

/// Variables as [`read`] has them, in bytes: a value that is no text takes no other with it.
pub(crate) fn saved(conn: &Connection, prefix: &str) -> Result<Vec<(String, Vec<u8>)>, SqlError> {
    let mut select = conn.prepare(
        "SELECT variable_name, CAST(variable_value AS TEXT) FROM main.global_variables \
         WHERE substr(variable_name, 1, length(?1)) = ?1 ORDER BY 1",
    )?;
    let bytes = |row: &rusqlite::Row<'_>, at| {
        Ok::<_, rusqlite::Error>(row.get_ref(at)?.as_bytes()?.to_vec())
    };
    let pairs = select.query_map([prefix], |row| {
        Ok((
            String::from_utf8_lossy(&bytes(row, 0)?).into_owned(),
            bytes(row, 1)?,
        ))
    })?;
    Ok(pairs.collect::<Result<_, _>>()?)
}
