//! Once in a while idle connections are looked through: which are closed, too old or too many.

use crate::cores::neighbours::GIVE_WAY;
use crate::pool::pools::Pools;
use bridge::Sign;
use config::Snapshot;
use std::rc::Rc;

impl Pools {
    /// Once in a while: close what is closed, too old or too many, and open ahead where that is
    /// wanted.
    pub fn sweep(self: &Rc<Self>, snapshot: &Snapshot) {
        // A hint may name any hostgroup. Who waits for one that has no servers holds it, and finds
        // what a LOAD brings.
        self.groups
            .borrow_mut()
            .retain(|_, group| Rc::strong_count(group) > 1 || !group.places.borrow().is_empty());
        let now = self.rt.now();
        let cores = self.neighbours.cores();
        for group in self.groups.borrow().values() {
            let mut places = group.places.borrow_mut();
            if places.iter().any(|place| place.is_over()) {
                // Other proxies of the fleet have got more of its limit.
                group.lingering.press_of(|place| place.is_over());
            }
            for place in places.iter() {
                place.known.allowed.age(now);
                place.shrink();
                if place.falls_silent() {
                    self.tell(place.host(), place.server().port, Sign::Silent);
                }
                let keep_of_all = self.kept_free(group, place);
                let keep = (keep_of_all as usize).div_ceil(cores).max(1);
                let wanted = self.gives_way(place, group.queue.first_since(), GIVE_WAY);
                let mut idle = place.idle.borrow_mut();
                let max_age = self.max_age.get();
                idle.retain(|b| {
                    if !b.conn.is_idle() {
                        self.unhealthy(b, "the server has closed it, or spoke unasked");
                        return false;
                    }
                    max_age.is_zero() || now - b.lasting.opened < max_age
                });
                // One for each core that waits; where more are wanted, the next sweep closes more.
                let asked_for = if wanted {
                    place.room.of_server.wanted() as usize
                } else {
                    0
                };
                let mut surplus = idle
                    .len()
                    .saturating_sub(keep)
                    .max(asked_for.min(idle.len()));
                if group.warms.get() && !wanted {
                    // They are opened where a client came, and go to the cores that need them.
                    surplus = surplus.min(place.taken().saturating_sub(keep_of_all) as usize);
                }
                idle.drain(..surplus);
                drop(idle);
                if group.warms.get() && !wanted {
                    self.warm(group, place, snapshot);
                }
                self.ping(group, place, now);
            }
            places.retain(|place| !place.is_done());
            group.queue.call();
        }
        self.compare_servers();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn nothing_is_kept_of_hostgroups_that_nobody_has_configured() {
        testing::with_several(|_rt, pools, place| async move {
            let (pools, snapshot) = (Rc::new(pools), Snapshot::default());
            pools.group(0).places.borrow_mut().push(place);
            let waits = pools.group(7);
            for number in 1000..2000 {
                drop(pools.group(number));
                pools.hear_of_a_wish(5000 + number);
            }
            pools.sweep(&snapshot);
            assert_eq!(
                pools.groups.borrow().keys().copied().collect::<Vec<_>>(),
                [0, 7]
            );
            assert!(
                Rc::ptr_eq(&waits, &pools.group(7)),
                "who waits there finds what a LOAD brings"
            );
        });
    }
}
