//! Facts of a statement that say which connection it may have: whether it sees variables of a session, and
//! how long it may take.

use crate::command::job::{Job, What};
use crate::command::settings::{mentions_texts, sees_user_variables};
use backend::Sees;
use config::Variables;
use sql::words::Words;
use sql::{Leaves, Reads};

/// Memories of the statement before, which a server tells whoever asks on the same connection.
pub(crate) const REMEMBERED: Reads = sql::dynamic::DISTURBED.without(Reads::ROW_COUNT);

/// Sending waits while so much is unsent.
pub(crate) const LARGE: usize = 64 << 10;

/// Whether it executes a text that only the server knows, and that may ask for anything.
pub(crate) fn executes_unread(job: &Job<'_>) -> bool {
    matches!(job.what, What::Query(_)) && job.class.leaves.intersects(Leaves::SQL_EXECUTE)
}

/// Tells what a statement may see of user variables.
pub(crate) fn sees(job: &Job<'_>) -> Sees {
    match job.what {
        // To MySQL they have in the statement the types that they have now.
        What::Prepare(..) if job.class.reads.intersects(Reads::USER_VARIABLE) => Sees::Variables,
        What::Prepare(..) | What::Raw(..) => Sees::Nothing,
        What::Dynamic(dynamic) if dynamic.uses_variables() => Sees::Variables,
        // From then on all that is said there is shown.
        What::Query(_) if begins_a_trace(job) => Sees::Variables,
        // No view without FROM; and taking others' variables away would take the warnings away that
        // it asks for.
        _ if job.class.reads.intersects(Reads::WARNINGS)
            && !Words::new(job.sent()).any(|token| token.is("FROM")) =>
        {
            match sees_user_variables(job.class) {
                Sees::InViews => Sees::Nothing,
                other => other,
            }
        }
        _ => sees_user_variables(job.class),
    }
}

/// Whether the server may keep for the session to see what is said on its connection from then on.
pub(crate) fn begins_a_trace(job: &Job<'_>) -> bool {
    job.class.sets && mentions_texts(job.sent())
}

/// Milliseconds that a statement may take for which a rule or hint asks so much. 0 asks for the
/// default, as in ProxySQL.
pub(crate) fn limit_ms(asked: Option<u64>, variables: &Variables) -> u64 {
    asked
        .filter(|ms| *ms > 0)
        .unwrap_or(variables.mysql_default_query_timeout)
}
