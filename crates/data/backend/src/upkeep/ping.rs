//! Idle connections are asked now and then whether they are still there, which also keeps servers
//! and firewalls from thinking that they are not.

use crate::connection::backend::Idle;
use crate::connection::place::Place;
use crate::hostgroup::group::Group;
use crate::pool::pools::Pools;
use bridge::Counter;
use rt::Instant;
use std::rc::Rc;

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
}
