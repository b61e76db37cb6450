//! One memory: which holds it has, which statements read it, and how a connection is asked for it.

use crate::command::trouble::Failed;
use crate::session::Session;
use backend::{Backend, Hold};
use config::Snapshot;
use rt::Instant;
use sql::Reads;
use std::pin::Pin;
use std::time::Duration;

/// Something that a server remembers of a session.
pub(crate) struct Memory {
    /// Holds that keep a connection for the memory, if the connection is not to be asked yet.
    pub(crate) holds: &'static [Hold],
    /// Statements that read this find it where it is held.
    pub(crate) reads: Reads,
    /// The next statement ends it, a question of ours as well.
    pub(crate) fragile: bool,
    /// Whether a connection can be asked for it.
    pub(crate) is_there: fn(&Session, &Backend) -> bool,
    /// Asks for it, so that the session has it.
    pub(crate) ask: for<'a> fn(&'a mut Session, &'a mut Backend, Asking) -> Asked<'a>,
    /// The connection is gone that knew.
    pub(crate) lose: fn(&Session),
}

/// Asking of a connection, and how that leaves it.
type Asked<'a> = Pin<Box<dyn Future<Output = Result<After, Failed>> + 'a>>;

/// How a connection is left that was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum After {
    /// The session has what was asked for.
    Told,
    /// Memory that cannot be told elsewhere, and that a further question would end.
    Stays,
    /// The session needs nothing more of what is there, and nobody else may have it as it is.
    Nobodys,
    /// Values of variables are known to be there, and are to be asked for. Then the connection is
    /// nobody's if nothing but holds of programs is on it, and stays otherwise.
    Unread,
}

impl After {
    /// How a connection is left that was [`Unread`](Self::Unread), when its values are known.
    pub(crate) fn when_read(backend: &Backend) -> Self {
        match backend.holds.are_only(&[Hold::Procedure, Hold::Routine]) {
            true => Self::Nobodys,
            false => Self::Stays,
        }
    }
}

/// For a memory that no question brings: it ends with its connection.
pub(crate) fn never_there(_: &Session, _: &Backend) -> bool {
    false
}

pub(crate) fn never_asked<'a>(_: &'a mut Session, _: &'a mut Backend, _: Asking) -> Asked<'a> {
    Box::pin(std::future::ready(Ok(After::Stays)))
}

/// For what is lost without a word: who needs it finds its connection gone.
pub(crate) fn nothing_lost(_: &Session) {}

/// How a connection is asked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asking {
    /// How long a question may take.
    pub(crate) limit_ms: u64,
    /// The client has the answer to its statement, so that a KILL QUERY ends nothing here.
    pub(crate) answered: bool,
    /// The connection is needed: what cannot be told is lost.
    pub(crate) insists: bool,
    /// Memories that the statement that comes ends anyway, so that nobody asks for them.
    pub(crate) ended: Reads,
}

impl Asking {
    /// On the connection of the statement that comes, which ends the warnings of the one before.
    pub(crate) const fn before_a_statement(limit_ms: u64) -> Self {
        Self {
            limit_ms,
            answered: false,
            insists: false,
            ended: Reads::WARNINGS,
        }
    }

    /// On a connection that has just told which variables programs have set there.
    pub(crate) const fn behind_what_was_left(limit_ms: u64) -> Self {
        Self {
            answered: true,
            ..Self::before_a_statement(limit_ms)
        }
    }

    /// On the connection of the statement that the client has just had its answer to.
    pub(crate) const fn behind_a_statement(limit_ms: u64) -> Self {
        Self {
            limit_ms,
            answered: true,
            insists: false,
            ended: Reads::NONE,
        }
    }
}

/// A client that is silent for so long leaves a connection on which programs of users have run:
/// what follows in the same request of an application comes sooner.
pub(crate) const SILENT: Duration = Duration::from_millis(5);

/// Until when a connection is kept for what it remembers of the statement that ends now, unless
/// somebody needs it before; `None` if time does not end it.
pub(crate) fn lingers_until(snapshot: &Snapshot, now: Instant) -> Option<Instant> {
    let limit = snapshot
        .variables
        .mysql_auto_increment_delay_multiplex_timeout_ms;
    (limit > 0).then(|| now + Duration::from_millis(limit))
}
