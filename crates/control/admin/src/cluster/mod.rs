//! Several proxies with one configuration: each looks at the others' checksums and takes over what is newer than its own.
//!
//! | to see | read |
//! |---|---|
//! | whether something is taken over | `decide.rs` |
//! | what a checksum is of | `sums.rs` |
//! | looking at another proxy | `peer.rs`, over `line.rs` |
//! | giving a module away, and taking one over | `take.rs` |
//! | the tables | `show.rs` |

mod decide;
mod line;
mod peer;
mod show;
mod sums;
mod take;

use crate::engine::Engine;
use crate::layers;
use crate::tables::Module;
use config::{Snapshot, Variables};
use decide::Sum;
pub(crate) use peer::Peer;
use rt::Rt;
use rt::local::Bell;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Proxies of other versions may know other tables.
pub(crate) const MILLRACE: &str = env!("CARGO_PKG_VERSION");

/// A module that proxies share.
pub(crate) struct Subject {
    /// As `runtime_checksums_values` names it.
    pub(crate) name: &'static str,
    pub(crate) module: Module,
    /// Looks that must differ before it is taken over.
    enough: fn(&Variables) -> u64,
    /// Whether what was taken over is saved.
    saves: fn(&Variables) -> bool,
    /// Whether it is shared at all.
    counts: fn(&Variables) -> bool,
}

/// All of them, in the order in which they are taken over: a variable that switches the firewall on comes behind the firewall's rules. The
/// firewall is ProxySQL's to each proxy alone; here it goes by the variables of the rules.
pub(crate) const SUBJECTS: [Subject; 7] = [
    Subject {
        name: "mysql_query_rules",
        module: Module::Rules,
        enough: |v| v.admin_cluster_mysql_query_rules_diffs_before_sync,
        saves: |v| v.admin_cluster_mysql_query_rules_save_to_disk,
        counts: |v| v.admin_checksum_mysql_query_rules,
    },
    Subject {
        name: "mysql_firewall",
        module: Module::Firewall,
        enough: |v| v.admin_cluster_mysql_query_rules_diffs_before_sync,
        saves: |v| v.admin_cluster_mysql_query_rules_save_to_disk,
        counts: |v| v.admin_checksum_mysql_query_rules,
    },
    Subject {
        name: "mysql_servers",
        module: Module::Servers,
        enough: |v| v.admin_cluster_mysql_servers_diffs_before_sync,
        saves: |v| v.admin_cluster_mysql_servers_save_to_disk,
        counts: |v| v.admin_checksum_mysql_servers,
    },
    Subject {
        name: "mysql_users",
        module: Module::Users,
        enough: |v| v.admin_cluster_mysql_users_diffs_before_sync,
        saves: |v| v.admin_cluster_mysql_users_save_to_disk,
        counts: |v| v.admin_checksum_mysql_users,
    },
    Subject {
        name: "mysql_variables",
        module: Module::MysqlVariables,
        enough: |v| v.admin_cluster_mysql_variables_diffs_before_sync,
        saves: |v| v.admin_cluster_mysql_variables_save_to_disk,
        counts: |v| v.admin_checksum_mysql_variables,
    },
    Subject {
        name: "admin_variables",
        module: Module::AdminVariables,
        enough: |v| v.admin_cluster_admin_variables_diffs_before_sync,
        saves: |v| v.admin_cluster_admin_variables_save_to_disk,
        counts: |v| v.admin_checksum_admin_variables,
    },
    Subject {
        name: "proxysql_servers",
        module: Module::ProxysqlServers,
        enough: |v| v.admin_cluster_proxysql_servers_diffs_before_sync,
        saves: |v| v.admin_cluster_proxysql_servers_save_to_disk,
        counts: |_| true,
    },
];

/// The index in [`SUBJECTS`].
pub(crate) type At = usize;

fn at(module: Module) -> Option<At> {
    SUBJECTS.iter().position(|subject| subject.module == module)
}

/// A module that was made for a LOAD, and its checksum.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Made {
    at: At,
    checksum: u64,
    /// What another proxy said of it, where it is another's.
    theirs: Option<Sum>,
}

impl Made {
    /// Of a module of this snapshot; `None` if no other proxy has it.
    pub(crate) fn of(module: Module, snapshot: &Snapshot, pause: &dyn Fn()) -> Option<Self> {
        let at = at(module)?;
        Some(Self { at, checksum: sums::checksum(module, snapshot, pause), theirs: None })
    }
}

/// A proxy that asks this one.
struct Client {
    /// Of its session here.
    session: u32,
    uuid: String,
    host: String,
    port: u16,
    ifaces: String,
    seen_s: u64,
}

/// So many are remembered.
const CLIENTS_MAX: usize = 256;

/// What came of the looks at others.
#[derive(Default)]
struct Tally {
    taken: Cell<u64>,
    refused: Cell<u64>,
    conflicts: Cell<u64>,
    failed: Cell<u64>,
}

fn up(count: &Cell<u64>) {
    count.set(count.get() + 1);
}

/// What this proxy knows of itself and of the others.
pub(crate) struct Cluster {
    /// A name for this process, other at each start.
    uuid: String,
    sums: RefCell<[Sum; SUBJECTS.len()]>,
    peers: RefCell<Vec<Rc<Peer>>>,
    clients: RefCell<Vec<Client>>,
    /// One module after the other is taken over: it may be large.
    pulling: Cell<bool>,
    tally: Tally,
    /// Rings when others may have to be looked at, or otherwise.
    changed: Bell,
}

impl Cluster {
    /// For what is in force at the start: a module that is as it was when it was saved goes on from there.
    pub(crate) fn begin(rt: &Rt, engine: &Engine, snapshot: &Snapshot) -> Self {
        let now_s = rt.wall_us() / 1_000_000;
        let sums = SUBJECTS.each_ref().map(|subject| {
            let checksum = sums::checksum(subject.module, snapshot, &|| ());
            let saved = layers::saved_mark(engine.conn(), subject.name);
            match saved.filter(|(version, _, saved)| *version > 1 && sums::number(saved) == Some(checksum)) {
                Some((version, epoch, _)) => Sum { version: version.unsigned_abs(), epoch: epoch.unsigned_abs(), checksum },
                None => Sum { version: 1, epoch: now_s, checksum },
            }
        });
        Self {
            uuid: uuid(rt.random(), rt.random()),
            sums: RefCell::new(sums),
            peers: RefCell::default(),
            clients: RefCell::default(),
            pulling: Cell::new(false),
            tally: Tally::default(),
            changed: Bell::new(),
        }
    }

    /// A LOAD: this is in force from now on.
    pub(crate) fn loaded(&self, made: Made, now_s: u64) {
        let mut sums = self.sums.borrow_mut();
        let Some(sum) = sums.get_mut(made.at) else { return };
        *sum = match made.theirs {
            Some(theirs) => sum.taken(theirs),
            None => sum.loaded(now_s, made.checksum),
        };
        drop(sums);
        self.changed.ring();
    }

    /// What others are told of a module: nothing where it is not shared.
    fn sum(&self, at: At, variables: &Variables) -> Sum {
        let sum = self.sums.borrow().get(at).copied().unwrap_or_default();
        if SUBJECTS.get(at).is_some_and(|subject| (subject.counts)(variables)) { sum } else { Sum::default() }
    }

    /// What a SAVE of this module keeps beside it.
    pub(crate) fn mark(&self, module: Module) -> Option<(&'static str, i64, i64, String)> {
        let at = at(module)?;
        let sum = self.sums.borrow().get(at).copied()?;
        let signed = |number| i64::try_from(number).unwrap_or(i64::MAX);
        Some((SUBJECTS.get(at)?.name, signed(sum.version), signed(sum.epoch), sums::text(sum.checksum)))
    }

    /// For `stats_mysql_global`.
    pub(crate) fn counts(&self) -> [(&'static str, u64); 4] {
        let Tally { taken, refused, conflicts, failed } = &self.tally;
        [
            ("Millrace_cluster_taken", taken.get()),
            ("Millrace_cluster_refused", refused.get()),
            ("Millrace_cluster_conflicts", conflicts.get()),
            ("Millrace_cluster_failed", failed.get()),
        ]
    }

    /// `PROXYSQL CLUSTER_NODE_UUID`: another proxy says who it is, in this session.
    pub(crate) fn greeted(&self, session: u32, (host, port): (&str, u16), uuid: &str, ifaces: &str, now_s: u64) {
        let mut clients = self.clients.borrow_mut();
        clients.retain(|client| client.uuid != uuid || client.host != host);
        if clients.len() >= CLIENTS_MAX {
            clients.remove(0);
        }
        let (uuid, host, ifaces) = (uuid.to_owned(), host.to_owned(), ifaces.to_owned());
        clients.push(Client { session, uuid, host, port, ifaces, seen_s: now_s });
    }

    /// It asks again.
    pub(crate) fn seen(&self, session: u32, now_s: u64) {
        let mut clients = self.clients.borrow_mut();
        clients.iter_mut().filter(|client| client.session == session).for_each(|client| client.seen_s = now_s);
    }
}

/// A version 4 UUID of this chance.
fn uuid(high: u64, low: u64) -> String {
    let (high, low) = ((high & !0xF000) | 0x4000, (low & (u64::MAX >> 2)) | (1 << 63));
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xFFFF,
        high & 0xFFFF,
        low >> 48,
        low & 0xFFFF_FFFF_FFFF
    )
}

#[cfg(test)]
mod tests;
