//! Cores tell each other what the sessions of a user have written, where these share their writes.
//!
//! Each core has all that it has heard. A counter over all cores says how often anybody had something to
//! tell: a core that has heard less does not know all, and says so.
//!
//! docs/features/causal-reads.md, docs/decisions/0066

use crate::core::Core;
use crate::core::peers::{FromPeer, Peer, Said};
use crate::known::shared_writes::{Known, News, Shared};
use gtid::Set;
use rt::permits::Permits;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// A core whose mailbox is full is told again after this.
const AGAIN: Duration = Duration::from_millis(5);

impl Core {
    fn counter(&self, user: &str) -> Arc<Permits> {
        self.permits().get(&format!("writes of user {user}"))
    }

    /// A session of a user who shares his writes has written. Every core hears of it, or knows that it does not
    /// know all, before the client has its answer.
    pub(crate) fn share_write(self: &Rc<Self>, user: &str, hostgroup: u32, what: Shared) {
        let news = || News {
            times: 1,
            by_hostgroup: BTreeMap::from([(hostgroup, what.clone())]),
        };
        self.shared_writes.of(
            user,
            || self.counter(user),
            |of| {
                of.all.take();
                of.join(&news());
            },
        );
        for (core, peer) in self.peers.iter().enumerate() {
            if let Some(peer) = peer {
                self.tell_of_write(core, peer, user, news());
            }
        }
    }

    fn tell_of_write(self: &Rc<Self>, core: usize, peer: &Peer, user: &str, news: News) {
        let said = Said::Wrote(user.into(), news);
        let Err(back) = peer.hand.try_send(FromPeer(said)) else {
            return;
        };
        let FromPeer(Said::Wrote(user, news)) = back.into_inner() else {
            return;
        };
        let mut owed = self.shared_writes.owed.borrow_mut();
        let is_told_again = owed.contains_key(&core);
        let of_user = owed.entry(core).or_default().entry(user).or_default();
        of_user.times = of_user.times.wrapping_add(news.times);
        for (hostgroup, shared) in &news.by_hostgroup {
            of_user
                .by_hostgroup
                .entry(*hostgroup)
                .or_default()
                .join(shared);
        }
        if !is_told_again {
            self.rt.spawn(self.clone().tell_again(core));
        }
    }

    /// Tells a core what its mailbox had no room for.
    async fn tell_again(self: Rc<Self>, core: usize) {
        self.rt.sleep(AGAIN).await;
        let owed = self.shared_writes.owed.borrow_mut().remove(&core);
        let Some(Some(peer)) = self.peers.get(core) else {
            return;
        };
        for (user, news) in owed.into_iter().flatten() {
            self.tell_of_write(core, peer, &user, news);
        }
    }

    /// Another core has told of writes.
    pub(crate) fn hear_of_write(&self, user: &str, news: &News) {
        self.shared_writes
            .of(user, || self.counter(user), |of| of.join(news));
    }

    /// Writes of a user's sessions in a hostgroup. What was written before this process began is among what the
    /// servers there had executed when this was asked for the first time; so are writes in a process that leaves.
    pub(crate) fn shared_writes(&self, user: &str, hostgroup: u32) -> Known {
        let serves_beside = || self.permits().shared(&format!("user {user}")).is_beside();
        self.shared_writes.of(
            user,
            || self.counter(user),
            |of| {
                if of.heard != of.all.taken() {
                    return Known::Unsure;
                }
                if !of.begun.contains(&hostgroup) {
                    let executed = self.pools.executed_in(hostgroup);
                    let Some(executed) = executed.filter(|_| !serves_beside()) else {
                        return Known::Unsure;
                    };
                    let there = of.by_hostgroup.entry(hostgroup).or_default();
                    there.set.union(&executed);
                    of.begun.push(hostgroup);
                }
                match of.by_hostgroup.get(&hostgroup) {
                    None => Known::Within(Set::default()),
                    Some(there) if there.is_sure() => Known::Within(there.set.clone()),
                    Some(_) => Known::Unsure,
                }
            },
        )
    }
}
