//! Sessions whose login was relayed: their connections are nobody else's.

use conformance::beside::{asked, set};
use conformance::by_hand::{CREATE_USER, Raw};
use conformance::proxy::{Driver, command_line};
use conformance::raw::Raw as Plain;
use conformance::servers::{Server, Vendor};
use conformance::trials::{expect, soon, vendors_in_turn};

use super::{Outcome, bare, log_in, mysql, same, started};

/// A server that only reads is reached by a connection that its client's login has opened beside, or an
/// earlier one; that it refuses, or is down, is no matter for the login.
pub(super) fn to_a_reader_too(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let mut servers = [Server::start(vendor)?, Server::start(vendor)?];
        let ports = [servers[0].port, servers[1].port];
        let readers = format!("--proxy-read-only-backend-addresses=127.0.0.1:{}", ports[1]);
        let proxy = started(driver, &[&servers[0]], &[&readers])?;
        proxy.admin(
            "INSERT INTO mysql_query_rules (rule_id, active, match_digest, destination_hostgroup, apply) \
             VALUES (1, 1, '^SELECT @@port', 1, 1); LOAD MYSQL QUERY RULES TO RUNTIME",
        )?;
        let asks = |user: &str, password: &str| match vendor {
            Vendor::MariaDb => {
                let said = command_line(
                    proxy.port,
                    user,
                    password,
                    &["conf"],
                    "SELECT @@port, DATABASE(), CURRENT_USER()",
                );
                said.map(|words| words.trim().to_owned())
            }
            Vendor::MySql => mysql(
                proxy.port,
                &[
                    &format!("-u{user}"),
                    &format!("-p{password}"),
                    "--ssl-mode=REQUIRED",
                    "conf",
                ],
                "SELECT @@port, DATABASE(), CURRENT_USER()",
            ),
        };
        let reader = Ok(format!("{}\tconf\tapp@%", ports[1]));
        // In full at the first server there is no second proof in that login; in the next there is.
        let first = asks("app", "secret");
        let is_late = first.as_ref().is_err_and(|words| words.contains("1235"));
        expect(
            first == reader || vendor == Vendor::MySql && is_late,
            || format!("first: {first:?}, not {reader:?}"),
        )?;
        for _ in 0..6 {
            same(&asks("app", "secret"), &reader, "a statement for a reader")?;
        }
        // Who has another password there is let in, and reads nothing.
        servers[1].root("ALTER USER other@'%' IDENTIFIED BY 'anders'")?;
        for _ in 0..3 {
            let refused = asks("other", "geheim");
            expect(
                refused.as_ref().is_err_and(|words| words.contains("1235")),
                || format!("with another password: {vendor} {refused:?}, reader {reader:?}"),
            )?;
        }
        same(
            &asks("app", "secret"),
            &reader,
            "another user's statement for a reader",
        )?;
        servers[1].kill();
        let writes = command_line(proxy.port, "app", "secret", &[], "SELECT 1 + @@port");
        same(
            &writes,
            &Ok(format!("{}\n", ports[0] + 1)),
            "a login while the reader is down",
        )?;
    }
    Ok(())
}

/// Whatever it says, it is on the connection on which it has logged in, as long as that is there.
pub(super) fn keeps_its_connection(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let server = Server::start(vendor)?;
        server.root(CREATE_USER)?;
        let proxy = started(driver, &[&server], &[])?;
        let (mut client, mut others) = (log_in(&proxy)?, log_in(&proxy)?);
        // A statement that finds itself on the server. One that has just been answered elsewhere may be
        // there still.
        let asked_for = std::cell::Cell::new(0);
        let id = |client: &mut Raw| {
            asked_for.set(asked_for.get() + 1);
            let sql = format!(
                "SELECT ID FROM information_schema.PROCESSLIST WHERE INFO LIKE '%its number {}.%'",
                asked_for.get()
            );
            Ok::<_, String>(asked(client, &sql)?.concat().concat())
        };
        let own = id(&mut client)?;
        expect(own != id(&mut others)?, || {
            "both are on one connection".to_owned()
        })?;
        let here =
            |client: &mut Raw| Ok::<_, String>(asked(client, "SELECT @here")?.concat().concat());
        asked(&mut client, "SELECT @here := 7")?;
        same(&here(&mut client)?, &"7".to_owned(), "its variable")?;
        same(&id(&mut client)?, &own, "its connection")?;
        let simple = |client: &mut Raw, command: &[u8]| {
            let answer = client.command(command).and_then(|()| client.packet());
            answer.map_err(|error| error.to_string())
        };
        // COM_RESET_CONNECTION, also by a session that has done nothing.
        for client in [&mut client, &mut log_in(&proxy)?] {
            let before = id(client)?;
            let reset = simple(client, &[0x1F])?;
            same(&reset.first(), &Some(&0), "COM_RESET_CONNECTION")?;
            same(&id(client)?, &before, "its connection behind a reset")?;
            expect(here(client)? != "7", || {
                "its variable is still there".to_owned()
            })?;
        }
        // Sharing is nothing for it, whatever the operator says.
        set(&proxy, "SET mysql-multiplexing = true")?;
        same(&id(&mut client)?, &own, "its connection behind a LOAD")?;
        // Only the server could let it in again, and nobody has left another.
        drop(others);
        server.root(&format!("KILL {own}"))?;
        proxy
            .admin("UPDATE mysql_servers SET max_connections = 1; LOAD MYSQL SERVERS TO RUNTIME")?;
        let lost = (0..3).map(|_| client.ask("SELECT 1").is_err());
        expect(lost.collect::<Vec<_>>().ends_with(&[true]), || {
            "it goes on".to_owned()
        })?;
    }
    Ok(())
}

/// COM_CHANGE_USER is the server's to decide, also behind a login that has proven itself to two servers. Who is
/// refused is nobody.
pub(super) fn becomes_another(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let servers = [Server::start(vendor)?, Server::start(vendor)?];
        for server in &servers {
            server.root(
                "CREATE USER turn@'%' IDENTIFIED BY 'secret'; GRANT ALL ON *.* TO turn@'%'",
            )?;
            // MySQL knows fast proofs of whom it has seen once.
            if vendor == Vendor::MySql {
                for user in ["-uapp", "-uturn"] {
                    mysql(server.port, &[user, "-psecret"], "DO 1")?;
                }
            }
        }
        let reader = format!(
            "--proxy-read-only-backend-addresses=127.0.0.1:{}",
            servers[1].port
        );
        let mut proxy = started(driver, &[&servers[0]], &[&reader])?;
        let mut client = Plain::log_in(proxy.port, 0)?;
        let is = |client: &mut Plain, wanted: &str| {
            let found = client.query("SELECT CURRENT_USER(), @left, DATABASE()")?;
            expect(found.contains(wanted), || {
                format!("{vendor}: wanted {wanted}, found {found}")
            })
        };
        client.query("SET @left = 1")?;
        is(&mut client, "app@%")?;
        client.change_user("turn")?;
        is(&mut client, "turn@%")?;
        let found = client.query("SELECT IFNULL(@left, 'is gone')")?;
        expect(found.contains("\\x07is gone"), || {
            format!("{vendor}: its variable is there: {found}")
        })?;
        same(
            &proxy.admin("SELECT user FROM stats_mysql_processlist")?,
            &"turn\n".to_owned(),
            "the processlist",
        )?;
        // A proof of another challenge is none, and the server asks for a new one.
        client.change_user_saying("app", 45, &[7; 20])?;
        is(&mut client, "app@%")?;
        let refused = client.change_user("nobody").err().unwrap_or_default();
        // MySQL asks some of those whom it does not know for their password in full.
        let is_asked = vendor == Vendor::MySql && refused == "\\x01\\x04";
        expect(
            is_asked || refused.contains("Access denied for user"),
            || format!("{vendor}: {refused}"),
        )?;
        expect(is_asked || client.query("DO 1").is_err(), || {
            format!("{vendor}: it goes on")
        })?;
        drop(client);
        // What its connection has become, it is for whoever gets it.
        let mut other = Plain::log_in(proxy.port, 0)?;
        other.change_user("turn")?;
        drop(other);
        soon("1\n", || {
            proxy.admin("SELECT count(*) FROM stats_mysql_free_connections WHERE user = 'turn'")
        })?;
        let mut next = Plain::log_in(proxy.port, 0)?;
        is(&mut next, "app@%")?;
        same(
            &proxy.admin("SELECT sum(ConnUsed) <= 2 FROM stats_mysql_connection_pool")?,
            &"1\n".to_owned(),
            "connections in use",
        )?;
        expect(proxy.runs(), || "it has ended".to_owned())?;
    }
    Ok(())
}

/// Leftovers of a session are for its user alone, who has proven his password there.
pub(super) fn never_another_user_s(driver: Driver) -> Outcome {
    let server = Server::start(Vendor::MariaDb)?;
    server.root(CREATE_USER)?;
    let proxy = started(driver, &[&server], &[])?;
    let who = |user: &str, password: &str| {
        command_line(
            proxy.port,
            user,
            password,
            &[],
            "SELECT CURRENT_USER(), @left; SET @left = 1",
        )
    };
    for _ in 0..5 {
        same(&who("app", "secret")?, &"app@%\tNULL\n".to_owned(), "app")?;
        same(
            &who("other", "geheim")?,
            &"other@%\tNULL\n".to_owned(),
            "other",
        )?;
        expect(who("app", "geheim").is_err(), || {
            "any password will do".to_owned()
        })?;
    }
    let users = proxy.admin("SELECT DISTINCT user FROM stats_mysql_free_connections ORDER BY 1")?;
    expect(
        users.lines().all(|user| ["app", "other"].contains(&user)),
        || users.clone(),
    )?;
    same(
        &proxy.admin("SELECT count(*) FROM stats_mysql_connection_pool WHERE ConnUsed > 0")?,
        &"0\n".to_owned(),
        "connections in use",
    )?;
    let client = log_in(&proxy)?;
    same(
        &proxy.admin("SELECT user FROM stats_mysql_processlist")?,
        &"open\n".to_owned(),
        "the processlist",
    )?;
    drop(client);
    Ok(())
}

/// KILL QUERY of such a session goes to its server by a connection that an earlier session has left.
pub(super) fn killed_there(driver: Driver) -> Outcome {
    let server = Server::start(Vendor::MariaDb)?;
    server.root(CREATE_USER)?;
    let proxy = started(driver, &[&server], &[])?;
    let count = |what: &str| {
        let sql = format!("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE {what}");
        let said = server.root(&sql)?;
        Ok::<_, String>(said.lines().last().unwrap_or_default().to_owned())
    };
    // Some for each core.
    let left: Vec<_> = (0..24).map(|_| log_in(&proxy)).collect::<Result<_, _>>()?;
    drop(left);
    soon("0", || {
        let used = proxy.admin("SELECT sum(ConnUsed) FROM stats_mysql_connection_pool")?;
        Ok(used.trim().to_owned())
    })?;
    let (mut client, mut other) = (log_in(&proxy)?, log_in(&proxy)?);
    client
        .query("SELECT SLEEP(600)")
        .map_err(|error| error.to_string())?;
    let is_running = "INFO = 'SELECT SLEEP(600)'";
    soon("1", || count(is_running))?;
    asked(&mut other, &format!("KILL QUERY {}", client.id))?;
    let said = client.rows();
    expect(
        said.as_ref().is_ok_and(|rows| rows.concat() == ["1"])
            || said
                .as_ref()
                .is_err_and(|error| error.to_string().contains("1317")),
        || format!("{said:?}"),
    )?;
    soon("0", || count(is_running))?;
    // The session goes on.
    same(
        &asked(&mut client, "SELECT 7")?.concat().concat(),
        &"7".to_owned(),
        "its next statement",
    )
}

/// Without an idle connection of the user a KILL QUERY cannot be said: the session ends, and with it the
/// statement.
pub(super) fn nobody_can_kill(driver: Driver) -> Outcome {
    let server = Server::start(Vendor::MariaDb)?;
    server.root(CREATE_USER)?;
    let proxy = started(driver, &[&server], &[])?;
    let (mut client, mut other) = (log_in(&proxy)?, log_in(&proxy)?);
    client
        .query("SELECT SLEEP(600)")
        .map_err(|error| error.to_string())?;
    let running = || {
        let said = server.root(
            "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO = 'SELECT SLEEP(600)'",
        )?;
        Ok::<_, String>(said.lines().last().unwrap_or_default().to_owned())
    };
    soon("1", running)?;
    asked(&mut other, &format!("KILL QUERY {}", client.id))?;
    let said = client.rows();
    expect(said.is_err(), || format!("{said:?}"))?;
    soon("0", running)?;
    same(
        &asked(&mut other, "SELECT 7")?.concat().concat(),
        &"7".to_owned(),
        "the other session",
    )
}

/// A server that is full of what earlier sessions have left lets the next ones in.
pub(super) fn makes_room(driver: Driver) -> Outcome {
    let server = Server::start_with(Vendor::MariaDb, &["--max-connections=10"])?;
    server.root(CREATE_USER)?;
    let address = format!("127.0.0.1:{}", server.port);
    // What is idle on another core makes no room.
    let proxy = bare(driver, |_, port, admin_port| {
        let listen = |option: &str, port| format!("--{option}=127.0.0.1:{port}");
        vec![
            listen("proxy-address", port),
            listen("admin-address", admin_port),
            format!("--proxy-backend-addresses={address}"),
            "--event-threads=1".into(),
        ]
    })?;
    for _ in 0..4 {
        let sessions = (0..8).map(|_| Raw::log_in(proxy.port));
        let sessions: Vec<_> = sessions
            .collect::<Result<_, _>>()
            .map_err(|error| error.to_string())?;
        drop(sessions);
        let used = "SELECT sum(ConnUsed) FROM stats_mysql_connection_pool";
        soon("0", || {
            let said = command_line(proxy.admin_port, "admin", "admin", &[], used)?;
            Ok(said.trim().to_owned())
        })?;
    }
    Ok(())
}
