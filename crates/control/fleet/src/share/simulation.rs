//! Proxies, a store, and bad luck: shares of all together are never more than the page says.
//!
//! A proxy obeys, says and settles as the real one, with the same functions. Between any two of these
//! it may be cut off, lose its lease, or die.

use super::ledger::{Ledger, Report};
use super::partner::{Partner, Use};
use super::settle::settle;
use rt::permits::{Share, least_share};
use std::collections::BTreeMap;

const LIMIT: &str = "server 1 db:3306";
/// Looks for which a report stays in the store without being renewed.
const LEASE: u32 = 12;

type Settles = fn(&Ledger, &[Report]) -> Option<Ledger>;

/// A stream of numbers; a seed is a run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let z = u32::try_from((z ^ (z >> 31)) >> 32).unwrap();
        u32::try_from((u64::from(z) * u64::from(n)) >> 32).unwrap()
    }

    fn one_in(&mut self, n: u32) -> bool {
        self.below(n) == 0
    }
}

/// The store. A writing has a guard, as etcd's.
#[derive(Default)]
struct Store {
    ledger: Ledger,
    /// The one before.
    before: Ledger,
    /// With the looks that each report has left.
    reports: BTreeMap<String, (Report, u32)>,
}

struct Proxy {
    uuid: String,
    partner: Partner,
    share: Share,
    taken: u32,
    used: u32,
    wanted: u32,
    /// Looks for which the store does not hear it.
    cut_off: u32,
    /// Nobody comes or goes, and nothing is lost.
    is_calm: bool,
}

impl Proxy {
    fn new(uuid: String) -> Self {
        Self {
            uuid,
            partner: Partner::default(),
            share: Share::Least,
            taken: 0,
            used: 0,
            wanted: 0,
            cut_off: 0,
            is_calm: false,
        }
    }

    fn share(&self, max: u32) -> u32 {
        match self.share {
            Share::Of(share) => share.min(max),
            Share::Least => least_share(max),
            Share::Whole => max,
        }
    }

    /// All that it has or may take.
    fn may_have(&self, max: u32) -> u32 {
        self.share(max).max(self.taken)
    }

    /// Statements come and go; connections are opened, kept idle, and closed.
    fn works(&mut self, dice: &mut Dice, max: u32, is_calm: bool) {
        if !is_calm && dice.one_in(12) {
            self.wanted = match dice.below(3) {
                0 => 0,
                1 => dice.below(max / 3 + 2),
                _ => dice.below(max * 2 + 2),
            };
        }
        // What is in use ends by and by.
        let may_end = self.used.saturating_sub(self.wanted);
        self.used -= dice.below(may_end + 1);
        let share = self.share(max);
        while self.used < self.wanted && (self.used < self.taken || self.taken < share) {
            self.used += 1;
            self.taken = self.taken.max(self.used);
        }
        if dice.one_in(3) || self.taken > share {
            self.taken = self.used.max(share.min(self.taken));
        }
    }

    /// One look. Whatever is cut off in the middle is not done.
    fn looks(&mut self, store: &mut Store, dice: &mut Dice, max: u32, settles: Settles) {
        let is_calm = self.is_calm;
        if self.cut_off > 0 {
            self.cut_off -= 1;
            return;
        }
        let seen = store.ledger.clone();
        self.partner.obey(&seen, &self.uuid);
        if let Some(share) = self.partner.share(&seen, &self.uuid, LIMIT) {
            self.share = share;
        }
        self.works(dice, max, is_calm);
        if !is_calm && dice.one_in(40) {
            return;
        }
        let now = Use {
            max,
            share: self.share(max),
            taken: self.taken,
            used: self.used,
            waiting: self.wanted.saturating_sub(self.used),
            is_standing: true,
        };
        let uses = [(LIMIT.to_owned(), now)].into();
        let report = self.partner.report(&seen, (&self.uuid, ""), &uses);
        store.reports.insert(self.uuid.clone(), (report, LEASE));
        if !is_calm && dice.one_in(40) {
            return;
        }
        let turn = store.ledger.turn;
        let living: Vec<_> = store
            .reports
            .values()
            .map(|(report, _)| report.clone())
            .collect();
        if self.partner.settles(&self.uuid, &living)
            && let Some(next) = settles(&store.ledger, &living)
        {
            // Another may write meanwhile, if it takes itself for the first.
            assert!(next.turn > turn);
            store.before = std::mem::replace(&mut store.ledger, next);
        }
    }
}

/// A fleet of so many, for so many looks of each; the most that was had beyond the limit, and
/// how much of the time that somebody waited something was left.
fn run(seed: u64, count: u32, max: u32, settles: Settles) -> Result<(u32, u32), String> {
    let mut dice = Dice(seed);
    let mut store = Store::default();
    let mut proxies: Vec<_> = (0..count)
        .map(|nth| Proxy::new(format!("p{nth:02}")))
        .collect();
    let (mut born, mut over_most, mut wasted) = (count, 0, 0);
    for look in 0..300 {
        // From time to time nothing happens, and all comes to rest.
        let is_calm = look % 100 >= 60;
        for at in 0..proxies.len() {
            if !is_calm && dice.one_in(60) {
                proxies[at].cut_off = dice.below(3 * LEASE);
            }
            if !is_calm && dice.one_in(200) {
                // It dies; its report stays until its lease is over.
                proxies[at] = Proxy::new(format!("p{born:02}"));
                born += 1;
            }
            let uuid = proxies[at].uuid.clone();
            proxies[at].is_calm = is_calm;
            if is_calm {
                proxies[at].cut_off = 0;
            }
            if proxies[at].cut_off == 0
                && let Some((_, left)) = store.reports.get_mut(&uuid)
            {
                *left = LEASE;
            }
            let turn = store.ledger.turn;
            proxies[at].looks(&mut store, &mut dice, max, settles);
            proxies[at].works(&mut dice, max, is_calm);
            let is_new = turn != store.ledger.turn;
            let changed = if is_new { 0..proxies.len() } else { at..at + 1 };
            check(&store, &proxies[changed], max)
                .map_err(|words| format!("seed {seed}, look {look}: {words}"))?;
        }
        store.reports.values_mut().for_each(|(_, left)| *left -= 1);
        store.reports.retain(|_, (_, left)| *left > 0);
        let all: u32 = proxies.iter().map(|proxy| proxy.taken).sum();
        over_most = over_most.max(all.saturating_sub(max));
        let waits = proxies
            .iter()
            .any(|proxy| proxy.wanted > proxy.used && proxy.used > 0);
        let used: u32 = proxies.iter().map(|proxy| proxy.used).sum();
        wasted += u32::from(look % 100 > 90 && waits && used + 2 * count < max - max / 4);
    }
    Ok((over_most, wasted))
}

/// Returns what a ledger counts for all together.
fn counted(ledger: &Ledger) -> u32 {
    let parts = ledger.limits.get(LIMIT).map(|limit| limit.parts.iter());
    parts.into_iter().flatten().map(|part| part.most).sum()
}

/// Proxies that have parts never have more than the ledger counts for them. The ledger never counts
/// more than there is, but for what somebody had whom it had forgotten, and then it counts no more
/// than that.
fn check(store: &Store, proxies: &[Proxy], max: u32) -> Result<(), String> {
    let (before, after) = (&store.before, &store.ledger);
    for proxy in proxies {
        let (part, has) = (after.part(LIMIT, &proxy.uuid), proxy.may_have(max));
        if let Some(part) = part.filter(|part| has > part.most) {
            return Err(format!("{} has {has}, and {part:?} is counted", proxy.uuid));
        }
    }
    let joined = after.members.iter().filter(|uuid| !before.has(uuid));
    let joined = joined.filter_map(|uuid| after.part(LIMIT, uuid));
    let joined: u32 = joined.map(|part| part.most).sum();
    let (now, allowed) = (counted(after), max.max(counted(before) + joined));
    if now > allowed {
        return Err(format!("{now} are counted, and {allowed} are allowed"));
    }
    let shares = after.limits.get(LIMIT).map(|limit| limit.parts.iter());
    let shares: u32 = shares.into_iter().flatten().map(|part| part.share).sum();
    let least = least_share(max) * u32::try_from(after.members.len()).unwrap();
    match shares <= max.max(least) {
        true => Ok(()),
        false => Err(format!("shares are {shares} together")),
    }
}

const FLEETS: [(u32, u32); 6] = [(3, 30), (3, 1000), (5, 64), (10, 30), (20, 200), (50, 500)];

#[test]
fn a_fleet_never_has_more_than_its_limit_but_for_whom_the_store_has_forgotten() {
    let (mut looks, mut wasted) = (0, 0);
    for (count, max) in FLEETS {
        for seed in 0..10 {
            let (_, waste) = run(seed, count, max, settle).unwrap_or_else(|words| {
                panic!("{count} proxies, a limit of {max}: {words}");
            });
            (looks, wasted) = (looks + 27, wasted + waste);
        }
    }
    // When nothing happens for a while, what somebody lacks is not left with others, but for one
    // that each may begin with, and one before it lacks some.
    assert!(
        wasted * 20 < looks,
        "something was left in {wasted} of {looks} looks"
    );
}

#[test]
fn a_share_that_counts_as_lowered_at_once_is_found_out() {
    fn hasty(before: &Ledger, reports: &[Report]) -> Option<Ledger> {
        let mut reports = reports.to_vec();
        for report in &mut reports {
            let share = before.part(LIMIT, &report.uuid).map(|part| part.share);
            for need in report.needs.values_mut() {
                need.held = share.unwrap_or(need.held);
            }
            report.turn = before.turn;
        }
        settle(before, &reports)
    }
    let finds = |(count, max)| (0..10).any(|seed| run(seed, count, max, hasty).is_err());
    assert!(FLEETS.into_iter().any(finds));
}
