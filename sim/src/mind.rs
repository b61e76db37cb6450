//! What a fake server keeps of a connection, and the small language in which it answers.
//!
//! ```text
//! SELECT 'tag' FROM few                    one to three rows of (tag, connection, server)
//! SELECT 'tag' FROM red.few                the same, where there is such a schema
//! SELECT 'tag' FROM slow                   the same, later
//! SELECT SQL_CALC_FOUND_ROWS 'tag' FROM few LIMIT 1
//! SELECT 'tag' FROM big LIMIT 500          so many rows, each with the tag and some bytes
//! SELECT 'tag' FROM state [FOR UPDATE]     one row: what this connection has set
//! SELECT 'tag' FROM log WHERE owner='c1' [FOR UPDATE]   one row: what this client has in the log, as far as it is seen here
//! SELECT 'cached' FROM red.log, green.log, blue.log WHERE owner='c1'   the same
//! INSERT INTO log VALUES ('tag')           one tag, in the log from the commit on
//! INSERT INTO log (tag, number) VALUES (?, ?)   prepared: a line for each row
//! SELECT ?, ?, ?, ? FROM echo              prepared: the tag and what was bound, and the schema it was prepared in; with a cursor
//!                                          so many rows of it as the tag says
//! BEGIN, START TRANSACTION READ ONLY, COMMIT, ROLLBACK, SET ..., USE
//! SAVEPOINT name, ROLLBACK TO name, RELEASE SAVEPOINT name
//! PREPARE name FROM 'text', EXECUTE name USING @a, …, DEALLOCATE PREPARE name, where a text is one of
//!   SELECT ?, ? FROM named                 one row: what was given, connection, server, and the schema it was prepared in
//!   SELECT 'tag', ? FROM named             the same
//!   INSERT INTO log VALUES (?)
//! XA START 'xid', XA END, XA PREPARE, XA COMMIT 'xid' [ONE PHASE], XA ROLLBACK
//! CALL assume('tag')                       sets a role, of which nobody tells; SELECT CURRENT_ROLE() does
//! ```

mod lines;
mod naming;
mod xa;

pub(crate) use naming::{NAMED_INSERT, no_statement};

use crate::belongings::{Answer, Belongings, Ground, value};
use sql::set::{Access, Isolation, Scope, Setting, Value};
use std::collections::{BTreeMap, BTreeSet};
use xa::Xa;

/// The names of the columns that [`Mind::report`] fills.
pub(crate) const STATE_COLUMNS: [&str; 10] = [
    "schema",
    "names",
    "autocommit",
    "transaction",
    "isolation",
    "sql_mode",
    "time_zone",
    "access",
    "role",
    "level",
];
/// The schemas that exist.
pub(crate) const SCHEMAS: [&str; 3] = ["red", "green", "blue"];
/// The collation of who says nothing of it: latin1_swedish_ci.
pub(crate) const SERVERS_CHARSET: u16 = 8;
/// The role of who has none.
pub(crate) const NO_ROLE: &str = "NONE";
/// The text of a statement that can be prepared.
pub(crate) const ECHO: &str = "SELECT ?, ?, ?, ? FROM echo";

/// The text of the other one.
pub(crate) const INSERT: &str = "INSERT INTO log (tag, number) VALUES (?, ?)";
/// Content of the columns that somebody has added to the table `echo`.
pub(crate) const ADDED: &str = "added";
/// An error of the server.
#[derive(Debug)]
pub(crate) struct Complaint(pub(crate) u16, pub(crate) String);

/// Answer to a statement.
#[derive(Debug)]
pub(crate) enum Said {
    Ok,
    Schema(String),
    /// `found`: what FOUND_ROWS() is, if not as many.
    Rows {
        tag: String,
        rows: u64,
        found: Option<u64>,
        large: bool,
    },
    State {
        tag: String,
    },
    /// Lines of the log, in one text.
    Lines {
        tag: String,
        lines: String,
    },
    /// The row of a statement that was prepared by name, and its schema.
    Named {
        values: Vec<Option<String>>,
        schema: String,
    },
    Answer(Answer),
}

/// Rows of a cursor that are left to be fetched.
#[derive(Debug)]
pub(crate) struct Cursor {
    pub(crate) values: Vec<Option<String>>,
    pub(crate) left: u32,
}

/// How many rows a cursor has for this tag.
pub(crate) fn rows_of_cursor(tag: &str) -> u32 {
    tag.bytes().map(u32::from).sum::<u32>() % 7
}

/// Returns what a transaction is, as [`STATE_COLUMNS`] have it.
pub(crate) fn level(isolation: &str, access: &str) -> String {
    format!("{isolation}, {access}")
}

const fn access(read_only: bool) -> &'static str {
    if read_only { "READ ONLY" } else { "READ WRITE" }
}

/// One connection's state.
#[derive(Debug)]
pub(crate) struct Mind {
    pub(crate) schema: String,
    names: (String, String),
    pub(crate) autocommit: bool,
    pub(crate) in_transaction: bool,
    isolation: Isolation,
    read_only: bool,
    /// Of the next transaction only: isolation and whether it only reads.
    next: Option<(Isolation, bool)>,
    /// Isolation of the open transaction, and whether it only reads.
    now: (Isolation, bool),
    /// The open transaction said that it only reads.
    only_reads: bool,
    /// How much of the log it sees, once it has looked.
    moment: Option<usize>,
    role: String,
    variables: BTreeMap<String, String>,
    /// Tags inserted by the open transaction.
    pending: Vec<String>,
    /// By name, oldest first: how many of these there were.
    savepoints: Vec<(String, usize)>,
    prepared: BTreeMap<u32, String>,
    /// Those of them that are [`INSERT`].
    inserts: BTreeSet<u32>,
    /// Of these, and of names, those that were executed.
    executed: BTreeSet<String>,
    /// Of executions, by statement.
    pub(crate) cursors: BTreeMap<u32, Cursor>,
    last_prepared: u32,
    /// By name: text and schema.
    named: BTreeMap<String, (String, String)>,
    /// The XA transaction that is bound to it.
    xa: Option<Xa>,
    /// A prepared one was, when it was reset.
    spoiled: bool,
    pub(crate) has: Belongings,
    /// Whether the connection tells what programs change.
    tracks: bool,
    /// A new password is wanted before anything else.
    pub(crate) sandbox: bool,
}

fn names_of(charset: &str, collation: Option<&str>) -> Result<(String, String), Complaint> {
    let unknown = || Complaint(1115, format!("Unknown character set: '{charset}'"));
    let default = wire::charset::default_of(charset).ok_or_else(unknown)?;
    let chosen = match collation {
        None => default,
        Some(name) => wire::charset::by_name(name)
            .filter(|c| c.charset == default.charset)
            .ok_or_else(|| {
                Complaint(
                    1253,
                    format!("COLLATION '{name}' is not valid for CHARACTER SET '{charset}'"),
                )
            })?,
    };
    Ok((chosen.charset.to_owned(), chosen.name.to_owned()))
}

/// Nobody knows that schema here.
pub(crate) fn no_schema(name: &str) -> Complaint {
    Complaint(1049, format!("Unknown database '{name}'"))
}

/// The text between the first two quotes.
fn quoted(sql: &str) -> Result<String, Complaint> {
    sql.split('\'')
        .nth(1)
        .map(str::to_owned)
        .ok_or_else(|| syntax(sql))
}

fn syntax(sql: &str) -> Complaint {
    Complaint(
        1064,
        format!("You have an error in your SQL syntax near '{sql}'"),
    )
}

impl Mind {
    /// After a login.
    pub(crate) fn new(schema: Option<&str>, collation: u16) -> Self {
        let collation = wire::charset::by_id(collation)
            .or_else(|| wire::charset::by_id(SERVERS_CHARSET))
            .expect("latin1 is in the table");
        Self {
            schema: schema.unwrap_or("").to_owned(),
            names: (collation.charset.to_owned(), collation.name.to_owned()),
            autocommit: true,
            in_transaction: false,
            isolation: Isolation::RepeatableRead,
            read_only: false,
            next: None,
            now: (Isolation::RepeatableRead, false),
            only_reads: false,
            moment: None,
            role: NO_ROLE.to_owned(),
            variables: BTreeMap::new(),
            pending: Vec::new(),
            savepoints: Vec::new(),
            prepared: BTreeMap::new(),
            inserts: BTreeSet::new(),
            executed: BTreeSet::new(),
            cursors: BTreeMap::new(),
            last_prepared: 0,
            named: BTreeMap::new(),
            xa: None,
            spoiled: false,
            has: Belongings::default(),
            tracks: false,
            sandbox: false,
        }
    }

    /// COM_RESET_CONNECTION: the server's defaults, which are not those of the login. The schema
    /// stays, and the role.
    pub(crate) fn reset(&mut self) {
        *self = Self {
            schema: std::mem::take(&mut self.schema),
            role: std::mem::take(&mut self.role),
            spoiled: self.is_spoiled(),
            last_prepared: self.last_prepared,
            ..Self::new(None, SERVERS_CHARSET)
        };
    }

    /// COM_CHANGE_USER.
    pub(crate) fn log_in(&mut self, schema: Option<&str>, collation: u16) {
        *self = Self {
            spoiled: self.is_spoiled(),
            last_prepared: self.last_prepared,
            ..Self::new(schema, collation)
        };
    }

    /// Returns what [`STATE_COLUMNS`] are here.
    pub(crate) fn report(&self) -> [String; 10] {
        let variable = |name: &str| {
            self.variables
                .get(name)
                .map_or_else(|| "'default'".to_owned(), Clone::clone)
        };
        [
            self.schema.clone(),
            format!("{}/{}", self.names.0, self.names.1),
            u8::from(self.autocommit).to_string(),
            u8::from(self.in_transaction).to_string(),
            self.isolation.name().to_owned(),
            variable("sql_mode"),
            variable("time_zone"),
            access(self.read_only).to_owned(),
            self.role.clone(),
            level(self.level().0.name(), access(self.level().1)),
        ]
    }

    /// Returns what the open transaction is, or the next one will be: isolation, and whether it
    /// only reads.
    fn level(&self) -> (Isolation, bool) {
        if self.in_transaction {
            self.now
        } else {
            self.next.unwrap_or((self.isolation, self.read_only))
        }
    }

    fn begin(&mut self) {
        self.now = self.level();
        (self.in_transaction, self.next) = (true, None);
        (self.only_reads, self.moment) = (false, None);
    }

    /// A statement uses tables: it is a transaction, or the first of one.
    fn use_tables(&mut self) {
        if !self.in_transaction {
            if self.autocommit {
                self.next = None
            } else {
                self.begin()
            }
        }
    }

    /// Runs a statement of connection `me`. What it commits goes into the log.
    pub(crate) fn query(
        &mut self,
        sql: &str,
        me: u32,
        ground: &mut Ground,
    ) -> Result<Said, Complaint> {
        self.has.begin(sql);
        let said = self.statement(sql, me, ground);
        match &said {
            Err(complaint) => self.has.fail(complaint),
            Ok(Said::Answer(answer)) if answer.columns == 0 => {
                self.has.row_count = i64::try_from(answer.affected).unwrap_or(0)
            }
            Ok(Said::Ok | Said::Schema(_)) => self.has.row_count = 0,
            Ok(_) => self.has.row_count = -1,
        }
        match &said {
            Ok(Said::Rows { rows, found, .. }) => self.has.found = Some(found.unwrap_or(*rows)),
            Ok(Said::State { .. } | Said::Named { .. } | Said::Lines { .. }) => {
                self.has.found = Some(1)
            }
            Ok(Said::Answer(answer)) if answer.columns > 0 => {
                self.has.found = Some(answer.rows.len() as u64)
            }
            _ => {}
        }
        said
    }

    fn statement(&mut self, sql: &str, me: u32, ground: &mut Ground) -> Result<Said, Complaint> {
        if sql.starts_with("XA ") {
            return self.xa(sql, me, ground);
        }
        self.may_use_tables(sql)?;
        self.may_write(sql)?;
        let words: Vec<&str> = sql.split_whitespace().collect();
        match words.as_slice() {
            ["BEGIN"] | ["START", "TRANSACTION"] => {
                if self.in_transaction {
                    self.commit(&mut ground.log);
                }
                self.savepoints.clear();
                self.begin();
                Ok(Said::Ok)
            }
            ["START", "TRANSACTION", "READ", "ONLY"] => {
                if self.in_transaction {
                    self.commit(&mut ground.log);
                }
                self.savepoints.clear();
                self.begin_to_read();
                Ok(Said::Ok)
            }
            ["SELECT", _, "FROM", "log", "WHERE", ..] | ["SELECT", _, "FROM", "red.log,", ..] => {
                self.lines(sql, ground)
            }
            ["COMMIT"] => {
                self.commit(&mut ground.log);
                Ok(Said::Ok)
            }
            ["ROLLBACK"] => {
                self.roll_back();
                Ok(Said::Ok)
            }
            ["SAVEPOINT", name] => {
                // Where each statement commits, it lives no longer than that.
                if self.in_transaction || !self.autocommit {
                    self.savepoints.retain(|(known, _)| known != name);
                    self.savepoints
                        .push(((*name).to_owned(), self.pending.len()));
                }
                Ok(Said::Ok)
            }
            ["ROLLBACK", "TO", name] => {
                let at = self.savepoint(name)?;
                let (_, pending) = self.savepoints[at];
                self.savepoints.truncate(at + 1);
                self.pending.truncate(pending);
                Ok(Said::Ok)
            }
            ["RELEASE", "SAVEPOINT", name] => {
                let at = self.savepoint(name)?;
                self.savepoints.truncate(at);
                Ok(Said::Ok)
            }
            ["USE", name] => self.use_schema(name.trim_matches('`'), ground),
            ["SET", ..] => self.set(sql, &mut ground.log),
            ["INSERT", "INTO", "log", "VALUES", _] => {
                self.insert(quoted(sql)?, &mut ground.log);
                Ok(Said::Answer(Answer {
                    affected: 1,
                    ..Answer::default()
                }))
            }
            ["SELECT", _, "FROM", "state", ..] => Ok(Said::State { tag: quoted(sql)? }),
            [
                "SELECT",
                _,
                "FROM",
                table @ ("few" | "slow" | "red.few" | "green.few" | "blue.few"),
                ..,
            ] => {
                if let Some((schema, _)) = table.split_once('.') {
                    ground.knows_schema(schema)?;
                }
                self.use_tables();
                let tag = quoted(sql)?;
                Ok(Said::Rows {
                    rows: 1 + tag.len() as u64 % 3,
                    tag,
                    found: None,
                    large: false,
                })
            }
            [
                "SELECT",
                "SQL_CALC_FOUND_ROWS",
                _,
                "FROM",
                "few",
                "LIMIT",
                "1",
            ] => {
                self.use_tables();
                let tag = quoted(sql)?;
                Ok(Said::Rows {
                    rows: 1,
                    found: Some(1 + tag.len() as u64 % 3),
                    tag,
                    large: false,
                })
            }
            ["SELECT", _, "FROM", "big", "LIMIT", rows] => {
                self.use_tables();
                Ok(Said::Rows {
                    tag: quoted(sql)?,
                    rows: rows.parse().map_err(|_| syntax(sql))?,
                    found: None,
                    large: true,
                })
            }
            ["LOCK", "TABLES", ..] => {
                self.commit(&mut ground.log);
                self.belonging(sql, me, ground)
            }
            ["PREPARE", name, "FROM", ..] => self.name(name, sql),
            ["EXECUTE", name, given @ ..] => self.execute_by_name(name, given, &mut ground.log),
            ["DEALLOCATE", "PREPARE", name] => match self.named.remove(name.trim_matches('`')) {
                Some(_) => Ok(Said::Ok),
                None => Err(no_statement(name, "DEALLOCATE PREPARE")),
            },
            ["CALL", program] if program.starts_with("assume(") => {
                "assumed".clone_into(&mut self.role);
                Ok(Said::Answer(Answer {
                    affected: 1,
                    ..Answer::default()
                }))
            }
            ["SELECT", "s.*,", ..] => Ok(Said::Answer(self.has.left(self.role == NO_ROLE))),
            ["SELECT", "CURRENT_ROLE()"] => {
                let rows = vec![vec![Some(self.role.clone())]];
                Ok(Said::Answer(Answer {
                    columns: 1,
                    rows,
                    ..Answer::default()
                }))
            }
            _ => self.belonging(sql, me, ground),
        }
    }

    fn belonging(&mut self, sql: &str, me: u32, ground: &mut Ground) -> Result<Said, Complaint> {
        let variables = &self.variables;
        let variable = |name: &str| match name {
            "sql_mode" | "time_zone" => Some(variables.get(name).map_or_else(
                || "default".to_owned(),
                |value| value.trim_matches('\'').to_owned(),
            )),
            "session_track_system_variables" => Some("time_zone,autocommit".to_owned()),
            "session_track_schema" => Some("1".to_owned()),
            "session_track_state_change" => Some("0".to_owned()),
            "session_track_transaction_info" => Some("OFF".to_owned()),
            _ => None,
        };
        let answer = self
            .has
            .say(ground, me, sql, variable)
            .unwrap_or_else(|| Err(syntax(sql)))?;
        if let Some((name, value)) = &answer.changed {
            self.variables
                .insert((*name).to_owned(), format!("'{value}'"));
        }
        Ok(Said::Answer(answer))
    }

    /// Whether it tells what programs change.
    pub(crate) const fn tells_changes(&self) -> bool {
        self.tracks
    }

    /// Names what the connection has now that the next client must not see.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        let fresh = Self::new(None, SERVERS_CHARSET);
        let set = self.report()[4..8] != fresh.report()[4..8];
        [
            ("a cursor", !self.cursors.is_empty()),
            ("a transaction", self.in_transaction),
            ("autocommit off", !self.autocommit),
            ("variables", set),
            ("a statement by name", !self.named.is_empty()),
            ("an XA transaction", self.xa.is_some()),
            ("a role", self.role != fresh.role),
        ]
        .into_iter()
        .filter_map(|(name, has)| has.then_some(name))
        .chain(self.has.names())
    }

    /// USE and COM_INIT_DB.
    pub(crate) fn use_schema(&mut self, name: &str, ground: &Ground) -> Result<Said, Complaint> {
        ground.knows_schema(name)?;
        name.clone_into(&mut self.schema);
        Ok(Said::Schema(name.to_owned()))
    }

    /// One line more, in the log from the commit on.
    pub(crate) fn insert(&mut self, line: String, log: &mut Vec<String>) {
        self.insert_all(vec![line], log);
    }

    /// So many lines more, by one statement.
    pub(crate) fn insert_all(&mut self, lines: Vec<String>, log: &mut Vec<String>) {
        self.pending.extend(lines);
        self.use_tables();
        if !self.in_transaction {
            self.commit(log);
        }
    }

    fn savepoint(&self, name: &str) -> Result<usize, Complaint> {
        let at = self.savepoints.iter().position(|(known, _)| known == name);
        at.ok_or_else(|| Complaint(1305, format!("SAVEPOINT {name} does not exist")))
    }

    fn commit(&mut self, log: &mut Vec<String>) {
        log.append(&mut self.pending);
        self.savepoints.clear();
        (self.in_transaction, self.next) = (false, None);
    }

    fn roll_back(&mut self) {
        self.pending.clear();
        self.savepoints.clear();
        (self.in_transaction, self.next) = (false, None);
    }

    fn set(&mut self, sql: &str, log: &mut Vec<String>) -> Result<Said, Complaint> {
        let settings = sql::set::parse(sql.as_bytes()).map_err(|_| syntax(sql))?;
        for setting in settings {
            match setting {
                Setting::Names { charset, collate } => {
                    self.names =
                        names_of(charset.as_deref().unwrap_or("latin1"), collate.as_deref())?;
                }
                Setting::Transaction {
                    scope: Scope::Session,
                    isolation,
                    access,
                } => {
                    self.isolation = isolation.unwrap_or(self.isolation);
                    self.read_only =
                        access.map_or(self.read_only, |access| access == Access::ReadOnly);
                }
                Setting::Transaction {
                    scope: Scope::NextTransaction,
                    isolation,
                    access,
                } => {
                    if self.in_transaction {
                        let words = "Transaction characteristics can't be changed while a transaction is in progress";
                        return Err(Complaint(1568, words.to_owned()));
                    }
                    let (before, reads) = self.level();
                    self.next = Some((
                        isolation.unwrap_or(before),
                        access.map_or(reads, |access| access == Access::ReadOnly),
                    ));
                }
                Setting::Role(words) => {
                    let words = String::from_utf8_lossy(words);
                    let words = words.trim();
                    self.role = if words == "DEFAULT" { NO_ROLE } else { words }.to_owned();
                }
                Setting::Variable(one) if one.scope == Scope::Session => {
                    let value = match one.value {
                        Value::Default => None,
                        Value::Literal(text) => Some(String::from_utf8_lossy(text).into_owned()),
                        Value::Expression(text) => Some(String::from_utf8_lossy(text).into_owned()),
                    };
                    match (one.name.as_str(), value) {
                        ("autocommit", value) => {
                            let on = !matches!(value.as_deref(), Some("0" | "OFF" | "off"));
                            if on && !self.autocommit {
                                self.commit(log);
                            }
                            self.autocommit = on;
                        }
                        ("transaction_isolation", value) => {
                            self.isolation = match value
                                .as_deref()
                                .map(|v| v.trim_matches('\'').to_ascii_uppercase())
                                .as_deref()
                            {
                                None | Some("REPEATABLE-READ") => Isolation::RepeatableRead,
                                Some("READ-COMMITTED") => Isolation::ReadCommitted,
                                Some("READ-UNCOMMITTED") => Isolation::ReadUncommitted,
                                Some("SERIALIZABLE") => Isolation::Serializable,
                                Some(other) => {
                                    return Err(Complaint(
                                        1231,
                                        format!("transaction_isolation can't be '{other}'"),
                                    ));
                                }
                            }
                        }
                        ("transaction_read_only", value) => {
                            self.read_only = matches!(value.as_deref(), Some("1" | "ON" | "on"));
                        }
                        ("sql_mode" | "time_zone", Some(value)) => {
                            self.variables.insert(one.name, value);
                        }
                        ("sql_mode" | "time_zone", None) => {
                            self.variables.remove(&one.name);
                        }
                        ("session_track_system_variables", value) => {
                            self.tracks = value.is_some_and(|names| names.contains("sql_mode"))
                        }
                        (
                            "session_track_schema"
                            | "session_track_state_change"
                            | "session_track_transaction_info",
                            _,
                        ) => {}
                        // Of init_connect.
                        ("div_precision_increment", _) => {}
                        ("last_insert_id", value) => {
                            self.has.insert_id = value.and_then(|id| id.parse().ok()).unwrap_or(0)
                        }
                        (name, _) => {
                            return Err(Complaint(
                                1193,
                                format!("Unknown system variable '{name}'"),
                            ));
                        }
                    }
                }
                Setting::Variable(one) if one.scope == Scope::User => {
                    let text = match one.value {
                        Value::Default => return Err(syntax(sql)),
                        Value::Literal(text) | Value::Expression(text) => {
                            String::from_utf8_lossy(text).into_owned()
                        }
                    };
                    let value = value(&text, &self.has.user);
                    self.has.user.insert(one.name, value);
                }
                _ => return Err(syntax(sql)),
            }
        }
        Ok(Said::Ok)
    }

    /// COM_STMT_PREPARE: its id. The statement remembers the schema that it was prepared in, as
    /// MySQL does.
    pub(crate) fn prepare(&mut self, sql: &str) -> Result<u32, Complaint> {
        if sql != ECHO && sql != INSERT {
            return Err(syntax(sql));
        }
        self.last_prepared += 1;
        if sql == INSERT {
            self.inserts.insert(self.last_prepared);
        }
        self.prepared
            .insert(self.last_prepared, self.schema.clone());
        Ok(self.last_prepared)
    }

    /// Whether it is [`INSERT`].
    pub(crate) fn inserts(&self, id: u32) -> bool {
        self.inserts.contains(&id)
    }

    /// Whether a statement was executed since it was prepared; from now on it was.
    pub(crate) fn executes(&mut self, which: &str) -> bool {
        !self.executed.insert(which.to_owned())
    }

    /// Forgets a statement, which is of no use any more until it is prepared anew.
    pub(crate) fn forget(&mut self, which: &str) {
        self.executed.remove(which);
        match which.parse() {
            Ok(id) => self.close(id),
            Err(_) => drop(self.named.remove(which)),
        }
    }

    /// The schema in which a statement was prepared.
    pub(crate) fn prepared_in(&self, id: u32) -> Result<&str, Complaint> {
        let schema = self.prepared.get(&id).map(String::as_str);
        schema.ok_or_else(|| {
            Complaint(
                1243,
                format!("Unknown prepared statement handler ({id}) given to EXECUTE"),
            )
        })
    }

    pub(crate) fn close(&mut self, id: u32) {
        self.prepared.remove(&id);
        self.inserts.remove(&id);
        self.executed.remove(&id.to_string());
        self.cursors.remove(&id);
    }
}
