//! ProxySQL's names, types and labels, compared with what is written.

use crate::families::{Families, Format};
use crate::shown;
use bridge::{
    AskerFacts, Check, Counts, Done, ErrorRow, Facts, FleetFacts, GtidRow, HeldFacts, MessageRow,
    ModuleFacts, PeerFacts, PoolRow, ServerState, ShareFacts,
};
use config::Snapshot;
use std::collections::{BTreeMap, BTreeSet};

const PROXYSQL: &str = include_str!("../tests/proxysql.txt");

fn all() -> String {
    let mut all = Families::default();
    shown::counts(&mut all, &Counts::zero());
    shown::pool(
        &mut all,
        &[PoolRow {
            hostgroup: 1,
            host: "db".into(),
            port: 3306,
            state: ServerState::Shunned,
            used: 1,
            free: 2,
            ok: 3,
            err: 4,
            used_max: 5,
            queries: 6,
            queries_gtid_sync: 7,
            bytes_sent: 8,
            bytes_received: 9,
            latency_us: 10,
        }],
    );
    shown::errors(
        &mut all,
        &["a", "b"].map(|user| ErrorRow {
            hostgroup: 1,
            host: "db".into(),
            port: 3306,
            user: user.into(),
            client_address: "".into(),
            schema: "s".into(),
            errno: 1064,
            count: 2,
            first_seen: 1,
            last_seen: 1,
            last_error: "".into(),
        }),
    );
    let gtids = GtidRow {
        host: "db".into(),
        port: 3306,
        executed: None,
        events: 1,
    };
    shown::gtids(&mut all, &[gtids]);
    shown::messages(
        &mut all,
        &[MessageRow {
            id: "00017".into(),
            thread: "core".into(),
            form: "session # has ended".into(),
            times: 3,
            first_s: 1,
            last_s: 2,
        }],
    );
    shown::monitor(
        &mut all,
        &Done {
            checks: [[1, 2]; Check::ALL.len()],
            names_looked_up: 5,
            names_found: 4,
            names_changed: 3,
        },
    );
    let facts = Facts {
        peers: vec![PeerFacts {
            hostname: "proxy2".into(),
            port: 6032,
            queries: 7,
            modules: vec![ModuleFacts {
                name: "mysql_users",
                looks: 3,
                ..ModuleFacts::default()
            }],
            ..PeerFacts::default()
        }],
        askers: vec![AskerFacts {
            uuid: "u".into(),
            seen_s: 9,
            ..AskerFacts::default()
        }],
        fleet: Some(FleetFacts {
            silent_s: 0,
            modules: vec![HeldFacts {
                proxy: "shop1:6032".into(),
                module: "mysql_users",
                state: "behind".into(),
                generation: 4,
                truth: 5,
                ..HeldFacts::default()
            }],
            shares: [true, false]
                .map(|is_own| ShareFacts {
                    what: "user app".into(),
                    is_own,
                    budget: 30,
                    share: 10,
                    ..ShareFacts::default()
                })
                .to_vec(),
        }),
        ..Facts::default()
    };
    shown::process(&mut all, (1, 0), &Snapshot::default(), &facts);
    shown::peers(&mut all, &facts);
    shown::fleet(&mut all, &facts);
    all.write(Format::Text)
}

/// Family → its type, and the names of its samples' labels.
fn families(text: &str) -> BTreeMap<&str, (&str, BTreeSet<String>)> {
    let mut found: BTreeMap<&str, (&str, BTreeSet<String>)> = BTreeMap::new();
    for line in text.lines() {
        if let Some(typed) = line.strip_prefix("# TYPE ") {
            let (name, word) = typed.split_once(' ').unwrap();
            found.insert(name, (word, BTreeSet::new()));
        } else if !line.starts_with('#') {
            let (sample, _) = line.rsplit_once(' ').unwrap();
            let (name, labels) = sample.split_once('{').unwrap_or((sample, ""));
            let labels = labels.trim_end_matches('}').split("\",");
            let mut names: Vec<_> = labels
                .filter_map(|one| Some(one.split_once('=')?.0))
                .collect();
            names.sort_unstable();
            let (_, labels) = found.get_mut(name).unwrap();
            labels.insert(names.join(","));
        }
    }
    found
}

#[test]
fn proxysql_s_metrics_have_its_names_types_and_labels() {
    let text = all();
    let mut found = families(&text);
    for line in PROXYSQL.lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split(' ');
        let (word, name) = (words.next().unwrap(), words.next().unwrap());
        let labels = BTreeSet::from([words.next().unwrap_or("").to_owned()]);
        let wanted = (word != "absent").then_some((word, labels));
        assert_eq!(found.remove(name), wanted, "{name}");
    }
    let others: Vec<_> = found
        .into_keys()
        .filter(|name| !name.starts_with("millrace_"))
        .collect();
    assert!(others.is_empty(), "neither ProxySQL's nor ours: {others:?}");
}

#[test]
fn a_server_s_numbers_are_those_of_its_row() {
    let text = all();
    let has = |line: &str| assert!(text.lines().any(|one| one == line), "{line}\n{text}");
    has(r#"proxysql_connpool_conns{hostgroup="1",endpoint="db:3306",status="used"} 1"#);
    has(r#"proxysql_connpool_conns{hostgroup="1",endpoint="db:3306",status="free"} 2"#);
    has(r#"proxysql_connpool_conns_status{hostgroup="1",endpoint="db:3306"} 2"#);
    has(r#"mysql_error_total{hostgroup="1",address="db",port="3306",code="1064"} 4"#);
    has(r#"proxysql_mysql_monitor_ping_check_total{status="err"} 2"#);
    has("proxysql_mysql_monitor_dns_cache_lookup_success 4");
    has(r#"proxysql_servers_metrics_queries{hostname="proxy2",port="6032"} 7"#);
    has(
        r#"proxysql_servers_checksums_diff_check{hostname="proxy2",port="6032",name="mysql_users"} 3"#,
    );
    has(r#"millrace_fleet_module{proxy="shop1:6032",module="mysql_users",state="behind"} 1"#);
    has(r#"millrace_fleet_truth{proxy="shop1:6032",module="mysql_users"} 5"#);
    has("millrace_fleet_store_silent_seconds 0");
    // Each proxy tells of its own part.
    has(r#"millrace_share{what="user app"} 10"#);
}
