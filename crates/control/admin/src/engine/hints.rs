//! Names that later versions and other people's pages have and this interface has not: what is said
//! of them.

/// A part of SQLite's message in small letters, and what is added to it.
const HINTS: &[(&str, &str)] = &[
    ("pgsql", "Millrace does not speak PostgreSQL's protocol"),
    (
        "mysql_query_events",
        "events are in the files of mysql-eventslog_filename, which `millrace events` reads",
    ),
    (
        "stats_history.stats_mysql_query_digest",
        "the history of digests is stats_history.history_mysql_query_digest",
    ),
    (
        "multiplexdisabled",
        "holds of connections are in extended_info, with mysql-show_processlist_extended, and in stats_mysql_session_holds",
    ),
];

/// A message that a name is unknown, with what is known of the name.
pub(super) fn with_hint(message: String) -> String {
    if !message.starts_with("no such ") {
        return message;
    }
    let lower = message.to_ascii_lowercase();
    match HINTS.iter().find(|(part, _)| lower.contains(part)) {
        Some((_, hint)) => format!("{message}: {hint}"),
        None => message,
    }
}
