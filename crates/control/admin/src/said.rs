//! Rights of the session that asks, and words for what cannot be done.

use crate::cores::Silent;
use crate::engine::{SqlError, View};
use config::Refusal;

/// Session that asks.
#[derive(Debug, Clone)]
pub(crate) struct Asker {
    pub(crate) id: u32,
    pub(crate) user: String,
    pub(crate) host: String,
    /// 0 at a Unix socket.
    pub(crate) port: u16,
    pub(crate) view: View,
}

/// Words for what cannot be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Said {
    /// With the code that everything has here.
    Sql(String),
    /// With another.
    Coded(u16, &'static str, String),
}

impl Said {
    pub(crate) fn words(self) -> String {
        match self {
            Self::Sql(words) | Self::Coded(_, _, words) => words,
        }
    }
}

impl From<SqlError> for Said {
    fn from(error: SqlError) -> Self {
        Self::Sql(error.0)
    }
}

impl From<Silent> for Said {
    fn from(silent: Silent) -> Self {
        Self::Sql(silent.to_string())
    }
}

impl From<&str> for Said {
    fn from(words: &str) -> Self {
        Self::Sql(words.into())
    }
}

impl From<String> for Said {
    fn from(words: String) -> Self {
        Self::Sql(words)
    }
}

/// All reasons in one error; nothing has changed.
pub(crate) fn because(words: &str, refused: &[Refusal]) -> Said {
    let reasons: Vec<_> = refused.iter().map(ToString::to_string).collect();
    Said::Sql(format!(
        "{words} not loaded, nothing was changed: {}",
        reasons.join("; ")
    ))
}
