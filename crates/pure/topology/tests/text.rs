//! Who serves where, as texts: each `*.txt` beside this file has rows, what was seen, and what
//! follows. `UPDATE_EXPECT=1 cargo test -p topology` writes the answers anew.
//!
//! ```text
//! # a remark                                   rows and sights stay until `clear`
//! server 10 a: max_replication_lag=5           hostgroup, name; columns of mysql_servers
//! pair 10 20: read_only                        writer, reader; check_type
//! galera 10 11 12 13: max_writers=2            the four hostgroups; columns; or group
//! hostgroup 10: {"writers":"all"}              hostgroup_settings
//! hostgroup 10 defaults: {"weight":7}          servers_defaults
//! aurora 10 11: max_lag_ms=50                 writer, reader; columns
//! set writer_is_also_reader=0                  or default_max_latency_ms, groups_behind
//! seen a: read_only=0 lag=3 ping_ms=2          or missing, missed, unchecked, source, id=1 from=2, nothing
//! seen a: group=primary knows=a,b              its own name in the group, and the others
//! seen a: uuid=u1                              its server_uuid
//! name a: 10.0.0.1 10.0.0.2 left:10.0.0.3      addresses of the name, and those that it has left
//! moved 10 a 10.0.0.1                          whether what was open there may end, or is cut off
//! seen a: galera=synced,queue:3                see `galera` and `group` below for the words
//! who                                          remembers the writers
//!   10 a serves (read_only is 0)
//! ```
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use config::AuroraHostgroupRow;
use config::{HostgroupAttributesRow, QuartetRow, ReplicationHostgroupRow, ServerRow};
use config::{Servers, TopologyKind, TopologyRows};
use std::fmt::Write as _;
use topology::Aurora;
use topology::{
    Behind, Channels, Galera, Group, Lag, Observed, Peers, Placed, Policy, Reach, Role, Seen,
};
use topology::{ServerKey, Serves, Whereabouts, placed};

#[test]
fn the_places_are_those_of_the_texts() {
    let mut files: Vec<_> = std::fs::read_dir("tests")
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .collect();
    files.sort();
    assert!(files.len() >= 3, "{files:?}");
    for path in files {
        check(&path);
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test reads its data and the flag that says to write it anew"
)]
fn check(path: &std::path::Path) {
    let text = std::fs::read_to_string(path).unwrap();
    let told = World::default().run(&text);
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(path, told).unwrap();
        return;
    }
    for (number, (line, told)) in (1..).zip(text.lines().zip(told.lines())) {
        let path = path.display();
        assert_eq!(
            told, line,
            "{path}:{number} (UPDATE_EXPECT=1 writes it anew)"
        );
    }
    assert_eq!(text.lines().count(), told.lines().count());
}

struct World {
    servers: Vec<ServerRow>,
    pairs: Vec<ReplicationHostgroupRow>,
    galera: Vec<QuartetRow<true>>,
    groups: Vec<QuartetRow<false>>,
    aurora: Vec<AuroraHostgroupRow>,
    hostgroups: Vec<HostgroupAttributesRow>,
    observed: Observed,
    policy: Policy,
}

impl Default for World {
    fn default() -> Self {
        Self {
            servers: Vec::new(),
            pairs: Vec::new(),
            galera: Vec::new(),
            groups: Vec::new(),
            aurora: Vec::new(),
            hostgroups: Vec::new(),
            observed: Observed::default(),
            policy: Policy {
                writer_is_also_reader: true,
                max_latency_ms: 1000,
                groups_behind: Behind::default(),
            },
        }
    }
}

impl World {
    fn run(mut self, text: &str) -> String {
        let mut told = String::new();
        for line in text.lines().filter(|line| !line.starts_with("  ")) {
            told += line;
            told.push('\n');
            let (command, rest) = line.split_once(' ').unwrap_or((line, ""));
            match command {
                "" | "#" => {}
                "clear" => self = Self::default(),
                "server" => self.server(rest),
                "pair" => self.pair(rest),
                "galera" => self.galera.push(quartet(rest)),
                "group" => self.groups.push(quartet(rest)),
                "aurora" => self.aurora.push(aurora(rest)),
                "hostgroup" if rest.contains(" defaults: ") => {
                    let (id, defaults) = rest.split_once(" defaults: ").unwrap();
                    self.hostgroups.push(HostgroupAttributesRow {
                        hostgroup_id: id.parse().unwrap(),
                        servers_defaults: defaults.into(),
                        ..HostgroupAttributesRow::default()
                    });
                }
                "hostgroup" => {
                    let (id, settings) = rest.split_once(": ").unwrap();
                    self.hostgroups.push(HostgroupAttributesRow {
                        hostgroup_id: id.parse().unwrap(),
                        hostgroup_settings: settings.into(),
                        ..HostgroupAttributesRow::default()
                    });
                }
                "set" => match rest.split_once('=').unwrap() {
                    ("writer_is_also_reader", value) => {
                        self.policy.writer_is_also_reader = value == "1";
                    }
                    ("default_max_latency_ms", value) => {
                        self.policy.max_latency_ms = value.parse().unwrap();
                    }
                    ("groups_behind", value) => {
                        self.policy.groups_behind = match value {
                            "writers" => Behind::Writers,
                            "readers" => Behind::Readers,
                            _ => Behind::All,
                        };
                    }
                    other => panic!("{other:?}"),
                },
                "seen" => self.see(rest),
                "name" => self.name(rest),
                "moved" => told += &self.moved(rest),
                "who" => told += &self.who(),
                other => panic!("{other}"),
            }
        }
        told
    }

    fn server(&mut self, rest: &str) {
        let (which, columns) = rest.split_once(": ").unwrap_or((rest, ""));
        let (hostgroup, name) = which.split_once(' ').unwrap();
        let mut row = ServerRow {
            hostgroup_id: hostgroup.parse().unwrap(),
            hostname: name.into(),
            ..ServerRow::default()
        };
        for (column, value) in columns
            .split_whitespace()
            .map(|one| one.split_once('=').unwrap())
        {
            match column {
                "status" => row.status = value.into(),
                "weight" => row.weight = value.parse().unwrap(),
                "max_replication_lag" => row.max_replication_lag = value.parse().unwrap(),
                "max_latency_ms" => row.max_latency_ms = value.parse().unwrap(),
                other => panic!("{other}"),
            }
        }
        self.servers.push(row);
    }

    fn pair(&mut self, rest: &str) {
        let (hostgroups, check) = rest.split_once(": ").unwrap_or((rest, "read_only"));
        let (writer, reader) = hostgroups.split_once(' ').unwrap();
        self.pairs.push(ReplicationHostgroupRow {
            writer_hostgroup: writer.parse().unwrap(),
            reader_hostgroup: reader.parse().unwrap(),
            check_type: check.into(),
            comment: String::new(),
        });
    }

    fn see(&mut self, rest: &str) {
        let (name, what) = rest.split_once(": ").unwrap();
        let key = ServerKey {
            host: name.into(),
            port: 3306,
        };
        let seen = match name.parse::<std::net::IpAddr>() {
            Ok(_) => self.observed.addresses.entry(key).or_default(),
            Err(_) => self.observed.servers.entry(key).or_default(),
        };
        for one in what.split_whitespace() {
            match one.split_once('=').unwrap_or((one, "")) {
                ("nothing", _) => *seen = Seen::default(),
                ("well", _) => seen.reach = Reach::Well,
                ("missing", _) => seen.reach = Reach::Missing("no answer".into()),
                ("unchecked", _) => {
                    for kind in TopologyKind::ALL {
                        seen.told.entry(kind).or_default();
                    }
                }
                ("missed", _) => {
                    for kind in TopologyKind::ALL {
                        seen.told.entry(kind).or_default().is_missed = true;
                    }
                }
                ("uuid", uuid) => seen.uuid = Some(uuid.into()),
                ("source", _) => seen.lag = Lag::Source,
                ("id", own) => {
                    seen.channels = Some(Channels {
                        own: own.parse().unwrap(),
                        from: Vec::new(),
                    });
                }
                ("from", id) => {
                    let channels = seen.channels.as_mut().unwrap();
                    channels.from.push(id.parse().unwrap());
                }
                ("read_only", value) => {
                    say(
                        seen,
                        TopologyKind::Replication,
                        Role::ReadOnly(value == "1"),
                    );
                }
                ("galera", value) => say(seen, TopologyKind::Galera, galera(value)),
                ("knows", value) => {
                    // Its own name first.
                    let mut names = value.split(',').map(|name| ServerKey {
                        host: name.into(),
                        port: 3306,
                    });
                    let peers = Peers {
                        own: names.next(),
                        others: names.collect(),
                    };
                    seen.peers.insert(TopologyKind::Aurora, peers.clone());
                    seen.peers.insert(TopologyKind::Replication, peers.clone());
                    seen.peers.insert(TopologyKind::Group, peers);
                }
                ("aurora", value) => {
                    let instance = Aurora {
                        is_writer: value == "writer",
                        lag_ms: value.parse().unwrap_or(0),
                        said_ms: 0,
                    };
                    say(seen, TopologyKind::Aurora, Role::Aurora(instance));
                }
                ("group", value) => say(seen, TopologyKind::Group, group(value)),
                ("lag", value) => seen.lag = Lag::Seconds(value.parse().unwrap()),
                ("ping_ms", value) => {
                    seen.ping_us = Some(value.parse::<u32>().unwrap() * 1000);
                }
                other => panic!("{other:?}"),
            }
        }
    }

    fn name(&mut self, rest: &str) {
        let (name, addresses) = rest.split_once(": ").unwrap();
        let mut whereabouts = Whereabouts::default();
        for word in addresses.split_whitespace() {
            match word.strip_prefix("left:") {
                Some(ip) => whereabouts.before.push(ip.parse().unwrap()),
                None => whereabouts.now.push(word.parse().unwrap()),
            }
        }
        self.observed.names.insert(name.into(), whereabouts);
    }

    fn moved(&mut self, rest: &str) -> String {
        let words: Vec<_> = rest.split(' ').collect();
        let declared = self.declared();
        let placed = placed(&declared, &self.observed, &self.policy);
        let hostgroup = declared.hostgroup(words[0].parse().unwrap()).unwrap();
        let is_it = |row: &&std::sync::Arc<config::Server>| *row.hostname == *words[1];
        let row = hostgroup.servers.iter().find(is_it).unwrap();
        let at = words.get(2).map(|ip| ip.parse().unwrap());
        match placed.has_moved(&declared, row, at) {
            true => "  what is open there may end\n".to_owned(),
            false => "  what is open there is cut off\n".to_owned(),
        }
    }

    /// As the monitor does it.
    fn observed_of_names(&mut self) {
        let names: Vec<_> = self.observed.names.keys().cloned().collect();
        for host in names {
            let key = ServerKey { host, port: 3306 };
            let seen = self.observed.by_address(&key).cloned();
            self.observed.servers.insert(key, seen.unwrap_or_default());
        }
    }

    fn declared(&self) -> Servers {
        Servers::build(self.servers.clone(), self.hostgroups.clone(), [])
            .and_then(|servers| {
                servers.with_topologies(TopologyRows {
                    replication: self.pairs.clone(),
                    galera: self.galera.clone(),
                    groups: self.groups.clone(),
                    aurora: self.aurora.clone(),
                })
            })
            .unwrap()
    }

    fn who(&mut self) -> String {
        self.observed_of_names();
        let declared = self.declared();
        let placed: Placed = placed(&declared, &self.observed, &self.policy);
        let mut told = String::new();
        for (hostgroup, places) in &placed.hostgroups {
            for place in places {
                let name = &place.server.hostname;
                assert_eq!(place.server.hostgroup, *hostgroup);
                let serves = match &place.serves {
                    Serves::Yes => "serves".to_owned(),
                    Serves::Drains(why) => format!("drains: {why}"),
                    Serves::No(why) => format!("does not serve: {why}"),
                };
                let why = place.why.as_ref().map(|why| format!(" ({why})"));
                let why = why.unwrap_or_default();
                let found = if placed.found.contains_key(&ServerKey::of(&place.server)) {
                    format!(", found, weight {}", place.server.weight)
                } else {
                    String::new()
                };
                let at = place.at.map(|ip| format!(" at {ip}")).unwrap_or_default();
                writeln!(told, "  {hostgroup} {name}{at} {serves}{why}{found}").unwrap();
            }
        }
        for (key, (name, why)) in &placed.elsewhere {
            writeln!(told, "  {} of {name} gets nothing: {why}", key.host).unwrap();
        }
        if placed.hostgroups.is_empty() {
            told += "  nobody\n";
        }
        self.observed.writers = placed.writers;
        told
    }
}

fn quartet<const GALERA: bool>(rest: &str) -> QuartetRow<GALERA> {
    let (hostgroups, columns) = rest.split_once(": ").unwrap_or((rest, ""));
    let four: Vec<i64> = hostgroups
        .split(' ')
        .map(|hostgroup| hostgroup.parse().unwrap())
        .collect();
    let mut row = QuartetRow {
        writer_hostgroup: four[0],
        backup_writer_hostgroup: four[1],
        reader_hostgroup: four[2],
        offline_hostgroup: four[3],
        ..QuartetRow::default()
    };
    for column in columns.split_whitespace() {
        let (column, value) = column.split_once('=').unwrap();
        let value = value.parse().unwrap();
        match column {
            "active" => row.active = value,
            "max_writers" => row.max_writers = value,
            "writer_is_also_reader" => row.writer_is_also_reader = value,
            "max_transactions_behind" => row.max_transactions_behind = value,
            other => panic!("{other}"),
        }
    }
    row
}

fn aurora(rest: &str) -> AuroraHostgroupRow {
    let (hostgroups, columns) = rest.split_once(": ").unwrap_or((rest, ""));
    let (writer, reader) = hostgroups.split_once(' ').unwrap();
    let mut row = AuroraHostgroupRow {
        writer_hostgroup: writer.parse().unwrap(),
        reader_hostgroup: reader.parse().unwrap(),
        ..AuroraHostgroupRow::default()
    };
    for column in columns.split_whitespace() {
        let (column, value) = column.split_once('=').unwrap();
        let value = value.parse().unwrap();
        match column {
            "writer_is_also_reader" => row.writer_is_also_reader = value,
            "max_lag_ms" => row.max_lag_ms = value,
            "new_reader_weight" => row.new_reader_weight = value,
            other => panic!("{other}"),
        }
    }
    row
}

fn say(seen: &mut Seen, kind: TopologyKind, role: Role) {
    let told = seen.told.entry(kind).or_default();
    (told.role, told.is_missed) = (role, false);
}

fn galera(words: &str) -> Role {
    let mut node = Galera {
        is_primary: true,
        is_ready: true,
        local_state: 4,
        ..Galera::default()
    };
    for word in words.split(',') {
        match word.split_once(':').unwrap_or((word, "")) {
            ("synced", _) => {}
            ("donor", _) => node.local_state = 2,
            ("joining", _) => node.local_state = 1,
            ("split", _) => node.is_primary = false,
            ("read_only", _) => node.read_only = true,
            ("desync", _) => (node.local_state, node.desync) = (2, true),
            ("maintenance", _) => node.in_maintenance = true,
            ("queue", value) => node.recv_queue = value.parse().unwrap(),
            other => panic!("{other:?}"),
        }
    }
    Role::Galera(node)
}

fn group(words: &str) -> Role {
    let mut member = Group {
        is_online: true,
        has_quorum: true,
        ..Group::default()
    };
    for word in words.split(',') {
        match word.split_once(':').unwrap_or((word, "")) {
            ("primary", _) => member.is_primary = true,
            ("secondary", _) => member.read_only = true,
            ("applies", _) => (member.is_primary, member.read_only) = (true, true),
            ("left", _) => (member.is_online, member.read_only) = (false, true),
            ("alone", _) => member.has_quorum = false,
            ("queue", value) => member.queue = value.parse().unwrap(),
            other => panic!("{other:?}"),
        }
    }
    Role::Group(member)
}
