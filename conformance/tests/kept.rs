//! What a server keeps for a session and shows nobody else: XA transactions, handlers, locks for
//! backups, savepoints. It is held as long as it is there, nobody is let to it, and nothing of it
//! is left, whether it was given back or its session left in the middle.
#![forbid(unsafe_code)]

use conformance::beside::{asked, beside, narrow, set, settled};
use conformance::by_hand::{self, Raw};
use conformance::cache;
use conformance::clients::{Client, app};
use conformance::proxy::{Driver, Proxy, Wish};
use conformance::raw as packets;
use conformance::servers::{Server, Vendor, vendors};
use conformance::trials::{self, expect, same, soon};
use std::time::Duration;
use wire::caps;
use wire::response::Expect;

type Outcome = Result<(), String>;

fn main() {
    trials::run(&[
        (
            "what_a_server_keeps_for_a_session_is_held_and_given_back",
            kept_and_given_back,
        ),
        (
            "a_lock_of_a_user_holds_a_connection_as_long_as_the_server_has_it",
            locks_of_users,
        ),
        (
            "a_lock_that_is_named_after_the_schema_is_that_of_the_sessions_schema",
            locks_of_schemas,
        ),
        (
            "a_ping_keeps_what_a_server_keeps_for_the_session",
            kept_by_pings,
        ),
        ("a_ping_says_that_something_is_lost", heard),
        (
            "what_needs_no_connection_of_its_own_keeps_none",
            kept_for_nothing,
        ),
        (
            "a_reset_is_answered_when_nobody_waits_for_the_session_any_more",
            free_after_reset,
        ),
    ])
}

fn log_in(proxy: &Proxy) -> Result<Raw, String> {
    Raw::log_in(proxy.port).map_err(|error| error.to_string())
}

/// Names before brackets that are no calls, and a quote in a text of several statements: what looks
/// alike would keep its connection to the end of the session.
fn kept_for_nothing(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (server, twin) = (Server::start(vendor)?, Server::start(vendor)?);
        for warm in [&server, &twin] {
            let _known = Client::MariaDbCli.run(
                app(warm.port),
                &cache::root().join("conformance/scenarios/warm-up.txt"),
            );
        }
        let mut wish = Wish::in_front_of(&server);
        wish.variables.push_str("    handle_warnings = 0\n");
        let proxy = Proxy::start(driver, &wish)?;
        let mut client =
            packets::Raw::log_in(proxy.port, caps::MULTI_STATEMENTS | caps::DEPRECATE_EOF)?;
        let mut direct =
            packets::Raw::log_in(twin.port, caps::MULTI_STATEMENTS | caps::DEPRECATE_EOF)?;
        client.query("SELECT 1")?;
        for sql in [
            "WITH a (x) AS (SELECT 1), b (y) AS (SELECT 2) SELECT x, y FROM a, b",
            "DROP TABLE IF EXISTS conf.no_calls",
            "CREATE TABLE conf.no_calls (c CHAR(2) CHARACTER SET ascii, n INT, KEY k (c), CHECK (c <> ''))",
            "ALTER TABLE conf.no_calls CONVERT TO CHARACTER SET utf8mb4, ADD INDEX i (n)",
            "ALTER TABLE conf.no_calls PARTITION BY RANGE (n) (PARTITION p VALUES LESS THAN (10))",
            "INSERT INTO conf.no_calls VALUES ('a\\'', 1); SELECT 7",
            "SELECT 'O\\'Brien'; SELECT \"two\\\"\"; SELECT 3",
            "SET sql_mode = 'NO_BACKSLASH_ESCAPES'",
            "SELECT 'C:\\'; SELECT 'two', 'D:\\'; SELECT 3",
            "SET sql_mode = DEFAULT",
            "SELECT 'not\\' yet'; SELECT 3",
            // What the first sets, the second is read by.
            "SET sql_mode = 'NO_BACKSLASH_ESCAPES'; SELECT 'E:\\'; SELECT 2",
        ] {
            let (wanted, found) = (direct.query(sql)?, client.query(sql)?);
            expect(found == wanted, || {
                format!("{vendor}: {sql}: {found} instead of {wanted}")
            })?;
            let held = proxy.admin(&format!(
                "SELECT hold FROM stats_mysql_session_holds WHERE SessionID = {}",
                client.id
            ))?;
            let one_text = sql.starts_with("SET") && sql.contains(';');
            expect(held.trim().is_empty() != one_text, || {
                format!("{vendor}: {sql} keeps {held:?}")
            })?;
        }
    }
    Ok(())
}

/// COM_PING, which no server leaves without an answer.
fn ping(client: &mut Raw) -> Outcome {
    client.command(&[0x0E]).map_err(|error| error.to_string())?;
    let said = client.packet().map_err(|error| error.to_string())?;
    match said.first() {
        Some(0) => Ok(()),
        _ => Err(by_hand::complaint(&said).to_string()),
    }
}

/// The server sends away who is silent for four seconds: who pings is not, whatever stands between.
fn kept_by_pings(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (server, proxy) = by_hand::one_with(
            driver,
            vendor,
            &["--wait-timeout=4", "--interactive-timeout=4"],
        )?;
        let mut leader = log_in(&proxy)?;
        asked(&mut leader, "SELECT GET_LOCK('leader', 0)")?;
        for _ in 0..12 {
            std::thread::sleep(Duration::from_millis(400));
            ping(&mut leader).map_err(|error| format!("{vendor}: {error}"))?;
        }
        let mut other = Raw::log_in(server.port).map_err(|error| error.to_string())?;
        same(
            &asked(&mut other, "SELECT GET_LOCK('leader', 0)")?
                .concat()
                .concat(),
            "0",
        )
        .map_err(|error| format!("{vendor}: {error}"))?;
        same(
            &asked(&mut leader, "SELECT RELEASE_LOCK('leader')")?
                .concat()
                .concat(),
            "1",
        )?;
    }
    Ok(())
}

/// The server ends the connection that has the session's lock, or its transaction: its next ping
/// fails, as it does directly.
fn heard(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (server, proxy) = by_hand::one(driver, vendor)?;
        for takes in [
            "DO GET_LOCK('heard', 0)",
            "BEGIN",
            "CREATE TEMPORARY TABLE conf.heard (id INT)",
        ] {
            let mut asks = log_in(&proxy)?;
            asked(&mut asks, takes)?;
            let mut free = beside(&proxy, &asks)?;
            asked(&mut free, "SELECT 1")?;
            let held = proxy.admin(&format!(
                "SELECT hold FROM stats_mysql_session_holds WHERE SessionID = {}",
                asks.id
            ))?;
            expect(!held.trim().is_empty(), || {
                format!("{vendor}: {takes} holds nothing")
            })?;
            let list = "SELECT ID FROM information_schema.PROCESSLIST WHERE USER = 'open'";
            let ids = server.root(list)?;
            expect(
                ids.lines().any(|id| id.trim().parse::<u64>().is_ok()),
                || format!("{vendor}: {ids:?}"),
            )?;
            for id in ids.lines().filter(|id| id.trim().parse::<u64>().is_ok()) {
                server.root(&format!("KILL {id}"))?;
            }
            let lost = ping(&mut asks).err().unwrap_or_default();
            // Closed without a word, as by the server.
            expect(lost.contains("failed to fill whole buffer"), || {
                format!("{vendor}: {takes}: {lost:?}")
            })?;
            // Who had nothing there goes on.
            ping(&mut free)?;
            asked(&mut free, "SELECT 1")?;
        }
    }
    Ok(())
}

/// Where its connection is kept for another lock, in the schema of then.
fn locks_of_schemas(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let server = Server::start(vendor)?;
        server.root(by_hand::CREATE_USER)?;
        let mut wish = Wish::in_front_of(&server);
        wish.add_open_user();
        let reads = format!(
            "{{ address = \"127.0.0.1\", port = {}, hostgroup = 1, max_connections = 10 }}",
            server.port
        );
        wish.servers = format!("{},\n{reads}", wish.servers);
        wish.rules = "{ rule_id = 1, active = 1, match_digest = \"^SELECT\", destination_hostgroup = 1, apply = 1 }".to_owned();
        let proxy = Proxy::start(driver, &wish)?;
        let mut client = log_in(&proxy)?;
        let mut direct = Raw::log_in(server.port).map_err(|error| error.to_string())?;
        asked(&mut client, "USE conf")?;
        asked(&mut client, "SELECT GET_LOCK('first', 0)")?;
        asked(&mut client, "USE conf2")?;
        asked(
            &mut client,
            "SELECT GET_LOCK(CONCAT(DATABASE(), '.migrate'), 0)",
        )?;
        let used = "SELECT IS_USED_LOCK('first') > 0, IS_USED_LOCK('conf.migrate'), IS_USED_LOCK('conf2.migrate') > 0";
        same(&asked(&mut direct, used)?.concat().join(" "), "1 NULL 1")
            .map_err(|error| format!("{vendor}: {error}"))?;
        let released = asked(
            &mut client,
            "SELECT RELEASE_LOCK(CONCAT(DATABASE(), '.migrate'))",
        )?
        .concat()
        .concat();
        same(&released, "1").map_err(|error| format!("{vendor}: {error}"))?;
    }
    Ok(())
}

/// Statements, and what holds the connection after each.
type Steps = &'static [(&'static str, &'static str)];

/// Statements that take something, and those that give it back. Then comes what the next session on
/// the connection asks, with its error if it must have one.
struct Kept {
    only_on: Option<Vendor>,
    takes: Steps,
    gives_back: Steps,
    then: (&'static str, &'static str),
}

const fn kept(takes: Steps, gives_back: Steps, then: (&'static str, &'static str)) -> Kept {
    Kept {
        only_on: None,
        takes,
        gives_back,
        then,
    }
}

const KEPT: &[Kept] = &[
    Kept {
        only_on: Some(Vendor::MariaDb),
        takes: &[
            ("XA START 'x'", "Transaction Xa"),
            (WRITE, "Transaction Xa"),
            ("XA END 'x'", "Transaction Xa"),
            ("XA PREPARE 'x'", "Transaction Xa"),
        ],
        gives_back: &[("XA ROLLBACK 'x'", "")],
        then: ("XA END 'x'", "1399"),
    },
    // It says by itself that a prepared one is the session's no more; what it was made by is asked
    // to end it all the same.
    Kept {
        only_on: Some(Vendor::MySql),
        takes: &[
            ("XA START 'x'", "Transaction Xa"),
            (WRITE, "Transaction Xa"),
            ("XA END 'x'", "Transaction Xa"),
            ("XA PREPARE 'x'", "Xa"),
        ],
        gives_back: &[("XA COMMIT 'x'", "")],
        then: ("XA END 'x'", "1399"),
    },
    kept(
        &[
            ("HANDLER conf.scratch OPEN", "Handler"),
            ("HANDLER conf.numbers OPEN AS n", "Handler"),
            ("HANDLER n READ `PRIMARY` FIRST", "Handler"),
        ],
        &[
            ("HANDLER n CLOSE", "Handler"),
            ("HANDLER scratch CLOSE", ""),
        ],
        ("HANDLER n READ `PRIMARY` FIRST", "1109"),
    ),
    kept(
        &[("FLUSH TABLES WITH READ LOCK", "TableLock")],
        &[("UNLOCK TABLES", "")],
        (WRITE, ""),
    ),
    kept(
        &[("FLUSH TABLES conf.scratch WITH READ LOCK", "TableLock")],
        &[("UNLOCK TABLES", "")],
        (WRITE, ""),
    ),
    kept(
        &[("FLUSH TABLES conf.scratch FOR EXPORT", "TableLock")],
        &[("UNLOCK TABLES", "")],
        (WRITE, ""),
    ),
    kept(
        &[
            ("BEGIN", "Transaction"),
            ("SAVEPOINT s", "Transaction"),
            (WRITE, "Transaction"),
            ("ROLLBACK TO SAVEPOINT s", "Transaction"),
        ],
        &[("RELEASE SAVEPOINT s", "Transaction"), ("COMMIT", "")],
        ("ROLLBACK TO SAVEPOINT s", "1305"),
    ),
    kept(
        &[("SET autocommit = 0", ""), ("SAVEPOINT s", "AutocommitOff")],
        &[("SET autocommit = 1", "")],
        ("ROLLBACK TO SAVEPOINT s", "1305"),
    ),
    Kept {
        only_on: Some(Vendor::MySql),
        takes: &[("LOCK INSTANCE FOR BACKUP", "TableLock")],
        gives_back: &[("UNLOCK INSTANCE", "")],
        then: ("CREATE TABLE IF NOT EXISTS conf.made (a INT)", ""),
    },
    Kept {
        only_on: Some(Vendor::MariaDb),
        takes: &[
            ("BACKUP STAGE START", "TableLock"),
            ("BACKUP STAGE BLOCK_COMMIT", "TableLock"),
        ],
        gives_back: &[("BACKUP STAGE END", "")],
        then: ("CREATE TABLE IF NOT EXISTS conf.made (a INT)", ""),
    },
    Kept {
        only_on: Some(Vendor::MariaDb),
        takes: &[("BACKUP LOCK conf.scratch", "TableLock")],
        gives_back: &[("BACKUP UNLOCK", "")],
        then: ("ALTER TABLE conf.scratch COMMENT = 'made'", ""),
    },
];

const WRITE: &str = "REPLACE INTO conf.scratch (id) VALUES (7)";

fn kept_and_given_back(driver: Driver) -> Outcome {
    let mut wrong = Vec::new();
    for vendor in vendors() {
        let (server, proxy) = by_hand::one(driver, vendor)?;
        narrow(&proxy)?;
        let patience = |ms: u32| {
            set(
                &proxy,
                &format!("SET mysql-connect_timeout_server_max={ms}"),
            )
        };
        // A session of its own, and the error that it is told.
        let asks = |sql: &str| -> Result<String, String> {
            let said = log_in(&proxy)?.ask(sql);
            Ok(said.err().map_or_else(String::new, |error| {
                error
                    .to_string()
                    .split(' ')
                    .next()
                    .unwrap_or_default()
                    .to_owned()
            }))
        };
        for Kept {
            only_on,
            takes,
            gives_back,
            then,
        } in KEPT
        {
            if only_on.is_some_and(|only| only != vendor) {
                continue;
            }
            let mut check = |what: &str, found: &str, wanted: &str| {
                if found != wanted {
                    wrong.push(format!(
                        "{vendor}, {takes:?}, {what}: {found:?} instead of {wanted:?}"
                    ));
                }
            };
            let follow = |client: &mut Raw,
                          steps: Steps,
                          check: &mut dyn FnMut(&str, &str, &str)|
             -> Outcome {
                for (sql, hold) in steps {
                    asked(client, sql)?;
                    check(sql, &settled(&proxy, client)?, hold);
                }
                Ok(())
            };
            let mut client = Some(log_in(&proxy)?);
            let taker = client.as_mut().ok_or("nobody")?;
            check("before", &settled(&proxy, taker)?, "");
            follow(taker, takes, &mut check)?;
            // There is no other connection, and nobody is let to this one.
            patience(200)?;
            check("a neighbour meanwhile", &asks("SELECT 1")?, "9001");
            patience(600_000)?;
            follow(taker, gives_back, &mut check)?;
            // What has not been understood is kept until the session's end.
            client.take_if(|taker| settled(&proxy, taker).is_ok_and(|left| !left.is_empty()));
            check(then.0, &asks(then.0)?, then.1);
            drop(client);
            // Who leaves in the middle leaves nothing on the connection. What is prepared is
            // everybody's to end.
            let mut leaves = log_in(&proxy)?;
            follow(&mut leaves, takes, &mut check)?;
            drop(leaves);
            let _where_it_is = server.root("XA ROLLBACK 'x'");
            for sql in [then.0, WRITE] {
                let wanted = if sql == WRITE || then.1.is_empty() {
                    ""
                } else {
                    then.1
                };
                check(&format!("{sql} after one who left"), &asks(sql)?, wanted);
            }
        }
    }
    expect(wrong.is_empty(), || wrong.join("\n"))
}

/// A server answers COM_RESET_CONNECTION and COM_CHANGE_USER when it has let go of everything; so
/// the session, and whoever it tells, may go on at once.
fn free_after_reset(driver: Driver) -> Outcome {
    const SKIPS: &str = "SELECT COUNT(*) FROM (SELECT id FROM conf.scratch WHERE id > 100 FOR UPDATE SKIP LOCKED) AS free";
    for vendor in vendors() {
        let (server, proxy) = by_hand::one(driver, vendor)?;
        server.root("INSERT INTO conf.scratch (id) SELECT 100 + a.id * 100 + b.id FROM conf.numbers a, conf.numbers b WHERE a.id < 100 AND b.id < 100")?;
        let all = server.root("SELECT COUNT(*) FROM conf.scratch WHERE id > 100")?;
        let all = all.lines().last().unwrap_or_default();
        // There are idle connections enough, so that the session finds another one at once.
        let mut besides: Vec<Raw> = (0..4).map(|_| log_in(&proxy)).collect::<Result<_, _>>()?;
        for statement in ["BEGIN", "ROLLBACK"] {
            for one in &mut besides {
                asked(one, statement)?;
            }
        }
        let mut client = packets::Raw::log_in(proxy.port, caps::DEPRECATE_EOF)?;
        let mut other = log_in(&proxy)?;
        for turn in 0..8 {
            let lock = client.query("SELECT GET_LOCK('kept', 0)")?;
            expect(lock.contains(r"\x011"), || {
                format!("{vendor}, turn {turn}: {lock}")
            })?;
            client.query("BEGIN")?;
            client.query("UPDATE conf.scratch SET words = 'kept' WHERE id > 100")?;
            // Our client cannot say caching_sha2_password's long answer.
            if turn % 2 == 0 || vendor == Vendor::MySql {
                client.ask(&[0x1F], Expect::Simple)?;
            } else {
                client.change_user("app")?;
            }
            let free = asked(&mut other, SKIPS)?.concat().concat();
            expect(free == all, || {
                format!("{vendor}, turn {turn}: {free} rows of {all} are free")
            })?;
        }
    }
    Ok(())
}

/// Statements on locks of users, and what holds the connection after each: nothing, exactly when
/// the server has none of the session's there any more.
const LOCKS: &[&[(&str, &str)]] = &[
    &[
        ("DO GET_LOCK('kept', 0)", "UserLock"),
        ("SELECT 1", "UserLock"),
        ("DO RELEASE_LOCK('kept')", ""),
    ],
    &[
        ("SELECT GET_LOCK('kept', 0)", "UserLock"),
        ("DO RELEASE_LOCK('kept')", ""),
    ],
    &[
        ("DO GET_LOCK('kept', 0)", "UserLock"),
        ("SELECT RELEASE_LOCK('kept')", ""),
    ],
    &[
        ("DO GET_LOCK('kept', 0), GET_LOCK('other', 0)", "UserLock"),
        ("DO GET_LOCK('kept', 0)", "UserLock"),
        ("DO RELEASE_LOCK('kept')", "UserLock"),
        ("DO RELEASE_LOCK('other')", "UserLock"),
        ("SELECT RELEASE_LOCK('kept')", ""),
    ],
    // MariaDB writes its numbers so, too.
    &[
        ("SET character_set_results = utf16", ""),
        ("SELECT GET_LOCK('kept', 0)", "UserLock"),
        ("SELECT RELEASE_LOCK('kept')", ""),
        ("SET character_set_results = utf8mb4", ""),
    ],
    // It is somebody else's.
    &[
        ("DO GET_LOCK('taken', 0)", ""),
        ("SELECT GET_LOCK('taken', 0)", ""),
        ("SET @x = GET_LOCK('taken', 0)", ""),
        ("SELECT @x", ""),
    ],
    &[
        ("SET @x = GET_LOCK('kept', 0)", "Unread UserLock"),
        ("SELECT @x", "Unread UserLock"),
        ("SET @x = RELEASE_LOCK('kept')", ""),
        ("SELECT @x", ""),
    ],
    &[
        (
            "SELECT id, GET_LOCK('kept', 0) FROM conf.numbers LIMIT 1",
            "UserLock",
        ),
        ("SELECT MAX(RELEASE_LOCK('kept')) FROM conf.numbers", ""),
    ],
    &[
        ("BEGIN", "Transaction"),
        ("DO GET_LOCK('kept', 0)", "Transaction UserLock"),
        ("DO RELEASE_LOCK('kept')", "Transaction UserLock"),
        ("COMMIT", ""),
    ],
    &[
        ("DO GET_LOCK('kept', 0)", "UserLock"),
        ("SELECT RELEASE_ALL_LOCKS()", ""),
    ],
    &[
        ("SELECT GET_LOCK('kept', 0)", "UserLock"),
        ("SET @n = RELEASE_ALL_LOCKS()", ""),
    ],
    // The id of an insert and the lock do not wait for each other.
    &[
        ("SELECT GET_LOCK('kept', 0)", "UserLock"),
        (
            "INSERT INTO conf.made_ids VALUES (NULL, 1)",
            "InsertId UserLock",
        ),
        ("DO RELEASE_LOCK('kept')", ""),
    ],
    &[
        ("SELECT GET_LOCK('kept', 0)", "UserLock"),
        (
            "INSERT INTO conf.made_ids VALUES (NULL, 1)",
            "InsertId UserLock",
        ),
        ("SELECT 1", "InsertId UserLock"),
        ("SELECT 2", "InsertId UserLock"),
        ("SELECT 3", "InsertId UserLock"),
        ("SELECT 4", "InsertId UserLock"),
        ("SELECT 5", "InsertId UserLock"),
        ("SELECT 6", "InsertId UserLock"),
        ("DO RELEASE_LOCK('kept')", ""),
    ],
    // Nobody knows its name.
    &[
        ("DO GET_LOCK(CONCAT('ke', 'pt'), 0)", "UserLock"),
        ("DO RELEASE_LOCK('kept')", "UserLock"),
        ("DO RELEASE_ALL_LOCKS()", ""),
    ],
];

/// To MySQL a number is a name, too; MariaDB refuses it.
const NUMBERED: &[(&str, &str)] = &[
    ("DO GET_LOCK(4711, 0)", "UserLock"),
    ("DO RELEASE_LOCK(4711)", ""),
];
/// Statements that fail have locked nothing, which is known when the client is silent.
const FAILING: &[(&str, &str)] = &[
    ("DO GET_LOCK('kept', 0), no_such_column", ""),
    ("SELECT GET_LOCK('kept', 'x', 0)", ""),
];

/// Where the session wants no rows, MySQL's `DO` does nothing, nor does a SELECT.
const LIMITED: &[(&str, &str)] = &[
    ("SELECT GET_LOCK('kept', 0)", "UserLock"),
    ("SET sql_select_limit = 0", "UserLock"),
    ("DO RELEASE_ALL_LOCKS()", "UserLock"),
    ("SELECT RELEASE_ALL_LOCKS()", "UserLock"),
    ("DO RELEASE_LOCK('kept')", "UserLock"),
    ("SET sql_select_limit = DEFAULT", "UserLock"),
    ("DO RELEASE_ALL_LOCKS()", ""),
];

fn locks_of_users(driver: Driver) -> Outcome {
    let mut wrong = Vec::new();
    for vendor in vendors() {
        let (server, proxy) = by_hand::one(driver, vendor)?;
        // Where a direct client asks.
        let twin = Server::start(vendor)?;
        twin.root(by_hand::CREATE_USER)?;
        narrow(&proxy)?;
        for server in [&server, &twin] {
            server.root("CREATE TABLE conf.made_ids (id INT AUTO_INCREMENT PRIMARY KEY, n INT)")?;
        }
        let direct_to =
            |server: &Server| Raw::log_in(server.port).map_err(|error| error.to_string());
        let mut others = [direct_to(&server)?, direct_to(&twin)?];
        for other in &mut others {
            asked(other, "DO GET_LOCK('taken', 0)")?;
        }
        let numbered = if vendor == Vendor::MySql {
            NUMBERED
        } else {
            FAILING
        };
        let limited = if vendor == Vendor::MySql {
            LIMITED
        } else {
            FAILING
        };
        for steps in LOCKS.iter().chain(&[numbered, FAILING, limited]) {
            let (mut client, mut direct) = (log_in(&proxy)?, direct_to(&twin)?);
            for (sql, hold) in *steps {
                let (wanted, found) =
                    (direct.ask(sql).map_err(drop), client.ask(sql).map_err(drop));
                if wanted != found {
                    wrong.push(format!(
                        "{vendor}, {steps:?}, {sql}: {found:?} instead of {wanted:?}"
                    ));
                }
                // Warnings and the id of an insert are there until it is silent.
                if let Err(found) = soon(hold, || settled(&proxy, &mut client)) {
                    wrong.push(format!("{vendor}, {steps:?}, {sql}: held: {found}"));
                }
            }
            let free = asked(
                &mut others[0],
                "SELECT IS_FREE_LOCK('kept') AND IS_FREE_LOCK('other') AND IS_FREE_LOCK('4711')",
            )?;
            let free = free.concat();
            if free != ["1"] {
                wrong.push(format!(
                    "{vendor}, {steps:?}: left on a connection that is shared"
                ));
            }
        }
        prepared_locks(&proxy, &mut others[0])?;
    }
    expect(wrong.is_empty(), || wrong.join("\n"))
}

/// The answer to an execution says whether there is a lock, whatever its name.
fn prepared_locks(proxy: &Proxy, other: &mut Raw) -> Outcome {
    let mut client = packets::Raw::log_in(proxy.port, caps::DEPRECATE_EOF)?;
    for sql in [
        "SELECT GET_LOCK(?, 0)",
        "SELECT RELEASE_LOCK(?)",
        "DO RELEASE_LOCK(?)",
    ] {
        client.prepare(sql)?;
    }
    let holds = |id: u32| {
        proxy.admin(&format!(
            "SELECT hold FROM stats_mysql_session_holds WHERE SessionID = {id}"
        ))
    };
    // A string: no NULL, its type follows.
    let name = |name: &[u8]| [b"\0\x01\xFE\0".as_slice(), &[name.len() as u8], name].concat();
    for (nth, lock, held) in [
        (0, b"taken".as_slice(), ""),
        (0, b"kept", "UserLock"),
        (0, b"kept", "UserLock"),
        (1, b"kept", "UserLock"),
        (1, b"other", "UserLock"),
        (1, b"kept", ""),
        (0, b"kept", "UserLock"),
        // It may have been another's.
        (2, b"kept", "UserLock"),
    ] {
        client.execute(nth, 0, &name(lock))?;
        let found = holds(client.id)?;
        expect(found.trim() == held, || {
            format!("prepared {nth} of {lock:?}: held by {found:?} instead of {held:?}")
        })?;
    }
    client.query("SELECT RELEASE_ALL_LOCKS()")?;
    let found = holds(client.id)?;
    let free = asked(other, "SELECT IS_FREE_LOCK('kept')")?.concat();
    expect(found.trim().is_empty() && free == ["1"], || {
        format!("after all were released: held by {found:?}, free: {free:?}")
    })
}
