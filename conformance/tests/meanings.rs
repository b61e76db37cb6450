//! What texts do that their first words do not say: two sessions that share connections, compared
//! with two that do not.
#![forbid(unsafe_code)]

use std::thread;
use std::time::Duration;

use conformance::beside::{asked, beside, beside_with, narrow, set, settled};
use conformance::by_hand::{self, Raw};
use conformance::clients::app;
use conformance::proxy::{Driver, Proxy};
use conformance::raw;
use conformance::servers::{Server, Vendor, vendors};
use conformance::statements;
use conformance::trials::{self, expect, same};

type Outcome = Result<(), String>;

fn main() {
    trials::run(&[
        ("a_sequence_of_oracle_mode_is_the_sessions_own", oracle),
        (
            "a_number_that_the_default_of_a_column_took_is_the_sessions_own",
            numbers_by_default,
        ),
        (
            "ids_made_inside_of_other_statements_are_the_sessions_own",
            ids,
        ),
        (
            "what_is_analyzed_runs_with_the_sessions_variables",
            analyzed,
        ),
        ("a_variable_in_an_xpath_is_the_sessions", xpath),
        ("a_blank_above_ascii_hides_nothing", blanks),
        ("a_blank_is_what_servers_take_for_one", blanks_of_servers),
        ("what_hides_behind_names_and_comments_is_seen", hidden),
        ("what_is_cached_ends_with_every_write", written),
        (
            "what_dollars_quote_hides_nothing_from_the_firewall",
            dollars,
        ),
        (
            "what_a_binary_log_numbers_is_no_state_of_a_session",
            binary_log,
        ),
        ("a_function_of_the_server_is_known_as_one", functions),
        (
            "commands_that_the_proxy_answers_leave_the_row_count_of_servers",
            row_counts,
        ),
    ])
}

fn log_in(proxy: &Proxy) -> Result<Raw, String> {
    Raw::log_in(proxy.port).map_err(|error| error.to_string())
}

fn is(client: &mut Raw, sql: &str, wanted: &[&str]) -> Outcome {
    let said = asked(client, sql)?.concat();
    expect(said == wanted, || {
        format!("{sql}: {said:?} instead of {wanted:?}")
    })
}

/// As [`alike`], and no server refuses any of it.
fn alike_and_well(
    driver: Driver,
    vendor: Vendor,
    options: &[&str],
    setup: &str,
    rules: &str,
    said: &[(usize, &str)],
) -> Outcome {
    let told = alike(driver, vendor, options, setup, rules, said)?;
    told.iter()
        .find(|told| told.contains("Err("))
        .map_or(Ok(()), |refused| {
            Err(format!("{vendor} refuses: {refused}"))
        })
}

/// Two sessions say this, directly and then through the proxy, where they share two connections;
/// they are told the same: this.
fn alike(
    driver: Driver,
    vendor: Vendor,
    options: &[&str],
    setup: &str,
    rules: &str,
    said: &[(usize, &str)],
) -> Result<Vec<String>, String> {
    let (server, proxy) = by_hand::one_with(driver, vendor, options)?;
    let two = "UPDATE mysql_servers SET max_connections = 2; LOAD MYSQL SERVERS TO RUNTIME";
    proxy.admin(&format!(
        "{two}; {rules}; LOAD MYSQL QUERY RULES TO RUNTIME"
    ))?;
    let mut told = Vec::new();
    for through in [false, true] {
        server.root(setup)?;
        let mut clients = if through {
            let first = log_in(&proxy)?;
            let second = beside(&proxy, &first)?;
            [first, second]
        } else {
            let direct = || Raw::log_in(server.port).map_err(|error| error.to_string());
            [direct()?, direct()?]
        };
        let mut all = Vec::new();
        for (who, sql) in said {
            let answer = clients
                .get_mut(*who)
                .ok_or("nobody")?
                .ask(sql)
                .map_err(|error| error.to_string());
            all.push(format!("{who}: {sql}: {answer:?}"));
            // So long that a session gives its connection back.
            thread::sleep(Duration::from_millis(20));
        }
        told.push(all);
    }
    let proxied = told.pop().unwrap_or_default();
    let direct = told.pop().unwrap_or_default();
    for (direct, proxied) in direct.iter().zip(&proxied) {
        same(proxied, direct).map_err(|why| format!("{vendor}: {why}"))?;
    }
    Ok(direct)
}

/// Nothing is cached either, though a rule says so.
fn oracle(driver: Driver) -> Outcome {
    let setup =
        "DROP TABLE IF EXISTS conf.orders; CREATE TABLE conf.orders (id INT, words VARCHAR(9));
        DROP SEQUENCE IF EXISTS conf.order_numbers; CREATE SEQUENCE conf.order_numbers";
    let cached = "INSERT INTO mysql_query_rules (rule_id, active, match_digest, cache_ttl, apply) VALUES (1, 1, '^SELECT', 60000, 1)";
    alike_and_well(
        driver,
        Vendor::MariaDb,
        &["--sql-mode=ORACLE"],
        setup,
        cached,
        &[
            (
                0,
                "INSERT INTO conf.orders VALUES (conf.order_numbers.NEXTVAL, 'a')",
            ),
            (
                1,
                "INSERT INTO conf.orders VALUES (conf.order_numbers.\"nextval\", 'b')",
            ),
            (0, "SELECT conf.order_numbers.CURRVAL FROM dual"),
            (1, "SELECT conf.order_numbers.`currval` FROM dual"),
            (0, "SELECT conf.order_numbers.NEXTVAL FROM dual"),
            (0, "SELECT conf.order_numbers.NEXTVAL FROM dual"),
            (1, "SELECT conf.order_numbers.NEXTVAL FROM dual"),
            (0, "SELECT conf.order_numbers.CURRVAL FROM dual"),
        ],
    )?;
    // The mode of a session alone.
    alike_and_well(
        driver,
        Vendor::MariaDb,
        &[],
        setup,
        "",
        &[
            (0, "SET sql_mode = ORACLE"),
            (1, "SET sql_mode = ORACLE"),
            (
                0,
                "INSERT INTO conf.orders VALUES (conf.order_numbers.NEXTVAL, 'a')",
            ),
            (
                1,
                "INSERT INTO conf.orders VALUES (conf.order_numbers.NEXTVAL, 'b')",
            ),
            (
                0,
                "INSERT INTO conf.orders VALUES (conf.order_numbers.CURRVAL, 'c')",
            ),
            (0, "SELECT id, words FROM conf.orders"),
        ],
    )?;
    // Elsewhere it is the name of a column.
    for vendor in vendors() {
        let (server, proxy) = by_hand::one(driver, vendor)?;
        server.root("CREATE TABLE conf.counters (nextval INT, currval INT); INSERT INTO conf.counters VALUES (3, 2)")?;
        let mut client = log_in(&proxy)?;
        is(
            &mut client,
            "SELECT c.nextval, c.currval FROM conf.counters c",
            &["3", "2"],
        )?;
        same(settled(&proxy, &mut client)?.as_str(), "")?;
    }
    Ok(())
}

/// No server tells of it, and the next session's write is given another number on the same
/// connection.
fn numbers_by_default(driver: Driver) -> Outcome {
    const INSERT: &str = "INSERT INTO conf.parts (words) VALUES ('a')";
    const ASKS: [&str; 2] = [
        "SELECT LASTVAL(conf.made)",
        "SELECT PREVIOUS VALUE FOR conf.made",
    ];
    let two = || {
        let (server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
        server
            .root("CREATE SEQUENCE conf.made; CREATE TABLE conf.parts (id INT DEFAULT NEXTVAL(conf.made), words VARCHAR(9))")?;
        proxy
            .admin("UPDATE mysql_servers SET max_connections = 2; LOAD MYSQL SERVERS TO RUNTIME")?;
        let first = log_in(&proxy)?;
        let second = beside(&proxy, &first)?;
        Ok::<_, String>((server, proxy, first, second))
    };
    let refused = |client: &mut Raw, sql: &str| {
        let said = client.ask(sql).map_err(|error| error.to_string());
        let is_refused = said
            .as_ref()
            .is_err_and(|words| words.starts_with("1235 42000 What LASTVAL() is"));
        expect(is_refused, || format!("{sql}: {said:?}"))
    };

    // Where nobody else has written, the connection knows.
    let (_server, proxy, mut first, mut second) = two()?;
    is(&mut first, ASKS[0], &["NULL"])?;
    asked(&mut first, INSERT)?;
    is(&mut first, ASKS[1], &["1"])?;
    // From then on what the user writes keeps its connection, whoever writes beside it.
    same(settled(&proxy, &mut first)?.as_str(), "Sequence")?;
    asked(&mut second, INSERT)?;
    for ask in ASKS {
        is(&mut first, ask, &["1"])?;
        is(&mut second, ask, &["2"])?;
    }

    // Where somebody else has, it would tell his.
    for in_transaction in [false, true] {
        let (_server, proxy, mut first, mut second) = two()?;
        asked(&mut first, INSERT)?;
        same(&settled(&proxy, &mut first)?, "")?;
        asked(&mut second, INSERT)?;
        if in_transaction {
            asked(&mut first, "BEGIN")?;
        }
        same(
            settled(&proxy, &mut first)?.as_str(),
            if in_transaction { "Transaction" } else { "" },
        )?;
        let mut third = beside(&proxy, &first)?;
        for ask in ASKS {
            refused(&mut first, ask)?;
            let id = statements::prepare(&mut first, ask)?;
            let words = statements::execute(&mut first, id, false)
                .err()
                .unwrap_or_default();
            expect(words.contains("1235"), || {
                format!("{ask}, prepared: {words:?}")
            })?;
            // Who has written nothing is told that, or that nobody knows.
            is(&mut third, ask, &["NULL"]).or_else(|_| refused(&mut third, ask))?;
        }
        // The next session of that user has what it writes, prepared too.
        drop((first, third));
        let mut fourth = beside(&proxy, &second)?;
        asked(&mut fourth, INSERT)?;
        asked(&mut second, INSERT)?;
        is(&mut fourth, ASKS[0], &["3"])?;
        asked(
            &mut fourth,
            "INSERT INTO conf.scratch SELECT LASTVAL(conf.made), 'of it'",
        )?;
        is(&mut fourth, "SELECT id FROM conf.scratch", &["3"])?;
    }
    Ok(())
}

fn ids(driver: Driver) -> Outcome {
    let setup = "DROP TABLE IF EXISTS conf.made, conf.twice;
        CREATE TABLE conf.made (id BIGINT PRIMARY KEY AUTO_INCREMENT, words VARCHAR(99));
        INSERT INTO conf.made VALUES (41, 'before')";
    for vendor in vendors() {
        alike(
            driver,
            vendor,
            &[],
            setup,
            "",
            &[
                (0, "SELECT LAST_INSERT_ID()"),
                (1, "SELECT LAST_INSERT_ID()"),
                (
                    0,
                    "SET STATEMENT max_statement_time=9 FOR INSERT INTO conf.made (words) VALUES ('a') RETURNING id",
                ),
                (1, "INSERT INTO conf.made (id, words) VALUES (1000, 'b')"),
                (1, "SELECT LAST_INSERT_ID()"),
                (0, "SELECT LAST_INSERT_ID()"),
                (0, "ANALYZE INSERT INTO conf.made (words) VALUES ('c')"),
                (1, "SELECT LAST_INSERT_ID()"),
                (0, "SELECT LAST_INSERT_ID()"),
                (0, "SELECT LAST_INSERT_ID(77)"),
                (
                    0,
                    "CREATE TABLE conf.twice (id INT AUTO_INCREMENT PRIMARY KEY, v INT UNIQUE) SELECT 5 AS v UNION ALL SELECT 5",
                ),
                (1, "SELECT LAST_INSERT_ID()"),
                (0, "SELECT LAST_INSERT_ID()"),
            ],
        )?;
    }
    Ok(())
}

fn analyzed(driver: Driver) -> Outcome {
    let setup = "DROP TABLE IF EXISTS conf.audited;
        CREATE TABLE conf.audited (id INT PRIMARY KEY AUTO_INCREMENT, words VARCHAR(99));
        CREATE TRIGGER conf.audits BEFORE INSERT ON conf.audited FOR EACH ROW SET NEW.words = COALESCE(@who, 'nobody'), @audited = 'secret'";
    alike_and_well(
        driver,
        Vendor::MariaDb,
        &[],
        setup,
        "",
        &[
            (0, "SET @who = 'me'"),
            (1, "SELECT 1"),
            (0, "ANALYZE INSERT INTO conf.audited VALUES (1, 'x')"),
            (1, "SELECT words FROM conf.audited"),
            (1, "SELECT @audited"),
            (0, "SELECT @audited"),
        ],
    )
}

fn xpath(driver: Driver) -> Outcome {
    for vendor in vendors() {
        alike_and_well(
            driver,
            vendor,
            &[],
            "DO 0",
            "",
            &[
                (0, "SET @i = 2"),
                (1, "SELECT 1"),
                (
                    0,
                    "SELECT ExtractValue('<a><b>x</b><b>y</b></a>', '//b[$@i]')",
                ),
                (
                    1,
                    "SELECT ExtractValue('<a><b>x</b><b>y</b></a>', '//b[$@i]')",
                ),
                (
                    0,
                    "SELECT UpdateXML('<a><b>x</b><b>y</b></a>', '//b[$@i]', 'z')",
                ),
            ],
        )?;
    }
    Ok(())
}

/// MariaDB tells the number of each write's transaction with what else it tells.
fn binary_log(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (server, proxy) =
            by_hand::one_with(driver, vendor, &["--log-bin=log", "--server-id=1"])?;
        server.root(
            "CREATE TABLE conf.numbered (a INT); CREATE TABLE conf.fired (a INT);
             CREATE TRIGGER conf.fires BEFORE INSERT ON conf.fired FOR EACH ROW SET @of_a_trigger = 'secret'",
        )?;
        narrow(&proxy)?;
        let mut first = log_in(&proxy)?;
        let mut second = beside(&proxy, &first)?;
        for _ in 0..3 {
            for client in [&mut first, &mut second] {
                asked(client, "INSERT INTO conf.numbered VALUES (1)")?;
                same(settled(&proxy, client)?.as_str(), "")?;
            }
        }
        for client in [&mut first, &mut second] {
            is(client, "SELECT COUNT(*) FROM conf.numbered", &["6"])?;
        }
        // The number is that of the session's own last one, as the log has it.
        if vendor == Vendor::MariaDb {
            asked(&mut first, "INSERT INTO conf.numbered VALUES (2)")?;
            let of_the_first = last(&server)?;
            asked(&mut second, "INSERT INTO conf.numbered VALUES (3)")?;
            is(&mut first, "SELECT @@last_gtid", &[&of_the_first])?;
            let mut third = beside(&proxy, &first)?;
            is(&mut third, "SELECT @@last_gtid, 1", &["", "1"])?;
            is(
                &mut first,
                &format!("SELECT @@session.last_gtid = '{of_the_first}'"),
                &["1"],
            )?;
            numbers_in_texts(&server, &proxy, &mut first, &mut second)?;
        }
        // What a trigger sets beside it is the session's alone.
        asked(&mut first, "INSERT INTO conf.fired VALUES (1)")?;
        same(settled(&proxy, &mut first)?.as_str(), "Untold")?;
        is(&mut first, "SELECT @of_a_trigger", &["secret"])?;
    }
    Ok(())
}

/// The last number in the log.
fn last(server: &Server) -> Result<String, String> {
    Ok(server
        .root("SELECT @@gtid_binlog_pos")?
        .lines()
        .last()
        .unwrap_or_default()
        .to_owned())
}

/// `@@last_gtid` wherever it may stand in a text, and where nobody knows it.
fn numbers_in_texts(server: &Server, proxy: &Proxy, first: &mut Raw, second: &mut Raw) -> Outcome {
    const WRITES: &str = "INSERT INTO conf.numbered VALUES (8), (9)";
    asked(
        first,
        "CREATE TABLE conf.logged (a INT, gtid VARCHAR(99), words VARCHAR(99))",
    )?;
    for (write, read) in [
        (
            "INSERT INTO conf.logged VALUES (1, @@last_gtid, 'x')",
            "SELECT gtid FROM conf.logged WHERE a = 1",
        ),
        (
            "INSERT INTO conf.logged SELECT 2, @@last_gtid, 'y'",
            "SELECT gtid FROM conf.logged WHERE a = 2",
        ),
        ("SET @gtid = @@last_gtid", "SELECT @gtid"),
        (
            "DO 0",
            "SELECT MAX(gtid) FROM (SELECT 1 AS one, @@last_gtid AS gtid, 3) AS own",
        ),
        (
            "DO 0",
            "SELECT REPLACE(CONCAT('a', @@last_gtid, 'a'), 'a', '')",
        ),
    ] {
        asked(first, WRITES)?;
        let wanted = last(server)?;
        asked(second, WRITES)?;
        asked(first, write)?;
        asked(second, WRITES)?;
        is(first, read, &[&wanted])?;
    }
    is(
        first,
        "SELECT a FROM conf.logged WHERE a IN (0, @@last_gtid, 2) ORDER BY a, @@last_gtid",
        &["2"],
    )?;
    // Beside another that is the session's, and prepared.
    asked(first, WRITES)?;
    let wanted = last(server)?;
    asked(second, WRITES)?;
    is(first, "SELECT @@last_gtid, ROW_COUNT()", &[&wanted, "2"])?;
    let mut clients = [
        raw::Raw::log_in(proxy.port, 0)?,
        raw::Raw::log_in(proxy.port, 0)?,
    ];
    for _ in 0..2 {
        for client in &mut clients {
            client.prepare("SELECT 1, @@last_gtid")?;
        }
        let mut wanted = Vec::new();
        for client in &mut clients {
            client.query(WRITES)?;
            wanted.push(last(server)?);
        }
        for (client, wanted) in clients.iter_mut().zip(wanted) {
            let said = client.execute(0, 0, b"")?;
            expect(said.contains(&wanted), || {
                format!("prepared: {said} instead of {wanted}")
            })?;
        }
    }
    // Whoever says what it is told is told no more than that, and we are.
    let mut third = beside(proxy, first)?;
    for sql in [
        "SET session_track_system_variables = ''",
        "SELECT @@last_gtid",
        WRITES,
    ] {
        asked(&mut third, sql)?;
    }
    let wanted = last(server)?;
    let said = asked(&mut third, "SELECT @@last_gtid")?.concat();
    expect(said == [wanted.as_str()], || {
        format!("{said:?} instead of {wanted}")
    })?;
    let unknown_in = |client: &mut Raw, sql: &str| {
        let said = asked(client, sql).map_or_else(|error| error, |rows| format!("{rows:?}"));
        expect(said.contains("1235"), || format!("{sql}: {said}"))
    };
    let unknown = |client: &mut Raw| unknown_in(client, "SELECT @@last_gtid");
    drop(third);
    // What is said of a connection, whoever wrote there, is said to who keeps one.
    const OF_CONNECTIONS: [&str; 2] = [
        "SHOW VARIABLES LIKE 'last_gtid'",
        r"SHOW SESSION VARIABLES LIKE 'LAST\_gtid'",
    ];
    for sql in OF_CONNECTIONS.iter().chain(&[
        "SELECT WSREP_LAST_SEEN_GTID()",
        "SELECT 1 + LENGTH(WSREP_LAST_WRITTEN_GTID())",
    ]) {
        unknown_in(first, sql)?;
    }
    asked(first, "SHOW GLOBAL VARIABLES LIKE 'last_gtid'")?;
    proxy.admin(
        "INSERT INTO mysql_query_rules (rule_id, active, match_pattern, multiplex, apply) VALUES (77, 1, '^DO 77$', 0, 1);
         LOAD MYSQL QUERY RULES TO RUNTIME",
    )?;
    let mut keeper = beside(proxy, first)?;
    for sql in ["DO 77", WRITES] {
        asked(&mut keeper, sql)?;
    }
    let wanted = last(server)?;
    for sql in OF_CONNECTIONS {
        is(&mut keeper, sql, &["last_gtid", &wanted])?;
    }
    drop(keeper);
    // Nor of a transaction in which the telling had to end.
    let mut fourth = beside(proxy, first)?;
    for sql in [
        WRITES,
        "BEGIN",
        WRITES,
        "SHOW VARIABLES LIKE 'por%'",
        "COMMIT",
    ] {
        asked(&mut fourth, sql)?;
    }
    unknown(&mut fourth)
}

/// Says what is no UTF-8.
fn said(client: &mut Raw, sql: &[u8]) -> Result<Vec<Vec<String>>, String> {
    client
        .command(&[b"\x03", sql].concat())
        .map_err(|error| error.to_string())?;
    client
        .rows()
        .map_err(|error| format!("{}: {error}", sql.escape_ascii()))
}

/// Latin-1's no-break space is a blank to servers, whoever says that the session is in Latin-1, and
/// whether or not a backslash escapes.
fn blanks(driver: Driver) -> Outcome {
    const LATIN1: u8 = 8;
    const UTF8: u8 = 45;
    const OF_MYSQL: u8 = 255;
    for vendor in vendors() {
        let (server, proxy) = by_hand::one_with(
            driver,
            vendor,
            &[
                "--character-set-server=latin1",
                "--collation-server=latin1_swedish_ci",
            ],
        )?;
        server
            .root("CREATE TABLE conf.counted_up (n INT); INSERT INTO conf.counted_up VALUES (0)")?;
        let mut second = log_in(&proxy)?;
        for (at, (collation, before, blank)) in [
            (LATIN1, "DO 0", 0xA0),
            (LATIN1, "SET sql_mode = 'NO_BACKSLASH_ESCAPES'", 0xA0),
            (UTF8, "SET NAMES latin1", 0xA0),
            (UTF8, "SET character_set_client = cp866", 0xFF),
            (UTF8, "SET NAMES DEFAULT", 0xA0),
            // MariaDB does not know it, and takes its own.
            (
                if vendor == Vendor::MariaDb {
                    OF_MYSQL
                } else {
                    LATIN1
                },
                "SELECT 1",
                0xA0,
            ),
        ]
        .into_iter()
        .enumerate()
        {
            let mut first = beside_with(&proxy, &second, collation)?;
            asked(&mut first, before)?;
            let name = format!("@of_the_first_{at}");
            let blank = [blank];
            said(
                &mut first,
                &[
                    b"SELECT 'secret'",
                    &blank[..],
                    b"INTO",
                    &blank[..],
                    name.as_bytes(),
                ]
                .concat(),
            )?;
            is(&mut second, &format!("SELECT {name}"), &["NULL"])
                .map_err(|why| format!("{vendor}, {before}: {why}"))?;
            is(&mut first, &format!("SELECT {name}"), &["secret"])
                .map_err(|why| format!("{vendor}, {before}: {why}"))?;
        }
        // MariaDB has no such UPDATE.
        if vendor == Vendor::MySql {
            proxy.admin(
                "INSERT INTO mysql_hostgroup_attributes (hostgroup_id, hostgroup_settings) VALUES (0, '{\"pipelining\": 16}'); LOAD MYSQL SERVERS TO RUNTIME",
            )?;
            let mut third = beside_with(&proxy, &second, LATIN1)?;
            for _ in 0..8 {
                said(
                    &mut third,
                    b"WITH x AS (SELECT 1)\xa0UPDATE conf.counted_up SET n = n + 1",
                )?;
            }
            is(&mut second, "SELECT n FROM conf.counted_up", &["8"])?;
        }
    }
    Ok(())
}

/// Each byte above ASCII in each character set of one byte, or of bytes that stand for themselves:
/// where a server reads it as a blank, so is it read here. The servers are asked without a proxy.
fn blanks_of_servers(_: Driver) -> Outcome {
    let mut wrong = Vec::new();
    for vendor in vendors() {
        let server = Server::start(vendor)?;
        server.root(by_hand::CREATE_USER)?;
        let mut client = Raw::log_in(server.port).map_err(|error| error.to_string())?;
        for charset in asked(
            &mut client,
            "SELECT character_set_name FROM information_schema.character_sets",
        )?
        .concat()
        {
            if asked(
                &mut client,
                &format!("SET character_set_client = {charset}"),
            )
            .is_err()
            {
                // No client may have it.
                continue;
            }
            let wanted = sql::Blank::of(&charset);
            let lexing = wanted.map_or(sql::Lexing::Escapes, |blank| sql::Lexing::Blanks {
                blank,
                escapes: true,
            });
            for byte in 0x80..=0xFF {
                let blank = said(&mut client, &[b"SELECT", &[byte][..], b"5"].concat()).is_ok();
                let commented =
                    said(&mut client, &[b"SELECT 5 --", &[byte][..], b" '"].concat()).is_ok();
                let seen = |text: &[&[u8]]| lexing.hides(&text.concat());
                let (here, comment) = (
                    seen(&[b"SELECT", &[byte], b"5"]),
                    seen(&[b"SELECT 5 --", &[byte], b" '"]),
                );
                // What is only thought to end a comment costs little.
                if blank != here || commented && !comment {
                    wrong.push(format!("{vendor} {charset} 0x{byte:X}: a blank {blank}, here {here}; after two dashes {commented}, here {comment}"));
                }
            }
        }
    }
    expect(wrong.is_empty(), || wrong.join("\n"))
}

/// Words hidden behind a comment or a name, or in a part of a text that looks like another, are
/// what they are to servers.
fn hidden(driver: Driver) -> Outcome {
    for vendor in vendors() {
        alike(
            driver,
            vendor,
            &[],
            "DROP TABLE IF EXISTS conf.filled; CREATE TABLE conf.filled (a INT PRIMARY KEY)",
            "",
            &[
                (0, "SELECT 1 /*m! + 1 */ AS one"),
                (0, "SELECT 'x' INTO 1.e@of_the_first"),
                (1, "SELECT @of_the_first"),
                (0, "SELECT @of_the_first"),
                (
                    0,
                    "SET STATEMENT lc_time_names = SUBSTRING('de_DE' FROM 1 FOR REPLACE('5','4','4')) FOR SET @@default_week_format = 5",
                ),
                (1, "SELECT @@default_week_format"),
                (0, "SELECT @@default_week_format"),
                (0, "SELECT `GET_LOCK`('of_the_first', 0)"),
                (1, "SELECT GET_LOCK('of_the_first', 0)"),
                (0, "SELECT `RELEASE_LOCK`('of_the_first')"),
                (1, "SELECT GET_LOCK('of_the_first', 0)"),
            ],
        )?;
        let (server, proxy) = by_hand::one(driver, vendor)?;
        server.root(
            "CREATE TABLE conf.called (a INT PRIMARY KEY, b INT); INSERT INTO conf.called VALUES (1, 1);
             CREATE FUNCTION conf.locks(a INT) RETURNS INT NO SQL RETURN GET_LOCK('locked', 0)",
        )?;
        let mut client = log_in(&proxy)?;
        if vendor == Vendor::MySql {
            asked(
                &mut client,
                "INSERT INTO conf.called TABLE conf.called ON DUPLICATE KEY UPDATE b = conf.locks(1)",
            )?;
        } else {
            asked(
                &mut client,
                "INSERT INTO conf.called SELECT * FROM conf.called ON DUPLICATE KEY UPDATE b = conf.locks(1)",
            )?;
        }
        let holds = settled(&proxy, &mut client)?;
        expect(holds.contains("Routine"), || format!("{vendor}: {holds}"))?;
    }
    Ok(())
}

/// Results in the cache end with writes that do not look like writes.
fn written(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (server, proxy) = by_hand::one(driver, vendor)?;
        proxy.admin(
            "INSERT INTO mysql_query_rules (rule_id, active, match_digest, cache_ttl, attributes, apply)
             VALUES (1, 1, '^SELECT a FROM kept', 60000, '{\"cache_invalidate\":true}', 1); LOAD MYSQL QUERY RULES TO RUNTIME",
        )?;
        server.root(
            "CREATE DATABASE kept; CREATE TABLE kept.t (a INT); INSERT INTO kept.t VALUES (1)",
        )?;
        let mut client = log_in(&proxy)?;
        // One whose connection is kept is not answered from the cache.
        let mut writer = log_in(&proxy)?;
        let read = "SELECT a FROM kept.t";
        is(&mut client, read, &["1"])?;
        server.root("UPDATE kept.t SET a = 2")?;
        is(&mut client, read, &["1"])?;
        asked(&mut writer, "/*!999999 SELECT */ DELETE FROM kept.t")?;
        is(&mut client, read, &[])?;
        asked(&mut writer, "INSERT INTO kept.t VALUES (3)")?;
        is(&mut client, read, &["3"])?;
        if vendor == Vendor::MariaDb {
            asked(&mut log_in(&proxy)?, "CREATE OR REPLACE DATABASE kept")?;
            expect(asked(&mut client, read).is_err(), || {
                "there is no such table any more".to_owned()
            })?;
        }
    }
    Ok(())
}

/// MySQL 9 reads `$$ … $$` as the text of a routine in another language.
fn dollars(driver: Driver) -> Outcome {
    const MULTI_STATEMENTS: u32 = 0x0001_0000;
    if !vendors().contains(&Vendor::MySql) {
        return Ok(());
    }
    let (server, proxy) = by_hand::one(driver, Vendor::MySql)?;
    server.root("CREATE TABLE conf.precious (a INT)")?;
    let create = |value: &str| {
        format!("CREATE FUNCTION conf.js() RETURNS INT LANGUAGE JAVASCRIPT AS $$ return {value} $$")
    };
    let login = app(proxy.port);
    let mut client = Raw::log_in_as(&login, MULTI_STATEMENTS, MULTI_STATEMENTS)
        .map_err(|error| error.to_string())?;
    asked(&mut client, &create("'x'"))?;
    proxy.admin(
        "INSERT INTO mysql_firewall_whitelist_users VALUES (1, 'app', '', 'PROTECTING', ''); LEARN MYSQL FIREWALL FROM DIGESTS;
         LOAD MYSQL FIREWALL TO RUNTIME",
    )?;
    set(&proxy, "SET mysql-firewall_whitelist_enabled=1")?;
    server.root("DROP FUNCTION conf.js")?;
    let _refused = asked(&mut client, &create("' $$; DROP TABLE conf.precious -- '"));
    server.root("SELECT COUNT(*) FROM conf.precious").map(drop)
}

/// Functions that a server lists as its own and can call keep no connection for their session. The
/// servers are asked without a proxy.
fn functions(_: Driver) -> Outcome {
    /// Geometric ones that are called like anything, so that on MySQL they may be a user's; and
    /// what is about the connection that answers; words that MariaDB explains and that call
    /// nothing.
    const LEFT_OUT: [&str; 18] = [
        "AREA",
        "BOUNDARY",
        "BUFFER",
        "CENTROID",
        "CONTAINS",
        "CROSSES",
        "DIMENSION",
        "DISJOINT",
        "ENVELOPE",
        "EQUALS",
        "INTERSECTS",
        "OVERLAPS",
        "TOUCHES",
        "X",
        "Y",
        "PS_CURRENT_THREAD_ID",
        "GOTO",
        "SERIALIZABLE",
    ];
    for vendor in vendors() {
        let server = Server::start(vendor)?;
        server.root(&format!(
            "{} CREATE DATABASE IF NOT EXISTS nothing",
            by_hand::CREATE_USER
        ))?;
        let lists = match vendor {
            Vendor::MariaDb => {
                "SELECT name FROM mysql.help_topic UNION SELECT function FROM information_schema.SQL_FUNCTIONS"
            }
            Vendor::MySql => "SELECT name FROM mysql.help_topic",
        };
        let listed = server.root(lists)?;
        let mut client = Raw::log_in(server.port).map_err(|error| error.to_string())?;
        asked(&mut client, "USE nothing")?;
        let (mut called, mut unknown) = (0, Vec::new());
        for name in listed
            .lines()
            .skip(1)
            .map(|line| line.trim().trim_end_matches("()").to_ascii_uppercase())
        {
            let plain = !name.is_empty()
                && name
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            if !plain || LEFT_OUT.contains(&&*name) {
                continue;
            }
            let call = format!("SELECT {name}()");
            // Statements and types (1064), what this server does not have (1305), what only its own
            // views may call (3566).
            let is_none = |error: String| {
                ["1064 ", "1305 ", "3566 "]
                    .iter()
                    .any(|code| error.starts_with(code))
            };
            if client
                .ask(&call)
                .is_err_and(|error| is_none(error.to_string()))
            {
                continue;
            }
            called += 1;
            if sql::class(call.as_bytes())
                .leaves
                .intersects(sql::Leaves::UNKNOWN_FUNCTION)
            {
                unknown.push(name);
            }
        }
        expect(called > 150, || {
            format!("{vendor} lists {called} functions only")
        })?;
        expect(unknown.is_empty(), || {
            format!("{vendor} has functions that nobody here knows: {unknown:?}")
        })?;
    }
    Ok(())
}

/// COM_STMT_RESET and COM_SET_OPTION, done and refused.
fn row_counts(driver: Driver) -> Outcome {
    let io = |error: std::io::Error| error.to_string();
    for vendor in vendors() {
        let (server, proxy) = by_hand::one(driver, vendor)?;
        let mut told = Vec::new();
        for port in [server.port, proxy.port] {
            let mut client = Raw::log_in(port).map_err(io)?;
            asked(&mut client, "DELETE FROM conf.scratch")?;
            client.command(b"\x16SELECT 1").map_err(io)?;
            let id = client.packet().map_err(io)?[1..5].to_vec();
            while client.packet().map_err(io)?.first() != Some(&0xfe) {}
            let reset = |id: &[u8]| [b"\x1a", id].concat();
            let commands = [
                reset(&id),
                reset(b"\x99\0\0\0"),
                b"\x1b\0\0".to_vec(),
                b"\x1b\x01\0".to_vec(),
                b"\x1b\x07\0".to_vec(),
            ];
            for (n, command) in commands.iter().enumerate() {
                asked(
                    &mut client,
                    &format!("INSERT INTO conf.scratch VALUES ({n}1, ''), ({n}2, ''), ({n}3, '')"),
                )?;
                client.command(command).map_err(io)?;
                client.packet().map_err(io)?;
                told.push(asked(&mut client, "SELECT ROW_COUNT()")?);
                // What was complained of before is still there.
                asked(&mut client, "SELECT 1 + '2x'")?;
                if n % 2 == 0 && n < 4 {
                    client.command(command).map_err(io)?;
                    client.packet().map_err(io)?;
                    told.push(asked(&mut client, "SHOW WARNINGS")?);
                }
            }
        }
        let (direct, through) = told.split_at(told.len() / 2);
        expect(direct == through, || {
            format!("{vendor}: {through:?} instead of {direct:?}")
        })?;
        expect(direct.concat().concat().contains(&"-1".to_owned()), || {
            format!("{vendor}: {direct:?}")
        })?;
    }
    Ok(())
}
