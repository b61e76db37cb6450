//! How this session's statements are read, what templates make of them, and what the read/write split asks.

use crate::epoch::Epoch;
use crate::session::Session;
use backend::Names;
use plan::SplitFacts;
use sql::template::Rewritten;
use sql::{Class, Lexing};

/// Character sets whose characters may have a backslash or a quote as their second byte.
const SHIFTING: [&str; 5] = ["big5", "cp932", "gb18030", "gbk", "sjis"];

/// Their collations.
const SHIFTING_COLLATIONS: [u16; 19] =
    [1, 13, 28, 84, 87, 88, 95, 96, 248, 249, 250, 1025, 1037, 1052, 1108, 1111, 1112, 1119, 1120];

impl Session {
    /// How this session's statements are read.
    pub(crate) fn lexing(&self) -> Lexing {
        if !self.escapes() {
            return Lexing::NoEscapes;
        }
        let shifts = |text: &str| {
            let text = text.to_ascii_lowercase();
            SHIFTING.iter().any(|charset| text.contains(charset))
        };
        let names = match &self.state.names {
            Names::Collation(id) => SHIFTING_COLLATIONS.contains(id),
            Names::Written(words) => shifts(words),
            Names::Unknown => true,
        };
        if names || self.state.variable("character_set_client").is_some_and(shifts) { Lexing::Shifts } else { Lexing::Escapes }
    }

    /// What a template of `mysql_query_rewrite` makes of a statement, and which one.
    pub(crate) fn rewritten(&self, epoch: &Epoch, sql: &[u8]) -> Option<(i64, Rewritten)> {
        let rewrites = &epoch.snapshot.rewrites;
        if rewrites.is_empty() || self.user.fast_forward {
            return None;
        }
        rewrites.find(&self.user.username, &self.state.schema, sql, self.lexing())
    }

    pub(crate) fn split_facts<'a>(&self, class: &'a Class<'a>) -> SplitFacts<'a> {
        let since = |at| u64::try_from((self.core.rt.now() - at).as_millis()).unwrap_or(u64::MAX);
        SplitFacts { class: Some(class), lexing: self.lexing(), since_write_ms: self.wrote.map(since) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_collations_are_those_of_the_character_sets() {
        for id in 0..2400 {
            if let Some(collation) = wire::charset::by_id(id) {
                let shifts = SHIFTING.contains(&collation.charset);
                assert_eq!(SHIFTING_COLLATIONS.contains(&id), shifts, "{} {}", id, collation.name);
            }
        }
    }
}
