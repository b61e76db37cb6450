//! What stands behind the first words of a statement: the functions, variables and keywords in it.

use super::Scan;
use crate::functions;
use crate::marks::{Leaves, Reads};
use crate::reading::Against;
use crate::words::{Kind, Token, unquote};
use std::ops::Range;

/// Things for which the words after the first ones are looked at.
#[derive(Clone, Copy)]
pub(super) struct Rest {
    /// `name(` calls a function.
    pub(super) functions: bool,
    /// `x@y` names an account.
    pub(super) accounts: bool,
    /// A user variable that is named is set.
    pub(super) assigns: bool,
}

pub(super) const EXPRESSIONS: Rest = Rest {
    functions: true,
    accounts: false,
    assigns: false,
};
/// Names of tables and columns come first, expressions after VALUES, SET or SELECT.
pub(super) const DEFINITION: Rest = Rest {
    functions: false,
    accounts: false,
    assigns: false,
};
pub(super) const ACCOUNTS: Rest = Rest {
    functions: false,
    accounts: true,
    assigns: false,
};
pub(super) const ASSIGNS: Rest = Rest {
    functions: true,
    accounts: false,
    assigns: true,
};
/// Of LOAD: a table, and a list of its columns and of variables; expressions after SET.
pub(super) const LOADS: Rest = Rest {
    functions: false,
    accounts: false,
    assigns: true,
};

/// Of NEXTVAL and CURRVAL in quotes.
const QUOTED_LEN: usize = 9;

/// Beyond so many bytes values are passed in a loop of their own.
pub(super) const LONG: usize = 256;

/// Words that make one result of several.
const SETS: [&str; 4] = ["UNION", "EXCEPT", "INTERSECT", "MINUS"];

/// Whether a word before `(` may be an aggregate of the servers' own, by the beginning of its name.
fn makes_one_of_all(word: Token<'_>) -> bool {
    let begins = |names: &[&str]| {
        names.iter().any(|name| {
            let there = word.text.get(..name.len());
            there.is_some_and(|there| there.eq_ignore_ascii_case(name.as_bytes()))
        })
    };
    match word.text.first().map(u8::to_ascii_uppercase) {
        Some(b'A') => word.is("AVG"),
        Some(b'B') => begins(&["BIT_"]),
        Some(b'C') => word.is("COUNT"),
        Some(b'G') => begins(&["GROUP_"]),
        Some(b'H') => word.is("HAVING"),
        Some(b'J') => begins(&["JSON_"]),
        Some(b'M') => word.is_any(&["MIN", "MAX"]),
        Some(b'S') => word.is_any(&["SUM", "STD"]) || begins(&["STDDEV", "ST_"]),
        Some(b'V') => begins(&["VARIANCE", "VAR_"]),
        _ => false,
    }
}

impl<'a> Scan<'a> {
    /// Looks through what is left of this statement; whether it locks the rows that it reads for an
    /// update.
    pub(super) fn rest(&mut self, mut rest: Rest) -> bool {
        let mut for_update = false;
        // Where the two tokens before are: few are asked for again.
        let (mut before, mut earlier) = (0..0, 0..0);
        while let Some(token) = self.words.next() {
            match token.kind {
                Kind::Sign if token.text == b";" => break,
                // So far only a long statement, which is mostly values, has come.
                Kind::Sign if token.start > LONG && matches!(token.text, b"," | b"(") => {
                    self.words.skip_values()
                }
                Kind::Sign
                    if token.text == b"@"
                        && !(rest.accounts
                            && before.end == token.start
                            && self.names_account(&before)) =>
                {
                    self.variable(rest);
                }
                // Of what is passed here and above two tokens are left: they are those before the
                // next. A name may begin with a digit.
                Kind::Word if token.text[0].is_ascii_digit() && !self.words.is_before(b'(') => {
                    self.words.skip_numbers()
                }
                // A value begins here.
                Kind::Sign if token.text == b"=" => rest.accounts &= !self.class.sets,
                Kind::Word if self.words.is_before(b'(') => {
                    rest.accounts &= !token.is_any(&["WHERE", "SELECT"]);
                    let schema = self
                        .is_qualified(&before)
                        .then(|| self.qualifier(&before, &earlier));
                    let functions = rest.functions
                        && !self.is_named(&before)
                        && !self.is_bound(&before, token.text);
                    self.call(token, schema, functions);
                    rest.functions |= token.is_any(&["VALUES", "VALUE", "ROW", "SELECT"]);
                }
                Kind::Word => {
                    if token.is_any(&["NEXTVAL", "CURRVAL"]) && self.is_qualified(&before) {
                        self.column_or_sequence(token.text);
                    }
                    let of_charset = token.is("SET") && self.is_of_charset(&before, &earlier);
                    if !of_charset {
                        self.keyword(token, &mut rest, &mut for_update);
                    }
                }
                // A name in double quotes is one under ANSI_QUOTES.
                Kind::Name | Kind::String
                    if rest.functions
                        && token.text[0] != b'\''
                        && self.words.is_before(b'(')
                        && !self.is_named(&before)
                        && !self.is_bound(&before, token.text)
                        && !self.is_common_table() =>
                {
                    let schema = self.qualifier(&before, &earlier);
                    if schema.is_none() && token.is_whole() {
                        // The server's own are called so, too.
                        let name = Token {
                            kind: Kind::Word,
                            text: &token.text[1..token.text.len() - 1],
                            ..token
                        };
                        self.call(name, None, false);
                    }
                    self.unknown_function(schema, token);
                }
                Kind::Name | Kind::String
                    if token.text.len() == QUOTED_LEN && self.is_qualified(&before) =>
                {
                    self.column_or_sequence(&unquote(token.text));
                }
                _ => {}
            }
            earlier = std::mem::replace(&mut before, token.start..token.end());
        }
        for_update
    }

    /// `x.NEXTVAL`, `x.CURRVAL`: under sql_mode=ORACLE a sequence, else a column.
    fn column_or_sequence(&mut self, name: &[u8]) {
        if name.eq_ignore_ascii_case(b"NEXTVAL") {
            self.leaves(Leaves::NEXTVAL);
        } else if name.eq_ignore_ascii_case(b"CURRVAL") {
            self.class.reads |= Reads::CURRVAL;
        } else {
            return;
        }
        self.only_here(Against::Sequence);
    }

    /// Whether what follows is the name of something that the statement makes.
    fn is_named(&self, before: &Range<usize>) -> bool {
        self.words
            .again(before)
            .is_some_and(|b| b.is_any(&["AS", "WITH", "RECURSIVE"]))
    }

    /// Whether a word before `(` belongs to what stands before it, so that no server takes it for a
    /// call: it would be a syntax error.
    fn is_bound(&self, before: &Range<usize>, word: &[u8]) -> bool {
        // `(SELECT 1) d (a)` and `VALUES LESS THAN (1)`.
        let belongs = |last: Token<'_>| {
            last.is_sign(b')') || last.is("LESS") && word.eq_ignore_ascii_case(b"THAN")
        };
        self.words.again(before).is_some_and(belongs)
    }

    /// Whether what follows is the list of columns of a common table: `(a, b) AS (`.
    fn is_common_table(&self) -> bool {
        let mut after = self.words.clone();
        after.next();
        loop {
            let named = after.next().is_some_and(|column| column.kind != Kind::Sign);
            match after.next() {
                Some(sign) if named && sign.is_sign(b',') => {}
                Some(sign) if named && sign.is_sign(b')') => break,
                _ => return false,
            }
        }
        after.next().is_some_and(|token| token.is("AS")) && after.is_before(b'(')
    }

    /// `CHARACTER SET` sets nothing. Behind a dot it is the name of a table.
    fn is_of_charset(&self, before: &Range<usize>, earlier: &Range<usize>) -> bool {
        self.words
            .again(before)
            .is_some_and(|b| b.is_any(&["CHARACTER", "CHAR"]))
            && !self.words.again(earlier).is_some_and(|e| e.is_sign(b'.'))
    }

    fn is_qualified(&self, before: &Range<usize>) -> bool {
        self.words.again(before).is_some_and(|b| b.is_sign(b'.'))
    }

    /// `schema.` in front of it.
    fn qualifier(&self, before: &Range<usize>, earlier: &Range<usize>) -> Option<Token<'a>> {
        self.words
            .again(earlier)
            .filter(|e| self.is_qualified(before) && e.kind != Kind::Sign)
    }

    /// Whether `@` after this token and what follows is the host of an account, which is nowhere
    /// assigned.
    fn names_account(&self, before: &Range<usize>) -> bool {
        let mut after = self.words.clone();
        if after.skip_variable() == self.words.position() {
            after.next();
        }
        self.words
            .again(before)
            .is_some_and(|user| user.kind != Kind::Sign)
            && !after.is_before(b':')
    }

    /// After `@`: a user variable, or after `@@` a variable of the server.
    fn variable(&mut self, rest: Rest) {
        let Some(name) = self.words.peek() else {
            return;
        };
        if !name.is_sign(b'@') {
            self.class.reads |= Reads::USER_VARIABLE;
            let at = self.words.position();
            let quoted = matches!(name.kind, Kind::Name | Kind::String);
            if quoted || self.words.skip_variable() == at && name.kind == Kind::Word {
                self.words.next();
            }
            let mut after = self.words.clone();
            let sign = after.next();
            let assigned = sign.is_some_and(|t| t.is_sign(b':'))
                || self.class.sets && sign.is_some_and(|t| t.is_sign(b'='));
            if assigned || rest.assigns {
                self.leaves(Leaves::USER_VARIABLE);
            }
            return;
        }
        self.words.next();
        let Some(mut name) = self.words.peek().filter(|t| t.kind != Kind::Sign) else {
            return;
        };
        self.words.next();
        let mut global = false;
        if self.words.is_before(b'.') {
            global = name.is("GLOBAL");
            self.words.next();
            let Some(inner) = self.words.peek().filter(|t| t.kind != Kind::Sign) else {
                return;
            };
            self.words.next();
            name = inner;
        }
        let plain = unquote(name.text);
        if crate::reading::is_of_one_server(&plain) {
            self.only_here(Against::Server);
        }
        if global {
            return;
        }
        let is = |names: &[&str]| {
            names
                .iter()
                .any(|n| plain.eq_ignore_ascii_case(n.as_bytes()))
        };
        self.class.reads |= if is(&["warning_count", "error_count"]) {
            Reads::WARNINGS
        } else if is(&["last_insert_id", "identity", "insert_id"]) {
            Reads::LAST_INSERT_ID
        } else if is(&["pseudo_thread_id"]) {
            Reads::CONNECTION_ID
        } else if is(&["last_gtid"]) {
            Reads::LAST_GTID
        } else {
            Reads::SESSION_VARIABLE
        };
    }

    /// `word(`; `qualified` by a schema, which is `None` if it cannot be read.
    fn call(&mut self, word: Token<'a>, qualified: Option<Option<Token<'a>>>, functions: bool) {
        if let Some(schema) = qualified {
            if functions {
                self.unknown_function(schema, word);
            }
            return;
        }
        self.class.groups |= makes_one_of_all(word);
        match word.text.first().map(u8::to_ascii_uppercase) {
            Some(b'G') if word.is("GET_LOCK") => self.leaves(Leaves::GET_LOCK),
            Some(b'R') if word.is_any(&["RELEASE_LOCK", "RELEASE_ALL_LOCKS"]) => {
                self.leaves(Leaves::RELEASE_LOCK)
            }
            Some(b'R') if word.is("ROW_COUNT") => self.class.reads |= Reads::ROW_COUNT,
            Some(b'F') if word.is("FOUND_ROWS") => self.class.reads |= Reads::FOUND_ROWS,
            Some(b'C') if word.is("CONNECTION_ID") => self.class.reads |= Reads::CONNECTION_ID,
            Some(b'P') if word.is("PS_CURRENT_THREAD_ID") => {
                self.class.reads |= Reads::CONNECTION_ID
            }
            Some(b'L') if word.is("LAST_INSERT_ID") => {
                self.class.reads |= Reads::LAST_INSERT_ID;
                let mut after = self.words.clone();
                after.next();
                if !after.next().is_some_and(|t| t.is_sign(b')')) {
                    self.leaves(Leaves::LAST_INSERT_ID);
                }
            }
            Some(b'U' | b'E' | b'I' | b'M') if word.is_any(&SETS) => self.class.limits = true,
            Some(b'S' | b'R') if word.is_any(&["SELECT", "RETURNING"]) => self.class.selects = true,
            Some(b'L') if word.is("LASTVAL") => self.class.reads |= Reads::SEQUENCE,
            Some(b'N' | b'S') if word.is_any(&["NEXTVAL", "SETVAL"]) => {
                self.leaves(Leaves::SEQUENCE)
            }
            // Of a column whose default is the next number of a sequence.
            Some(b'D') if word.is("DEFAULT") && self.class.against.is_none() => {
                self.leaves(Leaves::NEXTVAL)
            }
            Some(b'S') if word.is_any(&["SERVICE_GET_READ_LOCKS", "SERVICE_GET_WRITE_LOCKS"]) => {
                self.leaves(Leaves::GET_LOCK);
            }
            Some(b'S') if word.is("SERVICE_RELEASE_LOCKS") => self.leaves(Leaves::RELEASE_LOCK),
            Some(b'S') if word.is("SQL_CALC_FOUND_ROWS") => self.leaves(Leaves::FOUND_ROWS),
            Some(b'U' | b'D') if word.is_any(&["UPDATE", "DELETE"]) => {
                self.not_a_read(Against::Change)
            }
            Some(b'E' | b'U') if word.is_any(&["EXTRACTVALUE", "UPDATEXML"]) => {
                self.class.reads |= Reads::XPATH
            }
            Some(b'I' | b'L' | b'M' | b'B' | b'P' | b'S' | b'W')
                if crate::reading::asks_one_server(word) =>
            {
                if word.is_any(&["WSREP_LAST_SEEN_GTID", "WSREP_LAST_WRITTEN_GTID"]) {
                    self.class.reads |= Reads::WSREP_GTID;
                }
                self.only_here(Against::Server);
            }
            _ if functions && !functions::is_known(word.text) && !self.is_common_table() => {
                self.unknown_function(None, word)
            }
            _ => {}
        }
    }

    /// A word that is not before `(`.
    fn keyword(&mut self, word: Token<'_>, rest: &mut Rest, for_update: &mut bool) {
        match word.text.first().map(u8::to_ascii_uppercase) {
            Some(b'I') if word.is("INTO") => {
                self.not_a_read(Against::Into);
                // Of `1.e@x` MySQL reads `@x`.
                if self.words.is_before(b'@') || self.words.is_before_digit() {
                    self.leaves(Leaves::USER_VARIABLE);
                }
            }
            Some(b'F') if word.is("FOR") => {
                if self.peek_is("UPDATE") {
                    *for_update = true;
                    self.not_a_read(Against::Lock);
                } else if self.peek_is("SHARE") {
                    self.not_a_read(Against::Lock);
                } else if self.peek_is("CONNECTION") {
                    self.only_here(Against::Server);
                } else if self.peek_is("EXPORT") && self.class.ddl {
                    self.leaves(Leaves::FLUSH_READ_LOCK);
                }
            }
            Some(b'L') if word.is("LOCK") && self.peek_is("IN") => self.not_a_read(Against::Lock),
            Some(b'R') if word.is("READ") && self.class.ddl && self.peek_is("LOCK") => {
                self.leaves(Leaves::FLUSH_READ_LOCK);
            }
            Some(b'S') if word.is("SQL_CALC_FOUND_ROWS") => self.leaves(Leaves::FOUND_ROWS),
            Some(b'S') if word.is("SESSION_VARIABLES") => {
                self.class.reads |= Reads::SESSION_VARIABLE
            }
            Some(b'S') if word.is("SELECT") => {
                (self.class.selects, rest.functions, rest.accounts) = (true, true, false);
                // CREATE TABLE … SELECT.
                self.class.inserts |=
                    self.class.ddl || self.class.leaves.intersects(Leaves::TEMP_TABLE);
            }
            Some(b'T' | b'R') if word.is_any(&["TABLE", "RETURNING"]) => {
                self.class.selects = true;
                // INSERT … TABLE … ON DUPLICATE KEY UPDATE; not LOAD … INTO TABLE.
                rest.functions |= self.class.inserts && !rest.assigns;
            }
            Some(b'L' | b'O' | b'F') if word.is_any(&["LIMIT", "OFFSET", "FETCH"]) => {
                self.class.limits = true
            }
            Some(b'U' | b'E' | b'I' | b'M') if word.is_any(&SETS) => self.class.limits = true,
            Some(b'H') if word.is("HAVING") => self.class.groups = true,
            Some(b'S') if word.is("SET") => rest.functions = true,
            Some(b'W') if word.is("WHERE") => rest.accounts = false,
            Some(b'W') if word.is("WITH") => self.class.selects = true,
            Some(b'V') if word.is_any(&["VALUES", "VALUE"]) => rest.functions = true,
            Some(b'U' | b'D' | b'I' | b'R')
                if word.is_any(&["UPDATE", "DELETE", "INSERT", "REPLACE"]) =>
            {
                self.not_a_read(Against::Change);
            }
            Some(b'N') if word.is("NEXT") && self.peek_is("VALUE") => self.leaves(Leaves::SEQUENCE),
            Some(b'P') if word.is("PREVIOUS") && self.peek_is("VALUE") => {
                self.class.reads |= Reads::SEQUENCE
            }
            _ => {}
        }
    }
}
