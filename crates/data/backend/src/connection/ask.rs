//! Asking a server what became of variables that were set by expressions: their values travel, not
//! the expressions.

use crate::connection::backend::{Backend, Idle, refusal};
use crate::connection::lease::Unread;
use crate::failure::BackendFailed;
use crate::session::hold::Hold;
use crate::session::state::{State, UserValue};
use crate::session::variables::{METADATA, characteristic, value_len_max};
use std::borrow::Cow;
use std::collections::BTreeSet;
use wire::packet;
use wire::response::{Expect, Follow, Outcome, Response};
use wire::rows::{Rows, Shape};
use wire::types::{Type, UNSIGNED_FLAG};

/// Of an answer to a question of ours, no more is kept.
const ANSWER_LEN_MAX: usize = 256 << 10;
/// Of warnings, no more is kept in a session.
const SHOWN_LEN_MAX: usize = 16 << 10;
/// MySQL and MariaDB: the variable is the server's, so a session has no value of it.
const ONLY_GLOBAL: u16 = 1238;

/// By KILL QUERY.
pub(crate) const INTERRUPTED: u16 = 1317;

/// The clock of a session: it goes on, or stands still where it was set.
const TIMESTAMP: &str = "timestamp";

/// End of a question that gets all of its rows, whatever the session wants of its own results.
pub(crate) const ALL_ROWS: &str = " LIMIT 18446744073709551615";

const COM_PING: u8 = 0x0E;

/// Warnings that a server remembers of its last statement.
#[derive(Debug, Clone)]
pub struct Shown {
    /// The answer to SHOW WARNINGS.
    pub rows: Rows,
    /// `@@warning_count`.
    pub all: u64,
    /// `@@error_count`.
    pub errors: u64,
}

/// Answer of a server to a question.
pub(crate) enum Answer {
    Rows(Rows),
    Refused(u16),
    TooLong,
}

impl Backend {
    /// Asks for the values that are not known; they become part of both states. What cannot be told
    /// keeps the connection.
    ///
    /// # Errors
    /// The connection broke.
    pub async fn read_back(&mut self, state: &mut State) -> Result<(), BackendFailed> {
        let mut unread = std::mem::take(&mut self.local.unread);
        self.holds.remove(Hold::Unread);
        if unread.session.remove(METADATA) {
            self.ask_whether_it_describes(state).await?;
        }
        if unread.is_empty() {
            return Ok(());
        }
        // Without their columns, nobody knows what values are. A server that knows of no such thing
        // describes, whatever its session has asked others for.
        let bare = self.lasting.ways.describes_on_demand && self.state.leaves_out_definitions();
        let bare = if bare {
            self.state.variable(METADATA).map(str::to_owned)
        } else {
            None
        };
        if bare.is_some() && !self.describe("FULL").await? {
            // It stays as it is, and nothing there can be told.
            self.holds.add(Hold::UnknownState);
            return Ok(());
        }
        self.read_values(&unread, state).await?;
        if let Some(value) = bare
            && !self.describe(&value).await?
        {
            // What serves the session next says it again.
            self.state.unset(METADATA);
        }
        Ok(())
    }

    /// Whether the definitions of columns are left out there, which an answer tells by itself but
    /// not for how long.
    async fn ask_whether_it_describes(&mut self, state: &mut State) -> Result<(), BackendFailed> {
        let said = self
            .ask_for_one(&format!("SELECT {}", system_name(METADATA)))
            .await?;
        let states = [state, &mut self.state];
        match said.as_deref() {
            Some("FULL") => states.into_iter().for_each(|s| s.unset(METADATA)),
            Some("NONE") => states.into_iter().for_each(|s| s.set(METADATA, "NONE")),
            _ => self.holds.add(Hold::UnknownState),
        }
        Ok(())
    }

    /// Whether the server has taken that. A KILL QUERY that was meant for a statement may hit it.
    async fn describe(&mut self, value: &str) -> Result<bool, BackendFailed> {
        let mut payload = Vec::new();
        wire::command::write_query(
            &mut payload,
            format!("SET {METADATA} = {value}").as_bytes(),
            self.hello.caps,
        );
        for _ in 0..2 {
            let response = self.command(&payload, Expect::Query).await?;
            match response.outcome() {
                Outcome::Err {
                    code: INTERRUPTED, ..
                } => {}
                outcome => return Ok(!matches!(outcome, Outcome::Err { .. })),
            }
        }
        Ok(false)
    }

    async fn read_values(
        &mut self,
        unread: &Unread,
        state: &mut State,
    ) -> Result<(), BackendFailed> {
        let questions = |unread: &Unread| {
            let session = unread.session.iter().map(|name| system_name(name));
            let user = unread.user.iter().map(|name| {
                let name = sql::literal::name(name);
                format!("@{name}, HEX(@{name}), COLLATION(@{name})")
            });
            format!(
                "SELECT {}",
                session.chain(user).collect::<Vec<_>>().join(", ")
            )
        };
        if let Answer::Rows(rows) = self.ask(&questions(unread)).await? {
            self.take_values(unread, &rows, state);
            return Ok(());
        }
        // One of them spoils the answer: each by itself.
        let session = unread.session.iter().map(|name| Unread {
            session: [name.clone()].into(),
            user: BTreeSet::new(),
        });
        let user = unread.user.iter().map(|name| Unread {
            session: BTreeSet::new(),
            user: [name.clone()].into(),
        });
        for one in session.chain(user).collect::<Vec<_>>() {
            match self.ask(&questions(&one)).await? {
                Answer::Rows(rows) => self.take_values(&one, &rows, state),
                Answer::Refused(ONLY_GLOBAL) => {}
                Answer::Refused(_) | Answer::TooLong => {
                    self.take_values(&one, &Rows::default(), state)
                }
            }
        }
        Ok(())
    }

    /// Has the server forget the warnings of whatever ran there. MariaDB does so for a statement
    /// that reads from a table only.
    ///
    /// # Errors
    /// The connection broke.
    pub async fn forget_warnings(&mut self) -> Result<(), BackendFailed> {
        #[cfg(debug_assertions)]
        if crate::planted::TELL_OTHERS.get() {
            return Ok(());
        }
        if let Answer::Rows(_) = self.ask("SELECT 1 FROM (SELECT 1) nothing").await? {
            (self.lasting.warnings_left, self.local.others_warnings) = (false, false);
        }
        Ok(())
    }

    /// Of a login with a collation that it does not know, a server makes its own default and says
    /// nothing: it is asked, since nothing else brings that about on another connection, nor on
    /// this one when it was reset (MariaDB goes back to the character set that some other client
    /// had before on the same thread).
    ///
    /// # Errors
    /// The connection broke.
    pub(crate) async fn ask_what_is_made_of(
        &mut self,
        collation: u16,
    ) -> Result<(), BackendFailed> {
        let Answer::Rows(rows) = self
            .ask("SELECT @@character_set_client, @@collation_connection")
            .await?
        else {
            return Ok(());
        };
        let plain = |cell: &Option<Vec<u8>>| {
            let name = String::from_utf8(cell.clone()?).ok()?;
            name.bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
                .then_some(name)
        };
        if let Some([charset, collated]) = rows.rows.first().map(Vec::as_slice)
            && let (Some(charset), Some(collated)) = (plain(charset), plain(collated))
        {
            let mut known = self.place.known.made_of.borrow_mut();
            known.retain(|(id, _)| *id != collation);
            known.push((
                collation,
                format!("NAMES {charset} COLLATE {collated}").into(),
            ));
        }
        Ok(())
    }

    /// Asks for `LAST_INSERT_ID()` there; `None` if the server does not say.
    ///
    /// # Errors
    /// The connection broke.
    pub async fn ask_insert_id(&mut self) -> Result<Option<u64>, BackendFailed> {
        let Answer::Rows(rows) = self.ask("SELECT LAST_INSERT_ID()").await? else {
            return Ok(None);
        };
        let cell = rows
            .rows
            .first()
            .and_then(|row| row.first())
            .and_then(|cell| cell.as_deref());
        self.lasting.insert_id =
            cell.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
        Ok(self.lasting.insert_id)
    }

    /// Asks for `LAST_INSERT_ID()` there, and for the AUTO_INCREMENT column of a table, if it has
    /// one that the user may see. Both names are ASCII letters, digits, `_`, `$` and `-`. `None` if
    /// the server does not say.
    ///
    /// # Errors
    /// The connection broke.
    pub async fn ask_generated(
        &mut self,
        schema: &str,
        table: &str,
    ) -> Result<Option<(u64, Option<String>)>, BackendFailed> {
        let question = format!(
            "SELECT LAST_INSERT_ID(), (SELECT MAX(COLUMN_NAME) FROM information_schema.COLUMNS \
             WHERE TABLE_SCHEMA = '{schema}' AND TABLE_NAME = '{table}' AND EXTRA LIKE '%auto_increment%')"
        );
        let Answer::Rows(rows) = self.ask(&question).await? else {
            return Ok(None);
        };
        let Some([last, column]) = rows.rows.first().map(Vec::as_slice) else {
            return Ok(None);
        };
        let text = |cell: &Option<Vec<u8>>| {
            let cell = cell.as_deref().map(without_zeros)?;
            String::from_utf8(cell).ok()
        };
        self.lasting.insert_id = text(last).and_then(|digits| digits.parse().ok());
        Ok(self.lasting.insert_id.map(|last| (last, text(column))))
    }

    /// Whether what stands in double quotes is a string there: ANSI_QUOTES is not in its
    /// `sql_mode`, nor a mode that implies it. Only MariaDB tells by its flags.
    ///
    /// # Errors
    /// The connection broke.
    pub async fn ask_quotes(&mut self) -> Result<bool, BackendFailed> {
        if !self.local.plain_quotes {
            let mode = self.ask_for_one("SELECT @@SESSION.sql_mode").await?;
            self.local.plain_quotes = mode.is_some_and(|mode| !mode.contains("ANSI"));
        }
        Ok(self.local.plain_quotes)
    }

    /// Whether there is something to ask with [`Backend::ask_locks`].
    #[must_use]
    pub fn doubts_locks(&self) -> bool {
        self.holds.has(Hold::UserLock)
            && self
                .local
                .owned
                .as_ref()
                .is_some_and(|owned| owned.question_for_locks().is_some())
    }

    /// Asks which of the locks are there that statements of the session may have taken or released.
    ///
    /// # Errors
    /// The connection broke.
    pub async fn ask_locks(&mut self) -> Result<(), BackendFailed> {
        let Some(question) = self
            .local
            .owned
            .as_ref()
            .and_then(|owned| owned.question_for_locks())
        else {
            return Ok(());
        };
        let answer = match self.ask(&question).await? {
            // A KILL that came late: it is still to be asked.
            Answer::Refused(1317) => return Ok(()),
            Answer::Rows(mut rows) => rows.rows.pop().map(|row| {
                row.into_iter()
                    .map(|cell| cell.map(|said| without_zeros(&said)))
                    .collect::<Vec<_>>()
            }),
            Answer::Refused(_) | Answer::TooLong => None,
        };
        if let Some(owned) = &mut self.local.owned {
            owned.learn_locks(&mut self.holds, answer.as_deref());
        }
        Ok(())
    }

    /// Asks for `FOUND_ROWS()` there, which the server no longer knows when it was asked; `None` if
    /// the server does not say.
    ///
    /// # Errors
    /// The connection broke.
    pub async fn ask_found_rows(&mut self) -> Result<Option<u64>, BackendFailed> {
        self.holds.remove(Hold::FoundRows);
        Ok(self
            .ask_for_one("SELECT FOUND_ROWS()")
            .await?
            .and_then(|said| said.parse().ok()))
    }

    /// Makes `LAST_INSERT_ID()` this.
    ///
    /// # Errors
    /// The server's own words when it refuses, or the connection broke.
    pub async fn tell_insert_id(&mut self, id: u64) -> Result<(), BackendFailed> {
        let mut payload = Vec::new();
        wire::command::write_query(
            &mut payload,
            format!("SET last_insert_id = {id}").as_bytes(),
            self.hello.caps,
        );
        let response = self.command(&payload, Expect::Query).await?;
        refusal(&response)?;
        self.lasting.insert_id = Some(id);
        Ok(())
    }

    /// Says a statement of ours that has no rows, and takes over what the answer says of the
    /// transaction.
    ///
    /// # Errors
    /// The server's own words when it refuses, or the connection broke.
    pub async fn tell(&mut self, text: &[u8]) -> Result<(), BackendFailed> {
        let mut payload = Vec::with_capacity(text.len() + 1);
        wire::command::write_query(&mut payload, text, self.hello.caps);
        let response = self.command(&payload, Expect::Query).await?;
        refusal(&response)?;
        self.holds.status(response.status());
        self.has_failed_unseen();
        Ok(())
    }

    fn take_values(&mut self, unread: &Unread, rows: &Rows, state: &mut State) {
        // Of values whose columns were not described nothing is known.
        let row = rows.rows.first().filter(|_| !rows.definitions.is_empty());
        let mut cells = rows.shapes.iter().zip(row.into_iter().flatten());
        for name in &unread.session {
            if name == TIMESTAMP {
                // Its value does not tell whether the clock was stopped there.
                cells.next();
                [&mut *state, &mut self.state]
                    .into_iter()
                    .for_each(|s| s.unset(name));
                self.holds.add(Hold::UnknownState);
                continue;
            }
            let literal = cells
                .next()
                .and_then(|(shape, value)| system_literal(*shape, value.as_deref()));
            let literal =
                literal.filter(|literal| literal.len() <= value_len_max(name, literal.as_bytes()));
            let place = literal.and_then(|literal| match characteristic(name, &literal) {
                Some(place) => place.ok(),
                None => Some((name.as_str(), literal)),
            });
            match place {
                Some((name, literal)) => [&mut *state, &mut self.state]
                    .into_iter()
                    .for_each(|s| s.set(name, &literal)),
                None => self.holds.add(Hold::UnknownState),
            }
        }
        for name in &unread.user {
            let (value, hex, collation) = (cells.next(), cells.next(), cells.next());
            let text = |cell: Option<(&Shape, &Option<Vec<u8>>)>| {
                cell.and_then(|(_, value)| value.clone())
                    .unwrap_or_default()
            };
            let value = value.and_then(|(shape, value)| {
                user_value(*shape, value.as_deref(), &text(hex), &text(collation))
            });
            let known = value.is_some_and(|value| {
                self.state.set_user(name, value.clone()) && state.set_user(name, value)
            });
            if !known {
                state.unset_user(name);
                self.state.unset_user(name);
                self.holds.add(Hold::UserVariable);
            }
        }
    }

    /// The only value of the answer to a question of ours, as text. All that is asked so is
    /// answered in ASCII.
    pub(crate) async fn ask_for_one(
        &mut self,
        question: &str,
    ) -> Result<Option<String>, BackendFailed> {
        let Answer::Rows(mut rows) = self.ask(question).await? else {
            return Ok(None);
        };
        let cell = rows
            .rows
            .first_mut()
            .and_then(|row| row.first_mut())
            .and_then(Option::take);
        Ok(cell.and_then(|value| String::from_utf8(without_zeros(&value)).ok()))
    }

    /// Asks what SHOW WARNINGS shows there, and how many there are of all and of errors, which may
    /// be more than it shows. `None` if it is too much, or the server does not say. With what the
    /// answer to SHOW WARNINGS says beside its rows.
    ///
    /// # Errors
    /// The connection broke.
    pub async fn ask_warnings(&mut self) -> Result<(Option<Shown>, Response), BackendFailed> {
        let warned = self.lease.warned;
        let (answer, response) = self.ask_and_hear("SHOW WARNINGS").await?;
        let Answer::Rows(rows) = answer else {
            return Ok((None, response));
        };
        if rows.shapes.len() != 3
            || rows
                .rows
                .iter()
                .flatten()
                .flatten()
                .map(Vec::len)
                .sum::<usize>()
                > SHOWN_LEN_MAX
        {
            return Ok((None, response));
        }
        let listed = rows.rows.len() as u64;
        let is_error = |row: &&Vec<Option<Vec<u8>>>| matches!(row.first(), Some(Some(level)) if without_zeros(level) == b"Error");
        let errors = rows.rows.iter().filter(is_error).count() as u64;
        let mut shown = Shown {
            rows,
            all: listed,
            errors,
        };
        // An answer that is no error has said how many there are; max_error_count may be lower.
        if warned.map(u64::from) != Some(listed) {
            if self.holds.has(Hold::FoundRows) {
                // Asked for them, it would forget how many rows it found.
                return Ok((None, response));
            }
            for (question, count) in [
                ("SHOW COUNT(*) WARNINGS", &mut shown.all),
                ("SHOW COUNT(*) ERRORS", &mut shown.errors),
            ] {
                match self
                    .ask_for_one(question)
                    .await?
                    .and_then(|said| said.parse().ok())
                {
                    Some(said) => *count = said,
                    None => return Ok((None, response)),
                }
            }
        }
        Ok((Some(shown), response))
    }

    /// A question of ours, and its whole answer.
    pub(crate) async fn ask(&mut self, question: &str) -> Result<Answer, BackendFailed> {
        let (answer, response) = self.ask_and_hear(question).await?;
        self.has_told(&response);
        Ok(answer)
    }

    async fn ask_and_hear(&mut self, question: &str) -> Result<(Answer, Response), BackendFailed> {
        if !question.starts_with("SHOW WARNINGS") {
            self.local.finder = None;
        }
        let limited = question.starts_with("SELECT ")
            && self.state.variable("sql_select_limit").is_some()
            && !question.ends_with(ALL_ROWS);
        // What the session wants of its own results is not for ours.
        let question = if limited {
            format!("{question} LIMIT {}", u64::MAX).into()
        } else {
            Cow::Borrowed(question)
        };
        let mut payload = Vec::with_capacity(question.len() + 1);
        wire::command::write_query(&mut payload, question.as_bytes(), self.hello.caps);
        let mut framed = Vec::with_capacity(payload.len() + packet::HEADER_LEN);
        packet::append(&mut framed, &mut 0, &payload);
        self.send(framed.into()).await?;
        let malformed = |what: wire::Malformed| BackendFailed::BrokeAfter(what.into());
        let mut response = Response::expect(Expect::Query, self.hello.caps)
            .to_packet(packet::last_seq(payload.len()));
        let mut answer = Vec::new();
        loop {
            let chunk = self.recv().await?;
            let end = response.follow(&chunk).map_err(malformed)?;
            if answer.len() <= ANSWER_LEN_MAX {
                answer.extend_from_slice(&chunk);
            }
            if let Follow::Ended { used } = end {
                self.ended(used, chunk.len());
                break;
            }
        }
        if response.is_status_known() {
            // An error says nothing of transactions.
            self.holds.status(response.status());
        }
        if matches!(response.outcome(), Outcome::Err { .. }) {
            // No session's.
            (self.lasting.warnings_left, self.local.others_warnings) = (true, true);
        }
        let answer = match response.outcome() {
            Outcome::Err { code, .. } => Answer::Refused(code),
            _ if answer.len() > ANSWER_LEN_MAX => Answer::TooLong,
            _ => match wire::rows::read(&answer, self.hello.caps) {
                Ok(rows) => Answer::Rows(rows),
                Err(what) => {
                    // Nobody knows what is set there.
                    self.idle = Idle::Doubtful;
                    return Err(malformed(what));
                }
            },
        };
        Ok((answer, response))
    }

    /// Whether the server is there, which keeps it from thinking that nobody is here.
    ///
    /// # Errors
    /// The connection broke, or the server says why it does not want it any more.
    pub async fn answers(&mut self) -> Result<(), BackendFailed> {
        let response = self.command(&[COM_PING], Expect::Simple).await?;
        refusal(&response)
    }
}

/// ASCII, whichever character set the session has asked for results in: in UTF-16, UTF-32 and UCS-2
/// there are zeros between the letters.
pub(crate) fn without_zeros(said: &[u8]) -> Vec<u8> {
    said.iter().copied().filter(|byte| *byte != 0).collect()
}

/// `@@SESSION.name`
fn system_name(name: &str) -> String {
    let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if plain {
        format!("@@SESSION.{name}")
    } else {
        format!("@@SESSION.{}", sql::literal::name(name))
    }
}

/// Returns the literal that sets a session variable to this value.
fn system_literal(shape: Shape, value: Option<&[u8]>) -> Option<String> {
    let Some(text) = value else {
        return Some("NULL".to_owned());
    };
    match shape.kind {
        Type::TINY
        | Type::SHORT
        | Type::INT24
        | Type::LONG
        | Type::LONGLONG
        | Type::DOUBLE
        | Type::NEWDECIMAL => number(text),
        _ => sql::literal::plain_string(text),
    }
}

fn number(text: &[u8]) -> Option<String> {
    sql::literal::is_number(text).then(|| String::from_utf8_lossy(text).into_owned())
}

/// Returns the value that sets a user variable to this one, of the same type.
fn user_value(
    shape: Shape,
    value: Option<&[u8]>,
    hex: &[u8],
    collation: &[u8],
) -> Option<UserValue> {
    if let Some(text) = value {
        return user_literal(shape, text, hex, collation)
            .map(|literal| UserValue::new(&literal, None));
    }
    let zero: &[u8] = match shape.kind {
        Type::DOUBLE => b"0e0",
        Type::NEWDECIMAL => b"0.0",
        _ => b"0",
    };
    // Nothing tells a NULL of binary strings from one without a type.
    let literal = user_literal(shape, zero, b"", collation).filter(|literal| literal != "X''");
    Some(literal.map_or_else(
        || UserValue::new("NULL", None),
        |literal| UserValue::null_like(&literal, None),
    ))
}

fn user_literal(shape: Shape, text: &[u8], hex: &[u8], collation: &[u8]) -> Option<String> {
    let unsigned = shape.flags & UNSIGNED_FLAG != 0;
    match shape.kind {
        Type::LONGLONG | Type::LONG if unsigned => {
            number(text).map(|text| format!("CAST({text} AS UNSIGNED)"))
        }
        Type::LONGLONG | Type::LONG => number(text),
        Type::NEWDECIMAL if !text.contains(&b'.') => number(text).map(|text| {
            format!(
                "CAST({text} AS DECIMAL({},0))",
                text.trim_start_matches('-').len().clamp(1, 65)
            )
        }),
        Type::NEWDECIMAL => number(text),
        Type::DOUBLE => number(text).map(|text| {
            if text.contains(['e', 'E']) {
                text
            } else {
                format!("{text}e0")
            }
        }),
        _ => sql::literal::hex_string(std::str::from_utf8(collation).ok()?, hex),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ISOLATION;

    fn user(kind: Type, flags: u16, value: Option<&str>) -> Option<String> {
        let hex: String = value
            .unwrap_or_default()
            .bytes()
            .map(|b| format!("{b:02X}"))
            .collect();
        let value = user_value(
            Shape {
                kind,
                flags,
                ..Shape::UNTOLD
            },
            value.map(str::as_bytes),
            hex.as_bytes(),
            b"utf8mb4_bin",
        )?;
        Some(format!(
            "{}{}",
            value.literal,
            if value.null { ", NULL" } else { "" }
        ))
    }

    #[test]
    fn a_user_variable_keeps_its_type() {
        for (kind, flags, value, wanted) in [
            (Type::LONGLONG, 0, Some("-5"), "-5"),
            (
                Type::LONGLONG,
                UNSIGNED_FLAG,
                Some("5"),
                "CAST(5 AS UNSIGNED)",
            ),
            (Type::LONGLONG, 0, None, "0, NULL"),
            (
                Type::LONGLONG,
                UNSIGNED_FLAG,
                None,
                "CAST(0 AS UNSIGNED), NULL",
            ),
            (Type::NEWDECIMAL, 0, None, "0.0, NULL"),
            (Type::DOUBLE, 0, None, "0e0, NULL"),
            (Type::NEWDECIMAL, 0, Some("1.50"), "1.50"),
            (
                Type::NEWDECIMAL,
                0,
                Some("-15"),
                "CAST(-15 AS DECIMAL(2,0))",
            ),
            (Type::DOUBLE, 0, Some("2.5"), "2.5e0"),
            (Type::DOUBLE, 0, Some("1e100"), "1e100"),
            (
                Type::LONG_BLOB,
                0,
                Some("x'"),
                "_utf8mb4 X'7827' COLLATE utf8mb4_bin",
            ),
            (
                Type::VAR_STRING,
                0,
                None,
                "_utf8mb4 X'' COLLATE utf8mb4_bin, NULL",
            ),
        ] {
            assert_eq!(user(kind, flags, value).as_deref(), Some(wanted));
        }
        assert_eq!(user(Type::LONGLONG, 0, Some("1; x")), None);
        let unset = user_value(
            Shape {
                kind: Type::VAR_STRING,
                ..Shape::UNTOLD
            },
            None,
            b"",
            b"binary",
        );
        assert_eq!(unset, Some(UserValue::new("NULL", None)));
    }

    #[test]
    fn a_session_variable_is_a_number_or_a_plain_string() {
        let literal = |kind, value: &str| {
            system_literal(
                Shape {
                    kind,
                    ..Shape::UNTOLD
                },
                Some(value.as_bytes()),
            )
        };
        assert_eq!(literal(Type::LONGLONG, "10").as_deref(), Some("10"));
        assert_eq!(
            literal(Type::VAR_STRING, "ANSI,x").as_deref(),
            Some("'ANSI,x'")
        );
        assert_eq!(literal(Type::VAR_STRING, "é"), None);
        assert_eq!(
            system_literal(
                Shape {
                    kind: Type::VAR_STRING,
                    ..Shape::UNTOLD
                },
                None
            )
            .as_deref(),
            Some("NULL")
        );
        assert_eq!(
            characteristic("tx_isolation", "'SERIALIZABLE'"),
            Some(Ok((ISOLATION, "ISOLATION LEVEL SERIALIZABLE".to_owned())))
        );
        assert_eq!(system_name("a.b"), "@@SESSION.`a.b`");
    }
}
