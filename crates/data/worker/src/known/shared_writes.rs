//! Writes of all sessions of a user, where one of them sees what another has written (`causal_scope`), as one core
//! knows them.
//!
//! docs/features/causal-reads.md, docs/decisions/0066

use gtid::Set;
use rt::Instant;
use rt::permits::Permits;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Numbers of a source that are remembered one by one. The gaps between older ones are filled:
/// a server must then have what others wrote between them, too.
pub(crate) const INTERVALS_MAX: usize = 16;

/// Writes in one hostgroup. Those of two cores are joined in any order, and any number of times.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Shared {
    /// As a server has told.
    pub(crate) set: Set,
    /// When the last was made of which no server has told.
    pub(crate) unsure: Option<Instant>,
    /// When the last statement began of which one has told: it has a higher number than all that ended before.
    pub(crate) told: Option<Instant>,
}

impl Shared {
    pub(crate) fn join(&mut self, other: &Self) {
        self.set.union(&other.set);
        self.set.coarsen(INTERVALS_MAX);
        self.unsure = self.unsure.max(other.unsure);
        self.told = self.told.max(other.told);
    }

    /// Whether all of it is known.
    pub(crate) fn is_sure(&self) -> bool {
        self.unsure.is_none_or(|at| self.told > Some(at))
    }
}

/// Writes of a user that a core has to tell to another.
#[derive(Debug, Default)]
pub(crate) struct News {
    /// So many times did somebody have something to tell.
    pub(crate) times: u32,
    pub(crate) by_hostgroup: BTreeMap<u32, Shared>,
}

/// Of one user.
pub(crate) struct OfUser {
    /// How often anybody had something to tell, over all cores,
    pub(crate) all: Arc<Permits>,
    /// and how much of that this core knows.
    pub(crate) heard: u32,
    pub(crate) by_hostgroup: BTreeMap<u32, Shared>,
    /// Hostgroups in which what was written before this process began is known.
    pub(crate) begun: Vec<u32>,
}

impl OfUser {
    pub(crate) fn join(&mut self, news: &News) {
        self.heard = self.heard.wrapping_add(news.times);
        for (hostgroup, shared) in &news.by_hostgroup {
            self.by_hostgroup
                .entry(*hostgroup)
                .or_default()
                .join(shared);
        }
    }
}

/// Writes of the users who share theirs: those whom the configuration says so of.
#[derive(Default)]
pub(crate) struct SharedWrites {
    users: RefCell<HashMap<Box<str>, OfUser>>,
    /// By core, what its mailbox had no room for.
    pub(crate) owed: RefCell<HashMap<usize, HashMap<Box<str>, News>>>,
}

impl SharedWrites {
    pub(crate) fn of<T>(
        &self,
        user: &str,
        counter: impl FnOnce() -> Arc<Permits>,
        does: impl FnOnce(&mut OfUser) -> T,
    ) -> T {
        let mut users = self.users.borrow_mut();
        if !users.contains_key(user) {
            let new = OfUser {
                all: counter(),
                heard: 0,
                by_hostgroup: BTreeMap::new(),
                begun: Vec::new(),
            };
            users.insert(user.into(), new);
        }
        does(users.get_mut(user).expect("it is there now"))
    }

    /// Forgets what users have written who do not share it any more. How much was heard stays.
    pub(crate) fn keep(&self, shares: impl Fn(&str) -> bool) {
        let mut users = self.users.borrow_mut();
        for (_, of) in users.iter_mut().filter(|(user, _)| !shares(user)) {
            of.by_hostgroup.clear();
            of.begun.clear();
        }
    }
}

/// Writes of a user in a hostgroup that a read must see.
pub(crate) enum Known {
    /// All of them are among these.
    Within(Set),
    /// Nobody knows all.
    Unsure,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn news_are_joined_in_any_order_and_told_later_is_surer() {
        let start = Instant::default();
        let at = |ms| Some(start + Duration::from_millis(ms));
        let set = |text: &str| text.parse::<Set>().unwrap();
        const A: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
        let told = |number: u64, begun| Shared {
            set: set(&format!("{A}:{number}")),
            told: at(begun),
            ..Shared::default()
        };
        let untold = |ms| Shared {
            unsure: at(ms),
            ..Shared::default()
        };
        let joined = |all: &[Shared]| {
            let (mut one, mut other) = (Shared::default(), Shared::default());
            all.iter().for_each(|news| one.join(news));
            all.iter().rev().for_each(|news| other.join(news));
            assert_eq!(one, other);
            one
        };
        assert!(joined(&[]).is_sure());
        assert!(!joined(&[untold(5)]).is_sure());
        // It may have a lower number: it began before the other had ended.
        assert!(!joined(&[untold(5), told(7, 4)]).is_sure());
        assert!(!joined(&[untold(5), told(7, 5)]).is_sure());
        assert!(joined(&[untold(5), told(7, 6)]).is_sure());
        assert!(!joined(&[untold(5), told(7, 6), untold(9)]).is_sure());
        let all = joined(&[told(7, 1), told(9, 3), told(8, 2)]);
        assert_eq!(all.set, set(&format!("{A}:7-9")));
    }
}
