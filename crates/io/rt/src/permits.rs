//! Limits over all cores: one counter per key (a server's `max_connections`, a user's), shared by
//! every thread.
//!
//! A limit may hold over several processes. Each then has a share of it, which another thread moves.

use crate::flow::Flow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// All counters of the process by name. Cloning shares them.
#[derive(Clone)]
pub struct Registry {
    all: Arc<Mutex<HashMap<String, Arc<Permits>>>>,
    lines: Arc<AtomicUsize>,
    /// Share of counters that are made from now on.
    first_share: Arc<AtomicU32>,
    /// By its name, which part of a limit a process may have that leaves.
    left_to: fn(&str) -> Beside,
    /// Parts that it has named, once it has.
    told: Arc<Mutex<Option<HashMap<String, u32>>>>,
}

/// Part of a limit that a process has which leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beside {
    /// Nothing: each process has the limit for itself.
    Nothing,
    /// Its connections to servers. All of the limit but one until more is known, and one is left at least:
    /// whoever gets none waits.
    Connections,
    /// Its clients. None until more is known, since whoever gets none is refused; but all of
    /// it may be taken.
    Clients,
}

/// Lines of waiting tasks that are told apart; with more cores than that, some share one, and are a
/// little less fair.
const LINES: usize = 64;
/// With so many counters, and each time that they are twice as many, those that nobody has are
/// forgotten.
const UNUSED_MAX: usize = 1024;
/// Turns of so long may be taken at once.
const BURST_NS: u64 = 100_000_000;
const SECOND_NS: u64 = 1_000_000_000;
/// Nobody waits.
const NOBODY: u64 = u64::MAX;
/// Share of a process that has the whole limit,
const WHOLE: u32 = u32::MAX;
/// and of one that has the least part of whatever the limit is.
const LEAST: u32 = u32::MAX - 1;
/// The least part of a limit is one of so many.
const LEAST_OF: u32 = 64;

/// The part of a limit that a process of several has without being given it: a 64th, and one where
/// that is less.
#[must_use]
pub const fn least_share(max: u32) -> u32 {
    match max / LEAST_OF {
        0 if max > 0 => 1,
        share => share,
    }
}

/// The part of a limit that is this process's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share {
    /// All of it: there is no other process.
    Whole,
    /// [`least_share`] of it.
    Least,
    /// So many of it, at most.
    Of(u32),
}

impl Share {
    const fn code(self) -> u32 {
        match self {
            Self::Whole => WHOLE,
            Self::Least => LEAST,
            // Nobody is given more than that.
            Self::Of(share) if share >= LEAST => LEAST - 1,
            Self::Of(share) => share,
        }
    }
}

impl Default for Registry {
    fn default() -> Self {
        Self::new()
    }
}

impl Registry {
    /// A registry without counters.
    pub fn new() -> Self {
        Self {
            all: Arc::default(),
            lines: Arc::default(),
            first_share: Arc::new(AtomicU32::new(WHOLE)),
            left_to: |_| Beside::Nothing,
            told: Arc::default(),
        }
    }

    /// A registry of a process that takes over from another, until [`Registry::leave_out`] tells
    /// what that one has.
    pub fn beside_another(left_to: fn(&str) -> Beside) -> Self {
        Self {
            left_to,
            ..Self::new()
        }
    }

    /// Says how many of each limit a process has that leaves: they are left out of this process's part. Nothing of
    /// those that are not named.
    pub fn leave_out(&self, has: HashMap<String, u32>) {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        for (key, permits) in all.iter() {
            let code = has.get(key).map_or(0, |has| has.saturating_add(1));
            if permits.left_to != Beside::Nothing {
                permits.beside.store(code, Ordering::Release);
            }
        }
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        *told = Some(has);
    }

    /// Calls this with each counter, under a lock.
    pub fn each(&self, mut hears: impl FnMut(&str, &Permits)) {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().for_each(|(key, permits)| hears(key, permits));
    }

    /// The counter of `key`, made at the first request. Takes a lock: ask once and keep the answer.
    pub fn get(&self, key: &str) -> Arc<Permits> {
        self.known_or_made(key, false)
    }

    /// Counter of `key` whose limit may hold over several processes.
    pub fn shared(&self, key: &str) -> Arc<Permits> {
        self.known_or_made(key, true)
    }

    /// Says whether limits hold over several processes. In the first call that says so every shared
    /// counter gets the least share, or what is taken if that is more; in the first that does not,
    /// the whole.
    pub fn hold_for_several(&self, several: bool) {
        let share = if several { LEAST } else { WHOLE };
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if self.first_share.swap(share, Ordering::AcqRel) != share {
            let shared = all.values().filter(|permits| permits.is_shared);
            for permits in shared {
                permits.kept.store(permits.taken(), Ordering::Release);
                permits.share.store(share, Ordering::Release);
            }
        }
    }

    /// Whether limits hold over several processes.
    pub fn is_for_several(&self) -> bool {
        self.first_share.load(Ordering::Acquire) != WHOLE
    }

    /// Calls this with each shared counter, under a lock.
    pub fn each_shared(&self, mut hears: impl FnMut(&str, &Permits)) {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let shared = all.iter().filter(|(_, permits)| permits.is_shared);
        shared.for_each(|(key, permits)| hears(key, permits));
    }

    fn known_or_made(&self, key: &str, is_shared: bool) -> Arc<Permits> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = all.get(key) {
            return found.clone();
        }
        if all.len() >= UNUSED_MAX && all.len().is_power_of_two() {
            all.retain(|_, known| Arc::strong_count(known) > 1 || known.taken() > 0);
        }
        let load = |applies: bool, one: &AtomicU32| applies.then(|| one.load(Ordering::Acquire));
        let share = load(is_shared, &self.first_share).unwrap_or(WHOLE);
        let left_to = (self.left_to)(key);
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let beside = match (left_to, &*told) {
            (Beside::Nothing, _) | (Beside::Clients, None) => 0,
            (Beside::Connections, None) => u32::MAX,
            (_, Some(told)) => told.get(key).map_or(0, |has| has.saturating_add(1)),
        };
        drop(told);
        let made = Arc::new(Permits {
            share: AtomicU32::new(share),
            beside: AtomicU32::new(beside),
            left_to,
            is_shared,
            ..Permits::default()
        });
        all.insert(key.to_string(), made.clone());
        made
    }

    /// A number for a core's line of waiting tasks.
    pub fn line(&self) -> usize {
        self.lines.fetch_add(1, Ordering::Relaxed) % LINES
    }
}

/// One counter, alone on its cache line so that two servers never slow each other down.
#[repr(align(128))]
pub struct Permits {
    taken: AtomicU32,
    wanted: AtomicU32,
    /// The part of the limit that is this process's: its code.
    share: AtomicU32,
    /// The least share is so many at least: what was taken when there were others all at once.
    kept: AtomicU32,
    /// One more than a process may have of it that leaves; 0 without such a process.
    beside: AtomicU32,
    /// Which part that is.
    left_to: Beside,
    /// As many at most, whatever the share is: of a process that leaves.
    most: AtomicU32,
    /// Times that somebody was refused by the share and not by the limit, since that was asked.
    refused: AtomicU32,
    /// Whether other processes may have a part of the limit.
    is_shared: bool,
    /// Of a limit of so many a second: when the next turn is, in nanoseconds of the clock that all
    /// cores share,
    next: AtomicU64,
    /// and turns that were taken, since that was asked.
    turns: AtomicU32,
    /// Since when the first of each core's line waits; made when somebody waits for the first time.
    lines: OnceLock<Box<[AtomicU64; LINES]>>,
    /// Windows of samples, of a limit that follows them; made when somebody asks for it.
    flow: OnceLock<Box<Flow>>,
}

impl Default for Permits {
    fn default() -> Self {
        Self {
            taken: AtomicU32::new(0),
            wanted: AtomicU32::new(0),
            share: AtomicU32::new(WHOLE),
            kept: AtomicU32::new(0),
            beside: AtomicU32::new(0),
            left_to: Beside::Nothing,
            most: AtomicU32::new(u32::MAX),
            refused: AtomicU32::new(0),
            is_shared: false,
            next: AtomicU64::new(0),
            turns: AtomicU32::new(0),
            lines: OnceLock::new(),
            flow: OnceLock::new(),
        }
    }
}

impl Permits {
    /// Takes one permit unless `max` are taken already, or as many as this process's share of that.
    pub fn try_take(&self, max: u32) -> bool {
        let share = self.of(max);
        let taken = self
            .taken
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, |n| {
                (n < share).then(|| n + 1)
            })
            .is_ok();
        if !taken && share < max {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
        taken
    }

    /// This process's part of `max`; `u32::MAX` is no limit, and has no parts.
    pub fn of(&self, max: u32) -> u32 {
        let part = match self.share.load(Ordering::Relaxed) {
            _ if max == u32::MAX => return max,
            LEAST => max.min(least_share(max).max(self.kept.load(Ordering::Relaxed))),
            share => max.min(share),
        };
        let part = match self.beside.load(Ordering::Relaxed) {
            0 => part,
            has if self.left_to == Beside::Clients => part.saturating_sub(has - 1),
            // One at least, or nobody would be served.
            has => part.saturating_sub(has - 1).max(part.min(1)),
        };
        part.min(self.most.load(Ordering::Relaxed))
    }

    /// Whether a process that leaves has some of it.
    pub fn is_beside(&self) -> bool {
        self.beside.load(Ordering::Relaxed) > 1
    }

    /// Has this process keep so many at most, whatever its share is: another goes on, and has the rest of it.
    pub fn keep(&self, most: u32) {
        self.most.store(most, Ordering::Release);
    }

    /// One that a process had which leaves is here now, and taken: it is not left out any more.
    pub fn came_here(&self) {
        // At 1 there is none.
        let one_less = |has: u32| (has > 1).then(|| has - 1);
        let _none = self
            .beside
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, one_less);
    }

    /// Gives this process another part of the limit. More may be taken than that: they are given
    /// back, and no others taken meanwhile.
    pub fn set_share(&self, share: Share) {
        self.kept.store(0, Ordering::Release);
        self.share.store(share.code(), Ordering::Release);
    }

    /// How often somebody was refused by the share and not by the limit, since this was asked last.
    pub fn refused(&self) -> u32 {
        self.refused.swap(0, Ordering::Relaxed)
    }

    /// Gives one permit back. Giving more than was taken is a bug of the caller and leaves the
    /// counter at 0.
    pub fn give(&self) {
        let before = self
            .taken
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, |n| n.checked_sub(1));
        debug_assert!(before.is_ok(), "a permit was given back that nobody took");
    }

    /// How long it is until a turn, of `per_s` in a second, that were taken now. So many turns as come
    /// up in a tenth of a second may be taken at once, and at least one.
    pub fn until_turn(&self, now_ns: u64, per_s: u32) -> Duration {
        let (step, burst) = self.pace(per_s);
        let next = self.next.load(Ordering::Relaxed);
        let after = next.max(now_ns).saturating_add(step);
        Duration::from_nanos(after.saturating_sub(now_ns.saturating_add(burst)))
    }

    /// Takes a turn, however long it is until then.
    pub fn take_turn(&self, now_ns: u64, per_s: u32) {
        let (step, _) = self.pace(per_s);
        let after = |next: u64| Some(next.max(now_ns).saturating_add(step));
        let _always = self
            .next
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, after);
        self.turns.fetch_add(1, Ordering::Relaxed);
    }

    /// Somebody is sent away, whom the whole limit may have let in.
    pub fn refuse(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Turns that were taken since this was asked last.
    pub fn turns(&self) -> u32 {
        self.turns.swap(0, Ordering::Relaxed)
    }

    /// Nanoseconds from one turn to the next, and in how many turns may be taken at once.
    fn pace(&self, per_s: u32) -> (u64, u64) {
        let step = SECOND_NS / u64::from(self.of(per_s).max(1));
        (step, step.max(BURST_NS))
    }

    /// Takes one permit whatever the limit is; how many are taken then.
    pub fn take(&self) -> u32 {
        self.taken.fetch_add(1, Ordering::AcqRel).saturating_add(1)
    }

    /// Windows of samples that this limit follows.
    pub fn flow(&self) -> &Flow {
        self.flow.get_or_init(Box::default)
    }

    /// How many are taken now.
    pub fn taken(&self) -> u32 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Says since when (nanoseconds of the clock that all cores share) the first in this line
    /// waits.
    pub fn wait_since(&self, line: usize, ns: u64) {
        let lines = self
            .lines
            .get_or_init(|| Box::new([const { AtomicU64::new(NOBODY) }; LINES]));
        if lines[line % LINES].swap(ns.min(NOBODY - 1), Ordering::AcqRel) == NOBODY {
            self.wanted.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Nobody in this line waits any more.
    pub fn wait_no_more(&self, line: usize) {
        let Some(lines) = self.lines.get() else {
            return;
        };
        if lines[line % LINES].swap(NOBODY, Ordering::AcqRel) != NOBODY {
            self.wanted.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Since when the one waits that waits longest in a line other than this one.
    pub fn waits_elsewhere(&self, line: usize) -> Option<u64> {
        let lines = self.lines.get()?;
        let others = lines
            .iter()
            .enumerate()
            .filter(|(at, _)| *at != line % LINES);
        others
            .map(|(_, since)| since.load(Ordering::Relaxed))
            .min()
            .filter(|since| *since != NOBODY)
    }

    /// How many lines wait.
    pub fn wanted(&self) -> u32 {
        self.wanted.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_that_nobody_has_are_forgotten() {
        let registry = Registry::new();
        let held = registry.get("held");
        registry.get("taken").try_take(1);
        for n in 0..10 * UNUSED_MAX {
            drop(registry.get(&format!("opened in hostgroup {n}")));
        }
        assert!(registry.all.lock().unwrap().len() <= UNUSED_MAX + 2);
        assert!(Arc::ptr_eq(&held, &registry.get("held")));
        assert_eq!(registry.get("taken").taken(), 1);
    }

    #[test]
    fn one_key_is_one_counter_and_the_limit_holds() {
        let registry = Registry::new();
        let (a, b) = (registry.get("db1:3306"), registry.clone().get("db1:3306"));
        assert!(a.try_take(2) && b.try_take(2));
        assert!(!a.try_take(2));
        b.give();
        assert_eq!(a.taken(), 1);
        assert_eq!(registry.get("db2:3306").taken(), 0);
    }

    #[test]
    fn a_shared_limit_is_this_processs_part_of_it() {
        let registry = Registry::new();
        let (old, own) = (registry.shared("server"), registry.get("copies"));
        assert_eq!(old.of(1000), 1000);
        registry.hold_for_several(true);
        let new = registry.shared("user");
        assert_eq!([&old, &new, &own].map(|one| one.of(1000)), [15, 15, 1000]);
        let parts = [0, 1, 63, 128, u32::MAX].map(|max| new.of(max));
        assert_eq!(parts, [0, 1, 1, 2, u32::MAX]);
        new.set_share(Share::Of(2));
        assert!(new.try_take(3) && new.try_take(3) && !new.try_take(3));
        assert_eq!((new.refused(), new.refused()), (1, 0));
        // The limit itself is lower.
        assert!(!new.try_take(1) && new.refused() == 0);
        // What was said of one stays when all are told again.
        registry.hold_for_several(true);
        assert_eq!((new.of(1000), new.taken()), (2, 2));
        new.set_share(Share::Of(1));
        assert!(!new.try_take(3) && new.taken() == 2);
        let mut known = Vec::new();
        registry.each_shared(|key, permits| known.push((key.to_owned(), permits.taken())));
        known.sort();
        assert_eq!(known, [("server".to_owned(), 0), ("user".to_owned(), 2)]);
        registry.hold_for_several(false);
        assert_eq!([&old, &new].map(|one| one.of(1000)), [1000, 1000]);
        // What works already keeps what it has, until it is told its share.
        assert!((0..28).all(|_| new.try_take(1000)));
        registry.hold_for_several(true);
        assert_eq!([&old, &new].map(|one| one.of(1000)), [15, 30]);
        assert!(new.of(20) == 20 && !new.try_take(1000));
        new.set_share(Share::Least);
        assert_eq!(new.of(1000), 15);
    }

    #[test]
    fn a_process_that_takes_over_leaves_out_what_the_other_has() {
        let registry = Registry::beside_another(|key| match key {
            "server" => Beside::Connections,
            "user" | "made later" => Beside::Clients,
            _ => Beside::Nothing,
        });
        let tell = |limits: &[(&str, u32)]| {
            let limits = limits.iter().map(|(key, has)| ((*key).to_owned(), *has));
            registry.leave_out(limits.collect());
        };
        let (server, own) = (registry.shared("server"), registry.get("copies"));
        let user = registry.shared("user");
        // Nothing was said yet.
        assert_eq!(
            [&server, &own, &user].map(|one| one.of(1000)),
            [1, 1000, 1000]
        );
        tell(&[("server", 300), ("copies", 5), ("user", 7)]);
        let parts = [&server, &own, &user].map(|one| one.of(1000));
        assert_eq!(parts, [700, 1000, 993]);
        // Clients are refused if nothing is left, and those that come from there are counted once.
        assert_eq!((user.of(7), server.of(300)), (0, 1));
        user.came_here();
        assert_eq!(user.of(7), 1);
        (0..9).for_each(|_| user.came_here());
        assert_eq!(user.of(7), 7);
        tell(&[("server", 1), ("made later", 2)]);
        assert_eq!((user.of(7), registry.get("made later").of(7)), (7, 5));
        let parts = [0, 1, 2, 640, u32::MAX].map(|max| server.of(max));
        assert_eq!(parts, [0, 1, 1, 639, u32::MAX]);
        server.set_share(Share::Of(20));
        tell(&[("server", 5)]);
        assert_eq!(server.of(1000), 15);
        server.set_share(Share::Whole);
        tell(&[]);
        assert_eq!(server.of(1000), 1000);
        assert_eq!(registry.shared("made later").of(1000), 1000);
        // A process that leaves keeps no more than it has, whatever share others give it.
        server.keep(3);
        server.set_share(Share::Of(20));
        assert_eq!(server.of(1000), 3);
    }

    #[test]
    fn turns_come_up_so_many_times_a_second_and_a_few_at_once() {
        const MS: u64 = 1_000_000;
        let ms = Duration::from_millis;
        let turn = |permits: &Permits, at_ms: u64, per_s| {
            let wait = permits.until_turn(at_ms * MS, per_s);
            permits.take_turn(at_ms * MS, per_s);
            wait
        };
        let permits = Permits::default();
        let at = |at_ms| turn(&permits, at_ms, 100);
        // A tenth of a second's turns at once, then one each hundredth.
        assert!((0..10).all(|_| at(1000) == ms(0)));
        assert_eq!([at(1000), at(1000), at(1005)], [ms(10), ms(20), ms(25)]);
        assert_eq!((permits.turns(), permits.turns()), (13, 0));
        // Silence saves nothing up beyond that.
        assert!((0..10).all(|_| at(60_000) == ms(0)) && at(60_000) == ms(10));
        let seldom = Permits::default();
        assert_eq!(
            [5000, 5000].map(|at| turn(&seldom, at, 1)),
            [ms(0), ms(1000)]
        );
        // A share of it is slower.
        let shared = Permits::default();
        shared.set_share(Share::Of(10));
        assert_eq!([0, 0].map(|at| turn(&shared, at, 1000)), [ms(0), ms(100)]);
    }

    #[test]
    fn a_line_sees_who_waits_in_the_others() {
        let registry = Registry::new();
        let (a, b) = (registry.line(), registry.clone().line());
        let permits = registry.get("x");
        assert_eq!((permits.wanted(), permits.waits_elsewhere(a)), (0, None));
        permits.wait_since(b, 7);
        permits.wait_since(b, 9);
        assert_eq!(
            (
                permits.wanted(),
                permits.waits_elsewhere(a),
                permits.waits_elsewhere(b)
            ),
            (1, Some(9), None)
        );
        permits.wait_no_more(b);
        permits.wait_no_more(b);
        assert_eq!((permits.wanted(), permits.waits_elsewhere(a)), (0, None));
    }

    #[test]
    fn threads_never_take_more_than_the_limit() {
        let permits = Registry::new().get("x");
        std::thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| {
                    for _ in 0..10_000 {
                        if permits.try_take(3) {
                            assert!(permits.taken() <= 3);
                            permits.give();
                        }
                    }
                });
            }
        });
        assert_eq!(permits.taken(), 0);
    }
}
