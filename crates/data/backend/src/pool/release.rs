//! A connection is given back: kept, lent to another core, cleaned first, or closed.

use crate::connection::backend::{Backend, Idle};
use crate::connection::lease::{Lease, Unreported};
use crate::cores::neighbours::{GIVE_WAY, LEND_WAY};
use crate::hostgroup::group::Group;
use crate::hostgroup::linger::Lingers;
use crate::pool::pools::Pools;
use crate::session::hold::Hold;
use bridge::Counter;
use rt::Instant;
use std::rc::Rc;
use std::time::Duration;

impl Pools {
    /// Give a connection back. It is kept only when it may be shared, and its protocol state is
    /// proven idle.
    pub fn release(&self, backend: Box<Backend>) {
        self.release_shared(backend);
    }

    /// Gives back a connection of which nobody knows what is on its way there: it is closed.
    pub fn abandon(&self, mut backend: Box<Backend>) {
        backend.idle = Idle::Doubtful;
        self.release(backend);
    }

    /// Gives a connection back. Whether somebody else may have it: it is idle here, on its way to
    /// another core, or closed to leave its room to who waits.
    pub(crate) fn release_shared(&self, mut backend: Box<Backend>) -> bool {
        let hostgroup = backend.place.server().hostgroup;
        backend.in_use = false;
        backend.place.end_use();
        let had_slot = backend.slot.take().is_some();
        backend.close_meant_otherwise();
        backend.lease = Lease::default();
        backend.lasting.since = self.rt.now();
        let place = backend.place.clone();
        let shareable = backend.idle == Idle::Proven
            && backend.holds.is_empty()
            && !backend.retired
            && !backend.interrupted
            && backend.local.unreported == Unreported::Nothing
            && backend.conn.is_idle();
        let young = self.max_age.get().is_zero()
            || self.rt.now() - backend.lasting.opened < self.max_age.get();
        let group = self.group(hostgroup);
        if had_slot {
            self.has_freed_slot(&group, &place);
        }
        let paced = group.paced.first_since_for(&backend.key);
        let since = [group.queue.first_since(), paced]
            .into_iter()
            .flatten()
            .min();
        // Others shall not have in clear what is to be encrypted since, nor what another client was
        // named for, nor what began otherwise.
        let alike = place.is_alike(&backend.lasting.opened_as, backend.init_connect.as_deref());
        let may_be_shared = shareable && young && alike && place.keeps();
        let mut kept = may_be_shared.then_some(backend);
        if place.is_over() {
            // A LOAD has lowered a limit: it goes, whoever waits.
            kept = None;
        }
        if kept.is_some() && !group.wishes.is_empty() {
            let room = self.gives_way(&place, since, LEND_WAY);
            kept = kept.and_then(|backend| self.pass_on(&group, backend, room, since));
            if kept.is_none() {
                // It is on its way to who has waited longest.
                group.queue.call();
                return may_be_shared;
            }
        }
        let will_travel = |backend: &Backend| {
            since.is_none() && self.is_about_to_be_asked_for(&group, &place, backend)
        };
        let goes = kept.as_ref().is_some_and(|backend| {
            self.gives_way(&place, since, GIVE_WAY) && !will_travel(backend)
        });
        match kept.filter(|_| !goes) {
            Some(backend) => {
                self.note_modes(&backend);
                self.tally.up(Counter::MyhgmPoolPush);
                let key = paced.is_some().then(|| backend.key.clone());
                place.idle.borrow_mut().push(backend);
                if let Some(key) = key {
                    group.paced.offer(&key);
                }
            }
            None => self.tally.up(Counter::MyhgmPoolDestroy),
        }
        group.queue.call();
        may_be_shared
    }

    /// A session goes on as if it had just begun: what others could wait for, or see, of what it
    /// did is gone from the server when this returns, as it is where the server itself is asked for
    /// a reset. Where that takes more than five seconds, or cannot be, the connection is closed.
    pub async fn clean(&self, mut backend: Box<Backend>) {
        if backend.idle == Idle::Proven && backend.conn.is_idle() {
            self.reset(&mut backend).await;
        } else {
            self.tally.up(Counter::KilledBackendConnections);
        }
        self.release(backend);
    }

    /// A session ends while it holds a connection: clean it aside and give it back, or close it.
    pub fn give_up(self: &Rc<Self>, mut backend: Box<Backend>) {
        if backend.idle != Idle::Proven || !backend.conn.is_idle() {
            self.tally.up(Counter::KilledBackendConnections);
            self.release(backend);
            return;
        }
        if !backend.holds.need_reset() && backend.local.unreported == Unreported::Nothing {
            if backend.holds.has(Hold::InsertId) {
                backend.lasting.insert_id = None;
            }
            backend.holds.clear();
            self.release(backend);
            return;
        }
        if self.resets.get() >= self.resets_max.get() {
            // So many were given up at once that closing it is sooner done.
            self.abandon(backend);
            return;
        }
        self.resets.set(self.resets.get() + 1);
        let pools = self.clone();
        let rolls_back =
            backend.holds.end_with_transaction() && backend.local.unreported == Unreported::Nothing;
        self.rt.spawn(async move {
            if rolls_back {
                pools.roll_back(&mut backend).await;
            } else {
                pools.reset(&mut backend).await;
            }
            pools.resets.set(pools.resets.get() - 1);
            pools.release(backend);
        });
    }

    /// Ends the transaction of a session that has ended in it. All else that is set there is known,
    /// and serves the next of its kind.
    async fn roll_back(&self, backend: &mut Backend) {
        let ended = self
            .rt
            .timeout(Duration::from_secs(5), backend.roll_back())
            .await;
        if !matches!(ended, Ok(Ok(()))) {
            backend.idle = Idle::Doubtful;
        }
    }

    pub(crate) async fn reset(&self, backend: &mut Backend) {
        let reset = self
            .rt
            .timeout(Duration::from_secs(5), backend.reset())
            .await;
        if !matches!(reset, Ok(Ok(()))) {
            backend.idle = Idle::Doubtful;
        }
    }

    /// A session has fallen silent, and only what this connection remembers for it keeps that: it
    /// may be asked for.
    pub fn lingers(&self, backend: &Backend, who: &Rc<dyn Lingers>) {
        let group = self.group(backend.place.server().hostgroup);
        group.lingering.add(&backend.key, &backend.place, who);
    }

    /// A connection that nobody had is idle again, as it has been since then, if it may still stay.
    pub(crate) fn rest(&self, group: &Group, mut backend: Box<Backend>, since: Instant) {
        let place = backend.place.clone();
        let stays = backend.idle == Idle::Proven
            && backend.conn.is_idle()
            && place.keeps()
            // A LOAD may have lowered a limit since.
            && !place.is_over()
            && place.is_alike(&backend.lasting.opened_as, backend.init_connect.as_deref());
        if !stays {
            return;
        }
        backend.lasting.since = since;
        let key = (!group.paced.is_empty()).then(|| backend.key.clone());
        place.idle.borrow_mut().push(backend);
        if let Some(key) = key {
            group.paced.offer(&key);
        }
    }

    /// An idle connection is of no more use: the log says so, once a second for each server.
    pub(crate) fn unhealthy(&self, backend: &Backend, why: &str) {
        let place = &backend.place;
        if self.log_unhealthy.get() && place.known.may_tell(self.rt.now()) {
            let idle_ms = (self.rt.now() - backend.lasting.since).as_millis();
            let (host, port, id) = (place.host(), place.server().port, backend.hello.thread_id);
            self.note(&format!(
                "connection {id} to {host}:{port} is closed after {idle_ms} ms without use: {why}"
            ));
        }
    }
}
