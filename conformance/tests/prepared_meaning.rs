//! What a prepared text means was decided when it was prepared: by what was set in its session
//! then, wherever it is executed.
#![forbid(unsafe_code)]

use conformance::beside::{asked, beside, narrow, set, settled};
use conformance::by_hand::{self, Raw};
use conformance::proxy::{Driver, Proxy};
use conformance::servers::{Server, Vendor, vendors};
use conformance::statements::{execute, prepare, rows_of};
use conformance::trials::{self, expect, same};
use std::io;

type Outcome = Result<(), String>;

fn main() {
    trials::run(&[
        (
            "what_a_statement_hides_was_decided_when_it_was_prepared",
            hidden,
        ),
        (
            "a_user_variable_has_the_type_that_it_had_when_its_statement_was_prepared",
            typed,
        ),
        (
            "a_user_variable_that_nobody_has_asked_for_is_not_overwritten",
            unasked,
        ),
        (
            "a_session_variable_that_nobody_has_asked_for_is_not_overwritten",
            unasked_of_sessions,
        ),
        (
            "what_a_failed_statement_has_set_is_not_overwritten_by_a_name",
            by_a_name,
        ),
        (
            "what_is_set_to_prepare_a_statement_does_not_hide_what_a_trigger_has_set",
            told_to_us,
        ),
        ("a_user_variable_that_is_null_keeps_its_type", typed_null),
        (
            "a_type_that_cannot_be_brought_back_is_nobody_elses",
            typed_elsewhere,
        ),
        (
            "a_meaning_that_cannot_be_brought_back_is_nobody_elses",
            meant_elsewhere,
        ),
        (
            "a_user_variable_that_a_function_has_set_is_not_overwritten",
            by_a_function,
        ),
    ])
}

fn log_in(proxy: &Proxy) -> Result<Raw, String> {
    Raw::log_in(proxy.port).map_err(|error| error.to_string())
}

fn said(error: io::Error) -> String {
    error.to_string()
}

/// A session sets a variable by what seems to be in a string now, and was not when it was prepared.
fn hidden(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (_server, proxy) = by_hand::one(driver, vendor)?;
        narrow(&proxy)?;
        let (mode, charset): (&[&str], &[&str]) = (
            &["SET sql_mode = 'NO_BACKSLASH_ESCAPES'", "SET sql_mode = ''"],
            &["SET NAMES gbk", "SET NAMES utf8mb4"],
        );
        for (states, text) in [
            (mode, &b"SELECT '\\', @seen := 1 -- '"[..]),
            (charset, b"SELECT '\xbf\\', @seen := 1 -- '"),
        ] {
            for in_sql in [false, true] {
                let mut first = log_in(&proxy)?;
                let mut second = beside(&proxy, &first)?;
                asked(&mut first, states[0])?;
                let id = if in_sql {
                    first
                        .command(&[b"\x03PREPARE s FROM \"", text, b"\""].concat())
                        .map_err(said)?;
                    first.rows().map_err(said)?;
                    0
                } else {
                    prepare(&mut first, text)?
                };
                asked(&mut first, states[1])?;
                if in_sql {
                    asked(&mut first, "EXECUTE s")?;
                } else {
                    execute(&mut first, id, false)?;
                }
                let case =
                    |words: String| format!("{vendor}, {}, in SQL: {in_sql}: {words}", states[0]);
                if settled(&proxy, &mut first)?.is_empty() {
                    same(
                        &asked(&mut second, "SELECT @seen")?.concat().concat(),
                        "NULL",
                    )
                    .map_err(case)?;
                }
                same(&asked(&mut first, "SELECT @seen")?.concat().concat(), "1").map_err(case)?;
            }
        }
    }
    Ok(())
}

/// MySQL looks at a user variable when it prepares what names it. A session's own are there then,
/// and nobody else's.
fn typed(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (server, proxy) = by_hand::one(driver, vendor)?;
        narrow(&proxy)?;
        server.root("CREATE TABLE conf.cents (n INT); INSERT INTO conf.cents VALUES (100)")?;
        let play = |port: u16| {
            let mut first = Raw::log_in(port).map_err(said)?;
            let mut second = if port == proxy.port {
                beside(&proxy, &first)?
            } else {
                Raw::log_in(port).map_err(said)?
            };
            let mut seen = Vec::new();
            asked(&mut first, "SET @rate = 1.5")?;
            let one = prepare(&mut first, b"SELECT @rate + 1")?;
            seen.push(rows_of(&mut first, one)?);
            for (value, then) in [
                ("'abc'", "7"),
                ("9007199254740993", "1.5"),
                ("1e3", "'x'"),
                ("CAST(-1 AS SIGNED)", "2.5"),
            ] {
                asked(&mut second, &format!("SET @rate = {value}"))?;
                let two = prepare(&mut second, b"SELECT @rate + 1")?;
                seen.push(rows_of(&mut second, two)?);
                seen.push(rows_of(&mut first, one)?);
                asked(&mut second, &format!("SET @rate = {then}"))?;
                seen.push(rows_of(&mut second, two)?);
            }
            // It is not set yet, and in SQL.
            let mut third = if port == proxy.port {
                beside(&proxy, &first)?
            } else {
                Raw::log_in(port).map_err(said)?
            };
            asked(&mut third, "PREPARE s FROM 'SELECT @rate + 1'")?;
            asked(&mut third, "SET @rate = 1.5")?;
            seen.push(format!("{:?}", asked(&mut third, "EXECUTE s")?));
            asked(
                &mut third,
                "PREPARE u FROM 'UPDATE conf.cents SET n = n * @rate'",
            )?;
            for sql in ["EXECUTE u", "EXECUTE s", "SELECT n FROM conf.cents"] {
                seen.push(format!("{:?}", asked(&mut third, sql)?));
            }
            asked(&mut third, "UPDATE conf.cents SET n = 100")?;
            Ok::<_, String>(seen.join(", "))
        };
        same(&play(proxy.port)?, &play(server.port)?)
            .map_err(|words| format!("{vendor}: {words}"))?;
    }
    Ok(())
}

/// A statement that asks for warnings is not kept waiting by questions: what a SELECT has set
/// before it is known to the server only.
fn unasked(driver: Driver) -> Outcome {
    // MySQL prepares none that asks for them.
    for vendor in vendors()
        .into_iter()
        .filter(|vendor| *vendor == Vendor::MariaDb)
    {
        let (server, proxy) = by_hand::one(driver, vendor)?;
        let play = |port: u16| {
            let mut first = Raw::log_in(port).map_err(said)?;
            let mut second = if port == proxy.port {
                beside(&proxy, &first)?
            } else {
                Raw::log_in(port).map_err(said)?
            };
            asked(&mut first, "SET @x = 1")?;
            let id = prepare(&mut first, b"SELECT @x + 0, @@warning_count")?;
            asked(&mut first, "SET @x = 'a'")?;
            // Where it is prepared there is somebody else now.
            asked(&mut second, "BEGIN")?;
            asked(&mut second, "SELECT id FROM conf.numbers LIMIT 1")?;
            asked(&mut first, "BEGIN")?;
            asked(&mut first, "SELECT 7.5 INTO @x")?;
            execute(&mut first, id, false)?;
            let kept = asked(&mut first, "SELECT @x")?;
            asked(&mut first, "COMMIT")?;
            Ok::<_, String>(format!("{kept:?}, {:?}", asked(&mut first, "SELECT @x")?))
        };
        same(&play(proxy.port)?, &play(server.port)?)
            .map_err(|words| format!("{vendor}: {words}"))?;
    }
    Ok(())
}

/// A statement that asks for warnings is not kept waiting by questions. What a SET before it has
/// made of a variable of the session is known to the server only.
fn unasked_of_sessions(driver: Driver) -> Outcome {
    for vendor in vendors()
        .into_iter()
        .filter(|vendor| *vendor == Vendor::MariaDb)
    {
        let (server, proxy) = by_hand::one(driver, vendor)?;
        let play = |port: u16| {
            let mut first = Raw::log_in(port).map_err(said)?;
            let mut second = if port == proxy.port {
                beside(&proxy, &first)?
            } else {
                Raw::log_in(port).map_err(said)?
            };
            let id = prepare(&mut first, b"SELECT @@warning_count")?;
            asked(&mut first, "SET sql_mode = 'ANSI'")?;
            // Where it is prepared there is somebody else now.
            asked(&mut second, "BEGIN")?;
            asked(&mut second, "SELECT id FROM conf.numbers LIMIT 1")?;
            asked(&mut first, "BEGIN")?;
            asked(
                &mut first,
                "SET SESSION sql_mode = CONCAT(@@sql_mode, ',NO_ZERO_DATE')",
            )?;
            execute(&mut first, id, false)?;
            let kept = asked(&mut first, "SELECT @@sql_mode")?;
            asked(&mut first, "COMMIT")?;
            Ok::<_, String>(format!(
                "{kept:?}, {:?}",
                asked(&mut first, "SELECT @@sql_mode")?
            ))
        };
        same(&play(proxy.port)?, &play(server.port)?)
            .map_err(|words| format!("{vendor}: {words}"))?;
    }
    Ok(())
}

/// A statement that has failed has still to tell what its trigger has set. Then comes, by name, one
/// that was prepared under another value.
fn by_a_name(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (server, proxy) = by_hand::one(driver, vendor)?;
        server.root(
            "CREATE TABLE conf.twice (a INT PRIMARY KEY); INSERT INTO conf.twice VALUES (1);
             CREATE TRIGGER conf.zone BEFORE INSERT ON conf.twice FOR EACH ROW SET SESSION time_zone = '+05:00';",
        )?;
        let play = |port: u16| {
            let mut client = Raw::log_in(port).map_err(said)?;
            for sql in [
                "PREPARE p FROM 'SELECT 1'",
                "SET time_zone = '+01:00', sql_mode = 'ANSI'",
                "BEGIN",
            ] {
                asked(&mut client, sql)?;
            }
            let failed = asked(&mut client, "INSERT INTO conf.twice VALUES (1)").is_err();
            // It might be anything, and so the name has to be there.
            let unread = asked(&mut client, "SELEKT 1").is_err();
            let seen = asked(&mut client, "SELECT @@time_zone")?;
            asked(&mut client, "COMMIT")?;
            Ok::<_, String>(format!(
                "{failed}, {unread}, {seen:?}, {:?}",
                asked(&mut client, "SELECT @@time_zone, @@sql_mode")?
            ))
        };
        same(&play(proxy.port)?, &play(server.port)?)
            .map_err(|words| format!("{vendor}: {words}"))?;
    }
    Ok(())
}

/// A failed statement has still to tell what its trigger has set; what asks for its warnings is
/// prepared first, as it was meant, and the answers to that tell it.
fn told_to_us(driver: Driver) -> Outcome {
    // MySQL prepares none that asks for them.
    let (server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    set(&proxy, "SET mysql-max_stmts_per_connection=1")?;
    server.root(
        "CREATE TABLE conf.twice (a INT PRIMARY KEY); INSERT INTO conf.twice VALUES (1);
         CREATE TRIGGER conf.zone BEFORE INSERT ON conf.twice FOR EACH ROW SET SESSION time_zone = '+05:00';",
    )?;
    let mut first = log_in(&proxy)?;
    let mut second = beside(&proxy, &first)?;
    let id = prepare(&mut first, b"SELECT @@warning_count")?;
    asked(&mut first, "SET sql_mode = 'ANSI'")?;
    // The server forgets the one before.
    prepare(&mut first, b"SELECT 1")?;
    let failed = asked(&mut first, "INSERT INTO conf.twice VALUES (1)");
    expect(failed.is_err(), || "it was to fail".to_owned())?;
    execute(&mut first, id, false)?;
    asked(&mut first, "SELECT id FROM conf.numbers LIMIT 1")?;
    // Whatever is free is taken.
    asked(&mut second, "BEGIN")?;
    same(
        &asked(&mut second, "SELECT @@time_zone")?.concat().concat(),
        "SYSTEM",
    )?;
    same(
        &asked(&mut first, "SELECT @@time_zone")?.concat().concat(),
        "+05:00",
    )
}

/// Set to NULL, a variable has the type of what it was before, and of what it was for its own
/// session only.
fn typed_null(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (server, proxy) = by_hand::one(driver, vendor)?;
        narrow(&proxy)?;
        let play = |port: u16| {
            let mut first = Raw::log_in(port).map_err(said)?;
            let another = |first: &Raw| {
                if port == proxy.port {
                    beside(&proxy, first)
                } else {
                    Raw::log_in(port).map_err(said)
                }
            };
            let mut seen = Vec::new();
            // Whatever somebody else has left there.
            for left in ["1", "1.5", "'x'"] {
                asked(&mut first, &format!("SET @x = {left}"))?;
                asked(&mut first, "SELECT @x")?;
                let mut second = another(&first)?;
                asked(&mut second, "SET @x = NULL")?;
                let id = prepare(&mut second, b"SELECT @x")?;
                asked(&mut second, "SET @x = 'abc'")?;
                seen.push(rows_of(&mut second, id)?);
            }
            // Of its own, where somebody else was since.
            for own in [
                "1",
                "2.5",
                "18446744073709551615",
                "1e3",
                "'x'",
                "CONCAT('x', 'y')",
                "NULL",
            ] {
                let mut second = another(&first)?;
                asked(&mut second, &format!("SET @x = {own}"))?;
                asked(&mut second, "SET @x = NULL")?;
                asked(&mut first, "SET @x = '7'")?;
                asked(&mut first, "SELECT @x")?;
                let id = prepare(&mut second, b"SELECT @x, @x + 1")?;
                for then in ["1.5", "'abc'", "18446744073709551614"] {
                    asked(&mut second, &format!("SET @x = {then}"))?;
                    seen.push(rows_of(&mut second, id).unwrap_or_else(|error| error));
                    asked(&mut second, "SET @x = NULL")?;
                    seen.push(format!("{:?}", asked(&mut second, "SELECT @x")?));
                }
            }
            Ok::<_, String>(seen.join(", "))
        };
        same(&play(proxy.port)?, &play(server.port)?)
            .map_err(|words| format!("{vendor}: {words}"))?;
    }
    Ok(())
}

/// On a connection that is held a variable is not made unset again: what is prepared there has
/// another type, and is its own session's only, until it gives the connection back.
fn typed_elsewhere(driver: Driver) -> Outcome {
    for vendor in vendors()
        .into_iter()
        .filter(|vendor| *vendor == Vendor::MySql)
    {
        for in_sql in [false, true] {
            let (server, proxy) = by_hand::one(driver, vendor)?;
            let seen = prepared_otherwise(
                vendor,
                &server,
                &proxy,
                "SELECT @rate + 1",
                "SET @rate = 1.5",
                in_sql,
            )?;
            expect(seen.contains("2.5"), || {
                format!("{vendor}, {in_sql}: {seen}")
            })?;
        }
    }
    Ok(())
}

/// A session's variable that `init_connect` has set, too, is not brought back on a connection that
/// is held: what is prepared there means something else. Another variable is brought back.
fn meant_elsewhere(driver: Driver) -> Outcome {
    for vendor in vendors() {
        for (begins, elsewhere, in_sql) in [
            ("SET sql_mode=\"\"", "of the column", false),
            ("SET sql_mode=\"\"", "of the column", true),
            ("SET div_precision_increment=5", "a", false),
            ("SET div_precision_increment=5", "a", true),
        ] {
            let (server, proxy) = by_hand::one(driver, vendor)?;
            set(&proxy, &format!("SET mysql-init_connect='{begins}'"))?;
            let text = "SELECT \"a\" FROM (SELECT 'of the column' AS a) AS t";
            let seen = prepared_otherwise(
                vendor,
                &server,
                &proxy,
                text,
                "SET sql_mode = 'ANSI_QUOTES'",
                in_sql,
            )?;
            expect(seen.ends_with(elsewhere), || {
                format!("{vendor}, {begins}, {in_sql}: {seen}")
            })?;
        }
    }
    Ok(())
}

/// A statement that was prepared before something was set, which cannot be taken back where it is
/// prepared once more: what it gives there.
fn prepared_otherwise(
    vendor: Vendor,
    server: &Server,
    proxy: &Proxy,
    text: &str,
    sets: &str,
    in_sql: bool,
) -> Result<String, String> {
    proxy.admin("UPDATE mysql_servers SET max_connections = 3; LOAD MYSQL SERVERS TO RUNTIME")?;
    let prepare = |client: &mut Raw| match in_sql {
        true => asked(
            client,
            &format!("PREPARE s FROM '{}'", text.replace('\'', "''")),
        )
        .map(|_| 0),
        false => prepare(client, text.as_bytes()),
    };
    let rows_of = |client: &mut Raw, id: u32| match in_sql {
        true => asked(client, "EXECUTE s").map(|rows| rows.concat().concat()),
        false => rows_of(client, id),
    };
    let play = |port: u16, leaves: bool| {
        let another = |first: &Raw| {
            if port == proxy.port {
                beside(proxy, first)
            } else {
                Raw::log_in(port).map_err(said)
            }
        };
        let mut first = Raw::log_in(port).map_err(said)?;
        let (mut second, mut third, mut fourth) =
            (another(&first)?, another(&first)?, another(&first)?);
        let stays = |client: &mut Raw| {
            asked(client, "BEGIN")
                .and_then(|_| asked(client, "SELECT id FROM conf.numbers LIMIT 1"))
        };
        let id = prepare(&mut first)?;
        asked(&mut first, sets)?;
        // Where it is prepared there is somebody else now.
        stays(&mut second)?;
        asked(&mut first, "BEGIN")?;
        asked(&mut first, "SELECT @rate")?;
        let elsewhere = rows_of(&mut first, id)?;
        // Who prepares the same before it is set reads it as a server does, also where another
        // session has executed it.
        let id = prepare(&mut third)?;
        asked(&mut third, sets)?;
        stays(&mut fourth)?;
        asked(&mut first, "COMMIT")?;
        if leaves {
            drop(first);
        } else if port == proxy.port {
            same(&settled(proxy, &mut first)?, "")?;
        }
        Ok::<_, String>((rows_of(&mut third, id)?, elsewhere))
    };
    let mut seen = None;
    for leaves in [false, true] {
        let (others, elsewhere) = play(proxy.port, leaves)?;
        let (wanted, meant) = play(server.port, leaves)?;
        same(&others, &wanted).map_err(|words| format!("{vendor}, {leaves}: {words}"))?;
        same(&meant, &wanted)?;
        // Later there may be connections that know it.
        seen.get_or_insert(elsewhere);
    }
    Ok(seen.unwrap_or_default())
}

/// Values that a function has set are told by no server. A statement that was prepared when the
/// variable had another type is prepared where the function has run.
fn by_a_function(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (server, proxy) = by_hand::one(driver, vendor)?;
        server.root("CREATE FUNCTION conf.keeps(v VARCHAR(9)) RETURNS INT DETERMINISTIC NO SQL RETURN (@x := v) = 'y'")?;
        for before in ["SET @x = 1", "SET @x = 'a'", "SET @x = NULL", "DO 1"] {
            let play = |port: u16| {
                let mut first = Raw::log_in(port).map_err(said)?;
                let mut second = if port == proxy.port {
                    beside(&proxy, &first)?
                } else {
                    Raw::log_in(port).map_err(said)?
                };
                let id = prepare(&mut first, b"SELECT CONCAT(@x, '!')")?;
                asked(&mut first, before)?;
                // Where it is prepared there is somebody else now.
                asked(&mut second, "BEGIN")?;
                asked(&mut second, "SELECT id FROM conf.numbers LIMIT 1")?;
                let kept = asked(&mut first, "SELECT conf.keeps('y')")?;
                let seen = rows_of(&mut first, id)?;
                asked(&mut second, "COMMIT")?;
                Ok::<_, String>(format!(
                    "{kept:?}, {seen}, {:?}",
                    asked(&mut first, "SELECT @x")?
                ))
            };
            same(&play(proxy.port)?, &play(server.port)?)
                .map_err(|words| format!("{vendor}: {before}: {words}"))?;
        }
    }
    Ok(())
}
