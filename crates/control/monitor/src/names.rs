//! Where servers are: the names of rows are looked up at their own pace, and cores hear of each
//! answer. A look-up that fails changes nothing.

use crate::{AGAIN, Monitor};
use bridge::{Named, ToCore};
use rt::local::Bell;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// A name is not looked up more often than that, however much trouble there is.
const PAUSE: Duration = Duration::from_secs(1);

/// Whoever finds too many look-ups waiting comes again after that.
const CROWDED: Duration = Duration::from_millis(50);

/// The names of servers.
#[derive(Default)]
pub(crate) struct Names {
    followed: RefCell<BTreeMap<Arc<str>, Rc<Name>>>,
    /// Look-ups that have no answer yet.
    waiting: Cell<u64>,
}

struct Name {
    host: Arc<str>,
    stopped: Cell<bool>,
    bell: Bell,
    /// Addresses that cores were told, in order.
    told: RefCell<Arc<[IpAddr]>>,
    /// Error that an operator was told of.
    failed: RefCell<Option<String>>,
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
            name.bell.ring();
            stays
        });
        for host in wanted {
            followed.entry(host.clone()).or_insert_with(|| {
                let name = Rc::new(Name {
                    host: host.clone(),
                    stopped: Cell::new(false),
                    bell: Bell::new(),
                    told: RefCell::new(Arc::default()),
                    failed: RefCell::default(),
                });
                monitor.rt.spawn(name.clone().run(monitor.clone()));
                name
            });
        }
    }

    /// Somebody has had trouble with a server of this name.
    pub(crate) fn look_now(&self, host: &str) {
        if let Some(name) = self.followed.borrow().get(host) {
            name.bell.ring();
        }
    }
}

impl Name {
    async fn run(self: Rc<Self>, monitor: Rc<Monitor>) {
        let ms = Duration::from_millis;
        while !self.stopped.get() {
            let snapshot = monitor.snapshot();
            let v = &snapshot.variables;
            let ttl = ms(v.mysql_monitor_local_dns_cache_ttl);
            let refresh = ms(v.mysql_monitor_local_dns_cache_refresh_interval);
            if !v.mysql_monitor_enabled || ttl.is_zero() || refresh.is_zero() {
                self.tell(&monitor, Arc::default(), Duration::ZERO).await;
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
            self.learn(&monitor, found, ttl).await;
            monitor.rt.sleep(PAUSE.min(refresh)).await;
            let rest = monitor.rt.sleep(refresh.saturating_sub(PAUSE));
            let _rung_or_time = rt::select(rest, self.bell.heard()).await;
        }
        self.tell(&monitor, Arc::default(), Duration::ZERO).await;
    }

    async fn learn(&self, monitor: &Rc<Monitor>, found: io::Result<Vec<IpAddr>>, ttl: Duration) {
        match found {
            Ok(mut ips) => {
                // Resolvers give them in turn, which is no news.
                ips.sort_unstable();
                if self.failed.take().is_some() {
                    monitor.note(&format!("'{}' is found again", self.host));
                }
                self.tell(monitor, ips.into(), ttl).await;
            }
            Err(error) => {
                let words = Some(error.to_string());
                if self.failed.replace(words.clone()) != words {
                    monitor.note(&format!(
                        "nobody says where '{}' is, and it counts as being where it was: {error}",
                        self.host
                    ));
                }
            }
        }
    }

    /// Tells all cores; says what has changed.
    async fn tell(&self, monitor: &Rc<Monitor>, ips: Arc<[IpAddr]>, fresh_for: Duration) {
        let before = self.told.replace(ips.clone());
        if before.is_empty() && ips.is_empty() {
            return;
        }
        let has_moved = !before.is_empty() && !ips.is_empty() && before != ips;
        if !ips.is_empty() {
            monitor.rt.learn_name(&self.host, &ips, fresh_for);
        }
        if has_moved {
            let (before, ips) = (list(&before), list(&ips));
            monitor.note(&format!(
                "'{}' is at {ips} now, it was at {before}",
                self.host
            ));
            monitor.has_moved(&self.host);
        }
        let named = || {
            ToCore::Named(Named {
                host: self.host.clone(),
                ips: ips.clone(),
                fresh_for,
            })
        };
        while !(monitor.tell_cores)(&named) {
            monitor.rt.sleep(AGAIN).await;
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
