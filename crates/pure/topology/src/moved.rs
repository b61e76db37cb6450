//! Servers that have left a hostgroup for another of their topology.

use crate::placed::{Placed, Serves};
use crate::seen::ServerKey;
use config::{Server, Servers};

impl Placed {
    /// Whether a server that is not in the hostgroup of this row (any more) is well, and of use in
    /// another hostgroup of the same topology: it need not be cut off where it was.
    #[must_use]
    pub fn has_moved(&self, declared: &Servers, row: &Server) -> bool {
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
