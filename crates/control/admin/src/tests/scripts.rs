//! Scripts of the field, pasted as they are.

use crate::open::Options;
use crate::testing::{self, Directory};

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
