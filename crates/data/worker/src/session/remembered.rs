//! Knowledge of the session itself of what servers would remember of its past.

use crate::known::answer::Complaint;
use crate::known::by_state::Kept;
use crate::known::reading::Reading;
use crate::session::{insert_id, written};
use backend::State;
use std::cell::{Cell, RefCell};

/// Knowledge of the session itself of what servers would remember of its past. The default is that
/// of a session that has just begun.
#[derive(Default)]
pub(crate) struct Remembered {
    /// Value of FOUND_ROWS().
    pub(crate) found_rows: Cell<Recall>,
    /// Whether the server that has found rows last is a MariaDB; `None` if none has.
    pub(crate) of_mariadb: Cell<Option<bool>>,
    /// Warnings that SHOW WARNINGS shows, where no connection is kept that knows.
    pub(crate) warnings: RefCell<OfSession>,
    /// Complaint of the proxy itself about the statement at work.
    pub(crate) refused: Cell<Option<Box<Complaint>>>,
    /// Value of LAST_INSERT_ID().
    pub(crate) insert_id: RefCell<insert_id::OfSession>,
    /// Value of `@@last_gtid`.
    pub(crate) last_gtid: RefCell<LastGtid>,
    /// Writes of the session, as GTIDs.
    pub(crate) written: written::Written,
    /// On how many connections its writes may have taken numbers from sequences.
    pub(crate) drawn_at: Cell<u32>,
    /// Whether the session has set `pseudo_thread_id`, which CONNECTION_ID() is from then on.
    pub(crate) numbered: Cell<bool>,
    /// Value of ROW_COUNT().
    pub(crate) row_count: Cell<i64>,
    /// No server knows that ROW_COUNT(): it is of what the proxy has answered, or of the statement
    /// before one that was prepared.
    pub(crate) uncounted: Cell<bool>,
}

impl Remembered {
    /// COM_RESET_CONNECTION and COM_CHANGE_USER make a server forget all but FOUND_ROWS().
    pub(crate) fn forget(&mut self) {
        *self = Self {
            found_rows: self.found_rows.take().into(),
            of_mariadb: self.of_mariadb.take().into(),
            ..Self::default()
        };
    }

    /// Whether the last statement was no complaint of the proxy's own.
    pub(crate) fn has_refused_nothing(&self) -> bool {
        let refused = self.refused.take();
        let nothing = refused.is_none();
        self.refused.set(refused);
        nothing
    }

    /// Notes that an answer of the proxy's own has left this `ROW_COUNT()`, and nothing else: no
    /// server knows it.
    pub(crate) fn counts_by_itself(&self, row_count: i64) {
        self.row_count.set(row_count);
        self.uncounted.set(true);
    }
}

/// FOUND_ROWS() as the session knows it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Recall {
    pub(crate) found: Found,
    /// Number of the session's statement that it is about; `None` if no connection knows it: the
    /// proxy has answered, or it was given back.
    pub(crate) by: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// So many.
    Rows(u32),
    /// Only the server knows where that statement ran.
    Unknown,
    /// The connection that knew is gone.
    Lost,
}

impl Default for Recall {
    /// Before the first statement.
    fn default() -> Self {
        Self {
            found: Found::Rows(0),
            by: None,
        }
    }
}

/// FOUND_ROWS() is so many, or was lost, and no connection knows it.
pub(crate) fn rows(rows: Option<u32>) -> Recall {
    Recall {
        found: rows.map_or(Found::Lost, Found::Rows),
        by: None,
    }
}

/// Warnings that a session has been told of. Most sessions have none.
pub(crate) type OfSession = Option<Box<Warnings>>;

/// Warnings that no connection of the session knows any more.
#[derive(Debug)]
pub(crate) enum Warnings {
    Kept(Kept),
    /// Complaint of the proxy about the last statement: no server knows of it.
    Ours(Box<Complaint>),
    /// The connection broke that knew them.
    Lost,
}

/// Value of `@@last_gtid` for a session.
#[derive(Debug, Default)]
pub(crate) enum LastGtid {
    /// No value: the session has written nothing that has a number.
    #[default]
    Nothing,
    /// As the server told it.
    Is(Box<str>),
    /// The session wrote where the server did not tell.
    Unknown,
}

impl LastGtid {
    /// The value, if somebody knows it.
    pub(crate) fn known(&self) -> Option<&str> {
        match self {
            Self::Nothing => Some(""),
            Self::Is(value) => Some(value),
            Self::Unknown => None,
        }
    }
}

/// A SET that was sent, on its way into the memory: what was set before it, and what its client was
/// told.
#[derive(Debug)]
pub(crate) struct Sent {
    /// `None` for one that was taken at its word: there is nothing to remember.
    pub(crate) new: Option<New>,
    /// How many warnings the server told of, and which they are when that is known.
    pub(crate) warned: u16,
    pub(crate) warnings: Option<Kept>,
}

#[derive(Debug)]
pub(crate) struct New {
    pub(crate) before: State,
    pub(crate) reading: Reading,
    pub(crate) told: Box<[u8]>,
    pub(crate) reads: bool,
}
