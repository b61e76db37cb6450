//! Servers that have left a hostgroup for another of their topology, and names that lead elsewhere.

use crate::place::{Placed, Serves};
use crate::seen::ServerKey;
use config::{Server, Servers};
use std::net::IpAddr;

impl Placed {
    /// Whether a server that is not in the hostgroup of this row (any more) is well, and of use in
    /// another hostgroup of the same topology, or its name leads elsewhere: it need not be cut off
    /// where it was. `at`: the address of its name that was in use.
    #[must_use]
    pub fn has_moved(&self, declared: &Servers, row: &Server, at: Option<IpAddr>) -> bool {
        if let Some(may_end) = self.is_elsewhere(row, at) {
            return may_end;
        }
        let key = ServerKey::of(row);
        let is_well_in = |hostgroup: &u32| {
            let places = self.hostgroups.get(hostgroup).into_iter().flatten();
            let mut own = places.filter(|place| ServerKey::of(&place.server) == key);
            own.any(|place| !matches!(place.serves, Serves::No(_)))
        };
        let mut topologies = declared.topologies().iter();
        topologies.any(|topology| {
            let hostgroups = topology.hostgroups();
            let is_other = |one: &&u32| **one != row.hostgroup && Some(**one) != topology.offline();
            hostgroups.contains(&row.hostgroup)
                && hostgroups.iter().filter(is_other).any(is_well_in)
        })
    }
}
