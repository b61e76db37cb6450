//! Facts that MySQL's clients ask of the session itself: `VERSION()`, `DATABASE()`, `@@x`, alone or
//! within other statements.

/// A word of a statement, outside of quotes and comments, or what is quoted, or a sign.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Token<'t> {
    pub(crate) text: &'t str,
    /// Where it begins in the statement.
    pub(crate) at: usize,
}

impl Token<'_> {
    pub(crate) fn is(&self, word: &str) -> bool {
        self.text.eq_ignore_ascii_case(word)
    }

    pub(crate) fn end(&self) -> usize {
        self.at + self.text.len()
    }
}

/// The tokens of a statement, without blanks and comments. Variables are one token with their `@@`.
pub(crate) fn tokens(sql: &str) -> Vec<Token<'_>> {
    let (bytes, mut found, mut at) = (sql.as_bytes(), Vec::new(), 0);
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..);
    while at < bytes.len() {
        let rest = &sql[at..];
        let len = match bytes[at] {
            quote @ (b'\'' | b'"' | b'`') => crate::literals::quoted_len(rest.as_bytes(), quote),
            b'-' if rest.starts_with("-- ") => rest.find('\n').unwrap_or(rest.len()),
            b'#' => rest.find('\n').unwrap_or(rest.len()),
            b'/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            b'@' => {
                let of_name = |byte: &u8| is_word(*byte) || matches!(byte, b'@' | b'.' | b'`');
                rest.bytes().take_while(of_name).count()
            }
            byte if is_word(byte) => rest.bytes().take_while(|byte| is_word(*byte)).count(),
            _ => 1,
        };
        let text = &rest[..len];
        let is_nothing = text.trim().is_empty()
            || (len > 1 && ["--", "#", "/*"].iter().any(|sign| text.starts_with(sign)));
        if !is_nothing {
            found.push(Token { text, at });
        }
        at += len;
    }
    found
}

/// A fact of a session.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Fact {
    /// A variable, without its scope, in small letters; the user's own with its `@`.
    Variable(String),
    Version,
    Database,
    User,
    Connection,
}

/// The fact that a function without arguments answers.
fn function(name: &str) -> Option<Fact> {
    Some(match name.to_ascii_uppercase().as_str() {
        "VERSION" => Fact::Version,
        "DATABASE" | "SCHEMA" => Fact::Database,
        "USER" | "CURRENT_USER" | "SESSION_USER" | "SYSTEM_USER" => Fact::User,
        "CONNECTION_ID" => Fact::Connection,
        _ => return None,
    })
}

fn variable(token: &str) -> Option<Fact> {
    if let Some(name) = token
        .strip_prefix('@')
        .filter(|name| !name.starts_with('@'))
    {
        let name = name.to_ascii_lowercase().replace('`', "");
        return (!name.is_empty()).then(|| Fact::Variable(format!("@{name}")));
    }
    let name = token
        .strip_prefix("@@")?
        .to_ascii_lowercase()
        .replace('`', "");
    let scope = ["session.", "global.", "local."]
        .into_iter()
        .find_map(|scope| name.strip_prefix(scope));
    let name = scope.unwrap_or(&name).to_owned();
    (!name.is_empty() && !name.contains('.')).then_some(Fact::Variable(name))
}

/// A fact that these tokens begin with, and how many of them it takes.
fn fact(tokens: &[Token<'_>]) -> Option<(Fact, usize)> {
    match tokens {
        [name, open, close, ..] if open.text == "(" && close.text == ")" => {
            Some((function(name.text)?, 3))
        }
        [name, ..] if name.is("CURRENT_USER") => Some((Fact::User, 1)),
        [name, ..] => Some((variable(name.text)?, 1)),
        [] => None,
    }
}

/// The facts that a SELECT asks for, each with the name of its column, if it asks for nothing else.
pub(crate) fn asked(sql: &str) -> Option<Vec<(String, Fact)>> {
    let all = tokens(sql);
    let mut rest = match &all[..] {
        [select, rest @ ..] if select.is("SELECT") => rest,
        _ => return None,
    };
    let mut found = Vec::new();
    loop {
        let (fact, used) = fact(rest)?;
        let mut label = &sql[rest[0].at..rest[used - 1].end()];
        rest = &rest[used..];
        let is_end =
            |token: &Token<'_>| ["FROM", "LIMIT", ",", ";"].iter().any(|end| token.is(end));
        match rest {
            [r#as, name, more @ ..] if r#as.is("AS") => (label, rest) = (name.text, more),
            [name, more @ ..] if !is_end(name) => (label, rest) = (name.text, more),
            _ => {}
        }
        found.push((label.trim_matches(['`', '\'', '"']).to_owned(), fact));
        match rest {
            [comma, more @ ..] if comma.text == "," => rest = more,
            _ => break,
        }
    }
    if let [from, dual, more @ ..] = rest
        && from.is("FROM")
        && dual.is("DUAL")
    {
        rest = more;
    }
    if let [limit, number, more @ ..] = rest
        && limit.is("LIMIT")
        && number.text.parse::<u32>().is_ok_and(|many| many > 0)
    {
        rest = more;
    }
    rest.iter().all(|token| token.text == ";").then_some(found)
}

/// A statement with each fact that it asks for in the midst of something else as a literal, and the
/// table of one row under ClickHouse's name; none if there is none.
pub(crate) fn replaced(sql: &str, literal: impl Fn(&Fact) -> String) -> Option<String> {
    let all = tokens(sql);
    let (mut out, mut from, mut at) = (String::new(), 0, 0);
    while at < all.len() {
        let is_of_something = at > 0 && all[at - 1].text == ".";
        if let Some((fact, used)) = fact(&all[at..]).filter(|_| !is_of_something) {
            out += &sql[from..all[at].at];
            out += &literal(&fact);
            from = all[at + used - 1].end();
            at += used;
        } else if at > 0 && all[at].is("DUAL") && all[at - 1].is("FROM") {
            out += &sql[from..all[at].at];
            out += "system.one";
            from = all[at].end();
            at += 1;
        } else {
            at += 1;
        }
    }
    (from > 0).then(|| out + &sql[from..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_of_a_session_are_answered_without_anybody() {
        let labels = |sql| {
            let found = asked(sql)?;
            Some(
                found
                    .into_iter()
                    .map(|(label, fact)| format!("{label}: {fact:?}"))
                    .collect::<Vec<_>>(),
            )
        };
        assert_eq!(labels("SELECT VERSION()").unwrap(), ["VERSION(): Version"]);
        assert_eq!(
            labels(
                "/* a */ select database() AS `db`, User ( ) u, current_user, CONNECTION_ID() -- x"
            )
            .unwrap(),
            [
                "db: Database",
                "u: User",
                "current_user: User",
                "CONNECTION_ID(): Connection"
            ]
        );
        assert_eq!(
            labels("SELECT @@GLOBAL.Read_Only, @@`a` b FROM dual LIMIT 1;").unwrap(),
            [
                "@@GLOBAL.Read_Only: Variable(\"read_only\")",
                "b: Variable(\"a\")"
            ]
        );
        assert_eq!(
            labels("SELECT @Who, @@x").unwrap(),
            ["@Who: Variable(\"@who\")", "@@x: Variable(\"x\")"]
        );
        for other in [
            "SELECT 1",
            "SELECT VERSION(), 1",
            "SELECT VERSION(1)",
            "SELECT USER() FROM t",
            "SELECT @",
            "SHOW @@a",
            "SELECT @@a+1",
            "SELECT",
            "",
        ] {
            assert_eq!(labels(other), None, "{other}");
        }
    }

    #[test]
    fn facts_in_other_statements_are_literals() {
        let with = |sql| replaced(sql, |fact| format!("<{fact:?}>"));
        assert_eq!(
            with("SELECT a, upper(DATABASE()) FROM t WHERE b = 'USER()' AND c=@@x /* VERSION() */")
                .unwrap(),
            "SELECT a, upper(<Database>) FROM t WHERE b = 'USER()' AND c=<Variable(\"x\")> /* VERSION() */"
        );
        assert_eq!(
            with("SELECT 1 FROM DUAL").unwrap(),
            "SELECT 1 FROM system.one"
        );
        assert_eq!(with("SELECT x.user(), version, '\\'VERSION()'"), None);
    }
}
