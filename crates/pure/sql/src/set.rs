//! The grammar of SET: what a client wants changed, so that it can be done again on another
//! connection.
//!
//! <https://dev.mysql.com/doc/refman/8.4/en/set-variable.html> and the pages beside it;
//! <https://mariadb.com/kb/en/set/>. What is not certain is [`NotUnderstood`]: a guess would change
//! a session's meaning without anybody noticing. So is a backslash in a string for who does not
//! know the `sql_mode` ([`parse`]); for who does ([`parse_in`]), such a value is an expression.

use crate::words::{Kind, Token, Words, end_of_quoted, unquote};

/// The statement is not a SET, or one whose meaning is not certain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotUnderstood;

impl std::fmt::Display for NotUnderstood {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("this SET statement is not understood")
    }
}

impl std::error::Error for NotUnderstood {}

/// Whose value is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Of this session (SESSION, LOCAL, or nothing).
    Session,
    /// Of the server.
    Global,
    /// Of the server, and kept over restarts (PERSIST).
    Persist,
    /// Kept for the next start only (PERSIST_ONLY).
    PersistOnly,
    /// A user variable, `@name`.
    User,
    /// Of the next transaction only.
    NextTransaction,
}

/// The right-hand side, as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    /// DEFAULT.
    Default,
    /// A number, a string or a keyword: means the same on every connection.
    Literal(&'a [u8]),
    /// Anything else: what it means depends on the connection and the moment.
    Expression(&'a [u8]),
}

/// `name = value`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment<'a> {
    /// Whose.
    pub scope: Scope,
    /// In lower case, without `@`, `@@` and quotes; with its prefix if it is `cache.variable`.
    pub name: String,
    /// To what.
    pub value: Value<'a>,
}

/// Isolation levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "SQL's own names")]
pub enum Isolation {
    ReadUncommitted,
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

impl Isolation {
    /// As the variable `transaction_isolation` spells it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ReadUncommitted => "READ-UNCOMMITTED",
            Self::ReadCommitted => "READ-COMMITTED",
            Self::RepeatableRead => "REPEATABLE-READ",
            Self::Serializable => "SERIALIZABLE",
        }
    }
}

/// Access of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// READ ONLY.
    ReadOnly,
    /// READ WRITE.
    ReadWrite,
}

/// One part of a SET statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Setting<'a> {
    /// `name = value` in all its forms.
    Variable(Assignment<'a>),
    /// `NAMES charset [COLLATE collation]`; `None` for DEFAULT.
    Names {
        /// Lower case, without quotes.
        charset: Option<String>,
        /// Lower case, without quotes.
        collate: Option<String>,
    },
    /// `CHARACTER SET charset`; `None` for DEFAULT.
    CharacterSet(Option<String>),
    /// `[GLOBAL | SESSION] TRANSACTION characteristics`.
    Transaction {
        /// [`Scope::NextTransaction`] when none is written.
        scope: Scope,
        /// ISOLATION LEVEL, if given.
        isolation: Option<Isolation>,
        /// READ ONLY or READ WRITE, if given.
        access: Option<Access>,
    },
    /// `PASSWORD …`: changes the server, not the session.
    Password,
    /// `ROLE …`: changes what this session may do. The text after ROLE.
    Role(&'a [u8]),
    /// `DEFAULT ROLE … TO …`: changes the server, not the session.
    DefaultRole,
    /// `RESOURCE GROUP name`, for this session if no FOR follows. The text after GROUP.
    ResourceGroup(&'a [u8]),
    /// MariaDB's `STATEMENT assignments FOR statement`: they hold during that statement only.
    Statement {
        /// Settings that hold meanwhile.
        settings: Vec<Assignment<'a>>,
        /// The statement, which has a class of its own.
        statement: &'a [u8],
    },
}

/// More parts than this in one statement are not read.
const PARTS_MAX: usize = 256;

/// Reads a SET statement. One `;` may follow.
///
/// # Errors
///
/// If it is not a SET statement, or not one whose meaning is certain.
pub fn parse(sql: &[u8]) -> Result<Vec<Setting<'_>>, NotUnderstood> {
    let (settings, backslash) = read(sql, true)?;
    if backslash {
        Err(NotUnderstood)
    } else {
        Ok(settings)
    }
}

/// As [`parse`], in a session where it is known whether a backslash escapes in strings: what
/// NO_BACKSLASH_ESCAPES says, which the server tells in its status flags.
///
/// # Errors
/// If it is not a SET statement, or not one whose meaning is certain.
pub fn parse_in(sql: &[u8], escapes: bool) -> Result<Vec<Setting<'_>>, NotUnderstood> {
    read(sql, escapes).map(|(settings, _)| settings)
}

/// The settings, and whether a string had a backslash.
fn read(sql: &[u8], escapes: bool) -> Result<(Vec<Setting<'_>>, bool), NotUnderstood> {
    let words = if escapes {
        Words::new(sql)
    } else {
        Words::without_escapes(sql)
    };
    let mut grammar = Grammar {
        sql,
        words,
        escapes,
        end: 0,
        sticky: false,
        backslash: false,
    };
    let settings = grammar.statement()?;
    if grammar.words.is_conditional() {
        Err(NotUnderstood)
    } else {
        Ok((settings, grammar.backslash))
    }
}

struct Grammar<'a> {
    sql: &'a [u8],
    words: Words<'a>,
    /// A backslash escapes in strings.
    escapes: bool,
    /// Just after the last token taken.
    end: usize,
    /// GLOBAL or PERSIST was written before an earlier part. To MySQL it holds for later parts
    /// without a scope as well, to others it does not.
    sticky: bool,
    /// A string had one.
    backslash: bool,
}

/// Whose value it sets is not certain: that of this session is what the server says afterwards.
fn asked_back(setting: Setting<'_>) -> Setting<'_> {
    match setting {
        Setting::Variable(Assignment {
            scope,
            name,
            value: Value::Literal(text),
        }) => Setting::Variable(Assignment {
            scope,
            name,
            value: Value::Expression(text),
        }),
        Setting::Variable(Assignment { scope, name, .. }) => Setting::Variable(Assignment {
            scope,
            name,
            value: Value::Expression(b"DEFAULT"),
        }),
        other => other,
    }
}

impl<'a> Grammar<'a> {
    fn statement(&mut self) -> Result<Vec<Setting<'a>>, NotUnderstood> {
        self.need("SET")?;
        let alone = match self.peek() {
            Some(t) if t.is("STATEMENT") && !self.is_assignment() => Some(self.for_statement()?),
            Some(t) if t.is("PASSWORD") => {
                self.alone(false)?;
                Some(Setting::Password)
            }
            Some(t) if t.is("ROLE") && !self.is_assignment() => {
                self.next();
                Some(Setting::Role(self.alone(true)?))
            }
            Some(t) if t.is("DEFAULT") => {
                self.next();
                self.need("ROLE")?;
                self.alone(true)?;
                Some(Setting::DefaultRole)
            }
            Some(t) if t.is("RESOURCE") && !self.is_assignment() => {
                self.next();
                self.need("GROUP")?;
                Some(Setting::ResourceGroup(self.rest()?))
            }
            _ => None,
        };
        if let Some(setting) = alone {
            return Ok(vec![setting]);
        }
        let mut settings = Vec::new();
        loop {
            let setting = self.part()?;
            let transaction = matches!(setting, Setting::Transaction { .. });
            settings.push(setting);
            match self.next() {
                Some(t) if t.is_sign(b',') && !transaction && settings.len() < PARTS_MAX => {}
                Some(t) if t.is_sign(b';') && self.peek().is_none() => break,
                None => break,
                _ => return Err(NotUnderstood),
            }
        }
        // TRANSACTION stands alone.
        if settings.len() > 1
            && settings
                .iter()
                .any(|s| matches!(s, Setting::Transaction { .. }))
        {
            return Err(NotUnderstood);
        }
        Ok(settings)
    }

    fn part(&mut self) -> Result<Setting<'a>, NotUnderstood> {
        let token = self.peek().ok_or(NotUnderstood)?;
        // To MariaDB it is no variable here either.
        if token.is("PASSWORD") {
            return Err(NotUnderstood);
        }
        let plain = !self.is_assignment();
        if token.is("NAMES") && plain {
            self.next();
            return self.names();
        }
        if token.is_any(&["CHARSET", "CHARACTER", "CHAR"]) && plain {
            self.next();
            if !token.is("CHARSET") {
                self.need("SET")?;
            }
            return Ok(Setting::CharacterSet(self.charset()?));
        }
        if token.is("TRANSACTION") && plain {
            self.next();
            return self.transaction(Scope::NextTransaction);
        }
        if token.is_sign(b'@') {
            self.next();
            return self.variable_after_at(token);
        }
        let scope = plain.then(|| scope_named(token)).flatten();
        let doubtful = scope.is_none() && self.sticky;
        if let Some(scope) = scope {
            self.next();
            self.sticky = scope != Scope::Session;
            if self.peek().is_some_and(|t| t.is("TRANSACTION")) && !self.is_assignment() {
                self.next();
                return match scope {
                    Scope::Session | Scope::Global => self.transaction(scope),
                    _ => Err(NotUnderstood),
                };
            }
        }
        let name = self.system_name()?;
        let setting = self.assignment(scope.unwrap_or(Scope::Session), name)?;
        Ok(if doubtful {
            asked_back(setting)
        } else {
            setting
        })
    }

    /// `@x = …` or `@@[scope.]x = …`
    fn variable_after_at(&mut self, at: Token<'_>) -> Result<Setting<'a>, NotUnderstood> {
        let token = self.next().ok_or(NotUnderstood)?;
        if !token.is_sign(b'@') {
            if token.start != at.end() || !self.is_whole(token) || token.kind == Kind::Sign {
                return Err(NotUnderstood);
            }
            let mut name = lower(token.text)?;
            // `@a.b.c` is one name.
            while token.kind == Kind::Word
                && self
                    .peek()
                    .is_some_and(|t| t.is_sign(b'.') && t.start == self.end)
            {
                self.next();
                let part = self
                    .peek()
                    .filter(|t| t.kind == Kind::Word && t.start == self.end);
                let Some(part) = part else {
                    return Err(NotUnderstood);
                };
                self.next();
                name.push('.');
                name.push_str(&lower(part.text)?);
            }
            return self.assignment(Scope::User, name);
        }
        let token = self.peek().ok_or(NotUnderstood)?;
        let mut after = self.words.clone();
        after.next();
        let dotted = after.next().is_some_and(|t| t.is_sign(b'.'));
        if let Some(scope) = scope_named(token).filter(|_| dotted) {
            self.next();
            self.next();
            let name = self.system_name()?;
            return self.assignment(scope, name);
        }
        let name = self.system_name()?;
        if self.sticky {
            return self.assignment(Scope::Session, name).map(asked_back);
        }
        // Only these differ: without a scope, `@@x` is that of the next transaction.
        let next = [
            "transaction_isolation",
            "tx_isolation",
            "transaction_read_only",
            "tx_read_only",
        ]
        .contains(&&*name);
        self.assignment(
            if next {
                Scope::NextTransaction
            } else {
                Scope::Session
            },
            name,
        )
    }

    /// `name` or `cache.name`, quoted or not.
    fn system_name(&mut self) -> Result<String, NotUnderstood> {
        let mut name = self.name()?;
        if self.peek().is_some_and(|t| t.is_sign(b'.')) {
            self.next();
            name.push('.');
            name.push_str(&self.name()?);
        }
        Ok(name)
    }

    fn name(&mut self) -> Result<String, NotUnderstood> {
        let token = self.next().ok_or(NotUnderstood)?;
        let named = match token.kind {
            Kind::Word => !token.text[0].is_ascii_digit(),
            Kind::Name => self.is_whole(token) && token.text.len() > 2,
            _ => false,
        };
        if named {
            lower(token.text)
        } else {
            Err(NotUnderstood)
        }
    }

    fn assignment(&mut self, scope: Scope, name: String) -> Result<Setting<'a>, NotUnderstood> {
        self.equals()?;
        let value = self.value(&[])?;
        if scope == Scope::User && value == Value::Default {
            return Err(NotUnderstood);
        }
        Ok(Setting::Variable(Assignment { scope, name, value }))
    }

    /// `=` or `:=`
    fn equals(&mut self) -> Result<(), NotUnderstood> {
        let mut sign = self.next().ok_or(NotUnderstood)?;
        if sign.is_sign(b':') {
            let end = self.end;
            sign = self
                .next()
                .filter(|t| t.start == end)
                .ok_or(NotUnderstood)?;
        }
        if sign.is_sign(b'=') {
            Ok(())
        } else {
            Err(NotUnderstood)
        }
    }

    /// A value: up to `,` or `;` outside parentheses, to the end, or to one of the `stops`.
    fn value(&mut self, stops: &[&str]) -> Result<Value<'a>, NotUnderstood> {
        let first = self.peek().ok_or(NotUnderstood)?;
        let mut depth = 0usize;
        let mut count = 0usize;
        while let Some(token) = self.peek() {
            match token.kind {
                Kind::Sign => match token.text[0] {
                    b'(' => depth += 1,
                    b')' => depth = depth.checked_sub(1).ok_or(NotUnderstood)?,
                    b',' | b';' if depth == 0 => break,
                    b';' => return Err(NotUnderstood),
                    _ => {}
                },
                Kind::Word if depth == 0 && token.is_any(stops) => break,
                _ if !self.is_whole(token) => return Err(NotUnderstood),
                _ => {}
            }
            self.next();
            count += 1;
        }
        if depth != 0 || count == 0 {
            return Err(NotUnderstood);
        }
        let text = &self.sql[first.start..self.end];
        Ok(if count == 1 && first.is("DEFAULT") {
            Value::Default
        } else if is_literal(text) && !text.contains(&b'\\') {
            Value::Literal(text)
        } else {
            Value::Expression(text)
        })
    }

    fn names(&mut self) -> Result<Setting<'a>, NotUnderstood> {
        let charset = self.charset()?;
        let mut collate = None;
        if self.peek().is_some_and(|t| t.is("COLLATE")) {
            self.next();
            collate = self.charset()?;
            if charset.is_none() {
                return Err(NotUnderstood);
            }
        }
        Ok(Setting::Names { charset, collate })
    }

    /// The name of a character set or collation; `None` for DEFAULT.
    fn charset(&mut self) -> Result<Option<String>, NotUnderstood> {
        let token = self
            .next()
            .filter(|t| t.kind != Kind::Sign)
            .ok_or(NotUnderstood)?;
        if !self.is_whole(token) {
            return Err(NotUnderstood);
        }
        if token.is("DEFAULT") {
            return Ok(None);
        }
        let name = lower(token.text)?;
        let named = !name.is_empty()
            && name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        if named {
            Ok(Some(name))
        } else {
            Err(NotUnderstood)
        }
    }

    /// ISOLATION LEVEL and READ ONLY or READ WRITE, in any order, each at most once.
    fn transaction(&mut self, scope: Scope) -> Result<Setting<'a>, NotUnderstood> {
        let (mut isolation, mut access) = (None, None);
        loop {
            let token = self.next().ok_or(NotUnderstood)?;
            if token.is("ISOLATION") && isolation.is_none() {
                self.need("LEVEL")?;
                isolation = Some(self.isolation()?);
            } else if token.is("READ") && access.is_none() {
                let token = self.next().ok_or(NotUnderstood)?;
                access = Some(match () {
                    () if token.is("ONLY") => Access::ReadOnly,
                    () if token.is("WRITE") => Access::ReadWrite,
                    () => return Err(NotUnderstood),
                });
            } else {
                return Err(NotUnderstood);
            }
            if !self.peek().is_some_and(|t| t.is_sign(b',')) {
                return Ok(Setting::Transaction {
                    scope,
                    isolation,
                    access,
                });
            }
            self.next();
        }
    }

    fn isolation(&mut self) -> Result<Isolation, NotUnderstood> {
        let token = self.next().ok_or(NotUnderstood)?;
        if token.is("SERIALIZABLE") {
            return Ok(Isolation::Serializable);
        }
        let second = self.next().ok_or(NotUnderstood)?;
        match () {
            () if token.is("REPEATABLE") && second.is("READ") => Ok(Isolation::RepeatableRead),
            () if token.is("READ") && second.is("COMMITTED") => Ok(Isolation::ReadCommitted),
            () if token.is("READ") && second.is("UNCOMMITTED") => Ok(Isolation::ReadUncommitted),
            () => Err(NotUnderstood),
        }
    }

    fn for_statement(&mut self) -> Result<Setting<'a>, NotUnderstood> {
        self.need("STATEMENT")?;
        let mut settings = Vec::new();
        while settings.len() < PARTS_MAX {
            let name = self.system_name()?;
            self.equals()?;
            let value = self.value(&["FOR"])?;
            settings.push(Assignment {
                scope: Scope::Session,
                name,
                value,
            });
            match self.next() {
                Some(t) if t.is_sign(b',') => {}
                Some(t) if t.is("FOR") => {
                    return Ok(Setting::Statement {
                        settings,
                        statement: self.rest()?,
                    });
                }
                _ => return Err(NotUnderstood),
            }
        }
        Err(NotUnderstood)
    }

    /// Whether a quoted token has its closing quote.
    fn is_whole(&self, token: Token<'_>) -> bool {
        self.escapes && token.is_whole()
            || token.kind == Kind::Word
            || token.kind == Kind::Sign
            || end_of_quoted(token.text, 0, self.escapes) == Some(token.text.len())
    }

    fn peek(&self) -> Option<Token<'a>> {
        self.words.peek()
    }

    fn next(&mut self) -> Option<Token<'a>> {
        let token = self.words.next()?;
        self.end = token.end();
        self.backslash |= token.kind == Kind::String && token.text.contains(&b'\\');
        Some(token)
    }

    fn need(&mut self, keyword: &str) -> Result<(), NotUnderstood> {
        if self.next().is_some_and(|t| t.is(keyword)) {
            Ok(())
        } else {
            Err(NotUnderstood)
        }
    }

    /// Whether the next word is the name of a variable because `=`, `:=` or `.` follows it.
    fn is_assignment(&self) -> bool {
        let mut words = self.words.clone();
        words.next();
        words
            .next()
            .is_some_and(|t| t.is_sign(b'=') || t.is_sign(b':') || t.is_sign(b'.'))
    }

    /// The rest of a part that nothing may follow: to MariaDB any other part may. A comma outside
    /// of parentheses must stand between `accounts`.
    fn alone(&mut self, accounts: bool) -> Result<&'a [u8], NotUnderstood> {
        let mut words = self.words.clone();
        let mut depth = 0i32;
        while let Some(token) = words.next() {
            if token.kind != Kind::Sign {
                continue;
            }
            match token.text[0] {
                b'(' => depth += 1,
                b')' => depth -= 1,
                b',' if depth == 0 && !(accounts && is_account(&mut words)) => {
                    return Err(NotUnderstood);
                }
                _ => {}
            }
        }
        self.rest()
    }

    /// The text of what is left, which must be something, without the `;` at its end.
    fn rest(&mut self) -> Result<&'a [u8], NotUnderstood> {
        let start = self.peek().ok_or(NotUnderstood)?.start;
        while let Some(token) = self.peek() {
            if !self.is_whole(token) {
                return Err(NotUnderstood);
            }
            if token.is_sign(b';') {
                let end = self.end;
                self.next();
                return if self.peek().is_none() && end > start {
                    Ok(&self.sql[start..end])
                } else {
                    Err(NotUnderstood)
                };
            }
            self.next();
        }
        Ok(&self.sql[start..self.end])
    }
}

/// Passes `name` or `name@host`; whether it is all there is up to the next comma, the end, or who
/// it is for.
fn is_account(words: &mut Words<'_>) -> bool {
    let named = |token: Option<Token<'_>>| token.is_some_and(|token| token.kind != Kind::Sign);
    let mut whole = named(words.next());
    if words.is_before(b'@') {
        words.next();
        whole &= named(words.next());
    }
    whole
        && words.peek().is_none_or(|next| {
            next.is_sign(b',') || next.is_sign(b';') || next.is_any(&["TO", "FOR"])
        })
}

fn scope_named(token: Token<'_>) -> Option<Scope> {
    match () {
        () if token.is_any(&["SESSION", "LOCAL"]) => Some(Scope::Session),
        () if token.is("GLOBAL") => Some(Scope::Global),
        () if token.is("PERSIST") => Some(Scope::Persist),
        () if token.is("PERSIST_ONLY") => Some(Scope::PersistOnly),
        () => None,
    }
}

fn lower(text: &[u8]) -> Result<String, NotUnderstood> {
    if text.contains(&b'\\') {
        return Err(NotUnderstood);
    }
    std::str::from_utf8(&unquote(text))
        .map(str::to_lowercase)
        .map_err(|_| NotUnderstood)
}

/// A word that is a value as it stands: not a function without parentheses.
fn is_keyword_value(word: &[u8]) -> bool {
    const COMPUTED: &[&str] = &[
        "CURRENT_TIMESTAMP",
        "CURRENT_USER",
        "CURRENT_DATE",
        "CURRENT_TIME",
        "CURRENT_ROLE",
        "LOCALTIME",
        "LOCALTIMESTAMP",
        "UTC_DATE",
        "UTC_TIME",
        "UTC_TIMESTAMP",
        "SESSION_USER",
        "SYSTEM_USER",
        "USER",
        "SYSDATE",
    ];
    !COMPUTED
        .iter()
        .any(|c| word.eq_ignore_ascii_case(c.as_bytes()))
}

/// A number with or without sign, a string, a keyword, nothing else; no comment inside either.
fn is_literal(text: &[u8]) -> bool {
    let unsigned = match text {
        [b'+' | b'-', rest @ ..] => rest.trim_ascii_start(),
        _ => text,
    };
    if is_number(unsigned) {
        return true;
    }
    let mut words = Words::new(text);
    let (Some(first), second, None) = (words.next(), words.next(), words.next()) else {
        return false;
    };
    // Two dashes are a comment at the end of a text, where it was cut, and may have been two signs
    // before.
    if second.unwrap_or(first).end() != text.len() {
        return false;
    }
    match (first.kind, second) {
        (Kind::String, None) => true,
        (Kind::Word, None) => !first.text[0].is_ascii_digit() && is_keyword_value(first.text),
        // x'41', b'1', n'a', _utf8'a'
        (Kind::Word, Some(string)) => {
            string.kind == Kind::String
                && string.start == first.end()
                && (matches!(first.text, [b'x' | b'X' | b'b' | b'B' | b'n' | b'N'])
                    || first.text[0] == b'_')
        }
        _ => false,
    }
}

fn is_number(text: &[u8]) -> bool {
    let digits = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    match text {
        [b'0', b'x', hex @ ..] => return !hex.is_empty() && hex.iter().all(u8::is_ascii_hexdigit),
        [b'0', b'b', bits @ ..] => {
            return !bits.is_empty() && bits.iter().all(|b| matches!(b, b'0' | b'1'));
        }
        _ => {}
    }
    let (mantissa, exponent) = match text.iter().position(|b| matches!(b, b'e' | b'E')) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let exponent_fits = exponent.is_none_or(|e| match e {
        [b'+' | b'-', rest @ ..] => digits(rest),
        _ => digits(e),
    });
    let mantissa_fits = match mantissa.iter().position(|&b| b == b'.') {
        Some(at) => {
            let (whole, part) = (&mantissa[..at], &mantissa[at + 1..]);
            (digits(whole) && part.is_empty())
                || (whole.is_empty() || digits(whole)) && digits(part)
        }
        None => digits(mantissa),
    };
    exponent_fits && mantissa_fits
}

/// Body of a fuzz target: what is understood is a SET to the classifier as well, and its literals
/// mean the same when they are written into a statement of our own.
pub fn fuzz_set(data: &[u8]) {
    let _total = (parse_in(data, true), parse_in(data, false));
    let Ok(settings) = parse(data) else { return };
    assert!(crate::class::class(data).sets);
    for setting in &settings {
        let Setting::Variable(Assignment {
            scope,
            name,
            value: Value::Literal(text),
        }) = setting
        else {
            continue;
        };
        if *scope == Scope::User || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
            continue;
        }
        let again = [b"SET SESSION `", name.as_bytes(), b"` = ", *text].concat();
        let found = parse(&again).expect("a literal stands alone");
        let wanted = Assignment {
            scope: Scope::Session,
            name: name.clone(),
            value: Value::Literal(text),
        };
        assert_eq!(found, [Setting::Variable(wanted)]);
    }
}

#[cfg(test)]
mod tests;
