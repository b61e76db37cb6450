//! Who one is: passwords of clients and of servers, while they change and when they are over; by every plugin that real clients and servers speak.
#![forbid(unsafe_code)]

use std::process::Command;
use std::time::Duration;

use conformance::process::output;
use conformance::proxy::{Driver, Proxy, Wish, command_line};
use conformance::raw::Raw;
use conformance::servers::{Server, Vendor};
use conformance::trials::{self, expect, same};

type Outcome = Result<(), String>;

fn main() {
    trials::run(&[
        ("either_of_two_passwords_is_right_by_every_plugin", either_of_two_passwords),
        ("a_server_is_logged_in_to_with_the_password_that_it_knows", the_password_that_a_server_knows),
        ("a_session_outlives_the_change_of_its_password", a_session_outlives_the_change),
        ("a_certificate_says_who_a_client_is", certificates),
        ("servers_ask_for_a_proof_by_any_plugin_of_theirs", plugins_of_servers),
    ])
}

/// The vendors that are here: MariaDB always is, or nothing of this programme runs.
fn vendors() -> Vec<Vendor> {
    [Vendor::MariaDb, Vendor::MySql].into_iter().filter(|vendor| vendor.programs().is_ok()).collect()
}

/// A way to come in: whose client, and its options.
type Way = (Vendor, &'static [&'static str]);

const PLAIN: Way = (Vendor::MariaDb, &[]);

const WAYS: [Way; 7] = [
    (Vendor::MariaDb, &["--skip-ssl", "--default-auth=mysql_native_password"]),
    (Vendor::MariaDb, &["--skip-ssl", "--default-auth=client_ed25519"]),
    (Vendor::MariaDb, &["--ssl", "--default-auth=client_ed25519"]),
    (Vendor::MariaDb, &["--ssl", "--default-auth=mysql_clear_password"]),
    (Vendor::MySql, &["--ssl-mode=REQUIRED"]),
    (Vendor::MySql, &["--ssl-mode=DISABLED", "--get-server-public-key"]),
    (Vendor::MySql, &["--ssl-mode=REQUIRED", "--enable-cleartext-plugin", "--default-auth=mysql_clear_password"]),
];

/// What that client prints, or its error.
fn by(way: Way, port: u16, user: &str, password: &str, sql: &str) -> Result<String, String> {
    let (vendor, options) = way;
    if vendor == Vendor::MariaDb {
        // It would leave the hint out.
        return command_line(port, user, password, &[&["--comments"], options].concat(), sql);
    }
    let mut command = Command::new(vendor.programs()?.client);
    command.args(["--no-defaults", "--protocol=tcp", "--host=127.0.0.1", "--batch", "--skip-column-names"]);
    command.args([format!("--port={port}"), format!("--user={user}"), format!("--password={password}")]);
    command.args(options).arg("-e").arg(sql);
    let (fine, words) = output(&mut command, Duration::from_secs(60))?;
    if fine { Ok(words) } else { Err(words) }
}

fn is_in(said: &Result<String, String>, wanted: &str) -> Outcome {
    // The client may warn of what it is told to do.
    let fine = said.as_ref().is_ok_and(|words| words.lines().any(|line| line == wanted));
    expect(fine, || format!("{wanted} was wanted: {said:?}"))
}

fn is_refused(said: &Result<String, String>, words: &str) -> Outcome {
    expect(said.as_ref().is_err_and(|error| error.contains(words)), || format!("'{words}' was wanted: {said:?}"))
}

/// A proxy whose only user besides the fixture's is `turn`.
fn with_user(driver: Driver, server: &Server, password: &str, attributes: &str) -> Result<Proxy, String> {
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
        for way in WAYS.into_iter().filter(|(vendor, _)| vendor.programs().is_ok()) {
            // MySQL's own client no longer speaks mysql_native_password.
            if way.0 == Vendor::MySql && (password.starts_with("mysql") || attributes.contains("mysql_native")) && !password.starts_with("caching") {
                continue;
            }
            let told = |words: String| format!("{password} {attributes} {way:?}: {words}");
            is_in(&by(way, proxy.port, "turn", "old", "SELECT 'in'"), "in").map_err(told)?;
            // With the new one the proxy lets it in; whether the server does is another question.
            let new = by(way, proxy.port, "turn", "new", "DO 1");
            let by_proxy = new.as_ref().is_err_and(|words| words.contains("ProxySQL Error"));
            expect(!by_proxy, || told(format!("{new:?}")))?;
            for wrong in ["other", ""] {
                is_refused(&by(way, proxy.port, "turn", wrong, "SELECT 'in'"), "ProxySQL Error: Access denied").map_err(told)?;
            }
        }
    }
    for (attributes, words) in [
        (r#"'{"additional_password":"new"}'"#, "in hexadecimal"),
        (r#"'{"additional_password":""}'"#, "everybody could log in"),
    ] {
        is_refused(&become_user(&proxy, "'old'", attributes).map(|()| String::new()), words)?;
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
            is_in(&by(PLAIN, proxy.port, "turn", given, ANEW), "in").map_err(|words| format!("{vendor}: {words}"))?;
        }
        server.root("ALTER USER turn@'%' IDENTIFIED BY 'new'")?;
        let before = if vendor == Vendor::MariaDb { denied(&server)? } else { 0 };
        for given in ["old", "new", "old", "new", "old", "new"] {
            is_in(&by(PLAIN, proxy.port, "turn", given, ANEW), "in").map_err(|words| format!("{vendor}: {words}"))?;
        }
        if vendor == Vendor::MariaDb {
            let refused = denied(&server)? - before;
            expect((1..=2).contains(&refused), || format!("{refused} logins were refused; each of two cores may find out once"))?;
        }
        // The end of the rotation.
        become_user(&proxy, "'new'", "''")?;
        is_in(&by(PLAIN, proxy.port, "turn", "new", ANEW), "in")?;
        is_refused(&by(PLAIN, proxy.port, "turn", "old", ANEW), "Access denied")?;
        // A server that knows neither: its words, and it is not shunned for it.
        server.root("ALTER USER turn@'%' IDENTIFIED BY 'third'")?;
        for _ in 0..8 {
            is_refused(&by(PLAIN, proxy.port, "turn", "new", ANEW), "ERROR 1045 (28000) at line 1: Access denied for user 'turn'@")?;
        }
        is_in(&proxy.query("SELECT 'in'"), "in")?;
        let status = proxy.admin("SELECT DISTINCT status FROM stats_mysql_connection_pool")?;
        same(&status, "ONLINE")?;
        expect(proxy.log().contains("does not let user 'turn' in: error 1045"), || proxy.log())?;
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

/// Certificates of clients in `$1`, by the proxy's own authority and by another one. Made anew by each test: they end after a day.
const CERTIFICATES: &str = r#"set -e
    cd "$1"
    openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /O=Shop/CN=shop-ca -keyout ca-key.pem -out proxysql-ca.pem
    openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /O=Shop/CN=shop-ca -keyout other-ca-key.pem -out other-ca.pem
    sign() {
        openssl req -newkey rsa:2048 -nodes -subj "$2" -keyout $1-key.pem -out $1.csr
        printf "$3" >$1.ext
        openssl x509 -req -in $1.csr -CA $4.pem -CAkey $5 -CAcreateserial -days 1 -extfile $1.ext -out $1-cert.pem
    }
    sign proxysql /CN=proxy 'subjectAltName=IP:127.0.0.1\n' proxysql-ca ca-key.pem
    sign till /O=Shop/CN=till 'subjectAltName=URI:https://shop,URI:spiffe://shop/till\n' proxysql-ca ca-key.pem
    sign store /O=Shop/CN=store 'subjectAltName=URI:spiffe://shop/store\n' proxysql-ca ca-key.pem
    sign forged /O=Shop/CN=till 'subjectAltName=URI:spiffe://shop/till\n' other-ca other-ca-key.pem
"#;

fn certificates(driver: Driver) -> Outcome {
    let server = Server::start(Vendor::MariaDb)?;
    server.root("CREATE USER turn@'%' IDENTIFIED BY 'old'")?;
    let proxy = with_user(driver, &server, "'old'", "''")?;
    let folder = proxy.data().display().to_string();
    output(Command::new("sh").args(["-c", CERTIFICATES, "certificates", &folder]), Duration::from_secs(60))?;
    proxy.admin("PROXYSQL RELOAD TLS")?;
    let come = |name: Option<&str>, password: &str| {
        let files = name.map(|name| [format!("--ssl-cert={folder}/{name}-cert.pem"), format!("--ssl-key={folder}/{name}-key.pem")]);
        let mut options = vec!["--ssl"];
        options.extend(files.iter().flatten().map(String::as_str));
        command_line(proxy.port, "turn", password, &options, "SELECT 'in'")
    };
    // Whoever needs none may show any.
    for name in [None, Some("till"), Some("store"), Some("forged")] {
        is_in(&come(name, "old"), "in")?;
    }
    let spiffe = r#"'{"spiffe_id":"spiffe://shop/till"}'"#;
    let names = r#"'{"x509_subject":"/O=Shop/CN=till","x509_issuer":"/O=Shop/CN=shop-ca"}'"#;
    for (attributes, of_another) in [(spiffe, "The SPIFFE ID of the client"), (names, "The subject of the client")] {
        become_user(&proxy, "'old'", attributes)?;
        is_in(&come(Some("till"), "old"), "in")?;
        is_refused(&come(Some("till"), "wrong"), "(using password: YES)")?;
        is_refused(&come(Some("store"), "old"), of_another)?;
        is_refused(&come(Some("forged"), "old"), "The client certificate is not accepted")?;
        is_refused(&come(None, "old"), "A client certificate is required")?;
        is_refused(&command_line(proxy.port, "turn", "old", &[], "SELECT 'in'"), "SSL is required")?;
    }
    expect(proxy.log().contains("user 'turn' was refused for its certificate"), || proxy.log())?;
    // Nobody becomes that user without its certificate.
    let said = Raw::log_in(proxy.port, 0)?.change_user("turn");
    is_refused(&said.map(|()| String::new()), "")?;
    is_refused(&become_user(&proxy, "'old'", r#"'{"spiffe_id":"till"}'"#).map(|()| String::new()), "begins with 'spiffe://'")
}

fn plugins_of_servers(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let options: &[&str] = if vendor == Vendor::MariaDb { &["--plugin-load-add=auth_ed25519"] } else { &[] };
        let server = Server::start_with(vendor, options)?;
        let plugins: &[&str] = match vendor {
            Vendor::MariaDb => &["VIA mysql_native_password USING PASSWORD('old')", "VIA ed25519 USING PASSWORD('old')"],
            Vendor::MySql => &["WITH caching_sha2_password BY 'old'", "WITH sha256_password BY 'old'"],
        };
        let proxy = with_user(driver, &server, "'old'", "''")?;
        let mut there = 0;
        for plugin in plugins {
            server.root("DROP USER IF EXISTS turn@'%'")?;
            if let Err(why) = server.root(&format!("CREATE USER turn@'%' IDENTIFIED {plugin}")) {
                eprintln!("SKIPPED: {vendor}: {plugin}: {}", why.trim());
                continue;
            }
            there += 1;
            for use_ssl in [0, 1] {
                proxy.admin(&format!("UPDATE mysql_servers SET use_ssl = {use_ssl}; LOAD MYSQL SERVERS TO RUNTIME"))?;
                // Nothing is in its cache: caching_sha2_password asks for the password itself, over TLS or sealed with its key.
                server.root("FLUSH PRIVILEGES")?;
                let told = |words: String| format!("{vendor}: {plugin}, use_ssl = {use_ssl}: {words}");
                for _ in 0..2 {
                    is_in(&by(PLAIN, proxy.port, "turn", "old", ANEW), "in").map_err(told)?;
                }
                // Of a hash of another plugin there is nothing to prove it with.
                become_user(&proxy, "mysql_native_password('old')", "''")?;
                let said = by(WAYS[0], proxy.port, "turn", "old", ANEW);
                if plugin.contains("native") {
                    is_in(&said, "in").map_err(told)?;
                } else {
                    is_refused(&said, "but mysql_users holds only a hash of mysql_native_password").map_err(told)?;
                }
                become_user(&proxy, "caching_sha2_password('old')", "''")?;
                let said = by((Vendor::MariaDb, &["--ssl"]), proxy.port, "turn", "old", ANEW);
                is_in(&said, "in").map_err(told)?;
                become_user(&proxy, "'old'", "''")?;
            }
            server.root("ALTER USER turn@'%' IDENTIFIED BY 'other'")?;
            is_refused(&by(PLAIN, proxy.port, "turn", "old", ANEW), "ERROR 1045")?;
        }
        expect(there > 0, || "no plugin was tried".to_owned())?;
    }
    Ok(())
}
