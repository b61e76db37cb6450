//! What is shown is so: variables with and without effect, what a LOAD says of them, a database
//! that was replaced, a core that is silent.

use crate::engine::{Reply, STATS_TIME, View};
use crate::open::{Options, Start};
use crate::said::{Asker, Said};
use crate::testing::{self, Directory};
use bridge::ToCore;
use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

#[test]
fn every_variable_says_whether_it_has_an_effect_and_passwords_are_not_for_everybody() {
    testing::with(Options::default(), |bench| async move {
        let effects = bench
            .rows("SELECT DISTINCT effect FROM stats_millrace_variables ORDER BY 1")
            .await;
        assert_eq!(
            effects,
            [["at LOAD"], ["at the next start"], ["no meaning"]]
        );
        let all = bench
            .rows("SELECT count(*) FROM stats_millrace_variables")
            .await;
        assert_eq!(all, [[config::REGISTRY.len().to_string()]]);
        let sql = "SELECT variable_value FROM stats_millrace_variables WHERE variable_name = 'admin-admin_credentials'";
        assert_eq!(bench.rows(sql).await, [["admin:admin"]]);
        match bench.ask(View::Stats, sql).await {
            Ok(Reply::Rows(grid)) => assert_eq!(grid.texts(), [["***"]]),
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn memory_is_counted_from_what_is_in_force() {
    testing::with(Options::default(), |bench| async move {
        let sql = "SELECT Variable_Name, CAST(Variable_Value AS INT) FROM stats_memory_metrics";
        let before = bench.rows(sql).await;
        assert_eq!(before.len(), 11);
        for sql in [
            "INSERT INTO mysql_users (username, password) VALUES ('somebody', 'secret')",
            "INSERT INTO mysql_query_rules_fast_routing VALUES ('somebody', 'shop', 0, 1, '')",
            "INSERT INTO mysql_firewall_whitelist_users VALUES (1, 'somebody', '', 'OFF', '')",
            "INSERT INTO mysql_firewall_whitelist_rules VALUES (1, 'somebody', '', 'shop', 0, '0x1', '')",
            "LOAD MYSQL USERS TO RUNTIME",
            "LOAD MYSQL QUERY RULES TO RUNTIME",
            "LOAD MYSQL FIREWALL TO RUNTIME",
        ] {
            bench.run(sql).await;
        }
        let after = bench.rows(sql).await;
        let bytes = |row: &[String]| row[1].parse::<u64>().unwrap();
        let grown = before
            .iter()
            .zip(&after)
            .filter(|(before, after)| bytes(before) < bytes(after));
        let grown: Vec<_> = grown.map(|(row, _)| row[0].as_str()).collect();
        for name in [
            "Auth_memory",
            "mysql_firewall_rules_table",
            "mysql_firewall_users_table",
            "mysql_query_rules_memory",
        ] {
            assert!(grown.contains(&name), "{name}: {before:?} {after:?}");
        }
    });
}

#[test]
fn a_statistics_user_asks_for_no_variable_of_an_administrator() {
    testing::with(Options::default(), |bench| async move {
        for name in [
            "admin-admin_credentials",
            "admin-stats_credentials",
            "mysql-monitor_password",
            "mysql-threads",
        ] {
            let asked = format!("SELECT @@{name}");
            assert_eq!(bench.rows(&asked).await.len(), 1, "{name}");
            match bench.ask(View::Stats, &asked).await {
                Ok(Reply::Rows(grid)) => {
                    assert_eq!(grid.texts(), Vec::<Vec<String>>::new(), "{name}")
                }
                other => panic!("{other:?}"),
            }
        }
        match bench.ask(View::Stats, "SELECT @@version_comment").await {
            Ok(Reply::Rows(grid)) => assert_eq!(grid.texts(), [["(ProxySQL Admin Module)"]]),
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn nobody_leaves_a_transaction_that_all_others_are_in() {
    testing::with(Options::default(), |bench| async move {
        for view in [View::Admin, View::Stats] {
            for text in [
                "BEGIN",
                "BEGIN TRANSACTION",
                "begin immediate",
                "SAVEPOINT a",
                "RELEASE a",
                "ROLLBACK TO a",
                "START TRANSACTION WITH CONSISTENT SNAPSHOT",
                "END",
                "COMMIT AND CHAIN",
            ] {
                assert_eq!(bench.ask(view, text).await, Ok(Reply::done()), "{text}");
            }
            for text in [
                "/* x */ BEGIN IMMEDIATE",
                "-- x\nSAVEPOINT a",
                ";BEGIN EXCLUSIVE",
            ] {
                let said = bench.ask(view, text).await;
                assert!(
                    matches!(&said, Err(Said::Sql(words)) if words.contains("stands for itself")),
                    "{text}: {said:?}"
                );
            }
        }
        bench.script("INSERT INTO mysql_servers (hostgroup_id, hostname) VALUES (1, 'a'); SAVE MYSQL SERVERS TO DISK").await;
        assert_eq!(
            bench.rows("SELECT count(*) FROM disk.mysql_servers").await,
            [["1"]]
        );
    });
}

#[test]
fn a_statement_without_an_end_is_ended_and_an_endless_answer_is_refused() {
    testing::with(Options::default(), |bench| async move {
        let forever = "WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c";
        let why = format!("more than {} seconds", STATS_TIME.as_secs());
        for text in [
            forever,
            &format!("SELECT ({forever}) FROM information_schema.schemata"),
        ] {
            let said = bench.ask(View::Stats, text).await;
            assert!(
                matches!(&said, Err(Said::Sql(words)) if words.contains(&why)),
                "{text}: {said:?}"
            );
        }
        // One call of a function is not interrupted.
        let said = bench
            .ask(
                View::Stats,
                "SELECT instr(hex(zeroblob(7000000)), hex(zeroblob(3500000)) || '1')",
            )
            .await;
        assert!(
            matches!(&said, Err(Said::Sql(words)) if words.contains("too big")),
            "{said:?}"
        );
        let endless = "WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT zeroblob(200000) FROM c";
        let said = bench.ask(View::Stats, endless).await;
        assert!(
            matches!(&said, Err(Said::Sql(words)) if words.contains("ask for less at once")),
            "{said:?}"
        );
        assert_eq!(bench.rows("SELECT 1").await, [["1"]]);
    });
}

#[test]
fn a_text_of_a_statistics_user_is_not_long_run_or_only_prepared() {
    testing::with(Options::default(), |bench| async move {
        let long = format!("SELECT '{}'", "x".repeat(300_000));
        for (view, is_fine) in [(View::Stats, false), (View::Admin, true)] {
            let asker = Asker {
                id: 1,
                user: "u".into(),
                host: "h".into(),
                port: 1,
                view,
            };
            let described = bench.shared.describe(&asker, &long);
            assert_eq!(described.is_ok(), is_fine, "{described:?}");
            let said = bench.ask(view, &long).await;
            assert_eq!(said.is_ok(), is_fine);
            if let Err(said) = said {
                assert!(
                    matches!(&said, Said::Sql(words) if words.contains("too long")),
                    "{said:?}"
                );
            }
            // What is no SQL, and blanks that are nothing in the end.
            for begin in ["COMMIT x", "SELECT 1"] {
                let long = format!("{begin}{}", " ".repeat(300_000));
                assert_eq!(
                    bench.shared.describe(&asker, &long).is_ok(),
                    is_fine,
                    "{begin}"
                );
                assert_eq!(bench.ask(view, &long).await.is_ok(), is_fine, "{begin}");
            }
        }
    });
}

#[test]
fn counts_begin_anew_only_when_they_are_read() {
    let resets = Rc::new(Cell::new(0));
    let counted = resets.clone();
    let reports = Box::new(move |_, reset| {
        counted.set(counted.get() + u32::from(reset));
        None
    });
    testing::with_reports(Options::default(), reports, |bench| async move {
        const TABLE: &str = "stats_mysql_query_digest_reset";
        for view in [View::Admin, View::Stats] {
            for only_named in [
                "SHOW CREATE TABLE stats_mysql_query_digest_reset",
                "DESCRIBE stats_mysql_query_digest_reset",
                "SHOW FULL COLUMNS FROM stats_mysql_query_digest_reset",
                "SHOW INDEX FROM stats_mysql_query_digest_reset",
                "SELECT column_name FROM information_schema.columns WHERE table_name = 'stats_mysql_query_digest_reset'",
                "SELECT digest, count_starr FROM stats_mysql_query_digest_reset",
                "SELECT * FROM stats_mysql_query_digest_reset WHERE",
                "EXPLAIN SELECT * FROM stats_mysql_query_digest_reset",
                "EXPLAIN QUERY PLAN SELECT * FROM stats_mysql_query_digest_reset",
                "SELECT 'stats_mysql_query_digest_reset' /* stats_mysql_errors_reset */",
                "SELECT count(*) FROM stats_mysql_query_digest WHERE digest_text LIKE '%stats_mysql_errors_reset%'",
            ] {
                let _answer = bench.ask(view, only_named).await;
                assert_eq!(resets.take(), 0, "{only_named}");
            }
            for reads in [
                format!("SELECT * FROM {TABLE}"),
                format!("SELECT count(*) FROM stats.{TABLE}")
                    .replace(if view == View::Stats { "stats." } else { "" }, ""),
                format!("select 1 from {} limit 1", TABLE.to_ascii_uppercase()),
                format!("WITH a AS (SELECT digest FROM {TABLE}) SELECT * FROM a"),
                format!("SELECT (SELECT sum(count_star) FROM {TABLE})"),
            ] {
                assert!(bench.ask(view, &reads).await.is_ok(), "{reads}");
                assert_eq!(resets.take(), 1, "{reads}");
            }
        }
        bench
            .run(&format!("INSERT INTO scheduler (interval_ms, filename, arg1) VALUES (1000, 'f', 'SELECT * FROM {TABLE}')"))
            .await;
        assert_eq!(resets.take(), 0);
        bench.run("CREATE TABLE mine (a, b UNIQUE)").await;
        bench
            .run(&format!(
                "INSERT INTO mine SELECT digest, count_star FROM {TABLE}"
            ))
            .await;
        assert_eq!(resets.take(), 1);
    });
}

#[test]
fn databases_are_for_their_owner_only_also_those_of_before() {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    let directory = Directory::new("private-databases");
    let old = directory.0.join(crate::engine::DISK_FILE);
    rusqlite::Connection::open(&old)
        .unwrap()
        .execute_batch("CREATE TABLE before (a)")
        .unwrap();
    std::fs::set_permissions(&old, std::fs::Permissions::from_mode(0o664)).unwrap();
    let start = |start| Options {
        datadir: Some(directory.0.clone()),
        start,
        ..Options::default()
    };
    let see = || {
        let all = std::fs::read_dir(&directory.0).unwrap().map(|entry| {
            let entry = entry.unwrap();
            (
                entry.file_name().into_string().unwrap(),
                entry.metadata().unwrap().mode() & 0o777,
            )
        });
        let mut all: Vec<_> = all.collect();
        all.sort();
        assert!(all.iter().all(|(_, mode)| *mode == 0o600), "{all:?}");
        all.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
    };
    testing::with(start(Start::Usual), |bench| async move {
        assert_eq!(
            bench.rows("SELECT count(*) FROM disk.before").await,
            [["0"]]
        );
        bench.run("SAVE MYSQL DIGEST TO DISK").await;
        assert_eq!(
            see(),
            [
                "proxysql.db",
                "proxysql_stats.db",
                "proxysql_stats.db-shm",
                "proxysql_stats.db-wal"
            ]
        );
        // A backup that was put back.
        std::fs::set_permissions(&old, std::fs::Permissions::from_mode(0o644)).unwrap();
        bench.run("PROXYSQL FLUSH CONFIGDB").await;
        see();
        std::fs::set_permissions(&old, std::fs::Permissions::from_mode(0o644)).unwrap();
    });
    drop(crate::Admin::open(&start(Start::Initial)).unwrap());
    assert!(see().contains(&"proxysql.db.bak.1".to_owned()));
}

#[test]
fn a_configuration_is_saved_whole_and_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = Directory::new("save-config");
    let ours = format!(".c.cnf.millrace-{}.tmp", std::process::id());
    let [file, link, beside] = ["c.cnf", "link.cnf", &ours].map(|name| directory.0.join(name));
    std::fs::write(&file, "of before").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    testing::with(Options::default(), |bench| async move {
        // Something is in the way.
        std::fs::create_dir(&beside).unwrap();
        let refused = bench
            .refused(&format!("SAVE CONFIG TO FILE {}", file.display()))
            .await;
        assert!(
            refused.contains("Cannot open file") && refused.contains("exists"),
            "{refused}"
        );
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "of before");
        std::fs::remove_dir(&beside).unwrap();

        std::fs::write(&beside, "left behind by a crash").unwrap();
        bench
            .run(&format!("SAVE CONFIG TO FILE {}", link.display()))
            .await;
        assert!(link.symlink_metadata().unwrap().is_symlink() && !beside.exists());
        assert_eq!(
            std::fs::metadata(&file).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert_eq!(
            bench.rows("SELECT CONFIG FILE").await,
            [[std::fs::read_to_string(&file).unwrap()]]
        );
        let refused = bench
            .refused(&format!("SAVE CONFIG TO FILE {}", directory.0.display()))
            .await;
        assert!(refused.ends_with("it is not a file"), "{refused}");
    });
}

#[test]
fn a_load_says_what_waits_for_a_start() {
    testing::with(Options::default(), |bench| async move {
        bench.run("SET mysql-threads = 7").await;
        let said = bench
            .ask(View::Admin, "LOAD MYSQL VARIABLES TO RUNTIME")
            .await;
        let info = "mysql-threads takes effect at the next start".to_owned();
        assert_eq!(said, Ok(Reply::Done { affected: 0, info }));
        let again = bench
            .ask(View::Admin, "LOAD MYSQL VARIABLES TO RUNTIME")
            .await;
        assert_eq!(again, Ok(Reply::done()));
    });
}

#[test]
fn a_database_that_was_put_back_is_read_after_flush_configdb() {
    let directory = Directory::new("flush-configdb");
    let (file, kept) = (directory.0.join("proxysql.db"), directory.0.join("kept.db"));
    let options = Options {
        datadir: Some(directory.0.clone()),
        ..Options::default()
    };
    testing::with(options, |bench| async move {
        bench.script("INSERT INTO mysql_servers (hostgroup_id, hostname) VALUES (1, 'old'); SAVE MYSQL SERVERS TO DISK").await;
        std::fs::copy(&file, &kept).unwrap();
        bench
            .script("UPDATE mysql_servers SET hostname = 'new'; SAVE MYSQL SERVERS TO DISK")
            .await;
        std::fs::rename(&kept, &file).unwrap();
        bench
            .script("PROXYSQL FLUSH CONFIGDB; LOAD MYSQL SERVERS FROM DISK")
            .await;
        assert_eq!(
            bench.rows("SELECT hostname FROM mysql_servers").await,
            [["old"]]
        );
    });
}

#[test]
fn a_part_is_never_shown_as_the_whole_and_nothing_is_zeroed_for_it() {
    let zeroed = Rc::new(Cell::new(false));
    let seen = zeroed.clone();
    let reports = Box::new(move |_, reset| {
        seen.set(seen.get() || reset);
        None
    });
    testing::with_a_silent_core(reports, |bench| async move {
        let refused = |said: Result<Reply, Said>, words: &str| match said {
            Err(Said::Sql(why)) => assert!(why.contains(words), "{why}"),
            other => panic!("{words} was wanted: {other:?}"),
        };
        for table in [
            "stats_mysql_global",
            "stats_mysql_connection_pool",
            "stats_mysql_query_digest_reset",
            "stats_mysql_processlist",
        ] {
            let said = bench
                .ask(View::Admin, &format!("SELECT * FROM {table}"))
                .await;
            refused(
                said,
                "only 1 of 2 cores have answered within 5 seconds, and a part is not shown as the whole",
            );
        }
        assert!(!zeroed.get(), "one core has zeroed what nobody was told");
        refused(
            bench.ask(View::Admin, "KILL CONNECTION 7").await,
            "only 1 of 2 cores",
        );
        // What is in memory needs no core; what is in force does.
        bench
            .run("INSERT INTO mysql_servers (hostgroup_id, hostname) VALUES (1, 'a')")
            .await;
        refused(
            bench
                .ask(View::Admin, "LOAD MYSQL SERVERS TO RUNTIME")
                .await,
            "only 1 of 2 cores have confirmed",
        );
        assert_eq!(
            bench.rows("SELECT hostname FROM mysql_servers").await,
            [["a"]]
        );
        refused(
            bench
                .ask(View::Admin, "SELECT * FROM runtime_mysql_servers")
                .await,
            "1 of 2 cores have not confirmed",
        );
    });
}

/// Tests a core that is busy with something else, and whose mailbox has room for one letter.
#[test]
fn a_core_that_has_much_to_read_is_told_all_the_same() {
    let two_seconds_later =
        |rt: rt::Rt, unread: rt::mailbox::Receiver<ToCore>| -> Pin<Box<dyn Future<Output = ()>>> {
            Box::pin(async move {
                rt.sleep(Duration::from_secs(2)).await;
                while let Some(message) = unread.recv().await {
                    if let ToCore::Load { done, .. } = message {
                        done(());
                    }
                }
            })
        };
    testing::with_a_second_core(
        1,
        two_seconds_later,
        Box::new(|_, _| None),
        |bench| async move {
            bench.run("PROXYSQL PAUSE").await;
            bench
                .run("INSERT INTO mysql_servers (hostgroup_id, hostname) VALUES (1, 'a')")
                .await;
            bench.run("LOAD MYSQL SERVERS TO RUNTIME").await;
            bench.run("PROXYSQL RESUME").await;
            assert!(
                bench
                    .refused("PROXYSQL RESUME")
                    .await
                    .contains("is not paused")
            );
        },
    );
}

#[test]
fn a_core_that_cannot_be_told_is_not_said_to_come_to_it() {
    let never =
        |_: rt::Rt, unread: rt::mailbox::Receiver<ToCore>| -> Pin<Box<dyn Future<Output = ()>>> {
            Box::pin(async move {
                std::future::pending::<()>().await;
                drop(unread);
            })
        };
    testing::with_a_second_core(1, never, Box::new(|_, _| None), |bench| async move {
        let refused = bench.refused("LOAD MYSQL USERS TO RUNTIME").await;
        assert!(
            refused.ends_with("the others work by an older one until they come to it"),
            "{refused}"
        );
        let refused = bench.refused("LOAD MYSQL USERS TO RUNTIME").await;
        assert!(
            refused.ends_with(
                "1 could not even be told, and work by an older one until it is loaded again"
            ),
            "{refused}"
        );
        // One core is closed now: that can be said again, and taken back.
        for text in [
            "PROXYSQL PAUSE",
            "PROXYSQL PAUSE",
            "PROXYSQL RESUME",
            "PROXYSQL RESUME",
        ] {
            assert_eq!(
                bench.refused(text).await,
                "1 of 2 cores could not be told; try again",
                "{text}"
            );
        }
    });
}

#[test]
fn what_an_operator_takes_out_of_a_runtime_table_is_back_when_it_is_read_again() {
    testing::with(Options::default(), |bench| async move {
        bench
            .script("INSERT INTO mysql_users (username, password) VALUES ('a', ''), ('b', ''); LOAD MYSQL USERS TO RUNTIME")
            .await;
        let users = "SELECT DISTINCT username FROM runtime_mysql_users ORDER BY 1";
        assert_eq!(bench.rows(users).await, [["a"], ["b"]]);
        bench.run("DELETE FROM runtime_mysql_users").await;
        assert_eq!(bench.rows(users).await, [["a"], ["b"]]);
        assert!(
            !bench
                .rows("DELETE FROM runtime_mysql_users WHERE username = 'a' RETURNING 1")
                .await
                .is_empty()
        );
        assert_eq!(bench.rows(users).await, [["a"], ["b"]]);
        bench
            .refused("UPDATE OR FAIL runtime_mysql_users SET username = 'c', backend = 1")
            .await;
        assert_eq!(bench.rows(users).await, [["a"], ["b"]]);
    });
}

#[test]
fn graphical_tools_get_an_answer_to_what_they_ask_first() {
    testing::with(Options::default(), |bench| async move {
        for view in [View::Admin, View::Stats] {
            for (sql, rows) in [
                ("SHOW SESSION STATUS LIKE 'Ssl_cipher'", 0),
                ("SHOW /*!50002 GLOBAL */ STATUS LIKE 'Questions'", 1),
                ("SHOW ENGINES", 1),
                ("SHOW GRANTS", 1),
                ("SHOW PRIVILEGES", 0),
                ("SHOW PROCEDURE STATUS", 0),
                ("SHOW FUNCTION STATUS WHERE Db = 'main'", 0),
                ("SHOW WARNINGS", 0),
                ("SHOW REPLICA STATUS", 0),
                (
                    "SHOW FULL TABLES FROM `main` LIKE 'stats\\_mysql\\_user%'",
                    usize::from(view == View::Stats),
                ),
                (
                    "SHOW TABLE STATUS FROM stats_history LIKE 'history_mysql_query_digest'",
                    1,
                ),
                ("SHOW KEYS FROM stats_mysql_users", 1),
                ("DESCRIBE stats_mysql_users", 3),
                ("SELECT 1 FROM DUAL", 1),
            ] {
                match bench.ask(view, sql).await {
                    Ok(Reply::Rows(grid)) => {
                        assert_eq!(grid.len(), rows, "{sql}: {:?}", grid.texts())
                    }
                    other => panic!("{sql}: {other:?}"),
                }
            }
        }
        let dual = bench
            .rows("SELECT name FROM main.sqlite_master WHERE name = 'dual' COLLATE NOCASE")
            .await;
        assert!(dual.is_empty(), "{dual:?}");
    });
}
