//! `LEARN MYSQL FIREWALL`: from what the firewall's rules in memory are made. Ours.

use super::command::{Command, Lesson, Source};
use super::words::{after, unquoted};

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
