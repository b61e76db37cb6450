//! State that a statement, a program or a session has left on its connection.

use conformance::beside::{asked, beside, beside_with, narrow, set, settled};
use conformance::by_hand::Raw;
use conformance::clients::{Client, app};
use conformance::proxy::Driver;
use conformance::servers::{Vendor, vendors};
use conformance::trials::{expect, same, soon};
use std::thread;
use std::time::Duration;

use super::{INSERT, Outcome, log_in, log_in_at, one, one_of};

pub(super) fn put_right(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (server, proxy) = one_of(driver, vendor)?;
        server.root("CREATE DATABASE one; CREATE DATABASE two; CREATE TABLE one.t (a INT); CREATE TABLE two.t (a INT);")?;
        narrow(&proxy)?;
        let isolation = if vendor == Vendor::MariaDb {
            "@@tx_isolation"
        } else {
            "@@transaction_isolation"
        };
        let what = format!(
            "SELECT DATABASE(), {isolation}, @@collation_connection, @@character_set_results, @@sql_mode, @@autocommit, @x"
        );
        // MySQL 8's default and one that all servers know; MariaDB takes the first for its own
        // default.
        for collation in [255, 45] {
            let log_in = |port| {
                Raw::log_in_with(port, b"", collation)
                    .map(|(raw, _)| raw)
                    .map_err(|error| error.to_string())
            };
            let mut direct = log_in(server.port)?;
            asked(&mut direct, "USE two")?;
            let wanted = asked(&mut direct, &what)?;
            for left in [
                &["SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE"][..],
                &["SET @x = 5, @y = 'y'"],
                &[
                    "SET sql_mode = 'ANSI'",
                    "SET SESSION TRANSACTION READ ONLY",
                    "SET @x = 6",
                ],
                &["SET NAMES latin1", "SET autocommit = 0", "SELECT 1"],
            ] {
                // Where the others are is settled before the first does what it leaves behind.
                let mut first = log_in(proxy.port)?;
                let mut second = beside_with(&proxy, &first, collation)?;
                asked(&mut second, "USE two")?;
                let mut third = beside_with(&proxy, &first, collation)?;
                asked(&mut third, "USE two")?;
                asked(&mut first, "USE one")?;
                for sql in left {
                    asked(&mut first, sql)?;
                }
                asked(&mut first, "SELECT @x")?;
                if left.iter().any(|sql| sql.contains("autocommit")) {
                    asked(&mut first, "SET autocommit = 1")?;
                }
                let found = asked(&mut second, &what)?;
                expect(found == wanted, || {
                    format!(
                        "{vendor}, {collation}, after {left:?}: {found:?} instead of {wanted:?}"
                    )
                })?;
                asked(&mut first, "SELECT 1")?;
                asked(&mut second, "INSERT INTO t VALUES (1)")?;
                let remembered = asked(&mut third, "SELECT LAST_INSERT_ID(), DATABASE()")?;
                expect(remembered.concat()[0] == "0", || {
                    format!("{vendor}, {collation}: {remembered:?}")
                })?;
            }
        }
        let rows =
            server.root("SELECT (SELECT COUNT(*) FROM one.t), (SELECT COUNT(*) FROM two.t)")?;
        expect(rows.trim_end().ends_with("0\t8"), || {
            format!("{vendor}: {rows}")
        })?;
    }
    Ok(())
}

/// Connections that wait in the pool began otherwise, and so did the one that a transaction keeps.
pub(super) fn other_init_connect(driver: Driver) -> Outcome {
    let (_server, proxy) = one(driver)?;
    set(&proxy, "SET mysql-init_connect='SET lock_wait_timeout=11'")?;
    let (mut first, mut second) = (log_in(&proxy)?, log_in(&proxy)?);
    for client in [&mut first, &mut second] {
        asked(client, "BEGIN")?;
        asked(client, "SELECT 1 FROM conf.scratch")?;
    }
    asked(&mut second, "COMMIT")?;
    for wanted in ["12", "86400"] {
        let text = if wanted == "12" {
            "SET lock_wait_timeout=12"
        } else {
            ""
        };
        set(&proxy, &format!("SET mysql-init_connect='{text}'"))?;
        for _ in 0..10 {
            let seen = asked(&mut second, "SELECT @@lock_wait_timeout")?;
            expect(seen == [[wanted]], || {
                format!("{seen:?} where {wanted} is wanted")
            })?;
        }
        if wanted == "12" {
            let kept = asked(&mut first, "SELECT @@lock_wait_timeout")?;
            expect(kept == [["11"]], || format!("in a transaction {kept:?}"))?;
            asked(&mut first, "COMMIT")?;
        }
    }
    Ok(())
}

pub(super) fn init_connect(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (_server, proxy) = one_of(driver, vendor)?;
        narrow(&proxy)?;
        set(
            &proxy,
            "SET mysql-init_connect=\"SET time_zone='+03:00', sql_mode='ANSI'\"",
        )?;
        let what = "SELECT @@time_zone, @@sql_mode LIKE '%ANSI%'";
        for left in [
            "SELECT 1",
            "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE",
            "SET sql_mode=''",
            "SET @x=1",
            "SET time_zone=DEFAULT",
        ] {
            let mut first = log_in(&proxy)?;
            asked(&mut first, left)?;
            asked(&mut first, "SELECT @x")?;
            let mut second = beside(&proxy, &first)?;
            let found = asked(&mut second, what)?;
            expect(found == [["+03:00", "1"]], || {
                format!("{vendor}, after {left}: {found:?}")
            })?;
            asked(&mut second, "SHOW WARNINGS")?;
            let found = asked(&mut second, what)?;
            expect(found == [["+03:00", "1"]], || {
                format!("{vendor}, after SHOW WARNINGS: {found:?}")
            })?;
        }
    }
    Ok(())
}

pub(super) fn forgets(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (_server, proxy) = one_of(driver, vendor)?;
        narrow(&proxy)?;
        let mut client = log_in(&proxy)?;
        asked(&mut client, INSERT)?;
        let id = asked(&mut client, "SELECT LAST_INSERT_ID()")?;
        expect(id.concat() != ["0"], || format!("{vendor}: {id:?}"))?;
        asked(&mut client, INSERT)?;
        // COM_RESET_CONNECTION
        client
            .command(&[0x1f])
            .and_then(|()| client.rows())
            .map_err(|error| error.to_string())?;
        let id = asked(&mut client, "SELECT LAST_INSERT_ID()")?;
        expect(id.concat() == ["0"], || {
            format!("{vendor}: {id:?} after a reset")
        })?;
    }
    Ok(())
}

/// A name with a dot, and what stands behind the body of a program: none of it is left to the next
/// session on the connection.
pub(super) fn hidden_state(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (server, proxy) = one_of(driver, vendor)?;
        server.root("CREATE TABLE conf.target (x INT)")?;
        narrow(&proxy)?;
        let mut first = log_in(&proxy)?;
        asked(&mut first, "USE conf")?;
        asked(&mut first, "SELECT @app.id := 42")?;
        let mut second = beside(&proxy, &first)?;
        let seen = asked(&mut second, "SELECT @app.id")?;
        same(&seen.concat().concat(), "NULL")?;
        // COM_SET_OPTION: several statements in one text.
        first
            .command(&[0x1b, 0, 0])
            .and_then(|()| first.packet())
            .map_err(|error| error.to_string())?;
        let trigger = |name: &str, when: &str| {
            format!(
                "CREATE TRIGGER {name} BEFORE {when} ON target FOR EACH ROW BEGIN SET NEW.x = 1; END"
            )
        };
        let migration = format!(
            "{}; SET foreign_key_checks=0; {}",
            trigger("a", "INSERT"),
            trigger("b", "UPDATE")
        );
        for text in [
            &*migration,
            "CREATE PROCEDURE p() SELECT 1 AS begin; SET foreign_key_checks=0; SELECT 1 AS END",
        ] {
            let said = first
                .query(text)
                .and_then(|()| first.packet())
                .and_then(|_| first.packet())
                .and_then(|_| first.rows());
            said.map_err(|error| format!("{text}: {error}"))?;
            let holds = settled(&proxy, &mut first)?;
            expect(holds.contains("UnknownState"), || {
                format!("{vendor}: held by {holds}: {text}")
            })?;
            same(
                &asked(&mut first, "SELECT @@foreign_key_checks")?
                    .concat()
                    .concat(),
                "0",
            )?;
            first
                .command(&[0x1f])
                .and_then(|()| first.packet())
                .map_err(|error| error.to_string())?;
            same(
                &asked(&mut second, "SELECT @@foreign_key_checks")?
                    .concat()
                    .concat(),
                "1",
            )?;
        }
    }
    Ok(())
}

/// Without a transaction a COMMIT does nothing, unless it is to begin one.
pub(super) fn completion_type(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (_server, proxy) = one_of(driver, vendor)?;
        let mut client = log_in(&proxy)?;
        for sql in [
            "CREATE TABLE conf.chained (a INT)",
            "SET completion_type=1",
            "COMMIT",
            "INSERT INTO conf.chained VALUES (1)",
            "ROLLBACK",
            "SET completion_type=0",
            "COMMIT",
        ] {
            asked(&mut client, sql)?;
        }
        same(
            &asked(&mut client, "SELECT COUNT(*) FROM conf.chained")?
                .concat()
                .concat(),
            "0",
        )?;
    }
    Ok(())
}

/// Rather the end of the session than a lock that is gone without a word.
pub(super) fn reset_of_held(driver: Driver) -> Outcome {
    let (server, proxy) = one(driver)?;
    let to = |hostgroup: u32| format!("/* hostgroup={hostgroup} */ ");
    proxy.admin(&format!(
        "INSERT INTO mysql_servers (hostgroup_id, hostname, port) VALUES (1, '127.0.0.1', {}); LOAD MYSQL SERVERS TO RUNTIME",
        server.port
    ))?;
    proxy.admin("INSERT INTO mysql_query_rules (rule_id, active, match_digest, destination_hostgroup, apply) VALUES (1, 1, '^SELECT', 1, 1); LOAD MYSQL QUERY RULES TO RUNTIME")?;
    let mut client = log_in(&proxy)?;
    asked(
        &mut client,
        "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE",
    )?;
    asked(&mut client, &format!("{}SELECT GET_LOCK('mine', 0)", to(1)))?;
    asked(&mut client, "SET SESSION tx_isolation = DEFAULT")?;
    let free = "SELECT IS_FREE_LOCK('mine')";
    let said = client.ask(&format!("{}SELECT 1", to(1)));
    let is_free = server.root(free)?.trim_end().ends_with('1');
    expect(said.is_err() || !is_free, || {
        format!("{said:?}, and the lock is gone")
    })?;
    Ok(())
}

/// Its answer is paid for slowly, and it leaves while it would have to wait.
pub(super) fn left_transaction(driver: Driver) -> Outcome {
    let (server, proxy) = one(driver)?;
    let mut first = log_in(&proxy)?;
    let mut second = beside(&proxy, &first)?;
    set(
        &proxy,
        "SET mysql-kill_backend_connection_when_disconnect=0; SET mysql-throttle_max_bytes_per_second_to_client=10",
    )?;
    asked(&mut first, "BEGIN")?;
    drop(first);
    set(
        &proxy,
        "SET mysql-throttle_max_bytes_per_second_to_client=0",
    )?;
    soon("0", || {
        proxy
            .admin("SELECT SUM(ConnUsed) FROM stats_mysql_connection_pool")
            .map(|said| said.trim().to_owned())
    })?;
    asked(&mut second, INSERT)?;
    same(
        server
            .root("SELECT COUNT(*) FROM conf.counted WHERE words = 'held'")?
            .lines()
            .last()
            .unwrap_or_default(),
        "1",
    )
}

pub(super) fn routines(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (server, proxy) = one_of(driver, vendor)?;
        server.root("SET GLOBAL log_bin_trust_function_creators = 1; CREATE FUNCTION conf.grab() RETURNS INT RETURN GET_LOCK('job', 0); CREATE FUNCTION conf.vouched() RETURNS INT RETURN 1; CREATE FUNCTION conf.single() RETURNS INT RETURN 1;")?;
        let mut first = log_in(&proxy)?;
        let mut second = beside(&proxy, &first)?;
        let got = asked(&mut first, "SELECT conf.grab()")?.concat();
        expect(got == ["1"], || format!("{vendor}: {got:?}"))?;
        // MariaDB also tells that something changed.
        let holds = settled(&proxy, &mut first)?;
        expect(holds.starts_with("Routine"), || {
            format!("{vendor}: {holds}")
        })?;
        let got = asked(&mut second, "SELECT conf.grab()")?.concat();
        expect(got == ["0"], || {
            format!("{vendor}: a lock was had by two: {got:?}")
        })?;
        // Functions of the server, and those that somebody vouches for, hold nothing. (`one` would be
        // noted by MariaDB, now and then, as a name of its own.)
        proxy.admin("INSERT INTO mysql_hostgroup_attributes (hostgroup_id, hostgroup_settings) VALUES (0, '{\"read_hostgroup\": 1, \"read_only_routines\": [\"conf.vouched\", \"conf.single\"]}'); LOAD MYSQL SERVERS TO RUNTIME")?;
        let mut third = log_in(&proxy)?;
        asked(&mut third, "BEGIN")?;
        asked(
            &mut third,
            "SELECT conf.vouched(), CONCAT('a', UPPER('b')), NOW()",
        )?;
        asked(&mut third, "COMMIT")?;
        same(settled(&proxy, &mut third)?.as_str(), "")?;
        // A prepared statement calls those of the schema that it was prepared in.
        server.root("CREATE FUNCTION conf2.single() RETURNS INT RETURN GET_LOCK('another', 0);")?;
        for sql in [
            "USE conf2",
            "PREPARE s FROM 'SELECT single()'",
            "USE conf",
            "EXECUTE s",
        ] {
            asked(&mut third, sql)?;
        }
        let holds = settled(&proxy, &mut third)?;
        expect(holds.starts_with("Routine"), || {
            format!("{vendor}, prepared elsewhere: {holds:?}")
        })?;
    }
    Ok(())
}

/// Triggers and procedures that change a session, with errors in the middle of it.
pub(super) const PROGRAMS: &str = "CREATE TABLE conf.fires (a INT PRIMARY KEY); CREATE TABLE conf.sets (a INT);
    CREATE TRIGGER conf.fire BEFORE INSERT ON conf.fires FOR EACH ROW SET SESSION time_zone = '+05:00', max_sort_length = 500;
    CREATE TRIGGER conf.set BEFORE INSERT ON conf.sets FOR EACH ROW SET @of_trigger = 7;
    CREATE PROCEDURE conf.moves() SET SESSION time_zone = '+06:00', SESSION group_concat_max_len = 2000;
    CREATE PROCEDURE conf.hides() SELECT 5 INTO @hidden;";

pub(super) fn programs(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (server, proxy) = one_of(driver, vendor)?;
        server.root(PROGRAMS)?;
        // A reader and a writer: what is changed on one connection is wanted on another.
        proxy.admin(&format!(
            "INSERT INTO mysql_servers (hostgroup_id, hostname, port) VALUES (1, '127.0.0.1', {}); LOAD MYSQL SERVERS TO RUNTIME",
            server.port
        ))?;
        set(
            &proxy,
            "SET mysql-auto_increment_delay_multiplex=0; SET mysql-set_query_lock_on_hostgroup=0",
        )?;
        let what =
            "SELECT @@time_zone, @@max_sort_length, @@group_concat_max_len, @of_trigger, @hidden";
        let elsewhere = format!("/* hostgroup=1 */ {what}");
        for (statements, holds) in [
            (&["INSERT INTO conf.fires VALUES (1)"][..], "Unread Untold"),
            // It fails after the trigger has run; an error does not tell, and MariaDB never tells
            // all of it.
            (
                &["INSERT INTO conf.fires VALUES (1)", "SELECT 1"],
                if vendor == Vendor::MariaDb {
                    ""
                } else {
                    "InsertId Unread Untold"
                },
            ),
            (&["INSERT INTO conf.sets VALUES (1)"], "Untold"),
            (&["CALL conf.moves()"], "InsertId Procedure Unread Untold"),
            (&["CALL conf.hides()"], "InsertId Procedure"),
        ] {
            let (mut direct, mut client) = (log_in_at(server.port)?, log_in(&proxy)?);
            asked(&mut direct, "USE conf")?;
            asked(&mut client, "USE conf")?;
            for sql in statements {
                let _duplicate = (direct.ask(sql), client.ask(sql));
                if statements.len() == 1 {
                    server.root("DELETE FROM conf.fires WHERE a = 1")?;
                    let _the_one_that_the_direct_client_wrote = client.ask(sql);
                }
            }
            // Values are asked for when the client has its answer.
            // On a slow machine it was silent between its statements, and has been asked then.
            let has_been_silent = statements.len() > 1 && settled(&proxy, &mut client)? == "Untold";
            soon(if has_been_silent { "Untold" } else { holds }, || {
                settled(&proxy, &mut client)
            })
            .map_err(|words| format!("{vendor}, {statements:?}: {words}"))?;
            let wanted = asked(&mut direct, what)?;
            let found = asked(
                &mut client,
                if holds.contains("Procedure") || holds.contains("Untold") {
                    what
                } else {
                    &elsewhere
                },
            )?;
            expect(found == wanted, || {
                format!("{vendor}, after {statements:?}: {found:?} instead of {wanted:?}")
            })?;
            // Whoever has that connection next has nothing of it.
            let mut next = beside(&proxy, &client)?;
            drop(client);
            let fresh = asked(&mut log_in_at(server.port)?, what)?;
            for sql in [what, &elsewhere, what] {
                let found = asked(&mut next, sql)?;
                expect(found == fresh, || {
                    format!(
                        "{vendor}, somebody else after {statements:?}: {found:?} instead of {fresh:?}"
                    )
                })?;
            }
        }
    }
    Ok(())
}

/// A trigger sets a variable of the user, and its statement fails: the server tells of it with the
/// answer to the next.
const FAILS: &str = "CREATE TABLE conf.once (a INT PRIMARY KEY); INSERT INTO conf.once VALUES (1);
    CREATE TRIGGER conf.leaves BEFORE INSERT ON conf.once FOR EACH ROW SET @of_trigger = 7;";

pub(super) fn told_late(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (server, proxy) = one_of(driver, vendor)?;
        server.root(FAILS)?;
        set(
            &proxy,
            "SET mysql-auto_increment_delay_multiplex=0; SET mysql-set_query_lock_on_hostgroup=0",
        )?;
        let fails = "INSERT INTO conf.once VALUES (1)";
        for statements in [
            &[fails, "SELECT 1"][..],
            // It fails, too, and MySQL cries for nothing after that.
            &[
                fails,
                "PREPARE s FROM 'SELECT * FROM conf.missing'",
                "SELECT 1",
            ],
            &[
                "PREPARE s FROM 'SELECT * FROM conf.missing'",
                fails,
                "SELECT 1",
            ],
            // What is brought there before it has told.
            &[fails, "SET sql_mode = 'ANSI'", "SELECT 1"],
            &["PREPARE s FROM 'SELECT 2'", fails, "EXECUTE s"],
            &[fails, "USE conf2", "SELECT 1"],
        ] {
            let mut client = log_in(&proxy)?;
            let mut other = beside(&proxy, &client)?;
            for sql in statements {
                let _some_fail = client.ask(sql);
            }
            thread::sleep(Duration::from_millis(50));
            let of_trigger = asked(&mut other, "SELECT @of_trigger")?.concat();
            expect(of_trigger == ["NULL"], || {
                format!("{vendor}, after {statements:?}: somebody else has {of_trigger:?}")
            })?;
        }
    }
    Ok(())
}

pub(super) fn told_later(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (server, proxy) = one_of(driver, vendor)?;
        server.root("CREATE TABLE conf.twice (a INT PRIMARY KEY); INSERT INTO conf.twice VALUES (1), (2);
            CREATE TRIGGER conf.zone BEFORE UPDATE ON conf.twice FOR EACH ROW SET SESSION time_zone = '+05:00'; CREATE PROCEDURE conf.nothing() DO 0;")?;
        set(&proxy, "SET mysql-handle_warnings_delay_ms=0")?;
        let fails = "UPDATE conf.twice SET a = 1 WHERE a = 2";
        for statements in [
            &[
                fails,
                "SELECT CONNECTION_ID()",
                "SELECT @@SESSION.time_zone",
            ][..],
            // What is prepared there by a name of the session is told it, before the CALL.
            &[
                "PREPARE s FROM 'SELECT 1'",
                fails,
                "CALL conf.nothing()",
                "SELECT @@SESSION.time_zone",
            ],
        ] {
            let (mut direct, mut client) = (log_in_at(server.port)?, log_in(&proxy)?);
            for sql in statements {
                let (wanted, found) = (direct.ask(sql).ok(), client.ask(sql).ok());
                let own = sql.contains("CONNECTION_ID");
                expect(own || found == wanted, || {
                    format!("{vendor}, {statements:?}: {sql}: {found:?} instead of {wanted:?}")
                })?;
            }
            // Wherever it goes then.
            let _another = beside(&proxy, &client)?.ask("BEGIN");
            let (wanted, found) = (
                direct.ask("SELECT @@time_zone").ok(),
                client.ask("SELECT @@time_zone").ok(),
            );
            expect(found == wanted, || {
                format!("{vendor}, after {statements:?}: {found:?} instead of {wanted:?}")
            })?;
        }
    }
    Ok(())
}

pub(super) fn recalled(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (server, proxy) = one_of(driver, vendor)?;
        narrow(&proxy)?;
        let (mut direct, mut client) = (log_in_at(server.port)?, log_in(&proxy)?);
        let mut other = beside(&proxy, &client)?;
        for sql in [
            "SELECT id FROM conf.types",
            "SELECT FOUND_ROWS()",
            "SELECT FOUND_ROWS() AS `again`",
            "SELECT id FROM conf.types WHERE id < 0",
            "select found_rows() n",
        ] {
            // Somebody else has the same connection in between, with numbers of his own.
            asked(&mut other, "SELECT * FROM conf.numbers LIMIT 7")?;
            let (wanted, found) = (asked(&mut direct, sql)?, asked(&mut client, sql)?);
            expect(found == wanted, || {
                format!("{vendor}, {sql}: {found:?} instead of {wanted:?}")
            })?;
        }
        let own = client.id.to_string();
        for sql in [
            "SELECT CONNECTION_ID()",
            "BEGIN",
            "SELECT CONNECTION_ID() AS me",
            "COMMIT",
        ] {
            let said = asked(&mut client, sql)?.concat();
            expect(said.is_empty() || said == [own.as_str()], || {
                format!("{vendor}: {said:?} instead of {own}")
            })?;
        }
        // The answer of ours looks like theirs.
        use conformance::raw::Raw as Bytes;
        let warm_up = conformance::cache::root().join("conformance/scenarios/warm-up.txt");
        let _either_way = Client::MariaDbCli.run(app(server.port), &warm_up);
        {
            let caps = wire::caps::DEPRECATE_EOF;
            let (mut direct, mut client) = (
                Bytes::log_in(server.port, caps)?,
                Bytes::log_in(proxy.port, caps)?,
            );
            for sql in [
                "SELECT 1",
                "SELECT FOUND_ROWS()",
                "SELECT FOUND_ROWS() AS n",
            ] {
                let (wanted, found) = (direct.query(sql)?, client.query(sql)?);
                expect(found == wanted, || {
                    format!("{vendor}, {sql}:\n{found}\ninstead of\n{wanted}")
                })?;
            }
        }
    }
    Ok(())
}

pub(super) fn latin1_schema(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (server, proxy) = one_of(driver, vendor)?;
        // The second is what the bytes of the first are when they are taken for latin1.
        server.root("CREATE DATABASE `caf\u{e9}`; CREATE DATABASE `caf\u{c3}\u{a9}`")?;
        narrow(&proxy)?;
        for (name, wanted) in [
            (&b"caf\xe9"[..], "636166C3A9"),
            (b"caf\xc3\xa9", "636166C383C2A9"),
        ] {
            let mut client = Raw::log_in_with(proxy.port, b"", 8)
                .map(|(raw, _)| raw)
                .map_err(|error| error.to_string())?;
            let mut other = beside(&proxy, &client)?;
            let init_db = [b"\x02", name].concat();
            client
                .command(&init_db)
                .and_then(|()| client.packet())
                .map_err(|error| error.to_string())?;
            for _ in 0..3 {
                // They have one connection between them.
                asked(&mut other, "USE conf")?;
                asked(&mut other, "SELECT DATABASE()")?;
                let found = asked(
                    &mut client,
                    "SELECT HEX(CONVERT(DATABASE() USING utf8mb4)), @@character_set_client",
                )?
                .concat();
                expect(found == [wanted, "latin1"], || {
                    format!("{vendor}: {found:?} instead of {wanted}")
                })?;
                same(settled(&proxy, &mut client)?.as_str(), "")?;
            }
        }
    }
    Ok(())
}
