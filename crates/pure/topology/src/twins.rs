//! Rows of one server under several names: it goes where it goes, and they with it.

use crate::members::{Assigned, Member};
use crate::names::Identity;
use crate::place::Place;
use crate::seen::{Observed, Reach, ServerKey};
use config::Status;
use std::collections::BTreeMap;

/// A member beside another that is the same server.
pub(crate) struct Twin {
    of: ServerKey,
    member: Member,
}

/// Takes out of the members whoever is the same server as another. The one that stays is the
/// writer of before, if it is one of them, else the first that answers.
pub(crate) fn apart(
    members: &mut Vec<Member>,
    hostgroups: &[u32],
    observed: &Observed,
) -> Vec<Twin> {
    let present = observed.writers.get(&hostgroups[0]);
    let is_of_use = |member: &&Member| {
        let missing = matches!(observed.of(&member.key).reach, Reach::Missing(_));
        member.status() != Status::OfflineHard && !missing
    };
    // There may be thousands.
    let mut known: BTreeMap<Identity, ServerKey> = BTreeMap::new();
    let first = members.iter().filter(|member| present == Some(&member.key));
    for member in first.chain(&*members).filter(is_of_use) {
        let mut all = observed.identities(&member.key);
        let one = all.find_map(|identity| known.get(&identity).cloned());
        let one = one.unwrap_or_else(|| member.key.clone());
        for identity in observed.identities(&member.key) {
            known.entry(identity).or_insert_with(|| one.clone());
        }
    }
    let mut twins = Vec::new();
    members.retain(|member| {
        let mut all = observed.identities(&member.key);
        let one = all.find_map(|identity| known.get(&identity));
        match one.filter(|one| **one != member.key && is_of_use(&member)) {
            Some(one) => twins.push(Twin {
                of: one.clone(),
                member: member.clone(),
            }),
            None => return true,
        }
        false
    });
    twins
}

/// Puts them where the server is.
pub(crate) fn beside(assigned: &mut Assigned, twins: &[Twin]) {
    for twin in twins {
        let own = assigned.places.iter();
        let own = own.filter(|place| ServerKey::of(&place.server) == twin.of);
        let copies = own.map(|place| Place {
            server: twin.member.in_hostgroup(place.server.hostgroup),
            at: twin.member.at,
            serves: place.serves.clone(),
            why: place.why.clone(),
        });
        let copies: Vec<_> = copies.collect();
        assigned.places.extend(copies);
    }
}
