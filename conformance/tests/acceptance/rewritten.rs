//! Statements that are replaced before they are sent.

use conformance::proxy::Driver;
use conformance::raw::Raw;
use conformance::trials::{expect, same};

use super::{Outcome, number, one};

/// A14 by structure: neither blanks nor case nor comments keep a statement from its template, and
/// its values arrive.
pub(super) fn a_template_rewrites_what_has_its_structure(driver: Driver) -> Outcome {
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
pub(super) fn a_template_keeps_to_what_its_session_means(driver: Driver) -> Outcome {
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
pub(super) fn a_function_of_another_server_is_replaced_everywhere(driver: Driver) -> Outcome {
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

/// A14: an expression rewrites what is prepared, and what has become of a statement is what counts.
pub(super) fn prepared_statements_are_rewritten_by_expressions(driver: Driver) -> Outcome {
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
