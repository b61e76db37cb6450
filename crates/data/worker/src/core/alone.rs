//! Statements that run on a connection by themselves, whose session it is not: copies for mirrors, and the
//! parts of what several partitions answer.

use crate::command::settings::{LAST_GTID, may_run_programs, sees_user_variables};
use crate::core::Core;
use backend::{Answered, Backend, BackendFailed, Hold, Sees, State, Tracking};
use sql::{Class, CommandCounter, Leaves, Reads};
use wire::response::{Outcome, Response};
use wire::track::Change;

/// Only its own connection can do anything with it.
const OWN: Leaves = Leaves::LOCK_TABLES
    .with(Leaves::UNLOCK_TABLES)
    .with(Leaves::FLUSH_READ_LOCK)
    .with(Leaves::GET_LOCK)
    .with(Leaves::RELEASE_LOCK)
    .with(Leaves::SQL_PREPARE)
    .with(Leaves::SQL_EXECUTE)
    .with(Leaves::SQL_DEALLOCATE)
    .with(Leaves::SAVEPOINT)
    .with(Leaves::XA)
    .with(Leaves::HANDLER)
    .with(Leaves::TEMP_TABLE)
    .with(Leaves::DROP_TEMP_TABLE)
    .with(Leaves::SET);

/// Elsewhere it would read, and perhaps write, something else.
const BOUND: Reads = Reads::LAST_INSERT_ID
    .with(Reads::FOUND_ROWS)
    .with(Reads::ROW_COUNT)
    .with(Reads::CONNECTION_ID)
    .with(Reads::WARNINGS)
    .with(Reads::USER_VARIABLE)
    .with(Reads::PREPARED)
    .with(Reads::HANDLER);

/// Whether it means the same on any connection.
pub(crate) fn is_free(class: &Class<'_>) -> bool {
    #[cfg(debug_assertions)]
    if backend::planted::COPY_ALL.get() {
        return true;
    }
    !class.leaves.intersects(OWN)
        && !class.reads.intersects(BOUND)
        && !matches!(
            class.command,
            CommandCounter::RollbackSavepoint | CommandCounter::ReleaseSavepoint
        )
        && class.use_db.is_none()
        && !class.multi
        && !(class.begins_transaction
            || class.ends_transaction
            || class.releases
            || class.sets
            || class.kills
            || class.local_infile)
}

/// The server tells what triggers and the like have changed, and when the schema is dropped that a
/// connection is in.
pub(crate) fn tracking(class: &Class<'_>) -> Tracking {
    if may_run_programs(class) || class.ddl {
        Tracking::On
    } else {
        Tracking::Any
    }
}

/// Whether the server tells of a change in its session. It knows best in which schema that is.
pub(crate) fn learn_schema(backend: &mut Backend, response: &Response) -> bool {
    let mut changed = false;
    for change in response.changes() {
        match change {
            Change::Schema(name) => match std::str::from_utf8(name) {
                Ok(name) => {
                    changed |= *name != *backend.state().schema;
                    backend.state_mut().schema = name.into();
                }
                Err(_) => backend.retire(),
            },
            // After each statement, where the operator has everything told, or after each write.
            Change::Variable { name, .. } => {
                changed |= ![&b"statement_id"[..], LAST_GTID]
                    .iter()
                    .any(|own| name.eq_ignore_ascii_case(own));
            }
            Change::State(on) => changed |= on,
            _ => {}
        }
    }
    changed
}

/// Takes a connection: what its server remembers afterwards is no session's.
pub(crate) fn takes(backend: &mut Backend) {
    backend.lasting.last_session = backend::NOBODY;
    backend.lasting.warnings_left = true;
    backend.lasting.insert_id = None;
}

/// Brings a connection to this state, in which it takes one statement at a time: whoever may send
/// several has them sent one by one.
pub(crate) async fn come_to(
    backend: &mut Backend,
    state: &State,
    class: &Class<'_>,
) -> Result<(), BackendFailed> {
    let sees = sees_user_variables(class);
    come_with(backend, state, (sees, tracking(class))).await
}

/// Brings a connection to this state for statements that see user variables or not, and with this tracking.
pub(crate) async fn come_with(
    backend: &mut Backend,
    state: &State,
    (sees, tracking): (Sees, Tracking),
) -> Result<(), BackendFailed> {
    backend.sync(state, sees, None, tracking).await?;
    if backend.takes_several() {
        backend.take_several(false).await?;
    }
    Ok(())
}

/// Notes what a statement may leave, before it is sent.
pub(crate) fn before(backend: &mut Backend, class: &Class<'_>) {
    backend.holds.before(class);
    if class.leaves.intersects(Leaves::UNKNOWN_FUNCTION) {
        backend.holds.add(Hold::Routine);
    }
}

/// Notes what a statement has left. What programs have set there is nobody's: a reset takes it
/// away. An error tells of nothing.
pub(crate) fn learn(backend: &mut Backend, class: &Class<'_>, response: &Response) {
    let ok = !matches!(response.outcome(), Outcome::Err { .. });
    let answered = Answered {
        ok,
        status: response.is_status_known().then(|| response.status()),
        warnings: response.warnings(),
        used_tables: true,
    };
    backend.holds.after(class, &answered);
    let is_untold = learn_schema(backend, response)
        || response.is_session_track_lost()
        || !ok && may_run_programs(class);
    if is_untold {
        backend.holds.add(Hold::Untold);
    }
}

/// Gives a connection back, cleaned of what the statement has left.
pub(crate) fn gives_back(core: &Core, backend: Box<Backend>) {
    match backend.holds.is_empty() {
        true => core.pools.release(backend),
        false => core.pools.give_up(backend),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_means_something_on_its_own_connection_only_is_left_out() {
        for (text, free) in [
            ("SELECT * FROM t WHERE a = 1", true),
            ("INSERT INTO t VALUES (1)", true),
            ("SELECT a FROM t FOR UPDATE", true),
            ("CREATE TABLE t (a INT)", true),
            ("CALL p()", true),
            ("SELECT 1; SELECT 2", false),
            ("BEGIN", false),
            ("COMMIT", false),
            ("USE other", false),
            ("SET NAMES utf8mb4", false),
            ("SAVEPOINT a", false),
            ("ROLLBACK TO a", false),
            ("ROLLBACK WORK TO SAVEPOINT a", false),
            ("RELEASE SAVEPOINT a", false),
            ("LOCK TABLES t READ", false),
            ("CREATE TEMPORARY TABLE t (a INT)", false),
            ("INSERT INTO t VALUES (LAST_INSERT_ID())", false),
            ("SELECT FOUND_ROWS()", false),
            ("SHOW WARNINGS", false),
            ("SELECT @a", false),
            ("EXECUTE s", false),
            ("KILL 5", false),
        ] {
            assert_eq!(is_free(&sql::class(text.as_bytes())), free, "{text}");
        }
    }
}
