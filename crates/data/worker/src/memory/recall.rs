//! A stage: what a server remembers of the statement before, answered from what the session has seen, since
//! the connection that knows may serve somebody else by now. And the session's own number, which no server
//! knows.

use crate::command::job::{Job, Told, What};
use crate::command::trouble::{Ended, Failed};
use crate::known::finds::{Finds, found_by};
use crate::memory::drain::Whom;
use crate::memory::found_rows::{MEMORY, asks_for_found_rows, finds_its_rows};
use crate::session::Session;
use crate::session::remembered::Found;
use backend::{Backend, Hold, Unreported};
use sql::words::{Kind, Words};
use sql::{CommandCounter, Reads};
use std::borrow::Cow;
use std::ops::ControlFlow;
use wire::execute::Value;
use wire::resultset::Column;
use wire::types::{BINARY_FLAG, NOT_NULL_FLAG, Type, UNSIGNED_FLAG};

/// More columns are left to a server.
const ITEMS_MAX: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    FoundRows,
    ConnectionId,
    LastInsertId,
}

impl Session {
    /// `SELECT FOUND_ROWS()`, `CONNECTION_ID()` and `LAST_INSERT_ID()`, alone or together.
    pub(crate) async fn recall(&mut self, job: &Job<'_>) -> Result<ControlFlow<Told>, Ended> {
        if job.class.reads.intersects(Reads::FOUND_ROWS) {
            self.core.asking_found_rows.hear(&self.user_name);
        }
        if matches!(job.what, What::Prepare(_)) {
            // Nothing is selected yet.
            return Ok(ControlFlow::Continue(()));
        }
        if asks_for_found_rows(job.class) {
            Box::pin(self.fetch_found_rows(job)).await?;
        }
        let Some(items) = self.known(job) else {
            return Ok(ControlFlow::Continue(()));
        };
        // MySQL calls FOUND_ROWS() deprecated each time.
        let is_mariadb = self.remembered.of_mariadb.get();
        let is_mariadb = is_mariadb.unwrap_or_else(|| job.epoch.claims_mariadb());
        let warnings = items
            .iter()
            .filter(|(what, ..)| *what == Known::FoundRows && !is_mariadb)
            .count();
        let warnings = u16::try_from(warnings).unwrap_or(u16::MAX);
        let mut out = Vec::with_capacity(128);
        let flags = self.flags() | self.turn.flags();
        let mut writer = self
            .writer(&mut out, self.turn.sent, flags)
            .warned(warnings);
        let (columns, values): (Vec<_>, Vec<_>) = items
            .into_iter()
            .map(|(_, column, value)| (column, value))
            .unzip();
        writer.columns(&columns);
        if matches!(job.what, What::Execute(_)) {
            writer.binary_row(
                &columns,
                &values.into_iter().map(Value::Uint).collect::<Vec<_>>(),
            );
        } else {
            let words: Vec<String> = values.iter().map(u64::to_string).collect();
            writer.text_row(words.iter().map(|value| Some(value.as_bytes())));
        }
        writer.end(warnings);
        let seq = writer.last_seq();
        self.remembered.has_found_one_row();
        self.end_found_rows();
        self.say_rows(out, seq, 1).await
    }

    /// Returns what a SELECT asks for, as columns and their values, if all of them are known.
    fn known(&self, job: &Job<'_>) -> Option<Vec<(Known, Column, u64)>> {
        let class = job.class;
        let asks = class.command == CommandCounter::Select
            && !class.reads.is_empty()
            && class.leaves.is_empty();
        let is_prepared = match job.what {
            What::Query(_) => false,
            // Who wants a cursor is told by the flags that there is none.
            What::Execute(execution) if !execution.is_bulk() => true,
            _ => return None,
        };
        if !asks || class.multi || !job.is_as_written() {
            return None;
        }
        // A rule may have made another statement of what is prepared.
        let items = items(if is_prepared { job.sent() } else { job.text })?;
        let only_ours = items.iter().all(|(what, _)| *what != Known::FoundRows);
        // What is prepared has FOUND_ROWS() in its text: see `counted`.
        if is_prepared && !only_ours {
            return None;
        }
        // A connection that is kept knows better, if it saw that statement and sees this one.
        let hostgroup = job.plan.hostgroup();
        let knows = self
            .held
            .iter()
            .any(|(of, backend)| of == hostgroup && self.knows_found_rows(backend));
        if knows && !only_ours {
            return None;
        }
        let mariadb = job.epoch.claims_mariadb();
        let value = |what| match what {
            Known::FoundRows => self.found_rows().map(u64::from),
            Known::LastInsertId => self.certain_insert_id(),
            Known::ConnectionId => {
                Some(u64::from(self.entry.id)).filter(|_| !self.remembered.numbered.get())
            }
        };
        items
            .iter()
            .map(|(what, name)| Some((*what, column(*what, name, mariadb), value(*what)?)))
            .collect()
    }

    /// A read was answered with so many rows, or with an error, and no connection of this session
    /// saw it.
    pub(crate) fn recall_read(&mut self, job: &Job<'_>, rows: u64, error: bool) {
        let counted = job.class.plain_read && !error && job.plan.rows_max().is_none();
        let found = match Finds::of(job.class, job.sent(), None) {
            Finds::Nothing => return,
            Finds::Rows
                if counted
                    && self.limits_are_read(job)
                    && (finds_its_rows(job, rows, job.epoch.claims_mariadb())
                        || self.found_rows() == Some(1)) =>
            {
                found_by(job.class, job.sent(), rows, None)
            }
            _ => None,
        };
        self.remembered
            .has_found(found.map_or(Found::Unknown, Found::Rows));
        self.end_found_rows();
    }

    /// Where SQL_CALC_FOUND_ROWS has run, and this statement goes elsewhere: it is asked there, and
    /// goes along.
    async fn fetch_found_rows(&mut self, job: &Job<'_>) -> Result<(), Ended> {
        if self.held.has(job.plan.hostgroup(), Hold::FoundRows) {
            return Ok(());
        }
        let v = &job.epoch.snapshot.variables;
        let whom = Whom::Command {
            limit_ms: self.limit_ms(job).min(v.mysql_connect_timeout_server),
            answered: true,
        };
        let is_meant = |_: &Self, _, backend: &Backend| {
            backend.holds.has(Hold::FoundRows) && backend.local.unreported == Unreported::Nothing
        };
        match self.drain(is_meant, &[&MEMORY], whom).await {
            // What else was there is lost with it.
            Err(trouble) if trouble.state_lost || matches!(trouble.why, Failed::Client) => {
                Err(trouble.ends())
            }
            _ => Ok(()),
        }
    }
}

/// The columns of `SELECT function() [[AS] name], …`: what each is, and its name.
fn items(text: &[u8]) -> Option<Vec<(Known, Cow<'_, str>)>> {
    let mut words = Words::new(text);
    if !words.next()?.is("SELECT") {
        return None;
    }
    let mut items = Vec::new();
    loop {
        let function = words.next()?;
        let what = match () {
            () if function.is("FOUND_ROWS") => Known::FoundRows,
            () if function.is("CONNECTION_ID") => Known::ConnectionId,
            () if function.is("LAST_INSERT_ID") => Known::LastInsertId,
            () => return None,
        };
        let (open, close) = (words.next()?, words.next()?);
        // The column is called as it is written, which is simple only without blanks.
        let tight = open.is_sign(b'(')
            && close.is_sign(b')')
            && open.start == function.end()
            && close.start == open.end();
        if !tight || items.len() == ITEMS_MAX {
            return None;
        }
        let mut name = Cow::Borrowed(std::str::from_utf8(&text[function.start..close.end()]).ok()?);
        let mut next = words.next();
        if let Some(alias) = next.filter(|token| !matches!(token.kind, Kind::Sign)) {
            let alias = if alias.is("AS") { words.next()? } else { alias };
            let plain = matches!(alias.kind, Kind::Word | Kind::Name)
                && alias.is_whole()
                && alias.text.is_ascii();
            if !plain
                || alias.is_any(&[
                    "FROM",
                    "WHERE",
                    "LIMIT",
                    "INTO",
                    "UNION",
                    "FOR",
                    "ORDER",
                    "GROUP",
                    "HAVING",
                    "DIV",
                    "MOD",
                    "AND",
                    "OR",
                    "XOR",
                    "IS",
                    "IN",
                    "LIKE",
                    "BETWEEN",
                    "COLLATE",
                    "PROCEDURE",
                    "LOCK",
                    "EXCEPT",
                    "INTERSECT",
                    "WINDOW",
                    "NOT",
                    "REGEXP",
                    "RLIKE",
                ])
            {
                return None;
            }
            name =
                Cow::Owned(String::from_utf8(sql::words::unquote(alias.text).into_owned()).ok()?);
            next = words.next();
        }
        items.push((what, name));
        match next {
            None => return Some(items),
            Some(token) if token.is_sign(b',') => {}
            Some(token) if token.is_sign(b';') && words.next().is_none() => return Some(items),
            Some(_) => return None,
        }
    }
}

/// As the servers describe it.
fn column(what: Known, name: &str, mariadb: bool) -> Column {
    let signed = Column {
        length: 21,
        flags: NOT_NULL_FLAG | BINARY_FLAG,
        ..Column::integer(name)
    };
    match what {
        Known::FoundRows => signed,
        Known::LastInsertId => Column {
            flags: signed.flags | UNSIGNED_FLAG,
            ..signed
        },
        Known::ConnectionId if mariadb => Column {
            kind: Type::LONG,
            length: 10,
            flags: signed.flags | UNSIGNED_FLAG,
            ..signed
        },
        Known::ConnectionId => Column {
            flags: signed.flags | UNSIGNED_FLAG,
            ..signed
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::found_rows::like_those_measured;

    #[test]
    fn an_older_server_is_not_taken_for_one_that_was_measured() {
        for (version, wanted) in [
            ([9, 7, 4], Some(false)),
            ([8, 0, 22], Some(false)),
            ([8, 0, 21], None),
            ([5, 7, 44], None),
            ([8, 0, 0], None),
        ] {
            assert_eq!(like_those_measured(version, false), wanted, "{version:?}");
        }
        assert_eq!(like_those_measured([10, 11, 19], true), Some(true));
    }

    #[test]
    fn only_what_is_wholly_known_is_answered() {
        let names = |text: &str| {
            items(text.as_bytes()).map(|items| {
                items
                    .iter()
                    .map(|(what, name)| format!("{what:?} {name}"))
                    .collect::<Vec<_>>()
            })
        };
        assert_eq!(
            names("select Found_Rows()").unwrap(),
            ["FoundRows Found_Rows()"]
        );
        assert_eq!(
            names("SELECT FOUND_ROWS() AS `n`, CONNECTION_ID() me;").unwrap(),
            ["FoundRows n", "ConnectionId me"]
        );
        for text in [
            "SELECT FOUND_ROWS ()",
            "SELECT FOUND_ROWS() + 1",
            "SELECT FOUND_ROWS() FROM t",
            "SELECT FOUND_ROWS(), 1",
            "SELECT CONNECTION_ID() = 5",
            "SELECT CONNECTION_ID() INTO @x",
            "SELECT FOUND_ROWS(1)",
            "SELECT FOUND_ROWS(); SELECT 1",
            "SELECT CONNECTION_ID() AS",
            "SELECT",
        ] {
            assert_eq!(names(text), None, "{text}");
        }
    }
}
