//! What ProxySQL 2.7 does that one would not guess, and scripts and dashboards depend on: each was
//! seen on a running one, and is a row here. Where we differ on purpose the row says so, and
//! docs/compatibility.md has the line.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;

use conformance::beside::set;
use conformance::by_hand::{self, Raw};
use conformance::proxy::{Driver, Proxy, Wish};
use conformance::raw;
use conformance::servers::{Server, Vendor};
use conformance::trials::{self, expect, same, until};

type Outcome = Result<(), String>;

fn main() {
    trials::run(&[
        (
            "digests_are_counted_where_dashboards_look_for_them",
            digests,
        ),
        ("rules_match_and_are_shown_as_scripts_expect", rules),
        ("hints_beat_rules_and_not_transactions", hints),
        (
            "the_cache_outlives_a_load_and_goes_by_the_exact_text",
            cache,
        ),
        (
            "kinds_of_statements_are_counted_in_proxysqls_classes",
            classes,
        ),
    ])
}

/// Two servers in hostgroups 0 and 1.
struct Stand {
    servers: [Server; 2],
    proxy: Proxy,
}

fn stand(driver: Driver) -> Result<Stand, String> {
    let servers = [
        Server::start(Vendor::MariaDb)?,
        Server::start(Vendor::MariaDb)?,
    ];
    for server in &servers {
        server.root(by_hand::CREATE_USER)?;
    }
    let mut wish = Wish::in_front_of(&servers[0]);
    wish.add(1, &servers[1]);
    wish.add_open_user();
    Ok(Stand {
        proxy: Proxy::start(driver, &wish)?,
        servers,
    })
}

/// A text is sent as it is; one that is to be prepared is executed twice.
#[derive(Clone, Copy, Debug)]
enum Does {
    Says(&'static str),
    Prepares(&'static str),
}
use Does::{Prepares, Says};

impl Stand {
    /// Instead of all rules before: columns and rows as an INSERT has them.
    fn rules(&self, rows: &str) -> Outcome {
        let insert = if rows.is_empty() {
            String::new()
        } else {
            format!("INSERT INTO mysql_query_rules {rows};")
        };
        let load = "LOAD MYSQL QUERY RULES TO RUNTIME";
        self.proxy
            .admin(&format!("DELETE FROM mysql_query_rules; {insert} {load}"))
            .map(drop)
    }

    /// Returns what one session is told, in a word for each: the number of a server, a value, or an
    /// error in full.
    fn told(&self, script: &[Does]) -> Result<String, String> {
        let mut client = Raw::log_in(self.proxy.port).map_err(|error| error.to_string())?;
        let mut prepares = raw::Raw::log_in(self.proxy.port, 0)?;
        let mut told = Vec::new();
        for does in script {
            told.push(match does {
                Says(sql) => match client.ask(sql) {
                    Ok(rows) => self.named(
                        rows.first()
                            .and_then(|row| row.first())
                            .map_or("ok", |value| value),
                    ),
                    Err(error) => error.to_string(),
                },
                Prepares(sql) => {
                    prepares.prepare(sql)?;
                    let nth = prepares
                        .statements
                        .len()
                        .checked_sub(1)
                        .ok_or("nothing was prepared")?;
                    prepares.execute(nth, 0, b"")?;
                    let said = prepares.execute(nth, 0, b"")?;
                    if said.contains("\\xff") {
                        "failed".to_owned()
                    } else {
                        "executed".to_owned()
                    }
                }
            });
        }
        Ok(told.join(" "))
    }

    fn named(&self, value: &str) -> String {
        let server = self
            .servers
            .iter()
            .position(|server| server.port.to_string() == value);
        server.map_or_else(|| value.to_owned(), |at| format!("on {at}"))
    }

    /// These rules, this session, and then what an operator reads.
    fn shows(
        &self,
        (why, rules, script, ask, wanted): (&str, &str, &[Does], &str, &str),
    ) -> Outcome {
        self.rules(rules)?;
        self.proxy
            .admin("SELECT COUNT(*) FROM stats_mysql_query_digest_reset")?;
        let told = self.told(script)?;
        let said = self.proxy.admin(ask)?;
        same(&said, wanted).map_err(|words| format!("{why}\n{script:?} was told {told}\n{words}"))
    }

    /// These rules, and what this session is told.
    fn tells(&self, (why, rules, script, wanted): (&str, &str, &[Does], &str)) -> Outcome {
        self.rules(rules)?;
        same(&self.told(script)?, wanted).map_err(|words| format!("{why}\n{script:?}\n{words}"))
    }
}

const HITS: &str = "SELECT rule_id, hits FROM stats_mysql_query_rules ORDER BY rule_id";

fn digests(driver: Driver) -> Outcome {
    let stand = stand(driver)?;
    let counted = "SELECT hostgroup, count_star FROM stats_mysql_query_digest WHERE digest_text LIKE 'SELECT ?%' ORDER BY hostgroup";
    let asked = Says("SELECT 5");
    for row in [
        (
            "a PREPARE is counted as well as each EXECUTE",
            "",
            &[Prepares("SELECT 5")][..],
            counted,
            "0\t3",
        ),
        (
            "what the cache answers is in hostgroup -1",
            "(active, match_digest, cache_ttl, apply) VALUES (1, '^SELECT', 600000, 1)",
            &[asked, asked, asked],
            counted,
            "-1\t2\n0\t1",
        ),
        (
            "what a rule answers is in the user's own hostgroup",
            "(active, match_digest, destination_hostgroup, OK_msg, apply) VALUES (1, '^SELECT', NULL, 'fine', 1)",
            &[asked],
            counted,
            "0\t1",
        ),
        (
            "what a rule refuses, too",
            "(active, match_digest, error_msg, apply) VALUES (1, '^SELECT', 'no', 1)",
            &[asked, asked],
            counted,
            "0\t2",
        ),
        (
            "USE is of the schema that it leads to",
            "",
            &[Says("USE conf"), Says("USE conf2")],
            "SELECT schemaname, digest_text FROM stats_mysql_query_digest WHERE digest_text LIKE 'USE%' ORDER BY 1",
            "conf\tUSE conf\nconf2\tUSE conf2",
        ),
        (
            "what is counted is what was sent",
            "(active, match_pattern, replace_pattern, apply) VALUES (1, 'conf.numbers', 'conf.scratch', 1)",
            &[Says("SELECT COUNT(*) FROM conf.numbers")],
            "SELECT digest_text FROM stats_mysql_query_digest WHERE digest_text LIKE '%COUNT%'",
            "SELECT COUNT(*) FROM conf.scratch",
        ),
        (
            "a match_digest is about what came, a later match_pattern about what became of it",
            "(rule_id, active, match_digest, match_pattern, replace_pattern) VALUES (1, 1, NULL, 'conf.numbers', 'conf.scratch'), \
             (2, 1, 'numbers', NULL, NULL), (3, 1, 'scratch', NULL, NULL), (4, 1, NULL, 'numbers', NULL), (5, 1, NULL, 'scratch', NULL)",
            &[Says("SELECT COUNT(*) FROM conf.numbers")],
            HITS,
            "1\t1\n2\t1\n3\t0\n4\t0\n5\t1",
        ),
        (
            "blanks around = stay and make two digests, the sign of a number goes behind a blank",
            "",
            &[
                Says("SELECT 5 FROM dual WHERE 1 = 1"),
                Says("SELECT 5 FROM dual WHERE 1=1"),
                Says("SELECT 5, id -1 FROM conf.scratch;"),
                Says("SELECT 5, id-1 FROM conf.scratch"),
            ],
            "SELECT digest_text FROM stats_mysql_query_digest WHERE digest_text LIKE 'SELECT ?%' ORDER BY 1",
            "SELECT ? FROM dual WHERE ? = ?\nSELECT ? FROM dual WHERE ?=?\nSELECT ?,id ? FROM conf.scratch\nSELECT ?,id-? FROM conf.scratch",
        ),
    ] {
        stand.shows(row)?;
    }
    // A copy is of the mirror's hostgroup, and without rows.
    stand.rules(
        "(active, match_digest, mirror_hostgroup, apply) VALUES (1, 'FROM conf.numbers', 1, 1)",
    )?;
    stand.told(&[Says("SELECT id FROM conf.numbers LIMIT 3")])?;
    let mirrored = "SELECT hostgroup || ' ' || count_star || ' ' || sum_rows_sent FROM stats_mysql_query_digest \
                    WHERE digest_text LIKE 'SELECT id%' ORDER BY hostgroup";
    until("1 1 0", || stand.proxy.admin(mirrored))?;
    same(&stand.proxy.admin(mirrored)?, "0 1 3\n1 1 0")?;
    let clients = "SELECT DISTINCT client_address FROM stats_mysql_query_digest WHERE digest_text = 'SELECT ?'";
    stand.shows((
        "whose statement it was is not told",
        "",
        &[asked],
        clients,
        "",
    ))?;
    set(
        &stand.proxy,
        "SET mysql-query_digests_track_hostname='true'",
    )?;
    stand.shows(("unless it is asked for", "", &[asked], clients, "127.0.0.1"))?;
    set(
        &stand.proxy,
        "SET mysql-query_digests_max_digest_length=16; SET mysql-query_digests='true'",
    )?;
    let cut = "SELECT LENGTH(digest_text) FROM stats_mysql_query_digest WHERE digest_text LIKE 'SELECT COUNT%'";
    stand.shows((
        "a digest is cut at so many bytes",
        "",
        &[Says("SELECT COUNT(*) FROM conf.numbers")],
        cut,
        "16",
    ))?;
    // On purpose different: ProxySQL's rule matches everything while there are no digests.
    set(
        &stand.proxy,
        "SET mysql-query_digests='false'; SET mysql-query_digests_max_digest_length=2048",
    )?;
    stand
        .proxy
        .admin("SELECT COUNT(*) FROM stats_mysql_query_digest_reset")?;
    stand.tells((
        "a rule that asks for a digest",
        "(active, match_digest, error_msg, apply) VALUES (1, '^SELECT', 'no', 1)",
        &[asked, Says("DO 5")],
        "1148 42000 no ok",
    ))?;
    same(
        &stand
            .proxy
            .admin("SELECT COUNT(*) FROM stats_mysql_query_digest")?,
        "0",
    )
}

fn rules(driver: Driver) -> Outcome {
    let stand = stand(driver)?;
    let says = [Says("SELECT 5"), Says("select 5")];
    let both =
        "(active, OK_msg, error_msg, apply, match_digest) VALUES (1, 'said', 'no', 1, '5$|\\?$')";
    for row in [
        (
            "without modifiers, or with unknown ones, case matters",
            "(rule_id, active, match_pattern, re_modifiers) VALUES (1, 1, '^select', NULL), (2, 1, '^select', 'NONSENSE'), (3, 1, '^select', 'CASELESS')",
            &says[..],
            HITS,
            "1\t1\n2\t1\n3\t2",
        ),
        (
            "that is how they are shown; who sleeps is not shown",
            "(rule_id, active, match_pattern, re_modifiers) VALUES (1, 1, 'a', NULL), (2, 1, 'a', 'NONSENSE'), (3, 0, 'a', 'CASELESS'), (4, 1, 'a', 'caseless,global')",
            &[],
            "SELECT rule_id, '(' || re_modifiers || ')' FROM runtime_mysql_query_rules ORDER BY rule_id",
            "1\t()\n2\t()\n4\t(CASELESS,GLOBAL)",
        ),
        (
            "who sleeps has no hits",
            "(rule_id, active, match_pattern) VALUES (1, 0, '5'), (2, 1, '5')",
            &says,
            HITS,
            "2\t2",
        ),
        (
            "an empty name is anybody's",
            "(rule_id, active, username, schemaname) VALUES (1, 1, '', ''), (2, 1, 'app', NULL), (3, 1, 'open', ''), (4, 1, '', 'conf2')",
            &says,
            HITS,
            "1\t2\n2\t0\n3\t2\n4\t0",
        ),
        (
            "a pattern sees comments, values and blanks in front; a digest has none of them",
            "(rule_id, active, match_pattern, match_digest) VALUES (1, 1, '^SELECT', NULL), (2, 1, NULL, '^SELECT'), (3, 1, 'seven', NULL), \
             (4, 1, NULL, 'seven'), (5, 1, 'SELECT.7', NULL), (6, 1, NULL, '^SELECT \\?$')",
            &[
                Says("  SELECT 7"),
                Says("SELECT /* seven */ 7"),
                Says("SELECT\n7"),
            ],
            HITS,
            "1\t2\n2\t3\n3\t1\n4\t0\n5\t1\n6\t3",
        ),
        (
            "a flag leads forward only, and not past apply",
            "(rule_id, active, flagIN, flagOUT, apply) VALUES (1, 1, 7, NULL, 0), (2, 1, 0, 7, 0), (3, 1, 0, NULL, 0), (4, 1, 7, 8, 1), (5, 1, 8, NULL, 0)",
            &says,
            HITS,
            "1\t0\n2\t2\n3\t0\n4\t2\n5\t0",
        ),
    ] {
        stand.shows(row)?;
    }
    // Hits are those since the LOAD.
    stand.proxy.admin("LOAD MYSQL QUERY RULES TO RUNTIME")?;
    same(&stand.proxy.admin(HITS)?, "1\t0\n2\t0\n3\t0\n4\t0\n5\t0")?;

    let refuses = "(active, match_digest, error_msg, apply) VALUES (1, '.', 'not now', 1)";
    stand.tells((
        "an answer goes before a refusal",
        both,
        &[Says("DO 5"), Says("SELECT 5, 'x' FROM dual")],
        "ok 5",
    ))?;
    stand.tells((
        "a refusal is 1148",
        refuses,
        &[Says("SELECT 5")],
        "1148 42000 not now",
    ))?;
    // A digest is a number as C writes it: hexadecimal, decimal, octal.
    stand.rules("")?;
    stand.told(&[Says("SELECT 5, 6, 7")])?;
    let digest = stand
        .proxy
        .admin("SELECT digest FROM stats_mysql_query_digest WHERE digest_text = 'SELECT ?,?,?'")?;
    let digest = digest.trim();
    let number = u64::from_str_radix(digest.trim_start_matches("0x"), 16)
        .map_err(|_| format!("digest {digest:?}"))?;
    let digests = format!(
        "(rule_id, active, digest) VALUES (1, 1, '{digest}'), (2, 1, '{number}'), (3, 1, '0{number:o}'), (4, 1, '1')"
    );
    stand.shows((
        "a digest's number",
        &digests,
        &[Says("SELECT 5, 6, 7")],
        HITS,
        "1\t1\n2\t1\n3\t1\n4\t0",
    ))?;

    // On purpose different: ProxySQL loads them, and they never match; OK_msg there is no answer to
    // a COM_STMT_PREPARE.
    let refused = stand
        .rules("(rule_id, active, match_pattern) VALUES (9, 1, 'SELECT(')")
        .err()
        .unwrap_or_default();
    expect(refused.contains("rule_id 9"), || {
        format!("an invalid expression was loaded: {refused}")
    })?;
    let refused = stand
        .rules("(rule_id, active, digest) VALUES (9, 1, 'SELECT')")
        .err()
        .unwrap_or_default();
    expect(refused.contains("rule_id 9"), || {
        format!("a digest that is no number was loaded: {refused}")
    })?;
    stand.tells((
        "OK_msg for a prepared statement",
        "(active, match_digest, OK_msg, apply) VALUES (1, '^SELECT', 'said', 1)",
        &[Prepares("SELECT 5")],
        "executed",
    ))
}

fn hints(driver: Driver) -> Outcome {
    let stand = stand(driver)?;
    let applies = "(active, match_digest, destination_hostgroup, apply) VALUES (1, '.', 0, 1)";
    for (sql, wanted) in [
        ("SELECT @@port", "on 0"),
        ("/* hostgroup=1 */ SELECT @@port", "on 1"),
        ("SELECT /* hostgroup=1 */ @@port", "on 1"),
        ("SELECT @@port /* hostgroup=1 */", "on 1"),
        ("/* a=b;hostgroup=1 */ SELECT @@port", "on 1"),
        ("/* a=b; hostgroup=1; c=d */ SELECT @@port", "on 1"),
        ("/*+ hostgroup=1 */ SELECT @@port", "on 0"),
        // The first comment only.
        ("/* first */ SELECT /* hostgroup=1 */ @@port", "on 0"),
        ("SELECT @@port, '/* hostgroup=1 */'", "on 0"),
    ] {
        stand.tells(("a hint", applies, &[Says(sql)], wanted))?;
    }
    let hinted = Says("/* hostgroup=1 */ SELECT @@port");
    stand.tells((
        "not in a transaction",
        applies,
        &[Says("BEGIN"), hinted, Says("COMMIT"), hinted],
        "ok on 0 ok on 1",
    ))
}

fn cache(driver: Driver) -> Outcome {
    let stand = stand(driver)?;
    let hits = || {
        stand.proxy.admin("SELECT Variable_Value FROM stats.stats_mysql_global WHERE Variable_Name = 'Query_Cache_count_GET_OK'")
    };
    let rule = "(active, match_digest, cache_ttl, apply) VALUES (1, '^SELECT', 600000, 1)";
    let text = Says("SELECT 5, 'text'");
    stand.tells(("filled", rule, &[text], "5"))?;
    same(&hits()?, "0")?;
    stand.tells(("a LOAD of rules keeps what is cached", rule, &[text], "5"))?;
    same(&hits()?, "1")?;
    let others = [
        Says("SELECT  5, 'text'"),
        Says("select 5, 'text'"),
        Says("USE conf2"),
        text,
    ];
    stand.tells(("another text, another schema", rule, &others, "5 5 ok 5"))?;
    same(&hits()?, "1")?;
    // On purpose different: in ProxySQL executions are never cached, and transactions are answered
    // from the cache.
    stand.tells((
        "prepared",
        rule,
        &[Prepares("SELECT 5, 'text'")],
        "executed",
    ))?;
    same(&hits()?, "2")?;
    stand.tells((
        "in a transaction",
        rule,
        &[Says("BEGIN"), text, Says("COMMIT"), text],
        "ok 5 ok 5",
    ))?;
    same(&hits()?, "3")
}

fn classes(driver: Driver) -> Outcome {
    let stand = stand(driver)?;
    let counters = || -> Result<BTreeMap<String, u64>, String> {
        let said = stand
            .proxy
            .admin("SELECT Command, Total_cnt FROM stats_mysql_commands_counters")?;
        let lines = said.lines().filter_map(|line| line.split_once('\t'));
        lines
            .map(|(command, count)| {
                Ok((command.to_owned(), count.parse().map_err(|_| said.clone())?))
            })
            .collect()
    };
    let counts = |script: &[Does], wanted: &str| -> Outcome {
        let before = counters()?;
        let told = stand.told(script)?;
        let after = counters()?;
        let grown = after.iter().filter_map(|(command, count)| {
            let more = count - before.get(command).unwrap_or(&0);
            (more > 0).then(|| format!("{command} {more}"))
        });
        same(&grown.collect::<Vec<_>>().join(" "), wanted)
            .map_err(|words| format!("{script:?}, told {told}\n{words}"))
    };
    for (sql, wanted) in [
        ("SELECT 1", "SELECT 1"),
        ("(SELECT 1)", "SELECT 1"),
        ("  /* x */ select 1", "SELECT 1"),
        (
            "SELECT id FROM conf.scratch FOR UPDATE",
            "SELECT_FOR_UPDATE 1",
        ),
        ("EXPLAIN SELECT 1", "UNKNOWN 1"),
        ("DESC conf.scratch", "UNKNOWN 1"),
        ("WITH a AS (SELECT 1) SELECT * FROM a", "UNKNOWN 1"),
        ("DO 1", "UNKNOWN 1"),
        ("USE conf", "UNKNOWN 1"),
        ("LOCK TABLES conf.scratch READ", "UNKNOWN 1"),
        ("TRUNCATE TABLE conf.scratch", "UNKNOWN 1"),
        ("INSERT INTO conf.scratch VALUES (1, 'x')", "INSERT 1"),
        ("REPLACE INTO conf.scratch VALUES (1, 'y')", "REPLACE 1"),
        ("UPDATE conf.scratch SET words = 'z'", "UPDATE 1"),
        ("DELETE FROM conf.scratch", "DELETE 1"),
        ("CREATE TABLE conf.made (a INT)", "CREATE_TABLE 1"),
        ("CREATE INDEX made_a ON conf.made (a)", "CREATE_INDEX 1"),
        ("DROP INDEX made_a ON conf.made", "UNKNOWN 1"),
        ("ALTER TABLE conf.made ADD b INT", "ALTER_TABLE 1"),
        ("DROP TABLE conf.made", "DROP_TABLE 1"),
        ("CREATE DATABASE made", "CREATE_DATABASE 1"),
        ("DROP DATABASE made", "DROP_DATABASE 1"),
        ("SET @a = 1", "SET 1"),
        ("BEGIN", "BEGIN 1"),
        ("START TRANSACTION", "START_TRANSACTION 1"),
        ("COMMIT", "COMMIT 1"),
        ("ROLLBACK", "ROLLBACK 1"),
        ("CALL conf.no_result()", "CALL 1"),
        ("no statement at all", "UNKNOWN 1"),
    ] {
        counts(&[Says(sql)], wanted)?;
    }
    counts(&[Prepares("SELECT 5")], "SELECT 3")?;
    stand.rules("(active, match_digest, error_msg, apply) VALUES (1, '^SELECT', 'no', 1)")?;
    counts(&[Says("SELECT 5")], "SELECT 1")?;
    stand.rules("(active, match_digest, OK_msg, apply) VALUES (1, '^SELECT', 'said', 1)")?;
    counts(&[Says("SELECT 5")], "SELECT 1")?;
    // The copy, too, as soon as it has been made.
    stand.rules("(active, match_digest, mirror_hostgroup, apply) VALUES (1, '^SELECT', 1, 1)")?;
    let selects = || counters().map(|all| all.get("SELECT").copied().unwrap_or(0));
    let before = selects()?;
    stand.told(&[Says("SELECT 5")])?;
    until(&(before + 2).to_string(), || {
        selects().map(|count| count.to_string())
    })
}
