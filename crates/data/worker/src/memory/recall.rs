//! A stage: what a server remembers of the statement before, answered from what the session has
//! seen, since the connection that knows may serve somebody else by now. And the session's own
//! number, which no server knows.

use crate::command::job::{Job, Told, What};
use crate::command::trouble::{Ended, Failed};
use crate::known::finds::{Finds, found_by};
use crate::memory::drain::{Asking, Whom};
use crate::memory::lingers::{SILENT, lingers_until};
use crate::memory::{After, Memory};
use crate::session::Session;
use crate::session::remembered::{Found, Recall, Remembered};
use backend::{Backend, BackendFailed, Hold, Unreported};
use sql::words::{Kind, Words};
use sql::{Class, CommandCounter, Leaves, Reads};
use std::borrow::Cow;
use std::ops::ControlFlow;
use wire::execute::Value;
use wire::response::{Response, Tail};
use wire::resultset::Column;
use wire::status;
use wire::types::{BINARY_FLAG, NOT_NULL_FLAG, Type, UNSIGNED_FLAG};

/// More columns are left to a server.
const ITEMS_MAX: usize = 8;

pub(crate) static MEMORY: Memory = Memory {
    holds: &[Hold::FoundRows],
    reads: Reads::FOUND_ROWS,
    fragile: true,
    is_there: |session, backend| {
        // What programs have left there is asked for with questions.
        let forgets = || {
            backend.says_what_is_left().is_some()
                && session.knows_found_rows(backend)
                && session.found_rows().is_none()
        };
        backend.holds.has(Hold::FoundRows) || forgets()
    },
    ask: |session, backend, how| Box::pin(session.ask_found_rows(backend, how)),
    lose: |session| session.keep_found_rows(None),
};

impl Remembered {
    /// The proxy has answered with one row.
    pub(crate) fn has_found_one_row(&self) {
        self.has_found(Found::Rows(1));
    }

    /// Notes what FOUND_ROWS() is, which no connection knows.
    fn has_found(&self, found: Found) {
        self.found_rows.set(Recall { found, by: None });
    }
}

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

    /// Whether its LIMIT is where [`found_by`] looks for it: strings may end elsewhere for this
    /// session.
    fn limits_are_read(&self, job: &Job<'_>) -> bool {
        // Nothing but a backslash, or what is not ASCII, is read in two ways.
        let is_plain = || job.sent().is_ascii() && !job.sent().contains(&b'\\');
        !job.class.limits || self.lexing_of(job.what) == sql::Lexing::Escapes || is_plain()
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

    /// FOUND_ROWS(), if the session knows it.
    pub(crate) fn found_rows(&self) -> Option<u32> {
        match self.remembered.found_rows.get().found {
            Found::Rows(rows) => Some(rows),
            Found::Unknown | Found::Lost => None,
        }
    }

    /// Whether FOUND_ROWS() on this connection is about the statement that it is about for the
    /// session.
    pub(crate) fn knows_found_rows(&self, backend: &Backend) -> bool {
        let by = self.remembered.found_rows.get().by;
        #[cfg(feature = "planted")]
        if backend::planted::FORGET_HOLD.get() == Some(Hold::FoundRows) {
            // Nobody looks who was there.
            return by.is_some();
        }
        let is_about_it = || {
            by.is_some() && backend.lasting.last_session == self.life && backend.local.finder == by
        };
        backend.holds.has(Hold::FoundRows) || is_about_it()
    }

    /// Why the server of this connection cannot be asked for FOUND_ROWS(), of which the text has a
    /// call.
    pub(crate) fn unknown_found_rows(&self) -> BackendFailed {
        let words = match self.remembered.found_rows.get().found {
            Found::Lost => "The connection that knew FOUND_ROWS() is lost, and it is lost with it",
            Found::Unknown | Found::Rows(_) => {
                "What FOUND_ROWS() is here is known on another connection only: ask with SELECT FOUND_ROWS() right behind the statement that it is about, \
                 or have SQL_CALC_FOUND_ROWS in that"
            }
        };
        BackendFailed::Sync {
            code: 1235,
            state: *b"42000",
            message: words.to_owned(),
        }
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

    async fn ask_found_rows(
        &mut self,
        backend: &mut Backend,
        how: Asking,
    ) -> Result<After, Failed> {
        let (mariadb, mut found) = (backend.hello.is_mariadb(), None);
        let untold = backend.local.unreported != Unreported::Nothing;
        if untold {
            // The answer would take it.
            self.hear(backend, how.limit_ms, how.answered).await?;
        }
        if untold && !mariadb {
            // MySQL has it changed by what we said to hear the rest.
            backend.holds.remove(Hold::FoundRows);
        } else {
            let stopped = self.entry.told_to_leave();
            found = self
                .watched(how.limit_ms, backend.ask_found_rows(), stopped)
                .await?;
        }
        self.keep_found_rows(found);
        Ok(After::Told)
    }

    /// Learns what this answer leaves to be asked for.
    pub(crate) fn learn_recall(
        &mut self,
        backend: &mut Backend,
        job: &Job<'_>,
        response: &Response,
        error: bool,
    ) {
        let class = job.class;
        let mariadb = backend.hello.is_mariadb();
        let measured = like_those_measured(backend.hello.numbers, mariadb);
        let finds = Finds::of(class, job.sent(), measured);
        if matches!(job.what, What::Prepare(_)) || finds == Finds::Nothing {
            return;
        }
        let certain = finds_its_rows(job, response.rows(), mariadb);
        if class.leaves.intersects(Leaves::FOUND_ROWS)
            && !class.multi
            && (error || !certain)
            && !backend.lease.knew_found_rows
        {
            // The server may have left the number as it was, and that is another session's.
            backend.holds.remove(Hold::FoundRows);
        }
        if error && !class.multi && backend::is_select(class) && !mariadb {
            // To MySQL, one that fails finds nothing.
            return;
        }
        // A WITH may begin a change, too.
        let selects = finds == Finds::Rows && (backend::is_select(class) || response.columns() > 0);
        let plain = !class.multi
            && !error
            && response.results() == 1
            && matches!(
                job.what,
                What::Query(_) | What::Execute(_) | What::Dynamic(_)
            );
        let counted =
            selects && response.columns() > 0 && !class.leaves.intersects(Leaves::FOUND_ROWS);
        let whole = response.status() & status::CURSOR_EXISTS == 0 && job.plan.rows_max().is_none();
        let as_many = certain || self.found_rows() == Some(1);
        let rows = match finds {
            _ if !plain => None,
            Finds::Rows if counted => found_by(class, job.sent(), response.rows(), measured)
                .filter(|_| whole && as_many && self.limits_are_read(job)),
            // MySQL counts what goes into variables.
            Finds::Rows
                if selects
                    && measured == Some(false)
                    && class.leaves.intersects(Leaves::USER_VARIABLE)
                    && !class.limits =>
            {
                u32::try_from(response.affected_rows())
                    .ok()
                    .filter(|_| response.columns() == 0)
            }
            Finds::One => Some(1),
            Finds::Matched => matched(response).filter(|rows| *rows > 0),
            _ => None,
        };
        // What may have changed it, or not, is known where it was known before only.
        let called = backend::is_call(class) && !class.multi && !error && response.results() > 1;
        let own = match finds {
            Finds::Rows => selects && certain,
            Finds::Server | Finds::One => true,
            Finds::Matched => rows.is_some(),
            Finds::Nothing | Finds::Unknown => false,
        };
        let is_known_here = plain && own || called || self.knows_found_rows(backend);
        let by = is_known_here.then(|| self.entry.statement.get());
        backend.local.finder = by;
        self.remembered.found_rows.set(Recall {
            found: rows.map_or(Found::Unknown, Found::Rows),
            by,
        });
        if counted && plain {
            backend.holds.remove(Hold::FoundRows);
        }
        let is_calculated = class.leaves.intersects(Leaves::FOUND_ROWS);
        if backend.lease.found_rows_until.take().is_some() && !is_calculated {
            // That was of the statement before.
            backend.holds.remove(Hold::FoundRows);
        }
        if rows.is_none()
            && by.is_some()
            && (plain || called)
            && !is_calculated
            && self.core.asking_found_rows.has(&self.user_name)
        {
            self.linger_for_found_rows(backend, job);
        }
        self.remembered.of_mariadb.set(Some(mariadb));
        // Elsewhere nobody knows of this one.
        self.end_found_rows();
    }

    /// The session may ask for FOUND_ROWS() at once, or when time is over: that ends it in any case.
    fn linger_for_found_rows(&self, backend: &mut Backend, job: &Job<'_>) {
        let now = self.core.rt.now();
        backend.holds.add(Hold::FoundRows);
        backend.lease.found_rows_until =
            lingers_until(&job.epoch.snapshot, now).or(Some(now + SILENT));
    }

    /// A statement has failed, and nobody knows how far it came.
    pub(crate) fn doubt_found_rows(&self, job: &Job<'_>) {
        let lost = self.remembered.found_rows.get().found == Found::Lost;
        if !lost
            && !matches!(job.what, What::Prepare(_))
            && Finds::of(job.class, job.sent(), None) != Finds::Nothing
        {
            self.remembered.has_found(Found::Unknown);
        }
    }

    /// Forgets that a connection of the session knows FOUND_ROWS(), and lets go of those that are
    /// free.
    pub(crate) fn end_found_rows(&mut self) {
        if self.held.end_found_rows() {
            self.let_go_of_free();
        }
    }

    /// The connection where `SQL_CALC_FOUND_ROWS` ran is given back, or gone; `None` if it could
    /// not be asked.
    pub(crate) fn keep_found_rows(&self, rows: Option<u64>) {
        let rows = rows.and_then(|rows| u32::try_from(rows).ok());
        self.remembered
            .has_found(rows.map_or(Found::Lost, Found::Rows));
    }
}

/// Whether a statement that runs now wants to know. A definition does not, nor do several
/// statements that may find rows themselves.
pub(crate) fn asks_for_found_rows(class: &Class<'_>) -> bool {
    let is_program = class.leaves.intersects(Leaves::UNKNOWN_STATE) && !backend::is_call(class);
    let defines = class.ddl && class.command != CommandCounter::CreateTable;
    class.reads.intersects(Reads::FOUND_ROWS) && !class.multi && !is_program && !defines
}

/// Whether a result of so many rows is as many that were found. MariaDB finds none for the one row
/// of a maximum or a count, if it sees beforehand that no row is to be looked at: FOUND_ROWS()
/// stays what it was.
fn finds_its_rows(job: &Job<'_>, rows: u64, mariadb: bool) -> bool {
    let is_one_for_all =
        || job.class.groups || job.class.leaves.intersects(Leaves::UNKNOWN_FUNCTION);
    !mariadb || rows != 1 || !is_one_for_all()
}

/// Whether a server is a MariaDB; `None` if it is an older MySQL, which was not measured. Those
/// since 8.0.22 execute statements as those do that were.
fn like_those_measured(version: [u32; 3], mariadb: bool) -> Option<bool> {
    (mariadb || version >= [8, 0, 22]).then_some(mariadb)
}

/// How many rows an UPDATE has looked at, if its answer says so in English.
fn matched(response: &Response) -> Option<u32> {
    let Some(Tail::Ok(ok)) = response.tail() else {
        return None;
    };
    let said = std::str::from_utf8(ok.info)
        .ok()?
        .strip_prefix("Rows matched: ")?;
    said.split_once(' ')?.0.parse().ok()
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
