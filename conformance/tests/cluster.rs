//! Several proxies with one configuration: what is loaded on one of them is in force on all, or on
//! none but that one.
#![forbid(unsafe_code)]

use std::borrow::Borrow;
use std::fmt::Write as _;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{fs, thread};

use conformance::proxy::{Driver, Proxy, Wish};
use conformance::servers::{Server, Vendor};
use conformance::trials::{self, expect, same, soon};

type Outcome = Result<(), String>;

fn main() {
    trials::run_once(&[
        (
            "fifty_thousand_fast_routes_of_one_are_routed_by_on_all",
            fast_routes,
        ),
        ("every_module_is_edited_on_another_proxy_in_turn", in_turn),
        ("what_one_cannot_load_leaves_nothing_there", half_way),
        (
            "a_proxy_that_was_down_gets_what_it_missed_and_gives_what_it_saved",
            down_and_back,
        ),
        (
            "a_new_proxy_gets_everything_and_overwrites_nothing",
            newcomer,
        ),
        ("proxies_that_were_alone_come_together_by_one_load", alone),
        (
            "what_was_loaded_in_the_same_second_is_nobody_elses",
            conflict,
        ),
        ("who_dies_while_it_gives_or_takes_leaves_nothing_half", torn),
        ("what_is_no_proxy_is_told_and_holds_up_nobody", stranger),
        (
            "a_wrong_password_is_told_and_nothing_is_taken_over",
            wrong_password,
        ),
    ])
}

/// Logs in to the others.
const SECRET: &str = "hush-hush";

/// Where all of them are, and how often they look at each other.
fn introduce(proxies: &[&Proxy]) -> Result<(), String> {
    let mut rows = String::new();
    for proxy in proxies {
        let _ = write!(
            rows,
            "{}('127.0.0.1', {})",
            if rows.is_empty() { "" } else { ", " },
            proxy.admin_port
        );
    }
    for proxy in proxies {
        proxy.admin(&format!(
            "SET admin-admin_credentials = 'admin:admin;cluster:{SECRET}'; SET admin-cluster_username = 'cluster'; \
             SET admin-cluster_password = '{SECRET}'; SET admin-cluster_check_interval_ms = 50; \
             LOAD ADMIN VARIABLES TO RUNTIME; SAVE ADMIN VARIABLES TO DISK; \
             DELETE FROM proxysql_servers; INSERT INTO proxysql_servers (hostname, port) VALUES {rows}; \
             LOAD PROXYSQL SERVERS TO RUNTIME; SAVE PROXYSQL SERVERS TO DISK"
        ))?;
    }
    Ok(())
}

/// So many proxies in front of one server.
fn together(driver: Driver, server: &Server, count: usize) -> Result<Vec<Proxy>, String> {
    let wish = Wish::in_front_of(server);
    let proxies = (0..count)
        .map(|_| Proxy::start(driver, &wish))
        .collect::<Result<Vec<_>, _>>()?;
    introduce(&proxies.iter().collect::<Vec<_>>())?;
    // An edit is later than what it replaces where that has been seen: all have looked at each
    // other.
    until_looked(&proxies)?;
    Ok(proxies)
}

/// Returns what the admin port says, also that it cannot say it now: the cores are told of
/// something that has just been taken over.
fn ask(proxy: &Proxy, sql: &str) -> Result<String, String> {
    proxy.admin(sql).or_else(|error| {
        if error.contains("try again") {
            Ok(error)
        } else {
            Err(error)
        }
    })
}

/// Everybody has had two answers of everybody.
fn until_looked(proxies: &[Proxy]) -> Outcome {
    for proxy in proxies {
        soon(&format!("{}\n", proxies.len()), || {
            ask(
                proxy,
                "SELECT COUNT(*) FROM stats_proxysql_servers_status WHERE checks_OK > 1",
            )
        })?;
    }
    some_looks();
    Ok(())
}

fn checksums(proxy: &Proxy) -> Result<String, String> {
    proxy.admin("SELECT name, checksum FROM runtime_checksums_values ORDER BY name")
}

/// Returns what `runtime_checksums_values` has of a module.
fn of(proxy: &Proxy, column: &str, module: &str) -> Result<String, String> {
    proxy
        .admin(&format!(
            "SELECT {column} FROM runtime_checksums_values WHERE name = '{module}'"
        ))
        .map(|said| said.trim().to_owned())
}

/// All have the same, and work by it.
fn in_step<P: Borrow<Proxy>>(proxies: &[P]) -> Outcome {
    soon("the same", || {
        let all = proxies
            .iter()
            .map(|proxy| checksums(proxy.borrow()))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(if all.iter().all(|other| *other == all[0]) {
            "the same".to_owned()
        } else {
            all.join("\n")
        })
    })?;
    proxies
        .iter()
        .try_for_each(|proxy| confirmed(proxy.borrow()))
}

/// The cores work by what is in force.
fn confirmed(proxy: &Proxy) -> Outcome {
    let sql = "SELECT COUNT(*) >= 0 FROM runtime_mysql_query_rules";
    soon("1\n", || ask(proxy, sql))
}

fn counted(proxy: &Proxy, what: &str) -> Result<u64, String> {
    let sql = format!(
        "SELECT Variable_Value FROM stats_mysql_global WHERE Variable_Name = 'Millrace_cluster_{what}'"
    );
    proxy
        .admin(&sql)?
        .trim()
        .parse()
        .map_err(|_| format!("no {what}"))
}

/// Waits until something has been counted.
fn until_counted(proxy: &Proxy, what: &str, least: u64) -> Outcome {
    soon("enough", || {
        counted(proxy, what).map(|count| {
            if count >= least {
                "enough".into()
            } else {
                count.to_string()
            }
        })
    })
}

fn whole_log(proxy: &Proxy) -> String {
    fs::read_to_string(proxy.data().join("log")).unwrap_or_default()
}

/// Some looks of everybody at everybody else.
fn some_looks() {
    thread::sleep(Duration::from_millis(600));
}

const SHARDS: usize = 50_000;

/// A47: rules and fast routing that are loaded on one proxy are what the others route by: real
/// statements in some of the schemas, each of which is on one of two servers only.
fn fast_routes(driver: Driver) -> Outcome {
    let (even, odd) = (
        Server::start(Vendor::MariaDb)?,
        Server::start(Vendor::MariaDb)?,
    );
    let mut wish = Wish::in_front_of(&even);
    let _ = write!(
        wish.servers,
        ",\n{{ address = \"127.0.0.1\", port = {}, hostgroup = 1 }}",
        odd.port
    );
    let proxies = (0..3)
        .map(|_| Proxy::start(driver, &wish))
        .collect::<Result<Vec<_>, _>>()?;
    introduce(&proxies.iter().collect::<Vec<_>>())?;
    until_looked(&proxies)?;
    let some: Vec<usize> = (1..=SHARDS).step_by(777).collect();
    for (server, rest) in [(&even, 0), (&odd, 1)] {
        let create: String = some
            .iter()
            .filter(|shard| *shard % 2 == rest)
            .map(|shard| format!("CREATE DATABASE shard_{shard};"))
            .collect();
        server.root(&create)?;
    }
    // Written in another order than they are kept in, on a proxy that is not the first in the list.
    proxies[1].admin(&format!(
        "INSERT INTO mysql_query_rules (rule_id, active, username, flagOUT) VALUES (5, 1, 'app', 7); \
         INSERT INTO mysql_query_rules_fast_routing (username, schemaname, flagIN, destination_hostgroup, comment) \
         WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {SHARDS}) \
         SELECT 'app', 'shard_' || i, 7, i % 2, '' FROM n ORDER BY i * 7919 % 50021; \
         LOAD MYSQL QUERY RULES TO RUNTIME"
    ))?;
    let begun = Instant::now();
    let wanted = of(&proxies[1], "checksum", "mysql_query_rules")?;
    for proxy in &proxies {
        soon(&wanted, || of(proxy, "checksum", "mysql_query_rules"))?;
        confirmed(proxy)?;
    }
    eprintln!(
        "{driver}: {SHARDS} fast routes were everywhere after {:.2} s",
        begun.elapsed().as_secs_f64()
    );
    let asked: String = some
        .iter()
        .map(|shard| format!("USE shard_{shard};\nSELECT @@port, SCHEMA();\n"))
        .collect();
    let home = |shard: &usize| {
        if shard.is_multiple_of(2) {
            even.port
        } else {
            odd.port
        }
    };
    let answers: Vec<String> = some
        .iter()
        .map(|shard| format!("{}\tshard_{shard}", home(shard)))
        .collect();
    for proxy in &proxies {
        same(&proxy.query(&asked)?, &answers.join("\n"))?;
        for schema in ["runtime_", "", "disk."] {
            if schema == "disk." && std::ptr::eq(proxy, &proxies[1]) {
                // Whoever edits decides what is saved there.
                continue;
            }
            let count = format!("SELECT COUNT(*) FROM {schema}mysql_query_rules_fast_routing");
            soon(&format!("{SHARDS}\n"), || ask(proxy, &count))?;
        }
    }
    same(
        &of(&proxies[0], "epoch", "mysql_query_rules")?,
        &of(&proxies[1], "epoch", "mysql_query_rules")?,
    )?;
    // A row, then a rule, on others: one row of fifty thousand is enough of a difference.
    let moved = some.iter().find(|shard| *shard % 2 == 0).ok_or("none")?;
    odd.root(&format!("CREATE DATABASE shard_{moved}"))?;
    proxies[2].admin(&format!(
        "UPDATE mysql_query_rules_fast_routing SET destination_hostgroup = 1 WHERE schemaname = 'shard_{moved}'; \
         LOAD MYSQL QUERY RULES TO RUNTIME"
    ))?;
    in_step(&[&proxies[2], &proxies[0], &proxies[1]])?;
    for proxy in &proxies {
        same(
            &proxy.query(&format!("USE shard_{moved}; SELECT @@port"))?,
            &odd.port.to_string(),
        )?;
    }
    proxies[0].admin("DELETE FROM mysql_query_rules; LOAD MYSQL QUERY RULES TO RUNTIME")?;
    in_step(&[&proxies[0], &proxies[1], &proxies[2]])?;
    same(
        &proxies[2].query(&format!("USE shard_{moved}; SELECT @@port"))?,
        &even.port.to_string(),
    )?;
    // Every proxy is shown with what it has, and who asks with what it is called.
    let seen = "SELECT COUNT(DISTINCT checksum), COUNT(*) FROM stats_proxysql_servers_checksums WHERE name = 'mysql_query_rules'";
    soon("1\t3\n", || ask(&proxies[1], seen))?;
    let fine = "SELECT COUNT(*) FROM stats_proxysql_servers_status WHERE checks_OK > 0 AND ping_time_us > 0 AND check_age_us < 20000000";
    soon("3\n", || ask(&proxies[1], fine))?;
    soon("3\n", || {
        proxies[1].admin("SELECT COUNT(*) FROM stats_proxysql_servers_metrics WHERE Queries > 0 AND response_time_ms < 20000")
    })?;
    soon("3\t1\n", || {
        ask(
            &proxies[1],
            "SELECT COUNT(*), COUNT(DISTINCT hostname) FROM stats_proxysql_servers_clients_status",
        )
    })
}

fn in_turn(driver: Driver) -> Outcome {
    let server = Server::start(Vendor::MariaDb)?;
    let proxies = together(driver, &server, 3)?;
    in_step(&proxies)?;
    let [one, two, three] = &proxies[..] else {
        return Err("there are three".into());
    };
    let own = three.admin("SELECT variable_value FROM runtime_global_variables WHERE variable_name LIKE '%-%interfaces' OR variable_name = 'admin-mysql_ifaces'")?;
    for (at, sql, asked, wanted) in [
        (
            one,
            "INSERT INTO mysql_users (username, password, default_hostgroup) VALUES ('shared', 'secret', 0); LOAD MYSQL USERS TO RUNTIME",
            "SELECT COUNT(DISTINCT username) FROM runtime_mysql_users WHERE username = 'shared'",
            "1",
        ),
        (
            two,
            "UPDATE mysql_users SET max_connections = 77 WHERE username = 'shared'; LOAD MYSQL USERS TO RUNTIME",
            "SELECT DISTINCT max_connections FROM mysql_users WHERE username = 'shared'",
            "77",
        ),
        (
            three,
            "INSERT INTO mysql_servers (hostgroup_id, hostname, port, weight) VALUES (9, '127.0.0.1', 1, 5); \
             INSERT INTO mysql_hostgroup_attributes (hostgroup_id, init_connect) VALUES (9, 'SET @x = 1'); LOAD MYSQL SERVERS TO RUNTIME",
            "SELECT weight, init_connect FROM runtime_mysql_servers s JOIN runtime_mysql_hostgroup_attributes USING (hostgroup_id)",
            "5\tSET @x = 1",
        ),
        (
            one,
            "SET mysql-max_connections = 4321; LOAD MYSQL VARIABLES TO RUNTIME",
            "SELECT variable_value FROM runtime_global_variables WHERE variable_name = 'mysql-max_connections'",
            "4321",
        ),
        (
            two,
            "INSERT INTO mysql_firewall_whitelist_users (username, client_address, mode, comment) VALUES ('shared', '', 'DETECTING', ''); \
             LOAD MYSQL FIREWALL TO RUNTIME",
            "SELECT username FROM runtime_mysql_firewall_whitelist_users",
            "shared",
        ),
        (
            three,
            "HSCALE SETUP_TABLE('users', 'nickname', 'users_default', 1, 'PREFIX(3)'); \
             HSCALE ADD_PARTITION('users', 'nick1', 'mar', 1)",
            "SELECT function, partition_value FROM runtime_mysql_shard_tables JOIN runtime_mysql_shard_partitions USING (table_name)",
            "PREFIX(3)\tmar",
        ),
        (
            three,
            "SET admin-cluster_check_interval_ms = 40; LOAD ADMIN VARIABLES TO RUNTIME",
            "SELECT variable_value FROM runtime_global_variables WHERE variable_name = 'admin-cluster_check_interval_ms'",
            "40",
        ),
        (
            one,
            "UPDATE proxysql_servers SET comment = 'ours'; LOAD PROXYSQL SERVERS TO RUNTIME",
            "SELECT DISTINCT comment FROM runtime_proxysql_servers",
            "ours",
        ),
        (
            two,
            "INSERT INTO mysql_query_rewrite (rewrite_id, active, pattern, replacement) VALUES (1, 1, 'SELECT 40 + 1', 'SELECT 42'); \
             LOAD MYSQL QUERY RULES TO RUNTIME",
            "SELECT replacement FROM runtime_mysql_query_rewrite",
            "SELECT 42",
        ),
    ] {
        at.admin(sql)?;
        for proxy in &proxies {
            soon(wanted, || {
                ask(proxy, asked).map(|said| said.trim().to_owned())
            })
            .map_err(|why| format!("{sql}: {why}"))?;
        }
        in_step(&proxies)?;
    }
    for proxy in &proxies {
        same(&proxy.query("SELECT 40 + 1")?, "42")?;
        same(
            &conformance::proxy::command_line(proxy.port, "app", "secret", &[], "SELECT 7")?,
            "7",
        )?;
    }
    same(
        &three.admin("SELECT variable_value FROM runtime_global_variables WHERE variable_name LIKE '%-%interfaces' OR variable_name = 'admin-mysql_ifaces'")?,
        &own,
    )?;
    // Nothing goes round for ever.
    let versions = |proxy: &Proxy| {
        proxy.admin("SELECT name, version FROM runtime_checksums_values ORDER BY name")
    };
    let before = proxies
        .iter()
        .map(versions)
        .collect::<Result<Vec<_>, _>>()?;
    some_looks();
    let after = proxies
        .iter()
        .map(versions)
        .collect::<Result<Vec<_>, _>>()?;
    expect(before == after, || format!("{before:?}\n{after:?}"))?;
    // What nobody shares stays where it was loaded.
    one.admin("SET mysql-threads = 3; LOAD MYSQL VARIABLES TO RUNTIME")?;
    some_looks();
    same(
        &two.admin(
            "SELECT variable_value FROM global_variables WHERE variable_name = 'mysql-threads'",
        )?,
        "2",
    )
}

/// A template that only one of the proxies accepts comes with fast routes that all could have.
fn half_way(driver: Driver) -> Outcome {
    let server = Server::start(Vendor::MariaDb)?;
    let proxies = together(driver, &server, 2)?;
    in_step(&proxies)?;
    let [one, two] = &proxies[..] else {
        return Err("there are two".into());
    };
    for proxy in [one, two] {
        proxy.admin(
            "SET admin-cluster_mysql_variables_diffs_before_sync = 0; LOAD ADMIN VARIABLES TO RUNTIME; SAVE ADMIN VARIABLES TO DISK",
        )?;
    }
    two.admin("INSERT INTO mysql_query_rules_fast_routing VALUES ('app', 'kept', 0, 0, ''); LOAD MYSQL QUERY RULES TO RUNTIME; SAVE MYSQL QUERY RULES TO DISK")?;
    soon(&of(two, "checksum", "mysql_query_rules")?, || {
        of(one, "checksum", "mysql_query_rules")
    })?;
    one.admin("SET mysql-query_rewrite_check = false; LOAD MYSQL VARIABLES TO RUNTIME")?;
    one.admin(
        "INSERT INTO mysql_query_rules_fast_routing WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000) \
         SELECT 'app', 'new_' || i, 0, 0, '' FROM n; \
         INSERT INTO mysql_query_rewrite (rewrite_id, active, pattern, replacement) VALUES (1, 1, 'SELECT 1', 'SELECT FROM WHERE'); \
         LOAD MYSQL QUERY RULES TO RUNTIME",
    )?;
    until_counted(two, "refused", 1)?;
    some_looks();
    for schema in ["runtime_", "", "disk."] {
        same(
            &two.admin(&format!(
                "SELECT schemaname FROM {schema}mysql_query_rules_fast_routing"
            ))?,
            "kept",
        )?;
        same(
            &two.admin(&format!("SELECT COUNT(*) FROM {schema}mysql_query_rewrite"))?,
            "0",
        )?;
    }
    same(&counted(two, "refused")?.to_string(), "1")?;
    let log = whole_log(two);
    expect(
        log.contains("mysql_query_rules of 127.0.0.1:")
            && log.contains("is not taken over, nothing was changed"),
        || log.clone(),
    )?;
    same(&two.query("SELECT 1")?, "1")?;
    // Corrected there, it comes as a whole.
    one.admin("DELETE FROM mysql_query_rewrite; LOAD MYSQL QUERY RULES TO RUNTIME")?;
    soon("2001\n", || {
        ask(
            two,
            "SELECT COUNT(*) FROM runtime_mysql_query_rules_fast_routing",
        )
    })
}

fn down_and_back(driver: Driver) -> Outcome {
    let server = Server::start(Vendor::MariaDb)?;
    let mut proxies = together(driver, &server, 3)?;
    in_step(&proxies)?;
    let fast = |schema: &str| {
        format!(
            "INSERT INTO mysql_query_rules_fast_routing VALUES ('app', '{schema}', 0, 0, ''); LOAD MYSQL QUERY RULES TO RUNTIME"
        )
    };
    let rows = |proxy: &Proxy| {
        ask(
            proxy,
            "SELECT group_concat(schemaname) FROM (SELECT schemaname FROM runtime_mysql_query_rules_fast_routing ORDER BY 1)",
        )
    };
    proxies[0].admin(&format!("{}; SAVE MYSQL QUERY RULES TO DISK", fast("a")))?;
    in_step(&proxies)?;
    proxies[2].kill();
    proxies[0].admin(&format!("{}; SAVE MYSQL QUERY RULES TO DISK", fast("b")))?;
    soon("a,b\n", || rows(&proxies[1]))?;
    until_counted(&proxies[1], "failed", 1)?;
    let down = format!(
        "SELECT COUNT(*) FROM stats_proxysql_servers_status WHERE port = {} AND checks_ERR > 0",
        proxies[2].admin_port
    );
    soon("1\n", || ask(&proxies[1], &down))?;
    let told = format!(
        "cluster: 127.0.0.1:{} is not followed",
        proxies[2].admin_port
    );
    let lines = whole_log(&proxies[1]).matches(&told).count();
    expect((1..=3).contains(&lines), || {
        format!("told {lines} times:\n{}", whole_log(&proxies[1]))
    })?;
    // It comes back with what it had saved, which is older, and gets the rest.
    proxies[2].restart()?;
    soon("a,b\n", || rows(&proxies[2]))?;
    for proxy in &proxies {
        same(&rows(proxy)?, "a,b")?;
    }
    // What one has loaded and saved while it was alone is newer than what the others have.
    let (epoch, version) = (
        of(&proxies[2], "epoch", "mysql_query_rules")?,
        of(&proxies[2], "version", "mysql_query_rules")?,
    );
    proxies[2].restart()?;
    same(&of(&proxies[2], "epoch", "mysql_query_rules")?, &epoch)?;
    same(&of(&proxies[2], "version", "mysql_query_rules")?, &version)?;
    proxies[0].kill();
    proxies[1].kill();
    proxies[2].admin(&format!("{}; SAVE MYSQL QUERY RULES TO DISK", fast("c")))?;
    proxies[2].restart()?;
    proxies[0].restart()?;
    proxies[1].restart()?;
    for proxy in &proxies {
        soon("a,b,c\n", || rows(proxy))?;
    }
    in_step(&proxies)
}

fn newcomer(driver: Driver) -> Outcome {
    let server = Server::start(Vendor::MariaDb)?;
    let mut proxies = together(driver, &server, 2)?;
    proxies[0].admin(
        "INSERT INTO mysql_query_rules_fast_routing VALUES ('app', 'a', 0, 0, ''); LOAD MYSQL QUERY RULES TO RUNTIME; \
         LOAD MYSQL USERS TO RUNTIME; LOAD MYSQL SERVERS TO RUNTIME; LOAD MYSQL VARIABLES TO RUNTIME; \
         SAVE MYSQL QUERY RULES TO DISK; SAVE MYSQL USERS TO DISK; SAVE MYSQL SERVERS TO DISK; SAVE MYSQL VARIABLES TO DISK",
    )?;
    in_step(&proxies)?;
    // Where all were started anew, too: what they had loaded counts on.
    proxies[0].restart()?;
    proxies[1].restart()?;
    let new = Proxy::start(driver, &Wish::default())?;
    proxies[0].admin(&format!(
        "SET admin-admin_credentials = 'admin:admin;deploy:other;cluster:{SECRET}'; SET admin-stats_credentials = 'watch:dog'; \
         LOAD ADMIN VARIABLES TO RUNTIME; SAVE ADMIN VARIABLES TO DISK; \
         INSERT INTO proxysql_servers (hostname, port) VALUES ('127.0.0.1', {}); \
         LOAD PROXYSQL SERVERS TO RUNTIME; SAVE PROXYSQL SERVERS TO DISK",
        new.admin_port
    ))?;
    in_step(&proxies)?;
    let before = checksums(&proxies[0])?;
    // It is set up by LOADs, hours behind those of the others, as a script does at the birth of a
    // machine: they are in force there only, before it has met somebody and behind it, until what
    // the others have comes.
    let modules = "LOAD MYSQL SERVERS TO RUNTIME; LOAD MYSQL USERS TO RUNTIME; LOAD MYSQL QUERY RULES TO RUNTIME; LOAD MYSQL VARIABLES TO RUNTIME";
    new.admin(&format!(
        "SET admin-admin_credentials = 'admin:admin;cluster:{SECRET}'; SET admin-cluster_username = 'cluster'; \
         SET admin-cluster_password = '{SECRET}'; SET admin-cluster_check_interval_ms = 1500; SET mysql-max_connections = 55; \
         LOAD ADMIN VARIABLES TO RUNTIME; SAVE ADMIN VARIABLES TO DISK; {modules}; \
         INSERT INTO proxysql_servers (hostname, port) VALUES ('127.0.0.1', {}); \
         LOAD PROXYSQL SERVERS TO RUNTIME; SAVE PROXYSQL SERVERS TO DISK",
        proxies[0].admin_port
    ))?;
    let met = "SELECT COUNT(*) FROM stats_proxysql_servers_status WHERE checks_OK > 0";
    soon("1\n", || ask(&new, met))?;
    new.admin(&format!(
        "{modules}; LOAD ADMIN VARIABLES TO RUNTIME; LOAD PROXYSQL SERVERS TO RUNTIME"
    ))?;
    new.admin("INSERT INTO mysql_query_rules_fast_routing VALUES ('app', 'tried', 0, 0, '')")?;
    same(&of(&new, "version", "mysql_servers")?, "1")?;
    same(
        &new.admin("SELECT COUNT(*) FROM runtime_mysql_servers")?,
        "0",
    )?;
    let log = whole_log(&new);
    expect(
        log.contains("no other proxy has answered yet")
            && log.contains("which is about to be taken over"),
        || log.clone(),
    )?;
    proxies.push(new);
    for proxy in &proxies {
        soon(&before, || checksums(proxy))?;
    }
    some_looks();
    for proxy in &proxies {
        same(&checksums(proxy)?, &before)?;
        let sql = "SELECT variable_value LIKE '%deploy:other%' FROM runtime_global_variables WHERE variable_name = 'admin-admin_credentials'";
        same(&ask(proxy, sql)?, "1")?;
        same(
            &ask(proxy, "SELECT COUNT(*) FROM runtime_proxysql_servers")?,
            "3",
        )?;
    }
    same(&proxies[2].query("SELECT 7")?, "7")?;
    // From then on what is loaded there is for all.
    proxies[2]
        .admin("UPDATE proxysql_servers SET comment = 'three'; LOAD PROXYSQL SERVERS TO RUNTIME")?;
    soon("3\n", || {
        ask(
            &proxies[1],
            "SELECT COUNT(*) FROM runtime_proxysql_servers WHERE comment = 'three'",
        )
    })?;
    in_step(&proxies)?;
    same(
        &proxies[2].admin("SELECT schemaname FROM disk.mysql_query_rules_fast_routing")?,
        "a",
    )?;
    // Who had edited there, and loads now, would load what came: that is refused, once.
    let load = "INSERT INTO mysql_query_rules_fast_routing VALUES ('app', 'late', 0, 0, ''); LOAD MYSQL QUERY RULES TO RUNTIME";
    let said = proxies[2].admin(load).err().unwrap_or_default();
    expect(
        said.contains("mysql_query_rules was taken over from"),
        || format!("nobody says that an edit is gone: {said}"),
    )?;
    same(&checksums(&proxies[0])?, &checksums(&proxies[2])?)?;
    proxies[2].admin("LOAD MYSQL QUERY RULES TO RUNTIME")?;
    in_step(&proxies)
}

/// Each was alone, and has what it has loaded: one LOAD says which one is meant.
fn alone(driver: Driver) -> Outcome {
    let server = Server::start(Vendor::MariaDb)?;
    let wish = Wish::in_front_of(&server);
    let proxies = (0..3)
        .map(|_| Proxy::start(driver, &wish))
        .collect::<Result<Vec<_>, _>>()?;
    let fast = |schema: usize| {
        format!(
            "INSERT INTO mysql_query_rules_fast_routing VALUES ('app', '{schema}', 0, 0, ''); LOAD MYSQL QUERY RULES TO RUNTIME"
        )
    };
    for (at, proxy) in proxies.iter().enumerate() {
        proxy.admin(&fast(at))?;
    }
    introduce(&proxies.iter().collect::<Vec<_>>())?;
    until_looked(&proxies)?;
    for (at, proxy) in proxies.iter().enumerate() {
        same(
            &proxy.admin("SELECT schemaname FROM runtime_mysql_query_rules_fast_routing")?,
            &at.to_string(),
        )?;
    }
    expect(
        whole_log(&proxies[0]).contains("has not been loaded there since"),
        || whole_log(&proxies[0]),
    )?;
    proxies[1].admin("LOAD MYSQL QUERY RULES TO RUNTIME")?;
    for proxy in &proxies {
        soon("1\n", || {
            ask(
                proxy,
                "SELECT group_concat(schemaname) FROM runtime_mysql_query_rules_fast_routing",
            )
        })?;
    }
    in_step(&proxies)
}

fn conflict(driver: Driver) -> Outcome {
    let server = Server::start(Vendor::MariaDb)?;
    let proxies = together(driver, &server, 2)?;
    in_step(&proxies)?;
    let [one, two] = &proxies[..] else {
        return Err("there are two".into());
    };
    let load = |proxy: &Proxy, hostgroup: usize| {
        proxy.admin(&format!("REPLACE INTO mysql_query_rules_fast_routing VALUES ('app', 'a', 0, {hostgroup}, ''); LOAD MYSQL QUERY RULES TO RUNTIME"))
    };
    let mut round = 0;
    loop {
        round += 10;
        expect(round < 200, || "never in the same second".into())?;
        // At the begin of a second, both at once.
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_err(|error| error.to_string())?;
        thread::sleep(Duration::from_millis(
            1000 - u64::from(since.subsec_millis()),
        ));
        thread::scope(|scope| {
            let other = scope.spawn(|| load(two, round + 1));
            load(one, round).and(other.join().map_err(|_| "a panic")?)
        })?;
        let differs = |column: &str| {
            Ok::<_, String>(
                of(one, column, "mysql_query_rules")? != of(two, column, "mysql_query_rules")?,
            )
        };
        if !differs("epoch")? && differs("checksum")? {
            break;
        }
        in_step(&proxies)?;
    }
    let hostgroup = |proxy: &Proxy| {
        ask(
            proxy,
            "SELECT destination_hostgroup FROM runtime_mysql_query_rules_fast_routing",
        )
    };
    until_counted(one, "conflicts", 1)?;
    until_counted(two, "conflicts", 1)?;
    same(&hostgroup(one)?, &round.to_string())?;
    same(&hostgroup(two)?, &(round + 1).to_string())?;
    expect(
        whole_log(one).contains("was loaded in the same second"),
        || whole_log(one),
    )?;
    // An operator says which one is meant.
    two.admin("LOAD MYSQL QUERY RULES TO RUNTIME")?;
    soon(&format!("{}\n", round + 1), || hostgroup(one))?;
    in_step(&proxies)
}

fn wrong_password(driver: Driver) -> Outcome {
    let server = Server::start(Vendor::MariaDb)?;
    let proxies = together(driver, &server, 2)?;
    in_step(&proxies)?;
    let [one, two] = &proxies[..] else {
        return Err("there are two".into());
    };
    for proxy in [one, two] {
        proxy.admin("SET admin-cluster_admin_variables_diffs_before_sync = 0; LOAD ADMIN VARIABLES TO RUNTIME")?;
    }
    two.admin("SET admin-cluster_password = 'guessed'; LOAD ADMIN VARIABLES TO RUNTIME")?;
    until_counted(two, "failed", 2)?;
    one.admin("INSERT INTO mysql_query_rules_fast_routing VALUES ('app', 'a', 0, 0, ''); LOAD MYSQL QUERY RULES TO RUNTIME")?;
    some_looks();
    same(
        &two.admin("SELECT COUNT(*) FROM runtime_mysql_query_rules_fast_routing")?,
        "0",
    )?;
    let log = whole_log(two);
    expect(log.contains("is not followed: error 1045"), || log.clone())?;
    // A statistics user is let in, and gets nothing.
    two.admin("SET admin-cluster_username = 'stats'; SET admin-cluster_password = 'stats'; LOAD ADMIN VARIABLES TO RUNTIME")?;
    let failed = counted(two, "failed")?;
    until_counted(two, "failed", failed + 3)?;
    same(
        &two.admin("SELECT COUNT(*) FROM runtime_mysql_query_rules_fast_routing")?,
        "0",
    )?;
    two.admin(&format!(
        "SET admin-cluster_username = 'cluster'; SET admin-cluster_password = '{SECRET}'; LOAD ADMIN VARIABLES TO RUNTIME"
    ))?;
    soon("1\n", || {
        ask(
            two,
            "SELECT COUNT(*) FROM runtime_mysql_query_rules_fast_routing",
        )
    })?;
    for proxy in [one, two] {
        let log = whole_log(proxy);
        expect(!log.contains(SECRET) && !log.contains("guessed"), || {
            format!("a password in the log:\n{log}")
        })?;
    }
    expect(whole_log(two).contains("answers again"), || whole_log(two))
}

/// Whoever gives, or takes over, is killed at any moment of it: what the other has is one of the
/// loads, as a whole, and so is what was saved.
fn torn(driver: Driver) -> Outcome {
    const ROWS: usize = 20_000;
    let server = Server::start(Vendor::MariaDb)?;
    let mut proxies = together(driver, &server, 2)?;
    in_step(&proxies)?;
    let load = |proxy: &Proxy, round: u64| {
        proxy.admin(&format!(
            "DELETE FROM mysql_query_rules_fast_routing; INSERT INTO mysql_query_rules_fast_routing \
             WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS}) SELECT 'app', 'shard_' || i, 0, {round}, '' FROM n; \
             LOAD MYSQL QUERY RULES TO RUNTIME; SAVE MYSQL QUERY RULES TO DISK"
        ))
    };
    load(&proxies[0], 0)?;
    let whole = |proxy: &Proxy, schema: &str| {
        let sql = format!(
            "SELECT COUNT(*), COUNT(DISTINCT destination_hostgroup) FROM {schema}mysql_query_rules_fast_routing"
        );
        soon(&format!("{ROWS}\t1\n"), || ask(proxy, &sql)).map_err(|why| format!("{schema}: {why}"))
    };
    in_step(&proxies)?;
    for round in 1..=8 {
        load(&proxies[0], round)?;
        // Three looks of 50 ms come first.
        thread::sleep(Duration::from_millis(100 + 60 * round));
        let (dies, lives) = if round % 2 == 0 { (0, 1) } else { (1, 0) };
        proxies[dies].kill();
        for schema in ["runtime_", "", "disk."] {
            whole(&proxies[lives], schema)?;
        }
        proxies[dies].restart()?;
        for schema in ["runtime_", "", "disk."] {
            whole(&proxies[dies], schema)?;
        }
        in_step(&proxies)?;
        for proxy in &proxies {
            let sql =
                "SELECT DISTINCT destination_hostgroup FROM runtime_mysql_query_rules_fast_routing";
            same(&proxy.admin(sql)?, &round.to_string())?;
        }
    }
    Ok(())
}

/// A server of another kind in the list, that lets us in.
fn stranger(driver: Driver) -> Outcome {
    let server = Server::start(Vendor::MariaDb)?;
    server.root(&format!(
        "CREATE USER cluster@'%' IDENTIFIED VIA mysql_native_password USING PASSWORD('{SECRET}')"
    ))?;
    let proxies = together(driver, &server, 2)?;
    in_step(&proxies)?;
    let [one, two] = &proxies[..] else {
        return Err("there are two".into());
    };
    one.admin(&format!(
        "INSERT INTO proxysql_servers (hostname, port) VALUES ('127.0.0.1', {}); LOAD PROXYSQL SERVERS TO RUNTIME",
        server.port
    ))?;
    in_step(&proxies)?;
    let status = format!(
        "SELECT checks_OK, checks_ERR > 1 FROM stats_proxysql_servers_status WHERE port = {}",
        server.port
    );
    for proxy in &proxies {
        soon("0\t1\n", || ask(proxy, &status))?;
        let log = whole_log(proxy);
        let told = log
            .matches(&format!(
                "cluster: 127.0.0.1:{} is not followed: error 1064",
                server.port
            ))
            .count();
        expect(told == 1, || format!("told {told} times:\n{log}"))?;
    }
    two.admin("INSERT INTO mysql_query_rules_fast_routing VALUES ('app', 'a', 0, 0, ''); LOAD MYSQL QUERY RULES TO RUNTIME")?;
    soon("1\n", || {
        ask(
            one,
            "SELECT COUNT(*) FROM runtime_mysql_query_rules_fast_routing",
        )
    })?;
    one.admin(&format!(
        "DELETE FROM proxysql_servers WHERE port = {}; LOAD PROXYSQL SERVERS TO RUNTIME",
        server.port
    ))?;
    soon("2\n", || {
        ask(two, "SELECT COUNT(*) FROM stats_proxysql_servers_status")
    })
}
