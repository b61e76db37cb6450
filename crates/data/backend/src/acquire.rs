//! A connection for a command: an idle one that fits, else a new one, else wait for either.

use crate::backend::{Backend, Key};
use crate::connect::{Attempt, OF_CLIENT};
use crate::place::Place;
use crate::pools::{Group, Pools, Want};
use crate::sync::{self, Need};
use crate::{BackendFailed, State};
use bridge::Counter;
use std::rc::Rc;
use std::time::Duration;

/// How often a waiter looks again by itself: permits of other cores ring no bell here.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

impl Pools {
    /// A connection to a server of the hostgroup, for this session alone until it is released.
    ///
    /// # Errors
    /// [`BackendFailed::Timeout`] after `mysql-connect_timeout_server_max`; [`BackendFailed::Refused`] when the server refuses the user.
    pub async fn acquire(&self, want: &Want<'_>) -> Result<Box<Backend>, BackendFailed> {
        self.tally.up(Counter::MyhgmPoolGet);
        let group = self.group(want.hostgroup);
        if !want.new_connection
            && let Some(backend) = self.take_idle(&group, want)
        {
            self.tally.up(Counter::ConnPoolGetConnImmediate);
            self.tally.up(Counter::MyhgmPoolGetOk);
            return Ok(backend);
        }
        let result = self.open_or_wait(&group, want).await;
        self.tally.up(match &result {
            Ok(_) => Counter::ConnPoolGetConnSuccess,
            Err(BackendFailed::Timeout { .. }) => Counter::MaxConnectTimeouts,
            Err(_) => Counter::ConnPoolGetConnFailure,
        });
        result
    }

    async fn open_or_wait(&self, group: &Group, want: &Want<'_>) -> Result<Box<Backend>, BackendFailed> {
        let v = &want.snapshot.variables;
        let begun = self.rt.now();
        let limit = Duration::from_millis(v.mysql_connect_timeout_server_max);
        let mut last = None;
        let mut attempts = 0;
        let mut delayed = false;
        loop {
            match self.permitted(group) {
                Some(place) => {
                    let key = Key { user: want.user.into(), caps: want.caps & OF_CLIENT };
                    match Box::pin(self.open(&place, want, key)).await {
                        Ok(backend) => return Ok(backend),
                        Err(Attempt::Final(failed)) => return Err(failed),
                        Err(Attempt::Again(why)) => last = Some(why),
                    }
                    attempts += 1;
                    let quick = attempts <= v.mysql_connect_retries_on_failure;
                    let pause = if quick { v.mysql_connect_retries_delay } else { 100 };
                    self.rt.sleep(Duration::from_millis(pause.max(1))).await;
                }
                None => {
                    if !delayed {
                        delayed = true;
                        self.tally.up(Counter::ServerConnectionsDelayed);
                    }
                    self.wait(group).await;
                }
            }
            if !want.new_connection
                && let Some(backend) = self.take_idle(group, want)
            {
                return Ok(backend);
            }
            let waited = self.rt.now() - begun;
            if waited >= limit {
                let waited_ms = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
                return Err(BackendFailed::Timeout { hostgroup: want.hostgroup, waited_ms, last });
            }
        }
    }

    /// A server that takes work, and a permit to connect to it. An idle connection that fits nobody here is closed for it.
    fn permitted(&self, group: &Group) -> Option<Rc<Place>> {
        let now = self.rt.now();
        let places = group.places.borrow();
        let mut open: Vec<&Rc<Place>> = places.iter().filter(|p| p.takes(now) && p.weight() > 0).collect();
        while !open.is_empty() {
            let at = plan::pick_by(&open, |p| p.weight(), self.rt.random())?;
            let place = open.swap_remove(at);
            let max = place.server().max_connections;
            if place.permits.try_take(max) {
                return Some(place.clone());
            }
            // This one goes to somebody with another user or schema: its room is worth more than itself.
            let oldest = {
                let mut idle = place.idle.borrow_mut();
                if idle.is_empty() { None } else { Some(idle.remove(0)) }
            };
            if oldest.is_some() {
                self.tally.up(Counter::MyhgmPoolDestroy);
                drop(oldest);
                if place.permits.try_take(max) {
                    return Some(place.clone());
                }
            }
        }
        None
    }

    async fn wait(&self, group: &Group) {
        let wanted: Vec<_> = group.places.borrow().iter().map(|p| p.permits.clone()).collect();
        for permits in &wanted {
            permits.want();
        }
        group.waiting.set(group.waiting.get() + 1);
        let withdraw = Withdraw(wanted, group);
        let _either = self.rt.timeout(LOOK_AGAIN, group.free.wait()).await;
        drop(withdraw);
    }

    /// An idle connection for this session: of the server that the weights choose, else of any; the one that needs least to be brought there.
    fn take_idle(&self, group: &Group, want: &Want<'_>) -> Option<Box<Backend>> {
        let now = self.rt.now();
        let places = group.places.borrow();
        let takes = |place: &&Rc<Place>| place.takes(now) && place.weight() > 0;
        if let [only] = places.as_slice() {
            return if takes(&only) { self.take_from(only, want) } else { None };
        }
        let mut open: Vec<&Rc<Place>> = places.iter().filter(takes).collect();
        let chosen = plan::pick_by(&open, |p| p.weight(), self.rt.random())?;
        let place = open.swap_remove(chosen);
        if let Some(backend) = self.take_from(place, want) {
            return Some(backend);
        }
        // Rather a new connection to the chosen server than always the old ones to another, while it has room.
        if place.permits.taken() < place.server().max_connections {
            return None;
        }
        open.into_iter().find_map(|place| self.take_from(place, want))
    }

    fn take_from(&self, place: &Rc<Place>, want: &Want<'_>) -> Option<Box<Backend>> {
        let mut idle = place.idle.borrow_mut();
        let caps = want.caps & OF_CLIENT;
        let mut best: Option<usize> = None;
        for (at, backend) in idle.iter().enumerate().rev() {
            if backend.key.caps != caps || *backend.key.user != *want.user {
                continue;
            }
            match fit(&backend.state, want.state) {
                Fit::Exact => {
                    best = Some(at);
                    break;
                }
                Fit::Some if best.is_none() => best = Some(at),
                Fit::Some | Fit::No => {}
            }
        }
        let mut backend = idle.swap_remove(best?);
        drop(idle);
        if !backend.conn.is_idle() {
            // The server has closed it, or spoke unasked.
            self.tally.up(Counter::ServerConnectionsAborted);
            drop(backend);
            return self.take_from(place, want);
        }
        backend.in_use = true;
        place.begin_use();
        Some(backend)
    }
}

enum Fit {
    Exact,
    Some,
    No,
}

fn fit(have: &State, want: &State) -> Fit {
    match sync::need(have, want) {
        Need::Nothing => Fit::Exact,
        Need::Another => Fit::No,
        Need::Steps { .. } | Need::Reset => Fit::Some,
    }
}

/// However a wait ends, its wish ends with it.
struct Withdraw<'a>(Vec<std::sync::Arc<rt::permits::Permits>>, &'a Group);

impl Drop for Withdraw<'_> {
    fn drop(&mut self) {
        self.1.waiting.set(self.1.waiting.get() - 1);
        for permits in &self.0 {
            permits.unwant();
        }
    }
}
