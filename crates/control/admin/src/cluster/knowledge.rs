//! Knowledge of this proxy about itself and the others: what it has of each module, what others
//! have, and what follows from both.

use super::decide::{Kin, Sum, Verdict, decide};
use super::fleet::Membership;
use super::peer::{Met, Peer};
use super::proxysql::{Form, Proxysql};
use super::subjects::{At, SUBJECTS, at, enough};
use super::sums;
use crate::engine::Engine;
use crate::layers;
use crate::tables::Module;
use config::{Snapshot, Variables};
use rt::local::{Bell, Notify};
use rt::{Instant, Rt};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

/// Facts about a module as it is in force here.
#[derive(Debug, Clone, Copy)]
pub(super) struct Own {
    /// Counts what was in force here: the version stays at 1 where a LOAD is for nobody else.
    pub(super) serial: u64,
    pub(super) version: u64,
    pub(super) epoch: u64,
    /// Made when somebody asks: a million users take seconds, and most proxies are alone.
    pub(super) checksum: Option<u64>,
    /// Of what it has replaced, if that was known.
    pub(super) replaced: Option<u64>,
    /// Version, epoch and checksum that a SAVE before the start has kept. They count if what the
    /// start found is the same.
    pub(super) saved: Option<Sum>,
    /// The epoch of what a SAVE before the start has kept, where the start has found something
    /// else; 0 for none.
    pub(super) past: u64,
}

impl Own {
    /// Whether it has been a part of what proxies share: loaded among others, or taken over, be it
    /// before the start.
    fn is_shared(&self) -> bool {
        self.version > 1 || self.saved.is_some() || self.past > 0
    }

    fn sum(self) -> Option<Sum> {
        Some(Sum {
            version: self.version,
            epoch: self.epoch,
            checksum: self.checksum?,
        })
    }
}

/// A proxy that asks this one.
pub(super) struct Client {
    /// Of its session here.
    pub(super) session: u32,
    pub(super) uuid: String,
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) ifaces: String,
    pub(super) seen_s: u64,
}

/// Age at which an edit that goes on is no longer taken for one.
const LATELY: Duration = Duration::from_mins(10);

/// So many are remembered.
const CLIENTS_MAX: usize = 256;

/// Edits of a module in memory by operators.
#[derive(Default)]
pub(super) struct Edits {
    /// So many times since the start,
    made: u64,
    /// and so many of them were loaded, or replaced.
    loaded: u64,
    /// Some were replaced by what was taken over then, and from whom; nobody was told yet.
    lost: Option<(Instant, String)>,
}

/// Counts of what came of the looks at other proxies.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) taken: Cell<u64>,
    pub(super) refused: Cell<u64>,
    pub(super) conflicts: Cell<u64>,
    pub(super) failed: Cell<u64>,
}

/// Counts one more.
pub(super) fn up(count: &Cell<u64>) {
    count.set(count.get() + 1);
}

/// Knowledge of this proxy about itself and the others.
pub(crate) struct Cluster {
    /// A name for this process, other at each start.
    pub(super) uuid: String,
    pub(super) own: RefCell<[Own; SUBJECTS.len()]>,
    /// One makes checksums, and others who want them wait.
    pub(super) settling: Cell<bool>,
    pub(super) settled: Notify,
    pub(super) peers: RefCell<Vec<Rc<Peer>>>,
    pub(super) clients: RefCell<Vec<Client>>,
    /// Bytes of modules that come, of all others together.
    pub(super) coming: Cell<usize>,
    /// Edits of each module in memory by operators.
    pub(super) edits: RefCell<[Edits; SUBJECTS.len()]>,
    pub(super) tally: Tally,
    /// Part in a fleet with one store.
    pub(super) fleet: Membership,
    /// Part in a cluster of ProxySQLs.
    pub(super) proxysql: Proxysql,
    /// Rings when others may have to be looked at, or otherwise.
    pub(super) changed: Bell,
}

impl Cluster {
    /// For what is in force at the start.
    pub(crate) fn begin(rt: &Rt, engine: &Engine, given: Option<String>) -> Self {
        let epoch = rt.wall_us() / 1_000_000;
        let own = SUBJECTS.each_ref().map(|subject| {
            let saved = layers::saved_mark(engine.conn(), subject.name).and_then(
                |(version, epoch, checksum)| {
                    let (version, epoch) =
                        (u64::try_from(version).ok()?, u64::try_from(epoch).ok()?);
                    let sum = Sum {
                        version,
                        epoch,
                        checksum: sums::number(&checksum)?,
                    };
                    (version > 1 && sum.is_possible()).then_some(sum)
                },
            );
            Own {
                serial: 0,
                version: 1,
                epoch,
                checksum: None,
                replaced: None,
                saved,
                past: 0,
            }
        });
        Self {
            uuid: given.unwrap_or_else(|| uuid(rt.random(), rt.random())),
            own: RefCell::new(own),
            settling: Cell::new(false),
            settled: Notify::new(),
            peers: RefCell::default(),
            clients: RefCell::default(),
            coming: Cell::new(0),
            edits: RefCell::default(),
            tally: Tally::default(),
            fleet: Membership::default(),
            proxysql: Proxysql::default(),
            changed: Bell::new(),
        }
    }

    /// This module is in force from now on: loaded here, or taken over with what it was there. What
    /// is loaded by a proxy that has no part yet in what the others share is for nobody else: who
    /// sets up a new one would replace by it what all of them have.
    pub(crate) fn loaded(
        &self,
        module: Module,
        theirs: Option<Arrived>,
        next: &Snapshot,
        now_s: u64,
    ) {
        // In a fleet every LOAD is for all.
        let is_alone = theirs.is_none() && next.variables.admin_cluster_store.is_empty();
        let is_apart = is_alone && self.apart(module, next).is_some();
        let mut all = self.own.borrow_mut();
        let Some(at) = at(module) else {
            return;
        };
        let Some(own) = all.get_mut(at) else {
            return;
        };
        // Later than what was saved, too, be it that nobody has asked yet whether it is what the
        // start found.
        let epoch = own
            .saved
            .map_or(own.epoch, |saved| saved.epoch.max(own.epoch))
            .max(own.past);
        let before = Sum {
            version: own.version,
            epoch,
            checksum: 0,
        };
        let elsewhere = self.latest_elsewhere(module);
        let (now, checksum, form) = match theirs {
            Some(theirs) => {
                let sum = theirs.sum;
                (before.taken(sum), Some(sum.checksum), theirs.form)
            }
            None => (before.loaded(now_s, elsewhere, 0), None, None),
        };
        let version = if is_apart { own.version } else { now.version };
        *own = Own {
            serial: own.serial + 1,
            version,
            epoch: now.epoch,
            checksum,
            replaced: own.checksum,
            saved: None,
            past: 0,
        };
        self.proxysql.loaded(at, own.serial, form);
        drop(all);
        self.fleet.ring();
        self.changed.ring();
    }

    /// Why a LOAD of this module is for nobody else, if it is not: what is in force here was never
    /// what others have, and either none of them has answered yet, or one of them has loaded
    /// another one, which is about to come. `next`: what is in force behind the LOAD.
    fn apart(&self, module: Module, next: &Snapshot) -> Option<Apart> {
        let (at, all) = (at(module)?, self.own.borrow());
        let own = all.get(at)?;
        if own.is_shared() {
            return None;
        }
        let peers = self.peers.borrow();
        let mut others = peers
            .iter()
            .filter(|peer| peer.met() == Met::Another)
            .peekable();
        if others.peek().is_none() {
            // One that asks nobody else gives to whoever asks it.
            let is_itself = |peer: &Rc<Peer>, row: &config::ProxyRow| {
                peer.met() == Met::Itself
                    && (&peer.row.hostname, peer.row.port) == (&row.hostname, row.port)
            };
            let rows = next.proxies.rows();
            let is_alone = !rows.is_empty()
                && rows
                    .iter()
                    .all(|row| peers.iter().any(|peer| is_itself(peer, row)));
            return (!is_alone).then_some(Apart::Unmet);
        }
        let enough = (SUBJECTS.get(at)?.enough)(&next.variables);
        // What was in force until now has to be what they have: the edit would be none of theirs.
        let comes = |peer: &&Rc<Peer>| {
            let theirs = peer
                .known
                .borrow()
                .seen
                .get(at)
                .map(|seen| seen.sum)
                .unwrap_or_default();
            let checksum = match peer.speaks_proxysql.get() {
                true => self.form_of(at, own.serial).map(|form| form.checksum),
                false => own.checksum,
            };
            let had = Sum {
                version: own.version,
                epoch: own.epoch,
                checksum: checksum.unwrap_or(!theirs.checksum),
            };
            decide((had, own.past), theirs, Kin::Unknown, u64::MAX, enough) == Verdict::Pull
        };
        others.find(comes).map(|peer| Apart::Behind(peer.name()))
    }

    /// Tells an operator why a LOAD of this module is for nobody else, if others are asked at all.
    pub(crate) fn told_apart(&self, module: Module, next: &Snapshot) -> Option<String> {
        let asks = !next.variables.admin_cluster_username.is_empty()
            && next.variables.admin_cluster_store.is_empty()
            && !next.proxies.rows().is_empty();
        let what = match self.apart(module, next).filter(|_| asks)? {
            Apart::Unmet => "no other proxy has answered yet".to_owned(),
            Apart::Behind(name) => {
                format!("{name} has loaded another one, which is about to be taken over")
            }
        };
        Some(format!(
            "{what}: this is for nobody else, and counts as only started: what others have loaded takes its place"
        ))
    }

    /// A module was taken over.
    pub(super) fn was_taken(&self, at: At, now: Instant, from: &str) {
        let mut all = self.edits.borrow_mut();
        let Some(edits) = all.get_mut(at).filter(|edits| edits.made != edits.loaded) else {
            return;
        };
        edits.loaded = edits.made;
        edits.lost = Some((now, from.to_owned()));
    }

    /// An operator has edited a module in memory. How many edits there were.
    pub(crate) fn edited(&self, module: Module) -> u64 {
        self.with_edits(module, |edits| edits.made += 1);
        self.edits_of(module)
    }

    /// How many edits of a module there were in memory.
    pub(crate) fn edits_of(&self, module: Module) -> u64 {
        at(module)
            .and_then(|at| self.edits.borrow().get(at).map(|edits| edits.made))
            .unwrap_or_default()
    }

    /// Memory has had a module as a whole from the operator, or given it, when there had been so
    /// many edits: none of before is lost.
    pub(crate) fn edits_are_done(&self, module: Module, made: u64, is_loaded: bool) {
        self.with_edits(module, |edits| {
            edits.lost = None;
            if is_loaded {
                edits.loaded = made;
            }
        });
    }

    fn with_edits(&self, module: Module, change: impl FnOnce(&mut Edits)) {
        let mut all = self.edits.borrow_mut();
        at(module).and_then(|at| all.get_mut(at)).map(change);
    }

    /// Refuses a LOAD, once, if what had been edited for it is not there any more, or a part of it.
    pub(crate) fn lost_edit(&self, module: Module, now: Instant) -> Option<String> {
        let at = at(module)?;
        let (since, from) = self.edits.borrow_mut().get_mut(at)?.lost.take()?;
        let (ago, name) = (now - since, SUBJECTS.get(at)?.name);
        (ago < LATELY).then(|| {
            let s = ago.as_secs();
            format!(
                "{name} was taken over from {from} {s} s ago, and what had been edited here before that, and not loaded, is gone: nothing was loaded \
                 now; look at it, and say LOAD again"
            )
        })
    }

    /// The latest epoch in which another proxy is known to have loaded this module.
    fn latest_elsewhere(&self, module: Module) -> u64 {
        let at = at(module).unwrap_or(SUBJECTS.len());
        let peers = self.peers.borrow();
        let of = |peer: &Rc<Peer>| {
            peer.known
                .borrow()
                .seen
                .get(at)
                .map(|seen| seen.sum)
                .filter(|sum| sum.version > 1)
        };
        peers
            .iter()
            .filter_map(of)
            .map(|sum| sum.epoch)
            .max()
            .unwrap_or(0)
    }

    /// Decides what is to be done about what a Millrace has, and had before; see [`decide`].
    pub(super) fn verdict(
        &self,
        at: At,
        (theirs, had): (Sum, Option<u64>),
        looks: u64,
        variables: &Variables,
    ) -> Verdict {
        decide(
            (self.sum(at, variables), self.past(at)),
            theirs,
            self.kin(at, theirs, had),
            looks,
            enough(at, variables),
        )
    }

    /// Decides what is to be done about what another proxy has, be it a Millrace or a ProxySQL.
    pub(super) fn verdict_on(
        &self,
        peer: &Peer,
        at: At,
        (theirs, had): (Sum, Option<u64>),
        looks: u64,
        variables: &Variables,
    ) -> Verdict {
        if !peer.speaks_proxysql.get() {
            return self.verdict(at, (theirs, had), looks, variables);
        }
        let own = self.sum_for_proxysql(at, variables);
        let form = self.form(at).map(|form| form.checksum);
        let kin = kin((form, self.proxysql.replaced(at)), (theirs.checksum, had));
        decide(
            (own, self.past(at)),
            theirs,
            kin,
            looks,
            enough(at, variables),
        )
    }

    /// Whether one of ours and theirs, which differ, is known to come from the other.
    pub(super) fn kin(&self, at: At, theirs: Sum, they_had: Option<u64>) -> Kin {
        let all = self.own.borrow();
        all.get(at).map_or(Kin::Unknown, |own| {
            kin((own.checksum, own.replaced), (theirs.checksum, they_had))
        })
    }

    /// Version, epoch and checksum of a module, as this other proxy counts.
    pub(super) fn sum_on(&self, peer: &Peer, at: At, variables: &Variables) -> Sum {
        match peer.speaks_proxysql.get() {
            true => self.sum_for_proxysql(at, variables),
            false => self.sum(at, variables),
        }
    }

    /// The names of modules, as another proxy has them.
    pub(super) fn names_on(&self, peer: &Peer) -> [&'static str; SUBJECTS.len()] {
        let speech = self
            .proxysql
            .speech()
            .filter(|_| peer.speaks_proxysql.get());
        SUBJECTS.each_ref().map(|subject| match &speech {
            Some(speech) => speech.dialect.name(subject.module, subject.name),
            None => subject.name,
        })
    }

    pub(super) fn past(&self, at: At) -> u64 {
        self.own.borrow().get(at).map_or(0, |own| own.past)
    }

    /// Where a module comes in the order in which several of another proxy are taken over: as they
    /// were loaded there, and before them what was only started here.
    pub(super) fn turn(&self, at: At, theirs: Sum) -> (u64, At) {
        let is_started = self
            .own
            .borrow()
            .get(at)
            .is_some_and(|own| own.version <= 1);
        (if is_started { 0 } else { theirs.epoch }, at)
    }

    /// The name of this process.
    pub(crate) fn uuid(&self) -> &str {
        &self.uuid
    }

    /// The serial of a module whose checksum nobody has asked for yet.
    pub(super) fn unsettled(&self, at: At) -> Option<u64> {
        self.own
            .borrow()
            .get(at)
            .filter(|own| own.checksum.is_none())
            .map(|own| own.serial)
    }

    /// The checksum of a module was made, of what was in force under this serial. A module that is as it was when it was saved goes on from
    /// there.
    pub(super) fn settle(&self, at: At, serial: u64, checksum: u64) {
        let mut all = self.own.borrow_mut();
        let Some(own) = all
            .get_mut(at)
            .filter(|own| own.serial == serial && own.checksum.is_none())
        else {
            return;
        };
        own.checksum = Some(checksum);
        match own.saved.take() {
            Some(saved) if saved.checksum == checksum => {
                (own.version, own.epoch) = (saved.version, saved.epoch)
            }
            Some(saved) => own.past = saved.epoch,
            None => {}
        }
    }

    /// Returns what others are told of a module: nothing where it is not shared, or nobody has
    /// asked yet (`settle.rs`).
    pub(super) fn sum(&self, at: At, variables: &Variables) -> Sum {
        let sum = self
            .own
            .borrow()
            .get(at)
            .and_then(|own| own.sum())
            .unwrap_or_default();
        if SUBJECTS
            .get(at)
            .is_some_and(|subject| (subject.counts)(variables))
        {
            sum
        } else {
            Sum::default()
        }
    }

    /// Returns what a SAVE of this module keeps beside it.
    pub(crate) fn mark(&self, module: Module) -> Option<(&'static str, i64, i64, String)> {
        let at = at(module)?;
        let sum = self.own.borrow().get(at)?.sum()?;
        let signed = |number| i64::try_from(number).unwrap_or(i64::MAX);
        Some((
            SUBJECTS.get(at)?.name,
            signed(sum.version),
            signed(sum.epoch),
            sums::text(sum.checksum),
        ))
    }

    /// For `stats_mysql_global`.
    pub(crate) fn counts(&self) -> [(&'static str, u64); 4] {
        let Tally {
            taken,
            refused,
            conflicts,
            failed,
        } = &self.tally;
        [
            ("Millrace_cluster_taken", taken.get()),
            ("Millrace_cluster_refused", refused.get()),
            ("Millrace_cluster_conflicts", conflicts.get()),
            ("Millrace_cluster_failed", failed.get()),
        ]
    }

    /// `PROXYSQL CLUSTER_NODE_UUID`: another proxy says who it is, in this session.
    pub(crate) fn greeted(
        &self,
        session: u32,
        (host, port): (&str, u16),
        uuid: &str,
        ifaces: &str,
        now_s: u64,
    ) {
        let mut clients = self.clients.borrow_mut();
        clients.retain(|client| client.uuid != uuid || client.host != host);
        if clients.len() >= CLIENTS_MAX {
            clients.remove(0);
        }
        let (uuid, host, ifaces) = (uuid.to_owned(), host.to_owned(), ifaces.to_owned());
        clients.push(Client {
            session,
            uuid,
            host,
            port,
            ifaces,
            seen_s: now_s,
        });
    }

    /// Notes that the proxy of this session asks again.
    pub(crate) fn seen(&self, session: u32, now_s: u64) {
        let mut clients = self.clients.borrow_mut();
        clients
            .iter_mut()
            .filter(|client| client.session == session)
            .for_each(|client| client.seen_s = now_s);
    }

    /// Counts what was in force of a module here.
    pub(super) fn serial(&self, at: At) -> Option<u64> {
        let own = |own: &Own| own.serial;
        self.own.borrow().get(at).map(own)
    }

    /// The form of a module that is in force, if it was made.
    pub(super) fn form(&self, at: At) -> Option<Rc<Form>> {
        self.form_of(at, self.serial(at)?)
    }

    /// The form of a module under this serial, if it was made.
    pub(super) fn form_of(&self, at: At, serial: u64) -> Option<Rc<Form>> {
        self.proxysql.form(at, serial)
    }

    /// Version, epoch and checksum that ProxySQLs are told of a module: nothing where they do not
    /// share it, or its form was not made yet.
    pub(super) fn sum_for_proxysql(&self, at: At, variables: &Variables) -> Sum {
        let sum = self.sum(at, variables);
        match self.form(at).filter(|_| sum.version > 0) {
            Some(form) => Sum {
                checksum: form.checksum,
                ..sum
            },
            None => Sum::default(),
        }
    }
}

/// Whether one of ours and theirs, which differ, is known to come from the other: by checksums as
/// they are, and as they were before.
fn kin((own, replaced): (Option<u64>, Option<u64>), (theirs, they_had): (u64, Option<u64>)) -> Kin {
    match (replaced == Some(theirs), own.is_some() && they_had == own) {
        (false, true) => Kin::Theirs,
        (true, false) => Kin::Ours,
        // Both went back and forth.
        _ => Kin::Unknown,
    }
}

/// Origin of a module that was taken over.
pub(crate) struct Arrived {
    /// With the checksum that it has here.
    pub(super) sum: Sum,
    /// In a ProxySQL's form, if it came from one.
    pub(super) form: Option<Rc<Form>>,
}

/// Why what is loaded here is for nobody else.
enum Apart {
    /// No other proxy has answered.
    Unmet,
    /// This one has loaded another.
    Behind(String),
}

/// A version 4 UUID of this chance.
pub(super) fn uuid(high: u64, low: u64) -> String {
    let (high, low) = (
        (high & !0xF000) | 0x4000,
        (low & (u64::MAX >> 2)) | (1 << 63),
    );
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xFFFF,
        high & 0xFFFF,
        low >> 48,
        low & 0xFFFF_FFFF_FFFF
    )
}
