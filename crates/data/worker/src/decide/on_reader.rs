//! A READ ONLY transaction that the read/write split has led to a reader: what would stay there,
//! and is looked for at the writer afterwards, is not done there.

use crate::command::job::What;
use crate::command::trouble::Ended;
use crate::known::answer::Complaint;
use crate::known::epoch::Epoch;
use crate::session::Session;
use backend::{Backend, Hold};
use sql::{Class, Leaves};
use wire::status;

/// Locks that end a transaction before it begins.
const LOCKS: Leaves = Leaves::LOCK_TABLES.with(Leaves::FLUSH_READ_LOCK);
/// Temporary tables and locks that outlive a transaction, on its connection.
const STAYS: Leaves = Leaves::TEMP_TABLE.with(Leaves::GET_LOCK);

impl Session {
    /// The hostgroup of such a transaction, if one is open. Who led it there may have other
    /// settings by now.
    pub(crate) fn reads_on(&self) -> Option<u32> {
        if self.held.is_empty() || self.held.transaction_flags() & status::IN_TRANS_READONLY == 0 {
            return None;
        }
        let hostgroup = self.held.transaction()?;
        let is_led =
            |(of, backend): (u32, &Backend)| of == hostgroup && backend.lease.reads_by_split;
        self.held.iter().any(is_led).then_some(hostgroup)
    }

    /// Whether a lock is asked for by itself, or who has it: it is taken where all others are, at
    /// the writer.
    pub(crate) fn locks_beside_reader(&self, class: &Class<'_>, text: &[u8]) -> bool {
        if self.reads_on().is_none() {
            return false;
        }
        class.leaves.intersects(Leaves::GET_LOCK) && backend::is_only_user_lock(text)
            || backend::is_only_about_user_lock(text)
    }

    /// Before a statement is decided: one that ends the transaction by itself, as a server does for
    /// BEGIN, finds none any more, and goes where it would without. Otherwise why it is refused.
    pub(crate) async fn leave_reader(
        &mut self,
        epoch: &Epoch,
        class: &Class<'_>,
        (text, what): (&[u8], What<'_>),
    ) -> Result<Option<Complaint>, Ended> {
        let Some(hostgroup) = self.reads_on() else {
            return Ok(None);
        };
        let begins = class.begins_transaction && !class.ends_transaction;
        #[cfg(debug_assertions)]
        let begins = begins && !backend::planted::BEGIN_THERE.get();
        let may_end_it = if backend::is_call(class) && !class.multi {
            let schema = what.prepared_in().unwrap_or(&self.state.schema);
            self.are_strangers(&epoch.snapshot, schema, text, self.lexing_of(what))
        } else {
            class.multi
                || class
                    .leaves
                    .intersects(Leaves::UNKNOWN_STATE | Leaves::SQL_EXECUTE)
        };
        #[cfg(debug_assertions)]
        let may_end_it = may_end_it && !backend::planted::BEGIN_THERE.get();
        if may_end_it {
            let words = "It may end this READ ONLY transaction, which the read/write split has led to a reader, and write there: end the transaction first, \
                         send its statements one by one, or list what it calls in read_only_routines";
            return Ok(Some(Complaint::with(1235, "42000", words)));
        }
        if !(begins || class.leaves.intersects(LOCKS)) {
            let stays = class.leaves.intersects(STAYS) && !backend::is_only_user_lock(text);
            let words = "It would stay on the reader that the read/write split has led this READ ONLY transaction to, and be missed at the writer: \
                         end the transaction first";
            return Ok(stays.then(|| Complaint::with(1235, "42000", words)));
        }
        let Some(backend) = self.held.take(hostgroup) else {
            return Ok(None);
        };
        let is_all = backend.holds.iter().all(|hold| {
            matches!(
                hold,
                Hold::Transaction
                    | Hold::InsertId
                    | Hold::Diagnostics
                    | Hold::FoundRows
                    | Hold::NotAllowed
                    | Hold::Delay
            )
        });
        if !is_all {
            self.held.put(hostgroup, backend);
            let words = "The open READ ONLY transaction is on a reader, and its connection has more of this session than the transaction: end it first";
            return Ok(Some(Complaint::with(1235, "42000", words)));
        }
        // It has written nothing: a reset ends it as a COMMIT does.
        self.core.pools.clean(backend).await;
        Ok(None)
    }
}
