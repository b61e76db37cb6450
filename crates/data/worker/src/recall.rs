//! A stage: what a server remembers of the statement before, answered from what the session has seen, since the connection that knows
//! may serve somebody else by now. And the session's own number, which no server knows.

use crate::answer::Complaint;
use crate::relay::Failed;
use crate::session::{Ended, Session};
use crate::statement::{Job, Told, What};
use backend::{Backend, BackendFailed, Hold, Idle, Unreported};
use bridge::{Counter, Failure};
use sql::words::{Kind, Token, Words};
use sql::{Class, CommandCounter, Leaves, Reads};
use std::borrow::Cow;
use std::ops::ControlFlow;
use wire::execute::Value;
use wire::response::Response;
use wire::resultset::Column;
use wire::status;
use wire::types::{BINARY_FLAG, NOT_NULL_FLAG, Type, UNSIGNED_FLAG};

/// More columns are left to a server.
const ITEMS_MAX: usize = 8;

/// What FOUND_ROWS() is to the session.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Recall {
    found: Found,
    /// Number of the session's statement that it is about; `None` if no connection knows it: the proxy has answered, or it was given back.
    by: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    /// So many.
    Rows(u32),
    /// Only the server knows where that statement ran.
    Unknown,
    /// The connection that knew is gone.
    Lost,
}

impl Default for Recall {
    /// Before the first statement.
    fn default() -> Self {
        Self { found: Found::Rows(0), by: None }
    }
}

impl Recall {
    /// The proxy has answered with one row.
    pub(crate) fn of_one_row() -> Self {
        Self { found: Found::Rows(1), by: None }
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
        if matches!(job.what, What::Prepare(_)) {
            // Nothing is selected yet.
            return Ok(ControlFlow::Continue(()));
        }
        if asks_for_found_rows(job.class) {
            Box::pin(self.fetch_found_rows(job)).await?;
        }
        let Some(items) = self.known(job) else { return Ok(ControlFlow::Continue(())) };
        // MySQL calls FOUND_ROWS() deprecated each time.
        let warnings = items.iter().filter(|(what, ..)| *what == Known::FoundRows && !job.epoch.claims_mariadb()).count();
        let mut out = Vec::with_capacity(128);
        let mut writer = self.writer(&mut out, self.turn.sent, self.flags() | self.turn.flags());
        let (columns, values): (Vec<_>, Vec<_>) = items.into_iter().map(|(_, column, value)| (column, value)).unzip();
        writer.columns(&columns);
        if matches!(job.what, What::Execute(_)) {
            writer.binary_row(&columns, &values.into_iter().map(Value::Uint).collect::<Vec<_>>());
        } else {
            let words: Vec<String> = values.iter().map(u64::to_string).collect();
            writer.text_row(words.iter().map(|value| Some(value.as_bytes())));
        }
        writer.end(u16::try_from(warnings).unwrap_or(u16::MAX));
        self.turn.sent = writer.last_seq();
        self.entry.recall.set(Recall::of_one_row());
        self.end_found_rows();
        self.core.tally.add(Counter::QueriesFrontendsBytesSent, out.len() as u64);
        self.hand_over(out).await?;
        Ok(ControlFlow::Break(Told { rows_sent: 1, row_count: -1, ..Told::default() }))
    }

    /// What a SELECT asks for, as columns and their values, if all of them are known.
    fn known(&self, job: &Job<'_>) -> Option<Vec<(Known, Column, u64)>> {
        let class = job.class;
        let asks = class.command == CommandCounter::Select && !class.reads.is_empty() && class.leaves.is_empty();
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
        let only_ours = items.iter().all(|(what, _)| *what == Known::ConnectionId);
        // What is prepared has FOUND_ROWS() in its text: see `counted`.
        if is_prepared && !only_ours {
            return None;
        }
        // A connection that is kept knows better, if it saw that statement and sees this one.
        let hostgroup = job.plan.hostgroup();
        let knows = self.held.iter().any(|(of, backend)| of == hostgroup && self.knows_found_rows(backend));
        if knows && !only_ours {
            return None;
        }
        let mariadb = job.epoch.claims_mariadb();
        let value = |what| match what {
            Known::FoundRows => self.found_rows().map(u64::from),
            Known::ConnectionId => Some(u64::from(self.entry.id)).filter(|_| !self.entry.numbered.get()),
        };
        items.iter().map(|(what, name)| Some((*what, column(*what, name, mariadb), value(*what)?))).collect()
    }

    /// Whether its LIMIT is where [`found_by`] looks for it: strings may end elsewhere for this session.
    fn limits_are_read(&self, job: &Job<'_>) -> bool {
        // Nothing but a backslash, or what is not ASCII, is read in two ways.
        let is_plain = || job.sent().is_ascii() && !job.sent().contains(&b'\\');
        !job.class.limits || self.lexing_of(job.what) == sql::Lexing::Escapes || is_plain()
    }

    /// A read was answered with so many rows, or with an error, and no connection of this session saw it.
    pub(crate) fn recall_read(&mut self, job: &Job<'_>, rows: u64, error: bool) {
        let counted = job.class.plain_read && !error && job.plan.rows_max.is_none();
        let found = match Finds::of(job.class, job.sent(), None) {
            Finds::Nothing => return,
            Finds::Rows if counted && self.limits_are_read(job) => found_by(job.class, job.sent(), rows),
            Finds::Rows | Finds::Unknown => None,
        };
        self.entry.recall.set(Recall { found: found.map_or(Found::Unknown, Found::Rows), by: None });
        self.end_found_rows();
    }

    /// FOUND_ROWS(), if the session knows it.
    pub(crate) fn found_rows(&self) -> Option<u32> {
        match self.entry.recall.get().found {
            Found::Rows(rows) => Some(rows),
            Found::Unknown | Found::Lost => None,
        }
    }

    /// Whether FOUND_ROWS() on this connection is about the statement that it is about for the session.
    pub(crate) fn knows_found_rows(&self, backend: &Backend) -> bool {
        let by = self.entry.recall.get().by;
        #[cfg(feature = "planted")]
        if backend::planted::FORGET_HOLD.get() == Some(Hold::FoundRows) {
            // Nobody looks who was there.
            return by.is_some();
        }
        let is_about_it = || by.is_some() && backend.last_session == self.life && backend.finder == by;
        backend.holds.has(Hold::FoundRows) || is_about_it()
    }

    /// Why the server of this connection cannot be asked for FOUND_ROWS(), of which the text has a call.
    pub(crate) fn unknown_found_rows(&self) -> BackendFailed {
        let words = match self.entry.recall.get().found {
            Found::Lost => "The connection that knew FOUND_ROWS() is lost, and it is lost with it",
            Found::Unknown | Found::Rows(_) => {
                "What FOUND_ROWS() is here is known on another connection only: ask with SELECT FOUND_ROWS() right behind the statement that it is about, \
                 or have SQL_CALC_FOUND_ROWS in that"
            }
        };
        BackendFailed::Sync { code: 1235, state: *b"42000", message: words.to_owned() }
    }

    /// Where SQL_CALC_FOUND_ROWS has run, and this statement goes elsewhere: it is asked there, and goes along.
    async fn fetch_found_rows(&mut self, job: &Job<'_>) -> Result<(), Ended> {
        let limit_ms = self.limit_ms(job).min(job.epoch.snapshot.variables.mysql_connect_timeout_server);
        let is_there = |backend: &Backend| backend.holds.has(Hold::FoundRows) && backend.unreported == Unreported::Nothing;
        if self.held.has(job.plan.hostgroup(), Hold::FoundRows) {
            return Ok(());
        }
        let Some((hostgroup, mut backend)) = self.held.take_that(is_there) else { return Ok(()) };
        self.entry.works_on(hostgroup, &backend);
        let carries = backend.holds.carry_state();
        let asked = self.watched(limit_ms, backend.ask_found_rows(), self.entry.told_to_leave()).await;
        self.keep_found_rows(asked.as_ref().ok().copied().flatten());
        if asked.is_err() {
            backend.idle = Idle::Doubtful;
        }
        if backend.idle == Idle::Proven && !backend.holds.is_empty() {
            self.held.put(hostgroup, backend);
        } else {
            self.core.pools.release(backend);
        }
        // What else was there is lost with it.
        match asked {
            Err(Failed::Client) => Err(Ended::Gone),
            Err(Failed::Backend(failure)) if carries => {
                let (code, state, words) = failure.to_client();
                Err(Ended::Told(Complaint::with(code, state, words)))
            }
            Err(_) if carries => Err(Ended::Told(Complaint::with(1317, "70100", "Query execution was interrupted"))),
            _ => Ok(()),
        }
    }

    /// What this answer leaves to be asked for.
    pub(crate) fn learn_recall(&mut self, backend: &mut Backend, job: &Job<'_>, response: &Response, error: bool) {
        let class = job.class;
        let finds = Finds::of(class, job.sent(), Some(backend.hello.is_mariadb()));
        if matches!(job.what, What::Prepare(_)) || finds == Finds::Nothing {
            return;
        }
        if error && !class.multi && backend::is_select(class) && !backend.hello.is_mariadb() {
            // To MySQL, one that fails finds nothing.
            return;
        }
        // A WITH may begin a change, too.
        let selects = finds == Finds::Rows && (backend::is_select(class) || response.columns() > 0);
        let plain = !class.multi
            && !error
            && response.results() == 1
            && matches!(job.what, What::Query(_) | What::Execute(_) | What::Dynamic(_));
        let counted = selects && response.columns() > 0 && !class.leaves.intersects(Leaves::FOUND_ROWS);
        let whole = response.status() & status::CURSOR_EXISTS == 0 && job.plan.rows_max.is_none();
        let rows =
            found_by(job.class, job.sent(), response.rows()).filter(|_| plain && counted && whole && self.limits_are_read(job));
        // What may have changed it, or not, is known where it was known before only.
        let called = backend::is_call(class) && !class.multi && !error && response.results() > 1;
        let is_known_here = plain && selects || called || self.knows_found_rows(backend);
        let by = is_known_here.then(|| self.entry.statement.get());
        backend.finder = by;
        self.entry.recall.set(Recall { found: rows.map_or(Found::Unknown, Found::Rows), by });
        if counted && plain {
            backend.holds.remove(Hold::FoundRows);
        }
        // Elsewhere nobody knows of this one.
        self.end_found_rows();
    }

    /// A statement has failed, and nobody knows how far it came.
    pub(crate) fn doubt_found_rows(&self, job: &Job<'_>) {
        let lost = self.entry.recall.get().found == Found::Lost;
        if !lost && !matches!(job.what, What::Prepare(_)) && Finds::of(job.class, job.sent(), None) != Finds::Nothing {
            self.entry.recall.set(Recall { found: Found::Unknown, by: None });
        }
    }

    /// What was found rows on a connection of the session is so no more.
    pub(crate) fn end_found_rows(&mut self) {
        if self.held.end_found_rows() {
            self.let_go_of_free();
        }
    }

    /// The connection where `SQL_CALC_FOUND_ROWS` ran is given back, or gone; `None` if it could not be asked.
    pub(crate) fn keep_found_rows(&self, rows: Option<u64>) {
        let rows = rows.and_then(|rows| u32::try_from(rows).ok());
        self.entry.recall.set(Recall { found: rows.map_or(Found::Lost, Found::Rows), by: None });
    }
}

/// Whether a statement that runs now wants to know. A definition does not, nor do several statements that may find rows themselves.
pub(crate) fn asks_for_found_rows(class: &Class<'_>) -> bool {
    let is_program = class.leaves.intersects(Leaves::UNKNOWN_STATE) && !backend::is_call(class);
    let defines = class.ddl && class.command != CommandCounter::CreateTable;
    class.reads.intersects(Reads::FOUND_ROWS) && !class.multi && !is_program && !defines
}

/// What a statement does to `FOUND_ROWS()`, measured on MariaDB 10.11 and MySQL 9.7.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Finds {
    /// It stays.
    Nothing,
    /// It is the number of rows of its result, if it has one, with those that an OFFSET leaves out.
    Rows,
    /// What is not certain has changed it.
    Unknown,
}

impl Finds {
    /// `mariadb`: whether a MariaDB does it, if that is known.
    fn of(class: &Class<'_>, text: &[u8], mariadb: Option<bool>) -> Self {
        if class.multi {
            return Self::Unknown;
        }
        if leaves_found_rows(class, text, mariadb == Some(true)) {
            return Self::Nothing;
        }
        let mut words = Words::new(text).skip_while(|token| token.is_sign(b'('));
        let Some(first) = words.next() else { return Self::Unknown };
        if first.is_any(&["SELECT", "WITH", "TABLE"]) || first.is("VALUES") && mariadb == Some(false) {
            return Self::Rows;
        }
        if first.is("SHOW") {
            return Self::of_show(words);
        }
        let describes = first.is_any(&["DESCRIBE", "DESC", "EXPLAIN"]) && names_a_table(words);
        if describes { Self::Rows } else { Self::Unknown }
    }

    /// Many are a SELECT of their servers' own.
    fn of_show<'a>(words: impl Iterator<Item = Token<'a>>) -> Self {
        let mut words = words.skip_while(|token| token.is_any(&["FULL", "EXTENDED", "GLOBAL", "SESSION", "LOCAL", "STORAGE"]));
        let (Some(first), second) = (words.next(), words.next()) else { return Self::Unknown };
        let is_second = |word| second.is_some_and(|second| second.is(word));
        let selects = first.is_any(&[
            "TABLES",
            "DATABASES",
            "SCHEMAS",
            "VARIABLES",
            "STATUS",
            "COLUMNS",
            "FIELDS",
            "INDEX",
            "INDEXES",
            "KEYS",
            "CHARSET",
            "COLLATION",
            "ENGINES",
            "PLUGINS",
            "TRIGGERS",
            "EVENTS",
            "COUNT",
        ]);
        if selects
            || first.is("CHARACTER") && is_second("SET")
            || first.is("OPEN") && is_second("TABLES")
            || first.is_any(&["TABLE", "PROCEDURE", "FUNCTION"]) && is_second("STATUS")
        {
            Self::Rows
        } else if first.is_any(&["CREATE", "GRANTS", "PRIVILEGES", "WARNINGS", "ERRORS"]) {
            Self::Nothing
        } else {
            Self::Unknown
        }
    }
}

/// Whether a DESCRIBE is of a table, and maybe a column, behind its verb. It explains a statement else.
fn names_a_table<'a>(words: impl Iterator<Item = Token<'a>>) -> bool {
    const STATEMENTS: &[&str] = &[
        "SELECT",
        "INSERT",
        "REPLACE",
        "UPDATE",
        "DELETE",
        "WITH",
        "TABLE",
        "VALUES",
        "FORMAT",
        "EXTENDED",
        "PARTITIONS",
        "ANALYZE",
        "FOR",
        "INTO",
    ];
    let mut words = words.take_while(|token| !token.is_sign(b';'));
    let is_name = |token: Token<'_>| token.kind == Kind::Name || token.kind == Kind::Word && !token.is_any(STATEMENTS);
    if !words.next().is_some_and(is_name) {
        return false;
    }
    let mut next = words.next();
    if next.is_some_and(|token| token.is_sign(b'.')) {
        next = words.nth(1);
    }
    next.is_none_or(|column| column.kind != Kind::Sign) && words.next().is_none()
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
    let joins = || matches!(class.command, C::Delete | C::Update) && names_several_tables(text);
    (may || class.use_db.is_some()) && !class.multi && !class.selects && !programs && !joins()
}

/// Whether an UPDATE or DELETE may be of several tables: servers select what such a one changes.
fn names_several_tables(text: &[u8]) -> bool {
    let mut words = Words::new(text).take_while(|token| !token.is_any(&["SET", "WHERE", "ORDER", "LIMIT"]));
    let is_delete = words.next().is_some_and(|token| token.is("DELETE"));
    let mut words = words.skip_while(|token| token.is_any(&["LOW_PRIORITY", "QUICK", "IGNORE"]));
    is_delete && !words.next().is_some_and(|token| token.is("FROM"))
        || words.any(|token| token.is_sign(b',') || token.is_any(&["JOIN", "STRAIGHT_JOIN", "USING"]))
}

const SETS: &[&str] = &["UNION", "EXCEPT", "INTERSECT", "MINUS"];

/// What FOUND_ROWS() is after a SELECT with so many rows in its answer, if that tells: rows that an OFFSET leaves out are found, too, and the union of
/// others may have found more than its LIMIT.
fn found_by(class: &Class<'_>, text: &[u8], rows: u64) -> Option<u32> {
    let rows = u32::try_from(rows).ok()?;
    if !class.limits {
        return Some(rows);
    }
    if !Words::new(text).next().is_some_and(|token| token.is_any(&["SELECT", "WITH", "TABLE"])) {
        // The limits of what is in parentheses would have to be told apart.
        return Words::new(text).all(|token| !token.is_any(&["LIMIT", "OFFSET", "FETCH"])).then_some(rows);
    }
    let mut depth = 0_i32;
    let mut words = Words::new(text).filter(|token| {
        depth += i32::from(token.is_sign(b'(')) - i32::from(token.is_sign(b')'));
        depth == 0
    });
    let before = words.by_ref().find(|token| token.is_any(SETS) || token.is_any(&["LIMIT", "OFFSET", "FETCH"]));
    match before {
        None => return Some(rows),
        Some(token) if token.is("LIMIT") => {}
        Some(token) if token.is_any(SETS) => {
            return words.all(|token| !token.is_any(&["LIMIT", "OFFSET", "FETCH"])).then_some(rows);
        }
        Some(_) => return None,
    }
    let first = words.next()?;
    let between = words.next();
    let skipped = match between {
        Some(between) if between.is_sign(b',') => Some(first),
        Some(between) if between.is("OFFSET") => Some(words.next()?),
        Some(between) if between.is("ROWS") => return None,
        _ => None,
    };
    if words.any(|token| token.is_any(SETS) || token.is("ROWS")) {
        return None;
    }
    let Some(skipped) = skipped else { return Some(rows) };
    let skipped: u32 = std::str::from_utf8(skipped.text).ok()?.parse().ok()?;
    if rows == 0 && skipped > 0 { None } else { rows.checked_add(skipped) }
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
    fn what_an_offset_leaves_out_is_found_too() {
        let found = |text: &str, rows| found_by(&sql::class(text.as_bytes()), text.as_bytes(), rows);
        for text in [
            "SELECT a FROM t",
            "SELECT a FROM t LIMIT 5",
            "SELECT a FROM t LIMIT ? FOR UPDATE",
            "SELECT a FROM t LIMIT 0, 5",
            "SELECT a FROM (SELECT a FROM t LIMIT 7 OFFSET 7) x LIMIT 3",
            "WITH x AS (SELECT 1 UNION SELECT 2 LIMIT 1) SELECT * FROM x LIMIT 3;",
            "SELECT 1 UNION SELECT 2",
            "(SELECT 1) UNION (SELECT 2)",
            "TABLE t ORDER BY a LIMIT 3",
            "SHOW TABLES WHERE Tables_in_t IN ('LIMIT')",
        ] {
            assert_eq!(found(text, 3), Some(3), "{text}");
        }
        for text in [
            "SELECT a FROM t LIMIT 3 OFFSET 20",
            "SELECT a FROM t LIMIT 20, 3",
            "SELECT a FROM t LIMIT 20,5 FOR UPDATE",
            "WITH x AS (SELECT a FROM t LIMIT 7) SELECT a FROM x LIMIT 3 OFFSET 20",
            "TABLE t LIMIT 3 OFFSET 20",
        ] {
            assert_eq!((found(text, 3), found(text, 0)), (Some(23), None), "{text}");
        }
        for text in [
            "SELECT 1 UNION ALL SELECT 2 LIMIT 3",
            "SELECT a FROM t LIMIT ?, 5",
            "SELECT a FROM t LIMIT 5 OFFSET ?",
            "SELECT a FROM t LIMIT 5 ROWS EXAMINED 100",
            "SELECT a FROM t OFFSET 2 ROWS FETCH FIRST 3 ROWS ONLY",
            "(SELECT a FROM t LIMIT 3 OFFSET 2)",
            "(SELECT a FROM t) LIMIT 3",
            "SELECT a FROM t LIMIT 4294967295, 3",
            "SELECT a FROM t LIMIT",
            "SHOW TABLES WHERE Tables_in_t IN (SELECT a FROM t LIMIT 1)",
        ] {
            assert_eq!(found(text, 3), None, "{text}");
        }
    }

    #[test]
    fn what_servers_answer_with_a_select_finds_rows() {
        let finds = |text: &str, mariadb| Finds::of(&sql::class(text.as_bytes()), text.as_bytes(), mariadb);
        for text in [
            "SELECT 1",
            "((SELECT 1) UNION SELECT 2)",
            "WITH x AS (SELECT 1) SELECT * FROM x",
            "TABLE t LIMIT 3",
            "show full tables from t like 'a'",
            "SHOW GLOBAL STATUS",
            "SHOW CHARACTER SET",
            "SHOW TABLE STATUS FROM t",
            "SHOW COUNT(*) WARNINGS",
            "DESC t",
            "EXPLAIN t.`s`;",
            "DESCRIBE s.t 'a%'",
        ] {
            assert_eq!(finds(text, Some(true)), Finds::Rows, "{text}");
            assert_eq!(finds(text, Some(false)), Finds::Rows, "{text}");
            assert_eq!(finds(text, None), Finds::Rows, "{text}");
        }
        for text in ["SHOW CREATE TABLE t", "SHOW WARNINGS", "SHOW GRANTS", "SHOW ERRORS LIMIT 2"] {
            assert_eq!(finds(text, None), Finds::Nothing, "{text}");
        }
        for text in [
            "SHOW PROCESSLIST",
            "SHOW ENGINE INNODB STATUS",
            "SHOW",
            "EXPLAIN SELECT 1",
            "DESC FORMAT = JSON SELECT 1",
            "EXPLAIN ANALYZE TABLE t",
            "DESCRIBE",
            "EXPLAIN t, s",
            "CALL p()",
            "SELECT 1; SELECT 2",
        ] {
            assert_eq!(finds(text, Some(true)), Finds::Unknown, "{text}");
        }
        assert_eq!(finds("VALUES ROW(1)", Some(false)), Finds::Rows);
        assert_eq!((finds("VALUES (1)", Some(true)), finds("VALUES ROW(1)", None)), (Finds::Unknown, Finds::Unknown));
    }

    #[test]
    fn found_rows_outlive_what_selects_nothing() {
        let leaves = |text: &str| leaves_found_rows(&sql::class(text.as_bytes()), text.as_bytes(), true);
        for text in [
            "UPDATE t SET a = 1, b = 2",
            "insert into t values (1)",
            "SET @x = 1",
            "COMMIT",
            "USE conf",
            "BEGIN",
            "DELETE QUICK FROM t",
        ] {
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
            "DELETE t FROM t JOIN s ON t.a = s.a",
            "DELETE FROM t USING t JOIN s",
            "DELETE LOW_PRIORITY QUICK t, s FROM t, s",
            "UPDATE t, s SET t.a = 1",
            "UPDATE t JOIN s SET t.a = 1",
        ] {
            assert!(!leaves(text), "{text}");
        }
        assert!(!leaves_found_rows(&sql::class(b"UPDATE t SET a = 1"), b"UPDATE t SET a = 1", false));
    }
}
