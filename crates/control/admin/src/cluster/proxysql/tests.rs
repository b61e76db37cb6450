//! What ProxySQLs are told, and what is made of what they tell.

use super::facts::{self, Dialect};
use super::form::{self, Form, Speech};
use super::{answer, hash, text};
use crate::cluster::decide::{Sum, Verdict};
use crate::cluster::peer::{Met, Peer};
use crate::cluster::subjects::at;
use crate::engine::{Reply, View};
use crate::open::Options;
use crate::said::Said;
use crate::tables::Module;
use crate::testing::{self, Bench};
use line::Rows;
use std::collections::BTreeMap;
use std::rc::Rc;

const VERSION: &str = "2.7.3-12-g50b7f85";

fn speech(dialect: Dialect, variables: &[(&str, &str)]) -> Speech {
    let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    Speech {
        version: VERSION.into(),
        dialect,
        variables: Rc::new(variables.iter().map(pair).collect::<BTreeMap<_, _>>()),
    }
}

fn rows(all: &[&[&str]]) -> Rows {
    let cell = |text: &&str| (*text != "NULL").then(|| text.as_bytes().to_vec());
    all.iter()
        .map(|row| row.iter().map(cell).collect())
        .collect()
}

/// A ProxySQL has answered.
fn meets(bench: &Bench) -> Rc<Peer> {
    let peer = Rc::new(Peer::new(config::ProxyRow {
        hostname: "p".into(),
        port: 6032,
        ..config::ProxyRow::default()
    }));
    peer.speaks_proxysql.set(true);
    peer.meets(Met::Another);
    bench.shared.cluster.peers.borrow_mut().push(peer.clone());
    peer
}

/// The user of these tests is that of the cluster.
async fn begin(bench: &Bench) {
    bench
        .script("SET admin-cluster_username = 'admin'; LOAD ADMIN VARIABLES TO RUNTIME")
        .await;
}

async fn cells(bench: &Bench, sql: &str) -> Rows {
    match bench.ask(View::Admin, sql).await {
        Ok(Reply::Rows(grid)) => grid
            .rows()
            .map(|row| {
                row.into_iter()
                    .map(|cell| cell.map(<[u8]>::to_vec))
                    .collect()
            })
            .collect(),
        other => panic!("{sql}: {other:?}"),
    }
}

/// Version, epoch and checksum that are announced of a module.
async fn told(bench: &Bench, name: &str) -> (u64, u64, String) {
    let all = bench
        .rows("SELECT * FROM runtime_checksums_values ORDER BY name")
        .await;
    let row = all.iter().find(|row| row[0] == name).unwrap();
    let number = |at: usize| row[at].parse().unwrap();
    (number(1), number(2), row[3].clone())
}

/// Fetches a module as a ProxySQL does, and makes the checksum of what came.
async fn fetched(bench: &Bench, dialect: Dialect, module: Module) -> Form {
    let mut results = Vec::new();
    for asked in dialect.asked(module) {
        results.push(cells(bench, &asked.text()).await);
    }
    Form::of(module, results)
}

/// Takes over what a ProxySQL would give.
async fn takes(bench: &Bench, peer: &Peer, module: Module, results: Vec<Rows>) -> Result<(), Said> {
    let at = at(module).unwrap();
    let form = Form::of(module, results);
    let sum = Sum {
        version: 5,
        epoch: 2_000_000_000 + bench.shared.cluster.serial(at).unwrap(),
        checksum: form.checksum,
    };
    peer.known.borrow_mut().seen[at].sum = sum;
    bench.shared.take_form(peer, at, (sum, None), form).await
}

const EVERYTHING: &str = "
    INSERT INTO mysql_servers (hostgroup_id, hostname, port, status) VALUES
        (10, 'b', 3306, 'ONLINE'), (9, 'z', 3306, 'SHUNNED'), (10, 'a', 3307, 'OFFLINE_SOFT'), (10, 'a', 3306, 'OFFLINE_HARD');
    INSERT INTO mysql_replication_hostgroups VALUES (10, 20, 'read_only', 'pair');
    INSERT INTO mysql_galera_hostgroups (writer_hostgroup, backup_writer_hostgroup, reader_hostgroup, offline_hostgroup, active) VALUES (30, 31, 32, 33, 1);
    INSERT INTO mysql_hostgroup_attributes (hostgroup_id, comment) VALUES (10, 'it''s');
    LOAD MYSQL SERVERS TO RUNTIME;
    INSERT INTO mysql_users (username, password, comment) VALUES ('b', 'x', 'ä'), ('a', 'y', '');
    INSERT INTO mysql_users (username, active) VALUES ('gone', 0);
    LOAD MYSQL USERS TO RUNTIME;
    INSERT INTO mysql_query_rules (rule_id, active, match_digest, destination_hostgroup, apply) VALUES (20, 1, '^SELECT', 10, 1), (3, 1, '^INSERT', 10, 1), (4, 0, '^UPDATE', 10, 1);
    INSERT INTO mysql_query_rules_fast_routing VALUES ('u', 'b', 0, 10, ''), ('u', 'a', 10, 10, ''), ('u', 'a', 2, 10, '');
    INSERT INTO mysql_query_rewrite (rewrite_id, active, pattern, replacement) VALUES (1, 1, 'SELECT ?', 'SELECT ?');
    LOAD MYSQL QUERY RULES TO RUNTIME;
    INSERT INTO proxysql_servers (hostname, port, comment) VALUES ('192.168.0.12', 6032, 'proxysql_node2'), ('192.168.0.11', 6032, 'proxysql_node1');
    LOAD PROXYSQL SERVERS TO RUNTIME";

#[test]
fn what_is_fetched_has_the_checksum_that_was_announced() {
    testing::with(Options::default(), |bench| async move {
        begin(&bench).await;
        assert_ne!(bench.rows("SELECT @@version").await, [[VERSION]]);
        assert!(
            bench
                .refused("PROXY_SELECT 1 FROM t")
                .await
                .contains("syntax")
        );
        let known = [
            ("mysql-monitor_username", "theirs"),
            ("mysql-threads", "4"),
            ("mysql-of_tomorrow", "yes"),
            ("admin-version", VERSION),
            ("admin-web_port", "6080"),
            ("admin-refresh_interval", "1"),
        ];
        bench
            .shared
            .cluster
            .proxysql
            .learn(speech(Dialect::Late, &known));
        bench.script(EVERYTHING).await;
        assert_eq!(bench.rows("SELECT @@version").await, [[VERSION]]);
        let all = bench
            .rows("SELECT * FROM runtime_checksums_values ORDER BY name")
            .await;
        let names: Vec<_> = all.iter().map(|row| &*row[0]).collect();
        assert_eq!(names, answer::IN_ALL);
        for (name, module) in [
            ("admin_variables", Module::AdminVariables),
            ("mysql_query_rules", Module::Rules),
            ("mysql_servers_v2", Module::Servers),
            ("mysql_users", Module::Users),
            ("mysql_variables", Module::MysqlVariables),
            ("proxysql_servers", Module::ProxysqlServers),
        ] {
            let form = fetched(&bench, Dialect::Late, module).await;
            assert_eq!(text(form.checksum), told(&bench, name).await.2, "{name}");
            assert_ne!(form.checksum, 0, "{name}");
        }
        // The known value, see docs/features/proxysql-cluster.md.
        assert_eq!(
            told(&bench, "proxysql_servers").await.2,
            "0xEB7F779029A89859"
        );
        let placed = cells(&bench, &facts::RUNTIME_SERVERS.text()).await;
        assert_eq!(
            text(hash::of_rows(&placed)),
            told(&bench, "mysql_servers").await.2
        );
        assert_eq!(
            placed
                .iter()
                .map(|row| row[0..5].concat_texts())
                .collect::<Vec<_>>(),
            [
                "9 z 3306 0 ONLINE",
                "10 a 3307 0 OFFLINE_SOFT",
                "10 b 3306 0 ONLINE"
            ]
        );
        let variables = fetched(&bench, Dialect::Late, Module::MysqlVariables).await;
        let names = form::pairs(&variables.results[0]);
        assert_eq!(
            names.into_keys().collect::<Vec<_>>(),
            ["mysql-monitor_username", "mysql-of_tomorrow"]
        );
        let admin = form::pairs(
            &fetched(&bench, Dialect::Late, Module::AdminVariables)
                .await
                .results[0],
        );
        assert_eq!(admin["admin-version"], VERSION);
        assert_eq!(admin["admin-refresh_interval"], "2000");
        let before = bench.rows("SELECT GLOBAL_CHECKSUM()").await;
        bench
            .script("DELETE FROM mysql_users WHERE username = 'a'; LOAD MYSQL USERS TO RUNTIME")
            .await;
        assert_ne!(bench.rows("SELECT GLOBAL_CHECKSUM()").await, before);
    });
}

trait Texts {
    fn concat_texts(&self) -> String;
}

impl Texts for [Option<Vec<u8>>] {
    fn concat_texts(&self) -> String {
        let text =
            |cell: &Option<Vec<u8>>| String::from_utf8(cell.clone().unwrap_or_default()).unwrap();
        self.iter().map(text).collect::<Vec<_>>().join(" ")
    }
}

#[test]
fn what_only_millraces_know_is_in_no_form_and_other_users_get_none() {
    testing::with(Options::default(), |bench| async move {
        begin(&bench).await;
        bench
            .shared
            .cluster
            .proxysql
            .learn(speech(Dialect::Late, &[]));
        bench.script(EVERYTHING).await;
        bench.rows("SELECT @@version").await;
        let before = told(&bench, "mysql_query_rules").await;
        bench
            .script("DELETE FROM mysql_query_rewrite; LOAD MYSQL QUERY RULES TO RUNTIME")
            .await;
        let after = told(&bench, "mysql_query_rules").await;
        assert!(
            after.2 == before.2 && after.1 > before.1,
            "{before:?} {after:?}"
        );
        // Nobody has said which variables there are.
        assert_eq!(told(&bench, "mysql_variables").await, (0, 0, String::new()));
        let strange = "PROXY_SELECT a FROM runtime_mysql_of_tomorrow";
        assert!(bench.refused(strange).await.contains(VERSION));
        bench
            .script("SET admin-cluster_username = 'other'; LOAD ADMIN VARIABLES TO RUNTIME")
            .await;
        assert_ne!(bench.rows("SELECT @@version").await, [[VERSION]]);
        let names = bench
            .rows("SELECT name FROM runtime_checksums_values WHERE name = 'mysql_servers_v2'")
            .await;
        assert!(names.is_empty());
    });
}

#[test]
fn a_version_that_an_operator_names_is_spoken_without_a_peer() {
    testing::with(Options::default(), |bench| async move {
        begin(&bench).await;
        let set = "SET admin-cluster_proxysql_version = '2.5.5-10-g195bd70'; LOAD ADMIN VARIABLES TO RUNTIME";
        bench.script(set).await;
        bench.script(EVERYTHING).await;
        assert_eq!(
            bench.rows("SELECT @@version").await,
            [["2.5.5-10-g195bd70"]]
        );
        for wrong in ["8.0.36", "2.4.8-1-g2222222", "newest"] {
            bench
                .run(&format!("SET admin-cluster_proxysql_version = '{wrong}'"))
                .await;
            let words = bench.refused("LOAD ADMIN VARIABLES TO RUNTIME").await;
            assert!(words.contains("on a ProxySQL from 2.5 to 3.0"), "{words}");
        }
        let form = fetched(&bench, Dialect::Early, Module::Servers).await;
        assert_eq!(text(form.checksum), told(&bench, "mysql_servers").await.2);
        let all = bench
            .rows("SELECT * FROM runtime_checksums_values ORDER BY name")
            .await;
        assert!(
            all.iter().all(|row| row[0] != "mysql_servers_v2"),
            "{all:?}"
        );
    });
}

#[test]
fn what_came_keeps_its_form_until_the_next_load() {
    testing::with(Options::default(), |bench| async move {
        begin(&bench).await;
        let learnt = speech(
            Dialect::Late,
            &[
                ("mysql-max_connections", "2048"),
                ("mysql-of_tomorrow", "no"),
            ],
        );
        bench.shared.cluster.proxysql.learn(learnt);
        let peer = meets(&bench);
        bench.script(EVERYTHING).await;
        bench.rows("SELECT @@version").await;
        #[rustfmt::skip]
        let rule: &[&str] = &[
            "7", "NULL", "NULL", "0", "NULL", "NULL", "NULL", "0x1a2b", "NULL", "NULL", "0", "caseless", "NULL", "NULL", "3", "NULL", "NULL", "NULL",
            "NULL", "NULL", "NULL", "NULL", "NULL", "NULL", "NULL", "NULL", "NULL", "NULL", "NULL", "NULL", "NULL", "1", "", "theirs",
        ];
        let results = vec![rows(&[rule]), rows(&[&["u", "s", "0", "3", "c"]])];
        takes(&bench, &peer, Module::Rules, results.clone())
            .await
            .unwrap();
        let shown =
            "SELECT rule_id, active, destination_hostgroup, comment FROM runtime_mysql_query_rules";
        assert_eq!(bench.rows(shown).await, [["7", "1", "3", "theirs"]]);
        assert_eq!(
            bench
                .rows("SELECT COUNT(*) FROM runtime_mysql_query_rewrite")
                .await,
            [["1"]]
        );
        let form = fetched(&bench, Dialect::Late, Module::Rules).await;
        assert_eq!(form.results, results);
        let (version, epoch, checksum) = told(&bench, "mysql_query_rules").await;
        assert_eq!(checksum, text(form.checksum));
        assert!(version > 1 && epoch > 2_000_000_000, "{version} {epoch}");
        // Both have the same now, and what is loaded here is newer.
        let at = at(Module::Rules).unwrap();
        let verdict = |bench: &Bench| {
            let variables = bench.shared.snapshot.borrow().variables.clone();
            let sum = peer.seen(at).sum;
            bench
                .shared
                .cluster
                .verdict_on(&peer, at, (sum, None), 9, &variables)
        };
        assert_eq!(verdict(&bench), Verdict::Same);
        bench
            .script(
                "UPDATE mysql_query_rules SET comment = 'ours'; LOAD MYSQL QUERY RULES TO RUNTIME",
            )
            .await;
        assert_ne!(told(&bench, "mysql_query_rules").await.2, checksum);
        assert_eq!(verdict(&bench), Verdict::Ours);
        // A value that means nothing here passes through.
        let variables = vec![rows(&[
            &["mysql-max_connections", "77"],
            &["mysql-of_tomorrow", "perhaps"],
        ])];
        takes(&bench, &peer, Module::MysqlVariables, variables)
            .await
            .unwrap();
        assert_eq!(bench.rows("SELECT @@mysql-max_connections").await, [["77"]]);
        bench
            .script("SET mysql-max_connections = 78; LOAD MYSQL VARIABLES TO RUNTIME")
            .await;
        let form = fetched(&bench, Dialect::Late, Module::MysqlVariables).await;
        assert_eq!(
            form.results,
            [rows(&[
                &["mysql-max_connections", "78"],
                &["mysql-of_tomorrow", "perhaps"]
            ])]
        );
    });
}

#[test]
fn what_is_refused_leaves_nothing() {
    testing::with(Options::default(), |bench| async move {
        begin(&bench).await;
        bench
            .shared
            .cluster
            .proxysql
            .learn(speech(Dialect::Late, &[]));
        let peer = meets(&bench);
        bench.script(EVERYTHING).await;
        bench.rows("SELECT @@version").await;
        let before = told(&bench, "mysql_servers_v2").await;
        let server = |port: &'static str| -> Vec<&'static str> {
            vec![
                "1", "h", port, "0", "ONLINE", "1", "0", "100", "0", "0", "0", "",
            ]
        };
        let none = || vec![Rows::new(); 6];
        for (port, words) in [("what", "no row of this version"), ("70000", "port")] {
            let results = [vec![rows(&[&server("3306"), &server(port)])], none()].concat();
            let refused = takes(&bench, &peer, Module::Servers, results).await;
            let said = refused.unwrap_err().words();
            assert!(said.contains(words), "{said}");
            assert_eq!(told(&bench, "mysql_servers_v2").await, before);
            assert_eq!(
                bench
                    .rows("SELECT COUNT(*) FROM mysql_servers WHERE hostname = 'h'")
                    .await,
                [["0"]]
            );
        }
        let results = [vec![rows(&[&server("3306")])], none()].concat();
        takes(&bench, &peer, Module::Servers, results)
            .await
            .unwrap();
        assert_eq!(
            bench
                .rows("SELECT hostname FROM runtime_mysql_servers")
                .await,
            [["h"]]
        );
        assert_eq!(
            bench
                .rows("SELECT COUNT(*) FROM runtime_mysql_galera_hostgroups")
                .await,
            [["0"]]
        );
    });
}

#[test]
fn of_a_2_5_come_no_servers_that_its_monitor_moves_and_no_columns_are_lost() {
    testing::with(Options::default(), |bench| async move {
        begin(&bench).await;
        bench
            .shared
            .cluster
            .proxysql
            .learn(speech(Dialect::Early, &[]));
        let peer = meets(&bench);
        bench
            .script(
                "INSERT INTO mysql_servers (hostgroup_id, hostname) VALUES (10, 'w'), (5, 'gone');
                 INSERT INTO mysql_replication_hostgroups VALUES (10, 20, 'read_only', '');
                 INSERT INTO mysql_servers_ssl_params (hostname) VALUES ('w');
                 INSERT INTO mysql_hostgroup_attributes (hostgroup_id, hostgroup_settings) VALUES (5, '{\"max_connections\": 7}');
                 LOAD MYSQL SERVERS TO RUNTIME",
            )
            .await;
        let server = |hostgroup: &'static str, host: &'static str| -> Vec<&'static str> {
            vec![
                hostgroup, host, "3306", "0", "ONLINE", "1", "0", "100", "0", "0", "0", "",
            ]
        };
        let results = vec![
            rows(&[&server("5", "n"), &server("20", "w")]),
            rows(&[&["10", "20", "read_only", ""]]),
            Rows::new(),
            Rows::new(),
            Rows::new(),
            rows(&[&[
                "5", "1000000", "-1", "10", "", "1", "1", "1000000", "", "theirs",
            ]]),
        ];
        takes(&bench, &peer, Module::Servers, results)
            .await
            .unwrap();
        let shown = "SELECT hostgroup_id, hostname FROM mysql_servers ORDER BY 1";
        assert_eq!(bench.rows(shown).await, [["5", "n"], ["10", "w"]]);
        let shown = "SELECT hostgroup_settings, comment FROM runtime_mysql_hostgroup_attributes";
        assert_eq!(
            bench.rows(shown).await,
            [["{\"max_connections\": 7}", "theirs"]]
        );
        assert_eq!(
            bench
                .rows("SELECT hostname FROM runtime_mysql_servers_ssl_params")
                .await,
            [["w"]]
        );
    });
}

#[test]
fn a_load_of_servers_names_who_mixes_them_with_what_monitors_move() {
    testing::with(Options::default(), |bench| async move {
        begin(&bench).await;
        let peer = meets(&bench);
        for (algorithm, is_told) in [(Some("1"), true), (Some("2"), false), (None, false)] {
            *peer.algorithm.borrow_mut() = algorithm.map(str::to_owned);
            let words = bench.shared.told_algorithm();
            assert_eq!(words.is_some(), is_told, "{algorithm:?} {words:?}");
        }
        *peer.algorithm.borrow_mut() = Some("3".to_owned());
        match bench
            .ask(View::Admin, "LOAD MYSQL SERVERS TO RUNTIME")
            .await
        {
            Ok(Reply::Done { info, .. }) => assert!(
                info.contains("p:6032: set admin-cluster_mysql_servers_sync_algorithm to 2 there"),
                "{info}"
            ),
            other => panic!("{other:?}"),
        }
        match bench.ask(View::Admin, "LOAD MYSQL USERS TO RUNTIME").await {
            Ok(Reply::Done { info, .. }) => assert!(!info.contains("algorithm"), "{info}"),
            other => panic!("{other:?}"),
        }
    });
}
