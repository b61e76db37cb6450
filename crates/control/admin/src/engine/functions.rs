//! SQL functions that ProxySQL's admin port has and SQLite has not.

use rusqlite::Connection;
use rusqlite::functions::{Context, FunctionFlags};
use std::hash::{BuildHasher, Hasher, RandomState};
use wire::{auth, crypt};

/// Adds them to a connection.
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
    conn.create_scalar_function("from_unixtime", 1, pure, |context| {
        let seconds: Option<i64> = context.get(0)?;
        Ok(seconds.map(date_time))
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
