//! `LEARN MYSQL FIREWALL`: from what the firewall's rules in memory are made. Ours.

use super::{Command, after, unquoted};

/// Where a statement can have been seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// `stats_mysql_query_digest`.
    Digests,
    /// `history_mysql_query_digest`.
    History,
    /// Statements that DETECTING has let through, in `stats_mysql_firewall`.
    Detected,
    /// Statements that PROTECTING has refused, in `stats_mysql_firewall`. Only if they are asked
    /// for: attacks may be among them.
    Blocked,
}

/// Choice of the statements that are learned.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Lesson {
    /// From where; if it was not said, from everywhere but [`Source::Blocked`].
    pub from: Option<Source>,
    /// Whose statements; those of all users of `mysql_firewall_whitelist_users` if it was not said.
    pub user: Option<String>,
}

const SOURCES: &[(&str, Source)] = &[
    ("FROM DIGESTS", Source::Digests),
    ("FROM HISTORY", Source::History),
    ("FROM DETECTED", Source::Detected),
    ("FROM BLOCKED", Source::Blocked),
];

pub(super) fn parse(words: &[&str]) -> Option<Command> {
    let mut rest = after(words, "LEARN MYSQL FIREWALL")?;
    let mut lesson = Lesson::default();
    if let Some((source, more)) = SOURCES
        .iter()
        .find_map(|(text, source)| Some((*source, after(rest, text)?)))
    {
        lesson.from = Some(source);
        rest = more;
    }
    if let Some([user, more @ ..]) = after(rest, "FOR") {
        lesson.user = Some(unquoted(user).to_owned());
        rest = more;
    }
    rest.is_empty().then_some(Command::LearnFirewall(lesson))
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;
    use crate::engine::View;

    #[test]
    fn what_and_whose_may_be_said() {
        let learned = |text: &str| match parse(text, View::Admin) {
            Command::LearnFirewall(lesson) => Some((lesson.from, lesson.user)),
            _ => None,
        };
        assert_eq!(learned("learn mysql firewall;"), Some((None, None)));
        assert_eq!(
            learned("LEARN MYSQL FIREWALL FROM HISTORY"),
            Some((Some(Source::History), None))
        );
        assert_eq!(
            learned("LEARN MYSQL FIREWALL FROM DETECTED FOR 'Bob'"),
            Some((Some(Source::Detected), Some("Bob".into())))
        );
        assert_eq!(
            learned("LEARN MYSQL FIREWALL FOR bob"),
            Some((None, Some("bob".into())))
        );
        assert_eq!(
            learned("LEARN MYSQL FIREWALL FROM BLOCKED"),
            Some((Some(Source::Blocked), None))
        );
        for text in [
            "LEARN MYSQL FIREWALL FROM",
            "LEARN MYSQL FIREWALL FOR",
            "LEARN MYSQL FIREWALL FOR a b",
            "LEARN MYSQL",
        ] {
            assert_eq!(learned(text), None, "{text}");
        }
        assert!(matches!(
            parse("LEARN MYSQL FIREWALL", View::Stats),
            Command::Sql(_)
        ));
    }
}
