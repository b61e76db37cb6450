//! A connection's knowledge, by how long it lasts: [`Lasting`] goes with it from core to core,
//! [`Local`] stays on one core until a reset, and a [`Lease`] is one session's.

use crate::servers::said::Told;
use crate::session::need::Ways;
use crate::session::own::Owned;
use config::Server as Row;
use rt::Instant;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Known of a connection whoever has it: it goes along, whole, when the connection is lent to
/// another core.
#[derive(Debug, Clone)]
pub struct Lasting {
    /// Value of `LAST_INSERT_ID()` there, if that is known: what a server was last asked or told.
    pub insert_id: Option<u64>,
    /// The session that it served last. What the server remembers of a statement (warnings, ids,
    /// row counts) is that session's.
    pub last_session: u64,
    /// The session whose writes may have taken numbers from sequences there last, since it was
    /// reset; 0 for none.
    pub drew: u64,
    /// The server may still show warnings, of whichever statement.
    pub warnings_left: bool,
    pub(crate) opened_as: OpenedAs,
    pub(crate) ways: Ways,
    /// COM_STMT_CLOSE commands that are still to be sent.
    pub(crate) closing: Vec<u8>,
    /// The server takes several statements in one text.
    pub(crate) several: bool,
    /// How the server tells of every change in its session, if we have asked for that.
    pub(crate) tracking: Option<Arc<Told>>,
    /// The server tells of transactions, because we have asked it to.
    pub(crate) told_of_transactions: bool,
    pub(crate) opened: Instant,
    pub(crate) since: Instant,
    /// When it last answered a ping.
    pub(crate) pinged: Instant,
    pub(crate) queries: u64,
}

impl Lasting {
    /// Of a connection that was opened just now.
    pub(crate) fn new(opened_as: OpenedAs, ways: Ways, now: Instant) -> Self {
        Self {
            insert_id: Some(0),
            last_session: 0,
            drew: 0,
            warnings_left: false,
            opened_as,
            ways,
            closing: Vec::new(),
            several: false,
            tracking: None,
            told_of_transactions: false,
            opened: now,
            since: now,
            pinged: now,
            queries: 0,
        }
    }
}

/// Known of a connection on the core that has it: nothing of it is true any more after a reset, and
/// nobody else is told of it.
#[derive(Debug)]
pub struct Local {
    /// Variables that were set there to what nobody has asked yet.
    pub unread: Unread,
    /// Changes that the server has still to tell: an error tells nothing of what its statement has
    /// changed.
    pub unreported: Unreported,
    /// Things that a session has made there by name; most make nothing.
    pub(crate) owned: Option<Box<Owned>>,
    /// The warnings that are left there may be another session's: no statement of this one has ended
    /// them.
    pub others_warnings: bool,
    /// Number of the session's statement that was the last command there; none if one of ours came
    /// after it.
    pub undisturbed: Option<u32>,
    /// Number of the statement of that session that FOUND_ROWS() is about there, if it is certain.
    pub finder: Option<u32>,
    /// Whether the server has said that ANSI_QUOTES is not in its `sql_mode`, and nothing was set
    /// there since.
    pub plain_quotes: bool,
    /// Whether the connection may have user variables that nobody knows of: a trigger has set them,
    /// and its statement has failed where the server does not tell.
    pub strange_variables: bool,
    /// Something is prepared here otherwise than its session has meant it.
    pub(crate) meant_otherwise: bool,
    /// Known of the programs of users that have run there.
    pub(crate) programs: Programs,
}

impl Default for Local {
    fn default() -> Self {
        Self {
            unread: Unread::default(),
            unreported: Unreported::Nothing,
            owned: None,
            others_warnings: false,
            undisturbed: None,
            finder: None,
            plain_quotes: false,
            strange_variables: false,
            meant_otherwise: false,
            programs: Programs::default(),
        }
    }
}

impl Local {
    /// Of a connection that another core had.
    pub(crate) fn after(lasting: &Lasting) -> Self {
        Self {
            others_warnings: lasting.warnings_left,
            ..Self::default()
        }
    }
}

/// Belongs to the session that has the connection, and ends when it gives it back.
#[derive(Debug, Default)]
pub struct Lease {
    /// The beginning of the answer that is coming, for who has to look at it.
    pub(crate) glimpse: Option<Vec<u8>>,
    /// Statements left before an insert's id is asked for, see
    /// `mysql-auto_increment_delay_multiplex`.
    pub insert_id_left: u64,
    /// When it is asked for at the latest, see `mysql-auto_increment_delay_multiplex_timeout_ms`.
    pub insert_id_until: Option<Instant>,
    /// When the warnings of the last statement are asked for, see `mysql-handle_warnings_delay_ms`.
    pub warnings_until: Option<Instant>,
    /// When it is asked for FOUND_ROWS() if its client is silent until then. Where that is only for
    /// SQL_CALC_FOUND_ROWS, it is kept.
    pub found_rows_until: Option<Instant>,
    /// How many warnings the last statement of the session said that it left; `None` after an
    /// error, which does not say.
    pub warned: Option<u16>,
    /// Until when [`crate::Hold::Delay`] lasts.
    pub delayed_until: Option<Instant>,
    /// When the statement that runs was sent, FOUND_ROWS() here was about its session's last.
    pub knew_found_rows: bool,
    /// Its transaction is here because the read/write split has led it here.
    pub reads_by_split: bool,
    /// Whether the connection is in the schema that a statement was prepared in whose session is in
    /// none itself.
    pub(crate) strays: bool,
}

/// Changes of a session that a server has not told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unreported {
    /// All that there was is told.
    Nothing,
    /// Report, still to come, of a change that is none: MySQL makes one after a PREPARE, EXECUTE or
    /// DEALLOCATE that has failed.
    Noise,
    /// A statement has failed that may have changed something.
    Change,
}

/// Names of variables whose values on a connection are not known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unread {
    /// Session variables, in lower case.
    pub session: BTreeSet<String>,
    /// User variables, in lower case.
    pub user: BTreeSet<String>,
}

impl Unread {
    /// All values are known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.session.is_empty() && self.user.is_empty()
    }
}

/// Knowledge of the programs of users that have run on a connection since it was opened or reset.
#[derive(Debug, Default)]
pub(crate) struct Programs {
    /// A statement has begun a transaction that is open, as far as the server has told.
    pub(crate) begun: bool,
    /// One has run while the server was not to tell all that it can.
    pub(crate) unheard: bool,
    /// When it is asked for what they have left, if the client is silent until then.
    pub(crate) until: Option<Instant>,
}

/// Configuration when a connection was opened, as far as it cannot be changed afterwards.
#[derive(Debug, Clone)]
pub(crate) struct OpenedAs {
    /// The server's, with its TLS.
    pub(crate) row: Arc<Row>,
    /// Version of the header that told the server who the client is; 0 for none.
    pub(crate) proxy_protocol: u8,
}
