//! The monitor in front of real servers: who is asked what, and who serves where as it follows.
#![forbid(unsafe_code)]

use conformance::beside::{asked, set};
use conformance::by_hand::{self, Raw};
use conformance::proxy::{Driver, Proxy, Wish};
use conformance::servers::{Server, Vendor, vendors};
use conformance::trials::{self, expect, same, soon};

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

type Outcome = Result<(), String>;

fn main() {
    trials::run_once(&[
        ("servers_of_a_pair_go_where_read_only_says", failover),
        (
            "the_old_primary_that_comes_back_writable_gets_no_writes",
            two_writers,
        ),
        (
            "a_server_that_does_not_answer_serves_nowhere_until_it_does",
            missing,
        ),
        (
            "a_writer_that_hangs_is_looked_at_when_its_clients_wait",
            hanging,
        ),
        ("instances_that_rds_names_are_found", found),
        ("a_check_that_may_not_log_in_takes_nobody_away", denied),
        ("a_switchover_costs_no_statement", switchover),
        (
            "what_is_open_on_a_writer_that_only_reads_ends_by_itself",
            open_there,
        ),
        (
            "a_commit_that_a_demoted_writer_refuses_ends_its_transaction",
            refused_commit,
        ),
        (
            "a_transaction_of_a_demoted_writer_is_run_again_on_the_next",
            moved_transaction,
        ),
        ("who_was_the_writer_outlives_the_proxy", remembered),
        (
            "what_reads_goes_to_the_fallback_while_nobody_serves",
            fallback,
        ),
        ("a_replica_that_is_too_far_behind_gets_nothing_new", behind),
        (
            "a_replica_that_nobody_has_made_read_only_gets_no_writes",
            writable_replica,
        ),
    ])
}

/// Quick checks, and their account.
const VARIABLES: &str = "monitor_enabled = true\nmonitor_username = \"watch\"\n\
    monitor_password = \"watched\"\nmonitor_read_only_interval = 100\nmonitor_ping_interval = 100\n\
    monitor_ping_timeout = 5000\nmonitor_read_only_timeout = 5000\nmonitor_connect_timeout = 5000\n\
    monitor_connect_interval = 1000\nmonitor_replication_lag_interval = 100\n\
    monitor_replication_lag_timeout = 5000";

/// Statements by which a DBA makes the account: it may do nothing but see the lag.
fn account(vendor: Vendor) -> String {
    let lag = if vendor == Vendor::MariaDb {
        "REPLICA MONITOR"
    } else {
        "REPLICATION CLIENT"
    };
    format!("CREATE USER watch@'%' IDENTIFIED BY 'watched'; GRANT {lag} ON *.* TO watch@'%';")
}

/// Two servers, the first of which may write, in front of them a proxy with a pair of hostgroups:
/// all rows are in the writers'.
fn two(driver: Driver, vendor: Vendor) -> Result<([Server; 2], Proxy), String> {
    let servers = [Server::start(vendor)?, Server::start(vendor)?];
    for (server, read_only) in servers.iter().zip([0, 1]) {
        server.root(by_hand::CREATE_USER)?;
        server.root(&account(vendor))?;
        server.root(&format!("SET GLOBAL read_only = {read_only}"))?;
    }
    let proxy = in_front_of(driver, &servers)?;
    Ok((servers, proxy))
}

fn in_front_of(driver: Driver, servers: &[Server; 2]) -> Result<Proxy, String> {
    let mut wish = Wish::in_front_of(&servers[0]);
    wish.add_open_user();
    wish.variables = format!("{}\n{VARIABLES}", wish.variables);
    let of = |server: &Server| {
        format!(
            "{{ address = \"127.0.0.1\", port = {}, hostgroup = 0 }}",
            server.port
        )
    };
    wish.servers = servers.iter().map(of).collect::<Vec<_>>().join(",\n");
    wish.rules = "{ rule_id = 1, active = 1, match_digest = \"^SELECT\", destination_hostgroup = 1, apply = 1 }".to_owned();
    let proxy = Proxy::start(driver, &wish)?;
    proxy.admin(
        "INSERT INTO mysql_replication_hostgroups (writer_hostgroup, reader_hostgroup) VALUES (0, 1); \
         LOAD MYSQL SERVERS TO RUNTIME",
    )?;
    Ok(proxy)
}

/// Places of the servers, as an operator sees them: the hostgroup, 1 or 2 for which server, its status.
fn places(servers: &[Server; 2], proxy: &Proxy) -> Result<String, String> {
    let said = proxy.admin(&format!(
        "SELECT hostgroup_id, 1 + (port = {}), status FROM runtime_mysql_servers \
         ORDER BY 1, 2",
        servers[1].port
    ))?;
    Ok(said.trim().replace('\n', ", ").replace('\t', " "))
}

/// The port of the server that a new statement reaches.
fn reached(client: &mut Raw, sql: &str) -> Result<u16, String> {
    let rows = client.ask(sql).map_err(|error| format!("{sql}: {error}"))?;
    rows.concat()
        .concat()
        .parse()
        .map_err(|_| format!("{sql}: {rows:?}"))
}

fn log_in(proxy: &Proxy) -> Result<Raw, String> {
    Raw::log_in(proxy.port).map_err(|error| error.to_string())
}

/// A35: a switchover by hand, while a client goes on.
fn failover(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (servers, proxy) = two(driver, vendor)?;
        let now = || places(&servers, &proxy);
        soon("0 1 ONLINE, 1 1 ONLINE, 1 2 ONLINE", now)
            .map_err(|words| format!("{vendor}: {words}; {}", proxy.log()))?;
        let mut client = log_in(&proxy)?;
        // Of several servers each would have its turn.
        let writes = |client: &mut Raw| -> Result<String, String> {
            let mut ports = (0..6)
                .map(|_| reached(client, "/* hostgroup=0 */ SELECT @@port"))
                .collect::<Result<Vec<_>, _>>()?;
            ports.sort_unstable();
            ports.dedup();
            Ok(format!("{ports:?}"))
        };
        // Cores hear of it a moment after the operator could see it.
        soon(&format!("[{}]", servers[0].port), || writes(&mut client))?;
        servers[0].root("SET GLOBAL read_only = 1")?;
        soon("1 1 ONLINE, 1 2 ONLINE", now)
            .map_err(|words| format!("{vendor}: {words}; {}", proxy.log()))?;
        servers[1].root("SET GLOBAL read_only = 0")?;
        soon("0 2 ONLINE, 1 1 ONLINE, 1 2 ONLINE", now)
            .map_err(|words| format!("{vendor}: {words}; {}", proxy.log()))?;
        // The same session, which had nothing open, never learns of it.
        soon(&format!("[{}]", servers[1].port), || writes(&mut client))?;
        // The operator's rows are his.
        let rows = proxy.admin("SAVE MYSQL SERVERS FROM RUNTIME; SELECT hostgroup_id, count(*) FROM mysql_servers GROUP BY 1; SELECT count(*) FROM mysql_replication_hostgroups")?;
        same(rows.trim(), "0\t2\n1")?;
        let asked = proxy.admin("SELECT count(DISTINCT port) FROM monitor.mysql_server_read_only_log WHERE error IS NULL AND success_time_us > 0")?;
        same(asked.trim(), "2")?;
        let pings = proxy.admin("SELECT count(*) > 2 FROM monitor.mysql_server_ping_log WHERE ping_error IS NULL AND ping_success_time_us > 0")?;
        same(pings.trim(), "1")?;
        let logins = proxy.admin(
            "SELECT count(*) > 0 FROM monitor.mysql_server_connect_log WHERE connect_error IS NULL",
        )?;
        same(logins.trim(), "1")?;
    }
    Ok(())
}

/// A server that only the table of RDS names serves by its `read_only`, and is gone when the table is
/// without it.
fn found(driver: Driver) -> Outcome {
    let (servers, proxy) = two(driver, Vendor::MariaDb)?;
    let now = || places(&servers, &proxy);
    soon("0 1 ONLINE, 1 1 ONLINE, 1 2 ONLINE", now)?;
    let second = servers[1].port;
    proxy.admin(&format!(
        "DELETE FROM mysql_servers WHERE port = {second}; LOAD MYSQL SERVERS TO RUNTIME"
    ))?;
    soon("0 1 ONLINE, 1 1 ONLINE", now)?;
    let ports = [servers[0].port, second];
    servers[0].root(&format!(
        "CREATE TABLE mysql.rds_topology (id VARCHAR(64), endpoint VARCHAR(255), port INT); \
         INSERT INTO mysql.rds_topology VALUES ('a', '127.0.0.1', {}), ('b', '127.0.0.1', {}); \
         GRANT SELECT ON mysql.rds_topology TO watch@'%'",
        ports[0], ports[1]
    ))?;
    // Nobody was asked for it yet. The second server has no such table.
    proxy.admin("SET mysql-monitor_aws_rds_topology_discovery_interval = 2; LOAD MYSQL VARIABLES TO RUNTIME")?;
    soon("0 1 ONLINE, 1 1 ONLINE, 1 2 ONLINE", now)
        .map_err(|words| format!("{words}; {}", proxy.log()))?;
    let mut client = log_in(&proxy)?;
    let reads = |client: &mut Raw| -> Result<String, String> {
        let all = (0..20).map(|_| reached(client, "SELECT @@port"));
        let all = all.collect::<Result<Vec<_>, _>>()?;
        Ok(all.contains(&second).to_string())
    };
    soon("true", || reads(&mut client))?;
    // It is no row of the operator's.
    let rows =
        proxy.admin("SAVE MYSQL SERVERS FROM RUNTIME; SELECT DISTINCT port FROM mysql_servers")?;
    same(rows.trim(), &ports[0].to_string())?;
    servers[0].root(&format!(
        "DELETE FROM mysql.rds_topology WHERE port = {second}"
    ))?;
    soon("0 1 ONLINE, 1 1 ONLINE", now)?;
    servers[0].root(&format!(
        "INSERT INTO mysql.rds_topology VALUES ('b', '127.0.0.1', {second})"
    ))?;
    soon("0 1 ONLINE, 1 1 ONLINE, 1 2 ONLINE", now)?;
    proxy.admin("SET mysql-monitor_aws_rds_topology_discovery_interval = 0; LOAD MYSQL VARIABLES TO RUNTIME")?;
    soon("0 1 ONLINE, 1 1 ONLINE", now)
}

/// The writer that is known stays, and says why the other is not.
fn two_writers(driver: Driver) -> Outcome {
    let (servers, proxy) = two(driver, Vendor::MariaDb)?;
    let now = || places(&servers, &proxy);
    soon("0 1 ONLINE, 1 1 ONLINE, 1 2 ONLINE", now)?;
    servers[1].root("SET GLOBAL read_only = 0")?;
    soon("2", || {
        let asked = "SELECT count(DISTINCT port) FROM monitor.mysql_server_read_only_log WHERE read_only = 0";
        Ok(proxy.admin(asked)?.trim().to_owned())
    })?;
    same(&now()?, "0 1 ONLINE, 1 1 ONLINE, 1 2 ONLINE")?;
    proxy.admin("INSERT INTO mysql_hostgroup_attributes (hostgroup_id, hostgroup_settings) VALUES (0, '{\"writers\":\"all\"}'); LOAD MYSQL SERVERS TO RUNTIME")?;
    soon("0 1 ONLINE, 0 2 ONLINE, 1 1 ONLINE, 1 2 ONLINE", now)?;
    proxy.admin("UPDATE mysql_hostgroup_attributes SET hostgroup_settings = '{\"writers\":\"none\"}'; LOAD MYSQL SERVERS TO RUNTIME")?;
    soon("1 1 ONLINE, 1 2 ONLINE", now)?;
    let refused = proxy.admin("UPDATE mysql_hostgroup_attributes SET hostgroup_settings = '{\"writers\":\"some\"}'; LOAD MYSQL SERVERS TO RUNTIME");
    expect(
        refused
            .as_ref()
            .is_err_and(|words| words.contains("'first', 'none' or 'all'")),
        || format!("{refused:?}"),
    )
}

/// Its statements are cut off, the others go on, and it is back by itself.
fn missing(driver: Driver) -> Outcome {
    let (mut servers, proxy) = two(driver, Vendor::MariaDb)?;
    let now = |servers: &[Server; 2]| places(servers, &proxy);
    soon("0 1 ONLINE, 1 1 ONLINE, 1 2 ONLINE", || now(&servers))?;
    servers[1].kill();
    soon("0 1 ONLINE, 1 1 ONLINE, 1 2 SHUNNED", || now(&servers))?;
    let mut client = log_in(&proxy)?;
    for _ in 0..20 {
        let port = reached(&mut client, "SELECT @@port")?;
        same(&port.to_string(), &servers[0].port.to_string())?;
    }
    expect(proxy.says("does not answer"), || proxy.log())?;
    servers[1].restart()?;
    servers[1].root("SET GLOBAL read_only = 1")?;
    soon("0 1 ONLINE, 1 1 ONLINE, 1 2 ONLINE", || now(&servers))?;
    expect(proxy.says("answers again"), || proxy.log())
}

/// Nobody but a client that waits tells the monitor that a writer hangs: the next check by the interval
/// would be due after hours.
fn hanging(driver: Driver) -> Outcome {
    let (servers, proxy) = two(driver, Vendor::MariaDb)?;
    let now = || places(&servers, &proxy);
    soon("0 1 ONLINE, 1 1 ONLINE, 1 2 ONLINE", now)?;
    let mut client = log_in(&proxy)?;
    let asks = "/* hostgroup=0 */ SELECT @@port";
    soon(&servers[0].port.to_string(), || {
        Ok(reached(&mut client, asks)?.to_string())
    })?;
    set(
        &proxy,
        "SET mysql-monitor_read_only_interval = 36000000; SET mysql-monitor_ping_interval = 36000000; \
         SET mysql-monitor_connect_interval = 36000000; SET mysql-monitor_ping_timeout = 500; \
         SET mysql-monitor_read_only_timeout = 500; SET mysql-monitor_connect_timeout = 500",
    )?;
    // Checks that were due when this came are over.
    thread::sleep(std::time::Duration::from_millis(500));
    servers[0].signal("STOP");
    let waits = client.ask("/* hostgroup=0 */ INSERT INTO mysql.nowhere VALUES (1)");
    expect(waits.is_err(), || {
        "a server that hangs has answered".to_owned()
    })?;
    expect(proxy.says("does not answer"), || proxy.log())?;
    // Who writes now is found out without an interval, too.
    servers[1].root("SET GLOBAL read_only = 0")?;
    soon("0 2 ONLINE, 1 1 SHUNNED, 1 2 ONLINE", now)?;
    let mut client = log_in(&proxy)?;
    same(
        &reached(&mut client, asks)?.to_string(),
        &servers[1].port.to_string(),
    )?;
    // It comes back as it was, and is not the writer, whatever it says.
    servers[0].signal("CONT");
    soon("0 2 ONLINE, 1 1 ONLINE, 1 2 ONLINE", now)
}

/// Clients may not write where `read_only` is set, as users with all privileges may.
fn bound_by_read_only(servers: &[Server; 2], vendor: Vendor) -> Outcome {
    for server in servers {
        server.root(if vendor == Vendor::MariaDb {
            "REVOKE READ ONLY ADMIN, SUPER ON *.* FROM open@'%'"
        } else {
            "REVOKE CONNECTION_ADMIN, SUPER ON *.* FROM open@'%'"
        })?;
    }
    Ok(())
}

/// The writer becomes read-only while clients write, and another becomes the writer a while later:
/// what is refused meanwhile waits. Nobody but the clients' own trouble tells the monitor.
fn switchover(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (servers, proxy) = two(driver, vendor)?;
        let now = || places(&servers, &proxy);
        soon("0 1 ONLINE, 1 1 ONLINE, 1 2 ONLINE", now)
            .map_err(|words| format!("{vendor}: {words}; {}", proxy.log()))?;
        bound_by_read_only(&servers, vendor)?;
        for server in &servers {
            // Neither replicates from the other: what is where can be counted.
            server.root("SET GLOBAL read_only = 0; CREATE DATABASE d; CREATE TABLE d.t (c INT, n INT, PRIMARY KEY (c, n))")?;
        }
        servers[1].root("SET GLOBAL read_only = 1")?;
        proxy.admin("SET mysql-monitor_read_only_interval = 600000; SET mysql-monitor_ping_interval = 600000; LOAD MYSQL VARIABLES TO RUNTIME")?;
        // Those that are under way when this comes.
        soon("0 1 ONLINE, 1 1 ONLINE, 1 2 ONLINE", now)?;
        let over = Arc::new(AtomicBool::new(false));
        let writers: Vec<_> = (0..4)
            .map(|c| {
                let (mut client, over) = (log_in(&proxy)?, over.clone());
                asked(&mut client, "SET @c = 7, sql_mode = 'ANSI_QUOTES'")?;
                Ok(thread::spawn(move || -> Result<u32, String> {
                    let mut n = 0;
                    while !over.load(Ordering::Relaxed) {
                        asked(
                            &mut client,
                            &format!("INSERT INTO \"d\".t VALUES ({c}, {n} + @c)"),
                        )?;
                        n += 1;
                    }
                    Ok(n)
                }))
            })
            .collect::<Result<_, String>>()?;
        let rows = |server: &Server| -> Result<u32, String> {
            let said = server.root("SELECT count(*) FROM d.t")?;
            let count = said.lines().last().and_then(|line| line.parse().ok());
            count.ok_or(said)
        };
        soon("true", || Ok((rows(&servers[0])? > 50).to_string()))?;
        servers[0].root("SET GLOBAL read_only = 1")?;
        soon("true", || {
            let said = proxy.admin("SELECT Variable_Value > 0 FROM stats_mysql_global WHERE Variable_Name = 'Millrace_statements_held_for_writer'")?;
            Ok((said.trim() == "1").to_string())
        })?;
        soon("1 1 ONLINE, 1 2 ONLINE", now)?;
        servers[1].root("SET GLOBAL read_only = 0")?;
        soon("true", || Ok((rows(&servers[1])? > 50).to_string()))
            .map_err(|words| format!("{vendor}: {words}; {}", proxy.log()))?;
        over.store(true, Ordering::Relaxed);
        let mut said = 0;
        for writer in writers {
            said += writer
                .join()
                .map_err(|_| "a client has panicked".to_owned())?
                .map_err(|words| format!("{vendor}: {words}; {}", proxy.log()))?;
        }
        same(
            &(rows(&servers[0])? + rows(&servers[1])?).to_string(),
            &said.to_string(),
        )?;
    }
    Ok(())
}

/// A transaction goes on to its end on the server that it began on; a write is that server's to
/// refuse. A statement that waits in vain reads what the server said.
fn open_there(driver: Driver) -> Outcome {
    let (servers, proxy) = two(driver, Vendor::MariaDb)?;
    let now = || places(&servers, &proxy);
    soon("0 1 ONLINE, 1 1 ONLINE, 1 2 ONLINE", now)?;
    bound_by_read_only(&servers, Vendor::MariaDb)?;
    servers[0].root("CREATE DATABASE d; CREATE TABLE d.t (a INT)")?;
    let mut client = log_in(&proxy)?;
    let port = servers[0].port.to_string();
    asked(&mut client, "BEGIN")?;
    asked(&mut client, "INSERT INTO d.t VALUES (1)")?;
    servers[0].root("SET GLOBAL read_only = 1")?;
    soon("1 1 ONLINE, 1 2 ONLINE", now)?;
    let at = asked(&mut client, "SELECT @@port, count(*) FROM d.t")?;
    same(&at.concat().join(" "), &format!("{port} 1"))?;
    let refused = asked(&mut client, "INSERT INTO d.t VALUES (2)");
    expect(
        refused.as_ref().is_err_and(|words| words.contains("1290")),
        || format!("{refused:?}"),
    )?;
    asked(&mut client, "ROLLBACK")?;
    // Nobody is the writer, for as long as a statement waits.
    proxy.admin("SET mysql-connect_timeout_server_max = 500; LOAD MYSQL VARIABLES TO RUNTIME")?;
    let refused = asked(&mut client, "INSERT INTO d.t VALUES (3)");
    expect(
        refused.as_ref().is_err_and(|words| words.contains("9001")),
        || format!("{refused:?}"),
    )?;
    // And where the writer says that it only reads, and nobody knows better.
    proxy.admin("SET mysql-monitor_read_only_interval = 600000; SET mysql-connect_timeout_server_max = 10000; LOAD MYSQL VARIABLES TO RUNTIME")?;
    servers[0].root("SET GLOBAL read_only = 0")?;
    asked(&mut client, "INSERT INTO d.t VALUES (4)")?;
    same(
        &places(&servers, &proxy)?,
        "0 1 ONLINE, 1 1 ONLINE, 1 2 ONLINE",
    )
}

/// Two servers with an empty table each; neither replicates, so that what is where can be counted.
fn two_apart(driver: Driver, vendor: Vendor) -> Result<(Vec<Server>, Proxy), String> {
    let (servers, proxy) = two(driver, vendor)?;
    soon("0 1 ONLINE, 1 1 ONLINE, 1 2 ONLINE", || {
        places(&servers, &proxy)
    })?;
    bound_by_read_only(&servers, vendor)?;
    for server in &servers {
        server.root("SET GLOBAL read_only = 0; CREATE DATABASE d; CREATE TABLE d.t (a INT PRIMARY KEY) ENGINE=InnoDB")?;
    }
    servers[1].root("SET GLOBAL read_only = 1")?;
    soon("0 1 ONLINE, 1 1 ONLINE, 1 2 ONLINE", || {
        places(&servers, &proxy)
    })?;
    Ok((servers.into(), proxy))
}

/// Rows of the table on each server.
fn rows_of(servers: &[Server]) -> Result<String, String> {
    let of = |server: &Server| -> Result<String, String> {
        let said = server.root("SELECT COALESCE(GROUP_CONCAT(a ORDER BY a), '-') FROM d.t")?;
        Ok(said.lines().last().unwrap_or_default().to_owned())
    };
    let all: Result<Vec<_>, String> = servers.iter().map(of).collect();
    Ok(all?.join(" | "))
}

/// COMMIT is refused, and the server has rolled back, which its error does not say: nothing of it is
/// left, and the next statement waits for the next writer as any other.
fn refused_commit(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (servers, proxy) = two_apart(driver, vendor)?;
        for (manual, begin) in [(false, "BEGIN"), (true, "SET autocommit = 0")] {
            let at = 10 * i32::from(manual);
            let mut client = log_in(&proxy)?;
            asked(&mut client, begin)?;
            asked(&mut client, &format!("INSERT INTO d.t VALUES ({})", at + 1))?;
            let from = usize::from(manual);
            servers[from].root("SET GLOBAL read_only = 1")?;
            let refused = asked(&mut client, "COMMIT");
            expect(
                refused.as_ref().is_err_and(|words| words.contains("1290")),
                || format!("{vendor}, {begin}: {refused:?}"),
            )?;
            let open = servers[from].root("SELECT count(*) FROM information_schema.innodb_trx")?;
            same(open.lines().last().unwrap_or_default(), "0")?;
            let next = thread::spawn(move || {
                asked(&mut client, &format!("INSERT INTO d.t VALUES ({})", at + 2))?;
                asked(&mut client, "COMMIT")
            });
            servers[1 - from].root("SET GLOBAL read_only = 0")?;
            next.join()
                .map_err(|_| "the client has panicked".to_owned())?
                .map_err(|words| format!("{vendor}, {begin}: {words}; {}", proxy.log()))?;
        }
        same(&rows_of(&servers)?, "12 | 2")?;
    }
    Ok(())
}

/// A transaction that was open there when its writer was demoted is done again on the next one: a COMMIT that was
/// refused, and a statement in the middle. Where a result would differ the client reads what the
/// server said, and goes on there.
fn moved_transaction(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (servers, proxy) = two_apart(driver, vendor)?;
        proxy.admin(
            "INSERT INTO mysql_hostgroup_attributes (hostgroup_id, hostgroup_settings) \
             VALUES (0, '{\"transaction_replay\": 1}'); LOAD MYSQL SERVERS TO RUNTIME",
        )?;
        let switch = |from: usize| -> Outcome {
            servers[from].root("SET GLOBAL read_only = 1")?;
            servers[1 - from].root("SET GLOBAL read_only = 0")?;
            Ok(())
        };
        let mut client = log_in(&proxy)?;
        let mut all = |texts: &[&str]| -> Result<String, String> {
            let mut last = Vec::new();
            for text in texts {
                last = asked(&mut client, text)
                    .map_err(|words| format!("{vendor}, {text}: {words}; {}", proxy.log()))?;
            }
            Ok(last.concat().join(" "))
        };
        all(&["BEGIN", "INSERT INTO d.t VALUES (1)"])?;
        switch(0)?;
        all(&["COMMIT"])?;
        same(&rows_of(&servers)?, "- | 1")?;
        all(&["SET autocommit = 0", "INSERT INTO d.t VALUES (2)"])?;
        switch(1)?;
        all(&["INSERT INTO d.t VALUES (3)", "COMMIT", "SET autocommit = 1"])?;
        same(&rows_of(&servers)?, "2,3 | 1")?;
        same(
            &all(&[
                "BEGIN",
                "INSERT INTO d.t VALUES (4)",
                "SELECT count(*) FROM d.t",
            ])?,
            "3",
        )?;
        switch(0)?;
        let refused = all(&["INSERT INTO d.t VALUES (5)"]);
        expect(
            refused.as_ref().is_err_and(|words| {
                words.contains("1290") && words.contains("not replayed: a result differed")
            }),
            || format!("{vendor}: {refused:?}"),
        )?;
        same(&all(&["SELECT count(*) FROM d.t"])?, "3")?;
        all(&["ROLLBACK", "INSERT INTO d.t VALUES (6)"])?;
        same(&rows_of(&servers)?, "2,3 | 1,6")?;
    }
    Ok(())
}

/// Both may write when the proxy starts: the one that was the writer before is it.
/// Two servers may write when the proxy comes back, and then the one that was the writer is dead.
fn remembered(driver: Driver) -> Outcome {
    let (mut servers, mut proxy) = two(driver, Vendor::MariaDb)?;
    soon("0 1 ONLINE, 1 1 ONLINE, 1 2 ONLINE", || {
        places(&servers, &proxy)
    })?;
    proxy.admin("SAVE MYSQL SERVERS TO DISK; SAVE MYSQL VARIABLES TO DISK")?;
    proxy.kill();
    servers[1].root("SET GLOBAL read_only = 0")?;
    proxy.restart()?;
    soon("2", || {
        let asked = "SELECT count(DISTINCT port) FROM monitor.mysql_server_read_only_log WHERE read_only = 0";
        Ok(proxy.admin(asked)?.trim().to_owned())
    })?;
    soon("0 1 ONLINE, 1 1 ONLINE, 1 2 ONLINE", || {
        places(&servers, &proxy)
    })?;
    proxy.kill();
    servers[0].kill();
    proxy.restart()?;
    let writes = "SELECT 1 + (port = {}) FROM runtime_mysql_servers WHERE hostgroup_id = 0 AND status = 'ONLINE'";
    soon("2", || {
        Ok(proxy
            .admin(&writes.replace("{}", &servers[1].port.to_string()))?
            .trim()
            .to_owned())
    })
}

/// A hostgroup whose only server is gone, and one that takes its reads meanwhile.
fn fallback(driver: Driver) -> Outcome {
    let (mut servers, proxy) = two(driver, Vendor::MariaDb)?;
    let [one, other] = [servers[0].port, servers[1].port];
    proxy.admin(&format!(
        "DELETE FROM mysql_replication_hostgroups; DELETE FROM mysql_servers; \
         INSERT INTO mysql_servers (hostgroup_id, hostname, port) VALUES (0, '127.0.0.1', {one}), (1, '127.0.0.1', {other}); \
         INSERT INTO mysql_hostgroup_attributes (hostgroup_id, hostgroup_settings) VALUES (1, '{{\"fallback_hostgroup\":0}}'); \
         LOAD MYSQL SERVERS TO RUNTIME"
    ))?;
    let mut client = log_in(&proxy)?;
    let mut reads = || Ok(reached(&mut client, "SELECT @@port")?.to_string());
    let explained = || proxy.admin("EXPLAIN ROUTE 'SELECT 1' AS open");
    soon(&other.to_string(), &mut reads)?;
    servers[1].kill();
    soon(&one.to_string(), || match reads() {
        // The connection broke under it.
        Err(words) if words.contains("2013") => Ok(words),
        said => said,
    })?;
    soon("true", || {
        Ok(explained()?
            .contains("hostgroup 0, the fallback")
            .to_string())
    })?;
    expect(
        explained()?.contains("hostgroup 1: no: does not answer"),
        || format!("{:?}", explained()),
    )?;
    let fell = proxy.admin("SELECT Variable_Value > 0 FROM stats_mysql_global WHERE Variable_Name = 'Millrace_statements_fell_back'")?;
    same(fell.trim(), "1")?;
    servers[1].restart()?;
    soon(&other.to_string(), reads)?;
    expect(explained()?.contains("in hostgroup 1: may serve"), || {
        format!("{:?}", explained())
    })
}

/// The account of a fresh installation exists almost nowhere.
fn denied(driver: Driver) -> Outcome {
    let (servers, proxy) = two(driver, Vendor::MariaDb)?;
    let now = || places(&servers, &proxy);
    soon("0 1 ONLINE, 1 1 ONLINE, 1 2 ONLINE", now)?;
    proxy.admin("SET mysql-monitor_password = 'wrong'; LOAD MYSQL VARIABLES TO RUNTIME")?;
    soon("1", || {
        let asked = "SELECT count(*) > 10 FROM monitor.mysql_server_ping_log WHERE ping_error LIKE '%1045%'";
        Ok(proxy.admin(asked)?.trim().to_owned())
    })?;
    same(&now()?, "0 1 ONLINE, 1 1 ONLINE, 1 2 ONLINE")?;
    expect(proxy.says("cannot be checked, and keeps its place"), || {
        proxy.log()
    })
}

/// A replica whose replication does not run counts as being behind.
fn behind(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (servers, proxy) = two(driver, vendor)?;
        let now = || places(&servers, &proxy);
        soon("0 1 ONLINE, 1 1 ONLINE, 1 2 ONLINE", now)
            .map_err(|words| format!("{vendor}: {words}; {}", proxy.log()))?;
        proxy.admin(
            "UPDATE mysql_servers SET max_replication_lag = 10; LOAD MYSQL SERVERS TO RUNTIME",
        )?;
        let source = servers[0].port;
        servers[1].root(&if vendor == Vendor::MariaDb {
            format!("CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = {source}, MASTER_USER = 'nobody'")
        } else {
            format!("CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = {source}, SOURCE_USER = 'nobody'")
        })?;
        soon("0 1 ONLINE, 1 1 ONLINE, 1 2 SHUNNED", now)
            .map_err(|words| format!("{vendor}: {words}; {}", proxy.log()))?;
        let said = proxy.admin(
            "SELECT DISTINCT status FROM stats_mysql_connection_pool WHERE status <> 'ONLINE'",
        )?;
        same(said.trim(), "SHUNNED_REPLICATION_LAG")?;
        let lag = proxy.admin("SELECT DISTINCT repl_lag FROM monitor.mysql_server_replication_lag_log WHERE repl_lag IS NOT NULL")?;
        same(lag.trim(), "60")?;
        proxy
            .admin("SET mysql-monitor_slave_lag_when_null = 5; LOAD MYSQL VARIABLES TO RUNTIME")?;
        soon("0 1 ONLINE, 1 1 ONLINE, 1 2 ONLINE", now)
            .map_err(|words| format!("{vendor}: {words}; {}", proxy.log()))?;
        // Its lag is asked for hardly ever now. It is promoted, and behind nobody any more.
        proxy
            .admin("SET mysql-monitor_slave_lag_when_null = 60; LOAD MYSQL VARIABLES TO RUNTIME")?;
        soon("0 1 ONLINE, 1 1 ONLINE, 1 2 SHUNNED", now)?;
        proxy.admin(
            "SET mysql-monitor_replication_lag_interval = 604800000; LOAD MYSQL VARIABLES TO RUNTIME",
        )?;
        let asked = || {
            proxy.admin("SELECT COUNT(*) FROM monitor.mysql_server_replication_lag_log WHERE time_start_us > (SELECT MAX(time_start_us) - 1000000 FROM monitor.mysql_server_read_only_log)")
        };
        soon("0\n", asked)?;
        let alone = match vendor {
            Vendor::MariaDb => "RESET SLAVE ALL",
            Vendor::MySql => "RESET REPLICA ALL",
        };
        servers[0].root("SET GLOBAL read_only = 1")?;
        servers[1].root(&format!("{alone}; SET GLOBAL read_only = 0"))?;
        soon("0 2 ONLINE, 1 1 ONLINE, 1 2 ONLINE", now)
            .map_err(|words| format!("{vendor}: {words}; {}", proxy.log()))?;
    }
    Ok(())
}

/// Replicas begin with `read_only = 0`. One that nobody has made read-only gets no writes, whoever is asked
/// first; and where the source moves, writes move, too.
fn writable_replica(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (reset, stops, follows, starts) = match vendor {
            Vendor::MariaDb => (
                "RESET MASTER",
                "STOP SLAVE; RESET SLAVE ALL",
                "CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_USER = 'repl', MASTER_PASSWORD = 'repl', MASTER_PORT",
                "START SLAVE",
            ),
            Vendor::MySql => (
                "RESET BINARY LOGS AND GTIDS",
                "STOP REPLICA; RESET REPLICA ALL",
                "CHANGE REPLICATION SOURCE TO GET_SOURCE_PUBLIC_KEY = 1, SOURCE_HOST = '127.0.0.1', SOURCE_USER = 'repl', \
                 SOURCE_PASSWORD = 'repl', SOURCE_PORT",
                "START REPLICA",
            ),
        };
        let start =
            |id: &str| Server::start_with(vendor, &["--log-bin=log", "--relay-log=relay", id]);
        let mut servers = [start("--server-id=1")?, start("--server-id=2")?];
        let _made_anew = std::fs::remove_file(servers[1].tls_file("auto.cnf"));
        servers[1].restart()?;
        for server in &servers {
            server.root(by_hand::CREATE_USER)?;
            server.root(&account(vendor))?;
            server.root("CREATE USER repl@'%' IDENTIFIED BY 'repl'; GRANT REPLICATION SLAVE ON *.* TO repl@'%'")?;
            server.root(reset)?;
        }
        let follow = |one: &Server, other: &Server| {
            one.root(&format!("{follows} = {}; {starts}", other.port))
        };
        follow(&servers[1], &servers[0])?;
        let proxy = in_front_of(driver, &servers)?;
        let now = || places(&servers, &proxy);
        let told = |words: String| format!("{vendor}: {words}; {}", proxy.log());
        let refused = "gets no writes: read_only is 0, but it replicates from another";
        expect(proxy.says(refused), || told(String::new()))?;
        soon("0 1 ONLINE, 1 1 ONLINE, 1 2 ONLINE", now).map_err(told)?;
        // The other way round, and nobody touches read_only.
        servers[1].root(stops)?;
        follow(&servers[0], &servers[1])?;
        soon("0 2 ONLINE, 1 1 ONLINE, 1 2 ONLINE", now).map_err(told)?;
    }
    Ok(())
}
