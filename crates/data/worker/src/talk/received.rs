//! What statements are counted as when they are received, and when they were answered without a
//! server: `Com_…` of `stats_mysql_global`.

use crate::command::job::What;
use crate::session::Session;
use bridge::Counter;
use sql::words::Words;
use sql::{Class, CommandCounter};

/// A SET by its first assignment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sets {
    Autocommit,
    Names,
    Other,
}

impl Sets {
    fn of(text: &[u8]) -> Self {
        let mut words = Words::new(text).skip_while(|token| {
            token.is("SET") || token.is_any(&["SESSION", "LOCAL"]) || is_any_sign(token)
        });
        match words.next() {
            Some(token) if token.is("AUTOCOMMIT") => Self::Autocommit,
            Some(token) if token.is_any(&["NAMES", "CHARSET", "CHARACTER"]) => Self::Names,
            _ => Self::Other,
        }
    }
}

/// Of `@@session.autocommit`.
fn is_any_sign(token: &sql::words::Token<'_>) -> bool {
    token.is_sign(b'@') || token.is_sign(b'.')
}

impl Session {
    /// Counts a statement that has come.
    pub(crate) fn note_received(&self, class: &Class<'_>, text: &[u8], what: What<'_>) {
        let counter = match class.command {
            CommandCounter::Commit => Counter::ComCommit,
            CommandCounter::Rollback => Counter::ComRollback,
            // As in ProxySQL, it has no class of its own; COM_INIT_DB is counted elsewhere.
            _ if class.use_db.is_some() && matches!(what, What::Query(_)) => {
                Counter::ComFrontendUseDb
            }
            _ if class.sets => match Sets::of(text) {
                Sets::Autocommit => Counter::ComAutocommit,
                Sets::Names => Counter::ComFrontendSetNames,
                Sets::Other => return,
            },
            _ => return,
        };
        self.core.tally.up(counter);
    }

    /// No server had to hear of it.
    pub(crate) fn note_absorbed(&self, class: &Class<'_>, text: &[u8]) {
        let counter = match class.command {
            CommandCounter::Commit => Counter::ComCommitFiltered,
            CommandCounter::Rollback => Counter::ComRollbackFiltered,
            _ if class.sets && Sets::of(text) == Sets::Autocommit => Counter::ComAutocommitFiltered,
            _ => return,
        };
        self.core.tally.up(counter);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_counted_by_what_it_sets_first() {
        for (text, wanted) in [
            ("SET autocommit=0", Sets::Autocommit),
            (
                "/* hint */ set @@session.AutoCommit = ON, sql_mode=''",
                Sets::Autocommit,
            ),
            ("SET SESSION autocommit := 1", Sets::Autocommit),
            ("SET @@autocommit=1", Sets::Autocommit),
            ("SET NAMES utf8mb4", Sets::Names),
            ("SET CHARACTER SET latin1", Sets::Names),
            ("SET @x = 'autocommit'", Sets::Other),
            ("SET sql_mode = '', autocommit = 1", Sets::Other),
            ("SET", Sets::Other),
        ] {
            assert_eq!(Sets::of(text.as_bytes()), wanted, "{text}");
        }
    }
}
