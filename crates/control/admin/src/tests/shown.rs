//! What operators are shown: checksums, statistics, routes and help.

use crate::engine::{Reply, View};
use crate::open::Options;
use crate::said::Said;
use crate::testing;
use bridge::{Ask, Counter, Counts, DigestRow, PoolRow, Report, ServerState};
use std::fmt::Write as _;

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

/// Start-ups of Connector/J 5.1, MariaDB's connector and mysqlclient, and forms of people's scripts that
/// SQLite has not.
#[test]
fn drivers_and_scripts_are_answered() {
    testing::with(Options::default(), |bench| async move {
        let connector = "/* mysql-connector-java-5.1.49 ( Revision: x ) */SHOW VARIABLES WHERE Variable_name ='language' \
                         OR Variable_name = 'net_write_timeout' OR Variable_name = 'tx_isolation' OR Variable_name = 'sql_mode'";
        assert_eq!(
            bench.rows(connector).await,
            [
                ["net_write_timeout", "60"],
                ["sql_mode", "STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION"],
                ["tx_isolation", "SERIALIZABLE"],
            ]
        );
        for (sql, wanted) in [
            (
                "SHOW VARIABLES WHERE variable_name IN ('max_allowed_packet','time_zone') -- x",
                "max_allowed_packet 67108864 time_zone SYSTEM",
            ),
            (
                "SHOW GLOBAL VARIABLES WHERE Variable_name LIKE 'mysql-thr%' AND Value = '4'",
                "mysql-threads 4",
            ),
            (
                "SHOW SESSION VARIABLES WHERE variable_name = 'mysql-threads' OR variable_value = 'nosuch'",
                "mysql-threads 4",
            ),
            ("SHOW GLOBAL VARIABLES LIKE 'read\\_only'", "read_only 0"),
            ("SHOW MYSQL VARIABLES LIKE 'sql_mode'", ""),
            (
                "/* a */ /* b */ SELECT @@sql_mode",
                "STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION",
            ),
            (
                "SHOW TABLES FROM stats WHERE name LIKE '%users'",
                "stats_mysql_users",
            ),
            (
                "SHOW CHARACTER SET LIKE 'utf8mb4'",
                "utf8mb4 utf8mb4_0900_ai_ci",
            ),
            (
                "SHOW STATUS WHERE Variable_name = 'Questions'",
                "Questions 0",
            ),
            ("SHOW MYSQL STATUS LIKE 'Quest%'", "Questions 0"),
            (
                "SELECT USER(), CONNECTION_ID(), CURRENT_USER()",
                "admin@127.0.0.1 1 admin@127.0.0.1",
            ),
            (
                "SELECT LEFT('abc', 2) || RIGHT('abc', 1), IF(1, 2, 3), CONCAT('a', 1)",
                "abc 2 a1",
            ),
            (
                "SELECT NOW() > '2024', UNIX_TIMESTAMP() > 1700000000, VERSION() <> ''",
                "1 1 1",
            ),
            ("PRAGMA integrity_check", "ok"),
            ("SHOW MYSQL QUERY RULES", ""),
            ("SHOW RESTAPI", ""),
        ] {
            let rows = bench.rows(sql).await.concat();
            assert_eq!(rows.join(" "), wanted, "{sql}");
        }
        let schemas = bench.rows("SHOW DATABASES LIKE 'stats%'").await;
        let names: Vec<_> = schemas.iter().map(|row| row[1].as_str()).collect();
        assert_eq!(names, ["stats", "stats_history"]);
        for sql in [
            "SIGNAL MYSQL THREADS",
            "INSERT IGNORE INTO mysql_users (username) VALUES ('a')",
        ] {
            bench.run(sql).await;
        }
        assert_eq!(
            bench
                .run("insert ignore into mysql_users (username) values ('a')")
                .await,
            0
        );
        assert_eq!(bench.run("REPLACE INTO mysql_users (username, comment) SELECT username, 'x' FROM mysql_users").await, 1);
    });
}

#[test]
fn a_session_reads_the_number_of_its_own_row() {
    testing::with(Options::default(), |bench| async move {
        let last = async |id| {
            let mut asker = bench.asker(View::Admin);
            asker.id = id;
            let said = bench
                .shared
                .answer(&asker, "SELECT LAST_INSERT_ID()", &[])
                .await;
            match said.unwrap().reply {
                Reply::Rows(grid) => grid.texts().concat().concat(),
                other => panic!("{other:?}"),
            }
        };
        bench
            .run("INSERT INTO mysql_query_rules (rule_id) VALUES (41)")
            .await;
        bench
            .run("INSERT INTO mysql_query_rules (active) VALUES (0)")
            .await;
        assert_eq!(last(1).await, "42");
        assert_eq!(last(2).await, "0");
    });
}

#[test]
fn what_is_elsewhere_is_refused_with_a_reason() {
    testing::with(Options::default(), |bench| async move {
        for (sql, part) in [
            ("LOAD DEBUG TO RUNTIME", "debug builds"),
            ("SAVE PGSQL SERVERS TO DISK", "PostgreSQL"),
            ("LOAD MYSQL LDAP MAPPING TO RUNTIME", "plugin"),
            ("DUMP EVENTSLOG FROM BUFFER TO DISK", "millrace events"),
            ("CHECKSUM ADMIN VARIABLES", "runtime_checksums_values"),
            (
                "SELECT * FROM stats_pgsql_connection_pool",
                "no such table: stats_pgsql_connection_pool: Millrace does not",
            ),
            ("SELECT * FROM stats_mysql_query_events", "millrace events"),
            (
                "SELECT * FROM stats_history.stats_mysql_query_digest",
                "history_mysql_query_digest",
            ),
            (
                "SELECT MultiplexDisabled FROM stats_mysql_processlist",
                "extended_info",
            ),
            ("SHOW TABLES WHERE", "near \"SHOW\""),
            ("SHOW VARIABLES WHERE x = 1", "no such column: x"),
        ] {
            let words = bench.refused(sql).await;
            assert!(words.contains(part), "{sql}: {words}");
        }
        let checks = bench.ask(View::Stats, "PRAGMA integrity_check").await;
        assert_eq!(
            checks,
            Err(Said::Sql("PRAGMA integrity_check is not allowed".into()))
        );
    });
}
