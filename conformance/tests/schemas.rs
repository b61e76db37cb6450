//! The schema that a client names when it comes: one that there is not, and what is remembered of
//! those that there are.
#![forbid(unsafe_code)]

use conformance::beside::asked;
use conformance::by_hand::{self, Raw};
use conformance::proxy::{Driver, Proxy, Wish, command_line};
use conformance::servers::{Server, Vendor, vendors};
use conformance::trials::{self, expect, same, soon};
use std::fmt::Write as _;

type Outcome = Result<(), String>;

fn main() {
    trials::run(&[
        (
            "a_schema_that_there_is_not_is_refused_as_by_a_server",
            refused,
        ),
        ("who_becomes_somebody_else_names_a_schema_too", changed),
        ("a_schema_that_is_known_costs_no_question", remembered),
        ("a_schema_that_was_dropped_is_refused", dropped),
        (
            "a_schema_that_may_be_elsewhere_lets_its_client_in",
            elsewhere,
        ),
        ("where_no_server_answers_clients_come_in", silent),
    ])
}

/// `in`, or the error.
fn comes(port: u16, schema: &[u8]) -> String {
    Raw::log_in_to(port, schema).map_or_else(|error| error.to_string(), |_| "in".to_owned())
}

/// Names of no schema: directly and through the proxy.
fn names() -> Vec<Vec<u8>> {
    vec![
        b"nosuch".to_vec(),
        b"conf ".to_vec(),
        b"`".to_vec(),
        vec![b'x'; 64],
        "caf\u{e9}".into(),
    ]
}

fn refused(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (server, proxy) = by_hand::one(driver, vendor)?;
        server.root("CREATE DATABASE `caf\u{e9} 2`")?;
        for name in names() {
            let direct = comes(server.port, &name);
            expect(direct != "in", || format!("{vendor}: {name:?}"))?;
            // A server that is slow to answer lets them in for a while.
            soon(&direct, || Ok(comes(proxy.port, &name)))?;
        }
        // What is no text, or too long, is refused, be it in other words.
        for name in [&b"\xff\xfe"[..], b"conf\x80", &[b'x'; 65], &[b'x'; 300]] {
            // MySQL cuts off what is no text.
            expect(
                vendor == Vendor::MySql || comes(server.port, name) != "in",
                || format!("{vendor}: {name:?}"),
            )?;
            soon("refused", || {
                let said = comes(proxy.port, name);
                let refused = ["1049 42000 ", "1059 42000 ", "1102 42000 ", "1300 HY000 "]
                    .iter()
                    .any(|begin| said.starts_with(begin));
                Ok(if refused { "refused".into() } else { said })
            })?;
        }
        for name in [&b""[..], b"conf", "caf\u{e9} 2".as_bytes()] {
            same(&comes(proxy.port, name), "in")?;
        }
        // Somebody may not see all that there is.
        server.root("CREATE USER few@'%' IDENTIFIED BY 'few'; GRANT SELECT ON conf.* TO few@'%'; CREATE DATABASE closed")?;
        proxy.admin("INSERT INTO mysql_users (username, password) VALUES ('few', 'few'); LOAD MYSQL USERS TO RUNTIME")?;
        let few = |port, schema: &str| {
            let said = command_line(port, "few", "few", &[schema], "SELECT 'in'");
            said.unwrap_or_else(|words| words).trim().to_owned()
        };
        let refused = "ERROR 1044 (42000): Access denied for user 'few'@'%' to database 'closed'";
        if vendor == Vendor::MariaDb {
            same(&few(server.port, "closed"), refused)?;
        }
        soon(refused, || Ok(few(proxy.port, "closed")))?;
        same(&few(proxy.port, "conf"), "in")?;
    }
    Ok(())
}

/// COM_CHANGE_USER.
fn changed(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (server, proxy) = by_hand::one(driver, vendor)?;
        let change = |port: u16, schema: &str| -> Result<String, String> {
            let mut client = Raw::log_in(port).map_err(|error| error.to_string())?;
            let payload = format!(
                "\x11{}\0\0{schema}\0\x2d\0mysql_native_password\0",
                by_hand::USER
            );
            let mut answer = client
                .command(payload.as_bytes())
                .and_then(|()| client.packet());
            if answer
                .as_ref()
                .is_ok_and(|answer| answer.first() == Some(&0xfe))
            {
                answer = client.send(b"").and_then(|()| client.packet());
            }
            let answer = answer.map_err(|error| error.to_string())?;
            Ok(match answer.first() {
                Some(0) => "in".to_owned(),
                _ => by_hand::complaint(&answer).to_string(),
            })
        };
        for schema in ["nosuch", "conf ", "conf", ""] {
            let direct = change(server.port, schema)?;
            soon(&direct, || change(proxy.port, schema))?;
        }
    }
    Ok(())
}

fn counter(proxy: &Proxy, name: &str) -> Result<u64, String> {
    let said = proxy.admin(&format!(
        "SELECT Variable_Value FROM stats_mysql_global WHERE Variable_Name = '{name}'"
    ))?;
    said.trim().parse().map_err(|_| said)
}

/// Each of two cores asks once.
fn remembered(driver: Driver) -> Outcome {
    let (server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    server.root("CREATE DATABASE known")?;
    for _ in 0..50 {
        same(&comes(proxy.port, b"conf"), "in")?;
    }
    for name in ["Com_backend_init_db", "Server_Connections_created"] {
        let count = counter(&proxy, name)?;
        expect((1..=2).contains(&count), || format!("{name}: {count}"))?;
    }
    // At once, too: they wait for the first of them.
    let port = proxy.port;
    proxy.admin("LOAD MYSQL USERS TO RUNTIME")?;
    let clients: Vec<_> = (0..40)
        .map(|_| std::thread::spawn(move || comes(port, b"known")))
        .collect();
    for client in clients {
        same(&client.join().map_err(|_| "panicked".to_owned())?, "in")?;
    }
    let count = counter(&proxy, "Com_backend_init_db")?;
    expect(count <= 4, || format!("{count} questions"))
}

fn dropped(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (server, proxy) = by_hand::one(driver, vendor)?;
        let unknown = "1049 42000 Unknown database 'brief'";
        let mut client = Raw::log_in(proxy.port).map_err(|error| error.to_string())?;
        // Clients of both cores.
        let come = || {
            (0..4)
                .map(|_| comes(proxy.port, b"brief"))
                .collect::<Vec<_>>()
        };
        for by_server in [false, true] {
            soon(unknown, || Ok(comes(proxy.port, b"brief")))?;
            asked(&mut client, "CREATE DATABASE brief")?;
            expect(come() == ["in"; 4], || format!("{vendor}"))?;
            if by_server {
                server.root("DROP DATABASE brief")?;
                // A statement finds out.
                soon("refused", || {
                    let mut others = Vec::new();
                    for _ in 0..4 {
                        match Raw::log_in_to(proxy.port, b"brief") {
                            Ok(mut other) => {
                                let said = other.ask("USE brief");
                                expect(said.is_err(), || format!("{said:?}"))?;
                                others.push(other);
                            }
                            Err(error) => same(&error.to_string(), unknown)?,
                        }
                    }
                    Ok(if others.is_empty() { "refused" } else { "in" }.to_owned())
                })?;
            } else {
                asked(&mut client, "DROP DATABASE brief")?;
            }
            soon("gone", || {
                let said = come();
                Ok(if said == [unknown; 4] {
                    "gone".into()
                } else {
                    format!("{said:?}")
                })
            })?;
        }
    }
    Ok(())
}

/// Rules send some statements to a server that has other schemas.
fn elsewhere(driver: Driver) -> Outcome {
    let (own, other) = (
        Server::start(Vendor::MariaDb)?,
        Server::start(Vendor::MariaDb)?,
    );
    for server in [&own, &other] {
        server.root(by_hand::CREATE_USER)?;
    }
    other.root("CREATE DATABASE shard; CREATE DATABASE reports; CREATE TABLE reports.t (a INT); INSERT INTO reports.t VALUES (7)")?;
    let mut wish = Wish::in_front_of(&own);
    wish.add_open_user();
    let _ = write!(
        wish.servers,
        ",\n{{ address = \"127.0.0.1\", port = {}, hostgroup = 1 }}",
        other.port
    );
    let proxy = Proxy::start(driver, &wish)?;
    let unknown = |schema: &str| format!("1049 42000 Unknown database '{schema}'");
    for schema in ["shard", "reports", "nosuch"] {
        soon(&unknown(schema), || {
            Ok(comes(proxy.port, schema.as_bytes()))
        })?;
    }
    proxy.admin(
        "INSERT INTO mysql_query_rules_fast_routing (username, schemaname, flagIN, destination_hostgroup, comment) VALUES ('', 'shard', 0, 1, '');
        INSERT INTO mysql_query_rules (rule_id, active, match_digest, destination_hostgroup, apply) VALUES (1, 1, '^SELECT .* FROM', 1, 1);
        INSERT INTO mysql_query_rules (rule_id, active, schemaname, destination_hostgroup, apply) VALUES (2, 1, 'moved', 1, 1);
        LOAD MYSQL QUERY RULES TO RUNTIME",
    )?;
    for schema in ["shard", "reports", "moved"] {
        same(&comes(proxy.port, schema.as_bytes()), "in")?;
    }
    let mut client = Raw::log_in_to(proxy.port, b"reports").map_err(|error| error.to_string())?;
    same(
        &format!("{:?}", asked(&mut client, "SELECT a FROM t")?),
        "[[\"7\"]]",
    )?;
    soon(&unknown("nosuch"), || Ok(comes(proxy.port, b"nosuch")))?;
    // Nobody can say that it is not there.
    proxy.admin("UPDATE mysql_servers SET status = 'OFFLINE_HARD' WHERE hostgroup_id = 1; LOAD MYSQL SERVERS TO RUNTIME")?;
    same(&comes(proxy.port, b"nosuch"), "in")
}

/// As without any of this: the client is in, and its statement is told what is wrong.
fn silent(driver: Driver) -> Outcome {
    let (server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    proxy
        .admin("UPDATE mysql_servers SET status = 'OFFLINE_SOFT'; LOAD MYSQL SERVERS TO RUNTIME")?;
    for schema in [&b"nosuch"[..], b"conf"] {
        same(&comes(proxy.port, schema), "in")?;
    }
    proxy.admin("UPDATE mysql_servers SET status = 'ONLINE'; LOAD MYSQL SERVERS TO RUNTIME")?;
    // One that takes connections and says nothing.
    let deaf = std::net::TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    let port = deaf.local_addr().map_err(|error| error.to_string())?.port();
    proxy.admin(&format!(
        "UPDATE mysql_servers SET port = {port}; LOAD MYSQL SERVERS TO RUNTIME"
    ))?;
    for _ in 0..20 {
        same(&comes(proxy.port, b"nosuch"), "in")?;
    }
    drop(server);
    Ok(())
}
