//! What a server has said of itself, and for how long that is believed.

use hashbrown::HashSet;
use rt::Instant;
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::Duration;
use wire::track::Wish;

/// A server that has said that it takes no more connections is believed for so long, where others
/// may be asked.
pub(crate) const BELIEVED: Duration = Duration::from_secs(1);
/// Accounts of which a place remembers that.
const ACCOUNTS_MAX: usize = 64;

/// Whom a server takes no more connections of, as it has said, and when: `None` is anybody.
#[derive(Default)]
pub(crate) struct Full(RefCell<Vec<(Option<Box<str>>, Instant)>>);

impl Full {
    pub(crate) fn said(&self, user: Option<&str>, now: Instant) {
        let mut all = self.0.borrow_mut();
        all.retain(|(whose, since)| whose.as_deref() != user && now - *since < BELIEVED);
        if all.len() == ACCOUNTS_MAX {
            all.remove(0);
        }
        all.push((user.map(Into::into), now));
    }

    pub(crate) fn is_for(&self, user: &str, now: Instant, believed: Duration) -> bool {
        let all = self.0.borrow();
        all.iter().any(|(whose, since)| {
            now - *since < believed && whose.as_deref().is_none_or(|whose| whose == user)
        })
    }
}

/// So long what a server said that it allows counts: an operator may allow more since.
const REMEMBERED: Duration = Duration::from_secs(600);
/// Of what a server allows, all connections to it keep one part of so many in each way of
/// preparing: it has other clients, and other hostgroups may have it, too.
const SHARE: u64 = 4;

/// Statements that a server allows, as it has said when it was full.
#[derive(Debug, Default)]
pub(crate) struct Allowed(Cell<Option<(u32, Instant)>>);

impl Allowed {
    pub(crate) fn learn(&self, allowed: Option<u32>, now: Instant) {
        if let Some(allowed) = allowed {
            self.0.set(Some((allowed, now)));
        }
    }

    /// Forgets what was said long ago.
    pub(crate) fn age(&self, now: Instant) {
        let old = |(_, said): (u32, Instant)| now - said >= REMEMBERED;
        if self.0.get().is_some_and(old) {
            self.0.set(None);
        }
    }

    /// Statements that each of so many connections may keep, of `most`.
    pub(crate) fn share(&self, most: u64, connections: u32) -> u64 {
        self.0.get().map_or(most, |(allowed, _)| {
            let share = u64::from(allowed) / SHARE / u64::from(connections.max(1));
            most.min(share.max(1))
        })
    }
}

/// Who may not ask is not asked for again for so long.
pub(crate) const REFUSED: Duration = Duration::from_secs(60);
/// More users than this are not remembered.
const USERS_MAX: usize = 1000;

/// Users whom a server does not tell what is left.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    users: RefCell<HashSet<Box<str>>>,
    since: Cell<Option<Instant>>,
}

impl Refusals {
    pub(crate) fn has(&self, user: &str) -> bool {
        self.since.get().is_some() && self.users.borrow().contains(user)
    }

    pub(crate) fn add(&self, user: &str, now: Instant) {
        let mut users = self.users.borrow_mut();
        if users.len() < USERS_MAX {
            users.insert(user.into());
        }
        self.since.set(self.since.get().or(Some(now)));
    }

    /// Somebody may have granted it since.
    pub(crate) fn forget_old(&self, now: Instant) {
        if self.since.get().is_some_and(|since| now - since >= REFUSED) {
            self.forget();
        }
    }

    pub(crate) fn forget(&self) {
        self.users.borrow_mut().clear();
        self.since.set(None);
    }
}

/// Knowledge of a server's tracking.
#[derive(Debug, Clone, Default)]
pub(crate) enum Tracks {
    /// Nobody has asked yet.
    #[default]
    Unknown,
    /// No tracking by the server, or none for us.
    Not,
    As(Arc<Told>),
}

/// How a server tells.
#[derive(Debug)]
pub(crate) struct Told {
    /// The variables of which it tells then: names with commas between, or `*`.
    pub(crate) names: String,
    /// The statement that makes it tell all.
    pub(crate) turn_on: String,
    /// Changes that the server tells sessions that have not asked for anything.
    pub(crate) by_default: Arc<Wish>,
    /// Changes that the server tells sessions that have not asked for anything, where it tells only
    /// us of transactions: without one that is open, and with one. `None` if it tells all sessions
    /// of transactions.
    pub(crate) without_transactions: Option<[Arc<Wish>; 2]>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_is_full_is_believed_for_a_second_by_those_whom_it_means() {
        let full = Full::default();
        let at = |ms: u64| Instant::from_ns(ms * 1_000_000);
        full.said(Some("few"), at(0));
        assert!(
            full.is_for("few", at(999), BELIEVED)
                && !full.is_for("few", at(1000), BELIEVED)
                && !full.is_for("other", at(1), BELIEVED)
        );
        full.said(None, at(500));
        assert!(
            full.is_for("other", at(600), BELIEVED)
                && full.is_for("few", at(1400), BELIEVED)
                && !full.is_for("other", at(1500), BELIEVED)
        );
        for user in 0..1000 {
            full.said(Some(&user.to_string()), at(2000));
        }
        assert_eq!(full.0.borrow().len(), ACCOUNTS_MAX);
        assert!(full.is_for("999", at(2001), BELIEVED));
    }

    #[test]
    fn connections_share_what_a_server_allows_for_a_while() {
        let at = |seconds: u64| Instant::from_ns(seconds * 1_000_000_000);
        let allowed = Allowed::default();
        assert_eq!(allowed.share(20, 1), 20);
        allowed.learn(Some(400), at(0));
        let shares = [1, 10, 50, 1000].map(|connections| allowed.share(20, connections));
        assert_eq!(shares, [20, 10, 2, 1]);
        allowed.age(at(599));
        assert_eq!(allowed.share(20, 10), 10);
        allowed.age(at(600));
        assert_eq!(allowed.share(20, 10), 20);
    }
}
