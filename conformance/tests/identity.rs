//! Who one is: passwords of clients and of servers, while they change and when they are over; by
//! every plugin that real clients and servers speak.
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::Command;

use conformance::clients::{self, Client};
use conformance::process::output;
use conformance::proxy::{Driver, Proxy, Wish, command_line};
use conformance::raw::Raw;
use conformance::servers::{Server, Vendor, vendors};
use conformance::trials::{self, expect, same, vendors_in_turn};
use conformance::watch::HANGS;
use conformance::{by_hand, cache};
use wire::caps;

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

/// Certificates of clients in `$1`, by the proxy's own authority and by another one. Made anew by
/// each test: they end after a day.
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
    output(
        Command::new("sh").args(["-c", CERTIFICATES, "certificates", &folder]),
        HANGS,
    )?;
    proxy.admin("PROXYSQL RELOAD TLS")?;
    let come = |name: Option<&str>, password: &str| {
        let files = name.map(|name| {
            [
                format!("--ssl-cert={folder}/{name}-cert.pem"),
                format!("--ssl-key={folder}/{name}-key.pem"),
            ]
        });
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
    for (attributes, of_another) in [
        (spiffe, "The SPIFFE ID of the client"),
        (names, "The subject of the client"),
    ] {
        become_user(&proxy, "'old'", attributes)?;
        is_in(&come(Some("till"), "old"), "in")?;
        is_refused(&come(Some("till"), "wrong"), "(using password: YES)")?;
        is_refused(&come(Some("store"), "old"), of_another)?;
        is_refused(
            &come(Some("forged"), "old"),
            "The client certificate is not accepted",
        )?;
        is_refused(&come(None, "old"), "A client certificate is required")?;
        is_refused(
            &command_line(proxy.port, "turn", "old", &[], "SELECT 'in'"),
            "SSL is required",
        )?;
    }
    expect(
        proxy.says("user 'turn' was refused for its certificate"),
        || proxy.log(),
    )?;
    // Nobody becomes that user without its certificate.
    let said = Raw::log_in(proxy.port, 0)?.change_user("turn");
    is_refused(&said.map(|()| String::new()), "")?;
    is_refused(
        &become_user(&proxy, "'old'", r#"'{"spiffe_id":"till"}'"#).map(|()| String::new()),
        "begins with 'spiffe://'",
    )
}

/// MariaDB's connector, which looks at certificates and knows no authority: its words behind its
/// login and behind a change of its user, or its error. With a key and a certificate it meets
/// somebody who has those, in the middle.
const KNOWS_NO_AUTHORITY: &str = r"
    const [, port, password, key, cert] = process.argv;
    const [fs, mariadb, net, tls] = ['fs', 'mariadb', 'net', 'tls'].map(require);
    let far;
    const inner = tls.createServer(key ? { key: fs.readFileSync(key), cert: fs.readFileSync(cert) } : {}, (near) => {
      near.on('error', () => {});
      near.pipe(far).pipe(near);
    });
    inner.listen(0, '127.0.0.1');
    const middle = net.createServer((client) => {
      const server = net.connect(port, '127.0.0.1');
      for (const one of [client, server]) one.on('error', () => {});
      server.once('data', (greeting) => client.write(greeting));
      client.once('data', (request) => {
        client.pause();
        // It asks for TLS with 36 bytes.
        server.write(request.subarray(0, 36));
        far = tls.connect({ socket: server, rejectUnauthorized: false });
        far.on('error', () => {});
        const near = net.connect(inner.address().port, '127.0.0.1');
        near.on('error', () => {});
        near.write(request.subarray(36));
        client.pipe(near).pipe(client);
      });
    });
    middle.listen(0, '127.0.0.1', async () => {
      try {
        const at = key ? middle.address().port : port;
        const connection = await mariadb.createConnection({ host: '127.0.0.1', port: at, user: 'turn', password, database: 'conf', ssl: true, connectTimeout: 10000 });
        const who = async () => (await connection.query({ sql: 'SELECT 1', rowsAsArray: true }))[0][0];
        console.log('in', await who());
        // Without a schema its packet has none, which no server can read.
        await connection.changeUser({ user: 'turn', password, database: 'conf' });
        console.log('changed', await who());
      } catch (error) {
        console.log('refused', error.errno, error.message);
      }
      process.exit(0);
    });
";

fn vouched_for(driver: Driver) -> Outcome {
    if let Some(why) = Client::MariaDbNode.missing() {
        eprintln!("SKIPPED: MariaDB's connector for Node: {why}");
        return Ok(());
    }
    let server = Server::start(Vendor::MariaDb)?;
    server.root("CREATE USER turn@'%' IDENTIFIED BY 'old'; GRANT SELECT ON conf.* TO turn@'%'")?;
    let proxy = with_user(driver, &server, "'old'", "''")?;
    let file = |name: &str| proxy.data().join(name).display().to_string();
    let mut certificate = Command::new("openssl");
    certificate
        .args("req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=middle -keyout".split(' '));
    output(
        certificate
            .arg(file("middle-key.pem"))
            .arg("-out")
            .arg(file("middle-cert.pem")),
        HANGS,
    )?;
    let come = |password: &str, files: &[String]| {
        let mut node = Command::new("node");
        node.current_dir(clients::node()?)
            .args(["-e", KNOWS_NO_AUTHORITY, &proxy.port.to_string(), password])
            .args(files);
        output(&mut node, HANGS).map(|(_, said)| said)
    };
    let middle = [file("middle-key.pem"), file("middle-cert.pem")];
    for password in ["'old'", "mysql_native_password('old')"] {
        become_user(&proxy, password, "''")?;
        same(&come("old", &[])?, "in 1\nchanged 1")
            .map_err(|words| format!("{password}: {words}"))?;
        let said = come("old", &middle)?;
        expect(
            said.starts_with("refused") && said.contains("self-signed"),
            || format!("in the middle: {said}"),
        )?;
        let said = come("wrong", &[])?;
        expect(said.starts_with("refused"), || said)?;
    }
    // Nothing reads what its sessions say and hear, but for the login.
    become_user(&proxy, "'old'", "''")?;
    proxy.admin("UPDATE mysql_users SET fast_forward = 1 WHERE username = 'turn'; LOAD MYSQL USERS TO RUNTIME")?;
    same(&come("old", &[])?, "in 1\nchanged 1")
}

/// Where a plugin of MariaDB's server is: with the server, or where
/// `scripts/get-mariadb-plugins.sh` has put it.
fn plugin_folder(file: &str) -> Option<PathBuf> {
    [
        PathBuf::from("/usr/lib/mysql/plugin"),
        cache::folder().join("mariadb-plugins"),
    ]
    .into_iter()
    .find(|folder| folder.join(file).exists())
}

fn plugins_of_servers(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let ed25519 = if vendor == Vendor::MariaDb {
            plugin_folder("auth_ed25519.so")
        } else {
            None
        };
        let options: Vec<_> = ed25519
            .iter()
            .flat_map(|folder| {
                [
                    "--plugin-load-add=auth_ed25519".to_owned(),
                    format!("--plugin-dir={}", folder.display()),
                ]
            })
            .collect();
        let server = Server::start_with(
            vendor,
            &options.iter().map(String::as_str).collect::<Vec<_>>(),
        )?;
        let plugins: &[&str] = match vendor {
            Vendor::MariaDb if ed25519.is_none() => {
                eprintln!("SKIPPED: MariaDB: its auth_ed25519.so is not here");
                &["VIA mysql_native_password USING PASSWORD('old')"]
            }
            Vendor::MariaDb => &[
                "VIA mysql_native_password USING PASSWORD('old')",
                "VIA ed25519 USING PASSWORD('old')",
            ],
            Vendor::MySql => &[
                "WITH caching_sha2_password BY 'old'",
                "WITH sha256_password BY 'old'",
            ],
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
                proxy.admin(&format!(
                    "UPDATE mysql_servers SET use_ssl = {use_ssl}; LOAD MYSQL SERVERS TO RUNTIME"
                ))?;
                // Nothing is in its cache: caching_sha2_password asks for the password itself, over
                // TLS or sealed with its key.
                server.root("FLUSH PRIVILEGES")?;
                let told =
                    |words: String| format!("{vendor}: {plugin}, use_ssl = {use_ssl}: {words}");
                for _ in 0..2 {
                    is_in(&by(PLAIN, proxy.port, "turn", "old", ANEW), "in").map_err(told)?;
                }
                // Of a hash of another plugin there is nothing to prove it with.
                become_user(&proxy, "mysql_native_password('old')", "''")?;
                let said = by(WAYS[0], proxy.port, "turn", "old", ANEW);
                if plugin.contains("native") {
                    is_in(&said, "in").map_err(told)?;
                } else {
                    is_refused(
                        &said,
                        "but mysql_users holds only a hash of mysql_native_password",
                    )
                    .map_err(told)?;
                }
                become_user(&proxy, "caching_sha2_password('old')", "''")?;
                let said = by(
                    (Vendor::MariaDb, &["--ssl"]),
                    proxy.port,
                    "turn",
                    "old",
                    ANEW,
                );
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
    let aborted = "SELECT Variable_Value >= 16 FROM stats_mysql_global WHERE Variable_Name = 'Client_Connections_aborted'";
    trials::until("1", || proxy.admin(aborted))?;
    same(&seen()?, "")?;
    let away = proxy.admin(
        "SELECT Variable_Value > 3 FROM stats_mysql_global WHERE Variable_Name = 'client_host_error_killed_connections'",
    )?;
    same(&away, "1")?;
    expect(
        proxy.says("clients of 127.0.0.1 are turned away from now on: 3 failed logins"),
        || proxy.log(),
    )
}

fn servers_are_told(driver: Driver) -> Outcome {
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

fn untrusted_header(driver: Driver) -> Outcome {
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

fn flags_of_clients(driver: Driver) -> Outcome {
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

/// A62, A68: Unix sockets on both sides.
fn unix_sockets(driver: Driver) -> Outcome {
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

fn wide_character_sets(driver: Driver) -> Outcome {
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

fn session_info(driver: Driver) -> Outcome {
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
