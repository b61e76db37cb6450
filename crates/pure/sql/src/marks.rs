//! Sets of marks: what a statement leaves on its connection, and what it reads of what others left
//! there.

use std::ops::{BitOr, BitOrAssign};

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

            /// These and `marks`.
            #[must_use]
            pub const fn with(self, marks: Self) -> Self {
                Self(self.0 | marks.0)
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
    /// Things that a statement may leave on the connection that it ran on, or take from it.
    Leaves {
        /// Sets a user variable: `:=`, `SET @x`, `INTO @x`.
        USER_VARIABLE = 0;
        /// CREATE TEMPORARY TABLE.
        TEMP_TABLE = 1;
        /// DROP TEMPORARY TABLE.
        DROP_TEMP_TABLE = 2;
        /// LOCK TABLES, LOCK INSTANCE, BACKUP LOCK, BACKUP STAGE.
        LOCK_TABLES = 3;
        /// UNLOCK TABLES, UNLOCK INSTANCE, BACKUP UNLOCK, BACKUP STAGE END.
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
        /// Calls a function that is not one of the server's own, which may do anything that a
        /// function can.
        UNKNOWN_FUNCTION = 18;
        /// May drop the database that the connection is in.
        DATABASE = 19;
        /// NEXTVAL(), SETVAL(), NEXT VALUE FOR: changes a sequence, and what LASTVAL() answers.
        SEQUENCE = 20;
        /// `s.NEXTVAL`: under sql_mode=ORACLE as [`Leaves::SEQUENCE`], else a column.
        NEXTVAL = 21;
    }
}

bits! {
    /// Things that earlier statements left on the connection and that a statement may read.
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
        /// LASTVAL(), PREVIOUS VALUE FOR.
        SEQUENCE = 10;
        /// `s.CURRVAL`: under sql_mode=ORACLE as [`Reads::SEQUENCE`], else a column.
        CURRVAL = 11;
        /// EXTRACTVALUE(), UPDATEXML(): `$@x` in an XPath is a user variable.
        XPATH = 12;
        /// `@@last_gtid`: the number of the connection's last transaction.
        LAST_GTID = 13;
        /// WSREP_LAST_SEEN_GTID(), WSREP_LAST_WRITTEN_GTID(): those of the connection.
        WSREP_GTID = 14;
    }
}
