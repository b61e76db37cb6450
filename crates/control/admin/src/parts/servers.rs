//! `MYSQL SERVERS`: servers, and what is so of their hostgroups and of TLS towards them.

use super::part::{Outcome, Part};
use super::tables::{InForce, Sight};
use crate::tables::Module;
use bridge::{Report, ServerState};
use config::{
    AuroraHostgroupRow, GaleraHostgroupRow, GroupReplicationHostgroupRow, Help,
    HostgroupAttributesRow, ReplicationHostgroupRow, ServerRow, Snapshot, SslParamsRow, Status,
    TopologyRows,
};
use std::sync::Arc;

pub(super) struct Servers;

impl Part for Servers {
    const MODULE: Module = Module::Servers;
    type Rows = (
        Vec<ServerRow>,
        Vec<HostgroupAttributesRow>,
        Vec<SslParamsRow>,
        Vec<ReplicationHostgroupRow>,
        Vec<GroupReplicationHostgroupRow>,
        Vec<GaleraHostgroupRow>,
        Vec<AuroraHostgroupRow>,
    );

    fn build(
        next: &mut Snapshot,
        (servers, attributes, ssl, replication, groups, galera, aurora): Self::Rows,
        _help: &dyn Help,
    ) -> Outcome {
        let servers = config::Servers::build(servers, attributes, ssl);
        let topologies = TopologyRows {
            replication,
            groups,
            galera,
            aurora,
        };
        let servers = match servers {
            Ok(servers) => servers.with_topologies(topologies)?,
            Err(mut refused) => {
                // What is wrong with the topologies is said as well.
                let more = config::Servers::default().with_topologies(topologies);
                refused.extend(more.err().unwrap_or_default());
                return Err(refused);
            }
        };
        let mut notices = servers.notices().to_vec();
        notices.extend(servers.without_feeds(&next.rules));
        next.servers = Arc::new(servers);
        Ok(notices)
    }
}

impl InForce for ServerRow {
    fn in_force(snapshot: &Snapshot) -> impl Iterator<Item = Self> {
        snapshot.servers.rows().into_iter()
    }

    /// Where the servers are now: topologies move them. The status is the operator's word,
    /// unless the cores have set a server aside.
    fn shown(snapshot: &Snapshot, sight: &Sight) -> impl Iterator<Item = Self> {
        let policy = topology::Policy::of(&snapshot.variables);
        let placed = topology::placed(&snapshot.servers, &sight.observed, &policy);
        let mut rows: Vec<Self> = placed
            .hostgroups
            .values()
            .flatten()
            .filter(|place| place.server.status != Status::OfflineHard)
            .map(|place| place.server.row())
            .collect();
        rows.sort_by(|a, b| {
            (a.hostgroup_id, &a.hostname, a.port).cmp(&(b.hostgroup_id, &b.hostname, b.port))
        });
        rows.into_iter().map(|row| as_cores_see_it(row, sight))
    }
}

fn as_cores_see_it(mut row: ServerRow, sight: &Sight) -> ServerRow {
    let Some(Report::Pool(pool)) = &sight.pool else {
        return row;
    };
    let found = pool.iter().find(|seen| {
        i64::from(seen.hostgroup) == row.hostgroup_id
            && *seen.host == *row.hostname
            && i64::from(seen.port) == row.port
    });
    if let Some(seen) = found {
        // The table has one word for both.
        let state = match seen.state {
            ServerState::ShunnedReplicationLag => ServerState::Shunned,
            state => state,
        };
        if state == ServerState::Shunned || row.status == "SHUNNED" {
            row.status = state.name().into();
        }
    }
    row
}

impl InForce for ReplicationHostgroupRow {
    fn in_force(snapshot: &Snapshot) -> impl Iterator<Item = Self> {
        snapshot.servers.replication_rows()
    }
}

impl InForce for GroupReplicationHostgroupRow {
    fn in_force(snapshot: &Snapshot) -> impl Iterator<Item = Self> {
        snapshot.servers.group_rows()
    }
}

impl InForce for GaleraHostgroupRow {
    fn in_force(snapshot: &Snapshot) -> impl Iterator<Item = Self> {
        snapshot.servers.galera_rows()
    }
}

impl InForce for AuroraHostgroupRow {
    fn in_force(snapshot: &Snapshot) -> impl Iterator<Item = Self> {
        snapshot.servers.aurora_rows()
    }
}

impl InForce for HostgroupAttributesRow {
    fn in_force(snapshot: &Snapshot) -> impl Iterator<Item = Self> {
        snapshot.servers.attributes_rows().into_iter()
    }
}

impl InForce for SslParamsRow {
    fn in_force(snapshot: &Snapshot) -> impl Iterator<Item = Self> {
        snapshot.servers.ssl_params_rows().into_iter()
    }
}
