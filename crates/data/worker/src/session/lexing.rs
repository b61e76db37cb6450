//! How this session's statements are read, what templates make of them, and what the read/write
//! split asks.

use crate::command::job::{Job, What};
use crate::command::reads::REMEMBERED;
use crate::command::trouble::Failed;
use crate::known::epoch::Epoch;
use crate::known::reading::{Reading, bits};
use crate::memory::drain::Asking;
use crate::session::Session;
use backend::{Backend, BackendFailed, Hold, Names, Prepared};
use plan::{AnsiQuotes, SplitFacts};
use sql::template::{Read, Rewritten};
use sql::{Blank, Class, Leaves, Lexing, Reads, Shift};

/// The character sets of [`backend::SHIFTING`].
const SHIFTING: [(&str, Shift); 5] = [
    ("big5", Shift::Big5),
    ("cp932", Shift::Sjis),
    ("gb18030", Shift::Gb18030),
    ("gbk", Shift::Gbk),
    ("sjis", Shift::Sjis),
];

/// Their collations.
const SHIFTING_COLLATIONS: [u16; 19] = [
    1, 13, 28, 84, 87, 88, 95, 96, 248, 249, 250, 1025, 1037, 1052, 1108, 1111, 1112, 1119, 1120,
];

/// The collations with these ids have such a blank, as a bit each. MariaDB has those that do not
/// pad, too: 1024 more.
const LATIN_BLANKS: u128 = bits(&[
    2, 3, 5, 8, 9, 15, 16, 20, 21, 25, 26, 27, 30, 31, 32, 34, 41, 42, 44, 47, 48, 49, 64, 66, 69,
    70, 71, 77, 78, 79, 92, 93, 94, 99,
]);
const DOS_BLANKS: u128 = bits(&[36, 37, 40, 68, 73, 81]);
/// Those of which it is known what ends two dashes only.
const DASHES: u128 = bits(&[4, 6, 39, 53, 72, 80]);

/// Meaning for a text of a collation that MySQL and MariaDB share, by its id.
#[derive(Clone, Copy)]
enum Plain {
    /// Every byte is what it is in ASCII, or part of a character that looks like none.
    Nothing,
    Blank(Blank),
    /// To be looked at.
    No,
}

/// By id; of others nothing is known here.
const PLAIN: [Plain; 248] = {
    let mut all = [Plain::Nothing; 248];
    let mut id = 0;
    while id < 128 {
        all[id] = if LATIN_BLANKS >> id & 1 == 1 {
            Plain::Blank(Blank::Latin)
        } else if DOS_BLANKS >> id & 1 == 1 {
            Plain::Blank(Blank::Dos)
        } else if DASHES >> id & 1 == 1 {
            Plain::Blank(Blank::Dashes)
        } else {
            Plain::Nothing
        };
        id += 1;
    }
    all[0] = Plain::No;
    let mut at = 0;
    while at < SHIFTING_COLLATIONS.len() {
        let id = SHIFTING_COLLATIONS[at] as usize;
        if id < all.len() {
            all[id] = Plain::No;
        }
        at += 1;
    }
    all
};

impl Session {
    /// How this session's statements are read.
    pub(crate) fn lexing(&self) -> Lexing {
        if let Names::Collation(id) = self.state.names
            && !self.reading.is(Reading::UNSURE | Reading::CHARSET)
            && !self.state.has_variables()
            && !self.held.iter().any(|(_, backend)| is_to_be_asked(backend))
        {
            match (PLAIN.get(usize::from(id)), self.escapes()) {
                (Some(Plain::Nothing), true) => return Lexing::Escapes,
                (Some(Plain::Nothing), false) => return Lexing::NoEscapes,
                (Some(Plain::Blank(blank)), escapes) => {
                    let blank = *blank;
                    return Lexing::Blanks { blank, escapes };
                }
                _ => {}
            }
        }
        self.lexing_of_any()
    }

    /// [`Session::lexing`] where more has to be looked at than a number.
    fn lexing_of_any(&self) -> Lexing {
        match (self.shift(), self.is_unsure(), self.escapes()) {
            (shift, true, _) => Lexing::Unsure {
                shifts: shift.is_some(),
            },
            // A backquote may be part of a character all the same.
            (Some(_), _, false) => Lexing::Unsure { shifts: true },
            (Some(shift), _, true) => Lexing::Shifts(shift),
            (None, _, escapes) => match self.blank() {
                Some(blank) => Lexing::Blanks { blank, escapes },
                None if escapes => Lexing::Escapes,
                None => Lexing::NoEscapes,
            },
        }
    }

    /// The byte above ASCII that is a blank in the session's character set, where
    /// [`Session::shift`] knows of nothing that is worse.
    fn blank(&self) -> Option<Blank> {
        let by_itself = || self.core.pools.own_modes().blank;
        let of = |written: &str| {
            if is_default(written) {
                by_itself()
            } else {
                Blank::of(unquoted(written))
            }
        };
        let names = match &self.state.names {
            Names::Collation(id) => match blank_of_collation(*id) {
                // Of an id that it does not know, a server makes its own.
                None if matches!(id, 0 | 248..) => by_itself(),
                blank => blank,
            },
            Names::Written(words) => of(named_in(words)),
            Names::Unknown => Some(Blank::Any),
        };
        // It may have been set besides.
        match (
            names,
            self.state.variable("character_set_client").and_then(of),
        ) {
            (Some(one), Some(other)) => Some(one.or(other)),
            (one, other) => one.or(other),
        }
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
        if self.is_unsure() {
            Lexing::Unsure {
                shifts: then.shifts() || now.shifts(),
            }
        } else {
            then
        }
    }

    /// The character set, if one of its characters may have a backslash or a quote in it.
    fn shift(&self) -> Option<Shift> {
        if self.reading.is(Reading::CHARSET)
            || !self.held.is_empty() && self.held.iter().any(|(_, backend)| is_to_be_asked(backend))
        {
            return Some(Shift::Unknown);
        }
        let by_itself = || self.core.pools.own_modes().shifts.then_some(Shift::Unknown);
        let written = self.state.variable("character_set_client");
        let names = match &self.state.names {
            Names::Collation(id) if SHIFTING_COLLATIONS.contains(id) => {
                Some(shift_of_collation(*id))
            }
            // Of an id that it does not know, a server makes its own.
            Names::Collation(0 | 248..) => by_itself(),
            Names::Collation(_) => None,
            Names::Written(words) => shift_of(named_in(words), by_itself),
            Names::Unknown => Some(Shift::Unknown),
        };
        match (names, written.map(|written| shift_of(written, by_itself))) {
            // It was set besides.
            (Some(_), Some(_)) | (None, Some(Some(_))) => Some(Shift::Unknown),
            (shift, None) => shift,
            (None, _) => None,
        }
    }

    /// A statement whose parts are not known may have set a character set, if its text mentions
    /// one.
    pub(crate) fn doubt_charset(&mut self, text: &[u8]) {
        if mentions_charset(text) {
            self.reading.put(Reading::CHARSET, true);
        }
    }

    /// A statement has said which it is.
    pub(crate) fn knows_charset(&mut self) {
        self.reading.put(Reading::CHARSET, false);
    }

    /// Before a command: how servers will read it, as far as anybody knows.
    /// [`Session::is_read_alike`] is asked again when it is known where it goes.
    pub(crate) fn foresee_modes(&mut self) {
        let own = self.core.pools.own_modes();
        if !self.reading.is(Reading::TOLD) {
            self.reading.set_flags(own.flags);
        }
        let unsure = self.reading.is(Reading::DOUBTS)
            || own.differ && self.state.variable("sql_mode").is_none();
        self.reading.put(Reading::UNSURE, unsure);
    }

    /// Learns what an answer says of the modes by which servers read texts.
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

    /// Whether the server of this connection reads the statement as it was read here: with the
    /// strings where they were found. One that does not gets nothing, and from then on this
    /// session's statements are read in both ways.
    pub(crate) async fn is_read_alike(
        &mut self,
        backend: &mut Backend,
        job: &Job<'_>,
    ) -> Result<(), Failed> {
        let alike = self.is_unsure()
            || (backend.holds.modes() ^ self.reading.flags()) & wire::status::NO_BACKSLASH_ESCAPES
                == 0
            || self.is_plain(job);
        if alike
            && (!self.asks_for_quotes(job)
                || Box::pin(self.quotes_are_strings(backend, job)).await?)
        {
            return Ok(());
        }
        self.reading.put(Reading::DOUBTS, true);
        Err(Failed::Backend(BackendFailed::ReadsOtherwise))
    }

    /// Whether it is the same to every server. What holds another text is if neither has a
    /// backslash; what comes from a variable is not known.
    fn is_plain(&self, job: &Job<'_>) -> bool {
        let has_none = |text: &[u8]| !text.contains(&b'\\');
        match job.what {
            What::Dynamic(dynamic) => has_none(dynamic.outer) && has_none(job.sent()),
            _ if job
                .class
                .leaves
                .intersects(Leaves::SQL_PREPARE | Leaves::SQL_EXECUTE) =>
            {
                false
            }
            _ if job.class.leaves.intersects(Leaves::UNKNOWN_STATE) => has_none(job.sent()),
            _ => sql::reads_alike(job.sent()),
        }
    }

    /// Whether the firewall has relied on the server's being asked: [`AnsiQuotes::Asked`].
    fn asks_for_quotes(&self, job: &Job<'_>) -> bool {
        job.epoch
            .snapshot
            .variables
            .mysql_firewall_whitelist_enabled
            && self.ansi_quotes() == AnsiQuotes::Asked
            && !matches!(job.what, What::Raw(..))
            && sql::quotes_matter(job.sent(), self.lexing_of(job.what))
    }

    async fn quotes_are_strings(
        &mut self,
        backend: &mut Backend,
        job: &Job<'_>,
    ) -> Result<bool, Failed> {
        if !backend.local.plain_quotes && job.class.reads.intersects(REMEMBERED | Reads::ROW_COUNT)
        {
            // The answer would be about our question.
            return Ok(false);
        }
        let limit_ms = self.limit_ms(job);
        if !backend.local.plain_quotes {
            let how = Asking::before_a_statement(limit_ms);
            self.ask_before_a_question(backend, how).await?;
        }
        self.prepared_for(limit_ms, backend.ask_quotes(), false)
            .await
    }

    pub(crate) fn ansi_quotes(&self) -> AnsiQuotes<'_> {
        if self.reading.flags() & wire::status::ANSI_QUOTES != 0 {
            return AnsiQuotes::Told;
        }
        let unset = if self.is_unsure() {
            AnsiQuotes::Unknown
        } else {
            AnsiQuotes::Asked
        };
        self.state
            .variable("sql_mode")
            .map_or(unset, AnsiQuotes::Written)
    }

    /// Returns what a template of `mysql_query_rewrite` makes of a statement, and which one.
    pub(crate) fn rewritten(&self, epoch: &Epoch, sql: &[u8]) -> Option<(i64, Rewritten)> {
        let rewrites = &epoch.snapshot.rewrites;
        if rewrites.is_empty() || self.user.fast_forward {
            return None;
        }
        let schema = if self.state.schema.is_empty() {
            &*epoch.snapshot.variables.mysql_default_schema
        } else {
            &*self.state.schema
        };
        let quotes = self.ansi_quotes().may_be();
        let read = Read {
            lexing: self.lexing(),
            ansi_quotes: quotes,
            utf8: self.state.speaks_utf8(),
        };
        rewrites.find(&self.user.username, schema, sql, read)
    }

    pub(crate) fn split_facts<'a>(
        &'a self,
        class: &'a Class<'a>,
        lexing: Lexing,
    ) -> SplitFacts<'a> {
        let since = |at| u64::try_from((self.core.rt.now() - at).as_millis()).unwrap_or(u64::MAX);
        SplitFacts {
            class: Some(class),
            lexing,
            ansi_quotes: self.ansi_quotes(),
            since_write_ms: self.wrote.map(since),
        }
    }
}

/// Whether the character set was set there to what nobody has asked yet.
pub(crate) fn is_to_be_asked(backend: &Backend) -> bool {
    backend.holds.has(Hold::Unread)
        && backend
            .local
            .unread
            .session
            .contains("character_set_client")
}

/// Whether a text names something that sets the character set in which it is read: a shifting one,
/// or one that is not named at all.
fn mentions_charset(text: &[u8]) -> bool {
    let has = |word: &str| {
        text.windows(word.len())
            .any(|part| part.eq_ignore_ascii_case(word.as_bytes()))
    };
    has("character_set_client")
        || (has("names") || has("char")) && SHIFTING.iter().any(|(name, _)| has(name))
}

/// The character set that words such as `NAMES gbk COLLATE gbk_bin` name.
fn named_in(words: &str) -> &str {
    let name = words
        .strip_prefix("NAMES ")
        .or_else(|| words.strip_prefix("CHARACTER SET "))
        .unwrap_or(words);
    name.split_once(" COLLATE ").map_or(name, |(name, _)| name)
}

/// Tells what the name of a character set, as it was written, means for its characters.
/// `by_itself`: what a server's own means. A number, or whatever else names one, is not known.
fn shift_of(written: &str, by_itself: impl Fn() -> Option<Shift>) -> Option<Shift> {
    let is = |name: &str, other: &&str| name.eq_ignore_ascii_case(other);
    if is_default(written) {
        return by_itself();
    }
    let name = unquoted(written);
    if ["utf8mb4", "utf8", "utf8mb3", "latin1", "binary"]
        .iter()
        .any(|usual| is(name, usual))
    {
        return None;
    }
    match SHIFTING.iter().find(|(shifting, _)| is(name, shifting)) {
        Some((_, shift)) => Some(*shift),
        None if wire::charset::default_of(name).is_some() => None,
        None => Some(Shift::Unknown),
    }
}

fn is_default(written: &str) -> bool {
    written.eq_ignore_ascii_case(backend::DEFAULT)
}

fn unquoted(name: &str) -> &str {
    name.strip_prefix('\'')
        .and_then(|rest| rest.strip_suffix('\''))
        .unwrap_or(name)
}

fn blank_of_collation(id: u16) -> Option<Blank> {
    let id = if let 1024..2048 = id { id - 1024 } else { id };
    let is_of = |all: u128| id < 128 && all >> id & 1 == 1;
    let sets = [
        (LATIN_BLANKS, Blank::Latin),
        (DOS_BLANKS, Blank::Dos),
        (DASHES, Blank::Dashes),
    ];
    sets.into_iter()
        .find_map(|(all, blank)| is_of(all).then_some(blank))
}

fn shift_of_collation(id: u16) -> Shift {
    wire::charset::by_id(id)
        .and_then(|collation| shift_of(collation.charset, || None))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_collations_are_those_of_the_character_sets() {
        for id in 0..2400 {
            if let Some(collation) = wire::charset::by_id(id) {
                let shifts = SHIFTING.iter().any(|(name, _)| *name == collation.charset);
                assert_eq!(
                    SHIFTING_COLLATIONS.contains(&id),
                    shifts,
                    "{} {}",
                    id,
                    collation.name
                );
                assert_eq!(
                    blank_of_collation(id),
                    Blank::of(collation.charset),
                    "{} {}",
                    id,
                    collation.name
                );
            }
        }
        assert_eq!(SHIFTING.map(|(name, _)| name), backend::SHIFTING);
    }

    #[test]
    fn what_is_known_by_the_number_is_what_is_found_by_the_name() {
        for (id, plain) in PLAIN.iter().enumerate() {
            let id = u16::try_from(id).unwrap();
            let blank = blank_of_collation(id);
            let shifts = id == 0 || SHIFTING_COLLATIONS.contains(&id);
            match plain {
                Plain::Nothing => assert!(blank.is_none() && !shifts, "{id}"),
                Plain::Blank(of) => assert!(blank == Some(*of) && !shifts, "{id}"),
                Plain::No => assert!(shifts, "{id}"),
            }
        }
    }

    #[test]
    fn what_does_not_name_a_character_set_may_be_any() {
        let of = |written: &str| shift_of(written, || Some(Shift::Big5));
        for written in ["utf8mb4", "'UTF8'", "latin2", "'ascii'", "cp1251", "binary"] {
            assert_eq!(of(written), None, "{written}");
        }
        assert_eq!(
            (of("GBK"), of("'gbk'"), of("default")),
            (Some(Shift::Gbk), Some(Shift::Gbk), Some(Shift::Big5))
        );
        for written in [
            "28",
            "x'67626b'",
            "0x67626b",
            "_utf8'gbk'",
            "'default'",
            "tibetan",
            "",
        ] {
            assert_eq!(of(written), Some(Shift::Unknown), "{written}");
        }
        assert_eq!(named_in("NAMES gbk COLLATE gbk_bin"), "gbk");
        assert_eq!(named_in("CHARACTER SET 'sjis'"), "'sjis'");
    }

    #[test]
    fn what_may_set_a_shifting_character_set_mentions_it() {
        for text in [
            "SELECT 1; SET NAMES gbk",
            "set CHARACTER SET 'Big5'; DO 1",
            "BEGIN SET @@character_set_client = @a; END",
        ] {
            assert!(mentions_charset(text.as_bytes()), "{text}");
        }
        for text in ["SET NAMES utf8mb4; SELECT 1", "SELECT 'gbk'; SELECT 2", ""] {
            assert!(!mentions_charset(text.as_bytes()), "{text}");
        }
    }
}
