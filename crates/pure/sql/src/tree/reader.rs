//! The tokens of a statement and a place among them.

use super::DoubleQuotes;
use crate::lexing::Lexing;
use crate::words::{Kind, Token, unquote};
use std::borrow::Cow;
use std::ops::Range;

/// Tokens that are read; a longer statement has no tree.
const TOKENS_MAX: usize = 1_000_000;
/// Expressions and queries inside one another that are followed.
pub(super) const DEPTH_MAX: usize = 96;

/// Tokens that are read one after another, and never back.
pub(super) struct Reader<'a> {
    text: &'a [u8],
    tokens: Vec<Token<'a>>,
    // 0 <= at <= tokens.len()
    at: usize,
    depth: usize,
    parameters: usize,
    pub(super) escapes: bool,
    pub(super) quotes: DoubleQuotes,
}

impl<'a> Reader<'a> {
    pub(super) fn new(text: &'a [u8], lexing: Lexing, quotes: DoubleQuotes) -> Option<Self> {
        let escapes = lexing.escapes();
        let mut words = lexing.words(text);
        let mut tokens = Vec::new();
        for token in words.by_ref() {
            if tokens.len() == TOKENS_MAX || !token.is_whole_if(escapes) {
                return None;
            }
            tokens.push(token);
        }
        // Servers would read different statements.
        (!words.is_conditional()).then_some(Self {
            text,
            tokens,
            at: 0,
            depth: 0,
            parameters: 0,
            escapes,
            quotes,
        })
    }

    pub(super) const fn parameters(&self) -> usize {
        self.parameters
    }

    /// Returns what stands at a place.
    pub(super) fn text(&self, at: Range<usize>) -> Option<&'a [u8]> {
        self.text.get(at)
    }

    /// The number of a `?` that was just passed.
    pub(super) const fn parameter(&mut self) -> usize {
        self.parameters += 1;
        self.parameters - 1
    }

    pub(super) const fn is_at_end(&self) -> bool {
        self.at == self.tokens.len()
    }

    /// The token that is next, or one behind it.
    pub(super) fn ahead(&self, steps: usize) -> Option<Token<'a>> {
        self.tokens.get(self.at + steps).copied()
    }

    pub(super) fn peek(&self) -> Option<Token<'a>> {
        self.ahead(0)
    }

    pub(super) fn next(&mut self) -> Option<Token<'a>> {
        let token = self.peek()?;
        self.at += 1;
        Some(token)
    }

    /// Where the next token begins; at the end, where the last one ends.
    pub(super) fn start(&self) -> usize {
        self.peek().map_or_else(|| self.end(), |token| token.start)
    }

    /// Where the last token that was passed ends.
    pub(super) fn end(&self) -> usize {
        let last = self.at.checked_sub(1).and_then(|at| self.tokens.get(at));
        last.map_or(0, Token::end)
    }

    /// From there to the end of the last token.
    pub(super) fn since(&self, start: usize) -> Range<usize> {
        start..self.end().max(start)
    }

    pub(super) fn is(&self, keyword: &str) -> bool {
        self.peek().is_some_and(|token| token.is(keyword))
    }

    pub(super) fn is_any(&self, keywords: &[&str]) -> bool {
        self.peek().is_some_and(|token| token.is_any(keywords))
    }

    pub(super) fn is_sign(&self, sign: u8) -> bool {
        self.peek().is_some_and(|token| token.is_sign(sign))
    }

    /// Passes these keywords if they are next; whether they were.
    pub(super) fn skip(&mut self, keywords: &str) -> bool {
        let wanted = || keywords.split(' ').enumerate();
        let are_next =
            wanted().all(|(step, word)| self.ahead(step).is_some_and(|token| token.is(word)));
        if are_next {
            self.at += wanted().count();
        }
        are_next
    }

    /// Passes any of these keywords as long as one is next.
    pub(super) fn skip_all(&mut self, keywords: &[&str]) {
        while self.is_any(keywords) {
            self.at += 1;
        }
    }

    pub(super) fn skip_sign(&mut self, sign: u8) -> bool {
        let is_next = self.is_sign(sign);
        self.at += usize::from(is_next);
        is_next
    }

    pub(super) fn expect(&mut self, keywords: &str) -> Option<()> {
        self.skip(keywords).then_some(())
    }

    pub(super) fn expect_sign(&mut self, sign: u8) -> Option<()> {
        self.skip_sign(sign).then_some(())
    }

    /// Whether these signs stand next with nothing between them.
    pub(super) fn are_signs(&self, signs: &[u8]) -> bool {
        let start = self.start();
        signs.iter().enumerate().all(|(step, sign)| {
            self.ahead(step)
                .is_some_and(|token| token.is_sign(*sign) && token.start == start + step)
        })
    }

    pub(super) fn skip_signs(&mut self, signs: &[u8]) -> bool {
        let are_next = self.are_signs(signs);
        if are_next {
            self.at += signs.len();
        }
        are_next
    }

    /// A name, quoted or not.
    pub(super) fn name(&mut self) -> Option<super::Name<'a>> {
        let token = self.next()?;
        let is_name = match token.kind {
            Kind::Name => true,
            Kind::Word => !token.text.iter().all(u8::is_ascii_digit) && !token.is_dollar_quote(),
            Kind::String | Kind::Sign => false,
        };
        is_name.then(|| super::Name {
            text: unquote(token.text),
            at: token.start..token.end(),
        })
    }

    /// A name that may be written as a string: an alias.
    pub(super) fn alias(&mut self) -> Option<super::Name<'a>> {
        match self.peek() {
            Some(token) if token.kind == Kind::String => {
                self.at += 1;
                Some(super::Name {
                    text: Cow::Borrowed(token.text.get(1..token.text.len() - 1)?),
                    at: token.start..token.end(),
                })
            }
            _ => self.name(),
        }
    }

    /// Does something one step deeper; `None` where that is too deep.
    pub(super) fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        if self.depth == DEPTH_MAX {
            return None;
        }
        self.depth += 1;
        let read = read(self);
        self.depth -= 1;
        read
    }
}
