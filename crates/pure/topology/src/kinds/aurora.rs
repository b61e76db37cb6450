//! Amazon's Aurora: each instance knows all of them, who the writer is and how far the others are
//! behind.

use super::{Assign, Kind, Pace, Standing, text};
use crate::members::{Assigned, Member};
use crate::node::Aurora;
use crate::place::{Policy, Serves, Why};
use crate::probe::Rows;
use crate::seen::{Observed, Peers, Reach, Role, ServerKey};
use config::{Servers, Status, Topology, TopologyKind, Variables};
use std::sync::Arc;

const WRITER: &str = "MASTER_SESSION_ID";

pub(super) struct Ways;

impl Kind for Ways {
    /// One row an instance. Those of instances that are gone stay for a while, and grow old.
    fn question(&self, _topology: &Topology, _version: &str) -> String {
        format!(
            "SELECT SERVER_ID = @@aurora_server_id, SERVER_ID, SESSION_ID, REPLICA_LAG_IN_MILLISECONDS \
             FROM information_schema.replica_host_status WHERE SESSION_ID = '{WRITER}' \
             OR LAST_UPDATE_TIMESTAMP > NOW() - INTERVAL 180 SECOND"
        )
    }

    fn told(&self, topology: &Topology, rows: &Rows) -> Result<Role, &'static str> {
        let own = rows.iter().find(|row| text(row.first()) == "1");
        let own = own.ok_or("it does not know itself")?;
        let is_writer = text(own.get(2)) == WRITER;
        // A fraction, by the version.
        let lag = text(own.get(3)).split('.').next().unwrap_or_default();
        let said_ms = lag.parse().unwrap_or(0);
        let lag_ms = match topology {
            Topology::Aurora(aurora) if !is_writer => aurora.estimated_ms(said_ms),
            _ if is_writer => 0,
            _ => said_ms,
        };
        Ok(Role::Aurora(Aurora {
            is_writer,
            lag_ms,
            said_ms,
        }))
    }

    fn name(&self, rows: &Rows) -> Option<Arc<str>> {
        let own = rows.iter().find(|row| text(row.first()) == "1")?;
        Some(text(own.get(1)).into())
    }

    fn peers(&self, topology: &Topology, rows: &Rows) -> Peers {
        let mut peers = Peers::default();
        let Topology::Aurora(aurora) = topology else {
            return peers;
        };
        for row in rows {
            let name = text(row.get(1));
            if name.is_empty() {
                continue;
            }
            let key = ServerKey {
                host: format!("{name}{}", aurora.domain).into(),
                port: aurora.port,
            };
            if text(row.first()) == "1" {
                peers.own = Some(key);
            } else {
                peers.others.push(key);
            }
        }
        peers.others.sort_unstable();
        peers
    }

    fn pace(&self, topology: &Topology, _variables: &Variables) -> Pace {
        let mut pace = Pace {
            interval_ms: 1000,
            timeout_ms: 800,
            lost: 3,
            behind: 1,
            worst_of: 1,
        };
        if let Topology::Aurora(aurora) = topology {
            pace.interval_ms = aurora.check_interval_ms.into();
            pace.timeout_ms = aurora.check_timeout_ms.into();
            pace.worst_of = usize::try_from(aurora.lag_num_checks).unwrap_or(1);
        }
        pace
    }

    fn standing(&self, role: &Role) -> Standing {
        match role {
            Role::Aurora(instance) if instance.is_writer => Standing::MayWrite(0),
            Role::Aurora(_) => Standing::Reads("it is a replica"),
            _ => Standing::Unseen,
        }
    }
}

impl Assign for Ways {
    fn assign(
        &self,
        topology: &Topology,
        members: &[Member],
        _declared: &Servers,
        observed: &Observed,
        _policy: &Policy,
    ) -> Assigned {
        let mut assigned = Assigned::default();
        let Topology::Aurora(aurora) = topology else {
            return assigned;
        };
        let told = |member: &Member| observed.told(&member.key, TopologyKind::Aurora);
        let is_gone = |member: &Member| {
            let is_missing = matches!(observed.of(&member.key).reach, Reach::Missing(_));
            told(member).is_missed || (is_missing && !observed.is_blind())
        };
        let writes = |member: &&Member| {
            matches!(told(member).role, Role::Aurora(one) if one.is_writer)
                && member.status() != Status::OfflineHard
        };
        let present = observed.writers.get(&aurora.writer);
        // The one that was lost says so still; of two that are there the present one stays.
        let claims = members.iter().filter(writes);
        let writer = claims.min_by_key(|one| (is_gone(one), present != Some(&one.key), &one.key));
        assigned.writer = writer.map(|member| member.key.clone());
        let is_proven = writer.is_some_and(|writer| !is_gone(writer));
        for member in members {
            let role = told(member).role;
            let (lag, max) = (role.behind(), aurora.max_lag_ms);
            let serves = if lag > max {
                Serves::Drains(Why::IsLate(lag, max))
            } else {
                Serves::Yes
            };
            if member.status() == Status::OfflineHard {
                assigned.leave(member, &topology.hostgroups());
            } else if assigned.writer.as_ref() == Some(&member.key) {
                assigned.put(member, aurora.writer, Some(Why::IsWriter));
                if aurora.writer_reads {
                    assigned.put(member, aurora.reader, Some(Why::WriterReads));
                }
            } else if is_gone(member) && is_proven {
                assigned.put(member, aurora.reader, Some(Why::IsSilent));
            } else if role == Role::Unknown {
                assigned.leave(member, &topology.hostgroups());
            } else {
                let why = Some(Why::OnlyReads("it is a replica"));
                assigned.put_so(member, aurora.reader, why, serves);
            }
        }
        assigned
    }
}

#[cfg(test)]
mod tests {
    use super::super::any;
    use super::*;

    #[test]
    fn an_instance_says_who_it_is_and_how_far_behind() {
        let row = |cells: [&str; 4]| cells.map(|cell| Some(cell.into())).to_vec();
        let rows = [
            row(["0", "b", "MASTER_SESSION_ID", "0"]),
            row(["1", "a", "7f1c", "19.9"]),
        ];
        let told = |rows: &Rows| Ways.told(&any(), rows);
        let replica = Aurora {
            is_writer: false,
            lag_ms: 19,
            said_ms: 19,
        };
        assert_eq!(told(&rows), Ok(Role::Aurora(replica)));
        assert!(told(&rows[..1]).is_err());
        let writer = [row(["1", "b", "MASTER_SESSION_ID", "0"])];
        let standing = Ways.standing(&told(&writer).unwrap());
        assert_eq!(standing, Standing::MayWrite(0));
    }
}
