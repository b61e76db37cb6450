//! SQL functions that SQLite has not: ProxySQL's own, and those of MySQL's that scripts and drivers
//! use.

use rusqlite::Connection;
use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::ValueRef;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use wire::{auth, crypt};

/// Whose statement runs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Whose {
    /// Name and host, as `USER()` has them.
    pub(crate) user: String,
    /// Number of the session.
    pub(crate) session: u32,
    /// Number of the row that it inserted last; 0 if another session has inserted since.
    pub(crate) inserted: i64,
}

/// Whose statement runs, for functions that ask.
pub(crate) type Now = Arc<Mutex<Whose>>;

/// Adds functions whose value depends on who asks, and when.
pub(crate) fn add_of_now(conn: &Connection, now: &Now) -> rusqlite::Result<()> {
    let text = FunctionFlags::SQLITE_UTF8;
    for name in ["user", "current_user", "session_user", "system_user"] {
        let now = now.clone();
        conn.create_scalar_function(name, 0, text, move |_| Ok(asking(&now).user))?;
    }
    let (session, inserted) = (now.clone(), now.clone());
    conn.create_scalar_function("connection_id", 0, text, move |_| {
        Ok(asking(&session).session)
    })?;
    conn.create_scalar_function("last_insert_id", 0, text, move |_| {
        Ok(asking(&inserted).inserted)
    })?;
    conn.create_scalar_function("now", 0, text, |_| Ok(date_time(seconds_now())))?;
    conn.create_scalar_function("unix_timestamp", 0, text, |_| Ok(seconds_now()))
}

fn asking(now: &Now) -> Whose {
    now.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

fn seconds_now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
    })
}

/// Adds those whose value depends on nothing else.
pub(crate) fn add(conn: &Connection) -> rusqlite::Result<()> {
    let pure = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    // For tools that ask for them inside of other statements; alone, they are answered by the
    // grammar.
    for (name, value) in [
        ("database", "main"),
        ("schema", "main"),
        (
            "version",
            config::Variables::default().admin_version.as_ref(),
        ),
    ] {
        let value = value.to_owned();
        conn.create_scalar_function(name, 0, pure, move |_| Ok(value.clone()))?;
    }
    conn.create_scalar_function("mysql_native_password", 1, pure, |context| {
        let password: Option<String> = context.get(0)?;
        Ok(password.map(|password| auth::native_text(&auth::native_stage2(password.as_bytes()))))
    })?;
    conn.create_scalar_function(
        "caching_sha2_password",
        1,
        FunctionFlags::SQLITE_UTF8,
        |context| sha2(context, fresh_salt()),
    )?;
    conn.create_scalar_function("caching_sha2_password", 2, pure, |context| {
        let salt: String = context.get(1)?;
        let salt = salt
            .as_bytes()
            .try_into()
            .map_err(|_| failure("the salt of CACHING_SHA2_PASSWORD must have 20 characters"))?;
        sha2(context, salt)
    })?;
    for (name, part) in [("left", first as Part), ("right", last as Part)] {
        conn.create_scalar_function(name, 2, pure, move |context| {
            let (Some(text), Some(count)) = (text(context, 0)?, context.get::<Option<i64>>(1)?)
            else {
                return Ok(None);
            };
            let count = usize::try_from(count.max(0)).unwrap_or(usize::MAX);
            Ok(Some(part(&text, count).to_owned()))
        })?;
    }
    conn.create_scalar_function("from_unixtime", 1, pure, |context| {
        let seconds: Option<i64> = context.get(0)?;
        Ok(seconds.map(date_time))
    })
}

type Part = fn(&str, usize) -> &str;

/// The first characters of a text.
fn first(text: &str, count: usize) -> &str {
    let end = text.char_indices().nth(count);
    &text[..end.map_or(text.len(), |(at, _)| at)]
}

/// The last characters of a text.
fn last(text: &str, count: usize) -> &str {
    let skipped = text.chars().count().saturating_sub(count);
    let begin = text.char_indices().nth(skipped);
    &text[begin.map_or(text.len(), |(at, _)| at)..]
}

/// An argument as text, whatever its type is.
fn text(context: &Context<'_>, at: usize) -> rusqlite::Result<Option<String>> {
    Ok(match context.get_raw(at) {
        ValueRef::Null => None,
        ValueRef::Integer(number) => Some(number.to_string()),
        ValueRef::Real(number) => Some(number.to_string()),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            Some(String::from_utf8_lossy(bytes).into_owned())
        }
    })
}

fn sha2(context: &Context<'_>, salt: [u8; crypt::SALT_LEN]) -> rusqlite::Result<Option<String>> {
    let Some(password) = context.get::<Option<String>>(0)? else {
        return Ok(None);
    };
    if password.is_empty() {
        return Ok(Some(password));
    }
    let stored = crypt::create(password.as_bytes(), salt)
        .ok_or_else(|| failure("the password is too long"))?;
    String::from_utf8(stored)
        .map(Some)
        .map_err(|_| failure("the salt is not a text"))
}

fn failure(words: &'static str) -> rusqlite::Error {
    rusqlite::Error::UserFunctionError(words.into())
}

/// Twenty characters that nobody can foresee: the standard library's hasher is keyed by the
/// operating system.
fn fresh_salt() -> [u8; crypt::SALT_LEN] {
    let mut random = [0; crypt::SALT_LEN];
    for eight in random.chunks_mut(8) {
        let number = RandomState::new().build_hasher().finish();
        eight.copy_from_slice(&number.to_le_bytes()[..eight.len()]);
    }
    auth::nonce(random).map(|byte| if byte < b' ' { byte + b'@' } else { byte })
}

/// UTC, as MySQL writes it. Days to dates after Howard Hinnant's `civil_from_days`.
pub(crate) fn date_time(seconds: i64) -> String {
    let (days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let shifted = days.saturating_add(719_468);
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!(
        "{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}",
        rest / 3600,
        rest / 60 % 60,
        rest % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_right_around_leap_days() {
        for (seconds, text) in [
            (0, "1970-01-01 00:00:00"),
            (951_782_399, "2000-02-28 23:59:59"),
            (951_782_400, "2000-02-29 00:00:00"),
            (4_107_542_400, "2100-03-01 00:00:00"),
            (-1, "1969-12-31 23:59:59"),
        ] {
            assert_eq!(date_time(seconds), text);
        }
    }

    #[test]
    fn parts_of_texts_are_counted_in_characters() {
        let conn = Connection::open_in_memory().unwrap();
        add(&conn).unwrap();
        for (sql, wanted) in [
            ("LEFT('äbc', 2)", Some("äb")),
            ("RIGHT('abä', 2)", Some("bä")),
            ("LEFT('ab', 9) || RIGHT('ab', 9)", Some("abab")),
            ("LEFT('ab', -1) || RIGHT('ab', 0)", Some("")),
            ("LEFT(1234, 2)", Some("12")),
            ("LEFT(NULL, 2)", None),
            ("RIGHT('ab', NULL)", None),
        ] {
            let said: Option<String> = conn
                .query_row(&format!("SELECT {sql}"), [], |row| row.get(0))
                .unwrap();
            assert_eq!(said.as_deref(), wanted, "{sql}");
        }
    }

    #[test]
    fn a_fresh_salt_makes_a_hash_that_verifies_and_another_each_time() {
        let conn = Connection::open_in_memory().unwrap();
        add(&conn).unwrap();
        let one = || {
            conn.query_row("SELECT CACHING_SHA2_PASSWORD('secret')", [], |row| {
                row.get::<_, String>(0)
            })
            .unwrap()
        };
        let stored = one();
        assert!(crypt::verify(stored.as_bytes(), b"secret"), "{stored}");
        assert_ne!(stored, one());
    }
}
