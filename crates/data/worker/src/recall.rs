//! A stage: what a server remembers of the statement before, answered from what the session has seen, since the connection that knows
//! may serve somebody else by now. And the session's own number, which no server knows.

use crate::answer::Complaint;
use crate::session::{Ended, Session};
use crate::statement::{Job, Told, What};
use backend::Hold;
use bridge::Counter;
use sql::words::{Kind, Words};
use sql::{Class, CommandCounter, Leaves, Reads};
use std::borrow::Cow;
use std::num::NonZeroU32;
use std::ops::ControlFlow;
use wire::response::Response;
use wire::resultset::{Column, Writer};
use wire::types::{BINARY_FLAG, NOT_NULL_FLAG, Type, UNSIGNED_FLAG};
use wire::{caps, status};

/// More columns are left to a server.
const ITEMS_MAX: usize = 8;

/// What the statement before has left, as far as it is known without asking.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Recall {
    /// Rows of the result before, plus one; `None` if nobody has counted them.
    found_rows: Option<NonZeroU32>,
    /// What FOUND_ROWS() was where `SQL_CALC_FOUND_ROWS` ran, plus one, if that connection was given back.
    calculated: Option<Calculated>,
    /// The proxy has answered: no connection of the session knows.
    ours: bool,
}

#[derive(Debug, Clone, Copy)]
struct Calculated {
    /// `None` if it could not be asked.
    rows: Option<NonZeroU32>,
    /// To MySQL, an UPDATE finds rows as well.
    mariadb: bool,
}

impl Recall {
    /// A read was answered with so many rows, and no connection of this session saw it.
    pub(crate) fn of_read(job: &Job<'_>, rows: u64) -> Self {
        let counted = job.class.command == CommandCounter::Select && job.class.plain_read && job.plan.rows_max.is_none();
        Self { found_rows: found(rows).filter(|_| counted), calculated: None, ours: true }
    }

    /// The proxy has answered with one row.
    pub(crate) fn of_one_row() -> Self {
        Self { found_rows: found(1), calculated: None, ours: true }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    FoundRows,
    ConnectionId,
}

impl Session {
    /// `SELECT FOUND_ROWS()` and `CONNECTION_ID()`, alone or together.
    pub(crate) async fn recall(&mut self, job: &Job<'_>) -> Result<ControlFlow<Told>, Ended> {
        let before = self.entry.recall.take();
        if matches!(job.what, What::Prepare(_)) {
            // Nothing is selected yet.
            self.entry.recall.set(before);
            return Ok(ControlFlow::Continue(()));
        }
        if before.calculated.is_some() {
            self.entry.recall.set(Recall { found_rows: None, ..before });
        }
        let Some(items) = self.known(job, before) else {
            let Some(calculated) = before.calculated.filter(|_| asks_for_found_rows(job.class)) else {
                return Ok(ControlFlow::Continue(()));
            };
            let words = match calculated.rows {
                Some(_) => {
                    "The connection that can answer this about FOUND_ROWS() was given back while a statement of the session waited for another one; \
                     SELECT FOUND_ROWS() by itself is still answered"
                }
                None => "The connection that knew FOUND_ROWS() is lost, and it is lost with it",
            };
            self.refuse(&Complaint::with(1235, "42000", words)).await?;
            return Ok(ControlFlow::Break(Told::default()));
        };
        // MySQL calls FOUND_ROWS() deprecated each time.
        let warnings = items.iter().filter(|(what, ..)| *what == Known::FoundRows && !job.epoch.claims_mariadb()).count();
        let mut out = Vec::with_capacity(128);
        let mut writer = Writer::new(&mut out, self.turn.sent, self.caps, self.flags() | self.turn.flags());
        let (columns, values): (Vec<_>, Vec<_>) = items.into_iter().map(|(_, column, value)| (column, value)).unzip();
        writer.columns(&columns);
        writer.text_row(values.iter().map(|value| Some(value.as_bytes())));
        writer.end(u16::try_from(warnings).unwrap_or(u16::MAX));
        let packets = columns.len() + 3 + usize::from(!caps::has(self.caps, caps::DEPRECATE_EOF));
        self.turn.sent = self.turn.sent.wrapping_add(u8::try_from(packets).unwrap_or(u8::MAX));
        self.entry.recall.set(Recall::of_one_row());
        self.core.tally.add(Counter::QueriesFrontendsBytesSent, out.len() as u64);
        self.hand_over(out).await?;
        Ok(ControlFlow::Break(Told { rows_sent: 1, row_count: -1, ..Told::default() }))
    }

    /// What a SELECT asks for, as columns and their values, if all of them are known.
    fn known(&self, job: &Job<'_>, before: Recall) -> Option<Vec<(Known, Column, String)>> {
        let class = job.class;
        let asks = class.command == CommandCounter::Select && !class.reads.is_empty() && class.leaves.is_empty();
        if !asks || class.multi || !matches!(job.what, What::Query(_)) || !job.is_as_written() {
            return None;
        }
        let items = items(job.text)?;
        let only_ours = items.iter().all(|(what, _)| *what == Known::ConnectionId);
        // A connection that is kept knows better, if it saw the statement before and sees this one.
        let knows = self.held.transaction().is_some() || self.held.has(job.plan.hostgroup(), Hold::Diagnostics);
        if knows && !only_ours && !before.ours && before.calculated.is_none() {
            return None;
        }
        let mariadb = job.epoch.claims_mariadb();
        let value = |what| match what {
            Known::FoundRows => before.found_rows.or_else(|| before.calculated?.rows).map(|n| (n.get() - 1).to_string()),
            Known::ConnectionId => Some(self.entry.id.to_string()),
        };
        items.iter().map(|(what, name)| Some((*what, column(*what, name, mariadb), value(*what)?))).collect()
    }

    /// What this answer leaves to be asked for.
    pub(crate) fn learn_recall(&mut self, job: &Job<'_>, response: &Response, error: bool) {
        if matches!(job.what, What::Prepare(_)) {
            return;
        }
        let class = job.class;
        let plain = !class.multi
            && !error
            && response.results() == 1
            && matches!(job.what, What::Query(_) | What::Execute(_) | What::Dynamic(_));
        let counted = backend::is_select(class) && response.columns() > 0 && !class.leaves.intersects(Leaves::FOUND_ROWS);
        let whole = response.status() & status::CURSOR_EXISTS == 0 && job.plan.rows_max.is_none();
        let calculated = self.entry.recall.get().calculated;
        let calculated = calculated.filter(|calculated| leaves_found_rows(class, job.sent(), calculated.mariadb));
        let found_rows = found(response.rows()).filter(|_| plain && counted && whole);
        self.entry.recall.set(Recall { found_rows, calculated, ours: false });
        if backend::is_select(class) && !error {
            self.end_found_rows();
        }
    }

    /// What was found rows on a connection of the session is so no more.
    pub(crate) fn end_found_rows(&mut self) {
        if self.held.end_found_rows() {
            self.let_go_of_free();
        }
    }

    /// The connection where `SQL_CALC_FOUND_ROWS` ran is given back, or gone; `None` if it could not be asked.
    pub(crate) fn keep_found_rows(&self, rows: Option<u64>, mariadb: bool) {
        let calculated = Some(Calculated { rows: rows.and_then(found), mariadb });
        self.entry.recall.set(Recall { found_rows: None, calculated, ours: false });
    }
}

/// Whether a statement that runs now wants to know. A definition does not, nor do several statements that may find rows themselves.
fn asks_for_found_rows(class: &Class<'_>) -> bool {
    class.reads.intersects(Reads::FOUND_ROWS) && !class.multi && (!class.ddl || class.command == CommandCounter::CreateTable)
}

/// Whether `FOUND_ROWS()` is the same after a statement. What is not certain has changed it.
fn leaves_found_rows(class: &Class<'_>, text: &[u8], mariadb: bool) -> bool {
    use CommandCounter as C;
    let may = matches!(
        class.command,
        C::Begin
            | C::Commit
            | C::Delete
            | C::Insert
            | C::ReleaseSavepoint
            | C::Replace
            | C::Rollback
            | C::RollbackSavepoint
            | C::Savepoint
            | C::Set
            | C::StartTransaction
    ) || class.command == C::Update && mariadb;
    let programs = class.leaves.intersects(Leaves::UNKNOWN_STATE | Leaves::UNKNOWN_FUNCTION | Leaves::SQL_EXECUTE);
    let selects = || Words::new(text).any(|token| token.is_any(&["SELECT", "TABLE", "WITH", "RETURNING"]));
    (may || class.use_db.is_some()) && !class.multi && !programs && !selects()
}

fn found(rows: u64) -> Option<NonZeroU32> {
    u32::try_from(rows.saturating_add(1)).ok().and_then(NonZeroU32::new)
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
            () => return None,
        };
        let (open, close) = (words.next()?, words.next()?);
        // The column is called as it is written, which is simple only without blanks.
        let tight = open.is_sign(b'(') && close.is_sign(b')') && open.start == function.end() && close.start == open.end();
        if !tight || items.len() == ITEMS_MAX {
            return None;
        }
        let mut name = Cow::Borrowed(std::str::from_utf8(&text[function.start..close.end()]).ok()?);
        let mut next = words.next();
        if let Some(alias) = next.filter(|token| !matches!(token.kind, Kind::Sign)) {
            let alias = if alias.is("AS") { words.next()? } else { alias };
            let plain = matches!(alias.kind, Kind::Word | Kind::Name) && alias.is_whole() && alias.text.is_ascii();
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
            name = Cow::Owned(String::from_utf8(sql::words::unquote(alias.text).into_owned()).ok()?);
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
    let signed = Column { length: 21, flags: NOT_NULL_FLAG | BINARY_FLAG, ..Column::integer(name) };
    match what {
        Known::FoundRows => signed,
        Known::ConnectionId if mariadb => Column { kind: Type::LONG, length: 10, flags: signed.flags | UNSIGNED_FLAG, ..signed },
        Known::ConnectionId => Column { flags: signed.flags | UNSIGNED_FLAG, ..signed },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_wholly_known_is_answered() {
        let names = |text: &str| {
            items(text.as_bytes()).map(|items| items.iter().map(|(what, name)| format!("{what:?} {name}")).collect::<Vec<_>>())
        };
        assert_eq!(names("select Found_Rows()").unwrap(), ["FoundRows Found_Rows()"]);
        assert_eq!(names("SELECT FOUND_ROWS() AS `n`, CONNECTION_ID() me;").unwrap(), ["FoundRows n", "ConnectionId me"]);
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

    #[test]
    fn found_rows_outlive_what_selects_nothing() {
        let leaves = |text: &str| leaves_found_rows(&sql::class(text.as_bytes()), text.as_bytes(), true);
        for text in
            ["UPDATE t SET a = 1", "insert into t values (1)", "SET @x = 1", "COMMIT", "USE conf", "BEGIN", "DELETE FROM t"]
        {
            assert!(leaves(text), "{text}");
        }
        for text in [
            "SELECT 1",
            "INSERT INTO t SELECT 1",
            "INSERT INTO t TABLE s",
            "DO 1",
            "SHOW TABLES",
            "UPDATE t SET a = f()",
            "CALL p()",
            "SET @x = (SELECT 1)",
        ] {
            assert!(!leaves(text), "{text}");
        }
        assert!(!leaves_found_rows(&sql::class(b"UPDATE t SET a = 1"), b"UPDATE t SET a = 1", false));
    }
}
