//! What this core knows of one server in one hostgroup: its row, its idle connections, its health
//! and its numbers.

use crate::connection::backend::Backend;
use crate::connection::lease::OpenedAs;
use crate::servers::choice::Choice;
use crate::servers::flight::InFlight;
use crate::servers::room::{self, Room};
use crate::servers::said::Tracks;
use crate::servers::server::Server;
use crate::session::key::OF_CLIENT;
use crate::session::want::{Shows, Want};
use bridge::{ConcurrencyRow, PoolRow, ServerState};
use config::{Concurrency, Server as Row};
use net::Secret;
use plan::Limit;
use rt::Instant;
use rt::permits::Registry;
use std::cell::{Cell, RefCell};
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use topology::{Serves, Why};
use wire::caps;
use wire::track::Wish;

/// A server of a hostgroup, on this core.
pub struct Place {
    row: RefCell<Arc<Row>>,
    /// The server, which may be in other hostgroups as well.
    pub(crate) known: Rc<Server>,
    pub(crate) choice: Choice,
    /// The limit of statements in flight there, if there is one.
    pub(crate) in_flight: InFlight,
    /// Whether it serves here, as the operator and the checks say.
    serves: RefCell<Serves>,
    /// No longer in its hostgroup.
    gone: Cell<bool>,
    /// Whether the server serves elsewhere in its topology, and ends what it has here.
    moved: Cell<bool>,
    #[expect(
        clippy::vec_box,
        reason = "it goes in and out with every command; a pointer moves cheaper than all of it"
    )]
    pub(crate) idle: RefCell<Vec<Box<Backend>>>,
    /// Limits that the server's connections count in, over all cores.
    pub(crate) room: Room,
    /// Connections that its hostgroup may have, to all servers together.
    pub(crate) group_max: Cell<u32>,
    /// More servers of its hostgroup are ONLINE than its max_num_online_servers allows: none of
    /// them takes work.
    pub(crate) one_of_too_many: Cell<bool>,
    /// The writer of its topology, which also reads here.
    pub(crate) is_reading_writer: Cell<bool>,
    /// Connections that are being opened to it here.
    pub(crate) opening: Cell<u32>,
    /// Version of the header of the PROXY protocol that the server wants; 0 for none.
    pub(crate) proxy_protocol: Cell<u8>,
    /// Statements that the server's connections begin with.
    init_connect: RefCell<Option<Rc<str>>>,
    /// Whether its connections are asked to tell GTIDs.
    pub(crate) collects_gtids: Cell<bool>,
    /// Whether clients are told of no GTIDs, not even those that have asked for them.
    pub(crate) hides_gtids: Cell<bool>,
    /// All that a server tells but GTIDs, for clients of connections that were asked for them.
    pub(crate) without_gtids: Arc<Wish>,
    /// Whether its connections are reset by COM_CHANGE_USER.
    pub(crate) resets_by_login: Cell<bool>,
    /// Who was let in last: for whom connections are opened ahead.
    pub(crate) last_in: RefCell<Option<Rc<LetIn>>>,
    /// Connections are being opened ahead.
    pub(crate) warming: Cell<bool>,
    /// When it did not let in a client that another server had let in.
    pub(crate) refused_beside: Cell<Option<Instant>>,
    pub(crate) numbers: Numbers,
    heard: Cell<Heard>,
    /// Session tracking of the server: what it tells of changes in sessions.
    pub(crate) tracks: RefCell<Tracks>,
    /// How it reads texts by itself: [`crate::MODES`] of its status flags that all of its
    /// connections have had, and that any of them has had (an operator may change them, or its
    /// `init_connect`, and connections stay as they are); `None` before it has said.
    pub(crate) own_modes: Cell<Option<(u16, u16)>>,
}

/// Why new work may not go to a server of a hostgroup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WhyNot {
    /// Its row says so, it is not in the hostgroup any more, or does not answer checks.
    Offline,
    /// Its weight is 0, and it is not there for when no other can serve.
    NoWeight,
    /// More servers are ONLINE than the hostgroup's max_num_online_servers allows.
    OneOfTooMany,
    /// Too far behind its source, or too slow to answer.
    Behind,
    /// Failures to connect, for which the server is left alone.
    Shunned,
}

/// Whom a server has let in, and how.
pub(crate) struct LetIn {
    pub(crate) user: Box<str>,
    pub(crate) secret: Secret,
    pub(crate) caps: caps::Caps,
    pub(crate) collation: u16,
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
    pub(crate) queries_gtid_sync: Cell<u64>,
    pub(crate) sent: Cell<u64>,
    pub(crate) received: Cell<u64>,
    pub(crate) latency_us: Cell<u64>,
}

/// Counters of a server as a sweep has found them, and what that means.
#[derive(Debug, Clone, Copy, Default)]
struct Heard {
    queries: u64,
    received: u64,
    quiet: Quiet,
}

/// Silence of a server while connections to it are in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Quiet {
    /// Nobody waits.
    #[default]
    Idle,
    /// Something was asked or heard since the sweep before: an answer may be on its way.
    Busy,
    /// Nothing was heard from one sweep to the next, and somebody has been told.
    Told,
}

pub(crate) fn bump(cell: &Cell<u64>, by: u64) {
    cell.set(cell.get().wrapping_add(by));
}

impl Place {
    pub(crate) fn new(row: Arc<Row>, room: Room, known: Rc<Server>) -> Rc<Self> {
        Rc::new(Self {
            row: RefCell::new(row),
            known,
            choice: Choice::default(),
            in_flight: InFlight::default(),
            serves: RefCell::new(Serves::Yes),
            gone: Cell::new(false),
            moved: Cell::new(false),
            idle: RefCell::default(),
            room,
            group_max: Cell::new(room::UNLIMITED),
            one_of_too_many: Cell::new(false),
            is_reading_writer: Cell::new(false),
            opening: Cell::new(0),
            proxy_protocol: Cell::new(0),
            init_connect: RefCell::default(),
            collects_gtids: Cell::new(false),
            hides_gtids: Cell::new(false),
            without_gtids: Arc::new(Wish::new("*", true, true).without_gtids()),
            resets_by_login: Cell::new(false),
            last_in: RefCell::default(),
            warming: Cell::new(false),
            refused_beside: Cell::default(),
            numbers: Numbers::default(),
            heard: Cell::default(),
            tracks: RefCell::default(),
            own_modes: Cell::new(None),
        })
    }

    /// Its row in `mysql_servers`.
    #[must_use]
    pub fn server(&self) -> Arc<Row> {
        self.row.borrow().clone()
    }

    /// Its hostname, shared.
    #[must_use]
    pub fn host(&self) -> &Arc<str> {
        &self.known.host
    }

    pub(crate) fn weight(&self) -> u32 {
        self.row.borrow().weight
    }

    /// `max_connections` of its row.
    pub(crate) fn row_max(&self) -> u32 {
        self.row.borrow().max_connections
    }

    pub(crate) fn update(&self, placed: &topology::Place, now: Instant) {
        let row = &placed.server;
        self.gone.set(false);
        let is_new = !Arc::ptr_eq(&*self.row.borrow(), row);
        if is_new {
            self.known.refusals.forget();
        }
        let same_tls = self.has_same_tls(row);
        *self.row.borrow_mut() = row.clone();
        let reads = placed.why == Some(Why::WriterReads);
        self.is_reading_writer.set(reads);
        let was = self.serves.replace(placed.serves.clone());
        if matches!(was, Serves::No(Why::Missing(_))) && placed.serves == Serves::Yes {
            // A check has just had an answer: who could not connect before may now.
            self.known.is_well(now);
        }
        if !same_tls || !self.keeps() {
            self.idle.borrow_mut().clear();
        }
    }

    /// Another header, or none: no connection that was opened with the one before is for anybody.
    pub(crate) fn speaks(&self, proxy_protocol: u8) {
        if self.proxy_protocol.replace(proxy_protocol) != proxy_protocol {
            self.idle.borrow_mut().clear();
        }
    }

    /// Whether its connections tell GTIDs from now on: those that do not are for nobody who writes.
    pub(crate) fn collects(&self, gtids: bool) {
        if self.collects_gtids.replace(gtids) != gtids && gtids {
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

    fn has_same_tls(&self, row: &Arc<Row>) -> bool {
        let now = self.row.borrow();
        Arc::ptr_eq(&now, row)
            || now.use_ssl == row.use_ssl
                && now.ssl == row.ssl
                && now.ssl_of_users == row.ssl_of_users
    }

    pub(crate) fn has_left(&self) -> bool {
        self.gone.get()
    }

    /// Out of the hostgroup. `moved`: it serves elsewhere in its topology, so that what runs here
    /// may end, and a transaction that is open as well.
    pub(crate) fn leave(&self, moved: bool) {
        self.gone.set(true);
        self.moved.set(moved);
        self.idle.borrow_mut().clear();
    }

    /// Whether new work may go there, and why not. Nothing else says so.
    pub(crate) fn may_serve(&self, now: Instant) -> Result<(), WhyNot> {
        if !self.keeps() {
            return Err(WhyNot::Offline);
        }
        if !self.has_weight() {
            return Err(WhyNot::NoWeight);
        }
        if self.one_of_too_many.get() {
            return Err(WhyNot::OneOfTooMany);
        }
        if self.is_behind() {
            return Err(WhyNot::Behind);
        }
        if self.known.is_shunned(now) {
            return Err(WhyNot::Shunned);
        }
        Ok(())
    }

    /// Whether the server lags, or takes long to answer.
    fn is_behind(&self) -> bool {
        matches!(
            *self.serves.borrow(),
            Serves::Drains(Why::Lags(..) | Why::IsSlow(..) | Why::IsBehind(..) | Why::IsLate(..))
        )
    }

    /// Whether new work may go there.
    pub(crate) fn serves(&self, now: Instant) -> bool {
        self.may_serve(now).is_ok()
    }

    /// May an idle connection be kept for later?
    #[must_use]
    pub fn keeps(&self) -> bool {
        #[cfg(debug_assertions)]
        if crate::planted::WORK_OFFLINE.get() {
            return !self.gone.get();
        }
        let serves = *self.serves.borrow() == Serves::Yes || self.is_behind();
        !self.gone.get() && serves
    }

    /// OFFLINE_HARD, not there, or taken out of this hostgroup: running statements are to end too.
    #[must_use]
    pub fn is_cut_off(&self) -> bool {
        #[cfg(debug_assertions)]
        if crate::planted::STAY_THERE.get() {
            return false;
        }
        let taken_out = self.gone.get() && !self.moved.get();
        taken_out || matches!(*self.serves.borrow(), Serves::No(_))
    }

    pub(crate) fn connected(&self, took: Duration, now: Instant) {
        bump(&self.numbers.ok, 1);
        self.numbers
            .latency_us
            .set(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
        self.known.is_well(now);
    }

    /// The server is well, and does not want this user.
    pub(crate) fn refused(&self) {
        bump(&self.numbers.err, 1);
    }

    /// Address of its name that is in use; `None` if nobody has looked, or it has one anyway.
    pub(crate) fn at(&self) -> Option<IpAddr> {
        self.known.at
    }

    /// Whether it is the place of this host, port and address.
    pub(crate) fn is_of(&self, host: &str, port: u16, at: Option<IpAddr>) -> bool {
        *self.known.host == *host && self.row.borrow().port == port && self.known.at == at
    }

    /// An attempt to connect has failed. So many within a second shun the server; the idle
    /// connections of one that is shunned are dropped.
    pub(crate) fn failed(&self, now: Instant, shun_on_failures: u64, recovery: Duration) {
        bump(&self.numbers.err, 1);
        if self.known.has_not_answered(now, shun_on_failures, recovery) {
            self.idle.borrow_mut().clear();
        }
    }

    /// Whether connections are in use and not a byte has come since the last sweep, of which nobody has
    /// been told yet. It is asked once a sweep, and costs statements nothing.
    pub(crate) fn falls_silent(&self) -> bool {
        let before = self.heard.get();
        let (queries, received) = (self.numbers.queries.get(), self.numbers.received.get());
        let (asked, heard) = (queries != before.queries, received != before.received);
        let quiet = match before.quiet {
            _ if self.numbers.used.get() == 0 => Quiet::Idle,
            _ if heard => Quiet::Busy,
            Quiet::Busy => Quiet::Told,
            // Whoever asks again waits, too.
            Quiet::Idle | Quiet::Told if asked => Quiet::Busy,
            still => still,
        };
        self.heard.set(Heard {
            queries,
            received,
            quiet,
        });
        quiet == Quiet::Told && before.quiet == Quiet::Busy
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
        let shunned = self.known.is_shunned(now);
        let state = match &*self.serves.borrow() {
            Serves::Yes if shunned => ServerState::Shunned,
            Serves::Yes => ServerState::Online,
            Serves::Drains(Why::Lags(..) | Why::IsBehind(..) | Why::IsLate(..)) => {
                ServerState::ShunnedReplicationLag
            }
            Serves::Drains(Why::Status(_)) => ServerState::OfflineSoft,
            Serves::No(Why::Status(_)) => ServerState::OfflineHard,
            Serves::Drains(_) | Serves::No(_) => ServerState::Shunned,
        };
        let report = PoolRow {
            hostgroup: row.hostgroup,
            host: self.known.host.clone(),
            port: row.port,
            state,
            used: n.used.get(),
            free: self.idle.borrow().len() as u64,
            ok: n.ok.get(),
            err: n.err.get(),
            used_max: n.used_max.get(),
            queries: n.queries.get(),
            queries_gtid_sync: n.queries_gtid_sync.get(),
            bytes_sent: n.sent.get(),
            bytes_received: n.received.get(),
            latency_us: n.latency_us.get(),
        };
        if reset {
            for cell in [
                &n.ok,
                &n.err,
                &n.queries,
                &n.queries_gtid_sync,
                &n.sent,
                &n.received,
            ] {
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

    /// For whom alone a connection may be used: where servers are told who the client is, for that
    /// one.
    pub(crate) fn client_of(&self, want: &Want<'_>) -> Option<IpAddr> {
        want.client
            .filter(|_| self.proxy_protocol.get() > 0)
            .map(|at| at.ip())
    }

    /// Whether this session's statement may go there: the server serves, and has what it must see.
    pub(crate) fn serves_for(&self, want: &Want<'_>, now: Instant) -> bool {
        self.serves(now) && want.must_see.is_none_or(|what| self.shows(what))
    }

    /// Whether a read there sees this.
    #[must_use]
    pub fn shows(&self, what: Shows<'_>) -> bool {
        match what {
            Shows::NotBefore { or_writes, .. } if self.is_reading_writer.get() => or_writes,
            _ => self.known.shows(what),
        }
    }

    /// A statement goes there because it has what that must see.
    pub fn is_seen_at(&self) {
        bump(&self.numbers.queries_gtid_sync, 1);
    }

    /// Whether its connections are asked to tell GTIDs.
    #[must_use]
    pub fn collects_gtids(&self) -> bool {
        self.collects_gtids.get()
    }

    /// Whether it is one of those that clients are sent to.
    pub(crate) fn is_working(&self) -> bool {
        self.keeps() && self.has_weight()
    }

    /// Connections to it, of all cores, and those that are being opened.
    pub(crate) fn taken(&self) -> u32 {
        self.room.of_server.taken()
    }

    /// Statements that one connection may keep, of `most`: fewer where the server has said how many
    /// all of them may have.
    pub(crate) fn stmts_max(&self, most: u64) -> u64 {
        self.known.allowed.share(most, self.taken())
    }

    /// Whether it serves when no other of its hostgroup can.
    pub(crate) fn is_last(&self) -> bool {
        self.choice.is_last.get()
    }

    /// Whether it may serve by its weight, if only as the last.
    fn has_weight(&self) -> bool {
        self.weight() > 0 || self.is_last()
    }

    /// Somebody was let in.
    pub(crate) fn lets_in(&self, want: &Want<'_>) {
        // What is the client's own in all that a login says is of no use to others. Who may come in
        // with an expired password may have come into a sandbox, which stays one after the password
        // is new; MySQL tells nothing of it.
        if want.like.is_some()
            || want.secret.is_relayed()
            || caps::has(want.caps, caps::EXPIRED_PASSWORDS)
        {
            return;
        }
        let mut last = self.last_in.borrow_mut();
        let same = |last: &Rc<LetIn>| {
            *last.user == *want.user
                && last.secret == *want.secret
                && last.caps == want.caps & OF_CLIENT
                && last.collation == want.collation
        };
        if !last.as_ref().is_some_and(same) {
            let (user, secret) = (want.user.into(), want.secret.clone());
            *last = Some(Rc::new(LetIn {
                user,
                secret,
                caps: want.caps & OF_CLIENT,
                collation: want.collation,
            }));
        }
    }

    /// Its row of `stats_millrace_concurrency`.
    pub(crate) fn report_concurrency(&self) -> Option<ConcurrencyRow> {
        let (limit, permits) = self.in_flight.limit()?;
        let (flow, row) = (permits.flow(), self.server());
        let base_ns = Limit::from_words(flow.words()).map_or(0, |limit| limit.base_ns());
        Some(ConcurrencyRow {
            hostgroup: row.hostgroup,
            host: self.host().clone(),
            port: row.port,
            limit,
            in_flight: permits.taken(),
            baseline_us: base_ns / 1000,
            latency_us: flow.mean_ns() / 1000,
        })
    }

    /// Takes over whether statements in flight are limited.
    pub(crate) fn limits(&self, bounds: Option<Concurrency>, registry: &Registry) {
        self.in_flight.limits(bounds, || {
            let row = self.row.borrow();
            let (hostgroup, host, port) = (row.hostgroup, self.host(), row.port);
            registry.get(&format!("in flight {hostgroup} {host}:{port}"))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_falls_silent_once_while_somebody_waits_for_it() {
        let place = crate::testing::place();
        let sweeps = |many: usize| (0..many).map(|_| place.falls_silent()).collect::<Vec<_>>();
        let (queries, received) = (&place.numbers.queries, &place.numbers.received);
        assert_eq!(sweeps(3), [false; 3], "nobody is there");
        place.begin_use();
        bump(queries, 1);
        assert_eq!(sweeps(4), [false, true, false, false]);
        bump(queries, 1);
        assert_eq!(sweeps(3), [false, true, false], "another one waits");
        for _ in 0..5 {
            bump(queries, 1);
            bump(received, 100);
            assert_eq!(sweeps(1), [false], "it answers");
        }
        // The last of them may have no answer yet.
        assert_eq!(sweeps(2), [true, false]);
        bump(queries, 1);
        assert_eq!(sweeps(1), [false]);
        place.end_use();
        assert_eq!(sweeps(2), [false; 2], "nobody waits any more");
    }
}
