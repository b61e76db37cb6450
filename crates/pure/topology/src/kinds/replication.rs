//! A source and replicas that follow it: `read_only` says who is which.

use super::{Assign, Kind, Pace, Standing};
use crate::members::{Assigned, Member};
use crate::place::{Policy, Why};
use crate::probe::Rows;
use crate::seen::{Observed, Peers, Reach, Role, ServerKey};
use config::{CheckType, Replication, Servers, Status, Topology, TopologyKind};
use config::{Variables, Writers};

pub(super) struct Ways;

impl Kind for Ways {
    fn question(&self, topology: &Topology, _version: &str) -> String {
        let check = match topology {
            Topology::Replication(pair) => pair.check,
            _ => CheckType::default(),
        };
        let question = match check {
            CheckType::ReadOnly => "SELECT @@global.read_only",
            CheckType::InnodbReadOnly => "SELECT @@global.innodb_read_only",
            CheckType::SuperReadOnly => "SELECT @@global.super_read_only",
            CheckType::Either => "SELECT @@global.read_only|@@global.innodb_read_only",
            CheckType::Both => "SELECT @@global.read_only&@@global.innodb_read_only",
        };
        question.to_owned()
    }

    fn told(&self, _topology: &Topology, rows: &Rows) -> Result<Role, &'static str> {
        let [row] = rows else {
            return Err("read_only has no value");
        };
        match super::text(row.first()) {
            "0" | "OFF" => Ok(Role::ReadOnly(false)),
            on if super::is_on(on) => Ok(Role::ReadOnly(true)),
            _ => Err("read_only has no value"),
        }
    }

    /// Amazon's RDS has the instances of a cluster, and of a blue/green deployment, in a table.
    fn asks_for_peers(&self, v: &Variables) -> Option<(&'static str, u64)> {
        let every = v.mysql_monitor_aws_rds_topology_discovery_interval;
        (every > 0).then_some(("SELECT endpoint, port FROM mysql.rds_topology", every))
    }

    /// Its own name is that of its row: the table may have another, of the same server.
    fn told_peers(&self, key: &ServerKey, rows: &Rows) -> Peers {
        let others = rows.iter().filter_map(|row| {
            let host = super::text(row.first()).trim();
            let port = super::text(row.get(1)).parse().ok()?;
            let other = ServerKey {
                host: host.into(),
                port,
            };
            (!host.is_empty() && port > 0 && other != *key).then_some(other)
        });
        let mut others: Vec<_> = others.collect();
        others.sort_unstable();
        others.dedup();
        Peers {
            own: Some(key.clone()),
            others,
        }
    }

    fn pace(&self, _topology: &Topology, v: &Variables) -> Pace {
        Pace {
            interval_ms: v.mysql_monitor_read_only_interval,
            timeout_ms: v.mysql_monitor_read_only_timeout,
            lost: v.mysql_monitor_read_only_max_timeout_count,
            behind: 1,
            worst_of: 1,
        }
    }

    fn standing(&self, role: &Role) -> Standing {
        match role {
            Role::ReadOnly(false) => Standing::MayWrite(0),
            Role::ReadOnly(true) => Standing::Reads("read_only is 1"),
            _ => Standing::Unseen,
        }
    }

    fn words(&self, role: &Role) -> String {
        match role {
            Role::ReadOnly(read_only) => {
                format!("says that read_only is {}", u8::from(*read_only))
            }
            _ => "does not say read_only".to_owned(),
        }
    }
}

impl Assign for Ways {
    fn assign(
        &self,
        topology: &Topology,
        members: &[Member],
        declared: &Servers,
        observed: &Observed,
        policy: &Policy,
    ) -> Assigned {
        let mut assigned = Assigned::default();
        let Topology::Replication(pair) = topology else {
            return assigned;
        };
        let hostgroup = declared.hostgroup(pair.writer);
        let wanted = hostgroup.map(|hostgroup| hostgroup.attributes.writers);
        let proven = proven(members, observed);
        let present = present(pair, members, observed);
        let wanted = wanted.unwrap_or_default();
        let sources: Vec<_> = match wanted {
            Writers::All => proven.clone(),
            Writers::First | Writers::None => {
                let is_first = present.is_none();
                sources(members, &proven, is_first, observed)
            }
        };
        let writers = writers(present, &sources, observed, wanted);
        for member in members {
            match why(member, (&proven, &sources), &writers, present, observed) {
                None => assigned.leave(member, &topology.hostgroups()),
                Some(Why::Writes) => {
                    assigned.put(member, pair.writer, Some(Why::Writes));
                    if policy.writer_is_also_reader {
                        assigned.put(member, pair.reader, Some(Why::WriterReads));
                    }
                }
                Some(why) => assigned.put(member, pair.reader, Some(why)),
            }
        }
        if let [writer] = writers.as_slice() {
            assigned.writer = Some(writer.clone());
        }
        assigned
    }
}

/// Read_only as a server has said it last, unless it has not for too long.
fn read_only(key: &ServerKey, observed: &Observed) -> Option<bool> {
    let told = observed.told(key, TopologyKind::Replication);
    match told.role {
        Role::ReadOnly(read_only) if !told.is_missed => Some(read_only),
        _ => None,
    }
}

/// Servers that say that they may write.
fn proven(members: &[Member], observed: &Observed) -> Vec<ServerKey> {
    let is_proven = |member: &&Member| {
        read_only(&member.key, observed) == Some(false) && member.status() != Status::OfflineHard
    };
    let proven = members.iter().filter(is_proven);
    proven.map(|member| member.key.clone()).collect()
}

/// Those of them that do not replicate from another: what is written to a replica never comes to its source.
/// Of two that replicate from each other both stay. Where nobody knows who was the writer (`is_first`), a source
/// may be among those that have not been asked yet.
fn sources(
    members: &[Member],
    proven: &[ServerKey],
    is_first: bool,
    observed: &Observed,
) -> Vec<ServerKey> {
    let channels = |key: &ServerKey| observed.of(key).channels.as_ref();
    let follows = |one: &ServerKey, other: &ServerKey| match (channels(one), channels(other)) {
        (Some(one), Some(other)) => one.own != other.own && one.from.contains(&other.own),
        _ => false,
    };
    let is_unasked = |member: &Member| {
        let key = &member.key;
        is_unheard(key, observed) && observed.of(key).reach == Reach::Unknown
    };
    let may_come = is_first && members.iter().any(is_unasked);
    let is_source = |key: &&ServerKey| {
        let mut others = proven.iter();
        let is_replica = others.any(|other| follows(key, other) && !follows(other, key));
        let waits = || may_come && channels(key).is_some_and(|own| !own.from.is_empty());
        !is_replica && !waits()
    };
    proven.iter().filter(is_source).cloned().collect()
}

/// Who has been the writer, if it is one of the servers.
fn present<'a>(
    pair: &Replication,
    members: &[Member],
    observed: &'a Observed,
) -> Option<&'a ServerKey> {
    let present = observed.writers.get(&pair.writer)?;
    let is_it = |member: &Member| member.key == *present && member.status() != Status::OfflineHard;
    members.iter().any(is_it).then_some(present)
}

/// Whether a server has neither answered nor missed a check since the start.
fn is_unheard(key: &ServerKey, observed: &Observed) -> bool {
    let told = observed.told(key, TopologyKind::Replication);
    told.role == Role::Unknown && !told.is_missed
}

/// Chooses the writers: who says so, of several as the operator wants; where nobody says so, who
/// did. Who has been the writer is heard before another becomes it, however fast the other answers.
fn writers(
    present: Option<&ServerKey>,
    proven: &[ServerKey],
    observed: &Observed,
    wanted: Writers,
) -> Vec<ServerKey> {
    match (proven, wanted) {
        ([], _) => Vec::new(),
        (all, Writers::All) => all.to_vec(),
        _ if present.is_some_and(|present| is_unheard(present, observed)) => Vec::new(),
        ([only], _) => vec![only.clone()],
        (_, Writers::None) => Vec::new(),
        // Who has been the writer stays; of others nobody knows whose writes count.
        (all, Writers::First) => {
            let stays = present.filter(|present| all.contains(present));
            stays.into_iter().cloned().collect()
        }
    }
}

/// Why a server goes where it goes; `None` leaves it where its rows are.
fn why(
    member: &Member,
    (proven, sources): (&[ServerKey], &[ServerKey]),
    writers: &[ServerKey],
    present: Option<&ServerKey>,
    observed: &Observed,
) -> Option<Why> {
    let key = &member.key;
    match read_only(key, observed) {
        Some(true) => Some(Why::Reads),
        Some(false) if writers.contains(key) => Some(Why::Writes),
        Some(false) if member.status() == Status::OfflineHard => None,
        Some(false) if !sources.contains(key) => Some(Why::Follows),
        Some(false) => Some(match writers.first().or(present) {
            Some(writer) => Why::NotTheWriter(writer.clone()),
            None => Why::TooManyWriters,
        }),
        None => {
            let is_missed = observed.told(key, TopologyKind::Replication).is_missed;
            (is_missed && !proven.is_empty()).then_some(Why::Missed)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::any;
    use super::*;

    #[test]
    fn a_server_says_what_it_is() {
        for (said, wanted) in [
            (Some("0"), Some(false)),
            (Some("OFF"), Some(false)),
            (Some("1"), Some(true)),
            (Some("NO_LOCK"), Some(true)),
            (Some("perhaps"), None),
            (None, None),
        ] {
            let rows = [vec![said.map(|text| text.as_bytes().to_vec())]];
            let told = Ways.told(&any(), &rows).ok();
            assert_eq!(told, wanted.map(Role::ReadOnly), "{said:?}");
        }
        assert!(Ways.told(&any(), &[]).is_err());
    }

    #[test]
    fn the_table_of_rds_names_the_other_instances() {
        let cell = |text: &str| Some(text.as_bytes().to_vec());
        let row = |host, port| vec![cell(host), cell(port)];
        let rows = [
            row("b", "3306"),
            row("a", "3306"),
            row("", "3306"),
            row("c", "0"),
            row("d", "x"),
            row("b", "3306"),
            vec![None],
        ];
        let key = |host: &str| ServerKey {
            host: host.into(),
            port: 3306,
        };
        let peers = Ways.told_peers(&key("a"), &rows);
        assert_eq!((peers.own, peers.others), (Some(key("a")), vec![key("b")]));
        let mut variables = Variables::default();
        assert_eq!(Ways.asks_for_peers(&variables), None);
        variables.mysql_monitor_aws_rds_topology_discovery_interval = 5;
        assert!(matches!(Ways.asks_for_peers(&variables), Some((_, 5))));
    }
}
