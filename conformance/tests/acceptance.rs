//! The acceptance cases that a DBA could try: scripts pasted into the admin port, and what clients
//! then see.
#![forbid(unsafe_code)]

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

use conformance::clients::{Client, app};
use conformance::proxy::{Driver, Proxy, Wish, command_line};
use conformance::raw::Raw;
use conformance::servers::{Server, Vendor};
use conformance::trials::{self, expect, same};
use wire::caps;
use wire::response::Expect;

type Outcome = Result<(), String>;

fn main() {
    trials::run(&[
        (
            "the_tls_variables_are_listed_set_and_kept",
            the_tls_variables_are_listed_set_and_kept,
        ),
        (
            "tls_towards_servers_applies_at_load",
            tls_towards_servers_applies_at_load,
        ),
        (
            "a_server_has_tls_parameters_of_its_own",
            a_server_has_tls_parameters_of_its_own,
        ),
        (
            "an_account_that_demands_tls_is_reachable",
            an_account_that_demands_tls_is_reachable,
        ),
        (
            "clients_come_over_tls_and_over_a_unix_socket",
            clients_come_over_tls_and_over_a_unix_socket,
        ),
        (
            "the_banner_says_the_configured_version",
            the_banner_says_the_configured_version,
        ),
        (
            "precise_rules_are_written_from_the_statistics",
            precise_rules_are_written_from_the_statistics,
        ),
        (
            "a_user_that_needs_tls_is_not_reached_by_changing_to_it",
            a_user_that_needs_tls_is_not_changed_to,
        ),
        (
            "schemas_whose_names_are_not_utf8_are_told_apart",
            schemas_whose_names_are_not_utf8,
        ),
        (
            "a_temporary_table_is_where_its_statement_was_prepared",
            a_temporary_table_of_a_prepared_statement,
        ),
        (
            "fast_routing_has_the_known_table_and_key",
            fast_routing_has_the_known_table_and_key,
        ),
        (
            "a_flag_out_selects_the_fast_route",
            a_flag_out_selects_the_fast_route,
        ),
        (
            "two_rules_split_reads_from_writes",
            two_rules_split_reads_from_writes,
        ),
        (
            "the_statement_after_an_insert_goes_where_it_went",
            the_statement_after_an_insert_goes_where_it_went,
        ),
        (
            "a_prepared_statement_goes_by_the_schema_it_was_prepared_in",
            prepared_in_a_schema,
        ),
        (
            "what_follows_a_prepared_insert_goes_where_it_went",
            flags_of_prepared_statements,
        ),
        (
            "one_switch_splits_reads_from_writes",
            one_switch_splits_reads_from_writes,
        ),
        (
            "prepared_statements_are_split_as_their_texts_are",
            prepared_statements_are_split,
        ),
        ("mysql_is_split_as_mariadb_is", mysql_is_split),
        (
            "a_template_rewrites_what_has_its_structure",
            a_template_rewrites_what_has_its_structure,
        ),
        (
            "a_template_keeps_to_what_its_session_means",
            a_template_keeps_to_what_its_session_means,
        ),
        (
            "a_function_of_another_server_is_replaced_everywhere",
            a_function_of_another_server_is_replaced_everywhere,
        ),
        ("cores_count_their_own_turns", cores_count_their_own_turns),
        (
            "prepared_statements_are_rewritten_by_expressions",
            prepared_statements_are_rewritten_by_expressions,
        ),
        (
            "a_load_under_traffic_is_seen_whole_and_breaks_nothing",
            a_load_under_traffic_is_seen_whole,
        ),
        (
            "statements_are_counted_by_their_kind",
            statements_are_counted_by_their_kind,
        ),
        (
            "one_port_serves_split_and_fast_forward_users",
            one_port_serves_split_and_fast_forward_users,
        ),
        (
            "rules_match_the_port_and_the_address_of_the_client",
            rules_match_the_port_and_the_address_of_the_client,
        ),
        (
            "prepared_statements_on_a_server_are_bounded",
            prepared_statements_on_a_server_are_bounded,
        ),
        (
            "prepared_statements_of_clients_are_bounded",
            prepared_statements_of_clients_are_bounded,
        ),
        (
            "a_prepared_statement_follows_the_rules_and_outlives_servers",
            a_prepared_statement_follows_the_rules,
        ),
        (
            "several_statements_are_routed_and_counted_each_by_itself",
            several_statements_are_routed_each,
        ),
    ])
}

/// Two MariaDB servers in hostgroups 0 and 1; `SELECT @@port` tells them apart.
struct Two {
    writer: Server,
    reader: Server,
    proxy: Proxy,
}

fn two(driver: Driver) -> Result<Two, String> {
    two_of(Vendor::MariaDb, driver)
}

fn two_of(vendor: Vendor, driver: Driver) -> Result<Two, String> {
    let writer = Server::start(vendor)?;
    let reader = Server::start(vendor)?;
    let mut wish = Wish::in_front_of(&writer);
    let _ = write!(
        wish.servers,
        ",\n{{ address = \"127.0.0.1\", port = {}, hostgroup = 1 }}",
        reader.port
    );
    let proxy = Proxy::start(driver, &wish)?;
    Ok(Two {
        writer,
        reader,
        proxy,
    })
}

fn one(driver: Driver) -> Result<(Server, Proxy), String> {
    let server = Server::start(Vendor::MariaDb)?;
    let proxy = Proxy::start(driver, &Wish::in_front_of(&server))?;
    Ok((server, proxy))
}

impl Two {
    fn is_writer(&self, said: &str) -> Outcome {
        same(
            said.lines().last().unwrap_or_default(),
            &self.writer.port.to_string(),
        )
    }

    fn is_reader(&self, said: &str) -> Outcome {
        same(
            said.lines().last().unwrap_or_default(),
            &self.reader.port.to_string(),
        )
    }
}

/// The number in the last column of what was printed.
fn number(said: &str) -> Result<u64, String> {
    said.split_whitespace()
        .last()
        .and_then(|word| word.parse().ok())
        .ok_or_else(|| format!("no number in {said:?}"))
}

/// So many sessions that some share a core.
const OFTEN: usize = 8;

fn a_user_that_needs_tls_is_not_changed_to(driver: Driver) -> Outcome {
    let server = Server::start(Vendor::MariaDb)?;
    let mut wish = Wish::in_front_of(&server);
    for (name, tls) in [("sealed", 1), ("open", 0)] {
        let _ = write!(
            wish.users,
            ",\n{{ username = \"{name}\", password = \"secret\", default_hostgroup = 0, use_ssl = {tls} }}"
        );
    }
    let proxy = Proxy::start(driver, &wish)?;
    let mut raw = Raw::log_in(proxy.port, 0)?;
    raw.change_user("open")?;
    let refused = raw.change_user("sealed").err().unwrap_or_default();
    expect(refused.contains("SSL is required"), || refused.clone())?;
    let at_the_door = command_line(proxy.port, "sealed", "secret", &[], "SELECT 1")
        .err()
        .unwrap_or_default();
    expect(at_the_door.contains("SSL is required"), || {
        at_the_door.clone()
    })
}

fn schemas_whose_names_are_not_utf8(driver: Driver) -> Outcome {
    let (server, proxy) = one(driver)?;
    for name in ["db\u{e9}", "db\u{e8}"] {
        server.root(&format!(
            "CREATE DATABASE `{name}`; GRANT ALL ON `{name}`.* TO app@'%'"
        ))?;
    }
    let mut sessions = Vec::new();
    for _ in 0..OFTEN {
        for (byte, there) in [(0xE9, "6462C3A9"), (0xE8, "6462C3A8")] {
            let mut raw = Raw::log_in(proxy.port, 0)?;
            raw.query("SET NAMES latin1")?;
            raw.ask(&[2, b'd', b'b', byte], Expect::Simple)?;
            sessions.push((raw, there));
        }
    }
    for (raw, there) in &mut sessions {
        let said = raw.query("SELECT HEX(CONVERT(DATABASE() USING utf8mb4))")?;
        expect(said.contains(*there), || said.clone())?;
    }
    Ok(())
}

fn a_temporary_table_of_a_prepared_statement(driver: Driver) -> Outcome {
    let (server, proxy) = one(driver)?;
    server.root("CREATE TABLE conf2.made (a INT)")?;
    // Others come in the schema where the connection is left: it needs nothing to be theirs.
    proxy.admin("UPDATE mysql_users SET default_schema = 'conf2'; LOAD MYSQL USERS TO RUNTIME")?;
    let mut maker = Raw::log_in(proxy.port, 0)?;
    maker.query("USE conf")?;
    maker.prepare("CREATE TEMPORARY TABLE made (a INT)")?;
    maker.query("USE conf2")?;
    maker.execute(0, 0, b"")?;
    // Another table of that name.
    let dropped = maker.query("DROP TABLE made")?;
    expect(!dropped.contains("#"), || dropped.clone())?;
    for _ in 0..OFTEN {
        let said = Raw::log_in(proxy.port, 0)?.query("SELECT * FROM conf.made")?;
        expect(said.contains("doesn\\'t exist"), || said.clone())?;
    }
    let said = maker.query("SELECT * FROM conf.made")?;
    expect(!said.contains("doesn\\'t exist"), || said.clone())?;
    maker.query("DROP TABLE conf.made")?;
    same(
        proxy
            .admin("SELECT COUNT(*) FROM stats_mysql_session_holds")?
            .trim(),
        "0",
    )
}

/// A51, A52: beyond mysql-max_stmts_per_connection the longest unused are closed, and nothing is
/// left on the server.
fn prepared_statements_on_a_server_are_bounded(driver: Driver) -> Outcome {
    let server = Server::start(Vendor::MariaDb)?;
    let mut wish = Wish::in_front_of(&server);
    wish.variables
        .push_str("    max_stmts_per_connection = 5\n");
    let proxy = Proxy::start(driver, &wish)?;
    let mut client = Raw::log_in(proxy.port, 0)?;
    for n in 0..100 {
        client.prepare(&format!("SELECT {n}, 'of many'"))?;
        client.execute(n, 0, b"")?;
    }
    // All of them can still be executed, the first as well as the last.
    for n in [0, 99, 50, 0] {
        let seen = client.execute(n, 0, b"")?;
        expect(seen.contains("of many"), || {
            format!("statement {n}: {seen}")
        })?;
    }
    let connections = number(
        &proxy.admin("SELECT SUM(ConnUsed) + SUM(ConnFree) FROM stats_mysql_connection_pool")?,
    )?;
    let left = number(&server.root("SHOW GLOBAL STATUS LIKE 'Prepared_stmt_count'")?)?;
    // What is closed goes along with the next command: two may wait for theirs.
    expect(left <= connections * 7, || {
        format!("{left} statements on {connections} connections")
    })?;
    let known = "SELECT COUNT(*), MAX(ref_count_client) FROM stats_mysql_prepared_statements_info WHERE query LIKE '%of many%'";
    same(&proxy.admin(known)?, "100\t1")?;
    let many = "SELECT username, num_columns, num_params FROM stats_mysql_prepared_statements_info WHERE query = \"SELECT 7, 'of many'\"";
    same(&proxy.admin(many)?, "app\t2\t0")
}

/// A52: neither a client nor all of them together can make the proxy remember statements without
/// end.
fn prepared_statements_of_clients_are_bounded(driver: Driver) -> Outcome {
    let server = Server::start(Vendor::MariaDb)?;
    let mut wish = Wish::in_front_of(&server);
    wish.variables
        .push_str("    max_stmts_cache = 128\n    stmts_per_client_max = 10\n");
    let proxy = Proxy::start(driver, &wish)?;
    let mut client = Raw::log_in(proxy.port, 0)?;
    for n in 0..10 {
        client.prepare(&format!("SELECT {n}"))?;
    }
    let refused = client.prepare("SELECT 'one too many'")?;
    expect(
        refused.contains("create more than max_prepared_stmt_count statements (current value: 10)"),
        || refused.clone(),
    )?;
    client.send(0, &client.statement(0x19, 3))?;
    client.prepare("SELECT 'in its place'")?;
    for n in 0..600 {
        let mut other = Raw::log_in(proxy.port, 0)?;
        other.prepare(&format!("SELECT 'other', {n}"))?;
    }
    let cached = number(&proxy.admin(
        "SELECT Variable_Value FROM stats_mysql_global WHERE Variable_Name = 'Stmt_Cached'",
    )?)?;
    expect(cached <= 256, || {
        format!("{cached} statements are remembered by two cores")
    })
}

/// Routed at execution: to another server once a rule says so, and again after that server was
/// started anew.
fn a_prepared_statement_follows_the_rules(driver: Driver) -> Outcome {
    let mut two = two(driver)?;
    let mut client = Raw::log_in(two.proxy.port, 0)?;
    client.prepare("SELECT CONCAT('port ', @@port), ?")?;
    let params = b"\0\x01\x03\0\x07\0\0\0";
    let on = |seen: &str, server: &Server| {
        expect(seen.contains(&format!("port {}", server.port)), || {
            format!("not on {}: {seen}", server.port)
        })
    };
    on(&client.execute(0, 0, params)?, &two.writer)?;
    two.proxy.admin("INSERT INTO mysql_query_rules (active, match_digest, destination_hostgroup, apply) VALUES (1, 'CONCAT', 1, 1); LOAD MYSQL QUERY RULES TO RUNTIME;")?;
    on(&client.execute(0, 0, params)?, &two.reader)?;
    two.reader.restart()?;
    // The types were bound before, on a connection that is gone.
    on(&client.execute(0, 0, b"\0\0\x08\0\0\0")?, &two.reader)?;
    two.proxy
        .admin("DELETE FROM mysql_query_rules; LOAD MYSQL QUERY RULES TO RUNTIME;")?;
    on(&client.execute(0, 0, b"\0\0\x08\0\0\0")?, &two.writer)
}

/// Each part of a text by its own rules, digests and counters.
fn several_statements_are_routed_each(driver: Driver) -> Outcome {
    let two = two(driver)?;
    two.proxy.admin("INSERT INTO mysql_query_rules (active, match_digest, destination_hostgroup, apply) VALUES (1, '^SELECT @@port', 1, 1); LOAD MYSQL QUERY RULES TO RUNTIME;")?;
    let mut client = Raw::log_in(two.proxy.port, caps::MULTI_STATEMENTS)?;
    let seen = client.query(
        "DELETE FROM conf.scratch; SELECT @@port; INSERT INTO conf.scratch VALUES (1, 'a'); SELECT CONCAT('default ', @@port)",
    )?;
    expect(seen.contains(&format!("\\x05{}", two.reader.port)), || {
        format!("the read went elsewhere: {seen}")
    })?;
    expect(
        seen.contains(&format!("default {}", two.writer.port)),
        || format!("the rest went elsewhere: {seen}"),
    )?;
    same(
        &two.proxy.admin("SELECT hostgroup, digest_text, count_star FROM stats_mysql_query_digest WHERE digest_text NOT LIKE '%version%' ORDER BY digest_text")?,
        "0\tDELETE FROM conf.scratch\t1\n0\tINSERT INTO conf.scratch VALUES (?,?)\t1\n1\tSELECT @@port\t1\n0\tSELECT CONCAT(?,@@port)\t1",
    )
}

const TLS_VARIABLES: &str = "SELECT * FROM global_variables WHERE variable_name LIKE 'mysql%ssl%';";

/// A1, A2, A3, A4: the variables are there and empty, take both kinds of quotes, and outlive kill
/// -9.
fn the_tls_variables_are_listed_set_and_kept(driver: Driver) -> Outcome {
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
fn tls_towards_servers_applies_at_load(driver: Driver) -> Outcome {
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
fn a_server_has_tls_parameters_of_its_own(driver: Driver) -> Outcome {
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
fn an_account_that_demands_tls_is_reachable(driver: Driver) -> Outcome {
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
fn clients_come_over_tls_and_over_a_unix_socket(driver: Driver) -> Outcome {
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

/// A6: the version that a client is greeted with.
fn the_banner_says_the_configured_version(driver: Driver) -> Outcome {
    let (_server, proxy) = one(driver)?;
    proxy.admin("SET mysql-server_version='5.5.30'; LOAD MYSQL VARIABLES TO RUNTIME;")?;
    let said = command_line(proxy.port, "app", "secret", &[], "\\s")?;
    expect(
        said.lines()
            .any(|line| line.contains("Server version") && line.contains("5.5.30")),
        || said.clone(),
    )
}

/// A19: without rules all goes to the default; the digests of the statistics are what a rule needs.
fn precise_rules_are_written_from_the_statistics(driver: Driver) -> Outcome {
    let two = two(driver)?;
    for id in 1..=20 {
        two.is_writer(&two.proxy.query(&format!(
            "SELECT words FROM conf2.only_here WHERE id = {id}; SELECT @@port"
        ))?)?;
    }
    let digests = "SELECT digest, digest_text, count_star, hostgroup FROM stats_mysql_query_digest WHERE digest_text LIKE 'SELECT words%'";
    let said = two.proxy.admin(digests)?;
    let columns: Vec<&str> = said.trim().split('\t').collect();
    expect(columns.len() == 4, || {
        format!("one digest was wanted:\n{said}")
    })?;
    same(
        &columns[1..].join("\t"),
        "SELECT words FROM conf2.only_here WHERE id = ?\t20\t0",
    )?;
    // The port has a digest of its own, which is what the rule shall catch here.
    let port = two.proxy.admin(
        "SELECT digest FROM stats_mysql_query_digest WHERE digest_text LIKE 'SELECT @@port%'",
    )?;
    two.proxy.admin(&format!(
        "INSERT INTO mysql_query_rules (active, digest, destination_hostgroup, apply) VALUES (1, '{}', 1, 1); LOAD MYSQL QUERY RULES TO RUNTIME;",
        port.trim()
    ))?;
    two.is_reader(&two.proxy.query("SELECT @@port")?)
}

/// A38, A39: the table's text, its key, and that it is asked after the rules unless one of them
/// applies.
fn fast_routing_has_the_known_table_and_key(driver: Driver) -> Outcome {
    let two = two(driver)?;
    let words = |text: &str| {
        text.split(|c: char| c.is_whitespace() || c == '\\')
            .filter(|word| !word.is_empty() && *word != "n")
            .collect::<Vec<_>>()
            .join(" ")
    };
    let said = words(
        &two.proxy
            .admin("SHOW CREATE TABLE mysql_query_rules_fast_routing")?,
    );
    let wanted = words(
        "CREATE TABLE mysql_query_rules_fast_routing ( username VARCHAR NOT NULL, schemaname VARCHAR NOT NULL, flagIN INT NOT NULL DEFAULT 0, \
         destination_hostgroup INT CHECK (destination_hostgroup >= 0) NOT NULL, comment VARCHAR NOT NULL, \
         PRIMARY KEY (username, schemaname, flagIN) )",
    );
    let dense = |text: &str| text.replace(' ', "").replace("\\n", "");
    expect(dense(&said).contains(&dense(&wanted)), || {
        format!("wanted {wanted}\nfound {said}")
    })?;

    two.proxy.admin(
        "INSERT INTO mysql_query_rules_fast_routing (username, schemaname, flagIN, destination_hostgroup, comment) VALUES ('app', 'conf2', 0, 1, ''); \
         LOAD MYSQL QUERY RULES TO RUNTIME;",
    )?;
    two.is_reader(&two.proxy.query("USE conf2; SELECT @@port")?)?;
    two.is_writer(&two.proxy.query("USE conf; SELECT @@port")?)?;
    let twice = two.proxy.admin(
        "INSERT INTO mysql_query_rules_fast_routing (username, schemaname, flagIN, destination_hostgroup, comment) VALUES ('app', 'conf2', 0, 0, '')",
    );
    expect(twice.is_err(), || "the key was taken twice".to_owned())?;
    two.proxy.admin(
        "INSERT INTO mysql_query_rules (active, match_pattern, destination_hostgroup, apply) VALUES (1, '@@port', 0, 1); LOAD MYSQL QUERY RULES TO RUNTIME;",
    )?;
    two.is_writer(&two.proxy.query("USE conf2; SELECT @@port")?)
}

/// A43: read/write split by flags, times the schema: reads of conf2 by flag 2, writes by flag 1.
fn a_flag_out_selects_the_fast_route(driver: Driver) -> Outcome {
    let two = two(driver)?;
    two.proxy.admin(
        "INSERT INTO mysql_query_rules (rule_id, active, match_digest, flagOUT, apply) VALUES (1, 1, '^SELECT.*FOR UPDATE', 1, 0), (2, 1, '^SELECT', 2, 0); \
         INSERT INTO mysql_query_rules_fast_routing (username, schemaname, flagIN, destination_hostgroup, comment) \
         VALUES ('app', 'conf2', 1, 0, 'writes'), ('app', 'conf2', 2, 1, 'reads'); LOAD MYSQL QUERY RULES TO RUNTIME;",
    )?;
    two.is_reader(&two.proxy.query("USE conf2; SELECT @@port")?)?;
    two.is_writer(&two.proxy.query("USE conf2; SELECT @@port FOR UPDATE")?)?;
    two.is_writer(&two.proxy.query("USE conf; SELECT @@port")?)
}

/// A57: locking reads and writes to the default, other reads to the readers; a transaction stays.
fn two_rules_split_reads_from_writes(driver: Driver) -> Outcome {
    let two = two(driver)?;
    two.proxy.admin(
        "INSERT INTO mysql_query_rules (rule_id, active, match_pattern, destination_hostgroup, apply) VALUES (1, 1, '^SELECT.*FOR UPDATE$', 0, 1), (2, 1, '^SELECT.*', 1, 1); \
         LOAD MYSQL QUERY RULES TO RUNTIME;",
    )?;
    two.is_reader(&two.proxy.query("SELECT @@port")?)?;
    two.is_writer(&two.proxy.query("SELECT @@port FOR UPDATE")?)?;
    two.is_writer(&two.proxy.query("BEGIN; SELECT @@port")?)?;
    two.is_reader(&two.proxy.query("BEGIN; SELECT 1; COMMIT; SELECT @@port")?)?;
    two.proxy
        .query("INSERT INTO conf.scratch VALUES (1, 'on the writer')")?;
    same(
        &two.writer
            .root("SELECT COUNT(*) FROM conf.scratch")?
            .replace("COUNT(*)", ""),
        "1",
    )?;
    same(
        &two.reader
            .root("SELECT COUNT(*) FROM conf.scratch")?
            .replace("COUNT(*)", ""),
        "0",
    )?;
    // What was decided of one holds for others that differ in values only, unless an expression sees the
    // difference: a dot is no newline.
    two.proxy.admin(
        "INSERT INTO mysql_query_rules (rule_id, active, match_pattern, destination_hostgroup, apply) VALUES (0, 1, '^SELECT.*ORDER BY id$', 0, 1); \
         LOAD MYSQL QUERY RULES TO RUNTIME;",
    )?;
    let on_the_writer = |value: &str| {
        let sql = "SELECT words FROM conf.scratch WHERE id = 1 AND words <> '{}' ORDER BY id";
        let said = two.proxy.query(&sql.replace("{}", value))?;
        Ok::<_, String>(said.contains("on the writer"))
    };
    for value in ["a\nb", "c\nd", "e\nf", "a", "b", "c", "d", "a\nb", "e"] {
        let wanted = !value.contains('\n');
        expect(on_the_writer(value)? == wanted, || {
            format!("{value:?} went elsewhere")
        })?;
    }
    Ok(())
}

/// A20: `next_query_flagIN` leads the SELECT after a certain INSERT to the same server, and only
/// that one.
fn the_statement_after_an_insert_goes_where_it_went(driver: Driver) -> Outcome {
    let two = two(driver)?;
    two.proxy.admin(
        "INSERT INTO mysql_query_rules (rule_id, active, flagIN, match_digest, destination_hostgroup, next_query_flagIN, apply) VALUES \
         (1, 1, 0, '^INSERT INTO conf.scratch', 0, 5, 1), (2, 1, 5, '^SELECT', 0, 0, 1), (3, 1, 0, '^SELECT', 1, NULL, 1); \
         LOAD MYSQL QUERY RULES TO RUNTIME;",
    )?;
    let ask = "SELECT @@port;";
    let said = two
        .proxy
        .query(&format!("{ask} INSERT INTO conf.scratch VALUES (20, 'x'); {ask} {ask} UPDATE conf.scratch SET id = 21; {ask}"))?;
    let (writer, reader) = (two.writer.port, two.reader.port);
    same(&said, &format!("{reader}\n{writer}\n{reader}\n{reader}"))?;
    // Another session knows nothing of it.
    two.proxy
        .query("INSERT INTO conf.scratch VALUES (20, 'x')")?;
    two.is_reader(&two.proxy.query(ask)?)
}

/// A20 for clients that prepare what they execute once. What is refused leaves no flag, and no
/// session stays with a flag that no rule sets any more.
fn flags_of_prepared_statements(driver: Driver) -> Outcome {
    let two = two(driver)?;
    let load = |rules: &str| {
        let rules = format!(
            "DELETE FROM mysql_query_rules; \
             INSERT INTO mysql_query_rules (rule_id, active, flagIN, match_digest, destination_hostgroup, next_query_flagIN, error_msg, OK_msg, apply) \
             VALUES {rules}; LOAD MYSQL QUERY RULES TO RUNTIME"
        );
        two.proxy.admin(&rules).map(drop)
    };
    let reads =
        "(2, 1, 5, '^SELECT', 0, 0, NULL, NULL, 1), (3, 1, 0, '^SELECT', 1, NULL, NULL, NULL, 1)";
    let with_insert = format!("(1, 1, 0, '^INSERT', 1, 5, NULL, NULL, 1), {reads}");
    load(&with_insert)?;
    let ask = "SELECT CONCAT('port ', @@port)";
    let on = |seen: &str, server: &Server| {
        expect(seen.contains(&format!("port {}", server.port)), || {
            format!("not on {}: {seen}", server.port)
        })
    };
    let mut client = Raw::log_in(two.proxy.port, 0)?;
    // As Go does it: prepare, execute, close. The INSERT goes by its rule to hostgroup 1, and is
    // the one that leaves the flag.
    let once = |client: &mut Raw, sql: &str| -> Result<String, String> {
        client.prepare(sql)?;
        client.execute(client.statements.len() - 1, 0, b"")
    };
    once(&mut client, "INSERT INTO conf.scratch VALUES (2020, 'x')")?;
    on(&once(&mut client, ask)?, &two.writer)?;
    on(&once(&mut client, ask)?, &two.reader)?;
    let count = "SELECT COUNT(*) AS n FROM conf.scratch WHERE id = 2020";
    same(&two.reader.root(count)?.replace('n', ""), "1")
        .and(same(&two.writer.root(count)?.replace('n', ""), "0"))?;
    // In SQL, too.
    client.query("PREPARE i FROM 'INSERT INTO conf.scratch VALUES (2021, ''x'')'")?;
    on(&client.query(ask)?, &two.reader)?;
    client.query("EXECUTE i")?;
    client.query(&format!("PREPARE s FROM '{}'", ask.replace('\'', "''")))?;
    on(&client.query("EXECUTE s")?, &two.writer)?;
    on(&client.query("EXECUTE s")?, &two.reader)?;

    // What was refused, or answered by a rule, was not done.
    load(&format!(
        "(1, 1, 0, '^DELETE', NULL, 5, 'no', NULL, 1), (4, 1, 0, '^UPDATE', NULL, 5, NULL, 'yes', 1), {reads}"
    ))?;
    for sql in ["DELETE FROM conf.scratch", "UPDATE conf.scratch SET id = 1"] {
        client.query(sql)?;
        on(&client.query(ask)?, &two.reader).map_err(|words| format!("behind {sql}: {words}"))?;
    }

    // A LOAD keeps the flag while a rule sets it, and no longer.
    load(&with_insert)?;
    client.query("INSERT INTO conf.scratch VALUES (2022, 'x')")?;
    load(&with_insert)?;
    on(&client.query(ask)?, &two.writer)?;
    client.query("INSERT INTO conf.scratch VALUES (2022, 'x')")?;
    load("(3, 1, 0, '^SELECT', 1, NULL, NULL, NULL, 1)")?;
    on(&client.query(ask)?, &two.reader)
}

/// A39, A43, and the split and the firewall: a prepared statement runs in the schema it was
/// prepared in, and is decided by that one, wherever its session is now.
fn prepared_in_a_schema(driver: Driver) -> Outcome {
    let two = two(driver)?;
    two.proxy.admin(
        "INSERT INTO mysql_query_rules_fast_routing (username, schemaname, flagIN, destination_hostgroup, comment) VALUES ('app', 'conf2', 0, 1, ''); \
         LOAD MYSQL QUERY RULES TO RUNTIME",
    )?;
    let on = |seen: &str, server: &Server| {
        expect(seen.contains(&format!("port {}", server.port)), || {
            format!("not on {}: {seen}", server.port)
        })
    };
    let ask = "SELECT CONCAT('port ', @@port)";
    let by_name = format!("FROM '{}'", ask.replace('\'', "''"));
    let mut client = Raw::log_in(two.proxy.port, 0)?;
    client.query("USE conf2")?;
    client.prepare(ask)?;
    client.query(&format!("PREPARE there {by_name}"))?;
    client.query("USE conf")?;
    client.prepare(ask)?;
    client.query(&format!("PREPARE here {by_name}"))?;
    on(&client.execute(0, 0, b"")?, &two.reader)?;
    on(&client.query("EXECUTE there")?, &two.reader)?;
    client.query("USE conf2")?;
    on(&client.execute(1, 0, b"")?, &two.writer)?;
    on(&client.query("EXECUTE here")?, &two.writer)?;
    // A text means the schema of now.
    on(&client.query(ask)?, &two.reader)?;
    on(
        &client.query("EXECUTE IMMEDIATE 'SELECT CONCAT(''port '', @@port)'")?,
        &two.reader,
    )?;
    // And so it is counted, so that the firewall may learn of it.
    let counted = "SELECT schemaname, hostgroup FROM stats_mysql_query_digest WHERE digest_text = 'SELECT CONCAT(?,@@port)' ORDER BY 1, 2";
    same(&two.proxy.admin(counted)?, "conf\t0\nconf2\t1")?;

    // Asked as what it is.
    let digest =
        two.proxy.admin("SELECT DISTINCT digest FROM stats_mysql_query_digest WHERE digest_text = 'SELECT CONCAT(?,@@port)'")?;
    two.proxy.admin(&format!(
        "INSERT INTO mysql_firewall_whitelist_users (active, username, client_address, mode, comment) VALUES (1, 'app', '', 'PROTECTING', ''); \
         INSERT INTO mysql_firewall_whitelist_rules (active, username, client_address, schemaname, flagIN, digest, comment) \
         VALUES (1, 'app', '', 'conf2', 0, '{}', ''); LOAD MYSQL FIREWALL TO RUNTIME; \
         SET mysql-firewall_whitelist_enabled = 1; LOAD MYSQL VARIABLES TO RUNTIME",
        digest.trim()
    ))?;
    let init_db = |client: &mut Raw, name: &str| {
        client.ask(&[b"\x02", name.as_bytes()].concat(), Expect::Simple)
    };
    for schema in ["conf", "conf2"] {
        init_db(&mut client, schema)?;
        on(&client.execute(0, 0, b"")?, &two.reader)
            .map_err(|words| format!("in {schema}: {words}"))?;
        let refused = client.execute(1, 0, b"")?;
        expect(refused.contains("42000"), || {
            format!("in {schema}, prepared in conf: {refused}")
        })?;
    }
    let told = "SELECT DISTINCT schemaname, action FROM stats_mysql_firewall";
    same(&two.proxy.admin(told)?, "conf\tblocked")?;
    two.proxy.admin(
        "SET mysql-firewall_whitelist_enabled = 0; LOAD MYSQL VARIABLES TO RUNTIME; SELECT 1",
    )?;

    // Each server has its own schema only.
    two.writer.root("DROP DATABASE conf2")?;
    two.reader
        .root("CREATE TABLE conf2.of_this_shard (a INT); DROP DATABASE conf")?;
    let mut other = Raw::log_in(two.proxy.port, 0)?;
    other.query("USE conf2")?;
    for text in [
        ask,
        "SELECT CONCAT('rows ', COUNT(*)) FROM of_this_shard",
        "SELECT DATABASE()",
    ] {
        let seen = other.prepare(text)?;
        expect(!seen.contains("#42000"), || format!("{text}: {seen}"))?;
    }
    other.query(&format!("PREPARE there {by_name}"))?;
    other.query("USE conf")?;
    for _ in 0..2 {
        on(&other.execute(0, 0, b"")?, &two.reader)?;
        let seen = other.execute(1, 0, b"")?;
        expect(seen.contains("rows 0"), || seen)?;
        on(&other.query("EXECUTE there")?, &two.reader)?;
        // The schema that it asks for is not there.
        let refused = other.execute(2, 0, b"")?;
        expect(refused.contains("Unknown database"), || refused)?;
        on(&other.query(ask)?, &two.writer)?;
    }
    // A transaction that begins so can be ended.
    let in_conf = other.prepare("SELECT CONCAT('rows ', COUNT(*)) FROM scratch")?;
    expect(!in_conf.contains("#42"), || in_conf)?;
    other.query("USE conf2")?;
    other.query("SET autocommit = 0")?;
    for end in ["COMMIT", "ROLLBACK"] {
        let seen = other.execute(3, 0, b"")?;
        expect(seen.contains("rows "), || seen)?;
        let ended = other.query(end)?;
        expect(!ended.contains("#42000"), || format!("{end}: {ended}"))?;
    }
    // So can a lock be released.
    for step in [
        "SET autocommit = 1",
        "USE conf",
        "SELECT GET_LOCK('shard', 0)",
        "USE conf2",
    ] {
        other.query(step)?;
    }
    let released = other.query("SELECT RELEASE_LOCK('shard')")?;
    expect(!released.contains("Unknown database"), || released)?;
    same(
        two.writer
            .root("SELECT IS_FREE_LOCK('shard')")?
            .lines()
            .last()
            .unwrap_or_default(),
        "1",
    )?;
    two.writer.root("CREATE DATABASE conf2")?;
    two.reader.root("CREATE DATABASE conf")?;

    // A function that only reads has one of the same name in another schema, which nobody has said
    // so of.
    for server in [&two.writer, &two.reader] {
        for schema in ["conf", "conf2"] {
            server.root(&format!(
                "CREATE FUNCTION {schema}.here() RETURNS TEXT NO SQL RETURN CONCAT('port ', @@port)"
            ))?;
        }
    }
    two.proxy.admin(
        "DELETE FROM mysql_query_rules_fast_routing; LOAD MYSQL QUERY RULES TO RUNTIME; \
         INSERT INTO mysql_hostgroup_attributes (hostgroup_id, hostgroup_settings) VALUES (0, '{\"read_hostgroup\":1, \"read_only_routines\":[\"conf.here\"]}'); \
         LOAD MYSQL SERVERS TO RUNTIME",
    )?;
    let mut client = Raw::log_in(two.proxy.port, 0)?;
    client.query("USE conf")?;
    client.prepare("SELECT here()")?;
    client.query("USE conf2")?;
    client.prepare("SELECT here()")?;
    on(&client.execute(0, 0, b"")?, &two.reader)?;
    client.query("USE conf")?;
    on(&client.execute(1, 0, b"")?, &two.writer)
}

fn prepared_statements_are_split(driver: Driver) -> Outcome {
    split_prepared(&two(driver)?)
}

/// Splits statements that MySQL says differently from MariaDB, and prepared ones.
fn mysql_is_split(driver: Driver) -> Outcome {
    if let Err(why) = Vendor::MySql.programs() {
        eprintln!("SKIPPED: the split in front of MySQL: {why}");
        return Ok(());
    }
    let two = two_of(Vendor::MySql, driver)?;
    split_prepared(&two)?;
    for reads in [
        "SELECT @@port",
        "TABLE conf.scratch; SELECT @@port",
        "SELECT @@port FROM dual /*+ x */",
        "VALUES ROW(@@port)",
        "START TRANSACTION READ ONLY; SELECT @@port",
    ] {
        two.is_reader(&two.proxy.query(reads)?)
            .map_err(|why| format!("{reads}: {why}"))?;
    }
    for stays in [
        "SELECT @@port FOR SHARE",
        "SELECT @@port FOR UPDATE SKIP LOCKED",
        "SELECT @@port /*!80000 FOR UPDATE */",
        "SELECT @@port + 0 * @@super_read_only",
        "SELECT @@port FROM (SELECT GTID_SUBSET('', @@gtid_executed)) d",
        "BEGIN; SELECT @@port",
        "SET autocommit = 0; SELECT @@port",
    ] {
        two.is_writer(&two.proxy.query(stays)?)
            .map_err(|why| format!("{stays}: {why}"))?;
    }
    Ok(())
}

fn split_prepared(two: &Two) -> Outcome {
    two.proxy.admin(
        "INSERT INTO mysql_hostgroup_attributes (hostgroup_id, hostgroup_settings) VALUES (0, '{\"read_hostgroup\":1}'); LOAD MYSQL SERVERS TO RUNTIME; \
         INSERT INTO mysql_query_rules (rule_id, active, match_pattern, replace_pattern) VALUES (1, 1, 'becomes.*', 'locked'' FOR UPDATE'); \
         LOAD MYSQL QUERY RULES TO RUNTIME",
    )?;
    let _ = Client::MariaDbCli.run(
        app(two.writer.port),
        &conformance::cache::root().join("conformance/scenarios/warm-up.txt"),
    );
    let mut client = Raw::log_in(two.proxy.port, 0)?;
    for (sql, server) in [
        ("SELECT CONCAT('on ', @@port), ?", &two.reader),
        ("SELECT CONCAT('on ', @@port), ? FOR UPDATE", &two.writer),
        // What counts is what was prepared.
        (
            "SELECT CONCAT('on ', @@port), ?, 'becomes something else'",
            &two.writer,
        ),
    ] {
        client.prepare(sql)?;
        let nth = client.statements.len() - 1;
        let on = |seen: String, server: &Server| {
            expect(seen.contains(&format!("on {}", server.port)), || {
                format!("{sql} is not on {}: {seen}", server.port)
            })
        };
        on(client.execute(nth, 0, b"\0\x01\xfd\0\x01x")?, server)?;
        on(client.execute(nth, 0, b"\0\0\x01y")?, server)?;
        client.query("BEGIN")?;
        on(client.execute(nth, 0, b"\0\0\x01z")?, &two.writer)?;
        client.query("COMMIT")?;
        on(client.execute(nth, 0, b"\x01\0")?, server)?;
    }
    Ok(())
}

/// A57 without rules: the hostgroup of the writer says where its reads go, and a user may say
/// otherwise.
fn one_switch_splits_reads_from_writes(driver: Driver) -> Outcome {
    let two = two(driver)?;
    let both = [&two.writer, &two.reader];
    for server in both {
        server.root(
            "CREATE FUNCTION conf.here() RETURNS INT NO SQL RETURN @@port; CREATE PROCEDURE conf.say() SELECT @@port; \
             CREATE SEQUENCE conf.ticks; GRANT EXECUTE ON conf.* TO app; GRANT INSERT ON conf.ticks TO app;",
        )?;
    }
    let switch = |settings: &str| {
        two.proxy.admin(&format!(
            "DELETE FROM mysql_hostgroup_attributes; INSERT INTO mysql_hostgroup_attributes (hostgroup_id, hostgroup_settings) VALUES (0, '{settings}'); \
             LOAD MYSQL SERVERS TO RUNTIME;"
        ))
    };
    switch(r#"{"read_hostgroup":1}"#)?;
    for reads in [
        "SELECT @@port",
        "select /* app */ @@port from dual",
        "WITH a (p) AS (SELECT @@port) SELECT * FROM a",
        "(SELECT @@port) UNION (SELECT @@port)",
        "VALUES (@@port)",
        "START TRANSACTION READ ONLY; SELECT @@port",
        "BEGIN; SELECT 1; COMMIT; SELECT @@port",
        "SET @a = 1; SELECT 1; SET NAMES utf8mb4; SELECT 1\\G",
    ] {
        let said = two.proxy.query(reads)?;
        if reads.contains("@@port") {
            two.is_reader(&said)
                .map_err(|why| format!("{reads}: {why}"))?;
        }
    }
    for stays in [
        "SELECT @@port FOR UPDATE",
        "SELECT @@port LOCK IN SHARE MODE",
        "SELECT @@port /*! FOR UPDATE */",
        "SELECT @@port FROM dual /*M! FOR UPDATE */",
        "SELECT conf.here()",
        "USE conf; SELECT here()",
        "CALL conf.say()",
        "SELECT @@port FROM (SELECT NEXTVAL(conf.ticks)) d",
        "SELECT GET_LOCK('a', 1); SELECT @@port FROM (SELECT IS_USED_LOCK('a')) d",
        "SELECT @@port + 0 * @@read_only",
        "BEGIN; SELECT @@port",
        "START TRANSACTION; SELECT @@port",
        "SET autocommit = 0; SELECT @@port",
        "SET @a = 5; SELECT @@port FROM (SELECT @a) d",
        "CREATE TEMPORARY TABLE conf.mine (a INT); SELECT @@port FROM (SELECT COUNT(*) FROM conf.mine) d",
    ] {
        two.is_writer(&two.proxy.query(stays)?)
            .map_err(|why| format!("{stays}: {why}"))?;
    }
    let told = two.proxy.admin("EXPLAIN ROUTE 'SELECT 1 FOR UPDATE'")?;
    expect(
        told.contains("to the writer: it locks what it reads"),
        || told.clone(),
    )?;

    switch(r#"{"read_hostgroup":1,"read_only_routines":["conf.here","say"]}"#)?;
    two.is_reader(&two.proxy.query("SELECT conf.here()")?)?;
    two.is_reader(&two.proxy.query("USE conf; SELECT here()")?)?;
    two.is_reader(&two.proxy.query("CALL conf.say()")?)?;
    switch(r#"{"read_hostgroup":1,"read_only_routines":["conf.*"]}"#)?;
    two.is_reader(&two.proxy.query("SELECT conf.here()")?)?;
    two.is_writer(&two.proxy.query("USE conf; SELECT here()")?)?;
    switch(r#"{"read_hostgroup":1,"read_only_routines":["he*", "other.*"]}"#)?;
    two.is_reader(&two.proxy.query("SELECT conf.here()")?)?;
    two.is_writer(&two.proxy.query("CALL conf.say()")?)?;

    switch(r#"{"read_hostgroup":1,"read_after_write_ms":3600000}"#)?;
    two.is_reader(&two.proxy.query("SET NAMES utf8mb4; SELECT @@port")?)?;
    two.is_writer(&two.proxy.query("DELETE FROM conf.scratch; SELECT @@port")?)?;

    two.proxy.admin("UPDATE mysql_users SET attributes='{\"read_hostgroup\":null}'; LOAD MYSQL USERS TO RUNTIME;")?;
    two.is_writer(&two.proxy.query("SELECT @@port")?)?;
    two.proxy.admin("UPDATE mysql_users SET attributes='{\"read_hostgroup\":1}'; LOAD MYSQL USERS TO RUNTIME; DELETE FROM mysql_hostgroup_attributes; LOAD MYSQL SERVERS TO RUNTIME;")?;
    two.is_reader(&two.proxy.query("SELECT @@port")?)?;

    // Without a reader the writer reads.
    two.proxy.admin("UPDATE mysql_servers SET status='OFFLINE_SOFT' WHERE hostgroup_id=1; LOAD MYSQL SERVERS TO RUNTIME;")?;
    two.is_writer(&two.proxy.query("SELECT @@port")?)?;
    let refused = two.proxy.admin(
        "UPDATE mysql_users SET attributes='{\"read_hostgroup\":0}'; LOAD MYSQL USERS TO RUNTIME;",
    );
    expect(
        refused.is_err_and(|words| words.contains("nothing would be split")),
        || "a split to itself was taken".to_owned(),
    )
}

/// A14 by structure: neither blanks nor case nor comments keep a statement from its template, and
/// its values arrive.
fn a_template_rewrites_what_has_its_structure(driver: Driver) -> Outcome {
    let (server, proxy) = one(driver)?;
    proxy.admin(
        "INSERT INTO mysql_query_rewrite (rewrite_id, active, pattern, replacement) VALUES \
         (1, 1, 'SELECT ? AS a, ? AS b', 'SELECT CONCAT(''made of '', ?2, '' and '', ?1)'), \
         (2, 1, 'SELECT id FROM conf.numbers WHERE id < ?', 'SELECT id * 2 AS twice FROM conf.numbers WHERE id < ? ORDER BY id'); LOAD MYSQL QUERY RULES TO RUNTIME;",
    )?;
    for asked in [
        "SELECT 'it''s' AS a, -5 AS b",
        "select/* x */'it\\'s'as `a`,\n-5 as b -- y\n;",
    ] {
        same(&proxy.query(asked)?, "made of -5 and it's")?;
    }
    same(&proxy.query("SELECT 1 AS a, 2 AS c")?, "1\t2")?;
    let told = proxy.admin("EXPLAIN ROUTE 'SELECT 1 AS a, 2 AS b'")?;
    expect(
        told.contains("template 1: SELECT CONCAT('made of '"),
        || told.clone(),
    )?;
    same(
        &proxy.admin("SELECT rewrite_id FROM runtime_mysql_query_rewrite")?,
        "1\n2",
    )?;

    // Prepared: as the replacement on the server itself, also where its parameters are others.
    let (mut direct, mut through) = (Raw::log_in(server.port, 0)?, Raw::log_in(proxy.port, 0)?);
    let params = [&b"\0\x01\x08\0"[..], &4_u64.to_le_bytes()].concat();
    direct.prepare("SELECT id * 2 AS twice FROM conf.numbers WHERE id < ? ORDER BY id")?;
    through.prepare("select id from conf.numbers where id<?")?;
    same(
        &through.execute(0, 0, &params)?,
        &direct.execute(0, 0, &params)?,
    )?;
    through.prepare("SELECT ? AS a, ? AS b")?;
    let made = through.execute(1, 0, b"\0\x01\xfd\0\xfd\0\x05first\x06second")?;
    expect(made.contains("made of second and first"), || made.clone())?;
    let made = through.execute(1, 0, b"\0\0\x01a\x01b")?;
    expect(made.contains("made of b and a"), || made.clone())?;
    // Who has no schema is in mysql-default_schema, as for rules.
    proxy.admin(
        "UPDATE mysql_query_rewrite SET schemaname = 'conf2' WHERE rewrite_id = 1; LOAD MYSQL QUERY RULES TO RUNTIME; \
         SET mysql-default_schema = 'conf2'; LOAD MYSQL VARIABLES TO RUNTIME",
    )?;
    same(&proxy.query("SELECT 5 AS a, 6 AS b")?, "made of 6 and 5")?;
    let refused = proxy.admin("UPDATE mysql_query_rewrite SET replacement = 'SELECT ?3'; LOAD MYSQL QUERY RULES TO RUNTIME;");
    expect(
        refused.is_err_and(|words| words.contains("pattern has 2 placeholders")),
        || "a template without its value was taken".to_owned(),
    )?;
    let refused =
        proxy.admin("UPDATE mysql_query_rewrite SET replacement = 'SELECT FROM WHERE'; LOAD MYSQL QUERY RULES TO RUNTIME;");
    expect(
        refused.is_err_and(|words| words.contains("replacement lacks a value before 'FROM WHERE'")),
        || "what no server can parse was taken".to_owned(),
    )
}

/// Meanings of a template, and of what a client says, depend on the session's mode and character
/// set.
fn a_template_keeps_to_what_its_session_means(driver: Driver) -> Outcome {
    let (server, proxy) = one(driver)?;
    server.root("CREATE TABLE conf.meant (id INT PRIMARY KEY, a VARCHAR(20) CHARACTER SET utf8mb4, x VARCHAR(20)); INSERT INTO conf.meant VALUES (1, '', 'copied')")?;
    proxy.admin(
        "INSERT INTO mysql_query_rewrite (rewrite_id, active, pattern, replacement) VALUES \
         (1, 1, 'UPDATE conf.meant SET a = \"x\" WHERE id = ?', 'UPDATE conf.meant SET a = ''X'' WHERE id = ?'), \
         (2, 1, 'DELETE FROM conf.meant WHERE id = ?', 'UPDATE conf.meant SET a = ''gel\u{f6}scht'' WHERE id = ?'); LOAD MYSQL QUERY RULES TO RUNTIME;",
    )?;
    let a = || {
        server
            .root("SELECT a FROM conf.meant")
            .map(|said| said.replace("a\n", "").trim().to_owned())
    };
    for (mode, wanted) in [("", "X"), ("ANSI_QUOTES", "copied")] {
        proxy.query(&format!(
            "SET sql_mode = '{mode}'; UPDATE conf.meant SET a = \"x\" WHERE id = 1"
        ))?;
        same(&a()?, wanted)?;
    }
    for names in ["utf8mb4", "'utf8mb4'", "utf8mb4 COLLATE utf8mb4_bin"] {
        server.root("UPDATE conf.meant SET a = ''")?;
        proxy.query(&format!(
            "SET NAMES {names}; DELETE FROM conf.meant WHERE id = 1"
        ))?;
        same(&a()?, "gel\u{f6}scht").map_err(|why| format!("{names}: {why}"))?;
    }
    proxy.query("SET NAMES latin1; DELETE FROM conf.meant WHERE id = 1")?;
    same(&a()?, "")
}

/// A14, A15, A16: a function that the server does not have is replaced everywhere by one that it
/// has, whatever its case, and the month keeps its zero. The server is a MariaDB that has
/// ClickHouse's two functions. See docs/features/rewriting.md for what a ClickHouse says.
fn a_function_of_another_server_is_replaced_everywhere(driver: Driver) -> Outcome {
    let (server, proxy) = one(driver)?;
    server.root(
        "CREATE TABLE conf.tablename (id INT, created DATETIME); \
         INSERT INTO conf.tablename VALUES (1, '2018-03-05'), (2, '2018-03-07'), (3, '2018-11-01'); \
         CREATE FUNCTION conf.toDate(t DATETIME) RETURNS DATE DETERMINISTIC RETURN DATE(t); \
         CREATE FUNCTION conf.toString(d DATE) RETURNS CHAR(10) DETERMINISTIC RETURN CONCAT(d, '')",
    )?;
    let asked = "USE conf; SELECT COUNT(`id`), FROM_UNIXTIME(`created`, '%Y-%m') AS `date` FROM `tablename` GROUP BY from_unixtime(`created`, '%Y-%m') ORDER BY 2";
    let months = |said: String| same(&said, "2\t2018-03\n1\t2018-11");
    expect(months(proxy.query(asked)?).is_err(), || {
        "without the rule the same is answered".to_owned()
    })?;
    proxy.admin(
        "INSERT INTO mysql_query_rules (active,match_pattern,replace_pattern,re_modifiers) VALUES \
         (1,\"FROM_UNIXTIME\\(`created`, '%Y-%m'\\)\", 'substring(toString(toDate(created)),1,7)',\"CASELESS,GLOBAL\"); LOAD MYSQL QUERY RULES TO RUNTIME",
    )?;
    months(proxy.query(asked)?)?;
    let sent = proxy.admin(
        "SELECT digest_text FROM stats_mysql_query_digest WHERE digest_text LIKE '%COUNT(%' AND digest_text LIKE '%substring%'",
    )?;
    same(
        &sent,
        "SELECT COUNT(`id`),substring(toString(toDate(created)),?,?) AS `date` FROM `tablename` GROUP BY substring(toString(toDate(created)),?,?) ORDER BY ?",
    )
}

/// Every core has a row, no turn is longer than the proxy is old, and who asks for it begins anew.
fn cores_count_their_own_turns(driver: Driver) -> Outcome {
    let (_server, proxy) = one(driver)?;
    for _ in 0..20 {
        proxy.query("SELECT 1")?;
    }
    let sane = "core, turns > 0, busy_us >= longest_turn_us, longest_turn_cpu_us <= longest_turn_us, \
         longest_turn_us < 1000000 * (1 + (SELECT variable_value FROM stats_mysql_global WHERE variable_name = 'ProxySQL_Uptime'))";
    same(
        &proxy.admin(&format!(
            "SELECT {sane} FROM stats_mysql_cores ORDER BY core"
        ))?,
        "0\t1\t1\t1\t1\n1\t1\t1\t1\t1",
    )?;
    let turns = |table: &str| number(&proxy.admin(&format!("SELECT SUM(turns) FROM {table}"))?);
    let before = turns("stats_mysql_cores_reset")?;
    let after = turns("stats_mysql_cores")?;
    expect(after < before, || {
        format!("{after} turns after {before} were counted anew")
    })
}

/// A14: an expression rewrites what is prepared, and what has become of a statement is what counts.
fn prepared_statements_are_rewritten_by_expressions(driver: Driver) -> Outcome {
    let (_server, proxy) = one(driver)?;
    proxy.admin(
        "INSERT INTO mysql_query_rules (rule_id, active, match_pattern, replace_pattern) VALUES \
         (1, 1, '^SELECT ''old''', 'SELECT ''new'''), (2, 1, 'fewer\\(.*\\)', 'fewer'), (3, 1, '^SELECT ''a read''.*', 'SET @made = CONNECTION_ID() > 0'); \
         LOAD MYSQL QUERY RULES TO RUNTIME",
    )?;
    let mut client = Raw::log_in(proxy.port, 0)?;
    client.prepare("SELECT 'old', ?")?;
    let seen = client.execute(0, 0, b"\0\x01\xfd\0\x04five")?;
    expect(seen.contains("\\x03new\\x04five"), || seen.clone())?;
    let refused = client.prepare("SELECT 'fewer(', ?, ?, ')'")?;
    expect(
        refused.contains("(rule_id 2), the statement has 0 parameters instead of 2"),
        || refused.clone(),
    )?;
    same(
        &number(&proxy.admin(
            "SELECT COUNT(*) FROM stats_mysql_query_digest WHERE digest_text = 'SELECT ?,?'",
        )?)?
        .to_string(),
        "1",
    )?;
    // The connection is kept as that of any SET that only the server can say the outcome of.
    for executed in [false, true] {
        let mut client = Raw::log_in(proxy.port, 0)?;
        if executed {
            client.prepare("SELECT 'a read'")?;
            client.execute(0, 0, b"")?;
        } else {
            client.query("SELECT 'a read'")?;
        }
        for _ in 0..3 {
            let mut other = Raw::log_in(proxy.port, 0)?;
            other.query("SELECT 'by another client'")?;
            let seen = client.query("SELECT CONCAT('made ', @made)")?;
            expect(seen.contains("made 1"), || seen.clone())?;
        }
    }
    // What is prepared stays what it is.
    proxy.admin("UPDATE mysql_query_rules SET replace_pattern = 'SELECT 1, 2, 3 --'; LOAD MYSQL QUERY RULES TO RUNTIME")?;
    let seen = client.execute(0, 0, b"\0\0\x03six")?;
    expect(seen.contains("\\x03new\\x03six"), || seen.clone())
}

/// A102: fixed live, with no restart. Two sets of rules and templates take turns while clients ask:
/// each answer is that of one set, and none is an error.
fn a_load_under_traffic_is_seen_whole(driver: Driver) -> Outcome {
    let two = two(driver)?;
    // A template, two rewritings and a route that belong together, behind rules that only make a
    // LOAD longer.
    let set = |name: &str, hostgroup: u32| {
        format!(
            "DELETE FROM mysql_query_rules; DELETE FROM mysql_query_rewrite; \
             INSERT INTO mysql_query_rewrite (rewrite_id, active, pattern, replacement) VALUES (1, 1, 'SELECT ''which''', 'SELECT ''which'', ''{name}'', @@port'); \
             INSERT INTO mysql_query_rules (rule_id, active, match_pattern) \
             WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300) SELECT i, 1, 'FROM {name}_' || i || ' WHERE id = [0-9]+' FROM n; \
             INSERT INTO mysql_query_rules (rule_id, active, match_pattern, replace_pattern) VALUES (2001, 1, '''{name}''', '''{name}'', ''{name}'''); \
             INSERT INTO mysql_query_rules (rule_id, active, match_pattern, destination_hostgroup) VALUES (2002, 1, '''{name}'', ''{name}''', {hostgroup}); \
             LOAD MYSQL QUERY RULES TO RUNTIME"
        )
    };
    let sets = [set("old", 0), set("new", 1)];
    two.proxy.admin(&sets[0])?;
    let ended = AtomicBool::new(false);
    let (proxy, ports) = (&two.proxy, [two.writer.port, two.reader.port]);
    let counts = std::thread::scope(|scope| {
        let client = || -> Result<[u64; 2], String> {
            let mut client = Raw::log_in(proxy.port, 0)?;
            let mut seen = [0; 2];
            while !ended.load(Ordering::Relaxed) {
                let said = client.query("SELECT 'which'")?;
                let whole = ["old", "new"].iter().zip(ports).position(|(name, port)| {
                    let port = port.to_string();
                    said.contains(&format!(
                        "\\x05which\\x03{name}\\x03{name}{}{port}",
                        (port.len() as u8).escape_ascii()
                    ))
                });
                let Some(which) = whole else {
                    return Err(format!("a mixture, or an error: {said}"));
                };
                seen[which] += 1;
            }
            Ok(seen)
        };
        let clients: Vec<_> = (0..4).map(|_| scope.spawn(client)).collect();
        let loaded = (0..20).try_for_each(|n| proxy.admin(&sets[(n + 1) % 2]).map(drop));
        ended.store(true, Ordering::Relaxed);
        let counts: Vec<_> = clients
            .into_iter()
            .map(|client| {
                client
                    .join()
                    .unwrap_or_else(|_| Err("a client panicked".into()))
            })
            .collect();
        loaded.map(|()| counts)
    })?;
    for count in counts {
        let seen = count?;
        expect(seen.iter().all(|count| *count > 0), || {
            format!("one of the sets was never seen: {seen:?}")
        })?;
    }
    Ok(())
}

/// A58: kinds of statements have counters.
fn statements_are_counted_by_their_kind(driver: Driver) -> Outcome {
    let (_server, proxy) = one(driver)?;
    proxy.query("USE conf; SELECT 1; SELECT 2; INSERT INTO scratch VALUES (1, 'x'); UPDATE scratch SET words = 'y'; DELETE FROM scratch; BEGIN; COMMIT")?;
    let said = proxy.admin(
        "SELECT Command, Total_cnt FROM stats_mysql_commands_counters WHERE Command IN ('SELECT','INSERT','UPDATE','DELETE','BEGIN','COMMIT') ORDER BY Command",
    )?;
    let counted = |kind: &str| {
        said.lines()
            .find_map(|line| line.strip_prefix(kind)?.trim().parse::<u64>().ok())
            .unwrap_or_default()
    };
    // The command line client may ask for its schema or version first.
    expect(counted("SELECT") >= 2, || said.clone())?;
    same(
        &["BEGIN", "COMMIT", "DELETE", "INSERT", "UPDATE"]
            .map(|kind| format!("{kind} {}", counted(kind)))
            .join("\n"),
        "BEGIN 1\nCOMMIT 1\nDELETE 1\nINSERT 1\nUPDATE 1",
    )
}

/// A59: a fast-forward user's statements see no rules, on the port where another's do.
fn one_port_serves_split_and_fast_forward_users(driver: Driver) -> Outcome {
    let two = two(driver)?;
    two.proxy.admin(
        "INSERT INTO mysql_query_rules (active, match_pattern, destination_hostgroup, apply) VALUES (1, '^SELECT', 1, 1); LOAD MYSQL QUERY RULES TO RUNTIME; \
         UPDATE mysql_users SET fast_forward=1 WHERE username='other'; LOAD MYSQL USERS TO RUNTIME;",
    )?;
    two.is_reader(&two.proxy.query("SELECT @@port")?)?;
    two.is_writer(&command_line(
        two.proxy.port,
        "other",
        "geheim",
        &[],
        "SELECT @@port",
    )?)
}

/// A60: a rule for a client's address and one for the proxy's port.
fn rules_match_the_port_and_the_address_of_the_client(driver: Driver) -> Outcome {
    let two = two(driver)?;
    two.proxy.admin(&format!(
        "INSERT INTO mysql_query_rules (rule_id, active, client_addr, match_pattern, destination_hostgroup, apply) VALUES (1, 1, '127.0.0.1', 'by address', 1, 1), (2, 1, '10.9.8.7', 'by address', 0, 1); \
         INSERT INTO mysql_query_rules (rule_id, active, proxy_port, match_pattern, destination_hostgroup, apply) VALUES (3, 1, {}, 'by port', 1, 1), (4, 1, 1, 'other port', 1, 1); \
         LOAD MYSQL QUERY RULES TO RUNTIME;",
        two.proxy.port
    ))?;
    two.is_reader(
        &two.proxy
            .query("SELECT @@port, 'by address'")?
            .replace("\tby address", ""),
    )?;
    two.is_reader(
        &two.proxy
            .query("SELECT @@port, 'by port'")?
            .replace("\tby port", ""),
    )?;
    two.is_writer(
        &two.proxy
            .query("SELECT @@port, 'other port'")?
            .replace("\tother port", ""),
    )
}
