//! What a KILL asks for: `KILL [HARD | SOFT] [CONNECTION | QUERY] number`, or MariaDB's `… USER name`.

use crate::dynamic::variable;
use crate::reading::Lexing;
use crate::words::{Kind, Token, Words, unquote};

/// A KILL that was understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kill {
    /// Whom.
    pub whom: Whom,
    /// Only the statement that it runs.
    pub statement_only: bool,
}

/// Whom a KILL means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whom {
    /// The session of this number.
    Session(u64),
    /// The session itself, by `CONNECTION_ID()`.
    Oneself,
    /// The session whose number is the value of this user variable.
    Variable(String),
    /// The session whose number is the one parameter of what was prepared.
    Parameter,
    /// All sessions of a user.
    User {
        /// His name; none is one's own, by `CURRENT_USER`.
        name: Option<String>,
        /// Only those that come from there.
        host: Option<String>,
    },
}

/// Reads a KILL; none for what kills by something else: a statement's number, an expression that only a server can tell.
#[must_use]
pub fn kill(text: &[u8], lexing: Lexing) -> Option<Kill> {
    let mut words = lexing.words(text);
    if !words.next()?.is("KILL") {
        return None;
    }
    let mut word = words.next()?;
    if word.is_any(&["HARD", "SOFT"]) {
        word = words.next()?;
    }
    let statement_only = word.is("QUERY");
    if statement_only || word.is("CONNECTION") {
        word = words.next()?;
    }
    let whom = if word.is("CONNECTION_ID") {
        let called = words.next()?.is_sign(b'(') && words.next()?.is_sign(b')');
        called.then_some(Whom::Oneself)?
    } else if word.is_sign(b'@') {
        Whom::Variable(variable(&mut words, word)?.0)
    } else if word.is("USER") {
        user(&mut words)?
    } else if word.is_sign(b'?') {
        Whom::Parameter
    } else if word.kind == Kind::String {
        // In `"` it may be a name.
        let plain = word.text.starts_with(b"'") && word.is_whole();
        Whom::Session(plain.then(|| digits(&unquote(word.text))).flatten()?)
    } else {
        Whom::Session(digits(word.text)?)
    };
    let ended = words.all(|rest| rest.is_sign(b';'));
    ended.then_some(Kill { whom, statement_only })
}

/// A number in decimal digits; none for what has anything else in it, also where servers look at its beginning.
#[must_use]
pub fn digits(text: &[u8]) -> Option<u64> {
    let plain = text.iter().all(u8::is_ascii_digit);
    plain.then(|| std::str::from_utf8(text).ok()?.parse().ok()).flatten()
}

/// `name`, `name@host`, `CURRENT_USER`, `CURRENT_USER()`.
fn user(words: &mut Words<'_>) -> Option<Whom> {
    let token = words.next()?;
    if token.is("CURRENT_USER") {
        let called = words.is_before(b'(');
        if called && !(words.next()?.is_sign(b'(') && words.next()?.is_sign(b')')) {
            return None;
        }
        return Some(Whom::User { name: None, host: None });
    }
    let name = Some(said(token)?);
    if !words.is_before(b'@') {
        return Some(Whom::User { name, host: None });
    }
    words.next()?;
    let token = words.next()?;
    let mut host = said(token)?;
    let mut end = token.end();
    // `app@db-1.example.com` without quotes.
    while token.kind == Kind::Word
        && let Some(next) = words.peek().filter(|next| next.start == end && is_of_host(next))
    {
        host.push_str(std::str::from_utf8(next.text).ok()?);
        end = next.end();
        words.next()?;
    }
    Some(Whom::User { name, host: Some(host).filter(|host| host != "%") })
}

fn is_of_host(token: &Token<'_>) -> bool {
    token.kind == Kind::Word || token.is_sign(b'.') || token.is_sign(b'-')
}

/// A name, or a string that means the same everywhere.
fn said(token: Token<'_>) -> Option<String> {
    let plain = token.kind != Kind::Sign && token.is_whole() && !token.text.contains(&b'\\');
    String::from_utf8(unquote(token.text).into_owned()).ok().filter(|_| plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Kill> {
        kill(text.as_bytes(), Lexing::Escapes)
    }

    #[test]
    fn a_number_is_understood_in_every_form() {
        let whole = Kill { whom: Whom::Session(7), statement_only: false };
        for text in ["KILL 7", "kill connection 7;", "KILL HARD CONNECTION /* x */ 7", "KILL SOFT 7", "KILL SOFT CONNECTION 7"] {
            assert_eq!(read(text).as_ref(), Some(&whole), "{text}");
        }
        for text in ["KILL QUERY 7", "KILL HARD QUERY 7", "kill soft query 7"] {
            assert_eq!(read(text), Some(Kill { statement_only: true, ..whole.clone() }), "{text}");
        }
        for text in ["KILL '7'", "KILL CONNECTION '007' ;"] {
            assert_eq!(read(text).as_ref(), Some(&whole), "{text}");
        }
        for text in ["KILL ?", "KILL CONNECTION ?;"] {
            assert_eq!(read(text), Some(Kill { whom: Whom::Parameter, ..whole.clone() }), "{text}");
        }
        assert_eq!(read("KILL CONNECTION_ID()"), Some(Kill { whom: Whom::Oneself, ..whole.clone() }));
        for text in ["KILL @Id", "KILL CONNECTION @`id`;", "KILL HARD @id"] {
            assert_eq!(read(text), Some(Kill { whom: Whom::Variable("id".to_owned()), ..whole.clone() }), "{text}");
        }
    }

    #[test]
    fn a_user_is_named_with_a_host_or_without() {
        let of = |text: &str| match read(text) {
            Some(Kill { whom: Whom::User { name, host }, statement_only }) => {
                let (name, host) = (name.unwrap_or_default(), host.unwrap_or_default());
                format!("{name}|{host}|{statement_only}")
            }
            other => format!("{other:?}"),
        };
        for (text, wanted) in [
            ("KILL USER app", "app||false"),
            ("KILL SOFT QUERY USER 'App x'", "App x||true"),
            ("KILL CONNECTION USER `app`@'%';", "app||false"),
            ("KILL USER app@'10.0.0.7'", "app|10.0.0.7|false"),
            ("KILL USER \"app\" @ localhost", "app|localhost|false"),
            ("KILL USER app@10.0.0.7", "app|10.0.0.7|false"),
            ("KILL USER app@db-1.example.com ;", "app|db-1.example.com|false"),
            ("KILL USER CURRENT_USER", "||false"),
            ("KILL QUERY USER current_user()", "||true"),
        ] {
            assert_eq!(of(text), wanted, "{text}");
        }
    }

    #[test]
    fn what_is_no_number_of_a_session_is_not() {
        for text in [
            "KILL",
            "KILL QUERY",
            "KILL USER",
            "KILL USER app@",
            "KILL USER 'a\\'b'",
            "KILL USER CURRENT_USER(1)",
            "KILL USER app b",
            "KILL QUERY ID 7",
            "KILL @@id",
            "KILL @a.b",
            "KILL @id + 1",
            "KILL (7)",
            "KILL 7 8",
            "KILL 7; SELECT 1",
            "KILL -1",
            "KILL ''",
            "KILL '7x'",
            "KILL '+7'",
            "KILL '7' '8'",
            "KILL \"7\"",
            "KILL `7`",
            "KILL '7",
            "KILL ? + 1",
            "KILL ID ?",
            "SELECT 7",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
