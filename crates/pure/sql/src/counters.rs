//! The classes of statements that are counted: rows of `stats_mysql_commands_counters`, under
//! ProxySQL's names.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_found_at_its_number_and_no_name_is_used_twice() {
        for (number, counter) in CommandCounter::ALL.iter().enumerate() {
            assert_eq!(*counter as usize, number);
        }
        let mut names: Vec<_> = CommandCounter::ALL.iter().map(|c| c.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), CommandCounter::ALL.len());
    }
}
