//! A Millrace among ProxySQLs: what is loaded on one of them is in force on all that know it. The
//! ProxySQLs are models, written after the facts in `docs/features/proxysql-cluster.md`.
#![forbid(unsafe_code)]

use std::fs;
use std::time::Duration;

use conformance::etcd::Etcd;
use conformance::proxy::{Driver, Proxy, Wish};
use conformance::proxysql::{Module, ProxySql, Rows, cells};
use conformance::servers::{Server, Vendor};
use conformance::trials::{self, expect, same, soon};

type Outcome = Result<(), String>;

const SECRET: &str = "hush-hush";
const LATE: &str = "2.7.3-12-g50b7f85";
const EARLY: &str = "2.5.5-10-g195bd70";
const NEWEST: &str = "3.0.1-16-g0a1b2c3";

fn main() {
    trials::run_once(&[
        (
            "what_a_proxysql_has_loaded_is_in_force_here_and_saved",
            taken_over,
        ),
        (
            "what_is_loaded_here_is_taken_over_by_a_proxysql_and_goes_round_no_more",
            followed,
        ),
        ("a_2_5_and_a_3_0_are_spoken_to_in_their_own_words", versions),
        ("another_version_is_told_once_and_not_followed", strangers),
        (
            "what_cannot_be_used_or_is_not_what_was_announced_changes_nothing",
            refused,
        ),
        (
            "of_two_millraces_and_a_proxysql_all_have_what_each_has_loaded",
            mixed,
        ),
        (
            "a_proxysql_that_is_in_no_list_here_follows_by_the_version_that_was_set",
            one_way,
        ),
        (
            "one_proxy_of_a_fleet_exchanges_with_proxysqls_and_another_takes_its_place",
            fleet,
        ),
    ])
}

/// A Millrace that the models may log in to.
fn millrace(driver: Driver, server: &Server) -> Result<Proxy, String> {
    let proxy = Proxy::start(driver, &Wish::in_front_of(server))?;
    proxy.admin(&format!(
        "SET admin-admin_credentials = 'admin:admin;cluster:{SECRET}'; SET admin-cluster_username = 'cluster'; \
         SET admin-cluster_password = '{SECRET}'; SET admin-cluster_check_interval_ms = 50; \
         LOAD ADMIN VARIABLES TO RUNTIME; SAVE ADMIN VARIABLES TO DISK"
    ))?;
    Ok(proxy)
}

fn model(version: &'static str, peer: &Proxy) -> Result<ProxySql, String> {
    ProxySql::start(version, peer.admin_port, SECRET).map_err(|error| error.to_string())
}

/// Puts others into the list of a Millrace.
fn introduce(proxy: &Proxy, ports: &[u16]) -> Outcome {
    let rows: Vec<_> = ports
        .iter()
        .map(|port| format!("('127.0.0.1', {port})"))
        .collect();
    let rows = rows.join(", ");
    proxy.admin(&format!(
        "DELETE FROM proxysql_servers; INSERT INTO proxysql_servers (hostname, port) VALUES {rows}; LOAD PROXYSQL SERVERS TO RUNTIME"
    ))?;
    Ok(())
}

/// A Millrace and a ProxySQL that have looked at each other.
fn together(driver: Driver, version: &'static str) -> Result<(Server, Proxy, ProxySql), String> {
    let server = Server::start(Vendor::MariaDb)?;
    let proxy = millrace(driver, &server)?;
    let other = model(version, &proxy)?;
    introduce(&proxy, &[other.port])?;
    soon("1\n", || {
        ask(
            &proxy,
            "SELECT checks_OK > 1 FROM stats_proxysql_servers_status",
        )
    })?;
    soon("1\n", || {
        ask(
            &proxy,
            "SELECT COUNT(*) FROM stats_proxysql_servers_clients_status",
        )
    })?;
    Ok((server, proxy, other))
}

/// Returns what the admin port says, also that it cannot say it now.
fn ask(proxy: &Proxy, sql: &str) -> Result<String, String> {
    proxy.admin(sql).or_else(|error| {
        if error.contains("try again") {
            Ok(error)
        } else {
            Err(error)
        }
    })
}

/// The log has these words, or has them soon.
fn logged(proxy: &Proxy, words: &str) -> Outcome {
    soon("true", || {
        let log = whole_log(proxy);
        Ok(match log.contains(words) {
            true => "true".to_owned(),
            false => format!("no {words:?} in\n{log}"),
        })
    })
}

fn whole_log(proxy: &Proxy) -> String {
    fs::read_to_string(proxy.data().join("log")).unwrap_or_default()
}

fn user(name: &'static str, password: &'static str) -> Vec<&'static str> {
    vec![
        name, password, "0", "0", "NULL", "0", "1", "0", "1", "1", "10000", "", "",
    ]
}

fn of_rows(rows: &[Vec<&'static str>]) -> Rows {
    cells(&rows.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

fn rule(id: &'static str, digest: &'static str, comment: &'static str) -> Vec<&'static str> {
    let mut row = vec!["NULL"; 34];
    for (at, cell) in [
        (0, id),
        (3, "0"),
        (8, digest),
        (10, "0"),
        (11, "caseless"),
        (14, "0"),
        (31, "1"),
        (32, ""),
        (33, comment),
    ] {
        row[at] = cell;
    }
    row
}

fn server_row(port: &str) -> Rows {
    cells(&[&[
        "0",
        "127.0.0.1",
        port,
        "0",
        "ONLINE",
        "1",
        "0",
        "500",
        "0",
        "0",
        "0",
        "theirs",
    ]])
}

/// All of servers but for the first result.
fn no_topologies() -> Vec<Rows> {
    vec![Rows::new(); 6]
}

/// Checksums on both sides are the same, as the model has seen it.
fn in_step(proxy: &Proxy, other: &ProxySql, modules: &[&str]) -> Outcome {
    for name in modules {
        let sql = format!(
            "SELECT diff_check, checksum FROM stats_proxysql_servers_checksums WHERE name = '{name}' AND port = {}",
            other.port
        );
        let wanted = || format!("0\t{}\n", other.module(name).checksum);
        soon("same", || {
            let (found, wanted) = (ask(proxy, &sql)?, wanted());
            Ok(if found == wanted {
                "same".to_owned()
            } else {
                format!("{name}: {found} and not {wanted}; {:?}", other.failures())
            })
        })?;
    }
    Ok(())
}

fn taken_over(driver: Driver) -> Outcome {
    let (server, proxy, other) = together(driver, LATE)?;
    let (rules, fast) = (
        of_rows(&[rule("7", "^SELECT 7", "theirs")]),
        cells(&[&["app", "shop", "0", "0", "it's"]]),
    );
    other.load("mysql_query_rules", vec![rules, fast]);
    let users = of_rows(&[user("app", "secret"), user("new", "neu")]);
    other.load("mysql_users", vec![users]);
    let port = server.port.to_string();
    let mut servers = vec![server_row(&port)];
    servers.extend(no_topologies());
    servers[1] = cells(&[&["40", "41", "read_only", "pair"]]);
    servers[3] = cells(&[&["50", "51", "52", "53", "1", "1", "0", "0", "NULL"]]);
    servers[5] = cells(&[&[
        "0",
        "1000",
        "-1",
        "10",
        "",
        "1",
        "1",
        "1000",
        "",
        "",
        "",
        "attributes",
    ]]);
    other.load("mysql_servers_v2", servers);
    other.set(
        "mysql_variables",
        &[("mysql-max_connections", "777"), ("mysql-of_tomorrow", "2")],
    );
    other.set("admin_variables", &[("admin-refresh_interval", "1999")]);
    for (wanted, sql) in [
        (
            "7\ttheirs\n",
            "SELECT rule_id, comment FROM runtime_mysql_query_rules",
        ),
        (
            "app\tshop\tit's\n",
            "SELECT username, schemaname, comment FROM runtime_mysql_query_rules_fast_routing",
        ),
        (
            "app\nnew\n",
            "SELECT DISTINCT username FROM runtime_mysql_users ORDER BY 1",
        ),
        ("theirs\n", "SELECT comment FROM runtime_mysql_servers"),
        (
            "40\t41\n",
            "SELECT writer_hostgroup, reader_hostgroup FROM runtime_mysql_replication_hostgroups",
        ),
        (
            "50\t53\n",
            "SELECT writer_hostgroup, offline_hostgroup FROM runtime_mysql_galera_hostgroups",
        ),
        (
            "attributes\n",
            "SELECT comment FROM runtime_mysql_hostgroup_attributes",
        ),
        (
            "777\n",
            "SELECT variable_value FROM runtime_global_variables WHERE variable_name = 'mysql-max_connections'",
        ),
        (
            "1999\n",
            "SELECT variable_value FROM runtime_global_variables WHERE variable_name = 'admin-refresh_interval'",
        ),
        ("7\n", "SELECT rule_id FROM disk.mysql_query_rules"),
        (
            "777\n",
            "SELECT variable_value FROM disk.global_variables WHERE variable_name = 'mysql-max_connections'",
        ),
    ] {
        soon(wanted, || ask(&proxy, sql))
            .map_err(|why| format!("{sql}: {why}\n{}", whole_log(&proxy)))?;
    }
    same(&proxy.query("SELECT 7")?, "7")?;
    let all = [
        "mysql_query_rules",
        "mysql_users",
        "mysql_servers_v2",
        "mysql_variables",
        "admin_variables",
    ];
    in_step(&proxy, &other, &all)?;
    // The port for operators is still where it was, and no password is in the log.
    let log = whole_log(&proxy);
    expect(!log.contains("neu") && !log.contains(SECRET), || {
        log.clone()
    })
}

fn followed(driver: Driver) -> Outcome {
    let (_server, proxy, other) = together(driver, LATE)?;
    proxy.admin(
        "INSERT INTO mysql_query_rules (rule_id, active, match_digest, destination_hostgroup, apply, comment) \
             VALUES (20, 1, '^SELECT', 0, 1, 'ours'), (3, 1, '^INSERT', 0, 1, NULL), (4, 0, '^UPDATE', 0, 1, NULL); \
         INSERT INTO mysql_query_rules_fast_routing VALUES ('app', 'b', 0, 0, ''), ('app', 'a', 0, 0, ''); \
         LOAD MYSQL QUERY RULES TO RUNTIME; \
         INSERT INTO mysql_users (username, password, default_hostgroup) VALUES ('ours', 'x', 0); LOAD MYSQL USERS TO RUNTIME; \
         INSERT INTO mysql_replication_hostgroups VALUES (60, 61, 'read_only', 'ours'); LOAD MYSQL SERVERS TO RUNTIME; \
         SET mysql-max_connections = 1234; LOAD MYSQL VARIABLES TO RUNTIME; \
         SET admin-refresh_interval = 2222; LOAD ADMIN VARIABLES TO RUNTIME; \
         UPDATE proxysql_servers SET comment = 'ours'; LOAD PROXYSQL SERVERS TO RUNTIME",
    )?;
    let has = |name: &'static str, nth: usize, wanted: &str| {
        soon("true", || {
            let rows = other.rows(name, nth);
            let found = rows.iter().any(|row| row.contains(wanted));
            Ok(if found {
                "true".to_owned()
            } else {
                format!("{name}: {rows:?}; {:?}", other.failures())
            })
        })
    };
    has("mysql_query_rules", 0, "|ours")?;
    same(
        &other.rows("mysql_query_rules", 1).join(" "),
        "app|a|0|0| app|b|0|0|",
    )?;
    has("mysql_users", 0, "ours|x|0|0|")?;
    has("mysql_servers_v2", 1, "60|61|read_only|ours")?;
    has("mysql_variables", 0, "mysql-max_connections|1234")?;
    has("mysql_variables", 0, "mysql-of_tomorrow|1")?;
    has("admin_variables", 0, "admin-refresh_interval|2222")?;
    has("proxysql_servers", 0, "|ours")?;
    let all = [
        "mysql_query_rules",
        "mysql_users",
        "mysql_servers_v2",
        "mysql_variables",
        "admin_variables",
        "proxysql_servers",
    ];
    in_step(&proxy, &other, &all)?;
    let versions = || all.map(|name| other.module(name).version);
    let (theirs, ours) = (versions(), taken(&proxy)?);
    std::thread::sleep(Duration::from_millis(1500));
    expect(versions() == theirs, || {
        format!("{theirs:?}, and then {:?}", versions())
    })?;
    same(&taken(&proxy)?, &ours)?;
    expect(other.failures().is_empty(), || {
        format!("{:?}", other.failures())
    })?;
    // What is Millrace's own is no difference.
    proxy.admin("INSERT INTO mysql_query_rewrite (rewrite_id, active, pattern, replacement) VALUES (1, 1, 'SELECT 71', 'SELECT 72'); LOAD MYSQL QUERY RULES TO RUNTIME")?;
    std::thread::sleep(Duration::from_millis(500));
    expect(versions() == theirs, || format!("{:?}", versions()))?;
    // And back again: what the ProxySQL loads has the template stay.
    let mut results: Vec<Rows> = other.module("mysql_query_rules").results;
    results[1].pop();
    other.load("mysql_query_rules", results);
    soon("1\n", || {
        ask(
            &proxy,
            "SELECT COUNT(*) FROM runtime_mysql_query_rules_fast_routing",
        )
    })?;
    same(
        &ask(&proxy, "SELECT COUNT(*) FROM runtime_mysql_query_rewrite")?,
        "1",
    )?;
    in_step(&proxy, &other, &all)
}

/// How often something was taken over.
fn taken(proxy: &Proxy) -> Result<String, String> {
    let sql = "SELECT Variable_Value FROM stats_mysql_global WHERE Variable_Name = 'Millrace_cluster_taken'";
    Ok(ask(proxy, sql)?.trim().to_owned())
}

fn versions(driver: Driver) -> Outcome {
    for (version, servers) in [(EARLY, "mysql_servers"), (NEWEST, "mysql_servers_v2")] {
        let (server, proxy, other) = together(driver, version)?;
        let of = |what: &str| format!("{version}: {what}\n{}", whole_log(&proxy));
        other.load(
            "mysql_users",
            vec![of_rows(&[user("app", "secret"), user("new", "neu")])],
        );
        let users = "SELECT COUNT(DISTINCT username) FROM runtime_mysql_users";
        soon("2\n", || ask(&proxy, users)).map_err(|why| of(&why))?;
        let mut results = vec![server_row(&server.port.to_string())];
        results.extend(no_topologies());
        if version == EARLY {
            results.pop();
        }
        other.load(servers, results);
        soon("theirs\n", || {
            ask(&proxy, "SELECT comment FROM runtime_mysql_servers")
        })
        .map_err(|why| of(&why))?;
        in_step(&proxy, &other, &["mysql_users", servers]).map_err(|why| of(&why))?;
        proxy.admin("UPDATE mysql_servers SET comment = 'ours'; LOAD MYSQL SERVERS TO RUNTIME; UPDATE mysql_users SET comment = 'ours'; LOAD MYSQL USERS TO RUNTIME")?;
        soon("true", || {
            let all = [other.rows(servers, 0), other.rows("mysql_users", 0)].concat();
            let is_ours = !all.is_empty() && all.iter().all(|row| row.ends_with("|ours"));
            Ok(format!(
                "{is_ours}{}",
                if is_ours {
                    String::new()
                } else {
                    format!(" {all:?}")
                }
            ))
        })
        .map_err(|why| of(&why))?;
        in_step(&proxy, &other, &["mysql_users", servers]).map_err(|why| of(&why))?;
        expect(other.failures().is_empty(), || {
            of(&format!("{:?}", other.failures()))
        })?;
    }
    Ok(())
}

fn strangers(driver: Driver) -> Outcome {
    let (_server, proxy, other) = together(driver, LATE)?;
    let (upgraded, ancient) = (
        model("2.6.6-1-g1111111", &proxy)?,
        model("2.4.8-1-g2222222", &proxy)?,
    );
    upgraded.load("mysql_users", vec![of_rows(&[user("wrong", "x")])]);
    introduce(&proxy, &[other.port, upgraded.port, ancient.port])?;
    for (stranger, words) in [
        (
            &upgraded,
            "its @@version is 2.6.6-1-g1111111, and that of 127.0.0.1:",
        ),
        (
            &ancient,
            "its @@version is 2.4.8-1-g2222222: Millraces of this version are followed, and ProxySQLs from 2.5 to 3.0",
        ),
    ] {
        let sql = format!(
            "SELECT checks_ERR > 5 FROM stats_proxysql_servers_status WHERE port = {}",
            stranger.port
        );
        soon("1\n", || ask(&proxy, &sql))?;
        let log = whole_log(&proxy);
        let told = log.matches(words).count();
        expect(told == 1, || format!("told {told} times: {words}\n{log}"))?;
        // Nor do they follow: the version here is that of the first.
        soon("true", || Ok((stranger.strangers() > 0).to_string()))?;
    }
    let wrong = "SELECT COUNT(DISTINCT username) FROM runtime_mysql_users WHERE username = 'wrong'";
    same(&ask(&proxy, wrong)?, "0")?;
    // Once the others of the old version are gone, the new one is that of the cluster.
    introduce(&proxy, &[upgraded.port])?;
    soon("1\n", || ask(&proxy, wrong))?;
    expect(whole_log(&proxy).contains("answers again"), || {
        whole_log(&proxy)
    })
}

fn refused(driver: Driver) -> Outcome {
    let (_server, proxy, other) = together(driver, LATE)?;
    let load = |digest: &'static str| {
        let rules = of_rows(&[rule("1", "^SELECT 1$", "fine"), rule("2", digest, "theirs")]);
        other.load("mysql_query_rules", vec![rules, Rows::new()]);
    };
    load("^(SELECT");
    logged(&proxy, "mysql_query_rules of 127.0.0.1:")?;
    logged(&proxy, "is not taken over, nothing was changed:")?;
    let count = "SELECT COUNT(*) FROM runtime_mysql_query_rules";
    same(&ask(&proxy, count)?, "0")?;
    same(&ask(&proxy, "SELECT COUNT(*) FROM mysql_query_rules")?, "0")?;
    let grows = format!(
        "SELECT diff_check > 5 FROM stats_proxysql_servers_checksums WHERE name = 'mysql_query_rules' AND port = {}",
        other.port
    );
    soon("1\n", || ask(&proxy, &grows))?;
    // Another one is tried at once.
    load("^SELECT 2$");
    soon("2\n", || ask(&proxy, count))?;
    // What is fetched is not what was announced: as if it had been loaded in between.
    other.lies(true);
    load("^SELECT 3$");
    logged(&proxy, "was announced")?;
    let digest = "SELECT match_digest FROM runtime_mysql_query_rules WHERE rule_id = 2";
    same(&ask(&proxy, digest)?, "^SELECT 2$")?;
    other.lies(false);
    load("^SELECT 4$");
    soon("^SELECT 4$\n", || ask(&proxy, digest))?;
    // Who mixes servers with what monitors move is named.
    other.set(
        "admin_variables",
        &[("admin-cluster_mysql_servers_sync_algorithm", "1")],
    );
    soon("true", || {
        proxy.admin("LOAD MYSQL SERVERS TO RUNTIME")?;
        let words = "set admin-cluster_mysql_servers_sync_algorithm to 2 there";
        Ok(whole_log(&proxy).contains(words).to_string())
    })
}

fn mixed(driver: Driver) -> Outcome {
    let server = Server::start(Vendor::MariaDb)?;
    let (one, two) = (millrace(driver, &server)?, millrace(driver, &server)?);
    let other = model(LATE, &one)?;
    for proxy in [&one, &two] {
        introduce(proxy, &[one.admin_port, two.admin_port, other.port])?;
    }
    for proxy in [&one, &two] {
        soon("3\n", || {
            ask(
                proxy,
                "SELECT COUNT(*) FROM stats_proxysql_servers_status WHERE checks_OK > 1",
            )
        })?;
    }
    other.load(
        "mysql_users",
        vec![of_rows(&[user("app", "secret"), user("theirs", "x")])],
    );
    let users = "SELECT group_concat(DISTINCT username) FROM runtime_mysql_users";
    for proxy in [&one, &two] {
        soon("app,theirs\n", || ask(proxy, users))
            .map_err(|why| format!("{why}\n{}", whole_log(proxy)))?;
    }
    // What only Millraces know goes to Millraces, and the rest to all.
    two.admin(
        "INSERT INTO mysql_query_rewrite (rewrite_id, active, pattern, replacement) VALUES (1, 1, 'SELECT 71', 'SELECT 72'); \
         INSERT INTO mysql_query_rules (rule_id, active, match_digest, apply) VALUES (5, 1, '^SELECT', 1); LOAD MYSQL QUERY RULES TO RUNTIME",
    )?;
    soon("1\t1\n", || {
        ask(
            &one,
            "SELECT (SELECT COUNT(*) FROM runtime_mysql_query_rewrite), (SELECT COUNT(*) FROM runtime_mysql_query_rules)",
        )
    })?;
    soon("5|", || {
        let rows = other.rows("mysql_query_rules", 0);
        Ok(rows
            .first()
            .map_or_else(String::new, |row| row.chars().take(2).collect()))
    })?;
    for proxy in [&one, &two] {
        in_step(proxy, &other, &["mysql_users", "mysql_query_rules"])?;
    }
    let before: Module = other.module("mysql_query_rules");
    let counts = [taken(&one)?, taken(&two)?];
    std::thread::sleep(Duration::from_millis(1000));
    expect(
        other.module("mysql_query_rules").version == before.version,
        || "it goes round".to_owned(),
    )?;
    same(&[taken(&one)?, taken(&two)?].join(" "), &counts.join(" "))
}

fn one_way(driver: Driver) -> Outcome {
    let server = Server::start(Vendor::MariaDb)?;
    let proxy = millrace(driver, &server)?;
    let other = model(LATE, &proxy)?;
    soon("true", || Ok((other.strangers() > 1).to_string()))?;
    // One that asks nobody else lists itself.
    introduce(&proxy, &[proxy.admin_port])?;
    soon("1\n", || {
        ask(
            &proxy,
            "SELECT checks_OK > 1 FROM stats_proxysql_servers_status",
        )
    })?;
    proxy.admin(&format!(
        "SET admin-cluster_proxysql_version = '{LATE}'; LOAD ADMIN VARIABLES TO RUNTIME; \
         INSERT INTO mysql_users (username, password) VALUES ('ours', 'x'); LOAD MYSQL USERS TO RUNTIME"
    ))?;
    soon("true", || {
        let rows = other.rows("mysql_users", 0);
        let found = rows.iter().any(|row| row.starts_with("ours|x|"));
        Ok(if found {
            "true".to_owned()
        } else {
            format!("{rows:?} {:?}", other.failures())
        })
    })?;
    // Nobody has said which variables there are: they stay as they are there.
    same(&other.module("mysql_variables").version.to_string(), "1")?;
    expect(other.failures().is_empty(), || {
        format!("{:?}", other.failures())
    })
}

/// Two Millraces with one truth in etcd, and a ProxySQL that both have in their lists.
fn fleet(driver: Driver) -> Outcome {
    let server = Server::start(Vendor::MariaDb)?;
    let etcd = Etcd::start(1)?;
    let mut all = [millrace(driver, &server)?, millrace(driver, &server)?];
    let other = model(LATE, &all[0])?;
    let behind = model(LATE, &all[1])?;
    for proxy in &all {
        let key = proxy.data().join("fleet.key");
        fs::write(&key, "0123456789abcdef0123456789abcdef").map_err(|error| error.to_string())?;
        proxy.admin(&format!(
            "SET admin-cluster_store = '{}'; SET admin-cluster_key_file = '{}'; SET admin-cluster_proxysql_version = '{LATE}'; \
             LOAD ADMIN VARIABLES TO RUNTIME; SAVE ADMIN VARIABLES TO DISK",
            etcd.store(),
            key.display()
        ))?;
    }
    for proxy in &all {
        soon("2\n", || {
            ask(
                proxy,
                "SELECT COUNT(DISTINCT proxy) FROM stats_millrace_fleet",
            )
        })?;
    }
    let list = format!(
        "DELETE FROM proxysql_servers; INSERT INTO proxysql_servers (hostname, port) VALUES ('127.0.0.1', {}), ('127.0.0.1', {}), ('127.0.0.1', {}); \
         LOAD PROXYSQL SERVERS TO RUNTIME; SAVE PROXYSQL SERVERS TO DISK",
        other.port, all[0].admin_port, all[1].admin_port
    );
    all[0].admin(&list)?;
    // What the ProxySQL has loaded is the truth of the fleet.
    other.load(
        "mysql_users",
        vec![of_rows(&[user("app", "secret"), user("theirs", "x")])],
    );
    let users = "SELECT group_concat(DISTINCT username) FROM runtime_mysql_users";
    for proxy in &all {
        soon("app,theirs\n", || ask(proxy, users))
            .map_err(|why| format!("{why}\n{}", whole_log(proxy)))?;
    }
    // One of the two has asked it.
    let looks = "SELECT SUM(checks_OK + checks_ERR > 1) FROM stats_proxysql_servers_status";
    let asked = |proxy: &Proxy| Ok::<_, String>(ask(proxy, looks)?.trim() != "0");
    let bridge = usize::from(!asked(&all[0])?);
    expect(asked(&all[bridge])? && !asked(&all[1 - bridge])?, || {
        "there is one bridge".to_owned()
    })?;
    // What is loaded on the one that is none is followed by each ProxySQL, whichever it asks.
    all[1 - bridge].admin("INSERT INTO mysql_query_rules (rule_id, active, match_digest, apply) VALUES (5, 1, '^SELECT', 1); LOAD MYSQL QUERY RULES TO RUNTIME")?;
    for follower in [&other, &behind] {
        soon("true", || {
            let rows = follower.rows("mysql_query_rules", 0);
            let has = rows.iter().any(|row| row.starts_with("5|"));
            Ok(if has {
                "true".to_owned()
            } else {
                format!("{rows:?} {:?}", follower.failures())
            })
        })?;
    }
    // The next one takes its place.
    all[bridge].kill();
    other.load(
        "mysql_users",
        vec![of_rows(&[user("app", "secret"), user("later", "x")])],
    );
    soon("app,later\n", || ask(&all[1 - bridge], users))?;
    all[bridge].restart()?;
    soon("app,later\n", || ask(&all[bridge], users))
}
