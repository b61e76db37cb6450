//! Lists of tables and joins: behind FROM, UPDATE and USING.

use super::expressions::{Frame, UNREAD};
use super::tokens::What;
use super::{Read, Reader, Stop};

/// Things that may come next in a list of tables.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// A table.
    Wanted,
    /// An alias, or what joins the next table.
    Named,
    /// A word that joins the next table.
    Aliased,
    /// Nobody knows.
    Open,
}

/// Words that end a list of tables; signs do, too.
#[rustfmt::skip]
const ENDS: [&str; 20] = [
    "EXCEPT", "FETCH", "FOR", "FROM", "GROUP", "HAVING", "INTERSECT", "INTO", "LIMIT", "LOCK", "MINUS", "ORDER", "PROCEDURE", "SELECT", "SET", "UNION",
    "VALUES", "WHERE", "WINDOW", "WITH",
];
/// Words that may stand between two tables, before JOIN.
const BEFORE_JOIN: [&str; 7] = [
    "CROSS", "FULL", "INNER", "LEFT", "NATURAL", "OUTER", "RIGHT",
];
/// Words that begin no table.
const NEVER_FIRST: [&str; 24] = [
    "AND", "AS", "BY", "CROSS", "FETCH", "FROM", "GROUP", "HAVING", "IN", "INNER", "INTO", "IS",
    "JOIN", "LIKE", "LIMIT", "NATURAL", "ON", "OR", "ORDER", "SELECT", "SET", "UNION", "USING",
    "WHERE",
];

impl Reader<'_> {
    /// Reads up to what cannot be part of it, which stays.
    pub(super) fn tables(&mut self) -> Read {
        self.depth += 1;
        if self.depth > super::DEPTH_MAX {
            return Err(Stop::Unsure);
        }
        let mut state = State::Wanted;
        loop {
            state = match state {
                State::Wanted => self.table()?,
                _ if self.is_end_of_tables() => break,
                _ => self.behind_table(state)?,
            };
        }
        self.depth -= 1;
        Ok(())
    }

    fn is_end_of_tables(&self) -> bool {
        let what = self.peek();
        matches!(what, What::End | What::Sign(b')'))
            || what.is_any(&ENDS)
            || what.is("ON") && self.ahead(1).is("DUPLICATE")
            // DELETE FROM t USING t JOIN u.
            || what.is("USING") && self.ahead(1) != What::Sign(b'(')
    }

    /// Where a table must stand.
    fn table(&mut self) -> Result<State, Stop> {
        let what = self.peek();
        Ok(match what {
            What::Sign(b'(') => {
                self.at += 1;
                if self.is_any(&["SELECT", "WITH"]) {
                    self.query()?;
                    self.close()?;
                } else if self.is_any(&["VALUES", "TABLE"]) {
                    self.skip()?;
                } else {
                    self.tables()?;
                    // `((SELECT 1) UNION SELECT 2)`.
                    self.skip()?;
                }
                State::Named
            }
            What::Name | What::Sign(b'.') | What::String { double: true } => {
                self.path()?;
                State::Named
            }
            What::Syntax(_) => {
                self.path()?;
                State::Open
            }
            What::End | What::Sign(_) | What::Value | What::String { .. } => {
                return Err(self.wrong("lacks a table"));
            }
            _ if what.is_any(&NEVER_FIRST) => return Err(self.wrong("lacks a table")),
            What::Reserved(_) => {
                self.at += 1;
                State::Open
            }
        })
    }

    /// Behind a table or its alias.
    fn behind_table(&mut self, state: State) -> Result<State, Stop> {
        let what = self.peek();
        let pass = |reader: &mut Self, state| {
            reader.at += 1;
            Ok(state)
        };
        match what {
            _ if what.is_any(&UNREAD) => Err(Stop::Unsure),
            What::Sign(b',') => pass(self, State::Wanted),
            What::Sign(b'(') => {
                self.at += 1;
                self.skip()?;
                Ok(State::Open)
            }
            // MySQL 5.7 takes `=` for AS.
            What::Sign(b'=') if state == State::Named => pass(self, State::Open),
            What::Name | What::String { double: true } if state == State::Named => {
                pass(self, State::Aliased)
            }
            _ if what.is("AS") && state != State::Aliased => {
                self.at += 1;
                match self.peek() {
                    What::Name | What::String { double: true } => pass(self, State::Aliased),
                    What::Syntax(_) => pass(self, State::Open),
                    What::Reserved(word) if !NEVER_FIRST.contains(&word) => pass(self, State::Open),
                    _ => Err(self.wrong("lacks an alias")),
                }
            }
            _ if what.is_any(&["JOIN", "STRAIGHT_JOIN"]) => pass(self, State::Wanted),
            _ if what.is_any(&BEFORE_JOIN) && !what.is("FULL") => {
                self.take_any(&BEFORE_JOIN);
                if self.take("JOIN") {
                    return Ok(State::Wanted);
                }
                Err(if matches!(self.peek(), What::Syntax(_)) {
                    Stop::Unsure
                } else {
                    self.wrong("lacks JOIN")
                })
            }
            _ if what.is("ON") => {
                self.at += 1;
                self.expressions(Frame::Join)?;
                Ok(State::Open)
            }
            _ if what.is("USING") => {
                self.at += 1;
                self.skip_list()?;
                Ok(State::Open)
            }
            _ if what.is_any(&["USE", "FORCE", "IGNORE"]) => self.hint(),
            _ if state == State::Open => pass(self, State::Open),
            _ if what.is("PARTITION") => {
                self.at += 1;
                self.skip_list()?;
                Ok(State::Named)
            }
            What::Syntax(_) => pass(self, State::Open),
            _ => Err(self.wrong("lacks ',', JOIN or the next clause")),
        }
    }

    /// `FORCE INDEX FOR ORDER BY (a)`.
    fn hint(&mut self) -> Result<State, Stop> {
        self.at += 1;
        if !self.is_any(&["INDEX", "KEY"]) {
            return Err(Stop::Unsure);
        }
        self.at += 1;
        if self.take("FOR") {
            self.take_any(&["JOIN", "ORDER", "GROUP", "BY"]);
        }
        if !self.take_sign(b'(') {
            return Err(self.wrong("lacks '('"));
        }
        self.skip()?;
        Ok(State::Open)
    }
}
