//! Session variables that are more than a name and a value.

/// A session variable of ours for what `SET SESSION TRANSACTION …` sets: its name differs between
/// servers, its statement does not.
pub const ISOLATION: &str = "transaction isolation level";
/// Likewise for READ ONLY and READ WRITE.
pub const ACCESS: &str = "transaction access mode";

/// Likewise for `SET ROLE …`. No reset undoes it, so a connection with a role serves only sessions
/// that have set one.
pub const ROLE: &str = "role of the session";

/// Whether the definitions of columns are left out: a variable that only a connection with
/// `CLIENT_OPTIONAL_RESULTSET_METADATA` has.
pub(crate) const METADATA: &str = "resultset_metadata";

/// Variables that say what of its changes a server tells a session. Where it was told to tell all,
/// they are what the session has asked for and not what is set there: it is told no more (see
/// `track`).
pub(crate) const TOLD: [&str; 3] = [
    "session_track_system_variables",
    "session_track_schema",
    "session_track_state_change",
];

/// The variable by which MySQL is asked to tell of transactions: that one is to begin otherwise
/// than others nothing else says.
pub(crate) const TRANSACTIONS: &str = "session_track_transaction_info";

/// The value in a state of what was set to its default where that is not what a connection begins
/// with.
pub const DEFAULT: &str = "DEFAULT";

/// Variables that SET NAMES and SET CHARACTER SET also set.
pub const CHARSET_VARIABLES: [&str; 4] = [
    "character_set_client",
    "character_set_results",
    "character_set_connection",
    "collation_connection",
];

/// Sets [`BIG_SELECTS`], too.
pub(crate) const JOIN_MAX: &str = "max_join_size";
pub(crate) const BIG_SELECTS: &str = "sql_big_selects";

/// How long a literal for a session variable may be to be remembered, in bytes; the longest true
/// value is that of `optimizer_switch`, a kilobyte. Numbers may have zeros in front of them, and
/// lists may name one thing often. What the server is to tell of is looked through for each
/// statement.
#[must_use]
pub fn value_len_max(name: &str, literal: &[u8]) -> usize {
    match literal.first() {
        Some(b'\'' | b'"') if name == TOLD[0] => 256,
        Some(b'\'' | b'"') => 4 << 10,
        _ => 64,
    }
}

/// The place in a state of what can be set as a variable and by `SET SESSION TRANSACTION`, and the
/// words of that statement: one place for both, or the older could win on the next connection.
/// `Err` for a value that has no words.
#[must_use]
pub fn characteristic(name: &str, literal: &str) -> Option<Result<(&'static str, String), ()>> {
    let key = match name {
        "transaction_isolation" | "tx_isolation" => ISOLATION,
        "transaction_read_only" | "tx_read_only" => ACCESS,
        _ => return None,
    };
    let text = literal.trim_matches(['\'', '"']).to_ascii_uppercase();
    Some(match (key, text.as_str()) {
        // The variable's spelling has hyphens, the statement's has blanks.
        (ISOLATION, "READ-UNCOMMITTED" | "READ-COMMITTED" | "REPEATABLE-READ" | "SERIALIZABLE") => {
            Ok((key, format!("ISOLATION LEVEL {}", text.replace('-', " "))))
        }
        (ACCESS, "1" | "ON" | "TRUE") => Ok((key, "READ ONLY".to_owned())),
        (ACCESS, "0" | "OFF" | "FALSE") => Ok((key, "READ WRITE".to_owned())),
        (_, "DEFAULT") => Ok((key, String::new())),
        _ => Err(()),
    })
}

/// The variable that is set with this one, or is this one by another name (MariaDB).
pub(crate) fn other_name(name: &str) -> Option<&'static str> {
    match name {
        "default_storage_engine" => Some("storage_engine"),
        "storage_engine" => Some("default_storage_engine"),
        "tmp_memory_table_size" => Some("tmp_table_size"),
        "tmp_table_size" => Some("tmp_memory_table_size"),
        "log_slow_query_time" => Some("long_query_time"),
        "long_query_time" => Some("log_slow_query_time"),
        "wsrep_causal_reads" => Some("wsrep_sync_wait"),
        "wsrep_sync_wait" => Some("wsrep_causal_reads"),
        // A limit turns them off.
        JOIN_MAX => Some(BIG_SELECTS),
        "character_set_connection" => Some("collation_connection"),
        "collation_connection" => Some("character_set_connection"),
        "character_set_server" => Some("collation_server"),
        "collation_server" => Some("character_set_server"),
        _ => None,
    }
}
