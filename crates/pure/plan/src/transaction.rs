//! What rules and hints cannot change: where an open transaction or state of the session already
//! is.

use crate::trace::Trace;
use crate::{By, Plan, SessionFacts};
use config::{Snapshot, Transactions, User};

/// Whether transactions of a user have a branch on each hostgroup that they need.
#[must_use]
pub fn has_branches(snapshot: &Snapshot, user: &User) -> bool {
    user.transactions() == Transactions::Xa
        && user.transaction_persistent
        && !user.fast_forward
        && !snapshot.shards.is_empty()
}

/// A transaction never changes servers, and its reads must not be answered from the cache: they may
/// have to see its own writes.
pub(crate) fn stay<T: Trace>(plan: &mut Plan, session: &SessionFacts<'_>, trace: &mut T) {
    if session.in_transaction.is_some() || !session.autocommit {
        plan.uncache();
    }
    match (session.in_transaction, session.locked) {
        (Some(hostgroup), _) if session.user.transaction_persistent => {
            plan.send_to(hostgroup, By::Transaction);
            trace.saw("transaction", || match session.branches {
                true => format!("begun on hostgroup {hostgroup}, where plain tables are"),
                false => format!("open on hostgroup {hostgroup}: it stays there"),
            });
        }
        (_, Some(hostgroup)) => {
            plan.send_to(hostgroup, By::Lock);
            trace.saw("session", || {
                format!("its state is on hostgroup {hostgroup}: it stays there")
            });
        }
        (Some(hostgroup), None) => trace.saw("transaction", || {
            format!(
                "open on hostgroup {hostgroup}, but transaction_persistent is 0: it does not matter"
            )
        }),
        (None, None) => {}
    }
}
