//! One proxy's side of what is shared out: what it obeys, and what it says of its needs.

use super::ledger::{Ledger, Need, Report};
use rt::permits::{Share, least_share};
use std::collections::BTreeMap;

/// Looks at its needs that count: who has needed something a moment ago needs it still.
const LOOKS: usize = 6;
/// Members have to be the same at so many looks before something is shared out anew.
const SETTLED: u32 = 3;

/// Use of a limit that a proxy makes, and would make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Use {
    /// The limit.
    pub max: u32,
    /// Its share of it,
    pub share: u32,
    /// what it has,
    pub taken: u32,
    /// what of that is used,
    pub used: u32,
    /// and how many wait for more.
    pub waiting: u32,
    /// Whether the limit may be asked for at any time, so that it is shared out before somebody
    /// uses it.
    pub is_standing: bool,
}

/// Knowledge that a proxy keeps of a ledger and its needs.
#[derive(Debug, Default)]
pub struct Partner {
    /// The ledger that it obeys.
    turn: u64,
    lately: BTreeMap<String, Lately>,
    /// Members at the last look, and how often they were the same.
    members: (Vec<String>, u32),
}

/// Needs of the last looks.
#[derive(Debug, Clone, Default)]
struct Lately {
    at: usize,
    used: [u32; LOOKS],
    waiting: [u32; LOOKS],
}

impl Lately {
    fn note(&mut self, now: Use) -> (u32, u32) {
        self.at = (self.at + 1) % LOOKS;
        (self.used[self.at], self.waiting[self.at]) = (now.used, now.waiting);
        let most = |all: &[u32; LOOKS]| all.iter().copied().max().unwrap_or(0);
        (most(&self.used), most(&self.waiting))
    }
}

impl Partner {
    /// Begins to obey this ledger. A proxy that it does not know, as when the store was wiped, keeps
    /// what it has until it is known again, unless the ledger is later than its own.
    pub fn obey(&mut self, ledger: &Ledger, uuid: &str) {
        if ledger.has(uuid) || ledger.turn >= self.turn {
            self.turn = ledger.turn;
        }
    }

    /// Its share of a limit, by the ledger that it obeys; `None` if that stays as it is.
    pub fn share(&self, ledger: &Ledger, uuid: &str, limit: &str) -> Option<Share> {
        match ledger.part(limit, uuid) {
            Some(part) => Some(Share::Of(part.share)),
            None if ledger.turn == 0 || ledger.turn != self.turn => None,
            None => Some(Share::Least),
        }
    }

    /// Returns what the proxy says of its limits.
    pub fn report(
        &mut self,
        ledger: &Ledger,
        (uuid, name): (&str, &str),
        uses: &BTreeMap<String, Use>,
    ) -> Report {
        self.lately.retain(|limit, _| uses.contains_key(limit));
        let mut report = Report {
            uuid: uuid.to_owned(),
            name: name.to_owned(),
            turn: self.turn,
            needs: BTreeMap::new(),
        };
        for (limit, now) in uses {
            let (used, waiting) = self.lately.entry(limit.clone()).or_default().note(*now);
            let need = Need {
                max: now.max,
                used,
                waiting,
                held: now.share.max(now.taken),
            };
            let uses_much = need.all().max(now.taken).saturating_mul(2)
                >= least_share(now.max).max(1)
                && (need.all() > 0 || now.taken > 0);
            if now.is_standing || uses_much || ledger.limits.contains_key(limit) {
                report.needs.insert(limit.clone(), need);
            }
        }
        report
    }

    /// Whether somebody else has to know this. Each saying is a revision of the store, which keeps
    /// them for a while: a need that moves a little is not said.
    pub fn is_news(said: &Report, now: &Report) -> bool {
        let is_same = said.turn == now.turn
            && said.name == now.name
            && said.needs.keys().eq(now.needs.keys());
        let mut both = said.needs.values().zip(now.needs.values());
        !is_same || both.any(|(said, now)| has_moved(*said, *now))
    }

    /// Whether it is this proxy that writes the next ledger: the first of those that live, when they
    /// have been the same for a while.
    pub fn settles(&mut self, uuid: &str, living: &[Report]) -> bool {
        let mut members: Vec<_> = living.iter().map(|report| report.uuid.clone()).collect();
        members.sort_unstable();
        if self.members.0 == members {
            self.members.1 = self.members.1.saturating_add(1);
        } else {
            self.members = (members, 1);
        }
        self.members.1 >= SETTLED && self.members.0.first().is_some_and(|first| first == uuid)
    }
}

/// Whether others may get more or less by this.
fn has_moved(said: Need, now: Need) -> bool {
    let lacks = |need: Need| need.all() > need.held;
    let matters = match lacks(said) && lacks(now) {
        true => now.held / 2,
        false => now.held / 8,
    };
    said.max != now.max
        || said.held != now.held
        || lacks(said) != lacks(now)
        || said.all().abs_diff(now.all()) > matters
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::share::ledger::{Limit, Part};

    fn ledger(turn: u64, members: &[&str], share: u32) -> Ledger {
        let part = Part {
            share,
            most: share,
            since: 0,
        };
        let limit = Limit {
            budget: 100,
            parts: vec![part; members.len()],
        };
        Ledger {
            turn,
            members: members.iter().map(|&uuid| uuid.to_owned()).collect(),
            limits: [("x".to_owned(), limit)].into(),
        }
    }

    fn used(share: u32, used: u32, waiting: u32) -> BTreeMap<String, Use> {
        let now = Use {
            max: 1000,
            share,
            taken: used,
            used,
            waiting,
            is_standing: false,
        };
        [("x".to_owned(), now)].into()
    }

    #[test]
    fn a_ledger_that_does_not_know_a_proxy_any_more_takes_nothing_away_if_it_is_an_old_one() {
        let mut partner = Partner::default();
        let mut shares = |ledger: &Ledger| {
            partner.obey(ledger, "a");
            partner.share(ledger, "a", "x")
        };
        assert_eq!(shares(&Ledger::default()), None);
        assert_eq!(shares(&ledger(5, &["b"], 50)), Some(Share::Least));
        assert_eq!(shares(&ledger(6, &["a", "b"], 50)), Some(Share::Of(50)));
        // Wiped, and begun anew by another, who does not know it yet.
        assert_eq!(shares(&Ledger::default()), None);
        assert_eq!(shares(&ledger(1, &["b"], 99)), None);
        assert_eq!(shares(&ledger(2, &["a", "b"], 40)), Some(Share::Of(40)));
        // It was taken for dead.
        assert_eq!(shares(&ledger(3, &["b"], 99)), Some(Share::Least));
    }

    #[test]
    fn what_was_needed_a_moment_ago_is_needed_and_a_little_is_not_said() {
        let mut partner = Partner::default();
        let known = ledger(1, &["a"], 100);
        partner.obey(&known, "a");
        let mut say = |used| partner.report(&known, ("a", "host"), &used);
        let said = say(used(100, 80, 0));
        let all = |report: &Report| report.needs["x"].all();
        assert_eq!((all(&said), said.turn), (80, 1));
        let lately: Vec<_> = (0..LOOKS).map(|_| all(&say(used(100, 10, 0)))).collect();
        assert_eq!(lately, [80, 80, 80, 80, 80, 10]);
        let is_news = |now| Partner::is_news(&said, &now);
        let fresh = |now| Partner::default().report(&known, ("a", "host"), &now);
        assert!(!is_news(Report {
            turn: 1,
            ..fresh(used(100, 85, 0))
        }));
        assert!(is_news(Report {
            turn: 1,
            ..fresh(used(100, 93, 0))
        }));
        assert!(is_news(Report {
            turn: 1,
            ..fresh(used(90, 80, 0))
        }));
        assert!(is_news(Report {
            turn: 2,
            ..fresh(used(100, 80, 0))
        }));
    }

    #[test]
    fn a_limit_that_is_hardly_used_is_not_spoken_of() {
        let speaks = |ledger: &Ledger, now| {
            let report = Partner::default().report(ledger, ("a", "host"), &now);
            !report.needs.is_empty()
        };
        let nothing = Ledger::default();
        assert!(!speaks(&nothing, used(15, 7, 0)) && speaks(&nothing, used(15, 8, 0)));
        assert!(speaks(&nothing, used(15, 0, 8)) && speaks(&ledger(1, &[], 0), used(15, 0, 0)));
        let mut standing = used(15, 0, 0);
        standing.values_mut().for_each(|now| now.is_standing = true);
        assert!(speaks(&nothing, standing));
    }

    #[test]
    fn the_first_settles_when_nobody_has_come_or_gone_for_a_while() {
        let report = |uuid: &str| Report {
            uuid: uuid.to_owned(),
            ..Report::default()
        };
        let (one, two) = ([report("a")], [report("b")]);
        let mut partner = Partner::default();
        let mut settles = |living: &[Report]| partner.settles("a", living);
        assert!(!settles(&one) && !settles(&one) && settles(&one));
        let both = [report("b"), report("a")];
        assert!(!settles(&both) && !settles(&both) && settles(&both) && settles(&both));
        assert!((0..9).all(|_| !settles(&two)));
    }
}
