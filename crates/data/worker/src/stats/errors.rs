//! Errors that servers gave, by what tells them apart.

use bridge::ErrorRow;
use std::cell::RefCell;
use std::sync::Arc;

/// Rows at most; more kinds of errors than that are not told apart any more.
const ROWS_MAX: usize = 10_000;

/// `stats_mysql_errors` of a core.
#[derive(Default)]
pub(crate) struct Errors(RefCell<Vec<ErrorRow>>);

impl Errors {
    #[expect(clippy::too_many_arguments, reason = "they are the columns of the table")]
    pub(crate) fn count(
        &self,
        hostgroup: u32,
        host: &Arc<str>,
        port: u16,
        user: &str,
        schema: &str,
        errno: u16,
        message: &str,
        now_s: u64,
    ) {
        let mut rows = self.0.borrow_mut();
        let same = |r: &&mut ErrorRow| {
            r.errno == errno
                && r.hostgroup == hostgroup
                && r.port == port
                && r.host == *host
                && *r.user == *user
                && *r.schema == *schema
        };
        if let Some(row) = rows.iter_mut().find(same) {
            row.count += 1;
            row.last_seen = now_s;
            row.last_error = message.into();
        } else if rows.len() < ROWS_MAX {
            rows.push(ErrorRow {
                hostgroup,
                host: host.clone(),
                port,
                user: user.into(),
                client_address: "".into(),
                schema: schema.into(),
                errno,
                count: 1,
                first_seen: now_s,
                last_seen: now_s,
                last_error: message.into(),
            });
        }
    }

    pub(crate) fn rows(&self, reset: bool) -> Vec<ErrorRow> {
        let mut rows = self.0.borrow_mut();
        if reset { std::mem::take(&mut *rows) } else { rows.clone() }
    }
}
