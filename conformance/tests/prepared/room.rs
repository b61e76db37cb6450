//! Servers that have room for few statements.

use conformance::beside::asked;
use conformance::by_hand::{self, Raw};
use conformance::proxy::{Driver, Proxy};
use conformance::servers::{Server, Vendor, vendors};
use conformance::statements::{prepare, rows_of};
use conformance::trials::{expect, same, soon};

use super::{Outcome, log_in, said};

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
pub(super) fn crowded(driver: Driver) -> Outcome {
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
pub(super) fn crowded_in_sql(driver: Driver) -> Outcome {
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
pub(super) fn crowded_by_others(driver: Driver) -> Outcome {
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
