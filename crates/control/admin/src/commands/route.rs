//! `EXPLAIN ROUTE '<sql>' [AS user] [IN schema] [FROM client] [ON address:port] [FLAG n]` and
//! `EXPLAIN ROUTE AGAINST DIGESTS [ALL]`: ours.

use super::command::{Command, Question};
use super::words::{after, is, unquoted};

pub(super) fn parse(text: &str, words: &[&str]) -> Option<Command> {
    match after(words, "EXPLAIN ROUTE AGAINST DIGESTS") {
        Some([]) => return Some(Command::ReplayDigests { all: false }),
        Some([word]) if is(&[word], &["ALL"]) => return Some(Command::ReplayDigests { all: true }),
        _ => {}
    }
    after(words, "EXPLAIN ROUTE").or_else(|| {
        words
            .get(1)
            .filter(|word| word.to_ascii_uppercase().starts_with("ROUTE'"))
            .map(|_| words)
    })?;
    let at = text.find(['\'', '"'])?;
    let (sql, rest) = quoted(&text[at..])?;
    let mut question = Question {
        sql,
        ..Question::default()
    };
    let rest: Vec<_> = rest.split_whitespace().collect();
    let mut seen = Vec::new();
    for pair in rest.chunks(2) {
        let [word, value] = pair else { return None };
        let (word, value) = (word.to_ascii_uppercase(), unquoted(value).to_owned());
        match word.as_str() {
            "AS" => question.user = Some(value),
            "IN" => question.schema = Some(value),
            "FROM" => question.client = Some(value),
            "ON" => {
                let (address, port) = value.rsplit_once(':')?;
                question.listener = Some((address.to_owned(), port.parse().ok()?));
            }
            "FLAG" => question.flag = Some(value.parse().ok()?),
            _ => return None,
        }
        if seen.contains(&word) {
            return None;
        }
        seen.push(word);
    }
    Some(Command::ExplainRoute(question))
}

/// The text between quotes, where a doubled quote is one, and what follows.
fn quoted(text: &str) -> Option<(String, &str)> {
    let quote = text.chars().next()?;
    let mut inside = String::new();
    let mut rest = &text[1..];
    loop {
        let end = rest.find(quote)?;
        inside.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix(quote) {
            Some(more) => {
                inside.push(quote);
                rest = more;
            }
            None => return Some((inside, rest)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;
    use crate::engine::View;

    #[test]
    fn a_route_is_asked_with_or_without_a_user_and_a_schema() {
        let asked = |text: &str| match parse(text, View::Admin) {
            Command::ExplainRoute(Question {
                sql,
                user,
                schema,
                client: None,
                listener: None,
                flag: None,
            }) => {
                format!(
                    "{sql}|{}|{}",
                    user.unwrap_or_default(),
                    schema.unwrap_or_default()
                )
            }
            other => format!("{other:?}"),
        };
        assert_eq!(
            asked("EXPLAIN ROUTE 'SELECT ''a'' FROM t' AS bob IN shop;"),
            "SELECT 'a' FROM t|bob|shop"
        );
        assert_eq!(
            asked("explain route \"SELECT 'x'\" in `shop`"),
            "SELECT 'x'||shop"
        );
        assert_eq!(asked("EXPLAIN ROUTE 'SELECT 1'"), "SELECT 1||");
        assert!(asked("EXPLAIN ROUTE 'SELECT 1' TO bob").starts_with("NotAvailable"));
        assert!(asked("EXPLAIN ROUTE 'SELECT 1' AS bob AS bob").starts_with("NotAvailable"));
        assert!(asked("EXPLAIN SELECT 1").starts_with("Sql"));
        let told = parse(
            "EXPLAIN ROUTE 'x' FROM 10.0.0.1 ON '::1:6033' FLAG 3",
            View::Admin,
        );
        let listener = Some(("::1".to_owned(), 6033));
        let client = Some("10.0.0.1".to_owned());
        let question = Question {
            sql: "x".into(),
            client,
            listener,
            flag: Some(3),
            ..Question::default()
        };
        assert_eq!(told, Command::ExplainRoute(question));
    }

    #[test]
    fn digests_are_replayed() {
        assert_eq!(
            parse("explain route against digests;", View::Admin),
            Command::ReplayDigests { all: false }
        );
        assert_eq!(
            parse("EXPLAIN ROUTE AGAINST DIGESTS ALL", View::Admin),
            Command::ReplayDigests { all: true }
        );
        assert!(matches!(
            parse("EXPLAIN ROUTE AGAINST DIGESTS x", View::Admin),
            Command::NotAvailable(_)
        ));
    }
}
