//! MySQL Group Replication: each member says who is in the group, as it sees the group.

use super::quartet::Cluster;
use super::{Assign, Kind, Pace, Standing, is_on, text};
use crate::members::{Assigned, Member};
use crate::node::Group;
use crate::place::Policy;
use crate::probe::Rows;
use crate::seen::{Observed, Peers, Role, ServerKey};
use config::{Servers, Topology, TopologyKind, Variables};

pub(super) struct Ways;

impl Kind for Ways {
    /// One row a member, the one that is asked included; one row if there is no group. The tables
    /// are there since 8.0.
    fn question(&self, _topology: &Topology, _version: &str) -> String {
        "SELECT @@global.read_only, m.MEMBER_ID = @@global.server_uuid, m.MEMBER_STATE, m.MEMBER_ROLE, \
         s.COUNT_TRANSACTIONS_REMOTE_IN_APPLIER_QUEUE, m.MEMBER_HOST, m.MEMBER_PORT \
         FROM (SELECT 1) AS one LEFT JOIN performance_schema.replication_group_members AS m ON TRUE \
         LEFT JOIN performance_schema.replication_group_member_stats AS s USING (MEMBER_ID)"
            .to_owned()
    }

    fn told(&self, _topology: &Topology, rows: &Rows) -> Result<Role, &'static str> {
        let first = rows.first().ok_or("it says nothing of a group")?;
        let mut member = Group {
            read_only: is_on(text(first.first())),
            ..Group::default()
        };
        let mut reached = 0;
        for row in rows {
            let state = text(row.get(2));
            reached += usize::from(!matches!(state, "UNREACHABLE" | ""));
            if text(row.get(1)) == "1" {
                member.is_online = state == "ONLINE";
                member.is_primary = text(row.get(3)) == "PRIMARY";
                member.queue = text(row.get(4)).parse().unwrap_or(0);
            }
        }
        member.has_quorum = reached * 2 > rows.len();
        Ok(Role::Group(member))
    }

    fn peers(&self, _topology: &Topology, rows: &Rows) -> Peers {
        let mut peers = Peers::default();
        for row in rows {
            let (host, port) = (text(row.get(5)), text(row.get(6)).parse());
            let (Ok(port), false) = (port, host.is_empty()) else {
                continue;
            };
            let host = host.into();
            let key = ServerKey { host, port };
            if text(row.get(1)) == "1" {
                peers.own = Some(key);
            } else if matches!(text(row.get(2)), "ONLINE" | "RECOVERING") {
                peers.others.push(key);
            }
        }
        // In whatever order they come, it is the same.
        peers.others.sort_unstable();
        peers
    }

    fn pace(&self, _topology: &Topology, v: &Variables) -> Pace {
        Pace {
            interval_ms: v.mysql_monitor_groupreplication_healthcheck_interval,
            timeout_ms: v.mysql_monitor_groupreplication_healthcheck_timeout,
            lost: v.mysql_monitor_groupreplication_healthcheck_max_timeout_count,
            behind: v.mysql_monitor_groupreplication_max_transactions_behind_count,
            worst_of: 1,
        }
    }

    fn standing(&self, role: &Role) -> Standing {
        let Role::Group(member) = role else {
            return Standing::Unseen;
        };
        if !member.is_online {
            Standing::NoUse("it is not ONLINE in its group")
        } else if !member.has_quorum {
            Standing::NoUse("its part of the group has no majority")
        } else if !member.is_primary {
            Standing::Reads("it is a SECONDARY")
        } else if member.read_only {
            Standing::Reads("read_only is ON")
        } else {
            Standing::MayWrite(0)
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
        policy: &Policy,
    ) -> Assigned {
        let Topology::Group(four) = topology else {
            return Assigned::default();
        };
        let cluster = Cluster {
            kind: TopologyKind::Group,
            ways: self,
            behind: policy.groups_behind,
        };
        cluster.assign(four, members, observed)
    }
}

#[cfg(test)]
mod tests {
    use super::super::any;
    use super::*;

    fn standing(rows: &[[&str; 5]]) -> Standing {
        let cell = |text: &&str| (*text != "NULL").then(|| text.as_bytes().to_vec());
        let rows: Vec<Vec<_>> = rows
            .iter()
            .map(|row| row.iter().map(cell).collect())
            .collect();
        Ways.standing(&Ways.told(&any(), &rows).unwrap())
    }

    #[test]
    fn a_member_says_whom_it_knows() {
        let row = |words: &str| {
            let cell = |word: &str| Some(word.as_bytes().to_vec());
            words.split(' ').map(cell).collect::<Vec<_>>()
        };
        let peers = Ways.peers(
            &any(),
            &[
                row("0 0 ONLINE SECONDARY 0 c 3306"),
                row("0 1 ONLINE PRIMARY 0 a 3306"),
                row("0 0 UNREACHABLE SECONDARY 0 d 3306"),
                row("0 0 RECOVERING SECONDARY 0 b 3307"),
                row("0 0 ONLINE SECONDARY 0 e 99999"),
            ],
        );
        assert_eq!(peers.own.unwrap().to_string(), "a:3306");
        let others: Vec<_> = peers.others.iter().map(ToString::to_string).collect();
        assert_eq!(others, ["b:3307", "c:3306"]);
    }

    #[test]
    fn a_member_is_what_the_group_has_made_it() {
        let primary = ["0", "1", "ONLINE", "PRIMARY", "0"];
        let other = ["0", "0", "ONLINE", "SECONDARY", "0"];
        let lost = ["0", "0", "UNREACHABLE", "SECONDARY", "0"];
        assert_eq!(standing(&[primary]), Standing::MayWrite(0));
        assert_eq!(standing(&[other, primary, lost]), Standing::MayWrite(0));
        let secondary = ["1", "1", "ONLINE", "SECONDARY", "7"];
        assert!(matches!(standing(&[secondary, other]), Standing::Reads(_)));
        // It has been chosen, and still applies what came before.
        let chosen = ["1", "1", "ONLINE", "PRIMARY", "7"];
        assert!(matches!(standing(&[chosen, other]), Standing::Reads(_)));
        for rows in [
            &[primary, lost, lost][..],
            &[primary, lost],
            &[["1", "1", "RECOVERING", "SECONDARY", "7"], other],
            &[["1", "1", "ERROR", "", "0"]],
            &[["0", "NULL", "OFFLINE", "", "NULL"]],
            &[["0", "NULL", "NULL", "NULL", "NULL"]],
        ] {
            assert!(matches!(standing(rows), Standing::NoUse(_)), "{rows:?}");
        }
        assert!(Ways.told(&any(), &[]).is_err());
    }
}
