//! What operators are shown: checksums, statistics, routes and help.

use crate::engine::{Reply, View};
use crate::open::Options;
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
