//! Prepared statements of this core: the same text of the same user in the same schema is one statement, whoever prepared it.

use crate::state::{Meant, State};
use hashbrown::HashMap;
use std::cell::{Cell, RefCell};
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
}

impl Prepared {
    /// Whether it would mean the same if its session prepared it now.
    #[must_use]
    pub fn means_as_now(&self, state: &State) -> bool {
        self.meant.is_of(state)
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

/// All statements of a core: those that a client may execute, and the latest of those that nobody does.
#[derive(Debug, Default)]
pub struct Statements {
    last: Cell<u64>,
    known: RefCell<HashMap<Box<[u8]>, Rc<Prepared>, foldhash::fast::RandomState>>,
    /// Forgetting is tried at this length; nobody looks through all of them for each new one.
    next_look: Cell<usize>,
}

impl Statements {
    /// The statement of this text of this user in this state: its schema, and what decides how servers read a text. More than `max` are kept only
    /// as far as clients have them.
    pub fn intern(&self, user: &Rc<str>, state: &State, sql: &[u8], max: usize) -> Rc<Prepared> {
        let schema = &state.schema;
        let meant = Meant::of(state, sql);
        let mut key = Vec::with_capacity(user.len() + schema.len() + 2 + sql.len());
        key.extend_from_slice(user.as_bytes());
        key.push(0);
        key.extend_from_slice(schema.as_bytes());
        key.push(0);
        meant.write(&mut key);
        key.extend_from_slice(sql);
        self.last.set(self.last.get() + 1);
        let now = self.last.get();
        let mut known = self.known.borrow_mut();
        if let Some(statement) = known.get(key.as_slice()) {
            statement.used.set(now);
            return statement.clone();
        }
        let statement = Rc::new(Prepared {
            number: now,
            user: user.clone(),
            schema: schema.clone(),
            meant,
            sql: sql.into(),
            params: Cell::new(0),
            columns: Cell::new(0),
            clients: Cell::new(0),
            servers: Cell::new(0),
            used: Cell::new(now),
            forgotten: Cell::new(false),
        });
        if known.len() >= max.max(1) && known.len() >= self.next_look.get() {
            forget(&mut known, max);
            // An eighth more before the next look, be it that clients have them all.
            let room = (known.len() / 8).max(1);
            self.next_look.set(if known.len() < max { 0 } else { known.len() + room });
        }
        known.insert(key.into_boxed_slice(), statement.clone());
        statement
    }

    /// Another text for one execution of a statement, as its session meant it. Nobody remembers it, and a server that knows it forgets it with the next
    /// that is prepared there.
    pub fn once(&self, statement: &Prepared, sql: &[u8]) -> Rc<Prepared> {
        self.last.set(self.last.get() + 1);
        Rc::new(Prepared {
            number: self.last.get(),
            user: statement.user.clone(),
            schema: statement.schema.clone(),
            meant: statement.meant.clone(),
            sql: sql.into(),
            params: Cell::new(statement.params.get()),
            columns: Cell::new(statement.columns.get()),
            clients: Cell::new(0),
            servers: Cell::new(0),
            used: Cell::new(self.last.get()),
            forgotten: Cell::new(true),
        })
    }

    /// Distinct statements that are remembered.
    #[must_use]
    pub fn len(&self) -> usize {
        self.known.borrow().len()
    }

    /// None?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.known.borrow().is_empty()
    }

    /// How many some client has, and how many some connection knows.
    #[must_use]
    pub fn in_use(&self) -> (u64, u64) {
        self.known.borrow().values().fold((0, 0), |(clients, servers), statement| {
            let (by_clients, on_servers) = statement.counts();
            (clients + u64::from(by_clients > 0), servers + u64::from(on_servers > 0))
        })
    }

    /// All of them, for the statistics.
    #[must_use]
    pub fn all(&self) -> Vec<Rc<Prepared>> {
        self.known.borrow().values().cloned().collect()
    }
}

/// Forgets what no client has, longest unused first, until an eighth of `max` is free.
fn forget(known: &mut HashMap<Box<[u8]>, Rc<Prepared>, foldhash::fast::RandomState>, max: usize) {
    let keep = max - max.div_ceil(8);
    let mut unused: Vec<u64> = known.values().filter(|s| s.clients.get() == 0).map(|s| s.used.get()).collect();
    unused.sort_unstable();
    let surplus = known.len().saturating_sub(keep).min(unused.len());
    let Some(&last) = surplus.checked_sub(1).and_then(|at| unused.get(at)) else { return };
    known.retain(|_, statement| {
        let goes = statement.clients.get() == 0 && statement.used.get() <= last;
        statement.forgotten.set(goes);
        !goes
    });
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

/// A statement as one connection knows it.
#[derive(Debug)]
struct Entry {
    statement: Known,
    /// The server's id.
    id: u32,
    /// The client statement whose cursor is open here.
    cursor: Option<u32>,
}

impl Entry {
    fn new(statement: &Rc<Prepared>, id: u32) -> Self {
        Self { statement: Known::new(statement), id, cursor: None }
    }
}

/// Which statements a connection has prepared, longest unused first.
#[derive(Debug, Default)]
pub(crate) struct Here(Vec<Entry>);

impl Here {
    /// Where a statement is. One whose cursor belongs to another statement of the client does not count: executing it would close the cursor.
    pub(crate) fn at(&self, number: u64, client: u32) -> Option<usize> {
        self.0.iter().position(|entry| entry.statement.number == number && entry.cursor.is_none_or(|owner| owner == client))
    }

    /// The server's id of such a statement; it becomes the latest used.
    pub(crate) fn id(&mut self, number: u64, client: u32) -> Option<u32> {
        let at = self.at(number, client)?;
        self.0[at..].rotate_left(1);
        self.0.last().map(|entry| entry.id)
    }

    /// It was prepared; returns ids to close, so that at most `max` stay. What has a cursor stays.
    pub(crate) fn insert(&mut self, statement: &Rc<Prepared>, id: u32, max: usize) -> Vec<u32> {
        let mut close = Vec::new();
        self.0.retain(|entry| {
            let goes = entry.cursor.is_none() && (entry.statement.number == statement.number || entry.statement.is_forgotten());
            if goes {
                close.push(entry.id);
            }
            !goes
        });
        self.0.push(Entry::new(statement, id));
        while self.0.len() > max.max(1) {
            let last = self.0.len() - 1;
            let Some(at) = self.0[..last].iter().position(|entry| entry.cursor.is_none()) else { break };
            close.push(self.0.remove(at).id);
        }
        close
    }

    /// The server's ids of all of them.
    pub(crate) fn ids(&self) -> Vec<u32> {
        self.0.iter().map(|entry| entry.id).collect()
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

    /// A cursor of the client's statement is open on the statement of this id.
    pub(crate) fn open_cursor(&mut self, id: u32, client: u32) {
        for entry in self.0.iter_mut().filter(|entry| entry.id == id) {
            entry.cursor = Some(client);
        }
    }

    /// The id of the statement on which the client's statement has its cursor.
    pub(crate) fn cursor(&self, client: u32) -> Option<u32> {
        self.0.iter().find(|entry| entry.cursor == Some(client)).map(|entry| entry.id)
    }

    /// The cursor is closed; whether another is open.
    pub(crate) fn end_cursor(&mut self, client: u32) -> bool {
        for entry in self.0.iter_mut().filter(|entry| entry.cursor == Some(client)) {
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

    fn plain() -> State {
        State::new("", 45)
    }

    #[test]
    fn a_statement_prepared_under_another_mode_or_character_set_is_another() {
        let statements = Statements::default();
        let (mut here, text) = (Here::default(), b"SELECT a || b");
        let a = statements.intern(&"u".into(), &plain(), text, 9);
        here.insert(&a, 11, 9);
        let mut pipes = plain();
        pipes.set("sql_mode", "'PIPES_AS_CONCAT'");
        let piped = statements.intern(&"u".into(), &pipes, text, 9);
        let latin = statements.intern(&"u".into(), &State::new("", 8), text, 9);
        assert_eq!((here.id(piped.number, 0), here.id(latin.number, 0)), (None, None));
        assert!(here.insert(&piped, 12, 9).is_empty(), "both stay");
        assert_eq!((here.id(a.number, 0), here.id(piped.number, 0)), (Some(11), Some(12)));
        // MySQL keeps the locale of the names of months, and the like, of when it was prepared.
        for (name, value) in [("lc_time_names", "'de_DE'"), ("default_week_format", "3"), ("time_zone", "'+01:00'")] {
            let mut there = plain();
            there.set(name, value);
            assert_ne!(statements.intern(&"u".into(), &there, text, 9).number, a.number, "{name}");
        }
        // What decides nothing about the text makes no other statement of it.
        let mut elsewhere = plain();
        elsewhere.set("max_execution_time", "1000");
        assert_eq!(statements.intern(&"u".into(), &elsewhere, text, 9).number, a.number);
    }

    fn one(all: &Statements, schema: &str, sql: &str, max: usize) -> Rc<Prepared> {
        all.intern(&"u".into(), &State::new(schema, 45), sql.as_bytes(), max)
    }

    #[test]
    fn the_same_text_in_the_same_schema_is_one_statement() {
        let all = Statements::default();
        let a = one(&all, "s", "SELECT ?", 9);
        assert_eq!(a.number, one(&all, "s", "SELECT ?", 9).number);
        assert_ne!(a.number, one(&all, "t", "SELECT ?", 9).number);
        assert_eq!(all.len(), 2);
        assert_ne!(a.number, all.intern(&"v".into(), &State::new("s", 45), b"SELECT ?", 9).number);
    }

    /// A52: nothing grows for ever.
    #[test]
    fn statements_that_no_client_has_are_forgotten_longest_unused_first() {
        let all = Statements::default();
        let kept = Interest::new(one(&all, "", "kept", 8));
        let used = one(&all, "", "used", 8).number;
        for n in 0..1000 {
            one(&all, "", &n.to_string(), 8);
            assert_eq!(one(&all, "", "used", 8).number, used, "used again and again");
            assert!(all.len() <= 8);
        }
        assert_eq!(one(&all, "", "kept", 8).number, kept.number);
        assert_eq!(kept.counts(), (1, 0));
    }

    #[test]
    fn what_clients_have_is_kept_beyond_the_bound() {
        let all = Statements::default();
        let interests: Vec<_> = (0..100).map(|n| Interest::new(one(&all, "", &n.to_string(), 8))).collect();
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
        assert!(here.insert(&a, 11, 2).is_empty());
        assert!(here.insert(&b, 12, 2).is_empty());
        assert_eq!(here.id(a.number, 0), Some(11));
        assert_eq!(here.insert(&c, 13, 2), [12]);
        assert_eq!(here.id(b.number, 0), None);
        assert_eq!((a.counts(), b.counts()), ((0, 1), (0, 0)));
        drop(here);
        assert_eq!(a.counts(), (0, 0));
    }

    #[test]
    fn an_open_cursor_keeps_its_statement_and_nobody_else_executes_it() {
        let all = Statements::default();
        let [a, b] = ["a", "b"].map(|text| one(&all, "", text, 9));
        let mut here = Here::default();
        here.insert(&a, 11, 1);
        here.open_cursor(11, 5);
        assert_eq!(here.id(a.number, 6), None, "it would close the cursor of 5");
        assert_eq!(here.id(a.number, 5), Some(11));
        assert!(here.insert(&a, 12, 1).is_empty());
        assert_eq!(here.id(a.number, 6), Some(12));
        assert_eq!(here.insert(&b, 13, 1), [12]);
        assert_eq!(here.cursor(5), Some(11));
        assert!(!here.end_cursor(5));
        assert_eq!(here.insert(&b, 14, 1), [13, 11]);
    }

    #[test]
    fn what_is_for_one_execution_is_closed_with_the_next_that_is_prepared() {
        let all = Statements::default();
        let [a, b] = ["SELECT ROW_COUNT()", "b"].map(|text| one(&all, "s", text, 9));
        let mut here = Here::default();
        here.insert(&a, 11, 20);
        let once = all.once(&a, b"SELECT 3");
        assert_eq!((&*once.schema, once.number == a.number, all.len()), ("s", false, 2));
        assert!(here.insert(&once, 12, 20).is_empty());
        assert_eq!((here.id(once.number, 0), here.id(a.number, 0)), (Some(12), Some(11)));
        assert_eq!(here.insert(&b, 13, 20), [12]);
        assert_eq!(here.id(a.number, 0), Some(11));
    }

    #[test]
    fn what_the_core_has_forgotten_is_closed_on_servers_too() {
        let all = Statements::default();
        let a = one(&all, "", "a", 1);
        let mut here = Here::default();
        here.insert(&a, 11, 20);
        let b = one(&all, "", "b", 1);
        assert_eq!(here.insert(&b, 12, 20), [11]);
    }
}
