//! The locks of GET_LOCK() that statements of the session may have taken or released: whether they
//! are there is asked, since a lock that is not keeps no connection.

use crate::command::trouble::Failed;
use crate::memory::row::{After, Memory, nothing_lost};
use crate::session::Session;
use backend::{Backend, Hold};
use sql::Reads;

pub(crate) static MEMORY: Memory = Memory {
    // A statement about locks says so by its text, and is led there by it.
    holds: &[Hold::UserLock],
    reads: Reads::NONE,
    fragile: false,
    is_there: |_, backend| backend.doubts_locks(),
    ask: |session, backend, how| Box::pin(session.ask_locks(backend, how.limit_ms)),
    lose: nothing_lost,
};

impl Session {
    async fn ask_locks(&self, backend: &mut Backend, limit_ms: u64) -> Result<After, Failed> {
        let stopped = self.entry.told_to_leave();
        self.watched(limit_ms, backend.ask_locks(), stopped).await?;
        Ok(After::Told)
    }
}
