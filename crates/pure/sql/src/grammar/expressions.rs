//! Lists of expressions: where a value must stand, and where none may.

use super::tokens::What;
use super::{Read, Reader, Stop};

/// Place of expressions in a statement.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Frame {
    /// List of what a SELECT selects.
    List,
    /// Behind WHERE or HAVING.
    Condition,
    /// Behind ON of a join.
    Join,
    /// Behind BY.
    Sorted,
    Limit,
    /// Behind `=` of an assignment.
    Assigned,
    /// In parentheses behind a function, or a row of VALUES.
    Arguments,
    /// In parentheses.
    Inside,
}

/// Things that may come next in an expression.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// A value. `fresh`: no operator has come before it.
    Wanted { fresh: bool },
    /// An operator, or the end of the expression.
    Complete,
    /// The end of the expression: it has its alias or its order.
    Closed,
    /// Nobody knows.
    Open,
}

const WANTED: State = State::Wanted { fresh: false };

/// Between two values.
const OPERATORS: [&str; 9] = [
    "AND", "OR", "XOR", "DIV", "MOD", "LIKE", "RLIKE", "REGEXP", "BETWEEN",
];
/// Before a value.
const PREFIXES: [&str; 5] = ["NOT", "DISTINCT", "DISTINCTROW", "ALL", "INTERVAL"];
/// Words that no expression begins with.
#[rustfmt::skip]
const NEVER_FIRST: [&str; 42] = [
    "AND", "AS", "ASC", "BETWEEN", "BY", "CALL", "COLLATE", "CROSS", "DELETE", "DESC", "DIV", "ELSE", "FETCH", "FOR", "FROM", "GROUP", "HAVING",
    "IN", "INNER", "INTO", "IS", "JOIN", "LIKE", "LIMIT", "LOCK", "NATURAL", "ON", "OR", "ORDER", "OUTER", "PROCEDURE", "REGEXP", "RLIKE", "SELECT",
    "SET", "STRAIGHT_JOIN", "THEN", "UNION", "USING", "WHEN", "WHERE", "XOR",
];
/// Words that end expressions; signs do, too.
#[rustfmt::skip]
const ENDS: [&str; 32] = [
    "BY", "CALL", "CROSS", "DELETE", "EXCEPT", "FETCH", "FOR", "FROM", "GROUP", "HAVING", "INNER", "INSERT", "INTERSECT", "INTO", "JOIN", "LEFT", "LIMIT",
    "LOCK", "MINUS", "NATURAL", "ON", "ORDER", "OUTER", "PROCEDURE", "RIGHT", "SELECT", "SET", "STRAIGHT_JOIN", "UNION", "UPDATE", "USING", "WHERE",
];
/// Clauses of some versions, which begin with what is a name in others: from there on nothing is
/// said.
pub(super) const UNREAD: [&str; 3] = ["QUALIFY", "RETURNING", "WINDOW"];
const JOINS: [&str; 9] = [
    "CROSS",
    "INNER",
    "JOIN",
    "LEFT",
    "NATURAL",
    "OUTER",
    "RIGHT",
    "STRAIGHT_JOIN",
    "USING",
];

impl Reader<'_> {
    /// Reads up to what cannot be part of them, which stays.
    pub(super) fn expressions(&mut self, frame: Frame) -> Read {
        self.depth += 1;
        if self.depth > super::DEPTH_MAX {
            return Err(Stop::Unsure);
        }
        let start = self.at;
        let mut state = State::Wanted { fresh: true };
        // Of each CASE that is open, whether it has had a WHEN.
        let mut cases: Vec<bool> = Vec::new();
        loop {
            let what = self.peek();
            if !matches!(state, State::Wanted { .. })
                && frame != Frame::Arguments
                && what.is_any(&UNREAD)
            {
                return Err(Stop::Unsure);
            }
            let ends = match what {
                What::End | What::Sign(b')') => true,
                What::Sign(b',') => {
                    !matches!(frame, Frame::Condition | Frame::Join | Frame::Assigned)
                        && cases.is_empty()
                }
                // Where a value must stand, what is not reserved is a name.
                What::Syntax(_) if matches!(state, State::Wanted { .. }) => false,
                _ => frame != Frame::Arguments && what.is_any(&ENDS) && !self.is_call(),
            };
            if ends || what == What::Sign(b',') {
                match state {
                    State::Wanted { fresh: true }
                        if self.at == start
                            && frame == Frame::Arguments
                            && what == What::Sign(b')') => {}
                    State::Wanted { .. } => return Err(self.wrong("lacks a value")),
                    _ if !cases.is_empty() => return Err(self.wrong("lacks END")),
                    State::Open if what.is("SELECT") => return Err(Stop::Unsure),
                    _ => {}
                }
                if what == What::Sign(b',') && ends {
                    self.at += 1;
                    state = State::Wanted { fresh: true };
                    continue;
                }
                if what.is("FROM") && self.is_from_first()
                    || state == State::Open && self.is_within()
                {
                    self.at += 1;
                    self.skip_list()?;
                    state = State::Open;
                    continue;
                }
                break self.end(frame, what)?;
            }
            state = match state {
                State::Wanted { fresh } => self.value(frame, fresh, &mut cases)?,
                State::Complete => self.behind(frame, &mut cases)?,
                State::Closed => match what {
                    What::Reserved(_) | What::Syntax(_) => self.passed(State::Open),
                    _ => return Err(self.wrong("lacks ',' or the next clause")),
                },
                State::Open => self.unknown(&mut cases)?,
            };
        }
        self.depth -= 1;
        Ok(())
    }

    /// Whether what ended them may follow them.
    fn end(&self, frame: Frame, what: What<'_>) -> Read {
        let wrong = match frame {
            Frame::Join => what.is_any(&["SELECT", "BY"]),
            Frame::Condition => {
                what.is_any(&JOINS)
                    || what.is_any(&["SELECT", "SET", "BY"])
                    || what == What::Sign(b',')
            }
            // ON of `INSERT … SELECT … ON DUPLICATE KEY UPDATE`.
            Frame::List | Frame::Sorted | Frame::Limit => {
                what.is_any(&JOINS) || what.is_any(&["SELECT", "SET", "BY"])
            }
            Frame::Assigned => {
                what.is_any(&JOINS)
                    || what.is_any(&["SELECT", "SET", "BY", "FROM", "GROUP", "HAVING"])
            }
            Frame::Arguments => false,
            Frame::Inside => {
                what.is_any(&JOINS)
                    || what.is_any(&["SELECT", "SET", "BY", "FROM", "GROUP", "HAVING", "WHERE"])
            }
        };
        if wrong {
            Err(self.wrong("has what cannot follow"))
        } else {
            Ok(())
        }
    }

    fn passed(&mut self, state: State) -> State {
        self.at += 1;
        state
    }

    /// Whether the word here is before a parenthesis and may be a function.
    fn is_call(&self) -> bool {
        self.ahead(1) == What::Sign(b'(')
            && match self.peek() {
                What::Name | What::Syntax(_) => true,
                what => what.is_any(&[
                    "LEFT", "RIGHT", "INSERT", "REPLACE", "VALUES", "MOD", "EXISTS", "INTERVAL",
                ]),
            }
    }

    /// `NTH_VALUE(a, 2) FROM FIRST OVER w`.
    fn is_from_first(&self) -> bool {
        self.ahead(1).is_any(&["FIRST", "LAST"])
            && self.ahead(2).is_any(&["OVER", "RESPECT", "IGNORE"])
    }

    /// `PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY a)`.
    fn is_within(&self) -> bool {
        self.is("GROUP") && self.ahead(1) == What::Sign(b'(')
    }

    /// Where a value must stand.
    fn value(&mut self, frame: Frame, fresh: bool, cases: &mut Vec<bool>) -> Result<State, Stop> {
        let what = self.peek();
        if self.is_call() && !what.is("INTERVAL") {
            self.at += 2;
            self.call()?;
            return Ok(State::Complete);
        }
        Ok(match what {
            What::Value | What::String { double: false } => {
                self.at += 1;
                self.rest_of_path()?;
                State::Complete
            }
            What::Name | What::Sign(b'.') | What::String { double: true } => {
                self.path()?;
                if self.take_sign(b'(') {
                    self.call()?;
                }
                State::Complete
            }
            What::Sign(b'@') => self.variable(),
            What::Sign(b'(') => self.parenthesis()?,
            What::Sign(b'*') if fresh => self.passed(State::Complete),
            What::Sign(b'+' | b'-' | b'~' | b'!') => self.passed(WANTED),
            What::Sign(b':') => return Err(Stop::Unsure),
            What::Reserved("CASE") => {
                self.at += 1;
                cases.push(false);
                if self.take("WHEN") {
                    *cases.last_mut().ok_or(Stop::Unsure)? = true;
                }
                WANTED
            }
            // In `CONVERT(a, BINARY)` it is a type.
            _ if what.is("BINARY") && frame != Frame::Arguments => self.passed(WANTED),
            _ if what.is_any(&PREFIXES) => {
                let fresh = fresh && what.is_any(&["DISTINCT", "ALL", "DISTINCTROW"]);
                self.passed(State::Wanted { fresh })
            }
            // `TRIM(FROM a)`.
            _ if frame == Frame::Arguments && fresh && what.is("FROM") => self.passed(State::Open),
            _ if what.is_any(&NEVER_FIRST)
                || matches!(what, What::Reserved(_)) && what.is_any(&ENDS) =>
            {
                return Err(self.wrong("lacks a value"));
            }
            What::Sign(_) => return Err(self.wrong("lacks a value")),
            // What else is reserved may begin a value in some version.
            What::Reserved(_) => self.passed(State::Open),
            What::Syntax(_) => {
                self.path()?;
                State::Open
            }
            What::End => return Err(self.wrong("lacks a value")),
        })
    }

    /// Behind the name of a function and its parenthesis.
    fn call(&mut self) -> Read {
        if self.is_any(&["SELECT", "WITH"]) {
            self.query()?;
        } else {
            self.expressions(Frame::Arguments)?;
        }
        self.close()
    }

    /// `@a`, `@'a'`, `@@global.a`.
    fn variable(&mut self) -> State {
        while self.take_sign(b'@') {}
        if matches!(self.peek(), What::Name | What::String { .. }) {
            self.at += 1;
            while self.take_sign(b'.') {
                self.at += 1;
            }
            return State::Complete;
        }
        // A variable without a name is one.
        State::Open
    }

    /// An expression, a row or a query in parentheses.
    fn parenthesis(&mut self) -> Result<State, Stop> {
        self.at += 1;
        if self.is_any(&["SELECT", "WITH"]) {
            self.query()?;
            self.close()?;
        } else if self.is_any(&["VALUES", "TABLE"]) {
            self.skip()?;
        } else {
            self.expressions(Frame::Inside)?;
            if self.is_sign(b')') {
                self.at += 1;
            } else {
                // `((SELECT 1) UNION (SELECT 2) LIMIT 1)`.
                self.skip()?;
            }
        }
        Ok(State::Complete)
    }

    /// Behind a value.
    fn behind(&mut self, frame: Frame, cases: &mut Vec<bool>) -> Result<State, Stop> {
        let what = self.peek();
        if what.is("IN") && frame != Frame::Arguments && self.ahead(1) != What::Sign(b'(') {
            self.at += 1;
            return Err(self.wrong("lacks a list"));
        }
        if let Some(state) = self.operator(cases)? {
            return Ok(state);
        }
        let named = frame == Frame::List && cases.is_empty();
        Ok(match what {
            What::Sign(b'.') => return Err(Stop::Unsure),
            What::Sign(_) => return Err(self.wrong("lacks an operator")),
            What::Name if named => self.passed(State::Closed),
            What::String { .. } if named => self.passed(State::Closed),
            // Arguments of a loadable function may have names.
            What::Name | What::String { .. } if frame == Frame::Arguments && cases.is_empty() => {
                self.passed(State::Open)
            }
            What::Name | What::String { .. } | What::Value => {
                return Err(self.wrong("lacks an operator"));
            }
            _ if what.is("AS") => match frame {
                _ if !cases.is_empty() => return Err(self.wrong("lacks END")),
                Frame::List => {
                    self.at += 1;
                    match self.peek() {
                        What::Name | What::String { .. } => self.passed(State::Closed),
                        What::Syntax(_) => self.passed(State::Open),
                        What::Reserved(word) if !NEVER_FIRST.contains(&word) => {
                            self.passed(State::Open)
                        }
                        _ => return Err(self.wrong("lacks an alias")),
                    }
                }
                Frame::Arguments => self.passed(State::Open),
                // MySQL 8.0.19: `INSERT INTO t SET a = 1 AS new ON DUPLICATE KEY UPDATE b = new.a`.
                Frame::Assigned => return Err(Stop::Unsure),
                _ => return Err(self.wrong("has an alias where none may be,")),
            },
            _ if what.is_any(&["ASC", "DESC"]) => match frame {
                Frame::Sorted => self.passed(State::Closed),
                Frame::Arguments => self.passed(State::Open),
                _ => return Err(self.wrong("has an order where none may be,")),
            },
            // Of functions: `GROUP_CONCAT(a ORDER BY b)`, `EXTRACT(DAY FROM a)`, `CONVERT(a USING
            // utf8mb4)`.
            _ if frame == Frame::Arguments && what.is_any(&ENDS) => self.passed(State::Open),
            What::Reserved(_) | What::Syntax(_) => self.passed(State::Open),
            What::End => State::Open,
        })
    }

    /// Passes what may stand between two values, if it does.
    fn operator(&mut self, cases: &mut Vec<bool>) -> Result<Option<State>, Stop> {
        let what = self.peek();
        Ok(Some(match what {
            What::Sign(sign) => {
                let next = |by: usize| {
                    if let What::Sign(sign) = self.ahead(by) {
                        sign
                    } else {
                        0
                    }
                };
                let length = match (sign, next(1), next(2)) {
                    (b'<', b'=', b'>') | (b'-', b'>', b'>') => 3,
                    (b'<', b'=' | b'>' | b'<', _)
                    | (b'>', b'=' | b'>', _)
                    | (b'!' | b':', b'=', _)
                    | (b'=' | b'-', b'>', _) => 2,
                    (b'|', b'|', _) | (b'&', b'&', _) => 2,
                    (
                        b'=' | b'<' | b'>' | b'+' | b'-' | b'*' | b'/' | b'%' | b'^' | b'&' | b'|',
                        ..,
                    ) => 1,
                    (b':', ..) => return Err(Stop::Unsure),
                    _ => return Ok(None),
                };
                self.at += length;
                WANTED
            }
            _ if what.is_any(&OPERATORS) => self.passed(WANTED),
            _ if what.is("NOT") => {
                self.at += 1;
                if self.is("IN") {
                    return self.operator(cases);
                }
                if self.is_any(&["LIKE", "RLIKE", "REGEXP", "BETWEEN"]) {
                    self.passed(WANTED)
                } else {
                    State::Open
                }
            }
            _ if what.is("IN") => {
                self.at += 1;
                if !self.take_sign(b'(') {
                    // `POSITION(a IN b)`.
                    return Ok(Some(State::Open));
                }
                if self.is_sign(b')') {
                    return Err(self.wrong("lacks a value"));
                }
                self.call()?;
                State::Complete
            }
            _ if what.is("IS") => {
                self.at += 1;
                self.take("NOT");
                match self.peek() {
                    What::Value => self.passed(State::Complete),
                    What::Name | What::Syntax(_) => self.passed(State::Open),
                    _ if self.take("DISTINCT") => {
                        self.take("FROM");
                        WANTED
                    }
                    _ => return Err(self.wrong("lacks NULL, TRUE or FALSE")),
                }
            }
            _ if what.is("COLLATE") => {
                self.at += 1;
                if matches!(self.peek(), What::End | What::Sign(_)) {
                    return Err(self.wrong("lacks a collation"));
                }
                self.passed(State::Complete)
            }
            _ if what.is_any(&["WHEN", "THEN", "ELSE"]) => {
                let Some(has_when) = cases.last_mut() else {
                    return Err(self.wrong("lacks CASE"));
                };
                *has_when |= what.is("WHEN");
                if !*has_when {
                    return Err(self.wrong("lacks WHEN"));
                }
                self.passed(WANTED)
            }
            _ if what.is("END") && !cases.is_empty() => {
                if cases.pop() == Some(false) {
                    return Err(self.wrong("lacks WHEN"));
                }
                self.passed(State::Complete)
            }
            _ => return Ok(None),
        }))
    }

    /// Behind a word that may mean something or be a name.
    fn unknown(&mut self, cases: &mut Vec<bool>) -> Result<State, Stop> {
        if self.is_sign(b'*') {
            return Ok(self.passed(State::Open));
        }
        // A word of two meanings may have been a prefix, to which this is no operator.
        let is_sign = matches!(self.peek(), What::Sign(b'+' | b'-' | b'!' | b'~'));
        if !is_sign && let Some(state) = self.operator(cases)? {
            return Ok(state);
        }
        if self.take_sign(b'(') {
            self.skip()?;
        } else {
            self.at += 1;
        }
        Ok(State::Open)
    }
}
