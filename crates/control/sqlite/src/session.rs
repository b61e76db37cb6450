//! One client of the embedded server: an SQLite connection of its own, and the state that MySQL's
//! protocol shows of it.

use crate::ReadOnly;
use crate::dialect::{self, Said};
use crate::errors::{self, Remedy};
use crate::functions::{self, Told};
use crate::rows::{self, LOOKED_AT, Seen};
use door::dialect as common;
use door::{Answer, Done, Out, Prepared, Refused, Who};
use rt::Rt;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::types::{Value as Sqlite, ValueRef};
use rusqlite::{Connection, OpenFlags, Row, params_from_iter};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use wire::errors::{Code, EMPTY_QUERY, NOT_ALLOWED, UNKNOWN_DATABASE};
use wire::execute::Value;
use wire::resultset::Column;
use wire::status;

/// How long a statement waits for another client's write to end.
const LOCK_WAIT: Duration = Duration::from_secs(5);
/// How long SQLite may compute without letting others have the thread.
const STRETCH: Duration = Duration::from_secs(5);
/// Schemas that clients may name: there is one, and these are asked for by habit.
const SCHEMAS: &[&str] = &[
    "main",
    "information_schema",
    "mysql",
    "performance_schema",
    "sys",
    "test",
];
/// Pragmas of a file that SQLite's own extensions read, besides [`dialect::HARMLESS`].
const READ: &[&str] = &["page_size", "data_version"];
/// SQLite asks whether it may go on after so many of its instructions.
const OPS: i32 = 10_000;

/// Opens the file with the settings that all clients have.
pub(crate) fn open(file: &Path) -> rusqlite::Result<Connection> {
    let conn = Connection::open_with_flags(
        file,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE,
    )?;
    // Waiting is done by the session: inside of SQLite it would stop the whole thread.
    conn.busy_timeout(Duration::ZERO)?;
    // Fails while another client is just making the file; it has made the same setting then.
    conn.pragma_update(None, "journal_mode", "WAL").ok();
    conn.pragma_update(None, "synchronous", "NORMAL")?;
    conn.pragma_update(None, "foreign_keys", true)?;
    conn.pragma_update(None, "cache_size", -512)?;
    // SQLite carries out many a PRAGMA when it is prepared: it is asked itself what may be, besides
    // the words of the dialect.
    conn.authorizer(Some(|asked: AuthContext<'_>| {
        if is_allowed(&asked.action) {
            Authorization::Allow
        } else {
            Authorization::Deny
        }
    }));
    Ok(conn)
}

/// Whether clients may have SQLite do this: nothing that reaches for other files, or changes how
/// the file is used by all.
fn is_allowed(action: &AuthAction<'_>) -> bool {
    let is_one_of =
        |names: &[&str], name: &str| names.iter().any(|known| known.eq_ignore_ascii_case(name));
    match action {
        AuthAction::Pragma {
            pragma_name,
            pragma_value,
        } => {
            is_one_of(dialect::HARMLESS, pragma_name)
                || (pragma_value.is_none() && is_one_of(READ, pragma_name))
        }
        // VACUUM works in a file without a name. What is no literal arrives as Unknown.
        AuthAction::Attach { filename } => filename.is_empty(),
        AuthAction::Detach { .. } | AuthAction::Unknown { .. } => false,
        _ => true,
    }
}

/// One client.
pub(crate) struct Session {
    conn: Connection,
    rt: Rt,
    version: String,
    autocommit: bool,
    variables: BTreeMap<String, String>,
    told: Arc<Told>,
    /// Milliseconds after `anchor` at which SQLite is interrupted.
    until_ms: Arc<AtomicU64>,
    anchor: Instant,
    read_only: ReadOnly,
}

/// How a statement of SQLite ended.
enum Ended {
    /// Its answer is sent.
    Answered,
    /// Statement that failed before anything was sent.
    Failed(rusqlite::Error),
}

impl Session {
    pub(crate) fn begin(
        file: &Path,
        version: &str,
        who: Who,
        rt: Rt,
        read_only: ReadOnly,
    ) -> Result<Self, Refused> {
        let told = Arc::new(Told::default());
        let until_ms = Arc::new(AtomicU64::new(u64::MAX));
        let anchor = Instant::now();
        let conn = open(file).and_then(|conn| {
            functions::add(&conn, version, &who.user, who.id, &told)?;
            let until = until_ms.clone();
            conn.progress_handler(
                OPS,
                Some(move || {
                    anchor.elapsed().as_millis() > u128::from(until.load(Ordering::Relaxed))
                }),
            );
            Ok(conn)
        });
        let conn = conn.map_err(|error| errors::refused(&error))?;
        let mut session = Self {
            conn,
            rt,
            version: version.to_owned(),
            autocommit: true,
            variables: BTreeMap::new(),
            told,
            until_ms,
            anchor,
            read_only,
        };
        if let Some(schema) = &who.schema {
            session.use_schema(schema)?;
        }
        Ok(session)
    }

    async fn say(&mut self, said: Said, values: &[Sqlite], out: &mut Out<'_>) -> io::Result<()> {
        match said {
            Said::Blank => out.err(&Refused::new(EMPTY_QUERY, "Query was empty")).await,
            Said::Accept => self.done(out).await,
            Said::Set(values) => {
                for (name, value) in values {
                    if let Err(refused) = self.set(name, value).await {
                        return out.err(&refused).await;
                    }
                }
                self.done(out).await
            }
            Said::Begin => {
                // MySQL ends the transaction that is open.
                self.plain(
                    if self.conn.is_autocommit() {
                        &["BEGIN"]
                    } else {
                        &["COMMIT", "BEGIN"]
                    },
                    out,
                )
                .await
            }
            Said::Commit | Said::Rollback if self.conn.is_autocommit() => self.done(out).await,
            Said::Commit => self.plain(&["COMMIT"], out).await,
            Said::Rollback => self.plain(&["ROLLBACK"], out).await,
            Said::Use(schema) => match self.use_schema(&schema) {
                Ok(()) => self.done(out).await,
                Err(refused) => out.err(&refused).await,
            },
            Said::Variables(asked) => {
                let columns = asked
                    .iter()
                    .map(|asked| Column::text(&asked.label))
                    .collect();
                let row = asked
                    .iter()
                    .map(|asked| self.variable(&asked.name))
                    .collect();
                out.rows(columns, &[row], self.status()).await
            }
            Said::ShowVariables(pattern) => {
                let found = self.show_variables(pattern.as_deref());
                out.rows(
                    vec![Column::text("Variable_name"), Column::text("Value")],
                    &found,
                    self.status(),
                )
                .await
            }
            Said::Sleep(seconds) => {
                self.rt
                    .sleep(Duration::from_secs_f64(seconds.min(86_400.0)))
                    .await;
                out.rows(
                    vec![Column::integer("SLEEP")],
                    &[vec![Some("0".into())]],
                    self.status(),
                )
                .await
            }
            Said::Refuse(why) => out.err(&Refused::new(NOT_ALLOWED, why)).await,
            Said::Empty(names) => {
                out.rows(
                    names.iter().map(|name| Column::text(*name)).collect(),
                    &[],
                    self.status(),
                )
                .await
            }
            Said::Sql(sql) => self.sql(&sql, values, out).await,
        }
    }

    async fn done(&self, out: &mut Out<'_>) -> io::Result<()> {
        out.ok(&Done::default(), self.status()).await
    }

    /// Statements of ours, in order.
    async fn plain(&self, statements: &[&str], out: &mut Out<'_>) -> io::Result<()> {
        for statement in statements {
            if let Err(refused) = self.patiently(statement).await {
                return out.err(&refused).await;
            }
        }
        self.done(out).await
    }

    /// Runs a statement without rows; waits for others who write.
    async fn patiently(&self, sql: &str) -> Result<(), Refused> {
        let until = self.rt.now() + LOCK_WAIT;
        loop {
            self.begin_stretch();
            match self.conn.execute_batch(sql) {
                Ok(()) => return Ok(()),
                Err(error) if errors::remedy(&error) == Remedy::Wait && self.rt.now() < until => {
                    self.wait().await
                }
                Err(error) => return Err(errors::refused(&error)),
            }
        }
    }

    async fn wait(&self) {
        let ms = 1 + self.rt.random() % 8;
        self.rt.sleep(Duration::from_millis(ms)).await;
    }

    fn begin_stretch(&self) {
        let until = self.anchor.elapsed() + STRETCH;
        self.until_ms.store(
            u64::try_from(until.as_millis()).unwrap_or(u64::MAX),
            Ordering::Relaxed,
        );
    }

    async fn sql(&mut self, sql: &str, values: &[Sqlite], out: &mut Out<'_>) -> io::Result<()> {
        if !self.autocommit
            && self.conn.is_autocommit()
            && let Err(refused) = self.patiently("BEGIN").await
        {
            return out.err(&refused).await;
        }
        let until = self.rt.now() + LOCK_WAIT;
        loop {
            self.begin_stretch();
            let error = match self.attempt(sql, values, out).await? {
                Ended::Answered => return Ok(()),
                Ended::Failed(error) => error,
            };
            match errors::remedy(&error) {
                Remedy::Wait if self.rt.now() < until => self.wait().await,
                Remedy::RollBack => {
                    self.conn.execute_batch("ROLLBACK").ok();
                    return out.err(&errors::refused(&error)).await;
                }
                Remedy::Wait | Remedy::Tell => return out.err(&errors::refused(&error)).await,
            }
        }
    }

    async fn attempt(&self, sql: &str, values: &[Sqlite], out: &mut Out<'_>) -> io::Result<Ended> {
        let mut statement = match self.conn.prepare_cached(sql) {
            Ok(statement) => statement,
            Err(error) => return Ok(Ended::Failed(error)),
        };
        if self.read_only.is_set() && !statement.readonly() {
            return Ok(Ended::Failed(errors::read_only()));
        }
        let names: Vec<(String, Option<String>)> = statement
            .columns()
            .iter()
            .map(|column| {
                (
                    column.name().to_owned(),
                    column.decl_type().map(str::to_owned),
                )
            })
            .collect();
        if names.is_empty() {
            return match statement.execute(params_from_iter(values)) {
                Ok(affected) => {
                    let done = self.did(sql, affected as u64, statement.readonly());
                    drop(statement);
                    out.ok(&done, self.status()).await?;
                    Ok(Ended::Answered)
                }
                Err(error) => Ok(Ended::Failed(error)),
            };
        }
        let mut found = match statement.query(params_from_iter(values)) {
            Ok(found) => found,
            Err(error) => return Ok(Ended::Failed(error)),
        };
        let mut first: Vec<Vec<Sqlite>> = Vec::new();
        let mut seen = vec![Seen::default(); names.len()];
        let mut complete = false;
        while first.len() < LOOKED_AT {
            match found
                .next()
                .and_then(|row| row.map(|row| copied(row, &mut seen)).transpose())
            {
                Ok(Some(row)) => first.push(row),
                Ok(None) => {
                    complete = true;
                    break;
                }
                Err(error) => return Ok(Ended::Failed(error)),
            }
        }
        let columns: Vec<Column> = names
            .iter()
            .zip(seen)
            .map(|((name, declared), seen)| rows::column(name, declared.as_deref(), seen))
            .collect();
        out.columns(columns.clone(), self.status());
        for row in first {
            let values: Vec<_> = row.iter().map(|value| rows::value(value.into())).collect();
            out.row(&values);
        }
        out.room().await?;
        while !complete {
            self.begin_stretch();
            match found.next() {
                Ok(Some(row)) => {
                    if let Err(refused) = send(row, &columns, out) {
                        out.err(&refused).await?;
                        return Ok(Ended::Answered);
                    }
                }
                Ok(None) => complete = true,
                Err(error) => {
                    // The client has seen rows: the error ends them.
                    out.err(&errors::refused(&error)).await?;
                    return Ok(Ended::Answered);
                }
            }
            out.room().await?;
        }
        drop(found);
        drop(statement);
        out.end(self.status()).await?;
        Ok(Ended::Answered)
    }

    /// Tells what a statement without rows did.
    fn did(&self, sql: &str, affected: u64, readonly: bool) -> Done {
        let first = sql
            .split_whitespace()
            .next()
            .unwrap_or_default()
            .to_ascii_uppercase();
        let changes = !readonly
            && matches!(
                first.as_str(),
                "INSERT" | "REPLACE" | "UPDATE" | "DELETE" | "WITH"
            );
        let affected = if changes { affected } else { 0 };
        let inserts = matches!(first.as_str(), "INSERT" | "REPLACE") && affected > 0;
        // MySQL tells the first of several keys, SQLite the last.
        let last = self.conn.last_insert_rowid();
        let insert_id = if inserts {
            last.saturating_sub(i64::try_from(affected).unwrap_or(1) - 1)
                .max(0)
        } else {
            0
        };
        if inserts {
            self.told.insert_id.store(insert_id, Ordering::Relaxed);
        }
        self.told.affected.store(
            i64::try_from(affected).unwrap_or(i64::MAX),
            Ordering::Relaxed,
        );
        Done {
            affected,
            insert_id: insert_id.cast_unsigned(),
            info: String::new(),
            warnings: 0,
        }
    }

    async fn set(&mut self, name: String, value: String) -> Result<(), Refused> {
        if name == "autocommit" {
            let on = matches!(value.to_ascii_lowercase().as_str(), "1" | "on" | "true");
            if on && !self.autocommit && !self.conn.is_autocommit() {
                self.patiently("COMMIT").await?;
            }
            self.autocommit = on;
            return Ok(());
        }
        // A client can only set what it may ask for; the rest is taken and forgotten.
        if door::hello::usual(&name).is_some() {
            self.variables.insert(name, value);
        }
        Ok(())
    }

    fn variable(&self, name: &str) -> Option<String> {
        Some(match name {
            "autocommit" => u8::from(self.autocommit).to_string(),
            "version" => self.version.clone(),
            "version_comment" => "SQLite inside of Millrace".into(),
            "sql_mode" => "NO_BACKSLASH_ESCAPES,STRICT_TRANS_TABLES".into(),
            "hostname" => "millrace".into(),
            other => self
                .variables
                .get(other)
                .cloned()
                .or_else(|| door::hello::usual(other).map(str::to_owned))?,
        })
    }

    fn show_variables(&self, pattern: Option<&str>) -> Vec<Vec<Option<String>>> {
        common::show_variables(pattern, |name| self.variable(name))
    }
}

fn copied(row: &Row<'_>, seen: &mut [Seen]) -> rusqlite::Result<Vec<Sqlite>> {
    let cell = |(at, seen): (usize, &mut Seen)| {
        let value = row.get_ref(at)?;
        seen.see(value);
        Ok(value.into())
    };
    seen.iter_mut().enumerate().map(cell).collect()
}

fn send(row: &Row<'_>, columns: &[Column], out: &mut Out<'_>) -> Result<(), Refused> {
    let mut values = Vec::with_capacity(columns.len());
    for (at, column) in columns.iter().enumerate() {
        let value: ValueRef<'_> = row.get_ref(at).map_err(|error| errors::refused(&error))?;
        if !rows::fits(column, value) {
            let words = format!(
                "column '{}' began with numbers, and other values follow: CAST it",
                column.name
            );
            return Err(Refused::new(
                Code {
                    number: 1366,
                    state: "HY000",
                },
                words,
            ));
        }
        values.push(rows::value(value));
    }
    out.row(&values);
    Ok(())
}

impl Answer for Session {
    fn status(&self) -> u16 {
        // SQLite knows no backslash in strings: clients that are told so double their quotes
        // instead.
        let mut flags = status::NO_BACKSLASH_ESCAPES;
        if self.autocommit {
            flags |= status::AUTOCOMMIT;
        }
        if !self.conn.is_autocommit() {
            flags |= status::IN_TRANS;
        }
        flags
    }

    async fn query(&mut self, sql: &[u8], out: &mut Out<'_>) -> io::Result<()> {
        self.execute(sql, &[], out).await
    }

    async fn prepare(&mut self, sql: &[u8]) -> Result<Prepared, Refused> {
        let Said::Sql(sql) = dialect::parse(door::text(sql)?) else {
            return Ok(Prepared::default());
        };
        let statement = self
            .conn
            .prepare_cached(&sql)
            .map_err(|error| errors::refused(&error))?;
        let params = u16::try_from(statement.parameter_count()).map_err(|_| {
            Refused::new(
                Code {
                    number: 1390,
                    state: "HY000",
                },
                "Prepared statement contains too many placeholders",
            )
        })?;
        let columns = statement.columns();
        let columns = columns
            .iter()
            .map(|column| rows::column(column.name(), column.decl_type(), Seen::default()))
            .collect();
        Ok(Prepared { params, columns })
    }

    async fn execute(
        &mut self,
        sql: &[u8],
        values: &[Value<'_>],
        out: &mut Out<'_>,
    ) -> io::Result<()> {
        let sql = match door::text(sql) {
            Ok(sql) => sql,
            Err(refused) => return out.err(&refused).await,
        };
        let values: Vec<_> = values.iter().map(rows::parameter).collect();
        self.say(dialect::parse(sql), &values, out).await
    }

    fn use_schema(&mut self, schema: &str) -> Result<(), Refused> {
        let known = SCHEMAS
            .iter()
            .any(|known| known.eq_ignore_ascii_case(schema));
        if !known {
            return Err(Refused::new(
                UNKNOWN_DATABASE,
                format!("Unknown database '{schema}'"),
            ));
        }
        self.told.use_schema(schema);
        Ok(())
    }

    fn fields(&mut self, table: &str) -> Result<Vec<Column>, Refused> {
        let sql = format!("SELECT * FROM \"{}\"", table.replace('"', "\"\""));
        let statement = self
            .conn
            .prepare(&sql)
            .map_err(|error| errors::refused(&error))?;
        let columns = statement.columns();
        Ok(columns
            .iter()
            .map(|column| {
                rows::column(column.name(), column.decl_type(), Seen::default()).of("main", table)
            })
            .collect())
    }

    fn reset(&mut self) {
        if !self.conn.is_autocommit() {
            self.conn.execute_batch("ROLLBACK").ok();
        }
        self.autocommit = true;
        self.variables.clear();
    }

    fn statistics(&self) -> String {
        format!("Uptime: {}  Threads: 1", self.anchor.elapsed().as_secs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_only_prepared_sets_anything_or_reaches_for_other_files() {
        let folder =
            std::env::temp_dir().join(format!("millrace-sqlite-authority-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let conn = open(&folder.join("db")).unwrap();
        conn.execute_batch(
            "CREATE TABLE t (a); INSERT INTO t VALUES (1); ALTER TABLE t ADD COLUMN b NOT NULL DEFAULT 1 CHECK (b > 0)",
        )
        .unwrap();
        let other = folder.join("other");
        for text in [
            "EXPLAIN PRAGMA foreign_keys=0".to_owned(),
            "SELECT 1; PRAGMA foreign_keys=0".to_owned(),
            "EXPLAIN PRAGMA journal_mode=DELETE".to_owned(),
            "PRAGMA hard_heap_limit=1".to_owned(),
            format!("VACUUM/**/INTO '{}'", other.display()),
            format!("/**/ATTACH '{}' AS x", other.display()),
            format!("ATTACH '{}' || '' AS x", other.display()),
        ] {
            assert!(
                conn.prepare(&text)
                    .and_then(|mut prepared| prepared.execute([]))
                    .is_err(),
                "{text}"
            );
            assert!(!other.exists(), "{text}");
        }
        assert!(
            conn.pragma_query_value(None, "page_size", |row| row.get::<_, i64>(0))
                .unwrap()
                > 0
        );
        conn.execute_batch(
            "VACUUM; CREATE VIRTUAL TABLE words USING fts5(a); INSERT INTO words VALUES ('b')",
        )
        .unwrap();
        conn.prepare("SELECT * FROM words WHERE words MATCH 'b'")
            .unwrap()
            .query([])
            .unwrap()
            .next()
            .unwrap()
            .unwrap();
        let keys: i64 = conn
            .query_row("SELECT * FROM pragma_table_info('t')", [], |row| row.get(0))
            .unwrap();
        assert_eq!(keys, 0);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
