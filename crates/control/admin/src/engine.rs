//! The SQLite behind the admin port: five databases under one connection, and what operators may do
//! with them.
//!
//! `disk` keeps SQLite's rollback journal instead of a write-ahead log: after every SAVE the one
//! file is complete, so that a plain copy of `proxysql.db` is a backup, and nothing is gained by a
//! log where a few rows are written now and then. `synchronous=EXTRA` makes a SAVE that was
//! answered survive a crash of the machine; a kill -9 at any moment leaves the state before or
//! after it. `main`, `stats` and `monitor` are memory and sync nothing. `stats_history` may lose
//! its last seconds.

pub(crate) mod another_version;
mod authority;
mod functions;
mod hints;
mod shape;

use crate::aside::give_way;
use crate::grid::Grid;
use crate::private::keep_private;
use crate::tables::{self, Kind, Module, Role, Runtime, Schema, TableCopy};
use another_version::Unknown;
use authority::{CHECKS, HARMLESS, Ours, Tables};
pub(crate) use functions::Whose;
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, params_from_iter};
use shape::Shape;
use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

/// Name of the file of `disk`: tools of ProxySQL's users look for it.
pub const DISK_FILE: &str = "proxysql.db";
/// Name of the file of `stats_history`.
pub const HISTORY_FILE: &str = "proxysql_stats.db";

/// Name that SQLite takes for a file that is none.
const MEMORY: &str = ":memory:";

/// Which databases somebody sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// All.
    Admin,
    /// The statistics, as `main`; nothing can be written.
    Stats,
}

/// Reply to a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// Answer without rows.
    Done {
        /// Rows changed.
        affected: u64,
        /// Words for a person.
        info: String,
    },
    /// Answer with these rows.
    Rows(Grid),
}

impl Reply {
    /// Done, and nothing to say of it.
    #[must_use]
    pub const fn done() -> Self {
        Self::Done {
            affected: 0,
            info: String::new(),
        }
    }

    /// Done, with something to say of it.
    #[must_use]
    pub const fn said(info: String) -> Self {
        Self::Done { affected: 0, info }
    }
}

/// SQLite's words for what went wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlError(pub String);

impl From<rusqlite::Error> for SqlError {
    fn from(error: rusqlite::Error) -> Self {
        Self(match error {
            rusqlite::Error::SqlInputError { msg, .. } => hints::with_hint(msg),
            rusqlite::Error::SqliteFailure(_, Some(words)) => hints::with_hint(words),
            other => other.to_string(),
        })
    }
}

impl std::fmt::Display for SqlError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SqlError {}

/// The databases of one view.
#[derive(Debug)]
pub struct Engine {
    conn: Connection,
    view: View,
    read_only: bool,
    /// The file of the schema `disk`, or `:memory:`.
    disk: String,
    /// Every table by its name in small letters. Names that are in several schemas lead to the one
    /// that counts here.
    by_name: HashMap<String, TableCopy>,
    limit: Arc<TimeLimit>,
    ours: Ours,
    /// Whose statement runs.
    now: functions::Now,
    /// Bytes of answers that wait to be read.
    held: Arc<AtomicUsize>,
    /// Words of another version on disk that this one does not know.
    unknown: Vec<Unknown>,
}

/// Steps of SQLite's machine between two pauses: some fifty rows.
const STEPS_AT_ONCE: i32 = 2000;

/// The longest that a statement of somebody who may only read statistics takes. There is one thread
/// for all operators.
pub(crate) const STATS_TIME: Duration = Duration::from_secs(if cfg!(test) { 3 } else { 10 });
/// The longest that a statement of an administrator takes.
const ADMIN_TIME: Duration = Duration::from_mins(10);
/// The largest answer in bytes.
const ANSWER_BYTES: usize = 512 << 20;
/// The largest answer to a statistics user: a hundred thousand digests and more.
const STATS_ANSWER_BYTES: usize = 64 << 20;
/// All answers to statistics users that wait to be read.
const STATS_ANSWERS_BYTES: usize = 128 << 20;
/// The largest answer of which nobody asks how many others wait.
const SMALL_ANSWER_BYTES: usize = 1 << 20;
/// The largest single value in a statement of a statistics user, in bytes, and the text of the
/// statement itself; SQLite's own limit is a billion. Some of its functions take the square of it,
/// and none is interrupted: two seconds for `instr` of this much.
pub(crate) const STATS_VALUE_BYTES: i32 = 256 << 10;
/// The largest pattern of a LIKE of his, in bytes.
const STATS_PATTERN_BYTES: i32 = 500;

/// When the statement of an operator has to be over.
#[derive(Debug)]
struct TimeLimit {
    opened: Instant,
    /// Microseconds since `opened`; 0 for what is not an operator's.
    until: AtomicU64,
}

impl TimeLimit {
    fn new() -> Self {
        Self {
            opened: Instant::now(),
            until: AtomicU64::new(0),
        }
    }

    fn is_over(&self) -> bool {
        let until = self.until.load(Ordering::Relaxed);
        until != 0 && self.opened.elapsed() >= Duration::from_micros(until)
    }

    fn starts(&self, may_take: Duration) {
        self.until.store(
            micros(self.opened.elapsed() + may_take).max(1),
            Ordering::Relaxed,
        );
    }

    /// Extends the limit by what others have had of the processor meanwhile: that is not the
    /// statement's time.
    fn gave_away(&self, took: Duration) {
        let until = self.until.load(Ordering::Relaxed);
        if until != 0 {
            self.until
                .store(until.saturating_add(micros(took)), Ordering::Relaxed);
        }
    }

    fn ends(&self) {
        self.until.store(0, Ordering::Relaxed);
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

impl Engine {
    /// Opens (and makes, where they are missing) the databases in `datadir`; in memory alone
    /// without one.
    pub fn open(datadir: Option<&Path>, view: View) -> Result<Self, SqlError> {
        let conn = Connection::open_in_memory()?;
        // ProxySQL's users write literals in double quotes.
        conn.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DML, true)?;
        conn.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DDL, true)?;
        functions::add(&conn)?;
        let now = functions::Now::default();
        functions::add_of_now(&conn, &now)?;
        // A statement may go through a million rows: whoever waits for this processor gets it now
        // and then.
        let limit = Arc::new(TimeLimit::new());
        let watched = limit.clone();
        conn.progress_handler(
            STEPS_AT_ONCE,
            Some(move || {
                let began = Instant::now();
                give_way();
                watched.gave_away(began.elapsed());
                watched.is_over()
            }),
        );
        let file = |name: &str| {
            datadir.map_or_else(
                || MEMORY.into(),
                |dir| dir.join(name).to_string_lossy().into_owned(),
            )
        };
        let schemas: &[(Schema, String)] = &match view {
            View::Admin => vec![
                (Schema::Disk, file(DISK_FILE)),
                (Schema::Stats, MEMORY.into()),
                (Schema::Monitor, MEMORY.into()),
                (Schema::StatsHistory, file(HISTORY_FILE)),
            ],
            View::Stats => vec![
                (Schema::Monitor, MEMORY.into()),
                (Schema::StatsHistory, file(HISTORY_FILE)),
            ],
        };
        // Attaching takes a number that SHOW DATABASES shows; 1 is SQLite's own for temporary
        // tables.
        for (schema, file) in schemas {
            if file != MEMORY {
                keep_private(Path::new(file));
            }
            conn.execute(&format!("ATTACH DATABASE ?1 AS {}", schema.name()), [file])?;
        }
        let on_disk = |schema: &str| {
            schemas
                .iter()
                .any(|(name, file)| name.name() == schema && file != MEMORY)
        };
        if on_disk("disk") {
            set_disk_pragmas(&conn, "disk")?;
        }
        if on_disk("stats_history") {
            set_pragma(&conn, "stats_history", "journal_mode", "WAL")?;
            set_pragma(&conn, "stats_history", "synchronous", "NORMAL")?;
        }
        let disk = file(DISK_FILE);
        let ours = Ours::default();
        let mut engine = Self {
            conn,
            view,
            read_only: view == View::Stats,
            disk,
            by_name: HashMap::new(),
            limit,
            ours,
            now,
            held: Arc::default(),
            unknown: Vec::new(),
        };
        engine.create_tables()?;
        if on_disk("disk") {
            engine.unknown = engine.transaction(|conn| another_version::bring_up(conn, "disk"))?;
        }
        if view == View::Stats {
            // A long text takes much memory to understand, also where it is never run.
            engine
                .conn
                .set_limit(Limit::SQLITE_LIMIT_SQL_LENGTH, STATS_VALUE_BYTES)?;
        }
        // Drivers try connections with it. Temporary: it is in no list and in no copy.
        engine
            .conn
            .execute_batch("CREATE TEMP VIEW dual AS SELECT 'X' AS DUMMY")?;
        if view == View::Admin {
            engine.fill_collations()?;
        }
        engine.set_read_only(engine.read_only)?;
        engine.ours.watch(&engine.conn);
        Ok(engine)
    }

    fn create_tables(&mut self) -> Result<(), SqlError> {
        let mut statements = String::from("BEGIN;");
        for copy in tables::copies() {
            let schema = match (self.view, copy.schema) {
                (View::Admin, schema) => schema.name(),
                (View::Stats, Schema::Stats) => "main",
                (View::Stats, Schema::Monitor | Schema::StatsHistory) => copy.schema.name(),
                (View::Stats, Schema::Main | Schema::Disk) => continue,
            };
            statements += &copy.ddl(schema);
            statements.push(';');
            if copy.role != Role::Disk {
                let unless_known = self.by_name.entry(copy.name.to_ascii_lowercase());
                unless_known.or_insert(copy);
            }
        }
        statements += "COMMIT";
        Ok(self.conn.execute_batch(&statements)?)
    }

    fn fill_collations(&self) -> Result<(), SqlError> {
        let mut insert = self
            .conn
            .prepare("INSERT OR REPLACE INTO main.mysql_collations VALUES (?1, ?2, ?3, ?4)")?;
        for collation in wire::charset::all() {
            let is_default = if collation.is_default { "Yes" } else { "" };
            insert.execute((collation.id, collation.name, collation.charset, is_default))?;
        }
        Ok(())
    }

    /// Does something with the database of another file as schema `kept`.
    pub(crate) fn beside<T>(
        &self,
        file: &Path,
        work: impl FnOnce() -> Result<T, SqlError>,
    ) -> Result<T, SqlError> {
        let name = file.to_string_lossy();
        let attach = || self.conn.execute("ATTACH DATABASE ?1 AS kept", [&*name]);
        self.ours.during(attach)?;
        let outcome = work();
        let detach = || self.conn.execute("DETACH DATABASE kept", []);
        self.ours.during(detach)?;
        outcome
    }

    /// Lets go of the file of the schema `disk` and opens it anew: another may stand in its place,
    /// a backup that was put back. One that cannot be used leaves the one of before where it is.
    pub fn reopen_disk(&self) -> Result<(), SqlError> {
        if self.disk == MEMORY {
            return Ok(());
        }
        self.ours.during(|| {
            self.writing(|conn| {
                let tried = self.attach_disk(conn, "trial");
                let _unless_it_failed = conn.execute_batch("DETACH DATABASE trial");
                tried?;
                // It may be missing since an attempt of before; if it cannot be let go of, the next
                // says so.
                let _missing = conn.execute_batch("DETACH DATABASE disk");
                self.attach_disk(conn, "disk")
            })
        })
    }

    fn attach_disk(&self, conn: &Connection, schema: &str) -> Result<(), SqlError> {
        keep_private(Path::new(&self.disk));
        conn.execute(&format!("ATTACH DATABASE ?1 AS {schema}"), [&self.disk])?;
        set_disk_pragmas(conn, schema)?;
        let ddl: Vec<_> = tables::copies()
            .iter()
            .filter(|copy| copy.schema == Schema::Disk)
            .map(|copy| copy.ddl(schema))
            .collect();
        conn.execute_batch(&ddl.join(";"))?;
        let change = conn.unchecked_transaction()?;
        another_version::bring_up(&change, schema)?;
        Ok(change.commit()?)
    }

    /// Tables on disk that say what this version does not know; each was kept beside.
    pub(crate) fn unknown(&self) -> &[Unknown] {
        &self.unknown
    }

    /// For statements of ours.
    pub fn conn(&self) -> &Connection {
        &self.conn
    }

    /// Says whose statement is next.
    pub(crate) fn asked_by(&self, whose: Whose) {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner) = whose;
    }

    /// Who sees it.
    #[must_use]
    pub fn view(&self) -> View {
        self.view
    }

    /// Whether operators can only read.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Whether operators can only read: `PROXYSQL READONLY`.
    pub fn set_read_only(&mut self, read_only: bool) -> Result<(), SqlError> {
        self.read_only = read_only || self.view == View::Stats;
        self.query_only(self.read_only)
    }

    fn query_only(&self, only: bool) -> Result<(), SqlError> {
        self.ours.during(|| {
            set_pragma(
                &self.conn,
                "main",
                "query_only",
                if only { "1" } else { "0" },
            )
        })
    }

    /// Runs `write` although operators may be allowed to read only.
    pub fn writing<T>(
        &self,
        write: impl FnOnce(&Connection) -> Result<T, SqlError>,
    ) -> Result<T, SqlError> {
        if self.read_only {
            self.query_only(false)?;
        }
        let outcome = write(&self.conn);
        if self.read_only {
            self.query_only(true)?;
        }
        outcome
    }

    /// Runs `write` as a whole or not at all.
    pub fn transaction<T>(
        &self,
        write: impl FnOnce(&Connection) -> Result<T, SqlError>,
    ) -> Result<T, SqlError> {
        self.writing(|conn| {
            let transaction = conn.unchecked_transaction()?;
            let outcome = write(&transaction)?;
            transaction.commit()?;
            Ok(outcome)
        })
    }

    /// The tables that a statement names, of those which are filled when they are read.
    pub fn filled_tables_in(&self, sql: &str) -> Vec<&TableCopy> {
        let mut named: Vec<&TableCopy> = Vec::new();
        // Nothing else is filled, and this is asked of every single INSERT.
        let begins: &[&str] = if self.view == View::Stats {
            &["runtime_", "stats_", "mysql_server_", "global_"]
        } else {
            &["runtime_", "stats_", "mysql_server_"]
        };
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let bytes = sql.as_bytes();
        for (at, _) in sql.match_indices('_') {
            let head = bytes[..=at]
                .rsplit(|byte| !is_word(byte))
                .next()
                .unwrap_or_default();
            if !begins
                .iter()
                .any(|with| head.eq_ignore_ascii_case(with.as_bytes()))
            {
                continue;
            }
            let start = at + 1 - head.len();
            let length = bytes[start..]
                .iter()
                .position(|byte| !is_word(byte))
                .unwrap_or(bytes.len() - start);
            if let Some(copy) = self
                .by_name
                .get(&sql[start..start + length].to_ascii_lowercase())
                && !named.iter().any(|known| known.name == copy.name)
            {
                named.push(copy);
            }
        }
        named
    }

    /// The modules whose tables in memory a statement names, of those tables that something works
    /// by: what it has changed is one of them.
    pub(crate) fn modules_in(&self, sql: &str) -> Vec<Module> {
        let mut named = Vec::new();
        let mut before = "";
        for word in sql
            .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .filter(|word| !word.is_empty())
        {
            let is_saved = before.eq_ignore_ascii_case(Schema::Disk.name());
            before = word;
            if is_saved || !word.contains('_') {
                continue;
            }
            if word.eq_ignore_ascii_case("global_variables") {
                named.extend([Module::MysqlVariables, Module::AdminVariables]);
            } else if let Some(copy) = self.by_name.get(&word.to_ascii_lowercase())
                && let (
                    Role::Own,
                    Kind::Declared {
                        module,
                        runtime: Runtime::Honoured,
                        ..
                    },
                ) = (copy.role, copy.table.kind)
            {
                named.push(module);
            }
        }
        named.dedup();
        named
    }

    /// One of our tables, under this name.
    #[must_use]
    pub fn table(&self, name: &str) -> Option<&TableCopy> {
        self.by_name.get(&name.to_ascii_lowercase())
    }

    /// One statement of an operator, with the values of its `?`. It is ended when it takes too
    /// long: there is one thread for all operators.
    pub fn run(&self, sql: &str, values: &[Value]) -> Result<Reply, SqlError> {
        if let Some(words) = self.refusal(sql) {
            return Err(SqlError(words));
        }
        self.limited(|| self.run_to_end(sql, values))
    }

    /// As long as an operator's statement may take, and no value larger than it may have.
    fn limited<T>(&self, work: impl FnOnce() -> Result<T, SqlError>) -> Result<T, SqlError> {
        let may_take = if self.view == View::Stats {
            STATS_TIME
        } else {
            ADMIN_TIME
        };
        // One call of a function is not interrupted: with small values none takes long.
        let lengths = [
            (Limit::SQLITE_LIMIT_LENGTH, STATS_VALUE_BYTES),
            (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, STATS_PATTERN_BYTES),
        ];
        let lengths: &[_] = if self.view == View::Stats {
            &lengths
        } else {
            &[]
        };
        let mut before = Vec::with_capacity(lengths.len());
        for (limit, length) in lengths {
            before.push((*limit, self.conn.limit(*limit)?));
            self.conn.set_limit(*limit, *length)?;
        }
        self.limit.starts(may_take);
        let outcome = work();
        let is_over = outcome.is_err() && self.limit.is_over();
        self.limit.ends();
        for (limit, length) in before {
            self.conn.set_limit(limit, length)?;
        }
        if is_over {
            return Err(SqlError(format!(
                "the statement was ended: it took more than {} seconds",
                may_take.as_secs()
            )));
        }
        outcome
    }

    /// The rows of an answer to `sql`.
    fn gather(
        &self,
        sql: &str,
        names: Vec<String>,
        rows: rusqlite::Rows<'_>,
    ) -> Result<Reply, SqlError> {
        let mut grid = Grid::new(names);
        let resets = || {
            self.filled_tables_in(sql)
                .iter()
                .any(|copy| copy.role == Role::Reset)
        };
        let (one_max, all_max) = match self.view {
            View::Admin => (ANSWER_BYTES, usize::MAX),
            // The cores count from zero again by now. Nobody could ever have it if there were too
            // much.
            View::Stats if resets() => (ANSWER_BYTES, ANSWER_BYTES),
            View::Stats => (STATS_ANSWER_BYTES, STATS_ANSWERS_BYTES),
        };
        let left = all_max
            .saturating_sub(self.held.load(Ordering::Relaxed))
            .max(SMALL_ANSWER_BYTES);
        if left >= one_max {
            fill(&mut grid, rows, one_max)?;
        } else {
            fill(&mut grid, rows, left).map_err(|SqlError(words)| {
                SqlError(format!("{words}, or when others have read theirs"))
            })?;
        }
        Ok(Reply::Rows(grid))
    }

    /// Bytes of answers that wait to be read.
    pub(crate) fn held(&self) -> &Arc<AtomicUsize> {
        &self.held
    }

    fn run_to_end(&self, sql: &str, values: &[Value]) -> Result<Reply, SqlError> {
        let plain = if values.is_empty() {
            self.insert_plain(sql)
        } else {
            None
        };
        plain.unwrap_or_else(|| self.run_as_it_is(sql, values))
    }

    /// One of many INSERTs of literals, by what is prepared of the others; None if it is not plain,
    /// or SQLite has something against it. Only for administrators: others have bounds for what
    /// they write.
    fn insert_plain(&self, sql: &str) -> Option<Result<Reply, SqlError>> {
        let shape = if self.view == View::Admin {
            Shape::of(sql)?
        } else {
            return None;
        };
        let mut statement = self.conn.prepare_cached(&shape.text).ok()?;
        let before = self.conn.total_changes();
        let done = statement.execute(params_from_iter(&shape.values));
        let affected = if self.conn.total_changes() == before {
            0
        } else {
            self.conn.changes()
        };
        Some(
            done.map(|_| Reply::Done {
                affected,
                info: String::new(),
            })
            .map_err(SqlError::from),
        )
    }

    pub(crate) fn run_as_it_is(&self, sql: &str, values: &[Value]) -> Result<Reply, SqlError> {
        let before = self.conn.total_changes();
        let mut statement = self.conn.prepare(sql)?;
        if statement.column_count() == 0 {
            // Nothing but comments and blanks. The text is copied to find out: of what writes,
            // nobody has to ask.
            if statement.readonly() && statement.expanded_sql().is_none() {
                return Err(SqlError("not an error".into()));
            }
            statement.execute(params_from_iter(values))?;
            let affected = if self.conn.total_changes() == before {
                0
            } else {
                self.conn.changes()
            };
            return Ok(Reply::Done {
                affected,
                info: String::new(),
            });
        }
        let names = statement
            .column_names()
            .into_iter()
            .map(str::to_owned)
            .collect();
        self.gather(sql, names, statement.query(params_from_iter(values))?)
    }

    /// A statement of ours that answers for an operator; what it asks by name, `named` knows, and
    /// its `?` are `values`.
    pub fn query(
        &self,
        sql: &str,
        values: &[Value],
        named: impl Fn(&str) -> Option<String>,
    ) -> Result<Reply, SqlError> {
        // It may be an operator's text with names of ours in it.
        self.limited(|| self.query_to_end(sql, values, named))
    }

    fn query_to_end(
        &self,
        sql: &str,
        values: &[Value],
        named: impl Fn(&str) -> Option<String>,
    ) -> Result<Reply, SqlError> {
        let mut statement = self.conn.prepare(sql)?;
        let needed = statement.parameter_count();
        for parameter in 1..=needed {
            if let Some(text) = statement
                .parameter_name(parameter)
                .and_then(|name| named(name.trim_start_matches(':')))
            {
                statement.raw_bind_parameter(parameter, text)?;
            } else {
                let value = values
                    .get(parameter - 1)
                    .ok_or(rusqlite::Error::InvalidParameterCount(values.len(), needed))?;
                statement.raw_bind_parameter(parameter, value)?;
            }
        }
        let names = statement
            .column_names()
            .into_iter()
            .map(str::to_owned)
            .collect();
        self.gather(sql, names, statement.raw_query())
    }

    /// How many values a statement needs, without those of which `named` knows the name, and its
    /// columns.
    pub fn describe(
        &self,
        sql: &str,
        named: impl Fn(&str) -> bool,
    ) -> Result<(usize, Vec<String>), SqlError> {
        if let Some(words) = self.refusal(sql) {
            return Err(SqlError(words));
        }
        self.limited(|| {
            let statement = self.conn.prepare(sql)?;
            let is_known = |parameter| {
                statement
                    .parameter_name(parameter)
                    .is_some_and(|name| named(name.trim_start_matches(':')))
            };
            let needed = (1..=statement.parameter_count())
                .filter(|parameter| !is_known(*parameter))
                .count();
            Ok((
                needed,
                statement
                    .column_names()
                    .into_iter()
                    .map(str::to_owned)
                    .collect(),
            ))
        })
    }

    /// The tables that a statement reads when it is run: not those of which it only says the name,
    /// nor any if it is only explained.
    ///
    /// # Errors
    /// It cannot be run.
    pub(crate) fn tables_read_by(&self, sql: &str) -> Result<Tables, SqlError> {
        if let Some(words) = self.refusal(sql) {
            return Err(SqlError(words));
        }
        let (explains, tables) = self.limited(|| {
            let (prepared, tables) = self.ours.read_by(|| {
                self.conn
                    .prepare(sql)
                    .map(|statement| statement.is_explain() != 0)
            });
            Ok((prepared?, tables))
        })?;
        Ok(if explains { Tables::new() } else { tables })
    }

    /// Refuses what SQLite would do and an operator may not.
    fn refusal(&self, sql: &str) -> Option<String> {
        // What is only explained is prepared all the same.
        let mut words = words(sql).skip_while(|word| {
            ["EXPLAIN", "QUERY", "PLAN"]
                .iter()
                .any(|skipped| word.eq_ignore_ascii_case(skipped))
        });
        let first = words.next()?.to_ascii_uppercase();
        match first.as_str() {
            "ATTACH" | "DETACH" => Some(format!("{first} is not allowed")),
            // They would be everybody's: all operators share this connection.
            "BEGIN" | "START" | "SAVEPOINT" | "RELEASE" | "COMMIT" | "END" | "ROLLBACK" => {
                Some(format!(
                    "{first} is not allowed: every statement on the admin port stands for itself"
                ))
            }
            "PRAGMA" => {
                let mut name = words.next().unwrap_or_default().to_ascii_lowercase();
                if sql.contains('.') && Schema::named(&name).is_some() {
                    name = words.next().unwrap_or_default().to_ascii_lowercase();
                }
                let is_fine = HARMLESS.contains(&name.as_str())
                    || (self.view == View::Admin && CHECKS.contains(&name.as_str()));
                (!is_fine).then(|| format!("PRAGMA {name} is not allowed"))
            }
            "VACUUM" => words
                .any(|word| word.eq_ignore_ascii_case("into"))
                .then(|| "VACUUM INTO is not allowed".into()),
            "DROP" | "ALTER" => {
                let ours = words.find(|word| self.table(word).is_some())?;
                Some(format!("table {ours} may not be dropped or altered"))
            }
            _ => None,
        }
    }
}

/// The words of a statement, without comments and blanks.
pub(crate) fn words(sql: &str) -> impl Iterator<Item = &str> {
    let mut rest = sql;
    std::iter::from_fn(move || {
        loop {
            rest = rest.trim_start_matches(|c: char| c != '/' && c != '-' && !is_word(c));
            let comment = [("/*", "*/"), ("--", "\n")]
                .into_iter()
                .find(|(begin, _)| rest.starts_with(begin));
            if let Some((_, end)) = comment {
                rest = rest.find(end).map_or("", |at| &rest[at + end.len()..]);
            } else if rest.starts_with(['/', '-']) {
                rest = &rest[1..];
            } else {
                break;
            }
        }
        let len = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
        let (word, tail) = rest.split_at(len);
        rest = tail;
        (!word.is_empty()).then_some(word)
    })
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$' || c == '@'
}

/// Within this bound, also where one row is wide: it may have two thousand values.
fn fill(grid: &mut Grid, mut rows: rusqlite::Rows<'_>, bytes_max: usize) -> Result<(), SqlError> {
    let width = grid.names.len();
    while let Some(row) = rows.next()? {
        for column in 0..width {
            push(grid, row.get_ref(column)?);
            if grid.bytes_held() > bytes_max {
                return Err(SqlError(format!(
                    "the answer has more than {bytes_max} bytes; ask for less at once"
                )));
            }
        }
    }
    Ok(())
}

fn push(grid: &mut Grid, cell: ValueRef<'_>) {
    match cell {
        ValueRef::Null => grid.push(None),
        ValueRef::Integer(number) => grid.push_display(number),
        // As SQLite itself writes it.
        ValueRef::Real(number) if number.fract() == 0.0 && number.abs() < 1e15 => {
            grid.push_display(format_args!("{number:.1}"))
        }
        ValueRef::Real(number) => grid.push_display(number),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => grid.push(Some(bytes)),
    }
}

/// Has SQLite write so that what is saved is there for good when the answer says so.
fn set_disk_pragmas(conn: &Connection, schema: &str) -> Result<(), SqlError> {
    set_pragma(conn, schema, "journal_mode", "DELETE")?;
    set_pragma(conn, schema, "synchronous", "EXTRA")
}

fn set_pragma(conn: &Connection, schema: &str, name: &str, value: &str) -> Result<(), SqlError> {
    Ok(conn.pragma_update(Some(schema), name, value)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wide_row_is_refused_before_all_of_it_is_copied() {
        let engine = Engine::open(None, View::Stats).unwrap();
        let wide = vec!["zeroblob(10000)"; 2000].join(", ");
        for (rows, bytes_max) in [(1, 100_000), (2, 25_000_000)] {
            let mut statement = engine
                .conn
                .prepare(&format!(
                    "SELECT {wide} FROM (VALUES (1), (2)) LIMIT {rows}"
                ))
                .unwrap();
            let mut grid = Grid::new(vec![String::new(); 2000]);
            let refused = fill(&mut grid, statement.query([]).unwrap(), bytes_max).unwrap_err();
            assert_eq!(
                refused.0,
                format!("the answer has more than {bytes_max} bytes; ask for less at once")
            );
            assert!(
                grid.bytes_held() < bytes_max + 20_000,
                "{} of {bytes_max}",
                grid.bytes_held()
            );
        }
    }

    #[test]
    fn time_that_a_statement_gives_away_is_not_its_own() {
        let limit = TimeLimit {
            opened: Instant::now().checked_sub(Duration::from_secs(1)).unwrap(),
            ..TimeLimit::new()
        };
        limit.gave_away(Duration::from_secs(1));
        assert!(!limit.is_over(), "it is nobody's");
        limit.starts(Duration::ZERO);
        assert!(limit.is_over());
        limit.gave_away(Duration::from_hours(1));
        assert!(!limit.is_over());
        limit.ends();
        assert!(!limit.is_over());
    }
}
