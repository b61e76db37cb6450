//! PREPARE, EXECUTE and DEALLOCATE PREPARE in SQL: where they go and whose names they are. And what
//! is left on servers of all that clients prepare, however they do it and however they go.
#![forbid(unsafe_code)]

use std::fmt::Write as _;
use std::thread;

use conformance::beside::{beside, settled};
use conformance::by_hand::{self, Raw};
use conformance::clients::{Client, app};
use conformance::proxy::{Driver, Proxy, Wish};
use conformance::raw;
use conformance::servers::{Server, Vendor, vendors};
use conformance::statements::prepare;
use conformance::trials::{self, expect, same};
use wire::response::Expect;

type Outcome = Result<(), String>;

fn main() {
    trials::run(&[
        ("an_execute_in_sql_goes_where_its_text_goes", routed),
        ("an_execute_immediate_goes_where_its_text_goes", immediate),
        ("names_in_sql_are_those_of_their_session", names),
        (
            "what_the_proxy_cannot_follow_stays_on_its_connection",
            pinned,
        ),
        ("a_text_of_a_variable_is_that_of_its_session", own_texts),
        (
            "what_only_a_server_can_read_finds_what_its_session_has_left",
            unread,
        ),
        (
            "preparing_a_statement_does_nothing_of_what_it_says",
            prepares_only,
        ),
        ("a_reset_and_another_user_forget_the_names", forgotten),
        ("statements_in_sql_outlive_their_connections", outlive),
        ("statements_in_sql_on_a_server_are_bounded", bounded),
        ("names_of_a_client_are_bounded", limited),
        (
            "what_clients_prepare_never_piles_up_on_servers",
            never_piles_up,
        ),
        (
            "names_of_ours_are_used_again_on_a_connection_that_travels",
            travels,
        ),
        (
            "the_statement_prepared_last_is_executed_by_minus_one",
            minus_one,
        ),
        ("a_call_by_name_goes_where_its_text_goes", calls_by_name),
        (
            "a_text_that_rules_turn_into_a_call_finds_the_names",
            rewritten_to_a_call,
        ),
        (
            "what_the_proxy_refuses_is_a_statement_that_failed",
            refusals_count,
        ),
    ])
}

/// A writer in hostgroup 0 and a reader in hostgroup 1.
struct Two {
    writer: Server,
    reader: Server,
    proxy: Proxy,
}

/// Reads go to the reader.
const RULES: &str = "INSERT INTO mysql_query_rules (rule_id, active, match_digest, destination_hostgroup, apply) VALUES
    (1, 1, '^SELECT.*FOR UPDATE', 0, 1), (2, 1, '^SELECT', 1, 1); LOAD MYSQL QUERY RULES TO RUNTIME";

fn two(driver: Driver, vendor: Vendor) -> Result<Two, String> {
    let (writer, reader) = (Server::start(vendor)?, Server::start(vendor)?);
    for server in [&writer, &reader] {
        server.root(by_hand::CREATE_USER)?;
    }
    let mut wish = Wish::in_front_of(&writer);
    wish.add_open_user();
    let _ = write!(
        wish.servers,
        ",\n{{ address = \"127.0.0.1\", port = {}, hostgroup = 1 }}",
        reader.port
    );
    let proxy = Proxy::start(driver, &wish)?;
    proxy.admin(RULES)?;
    Ok(Two {
        writer,
        reader,
        proxy,
    })
}

fn one(driver: Driver, vendor: Vendor) -> Result<(Server, Proxy), String> {
    by_hand::one(driver, vendor)
}

fn log_in(proxy: &Proxy) -> Result<Raw, String> {
    Raw::log_in(proxy.port).map_err(|error| error.to_string())
}

/// The first field of the first row, nothing if there is none; an error in words.
fn said(client: &mut Raw, sql: &str) -> String {
    match client.ask(sql) {
        Ok(rows) => rows
            .into_iter()
            .next()
            .and_then(|row| row.into_iter().next())
            .unwrap_or_default(),
        Err(error) => error.to_string(),
    }
}

fn all(client: &mut Raw, steps: &[(&str, &str)]) -> Outcome {
    for (sql, wanted) in steps {
        let found = said(client, sql);
        expect(found == *wanted, || {
            format!("{sql}: wanted {wanted:?}, found {found:?}")
        })?;
    }
    Ok(())
}

/// Statements that are prepared on a server.
fn prepared_on(server: &Server) -> Result<u64, String> {
    let said = server.root("SHOW GLOBAL STATUS LIKE 'Prepared_stmt_count'")?;
    said.split_whitespace()
        .last()
        .and_then(|word| word.parse().ok())
        .ok_or(said)
}

const UNKNOWN: &str = "1243 HY000 Unknown prepared statement handler (s) given to EXECUTE";

fn routed(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let two = two(driver, vendor)?;
        let (writer, reader) = (two.writer.port.to_string(), two.reader.port.to_string());
        let mut client = log_in(&two.proxy)?;
        all(
            &mut client,
            &[
                ("PREPARE s FROM 'SELECT @@port + ?'", ""),
                ("SET @zero = 0", ""),
                ("EXECUTE s USING @zero", &reader),
                ("BEGIN", ""),
                ("EXECUTE s USING @zero", &writer),
                ("COMMIT", ""),
                ("EXECUTE s USING @zero", &reader),
                (
                    "PREPARE w FROM 'INSERT INTO conf.scratch VALUES (?, @@port)'",
                    "",
                ),
                ("EXECUTE w USING @zero", ""),
                (
                    "PREPARE l FROM 'SELECT words FROM conf.scratch WHERE id = ? FOR UPDATE'",
                    "",
                ),
                ("EXECUTE l USING @zero", &writer),
                ("DEALLOCATE PREPARE s", ""),
                ("EXECUTE s USING @zero", UNKNOWN),
            ],
        )?;
        same(
            two.reader
                .root("SELECT COUNT(*) FROM conf.scratch")?
                .lines()
                .last()
                .unwrap_or_default(),
            "0",
        )?;
        // The error's connection is kept for a moment, and then what it says.
        trials::soon("", || settled(&two.proxy, &mut client))?;
        // The rules of the moment count, and what they are asked with is the text.
        let digests = two.proxy.admin("SELECT REPLACE(digest_text, '+', ''), hostgroup FROM stats_mysql_query_digest WHERE digest_text LIKE '%port%?' ORDER BY hostgroup")?;
        expect(
            digests.contains("SELECT @@port  ?\t0") && digests.contains("SELECT @@port  ?\t1"),
            || format!("digests: {digests}"),
        )?;
        all(
            &mut client,
            &[
                ("PREPARE s FROM 'SELECT @@port'", ""),
                ("EXECUTE s", &reader),
            ],
        )?;
        two.proxy.admin("UPDATE mysql_query_rules SET active = 0 WHERE rule_id = 2; LOAD MYSQL QUERY RULES TO RUNTIME")?;
        all(&mut client, &[("EXECUTE s", &writer)])
            .map_err(|why| format!("without the rule: {why}"))?;
        // What a rule makes of a text is prepared, and rules are asked with the text.
        two.proxy.admin(
            "INSERT INTO mysql_query_rules (rule_id, active, match_pattern, replace_pattern, destination_hostgroup, apply)
             VALUES (3, 1, 'here', '@@port, ''it''''s''', 1, 1); LOAD MYSQL QUERY RULES TO RUNTIME",
        )?;
        all(
            &mut client,
            &[("PREPARE s FROM 'SELECT here'", ""), ("EXECUTE s", &reader)],
        )
        .map_err(|why| format!("rewritten: {why}"))?;
        two.proxy.admin(
            "INSERT INTO mysql_query_rules (rule_id, active, match_digest, error_msg, apply) VALUES (0, 1, 'forbidden', 'not here', 1);
             LOAD MYSQL QUERY RULES TO RUNTIME",
        )?;
        all(
            &mut client,
            &[
                ("PREPARE s FROM 'SELECT forbidden'", "1148 42000 not here"),
                ("EXECUTE s", UNKNOWN),
            ],
        )?;
    }
    Ok(())
}

fn immediate(driver: Driver) -> Outcome {
    let two = two(driver, Vendor::MariaDb)?;
    let (writer, reader) = (two.writer.port.to_string(), two.reader.port.to_string());
    let mut client = log_in(&two.proxy)?;
    all(
        &mut client,
        &[
            ("EXECUTE IMMEDIATE 'SELECT @@port'", &reader),
            ("EXECUTE IMMEDIATE 'SELECT @@port + ?' USING 0", &reader),
            ("EXECUTE IMMEDIATE 'SELECT @@port FOR UPDATE'", &writer),
            ("SET @q = 'SELECT @@port + ?', @zero = 0", ""),
            ("EXECUTE IMMEDIATE @q USING @zero", &reader),
            ("BEGIN", ""),
            ("EXECUTE IMMEDIATE @q USING @zero", &writer),
            ("COMMIT", ""),
        ],
    )?;
    same(&settled(&two.proxy, &mut client)?, "")?;
    two.proxy.admin(
        "INSERT INTO mysql_query_rules (rule_id, active, match_pattern, replace_pattern, destination_hostgroup, apply)
         VALUES (0, 1, 'here', '@@port, ''it''''s''', 1, 1); LOAD MYSQL QUERY RULES TO RUNTIME",
    )?;
    all(&mut client, &[("EXECUTE IMMEDIATE 'SELECT here'", &reader)])?;
    // What an argument asks for, a reader may answer otherwise.
    all(
        &mut client,
        &[(
            "EXECUTE IMMEDIATE 'SELECT @@port + ?' USING @@read_only * 0",
            &writer,
        )],
    )
}

fn unread(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (server, proxy) = one(driver, vendor)?;
        server.root("CREATE TABLE conf.parents (id INT PRIMARY KEY AUTO_INCREMENT)")?;
        let mut a = log_in(&proxy)?;
        let mut b = beside(&proxy, &a)?;
        all(&mut a, &[("INSERT INTO conf.parents VALUES ()", "")])?;
        trials::soon("", || settled(&proxy, &mut a))?;
        all(&mut b, &[("INSERT INTO conf.parents VALUES (), ()", "")])?;
        trials::soon("", || settled(&proxy, &mut b))?;
        // Not ASCII: what it means is the server's to say.
        let question = "SET @q = 'SELECT LAST_INSERT_ID(), LENGTH(''\u{e9}'')'";
        all(&mut a, &[(question, ""), ("PREPARE s FROM @q", "")])?;
        let id = said(&mut a, "EXECUTE s");
        expect(id.starts_with('1'), || format!("{vendor}: the id is {id}"))?;
        all(&mut a, &[("DEALLOCATE PREPARE s", "")])?;
        if vendor == Vendor::MariaDb {
            all(
                &mut b,
                &[(
                    "EXECUTE IMMEDIATE CONCAT('SELECT ', 'LAST_INSERT_ID()')",
                    "2",
                )],
            )?;
        }
    }
    Ok(())
}

fn names(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (server, proxy) = one(driver, vendor)?;
        let mut a = log_in(&proxy)?;
        let mut b = beside(&proxy, &a)?;
        all(
            &mut a,
            &[
                ("PREPARE s FROM 'SELECT ''a'''", ""),
                ("EXECUTE s", "a"),
                ("PREPARE only_a FROM 'SELECT 1'", ""),
            ],
        )?;
        all(
            &mut b,
            &[("PREPARE s FROM 'SELECT ''b'''", ""), ("EXECUTE s", "b")],
        )?;
        all(&mut a, &[("EXECUTE s", "a")])?;
        all(&mut b, &[("EXECUTE s", "b")])?;
        // All of it took one connection, which one of them had at a time.
        same(
            &proxy.admin("SELECT ConnUsed + ConnFree FROM stats_mysql_connection_pool")?,
            "1",
        )?;
        all(
            &mut b,
            &[("EXECUTE only_a", &UNKNOWN.replace("(s)", "(only_a)"))],
        )?;
        // The same text under another mode is another statement.
        all(
            &mut a,
            &[
                ("SET sql_mode = 'PIPES_AS_CONCAT'", ""),
                ("PREPARE s FROM 'SELECT 1 || 0'", ""),
                ("EXECUTE s", "10"),
            ],
        )?;
        all(
            &mut b,
            &[("PREPARE s FROM 'SELECT 1 || 0'", ""), ("EXECUTE s", "1")],
        )?;
        all(
            &mut a,
            &[
                ("SET sql_mode = DEFAULT", ""),
                ("EXECUTE s", "10"),
                ("SELECT 1 || 0", "1"),
            ],
        )?;
        // The names on servers are nobody's to use.
        for name in ["millrace_1", "MILLRACE_1", "`millrace_1`"] {
            let refused = said(&mut b, &format!("EXECUTE {name}"));
            expect(refused.starts_with("1243 "), || {
                format!("EXECUTE {name}: {refused}")
            })?;
        }
        all(
            &mut b,
            &[
                ("PREPARE millrace_1 FROM 'SELECT 5'", ""),
                ("EXECUTE millrace_1", "5"),
            ],
        )?;
        all(&mut a, &[("EXECUTE s", "10")])?;
        drop((a, b, server));
    }
    Ok(())
}

fn pinned(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (_server, proxy) = one(driver, vendor)?;
        let mut client = log_in(&proxy)?;
        all(
            &mut client,
            &[
                ("PREPARE plain FROM 'SELECT 1'", ""),
                ("PREPARE s FROM 'SELECT FOUND_ROWS()'", ""),
            ],
        )?;
        let holds = settled(&proxy, &mut client)?;
        expect(holds.contains("SqlPrepare"), || holds)?;
        all(
            &mut client,
            &[
                ("EXECUTE plain", "1"),
                ("SELECT 1 FROM conf.numbers LIMIT 3", "1"),
                ("EXECUTE s", "3"),
                ("DEALLOCATE PREPARE s", ""),
            ],
        )?;
        all(
            &mut client,
            &[("EXECUTE s", UNKNOWN), ("EXECUTE plain", "1")],
        )?;
        // A procedure may use any name: all of them are there then, and only there.
        let mut other = beside(&proxy, &client)?;
        all(
            &mut other,
            &[
                ("PREPARE s FROM 'SELECT 7 INTO @got'", ""),
                ("PREPARE t FROM 'SELECT 8'", ""),
                ("CREATE PROCEDURE conf.runs() EXECUTE s", ""),
            ],
        )?;
        same(&settled(&proxy, &mut other)?, "")?;
        all(
            &mut other,
            &[
                // Who takes one result only may not call it; by then the names are there.
                (
                    "CALL conf.runs()",
                    "1312 0A000 PROCEDURE conf.runs can't return a result set in the given context",
                ),
                ("EXECUTE s", ""),
                ("SELECT @got", "7"),
                ("EXECUTE t", "8"),
            ],
        )?;
        let holds = settled(&proxy, &mut other)?;
        expect(holds.contains("SqlPrepare"), || holds)?;
    }
    Ok(())
}

/// The other session's value is on the connection that both use.
fn own_texts(driver: Driver) -> Outcome {
    let (_server, proxy) = one(driver, Vendor::MariaDb)?;
    let mut a = log_in(&proxy)?;
    let mut b = beside(&proxy, &a)?;
    for _ in 0..3 {
        all(
            &mut a,
            &[("SET @q = 'SELECT ''a'''", ""), ("SELECT @q", "SELECT 'a'")],
        )?;
        all(
            &mut b,
            &[
                ("SET @q = 'SELECT ''b'''", ""),
                ("EXECUTE IMMEDIATE @q", "b"),
            ],
        )?;
        all(
            &mut a,
            &[
                ("SET @q = 'SELECT ''new'''", ""),
                ("EXECUTE IMMEDIATE @q", "new"),
            ],
        )?;
    }
    Ok(())
}

fn prepares_only(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (_server, proxy) = one(driver, vendor)?;
        let mut client = log_in(&proxy)?;
        all(
            &mut client,
            &[
                ("CREATE TEMPORARY TABLE conf.of_one (a INT)", ""),
                ("PREPARE s FROM 'DROP TABLE conf.of_one'", ""),
            ],
        )?;
        same(&settled(&proxy, &mut client)?, "TemporaryTable")?;
        let id = prepare(&mut client, "DROP TABLE conf.of_one")?;
        same(&settled(&proxy, &mut client)?, "TemporaryTable")?;
        client
            .command(&of(0x17, id))
            .map_err(|error| error.to_string())?;
        let _ok = client.packet().map_err(|error| error.to_string())?;
        same(&settled(&proxy, &mut client)?, "")?;
        // A statement that cannot be prepared any more leaves the schema as it is.
        all(
            &mut client,
            &[
                ("CREATE TABLE conf.goes (a INT)", ""),
                ("USE conf", ""),
                ("PREPARE s FROM 'SELECT * FROM goes'", ""),
                ("DROP TABLE conf.goes", ""),
                ("USE conf2", ""),
                ("CREATE PROCEDURE conf.nothing() SELECT 1 INTO @x", ""),
                ("CALL conf.nothing()", ""),
                ("SELECT DATABASE()", "conf2"),
            ],
        )?;
    }
    Ok(())
}

fn forgotten(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (_server, proxy) = one(driver, vendor)?;
        let mut client = log_in(&proxy)?;
        all(
            &mut client,
            &[("PREPARE s FROM 'SELECT 1'", ""), ("EXECUTE s", "1")],
        )?;
        client.command(&[0x1F]).map_err(|error| error.to_string())?;
        let _ok = client.packet().map_err(|error| error.to_string())?;
        all(
            &mut client,
            &[
                ("EXECUTE s", UNKNOWN),
                ("PREPARE s FROM 'SELECT 2'", ""),
                ("EXECUTE s", "2"),
            ],
        )?;
        // COM_CHANGE_USER to the same user.
        let login = [
            b"\x11",
            by_hand::USER.as_bytes(),
            b"\0\0\0\x2D\0mysql_native_password\0",
        ]
        .concat();
        client.command(&login).map_err(|error| error.to_string())?;
        let mut answer = client.packet().map_err(|error| error.to_string())?;
        if answer.first() == Some(&0xfe) {
            client.send(b"").map_err(|error| error.to_string())?;
            answer = client.packet().map_err(|error| error.to_string())?;
        }
        expect(answer.first() == Some(&0), || {
            format!("{}", answer.escape_ascii())
        })?;
        all(&mut client, &[("EXECUTE s", UNKNOWN)])?;
        same(
            &proxy.admin("SELECT Variable_Value FROM stats_mysql_global WHERE Variable_Name = 'Stmt_Client_Active_Total'")?,
            "0",
        )?;
    }
    Ok(())
}

fn outlive(driver: Driver) -> Outcome {
    let (mut server, proxy) = one(driver, Vendor::MariaDb)?;
    let mut client = log_in(&proxy)?;
    all(
        &mut client,
        &[
            ("SET @a = 5", ""),
            ("PREPARE s FROM 'SELECT ? + 1'", ""),
            ("EXECUTE s USING @a", "6"),
        ],
    )?;
    server.restart()?;
    all(&mut client, &[("EXECUTE s USING @a", "6")])?;
    // Whoever takes it away on the server itself is not noticed.
    server.kill();
    server.restart()?;
    all(
        &mut client,
        &[("EXECUTE s USING @a", "6"), ("DEALLOCATE PREPARE s", "")],
    )
}

fn bounded(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (server, proxy) = one(driver, vendor)?;
        proxy.admin("SET mysql-max_stmts_per_connection=5; LOAD MYSQL VARIABLES TO RUNTIME")?;
        let mut client = log_in(&proxy)?;
        let mut other = beside(&proxy, &client)?;
        for n in 0..60 {
            all(
                &mut client,
                &[(&format!("PREPARE s{n} FROM 'SELECT {n}, ?'"), "")],
            )?;
        }
        for n in 0..60 {
            all(
                &mut client,
                &[(&format!("EXECUTE s{n} USING @x"), &n.to_string())],
            )?;
            all(
                &mut other,
                &[
                    (&format!("PREPARE s FROM 'SELECT {n}'"), ""),
                    ("EXECUTE s", &n.to_string()),
                ],
            )?;
        }
        let connections =
            proxy.admin("SELECT SUM(ConnUsed + ConnFree) FROM stats_mysql_connection_pool")?;
        let connections: u64 = connections
            .trim()
            .parse()
            .map_err(|_| connections.clone())?;
        let prepared = prepared_on(&server)?;
        expect(prepared > 0 && prepared <= 5 * connections, || {
            format!("{prepared} statements on {connections} connections")
        })?;
        let counted = "SELECT Variable_Value FROM stats_mysql_global WHERE Variable_Name = 'Stmt_Client_Active_Total'";
        same(&proxy.admin(counted)?, "61")?;
        drop((client, other));
        trials::soon("0", || Ok(proxy.admin(counted)?.trim().to_owned()))?;
    }
    Ok(())
}

fn limited(driver: Driver) -> Outcome {
    let (_server, proxy) = one(driver, Vendor::MariaDb)?;
    proxy.admin("SET mysql-stmts_per_client_max=3; LOAD MYSQL VARIABLES TO RUNTIME")?;
    let mut client = log_in(&proxy)?;
    for n in 0..3 {
        all(
            &mut client,
            &[(&format!("PREPARE s{n} FROM 'SELECT {n}'"), "")],
        )?;
    }
    let refused =
        "1461 42000 Can't create more than max_prepared_stmt_count statements (current value: 3)";
    all(
        &mut client,
        &[
            ("PREPARE s3 FROM 'SELECT 3'", refused),
            ("PREPARE s2 FROM 'SELECT ''new'''", ""),
            ("EXECUTE s2", "new"),
            ("DEALLOCATE PREPARE s1", ""),
            ("PREPARE s3 FROM 'SELECT 3'", ""),
            ("EXECUTE s3", "3"),
        ],
    )
}

fn calls_by_name(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let two = two(driver, vendor)?;
        let (writer, reader) = (two.writer.port.to_string(), two.reader.port.to_string());
        for server in [&two.writer, &two.reader] {
            server.root("CREATE PROCEDURE conf.here(OUT place INT) SET place = @@port")?;
        }
        two.proxy.admin(
            "INSERT INTO mysql_query_rules (rule_id, active, match_digest, destination_hostgroup, OK_msg, error_msg, apply) VALUES
             (0, 1, '^CALL conf.here', 1, NULL, NULL, 1), (3, 1, '^CALL conf.nowhere', NULL, 'nothing is done', NULL, 1),
             (4, 1, '^CALL conf.never', NULL, NULL, 'not here', 1); LOAD MYSQL QUERY RULES TO RUNTIME",
        )?;
        let mut client = log_in(&two.proxy)?;
        all(
            &mut client,
            &[
                ("PREPARE c FROM 'CALL conf.here(?)'", ""),
                ("PREPARE n FROM 'CALL conf.nowhere(?)'", ""),
                ("EXECUTE n USING @x", ""),
                ("PREPARE n FROM 'CALL conf.never()'", "1148 42000 not here"),
                ("EXECUTE n", &UNKNOWN.replace("(s)", "(n)")),
                ("PREPARE s FROM 'SELECT @@port'", ""),
            ],
        )?;
        trials::soon("", || settled(&two.proxy, &mut client))?;
        all(
            &mut client,
            &[
                ("EXECUTE c USING @place", ""),
                ("SELECT @place", &reader),
                // The procedure may have used any name, or changed it: they are where it was.
                ("EXECUTE s", &reader),
                ("SELECT @@port FOR UPDATE", &writer),
            ],
        )?;
        let holds = settled(&two.proxy, &mut client)?;
        expect(
            holds.contains("Procedure") && holds.contains("SqlPrepare"),
            || holds,
        )?;
        let digests = two.proxy.admin("SELECT digest_text, hostgroup, SUM(count_star) FROM stats_mysql_query_digest WHERE digest_text LIKE 'CALL%' GROUP BY 1, 2 ORDER BY 1")?;
        expect(digests.starts_with("CALL conf.here(?)\t1\t2\n"), || {
            digests.clone()
        })?;
        if vendor == Vendor::MariaDb {
            let mut client = log_in(&two.proxy)?;
            all(
                &mut client,
                &[
                    ("PREPARE s FROM 'SELECT 1'", ""),
                    ("EXECUTE IMMEDIATE 'CALL conf.here(?)' USING @place", ""),
                    ("SELECT @place", &reader),
                    (
                        "EXECUTE IMMEDIATE 'CALL conf.never()'",
                        "1148 42000 not here",
                    ),
                    ("EXECUTE IMMEDIATE 'CALL conf.nowhere()'", ""),
                ],
            )?;
        }
    }
    Ok(())
}

fn rewritten_to_a_call(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (server, proxy) = one(driver, vendor)?;
        server.root("CREATE PROCEDURE conf.runs() EXECUTE mine")?;
        proxy.admin(
            "INSERT INTO mysql_query_rules (rule_id, active, match_pattern, replace_pattern, apply) VALUES (1, 1, '^SELECT run_it$', 'CALL conf.runs()', 1);
             LOAD MYSQL QUERY RULES TO RUNTIME",
        )?;
        let mut ways = vec![["PREPARE s FROM 'SELECT run_it'", "EXECUTE s"]];
        if vendor == Vendor::MariaDb {
            ways.push(["DO 0", "EXECUTE IMMEDIATE 'SELECT run_it'"]);
        }
        let warm_up = conformance::cache::root().join("conformance/scenarios/warm-up.txt");
        let _either_way = Client::MariaDbCli.run(app(server.port), &warm_up);
        for way in ways {
            // A client that takes several results.
            let mut client = raw::Raw::log_in(proxy.port, 0)?;
            for sql in ["PREPARE mine FROM 'SELECT ''it ran'''", way[0]] {
                client.query(sql)?;
            }
            for sql in [way[1], "EXECUTE mine"] {
                let said = client.query(sql)?;
                expect(said.contains("it ran"), || {
                    format!("{vendor}, {sql}: {said}")
                })?;
            }
        }
    }
    Ok(())
}

fn refusals_count(driver: Driver) -> Outcome {
    let (_server, proxy) = one(driver, Vendor::MariaDb)?;
    proxy.admin(
        "SET mysql-stmts_per_client_max=1; LOAD MYSQL VARIABLES TO RUNTIME;
         INSERT INTO mysql_query_rules (rule_id, active, match_digest, error_msg, apply) VALUES (1, 1, '^SELECT forbidden', 'not here', 1);
         LOAD MYSQL QUERY RULES TO RUNTIME",
    )?;
    let questions = || {
        proxy.admin(
            "SELECT Variable_Value FROM stats_mysql_global WHERE Variable_Name = 'Questions'",
        )
    };
    for refused in [
        "SELECT forbidden",
        "PREPARE t FROM 'SELECT 2'",
        "EXECUTE millrace_1",
        "DEALLOCATE PREPARE millrace_1",
        "PREPARE millrace_2 FROM 'SHOW WARNINGS'",
    ] {
        let mut client = log_in(&proxy)?;
        let before: u64 = questions()?.trim().parse().unwrap_or_default();
        all(
            &mut client,
            &[
                ("PREPARE s FROM 'SELECT 1'", ""),
                ("INSERT INTO conf.counted (words) VALUES ('a'), ('b')", ""),
                ("SELECT ROW_COUNT()", "2"),
            ],
        )?;
        all(&mut client, &[("SELECT CAST('x' AS SIGNED)", "0")])?;
        let told = said(&mut client, refused);
        expect(
            told.split(' ')
                .next()
                .is_some_and(|code| code.parse::<u16>().is_ok()),
            || format!("{refused}: {told}"),
        )?;
        // The warnings of the statement before are over; the refusal is an error, as a server's is.
        all(
            &mut client,
            &[
                ("SHOW WARNINGS", "Error"),
                ("INSERT INTO conf.counted (words) VALUES ('c'), ('d')", ""),
            ],
        )?;
        let _again = client.ask(refused);
        all(&mut client, &[("SELECT ROW_COUNT()", "-1")])?;
        let after: u64 = questions()?.trim().parse().unwrap_or_default();
        expect(after - before == 9, || {
            format!("{refused}: {} statements", after - before)
        })?;
    }
    Ok(())
}

/// COM_STMT_EXECUTE, or COM_STMT_CLOSE: the command.
fn of(command: u8, id: u32) -> Vec<u8> {
    let more: &[u8] = if command == 0x17 {
        &[0, 1, 0, 0, 0]
    } else {
        &[]
    };
    [&[command][..], &id.to_le_bytes(), more].concat()
}

/// Does what one client after another does who is careless with statements.
fn careless(port: u16, number: usize, times: usize) -> Outcome {
    let words = |error: std::io::Error| error.to_string();
    let log_in = || Raw::log_in(port).map_err(words);
    let mut client = log_in()?;
    for n in 0..times {
        let text = format!("SELECT {n} + {number}000, 'of many'");
        let executed = |client: &mut Raw, id| -> Outcome {
            client.command(&of(0x17, id)).map_err(words)?;
            client.each_row(|_| {}).map_err(words)
        };
        match n % 8 {
            0 => {
                let id = prepare(&mut client, &text)?;
                executed(&mut client, id)?;
                client.command(&of(0x19, id)).map_err(words)?;
            }
            1 | 2 => {
                let id = prepare(&mut client, &text)?;
                executed(&mut client, id)?;
            }
            3 => {
                let quoted = text.replace('\'', "''");
                client
                    .ask(&format!("PREPARE s FROM '{quoted}'"))
                    .map_err(words)?;
                client.ask("EXECUTE s").map_err(words)?;
                client.ask("DEALLOCATE PREPARE s").map_err(words)?;
            }
            4 => {
                let quoted = text.replace('\'', "''");
                client
                    .ask(&format!("PREPARE s{n} FROM '{quoted}'"))
                    .map_err(words)?;
                client.ask(&format!("EXECUTE s{n}")).map_err(words)?;
            }
            5 => {
                prepare(&mut client, &text)?;
                client.command(&[0x1F]).map_err(words)?;
                let _ok = client.packet().map_err(words)?;
            }
            6 => {
                // It goes in the middle of an execution.
                let id = prepare(&mut client, "SELECT SLEEP(0.01), 'of many'")?;
                client.command(&of(0x17, id)).map_err(words)?;
                client = log_in()?;
            }
            _ => {
                client.ask("BEGIN").map_err(words)?;
                let id = prepare(&mut client, &text)?;
                executed(&mut client, id)?;
                client
                    .ask("PREPARE here FROM 'SELECT FOUND_ROWS()'")
                    .map_err(words)?;
                client = log_in()?;
            }
        }
    }
    Ok(())
}

/// Clients prepare thousands, and the server allows 1500: one that is forgotten here and not there
/// would count until nobody can prepare any more.
fn never_piles_up(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let server = Server::start_with(vendor, &["--max-prepared-stmt-count=1500"])?;
        server.root(by_hand::CREATE_USER)?;
        let mut wish = Wish::in_front_of(&server);
        wish.add_open_user();
        wish.variables
            .push_str("    max_stmts_per_connection = 10\n    max_stmts_cache = 128\n");
        let proxy = Proxy::start(driver, &wish)?;
        let port = proxy.port;
        for _round in 0..2 {
            let clients: Vec<_> = (1..5)
                .map(|number| thread::spawn(move || careless(port, number, 400)))
                .collect();
            for client in clients {
                client
                    .join()
                    .map_err(|_| "panicked".to_owned())?
                    .map_err(|why| format!("{vendor}: {why}"))?;
            }
            // A server notices in its own time that a connection is gone.
            trials::soon("fine", || {
                let connections = proxy
                    .admin("SELECT SUM(ConnUsed + ConnFree) FROM stats_mysql_connection_pool")?;
                let connections: u64 = connections
                    .trim()
                    .parse()
                    .map_err(|_| connections.clone())?;
                let prepared = prepared_on(&server)?;
                // So many by id, as many by name; what is closed goes along with the next command.
                Ok(if prepared <= connections * 24 {
                    "fine".to_owned()
                } else {
                    format!("{vendor}: {prepared} statements on {connections} connections")
                })
            })?;
        }
        let counted = "SELECT Variable_Value FROM stats_mysql_global WHERE Variable_Name = 'Stmt_Client_Active_Total'";
        trials::soon("0", || Ok(proxy.admin(counted)?.trim().to_owned()))?;
        let asked = proxy
            .admin("SELECT Variable_Value + 0 > 2000 FROM stats_mysql_global WHERE Variable_Name = 'Com_backend_stmt_prepare'")?;
        same(&asked, "1")?;
        proxy.admin(
            "UPDATE mysql_servers SET status = 'OFFLINE_HARD'; LOAD MYSQL SERVERS TO RUNTIME",
        )?;
        trials::soon("0", || Ok(prepared_on(&server)?.to_string()))?;
        let counted = "SELECT Variable_Value FROM stats_mysql_global WHERE Variable_Name = 'Stmt_Server_Active_Total'";
        trials::soon("0", || Ok(proxy.admin(counted)?.trim().to_owned()))?;
    }
    Ok(())
}

/// Two cores have one connection between them: what one has prepared there the other does not know.
fn travels(driver: Driver) -> Outcome {
    let (server, proxy) = one(driver, Vendor::MariaDb)?;
    proxy.admin("UPDATE mysql_servers SET max_connections = 1; LOAD MYSQL SERVERS TO RUNTIME")?;
    let mut clients = [log_in(&proxy)?, log_in(&proxy)?];
    let counter = |name: &str| {
        let said = proxy.admin(&format!(
            "SELECT Variable_Value FROM stats_mysql_global WHERE Variable_Name = '{name}'"
        ))?;
        said.trim().parse::<u64>().map_err(|_| said)
    };
    for round in 0..12 {
        for client in &mut clients {
            for number in 0..8 {
                let wanted = round * 10 + number;
                let mut ask =
                    |sql: &str| client.ask(sql).map_err(|error| format!("{sql}: {error}"));
                ask(&format!("PREPARE s FROM 'SELECT {wanted}'"))?;
                let found = ask("EXECUTE s")?;
                expect(found == [[wanted.to_string()]], || {
                    format!("{wanted}: {found:?}")
                })?;
            }
        }
    }
    let lent = counter("Millrace_server_connections_lent")?;
    expect(lent >= 10, || format!("{lent} were lent"))?;
    same(&counter("Server_Connections_created")?.to_string(), "1")?;
    let prepared = prepared_on(&server)?;
    expect(prepared <= 40, || {
        format!(
            "{prepared} statements are prepared on the one connection, which was lent {lent} times"
        )
    })
}

/// MariaDB's clients send a PREPARE and its EXECUTE at once: the id is not known by then.
fn minus_one(driver: Driver) -> Outcome {
    let server = Server::start(Vendor::MariaDb)?;
    let proxy = Proxy::start(driver, &Wish::in_front_of(&server))?;
    let does = |port| -> Result<String, String> {
        let mut client = raw::Raw::log_in(port, 0)?;
        let mut seen = client.prepare("SELECT 'first', ?")?;
        let last = |client: &mut raw::Raw| {
            client.ask(
                b"\x17\xff\xff\xff\xff\0\x01\0\0\0\0\x01\x08\0\x07\0\0\0\0\0\0\0",
                Expect::Execute,
            )
        };
        seen += &last(&mut client)?;
        seen += &client.prepare("SELECT ? + 1, 'second'")?;
        seen += &last(&mut client)?;
        seen += &client.query("SELECT 'between'")?;
        seen += &last(&mut client)?;
        // Both at once.
        client.send(0, b"\x16SELECT 'third', ? * 2")?;
        client.send(
            0,
            b"\x17\xff\xff\xff\xff\0\x01\0\0\0\0\x01\x08\0\x07\0\0\0\0\0\0\0",
        )?;
        seen += &client.answer(Expect::Prepare)?;
        seen += &client.answer(Expect::Execute)?;
        seen += &client.prepare("SELEC 1")?;
        seen += &last(&mut client)?;
        Ok(seen)
    };
    same(&does(proxy.port)?, &does(server.port)?)
}
