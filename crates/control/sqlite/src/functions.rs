//! Functions that MySQL's clients call and SQLite has not.

use rusqlite::Connection;
use rusqlite::functions::FunctionFlags;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Facts of the session that the functions tell. SQLite wants what they hold to be fit for other
/// threads.
#[derive(Debug)]
pub(crate) struct Told {
    schema: Mutex<String>,
    pub(crate) insert_id: AtomicI64,
    pub(crate) affected: AtomicI64,
}

impl Default for Told {
    fn default() -> Self {
        Self {
            schema: Mutex::new("main".into()),
            insert_id: AtomicI64::new(0),
            affected: AtomicI64::new(0),
        }
    }
}

impl Told {
    pub(crate) fn use_schema(&self, schema: &str) {
        schema.clone_into(&mut self.schema.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn schema(&self) -> String {
        self.schema
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// Adds them to a connection.
pub(crate) fn add(
    conn: &Connection,
    version: &str,
    user: &str,
    id: u32,
    told: &Arc<Told>,
) -> rusqlite::Result<()> {
    let text = |name: &str, value: String| {
        conn.create_scalar_function(name, 0, FunctionFlags::SQLITE_UTF8, move |_| {
            Ok(value.clone())
        })
    };
    text("version", version.to_owned())?;
    for name in ["user", "session_user", "system_user"] {
        text(name, format!("{user}@%"))?;
    }
    for name in ["database", "schema"] {
        let told = told.clone();
        conn.create_scalar_function(name, 0, FunctionFlags::SQLITE_UTF8, move |_| {
            Ok(told.schema())
        })?;
    }
    let plain = FunctionFlags::SQLITE_UTF8;
    conn.create_scalar_function("connection_id", 0, plain, move |_| Ok(i64::from(id)))?;
    let (insert, affected) = (told.clone(), told.clone());
    conn.create_scalar_function("last_insert_id", 0, plain, move |_| {
        Ok(insert.insert_id.load(Ordering::Relaxed))
    })?;
    conn.create_scalar_function("row_count", 0, plain, move |_| {
        Ok(affected.affected.load(Ordering::Relaxed))
    })?;
    now(conn)?;
    let pure = plain | FunctionFlags::SQLITE_DETERMINISTIC;
    conn.create_scalar_function("left", 2, pure, |context| {
        let (text, count): (Option<String>, i64) = (context.get(0)?, context.get(1)?);
        let count = usize::try_from(count).unwrap_or_default();
        Ok(text.map(|text| text.chars().take(count).collect::<String>()))
    })?;
    conn.create_scalar_function("right", 2, pure, |context| {
        let (text, count): (Option<String>, i64) = (context.get(0)?, context.get(1)?);
        let count = usize::try_from(count).unwrap_or_default();
        Ok(text.map(|text| {
            text.chars()
                .skip(text.chars().count().saturating_sub(count))
                .collect::<String>()
        }))
    })?;
    conn.create_scalar_function("repeat", 2, pure, |context| {
        let (text, count): (Option<String>, i64) = (context.get(0)?, context.get(1)?);
        let Some(text) = text else { return Ok(None) };
        let count = usize::try_from(count).unwrap_or_default();
        if text.len().saturating_mul(count) > REPEATED_BYTES_MAX {
            return Err(rusqlite::Error::UserFunctionError(
                "the result of REPEAT is too large".into(),
            ));
        }
        Ok(Some(text.repeat(count)))
    })
}

/// As MySQL's max_allowed_packet.
const REPEATED_BYTES_MAX: usize = 64 << 20;

/// The clock that SQLite's own date functions read as well.
fn now(conn: &Connection) -> rusqlite::Result<()> {
    conn.create_scalar_function("unix_timestamp", 0, FunctionFlags::SQLITE_UTF8, |_| {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Ok(since.map_or(0, |since| {
            i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
        }))
    })
}
