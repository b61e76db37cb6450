//! What procedures and functions of users have left on a connection that no server tells of. It is
//! asked for in the client's silence, so that the connection need not be kept for good.
//!
//! All that they may leave, and how each is known: docs/decisions/0025-what-a-call-leaves.md.

use crate::connection::ask::{Answer, without_zeros};
use crate::connection::backend::Backend;
use crate::failure::BackendFailed;
use crate::session::hold::Hold;
use crate::session::state::State;
use crate::session::variables::{ROLE, TRANSACTIONS};
use rt::Instant;
use std::time::Duration;
use wire::rows::Rows;

/// With more user variables than this a connection stays where it is.
const NAMES_MAX: usize = 256;

/// In the first columns, whether the server knows its locks at all (its own lock on the table of
/// locks is among them), how many of the session's stay when a statement is over (GET_LOCK, FLUSH
/// TABLES WITH READ LOCK, LOCK INSTANCE FOR BACKUP, the locking service), how many of all it has
/// lost sight of, whether its thread is in the usual resource group, whether it has no role and
/// would have none after a login, and how many user variables there are. In the last, their names,
/// a row for each. The session, or the procedure, may have said how many rows it wants to see
/// (`sql_select_limit`): a limit in the text wins.
const QUESTION: &str = "SELECT s.*, HEX(v.VARIABLE_NAME) FROM (SELECT \
(SELECT COUNT(*) FROM performance_schema.metadata_locks WHERE OWNER_THREAD_ID=PS_CURRENT_THREAD_ID() \
AND OBJECT_SCHEMA='performance_schema' AND OBJECT_NAME='metadata_locks') seen, \
(SELECT COUNT(*) FROM performance_schema.metadata_locks WHERE OWNER_THREAD_ID=PS_CURRENT_THREAD_ID() AND LOCK_DURATION='EXPLICIT') locks, \
(SELECT VARIABLE_VALUE FROM performance_schema.session_status WHERE VARIABLE_NAME='Performance_schema_metadata_lock_lost') lost, \
(SELECT COALESCE(RESOURCE_GROUP,'USR_default')='USR_default' FROM performance_schema.threads WHERE THREAD_ID=PS_CURRENT_THREAD_ID()) usual, \
CURRENT_ROLE()='NONE' AND NOT EXISTS(SELECT 1 FROM information_schema.APPLICABLE_ROLES WHERE IS_DEFAULT='YES' OR @@GLOBAL.activate_all_roles_on_login) plain, \
(SELECT COUNT(*) FROM performance_schema.user_variables_by_thread WHERE THREAD_ID=PS_CURRENT_THREAD_ID()) variables) s \
LEFT JOIN performance_schema.user_variables_by_thread v ON v.THREAD_ID=PS_CURRENT_THREAD_ID() LIMIT 18446744073709551615";

/// By these a server refuses it to a user, or for good: no privilege for a schema, a table or a
/// function, no such table, column or function, no performance schema.
const REFUSALS: [u16; 9] = [
    1044,
    1054,
    1109,
    1142,
    1143,
    1146,
    1305,
    1370,
    NO_PERFORMANCE_SCHEMA,
];
const NO_PERFORMANCE_SCHEMA: u16 = 1683;

impl Backend {
    /// Whether its server may be one that can be asked, by this user.
    pub(crate) fn may_say_what_is_left(&self) -> bool {
        !self.hello.is_mariadb()
            && self.state.variable(TRANSACTIONS).is_none()
            && !self.place.known.refusals.has(&self.key.user)
    }

    /// Whether what the server tells of transactions is told because we have asked for it, and not
    /// the session.
    #[must_use]
    pub fn is_told_of_transactions(&self) -> bool {
        self.lasting.told_of_transactions
    }

    /// The server has told this of the state of its transaction.
    pub fn has_begun(&mut self, state: &[u8]) {
        self.local.programs.begun = state.starts_with(b"T");
    }

    /// A procedure or function of users is about to run.
    pub fn runs_programs(&mut self) {
        self.local.programs.unheard |= !(self.tells_all() && self.lasting.told_of_transactions);
    }

    /// Whether all that a server tells was told of the programs that it is held for, and it can be
    /// asked for the rest.
    #[must_use]
    pub fn can_say_what_is_left(&self) -> bool {
        (self.holds.has(Hold::Procedure) || self.holds.has(Hold::Routine))
            && self.lasting.told_of_transactions
            && !self.local.programs.unheard
            && !self.local.strange_variables
            && !self.retired
            && !self.lease.strays
            && self.state.variable(ROLE).is_none()
            && self.may_say_what_is_left()
    }

    /// A statement is over: it is asked at that time, if the client is silent until then.
    pub fn wait_for_silence(&mut self, now: Instant, silent: Duration) {
        if self.holds.has(Hold::Procedure) || self.holds.has(Hold::Routine) {
            self.place.known.refusals.forget_old(now);
        }
        self.local.programs.until = self.can_say_what_is_left().then(|| now + silent);
    }

    /// When that is, if it is to be asked.
    #[must_use]
    pub fn says_what_is_left(&self) -> Option<Instant> {
        self.local
            .programs
            .until
            .filter(|_| self.can_say_what_is_left())
    }

    /// Asks what the programs have left that it is held for. Whether that is nothing but user
    /// variables, of which the values are to be asked then. `session`: the session's own state.
    ///
    /// # Errors
    /// The connection broke.
    pub async fn ask_what_is_left(
        &mut self,
        session: &State,
        now: Instant,
    ) -> Result<bool, BackendFailed> {
        self.local.programs.until = None;
        // What the session has set elsewhere since is not to be overwritten.
        if !self.can_say_what_is_left() || !self.state.same_user_variables(session) {
            return Ok(false);
        }
        let names = match self.ask(QUESTION).await? {
            Answer::Rows(rows) => {
                if said(&rows, 0, 0).as_deref() == Some(b"0") {
                    self.place.known.refusals.add(&self.key.user, now);
                }
                names(&rows)
            }
            Answer::Refused(code) => {
                if REFUSALS.contains(&code) {
                    self.place.known.refusals.add(&self.key.user, now);
                }
                None
            }
            Answer::TooLong => None,
        };
        let Some(names) = names else { return Ok(false) };
        #[cfg(debug_assertions)]
        let names = if crate::planted::FORGET_LEFT.get() {
            Vec::new()
        } else {
            names
        };
        self.local.unread.user.extend(names);
        self.holds.put(Hold::Unread, !self.local.unread.is_empty());
        Ok(true)
    }
}

fn said(rows: &Rows, row: usize, column: usize) -> Option<Vec<u8>> {
    rows.rows
        .get(row)?
        .get(column)?
        .as_deref()
        .map(without_zeros)
}

/// The names of the user variables in the answer to [`QUESTION`]; `None` if there is, or may be,
/// anything else.
fn names(rows: &Rows) -> Option<Vec<String>> {
    let one = |column: usize| String::from_utf8(said(rows, 0, column)?).ok();
    let seen: u64 = one(0)?.parse().ok()?;
    let plain = seen > 0 && one(1)? == "0" && one(2)? == "0" && one(3)? == "1" && one(4)? == "1";
    let count: usize = one(5)?.parse().ok()?;
    // No row, or not all of them, says nothing.
    if !plain || count > NAMES_MAX || rows.rows.len() != count.max(1) {
        return None;
    }
    (0..count).map(|row| name(&said(rows, row, 6)?)).collect()
}

/// A name from its hexadecimal digits, in lower case. One that is not ASCII is nobody's to tell.
fn name(hex: &[u8]) -> Option<String> {
    let digits: Option<Vec<u8>> = hex
        .iter()
        .map(|digit| {
            char::from(*digit)
                .to_digit(16)
                .and_then(|d| u8::try_from(d).ok())
        })
        .collect();
    let bytes: Vec<u8> = digits?
        .chunks(2)
        .map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit))
        .collect();
    let name = String::from_utf8(bytes)
        .ok()
        .filter(|name| name.is_ascii())?;
    Some(name.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::servers::said::REFUSED;
    use crate::servers::said::Refusals;

    fn answer(rows: &[[&str; 7]]) -> Option<Vec<String>> {
        let cell = |text: &&str| (*text != "NULL").then(|| text.as_bytes().to_vec());
        let rows = rows
            .iter()
            .map(|row| row.iter().map(cell).collect())
            .collect();
        names(&Rows {
            rows,
            ..Rows::default()
        })
    }

    #[test]
    fn only_an_answer_of_nothing_else_gives_names() {
        assert_eq!(
            answer(&[["1", "0", "0", "1", "1", "0", "NULL"]]),
            Some(Vec::new())
        );
        assert_eq!(
            answer(&[["2", "0", "0", "1", "1", "1", "4F7468"]]),
            Some(vec!["oth".to_owned()])
        );
        let two = [
            ["1", "0", "0", "1", "1", "2", "61"],
            ["1", "0", "0", "1", "1", "2", "62"],
        ];
        assert_eq!(answer(&two), Some(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(answer(&two[..1]), None, "a row is missing");
        for not in [
            ["0", "0", "0", "1", "1", "0", "NULL"],
            ["1", "1", "0", "1", "1", "0", "NULL"],
            ["1", "0", "3", "1", "1", "0", "NULL"],
            ["1", "0", "NULL", "1", "1", "0", "NULL"],
            ["1", "0", "0", "0", "1", "0", "NULL"],
            ["1", "0", "0", "NULL", "1", "0", "NULL"],
            ["1", "0", "0", "1", "0", "0", "NULL"],
            ["1", "0", "0", "1", "NULL", "0", "NULL"],
            ["1", "0", "0", "1", "1", "1", "C3BC"],
            ["1", "0", "0", "1", "1", "1", "NULL"],
            ["1", "0", "0", "1", "1", "257", "61"],
        ] {
            assert_eq!(answer(&[not]), None, "{not:?}");
        }
        assert_eq!(answer(&[]), None);
    }

    #[test]
    fn who_was_refused_may_ask_again_later() {
        let (refusals, then) = (Refusals::default(), Instant::default());
        refusals.add("a", then);
        assert!(refusals.has("a") && !refusals.has("b"));
        refusals.forget_old(then + REFUSED / 2);
        assert!(refusals.has("a"));
        refusals.forget_old(then + REFUSED);
        assert!(!refusals.has("a"));
    }

    #[test]
    fn a_limit_of_the_session_is_not_for_the_question() {
        assert!(QUESTION.ends_with(crate::connection::ask::ALL_ROWS));
    }
}
