//! A session of another process: facts that go there, and the session that is made of them.
//!
//! docs/features/upgrade.md

use crate::command::prepared::ClientStatement;
use crate::core::Seat;
use crate::known::reading::Reading;
use crate::session::remembered::LastGtid;
use crate::session::{Session, insert_id, remembered};
use backend::{Names, State, UserValue};
use bridge::{Counter, Moved};
use net::Secret;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How long a client may take to read its last answer before it goes to another process.
const FLUSHES: Duration = Duration::from_secs(1);

/// Bytes of the texts of statements that go along.
const STATEMENTS_MAX: usize = 4 << 20;

/// A statement that the client has prepared.
#[derive(Serialize, Deserialize)]
struct Statement {
    id: u32,
    sql: Vec<u8>,
    schema: String,
    asked: Option<Vec<u8>>,
    params: u16,
    columns: u16,
    types: Option<Vec<u8>>,
}

/// Everything that is known of a session that holds nothing. Another version may have written it: see
/// [`bridge::MOVED_FORMAT`].
#[derive(Serialize, Deserialize)]
pub(crate) struct Facts {
    pub(crate) user: String,
    pub(crate) secret: Password,
    pub(crate) nonce: wire::auth::Nonce,
    pub(crate) caps: wire::caps::Caps,
    pub(crate) collation: u16,
    pub(crate) attributes: Vec<(Vec<u8>, Vec<u8>)>,
    pub(crate) client: (String, u16),
    pub(crate) local: (String, u16),
    pub(crate) schema: String,
    names: Charset,
    autocommit: bool,
    variables: Vec<(String, String)>,
    user_variables: Vec<(String, UserVariable)>,
    reading: u16,
    next_flag_in: Option<u32>,
    has_written: bool,
    refused_changes: u8,
    statements: Vec<Statement>,
    last_statement_id: u32,
    row_count: i64,
    found_rows: Option<u32>,
    found_by_mariadb: Option<bool>,
    insert_id: u64,
    last_gtid: Option<String>,
    drawn_at: u32,
    numbered: bool,
    asks_servers_for_warnings: bool,
}

#[derive(Serialize, Deserialize)]
pub(crate) enum Password {
    None,
    Clear(String),
    NativeStage1([u8; 20]),
}

#[derive(Serialize, Deserialize)]
enum Charset {
    Collation(u16),
    Written(String),
    Unknown,
}

#[derive(Serialize, Deserialize)]
struct UserVariable {
    literal: String,
    names: Option<Charset>,
    null: bool,
}

impl From<&Names> for Charset {
    fn from(names: &Names) -> Self {
        match names {
            Names::Collation(id) => Self::Collation(*id),
            Names::Written(words) => Self::Written(words.to_string()),
            Names::Unknown => Self::Unknown,
        }
    }
}

impl From<Charset> for Names {
    fn from(charset: Charset) -> Self {
        match charset {
            Charset::Collation(id) => Self::Collation(id),
            Charset::Written(words) => Self::Written(words.into()),
            Charset::Unknown => Self::Unknown,
        }
    }
}

impl Session {
    /// Why it cannot be said to another process all that it is, if so. It has to hold nothing,
    /// neither here nor on a server, and its bytes have to be nobody's but its own.
    fn stays_because(&self) -> Option<&'static str> {
        let remembered = &self.remembered;
        let reasons = [
            (!self.held.is_empty(), "it keeps a connection to a server"),
            (self.global.is_some(), "its transaction has begun"),
            (
                !self.takes_its_statements_along(),
                "it has prepared statements that mean what they meant",
            ),
            (self.client.is_tls(), "it is encrypted"),
            (
                self.is_relayed(),
                "it has logged in at a server, which nobody could do again for it",
            ),
            (self.client.is_packed(), "it is compressed"),
            (self.through.is_some(), "its user is fast_forward"),
            (self.scripts.is_some(), "scripts are in its way"),
            (
                !remembered.written.is_empty(),
                "its reads must see what it wrote",
            ),
            (
                remembered.warnings.borrow().is_some() || !remembered.has_refused_nothing(),
                "it may ask for warnings",
            ),
            (
                remembered.last_gtid.borrow().known().is_none(),
                "nobody knows its @@last_gtid",
            ),
            (
                !self.cached.has_nothing() || self.sent.is_some(),
                "it is at work",
            ),
        ];
        let is_so = |reason: &&(bool, _)| reason.0;
        reasons.iter().find(is_so).map(|(_, why)| *why)
    }

    /// Whether what it has prepared can be prepared anew elsewhere, and would be the same.
    fn takes_its_statements_along(&self) -> bool {
        let lexing = self.lexing();
        let bytes: usize = self
            .statements
            .iter()
            .map(|(_, one)| one.prepared().bytes())
            .sum();
        self.statements.names.is_none()
            && bytes <= STATEMENTS_MAX
            && self
                .statements
                .iter()
                .all(|(_, one)| one.is_plain(lexing, &self.state))
    }

    fn facts(&self) -> Facts {
        let remembered = &self.remembered;
        let said = |literal: &UserValue| UserVariable {
            literal: literal.literal.to_string(),
            names: literal.names.as_ref().map(Charset::from),
            null: literal.null,
        };
        let (variables, user_variables) = (self.state.variables(), self.state.user_variables());
        Facts {
            user: self.user.username.to_string(),
            secret: match &self.secret {
                Secret::None => Password::None,
                Secret::Clear(password) => Password::Clear(password.clone()),
                Secret::NativeStage1(hash) => Password::NativeStage1(*hash),
                // It stays here.
                Secret::Relayed => Password::None,
            },
            nonce: self.nonce,
            caps: self.caps,
            collation: self.collation,
            attributes: self
                .attributes
                .iter()
                .map(|(name, value)| (name.to_vec(), value.to_vec()))
                .collect(),
            client: self.entry.client.clone(),
            local: (self.local.to_string(), self.local_port),
            schema: self.state.schema.to_string(),
            names: (&self.state.names).into(),
            autocommit: self.state.autocommit,
            variables: variables
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
            user_variables: user_variables
                .map(|(name, value)| (name.to_owned(), said(value)))
                .collect(),
            reading: self.reading.bits(),
            next_flag_in: self.next_flag_in,
            has_written: self.wrote.is_some(),
            refused_changes: self.refused_changes,
            statements: self.statements.iter().map(facts_of).collect(),
            last_statement_id: self.statements.last_id(),
            row_count: remembered.row_count.get(),
            found_rows: self.found_rows(),
            found_by_mariadb: remembered.of_mariadb.get(),
            insert_id: self.known_insert_id(),
            last_gtid: remembered.last_gtid.borrow().known().map(str::to_owned),
            drawn_at: remembered.drawn_at.get(),
            numbered: remembered.numbered.get(),
            asks_servers_for_warnings: self.entry.asks_servers_for_warnings.get(),
        }
    }

    /// Whether another process takes it now, where one takes over. Its last answer has been sent then.
    pub(crate) async fn goes_elsewhere(&self) -> bool {
        if self.core.takes_sessions().is_none() || self.stays_because().is_some() {
            return false;
        }
        let flushed = self.core.rt.timeout(FLUSHES, self.client.socket().flush());
        flushed.await.is_ok() && self.client.socket().may_part()
    }

    /// Goes to the process that takes over. Whether it is gone; else it can only be ended.
    pub(crate) async fn leave_for_another(&mut self) -> bool {
        let Some(take) = self.core.takes_sessions() else {
            return false;
        };
        let Ok(facts) = serde_json::to_string(&self.facts()) else {
            return false;
        };
        let Ok((handed, rest)) = self.client.part_with_rest().await else {
            return true;
        };
        let Some(socket) = handed.into_fd() else {
            return true;
        };
        let session = self.entry.id;
        let moved = Moved {
            session,
            facts,
            rest,
            socket,
        };
        // It is counted there from now on.
        self.seats = [Seat(None), Seat(None)];
        // Else the process has ended that took them, and the session ends with it.
        if take(moved).is_ok() {
            self.core.tally.up(Counter::SessionsMoved);
        }
        true
    }

    /// A statement that it has prepared in the other process.
    fn takes(&mut self, facts: Statement) {
        let epoch = self.core.epoch();
        let mut state = self.state.clone();
        state.schema = facts.schema.into();
        let most = crate::reach::prepared::most_remembered(&epoch.snapshot.variables);
        let known = &self.core.statements;
        let prepared = known.intern(&self.user_name, &state, &facts.sql, most);
        prepared.params.set(facts.params);
        prepared.columns.set(facts.columns);
        let asked = facts.asked.map(Vec::into_boxed_slice);
        let lexing = self.lexing();
        let mut statement =
            ClientStatement::new(&prepared, lexing, facts.params, asked, None, None);
        if let Some(types) = facts.types {
            statement.remember(types);
        }
        self.statements.add(facts.id, statement);
        self.core.tally.up(Counter::StmtClientActiveTotal);
    }

    /// Makes the session what it was in the other process.
    pub(crate) fn is_as_it_was(&mut self, facts: Facts) {
        let mut state = State::new(&facts.schema, facts.collation);
        state.set_names(facts.names.into());
        state.autocommit = facts.autocommit;
        for (name, value) in &facts.variables {
            state.set(name, value);
        }
        for (name, value) in facts.user_variables {
            let mut known = UserValue::new(&value.literal, value.names.map(Names::from));
            known.null = value.null;
            state.set_user(&name, known);
        }
        self.state = state;
        self.reading = Reading::of_bits(facts.reading);
        self.next_flag_in = facts.next_flag_in;
        self.wrote = facts.has_written.then(|| self.core.rt.now());
        self.refused_changes = facts.refused_changes;
        self.statements.follows(facts.last_statement_id);
        for statement in facts.statements {
            self.takes(statement);
        }
        let remembered = &self.remembered;
        remembered.counts_by_itself(facts.row_count);
        remembered
            .found_rows
            .set(remembered::rows(facts.found_rows));
        remembered.of_mariadb.set(facts.found_by_mariadb);
        remembered.insert_id.replace(insert_id::of(facts.insert_id));
        remembered.last_gtid.replace(match facts.last_gtid {
            Some(gtid) if gtid.is_empty() => LastGtid::Nothing,
            Some(gtid) => LastGtid::Is(gtid.into()),
            None => LastGtid::Unknown,
        });
        remembered.drawn_at.set(facts.drawn_at);
        remembered.numbered.set(facts.numbered);
        self.entry
            .asks_servers_for_warnings
            .set(facts.asks_servers_for_warnings);
        self.show_who();
    }
}

fn facts_of((id, statement): (u32, &ClientStatement)) -> Statement {
    let prepared = statement.prepared();
    Statement {
        id,
        sql: prepared.sql.to_vec(),
        schema: prepared.schema.to_string(),
        asked: statement.asked().map(<[u8]>::to_vec),
        params: statement.behind(),
        columns: statement.columns,
        types: statement.types().map(<[u8]>::to_vec),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Facts as a build of 1 December 2026 has written them.
    const WRITTEN: &str = include_str!("facts-2026-12-01.json");

    /// Whoever changes a name, or adds a fact without a default, loses all sessions of that build.
    #[test]
    fn facts_of_an_older_version_are_read_and_those_of_a_newer_one_too() {
        let older: Facts = serde_json::from_str(WRITTEN).unwrap();
        let names: Vec<_> = older.variables.iter().map(|(name, _)| &**name).collect();
        assert_eq!((&*older.user, names), ("app", vec!["time_zone"]));
        let newer = WRITTEN.replacen('{', r#"{"mood": {"is": "good"}, "#, 1);
        let newer: Facts = serde_json::from_str(&newer).unwrap();
        assert_eq!(newer.user_variables.len(), 1);
    }
}
