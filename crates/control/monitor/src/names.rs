//! Where servers are: the names of rows are looked up at their own pace, and each address is watched.
//! A look-up that fails changes nothing.

use crate::Monitor;
use bridge::Done;
use rt::local::Bell;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use topology::{ServerKey, Whereabouts};

/// A name is not looked up more often than that, however much trouble there is.
const PAUSE: Duration = Duration::from_secs(1);

/// Whoever finds too many look-ups waiting comes again after that.
const CROWDED: Duration = Duration::from_millis(50);

/// So many addresses of a name are used; the rest are not.
const ADDRESSES_MAX: usize = 64;

/// So many addresses are watched to which a name leads no more.
const BEFORE_MAX: usize = 16;

/// The names of servers.
#[derive(Default)]
pub(crate) struct Names {
    followed: RefCell<BTreeMap<Arc<str>, Rc<Name>>>,
    /// Look-ups that have no answer yet.
    waiting: Cell<u64>,
    /// Look-ups so far, as far as they are counted here.
    done: Cell<Done>,
}

struct Name {
    host: Arc<str>,
    stopped: Cell<bool>,
    bell: Bell,
    at: RefCell<Whereabouts>,
    /// A look-up has ended, or there is to be none.
    has_looked: Cell<bool>,
    /// Error that an operator was told of.
    failed: RefCell<Option<String>>,
    /// An operator was told that it has too many addresses.
    told_many: Cell<bool>,
}

/// Whether a hostname has to be looked up.
pub(crate) fn is_name(host: &str, port: u16) -> bool {
    let bare = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    port != 0 && bare.unwrap_or(host).parse::<IpAddr>().is_err()
}

impl Names {
    /// Looks up these from now on, and no others.
    pub(crate) fn follow(&self, monitor: &Rc<Monitor>, wanted: &BTreeSet<Arc<str>>) {
        let mut followed = self.followed.borrow_mut();
        followed.retain(|host, name| {
            let stays = wanted.contains(host);
            name.stopped.set(!stays);
            if !stays {
                name.bell.ring();
            }
            stays
        });
        for host in wanted {
            followed.entry(host.clone()).or_insert_with(|| {
                let name = Rc::new(Name {
                    host: host.clone(),
                    stopped: Cell::new(false),
                    bell: Bell::new(),
                    at: RefCell::default(),
                    has_looked: Cell::new(false),
                    failed: RefCell::default(),
                    told_many: Cell::new(false),
                });
                monitor.rt.spawn(name.clone().run(monitor.clone()));
                name
            });
        }
    }

    /// Looks all up anew: the variables that say how may be others.
    pub(crate) fn look_again(&self) {
        self.followed.borrow().values().for_each(|n| n.bell.ring());
    }

    /// Counts of look-ups; checks are none of them.
    pub(crate) fn done(&self) -> Done {
        self.done.get()
    }

    fn count(&self, more: impl FnOnce(&mut Done)) {
        let mut done = self.done.get();
        more(&mut done);
        self.done.set(done);
    }

    /// Somebody has had trouble with a server of this name.
    pub(crate) fn look_now(&self, host: &str) {
        if let Some(name) = self.followed.borrow().get(host) {
            name.bell.ring();
        }
    }

    /// Keys to be watched for a row: its addresses; itself, if it is none or nobody says where it is;
    /// nothing before its name was looked up.
    pub(crate) fn keys_of(&self, row: &ServerKey) -> Vec<ServerKey> {
        if !is_name(&row.host, row.port) {
            return vec![row.clone()];
        }
        let followed = self.followed.borrow();
        let Some(name) = followed.get(&row.host) else {
            return vec![row.clone()];
        };
        let at = name.at.borrow();
        match (at.now.is_empty(), name.has_looked.get()) {
            (true, false) => Vec::new(),
            (true, true) => vec![row.clone()],
            (false, _) => {
                let all = at.now.iter().chain(&at.before);
                all.map(|ip| ServerKey::at(*ip, row.port)).collect()
            }
        }
    }

    /// Whether a host is at this address, and nowhere else.
    pub(crate) fn leads_only_to(&self, host: &str, address: &str) -> bool {
        let followed = self.followed.borrow();
        let Some(name) = followed.get(host) else {
            return host == address;
        };
        let at = name.at.borrow();
        matches!(&at.now[..], [only] if address.parse() == Ok(*only))
    }

    /// The addresses of all names that are known.
    pub(crate) fn known(&self) -> BTreeMap<Arc<str>, Whereabouts> {
        let followed = self.followed.borrow();
        let known = followed.values().filter(|n| !n.at.borrow().now.is_empty());
        known
            .map(|name| (name.host.clone(), name.at.borrow().clone()))
            .collect()
    }

    /// Whether some name has led elsewhere, and what is there is still watched.
    pub(crate) fn any_before(&self) -> bool {
        let followed = self.followed.borrow();
        followed.values().any(|n| !n.at.borrow().before.is_empty())
    }

    /// Forgets the addresses of before that have no connections any more; whether there was one.
    pub(crate) fn keep_before(&self, has_some: impl Fn(&str, IpAddr) -> bool) -> bool {
        let mut any = false;
        for name in self.followed.borrow().values() {
            name.at.borrow_mut().before.retain(|ip| {
                let stays = has_some(&name.host, *ip);
                any |= !stays;
                stays
            });
        }
        any
    }
}

impl Name {
    async fn run(self: Rc<Self>, monitor: Rc<Monitor>) {
        let ms = Duration::from_millis;
        while !self.stopped.get() {
            let snapshot = monitor.snapshot();
            let v = &snapshot.variables;
            let ttl_ms = v.mysql_monitor_local_dns_cache_ttl;
            let refresh = ms(v.mysql_monitor_local_dns_cache_refresh_interval);
            if !v.mysql_monitor_enabled || ttl_ms == 0 || refresh.is_zero() {
                self.is_at(&monitor, Whereabouts::default());
                self.bell.heard().await;
                continue;
            }
            let names = &monitor.names;
            while names.waiting.get() >= v.mysql_monitor_local_dns_resolver_queue_maxsize {
                monitor.rt.sleep(CROWDED).await;
            }
            names.waiting.set(names.waiting.get() + 1);
            let found = monitor.rt.look_up(&self.host).await;
            names.waiting.set(names.waiting.get() - 1);
            names.count(|done| {
                done.names_looked_up += 1;
                done.names_found += u64::from(found.is_ok());
            });
            if self.stopped.get() {
                return;
            }
            self.learn(&monitor, found);
            monitor.rt.sleep(PAUSE.min(refresh)).await;
            let rest = monitor.rt.sleep(refresh.saturating_sub(PAUSE));
            let _rung_or_time = rt::select(rest, self.bell.heard()).await;
        }
    }

    fn learn(&self, monitor: &Rc<Monitor>, found: io::Result<Vec<IpAddr>>) {
        match found {
            Ok(mut ips) => {
                // Resolvers give them in turn, which is no news.
                ips.sort_unstable();
                if self.failed.take().is_some() {
                    monitor.note(&format!("'{}' is found again", self.host));
                }
                self.cut(monitor, &mut ips);
                let before = self.at.borrow().clone();
                let left = before.now.iter().chain(&before.before);
                let left = left.filter(|ip| !ips.contains(ip)).copied();
                let left = left.take(BEFORE_MAX).collect();
                if !before.now.is_empty() && before.now != ips {
                    monitor.names.count(|done| done.names_changed += 1);
                    let (was, is) = (list(&before.now), list(&ips));
                    let host = &self.host;
                    monitor.note_change(&format!("'{host}' is at {is} now, it was at {was}"));
                }
                let now = Whereabouts {
                    now: ips,
                    before: left,
                };
                self.is_at(monitor, now);
            }
            Err(error) => {
                let words = Some(error.to_string());
                if self.failed.replace(words.clone()) != words {
                    monitor.note(&format!(
                        "nobody says where '{}' is, and it counts as being where it was: {error}",
                        self.host
                    ));
                }
                if !self.has_looked.replace(true) {
                    monitor.names_have_changed();
                }
            }
        }
    }

    /// Leaves out addresses that are too many.
    fn cut(&self, monitor: &Monitor, ips: &mut Vec<IpAddr>) {
        let too_many = ips.len() > ADDRESSES_MAX;
        if too_many && !self.told_many.get() {
            let (host, all) = (&self.host, ips.len());
            monitor.note(&format!(
                "'{host}' has {all} addresses: the first {ADDRESSES_MAX} are used"
            ));
        }
        self.told_many.set(too_many);
        ips.truncate(ADDRESSES_MAX);
    }

    fn is_at(&self, monitor: &Rc<Monitor>, at: Whereabouts) {
        let is_first = !self.has_looked.replace(true);
        let before = self.at.replace(at.clone());
        if is_first || before != at {
            monitor.names_have_changed();
        }
    }
}

fn list(ips: &[IpAddr]) -> String {
    let all: Vec<_> = ips.iter().map(ToString::to_string).collect();
    all.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_are_looked_up() {
        for name in ["db1", "db1.example.org", "127.1", "localhost"] {
            assert!(is_name(name, 3306), "{name}");
        }
        for other in ["10.0.0.1", "::1", "[::1]"] {
            assert!(!is_name(other, 3306), "{other}");
        }
        assert!(!is_name("/tmp/mysql.sock", 0));
    }
}
