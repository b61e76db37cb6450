//! Tokens of a text.

use super::Unread;
use std::rc::Rc;

/// One token, the line on which it begins, and its end.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) line: u32,
    /// Offset behind it.
    pub(super) end: usize,
}

/// Kind of a token.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    Name(Rc<str>),
    Word(&'static str),
    Text(Rc<str>),
    Number,
    Sign(&'static str),
    End,
}

const WORDS: &[&str] = &[
    "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "if", "in", "local",
    "nil", "not", "or", "repeat", "return", "then", "true", "until", "while",
];

/// Longer ones first. Some are LuaJIT's own.
const SIGNS: &[&str] = &[
    "~>>", "<<", ">>", "&&", "||", "!=", "??", "?.", "...", "..", "==", "~=", "<=", ">=", "::",
    "+", "-", "*", "/", "%", "^", "#", "<", ">", "=", "(", ")", "{", "}", "[", "]", ";", ":", ",",
    "&", "|", "~", "!", ".",
];

pub(super) fn tokens(text: &str) -> Result<Vec<Token>, Unread> {
    let mut lexer = Lexer {
        text,
        at: 0,
        line: 1,
    };
    if text.starts_with('#') {
        lexer.skip_line();
    }
    let mut tokens = Vec::new();
    loop {
        lexer.skip_blanks()?;
        let line = lexer.line;
        let kind = lexer.next()?;
        let is_end = kind == Kind::End;
        let end = lexer.at;
        tokens.push(Token { kind, line, end });
        if is_end {
            return Ok(tokens);
        }
    }
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    line: u32,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn unread(&self, words: impl Into<String>) -> Unread {
        Unread {
            line: self.line,
            words: words.into(),
        }
    }

    fn skip(&mut self, length: usize) -> &'a str {
        let skipped = self.rest().get(..length).unwrap_or_default();
        let lines = skipped.bytes().filter(|byte| *byte == b'\n').count();
        self.line = self
            .line
            .saturating_add(u32::try_from(lines).unwrap_or(u32::MAX));
        self.at += length;
        skipped
    }

    fn skip_line(&mut self) {
        let length = self.rest().find('\n').unwrap_or_else(|| self.rest().len());
        self.skip(length);
    }

    fn skip_blanks(&mut self) -> Result<(), Unread> {
        loop {
            let blanks = self.rest().len() - self.rest().trim_start().len();
            self.skip(blanks);
            if !self.rest().starts_with("--") {
                return Ok(());
            }
            self.skip(2);
            if self.long()?.is_none() {
                self.skip_line();
            }
        }
    }

    /// A text in long brackets, if one begins here.
    fn long(&mut self) -> Result<Option<&'a str>, Unread> {
        let Some(inside) = self.rest().strip_prefix('[') else {
            return Ok(None);
        };
        let equals = inside.bytes().take_while(|byte| *byte == b'=').count();
        if !inside[equals..].starts_with('[') {
            return Ok(None);
        }
        let end = format!("]{}]", "=".repeat(equals));
        let inside = &inside[equals + 1..];
        let Some(length) = inside.find(&end) else {
            return Err(self.unread("unfinished long text or comment"));
        };
        self.skip(equals + 2 + length + end.len());
        Ok(inside.get(..length))
    }

    fn next(&mut self) -> Result<Kind, Unread> {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else {
            return Ok(Kind::End);
        };
        if first == '"' || first == '\'' {
            return self.quoted(first);
        }
        if let Some(text) = self.long()? {
            return Ok(Kind::Text(text.into()));
        }
        let second_is_digit = rest.as_bytes().get(1).is_some_and(u8::is_ascii_digit);
        if first.is_ascii_digit() || first == '.' && second_is_digit {
            return Ok(self.number());
        }
        let is_part = |c: char| c.is_alphanumeric() || c == '_' || !c.is_ascii();
        if is_part(first) {
            let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            let name = self.skip(length);
            let word = WORDS.iter().find(|word| **word == name);
            return Ok(word.map_or_else(|| Kind::Name(name.into()), |word| Kind::Word(word)));
        }
        let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) else {
            return Err(self.unread(format!("unexpected '{first}'")));
        };
        self.skip(sign.len());
        Ok(Kind::Sign(sign))
    }

    fn number(&mut self) -> Kind {
        let mut before = ' ';
        let is_part = |c: char| {
            let is_exponent = matches!(before, 'e' | 'E' | 'p' | 'P') && matches!(c, '+' | '-');
            before = c;
            c.is_ascii_alphanumeric() || c == '.' || is_exponent
        };
        let length: usize = self.rest().chars().take_while(scan(is_part)).count();
        self.skip(length);
        Kind::Number
    }

    fn quoted(&mut self, quote: char) -> Result<Kind, Unread> {
        let rest = self.rest();
        let mut escaped = false;
        for (at, c) in rest.char_indices().skip(1) {
            if escaped {
                escaped = false;
            } else if c == '\\' {
                escaped = true;
            } else if c == '\n' {
                break;
            } else if c == quote {
                let text = rest.get(1..at).unwrap_or_default();
                self.skip(at + 1);
                return Ok(Kind::Text(text.into()));
            }
        }
        Err(self.unread("unfinished text"))
    }
}

/// A predicate that remembers, for `take_while`.
fn scan(mut is_part: impl FnMut(char) -> bool) -> impl FnMut(&char) -> bool {
    move |c| is_part(*c)
}
