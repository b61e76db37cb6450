//! FOUND_ROWS() and ROW_COUNT(): what a server remembers of a session's statement, asked for when its connection has served others since. Each answer is
//! that of a direct connection, or an error that says that nobody knows.
#![forbid(unsafe_code)]

use std::thread;
use std::time::Duration;

use conformance::clients::{Client, app};
use conformance::proxy::{Driver, Proxy, Wish};
use conformance::raw::Raw;
use conformance::servers::{Server, Vendor};
use conformance::trials::{self, expect};
use wire::caps;
use wire::response::Expect;

type Outcome = Result<(), String>;

fn main() {
    trials::run(&[
        ("counts_in_texts_are_those_of_the_session", in_texts),
        ("counts_in_prepared_statements_are_those_of_the_session", in_prepared),
        ("a_prepared_connection_id_is_the_sessions_own", number_in_prepared),
        ("warnings_that_mysql_does_not_prepare_are_asked_for_by_a_text", warnings_by_text),
        ("what_nobody_knows_is_said_and_not_made_up", unknown),
    ])
}

/// A server with two hostgroups of so many connections each, where statements with the words `in two` go to the second; and another such server, for whoever
/// asks directly.
fn each(driver: Driver, connections: u32, work: impl Fn(Vendor, [&Server; 2], &Proxy) -> Outcome) -> Outcome {
    for vendor in [Vendor::MariaDb, Vendor::MySql].into_iter().filter(|vendor| vendor.programs().is_ok()) {
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

/// A session through the proxy beside a direct one, and one that uses the same connections with counts of its own.
struct Three {
    direct: Raw,
    client: Raw,
    stranger: Raw,
}

impl Three {
    fn log_in(twin: &Server, proxy: &Proxy) -> Result<Self, String> {
        let log_in = |port| Raw::log_in(port, caps::DEPRECATE_EOF);
        Ok(Self { direct: log_in(twin.port)?, client: log_in(proxy.port)?, stranger: log_in(proxy.port)? })
    }

    fn disturb(&mut self) -> Outcome {
        for place in ["", " /* in two */"] {
            self.stranger.query(&format!("UPDATE conf.strange SET n = n + 1{place}"))?;
            self.stranger.query(&format!("SELECT id FROM conf.numbers LIMIT 7{place}"))?;
        }
        Ok(())
    }

    /// What both are told by `ask`, when somebody else was there before.
    fn both(&mut self, what: &str, ask: impl Fn(&mut Raw) -> Result<String, String>) -> Outcome {
        self.disturb()?;
        // MariaDB takes a constant of 21 digits for one digit wider in a sum.
        let alike = |said: String| said.replace(r"\x17\x00\x00\x00\x08", "wide").replace(r"\x16\x00\x00\x00\x08", "wide");
        let (wanted, found) = (alike(ask(&mut self.direct)?), alike(ask(&mut self.client)?));
        expect(found == wanted, || format!("{what}:\n{found}\ninstead of\n{wanted}"))
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
    &["SELECT id FROM conf.types", "SET @n = FOUND_ROWS()", "SELECT @n + 0"],
    &["SELECT id FROM conf.types", "SELECT FOUND_ROWS() + 5 INTO @m", "SELECT @m"],
    // What the one that failed has still to tell is heard by a statement of ours.
    &["SELECT id FROM conf.types", "INSERT INTO conf.numbers (id) VALUES (1)", "SET @n = FOUND_ROWS()", "SELECT @n + 0"],
    &["SELECT id FROM conf.types", "DELETE FROM conf.kept", "SELECT FOUND_ROWS() > 1"],
    // It is what it was before a statement that finds none.
    &["SELECT id FROM conf.types", "INSERT INTO conf.kept VALUES (1)", "DELETE FROM conf.kept", "SELECT FOUND_ROWS()"],
    &[
        "SELECT id FROM conf.types LIMIT 2 OFFSET 1",
        "SELECT FOUND_ROWS()",
        "SELECT id FROM conf.types LIMIT 1, 2",
        "SELECT FOUND_ROWS() + 0",
    ],
    // Also where strings may be read in two ways, if nothing here is.
    &["SET NAMES latin1", "SELECT id FROM conf.types LIMIT 2", "SELECT FOUND_ROWS() + 0 /* in two */", "SET NAMES utf8mb4"],
    &[
        "SET sql_mode = 'NO_BACKSLASH_ESCAPES'",
        "SELECT id FROM conf.types LIMIT 1, 2",
        "SELECT FOUND_ROWS() + 0 /* in two */",
        "SET sql_mode = DEFAULT",
    ],
    &["SELECT SQL_CALC_FOUND_ROWS id FROM conf.types LIMIT 1", "SELECT FOUND_ROWS() + 0"],
    &["SELECT SQL_CALC_FOUND_ROWS id FROM conf.types LIMIT 1", "BEGIN /* in two */", "SELECT FOUND_ROWS()", "COMMIT"],
    &["SELECT SQL_CALC_FOUND_ROWS id FROM conf.types LIMIT 1", "BEGIN /* in two */", "SELECT FOUND_ROWS() + 0", "COMMIT"],
    &["BEGIN", "SELECT id FROM conf.types", "SELECT FOUND_ROWS() + 0", "SELECT FOUND_ROWS() + 0", "COMMIT"],
    // Not only what begins with SELECT finds rows.
    &[
        "WITH x AS (SELECT id FROM conf.types) SELECT * FROM x",
        "SELECT FOUND_ROWS()",
        "WITH x AS (SELECT id FROM conf.types) SELECT * FROM x LIMIT 1 OFFSET 1",
        "SELECT FOUND_ROWS() + 0",
    ],
    &["SHOW TABLES FROM conf", "SELECT FOUND_ROWS()", "SHOW FULL COLUMNS FROM conf.types", "SELECT FOUND_ROWS() + 0"],
    &["DESC conf.types", "SELECT FOUND_ROWS()", "SHOW CHARACTER SET LIKE 'utf8%'", "SELECT FOUND_ROWS()"],
    &["SHOW OPEN TABLES LIKE 'none'", "SELECT FOUND_ROWS()", "SHOW TABLE STATUS FROM conf LIKE 'none'", "SELECT FOUND_ROWS()"],
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
    &["SELECT SQL_CALC_FOUND_ROWS id FROM conf.types LIMIT 1", "SHOW COUNT(*) WARNINGS", "SELECT FOUND_ROWS()"],
    &["SELECT SQL_CALC_FOUND_ROWS id FROM conf.types LIMIT 1", "SELECT FOUND_ROWS()", "SELECT FOUND_ROWS()"],
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
    &["TABLE conf.types", "SELECT FOUND_ROWS()", "TABLE conf.types LIMIT 2 OFFSET 1", "SELECT FOUND_ROWS() + 0"],
    &["VALUES ROW(1), ROW(2), ROW(3)", "SELECT FOUND_ROWS()"],
];

fn in_texts(driver: Driver) -> Outcome {
    each(driver, 2, |vendor, [_, twin], proxy| {
        let mut three = Three::log_in(twin, proxy)?;
        let own = if vendor == Vendor::MySql { OF_MYSQL } else { &[] };
        for script in TEXTS.iter().chain(own) {
            for sql in *script {
                three.say(sql).map_err(|error| format!("{script:?}: {error}"))?;
            }
        }
        // The number of the session is its own, and found.
        three.say("SELECT SQL_CALC_FOUND_ROWS id FROM conf.types LIMIT 1")?;
        let _numbers = (three.direct.query("SELECT CONNECTION_ID()")?, three.client.query("SELECT CONNECTION_ID()")?);
        three.say("SELECT FOUND_ROWS()")?;
        // A reset leaves it.
        three.say("SELECT id FROM conf.types")?;
        three.both("COM_RESET_CONNECTION", |raw| raw.ask(b"\x1F", Expect::Simple))?;
        three.say("SELECT FOUND_ROWS() + 0")
    })
}

/// Libraries that prepare every statement (PDO, DBD::MariaDB, Connector/J) are told the number by which the session is ended, too.
fn number_in_prepared(driver: Driver) -> Outcome {
    each(driver, 2, |_, [_, twin], proxy| {
        let mut three = Three::log_in(twin, proxy)?;
        let told = |raw: &mut Raw| -> Result<String, String> {
            raw.prepare("SELECT CONNECTION_ID() AS me")?;
            let said = raw.execute(0, 0, b"")? + &raw.execute(0, 0, b"")?;
            // A row, the third packet: no error, no NULL, the number.
            let row = format!("3 {}", [&[0, 0], &raw.id.to_le_bytes()[..]].concat().escape_ascii());
            Ok(said.replace(&row, "its number"))
        };
        three.disturb()?;
        let (wanted, found) = (told(&mut three.direct)?, told(&mut three.client)?);
        expect(wanted.matches("its number").count() == 2, || wanted.clone())?;
        expect(found == wanted, || format!("{found}\ninstead of\n{wanted}"))?;
        // Who asks for a cursor gets the row at once, as of other statements for which servers open none.
        let plain = three.client.execute(0, 0, b"")?;
        let by_cursor = three.client.execute(0, 1, b"")?;
        expect(by_cursor == plain, || format!("{by_cursor}\ninstead of\n{plain}"))?;
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

/// It does prepare it, whatever Millrace says to be.
fn prepared_by_mariadb(twin: &Server, proxy: &Proxy) -> Outcome {
    proxy.admin("SET mysql-server_version = '8.0.11'; LOAD MYSQL VARIABLES TO RUNTIME")?;
    let mut three = Three::log_in(twin, proxy)?;
    // From then on the connection stays, however silent the client is.
    three.both("it is prepared", |raw| raw.prepare("SHOW WARNINGS"))?;
    three.say("INSERT IGNORE INTO conf.kept VALUES ('no number')")?;
    thread::sleep(Duration::from_millis(100));
    three.both("it is executed", |raw| raw.execute(0, 0, b""))?;
    let shown = three.client.execute(0, 0, b"")?;
    expect(shown.contains("no number"), || shown.clone())
}

/// What a rule has made of the question is what is answered.
fn number_and_more(proxy: &Proxy) -> Outcome {
    let rule = "(2, 1, '^SELECT CONNECTION_ID\\(\\) AS me$', 'SELECT CONNECTION_ID() AS me, 7 AS seven', 1)";
    let columns = "(rule_id, active, match_pattern, replace_pattern, apply)";
    proxy.admin(&format!("INSERT INTO mysql_query_rules {columns} VALUES {rule}; LOAD MYSQL QUERY RULES TO RUNTIME"))?;
    let mut client = Raw::log_in(proxy.port, caps::DEPRECATE_EOF)?;
    let (prepared, executed) = (client.prepare("SELECT CONNECTION_ID() AS me")?, client.execute(0, 0, b"")?);
    expect(prepared.contains("seven") && executed.contains("seven"), || format!("{prepared}\n{executed}"))
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
            let params = if PREPARED[nth].contains('?') { FORTY } else { b"" };
            three.both(PREPARED[nth], |raw| raw.execute(nth, 0, params)).map_err(|error| format!("{nth}: {error}"))
        };
        for round in 0..3 {
            let said = |outcome: Outcome| outcome.map_err(|error| format!("round {round}: {error}"));
            for before in
                ["SELECT id FROM conf.types", "SELECT id FROM conf.types LIMIT 2", "SELECT id FROM conf.types WHERE id < 0"]
            {
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
            expect(found == wanted, || format!("{vendor}: round {round}: {found}\ninstead of\n{wanted}"))?;
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
        let open: usize = open.split_whitespace().last().and_then(|n| n.parse().ok()).ok_or("no number")?;
        expect(open <= PREPARED.len() * 5 + 4, || format!("{vendor}: {open} statements are prepared there"))
    })
}

fn unknown(driver: Driver) -> Outcome {
    each(driver, 1, |vendor, [_, twin], proxy| {
        let mut three = Three::log_in(twin, proxy)?;
        three.both("prepare", |raw| raw.prepare("SELECT FOUND_ROWS()"))?;
        const UNION: &str = "SELECT id FROM conf.types UNION ALL SELECT 1 LIMIT 2";
        // 1235, and why.
        let is_said =
            |said: &str| said.contains(r"\xff\xd3\x04#42000What FOUND_ROWS() is here is known on another connection only");
        for sql in [
            "SELECT FOUND_ROWS()",
            "SELECT FOUND_ROWS() + 0",
            "INSERT INTO conf.kept VALUES (FOUND_ROWS())",
            "SET @n = FOUND_ROWS()",
        ] {
            three.say(UNION)?;
            three.disturb()?;
            let said = three.client.query(sql)?;
            expect(is_said(&said), || format!("{vendor}: {sql}: {said}"))?;
            // Nobody was there in between.
            let wanted = (three.direct.query(UNION)?, three.direct.query(sql)?);
            let found = (three.client.query(UNION)?, three.client.query(sql)?);
            expect(found == wanted, || format!("{vendor}: {sql}: {found:?} instead of {wanted:?}"))?;
        }
        // The string ends before the LIMIT for this session, which leaves out a row that was found.
        three.say("SET sql_mode = 'NO_BACKSLASH_ESCAPES'")?;
        three.say(r"SELECT id FROM conf.types WHERE 'C:\' <> '' LIMIT 1, 1")?;
        three.disturb()?;
        let said = three.client.query("SELECT FOUND_ROWS()")?;
        expect(is_said(&said), || format!("{vendor}: without escapes: {said}"))?;
        three.say("SET sql_mode = DEFAULT")?;
        three.say(UNION)?;
        three.disturb()?;
        let said = three.client.execute(0, 0, b"")?;
        expect(is_said(&said), || format!("{vendor}: prepared: {said}"))?;
        three.say("SELECT id FROM conf.types")?;
        three.both("execute", |raw| raw.execute(0, 0, b""))?;
        three.say("SELECT n - FOUND_ROWS() FROM conf.kept WHERE n < 0")
    })
}
