//! Error numbers and SQLSTATEs that we send or act upon, by name.
//!
//! <https://dev.mysql.com/doc/mysql-errors/en/server-error-reference.html>
//! <https://dev.mysql.com/doc/mysql-errors/en/client-error-reference.html>
//! 9001 and up are the proxy's own, with the numbers that ProxySQL gave them.

/// An error number with its SQLSTATE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Code {
    /// The number.
    pub number: u16,
    /// The SQLSTATE, five characters.
    pub state: &'static str,
}

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $number:literal $state:literal;)*) => {
        $($(#[$doc])* pub const $name: Code = Code { number: $number, state: $state };)*
        /// All of them, in the order of their numbers.
        pub const ALL: &[(&str, Code)] = &[$((stringify!($name), $name)),*];
    };
}

codes! {
    /// Too many connections.
    TOO_MANY_CONNECTIONS = 1040 "08004";
    /// The server has no memory left.
    OUT_OF_RESOURCES = 1041 "HY000";
    /// The handshake went wrong.
    HANDSHAKE = 1043 "08S01";
    /// The user may not use this schema.
    DB_ACCESS_DENIED = 1044 "42000";
    /// Wrong user or password.
    ACCESS_DENIED = 1045 "28000";
    /// No schema was chosen.
    NO_DB = 1046 "3D000";
    /// A command that the server does not know.
    UNKNOWN_COMMAND = 1047 "08S01";
    /// A schema that does not exist.
    UNKNOWN_DATABASE = 1049 "42000";
    /// The server is going down.
    SERVER_SHUTDOWN = 1053 "08S01";
    /// A column that does not exist.
    UNKNOWN_COLUMN = 1054 "42S22";
    /// A name that is too long.
    NAME_TOO_LONG = 1059 "42000";
    /// A duplicate key.
    DUPLICATE_KEY = 1062 "23000";
    /// The statement cannot be parsed.
    PARSE = 1064 "42000";
    /// The statement is empty.
    EMPTY_QUERY = 1065 "42000";
    /// The server says goodbye.
    NORMAL_SHUTDOWN = 1077 "00000";
    /// KILL of a connection that is not there.
    NO_SUCH_THREAD = 1094 "HY000";
    /// KILL of somebody else's connection.
    KILL_DENIED = 1095 "HY000";
    /// A name that no schema can have.
    WRONG_DATABASE_NAME = 1102 "42000";
    /// Anything that has no number of its own.
    UNKNOWN_ERROR = 1105 "HY000";
    /// A character set that does not exist.
    UNKNOWN_CHARACTER_SET = 1115 "42000";
    /// The host was blocked after too many broken handshakes.
    HOST_IS_BLOCKED = 1129 "HY000";
    /// The host is not allowed to connect.
    HOST_NOT_PRIVILEGED = 1130 "HY000";
    /// The user may not do that with the table.
    TABLE_ACCESS_DENIED = 1142 "42000";
    /// A table that does not exist.
    NO_SUCH_TABLE = 1146 "42S02";
    /// Not allowed here; also the code of a rule's `error_msg`.
    NOT_ALLOWED = 1148 "42000";
    /// The connection was killed or broke down.
    ABORTING_CONNECTION = 1152 "08S01";
    /// A packet larger than `max_allowed_packet`.
    PACKET_TOO_LARGE = 1153 "08S01";
    /// Reading from the pipe failed.
    NET_READ_FROM_PIPE = 1154 "08S01";
    /// A socket call failed.
    NET_FCNTL = 1155 "08S01";
    /// A packet with the wrong sequence number.
    PACKETS_OUT_OF_ORDER = 1156 "08S01";
    /// A compressed packet that does not unpack.
    NET_UNCOMPRESS = 1157 "08S01";
    /// Reading from the connection failed.
    NET_READ = 1158 "08S01";
    /// Reading from the connection took too long.
    NET_READ_INTERRUPTED = 1159 "08S01";
    /// Writing to the connection failed.
    NET_ERROR_ON_WRITE = 1160 "08S01";
    /// Writing to the connection took too long.
    NET_WRITE_INTERRUPTED = 1161 "08S01";
    /// A COMMIT has failed in the middle: a node of Galera says so that has lost its cluster (MariaDB's words are of a fragment).
    ERROR_DURING_COMMIT = 1180 "HY000";
    /// A system variable that does not exist.
    UNKNOWN_SYSTEM_VARIABLE = 1193 "HY000";
    /// The user has too many connections (`max_user_connections`).
    TOO_MANY_USER_CONNECTIONS = 1203 "42000";
    /// A lock took too long.
    LOCK_WAIT_TIMEOUT = 1205 "HY000";
    /// Wrong arguments.
    WRONG_ARGUMENTS = 1210 "HY000";
    /// The transaction was the victim of a deadlock.
    DEADLOCK = 1213 "40001";
    /// The user has used up a resource (`max_queries_per_hour` and its like).
    USER_LIMIT_REACHED = 1226 "42000";
    /// A privilege is missing.
    SPECIFIC_ACCESS_DENIED = 1227 "42000";
    /// A value that this variable cannot have.
    WRONG_VALUE_FOR_VARIABLE = 1231 "42000";
    /// A value of the wrong type for this variable.
    WRONG_TYPE_FOR_VARIABLE = 1232 "42000";
    /// The SQL is understood and not supported.
    NOT_SUPPORTED_YET = 1235 "42000";
    /// A variable that can only be read.
    READ_ONLY_VARIABLE = 1238 "HY000";
    /// A prepared statement that this connection does not have.
    UNKNOWN_STATEMENT = 1243 "HY000";
    /// The password was hashed for an authentication that the client does not have.
    NOT_SUPPORTED_AUTH_MODE = 1251 "08004";
    /// A collation that does not belong to the character set.
    COLLATION_MISMATCH = 1253 "42000";
    /// A collation that does not exist.
    UNKNOWN_COLLATION = 1273 "HY000";
    /// The server runs with `--read-only` or the like.
    OPTION_PREVENTS_STATEMENT = 1290 "HY000";
    /// This statement cannot be prepared.
    UNSUPPORTED_PREPARED_STATEMENT = 1295 "HY000";
    /// Bytes that are no text in their character set.
    INVALID_STRING = 1300 "HY000";
    /// The statement was killed.
    QUERY_INTERRUPTED = 1317 "70100";
    /// The statement has too many placeholders.
    TOO_MANY_PLACEHOLDERS = 1390 "HY000";
    /// `max_prepared_stmt_count` is reached.
    TOO_MANY_STATEMENTS = 1461 "42000";
    /// An authentication plugin that is not there.
    PLUGIN_NOT_LOADED = 1524 "HY000";
    /// The server runs only transactions that read.
    READ_ONLY_TRANSACTION = 1792 "25006";
    /// The password has to be changed before anything else.
    MUST_CHANGE_PASSWORD = 1820 "HY000";
    /// A packet that is not what the protocol says.
    MALFORMED_PACKET = 1835 "HY000";
    /// The server is read only.
    READ_ONLY_MODE = 1836 "HY000";
    /// The password has expired.
    MUST_CHANGE_PASSWORD_LOGIN = 1862 "HY000";
    /// MariaDB: the connection was killed.
    CONNECTION_KILLED = 1927 "70100";
    /// MariaDB: the statement took longer than `max_statement_time`.
    STATEMENT_TIMEOUT = 1969 "70100";
    /// Something that only the client library knows by this number.
    CR_UNKNOWN = 2000 "HY000";
    /// No connection through the Unix socket.
    CR_CONNECTION = 2002 "HY000";
    /// No connection to the host.
    CR_CONN_HOST = 2003 "HY000";
    /// The name of the host does not resolve.
    CR_UNKNOWN_HOST = 2005 "HY000";
    /// The server has gone away.
    CR_SERVER_GONE = 2006 "HY000";
    /// The handshake went wrong.
    CR_SERVER_HANDSHAKE = 2012 "HY000";
    /// The connection was lost while the statement ran.
    CR_SERVER_LOST = 2013 "HY000";
    /// A command came while another was not finished.
    CR_COMMANDS_OUT_OF_SYNC = 2014 "HY000";
    /// TLS could not be established.
    CR_SSL_CONNECTION = 2026 "HY000";
    /// A packet that is not what the protocol says.
    CR_MALFORMED_PACKET = 2027 "HY000";
    /// The connection was lost, and this is where.
    CR_SERVER_LOST_EXTENDED = 2055 "HY000";
    /// An authentication plugin that cannot be used.
    CR_AUTH_PLUGIN_CANNOT_LOAD = 2059 "HY000";
    /// An authentication plugin failed.
    CR_AUTH_PLUGIN_ERROR = 2061 "HY000";
    /// The statement took longer than `max_execution_time`.
    QUERY_TIMEOUT = 3024 "HY000";
    /// TLS is required here.
    SECURE_TRANSPORT_REQUIRED = 3159 "HY000";
    /// The client was idle for too long.
    CLIENT_INTERACTION_TIMEOUT = 4031 "HY000";
    /// No connection to a server of the hostgroup within `mysql-connect_timeout_server_max`.
    PROXY_CONNECT_TIMEOUT = 9001 "HY000";
    /// Too many failed connections.
    PROXY_CONNECT_FAILURES = 9002 "HY000";
    /// A command that the proxy does not support.
    PROXY_COMMAND_NOT_SUPPORTED = 9003 "42000";
    /// The server was taken offline.
    PROXY_OFFLINE_SERVER = 9004 "HY000";
    /// A statement for another hostgroup than the one which this session is locked on.
    PROXY_LOCKED_ON_HOSTGROUP = 9005 "HY000";
    /// A connection for another hostgroup than the one which this session is locked on.
    PROXY_HOSTGROUP_LOCKED = 9006 "Y0000";
    /// COM_CHANGE_USER on a backend took too long.
    PROXY_CHANGE_USER_TIMEOUT = 9007 "HY000";
    /// Group replication: the health check took too long.
    PROXY_GR_HEALTH_TIMEOUT = 9008 "HY000";
    /// Group replication: the health check failed to connect.
    PROXY_GR_HEALTH_CONN_TIMEOUT = 9009 "HY000";
    /// read_only check: no connection in time.
    PROXY_READ_ONLY_CONN_TIMEOUT = 9010 "HY000";
    /// read_only check: no answer in time.
    PROXY_READ_ONLY_TIMEOUT = 9011 "HY000";
    /// read_only check: the answer makes no sense.
    PROXY_READ_ONLY_CHECK = 9012 "HY000";
    /// Galera: the health check took too long.
    PROXY_GALERA_TIMEOUT = 9013 "HY000";
    /// Galera: the health check failed to connect.
    PROXY_GALERA_CONN_TIMEOUT = 9014 "HY000";
    /// Galera: the answer makes no sense.
    PROXY_GALERA_CHECK = 9015 "HY000";
    /// Aurora: the health check took too long.
    PROXY_AURORA_TIMEOUT = 9016 "HY000";
    /// Aurora: the health check failed to connect.
    PROXY_AURORA_CONN_TIMEOUT = 9017 "HY000";
    /// Aurora: the answer makes no sense.
    PROXY_AURORA_CHECK = 9018 "HY000";
    /// The replication lag of the server is NULL.
    PROXY_LAG_IS_NULL = 9019 "HY000";
    /// Group replication: the answer makes no sense.
    PROXY_GR_HEALTH_CHECK = 9020 "HY000";
}

/// The SQLSTATE of an error number; `HY000` for those that we have no name for.
pub fn state_of(number: u16) -> &'static str {
    ALL.iter()
        .find(|(_, c)| c.number == number)
        .map_or("HY000", |(_, c)| c.state)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_has_five_characters_and_every_number_one_name() {
        let mut numbers: Vec<u16> = ALL.iter().map(|(_, c)| c.number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), ALL.len());
        assert!(
            ALL.iter()
                .all(|(_, c)| c.state.len() == 5 && c.state.is_ascii())
        );
    }

    #[test]
    fn an_unknown_number_has_the_general_state() {
        assert_eq!(state_of(1045), "28000");
        assert_eq!(state_of(60000), "HY000");
    }
}
