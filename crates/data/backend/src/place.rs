//! What this core knows of one server in one hostgroup: its row, its idle connections, its health
//! and its numbers.

use crate::Backend;
use crate::room::{self, Room};
use bridge::{PoolRow, ServerState};
use config::{Server, Status};
use hashbrown::HashSet;
use rt::{Address, Instant};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// So long after an attempt to connect has failed nothing is taken from other servers for this one.
const FAILED_LATELY: Duration = Duration::from_secs(10);

/// A server of a hostgroup, on this core.
pub struct Place {
    row: RefCell<Arc<Server>>,
    /// No longer in the configuration.
    gone: Cell<bool>,
    #[expect(
        clippy::vec_box,
        reason = "it goes in and out with every command; a pointer moves cheaper than all of it"
    )]
    pub(crate) idle: RefCell<Vec<Box<Backend>>>,
    /// What its connections count in, over all cores.
    pub(crate) room: Room,
    /// Connections that its hostgroup may have, to all servers together.
    pub(crate) group_max: Cell<u32>,
    /// More servers of its hostgroup are ONLINE than its max_num_online_servers allows: none of
    /// them takes work.
    pub(crate) one_of_too_many: Cell<bool>,
    pub(crate) full: room::Full,
    /// Connections that are being opened to it here.
    pub(crate) opening: Cell<u32>,
    shunned_until: Cell<Option<Instant>>,
    failures: Cell<u64>,
    failures_since: Cell<Option<Instant>>,
    /// When an operator was last told of a refusal.
    told: Cell<Option<Instant>>,
    /// Version of the header of the PROXY protocol that the server wants; 0 for none.
    pub(crate) proxy_protocol: Cell<u8>,
    /// What its connections begin with.
    init_connect: RefCell<Option<Rc<str>>>,
    /// Whether its connections are reset by COM_CHANGE_USER.
    pub(crate) resets_by_login: Cell<bool>,
    /// Who was let in last: for whom connections are opened ahead.
    pub(crate) last_in: RefCell<Option<Rc<crate::warm::LetIn>>>,
    /// Connections are being opened ahead.
    pub(crate) warming: Cell<bool>,
    /// Addresses of its name where nobody answered lately, and when.
    pub(crate) silent: RefCell<Vec<(Address, Instant)>>,
    /// Users of whom only the second password was right here.
    pub(crate) second_password: RefCell<HashSet<Box<str>>>,
    pub(crate) numbers: Numbers,
    /// Whom it does not tell what procedures have left.
    pub(crate) refusals: crate::left::Refusals,
    /// What it tells of changes in sessions.
    pub(crate) tracks: RefCell<crate::track::Tracks>,
    /// What it makes of collations in logins that it does not know, in the words of a SET.
    pub(crate) made_of: RefCell<Vec<(u16, Rc<str>)>>,
    /// How it reads texts by itself: [`crate::MODES`] of its status flags that all of its
    /// connections have had, and that any of them has had (an operator may change them, or its
    /// `init_connect`, and connections stay as they are); `None` before it has said.
    pub(crate) own_modes: Cell<Option<(u16, u16)>>,
    /// The collation that it gives to sessions by itself, as its last greeting said; 0 before it
    /// has.
    pub(crate) own_collation: Cell<u8>,
    /// Whether it has MariaDB's COM_STMT_BULK_EXECUTE, as its last greeting said; `None` before it
    /// has.
    pub(crate) has_bulk: Cell<Option<bool>>,
    /// The version that it has greeted with last.
    pub(crate) version: RefCell<Option<Rc<str>>>,
    host: Arc<str>,
}

/// What was configured when a connection was opened, as far as it cannot be changed afterwards.
#[derive(Debug, Clone)]
pub(crate) struct OpenedAs {
    /// The server's, with its TLS.
    pub(crate) row: Arc<Server>,
    /// Version of the header that told the server who the client is; 0 for none.
    pub(crate) proxy_protocol: u8,
}

impl std::fmt::Debug for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let row = self.row.borrow();
        write!(f, "Place({} {}:{})", row.hostgroup, row.hostname, row.port)
    }
}

/// Counters of a server.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    pub(crate) used: Cell<u64>,
    pub(crate) used_max: Cell<u64>,
    pub(crate) ok: Cell<u64>,
    pub(crate) err: Cell<u64>,
    pub(crate) queries: Cell<u64>,
    pub(crate) sent: Cell<u64>,
    pub(crate) received: Cell<u64>,
    pub(crate) latency_us: Cell<u64>,
}

pub(crate) fn bump(cell: &Cell<u64>, by: u64) {
    cell.set(cell.get().wrapping_add(by));
}

impl Place {
    pub(crate) fn new(row: Arc<Server>, room: Room) -> Rc<Self> {
        let host = row.hostname.as_ref().into();
        Rc::new(Self {
            row: RefCell::new(row),
            gone: Cell::new(false),
            idle: RefCell::default(),
            room,
            group_max: Cell::new(room::UNLIMITED),
            one_of_too_many: Cell::new(false),
            full: room::Full::default(),
            opening: Cell::new(0),
            shunned_until: Cell::new(None),
            failures: Cell::new(0),
            failures_since: Cell::new(None),
            told: Cell::new(None),
            proxy_protocol: Cell::new(0),
            init_connect: RefCell::default(),
            resets_by_login: Cell::new(false),
            last_in: RefCell::default(),
            warming: Cell::new(false),
            silent: RefCell::default(),
            second_password: RefCell::default(),
            numbers: Numbers::default(),
            refusals: crate::left::Refusals::default(),
            tracks: RefCell::default(),
            made_of: RefCell::default(),
            own_modes: Cell::new(None),
            own_collation: Cell::new(0),
            has_bulk: Cell::new(None),
            version: RefCell::default(),
            host,
        })
    }

    /// Its row in `mysql_servers`.
    #[must_use]
    pub fn server(&self) -> Arc<Server> {
        self.row.borrow().clone()
    }

    /// Its hostname, shared.
    #[must_use]
    pub fn host(&self) -> &Arc<str> {
        &self.host
    }

    pub(crate) fn weight(&self) -> u32 {
        self.row.borrow().weight
    }

    pub(crate) fn update(&self, row: Arc<Server>) {
        self.gone.set(false);
        self.refusals.forget();
        let takes = row.status == Status::Online && self.has_same_tls(&row);
        *self.row.borrow_mut() = row;
        if !takes {
            self.idle.borrow_mut().clear();
        }
    }

    /// Another header, or none: no connection that was opened with the one before is for anybody.
    pub(crate) fn speaks(&self, proxy_protocol: u8) {
        if self.proxy_protocol.replace(proxy_protocol) != proxy_protocol {
            self.idle.borrow_mut().clear();
        }
    }

    /// Another init_connect, or none: connections that began with the one before, or without, would
    /// not be like the others.
    pub(crate) fn begins_with(&self, init_connect: Option<&str>) {
        if self.init_connect.borrow().as_deref() != init_connect {
            self.init_connect.replace(init_connect.map(Into::into));
            self.idle.borrow_mut().clear();
        }
    }

    /// Whether a connection that was opened so, and began with this init_connect, would be opened
    /// in the same way today.
    pub(crate) fn is_alike(&self, opened: &OpenedAs, init_connect: Option<&str>) -> bool {
        self.has_same_tls(&opened.row)
            && self.proxy_protocol.get() == opened.proxy_protocol
            && self.init_connect.borrow().as_deref() == init_connect
    }

    /// How a connection is opened now.
    pub(crate) fn opened_as(&self) -> OpenedAs {
        OpenedAs {
            row: self.server(),
            proxy_protocol: self.proxy_protocol.get(),
        }
    }

    fn has_same_tls(&self, row: &Arc<Server>) -> bool {
        let now = self.row.borrow();
        Arc::ptr_eq(&now, row)
            || now.use_ssl == row.use_ssl
                && now.ssl == row.ssl
                && now.ssl_of_users == row.ssl_of_users
    }

    pub(crate) fn has_left(&self) -> bool {
        self.gone.get()
    }

    pub(crate) fn leave(&self) {
        self.gone.set(true);
        self.idle.borrow_mut().clear();
    }

    /// May new work go there?
    pub(crate) fn takes(&self, now: Instant) -> bool {
        self.keeps()
            && !self.one_of_too_many.get()
            && self.shunned_until.get().is_none_or(|until| now >= until)
    }

    /// May an idle connection be kept for later?
    pub(crate) fn keeps(&self) -> bool {
        #[cfg(feature = "planted")]
        if crate::planted::WORK_OFFLINE.get() {
            return !self.gone.get();
        }
        !self.gone.get() && self.row.borrow().status == Status::Online
    }

    /// OFFLINE_HARD, or not configured any more: running statements are to end too.
    #[must_use]
    pub fn is_cut_off(&self) -> bool {
        #[cfg(feature = "planted")]
        if crate::planted::STAY_THERE.get() {
            return false;
        }
        self.gone.get() || self.row.borrow().status == Status::OfflineHard
    }

    pub(crate) fn connected(&self, took: Duration) {
        bump(&self.numbers.ok, 1);
        self.numbers
            .latency_us
            .set(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
        self.failures.set(0);
        self.shunned_until.set(None);
    }

    /// The server is well, and does not want this user.
    pub(crate) fn refused(&self) {
        bump(&self.numbers.err, 1);
    }

    /// Once a second.
    pub(crate) fn may_tell(&self, now: Instant) -> bool {
        let may = self
            .told
            .get()
            .is_none_or(|told| now - told >= Duration::from_secs(1));
        if may {
            self.told.set(Some(now));
        }
        may
    }

    /// An attempt failed. So many failures within a second shun the server; all its idle
    /// connections are dropped then.
    pub(crate) fn failed(&self, now: Instant, shun_on_failures: u64, recovery: Duration) {
        bump(&self.numbers.err, 1);
        let fresh = self
            .failures_since
            .get()
            .is_some_and(|since| now - since <= Duration::from_secs(1));
        if !fresh {
            self.failures_since.set(Some(now));
            self.failures.set(0);
        }
        self.failures.set(self.failures.get() + 1);
        if self.failures.get() >= shun_on_failures && shun_on_failures > 0 {
            self.shunned_until.set(Some(now + recovery));
            self.idle.borrow_mut().clear();
        }
    }

    /// The last attempt to connect has failed, a moment ago. Nobody need try again where others can
    /// serve.
    pub(crate) fn has_failed(&self, now: Instant) -> bool {
        self.failures.get() > 0
            && self
                .failures_since
                .get()
                .is_some_and(|since| now - since < FAILED_LATELY)
    }

    pub(crate) fn begin_use(&self) {
        let used = self.numbers.used.get() + 1;
        self.numbers.used.set(used);
        self.numbers
            .used_max
            .set(self.numbers.used_max.get().max(used));
    }

    pub(crate) fn end_use(&self) {
        self.numbers
            .used
            .set(self.numbers.used.get().saturating_sub(1));
    }

    pub(crate) fn report(&self, now: Instant, reset: bool) -> PoolRow {
        let row = self.row.borrow();
        let n = &self.numbers;
        let shunned = self.shunned_until.get().is_some_and(|until| now < until);
        let state = match row.status {
            Status::Online if shunned => ServerState::Shunned,
            Status::Online => ServerState::Online,
            Status::Shunned => ServerState::Shunned,
            Status::OfflineSoft => ServerState::OfflineSoft,
            Status::OfflineHard => ServerState::OfflineHard,
        };
        let report = PoolRow {
            hostgroup: row.hostgroup,
            host: self.host.clone(),
            port: row.port,
            state,
            used: n.used.get(),
            free: self.idle.borrow().len() as u64,
            ok: n.ok.get(),
            err: n.err.get(),
            used_max: n.used_max.get(),
            queries: n.queries.get(),
            bytes_sent: n.sent.get(),
            bytes_received: n.received.get(),
            latency_us: n.latency_us.get(),
        };
        if reset {
            for cell in [&n.ok, &n.err, &n.queries, &n.sent, &n.received] {
                cell.set(0);
            }
            n.used_max.set(n.used.get());
        }
        report
    }

    /// Nothing is left of it here.
    pub(crate) fn is_done(&self) -> bool {
        self.gone.get() && self.numbers.used.get() == 0
    }
}
