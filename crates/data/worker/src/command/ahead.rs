//! Statements that have a connection already, and perhaps an answer, before they go the long way.

use crate::command::asked::Executed;
use backend::{Backend, BackendFailed};
use rt::{Chunk, Instant};
use wire::outline::Outline;
use wire::response::Expect;

/// Command of a usual statement.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sent {
    /// Its bytes, headers among them.
    pub(crate) len: usize,
    pub(crate) expect: Expect,
    pub(crate) executed: Option<Executed>,
    /// As [`crate::forward::relay::Ask::outline`].
    pub(crate) outline: Option<Outline>,
    /// As [`crate::forward::relay::Ask::columns`].
    pub(crate) columns: Option<u16>,
    /// As [`crate::command::withheld::Withhold::demoted`].
    pub(crate) demoted: bool,
}

/// Connection of a statement that has left the short way.
pub(crate) struct Ahead {
    pub(crate) backend: Box<Backend>,
    /// Command that was sent on it, if it was.
    pub(crate) asked: Option<Before>,
}

/// Command that was sent, or could not be.
pub(crate) struct Before {
    pub(crate) since: Instant,
    pub(crate) sent: Sent,
    /// Beginning of the answer, if some of it is here, or why there is none.
    pub(crate) came: Option<Result<Chunk, BackendFailed>>,
}

impl Ahead {
    /// The connection alone: nothing was sent there yet.
    pub(crate) fn unsent(backend: Box<Backend>) -> Box<Self> {
        Box::new(Self {
            backend,
            asked: None,
        })
    }

    /// The connection, and what became of the command there.
    pub(crate) fn asked(
        backend: Box<Backend>,
        (since, sent): (Instant, Sent),
        came: Option<Result<Chunk, BackendFailed>>,
    ) -> Box<Self> {
        let asked = Some(Before { since, sent, came });
        Box::new(Self { backend, asked })
    }
}
