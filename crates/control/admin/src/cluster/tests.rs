//! What other proxies are told, as they and operators see it on the admin port.

use super::decide::{Kin, Sum, Verdict};
use super::knowledge::uuid;
use super::peer::{self, Met, Peer};
use super::pieces;
use super::subjects::{At, MILLRACE, SUBJECTS, at};
use super::sums;
use crate::engine::View;
use crate::open::Options;
use crate::tables::Module;
use crate::testing::{self, Bench, Directory};
use config::{Snapshot, Variables};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

async fn sums_of(bench: &Bench) -> Vec<Vec<String>> {
    bench
        .rows("SELECT name, version, epoch, checksum FROM runtime_checksums_values ORDER BY name")
        .await
}

async fn of(bench: &Bench, name: &str) -> (u64, u64, String) {
    let rows = sums_of(bench).await;
    let row = rows.iter().find(|row| row[0] == name).unwrap();
    (
        row[1].parse().unwrap(),
        row[2].parse().unwrap(),
        row[3].clone(),
    )
}

/// Another proxy has answered, with these.
fn meets(bench: &Bench, host: &str, sums: &[(Module, Sum)]) -> Rc<Peer> {
    let peer = Rc::new(Peer::new(config::ProxyRow {
        hostname: host.into(),
        port: 6032,
        ..config::ProxyRow::default()
    }));
    for (module, sum) in sums {
        peer.known.borrow_mut().seen[at(*module).unwrap()].sum = *sum;
    }
    peer.meets(Met::Another);
    bench.shared.cluster.peers.borrow_mut().push(peer.clone());
    peer
}

#[test]
fn what_is_loaded_before_another_proxy_has_answered_is_for_nobody_else() {
    testing::with(Options::default(), |bench| async move {
        let load = async |name: &str| {
            bench.script(&format!("INSERT INTO mysql_users (username) VALUES ('{name}'); LOAD MYSQL USERS TO RUNTIME")).await;
            of(&bench, "mysql_users").await
        };
        let (first, second) = (load("a").await, load("b").await);
        assert_eq!([first.0, second.0], [1, 1]);
        assert!(
            second.1 > first.1 && second.2 != first.2,
            "{first:?} {second:?}"
        );
        // Somebody who has loaded other users long ago: they are about to come.
        let theirs = Sum {
            version: 7,
            epoch: 1_700_000_000,
            checksum: 171,
        };
        let peer = meets(&bench, "b", &[(Module::Users, theirs)]);
        assert_eq!(load("c").await.0, 1);
        let at = at(Module::Users).unwrap();
        assert_eq!(
            bench
                .shared
                .cluster
                .verdict(at, (theirs, None), 9, &Variables::default()),
            Verdict::Pull
        );
        // Once both have the same, what is edited here is an edit of theirs.
        peer.known.borrow_mut().seen[at].sum.checksum =
            sums::number(&of(&bench, "mysql_users").await.2).unwrap();
        let edited = load("d").await;
        assert!(edited.0 == 2 && edited.1 > theirs.epoch, "{edited:?}");
        // What nobody has loaded may be loaded here for all.
        bench.run("LOAD MYSQL SERVERS TO RUNTIME").await;
        assert_eq!(of(&bench, "mysql_servers").await.0, 2);
    });
}

#[test]
fn a_checksum_that_was_being_made_over_a_load_is_not_the_loaded_ones() {
    testing::with(Options::default(), |bench| async move {
        let (cluster, at) = (&bench.shared.cluster, at(Module::ProxysqlServers).unwrap());
        let (before, under_way) = (of(&bench, "proxysql_servers").await, 171);
        let load = "INSERT INTO proxysql_servers (hostname) VALUES ('other'); LOAD PROXYSQL SERVERS TO RUNTIME";
        bench.script(load).await;
        let began = cluster.unsettled(at).unwrap();
        bench.script(&load.replace("other", "third")).await;
        cluster.settle(at, began, under_way);
        let after = of(&bench, "proxysql_servers").await;
        assert_eq!([before.0, after.0], [1, 1], "for nobody else");
        assert_ne!(after.2, sums::text(under_way));
    });
}

#[test]
fn one_that_asks_nobody_else_gives_to_who_asks_it() {
    testing::with(Options::default(), |bench| async move {
        let load = "LOAD PROXYSQL SERVERS TO RUNTIME";
        let row = "INSERT INTO proxysql_servers (hostname, port) VALUES";
        bench.script(&format!("{row} ('me', 6032); {load}")).await;
        assert_eq!(of(&bench, "proxysql_servers").await.0, 1);
        meets(&bench, "me", &[]).meets(Met::Itself);
        // A list that names others, too, is for nobody else before they have answered.
        bench
            .script(&format!("{row} ('other', 6032); {load}"))
            .await;
        assert_eq!(of(&bench, "proxysql_servers").await.0, 1);
        bench
            .script(&format!("DELETE FROM proxysql_servers WHERE hostname = 'other'; {load}; LOAD MYSQL USERS TO RUNTIME"))
            .await;
        assert_eq!(of(&bench, "proxysql_servers").await.0, 2);
        assert_eq!(of(&bench, "mysql_users").await.0, 2);
    });
}

/// Takes over what has been in force of a module, as if another proxy had loaded it since.
async fn takes_over(bench: &Bench, module: Module, snapshot: &Snapshot) {
    let (at, peer) = (
        at(module).unwrap(),
        Peer::new(config::ProxyRow {
            hostname: "b".into(),
            port: 6032,
            ..Default::default()
        }),
    );
    let checksum = sums::checksum(module, snapshot, &|| ());
    let sum = Sum {
        version: 9,
        epoch: of(bench, SUBJECTS[at].name).await.1 + 1,
        checksum,
    };
    let pieces = pieces::pieces(module, snapshot, &|| ());
    bench
        .shared
        .take_over(&SUBJECTS[at], at, (sum, None), pieces, &peer)
        .await
        .unwrap();
    assert_eq!(of(bench, SUBJECTS[at].name).await.2, sums::text(checksum));
}

#[test]
fn a_load_of_what_was_taken_over_under_an_edit_is_refused_once() {
    testing::with(Options::default(), |bench| async move {
        bench
            .script("SET admin-cluster_username = 'c'; LOAD ADMIN VARIABLES TO RUNTIME")
            .await;
        bench
            .script("INSERT INTO mysql_users (username) VALUES ('x'); LOAD MYSQL USERS TO RUNTIME")
            .await;
        let theirs = bench.shared.snapshot.borrow().clone();
        let users = async || {
            bench
                .rows("SELECT DISTINCT username FROM runtime_mysql_users ORDER BY 1")
                .await
                .concat()
                .join(",")
        };
        let load = "LOAD MYSQL USERS TO RUNTIME";
        bench
            .script(&format!(
                "INSERT INTO mysql_users (username) VALUES ('y'); {load}"
            ))
            .await;
        // Who had not edited it is not held up.
        takes_over(&bench, Module::Users, &theirs).await;
        bench
            .script(&format!(
                "INSERT INTO mysql_users (username) VALUES ('z'); {load}"
            ))
            .await;
        assert_eq!(users().await, "x,z");
        // Of an edit in two statements, the first is gone.
        for edit in [
            "INSERT INTO mysql_users (username) VALUES ('early')",
            "/* disk */ update\nMAIN.MYSQL_USERS set comment = 'early'",
            "DELETE FROM mysql_users",
            "LOAD MYSQL USERS FROM DISK",
        ] {
            bench.run(edit).await;
            takes_over(&bench, Module::Users, &theirs).await;
            bench
                .run("INSERT INTO mysql_users (username) VALUES ('late')")
                .await;
            let words = bench.refused(load).await;
            let told = "mysql_users was taken over from b:6032 0 s ago, and what had been edited here before that, and not loaded, is gone";
            assert!(words.contains(told), "{edit}: {words}");
            assert_eq!(users().await, "x", "{edit}");
            bench.run(load).await;
            assert_eq!(users().await, "late,x", "{edit}");
        }
        // What is not of the module, or of another layer, is no edit of it; and what was seen to be
        // gone is known.
        for harmless in [
            "INSERT INTO mysql_servers (hostgroup_id, hostname) VALUES (1, 'h')",
            "DELETE FROM disk.mysql_users",
            "DELETE FROM mysql_users WHERE username = 'nobody'",
            "SET mysql-threads = 3",
            "INSERT INTO mysql_users (username) VALUES ('y'); SAVE MYSQL USERS FROM RUNTIME",
        ] {
            bench.script(harmless).await;
            takes_over(&bench, Module::Users, &theirs).await;
            bench.run(load).await;
        }
        bench.run("SET mysql-max_connections = 77").await;
        let theirs = bench.shared.snapshot.borrow().clone();
        bench.run("SET mysql-multiplexing = 'false'; ").await;
        bench
            .script("SET mysql-max_transaction_time = 5000; LOAD MYSQL VARIABLES TO RUNTIME; SET mysql-max_connections = 78")
            .await;
        takes_over(&bench, Module::MysqlVariables, &theirs).await;
        bench.refused("LOAD MYSQL VARIABLES TO RUNTIME").await;
        bench.run("LOAD MYSQL VARIABLES TO RUNTIME").await;
    });
}

#[test]
fn what_is_only_tried_in_memory_is_not_saved_with_what_was_taken_over() {
    let directory = Directory::new("cluster-saves");
    let options = Options {
        datadir: Some(directory.0.clone()),
        ..Options::default()
    };
    testing::with(options, |bench| async move {
        bench.script("SET admin-cluster_username = 'c'; LOAD ADMIN VARIABLES TO RUNTIME; SAVE MYSQL VARIABLES TO DISK").await;
        bench.script("SET mysql-max_connections = 77; LOAD MYSQL VARIABLES TO RUNTIME; LOAD MYSQL SERVERS TO RUNTIME").await;
        let theirs = bench.shared.snapshot.borrow().clone();
        bench.script("SET mysql-max_connections = 78; LOAD MYSQL VARIABLES TO RUNTIME; SAVE MYSQL SERVERS TO DISK").await;
        bench.script("INSERT INTO mysql_servers (hostgroup_id, hostname) VALUES (1, 'h'); LOAD MYSQL SERVERS TO RUNTIME").await;
        let saved = async |name: &str| {
            let sql = format!(
                "SELECT variable_value FROM disk.global_variables WHERE variable_name = '{name}'"
            );
            bench.rows(&sql).await.concat().concat()
        };
        let threads = saved("mysql-threads").await;
        bench.script("SET mysql-threads = 9").await;
        takes_over(&bench, Module::MysqlVariables, &theirs).await;
        assert_eq!(saved("mysql-threads").await, threads);
        assert_eq!(saved("mysql-max_connections").await, "77");
        assert_eq!(bench.rows("SELECT @@mysql-threads").await, [["9"]]);
        bench
            .run("INSERT INTO disk.mysql_servers (hostgroup_id, hostname) VALUES (1, 'old')")
            .await;
        takes_over(&bench, Module::Servers, &theirs).await;
        assert_eq!(
            bench.rows("SELECT COUNT(*) FROM disk.mysql_servers").await,
            [["0"]]
        );
        let marks = "SELECT name, version FROM disk.saved_checksums_values WHERE name IN ('mysql_servers', 'mysql_variables') ORDER BY 1";
        assert!(
            bench.rows(marks).await.iter().all(|row| row[1] != "1"),
            "{:?}",
            bench.rows(marks).await
        );
    });
}

#[test]
fn one_that_drips_keeps_nobody_elses_away() {
    testing::with_a_silent_core(Box::new(|_, _| None), |bench| async move {
        let (sum, newer) = (
            Sum {
                version: 2,
                epoch: 5,
                checksum: 171,
            },
            Sum {
                version: 2,
                epoch: 6,
                checksum: 172,
            },
        );
        let slow = meets(
            &bench,
            "slow",
            &[(Module::Users, newer), (Module::Rules, sum)],
        );
        let other = meets(
            &bench,
            "other",
            &[(Module::Users, sum), (Module::Rules, sum)],
        );
        let [users, rules] = [Module::Users, Module::Rules].map(|module| at(module).unwrap());
        let waits = || {
            (
                bench.shared.is_newer_elsewhere(users, sum),
                bench.shared.comes_from_another(&other, rules, sum),
            )
        };
        assert_eq!(waits(), (true, false));
        let since = bench.shared.rt.now();
        for wanted in [true, false] {
            slow.known.borrow_mut().pulling = Some((rules, since));
            assert_eq!(waits(), (true, wanted));
            slow.known.borrow_mut().pulling = Some((users, since));
            assert_eq!(waits(), (wanted, false));
            let _later = bench
                .shared
                .rt
                .timeout(Duration::from_secs(30), std::future::pending::<()>())
                .await;
        }
    });
}

#[test]
fn modules_come_in_the_order_in_which_they_were_loaded() {
    testing::with(Options::default(), |bench| async move {
        let order = |epochs: [u64; SUBJECTS.len()]| {
            let sum = |at: At| Sum {
                version: 2,
                epoch: epochs[at],
                checksum: 1,
            };
            let mut all: Vec<At> = (0..SUBJECTS.len()).collect();
            all.sort_by_key(|at| bench.shared.cluster.turn(*at, sum(*at)));
            all.into_iter()
                .map(|at| SUBJECTS[at].name)
                .collect::<Vec<_>>()
        };
        let started = SUBJECTS.map(|subject| subject.name);
        assert_eq!(
            order([10, 9, 8, 7, 6, 5, 4, 3]),
            started,
            "what was only started: servers before the rules that name them"
        );
        assert!(started[..2] == ["mysql_servers", "mysql_query_rules"]);
        meets(&bench, "b", &[]);
        bench
            .script("LOAD MYSQL SERVERS TO RUNTIME; LOAD MYSQL QUERY RULES TO RUNTIME")
            .await;
        for (epochs, wanted) in [([5, 4], [1, 0]), ([4, 5], [0, 1]), ([4, 4], [0, 1])] {
            let got = order([epochs[0], epochs[1], 1, 1, 1, 1, 1, 1]);
            assert_eq!(got[6..], wanted.map(|at| SUBJECTS[at].name), "{epochs:?}");
        }
    });
}

#[test]
fn every_load_has_a_version_and_an_epoch_of_its_own_and_the_same_rows_the_same_checksum() {
    testing::with(Options::default(), |bench| async move {
        meets(&bench, "b", &[]);
        let names: Vec<_> = sums_of(&bench)
            .await
            .into_iter()
            .map(|row| row[0].clone())
            .collect();
        let mut wanted: Vec<_> = SUBJECTS.iter().map(|subject| subject.name).collect();
        wanted.sort_unstable();
        assert_eq!(names, wanted);
        let (version, epoch, checksum) = of(&bench, "mysql_query_rules").await;
        assert_eq!((version, checksum.as_str()), (1, "0x0"));
        let global = bench.rows("SELECT GLOBAL_CHECKSUM()").await;
        let fast = "INSERT INTO mysql_query_rules_fast_routing VALUES ('u', 's', 0, 1, '')";
        bench
            .script(&format!("{fast}; LOAD MYSQL QUERY RULES TO RUNTIME"))
            .await;
        let loaded = of(&bench, "mysql_query_rules").await;
        assert!(
            loaded.0 == 2 && loaded.1 > epoch && loaded.2 != "0x0",
            "{loaded:?}"
        );
        assert_ne!(bench.rows("SELECT GLOBAL_CHECKSUM()").await, global);
        bench.run("LOAD MYSQL QUERY RULES TO RUNTIME").await;
        let again = of(&bench, "mysql_query_rules").await;
        assert!(
            again.0 == 3 && again.1 > loaded.1 && again.2 == loaded.2,
            "{again:?}"
        );
        let before = of(&bench, "mysql_users").await;
        bench.script("INSERT INTO mysql_users (username) VALUES ('a'), ('b'); LOAD MYSQL USER a TO RUNTIME").await;
        let one = of(&bench, "mysql_users").await;
        bench.run("LOAD MYSQL USERS TO RUNTIME").await;
        let both = of(&bench, "mysql_users").await;
        assert_eq!([before.0, one.0, both.0], [1, 2, 3]);
        assert!(before.2 != one.2 && one.2 != both.2);
        // What is refused is no LOAD.
        bench
            .run(
                "INSERT INTO mysql_query_rules (rule_id, active, match_pattern) VALUES (1, 1, '(')",
            )
            .await;
        bench.refused("LOAD MYSQL QUERY RULES TO RUNTIME").await;
        assert_eq!(of(&bench, "mysql_query_rules").await, again);
    });
}

#[test]
fn a_module_without_checksum_is_not_given() {
    testing::with(Options::default(), |bench| async move {
        bench
            .script("SET admin-checksum_mysql_users = false; LOAD ADMIN VARIABLES TO RUNTIME")
            .await;
        assert_eq!(of(&bench, "mysql_users").await, (0, 0, String::new()));
        assert!(
            bench
                .refused("PROXYSQL CLUSTER_PULL mysql_users")
                .await
                .contains("is not shared")
        );
        assert!(
            bench
                .refused("PROXYSQL CLUSTER_PULL nosuch")
                .await
                .contains("is nothing that proxies share")
        );
        bench
            .script("SET admin-checksum_mysql_users = true; LOAD ADMIN VARIABLES TO RUNTIME")
            .await;
        assert_eq!(of(&bench, "mysql_users").await.0, 1);
        let given = bench.rows("PROXYSQL CLUSTER_PULL mysql_variables").await;
        assert!(
            given.len() > 1 && given[0][1].starts_with("1 "),
            "{:?}",
            given[0]
        );
    });
}

#[test]
fn what_was_saved_as_it_is_in_force_goes_on_behind_a_start() {
    let directory = Directory::new("cluster");
    let options = Options {
        datadir: Some(directory.0.clone()),
        ..Options::default()
    };
    let kept = Rc::new(RefCell::new((0, 0, String::new())));
    let keep = kept.clone();
    testing::with(options.clone(), |bench| async move {
        meets(&bench, "b", &[]);
        // Of a proxy that is alone nothing is kept.
        bench
            .script("SET admin-cluster_username = 'c'; LOAD ADMIN VARIABLES TO RUNTIME")
            .await;
        bench.script("INSERT INTO proxysql_servers (hostname) VALUES ('b'); LOAD PROXYSQL SERVERS TO RUNTIME").await;
        assert_eq!(
            bench
                .rows("SELECT hostname, port FROM runtime_proxysql_servers")
                .await,
            [["b", "6032"]]
        );
        bench
            .script(
                "SAVE PROXYSQL SERVERS TO DISK; INSERT INTO mysql_users (username) VALUES ('a')",
            )
            .await;
        // Saved and not loaded: what the next start finds is nobody's.
        bench
            .script(
                "LOAD MYSQL USERS TO RUNTIME; DELETE FROM mysql_users; SAVE MYSQL USERS TO DISK",
            )
            .await;
        assert!(of(&bench, "mysql_users").await.1 >= of(&bench, "proxysql_servers").await.1);
        keep.replace(of(&bench, "proxysql_servers").await);
    });
    testing::with(options, |bench| async move {
        assert_eq!(of(&bench, "proxysql_servers").await, *kept.borrow());
        assert_eq!(kept.borrow().0, 2);
        assert_eq!(of(&bench, "mysql_users").await.0, 1);
        // What they had before is not taken over by itself, and an edit here is newer than that.
        let users = at(Module::Users).unwrap();
        let past = Sum {
            version: 9,
            epoch: kept.borrow().1,
            checksum: 171,
        };
        let verdict = || {
            bench
                .shared
                .cluster
                .verdict(users, (past, None), 9, &Variables::default())
        };
        assert_eq!(verdict(), Verdict::Past);
        bench.run("LOAD MYSQL USERS TO RUNTIME").await;
        assert_eq!(of(&bench, "mysql_users").await.0, 2);
        assert_eq!(verdict(), Verdict::Ours);
        assert_eq!(
            bench.rows("SELECT hostname FROM proxysql_servers").await,
            [["b"]]
        );
        bench.script("DELETE FROM proxysql_servers; LOAD PROXYSQL SERVERS TO RUNTIME; SAVE PROXYSQL SERVERS FROM RUNTIME").await;
        assert!(
            bench
                .rows("SELECT * FROM runtime_proxysql_servers")
                .await
                .is_empty()
        );
    });
}

#[test]
fn proxies_that_ask_are_shown_and_statistics_users_cannot_ask() {
    testing::with(Options::default(), |bench| async move {
        let name = uuid(u64::MAX, 0);
        assert_eq!(name, "ffffffff-ffff-4fff-8000-000000000000");
        for _ in 0..2 {
            bench
                .run(&format!("PROXYSQL CLUSTER_NODE_UUID {name} 127.0.0.1:6032"))
                .await;
        }
        let seen = "SELECT uuid, hostname, port, admin_mysql_ifaces, last_seen_at > 1000000 FROM stats_proxysql_servers_clients_status";
        assert_eq!(
            bench.rows(seen).await,
            [[name.as_str(), "127.0.0.1", "1", "127.0.0.1:6032", "1"]]
        );
        assert!(
            bench
                .ask(View::Stats, "PROXYSQL CLUSTER_PULL mysql_users")
                .await
                .is_err()
        );
        assert!(
            bench
                .ask(View::Stats, &format!("PROXYSQL CLUSTER_NODE_UUID {name}"))
                .await
                .is_err()
        );
        // Checksums are made of passwords, which can be tried.
        assert!(
            bench
                .ask(View::Admin, "SELECT GLOBAL_CHECKSUM()")
                .await
                .is_ok()
        );
        assert!(
            bench
                .ask(View::Stats, "SELECT GLOBAL_CHECKSUM()")
                .await
                .is_err()
        );
        meets(
            &bench,
            "b",
            &[(
                Module::Users,
                Sum {
                    version: 2,
                    epoch: 5,
                    checksum: 171,
                },
            )],
        );
        let checksums =
            "SELECT checksum FROM stats_proxysql_servers_checksums WHERE name = 'mysql_users'";
        for (view, wanted) in [(View::Stats, ""), (View::Admin, "0x00000000000000AB")] {
            let Ok(crate::engine::Reply::Rows(grid)) = bench.ask(view, checksums).await else {
                panic!()
            };
            assert_eq!(
                grid.rows().next().unwrap()[0],
                Some(wanted.as_bytes()),
                "{view:?}"
            );
        }
        bench.shared.cluster.peers.borrow_mut().clear();
        assert_eq!(bench.rows("SELECT @@millrace_version").await, [[MILLRACE]]);
        for table in ["checksums", "metrics", "status"] {
            assert!(
                bench
                    .rows(&format!("SELECT * FROM stats_proxysql_servers_{table}"))
                    .await
                    .is_empty()
            );
        }
        let counted = "SELECT Variable_Value FROM stats_mysql_global WHERE Variable_Name LIKE 'Millrace_cluster%'";
        assert_eq!(bench.rows(counted).await, vec![["0"]; 4]);
    });
}

#[test]
fn a_load_says_what_other_proxies_would_not_find() {
    testing::with(Options::default(), |bench| async move {
        let told = async |sql: &str| match bench.ask(View::Admin, sql).await {
            Ok(crate::engine::Reply::Done { info, .. }) => info,
            other => panic!("{other:?}"),
        };
        bench
            .run("INSERT INTO proxysql_servers (hostname) VALUES ('b')")
            .await;
        assert_eq!(
            told("LOAD PROXYSQL SERVERS TO RUNTIME").await,
            "admin-cluster_username is empty: no other proxy is asked for anything"
        );
        bench
            .script("SET admin-cluster_username = 'c'; SET admin-cluster_password = 'hush'")
            .await;
        let words = told("LOAD ADMIN VARIABLES TO RUNTIME").await;
        assert!(
            words.starts_with(
                "admin-cluster_username is 'c', and admin-admin_credentials does not have"
            ),
            "{words}"
        );
        assert!(!words.contains("hush"));
        bench
            .run("SET admin-admin_credentials = 'admin:admin;c:hush'")
            .await;
        let words = told("LOAD ADMIN VARIABLES TO RUNTIME").await;
        assert!(
            words.starts_with("no other proxy has answered yet: this is for nobody else"),
            "{words}"
        );
        let behind = meets(
            &bench,
            "b",
            &[(
                Module::AdminVariables,
                Sum {
                    version: 2,
                    epoch: 5,
                    checksum: 5,
                },
            )],
        );
        let words = told("LOAD ADMIN VARIABLES TO RUNTIME").await;
        assert!(
            words.starts_with(
                "b:6032 has loaded another one, which is about to be taken over: this is for"
            ),
            "{words}"
        );
        *behind.known.borrow_mut() = peer::Known::default();
        assert_eq!(told("LOAD ADMIN VARIABLES TO RUNTIME").await, "");
        bench
            .run("INSERT INTO proxysql_servers (hostname, port) VALUES ('c', 0)")
            .await;
        assert!(
            bench
                .refused("LOAD PROXYSQL SERVERS TO RUNTIME")
                .await
                .contains("port must be from 1 to 65535")
        );
    });
}

#[test]
fn of_two_that_differ_one_may_be_known_to_come_from_the_other() {
    testing::with(Options::default(), |bench| async move {
        let at = at(Module::Users).unwrap();
        let load = async |name: &str| {
            bench.script(&format!("INSERT INTO mysql_users (username) VALUES ('{name}'); LOAD MYSQL USERS TO RUNTIME")).await;
            bench.shared.settle().await.unwrap();
            bench.shared.cluster.sum(at, &Variables::default())
        };
        let (first, second) = (load("a").await, load("b").await);
        let kin = |theirs: Sum, had: Option<u64>| bench.shared.cluster.kin(at, theirs, had);
        let other = Sum {
            checksum: 171,
            ..second
        };
        assert_eq!(kin(first, None), Kin::Ours, "what we had they have still");
        assert_eq!(
            kin(other, Some(second.checksum)),
            Kin::Theirs,
            "they had what we have"
        );
        for (theirs, had) in [
            (other, None),
            (other, Some(first.checksum)),
            (first, Some(second.checksum)),
        ] {
            assert_eq!(kin(theirs, had), Kin::Unknown);
        }
        // One that nobody has asked for is nobody's.
        bench.run("LOAD MYSQL USERS TO RUNTIME").await;
        assert_eq!(
            bench.shared.cluster.sum(at, &Variables::default()),
            Sum::default()
        );
        assert_eq!(kin(other, None), Kin::Unknown);
    });
}
