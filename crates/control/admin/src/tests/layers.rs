//! LOAD and SAVE, and what they promise.

use crate::engine::{Reply, View};
use crate::open::Options;
use crate::testing;

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
