//! A connection gets what it must have before a statement is sent over it.

use crate::command::asked::Knows;
use crate::command::job::{Job, What};
use crate::command::reads::{REMEMBERED, executes_unread, sees};
use crate::command::trouble::Failed;
use crate::memory::row::Asking;
use crate::memory::tracked::changes_by_itself;
use crate::memory::{found_rows, insert_id};
use crate::session::Session;
use crate::session::lexing::is_to_be_asked;
use backend::{Backend, BackendFailed, Hold, Holds, Sees, State, Unreported};
use config::Snapshot;
use sql::words::Words;
use sql::{Class, CommandCounter, Leaves, Lexing, Reads};
use std::borrow::Cow;
use wire::{caps, errors};

/// `multiplex` of a rule by which the operator vouches that the routines of a statement leave
/// nothing on its connection.
const LEAVES_NOTHING: u8 = 2;

/// Tells what a statement may see of user variables on this connection. Where the warnings are that
/// a GET DIAGNOSTICS asks for, its variables are only set: to bring them there before would be a
/// statement, and to MySQL the warnings would be over.
fn sees_there(backend: &Backend, job: &Job<'_>) -> Sees {
    let only_sets =
        || matches!(job.what, What::Query(_) | What::Execute(_)) && only_sets_variables(job.sent());
    if knows_what_is_asked(backend, job) && only_sets() {
        Sees::Nothing
    } else {
        sees(job)
    }
}

/// Whether it asks for warnings where they are.
fn knows_what_is_asked(backend: &Backend, job: &Job<'_>) -> bool {
    job.class.reads.intersects(Reads::WARNINGS) && backend.holds.has(Hold::Diagnostics)
}

/// Whether it is a GET DIAGNOSTICS that reads no variable: one may say of which condition.
fn only_sets_variables(text: &[u8]) -> bool {
    let mut words = Words::new(text);
    if !words.next().is_some_and(|token| token.is("GET")) {
        return false;
    }
    let (mut before, mut of_condition) = (None, false);
    for token in words {
        if of_condition && token.is_sign(b'@') {
            return false;
        }
        of_condition = token.is("CONDITION")
            && !before.is_some_and(|before: sql::words::Token<'_>| before.is_sign(b'@'));
        before = Some(token);
    }
    true
}

/// Whether it is a GET DIAGNOSTICS that asks for the rows of the statement before.
fn asks_for_row_count(text: &[u8]) -> bool {
    let mut words = Words::new(text);
    let gets = words.next().is_some_and(|token| token.is("GET"));
    let mut is_value = false;
    gets && words.any(|token| {
        token.is("ROW_COUNT") && is_value || {
            is_value = token.is_sign(b'=');
            false
        }
    })
}

/// Whether a transaction ends alike in two states: in the one the next begins by itself, in the
/// other not, and COMMIT may mean more than it says.
fn ends_alike(one: &State, other: &State) -> bool {
    // The modes are what the answer tells.
    let alike = |name| one.variable(name) == other.variable(name);
    one.autocommit == other.autocommit && alike("completion_type") && alike("sql_mode")
}

/// COMMIT, ROLLBACK and UNLOCK TABLES mean the same in almost any state of a session.
fn ends_what_is_held(class: &Class<'_>) -> bool {
    let ends = class.ends_transaction && !class.begins_transaction && class.leaves.is_empty();
    !class.multi && (ends || class.leaves == Leaves::UNLOCK_TABLES)
}

impl Session {
    /// As [`backend::Want::remembered`].
    pub(crate) fn remembered(&self, job: &Job<'_>) -> Option<u64> {
        let reads = job.class.reads;
        // What the session knows by itself goes into the text.
        let known = || self.found_rows().is_some() || !reads.intersects(Reads::FOUND_ROWS);
        let counts = || {
            reads.intersects(Reads::ROW_COUNT | Reads::FOUND_ROWS)
                && !(known() && self.with_counts(job, Knows::default()).is_some())
        };
        (reads.intersects(REMEMBERED.without(Reads::FOUND_ROWS))
            || counts()
            || executes_unread(job))
        .then_some(self.life)
    }

    /// A server takes several statements only where the client asked for it, and where there may be
    /// several.
    pub(crate) fn several(&self, backend: &Backend, job: &Job<'_>) -> bool {
        let allowed = caps::has(self.caps, caps::MULTI_STATEMENTS);
        if matches!(job.what, What::Query(_)) {
            allowed && (backend.takes_several() || job.sent().contains(&b';'))
        } else {
            backend.takes_several()
        }
    }

    /// Whether [`Session::make_ready`] has nothing to do, as most often.
    pub(crate) fn is_ready(&self, backend: &Backend, job: &Job<'_>) -> bool {
        let prepared = match job.what {
            What::Execute(execution) => {
                backend.has_prepared(execution.prepared(), execution.client, execution.bindings)
            }
            What::Dynamic(dynamic) => dynamic.is_there(backend, self.life),
            _ => true,
        };
        if backend.holds.has(Hold::ExpiredPassword) && matches!(job.what, What::Query(_)) {
            // A server that wants a new password first refuses all else, and says so itself.
            return true;
        }
        prepared
            && self.several(backend, job) == backend.takes_several()
            && backend.is_ready(&self.wanted(backend, job), sees_there(backend, job), self.remembered(job), self.tracking_on(backend, job))
            && !self.lacks_insert_id(backend, job)
            // Its own changes would hide those that are still to be told.
            && !(backend.local.unreported == Unreported::Change && changes_by_itself(job.class))
            // Questions for it later would be what FOUND_ROWS() is about.
            && !(backend.local.unreported != Unreported::Nothing && job.class.leaves.intersects(Leaves::FOUND_ROWS))
            && !self.has_old_warnings(backend, job)
            // What a statement is prepared under has to be known.
            && !(matches!(job.what, What::Prepare(_)) && backend.holds.has(Hold::Unread))
            // Nor how the text of the next is read.
            && !is_to_be_asked(backend)
    }

    /// Whether a server would tell warnings of another statement than the session's last, which
    /// left none or went elsewhere.
    fn has_old_warnings(&self, backend: &Backend, job: &Job<'_>) -> bool {
        job.class.reads.intersects(Reads::WARNINGS)
            && !backend.holds.has(Hold::Diagnostics)
            && (backend.local.others_warnings
                || !backend.is_undisturbed(self.life, self.entry.statement.get().wrapping_sub(1)))
    }

    /// The state that a statement needs. One that changes the schema needs none: that of before may
    /// be on another server only. Nor does what ends a transaction, which an execution may have
    /// begun in the schema that it was prepared in.
    fn wanted(&self, backend: &Backend, job: &Job<'_>) -> Cow<'_, State> {
        let needs_none = || {
            let elsewhere =
                !backend.holds.is_empty() && backend.state().schema != self.state.schema;
            elsewhere && matches!(job.what, What::Query(_)) && ends_what_is_held(job.class)
        };
        if job.class.multi || job.class.use_db.is_none() && !needs_none() {
            return Cow::Borrowed(&self.state);
        }
        let mut state = self.state.clone();
        state.schema = backend.state().schema.clone();
        Cow::Owned(state)
    }

    /// Whether it asks for nothing in the session's schema: it was prepared in another, or is about
    /// a user's lock, which a server keeps for all of its schemas. Each schema may be on servers
    /// where the other is not.
    fn can_do_without_its_schema(&self, job: &Job<'_>) -> bool {
        let own = || {
            job.what
                .prepared_in()
                .is_some_and(|own| !own.is_empty() && *own != self.state.schema)
        };
        let of_lock = || {
            backend::is_only_user_lock(job.text)
                && !job.class.leaves.intersects(Leaves::UNKNOWN_FUNCTION)
        };
        (own() || of_lock())
            && !Words::new(job.sent()).any(|token| token.is("DATABASE") || token.is("SCHEMA"))
    }

    /// Holds a connection for what routines of users may leave. Not where the operator says that
    /// they only read, or that this statement leaves nothing (`multiplex = 2`). `before`: what held
    /// the connection before this statement.
    pub(crate) fn hold_for_routines(&self, backend: &mut Backend, job: &Job<'_>, before: Holds) {
        let leaves = job.class.leaves;
        let may_leave_something =
            || job.plan.multiplex != Some(LEAVES_NOTHING) && self.calls_strangers(job);
        if backend::is_call(job.class) && leaves.intersects(Leaves::UNKNOWN_STATE) {
            if before.has(Hold::Procedure) || may_leave_something() {
                backend.runs_programs();
            } else {
                backend.holds.remove(Hold::Procedure);
            }
        } else if leaves.intersects(Leaves::UNKNOWN_FUNCTION) && may_leave_something() {
            backend.holds.add(Hold::Routine);
            backend.runs_programs();
        }
    }

    /// Servers tell of a change for any program that runs in a session of another schema, or of
    /// none. The operator knows better what those do that only read.
    pub(crate) fn trust_routines(&self, backend: &mut Backend, job: &Job<'_>, before: Holds) {
        let class = job.class;
        let only_calls = class.command == CommandCounter::Select
            && class.leaves.intersects(Leaves::UNKNOWN_FUNCTION)
            || backend::is_call(class)
                && class.leaves.intersects(Leaves::UNKNOWN_STATE)
                && !class.multi;
        if only_calls
            && backend.holds.has(Hold::Untold)
            && !before.has(Hold::Untold)
            && !self.calls_strangers(job)
        {
            backend.holds.remove(Hold::Untold);
        }
    }

    /// Whether a routine is called that is neither the server's own nor among those that the
    /// operator says to be harmless.
    pub(crate) fn calls_strangers(&self, job: &Job<'_>) -> bool {
        // A prepared statement means the schema that it was prepared in.
        let schema = job.what.prepared_in().unwrap_or(&self.state.schema);
        self.are_strangers(
            &job.epoch.snapshot,
            schema,
            job.sent(),
            self.lexing_of(job.what),
        )
    }

    /// Whether the text calls a routine that the operator has not listed, or it cannot be told
    /// which it calls.
    pub(crate) fn are_strangers(
        &self,
        snapshot: &Snapshot,
        schema: &str,
        text: &[u8],
        lexing: Lexing,
    ) -> bool {
        let Some(split) = plan::split_of(snapshot, &self.user) else {
            return true;
        };
        let harmless = |routine: &sql::Routine<'_>| {
            split.only_reads(routine.schema.as_deref(), schema.as_bytes(), &routine.name)
        };
        let called = sql::calls(text, lexing);
        called.is_empty() || !called.iter().all(harmless)
    }

    /// Asks for what would be lost with what is brought there.
    async fn ask_before(&mut self, backend: &mut Backend, job: &Job<'_>) -> Result<(), Failed> {
        let waits = backend.holds.has(Hold::Trace) && !is_to_be_asked(backend);
        if !job.class.reads.intersects(Reads::WARNINGS) && !waits {
            let how = Asking::before_a_statement(self.limit_ms(job));
            if !job.class.reads.intersects(Reads::FOUND_ROWS) {
                // What follows may have questions of ours.
                self.ask_for(backend, &[&found_rows::MEMORY], how).await?;
            }
            // What is brought there, or what a statement is prepared in, would be set over it.
            self.read_back(backend, how.limit_ms, false).await?;
        }
        Ok(())
    }

    /// Brings the session's state and its prepared statement onto a connection.
    pub(crate) async fn make_ready(
        &mut self,
        backend: &mut Backend,
        job: &Job<'_>,
    ) -> Result<(), Failed> {
        self.ask_before(backend, job).await?;
        let sees = sees_there(backend, job);
        if backend.needs_reset(
            &self.wanted(backend, job),
            sees,
            self.remembered(job),
            self.tracking_on(backend, job),
        ) {
            self.remember_before_reset(backend, job).await?;
        }
        let work = async {
            let mut state = self.wanted(backend, job);
            if knows_what_is_asked(backend, job)
                && !backend.hello.is_mariadb()
                && backend.needs_sets(&state, sees)
            {
                let message = "The session's variables are not where the warnings of its last statement are, and to set them there would end the warnings: \
                               ask for them without naming a variable";
                return Err(BackendFailed::Sync {
                    code: 1235,
                    state: *b"42000",
                    message: message.to_owned(),
                });
            }
            let kept_from = || {
                backend.is_kept_from(
                    &state,
                    sees,
                    self.remembered(job),
                    self.tracking_on(backend, job),
                )
            };
            if matches!(job.what, What::Query(_))
                && ends_what_is_held(job.class)
                && ends_alike(backend.state(), &state)
                && kept_from()
            {
                // It needs nothing, and is what brings the session back.
                return Ok(());
            }
            match backend
                .sync(
                    &state,
                    sees,
                    self.remembered(job),
                    self.tracking_on(backend, job),
                )
                .await
            {
                Err(failed) if failed.is_sandbox() && matches!(job.what, What::Query(_)) => {
                    backend.holds.add(Hold::ExpiredPassword);
                    return Ok(());
                }
                Err(BackendFailed::Sync { code, .. })
                    if [
                        errors::UNKNOWN_DATABASE.number,
                        errors::DB_ACCESS_DENIED.number,
                    ]
                    .contains(&code)
                        && self.can_do_without_its_schema(job) =>
                {
                    let own = job
                        .what
                        .prepared_in()
                        .filter(|own| !own.is_empty() && **own != self.state.schema);
                    state.to_mut().schema = own.unwrap_or_else(|| &backend.state().schema).clone();
                    backend
                        .sync(
                            &state,
                            sees,
                            self.remembered(job),
                            self.tracking_on(backend, job),
                        )
                        .await?;
                }
                synced => synced?,
            }
            let several = self.several(backend, job);
            if several != backend.takes_several() {
                backend.take_several(several).await?;
            }
            let max = job.epoch.snapshot.variables.mysql_max_stmts_per_connection;
            match job.what {
                What::Execute(execution) => backend
                    .prepare(
                        execution.prepared(),
                        execution.client,
                        execution.bindings,
                        max,
                    )
                    .await
                    .map(drop)?,
                What::Dynamic(dynamic) if !dynamic.deallocates() => {
                    dynamic.bring(backend, max, self.life).await.map(drop)?
                }
                _ => {}
            }
            // What the statement was prepared in may have needed a reset, which has taken all that
            // was brought before.
            backend
                .sync(
                    &state,
                    sees,
                    self.remembered(job),
                    self.tracking_on(backend, job),
                )
                .await?;
            if several != backend.takes_several() {
                backend.take_several(several).await?;
            }
            if self.has_old_warnings(backend, job) {
                if asks_for_row_count(job.sent()) {
                    let message = "ROW_COUNT of GET DIAGNOSTICS is known on the connection of the statement before only: SELECT ROW_COUNT() is answered everywhere".to_owned();
                    return Err(BackendFailed::Sync {
                        code: 1235,
                        state: *b"42000",
                        message,
                    });
                }
                backend.forget_warnings().await?;
            }
            Ok(())
        };
        let done = self.prepared_for(self.limit_ms(job), work, false).await;
        if done.as_ref().is_err_and(is_left_alone) {
            // It may wait for a lock there.
            self.end_on_server(backend);
        }
        done?;
        if self.lacks_insert_id(backend, job) {
            self.bring_insert_id(backend, job).await?;
        }
        Ok(())
    }

    /// A reset makes the server forget what it remembers of the session's statements.
    async fn remember_before_reset(
        &mut self,
        backend: &mut Backend,
        job: &Job<'_>,
    ) -> Result<(), Failed> {
        let asks = |reads, hold| job.class.reads.intersects(reads) && backend.holds.has(hold);
        if asks(Reads::FOUND_ROWS, Hold::FoundRows) || asks(Reads::WARNINGS, Hold::Diagnostics) {
            let message = "What the statement asks for is on a connection that only a reset brings to the session's state, which would end it".to_owned();
            return Err(Failed::Backend(BackendFailed::Sync {
                code: 1235,
                state: *b"42000",
                message,
            }));
        }
        let how = Asking::before_a_statement(self.limit_ms(job));
        let asked = self.ask_for(backend, &[&insert_id::MEMORY], how).await;
        asked.map(drop)
    }
}

/// Whether we went away from a server that may still be at work.
fn is_left_alone(why: &Failed) -> bool {
    matches!(
        why,
        Failed::Client
            | Failed::Killed
            | Failed::Backend(BackendFailed::CutOff | BackendFailed::TooSlow { .. })
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_get_diagnostics_reads_a_variable_only_for_the_conditions_number() {
        for text in [
            "GET DIAGNOSTICS @n = NUMBER",
            "get current diagnostics condition 1 @m = MESSAGE_TEXT, @c = RETURNED_SQLSTATE",
            "GET DIAGNOSTICS @condition = NUMBER, @n = ROW_COUNT",
        ] {
            assert!(only_sets_variables(text.as_bytes()), "{text}");
            assert_eq!(
                asks_for_row_count(text.as_bytes()),
                text.ends_with("ROW_COUNT"),
                "{text}"
            );
        }
        for text in [
            "GET DIAGNOSTICS CONDITION @i @m = MESSAGE_TEXT",
            "SELECT @@warning_count, @a",
            "SHOW WARNINGS",
            "",
        ] {
            assert!(!only_sets_variables(text.as_bytes()), "{text}");
        }
    }
}
