//! Clusters whose nodes all hold the same data, in four hostgroups: writer, backup writer, reader,
//! offline.

use super::{Assign, Standing};
use crate::members::{Assigned, Member};
use crate::place::{Behind, Serves, Why};
use crate::seen::{Observed, Reach, Role, Told};
use config::{Quartet, Status, TopologyKind};
use std::cmp::Reverse;

/// Kind of a quartet, and whom it concerns to be behind.
pub(super) struct Cluster<'c> {
    pub(super) kind: TopologyKind,
    pub(super) ways: &'c dyn Assign,
    pub(super) behind: Behind,
}

/// A node, and what follows from what it says and what it does not say.
struct Node<'m> {
    member: &'m Member,
    standing: Standing,
    /// Why it is of no use, whatever it has said.
    gone: Option<Why>,
    /// Transactions that it still has to apply, if those are too many.
    behind: Option<u32>,
}

impl Cluster<'_> {
    /// Assigns the nodes.
    pub(super) fn assign(
        &self,
        four: &Quartet,
        members: &[Member],
        observed: &Observed,
    ) -> Assigned {
        let told = |member: &Member| observed.told(&member.key, self.kind);
        let present = observed.writers.get(&four.writer);
        let present = present.and_then(|key| members.iter().find(|one| one.key == *key));
        // Whoever answers first is not yet the best, nor instead of the writer.
        let is_asked = match present {
            Some(present) => self.is_asked(present, observed),
            None => members.iter().all(|one| self.is_asked(one, observed)),
        };
        let is_seen = is_asked && members.iter().any(|one| told(one).role != Role::Unknown);
        let is_heard = members.iter().any(|one| is_heard(told(one)));
        let nodes: Vec<Node<'_>> = members
            .iter()
            .map(|member| self.node(member, four, observed, is_heard))
            .collect();
        let mut assigned = Assigned::default();
        let writers = if is_seen {
            writers(&nodes, four, observed)
        } else {
            declared_writers(&nodes, four, observed)
        };
        let first = writers.first().filter(|_| is_seen);
        assigned.writer = first.map(|node| node.member.key.clone());
        for node in &nodes {
            let is_writer = writers.iter().any(|one| one.member.key == node.member.key);
            self.place(node, is_writer, is_seen, four, &mut assigned);
        }
        assigned
    }

    /// Whether a check of a node has ended, or none ever will.
    fn is_asked(&self, member: &Member, observed: &Observed) -> bool {
        let seen = observed.of(&member.key);
        member.is_found
            || member.status() == Status::OfflineHard
            || matches!(seen.reach, Reach::Missing(_))
            || seen.told.contains_key(&self.kind)
    }

    fn node<'m>(
        &self,
        member: &'m Member,
        four: &Quartet,
        observed: &Observed,
        is_heard: bool,
    ) -> Node<'m> {
        let told = observed.told(&member.key, self.kind);
        let gone = match &observed.of(&member.key).reach {
            Reach::Missing(why) if !observed.is_blind() => Some(Why::Missing(why.clone())),
            // Where nobody answers, everybody is what it was.
            _ if told.is_missed && is_heard => Some(Why::IsSilent),
            _ => None,
        };
        let max = four.max_transactions_behind;
        let behind = Some(told.role.behind()).filter(|queue| max > 0 && *queue > max);
        Node {
            member,
            standing: self.ways.standing(&told.role),
            gone,
            behind,
        }
    }

    fn place(
        &self,
        node: &Node<'_>,
        is_writer: bool,
        is_seen: bool,
        four: &Quartet,
        assigned: &mut Assigned,
    ) {
        let member = node.member;
        let max = four.max_transactions_behind;
        let serves = |concerns: bool| match node.behind {
            Some(queue) if concerns => Serves::Drains(Why::IsBehind(queue, max)),
            _ => Serves::Yes,
        };
        let reads = || serves(self.behind != Behind::Writers);
        let writes = || serves(self.behind != Behind::Readers);
        if member.status() == Status::OfflineHard {
            assigned.leave(member, &four.hostgroups());
        } else if let Some(why) = &node.gone {
            assigned.put(member, four.offline, Some(why.clone()));
        } else if is_writer {
            let why = is_seen.then_some(Why::IsWriter);
            assigned.put_so(member, four.writer, why, writes());
            if is_seen && four.also_reads.has_writers() {
                assigned.put_so(member, four.reader, Some(Why::WriterReads), reads());
            } else if !is_seen {
                assigned.leave(member, &four.hostgroups()[1..]);
            }
        } else {
            match node.standing {
                Standing::Unseen => {
                    let why = is_seen.then_some(Why::IsUnseen);
                    let waits = [four.writer, four.backup_writer];
                    if waits.iter().any(|hostgroup| member.has_row_in(*hostgroup)) {
                        assigned.put(member, four.backup_writer, why);
                    }
                    if member.is_found {
                        assigned.put(member, four.offline, Some(Why::IsUnseen));
                    }
                    assigned.leave(member, &[four.reader, four.offline]);
                }
                Standing::MayWrite(_) => {
                    let why = Some(Why::CouldWrite);
                    assigned.put_so(member, four.backup_writer, why.clone(), reads());
                    if four.also_reads.has_backups() {
                        assigned.put_so(member, four.reader, why, reads());
                    }
                }
                Standing::Reads(why) => {
                    assigned.put_so(member, four.reader, Some(Why::OnlyReads(why)), reads());
                }
                Standing::NoUse(why) => {
                    assigned.put(member, four.offline, Some(Why::IsNoUse(why)));
                }
            }
        }
    }
}

fn is_heard(told: Told) -> bool {
    told.role != Role::Unknown && !told.is_missed
}

/// Chooses the writers: the present one as long as it may; of others the one with the highest weight, and
/// of those the one whose address comes first. An operator takes a writer away by `OFFLINE_SOFT`.
fn writers<'n, 'm>(
    nodes: &'n [Node<'m>],
    four: &Quartet,
    observed: &Observed,
) -> Vec<&'n Node<'m>> {
    let may =
        |node: &&Node<'_>| matches!(node.standing, Standing::MayWrite(_)) && node.gone.is_none();
    best(nodes.iter().filter(may), four, observed)
}

/// Chooses by the rows, until all of the cluster have been asked.
fn declared_writers<'n, 'm>(
    nodes: &'n [Node<'m>],
    four: &Quartet,
    observed: &Observed,
) -> Vec<&'n Node<'m>> {
    let may = |node: &&Node<'_>| {
        matches!(node.standing, Standing::Unseen | Standing::MayWrite(_))
            && node.gone.is_none()
            && node.member.has_row_in(four.writer)
    };
    best(nodes.iter().filter(may), four, observed)
}

fn best<'n, 'm: 'n>(
    nodes: impl Iterator<Item = &'n Node<'m>>,
    four: &Quartet,
    observed: &Observed,
) -> Vec<&'n Node<'m>> {
    let present = observed.writers.get(&four.writer);
    let is_there = |node: &&Node<'_>| node.member.status() != Status::OfflineHard;
    let mut all: Vec<_> = nodes.filter(is_there).collect();
    all.sort_by_key(|node| {
        let member = node.member;
        let better = match node.standing {
            Standing::MayWrite(better) => better,
            _ => 0,
        };
        let weight = member.in_hostgroup(four.writer).weight;
        (
            member.status() == Status::OfflineSoft,
            node.behind.is_some(),
            present != Some(&member.key),
            better,
            Reverse(weight),
            &member.key,
        )
    });
    all.truncate(usize::try_from(four.max_writers).unwrap_or(usize::MAX));
    all
}
