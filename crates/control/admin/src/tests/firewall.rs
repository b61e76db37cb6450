//! The firewall on the admin port, as its scripts use it: loaded, refused, shown, explained.

use crate::engine::{Reply, View};
use crate::open::Options;
use crate::testing;
use bridge::{AlarmRow, Ask, Report};
use config::Mode;

const DIGEST: u64 = 0x1C46_AE52_9DD5_A40E;

#[test]
fn the_firewall_goes_up_and_down_the_layers() {
    testing::with(Options::default(), |bench| async move {
        bench
            .script(
                "INSERT INTO mysql_firewall_whitelist_users (active, username, client_address, mode, comment) \
                 VALUES (1, 'app', '', 'PROTECTING', 'x'), (1, 'app', '10.0.0.1', 'OFF', ''), (0, 'old', '', 'OFF', '');
                 INSERT INTO mysql_firewall_whitelist_rules (active, username, client_address, schemaname, flagIN, digest, comment) \
                 VALUES (1, 'app', '', 's', 0, '0x1c46ae529dd5a40e', 'y'), (0, 'app', '', 's', 1, '0x2', '');
                 INSERT INTO mysql_firewall_whitelist_sqli_fingerprints VALUES (1, 's&1o1'), (0, 'Uoe');
                 SAVE MYSQL FIREWALL TO DISK; LOAD MYSQL FIREWALL TO RUNTIME;",
            )
            .await;
        let users = "SELECT * FROM runtime_mysql_firewall_whitelist_users ORDER BY client_address";
        assert_eq!(
            bench.rows(users).await,
            [
                ["1", "app", "", "PROTECTING", "x"],
                ["1", "app", "10.0.0.1", "OFF", ""]
            ]
        );
        let rules = "SELECT * FROM runtime_mysql_firewall_whitelist_rules";
        assert_eq!(
            bench.rows(rules).await,
            [["1", "app", "", "s", "0", "0x1C46AE529DD5A40E", "y"]]
        );
        assert_eq!(
            bench
                .rows("SELECT * FROM runtime_mysql_firewall_whitelist_sqli_fingerprints")
                .await,
            [["1", "s&1o1"]]
        );
        let firewall = bench.loaded.borrow().last().unwrap().firewall.clone();
        assert_eq!(
            firewall.mode("app", "10.0.0.1"),
            Some((Mode::Off, "10.0.0.1"))
        );
        assert!(
            firewall.allows("app", "", "s", 0, DIGEST)
                && firewall.is_harmless("s&1o1")
                && !firewall.is_harmless("Uoe")
        );
        // What is in force comes back without what was not active; the disk has all.
        bench.run("SAVE MYSQL FIREWALL FROM RUNTIME").await;
        assert_eq!(
            bench
                .rows("SELECT COUNT(*) FROM mysql_firewall_whitelist_users")
                .await,
            [["2"]]
        );
        bench.run("LOAD MYSQL FIREWALL FROM DISK").await;
        assert_eq!(
            bench
                .rows("SELECT COUNT(*) FROM mysql_firewall_whitelist_users")
                .await,
            [["3"]]
        );
    });
}

#[test]
fn a_firewall_that_cannot_be_honoured_is_refused_whole() {
    testing::with(Options::default(), |bench| async move {
        bench
            .script(
                "INSERT INTO mysql_firewall_whitelist_users VALUES (1, 'app', '', 'DETECTING', '');
                 LOAD MYSQL FIREWALL TO RUNTIME;
                 UPDATE mysql_firewall_whitelist_users SET mode = 'PROTECTING';
                 INSERT INTO mysql_firewall_whitelist_rules VALUES (1, 'app', '', 's', 0, 'SELECT 1', ''), (1, 'app', '', 's', 'x', '0x1', '');",
            )
            .await;
        let words = bench.refused("LOAD MYSQL FIREWALL TO RUNTIME").await;
        assert!(
            words.starts_with(
                "MYSQL FIREWALL not loaded, nothing was changed: mysql_firewall_whitelist_rules"
            ),
            "{words}"
        );
        assert!(
            words.contains("flagIN must be a whole number; 'x' is not"),
            "{words}"
        );
        bench
            .run("DELETE FROM mysql_firewall_whitelist_rules WHERE flagIN = 'x'")
            .await;
        let words = bench.refused("LOAD MYSQL FIREWALL TO RUNTIME").await;
        assert!(
            words
                .ends_with("digest must be a number such as 0x1D8D2DD2EE6E8B0A; 'SELECT 1' is not"),
            "{words}"
        );
        assert_eq!(
            bench
                .rows("SELECT mode FROM runtime_mysql_firewall_whitelist_users")
                .await,
            [["DETECTING"]]
        );
        assert_eq!(bench.loaded.borrow().len(), 1);
        bench.refused("INSERT INTO mysql_firewall_whitelist_users VALUES (1, 'app', '10.0.0.1', 'ON', '')").await;
    });
}

#[test]
fn a_firewall_that_nobody_has_told_anything_is_switched_on_with_a_warning() {
    testing::with(Options::default(), |bench| async move {
        let info = async |sql: &str| match bench.ask(View::Admin, sql).await {
            Ok(Reply::Done { info, .. }) => info,
            other => panic!("{other:?}"),
        };
        bench.run("SET mysql-firewall_whitelist_enabled = 1").await;
        let words = "mysql-firewall_whitelist_enabled is true, and the firewall has neither users nor rules in force: every statement of \
                     every user is refused";
        assert_eq!(info("LOAD MYSQL VARIABLES TO RUNTIME").await, words);
        assert_eq!(info("LOAD MYSQL VARIABLES TO RUNTIME").await, "");
        assert_eq!(info("LOAD MYSQL FIREWALL TO RUNTIME").await, words);
        bench
            .run(
                "INSERT INTO mysql_firewall_whitelist_users VALUES (1, 'app', '', 'DETECTING', '')",
            )
            .await;
        assert_eq!(info("LOAD MYSQL FIREWALL TO RUNTIME").await, "");
    });
}

#[test]
fn options_that_change_digests_are_told_while_the_firewall_is_on() {
    testing::with(Options::default(), |bench| async move {
        let info = async |sql: &str| match bench.ask(View::Admin, sql).await {
            Ok(Reply::Done { info, .. }) => info,
            other => panic!("{other:?}"),
        };
        bench
            .run(
                "INSERT INTO mysql_firewall_whitelist_users VALUES (1, 'app', '', 'DETECTING', '')",
            )
            .await;
        bench.run("LOAD MYSQL FIREWALL TO RUNTIME").await;
        bench
            .run("SET mysql-query_digests_no_digits = 'true'")
            .await;
        assert_eq!(info("LOAD MYSQL VARIABLES TO RUNTIME").await, "");
        bench.run("SET mysql-firewall_whitelist_enabled = 1").await;
        let digits = "mysql-query_digests_no_digits is true: the digests of the statistics are not those of the firewall, for which it is always \
                      false, and rules made of them may allow nothing; LEARN MYSQL FIREWALL, stats_mysql_firewall and EXPLAIN ROUTE have the \
                      firewall's";
        assert_eq!(info("LOAD MYSQL VARIABLES TO RUNTIME").await, digits);
        assert_eq!(info("LOAD MYSQL VARIABLES TO RUNTIME").await, "");
        assert_eq!(info("LOAD MYSQL FIREWALL TO RUNTIME").await, digits);
        bench.script("SET mysql-query_digests_no_digits = 'false'; SET mysql-query_digests_grouping_limit = 5").await;
        let groups = info("LOAD MYSQL VARIABLES TO RUNTIME").await;
        assert!(
            groups.starts_with("mysql-query_digests_grouping_limit is 5:")
                && groups.contains("always 3,"),
            "{groups}"
        );
        // Lengths change no digest of the firewall's.
        bench.script("SET mysql-query_digests_grouping_limit = 3; SET mysql-query_digests_max_digest_length = 100").await;
        assert_eq!(info("LOAD MYSQL VARIABLES TO RUNTIME").await, "");
    });
}

#[test]
fn what_the_firewall_would_do_is_explained_and_what_it_did_is_shown() {
    let reports = |ask: Ask, reset: bool| match ask {
        Ask::Digests => Some(Report::Digests(vec![testing::digest_row(
            "app", "", DIGEST, "SELECT ?",
        )])),
        Ask::Alarms => {
            let alarm = testing::alarm_row("app", "s", 0, DIGEST, "blocked");
            Some(Report::Alarms(vec![AlarmRow {
                count: if reset { 7 } else { 8 },
                last_seen: 2,
                ..alarm
            }]))
        }
        _ => None,
    };
    testing::with_reports(Options::default(), Box::new(reports), |bench| async move {
        bench
            .script(
                "INSERT INTO mysql_users (username, password, default_schema) VALUES ('app', 'x', 's'); LOAD MYSQL USERS TO RUNTIME;
                 INSERT INTO mysql_firewall_whitelist_users VALUES (1, 'app', '', 'DETECTING', ''); LOAD MYSQL FIREWALL TO RUNTIME;
                 SET mysql-firewall_whitelist_enabled = 'true'; SET mysql-firewall_whitelist_errormsg = 'No';
                 LOAD MYSQL VARIABLES TO RUNTIME;
                 UPDATE mysql_firewall_whitelist_users SET mode = 'PROTECTING';",
            )
            .await;
        // Before it is loaded, it can be seen what would be refused then.
        let replayed = bench.rows("EXPLAIN ROUTE AGAINST DIGESTS").await;
        let (before, after) = (
            "hostgroup 0, the user's default; firewall: detected",
            "error 'No', by the firewall; firewall: blocked",
        );
        assert_eq!(replayed.len(), 1);
        assert_eq!(replayed[0][8..], ["yes", "yes", before, after]);
        bench.run("LOAD MYSQL FIREWALL TO RUNTIME").await;
        let steps = bench.rows("EXPLAIN ROUTE 'SELECT 1' AS app").await;
        assert_eq!(
            steps[0][2..],
            [
                "firewall",
                "user 'app', client_address '' is PROTECTING; for client_address '', schemaname 's', flagIN 0, digest 0x1C46AE529DD5A40E is not \
             in mysql_firewall_whitelist_rules"
            ]
        );
        assert_eq!(steps[1][3], after);
        assert_eq!(bench.run("LEARN MYSQL FIREWALL").await, 1);
        assert!(
            bench.rows("EXPLAIN ROUTE AGAINST DIGESTS").await[0][11].starts_with("hostgroup 0")
        );
        bench.run("LOAD MYSQL FIREWALL TO RUNTIME").await;
        assert_eq!(
            bench.rows("EXPLAIN ROUTE 'SELECT 1' AS app").await[2][3],
            "hostgroup 0, the user's default"
        );
        let shown = [
            "app",
            "10.0.0.1",
            "s",
            "0",
            "0x1C46AE529DD5A40E",
            "SELECT ?",
            "blocked",
            "",
            "8",
            "1",
            "2",
        ];
        assert_eq!(
            bench.rows("SELECT * FROM stats_mysql_firewall").await,
            [shown]
        );
        assert_eq!(
            bench
                .rows("SELECT count_star FROM stats_mysql_firewall_reset")
                .await,
            [["7"]]
        );
    });
}
