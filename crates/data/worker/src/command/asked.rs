//! A command as a server is sent it, and facts of the session that go into its text.

use crate::command::preparing::Shown;
use backend::Backend;
use sql::Reads;
use wire::response::Expect;

/// A command, and what is to be done with its answer.
pub(crate) struct Asked {
    /// As bytes for the wire.
    pub(crate) command: Vec<u8>,
    pub(crate) expect: Expect,
    /// The answer to a COM_STMT_PREPARE, as the client is to see it.
    pub(crate) shown: Option<Shown>,
    /// How the server knows the statement that is executed, if it was prepared.
    pub(crate) executed: Option<Executed>,
}

/// A server's knowledge of the statement that the session asks about.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Knows {
    /// ROW_COUNT() there is that of the session's last statement.
    pub(crate) row_count: bool,
    /// FOUND_ROWS() there is the session's.
    pub(crate) found_rows: bool,
    /// Whether the server warns of FOUND_ROWS().
    pub(crate) warns: bool,
    /// `@@last_gtid` is its to answer.
    pub(crate) last_gtid: bool,
    /// The connection was the session's alone before this statement, because it must not be shared.
    pub(crate) kept: bool,
}

/// Values that a text asks for and that the session may know better than the server.
pub(crate) const TOLD: Reads = Reads::ROW_COUNT
    .with(Reads::FOUND_ROWS)
    .with(Reads::LAST_GTID)
    .with(Reads::WSREP_GTID)
    .with(Reads::CONNECTION_ID);

/// How a server knows a prepared statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Executed {
    /// By an id.
    Id(u32),
    /// By an id, and with many rows at once.
    Bulk(u32),
    /// By the name of a slot.
    Slot(u32),
}

impl Executed {
    /// As servers say it in error 1243.
    pub(crate) fn in_words(self) -> String {
        match self {
            Self::Id(id) | Self::Bulk(id) => format!("({id})"),
            Self::Slot(slot) => format!("({})", backend::slot_name(slot)),
        }
    }

    /// The server knows it no more, or shall forget it.
    pub(crate) fn forget(self, backend: &mut Backend) {
        match self {
            Self::Id(id) | Self::Bulk(id) => backend.forget_prepared(id),
            Self::Slot(slot) => backend.empty_slot(slot),
        }
    }

    /// The server cannot bring the statement up to date, under whatever id.
    pub(crate) fn is_stale(self, backend: &mut Backend) {
        match self {
            Self::Id(id) | Self::Bulk(id) => backend.forget_statement(id),
            Self::Slot(slot) => backend.empty_slot(slot),
        }
    }
}
