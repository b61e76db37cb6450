//! Identities: passwords of clients and of servers, while they change and when they are over; by
//! every plugin that real clients and servers speak.
#![forbid(unsafe_code)]

mod proofs;
mod told;

use conformance::by_hand;
use conformance::process::output;
use conformance::proxy::{Driver, Proxy, Wish, command_line};
use conformance::raw::Raw;
use conformance::servers::{Server, Vendor, vendors};
use conformance::trials::{self, expect, same, vendors_in_turn};
use conformance::watch::HANGS;
use std::process::Command;
use wire::caps;

use proofs::{certificates, plugins_of_servers, vouched_for};
use told::{
    flags_of_clients, servers_are_told, session_info, unix_sockets, untrusted_header,
    wide_character_sets,
};

type Outcome = Result<(), String>;

fn main() {
    trials::run(&[
        (
            "either_of_two_passwords_is_right_by_every_plugin",
            either_of_two_passwords,
        ),
        (
            "a_server_is_logged_in_to_with_the_password_that_it_knows",
            the_password_that_a_server_knows,
        ),
        (
            "a_session_outlives_the_change_of_its_password",
            a_session_outlives_the_change,
        ),
        ("a_certificate_says_who_a_client_is", certificates),
        (
            "who_is_loaded_while_a_client_logs_in_is_let_in_and_who_is_gone_is_told",
            loaded_in_between,
        ),
        (
            "an_address_that_fails_too_often_is_turned_away",
            brute_force,
        ),
        (
            "a_header_from_who_may_send_none_gets_an_error",
            untrusted_header,
        ),
        ("a_server_is_told_who_the_client_is", servers_are_told),
        (
            "flags_of_a_client_mean_what_they_mean_without_a_proxy",
            flags_of_clients,
        ),
        ("an_expired_password_is_changed_by_who_can", expired),
        (
            "a_character_set_that_no_client_may_have_is_refused_as_by_servers",
            wide_character_sets,
        ),
        (
            "a_client_reads_what_the_proxy_knows_of_its_session",
            session_info,
        ),
        ("unix_sockets_lead_in_and_out", unix_sockets),
        (
            "mariadbs_clients_know_the_certificate_by_the_password",
            vouched_for,
        ),
        (
            "servers_ask_for_a_proof_by_any_plugin_of_theirs",
            plugins_of_servers,
        ),
    ])
}

/// A way to come in: whose client, and its options.
type Way = (Vendor, &'static [&'static str]);

const PLAIN: Way = (Vendor::MariaDb, &[]);

const WAYS: [Way; 7] = [
    (
        Vendor::MariaDb,
        &["--skip-ssl", "--default-auth=mysql_native_password"],
    ),
    (
        Vendor::MariaDb,
        &["--skip-ssl", "--default-auth=client_ed25519"],
    ),
    (Vendor::MariaDb, &["--ssl", "--default-auth=client_ed25519"]),
    (
        Vendor::MariaDb,
        &["--ssl", "--default-auth=mysql_clear_password"],
    ),
    (Vendor::MySql, &["--ssl-mode=REQUIRED"]),
    (
        Vendor::MySql,
        &["--ssl-mode=DISABLED", "--get-server-public-key"],
    ),
    (
        Vendor::MySql,
        &[
            "--ssl-mode=REQUIRED",
            "--enable-cleartext-plugin",
            "--default-auth=mysql_clear_password",
        ],
    ),
];

/// Returns what the client of this way prints, or its error.
fn by(way: Way, port: u16, user: &str, password: &str, sql: &str) -> Result<String, String> {
    let (vendor, options) = way;
    if vendor == Vendor::MariaDb {
        // It would leave the hint out.
        return command_line(
            port,
            user,
            password,
            &[&["--comments"], options].concat(),
            sql,
        );
    }
    let mut command = Command::new(vendor.programs()?.client);
    command.args([
        "--no-defaults",
        "--protocol=tcp",
        "--host=127.0.0.1",
        "--batch",
        "--skip-column-names",
    ]);
    command.args([
        format!("--port={port}"),
        format!("--user={user}"),
        format!("--password={password}"),
    ]);
    command.args(options).arg("-e").arg(sql);
    let (fine, words) = output(&mut command, HANGS)?;
    if fine { Ok(words) } else { Err(words) }
}

fn is_in(said: &Result<String, String>, wanted: &str) -> Outcome {
    // The client may warn of what it is told to do.
    let fine = said
        .as_ref()
        .is_ok_and(|words| words.lines().any(|line| line == wanted));
    expect(fine, || format!("{wanted} was wanted: {said:?}"))
}

fn is_refused(said: &Result<String, String>, words: &str) -> Outcome {
    expect(
        said.as_ref().is_err_and(|error| error.contains(words)),
        || format!("'{words}' was wanted: {said:?}"),
    )
}

/// A proxy whose only user besides the fixture's is `turn`.
fn with_user(
    driver: Driver,
    server: &Server,
    password: &str,
    attributes: &str,
) -> Result<Proxy, String> {
    let proxy = Proxy::start(driver, &Wish::in_front_of(server))?;
    become_user(&proxy, password, attributes)?;
    Ok(proxy)
}

/// The row of `turn`, as an operator writes it; both are expressions.
fn become_user(proxy: &Proxy, password: &str, attributes: &str) -> Outcome {
    proxy.admin(&format!(
        "REPLACE INTO mysql_users (username, password, attributes) VALUES ('turn', {password}, {attributes}); LOAD MYSQL USERS TO RUNTIME"
    ))?;
    Ok(())
}

const NEW: &str = "json_object('additional_password', hex('new'))";
/// Always a login on the server.
const ANEW: &str = "SELECT /* create_new_connection=1 */ 'in'";

fn either_of_two_passwords(driver: Driver) -> Outcome {
    let server = Server::start(Vendor::MariaDb)?;
    server.root("CREATE USER turn@'%' IDENTIFIED BY 'old'")?;
    let proxy = with_user(driver, &server, "'old'", NEW)?;
    let native = |password: &str| format!("mysql_native_password('{password}')");
    let crypt = |password: &str| format!("caching_sha2_password('{password}')");
    let hashed = |hash: &str| format!("json_object('additional_password', hex({hash}))");
    // Beside a password that is known, a server can be reached as whoever the client proves to be.
    let rows = [
        ("'old'".to_owned(), NEW.to_owned()),
        (native("old"), NEW.to_owned()),
        ("'old'".to_owned(), hashed(&native("new"))),
        ("'old'".to_owned(), hashed(&crypt("new"))),
        (crypt("old"), hashed(&native("new"))),
        (crypt("old"), hashed(&crypt("new"))),
        (native("old"), hashed(&native("new"))),
    ];
    for (password, attributes) in rows {
        become_user(&proxy, &password, &attributes)?;
        for way in WAYS
            .into_iter()
            .filter(|(vendor, _)| vendor.programs().is_ok())
        {
            // MySQL's own client no longer speaks mysql_native_password.
            if way.0 == Vendor::MySql
                && (password.starts_with("mysql") || attributes.contains("mysql_native"))
                && !password.starts_with("caching")
            {
                continue;
            }
            let told = |words: String| format!("{password} {attributes} {way:?}: {words}");
            is_in(&by(way, proxy.port, "turn", "old", "SELECT 'in'"), "in").map_err(told)?;
            // With the new one the proxy lets it in; whether the server does is another question.
            let new = by(way, proxy.port, "turn", "new", "DO 1");
            let by_proxy = new
                .as_ref()
                .is_err_and(|words| words.contains("ProxySQL Error"));
            expect(!by_proxy, || told(format!("{new:?}")))?;
            for wrong in ["other", ""] {
                is_refused(
                    &by(way, proxy.port, "turn", wrong, "SELECT 'in'"),
                    "ProxySQL Error: Access denied",
                )
                .map_err(told)?;
            }
        }
    }
    for (attributes, words) in [
        (r#"'{"additional_password":"new"}'"#, "in hexadecimal"),
        (r#"'{"additional_password":""}'"#, "everybody could log in"),
    ] {
        is_refused(
            &become_user(&proxy, "'old'", attributes).map(|()| String::new()),
            words,
        )?;
    }
    Ok(())
}

fn denied(server: &Server) -> Result<u64, String> {
    let said = server.root("SHOW GLOBAL STATUS LIKE 'Access_denied_errors'")?;
    let last = said.split_whitespace().last().unwrap_or_default();
    last.parse().map_err(|_| said)
}

fn the_password_that_a_server_knows(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let server = Server::start(vendor)?;
        server.root("CREATE USER turn@'%' IDENTIFIED BY 'old'")?;
        let proxy = with_user(driver, &server, "'old'", NEW)?;
        for given in ["old", "new"] {
            is_in(&by(PLAIN, proxy.port, "turn", given, ANEW), "in")
                .map_err(|words| format!("{vendor}: {words}"))?;
        }
        server.root("ALTER USER turn@'%' IDENTIFIED BY 'new'")?;
        let before = if vendor == Vendor::MariaDb {
            denied(&server)?
        } else {
            0
        };
        for given in ["old", "new", "old", "new", "old", "new"] {
            is_in(&by(PLAIN, proxy.port, "turn", given, ANEW), "in")
                .map_err(|words| format!("{vendor}: {words}"))?;
        }
        if vendor == Vendor::MariaDb {
            let refused = denied(&server)? - before;
            expect((1..=2).contains(&refused), || {
                format!("{refused} logins were refused; each of two cores may find out once")
            })?;
        }
        // The end of the rotation.
        become_user(&proxy, "'new'", "''")?;
        is_in(&by(PLAIN, proxy.port, "turn", "new", ANEW), "in")?;
        is_refused(&by(PLAIN, proxy.port, "turn", "old", ANEW), "Access denied")?;
        // A server that knows neither: its words, and it is not shunned for it.
        server.root("ALTER USER turn@'%' IDENTIFIED BY 'third'")?;
        for _ in 0..8 {
            is_refused(
                &by(PLAIN, proxy.port, "turn", "new", ANEW),
                "ERROR 1045 (28000) at line 1: Access denied for user 'turn'@",
            )?;
        }
        is_in(&proxy.query("SELECT 'in'"), "in")?;
        let status = proxy.admin("SELECT DISTINCT status FROM stats_mysql_connection_pool")?;
        same(&status, "ONLINE")?;
        expect(
            proxy.says("does not let user 'turn' in: error 1045"),
            || proxy.log(),
        )?;
    }
    Ok(())
}

fn a_session_outlives_the_change(driver: Driver) -> Outcome {
    let server = Server::start(Vendor::MariaDb)?;
    let proxy = Proxy::start(driver, &Wish::in_front_of(&server))?;
    let mut client = Raw::log_in(proxy.port, 0)?;
    let in_there = |client: &mut Raw, when: &str| {
        let said = client.query(ANEW)?;
        expect(said.contains("\\x02in"), || format!("{when}: {said}"))
    };
    in_there(&mut client, "at first")?;
    server.root("ALTER USER app@'%' IDENTIFIED BY 'new'")?;
    let said = client.query(ANEW)?;
    expect(said.contains("Access denied for user"), || said)?;
    // Its own proof is of the old one.
    proxy.admin("UPDATE mysql_users SET password = 'new' WHERE username = 'app'; LOAD MYSQL USERS TO RUNTIME")?;
    in_there(&mut client, "afterwards")
}

/// The password is looked up when it comes, and so is all else of the user.
fn loaded_in_between(driver: Driver) -> Outcome {
    let (_server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    let login = |client: &mut by_hand::Raw| -> Result<Vec<u8>, String> {
        let mut login = 0x0008_a201_u32.to_le_bytes().to_vec();
        login.extend_from_slice(&(1_u32 << 24).to_le_bytes());
        login.push(45);
        login.extend_from_slice(&[0; 23]);
        login.extend_from_slice(b"open\0\0mysql_native_password\0");
        client.send(&login).map_err(|error| error.to_string())?;
        client.packet().map_err(|error| error.to_string())
    };
    let come = || -> Result<by_hand::Raw, String> {
        let mut client =
            by_hand::Raw::connect(proxy.port, b"").map_err(|error| error.to_string())?;
        client.packet().map_err(|error| error.to_string())?;
        Ok(client)
    };
    let mut client = come()?;
    proxy.admin(
        "UPDATE mysql_users SET active = 0 WHERE username = 'open'; LOAD MYSQL USERS TO RUNTIME",
    )?;
    let answer = login(&mut client)?;
    let words = by_hand::complaint(&answer).to_string();
    expect(
        words.contains("1045") && words.contains("Access denied for user 'open'"),
        || words,
    )?;
    let mut client = come()?;
    proxy.admin(
        "UPDATE mysql_users SET active = 1, default_schema = 'conf2' WHERE username = 'open'; LOAD MYSQL USERS TO RUNTIME",
    )?;
    let answer = login(&mut client)?;
    expect(answer.first() == Some(&0), || {
        by_hand::complaint(&answer).to_string()
    })?;
    let schema = client
        .ask("SELECT DATABASE()")
        .map_err(|error| error.to_string())?;
    same(&format!("{schema:?}"), "[[\"conf2\"]]")
}

fn brute_force(driver: Driver) -> Outcome {
    let server = Server::start(Vendor::MariaDb)?;
    let mut wish = Wish::in_front_of(&server);
    wish.variables.push_str(
        "    client_host_cache_size = 2\n    client_host_error_counts = 3\n    proxy_protocol_networks = \"127.0.0.0/8\"\n",
    );
    let proxy = Proxy::start(driver, &wish)?;
    let come = |password: &str| command_line(proxy.port, "app", password, &[], "SELECT 'in'");
    let seen = || {
        proxy.admin(
            "SELECT client_address, error_count FROM stats_mysql_client_host_cache ORDER BY 1",
        )
    };
    // A success ends the row; two cores count as one.
    for _ in 0..2 {
        is_refused(&come("wrong"), "ERROR 1045")?;
    }
    trials::until("127.0.0.1\t2", seen)?;
    is_in(&come("secret"), "in")?;
    trials::until("", seen)?;
    for _ in 0..3 {
        is_refused(&come("wrong"), "ERROR 1045")?;
    }
    trials::until("127.0.0.1\t3", seen)?;
    for _ in 0..4 {
        is_refused(&come("secret"), "ERROR 1129")?;
    }
    // Behind a balancer each client answers for itself.
    let behind = |last: u8, payload: &[u8]| {
        let header = format!("PROXY TCP4 192.0.2.{last} 10.0.0.1 51234 6033\r\n");
        by_hand::Raw::log_in_after(proxy.port, &[header.as_bytes(), payload].concat())
            .map_err(|error| error.to_string())
    };
    // There is no such user here.
    for (last, wanted) in [
        (7, "1045"),
        (7, "1045"),
        (7, "1045"),
        (7, "1129"),
        (8, "1045"),
    ] {
        let (_, answer) = behind(last, b"")?;
        let words = by_hand::complaint(&answer).to_string();
        expect(words.contains(wanted), || {
            format!("{last}: {words} instead of {wanted}")
        })?;
    }
    // The oldest has made room, and the balancer's own address with it.
    trials::until("192.0.2.8\t1", seen)?;
    is_in(&come("secret"), "in")?;
    proxy.admin("PROXYSQL FLUSH MYSQL CLIENT HOSTS")?;
    same(&seen()?, "")?;
    let (_, answer) = behind(7, b"")?;
    expect(
        by_hand::complaint(&answer).to_string().contains("1045"),
        || by_hand::complaint(&answer).to_string(),
    )?;
    same(
        &proxy.admin("SELECT error_count FROM stats_mysql_client_host_cache_reset")?,
        "1",
    )?;
    same(&seen()?, "")?;
    // A balancer looks whether somebody is here, and says for whom; no more.
    for header in [
        &b"PROXY TCP4 192.0.2.9 10.0.0.1 51234 6033\r\n"[..],
        b"PROXY UNKNOWN\r\n",
        b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0",
        b"",
    ] {
        for _ in 0..4 {
            let mut probe =
                by_hand::Raw::connect(proxy.port, header).map_err(|error| error.to_string())?;
            probe.packet().map_err(|error| error.to_string())?;
        }
    }
    is_in(&come("secret"), "in")?;
    let aborted = "SELECT Variable_Value + 0 >= 16 FROM stats_mysql_global WHERE Variable_Name = 'Client_Connections_aborted'";
    trials::until("1", || proxy.admin(aborted))?;
    same(&seen()?, "")?;
    let away = proxy.admin(
        "SELECT Variable_Value + 0 > 3 FROM stats_mysql_global WHERE Variable_Name = 'client_host_error_killed_connections'",
    )?;
    same(&away, "1")?;
    expect(
        proxy.says("clients of 127.0.0.1 are turned away from now on: 3 failed logins"),
        || proxy.log(),
    )
}

fn expired(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let server = Server::start(vendor)?;
        let mut wish = Wish::in_front_of(&server);
        // Some go to another hostgroup, on connections of their own that begin with a question.
        wish.servers = format!(
            "{0},\n{1}",
            wish.servers,
            wish.servers.replace("hostgroup = 0", "hostgroup = 1")
        );
        wish.rules = "{ rule_id = 1, active = 1, match_digest = \"^SELECT\", destination_hostgroup = 1, apply = 1 }".to_owned();
        wish.variables
            .push_str("    init_connect = \"SELECT 1\"\n    reset_connection_algorithm = 1\n");
        let proxy = Proxy::start(driver, &wish)?;
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
        proxy.admin(
            "UPDATE mysql_users SET attributes = json_object('additional_password', hex('fresh')), default_schema = 'conf'; \
             LOAD MYSQL USERS TO RUNTIME",
        )?;
        let mut early = Raw::log_in(proxy.port, caps::EXPIRED_PASSWORDS)?;
        early.query("CREATE TEMPORARY TABLE conf.left_behind (n INT)")?;
        server.root("ALTER USER app@'%' PASSWORD EXPIRE")?;
        if vendor == Vendor::MariaDb {
            server.root("SET GLOBAL disconnect_on_expired_password = 1")?;
        }
        let told = |words: String| format!("{vendor}: {words}");
        let mut plain = Raw::log_in(proxy.port, 0)?;
        for _ in 0..8 {
            let said = plain.query("SELECT 1")?;
            expect(said.contains("Your password has expired"), || told(said))?;
        }
        same(
            &proxy.admin("SELECT DISTINCT status FROM stats_mysql_connection_pool")?,
            "ONLINE",
        )?;
        let mut able = Raw::log_in(proxy.port, caps::EXPIRED_PASSWORDS)?;
        let mut other = Raw::log_in(proxy.port, caps::EXPIRED_PASSWORDS)?;
        let wants_another = |said: String| {
            expect(
                said.contains(if vendor == Vendor::MySql {
                    "reset your password"
                } else {
                    "SET PASSWORD"
                }),
                || told(said),
            )
        };
        for _ in 0..2 {
            // The session's schema cannot be brought there.
            wants_another(other.prepare("SELECT 1")?)?;
        }
        for _ in 0..2 {
            for client in [&mut able, &mut other] {
                wants_another(client.query("SELECT 1")?)?;
                wants_another(client.query("DO 1")?)?;
            }
        }
        // Its connection is open and goes on, and is reset for others: not by a login, which would
        // be one into the sandbox.
        drop(early);
        trials::soon("1", || {
            Ok(proxy
                .admin(
                    "SELECT SUM(ConnFree) > 0 FROM stats_mysql_connection_pool WHERE hostgroup = 0",
                )?
                .trim()
                .to_owned())
        })?;
        let change = if vendor == Vendor::MySql {
            "ALTER USER USER() IDENTIFIED BY 'fresh'"
        } else {
            "SET PASSWORD = PASSWORD('fresh')"
        };
        let said = able.query(change)?;
        expect(!said.contains("\\xff"), || told(said))?;
        for _ in 0..3 {
            let said = able.query("SELECT 'works'")?;
            expect(said.contains("works"), || told(said))?;
        }
        // A new session gets nothing of the sandbox that the other one is still in.
        for _ in 0..4 {
            let said = Raw::log_in(proxy.port, caps::EXPIRED_PASSWORDS)?.query("SELECT 'works'")?;
            expect(said.contains("works"), || told(said))?;
        }
        drop(other);
        for _ in 0..4 {
            let said = Raw::log_in(proxy.port, caps::EXPIRED_PASSWORDS)?.query("SELECT 'works'")?;
            expect(said.contains("works"), || told(said))?;
        }
        let said = plain.query("SELECT 'works'")?;
        expect(said.contains("works"), || told(said))?;
    }
    Ok(())
}
