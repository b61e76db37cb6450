//! MySQL Proxy's tokenizer: a list of tokens with a name, a number and a text each.
//!
//! Older than the digests of `sql`, and other in many places, on which scripts rely: `#` begins no comment,
//! keywords are those of MySQL 5.1, and a name outside of backticks has ASCII only.

use std::borrow::Cow;

mod id;
mod scanner;
mod text;

pub use id::Id;
pub use text::{bare, first_of_statement, normalize, query, quoted};

use scanner::Scanner;

/// Piece of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token<'a> {
    /// Kind, by number and by name.
    pub id: Id,
    /// Text without quotes and marks of comments; a doubled quote is one.
    pub text: Cow<'a, [u8]>,
}

/// Cuts a text into tokens. No byte is refused: what fits nowhere is `TK_UNKNOWN`.
pub fn tokenize(sql: &[u8]) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut scanner = Scanner::new(sql);
    while scanner.step(&mut tokens) {}
    tokens
}

/// Body of the fuzz target `lua_tokenizer`: any bytes end, and no text is longer than its source.
pub fn fuzz_tokenizer(data: &[u8]) {
    let tokens = tokenize(data);
    let length: usize = tokens.iter().map(|token| token.text.len()).sum();
    assert!(
        length <= data.len(),
        "texts have more bytes than the source"
    );
    for token in &tokens {
        assert!(token.id.name().starts_with("TK_"), "an id has a name");
    }
    let _ = (normalize(&tokens), query(&tokens), bare(&tokens, true));
}
