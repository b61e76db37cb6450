//! Prepared statements of this core: the same text of the same user in the same schema is one
//! statement, whoever prepared it.

use crate::session::state::{Meant, State};
use hashbrown::HashTable;
use sql::{Class, DigestOptions, Lexing};
use std::cell::{Cell, OnceCell, RefCell};
use std::hash::{BuildHasher, DefaultHasher, Hasher};
use std::ops::Deref;
use std::rc::Rc;

/// A statement that clients have prepared.
#[derive(Debug)]
pub struct Prepared {
    /// Unique on this core.
    pub number: u64,
    /// Whose it is: connections of a user serve that user only.
    pub user: Rc<str>,
    /// The schema that was current when it was prepared; empty for none.
    pub schema: Rc<str>,
    /// How its text is read: what its session had set when it was prepared.
    pub(crate) meant: Meant,
    /// Text.
    pub sql: Box<[u8]>,
    /// Text that servers prepare for the statement, if it asks for its session's own number.
    own: Option<Box<[u8]>>,
    /// Parameters.
    pub params: Cell<u16>,
    /// Columns of its result; 0 when it has none.
    pub columns: Cell<u16>,
    /// Clients that may execute it.
    clients: Cell<u32>,
    /// Connections to servers that know it.
    servers: Cell<u32>,
    /// When it was last prepared, in prepares of this core.
    used: Cell<u64>,
    /// No longer remembered: servers need not know it either.
    forgotten: Cell<bool>,
    /// Class of the statement's text, as it was read first, by which lexing.
    class: OnceCell<(Lexing, Class<'static>)>,
    /// As it was digested last.
    digest: RefCell<Option<Digested>>,
}

/// Longer digests are made anew each time.
const DIGEST_LEN_MAX: usize = 4 << 10;

/// A digest, and what it was made by.
#[derive(Debug)]
struct Digested {
    by: DigestOptions,
    hash: u64,
    text: Box<[u8]>,
}

impl Prepared {
    /// Whether it would mean the same if its session prepared it now.
    #[must_use]
    pub fn means_as_now(&self, state: &State) -> bool {
        self.meant.is_of(state)
    }

    /// Its texts and what decides how they are read, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.sql.len() + self.own.as_deref().map_or(0, <[u8]>::len) + self.meant.bytes()
    }

    /// Returns the class of the statement's text. The text is read again only where it is read
    /// otherwise than the first time.
    #[must_use]
    pub fn class(&self, lexing: Lexing) -> Class<'_> {
        if let Some((read, class)) = self.class.get()
            && *read == lexing
        {
            return class.clone();
        }
        let class = lexing.class(&self.sql);
        if class.use_db.is_none() {
            let owned = Class {
                use_db: None,
                ..class.clone()
            };
            let _first = self.class.set((lexing, owned));
        }
        class
    }

    /// Writes its digest, and returns the hash, as [`sql::digest`].
    pub fn digest(&self, options: &DigestOptions, digest: &mut Vec<u8>) -> u64 {
        if let Some(known) = &*self.digest.borrow()
            && known.by == *options
        {
            digest.clear();
            digest.extend_from_slice(&known.text);
            return known.hash;
        }
        let hash = sql::digest(&self.sql, options, digest);
        if digest.len() <= DIGEST_LEN_MAX {
            self.digest.replace(Some(Digested {
                by: options.clone(),
                hash,
                text: digest.as_slice().into(),
            }));
        }
        hash
    }

    /// Returns the text that servers prepare in place of the statement's own, if that asks for its
    /// session's own number.
    #[must_use]
    pub fn own(&self) -> Option<&[u8]> {
        self.own.as_deref()
    }

    /// The text that servers prepare.
    #[must_use]
    pub fn behind(&self) -> &[u8] {
        self.own.as_deref().unwrap_or(&self.sql)
    }

    /// Clients that may execute it, and connections that know it.
    #[must_use]
    pub fn counts(&self) -> (u32, u32) {
        (self.clients.get(), self.servers.get())
    }
}

/// A client's right to execute a statement; while there is one, the statement is not forgotten.
#[derive(Debug)]
pub struct Interest(Rc<Prepared>);

impl Interest {
    /// One more client.
    #[must_use]
    pub fn new(statement: Rc<Prepared>) -> Self {
        statement.clients.set(statement.clients.get() + 1);
        statement.forgotten.set(false);
        Self(statement)
    }
}

impl Deref for Interest {
    type Target = Rc<Prepared>;

    fn deref(&self) -> &Rc<Prepared> {
        &self.0
    }
}

impl Drop for Interest {
    fn drop(&mut self) {
        self.0.clients.set(self.0.clients.get() - 1);
    }
}

/// Limits of what a core remembers of statements, besides those that clients have.
#[derive(Debug, Clone, Copy)]
pub struct Remembered {
    /// `mysql-max_stmts_cache`.
    pub statements: usize,
    /// `mysql-stmts_cache_max_MB`, in bytes.
    pub bytes: usize,
}

/// All statements of a core: those that a client may execute, and the latest of those that nobody
/// does.
#[derive(Debug, Default)]
pub struct Statements {
    last: Cell<u64>,
    hashing: foldhash::fast::RandomState,
    known: RefCell<Texts>,
    /// Forgetting is tried at this length, and at so many bytes; nobody looks through all of them
    /// for each new one.
    next_look: Cell<usize>,
    next_bytes: Cell<usize>,
}

/// Statements by hash, and what they take.
#[derive(Debug, Default)]
struct Texts {
    all: HashTable<(u64, Rc<Prepared>)>,
    bytes: usize,
}

/// Bytes that a statement takes besides its text.
const STATEMENT_BYTES: usize = size_of::<Prepared>() + 2 * size_of::<(u64, Rc<Prepared>)>() + 32;

fn bytes_of(statement: &Prepared) -> usize {
    // The digest is no longer than the text.
    let digest = statement.sql.len().min(DIGEST_LEN_MAX);
    STATEMENT_BYTES + statement.bytes() + digest
}

impl Statements {
    /// The statement of this text of this user in this state: its schema, and what decides how
    /// servers read a text. More than `most` are kept only as far as clients have them.
    pub fn intern(
        &self,
        user: &Rc<str>,
        state: &State,
        sql: &[u8],
        most: Remembered,
    ) -> Rc<Prepared> {
        self.intern_own(user, state, (sql, None), most)
    }

    /// Returns the statement of a text with what servers prepare for it, which is one session's: it
    /// has its number in it.
    pub fn intern_own(
        &self,
        user: &Rc<str>,
        state: &State,
        (sql, own): (&[u8], Option<Box<[u8]>>),
        most: Remembered,
    ) -> Rc<Prepared> {
        let schema = &state.schema;
        let meant = Meant::of(state, sql);
        let mut context = Vec::with_capacity(user.len() + schema.len() + 16);
        context.extend_from_slice(user.as_bytes());
        context.push(0);
        context.extend_from_slice(schema.as_bytes());
        context.push(0);
        meant.write(&mut context);
        let mut hasher = self.hashing.build_hasher();
        hasher.write(&context);
        hasher.write(own.as_deref().unwrap_or(sql));
        let hash = hasher.finish();
        self.last.set(self.last.get() + 1);
        let now = self.last.get();
        let mut known = self.known.borrow_mut();
        let is_it = |(of, it): &(u64, Rc<Prepared>)| {
            *of == hash
                && *it.sql == *sql
                && it.own == own
                && it.user == *user
                && it.schema == *schema
                && it.meant == meant
        };
        if let Some((_, statement)) = known.all.find(hash, is_it) {
            statement.used.set(now);
            return statement.clone();
        }
        let statement = Rc::new(Prepared {
            number: now,
            user: user.clone(),
            schema: schema.clone(),
            meant,
            sql: sql.into(),
            own,
            params: Cell::new(0),
            columns: Cell::new(0),
            clients: Cell::new(0),
            servers: Cell::new(0),
            used: Cell::new(now),
            forgotten: Cell::new(false),
            class: OnceCell::new(),
            digest: RefCell::new(None),
        });
        let bytes = bytes_of(&statement);
        let too_many =
            known.all.len() >= most.statements.max(1) && known.all.len() >= self.next_look.get();
        let too_much = known.bytes + bytes > most.bytes && known.bytes >= self.next_bytes.get();
        if too_many || too_much {
            known.forget(Remembered {
                bytes: most.bytes.saturating_sub(bytes),
                ..most
            });
            // An eighth more before the next look, be it that clients have them all.
            let (len, used) = (known.all.len(), known.bytes);
            self.next_look.set(if len < most.statements {
                0
            } else {
                len + (len / 8).max(1)
            });
            self.next_bytes.set(if used + bytes <= most.bytes {
                0
            } else {
                used + used / 8
            });
        }
        known.bytes += bytes;
        known
            .all
            .insert_unique(hash, (hash, statement.clone()), |(hash, _)| *hash);
        statement
    }

    /// Another text for one execution of a statement, as its session meant it. Nobody remembers it,
    /// and a server that knows it forgets it with the next that is prepared there.
    pub fn once(&self, statement: &Prepared, sql: &[u8]) -> Rc<Prepared> {
        self.last.set(self.last.get() + 1);
        Rc::new(Prepared {
            number: self.last.get(),
            user: statement.user.clone(),
            schema: statement.schema.clone(),
            meant: statement.meant.clone(),
            sql: sql.into(),
            own: None,
            params: Cell::new(statement.params.get()),
            columns: Cell::new(statement.columns.get()),
            clients: Cell::new(0),
            servers: Cell::new(0),
            used: Cell::new(self.last.get()),
            forgotten: Cell::new(true),
            class: OnceCell::new(),
            digest: RefCell::new(None),
        })
    }

    /// Distinct statements that are remembered.
    #[must_use]
    pub fn len(&self) -> usize {
        self.known.borrow().all.len()
    }

    /// Returns the bytes that all remembered statements take, nearly.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.known.borrow().bytes
    }

    /// None?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.known.borrow().all.is_empty()
    }

    /// How many some client has, and how many some connection knows.
    #[must_use]
    pub fn in_use(&self) -> (u64, u64) {
        self.known
            .borrow()
            .all
            .iter()
            .fold((0, 0), |(clients, servers), (_, statement)| {
                let (by_clients, on_servers) = statement.counts();
                (
                    clients + u64::from(by_clients > 0),
                    servers + u64::from(on_servers > 0),
                )
            })
    }

    /// All of them, for the statistics.
    #[must_use]
    pub fn all(&self) -> Vec<Rc<Prepared>> {
        self.known
            .borrow()
            .all
            .iter()
            .map(|(_, statement)| statement.clone())
            .collect()
    }
}

impl Texts {
    /// Forgets what no client has, longest unused first, until an eighth of `most` is free.
    fn forget(&mut self, most: Remembered) {
        let keep = |most: usize| most - most.div_ceil(8);
        let has_room =
            |len: usize, bytes: usize| len <= keep(most.statements) && bytes <= keep(most.bytes);
        let unused = self.all.iter().filter(|(_, it)| it.clients.get() == 0);
        let mut unused: Vec<_> = unused
            .map(|(_, it)| (it.used.get(), bytes_of(it)))
            .collect();
        unused.sort_unstable();
        let (mut len, mut bytes, mut last) = (self.all.len(), self.bytes, 0);
        for (used, of_it) in unused {
            if has_room(len, bytes) {
                break;
            }
            (len, bytes, last) = (len - 1, bytes - of_it, used);
        }
        self.all.retain(|(_, it)| {
            let goes = it.clients.get() == 0 && it.used.get() <= last;
            it.forgotten.set(goes);
            !goes
        });
        self.bytes = bytes;
    }
}

/// A statement that a connection knows.
#[derive(Debug)]
pub(crate) struct Known(Rc<Prepared>);

impl Known {
    pub(crate) fn new(statement: &Rc<Prepared>) -> Self {
        statement.servers.set(statement.servers.get() + 1);
        Self(statement.clone())
    }

    /// Nobody has it any more: it need not be known.
    pub(crate) fn is_forgotten(&self) -> bool {
        self.0.forgotten.get()
    }
}

impl Deref for Known {
    type Target = Rc<Prepared>;

    fn deref(&self) -> &Rc<Prepared> {
        &self.0
    }
}

impl Drop for Known {
    fn drop(&mut self) {
        self.0.servers.set(self.0.servers.get() - 1);
    }
}

/// Bindings of a client to a statement so far: the kinds of its parameters in each execution, in
/// order, of which only what they come to is kept. From 8.0.22 on MySQL reads a statement by the
/// types of an execution, and goes on so for later ones whose types fit (`DOUBLE` fits integers, an
/// integer fits strings): what an execution means depends on those before it, which must be nobody
/// else's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bindings {
    /// Of a statement that is executed for the first time, as now.
    alone: u64,
    /// Up to the execution before, and up to this one.
    before: u64,
    now: u64,
}

impl Bindings {
    /// Nothing was bound: there are no parameters, or they are the server's business each time.
    pub const NONE: Self = Self {
        alone: 0,
        before: 0,
        now: 0,
    };

    /// Behind these an execution with parameters of these kinds, one after another.
    #[must_use]
    pub fn then(self, kinds: &[u8]) -> Self {
        let alone = after(0, kinds);
        let now = if self.alone == alone {
            self.now
        } else {
            after(self.now, kinds)
        };
        Self {
            alone,
            before: self.now,
            now,
        }
    }

    /// Returns the bindings after the same kinds once more.
    #[must_use]
    pub const fn again(self) -> Self {
        Self {
            before: self.now,
            ..self
        }
    }

    /// As if nothing had been bound before: for what is executed on a connection of somebody else.
    #[must_use]
    pub const fn alone(self) -> Self {
        Self {
            alone: self.alone,
            before: self.alone,
            now: self.alone,
        }
    }
}

fn after(before: u64, kinds: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write_u64(before);
    hasher.write(kinds);
    // 0 is of what was not executed.
    hasher.finish().max(1)
}

/// A statement as one connection knows it.
#[derive(Debug)]
struct Entry {
    statement: Known,
    /// The server's id.
    id: u32,
    /// Kinds that executions of the statement there have bound, as [`Bindings`]; 0 before the
    /// first.
    bound: u64,
    /// Parameters that it has there.
    params: u16,
    /// The client statement whose cursor is open here.
    cursor: Option<u32>,
    /// Whether the statement was prepared otherwise than its session has meant it.
    otherwise: bool,
}

impl Entry {
    fn new(statement: &Rc<Prepared>, id: u32, params: u16) -> Self {
        Self {
            statement: Known::new(statement),
            id,
            bound: 0,
            params,
            cursor: None,
            otherwise: false,
        }
    }

    /// Whether these would be read there as on a connection of the client's own.
    const fn fits(&self, by: &Bindings) -> bool {
        self.bound == 0 || self.bound == by.alone || self.bound == by.before || self.bound == by.now
    }

    const fn bind(&mut self, by: &Bindings) {
        self.bound = if self.bound == by.before || self.bound == by.now {
            by.now
        } else {
            by.alone
        };
    }
}

/// Which statements a connection has prepared, longest unused first.
#[derive(Debug, Default)]
pub(crate) struct Here(Vec<Entry>);

impl Here {
    /// Where a statement is. One whose cursor belongs to another statement of the client does not
    /// count: executing it would close the cursor. Nor does one that others have executed with
    /// other types.
    pub(crate) fn at(&self, number: u64, client: u32, by: &Bindings) -> Option<usize> {
        let is_it = |entry: &Entry| {
            entry.statement.number == number
                && entry.cursor.is_none_or(|owner| owner == client)
                && entry.fits(by)
        };
        // The one that the client has executed before, if it is here, is what it would have on a
        // connection of its own.
        let own = |entry: &Entry| is_it(entry) && entry.bound == by.before;
        self.0
            .iter()
            .position(own)
            .or_else(|| self.0.iter().position(is_it))
    }

    /// Whether a statement is here with what the client had bound up to its execution before.
    pub(crate) fn was_left_with(&self, number: u64, by: &Bindings) -> bool {
        self.0
            .iter()
            .rev()
            .any(|entry| entry.statement.number == number && entry.bound == by.before)
    }

    /// The server's id of such a statement; it becomes the latest used, and is executed so.
    pub(crate) fn id(&mut self, number: u64, client: u32, by: &Bindings) -> Option<u32> {
        let at = self.at(number, client, by)?;
        self.0[at..].rotate_left(1);
        let entry = self.0.last_mut()?;
        entry.bind(by);
        Some(entry.id)
    }

    /// Notes that the statement of this id is executed with these bindings.
    pub(crate) fn bind(&mut self, id: u32, by: &Bindings) {
        if let Some(entry) = self.0.iter_mut().rfind(|entry| entry.id == id) {
            entry.bind(by);
        }
    }

    /// Notes that the statement of this id was prepared otherwise than its session has meant it.
    pub(crate) fn is_meant_otherwise(&mut self, id: u32) {
        for entry in self.0.iter_mut().filter(|entry| entry.id == id) {
            entry.otherwise = true;
        }
    }

    /// All of those; they are to be closed.
    pub(crate) fn take_meant_otherwise(&mut self) -> Vec<u32> {
        let ids = self
            .0
            .iter()
            .filter(|entry| entry.otherwise)
            .map(|entry| entry.id)
            .collect();
        self.0.retain(|entry| !entry.otherwise);
        ids
    }

    /// Parameters of the statement that the server knows by this id.
    pub(crate) fn params(&self, id: u32) -> Option<u16> {
        self.0
            .iter()
            .rfind(|entry| entry.id == id)
            .map(|entry| entry.params)
    }

    /// Parameters of the one that [`at`](Self::at) has found.
    pub(crate) fn params_at(&self, at: usize) -> Option<usize> {
        self.0.get(at).map(|entry| usize::from(entry.params))
    }

    /// Notes that a statement was prepared; returns ids to close, so that at most `max` stay. What
    /// has a cursor stays. `beside`: and the same statement as others have executed it.
    pub(crate) fn insert(
        &mut self,
        statement: &Rc<Prepared>,
        (id, params): (u32, u16),
        max: usize,
        beside: bool,
    ) -> Vec<u32> {
        let mut close = Vec::new();
        self.0.retain(|entry| {
            let again = entry.statement.number == statement.number && !beside;
            let goes = entry.cursor.is_none() && (again || entry.statement.is_forgotten());
            if goes {
                close.push(entry.id);
            }
            !goes
        });
        self.0.push(Entry::new(statement, id, params));
        while self.0.len() > max.max(1) {
            let last = self.0.len() - 1;
            let Some(at) = self.0[..last]
                .iter()
                .position(|entry| entry.cursor.is_none())
            else {
                break;
            };
            close.push(self.0.remove(at).id);
        }
        close
    }

    /// The server's ids of all of them.
    pub(crate) fn ids(&self) -> Vec<u32> {
        self.0.iter().map(|entry| entry.id).collect()
    }

    /// The ids of those that can be prepared anew with nothing lost.
    pub(crate) fn unneeded(&self) -> Vec<u32> {
        self.0
            .iter()
            .filter(|entry| entry.cursor.is_none() && !entry.otherwise)
            .map(|entry| entry.id)
            .collect()
    }

    pub(crate) fn clear(&mut self) -> usize {
        let n = self.0.len();
        self.0.clear();
        n
    }

    /// The server does not know this id any more, or is told to forget it.
    pub(crate) fn forget(&mut self, id: u32) {
        self.0.retain(|entry| entry.id != id);
    }

    /// The ids of what this one is here, as others have executed it, too: all but those with a
    /// cursor.
    pub(crate) fn likewise(&self, id: u32) -> Vec<u32> {
        let number = self
            .0
            .iter()
            .rfind(|entry| entry.id == id)
            .map(|entry| entry.statement.number);
        let likewise = |entry: &&Entry| {
            entry.id == id || entry.cursor.is_none() && Some(entry.statement.number) == number
        };
        self.0
            .iter()
            .filter(likewise)
            .map(|entry| entry.id)
            .collect()
    }

    /// A cursor of the client's statement is open on the statement of this id.
    pub(crate) fn open_cursor(&mut self, id: u32, client: u32) {
        for entry in self.0.iter_mut().filter(|entry| entry.id == id) {
            entry.cursor = Some(client);
        }
    }

    /// The id of the statement on which the client's statement has its cursor.
    pub(crate) fn cursor(&self, client: u32) -> Option<u32> {
        self.0
            .iter()
            .find(|entry| entry.cursor == Some(client))
            .map(|entry| entry.id)
    }

    /// The cursor is closed; whether another is open.
    pub(crate) fn end_cursor(&mut self, client: u32) -> bool {
        for entry in self
            .0
            .iter_mut()
            .filter(|entry| entry.cursor == Some(client))
        {
            entry.cursor = None;
        }
        self.0.iter().any(|entry| entry.cursor.is_some())
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn count(statements: usize) -> Remembered {
        Remembered {
            statements,
            bytes: 1 << 30,
        }
    }

    fn plain() -> State {
        State::new("", 45)
    }

    #[test]
    fn a_statement_prepared_under_another_mode_or_character_set_is_another() {
        let statements = Statements::default();
        let (mut here, text) = (Here::default(), b"SELECT a || b");
        let a = statements.intern(&"u".into(), &plain(), text, count(9));
        here.insert(&a, (11, 0), 9, false);
        let mut pipes = plain();
        pipes.set("sql_mode", "'PIPES_AS_CONCAT'");
        let piped = statements.intern(&"u".into(), &pipes, text, count(9));
        let latin = statements.intern(&"u".into(), &State::new("", 8), text, count(9));
        assert_eq!(
            (
                here.id(piped.number, 0, &Bindings::NONE),
                here.id(latin.number, 0, &Bindings::NONE)
            ),
            (None, None)
        );
        assert!(
            here.insert(&piped, (12, 0), 9, false).is_empty(),
            "both stay"
        );
        assert_eq!(
            (
                here.id(a.number, 0, &Bindings::NONE),
                here.id(piped.number, 0, &Bindings::NONE)
            ),
            (Some(11), Some(12))
        );
        // MySQL keeps the locale of the names of months, and the like, of when it was prepared.
        for (name, value) in [
            ("lc_time_names", "'de_DE'"),
            ("default_week_format", "3"),
            ("time_zone", "'+01:00'"),
        ] {
            let mut there = plain();
            there.set(name, value);
            assert_ne!(
                statements
                    .intern(&"u".into(), &there, text, count(9))
                    .number,
                a.number,
                "{name}"
            );
        }
        // What decides nothing about the text makes no other statement of it.
        let mut elsewhere = plain();
        elsewhere.set("max_execution_time", "1000");
        assert_eq!(
            statements
                .intern(&"u".into(), &elsewhere, text, count(9))
                .number,
            a.number
        );
    }

    fn one(all: &Statements, schema: &str, sql: &str, max: usize) -> Rc<Prepared> {
        all.intern(
            &"u".into(),
            &State::new(schema, 45),
            sql.as_bytes(),
            count(max),
        )
    }

    #[test]
    fn the_same_text_in_the_same_schema_is_one_statement() {
        let all = Statements::default();
        let a = one(&all, "s", "SELECT ?", 9);
        assert_eq!(a.number, one(&all, "s", "SELECT ?", 9).number);
        assert_ne!(a.number, one(&all, "t", "SELECT ?", 9).number);
        assert_eq!(all.len(), 2);
        assert_ne!(
            a.number,
            all.intern(&"v".into(), &State::new("s", 45), b"SELECT ?", count(9))
                .number
        );
    }

    /// A52: nothing grows for ever.
    #[test]
    fn statements_that_no_client_has_are_forgotten_longest_unused_first() {
        let all = Statements::default();
        let kept = Interest::new(one(&all, "", "kept", 8));
        let used = one(&all, "", "used", 8).number;
        for n in 0..1000 {
            one(&all, "", &n.to_string(), 8);
            assert_eq!(
                one(&all, "", "used", 8).number,
                used,
                "used again and again"
            );
            assert!(all.len() <= 8);
        }
        assert_eq!(one(&all, "", "kept", 8).number, kept.number);
        assert_eq!(kept.counts(), (1, 0));
    }

    /// A few long texts are as many bytes as thousands of short ones, also if no server ever took
    /// them.
    #[test]
    fn texts_that_no_client_has_are_bounded_in_bytes_too() {
        const MIB: usize = 1 << 20;
        let (all, most) = (
            Statements::default(),
            Remembered {
                statements: 10_000,
                bytes: 8 * MIB,
            },
        );
        let one = |n: usize, len: usize| {
            let text = format!("SELECT {n} /*{}*/", "x".repeat(len));
            all.intern(&"u".into(), &plain(), text.as_bytes(), most)
        };
        for n in 0..100 {
            one(n, MIB);
            assert!(all.bytes() <= 8 * MIB, "{n}: {}", all.bytes());
        }
        assert!(all.len() >= 6);
        // What is alone too much is there until the next comes.
        one(1000, 20 * MIB);
        assert_eq!(all.len(), 1);
        one(1001, 10);
        assert!(all.len() == 1 && all.bytes() < MIB);
        // What clients have stays, and is not looked through for each that comes.
        let kept: Vec<_> = (0..20).map(|n| Interest::new(one(n, MIB))).collect();
        assert!(all.len() >= 20 && all.bytes() > 20 * MIB);
        let number = kept[3].number;
        assert_eq!(one(3, MIB).number, number);
        drop(kept);
        for n in 200..220 {
            one(n, MIB);
        }
        assert!(all.bytes() <= 8 * MIB, "{}", all.bytes());
    }

    #[test]
    fn what_clients_have_is_kept_beyond_the_bound() {
        let all = Statements::default();
        let interests: Vec<_> = (0..100)
            .map(|n| Interest::new(one(&all, "", &n.to_string(), 8)))
            .collect();
        assert_eq!(all.len(), 100);
        drop(interests);
        for n in 0..30 {
            one(&all, "", &format!("other {n}"), 8);
        }
        assert!(all.len() <= 8, "{}", all.len());
    }

    #[test]
    fn the_longest_unused_statement_is_closed_first() {
        let all = Statements::default();
        let [a, b, c] = ["a", "b", "c"].map(|text| one(&all, "", text, 9));
        let mut here = Here::default();
        assert!(here.insert(&a, (11, 0), 2, false).is_empty());
        assert!(here.insert(&b, (12, 0), 2, false).is_empty());
        assert_eq!(here.id(a.number, 0, &Bindings::NONE), Some(11));
        assert_eq!(here.insert(&c, (13, 0), 2, false), [12]);
        assert_eq!(here.id(b.number, 0, &Bindings::NONE), None);
        assert_eq!((a.counts(), b.counts()), ((0, 1), (0, 0)));
        drop(here);
        assert_eq!(a.counts(), (0, 0));
    }

    #[test]
    fn an_open_cursor_keeps_its_statement_and_nobody_else_executes_it() {
        let all = Statements::default();
        let [a, b] = ["a", "b"].map(|text| one(&all, "", text, 9));
        let mut here = Here::default();
        here.insert(&a, (11, 0), 1, false);
        here.open_cursor(11, 5);
        assert_eq!(
            here.id(a.number, 6, &Bindings::NONE),
            None,
            "it would close the cursor of 5"
        );
        assert_eq!(here.id(a.number, 5, &Bindings::NONE), Some(11));
        assert!(here.insert(&a, (12, 0), 1, false).is_empty());
        assert_eq!(here.id(a.number, 6, &Bindings::NONE), Some(12));
        assert_eq!(here.insert(&b, (13, 0), 1, false), [12]);
        assert_eq!(here.cursor(5), Some(11));
        assert!(!here.end_cursor(5));
        assert_eq!(here.insert(&b, (14, 0), 1, false), [13, 11]);
    }

    #[test]
    fn what_was_executed_with_other_types_is_the_same_statement() {
        let all = Statements::default();
        let [a, b] = ["a", "b"].map(|text| one(&all, "", text, 9));
        let mut here = Here::default();
        for (statement, id) in [(&a, 11), (&a, 12), (&b, 13), (&a, 14)] {
            here.insert(statement, (id, 1), 9, true);
        }
        here.open_cursor(14, 5);
        assert_eq!(
            (here.likewise(12), here.likewise(13), here.likewise(14)),
            (vec![11, 12], vec![13], vec![11, 12, 14])
        );
        assert!(here.likewise(15).is_empty());
    }

    #[test]
    fn what_is_for_one_execution_is_closed_with_the_next_that_is_prepared() {
        let all = Statements::default();
        let [a, b] = ["SELECT ROW_COUNT()", "b"].map(|text| one(&all, "s", text, 9));
        let mut here = Here::default();
        here.insert(&a, (11, 0), 20, false);
        let once = all.once(&a, b"SELECT 3");
        assert_eq!(
            (&*once.schema, once.number == a.number, all.len()),
            ("s", false, 2)
        );
        assert!(here.insert(&once, (12, 0), 20, false).is_empty());
        assert_eq!(
            (
                here.id(once.number, 0, &Bindings::NONE),
                here.id(a.number, 0, &Bindings::NONE)
            ),
            (Some(12), Some(11))
        );
        assert_eq!(here.insert(&b, (13, 0), 20, false), [12]);
        assert_eq!(here.id(a.number, 0, &Bindings::NONE), Some(11));
    }

    #[test]
    fn what_the_core_has_forgotten_is_closed_on_servers_too() {
        let all = Statements::default();
        let a = one(&all, "", "a", 1);
        let mut here = Here::default();
        here.insert(&a, (11, 0), 20, false);
        let b = one(&all, "", "b", 1);
        assert_eq!(here.insert(&b, (12, 0), 20, false), [11]);
    }
}
