//! What kind of statement this is, and what it may leave behind on the connection that it runs on.
//!
//! The first words decide; the rest is looked through once, token by token, for what may change or
//! read the state of a connection. What is not recognised is taken to change it.

mod program;
mod rest;

pub use crate::counters::CommandCounter;
pub use crate::marks::{Leaves, Reads};

use crate::lexing::Lexing;
use crate::reading::{Against, Routine};
use crate::words::{Kind, Token, Words, unquote};
use rest::{ACCOUNTS, ASSIGNS, DEFINITION, EXPRESSIONS, LOADS, LONG, Rest};
use std::borrow::Cow;

/// Class of a text, as [`class`] found it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "independent facts about one text"
)]
pub struct Class<'a> {
    /// Where it is counted; the first statement decides if there are several.
    pub command: CommandCounter,
    /// Repeating it after a failure, on any server, does no harm and gives the same kind of answer.
    pub plain_read: bool,
    /// Objection to a server that only reads, as far as the words tell; [`crate::reading`] asks it
    /// and more.
    pub against: Option<Against>,
    /// BEGIN or START TRANSACTION (not what begins implicitly under autocommit=0).
    pub begins_transaction: bool,
    /// START TRANSACTION … READ ONLY.
    pub begins_read_only: bool,
    /// COMMIT or ROLLBACK without AND CHAIN, and not ROLLBACK TO.
    pub ends_transaction: bool,
    /// COMMIT or ROLLBACK … RELEASE: the server closes the connection afterwards.
    pub releases: bool,
    /// SET.
    pub sets: bool,
    /// USE: the database. A name that is not UTF-8 leaves [`Leaves::UNKNOWN_STATE`] instead.
    pub use_db: Option<Cow<'a, str>>,
    /// Defines or changes objects or maintains them, and commits the open transaction on the
    /// server.
    pub ddl: bool,
    /// LOAD DATA LOCAL or LOAD XML LOCAL: the server will ask the client for a file.
    pub local_infile: bool,
    /// KILL.
    pub kills: bool,
    /// Behind its verb it names what makes a server select: SELECT, TABLE, WITH or RETURNING.
    pub selects: bool,
    /// Its result may have been cut, or be made of several: LIMIT, OFFSET, FETCH, UNION and the
    /// like.
    pub limits: bool,
    /// Whether the text may make one row of all rows, as `SELECT COUNT(*) FROM t` does: an
    /// aggregate of the servers' own, or HAVING. Functions of users that do so are among the
    /// unknown ones.
    pub groups: bool,
    /// INSERT, REPLACE or LOAD, also inside of another statement, or a definition with rows:
    /// `LAST_INSERT_ID()` may be another after it.
    pub inserts: bool,
    /// Things that the text may leave on the connection.
    pub leaves: Leaves,
    /// Things on the connection that the text may read.
    pub reads: Reads,
    /// More than one statement. The marks are those of all together.
    pub multi: bool,
}

impl Class<'_> {
    /// Whether it may change what other sessions see. What only concerns the session itself does
    /// not count.
    #[must_use]
    pub fn may_write(&self) -> bool {
        // MariaDB's SET STATEMENT sets nothing that stays; what counts is the statement in it.
        let sets = self.sets && self.leaves.intersects(Leaves::SET);
        let of_session =
            sets || self.use_db.is_some() || self.begins_transaction && !self.ends_transaction;
        match self.against {
            Some(Against::Verb) => {
                self.multi || !of_session || self.leaves.intersects(Leaves::UNKNOWN_FUNCTION)
            }
            Some(
                Against::Procedure
                | Against::Several
                | Against::Conditional
                | Against::Change
                | Against::Sequence,
            ) => true,
            _ => self.leaves.intersects(
                Leaves::UNKNOWN_FUNCTION
                    | Leaves::SEQUENCE
                    | Leaves::NEXTVAL
                    | Leaves::UNKNOWN_STATE,
            ),
        }
    }
}

/// Classifies. What is not recognised is [`CommandCounter::Unknown`] and leaves
/// [`Leaves::UNKNOWN_STATE`].
#[must_use]
pub fn class(sql: &[u8]) -> Class<'_> {
    classify(Words::new(sql))
}

/// As [`class`], in a session where a backslash is an ordinary character (NO_BACKSLASH_ESCAPES).
#[must_use]
pub fn class_without_escapes(sql: &[u8]) -> Class<'_> {
    classify(Words::without_escapes(sql))
}

/// Every function that is not the server's own, and every procedure, that a statement calls.
pub(crate) fn routines(words: Words<'_>) -> Vec<Routine<'_>> {
    let mut scan = Scan::of(words);
    scan.routines = Some(Vec::new());
    while scan.statement() {}
    scan.routines.unwrap_or_default()
}

pub(crate) fn classify(words: Words<'_>) -> Class<'_> {
    let mut scan = Scan::of(words);
    while scan.statement() {}
    if scan.words.is_conditional() {
        // Which of its words a server sees depends on its version.
        scan.leaves(Leaves::UNKNOWN_STATE);
        scan.class.against = Some(Against::Conditional);
    }
    let mut class = scan.class;
    class.multi = scan.count > 1;
    if class.multi {
        class.against = Some(Against::Several);
    }
    let bound = Reads::SESSION_VARIABLE.with(Reads::XPATH);
    class.plain_read = scan.plain
        && !class.multi
        && class.leaves.is_empty()
        && class.reads.without(bound).is_empty();
    class
}

impl Lexing {
    /// The class of a text.
    #[must_use]
    pub fn class(self, sql: &[u8]) -> Class<'_> {
        match self {
            Self::Unsure { .. } if self.hides(sql) => {
                let [escapes, not] = Self::EITHER;
                either(escapes.class(sql), &not.class(sql))
            }
            Self::NoEscapes | Self::Blanks { .. } | Self::Shifts(_)
                if !sql.is_ascii() || !self.escapes() =>
            {
                let class = classify(self.words(sql));
                match self.respaced(sql) {
                    Some(text) => either(class, &classify(self.words(&text))),
                    None => class,
                }
            }
            _ => class(sql),
        }
    }
}

/// Of a text that may be read in two ways: whatever it is or leaves by one of them.
fn either<'a>(one: Class<'a>, other: &Class<'_>) -> Class<'a> {
    if one == *other {
        return one;
    }
    Class {
        command: one.command,
        plain_read: false,
        against: one.against.or(other.against),
        begins_transaction: one.begins_transaction || other.begins_transaction,
        begins_read_only: one.begins_read_only && other.begins_read_only,
        ends_transaction: one.ends_transaction && other.ends_transaction,
        releases: one.releases || other.releases,
        sets: one.sets,
        use_db: one
            .use_db
            .filter(|name| other.use_db.as_ref() == Some(name)),
        ddl: one.ddl || other.ddl,
        local_infile: one.local_infile || other.local_infile,
        kills: one.kills || other.kills,
        selects: one.selects || other.selects,
        limits: one.limits || other.limits,
        groups: one.groups || other.groups,
        inserts: one.inserts || other.inserts,
        leaves: one.leaves | other.leaves | Leaves::UNKNOWN_STATE,
        reads: one.reads | other.reads,
        multi: one.multi || other.multi,
    }
}

const fn nothing<'a>() -> Class<'a> {
    Class {
        command: CommandCounter::Unknown,
        plain_read: false,
        against: Some(Against::Verb),
        begins_transaction: false,
        begins_read_only: false,
        ends_transaction: false,
        releases: false,
        sets: false,
        use_db: None,
        ddl: false,
        local_infile: false,
        kills: false,
        selects: false,
        limits: false,
        groups: false,
        inserts: false,
        leaves: Leaves::NONE,
        reads: Reads::NONE,
        multi: false,
    }
}

struct Scan<'a> {
    words: Words<'a>,
    class: Class<'a>,
    /// Statements so far.
    count: usize,
    /// Nothing was found yet that speaks against repeating it.
    plain: bool,
    /// The routines that it calls, if somebody wants to know.
    routines: Option<Vec<Routine<'a>>>,
}

/// The longest first word is shorter than this.
const VERB_MAX: usize = 16;

impl<'a> Scan<'a> {
    const fn of(words: Words<'a>) -> Self {
        Self {
            words,
            class: nothing(),
            count: 0,
            plain: false,
            routines: None,
        }
    }

    /// Notes that the statement begins as something that only reads.
    fn begins_as_read(&mut self) {
        self.plain = true;
        self.class.against = None;
    }

    /// Notes that the statement must not be repeated, nor go to a server that only reads.
    fn not_a_read(&mut self, against: Against) {
        self.plain = false;
        self.only_here(against);
    }

    /// A server that only reads would answer something else.
    fn only_here(&mut self, against: Against) {
        self.class.against.get_or_insert(against);
    }

    /// Notes that the statement calls what is not the server's own.
    fn unknown_function(&mut self, schema: Option<Token<'a>>, name: Token<'a>) {
        self.leaves(Leaves::UNKNOWN_FUNCTION);
        self.note_routine(schema, name);
    }

    fn note_routine(&mut self, schema: Option<Token<'a>>, name: Token<'a>) {
        if let Some(routines) = &mut self.routines {
            routines.push(Routine {
                schema: schema.map(|token| unquote(token.text)),
                name: unquote(name.text),
            });
        }
    }

    /// Reads one statement to its end; whether there was one.
    fn statement(&mut self) -> bool {
        let verb = loop {
            match self.words.next() {
                None => return false,
                Some(token) if token.is_sign(b';') || token.is_sign(b'(') => {}
                Some(token) => break token,
            }
        };
        self.count += 1;
        let first = self.count == 1;
        let command = self.classify(verb);
        if first {
            self.class.command = command;
        }
        true
    }

    /// The statement inside another one.
    fn inner(&mut self) {
        match self.words.next() {
            Some(token) if !token.is_sign(b';') => {
                self.classify(token);
                self.not_a_read(Against::Verb);
            }
            _ => {}
        }
    }

    fn classify(&mut self, verb: Token<'_>) -> CommandCounter {
        let mut upper = [0; VERB_MAX];
        let upper = match upper.get_mut(..verb.text.len()) {
            Some(upper) if verb.kind == Kind::Word => {
                upper.copy_from_slice(verb.text);
                upper.make_ascii_uppercase();
                &*upper
            }
            _ => &[],
        };
        self.verb(upper)
    }

    fn verb(&mut self, verb: &[u8]) -> CommandCounter {
        use CommandCounter as C;
        match verb {
            b"SELECT" => {
                self.begins_as_read();
                if self.rest(EXPRESSIONS) {
                    C::SelectForUpdate
                } else {
                    C::Select
                }
            }
            b"INSERT" => self.insert(C::Insert, DEFINITION),
            b"REPLACE" => self.insert(C::Replace, DEFINITION),
            b"UPDATE" => self.simple(C::Update, EXPRESSIONS),
            b"DELETE" => self.simple(C::Delete, EXPRESSIONS),
            b"SET" => self.set(),
            b"SHOW" => self.show(),
            b"USE" => self.use_db(),
            b"BEGIN" => self.begin(),
            b"START" => self.start(),
            b"COMMIT" => self.end_transaction(C::Commit),
            b"ROLLBACK" => self.end_transaction(C::Rollback),
            b"SAVEPOINT" => self.marked(C::Savepoint, Leaves::SAVEPOINT),
            b"RELEASE" => self.simple(C::ReleaseSavepoint, DEFINITION),
            b"WITH" | b"VALUES" | b"TABLE" => {
                self.begins_as_read();
                if verb == b"WITH" {
                    self.common_tables();
                }
                self.rest(EXPRESSIONS);
                C::Unknown
            }
            b"EXPLAIN" | b"DESC" | b"DESCRIBE" => {
                self.begins_as_read();
                self.plain = !self.peek_is("ANALYZE");
                self.rest(EXPRESSIONS);
                if verb == b"DESCRIBE" {
                    C::Describe
                } else {
                    C::Unknown
                }
            }
            b"HELP" => {
                self.begins_as_read();
                self.simple(C::Unknown, DEFINITION)
            }
            b"DO" => self.simple(C::Unknown, EXPRESSIONS),
            b"CALL" => {
                self.class.against = Some(Against::Procedure);
                self.procedure();
                self.marked(C::Call, Leaves::UNKNOWN_STATE)
            }
            b"PREPARE" => self.marked(C::Prepare, Leaves::SQL_PREPARE),
            b"EXECUTE" => {
                self.class.reads |= Reads::PREPARED;
                self.marked(C::Execute, Leaves::SQL_EXECUTE)
            }
            b"DEALLOCATE" => self.marked(C::Deallocate, Leaves::SQL_DEALLOCATE),
            b"LOCK" => {
                let command = if self.peek_is("TABLE") {
                    C::LockTable
                } else {
                    C::Unknown
                };
                self.marked(command, Leaves::LOCK_TABLES)
            }
            b"UNLOCK" => self.marked(C::UnlockTables, Leaves::UNLOCK_TABLES),
            b"BACKUP" => self.backup(),
            b"FLUSH" => self.ddl(C::Flush, DEFINITION),
            b"KILL" => {
                self.class.kills = true;
                self.simple(C::Kill, EXPRESSIONS)
            }
            b"LOAD" => self.load(),
            b"HANDLER" => {
                self.class.reads |= Reads::HANDLER;
                self.marked(C::Unknown, Leaves::HANDLER)
            }
            b"XA" => self.marked(C::Unknown, Leaves::XA),
            b"GET" => {
                self.class.reads |= Reads::WARNINGS;
                self.simple(C::Unknown, ASSIGNS)
            }
            b"CREATE" => self.create(),
            b"DROP" => self.drop(),
            b"ALTER" => {
                let command = self.second(&[("TABLE", C::AlterTable), ("VIEW", C::AlterView)]);
                self.ddl(command, ACCOUNTS)
            }
            b"TRUNCATE" => self.ddl(C::Unknown, DEFINITION),
            b"RENAME" => {
                let command = self.second(&[("TABLE", C::RenameTable)]);
                self.ddl(command, ACCOUNTS)
            }
            b"ANALYZE" => self.analyze(),
            b"OPTIMIZE" => self.ddl(C::Optimize, DEFINITION),
            b"REPAIR" | b"CHECK" | b"CACHE" | b"INSTALL" | b"UNINSTALL" | b"IMPORT" => {
                self.ddl(C::Unknown, DEFINITION)
            }
            b"GRANT" => self.ddl(C::Grant, ACCOUNTS),
            b"REVOKE" => self.ddl(C::Revoke, ACCOUNTS),
            b"RESET" => {
                let command = self.second(&[("MASTER", C::ResetMaster), ("SLAVE", C::ResetSlave)]);
                self.ddl(command, DEFINITION)
            }
            b"CHANGE" => {
                let command = self.second(&[("MASTER", C::ChangeMaster)]);
                self.ddl(command, DEFINITION)
            }
            b"PURGE" => self.simple(C::Purge, EXPRESSIONS),
            b"CHECKSUM" | b"STOP" | b"SHUTDOWN" | b"RESTART" | b"CLONE" | b"SIGNAL"
            | b"RESIGNAL" => self.simple(C::Unknown, EXPRESSIONS),
            _ => self.marked(C::Unknown, Leaves::UNKNOWN_STATE),
        }
    }

    /// MariaDB's BACKUP STAGE and BACKUP LOCK.
    fn backup(&mut self) -> CommandCounter {
        let mut words = self.words.clone();
        let (first, second) = (words.next(), words.next());
        let _behind = words.next();
        let is = |token: Option<Token<'_>>, keyword| {
            token.is_some_and(|token: Token<'_>| token.is(keyword))
        };
        let marks = if words.is_conditional() {
            // Some servers read what a comment hides from others: what gives back here may take
            // there.
            Leaves::LOCK_TABLES
        } else if is(first, "UNLOCK") || is(first, "STAGE") && is(second, "END") {
            Leaves::UNLOCK_TABLES
        } else if is(first, "LOCK") || is(first, "STAGE") {
            Leaves::LOCK_TABLES
        } else {
            Leaves::UNKNOWN_STATE
        };
        self.marked(CommandCounter::Unknown, marks)
    }

    fn leaves(&mut self, marks: Leaves) {
        self.class.leaves |= marks;
    }

    fn peek_is(&self, keyword: &str) -> bool {
        self.words.peek().is_some_and(|token| token.is(keyword))
    }

    fn take(&mut self, keyword: &str) -> bool {
        let here = self.peek_is(keyword);
        if here {
            self.words.next();
        }
        here
    }

    /// The command that the second word names.
    fn second(&self, choices: &[(&str, CommandCounter)]) -> CommandCounter {
        let Some(token) = self.words.peek() else {
            return CommandCounter::Unknown;
        };
        choices
            .iter()
            .find(|(word, _)| token.is(word))
            .map_or(CommandCounter::Unknown, |(_, command)| *command)
    }

    fn simple(&mut self, command: CommandCounter, rest: Rest) -> CommandCounter {
        self.rest(rest);
        command
    }

    fn insert(&mut self, command: CommandCounter, rest: Rest) -> CommandCounter {
        self.class.inserts = true;
        self.simple(command, rest)
    }

    fn marked(&mut self, command: CommandCounter, marks: Leaves) -> CommandCounter {
        self.leaves(marks);
        self.simple(command, EXPRESSIONS)
    }

    fn ddl(&mut self, command: CommandCounter, rest: Rest) -> CommandCounter {
        self.class.ddl = true;
        self.simple(command, rest)
    }

    fn set(&mut self) -> CommandCounter {
        self.class.sets = true;
        if self.take("STATEMENT") {
            // MariaDB: what is set holds during the statement after FOR, which is what counts.
            let mut open = 0_usize;
            while let Some(token) = self.words.peek().filter(|token| !token.is_sign(b';')) {
                self.words.next();
                if token.is_sign(b'(') {
                    open += 1;
                } else if token.is_sign(b')') {
                    open = open.saturating_sub(1);
                } else if open == 0 && token.is("FOR") {
                    self.inner();
                    return CommandCounter::Set;
                }
            }
        }
        self.leaves(Leaves::SET);
        self.simple(
            CommandCounter::Set,
            Rest {
                functions: true,
                accounts: true,
                assigns: false,
            },
        )
    }

    /// CALL: the name of the procedure.
    fn procedure(&mut self) {
        let name = |scan: &Self| {
            scan.words
                .peek()
                .filter(|token| matches!(token.kind, Kind::Word | Kind::Name))
        };
        let Some(first) = name(self) else { return };
        self.words.next();
        if !self.words.is_before(b'.') {
            self.note_routine(None, first);
        } else {
            self.words.next();
            let Some(second) = name(self) else { return };
            self.words.next();
            self.note_routine(Some(first), second);
        }
        if self.words.is_before(b'(') {
            self.leaves(Leaves::UNKNOWN_FUNCTION);
        }
    }

    /// After WITH: the names of common tables with lists of columns look like calls.
    fn common_tables(&mut self) {
        self.take("RECURSIVE");
        let named = self
            .words
            .peek()
            .is_some_and(|token| matches!(token.kind, Kind::Word | Kind::Name));
        let mut after = self.words.clone();
        after.next();
        if named && after.is_before(b'(') {
            self.words = after;
        }
    }

    fn show(&mut self) -> CommandCounter {
        self.plain = true;
        self.class.against = crate::reading::of_show(self.words.clone());
        let mut words = self.words.clone();
        let first = words.next();
        let second = words.next();
        let is =
            |token: Option<Token<'_>>, keywords: &[&str]| token.is_some_and(|t| t.is_any(keywords));
        if is(first, &["WARNINGS", "ERRORS", "COUNT"]) {
            self.class.reads |= Reads::WARNINGS;
        }
        if is(first, &["PROFILE", "PROFILES"]) {
            self.class.reads |= Reads::PROFILE;
        }
        if is(first, &["STATUS", "VARIABLES", "SESSION", "LOCAL"]) {
            self.class.reads |= Reads::SESSION_VARIABLE;
            // Not `%gtid%` and the like, which shows others besides.
            let names_it = |token: Token<'_>| {
                let name = unquote(token.text)
                    .iter()
                    .copied()
                    .filter(|byte| *byte != b'\\')
                    .collect::<Vec<_>>();
                token.kind == Kind::String && name.eq_ignore_ascii_case(b"last_gtid")
            };
            if words.take_while(|token| !token.is_sign(b';')).any(names_it) {
                self.class.reads |= Reads::LAST_GTID;
            }
        }
        let status = is(first, &["TABLE"]) && is(second, &["STATUS"]);
        // WHERE may call functions.
        self.rest(Rest {
            functions: true,
            ..ACCOUNTS
        });
        if status {
            CommandCounter::ShowTableStatus
        } else {
            CommandCounter::Show
        }
    }

    fn use_db(&mut self) -> CommandCounter {
        let name = self
            .words
            .peek()
            .filter(|t| t.is_whole() && matches!(t.kind, Kind::Word | Kind::Name));
        if let Some(token) = name {
            self.words.next();
            self.class.use_db = match unquote(token.text) {
                Cow::Borrowed(bytes) => std::str::from_utf8(bytes).ok().map(Cow::Borrowed),
                Cow::Owned(bytes) => String::from_utf8(bytes).ok().map(Cow::Owned),
            };
        }
        let alone = self.words.peek().is_none_or(|token| token.is_sign(b';'));
        if self.class.use_db.is_none() || !alone {
            self.class.use_db = None;
            self.leaves(Leaves::UNKNOWN_STATE);
        }
        self.simple(CommandCounter::Unknown, DEFINITION)
    }

    fn begin(&mut self) -> CommandCounter {
        self.take("WORK");
        if self.words.peek().is_none_or(|token| token.is_sign(b';')) {
            self.class.begins_transaction = true;
        } else {
            // MariaDB's BEGIN NOT ATOMIC, a program.
            self.leaves(Leaves::UNKNOWN_STATE);
        }
        self.simple(CommandCounter::Begin, EXPRESSIONS)
    }

    fn start(&mut self) -> CommandCounter {
        let begins = self.take("TRANSACTION");
        self.class.begins_transaction |= begins;
        let mut words = self.words.clone();
        let mut read = false;
        while begins && let Some(token) = words.next().filter(|token| !token.is_sign(b';')) {
            self.class.begins_read_only |= read && token.is("ONLY");
            read = token.is("READ");
        }
        self.rest(DEFINITION);
        if begins {
            CommandCounter::StartTransaction
        } else {
            CommandCounter::Unknown
        }
    }

    /// `[WORK] [AND [NO] CHAIN] [[NO] RELEASE]`, or `[WORK] TO [SAVEPOINT] name`.
    fn end_transaction(&mut self, command: CommandCounter) -> CommandCounter {
        self.take("WORK");
        if command == CommandCounter::Rollback && self.take("TO") {
            return self.simple(CommandCounter::RollbackSavepoint, DEFINITION);
        }
        let mut chains = false;
        if self.take("AND") {
            let no = self.take("NO");
            chains = self.take("CHAIN") && !no;
        }
        let keeps = self.take("NO");
        if self.take("RELEASE") && !keeps {
            self.class.releases = true;
        }
        if self.words.peek().is_some_and(|token| !token.is_sign(b';')) {
            self.leaves(Leaves::UNKNOWN_STATE);
        }
        self.class.ends_transaction |= !chains;
        self.class.begins_transaction |= chains;
        self.simple(command, DEFINITION)
    }

    fn load(&mut self) -> CommandCounter {
        if self
            .words
            .peek()
            .is_some_and(|token| token.is_any(&["DATA", "XML"]))
        {
            // DATA CONCURRENT FROM LOCAL
            let local = self.words.clone().take(4).any(|token| token.is("LOCAL"));
            self.class.local_infile |= local;
        } else {
            self.class.ddl = true;
        }
        self.insert(CommandCounter::Load, LOADS)
    }

    fn analyze(&mut self) -> CommandCounter {
        if self.words.clone().take(2).any(|token| token.is("TABLE")) {
            let command = self.second(&[("TABLE", CommandCounter::AnalyzeTable)]);
            return self.ddl(command, DEFINITION);
        }
        // MariaDB's ANALYZE runs the statement.
        let mut words = self.words.clone();
        let format = words.peek().is_some_and(|token| token.is("FORMAT"));
        let Some(verb) = words.nth(if format { 3 } else { 0 }) else {
            return self.simple(CommandCounter::Unknown, EXPRESSIONS);
        };
        if verb.is_any(&["INSERT", "REPLACE", "UPDATE", "DELETE"]) {
            self.class.against = Some(Against::Change);
            if verb.is_any(&["INSERT", "REPLACE"]) {
                return self.insert(CommandCounter::Unknown, DEFINITION);
            }
        } else if verb.is_any(&["SELECT", "WITH"]) {
            self.class.against = None;
        }
        self.simple(CommandCounter::Unknown, EXPRESSIONS)
    }

    fn create(&mut self) -> CommandCounter {
        use CommandCounter as C;
        let command = self.second(&[
            ("DATABASE", C::CreateDatabase),
            ("SCHEMA", C::CreateDatabase),
            ("INDEX", C::CreateIndex),
            ("TABLE", C::CreateTable),
            ("TEMPORARY", C::CreateTemporary),
            ("TRIGGER", C::CreateTrigger),
            ("USER", C::CreateUser),
            ("VIEW", C::CreateView),
        ]);
        let replaces = self.peek_is("OR");
        // [OR REPLACE] [TEMPORARY] TABLE, or anything with DEFINER and so on before the kind of
        // object.
        for token in self
            .words
            .clone()
            .take_while(|t| t.kind != Kind::Sign || !t.is_sign(b'('))
            .take(24)
        {
            if token.is("TEMPORARY") {
                self.leaves(Leaves::TEMP_TABLE);
                return self.simple(command, DEFINITION);
            }
            if token.is_any(&[
                "TABLE", "DATABASE", "SCHEMA", "INDEX", "USER", "VIEW", "SEQUENCE",
            ]) {
                if replaces && token.is_any(&["DATABASE", "SCHEMA"]) {
                    self.leaves(Leaves::DATABASE);
                }
                break;
            }
            if token.is_any(&[
                "PROCEDURE",
                "FUNCTION",
                "TRIGGER",
                "EVENT",
                "PACKAGE",
                "LIBRARY",
            ]) {
                return self.program(command);
            }
        }
        let rest = if matches!(command, C::CreateTable) {
            DEFINITION
        } else {
            ACCOUNTS
        };
        self.ddl(command, rest)
    }

    fn drop(&mut self) -> CommandCounter {
        use CommandCounter as C;
        if self.take("PREPARE") {
            return self.marked(C::Unknown, Leaves::SQL_DEALLOCATE);
        }
        if self.take("TEMPORARY") {
            return self.marked(C::Unknown, Leaves::DROP_TEMP_TABLE);
        }
        let command = self.second(&[
            ("DATABASE", C::DropDatabase),
            ("SCHEMA", C::DropDatabase),
            ("TABLE", C::DropTable),
            ("TRIGGER", C::DropTrigger),
            ("USER", C::DropUser),
            ("VIEW", C::DropView),
        ]);
        if command == C::DropDatabase {
            self.leaves(Leaves::DATABASE);
        }
        self.ddl(command, ACCOUNTS)
    }
}

/// Body of a fuzz target: any text has a class, the same every time and whatever blanks follow.
pub fn fuzz_class(data: &[u8]) {
    let found = class(data);
    assert_eq!(found, class(data));
    assert!(
        !found.plain_read || found.leaves.is_empty() && !found.multi && !found.ddl && !found.sets
    );
    assert!(!found.multi || !found.plain_read);
    // What is far from the beginning is read by shortcuts.
    let far = [b"/*".as_slice(), &[b'-'; LONG], b"*/", data].concat();
    assert_eq!(found, class(&far));
    assert_eq!(class_without_escapes(data), class_without_escapes(&far));
    crate::names(data, Lexing::Escapes, |_, _| ());
    let _ = (
        crate::tables_read(data, Lexing::Escapes, |_, _| ()),
        crate::is_volatile(data, Lexing::Escapes),
    );
    let mut end = 0;
    for range in crate::words::statements(data) {
        assert!(end <= range.start && range.start < range.end && range.end <= data.len());
        end = range.end;
    }
    let _ = crate::words::first_comment(data, Lexing::Escapes)
        .map(|range| crate::words::hints(&data[range]).count());
}
