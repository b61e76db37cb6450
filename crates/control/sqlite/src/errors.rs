//! SQLite's errors under the numbers that MySQL's clients know.

use door::Refused;
use rusqlite::Error;
use rusqlite::ffi;
use wire::errors::Code;

/// Remedy of the session for an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Remedy {
    /// Tell the client.
    Tell,
    /// Somebody else writes: wait and try again.
    Wait,
    /// Roll back the transaction, which has read what is out of date, and tell the client.
    RollBack,
}

pub(crate) fn remedy(error: &Error) -> Remedy {
    match error
        .sqlite_error()
        .map(|error| (error.extended_code & 0xFF, error.extended_code))
    {
        Some((_, ffi::SQLITE_BUSY_SNAPSHOT)) => Remedy::RollBack,
        Some((ffi::SQLITE_BUSY | ffi::SQLITE_LOCKED, _)) => Remedy::Wait,
        _ => Remedy::Tell,
    }
}

/// Error of a statement that writes while nothing may be written.
pub(crate) fn read_only() -> Error {
    let words = "The MySQL server is running with the --read-only option (sqliteserver-read_only) so it cannot execute this statement";
    Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_READONLY), Some(words.into()))
}

/// As the client is told.
pub(crate) fn refused(error: &Error) -> Refused {
    let words = match error {
        Error::SqlInputError { msg, .. } => msg.clone(),
        Error::SqliteFailure(_, Some(words)) => words.clone(),
        Error::MultipleStatement => {
            "several statements at once: connect with CLIENT_MULTI_STATEMENTS".into()
        }
        other => other.to_string(),
    };
    let code = |number, state| Code { number, state };
    let extended = error.sqlite_error().map_or(0, |error| error.extended_code);
    let (code, words) = match (extended, extended & 0xFF) {
        (
            ffi::SQLITE_CONSTRAINT_UNIQUE
            | ffi::SQLITE_CONSTRAINT_PRIMARYKEY
            | ffi::SQLITE_CONSTRAINT_ROWID,
            _,
        ) => {
            let key = words.rsplit(": ").next().unwrap_or_default();
            (
                code(1062, "23000"),
                format!("Duplicate entry for key '{key}'"),
            )
        }
        (ffi::SQLITE_CONSTRAINT_NOTNULL, _) => {
            let column = words.rsplit('.').next().unwrap_or_default();
            (
                code(1048, "23000"),
                format!("Column '{column}' cannot be null"),
            )
        }
        (ffi::SQLITE_CONSTRAINT_FOREIGNKEY, _) => (
            code(1452, "23000"),
            "Cannot add, update or delete a row: a foreign key constraint fails".into(),
        ),
        (ffi::SQLITE_CONSTRAINT_CHECK, _) => (code(3819, "HY000"), words),
        (ffi::SQLITE_BUSY_SNAPSHOT, _) => (
            code(1213, "40001"),
            "Deadlock found when trying to get lock; try restarting transaction".into(),
        ),
        (_, ffi::SQLITE_BUSY | ffi::SQLITE_LOCKED) => (
            code(1205, "HY000"),
            "Lock wait timeout exceeded; try restarting transaction".into(),
        ),
        (_, ffi::SQLITE_INTERRUPT) => (
            code(3024, "HY000"),
            "Query execution was interrupted, maximum statement execution time exceeded".into(),
        ),
        (_, ffi::SQLITE_READONLY) => (code(1290, "HY000"), words),
        (_, ffi::SQLITE_FULL) => (code(1114, "HY000"), words),
        (_, ffi::SQLITE_TOOBIG) => (code(1153, "08S01"), words),
        (_, ffi::SQLITE_NOMEM) => (code(1041, "HY000"), words),
        _ => named(words),
    };
    Refused::new(code, words)
}

/// SQLite has one code for everything that is wrong with a text; its words tell more.
fn named(words: String) -> (Code, String) {
    let code = |number, state| Code { number, state };
    if let Some(table) = words.strip_prefix("no such table: ") {
        let table = if table.contains('.') {
            table.to_owned()
        } else {
            format!("main.{table}")
        };
        return (
            code(1146, "42S02"),
            format!("Table '{table}' doesn't exist"),
        );
    }
    if let Some(column) = words.strip_prefix("no such column: ") {
        return (code(1054, "42S22"), format!("Unknown column '{column}'"));
    }
    if words.starts_with("no such function") || words.starts_with("no such savepoint") {
        return (code(1305, "42000"), words);
    }
    if words.starts_with("table ") && words.ends_with("already exists") {
        return (code(1050, "42S01"), words);
    }
    if words.contains("values for") || words.contains("values were supplied") {
        return (code(1136, "21S01"), words);
    }
    if words.ends_with("syntax error")
        || [
            "incomplete input",
            "unrecognized token",
            "several statements",
        ]
        .iter()
        .any(|begin| words.starts_with(begin))
    {
        return (
            code(1064, "42000"),
            format!("You have an error in your SQL syntax: {words}"),
        );
    }
    (code(1105, "HY000"), words)
}
