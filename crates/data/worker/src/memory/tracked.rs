//! What the server tells of changes in its session that no text tells: those that triggers,
//! procedures and functions have made.

use crate::command::job::{Job, What};
use crate::command::reads::{REMEMBERED, begins_a_trace};
use crate::command::settings::{BOUND, LAST_GTID, THREAD, leaves_texts, may_run_programs};
use crate::command::trouble::Failed;
use crate::memory::row::{After, Asking, Memory, nothing_lost};
use crate::session::Session;
use backend::{Backend, Hold, Tracking, Unreported};
use sql::set::{Scope, Setting};
use sql::{Class, CommandCounter, Leaves, Reads};
use wire::response::Response;
use wire::track::Change;

pub(crate) static MEMORY: Memory = Memory {
    holds: &[],
    reads: Reads::NONE,
    // The next answer has it, and nobody could say whose it is.
    fragile: true,
    is_there: |_, backend| backend.local.unreported != Unreported::Nothing,
    ask: |session, backend, how| Box::pin(session.hear_away(backend, how)),
    lose: nothing_lost,
};

/// In a statement that names them somebody asks what the server tells, or says it.
const OURS: &[u8] = b"session_track_";

/// Variables that `SET NAMES` sets.
pub(crate) const OF_NAMES: [&str; 4] = [
    "character_set_client",
    "character_set_connection",
    "character_set_results",
    "collation_connection",
];

impl Session {
    /// Whether the server has to tell what this statement changes.
    pub(crate) fn tracking(&self, job: &Job<'_>) -> Tracking {
        let class = job.class;
        // Those of sequences no statement disturbs that names none.
        if class
            .reads
            .intersects(REMEMBERED.without(Reads::SEQUENCE.with(Reads::CURRVAL)))
        {
            // What is asked for would be that of our own statement.
            return Tracking::Any;
        }
        if sees_tracking(class, job.sent()) || begins_a_trace(job) {
            return Tracking::Off;
        }
        if !may_run_programs(class) || matches!(job.what, What::Prepare(_)) {
            Tracking::Any
        } else if backend::is_call(class) || class.leaves.intersects(Leaves::UNKNOWN_FUNCTION) {
            Tracking::Calls
        } else {
            Tracking::On
        }
    }

    /// Returns the tracking that a statement needs on this connection. Where the server shows the
    /// session what is said there, nothing is said for it; what is not told stays there with the
    /// rest.
    pub(crate) fn tracking_on(&self, backend: &Backend, job: &Job<'_>) -> Tracking {
        if backend.holds.has(Hold::Trace) {
            Tracking::Any
        } else {
            self.tracking(job)
        }
    }

    /// Takes what a response says of changes: variables are to be asked for, unless the statement
    /// has set them itself; what has no name keeps the connection. The new schema, if there is one.
    pub(crate) fn learn_changes(
        &mut self,
        backend: &mut Backend,
        class: &Class<'_>,
        (text, escapes): (&[u8], bool),
        response: &Response,
    ) -> Option<String> {
        if response.session_track().is_empty() {
            return None;
        }
        let before = std::mem::replace(&mut backend.local.unreported, Unreported::Nothing);
        let nothing = before == Unreported::Noise && !may_run_programs(class);
        // The server says once that something has changed, whatever and how much. A variable that a
        // program has set does not explain it: beside it may be another that has no name here. And
        // a statement before has had something to tell, too, and that may be it.
        let mut explained = explains_a_change(class) && before != Unreported::Change;
        let own = if class.leaves.intersects(Leaves::SET) {
            set_by(text, escapes)
        } else {
            Some(Vec::new())
        };
        let (mut schema, mut changed, mut announced) = (None, false, false);
        for change in response.changes() {
            match change {
                Change::Schema(name) => {
                    // A program of another schema goes there and comes back. Of COM_INIT_DB no text
                    // may be known.
                    explained |= name != self.state.schema.as_bytes()
                        && !may_run_programs(class)
                        && before != Unreported::Change;
                    match std::str::from_utf8(name) {
                        Ok(name) => schema = Some(name.to_owned()),
                        Err(_) => backend.holds.add(Hold::UnknownState),
                    }
                }
                // With a binary log MariaDB tells it after each write: nothing that could be set,
                // and no change that explains another.
                Change::Variable { name, value } if name.eq_ignore_ascii_case(LAST_GTID) => {
                    self.learn_last_gtid(value)
                }
                Change::Variable { name, .. } => {
                    let Some(name) = std::str::from_utf8(name).ok().map(str::to_ascii_lowercase)
                    else {
                        continue;
                    };
                    let known = own.as_ref().is_none_or(|own| own.contains(&name));
                    if known || name == "autocommit" || name == "statement_id" {
                        continue;
                    }
                    // A program that says what the server tells leaves us without knowing what it
                    // does not.
                    let ours = name.as_bytes().starts_with(OURS);
                    if ours || BOUND.contains(&&*name) || leaves_texts(&name) {
                        backend.holds.add(Hold::UnknownState);
                        if name == THREAD {
                            self.remembered.numbered.set(true);
                        }
                        if leaves_texts(&name) {
                            backend.retire();
                        }
                    } else {
                        backend.local.unread.session.insert(name);
                    }
                }
                Change::State(on) => changed |= on,
                // The last of them counts: the transaction may have been begun, and ended, by the
                // same program.
                Change::TransactionCharacteristics(how) => {
                    announced =
                        backend.is_told_of_transactions() && how.starts_with(b"SET TRANSACTION");
                }
                Change::TransactionState(state) => backend.has_begun(state),
                _ => {}
            }
        }
        if announced && !backend.holds.has(Hold::Transaction) {
            backend.holds.add(Hold::NextTransaction);
        }
        #[cfg(debug_assertions)]
        let explained = explained
            || backend::planted::NAMES_EXPLAIN.get()
                && response
                    .changes()
                    .any(|change| matches!(change, Change::Variable { .. }));
        if changed && !nothing && !explained {
            if before != Unreported::Change && sets_for_itself(class, text) {
                // What it has set is over, and explains it. Where there may have been a program as
                // well, nobody else gets the connection as it is.
                backend.local.strange_variables |= class.may_write();
            } else {
                backend.holds.add(Hold::Untold);
            }
        }
        backend
            .holds
            .put(Hold::Unread, !backend.local.unread.is_empty());
        schema
    }

    async fn hear_away(&mut self, backend: &mut Backend, how: Asking) -> Result<After, Failed> {
        self.hear(backend, how.limit_ms, how.answered).await?;
        Ok(After::Told)
    }

    /// A statement has failed, and what it changed before is not told: the server says it with the
    /// next OK. `answered`: as [`Session::read_back`].
    pub(crate) async fn hear(
        &mut self,
        backend: &mut Backend,
        limit_ms: u64,
        answered: bool,
    ) -> Result<(), Failed> {
        let unreported = backend.local.unreported;
        let response = self
            .prepared_for(limit_ms, backend.hear(), answered)
            .await?;
        let text = backend.hears_by();
        let class = sql::class(text);
        // MariaDB tells of our own SET, and of no user variable that was set before.
        backend.local.unreported = if class.sets {
            Unreported::Nothing
        } else {
            unreported
        };
        let schema = self.learn_changes(backend, &class, (text, true), &response);
        backend.local.unreported = Unreported::Nothing;
        if let Some(name) = schema {
            self.is_in(backend, &name);
        }
        Ok(())
    }

    /// The session is in this schema now.
    pub(crate) fn is_in(&mut self, backend: &mut Backend, schema: &str) {
        self.state.schema = schema.into();
        backend.state_mut().schema = self.state.schema.clone();
        self.entry.schema.replace(self.state.schema.clone());
    }
}

/// Would it show what the server was asked to tell, or does it say what the server shall tell?
fn sees_tracking(class: &Class<'_>, text: &[u8]) -> bool {
    if !class.sets && !class.reads.intersects(Reads::SESSION_VARIABLE) {
        return false;
    }
    let has = |words: &[u8]| {
        text.windows(words.len())
            .any(|part| part.eq_ignore_ascii_case(words))
    };
    if has(OURS) || has(b"session_variables") {
        return true;
    }
    // SHOW VARIABLES, unless all that it may show is named.
    class.command == CommandCounter::Show
        && has(b"variables")
        && (text.contains(&b'%') || !has(b"like") && !has(b"where"))
}

/// Whether it changes something of the session by its own text.
pub(crate) fn changes_by_itself(class: &Class<'_>) -> bool {
    class.leaves.intersects(Leaves::USER_VARIABLE) || explains_a_change(class)
}

/// Whether its own text explains that the server says that something of the session has changed. Of
/// a user variable that is set otherwise than by `SET @x` it says nothing (docs/decisions/0020):
/// what it says after such a statement is about something else.
fn explains_a_change(class: &Class<'_>) -> bool {
    const MARKS: Leaves = Leaves::SET
        .with(Leaves::TEMP_TABLE)
        .with(Leaves::DROP_TEMP_TABLE)
        .with(Leaves::SQL_PREPARE)
        .with(Leaves::SQL_DEALLOCATE);
    class.leaves.intersects(MARKS)
        || class.use_db.is_some()
        || class.ddl
        || matches!(
            class.command,
            CommandCounter::Prepare | CommandCounter::Deallocate
        )
}

/// Whether it sets session variables while it runs: MariaDB's `SET STATEMENT … FOR`, MySQL's hint
/// `SET_VAR()`. Servers tell of them as of others.
fn sets_for_itself(class: &Class<'_>, text: &[u8]) -> bool {
    const HINT: &[u8] = b"SET_VAR";
    let hint = || {
        text.windows(HINT.len())
            .any(|part| part.eq_ignore_ascii_case(HINT))
            && text.windows(3).any(|part| part == b"/*+")
    };
    class.sets && !class.leaves.intersects(Leaves::SET) || hint()
}

/// The session variables that a SET sets, as servers name them; `None` if that is not known.
fn set_by(text: &[u8], escapes: bool) -> Option<Vec<String>> {
    let mut names: Vec<String> = Vec::new();
    for setting in sql::set::parse_in(text, escapes).ok()? {
        match setting {
            Setting::Variable(one) if one.scope == Scope::Session => names.push(one.name),
            Setting::Names { .. } | Setting::CharacterSet(_) => {
                names.extend(OF_NAMES.map(str::to_owned));
            }
            Setting::Transaction { .. } => {
                let sets = [
                    "transaction_isolation",
                    "tx_isolation",
                    "transaction_read_only",
                    "tx_read_only",
                ];
                names.extend(sets.map(str::to_owned));
            }
            _ => {}
        }
    }
    Some(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_what_the_server_tells_does_not_see_what_we_have_asked_for() {
        let sees = |text: &str| sees_tracking(&sql::class(text.as_bytes()), text.as_bytes());
        for text in [
            "SELECT @@session_track_schema",
            "SET SESSION_TRACK_GTIDS=1",
            "SHOW VARIABLES",
            "SHOW SESSION VARIABLES LIKE 's%'",
            "SELECT * FROM performance_schema.session_variables",
        ] {
            assert!(sees(text), "{text}");
        }
        for text in [
            "SELECT 1",
            "SET sql_mode=''",
            "SHOW VARIABLES LIKE 'version'",
            "SHOW TABLES",
            "SELECT @@version",
        ] {
            assert!(!sees(text), "{text}");
        }
    }

    #[test]
    fn what_a_statement_sets_for_itself_is_no_change() {
        let sets = |text: &str| sets_for_itself(&sql::class(text.as_bytes()), text.as_bytes());
        for text in [
            "SET STATEMENT a=1 FOR INSERT INTO t VALUES (1)",
            "INSERT /*+ set_var(a=1) */ INTO t VALUES (1)",
        ] {
            assert!(sets(text), "{text}");
        }
        for text in [
            "SET a=1",
            "INSERT INTO t VALUES ('SET_VAR')",
            "INSERT /*+ NO_ICP(t) */ INTO t VALUES (1)",
        ] {
            assert!(!sets(text), "{text}");
        }
    }

    #[test]
    fn only_a_set_explains_a_change_of_user_variables() {
        let explains = |text: &str| explains_a_change(&sql::class(text.as_bytes()));
        for text in [
            "SET @a = 1",
            "CREATE TEMPORARY TABLE t (a INT)",
            "USE conf",
            "PREPARE s FROM 'DO 0'",
        ] {
            assert!(explains(text), "{text}");
        }
        for text in [
            "INSERT INTO t VALUES (@a := 1)",
            "UPDATE t SET a = (SELECT @a := a)",
            "LOAD DATA INFILE 'f' INTO TABLE t (a, @b)",
            "SELECT 1 INTO @a",
            "INSERT INTO t VALUES (1)",
        ] {
            assert!(!explains(text), "{text}");
        }
        assert!(changes_by_itself(&sql::class(b"SELECT 1 INTO @a")));
    }

    #[test]
    fn a_set_explains_what_it_sets() {
        assert_eq!(
            set_by(
                b"SET @@session.Sql_Mode='', @x=1, GLOBAL y=2, time_zone=DEFAULT",
                true
            )
            .unwrap(),
            ["sql_mode", "time_zone"]
        );
        assert!(
            set_by(b"SET NAMES latin1", true)
                .unwrap()
                .contains(&"character_set_results".to_owned())
        );
        assert!(set_by(b"SET 1", true).is_none());
    }
}
