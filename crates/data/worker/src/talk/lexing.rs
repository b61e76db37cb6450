//! Readings of a session's texts: by its settings, and by what servers have told.

use crate::command::job::What;
use crate::known::epoch::Epoch;
use crate::known::reading::Reading;
use crate::session::Session;
use crate::session::lexing::{
    PLAIN, Plain, SHIFTING_COLLATIONS, blank_of_collation, is_default, is_to_be_asked,
    mentions_charset, named_in, shift_of, shift_of_collation, unquoted,
};
use backend::{Names, Prepared};
use plan::{AnsiQuotes, SplitFacts};
use sql::template::{Read, Rewritten};
use sql::{Blank, Class, Lexing, Shift};

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
            // Some other session of its user may have, whenever that was.
            since_write_ms: self
                .wrote
                .map(since)
                .or_else(|| self.user.shares_writes().then_some(u64::MAX)),
        }
    }
}
