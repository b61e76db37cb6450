//! How this session's statements are read, what templates make of them, and what the read/write split asks.

use crate::epoch::Epoch;
use crate::session::Session;
use backend::Names;
use plan::{AnsiQuotes, SplitFacts};
use sql::template::Rewritten;
use sql::{Class, Lexing, Shift};

/// Character sets whose characters may have a backslash or a quote as their second byte.
const SHIFTING: [(&str, Shift); 5] =
    [("big5", Shift::Big5), ("cp932", Shift::Sjis), ("gb18030", Shift::Gb18030), ("gbk", Shift::Gbk), ("sjis", Shift::Sjis)];

/// Their collations.
const SHIFTING_COLLATIONS: [u16; 19] =
    [1, 13, 28, 84, 87, 88, 95, 96, 248, 249, 250, 1025, 1037, 1052, 1108, 1111, 1112, 1119, 1120];

impl Session {
    /// How this session's statements are read.
    pub(crate) fn lexing(&self) -> Lexing {
        if !self.escapes() {
            return Lexing::NoEscapes;
        }
        let written = self.state.variable("character_set_client");
        let names = match &self.state.names {
            Names::Collation(id) if SHIFTING_COLLATIONS.contains(id) => Some(shift_of_collation(*id)),
            Names::Collation(_) => None,
            Names::Written(words) => shift_in(words),
            Names::Unknown => Some(Shift::Unknown),
        };
        match (names, written.map(shift_in)) {
            // It was set besides.
            (Some(_), Some(_)) | (None, Some(Some(_))) => Lexing::Shifts(Shift::Unknown),
            (Some(shift), None) => Lexing::Shifts(shift),
            (None, _) => Lexing::Escapes,
        }
    }

    fn ansi_quotes(&self) -> AnsiQuotes<'_> {
        if self.modes & wire::status::ANSI_QUOTES != 0 {
            return AnsiQuotes::Told;
        }
        self.state.variable("sql_mode").map_or(AnsiQuotes::Unknown, AnsiQuotes::Written)
    }

    /// What a template of `mysql_query_rewrite` makes of a statement, and which one.
    pub(crate) fn rewritten(&self, epoch: &Epoch, sql: &[u8]) -> Option<(i64, Rewritten)> {
        let rewrites = &epoch.snapshot.rewrites;
        if rewrites.is_empty() || self.user.fast_forward {
            return None;
        }
        rewrites.find(&self.user.username, &self.state.schema, sql, self.lexing())
    }

    pub(crate) fn split_facts<'a>(&'a self, class: &'a Class<'a>) -> SplitFacts<'a> {
        let since = |at| u64::try_from((self.core.rt.now() - at).as_millis()).unwrap_or(u64::MAX);
        SplitFacts { class: Some(class), lexing: self.lexing(), ansi_quotes: self.ansi_quotes(), since_write_ms: self.wrote.map(since) }
    }
}

/// The character set that words such as `NAMES gbk COLLATE gbk_bin` name.
fn shift_in(words: &str) -> Option<Shift> {
    let words = words.to_ascii_lowercase();
    let mut named = SHIFTING.iter().filter(|(name, _)| words.contains(name)).map(|(_, shift)| *shift);
    let first = named.next()?;
    // Of two, nobody can tell.
    Some(if named.any(|other| other != first) { Shift::Unknown } else { first })
}

fn shift_of_collation(id: u16) -> Shift {
    wire::charset::by_id(id).and_then(|collation| shift_in(collation.charset)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_collations_are_those_of_the_character_sets() {
        for id in 0..2400 {
            if let Some(collation) = wire::charset::by_id(id) {
                let shifts = SHIFTING.iter().any(|(name, _)| *name == collation.charset);
                assert_eq!(SHIFTING_COLLATIONS.contains(&id), shifts, "{} {}", id, collation.name);
            }
        }
    }
}
