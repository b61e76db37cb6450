//! How limits are shared out: who gives, and who gets. No proxy asks another before it takes what it
//! has a share of; so the shares of all are never more than there is.
//!
//! A share that is lowered counts as it was until its proxy says that it has no more than that. Only
//! then others get the rest.

use super::ledger::{Ledger, Limit, Need, Part, Report};
use rt::permits::least_share;
use std::collections::{BTreeMap, BTreeSet};

/// Limits that a ledger has, at most; a proxy has the least share of others.
pub const LIMITS_MAX: usize = 512;
/// Proxies that have more than the least share, at most: a ledger has one key of etcd, 1.5 MB.
pub const MEMBERS_MAX: usize = 64;
/// A proxy that has used all but one of so many parts of its share is about to lack some.
const NEARLY: u32 = 8;
/// Shares move by one of so many parts of the limit at least, or not at all.
const STEP: u32 = 64;
/// A least share of so many is enough to begin with: a limit that nobody uses leaves a ledger
const ENOUGH: u32 = 8;
/// that has more limits than this.
const CROWDED: usize = LIMITS_MAX / 2;

/// The next ledger; `None` if all stays. `reports`: of those that live.
pub fn settle(before: &Ledger, reports: &[Report]) -> Option<Ledger> {
    let mut living: Vec<&Report> = reports.iter().collect();
    living.sort_unstable_by(|a, b| a.uuid.cmp(&b.uuid));
    living.dedup_by(|a, b| a.uuid == b.uuid);
    living.truncate(MEMBERS_MAX);
    let mut after = Ledger {
        turn: before.turn.saturating_add(1),
        members: living.iter().map(|report| report.uuid.clone()).collect(),
        limits: BTreeMap::new(),
    };
    let have_looked = living.iter().all(|report| report.turn >= before.turn);
    let new = living.iter().flat_map(|report| report.needs.keys());
    for name in before.limits.keys().chain(new).collect::<BTreeSet<_>>() {
        let known = before.limits.get(name);
        if known.is_none() && after.limits.len() >= LIMITS_MAX {
            continue;
        }
        let seats: Vec<Seat> = living
            .iter()
            .map(|report| Seat::of(before, name, report))
            .collect();
        let asked = seats.iter().filter_map(|seat| seat.need);
        let budget = asked.map(|need| need.max).min();
        let Some(budget) =
            budget.or_else(|| known.filter(|_| !have_looked).map(|known| known.budget))
        else {
            // Nobody has such a limit any more.
            continue;
        };
        let is_new =
            known.is_none_or(|known| known.budget != budget) || before.members != after.members;
        if before.limits.len() > CROWDED && is_idle(budget, &seats) {
            if seats.iter().all(|seat| seat.has_least(budget)) {
                continue;
            }
            let parts = moved(
                budget,
                &seats,
                &vec![least_share(budget); seats.len()],
                after.turn,
            );
            after.limits.insert(name.clone(), Limit { budget, parts });
            continue;
        }
        let parts = settle_one(budget, &seats, is_new, after.turn);
        after.limits.insert(name.clone(), Limit { budget, parts });
    }
    let shares = |ledger: &Ledger| {
        let limits = ledger.limits.iter().map(|(name, limit)| {
            let shares = limit.parts.iter().map(|part| part.share);
            (name.clone(), limit.budget, shares.collect::<Vec<_>>())
        });
        limits.collect::<Vec<_>>()
    };
    let is_same = before.members == after.members && shares(before) == shares(&after);
    (!is_same).then_some(after)
}

/// Facts that are known of one proxy and one limit.
struct Seat {
    need: Option<Need>,
    part: Part,
    /// Whether the proxy has said what it holds under the share that it has.
    is_heard: bool,
}

impl Seat {
    fn of(before: &Ledger, name: &str, report: &Report) -> Self {
        let need = report.needs.get(name).copied();
        let held = need.map_or(0, |need| need.held);
        let part = before.part(name, &report.uuid).unwrap_or_else(|| {
            // It has been given nothing, and takes no more than the least.
            let max = need.map(|need| need.max);
            let max = max.or_else(|| before.limits.get(name).map(|limit| limit.budget));
            let share = least_share(max.unwrap_or(0));
            Part {
                share,
                most: share.max(held),
                since: 0,
            }
        });
        let is_heard = need.is_some() && report.turn >= part.since;
        let most = match is_heard {
            true => part.share.max(held),
            false => part.most.max(held),
        };
        Self {
            need,
            part: Part { most, ..part },
            is_heard,
        }
    }

    fn need(&self) -> u32 {
        self.need.map_or(0, Need::all)
    }

    /// Whether it has no more than without a ledger, and has said so.
    fn has_least(&self, budget: u32) -> bool {
        self.is_heard && self.part.most <= least_share(budget)
    }

    /// Returns what the proxy should have, with something left.
    fn wish(&self) -> u32 {
        match self.need() {
            0 => 0,
            need => need.saturating_add(need / NEARLY).saturating_add(1),
        }
    }
}

/// Whether the least share is enough for all, for long.
fn is_idle(budget: u32, seats: &[Seat]) -> bool {
    let least = least_share(budget);
    least >= ENOUGH && seats.iter().all(|seat| seat.need() <= least / 2)
}

/// The parts of one limit.
fn settle_one(budget: u32, seats: &[Seat], is_new: bool, turn: u64) -> Vec<Part> {
    let least = least_share(budget);
    let wishes: Vec<u32> = seats.iter().map(Seat::wish).collect();
    let targets = fill(budget, least, &wishes);
    let step = (budget / STEP).max(1);
    let lacks = seats.iter().zip(&targets).any(|(seat, target)| {
        let share = seat.part.share;
        seat.need() > share - share / NEARLY && *target >= share.saturating_add(step)
    });
    let all = |amounts: &mut dyn Iterator<Item = u32>| amounts.map(u64::from).sum::<u64>();
    let is_whole =
        all(&mut seats.iter().map(|seat| seat.part.share)) == all(&mut targets.iter().copied());
    match lacks || is_new || !is_whole {
        true => moved(budget, seats, &targets, turn),
        false => seats.iter().map(|seat| seat.part).collect(),
    }
}

/// Shares as near to these as they can be now.
fn moved(budget: u32, seats: &[Seat], targets: &[u32], turn: u64) -> Vec<Part> {
    let mut parts: Vec<Part> = seats.iter().map(|seat| seat.part).collect();
    for (part, target) in parts.iter_mut().zip(targets) {
        if *target < part.share {
            (part.share, part.since) = (*target, turn);
        }
    }
    let given: u64 = parts.iter().map(|part| u64::from(part.most)).sum();
    let mut free = u32::try_from(u64::from(budget).saturating_sub(given)).unwrap_or(u32::MAX);
    let mut order: Vec<usize> = (0..parts.len()).collect();
    let lack = |at: &usize| seats[*at].need().saturating_sub(parts[*at].share);
    order.sort_by_key(|at| std::cmp::Reverse(lack(at)));
    for at in order {
        let (part, target) = (&mut parts[at], targets[at]);
        if target <= part.share {
            continue;
        }
        part.share = target.min(part.most.saturating_add(free));
        let taken = part.share.saturating_sub(part.most);
        part.most = part.most.max(part.share);
        free -= taken;
    }
    parts
}

/// Divides a budget: each gets what it wishes, as far as all can have as much; then of what is left
/// all alike. Nobody gets less than the least.
fn fill(budget: u32, least: u32, wishes: &[u32]) -> Vec<u32> {
    let count = u32::try_from(wishes.len()).unwrap_or(u32::MAX);
    let mut targets = vec![least; wishes.len()];
    let Some(mut left) = budget.checked_sub(least.saturating_mul(count)) else {
        return targets;
    };
    let mut order: Vec<usize> = (0..wishes.len()).collect();
    order.sort_by_key(|at| wishes[*at]);
    for (nth, at) in (0..count).zip(order) {
        // Nobody behind it wishes less.
        let even = left / (count - nth);
        let more = wishes[at].saturating_sub(least).min(even);
        targets[at] += more;
        left -= more;
    }
    let (each, odd) = (left / count.max(1), left % count.max(1));
    for (nth, target) in (0..count).zip(&mut targets) {
        *target += each + u32::from(nth < odd);
    }
    targets
}
