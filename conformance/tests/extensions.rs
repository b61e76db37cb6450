//! What the protocol has beside statements: query attributes and connection attributes, and what Millrace adds to them.
#![forbid(unsafe_code)]

use conformance::clients::{Client, app};
use conformance::proxy::{Driver, Proxy, Wish};
use conformance::raw::Raw;
use conformance::servers::{Server, Vendor};
use conformance::trials::{self, expect, same};
use wire::caps;

type Outcome = Result<(), String>;

fn main() {
    trials::run(&[
        ("each_statement_carries_the_sessions_number_where_that_is_asked_for", session_ids),
        ("an_answer_that_may_depend_on_attributes_is_kept_for_the_same_ones_only", cached_by_attributes),
        ("copies_for_a_mirror_have_the_attributes_too", mirrored),
        ("a_server_is_told_what_the_client_said_of_itself", connection_attributes),
        ("the_processlist_tells_what_clients_said_of_themselves", processlist),
    ])
}

/// A server of this vendor that knows attributes, if it can, and a proxy before it; `None` where the vendor is not here.
fn stand(driver: Driver, vendor: Vendor, wish: impl FnOnce(Wish) -> Wish) -> Result<Option<(Server, Proxy)>, String> {
    if let Err(why) = vendor.programs() {
        eprintln!("SKIPPED: extensions of the protocol before {vendor}: {why}");
        return Ok(None);
    }
    let server = Server::start_with(vendor, &["--performance-schema=ON"])?;
    let _ = Client::MariaDbCli.run(app(server.port), &conformance::cache::root().join("conformance/scenarios/warm-up.txt"));
    server.root("GRANT SELECT ON performance_schema.* TO app@'%'")?;
    let proxy = Proxy::start(driver, &wish(Wish::in_front_of(&server)))?;
    Ok(Some((server, proxy)))
}

/// The first value of each row, as the server sent it: what follows its length.
fn values(answer: &str) -> Vec<String> {
    let rows = answer.lines().skip_while(|line| !line.contains("\\xfe"));
    rows.skip(1).filter(|line| !line.contains("\\xfe\\x00\\x00")).map(|line| line.trim().split_once(' ').unwrap_or_default().1.to_owned()).collect()
}

const OWN_ID: &str = "SELECT mysql_query_attribute_string('millrace_session_id')";

fn session_ids(driver: Driver) -> Outcome {
    let Some((_server, proxy)) = stand(driver, Vendor::MySql, |wish| wish)? else { return Ok(()) };
    let mut with = Raw::log_in(proxy.port, caps::QUERY_ATTRIBUTES | caps::MULTI_STATEMENTS)?;
    let mut without = Raw::log_in(proxy.port, 0)?;
    same(&values(&with.query(OWN_ID)?).concat(), "\\xfb")?;
    proxy.admin("SET mysql-add_session_id_attribute='true'; LOAD MYSQL VARIABLES TO RUNTIME")?;
    for client in [&mut with, &mut without] {
        let wanted = client.id.to_string();
        let wanted = format!("\\x{:02x}{wanted}", wanted.len()).replace("\\x09", "\\t").replace("\\x0a", "\\n");
        for _ in 0..3 {
            same(&values(&client.query(OWN_ID)?).concat(), &wanted)?;
        }
        client.prepare(OWN_ID)?;
        let executed = client.execute(0, 0, b"")?;
        expect(executed.contains(&wanted), || format!("no {wanted} in\n{executed}"))?;
        client.prepare("SELECT mysql_query_attribute_string('millrace_session_id'), ?")?;
        let named: &[u8] = if client.has(caps::QUERY_ATTRIBUTES) { b"\x01\0\x01\xfd\0\0\x02ab" } else { b"\0\x01\xfd\0\x02ab" };
        let executed = client.execute(1, 0, named)?;
        expect(executed.contains(&format!("{wanted}\\x02ab")), || format!("no {wanted} in\n{executed}"))?;
    }
    // Who sends one of that name is not believed.
    let wanted = format!("{}", with.id);
    let forged = with.query_with(&[("millrace_session_id", "forged")], OWN_ID)?;
    expect(forged.contains(&wanted) && !forged.contains("forged"), || forged.clone())?;
    let both = with.query_with(&[("a", "mine")], &format!("{OWN_ID}; SELECT mysql_query_attribute_string('a')"))?;
    expect(both.contains(&wanted) && both.contains("mine"), || both.clone())
}

fn cached_by_attributes(driver: Driver) -> Outcome {
    let rules = "{ rule_id = 1, active = 1, match_digest = \"^SELECT\", cache_ttl = 600000, apply = 1 }".to_owned();
    let Some((server, proxy)) = stand(driver, Vendor::MySql, |wish| Wish { rules, ..wish })? else { return Ok(()) };
    server.root("CREATE VIEW conf.attributed AS SELECT mysql_query_attribute_string('tenant') AS tenant")?;
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
        client.query_with(&[("traceparent", trace)], "SELECT COUNT(*) FROM conf.numbers")?;
        let read = client.query_with(&[("traceparent", trace)], "SELECT mysql_query_attribute_string('traceparent')")?;
        expect(read.contains(trace), || format!("not {trace}:\n{read}"))?;
    }
    same(&hits(&proxy)?, "4")
}

fn hits(proxy: &Proxy) -> Result<String, String> {
    proxy.admin("SELECT Variable_Value FROM stats.stats_mysql_global WHERE Variable_Name = 'Query_Cache_count_GET_OK'")
}

fn mirrored(driver: Driver) -> Outcome {
    let rules = "{ rule_id = 1, active = 1, match_digest = \"^INSERT\", mirror_hostgroup = 0, apply = 1 }".to_owned();
    let Some((server, proxy)) = stand(driver, Vendor::MySql, |wish| Wish { rules, ..wish })? else { return Ok(()) };
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

/// What a connection has said of itself, in order.
const SAID: &str = "SELECT CONCAT(attr_name, '=', IFNULL(attr_value, 'NULL')) FROM performance_schema.session_connect_attrs \
                    WHERE processlist_id = CONNECTION_ID() ORDER BY ordinal_position";

fn connection_attributes(driver: Driver) -> Outcome {
    for vendor in [Vendor::MariaDb, Vendor::MySql] {
        let Some((server, proxy)) = stand(driver, vendor, |wish| wish)? else { continue };
        let said = [("_client_name", "raw"), ("program_name", "shop \u{fc}"), ("empty", ""), ("millrace_session_id", "forged")];
        let direct = Raw::log_in_saying(server.port, 0, &said[..3])?.query(SAID)?;
        let direct = values(&direct);
        expect(direct.len() == 3, || format!("{vendor} keeps {direct:?}"))?;
        let mut client = Raw::log_in_saying(proxy.port, 0, &said)?;
        let through = values(&client.query(SAID)?);
        let own = format!("millrace_session_id={}", client.id);
        expect(through.first().is_some_and(|first| first.ends_with(&own)), || format!("{vendor}: no {own} in {through:?}"))?;
        same(&through[1..].join("\n"), &direct.join("\n"))?;
        drop(client);
        // A client that says nothing, on a connection of its own.
        let mut silent = Raw::log_in(proxy.port, 0)?;
        silent.query("/* create_new_connection=1 */ BEGIN")?;
        let through = values(&silent.query(SAID)?).join("\n");
        let own = format!("millrace_session_id={}", silent.id);
        expect(through.contains(&own) && through.contains("program_name=millrace"), || format!("{vendor}: {through}"))?;
        // More than a server keeps, and as much as the protocol allows: nobody is turned away.
        let long = "x".repeat(65_000);
        Raw::log_in_saying(proxy.port, 0, &[("long", &long), ("more", &"y".repeat(500))])?.query("/* create_new_connection=1 */ SELECT 1")?;
        let refused = Raw::log_in_saying(proxy.port, 0, &[("long", &long), ("more", &long)]);
        expect(refused.is_err(), || "128 KiB are let in".to_owned())?;
    }
    Ok(())
}

fn processlist(driver: Driver) -> Outcome {
    let Some((_server, proxy)) = stand(driver, Vendor::MariaDb, |wish| wish)? else { return Ok(()) };
    let client = Raw::log_in_saying(proxy.port, 0, &[("program_name", "a \"shop\"")])?;
    let info = format!("SELECT extended_info FROM stats.stats_mysql_processlist WHERE SessionID = {}", client.id);
    same(&proxy.admin(&info)?, "")?;
    proxy.admin("SET mysql-show_processlist_extended=1; LOAD MYSQL VARIABLES TO RUNTIME")?;
    let program = info.replace("extended_info", "json_extract(extended_info, '$.client.connection_attributes.program_name')");
    same(&proxy.admin(&program)?, "a \"shop\"")?;
    proxy.admin("SET mysql-show_processlist_extended=2; LOAD MYSQL VARIABLES TO RUNTIME")?;
    expect(proxy.admin(&info)?.contains("\\n"), || "it is not indented".to_owned())
}
