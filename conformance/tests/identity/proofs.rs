//! Certificates of clients, of the proxy and of servers, and the plugins by which passwords are proven.

use conformance::cache;
use conformance::clients::{self, Client};
use conformance::process::output;
use conformance::proxy::{Driver, command_line};
use conformance::raw::Raw;
use conformance::servers::{Server, Vendor};
use conformance::trials::{expect, same, vendors_in_turn};
use conformance::watch::HANGS;
use std::path::PathBuf;
use std::process::Command;

use super::{ANEW, Outcome, PLAIN, WAYS, become_user, by, is_in, is_refused, with_user};

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

pub(super) fn certificates(driver: Driver) -> Outcome {
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

pub(super) fn vouched_for(driver: Driver) -> Outcome {
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

pub(super) fn plugins_of_servers(driver: Driver) -> Outcome {
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
