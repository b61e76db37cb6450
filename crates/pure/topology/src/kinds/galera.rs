//! Galera: each node says whether it is in the part of the cluster that counts, and how far it has
//! come.

use super::quartet::Cluster;
use super::{Assign, Kind, Pace, Standing, is_on, text};
use crate::members::{Assigned, Member};
use crate::node::Galera;
use crate::place::{Behind, Policy};
use crate::probe::{Rows, is_mariadb};
use crate::seen::{Observed, Role};
use config::{Servers, Topology, TopologyKind, Variables};

/// Number of the error by which a node says that it is no part of a cluster now.
const NOT_PREPARED: u16 = 1047;

pub(super) struct Ways;

impl Kind for Ways {
    /// One statement that needs no privileges and is answered outside the primary part, too.
    fn question(&self, _topology: &Topology, version: &str) -> String {
        let schema = if is_mariadb(version) {
            "information_schema"
        } else {
            "performance_schema"
        };
        format!(
            "SELECT VARIABLE_NAME, VARIABLE_VALUE FROM {schema}.global_status WHERE VARIABLE_NAME IN \
             ('wsrep_cluster_status', 'wsrep_local_state', 'wsrep_local_recv_queue', 'wsrep_ready') \
             UNION ALL SELECT VARIABLE_NAME, VARIABLE_VALUE FROM {schema}.global_variables WHERE \
             VARIABLE_NAME IN ('read_only', 'wsrep_desync', 'wsrep_reject_queries', \
             'wsrep_sst_donor_rejects_queries', 'pxc_maint_mode')"
        )
    }

    fn told(&self, _topology: &Topology, rows: &Rows) -> Result<Role, &'static str> {
        let mut node = Galera::default();
        let mut is_node = false;
        for row in rows {
            let value = text(row.get(1));
            match text(row.first()).to_ascii_lowercase().as_str() {
                "wsrep_cluster_status" => {
                    is_node = true;
                    node.is_primary = value.eq_ignore_ascii_case("Primary");
                }
                "wsrep_ready" => node.is_ready = is_on(value),
                "wsrep_local_state" => node.local_state = value.parse().unwrap_or(0),
                "wsrep_local_recv_queue" => node.recv_queue = value.parse().unwrap_or(u32::MAX),
                "read_only" => node.read_only = is_on(value),
                "wsrep_desync" => node.desync = is_on(value),
                "wsrep_reject_queries" => node.rejects = !value.eq_ignore_ascii_case("NONE"),
                "wsrep_sst_donor_rejects_queries" => node.donor_rejects = is_on(value),
                "pxc_maint_mode" => node.in_maintenance = !value.eq_ignore_ascii_case("DISABLED"),
                _ => {}
            }
        }
        // A server without Galera has none of them.
        is_node
            .then_some(Role::Galera(node))
            .ok_or("it has no wsrep_cluster_status")
    }

    fn told_by_error(&self, code: u16) -> Option<Role> {
        (code == NOT_PREPARED).then(|| Role::Galera(Galera::default()))
    }

    fn pace(&self, _topology: &Topology, v: &Variables) -> Pace {
        Pace {
            interval_ms: v.mysql_monitor_galera_healthcheck_interval,
            timeout_ms: v.mysql_monitor_galera_healthcheck_timeout,
            lost: v.mysql_monitor_galera_healthcheck_max_timeout_count,
            behind: 1,
            worst_of: 1,
        }
    }

    fn standing(&self, role: &Role) -> Standing {
        let Role::Galera(node) = role else {
            return Standing::Unseen;
        };
        let is_donor = node.local_state == 2;
        if !node.is_primary {
            Standing::NoUse("wsrep_cluster_status is not Primary")
        } else if node.in_maintenance {
            Standing::NoUse("pxc_maint_mode is not DISABLED")
        } else if node.rejects {
            Standing::NoUse("wsrep_reject_queries is not NONE")
        } else if node.desync {
            // Nothing keeps it near the others: it may be behind without an end.
            Standing::NoUse("wsrep_desync is ON")
        } else if is_donor && node.donor_rejects {
            Standing::NoUse("it is a donor, and wsrep_sst_donor_rejects_queries is ON")
        } else if !is_donor && node.local_state != 4 {
            Standing::NoUse("wsrep_local_state is not 4")
        } else if !node.is_ready {
            Standing::NoUse("wsrep_ready is OFF")
        } else if node.read_only {
            Standing::Reads("read_only is ON")
        } else {
            // A donor is busy: one that is synced is the better writer.
            Standing::MayWrite(u8::from(is_donor))
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
        let Topology::Galera(four) = topology else {
            return Assigned::default();
        };
        let cluster = Cluster {
            kind: TopologyKind::Galera,
            ways: self,
            behind: Behind::Readers,
        };
        cluster.assign(four, members, observed)
    }
}

#[cfg(test)]
mod tests {
    use super::super::any;
    use super::*;

    fn told(rows: &[(&str, &str)]) -> Result<Role, &'static str> {
        let cell = |text: &str| Some(text.as_bytes().to_vec());
        let rows: Vec<_> = rows
            .iter()
            .map(|(name, value)| vec![cell(name), cell(value)])
            .collect();
        Ways.told(&any(), &rows)
    }

    const WELL: [(&str, &str); 8] = [
        ("WSREP_CLUSTER_STATUS", "Primary"),
        ("WSREP_READY", "ON"),
        ("WSREP_LOCAL_STATE", "4"),
        ("WSREP_LOCAL_RECV_QUEUE", "0"),
        ("READ_ONLY", "OFF"),
        ("WSREP_DESYNC", "OFF"),
        ("WSREP_REJECT_QUERIES", "NONE"),
        ("WSREP_SST_DONOR_REJECTS_QUERIES", "OFF"),
    ];

    #[test]
    fn a_node_may_write_when_all_it_says_is_well() {
        let standing = |changes: &[(&'static str, &'static str)]| {
            let rows: Vec<_> = WELL.iter().chain(changes).copied().collect();
            Ways.standing(&told(&rows).unwrap())
        };
        assert_eq!(standing(&[]), Standing::MayWrite(0));
        assert_eq!(
            standing(&[("pxc_maint_mode", "DISABLED")]),
            Standing::MayWrite(0)
        );
        assert_eq!(
            standing(&[("wsrep_local_state", "2")]),
            Standing::MayWrite(1)
        );
        assert!(matches!(
            standing(&[("read_only", "NO_LOCK")]),
            Standing::Reads(_)
        ));
        for one in [
            &[("wsrep_cluster_status", "non-Primary")][..],
            &[("wsrep_cluster_status", "Disconnected")],
            &[("wsrep_ready", "OFF")],
            &[("wsrep_local_state", "1")],
            &[("wsrep_local_state", "3")],
            &[("wsrep_local_state", "2"), ("wsrep_desync", "ON")],
            &[
                ("wsrep_local_state", "2"),
                ("wsrep_sst_donor_rejects_queries", "ON"),
            ],
            &[("wsrep_reject_queries", "ALL_KILL")],
            &[("pxc_maint_mode", "MAINTENANCE")],
        ] {
            assert!(matches!(standing(one), Standing::NoUse(_)), "{one:?}");
        }
    }

    #[test]
    fn a_server_without_galera_cannot_be_checked_and_one_that_says_1047_is_of_no_use() {
        assert!(told(&[("read_only", "OFF")]).is_err());
        let role = Ways.told_by_error(1047).unwrap();
        assert!(matches!(Ways.standing(&role), Standing::NoUse(_)));
        assert_eq!(Ways.told_by_error(1045), None);
    }
}
