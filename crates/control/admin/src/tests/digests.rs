//! Digests of the cores: replayed through rules and maps that are not loaded, kept, and forgotten.

use crate::open::Options;
use crate::testing;
use bridge::{Ask, DigestRow, Report};

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
