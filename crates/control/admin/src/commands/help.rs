//! `help` and `?`: the main commands, and where all of them are listed.

use crate::engine::View;

/// A command and its effect. The first `FOR_ALL` are for everybody, the others for
/// administrators.
const COMMANDS: &[(&str, &str)] = &[
    (
        "SHOW TABLES",
        "lists the tables; SHOW CREATE TABLE t says what is in one",
    ),
    (
        "SELECT * FROM stats_millrace_variables",
        "lists every variable with its value, its default and what it does",
    ),
    (
        "LOAD x TO RUNTIME",
        "puts what was edited into force; x is MYSQL SERVERS, MYSQL USERS, MYSQL QUERY RULES, \
         MYSQL VARIABLES, ADMIN VARIABLES ...",
    ),
    ("SAVE x TO DISK", "keeps what was edited for the next start"),
    ("LOAD x FROM DISK", "edits again what was saved"),
    ("SAVE x FROM RUNTIME", "edits again what is in force"),
    ("LOAD x FROM CONFIG", "reads the configuration file again"),
    (
        "SET variable = value",
        "changes a variable; LOAD MYSQL VARIABLES TO RUNTIME puts it into force",
    ),
    (
        "SHOW PROCESSLIST",
        "lists the sessions; KILL CONNECTION n ends one",
    ),
    (
        "EXPLAIN ROUTE '<sql>' AS user IN schema",
        "shows where a statement would go, and why",
    ),
    (
        "SAVE CONFIG TO FILE path",
        "writes the configuration as a file",
    ),
    (
        "PROXYSQL SHUTDOWN",
        "ends the proxy when its clients are done",
    ),
];

/// Last row of the answer.
const REST: (&str, &str) = (
    "...",
    "all commands are in docs/features/admin.md; those of ProxySQL's manual work here",
);

/// Commands that a statistics user may give, too.
const FOR_ALL: usize = 2;

/// Builds the SELECT that answers.
pub(super) fn answer(view: View) -> String {
    let all = match view {
        View::Admin => COMMANDS,
        View::Stats => &COMMANDS[..FOR_ALL],
    };
    let quoted = |text: &str| text.replace('\'', "''");
    let rows: Vec<_> = all
        .iter()
        .chain([&REST])
        .map(|(command, does)| format!("('{}', '{}')", quoted(command), quoted(does)))
        .collect();
    format!(
        "SELECT column1 AS command, column2 AS does FROM (VALUES {})",
        rows.join(", ")
    )
}
