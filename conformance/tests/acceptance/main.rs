//! The acceptance cases that a DBA could try: scripts pasted into the admin port, and what clients
//! then see.
#![forbid(unsafe_code)]

mod prepared;
mod rewritten;
mod split;
mod tls;

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

use conformance::proxy::{Driver, Proxy, Wish, command_line};
use conformance::raw::Raw;
use conformance::servers::{Server, Vendor};
use conformance::trials::{self, expect, same};
use wire::caps;
use wire::response::Expect;

use prepared::{
    a_prepared_statement_follows_the_rules, a_temporary_table_of_a_prepared_statement,
    flags_of_prepared_statements, prepared_in_a_schema, prepared_statements_of_clients_are_bounded,
    prepared_statements_on_a_server_are_bounded,
};
use rewritten::{
    a_function_of_another_server_is_replaced_everywhere,
    a_template_keeps_to_what_its_session_means, a_template_rewrites_what_has_its_structure,
    prepared_statements_are_rewritten_by_expressions,
};
use split::{
    mysql_is_split, one_switch_splits_reads_from_writes, prepared_statements_are_split,
    two_rules_split_reads_from_writes,
};
use tls::{
    a_server_has_tls_parameters_of_its_own, an_account_that_demands_tls_is_reachable,
    clients_come_over_tls_and_over_a_unix_socket, the_tls_variables_are_listed_set_and_kept,
    tls_towards_servers_applies_at_load,
};

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
