//! Reads apart from writes, by rules and without.

use conformance::clients::{Client, app};
use conformance::proxy::Driver;
use conformance::raw::Raw;
use conformance::servers::{Server, Vendor};
use conformance::trials::{expect, same};

use super::{Outcome, Two, two, two_of};

/// A57: locking reads and writes to the default, other reads to the readers; a transaction stays.
pub(super) fn two_rules_split_reads_from_writes(driver: Driver) -> Outcome {
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

pub(super) fn prepared_statements_are_split(driver: Driver) -> Outcome {
    split_prepared(&two(driver)?)
}

/// Splits statements that MySQL says differently from MariaDB, and prepared ones.
pub(super) fn mysql_is_split(driver: Driver) -> Outcome {
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
pub(super) fn one_switch_splits_reads_from_writes(driver: Driver) -> Outcome {
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
