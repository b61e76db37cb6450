//! Names in a file: lists and groups that there are, and what to say about a name that this version
//! does not have.
//!
//! A name too much never stops a start. ProxySQL leaves it out, so files that people have used for
//! years carry some.

use crate::tables::{self, Module};
use config::Variable;

/// Groups of variables.
pub(super) const GROUPS: &[(&str, Module)] = &[
    ("mysql_variables", Module::MysqlVariables),
    ("admin_variables", Module::AdminVariables),
    ("sqliteserver_variables", Module::SqliteVariables),
    ("clickhouse_variables", Module::ClickhouseVariables),
];

/// Another name of a list than that of its table.
const OTHER_LISTS: &[(&str, &str)] = &[("restapi", "restapi_routes")];

/// List of a file: its name, the table, and the module.
pub(super) type List = (&'static str, &'static str, Module);

/// A list for each table that the operator writes and that is kept on disk.
pub(super) fn lists() -> impl Iterator<Item = List> {
    let of = |table: &'static tables::Table| match table.kind {
        tables::Kind::Declared {
            module, disk: true, ..
        } => Some((table.name, module)),
        _ => None,
    };
    tables::all().filter_map(of).flat_map(|(table, module)| {
        let others = OTHER_LISTS.iter().filter(move |(_, of)| *of == table);
        let names = others.map(|(other, _)| *other).chain([table]);
        names.map(move |name| (name, table, module))
    })
}

/// Variables of ProxySQL before 2.7, by their full names, and how their purpose is served now.
const OLDER: &[(&str, &str)] = &[
    (
        "admin-hash_passwords",
        "mysql_users takes passwords in clear and hashed, and keeps them as they are written",
    ),
    ("admin-debug", "`errorlog` names the file of the log"),
    (
        "mysql-session_debug",
        "stats_mysql_processlist shows what a session does",
    ),
    (
        "mysql-forward_autocommit",
        "autocommit belongs to the session and is set on every connection that serves it",
    ),
    (
        "mysql-client_found_rows",
        "mysql-server_capabilities offers CLIENT_FOUND_ROWS, and each client chooses",
    ),
    (
        "mysql-default_sql_mode",
        "init_connect sets it, and each session may set its own",
    ),
    (
        "mysql-default_time_zone",
        "init_connect sets it, and each session may set its own",
    ),
    (
        "mysql-default_isolation_level",
        "init_connect sets it, and each session may set its own",
    ),
    (
        "mysql-default_tx_isolation",
        "init_connect sets it, and each session may set its own",
    ),
    (
        "mysql-default_transaction_read",
        "init_connect sets it, and each session may set its own",
    ),
    (
        "mysql-default_character_set_results",
        "default_charset is for clients whose character set is unknown",
    ),
    (
        "mysql-default_sql_auto_is_null",
        "init_connect sets it, and each session may set its own",
    ),
    (
        "mysql-default_sql_select_limit",
        "init_connect sets it, and each session may set its own",
    ),
    (
        "mysql-default_sql_safe_updates",
        "init_connect sets it, and each session may set its own",
    ),
    (
        "mysql-default_max_join_size",
        "init_connect sets it, and each session may set its own",
    ),
    (
        "mysql-default_net_write_timeout",
        "init_connect sets it, and each session may set its own",
    ),
    (
        "mysql-query_parser_token_delimiters",
        "hints stand in comments as key=value pairs separated by ';'",
    ),
    (
        "mysql-query_parser_key_value_delimiters",
        "hints stand in comments as key=value pairs separated by ';'",
    ),
    (
        "mysql-monitor_query_variables",
        "monitor_read_only_interval says how often servers are asked",
    ),
    (
        "mysql-monitor_query_status",
        "monitor_ping_interval says how often servers are asked",
    ),
    (
        "mysql-monitor_timer_cached",
        "the clock is always read when it is needed",
    ),
];

/// Parts of names that belong to what Millrace is not, as a sentence about it.
const ELSEWHERE: &[(&str, &str)] = &[
    ("pgsql", "Millrace does not speak PostgreSQL's protocol"),
    ("ldap", "Millrace does not ask LDAP"),
];

/// A variable as a file names it.
pub(super) enum Meant {
    /// By its name.
    Plainly(&'static Variable),
    /// By a name with something to say about it, as the predicate of a sentence.
    Nearly(&'static Variable, String),
    /// None; why, as the predicate of a sentence.
    Nothing(String),
}

/// The variable that `written` means in a group whose variables begin with `prefix`.
pub(super) fn variable(group: &str, prefix: &str, written: &str) -> Meant {
    let named = |name: &str| Variable::named(&format!("{prefix}{name}"));
    if let Some(known) = named(written) {
        return Meant::Plainly(known);
    }
    let bare = written.strip_prefix(prefix).unwrap_or(written);
    if let Some(known) = named(bare) {
        let words = format!("is read as '{bare}': names in {group} stand without '{prefix}'");
        return Meant::Nearly(known, words);
    }
    let full = format!("{prefix}{bare}");
    if let Some((_, instead)) = OLDER.iter().find(|(name, _)| *name == full) {
        return Meant::Nothing(format!(
            "is a variable of older versions of ProxySQL and is left out; now {instead}"
        ));
    }
    let at_home = GROUPS.iter().find(|(_, module)| {
        let home = module.prefix().unwrap_or_default();
        let own = written.strip_prefix(home).unwrap_or(written);
        Variable::named(&format!("{home}{own}")).is_some()
    });
    if let Some((home, _)) = at_home {
        return Meant::Nothing(format!(
            "is left out: it is no variable of {group}, but one of {home}; write it there"
        ));
    }
    let own = config::REGISTRY
        .iter()
        .filter_map(|known| known.name.strip_prefix(prefix));
    Meant::Nothing(unknown(bare, &format!("variable of {group}"), own))
}

/// Words for a name that nothing here has: `kind` is what it would be, `known` are the names of
/// that kind.
pub(super) fn unknown<'k>(
    written: &str,
    kind: &str,
    known: impl IntoIterator<Item = &'k str>,
) -> String {
    let elsewhere = ELSEWHERE.iter().find(|(part, _)| written.contains(part));
    if let Some((_, why)) = elsewhere {
        return format!("is left out: {why}");
    }
    let hint = nearest(written, known)
        .map_or_else(String::new, |near| format!("; did you mean '{near}'?"));
    format!("is no {kind} and is left out{hint}")
}

/// Longer names are nobody's slip of a finger.
const NAME_MAX: usize = 128;

/// The name that differs least, if it differs in no more than a third of its letters.
fn nearest<'k>(written: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    if written.len() > NAME_MAX {
        return None;
    }
    let near = known
        .into_iter()
        .map(|name| (slips(written.as_bytes(), name.as_bytes()), name))
        .min_by_key(|(slips, _)| *slips)?;
    let (slips, name) = near;
    (slips * 3 <= name.len().max(written.len())).then_some(name)
}

/// Letters that were left out, added, mistaken or swapped with their neighbour.
fn slips(a: &[u8], b: &[u8]) -> usize {
    let same = |x: u8, y: u8| x.eq_ignore_ascii_case(&y);
    let mut before_last = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let mistaken = usize::from(!same(a[i - 1], b[j - 1]));
            row[j] = (last[j - 1] + mistaken)
                .min(last[j] + 1)
                .min(row[j - 1] + 1);
            if i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]) {
                row[j] = row[j].min(before_last[j - 2] + 1);
            }
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_of_a_finger_are_counted() {
        for (a, b, count) in [
            ("", "abc", 3),
            ("prot", "port", 1),
            ("conect", "connect", 1),
            ("PORT", "port", 0),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(slips(a.as_bytes(), b.as_bytes()), count, "{a} {b}");
        }
        assert_eq!(nearest("prot", ["weight", "port"]), Some("port"));
        assert_eq!(nearest("writer", ["port", "weight"]), None);
        assert_eq!(nearest("x", []), None);
    }

    #[test]
    fn older_variables_are_none_of_this_version() {
        for (name, _) in OLDER {
            assert!(Variable::named(name).is_none(), "{name}");
        }
    }
}
