//! Room on a server for a statement to prepare there.

use crate::command::job::{Job, What};
use crate::command::trouble::Failed;
use crate::session::Session;
use backend::{Backend, Unreported};

impl Session {
    /// Where the server had no room for another prepared statement, what nobody needs there is
    /// closed; whether it did.
    pub(crate) async fn make_room(
        &self,
        backend: &mut Backend,
        job: &Job<'_>,
        why: &Failed,
    ) -> Result<bool, Failed> {
        let Failed::Backend(failed) = why else {
            return Ok(false);
        };
        let Some(allowed) = failed.crowd() else {
            return Ok(false);
        };
        // The client does not know of the error, and the server does: its counts are that one's.
        backend.has_failed_unseen();
        if !matches!(job.what, What::Execute(_)) {
            backend.has_failed(Unreported::Noise);
        }
        let room = async {
            let pools = &self.core.pools;
            pools.make_room_for_statement(backend, allowed).await;
            Ok(())
        };
        self.prepared_for(self.limit_ms(job), room, false).await?;
        Ok(true)
    }
}
