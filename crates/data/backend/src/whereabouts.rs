//! Addresses at which a server's name leads to it now: connections to others are not kept.

use crate::place::Place;
use crate::pools::Pools;
use bridge::Named;
use rt::Address;
use std::cell::RefCell;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

/// Addresses of a server, as the monitor has looked them up; `None` while it does not.
#[derive(Default)]
pub(crate) struct Whereabouts(RefCell<Option<Arc<[IpAddr]>>>);

impl Whereabouts {
    /// Whether somebody there is this server.
    fn has(&self, peer: &Address) -> bool {
        match (&*self.0.borrow(), peer.ip()) {
            (Some(ips), Some(ip)) => ips.contains(&ip),
            _ => true,
        }
    }

    /// Addresses to which somebody is about to connect: what is not known of any of them is out of
    /// date.
    pub(crate) fn compare(&self, addresses: &[Address]) {
        if !addresses.iter().all(|address| self.has(address)) {
            self.0.take();
        }
    }
}

impl Place {
    /// Whether the server is at the other end of a connection still.
    pub(crate) fn is_at(&self, peer: &Address) -> bool {
        self.known.whereabouts.has(peer)
    }
}

impl Pools {
    /// The servers of this name are at these addresses; nobody knows where if there is none. Idle
    /// connections to others close, those in use when they are given back.
    pub fn are_at(&self, named: &Named) {
        let Named {
            host,
            ips,
            fresh_for,
        } = named;
        if !ips.is_empty() {
            self.rt.learn_name(host, ips, *fresh_for);
        }
        let now = self.rt.now();
        let known = (!ips.is_empty()).then(|| ips.clone());
        for group in self.groups.borrow().values() {
            let places = group.places.borrow();
            let named = |place: &&Rc<Place>| *place.host() == *host;
            for place in places.iter().filter(named) {
                let before = place.known.whereabouts.0.replace(known.clone());
                if before.is_some_and(|before| before != *ips) && known.is_some() {
                    // Who was silent where it was may not be where it is.
                    place.known.is_well(now);
                }
                let mut idle = place.idle.borrow_mut();
                idle.retain(|backend| place.is_at(&backend.conn.socket().peer()));
            }
            group.queue.call();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use std::time::Duration;

    #[test]
    fn a_connection_is_kept_where_its_server_is() {
        testing::with_several(|_rt, pools, place| async move {
            let ip = |last| IpAddr::from([10, 0, 0, last]);
            let peer = |last| Address::from(std::net::SocketAddr::new(ip(last), 3306));
            let are_at = |host: &str, all: &[u8]| {
                pools.are_at(&Named {
                    host: host.into(),
                    ips: all.iter().map(|last| ip(*last)).collect(),
                    fresh_for: Duration::ZERO,
                });
            };
            pools.group(0).places.borrow_mut().push(place.clone());
            assert!(place.is_at(&peer(1)), "nobody has looked");
            are_at("several", &[1, 2]);
            assert!(place.is_at(&peer(2)) && !place.is_at(&peer(3)));
            assert!(place.is_at(&Address::Unix("/tmp/x".into())));
            place.failed(pools.rt.now(), 1, Duration::from_secs(10));
            are_at("another", &[3]);
            assert!(!place.is_at(&peer(3)) && !place.serves(pools.rt.now()));
            are_at("several", &[3]);
            assert!(place.is_at(&peer(3)) && !place.is_at(&peer(1)));
            assert!(place.serves(pools.rt.now()), "it may be well there");
            place.known.whereabouts.compare(&[peer(3)]);
            assert!(!place.is_at(&peer(4)));
            place.known.whereabouts.compare(&[peer(3), peer(4)]);
            assert!(place.is_at(&peer(4)) && place.is_at(&peer(1)));
        });
    }
}
