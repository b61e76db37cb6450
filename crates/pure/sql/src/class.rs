//! What kind of statement this is, and what it may leave behind on the connection that it runs on.
//!
//! The first words decide; the rest is looked through once, token by token, for what may change or read the state
//! of a connection. What is not recognised is taken to change it.

pub use crate::counters::CommandCounter;
pub use crate::marks::{Leaves, Reads};

use crate::functions;
use crate::words::{Kind, Token, Words, unquote};
use std::borrow::Cow;

/// What [`class`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "independent facts about one text")]
pub struct Class<'a> {
    /// Where it is counted; the first statement decides if there are several.
    pub command: CommandCounter,
    /// Repeating it after a failure, on any server, does no harm and gives the same kind of answer.
    pub plain_read: bool,
    /// BEGIN or START TRANSACTION (not what begins implicitly under autocommit=0).
    pub begins_transaction: bool,
    /// COMMIT or ROLLBACK without AND CHAIN, and not ROLLBACK TO.
    pub ends_transaction: bool,
    /// COMMIT or ROLLBACK … RELEASE: the server closes the connection afterwards.
    pub releases: bool,
    /// SET.
    pub sets: bool,
    /// USE: the database. A name that is not UTF-8 leaves [`Leaves::UNKNOWN_STATE`] instead.
    pub use_db: Option<Cow<'a, str>>,
    /// Defines or changes objects or maintains them, and commits the open transaction on the server.
    pub ddl: bool,
    /// LOAD DATA LOCAL or LOAD XML LOCAL: the server will ask the client for a file.
    pub local_infile: bool,
    /// KILL.
    pub kills: bool,
    /// What it may leave on the connection.
    pub leaves: Leaves,
    /// What it may read of what is on the connection.
    pub reads: Reads,
    /// More than one statement. The marks are those of all together.
    pub multi: bool,
}

/// Classifies. What is not recognised is [`CommandCounter::Unknown`] and leaves [`Leaves::UNKNOWN_STATE`].
#[must_use]
pub fn class(sql: &[u8]) -> Class<'_> {
    classify(Words::new(sql))
}

/// As [`class`], in a session where a backslash is an ordinary character (NO_BACKSLASH_ESCAPES).
#[must_use]
pub fn class_without_escapes(sql: &[u8]) -> Class<'_> {
    classify(Words::without_escapes(sql))
}

fn classify(words: Words<'_>) -> Class<'_> {
    let mut scan = Scan {
        words,
        class: Class {
            command: CommandCounter::Unknown,
            plain_read: false,
            begins_transaction: false,
            ends_transaction: false,
            releases: false,
            sets: false,
            use_db: None,
            ddl: false,
            local_infile: false,
            kills: false,
            leaves: Leaves::NONE,
            reads: Reads::NONE,
            multi: false,
        },
        count: 0,
        plain: false,
    };
    while scan.statement() {}
    if scan.words.is_conditional() {
        // Which of its words a server sees depends on its version.
        scan.leaves(Leaves::UNKNOWN_STATE);
    }
    let mut class = scan.class;
    class.multi = scan.count > 1;
    let bound = Reads::SESSION_VARIABLE;
    class.plain_read = scan.plain && !class.multi && class.leaves.is_empty() && class.reads.without(bound).is_empty();
    class
}

/// What the words after the first ones are looked at for.
#[derive(Clone, Copy)]
struct Rest {
    /// `name(` calls a function.
    functions: bool,
    /// `x@y` names an account.
    accounts: bool,
    /// A user variable that is named is set.
    assigns: bool,
}

const EXPRESSIONS: Rest = Rest { functions: true, accounts: false, assigns: false };
/// Names of tables and columns come first, expressions after VALUES, SET or SELECT.
const DEFINITION: Rest = Rest { functions: false, accounts: false, assigns: false };
const ACCOUNTS: Rest = Rest { functions: false, accounts: true, assigns: false };
const ASSIGNS: Rest = Rest { functions: true, accounts: false, assigns: true };

struct Scan<'a> {
    words: Words<'a>,
    class: Class<'a>,
    /// Statements so far.
    count: usize,
    /// Nothing was found yet that speaks against repeating it.
    plain: bool,
}

/// The longest first word is shorter than this.
const VERB_MAX: usize = 16;

impl<'a> Scan<'a> {
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
                self.plain = false;
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
                self.plain = true;
                if self.rest(EXPRESSIONS) { C::SelectForUpdate } else { C::Select }
            }
            b"INSERT" => self.simple(C::Insert, DEFINITION),
            b"REPLACE" => self.simple(C::Replace, DEFINITION),
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
                self.plain = true;
                self.rest(EXPRESSIONS);
                C::Unknown
            }
            b"EXPLAIN" | b"DESC" | b"DESCRIBE" => {
                self.plain = !self.peek_is("ANALYZE");
                self.rest(EXPRESSIONS);
                if verb == b"DESCRIBE" { C::Describe } else { C::Unknown }
            }
            b"HELP" => {
                self.plain = true;
                self.simple(C::Unknown, DEFINITION)
            }
            b"DO" => self.simple(C::Unknown, EXPRESSIONS),
            b"CALL" => self.marked(C::Call, Leaves::UNKNOWN_STATE),
            b"PREPARE" => self.marked(C::Prepare, Leaves::SQL_PREPARE),
            b"EXECUTE" => {
                self.class.reads |= Reads::PREPARED;
                self.marked(C::Execute, Leaves::SQL_EXECUTE)
            }
            b"DEALLOCATE" => self.marked(C::Deallocate, Leaves::SQL_DEALLOCATE),
            b"LOCK" => {
                let command = if self.peek_is("TABLE") { C::LockTable } else { C::Unknown };
                self.marked(command, Leaves::LOCK_TABLES)
            }
            b"UNLOCK" => self.marked(C::UnlockTables, Leaves::UNLOCK_TABLES),
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
            b"REPAIR" | b"CHECK" | b"CACHE" | b"INSTALL" | b"UNINSTALL" | b"IMPORT" => self.ddl(C::Unknown, DEFINITION),
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
            b"CHECKSUM" | b"STOP" | b"SHUTDOWN" | b"RESTART" | b"CLONE" | b"SIGNAL" | b"RESIGNAL" => {
                self.simple(C::Unknown, EXPRESSIONS)
            }
            _ => self.marked(C::Unknown, Leaves::UNKNOWN_STATE),
        }
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
        let Some(token) = self.words.peek() else { return CommandCounter::Unknown };
        choices.iter().find(|(word, _)| token.is(word)).map_or(CommandCounter::Unknown, |(_, command)| *command)
    }

    fn simple(&mut self, command: CommandCounter, rest: Rest) -> CommandCounter {
        self.rest(rest);
        command
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
            loop {
                match self.words.peek() {
                    Some(token) if token.is("FOR") => {
                        self.words.next();
                        self.inner();
                        return CommandCounter::Set;
                    }
                    Some(token) if !token.is_sign(b';') => self.words.next(),
                    _ => break,
                };
            }
        }
        self.leaves(Leaves::SET);
        self.simple(CommandCounter::Set, Rest { functions: true, accounts: true, assigns: false })
    }

    fn show(&mut self) -> CommandCounter {
        self.plain = true;
        let mut words = self.words.clone();
        let first = words.next();
        let second = words.next();
        let is = |token: Option<Token<'_>>, keywords: &[&str]| token.is_some_and(|t| t.is_any(keywords));
        if is(first, &["WARNINGS", "ERRORS", "COUNT"]) {
            self.class.reads |= Reads::WARNINGS;
        }
        if is(first, &["PROFILE", "PROFILES"]) {
            self.class.reads |= Reads::PROFILE;
        }
        if is(first, &["STATUS", "VARIABLES", "SESSION", "LOCAL"]) {
            self.class.reads |= Reads::SESSION_VARIABLE;
        }
        let status = is(first, &["TABLE"]) && is(second, &["STATUS"]);
        self.rest(ACCOUNTS);
        if status { CommandCounter::ShowTableStatus } else { CommandCounter::Show }
    }

    fn use_db(&mut self) -> CommandCounter {
        let name = self.words.peek().filter(|t| t.is_whole() && matches!(t.kind, Kind::Word | Kind::Name));
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
        self.rest(DEFINITION);
        if begins { CommandCounter::StartTransaction } else { CommandCounter::Unknown }
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
        if self.words.peek().is_some_and(|token| token.is_any(&["DATA", "XML"])) {
            let local = self.words.clone().take(3).any(|token| token.is("LOCAL"));
            self.class.local_infile |= local;
        } else {
            self.class.ddl = true;
        }
        self.simple(CommandCounter::Load, ASSIGNS)
    }

    fn analyze(&mut self) -> CommandCounter {
        if self.words.clone().take(2).any(|token| token.is("TABLE")) {
            let command = self.second(&[("TABLE", CommandCounter::AnalyzeTable)]);
            return self.ddl(command, DEFINITION);
        }
        // MariaDB's ANALYZE runs the statement.
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
        // [OR REPLACE] [TEMPORARY] TABLE, or anything with DEFINER and so on before the kind of object.
        for token in self.words.clone().take_while(|t| t.kind != Kind::Sign || !t.is_sign(b'(')).take(24) {
            if token.is("TEMPORARY") {
                self.leaves(Leaves::TEMP_TABLE);
                return self.simple(command, DEFINITION);
            }
            if token.is_any(&["TABLE", "DATABASE", "SCHEMA", "INDEX", "USER", "VIEW", "SEQUENCE"]) {
                break;
            }
            if token.is_any(&["PROCEDURE", "FUNCTION", "TRIGGER", "EVENT", "PACKAGE"]) {
                return self.program(command);
            }
        }
        let rest = if matches!(command, C::CreateTable) { DEFINITION } else { ACCOUNTS };
        self.ddl(command, rest)
    }

    /// Defines a stored program: its body is not run now. With BEGIN all is body up to the last END.
    fn program(&mut self, command: CommandCounter) -> CommandCounter {
        self.class.ddl = true;
        let mut begun = false;
        let (mut last, mut before) = (None, None);
        loop {
            let mark = self.words.clone();
            let Some(token) = self.words.next() else { break };
            if token.is_sign(b';') {
                if !begun {
                    self.words = mark;
                    self.words.next();
                    return command;
                }
                continue;
            }
            begun |= token.is("BEGIN");
            before = last.replace(token);
        }
        let ends = |token: Option<Token<'_>>| token.is_some_and(|t| t.is("END"));
        if begun && !ends(last) && !ends(before) {
            self.count += 1;
            self.leaves(Leaves::UNKNOWN_STATE);
        }
        command
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

    /// Looks through what is left of this statement; whether it locks the rows that it reads for an update.
    fn rest(&mut self, mut rest: Rest) -> bool {
        let mut for_update = false;
        let mut before: Option<Token<'a>> = None;
        while let Some(token) = self.words.next() {
            let named = || before.is_some_and(|b| b.is_any(&["AS", "WITH", "RECURSIVE"]));
            match token.kind {
                Kind::Sign if token.text == b";" => break,
                Kind::Sign if token.text == b"@" => {
                    let adjacent = before.filter(|b| b.end() == token.start && b.kind != Kind::Sign);
                    if !(rest.accounts && adjacent.is_some()) {
                        self.variable(rest);
                    }
                }
                Kind::Word if token.text[0].is_ascii_digit() => {}
                Kind::Word if self.words.is_before(b'(') => {
                    let qualified = before.is_some_and(|b| b.is_sign(b'.'));
                    self.call(token, qualified, rest.functions && !named());
                    rest.functions |= token.is_any(&["VALUES", "VALUE", "ROW"]);
                }
                Kind::Word => self.keyword(token, &mut rest, &mut for_update),
                Kind::Name if rest.functions && self.words.is_before(b'(') && !named() => {
                    self.leaves(Leaves::UNKNOWN_FUNCTION);
                }
                _ => {}
            }
            before = Some(token);
        }
        for_update
    }

    /// After `@`: a user variable, or after `@@` a variable of the server.
    fn variable(&mut self, rest: Rest) {
        let Some(name) = self.words.peek() else { return };
        if !name.is_sign(b'@') {
            self.class.reads |= Reads::USER_VARIABLE;
            if name.kind != Kind::Sign {
                self.words.next();
            }
            let mut after = self.words.clone();
            let sign = after.next();
            let assigned = sign.is_some_and(|t| t.is_sign(b':')) || self.class.sets && sign.is_some_and(|t| t.is_sign(b'='));
            if assigned || rest.assigns {
                self.leaves(Leaves::USER_VARIABLE);
            }
            return;
        }
        self.words.next();
        let Some(mut name) = self.words.peek().filter(|t| t.kind != Kind::Sign) else { return };
        self.words.next();
        if self.words.is_before(b'.') {
            if name.is("GLOBAL") {
                return;
            }
            self.words.next();
            let Some(inner) = self.words.peek().filter(|t| t.kind != Kind::Sign) else { return };
            self.words.next();
            name = inner;
        }
        let plain = unquote(name.text);
        let is = |names: &[&str]| names.iter().any(|n| plain.eq_ignore_ascii_case(n.as_bytes()));
        self.class.reads |= if is(&["warning_count", "error_count"]) {
            Reads::WARNINGS
        } else if is(&["last_insert_id", "identity", "insert_id"]) {
            Reads::LAST_INSERT_ID
        } else if is(&["pseudo_thread_id"]) {
            Reads::CONNECTION_ID
        } else {
            Reads::SESSION_VARIABLE
        };
    }

    /// `word(`.
    fn call(&mut self, word: Token<'_>, qualified: bool, functions: bool) {
        if qualified {
            if functions {
                self.leaves(Leaves::UNKNOWN_FUNCTION);
            }
            return;
        }
        match word.text.first().map(u8::to_ascii_uppercase) {
            Some(b'G') if word.is("GET_LOCK") => self.leaves(Leaves::GET_LOCK),
            Some(b'R') if word.is_any(&["RELEASE_LOCK", "RELEASE_ALL_LOCKS"]) => self.leaves(Leaves::RELEASE_LOCK),
            Some(b'R') if word.is("ROW_COUNT") => self.class.reads |= Reads::ROW_COUNT,
            Some(b'F') if word.is("FOUND_ROWS") => self.class.reads |= Reads::FOUND_ROWS,
            Some(b'C') if word.is("CONNECTION_ID") => self.class.reads |= Reads::CONNECTION_ID,
            Some(b'P') if word.is("PS_CURRENT_THREAD_ID") => self.class.reads |= Reads::CONNECTION_ID,
            Some(b'L') if word.is("LAST_INSERT_ID") => {
                self.class.reads |= Reads::LAST_INSERT_ID;
                let mut after = self.words.clone();
                after.next();
                if !after.next().is_some_and(|t| t.is_sign(b')')) {
                    self.leaves(Leaves::LAST_INSERT_ID);
                }
            }
            Some(b'L') if word.is("LASTVAL") => self.class.reads |= Reads::SEQUENCE,
            Some(b'N' | b'S') if word.is_any(&["NEXTVAL", "SETVAL"]) => self.leaves(Leaves::SEQUENCE),
            Some(b'S') if word.is_any(&["SERVICE_GET_READ_LOCKS", "SERVICE_GET_WRITE_LOCKS"]) => {
                self.leaves(Leaves::GET_LOCK);
            }
            Some(b'S') if word.is("SERVICE_RELEASE_LOCKS") => self.leaves(Leaves::RELEASE_LOCK),
            _ if functions && !functions::is_known(word.text) => self.leaves(Leaves::UNKNOWN_FUNCTION),
            _ => {}
        }
    }

    /// A word that is not before `(`.
    fn keyword(&mut self, word: Token<'_>, rest: &mut Rest, for_update: &mut bool) {
        match word.text.first().map(u8::to_ascii_uppercase) {
            Some(b'I') if word.is("INTO") => {
                self.plain = false;
                if self.words.is_before(b'@') {
                    self.leaves(Leaves::USER_VARIABLE);
                }
            }
            Some(b'F') if word.is("FOR") => {
                if self.peek_is("UPDATE") {
                    *for_update = true;
                    self.plain = false;
                } else if self.peek_is("SHARE") {
                    self.plain = false;
                } else if self.peek_is("EXPORT") && self.class.ddl {
                    self.leaves(Leaves::FLUSH_READ_LOCK);
                }
            }
            Some(b'L') if word.is("LOCK") && self.peek_is("IN") => self.plain = false,
            Some(b'R') if word.is("READ") && self.class.ddl && self.peek_is("LOCK") => {
                self.leaves(Leaves::FLUSH_READ_LOCK);
            }
            Some(b'S') if word.is("SQL_CALC_FOUND_ROWS") => self.leaves(Leaves::FOUND_ROWS),
            Some(b'S') if word.is_any(&["SELECT", "SET"]) => rest.functions = true,
            Some(b'V') if word.is_any(&["VALUES", "VALUE"]) => rest.functions = true,
            Some(b'U' | b'D' | b'I' | b'R') if word.is_any(&["UPDATE", "DELETE", "INSERT", "REPLACE"]) => self.plain = false,
            Some(b'N') if word.is("NEXT") && self.peek_is("VALUE") => self.leaves(Leaves::SEQUENCE),
            Some(b'P') if word.is("PREVIOUS") && self.peek_is("VALUE") => self.class.reads |= Reads::SEQUENCE,
            _ => {}
        }
    }
}

/// Body of a fuzz target: any text has a class, the same every time and whatever blanks follow.
pub fn fuzz_class(data: &[u8]) {
    let found = class(data);
    assert_eq!(found, class(data));
    assert!(!found.plain_read || found.leaves.is_empty() && !found.multi && !found.ddl && !found.sets);
    assert!(!found.multi || !found.plain_read);
    let _ = class_without_escapes(data);
    crate::names(data, |_, _| ());
    let _ = (crate::tables_read(data, |_, _| ()), crate::is_volatile(data));
    let mut end = 0;
    for range in crate::words::statements(data) {
        assert!(end <= range.start && range.start < range.end && range.end <= data.len());
        end = range.end;
    }
    let _ = crate::words::first_comment(data).map(|range| crate::words::hints(&data[range]).count());
}
