//! Reading one token after the other: the longest one that fits, and the first rule of equals.

use std::borrow::Cow;

use super::{Id, Token};

/// Words that dots may join into one name: schema, table, column.
const WORDS_MAX: usize = 3;

/// Place in a text.
pub(super) struct Scanner<'a> {
    source: &'a [u8],
    // at <= source.len()
    at: usize,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(source: &'a [u8]) -> Self {
        Self { source, at: 0 }
    }

    /// Appends the next token, or several where dots join words. False at the end.
    pub(super) fn step(&mut self, tokens: &mut Vec<Token<'a>>) -> bool {
        while matches!(self.rest(), [b' ' | b'\t' | b'\r' | b'\n', ..]) {
            self.at += 1;
        }
        let rest = self.rest();
        let token = match rest {
            [] => return false,
            [b'-', b'-', b'\n', ..] => self.take(Id::COMMENT, 2, 0, 0),
            [b'-', b'-', b' ' | b'\t', text @ ..] => {
                let line = text.iter().position(|&byte| byte == b'\n');
                self.take(Id::COMMENT, 3, line.unwrap_or(text.len()), 0)
            }
            [b'/', b'*', b'!', ..] => self.comment(Id::COMMENT_MYSQL, 3),
            [b'/', b'*', ..] => self.comment(Id::COMMENT, 2),
            [quote @ (b'\'' | b'"'), ..] => self.quotes(Id::STRING, *quote),
            [b'`', ..] => self.quotes(Id::LITERAL, b'`'),
            _ => {
                let (length, called) = name(rest);
                let (id, number) = number(rest);
                if length > number || called {
                    self.words(length, called, tokens);
                    return true;
                }
                match number {
                    0 => self.operator(rest),
                    length => self.take(id, 0, length, 0),
                }
            }
        };
        tokens.push(token);
        true
    }

    fn rest(&self) -> &'a [u8] {
        &self.source[self.at..]
    }

    /// Takes a mark, a text and a mark, of which the text is the token's.
    fn take(&mut self, id: Id, before: usize, length: usize, after: usize) -> Token<'a> {
        let text = &self.rest()[before..before + length];
        self.at += before + length + after;
        Token {
            id,
            text: Cow::Borrowed(text),
        }
    }

    fn comment(&mut self, id: Id, before: usize) -> Token<'a> {
        let text = &self.rest()[before..];
        match text.windows(2).position(|pair| pair == b"*/") {
            Some(end) => self.take(id, before, end, 2),
            None => self.take(id, before, text.len(), 0),
        }
    }

    /// A quoted text. Escapes stay as they are written, and a doubled quote is one.
    fn quotes(&mut self, id: Id, quote: u8) -> Token<'a> {
        let text = &self.rest()[1..];
        let mut joined = Vec::new();
        let (mut from, mut at) = (0, 0);
        let closed = loop {
            match &text[at..] {
                [] => break false,
                [b'\\', _, ..] => at += 2,
                [first, second, ..] if *first == quote && *second == quote => {
                    joined.extend_from_slice(&text[from..=at]);
                    at += 2;
                    from = at;
                }
                [first, ..] if *first == quote => break true,
                _ => at += 1,
            }
        };
        let token = self.take(id, 1, at, usize::from(closed));
        if from == 0 {
            return token;
        }
        joined.extend_from_slice(&text[from..at]);
        Token {
            id,
            text: Cow::Owned(joined),
        }
    }

    /// Words with dots between, of which the last is a function where a brace follows.
    fn words(&mut self, length: usize, called: bool, tokens: &mut Vec<Token<'a>>) {
        let end = self.at + length;
        while self.at < end {
            let text = &self.source[self.at..end];
            let dot = text.iter().position(|&byte| byte == b'.');
            let word = &text[..dot.unwrap_or(text.len())];
            let id = match dot {
                None if called => Id::FUNCTION,
                _ => Id::keyword(word).unwrap_or(Id::LITERAL),
            };
            tokens.push(self.take(id, 0, word.len(), 0));
            if dot.is_some() {
                tokens.push(self.take(Id::DOT, 0, 1, 0));
            }
        }
    }

    fn operator(&mut self, rest: &[u8]) -> Token<'a> {
        let (id, length) = match rest {
            [b'<', b'=', ..] => (Id::LE, 2),
            [b'>', b'=', ..] => (Id::GE, 2),
            [b'<', b'>', ..] | [b'!', b'=', ..] => (Id::NE, 2),
            [b':', b'=', ..] => (Id::ASSIGN, 2),
            [b'&', b'&', ..] => (Id::LOGICAL_AND, 2),
            [b'|', b'|', ..] => (Id::LOGICAL_OR, 2),
            [b'<', ..] => (Id::LT, 1),
            [b'>', ..] => (Id::GT, 1),
            [b'=', ..] => (Id::EQ, 1),
            [b'&', ..] => (Id::BITWISE_AND, 1),
            [b'|', ..] => (Id::BITWISE_OR, 1),
            [b'^', ..] => (Id::BITWISE_XOR, 1),
            [b'+', ..] => (Id::PLUS, 1),
            [b'-', ..] => (Id::MINUS, 1),
            [b'*', ..] => (Id::STAR, 1),
            [b'/', ..] => (Id::DIV, 1),
            [b'.', ..] => (Id::DOT, 1),
            [b',', ..] => (Id::COMMA, 1),
            [b';', ..] => (Id::SEMICOLON, 1),
            [b'(', ..] => (Id::OBRACE, 1),
            [b')', ..] => (Id::CBRACE, 1),
            _ => (Id::UNKNOWN, 1),
        };
        self.take(id, 0, length, 0)
    }
}

fn digits(text: &[u8]) -> usize {
    text.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

/// Length of a word: digits if any, a letter, and what may follow one.
fn word(text: &[u8]) -> Option<usize> {
    let mark = |byte: &u8| matches!(byte, b'_' | b'@');
    let digits = digits(text);
    let first = text.get(digits)?;
    if !first.is_ascii_alphabetic() && !mark(first) {
        return None;
    }
    let fits = |byte: &&u8| byte.is_ascii_alphanumeric() || mark(byte);
    Some(digits + text[digits..].iter().take_while(fits).count())
}

/// Length of a name of up to three words, 0 if there is none, and whether a brace follows.
fn name(text: &[u8]) -> (usize, bool) {
    let Some(mut length) = word(text) else {
        return (0, false);
    };
    for _ in 1..WORDS_MAX {
        match &text[length..] {
            [b'.', rest @ ..] => match word(rest) {
                Some(next) => length += 1 + next,
                None => break,
            },
            _ => break,
        }
    }
    (length, text.get(length) == Some(&b'('))
}

/// Length of a number, 0 if there is none.
fn number(text: &[u8]) -> (Id, usize) {
    let whole = digits(text);
    let fraction = match &text[whole..] {
        [b'.', rest @ ..] => digits(rest),
        _ => 0,
    };
    let plain = match fraction {
        0 => whole,
        _ => whole + 1 + fraction,
    };
    if plain == 0 {
        return (Id::UNKNOWN, 0);
    }
    let exponent = match &text[plain..] {
        [b'e' | b'E', b'+' | b'-', rest @ ..] => (2, digits(rest)),
        [b'e' | b'E', rest @ ..] => (1, digits(rest)),
        _ => (0, 0),
    };
    match exponent {
        (_, 0) if fraction == 0 => (Id::INTEGER, plain),
        (_, 0) => (Id::FLOAT, plain),
        (mark, more) => (Id::FLOAT, plain + mark + more),
    }
}
