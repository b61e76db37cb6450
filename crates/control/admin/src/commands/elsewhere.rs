//! Commands of ProxySQL's builds, plugins and later versions that mean nothing here. Whoever types one
//! is told why, and where to look instead.

use super::command::Command;
use super::words::after;

const REFUSED: &[(&[&str], &str)] = &[
    (
        &["LOAD DEBUG", "SAVE DEBUG"],
        "DEBUG is in ProxySQL's debug builds only, and not available here",
    ),
    (
        &["LOAD PGSQL", "SAVE PGSQL", "SHOW PGSQL"],
        "Millrace does not speak PostgreSQL's protocol",
    ),
    (
        &[
            "LOAD LDAP VARIABLES",
            "SAVE LDAP VARIABLES",
            "SHOW LDAP VARIABLES",
            "LOAD MYSQL LDAP MAPPING",
            "SAVE MYSQL LDAP MAPPING",
        ],
        "LDAP is a plugin of ProxySQL, and not available here; with mysql-relay_logins servers check the passwords",
    ),
    (
        &["PROXYSQLTEST", "PROXYSQL_SIMULATOR"],
        "this is a test inside of ProxySQL, and not available here",
    ),
    (
        &["DUMP EVENTSLOG"],
        "events are in the files of mysql-eventslog_filename; `millrace events` reads them",
    ),
];

/// Refusal of a command that is known from elsewhere.
pub(super) fn refused(words: &[&str]) -> Option<Command> {
    let begins = |begin: &&str| after(words, begin).is_some();
    REFUSED
        .iter()
        .find(|(begin, _)| begin.iter().any(begins))
        .map(|(_, why)| Command::NotAvailable(why))
}
