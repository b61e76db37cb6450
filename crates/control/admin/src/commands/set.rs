//! SET: a variable of ours, or what clients set for themselves at their start.

use super::command::{Assignment, Command};
use super::words::{after, literal};

/// Names that clients set and nobody minds, as ProxySQL has it.
const ACCEPTED: &[&str] = &[
    "names",
    "autocommit",
    "character_set_results",
    "sql_safe_updates",
    "session",
    "wait_timeout",
    "global",
    "character",
];

pub(super) fn parse(text: &str, words: &[&str]) -> Option<Command> {
    let rest = after(words, "SET")
        .filter(|rest| !rest.is_empty())
        .map(|_| text[3..].trim_start())?;
    let first = rest
        .split(|c: char| c.is_whitespace() || c == '=')
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase();
    // `SET GLOBAL mysql-x=1` is not understood by ProxySQL and must not look as if it had worked.
    let ours = rest.contains("mysql-")
        || rest.contains("admin-")
        || rest.contains("sqliteserver-")
        || rest.contains("clickhouse-");
    if ACCEPTED.contains(&first.as_str()) && !ours {
        return Some(Command::Accept);
    }
    let (name, value) = rest.split_once('=')?;
    // What stands behind a `;` is another statement, be it only a comment.
    let value = door::split::statements(value).next().unwrap_or_default();
    let (name, value) = (name.trim_end().trim_end_matches(':'), value.trim());
    let bare =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | ':' | '/' | '-' | '+' | '%');
    let is_word = !value.is_empty() && value.chars().all(bare) && !value.starts_with('-');
    let value = if is_word {
        literal(value)
    } else {
        value.to_owned()
    };
    Some(Command::Set(Assignment {
        name: name.to_owned(),
        value,
    }))
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;
    use crate::engine::View;

    #[test]
    fn values_may_be_bare_or_in_either_kind_of_quotes() {
        let set = |text: &str| match parse(text, View::Admin) {
            Command::Set(Assignment { name, value }) => format!("{name} {value}"),
            other => format!("{other:?}"),
        };
        assert_eq!(
            set("SET mysql-ssl_p2s_cert=\"/var/lib/proxysql/client-cert.pem\";"),
            "mysql-ssl_p2s_cert \"/var/lib/proxysql/client-cert.pem\""
        );
        assert_eq!(
            set("SET mysql-ssl_p2s_cipher='ECDHE-RSA-AES256-SHA'"),
            "mysql-ssl_p2s_cipher 'ECDHE-RSA-AES256-SHA'"
        );
        assert_eq!(
            set("set  mysql-verbose_query_error = true"),
            "mysql-verbose_query_error 'true'"
        );
        assert_eq!(
            set("SET mysql-max_connections=-1"),
            "mysql-max_connections -1"
        );
        assert_eq!(set("SET mysql-x=5"), "mysql-x '5'");
        assert_eq!(set("SET GLOBAL mysql-x=5"), "GLOBAL mysql-x '5'");
        assert_eq!(set("SET mysql-x=5; -- note"), "mysql-x '5'");
        assert_eq!(set("SET mysql-x='a;b'; SELECT 1"), "mysql-x 'a;b'");
        assert_eq!(set("SET NAMES utf8"), "Accept");
        assert_eq!(set("SET autocommit=1"), "Accept");
    }
}
