//! What MySQL's clients say to any server, and servers that are none do not understand: a text becomes
//! one value, or is left to the host.

use crate::hello::{self, Asked};
use sql::set::{self, Scope, Setting, Value};

/// Request of a statement to the session.
#[derive(Debug, Clone, PartialEq)]
pub enum Said {
    /// Nothing: blanks and comments.
    Blank,
    /// OK, and nothing is done.
    Accept,
    /// `SET`: names and values, as they were written; names of user variables with their `@`.
    Set(Vec<(String, String)>),
    /// BEGIN, START TRANSACTION.
    Begin,
    /// COMMIT.
    Commit,
    /// ROLLBACK of the whole.
    Rollback,
    /// USE.
    Use(String),
    /// `SELECT @@x, …`.
    Variables(Vec<Asked>),
    /// `SHOW VARIABLES LIKE …`: the pattern.
    ShowVariables(Option<String>),
    /// `SELECT SLEEP(n)`.
    Sleep(f64),
    /// Statement that may not be done here.
    Refuse(&'static str),
    /// An answer without rows, of these columns.
    Empty(&'static [&'static str]),
    /// Statement that the host has to understand itself: the text, trimmed.
    Sql(String),
}

/// Nothing that is understood by its words has so many; a text of 64 MiB may.
const WORDS_MAX: usize = 1000;
/// Understands a statement, as far as all hosts do the same.
#[must_use]
pub fn parse(text: &str) -> Said {
    let text = text.trim().trim_end_matches(';').trim_end();
    let bare = without_comments(text);
    let words = words(&bare);
    let [first, ..] = words[..] else {
        // `/*!40101 SET … */` is how dumps say what only MySQL should do.
        return if text.starts_with("/*!") {
            Said::Accept
        } else {
            Said::Blank
        };
    };
    let upper: Vec<String> = words.iter().map(|word| word.to_ascii_uppercase()).collect();
    let upper: Vec<&str> = upper.iter().map(String::as_str).collect();
    match (first.to_ascii_uppercase().as_str(), &upper[..]) {
        ("SET", _) => set_statement(text),
        ("BEGIN", [_] | [_, "WORK"]) | ("START", [_, "TRANSACTION", ..]) => Said::Begin,
        ("COMMIT", _) => Said::Commit,
        ("ROLLBACK", [_] | [_, "WORK"] | [_, "AND", ..]) => Said::Rollback,
        ("USE", [_, _]) => Said::Use(name(words[1]).to_owned()),
        ("LOCK" | "UNLOCK", [_, "TABLE" | "TABLES", ..]) | ("FLUSH", _) => Said::Accept,
        ("SHOW", _) => show(&words, &upper).unwrap_or_else(|| Said::Sql(text.to_owned())),
        ("SELECT", _) => select(text),
        _ => Said::Sql(text.to_owned()),
    }
}

/// The first words of a text.
#[must_use]
pub fn words(bare: &str) -> Vec<&str> {
    bare.split_whitespace().take(WORDS_MAX).collect()
}

fn select(text: &str) -> Said {
    if let Some(asked) = hello::variables_asked(text) {
        return Said::Variables(asked);
    }
    let short = if text.len() <= 4096 { text } else { "" };
    let compact: String = short
        .chars()
        .filter(|c| !c.is_whitespace())
        .collect::<String>()
        .to_ascii_uppercase();
    let seconds = compact
        .strip_prefix("SELECTSLEEP(")
        .and_then(|rest| rest.strip_suffix(')'))
        .and_then(|number| number.parse().ok());
    if let Some(seconds) = seconds.filter(|seconds: &f64| seconds.is_finite() && *seconds >= 0.0) {
        return Said::Sleep(seconds);
    }
    Said::Sql(text.to_owned())
}

fn show(words: &[&str], upper: &[&str]) -> Option<Said> {
    Some(match upper {
        [_, "VARIABLES", rest @ ..] | [_, "SESSION" | "GLOBAL", "VARIABLES", rest @ ..] => {
            let pattern = match rest {
                ["LIKE", ..] => words.last().map(|pattern| unquote(pattern)),
                ["WHERE", ..] => words
                    .last()
                    .map(|pattern| unquote(pattern.rsplit('=').next().unwrap_or_default())),
                _ => None,
            };
            Said::ShowVariables(pattern)
        }
        [_, "STATUS", ..] | [_, "SESSION" | "GLOBAL", "STATUS", ..] => {
            Said::Empty(&["Variable_name", "Value"])
        }
        [_, "WARNINGS" | "ERRORS", ..] => Said::Empty(&["Level", "Code", "Message"]),
        [_, "COLLATION", ..] => Said::Empty(&[
            "Collation",
            "Charset",
            "Id",
            "Default",
            "Compiled",
            "Sortlen",
        ]),
        [_, "CHARSET", ..] | [_, "CHARACTER", "SET", ..] => {
            Said::Empty(&["Charset", "Description", "Default collation", "Maxlen"])
        }
        [_, "PROCESSLIST"] | [_, "FULL", "PROCESSLIST"] => Said::Empty(&[
            "Id", "User", "Host", "db", "Command", "Time", "State", "Info",
        ]),
        [_, "INDEX" | "INDEXES" | "KEYS", ..] => Said::Empty(&[
            "Table",
            "Non_unique",
            "Key_name",
            "Seq_in_index",
            "Column_name",
        ]),
        [_, "REPLICA" | "SLAVE", "STATUS", ..] | [_, "ALL", "REPLICAS" | "SLAVES", "STATUS"] => {
            Said::Empty(&["Seconds_Behind_Source"])
        }
        [_, "ENGINES"] | [_, "STORAGE", "ENGINES"] => Said::Empty(&[
            "Engine",
            "Support",
            "Comment",
            "Transactions",
            "XA",
            "Savepoints",
        ]),
        [_, "PRIVILEGES"] => Said::Empty(&["Privilege", "Context", "Comment"]),
        [_, "PROFILES"] => Said::Empty(&["Query_ID", "Duration", "Query"]),
        [_, "TRIGGERS" | "EVENTS" | "PLUGINS", ..]
        | [_, "FUNCTION" | "PROCEDURE", "STATUS", ..] => Said::Empty(&["Name"]),
        _ => return None,
    })
}

fn set_statement(text: &str) -> Said {
    let Ok(settings) = set::parse(text.as_bytes()) else {
        return Said::Refuse("this SET is not understood");
    };
    let mut values = Vec::new();
    let written = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim();
        let inside = text
            .strip_prefix(['\'', '"'])
            .and_then(|text| text.strip_suffix(['\'', '"']));
        inside.unwrap_or(text).to_owned()
    };
    for setting in settings {
        match setting {
            Setting::Variable(assignment) => match (assignment.scope, assignment.value) {
                (Scope::User, Value::Literal(value)) => {
                    values.push((format!("@{}", assignment.name), written(value)));
                }
                (Scope::User, _) => {
                    return Said::Refuse("a user variable has a plain value on this server");
                }
                (Scope::Global | Scope::Persist | Scope::PersistOnly, _) | (_, Value::Default) => {}
                (_, Value::Literal(value) | Value::Expression(value)) => {
                    values.push((assignment.name, written(value)))
                }
            },
            Setting::Names { charset, .. } | Setting::CharacterSet(charset) => {
                let charset = charset.unwrap_or_else(|| "utf8mb4".into());
                for name in [
                    "character_set_client",
                    "character_set_connection",
                    "character_set_results",
                ] {
                    values.push((name.into(), charset.clone()));
                }
            }
            Setting::Transaction { .. } => {}
            _ => return Said::Refuse("this SET is not known to this server"),
        }
    }
    Said::Set(values)
}

/// A name without its quotes.
#[must_use]
pub fn name(text: &str) -> &str {
    text.trim_matches(['`', '"'])
}

/// A text without its quotes.
#[must_use]
pub fn unquote(text: &str) -> String {
    text.trim_matches(['\'', '"']).to_owned()
}

/// The text without comments in front and behind; those in between do not hide the first words.
#[must_use]
pub fn without_comments(text: &str) -> String {
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        let end = if rest.starts_with("/*") {
            rest.find("*/").map(|at| at + 2)
        } else if rest.starts_with("-- ") || rest.starts_with('#') {
            rest.find('\n').map(|at| at + 1)
        } else {
            return rest.to_owned();
        };
        rest = end.map_or("", |end| &rest[end..]);
    }
}

/// The rows of SHOW VARIABLES, those whose names are like the pattern.
pub fn show_variables(
    pattern: Option<&str>,
    value: impl Fn(&str) -> Option<String>,
) -> Vec<Vec<Option<String>>> {
    const SHOWN: &[&str] = &[
        "auto_increment_increment",
        "autocommit",
        "character_set_client",
        "character_set_connection",
        "character_set_results",
        "character_set_server",
        "collation_connection",
        "collation_server",
        "hostname",
        "init_connect",
        "interactive_timeout",
        "license",
        "lower_case_table_names",
        "max_allowed_packet",
        "net_buffer_length",
        "net_write_timeout",
        "read_only",
        "sql_mode",
        "system_time_zone",
        "time_zone",
        "transaction_isolation",
        "tx_isolation",
        "version",
        "version_comment",
        "wait_timeout",
    ];
    let matches = |name: &&&str| {
        pattern
            .is_none_or(|pattern| is_like(name.as_bytes(), pattern.to_ascii_lowercase().as_bytes()))
    };
    SHOWN
        .iter()
        .filter(matches)
        .map(|name| vec![Some((*name).to_owned()), value(name)])
        .collect()
}

/// LIKE of SQL, with `\` before a character that means itself. Each character of the pattern is
/// looked at once per place where the text can be by then, so no pattern takes long.
#[must_use]
pub fn is_like(text: &[u8], pattern: &[u8]) -> bool {
    // reached[n]: the pattern so far matches the first n characters.
    let mut reached = vec![false; text.len() + 1];
    reached[0] = true;
    let mut pattern = pattern.iter();
    while let Some(c) = pattern.next() {
        if *c == b'%' {
            let first = reached
                .iter()
                .position(|reached| *reached)
                .unwrap_or(reached.len());
            reached[first..].fill(true);
            continue;
        }
        let (c, any) = match (c, pattern.as_slice().first()) {
            (b'\\', Some(next)) => {
                pattern.next();
                (next, false)
            }
            (c, _) => (c, *c == b'_'),
        };
        for n in (0..text.len()).rev() {
            reached[n + 1] = reached[n] && (any || text[n] == *c);
        }
        reached[0] = false;
    }
    reached[text.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn like_matches_as_sql_says() {
        for (text, pattern, matches) in [
            ("sql_mode", "sql_mode", true),
            ("sql_mode", "sql\\_mode", true),
            ("sqlxmode", "sql\\_mode", false),
            ("sqlxmode", "sql_mode", true),
            ("tx_isolation", "%isol%", true),
            ("tx_isolation", "%isol", false),
            ("", "%", true),
            ("", "_", false),
            (
                "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
                "%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%a%b",
                false,
            ),
        ] {
            assert_eq!(
                is_like(text.as_bytes(), pattern.as_bytes()),
                matches,
                "{text} {pattern}"
            );
        }
    }
}
