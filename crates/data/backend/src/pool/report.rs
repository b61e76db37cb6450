//! Rows of the statistics of this core's servers and connections.

use crate::connection::place::Place;
use crate::hostgroup::group::Group;
use crate::pool::pools::Pools;
use bridge::{
    AdmissionRow, ChoiceRow, ConcurrencyRow, FreeConnectionRow, HostgroupPoolRow, PoolRow,
};
use std::rc::Rc;

impl Pools {
    /// Rows of `stats_millrace_admission`.
    #[must_use]
    pub fn report_admission(&self) -> Vec<AdmissionRow> {
        let (now, groups) = (self.rt.now(), self.groups.borrow());
        let of = |(id, group): (&u32, &Rc<Group>)| group.admission.report(*id, now, &group.queue);
        groups.iter().flat_map(of).collect()
    }

    /// Rows of `stats_millrace_concurrency`.
    #[must_use]
    pub fn report_concurrency(&self) -> Vec<ConcurrencyRow> {
        let groups = self.groups.borrow();
        let of = |group: &Rc<Group>| -> Vec<_> {
            let places = group.places.borrow();
            let there = places.iter().filter(|place| !place.has_left());
            there
                .filter_map(|place| place.report_concurrency())
                .collect()
        };
        groups.values().flat_map(of).collect()
    }

    /// Rows of `stats_mysql_connection_pool`.
    #[must_use]
    pub fn report(&self, reset: bool) -> Vec<PoolRow> {
        let now = self.rt.now();
        let groups = self.groups.borrow();
        let rows = groups
            .values()
            .flat_map(|g| {
                g.places
                    .borrow()
                    .iter()
                    .map(|p| p.report(now, reset))
                    .collect::<Vec<_>>()
            })
            .collect();
        // A server whose name leads elsewhere may have connections there still.
        bridge::joined(rows)
    }

    /// Connections to an address and port of which the host is the name, or that by itself: those in
    /// use, and those that are idle.
    #[must_use]
    pub fn connections_at(&self, host: &str, address: &str, port: u16) -> (u64, u64) {
        let groups = self.groups.borrow();
        let (mut used, mut free) = (0, 0);
        let by_name = address.parse().ok();
        for group in groups.values() {
            let places = group.places.borrow();
            let there = |place: &&Rc<Place>| {
                place.is_of(host, port, by_name) || place.is_of(address, port, None)
            };
            for place in places.iter().filter(there) {
                used += place.numbers.used.get();
                free += place.idle.borrow().len() as u64;
            }
        }
        (used, free)
    }

    /// Rows of `stats_mysql_hostgroup_pool`.
    #[must_use]
    pub fn report_groups(&self) -> Vec<HostgroupPoolRow> {
        let now = self.rt.now();
        self.groups
            .borrow()
            .iter()
            .filter_map(|(id, group)| group.report(*id, now))
            .collect()
    }

    /// Rows of `stats_mysql_choice`.
    #[must_use]
    pub fn report_choices(&self) -> Vec<ChoiceRow> {
        let now = self.rt.now();
        let groups = self.groups.borrow();
        let of = |group: &Rc<Group>| -> Vec<_> {
            let (places, balance) = (group.places.borrow(), group.chooser.balance.get());
            places
                .iter()
                .filter(|place| !place.has_left())
                .map(|place| place.report_choice(balance, now))
                .collect()
        };
        groups.values().flat_map(of).collect()
    }

    /// Rows of `stats_mysql_free_connections`.
    #[must_use]
    pub fn free_connections(&self) -> Vec<FreeConnectionRow> {
        let now = self.rt.now();
        let mut rows = Vec::new();
        for (id, group) in self.groups.borrow().iter() {
            for place in group.places.borrow().iter() {
                for backend in place.idle.borrow().iter() {
                    rows.push(backend.free_row(*id, now));
                }
            }
        }
        rows
    }
}
