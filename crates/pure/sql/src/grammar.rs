//! Whether a text can be a statement at all: what no MySQL and no MariaDB takes, of the statements
//! that read and change rows.
//!
//! No grammar of a server: what is not known here is taken. A text is refused only for what is
//! wrong in every version and `sql_mode`: a value or a table that is missing, two of them where one
//! may stand, clauses in the wrong order, lists that do not close. `conformance/tests/parsed.rs`
//! asks servers.

mod expressions;
mod tables;
mod tokens;

use expressions::Frame;
use tokens::{Token, What};

/// Why no server takes it, in words that follow the name of a column; `None` if one might. `?`,
/// `?N` and `:name` stand for values.
#[must_use]
pub fn mistake(text: &str) -> Option<String> {
    let text = text
        .trim()
        .trim_end_matches(|c: char| c == ';' || c.is_whitespace());
    let tokens = tokens::of(text)?;
    let mut reader = Reader {
        text,
        tokens,
        at: 0,
        depth: 0,
    };
    match reader.statement() {
        Ok(()) | Err(Stop::Unsure) => None,
        Err(Stop::Wrong(words)) => Some(words),
    }
}

/// Why reading ends early.
enum Stop {
    /// No server takes it.
    Wrong(String),
    /// Something is there that is not known here.
    Unsure,
}

type Read = Result<(), Stop>;

struct Reader<'a> {
    text: &'a str,
    tokens: Vec<Token<'a>>,
    at: usize,
    depth: usize,
}

/// Deeper than this nobody looks.
const DEPTH_MAX: usize = 64;
/// So much of the text is shown where something is wrong.
const SHOWN_MAX: usize = 40;

/// The clauses of a SELECT, and of what follows SET in an UPDATE, in the order that they must have.
const CLAUSES: [&str; 7] = [
    "SELECT", "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT",
];
const SETS: [&str; 4] = ["UNION", "EXCEPT", "INTERSECT", "MINUS"];
const OPTIONS: [&str; 9] = [
    "ALL",
    "DISTINCT",
    "DISTINCTROW",
    "HIGH_PRIORITY",
    "STRAIGHT_JOIN",
    "SQL_SMALL_RESULT",
    "SQL_BIG_RESULT",
    "SQL_CALC_FOUND_ROWS",
    // MariaDB's DISTINCT.
    "UNIQUE",
];

impl<'a> Reader<'a> {
    fn peek(&self) -> What<'a> {
        self.ahead(0)
    }

    fn ahead(&self, by: usize) -> What<'a> {
        self.tokens
            .get(self.at + by)
            .map_or(What::End, |token| token.what)
    }

    fn is(&self, word: &str) -> bool {
        self.peek().is(word)
    }

    fn is_any(&self, words: &[&str]) -> bool {
        self.peek().is_any(words)
    }

    fn is_sign(&self, sign: u8) -> bool {
        self.peek() == What::Sign(sign)
    }

    /// Passes it, if it is there.
    fn take(&mut self, word: &str) -> bool {
        let is = self.is(word);
        self.at += usize::from(is);
        is
    }

    fn take_sign(&mut self, sign: u8) -> bool {
        let is = self.is_sign(sign);
        self.at += usize::from(is);
        is
    }

    fn take_any(&mut self, words: &[&str]) {
        while self.is_any(words) {
            self.at += 1;
        }
    }

    /// Says what is wrong here, with the text that follows, as servers say it.
    fn wrong(&self, words: &str) -> Stop {
        let Some(token) = self.tokens.get(self.at) else {
            return Stop::Wrong(format!("{words} at its end"));
        };
        let rest = self.text.get(token.start..).unwrap_or_default();
        let shown: String = rest.chars().take(SHOWN_MAX).collect();
        let more = if shown.len() < rest.len() { "…" } else { "" };
        Stop::Wrong(format!("{words} before '{shown}{more}'"))
    }

    /// Passes everything up to the parenthesis that closes the one that was just passed, and it.
    fn skip(&mut self) -> Read {
        let mut depth = 1;
        while depth > 0 {
            depth = match self.peek() {
                What::End => return Err(Stop::Unsure),
                What::Sign(b'(') => depth + 1,
                What::Sign(b')') => depth - 1,
                _ => depth,
            };
            self.at += 1;
        }
        Ok(())
    }

    /// Passes what is in parentheses, if that comes next.
    fn skip_list(&mut self) -> Read {
        if self.take_sign(b'(') {
            self.skip()
        } else {
            Ok(())
        }
    }

    /// The parenthesis that must close here, after a query.
    fn close(&mut self) -> Read {
        if self.take_sign(b')') {
            Ok(())
        } else {
            Err(Stop::Unsure)
        }
    }

    /// Passes a name with what qualifies it: `a`, `a.b`, `.a`, `a.*`; whether there is one.
    fn path(&mut self) -> Result<bool, Stop> {
        let begins = match self.peek() {
            What::Name | What::Syntax(_) => true,
            What::String { double } => double,
            What::Sign(b'.') => false,
            _ => return Ok(false),
        };
        self.at += usize::from(begins);
        self.rest_of_path()?;
        Ok(true)
    }

    fn rest_of_path(&mut self) -> Read {
        while self.take_sign(b'.') {
            if !matches!(
                self.peek(),
                What::Name | What::Syntax(_) | What::String { .. } | What::Sign(b'*')
            ) {
                return Err(self.wrong("lacks a name"));
            }
            self.at += 1;
        }
        Ok(())
    }

    fn statement(&mut self) -> Read {
        match self.peek() {
            What::Sign(b'(') => self.query()?,
            what if what.is("SELECT") => self.query()?,
            what if what.is("WITH") => {
                self.with()?;
                return if self.is("WITH") {
                    Err(Stop::Unsure)
                } else {
                    self.statement()
                };
            }
            what if what.is_any(&["INSERT", "REPLACE"]) => self.insert()?,
            what if what.is("UPDATE") => self.update()?,
            what if what.is("DELETE") => self.delete()?,
            what if what.is("CALL") => self.call_of_procedure()?,
            _ => return Err(Stop::Unsure),
        }
        // Whatever is left is a clause that is not known here.
        Ok(())
    }

    /// `WITH a AS (…), b (x, y) AS (…)`.
    fn with(&mut self) -> Read {
        self.at += 1;
        self.take("RECURSIVE");
        loop {
            if !self.path()? {
                return Err(self.wrong("lacks a name"));
            }
            self.skip_list()?;
            if !self.take("AS") || !self.take_sign(b'(') {
                return Err(Stop::Unsure);
            }
            if !self.is_any(&["SELECT", "WITH"]) && !self.is_sign(b'(') {
                return Err(Stop::Unsure);
            }
            self.query()?;
            self.close()?;
            if !self.take_sign(b',') {
                return Ok(());
            }
        }
    }

    /// One or several SELECTs, up to the parenthesis that closes or the end.
    fn query(&mut self) -> Read {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(Stop::Unsure);
        }
        if self.is("WITH") {
            self.with()?;
        }
        loop {
            if self.take_sign(b'(') {
                self.query()?;
                self.close()?;
                self.clauses(1)?;
            } else if self.is("SELECT") {
                self.select()?;
            } else {
                return Err(Stop::Unsure);
            }
            let is_union = self.is("UNION");
            if !self.is_any(&SETS) {
                break;
            }
            self.at += 1;
            self.take_any(&["ALL", "DISTINCT"]);
            if is_union
                && !self.is_any(&["SELECT", "VALUES", "TABLE", "WITH"])
                && !self.is_sign(b'(')
            {
                return Err(self.wrong("lacks a SELECT"));
            }
        }
        self.depth -= 1;
        Ok(())
    }

    fn select(&mut self) -> Read {
        self.at += 1;
        self.take_any(&OPTIONS);
        self.expressions(Frame::List)?;
        self.clauses(1)
    }

    /// The clauses from that one on, in their order, and what is not known between them.
    fn clauses(&mut self, mut rank: usize) -> Read {
        loop {
            let what = self.peek();
            let Some(clause) = CLAUSES.iter().position(|name| what.is(name)) else {
                if what == What::End || what == What::Sign(b')') || what.is_any(&SETS) {
                    return Ok(());
                }
                if what.is("ON") && self.ahead(1).is("DUPLICATE") {
                    return Ok(());
                }
                // INTO, FOR UPDATE, WINDOW, … or the rest of one of them.
                if what == What::Sign(b'(') {
                    self.at += 1;
                    self.skip()?;
                } else {
                    self.at += 1;
                }
                continue;
            };
            if clause == 0 {
                return Err(Stop::Unsure);
            }
            if clause < rank {
                let name = CLAUSES.get(clause).copied().unwrap_or_default();
                return Err(self.wrong(&format!("has a second {name}, or one in the wrong place,")));
            }
            rank = clause + 1;
            self.at += 1;
            match clause {
                1 => self.tables()?,
                2 | 4 => self.expressions(Frame::Condition)?,
                3 | 5 => {
                    if !self.take("BY") {
                        return Err(self.wrong("lacks BY"));
                    }
                    self.expressions(Frame::Sorted)?;
                }
                _ => self.expressions(Frame::Limit)?,
            }
        }
    }

    /// INSERT and REPLACE.
    fn insert(&mut self) -> Read {
        self.at += 1;
        self.take_any(&["LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY", "IGNORE"]);
        self.take("INTO");
        if !self.path()? {
            return Err(self.wrong("lacks a table"));
        }
        if self.take("PARTITION") {
            self.skip_list()?;
        }
        if self.is_sign(b'(')
            && !self.ahead(1).is_any(&["SELECT", "WITH", "VALUES", "TABLE"])
            && self.ahead(1) != What::Sign(b'(')
        {
            self.columns()?;
        }
        let what = self.peek();
        if what.is_any(&["VALUES", "VALUE"]) {
            self.at += 1;
            self.rows()?;
        } else if self.take("SET") {
            self.assignments()?;
        } else if what.is_any(&["SELECT", "WITH"]) || what == What::Sign(b'(') {
            self.query()?;
        } else if matches!(what, What::End | What::Value | What::Name) {
            return Err(self.wrong("lacks VALUES"));
        } else {
            return Err(Stop::Unsure);
        }
        if self.is("ON") {
            self.at += 1;
            for word in ["DUPLICATE", "KEY", "UPDATE"] {
                if !self.take(word) {
                    return Err(self.wrong(&format!("lacks {word}")));
                }
            }
            self.assignments()?;
        }
        Ok(())
    }

    /// `(a, b, t.c)`, or nothing between the parentheses.
    fn columns(&mut self) -> Read {
        self.at += 1;
        if self.take_sign(b')') {
            return Ok(());
        }
        loop {
            if !self.path()? {
                return Err(self.wrong("lacks a column"));
            }
            if self.take_sign(b')') {
                return Ok(());
            }
            if !self.take_sign(b',') {
                return Err(self.wrong("lacks ',' or ')'"));
            }
        }
    }

    /// `(1, 2), (3, 4)`, `ROW(1, 2)`.
    fn rows(&mut self) -> Read {
        loop {
            self.take("ROW");
            if !self.take_sign(b'(') {
                return Err(self.wrong("lacks '('"));
            }
            self.expressions(Frame::Arguments)?;
            self.close()?;
            if !self.take_sign(b',') {
                break;
            }
        }
        match self.peek() {
            What::Value | What::String { .. } | What::Name | What::Sign(b'(') => {
                Err(self.wrong("lacks ','"))
            }
            what if what.is_any(&[
                "SELECT", "FROM", "WHERE", "VALUES", "SET", "ORDER", "GROUP", "LIMIT",
            ]) =>
            {
                Err(self.wrong("has the end of its rows"))
            }
            what if what.is("AS") => {
                self.at += 1;
                if !self.path()? {
                    return Err(self.wrong("lacks a name"));
                }
                self.skip_list()
            }
            _ => Ok(()),
        }
    }

    /// `a = 1, t.b = DEFAULT`.
    fn assignments(&mut self) -> Read {
        loop {
            if self.is_sign(b'(') {
                return Err(Stop::Unsure);
            }
            if !self.path()? {
                return Err(self.wrong("lacks a column"));
            }
            if self.is_sign(b':') {
                return Err(Stop::Unsure);
            }
            if !self.take_sign(b'=') {
                return Err(self.wrong("lacks '='"));
            }
            self.expressions(Frame::Assigned)?;
            if !self.take_sign(b',') {
                return Ok(());
            }
        }
    }

    fn update(&mut self) -> Read {
        self.at += 1;
        self.take_any(&["LOW_PRIORITY", "IGNORE"]);
        self.tables()?;
        if !self.take("SET") {
            return Err(if self.peek() == What::End || self.is_any(&CLAUSES) {
                self.wrong("lacks SET")
            } else {
                Stop::Unsure
            });
        }
        self.assignments()?;
        self.clauses(2)
    }

    fn delete(&mut self) -> Read {
        self.at += 1;
        self.take_any(&["LOW_PRIORITY", "QUICK", "IGNORE"]);
        if !self.is("FROM") {
            loop {
                if !self.path()? {
                    return Err(self.wrong("lacks a table"));
                }
                if !self.take_sign(b',') {
                    break;
                }
            }
            if !self.is("FROM") {
                return Err(if self.peek() == What::End || self.is("WHERE") {
                    self.wrong("lacks FROM")
                } else {
                    Stop::Unsure
                });
            }
        }
        self.at += 1;
        self.tables()?;
        if self.take("USING") {
            self.tables()?;
        }
        self.clauses(2)
    }

    /// `CALL p`, `CALL s.p(1, 2)`.
    fn call_of_procedure(&mut self) -> Read {
        self.at += 1;
        if !self.path()? {
            return Err(self.wrong("lacks a procedure"));
        }
        if self.take_sign(b'(') {
            self.expressions(Frame::Arguments)?;
            self.close()?;
        }
        match self.peek() {
            What::Value | What::Name => Err(self.wrong("has the end of its arguments")),
            _ => Ok(()),
        }
    }
}

/// Body of a fuzz target: it ends, and says something about every text.
pub fn fuzz_grammar(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        let words = mistake(text);
        assert!(words.is_none_or(|words| !words.is_empty()));
    }
}
