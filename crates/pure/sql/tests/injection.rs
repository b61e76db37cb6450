//! The detector of injections against a table of attacks, a table of harmless statements, and the
//! statements of our own conformance tests.

use sql::{Lexing, injection};

const ATTACKS: &[&str] = &[
    "SELECT * FROM users WHERE name = '' OR '1'='1'",
    "SELECT * FROM users WHERE name = 'x' OR 1=1 -- ' AND password = ''",
    "SELECT * FROM users WHERE name = 'admin' -- ' AND password = 'x'",
    "SELECT * FROM users WHERE name = 'admin'#' AND password = 'x'",
    "SELECT * FROM users WHERE id = 1 OR 1=1",
    "SELECT * FROM users WHERE id = 1 or 2>1",
    "SELECT * FROM users WHERE id = 1 OR 1",
    "SELECT * FROM users WHERE id = 1 OR true",
    "SELECT * FROM users WHERE id = 1 oR/**/1/**/=/**/1",
    "SELECT * FROM users WHERE (id = 1) OR ('a'='a')",
    "SELECT * FROM users WHERE id = 1 || 1=1",
    "SELECT * FROM users WHERE name = 'x' OR 'a' LIKE 'a'",
    "SELECT * FROM users WHERE name = 'x' OR 1 IN (1)",
    "SELECT * FROM users WHERE name = 'x' OR NOT 1=2",
    "SELECT * FROM users WHERE name = 'x' OR 1 BETWEEN 0 AND 2",
    "SELECT * FROM users WHERE name = 'x' AND 'a'='a'",
    "SELECT a FROM t WHERE id = 1 UNION SELECT NULL, NULL, NULL",
    "SELECT a FROM t WHERE id = -1 UNION ALL SELECT 1, 2, 3 -- ",
    "SELECT a FROM t WHERE id = -1 UNION SELECT table_name, 2 FROM information_schema.tables",
    "SELECT a FROM t WHERE id = 'x' UNION SELECT user, password FROM mysql.user -- '",
    "SELECT a FROM t WHERE id = 1 UNION SELECT @@version, 2",
    "SELECT a FROM t WHERE id = 1 UNION/*!50000 SELECT*/ version(), 2",
    "SELECT a FROM t WHERE id = 1 UNION SELECT load_file('/etc/passwd')",
    "SELECT a FROM t WHERE id = 1 UNION SELECT 'x' INTO OUTFILE '/tmp/x'",
    "SELECT a FROM t WHERE id = 1 AND SLEEP(5)",
    "SELECT a FROM t WHERE id = 1 AND IF(1=1, SLEEP(5), 0)",
    "SELECT a FROM t WHERE id = 1 AND (SELECT 1 FROM (SELECT SLEEP(5)) x)",
    "SELECT a FROM t WHERE id = 1 AND BENCHMARK(10000000, MD5(1))",
    "INSERT INTO t VALUES ('x', SLEEP(5)) -- ')",
    "SELECT a FROM t WHERE id = 1 AND extractvalue(1, concat(0x7e, version()))",
    "SELECT a FROM t WHERE id = 1 AND updatexml(1, concat(0x7e, user()), 1)",
    "SELECT a FROM t WHERE id = 1; DROP TABLE users -- ",
    "SELECT a FROM t WHERE name = 'x'; DELETE FROM users; -- '",
    "UPDATE users SET name = 'x' WHERE id = 1 OR 1=1",
    "DELETE FROM users WHERE name = '' OR ''=''",
    "SELECT * FROM users WHERE name = 'admin' /**/-- ' AND password = 'x'",
    "SELECT * FROM users WHERE name = 'admin' -- '' AND password = 'x'",
    "SELECT * FROM users WHERE name = 'x' AND password = '' OR 1 -- '",
    "SELECT * FROM users WHERE name = 'x' AND password = 'y' -- ''",
    "SELECT * FROM users WHERE name = 'x' OR '1'='1' LIMIT 1 -- ' AND password = 'y'",
    "SELECT * FROM users WHERE id = 1 OR 7=7 ORDER BY 1",
    "SELECT * FROM users WHERE id = 1 OR 'x'<>'y'",
    "SELECT * FROM users WHERE id = 1 OR NOT 0",
    "SELECT * FROM users WHERE id = 1 OR (SELECT 1 FROM (SELECT SLEEP(5)) a)",
    "SELECT a FROM t WHERE id = 1 UNION ALL SELECT 1, concat(user, 0x3a, password) FROM `mysql`.user",
    "SELECT a FROM t WHERE id = 1 /*!UNION*/ /*!SELECT*/ 1,2",
    "SELECT a FROM t WHERE id = 1 UNION SELECT 1,schema_name FROM `information_schema`.schemata",
    "INSERT INTO t (a, b) VALUES ('x', (SELECT SLEEP(5)))",
    "UPDATE t SET a = 'x', b = 'y' WHERE c = '' OR 'a'='a' -- '",
    "SELECT a FROM t WHERE b LIKE '%x%' OR 1=1 -- %'",
    "SELECT a FROM t WHERE b = 'x' OR 3 > 2",
    "SELECT a FROM t WHERE b = \"x\" OR \"1\"=\"1\"",
];

const HARMLESS: &[&str] = &[
    "SELECT 1",
    "SELECT * FROM t WHERE 1=1 AND a = 'x'",
    "SELECT * FROM t WHERE 1=0",
    "SELECT * FROM t WHERE a = 1 OR b = 2",
    "SELECT * FROM t WHERE a = 'x' OR a = 'y' OR a IS NULL",
    "SELECT * FROM t WHERE ? = 1 OR a = ?",
    "SELECT * FROM t WHERE a BETWEEN 1 AND 5 AND b = 2",
    "SELECT a FROM t WHERE a > 1 UNION SELECT NULL, b FROM u",
    "SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3",
    "SELECT a FROM t WHERE id = 1 UNION SELECT a FROM archive WHERE id = 1",
    "SELECT SLEEP(1)",
    "SELECT 'a' || 'b' || c FROM t",
    "SELECT a FROM t -- don't ask",
    "SELECT a -- it's the first\nFROM t",
    "SELECT a FROM t /* app='shop', user='42' */",
    "SELECT a FROM t WHERE name = 'O''Brien'",
    "SELECT a FROM t WHERE name = 'or 1=1 -- '",
    "INSERT INTO posts VALUES (1, 'how to '' OR 1=1 -- in SQL')",
    "INSERT INTO t VALUES (1, 'a'), (2, 'b') ON DUPLICATE KEY UPDATE b = VALUES(b)",
    "UPDATE t SET a = a + 1 WHERE id = 5",
    "SELECT table_name FROM information_schema.tables WHERE table_schema = 'x'",
    "SELECT @@version, user(), database()",
    "BEGIN; UPDATE t SET a = 1 WHERE id = 1; DELETE FROM u WHERE id = 1; COMMIT",
    "SELECT a FROM t WHERE b IN (1, 2, 3) OR c IN (4, 5)",
    "SELECT a FROM t WHERE b LIKE '%x%' AND c NOT LIKE 'y'",
    "SELECT IF(a = 1 OR b = 1, 'x', 'y') FROM t",
    "SELECT extractvalue(doc, '/a/b') FROM t",
    "CREATE TABLE t (a INT DEFAULT 0, b VARCHAR(10) NOT NULL) # the table",
    "SELECT a FROM t WHERE d > NOW() - INTERVAL 1 DAY OR e < 5",
    "",
    "SELECT a FROM t WHERE b IN (1) OR 1 = 0",
    "SELECT a FROM t WHERE b = 1 OR FALSE",
    "SELECT a FROM t WHERE b IN (SELECT 1 UNION SELECT 2)",
    "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 10) SELECT i FROM n",
    "WITH a AS (SELECT 1 FROM t WHERE x = 1), b AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM b) SELECT * FROM b",
    "SELECT a, user FROM t WHERE b = 1 UNION SELECT a, user FROM u WHERE version = 2",
    "SELECT a FROM t WHERE b = 1 UNION SELECT @n := @n + 1 FROM u",
    "SELECT a FROM t WHERE b = 1 -- AND c = 'x'",
    "SELECT a FROM t\nWHERE b = 'x' -- the customer's name\nAND c = 2",
    "SELECT a FROM t WHERE b = 'x' -- was \"y\" before",
    "SELECT a FROM t WHERE b = 'x' /* it's here */ AND c = 1",
    "SELECT a FROM t WHERE b = 'x' AND 'y' IN (c, d)",
    "SELECT a FROM t WHERE a = 1 AND b = 'x' OR 5 > c",
    "SELECT a FROM t WHERE b BETWEEN 'a' AND 'b' OR c = 1",
    "INSERT INTO t VALUES (1, 'x'); INSERT INTO t VALUES (2, 'y')",
    "INSERT INTO t (a) VALUES ('-- '' AND 1=1')",
    "SELECT CASE WHEN a = 1 OR b = 2 THEN 'x' ELSE 'y' END FROM t WHERE c = 'z'",
    "SELECT COUNT(*) FROM t WHERE a = 1 AND (b = 'x' OR c IS NOT NULL) AND d IN ('a','b') GROUP BY e HAVING COUNT(*) > 1",
    "SELECT t.a FROM t LEFT JOIN u ON t.id = u.id AND u.kind = 'x' WHERE t.b <> 'y' OR u.c < '2020-01-01'",
    "UPDATE t SET a = IF(b = 1 OR c = 'x', 'y', 'z'), d = NOW() WHERE id = 5 AND version = 3",
    "DELETE FROM t WHERE a = 'x' AND b < '2020-01-01' LIMIT 1000",
    "SELECT a FROM t WHERE MATCH (b) AGAINST ('+x -y' IN BOOLEAN MODE) OR b LIKE 'x%'",
    "SELECT GET_LOCK('x', 5), RELEASE_LOCK('x')",
    "CREATE TABLE t (a INT, b VARCHAR(10) DEFAULT 'x' COMMENT 'it''s', KEY (b)) -- the end",
    "SET @a = 1, @b = 'x', sql_mode = 'ANSI'",
    "SELECT a FROM t WHERE (b = 1 OR c = 1) AND (d = 'x' OR d = 'y') ORDER BY a LIMIT 10 OFFSET 20",
];

#[test]
fn attacks_are_seen() {
    let missed: Vec<_> = ATTACKS
        .iter()
        .filter(|text| injection(text.as_bytes(), Lexing::Escapes).is_none())
        .collect();
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn harmless_statements_are_let_alone() {
    let blamed: Vec<_> = HARMLESS
        .iter()
        .filter_map(|text| Some((text, injection(text.as_bytes(), Lexing::Escapes)?)))
        .collect();
    assert!(blamed.is_empty(), "{blamed:#?}");
}

/// Statements that are all meant well; how many of them are blamed is in docs/features/firewall.md.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the statements are in files; the crate itself has none"
)]
fn of_the_statements_of_our_own_tests_only_known_ones_are_blamed() {
    let mut blamed = Vec::new();
    let mut count = 0;
    let mut look = |sql: &str| {
        count += 1;
        blamed.extend(
            injection(sql.as_bytes(), Lexing::Escapes).map(|print| format!("{print}: {sql}")),
        );
    };
    for entry in std::fs::read_dir("../../../conformance/scenarios").expect("the scenarios") {
        let text = std::fs::read_to_string(entry.expect("an entry").path()).expect("a text");
        for line in text.lines() {
            look(line.split_once(' ').map_or("", |(_, sql)| sql));
        }
    }
    for line in include_str!("reading.txt").lines() {
        look(line);
    }
    for line in include_str!("golden/digests.tsv").lines() {
        look(line.split('\t').nth(1).unwrap_or_default());
    }
    assert!(count > 2500, "{count}");
    assert_eq!(
        blamed,
        ["1&sos: SELECT 1 FROM dual WHERE 1=1 AND 2=2 AND 'a'='a'"],
        "of {count}"
    );
}
