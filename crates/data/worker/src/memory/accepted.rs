//! SETs that a server has accepted before. One that comes again, in a session that has set the
//! same, is taken at its word: it is answered at once, and what it sets is brought to a connection
//! with the next statement that needs one. An application that connects for each request says the
//! same SETs each time.
//!
//! docs/decisions/0028-a-set-is-taken-at-its-word.md

use crate::command::job::{Job, What};
use crate::command::settings::{BOUND, leaves_texts};
use crate::command::trouble::{Ended, Failed};
use crate::known::answer;
use crate::known::by_state::{Known, STATE_LEN_MAX, TEXT_LEN_MAX};
use crate::known::reading::Reading;
use crate::memory::variables::is_unread;
use crate::session::Session;
use crate::session::remembered::{New, Sent};
use backend::{Backend, Hold, State};
use sql::Leaves;
use sql::set::{Assignment, Scope, Setting, Value};
use sql::words::{Kind, Words};
use std::time::Duration;
use wire::response::{Outcome, Response};

/// A SET that warns of more is not remembered.
const WARNINGS_MAX: u16 = 16;
/// An expression reads what the operator of a server may change for new sessions (SET GLOBAL).
const EXPRESSION_LASTS: Duration = Duration::from_secs(60);

/// Variables that an expression may read: each has one value for what a session has set.
const READ: [&str; 7] = [
    "sql_mode",
    "time_zone",
    "character_set_client",
    "character_set_connection",
    "character_set_results",
    "collation_connection",
    "optimizer_switch",
];
/// Functions that an expression may call: their value is that of their arguments.
const CALLED: [&str; 8] = [
    "CONCAT",
    "CONCAT_WS",
    "REPLACE",
    "IFNULL",
    "NULLIF",
    "TRIM",
    "UPPER",
    "LOWER",
];

impl Session {
    /// A server has answered what may be a SET: what will be to remember when all that it has set is
    /// known. `before`: what was set, and how texts were read.
    pub(crate) fn note_set(
        &mut self,
        backend: &Backend,
        job: &Job<'_>,
        (before, reading): (State, Reading),
        response: &Response,
    ) {
        let failed = matches!(response.outcome(), Outcome::Err { .. });
        let warned = response.warnings();
        if failed || warned > WARNINGS_MAX || !self.may_be_remembered(job) {
            return;
        }
        let Ok(settings) = sql::set::parse_in(job.text, self.escapes()) else {
            return;
        };
        if settings.is_empty() || !settings.iter().all(is_the_same_anywhere) {
            return;
        }
        let reads = settings.iter().any(|setting| {
            matches!(setting, Setting::Variable(one) if matches!(one.value, Value::Expression(_)))
        });
        let told = match backend.wish() {
            Some(wish) => wish.of(response.session_track()),
            None => response.session_track().to_vec(),
        };
        let new = New {
            before,
            reading,
            told: told.into_boxed_slice(),
            reads,
        };
        self.sent = Some(Box::new(Sent {
            new: Some(new),
            warned,
            warnings: None,
        }));
    }

    /// Whether variables were set there to what only the server knows, or a SET that is to be
    /// remembered has warned, and nothing else holds the connection.
    pub(crate) fn set_leaves_questions(&self, backend: &Backend) -> bool {
        backend.holds.is_only(Hold::Unread)
            || self.set_has_warned() && backend.holds.are_only(&[Hold::Diagnostics, Hold::Unread])
    }

    /// Asks them. The client has its answer.
    pub(crate) async fn ask_of_set(
        &mut self,
        backend: &mut Backend,
        limit_ms: u64,
    ) -> Result<(), Failed> {
        if self.set_has_warned() {
            self.ask_warnings_of_set(backend, limit_ms).await?;
        }
        if backend.holds.is_only(Hold::Unread) {
            self.read_back(backend, limit_ms, true).await?;
        }
        Ok(())
    }

    /// Asks for the warnings of a SET that is to be remembered: whoever says it again is shown the
    /// same.
    async fn ask_warnings_of_set(
        &mut self,
        backend: &mut Backend,
        limit_ms: u64,
    ) -> Result<(), Failed> {
        let Some(mut sent) = self.sent.take() else {
            return Ok(());
        };
        self.ask_warnings(backend, limit_ms).await?;
        // Too many of them stay where they are, and the SET is not remembered.
        if let Some(kept) = self.take_kept_warnings() {
            sent.warnings = Some(kept);
            self.sent = Some(sent);
        }
        Ok(())
    }

    /// Whether a SET that is to be remembered has warned, and of what is still to be asked.
    fn set_has_warned(&self) -> bool {
        self.sent.as_ref().is_some_and(|sent| sent.warned > 0)
    }

    /// A statement is over, and with it the warnings of the one before; a SET leaves its own.
    pub(crate) fn settle_past(&mut self, job: &Job<'_>) {
        self.settle_warnings(job);
        self.remember_set(job);
    }

    fn remember_set(&mut self, job: &Job<'_>) {
        let Some(sent) = self.sent.take() else { return };
        let Sent {
            new,
            warned,
            warnings,
        } = *sent;
        if let Some(kept) = &warnings {
            self.keep_warnings(kept.clone());
        }
        let Some(new) = new else { return };
        // What is still to be asked for is not known.
        if self.turn.failed
            || (warned > 0) != warnings.is_some()
            || self.held.iter().any(|(_, backend)| is_unread(backend))
            || self.state.tracks()
            || self.state.bytes() > STATE_LEN_MAX
            || new.before.bytes() > STATE_LEN_MAX
        {
            return;
        }
        let until = new.reads.then(|| self.core.rt.now() + EXPRESSION_LASTS);
        let known = Known {
            after: self.state.without_schema_and_user(),
            reading_after: self.reading,
            told: new.told,
            warned,
            warnings,
        };
        let before = (&new.before, new.reading);
        let mut accepted = job.epoch.accepted.borrow_mut();
        accepted.add(self, job, before, until, known);
    }

    /// Whether this SET is taken at its word, and done. What it sets is the session's then; what its
    /// client is to be told of changes, and the number of warnings.
    pub(crate) fn take_at_its_word(&mut self, job: &Job<'_>) -> Option<(Box<[u8]>, u16)> {
        if !self.may_be_remembered(job) {
            return None;
        }
        let mut accepted = job.epoch.accepted.borrow_mut();
        let known = accepted.find(self, job)?;
        self.state.set_like(&known.after);
        self.reading = known.reading_after;
        self.sent = known.warnings.clone().map(|kept| {
            Box::new(Sent {
                new: None,
                warned: known.warned,
                warnings: Some(kept),
            })
        });
        Some((known.told.clone(), known.warned))
    }

    fn may_be_remembered(&self, job: &Job<'_>) -> bool {
        let class = job.class;
        class.sets
            && class.leaves == Leaves::SET
            && !class.multi
            && job.is_as_written()
            && job.text.len() <= TEXT_LEN_MAX
            // What it says is read alike in any character set.
            && job.text.is_ascii()
            && !job.text.contains(&b'\\')
            && matches!(job.what, What::Query(attributes) if attributes.iter().next().is_none())
            && !self.state.tracks()
            && !self.is_unsure()
    }

    /// Tells the client that its SET is done, with what it is to be told of changes.
    pub(crate) async fn say_changed(&mut self, (told, warned): (&[u8], u16)) -> Result<(), Ended> {
        let flags = self.flags() | self.turn.flags();
        let seq = self.turn.next();
        self.turn.sent = seq;
        self.hand_over(answer::ok_with(seq, self.caps, flags, (told, warned)))
            .await
    }
}

/// Whether a part of a SET makes the same of the same state in any session, and leaves nothing but
/// that.
fn is_the_same_anywhere(setting: &Setting<'_>) -> bool {
    match setting {
        Setting::Names { .. } => true,
        Setting::Variable(Assignment {
            scope: Scope::Session,
            name,
            value,
        }) => {
            let bound = BOUND.contains(&&**name) || leaves_texts(name) || name.contains('.');
            // Its clock goes on, or its value is the server's to choose.
            let moves = name == "timestamp" || name.starts_with("session_track_");
            !bound
                && !moves
                && match value {
                    Value::Default | Value::Literal(_) => true,
                    Value::Expression(text) => is_certain_expression(text),
                }
        }
        Setting::Transaction { scope, .. } => *scope == Scope::Session,
        _ => false,
    }
}

/// Whether an expression has one value for one state: literals, variables of [`READ`] and functions
/// of [`CALLED`].
fn is_certain_expression(text: &[u8]) -> bool {
    let mut words = Words::new(text);
    while let Some(token) = words.next() {
        let fine = match token.kind {
            Kind::Sign if token.is_sign(b'@') => {
                // Two of them, and perhaps whose it is.
                if !words.next().is_some_and(|second| second.is_sign(b'@')) {
                    return false;
                }
                let mut name = words.next();
                if name.is_some_and(|name| name.is_any(&["SESSION", "LOCAL"])) {
                    let dot = words.next().is_some_and(|dot| dot.is_sign(b'.'));
                    name = words.next().filter(|_| dot);
                }
                name.is_some_and(|name| {
                    READ.iter()
                        .any(|read| name.text.eq_ignore_ascii_case(read.as_bytes()))
                })
            }
            Kind::Sign => token.is_sign(b'(') || token.is_sign(b')') || token.is_sign(b','),
            Kind::Word => {
                let number = token.text.iter().all(u8::is_ascii_digit);
                number || token.is_any(&CALLED) || token.is("NULL")
            }
            Kind::String => token.text.first() == Some(&b'\''),
            Kind::Name => false,
        };
        if !fine {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_frameworks_set_at_login_is_the_same_anywhere() {
        let same = |text: &str| {
            let settings = sql::set::parse_in(text.as_bytes(), true).unwrap();
            settings.iter().all(is_the_same_anywhere)
        };
        for text in [
            "SET NAMES 'utf8mb4' COLLATE 'utf8mb4_unicode_520_ci'",
            "SET SESSION sql_mode='ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES'",
            "SET @@SESSION.sql_mode = CONCAT(@@sql_mode, ',STRICT_ALL_TABLES'), \
             @@SESSION.sql_auto_is_null = 0, @@SESSION.wait_timeout = 2147483",
            "SET sql_mode=(SELECT CONCAT(@@sql_mode))",
            "set session transaction isolation level read committed",
            "SET character_set_results = NULL",
            "SET autocommit=1, session sql_mode=REPLACE(@@SESSION.sql_mode, 'ANSI', '')",
        ] {
            assert_eq!(same(text), !text.contains("SELECT"), "{text}");
        }
        for text in [
            "SET @x = 1",
            "SET GLOBAL sql_mode = ''",
            "SET TRANSACTION READ ONLY",
            "SET insert_id = 5",
            "SET timestamp = DEFAULT",
            "SET profiling = 1",
            "SET ROLE x",
            "SET CHARACTER SET latin1",
            "SET session_track_schema = 1",
            "SET sql_mode = @old",
            "SET sql_mode = @@global.sql_mode",
            "SET sql_mode = CONCAT(@@version, '')",
            "SET group_concat_max_len = RAND() * 1000",
            "SET sql_mode = my_own()",
        ] {
            assert!(!same(text), "{text}");
        }
    }
}
