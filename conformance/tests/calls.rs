//! What procedures and functions leave on their connection, and for how long it is kept for that
//! (docs/decisions/0025-what-a-call-leaves.md).
#![forbid(unsafe_code)]

use std::thread;
use std::time::Duration;

use conformance::beside::{asked, beside, held, narrow, set, settled};
use conformance::by_hand::{self, Raw};
use conformance::proxy::{Driver, Proxy};
use conformance::servers::{Server, Vendor, vendors};
use conformance::trials::{self, expect, same, soon};

type Outcome = Result<(), String>;

fn main() {
    trials::run(&[
        (
            "a_call_that_leaves_only_user_variables_is_not_kept",
            travels,
        ),
        ("what_a_call_leaves_otherwise_keeps_its_connection", stays),
        ("what_a_failed_call_has_left_is_asked_for_too", failed),
        ("what_the_server_remembers_of_a_call_travels", remembered),
        (
            "who_may_not_ask_what_a_call_leaves_keeps_its_connection",
            refused,
        ),
        (
            "how_many_rows_a_session_wants_to_see_hides_nothing_of_it",
            limited,
        ),
        (
            "a_call_of_what_only_reads_is_not_kept_wherever_it_is",
            listed,
        ),
        ("a_call_that_a_rule_vouches_for_is_not_kept", vouched),
        (
            "what_is_set_elsewhere_since_a_call_is_not_overwritten",
            overwritten,
        ),
        ("nobody_sees_that_the_server_tells_of_transactions", unseen),
    ])
}

const PROGRAMS: &str = "SET GLOBAL log_bin_trust_function_creators = 1;
    CREATE PROCEDURE conf.hides() SELECT 5, 'ü' COLLATE utf8mb4_bin INTO @hidden, @Other;
    CREATE PROCEDURE conf.gives(OUT a INT) SELECT 7 INTO a;
    CREATE PROCEDURE conf.large() SELECT REPEAT('a', 100000) INTO @hidden;
    CREATE PROCEDURE conf.foreign_name() SELECT 5 INTO @`größe`;
    CREATE PROCEDURE conf.writes() BEGIN INSERT INTO conf.counted (words) VALUES ('called'); SELECT 3 INTO @hidden; END;
    CREATE PROCEDURE conf.nothing() DO 0;
    CREATE PROCEDURE conf.grabs() DO GET_LOCK('of_procedure', 0);
    CREATE PROCEDURE conf.prepares() PREPARE of_procedure FROM 'SELECT 8';
    CREATE PROCEDURE conf.makes() CREATE TEMPORARY TABLE conf.of_procedure (a INT);
    CREATE PROCEDURE conf.announces() SET TRANSACTION ISOLATION LEVEL SERIALIZABLE;
    CREATE PROCEDURE conf.begins() START TRANSACTION;
    CREATE PROCEDURE conf.sets() SET SESSION time_zone = '+06:00';
    CREATE PROCEDURE conf.reads_locked() FLUSH TABLES WITH READ LOCK;
    CREATE PROCEDURE conf.selects() BEGIN SELECT id FROM conf.numbers LIMIT 3; SELECT 1 INTO @hidden; END;
    CREATE FUNCTION conf.tells() RETURNS INT BEGIN SELECT 6 INTO @hidden; RETURN 1; END;
    CREATE FUNCTION conf.grabs_too() RETURNS INT RETURN GET_LOCK('of_function', 0);";

/// A server that can be asked, where it is MySQL.
fn one(driver: Driver, vendor: Vendor) -> Result<(Server, Proxy), String> {
    let options: &[&str] = if vendor == Vendor::MySql {
        &["--performance-schema=ON"]
    } else {
        &[]
    };
    let (server, proxy) = by_hand::one_with(driver, vendor, options)?;
    server.root(&format!(
        "DELIMITER //\n{}//\nDELIMITER ;",
        PROGRAMS.replace(";\n", "//\n")
    ))?;
    set(&proxy, "SET mysql-handle_warnings_delay_ms=5")?;
    Ok((server, proxy))
}

fn log_in(proxy: &Proxy) -> Result<Raw, String> {
    let mut client = Raw::log_in(proxy.port).map_err(|error| error.to_string())?;
    asked(&mut client, "USE conf")?;
    Ok(client)
}

/// Waits until the session's holds are these because its client is silent.
fn held_then(proxy: &Proxy, client: &Raw, is_so: impl Fn(&str) -> bool) -> Outcome {
    // Who is silent since later has been asked by then; the answer to the first may take longer.
    let mut later = beside(proxy, client)?;
    asked(&mut later, "SELECT CAST('x' AS SIGNED)")?;
    soon("", || settled(proxy, &mut later))?;
    let mut holds = String::new();
    soon("true", || {
        holds = held(proxy, client)?;
        Ok(is_so(&holds).to_string())
    })
    .map_err(|_| format!("held for {holds:?}"))
}

fn travels(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (server, proxy) = one(driver, vendor)?;
        if vendor == Vendor::MySql {
            narrow(&proxy)?;
        }
        let what = "SELECT @hidden, @other, HEX(@other), COLLATION(@other), @got, @own";
        for statement in [
            "CALL conf.hides()",
            "CALL conf.gives(@got)",
            "SELECT conf.tells()",
            "CALL conf.writes()",
            "CALL conf.nothing()",
        ] {
            let mut direct = Raw::log_in(server.port).map_err(|error| error.to_string())?;
            let mut client = log_in(&proxy)?;
            let mut other = beside(&proxy, &client)?;
            for sql in ["SET @own = 'mine'", statement] {
                same(
                    &asked(&mut client, sql)?.concat().join(" "),
                    &asked(&mut direct, sql)?.concat().join(" "),
                )?;
            }
            if vendor == Vendor::MariaDb {
                // It does not say what locks it has.
                held_then(&proxy, &client, |holds| {
                    holds.contains("Procedure") || holds.contains("Routine")
                })
                .map_err(|words| format!("{statement}: {words}"))?;
                let (found, wanted) = (asked(&mut client, what)?, asked(&mut direct, what)?);
                expect(found == wanted, || {
                    format!("{statement}: {found:?} instead of {wanted:?}")
                })?;
                continue;
            }
            soon("", || settled(&proxy, &mut client))
                .map_err(|words| format!("{statement}: {words}"))?;
            // There is one connection, and now somebody else has it.
            let nothing = asked(&mut other, what)?.concat();
            expect(
                nothing
                    .iter()
                    .all(|value| value == "NULL" || value.is_empty() || value == "binary"),
                || format!("{statement}: somebody else sees {nothing:?}"),
            )?;
            asked(&mut other, "SET @hidden = 'of another', @got = 77")?;
            asked(&mut other, "SELECT @hidden, @got")?;
            for _ in 0..2 {
                let (found, wanted) = (asked(&mut client, what)?, asked(&mut direct, what)?);
                expect(found == wanted, || {
                    format!("{vendor}, {statement}: {found:?} instead of {wanted:?}")
                })?;
                same(
                    &asked(&mut other, "SELECT @hidden, @got")?
                        .concat()
                        .join(" "),
                    "of another 77",
                )?;
            }
            let id = "SELECT LAST_INSERT_ID() > 0";
            asked(&mut other, "SELECT 1")?;
            let (found, wanted) = (asked(&mut client, id)?, asked(&mut direct, id)?);
            expect(found == wanted, || {
                format!("{vendor}, {statement}: {found:?} instead of {wanted:?}")
            })?;
        }
    }
    Ok(())
}

fn stays(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (_server, proxy) = one(driver, vendor)?;
        let mysql = vendor == Vendor::MySql;
        for (statement, hold, ends, look, wanted) in [
            // Locks are looked for again after each statement.
            (
                "CALL conf.grabs()",
                "Procedure",
                "SELECT RELEASE_LOCK('of_procedure')",
                "SELECT IS_USED_LOCK('of_procedure') IS NULL",
                "0",
            ),
            (
                "SELECT conf.grabs_too()",
                "Routine",
                "DO RELEASE_ALL_LOCKS()",
                "SELECT IS_USED_LOCK('of_function') IS NULL",
                "0",
            ),
            (
                "CALL conf.announces()",
                "NextTransaction",
                "COMMIT",
                "SELECT 1",
                "1",
            ),
            (
                "CALL conf.begins()",
                "Transaction",
                "COMMIT",
                "SELECT 2",
                "2",
            ),
            (
                "CALL conf.prepares()",
                "Untold",
                "",
                "EXECUTE of_procedure",
                "8",
            ),
            (
                "CALL conf.makes()",
                "Untold",
                "",
                "SELECT COUNT(*) FROM conf.of_procedure",
                "0",
            ),
            (
                "CALL conf.sets()",
                "Untold",
                "",
                "SELECT @@time_zone",
                "+06:00",
            ),
            (
                "CALL conf.large()",
                "UserVariable",
                "",
                "SELECT LENGTH(@hidden)",
                "100000",
            ),
            ("CALL conf.foreign_name()", "Procedure", "", "SELECT 5", "5"),
            (
                "CALL conf.reads_locked()",
                "Procedure",
                "UNLOCK TABLES",
                "SELECT 6",
                "6",
            ),
        ] {
            let mut client = log_in(&proxy)?;
            asked(&mut client, statement)?;
            let hold = if mysql || hold == "Transaction" || hold == "Untold" || hold == "Routine" {
                hold
            } else {
                "Procedure"
            };
            let has_it = |holds: &str| holds.split(' ').any(|one| one == hold);
            held_then(&proxy, &client, has_it)
                .map_err(|words| format!("{vendor}, {statement}: {words} without {hold}"))?;
            let found = asked(&mut client, look)?.concat();
            expect(found == [wanted], || {
                format!("{vendor}, {look} after {statement}: {found:?}")
            })?;
            held_then(&proxy, &client, has_it).map_err(|words| {
                format!("{vendor}, {statement}, then {look}: {words} without {hold}")
            })?;
            if mysql && !ends.is_empty() {
                asked(&mut client, ends)?;
                soon("", || settled(&proxy, &mut client))
                    .map_err(|words| format!("{vendor}, {statement}, {ends}: {words}"))?;
            } else {
                held_then(&proxy, &client, |holds| !holds.is_empty())
                    .map_err(|words| format!("{vendor}, {statement}: {words}"))?;
            }
        }
    }
    Ok(())
}

fn failed(driver: Driver) -> Outcome {
    for vendor in vendors()
        .into_iter()
        .filter(|vendor| *vendor == Vendor::MySql)
    {
        let (server, proxy) = one(driver, vendor)?;
        server.root(
            "DELIMITER //\nCREATE PROCEDURE conf.fails_late() BEGIN SELECT 4 INTO @hidden; SIGNAL SQLSTATE '45000'; END//
            CREATE PROCEDURE conf.fails_announced() BEGIN SET TRANSACTION READ ONLY; SIGNAL SQLSTATE '45000'; END//\nDELIMITER ;",
        )?;
        let mut client = log_in(&proxy)?;
        expect(client.ask("CALL conf.fails_late()").is_err(), || {
            "it did not fail".to_owned()
        })?;
        soon("", || settled(&proxy, &mut client))?;
        let found = asked(&mut client, "SELECT @hidden")?.concat();
        expect(found == ["4"], || format!("{found:?}"))?;
        expect(client.ask("CALL conf.fails_announced()").is_err(), || {
            "it did not fail".to_owned()
        })?;
        held_then(&proxy, &client, |holds| holds.contains("NextTransaction"))?;
        for sql in [
            "BEGIN",
            "INSERT INTO conf.counted (words) VALUES ('refused')",
        ] {
            let said = client.ask(sql);
            expect(said.is_err() == sql.starts_with("INSERT"), || {
                format!("{sql}: {said:?}")
            })?;
        }
        asked(&mut client, "ROLLBACK")?;
        soon("", || settled(&proxy, &mut client))?;
    }
    Ok(())
}

fn remembered(driver: Driver) -> Outcome {
    for vendor in vendors()
        .into_iter()
        .filter(|vendor| *vendor == Vendor::MySql)
    {
        let (server, proxy) = one(driver, vendor)?;
        narrow(&proxy)?;
        let several = |port: u16| Raw::log_in_for_several(port).map_err(|error| error.to_string());
        let (mut direct, mut client) = (several(server.port)?, several(proxy.port)?);
        for raw in [&mut direct, &mut client] {
            asked(raw, "USE conf")?;
        }
        let mut other = beside(&proxy, &client)?;
        for (statement, look) in [
            ("CALL conf.selects()", "SELECT FOUND_ROWS()"),
            ("CALL conf.writes()", "SELECT ROW_COUNT()"),
            ("CALL conf.selects()", "SELECT @hidden, FOUND_ROWS()"),
        ] {
            for raw in [&mut direct, &mut client] {
                let rows = asked(raw, statement)?;
                if !rows.is_empty() {
                    raw.rows().map_err(|error| error.to_string())?;
                }
            }
            // A ping would be the statement before.
            soon("", || held(&proxy, &client))?;
            asked(&mut other, "SELECT id FROM conf.numbers LIMIT 7")?;
            let (found, wanted) = (asked(&mut client, look)?, asked(&mut direct, look)?);
            expect(found == wanted, || {
                format!("{vendor}, {statement}, {look}: {found:?} instead of {wanted:?}")
            })?;
        }
    }
    Ok(())
}

fn limited(driver: Driver) -> Outcome {
    for vendor in vendors()
        .into_iter()
        .filter(|vendor| *vendor == Vendor::MySql)
    {
        let (server, proxy) = one(driver, vendor)?;
        server.root(
            "DELIMITER //\nCREATE PROCEDURE conf.limits() BEGIN SET sql_select_limit = 0; DO GET_LOCK('of_procedure', 0); END//\nDELIMITER ;",
        )?;
        for limit in ["0", "1", "18446744073709551615"] {
            let mut client = log_in(&proxy)?;
            asked(&mut client, &format!("SET sql_select_limit = {limit}"))?;
            asked(&mut client, "CALL conf.grabs()")?;
            held_then(&proxy, &client, |holds| holds.contains("Procedure"))
                .map_err(|words| format!("{limit}, with a lock: {words}"))?;
            // With a limit of 0 MySQL's DO does nothing.
            asked(&mut client, "SELECT RELEASE_LOCK('of_procedure') LIMIT 1")?;
            soon("", || settled(&proxy, &mut client))
                .map_err(|words| format!("{limit}, no lock: {words}"))?;
            asked(&mut client, "CALL conf.hides()")?;
            soon("", || settled(&proxy, &mut client))
                .map_err(|words| format!("{limit}, two variables: {words}"))?;
            asked(&mut client, "SET sql_select_limit = DEFAULT")?;
            same(
                &asked(&mut client, "SELECT @hidden, @other")?
                    .concat()
                    .join(" "),
                "5 ü",
            )?;
        }
        let mut client = log_in(&proxy)?;
        asked(&mut client, "CALL conf.limits()")?;
        held_then(&proxy, &client, |holds| holds.contains("Untold"))
            .map_err(|words| format!("limited by the procedure: {words}"))?;
    }
    Ok(())
}

fn listed(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (server, proxy) = one(driver, vendor)?;
        server.root("GRANT ALL ON *.* TO open; REVOKE SELECT ON *.* FROM open; GRANT ALL ON conf.* TO open; GRANT ALL ON conf2.* TO open;")?;
        proxy.admin("INSERT INTO mysql_hostgroup_attributes (hostgroup_id, hostgroup_settings) VALUES (0, '{\"read_hostgroup\": 1, \"read_only_routines\": [\"conf.gives\", \"conf.nothing\"]}'); LOAD MYSQL SERVERS TO RUNTIME")?;
        for (schema, statement, kept) in [
            ("conf", "CALL conf.nothing()", false),
            ("", "CALL conf.nothing()", false),
            ("conf2", "CALL conf.nothing()", false),
            ("conf2", "CALL conf.gives(@got)", false),
            // Nobody vouches for it.
            ("conf2", "CALL conf.hides()", true),
            // What was there before stays.
            ("conf2", "CALL conf.makes(); CALL conf.nothing()", true),
        ] {
            let mut client = Raw::log_in(proxy.port).map_err(|error| error.to_string())?;
            if !schema.is_empty() {
                asked(&mut client, &format!("USE {schema}"))?;
            }
            for one in statement.split("; ") {
                asked(&mut client, one)?;
            }
            held_then(&proxy, &client, |holds| holds.is_empty() != kept)
                .map_err(|words| format!("{vendor}, {statement} in {schema:?}: {words}"))?;
            if statement.contains("@got") {
                same(&asked(&mut client, "SELECT @got")?.concat().join(" "), "7")?;
            }
        }
    }
    Ok(())
}

/// `multiplex = 2` of a rule. What the text says, or the server, still holds.
fn vouched(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (server, proxy) = one(driver, vendor)?;
        server.root("CREATE FUNCTION conf.plain() RETURNS INT RETURN 1; CREATE FUNCTION conf.other() RETURNS INT RETURN 2;")?;
        // Nobody is asked what is left.
        server.root("GRANT ALL ON *.* TO open; REVOKE SELECT ON *.* FROM open; GRANT ALL ON conf.* TO open; GRANT ALL ON conf2.* TO open;")?;
        proxy.admin(
            "INSERT INTO mysql_query_rules (rule_id, active, match_digest, multiplex, apply) \
             VALUES (1, 1, 'CALL .*(nothing|writes|gives|makes|sets)', 2, 1), (2, 1, 'plain', 2, 1); LOAD MYSQL QUERY RULES TO RUNTIME",
        )?;
        for (statements, hold) in [
            ("CALL conf.nothing()", ""),
            (
                "CALL conf.writes(); SELECT COUNT(*) > 0 FROM conf.counted WHERE words = 'called'",
                "",
            ),
            ("CALL conf.gives(@got); SELECT @got", ""),
            ("SELECT conf.plain()", ""),
            // Told by the server, which knows better.
            (
                "CALL conf.makes(); SELECT COUNT(*) FROM conf.of_procedure",
                "Untold",
            ),
            ("CALL conf.sets(); SELECT @@time_zone", "Untold"),
            ("SELECT conf.plain(), GET_LOCK('vouched', 0)", "UserLock"),
            // Nobody vouches for these, and what they hold stays.
            ("SELECT conf.other()", "Routine"),
            ("SELECT conf.other(); SELECT conf.plain()", "Routine"),
            ("CALL conf.grabs(); CALL conf.nothing()", "Procedure"),
        ] {
            let mut direct = Raw::log_in(server.port).map_err(|error| error.to_string())?;
            asked(&mut direct, "USE conf")?;
            let wanted: Vec<_> = statements
                .split("; ")
                .map(|one| asked(&mut direct, one))
                .collect::<Result<_, _>>()?;
            // Its locks are free when the server has seen it go.
            asked(&mut direct, "SELECT RELEASE_ALL_LOCKS()")?;
            drop(direct);
            let mut client = log_in(&proxy)?;
            let found: Vec<_> = statements
                .split("; ")
                .map(|one| asked(&mut client, one))
                .collect::<Result<_, _>>()?;
            expect(found == wanted, || {
                format!("{vendor}, {statements}: {found:?} instead of {wanted:?}")
            })?;
            held_then(&proxy, &client, |holds| {
                holds.split(' ').any(|one| one == hold)
            })
            .map_err(|words| format!("{vendor}, {statements}: {words} instead of {hold:?}"))?;
        }
    }
    Ok(())
}

fn refused(driver: Driver) -> Outcome {
    for vendor in vendors()
        .into_iter()
        .filter(|vendor| *vendor == Vendor::MySql)
    {
        let (server, proxy) = one(driver, vendor)?;
        server.root("REVOKE ALL ON *.* FROM open; GRANT ALL ON conf.* TO open;")?;
        set(&proxy, "SET mysql-set_query_lock_on_hostgroup=0")?;
        let mut client = log_in(&proxy)?;
        let asks = "SELECT SUM(SUM_ERRORS) FROM performance_schema.events_statements_summary_by_user_by_event_name WHERE USER = 'open'";
        for _ in 0..3 {
            asked(&mut client, "CALL conf.hides()")?;
            held_then(&proxy, &client, |holds| holds.contains("Procedure"))?;
        }
        let found = asked(&mut client, "SELECT @hidden")?.concat();
        expect(found == ["5"], || format!("{found:?}"))?;
        let errors = server.root(asks)?;
        expect(errors.lines().last() == Some("1"), || {
            format!("it was asked again: {errors}")
        })?;
        // Who may is asked, once somebody has said so.
        for table in ["metadata_locks", "user_variables_by_thread", "threads"] {
            server.root(&format!(
                "GRANT SELECT ON performance_schema.{table} TO open"
            ))?;
        }
        proxy.admin("LOAD MYSQL SERVERS TO RUNTIME")?;
        asked(&mut client, "CALL conf.hides()")?;
        soon("", || settled(&proxy, &mut client))?;
        // A role that a procedure may have set is seen by what it is.
        server.root("CREATE ROLE of_procedure; GRANT of_procedure TO open; CREATE PROCEDURE conf.becomes() SQL SECURITY INVOKER SET ROLE of_procedure;")?;
        asked(&mut client, "CALL conf.becomes()")?;
        held_then(&proxy, &client, |holds| holds.contains("Procedure"))?;
        let role = asked(&mut client, "SELECT CURRENT_ROLE()")?.concat();
        expect(role == ["`of_procedure`@`%`"], || format!("{role:?}"))?;
    }
    Ok(())
}

fn overwritten(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (server, proxy) = one(driver, vendor)?;
        proxy.admin(&format!(
            "INSERT INTO mysql_servers (hostgroup_id, hostname, port) VALUES (1, '127.0.0.1', {}); LOAD MYSQL SERVERS TO RUNTIME",
            server.port
        ))?;
        set(
            &proxy,
            "SET mysql-set_query_lock_on_hostgroup=0; SET mysql-auto_increment_delay_multiplex=0",
        )?;
        let mut client = log_in(&proxy)?;
        asked(&mut client, "SET @own = 1")?;
        asked(&mut client, "CALL conf.hides()")?;
        // Before it is silent for long enough, elsewhere.
        asked(&mut client, "/* hostgroup=1 */ SET @own = 2")?;
        held_then(&proxy, &client, |_| true)?;
        for sql in ["SELECT @own, @hidden", "SELECT @own + 0, @hidden"] {
            let found = asked(&mut client, sql)?.concat();
            expect(found == ["2", "5"], || {
                format!("{vendor}, {sql}: {found:?}")
            })?;
        }
    }
    Ok(())
}

/// All that the server says, session changes included, as a client with CLIENT_SESSION_TRACK sees
/// it.
fn unseen(driver: Driver) -> Outcome {
    use conformance::clients::{Client, app};
    use conformance::raw::Raw as Bytes;
    for vendor in vendors() {
        let (server, proxy) = one(driver, vendor)?;
        let warm_up = conformance::cache::root().join("conformance/scenarios/warm-up.txt");
        let _either_way = Client::MariaDbCli.run(app(server.port), &warm_up);
        let caps = wire::caps::SESSION_TRACK | wire::caps::DEPRECATE_EOF;
        for statements in [
            &[
                "CALL conf.nothing()",
                "BEGIN",
                "INSERT INTO conf.counted (words) VALUES ('x')",
                "ROLLBACK",
                "CALL conf.announces()",
                "BEGIN",
                "COMMIT",
            ][..],
            &[
                "CALL conf.nothing()",
                "SELECT @@session_track_transaction_info",
                "CALL conf.nothing()",
                "BEGIN",
                "COMMIT",
            ],
            &[
                "CALL conf.nothing()",
                "SET session_track_transaction_info = 'STATE'",
                "BEGIN",
                "CALL conf.nothing()",
                "COMMIT",
                "SET session_track_transaction_info = DEFAULT",
                "CALL conf.nothing()",
                "BEGIN",
                "COMMIT",
            ],
            &[
                "SET session_track_transaction_info = 'CHARACTERISTICS'",
                "CALL conf.announces()",
                "BEGIN",
                "COMMIT",
            ],
            &[
                "INSERT INTO conf.counted (words) VALUES ('x')",
                "CALL conf.nothing()",
                "BEGIN",
                "COMMIT",
            ],
        ] {
            let (mut direct, mut client) = (
                Bytes::log_in(server.port, caps)?,
                Bytes::log_in(proxy.port, caps)?,
            );
            for sql in statements {
                let (wanted, found) = (direct.query(sql)?, client.query(sql)?);
                let ids = sql.starts_with("INSERT");
                expect(found == wanted || ids, || {
                    format!("{vendor}, {sql} of {statements:?}:\n{found}\ninstead of\n{wanted}")
                })?;
                thread::sleep(Duration::from_millis(20));
            }
        }
    }
    Ok(())
}
