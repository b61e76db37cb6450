//! A server as this core knows it by its address, whichever hostgroups it is in: what it has said
//! of itself, and whether it is well.

use crate::servers::said::{Allowed, Full, Refusals};
use crate::session::want::Shows;
use config::Server as Row;
use hashbrown::{HashMap, HashSet};
use rt::{Address, Instant};
use std::cell::{Cell, RefCell};
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// So long after an attempt to connect has failed nothing is taken from other servers for this one.
const FAILED_LATELY: Duration = Duration::from_secs(10);

/// The monitor is not asked more often to look at a server.
const LOOKS: Duration = Duration::from_millis(100);

/// Addresses of a server's name that are remembered to be silent.
const SILENT_MAX: usize = 16;

/// Users of whom it is remembered that a server knows their second password only. When there are
/// more, all are forgotten: each costs one refused login then.
const REMEMBERED_MAX: usize = 4096;

/// Server, with what this core has learnt of it.
pub(crate) struct Server {
    pub(crate) host: Arc<str>,
    /// Address of its name that is in use; `None` if nobody has looked, or it has one anyway.
    pub(crate) at: Option<IpAddr>,
    shunned_until: Cell<Option<Instant>>,
    /// When it was last shunned no more.
    back_since: Cell<Option<Instant>>,
    failures: Cell<u64>,
    failures_since: Cell<Option<Instant>>,
    /// When an operator was last told of a refusal.
    told: Cell<Option<Instant>>,
    /// When the monitor was last asked to look at it.
    looked_at: Cell<Option<Instant>>,
    /// That it has said that it takes no more connections.
    pub(crate) full: Full,
    /// Addresses of its name where nobody answered lately, and when.
    pub(crate) silent: RefCell<Vec<(Address, Instant)>>,
    /// Users of whom only the second password was right here.
    second_password: RefCell<HashSet<Box<str>>>,
    /// Whom it does not tell what procedures have left.
    pub(crate) refusals: Refusals,
    /// Words of a SET for what the server makes of collations in logins that it does not know.
    pub(crate) made_of: RefCell<Vec<(u16, Rc<str>)>>,
    /// The collation that it gives to sessions by itself, as its last greeting said; 0 before it
    /// has.
    pub(crate) own_collation: Cell<u8>,
    /// Whether it has MariaDB's COM_STMT_BULK_EXECUTE, as its last greeting said; `None` before it
    /// has.
    pub(crate) has_bulk: Cell<Option<bool>>,
    /// The version that it has greeted with last.
    pub(crate) version: RefCell<Option<Rc<str>>>,
    /// Transactions that a read there sees, if somebody tells.
    pub(crate) executed: RefCell<Option<gtid::Set>>,
    /// The time of which it shows everything, in milliseconds since 1970; 0 if nobody knows.
    pub(crate) as_of_ms: Cell<u64>,
    /// How many prepared statements it has room for, as it has said.
    pub(crate) allowed: Allowed,
}

impl Server {
    #[cfg(test)]
    pub(crate) fn of(row: &Row) -> Rc<Self> {
        Self::at(row.hostname.as_ref(), None)
    }

    pub(crate) fn at(host: &str, at: Option<IpAddr>) -> Rc<Self> {
        Rc::new(Self {
            host: host.into(),
            at,
            shunned_until: Cell::default(),
            back_since: Cell::default(),
            failures: Cell::default(),
            failures_since: Cell::default(),
            told: Cell::default(),
            looked_at: Cell::default(),
            full: Full::default(),
            silent: RefCell::default(),
            second_password: RefCell::default(),
            refusals: Refusals::default(),
            made_of: RefCell::default(),
            own_collation: Cell::default(),
            has_bulk: Cell::default(),
            version: RefCell::default(),
            executed: RefCell::default(),
            as_of_ms: Cell::default(),
            allowed: Allowed::default(),
        })
    }

    /// Nobody was let in within the last second so often that it is left alone for a while.
    pub(crate) fn is_shunned(&self, now: Instant) -> bool {
        self.shunned_until.get().is_some_and(|until| now < until)
    }

    /// Somebody was let in.
    pub(crate) fn is_well(&self, now: Instant) {
        self.failures.set(0);
        if let Some(until) = self.shunned_until.take() {
            self.back_since.set(Some(until.min(now)));
        }
    }

    /// When it was last shunned no more.
    pub(crate) fn back_since(&self, now: Instant) -> Option<Instant> {
        let over = self.shunned_until.get().filter(|until| *until <= now);
        over.or_else(|| self.back_since.get())
    }

    /// An attempt to connect has failed. So many within a second shun it; whether it is shunned now.
    pub(crate) fn has_not_answered(
        &self,
        now: Instant,
        shun_on_failures: u64,
        recovery: Duration,
    ) -> bool {
        let fresh = self
            .failures_since
            .get()
            .is_some_and(|since| now - since <= Duration::from_secs(1));
        if !fresh {
            self.failures_since.set(Some(now));
            self.failures.set(0);
        }
        self.failures.set(self.failures.get() + 1);
        let shuns = self.failures.get() >= shun_on_failures && shun_on_failures > 0;
        if shuns {
            self.shunned_until.set(Some(now + recovery));
        }
        shuns
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

    /// Ten times a second.
    pub(crate) fn may_be_looked_at(&self, now: Instant) -> bool {
        let last = self.looked_at.get();
        let may = last.is_none_or(|last| now - last >= LOOKS);
        if may {
            self.looked_at.set(Some(now));
        }
        may
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

    /// Whether a read there sees this.
    pub(crate) fn shows(&self, what: Shows<'_>) -> bool {
        match what {
            Shows::Gtids(wanted) => {
                let executed = self.executed.borrow();
                executed
                    .as_ref()
                    .is_some_and(|all| all.contains_set(wanted))
            }
            Shows::NotBefore { ms, .. } => self.as_of_ms.get() >= ms,
        }
    }

    /// Whether the server knew only the second password of this user when it was last asked.
    pub(crate) fn knows_second(&self, user: &str) -> bool {
        self.second_password.borrow().contains(user)
    }

    /// Remembers which of two passwords was right.
    pub(crate) fn has_known(&self, user: &str, second: bool) {
        let mut users = self.second_password.borrow_mut();
        match second {
            true if users.len() < REMEMBERED_MAX => {
                users.insert(user.into());
            }
            true => users.clear(),
            false => {
                users.remove(user);
            }
        }
    }

    /// Nobody answers there.
    pub(crate) fn is_silent(&self, address: &Address, now: Instant) {
        let mut silent = self.silent.borrow_mut();
        silent.retain(|(known, _)| known != address);
        if silent.len() == SILENT_MAX {
            silent.remove(0);
        }
        silent.push((address.clone(), now));
    }

    /// These addresses, but those behind the others that were silent within `recovery`.
    pub(crate) fn silent_last(
        &self,
        addresses: &[Address],
        now: Instant,
        recovery: Duration,
    ) -> Vec<Address> {
        let mut silent = self.silent.borrow_mut();
        silent.retain(|(_, since)| now - *since < recovery);
        let mut addresses = addresses.to_vec();
        addresses.sort_by_key(|address| silent.iter().any(|(known, _)| known == address));
        addresses
    }
}

type ByAddress = HashMap<(Box<str>, u16), Rc<Server>, foldhash::fast::RandomState>;

/// The servers of a core, by address.
#[derive(Default)]
pub(crate) struct Servers(RefCell<ByAddress>);

impl Servers {
    /// The server of a row, at this address of its name; new if no row had it before, and where the
    /// name led elsewhere: another server knows nothing of what this one has said.
    pub(crate) fn of(&self, row: &Row, at: Option<IpAddr>) -> Rc<Server> {
        let mut all = self.0.borrow_mut();
        let key = (row.hostname.clone(), row.port);
        let new = || Server::at(row.hostname.as_ref(), at);
        let known = all.entry(key).or_insert_with(new);
        if known.at != at {
            let before = std::mem::replace(known, new());
            // It was not looked up before: it is the same.
            if before.at.is_none() {
                known.executed.replace(before.executed.borrow().clone());
            }
        }
        known.clone()
    }

    /// The server at this address, if it is one of them.
    pub(crate) fn at(&self, host: &str, port: u16) -> Option<Rc<Server>> {
        // Rarely asked for: the key is owned.
        self.0.borrow().get(&(Box::from(host), port)).cloned()
    }

    /// The server at this address, new if nobody knew of it.
    pub(crate) fn at_or_new(&self, host: &str, port: u16) -> Rc<Server> {
        let mut all = self.0.borrow_mut();
        let new = || Server::at(host, None);
        all.entry((Box::from(host), port))
            .or_insert_with(new)
            .clone()
    }

    /// Forgets those that are in no hostgroup any more, and of which no reader tells.
    pub(crate) fn sweep(&self) {
        self.0
            .borrow_mut()
            .retain(|_, server| Rc::strong_count(server) > 1 || server.executed.borrow().is_some());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_fails_again_and_again_is_left_alone_for_a_while() {
        let at = |ms: u64| Instant::from_ns(ms * 1_000_000);
        let server = Server::of(&crate::testing::server("a"));
        let fails = |ms| server.has_not_answered(at(ms), 3, Duration::from_secs(10));
        assert!(!fails(0) && !fails(500) && !fails(1600) && !fails(1700));
        assert!(!server.is_shunned(at(1700)) && server.has_failed(at(1700)));
        assert!(fails(1800) && server.is_shunned(at(1800)));
        assert!(!server.is_shunned(at(11_800)));
        server.is_well(at(11_800));
        assert!(!server.has_failed(at(1800)));
    }

    #[test]
    fn a_name_that_leads_elsewhere_is_another_server() {
        let servers = Servers::default();
        let row = crate::testing::server("a");
        let at = |last| Some(IpAddr::from([10, 0, 0, last]));
        let unlooked = servers.of(&row, None);
        unlooked.executed.replace(Some(gtid::Set::default()));
        let one = servers.of(&row, at(1));
        assert!(one.executed.borrow().is_some() && !Rc::ptr_eq(&unlooked, &one));
        assert!(Rc::ptr_eq(&one, &servers.of(&row, at(1))));
        let other = servers.of(&row, at(2));
        assert!(other.executed.borrow().is_none() && other.at == at(2));
    }

    #[test]
    fn one_address_is_one_server_in_all_hostgroups() {
        let servers = Servers::default();
        let row = |hostgroup| Row {
            hostgroup,
            ..crate::testing::server("a")
        };
        let (one, port) = (servers.of(&row(1), None), row(1).port);
        assert!(Rc::ptr_eq(&one, &servers.of(&row(2), None)));
        servers.sweep();
        assert!(servers.at("a", port).is_some() && servers.at("b", port).is_none());
        drop(one);
        servers.sweep();
        assert!(servers.at("a", port).is_none());
    }
}
