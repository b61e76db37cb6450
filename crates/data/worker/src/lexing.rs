//! How this session's statements are read, what templates make of them, and what the read/write split asks.

use crate::epoch::Epoch;
use crate::ready::REMEMBERED;
use crate::relay::Failed;
use crate::session::Session;
use crate::statement::{Job, What};
use backend::{Backend, BackendFailed, Hold, MODES, Names, Prepared, Unreported};
use plan::{AnsiQuotes, SplitFacts};
use sql::template::Rewritten;
use sql::{Class, Leaves, Lexing, Reads, Shift};

/// Character sets whose characters may have a backslash or a quote as their second byte.
const SHIFTING: [(&str, Shift); 5] =
    [("big5", Shift::Big5), ("cp932", Shift::Sjis), ("gb18030", Shift::Gb18030), ("gbk", Shift::Gbk), ("sjis", Shift::Sjis)];

/// Their collations.
const SHIFTING_COLLATIONS: [u16; 19] =
    [1, 13, 28, 84, 87, 88, 95, 96, 248, 249, 250, 1025, 1037, 1052, 1108, 1111, 1112, 1119, 1120];

/// How servers read a session's texts, as the flags of its last answer said, or before any, as servers say by themselves; and how sure that is. In the two
/// bytes of the flags, because every idle session has it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Reading(u16);

impl Reading {
    /// An answer has told it.
    const TOLD: u16 = 1;
    /// It is read in both ways.
    const UNSURE: u16 = 2;
    /// A server has read a text otherwise than it was read here.
    const DOUBTS: u16 = 4;

    /// Of the status flags those that tell of its `sql_mode`: [`MODES`].
    pub(crate) const fn flags(self) -> u16 {
        self.0 & MODES
    }

    const fn set_flags(&mut self, flags: u16) {
        self.0 = self.0 & !MODES | flags & MODES;
    }

    const fn is(self, what: u16) -> bool {
        self.0 & what != 0
    }

    const fn put(&mut self, what: u16, on: bool) {
        if on { self.0 |= what } else { self.0 &= !what }
    }
}

const _: () = assert!(MODES & (Reading::TOLD | Reading::UNSURE | Reading::DOUBTS) == 0, "a flag of servers is one of ours");

impl Session {
    /// How this session's statements are read.
    pub(crate) fn lexing(&self) -> Lexing {
        if self.is_unsure() {
            return Lexing::Unsure { shifts: self.shift().is_some() };
        }
        if !self.escapes() {
            return Lexing::NoEscapes;
        }
        self.shift().map_or(Lexing::Escapes, Lexing::Shifts)
    }

    /// How servers read what this runs: a statement that was prepared as it was read then.
    pub(crate) fn lexing_of(&self, what: What<'_>) -> Lexing {
        let prepared = match what {
            What::Execute(execution) => Some(execution.lexing),
            What::Dynamic(dynamic) => dynamic.lexing(),
            What::Query(_) | What::Raw(..) | What::Prepare(_) | What::Refused(_) => None,
        };
        prepared.unwrap_or_else(|| self.lexing())
    }

    /// How servers read a statement that was prepared when this session's texts were read so.
    pub(crate) fn lexing_as_prepared(&self, then: Lexing, statement: &Prepared) -> Lexing {
        let now = self.lexing();
        if now == then || statement.means_as_now(&self.state) {
            return now;
        }
        // Where the servers' own modes differ, it was not known then either.
        if self.is_unsure() { Lexing::Unsure { shifts: then.shifts() || now.shifts() } } else { then }
    }

    /// The character set, if one of its characters may have a backslash or a quote in it.
    fn shift(&self) -> Option<Shift> {
        let written = self.state.variable("character_set_client");
        let names = match &self.state.names {
            Names::Collation(id) if SHIFTING_COLLATIONS.contains(id) => Some(shift_of_collation(*id)),
            Names::Collation(_) => None,
            Names::Written(words) => shift_in(words),
            Names::Unknown => Some(Shift::Unknown),
        };
        match (names, written.map(shift_in)) {
            // It was set besides.
            (Some(_), Some(_)) | (None, Some(Some(_))) => Some(Shift::Unknown),
            (shift, None) => shift,
            (None, _) => None,
        }
    }

    /// Before a command: how servers will read it, as far as anybody knows. [`Session::is_read_alike`] is asked again when it is known where it goes.
    pub(crate) fn foresee_modes(&mut self) {
        let own = self.core.pools.own_modes();
        if !self.reading.is(Reading::TOLD) {
            self.reading.set_flags(own.flags);
        }
        let unsure = self.reading.is(Reading::DOUBTS) || own.differ && self.state.variable("sql_mode").is_none();
        self.reading.put(Reading::UNSURE, unsure);
    }

    /// What an answer says of them.
    pub(crate) fn learn_modes(&mut self, flags: u16) {
        self.reading.set_flags(flags);
        self.reading.put(Reading::TOLD, true);
    }

    /// As after a login.
    pub(crate) fn forget_modes(&mut self) {
        self.reading = Reading::default();
        self.foresee_modes();
    }

    /// Whether its texts are read in both ways: with backslashes that escape and without.
    pub(crate) fn is_unsure(&self) -> bool {
        self.reading.is(Reading::UNSURE)
    }

    /// Whether the server of this connection reads the statement as it was read here: with the strings where they were found. One that does not gets
    /// nothing, and from then on this session's statements are read in both ways.
    pub(crate) async fn is_read_alike(&mut self, backend: &mut Backend, job: &Job<'_>) -> Result<(), Failed> {
        let alike = self.is_unsure()
            || (backend.holds.modes() ^ self.reading.flags()) & wire::status::NO_BACKSLASH_ESCAPES == 0
            || self.is_plain(job);
        if alike && (!self.asks_for_quotes(job) || Box::pin(self.quotes_are_strings(backend, job)).await?) {
            return Ok(());
        }
        self.reading.put(Reading::DOUBTS, true);
        Err(Failed::Backend(BackendFailed::ReadsOtherwise))
    }

    /// Whether it is the same to every server. What holds another text is if neither has a backslash; what comes from a variable is not known.
    fn is_plain(&self, job: &Job<'_>) -> bool {
        let has_none = |text: &[u8]| !text.contains(&b'\\');
        match job.what {
            What::Dynamic(dynamic) => has_none(dynamic.outer) && has_none(job.sent()),
            _ if job.class.leaves.intersects(Leaves::SQL_PREPARE | Leaves::SQL_EXECUTE) => false,
            _ if job.class.leaves.intersects(Leaves::UNKNOWN_STATE) => has_none(job.sent()),
            _ => sql::reads_alike(job.sent()),
        }
    }

    /// Whether the firewall has relied on the server's being asked: [`AnsiQuotes::Asked`].
    fn asks_for_quotes(&self, job: &Job<'_>) -> bool {
        job.epoch.snapshot.variables.mysql_firewall_whitelist_enabled
            && self.ansi_quotes() == AnsiQuotes::Asked
            && !matches!(job.what, What::Raw(..))
            && sql::quotes_matter(job.sent(), self.lexing_of(job.what))
    }

    async fn quotes_are_strings(&mut self, backend: &mut Backend, job: &Job<'_>) -> Result<bool, Failed> {
        if !backend.plain_quotes && job.class.reads.intersects(REMEMBERED | Reads::ROW_COUNT) {
            // The answer would be about our question.
            return Ok(false);
        }
        let limit_ms = self.limit_ms(job);
        if !backend.plain_quotes && backend.unreported != Unreported::Nothing {
            // Our question would be told it.
            self.hear(backend, limit_ms, false).await?;
        }
        if !backend.plain_quotes && backend.holds.has(Hold::FoundRows) {
            // Our question would be what FOUND_ROWS() is about.
            let found = self.watched(limit_ms, backend.ask_found_rows(), self.entry.told_to_leave()).await?;
            self.keep_found_rows(found, backend.hello.is_mariadb());
        }
        self.watched(limit_ms, backend.ask_quotes(), self.entry.told(false)).await
    }

    pub(crate) fn ansi_quotes(&self) -> AnsiQuotes<'_> {
        if self.reading.flags() & wire::status::ANSI_QUOTES != 0 {
            return AnsiQuotes::Told;
        }
        let unset = if self.is_unsure() { AnsiQuotes::Unknown } else { AnsiQuotes::Asked };
        self.state.variable("sql_mode").map_or(unset, AnsiQuotes::Written)
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
        SplitFacts {
            class: Some(class),
            lexing: self.lexing(),
            ansi_quotes: self.ansi_quotes(),
            since_write_ms: self.wrote.map(since),
        }
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
