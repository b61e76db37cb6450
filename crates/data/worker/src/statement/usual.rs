//! Usual statements are told from others: no stage has anything to do for one.
//!
//! Most are: a read, a change, BEGIN, COMMIT or ROLLBACK that leaves nothing but a transaction on its
//! connection and asks for nothing that a server remembers, of a session that has nothing anywhere but
//! perhaps a transaction. Whatever is not so goes the long way, with the same outcome.

use crate::command::job::What;
use crate::known::epoch::Epoch;
use crate::session::Session;
use backend::{Backend, Hold};
use plan::Plan;
use sql::{Class, CommandCounter};

/// Whether a text leaves nothing and asks for nothing but rows: a read, or a change of rows.
fn only_reads_or_writes(class: &Class<'_>) -> bool {
    use CommandCounter as C;
    let is_read = class.command == C::Select && class.plain_read;
    let changes = matches!(
        class.command,
        C::Insert | C::Replace | C::Update | C::Delete
    );
    (is_read || changes)
        && class.reads.is_empty()
        && class.leaves.is_empty()
        && !class.multi
        && !class.sets
        && !class.ddl
}

/// Whether a text is BEGIN, COMMIT or ROLLBACK, or one of their like, and nothing more.
fn only_bounds(class: &Class<'_>) -> bool {
    use CommandCounter as C;
    let is_one = match class.command {
        C::Begin | C::StartTransaction => class.begins_transaction && !class.ends_transaction,
        C::Commit | C::Rollback => class.ends_transaction && !class.begins_transaction,
        _ => false,
    };
    is_one
        && class.reads.is_empty()
        && class.leaves.is_empty()
        && !class.multi
        && !class.releases
        && !class.sets
}

/// Whether no rule or hint asks for more than a hostgroup.
fn only_goes(plan: &Plan) -> bool {
    plan.answer.is_none()
        && plan.gather.is_none()
        && plan.numbered().is_none()
        && plan.mirror.is_none()
        && plan.multiplex.is_none()
        && plan.delay_ms.is_none()
        && plan.cache_ttl_ms.is_none()
        && plan.rows_max().is_none()
        && plan.next_flag_in.is_none()
        && plan.must_see().is_none()
        && !plan.new_connection
}

impl Session {
    /// Whether no stage before [`Session::forward`] has anything to do for a statement.
    pub(crate) fn is_usual(
        &self,
        epoch: &Epoch,
        class: &Class<'_>,
        what: What<'_>,
        plan: &Plan,
    ) -> bool {
        let comes_alone = match what {
            What::Query(_) => true,
            What::Execute(execution) => {
                !execution.is_bulk() && !execution.opens_cursor() && !execution.has_long()
            }
            What::Raw(..) | What::Prepare(_) | What::Dynamic(_) | What::Refused(_) => false,
        };
        comes_alone
            && epoch.usual
            && (only_reads_or_writes(class) || self.is_usual_bound(class))
            && only_goes(plan)
            && self.state.autocommit
            && !self.is_unsure()
            && self.cached.is_unwatched()
            && self.holds_nothing_but(plan.hostgroup())
            && self.global.is_none()
            && !self.may_be_replayed(epoch, plan)
    }

    /// Whether it begins a transaction where none is open, or ends the one that is.
    pub(crate) fn is_usual_bound(&self, class: &Class<'_>) -> bool {
        only_bounds(class)
            && !self.begins_here(class)
            && class.begins_transaction == self.held.is_empty()
            // It may mean AND CHAIN or RELEASE, too.
            && self.state.variable("completion_type").is_none()
    }

    /// Whether it keeps no connection, or one of this hostgroup for a transaction.
    fn holds_nothing_but(&self, hostgroup: u32) -> bool {
        let mut held = self.held.iter();
        let of_transaction = |(of, backend): (u32, &Backend)| {
            of == hostgroup
                && backend.holds.is_only(Hold::Transaction)
                && !backend.place().is_cut_off()
        };
        held.next().is_none_or(of_transaction) && held.next().is_none()
    }
}
