//! What a KILL asks for: `KILL [HARD | SOFT] [CONNECTION | QUERY] number`, or MariaDB's `… USER
//! name` and `KILL QUERY ID number`. A number may be computed of what the session knows.

use crate::dynamic::variable;
use crate::lexing::Lexing;
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
    /// The session whose number comes of this.
    Computed(Computed),
    /// Statement that runs under a server's own number of it.
    Statement,
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

/// More numbers and operators than this are not read, nor parentheses that are deeper.
const ITEMS_MAX: usize = 64;
const DEPTH_MAX: usize = 16;

/// A sum or product of numbers that are written, the session's own and those in user variables: its
/// parts in the order in which a stack computes them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Computed(Vec<Item>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Item {
    Number(u64),
    /// `CONNECTION_ID()`.
    Own,
    /// The value of the user variable of this name, in lower case.
    Variable(String),
    Add,
    Subtract,
    Multiply,
}

impl Computed {
    /// Whether user variables are needed for it.
    #[must_use]
    pub fn names_variables(&self) -> bool {
        self.0.iter().any(|item| matches!(item, Item::Variable(_)))
    }

    /// The number. `own`: the session's; `variable`: the value of one as a number, or `Some(None)`
    /// for NULL. None if that has none, or what comes of it is negative or too large, also on the
    /// way there. NULL anywhere makes it 0: servers take that for NULL, and no session has it.
    pub fn value(&self, own: u64, variable: impl Fn(&str) -> Option<Option<u64>>) -> Option<u64> {
        let mut stack: Vec<Option<i128>> = Vec::new();
        for item in &self.0 {
            let value = match item {
                Item::Number(number) => Some(i128::from(*number)),
                Item::Own => Some(i128::from(own)),
                Item::Variable(name) => variable(name)?.map(i128::from),
                Item::Add | Item::Subtract | Item::Multiply => match (stack.pop()?, stack.pop()?) {
                    (Some(right), Some(left)) => {
                        let value = match item {
                            Item::Add => left.checked_add(right)?,
                            Item::Subtract => left.checked_sub(right)?,
                            _ => left.checked_mul(right)?,
                        };
                        // CONNECTION_ID() has no sign, so that servers refuse what is less than
                        // nothing (error 1690).
                        (value >= 0 || !self.0.contains(&Item::Own)).then_some(Some(value))?
                    }
                    _ => None,
                },
            };
            stack.push(value);
        }
        stack
            .pop()?
            .map_or(Some(0), |value| u64::try_from(value).ok())
    }

    fn push(&mut self, item: Item) -> Option<()> {
        (self.0.len() < ITEMS_MAX).then(|| self.0.push(item))
    }

    /// `product + product - …`
    fn sum(&mut self, words: &mut Words<'_>, depth: usize) -> Option<()> {
        self.product(words, depth)?;
        loop {
            let operator = if words.is_before(b'+') {
                Item::Add
            } else if words.is_before(b'-') {
                Item::Subtract
            } else {
                return Some(());
            };
            words.next()?;
            self.product(words, depth)?;
            self.push(operator)?;
        }
    }

    fn product(&mut self, words: &mut Words<'_>, depth: usize) -> Option<()> {
        self.number(words, depth)?;
        while words.is_before(b'*') {
            words.next()?;
            self.number(words, depth)?;
            self.push(Item::Multiply)?;
        }
        Some(())
    }

    fn number(&mut self, words: &mut Words<'_>, depth: usize) -> Option<()> {
        let word = words.next()?;
        if word.is_sign(b'(') {
            if depth >= DEPTH_MAX {
                return None;
            }
            self.sum(words, depth + 1)?;
            return words.next()?.is_sign(b')').then_some(());
        }
        let item = if word.is("CONNECTION_ID") {
            let called = words.next()?.is_sign(b'(') && words.next()?.is_sign(b')');
            called.then_some(Item::Own)?
        } else if word.is_sign(b'@') {
            Item::Variable(variable(words, word)?.0)
        } else if word.kind == Kind::String {
            // In `"` it may be a name, and two in a row are one.
            let plain = word.text.starts_with(b"'")
                && word.is_whole()
                && !words.peek().is_some_and(|next| next.kind == Kind::String);
            Item::Number(plain.then(|| digits(&unquote(word.text))).flatten()?)
        } else {
            Item::Number(digits(word.text)?)
        };
        self.push(item)
    }
}

/// Reads a KILL; none for what kills by something else: an expression that only a server can tell.
#[must_use]
pub fn kill(text: &[u8], lexing: Lexing) -> Option<Kill> {
    let mut words = lexing.words(text);
    if !words.next()?.is("KILL") {
        return None;
    }
    if words.peek()?.is_any(&["HARD", "SOFT"]) {
        words.next()?;
    }
    let statement_only = words.peek()?.is("QUERY");
    if statement_only || words.peek()?.is("CONNECTION") {
        words.next()?;
    }
    let word = words.peek()?;
    if statement_only && word.is("ID") {
        return Some(Kill {
            whom: Whom::Statement,
            statement_only,
        });
    }
    let whom = if word.is("USER") {
        words.next()?;
        user(&mut words)?
    } else if word.is_sign(b'?') {
        words.next()?;
        Whom::Parameter
    } else {
        let mut computed = Computed::default();
        computed.sum(&mut words, 0)?;
        match computed.0.as_slice() {
            [Item::Number(number)] => Whom::Session(*number),
            _ => Whom::Computed(computed),
        }
    };
    let ended = words.all(|rest| rest.is_sign(b';'));
    ended.then_some(Kill {
        whom,
        statement_only,
    })
}

/// A number in decimal digits; none for what has anything else in it, also where servers look at
/// its beginning.
#[must_use]
pub fn digits(text: &[u8]) -> Option<u64> {
    let plain = text.iter().all(u8::is_ascii_digit);
    plain
        .then(|| std::str::from_utf8(text).ok()?.parse().ok())
        .flatten()
}

/// `name`, `name@host`, `CURRENT_USER`, `CURRENT_USER()`.
fn user(words: &mut Words<'_>) -> Option<Whom> {
    let token = words.next()?;
    if token.is("CURRENT_USER") {
        let called = words.is_before(b'(');
        if called && !(words.next()?.is_sign(b'(') && words.next()?.is_sign(b')')) {
            return None;
        }
        return Some(Whom::User {
            name: None,
            host: None,
        });
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
        && let Some(next) = words
            .peek()
            .filter(|next| next.start == end && is_of_host(next))
    {
        host.push_str(std::str::from_utf8(next.text).ok()?);
        end = next.end();
        words.next()?;
    }
    Some(Whom::User {
        name,
        host: Some(host).filter(|host| host != "%"),
    })
}

fn is_of_host(token: &Token<'_>) -> bool {
    token.kind == Kind::Word || token.is_sign(b'.') || token.is_sign(b'-')
}

/// A name, or a string that means the same everywhere.
fn said(token: Token<'_>) -> Option<String> {
    let plain = token.kind != Kind::Sign && token.is_whole() && !token.text.contains(&b'\\');
    String::from_utf8(unquote(token.text).into_owned())
        .ok()
        .filter(|_| plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Kill> {
        kill(text.as_bytes(), Lexing::Escapes)
    }

    #[test]
    fn a_number_is_understood_in_every_form() {
        let whole = Kill {
            whom: Whom::Session(7),
            statement_only: false,
        };
        for text in [
            "KILL 7",
            "kill connection 7;",
            "KILL HARD CONNECTION /* x */ 7",
            "KILL SOFT 7",
            "KILL SOFT CONNECTION 7",
        ] {
            assert_eq!(read(text).as_ref(), Some(&whole), "{text}");
        }
        for text in ["KILL QUERY 7", "KILL HARD QUERY 7", "kill soft query 7"] {
            assert_eq!(
                read(text),
                Some(Kill {
                    statement_only: true,
                    ..whole.clone()
                }),
                "{text}"
            );
        }
        for text in ["KILL '7'", "KILL CONNECTION '007' ;"] {
            assert_eq!(read(text).as_ref(), Some(&whole), "{text}");
        }
        for text in ["KILL ?", "KILL CONNECTION ?;"] {
            assert_eq!(
                read(text),
                Some(Kill {
                    whom: Whom::Parameter,
                    ..whole.clone()
                }),
                "{text}"
            );
        }
        assert_eq!(read("KILL (7)").as_ref(), Some(&whole));
        assert_eq!(
            read("KILL QUERY ID 7"),
            Some(Kill {
                whom: Whom::Statement,
                statement_only: true
            })
        );
    }

    #[test]
    fn a_number_is_computed_of_what_the_session_knows() {
        let of = |text: &str| match read(text) {
            Some(Kill {
                whom: Whom::Computed(computed),
                ..
            }) => computed.value(100, |name| match name {
                "id" => Some(Some(7)),
                "null" => Some(None),
                "none" => None,
                _ => Some(Some(0)),
            }),
            _ => panic!("{text}"),
        };
        for (text, wanted) in [
            ("KILL CONNECTION_ID()", Some(100)),
            ("KILL QUERY connection_id( ) + 0", Some(100)),
            ("KILL @Id", Some(7)),
            ("KILL CONNECTION @`id`;", Some(7)),
            ("KILL HARD @id", Some(7)),
            ("KILL 10 - 2 - 1", Some(7)),
            ("KILL 1 + 2 * 3", Some(7)),
            ("KILL (1 + 2) * 3", Some(9)),
            ("KILL (((@id)) + CONNECTION_ID() - '100')", Some(7)),
            ("KILL @id - CONNECTION_ID() + 100", None),
            ("KILL @none", None),
            ("KILL @null", Some(0)),
            ("KILL CONNECTION_ID() + @null", Some(0)),
            ("KILL 5 * @null + 7", Some(0)),
            ("KILL 1 - 2 + 8", Some(7)),
            ("KILL CONNECTION_ID() - 200 + 201", None),
            ("KILL 1 - 2", None),
            ("KILL 18446744073709551615 + 1", None),
            (
                "KILL 18446744073709551615 * 18446744073709551615 * 18446744073709551615",
                None,
            ),
        ] {
            assert_eq!(of(text), wanted, "{text}");
        }
        let long = |n: usize| read(&format!("KILL 1{}", " + 1".repeat(n))).is_some();
        assert!(long(31) && !long(32));
        let deep = |n: usize| read(&format!("KILL {}1{}", "(".repeat(n), ")".repeat(n))).is_some();
        assert!(deep(16) && !deep(17));
    }

    #[test]
    fn a_user_is_named_with_a_host_or_without() {
        let of = |text: &str| match read(text) {
            Some(Kill {
                whom: Whom::User { name, host },
                statement_only,
            }) => {
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
            (
                "KILL USER app@db-1.example.com ;",
                "app|db-1.example.com|false",
            ),
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
            "KILL @@id",
            "KILL @a.b",
            "KILL 7 8",
            "KILL 7 +",
            "KILL 7 / 1",
            "KILL (SELECT 7)",
            "KILL @id := 7",
            "KILL 7 + (SELECT 7)",
            "KILL 1 + '7' '8'",
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
