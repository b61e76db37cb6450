//! What an operator does to a running proxy, and what clients then see: an end with grace, servers
//! that are taken away, certificates that are renewed.
#![forbid(unsafe_code)]

use std::fs;
use std::io::{self, BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use conformance::by_hand::{self, Raw, complaint};
use conformance::process::{TempFolder, output};
use conformance::proxy::{Driver, Proxy, Wish, command_line, program};
use conformance::servers::{Server, Vendor};
use conformance::trials::{self, expect, same};
use conformance::watch::HANGS;

type Outcome = Result<(), String>;

fn main() {
    trials::run(&[
        ("during_a_drain_the_cores_still_answer", draining),
        (
            "offline_hard_cuts_off_at_once_what_runs_and_what_is_held",
            offline_hard,
        ),
        (
            "offline_hard_cuts_off_what_is_held_by_who_waits_elsewhere",
            offline_hard_elsewhere,
        ),
        ("what_happens_is_counted", counted),
        (
            "errors_know_their_client_and_times_their_hostgroup_and_class_also_without_digests",
            told_apart,
        ),
        (
            "a_statistics_user_changes_nothing_by_preparing",
            statistics_user,
        ),
        ("hits_of_rules_are_counted_until_rules_are_loaded", hits),
        ("the_log_says_why_a_client_got_no_connection", no_connection),
        (
            "a_log_that_nobody_takes_stops_nobody",
            log_that_nobody_takes,
        ),
        (
            "a_start_that_cannot_be_says_what_to_do_and_harms_nobody",
            refused_starts,
        ),
        ("a_renewed_certificate_is_served_after_reload_tls", renewed),
        (
            "the_log_has_what_servers_complain_about_if_it_shall",
            complaints,
        ),
        ("idle_sessions_are_listed_if_they_shall_be", idle_listed),
    ])
}

fn one(driver: Driver) -> Result<(Server, Proxy), String> {
    let server = Server::start(Vendor::MariaDb)?;
    server.root(by_hand::CREATE_USER)?;
    let mut wish = Wish::in_front_of(&server);
    wish.add_open_user();
    let proxy = Proxy::start(driver, &wish)?;
    Ok((server, proxy))
}

fn log_in(proxy: &Proxy) -> Result<Raw, String> {
    Raw::log_in(proxy.port).map_err(|error| error.to_string())
}

fn asked(client: &mut Raw, sql: &str) -> Result<Vec<Vec<String>>, String> {
    client.ask(sql).map_err(|error| format!("{sql}: {error}"))
}

fn is_error(said: &io::Result<Vec<Vec<String>>>, code: &str) -> Outcome {
    expect(
        said.as_ref()
            .is_err_and(|error| error.to_string().starts_with(code)),
        || format!("error {code} was wanted: {said:?}"),
    )
}

fn hits(driver: Driver) -> Outcome {
    let (_server, proxy) = one(driver)?;
    proxy.admin("INSERT INTO mysql_query_rules (rule_id, active, match_digest) VALUES (1, 1, '^SELECT'), (2, 1, '^DO'); LOAD MYSQL QUERY RULES TO RUNTIME")?;
    // Of both cores.
    let mut clients = [log_in(&proxy)?, log_in(&proxy)?, log_in(&proxy)?];
    let mut counted = |wanted: &str| {
        for client in &mut clients {
            asked(client, "SELECT 1")?;
        }
        same(
            &proxy.admin("SELECT rule_id, hits FROM stats_mysql_query_rules ORDER BY rule_id")?,
            wanted,
        )
    };
    counted("1\t3\n2\t0")?;
    proxy.admin(
        "UPDATE mysql_users SET max_connections = max_connections - 1; LOAD MYSQL USERS TO RUNTIME",
    )?;
    counted("1\t6\n2\t0")?;
    proxy.admin("UPDATE mysql_servers SET weight = 2; LOAD MYSQL SERVERS TO RUNTIME")?;
    counted("1\t9\n2\t0")?;
    proxy.admin("SET mysql-long_query_time = 1234; LOAD MYSQL VARIABLES TO RUNTIME")?;
    counted("1\t12\n2\t0")?;
    proxy.admin("UPDATE mysql_query_rules SET match_digest = '^DONE' WHERE rule_id = 2; LOAD MYSQL QUERY RULES TO RUNTIME")?;
    counted("1\t3\n2\t0")
}

/// Checks what the client is told without having asked, and that it is the last.
fn is_sent_away(client: &mut Raw, code: &str) -> Outcome {
    let told = client.packet().map(|packet| complaint(&packet).to_string());
    expect(
        told.as_ref().is_ok_and(|words| words.starts_with(code)),
        || format!("error {code} was wanted: {told:?}"),
    )?;
    expect(client.packet().is_err(), || {
        "the connection is still open".to_owned()
    })
}

/// Looks until it is so.
fn soon(what: &str, mut look: impl FnMut() -> Result<bool, String>) -> Outcome {
    let until = Instant::now() + HANGS;
    while !look()? {
        expect(Instant::now() < until, || {
            format!("for 20 seconds it is not so: {what}")
        })?;
        thread::sleep(Duration::from_millis(30));
    }
    Ok(())
}

/// Nothing that was not committed is in the table.
fn is_empty(server: &Server) -> Outcome {
    same(&server.root("SELECT * FROM conf.scratch")?, "")
}

fn draining(driver: Driver) -> Outcome {
    let (server, mut proxy) = one(driver)?;
    // One client on two cores: one of them has nobody any more, and is asked all the same.
    let mut client = log_in(&proxy)?;
    asked(&mut client, "BEGIN")?;
    asked(&mut client, "INSERT INTO conf.scratch VALUES (1, 'x')")?;
    let mut idle = log_in(&proxy)?;
    asked(&mut idle, "SELECT 1")?;
    proxy.admin("SET mysql-shutdown_deadline_ms = 600000; LOAD MYSQL VARIABLES TO RUNTIME; PROXYSQL SHUTDOWN")?;
    is_sent_away(&mut idle, "1053")?;
    // Every core hears of it by itself.
    soon("nobody is let in any more", || Ok(log_in(&proxy).is_err()))?;
    asked(&mut client, "INSERT INTO conf.scratch VALUES (2, 'x')")?;
    drop(idle);
    let left = format!("{}\topen\tSleep", client.id);
    soon("only the one with a transaction is left", || {
        Ok(proxy
            .admin("SELECT SessionID, user, command FROM stats_mysql_processlist")?
            .trim()
            == left)
    })?;
    same(
        &proxy.admin("SELECT Variable_Value FROM stats_mysql_global WHERE Variable_Name = 'Client_Connections_connected'")?,
        "1",
    )?;
    proxy.admin("SET mysql-long_query_time = 1234; LOAD MYSQL VARIABLES TO RUNTIME")?;
    expect(proxy.runs(), || format!("it ended:\n{}", proxy.log()))?;
    proxy.admin(&format!("KILL CONNECTION {}", client.id))?;
    is_sent_away(&mut client, "1317")?;
    soon("the proxy has ended", || Ok(!proxy.runs()))?;
    expect(proxy.says("sessions have 600000 ms to end"), || proxy.log())?;
    is_empty(&server)
}

/// Whoever waits for a connection to one hostgroup keeps nothing on a server of another that is cut
/// off.
fn offline_hard_elsewhere(driver: Driver) -> Outcome {
    let (server, proxy) = one(driver)?;
    // Longer than anybody waits here.
    proxy
        .admin("SET mysql-connect_timeout_server_max = 600000; LOAD MYSQL VARIABLES TO RUNTIME")?;
    proxy.admin(
        "INSERT INTO mysql_query_rules (rule_id, active, match_pattern, destination_hostgroup, apply) VALUES (1, 1, 'far', 7, 1); \
         LOAD MYSQL QUERY RULES TO RUNTIME",
    )?;
    let mut has_lock = log_in(&proxy)?;
    asked(&mut has_lock, "SELECT GET_LOCK('elsewhere', 0)")?;
    has_lock
        .query("SELECT 'far'")
        .map_err(|error| error.to_string())?;
    let is_free = || {
        Ok::<_, String>(
            server
                .root("SELECT IS_FREE_LOCK('elsewhere')")?
                .trim()
                .ends_with('1'),
        )
    };
    soon("the lock is taken", || Ok(!is_free()?))?;
    soon("it waits", || {
        Ok(proxy
            .admin("SELECT COUNT(*) FROM stats_mysql_processlist WHERE info LIKE '%far%'")?
            .trim()
            .ends_with('1'))
    })?;
    proxy
        .admin("UPDATE mysql_servers SET status = 'OFFLINE_HARD'; LOAD MYSQL SERVERS TO RUNTIME")?;
    soon("the lock is free", is_free)?;
    is_error(&has_lock.rows(), "1053")
}

fn offline_hard(driver: Driver) -> Outcome {
    let (first, proxy) = one(driver)?;
    let second = Server::start(Vendor::MariaDb)?;
    second.root(by_hand::CREATE_USER)?;
    first.root("CREATE VIEW conf.slow AS SELECT SLEEP(600) AS slept")?;
    second.root("CREATE VIEW conf.slow AS SELECT 'not here' AS slept")?;

    let mut in_transaction = log_in(&proxy)?;
    asked(&mut in_transaction, "BEGIN")?;
    asked(
        &mut in_transaction,
        "INSERT INTO conf.scratch VALUES (1, 'x')",
    )?;
    let mut holds_little = log_in(&proxy)?;
    asked(&mut holds_little, "SELECT 1 / 0")?;
    let mut free = log_in(&proxy)?;
    asked(&mut free, "SELECT 1")?;
    let runs = |sql: &'static str| -> Result<_, String> {
        let mut client = log_in(&proxy)?;
        Ok(thread::spawn(move || {
            let said = client.ask(sql);
            (client, said)
        }))
    };
    let reads = runs("SELECT slept FROM conf.slow")?;
    let writes = runs("INSERT INTO conf.scratch SELECT 2, slept FROM conf.slow")?;
    let on_first = |text: &str| {
        Ok::<_, String>(
            first
                .root("SHOW FULL PROCESSLIST")?
                .lines()
                .filter(|line| line.contains(text))
                .count(),
        )
    };
    soon("both statements run", || {
        Ok(on_first("FROM conf.slow")? == 2)
    })?;

    proxy.admin(&format!(
        "UPDATE mysql_servers SET status = 'OFFLINE_HARD'; \
         INSERT INTO mysql_servers (hostgroup_id, hostname, port) VALUES (0, '127.0.0.1', {}); LOAD MYSQL SERVERS TO RUNTIME",
        second.port
    ))?;
    // A read is done again by another; a write may have taken effect.
    let (mut client, said) = reads.join().map_err(|_| "the reader panicked".to_owned())?;
    expect(
        said.as_ref().is_ok_and(|rows| *rows == [["not here"]]),
        || format!("the read was not done again: {said:?}"),
    )?;
    asked(&mut client, "SELECT 1")?;
    let (mut client, said) = writes
        .join()
        .map_err(|_| "the writer panicked".to_owned())?;
    is_error(&said, "1053")?;
    asked(&mut client, "SELECT 1")?;
    same(
        &proxy.admin("SELECT Variable_Value FROM stats_mysql_global WHERE Variable_Name = 'backend_offline_during_query'")?,
        "2",
    )?;
    // A transaction went with its connection; warnings and the like are no reason to go.
    is_sent_away(&mut in_transaction, "1053")?;
    for client in [&mut holds_little, &mut free] {
        let port = asked(client, "SELECT @@port")?;
        expect(port == [[second.port.to_string()]], || {
            format!("it is on {port:?}")
        })?;
    }
    soon("nothing of the proxy is on the first server", || {
        let users =
            first.root("SELECT * FROM information_schema.processlist WHERE user = 'open'")?;
        Ok(users.trim().is_empty())
    })?;
    is_empty(&first)?;

    // A server that is removed is left alike.
    asked(&mut free, "BEGIN")?;
    asked(&mut free, "INSERT INTO conf.scratch VALUES (3, 'x')")?;
    proxy.admin("DELETE FROM mysql_servers; LOAD MYSQL SERVERS TO RUNTIME")?;
    is_sent_away(&mut free, "1053")?;
    is_empty(&second)
}

fn counted(driver: Driver) -> Outcome {
    let (_server, proxy) = one(driver)?;
    let mut client = log_in(&proxy)?;
    let mut counts = |sql: &[&str], counters: &[(&str, u64)]| -> Outcome {
        for sql in sql {
            asked(&mut client, sql)?;
        }
        for (name, wanted) in counters {
            let said = proxy.admin(&format!(
                "SELECT Variable_Value FROM stats_mysql_global WHERE Variable_Name = '{name}'"
            ))?;
            same(&said, &wanted.to_string())
                .map_err(|error| format!("{name} after {sql:?}: {error}"))?;
        }
        Ok(())
    };
    counts(
        &["SELECT 1"],
        &[
            ("Active_Transactions", 0),
            ("Com_autocommit", 0),
            ("Client_Connections_hostgroup_locked", 0),
        ],
    )?;
    counts(
        &["SET autocommit = 1", "COMMIT", "ROLLBACK"],
        &[("Com_autocommit", 1), ("Com_autocommit_filtered", 1)],
    )?;
    counts(
        &[],
        &[
            ("Com_commit", 1),
            ("Com_commit_filtered", 1),
            ("Com_rollback", 1),
            ("Com_rollback_filtered", 1),
        ],
    )?;
    counts(
        &["SET NAMES latin1", "USE conf"],
        &[("Com_frontend_set_names", 1), ("Com_frontend_use_db", 1)],
    )?;
    counts(
        &["BEGIN"],
        &[
            ("Active_Transactions", 1),
            ("Client_Connections_hostgroup_locked", 0),
        ],
    )?;
    counts(
        &["COMMIT"],
        &[
            ("Active_Transactions", 0),
            ("Com_commit", 2),
            ("Com_commit_filtered", 1),
        ],
    )?;
    counts(
        &["SET autocommit = 0", "SET autocommit = 1"],
        &[("Com_autocommit", 3), ("Com_autocommit_filtered", 3)],
    )?;
    counts(
        &["CREATE TEMPORARY TABLE conf.t (a INT)"],
        &[("Client_Connections_hostgroup_locked", 1)],
    )?;
    counts(
        &["DROP TEMPORARY TABLE conf.t"],
        &[
            ("Client_Connections_hostgroup_locked", 0),
            ("Backend_query_time_nsec", 0),
        ],
    )?;
    proxy.admin("SET mysql-stats_time_backend_query = 'true'; LOAD MYSQL VARIABLES TO RUNTIME")?;
    asked(&mut client, "SELECT SLEEP(0.01)")?;
    let took =
        proxy.admin("SELECT Variable_Value > 0 FROM stats_mysql_global WHERE Variable_Name = 'Backend_query_time_nsec'")?;
    same(&took, "1")
}

fn told_apart(driver: Driver) -> Outcome {
    let (_server, proxy) = one(driver)?;
    proxy.admin(
        "SET mysql-query_digests = 'false'; SET mysql-query_digests_track_hostname = 'true'; LOAD MYSQL VARIABLES TO RUNTIME",
    )?;
    let mut client = log_in(&proxy)?;
    for _ in 0..2 {
        expect(client.ask("SELECT * FROM conf.nowhere").is_err(), || {
            "a table that is not there was read".to_owned()
        })?;
        asked(&mut client, "DO 1")?;
    }
    let is = |sql: &'static str, wanted: &'static str| {
        let proxy = &proxy;
        soon(sql, move || Ok(proxy.admin(sql)?.trim() == wanted))
    };
    is(
        "SELECT client_address, count_star FROM stats_mysql_errors WHERE errno = 1146",
        "127.0.0.1\t2",
    )?;
    is(
        "SELECT count_star >= 4 AND max_us >= p50_us FROM stats_mysql_hostgroup_latency WHERE hostgroup = 0",
        "1",
    )?;
    is(
        "SELECT count_star >= 2 AND histogram LIKE '[[%' FROM stats_mysql_command_latency WHERE Command = 'SELECT'",
        "1",
    )?;
    is("SELECT count(*) FROM stats_mysql_query_digest", "0")
}

fn statistics_user(driver: Driver) -> Outcome {
    let (_server, proxy) = one(driver)?;
    let told = |sql: &str| command_line(proxy.admin_port, "stats", "stats", &[], sql);
    for text in [
        "PRAGMA query_only=0",
        "EXPLAIN PRAGMA query_only=0",
        "SELECT 1 FROM information_schema.tables LIMIT 1; PRAGMA query_only=0",
    ] {
        let said = told(text);
        expect(said.is_err() || text.contains(';'), || {
            format!("{text}: {said:?}")
        })?;
        let write = told("DELETE FROM stats_history.history_mysql_query_digest");
        expect(
            write
                .as_ref()
                .is_err_and(|words| words.contains("readonly")),
            || format!("after {text}: {write:?}"),
        )?;
    }
    same(&told("SELECT count(*) > 1 FROM stats_mysql_global")?, "1")
}

fn no_connection(driver: Driver) -> Outcome {
    let (_server, proxy) = one(driver)?;
    proxy.admin(
        "INSERT INTO mysql_users (username, password, default_hostgroup) VALUES ('ghost', 'x', 0), ('lost', 'x', 77), ('off', 'x', 78); \
         INSERT INTO mysql_servers (hostgroup_id, hostname, status) VALUES (78, 'a', 'OFFLINE_SOFT'); \
         SET mysql-connect_timeout_server_max = 500; \
         LOAD MYSQL USERS TO RUNTIME; LOAD MYSQL SERVERS TO RUNTIME; LOAD MYSQL VARIABLES TO RUNTIME",
    )?;
    for (user, code, words) in [
        (
            "ghost",
            "ERROR 1045",
            "does not let user 'ghost' in: error 1045",
        ),
        (
            "lost",
            "ERROR 9001",
            "user 'lost' got no connection to hostgroup 77 within",
        ),
        ("lost", "ERROR 9001", "it has no server in mysql_servers"),
        (
            "off",
            "ERROR 9001",
            "none of its servers is ONLINE with a weight above 0",
        ),
    ] {
        let said = command_line(proxy.port, user, "x", &[], "SELECT 1");
        expect(said.as_ref().is_err_and(|said| said.contains(code)), || {
            format!("{user}: {code} was wanted: {said:?}")
        })?;
        expect(proxy.says(words), || {
            format!("{words} was wanted:\n{}", proxy.log())
        })?;
    }
    same(
        &proxy.admin("SELECT ConnERR FROM stats_mysql_connection_pool WHERE hostgroup = 0")?,
        "1",
    )
}

/// Cores and the admin port say more than the pipe and what waits for it hold.
fn log_that_nobody_takes(driver: Driver) -> Outcome {
    let (_server, mut proxy) = one(driver)?;
    let words = |error: io::Error| error.to_string();
    let log = proxy.data().join("log");
    fs::remove_file(&log).map_err(words)?;
    let mut make = Command::new("mkfifo");
    output(make.arg(&log), Duration::from_secs(30))?;
    // For both, so that no end waits for the other.
    let both = fs::OpenOptions::new().read(true).write(true).open(&log);
    let pipe = both.map_err(words)?;
    proxy.restart()?;
    proxy.admin(
        "INSERT INTO mysql_users (username, password, fast_forward) \
         WITH RECURSIVE many (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM many WHERE n < 500) SELECT 'through' || n, 'x', 1 FROM many; \
         INSERT INTO mysql_firewall_whitelist_users (active, username, client_address, mode, comment) \
         SELECT 1, username, '', 'DETECTING', '' FROM mysql_users; \
         LOAD MYSQL FIREWALL TO RUNTIME; SET mysql-firewall_whitelist_enabled = 'true'; LOAD MYSQL VARIABLES TO RUNTIME",
    )?;
    for turn in 0..12 {
        // 500 lines.
        proxy.admin("LOAD MYSQL USERS TO RUNTIME")?;
        same(&proxy.query(&format!("SELECT {turn}"))?, &turn.to_string())?;
    }
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        let lines = BufReader::new(pipe).lines().map_while(Result::ok);
        lines
            .take_while(|line| tell.send(line.clone()).is_ok())
            .count()
    });
    let line_with = |words: &str| loop {
        let line = told.recv_timeout(Duration::from_secs(60));
        match line {
            Ok(line) if line.contains(words) => return Ok(()),
            Ok(_) => {}
            Err(error) => return Err(format!("{words}: {error}")),
        }
    };
    // Where the pipe was full.
    line_with("lines were dropped here: nobody has read the log")?;
    line_with("Firewall detected unknown query")?;
    same(&proxy.query("SELECT 'after'")?, "after")?;
    line_with("Firewall detected unknown query")
}

/// Starts another Millrace, which is to fail, and gives what it said.
fn fails(flags: &[&str], configuration: &Path, text: &str) -> Result<String, String> {
    fs::write(configuration, text).map_err(|error| error.to_string())?;
    let mut command = Command::new(program()?);
    command.args(["-f", "-c"]).arg(configuration).args(flags);
    match output(&mut command, HANGS)? {
        (true, said) => Err(format!("it ran: {said}")),
        (false, said) => Ok(said),
    }
}

fn refused_starts(driver: Driver) -> Outcome {
    let (_server, proxy) = one(driver)?;
    let folder = TempFolder::new("starts").map_err(|error| error.to_string())?;
    let (file, other) = (
        folder.path().join("proxysql.cnf"),
        folder.path().join("data").display().to_string(),
    );
    let says = |said: String, words: &str| {
        expect(said.contains(words), || {
            format!("'{words}' was wanted:\n{said}")
        })
    };
    // Everybody on this machine may connect, and nobody else may read what is saved.
    for (name, wanted) in [
        ("client.sock", "777"),
        ("proxysql.db", "600"),
        ("proxysql_stats.db", "600"),
    ] {
        let there =
            fs::metadata(proxy.data().join(name)).map_err(|error| format!("{name}: {error}"))?;
        same(&format!("{:o}", there.permissions().mode() & 0o777), wanted)?;
    }
    let taken = proxy.data().display().to_string();
    let of_another = format!(
        "is used by another Millrace (process {}): choose another with -D",
        proxy.id()
    );
    says(fails(&["-D", &taken], &file, "")?, &of_another)?;
    let traffic = format!(
        "mysql_variables = {{ interfaces = \"127.0.0.1:{}\" }}",
        proxy.port
    );
    says(
        fails(&["-D", &other], &file, &traffic)?,
        "another process listens there",
    )?;
    let operators = format!(
        "mysql_variables = {{ interfaces = \"{other}.sock\" }} admin_variables = {{ mysql_ifaces = \"127.0.0.1:{}\" }}",
        proxy.admin_port
    );
    says(
        fails(&["-D", &other, "--initial"], &file, &operators)?,
        "another process listens there",
    )?;
    says(
        fails(
            &["-D", &other, "--initial"],
            &file,
            "mysql_variables = { interfaces = \"nowhere\" }",
        )?,
        "mysql-interfaces must be a list of ip:port",
    )?;
    says(
        fails(&["-D", &file.display().to_string()], &file, "")?,
        "is not a directory",
    )?;
    // Whoever serves has noticed nothing, and its process id is where it was.
    same(
        &fs::read_to_string(proxy.data().join("millrace.pid"))
            .map_err(|error| error.to_string())?,
        &proxy.id().to_string(),
    )?;
    same(&proxy.query("SELECT 1")?, "1")
}

/// The certificate that a port offers to clients of MySQL.
fn certificate(port: u16) -> Result<String, String> {
    let mut command = Command::new("openssl");
    command.args([
        "s_client",
        "-starttls",
        "mysql",
        "-connect",
        &format!("127.0.0.1:{port}"),
    ]);
    let (_, said) = output(&mut command, HANGS)?;
    let (begin, end) = ("-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----");
    let from = said
        .find(begin)
        .ok_or_else(|| format!("no certificate: {said}"))?;
    let to = said[from..].find(end).ok_or("half a certificate")?;
    Ok(said[from..from + to + end.len()].to_owned())
}

fn renewed(driver: Driver) -> Outcome {
    let (server, proxy) = one(driver)?;
    let before = certificate(proxy.port)?;
    same(&certificate(proxy.admin_port)?, &before)?;
    let secrets = proxy.data().join("secrets");
    let said_secrets = || fs::read_to_string(&secrets).unwrap_or_default();
    proxy.admin(&format!(
        "SET admin-ssl_keylog_file = '{}'; LOAD ADMIN VARIABLES TO RUNTIME",
        secrets.display()
    ))?;
    same(&certificate(proxy.port)?, &before)?;
    soon("the secrets of a session are in the file", || {
        Ok(said_secrets().contains("SERVER_TRAFFIC_SECRET_0 "))
    })?;
    let is_open = fs::metadata(&secrets).map_err(|error| error.to_string())?;
    same(
        &format!("{:o}", is_open.permissions().mode() & 0o777),
        "600",
    )?;
    proxy.admin("SET admin-ssl_keylog_file = ''; LOAD ADMIN VARIABLES TO RUNTIME")?;
    let len = said_secrets().len();
    same(&certificate(proxy.port)?, &before)?;
    same(&said_secrets().len().to_string(), &len.to_string())?;
    for (of_server, ours) in [
        ("server-cert.pem", "proxysql-cert.pem"),
        ("server-key.pem", "proxysql-key.pem"),
    ] {
        fs::copy(server.tls_file(of_server), proxy.data().join(ours))
            .map_err(|error| error.to_string())?;
    }
    same(&certificate(proxy.port)?, &before)?;
    proxy.admin("PROXYSQL RELOAD TLS")?;
    let new = fs::read_to_string(server.tls_file("server-cert.pem"))
        .map_err(|error| error.to_string())?;
    // Clients are spread over the cores, and each core has its own.
    for port in [
        proxy.port,
        proxy.port,
        proxy.port,
        proxy.port,
        proxy.admin_port,
    ] {
        let served = certificate(port)?;
        expect(new.contains(&served), || format!("{served}\nis not\n{new}"))?;
    }
    // Files that do not belong together change nothing.
    fs::write(proxy.data().join("proxysql-key.pem"), "no key")
        .map_err(|error| error.to_string())?;
    let refused = proxy.admin("PROXYSQL RELOAD TLS");
    expect(refused.is_err(), || {
        format!("a broken key was taken: {refused:?}")
    })?;
    expect(new.contains(&certificate(proxy.port)?), || {
        "the certificate is another one".to_owned()
    })
}

fn complaints(driver: Driver) -> Outcome {
    let (_server, proxy) = one(driver)?;
    let mut client = log_in(&proxy)?;
    let fails = "SELECT * FROM conf.nowhere WHERE a = 'geheim'";
    let warns = "SELECT CAST('geheim' AS SIGNED), 7";
    let say_both = |client: &mut Raw| -> Outcome {
        is_error(&client.ask(fails), "1146")?;
        asked(client, warns).map(drop)
    };
    say_both(&mut client)?;
    expect(!proxy.log().contains("nowhere"), || proxy.log())?;
    proxy.admin(
        "SET mysql-verbose_query_error = 'true'; SET mysql-log_mysql_warnings_enabled = 'true'; SET mysql-handle_warnings = 0; \
         SET mysql-parse_failure_logs_digest = 'true'; LOAD MYSQL VARIABLES TO RUNTIME",
    )?;
    say_both(&mut client)?;
    // The client sees them as before.
    let shown = asked(&mut client, "SHOW WARNINGS")?;
    same(&shown[0][1], "1292")?;
    let logged = |words: &str| {
        expect(proxy.says(words), || {
            format!("{words} was wanted:\n{}", proxy.log())
        })
    };
    logged("error 1146 (")?;
    logged(": SELECT * FROM conf.nowhere WHERE a = ?")?;
    logged("warning 1292 (Truncated incorrect INTEGER value: 'geheim')")?;
    logged(": SELECT CAST(? AS SIGNED),?")?;
    // A connection that is kept for nothing else is given back, prepared statements warn as well.
    let held = "SELECT count(*) FROM stats_mysql_session_holds";
    soon("nothing is held", || Ok(proxy.admin(held)?.trim() == "0"))?;
    asked(&mut client, "SET autocommit = 0")?;
    asked(&mut client, "SELECT 1 FROM DUAL FOR UPDATE")?;
    asked(&mut client, "ROLLBACK")?;
    let count = |name: &str| {
        proxy.admin(&format!(
            "SELECT Variable_Value FROM stats_mysql_global WHERE Variable_Name = '{name}'"
        ))
    };
    same(&count("Selects_for_update__autocommit0")?, "1")?;
    // Messages are counted by what they have in common.
    let messages = "SELECT sum(count_star), min(filename), min(first_seen) > 0 FROM stats_proxysql_message_metrics WHERE func LIKE '%: error #%'";
    same(&proxy.admin(messages)?, "1\tcore\t1")?;
    proxy.admin("SELECT count(*) FROM stats_proxysql_message_metrics_reset")?;
    same(
        &proxy.admin("SELECT count(*) FROM stats_proxysql_message_metrics")?,
        "0",
    )
}

fn idle_listed(driver: Driver) -> Outcome {
    let (_server, proxy) = one(driver)?;
    let mut client = log_in(&proxy)?;
    asked(&mut client, "SELECT 1")?;
    let listed = "SELECT count(*) FROM stats_mysql_processlist";
    same(&proxy.admin(listed)?, "1")?;
    proxy.admin(
        "SET mysql-session_idle_show_processlist = 'false'; LOAD MYSQL VARIABLES TO RUNTIME",
    )?;
    soon("no idle session is listed", || {
        Ok(proxy.admin(listed)?.trim() == "0")
    })
}
