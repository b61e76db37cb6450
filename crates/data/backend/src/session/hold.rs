//! Why a connection cannot be shared, by name. A connection goes back to the pool when none of
//! these holds.

use sql::{Class, Leaves, Reads};
use std::fmt;
use wire::status;

/// A reason to keep a connection for its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Hold {
    /// A transaction is open.
    Transaction,
    /// A statement has used tables while autocommit is off, and no flag tells of a transaction: a
    /// table of an engine without transactions stays locked against changes of its definition, and
    /// savepoints live on, until COMMIT or ROLLBACK. autocommit itself is state of the session and
    /// holds nothing.
    AutocommitOff,
    /// `SET TRANSACTION` waits for the next transaction.
    NextTransaction,
    /// A user variable was set there whose value nobody else can be told: it is too large, or its
    /// name is not known.
    UserVariable,
    /// Variables were set by expressions, and what became of them has not been asked yet.
    Unread,
    /// A temporary table was created there.
    TemporaryTable,
    /// LOCK TABLES or FLUSH TABLES WITH READ LOCK.
    TableLock,
    /// GET_LOCK().
    UserLock,
    /// SQL_CALC_FOUND_ROWS was used: FOUND_ROWS() may follow.
    FoundRows,
    /// PREPARE in SQL.
    SqlPrepare,
    /// XA transaction.
    Xa,
    /// The branch that the session's transaction has on this hostgroup, among others.
    Branch,
    /// HANDLER … OPEN.
    Handler,
    /// An insert made an id: LAST_INSERT_ID() may follow.
    InsertId,
    /// The last statement left warnings or an error: SHOW WARNINGS may follow.
    Diagnostics,
    /// A sequence was used: LASTVAL() may follow.
    Sequence,
    /// A cursor is open: COM_STMT_FETCH may follow.
    Cursor,
    /// A rule, the hostgroup or mysql-multiplexing=false forbids sharing.
    NotAllowed,
    /// mysql-connection_delay_multiplex_ms have not passed since the last statement there.
    Delay,
    /// A procedure was called that may have left what nobody tells.
    Procedure,
    /// A function of users was called that nobody has said to be harmless: it may have set, locked
    /// or made anything there.
    Routine,
    /// The server has said that something of its session changed, and neither it nor the statement
    /// says what: a trigger may have set a user variable or made a temporary table.
    Untold,
    /// The password has expired: the server takes nothing there but a new one.
    ExpiredPassword,
    /// The server knows the client as a replica, by this connection.
    Replica,
    /// The server keeps what is said there, for its session to see: profiles, or the trace of the
    /// optimizer. Nothing of ours is said there that can wait.
    Trace,
    /// The statement may have changed something that we do not model.
    UnknownState,
}

const ALL: [Hold; 26] = [
    Hold::Transaction,
    Hold::AutocommitOff,
    Hold::NextTransaction,
    Hold::UserVariable,
    Hold::Unread,
    Hold::TemporaryTable,
    Hold::TableLock,
    Hold::UserLock,
    Hold::FoundRows,
    Hold::SqlPrepare,
    Hold::Xa,
    Hold::Branch,
    Hold::Handler,
    Hold::InsertId,
    Hold::Diagnostics,
    Hold::Sequence,
    Hold::Cursor,
    Hold::NotAllowed,
    Hold::Delay,
    Hold::Procedure,
    Hold::Routine,
    Hold::Untold,
    Hold::ExpiredPassword,
    Hold::Replica,
    Hold::Trace,
    Hold::UnknownState,
];

impl Hold {
    /// ProxySQL's flag in `stats_mysql_processlist.status_flags` for what keeps a connection; 0 for
    /// what it has none for: a transaction, or a time that has to pass.
    #[must_use]
    pub const fn flag(self) -> u32 {
        match self {
            Self::Transaction
            | Self::Branch
            | Self::AutocommitOff
            | Self::NextTransaction
            | Self::InsertId
            | Self::Delay => 0,
            Self::UserVariable => 0x4,
            Self::SqlPrepare => 0x8,
            Self::TableLock => 0x10,
            Self::TemporaryTable => 0x20,
            Self::UserLock => 0x40,
            Self::FoundRows => 0x200,
            Self::Diagnostics => 0x1000,
            // "Not to be shared", for whichever reason.
            Self::Unread
            | Self::Xa
            | Self::Handler
            | Self::Sequence
            | Self::Cursor
            | Self::NotAllowed
            | Self::Procedure
            | Self::Routine
            | Self::Untold
            | Self::ExpiredPassword
            | Self::Replica
            | Self::Trace
            | Self::UnknownState => 0x80,
        }
    }
}

/// A set of reasons, and of the flags of the server's last answer how it reads texts there, whether
/// its transaction only reads, and [`MANUAL`].
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Holds(u32, u16);

/// Kept for the server's flag that autocommit is on: that it is off, so that nothing known is on.
const MANUAL: u16 = status::AUTOCOMMIT;

/// Of a server's status flags, those that tell how it reads a text.
pub const MODES: u16 = status::NO_BACKSLASH_ESCAPES | status::ANSI_QUOTES;

impl Holds {
    /// No reason: it may be shared.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Is this one of them?
    #[must_use]
    pub const fn has(self, hold: Hold) -> bool {
        self.0 & (1 << hold as u32) != 0
    }

    /// Is this the one and only reason?
    #[must_use]
    pub const fn is_only(self, hold: Hold) -> bool {
        self.0 == 1 << hold as u32
    }

    /// Is there no other reason than these?
    #[must_use]
    pub fn are_only(self, holds: &[Hold]) -> bool {
        holds
            .iter()
            .fold(self.0, |left, hold| left & !(1 << *hold as u32))
            == 0
    }

    /// Add one.
    pub const fn add(&mut self, hold: Hold) {
        self.0 |= 1 << hold as u32;
    }

    /// Take one away.
    pub const fn remove(&mut self, hold: Hold) {
        self.0 &= !(1 << hold as u32);
    }

    /// Add or take away.
    pub const fn put(&mut self, hold: Hold, on: bool) {
        if on {
            self.add(hold)
        } else {
            self.remove(hold)
        }
    }

    /// Would giving it back lose something that only a reset or a close cleans?
    #[must_use]
    pub const fn need_reset(self) -> bool {
        let harmless = (1 << Hold::InsertId as u32)
            | (1 << Hold::Diagnostics as u32)
            | (1 << Hold::FoundRows as u32)
            | (1 << Hold::NotAllowed as u32)
            | (1 << Hold::Delay as u32);
        self.0 & !harmless != 0
    }

    /// Would a session miss something if the connection were gone?
    #[must_use]
    pub const fn carry_state(self) -> bool {
        self.need_reset()
    }

    /// Would a ROLLBACK leave nothing there that somebody else must not find?
    #[must_use]
    pub fn end_with_transaction(self) -> bool {
        let ends = [
            Hold::Transaction,
            Hold::AutocommitOff,
            Hold::NextTransaction,
        ];
        ends.iter().any(|hold| self.has(*hold)) && {
            let mut others = self;
            ends.iter().for_each(|hold| others.remove(*hold));
            !others.need_reset()
        }
    }

    /// Whether autocommit is off there, as the last answer said.
    #[must_use]
    pub const fn is_manual(self) -> bool {
        self.1 & MANUAL != 0
    }

    /// All names.
    pub fn iter(self) -> impl Iterator<Item = Hold> {
        ALL.into_iter().filter(move |hold| self.has(*hold))
    }

    /// Adds what a statement leaves, seen from its text before it is sent. Conservative: a
    /// statement counts even if it then fails.
    pub fn before(&mut self, class: &Class<'_>) {
        let leaves = class.leaves;
        for (mark, hold) in [
            (Leaves::USER_VARIABLE, Hold::Unread),
            (Leaves::TEMP_TABLE, Hold::TemporaryTable),
            (Leaves::LOCK_TABLES, Hold::TableLock),
            (Leaves::FLUSH_READ_LOCK, Hold::TableLock),
            (Leaves::GET_LOCK, Hold::UserLock),
            (Leaves::FOUND_ROWS, Hold::FoundRows),
            (Leaves::SQL_PREPARE, Hold::SqlPrepare),
            (Leaves::SQL_EXECUTE, Hold::UnknownState),
            (Leaves::XA, Hold::Xa),
            (Leaves::HANDLER, Hold::Handler),
            (Leaves::SEQUENCE, Hold::Sequence),
            (
                Leaves::UNKNOWN_STATE,
                if is_call(class) {
                    Hold::Procedure
                } else {
                    Hold::UnknownState
                },
            ),
        ] {
            if leaves.intersects(mark) {
                self.add(hold);
            }
        }
        // The mode ORACLE, which MariaDB alone has, is this one as well, and it tells of it. What
        // comes before in a text may set it.
        if leaves.intersects(Leaves::NEXTVAL) && (self.1 & status::ANSI_QUOTES != 0 || class.multi)
        {
            self.add(Hold::Sequence);
        }
    }

    /// Learns from a statement's answer.
    pub fn after(&mut self, class: &Class<'_>, answer: &Answered) {
        if answer.ok && class.leaves.intersects(Leaves::UNLOCK_TABLES) {
            self.remove(Hold::TableLock);
        }
        if let Some(flags) = answer.status {
            self.status(flags);
        }
        if answer.ok && (class.ends_transaction && !self.has(Hold::Transaction)) {
            self.remove(Hold::NextTransaction);
            self.remove(Hold::AutocommitOff);
        } else if answer.ok && class.ddl {
            // It has committed.
            self.remove(Hold::AutocommitOff);
        } else if self.is_manual() && answer.used_tables && !self.has(Hold::Transaction) {
            self.add(Hold::AutocommitOff);
        }
        if !class.reads.intersects(Reads::WARNINGS) {
            self.put(Hold::Diagnostics, answer.warnings > 0 || !answer.ok);
        }
        if answer.ok && is_select(class) && !class.leaves.intersects(Leaves::FOUND_ROWS) {
            // Another SELECT is what FOUND_ROWS() is about now.
            self.remove(Hold::FoundRows);
        }
        #[cfg(debug_assertions)]
        crate::planted::forget(self);
    }

    /// The flags of the last answer, as far as they are kept.
    #[must_use]
    pub const fn flags(&self) -> u16 {
        let autocommit = if self.is_manual() {
            0
        } else {
            status::AUTOCOMMIT
        };
        self.transaction_flags() | autocommit
    }

    /// Of the flags of the last answer those that tell of an open transaction.
    #[must_use]
    pub const fn transaction_flags(self) -> u16 {
        if self.has(Hold::Transaction) {
            status::IN_TRANS | self.1 & status::IN_TRANS_READONLY
        } else {
            0
        }
    }

    /// The server's flags, which know transactions better than any text.
    pub const fn status(&mut self, flags: u16) {
        self.put(
            Hold::Transaction,
            flags & (status::IN_TRANS | status::IN_TRANS_READONLY) != 0,
        );
        let manual = if flags & status::AUTOCOMMIT == 0 {
            MANUAL
        } else {
            // Switching it on has committed what there was.
            self.remove(Hold::AutocommitOff);
            0
        };
        self.1 = flags & (MODES | status::IN_TRANS_READONLY) | manual;
    }

    /// Of the flags of the last answer those that tell how the server reads a text: [`MODES`].
    #[must_use]
    pub const fn modes(&self) -> u16 {
        self.1 & MODES
    }

    /// No reason any more.
    pub(crate) const fn clear(&mut self) {
        self.0 = 0;
    }

    /// No reason, on a connection that reads texts so.
    pub(crate) const fn with_modes(modes: u16, autocommit: bool) -> Self {
        Self(0, if autocommit { modes } else { modes | MANUAL })
    }
}

/// SELECT, with FOR UPDATE or without.
#[must_use]
pub fn is_select(class: &Class<'_>) -> bool {
    matches!(
        class.command,
        sql::CommandCounter::Select | sql::CommandCounter::SelectForUpdate
    )
}

/// CALL, and nothing else.
#[must_use]
pub fn is_call(class: &Class<'_>) -> bool {
    class.command == sql::CommandCounter::Call && class.against == Some(sql::Against::Procedure)
}

/// Content of an answer, as far as holds depend on it.
#[derive(Debug, Clone, Copy)]
pub struct Answered {
    /// Whether the answer was no error.
    pub ok: bool,
    /// SERVER_STATUS_* flags; an error tells none.
    pub status: Option<u16>,
    /// Warnings.
    pub warnings: u16,
    /// Its statement may have used a table.
    pub used_tables: bool,
}

impl fmt::Debug for Holds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(ok: bool, status: u16) -> Answered {
        Answered {
            ok,
            status: Some(status),
            warnings: 0,
            used_tables: true,
        }
    }

    /// Returns the holds after these statements, each answered OK with these flags.
    fn after(statements: &[(&str, u16)]) -> Vec<Hold> {
        let mut holds = Holds::default();
        for (text, flags) in statements {
            let class = sql::class::class(text.as_bytes());
            holds.before(&class);
            holds.after(&class, &told(true, *flags));
        }
        holds.iter().collect()
    }

    const IDLE: u16 = status::AUTOCOMMIT;
    const IN: u16 = status::AUTOCOMMIT | status::IN_TRANS;

    #[test]
    fn a_plain_statement_leaves_nothing() {
        assert!(after(&[("SELECT 1", IDLE), ("UPDATE t SET a=1", IDLE)]).is_empty());
    }

    #[test]
    fn a_transaction_holds_until_it_ends() {
        assert_eq!(
            after(&[("BEGIN", IN), ("SELECT 1", IN)]),
            [Hold::Transaction]
        );
        assert!(after(&[("BEGIN", IN), ("COMMIT", IDLE)]).is_empty());
    }

    #[test]
    fn what_only_the_text_tells_holds_for_good() {
        assert_eq!(
            after(&[
                ("CREATE TEMPORARY TABLE t (a INT)", IDLE),
                ("SELECT 1", IDLE)
            ]),
            [Hold::TemporaryTable]
        );
        assert_eq!(
            after(&[("SELECT GET_LOCK('a', 1)", IDLE)]),
            [Hold::UserLock]
        );
        assert_eq!(after(&[("SET @a=@a+1", IDLE)]), [Hold::Unread]);
        assert_eq!(
            after(&[("PREPARE s FROM 'SELECT 1'", IDLE)]),
            [Hold::SqlPrepare]
        );
    }

    #[test]
    fn locked_tables_hold_until_they_are_unlocked() {
        assert_eq!(after(&[("LOCK TABLES t WRITE", IDLE)]), [Hold::TableLock]);
        assert!(after(&[("LOCK TABLES t WRITE", IDLE), ("UNLOCK TABLES", IDLE)]).is_empty());
    }

    #[test]
    fn tables_that_are_used_with_autocommit_off_hold_until_the_transaction_ends() {
        assert_eq!(after(&[("SELECT * FROM t", 0)]), [Hold::AutocommitOff]);
        assert!(after(&[("SELECT * FROM t", 0), ("COMMIT", 0)]).is_empty());
        assert!(after(&[("SELECT * FROM t", 0), ("SET autocommit=1", IDLE)]).is_empty());
        let mut holds = Holds::default();
        let none = Answered {
            used_tables: false,
            ..told(true, 0)
        };
        holds.after(&sql::class(b"SELECT 1"), &none);
        assert!(holds.is_empty() && holds.flags() == 0);
    }

    #[test]
    fn a_rollback_is_enough_where_nothing_but_a_transaction_is_left() {
        let ends = |all: &[Hold]| {
            let mut holds = Holds::default();
            all.iter().for_each(|hold| holds.add(*hold));
            holds.end_with_transaction()
        };
        assert!(ends(&[Hold::Transaction]));
        assert!(ends(&[
            Hold::AutocommitOff,
            Hold::InsertId,
            Hold::Diagnostics
        ]));
        assert!(!ends(&[Hold::InsertId]));
        assert!(!ends(&[Hold::Transaction, Hold::TemporaryTable]));
        assert!(!ends(&[Hold::Transaction, Hold::Xa]));
        assert!(!ends(&[Hold::Transaction, Hold::Branch]));
    }
}
