//! TLS towards clients and servers, and the socket of this machine.

use conformance::proxy::{Driver, Proxy, Wish, command_line};
use conformance::servers::{Server, Vendor};
use conformance::trials::{expect, same};

use super::{Outcome, one};

const TLS_VARIABLES: &str = "SELECT * FROM global_variables WHERE variable_name LIKE 'mysql%ssl%';";

/// A1, A2, A3, A4: the variables are there and empty, take both kinds of quotes, and outlive kill
/// -9.
pub(super) fn the_tls_variables_are_listed_set_and_kept(driver: Driver) -> Outcome {
    let (server, mut proxy) = one(driver)?;
    let listed = proxy.admin(TLS_VARIABLES)?;
    let names = [
        "mysql-have_ssl",
        "mysql-session_idle_show_processlist",
        "mysql-ssl_p2s_ca",
        "mysql-ssl_p2s_cert",
        "mysql-ssl_p2s_key",
        "mysql-ssl_p2s_cipher",
    ];
    for name in names {
        expect(listed.lines().any(|line| line.starts_with(name)), || {
            format!("{name} is missing in:\n{listed}")
        })?;
    }
    let of = |listed: &str, name: &str| {
        let line = listed.lines().find_map(|line| {
            line.strip_prefix(name)?
                .strip_prefix('\t')
                .map(str::to_owned)
        });
        line.unwrap_or_default()
    };
    expect(
        ["NULL", "(null)", ""].contains(&of(&listed, "mysql-ssl_p2s_ca").as_str()),
        || format!("unset, but:\n{listed}"),
    )?;

    proxy.admin(
        "SET mysql-ssl_p2s_cert=\"/var/lib/proxysql/client-cert.pem\"; SET mysql-ssl_p2s_key=\"/var/lib/proxysql/client-key.pem\"; \
         SET mysql-ssl_p2s_ca=\"/var/lib/proxysql/ca.pem\"; SET mysql-ssl_p2s_cipher='ECDHE-RSA-AES256-SHA';",
    )?;
    let listed = proxy.admin(TLS_VARIABLES)?;
    same(
        &of(&listed, "mysql-ssl_p2s_cert"),
        "/var/lib/proxysql/client-cert.pem",
    )?;
    same(&of(&listed, "mysql-ssl_p2s_cipher"), "ECDHE-RSA-AES256-SHA")?;

    proxy.admin(&format!(
        "UPDATE mysql_servers SET use_ssl=1, max_connections=3000 WHERE port={}; LOAD MYSQL SERVERS TO RUNTIME; SAVE MYSQL SERVERS TO DISK; \
         SAVE MYSQL VARIABLES TO DISK;",
        server.port
    ))?;
    let rows =
        "select hostgroup_id,hostname,port,status,max_connections,use_ssl from mysql_servers;";
    let wanted = format!("0\t127.0.0.1\t{}\tONLINE\t3000\t1", server.port);
    same(&proxy.admin(rows)?, &wanted)?;
    proxy.restart()?;
    same(&proxy.admin(rows)?, &wanted)?;
    same(
        &of(&proxy.admin(TLS_VARIABLES)?, "mysql-ssl_p2s_ca"),
        "/var/lib/proxysql/ca.pem",
    )
}

const CIPHER: &str = "SHOW SESSION STATUS LIKE 'Ssl_cipher'";

/// A5, A6: new connections are encrypted once LOAD has said so, with the cipher that was asked for.
pub(super) fn tls_towards_servers_applies_at_load(driver: Driver) -> Outcome {
    let server = Server::start_with(Vendor::MariaDb, &["--tls-version=TLSv1.2"])?;
    let proxy = Proxy::start(driver, &Wish::in_front_of(&server))?;
    same(&proxy.query(CIPHER)?, "Ssl_cipher\t")?;
    proxy.admin(&format!(
        "SET mysql-ssl_p2s_ca='{}'; SET mysql-ssl_p2s_cert='{}'; SET mysql-ssl_p2s_key='{}'; SET mysql-ssl_p2s_cipher='ECDHE-RSA-AES256-SHA'; \
         LOAD MYSQL VARIABLES TO RUNTIME; UPDATE mysql_servers SET use_ssl=1; LOAD MYSQL SERVERS TO RUNTIME;",
        server.tls_file("ca.pem").display(),
        server.tls_file("client-cert.pem").display(),
        server.tls_file("client-key.pem").display(),
    ))?;
    same(&proxy.query(CIPHER)?, "Ssl_cipher\tECDHE-RSA-AES256-SHA")
}

/// A8: parameters of one server win over the variables for all.
pub(super) fn a_server_has_tls_parameters_of_its_own(driver: Driver) -> Outcome {
    let server = Server::start_with(Vendor::MariaDb, &["--tls-version=TLSv1.2"])?;
    let proxy = Proxy::start(driver, &Wish::in_front_of(&server))?;
    proxy.admin(&format!(
        "SET mysql-ssl_p2s_ca='/nowhere/ca.pem'; LOAD MYSQL VARIABLES TO RUNTIME; \
         INSERT INTO mysql_servers_ssl_params (hostname, port, ssl_ca, ssl_cert, ssl_key, ssl_cipher) \
         VALUES ('127.0.0.1', {}, '{}', '{}', '{}', 'ECDHE-RSA-AES128-GCM-SHA256'); \
         UPDATE mysql_servers SET use_ssl=1; LOAD MYSQL SERVERS TO RUNTIME;",
        server.port,
        server.tls_file("ca.pem").display(),
        server.tls_file("client-cert.pem").display(),
        server.tls_file("client-key.pem").display(),
    ))?;
    same(
        &proxy.query(CIPHER)?,
        "Ssl_cipher\tECDHE-RSA-AES128-GCM-SHA256",
    )
}

/// A7: an account that was made with REQUIRE SSL, through a proxy whose own client does not
/// encrypt.
pub(super) fn an_account_that_demands_tls_is_reachable(driver: Driver) -> Outcome {
    let (_server, proxy) = one(driver)?;
    proxy.admin("UPDATE mysql_servers SET use_ssl=1; LOAD MYSQL SERVERS TO RUNTIME;")?;
    same(
        &command_line(
            proxy.port,
            "secured",
            "verschlossen",
            &[],
            "SELECT 'reached'",
        )?,
        "reached",
    )
}

/// A9, A68: the client side is encrypted where the client wants it, and listens on a Unix socket
/// too.
pub(super) fn clients_come_over_tls_and_over_a_unix_socket(driver: Driver) -> Outcome {
    let (_server, proxy) = one(driver)?;
    same(
        &command_line(proxy.port, "app", "secret", &["--ssl"], "SELECT 'over TLS'")?,
        "over TLS",
    )?;
    // With the name of another host the client would come by TCP, and say nothing of it; there is
    // nobody at port 1.
    let socket = format!("--socket={}", proxy.data().join("client.sock").display());
    let there = ["--host=localhost", "--protocol=socket", &socket];
    same(
        &command_line(1, "app", "secret", &there, "SELECT 'over a socket'")?,
        "over a socket",
    )
}
