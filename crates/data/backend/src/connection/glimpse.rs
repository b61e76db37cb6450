//! Answers of which the beginning is looked at: what a statement has made or unmade by name.

use crate::connection::ask::without_zeros;
use crate::connection::backend::{Backend, GLIMPSE_LEN_MAX};
use crate::session::own::LockAnswer;

impl Backend {
    /// Keeps the beginning of the next answer for [`Backend::learn_owned`] or
    /// [`Backend::seen_answer`].
    pub fn look_at_answer(&mut self) {
        self.lease.glimpse = Some(Vec::new());
    }

    /// The whole answer, if it was looked at and is not too long.
    pub fn seen_answer(&mut self) -> Option<Vec<u8>> {
        self.lease
            .glimpse
            .take()
            .filter(|seen| seen.len() < GLIMPSE_LEN_MAX)
    }

    /// A statement has ended that may have made or unmade something by name. `schema`: where its
    /// names are looked for, if not in the current one. `executed`: by its id, so that its values
    /// are numbers and not their digits.
    pub fn learn_owned(
        &mut self,
        class: &sql::Class<'_>,
        text: &[u8],
        schema: Option<&str>,
        ok: bool,
        executed: bool,
    ) {
        let seen = self.seen_answer();
        let number = seen
            .as_ref()
            .filter(|_| executed)
            .and_then(|seen| wire::rows::read_executed_number(seen, self.hello.caps));
        let digits = number
            .map(|number| number.map_or_else(|| "NULL".to_owned(), |number| number.to_string()));
        let seen = seen.filter(|_| !executed);
        let rows = seen
            .and_then(|seen| wire::rows::read(&seen, self.hello.caps).ok())
            .unwrap_or_default();
        let value = match (rows.shapes.as_slice(), rows.rows.as_slice()) {
            // A MariaDB that answers in utf16 writes numbers in it, too.
            ([_], [row]) => row
                .first()
                .map(|value| without_zeros(value.as_deref().unwrap_or(b"NULL"))),
            _ => digits.map(String::into_bytes),
        };
        let limit = self.state.variable("sql_select_limit");
        let no_rows = limit.is_some_and(|limit| limit.parse().is_ok_and(|rows: i64| rows <= 0));
        let answered = LockAnswer {
            value: value.as_deref(),
            no_rows,
        };
        let owned = self.local.owned.get_or_insert_default();
        owned.learn(
            &mut self.holds,
            class,
            text,
            schema.unwrap_or(&self.state.schema),
            ok,
            answered,
        );
    }
}
