//! Who serves where: from what is declared and what was seen.

use crate::kinds;
use crate::members::{self, Member};
use crate::names;
use crate::place::{Placed, Policy, Serves, Why};
use crate::seen::{Lag, Observed, Reach, ServerKey};
use crate::twins;
use config::{Server, Servers, Status};

/// Who serves where, and why.
#[must_use]
pub fn placed(declared: &Servers, observed: &Observed, policy: &Policy) -> Placed {
    let mut placed = Placed::default();
    for hostgroup in declared.iter() {
        let elsewhere = &mut placed.elsewhere;
        let own = hostgroup.servers.iter();
        let own = own.flat_map(|row| names::places_of(row, declared, observed, elsewhere));
        let own = own.collect();
        placed.hostgroups.insert(hostgroup.id, own);
    }
    for topology in declared.topologies().iter().filter(|one| one.is_active()) {
        let hostgroups = topology.hostgroups();
        let mut members = Member::all(&placed, &hostgroups);
        for found in members::found(topology, &members, declared, observed) {
            let row = (topology.clone(), found.some_row());
            placed.found.insert(found.key.clone(), row);
            members.push(found);
        }
        let ways = kinds::of(topology.kind());
        let twins = twins::apart(&mut members, &hostgroups, observed);
        let mut assigned = ways.assign(topology, &members, declared, observed, policy);
        twins::beside(&mut assigned, &twins);
        for hostgroup in &hostgroups {
            placed.hostgroups.insert(*hostgroup, Vec::new());
        }
        for place in assigned.places {
            let hostgroup = placed.hostgroups.entry(place.server.hostgroup);
            hostgroup.or_default().push(place);
        }
        let writer = assigned
            .writer
            .or_else(|| observed.writers.get(&hostgroups[0]).cloned());
        if let Some(writer) = writer {
            placed.writers.insert(hostgroups[0], writer);
        }
    }
    let is_blind = observed.is_blind();
    for place in placed.hostgroups.values_mut().flatten() {
        let serves = serves(&place.server, observed, is_blind, policy);
        if serves != Serves::Yes {
            place.serves = serves;
        }
    }
    placed.hostgroups.retain(|_, places| !places.is_empty());
    placed.forget_used();
    placed
}

/// Whether a server takes work, wherever it is.
fn serves(server: &Server, observed: &Observed, is_blind: bool, policy: &Policy) -> Serves {
    let status = Why::Status(server.status);
    match server.status {
        Status::OfflineHard => return Serves::No(status),
        Status::OfflineSoft => return Serves::Drains(status),
        Status::Online | Status::Shunned => {}
    }
    let seen = observed.of(&ServerKey::of(server));
    if let Reach::Missing(why) = &seen.reach
        && !is_blind
    {
        return Serves::No(Why::Missing(why.clone()));
    }
    let max = server.max_replication_lag;
    if let Lag::Seconds(behind) = seen.lag
        && max > 0
        && behind > max
    {
        return Serves::Drains(Why::Lags(behind, max));
    }
    let max = match server.max_latency_ms {
        0 => policy.max_latency_ms,
        own => own,
    };
    if let Some(took) = seen.ping_us.map(|us| us / 1000)
        && max > 0
        && took > max
    {
        return Serves::Drains(Why::IsSlow(took, max));
    }
    Serves::Yes
}
