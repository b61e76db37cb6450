//! What is prepared, beside other sessions: bounded, served where it was prepared, and nothing of
//! it left to anybody.
#![forbid(unsafe_code)]

mod long_data;
mod room;

use std::time::Duration;
use std::{io, thread};

use conformance::beside::{asked, beside, narrow, set, settled};
use conformance::by_hand::{self, Raw};
use conformance::proxy::{Driver, Proxy};
use conformance::raw;
use conformance::servers::{Vendor, vendors};
use conformance::statements::{execute, fetch, prepare, rows_of, up_to_eof};
use conformance::trials::{self, expect, same};

use long_data::{
    large_piece, long_data_left, long_data_of_all, long_data_unread, long_texts, prepare_with_one,
};
use room::{crowded, crowded_by_others, crowded_in_sql};

type Outcome = Result<(), String>;

fn main() {
    trials::run(&[
        (
            "what_a_failed_statement_has_changed_outlives_a_cursor",
            behind_a_cursor,
        ),
        (
            "a_null_has_the_type_of_the_execution_before_it",
            null_behind_a_number,
        ),
        (
            "a_connection_that_nothing_holds_any_more_is_given_back",
            given_back,
        ),
        (
            "a_server_that_reads_no_long_data_keeps_nobody",
            long_data_unread,
        ),
        (
            "long_data_of_all_statements_together_has_a_bound",
            long_data_of_all,
        ),
        (
            "a_piece_that_is_too_large_is_no_answer_to_what_comes_next",
            large_piece,
        ),
        (
            "long_data_of_a_refused_execution_is_nobody_elses",
            long_data_left,
        ),
        ("what_others_have_bound_decides_nothing", bound_by_others),
        (
            "texts_that_nobody_executes_have_a_bound_in_bytes",
            long_texts,
        ),
        (
            "what_was_not_prepared_is_not_executed_as_something_else",
            refused_and_executed,
        ),
        ("rows_of_a_cursor_are_as_slow_as_others", slow_rows),
        ("a_rule_limits_what_is_fetched_piece_by_piece", limited),
        ("hints_make_no_other_statement_of_what_is_prepared", hinted),
        ("a_column_is_named_as_its_client_has_written_it", titled),
        (
            "a_statement_that_is_too_long_is_the_last_of_its_connection",
            retired,
        ),
        (
            "what_is_taken_when_it_is_prepared_is_taken_from_its_session",
            taken,
        ),
        (
            "what_a_cursor_has_found_is_found_after_its_last_row",
            found_by_a_cursor,
        ),
        (
            "what_is_prepared_is_about_the_rows_that_were_found",
            found_before_it,
        ),
        (
            "kill_query_of_the_last_rows_of_a_cursor_leaves_the_session",
            killed_at_the_end,
        ),
        (
            "what_nobody_executes_gives_way_where_a_server_has_no_room",
            crowded,
        ),
        (
            "statements_in_sql_give_way_where_a_server_has_no_room",
            crowded_in_sql,
        ),
        (
            "a_server_that_others_have_filled_says_so_to_the_client",
            crowded_by_others,
        ),
    ])
}

fn log_in(proxy: &Proxy) -> Result<Raw, String> {
    Raw::log_in(proxy.port).map_err(|error| error.to_string())
}

fn said(error: io::Error) -> String {
    error.to_string()
}

/// A trigger has set something before its statement failed; a cursor is what keeps the connection
/// then.
fn behind_a_cursor(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (server, proxy) = by_hand::one(driver, vendor)?;
        server.root(
            "CREATE TABLE conf.twice (a INT PRIMARY KEY); INSERT INTO conf.twice VALUES (1), (2);
            CREATE TRIGGER conf.zone BEFORE UPDATE ON conf.twice FOR EACH ROW SET SESSION time_zone = '+05:00';",
        )?;
        set(&proxy, "SET mysql-handle_warnings_delay_ms=0")?;
        for closes in [false, true] {
            let mut client = log_in(&proxy)?;
            let id = prepare(
                &mut client,
                b"SELECT id FROM conf.numbers WHERE id < 6 ORDER BY id",
            )?;
            execute(&mut client, id, true)?;
            same(&fetch(&mut client, id, 2)?.to_string(), "2")?;
            let failed = client.ask("UPDATE conf.twice SET a = 1 WHERE a = 2");
            expect(failed.is_err(), || format!("{vendor}: {failed:?}"))?;
            fetch(&mut client, id, if closes { 1 } else { 100 })?;
            if closes {
                client
                    .command(&[&b"\x19"[..], &id.to_le_bytes()].concat())
                    .map_err(said)?;
            }
            client
                .command(&[0x0e])
                .and_then(|()| client.packet())
                .map_err(said)?;
            // Wherever it goes then.
            let _another = beside(&proxy, &client)?.ask("BEGIN");
            let zone = asked(&mut client, "SELECT @@SESSION.time_zone")?
                .concat()
                .concat();
            same(&zone, "+05:00")
                .map_err(|words| format!("{vendor}, closes: {closes}: {words}"))?;
        }
    }
    Ok(())
}

/// Leftovers that kept a connection were asked for before its server refused what the next
/// statement needs.
fn given_back(driver: Driver) -> Outcome {
    let (server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    narrow(&proxy)?;
    set(
        &proxy,
        "SET mysql-max_stmts_per_connection=1; SET mysql-connect_timeout_server_max=2000",
    )?;
    server.root("CREATE DATABASE gone; CREATE TABLE gone.t (a INT);")?;
    let mut client = log_in(&proxy)?;
    let mut other = beside(&proxy, &client)?;
    asked(&mut client, "USE gone")?;
    let id = prepare(&mut client, b"SELECT * FROM t")?;
    asked(&mut client, "USE conf")?;
    // The server forgets the one before.
    prepare(&mut client, b"SELECT 1")?;
    server.root("DROP DATABASE gone")?;
    asked(&mut client, "SELECT SQL_CALC_FOUND_ROWS @a := 1")?;
    same(&settled(&proxy, &mut client)?, "FoundRows Unread")?;
    let refused = execute(&mut client, id, false);
    expect(
        refused
            .as_ref()
            .is_err_and(|words| words.starts_with("1049")),
        || format!("{refused:?}"),
    )?;
    asked(&mut other, "SELECT 1")?;
    same(&asked(&mut client, "SELECT @a")?.concat().concat(), "1")
}

/// To MySQL a NULL is of the type that was bound before it on the same connection. The one that a
/// neighbour has given back last is not that one.
fn null_behind_a_number(driver: Driver) -> Outcome {
    const NUMBER: &[u8] = &[0, 1, 0, 0, 0, 0, 1, 8, 0, 7, 0, 0, 0, 0, 0, 0, 0];
    const NULL: &[u8] = &[0, 1, 0, 0, 0, 1, 1, 6, 0];
    for vendor in vendors() {
        let (server, proxy) = by_hand::one(driver, vendor)?;
        let columns = |port: u16| -> Result<Vec<String>, String> {
            let mut first = Raw::log_in(port).map_err(said)?;
            let mut second = if port == proxy.port {
                beside(&proxy, &first)?
            } else {
                Raw::log_in(port).map_err(said)?
            };
            let id = prepare_with_one(&mut first, "SELECT 'typed before', ?", 2)?;
            let mut seen = Vec::new();
            for _ in 0..3 {
                for values in [NUMBER, NULL] {
                    first
                        .command(&[&b"\x17"[..], &id, values].concat())
                        .map_err(said)?;
                    let packets = up_to_eof(&mut first, 2)?;
                    seen.push(packets[2].escape_ascii().to_string());
                    for text in ["BEGIN", "SELECT 1", "COMMIT"] {
                        asked(&mut first, text)?;
                        asked(&mut second, text)?;
                    }
                }
            }
            Ok(seen)
        };
        same(
            &columns(proxy.port)?.join("\n"),
            &columns(server.port)?.join("\n"),
        )
        .map_err(|error| format!("{vendor}: {error}"))?;
    }
    Ok(())
}

/// MySQL goes on with the types of an execution where those of the next fit: a neighbour's DOUBLE
/// made another's key inexact, and his integer another's string a number. The second binds in turns
/// what each would be told directly.
fn bound_by_others(driver: Driver) -> Outcome {
    const BIGINT: &[u8] = &[0, 1, 0, 0, 0, 0, 1, 8, 0];
    const DOUBLE: &[u8] = &[0, 1, 0, 0, 0, 0, 1, 5, 0];
    const STRING: &[u8] = &[0, 1, 0, 0, 0, 0, 1, 0xfd, 0];
    for vendor in vendors() {
        let (server, proxy) = by_hand::one(driver, vendor)?;
        server.root(
            "CREATE TABLE conf.bound (id BIGINT PRIMARY KEY, code VARCHAR(9)); \
             INSERT INTO conf.bound VALUES (9007199254740992, '7'), (9007199254740993, '07'), (9007199254740994, '007')",
        )?;
        narrow(&proxy)?;
        let (key, integer) = (9_007_199_254_740_993_i64.to_le_bytes(), 7_i64.to_le_bytes());
        let float = 9_007_199_254_740_992_f64.to_le_bytes();
        for (text, others, mine, wanted) in [
            (
                "SELECT code FROM conf.bound WHERE id = ?",
                (DOUBLE, &float[..]),
                (BIGINT, &key[..]),
                "07",
            ),
            (
                "SELECT code FROM conf.bound WHERE code = ?",
                (BIGINT, &integer[..]),
                (STRING, b"\x03007"),
                "007",
            ),
        ] {
            let mut first = log_in(&proxy)?;
            let mut second = beside(&proxy, &first)?;
            // Whose PREPARE is the last has a statement of his own: the other's is what both find.
            let seconds = prepare_with_one(&mut second, text, 2)?;
            let firsts = prepare_with_one(&mut first, text, 2)?;
            for turn in 0..3 {
                first
                    .command(&[&b"\x17"[..], &firsts, others.0, others.1].concat())
                    .map_err(said)?;
                up_to_eof(&mut first, 2)?;
                second
                    .command(&[&b"\x17"[..], &seconds, mine.0, mine.1].concat())
                    .map_err(said)?;
                let seen = up_to_eof(&mut second, 2)?;
                let rows: Vec<_> = seen[2..]
                    .iter()
                    .map(|row| row.escape_ascii().to_string())
                    .collect();
                let row = [&[0, 0, wanted.len() as u8][..], wanted.as_bytes()]
                    .concat()
                    .escape_ascii()
                    .to_string();
                expect(rows == [row], || {
                    format!("{vendor}: {text}, turn {turn}: {rows:?} instead of {wanted}")
                })?;
            }
        }
        // The same by names.
        let mut first = log_in(&proxy)?;
        let mut second = beside(&proxy, &first)?;
        for client in [&mut second, &mut first] {
            asked(
                client,
                "PREPARE s FROM 'SELECT code FROM conf.bound WHERE code = ?'",
            )?;
        }
        asked(&mut first, "SET @code = 7")?;
        asked(&mut second, "SET @code = '007'")?;
        for _ in 0..3 {
            asked(&mut first, "EXECUTE s USING @code")?;
            let rows = asked(&mut second, "EXECUTE s USING @code")?;
            expect(rows == [["007"]], || {
                format!("{vendor}: {rows:?} instead of 007 by name")
            })?;
        }
    }
    Ok(())
}

/// Connectors send PREPARE and EXECUTE of "the last one" in one piece, and see only then that there
/// is none.
fn refused_and_executed(driver: Driver) -> Outcome {
    const EXECUTE_LAST: &[u8] = b"\x17\xff\xff\xff\xff\0\x01\0\0\0\0\x01\x03\0\x07\0\0\0";
    let framed = |payload: &[u8]| [&(payload.len() as u32).to_le_bytes()[..], payload].concat();
    let (server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    set(
        &proxy,
        "SET mysql-stmts_per_client_max=1; SET mysql-max_allowed_packet=8192",
    )?;
    let rows = || {
        server
            .root("SELECT COUNT(*) FROM conf.scratch")
            .map(|said| said.lines().last().unwrap_or_default().to_owned())
    };
    for large in [false, true] {
        let mut client = log_in(&proxy)?;
        prepare_with_one(
            &mut client,
            "INSERT INTO conf.scratch VALUES (?, 'nobody asked')",
            1,
        )?;
        // Not about a statement at all: the last one stays that.
        let query = format!("SELECT '{}'", "x".repeat(9_000));
        if large {
            let refused = client.ask(&query);
            expect(
                refused
                    .as_ref()
                    .is_err_and(|error| error.to_string().starts_with("1153")),
                || format!("{refused:?}"),
            )?;
            client.command(EXECUTE_LAST).map_err(said)?;
            let ok = client.packet().map_err(said)?;
            expect(ok.first() == Some(&0), || ok.escape_ascii().to_string())?;
            same(&rows()?, "1")?;
        }
        let text = if large {
            query
        } else {
            "SELECT * FROM conf.numbers WHERE id = ?".to_owned()
        };
        let both = [
            framed(&[b"\x16", text.as_bytes()].concat()),
            framed(EXECUTE_LAST),
        ]
        .concat();
        client.bytes(&both).map_err(said)?;
        for code in [if large { "1153" } else { "1461" }, "1243"] {
            let packet = client.packet().map_err(said)?;
            let words = by_hand::complaint(&packet).to_string();
            expect(
                packet.first() == Some(&0xff) && words.starts_with(code),
                || format!("{code} was wanted: {words}"),
            )?;
        }
        same(&rows()?, if large { "1" } else { "0" })?;
    }
    Ok(())
}

/// More than it may have at once is still on its way when somebody ends the session.
fn slow_rows(driver: Driver) -> Outcome {
    let (_server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    let mut client = log_in(&proxy)?;
    let id = prepare(
        &mut client,
        b"SELECT REPEAT('x', 60000) FROM conf.numbers ORDER BY id LIMIT 10",
    )?;
    execute(&mut client, id, true)?;
    set(
        &proxy,
        "SET mysql-throttle_max_bytes_per_second_to_client=20000",
    )?;
    client
        .command(&[&b"\x1c"[..], &id.to_le_bytes(), &200_u32.to_le_bytes()].concat())
        .map_err(said)?;
    client.packet().map_err(said)?;
    thread::sleep(Duration::from_millis(500));
    proxy.admin(&format!("KILL CONNECTION {}", client.id))?;
    let whole = up_to_eof(&mut client, 1);
    expect(whole.is_err(), || "600 kB came at once".to_owned())
}

/// `max_rows` counts the rows of all fetches; the time that a rule gives is for each of them.
fn limited(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (_server, proxy) = by_hand::one(driver, vendor)?;
        proxy.admin(
            "INSERT INTO mysql_query_rules (rule_id, active, match_pattern, attributes, timeout, apply) \
             VALUES (1, 1, 'few', '{\"max_rows\":5}', NULL, 1), (2, 1, 'hasty', '', 300, 1); LOAD MYSQL QUERY RULES TO RUNTIME",
        )?;
        let case = |words: String| format!("{vendor}: {words}");
        let mut client = log_in(&proxy)?;
        // As many as are allowed, and none behind them.
        let id = prepare(
            &mut client,
            b"SELECT id AS few FROM conf.numbers ORDER BY id LIMIT 5",
        )?;
        for pieces in [&[2, 2, 2][..], &[5, 1], &[100]] {
            execute(&mut client, id, true)?;
            let mut rows = 0;
            for piece in pieces {
                rows += fetch(&mut client, id, *piece).map_err(case)?;
            }
            same(&rows.to_string(), "5").map_err(case)?;
        }
        // One too many, in this piece or the next: the client has five, an error, and no cursor,
        // and goes on.
        let id = prepare(
            &mut client,
            b"SELECT id AS few FROM conf.numbers ORDER BY id LIMIT 50",
        )?;
        for pieces in [&[2, 3][..], &[4], &[]] {
            execute(&mut client, id, true)?;
            for piece in pieces {
                same(
                    &fetch(&mut client, id, *piece).map_err(case)?.to_string(),
                    &piece.to_string(),
                )
                .map_err(case)?;
            }
            let cut = fetch(&mut client, id, 10);
            expect(
                cut.as_ref()
                    .is_err_and(|words| words.contains("more than 5 rows")),
                || case(format!("{pieces:?}: {cut:?}")),
            )?;
            let closed = fetch(&mut client, id, 1);
            expect(
                closed
                    .as_ref()
                    .is_err_and(|words| words.starts_with("1421")),
                || case(format!("{pieces:?}: {closed:?}")),
            )?;
            same(&asked(&mut client, "SELECT 7")?.concat().concat(), "7").map_err(case)?;
            same(&settled(&proxy, &mut client)?, "").map_err(case)?;
        }
        // What no rule limits has its own cursor beside it.
        let other = prepare(
            &mut client,
            b"SELECT id FROM conf.numbers ORDER BY id LIMIT 50",
        )?;
        execute(&mut client, other, true)?;
        same(&fetch(&mut client, other, 40)?.to_string(), "40").map_err(case)?;
        client
            .command(&[&b"\x19"[..], &other.to_le_bytes()].concat())
            .map_err(said)?;

        let id = prepare(
            &mut client,
            b"SELECT REPEAT('x', 60000) AS hasty FROM conf.numbers ORDER BY id LIMIT 10",
        )?;
        execute(&mut client, id, true)?;
        same(&fetch(&mut client, id, 1).map_err(case)?.to_string(), "1").map_err(case)?;
        // What is sent slowly takes its time, too.
        set(
            &proxy,
            "SET mysql-throttle_max_bytes_per_second_to_client=20000",
        )?;
        let late = fetch(&mut client, id, 9);
        expect(late.is_err(), || {
            case("540 kB came in 0.3 s at 20 kB a second".into())
        })?;
        set(
            &proxy,
            "SET mysql-throttle_max_bytes_per_second_to_client=0",
        )?;
    }
    Ok(())
}

/// Each has its own hint, and is what it is without.
fn hinted(driver: Driver) -> Outcome {
    let (_server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    let mut client = log_in(&proxy)?;
    let cached = || {
        proxy
            .admin(
                "SELECT Variable_Value FROM stats_mysql_global WHERE Variable_Name = 'Stmt_Cached'",
            )
            .map(|said| said.trim().to_owned())
    };
    same(&cached()?, "0")?;
    for n in 0..300 {
        let id = prepare(
            &mut client,
            format!("/* trace={n} */ SELECT SLEEP(0.3)").as_bytes(),
        )?;
        if n % 100 == 0 {
            execute(&mut client, id, false)?;
        }
        client
            .command(&[&b"\x19"[..], &id.to_le_bytes()].concat())
            .map_err(said)?;
    }
    same(&cached()?, "1")?;
    let patient = prepare(&mut client, b"/* query_timeout=5000 */ SELECT SLEEP(0.3)")?;
    let hasty = prepare(&mut client, b"/* query_timeout=100 */ SELECT SLEEP(0.3)")?;
    for _ in 0..2 {
        execute(&mut client, patient, false)?;
        let late = execute(&mut client, hasty, false);
        expect(
            late.as_ref().is_err_and(|words| words.starts_with("1907")),
            || format!("{late:?}"),
        )?;
    }
    // What is no plain comment stays.
    prepare(&mut client, b"/*!50000 SELECT */ SLEEP(0)")?;
    prepare(&mut client, b"SELECT /* inside */ SLEEP(0)")?;
    same(&cached()?, "3")?;
    // What a tracer writes behind it.
    for n in 0..300 {
        for text in [
            "SELECT id FROM conf.scratch WHERE id = 1",
            "SELECT words FROM conf.scratch WHERE id = 1",
        ] {
            let text = text.replace("SELECT", &format!("SELECT /* min_lsn={n} */"));
            let id = prepare(
                &mut client,
                format!("/* first */ {text} /*traceparent='{n}'*/").as_bytes(),
            )?;
            if n % 100 == 0 {
                execute(&mut client, id, false)?;
            }
            client
                .command(&[&b"\x19"[..], &id.to_le_bytes()].concat())
                .map_err(said)?;
        }
    }
    same(&cached()?, "5")
}

/// Names of columns may have a comment in them: each client sees its own.
fn titled(driver: Driver) -> Outcome {
    let (server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    let [mut direct, mut through] = [
        raw::Raw::log_in(server.port, 0)?,
        raw::Raw::log_in(proxy.port, 0)?,
    ];
    let mut at = 0;
    for text in [
        "SELECT 1+1",
        "SELECT id + 1 FROM conf.scratch",
        "SELECT (SELECT 1 FROM conf.scratch LIMIT 1)",
        "INSERT INTO conf.counted (words) VALUES ('x') RETURNING words = 'x'",
        "DELETE FROM conf.counted WHERE id < 0 RETURNING words = 'x'",
        "SELECT id FROM conf.scratch UNION SELECT 1 + 1",
    ] {
        for n in 0..4 {
            let mut whole = format!("{text} /* trace={n} */");
            if n > 1 {
                whole = whole.replacen(' ', &format!(" /* {n} */ "), 1);
            }
            direct.prepare(&whole)?;
            through.prepare(&whole)?;
            // An EOF has flags of the server's session.
            let rows = |seen: String| {
                seen.lines()
                    .filter(|line| !line.contains("\\xfe"))
                    .collect::<Vec<_>>()
                    .join("\n")
            };
            let [seen, expected] = [
                rows(through.execute(at, 0, b"")?),
                rows(direct.execute(at, 0, b"")?),
            ];
            expect(seen == expected, || {
                format!("{whole}: {seen}\ninstead of\n{expected}")
            })?;
            at += 1;
        }
    }
    Ok(())
}

/// The server's number of the connection, which the session's own does not tell.
const NUMBER_THERE: &str = "SELECT CONNECTION_ID() + 0 * IFNULL(IS_USED_LOCK('none'), 0)";

fn retired(driver: Driver) -> Outcome {
    let (_server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    narrow(&proxy)?;
    set(&proxy, "SET mysql-threshold_query_length=2000")?;
    let mut client = log_in(&proxy)?;
    let mut after = |bytes: usize| {
        asked(
            &mut client,
            &format!("SELECT LENGTH('{}')", "x".repeat(bytes)),
        )?;
        Ok::<_, String>(asked(&mut client, NUMBER_THERE)?.concat().concat())
    };
    let first = after(10)?;
    same(&after(1900)?, &first)?;
    let next = after(2100)?;
    expect(next != first, || format!("still {next}"))
}

/// Two sessions on one connection, each with its own, as on two connections without a proxy: MySQL
/// takes for good what is set when it prepares.
fn taken(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (server, proxy) = by_hand::one(driver, vendor)?;
        narrow(&proxy)?;
        for (first_set, then_set, text) in [
            (
                "SET default_week_format = 3",
                "SET default_week_format = 0",
                "SELECT WEEK('2027-01-01')",
            ),
            (
                "SET lc_time_names = 'de_DE'",
                "SET lc_time_names = 'fr_FR'",
                "SELECT MONTHNAME('2027-01-01')",
            ),
            (
                "SET time_zone = '+05:00'",
                "SET time_zone = '+00:00'",
                "SELECT FROM_UNIXTIME(0)",
            ),
        ] {
            let play = |port: u16| {
                let mut first = Raw::log_in(port).map_err(said)?;
                let mut second = if port == proxy.port {
                    beside(&proxy, &first)?
                } else {
                    Raw::log_in(port).map_err(said)?
                };
                asked(&mut first, first_set)?;
                let one = prepare(&mut first, text.as_bytes())?;
                let mut seen = vec![rows_of(&mut first, one)?];
                let two = prepare(&mut second, text.as_bytes())?;
                seen.push(rows_of(&mut second, two)?);
                seen.push(rows_of(&mut first, one)?);
                asked(&mut first, then_set)?;
                seen.push(rows_of(&mut first, one)?);
                let anew = prepare(&mut first, text.as_bytes())?;
                seen.push(rows_of(&mut first, anew)?);
                Ok::<_, String>(seen.join(", "))
            };
            same(&play(proxy.port)?, &play(server.port)?)
                .map_err(|words| format!("{vendor}: {text}: {words}"))?;
        }
    }
    Ok(())
}

/// A fetch is no SELECT. Whoever else comes meanwhile gets another connection.
fn found_by_a_cursor(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (server, proxy) = by_hand::one(driver, vendor)?;
        let play = |port: u16| {
            let mut first = Raw::log_in(port).map_err(said)?;
            let mut second = if port == proxy.port {
                beside(&proxy, &first)?
            } else {
                Raw::log_in(port).map_err(said)?
            };
            let id = prepare(
                &mut first,
                b"SELECT SQL_CALC_FOUND_ROWS id FROM conf.numbers LIMIT 2",
            )?;
            execute(&mut first, id, true)?;
            let fetched = fetch(&mut first, id, 100)?;
            asked(&mut second, "BEGIN")?;
            asked(&mut second, "SELECT id FROM conf.numbers LIMIT 1")?;
            Ok::<_, String>(format!(
                "{fetched}: {:?}",
                asked(&mut first, "SELECT FOUND_ROWS()")?
            ))
        };
        same(&play(proxy.port)?, &play(server.port)?)
            .map_err(|words| format!("{vendor}: {words}"))?;
    }
    Ok(())
}

/// The SELECT has set a variable, too, which is asked for before the next is prepared, or goes
/// elsewhere: that question finds rows of its own.
fn found_before_it(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (server, proxy) = by_hand::one(driver, vendor)?;
        proxy.admin(&format!(
            "INSERT INTO mysql_servers (hostgroup_id, hostname, port) VALUES (1, '127.0.0.1', {}); LOAD MYSQL SERVERS TO RUNTIME; \
             INSERT INTO mysql_query_rules (rule_id, active, match_pattern, destination_hostgroup, apply) VALUES (1, 1, 'elsewhere', 1, 1); \
             LOAD MYSQL QUERY RULES TO RUNTIME",
            server.port
        ))?;
        server.root("CREATE TABLE conf.elsewhere (a INT)")?;
        let play = |port: u16| {
            let mut client = Raw::log_in(port).map_err(said)?;
            asked(&mut client, "SET @n = 0")?;
            let page =
                prepare(&mut client, b"SELECT SQL_CALC_FOUND_ROWS id, @n := @n + 1 FROM conf.numbers ORDER BY id LIMIT 2")?;
            let mut seen = vec![rows_of(&mut client, page)?];
            let found = prepare(&mut client, b"SELECT FOUND_ROWS()")?;
            seen.push(rows_of(&mut client, found)?);
            seen.push(rows_of(&mut client, page)?);
            // Now it is prepared already.
            seen.push(rows_of(&mut client, found)?);
            seen.push(rows_of(&mut client, page)?);
            asked(&mut client, "INSERT INTO conf.elsewhere VALUES (1)")?;
            seen.push(format!("{:?}", asked(&mut client, "SELECT FOUND_ROWS()")?));
            seen.push(rows_of(&mut client, page)?);
            asked(&mut client, "PREPARE p FROM 'SELECT FOUND_ROWS(), @n'")?;
            seen.push(format!(
                "{:?}",
                asked(&mut client, "SELECT FOUND_ROWS(), @n")?
            ));
            Ok::<_, String>(seen.join(", "))
        };
        same(&play(proxy.port)?, &play(server.port)?)
            .map_err(|words| format!("{vendor}: {words}"))?;
    }
    Ok(())
}

/// The rows are many and read late, so that the KILL comes while they are on their way: nothing
/// holds the connection behind them.
fn killed_at_the_end(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (_server, proxy) = by_hand::one(driver, vendor)?;
        let mut client = log_in(&proxy)?;
        let id =
            prepare(&mut client, b"SELECT REPEAT('x', 4000) FROM conf.numbers a, conf.numbers b WHERE a.id < 50 AND b.id < 100")?;
        execute(&mut client, id, true)?;
        client
            .command(&[&b"\x1c"[..], &id.to_le_bytes(), &100_000_u32.to_le_bytes()].concat())
            .map_err(said)?;
        thread::sleep(Duration::from_millis(300));
        proxy.admin(&format!("KILL QUERY {}", client.id))?;
        thread::sleep(Duration::from_millis(300));
        match up_to_eof(&mut client, 1) {
            Ok(rows) => expect(rows.len() > 1000, || {
                format!("{vendor}: {} rows", rows.len())
            })?,
            // MariaDB may also complain of its temporary table, which is gone.
            Err(_interrupted) => {}
        }
        same(
            &asked(&mut client, "SELECT 7")
                .map_err(|error| format!("{vendor}: {error}"))?
                .concat()
                .concat(),
            "7",
        )?;
    }
    Ok(())
}
