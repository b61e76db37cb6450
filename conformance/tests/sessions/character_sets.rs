//! Character sets and collations of sessions.

use conformance::beside::{asked, beside, narrow, set};
use conformance::by_hand::Raw;
use conformance::proxy::Driver;
use conformance::servers::{Vendor, vendors};
use conformance::trials::expect;

use super::{Outcome, log_in, one_of};

/// COM_CHANGE_USER has two bytes for a collation, a login one.
pub(super) fn collations(driver: Driver) -> Outcome {
    let seen = "SELECT @@character_set_client, @@character_set_results, @@collation_connection";
    for vendor in vendors() {
        for algorithm in [1, 2] {
            let (server, proxy) = one_of(driver, vendor)?;
            set(
                &proxy,
                &format!("SET mysql-reset_connection_algorithm={algorithm}"),
            )?;
            let (mut direct, mut client) = (log_in(server.port)?, log_in(proxy.port)?);
            let mut other = beside(&proxy, &client)?;
            let fresh = asked(&mut other, seen)?;
            narrow(&proxy)?;
            // MySQL's and MariaDB's own, those that all know, and back.
            for collation in [309_u16, 2304, 224, 278, 8, 255, 2309, 45] {
                for raw in [&mut direct, &mut client] {
                    let mut change = b"\x11open\0\0\0".to_vec();
                    change.extend_from_slice(&collation.to_le_bytes());
                    change.extend_from_slice(b"mysql_native_password\0");
                    let io = |error: std::io::Error| format!("{vendor}, {collation}: {error}");
                    raw.command(&change).map_err(io)?;
                    let mut answer = raw.packet().map_err(io)?;
                    if answer.first() == Some(&0xfe) {
                        raw.send(b"").map_err(io)?;
                        answer = raw.packet().map_err(io)?;
                    }
                    expect(answer.first() == Some(&0), || {
                        format!("{vendor}, {collation}: {answer:?}")
                    })?;
                }
                for left in [
                    "SELECT 1",
                    "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE",
                    "SET NAMES latin1",
                ] {
                    let (wanted, found) = (asked(&mut direct, seen)?, asked(&mut client, seen)?);
                    expect(found == wanted, || {
                        format!(
                            "{vendor}, algorithm {algorithm}, {collation} before {left}: {found:?} instead of {wanted:?}"
                        )
                    })?;
                    let found = asked(&mut other, seen)?;
                    expect(found == fresh, || {
                        format!("{vendor}, somebody else beside {collation}: {found:?}")
                    })?;
                    asked(&mut direct, left)?;
                    asked(&mut client, left)?;
                }
            }
        }
    }
    Ok(())
}

/// Statements of a session, and whether it keeps its connection from then on.
const CHARACTER_SETS: &[(&[&str], bool)] = &[
    (&["SET NAMES utf8mb4"], false),
    (&["SET NAMES DEFAULT"], false),
    (&["SET character_set_client = DEFAULT"], false),
    (&["SET character_set_results = DEFAULT"], false),
    (&["SET character_set_connection = DEFAULT"], false),
    (&["SET collation_connection = DEFAULT"], false),
    (
        &[
            "SET collation_connection = utf8mb4_bin",
            "SET character_set_connection = latin1",
        ],
        false,
    ),
    (
        &[
            "SET character_set_connection = latin1",
            "SET collation_connection = utf8mb4_bin",
        ],
        false,
    ),
    (
        &[
            "SET collation_server = utf8mb4_bin",
            "SET character_set_server = latin1",
        ],
        false,
    ),
    (
        &[
            "SET character_set_server = latin1",
            "SET collation_server = utf8mb4_bin",
        ],
        false,
    ),
    // It means the schema where it is said.
    (&["USE lat", "SET CHARACTER SET utf8mb4", "USE conf"], false),
    (
        &[
            "USE lat",
            "SET CHARACTER SET utf8mb4",
            "USE conf",
            "SET CHARACTER SET utf8mb4",
        ],
        false,
    ),
    (&["SET character_set_database = latin1"], true),
    (&["SET collation_database = latin1_bin"], true),
    // A reset that the schema outlives.
    (
        &["SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE"],
        false,
    ),
];

/// Only MySQL has it.
const DEFAULT_OF_UTF8MB4: &[(&[&str], bool)] = &[
    (
        &[
            "SET default_collation_for_utf8mb4 = utf8mb4_general_ci",
            "SET NAMES utf8mb4",
        ],
        true,
    ),
    (
        &[
            "SET NAMES utf8mb4",
            "SET default_collation_for_utf8mb4 = utf8mb4_general_ci",
        ],
        true,
    ),
];

pub(super) fn character_sets(driver: Driver) -> Outcome {
    let seen = "SELECT @@character_set_client, @@character_set_results, @@collation_connection, @@character_set_database, @@collation_database,
        @@character_set_server, @@collation_server, 'a' = 'A', 'a' = 'a ', COLLATION('a'), DATABASE()";
    for vendor in vendors() {
        let (server, proxy) = one_of(driver, vendor)?;
        server.root("CREATE DATABASE lat CHARACTER SET latin1")?;
        narrow(&proxy)?;
        let log_in = |port, collation| {
            let (mut raw, _) =
                Raw::log_in_with(port, b"", collation).map_err(|error| error.to_string())?;
            asked(&mut raw, "USE conf").map(|_| raw)
        };
        let mut other = log_in(proxy.port, 45)?;
        let fresh = asked(&mut log_in(server.port, 45)?, seen)?;
        for (steps, keeps) in CHARACTER_SETS.iter().chain(if vendor == Vendor::MySql {
            DEFAULT_OF_UTF8MB4
        } else {
            &[]
        }) {
            for collation in [8, 45, 63, 255] {
                let what = format!("{vendor}, {collation}: {steps:?}");
                let (mut direct, mut client) = (
                    log_in(server.port, collation)?,
                    log_in(proxy.port, collation)?,
                );
                for step in *steps {
                    asked(&mut direct, step)?;
                    asked(&mut client, step)?;
                }
                let wanted = asked(&mut direct, seen)?;
                for _ in 0..2 {
                    let found = asked(&mut client, seen)?;
                    expect(found == wanted, || {
                        format!("{what}: {found:?} instead of {wanted:?}")
                    })?;
                    if !keeps {
                        let found = asked(&mut other, seen)?;
                        expect(found == fresh, || {
                            format!("{what}: somebody else has {found:?} instead of {fresh:?}")
                        })?;
                    }
                }
                client.command(&[1]).map_err(|error| error.to_string())?;
                let found = asked(&mut other, seen)?;
                expect(found == fresh, || {
                    format!("{what}: the next has {found:?} instead of {fresh:?}")
                })?;
            }
        }
    }
    Ok(())
}

/// MariaDB takes a login with a collation that it does not know and uses its default; after a reset
/// it has what another client had on that thread.
pub(super) fn unknown_collations(driver: Driver) -> Outcome {
    let seen = "SELECT @@character_set_client, @@character_set_results, @@collation_connection";
    let log_in = |port, collation| {
        Raw::log_in_with(port, b"", collation)
            .map(|(raw, _)| raw)
            .map_err(|error| error.to_string())
    };
    for vendor in vendors() {
        for algorithm in [1, 2] {
            let (server, proxy) = one_of(driver, vendor)?;
            set(
                &proxy,
                &format!("SET mysql-reset_connection_algorithm={algorithm}"),
            )?;
            narrow(&proxy)?;
            // utf8mb4_0900_ai_ci, as MySQL's clients say at the login, gb18030_unicode_520_ci,
            // utf8mb4_croatian_ci, and one that all know.
            for collation in [255, 250, 245, 46] {
                let wanted = asked(&mut log_in(server.port, collation)?, seen)?;
                for other in [8, 247] {
                    // Threads of the server that others have used.
                    let threads = (0..3)
                        .map(|_| log_in(server.port, other))
                        .collect::<Result<Vec<_>, _>>()?;
                    drop(threads);
                    for left in [
                        "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE",
                        "SELECT 1",
                        "SET NAMES latin1",
                    ] {
                        let mut client = log_in(proxy.port, collation)?;
                        let found = asked(&mut client, seen)?;
                        expect(found == wanted, || {
                            format!("{vendor}, {collation}: {found:?} instead of {wanted:?}")
                        })?;
                        asked(&mut client, left)?;
                        client.command(&[1]).map_err(|error| error.to_string())?;
                        let mut next = beside(&proxy, &client)?;
                        let found = asked(&mut next, "SELECT @@collation_connection")?.concat();
                        expect(found == ["utf8mb4_general_ci"], || {
                            format!("{vendor}, after {collation}: {found:?}")
                        })?;
                    }
                }
            }
        }
    }
    Ok(())
}
