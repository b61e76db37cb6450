//! A question to a server, or a statement, and how long it may take.

use crate::command::job::Job;
use crate::command::reads::{LARGE, limit_ms};
use crate::command::trouble::Failed;
use crate::session::Session;
use backend::{Backend, BackendFailed};
use rt::{Chunk, Either};
use std::future::Future;
use std::time::Duration;

impl Session {
    /// Milliseconds that a statement may take.
    pub(crate) fn limit_ms(&self, job: &Job<'_>) -> u64 {
        limit_ms(job.plan.timeout_ms, &job.epoch.snapshot.variables)
    }

    /// Sends a command. A server that does not read a large one is not waited for longer than for
    /// its answer.
    pub(crate) async fn send(
        &self,
        backend: &mut Backend,
        command: Chunk,
        limit_ms: u64,
    ) -> Result<(), Failed> {
        if backend.conn.socket().unsent() + command.len() < LARGE {
            return backend.send(command).await.map_err(Failed::Backend);
        }
        if self.entry.interrupted.get() {
            return Err(Failed::Unsent);
        }
        Box::pin(self.watched(limit_ms, backend.send(command), self.entry.told(false))).await
    }

    /// Work of ours on a connection before the statement is sent, or after it was `answered`. A
    /// KILL QUERY ends the statement and not the connection, with all that it is held for: nothing
    /// is begun after it, and what has begun has a moment to end.
    pub(crate) async fn prepared_for<T>(
        &self,
        limit_ms: u64,
        work: impl Future<Output = Result<T, BackendFailed>>,
        answered: bool,
    ) -> Result<T, Failed> {
        if !answered && self.entry.interrupted.get() {
            return Err(Failed::Unsent);
        }
        self.watched(
            limit_ms,
            work,
            self.entry.told_while_asking(&self.core.rt, answered),
        )
        .await
    }

    /// Work of ours on a connection: as long as it may take, and as long as the client is there and
    /// nothing has `stopped` it.
    pub(crate) async fn watched<T>(
        &self,
        limit_ms: u64,
        work: impl Future<Output = Result<T, BackendFailed>>,
        stopped: impl Future<Output = ()>,
    ) -> Result<T, Failed> {
        let work = rt::select(work, rt::select(self.client.socket().closed(), stopped));
        match self
            .core
            .rt
            .timeout(Duration::from_millis(limit_ms), work)
            .await
        {
            Ok(Either::Left(done)) => done.map_err(Failed::Backend),
            Ok(Either::Right(Either::Left(()))) => Err(Failed::Client),
            Ok(Either::Right(Either::Right(()))) if self.entry.cut.get() => {
                Err(Failed::Backend(BackendFailed::CutOff))
            }
            Ok(Either::Right(Either::Right(()))) => Err(Failed::Killed),
            Err(_late) => Err(Failed::Backend(BackendFailed::TooSlow { limit_ms })),
        }
    }
}
