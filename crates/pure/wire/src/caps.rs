//! Capability bits: what client and server agree to use in one connection.
//!
//! <https://dev.mysql.com/doc/dev/mysql-server/latest/group__group__cs__capabilities__flags.html>
//! <https://mariadb.com/kb/en/connection/#capabilities> MariaDB's extended bits travel in four
//! bytes that MySQL keeps as filler; we hold them in the upper half.

/// A set of capability bits: MySQL's in the lower 32, MariaDB's extended ones in the upper 32.
pub type Caps = u64;

/// Set by every MySQL client and server since 4.1. A MariaDB server leaves it out to say "I have
/// extended bits"; in that reading it is called `CLIENT_MYSQL`.
pub const LONG_PASSWORD: Caps = 1;
/// Affected rows of an UPDATE count the rows found, not the rows changed.
pub const FOUND_ROWS: Caps = 1 << 1;
/// Column flags have two bytes.
pub const LONG_FLAG: Caps = 1 << 2;
/// The login names a schema.
pub const CONNECT_WITH_DB: Caps = 1 << 3;
/// `schema.table.column` is refused.
pub const NO_SCHEMA: Caps = 1 << 4;
/// zlib compression after login.
pub const COMPRESS: Caps = 1 << 5;
/// Once for ODBC; nothing depends on it.
pub const ODBC: Caps = 1 << 6;
/// The client is able to send a file for LOAD DATA LOCAL.
pub const LOCAL_FILES: Caps = 1 << 7;
/// Blanks are allowed before the `(` of a function call.
pub const IGNORE_SPACE: Caps = 1 << 8;
/// The protocol of MySQL 4.1 and later: SQLSTATEs, status flags, OK packets as we know them.
pub const PROTOCOL_41: Caps = 1 << 9;
/// `interactive_timeout` is used instead of `wait_timeout`.
pub const INTERACTIVE: Caps = 1 << 10;
/// TLS begins after an SSLRequest.
pub const SSL: Caps = 1 << 11;
/// Of no meaning on the wire.
pub const IGNORE_SIGPIPE: Caps = 1 << 12;
/// Status flags are in OK packets.
pub const TRANSACTIONS: Caps = 1 << 13;
/// Once "protocol 4.1"; still set by many.
pub const RESERVED: Caps = 1 << 14;
/// The auth response has a length byte and is not a C string (4.1 passwords).
pub const SECURE_CONNECTION: Caps = 1 << 15;
/// Several statements in one COM_QUERY.
pub const MULTI_STATEMENTS: Caps = 1 << 16;
/// Several results to one COM_QUERY.
pub const MULTI_RESULTS: Caps = 1 << 17;
/// Several results to one COM_STMT_EXECUTE.
pub const PS_MULTI_RESULTS: Caps = 1 << 18;
/// Authentication plugins are named and can be switched.
pub const PLUGIN_AUTH: Caps = 1 << 19;
/// The login carries connection attributes.
pub const CONNECT_ATTRS: Caps = 1 << 20;
/// The auth response of the login may be longer than 255 bytes.
pub const PLUGIN_AUTH_LENENC: Caps = 1 << 21;
/// The client knows what to do when its password has expired.
pub const EXPIRED_PASSWORDS: Caps = 1 << 22;
/// OK packets tell what changed in the session.
pub const SESSION_TRACK: Caps = 1 << 23;
/// No EOF packets: result sets end with an OK packet whose header is 0xFE.
pub const DEPRECATE_EOF: Caps = 1 << 24;
/// Column definitions may be left out, where the session has asked for that: a byte behind the
/// number of columns says whether they are there.
pub const OPTIONAL_METADATA: Caps = 1 << 25;
/// zstd compression after login.
pub const ZSTD: Caps = 1 << 26;
/// COM_QUERY and COM_STMT_EXECUTE may carry named attributes.
pub const QUERY_ATTRIBUTES: Caps = 1 << 27;
/// Up to three authentication factors.
pub const MULTI_FACTOR: Caps = 1 << 28;
/// Reserved by MySQL for more bits than 32.
pub const EXTENSION: Caps = 1 << 29;
/// Of no meaning on the wire.
pub const SSL_VERIFY_SERVER_CERT: Caps = 1 << 30;
/// Of no meaning on the wire.
pub const REMEMBER_OPTIONS: Caps = 1 << 31;

/// MariaDB: progress reports inside of results. We never offer it.
pub const MARIADB_PROGRESS: Caps = 1 << 32;
/// MariaDB: COM_MULTI, which was withdrawn. We never offer it.
pub const MARIADB_COM_MULTI: Caps = 1 << 33;
/// MariaDB: COM_STMT_BULK_EXECUTE.
pub const MARIADB_BULK: Caps = 1 << 34;
/// MariaDB: column definitions have one more field (extended type info).
pub const MARIADB_EXTENDED_TYPES: Caps = 1 << 35;
/// MariaDB: column definitions are left out of the answer to an execution where the client has them
/// already: a byte behind the number of columns says whether they are there.
pub const MARIADB_CACHE_METADATA: Caps = 1 << 36;
/// MariaDB: one result per row of a bulk execute.
pub const MARIADB_BULK_UNIT_RESULTS: Caps = 1 << 37;

/// The bits that MariaDB added, in their place in a [`Caps`].
pub const MARIADB_ALL: Caps = 0xFFFF_FFFF << 32;

/// Capabilities that decide how packets look, or which commands there are: two sides can only be
/// connected byte for byte if these are the same.
pub const SHAPE: Caps = PROTOCOL_41
    | TRANSACTIONS
    | SESSION_TRACK
    | DEPRECATE_EOF
    | OPTIONAL_METADATA
    | QUERY_ATTRIBUTES
    | MARIADB_PROGRESS
    | MARIADB_BULK
    | MARIADB_EXTENDED_TYPES
    | MARIADB_CACHE_METADATA
    | MARIADB_BULK_UNIT_RESULTS;

/// Whether a byte behind the number of columns says if their definitions follow.
#[inline]
pub const fn tells_of_definitions(caps: Caps) -> bool {
    caps & (OPTIONAL_METADATA | MARIADB_CACHE_METADATA) != 0
}

/// True if every bit of `bits` is in `caps`.
#[inline]
pub const fn has(caps: Caps, bits: Caps) -> bool {
    caps & bits == bits
}
