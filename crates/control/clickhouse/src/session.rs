//! One client: what MySQL's protocol shows of a session, and its statements on their way to ClickHouse.

mod asking;

use crate::dialect::{self, Told};
use crate::errors;
use crate::facts::{self, Fact};
use crate::load::{self, Load};
use crate::query::{Asker, Running};
use crate::roster::{Seat, Stop};
use crate::session::asking::{json_is_its_own, watched};
use crate::zone;
use crate::{Force, Port, hints, literals};
use door::dialect as common;
use door::dialect::Said;
use door::{Answer, Done, Out, Prepared, Refused, Who};
use http::Http;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;
use std::time::Duration;
use wire::errors::{
    Code, EMPTY_QUERY, NOT_ALLOWED, UNKNOWN_SYSTEM_VARIABLE, WRONG_VALUE_FOR_VARIABLE,
};
use wire::execute::Value;
use wire::resultset::Column;
use wire::status;

/// A statement is looked at by its first bytes: an INSERT may be long.
const LOOKED_AT: usize = 64 << 10;
/// A client sleeps no longer.
const A_DAY: Duration = Duration::from_secs(86_400);
/// Databases that MySQL has and ClickHouse need not: they stand for `clickhouse-database`.
const MYSQLS_OWN: &[&str] = &[
    "",
    "information_schema",
    "mysql",
    "performance_schema",
    "sys",
];
/// Variables of MySQL that sessions set and that change nothing here, besides those with a usual value.
const TAKEN: &[&str] = &[
    "big_tables",
    "group_concat_max_len",
    "innodb_lock_wait_timeout",
    "innodb_strict_mode",
    "lc_messages",
    "lc_time_names",
    "lock_wait_timeout",
    "long_query_time",
    "max_heap_table_size",
    "max_join_size",
    "max_sort_length",
    "optimizer_search_depth",
    "optimizer_switch",
    "session_track_gtids",
    "session_track_schema",
    "session_track_state_change",
    "session_track_system_variables",
    "sort_buffer_size",
    "sql_big_selects",
    "sql_log_bin",
    "sql_notes",
    "sql_quote_show_create",
    "sql_warnings",
    "timestamp",
    "tmp_table_size",
    "collation_results",
];
/// Warning of a ROLLBACK that undoes nothing: ER_WARNING_NOT_COMPLETE_ROLLBACK.
const NOT_UNDONE: (&str, &str) = (
    "1196",
    "Some non-transactional changed tables couldn't be rolled back",
);

/// One client.
pub(crate) struct Session {
    port: Rc<Port>,
    seat: Seat,
    user: String,
    id: u32,
    is_monitor: bool,
    database: String,
    variables: BTreeMap<String, String>,
    /// Of ClickHouse.
    settings: BTreeMap<String, String>,
    http: Option<Http>,
    autocommit: bool,
    in_transaction: bool,
    /// Something was written since it began.
    wrote: bool,
    /// For SHOW WARNINGS.
    warned: bool,
    /// Of ClickHouse itself, once it was asked.
    zone: RefCell<Option<String>>,
    /// A result has had JSON, and came as text when it was asked for that.
    json_as_text: bool,
}

/// How a question ended.
enum Ended {
    /// Its answer is sent.
    Answered,
    /// The client is to be told.
    Refused(Refused),
    /// Nothing is sent yet: there is JSON in it, which should come as text.
    WantsText,
}

impl Session {
    pub(crate) fn begin(port: Rc<Port>, who: Who) -> Result<Self, Refused> {
        let force = port.server.force();
        let is_monitor = force.is_monitor(&who.user);
        let max = force
            .users
            .named(&who.user)
            .map_or(100, |user| user.max_connections);
        let seat = port.server.roster.enter(who.id, &who.user, max)?;
        Ok(Self {
            port,
            seat,
            id: who.id,
            is_monitor,
            user: who.user,
            database: who.schema.unwrap_or_default(),
            variables: BTreeMap::new(),
            settings: BTreeMap::new(),
            http: None,
            autocommit: true,
            in_transaction: false,
            wrote: false,
            warned: false,
            zone: RefCell::default(),
            json_as_text: false,
        })
    }

    async fn done(&self, out: &mut Out<'_>) -> io::Result<()> {
        out.ok(&Done::default(), self.status()).await
    }

    async fn say(&mut self, sql: &[u8], out: &mut Out<'_>) -> io::Result<()> {
        let text = String::from_utf8_lossy(&sql[..sql.len().min(LOOKED_AT)]).into_owned();
        if let Some(asked) = facts::asked(&text) {
            let (labels, facts): (Vec<_>, Vec<_>) = asked.into_iter().unzip();
            let row = facts.iter().map(|fact| self.fact(fact)).collect();
            return self.one_row(labels, row, out).await;
        }
        let said = common::parse(&text);
        let asks_for_warnings = matches!(said, Said::Empty(["Level", ..]));
        self.warned &= asks_for_warnings || matches!(said, Said::Variables(_));
        match said {
            Said::Blank => out.err(&Refused::new(EMPTY_QUERY, "Query was empty")).await,
            Said::Accept => self.done(out).await,
            Said::Refuse(why) => out.err(&Refused::new(NOT_ALLOWED, why)).await,
            Said::Set(values) => {
                for (name, value) in values {
                    if let Err(refused) = self.set(name, value).await {
                        return out.err(&refused).await;
                    }
                }
                self.done(out).await
            }
            Said::Begin => {
                (self.in_transaction, self.wrote) = (true, false);
                self.done(out).await
            }
            Said::Commit => {
                (self.in_transaction, self.wrote) = (false, false);
                self.done(out).await
            }
            Said::Rollback => self.roll_back(out).await,
            Said::Use(name) => match self.use_schema(&name) {
                Ok(()) => self.done(out).await,
                Err(refused) => out.err(&refused).await,
            },
            Said::Variables(asked) => {
                let row = asked.iter().map(|asked| self.variable(&asked.name));
                let row = row.collect();
                let labels = asked.into_iter().map(|asked| asked.label).collect();
                self.one_row(labels, row, out).await
            }
            Said::ShowVariables(pattern) => {
                let found = common::show_variables(pattern.as_deref(), |name| self.variable(name));
                let columns = ["Variable_name", "Value"].map(Column::text).to_vec();
                out.rows(columns, &found, self.status()).await
            }
            Said::Empty(names) => {
                let warned = asks_for_warnings && self.warned;
                self.nothing(names, warned, out).await
            }
            Said::Sleep(seconds) => self.sleep(seconds, out).await,
            Said::Sql(_) => match self.with_facts(sql, &text) {
                Some(plain) => self.sql(plain.as_bytes(), &plain, out).await,
                None => self.sql(sql, &text, out).await,
            },
        }
    }

    /// A read with the facts of the session that it asks for as literals; none if it asks for none.
    fn with_facts(&self, sql: &[u8], text: &str) -> Option<String> {
        if !is_read(sql) || sql.len() > LOOKED_AT || str::from_utf8(sql).is_err() {
            return None;
        }
        facts::replaced(text, |fact| match (fact, self.fact(fact)) {
            (Fact::Version | Fact::User | Fact::Database, Some(text)) => literals::text(&text),
            (_, Some(value)) if value.parse::<i64>().is_ok() => value,
            (_, Some(value)) => literals::text(&value),
            (_, None) => "NULL".to_owned(),
        })
    }

    async fn one_row(
        &self,
        labels: Vec<String>,
        row: Vec<Option<String>>,
        out: &mut Out<'_>,
    ) -> io::Result<()> {
        let columns = labels.into_iter().map(Column::text).collect();
        out.rows(columns, &[row], self.status()).await
    }

    /// No rows of these columns, or the only warning that there can be.
    async fn nothing(&self, names: &[&str], warned: bool, out: &mut Out<'_>) -> io::Result<()> {
        let (number, words) = NOT_UNDONE;
        let warning = ["Warning", number, words].map(|text| Some(text.to_owned()));
        let warning = [warning.to_vec()];
        let rows = if warned { &warning[..] } else { &[] };
        let columns = names.iter().map(|name| Column::text(*name)).collect();
        out.rows(columns, rows, self.status()).await
    }

    async fn sleep(&mut self, seconds: f64, out: &mut Out<'_>) -> io::Result<()> {
        let long = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        let slept = self.port.rt.sleep(long.min(A_DAY));
        match watched(&self.seat, out, slept).await? {
            Ok(()) => {
                let columns = vec![Column::text("SLEEP")];
                out.rows(columns, &[vec![Some("0".to_owned())]], self.status())
                    .await
            }
            Err(interrupted) => out.err(&interrupted).await,
        }
    }

    /// A fact of the session, as MySQL writes it.
    fn fact(&self, fact: &Fact) -> Option<String> {
        let force = self.port.server.force();
        match fact {
            Fact::Variable(name) => self.variable(name),
            Fact::Version => self.variable("version"),
            Fact::Database => Some(self.database(&force)),
            Fact::User => Some(format!("{}@%", self.user)),
            Fact::Connection => Some(self.id.to_string()),
        }
    }

    /// There is nothing that ClickHouse would undo.
    async fn roll_back(&mut self, out: &mut Out<'_>) -> io::Result<()> {
        let is_late = std::mem::take(&mut self.wrote);
        self.in_transaction = false;
        self.warned = is_late;
        let done = Done {
            warnings: u16::from(is_late),
            ..Done::default()
        };
        out.ok(&done, self.status()).await
    }

    async fn set(&mut self, name: String, value: String) -> Result<(), Refused> {
        match name.as_str() {
            "autocommit" => {
                self.autocommit =
                    matches!(value.to_ascii_lowercase().as_str(), "1" | "on" | "true");
                return Ok(());
            }
            "time_zone" if !value.eq_ignore_ascii_case("SYSTEM") && !zone::is_known(&value) => {
                let code = Code {
                    number: 1298,
                    state: "HY000",
                };
                return Err(Refused::new(
                    code,
                    format!("Unknown or incorrect time zone: '{value}'"),
                ));
            }
            name if name.starts_with('@') => {
                self.variables.insert(name.to_ascii_lowercase(), value);
                return Ok(());
            }
            "max_execution_time" | "max_statement_time" => {
                if value.parse::<f64>().is_err() {
                    let words = format!("Variable '{name}' can't be set to the value of '{value}'");
                    return Err(Refused::new(WRONG_VALUE_FOR_VARIABLE, words));
                }
                self.variables.insert(name, value);
                return Ok(());
            }
            _ => {}
        }
        if is_mysqls(&name) {
            self.variables.insert(name, value);
            return Ok(());
        }
        let unknown = || {
            Refused::new(
                UNKNOWN_SYSTEM_VARIABLE,
                format!("Unknown system variable '{name}'"),
            )
        };
        if self.is_monitor {
            return Err(unknown());
        }
        let force = self.port.server.force();
        let asker = self.asker(&force);
        let sql = format!(
            "SELECT count() FROM system.settings WHERE name = {}",
            literals::text(&name)
        );
        let found = asker.little(&self.port.rt, "TabSeparated", &sql).await?;
        if found != [["1"]] {
            return Err(unknown());
        }
        self.settings.insert(name, value);
        Ok(())
    }

    fn variable(&self, name: &str) -> Option<String> {
        let force = self.port.server.force();
        let v = &force.variables;
        Some(match name {
            "autocommit" => u8::from(self.autocommit).to_string(),
            "version" => v.mysql_server_version.to_string(),
            "version_comment" => "ClickHouse behind Millrace".into(),
            "read_only"
            | "super_read_only"
            | "innodb_read_only"
            | "transaction_read_only"
            | "tx_read_only" => u8::from(v.clickhouse_read_only).to_string(),
            "hostname" => "millrace".into(),
            "pseudo_thread_id" => self.id.to_string(),
            "warning_count" => u8::from(self.warned).to_string(),
            other => {
                let own = self
                    .variables
                    .get(other)
                    .or_else(|| self.settings.get(other));
                own.cloned()
                    .or_else(|| door::hello::usual(other).map(str::to_owned))?
            }
        })
    }

    /// The database that counts.
    fn database(&self, force: &Force) -> String {
        if !MYSQLS_OWN.contains(&self.database.as_str()) {
            return self.database.clone();
        }
        let own = force
            .users
            .named(&self.user)
            .map_or("", |user| &user.settings.database);
        if own.is_empty() {
            force.variables.clickhouse_database.to_string()
        } else {
            own.to_owned()
        }
    }

    fn asker(&self, force: &Force) -> Asker {
        let v = &force.variables;
        let user = force.users.named(&self.user);
        let text = |text: &str| text.to_owned();
        let mut settings = vec![(
            text("max_block_size"),
            v.clickhouse_max_block_rows.to_string(),
        )];
        if let Some(user) = user {
            settings.extend(user.wanted.iter().cloned());
        }
        let within = |name: &str, unit| seconds(self.variables.get(name)?, unit);
        let wanted =
            within("max_execution_time", 1000.0).or_else(|| within("max_statement_time", 1.0));
        settings.extend(wanted.map(|wanted| (text("max_execution_time"), wanted)));
        settings.extend(
            self.settings
                .iter()
                .map(|(name, value)| (name.clone(), value.clone())),
        );
        if v.clickhouse_read_only {
            settings.push((text("readonly"), text("2")));
        }
        let mut asker = Asker {
            database: self.database(force),
            settings,
            ..Asker::of_the_port(force)
        };
        if let Some(own) = user.filter(|user| !user.settings.clickhouse_user.is_empty()) {
            asker.user.clone_from(&own.settings.clickhouse_user);
            asker.password.clone_from(&own.settings.clickhouse_password);
        }
        self.limit(force, &mut asker);
        asker
    }

    /// As [`Session::asker`], with the settings that hints of the statement name.
    fn asker_for(&self, force: &Force, sql: &[u8]) -> Asker {
        let mut asker = self.asker(force);
        let text = String::from_utf8_lossy(&sql[..sql.len().min(LOOKED_AT)]);
        for (name, value) in hints::settings(&text) {
            let value = match name {
                "max_execution_time" => seconds(value, 1000.0),
                "max_statement_time" => seconds(value, 1.0),
                name if is_mysqls(name) => None,
                _ => Some(value.to_owned()),
            };
            let name = match name {
                "max_statement_time" => "max_execution_time",
                name => name,
            };
            let pair = value.map(|value| (name.to_owned(), value));
            // Nobody may say by a hint what the operator has forbidden.
            let at = asker
                .settings
                .iter()
                .position(|(name, _)| name == "readonly");
            let at = at.unwrap_or(asker.settings.len());
            asker.settings.splice(at..at, pair);
        }
        if self.json_as_text {
            asker.wants_json_as_text();
        }
        self.limit(force, &mut asker);
        asker
    }

    /// Keeps settings within what the user may have.
    fn limit(&self, force: &Force, asker: &mut Asker) {
        let Some(user) = force.users.named(&self.user) else {
            return;
        };
        asker.limit("max_execution_time", (user.settings.max_ms + 999) / 1000);
        asker.limit("max_result_rows", user.settings.max_rows);
    }

    async fn sql(&mut self, sql: &[u8], text: &str, out: &mut Out<'_>) -> io::Result<()> {
        if self.is_monitor {
            let words = "The account of the monitor may ping and read variables, no more";
            return out.err(&Refused::new(NOT_ALLOWED, words)).await;
        }
        let force = self.port.server.force();
        match load::parse(text) {
            None => {}
            Some(Err(why)) => return out.err(&Refused::new(NOT_ALLOWED, why)).await,
            Some(Ok(load)) => return self.load(&force, &load, out).await,
        }
        let told = dialect::told(text, &self.database(&force));
        let sql = match &told {
            Some(Told::Kill(id, is_query)) => {
                let stop = if *is_query {
                    Stop::Query
                } else {
                    Stop::Session
                };
                return match self.port.server.roster.kill(&self.user, *id, stop) {
                    Ok(()) => self.done(out).await,
                    Err(refused) => out.err(&refused).await,
                };
            }
            Some(Told::Sql(sql)) => sql.as_bytes(),
            None => &*literals::plain(sql.trim_ascii_end()),
        };
        let max = force
            .users
            .named(&self.user)
            .map_or(0, |user| user.settings.max_queries);
        let turn = self
            .port
            .server
            .roster
            .turn(&self.user, u64::try_from(max).unwrap_or_default());
        let ended = match turn {
            Ok(turn) => self.ask(&force, sql, turn, out).await?,
            Err(refused) => Ended::Refused(refused),
        };
        match ended {
            Ended::Answered => Ok(()),
            Ended::WantsText => out.err(&json_is_its_own()).await,
            Ended::Refused(refused) => out.err(&refused).await,
        }
    }

    /// A file of the client as one INSERT. It is read to its end, whatever becomes of it.
    async fn load(&mut self, force: &Force, load: &Load, out: &mut Out<'_>) -> io::Result<()> {
        if !out.file(&load.file).await? {
            let words = "The used command is not allowed: the client gives no files";
            return out.err(&Refused::new(NOT_ALLOWED, words)).await;
        }
        self.wrote = true;
        let mut asker = self.asker(force);
        let delimiter = load.delimiter.map(String::from);
        asker
            .settings
            .extend(delimiter.map(|sign| ("format_csv_delimiter".to_owned(), sign)));
        let mut running = Running::new(&self.port.rt, &asker);
        let mut http = match Http::open(&self.port.rt, &asker.place).await {
            Ok(mut http) => match asker.begin(&mut http, &running.id, &load.insert).await {
                Ok(()) => Ok(http),
                Err(lost) => Err(lost),
            },
            Err(lost) => Err(lost),
        };
        let (mut lines, mut sent) = (0, Ok(()));
        while let Some(piece) = out.piece().await? {
            let mut piece = &piece[..];
            while lines < load.skipped && !piece.is_empty() {
                let end = piece.iter().position(|byte| *byte == b'\n');
                lines += u64::from(end.is_some());
                piece = end.map_or(&[][..], |end| &piece[end + 1..]);
            }
            lines += piece.iter().filter(|byte| **byte == b'\n').count() as u64;
            if let (Ok(http), true) = (&mut http, sent.is_ok() && !piece.is_empty()) {
                sent = http.piece(piece).await;
            }
        }
        let ended = match http {
            Err(lost) => Err(errors::unreachable(&lost.0)),
            Ok(mut http) => {
                if sent.is_ok() {
                    sent = http.piece(&[]).await;
                }
                match asker.answer(&mut http, sent).await {
                    Ok(Ok(answer)) => Ok(answer),
                    Ok(Err(refused)) => Err(refused),
                    Err(lost) => Err(errors::lost(&lost.0)),
                }
            }
        };
        running.is_over();
        match ended {
            Ok(answer) => {
                let told = answer.header("x-clickhouse-summary").and_then(written);
                let done = Done {
                    affected: told.unwrap_or_else(|| lines.saturating_sub(load.skipped)),
                    ..Done::default()
                };
                out.ok(&done, self.status()).await
            }
            Err(refused) => out.err(&refused).await,
        }
    }

    /// A connection, and whether it may have been closed while it was idle.
    async fn connection(&mut self, asker: &Asker) -> Result<(Http, bool), Refused> {
        if let Some(http) = self.http.take().filter(|http| http.is_free(&asker.place)) {
            return Ok((http, true));
        }
        self.open(asker).await.map(|http| (http, false))
    }

    async fn open(&self, asker: &Asker) -> Result<Http, Refused> {
        let open = Http::open(&self.port.rt, &asker.place).await;
        let open = open.map_err(|lost| errors::unreachable(&lost.0));
        if let Err(refused) = &open {
            self.port.note(asker, Some(refused));
        }
        open
    }
}

/// Whether a session of MySQL has this variable.
fn is_mysqls(name: &str) -> bool {
    door::hello::usual(name).is_some() || TAKEN.contains(&name)
}

/// A limit of time in whole seconds, as ClickHouse has it. `unit`: parts of a second.
fn seconds(value: &str, unit: f64) -> Option<String> {
    let value: f64 = value.parse().ok()?;
    (value > 0.0).then(|| ((value / unit).ceil() as u64).to_string())
}

/// The first word of a statement says whether it answers rows and writes nothing.
fn is_read(sql: &[u8]) -> bool {
    let text = String::from_utf8_lossy(&sql[..sql.len().min(LOOKED_AT)]).into_owned();
    let bare = common::without_comments(&text);
    let word: String = bare
        .trim_start_matches('(')
        .chars()
        .take_while(char::is_ascii_alphabetic)
        .collect();
    let reads = [
        "SELECT", "WITH", "SHOW", "DESCRIBE", "DESC", "EXISTS", "EXPLAIN", "CHECK",
    ];
    reads.contains(&word.to_ascii_uppercase().as_str())
}

/// Rows that an INSERT wrote, as far as its text tells.
fn inserted(sql: &[u8]) -> u64 {
    let is_insert = sql
        .trim_ascii_start()
        .get(..6)
        .is_some_and(|word| word.eq_ignore_ascii_case(b"INSERT"));
    if is_insert { literals::rows(sql) } else { 0 }
}

/// `{"written_rows":"2", …}`.
fn written(summary: &str) -> Option<u64> {
    let (_, rest) = summary.split_once("\"written_rows\":\"")?;
    rest.split_once('"')?.0.parse().ok()
}

impl Answer for Session {
    fn status(&self) -> u16 {
        let mut flags = 0;
        if self.autocommit {
            flags |= status::AUTOCOMMIT;
        }
        if self.in_transaction {
            flags |= status::IN_TRANS;
        }
        flags
    }

    fn statements<'s>(&self, sql: &'s [u8]) -> Vec<&'s [u8]> {
        literals::statements(sql)
    }

    async fn query(&mut self, sql: &[u8], out: &mut Out<'_>) -> io::Result<()> {
        self.say(sql, out).await
    }

    async fn prepare(&mut self, sql: &[u8]) -> Result<Prepared, Refused> {
        let too_many = |_| {
            let code = Code {
                number: 1390,
                state: "HY000",
            };
            Refused::new(code, "Prepared statement contains too many placeholders")
        };
        let params = u16::try_from(literals::params(sql)).map_err(too_many)?;
        Ok(Prepared {
            params,
            columns: self.columns_ahead(sql, params).await,
        })
    }

    async fn execute(
        &mut self,
        sql: &[u8],
        values: &[Value<'_>],
        out: &mut Out<'_>,
    ) -> io::Result<()> {
        self.say(&literals::bound(sql, values), out).await
    }

    fn use_schema(&mut self, schema: &str) -> Result<(), Refused> {
        schema.clone_into(&mut self.database);
        Ok(())
    }

    fn fields(&mut self, table: &str) -> Result<Vec<Column>, Refused> {
        let words = format!("COM_FIELD_LIST is not answered here: ask SHOW COLUMNS FROM {table}");
        Err(Refused::new(NOT_ALLOWED, words))
    }

    fn reset(&mut self) {
        self.variables.clear();
        self.settings.clear();
        self.autocommit = true;
        (self.in_transaction, self.wrote, self.warned) = (false, false, false);
    }

    fn kill(&mut self, id: u32) -> Result<(), Refused> {
        self.port.server.roster.kill(&self.user, id, Stop::Session)
    }

    async fn ended(&mut self) {
        while self.seat.told.recv().await != Some(Stop::Session) {}
    }

    /// The monitor asks whether the server is there, and means ClickHouse.
    async fn ping(&mut self) -> io::Result<()> {
        if !self.is_monitor {
            return Ok(());
        }
        let asker = Asker::of_the_port(&self.port.server.force());
        let looked = self.port.look(&asker).await;
        looked.map_err(|_| io::ErrorKind::ConnectionAborted.into())
    }

    fn statistics(&self) -> String {
        "Uptime: 0  Threads: 1".into()
    }
}
