//! Facts that come with a login: where a client is, what it can do, and how it writes.

use conformance::clients::{self, Client};
use conformance::proxy::{Driver, Proxy, Wish, command_line};
use conformance::raw::Raw;
use conformance::servers::{Server, Vendor};
use conformance::trials::{expect, same, vendors_in_turn};
use conformance::{by_hand, cache};
use wire::caps;

use super::{Outcome, by, is_in, is_refused};

pub(super) fn servers_are_told(driver: Driver) -> Outcome {
    let server = Server::start_with(Vendor::MariaDb, &["--proxy-protocol-networks=127.0.0.1"])?;
    // Accounts of one address each: the server itself checks who it is.
    server.root("CREATE USER open@'192.0.2.7'; CREATE USER open@'192.0.2.8'; GRANT ALL ON *.* TO open@'192.0.2.7'; GRANT ALL ON *.* TO open@'192.0.2.8'")?;
    let mut wish = Wish::in_front_of(&server);
    wish.add_open_user();
    wish.variables
        .push_str("    proxy_protocol_networks = \"127.0.0.0/8\"\n");
    let proxy = Proxy::start(driver, &wish)?;
    let behind = |last: u8| {
        let header = format!("PROXY TCP4 192.0.2.{last} 10.0.0.1 51234 6033\r\n");
        let (mut raw, answer) = by_hand::Raw::log_in_after(proxy.port, header.as_bytes())
            .map_err(|error| error.to_string())?;
        expect(answer.first() == Some(&0), || {
            by_hand::complaint(&answer).to_string()
        })?;
        raw.ask("SELECT USER(), CURRENT_USER()")
            .map_err(|error| error.to_string())
            .map(|rows| rows.concat().join(" "))
    };
    is_refused(&behind(7), "Access denied for user 'open'@'127.0.0.1'")?;
    for version in [1, 2] {
        proxy.admin(&format!(
            "REPLACE INTO mysql_hostgroup_attributes (hostgroup_id, hostgroup_settings) VALUES (0, json_object('proxy_protocol', {version})); LOAD MYSQL SERVERS TO RUNTIME"
        ))?;
        for _ in 0..4 {
            for last in [7, 8] {
                same(
                    &behind(last)?,
                    &format!("open@192.0.2.{last} open@192.0.2.{last}"),
                )?;
            }
            is_refused(&behind(9), "Access denied for user 'open'@'192.0.2.9'")?;
        }
        // Each address has its own, on each of two cores at most.
        let there = server.root("SELECT COUNT(*) BETWEEN 2 AND 4, MIN(host LIKE '192.0.2.%:51234') FROM information_schema.processlist WHERE user = 'open'")?;
        same(there.lines().last().unwrap_or_default(), "1\t1")?;
        // Who comes by the Unix socket has no address.
        let socket = format!("--socket={}/client.sock", proxy.data().display());
        let said = command_line(
            proxy.port,
            "app",
            "secret",
            &["--host=localhost", "--protocol=socket", &socket],
            "SELECT USER()",
        );
        is_in(&said, "app@127.0.0.1")?;
    }
    // Nor does the cache give to one account what another may see.
    proxy.admin("INSERT INTO mysql_query_rules (rule_id, active, match_digest, cache_ttl, apply) VALUES (9, 1, '^SELECT USER', 60000, 1); LOAD MYSQL QUERY RULES TO RUNTIME")?;
    for _ in 0..3 {
        for last in [7, 8] {
            same(
                &behind(last)?,
                &format!("open@192.0.2.{last} open@192.0.2.{last}"),
            )?;
        }
    }
    same(&proxy.admin("SELECT Variable_Value FROM stats_mysql_global WHERE Variable_Name = 'Query_Cache_count_GET_OK'")?, "4")?;
    proxy.admin("DELETE FROM mysql_query_rules; LOAD MYSQL QUERY RULES TO RUNTIME")?;
    proxy.admin("DELETE FROM mysql_hostgroup_attributes; LOAD MYSQL SERVERS TO RUNTIME")?;
    is_refused(&behind(7), "Access denied for user 'open'@'127.0.0.1'")?;
    let wrong = proxy.admin(
        "REPLACE INTO mysql_hostgroup_attributes (hostgroup_id, hostgroup_settings) VALUES (0, '{\"proxy_protocol\": 3}'); LOAD MYSQL SERVERS TO RUNTIME",
    );
    is_refused(&wrong, "must be from 0 to 2")
}

pub(super) fn untrusted_header(driver: Driver) -> Outcome {
    let server = Server::start(Vendor::MariaDb)?;
    let proxy = Proxy::start(driver, &Wish::in_front_of(&server))?;
    for header in [
        &b"PROXY TCP4 192.0.2.7 10.0.0.1 51234 6033\r\n"[..],
        b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0",
    ] {
        let (_, answer) =
            by_hand::Raw::log_in_after(proxy.port, header).map_err(|error| error.to_string())?;
        let words = by_hand::complaint(&answer).to_string();
        expect(
            words.contains("1043") && words.contains("mysql-proxy_protocol_networks does not name"),
            || words,
        )?;
    }
    expect(
        proxy.says("a client of 127.0.0.1 was turned away: a PROXY header from an address"),
        || proxy.log(),
    )
}

/// Returns what a client of these flags sees, directly or through the proxy.
fn flags_seen(port: u16, flags: u64) -> Result<Vec<String>, String> {
    let mut raw = Raw::log_in(port, flags)?;
    let mut seen = Vec::new();
    for sql in [
        "SELECT @@wait_timeout",
        "UPDATE conf.scratch SET words = 'as it was' WHERE id = 1",
        "SELECT COUNT (*) FROM conf.scratch",
        "SET @a = 1; SELECT @a",
        "SELECT 1; SELECT 2",
    ] {
        let said = raw.query(sql)?;
        // Neither the words that a server finds for a syntax error are the point, nor what the
        // first EOF says of indexes: for a client that has no DEPRECATE_EOF it is ours, and the
        // server's own comes at the end.
        let line = |line: &str| match line {
            line if line.contains("\\xff") => "an error".to_owned(),
            line if line.contains(" \\xfe\\x00\\x00") => "the end".to_owned(),
            line => line.to_owned(),
        };
        seen.push(said.lines().map(line).collect::<Vec<_>>().join("\n"));
    }
    Ok(seen)
}

pub(super) fn flags_of_clients(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let server = Server::start_with(vendor, &["--interactive-timeout=4321"])?;
        server.root("INSERT INTO conf.scratch VALUES (1, 'as it was')")?;
        let proxy = Proxy::start(driver, &Wish::in_front_of(&server))?;
        // The server's cache of passwords is warm from here on.
        by(
            (
                vendor,
                if vendor == Vendor::MySql {
                    &["--ssl-mode=REQUIRED"]
                } else {
                    &[]
                },
            ),
            server.port,
            "app",
            "secret",
            "DO 1",
        )?;
        let kinds = [
            0,
            caps::FOUND_ROWS,
            caps::INTERACTIVE,
            caps::IGNORE_SPACE,
            caps::MULTI_STATEMENTS,
            caps::FOUND_ROWS | caps::INTERACTIVE,
        ];
        for turn in 0..3 {
            for flags in kinds {
                let direct = flags_seen(server.port, flags)?;
                let through = flags_seen(proxy.port, flags)?;
                for (at, (direct, through)) in direct.iter().zip(&through).enumerate() {
                    same(through, direct).map_err(|words| {
                        format!("{vendor}, flags {flags:x}, turn {turn}, statement {at}: {words}")
                    })?;
                }
            }
            // What a session leaves is reset before the next has it.
            let mut raw = Raw::log_in(proxy.port, caps::INTERACTIVE)?;
            raw.query("CREATE TEMPORARY TABLE conf.mine (a INT)")?;
        }
        proxy.admin("SET mysql-server_capabilities = 569865; LOAD MYSQL VARIABLES TO RUNTIME")?;
        let raw = Raw::log_in(proxy.port, caps::FOUND_ROWS)?;
        expect(!raw.has(caps::FOUND_ROWS), || {
            "CLIENT_FOUND_ROWS is offered".to_owned()
        })?;
    }
    Ok(())
}

/// A62, A68: Unix sockets on both sides.
pub(super) fn unix_sockets(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let server = Server::start(vendor)?;
        let path = server.tls_file("../s");
        let mut wish = Wish::in_front_of(&server);
        wish.servers = format!(
            "{{ address = \"{}\", port = 0, hostgroup = 0, use_ssl = 1 }}",
            path.display()
        );
        let mut proxy = Proxy::start(driver, &wish)?;
        let socket = format!("--socket={}/client.sock", proxy.data().display());
        let come = |options: &[&str]| {
            command_line(
                proxy.port,
                "app",
                "secret",
                options,
                "SELECT CONCAT('in', USER() LIKE '%@localhost')",
            )
        };
        // The server sees a client of its own machine, and the password may cross in clear.
        server.root(
            "CREATE USER app@localhost IDENTIFIED BY 'secret'; GRANT ALL ON *.* TO app@localhost",
        )?;
        is_in(&come(&[]), "in1").map_err(|words| format!("{vendor}: {words}"))?;
        is_in(
            &come(&["--host=localhost", "--protocol=socket", &socket]),
            "in1",
        )
        .map_err(|words| format!("{vendor}: {words}"))?;
        is_in(
            &come(&[
                "--host=localhost",
                "--protocol=socket",
                &socket,
                "--default-auth=mysql_clear_password",
            ]),
            "in1",
        )?;
        is_refused(
            &command_line(
                proxy.port,
                "app",
                "wrong",
                &["--host=localhost", "--protocol=socket", &socket],
                "DO 1",
            ),
            "'app'@'localhost'",
        )?;
        let shown = proxy.admin("SELECT srv_host, srv_port FROM stats_mysql_connection_pool")?;
        same(&shown, &format!("{}\t0", path.display()))?;
        // A socket file that a killed process left is no hindrance.
        proxy.kill();
        expect(proxy.data().join("client.sock").exists(), || {
            "the file is gone".to_owned()
        })?;
        proxy.restart()?;
        is_in(
            &command_line(
                proxy.port,
                "app",
                "secret",
                &["--host=localhost", "--protocol=socket", &socket],
                "SELECT 'in'",
            ),
            "in",
        )?;
    }
    Ok(())
}

pub(super) fn wide_character_sets(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let server = Server::start(vendor)?;
        let _ = Client::MariaDbCli.run(
            clients::app(server.port),
            &cache::root().join("conformance/scenarios/warm-up.txt"),
        );
        let proxy = Proxy::start(driver, &Wish::in_front_of(&server))?;
        let seen = |port: u16| {
            let mut seen = String::new();
            // ucs2, utf16, utf16le, utf32, ucs2 again, and some that clients may have.
            for collation in [35, 54, 56, 60, 90, 8, 33, 45_u8] {
                let entered = Raw::log_in_with(port, 0, collation.into()).map(|_| ());
                seen += &format!("{collation}: {entered:?}\n");
                if vendor == Vendor::MySql && matches!(collation, 8 | 33 | 45) {
                    // The raw client has no proof for caching_sha2_password here.
                    continue;
                }
                let mut client = Raw::log_in(port, 0)?;
                let changed = client.change_user_with("app", collation);
                let then = client.query("SELECT 'here'").is_ok();
                seen += &format!("{collation}, changed: {changed:?}, {then}\n");
            }
            Ok::<_, String>(seen)
        };
        same(&seen(proxy.port)?, &seen(server.port)?)?;
    }
    Ok(())
}

pub(super) fn session_info(driver: Driver) -> Outcome {
    let server = Server::start(Vendor::MariaDb)?;
    let proxy = Proxy::start(driver, &Wish::in_front_of(&server))?;
    let mut client = Raw::log_in(proxy.port, caps::MULTI_STATEMENTS)?;
    client.query("SET sql_mode = 'ANSI'")?;
    client.query("BEGIN")?;
    client.query("SELECT 1")?;
    let before = client.query("SHOW SESSION STATUS LIKE 'Questions'")?;
    for sql in ["PROXYSQL INTERNAL SESSION", "proxysql internal session;"] {
        let told = client.query(sql)?;
        for part in [
            "session_info",
            &format!("\"thread_session_id\":{}", client.id),
            "\"username\":\"app\"",
            "\"sql_mode\":",
            "\"hostgroup_id\":0",
            "\"Transaction\"",
        ] {
            let part = part.escape_default().to_string();
            let told = told.replace("\\\"", "\"").escape_default().to_string();
            expect(told.contains(&part), || {
                format!("{sql}: no {part}:\n{told}")
            })?;
        }
        expect(!told.contains("secret"), || told.clone())?;
    }
    for sql in [
        "PROXYSQL INTERNAL NOSUCH",
        "PROXYSQL INTERNAL",
        "PROXYSQL INTERNAL SESSION x",
        "PROXYSQL INTERNAL SESSION; DO 1",
    ] {
        let refused = client.query(sql)?;
        expect(refused.contains("Unknown PROXYSQL INTERNAL"), || {
            refused.clone()
        })?;
        let refused = format!("{:?}", client.prepare(sql));
        expect(refused.contains("prepared statement protocol"), || {
            refused.clone()
        })?;
    }
    let after = client.query("SHOW SESSION STATUS LIKE 'Questions'")?;
    // The server has seen the last question alone.
    let questions = |told: &str| {
        let value = told.split("Questions\\x").nth(1)?.get(2..)?;
        let digits: String = value.chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<u64>().ok()
    };
    let (before, after) = (questions(&before), questions(&after));
    expect(before.is_some() && before.map(|n| n + 1) == after, || {
        format!("{before:?} {after:?}")
    })
}
