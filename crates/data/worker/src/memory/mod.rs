//! What servers remember of a session's past, and how the session keeps it while its connections
//! change: one [`TABLE`], a file for each row of it, and one way to ask ([`drain`]). A new memory
//! is a file and a row.

pub(crate) mod accepted;
pub(crate) mod by_state;
pub(crate) mod drain;
pub(crate) mod generated;
pub(crate) mod insert_id;
pub(crate) mod last_gtid;
pub(crate) mod left;
pub(crate) mod lingers;
pub(crate) mod locks;
pub(crate) mod recall;
pub(crate) mod sequences;
pub(crate) mod tracked;
pub(crate) mod values;
pub(crate) mod variables;
pub(crate) mod warnings;
pub(crate) mod written;

use crate::command::job::Told;
use crate::command::trouble::{Ended, Failed};
use crate::memory::drain::Asking;
use crate::session::Session;
use backend::{Backend, Hold, Holds};
use bridge::Counter;
use sql::Reads;
use std::ops::ControlFlow;
use std::pin::Pin;

/// All that is remembered, in the order in which a connection is asked for it: a question of ours
/// ends what is [`fragile`](Memory::fragile), so that comes first.
pub(crate) static TABLE: [&Memory; 8] = [
    &warnings::MEMORY,
    &recall::MEMORY,
    &tracked::MEMORY,
    &insert_id::MEMORY,
    &locks::MEMORY,
    &variables::MEMORY,
    &left::MEMORY,
    &sequences::MEMORY,
];

/// Something that a server remembers of a session.
pub(crate) struct Memory {
    /// Holds that keep a connection for the memory, if the connection is not to be asked yet.
    holds: &'static [Hold],
    /// Statements that read this find it where it is held.
    reads: Reads,
    /// The next statement ends it, a question of ours as well.
    fragile: bool,
    /// Whether a connection can be asked for it.
    is_there: fn(&Session, &Backend) -> bool,
    /// Asks for it, so that the session has it.
    ask: for<'a> fn(&'a mut Session, &'a mut Backend, Asking) -> Asked<'a>,
    /// The connection is gone that knew.
    lose: fn(&Session),
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
    fn when_read(backend: &Backend) -> Self {
        match backend.holds.are_only(&[Hold::Procedure, Hold::Routine]) {
            true => Self::Nobodys,
            false => Self::Stays,
        }
    }
}

/// For a memory that no question brings: it ends with its connection.
fn never_there(_: &Session, _: &Backend) -> bool {
    false
}

fn never_asked<'a>(_: &'a mut Session, _: &'a mut Backend, _: Asking) -> Asked<'a> {
    Box::pin(std::future::ready(Ok(After::Stays)))
}

/// For what is lost without a word: who needs it finds its connection gone.
fn nothing_lost(_: &Session) {}

impl Session {
    /// A connection is gone that was kept for these: who asks for what it knew, and no other
    /// does, is told.
    pub(crate) fn lose_memories(&self, kept: Holds) {
        for memory in TABLE {
            let is_lost =
                |hold: &Hold| kept.has(*hold) && !self.held.holds().any(|one| one == *hold);
            if memory.holds.iter().any(is_lost) {
                (memory.lose)(self);
            }
        }
    }

    /// Gives the client rows that no server was asked for, `seq` being the number of their last
    /// packet.
    async fn say_rows(
        &mut self,
        out: Vec<u8>,
        seq: u8,
        rows: u64,
    ) -> Result<ControlFlow<Told>, Ended> {
        self.turn.sent = seq;
        self.core
            .tally
            .add(Counter::QueriesFrontendsBytesSent, out.len() as u64);
        self.hand_over(out).await?;
        Ok(ControlFlow::Break(Told {
            rows_sent: rows,
            row_count: -1,
            ..Told::default()
        }))
    }
}

/// The holds of memories that a statement with these reads asks for.
pub(crate) fn asked_by(reads: Reads) -> impl Iterator<Item = Hold> {
    let asked = TABLE
        .iter()
        .filter(move |memory| reads.intersects(memory.reads));
    asked.flat_map(|memory| memory.holds.iter().copied())
}
