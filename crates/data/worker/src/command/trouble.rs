//! Why a statement did not end as it should, how much of an answer its client has, and whether the
//! session lost something.

use crate::known::answer::Complaint;
use backend::BackendFailed;
use net::NetError;

/// Why a response did not reach the client.
#[derive(Debug)]
pub(crate) enum Failed {
    /// The client is gone.
    Client,
    /// Somebody ended the session or the statement.
    Killed,
    /// Somebody ended the statement before anything of it was sent; the connection is as it was.
    Unsent,
    /// The server.
    Backend(BackendFailed),
    /// The client has its rows, an error that says that there are more, and that is all: nothing
    /// keeps the connection with the rest.
    Cut,
    /// The server knows the statement no more, or its tables have changed too much since it was
    /// prepared. The client was told nothing.
    Stale,
}

impl Failed {
    /// Whether the server is still there, and its connection as it was: it refuses to take a state, or
    /// was not told the statement.
    pub(crate) fn leaves_it_alive(&self) -> bool {
        match self {
            Self::Unsent => true,
            Self::Backend(failure) => matches!(
                failure,
                BackendFailed::Sync { .. }
                    | BackendFailed::Kept
                    | BackendFailed::ReadsOtherwise
                    | BackendFailed::ReadOnly { .. }
                    | BackendFailed::Deadlock { .. }
            ),
            _ => false,
        }
    }

    /// Ends the session, whose client was told nothing yet of what it waits for.
    pub(crate) fn ends(self) -> Ended {
        match self {
            Self::Client => Ended::Gone,
            Self::Backend(failure) => Ended::Told(Complaint::of(&failure)),
            Self::Killed | Self::Unsent => Ended::Told(Complaint::interrupted()),
            Self::Cut | Self::Stale => Ended::Broken,
        }
    }
}

impl From<BackendFailed> for Failed {
    fn from(failure: BackendFailed) -> Self {
        Self::Backend(failure)
    }
}

/// How much of the answer a client has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heard {
    Nothing,
    Part,
    All,
}

/// A failure in the middle of a statement.
#[derive(Debug)]
pub(crate) struct Trouble {
    pub(crate) why: Failed,
    /// By the client.
    pub(crate) heard: Heard,
    /// State of the session went with a connection.
    pub(crate) state_lost: bool,
}

impl<F: Into<Failed>> From<F> for Trouble {
    fn from(why: F) -> Self {
        Self {
            why: why.into(),
            heard: Heard::Nothing,
            state_lost: false,
        }
    }
}

impl Trouble {
    /// A failure that may have come in the middle of the answer.
    pub(crate) fn halfway(why: impl Into<Failed>, has_begun: bool) -> Self {
        Self {
            heard: if has_begun {
                Heard::Part
            } else {
                Heard::Nothing
            },
            ..Self::from(why)
        }
    }

    /// A failure behind the answer, by which something of the session is lost.
    pub(crate) fn behind(why: Failed) -> Self {
        Self {
            heard: Heard::All,
            state_lost: true,
            ..Self::from(why)
        }
    }

    /// Adds whether state of the session went with the connection.
    pub(crate) fn losing(self, state_lost: bool) -> Self {
        Self { state_lost, ..self }
    }

    /// Says of a connection that broke that the statement itself was not sent yet, however much was
    /// said there for it. `untold`: what a failed statement has changed was not asked for, and may
    /// be gone with the connection.
    pub(crate) fn before_the_command(why: Failed, untold: bool) -> Self {
        match why {
            Failed::Backend(BackendFailed::BrokeAfter(error)) if !untold => {
                BackendFailed::BrokeBefore(error).into()
            }
            why => why.into(),
        }
    }

    /// Ends the session. Where half of an answer is with the client, only the end of its connection
    /// says that the rest is missing.
    pub(crate) fn ends(self) -> Ended {
        match self.why {
            Failed::Client => Ended::Gone,
            _ if self.heard != Heard::Nothing => Ended::Broken,
            why => why.ends(),
        }
    }
}

/// Why a session ended.
#[derive(Debug)]
pub(crate) enum Ended {
    /// COM_QUIT, or COMMIT RELEASE.
    ByClient,
    /// The connection is gone.
    Gone,
    /// Order to end: by an operator, a timeout, or the end of the proxy. The words are for the
    /// client.
    Told(Complaint),
    /// The rest of an answer is missing, or what the client said made no sense.
    Broken,
    /// Another process goes on with it.
    Elsewhere,
}

impl From<NetError> for Ended {
    fn from(_: NetError) -> Self {
        Self::Gone
    }
}
