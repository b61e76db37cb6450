//! Bytes that commands begin with, and their names.

macro_rules! command_bytes {
    ($($(#[$doc:meta])* $name:ident = $byte:literal $text:literal;)*) => {
        $($(#[$doc])* pub const $name: u8 = $byte;)*
        /// The name of a command as SHOW PROCESSLIST and the logs say it.
        pub const fn name(byte: u8) -> &'static str {
            match byte { $($byte => $text,)* _ => "Unknown" }
        }
    };
}

command_bytes! {
    /// Inside of servers only.
    COM_SLEEP = 0x00 "Sleep";
    /// Goodbye.
    COM_QUIT = 0x01 "Quit";
    /// USE.
    COM_INIT_DB = 0x02 "Init DB";
    /// A statement in text.
    COM_QUERY = 0x03 "Query";
    /// The columns of a table (withdrawn by MySQL 9, alive elsewhere).
    COM_FIELD_LIST = 0x04 "Field List";
    /// CREATE DATABASE (withdrawn).
    COM_CREATE_DB = 0x05 "Create DB";
    /// DROP DATABASE (withdrawn).
    COM_DROP_DB = 0x06 "Drop DB";
    /// FLUSH (withdrawn).
    COM_REFRESH = 0x07 "Refresh";
    /// SHUTDOWN (withdrawn).
    COM_SHUTDOWN = 0x08 "Shutdown";
    /// One line of numbers.
    COM_STATISTICS = 0x09 "Statistics";
    /// SHOW PROCESSLIST (withdrawn).
    COM_PROCESS_INFO = 0x0A "Processlist";
    /// Inside of servers only.
    COM_CONNECT = 0x0B "Connect";
    /// KILL.
    COM_PROCESS_KILL = 0x0C "Kill";
    /// Writes debugging output into the server's log.
    COM_DEBUG = 0x0D "Debug";
    /// Are you there?
    COM_PING = 0x0E "Ping";
    /// Inside of servers only.
    COM_TIME = 0x0F "Time";
    /// Inside of servers only.
    COM_DELAYED_INSERT = 0x10 "Delayed insert";
    /// A new login.
    COM_CHANGE_USER = 0x11 "Change user";
    /// The binary log from a file and position on.
    COM_BINLOG_DUMP = 0x12 "Binlog Dump";
    /// A whole table (withdrawn).
    COM_TABLE_DUMP = 0x13 "Table Dump";
    /// Inside of servers only.
    COM_CONNECT_OUT = 0x14 "Connect Out";
    /// A replica introduces itself.
    COM_REGISTER_SLAVE = 0x15 "Register Slave";
    /// Prepares a statement.
    COM_STMT_PREPARE = 0x16 "Prepare";
    /// Executes a prepared statement.
    COM_STMT_EXECUTE = 0x17 "Execute";
    /// A piece of a parameter. It has no answer.
    COM_STMT_SEND_LONG_DATA = 0x18 "Long Data";
    /// Forgets a prepared statement. It has no answer.
    COM_STMT_CLOSE = 0x19 "Close stmt";
    /// Drops a statement's long data and cursor.
    COM_STMT_RESET = 0x1A "Reset stmt";
    /// Several statements per query, on or off.
    COM_SET_OPTION = 0x1B "Set option";
    /// Rows of a cursor.
    COM_STMT_FETCH = 0x1C "Fetch";
    /// Inside of servers only.
    COM_DAEMON = 0x1D "Daemon";
    /// The binary log by GTIDs.
    COM_BINLOG_DUMP_GTID = 0x1E "Binlog Dump GTID";
    /// The session as after login.
    COM_RESET_CONNECTION = 0x1F "Reset Connection";
    /// A copy of the server's data.
    COM_CLONE = 0x20 "Clone";
    /// Group replication's events.
    COM_SUBSCRIBE_GROUP_REPLICATION_STREAM = 0x21 "Group Replication Data Stream subscription";
    /// MariaDB: executes a prepared statement with many rows of parameters.
    COM_STMT_BULK_EXECUTE = 0xFA "Bulk_execute";
}
