//! Who is here: what an operator sees of each session, and how a session is told to end.

use crate::known::pace::Pace;
use backend::{Backend, Hold, Holds, Lingers};
use bridge::{Killed, Kills};
use config::Snapshot;
use rt::local::Bell;
use rt::{Instant, Rt};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;
use wire::connect_attributes::ConnectAttributes;

/// Bytes of a running statement that the processlist shows.
const INFO_MAX: usize = 100;
/// So long a question of ours may take once its statement was interrupted.
const QUESTION_AT_MOST: Duration = Duration::from_secs(1);

/// A connection that a session holds.
pub(crate) struct Holding {
    pub(crate) hostgroup: u32,
    pub(crate) place: Rc<backend::Place>,
    pub(crate) server_thread_id: u32,
    pub(crate) holds: Holds,
    pub(crate) since: Instant,
}

/// Facts of a session that others may see.
pub(crate) struct Entry {
    pub(crate) id: u32,
    pub(crate) user: RefCell<Rc<str>>,
    pub(crate) schema: RefCell<Rc<str>>,
    pub(crate) client: (String, u16),
    pub(crate) attributes: RefCell<Rc<ConnectAttributes>>,
    /// Address of the client, unless it came by a Unix socket.
    pub(crate) address: Option<SocketAddr>,
    pub(crate) command: Cell<&'static str>,
    pub(crate) hostgroup: Cell<Option<u32>>,
    pub(crate) server: RefCell<Option<(Rc<backend::Place>, rt::Address)>>,
    /// For which statement that was.
    served: Cell<u32>,
    pub(crate) since: Cell<Instant>,
    /// When its open transaction was first seen.
    pub(crate) transaction_since: Cell<Option<Instant>>,
    /// Whether the session asks for warnings in ways that only a server can answer.
    pub(crate) asks_servers_for_warnings: Cell<bool>,
    /// Number of the statement that is at work, or was last.
    pub(crate) statement: Cell<u32>,
    /// The connections that it held when its last command ended.
    pub(crate) holding: RefCell<Vec<Holding>>,
    info: Cell<[u8; INFO_MAX]>,
    /// Bytes of it that count.
    info_len: Cell<u8>, // <= INFO_MAX
    /// End: the session, or only what it runs.
    pub(crate) killed: Cell<bool>,
    /// Whether another client ended the session, and no operator.
    pub(crate) by_client: Cell<bool>,
    pub(crate) interrupted: Cell<bool>,
    /// The server of the running statement is cut off.
    pub(crate) cut: Cell<bool>,
    /// Whether the session is silent, and somebody needs what it keeps for the id of an insert.
    pub(crate) leaves: Cell<bool>,
    /// Whether the session keeps a connection in its silence only for what that remembers.
    pub(crate) lingers: Cell<bool>,
    /// Hostgroups in which it is on the list of those that may be told to leave such a connection.
    listed: RefCell<Vec<u32>>,
    /// COMMIT RELEASE: it ends when its command is answered.
    pub(crate) released: Cell<bool>,
    pub(crate) bell: Bell,
    /// How much of what it may be sent it has had.
    pub(crate) pace: Pace,
}

impl Entry {
    /// Another statement has come.
    pub(crate) fn next_statement(&self) {
        self.statement.set(self.statement.get().wrapping_add(1));
    }

    pub(crate) fn new(id: u32, client: (String, u16), now: Instant) -> Self {
        Self {
            id,
            user: RefCell::new("".into()),
            schema: RefCell::new("".into()),
            address: client
                .0
                .parse()
                .ok()
                .map(|ip| SocketAddr::new(ip, client.1)),
            client,
            attributes: RefCell::default(),
            command: Cell::new("Connect"),
            hostgroup: Cell::new(None),
            server: RefCell::new(None),
            served: Cell::new(0),
            since: Cell::new(now),
            transaction_since: Cell::new(None),
            asks_servers_for_warnings: Cell::new(false),
            statement: Cell::new(0),
            holding: RefCell::default(),
            info: Cell::new([0; INFO_MAX]),
            info_len: Cell::new(0),
            killed: Cell::new(false),
            by_client: Cell::new(false),
            interrupted: Cell::new(false),
            cut: Cell::new(false),
            leaves: Cell::new(false),
            lingers: Cell::new(false),
            listed: RefCell::default(),
            released: Cell::new(false),
            bell: Bell::new(),
            pace: Pace::new(now),
        }
    }

    /// A command has come: what the session is told from now on is about it.
    pub(crate) fn comes(&self, command: &'static str) {
        self.command.set(command);
        self.info_len.set(0);
        self.interrupted.set(false);
        self.cut.set(false);
        self.leaves.set(false);
        self.lingers.set(false);
    }

    /// A statement of it begins, or the one that it is.
    pub(crate) fn begins(&self, command: &'static str, text: &[u8], now: Instant) {
        let mut info = [0; INFO_MAX];
        let n = text.len().min(INFO_MAX);
        info[..n].copy_from_slice(&text[..n]);
        self.info.set(info);
        self.info_len
            .set(u8::try_from(n).expect("INFO_MAX fits a byte"));
        self.command.set(command);
        self.since.set(now);
    }

    /// The connection that it uses.
    pub(crate) fn works_on(&self, hostgroup: u32, backend: &Backend) {
        self.uses(hostgroup, backend.place(), &backend.conn.socket().local());
    }

    /// Notes the connection that the session uses, where others use it as well.
    pub(crate) fn uses(&self, hostgroup: u32, place: &Rc<backend::Place>, local: &rt::Address) {
        self.hostgroup.set(Some(hostgroup));
        self.server.replace(Some((place.clone(), local.clone())));
        self.served.set(self.statement.get());
        self.cut.set(false);
    }

    /// A connection was used for the statement that is at work, or was last.
    pub(crate) fn asks_a_server(&self) -> bool {
        self.served.get() == self.statement.get()
    }

    /// Notes that the session's command has ended.
    pub(crate) fn rests(&self, now: Instant) {
        self.command.set("Sleep");
        self.since.set(now);
    }

    pub(crate) fn info(&self) -> Option<String> {
        let (bytes, n) = (self.info.get(), self.info_len.get());
        (self.command.get() != "Sleep" && n > 0)
            .then(|| String::from_utf8_lossy(&bytes[..usize::from(n)]).into_owned())
    }

    /// Milliseconds that its open transaction may last on; none when the time is over.
    pub(crate) fn transaction_left(&self, now: Instant, max_ms: u64) -> Option<u64> {
        let since = self.transaction_since.get().unwrap_or(now);
        self.transaction_since.set(Some(since));
        let open_ms = u64::try_from((now - since).as_millis()).unwrap_or(u64::MAX);
        max_ms.checked_sub(open_ms).filter(|left| *left > 0)
    }

    /// Tells the session to end, or to end what it runs.
    fn is_told_by(&self, client: bool, does: Kills) {
        match does {
            Kills::Session => {
                self.by_client.set(client);
                self.killed.set(true);
            }
            Kills::Statement => self.interrupted.set(true),
            Kills::Nothing => return,
        }
        self.bell.ring();
    }

    /// Resolves when the session, or its statement, is to end.
    pub(crate) async fn told_to_end(&self) {
        while !self.killed.get() && !self.interrupted.get() {
            self.bell.heard().await;
        }
    }

    /// Resolves when the session is to end, or the server of its statement is cut off.
    pub(crate) async fn told_to_leave(&self) {
        while !self.killed.get() && !self.cut.get() {
            self.bell.heard().await;
        }
    }

    /// Resolves when something may stop a question of ours. Of KILL QUERY nobody hears where the
    /// statement is `answered`, for which that came too late. Else the question has a moment to be
    /// answered, so that the statement is ended and not the connection with all that it is held
    /// for.
    pub(crate) async fn told_while_asking(&self, rt: &Rt, answered: bool) {
        if !answered {
            self.told(false).await;
            if !self.killed.get() && !self.cut.get() {
                let _late = rt.timeout(QUESTION_AT_MOST, self.told_to_leave()).await;
            }
            return;
        }
        self.told_to_leave().await;
    }

    /// As [`Entry::told_to_end`], or when the server of the statement is cut off; and once the
    /// statement was `interrupted`: when the session is to end, or the bell rings for any other
    /// reason.
    pub(crate) async fn told(&self, interrupted: bool) {
        while !self.killed.get() && !self.cut.get() && (interrupted || !self.interrupted.get()) {
            self.bell.heard().await;
            if interrupted {
                return;
            }
        }
    }
}

impl Lingers for Entry {
    fn lingers_since(&self) -> Option<Instant> {
        let silent = self.lingers.get() && self.command.get() == "Sleep";
        silent.then(|| self.since.get())
    }

    fn leave(&self) {
        self.leaves.set(true);
        self.bell.ring();
    }

    fn is_listed(&self, hostgroup: u32, now: bool) -> bool {
        let mut listed = self.listed.borrow_mut();
        let at = listed.iter().position(|one| *one == hostgroup);
        match (at, now) {
            (None, true) => listed.push(hostgroup),
            (Some(at), false) => {
                listed.swap_remove(at);
            }
            _ => {}
        }
        at.is_some()
    }
}

/// All sessions of a core.
#[derive(Default)]
pub(crate) struct Roster(RefCell<BTreeMap<u32, Rc<Entry>>>);

impl Roster {
    pub(crate) fn add(&self, entry: Rc<Entry>) {
        self.0.borrow_mut().insert(entry.id, entry);
    }

    pub(crate) fn has(&self, id: u32) -> bool {
        self.0.borrow().contains_key(&id)
    }

    pub(crate) fn remove(&self, id: u32) {
        self.0.borrow_mut().remove(&id);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.borrow().len()
    }

    pub(crate) fn all(&self) -> Vec<Rc<Entry>> {
        self.0.borrow().values().cloned().collect()
    }

    /// Tell one to end, if it is here and the owner's.
    pub(crate) fn kill(&self, id: u32, statement_only: bool, owner: Option<&str>) -> Killed {
        let Some(entry) = self.0.borrow().get(&id).cloned() else {
            return Killed::Unknown;
        };
        if owner.is_some_and(|owner| *owner != **entry.user.borrow()) {
            return Killed::NotYours;
        }
        entry.is_told_by(
            owner.is_some(),
            if statement_only {
                Kills::Statement
            } else {
                Kills::Session
            },
        );
        Killed::Done
    }

    /// Tells all to end.
    pub(crate) fn kill_all(&self) {
        for entry in self.all() {
            entry.is_told_by(false, Kills::Session);
        }
    }

    /// As [`Roster::kill`], of all of a user that come from this address, or from anywhere, but one. How many
    /// there are.
    pub(crate) fn kill_user(&self, user: &str, host: Option<&str>, but: u32, does: Kills) -> u64 {
        let is_his = |entry: &&Rc<Entry>| {
            entry.id != but
                && **entry.user.borrow() == *user
                && host.is_none_or(|host| entry.client.0 == host)
        };
        self.0
            .borrow()
            .values()
            .filter(is_his)
            .inspect(|entry| entry.is_told_by(true, does))
            .count() as u64
    }

    /// Sessions with an open transaction, and sessions that are bound to their user's hostgroup, as
    /// of the end of their last commands.
    pub(crate) fn open_and_locked(&self, snapshot: &Snapshot) -> (u64, u64) {
        let lock_on_set = snapshot.variables.mysql_set_query_lock_on_hostgroup == 1;
        let (mut open, mut locked) = (0, 0);
        for entry in self.0.borrow().values() {
            let holding = entry.holding.borrow();
            if holding.is_empty() {
                continue;
            }
            open += u64::from(
                holding
                    .iter()
                    .any(|held| held.holds.has(Hold::Transaction) || held.holds.has(Hold::Xa)),
            );
            let own = snapshot
                .users
                .frontend(&entry.user.borrow())
                .map(|user| user.default_hostgroup);
            locked += u64::from(
                holding
                    .iter()
                    .any(|held| Some(held.hostgroup) == own && draws(held.holds, lock_on_set)),
            );
        }
        (open, locked)
    }

    /// Ring all bells: whoever waits looks at the core's state again.
    pub(crate) fn ring(&self) {
        for entry in self.0.borrow().values() {
            entry.bell.ring();
        }
    }
}

/// Whether a connection to the user's own hostgroup with these draws all of the session's
/// statements there.
pub(crate) fn draws(holds: Holds, lock_on_set: bool) -> bool {
    let has = |any: &[Hold]| any.iter().any(|hold| holds.has(*hold));
    has(&[
        Hold::TemporaryTable,
        Hold::TableLock,
        Hold::SqlPrepare,
        Hold::Handler,
    ]) || (lock_on_set
        && has(&[
            Hold::UserVariable,
            Hold::Procedure,
            Hold::Untold,
            Hold::UnknownState,
        ]))
}
