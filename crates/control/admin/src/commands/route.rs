//! `EXPLAIN ROUTE '<sql>' [AS user] [IN schema]`: ours.

use super::{Command, after, is, unquoted};

/// A statement, and whose it would be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The statement.
    pub sql: String,
    /// The user, if one was named.
    pub user: Option<String>,
    /// The schema, if one was named.
    pub schema: Option<String>,
}

pub(super) fn parse(text: &str, words: &[&str]) -> Option<Command> {
    after(words, "EXPLAIN ROUTE")
        .or_else(|| words.get(1).filter(|word| word.to_ascii_uppercase().starts_with("ROUTE'")).map(|_| words))?;
    let at = text.find(['\'', '"'])?;
    let (sql, rest) = quoted(&text[at..])?;
    let mut question = Question { sql, user: None, schema: None };
    let rest: Vec<_> = rest.split_whitespace().collect();
    let mut rest = &rest[..];
    while let [word, name, tail @ ..] = rest {
        let slot = if is(&[word], &["AS"]) {
            &mut question.user
        } else if is(&[word], &["IN"]) {
            &mut question.schema
        } else {
            return None;
        };
        if slot.replace(unquoted(name).to_owned()).is_some() {
            return None;
        }
        rest = tail;
    }
    rest.is_empty().then_some(Command::ExplainRoute(question))
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
            Command::ExplainRoute(Question { sql, user, schema }) => {
                format!("{sql}|{}|{}", user.unwrap_or_default(), schema.unwrap_or_default())
            }
            other => format!("{other:?}"),
        };
        assert_eq!(asked("EXPLAIN ROUTE 'SELECT ''a'' FROM t' AS bob IN shop;"), "SELECT 'a' FROM t|bob|shop");
        assert_eq!(asked("explain route \"SELECT 'x'\" in `shop`"), "SELECT 'x'||shop");
        assert_eq!(asked("EXPLAIN ROUTE 'SELECT 1'"), "SELECT 1||");
        assert!(asked("EXPLAIN ROUTE 'SELECT 1' TO bob").starts_with("Sql"));
        assert!(asked("EXPLAIN SELECT 1").starts_with("Sql"));
    }
}
