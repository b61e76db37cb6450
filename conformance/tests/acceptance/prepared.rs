//! Prepared statements, and the rules that route them.

use conformance::proxy::{Driver, Proxy, Wish};
use conformance::raw::Raw;
use conformance::servers::{Server, Vendor};
use conformance::trials::{expect, same};
use wire::response::Expect;

use super::{OFTEN, Outcome, number, one, two};

pub(super) fn a_temporary_table_of_a_prepared_statement(driver: Driver) -> Outcome {
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
pub(super) fn prepared_statements_on_a_server_are_bounded(driver: Driver) -> Outcome {
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
pub(super) fn prepared_statements_of_clients_are_bounded(driver: Driver) -> Outcome {
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
pub(super) fn a_prepared_statement_follows_the_rules(driver: Driver) -> Outcome {
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

/// A20 for clients that prepare what they execute once. What is refused leaves no flag, and no
/// session stays with a flag that no rule sets any more.
pub(super) fn flags_of_prepared_statements(driver: Driver) -> Outcome {
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
pub(super) fn prepared_in_a_schema(driver: Driver) -> Outcome {
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
