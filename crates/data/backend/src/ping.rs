//! Idle connections are asked now and then whether they are still there, which also keeps servers
//! and firewalls from thinking that they are not.

use crate::backend::{Backend, Idle};
use crate::place::Place;
use crate::pools::{Group, Pools};
use bridge::Counter;
use rt::Instant;
use std::rc::Rc;
use std::time::Duration;

/// So many of a server are asked at a time, for the others to stay at hand.
const AT_ONCE: usize = 8;

impl Pools {
    /// Asks those of a server that nobody has used, or asked, for so long.
    pub(crate) fn ping(self: &Rc<Self>, group: &Rc<Group>, place: &Rc<Place>, now: Instant) {
        let Some((every, limit)) = self.pings.get() else {
            return;
        };
        for _ in 0..AT_ONCE {
            let mut idle = place.idle.borrow_mut();
            let Some(at) = idle.iter().position(|backend| {
                now - backend.lasting.since.max(backend.lasting.pinged) >= every
            }) else {
                return;
            };
            let mut backend = idle.remove(at);
            drop(idle);
            let (pools, group) = (self.clone(), group.clone());
            self.rt.spawn(async move {
                pools.tally.up(Counter::MyhgmPoolGetPing);
                let since = backend.lasting.since;
                let said = pools.rt.timeout(limit, backend.answers()).await;
                backend.lasting.pinged = pools.rt.now();
                let well = matches!(said, Ok(Ok(())))
                    && backend.idle == Idle::Proven
                    && backend.conn.is_idle();
                if !well {
                    pools.unhealthy(&backend, "it does not answer a ping");
                    pools.tally.up(Counter::ServerConnectionsAborted);
                } else {
                    pools.rest(&group, backend, since);
                }
                group.queue.call();
            });
        }
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

    /// Of a configuration.
    pub(crate) fn adopt_pings(&self, v: &config::Variables) {
        let (every, limit) = (
            v.mysql_ping_interval_server_msec,
            v.mysql_ping_timeout_server,
        );
        self.pings.set(Some((
            Duration::from_millis(every),
            Duration::from_millis(limit),
        )));
        self.log_unhealthy.set(v.mysql_log_unhealthy_connections);
        self.resets_max.set(v.mysql_connpoll_reset_queue_length);
    }
}
