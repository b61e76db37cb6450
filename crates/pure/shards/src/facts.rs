//! Facts that a statement is routed by, besides its text.

use crate::described::KnownColumns;
use crate::lookups::LookedUp;
use sql::Lexing;
use sql::bound::Bound;
use sql::tree::{DoubleQuotes, Literal};

/// Facts that may be known of a statement besides its text.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The schema that it is said in; empty for none.
    pub schema: &'a str,
    /// Where its strings end.
    pub lexing: Lexing,
    /// Meaning of double quotes.
    pub quotes: DoubleQuotes,
    /// Its first comment.
    pub comment: Option<&'a [u8]>,
    /// The values of its `?`, if they are there.
    pub parameters: Option<&'a [Literal<'a>]>,
    /// Whether the statement is only prepared: which partition it goes to is asked again when its
    /// `?` have values. Until then any one will do.
    pub prepares: bool,
    /// Numbers of a sequence that it gets.
    pub numbers: Numbering,
    /// Columns of tables, for an INSERT that names none; none where nobody asks servers.
    pub columns: Option<KnownColumns<'a>>,
    /// The values of its `?` as they were bound.
    pub bound: Option<&'a [Bound]>,
    /// Answers of look-ups; `None` where nobody asks them.
    pub looked: Option<&'a LookedUp>,
}

/// Knowledge of partitions that are made by themselves, by this proxy or another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Making {
    /// Another proxy may have made one since this one has looked.
    #[default]
    Unasked,
    /// The map has all that were there when the statement came.
    Asked,
    /// Whichever there are: the statement is only explained.
    Whichever,
}

/// Consecutive numbers that are one statement's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbers {
    /// The first of them; from 1.
    pub first: u64,
    /// How many there are.
    pub count: u32,
}

/// Knowledge of the numbers that a statement gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Numbering {
    /// None were taken yet.
    #[default]
    Untaken,
    /// Whichever it gets: the statement is only explained or prepared, and 1 stands for the first.
    Whichever,
    /// These.
    Taken(Numbers),
}

/// Where the statement begins that EXPLAIN explains; 0 for others.
pub(crate) fn explained(text: &[u8], lexing: Lexing) -> usize {
    let mut words = lexing.words(text);
    if !words
        .next()
        .is_some_and(|first| first.is_any(&["EXPLAIN", "DESC", "DESCRIBE"]))
    {
        return 0;
    }
    let begins = words
        .take(8)
        .find(|word| word.is_any(&["SELECT", "INSERT", "REPLACE", "UPDATE", "DELETE", "WITH"]));
    begins.map_or(0, |word| word.start)
}
