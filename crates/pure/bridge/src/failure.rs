//! What every failure answers: whose doing it was, whether to try again, what the client may read.

/// Whose doing a failure was. Decides the level in the log and the counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blame {
    /// The client sent something wrong or went away.
    Client,
    /// A server or the way to it.
    Backend,
    /// The operator configured what cannot be done.
    Operator,
    /// A defect of ours.
    Us,
}

/// Whether the same work may be tried again elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// No retry: the work may have taken effect, or the client has seen a part of the answer.
    Never,
    /// Only if running it twice does no harm: it may have run.
    IfHarmless,
    /// Not a byte of it was sent.
    Freely,
}

/// A failure on the data path.
pub trait Failure: std::error::Error {
    /// Whose doing.
    fn blame(&self) -> Blame;
    /// May it be tried again?
    fn retry(&self) -> Retry;
    /// Error number, SQLSTATE and words for the client: no secrets.
    fn to_client(&self) -> (u16, &'static str, String);
}
