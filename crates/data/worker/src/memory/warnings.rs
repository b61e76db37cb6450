//! Warnings of the statement before, as SHOW WARNINGS shows them. The connection that knows is kept
//! until the client is silent; then it is asked and given back, and the session has the answer.
//! What only a server can answer keeps the connection, and too late is said to be too late.

use crate::command::job::{Job, Told, What};
use crate::command::trouble::{Ended, Failed};
use crate::known::answer::Complaint;
use crate::known::by_state::Kept;
use crate::memory::row::{After, Asking, Memory};
use crate::session::Session;
use crate::session::remembered::Warnings;
use backend::{Backend, Hold, NOBODY, Shown, Unreported};
use bridge::Counter;
use sql::words::Words;
use sql::{Class, CommandCounter, Reads};
use std::ops::ControlFlow;
use std::time::Duration;
use wire::execute::Value;
use wire::resultset::Column;
use wire::rows::Rows;
use wire::types::{BINARY_FLAG, Type, UNSIGNED_FLAG};

pub(crate) static MEMORY: Memory = Memory {
    holds: &[Hold::Diagnostics],
    reads: Reads::WARNINGS,
    fragile: true,
    is_there: |_, backend| backend.holds.has(Hold::Diagnostics),
    ask: |session, backend, how| Box::pin(session.ask_warnings_away(backend, how)),
    lose: Session::lose_warnings,
};

/// Form of a statement that asks for warnings.
#[derive(Debug, PartialEq, Eq)]
enum Form {
    /// SHOW WARNINGS, SHOW ERRORS.
    List {
        errors: bool,
        skip: usize,
        take: usize,
    },
    /// SHOW COUNT(*) …, SELECT @@…: the column's name, and whether it is the SELECT.
    Count {
        errors: bool,
        name: String,
        selects: bool,
    },
}

impl Session {
    /// A stage: answers from what the session was told, if no connection knows better.
    pub(crate) async fn recall_warnings(
        &mut self,
        job: &Job<'_>,
    ) -> Result<ControlFlow<Told>, Ended> {
        // Who prepares it asks nothing yet.
        if !job.class.reads.intersects(Reads::WARNINGS) || matches!(job.what, What::Prepare(_)) {
            return Ok(ControlFlow::Continue(()));
        }
        let form = match job.what {
            _ if !job.is_as_written() || job.class.multi => None,
            What::Query(_) => form(job.text),
            // A rule may have made another statement of what is prepared. Who wants a cursor is
            // told by the flags that there is none.
            What::Execute(execution) if !execution.is_bulk() => form(job.sent()),
            _ => None,
        };
        let binary = matches!(job.what, What::Execute(_));
        if form.is_none() {
            // The next are kept for it where they are.
            self.entry.asks_servers_for_warnings.set(true);
        }
        let Some(warnings) = self.remembered.warnings.take() else {
            return Ok(ControlFlow::Continue(()));
        };
        if form.is_none() && matches!(*warnings, Warnings::Ours(_)) {
            // A server has nothing to say of it.
            self.remembered.warnings.replace(Some(warnings));
            return Ok(ControlFlow::Continue(()));
        }
        let answer = match (&*warnings, &form) {
            (Warnings::Kept(kept), Some(form)) if self.speaks_as_then(kept) => {
                Ok(self.written(&kept.shown, form, binary))
            }
            (Warnings::Ours(complaint), Some(form)) => {
                Ok(self.written(&shown(complaint), form, binary))
            }
            (Warnings::Lost, _) => Err(
                "The connection to the server that knew the warnings of the last statement is lost, and they are lost with it",
            ),
            (Warnings::Kept(_) | Warnings::Ours(_), _) => Err(
                "The connection that can answer this about the warnings of the last statement was given back while the client was silent \
                 (mysql-handle_warnings_delay_ms); SHOW WARNINGS still shows them in the character set of then, and for the next it is kept",
            ),
        };
        // To MySQL, a SELECT is a statement after which the warnings before are over.
        let over = matches!(form, Some(Form::Count { selects: true, .. }))
            && !self.is_of_mariadb(&warnings);
        if !over {
            self.remembered.warnings.replace(Some(warnings));
        }
        match answer {
            Ok((out, seq, rows)) => {
                if matches!(form, Some(Form::Count { .. })) {
                    // To a server, a SELECT.
                    self.remembered.has_found_one_row();
                    self.end_found_rows();
                }
                self.say_rows(out, seq, rows).await
            }
            Err(words) => {
                self.refuse(&Complaint::with(1235, "42000", words)).await?;
                Ok(ControlFlow::Break(Told::default()))
            }
        }
    }

    fn speaks_as_then(&self, kept: &Kept) -> bool {
        self.state.names == kept.names
            && self.state.variable("character_set_results") == kept.results.as_deref()
    }

    /// Whether a MariaDB would keep them where no table is used.
    fn is_of_mariadb(&self, warnings: &Warnings) -> bool {
        match warnings {
            Warnings::Kept(kept) => kept.mariadb,
            Warnings::Ours(_) => self.core.epoch().claims_mariadb(),
            Warnings::Lost => true,
        }
    }

    /// The answer, to an execution in the binary protocol, the number of its last packet, and its
    /// rows.
    fn written(&self, shown: &Shown, form: &Form, binary: bool) -> (Vec<u8>, u8, u64) {
        let mut out = Vec::with_capacity(512);
        let mut writer = self.writer(&mut out, self.turn.sent, self.flags() | self.turn.flags());
        let mut rows = 0;
        match form {
            Form::List { errors, skip, take } => {
                let Rows {
                    definitions: said,
                    shapes,
                    ..
                } = &shown.rows;
                let code = Column {
                    length: 4,
                    kind: Type::LONG,
                    ..Column::unsigned("Code")
                };
                let mut columns = [Column::text("Level"), code, Column::text("Message")];
                if said.is_empty() {
                    // The server has left them out, and so does the writer.
                    writer.columns(&columns);
                } else {
                    writer.columns_as_said(said.iter().map(Vec::as_slice));
                    columns
                        .iter_mut()
                        .zip(shapes)
                        .for_each(|(column, shape)| column.kind = shape.kind);
                }
                let says_error = |level: &[u8]| without_zeros(level) == b"Error";
                let is_listed = |row: &&Vec<Option<Vec<u8>>>| {
                    !errors
                        || row
                            .first()
                            .and_then(Option::as_deref)
                            .is_some_and(says_error)
                };
                for row in shown
                    .rows
                    .rows
                    .iter()
                    .filter(is_listed)
                    .skip(*skip)
                    .take(*take)
                {
                    if binary {
                        let code = row.get(1).and_then(Option::as_deref).map(without_zeros);
                        let mut values: Vec<_> = row
                            .iter()
                            .map(|value| value.as_deref().map_or(Value::Null, Value::Bytes))
                            .collect();
                        if let (Some(value), Some(code)) = (values.get_mut(1), &code) {
                            *value = Value::Bytes(code);
                        }
                        writer.binary_row(&columns, &values);
                    } else {
                        writer.text_row(row.iter().map(Option::as_deref));
                    }
                    rows += 1;
                }
            }
            Form::Count { errors, name, .. } => {
                let count = if *errors { shown.errors } else { shown.all };
                let columns = [Column {
                    length: 21,
                    flags: BINARY_FLAG | UNSIGNED_FLAG,
                    ..Column::integer(name)
                }];
                writer.columns(&columns);
                if binary {
                    writer.binary_row(&columns, &[Value::Uint(count)]);
                } else {
                    writer.text_row([Some(count.to_string().as_bytes())]);
                }
                rows += 1;
            }
        }
        writer.end(0);
        let seq = writer.last_seq();
        (out, seq, rows)
    }

    /// A statement is over: the warnings before it are, too, unless it leaves them.
    pub(crate) fn settle_warnings(&mut self, job: &Job<'_>) {
        let refused = self.remembered.refused.take();
        let idle = self.held.is_empty()
            && self.remembered.warnings.borrow().is_none()
            && refused.is_none();
        // Where MySQL does not prepare it, the error is what the next is about.
        let is_not_prepared = self.turn.failed && matches!(job.what, What::Prepare(_));
        let reads = job.class.reads.intersects(Reads::WARNINGS) && !is_not_prepared;
        // COM_INIT_DB is no statement to a server.
        if idle || reads || job.what.is_init_db() {
            return;
        }
        let statement = self.entry.statement.get();
        let of_mariadb = match self.remembered.warnings.borrow().as_deref() {
            Some(warnings @ (Warnings::Kept(_) | Warnings::Ours(_))) => {
                self.is_of_mariadb(warnings)
            }
            _ => self.held.iter().any(|(_, backend)| {
                backend.holds.has(Hold::Diagnostics) && backend.hello.is_mariadb()
            }),
        };
        if of_mariadb && !self.turn.failed && !self.held.warns(statement) && leaves_warnings(job) {
            return;
        }
        self.remembered.warnings.take();
        if self.held.end_warnings(statement) {
            self.let_go_of_free();
        }
        if let Some(complaint) = refused {
            self.remembered
                .warnings
                .replace(Some(Box::new(Warnings::Ours(complaint))));
        }
    }

    /// The connection stays until the client is silent, or for as long as the session needs a
    /// server's own answers.
    pub(crate) fn keep_warnings_for_a_while(&self, backend: &mut Backend, v: &config::Variables) {
        let delay = v.mysql_handle_warnings_delay_ms;
        let asked = delay > 0 && !self.entry.asks_servers_for_warnings.get();
        backend.lease.warnings_until =
            asked.then(|| self.core.rt.now() + Duration::from_millis(delay));
    }

    async fn ask_warnings_away(
        &mut self,
        backend: &mut Backend,
        how: Asking,
    ) -> Result<After, Failed> {
        self.ask_warnings(backend, how.limit_ms).await?;
        if !backend.holds.has(Hold::Diagnostics) {
            return Ok(After::Told);
        }
        if !how.insists {
            return Ok(After::Stays);
        }
        backend.holds.remove(Hold::Diagnostics);
        backend.lasting.last_session = NOBODY;
        self.lose_warnings();
        Ok(After::Told)
    }

    /// Asks a connection for its warnings, for it to be given back. They stay there if they are too
    /// much to be kept.
    pub(crate) async fn ask_warnings(
        &mut self,
        backend: &mut Backend,
        limit_ms: u64,
    ) -> Result<(), Failed> {
        backend.lease.warnings_until = None;
        let asked = self
            .watched(limit_ms, backend.ask_warnings(), self.entry.told_to_leave())
            .await;
        let (shown, response) = match asked {
            Ok(said) => said,
            Err(failed) => {
                self.lose_warnings();
                return Err(failed);
            }
        };
        // A statement that failed has not told what it changed before; this answer may.
        if let Some(name) = self.learn_changes(
            backend,
            &sql::class(b"SHOW WARNINGS"),
            (b"SHOW WARNINGS", true),
            &response,
        ) {
            self.is_in(backend, &name);
        }
        if !backend.hello.is_mariadb() {
            backend.local.unreported = Unreported::Nothing;
        }
        let Some(shown) = shown else { return Ok(()) };
        self.core.tally.up(Counter::WarningsKept);
        backend.holds.remove(Hold::Diagnostics);
        // They are the session's to forget now, and still on the server.
        backend.lasting.last_session = NOBODY;
        let results = self.state.variable("character_set_results").map(Into::into);
        let kept = Kept {
            shown,
            names: self.state.names.clone(),
            results,
            mariadb: backend.hello.is_mariadb(),
        };
        self.remembered
            .warnings
            .replace(Some(Box::new(Warnings::Kept(kept))));
        Ok(())
    }

    /// The warnings that a server has shown of the last statement, each as `Level code (message)`.
    pub(crate) fn shown_warnings(&self) -> Vec<String> {
        let warnings = self.remembered.warnings.borrow();
        let Some(Warnings::Kept(kept)) = warnings.as_deref() else {
            return Vec::new();
        };
        let text = |cell: Option<&Option<Vec<u8>>>| {
            let bytes = cell.and_then(Option::as_deref).unwrap_or_default();
            String::from_utf8_lossy(&without_zeros(bytes)).into_owned()
        };
        let line = |row: &Vec<_>| {
            let [level, code, message] = [0, 1, 2].map(|at| text(row.get(at)));
            format!("{} {code} ({message})", level.to_lowercase())
        };
        kept.shown.rows.rows.iter().map(line).collect()
    }

    /// Takes the warnings that a connection has just been asked for, to be kept elsewhere.
    pub(crate) fn take_kept_warnings(&self) -> Option<Kept> {
        let mut warnings = self.remembered.warnings.borrow_mut();
        match warnings.take().map(|warnings| *warnings) {
            Some(Warnings::Kept(kept)) => Some(kept),
            other => {
                *warnings = other.map(Box::new);
                None
            }
        }
    }

    /// The session's last statement has left these.
    pub(crate) fn keep_warnings(&self, kept: Kept) {
        let kept = Box::new(Warnings::Kept(kept));
        self.remembered.warnings.replace(Some(kept));
    }

    /// The connection that knew is gone.
    pub(crate) fn lose_warnings(&self) {
        self.remembered
            .warnings
            .replace(Some(Box::new(Warnings::Lost)));
    }

    /// Whether a statement asks for what no other connection knows.
    pub(crate) fn asks_for_lost_warnings(&self, job: &Job<'_>) -> bool {
        job.class.reads.intersects(Reads::WARNINGS)
            && matches!(
                self.remembered.warnings.borrow().as_deref(),
                Some(Warnings::Lost)
            )
    }
}

/// ASCII, whichever character set results are in: in UTF-16 and the like there are zeros between
/// the letters.
fn without_zeros(said: &[u8]) -> Vec<u8> {
    said.iter().copied().filter(|byte| *byte != 0).collect()
}

/// As a server shows an error.
fn shown(complaint: &Complaint) -> Shown {
    let code = complaint.code.to_string().into_bytes();
    let row = vec![
        Some(b"Error".to_vec()),
        Some(code),
        Some(complaint.words.clone().into_bytes()),
    ];
    Shown {
        rows: Rows {
            definitions: Vec::new(),
            shapes: Vec::new(),
            rows: vec![row],
        },
        all: 1,
        errors: 1,
    }
}

/// Whether MariaDB shows the warnings of before after a statement that has none of its own: it does
/// where no table is used. What is not certain counts as a table.
pub(crate) fn leaves_warnings(job: &Job<'_>) -> bool {
    match job.what {
        // By its name in SQL: as what is prepared would.
        What::Prepare(preparing) if preparing.naming.is_some() => {
            is_without_tables(&sql::class(job.sent()), job.sent())
        }
        _ => is_without_tables(job.class, job.sent()),
    }
}

fn is_without_tables(class: &Class<'_>, text: &[u8]) -> bool {
    use CommandCounter as C;
    let may = matches!(
        class.command,
        C::Begin
            | C::Commit
            | C::ReleaseSavepoint
            | C::Rollback
            | C::RollbackSavepoint
            | C::Savepoint
            | C::Select
            | C::Set
            | C::StartTransaction
    );
    (may || class.use_db.is_some())
        && !class.multi
        && !crate::command::settings::may_run_programs(class)
        && !Words::new(text).any(|token| token.is("FROM"))
}

/// Whether a session can answer what is asked.
pub(crate) fn is_simple(text: &[u8]) -> bool {
    form(text).is_some()
}

/// Returns how a statement asks for warnings, if a session can answer it.
fn form(text: &[u8]) -> Option<Form> {
    let mut words = Words::new(text);
    let first = words.next()?;
    if first.is("SELECT") {
        return count_by_variable(text, words);
    }
    if !first.is("SHOW") {
        return None;
    }
    let what = words.next()?;
    let counts = what.is("COUNT");
    let what = if counts {
        let star = words.next()?.is_sign(b'(')
            && words.next()?.is_sign(b'*')
            && words.next()?.is_sign(b')');
        if !star {
            return None;
        }
        words.next()?
    } else {
        what
    };
    let errors = what.is("ERRORS");
    if !errors && !what.is("WARNINGS") {
        return None;
    }
    if counts {
        let name = if errors {
            "@@session.error_count"
        } else {
            "@@session.warning_count"
        };
        return ends(words).then(|| Form::Count {
            errors,
            name: name.to_owned(),
            selects: false,
        });
    }
    let (mut skip, mut take) = (0, usize::MAX);
    let mut after = words.clone();
    if after.next().is_some_and(|token| token.is("LIMIT")) {
        let number = |words: &mut Words<'_>| {
            std::str::from_utf8(words.next()?.text)
                .ok()?
                .parse::<usize>()
                .ok()
        };
        take = number(&mut after)?;
        words = after.clone();
        match after.next() {
            Some(token) if token.is_sign(b',') => {
                (skip, take) = (take, number(&mut after)?);
                words = after;
            }
            Some(token) if token.is("OFFSET") => {
                skip = number(&mut after)?;
                words = after;
            }
            _ => {}
        }
    }
    ends(words).then_some(Form::List { errors, skip, take })
}

/// `SELECT @@[session.]warning_count`: the column is called as it is written, which is simple only
/// without blanks.
fn count_by_variable(text: &[u8], mut words: Words<'_>) -> Option<Form> {
    let at = words.next()?;
    let second = words.next()?;
    if !at.is_sign(b'@') || !second.is_sign(b'@') {
        return None;
    }
    let mut name = words.next()?;
    if name.is_any(&["SESSION", "LOCAL"]) {
        if !words.next()?.is_sign(b'.') {
            return None;
        }
        name = words.next()?;
    }
    let errors = name.is("ERROR_COUNT");
    let written = std::str::from_utf8(text.get(at.start..name.end())?).ok()?;
    let tight = !written.contains(|c: char| c.is_whitespace() || c == '/' || c == '`');
    ((errors || name.is("WARNING_COUNT")) && tight && ends(words)).then(|| Form::Count {
        errors,
        name: written.to_owned(),
        selects: true,
    })
}

/// Nothing follows but a semicolon.
fn ends(mut words: Words<'_>) -> bool {
    words
        .next()
        .is_none_or(|token| token.is_sign(b';') && words.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_answers_what_clients_ask() {
        let list = |errors, skip, take| Some(Form::List { errors, skip, take });
        let count = |errors, name: &str, selects| {
            Some(Form::Count {
                errors,
                name: name.to_owned(),
                selects,
            })
        };
        for (text, wanted) in [
            ("show warnings", list(false, 0, usize::MAX)),
            ("SHOW ERRORS;", list(true, 0, usize::MAX)),
            ("SHOW WARNINGS LIMIT 5", list(false, 0, 5)),
            ("/* x */ SHOW WARNINGS LIMIT 2, 5 ;", list(false, 2, 5)),
            ("SHOW ERRORS LIMIT 5 OFFSET 2", list(true, 2, 5)),
            (
                "SHOW COUNT(*) WARNINGS",
                count(false, "@@session.warning_count", false),
            ),
            (
                "show count( * ) errors",
                count(true, "@@session.error_count", false),
            ),
            (
                "SELECT @@Warning_Count",
                count(false, "@@Warning_Count", true),
            ),
            (
                "SELECT @@session.error_count;",
                count(true, "@@session.error_count", true),
            ),
            ("SHOW WARNINGS LIMIT", None),
            ("SHOW WARNINGS LIMIT ?", None),
            ("SHOW WARNINGS LIMIT 1 2", None),
            ("SHOW WARNINGS; SELECT 1", None),
            ("SHOW COUNT(x) WARNINGS", None),
            ("SELECT @@warning_count + 1", None),
            ("SELECT @@ warning_count", None),
            ("SELECT @@global.warning_count", None),
            ("GET DIAGNOSTICS @n = NUMBER", None),
            ("", None),
        ] {
            assert_eq!(form(text.as_bytes()), wanted, "{text}");
        }
    }

    #[test]
    fn mariadb_leaves_warnings_where_no_table_is_used() {
        let leaves = |text: &str| is_without_tables(&sql::class(text.as_bytes()), text.as_bytes());
        for text in ["SELECT 1", "SET @x = 1", "COMMIT", "USE conf", "BEGIN"] {
            assert!(leaves(text), "{text}");
        }
        for text in [
            "SELECT a FROM t",
            "INSERT INTO t VALUES (1)",
            "SET @x = (SELECT 1 FROM t)",
            "SELECT f()",
            "CALL p()",
            "SHOW TABLES",
        ] {
            assert!(!leaves(text), "{text}");
        }
    }
}
