//! What kind of statement this is, and what it may leave behind on the connection that it runs on.

use std::borrow::Cow;
use std::ops::{BitOr, BitOrAssign};

macro_rules! command_counters {
    ($($name:ident, $shown:literal;)*) => {
        /// The rows of `stats_mysql_commands_counters`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "each is the statement that `name` spells")]
        #[repr(u8)]
        pub enum CommandCounter { $($name),* }

        impl CommandCounter {
            /// All, in the order of their declaration: `ALL[c as usize] == c`.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The column `Command`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $shown),* }
            }
        }
    };
}

command_counters! {
    AlterTable, "ALTER_TABLE";
    AlterView, "ALTER_VIEW";
    AnalyzeTable, "ANALYZE_TABLE";
    Begin, "BEGIN";
    Call, "CALL";
    ChangeMaster, "CHANGE_MASTER";
    Commit, "COMMIT";
    CreateDatabase, "CREATE_DATABASE";
    CreateIndex, "CREATE_INDEX";
    CreateTable, "CREATE_TABLE";
    CreateTemporary, "CREATE_TEMPORARY";
    CreateTrigger, "CREATE_TRIGGER";
    CreateUser, "CREATE_USER";
    CreateView, "CREATE_VIEW";
    Deallocate, "DEALLOCATE";
    Delete, "DELETE";
    Describe, "DESCRIBE";
    DropDatabase, "DROP_DATABASE";
    DropIndex, "DROP_INDEX";
    DropTable, "DROP_TABLE";
    DropTrigger, "DROP_TRIGGER";
    DropUser, "DROP_USER";
    DropView, "DROP_VIEW";
    Grant, "GRANT";
    Execute, "EXECUTE";
    Explain, "EXPLAIN";
    Flush, "FLUSH";
    Insert, "INSERT";
    Kill, "KILL";
    Load, "LOAD";
    LockTable, "LOCK_TABLE";
    Optimize, "OPTIMIZE";
    Prepare, "PREPARE";
    Purge, "PURGE";
    ReleaseSavepoint, "RELEASE_SAVEPOINT";
    RenameTable, "RENAME_TABLE";
    ResetMaster, "RESET_MASTER";
    ResetSlave, "RESET_SLAVE";
    Replace, "REPLACE";
    Revoke, "REVOKE";
    Rollback, "ROLLBACK";
    RollbackSavepoint, "ROLLBACK_SAVEPOINT";
    Savepoint, "SAVEPOINT";
    Select, "SELECT";
    SelectForUpdate, "SELECT_FOR_UPDATE";
    Set, "SET";
    ShowTableStatus, "SHOW_TABLE_STATUS";
    StartTransaction, "START_TRANSACTION";
    TruncateTable, "TRUNCATE_TABLE";
    UnlockTables, "UNLOCK_TABLES";
    Update, "UPDATE";
    Use, "USE";
    Show, "SHOW";
    Unknown, "UNKNOWN";
}

macro_rules! bits {
    ($(#[$about:meta])* $set:ident { $($(#[$bit_about:meta])* $bit:ident = $value:literal;)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, Default)]
        pub struct $set(u32);

        impl $set {
            /// Nothing.
            pub const NONE: Self = Self(0);
            $($(#[$bit_about])* pub const $bit: Self = Self(1 << $value);)*

            /// Every mark with its name.
            pub const ALL: &'static [(&'static str, Self)] = &[$((stringify!($bit), Self::$bit)),*];

            /// Whether there is no mark.
            #[must_use]
            pub const fn is_empty(self) -> bool {
                self.0 == 0
            }

            /// Whether all of `marks` are here.
            #[must_use]
            pub const fn contains(self, marks: Self) -> bool {
                self.0 & marks.0 == marks.0
            }

            /// Whether any of `marks` is here.
            #[must_use]
            pub const fn intersects(self, marks: Self) -> bool {
                self.0 & marks.0 != 0
            }

            /// These without `marks`.
            #[must_use]
            pub const fn without(self, marks: Self) -> Self {
                Self(self.0 & !marks.0)
            }

            /// The names of the marks.
            pub fn names(self) -> impl Iterator<Item = &'static str> {
                Self::ALL.iter().filter(move |(_, bit)| self.contains(*bit)).map(|(name, _)| *name)
            }
        }

        impl BitOr for $set {
            type Output = Self;
            fn bitor(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }
        }

        impl BitOrAssign for $set {
            fn bitor_assign(&mut self, other: Self) {
                self.0 |= other.0;
            }
        }

        impl std::fmt::Debug for $set {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(stringify!($set))?;
                f.debug_set().entries(self.names()).finish()
            }
        }
    };
}

bits! {
    /// What a statement may leave on the connection that it ran on, or take from it.
    Leaves {
        /// Sets a user variable: `:=`, `SET @x`, `INTO @x`.
        USER_VARIABLE = 0;
        /// CREATE TEMPORARY TABLE.
        TEMP_TABLE = 1;
        /// DROP TEMPORARY TABLE.
        DROP_TEMP_TABLE = 2;
        /// LOCK TABLES, LOCK INSTANCE.
        LOCK_TABLES = 3;
        /// UNLOCK TABLES, UNLOCK INSTANCE.
        UNLOCK_TABLES = 4;
        /// GET_LOCK().
        GET_LOCK = 5;
        /// RELEASE_LOCK(), RELEASE_ALL_LOCKS().
        RELEASE_LOCK = 6;
        /// SQL_CALC_FOUND_ROWS.
        FOUND_ROWS = 7;
        /// PREPARE.
        SQL_PREPARE = 8;
        /// EXECUTE of a statement prepared by SQL, which may do anything.
        SQL_EXECUTE = 9;
        /// DEALLOCATE PREPARE, DROP PREPARE.
        SQL_DEALLOCATE = 10;
        /// SAVEPOINT.
        SAVEPOINT = 11;
        /// XA.
        XA = 12;
        /// FLUSH TABLES WITH READ LOCK, FLUSH TABLES … FOR EXPORT.
        FLUSH_READ_LOCK = 13;
        /// HANDLER … OPEN.
        HANDLER = 14;
        /// LAST_INSERT_ID(expr).
        LAST_INSERT_ID = 15;
        /// SET: [`crate::set`] says what.
        SET = 16;
        /// The statement may change the session in a way that is not known.
        UNKNOWN_STATE = 17;
    }
}

bits! {
    /// What a statement may read of what earlier ones left on the connection.
    Reads {
        /// LAST_INSERT_ID() and its variables.
        LAST_INSERT_ID = 0;
        /// FOUND_ROWS().
        FOUND_ROWS = 1;
        /// ROW_COUNT().
        ROW_COUNT = 2;
        /// CONNECTION_ID() and its variable.
        CONNECTION_ID = 3;
        /// SHOW WARNINGS, SHOW ERRORS, GET DIAGNOSTICS, @@warning_count, @@error_count.
        WARNINGS = 4;
        /// A user variable.
        USER_VARIABLE = 5;
        /// A system variable of the session: `@@x`, SHOW VARIABLES, SHOW STATUS.
        SESSION_VARIABLE = 6;
        /// A statement prepared by SQL.
        PREPARED = 7;
        /// A cursor of HANDLER.
        HANDLER = 8;
        /// SHOW PROFILE, SHOW PROFILES.
        PROFILE = 9;
    }
}

/// What [`class`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "independent facts about one statement")]
pub struct Class<'a> {
    /// Where it is counted.
    pub command: CommandCounter,
    /// Repeating it after a failure, on any server, does no harm and gives the same kind of answer.
    pub plain_read: bool,
    /// BEGIN or START TRANSACTION (not what begins implicitly under autocommit=0).
    pub begins_transaction: bool,
    /// COMMIT or ROLLBACK without AND CHAIN, and not ROLLBACK TO.
    pub ends_transaction: bool,
    /// COMMIT or ROLLBACK … RELEASE: the server closes the connection afterwards.
    pub releases: bool,
    /// SET.
    pub sets: bool,
    /// USE: the database.
    pub use_db: Option<Cow<'a, str>>,
    /// Defines or changes objects; commits the open transaction on the server.
    pub ddl: bool,
    /// LOAD DATA LOCAL or LOAD XML LOCAL: the server will ask the client for a file.
    pub local_infile: bool,
    /// KILL.
    pub kills: bool,
    /// What it may leave on the connection.
    pub leaves: Leaves,
    /// What it may read of what is on the connection.
    pub reads: Reads,
    /// More than one statement.
    pub multi: bool,
}

/// Classifies. What is not recognised is [`CommandCounter::Unknown`] and leaves [`Leaves::UNKNOWN_STATE`].
#[must_use]
pub fn class(sql: &[u8]) -> Class<'_> {
    let _ = sql;
    Class {
        command: CommandCounter::Unknown,
        plain_read: false,
        begins_transaction: false,
        ends_transaction: false,
        releases: false,
        sets: false,
        use_db: None,
        ddl: false,
        local_infile: false,
        kills: false,
        leaves: Leaves::UNKNOWN_STATE,
        reads: Reads::NONE,
        multi: false,
    }
}
