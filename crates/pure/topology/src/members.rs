//! The servers of a topology, and what becomes of them.

use crate::kinds::{self, Standing};
use crate::place::{Place, Placed, Serves, Why};
use crate::seen::{Observed, Reach, Seen, ServerKey};
use config::{Server, Servers, Status, Topology};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

/// A server of a topology with its rows there; it has one at least.
#[derive(Clone)]
pub(crate) struct Member {
    pub(crate) key: ServerKey,
    /// The address of its name that is in use.
    pub(crate) at: Option<IpAddr>,
    rows: Vec<Arc<Server>>,
    /// No row names it: the others know it, and its rows are made up.
    pub(crate) is_found: bool,
}

/// Places of one topology.
#[derive(Default)]
pub(crate) struct Assigned {
    pub(crate) places: Vec<Place>,
    /// Writer to be remembered.
    pub(crate) writer: Option<ServerKey>,
}

impl Member {
    /// The servers of these hostgroups, each once.
    pub(crate) fn all(placed: &Placed, hostgroups: &[u32]) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        // There may be thousands.
        let mut known: BTreeMap<ServerKey, usize> = BTreeMap::new();
        for hostgroup in hostgroups {
            for place in placed.hostgroups.get(hostgroup).into_iter().flatten() {
                let key = ServerKey::of(&place.server);
                let row = place.server.clone();
                match known.get(&key) {
                    Some(at) => all[*at].rows.push(row),
                    None => {
                        known.insert(key.clone(), all.len());
                        all.push(Self {
                            key,
                            at: place.at,
                            rows: vec![row],
                            is_found: false,
                        });
                    }
                }
            }
        }
        all
    }

    /// The strictest of its rows.
    pub(crate) fn status(&self) -> Status {
        let all = self.rows.iter().map(|row| row.status);
        all.max_by_key(|status| match status {
            Status::Online => 0,
            Status::Shunned => 1,
            Status::OfflineSoft => 2,
            Status::OfflineHard => 3,
        })
        .unwrap_or(Status::Online)
    }

    pub(crate) fn has_row_in(&self, hostgroup: u32) -> bool {
        !self.is_found && self.rows.iter().any(|row| row.hostgroup == hostgroup)
    }

    /// Any of its rows.
    pub(crate) fn some_row(&self) -> Arc<Server> {
        self.rows[0].clone()
    }

    /// Its row of this hostgroup, or a copy of another.
    pub(crate) fn in_hostgroup(&self, hostgroup: u32) -> Arc<Server> {
        match self.rows.iter().find(|row| row.hostgroup == hostgroup) {
            Some(own) => own.clone(),
            None => Arc::new(Server {
                hostgroup,
                ..Server::clone(&self.rows[0])
            }),
        }
    }
}

/// The servers that those of a topology know, and no row names.
pub(crate) fn found(
    topology: &Topology,
    members: &[Member],
    declared: &Servers,
    observed: &Observed,
) -> Vec<Member> {
    let kind = topology.kind();
    let there = members
        .iter()
        .filter(|member| member.status() != Status::OfflineHard);
    let seen: Vec<_> = there.map(|member| observed.of(&member.key)).collect();
    let is_missing = |reach: &Reach| matches!(reach, Reach::Missing(_));
    let own = |seen: &Seen| seen.peers.get(&kind).and_then(|peers| peers.own.clone());
    // A group calls its servers by names of its own. As long as one of ours has not said which is
    // its, any other may be the same server again.
    let is_known = |seen: &&Seen| own(seen).is_some() || is_missing(&seen.reach);
    if !seen.iter().all(is_known) {
        return Vec::new();
    }
    let is_heard = |seen: &&&Seen| {
        let told = seen.told(kind);
        let standing = kinds::of(kind).standing(&told.role);
        !told.is_missed
            && !is_missing(&seen.reach)
            && matches!(standing, Standing::MayWrite(_) | Standing::Reads(_))
    };
    let mut heard: Vec<_> = seen.iter().filter(is_heard).collect();
    if heard.is_empty() {
        // Nobody says anything: it is as it was.
        heard = seen.iter().collect();
    }
    let peers = heard.iter().filter_map(|seen| seen.peers.get(&kind));
    let mut keys: BTreeSet<ServerKey> = peers.flat_map(|peers| peers.others.clone()).collect();
    for member in members {
        keys.remove(&member.key);
    }
    for own in seen.iter().filter_map(|seen| own(seen)) {
        keys.remove(&own);
    }
    let made = |key: ServerKey| {
        let row = |hostgroup: u32| {
            let attributes = declared.hostgroup(hostgroup).map(|one| &one.attributes);
            let defaults = attributes.map(|one| one.servers_defaults.clone());
            let defaults = defaults.unwrap_or_default();
            let mut server = Server::found(hostgroup, &key.host, key.port, &defaults);
            if let Topology::Aurora(aurora) = topology
                && defaults.weight.is_none()
            {
                server.weight = aurora.new_reader_weight;
            }
            Arc::new(server)
        };
        Member {
            rows: topology.hostgroups().into_iter().map(row).collect(),
            at: observed.lead(&key.host, key.port),
            key: key.clone(),
            is_found: true,
        }
    };
    keys.into_iter().map(made).collect()
}

impl Assigned {
    /// Puts a server into a hostgroup.
    pub(crate) fn put(&mut self, member: &Member, hostgroup: u32, why: Option<Why>) {
        self.put_so(member, hostgroup, why, Serves::Yes);
    }

    pub(crate) fn put_so(
        &mut self,
        member: &Member,
        hostgroup: u32,
        why: Option<Why>,
        serves: Serves,
    ) {
        self.places.push(Place {
            server: member.in_hostgroup(hostgroup),
            at: member.at,
            serves,
            why,
        });
    }

    /// Leaves a server where its rows are.
    pub(crate) fn leave(&mut self, member: &Member, hostgroups: &[u32]) {
        for hostgroup in hostgroups {
            if member.has_row_in(*hostgroup) {
                self.put(member, *hostgroup, None);
            }
        }
    }
}
