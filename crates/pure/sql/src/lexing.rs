//! Where strings and words of a text end, by the mode and the character set of its session.

use crate::blank::Blank;
use crate::shift::Shift;
use crate::words::{Token, Words};

/// Meaning of a session's mode and character set for where strings end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Lexing {
    /// A backslash escapes in strings.
    #[default]
    Escapes,
    /// NO_BACKSLASH_ESCAPES.
    NoEscapes,
    /// A character set in which a backslash or quote may be the second byte of a character (Big5,
    /// GBK, SJIS): only of ASCII is all sure.
    Shifts(Shift),
    /// A byte above ASCII is a blank.
    Blanks {
        /// Which.
        blank: Blank,
        /// As [`Lexing::Escapes`]; else as [`Lexing::NoEscapes`].
        escapes: bool,
    },
    /// Servers differ in whether a backslash escapes, or it is not known: only what [`reads_alike`]
    /// is sure.
    Unsure {
        /// As well as [`Lexing::Shifts`].
        shifts: bool,
    },
}

/// Whether a text has the same tokens whether a backslash escapes in strings or not.
#[must_use]
pub fn reads_alike(sql: &[u8]) -> bool {
    let place = |token: Token<'_>| (token.kind, token.start, token.end());
    memchr::memchr(b'\\', sql).is_none()
        || Words::new(sql)
            .map(place)
            .eq(Words::without_escapes(sql).map(place))
}

impl Lexing {
    /// The tokens of a text. A blank above ASCII is part of a word here: [`Lexing::hides`].
    #[must_use]
    pub const fn words<'a>(self, sql: &'a [u8]) -> Words<'a> {
        match self {
            Self::NoEscapes | Self::Blanks { escapes: false, .. } => Words::without_escapes(sql),
            Self::Escapes
            | Self::Shifts(Shift::Unknown)
            | Self::Blanks { .. }
            | Self::Unsure { .. } => Words::new(sql),
            Self::Shifts(shift) => Words::shifting(sql, shift),
        }
    }

    /// Whether a backslash escapes, as far as that is known.
    #[must_use]
    pub const fn escapes(self) -> bool {
        !matches!(self, Self::NoEscapes | Self::Blanks { escapes: false, .. })
    }

    /// The two ways to read a text of which it is not known whether a backslash escapes in it; nor
    /// is the character set.
    pub(crate) const EITHER: [Self; 2] = [
        Self::Blanks {
            blank: Blank::Any,
            escapes: true,
        },
        Self::Blanks {
            blank: Blank::Any,
            escapes: false,
        },
    ];

    /// The text with ASCII's blank in place of those above it; `None` if it has none.
    pub(crate) fn respaced(self, sql: &[u8]) -> Option<Vec<u8>> {
        let blank = match self {
            Self::Blanks { blank, .. } => blank,
            Self::Shifts(Shift::Unknown) | Self::Unsure { .. } => Blank::Any,
            Self::Escapes | Self::NoEscapes | Self::Shifts(_) => return None,
        };
        blank.replaced(sql, self.words(sql))
    }

    /// Whether a byte of a text may be part of a character and look like a sign.
    #[must_use]
    pub const fn shifts(self) -> bool {
        matches!(self, Self::Shifts(_) | Self::Unsure { shifts: true })
    }

    /// Whether a byte of this text that looks like a backslash or a quote may belong to a
    /// character, strings may end elsewhere than they seem to, or what looks like part of a word is
    /// a blank.
    #[must_use]
    pub fn hides(self, sql: &[u8]) -> bool {
        match self {
            Self::Shifts(shift) => {
                !sql.is_ascii() && (shift.hides(sql) || self.respaced(sql).is_some())
            }
            Self::Unsure { shifts } => {
                shifts && !sql.is_ascii() || !reads_alike(sql) || self.respaced(sql).is_some()
            }
            Self::Blanks { .. } => self.respaced(sql).is_some(),
            Self::Escapes | Self::NoEscapes => false,
        }
    }

    /// Whether the tokens of this text are those that the server sees, whatever the rest of the
    /// session's mode and character set.
    #[must_use]
    pub fn is_sure_of(self, sql: &[u8]) -> bool {
        if self.shifts() && !sql.is_ascii() || self.hides(sql) {
            return false;
        }
        // In Latin-1, which nobody may have told us, this byte is a blank. In UTF-8 it never
        // follows ASCII.
        let mut blanks = memchr::memchr_iter(0xA0, sql);
        if blanks.any(|at| at == 0 || sql[at - 1].is_ascii()) {
            return false;
        }
        // Under ANSI_QUOTES, which no flag tells, what stands in double quotes is a name and knows
        // no escapes.
        let quoted = |token: Token<'_>| {
            token.text[0] == b'"' && memchr::memmem::find(token.text, b"\\\"").is_some()
        };
        memchr::memmem::find(sql, b"\\\"").is_none() || !self.words(sql).any(quoted)
    }
}
