//! Warnings and counts follow a session.

use conformance::beside::{asked, beside, narrow, set, settled};
use conformance::by_hand::Raw;
use conformance::proxy::Driver;
use conformance::servers::{Vendor, vendors};
use conformance::trials::{expect, same, soon};

use super::{Outcome, log_in, one_of};

/// The packets of an answer.
pub(super) fn packets(client: &mut Raw, sql: &str) -> Result<Vec<Vec<u8>>, String> {
    let io = |error: std::io::Error| format!("{sql}: {error}");
    client.query(sql).map_err(io)?;
    let mut all = vec![client.packet().map_err(io)?];
    let columns = all[0][0];
    if columns == 0 || columns == 0xff {
        return Ok(all);
    }
    let mut ends = 0;
    while ends < 2 {
        let packet = client.packet().map_err(io)?;
        ends += usize::from(packet[0] == 0xfe && packet.len() < 9);
        let failed = packet[0] == 0xff;
        all.push(packet);
        if failed {
            break;
        }
    }
    Ok(all)
}

pub(super) const WARNS: &str = "SELECT CAST('x' AS SIGNED), CAST('y' AS SIGNED)";

pub(super) fn warnings_follow(driver: Driver) -> Outcome {
    let asks = [
        "SHOW WARNINGS",
        "SHOW COUNT(*) WARNINGS",
        "SHOW ERRORS",
        "SHOW COUNT(*) ERRORS",
        "SHOW WARNINGS LIMIT 1",
        "SHOW WARNINGS LIMIT 1, 5",
        "show warnings limit 1 offset 1;",
        "SELECT @@session.warning_count",
        "SHOW WARNINGS",
        "SELECT @@error_count",
        "SHOW COUNT(*) WARNINGS",
    ];
    let statements = [
        WARNS,
        "SELECT nosuch",
        "SELECT 1 FROM conf.nosuch",
        "DROP TABLE IF EXISTS conf.nosuch",
        "INSERT INTO conf.counted (words) VALUES (REPEAT('x', 60000))",
        "INSERT IGNORE INTO conf.counted (id, words) VALUES ('1x', 'w'), ('2y', 'w'), ('1x', 'w')",
        "SET max_error_count = 1",
        WARNS,
        "SELECT nosuch",
        "SET max_error_count = DEFAULT",
        "SELECT 1 FROM conf.counted LIMIT 0",
        "SET NAMES latin1",
        "SELECT 'n\u{e4}her' + 1, nosuch",
        "SELECT 1 FROM conf.counted LIMIT 0",
        "SET NAMES utf8mb4",
        "BEGIN",
        WARNS,
        "ROLLBACK",
        "SELECT 1",
        "SELECT 1 FROM conf.counted LIMIT 0",
    ];
    for vendor in vendors() {
        let (server, proxy) = one_of(driver, vendor)?;
        let (mut direct, mut client) = (log_in(server.port)?, log_in(proxy.port)?);
        asked(
            &mut direct,
            "INSERT INTO conf.counted (id, words) VALUES (1, 'w'), (2, 'w')",
        )?;
        let mut both = |sql: &str, after: &str| {
            let (wanted, found) = (packets(&mut direct, sql)?, packets(&mut client, sql)?);
            let shown = |packets: &[Vec<u8>]| {
                packets
                    .iter()
                    .map(|packet| String::from_utf8_lossy(packet).into_owned())
                    .collect::<Vec<_>>()
            };
            expect(wanted == found, || {
                format!(
                    "{vendor}, {sql} after {after}: {:?} instead of {:?}",
                    shown(&found),
                    shown(&wanted)
                )
            })?;
            Ok::<_, String>(client.id)
        };
        let free = |id: u32| {
            let sql = format!(
                "SELECT COALESCE(GROUP_CONCAT(CASE WHEN EXISTS (SELECT 1 FROM stats_mysql_session_holds WHERE SessionID = {id} AND hold = 'Transaction') THEN NULL ELSE hold END), '') FROM stats_mysql_session_holds WHERE SessionID = {id}"
            );
            soon("", || Ok(proxy.admin(&sql)?.trim().to_owned()))
        };
        for statement in statements {
            for ask in asks {
                let id = both(statement, "the one before")?;
                // Once silent, once at once.
                free(id).map_err(|error| format!("{vendor}, after {statement}: {error}"))?;
                both(ask, statement)?;
                both("SHOW WARNINGS", &format!("{statement} and {ask}"))?;
                if statement != "BEGIN" {
                    both(statement, "itself")?;
                }
                both(ask, statement)?;
            }
        }
        let kept = proxy.admin("SELECT Variable_Value FROM stats_mysql_global WHERE Variable_Name = 'Millrace_warnings_kept'")?;
        expect(
            kept.trim().parse::<u32>().is_ok_and(|kept| kept > 50),
            || format!("{vendor}: {kept}"),
        )?;
    }
    Ok(())
}

pub(super) fn warnings_of_servers(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (server, proxy) = one_of(driver, vendor)?;
        let mut client = log_in(proxy.port)?;
        asked(&mut client, WARNS)?;
        soon("", || settled(&proxy, &mut client))?;
        let late = asked(&mut client, "GET DIAGNOSTICS @n = NUMBER")
            .err()
            .unwrap_or_default();
        expect(late.contains("handle_warnings_delay_ms"), || {
            format!("{vendor}: {late}")
        })?;
        expect(asked(&mut client, "SHOW WARNINGS")?.len() == 2, || {
            format!("{vendor}: SHOW WARNINGS")
        })?;
        warnings_beside_variables(vendor, server.port, &mut client)?;
        // From now on the connection is kept.
        asked(&mut client, WARNS)?;
        // Who was warned later, and has not asked so, has given it back by then.
        let mut later = beside(&proxy, &client)?;
        asked(&mut later, WARNS)?;
        soon("", || settled(&proxy, &mut later))?;
        same(&settled(&proxy, &mut client)?, "Diagnostics")?;
        asked(&mut client, "GET DIAGNOSTICS @n = NUMBER")?;
        let found = asked(&mut client, "SELECT @n")?;
        expect(found == [["2"]], || format!("{vendor}: {found:?}"))?;
        // The next session on this connection has nothing of it.
        narrow(&proxy)?;
        drop(client);
        let mut other = log_in(proxy.port)?;
        let error = asked(&mut other, "SELECT nosuch").err().unwrap_or_default();
        expect(error.contains("1054"), || format!("{vendor}: {error}"))?;
        soon("", || settled(&proxy, &mut other))?;
        let mut third = beside(&proxy, &other)?;
        let found = asked(&mut third, "SHOW WARNINGS")?;
        expect(found.is_empty(), || format!("{vendor}: {found:?}"))?;
        expect(asked(&mut other, "SHOW WARNINGS")?.len() == 1, || {
            format!("{vendor}: the error is gone")
        })?;
        // Where another has been meanwhile, nobody knows how many rows a statement has changed: it
        // is not made up.
        asked(
            &mut third,
            "INSERT INTO conf.counted (words) VALUES ('a'), ('b')",
        )?;
        asked(&mut third, "GET DIAGNOSTICS @n = ROW_COUNT")?;
        same(&asked(&mut third, "SELECT @n")?.concat().concat(), "2")?;
        asked(
            &mut third,
            "INSERT INTO conf.counted (words) VALUES ('a'), ('b')",
        )?;
        asked(&mut other, "SELECT 1")?;
        let refused = asked(&mut third, "GET DIAGNOSTICS @n = ROW_COUNT")
            .err()
            .unwrap_or_default();
        expect(refused.contains("1235"), || {
            format!("{vendor}: {refused:?}")
        })?;
        // A reset forgets them.
        other
            .command(&[0x1f])
            .and_then(|()| other.packet())
            .map_err(|error| error.to_string())?;
        let found = asked(&mut other, "SHOW WARNINGS")?;
        expect(found.is_empty(), || {
            format!("{vendor}, after a reset: {found:?}")
        })?;
    }
    Ok(())
}

/// Of a session whose variable is on no connection yet, and whose warnings stay where they are.
fn warnings_beside_variables(vendor: Vendor, server: u16, client: &mut Raw) -> Outcome {
    const ENDS: &str = "SELECT 1 FROM conf.counted LIMIT 0";
    let both = "SELECT @@warning_count, @a";
    let mut direct = log_in(server)?;
    for sql in [
        ENDS,
        "SET @a = 1",
        WARNS,
        both,
        ENDS,
        WARNS,
        "GET DIAGNOSTICS @n = NUMBER",
        "GET DIAGNOSTICS CONDITION 2 @m = MESSAGE_TEXT",
        "SHOW WARNINGS",
        "SELECT @a, @n, @m",
    ] {
        let (wanted, found) = (asked(&mut direct, sql)?, asked(client, sql));
        if vendor == Vendor::MySql && sql == both {
            // To set a variable is a statement, and the warnings would be over.
            expect(
                found.as_ref().is_err_and(|words| words.contains("1235")),
                || format!("{vendor}: {sql}: {found:?}"),
            )?;
            expect(asked(client, "SHOW WARNINGS")?.len() == 2, || {
                format!("{vendor}: the warnings are gone")
            })?;
            continue;
        }
        expect(found.as_ref() == Ok(&wanted), || {
            format!("{vendor}: {sql}: {found:?} instead of {wanted:?}")
        })?;
    }
    asked(client, ENDS).map(drop)
}

/// A count that the proxy answers is a SELECT to a server, which finds one row.
pub(super) fn counts_are_selects(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (server, proxy) = one_of(driver, vendor)?;
        let (mut direct, mut client) = (log_in(server.port)?, log_in(proxy.port)?);
        for count in [
            "SELECT @@warning_count",
            "SHOW COUNT(*) WARNINGS",
            "SHOW WARNINGS",
        ] {
            for sql in [
                "SELECT CAST('x' AS SIGNED) UNION ALL SELECT 2 UNION ALL SELECT 3",
                count,
                "SELECT FOUND_ROWS()",
            ] {
                let (wanted, found) = (asked(&mut direct, sql)?, asked(&mut client, sql)?);
                expect(found == wanted, || {
                    format!("{vendor}: {sql} after {count}: {found:?} instead of {wanted:?}")
                })?;
                if sql.contains("CAST") {
                    std::thread::sleep(std::time::Duration::from_millis(20));
                    soon("", || settled(&proxy, &mut client))?;
                }
            }
        }
    }
    Ok(())
}

pub(super) fn warnings_lost(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (server, proxy) = one_of(driver, vendor)?;
        set(&proxy, "SET mysql-handle_warnings_delay_ms=0")?;
        let mut client = log_in(proxy.port)?;
        let server_id = asked(
            &mut client,
            "SELECT id FROM information_schema.processlist WHERE info LIKE '%processlist%'",
        )?;
        asked(&mut client, WARNS)?;
        same(&settled(&proxy, &mut client)?, "Diagnostics")?;
        server.root(&format!("KILL {}", server_id.concat().concat()))?;
        let lost = asked(&mut client, "SHOW WARNINGS")
            .err()
            .unwrap_or_default();
        expect(!lost.is_empty(), || {
            format!("{vendor}: an empty list of warnings for one that is lost")
        })?;
        let lost = asked(&mut client, "SHOW WARNINGS")
            .err()
            .unwrap_or_default();
        expect(lost.contains("lost"), || format!("{vendor}: {lost}"))?;
        asked(&mut client, "SELECT 1 FROM conf.counted LIMIT 1")?;
        let found = asked(&mut client, "SHOW WARNINGS")?;
        expect(found.is_empty(), || format!("{vendor}: {found:?}"))?;
    }
    Ok(())
}
