//! Whether a SELECT asks for nothing but values of system variables that what the session has set
//! and the server's configuration determine: drivers and frameworks do at every login.
//!
//! <https://dev.mysql.com/doc/refman/9.4/en/using-system-variables.html>

use crate::words::{Kind, Token, Words};

/// More are not looked at: Connector/J asks for some twenty.
const ITEMS_MAX: usize = 64;

/// Variables that programs ask for at login. Left out is what a server changes by itself, what
/// tells servers of a hostgroup apart (`hostname`, `server_id`, `read_only`), and what follows the
/// schema.
const DETERMINED: [&str; 45] = [
    "auto_increment_increment",
    "auto_increment_offset",
    "autocommit",
    "character_set_client",
    "character_set_connection",
    "character_set_results",
    "character_set_server",
    "collation_connection",
    "collation_server",
    "default_storage_engine",
    "foreign_key_checks",
    "group_concat_max_len",
    "have_query_cache",
    "init_connect",
    "innodb_lock_wait_timeout",
    "interactive_timeout",
    "license",
    "lock_wait_timeout",
    "lower_case_table_names",
    "max_allowed_packet",
    "max_execution_time",
    "max_statement_time",
    "net_buffer_length",
    "net_read_timeout",
    "net_write_timeout",
    "optimizer_switch",
    "performance_schema",
    "query_cache_size",
    "query_cache_type",
    "sql_auto_is_null",
    "sql_big_selects",
    "sql_mode",
    "sql_notes",
    "sql_safe_updates",
    "sql_select_limit",
    "sql_warnings",
    "system_time_zone",
    "time_zone",
    "transaction_isolation",
    "tx_isolation",
    "unique_checks",
    "version",
    "version_comment",
    "version_compile_os",
    "wait_timeout",
];

/// Whether a text is `SELECT @@[SESSION.]name [[AS] alias], … [LIMIT n]` of such variables alone.
#[must_use]
pub fn asks_determined_values(text: &[u8]) -> bool {
    let mut words = Words::new(text);
    if !words.next().is_some_and(|first| first.is("SELECT")) {
        return false;
    }
    for _ in 0..ITEMS_MAX {
        match item(&mut words) {
            Some(Behind::Comma) => {}
            Some(Behind::Limit) => return is_limit(words),
            Some(Behind::End) => return true,
            None => return false,
        }
    }
    false
}

/// Sign or word behind an item.
enum Behind {
    Comma,
    Limit,
    End,
}

/// Reads one item and what stands behind it; `None` if it is anything else.
fn item(words: &mut Words<'_>) -> Option<Behind> {
    let sign = |token: Option<Token<'_>>, sign| token.is_some_and(|token| token.is_sign(sign));
    if !sign(words.next(), b'@') || !sign(words.next(), b'@') {
        return None;
    }
    let mut name = words.next()?;
    if name.is_any(&["SESSION", "LOCAL"]) {
        if !sign(words.next(), b'.') {
            return None;
        }
        name = words.next()?;
    }
    if name.kind != Kind::Word || !name.is_any(&DETERMINED) {
        return None;
    }
    let mut next = words.next();
    if let Some(word) = next.filter(|word| !matches!(word.kind, Kind::Sign)) {
        if word.is("LIMIT") {
            return Some(Behind::Limit);
        }
        let alias = if word.is("AS") { words.next()? } else { word };
        if !is_alias(alias, word.is("AS")) {
            return None;
        }
        next = words.next();
    }
    match next {
        None => Some(Behind::End),
        Some(token) if token.is_sign(b',') => Some(Behind::Comma),
        Some(token) if token.is_sign(b';') => words.next().is_none().then_some(Behind::End),
        Some(token) if token.is("LIMIT") => Some(Behind::Limit),
        Some(_) => None,
    }
}

/// Without AS only what is no word of the language can be one.
fn is_alias(alias: Token<'_>, has_as: bool) -> bool {
    match alias.kind {
        Kind::Name => true,
        Kind::Word => has_as || alias.is_any(&DETERMINED),
        Kind::String | Kind::Sign => false,
    }
}

/// A number above 0, and the end of the text.
fn is_limit(mut words: Words<'_>) -> bool {
    let number = |token: Token<'_>| {
        token.kind == Kind::Word
            && token.text.iter().all(u8::is_ascii_digit)
            && token.text.iter().any(|digit| *digit != b'0')
    };
    if !words.next().is_some_and(number) {
        return false;
    }
    match words.next() {
        None => true,
        Some(token) => token.is_sign(b';') && words.next().is_none(),
    }
}

/// Reads anything without a panic, and takes nothing for such a question that could call a function.
#[doc(hidden)]
pub fn fuzz_values(data: &[u8]) {
    if asks_determined_values(data) {
        assert!(!Words::new(data).any(|token| token.is_sign(b'(')));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_drivers_ask_at_login_is_determined() {
        for text in [
            "SELECT @@SESSION.sql_mode",
            "select @@session.transaction_isolation;",
            "SELECT @@max_allowed_packet,@@wait_timeout",
            "/* mysql-connector-j-8.0.33 */SELECT  @@session.auto_increment_increment AS \
             auto_increment_increment, @@character_set_client AS character_set_client, \
             @@license AS license, @@time_zone AS `time zone`",
            "SELECT @@version_comment LIMIT 1",
            "SELECT @@local.sql_mode limit 1 ;",
            "SELECT @@sql_mode sql_mode",
        ] {
            assert!(asks_determined_values(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn what_may_differ_goes_to_a_server() {
        for text in [
            "SELECT @@global.sql_mode",
            "SELECT @@hostname",
            "SELECT @@session.timestamp",
            "SELECT @@sql_mode, 1",
            "SELECT @@sql_mode, NOW()",
            "SELECT @@sql_mode FROM t",
            "SELECT @@sql_mode x FROM t",
            "SELECT @@sql_mode AS x FROM t",
            "SELECT @@sql_mode LIMIT 0",
            "SELECT @@sql_mode LIMIT 1, 0",
            "SELECT @@sql_mode INTO @a",
            "SELECT @@sql_mode = 'ANSI'",
            "SELECT @@sql_mode; SELECT 1",
            "SELECT @sql_mode",
            "SELECT DISTINCT @@sql_mode",
            "SELECT (SELECT @@sql_mode)",
            "SELECT @@sql_mode UNION SELECT 2",
            "SELECT @@read_only",
            "SELECT @@last_insert_id",
            "SELECT @@mykeycache.key_buffer_size",
            "SELECT",
            "SHOW VARIABLES",
        ] {
            assert!(!asks_determined_values(text.as_bytes()), "{text}");
        }
    }
}
