//! Connections that are opened ahead, see `mysql-connection_warming`: for whoever a server let in
//! last, until as many are open as `mysql-free_connections_pct` keeps. No client waits for that.

use crate::connection::place::{LetIn, Place};
use crate::hostgroup::group::Group;
use crate::open::taken::Taken;
use crate::pool::pools::Pools;
use crate::session::key::Key;
use crate::session::login::Attempt;
use crate::session::state::State;
use crate::session::want::Want;
use bridge::Counter;
use config::Snapshot;
use std::rc::Rc;
use wire::connect_attributes::ConnectAttributes;

impl Pools {
    /// Opens what is missing at a server, one after another, aside.
    pub(crate) fn warm(self: &Rc<Self>, group: &Rc<Group>, place: &Rc<Place>, snapshot: &Snapshot) {
        if place.warming.get()
            || place.taken() >= self.kept_free(group, place)
            || !self.may_warm(group, place)
        {
            return;
        }
        let Some(who) = place.last_in.borrow().clone() else {
            return;
        };
        if snapshot.users.backend(&who.user).is_none() {
            place.last_in.take();
            return;
        }
        place.warming.set(true);
        let (pools, group, place, snapshot) =
            (self.clone(), group.clone(), place.clone(), snapshot.clone());
        self.rt.spawn(async move {
            pools.open_ahead(&group, &place, &who, &snapshot).await;
            place.warming.set(false);
        });
    }

    /// Whether it is wanted, and the server takes work that any client may use.
    fn may_warm(&self, group: &Group, place: &Place) -> bool {
        group.warms.get() && place.serves(self.rt.now()) && place.proxy_protocol.get() == 0
    }

    async fn open_ahead(&self, group: &Group, place: &Rc<Place>, who: &LetIn, snapshot: &Snapshot) {
        let state = State::new("", who.collation);
        let attributes = ConnectAttributes::default();
        let want = Want {
            hostgroup: place.server().hostgroup,
            caps: who.caps,
            collation: who.collation,
            ..Want::of_nobody((&who.user, &who.secret), snapshot, &state, &attributes)
        };
        while self.may_warm(group, place) && !self.is_wanted_elsewhere(place) {
            let Some(room) = Taken::of(place, self.kept_free(group, place)) else {
                return;
            };
            if !self.keeps_pace(group, &want) {
                return;
            }
            let key = Key {
                user: who.user.as_ref().into(),
                caps: who.caps,
                client: None,
            };
            match Box::pin(self.open(room, &want, key)).await {
                Ok(backend) => {
                    self.tally.up(Counter::ConnectionsOpenedAhead);
                    if !self.release_shared(backend) {
                        // What init_connect leaves, or its age, lets nobody share it: until
                        // somebody is let in again.
                        place.last_in.take();
                        return;
                    }
                }
                Err(failed) => {
                    if matches!(failed, Attempt::Final(_)) {
                        // It would be refused again: until it lets somebody in.
                        place.last_in.take();
                    }
                    return;
                }
            }
        }
    }
}
