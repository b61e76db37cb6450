//! Parameters in pieces, and long texts.

use std::thread;
use std::time::Duration;

use conformance::beside::{asked, beside, narrow, set};
use conformance::by_hand::{self, Raw};
use conformance::process::resident_kib;
use conformance::proxy::Driver;
use conformance::servers::{Vendor, vendors};
use conformance::statements::up_to_eof;
use conformance::trials::{expect, same, soon};

use super::{Outcome, log_in, said};

/// Each piece is small, and all together are more than goes into any buffer.
pub(super) fn long_data_unread(driver: Driver) -> Outcome {
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
pub(super) fn prepare_with_one(
    client: &mut Raw,
    text: &str,
    eofs: usize,
) -> Result<[u8; 4], String> {
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
pub(super) fn long_data_of_all(driver: Driver) -> Outcome {
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
pub(super) fn large_piece(driver: Driver) -> Outcome {
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
pub(super) fn long_data_left(driver: Driver) -> Outcome {
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

/// Neither such as no server takes, nor such as one client keeps.
pub(super) fn long_texts(driver: Driver) -> Outcome {
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
