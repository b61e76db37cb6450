//! What is prepared, beside other sessions: bounded, served where it was prepared, and nothing of
//! it left to anybody.
#![forbid(unsafe_code)]

use conformance::beside::{asked, beside, narrow, set, settled};
use conformance::by_hand::{self, Raw};
use conformance::process::resident_kib;
use conformance::proxy::{Driver, Proxy};
use conformance::raw;
use conformance::servers::{Server, Vendor, vendors};
use conformance::statements::{execute, fetch, prepare, rows_of, up_to_eof};
use conformance::trials::{self, expect, same, soon};
use std::io;
use std::thread;
use std::time::Duration;

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

/// Each piece is small, and all together are more than goes into any buffer.
fn long_data_unread(driver: Driver) -> Outcome {
    const PARAMS: usize = 400;
    let (server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    let mut client = log_in(&proxy)?;
    let text = format!("SELECT LENGTH(CONCAT({}))", vec!["?"; PARAMS].join(","));
    client
        .command(&[b"\x16", text.as_bytes()].concat())
        .map_err(said)?;
    let all = up_to_eof(&mut client, 2)?;
    let id = all[0][1..5].to_vec();
    for param in 0..PARAMS as u16 {
        client
            .command(&[&b"\x18"[..], &id, &param.to_le_bytes(), &[b'x'; 60_000]].concat())
            .map_err(said)?;
    }
    let nulls = vec![0; PARAMS.div_ceil(8)];
    let execution = [
        &b"\x17"[..],
        &id,
        &[0, 1, 0, 0, 0],
        &nulls,
        &[1],
        &b"\xfc\0".repeat(PARAMS),
    ]
    .concat();
    server.signal("STOP");
    client.command(&execution).map_err(said)?;
    let listed = || {
        proxy.admin(&format!(
            "SELECT COUNT(*) FROM stats_mysql_processlist WHERE SessionID = {} AND command = 'Execute'",
            client.id
        ))
    };
    soon("1", || Ok(listed()?.trim().to_owned()))?;
    thread::sleep(Duration::from_millis(300));
    proxy.admin(&format!("KILL CONNECTION {}", client.id))?;
    let last = client.packet();
    server.signal("CONT");
    let last = last.map_err(|error| format!("nobody heard the KILL: {error}"))?;
    expect(last.starts_with(b"\xff%\x05"), || {
        last.escape_ascii().to_string()
    })
}

/// COM_STMT_PREPARE of what has one parameter; the id.
fn prepare_with_one(client: &mut Raw, text: &str, eofs: usize) -> Result<[u8; 4], String> {
    client
        .command(&[b"\x16", text.as_bytes()].concat())
        .map_err(said)?;
    let all = up_to_eof(client, eofs)?;
    all.first()
        .and_then(|ok| ok.get(1..5))
        .and_then(|id| id.try_into().ok())
        .ok_or_else(|| "no id".to_owned())
}

/// Nobody executes what it is for.
fn long_data_of_all(driver: Driver) -> Outcome {
    const PIECE: usize = 4 << 20;
    let (_server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    set(&proxy, "SET mysql-max_allowed_packet=8388608")?;
    let mut client = log_in(&proxy)?;
    let mut ids = Vec::new();
    for _ in 0..40 {
        ids.push(prepare_with_one(&mut client, "SELECT LENGTH(?)", 2)?);
    }
    let send = |client: &mut Raw, id: [u8; 4]| {
        client
            .command(&[&b"\x18"[..], &id, &[0, 0], &vec![b'x'; PIECE]].concat())
            .map_err(said)
    };
    let execute = |client: &mut Raw, id: [u8; 4]| {
        client
            .command(&[&b"\x17"[..], &id, &[0, 1, 0, 0, 0, 0, 1, 0xfc, 0]].concat())
            .map_err(said)?;
        let packets = up_to_eof(client, 2)?;
        Ok::<_, String>(
            packets
                .last()
                .map_or_else(String::new, |row| row.escape_ascii().to_string()),
        )
    };
    let before = resident_kib(proxy.id());
    for id in &ids {
        send(&mut client, *id)?;
    }
    asked(&mut client, "SELECT 1")?;
    let grown = resident_kib(proxy.id()).saturating_sub(before);
    expect(grown < 64 << 10, || {
        format!("{grown} KiB more are resident")
    })?;
    // The first have theirs, the others none; what is executed makes room.
    let length = execute(&mut client, ids[0])?;
    expect(length.contains(r"\x00\x00@\x00"), || length.clone())?;
    let last = execute(&mut client, ids[39]);
    expect(
        last.as_ref().is_err_and(|words| words.starts_with("1105")),
        || format!("{last:?}"),
    )?;
    send(&mut client, ids[39])?;
    execute(&mut client, ids[39]).map(drop)
}

/// A piece has no answer; what is said of it would be read as that of the EXECUTE.
fn large_piece(driver: Driver) -> Outcome {
    let (server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    set(&proxy, "SET mysql-max_allowed_packet=8192")?;
    let framed = |payload: &[u8]| [&(payload.len() as u32).to_le_bytes()[..], payload].concat();
    for first in [true, false] {
        let mut client = log_in(&proxy)?;
        let id = prepare_with_one(&mut client, "INSERT INTO conf.scratch VALUES (1, ?)", 1)?;
        let piece = |len| framed(&[&b"\x18"[..], &id, &[0, 0], &vec![b'x'; len]].concat());
        let mut all = if first { piece(1_000) } else { Vec::new() };
        all.extend(piece(9_000));
        all.extend(framed(
            &[&b"\x17"[..], &id, &[0, 1, 0, 0, 0, 0, 1, 0xfc, 0]].concat(),
        ));
        all.extend(framed(b"\x03SELECT 7"));
        client.bytes(&all).map_err(said)?;
        let packet = client.packet().map_err(said)?;
        expect(
            packet.first() == Some(&0xff)
                && by_hand::complaint(&packet).to_string().starts_with("1153"),
            || packet.escape_ascii().to_string(),
        )?;
        let next = client.packet();
        expect(next.is_err(), || format!("the session goes on: {next:?}"))?;
        same(
            server
                .root("SELECT COUNT(*) FROM conf.scratch")?
                .lines()
                .last()
                .unwrap_or_default(),
            "0",
        )?;
    }
    Ok(())
}

/// Servers keep what came ahead until the statement was executed; one that they refuse to execute
/// is closed.
fn long_data_left(driver: Driver) -> Outcome {
    const TEXT: &str = "SELECT ?, ?";
    // A parameter that there is not; values that end too early.
    let execution: &[u8] = &[0, 1, 0, 0, 0, 0, 1, 0xfd, 0, 8, 0];
    for (param, values) in [(7_u16, &b"\x01a\x05\0\0\0\0\0\0\0"[..]), (0, b"\x05")] {
        for vendor in vendors() {
            let (_server, proxy) = by_hand::one(driver, vendor)?;
            narrow(&proxy)?;
            let mut first = log_in(&proxy)?;
            let mut second = beside(&proxy, &first)?;
            // Each that is prepared takes the place of the one before there: what is executed last
            // by both is the first's.
            let seconds = prepare_with_one(&mut second, TEXT, 2)?;
            let id = prepare_with_one(&mut first, TEXT, 2)?;
            first
                .command(&[&b"\x18"[..], &id, &param.to_le_bytes(), b"secret"].concat())
                .map_err(said)?;
            first
                .command(&[&b"\x17"[..], &id, execution, values].concat())
                .map_err(said)?;
            let refused = up_to_eof(&mut first, 2);
            expect(refused.is_err(), || format!("{vendor}: {refused:?}"))?;
            for _ in 0..2 {
                second
                    .command(
                        &[
                            &b"\x17"[..],
                            &seconds,
                            execution,
                            b"\x03bob\x05\0\0\0\0\0\0\0",
                        ]
                        .concat(),
                    )
                    .map_err(said)?;
                let row = up_to_eof(&mut second, 2)
                    .map_err(|why| format!("{vendor}, parameter {param}: {why}"))?
                    .pop();
                let row = row.unwrap_or_default();
                expect(row.ends_with(b"\x03bob\x05\0\0\0\0\0\0\0"), || {
                    format!("{vendor}: {}", row.escape_ascii())
                })?;
            }
        }
    }
    Ok(())
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

/// Neither such as no server takes, nor such as one client keeps.
fn long_texts(driver: Driver) -> Outcome {
    const LEN: usize = 4 << 20;
    let (_server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    set(
        &proxy,
        "SET mysql-stmts_cache_max_MB=8; SET mysql-max_allowed_packet=8388608",
    )?;
    let mut client = log_in(&proxy)?;
    let before = resident_kib(proxy.id());
    for n in 0..40 {
        let refused = prepare_with_one(
            &mut client,
            &format!("SELEKT {n}, '{}'", "x".repeat(LEN)),
            1,
        );
        expect(
            refused
                .as_ref()
                .is_err_and(|words| words.starts_with("1064")),
            || format!("{n}: {refused:?}"),
        )?;
    }
    let grown = resident_kib(proxy.id()).saturating_sub(before);
    expect(grown < 64 << 10, || {
        format!("{grown} KiB more are resident")
    })?;
    let mut ids = Vec::new();
    let refused = loop {
        match prepare_with_one(
            &mut client,
            &format!("SELECT {}, LENGTH('{}'), ?", ids.len(), "x".repeat(LEN)),
            2,
        ) {
            Ok(id) if ids.len() < 10 => ids.push(id),
            refused => break refused,
        }
    };
    expect(
        refused
            .as_ref()
            .is_err_and(|words| words.starts_with("1461")),
        || format!("{refused:?}"),
    )?;
    same(&ids.len().to_string(), "3")?;
    // What is closed makes room.
    client
        .command(&[&b"\x19"[..], &ids[0]].concat())
        .map_err(said)?;
    prepare_with_one(
        &mut client,
        &format!("SELECT LENGTH('{}'), ?", "y".repeat(LEN)),
        2,
    )
    .map(drop)?;
    // Comments, which no server gets, count.
    let comment = "x".repeat(LEN);
    for by_name in [false, true] {
        let mut client = log_in(&proxy)?;
        let mut taken = 0;
        let refused = loop {
            let answer = match by_name {
                false => prepare_with_one(
                    &mut client,
                    &format!("/* {comment} */ SELECT {taken}, ?"),
                    2,
                )
                .map(drop),
                true => client
                    .ask(&format!(
                        "PREPARE s{taken} FROM 'SELECT /* {comment} */ {taken}'"
                    ))
                    .map(drop)
                    .map_err(said),
            };
            match answer {
                Ok(()) if taken < 10 => taken += 1,
                refused => break refused,
            }
        };
        expect(
            refused.as_ref().is_err_and(|words| words.contains("1461")),
            || format!("by name {by_name}: {refused:?}"),
        )?;
        same(&taken.to_string(), "3")?;
    }
    let mut client = log_in(&proxy)?;
    for len in [64, 65, 100_000] {
        let name = "n".repeat(len);
        client
            .ask(&format!("PREPARE {name} FROM 'SELECT {len}'"))
            .map_err(said)?;
        let rows = client.ask(&format!("EXECUTE {name}")).map_err(said)?;
        expect(rows == [[len.to_string()]], || format!("{rows:?}"))?;
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

/// Statements that the servers of these tests have room for.
const ROOM: usize = 60;

/// A server with little room, and a proxy before it.
fn small(driver: Driver, vendor: Vendor) -> Result<(Server, Proxy), String> {
    let option = format!("--max-prepared-stmt-count={ROOM}");
    by_hand::one_with(driver, vendor, &[&option])
}

/// How often a server had no room.
fn limits_met(proxy: &Proxy) -> Result<u64, String> {
    let said = proxy.admin("SELECT Variable_Value FROM stats_mysql_global WHERE Variable_Name = 'Millrace_stmt_limits_met'")?;
    said.trim().parse().map_err(|_| said)
}

/// Clients that keep nothing prepare and close again and again, and what they leave is closed for
/// who comes, on whichever connection and core it is. What clients still have is prepared anew.
fn crowded(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (_server, proxy) = small(driver, vendor)?;
        // Connections of both cores have some each.
        let mut idle: Vec<_> = (0..6).map(|_| log_in(&proxy)).collect::<Result<_, _>>()?;
        let mut kept = Vec::new();
        for (number, client) in idle.iter_mut().enumerate() {
            asked(client, "BEGIN")?;
            for text in 0..8 {
                let text = format!("SELECT 'kept', {number}, {text}");
                kept.push((number, prepare(client, &text)?, text));
            }
        }
        for client in &mut idle {
            asked(client, "COMMIT")?;
        }
        let mut client = log_in(&proxy)?;
        for number in 0..300 {
            let id = prepare(&mut client, format!("SELECT {number}, 'left'"))
                .map_err(|why| format!("{vendor}, {number}: {why}"))?;
            let rows = rows_of(&mut client, id)?;
            expect(rows.contains("left"), || rows.clone())?;
            client
                .command(&[&b"\x19"[..], &id.to_le_bytes()].concat())
                .map_err(said)?;
        }
        let met = limits_met(&proxy)?;
        expect(met > 0, || "there was room".to_owned())?;
        // Each room that is made lasts for more than a statement.
        expect(met < 60, || format!("{vendor}: {met} times"))?;
        for (number, id, text) in &kept {
            let rows = rows_of(&mut idle[*number], *id).map_err(|why| format!("{text}: {why}"))?;
            expect(rows.contains("kept"), || rows.clone())?;
        }
        let known = proxy
            .admin("SELECT SUM(ref_count_server) FROM stats_mysql_prepared_statements_info")?;
        let known: usize = known.trim().parse().map_err(|_| known.clone())?;
        expect(known <= ROOM, || format!("{known} are known to servers"))?;
    }
    Ok(())
}

/// Clients prepare by name on a server with little room: there no number is closed, and the names
/// of idle connections are given up.
fn crowded_in_sql(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (_server, proxy) = small(driver, vendor)?;
        let mut idle: Vec<_> = (0..6).map(|_| log_in(&proxy)).collect::<Result<_, _>>()?;
        for (number, client) in idle.iter_mut().enumerate() {
            asked(client, "BEGIN")?;
            for text in 0..10 {
                asked(
                    client,
                    &format!("PREPARE s{text} FROM 'SELECT {number} * 10 + {text}'"),
                )?;
            }
        }
        for client in &mut idle {
            asked(client, "COMMIT")?;
        }
        let mut client = log_in(&proxy)?;
        for number in 0..100 {
            let name = format!("s{}", number % 50);
            asked(
                &mut client,
                &format!("PREPARE {name} FROM 'SELECT {number}, 1'"),
            )
            .map_err(|why| format!("{vendor}, {number}: {why}"))?;
            let rows = asked(&mut client, &format!("EXECUTE {name}"))?;
            expect(rows == [[number.to_string(), "1".to_owned()]], || {
                format!("{number}: {rows:?}")
            })?;
            if vendor == Vendor::MariaDb {
                let rows = asked(
                    &mut client,
                    &format!("EXECUTE IMMEDIATE 'SELECT {number}, 2'"),
                )?;
                expect(rows == [[number.to_string(), "2".to_owned()]], || {
                    format!("{number}: {rows:?}")
                })?;
            }
        }
        expect(limits_met(&proxy)? > 0, || "there was room".to_owned())?;
        for (number, client) in idle.iter_mut().enumerate() {
            for text in 0..10 {
                let rows = asked(client, &format!("EXECUTE s{text}"))?;
                expect(rows == [[(number * 10 + text).to_string()]], || {
                    format!("{number}, {text}: {rows:?}")
                })?;
            }
        }
    }
    Ok(())
}

/// Where nothing of ours could give way the client gets the server's error, and goes on.
fn crowded_by_others(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (server, proxy) = small(driver, vendor)?;
        let mut direct = Raw::log_in(server.port).map_err(said)?;
        for number in 0..ROOM {
            prepare(&mut direct, format!("SELECT {number}"))?;
        }
        let mut client = log_in(&proxy)?;
        let full = format!(
            "1461 42000 Can't create more than max_prepared_stmt_count statements (current value: {ROOM})"
        );
        for _ in 0..2 {
            let refused = prepare(&mut client, "SELECT 1").err().unwrap_or_default();
            same(&refused, &full)?;
            let refused = client.ask("PREPARE s FROM 'SELECT 1'");
            same(
                &refused
                    .err()
                    .map_or(String::new(), |error| error.to_string()),
                &full,
            )?;
        }
        same(
            &format!("{:?}", asked(&mut client, "SELECT 7")?),
            "[[\"7\"]]",
        )?;
        drop(direct);
        soon("fine", || {
            Ok(prepare(&mut client, "SELECT 1").map_or_else(|why| why, |_| "fine".to_owned()))
        })?;
    }
    Ok(())
}
