//! Errors that servers gave, by what tells them apart. A bounded table; finding a row allocates
//! nothing but the words of the error.

use super::digests::mixed;
use bridge::ErrorRow;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use std::cell::RefCell;
use std::sync::Arc;

/// Rows at most.
const ROWS_MAX: usize = 10_000;

/// An error that came.
#[derive(Clone, Copy)]
pub(crate) struct Failed<'a> {
    pub(crate) hostgroup: u32,
    pub(crate) host: &'a Arc<str>,
    pub(crate) port: u16,
    pub(crate) user: &'a str,
    pub(crate) client_address: &'a str,
    pub(crate) schema: &'a str,
    pub(crate) errno: u16,
    pub(crate) message: &'a str,
    pub(crate) now_s: u64,
}

struct Row {
    hash: u64,
    row: ErrorRow,
}

/// `stats_mysql_errors` of a core.
#[derive(Default)]
pub(crate) struct Errors(RefCell<HashTable<Row>>);

impl Errors {
    /// Counts it; `false` when it is new and the table is full.
    pub(crate) fn count(&self, failed: &Failed<'_>) -> bool {
        let Failed {
            hostgroup,
            host,
            port,
            user,
            client_address,
            schema,
            errno,
            message,
            now_s,
        } = *failed;
        let number = u64::from(hostgroup) << 32 | u64::from(port) << 16 | u64::from(errno);
        let hash = mixed(
            number.wrapping_mul(0x9E37_79B9_7F4A_7C15),
            [host, user, client_address, schema],
        );
        let mut rows = self.0.borrow_mut();
        let full = rows.len() >= ROWS_MAX;
        let same = |known: &Row| {
            let row = &known.row;
            known.hash == hash
                && (row.errno, row.hostgroup, row.port) == (errno, hostgroup, port)
                && row.host == *host
                && (&*row.user, &*row.client_address, &*row.schema)
                    == (user, client_address, schema)
        };
        match rows.entry(hash, same, |known| known.hash) {
            Entry::Occupied(mut entry) => {
                let row = &mut entry.get_mut().row;
                row.count += 1;
                row.last_seen = now_s;
                row.last_error = message.into();
                true
            }
            Entry::Vacant(_) if full => false,
            Entry::Vacant(entry) => {
                let row = ErrorRow {
                    hostgroup,
                    host: host.clone(),
                    port,
                    user: user.into(),
                    client_address: client_address.into(),
                    schema: schema.into(),
                    errno,
                    count: 1,
                    first_seen: now_s,
                    last_seen: now_s,
                    last_error: message.into(),
                };
                entry.insert(Row { hash, row });
                true
            }
        }
    }

    pub(crate) fn rows(&self, reset: bool) -> Vec<ErrorRow> {
        let mut rows = self.0.borrow_mut();
        if reset {
            std::mem::take(&mut *rows)
                .into_iter()
                .map(|known| known.row)
                .collect()
        } else {
            rows.iter().map(|known| known.row.clone()).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_told_apart_by_client_and_code_and_the_table_is_bounded() {
        let host: Arc<str> = "h".into();
        let errors = Errors::default();
        let failed = |client_address, errno, now_s, message| {
            let failed = Failed {
                hostgroup: 1,
                host: &host,
                port: 3306,
                user: "u",
                client_address,
                schema: "s",
                errno,
                message,
                now_s,
            };
            errors.count(&failed)
        };
        assert!(
            failed("10.0.0.1", 1062, 5, "first")
                && failed("10.0.0.1", 1062, 9, "last")
                && failed("10.0.0.2", 1062, 7, "x")
        );
        let mut rows = errors.rows(true);
        rows.sort_by_key(|row| row.first_seen);
        let seen: Vec<_> = rows
            .iter()
            .map(|row| {
                (
                    &*row.client_address,
                    row.count,
                    row.first_seen,
                    row.last_seen,
                    &*row.last_error,
                )
            })
            .collect();
        assert_eq!(
            seen,
            [("10.0.0.1", 2, 5, 9, "last"), ("10.0.0.2", 1, 7, 7, "x")]
        );
        assert!((0..ROWS_MAX as u16).all(|errno| failed("", errno, 1, "")));
        assert!(!failed("", ROWS_MAX as u16, 1, "") && failed("", 1, 1, ""));
        assert_eq!(errors.rows(false).len(), ROWS_MAX);
    }
}
