//! What a session has made on a connection that only that connection knows, by name: when the last
//! of a kind is gone, it may be shared again.

use crate::session::hold::{Hold, Holds};
use sql::own::{Name, Own};
use sql::{Class, Leaves};
use std::collections::BTreeSet;

/// More names than this are not kept: then the hold stays.
const NAMES_MAX: usize = 1000;

/// Names, by kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Owned {
    tables: Names<(String, String)>,
    statements: Names<String>,
    handlers: Names<String>,
    /// Locks of GET_LOCK.
    locks: Locks,
    /// LOCK TABLES; the begin of a transaction ends it.
    tables_locked: bool,
    /// FLUSH … WITH READ LOCK or FOR EXPORT; only UNLOCK TABLES ends it.
    read_locked: bool,
    /// LOCK INSTANCE FOR BACKUP; only UNLOCK INSTANCE ends it.
    instance_locked: bool,
    /// BACKUP STAGE START; only BACKUP STAGE END ends it.
    backup_staged: bool,
    /// BACKUP LOCK; only BACKUP UNLOCK ends it.
    backup_locked: bool,
    /// An XA transaction was begun here.
    xa: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Locks {
    /// How many there are by the server's answers, each as often as it was taken.
    taken: u64,
    /// Not all answers were seen: only the names count.
    unseen: bool,
    /// Those that there may be, each as it is written.
    names: BTreeSet<Box<[u8]>>,
    /// There may be others.
    nameless: bool,
    /// There may be one of MySQL's locking service, which only the session's end surely releases.
    service: bool,
    /// The server was not asked since a statement may have taken or released one.
    doubtful: bool,
}

/// Glimpse of a statement's answer that tells of locks.
#[derive(Debug, Clone, Copy, Default)]
pub struct LockAnswer<'a> {
    /// The only value of its only row, or the word NULL, if that was seen.
    pub value: Option<&'a [u8]>,
    /// The session has said that it wants no rows (`sql_select_limit = 0`): MySQL's `DO` does
    /// nothing then, nor does a SELECT on either.
    pub no_rows: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Names<T> {
    known: BTreeSet<T>,
    /// There may be others.
    unknown: bool,
}

impl<T> Default for Names<T> {
    fn default() -> Self {
        Self {
            known: BTreeSet::new(),
            unknown: false,
        }
    }
}

impl<T: Ord> Names<T> {
    fn add(&mut self, name: T) {
        self.unknown |= self.known.len() >= NAMES_MAX;
        if !self.unknown {
            self.known.insert(name);
        }
    }

    fn is_empty(&self) -> bool {
        self.known.is_empty() && !self.unknown
    }
}

impl Owned {
    /// Is this statement of interest here?
    #[must_use]
    pub const fn concerns(class: &Class<'_>, holds: Holds) -> bool {
        const MARKS: Leaves = Leaves::TEMP_TABLE
            .with(Leaves::DROP_TEMP_TABLE)
            .with(Leaves::SQL_PREPARE)
            .with(Leaves::SQL_DEALLOCATE)
            .with(Leaves::HANDLER)
            .with(Leaves::GET_LOCK)
            .with(Leaves::RELEASE_LOCK)
            .with(Leaves::LOCK_TABLES)
            .with(Leaves::UNLOCK_TABLES)
            .with(Leaves::FLUSH_READ_LOCK)
            .with(Leaves::XA);
        class.leaves.intersects(MARKS)
            || class.begins_transaction && holds.has(Hold::TableLock)
            || class.ddl && holds.has(Hold::TemporaryTable)
    }

    /// A statement has ended. `schema`: where its names are looked for.
    pub fn learn(
        &mut self,
        holds: &mut Holds,
        class: &Class<'_>,
        text: &[u8],
        schema: &str,
        ok: bool,
        answered: LockAnswer<'_>,
    ) {
        if class
            .leaves
            .intersects(Leaves::GET_LOCK | Leaves::RELEASE_LOCK)
        {
            self.locks.learn(class, text, ok, answered);
        }
        self.learn_table_locks(class, text, ok);
        if class.leaves.intersects(Leaves::XA) {
            let ends = ok && second_word_is(text, &["COMMIT", "ROLLBACK"]);
            let begins = class.multi || second_word_is(text, &["START", "BEGIN", "END", "PREPARE"]);
            self.xa = begins || self.xa && !ends;
        }
        let whole = |(written, name): Name| (written.unwrap_or_else(|| schema.to_owned()), name);
        let did = if class.multi {
            Own::Unknown
        } else {
            sql::own::own(text)
        };
        match did {
            // What failed may have been done in part; of making, the name is known.
            Own::Table(name) => self.tables.add(whole(name)),
            // Where it fails, the server may have what had the name before.
            Own::Statement(name) if ok => self.statements.add(name),
            Own::Handler(name) if ok => self.handlers.add(name),
            Own::NoTables(names) if ok => {
                for name in names {
                    self.tables.known.remove(&whole(name));
                }
            }
            // It fails where there is none.
            Own::NoStatement(name) => drop(self.statements.known.remove(&name)),
            Own::NoHandler(name) if ok => drop(self.handlers.known.remove(&name)),
            Own::Unknown => {
                self.tables.unknown |=
                    class.leaves.intersects(Leaves::TEMP_TABLE) || holds.has(Hold::TemporaryTable);
                self.statements.unknown |= class.leaves.intersects(Leaves::SQL_PREPARE);
                self.handlers.unknown |= class.leaves.intersects(Leaves::HANDLER);
            }
            _ => {}
        }
        let backs_up = self.backup_staged || self.backup_locked;
        holds.put(
            Hold::TableLock,
            self.tables_locked || self.read_locked || self.instance_locked || backs_up,
        );
        holds.put(Hold::Xa, self.xa);
        holds.put(Hold::TemporaryTable, !self.tables.is_empty());
        holds.put(Hold::SqlPrepare, !self.statements.is_empty());
        holds.put(Hold::Handler, !self.handlers.is_empty());
        holds.put(Hold::UserLock, self.locks.is_any());
        #[cfg(debug_assertions)]
        crate::planted::forget(holds);
    }
}

impl Owned {
    /// A statement was prepared in SQL by a name that its session has chosen.
    pub(crate) fn add_statement(&mut self, name: &str) {
        self.statements.add(name.to_owned());
    }

    fn learn_table_locks(&mut self, class: &Class<'_>, text: &[u8], ok: bool) {
        let mut words = sql::words::Words::new(text);
        if !class.multi && words.next().is_some_and(|verb| verb.is("BACKUP")) {
            // What fails may have locked something.
            let locks = class.leaves.intersects(Leaves::LOCK_TABLES);
            let of_stage = words.next().is_some_and(|second| second.is("STAGE"));
            let _behind = (words.next(), words.next());
            if words.is_conditional() {
                // Which of the two a server read, and whether it took it or gave it back, is not
                // known.
                (self.backup_staged, self.backup_locked) = (true, true);
                return;
            }
            let locked = if of_stage {
                &mut self.backup_staged
            } else {
                &mut self.backup_locked
            };
            *locked = locks || *locked && !ok;
            return;
        }
        let instance = second_word_is(text, &["INSTANCE"]) || class.multi;
        if class.leaves.intersects(Leaves::UNLOCK_TABLES) && ok && !class.multi {
            if instance {
                self.instance_locked = false;
            } else {
                (self.tables_locked, self.read_locked) = (false, false);
            }
        }
        if class.begins_transaction && ok && !class.multi {
            self.tables_locked = false;
        }
        if class.leaves.intersects(Leaves::LOCK_TABLES) {
            self.instance_locked |= instance;
            self.tables_locked |= !instance;
        }
        self.read_locked |= class.leaves.intersects(Leaves::FLUSH_READ_LOCK);
    }
}

fn second_word_is(text: &[u8], keywords: &[&str]) -> bool {
    sql::words::Words::new(text)
        .nth(1)
        .is_some_and(|token| token.is_any(keywords))
}

/// Functions of MySQL's locking service that take locks, which RELEASE_ALL_LOCKS() does not give
/// back (<https://dev.mysql.com/doc/refman/9.4/en/locking-service.html>).
const SERVICES: [&[u8]; 2] = [b"SERVICE_GET_READ_LOCKS", b"SERVICE_GET_WRITE_LOCKS"];
/// More names than this are not kept.
const LOCKS_MAX: usize = 64;
/// Longer names, in their quotes, MySQL refuses, and refuses to say who has them.
const LOCK_LEN_MAX: usize = 66;

impl Locks {
    fn learn(
        &mut self,
        class: &Class<'_>,
        text: &[u8],
        ok: bool,
        LockAnswer { value, no_rows }: LockAnswer<'_>,
    ) {
        let gets = class.leaves.intersects(Leaves::GET_LOCK);
        let plain = |function: &str| !class.multi && is_only_call(text, function);
        // Where it may not have been called, only its answer says that it was.
        let is_done = ok && (value.is_some() || !no_rows);
        match value.filter(|_| ok) {
            _ if is_done && plain("RELEASE_ALL_LOCKS") => {
                *self = Self {
                    service: self.service,
                    unseen: self.service,
                    nameless: self.service,
                    ..Self::default()
                };
            }
            Some(b"1") if plain("GET_LOCK") => {
                self.taken += 1;
                self.add_names(text);
            }
            Some(b"0" | b"NULL") if plain("GET_LOCK") => {}
            Some(result) if plain("RELEASE_LOCK") && !self.unseen => {
                self.taken = self.taken.saturating_sub(u64::from(result == b"1"));
            }
            // What it took or released only the server knows.
            _ if gets || self.is_any() => {
                if gets {
                    self.add_names(text);
                }
                (self.unseen, self.doubtful) = (true, true);
            }
            _ => {}
        }
        if !self.is_any() {
            *self = Self::default();
        }
    }

    /// Whether there may be one.
    fn is_any(&self) -> bool {
        if self.unseen {
            self.nameless || !self.names.is_empty()
        } else {
            self.taken > 0
        }
    }

    /// The names of the locks that a statement may take.
    fn add_names(&mut self, text: &[u8]) {
        let mut words = sql::words::Words::new(text);
        let tokens: Vec<_> = words.by_ref().collect();
        // Where its strings end may depend on what the session has set, and what of it a server
        // reads, on its version.
        self.nameless |= words.is_conditional() || !text.is_ascii() || text.contains(&b'\\');
        let mut found = false;
        for call in tokens.windows(4) {
            let [function, open, name, comma] = call else {
                continue;
            };
            if function.kind == sql::words::Kind::Sign || !open.is_sign(b'(') {
                continue;
            }
            let function = sql::words::unquote(function.text);
            if !function.eq_ignore_ascii_case(b"GET_LOCK") {
                self.service |= SERVICES
                    .iter()
                    .any(|service| function.eq_ignore_ascii_case(service));
                self.nameless |= self.service;
                continue;
            }
            found = true;
            // It means the same whatever the session sets.
            let is_plain = match name.text {
                [b'\'', .., b'\''] => {
                    name.is_whole() && name.text.is_ascii() && !name.text.contains(&b'\\')
                }
                digits => digits.iter().all(u8::is_ascii_digit),
            };
            if name.text == b"''" && comma.is_sign(b',') {
                // No server locks that, and none says who has.
            } else if is_plain
                && comma.is_sign(b',')
                && name.text.len() <= LOCK_LEN_MAX
                && self.names.len() < LOCKS_MAX
            {
                self.names.insert(name.text.into());
            } else {
                self.nameless = true;
            }
        }
        self.nameless |= !found;
    }
}

impl Owned {
    /// Returns the question that tells which locks are there: for each one that may be, a column
    /// that says whether it is. `None` if there is nothing to ask, or the server would not tell.
    pub(crate) fn question_for_locks(&self) -> Option<String> {
        let names = self
            .locks
            .names
            .iter()
            .filter_map(|name| std::str::from_utf8(name).ok());
        // MariaDB refuses a number, also where it is to be locked; nothing has that name there.
        let said = |name: &str| {
            if name.starts_with('\'') {
                name.to_owned()
            } else {
                format!("CONCAT({name})")
            }
        };
        let columns: Vec<_> = names
            .map(|name| format!("IS_USED_LOCK({})<=>CONNECTION_ID()", said(name)))
            .collect();
        (self.locks.doubtful && !self.locks.nameless && !columns.is_empty())
            .then(|| format!("SELECT {}", columns.join(", ")))
    }

    /// The answer to that; `None` where there was none.
    pub(crate) fn learn_locks(&mut self, holds: &mut Holds, answer: Option<&[Option<Vec<u8>>]>) {
        self.locks.doubtful = false;
        if let Some(answer) = answer.filter(|answer| answer.len() == self.locks.names.len()) {
            let mut said = answer.iter();
            // Only a clear no is one.
            self.locks
                .names
                .retain(|_| said.next().is_none_or(|cell| cell.as_deref() != Some(b"0")));
        }
        if !self.locks.is_any() {
            self.locks = Locks::default();
        }
        holds.put(Hold::UserLock, self.locks.is_any());
    }
}

/// Whether a statement takes or releases user locks and does nothing else: it reads no rows, so it
/// is of no transaction.
#[must_use]
pub fn is_only_user_lock(text: &[u8]) -> bool {
    ["GET_LOCK", "RELEASE_LOCK", "RELEASE_ALL_LOCKS"]
        .iter()
        .any(|function| is_only_call(text, function))
}

/// Whether a statement asks who has a user lock and nothing else: only the server that has all
/// locks knows.
#[must_use]
pub fn is_only_about_user_lock(text: &[u8]) -> bool {
    ["IS_FREE_LOCK", "IS_USED_LOCK"]
        .iter()
        .any(|function| is_only_call(text, function))
}

/// `SELECT function(…) [AS name]`, `DO function(…)` or `SET @x = function(…)`, and nothing else.
fn is_only_call(text: &[u8], function: &str) -> bool {
    let mut words = sql::words::Words::new(text);
    let Some(verb) = words.next() else {
        return false;
    };
    if verb.is("SET") {
        let mut target = words.by_ref().take_while(|token| !token.is_sign(b'='));
        if !target.next().is_some_and(|at| at.is_sign(b'@'))
            || target.any(|t| t.is_sign(b'@') || t.is_sign(b','))
        {
            return false;
        }
    } else if !verb.is_any(&["SELECT", "DO"]) {
        return false;
    }
    if !words.next().is_some_and(|t| t.is(function))
        || !words.next().is_some_and(|t| t.is_sign(b'('))
    {
        return false;
    }
    let mut depth = 1;
    for token in words.by_ref() {
        depth += i32::from(token.is_sign(b'(')) - i32::from(token.is_sign(b')'));
        if token.is_any(&[
            "GET_LOCK",
            "RELEASE_LOCK",
            "RELEASE_ALL_LOCKS",
            "SELECT",
            "TABLE",
            "VALUES",
        ]) {
            return false;
        }
        if depth == 0 {
            break;
        }
    }
    depth == 0
        // One that a comment hides from some servers may not have run.
        && !words.is_conditional()
        && words.filter(|t| !t.is("AS") && !t.is_sign(b';')).count() <= 1
        && !sql::words::Words::new(text).any(|t| t.is("FROM"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the holds after these statements, each answered OK with this value.
    fn after(statements: &[(&str, Option<&str>)]) -> Vec<Hold> {
        let (mut owned, mut holds) = (Owned::default(), Holds::default());
        for (text, result) in statements {
            let class = sql::class(text.as_bytes());
            holds.before(&class);
            if Owned::concerns(&class, holds) {
                owned.learn(
                    &mut holds,
                    &class,
                    text.as_bytes(),
                    "s",
                    true,
                    LockAnswer {
                        value: result.map(str::as_bytes),
                        no_rows: false,
                    },
                );
            }
        }
        holds.iter().collect()
    }

    #[test]
    fn what_reads_rows_is_not_only_a_user_lock() {
        for text in [
            "SELECT GET_LOCK('a', 1)",
            "DO RELEASE_LOCK('a')",
            "select release_lock('a') AS done;",
            "SELECT RELEASE_ALL_LOCKS()",
        ] {
            assert!(is_only_user_lock(text.as_bytes()), "{text}");
        }
        for text in [
            "SELECT RELEASE_LOCK('a') FROM jobs WHERE id = 5 FOR UPDATE",
            "SELECT id, RELEASE_LOCK('a') FROM jobs",
            "SELECT RELEASE_LOCK('a'), (SELECT COUNT(*) FROM jobs)",
            "SELECT RELEASE_LOCK((SELECT name FROM jobs))",
            "SELECT RELEASE_LOCK((TABLE jobs))",
            "SELECT RELEASE_LOCK((VALUES ROW('a')))",
            "UPDATE jobs SET done = RELEASE_LOCK('a')",
            "WITH a AS (SELECT 1) SELECT GET_LOCK('a', 1)",
        ] {
            assert!(!is_only_user_lock(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn who_has_a_user_lock_is_asked_by_itself() {
        for text in [
            "SELECT IS_FREE_LOCK('a')",
            "do is_used_lock('a') ;",
            "SELECT IS_USED_LOCK(CONCAT('a', 1)) AS who",
        ] {
            assert!(is_only_about_user_lock(text.as_bytes()), "{text}");
        }
        for text in [
            "SELECT IS_FREE_LOCK('a'), id FROM jobs",
            "SELECT IS_FREE_LOCK((SELECT name FROM jobs))",
            "SELECT GET_LOCK('a', 1)",
        ] {
            assert!(!is_only_about_user_lock(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn the_last_temporary_table_lets_go() {
        let (a, b) = (
            ("CREATE TEMPORARY TABLE a (x INT)", None),
            ("CREATE TEMPORARY TABLE s.b SELECT 1", None),
        );
        assert_eq!(
            after(&[a, b, ("DROP TABLE a", None)]),
            [Hold::TemporaryTable]
        );
        assert!(after(&[a, b, ("DROP TEMPORARY TABLE IF EXISTS s.a, b", None)]).is_empty());
        assert_eq!(
            after(&[a, ("ALTER TABLE a RENAME c", None), ("DROP TABLE a", None)]),
            [Hold::TemporaryTable]
        );
    }

    #[test]
    fn locks_are_counted_by_what_the_server_answers() {
        let get = |n| ("SELECT GET_LOCK('a', 1)", Some(n));
        let release = |n| ("SELECT RELEASE_LOCK('a') AS r", Some(n));
        assert!(after(&[get("1"), release("1")]).is_empty());
        assert!(after(&[get("0")]).is_empty());
        assert_eq!(after(&[get("1"), get("1"), release("1")]), [Hold::UserLock]);
        assert_eq!(after(&[get("1"), release("0")]), [Hold::UserLock]);
        assert!(after(&[get("1"), get("1"), ("DO RELEASE_ALL_LOCKS()", None)]).is_empty());
        // Names that begin like the locking service's.
        for text in [
            "SELECT service_id, GET_LOCK('a', 1) FROM t",
            "SELECT GET_LOCK(service_get_write_locks, 5) FROM t",
        ] {
            assert!(
                after(&[(text, None), ("DO RELEASE_ALL_LOCKS()", None)]).is_empty(),
                "{text}"
            );
        }
        for hidden in [
            "SELECT /*!99999 RELEASE_ALL_LOCKS() */ 'x'",
            "SELECT /*M!100000 RELEASE_ALL_LOCKS() */ 'x'",
        ] {
            assert!(
                after(&[get("1"), (hidden, None)]).contains(&Hold::UserLock),
                "{hidden}"
            );
        }
        assert_eq!(
            after(&[get("yes")]),
            [Hold::UserLock],
            "nobody knows what that says"
        );
        // Who knows how often that was called.
        assert_eq!(
            after(&[("SELECT GET_LOCK(a, 1) FROM t", Some("1")), release("1")]),
            [Hold::UserLock]
        );
        assert_eq!(after(&[("DO GET_LOCK('a', 1)", None)]), [Hold::UserLock]);
        assert_eq!(
            after(&[get("1"), ("SET @n = RELEASE_ALL_LOCKS()", None)]),
            [Hold::Unread]
        );
        assert!(after(&[("DO RELEASE_LOCK('a')", None)]).is_empty());
        // Those of MySQL's locking service are others.
        let service = ("SELECT service_get_write_locks('n', 'a', 1)", None);
        assert_eq!(
            after(&[service, get("1"), ("SELECT RELEASE_ALL_LOCKS()", Some("1"))]),
            [Hold::UserLock]
        );
    }

    #[test]
    fn what_a_limit_of_no_rows_may_have_kept_from_being_done_is_asked_for() {
        let (mut owned, mut holds) = (Owned::default(), Holds::default());
        let mut learn = |text: &str, value: Option<&[u8]>, no_rows| {
            let class = sql::class(text.as_bytes());
            holds.before(&class);
            owned.learn(
                &mut holds,
                &class,
                text.as_bytes(),
                "s",
                true,
                LockAnswer { value, no_rows },
            );
            (
                holds.has(Hold::UserLock),
                owned.question_for_locks().is_some(),
            )
        };
        assert_eq!(
            learn("SELECT GET_LOCK('a', 1)", Some(b"1"), false),
            (true, false)
        );
        for text in [
            "DO RELEASE_ALL_LOCKS()",
            "SELECT RELEASE_ALL_LOCKS()",
            "DO RELEASE_LOCK('a')",
        ] {
            assert_eq!(learn(text, None, true), (true, true), "{text}");
        }
        assert_eq!(learn("DO RELEASE_ALL_LOCKS()", None, false), (false, false));
    }

    #[test]
    fn locks_whose_answers_were_not_seen_are_asked_for_by_their_names() {
        let mut all = (Owned::default(), Holds::default());
        let learn = |(owned, holds): &mut (Owned, Holds), text: &str, result: Option<&str>| {
            let class = sql::class(text.as_bytes());
            holds.before(&class);
            owned.learn(
                holds,
                &class,
                text.as_bytes(),
                "s",
                true,
                LockAnswer {
                    value: result.map(str::as_bytes),
                    no_rows: false,
                },
            );
            owned.question_for_locks()
        };
        let answer = |(owned, holds): &mut (Owned, Holds), cells: &[&str]| {
            let cells: Vec<_> = cells
                .iter()
                .map(|cell| Some(cell.as_bytes().to_vec()))
                .collect();
            owned.learn_locks(holds, Some(&cells));
            holds.has(Hold::UserLock)
        };
        let of = |name: &str| format!("IS_USED_LOCK({name})<=>CONNECTION_ID()");
        assert_eq!(
            learn(&mut all, "DO GET_LOCK('a', 1)", None),
            Some(format!("SELECT {}", of("'a'")))
        );
        assert!(answer(&mut all, &["1"]));
        assert_eq!(all.0.question_for_locks(), None);
        assert_eq!(
            learn(&mut all, "SELECT id, GET_LOCK('b', 1) FROM t", None),
            Some(format!("SELECT {}, {}", of("'a'"), of("'b'")))
        );
        assert!(answer(&mut all, &["1", "0"]));
        // Seen or not, what there is by now is the server's to say.
        assert_eq!(
            learn(&mut all, "SELECT RELEASE_LOCK('a')", Some("1")),
            Some(format!("SELECT {}", of("'a'")))
        );
        assert!(!answer(&mut all, &["0"]));
        assert_eq!(all.0, Owned::default());
        // Taken where it was seen, released where it was not.
        assert_eq!(learn(&mut all, "SELECT GET_LOCK(7, 1)", Some("1")), None);
        assert_eq!(
            learn(&mut all, "SET @r = RELEASE_LOCK(7)", None),
            Some(format!("SELECT {}", of("CONCAT(7)")))
        );
        assert!(!answer(&mut all, &["0"]));
        // A name that is not written is nothing to ask for.
        for text in [
            "DO GET_LOCK(CONCAT('a', 'b'), 1)",
            "DO GET_LOCK('a\\'b', 1)",
            "DO GET_LOCK('a' 'b', 1)",
            "DO GET_LOCK(\"a\", 1)",
            "DO GET_LOCK(@a, 1)",
            "DO GET_LOCK(/*!99999 'b', 1) + GET_LOCK( */ 'a', 1)",
        ] {
            assert_eq!(learn(&mut all, text, None), None, "{text}");
            assert!(all.1.has(Hold::UserLock), "{text}");
            assert_eq!(learn(&mut all, "DO RELEASE_LOCK('ab')", None), None);
            assert_eq!(learn(&mut all, "DO RELEASE_ALL_LOCKS()", None), None);
            assert!(!all.1.has(Hold::UserLock), "{text}");
        }
    }

    #[test]
    fn a_backup_locks_until_its_stages_have_ended() {
        let (start, end) = (("BACKUP STAGE START", None), ("BACKUP STAGE END", None));
        assert_eq!(
            after(&[start, ("BACKUP STAGE BLOCK_COMMIT", None)]),
            [Hold::TableLock]
        );
        assert!(after(&[start, ("BACKUP STAGE FLUSH", None), end]).is_empty());
        assert_eq!(
            after(&[start, ("BACKUP UNLOCK", None), ("UNLOCK TABLES", None)]),
            [Hold::TableLock]
        );
        assert!(after(&[("BACKUP LOCK s.t", None), ("BACKUP UNLOCK", None)]).is_empty());
        assert_eq!(after(&[("BACKUP LOCK t", None), end]), [Hold::TableLock]);
        for hidden in [
            "BACKUP /*!99999 UNLOCK */ LOCK t",
            "BACKUP STAGE /*!99999 END */ START",
            "/*!50701 BACKUP UNLOCK */",
        ] {
            assert!(
                after(&[(hidden, None)]).contains(&Hold::TableLock),
                "{hidden}"
            );
        }
    }

    #[test]
    fn tables_are_locked_until_they_are_unlocked_or_a_transaction_begins() {
        let lock = ("LOCK TABLES t WRITE", None);
        assert_eq!(after(&[lock, ("SELECT 1", None)]), [Hold::TableLock]);
        assert!(after(&[lock, ("UNLOCK TABLES", None)]).is_empty());
        assert!(after(&[lock, ("BEGIN", None)]).is_empty());
        assert_eq!(
            after(&[("FLUSH TABLES WITH READ LOCK", None), ("BEGIN", None)]),
            [Hold::TableLock]
        );
        assert_eq!(
            after(&[("LOCK INSTANCE FOR BACKUP", None), ("UNLOCK TABLES", None)]),
            [Hold::TableLock]
        );
    }

    #[test]
    fn an_xa_transaction_holds_until_it_is_committed() {
        let (start, end) = (("XA START 'x'", None), ("XA END 'x'", None));
        assert_eq!(after(&[start, end, ("XA PREPARE 'x'", None)]), [Hold::Xa]);
        assert!(after(&[start, end, ("XA COMMIT 'x' ONE PHASE", None)]).is_empty());
        assert!(after(&[("XA RECOVER", None)]).is_empty());
    }

    #[test]
    fn statements_and_handlers_let_go_when_all_are_closed() {
        let prepare = ("PREPARE s FROM 'SELECT 1'", None);
        assert_eq!(after(&[prepare]), [Hold::SqlPrepare]);
        assert!(after(&[prepare, prepare, ("DEALLOCATE PREPARE S", None)]).is_empty());
        // What cannot be prepared may have left what had the name; what cannot be given back is not
        // there.
        let (mut owned, mut holds) = (Owned::default(), Holds::default());
        let mut learn = |text: &str, ok| {
            let class = sql::class(text.as_bytes());
            holds.before(&class);
            owned.learn(
                &mut holds,
                &class,
                text.as_bytes(),
                "s",
                ok,
                LockAnswer::default(),
            );
            holds.has(Hold::SqlPrepare)
        };
        assert!(
            !learn("PREPARE s FROM 'SELEC 1'", false)
                && learn("PREPARE s FROM 'SHOW WARNINGS'", true)
        );
        assert!(
            learn("PREPARE s FROM 'SELECT 1' garbage", false)
                && !learn("DEALLOCATE PREPARE s", false)
        );
        assert!(
            after(&[
                ("HANDLER t OPEN AS h", None),
                ("HANDLER h READ NEXT", None),
                ("HANDLER h CLOSE", None)
            ])
            .is_empty()
        );
    }
}
