//! SERVER_STATUS_* flags of OK and EOF packets.
//!
//! <https://dev.mysql.com/doc/dev/mysql-server/latest/mysql__com_8h.html>
//! (SERVER_STATUS_flags_enum)

/// A transaction is open.
pub const IN_TRANS: u16 = 0x0001;
/// `autocommit` is on.
pub const AUTOCOMMIT: u16 = 0x0002;
/// Another result of the same command follows.
pub const MORE_RESULTS: u16 = 0x0008;
/// The optimizer found no good index.
pub const NO_GOOD_INDEX: u16 = 0x0010;
/// The optimizer used no index.
pub const NO_INDEX: u16 = 0x0020;
/// COM_STMT_EXECUTE opened a cursor: rows come by COM_STMT_FETCH.
pub const CURSOR_EXISTS: u16 = 0x0040;
/// The cursor has no more rows.
pub const LAST_ROW_SENT: u16 = 0x0080;
/// The current schema was dropped.
pub const DB_DROPPED: u16 = 0x0100;
/// `NO_BACKSLASH_ESCAPES` is in the SQL mode.
pub const NO_BACKSLASH_ESCAPES: u16 = 0x0200;
/// A prepared statement was prepared anew and has other columns.
pub const METADATA_CHANGED: u16 = 0x0400;
/// The statement went to the slow log.
pub const QUERY_WAS_SLOW: u16 = 0x0800;
/// This result set holds the OUT parameters of a CALL.
pub const PS_OUT_PARAMS: u16 = 0x1000;
/// The open transaction is READ ONLY.
pub const IN_TRANS_READONLY: u16 = 0x2000;
/// The OK packet has session changes (see `track`).
pub const SESSION_STATE_CHANGED: u16 = 0x4000;
/// MariaDB: the statement is an ANALYZE or EXPLAIN-like pseudo result (`ANSI_QUOTES` in older
/// sources).
pub const ANSI_QUOTES: u16 = 0x8000;
