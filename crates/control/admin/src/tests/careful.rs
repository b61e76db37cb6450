//! What an operator says with a slip, and files that are not as they should be: nothing is lost by
//! it.

use crate::engine::{DISK_FILE, Engine, Reply, View};
use crate::open::{Admin, Options};
use crate::said::{Asker, Said};
use crate::testing::{self, Directory};
use bridge::{Ask, CommandRow, HostgroupRow, Latency, Report};
use rusqlite::types::Value;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn a_comment_behind_a_value_hides_no_condition() {
    testing::with(Options::default(), |bench| async move {
        let others = "SELECT * FROM global_variables WHERE variable_name <> 'mysql-max_connections' ORDER BY 1";
        let before = bench.rows(others).await;
        for (text, value) in [
            ("SET mysql-max_connections=101 -- note", "101"),
            ("SET mysql-max_connections=102 /* note */", "102"),
            ("SET mysql-max_connections=103; -- note", "103"),
            ("SET mysql-max_connections='104' -- it's a note", "104"),
            ("SET mysql-max_connections=-5", "-5"),
        ] {
            assert_eq!(bench.run(text).await, 1, "{text}");
            let now = bench.rows("SELECT variable_value FROM global_variables WHERE variable_name='mysql-max_connections'").await;
            assert_eq!(now, [[value]], "{text}");
            assert_eq!(bench.rows(others).await, before, "{text}");
        }
        for text in [
            "SET mysql-max_connections=105 /* note",
            "SET mysql-max_connections=106) /* note",
            "SET mysql-max_connections='107",
            "SET mysql-max_connections=108) WHERE (1",
        ] {
            bench.refused(text).await;
            let now =
                bench.rows("SELECT DISTINCT variable_value FROM global_variables WHERE variable_name='mysql-max_connections'");
            assert_eq!(now.await, [["-5"]], "{text}");
            assert_eq!(bench.rows(others).await, before, "{text}");
        }
    });
}

#[test]
fn what_is_asked_of_information_schema_may_be_prepared_and_is_one_statement() {
    testing::with(Options::default(), |bench| async move {
        let sql = "SELECT count(*) FROM information_schema.tables WHERE table_schema = ? AND table_name = ?";
        for view in [View::Admin, View::Stats] {
            let asker = Asker {
                id: 1,
                user: "u".into(),
                host: "h".into(),
                port: 1,
                view,
            };
            assert_eq!(
                bench.shared.describe(&asker, sql),
                Ok((2, vec!["count(*)".into()]))
            );
            assert_eq!(
                bench.shared.describe(&asker, "SELECT USER()"),
                Ok((0, vec!["user()".into()]))
            );
            let name = if view == View::Admin {
                "mysql_servers"
            } else {
                "stats_mysql_global"
            };
            let values = ["main", name].map(|text| Value::Text(text.into()));
            match bench
                .shared
                .answer(&asker, sql, &values)
                .await
                .map(|answered| answered.reply)
            {
                Ok(Reply::Rows(grid)) => assert_eq!(grid.texts(), [["1"]]),
                other => panic!("{other:?}"),
            }
            let without = bench
                .shared
                .answer(&asker, sql, &[])
                .await
                .map(|answered| answered.reply);
            assert!(
                matches!(&without, Err(Said::Sql(words)) if words.contains("needed 2")),
                "{without:?}"
            );
            let text = "SELECT count(*) > 5 FROM information_schema.tables; PRAGMA query_only=0; DELETE FROM nowhere";
            match bench.ask(view, text).await {
                Ok(Reply::Rows(grid)) => assert_eq!(grid.texts(), [["1"]]),
                other => panic!("{other:?}"),
            }
        }
        let like =
            "SELECT count(*) FROM stats_mysql_query_digest WHERE digest_text LIKE '%from mysql.%'";
        assert_eq!(bench.rows(like).await, [["0"]]);
    });
}

#[test]
fn a_database_that_cannot_be_opened_anew_leaves_the_one_of_before() {
    let directory = Directory::new("reopen");
    let engine = Engine::open(Some(&directory.0), View::Admin).unwrap();
    let count = || match engine.run("SELECT count(*) FROM disk.mysql_users", &[]) {
        Ok(Reply::Rows(grid)) => grid.texts(),
        other => panic!("{other:?}"),
    };
    let [file, aside] = [DISK_FILE, "aside"].map(|name| directory.0.join(name));
    std::fs::rename(&file, &aside).unwrap();
    std::fs::write(
        &file,
        "this is no database, and long enough to be none: ".repeat(100),
    )
    .unwrap();
    for _ in 0..2 {
        assert!(
            engine
                .reopen_disk()
                .unwrap_err()
                .0
                .contains("not a database")
        );
        assert_eq!(count(), [["0"]], "the file of before");
    }
    std::fs::rename(&aside, &file).unwrap();
    engine.reopen_disk().unwrap();
    assert_eq!(count(), [["0"]]);
}

/// A database that another version has written is read by the names of its columns, and can be written again.
#[test]
fn a_database_of_another_version_is_brought_up() {
    let directory = Directory::new("brought-up");
    let options = Options {
        datadir: Some(directory.0.clone()),
        ..Options::default()
    };
    testing::with(options.clone(), |bench| async move {
        bench
            .script(
                "INSERT INTO mysql_servers (hostname, max_latency_ms) VALUES ('a', 7); SAVE MYSQL SERVERS TO DISK; \
                 INSERT INTO mysql_users (username) VALUES ('u'); SAVE MYSQL USERS TO DISK; \
                 INSERT INTO mysql_query_rules (rule_id) VALUES (3); SAVE MYSQL QUERY RULES TO DISK",
            )
            .await;
    });
    let file = directory.0.join(DISK_FILE);
    rusqlite::Connection::open(&file)
        .unwrap()
        .execute_batch(
            "ALTER TABLE mysql_servers DROP COLUMN max_latency_ms; DROP TABLE scheduler; \
             ALTER TABLE mysql_users ADD COLUMN mood VARCHAR NOT NULL DEFAULT 'calm'; \
             ALTER TABLE mysql_query_rules ADD COLUMN mood VARCHAR; UPDATE mysql_query_rules SET mood = 'bad'",
        )
        .unwrap();
    let admin = Admin::open(&options).unwrap();
    let notices: Vec<_> = admin.notices().iter().map(ToString::to_string).collect();
    let wanted = "proxysql.db is of a newer version: this one does not know mysql_query_rules (mood), and keeps the table beside as it was";
    assert_eq!(notices, [wanted]);
    drop(admin);
    testing::with(options, |bench| async move {
        bench
            .script("INSERT INTO mysql_servers (hostname, max_latency_ms) VALUES ('b', 8); SAVE MYSQL SERVERS TO DISK")
            .await;
        for (sql, wanted) in [
            (
                "SELECT hostname, max_latency_ms FROM disk.mysql_servers ORDER BY 1",
                &[["a", "0"], ["b", "8"]][..],
            ),
            (
                "SELECT username, active FROM disk.mysql_users",
                &[["u", "1"]],
            ),
            (
                "SELECT rule_id, mood FROM disk.mysql_query_rules_of_another_version",
                &[["3", "bad"]],
            ),
            (
                "SELECT rule_id, active FROM mysql_query_rules",
                &[["3", "0"]],
            ),
        ] {
            assert_eq!(bench.rows(sql).await, wanted, "{sql}");
        }
    });
}

/// Rules that an older version has taken are in force after an update, also if a LOAD would take
/// them no more.
#[test]
fn a_saved_replacement_that_nobody_can_parse_takes_no_rule_with_it() {
    let directory = Directory::new("unparsed");
    let options = Options {
        datadir: Some(directory.0.clone()),
        ..Options::default()
    };
    testing::with(options.clone(), |bench| async move {
        bench.script(
            "INSERT INTO mysql_query_rules (rule_id, active, match_digest, destination_hostgroup, apply) VALUES (1, 1, 'x', 1, 1);
             INSERT INTO mysql_query_rewrite (rewrite_id, active, pattern, replacement) VALUES (1, 1, 'SELECT a FROM t', 'SELECT FROM WHERE');
             SAVE MYSQL QUERY RULES TO DISK",
        )
        .await;
    });
    let admin = Admin::open(&options).unwrap();
    assert_eq!(
        (
            admin.snapshot().rules.rows().count(),
            admin.snapshot().rewrites.rows().count()
        ),
        (1, 1)
    );
    assert!(admin.snapshot().variables.mysql_query_rewrite_check);
    assert!(
        admin
            .notices()
            .iter()
            .any(|notice| notice.to_string().contains("a LOAD would be refused")),
        "{:?}",
        admin.notices()
    );
}

#[test]
fn a_variable_that_was_saved_with_a_value_it_cannot_have_takes_no_other_with_it() {
    let directory = Directory::new("unusable");
    let options = Options {
        datadir: Some(directory.0.clone()),
        ..Options::default()
    };
    testing::with(options.clone(), |bench| async move {
        bench
            .script("SET mysql-max_connections=77; SET admin-admin_credentials='radmin:x'")
            .await;
        bench.script("SET mysql-threads='four'; SET mysql-firewall_whitelist_enabled='yess'; SET admin-read_only='x'").await;
        for (save, begins) in [
            (
                "SAVE MYSQL VARIABLES TO DISK",
                "saved, but not in force after a start: mysql-firewall_whitelist_enabled must be true or false; 'yess' is not",
            ),
            (
                "SAVE ADMIN VARIABLES TO DISK",
                "saved, but not in force after a start: admin-read_only",
            ),
            ("SAVE MYSQL USERS TO DISK", ""),
        ] {
            match bench.ask(View::Admin, save).await {
                Ok(Reply::Done { info, .. }) => {
                    assert!(
                        info.starts_with(begins) && info.is_empty() == begins.is_empty(),
                        "{info}"
                    );
                    assert_eq!(
                        info.contains("mysql-threads"),
                        save.contains("MYSQL V"),
                        "{info}"
                    );
                }
                other => panic!("{other:?}"),
            }
        }
    });
    let admin = Admin::open(&options).unwrap();
    let variables = &admin.snapshot().variables;
    assert_eq!(
        (variables.mysql_max_connections, variables.mysql_threads),
        (77, 4)
    );
    assert_eq!(&*variables.admin_admin_credentials, "radmin:x");
    assert!(
        variables.mysql_firewall_whitelist_enabled,
        "it may have been on"
    );
    assert!(!variables.admin_read_only);
    let refused: Vec<_> = admin.refused().iter().map(ToString::to_string).collect();
    assert_eq!(refused.len(), 3, "{refused:?}");
    assert!(
        refused
            .iter()
            .any(|words| words.ends_with("'yess' is not; until then it is true")),
        "{refused:?}"
    );
}

/// Starts with what `script` has saved. Returns where operators connect, who may come in, and what
/// is said about it.
fn saved_access(name: &str, script: &'static str) -> (Admin, Vec<String>) {
    let directory = Directory::new(name);
    let options = Options {
        datadir: Some(directory.0.clone()),
        ..Options::default()
    };
    testing::with(options.clone(), |bench| async move {
        bench.script(script).await;
        match bench.ask(View::Admin, "SAVE ADMIN VARIABLES TO DISK").await {
            Ok(Reply::Done { info, .. }) => assert!(
                info.starts_with("saved, but not in force after a start: admin-"),
                "{info}"
            ),
            other => panic!("{other:?}"),
        }
    });
    let admin = Admin::open(&options).unwrap();
    let refused = admin.refused().iter().map(ToString::to_string).collect();
    (admin, refused)
}

#[test]
fn saved_credentials_that_name_nobody_are_not_replaced_by_known_ones() {
    for (name, nobody) in [
        ("nobody-empty", "SET admin-admin_credentials=''"),
        (
            "nobody-root",
            "SET admin-admin_credentials='root'; SET admin-mysql_ifaces='0.0.0.0:6032'",
        ),
        ("nobody-utf8", "SET admin-admin_credentials=x'726f6f743aff'"),
    ] {
        let (admin, refused) = saved_access(name, nobody);
        let peer = "127.0.0.1:1".parse().unwrap();
        assert!(
            matches!(
                crate::access::entry(&admin.snapshot().variables, "admin", &peer),
                door::Entry::Nobody
            ),
            "{name}"
        );
        assert!(
            refused
                .iter()
                .any(|words| words.starts_with("admin-admin_credentials")),
            "{refused:?}"
        );
    }
}

#[test]
fn a_start_with_reload_says_again_who_may_come_in() {
    let directory = Directory::new("nobody-reload");
    let options = Options {
        datadir: Some(directory.0.clone()),
        ..Options::default()
    };
    testing::with(options.clone(), |bench| async move {
        bench
            .script("SET admin-admin_credentials='root'; SAVE ADMIN VARIABLES TO DISK")
            .await;
    });
    let config = directory.0.join("proxysql.cnf");
    std::fs::write(
        &config,
        "admin_variables={ admin_credentials=\"root:new\" }",
    )
    .unwrap();
    let options = Options {
        config: Some(config),
        start: crate::open::Start::Reload,
        ..options
    };
    let admin = Admin::open(&options).unwrap();
    assert_eq!(
        &*admin.snapshot().variables.admin_admin_credentials,
        "root:new"
    );
}

#[test]
fn a_saved_value_that_is_no_text_takes_no_other_with_it() {
    let directory = Directory::new("no-text");
    let options = Options {
        datadir: Some(directory.0.clone()),
        ..Options::default()
    };
    testing::with(options.clone(), |bench| async move {
        bench.script("SET mysql-max_connections=77; SET mysql-monitor_password=x'70e4'; SAVE MYSQL VARIABLES TO DISK").await;
        assert!(
            bench
                .refused("LOAD MYSQL VARIABLES TO RUNTIME")
                .await
                .contains("mysql-monitor_password must be a text in UTF-8")
        );
    });
    let admin = Admin::open(&options).unwrap();
    assert_eq!(admin.snapshot().variables.mysql_max_connections, 77);
    assert_eq!(admin.refused().len(), 1, "{:?}", admin.refused());
}

#[test]
fn answers_to_statistics_users_that_nobody_reads_have_a_bound_together() {
    testing::with(Options::default(), |bench| async move {
        let large = "WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 250) SELECT zeroblob(200000) FROM c";
        let asked = |view| bench.ask(view, large);
        assert!(asked(View::Stats).await.is_ok());
        let unread = bench.shared.hold(View::Stats, 100 << 20);
        let refused = asked(View::Stats).await.unwrap_err();
        assert!(
            matches!(&refused, Said::Sql(words) if words.ends_with("or when others have read theirs")),
            "{refused:?}"
        );
        assert!(asked(View::Admin).await.is_ok());
        let more = bench.shared.hold(View::Stats, 100 << 20);
        assert!(
            bench.ask(View::Stats, "SELECT 1").await.is_ok(),
            "a small one has no bound but its own"
        );
        drop((unread, more));
        assert!(asked(View::Stats).await.is_ok());
    });
}

#[test]
fn a_large_answer_is_not_refused_to_a_statistics_user_after_it_has_zeroed_what_it_reads() {
    testing::with(Options::default(), |bench| async move {
        let large = |table| {
            let sql = format!(
                "WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 400) \
                 SELECT zeroblob(200000), (SELECT count(*) FROM {table}) FROM c"
            );
            let bench = &bench;
            async move { bench.ask(View::Stats, &sql).await }
        };
        let refused = large("stats_mysql_query_digest").await.unwrap_err();
        assert!(
            matches!(&refused, Said::Sql(words) if words.starts_with("the answer has more than 67108864 bytes")),
            "{refused:?}"
        );
        assert!(large("stats_mysql_query_digest_reset").await.is_ok());
        let _unread = bench.shared.hold(View::Stats, 128 << 20);
        assert!(
            large("STATS_mysql_query_digest_reset").await.is_ok(),
            "also while others have not read theirs"
        );
        let _more = bench.shared.hold(View::Stats, 384 << 20);
        let refused = large("stats_mysql_query_digest_reset").await.unwrap_err();
        assert!(
            matches!(&refused, Said::Sql(words) if words.ends_with("or when others have read theirs")),
            "{refused:?}"
        );
    });
}

#[test]
fn digests_that_cannot_be_kept_now_are_kept_later() {
    let given = Cell::new(0);
    let reports = Box::new(move |what, reset| {
        let n = given.get() + u64::from(reset);
        given.set(n);
        matches!(what, Ask::Digests)
            .then(|| Report::Digests(vec![testing::digest_row("u", "", n, "SELECT ?")]))
    });
    testing::with_reports(Options::default(), reports, |bench| async move {
        let keep = "SAVE MYSQL DIGEST TO DISK";
        let run = |sql: &str| {
            bench
                .shared
                .engine
                .borrow()
                .conn()
                .execute_batch(sql)
                .unwrap()
        };
        run("ALTER TABLE stats_history.history_mysql_query_digest RENAME TO aside");
        for waiting in 1..=2 {
            let refused = bench.refused(keep).await;
            assert!(
                refused.ends_with(&format!(": {waiting} digests wait for the next attempt")),
                "{refused}"
            );
        }
        run("ALTER TABLE stats_history.aside RENAME TO history_mysql_query_digest");
        assert_eq!(bench.run(keep).await, 3);
        assert_eq!(bench.run(keep).await, 1);
        let kept = bench.rows("SELECT count(DISTINCT digest), count(*) FROM stats_history.history_mysql_query_digest").await;
        assert_eq!(kept, [["4", "4"]]);
    });
}

#[test]
fn the_times_of_hostgroups_and_classes_are_their_own_and_not_those_of_digests() {
    let reports = Box::new(|what, _reset| {
        let mut latency = Latency::default();
        [7, 9000].into_iter().for_each(|us| latency.count(us));
        let class = |command: &'static str, count| {
            let latency = if count > 0 {
                latency.clone()
            } else {
                Latency::default()
            };
            CommandRow {
                command: command.into(),
                total_time_us: 9007,
                count,
                counts: [0; 12],
                latency,
                max_us: 9000,
            }
        };
        match what {
            Ask::Hostgroups => Some(Report::Hostgroups(vec![HostgroupRow {
                hostgroup: 10,
                count: 2,
                latency,
                max_us: 9000,
            }])),
            Ask::Commands => Some(Report::Commands(vec![
                class("SELECT", 2),
                class("UPDATE", 0),
            ])),
            _ => None,
        }
    });
    testing::with_reports(Options::default(), reports, |bench| async move {
        let spread = [
            "2",
            "7",
            "9000",
            "9000",
            "9000",
            "9000",
            "[[7,1],[12287,1]]",
        ];
        for (table, of) in [
            ("stats_mysql_hostgroup_latency", "10"),
            ("stats_mysql_hostgroup_latency_reset", "10"),
            ("stats_mysql_command_latency", "SELECT"),
        ] {
            let rows = bench.rows(&format!("SELECT * FROM {table}")).await;
            assert_eq!(rows, [[&[of], &spread[..]].concat()], "{table}");
        }
    });
}

#[test]
fn what_there_is_to_say_about_one_user_is_said() {
    testing::with(Options::default(), |bench| async move {
        bench
            .script(
                "INSERT INTO mysql_users (username, password, fast_forward) VALUES ('seen', 'x', 0), ('other', 'x', 1), ('blind', 'x', 1);
                 INSERT INTO mysql_firewall_whitelist_users (active, username, client_address, mode, comment) VALUES
                 (1, 'seen', '', 'PROTECTING', ''), (1, 'blind', '', 'PROTECTING', ''), (1, 'other', '', 'PROTECTING', '');
                 LOAD MYSQL FIREWALL TO RUNTIME; LOAD MYSQL USER other TO RUNTIME",
            )
            .await;
        for (user, about) in [
            ("seen", &[][..]),
            ("blind", &["blind"]),
            ("blind", &["blind"]),
        ] {
            match bench
                .ask(View::Admin, &format!("LOAD MYSQL USER {user} TO RUNTIME"))
                .await
            {
                Ok(Reply::Done { info, .. }) => {
                    let named: Vec<_> = ["seen", "blind", "other"]
                        .into_iter()
                        .filter(|name| info.contains(name))
                        .collect();
                    assert_eq!(named, about, "{info}");
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(bench.shared.snapshot.borrow().users.len(), 3);
    });
}

#[test]
fn who_has_to_know_is_told_what_is_in_force() {
    let seen = Arc::new(AtomicUsize::new(0));
    let told = seen.clone();
    testing::with(Options::default(), |mut bench| async move {
        let hook = Box::new(move |snapshot: &config::Snapshot| {
            told.store(snapshot.users.len(), Ordering::Relaxed)
        });
        Rc::get_mut(&mut bench.shared).unwrap().hooks.in_force = hook;
        let insert = |name: &str| {
            format!("INSERT INTO mysql_users (username, password) VALUES ('{name}', 'x')")
        };
        bench
            .script(&format!("{}; LOAD MYSQL USERS TO RUNTIME", insert("a")))
            .await;
        assert_eq!(seen.load(Ordering::Relaxed), 1);
        bench
            .script(&format!("{}; LOAD MYSQL USER b TO RUNTIME", insert("b")))
            .await;
        assert_eq!(seen.load(Ordering::Relaxed), 2);
    });
}
