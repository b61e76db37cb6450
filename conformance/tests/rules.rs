//! Columns of `mysql_query_rules` and hints, as clients feel them: a table of rules, what a client
//! says, and where it went or what it was told. What the plan decides is tested beside it
//! (`crates/pure/plan/tests`); here it is carried out.
#![forbid(unsafe_code)]

use std::thread;
use std::time::{Duration, Instant};

use conformance::beside::{asked, set};
use conformance::by_hand::{self, Raw};
use conformance::cache;
use conformance::clients::{Client, app};
use conformance::proxy::{Driver, Proxy, Wish, command_line};
use conformance::raw as packets;
use conformance::servers::{Server, Vendor, vendors};
use conformance::trials::{self, expect, same, soon};
use conformance::watch::HANGS;
use wire::caps;

type Outcome = Result<(), String>;

fn main() {
    trials::run(&[
        (
            "each_condition_of_a_rule_decides_where_statements_go",
            conditions,
        ),
        ("flags_lead_through_the_chain", flags),
        ("weighted_flags_are_drawn_for_each_statement", weights),
        ("what_has_to_be_fresh_is_read_from_the_writer", fresh),
        ("a_hint_alone_copies_and_keeps_out_of_the_cache", hints),
        (
            "rules_say_where_com_init_db_goes_and_nothing_else_of_it",
            init_db,
        ),
        ("a_rule_knows_the_address_that_a_client_came_to", listeners),
        (
            "a_rule_or_a_hint_says_how_long_a_statement_may_take",
            timeouts,
        ),
        ("a_rule_or_a_hint_says_how_often_a_read_is_tried", retries),
        ("a_rule_or_a_hint_says_how_long_a_statement_waits", delays),
        (
            "a_read_only_transaction_on_a_reader_leaves_nothing_there",
            on_the_reader,
        ),
        (
            "what_a_rule_refuses_is_what_the_session_is_told_of_its_last_statement",
            refusals,
        ),
        (
            "attributes_that_cannot_be_honoured_are_refused_with_every_reason",
            attributes,
        ),
    ])
}

/// Two servers in hostgroups 0 and 1, the first of them everybody's own.
struct Two {
    writer: Server,
    reader: Server,
    proxy: Proxy,
}

fn two(driver: Driver, vendor: Vendor) -> Result<Two, String> {
    let (writer, reader) = (Server::start(vendor)?, Server::start(vendor)?);
    for server in [&writer, &reader] {
        server.root(by_hand::CREATE_USER)?;
    }
    let mut wish = Wish::in_front_of(&writer);
    wish.add(1, &reader);
    wish.add_open_user();
    let proxy = Proxy::start(driver, &wish)?;
    Ok(Two {
        writer,
        reader,
        proxy,
    })
}

/// As after a statement that the server itself refuses: warnings from before are over, and what was
/// refused is listed until the next statement.
fn refusals(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (server, proxy) = by_hand::one(driver, vendor)?;
        rules(
            &proxy,
            "(rule_id, active, match_pattern, error_msg, apply) VALUES (1, 1, 'no_such_table', 'not here', 1)",
        )?;
        let (mut direct, mut client) = (Raw::log_in(server.port), log_in(&proxy)?);
        let direct = direct.as_mut().map_err(|error| error.to_string())?;
        let mut both = |sql: &str, code: &str, words: &str| {
            let (wanted, found) = (direct.ask(sql), client.ask(sql));
            // The server has its own number and words for what the rule refuses.
            let plain = |said: std::io::Result<Vec<Vec<String>>>| match said {
                Ok(rows) => format!("{rows:?}")
                    .replace("1146", code)
                    .replace("Table 'conf.no_such_table' doesn't exist", words),
                Err(error) => error
                    .to_string()
                    .split(' ')
                    .next()
                    .unwrap_or_default()
                    .replace("1146", code),
            };
            let (wanted, found) = (plain(wanted), plain(found));
            expect(wanted == found, || {
                format!("{vendor}: {sql}: {found} instead of {wanted}")
            })
        };
        for before in [
            "SELECT CAST('x' AS SIGNED)",
            "SELECT no_such_column FROM conf.numbers",
            "SELECT id FROM conf.numbers LIMIT 3",
        ] {
            for asks in [
                "SHOW WARNINGS",
                "SHOW ERRORS",
                "SHOW ERRORS LIMIT 1, 1",
                "SHOW COUNT(*) WARNINGS",
                "SHOW COUNT(*) ERRORS",
                "SELECT @@error_count",
                "SELECT @@session.warning_count",
                "SELECT ROW_COUNT()",
            ] {
                for pause in [false, true] {
                    both(before, "1148", "not here")?;
                    both("SELECT * FROM conf.no_such_table", "1148", "not here")?;
                    if pause {
                        thread::sleep(Duration::from_millis(15));
                    }
                    both(asks, "1148", "not here")?;
                }
            }
            both("SELECT * FROM conf.no_such_table", "1148", "not here")?;
            both("SELECT id FROM conf.numbers LIMIT 1", "1148", "not here")?;
            both("SHOW WARNINGS", "1148", "not here")?;
        }
    }
    Ok(())
}

/// The split leads a READ ONLY transaction to the reader. What ends it by itself goes to the
/// writer, and what would outlive it is not left behind.
fn on_the_reader(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let two = two(driver, vendor)?;
        let row = "INSERT INTO mysql_hostgroup_attributes (hostgroup_id, hostgroup_settings) VALUES (0, '{\"read_hostgroup\": 1}')";
        two.proxy
            .admin(&format!("{row}; LOAD MYSQL SERVERS TO RUNTIME"))?;
        let (writer, reader) = (two.writer.port.to_string(), two.reader.port.to_string());
        let mut client = log_in(&two.proxy)?;
        let is = |client: &mut Raw, sql: &str, wanted: &str| {
            same(&asked(client, sql)?.concat().join(" "), wanted)
                .map_err(|error| format!("{vendor}: {sql}: {error}"))
        };
        const BEGIN: &str = "START TRANSACTION READ ONLY";
        // A server commits what is open by itself.
        for next in ["BEGIN", "START TRANSACTION", "START TRANSACTION READ WRITE"] {
            asked(&mut client, BEGIN)?;
            is(&mut client, "SELECT @@port", &reader)?;
            asked(&mut client, next)?;
            is(&mut client, "SELECT @@port", &writer)?;
            asked(
                &mut client,
                "INSERT INTO conf.scratch (id, words) VALUES (1, 'kept')",
            )?;
            asked(&mut client, "COMMIT")?;
            let kept = "SELECT COUNT(*) FROM conf.scratch; DELETE FROM conf.scratch";
            same(
                two.writer.root(kept)?.lines().last().unwrap_or_default(),
                "1",
            )?;
            same(
                two.reader.root(kept)?.lines().last().unwrap_or_default(),
                "0",
            )?;
        }
        asked(&mut client, BEGIN)?;
        asked(&mut client, BEGIN)?;
        is(&mut client, "SELECT @@port", &reader)?;
        asked(&mut client, "LOCK TABLES conf.scratch WRITE")?;
        is(&mut client, "SELECT @@port", &writer)?;
        asked(&mut client, "UNLOCK TABLES")?;
        // All locks are at the writer, and the transaction goes on.
        asked(&mut client, BEGIN)?;
        is(&mut client, "SELECT GET_LOCK('job', 0)", "1")?;
        is(&mut client, "SELECT @@port", &reader)?;
        is(&mut log_in(&two.proxy)?, "SELECT GET_LOCK('job', 0)", "0")?;
        is(&mut client, "SELECT IS_FREE_LOCK('job')", "0")?;
        is(&mut client, "SELECT RELEASE_LOCK('job')", "1")?;
        for stays in [
            "CREATE TEMPORARY TABLE conf.scratch (id INT)",
            "SELECT id, GET_LOCK('job', 0) FROM conf.numbers LIMIT 1",
        ] {
            let refused = asked(&mut client, stays).err().unwrap_or_default();
            expect(refused.contains("1235"), || {
                format!("{vendor}: {stays}: {refused:?}")
            })?;
        }
        // What may end it and write there, which nobody can tell, is refused; what is taken apart
        // is not.
        for server in [&two.writer, &two.reader] {
            server.root(
                "DELIMITER //\nCREATE PROCEDURE conf.writes() BEGIN START TRANSACTION; INSERT INTO conf.scratch (id, words) VALUES (3, 'there'); \
                 COMMIT; END//\nDELIMITER ;",
            )?;
        }
        for warm in [&two.writer, &two.reader] {
            let _known = Client::MariaDbCli.run(
                app(warm.port),
                &cache::root().join("conformance/scenarios/warm-up.txt"),
            );
        }
        let mut several = packets::Raw::log_in(two.proxy.port, caps::MULTI_STATEMENTS)?;
        const LATER: &str = "INSERT INTO conf.scratch (id, words) VALUES (2, 'later')";
        for ends in [
            "COMMIT;; ",
            "/*!99999 */ COMMIT; ",
            "BEGIN; ",
            "COMMIT; ",
            "ROLLBACK; ",
        ] {
            several.query(BEGIN)?;
            let sql = format!("{ends}{LATER}; COMMIT");
            let said = several.query(&sql)?;
            let taken_apart = !ends.contains(";;") && !ends.contains("/*!");
            expect(said.contains(r"\xff\xd3\x04") != taken_apart, || {
                format!("{vendor}: {sql}: {said}")
            })?;
            several.query("COMMIT")?;
            let count = "SELECT COUNT(*) FROM conf.scratch WHERE id = 2; DELETE FROM conf.scratch";
            same(
                two.reader.root(count)?.lines().last().unwrap_or_default(),
                "0",
            )
            .map_err(|error| format!("{vendor}: {sql}: {error}"))?;
            same(
                two.writer.root(count)?.lines().last().unwrap_or_default(),
                if taken_apart { "1" } else { "0" },
            )
            .map_err(|error| format!("{vendor}: {sql}: {error}"))?;
        }
        for calls in [
            "CALL conf.writes()",
            "EXECUTE IMMEDIATE CONCAT('COM', 'MIT')",
            "BEGIN NOT ATOMIC COMMIT; CALL conf.writes(); END",
        ] {
            if vendor == Vendor::MySql && !calls.starts_with("CALL") {
                continue;
            }
            asked(&mut client, BEGIN)?;
            let refused = asked(&mut client, calls).err().unwrap_or_default();
            expect(refused.contains("1235"), || {
                format!("{vendor}: {calls}: {refused:?}")
            })?;
            asked(&mut client, "COMMIT")?;
        }
        asked(&mut client, BEGIN)?;
        // Also when the settings by which it went there are others meanwhile.
        two.proxy
            .admin("DELETE FROM mysql_hostgroup_attributes; LOAD MYSQL SERVERS TO RUNTIME")?;
        is(&mut client, "SELECT @@port", &reader)?;
        asked(&mut client, "BEGIN")?;
        is(&mut client, "SELECT @@port", &writer)?;
        asked(&mut client, "COMMIT")?;
        two.proxy
            .admin(&format!("{row}; LOAD MYSQL SERVERS TO RUNTIME"))?;
        // Nor does it end by what a rule refuses.
        asked(&mut client, BEGIN)?;
        rules(
            &two.proxy,
            "(rule_id, active, match_pattern, error_msg, apply) VALUES (1, 1, '^BEGIN', 'not now', 1)",
        )?;
        expect(
            asked(&mut client, "BEGIN").is_err_and(|why| why.contains("not now")),
            || format!("{vendor}: BEGIN was let through"),
        )?;
        is(&mut client, "SELECT @@port FOR UPDATE", &reader)?;
        asked(&mut client, "COMMIT")?;
        is(&mut client, "SELECT @@port FOR UPDATE", &writer)?;
        rules(&two.proxy, "")?;
    }
    Ok(())
}

/// Instead of all rules before: columns and rows, as an INSERT has them.
fn rules(proxy: &Proxy, rows: &str) -> Outcome {
    let rows = rows.replace("{port}", &proxy.port.to_string());
    let insert = if rows.is_empty() {
        String::new()
    } else {
        format!("INSERT INTO mysql_query_rules {rows};")
    };
    proxy
        .admin(&format!(
            "DELETE FROM mysql_query_rules; {insert} LOAD MYSQL QUERY RULES TO RUNTIME"
        ))
        .map(drop)
}

fn log_in(proxy: &Proxy) -> Result<Raw, String> {
    Raw::log_in(proxy.port).map_err(|error| error.to_string())
}

impl Two {
    /// Returns what one session is told for each statement. That is a server by its role, the first
    /// value of the first row, an error by its number, or that the connection is gone.
    fn told(&self, script: &[&str]) -> Result<String, String> {
        let mut client = log_in(&self.proxy)?;
        Ok(script
            .iter()
            .map(|sql| self.one(&client.ask(sql)))
            .collect::<Vec<_>>()
            .join(" "))
    }

    fn one(&self, said: &std::io::Result<Vec<Vec<String>>>) -> String {
        match said {
            Ok(rows) => match rows.first().and_then(|row| row.first()) {
                Some(port) if *port == self.writer.port.to_string() => "writer".into(),
                Some(port) if *port == self.reader.port.to_string() => "reader".into(),
                Some(value) => value.clone(),
                None => "ok".into(),
            },
            Err(error) => {
                let code = error
                    .to_string()
                    .split(' ')
                    .next()
                    .unwrap_or_default()
                    .to_owned();
                if code.parse::<u16>().is_ok() {
                    code
                } else {
                    "gone".into()
                }
            }
        }
    }

    fn check(&self, (rows, script, wanted): (&str, &[&str], &str)) -> Outcome {
        rules(&self.proxy, rows)?;
        same(&self.told(script)?, wanted).map_err(|words| format!("{rows}\n{script:?}\n{words}"))
    }
}

const PORT: &str = "SELECT @@port";

fn conditions(driver: Driver) -> Outcome {
    let two = two(driver, Vendor::MariaDb)?;
    for (columns, row, script, wanted) in [
        // What does not match is what a negated expression asks for; in the digest there are
        // neither comments nor values.
        (
            "match_digest, negate_match_pattern",
            "'FOR UPDATE$', 1",
            [PORT, "SELECT @@port FOR UPDATE"],
            "reader writer",
        ),
        (
            "match_pattern, negate_match_pattern",
            "'keep', 1",
            [PORT, "SELECT @@port /* keep */"],
            "reader writer",
        ),
        (
            "match_digest, negate_match_pattern",
            "'keep', 1",
            [PORT, "SELECT @@port /* keep */"],
            "reader reader",
        ),
        (
            "match_digest, negate_match_pattern",
            "'FOR UPDATE$', 0",
            [PORT, "SELECT @@port FOR UPDATE"],
            "writer reader",
        ),
        // Both must not match.
        (
            "match_digest, match_pattern, negate_match_pattern",
            "'FOR UPDATE$', 'keep', 1",
            ["SELECT @@port /* keep */", "SELECT @@port FOR UPDATE"],
            "writer writer",
        ),
        (
            "re_modifiers, match_pattern",
            "'CASELESS', '^select @@PORT$'",
            [PORT, "SELECT @@port "],
            "reader writer",
        ),
        (
            "re_modifiers, match_pattern",
            "'', '^select @@PORT$'",
            [PORT, "select @@PORT"],
            "writer reader",
        ),
        ("client_addr", "'127.0.0.1'", [PORT, PORT], "reader reader"),
        ("client_addr", "'127.%'", [PORT, PORT], "reader reader"),
        ("client_addr", "'%.1'", [PORT, PORT], "reader reader"),
        ("client_addr", "'%'", [PORT, PORT], "reader reader"),
        ("client_addr", "'127.%.2'", [PORT, PORT], "writer writer"),
        ("client_addr", "'10.%'", [PORT, PORT], "writer writer"),
        ("client_addr", "'localhost'", [PORT, PORT], "writer writer"),
        ("proxy_port", "{port}", [PORT, PORT], "reader reader"),
        ("proxy_port", "1", [PORT, PORT], "writer writer"),
        ("proxy_addr", "'127.0.0.1'", [PORT, PORT], "reader reader"),
        ("proxy_addr", "'127.0.0.2'", [PORT, PORT], "writer writer"),
        (
            "proxy_addr, proxy_port",
            "'127.0.0.1', 1",
            [PORT, PORT],
            "writer writer",
        ),
        ("schemaname", "'conf2'", ["USE conf2", PORT], "ok reader"),
        ("username", "'open'", [PORT, PORT], "reader reader"),
        ("username", "'app'", [PORT, PORT], "writer writer"),
        (
            "active, destination_hostgroup, match_pattern",
            "0, 1, '.'",
            [PORT, PORT],
            "writer writer",
        ),
    ] {
        let (more, values) = if columns.contains("active") {
            ("", "")
        } else {
            ("active, destination_hostgroup, ", "1, 1, ")
        };
        two.check((
            &format!("(apply, {more}{columns}) VALUES (1, {values}{row})"),
            &script,
            wanted,
        ))?;
    }
    // A client without an address is at home.
    let socket = format!(
        "--socket={}",
        two.proxy.data().join("client.sock").display()
    );
    for (address, server) in [
        ("localhost", &two.reader),
        ("127.%", &two.writer),
        ("%", &two.reader),
    ] {
        rules(
            &two.proxy,
            &format!(
                "(active, client_addr, destination_hostgroup, apply) VALUES (1, '{address}', 1, 1)"
            ),
        )?;
        let said = command_line(
            two.proxy.port,
            "app",
            "secret",
            &["--host=localhost", "--protocol=socket", &socket],
            PORT,
        )?;
        same(&said, &server.port.to_string()).map_err(|words| format!("{address}: {words}"))?;
    }
    // PCRE's $ also matches before a newline at the end, and RE2 knows no look-ahead.
    let newline = (
        "(active, match_pattern, destination_hostgroup, apply) VALUES (1, '@@port$', 1, 1)",
        "SELECT @@port\n",
    );
    two.check((newline.0, &[newline.1, PORT], "reader reader"))?;
    let ahead =
        "(active, match_pattern, destination_hostgroup, apply) VALUES (1, '^SELECT (?=@@p)', 1, 1)";
    two.check((ahead, &[PORT], "reader"))?;
    let refused = set(&two.proxy, "SET mysql-query_processor_regex=2")
        .err()
        .unwrap_or_default();
    expect(refused.contains("match_pattern '^SELECT (?=@@p)'"), || {
        format!("a rule in force is none in RE2: {refused}")
    })?;
    rules(&two.proxy, "")?;
    set(&two.proxy, "SET mysql-query_processor_regex=2")?;
    two.check((newline.0, &[newline.1, PORT], "writer reader"))?;
    let refused = rules(&two.proxy, ahead).err().unwrap_or_default();
    expect(refused.contains("match_pattern"), || {
        format!("a look-ahead in RE2: {refused}")
    })?;
    // What was in force stays.
    same(&two.told(&[newline.1, PORT])?, "writer reader")
}

fn flags(driver: Driver) -> Outcome {
    let two = two(driver, Vendor::MariaDb)?;
    let backwards = "(rule_id, active, flagIN, match_pattern, flagOUT, destination_hostgroup) VALUES \
                     (1, 1, 7, '@@port', NULL, 1), (2, 1, 0, 'back', 7, NULL)";
    let script: &[&str] = &["SELECT @@port", "SELECT @@port, 'back'"];
    // A flag leads forward only, unless the chain may be begun again.
    two.check((backwards, script, "writer writer"))?;
    set(&two.proxy, "SET mysql-query_processor_iterations=1")?;
    two.check((backwards, script, "writer reader"))?;
    // So often and no more: a circle ends, and where it ended counts.
    let circle = "(rule_id, active, flagIN, match_pattern, flagOUT, destination_hostgroup) VALUES \
                  (1, 1, 0, '@@port', 1, 0), (2, 1, 1, '@@port', 0, 1)";
    two.check((circle, &[PORT], "reader"))?;
    same(
        &two.proxy
            .admin("SELECT rule_id, hits FROM stats_mysql_query_rules")?,
        "1\t1\n2\t1",
    )?;
    set(&two.proxy, "SET mysql-query_processor_iterations=2")?;
    two.check((circle, &[PORT], "reader"))?;
    same(
        &two.proxy
            .admin("SELECT rule_id, hits FROM stats_mysql_query_rules")?,
        "1\t2\n2\t2",
    )?;
    set(&two.proxy, "SET mysql-query_processor_iterations=0")?;

    // What the next statement begins with stays until a rule says otherwise, or the session is
    // another one.
    let next = "(rule_id, active, flagIN, match_digest, next_query_flagIN, destination_hostgroup, apply) VALUES \
                (1, 1, 0, '^DO', 5, NULL, 1), (2, 1, 5, '^DO', 0, NULL, 1), (3, 1, 5, '@@port', NULL, 1, 1)";
    two.check((
        next,
        &[PORT, "DO 1", PORT, PORT, "DO 2", PORT],
        "writer ok reader reader ok writer",
    ))?;
    let mut client = log_in(&two.proxy)?;
    asked(&mut client, "DO 1")?;
    same(&two.one(&client.ask(PORT)), "reader")?;
    client
        .command(b"\x1f")
        .and_then(|()| client.packet())
        .map_err(|error| error.to_string())?;
    same(&two.one(&client.ask(PORT)), "writer")
}

/// While nobody follows GTIDs or lag, a bound is kept by the writer, whatever a rule or the split
/// says of readers; the cache may be older.
fn fresh(driver: Driver) -> Outcome {
    let two = two(driver, Vendor::MariaDb)?;
    let row = "INSERT INTO mysql_hostgroup_attributes (hostgroup_id, hostgroup_settings) VALUES (0, '{\"read_hostgroup\": 1}')";
    two.proxy
        .admin(&format!("{row}; LOAD MYSQL SERVERS TO RUNTIME"))?;
    let cached = "(active, match_digest, cache_ttl) VALUES (1, '^SELECT', 60000)";
    let bounds: &[&str] = &[
        PORT,
        PORT,
        "SELECT /* max_lag_ms=10 */ @@port",
        "/* min_epoch_ms=1700000000000 */ SELECT @@port",
        "SELECT @@port /* min_gtid=0e7b5b6e-0000-0000-0000-000000000000:7 */",
        "SELECT /* max_lag_ms=soon */ @@port",
    ];
    two.check((cached, bounds, "reader reader writer writer writer reader"))?;
    let causal = "(active, match_digest, destination_hostgroup, gtid_from_hostgroup, cache_ttl, apply) VALUES (1, '^SELECT', 1, 0, 60000, 1)";
    // Who has written nothing there reads anywhere; a MariaDB tells no GTID of what is written.
    let writes: &[&str] = &[
        PORT,
        "INSERT INTO conf.scratch VALUES (9, 'mine')",
        PORT,
        "DELETE FROM conf.scratch",
        PORT,
    ];
    two.check((causal, writes, "reader ok writer ok writer"))?;
    // What was read from the reader is in the cache.
    const COUNT: &str = "SELECT COUNT(*) FROM conf.scratch";
    two.check((cached, &[COUNT], "0"))?;
    two.writer
        .root("INSERT INTO conf.scratch VALUES (1, 'new')")?;
    same(
        &two.told(&[
            COUNT,
            "/* max_lag_ms=10 */ SELECT COUNT(*) FROM conf.scratch",
            COUNT,
        ])?,
        "0 1 0",
    )
}

fn hints(driver: Driver) -> Outcome {
    let two = two(driver, Vendor::MariaDb)?;
    for server in [&two.writer, &two.reader] {
        server.root("DELETE FROM conf.scratch")?;
    }
    let cached = "(active, match_digest, cache_ttl) VALUES (1, '^SELECT', 60000)";
    const COUNT: &str = "SELECT COUNT(*) FROM conf.scratch";
    let script: &[&str] = &[
        COUNT,
        "INSERT /* mirror=1 */ INTO conf.scratch VALUES (1, 'copied')",
        "INSERT INTO conf.scratch VALUES (2, 'not copied')",
        COUNT,
        "/* cache_ttl=0 */ SELECT COUNT(*) FROM conf.scratch",
        COUNT,
    ];
    two.check((cached, script, "0 ok ok 0 2 0"))?;
    trials::until("1", || {
        Ok(two
            .reader
            .root("SELECT GROUP_CONCAT(id) FROM conf.scratch")?
            .lines()
            .last()
            .unwrap_or_default()
            .to_owned())
    })
}

/// Clients change their schema by it, behind rules that allow nothing but what they list.
fn init_db(driver: Driver) -> Outcome {
    let two = two(driver, Vendor::MariaDb)?;
    two.writer.root("DROP DATABASE conf2")?;
    rules(
        &two.proxy,
        "(rule_id, active, flagIN, schemaname, match_digest, next_query_flagIN, destination_hostgroup, OK_msg, error_msg, apply) VALUES \
         (1, 1, 0, 'conf2', NULL, NULL, 1, NULL, NULL, 0), (2, 1, 0, NULL, '^DO', 5, NULL, NULL, NULL, 1), \
         (3, 1, 5, NULL, '^SELECT', 0, 1, NULL, NULL, 1), (4, 1, 5, NULL, '.', 0, NULL, NULL, NULL, 0), \
         (5, 1, 0, NULL, '^SELECT', NULL, NULL, NULL, NULL, 1), (6, 1, 0, NULL, '.', NULL, NULL, NULL, 'not allowed', 1)",
    )?;
    let mut client = log_in(&two.proxy)?;
    let goes_to = |client: &mut Raw, schema: &str| {
        let said = client
            .command(&[b"\x02", schema.as_bytes()].concat())
            .and_then(|()| client.packet());
        match said.map_err(|error| error.to_string())? {
            error if error.first() == Some(&0xff) => Err(by_hand::complaint(&error).to_string()),
            _ => Ok(()),
        }
    };
    // Only the reader has it, and it goes there; what nobody has is its server's to refuse.
    goes_to(&mut client, "conf2")?;
    let words = goes_to(&mut client, "no_such_schema")
        .err()
        .unwrap_or_default();
    expect(words.starts_with("1049"), || {
        format!("no_such_schema: {words}")
    })?;
    goes_to(&mut client, "conf")?;
    // Between a statement and the next, which it is not.
    same(&two.one(&client.ask("DO 1")), "ok")?;
    goes_to(&mut client, "conf")?;
    same(&two.one(&client.ask(PORT)), "reader")?;
    same(&two.one(&client.ask("USE conf")), "1148")?;
    same(
        &two.proxy.admin(
            "SELECT rule_id, hits FROM stats_mysql_query_rules WHERE rule_id IN (1, 3, 4, 6)",
        )?,
        "1\t0\n3\t1\n4\t0\n6\t1",
    )?;
    same(
        &two.proxy.admin("SELECT COUNT(*), SUM(count_star) FROM stats_mysql_query_digest WHERE digest_text LIKE 'USE%'")?,
        "1\t1",
    )
}

fn weights(driver: Driver) -> Outcome {
    let two = two(driver, Vendor::MariaDb)?;
    let drawn = |outs: &str| -> Result<usize, String> {
        rules(
            &two.proxy,
            &format!(
                "(rule_id, active, flagIN, attributes, destination_hostgroup) VALUES \
                 (1, 1, 0, '{{\"flagOUTs\":[{outs}]}}', NULL), (2, 1, 5, '', 0), (3, 1, 6, '', 1)"
            ),
        )?;
        let said = two.told(&[PORT; 400])?;
        let told = said
            .split(' ')
            .filter(|word| ["writer", "reader"].contains(word))
            .count();
        expect(told == 400, || format!("{told} answers of 400: {said}"))?;
        Ok(said.matches("reader").count())
    };
    same(
        &drawn(r#"{"id":5,"weight":0},{"id":6,"weight":1}"#)?.to_string(),
        "400",
    )?;
    same(
        &drawn(r#"{"id":5,"weight":1},{"id":6,"weight":0}"#)?.to_string(),
        "0",
    )?;
    // Three of four; to be so far off is a chance of less than one in a million.
    let most = drawn(r#"{"id":5,"weight":1},{"id":6,"weight":3}"#)?;
    expect((250..=350).contains(&most), || {
        format!("{most} of 400 instead of 300")
    })
}

fn listeners(driver: Driver) -> Outcome {
    let mut two = two(driver, Vendor::MariaDb)?;
    let port = two.proxy.port;
    two.proxy.admin(&format!(
        "SET mysql-interfaces='127.0.0.1:{port};127.0.0.2:{port}'; SAVE MYSQL VARIABLES TO DISK; \
         INSERT INTO mysql_query_rules (active, proxy_addr, destination_hostgroup, apply) VALUES (1, '127.0.0.2', 1, 1); \
         LOAD MYSQL QUERY RULES TO RUNTIME; SAVE MYSQL QUERY RULES TO DISK"
    ))?;
    two.proxy.restart()?;
    for (host, server) in [("127.0.0.1", &two.writer), ("127.0.0.2", &two.reader)] {
        let said = command_line(port, "app", "secret", &[&format!("--host={host}")], PORT)?;
        same(&said, &server.port.to_string())
            .map_err(|words| format!("who came to {host}: {words}"))?;
    }
    Ok(())
}

const FIVE: &str = "SELECT 5";

fn timeouts(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let two = two(driver, vendor)?;
        let rule = |ms: u32| {
            format!("(active, match_digest, timeout, apply) VALUES (1, 'SLEEP', {ms}, 1)")
        };
        let short = rule(50);
        // A time that ran out is an error of the statement, and the session goes on.
        two.check((&short, &["SELECT SLEEP(600)", FIVE], "1907 5"))?;
        two.check((&short, &["SELECT 6", "DO SLEEP(600)", FIVE], "6 1907 5"))?;
        // The server is told to end it, and a transaction goes on. MySQL's SLEEP() answers 1 then
        // where it is all that is asked for.
        let ended = if vendor == Vendor::MySql {
            "ok ok 1 5"
        } else {
            "ok ok 1907 5"
        };
        let insert = "INSERT INTO conf.scratch VALUES (77, 'gone')";
        two.check((&short, &["BEGIN", insert, "SELECT SLEEP(600)", FIVE], ended))?;
        soon("0", || two.writer.transactions("TRUE"))?;
        same(
            two.writer
                .root("SELECT COUNT(*) FROM conf.scratch")?
                .lines()
                .last()
                .unwrap_or_default(),
            "0",
        )?;
        // A hint knows better than the rule, and the rule better than the variable, in both
        // directions.
        two.check((
            &short,
            &["SELECT /* query_timeout=600000 */ SLEEP(0.3)"],
            "0",
        ))?;
        // 0 is the default of all.
        two.check((
            &rule(0),
            &[
                "SELECT SLEEP(0.2)",
                "SELECT /* query_timeout=0 */ SLEEP(0.2)",
                FIVE,
            ],
            "0 0 5",
        ))?;
        two.check((
            &rule(600_000),
            &["SELECT /* query_timeout=50 */ SLEEP(600)", FIVE],
            "1907 5",
        ))?;
        two.check((
            "",
            &["SELECT /* query_timeout=50 */ SLEEP(600)", FIVE],
            "1907 5",
        ))?;
        set(&two.proxy, "SET mysql-default_query_timeout=1000")?;
        two.check((&rule(600_000), &["SELECT SLEEP(1.4)"], "0"))?;
        two.check(("", &["SELECT SLEEP(600)"], "1907"))?;
    }
    Ok(())
}

/// The server's numbers of connections that run this statement.
fn running(server: &Server, sql: &str) -> Result<Vec<String>, String> {
    let ids = server.root(&format!(
        "SELECT id FROM information_schema.processlist WHERE info = '{sql}'"
    ))?;
    Ok(ids
        .lines()
        .filter(|id| id.parse::<u64>().is_ok())
        .map(str::to_owned)
        .collect())
}

fn retries(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let two = two(driver, vendor)?;
        // Nobody gets past the lock.
        let mut locker = Raw::log_in(two.writer.port).map_err(|error| error.to_string())?;
        asked(&mut locker, "LOCK TABLES conf.numbers WRITE")?;
        // How often a statement comes to the server whose connection is ended each time, and what
        // the client reads then.
        let tried = |sql: &'static str| -> Result<String, String> {
            let mut client = log_in(&two.proxy)?;
            let client = thread::spawn(move || (client.ask(sql), client.ask(FIVE)));
            let mut killed: Vec<String> = Vec::new();
            let until = Instant::now() + HANGS;
            while !client.is_finished() {
                expect(Instant::now() < until, || {
                    format!("{sql} goes on after {} tries", killed.len())
                })?;
                let new: Vec<_> = running(&two.writer, sql)?
                    .into_iter()
                    .filter(|id| !killed.contains(id))
                    .collect();
                for id in new {
                    // Gone by itself, if it is gone.
                    let _ = two.writer.root(&format!("KILL {id}"));
                    killed.push(id);
                }
                thread::sleep(Duration::from_millis(10));
            }
            let (said, after) = client
                .join()
                .map_err(|_| "the client panicked".to_owned())?;
            Ok(format!(
                "{}: {}, {}",
                killed.len(),
                two.one(&said),
                two.one(&after)
            ))
        };
        let count = "SELECT COUNT(*) FROM conf.numbers";
        let rule = |retries: &str| {
            format!("(active, match_digest, retries, apply) VALUES (1, 'COUNT', {retries}, 1)")
        };
        for (rows, sql, wanted) in [
            (String::new(), count, "2: 2013, 5"),
            (rule("0"), count, "1: 2013, 5"),
            (rule("3"), count, "4: 2013, 5"),
            (
                rule("3"),
                "SELECT /* query_retries=0 */ COUNT(*) FROM conf.numbers",
                "1: 2013, 5",
            ),
            (
                rule("0"),
                "SELECT /* query_retries=2 */ COUNT(*) FROM conf.numbers",
                "3: 2013, 5",
            ),
            // What may have been done is not done again, whatever a rule says.
            (
                "(active, match_digest, retries, apply) VALUES (1, '^DELETE', 3, 1)".to_owned(),
                "DELETE FROM conf.numbers",
                "1: 2013, 5",
            ),
        ] {
            rules(&two.proxy, &rows)?;
            same(&tried(sql)?, wanted)
                .map_err(|words| format!("{vendor}, {rows}: {sql}\n{words}"))?;
        }
    }
    Ok(())
}

fn delays(driver: Driver) -> Outcome {
    let two = two(driver, Vendor::MariaDb)?;
    let rule = "(active, match_digest, delay, apply) VALUES (1, '^INSERT', 3600000, 1)";
    two.check((
        rule,
        &[
            "INSERT /* query_delay=0 */ INTO conf.scratch VALUES (1, 'at once')",
            FIVE,
        ],
        "ok 5",
    ))?;
    set(&two.proxy, "SET mysql-default_query_delay=1000000")?;
    let rule = "(active, match_digest, delay, apply) VALUES (1, '.', 0, 1)";
    two.check((
        rule,
        &["INSERT INTO conf.scratch VALUES (2, 'at once')", FIVE],
        "ok 5",
    ))?;
    // Who waits has sent nothing; ended, it never will.
    let mut client = log_in(&two.proxy)?;
    let waits = "INSERT /* query_delay=3600000 */ INTO conf.scratch VALUES (3, 'never')";
    client.query(waits).map_err(|error| error.to_string())?;
    let shown = format!(
        "SELECT COUNT(*) FROM stats_mysql_processlist WHERE SessionID = {} AND info LIKE '%never%'",
        client.id
    );
    trials::until("1", || two.proxy.admin(&shown))?;
    let mut killer = log_in(&two.proxy)?;
    asked(&mut killer, &format!("KILL QUERY {}", client.id))?;
    same(&two.one(&client.rows()), "1317")?;
    same(&two.one(&client.ask(FIVE)), "5")?;
    same(
        two.writer
            .root("SELECT GROUP_CONCAT(id) FROM conf.scratch")?
            .lines()
            .last()
            .unwrap_or_default(),
        "1,2",
    )
}

fn attributes(driver: Driver) -> Outcome {
    let two = two(driver, Vendor::MariaDb)?;
    let ours = "(active, match_digest, destination_hostgroup, apply) VALUES (1, '.', 1, 1)";
    two.check((ours, &[PORT], "reader"))?;
    let with = |rows: &str| {
        rules(
            &two.proxy,
            &format!("(rule_id, active, destination_hostgroup, attributes) VALUES {rows}"),
        )
    };
    let words = with("(1, 1, 0, 'flagOUTs')").err().unwrap_or_default();
    expect(words.contains("JSON_VALID"), || {
        format!("attributes that are no JSON: {words}")
    })?;
    let refused = with(
        r#"(1, 1, 0, '{"flagOUTs":[{"id":1}]}'), (2, 1, 0, '{"max_rows":-1}'), (3, 1, 0, '{"mirror_compare":1,"cache_invalidate":"yes"}')"#,
    );
    let words = refused.err().unwrap_or_default();
    for part in [
        "(rule_id 1)",
        "flagOUTs",
        "(rule_id 2)",
        "max_rows",
        "(rule_id 3)",
        "mirror_compare",
        "cache_invalidate",
    ] {
        expect(words.contains(part), || format!("no {part} in: {words}"))?;
    }
    // Nothing of it is in force.
    same(&two.told(&[PORT])?, "reader")?;
    // What others write there does not matter.
    two.check((
        "(active, match_digest, destination_hostgroup, attributes, apply) VALUES (1, '.', 1, '{\"team\":\"shop\"}', 1)",
        &[PORT],
        "reader",
    ))
}
