//! KILL by a client: its forms, whom it may hit, and what it ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::{io, thread};

use conformance::by_hand::{self, Raw};
use conformance::clients::{Client, app};
use conformance::proxy::{self, Driver, Proxy, Wish};
use conformance::servers::{Server, Vendor, vendors};
use conformance::trials::{self, expect, same, vendors_in_turn};
use conformance::{raw as packets, relay};

use super::{Outcome, asked, is_error, log_in, one, running};

/// Statement that runs until somebody ends it, and does not look whether its client is still there.
pub(super) const LONG: &str = "SELECT 'ENDLESS', COUNT(*) FROM conf.numbers a, conf.numbers b, conf.numbers c WHERE a.id * b.id % 7 + c.id < RAND() * 0 - 1";

pub(super) fn kill_query(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let (server, proxy) = one(driver, vendor)?;
        // Several, so that some are on the killer's core and some are not.
        let mut killer = log_in(&proxy)?;
        for turn in 0..6 {
            let mut client = log_in(&proxy)?;
            let id = client.id;
            asked(&mut client, "BEGIN")?;
            asked(
                &mut client,
                &format!("INSERT INTO conf.scratch VALUES ({turn}, 'kept')"),
            )?;
            let runs = thread::spawn(move || {
                let said = client.ask(LONG);
                (client, said)
            });
            running(&server, "ENDLESS", 1)?;
            asked(&mut killer, &format!("KILL QUERY {id}"))?;
            let (mut client, said) = runs.join().map_err(|_| "the client panicked".to_owned())?;
            is_error(&said, "1317")?;
            running(&server, "ENDLESS", 0)?;
            // Its transaction is where it was.
            let kept = asked(&mut client, "SELECT COUNT(*) FROM conf.scratch")?;
            expect(kept == [[(turn + 1).to_string()]], || {
                format!("{vendor}: the transaction has {kept:?}")
            })?;
            asked(&mut client, "COMMIT")?;
        }
        let there = asked(&mut killer, "SELECT COUNT(*) FROM conf.scratch")?;
        expect(there == [["6"]], || {
            format!("{vendor}: committed were {there:?}")
        })?;
    }
    Ok(())
}

pub(super) fn kill_connection(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let (server, proxy) = one(driver, vendor)?;
        let mut killer = log_in(&proxy)?;
        for by_command in [false, true] {
            let mut client = log_in(&proxy)?;
            let id = client.id;
            let runs = thread::spawn(move || (client.ask(LONG), client.ask("SELECT 1")));
            running(&server, "ENDLESS", 1)?;
            if by_command {
                let mut payload = vec![0x0c];
                payload.extend_from_slice(&id.to_le_bytes());
                killer
                    .command(&payload)
                    .map_err(|error| error.to_string())?;
                killer.rows().map_err(|error| error.to_string())?;
            } else {
                asked(&mut killer, &format!("KILL {id}"))?;
            }
            let (during, after) = runs.join().map_err(|_| "the client panicked".to_owned())?;
            expect(during.is_err() && after.is_err(), || {
                format!("{vendor}: {during:?}, then {after:?}")
            })?;
            running(&server, "ENDLESS", 0)?;
        }
        // Somebody who does nothing.
        let mut idle = log_in(&proxy)?;
        asked(&mut idle, "SELECT 1")?;
        asked(&mut killer, &format!("KILL CONNECTION {}", idle.id))?;
        let after = idle.ask("SELECT 1");
        expect(after.is_err(), || {
            format!("{vendor}: {after:?} of a killed session")
        })?;
        // Oneself.
        let said = killer.ask("KILL CONNECTION_ID()");
        is_error(
            &said,
            if vendor == Vendor::MariaDb {
                "1927"
            } else {
                "1317"
            },
        )?;
        expect(killer.ask("SELECT 1").is_err(), || {
            format!("{vendor}: a session outlived its own KILL")
        })?;
    }
    Ok(())
}

pub(super) fn strangers(driver: Driver) -> Outcome {
    let (_server, proxy) = one(driver, Vendor::MariaDb)?;
    let mut client = log_in(&proxy)?;
    let refused = |sql: &str, code: &str| {
        let said = proxy.query(sql);
        expect(
            said.as_ref().is_err_and(|words| words.contains(code)),
            || format!("{sql}: {code} was wanted: {said:?}"),
        )
    };
    refused(
        &format!("KILL {}", client.id),
        &format!(
            "ERROR 1095 (HY000) at line 1: You are not owner of thread {}",
            client.id
        ),
    )?;
    refused(&format!("KILL QUERY {}", client.id), "ERROR 1095")?;
    refused(
        "KILL 4000000000",
        "ERROR 1094 (HY000) at line 1: Unknown thread id: 4000000000",
    )?;
    refused(
        "KILL USER open",
        "ERROR 1095 (HY000) at line 1: Operation KILL USER failed for open@%",
    )?;
    let said = asked(&mut client, "SELECT 'here'")?;
    same(&said[0][0], "here")
}

/// A statement runs that is ended by each of these.
pub(super) fn forms(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let (server, proxy) = one(driver, vendor)?;
        let mut killer = Raw::log_in_for_several(proxy.port).map_err(|error| error.to_string())?;
        let mut client = log_in(&proxy)?;
        let id = client.id;
        for kills in [
            &[format!("KILL HARD QUERY {id}")][..],
            &[format!("KILL SOFT QUERY {id}")],
        ] {
            client.query(LONG).map_err(|error| error.to_string())?;
            running(&server, "ENDLESS", 1)?;
            for sql in kills {
                asked(&mut killer, sql)?;
            }
            is_error(&client.rows(), "1317")?;
        }
        client.query(LONG).map_err(|error| error.to_string())?;
        running(&server, "ENDLESS", 1)?;
        killer
            .query(&format!(
                "SELECT 'before'; KILL QUERY {id}; SELECT 'behind'"
            ))
            .map_err(|error| error.to_string())?;
        let said = (0..3)
            .map(|_| {
                Ok(killer
                    .rows()
                    .map_err(|error| error.to_string())?
                    .concat()
                    .concat())
            })
            .collect::<Result<Vec<_>, String>>()?;
        expect(said == ["before", "", "behind"], || {
            format!("{vendor}: {said:?}")
        })?;
        is_error(&client.rows(), "1317")?;
        for sql in ["KILL (SELECT 7)", "KILL QUERY 7 / 1", "KILL 1 - 2"] {
            is_error(&killer.ask(sql), "1235")?;
        }
        // A server's own number of a statement.
        let said = killer
            .ask("KILL QUERY ID 7")
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default();
        expect(
            said.contains("1235") && said.contains("number of a statement"),
            || format!("{vendor}: {said}"),
        )?;
        if vendor == Vendor::MySql {
            is_error(&killer.ask("KILL USER open"), "1235")?;
        }
        asked(&mut killer, &format!("KILL SOFT CONNECTION {id}"))?;
        expect(client.ask("SELECT 1").is_err(), || {
            format!("{vendor}: a session outlived a KILL")
        })?;
        asked(&mut killer, "SELECT 1")?;
    }
    Ok(())
}

/// COM_STMT_PREPARE of what has no columns; the id.
fn prepare(client: &mut Raw, text: &str) -> io::Result<Vec<u8>> {
    client.command(&[b"\x16", text.as_bytes()].concat())?;
    let ok = client.packet()?;
    if ok.first() == Some(&0xff) {
        return Err(by_hand::complaint(&ok));
    }
    if ok[7..9] != [0, 0] {
        while client.packet()?.first() != Some(&0xfe) {}
    }
    Ok(ok[1..5].to_vec())
}

/// COM_STMT_EXECUTE of a KILL with these parameters: NULL bits, 1, types, values.
fn execute(client: &mut Raw, id: &[u8], params: &[u8]) -> io::Result<Vec<Vec<String>>> {
    client.command(&[b"\x17", id, &[0, 1, 0, 0, 0], params].concat())?;
    client.rows()
}

/// By a library that prepares whatever has parameters (Go, Rust, Node).
pub(super) fn prepared_kills(driver: Driver) -> Outcome {
    let said = |error: io::Error| error.to_string();
    for vendor in vendors_in_turn() {
        let (server, proxy) = one(driver, vendor)?;
        let (mut killer, mut client) = (log_in(&proxy)?, log_in(&proxy)?);
        let (id, text) = (u64::from(client.id), client.id.to_string());
        let mut ends =
            |killer: &mut Raw, kill: &mut dyn FnMut(&mut Raw) -> io::Result<Vec<Vec<String>>>| {
                client.query(LONG).map_err(said)?;
                running(&server, "ENDLESS", 1)?;
                kill(killer).map_err(said)?;
                is_error(&client.rows(), "1317")
            };
        ends(&mut killer, &mut |killer| {
            killer.ask(&format!("KILL QUERY '{id}'"))
        })?;
        let written = prepare(&mut killer, &format!("KILL QUERY {id}")).map_err(said)?;
        ends(&mut killer, &mut |killer| execute(killer, &written, b""))?;
        // MySQL takes no parameter there, and says so itself.
        let mut direct = log_in_to(&server)?;
        let told = prepare(&mut direct, "KILL QUERY ?").map(drop).map_err(said);
        let prepared = prepare(&mut killer, "KILL QUERY ?").map_err(said);
        expect(prepared.clone().map(drop) == told, || {
            format!("{vendor}: {prepared:?} instead of {told:?}")
        })?;
        let Ok(query) = prepared else { continue };
        let string = [&[0, 1, 0xfd, 0, text.len() as u8], text.as_bytes()].concat();
        let longlong = [&[0, 1, 8, 0][..], &id.to_le_bytes()].concat();
        let double = [&[0, 1, 5, 0][..], &(id as f64).to_le_bytes()].concat();
        for params in [&string, &longlong, &double] {
            ends(&mut killer, &mut |killer| execute(killer, &query, params))?;
        }
        let whole = prepare(&mut killer, "KILL ?").map_err(said)?;
        let other = [&[0, 1, 8, 0][..], &4_000_000_000_u64.to_le_bytes()].concat();
        let nothing = [1, 1, 6, 0];
        for (params, code) in [
            (&other[..], "1094"),
            (&nothing, "1094"),
            (&[0, 1, 0xfd, 0, 1, b'x'], "1235"),
        ] {
            is_error(&execute(&mut killer, &whole, params), code)?;
        }
        execute(&mut killer, &whole, &longlong).map_err(said)?;
        expect(client.ask("SELECT 1").is_err(), || {
            format!("{vendor}: a session outlived a prepared KILL")
        })?;
        asked(&mut killer, "SELECT 1")?;
    }
    Ok(())
}

fn log_in_to(server: &Server) -> Result<Raw, String> {
    Raw::log_in(server.port).map_err(|error| error.to_string())
}

pub(super) fn kill_user(driver: Driver) -> Outcome {
    let (server, proxy) = one(driver, Vendor::MariaDb)?;
    let _ = Client::MariaDbCli.run(
        app(server.port),
        &conformance::cache::root().join("conformance/scenarios/warm-up.txt"),
    );
    let mut other = packets::Raw::log_in(proxy.port, 0)?;
    // On both cores.
    let mut clients: Vec<Raw> = (0..6).map(|_| log_in(&proxy)).collect::<Result<_, _>>()?;
    let mut killer = log_in(&proxy)?;
    for sql in [
        "KILL USER nobody",
        "KILL USER open@'10.9.9.9'",
        "KILL USER app@10.9.9.9",
    ] {
        asked(&mut killer, sql)?;
    }
    is_error(&killer.ask("KILL USER app"), "1095")?;
    for client in &mut clients {
        client.query(LONG).map_err(|error| error.to_string())?;
    }
    running(&server, "ENDLESS", clients.len())?;
    is_error(&killer.ask("KILL QUERY USER 'open'@127.0.0.1"), "1317")?;
    for client in &mut clients {
        is_error(&client.rows(), "1317")?;
        asked(client, "SELECT 'here'")?;
    }
    is_error(&killer.ask("KILL USER CURRENT_USER"), "1927")?;
    for client in clients.iter_mut().chain([&mut killer]) {
        expect(client.ask("SELECT 1").is_err(), || {
            "a session outlived KILL USER".to_owned()
        })?;
    }
    let said = other.query("SELECT 'here'")?;
    expect(said.contains("here"), || said)
}

/// KILL for a statement that had ended: it does not end what the session does next, not even
/// becoming somebody else.
pub(super) fn late_kill(driver: Driver) -> Outcome {
    let (server, proxy) = one(driver, Vendor::MariaDb)?;
    let _ = Client::MariaDbCli.run(
        app(server.port),
        &conformance::cache::root().join("conformance/scenarios/warm-up.txt"),
    );
    server.root("CREATE USER fast@'%' IDENTIFIED BY 'secret'; GRANT ALL ON *.* TO fast@'%'")?;
    proxy.admin("INSERT INTO mysql_users (username, password, default_hostgroup, fast_forward) VALUES ('fast', 'secret', 0, 1); LOAD MYSQL USERS TO RUNTIME")?;
    let mut client = packets::Raw::log_in(proxy.port, 0)?;
    let kill = format!("KILL QUERY {}", client.id);
    for user in ["fast", "app"] {
        client.query("SELECT 1")?;
        proxy.admin(&kill)?;
        client.change_user(user)?;
    }
    proxy.admin(&kill)?;
    let said = client.query("SELECT 'here'")?;
    expect(said.contains("here"), || said)
}

pub(super) fn killed_and_free(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let (server, proxy) = one(driver, vendor)?;
        let mut killer = log_in(&proxy)?;
        proxy.admin(&format!(
            "INSERT INTO mysql_servers (hostgroup_id, hostname, port) VALUES (1, '127.0.0.1', {}); LOAD MYSQL SERVERS TO RUNTIME; \
             INSERT INTO mysql_query_rules (rule_id, active, match_pattern, multiplex, destination_hostgroup, apply) \
             VALUES (1, 1, 'kept', 0, 0, 1), (2, 1, 'ENDLESS', 1, 0, 1), (3, 1, 'besides', NULL, 1, 1); LOAD MYSQL QUERY RULES TO RUNTIME",
            server.port
        ))?;
        for warns in [0, 1] {
            proxy.admin(&format!(
                "SET mysql-handle_warnings = {warns}; SET mysql-handle_warnings_delay_ms = 0; LOAD MYSQL VARIABLES TO RUNTIME"
            ))?;
            let mut client = log_in(&proxy)?;
            // It need not wait for a connection there later on: that it had the warnings asked for.
            asked(&mut client, "SELECT 'besides' FROM conf.numbers LIMIT 1")?;
            asked(&mut client, "SELECT 'kept'")?;
            client.query(LONG).map_err(|error| error.to_string())?;
            running(&server, "ENDLESS", 1)?;
            asked(&mut killer, &format!("KILL QUERY {}", client.id))?;
            is_error(&client.rows(), "1317")?;
            asked(&mut client, "SELECT 'besides' FROM conf.numbers LIMIT 1")?;
            let free = proxy.admin("SELECT SUM(ConnUsed + ConnFree) FROM stats_mysql_connection_pool WHERE hostgroup = 0")?;
            expect(free.trim() == "0", || {
                format!("{vendor}, warnings: {warns}: {free} connections are left")
            })?;
            let said = asked(&mut client, "SELECT 'here'")?.concat();
            expect(said == ["here"], || format!("{vendor}: {said:?}"))?;
            drop(client);
            proxy.admin(
                "UPDATE mysql_servers SET status = 'OFFLINE_HARD' WHERE hostgroup_id = 0; LOAD MYSQL SERVERS TO RUNTIME; \
                         UPDATE mysql_servers SET status = 'ONLINE' WHERE hostgroup_id = 0; LOAD MYSQL SERVERS TO RUNTIME",
            )?;
        }
    }
    Ok(())
}

/// A proxy before an address at which servers may come and go.
fn before(driver: Driver, port: u16) -> Result<Proxy, String> {
    let wish = Wish {
        servers: format!(
            "{{ address = \"127.0.0.1\", port = {port}, hostgroup = 0, max_connections = 100 }}"
        ),
        users: proxy::OPEN_USER.to_owned(),
        ..Wish::default()
    };
    Proxy::start(driver, &wish)
}

/// The first has vanished, as a machine does behind a floating address, and the second has given
/// the number to somebody else of the same name.
pub(super) fn successor(driver: Driver) -> Outcome {
    let told = ["--proxy-protocol-networks=*"];
    let servers = [
        Server::start_with(Vendor::MariaDb, &told)?,
        Server::start_with(Vendor::MariaDb, &told)?,
    ];
    for server in &servers {
        server.root(by_hand::CREATE_USER)?;
    }
    let [first, second] = &servers;
    let at = Arc::new(AtomicU16::new(first.port));
    let proxy = before(
        driver,
        relay::start_before(&at, true).map_err(|error| error.to_string())?,
    )?;
    let log_in_to = |server: &Server| Raw::log_in(server.port).map_err(|error| error.to_string());
    // The second is not to be there already when the number is given.
    for _ in 0..30 {
        log_in_to(first)?;
    }
    let (mut client, mut killer) = (log_in(&proxy)?, log_in(&proxy)?);
    client.query(LONG).map_err(|error| error.to_string())?;
    running(first, "ENDLESS", 1)?;
    let number =
        first.root("SELECT ID FROM information_schema.PROCESSLIST WHERE INFO LIKE '%ENDLESS%RAND%' AND USER = 'open'")?;
    let number: u32 = number
        .lines()
        .last()
        .and_then(|line| line.trim().parse().ok())
        .ok_or(number)?;
    at.store(second.port, Ordering::Relaxed);
    let mut stranger = loop {
        let stranger = log_in_to(second)?;
        expect(stranger.id <= number, || {
            format!("{number} was to be free, {} is next", stranger.id)
        })?;
        if stranger.id == number {
            break stranger;
        }
    };
    stranger
        .query("SELECT SLEEP(2)")
        .map_err(|error| error.to_string())?;
    drop(client);
    trials::soon("true", || {
        Ok(proxy
            .log()
            .contains(&format!(
                "connection {number} is, or may be, no longer ours"
            ))
            .to_string())
    })?;
    let undisturbed = stranger
        .rows()
        .map_err(|error| format!("the stranger: {error}"))?;
    expect(undisturbed == [["0"]], || format!("{undisturbed:?}"))?;
    // What is ours there is found.
    let mut client = log_in(&proxy)?;
    client.query(LONG).map_err(|error| error.to_string())?;
    running(second, "ENDLESS", 1)?;
    asked(&mut killer, &format!("KILL QUERY {}", client.id))?;
    is_error(&client.rows(), "1317")
}

/// Of a user without privileges, directly and by a relay that servers know nothing of: they see its
/// ports.
pub(super) fn found_by_port_or_number(driver: Driver) -> Outcome {
    let vendors = vendors();
    let all = [
        (Vendor::MariaDb, &[][..]),
        (Vendor::MySql, &[]),
        (Vendor::MySql, &["--performance-schema=ON"]),
    ];
    for (vendor, options) in all
        .into_iter()
        .filter(|(vendor, _)| vendors.contains(vendor))
    {
        let server = Server::start_with(vendor, options)?;
        server.root("CREATE USER open@'%'; GRANT SELECT ON conf.* TO open@'%'")?;
        let at = Arc::new(AtomicU16::new(server.port));
        let relayed = relay::start_before(&at, false).map_err(|error| error.to_string())?;
        for port in [server.port, relayed] {
            let proxy = before(driver, port)?;
            let (mut client, mut killer) = (log_in(&proxy)?, log_in(&proxy)?);
            client.query(LONG).map_err(|error| error.to_string())?;
            running(&server, "ENDLESS", 1)?;
            asked(&mut killer, &format!("KILL QUERY {}", client.id))?;
            is_error(&client.rows(), "1317")?;
            running(&server, "ENDLESS", 0)?;
        }
    }
    Ok(())
}
