//! What SQLite may do while it understands a statement.
//!
//! Many a PRAGMA is carried out when it is prepared, also behind EXPLAIN, in COM_STMT_PREPARE, and
//! behind a `;` of a text of which only the beginning is run. So SQLite itself is told what may not
//! be: looking at the words of a text is for better words only.

use rusqlite::Connection;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// They tell something and change nothing, whatever their argument.
pub(crate) const HARMLESS: &[&str] = &[
    "table_info",
    "table_list",
    "index_list",
    "index_info",
    "database_list",
    "compile_options",
    "function_list",
];
/// They look through all rows, and are for administrators. ALTER TABLE needs them, too.
pub(crate) const CHECKS: &[&str] = &["quick_check", "integrity_check"];
/// So do these, which nobody has to say: functions with the names of PRAGMAs need them.
const HARMLESS_INSIDE: &[&str] = &["table_xinfo", "index_xinfo", "foreign_key_list"];
/// These do so without an argument.
const READ: &[&str] = &["page_count", "page_size", "data_version", "query_only"];

/// Whether what is prepared is a statement of ours, and what it reads.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ours(Arc<AtomicBool>, Arc<Mutex<Option<Tables>>>);

/// Names of tables, in small letters.
pub(crate) type Tables = BTreeSet<String>;

impl Ours {
    /// From now on, on this connection, only statements of ours set anything or reach for other
    /// files.
    pub(crate) fn watch(&self, conn: &Connection) {
        let (ours, noted) = (self.0.clone(), self.1.clone());
        conn.authorizer(Some(move |asked: AuthContext<'_>| {
            if let AuthAction::Read { table_name, .. } = asked.action
                && let Some(tables) = &mut *noted.lock().unwrap_or_else(PoisonError::into_inner)
            {
                tables.insert(table_name.to_ascii_lowercase());
            }
            if ours.load(Ordering::Relaxed) || may_be_anybodys(&asked.action) {
                Authorization::Allow
            } else {
                Authorization::Deny
            }
        }));
    }

    /// The tables that are read by what `work` prepares, be it only to count their rows.
    pub(crate) fn read_by<T>(&self, work: impl FnOnce() -> T) -> (T, Tables) {
        let noted = || self.1.lock().unwrap_or_else(PoisonError::into_inner);
        *noted() = Some(Tables::new());
        let outcome = work();
        let tables = noted().take();
        (outcome, tables.unwrap_or_default())
    }

    /// Runs `work`, with what it prepares marked as ours.
    pub(crate) fn during<T>(&self, work: impl FnOnce() -> T) -> T {
        let before = self.0.swap(true, Ordering::Relaxed);
        let outcome = work();
        self.0.store(before, Ordering::Relaxed);
        outcome
    }
}

fn may_be_anybodys(action: &AuthAction<'_>) -> bool {
    let is_one_of =
        |names: &[&str], name: &str| names.iter().any(|known| known.eq_ignore_ascii_case(name));
    match action {
        AuthAction::Pragma {
            pragma_name,
            pragma_value,
        } => {
            is_one_of(HARMLESS, pragma_name)
                || is_one_of(CHECKS, pragma_name)
                || is_one_of(HARMLESS_INSIDE, pragma_name)
                || (pragma_value.is_none() && is_one_of(READ, pragma_name))
        }
        // VACUUM works in a file without a name. What is no literal arrives as Unknown.
        AuthAction::Attach { filename } => filename.is_empty(),
        AuthAction::Detach { .. } | AuthAction::Unknown { .. } => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::{Engine, View};

    #[test]
    fn nothing_that_is_only_prepared_sets_anything() {
        for view in [View::Stats, View::Admin] {
            let mut engine = Engine::open(None, view).unwrap();
            engine.set_read_only(true).unwrap();
            let pragma = |name: &str| {
                engine
                    .conn()
                    .pragma_query_value(None, name, |row| row.get::<_, i64>(0))
                    .unwrap()
            };
            for set in [
                "query_only=0",
                "query_only(0)",
                "main.query_only = off",
                "hard_heap_limit=1",
                "locking_mode=EXCLUSIVE",
            ] {
                for text in [
                    format!("PRAGMA {set}"),
                    format!("EXPLAIN PRAGMA {set}"),
                    format!("explain /* */ query plan pragma {set}"),
                    format!("SELECT 1; PRAGMA {set}"),
                    format!("SELECT 1; ; EXPLAIN PRAGMA {set}"),
                ] {
                    assert!(engine.describe(&text, |_| false).is_err(), "{text}");
                    assert!(engine.run(&text, &[]).is_err(), "{text}");
                    assert!(engine.query(&text, &[], |_| None).is_err(), "{text}");
                    assert_eq!(pragma("query_only"), 1, "{text}");
                }
            }
            for file in [
                "ATTACH '/tmp/x' AS x",
                "ATTACH 'a' || 'b' AS x",
                "VACUUM INTO '/tmp/x'",
                "DETACH stats_history",
            ] {
                assert!(engine.query(file, &[], |_| None).is_err(), "{file}");
            }
            let write =
                "INSERT INTO stats_history.history_mysql_query_digest (hostgroup) VALUES (1)";
            assert!(engine.run(write, &[]).unwrap_err().0.contains("readonly"));
        }
    }

    #[test]
    fn what_only_tells_something_is_told_and_what_is_ours_is_done() {
        let mut engine = Engine::open(None, View::Admin).unwrap();
        for text in [
            "PRAGMA table_info(mysql_servers)",
            "PRAGMA database_list",
            "PRAGMA integrity_check",
            "PRAGMA disk.quick_check(1)",
            "SELECT name FROM pragma_table_info('mysql_users', 'disk')",
            "EXPLAIN QUERY PLAN SELECT * FROM mysql_servers",
            "VACUUM",
            "CREATE TABLE own (a)",
            "INSERT INTO own VALUES (1)",
            "ALTER TABLE own ADD COLUMN b NOT NULL DEFAULT 1 CHECK (b > 0)",
            "DROP TABLE own",
        ] {
            engine
                .run(text, &[])
                .unwrap_or_else(|error| panic!("{text}: {error}"));
        }
        engine.set_read_only(true).unwrap();
        assert!(engine.run("CREATE TABLE own (a)", &[]).is_err());
        engine
            .writing(|conn| Ok(conn.execute_batch("CREATE TABLE own (a)")?))
            .unwrap();
        engine.set_read_only(false).unwrap();
        engine.run("INSERT INTO own VALUES (1)", &[]).unwrap();
    }
}
