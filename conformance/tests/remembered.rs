//! FOUND_ROWS() and ROW_COUNT(): what a server remembers of a session's statement, asked for when
//! its connection has served others since. Each answer is that of a direct connection, or an error
//! that says that nobody knows.
#![forbid(unsafe_code)]

use std::thread;
use std::time::{Duration, Instant};

use conformance::clients::{Client, app};
use conformance::proxy::{Driver, Proxy, Wish};
use conformance::raw::{self, Raw};
use conformance::servers::{Server, Vendor};
use conformance::trials::{self, expect, soon};
use wire::caps;
use wire::response::Expect;

type Outcome = Result<(), String>;

fn main() {
    trials::run(&[
        ("counts_in_texts_are_those_of_the_session", in_texts),
        (
            "counts_in_prepared_statements_are_those_of_the_session",
            in_prepared,
        ),
        (
            "a_prepared_connection_id_is_the_sessions_own",
            number_in_prepared,
        ),
        (
            "warnings_that_mysql_does_not_prepare_are_asked_for_by_a_text",
            warnings_by_text,
        ),
        ("what_nobody_knows_is_said_and_not_made_up", unknown),
        (
            "found_rows_are_known_behind_each_kind_of_statement",
            behind_each,
        ),
        (
            "only_who_asks_for_found_rows_is_asked_for_them",
            only_who_asks,
        ),
    ])
}

/// A server with two hostgroups of so many connections each, where statements with the words `in
/// two` go to the second; and another such server, for whoever asks directly.
fn each(
    driver: Driver,
    connections: u32,
    work: impl Fn(Vendor, [&Server; 2], &Proxy) -> Outcome,
) -> Outcome {
    for vendor in [Vendor::MariaDb, Vendor::MySql]
        .into_iter()
        .filter(|vendor| vendor.programs().is_ok())
    {
        let (server, twin) = (Server::start(vendor)?, Server::start(vendor)?);
        for server in [&server, &twin] {
            server.root(
                "CREATE TABLE conf.kept (n BIGINT); CREATE TABLE conf.strange (n INT); INSERT INTO conf.strange VALUES (1), (2), (3), (4)",
            )?;
            let warm_up = conformance::cache::root().join("conformance/scenarios/warm-up.txt");
            let _ = Client::MariaDbCli.run(app(server.port), &warm_up);
        }
        let mut wish = Wish::in_front_of(&server);
        let of = |hostgroup| {
            format!(
                "{{ address = \"127.0.0.1\", port = {}, hostgroup = {hostgroup}, max_connections = {connections} }}",
                server.port
            )
        };
        wish.servers = format!("{},\n{}", of(0), of(1));
        wish.rules = "{ rule_id = 1, active = 1, match_pattern = \"in two\", destination_hostgroup = 1, apply = 1 }".to_owned();
        let proxy = Proxy::start(driver, &wish)?;
        work(vendor, [&server, &twin], &proxy).map_err(|error| format!("{vendor}: {error}"))?;
    }
    Ok(())
}

/// Words with numbers as wide as they are for everybody: MariaDB takes a constant of 21 digits for one digit wider in a sum.
fn alike(said: &str) -> String {
    said.replace(r"\x17\x00\x00\x00\x08", "wide")
        .replace(r"\x16\x00\x00\x00\x08", "wide")
}

/// A session through the proxy beside a direct one, and one that uses the same connections with
/// counts of its own.
struct Three {
    direct: Raw,
    client: Raw,
    stranger: Raw,
}

impl Three {
    fn log_in(twin: &Server, proxy: &Proxy) -> Result<Self, String> {
        let log_in = |port| Raw::log_in(port, caps::DEPRECATE_EOF);
        Ok(Self {
            direct: log_in(twin.port)?,
            client: log_in(proxy.port)?,
            stranger: log_in(proxy.port)?,
        })
    }

    fn disturb(&mut self) -> Outcome {
        for place in ["", " /* in two */"] {
            self.stranger
                .query(&format!("UPDATE conf.strange SET n = n + 1{place}"))?;
            self.stranger
                .query(&format!("SELECT id FROM conf.numbers LIMIT 7{place}"))?;
        }
        Ok(())
    }

    /// Compares what both are told by `ask`, when somebody else was there before.
    fn both(&mut self, what: &str, ask: impl Fn(&mut Raw) -> Result<String, String>) -> Outcome {
        self.disturb()?;
        let (wanted, found) = (
            alike(&ask(&mut self.direct)?),
            alike(&ask(&mut self.client)?),
        );
        expect(found == wanted, || {
            format!("{what}:\n{found}\ninstead of\n{wanted}")
        })
    }

    fn say(&mut self, sql: &str) -> Outcome {
        self.both(sql, |raw| raw.query(sql))
    }
}

const TEXTS: &[&[&str]] = &[
    &["SELECT id FROM conf.types", "SELECT FOUND_ROWS() + 0"],
    &[
        "SELECT id FROM conf.types",
        "SELECT 'x', 1 - FOUND_ROWS() AS n, FOUND_ROWS(), (FOUND_ROWS()), IF(FOUND_ROWS() > 1, 'a', 'b') = 'a'",
    ],
    &[
        "SELECT id FROM conf.types",
        "INSERT INTO conf.kept VALUES (FOUND_ROWS())",
        "SELECT n, FOUND_ROWS() FROM conf.kept",
        "DELETE FROM conf.kept",
    ],
    &[
        "SELECT id FROM conf.types",
        "SET @n = FOUND_ROWS()",
        "SELECT @n + 0",
    ],
    &[
        "SELECT id FROM conf.types",
        "SELECT FOUND_ROWS() + 5 INTO @m",
        "SELECT @m",
    ],
    // What the one that failed has still to tell is heard by a statement of ours.
    &[
        "SELECT id FROM conf.types",
        "INSERT INTO conf.numbers (id) VALUES (1)",
        "SET @n = FOUND_ROWS()",
        "SELECT @n + 0",
    ],
    &[
        "SELECT id FROM conf.types",
        "DELETE FROM conf.kept",
        "SELECT FOUND_ROWS() > 1",
    ],
    // It is what it was before a statement that finds none.
    &[
        "SELECT id FROM conf.types",
        "INSERT INTO conf.kept VALUES (1)",
        "DELETE FROM conf.kept",
        "SELECT FOUND_ROWS()",
    ],
    &[
        "SELECT id FROM conf.types LIMIT 2 OFFSET 1",
        "SELECT FOUND_ROWS()",
        "SELECT id FROM conf.types LIMIT 1, 2",
        "SELECT FOUND_ROWS() + 0",
    ],
    // Also where strings may be read in two ways, if nothing here is.
    &[
        "SET NAMES latin1",
        "SELECT id FROM conf.types LIMIT 2",
        "SELECT FOUND_ROWS() + 0 /* in two */",
        "SET NAMES utf8mb4",
    ],
    &[
        "SET sql_mode = 'NO_BACKSLASH_ESCAPES'",
        "SELECT id FROM conf.types LIMIT 1, 2",
        "SELECT FOUND_ROWS() + 0 /* in two */",
        "SET sql_mode = DEFAULT",
    ],
    &[
        "SELECT SQL_CALC_FOUND_ROWS id FROM conf.types LIMIT 1",
        "SELECT FOUND_ROWS() + 0",
    ],
    &[
        "SELECT SQL_CALC_FOUND_ROWS id FROM conf.types LIMIT 1",
        "BEGIN /* in two */",
        "SELECT FOUND_ROWS()",
        "COMMIT",
    ],
    &[
        "SELECT SQL_CALC_FOUND_ROWS id FROM conf.types LIMIT 1",
        "BEGIN /* in two */",
        "SELECT FOUND_ROWS() + 0",
        "COMMIT",
    ],
    &[
        "BEGIN",
        "SELECT id FROM conf.types",
        "SELECT FOUND_ROWS() + 0",
        "SELECT FOUND_ROWS() + 0",
        "COMMIT",
    ],
    // Not only what begins with SELECT finds rows.
    &[
        "WITH x AS (SELECT id FROM conf.types) SELECT * FROM x",
        "SELECT FOUND_ROWS()",
        "WITH x AS (SELECT id FROM conf.types) SELECT * FROM x LIMIT 1 OFFSET 1",
        "SELECT FOUND_ROWS() + 0",
    ],
    &[
        "SHOW TABLES FROM conf",
        "SELECT FOUND_ROWS()",
        "SHOW FULL COLUMNS FROM conf.types",
        "SELECT FOUND_ROWS() + 0",
    ],
    &[
        "DESC conf.types",
        "SELECT FOUND_ROWS()",
        "SHOW CHARACTER SET LIKE 'utf8%'",
        "SELECT FOUND_ROWS()",
    ],
    &[
        "SHOW OPEN TABLES LIKE 'none'",
        "SELECT FOUND_ROWS()",
        "SHOW TABLE STATUS FROM conf LIKE 'none'",
        "SELECT FOUND_ROWS()",
    ],
    &[
        "SELECT id FROM conf.types",
        "SHOW CREATE TABLE conf.types",
        "SELECT FOUND_ROWS()",
        "SELECT id FROM conf.types",
        "SHOW PRIVILEGES",
        "SELECT FOUND_ROWS() + 0",
    ],
    &[
        "SELECT SQL_CALC_FOUND_ROWS id FROM conf.types LIMIT 1",
        "SHOW TABLES FROM conf LIKE 'types' /* in two */",
        "SELECT FOUND_ROWS()",
    ],
    &[
        "SELECT SQL_CALC_FOUND_ROWS id FROM conf.types LIMIT 1",
        "WITH x AS (SELECT 1) SELECT * FROM x /* in two */",
        "SELECT FOUND_ROWS() + 0",
    ],
    // What the proxy answers itself is found, too.
    &[
        "SELECT SQL_CALC_FOUND_ROWS id FROM conf.types LIMIT 1",
        "SHOW COUNT(*) WARNINGS",
        "SELECT FOUND_ROWS()",
    ],
    &[
        "SELECT SQL_CALC_FOUND_ROWS id FROM conf.types LIMIT 1",
        "SELECT FOUND_ROWS()",
        "SELECT FOUND_ROWS()",
    ],
    // Where it is written is not where it was found.
    &[
        "SELECT SQL_CALC_FOUND_ROWS id FROM conf.types LIMIT 1",
        "INSERT INTO conf.kept VALUES (FOUND_ROWS()) /* in two */",
        "SELECT n FROM conf.kept",
        "DELETE FROM conf.kept",
    ],
    &[
        "INSERT INTO conf.kept VALUES (1), (2), (3)",
        "SELECT ROW_COUNT() + 1, 'x', ROW_COUNT() n",
        "DELETE FROM conf.kept",
        "SELECT -ROW_COUNT()",
    ],
];

const OF_MYSQL: &[&[&str]] = &[
    &[
        "TABLE conf.types",
        "SELECT FOUND_ROWS()",
        "TABLE conf.types LIMIT 2 OFFSET 1",
        "SELECT FOUND_ROWS() + 0",
    ],
    &["VALUES ROW(1), ROW(2), ROW(3)", "SELECT FOUND_ROWS()"],
];

fn in_texts(driver: Driver) -> Outcome {
    each(driver, 2, |vendor, [_, twin], proxy| {
        let mut three = Three::log_in(twin, proxy)?;
        let own = if vendor == Vendor::MySql {
            OF_MYSQL
        } else {
            &[]
        };
        for script in TEXTS.iter().chain(own) {
            for sql in *script {
                three
                    .say(sql)
                    .map_err(|error| format!("{script:?}: {error}"))?;
            }
        }
        // The number of the session is its own, and found.
        three.say("SELECT SQL_CALC_FOUND_ROWS id FROM conf.types LIMIT 1")?;
        let _numbers = (
            three.direct.query("SELECT CONNECTION_ID()")?,
            three.client.query("SELECT CONNECTION_ID()")?,
        );
        three.say("SELECT FOUND_ROWS()")?;
        // A reset leaves it.
        three.say("SELECT id FROM conf.types")?;
        three.both("COM_RESET_CONNECTION", |raw| {
            raw.ask(b"\x1F", Expect::Simple)
        })?;
        three.say("SELECT FOUND_ROWS() + 0")
    })
}

/// Libraries that prepare every statement (PDO, DBD::MariaDB, Connector/J) are told the number by
/// which the session is ended, too.
fn number_in_prepared(driver: Driver) -> Outcome {
    each(driver, 2, |_, [_, twin], proxy| {
        let mut three = Three::log_in(twin, proxy)?;
        let told = |raw: &mut Raw| -> Result<String, String> {
            raw.prepare("SELECT CONNECTION_ID() AS me")?;
            let said = raw.execute(0, 0, b"")? + &raw.execute(0, 0, b"")?;
            // A row, the third packet: no error, no NULL, the number.
            let row = format!(
                "3 {}",
                [&[0, 0], &raw.id.to_le_bytes()[..]].concat().escape_ascii()
            );
            Ok(said.replace(&row, "its number"))
        };
        three.disturb()?;
        let (wanted, found) = (told(&mut three.direct)?, told(&mut three.client)?);
        expect(wanted.matches("its number").count() == 2, || wanted.clone())?;
        expect(found == wanted, || format!("{found}\ninstead of\n{wanted}"))?;
        // Who asks for a cursor gets the row at once, as of other statements for which servers open
        // none.
        let plain = three.client.execute(0, 0, b"")?;
        let by_cursor = three.client.execute(0, 1, b"")?;
        expect(by_cursor == plain, || {
            format!("{by_cursor}\ninstead of\n{plain}")
        })?;
        number_and_more(proxy)
    })
}

/// As libraries do it that prepare what they can, also when they take their time.
fn warnings_by_text(driver: Driver) -> Outcome {
    each(driver, 2, |vendor, [_, twin], proxy| {
        let mut three = Three::log_in(twin, proxy)?;
        if vendor == Vendor::MariaDb {
            return prepared_by_mariadb(twin, proxy);
        }
        three.say("SELECT no_such_column")?;
        // Longer than mysql-handle_warnings_delay_ms.
        thread::sleep(Duration::from_millis(100));
        three.disturb()?;
        three.both("it is prepared", |raw| raw.prepare("SHOW WARNINGS"))?;
        three.say("SHOW WARNINGS")?;
        three.both("it is prepared again", |raw| raw.prepare("SHOW WARNINGS"))?;
        thread::sleep(Duration::from_millis(100));
        three.say("SHOW WARNINGS")
    })
}

/// MariaDB does prepare questions for warnings, whatever Millrace says to be.
fn prepared_by_mariadb(twin: &Server, proxy: &Proxy) -> Outcome {
    proxy.admin("SET mysql-server_version = '8.0.11'; LOAD MYSQL VARIABLES TO RUNTIME")?;
    let asked = [
        "SHOW WARNINGS",
        "SHOW ERRORS LIMIT 1",
        "SHOW COUNT(*) WARNINGS",
        "SHOW COUNT(*) ERRORS",
        "SELECT @@warning_count",
    ];
    for (results, said, word) in [
        (
            "utf8mb4",
            "INSERT IGNORE INTO conf.kept VALUES ('no number')",
            "no number",
        ),
        ("utf8mb4", "SELECT no_such_column", "no_such_column"),
        (
            "utf16",
            "INSERT IGNORE INTO conf.kept VALUES ('no number')",
            "no number",
        ),
    ] {
        for before in [false, true] {
            let mut three = Three::log_in(twin, proxy)?;
            let prepare = |three: &mut Three| {
                asked
                    .iter()
                    .try_for_each(|ask| three.both("it is prepared", |raw| raw.prepare(ask)))
            };
            if before {
                prepare(&mut three)?;
            }
            three.say(&format!("SET character_set_results = {results}"))?;
            three.say(said)?;
            // Longer than mysql-handle_warnings_delay_ms.
            thread::sleep(Duration::from_millis(100));
            if !before {
                prepare(&mut three)?;
            }
            // The column of a count is named in UTF-8.
            for (nth, ask) in
                asked
                    .iter()
                    .enumerate()
                    .take(if results == "utf16" { 2 } else { asked.len() })
            {
                three.both(&format!("{ask} is executed after {said}"), |raw| {
                    raw.execute(nth, 0, b"")
                })?;
            }
            let shown = three.client.execute(0, 0, b"")?.replace("\\x00", "");
            expect(shown.contains(word), || shown.clone())?;
        }
    }
    Ok(())
}

/// A question that a rule has changed is answered as the rule has made it.
fn number_and_more(proxy: &Proxy) -> Outcome {
    let rule = "(2, 1, '^SELECT CONNECTION_ID\\(\\) AS me$', 'SELECT CONNECTION_ID() AS me, 7 AS seven', 1)";
    let columns = "(rule_id, active, match_pattern, replace_pattern, apply)";
    proxy.admin(&format!(
        "INSERT INTO mysql_query_rules {columns} VALUES {rule}; LOAD MYSQL QUERY RULES TO RUNTIME"
    ))?;
    let mut client = Raw::log_in(proxy.port, caps::DEPRECATE_EOF)?;
    let (prepared, executed) = (
        client.prepare("SELECT CONNECTION_ID() AS me")?,
        client.execute(0, 0, b"")?,
    );
    expect(
        prepared.contains("seven") && executed.contains("seven"),
        || format!("{prepared}\n{executed}"),
    )
}

const PREPARED: &[&str] = &[
    "SELECT FOUND_ROWS()",
    "SELECT FOUND_ROWS() + ?, 'x'",
    "INSERT INTO conf.kept VALUES (FOUND_ROWS())",
    "SELECT ROW_COUNT()",
    "INSERT INTO conf.kept VALUES (ROW_COUNT() + ?) /* in two */",
    "SELECT SQL_CALC_FOUND_ROWS id FROM conf.types LIMIT 1",
    "SELECT id FROM conf.types",
    "SELECT FOUND_ROWS(), ROW_COUNT()",
    "WITH x AS (SELECT id FROM conf.types LIMIT 2) SELECT * FROM x",
];
/// A parameter: no NULL, its type follows, a BIGINT, 40.
const FORTY: &[u8] = b"\0\x01\x08\0\x28\0\0\0\0\0\0\0";

fn in_prepared(driver: Driver) -> Outcome {
    each(driver, 2, |vendor, [server, twin], proxy| {
        let mut three = Three::log_in(twin, proxy)?;
        for sql in PREPARED {
            three.both(sql, |raw| raw.prepare(sql))?;
        }
        let execute = |three: &mut Three, nth: usize| {
            let params = if PREPARED[nth].contains('?') {
                FORTY
            } else {
                b""
            };
            three
                .both(PREPARED[nth], |raw| raw.execute(nth, 0, params))
                .map_err(|error| format!("{nth}: {error}"))
        };
        for round in 0..3 {
            let said =
                |outcome: Outcome| outcome.map_err(|error| format!("round {round}: {error}"));
            for before in [
                "SELECT id FROM conf.types",
                "SELECT id FROM conf.types LIMIT 2",
                "SELECT id FROM conf.types WHERE id < 0",
            ] {
                for nth in [0, 1] {
                    said(three.say(before))?;
                    said(execute(&mut three, nth))?;
                }
                said(three.say(before))?;
                said(execute(&mut three, 2))?;
                said(three.say("SELECT n FROM conf.kept"))?;
                said(three.say("DELETE FROM conf.kept"))?;
                said(execute(&mut three, 3))?;
            }
            for nth in [5, 0, 5, 1, 5, 2, 6, 0, 6, 1, 6, 7, 8, 7, 8, 1] {
                said(execute(&mut three, nth))?;
            }
            // Nobody is there between the INSERT and the question, but others were before.
            said(execute(&mut three, 6))?;
            said(three.say("INSERT INTO conf.kept VALUES (1), (2), (3)"))?;
            let wanted = three.direct.execute(7, 0, b"")?;
            let found = three.client.execute(7, 0, b"")?;
            expect(found == wanted, || {
                format!("{vendor}: round {round}: {found}\ninstead of\n{wanted}")
            })?;
            said(three.say("DELETE FROM conf.kept"))?;
            said(three.say("INSERT INTO conf.kept VALUES (1), (2), (3)"))?;
            said(execute(&mut three, 4))?;
            said(three.say("SELECT n FROM conf.kept"))?;
            said(three.say("DELETE FROM conf.kept"))?;
            if round == 1 {
                said(three.say("BEGIN"))?;
            }
        }
        three.say("COMMIT")?;
        // Nothing is left of what was prepared for one execution.
        three.disturb()?;
        let open = server.root("SHOW GLOBAL STATUS LIKE 'Prepared_stmt_count'")?;
        let open: usize = open
            .split_whitespace()
            .last()
            .and_then(|n| n.parse().ok())
            .ok_or("no number")?;
        expect(open <= PREPARED.len() * 5 + 4, || {
            format!("{vendor}: {open} statements are prepared there")
        })
    })
}

/// From so long on a client counts as silent: the least time between what it says and its next
/// word.
const SILENT: Duration = Duration::from_millis(5);

fn unknown(driver: Driver) -> Outcome {
    each(driver, 1, |vendor, [_, twin], proxy| {
        let mut three = Three::log_in(twin, proxy)?;
        three.both("prepare", |raw| raw.prepare("SELECT FOUND_ROWS()"))?;
        // On a connection that was somebody else's before, nobody can say whether it has changed
        // the number.
        const EXPLAIN: &str = "EXPLAIN SELECT * FROM conf.kept";
        // 1235, and why.
        let is_said = |said: &str| {
            said.contains(
                r"\xff\xd3\x04#42000What FOUND_ROWS() is here is known on another connection only",
            )
        };
        for sql in [
            "SELECT FOUND_ROWS()",
            "SELECT FOUND_ROWS() + 0",
            "INSERT INTO conf.kept VALUES (FOUND_ROWS())",
            "SET @n = FOUND_ROWS()",
        ] {
            three.disturb()?;
            three.client.query(EXPLAIN)?;
            three.disturb()?;
            let said = three.client.query(sql)?;
            expect(is_said(&said), || format!("{vendor}: {sql}: {said}"))?;
            // Nobody was there in between. Who is silent for longer is asked for what was found
            // before the EXPLAIN, and then nobody knows what that leaves: a busy machine makes such
            // a silence.
            let of = |raw: &mut Raw| -> Result<(String, Duration), String> {
                let begun = Instant::now();
                raw.query("SELECT id FROM conf.types LIMIT 3 OFFSET 1000000")?;
                raw.query(EXPLAIN)?;
                let took = begun.elapsed();
                Ok((raw.query(sql)?, took))
            };
            let (wanted, _) = of(&mut three.direct)?;
            if raw::silence().is_some() {
                continue;
            }
            let quick = (0..100).find_map(|_| match of(&mut three.client) {
                Ok((said, took)) if is_said(&said) && took >= SILENT => None,
                found => Some(found),
            });
            let (found, _) = quick.ok_or("a hundred silences of 5 ms")??;
            expect(alike(&found) == alike(&wanted), || {
                format!("{vendor}: {sql}: {found:?} instead of {wanted:?}")
            })?;
        }
        // The string ends before the LIMIT for this session, which leaves out a row that was found.
        three.say("SET sql_mode = 'NO_BACKSLASH_ESCAPES'")?;
        three.say(r"SELECT id FROM conf.types WHERE 'C:\' <> '' LIMIT 1, 1")?;
        // The server is asked, as for any that only it knows.
        three.say("SELECT FOUND_ROWS()")?;
        three.say("SET sql_mode = DEFAULT")?;
        three.disturb()?;
        three.client.query(EXPLAIN)?;
        three.disturb()?;
        let said = three.client.execute(0, 0, b"")?;
        expect(is_said(&said), || format!("{vendor}: prepared: {said}"))?;
        three.say("SELECT id FROM conf.types")?;
        three.both("execute", |raw| raw.execute(0, 0, b""))?;
        three.say("SELECT n - FOUND_ROWS() FROM conf.kept WHERE n < 0")
    })
}

/// Statements of which it is known what each leaves FOUND_ROWS(), whoever was on the connection
/// before it and behind it.
const EACH: &[&str] = &[
    "INSERT INTO conf.kept SELECT id FROM conf.numbers LIMIT 3",
    "INSERT INTO conf.kept SELECT id FROM conf.numbers",
    "INSERT INTO conf.kept SELECT 5",
    "INSERT INTO conf.kept SELECT 5 UNION SELECT 6",
    "INSERT INTO conf.kept SELECT id FROM conf.numbers WHERE id < 0",
    "INSERT INTO conf.kept SELECT id FROM conf.numbers WHERE 0",
    "INSERT IGNORE INTO conf.kept SELECT id FROM conf.numbers LIMIT 4 OFFSET 2",
    "REPLACE INTO conf.kept SELECT id FROM conf.numbers LIMIT 3",
    "INSERT INTO conf.kept VALUES (1), (2)",
    "(SELECT id FROM conf.numbers LIMIT 3)",
    "(SELECT id FROM conf.numbers) LIMIT 3",
    "((SELECT id FROM conf.numbers LIMIT 9) ORDER BY id LIMIT 3)",
    "(SELECT id FROM conf.numbers LIMIT 3 OFFSET 2)",
    "(SELECT id FROM conf.numbers LIMIT 5) UNION ALL (SELECT id FROM conf.numbers LIMIT 5)",
    "(SELECT id FROM conf.numbers LIMIT 5) UNION ALL (SELECT id FROM conf.numbers LIMIT 5) LIMIT 3",
    "SELECT id FROM conf.numbers UNION ALL SELECT 1 LIMIT 2",
    "SELECT id FROM conf.numbers UNION SELECT 1 LIMIT 2",
    "SELECT id FROM conf.numbers UNION ALL SELECT 1 LIMIT 2 OFFSET 3",
    "SELECT id FROM conf.numbers EXCEPT SELECT 1 LIMIT 2",
    "SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 ORDER BY 1 LIMIT 1",
    "SELECT 1 UNION SELECT 2 UNION SELECT 3 LIMIT 5, 1",
    "SELECT id FROM conf.numbers LIMIT 3 OFFSET 1000000",
    "SELECT id FROM conf.numbers LIMIT 0 OFFSET 4",
    "SELECT id FROM conf.numbers LIMIT 1 INTO @a",
    "SELECT id FROM conf.numbers WHERE id < 0 INTO @a",
    "SELECT 5 INTO @a",
    "SELECT COUNT(*) FROM conf.numbers GROUP BY id LIMIT 4",
    "UPDATE conf.kept SET n = n + 1",
    "UPDATE conf.kept SET n = n",
    "UPDATE conf.kept SET n = n + 1 LIMIT 2",
    "DELETE FROM conf.kept WHERE n < 0",
    "CREATE TABLE conf.made (a INT)",
    "ALTER TABLE conf.made ADD b INT",
    "TRUNCATE TABLE conf.made",
    "DROP TABLE conf.made",
    "ANALYZE TABLE conf.strange",
    "FLUSH TABLES",
    "SAVEPOINT s",
    "SHOW ENGINE INNODB STATUS",
    "SHOW PROFILES",
    "SHOW PROFILE",
    "SHOW RELAYLOG EVENTS",
    "SHOW REPLICA STATUS",
    "SHOW GRANTS",
    "SHOW OPEN TABLES FROM conf LIKE 'none'",
    "SHOW FUNCTION STATUS",
    "SHOW STATUS LIKE 'Uptime'",
    "DELETE FROM conf.kept",
];

const EACH_OF_MARIADB: &[&str] = &[
    "SHOW PROCESSLIST",
    "SHOW AUTHORS",
    "ANALYZE SELECT * FROM conf.types",
    "ANALYZE FORMAT=JSON SELECT id FROM conf.numbers LIMIT 5",
    "UPDATE conf.kept SET n = 1 WHERE n = 77",
];

const EACH_OF_MYSQL: &[&str] = &[
    "DO 1, 2",
    "DO (SELECT id FROM conf.numbers LIMIT 1)",
    "EXPLAIN ANALYZE SELECT * FROM conf.types",
    "CREATE TABLE conf.made SELECT id FROM conf.numbers LIMIT 3",
    "DROP TABLE conf.made",
    "SET @x = (SELECT MAX(id) FROM conf.numbers)",
    "SELECT COUNT(*) FROM conf.numbers WHERE 0",
    "SELECT MAX(id) FROM (SELECT id FROM conf.numbers LIMIT 4) AS four",
];

/// Of these it is nobody's to know where the connection was somebody else's before, and the same as
/// directly, or said not to be known.
const UNCERTAIN: &[&str] = &[
    "EXPLAIN SELECT * FROM conf.types",
    "EXPLAIN SELECT 1",
    "EXPLAIN FORMAT=JSON SELECT * FROM conf.types",
    "EXPLAIN UPDATE conf.kept SET n = 1",
    "EXPLAIN SELECT * FROM (SELECT 1) AS x",
    "INSERT INTO conf.kept VALUES ((SELECT MAX(id) FROM conf.numbers))",
    "UPDATE conf.kept SET n = 1 WHERE 0",
    "UPDATE conf.kept SET n = 1 WHERE n = 7777777",
    "UPDATE conf.kept SET n = (SELECT MAX(id) FROM conf.numbers)",
    "UPDATE conf.kept, conf.strange SET kept.n = 9 WHERE kept.n = strange.n",
    "DELETE conf.kept FROM conf.kept JOIN conf.strange ON kept.n = strange.n",
    "DELETE FROM conf.kept WHERE n = (SELECT MAX(id) + 5 FROM conf.numbers)",
    "SELECT COUNT(*) FROM conf.numbers WHERE 0",
    "SELECT COUNT(*) FROM conf.numbers WHERE id = 7777",
    "SELECT MAX(id) FROM conf.numbers",
    "SELECT MAX(id) FROM (SELECT id FROM conf.numbers LIMIT 4) AS four",
    "DO 1",
    "INSERT INTO conf.kept SELECT MAX(id) FROM conf.numbers WHERE 0",
    "DO 1, (SELECT 5)",
    "SET @x = (SELECT 5)",
    "SHOW PROCESSLIST",
    "HELP 'select'",
    "CHECKSUM TABLE conf.strange",
    "SELECT no_column FROM conf.numbers",
];

fn behind_each(driver: Driver) -> Outcome {
    each(driver, 1, |vendor, [_, twin], proxy| {
        let mut three = Three::log_in(twin, proxy)?;
        // Who asks for it once is one who does.
        three.say("SELECT id FROM conf.types")?;
        three.say("SELECT FOUND_ROWS()")?;
        let own = if vendor == Vendor::MySql {
            EACH_OF_MYSQL
        } else {
            EACH_OF_MARIADB
        };
        let mut wrong = Vec::new();
        let known = EACH.iter().chain(own).map(|sql| (sql, true));
        for (sql, known) in known.chain(UNCERTAIN.iter().map(|sql| (sql, false))) {
            for ask in ["SELECT FOUND_ROWS()", "SELECT FOUND_ROWS() + 0"] {
                three.say("SELECT id FROM conf.numbers LIMIT 7")?;
                three.disturb()?;
                let (wanted, found) = (three.direct.query(sql)?, three.client.query(sql)?);
                let fails = |said: &str| said.contains(r"\xff");
                if fails(&wanted) != fails(&found) {
                    wrong.push(format!("{sql}: {found}\ninstead of\n{wanted}"));
                }
                three.disturb()?;
                let (wanted, found) = (three.direct.query(ask)?, three.client.query(ask)?);
                let is_said = found.contains(r"\xff\xd3\x04#42000What FOUND_ROWS() is here is known on another connection only");
                let wide = |said: &str| {
                    said.replace(r"\x17\x00\x00\x00\x08", "wide")
                        .replace(r"\x16\x00\x00\x00\x08", "wide")
                };
                if wide(&wanted) != wide(&found) && (known || !is_said) {
                    wrong.push(format!("{ask} behind {sql}: {found}\ninstead of\n{wanted}"));
                }
            }
        }
        expect(wrong.is_empty(), || wrong.join("\n"))
    })
}

fn only_who_asks(driver: Driver) -> Outcome {
    each(driver, 2, |vendor, [server, _], proxy| {
        let mut client = Raw::log_in(proxy.port, caps::DEPRECATE_EOF)?;
        let holds = format!(
            "SELECT hold FROM stats_mysql_session_holds WHERE SessionID = {}",
            client.id
        );
        let mut asked = |asks: bool| -> Result<u64, String> {
            let selects = || -> Result<u64, String> {
                let said = server.root("SHOW GLOBAL STATUS LIKE 'Com_select'")?;
                said.split_whitespace()
                    .last()
                    .and_then(|n| n.parse().ok())
                    .ok_or_else(|| format!("no number in {said}"))
            };
            if asks {
                client.query("SELECT FOUND_ROWS()")?;
            }
            // A new connection is asked for what it has set.
            client.query("DELETE FROM conf.kept")?;
            let before = selects()?;
            for _ in 0..5 {
                client.query("INSERT INTO conf.kept SELECT id FROM conf.numbers LIMIT 3")?;
                // Whoever is to be asked has been.
                soon("", || Ok(proxy.admin(&holds)?.trim().to_owned()))?;
            }
            Ok(selects()? - before)
        };
        let (quiet, asking) = (asked(false)?, asked(true)?);
        // MySQL's command line may ask something itself.
        expect(quiet <= 1 && asking >= quiet + 5, || {
            format!("{vendor}: {quiet} and {asking} questions")
        })
    })
}
