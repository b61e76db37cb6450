//! The oracles' book: what happened, what must not have happened, and what was promised to clients.

use rt::{Instant, Rt};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::Duration;

/// Result of a world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The seed.
    pub seed: u64,
    /// Everything that happened, in order.
    pub story: Vec<String>,
    /// Events that must not happen and did.
    pub violations: Vec<String>,
    /// Commands that were answered well.
    pub answered: u64,
    /// Errors that a fault explains, and connections that broke.
    pub excused: u64,
    /// Statements that shared a connection in flight, connections that one core lent to another,
    /// clients that it handed over, and statements that waited for a place in flight.
    pub between: [u64; 4],
    /// Transactions and single inserts that were acknowledged.
    pub committed: u64,
    /// How often what happened of which a world without would prove little: among others, how often
    /// a connection went from one client to another, and after what.
    pub hits: BTreeMap<&'static str, u64>,
}

/// Fate of an insert, as far as its client knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Its commit was acknowledged.
    Acknowledged,
    /// Nobody knows: the answer did not come.
    Unknown,
    /// Rollback of the insert, or loss of its transaction before COMMIT was asked for.
    Never,
}

pub(crate) struct Judge {
    rt: Rt,
    began: Instant,
    /// Something may break here: errors have an excuse.
    pub(crate) rough: Cell<bool>,
    story: RefCell<Vec<String>>,
    violations: RefCell<Vec<String>>,
    answered: Cell<u64>,
    excused: Cell<u64>,
    /// As in the verdict.
    pub(crate) between: Cell<[u64; 4]>,
    hits: RefCell<BTreeMap<&'static str, u64>>,
    fates: RefCell<BTreeMap<String, (Fate, Instant)>>,
    /// State, by tag, of a session when it said what has this tag: its copy has to find the same.
    states: RefCell<BTreeMap<String, [String; 10]>>,
    /// The schema of who said what has this tag.
    schemas: RefCell<BTreeMap<String, Vec<String>>>,
    /// From when to when the servers saw a connection: (server, from, to).
    seen: RefCell<Vec<(&'static str, Instant, Option<Instant>)>>,
    /// Sessions that were closed in silence, where only the core knows whether state of theirs went
    /// with a server's connection.
    silent: RefCell<Vec<(String, String)>>,
    offline: RefCell<Vec<Offline>>,
    /// When a password had expired: from, to.
    expired: RefCell<Vec<(Instant, Option<Instant>)>>,
}

/// A server that was out of service.
struct Offline {
    server: &'static str,
    /// OFFLINE_HARD: nobody keeps a connection.
    hard: bool,
    from: Instant,
    to: Option<Instant>,
}

/// So long after its server has become OFFLINE_HARD a connection that somebody had is gone.
const CUT_OFF: Duration = Duration::from_millis(100);

impl Judge {
    pub(crate) fn new(rt: Rt, rough: bool) -> Self {
        Self {
            began: rt.now(),
            rt,
            rough: Cell::new(rough),
            story: RefCell::default(),
            violations: RefCell::default(),
            answered: Cell::new(0),
            excused: Cell::new(0),
            between: Cell::default(),
            hits: RefCell::default(),
            fates: RefCell::default(),
            states: RefCell::default(),
            schemas: RefCell::default(),
            seen: RefCell::default(),
            silent: RefCell::default(),
            offline: RefCell::default(),
            expired: RefCell::default(),
        }
    }

    /// Writes a line of the story.
    pub(crate) fn tell(&self, who: &str, what: &str) {
        let at = self.rt.now() - self.began;
        self.story.borrow_mut().push(format!(
            "{:>12.3} ms  {who}: {what}",
            at.as_secs_f64() * 1000.0
        ));
    }

    /// Something happened that must not.
    pub(crate) fn accuse(&self, who: &str, what: &str) {
        self.tell(who, &format!("VIOLATION: {what}"));
        self.violations.borrow_mut().push(format!("{who}: {what}"));
    }

    pub(crate) fn check(&self, holds: bool, who: &str, what: impl FnOnce() -> String) {
        if !holds {
            self.accuse(who, &what());
        }
    }

    /// Counts that this happened so many times more.
    pub(crate) fn hit(&self, what: &'static str, times: u64) {
        *self.hits.borrow_mut().entry(what).or_default() += times;
    }

    pub(crate) fn was_answered(&self) {
        self.answered.set(self.answered.get() + 1);
    }

    /// The session was closed in silence: right only if the core counts it among those that have
    /// lost something.
    pub(crate) fn left_silently(&self, who: &str, what: String) {
        self.excuse(who, &what);
        self.silent.borrow_mut().push((who.to_owned(), what));
    }

    /// So many sessions have lost something, as the cores count.
    pub(crate) fn judge_closed(&self, lost: u64) {
        let closed = self.silent.take();
        if closed.len() as u64 > lost {
            closed.iter().for_each(|(who, what)| self.accuse(who, what));
        }
    }

    /// An error or a broken connection: right only where something may break.
    pub(crate) fn excuse(&self, who: &str, what: &str) {
        if self.rough.get() {
            self.excused.set(self.excused.get() + 1);
            self.tell(who, what);
        } else {
            self.accuse(who, &format!("no fault explains this: {what}"));
        }
    }

    /// Notes what became of an insert, as its client knows.
    pub(crate) fn fate(&self, tag: &str, fate: Fate) {
        self.fates
            .borrow_mut()
            .insert(tag.to_owned(), (fate, self.rt.now()));
    }

    /// Returns what became of an insert, as far as it is known.
    pub(crate) fn fate_of(&self, tag: &str) -> Option<Fate> {
        self.fates.borrow().get(tag).map(|(fate, _)| *fate)
    }

    /// The inserts of a client that were acknowledged, and when.
    pub(crate) fn acknowledged(&self, owner: &str) -> Vec<(String, Instant)> {
        let first = format!("{owner}-");
        let fates = self.fates.borrow();
        let all = fates
            .range(first.clone()..)
            .take_while(|(tag, _)| tag.starts_with(&first));
        all.filter(|(_, (fate, _))| *fate == Fate::Acknowledged)
            .map(|(tag, (_, at))| (tag.clone(), *at))
            .collect()
    }

    /// A copy of what has this tag finds this.
    pub(crate) fn expect_copy(&self, tag: &str, state: [String; 10]) {
        self.states.borrow_mut().insert(tag.to_owned(), state);
    }

    /// Returns the state that a copy of what has this tag finds, if somebody has said so.
    pub(crate) fn state_of_copy(&self, tag: &str) -> Option<[String; 10]> {
        self.states.borrow().get(tag).cloned()
    }

    /// Notes that what has this tag is said in this schema. An XA transaction is ended in another
    /// one where its client had no answer, and what it said before may still be on its way.
    pub(crate) fn said_in(&self, tag: &str, schema: &str) {
        let mut all = self.schemas.borrow_mut();
        let known = all.entry(tag.to_owned()).or_default();
        if !known.iter().any(|known| known == schema) {
            known.push(schema.to_owned());
        }
    }

    /// In which schemas somebody has said what has this tag, if anybody has.
    pub(crate) fn schemas_of(&self, tag: &str) -> Option<Vec<String>> {
        self.schemas.borrow().get(tag).cloned()
    }

    /// A server accepted a connection; the number is for [`closed`](Self::closed).
    pub(crate) fn opened(&self, server: &'static str) -> usize {
        let mut seen = self.seen.borrow_mut();
        seen.push((server, self.rt.now(), None));
        seen.len() - 1
    }

    /// A server saw the end of a connection. The first word counts.
    pub(crate) fn closed(&self, number: usize) {
        if let Some((_, _, to)) = self.seen.borrow_mut().get_mut(number) {
            to.get_or_insert(self.rt.now());
        }
    }

    /// A connection that has no place among those of which there must not be too many.
    pub(crate) fn overlook(&self, number: usize) {
        if let Some((_, from, to)) = self.seen.borrow_mut().get_mut(number) {
            *to = Some(*from);
        }
    }

    /// Never more than `max` connections to a server. An end is heard of up to `late` after it was.
    pub(crate) fn judge_connections(&self, server: &'static str, max: u32, late: Duration) {
        let mut turns = Vec::new();
        for (whose, from, to) in self.seen.borrow().iter() {
            if *whose == server {
                let from = *from - self.began;
                let to = to.map_or(Duration::MAX, |to| (to - self.began).saturating_sub(late));
                if from < to {
                    turns.push((from, 1i64));
                    turns.push((to, -1));
                }
            }
        }
        turns.sort();
        let (mut now, mut most) = (0, 0);
        for (_, by) in turns {
            now += by;
            most = most.max(now);
        }
        let enough = most <= i64::from(max);
        self.check(enough, server, || {
            format!("{most} connections at once; max_connections is {max}")
        });
    }

    /// Every core has been told that no work may go to this server; the number is for
    /// [`comes_online`](Self::comes_online).
    pub(crate) fn goes_offline(&self, server: &'static str, hard: bool) -> usize {
        self.hit(
            if hard {
                "a server OFFLINE_HARD"
            } else {
                "a server OFFLINE_SOFT"
            },
            1,
        );
        let mut offline = self.offline.borrow_mut();
        offline.push(Offline {
            server,
            hard,
            from: self.rt.now(),
            to: None,
        });
        offline.len() - 1
    }

    /// The cores are about to be told that it may have work again.
    pub(crate) fn comes_online(&self, number: usize) {
        if let Some(offline) = self.offline.borrow_mut().get_mut(number) {
            offline.to = Some(self.rt.now());
        }
    }

    /// From now on the password of one account has expired, on all servers.
    pub(crate) fn expire(&self) {
        if !self.is_expired() {
            self.tell("world", "a password expires");
            self.expired.borrow_mut().push((self.rt.now(), None));
        }
    }

    /// Notes that the account has a new password.
    pub(crate) fn renew(&self) {
        if let Some((_, to)) = self.expired.borrow_mut().last_mut() {
            to.get_or_insert(self.rt.now());
        }
    }

    /// Whether it has expired.
    pub(crate) fn is_expired(&self) -> bool {
        self.expired
            .borrow()
            .last()
            .is_some_and(|(_, to)| to.is_none())
    }

    /// Whether it has, or had at any time since.
    pub(crate) fn was_expired_since(&self, since: Instant) -> bool {
        self.expired
            .borrow()
            .last()
            .is_some_and(|(_, to)| to.is_none_or(|to| to >= since))
    }

    /// Nothing is opened to a server that is out of service, and nothing stays open to one that is
    /// OFFLINE_HARD. Either is heard of up to `late` after it was.
    pub(crate) fn judge_offline(&self, server: &'static str, late: Duration) {
        let words = |what: &str, from: Instant, at: Instant| {
            format!(
                "a connection of {:?} {what}, {:?} after the beginning",
                from - self.began,
                at - self.began
            )
        };
        for offline in self
            .offline
            .borrow()
            .iter()
            .filter(|offline| offline.server == server)
        {
            let until = offline.to.unwrap_or_else(|| self.rt.now());
            let (told, cut) = (offline.from + late, offline.from + late + CUT_OFF);
            for (_, from, to) in self
                .seen
                .borrow()
                .iter()
                .filter(|(whose, ..)| *whose == server)
            {
                // One that only says KILL has no length here.
                let counts = *to != Some(*from);
                let opened = counts && *from > told && *from < until;
                self.check(!opened, server, || {
                    words("was opened while it was offline", *from, *from)
                });
                let stays =
                    offline.hard && *from <= told && cut < until && to.is_none_or(|to| to > cut);
                self.check(!stays, server, || {
                    words("was open although it was OFFLINE_HARD", *from, cut)
                });
            }
        }
    }

    /// Checks that what was acknowledged is in the log once, what was rolled back is not, and
    /// anything else at most once.
    pub(crate) fn judge_log(&self, log: &[String]) {
        let mut times: BTreeMap<&str, u32> = BTreeMap::new();
        for tag in log {
            *times.entry(tag).or_default() += 1;
        }
        let fates = self.fates.borrow();
        for (tag, (fate, _)) in fates.iter() {
            let n = times.remove(tag.as_str()).unwrap_or(0);
            let right = match fate {
                Fate::Acknowledged => n == 1,
                Fate::Unknown => n <= 1,
                Fate::Never => n == 0,
            };
            self.check(right, "log", || {
                format!("{tag} is there {n} times, and its client was told {fate:?}")
            });
        }
        for tag in times.keys() {
            self.accuse("log", &format!("{tag} was inserted by nobody"));
        }
    }

    pub(crate) fn verdict(&self, seed: u64) -> Verdict {
        let committed = self
            .fates
            .borrow()
            .values()
            .filter(|(fate, _)| *fate == Fate::Acknowledged)
            .count();
        Verdict {
            seed,
            story: self.story.borrow().clone(),
            violations: self.violations.borrow().clone(),
            answered: self.answered.get(),
            excused: self.excused.get(),
            between: self.between.get(),
            committed: committed as u64,
            hits: self.hits.borrow().clone(),
        }
    }
}
