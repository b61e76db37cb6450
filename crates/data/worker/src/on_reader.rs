//! A READ ONLY transaction that the read/write split has led to a reader: what would stay there, and is looked for at the writer afterwards, is not done there.

use crate::answer::Complaint;
use crate::epoch::Epoch;
use crate::session::{Ended, Session};
use backend::Hold;
use sql::{Class, Leaves};
use wire::status;

/// What ends a transaction before it begins.
const LOCKS: Leaves = Leaves::LOCK_TABLES.with(Leaves::FLUSH_READ_LOCK);
/// What outlives a transaction, on its connection.
const STAYS: Leaves = Leaves::TEMP_TABLE.with(Leaves::GET_LOCK);

impl Session {
    /// The hostgroup of such a transaction, if one is open.
    pub(crate) fn reads_on(&self, epoch: &Epoch) -> Option<u32> {
        if self.held.is_empty() || self.held.transaction_flags() & status::IN_TRANS_READONLY == 0 {
            return None;
        }
        let hostgroup = self.held.transaction()?;
        let split = plan::split_of(&epoch.snapshot, &self.user)?;
        (split.read_hostgroup == hostgroup && hostgroup != self.user.default_hostgroup).then_some(hostgroup)
    }

    /// Whether a lock is asked for by itself: it is taken where all others are, at the writer.
    pub(crate) fn locks_beside_reader(&self, epoch: &Epoch, class: &Class<'_>, text: &[u8]) -> bool {
        class.leaves.intersects(Leaves::GET_LOCK) && backend::is_only_user_lock(text) && self.reads_on(epoch).is_some()
    }

    /// Before a statement is decided: one that ends the transaction by itself, as a server does for BEGIN, finds none any more, and goes where it would without.
    /// Otherwise why it is refused.
    pub(crate) async fn leave_reader(
        &mut self,
        epoch: &Epoch,
        class: &Class<'_>,
        text: &[u8],
    ) -> Result<Option<Complaint>, Ended> {
        let Some(hostgroup) = self.reads_on(epoch) else { return Ok(None) };
        let begins = class.begins_transaction && !class.ends_transaction;
        #[cfg(feature = "planted")]
        let begins = begins && !backend::planted::BEGIN_THERE.get();
        if class.multi || !(begins || class.leaves.intersects(LOCKS)) {
            let stays = class.leaves.intersects(STAYS) && !backend::is_only_user_lock(text);
            let words = "It would stay on the reader that the read/write split has led this READ ONLY transaction to, and be missed at the writer: \
                         end the transaction first";
            return Ok(stays.then(|| Complaint::with(1235, "42000", words)));
        }
        let Some(backend) = self.held.take(hostgroup) else { return Ok(None) };
        let is_all = backend.holds.iter().all(|hold| {
            matches!(
                hold,
                Hold::Transaction | Hold::InsertId | Hold::Diagnostics | Hold::FoundRows | Hold::NotAllowed | Hold::Delay
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
