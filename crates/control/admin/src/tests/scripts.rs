//! Scripts of the field pasted as they are, and what LOAD and SAVE promise.

use crate::engine::{Reply, View};
use crate::open::{Admin, Options, Start};
use crate::testing::{self, Directory};
use bridge::{Ask, Counter, Counts, DigestRow, PoolRow, Report, ServerState};
use std::fmt::Write as _;

/// A1, A2, A3, A4: TLS towards servers, as the SSL tutorial sets it up.
#[test]
fn tls_towards_servers_is_set_up_as_the_tutorial_says() {
    testing::with(Options::default(), |bench| async move {
        bench
            .script(
                "INSERT INTO mysql_servers (hostgroup_id, hostname, port, max_connections) VALUES (0,'172.16.1.103',3306,3000),(0,'172.16.1.104',3306,3000);
                 UPDATE mysql_servers SET use_ssl=1 WHERE port=3306;
                 LOAD MYSQL SERVERS TO RUNTIME;
                 SAVE MYSQL SERVERS TO DISK;",
            )
            .await;
        let shown = bench.rows("select hostgroup_id,hostname,port,status,max_connections,use_ssl from mysql_servers").await;
        assert_eq!(
            shown[0],
            ["0", "172.16.1.103", "3306", "ONLINE", "3000", "1"]
        );
        assert_eq!(
            bench.rows("SELECT use_ssl FROM disk.mysql_servers").await,
            [["1"], ["1"]]
        );
        let directory = Directory::new("tls");
        let file = |name: &str| {
            let path = directory.0.join(name);
            std::fs::write(&path, "-").unwrap();
            path.display().to_string()
        };
        bench
            .script(&format!(
                "SET mysql-ssl_p2s_cert=\"{}\"; SET mysql-ssl_p2s_key=\"{}\"; SET mysql-ssl_p2s_ca=\"{}\";
                 SET mysql-ssl_p2s_cipher='ECDHE-RSA-AES256-SHA';
                 LOAD MYSQL VARIABLES TO RUNTIME; SAVE MYSQL VARIABLES TO DISK;",
                file("client-cert.pem"),
                file("client-key.pem"),
                file("ca.pem")
            ))
            .await;
        let shown = bench.rows("SELECT * FROM global_variables WHERE variable_name LIKE 'mysql%ssl_p2s_c%' ORDER BY 1").await;
        assert_eq!(shown[3], ["mysql-ssl_p2s_cipher", "ECDHE-RSA-AES256-SHA"]);
        let loaded = bench.loaded.borrow();
        let snapshot = loaded.last().unwrap();
        assert_eq!(
            &*snapshot.variables.mysql_ssl_p2s_cipher,
            "ECDHE-RSA-AES256-SHA"
        );
        assert!(
            snapshot
                .servers
                .hostgroup(0)
                .unwrap()
                .servers
                .iter()
                .all(|server| server.use_ssl)
        );
    });
}

/// A32: two statements on a line, double-quoted literals, keys that count up by themselves.
#[test]
fn the_legacy_sharding_script_loads() {
    testing::with(Options::default(), |bench| async move {
        bench.script("DELETE FROM mysql_query_rules; INSERT INTO mysql_query_rules (active,username,cache_ttl) VALUES (1,\"sbtest\",120000);").await;
        for i in 10_001..=10_200 {
            let sql = format!(
                "INSERT INTO mysql_query_rules (active,username,schemaname,destination_hostgroup,apply) VALUES (1,\"sbtest\",\"shard_{i}\",1,1);"
            );
            assert_eq!(bench.run(&sql).await, 1);
        }
        bench.run("LOAD MYSQL QUERY RULES TO RUNTIME").await;
        assert_eq!(
            bench
                .rows("SELECT count(*), min(rule_id), max(rule_id) FROM runtime_mysql_query_rules")
                .await,
            [["201", "1", "201"]]
        );
        assert_eq!(
            bench.loaded.borrow().last().unwrap().rules.chain().len(),
            201
        );
    });
}

/// A40, A44: 50,000 fast routing rows, then 200,000 by INSERT … SELECT with columns in another
/// case.
#[test]
fn two_hundred_thousand_fast_routing_rows_load() {
    testing::with(Options::default(), |bench| async move {
        for i in 10_001..=60_000 {
            let sql = format!(
                "INSERT INTO mysql_query_rules_fast_routing (username,schemaname,flagIN,destination_hostgroup,comment) VALUES (\"sbtest\",\"shard_{i}\",0,1,\"\");"
            );
            bench.run(&sql).await;
        }
        bench
            .script(
                "INSERT INTO mysql_query_rules_fast_routing SELECT username, schemaname, FlagIN+1, destination_hostgroup, comment FROM mysql_query_rules_fast_routing;
                 INSERT INTO mysql_query_rules_fast_routing SELECT username, schemaname, FlagIN+2, destination_hostgroup, comment FROM mysql_query_rules_fast_routing;
                 LOAD MYSQL QUERY RULES TO RUNTIME;",
            )
            .await;
        assert_eq!(
            bench
                .rows("SELECT COUNT(*) FROM mysql_query_rules_fast_routing")
                .await,
            [["200000"]]
        );
        assert_eq!(
            bench
                .rows("SELECT COUNT(*) FROM runtime_mysql_query_rules_fast_routing")
                .await,
            [["200000"]]
        );
        assert_eq!(
            bench
                .loaded
                .borrow()
                .last()
                .unwrap()
                .rules
                .fast()
                .hostgroup("sbtest", "shard_60000", 3),
            Some(1)
        );
    });
}

#[test]
fn a_load_that_cannot_be_honoured_changes_nothing_and_says_every_reason() {
    testing::with(Options::default(), |bench| async move {
        bench.script("INSERT INTO mysql_servers (hostgroup_id, hostname) VALUES (1, 'a'); LOAD MYSQL SERVERS TO RUNTIME;").await;
        bench
            .script(
                "INSERT INTO mysql_servers (hostgroup_id, hostname) VALUES ('x', 'b');
                 INSERT INTO mysql_servers (hostgroup_id, hostname) VALUES ('y', 'c');
                 INSERT INTO mysql_galera_hostgroups (writer_hostgroup, backup_writer_hostgroup, reader_hostgroup, offline_hostgroup, active)
                 VALUES (1, 2, 3, 4, 0);",
            )
            .await;
        let words = bench.refused("LOAD MYSQL SERVERS TO RUNTIME").await;
        assert_eq!(
            words,
            "MYSQL SERVERS not loaded, nothing was changed: mysql_servers (hostgroup_id x, hostname b, port 3306): hostgroup_id \
             must be a whole number; 'x' is not; mysql_servers (hostgroup_id y, hostname c, port 3306): hostgroup_id must be a \
             whole number; 'y' is not"
        );
        assert_eq!(
            bench
                .rows("SELECT hostname FROM runtime_mysql_servers")
                .await,
            [["a"]]
        );
        assert_eq!(bench.loaded.borrow().len(), 1);
        bench.script("DELETE FROM mysql_servers WHERE hostname IN ('b', 'c'); LOAD MYSQL SERVERS TO RUNTIME;").await;
        assert_eq!(bench.loaded.borrow().last().unwrap().generation, 3);
    });
}

#[test]
fn every_module_that_nothing_honours_is_refused_with_rows_and_fine_without() {
    testing::with(Options::default(), |bench| async move {
        for (module, insert, delete) in [(
            "COREDUMP",
            "INSERT INTO coredump_filters VALUES ('a.cpp', 1)",
            "DELETE FROM coredump_filters",
        )] {
            bench.run(insert).await;
            let words = bench.refused(&format!("LOAD {module} TO RUNTIME")).await;
            assert!(words.contains("has 1 row, but this version"), "{words}");
            bench.run(delete).await;
            bench.run(&format!("LOAD {module} TO RUNTIME")).await;
        }
    });
}

#[test]
fn programs_are_in_force_as_written_and_one_that_cannot_run_is_named() {
    testing::with(Options::default(), |bench| async move {
        let insert = "INSERT INTO scheduler (id, active, interval_ms, filename, arg1) VALUES (1, 1, 1000, '/bin/sh', 'x'), \
                      (2, 1, 1000, '/bin/none', NULL), (3, 1, 1000, '/etc/passwd', NULL), (4, 1, 1000, '/etc', NULL), \
                      (5, 0, 1000, '/bin/none', NULL)";
        bench.run(insert).await;
        let load = "LOAD SCHEDULER TO RUNTIME";
        let Reply::Done { info, .. } = bench.ask(View::Admin, load).await.unwrap() else {
            panic!("rows")
        };
        let words: Vec<_> = info.split("; ").collect();
        assert_eq!(
            words,
            [
                "scheduler (id 2): filename '/bin/none' cannot be found (No such file or directory (os error 2)): each run fails until it is",
                "scheduler (id 3): filename '/etc/passwd' is not executable: each run fails until it is",
                "scheduler (id 4): filename '/etc' is no file: each run fails until it is",
            ]
        );
        let rows = "SELECT id, active, filename, arg1 FROM runtime_scheduler ORDER BY id LIMIT 1";
        assert_eq!(bench.rows(rows).await, [["1", "1", "/bin/sh", "x"]]);
        let count = "SELECT count(*) FROM runtime_scheduler";
        assert_eq!(bench.rows(count).await, [["5"]]);
        bench
            .run("INSERT INTO scheduler (id, interval_ms, filename) VALUES (6, 1000, '')")
            .await;
        let refused = bench.refused(load).await;
        assert!(
            refused.contains("scheduler (id 6): filename must not be empty"),
            "{refused}"
        );
        bench
            .script("DELETE FROM scheduler; SAVE SCHEDULER FROM RUNTIME; SAVE SCHEDULER TO DISK")
            .await;
        assert_eq!(
            bench.rows("SELECT count(*) FROM disk.scheduler").await,
            [["5"]]
        );
        assert_eq!(
            bench
                .rows("SELECT * FROM stats_millrace_scheduler")
                .await
                .len(),
            0
        );
    });
}

#[test]
fn a_checksum_is_that_of_the_rows() {
    testing::with(Options::default(), |bench| async move {
        let of = async |what: &str| bench.rows(&format!("CHECKSUM {what}")).await[0][1].clone();
        for (subject, module, table, (one, other)) in [
            (
                "MYSQL SERVERS",
                "MYSQL SERVERS",
                "mysql_servers (hostgroup_id, hostname, port)",
                ("(0, 'a', 3306)", "(0, 'a', 3307)"),
            ),
            (
                "MYSQL USERS",
                "MYSQL USERS",
                "mysql_users (username, backend, frontend)",
                ("('u', 0, 1)", "('u', 1, 0)"),
            ),
            (
                "MYSQL QUERY RULES",
                "MYSQL QUERY RULES",
                "mysql_query_rules (rule_id, flagIN)",
                ("(1, 5)", "(2, 6)"),
            ),
            (
                "MYSQL REPLICATION HOSTGROUPS",
                "MYSQL SERVERS",
                "mysql_replication_hostgroups (writer_hostgroup, reader_hostgroup)",
                ("(1, 2)", "(3, 4)"),
            ),
        ] {
            let name = table.split(' ').next().unwrap();
            let empty = of(subject).await;
            assert_eq!(empty, of(&format!("DISK {subject}")).await, "{subject}");
            bench
                .run(&format!("INSERT INTO {table} VALUES {one}, {other}"))
                .await;
            let both = of(subject).await;
            assert!(both != empty && both.starts_with("0x"), "{subject}: {both}");
            assert_eq!(of(&format!("MEMORY {subject}")).await, both);
            assert_eq!(of(&format!("DISK {subject}")).await, empty);
            bench.run(&format!("SAVE {module} TO DISK")).await;
            assert_eq!(of(&format!("DISK {subject}")).await, both);
            bench.run(&format!("DELETE FROM {name}")).await;
            assert_eq!(of(subject).await, empty);
            bench
                .run(&format!("INSERT INTO {table} VALUES {one}"))
                .await;
            assert_ne!(of(subject).await, both);
            // In whatever order they were written.
            bench.run(&format!("DELETE FROM {name}")).await;
            bench
                .run(&format!("INSERT INTO {table} VALUES {other}, {one}"))
                .await;
            assert_eq!(of(subject).await, both, "{subject}");
            bench
                .script(&format!("DELETE FROM {name}; SAVE {module} TO DISK"))
                .await;
        }
        let before = of("MYSQL VARIABLES").await;
        bench.run("SET mysql-max_connections = 4321").await;
        assert_ne!(of("MYSQL VARIABLES").await, before);
        assert_eq!(of("DISK MYSQL VARIABLES").await, before);
        bench.run("SAVE MYSQL VARIABLES TO DISK").await;
        assert_eq!(
            of("DISK MYSQL VARIABLES").await,
            of("MYSQL VARIABLES").await
        );
    });
}

#[test]
fn one_user_can_be_loaded_alone_and_users_come_back_as_two_rows() {
    testing::with(Options::default(), |bench| async move {
        bench
            .script("INSERT INTO mysql_users (username, password) VALUES ('a', '1'), ('b', '2'); LOAD MYSQL USERS TO RUNTIME;")
            .await;
        bench
            .script(
                "UPDATE mysql_users SET password = password || 'x'; LOAD MYSQL USER b TO RUNTIME;",
            )
            .await;
        let passwords = "SELECT DISTINCT username, password FROM runtime_mysql_users ORDER BY 1";
        assert_eq!(bench.rows(passwords).await, [["a", "1"], ["b", "2x"]]);
        assert!(
            bench
                .refused("LOAD MYSQL USER nosuch TO RUNTIME")
                .await
                .contains("'nosuch' is not there")
        );
        bench.run("SAVE MYSQL USERS TO MEMORY").await;
        let rows = bench
            .rows("SELECT username, backend, frontend FROM mysql_users ORDER BY 1, 2")
            .await;
        assert_eq!(
            rows,
            [
                ["a", "0", "1"],
                ["a", "1", "0"],
                ["b", "0", "1"],
                ["b", "1", "0"]
            ]
        );
    });
}

#[test]
fn variables_go_up_and_down_the_layers() {
    testing::with(Options::default(), |bench| async move {
        let value = async |schema: &str| {
            let sql = format!(
                "SELECT variable_value FROM {schema}global_variables WHERE variable_name='mysql-max_connections'"
            );
            bench.rows(&sql).await.concat().concat()
        };
        bench.script("SET mysql-max_connections=77; SET mysql-multiplexing=0; SAVE MYSQL VARIABLES TO DISK;").await;
        assert_eq!(
            (
                value("").await,
                value("disk.").await,
                value("runtime_").await
            ),
            ("77".into(), "77".into(), "10000".into())
        );
        bench.run("SAVE MYSQL VARIABLES FROM RUNTIME").await;
        assert_eq!(value("").await, "10000");
        bench
            .script("LOAD MYSQL VARIABLES FROM DISK; LOAD MYSQL VARIABLES TO RUNTIME;")
            .await;
        assert_eq!(
            (value("").await, value("runtime_").await),
            ("77".into(), "77".into())
        );
        // A truth is spelled as it is in force.
        assert_eq!(bench.rows("SELECT @@mysql-multiplexing").await, [["false"]]);
        assert!(
            !bench
                .loaded
                .borrow()
                .last()
                .unwrap()
                .variables
                .mysql_multiplexing
        );
    });
}

#[test]
fn statistics_are_those_of_the_cores_and_a_reset_asks_for_zero() {
    let reports = |ask: Ask, reset: bool| match ask {
        Ask::Global => {
            let mut counts = Counts::zero();
            counts.set(Counter::Questions, 42);
            Some(Report::Global(counts))
        }
        Ask::Digests => Some(Report::Digests(vec![DigestRow {
            hostgroup: -1,
            schema: "s".into(),
            user: "u".into(),
            client_address: "".into(),
            digest: 0xAB,
            text: "SELECT ?".into(),
            shown: Some(true),
            guarded: 0xAB,
            alike: false,
            count: if reset { 2 } else { 1 },
            first_seen: 1,
            last_seen: 2,
            sum_time_us: 3,
            min_time_us: 1,
            max_time_us: 2,
            rows_affected: 0,
            rows_sent: 9,
            latency: bridge::Latency::default(),
        }])),
        Ask::Pool => Some(Report::Pool(vec![PoolRow {
            hostgroup: 1,
            host: "a".into(),
            port: 3306,
            state: ServerState::Shunned,
            used: 1,
            free: 2,
            ok: 3,
            err: 4,
            used_max: 5,
            queries: 6,
            queries_gtid_sync: 0,
            bytes_sent: 7,
            bytes_received: 8,
            latency_us: 9,
        }])),
        _ => None,
    };
    testing::with_reports(Options::default(), Box::new(reports), |bench| async move {
        assert_eq!(
            bench
                .rows(
                    "SELECT Variable_Value FROM stats_mysql_global WHERE Variable_Name='Questions'"
                )
                .await,
            [["42"]]
        );
        let digest = bench
            .rows("SELECT hostgroup, digest, digest_text, count_star FROM stats_mysql_query_digest")
            .await;
        assert_eq!(digest, [["-1", "0x00000000000000AB", "SELECT ?", "1"]]);
        assert_eq!(
            bench
                .rows("SELECT count_star FROM stats.stats_mysql_query_digest_reset")
                .await,
            [["2"]]
        );
        let pool = bench
            .rows("SELECT * FROM `stats_mysql_connection_pool`")
            .await;
        assert_eq!(
            pool,
            [[
                "1", "a", "3306", "SHUNNED", "1", "2", "3", "4", "5", "6", "0", "7", "8", "9"
            ]]
        );
        bench
            .script(
                "INSERT INTO mysql_servers (hostgroup_id, hostname) VALUES (1, 'a'), (1, 'b'); LOAD MYSQL SERVERS TO RUNTIME;",
            )
            .await;
        let servers = bench
            .rows("SELECT hostname, status FROM runtime_mysql_servers ORDER BY 1")
            .await;
        assert_eq!(servers, [["a", "SHUNNED"], ["b", "ONLINE"]]);
        let stats = bench
            .ask(
                View::Stats,
                "SELECT Variable_Value FROM stats_mysql_global WHERE Variable_Name='Questions'",
            )
            .await;
        let Ok(Reply::Rows(grid)) = stats else {
            panic!("{stats:?}")
        };
        assert_eq!(grid.texts(), [["42"]]);
    });
}

#[test]
fn a_route_is_explained_with_the_rules_in_force() {
    testing::with(Options::default(), |bench| async move {
        bench
            .script(
                "INSERT INTO mysql_users (username, password, default_hostgroup) VALUES ('app', 'x', 10); LOAD MYSQL USERS TO RUNTIME;
                 INSERT INTO mysql_query_rules (rule_id, active, match_digest, destination_hostgroup, apply) VALUES
                 (1, 1, '^SELECT.*FOR UPDATE', 10, 1), (2, 1, '^SELECT', 20, 1); LOAD MYSQL QUERY RULES TO RUNTIME;",
            )
            .await;
        let steps = bench
            .rows("EXPLAIN ROUTE 'SELECT * FROM t WHERE a = ''x''' AS app IN shop")
            .await;
        let mut text = String::new();
        for step in &steps {
            let _ = writeln!(text, "{}", step.join(" | "));
        }
        assert!(
            text.contains("| 1 |")
                && text.contains("| 2 |")
                && text.lines().last().unwrap().contains("20"),
            "{text}"
        );
        assert!(
            bench
                .refused("EXPLAIN ROUTE 'SELECT 1' AS nobody")
                .await
                .contains("'nobody'")
        );
        // A statement that holds another goes where that goes; one that cannot be followed goes by
        // its own words.
        for (sql, inside, last) in [
            (
                "PREPARE s FROM ''SELECT a FROM t WHERE b = ?''",
                "SELECT a FROM t WHERE b = ?",
                "hostgroup 20",
            ),
            (
                "EXECUTE IMMEDIATE ''SELECT 1 FOR UPDATE''",
                "SELECT 1 FOR UPDATE",
                "hostgroup 10",
            ),
            (
                "PREPARE s FROM ''SELECT FOUND_ROWS()''",
                "its own words",
                "by itself: hostgroup 20",
            ),
            ("PREPARE s FROM @q", "in @q", "hostgroup 10"),
            ("PREPARE s FROM CONCAT(1)", "only a server", "hostgroup 10"),
            ("EXECUTE s USING @a", "prepared as 's'", "hostgroup 10"),
        ] {
            let steps = bench
                .rows(&format!("EXPLAIN ROUTE '{sql}' AS app IN shop"))
                .await;
            assert!(
                steps[0][2] == "inside" && steps[0][3].contains(inside),
                "{sql}: {steps:?}"
            );
            assert!(
                steps.last().unwrap()[3].starts_with(last),
                "{sql}: {steps:?}"
            );
        }
        // Several are decided each by itself, as behind those before them.
        let each = |sql: &str| {
            let sql = format!("EXPLAIN ROUTE '{sql}' AS app IN shop");
            async {
                bench
                    .rows(&{ sql })
                    .await
                    .into_iter()
                    .filter(|step| ["statement", "decision"].contains(&&*step[2]))
                    .map(|step| step[3].clone())
                    .collect::<Vec<_>>()
            }
        };
        assert_eq!(
            each("SELECT 1; DELETE FROM t; SELECT 2").await,
            [
                "1 of 3: SELECT 1",
                "hostgroup 20, by rule 2",
                "2 of 3: DELETE FROM t",
                "hostgroup 10, the user's default",
                "3 of 3: SELECT 2",
                "hostgroup 20, by rule 2"
            ]
        );
        assert_eq!(
            each("BEGIN; SELECT 1; COMMIT; SELECT 1").await[3],
            "hostgroup 10, where the transaction is open"
        );
        assert_eq!(
            each("BEGIN; SELECT 1; COMMIT; SELECT 1").await[7],
            "hostgroup 20, by rule 2"
        );
        assert!(
            !bench
                .rows("EXPLAIN ROUTE 'DEALLOCATE PREPARE s' AS app")
                .await
                .iter()
                .any(|step| step[2] == "inside")
        );
    });
}

#[test]
fn a_snapshot_is_taken_apart_here_once_no_core_works_under_it() {
    testing::with(Options::default(), |bench| async move {
        for _ in 0..3 {
            bench.run("LOAD MYSQL QUERY RULES TO RUNTIME").await;
        }
        assert_eq!(
            bench.shared.cores.in_use(),
            4,
            "this core keeps all of its copies, and one is what they are copies of"
        );
        bench.loaded.borrow_mut().drain(..2);
        bench.shared.cores.sweep(&bench.shared.aside);
        assert_eq!(bench.shared.cores.in_use(), 2);
        bench.run("LOAD MYSQL USERS TO RUNTIME").await;
        bench.run("LOAD MYSQL VARIABLES TO RUNTIME").await;
        assert_eq!(
            bench.shared.cores.in_use(),
            2,
            "rules that stay are not copied again"
        );
    });
}

/// A14, A15: double quotes around a text of which the backslashes stay.
#[test]
fn the_rewriting_script_loads_as_it_is_printed() {
    testing::with(Options::default(), |bench| async move {
        bench
            .script(
                r#"INSERT INTO mysql_query_rules (active,match_pattern,replace_pattern,re_modifiers) VALUES (1,"FROM_UNIXTIME\(`created`, '%Y-%m'\)", 'substring(toString(toDate(created)),1,7)',"CASELESS,GLOBAL");
                LOAD MYSQL QUERY RULES TO RUNTIME; SAVE MYSQL QUERY RULES TO DISK;"#,
            )
            .await;
        let sql = r#"EXPLAIN ROUTE "SELECT COUNT(`id`), FROM_UNIXTIME(`created`, '%Y-%m') AS `date` FROM `tablename` GROUP BY FROM_UNIXTIME(`created`, '%Y-%m')""#;
        let decision = bench.rows(sql).await.pop().unwrap().pop().unwrap();
        assert!(
            decision.ends_with(
                "rewritten: SELECT COUNT(`id`), substring(toString(toDate(created)),1,7) AS `date` FROM `tablename` \
                 GROUP BY substring(toString(toDate(created)),1,7)"
            ),
            "{decision}"
        );
    });
}

/// A core that has seen these digests, once.
fn digests(
    rows: &'static [(&'static str, u64, &'static str, u64)],
) -> Box<dyn Fn(Ask, bool) -> Option<Report>> {
    let forgotten = std::cell::Cell::new(false);
    Box::new(move |ask, reset| {
        let seen = |(user, digest, text, time_us): &(&str, u64, &str, u64)| {
            let mut latency = bridge::Latency::default();
            latency.count(*time_us);
            DigestRow {
                hostgroup: 10,
                schema: "shop".into(),
                user: (*user).into(),
                client_address: "".into(),
                digest: *digest,
                text: (*text).into(),
                shown: Some(true),
                guarded: *digest,
                alike: false,
                count: 1,
                first_seen: 1,
                last_seen: 2,
                sum_time_us: *time_us,
                min_time_us: *time_us,
                max_time_us: *time_us,
                rows_affected: 0,
                rows_sent: 1,
                latency,
            }
        };
        (ask == Ask::Digests).then(|| {
            let rows = if forgotten.get() {
                Vec::new()
            } else {
                rows.iter().map(seen).collect()
            };
            forgotten.set(forgotten.get() || reset);
            Report::Digests(rows)
        })
    })
}

#[test]
fn known_digests_are_replayed_through_a_map_that_is_not_loaded() {
    let seen = digests(&[
        ("app", 1, "SELECT a FROM users WHERE nickname=? LIMIT ?", 1),
        (
            "app",
            2,
            "SELECT a FROM users WHERE nickname IN (?,?,...)",
            1,
        ),
        ("app", 3, "SELECT COUNT(*) FROM users WHERE a>?", 1),
        ("app", 4, "SELECT COUNT(DISTINCT a) FROM users", 1),
        ("app", 5, "UPDATE users SET a=? WHERE b=?", 1),
        (
            "app",
            6,
            "INSERT INTO users (nickname,a) VALUES (?,?),...",
            1,
        ),
        ("app", 7, "ALTER TABLE users ADD COLUMN b INT", 1),
        ("app", 8, "SELECT a FROM plain WHERE id=?", 1),
    ]);
    testing::with_reports(Options::default(), seen, |bench| async move {
        bench
            .script(
                "INSERT INTO mysql_users (username, password, default_hostgroup) VALUES ('app', 'x', 10); LOAD MYSQL USERS TO RUNTIME;
                 INSERT INTO mysql_shard_tables (table_name, key_column, `function`, default_table, default_hostgroup) VALUES ('users', 'nickname', 'PREFIX(3)', 'users_default', 1);
                 INSERT INTO mysql_shard_partitions (table_name, partition_name, partition_value, hostgroup_id) VALUES ('users', 'nick1', 'mar', 1), ('users', 'nick2', 'foo', 2);",
            )
            .await;
        let told = |rows: Vec<Vec<String>>| -> Vec<String> {
            rows.iter().map(|row| row[9..].join(" | ")).collect()
        };
        let memory = |words: &str, certain: &str| {
            format!(
                "{certain} | hostgroup 10, the user's default | by the map of sharded tables: {words}"
            )
        };
        let refused = "refused: it changes 3 partitions, and one is all that a change of this user can have; name the key in its WHERE, say it for each partition with the hint hscale.partition(table) = 'name', or have an operator set partition_changes to xa in the user's attributes";
        let wanted = [
            memory("point", "yes"),
            memory(
                "point; with other values some (2), one behind another",
                "no",
            ),
            memory("all (3), all rows become one", "yes"),
            memory(
                "all (3), finished on hostgroup 1: COUNT(DISTINCT a) cannot be put together over several partitions",
                "yes",
            ),
            memory(&format!("all (3), {refused}"), "yes"),
            memory(
                &format!(
                    "point; with other values some (2), {}",
                    refused.replace("3 partitions", "2 partitions")
                ),
                "no",
            ),
            memory("all (3), one after another", "yes"),
        ];
        let found = told(bench.rows("EXPLAIN ROUTE AGAINST DIGESTS").await);
        assert_eq!(found, wanted);
        bench.run("LOAD MYSQL SHARDS TO RUNTIME").await;
        assert!(bench.rows("EXPLAIN ROUTE AGAINST DIGESTS").await.is_empty());
        assert_eq!(
            bench.rows("EXPLAIN ROUTE AGAINST DIGESTS ALL").await.len(),
            8
        );
        bench
            .run("UPDATE mysql_shard_tables SET `function` = 'MD5()'")
            .await;
        let said = bench.refused("EXPLAIN ROUTE AGAINST DIGESTS").await;
        assert!(said.contains("function must be one of"), "{said}");
    });
}

#[test]
fn known_digests_are_replayed_through_rules_that_are_not_loaded() {
    let seen = digests(&[
        ("app", 1, "SELECT a FROM t WHERE id=?", 7),
        ("app", 2, "UPDATE t SET a=?", 9),
        ("app", 3, "SHOW TABLES", 1),
    ]);
    testing::with_reports(Options::default(), seen, |bench| async move {
        bench
            .script(
                "INSERT INTO mysql_users (username, password, default_hostgroup) VALUES ('app', 'x', 10); LOAD MYSQL USERS TO RUNTIME;
                 INSERT INTO mysql_query_rules (rule_id, active, match_digest, destination_hostgroup, apply) VALUES
                 (1, 1, '^SELECT', 20, 1); LOAD MYSQL QUERY RULES TO RUNTIME;",
            )
            .await;
        assert!(bench.rows("EXPLAIN ROUTE AGAINST DIGESTS").await.is_empty());
        bench
            .script(
                "UPDATE mysql_query_rules SET destination_hostgroup = 30 WHERE rule_id = 1;
                 INSERT INTO mysql_query_rules (rule_id, active, match_pattern, error_msg, apply) VALUES (2, 1, '^UPDATE .* WHERE 1=1', 'no', 1);",
            )
            .await;
        let columns = |row: &Vec<String>| {
            row[4..6]
                .iter()
                .chain(&row[8..])
                .cloned()
                .collect::<Vec<_>>()
                .join(" | ")
        };
        let changed: Vec<_> = bench
            .rows("EXPLAIN ROUTE AGAINST DIGESTS")
            .await
            .iter()
            .map(columns)
            .collect();
        assert_eq!(
            changed,
            [
                "0x0000000000000001 | SELECT a FROM t WHERE id=? | yes | yes | hostgroup 20, by rule 1 | hostgroup 30, by rule 1"
            ]
        );
        let all: Vec<_> = bench
            .rows("EXPLAIN ROUTE AGAINST DIGESTS ALL")
            .await
            .iter()
            .map(columns)
            .collect();
        assert_eq!(
            all[1],
            "0x0000000000000002 | UPDATE t SET a=? | no | no | hostgroup 10, the user's default | hostgroup 10, the user's default",
            "what rule 2 says depends on the text, which is not known"
        );
        assert_eq!(all.len(), 3);
        // A template replaces the statement before the rules see it.
        bench
            .script(
                "DELETE FROM mysql_query_rules WHERE rule_id = 2; UPDATE mysql_query_rules SET destination_hostgroup = 20 WHERE rule_id = 1;
                 INSERT INTO mysql_query_rewrite (rewrite_id, active, pattern, replacement) VALUES
                 (5, 1, 'SELECT a FROM t WHERE id = ?', 'SELECT a FROM fast WHERE id = ?');",
            )
            .await;
        let changed: Vec<_> = bench
            .rows("EXPLAIN ROUTE AGAINST DIGESTS")
            .await
            .iter()
            .map(columns)
            .collect();
        assert_eq!(
            changed,
            [
                "0x0000000000000001 | SELECT a FROM t WHERE id=? | yes | no | hostgroup 20, by rule 1 | \
             hostgroup 20, by rule 1; template 5: SELECT a FROM fast WHERE id =  ? "
            ]
        );
        bench.run("LOAD MYSQL QUERY RULES TO RUNTIME").await;
        assert!(bench.rows("EXPLAIN ROUTE AGAINST DIGESTS").await.is_empty());
        bench
            .run("UPDATE mysql_query_rules SET match_digest = '(' WHERE rule_id = 1")
            .await;
        assert!(
            bench
                .refused("EXPLAIN ROUTE AGAINST DIGESTS")
                .await
                .contains("missing closing parenthesis")
        );
    });
}

#[test]
fn digests_go_to_the_history_and_are_counted_anew() {
    let seen = digests(&[("app", 1, "SELECT ?", 7), ("web", 1, "SELECT ?", 9000)]);
    testing::with_reports(Options::default(), seen, |bench| async move {
        let spread = bench
            .rows(
                "SELECT username, p50_us, max_us, histogram FROM stats_mysql_query_digest_latency",
            )
            .await;
        assert_eq!(
            spread,
            [
                ["app", "7", "7", "[[7,1]]"],
                ["web", "9000", "9000", "[[12287,1]]"]
            ]
        );
        assert_eq!(bench.run("SAVE MYSQL DIGEST TO DISK").await, 2);
        let kept = "SELECT username, digest, digest_text, max_time FROM history_mysql_query_digest WHERE dump_time > 1000000 ORDER BY 1";
        let digest = "0x0000000000000001";
        assert_eq!(
            bench.rows(kept).await,
            [
                ["app", digest, "SELECT ?", "7"],
                ["web", digest, "SELECT ?", "9000"]
            ]
        );
        assert!(
            bench
                .rows("SELECT * FROM stats_mysql_query_digest")
                .await
                .is_empty()
        );
        assert_eq!(bench.run("SAVE MYSQL DIGEST TO DISK").await, 0);
    });
}

#[test]
fn a_truncated_digest_table_is_empty() {
    testing::with_reports(
        Options::default(),
        digests(&[("app", 1, "SELECT ?", 7)]),
        |bench| async move {
            assert_eq!(
                bench
                    .rows("SELECT count(*) FROM stats_mysql_query_digest")
                    .await,
                [["1"]]
            );
            bench
                .run("TRUNCATE TABLE stats.stats_mysql_query_digest")
                .await;
            assert_eq!(
                bench
                    .rows("SELECT count(*) FROM stats_mysql_query_digest")
                    .await,
                [["0"]]
            );
        },
    );
}

#[test]
fn a_first_start_reads_the_file_later_ones_the_database_unless_told() {
    let directory = Directory::new("start");
    let config = directory.0.join("proxysql.cnf");
    let write = |limit: u32| {
        let text = format!(
            "mysql_variables={{ max_connections={limit} }} mysql_servers=({{ address=\"h{limit}\" hostgroup=1 }})"
        );
        std::fs::write(&config, text).unwrap();
    };
    let start = |start: Start| {
        let options = Options {
            datadir: Some(directory.0.clone()),
            config: Some(config.clone()),
            start,
            ..Options::default()
        };
        let admin = Admin::open(&options).unwrap();
        let servers: Vec<_> = admin
            .snapshot()
            .servers
            .rows()
            .into_iter()
            .map(|row| row.hostname)
            .collect();
        (admin.snapshot().variables.mysql_max_connections, servers)
    };
    write(1);
    assert_eq!(start(Start::Usual), (1, vec!["h1".into()]));
    write(2);
    assert_eq!(start(Start::Usual), (1, vec!["h1".into()]));
    assert_eq!(start(Start::Reload), (2, vec!["h1".into(), "h2".into()]));
    // What is refused sets nothing aside, however often it is tried.
    std::fs::write(&config, "mysql_variables={ interfaces=\"nowhere\" }").unwrap();
    for _ in 0..2 {
        let options = Options {
            datadir: Some(directory.0.clone()),
            config: Some(config.clone()),
            start: Start::Initial,
            ..Options::default()
        };
        let refused = Admin::open(&options).err().unwrap();
        assert!(
            refused[0]
                .to_string()
                .contains("mysql-interfaces must be a list"),
            "{refused:?}"
        );
        assert!(!directory.0.join("proxysql.db.bak.1").exists());
    }
    assert_eq!(start(Start::Usual), (2, vec!["h1".into(), "h2".into()]));
    write(3);
    assert_eq!(start(Start::Initial), (3, vec!["h3".into()]));
    assert_eq!(start(Start::Usual), (3, vec!["h3".into()]));
    assert!(directory.0.join("proxysql.db.bak.1").exists());
}

#[test]
fn what_cannot_be_honoured_at_the_first_start_is_refused_and_saved_nowhere() {
    let directory = Directory::new("refused-start");
    let config = directory.0.join("proxysql.cnf");
    let options = Options {
        datadir: Some(directory.0.clone()),
        config: Some(config.clone()),
        ..Options::default()
    };
    // What the rows and what a LOAD have against it is told together.
    std::fs::write(
        &config,
        "mysql_servers=({ port=3306 })\nmysql_query_rules=({ rule_id=1 active=1 match_pattern=\"(\" })",
    )
    .unwrap();
    let refused = Admin::open(&options).err().unwrap();
    assert_eq!(refused.len(), 2, "{refused:?}");
    assert!(
        refused[0]
            .words
            .ends_with("line 1: mysql_servers: hostname is missing")
    );
    assert_eq!(refused[1].table, "mysql_query_rules");
    std::fs::write(&config, "admin_variables={ mysql_ifaces=\"0.0.0.0:6032\" }").unwrap();
    let refused = Admin::open(&options).err().unwrap();
    assert!(
        refused[0].to_string().contains("everybody knows"),
        "{refused:?}"
    );
    std::fs::write(
        &config,
        "admin_variables={ mysql_ifaces=\"0.0.0.0:6032\" admin_credentials=\"a:b\" stats_credentials=\"s:t\" }",
    )
    .unwrap();
    assert!(Admin::open(&options).is_ok());
}

#[test]
fn what_was_saved_and_cannot_be_honoured_leaves_that_module_out_and_the_operator_can_come_in() {
    let directory = Directory::new("left-out");
    let options = Options {
        datadir: Some(directory.0.clone()),
        ..Options::default()
    };
    testing::with(options.clone(), |bench| async move {
        bench
            .script(
                "INSERT INTO mysql_query_rules (rule_id, active, match_pattern) VALUES (1, 1, '('); SAVE MYSQL QUERY RULES TO DISK;
                 INSERT INTO mysql_servers (hostgroup_id, hostname) VALUES (1, 'a'); SAVE MYSQL SERVERS TO DISK;",
            )
            .await;
    });
    let admin = Admin::open(&options).unwrap();
    assert_eq!(admin.refused().len(), 1);
    assert_eq!(admin.snapshot().servers.rows().len(), 1);
}

#[test]
fn rows_of_every_list_are_in_force_after_every_start() {
    let directory = Directory::new("idle-rows");
    let config = directory.0.join("proxysql.cnf");
    let text = "mysql_servers=({ address=\"a\" })\n\
                mysql_replication_hostgroups=({ writer_hostgroup=1 reader_hostgroup=2 }, { writer_hostgroup=3 reader_hostgroup=4 })\n\
                mysql_group_replication_hostgroups=({ writer_hostgroup=11 backup_writer_hostgroup=12 reader_hostgroup=13 offline_hostgroup=14 },\n\
                { writer_hostgroup=15 backup_writer_hostgroup=16 reader_hostgroup=17 offline_hostgroup=18 })\n\
                mysql_galera_hostgroups=({ writer_hostgroup=1 backup_writer_hostgroup=2 reader_hostgroup=3 offline_hostgroup=4 active=0 })\n\
                mysql_aws_aurora_hostgroups=({ writer_hostgroup=21 reader_hostgroup=22 domain_name=\".x\" },\n\
                { writer_hostgroup=5 reader_hostgroup=6 domain_name=\".x\" })\n\
                restapi_routes=({ id=1 timeout_ms=1000 method=\"GET\" uri=\"a\" script=\"x\" }, { id=2 timeout_ms=1000 method=\"GET\" uri=\"b\" script=\"y\" })";
    std::fs::write(&config, text).unwrap();
    let options = Options {
        datadir: Some(directory.0.clone()),
        config: Some(config),
        ..Options::default()
    };
    for start in ["first", "second"] {
        let admin = Admin::open(&options).unwrap();
        assert_eq!(admin.snapshot().servers.rows().len(), 1, "{start}");
        assert!(admin.refused().is_empty(), "{start}: {:?}", admin.refused());
        let notices: Vec<_> = admin.notices().iter().map(ToString::to_string).collect();
        assert_eq!(
            notices,
            [
                "restapi_routes (id 1): script 'x' cannot be found (No such file or directory (os error 2)): each run fails until it is",
                "restapi_routes (id 2): script 'y' cannot be found (No such file or directory (os error 2)): each run fails until it is",
            ],
            "{start}"
        );
    }
    testing::with(options, |bench| async move {
        bench.run("LOAD RESTAPI TO RUNTIME").await;
        let kept = "SELECT id FROM runtime_restapi_routes ORDER BY 1";
        assert_eq!(bench.rows(kept).await, [["1"], ["2"]]);
        bench.run("LOAD MYSQL SERVERS TO RUNTIME").await;
        let followed =
            "SELECT writer_hostgroup FROM runtime_mysql_aws_aurora_hostgroups ORDER BY 1";
        assert_eq!(bench.rows(followed).await, [["5"], ["21"]]);
    });
}

#[test]
fn a_load_from_the_file_says_its_warnings() {
    let directory = Directory::new("load-warns");
    let config = directory.0.join("proxysql.cnf");
    std::fs::write(
        &config,
        "mysql_variables={ thread=7 threads=0 }\nmysql_serverz=()",
    )
    .unwrap();
    let options = Options {
        config: Some(config.clone()),
        ..Options::default()
    };
    testing::with(options, |bench| async move {
        let load = "LOAD MYSQL VARIABLES FROM CONFIG";
        let Reply::Done { info, .. } = bench.ask(View::Admin, load).await.unwrap() else {
            panic!("rows")
        };
        let at = config.display();
        assert_eq!(
            info,
            format!(
                "{at} line 2: 'mysql_serverz' is no setting of this version and is left out; did you mean 'mysql_servers'?; \
                 {at} line 1: 'thread' is no variable of mysql_variables and is left out; did you mean 'threads'?; \
                 {at} line 1: mysql-threads must be from 1 to 255; '0' is not, so it stays 4"
            )
        );
    });
}

#[test]
fn whoever_asks_for_help_is_told_the_main_commands() {
    testing::with(Options::default(), |bench| async move {
        for text in ["help", "HELP;", "?", "help 'servers'"] {
            let rows = bench.rows(text).await;
            let first = rows.first().map(|row| row[0].as_str());
            assert_eq!(first, Some("SHOW TABLES"), "{text}");
            assert!(
                rows.iter()
                    .any(|row| row[1].contains("docs/features/admin.md"))
            );
        }
    });
}
