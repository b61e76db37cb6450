//! The firewall before a real server: what may run, what is told, what is refused, and how it is
//! learned; as text and prepared.
#![forbid(unsafe_code)]

mod texts;

use conformance::by_hand;
use conformance::proxy::{Driver, Proxy, Wish, command_line};
use conformance::raw::Raw;
use conformance::servers::{Server, Vendor};
use conformance::trials::{self, expect, same, until};

use texts::{
    computed_arguments, quotes, servers_own_modes, texts_inside, what_a_digest_does_not_show,
};

type Outcome = Result<(), String>;

fn main() {
    trials::run(&[
        (
            "a_firewall_is_learned_explained_and_protects",
            a_firewall_is_learned_explained_and_protects,
        ),
        (
            "prepared_statements_are_looked_at_when_prepared_and_when_executed",
            prepared_statements_are_looked_at,
        ),
        (
            "what_is_prepared_behind_a_comment_is_counted_as_the_firewall_asks_for_it",
            counted_with_comments,
        ),
        (
            "options_of_the_statistics_neither_allow_nor_forbid",
            options_of_the_statistics,
        ),
        (
            "users_and_addresses_have_modes_of_their_own",
            users_and_addresses_have_modes_of_their_own,
        ),
        (
            "an_injection_is_refused_and_the_connection_lives_on",
            an_injection_is_refused_and_the_connection_lives_on,
        ),
        (
            "mysql_is_protected_as_mariadb_is",
            mysql_is_protected_as_mariadb_is,
        ),
        (
            "what_a_digest_does_not_show_is_named_by_no_rule",
            what_a_digest_does_not_show,
        ),
        (
            "a_server_that_reads_backslashes_otherwise_is_protected_as_well",
            servers_own_modes,
        ),
        (
            "double_quotes_are_strings_unless_the_server_says_otherwise",
            quotes,
        ),
        (
            "a_text_inside_of_a_statement_is_looked_at_as_if_it_came_by_itself",
            texts_inside,
        ),
        (
            "an_argument_of_execute_that_is_computed_is_looked_at",
            computed_arguments,
        ),
        (
            "a_fast_forward_user_is_not_looked_at",
            a_fast_forward_user_is_not_looked_at,
        ),
        (
            "a_log_is_no_way_past_the_firewall",
            a_log_is_no_way_past_the_firewall,
        ),
        (
            "a_firewall_that_cannot_be_honoured_is_refused_and_a_saved_one_comes_back",
            a_saved_firewall_comes_back,
        ),
    ])
}

fn one(driver: Driver) -> Result<(Server, Proxy), String> {
    one_of(Vendor::MariaDb, driver)
}

fn one_of(vendor: Vendor, driver: Driver) -> Result<(Server, Proxy), String> {
    let server = Server::start(vendor)?;
    let proxy = Proxy::start(driver, &Wish::in_front_of(&server))?;
    Ok((server, proxy))
}

const ON: &str = "SET mysql-firewall_whitelist_enabled = 1; LOAD MYSQL VARIABLES TO RUNTIME;";
const DETECTING: &str = "INSERT INTO mysql_firewall_whitelist_users (active, username, client_address, mode, comment) \
                         VALUES (1, 'app', '', 'DETECTING', ''); LOAD MYSQL FIREWALL TO RUNTIME;";
const PROTECTING: &str = "UPDATE mysql_firewall_whitelist_users SET mode = 'PROTECTING'; LOAD MYSQL FIREWALL TO RUNTIME;";
const BLOCKED: &str = "ERROR 1148 (42000) at line 1: Firewall blocked this query";

fn refused(said: Result<String, String>, words: &str) -> Outcome {
    match said {
        Ok(said) => Err(format!("not refused: {said}")),
        Err(said) => expect(said.contains(words), || {
            format!("refused otherwise: {said}")
        }),
    }
}

fn global(proxy: &Proxy, name: &str) -> Result<String, String> {
    proxy.admin(&format!(
        "SELECT Variable_Value FROM stats_mysql_global WHERE Variable_Name = '{name}'"
    ))
}

fn mysql_is_protected_as_mariadb_is(driver: Driver) -> Outcome {
    learned(one_of(Vendor::MySql, driver)?)?;
    prepared(one_of(Vendor::MySql, driver)?)?;
    injected(one_of(Vendor::MySql, driver)?)
}

/// His statements are bytes on their way: neither a list nor the detector sees them, and no digest
/// is kept from which one could learn.
fn a_fast_forward_user_is_not_looked_at(driver: Driver) -> Outcome {
    let (_server, proxy) = one(driver)?;
    proxy.admin("UPDATE mysql_users SET fast_forward = 1 WHERE username = 'app'; LOAD MYSQL USERS TO RUNTIME")?;
    proxy.admin("SET mysql-automatic_detect_sqli = 1; LOAD MYSQL VARIABLES TO RUNTIME;")?;
    proxy.admin(DETECTING)?;
    proxy.admin(PROTECTING)?;
    proxy.admin(ON)?;
    same(
        &command_line(
            proxy.port,
            "app",
            "secret",
            &["conf"],
            "SELECT 7 FROM numbers WHERE id = 1 OR 1=1 LIMIT 1",
        )?,
        "7",
    )?;
    refused(
        command_line(proxy.port, "other", "geheim", &[], "SELECT 7"),
        BLOCKED,
    )?;
    same(
        &proxy.admin("SELECT COUNT(*) FROM stats_mysql_firewall WHERE username = 'app'")?,
        "0",
    )
}

/// Whether a server lets its log be followed or not, what else a client says is looked at.
/// Registered, it keeps its connection.
fn a_log_is_no_way_past_the_firewall(driver: Driver) -> Outcome {
    for vendor in [Vendor::MariaDb, Vendor::MySql]
        .into_iter()
        .filter(|vendor| vendor.programs().is_ok())
    {
        let server = Server::start_with(vendor, &["--log-bin=binlog", "--server-id=1"])?;
        server.root(by_hand::CREATE_USER)?;
        server.root(
            "REVOKE ALL PRIVILEGES, GRANT OPTION FROM open@'%'; GRANT SELECT ON conf.* TO open@'%'",
        )?;
        let mut wish = Wish::in_front_of(&server);
        wish.add_open_user();
        let proxy = Proxy::start(driver, &wish)?;
        proxy.admin(ON)?;
        let dump = |kind: u8| {
            // From the first byte of whatever there is, as replica 7; by GTID from none.
            let mut payload = vec![kind];
            match kind {
                0x12 => payload.extend_from_slice(&[4, 0, 0, 0, 1, 0, 7, 0, 0, 0]),
                _ => payload.extend_from_slice(&[
                    4, 0, 7, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0,
                    0, 0, 0, 0,
                ]),
            }
            payload
        };
        let register = [&[0x15, 7, 0, 0, 0, 0, 0, 0, 0x0c, 0xea][..], &[0; 8]].concat();
        let bytes = |payload: &[u8]| [&(payload.len() as u32).to_le_bytes()[..], payload].concat();
        let blocked = [
            b"\x03SELECT 'past', @@version".to_vec(),
            b"\x16SELECT 'past'".to_vec(),
        ];
        // Refused: both one after the other and all at once.
        let commands = [
            vec![0x15],
            register.clone(),
            dump(0x12),
            dump(0x1e),
            vec![0x12],
            vec![0x13, 0],
        ];
        for command in &commands {
            for at_once in [false, true] {
                let mut client =
                    by_hand::Raw::log_in(proxy.port).map_err(|error| error.to_string())?;
                let mut said = Vec::new();
                let mut hear = |client: &mut by_hand::Raw| -> Outcome {
                    let packet = client.packet().map_err(|error| {
                        format!("{vendor} {command:02x?}: {error} after {said:?}")
                    })?;
                    said.push(String::from_utf8_lossy(&packet).into_owned());
                    Ok(())
                };
                client
                    .bytes(&bytes(command))
                    .map_err(|error| error.to_string())?;
                if !at_once {
                    hear(&mut client)?;
                }
                for query in &blocked {
                    client
                        .bytes(&bytes(query))
                        .map_err(|error| error.to_string())?;
                }
                for _ in 0..blocked.len() + usize::from(at_once) {
                    hear(&mut client)?;
                }
                expect(said.len() == 3 && !said[0].contains("Firewall"), || {
                    format!("{vendor} {command:02x?}: {said:?}")
                })?;
                expect(
                    said[1..]
                        .iter()
                        .all(|said| said.contains("Firewall blocked")),
                    || format!("{vendor} {command:02x?}: {said:?}"),
                )?;
            }
        }
        // Allowed: the server knows it, and what is set is set where its log will come from.
        server.root("GRANT REPLICATION SLAVE ON *.* TO open@'%'")?;
        if vendor == Vendor::MariaDb {
            server.root("GRANT REPLICATION MASTER ADMIN ON *.* TO open@'%'; GRANT REPLICATION SLAVE ADMIN ON *.* TO open@'%'")?;
        }
        proxy
            .admin("UPDATE mysql_servers SET max_connections = 1; LOAD MYSQL SERVERS TO RUNTIME")?;
        let mut client = by_hand::Raw::log_in(proxy.port).map_err(|error| error.to_string())?;
        client
            .command(&register)
            .map_err(|error| error.to_string())?;
        let said = client.packet().map_err(|error| error.to_string())?;
        expect(said.first() == Some(&0), || {
            String::from_utf8_lossy(&said).into_owned()
        })?;
        same(
            &proxy.admin("SELECT hold FROM stats.stats_mysql_session_holds")?,
            "Replica",
        )?;
        let replicas = if vendor == Vendor::MariaDb {
            "SHOW SLAVE HOSTS"
        } else {
            "SHOW REPLICAS"
        };
        expect(server.root(replicas)?.contains("\n7\t"), || {
            format!("{vendor}: {:?}", server.root(replicas))
        })?;
        let said = client
            .ask("SELECT 'past'")
            .map(|_| String::new())
            .unwrap_or_else(|error| error.to_string());
        expect(said.contains("Firewall blocked"), || {
            format!("{vendor}: {said}")
        })?;
        proxy.admin("INSERT INTO mysql_firewall_whitelist_users (active, username, client_address, mode, comment) VALUES (1, 'open', '', 'OFF', ''); LOAD MYSQL FIREWALL TO RUNTIME")?;
        client
            .ask("SET @master_heartbeat_period = 1000000000")
            .map_err(|error| error.to_string())?;
        client
            .ask("SET @source_heartbeat_period = 1000000000, @master_binlog_checksum = 'NONE', @source_binlog_checksum = 'NONE'")
            .map_err(|error| error.to_string())?;
        let served_by = client
            .ask("SELECT 1 FROM conf.numbers LIMIT 1")
            .map_err(|error| error.to_string())?;
        same(&format!("{served_by:?}"), "[[\"1\"]]")?;
        client
            .command(&[&[0x12, 4, 0, 0, 0, 0, 0, 7, 0, 0, 0][..], b"binlog.000001"].concat())
            .map_err(|error| error.to_string())?;
        // Heartbeats come every second, because that was set; they begin with 0, a time of 0, and
        // the kind 27.
        let mut heartbeat = false;
        for _ in 0..1000 {
            let event = client.packet().map_err(|error| error.to_string())?;
            expect(event.first() == Some(&0), || {
                format!("{vendor}: {}", String::from_utf8_lossy(&event))
            })?;
            heartbeat = matches!(event.get(5), Some(&27 | &41));
            if heartbeat {
                break;
            }
        }
        expect(heartbeat, || format!("{vendor}: no heartbeat"))?;
        client
            .query("SELECT 'past'")
            .map_err(|error| error.to_string())?;
        until("Binlog Dump", || {
            proxy.admin("SELECT command FROM stats.stats_mysql_processlist WHERE user = 'open'")
        })?;
        let event = client.packet().map_err(|error| error.to_string())?;
        expect(matches!(event.get(5), Some(&27 | &41)), || {
            format!("{vendor}: {event:02x?}")
        })?;
        // Nobody's connection afterwards, and nobody's replica.
        drop(client);
        until("0", || {
            proxy.admin("SELECT ConnUsed + ConnFree FROM stats.stats_mysql_connection_pool")
        })?;
        until("", || server.root(replicas))?;
    }
    Ok(())
}

/// Does what a DBA does from the first day to the last: OFF, DETECTING, learning, a look at what
/// would be refused, PROTECTING.
fn a_firewall_is_learned_explained_and_protects(driver: Driver) -> Outcome {
    learned(one(driver)?)
}

fn learned((_server, proxy): (Server, Proxy)) -> Outcome {
    // The whole life of an application, in two schemas; its client asks things of its own first.
    let run = |sql: &str| command_line(proxy.port, "app", "secret", &["conf"], sql);
    let application = [
        "SELECT id FROM numbers WHERE id = 7",
        "SELECT COUNT(*) FROM conf2.only_here",
        "SELECT 'x' FROM numbers LIMIT 1",
    ];
    proxy.admin(DETECTING)?;
    // Without the switch nobody is looked at.
    run(application[0])?;
    same(
        &proxy.admin("SELECT COUNT(*) FROM stats_mysql_firewall")?,
        "0",
    )?;
    proxy.admin(ON)?;
    for sql in application {
        run(sql)?;
        run(sql)?;
    }
    let told = proxy.admin(
        "SELECT username, client_address, schemaname, flagIN, action, count_star FROM stats_mysql_firewall \
         WHERE digest_text = 'SELECT id FROM numbers WHERE id = ?'",
    )?;
    same(&told, "app\t127.0.0.1\tconf\t0\tdetected\t2")?;
    expect(
        proxy.says("Firewall detected unknown query with digest 0x"),
        || proxy.log(),
    )?;
    proxy.admin("LEARN MYSQL FIREWALL FROM DETECTED; LOAD MYSQL FIREWALL TO RUNTIME")?;
    proxy.admin("SELECT * FROM stats_mysql_firewall_reset")?;
    run(application[0])?;
    same(
        &proxy.admin("SELECT COUNT(*) FROM stats_mysql_firewall")?,
        "0",
    )?;
    // Nothing that is known would be refused; the one thing that is new would.
    proxy.admin("UPDATE mysql_firewall_whitelist_users SET mode = 'PROTECTING'")?;
    same(
        &proxy.admin(
            "SELECT COUNT(*) FROM stats_mysql_query_digest WHERE digest_text LIKE 'DELETE%'",
        )?,
        "0",
    )?;
    same(&proxy.admin("EXPLAIN ROUTE AGAINST DIGESTS")?, "")?;
    run("DELETE FROM numbers WHERE id = 100000")?;
    let replayed = proxy.admin("EXPLAIN ROUTE AGAINST DIGESTS")?;
    expect(
        replayed.lines().count() == 1 && replayed.contains("DELETE FROM numbers WHERE id = ?"),
        || replayed.clone(),
    )?;
    expect(
        replayed
            .trim_end()
            .ends_with("error 'Firewall blocked this query', by the firewall; firewall: blocked"),
        || replayed.clone(),
    )?;
    proxy.admin(PROTECTING)?;
    for sql in application {
        run(sql)?;
    }
    same(&run("SELECT id FROM numbers WHERE id = 8")?, "8")?;
    refused(run("DELETE FROM numbers WHERE id = 100000"), BLOCKED)?;
    refused(run("SELECT id FROM numbers WHERE id = 8 OR 1 = 1"), BLOCKED)?;
    // The same statement from another schema is another.
    refused(
        command_line(
            proxy.port,
            "app",
            "secret",
            &["conf2"],
            "SELECT id FROM conf.numbers WHERE id = 8",
        ),
        BLOCKED,
    )?;
    refused(
        command_line(
            proxy.port,
            "app",
            "secret",
            &["conf2"],
            "SELECT COUNT(*) FROM conf2.only_here",
        ),
        BLOCKED,
    )?;
    // A refused statement ends nothing, and is not among those to learn from.
    refused(
        run(
            "SELECT id FROM numbers WHERE id = 8; DELETE FROM numbers WHERE id = 9; SELECT 'x' FROM numbers LIMIT 1",
        ),
        "1148",
    )?;
    same(
        &proxy
            .admin("SELECT COUNT(*) FROM stats_mysql_query_digest WHERE digest_text LIKE '%OR%'")?,
        "0",
    )?;
    let blocked = "SELECT SUM(count_star) FROM stats_mysql_firewall WHERE action = 'blocked' AND digest_text LIKE 'DELETE%'";
    same(&proxy.admin(blocked)?, "2")?;
    expect(proxy.says("Firewall blocked query with digest 0x"), || {
        proxy.log()
    })?;
    expect(!proxy.log().contains("numbers"), || proxy.log())?;
    proxy.admin(
        "SET mysql-firewall_whitelist_errormsg = 'Ask the DBA'; LOAD MYSQL VARIABLES TO RUNTIME",
    )?;
    refused(
        run("SELECT 1, 2, 3 FROM dual"),
        "ERROR 1148 (42000) at line 1: Ask the DBA",
    )?;
    proxy.admin("SET mysql-firewall_whitelist_enabled = 0; LOAD MYSQL VARIABLES TO RUNTIME")?;
    same(&run("SELECT 1, 2, 3 FROM dual")?, "1\t2\t3")
}

/// In both protocols, under a configuration that changes while the session lives.
fn prepared_statements_are_looked_at(driver: Driver) -> Outcome {
    prepared(one(driver)?)
}

/// Servers prepare the statement without the comment, and digests have comments.
fn counted_with_comments(driver: Driver) -> Outcome {
    let (_server, proxy) = one(driver)?;
    proxy.admin(&format!(
        "SET mysql-query_digests_keep_comment = 'true'; {DETECTING}{ON}"
    ))?;
    let mut client = Raw::log_in(proxy.port, 0)?;
    client.prepare("/* app */ SELECT 'fine'")?;
    client.execute(0, 0, b"")?;
    proxy.admin(&format!(
        "LEARN MYSQL FIREWALL FROM DIGESTS; LOAD MYSQL FIREWALL TO RUNTIME; {PROTECTING}"
    ))?;
    let seen = client.execute(0, 0, b"")?;
    expect(seen.contains("fine"), || seen.clone())
}

fn prepared((_server, proxy): (Server, Proxy)) -> Outcome {
    let mut client = Raw::log_in(proxy.port, 0)?;
    client.query("SELECT 1")?;
    client.prepare("SELECT 'before', ?")?;
    let params = b"\0\x01\x03\0\x07\0\0\0";
    let blocked = "#42000Firewall blocked this query";
    let holds =
        |seen: &str, words: &str| expect(seen.contains(words), || format!("not '{words}': {seen}"));
    proxy.admin(&format!("{DETECTING}{ON}"))?;
    holds(&client.execute(0, 0, params)?, "before")?;
    let count = |action: &str| {
        proxy.admin(&format!(
            "SELECT SUM(count_star) FROM stats_mysql_firewall WHERE digest_text = 'SELECT ?,?' AND action = '{action}'"
        ))
    };
    same(&count("detected")?, "1")?;
    client.prepare("SELECT ?, 'later'")?;
    same(&count("detected")?, "2")?;
    proxy.admin(PROTECTING)?;
    holds(&client.execute(0, 0, params)?, blocked)?;
    holds(&client.prepare("SELECT ?, 'too late'")?, blocked)?;
    holds(&client.query("SELECT 1")?, blocked)?;
    same(&count("blocked")?, "2")?;
    // One rule is for all of them: a digest has no values, and one that is prepared is the same.
    proxy.admin("LEARN MYSQL FIREWALL FROM DETECTED; LOAD MYSQL FIREWALL TO RUNTIME")?;
    holds(&client.execute(0, 0, params)?, "before")?;
    holds(&client.execute(1, 0, params)?, "later")?;
    holds(&client.query("SELECT 5, 6")?, "5")?;
    holds(&client.query("SELECT 1")?, blocked)?;
    // COM_INIT_DB has no SQL.
    let said = client.ask(b"\x02conf2", wire::response::Expect::Simple)?;
    expect(!said.contains("Firewall"), || said.clone())?;
    holds(&client.query("SELECT 5, 6")?, blocked)
}

/// A LOAD of any option of the digests leaves allowed what was, as text and prepared, and refused
/// what was. What was counted under it is learned as the firewall has it.
fn options_of_the_statistics(driver: Driver) -> Outcome {
    let (server, proxy) = one(driver)?;
    server.root(
        "CREATE TABLE conf.t_1 (a INT, b INT, c INT); CREATE TABLE conf.t_2 LIKE conf.t_1; CREATE TABLE conf.T_1 LIKE conf.t_1; \
         CREATE TABLE conf.secrets (password VARCHAR(20)); INSERT INTO conf.secrets VALUES ('hunter2')",
    )?;
    let mut client = Raw::log_in(proxy.port, 0)?;
    let long = format!(
        "SELECT a FROM conf.t_1 WHERE {}a = c",
        "a = b OR b = c OR ".repeat(150)
    );
    let allowed = [
        "SELECT a FROM conf.t_1 WHERE b IN (1,2,3,4,5) AND c=NULL",
        &long,
    ];
    let refused = [
        "SELECT a FROM conf.t_2 WHERE b IN (1,2,3,4,5) AND c=NULL",
        "SELECT a FROM conf.T_1 WHERE b IN (1,2,3,4,5) AND c=NULL",
        "SELECT a FROM conf.t_1 WHERE b IN (1,2,3,4,5) AND c=1",
        "SELECT a FROM conf.t_1 WHERE b IN (1,2) AND c=NULL",
        "SELECT a FROM conf.t_1 WHERE b IN (1,2,3,4,5) AND c=NULL UNION SELECT password FROM conf.secrets",
        &format!("{long} UNION SELECT password FROM conf.secrets"),
        "SELECT 1",
    ];
    let blocked = "#42000Firewall blocked this query";
    for sql in allowed {
        client.query(sql)?;
    }
    proxy.admin(&format!("{DETECTING}LEARN MYSQL FIREWALL FROM DIGESTS"))?;
    for sql in allowed.iter().chain(&refused) {
        client.prepare(sql)?;
    }
    proxy.admin(&format!("{PROTECTING}{ON}"))?;
    let mut holds = |when: &str| {
        for (at, sql) in allowed.into_iter().enumerate() {
            for said in [client.query(sql)?, client.execute(at, 0, b"")?] {
                expect(!said.contains("#42"), || {
                    format!("{when}: {sql:.80}: {said:.200}")
                })?;
            }
        }
        for (at, sql) in refused.into_iter().enumerate() {
            for said in [
                client.query(sql)?,
                client.execute(allowed.len() + at, 0, b"")?,
            ] {
                expect(said.contains(blocked), || {
                    format!("{when}: {sql:.80}: {said:.200}")
                })?;
            }
        }
        Ok::<_, String>(())
    };
    holds("as usual")?;
    for (name, value) in [
        ("", ""),
        ("_no_digits", "true"),
        ("_lowercase", "true"),
        ("_replace_null", "true"),
        ("_keep_comment", "true"),
        ("_normalize_digest_text", "true"),
        ("_track_hostname", "true"),
        ("_grouping_limit", "1"),
        ("_groups_grouping_limit", "1"),
        ("_max_digest_length", "16"),
        ("_max_digest_length", "65536"),
        ("_max_query_length", "16"),
    ] {
        let name = format!("mysql-query_digests{name}");
        let value = if value.is_empty() { "false" } else { value };
        let was = proxy.admin(&format!(
            "SELECT variable_value FROM global_variables WHERE variable_name = '{name}'"
        ))?;
        proxy.admin(&format!(
            "SET {name} = '{value}'; LOAD MYSQL VARIABLES TO RUNTIME"
        ))?;
        holds(&format!("{name} = {value}"))?;
        proxy.admin(&format!(
            "SET {name} = '{was}'; LOAD MYSQL VARIABLES TO RUNTIME"
        ))?;
    }
    // What the statistics count as one is learned as what the firewall saw first, and the answer
    // says that there may be more.
    proxy.admin(
        "SET mysql-query_digests_no_digits = 'true'; SET mysql-query_digests_lowercase = 'true'; SET mysql-query_digests_max_digest_length = 16; \
         SET mysql-firewall_whitelist_enabled = 0; LOAD MYSQL VARIABLES TO RUNTIME; DELETE FROM mysql_firewall_whitelist_rules; \
         SELECT COUNT(*) FROM stats_mysql_query_digest_reset",
    )?;
    let one = "INSERT INTO conf.t_1 VALUES (1, 2, 3)";
    command_line(proxy.port, "app", "secret", &["conf"], one)?;
    command_line(
        proxy.port,
        "app",
        "secret",
        &["conf"],
        "INSERT INTO conf.t_2 VALUES (1, 2, 3)",
    )?;
    proxy.admin(&format!(
        "LEARN MYSQL FIREWALL FROM DIGESTS; {PROTECTING}{ON}"
    ))?;
    command_line(proxy.port, "app", "secret", &["conf"], one)?;
    refused_as(&proxy, "INSERT INTO conf.t_2 VALUES (1, 2, 3)")?;
    refused_as(&proxy, "INSERT INTO conf.T_1 VALUES (1, 2, 3)")
}

fn refused_as(proxy: &Proxy, sql: &str) -> Outcome {
    refused(
        command_line(proxy.port, "app", "secret", &["conf"], sql),
        BLOCKED,
    )
}

fn users_and_addresses_have_modes_of_their_own(driver: Driver) -> Outcome {
    let (_server, proxy) = one(driver)?;
    let as_user = |user: &str, password: &str| {
        command_line(proxy.port, user, password, &["conf"], "SELECT 1 FROM dual")
    };
    // Nobody has a row: nobody may do anything.
    let said = proxy.admin(ON)?;
    expect(said.is_empty(), || said.clone())?;
    refused(as_user("app", "secret"), BLOCKED)?;
    refused(as_user("other", "geheim"), BLOCKED)?;
    proxy.admin(
        "INSERT INTO mysql_firewall_whitelist_users (active, username, client_address, mode, comment) \
         VALUES (1, 'app', '', 'PROTECTING', ''), (1, 'app', '127.0.0.1', 'OFF', ''); LOAD MYSQL FIREWALL TO RUNTIME",
    )?;
    same(&as_user("app", "secret")?, "1")?;
    refused(as_user("other", "geheim"), BLOCKED)?;
    // A user without a row may do what rules for the empty address say.
    proxy.admin(
        "LEARN MYSQL FIREWALL FROM DIGESTS FOR other; LEARN MYSQL FIREWALL FROM DIGESTS FOR app",
    )?;
    same(
        &proxy.admin(
            "SELECT COUNT(*) FROM mysql_firewall_whitelist_rules WHERE username = 'other'",
        )?,
        "0",
    )?;
    proxy.admin(
        "INSERT INTO mysql_firewall_whitelist_rules SELECT 1, 'other', '', schemaname, flagIN, digest, '' \
         FROM mysql_firewall_whitelist_rules WHERE username = 'app' AND client_address = ''; LOAD MYSQL FIREWALL TO RUNTIME",
    )?;
    same(&as_user("other", "geheim")?, "1")?;
    proxy.admin("UPDATE mysql_firewall_whitelist_users SET client_address = '10.0.0.1' WHERE mode = 'OFF'; DELETE FROM mysql_firewall_whitelist_rules; LOAD MYSQL FIREWALL TO RUNTIME")?;
    refused(as_user("app", "secret"), BLOCKED)
}

fn an_injection_is_refused_and_the_connection_lives_on(driver: Driver) -> Outcome {
    injected(one(driver)?)
}

fn injected((_server, proxy): (Server, Proxy)) -> Outcome {
    proxy.admin("SET mysql-automatic_detect_sqli = 'true'; LOAD MYSQL VARIABLES TO RUNTIME")?;
    let mut client = Raw::log_in(proxy.port, 0)?;
    let blocked = "#42000Firewall blocked this query";
    let attack = "SELECT id FROM conf.numbers WHERE id = 7 OR 1=1";
    for seen in [client.query(attack)?, client.prepare(attack)?] {
        expect(seen.contains(blocked), || seen.clone())?;
    }
    let seen = client.query("SELECT id FROM conf.numbers WHERE id = 7 OR id = 8")?;
    expect(seen.contains('7'), || seen.clone())?;
    same(&global(&proxy, "automatic_detected_sql_injection")?, "2")?;
    same(
        &proxy.admin("SELECT action, fingerprint, count_star FROM stats_mysql_firewall")?,
        "injection\t1&1o1\t2",
    )?;
    expect(
        proxy.says("SQLinjection detected with fingerprint of '1&1o1' from client app@127.0.0.1"),
        || proxy.log(),
    )?;
    proxy.admin("INSERT INTO mysql_firewall_whitelist_sqli_fingerprints VALUES (1, '1&1o1'); LOAD MYSQL FIREWALL TO RUNTIME")?;
    let seen = client.query(attack)?;
    expect(!seen.contains(blocked), || seen.clone())?;
    same(&global(&proxy, "whitelisted_sqli_fingerprint")?, "1")?;
    // A statement behind another is seen before they are taken apart, and neither is done.
    let mut several = Raw::log_in(proxy.port, wire::caps::MULTI_STATEMENTS)?;
    let seen = several
        .query("INSERT INTO conf.scratch VALUES (1, 'x'); DELETE FROM conf.numbers -- ', 'y')")?;
    expect(seen.contains(blocked) && seen.lines().count() == 1, || {
        seen.clone()
    })?;
    let seen =
        several.query("SELECT COUNT(*) FROM conf.scratch; SELECT COUNT(*) FROM conf.numbers")?;
    expect(
        seen.contains("\\x010\n") && seen.contains("\\x043996\n"),
        || seen.clone(),
    )?;
    // A rule for the digest is the narrower way, and a user who is OFF is left alone.
    proxy.admin(&format!(
        "DELETE FROM mysql_firewall_whitelist_sqli_fingerprints; {DETECTING}{ON}"
    ))?;
    let seen = client.query(attack)?;
    expect(seen.contains(blocked), || seen.clone())?;
    proxy.admin("LEARN MYSQL FIREWALL FROM DIGESTS; LOAD MYSQL FIREWALL TO RUNTIME")?;
    let seen = client.query(attack)?;
    expect(!seen.contains(blocked), || seen.clone())?;
    proxy.admin(
        "UPDATE mysql_firewall_whitelist_users SET mode = 'OFF'; LOAD MYSQL FIREWALL TO RUNTIME",
    )?;
    let seen = client.query("SELECT words FROM conf.scratch WHERE words = '' OR 'a'='a' -- '")?;
    expect(!seen.contains(blocked), || seen.clone())
}

fn a_saved_firewall_comes_back(driver: Driver) -> Outcome {
    let (_server, mut proxy) = one(driver)?;
    let rule = |digest: &str| {
        format!(
            "INSERT INTO mysql_firewall_whitelist_rules (active, username, client_address, schemaname, flagIN, digest, comment) \
             VALUES (1, 'app', '', 'conf', 0, '{digest}', ''); LOAD MYSQL FIREWALL TO RUNTIME"
        )
    };
    refused(
        proxy.admin(&rule("not hex")),
        "digest must be a number such as 0x1D8D2DD2EE6E8B0A; 'not hex' is not",
    )?;
    same(
        &proxy.admin("SELECT COUNT(*) FROM runtime_mysql_firewall_whitelist_rules")?,
        "0",
    )?;
    proxy.admin("DELETE FROM mysql_firewall_whitelist_rules")?;
    refused(
        proxy.admin(
            "INSERT INTO mysql_firewall_whitelist_users VALUES (1, 'app', '', 'LEARNING', '')",
        ),
        "CHECK constraint failed",
    )?;
    proxy.admin(&format!("{DETECTING}{ON}"))?;
    let run = |proxy: &Proxy, sql: &str| command_line(proxy.port, "app", "secret", &["conf"], sql);
    run(&proxy, "SELECT 1 FROM dual")?;
    proxy.admin(&format!(
        "LEARN MYSQL FIREWALL; {PROTECTING} SAVE MYSQL FIREWALL TO DISK; SAVE MYSQL VARIABLES TO DISK; SAVE MYSQL DIGEST TO DISK"
    ))?;
    proxy.restart()?;
    same(&run(&proxy, "SELECT 1 FROM dual")?, "1")?;
    refused(run(&proxy, "SELECT 1, 2 FROM dual"), BLOCKED)?;
    // The history outlives the start, too: rules can be learned from it anew.
    proxy.admin("DELETE FROM mysql_firewall_whitelist_rules; LOAD MYSQL FIREWALL TO RUNTIME")?;
    refused(run(&proxy, "SELECT 1 FROM dual"), BLOCKED)?;
    proxy.admin("LEARN MYSQL FIREWALL FROM HISTORY; LOAD MYSQL FIREWALL TO RUNTIME")?;
    same(&run(&proxy, "SELECT 1 FROM dual")?, "1")
}
