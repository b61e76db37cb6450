//! Sessions with nothing between their sockets: users with `fast_forward`, and whoever follows a
//! server's log.
#![forbid(unsafe_code)]

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use conformance::by_hand::{self, Raw};
use conformance::process::{output, resident_kib};
use conformance::proxy::{self, Driver, Proxy, Wish, command_line};
use conformance::servers::{Server, Vendor, in_path};
use conformance::trials::{self, expect, same, until, vendors_in_turn};
use conformance::watch::HANGS;

type Outcome = Result<(), String>;

fn main() {
    trials::run_on_both(&[
        ("a_session_is_shown_and_counted_and_leaves_nothing", shown),
        (
            "what_the_server_says_to_a_login_is_what_the_client_reads",
            refused,
        ),
        ("a_servers_limit_holds_for_them_too", limited),
        ("kill_ends_a_statement_or_a_session_busy_or_idle", killed),
        (
            "a_kill_in_the_middle_of_a_row_writes_nothing_into_it",
            killed_in_a_row,
        ),
        ("a_server_taken_away_and_a_long_silence_end_it", taken_away),
        (
            "a_client_that_leaves_ends_its_statement_on_the_server",
            left_alone,
        ),
        ("a_server_that_dies_ends_the_session_and_nothing_else", died),
        (
            "a_client_that_reads_slowly_stops_its_server_and_nobody_else",
            slow,
        ),
        ("a_change_of_user_is_ours_to_allow", changed),
        ("a_change_of_user_answers_for_nothing_else", changed_at_once),
        (
            "a_change_of_user_waits_for_no_connection_of_its_own",
            changed_where_it_is_full,
        ),
        ("what_looks_like_a_file_hides_no_change_of_user", hidden),
        ("a_log_is_followed_by_its_tool", followed),
        ("a_replica_replicates_through_it", replicated),
        ("old_commands_are_answered_or_refused", old_commands),
        ("a_load_says_what_the_firewall_does_not_see", warned),
    ])
}

fn one_with(driver: Driver, vendor: Vendor, options: &[&str]) -> Result<(Server, Proxy), String> {
    let server = Server::start_with(vendor, options)?;
    server.root(by_hand::CREATE_USER)?;
    let mut wish = Wish::in_front_of(&server);
    let user = proxy::OPEN_USER.replace(
        "default_hostgroup = 0",
        "default_hostgroup = 0, fast_forward = 1",
    );
    wish.users = format!("{},\n{user}", wish.users);
    let proxy = Proxy::start(driver, &wish)?;
    Ok((server, proxy))
}

fn one(driver: Driver) -> Result<(Server, Proxy), String> {
    one_with(driver, Vendor::MariaDb, &[])
}

fn log_in(proxy: &Proxy) -> Result<Raw, String> {
    Raw::log_in(proxy.port).map_err(|error| error.to_string())
}

fn asked(client: &mut Raw, sql: &str) -> Result<String, String> {
    let rows = client.ask(sql).map_err(|error| format!("{sql}: {error}"))?;
    Ok(rows
        .iter()
        .map(|row| row.join("\t"))
        .collect::<Vec<_>>()
        .join("\n"))
}

/// The last words to a client, up to the end of the connection.
fn last_words(client: &mut Raw) -> String {
    let mut words = String::new();
    while let Ok(packet) = client.packet() {
        words.push_str(&String::from_utf8_lossy(&packet));
    }
    words
}

const SESSIONS: &str = "SELECT Variable_Value FROM stats.stats_mysql_global WHERE Variable_Name = 'Millrace_fast_forward_sessions'";

fn shown(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let (_server, proxy) = one_with(driver, vendor, &[])?;
        let aborted = || {
            proxy.admin("SELECT Variable_Value FROM stats.stats_mysql_global WHERE Variable_Name = 'Client_Connections_aborted'")
        };
        let before = aborted()?;
        let mut client = log_in(&proxy)?;
        let own = asked(&mut client, "SELECT CONNECTION_ID()")?;
        same(&asked(&mut client, "SELECT 'through'")?, "through")?;
        same(&asked(&mut client, "SELECT CONNECTION_ID()")?, &own)?;
        same(
            &proxy
                .admin("SELECT command FROM stats.stats_mysql_processlist WHERE user = 'open'")?,
            "Fast Forward",
        )?;
        same(&proxy.admin(SESSIONS)?, "1")?;
        // No digest is kept, no rule is asked; commands and bytes are counted.
        same(
            &proxy.admin("SELECT COUNT(*) FROM stats.stats_mysql_query_digest")?,
            "0",
        )?;
        same(
            &proxy.admin("SELECT ConnUsed, Queries FROM stats.stats_mysql_connection_pool")?,
            "1\t3",
        )?;
        let bytes =
            proxy.admin("SELECT Bytes_data_sent > 60 AND Bytes_data_recv > 100 FROM stats.stats_mysql_connection_pool")?;
        same(&bytes, "1")?;
        client.command(&[0x01]).map_err(|error| error.to_string())?;
        until("0", || proxy.admin(SESSIONS))?;
        until("0\t0", || {
            proxy.admin("SELECT ConnUsed, ConnFree FROM stats.stats_mysql_connection_pool")
        })?;
        same(&aborted()?, &before)?;
    }
    Ok(())
}

fn refused(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let (server, proxy) = one_with(driver, vendor, &[])?;
        let direct = command_line(
            server.port,
            by_hand::USER,
            "",
            &["--database=nosuch"],
            "SELECT 1",
        );
        let through = command_line(
            proxy.port,
            by_hand::USER,
            "",
            &["--database=nosuch"],
            "SELECT 1",
        );
        expect(direct.is_err() && direct == through, || {
            format!("direct: {direct:?}\nthrough: {through:?}")
        })?;
        same(
            &command_line(
                proxy.port,
                by_hand::USER,
                "",
                &["--database=conf"],
                "SELECT DATABASE()",
            )?,
            "conf",
        )?;
        proxy.admin("UPDATE mysql_users SET default_schema = 'conf2' WHERE username = 'open'; LOAD MYSQL USERS TO RUNTIME")?;
        same(
            &command_line(proxy.port, by_hand::USER, "", &[], "SELECT DATABASE()")?,
            "conf2",
        )?;
    }
    Ok(())
}

fn limited(driver: Driver) -> Outcome {
    let (_server, proxy) = one(driver)?;
    proxy.admin(
        "UPDATE mysql_servers SET max_connections = 1; LOAD MYSQL SERVERS TO RUNTIME; \
         SET mysql-connect_timeout_server_max = 300; LOAD MYSQL VARIABLES TO RUNTIME",
    )?;
    let mut first = log_in(&proxy)?;
    let second = log_in(&proxy).map(drop);
    expect(
        second
            .as_ref()
            .is_err_and(|words| words.contains("Max connect timeout")),
        || format!("{second:?}"),
    )?;
    same(&asked(&mut first, "SELECT 1")?, "1")?;
    drop(first);
    let begun = Instant::now();
    while log_in(&proxy).is_err() {
        expect(begun.elapsed() < HANGS, || {
            "its room was not given back".to_owned()
        })?;
    }
    Ok(())
}

fn runs(server: &Server, what: &str) -> Result<String, String> {
    server.root(&format!(
        "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'SELECT{what}%'"
    ))
}

fn killed(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let (server, proxy) = one_with(driver, vendor, &[])?;
        // The statement: its session goes on.
        let mut client = log_in(&proxy)?;
        client
            .query("SELECT SLEEP(300) + 1")
            .map_err(|error| error.to_string())?;
        until("1", || runs(&server, " SLEEP"))?;
        proxy.admin(&format!("KILL QUERY {}", client.id))?;
        // MySQL's SLEEP says 1, MariaDB's statement ends with an error: both at once.
        let said = client
            .rows()
            .map(|rows| rows.concat().concat())
            .unwrap_or_else(|error| error.to_string());
        expect(said == "2" || said.contains("interrupted"), || said.clone())?;
        same(&asked(&mut client, "SELECT 'still here'")?, "still here")?;
        // The session, while it waits for a command: told why.
        proxy.admin(&format!("KILL CONNECTION {}", client.id))?;
        let words = last_words(&mut client);
        expect(words.contains("ended by the proxy's operator"), || {
            words.clone()
        })?;
        // The session, while it waits for an answer: ended on the server, too.
        let mut client = log_in(&proxy)?;
        client
            .query("SELECT SLEEP(301)")
            .map_err(|error| error.to_string())?;
        until("1", || runs(&server, " SLEEP(301"))?;
        proxy.admin(&format!("KILL CONNECTION {}", client.id))?;
        same(&last_words(&mut client), "")?;
        until("0", || runs(&server, " SLEEP(301"))?;
        until("0", || proxy.admin(SESSIONS))?;
    }
    Ok(())
}

fn taken_away(driver: Driver) -> Outcome {
    let (_server, proxy) = one(driver)?;
    let mut client = log_in(&proxy)?;
    proxy
        .admin("UPDATE mysql_servers SET status = 'OFFLINE_SOFT'; LOAD MYSQL SERVERS TO RUNTIME")?;
    same(&asked(&mut client, "SELECT 1")?, "1")?;
    proxy
        .admin("UPDATE mysql_servers SET status = 'OFFLINE_HARD'; LOAD MYSQL SERVERS TO RUNTIME")?;
    let words = last_words(&mut client);
    expect(words.contains("taken out of service"), || words.clone())?;
    proxy.admin("UPDATE mysql_servers SET status = 'ONLINE'; LOAD MYSQL SERVERS TO RUNTIME; SET mysql-wait_timeout = 1000; LOAD MYSQL VARIABLES TO RUNTIME")?;
    let mut client = log_in(&proxy)?;
    // While an answer is due it is not silent.
    same(&asked(&mut client, "SELECT SLEEP(3)")?, "0")?;
    let words = last_words(&mut client);
    expect(words.contains("inactivity"), || words.clone())?;
    // To COM_STMT_CLOSE none is.
    let mut client = log_in(&proxy)?;
    client
        .command(b"\x16SELECT 1")
        .map_err(|error| error.to_string())?;
    let prepared = client.packet().map_err(|error| error.to_string())?;
    // The column, and its EOF.
    for _ in 0..2 {
        client.packet().map_err(|error| error.to_string())?;
    }
    client
        .command(&[b"\x19", &prepared[1..5]].concat())
        .map_err(|error| error.to_string())?;
    let words = last_words(&mut client);
    expect(words.contains("inactivity"), || words.clone())
}

/// Pieces of an answer end anywhere, and an error of ours would be the rest of a row.
fn killed_in_a_row(driver: Driver) -> Outcome {
    let (server, proxy) = one(driver)?;
    for turn in 0..4 {
        let mut client = log_in(&proxy)?;
        let sql = format!(
            "SELECT REPEAT('x', 100) FROM conf.numbers a, conf.numbers b, conf.numbers c WHERE {turn} < 4"
        );
        client.query(&sql).map_err(|error| error.to_string())?;
        until("1", || runs(&server, " REPEAT"))?;
        // The count of columns, the column and its EOF, and some rows before it reads no more.
        for _ in 0..200 {
            client.packet().map_err(|error| error.to_string())?;
        }
        std::thread::sleep(Duration::from_millis(300));
        proxy.admin(&format!("KILL CONNECTION {}", client.id))?;
        let mut rows = 0_u64;
        while let Ok(row) = client.packet() {
            rows += 1;
            let whole = row.len() == 101 && row[1..].iter().all(|byte| *byte == b'x');
            expect(whole, || {
                format!("turn {turn}: row {rows} is {}", row.escape_ascii())
            })?;
        }
        expect(rows > 0, || "there was no row after the KILL".to_owned())?;
        until("0", || runs(&server, " REPEAT"))?;
    }
    until("0", || proxy.admin(SESSIONS))
}

fn left_alone(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let (server, proxy) = one_with(driver, vendor, &[])?;
        let mut client = log_in(&proxy)?;
        client
            .query("SELECT SLEEP(302)")
            .map_err(|error| error.to_string())?;
        until("1", || runs(&server, " SLEEP(302"))?;
        drop(client);
        until("0", || runs(&server, " SLEEP(302"))?;
        until("0", || proxy.admin(SESSIONS))?;
    }
    Ok(())
}

fn died(driver: Driver) -> Outcome {
    let (mut server, mut proxy) = one(driver)?;
    let mut busy = log_in(&proxy)?;
    let mut idle = log_in(&proxy)?;
    busy.query("SELECT SLEEP(303)")
        .map_err(|error| error.to_string())?;
    until("1", || runs(&server, " SLEEP(303"))?;
    server.kill();
    same(&last_words(&mut busy), "")?;
    same(&last_words(&mut idle), "")?;
    until("0", || proxy.admin(SESSIONS))?;
    expect(proxy.runs(), || proxy.log())?;
    server.restart()?;
    // It may be shunned for a moment.
    let begun = Instant::now();
    loop {
        match log_in(&proxy) {
            Ok(mut client) => return same(&asked(&mut client, "SELECT 1")?, "1"),
            Err(error) => expect(begun.elapsed() < HANGS, || error)?,
        }
    }
}

fn slow(driver: Driver) -> Outcome {
    let (server, proxy) = one(driver)?;
    let before = resident_kib(proxy.id());
    let mut clients = Vec::new();
    for n in 0..8 {
        let mut client = log_in(&proxy)?;
        let sql = format!(
            "SELECT {n}, REPEAT('x', 500) FROM conf.numbers a, conf.numbers b LIMIT 400000"
        );
        client.query(&sql).map_err(|error| error.to_string())?;
        clients.push(client);
    }
    // Eight times 200 MB have to wait on the server, which says so.
    let waits = "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'SELECT%REPEAT%' AND state LIKE '%riting to net%'";
    until("8", || server.root(waits))?;
    let mut other = log_in(&proxy)?;
    same(&asked(&mut other, "SELECT 1")?, "1")?;
    same(&proxy.query("SELECT 1")?, "1")?;
    let grown = resident_kib(proxy.id()).saturating_sub(before);
    expect(grown < 32 << 10, || {
        format!("{grown} KiB more are resident")
    })?;
    // All of it comes when it is read.
    let mut first = clients.swap_remove(0);
    let mut rows = 0;
    first
        .each_row(|_| rows += 1)
        .map_err(|error| error.to_string())?;
    expect(rows == 400_000, || format!("{rows} rows"))
}

/// COM_CHANGE_USER to somebody without a password, and its answer.
fn change(client: &mut Raw, user: &str) -> Result<Vec<u8>, String> {
    change_to(client, user, "")
}

fn change_to(client: &mut Raw, user: &str, schema: &str) -> Result<Vec<u8>, String> {
    let payload = [
        b"\x11",
        user.as_bytes(),
        b"\0\0",
        schema.as_bytes(),
        b"\0\x2D\0mysql_native_password\0",
    ]
    .concat();
    client
        .command(&payload)
        .map_err(|error| error.to_string())?;
    let answer = client.packet().map_err(|error| error.to_string())?;
    if answer.first() != Some(&0xfe) {
        return Ok(answer);
    }
    client.send(b"").map_err(|error| error.to_string())?;
    client.packet().map_err(|error| error.to_string())
}

fn changed(driver: Driver) -> Outcome {
    let (server, proxy) = one(driver)?;
    server.root("CREATE USER stranger@'%'; CREATE USER plain@'%'")?;
    proxy.admin(
        "INSERT INTO mysql_users (username, password, default_hostgroup) VALUES ('plain', '', 0); LOAD MYSQL USERS TO RUNTIME",
    )?;
    let mut client = log_in(&proxy)?;
    asked(&mut client, "SET @mine = 1")?;
    // Nobody whom only the server knows.
    let answer = change(&mut client, "stranger")?;
    let words = String::from_utf8_lossy(&answer).into_owned();
    expect(
        answer.first() == Some(&0xff) && words.contains("Access denied"),
        || words,
    )?;
    same(
        &asked(&mut client, "SELECT CURRENT_USER(), @mine IS NULL")?,
        "open@%\t1",
    )?;
    same(&proxy.admin(SESSIONS)?, "1")?;
    // Whose users are too many is told so before a server is asked.
    proxy.admin(
        "INSERT INTO mysql_users (username, password, default_hostgroup, fast_forward, max_connections) VALUES ('stranger', '', 0, 1, 0); LOAD MYSQL USERS TO RUNTIME; \
         UPDATE mysql_users SET max_connections = 1 WHERE username = 'stranger'; LOAD MYSQL USERS TO RUNTIME",
    )?;
    let mut first = log_in(&proxy)?;
    let answer = change(&mut first, "stranger")?;
    expect(answer.first() == Some(&0), || {
        String::from_utf8_lossy(&answer).into_owned()
    })?;
    let created = || {
        proxy.admin("SELECT Variable_Value FROM stats.stats_mysql_global WHERE Variable_Name = 'Server_Connections_created'")
    };
    let before = created()?;
    let answer = change(&mut client, "stranger")?;
    let words = String::from_utf8_lossy(&answer).into_owned();
    expect(
        answer.first() == Some(&0xff) && words.contains("max_user_connections"),
        || words,
    )?;
    same(&created()?, &before)?;
    drop(first);
    // Somebody without fast_forward: rules apply from there on, and the connection that was its own
    // is gone.
    let answer = change(&mut client, "plain")?;
    expect(answer.first() == Some(&0), || {
        String::from_utf8_lossy(&answer).into_owned()
    })?;
    same(&asked(&mut client, "SELECT CURRENT_USER()")?, "plain@%")?;
    same(&proxy.admin(SESSIONS)?, "0")?;
    same(
        &proxy.admin(
            "SELECT COUNT(*) > 0 FROM stats.stats_mysql_query_digest WHERE username = 'plain'",
        )?,
        "1",
    )?;
    // And back.
    let answer = change(&mut client, by_hand::USER)?;
    expect(answer.first() == Some(&0), || {
        String::from_utf8_lossy(&answer).into_owned()
    })?;
    same(&asked(&mut client, "SELECT CURRENT_USER()")?, "open@%")?;
    same(&proxy.admin(SESSIONS)?, "1")
}

/// COM_CHANGE_USER comes in one piece with a statement: the first answer, if there is one, is the
/// statement's.
fn changed_at_once(driver: Driver) -> Outcome {
    let (_server, proxy) = one(driver)?;
    let packet = |payload: &[u8]| [&(payload.len() as u32).to_le_bytes()[..], payload].concat();
    for user in [by_hand::USER, "nobody"] {
        for statement in [
            "INSERT INTO conf.nosuch VALUES (1)",
            "SELECT SLEEP(0.3) FROM conf.nosuch",
        ] {
            let mut client = log_in(&proxy)?;
            let change = [
                b"\x11",
                user.as_bytes(),
                b"\0\0\0\x2D\0mysql_native_password\0",
            ]
            .concat();
            let both = [
                packet(&[b"\x03", statement.as_bytes()].concat()),
                packet(&change),
            ]
            .concat();
            client.bytes(&both).map_err(|error| error.to_string())?;
            if let Ok(answer) = client.packet() {
                let words = String::from_utf8_lossy(&answer).into_owned();
                expect(answer.get(..3) == Some(&[0xff, 0x7a, 0x04][..]), || {
                    format!("{user}, {statement}: {words}")
                })?;
            }
        }
    }
    // Who has read its answer may become somebody else.
    let mut client = log_in(&proxy)?;
    for _ in 0..3 {
        asked(&mut client, "SELECT 1")?;
        let answer = change(&mut client, by_hand::USER)?;
        expect(answer.first() == Some(&0), || {
            String::from_utf8_lossy(&answer).into_owned()
        })?;
    }
    Ok(())
}

/// As persistent connections of PHP do before each page, and as many as the server may have: its
/// own connection makes room.
fn changed_where_it_is_full(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let (server, proxy) = one_with(driver, vendor, &[])?;
        server.root("CREATE USER stranger@'%'; GRANT ALL ON *.* TO stranger@'%'")?;
        proxy.admin(
            "INSERT INTO mysql_users (username, password, default_hostgroup, fast_forward) VALUES ('stranger', '', 0, 1); LOAD MYSQL USERS TO RUNTIME; \
             UPDATE mysql_servers SET max_connections = 2; LOAD MYSQL SERVERS TO RUNTIME; \
             SET mysql-connect_timeout_server_max = 3600000; LOAD MYSQL VARIABLES TO RUNTIME",
        )?;
        let fine = |answer: Vec<u8>| {
            expect(answer.first() == Some(&0), || {
                format!("{vendor}: {}", String::from_utf8_lossy(&answer))
            })
        };
        let _other = log_in(&proxy)?;
        let mut client = log_in(&proxy)?;
        // Who waited for himself would hang.
        for schema in ["", "conf2", "conf"] {
            asked(&mut client, "SET @mine = 1, NAMES latin1")?;
            asked(&mut client, "CREATE TEMPORARY TABLE conf.mine (a INT)")?;
            fine(change_to(&mut client, by_hand::USER, schema)?)?;
            let now = "SELECT IFNULL(DATABASE(), ''), @mine IS NULL, @@character_set_client";
            same(&asked(&mut client, now)?, &format!("{schema}\t1\tutf8mb4"))?;
            expect(
                asked(&mut client, "SELECT * FROM conf.mine").is_err(),
                || format!("{vendor}: its table is there"),
            )?;
        }
        fine(change(&mut client, "stranger")?)?;
        same(&asked(&mut client, "SELECT CURRENT_USER()")?, "stranger@%")?;
        same(
            &proxy.admin("SELECT ConnUsed FROM stats.stats_mysql_connection_pool")?,
            "2",
        )?;
        // A refusal ends it, since its own connection is gone.
        let answer = change_to(&mut client, "stranger", "nosuch")?;
        let words = String::from_utf8_lossy(&answer).into_owned();
        expect(answer.get(..3) == Some(&[0xff, 0x19, 0x04][..]), || {
            format!("{vendor}: {words}")
        })?;
        same(&last_words(&mut client), "")?;
    }
    Ok(())
}

/// A server that unpacks does not look at the numbers of packets.
fn hidden(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let (server, proxy) = one_with(driver, vendor, &["--local-infile=1"])?;
        server.root("CREATE USER stranger@'%'")?;
        proxy.admin(
            "SET mysql-enable_load_data_local_infile = 1; LOAD MYSQL VARIABLES TO RUNTIME",
        )?;
        let numbered = |number: u8, payload: &[u8]| {
            let mut bytes = (payload.len() as u32).to_le_bytes().to_vec();
            bytes[3] = number;
            [bytes, payload.to_vec()].concat()
        };
        let change = b"\x11stranger\0\0\0\x2D\0mysql_native_password\0";
        for compression in [1, 0] {
            proxy.admin(&format!("UPDATE mysql_servers SET compression = {compression}; LOAD MYSQL SERVERS TO RUNTIME"))?;
            for numbers in [&[1][..], &[2], &[255, 0]] {
                for at_once in [true, false] {
                    let case =
                        format!("{vendor}, compression {compression}, {numbers:?}, {at_once}");
                    let mut client = log_in(&proxy)?;
                    client
                        .bytes(&numbered(0, b"\x0e"))
                        .map_err(|error| error.to_string())?;
                    if !at_once {
                        client
                            .packet()
                            .map_err(|error| format!("{case}: {error}"))?;
                    }
                    let hidden = numbers
                        .iter()
                        .flat_map(|number| numbered(*number, change))
                        .collect::<Vec<u8>>();
                    // It may be gone before all is said.
                    let _gone =
                        client.bytes(&[hidden, numbered(0, b"\x03SELECT 'the end'")].concat());
                    let mut words = String::new();
                    while let Ok(packet) = client.packet() {
                        words.push_str(&String::from_utf8_lossy(&packet));
                        if words.contains("the end") || words.contains("_password") {
                            break;
                        }
                    }
                    // Whoever is asked for his proof has been heard.
                    expect(
                        !words.contains("_password") && !words.contains("Access denied"),
                        || format!("{case}: {words}"),
                    )?;
                }
            }
            // Files go on as they did, behind other results too, and the session is not confused by
            // them.
            let file = proxy.data().join("lines");
            std::fs::write(&file, "\x11line\n".repeat(300_000))
                .map_err(|error| error.to_string())?;
            let load = format!(
                "SELECT 1; LOAD DATA LOCAL INFILE '{}' INTO TABLE conf.lines; LOAD DATA LOCAL INFILE '{0}' INTO TABLE conf.lines; SELECT COUNT(*) FROM conf.lines",
                file.display()
            );
            server.root(
                "DROP TABLE IF EXISTS conf.lines; CREATE TABLE conf.lines (line VARCHAR(20))",
            )?;
            let said = command_line(
                proxy.port,
                by_hand::USER,
                "",
                &["--local-infile=1", "--skip-column-names"],
                &format!("DELIMITER $\n{load}$\nSELECT CURRENT_USER()$"),
            )?;
            same(&said, "1\n600000\nopen@%")?;
        }
    }
    Ok(())
}

const LOG: &[&str] = &["--log-bin=binlog", "--server-id=1", "--binlog-format=ROW"];

/// Ends a process when it is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn followed(driver: Driver) -> Outcome {
    let (server, proxy) = one_with(driver, Vendor::MariaDb, LOG)?;
    let Some(tool) = in_path("mariadb-binlog") else {
        return Ok(());
    };
    server.root("GRANT ALL ON *.* TO app@'%'; CREATE TABLE conf.told (id INT PRIMARY KEY, words TEXT); INSERT INTO conf.told VALUES (1, 'told before')")?;
    let read = |port: u16, user: &str, password: &str, more: &[&str]| {
        let mut command = Command::new(&tool);
        command.args([
            "--no-defaults",
            "--read-from-remote-server",
            "--protocol=tcp",
            "--host=127.0.0.1",
            "--skip-ssl",
            "--verbose",
        ]);
        command.args([
            format!("--port={port}"),
            format!("--user={user}"),
            format!("--password={password}"),
        ]);
        command.args(more).arg("binlog.000001");
        command
    };
    // To its end: a user with fast_forward, and one without, whose session turns into one.
    let seen = |port: u16, user: &str, password: &str| -> Result<String, String> {
        let (fine, words) = output(&mut read(port, user, password, &[]), HANGS)?;
        expect(fine && words.contains("told before"), || words.clone())?;
        Ok(words
            .lines()
            .filter(|line| {
                !line.starts_with('#')
                    && !line.starts_with("ROLLBACK")
                    && !line.contains("PSEUDO_THREAD")
            })
            .collect::<Vec<_>>()
            .join("\n"))
    };
    let direct = seen(server.port, "app", "secret")?;
    same(&seen(proxy.port, "app", "secret")?, &direct)?;
    same(&seen(proxy.port, by_hand::USER, "")?, &direct)?;
    // On and on, until it is ended.
    for (user, password) in [("app", "secret"), (by_hand::USER, "")] {
        let file = proxy.data().join(format!("followed-by-{user}"));
        let into = std::fs::File::create(&file).map_err(|error| error.to_string())?;
        let mut command = read(proxy.port, user, password, &["--stop-never"]);
        let mut follower = Running(
            command
                .stdout(into)
                .stderr(Stdio::null())
                .spawn()
                .map_err(|error| error.to_string())?,
        );
        let shown =
            format!("SELECT command FROM stats.stats_mysql_processlist WHERE user = '{user}'");
        until("Binlog Dump", || proxy.admin(&shown))?;
        let event = format!("told to {user}");
        server.root(&format!(
            "INSERT INTO conf.told VALUES ({}, '{event}')",
            if user == "app" { 2 } else { 3 }
        ))?;
        let said = || {
            Ok(std::fs::read_to_string(&file)
                .unwrap_or_default()
                .contains(&event)
                .to_string())
        };
        until("true", said)?;
        expect(
            follower.0.try_wait().is_ok_and(|ended| ended.is_none()),
            || "it does not follow any more".to_owned(),
        )?;
        // Nobody's connection afterwards.
        drop(follower);
        until("0", || proxy.admin(SESSIONS))?;
        until("0", || {
            server.root("SELECT COUNT(*) FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'")
        })?;
        same(&proxy.query("SELECT 1")?, "1")?;
    }
    Ok(())
}

fn last_line(said: &str) -> String {
    said.lines().last().unwrap_or_default().to_owned()
}

fn replicated(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let source = match vendor {
            Vendor::MariaDb => LOG.to_vec(),
            Vendor::MySql => [LOG, &["--gtid-mode=ON", "--enforce-gtid-consistency=ON"]].concat(),
        };
        let (server, proxy) = one_with(driver, vendor, &source)?;
        let own = [&source[..], &["--server-id=2", "--relay-log=relay"]].concat();
        let mut replica = Server::start_with(vendor, &own)?;
        if vendor == Vendor::MySql {
            // Both came from one template; without the file it makes itself an id of its own.
            std::fs::remove_file(replica.tls_file("auto.cnf"))
                .map_err(|error| error.to_string())?;
            replica.restart()?;
        }
        server.root("GRANT ALL ON *.* TO app@'%'")?;
        for (turn, (user, password)) in [("app", "secret"), (by_hand::USER, "")]
            .into_iter()
            .enumerate()
        {
            let port = proxy.port;
            let change = match vendor {
                Vendor::MariaDb => format!(
                    "STOP SLAVE; CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={port}, MASTER_USER='{user}', MASTER_PASSWORD='{password}', \
                     MASTER_USE_GTID=slave_pos, MASTER_HEARTBEAT_PERIOD=1; START SLAVE"
                ),
                Vendor::MySql => format!(
                    "STOP REPLICA; CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={port}, SOURCE_USER='{user}', \
                     SOURCE_PASSWORD='{password}', SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1, SOURCE_HEARTBEAT_PERIOD=1; START REPLICA"
                ),
            };
            if turn == 0 {
                // What the replica has of itself is in nobody's log.
                replica.root(if vendor == Vendor::MariaDb {
                    "SELECT 1"
                } else {
                    "RESET BINARY LOGS AND GTIDS"
                })?;
                server.root(if vendor == Vendor::MariaDb {
                    "SELECT 1"
                } else {
                    "RESET BINARY LOGS AND GTIDS"
                })?;
                server.root(
                    "CREATE DATABASE followed; CREATE TABLE followed.t (id INT PRIMARY KEY)",
                )?;
            }
            if vendor == Vendor::MariaDb {
                // It acknowledges what it has: the log's numbers begin anew after each transaction.
                server.root("SET GLOBAL rpl_semi_sync_master_enabled = 1")?;
                replica.root("SET GLOBAL rpl_semi_sync_slave_enabled = 1")?;
            }
            replica.root(&change)?;
            if vendor == Vendor::MariaDb {
                until("Rpl_semi_sync_master_clients\t1", || {
                    server
                        .root("SHOW STATUS LIKE 'Rpl_semi_sync_master_clients'")
                        .map(|said| last_line(&said))
                })?;
                let status = || {
                    server
                        .root("SHOW STATUS LIKE 'Rpl_semi_sync_master_yes_tx'")
                        .map(|said| last_line(&said))
                };
                let before = status()?;
                for n in 100..105 {
                    server.root(&format!("REPLACE INTO followed.t VALUES ({n}); DELETE FROM followed.t WHERE id = {n}"))?;
                }
                let number = |line: &str| {
                    line.split('\t')
                        .nth(1)
                        .and_then(|number| number.parse::<u64>().ok())
                        .unwrap_or_default()
                };
                let after = status()?;
                expect(number(&after) >= number(&before) + 10, || {
                    format!("{before}, then {after}")
                })?;
            }
            server.root(&format!("INSERT INTO followed.t VALUES ({turn})"))?;
            let count = (turn + 1).to_string();
            let there = || {
                replica
                    .root("SELECT COUNT(*) FROM followed.t")
                    .or_else(Ok::<_, String>)
            };
            until(&count, there).map_err(|error| {
                let status = if vendor == Vendor::MariaDb {
                    "SHOW SLAVE STATUS"
                } else {
                    "SHOW REPLICA STATUS"
                };
                format!(
                    "{vendor} as {user}: {error}\n{}",
                    replica.root(status).unwrap_or_default()
                )
            })?;
            same(&proxy.admin(SESSIONS)?, "1")?;
            // Killed, it comes again.
            let id = proxy.admin(&format!(
                "SELECT SessionID FROM stats.stats_mysql_processlist WHERE user = '{user}'"
            ))?;
            replica.root(if vendor == Vendor::MariaDb {
                "STOP SLAVE; START SLAVE"
            } else {
                "STOP REPLICA; START REPLICA"
            })?;
            let again = format!(
                "SELECT COUNT(*) FROM stats.stats_mysql_processlist WHERE command LIKE 'Binlog Dump%' AND SessionID <> {}",
                id.trim()
            );
            until("1", || proxy.admin(&again))?;
        }
    }
    Ok(())
}

fn old_commands(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let (server, proxy) = one_with(driver, vendor, &[])?;
        proxy.admin("UPDATE mysql_users SET fast_forward = 0; LOAD MYSQL USERS TO RUNTIME")?;
        let mut client = log_in(&proxy)?;
        let mut first = |bytes: &[u8]| -> Result<String, String> {
            client.command(bytes).map_err(|error| error.to_string())?;
            client
                .packet()
                .map(|packet| String::from_utf8_lossy(&packet).into_owned())
                .map_err(|error| error.to_string())
        };
        // COM_STATISTICS: the line that tools take apart.
        let line = first(&[0x09])?;
        for word in [
            "Uptime: ",
            "Threads: ",
            "Questions: ",
            "Slow queries: ",
            "Queries per second avg: ",
        ] {
            expect(line.contains(word), || line.clone())?;
        }
        // FLUSH, SHUTDOWN and DEBUG would be about one server of many; the rest is withdrawn.
        for (byte, name) in [
            (0x07, "Refresh"),
            (0x08, "Shutdown"),
            (0x0D, "Debug"),
            (0x05, "Create DB"),
            (0x13, "Table Dump"),
            (0x20, "Clone"),
        ] {
            let said = first(&[byte, 0])?;
            expect(
                said.contains(&format!("{name} is not supported by this proxy")),
                || said.clone(),
            )?;
        }
        // COM_PROCESS_INFO is the server's.
        let mut direct = Raw::log_in(server.port).map_err(|error| error.to_string())?;
        let mut through = log_in(&proxy)?;
        let seen = |client: &mut Raw| -> Result<String, String> {
            client.command(&[0x0A]).map_err(|error| error.to_string())?;
            Ok(client.rows().map_or_else(
                |error| error.to_string(),
                |rows| format!("{} columns", rows.first().map_or(0, Vec::len)),
            ))
        };
        same(&seen(&mut through)?, &seen(&mut direct)?)?;
        same(&asked(&mut through, "SELECT 1")?, "1")?;
    }
    Ok(())
}

fn warned(driver: Driver) -> Outcome {
    let (_server, proxy) = one(driver)?;
    proxy.admin(
        "INSERT INTO mysql_firewall_whitelist_users (active, username, client_address, mode, comment) VALUES (1, 'open', '', 'PROTECTING', ''); \
         LOAD MYSQL FIREWALL TO RUNTIME",
    )?;
    let said = ["open", "fast_forward"]
        .iter()
        .all(|words| proxy.says(words));
    expect(said, || proxy.log())?;
    Ok(())
}
