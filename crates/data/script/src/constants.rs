//! Constants of the `proxy` table.

use mlua::{Lua, Table};

/// By their names, without prefix for those of no group.
const GROUPS: &[(&str, &[(&str, i64)])] = &[
    (
        "",
        &[
            ("PROXY_SEND_QUERY", 1),
            ("PROXY_SEND_RESULT", 2),
            ("PROXY_IGNORE_RESULT", 4),
            ("PROXY_NO_DECISION", 0),
            ("PROXY_VERSION", 0x00805),
            ("MYSQLD_PACKET_OK", 0),
            ("MYSQLD_PACKET_RAW", 250),
            ("MYSQLD_PACKET_ERR", 255),
        ],
    ),
    (
        "BACKEND_STATE_",
        &[("UNKNOWN", 0), ("UP", 1), ("DOWN", 2), ("OFFLINE", 3)],
    ),
    ("BACKEND_TYPE_", &[("UNKNOWN", 0), ("RW", 1), ("RO", 2)]),
    (
        "MYSQL_TYPE_",
        &[
            ("DECIMAL", 0),
            ("TINY", 1),
            ("SHORT", 2),
            ("LONG", 3),
            ("FLOAT", 4),
            ("DOUBLE", 5),
            ("NULL", 6),
            ("TIMESTAMP", 7),
            ("LONGLONG", 8),
            ("INT24", 9),
            ("DATE", 10),
            ("TIME", 11),
            ("DATETIME", 12),
            ("YEAR", 13),
            ("NEWDATE", 14),
            ("VARCHAR", 15),
            ("BIT", 16),
            ("JSON", 245),
            ("NEWDECIMAL", 246),
            ("ENUM", 247),
            ("SET", 248),
            ("TINY_BLOB", 249),
            ("MEDIUM_BLOB", 250),
            ("LONG_BLOB", 251),
            ("BLOB", 252),
            ("VAR_STRING", 253),
            ("STRING", 254),
            ("GEOMETRY", 255),
        ],
    ),
];

/// Commands, from 0 on.
const COMMANDS: &[&str] = &[
    "SLEEP",
    "QUIT",
    "INIT_DB",
    "QUERY",
    "FIELD_LIST",
    "CREATE_DB",
    "DROP_DB",
    "REFRESH",
    "SHUTDOWN",
    "STATISTICS",
    "PROCESS_INFO",
    "CONNECT",
    "PROCESS_KILL",
    "DEBUG",
    "PING",
    "TIME",
    "DELAYED_INSERT",
    "CHANGE_USER",
    "BINLOG_DUMP",
    "TABLE_DUMP",
    "CONNECT_OUT",
    "REGISTER_SLAVE",
    "STMT_PREPARE",
    "STMT_EXECUTE",
    "STMT_SEND_LONG_DATA",
    "STMT_CLOSE",
    "STMT_RESET",
    "SET_OPTION",
    "STMT_FETCH",
    "DAEMON",
    "BINLOG_DUMP_GTID",
    "RESET_CONNECTION",
];

/// All of them, for a VM.
pub(crate) fn table(lua: &Lua) -> Result<Table, mlua::Error> {
    let table = lua.create_table()?;
    for (group, names) in GROUPS {
        for (name, value) in *names {
            table.set(format!("{group}{name}"), *value)?;
        }
    }
    for (value, name) in COMMANDS.iter().enumerate() {
        table.set(format!("COM_{name}"), value)?;
    }
    Ok(table)
}
