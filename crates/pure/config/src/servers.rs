//! `mysql_servers`, `mysql_hostgroup_attributes` and `mysql_servers_ssl_params`: where statements
//! can go.

mod attributes;
mod replay;
mod tls;
mod topologies;

pub use attributes::{Balance, Dns, Fallback, HostgroupAttributes, LogUse};
pub use attributes::{ServersDefaults, WeightZero};
pub use replay::{Checksum, Replay};
pub use tls::SslParams;
pub use topologies::{AlsoReads, Aurora, CheckType, Quartet, Replication, Writers};
pub use topologies::{Topology, TopologyKind, TopologyRows};

use crate::AuroraHostgroupRow;
use crate::refusal::{Notices, Refusals};
use crate::{GaleraHostgroupRow, GroupReplicationHostgroupRow, ReplicationHostgroupRow};
use crate::{HostgroupAttributesRow, Refusal, ServerRow, SslParamsRow};
use hashbrown::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;
use tls::TlsTable;

/// All hostgroups: those with a server, and those with attributes.
#[derive(Debug, Default)]
pub struct Servers {
    hostgroups: HashMap<u32, Hostgroup, foldhash::fast::FixedState>,
    tls: TlsTable,
    topologies: Vec<Arc<Topology>>,
    notices: Vec<Refusal>,
    splits: bool,
    begins: bool,
    falls_back: bool,
    replays: bool,
}

/// One hostgroup.
#[derive(Debug, Clone)]
pub struct Hostgroup {
    /// Its number.
    pub id: u32,
    /// Its row of `mysql_hostgroup_attributes`, or what holds without one.
    pub attributes: HostgroupAttributes,
    /// Its servers, in the order of their rows.
    pub servers: Vec<Arc<Server>>,
}

/// One row of `mysql_servers`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Hostgroup.
    pub hostgroup: u32,
    /// Name, address, or (with port 0) path of a Unix socket.
    pub hostname: Box<str>,
    /// Port; 0 if `hostname` is a path.
    pub port: u16,
    /// Status by the operator's word.
    pub status: Status,
    /// Share of the hostgroup's statements; 0 for none.
    pub weight: u32,
    /// Whether the protocol is compressed.
    pub compression: bool,
    /// Connections that may be open at once.
    pub max_connections: u32,
    /// Seconds behind its source from which on it gets nothing; 0 for never.
    pub max_replication_lag: u32,
    /// Whether connections use TLS.
    pub use_ssl: bool,
    /// Milliseconds of ping from which on it is avoided; 0 for mysql-default_max_latency_ms.
    pub max_latency_ms: u32,
    /// Port of its binlog reader; 0 for none.
    pub gtid_port: u16,
    /// For the operator.
    pub comment: Box<str>,
    /// Its row of `mysql_servers_ssl_params` that names no user. See [`Server::ssl_for`].
    pub ssl: Option<Arc<SslParams>>,
    /// Its rows there that name one.
    pub ssl_of_users: Box<[Arc<SslParams>]>,
}

/// Status of a server by the operator's word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Takes traffic.
    Online,
    /// Starts shunned, and takes traffic when it is found well.
    Shunned,
    /// Finishes what it has, gets nothing new.
    OfflineSoft,
    /// Gets nothing; what it has is cut.
    OfflineHard,
}

impl Status {
    /// As the table spells it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Online => "ONLINE",
            Self::Shunned => "SHUNNED",
            Self::OfflineSoft => "OFFLINE_SOFT",
            Self::OfflineHard => "OFFLINE_HARD",
        }
    }

    /// From the table, in any case.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        [
            Self::Online,
            Self::Shunned,
            Self::OfflineSoft,
            Self::OfflineHard,
        ]
        .into_iter()
        .find(|status| status.name().eq_ignore_ascii_case(name))
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

const HOSTGROUP_MAX: i64 = i32::MAX as i64;

impl Servers {
    /// From the rows of the three tables.
    pub fn build(
        servers: impl IntoIterator<Item = ServerRow>,
        attributes: impl IntoIterator<Item = HostgroupAttributesRow>,
        ssl: impl IntoIterator<Item = SslParamsRow>,
    ) -> Result<Self, Vec<Refusal>> {
        let mut refused = Vec::new();
        let mut built = Self::default();
        let tls = TlsTable::build(ssl, &mut refused);
        built.add_servers(servers, &tls, &mut refused);
        built.add_attributes(attributes, &mut refused);
        built.tls = tls;
        if refused.is_empty() {
            Ok(built)
        } else {
            Err(refused)
        }
    }

    /// With the rows of the tables of topologies.
    pub fn with_topologies(mut self, rows: TopologyRows) -> Result<Self, Vec<Refusal>> {
        let mut refused = Vec::new();
        self.topologies = rows.build(&mut refused);
        if refused.is_empty() {
            Ok(self)
        } else {
            Err(refused)
        }
    }

    /// Hostgroups between which servers move: those of each kind in the order of the writers'
    /// hostgroups. Not all of them need be active.
    #[must_use]
    pub fn topologies(&self) -> &[Arc<Topology>] {
        &self.topologies
    }

    /// Whether a topology says which server of this hostgroup gets writes.
    #[must_use]
    pub fn is_of_writers(&self, hostgroup: u32) -> bool {
        let mut all = self.topologies.iter();
        all.any(|one| one.writers() == hostgroup && one.is_active())
    }

    /// The rows of `runtime_mysql_replication_hostgroups`.
    pub fn replication_rows(&self) -> impl Iterator<Item = ReplicationHostgroupRow> {
        self.topologies.iter().filter_map(|one| match &**one {
            Topology::Replication(pair) => Some(pair.row()),
            _ => None,
        })
    }

    /// The rows of `runtime_mysql_group_replication_hostgroups`.
    pub fn group_rows(&self) -> impl Iterator<Item = GroupReplicationHostgroupRow> {
        self.topologies.iter().filter_map(|one| match &**one {
            Topology::Group(four) => Some(four.row()),
            _ => None,
        })
    }

    /// The rows of `runtime_mysql_galera_hostgroups`.
    pub fn galera_rows(&self) -> impl Iterator<Item = GaleraHostgroupRow> {
        self.topologies.iter().filter_map(|one| match &**one {
            Topology::Galera(four) => Some(four.row()),
            _ => None,
        })
    }

    /// The rows of `runtime_mysql_aws_aurora_hostgroups`.
    pub fn aurora_rows(&self) -> impl Iterator<Item = AuroraHostgroupRow> {
        self.topologies.iter().filter_map(|one| match &**one {
            Topology::Aurora(aurora) => Some(aurora.row()),
            _ => None,
        })
    }

    fn add_servers(
        &mut self,
        rows: impl IntoIterator<Item = ServerRow>,
        tls: &TlsTable,
        refused: &mut Vec<Refusal>,
    ) {
        let mut refusals = Refusals::of("mysql_servers");
        let mut seen = HashSet::with_hasher(foldhash::fast::FixedState::default());
        for row in rows {
            let server = check(&row, tls, &mut refusals);
            if !seen.insert((server.hostgroup, server.hostname.clone(), server.port)) {
                refusals.add(
                    || key(&row),
                    "hostname",
                    "has a row already with this hostgroup_id and port",
                );
            }
            self.hostgroup_or_new(server.hostgroup)
                .servers
                .push(Arc::new(server));
        }
        refused.extend(refusals.into_list());
    }

    fn add_attributes(
        &mut self,
        rows: impl IntoIterator<Item = HostgroupAttributesRow>,
        refused: &mut Vec<Refusal>,
    ) {
        let mut refusals = Refusals::of("mysql_hostgroup_attributes");
        let mut notices = Notices::of("mysql_hostgroup_attributes");
        for row in rows {
            let key = format!("hostgroup_id {}", row.hostgroup_id);
            let id = refusals.number(
                || key.clone(),
                "hostgroup_id",
                row.hostgroup_id,
                (0, HOSTGROUP_MAX),
            );
            let attributes = HostgroupAttributes::check(row, &mut refusals, &mut notices);
            let hostgroup = self.hostgroup_or_new(id);
            if hostgroup.attributes.row().is_some() {
                refusals.add(|| key, "hostgroup_id", "has a row already");
            }
            hostgroup.attributes = attributes;
            self.begins |= self
                .hostgroups
                .get(&id)
                .is_some_and(|hostgroup| hostgroup.attributes.init_connect.is_some());
            self.splits |= self
                .hostgroups
                .get(&id)
                .is_some_and(|hostgroup| hostgroup.attributes.split.is_some());
        }
        self.compare_fallbacks(&mut refusals);
        let mut all = self.hostgroups.values();
        self.replays = all.any(|hostgroup| hostgroup.attributes.replay.is_some());
        self.compare_beginnings(&mut notices);
        refused.extend(refusals.into_list());
        self.notices.extend(notices.into_list());
    }

    /// Two hostgroups that are each other's fallback have none.
    fn compare_fallbacks(&mut self, refusals: &mut Refusals) {
        let of = |id: u32| self.hostgroups.get(&id)?.attributes.fallback;
        let all = self
            .hostgroups
            .keys()
            .filter_map(|id| Some((*id, of(*id)?.hostgroup)));
        let all: Vec<(u32, u32)> = all.collect();
        self.falls_back = !all.is_empty();
        for (id, to) in &all {
            if id < to && all.contains(&(*to, *id)) {
                let words =
                    format!("has a 'fallback_hostgroup', {to}, whose own is this hostgroup");
                refusals.add(|| format!("hostgroup_id {id}"), "hostgroup_settings", words);
            }
        }
    }

    /// A session whose statements go to several hostgroups sees what each of them begins its
    /// connections with.
    fn compare_beginnings(&self, notices: &mut Notices) {
        let begins = |hostgroup: &Hostgroup| {
            hostgroup
                .attributes
                .init_connect
                .clone()
                .filter(|text| **text != *"(null)")
        };
        let mut all: Vec<_> = self
            .hostgroups
            .values()
            .filter(|hostgroup| !hostgroup.servers.is_empty())
            .collect();
        all.sort_unstable_by_key(|hostgroup| hostgroup.id);
        for hostgroup in all.iter().filter(|hostgroup| begins(hostgroup).is_some()) {
            let Some(other) = all.iter().find(|other| begins(other) != begins(hostgroup)) else {
                continue;
            };
            let words = format!(
                "differs from that of hostgroup {}: a session whose statements go to both sees in each what that begins with, until it has set it itself",
                other.id
            );
            notices.add(
                || format!("hostgroup_id {}", hostgroup.id),
                "init_connect",
                &words,
            );
        }
    }

    fn hostgroup_or_new(&mut self, id: u32) -> &mut Hostgroup {
        let new = || Hostgroup {
            id,
            attributes: HostgroupAttributes::default(),
            servers: Vec::new(),
        };
        self.hostgroups.entry(id).or_insert_with(new)
    }

    /// The hostgroup of this number.
    #[must_use]
    pub fn hostgroup(&self, id: u32) -> Option<&Hostgroup> {
        self.hostgroups.get(&id)
    }

    /// Whether some hostgroup says where its reads go.
    #[must_use]
    pub const fn splits(&self) -> bool {
        self.splits
    }

    /// Whether some hostgroup says where its statements go while nobody serves there.
    #[must_use]
    pub const fn falls_back(&self) -> bool {
        self.falls_back
    }

    /// Whether transactions of some hostgroup are replayed.
    #[must_use]
    pub const fn replays(&self) -> bool {
        self.replays
    }

    /// Returns what servers of weight 0 in a hostgroup are for.
    #[must_use]
    pub fn weight_zero(&self, hostgroup: u32) -> WeightZero {
        self.hostgroup(hostgroup)
            .map_or(WeightZero::Never, |one| one.attributes.weight_zero)
    }

    /// Returns which addresses of a name are used in a hostgroup.
    #[must_use]
    pub fn dns(&self, hostgroup: u32) -> Dns {
        self.hostgroup(hostgroup)
            .map_or(Dns::First, |one| one.attributes.dns)
    }

    /// Whether some hostgroup has an `init_connect` of its own.
    #[must_use]
    pub const fn begins(&self) -> bool {
        self.begins
    }

    /// All hostgroups, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &Hostgroup> {
        self.hostgroups.values()
    }

    /// The TLS parameters for logging in to a server as this user: the row that names him, or else
    /// the one that names nobody.
    #[must_use]
    pub fn ssl_params(&self, hostname: &str, port: u16, username: &str) -> Option<&Arc<SslParams>> {
        self.tls.most_specific(hostname, port, username)
    }

    /// Returns the notices: what was accepted and has less effect than it says.
    #[must_use]
    pub fn notices(&self) -> &[Refusal] {
        &self.notices
    }

    /// The rows of `runtime_mysql_servers`, in the order of hostgroup, name and port. What is
    /// OFFLINE_HARD is gone.
    #[must_use]
    pub fn rows(&self) -> Vec<ServerRow> {
        let servers = self
            .hostgroups
            .values()
            .flat_map(|hostgroup| &hostgroup.servers);
        let mut rows: Vec<_> = servers
            .filter(|server| server.status != Status::OfflineHard)
            .map(|server| server.row())
            .collect();
        rows.sort_unstable_by(|a, b| {
            (a.hostgroup_id, &a.hostname, a.port).cmp(&(b.hostgroup_id, &b.hostname, b.port))
        });
        rows
    }

    /// The rows of `runtime_mysql_hostgroup_attributes`, in the order of the hostgroups.
    #[must_use]
    pub fn attributes_rows(&self) -> Vec<HostgroupAttributesRow> {
        let mut rows: Vec<_> = self
            .hostgroups
            .values()
            .filter_map(|hostgroup| hostgroup.attributes.row().cloned())
            .collect();
        rows.sort_unstable_by_key(|row| row.hostgroup_id);
        rows
    }

    /// The rows of `runtime_mysql_servers_ssl_params`, in the order in which they came.
    #[must_use]
    pub fn ssl_params_rows(&self) -> Vec<SslParamsRow> {
        self.tls.rows()
    }
}

impl Server {
    /// The TLS parameters for logging in as this user: the row that names him, or else the one that
    /// names nobody.
    #[must_use]
    pub fn ssl_for(&self, username: &str) -> Option<&Arc<SslParams>> {
        self.ssl_of_users
            .iter()
            .find(|params| *params.username == *username)
            .or(self.ssl.as_ref())
    }

    /// One that no row names, with what the hostgroup says of such servers.
    #[must_use]
    pub fn found(hostgroup: u32, hostname: &str, port: u16, defaults: &ServersDefaults) -> Self {
        Self {
            hostgroup,
            hostname: hostname.into(),
            port,
            status: Status::Online,
            weight: defaults.weight.unwrap_or(1),
            compression: false,
            max_connections: defaults.max_connections.unwrap_or(1000),
            max_replication_lag: 0,
            use_ssl: defaults.use_ssl.unwrap_or(false),
            max_latency_ms: 0,
            gtid_port: 0,
            comment: "found by the monitor".into(),
            ssl: None,
            ssl_of_users: Box::default(),
        }
    }

    /// As a row of `mysql_servers`.
    #[must_use]
    pub fn row(&self) -> ServerRow {
        ServerRow {
            hostgroup_id: self.hostgroup.into(),
            hostname: self.hostname.to_string(),
            port: self.port.into(),
            gtid_port: self.gtid_port.into(),
            status: self.status.name().into(),
            weight: self.weight.into(),
            compression: self.compression.into(),
            max_connections: self.max_connections.into(),
            max_replication_lag: self.max_replication_lag.into(),
            use_ssl: self.use_ssl.into(),
            max_latency_ms: self.max_latency_ms.into(),
            comment: self.comment.to_string(),
        }
    }
}

fn key(row: &ServerRow) -> String {
    format!(
        "hostgroup_id {}, {}:{}",
        row.hostgroup_id, row.hostname, row.port
    )
}

fn check(row: &ServerRow, tls: &TlsTable, refusals: &mut Refusals) -> Server {
    let key = || key(row);
    let port = refusals.number(key, "port", row.port, (0, 65_535));
    let gtid_port = refusals.number(key, "gtid_port", row.gtid_port, (0, 65_535));
    if row.hostname.is_empty() {
        refusals.add(key, "hostname", "is empty");
    }
    if row.gtid_port != 0 && row.gtid_port == row.port {
        refusals.add(key, "gtid_port", "must differ from port");
    }
    let status = Status::named(&row.status).unwrap_or_else(|| {
        let words = format!(
            "must be ONLINE, SHUNNED, OFFLINE_SOFT or OFFLINE_HARD; '{}' is not",
            row.status
        );
        refusals.add(key, "status", words);
        Status::OfflineHard
    });
    let (ssl, ssl_of_users) = tls.of_server(&row.hostname, port);
    Server {
        hostgroup: refusals.number(key, "hostgroup_id", row.hostgroup_id, (0, HOSTGROUP_MAX)),
        hostname: row.hostname.as_str().into(),
        port,
        status,
        weight: refusals.number(key, "weight", row.weight, (0, 10_000_000)),
        compression: refusals.flag(key, "compression", row.compression),
        max_connections: refusals.number(
            key,
            "max_connections",
            row.max_connections,
            (0, i64::from(u32::MAX)),
        ),
        max_replication_lag: refusals.number(
            key,
            "max_replication_lag",
            row.max_replication_lag,
            (0, 126_144_000),
        ),
        use_ssl: refusals.flag(key, "use_ssl", row.use_ssl),
        max_latency_ms: refusals.number(
            key,
            "max_latency_ms",
            row.max_latency_ms,
            (0, i64::from(u32::MAX)),
        ),
        gtid_port,
        comment: row.comment.as_str().into(),
        ssl,
        ssl_of_users,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(hostgroup_id: i64, hostname: &str) -> ServerRow {
        ServerRow {
            hostgroup_id,
            hostname: hostname.into(),
            ..ServerRow::default()
        }
    }

    fn words(refusals: Vec<Refusal>) -> Vec<String> {
        refusals.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn hostgroups_hold_their_servers_in_order_and_list_them_back() {
        let soft = ServerRow {
            status: "offline_soft".into(),
            ..server(1, "c")
        };
        let hard = ServerRow {
            status: "OFFLINE_HARD".into(),
            ..server(1, "d")
        };
        let servers = Servers::build(
            [server(1, "b"), server(1, "a"), soft, hard, server(2, "a")],
            [],
            [],
        )
        .unwrap();
        let names: Vec<_> = servers
            .hostgroup(1)
            .unwrap()
            .servers
            .iter()
            .map(|s| &*s.hostname)
            .collect();
        assert_eq!(names, ["b", "a", "c", "d"]);
        assert_eq!(servers.iter().count(), 2);
        assert!(servers.hostgroup(3).is_none());
        let rows: Vec<_> = servers
            .rows()
            .into_iter()
            .map(|row| (row.hostname, row.status))
            .collect();
        let listed = [
            ("a", "ONLINE"),
            ("b", "ONLINE"),
            ("c", "OFFLINE_SOFT"),
            ("a", "ONLINE"),
        ];
        assert_eq!(
            rows,
            listed.map(|(name, status)| (name.to_owned(), status.to_owned()))
        );
    }

    #[test]
    fn what_cannot_be_honoured_is_refused_with_every_reason() {
        let bad = ServerRow {
            compression: 2,
            status: "UP".into(),
            weight: -1,
            gtid_port: 3306,
            ..server(1, "a")
        };
        let attributes = HostgroupAttributesRow {
            hostgroup_settings: "[]".into(),
            ..Default::default()
        };
        let ssl = SslParamsRow {
            hostname: "a".into(),
            tls_version: "SSLv3".into(),
            ..Default::default()
        };
        assert_eq!(
            words(
                Servers::build([bad, server(2, "x"), server(2, "x")], [attributes], [ssl])
                    .unwrap_err()
            ),
            [
                "mysql_servers_ssl_params (hostname 'a', port 3306, username ''): tls_version must be a list of TLSv1, TLSv1.1, TLSv1.2, TLSv1.3; 'SSLv3' is not",
                "mysql_servers (hostgroup_id 1, a:3306): gtid_port must differ from port",
                "mysql_servers (hostgroup_id 1, a:3306): status must be ONLINE, SHUNNED, OFFLINE_SOFT or OFFLINE_HARD; 'UP' is not",
                "mysql_servers (hostgroup_id 1, a:3306): weight must be from 0 to 10000000; '-1' is not",
                "mysql_servers (hostgroup_id 1, a:3306): compression must be from 0 to 1; '2' is not",
                "mysql_servers (hostgroup_id 2, x:3306): hostname has a row already with this hostgroup_id and port",
                "mysql_hostgroup_attributes (hostgroup_id 0): hostgroup_settings must be a JSON object such as {}",
            ]
        );
    }

    #[test]
    fn what_of_a_hostgroup_is_kept_without_effect_is_said() {
        let plain = HostgroupAttributesRow {
            hostgroup_id: 1,
            ignore_session_variables: "[]".into(),
            ..HostgroupAttributesRow::default()
        };
        let row = HostgroupAttributesRow {
            hostgroup_id: 2,
            autocommit: 1,
            ignore_session_variables: r#"["sql_mode"]"#.into(),
            ..HostgroupAttributesRow::default()
        };
        let servers = Servers::build([], [plain, row], []).unwrap();
        assert_eq!(
            words(servers.notices().to_vec()),
            [
                "mysql_hostgroup_attributes (hostgroup_id 2): autocommit is kept, but has no effect: autocommit is as each client sets it",
                "mysql_hostgroup_attributes (hostgroup_id 2): ignore_session_variables is kept, but has no effect: what a session has set is \
                 brought to every connection that serves it"
            ]
        );
    }

    #[test]
    fn hostgroups_that_begin_their_connections_otherwise_are_said() {
        let row = |hostgroup_id, init_connect: &str| HostgroupAttributesRow {
            hostgroup_id,
            init_connect: init_connect.into(),
            ..HostgroupAttributesRow::default()
        };
        let said = |servers: &[i64], rows: &[(i64, &str)]| {
            let servers = servers.iter().map(|id| server(*id, "a"));
            words(
                Servers::build(servers, rows.iter().map(|(id, text)| row(*id, text)), [])
                    .unwrap()
                    .notices()
                    .to_vec(),
            )
        };
        let of = |id: &str, other: i32| {
            format!(
                "mysql_hostgroup_attributes (hostgroup_id {id}): init_connect differs from that of hostgroup {other}: a session whose \
                 statements go to both sees in each what that begins with, until it has set it itself"
            )
        };
        assert_eq!(
            said(&[1, 2], &[(1, ""), (2, "SET time_zone='+02:00'")]),
            [of("2", 1)]
        );
        assert_eq!(
            said(
                &[1, 2],
                &[(1, "SET sql_mode=''"), (2, "SET time_zone='+02:00'")]
            ),
            [of("1 and 1 more", 2)]
        );
        assert!(said(&[1, 2], &[(1, "SET sql_mode=''"), (2, "SET sql_mode=''")]).is_empty());
        // Nothing goes where no server is.
        assert!(said(&[1], &[(1, "SET sql_mode=''"), (2, "")]).is_empty());
    }
}
