//! What the protocol has beside statements: query attributes and connection attributes, and what
//! Millrace adds to them.
#![forbid(unsafe_code)]

use conformance::clients::{Client, app};
use conformance::proxy::{Driver, Proxy, Wish};
use conformance::raw::Raw;
use conformance::servers::{Server, Vendor};
use conformance::trials::{self, expect, same};
use wire::caps;
use wire::response::Expect;

type Outcome = Result<(), String>;

fn main() {
    trials::run(&[
        (
            "each_statement_carries_the_sessions_number_where_that_is_asked_for",
            session_ids,
        ),
        (
            "an_answer_that_may_depend_on_attributes_is_kept_for_the_same_ones_only",
            cached_by_attributes,
        ),
        ("copies_for_a_mirror_have_the_attributes_too", mirrored),
        (
            "a_server_is_told_what_the_client_said_of_itself",
            connection_attributes,
        ),
        ("many_rows_of_parameters_are_executed_at_once", bulk),
        ("a_server_without_bulk_execute_says_so", no_bulk),
        (
            "the_processlist_tells_what_clients_said_of_themselves",
            processlist,
        ),
    ])
}

/// A server of this vendor that knows attributes, if it can, and a proxy before it; `None` where
/// the vendor is not here.
fn stand(
    driver: Driver,
    vendor: Vendor,
    wish: impl FnOnce(Wish) -> Wish,
) -> Result<Option<(Server, Proxy)>, String> {
    if let Err(why) = vendor.programs() {
        eprintln!("SKIPPED: extensions of the protocol before {vendor}: {why}");
        return Ok(None);
    }
    let server = Server::start_with(vendor, &["--performance-schema=ON"])?;
    let _ = Client::MariaDbCli.run(
        app(server.port),
        &conformance::cache::root().join("conformance/scenarios/warm-up.txt"),
    );
    server.root("GRANT SELECT ON performance_schema.* TO app@'%'")?;
    let proxy = Proxy::start(driver, &wish(Wish::in_front_of(&server)))?;
    Ok(Some((server, proxy)))
}

/// The first value of each row, as the server sent it: what follows its length.
fn values(answer: &str) -> Vec<String> {
    let rows = answer.lines().skip_while(|line| !line.contains("\\xfe"));
    rows.skip(1)
        .filter(|line| !line.contains("\\xfe\\x00\\x00"))
        .map(|line| line.trim().split_once(' ').unwrap_or_default().1.to_owned())
        .collect()
}

const OWN_ID: &str = "SELECT mysql_query_attribute_string('millrace_session_id')";

fn session_ids(driver: Driver) -> Outcome {
    let Some((_server, proxy)) = stand(driver, Vendor::MySql, |wish| wish)? else {
        return Ok(());
    };
    let mut with = Raw::log_in(proxy.port, caps::QUERY_ATTRIBUTES | caps::MULTI_STATEMENTS)?;
    let mut without = Raw::log_in(proxy.port, 0)?;
    same(&values(&with.query(OWN_ID)?).concat(), "\\xfb")?;
    proxy.admin("SET mysql-add_session_id_attribute='true'; LOAD MYSQL VARIABLES TO RUNTIME")?;
    for client in [&mut with, &mut without] {
        let wanted = client.id.to_string();
        let wanted = format!("\\x{:02x}{wanted}", wanted.len())
            .replace("\\x09", "\\t")
            .replace("\\x0a", "\\n");
        for _ in 0..3 {
            same(&values(&client.query(OWN_ID)?).concat(), &wanted)?;
        }
        client.prepare(OWN_ID)?;
        let executed = client.execute(0, 0, b"")?;
        expect(executed.contains(&wanted), || {
            format!("no {wanted} in\n{executed}")
        })?;
        client.prepare("SELECT mysql_query_attribute_string('millrace_session_id'), ?")?;
        let named: &[u8] = if client.has(caps::QUERY_ATTRIBUTES) {
            b"\x01\0\x01\xfd\0\0\x02ab"
        } else {
            b"\0\x01\xfd\0\x02ab"
        };
        let executed = client.execute(1, 0, named)?;
        expect(executed.contains(&format!("{wanted}\\x02ab")), || {
            format!("no {wanted} in\n{executed}")
        })?;
    }
    // Who sends one of that name is not believed.
    let wanted = format!("{}", with.id);
    let forged = with.query_with(&[("millrace_session_id", "forged")], OWN_ID)?;
    expect(
        forged.contains(&wanted) && !forged.contains("forged"),
        || forged.clone(),
    )?;
    let both = with.query_with(
        &[("a", "mine")],
        &format!("{OWN_ID}; SELECT mysql_query_attribute_string('a')"),
    )?;
    expect(both.contains(&wanted) && both.contains("mine"), || {
        both.clone()
    })
}

fn cached_by_attributes(driver: Driver) -> Outcome {
    let rules =
        "{ rule_id = 1, active = 1, match_digest = \"^SELECT\", cache_ttl = 600000, apply = 1 }"
            .to_owned();
    let Some((server, proxy)) = stand(driver, Vendor::MySql, |wish| Wish { rules, ..wish })? else {
        return Ok(());
    };
    server.root(
        "CREATE VIEW conf.attributed AS SELECT mysql_query_attribute_string('tenant') AS tenant",
    )?;
    let mut client = Raw::log_in(proxy.port, caps::QUERY_ATTRIBUTES)?;
    let read = "SELECT * FROM conf.attributed";
    for _ in 0..2 {
        for tenant in ["ann", "bob"] {
            let seen = client.query_with(&[("tenant", tenant)], read)?;
            expect(seen.contains(tenant), || format!("not {tenant}'s:\n{seen}"))?;
        }
        same(&values(&client.query(read)?).concat(), "\\xfb")?;
    }
    same(&hits(&proxy)?, "3")?;
    // Those that only trace are no part of it.
    for trace in ["00-1-1-01", "00-1-2-01"] {
        client.query_with(
            &[("traceparent", trace)],
            "SELECT COUNT(*) FROM conf.numbers",
        )?;
        let read = client.query_with(
            &[("traceparent", trace)],
            "SELECT mysql_query_attribute_string('traceparent')",
        )?;
        expect(read.contains(trace), || format!("not {trace}:\n{read}"))?;
    }
    same(&hits(&proxy)?, "4")
}

fn hits(proxy: &Proxy) -> Result<String, String> {
    proxy.admin("SELECT Variable_Value FROM stats.stats_mysql_global WHERE Variable_Name = 'Query_Cache_count_GET_OK'")
}

fn mirrored(driver: Driver) -> Outcome {
    let rules =
        "{ rule_id = 1, active = 1, match_digest = \"^INSERT\", mirror_hostgroup = 0, apply = 1 }"
            .to_owned();
    let Some((server, proxy)) = stand(driver, Vendor::MySql, |wish| Wish { rules, ..wish })? else {
        return Ok(());
    };
    server.root("CREATE TABLE conf.told (words VARCHAR(50))")?;
    let mut client = Raw::log_in(proxy.port, caps::QUERY_ATTRIBUTES)?;
    let insert = "INSERT INTO conf.told VALUES (mysql_query_attribute_string('who'))";
    client.query_with(&[("who", "text")], insert)?;
    client.prepare(insert)?;
    client.execute_with(0, &[("who", "prepared")])?;
    let told = "SELECT CONCAT(words, ' ', COUNT(*)) FROM conf.told GROUP BY words ORDER BY words DESC LIMIT 1";
    trials::until("text 2", || server.root(told))?;
    let told = told.replace("DESC", "ASC");
    trials::until("prepared 2", || server.root(&told))
}

/// Query for what a connection has said of itself, in order.
const SAID: &str = "SELECT CONCAT(attr_name, '=', IFNULL(attr_value, 'NULL')) FROM performance_schema.session_connect_attrs \
                    WHERE processlist_id = CONNECTION_ID() ORDER BY ordinal_position";

fn connection_attributes(driver: Driver) -> Outcome {
    for vendor in [Vendor::MariaDb, Vendor::MySql] {
        let Some((server, proxy)) = stand(driver, vendor, |wish| wish)? else {
            continue;
        };
        let said = [
            ("_client_name", "raw"),
            ("program_name", "shop \u{fc}"),
            ("empty", ""),
            ("millrace_session_id", "forged"),
        ];
        let direct = Raw::log_in_saying(server.port, 0, &said[..3])?.query(SAID)?;
        let direct = values(&direct);
        expect(direct.len() == 3, || format!("{vendor} keeps {direct:?}"))?;
        let mut client = Raw::log_in_saying(proxy.port, 0, &said)?;
        let through = values(&client.query(SAID)?);
        let own = format!("millrace_session_id={}", client.id);
        expect(
            through.first().is_some_and(|first| first.ends_with(&own)),
            || format!("{vendor}: no {own} in {through:?}"),
        )?;
        same(&through[1..].join("\n"), &direct.join("\n"))?;
        drop(client);
        // A client that says nothing, on a connection of its own.
        let mut silent = Raw::log_in(proxy.port, 0)?;
        silent.query("/* create_new_connection=1 */ BEGIN")?;
        let through = values(&silent.query(SAID)?).join("\n");
        let own = format!("millrace_session_id={}", silent.id);
        expect(
            through.contains(&own) && through.contains("program_name=millrace"),
            || format!("{vendor}: {through}"),
        )?;
        // More than a server keeps, and as much as the protocol allows: nobody is turned away.
        let long = "x".repeat(65_000);
        Raw::log_in_saying(
            proxy.port,
            0,
            &[("long", &long), ("more", &"y".repeat(500))],
        )?
        .query("/* create_new_connection=1 */ SELECT 1")?;
        let refused = Raw::log_in_saying(proxy.port, 0, &[("long", &long), ("more", &long)]);
        expect(refused.is_err(), || "128 KiB are let in".to_owned())?;
    }
    Ok(())
}

fn processlist(driver: Driver) -> Outcome {
    let Some((_server, proxy)) = stand(driver, Vendor::MariaDb, |wish| wish)? else {
        return Ok(());
    };
    let client = Raw::log_in_saying(proxy.port, 0, &[("program_name", "a \"shop\"")])?;
    let info = format!(
        "SELECT extended_info FROM stats.stats_mysql_processlist WHERE SessionID = {}",
        client.id
    );
    same(&proxy.admin(&info)?, "")?;
    proxy.admin("SET mysql-show_processlist_extended=1; LOAD MYSQL VARIABLES TO RUNTIME")?;
    let program = info.replace(
        "extended_info",
        "json_extract(extended_info, '$.client.connection_attributes.program_name')",
    );
    same(&proxy.admin(&program)?, "a \"shop\"")?;
    proxy.admin("SET mysql-show_processlist_extended=2; LOAD MYSQL VARIABLES TO RUNTIME")?;
    expect(proxy.admin(&info)?.contains("\\n"), || {
        "it is not indented".to_owned()
    })
}

/// COM_STMT_BULK_EXECUTE of the nth statement; `rows` begins with the types if `flags` says so.
fn execute_bulk(raw: &mut Raw, nth: usize, flags: u16, rows: &[u8]) -> Result<String, String> {
    let head = raw.statement(0xfa, nth);
    raw.ask(
        &[&head[..], &flags.to_le_bytes(), rows].concat(),
        Expect::Execute,
    )
}

/// Types INT and VARCHAR.
const TYPES: &[u8] = b"\x03\0\xfd\0";

fn bulk_script(port: u16) -> Result<String, String> {
    let mut raw = Raw::log_in(port, caps::MARIADB_BULK | caps::DEPRECATE_EOF)?;
    expect(raw.has(caps::MARIADB_BULK), || {
        "bulk execute was not offered".to_owned()
    })?;
    let mut seen = raw.query(
        "CREATE TABLE conf.bulked (id INT AUTO_INCREMENT PRIMARY KEY, a INT DEFAULT 7 UNIQUE, b VARCHAR(20) DEFAULT 'none')",
    )?;
    seen += &raw.prepare("INSERT INTO conf.bulked (a, b) VALUES (?, ?)")?;
    seen += &raw.prepare("UPDATE conf.bulked SET b = ? WHERE a = ?")?;
    seen += &raw.prepare("SELECT ?, ?")?;
    // Values, a NULL, a DEFAULT.
    seen += &execute_bulk(
        &mut raw,
        0,
        128,
        &[
            TYPES,
            b"\0\x01\0\0\0\0\x03one",
            b"\x01\0\x04null",
            b"\x02\x02",
        ]
        .concat(),
    )?;
    seen += &raw.query("SELECT LAST_INSERT_ID() > 0, ROW_COUNT()")?;
    seen += &raw.query("SELECT * FROM conf.bulked ORDER BY id")?;
    // Types that were bound before need not come again, not even after a BEGIN elsewhere.
    seen += &raw.query("BEGIN")?;
    seen += &execute_bulk(
        &mut raw,
        0,
        0,
        b"\0\x08\0\0\0\0\x05eight\0\x09\0\0\0\0\x04nine",
    )?;
    seen += &raw.query("ROLLBACK")?;
    seen += &execute_bulk(
        &mut raw,
        0,
        0,
        b"\0\x08\0\0\0\0\x05eight\0\x09\0\0\0\0\x04nine",
    )?;
    // The second of three is there already.
    seen += &execute_bulk(
        &mut raw,
        0,
        0,
        b"\0\x0a\0\0\0\0\x03ten\0\x08\0\0\0\0\x05again\0\x0b\0\0\0\0\x06eleven",
    )?;
    seen += &raw.query("SHOW WARNINGS")?;
    seen += &raw.query("SELECT a, b FROM conf.bulked ORDER BY id")?;
    seen += &execute_bulk(
        &mut raw,
        1,
        128,
        b"\xfd\0\x03\0\0\x03two\0\x01\0\0\0\0\x03six\0\x63\0\0\0\x03\0\x08\0\0\0",
    )?;
    seen += &raw.query("SELECT a, b FROM conf.bulked ORDER BY id")?;
    // By an ordinary execution, with the types of the bulk.
    seen += &raw.execute(0, 0, b"\0\0\x0c\0\0\0\x06twelve")?;
    seen += &execute_bulk(
        &mut raw,
        2,
        128,
        &[TYPES, b"\0\x01\0\0\0\0\x03one"].concat(),
    )?;
    seen += &execute_bulk(&mut raw, 9, 128, TYPES)?;
    seen += &raw.prepare("DELETE FROM conf.bulked WHERE a = ?")?;
    raw.send(
        0,
        b"\xfa\xff\xff\xff\xff\x80\0\x03\0\0\x08\0\0\0\0\x09\0\0\0",
    )?;
    seen += &raw.answer(Expect::Execute)?;
    seen += &raw.query("SELECT COUNT(*) FROM conf.bulked")?;
    seen += &raw.query("DROP TABLE conf.bulked")?;
    Ok(seen)
}

const OFFER_NO_BULK: &str =
    "SET mysql-enable_bulk_execute='false'; LOAD MYSQL VARIABLES TO RUNTIME";

/// Whether somebody who comes now is offered bulk execute, once the cores have told each other what
/// they know: by both of two who come.
fn offered_bulk(proxy: &Proxy, wanted: bool) -> Outcome {
    trials::until(if wanted { "2" } else { "0" }, || {
        // Who comes goes where the fewest are: to both cores.
        let both = [
            Raw::log_in(proxy.port, caps::MARIADB_BULK)?,
            Raw::log_in(proxy.port, caps::MARIADB_BULK)?,
        ];
        Ok(both
            .iter()
            .filter(|raw| raw.has(caps::MARIADB_BULK))
            .count()
            .to_string())
    })
}

fn bulk(driver: Driver) -> Outcome {
    let Some((server, proxy)) = stand(driver, Vendor::MariaDb, |wish| wish)? else {
        return Ok(());
    };
    // Nobody has met the server yet.
    let mut first = Raw::log_in(proxy.port, caps::MARIADB_BULK)?;
    expect(!first.has(caps::MARIADB_BULK), || {
        "offered although nobody knows the server".to_owned()
    })?;
    first.query("DO 1")?;
    offered_bulk(&proxy, true)?;
    // A row more of a server that is known, in another hostgroup.
    proxy.admin(&format!(
        "INSERT INTO mysql_servers (hostgroup_id, hostname, port) VALUES (5, '127.0.0.1', {}); LOAD MYSQL SERVERS TO RUNTIME",
        server.port
    ))?;
    offered_bulk(&proxy, true)?;
    let direct = bulk_script(server.port)?;
    same(&bulk_script(proxy.port)?, &direct)?;
    same(&bulk_script(proxy.port)?, &direct)?;
    // Each of them is one execution, with the rows of all.
    let counted = proxy
        .admin("SELECT SUM(sum_rows_affected) FROM stats_mysql_query_digest WHERE digest_text LIKE 'INSERT INTO conf.bulked%'")?;
    let rows: u64 = counted.trim().parse().map_err(|_| counted.clone())?;
    expect(rows >= 2 * 7, || format!("{rows} rows"))?;
    // Rules decide where each goes; a statement is prepared there first.
    proxy.admin("INSERT INTO mysql_query_rules (rule_id, active, match_digest, error_msg, apply) VALUES (1, 1, '^UPDATE', 'not now', 1); LOAD MYSQL QUERY RULES TO RUNTIME")?;
    let mut raw = Raw::log_in(proxy.port, caps::MARIADB_BULK)?;
    let told = raw.prepare("UPDATE conf.scratch SET words = ? WHERE id = ?")?;
    expect(told.contains("not now"), || told.clone())?;
    proxy.admin(OFFER_NO_BULK)?;
    offered_bulk(&proxy, false)?;
    // With nothing between: a connection that has not asked for it tells what the server has, too.
    let mut wish = Wish::in_front_of(&server);
    wish.users =
        "{ username = \"app\", password = \"secret\", default_hostgroup = 0, fast_forward = 1 }"
            .to_owned();
    let proxy = Proxy::start(driver, &wish)?;
    Raw::log_in(proxy.port, 0)?.query("DO 1")?;
    offered_bulk(&proxy, true)?;
    same(&bulk_script(proxy.port)?, &direct)
}

fn no_bulk(driver: Driver) -> Outcome {
    let both = |mut wish: Wish| {
        wish.variables = wish
            .variables
            .replace("caching_sha2_password", "mysql_native_password");
        wish
    };
    let Some((mysql, only_mysql)) = stand(driver, Vendor::MySql, |wish| {
        Wish {
        variables: "    default_authentication_plugin = \"mysql_native_password\"\n    server_version = \"10.11.6-MariaDB\"\n"
            .to_owned(),
        ..wish
    }
    })?
    else {
        return Ok(());
    };
    // It says that it is a MariaDB, and its server is none.
    Raw::log_in(only_mysql.port, caps::MARIADB_BULK)?.query("DO 1")?;
    for _ in 0..4 {
        let later = Raw::log_in(only_mysql.port, caps::MARIADB_BULK)?;
        expect(!later.has(caps::MARIADB_BULK), || {
            "offered although the server lacks it".to_owned()
        })?;
    }
    let Some((_mariadb, proxy)) = stand(driver, Vendor::MariaDb, both)? else {
        return Ok(());
    };
    Raw::log_in(proxy.port, 0)?.query("DO 1")?;
    offered_bulk(&proxy, true)?;
    let mut early = Raw::log_in(proxy.port, caps::MARIADB_BULK)?;
    proxy.admin(&format!(
        "INSERT INTO mysql_servers (hostgroup_id, hostname, port) VALUES (7, '127.0.0.1', {}); LOAD MYSQL SERVERS TO RUNTIME",
        mysql.port
    ))?;
    // A server that nobody knows yet, and then one that is known to lack it.
    offered_bulk(&proxy, false)?;
    early.prepare("/* hostgroup=7 */ INSERT INTO conf.scratch VALUES (?, ?)")?;
    let told = execute_bulk(
        &mut early,
        0,
        128,
        &[TYPES, b"\0\x01\0\0\0\0\x03one"].concat(),
    )?;
    expect(
        told.contains("This command is not supported in the prepared statement protocol yet"),
        || told.clone(),
    )?;
    let told = early.execute(0, 0, b"\0\x01\x03\0\xfd\0\x01\0\0\0\x03one")?;
    expect(told.trim_start().starts_with("1 \\x00"), || told.clone())?;
    offered_bulk(&proxy, false)?;
    // One that takes no work has no say.
    proxy.admin("UPDATE mysql_servers SET status = 'OFFLINE_SOFT' WHERE hostgroup_id = 7; LOAD MYSQL SERVERS TO RUNTIME")?;
    offered_bulk(&proxy, true)
}
