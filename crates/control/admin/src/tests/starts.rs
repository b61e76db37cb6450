//! Starts: from the configuration file, or from what was saved.

use crate::engine::{Reply, View};
use crate::open::{Admin, Options, Start};
use crate::testing::{self, Directory};

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
        "mysql_query_rules=({ active=1 },\n{ rule_id=1 match_pattern=\"(\" })",
    )
    .unwrap();
    let refused = Admin::open(&options).err().unwrap();
    assert_eq!(refused.len(), 2, "{refused:?}");
    assert!(
        refused[0]
            .words
            .ends_with("line 1: mysql_query_rules: a row must say its rule_id")
    );
    assert_eq!(refused[1].table, "mysql_query_rules");
    std::fs::write(&config, "admin_variables={ mysql_ifaces=\"0.0.0.0:6032\" }").unwrap();
    // Said at the first start, and at the next one with what was saved.
    for _ in 0..2 {
        let admin = Admin::open(&options).unwrap();
        let told: Vec<_> = admin.notices().iter().map(ToString::to_string).collect();
        let known = |words: &&String| words.contains("everybody knows for 'stats'");
        assert_eq!(told.iter().filter(known).count(), 1, "{told:?}");
        assert_eq!(
            &*admin.snapshot().variables.admin_mysql_ifaces,
            "0.0.0.0:6032"
        );
    }
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
