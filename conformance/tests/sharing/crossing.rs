//! Connections that sessions keep for no more than a memory, while others wait for them.

use std::thread;
use std::time::Duration;

use conformance::by_hand::{self, Raw};
use conformance::proxy::{Driver, Proxy};
use conformance::servers::Server;
use conformance::trials::{expect, vendors_in_turn};

use super::{Outcome, asked, log_in, same, wish};

/// Statement that leaves something on its connection, what its session says elsewhere next, and
/// what it asks then.
struct Left {
    variables: &'static str,
    before: &'static str,
    leaves: &'static str,
    holds: &'static str,
    elsewhere: &'static str,
    asks: &'static [&'static str],
}

const NO_SILENCE: &str = "SET mysql-handle_warnings_delay_ms=0; SET mysql-auto_increment_delay_multiplex=1000000;
    SET mysql-auto_increment_delay_multiplex_timeout_ms=0; SET mysql-connection_delay_multiplex_ms=0";

const LEFT: &[Left] = &[
    Left {
        variables: NO_SILENCE,
        before: "DO 0",
        leaves: "SELECT CAST('x' AS SIGNED)",
        holds: "Diagnostics",
        elsewhere: "SELECT 2",
        asks: &["SHOW WARNINGS"],
    },
    // Who asks servers for warnings has them kept.
    Left {
        variables: NO_SILENCE,
        before: "GET DIAGNOSTICS @n = NUMBER",
        leaves: "SELECT CAST('x' AS SIGNED)",
        holds: "Diagnostics",
        elsewhere: "SELECT COUNT(*) > 0 FROM conf.counted",
        asks: &["SHOW WARNINGS"],
    },
    // More than is kept.
    Left {
        variables: NO_SILENCE,
        before: "SET SESSION max_error_count = 400",
        leaves: "SELECT COUNT(CAST(CONCAT(REPEAT('x', 60), a.id, b.id) AS SIGNED)) FROM conf.counted a, conf.counted b, conf.counted c",
        holds: "Diagnostics",
        elsewhere: "SELECT COUNT(*) > 0 FROM conf.counted",
        asks: &["SHOW WARNINGS"],
    },
    Left {
        variables: NO_SILENCE,
        before: "DO 0",
        leaves: "INSERT INTO conf.counted VALUES (NULL, '{who}')",
        holds: "InsertId",
        elsewhere: "SELECT 2",
        asks: &["SELECT LAST_INSERT_ID() = (SELECT id FROM conf.counted WHERE words = '{who}')"],
    },
    Left {
        variables: NO_SILENCE,
        before: "SET SESSION sql_mode = ''",
        leaves: "INSERT INTO conf.counted (words) VALUES ('{who} with more letters than fit'), (1)",
        holds: "Diagnostics InsertId",
        elsewhere: "SELECT 2",
        asks: &[
            "SHOW WARNINGS",
            "SELECT LAST_INSERT_ID() = (SELECT id FROM conf.counted WHERE words LIKE '{who} with%')",
        ],
    },
    Left {
        variables: NO_SILENCE,
        before: "DO 0",
        leaves: "SELECT CAST('12x' AS SIGNED) INTO @a",
        holds: "Diagnostics Unread",
        elsewhere: "SELECT @a",
        asks: &["SELECT @a + 1"],
    },
    Left {
        variables: NO_SILENCE,
        before: "DO 0",
        leaves: "SELECT SQL_CALC_FOUND_ROWS id FROM conf.found LIMIT 1",
        holds: "FoundRows",
        elsewhere: "DELETE FROM conf.counted WHERE id < 0",
        asks: &["SELECT FOUND_ROWS()", "SELECT FOUND_ROWS()"],
    },
    // More warnings than MariaDB lists: their number would be asked for by a SELECT.
    Left {
        variables: NO_SILENCE,
        before: "DO 0",
        leaves: "SELECT SQL_CALC_FOUND_ROWS CAST(CONCAT('x', a.id) AS SIGNED) FROM conf.found a, conf.found b LIMIT 100",
        holds: "Diagnostics FoundRows",
        elsewhere: "DELETE FROM conf.counted WHERE id < 0",
        asks: &["SELECT FOUND_ROWS()"],
    },
    Left {
        variables: "SET mysql-connection_delay_multiplex_ms=300000",
        before: "DO 0",
        leaves: "SELECT 1",
        holds: "Delay",
        elsewhere: "SELECT 2",
        // Who is silent keeps it as long as the operator wants.
        asks: &[],
    },
];

pub(super) fn crossing(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let server = Server::start(vendor)?;
        server.root(by_hand::CREATE_USER)?;
        server.root("INSERT INTO conf.counted (words) WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 12) SELECT 'many' FROM n")?;
        server.root("CREATE TABLE conf.found AS SELECT id FROM conf.counted")?;
        let mut wish = wish(&server);
        let of = |hostgroup| {
            format!(
                "{{ address = \"127.0.0.1\", port = {}, hostgroup = {hostgroup}, max_connections = 1 }}",
                server.port
            )
        };
        wish.servers = format!("{},\n{}", of(0), of(1));
        wish.variables
            .push_str("    connect_timeout_server_max = 4000\n");
        let proxy = Proxy::start(driver, &wish)?;
        proxy.admin("INSERT INTO mysql_query_rules (rule_id, active, match_pattern, destination_hostgroup, apply) VALUES (1, 1, 'in two', 1, 1);
            LOAD MYSQL QUERY RULES TO RUNTIME")?;
        for left in LEFT {
            cross(&server, &proxy, left)
                .map_err(|error| format!("{vendor}, {}: {error}", left.leaves))?;
        }
    }
    Ok(())
}

/// Action of a session while a connection elsewhere is another's.
enum Meanwhile {
    Ask(&'static str),
    Prepare(&'static str),
}

/// FOUND_ROWS() of a connection that was given back is the session's to answer, where it can; else
/// it is said that nobody can.
pub(super) fn found_rows(driver: Driver) -> Outcome {
    const DELETE: Meanwhile = Meanwhile::Ask("DELETE FROM conf.counted WHERE id < 0 /* in two */");
    for vendor in vendors_in_turn() {
        let server = Server::start(vendor)?;
        server.root(by_hand::CREATE_USER)?;
        server.root("CREATE TABLE conf.found (id INT); INSERT INTO conf.found VALUES (1), (2), (3), (4), (5)")?;
        let mut wish = wish(&server);
        let of = |hostgroup| {
            format!(
                "{{ address = \"127.0.0.1\", port = {}, hostgroup = {hostgroup}, max_connections = 1 }}",
                server.port
            )
        };
        wish.servers = format!("{},\n{}", of(0), of(1));
        let proxy = Proxy::start(driver, &wish)?;
        proxy.admin(&format!("{NO_SILENCE}; LOAD MYSQL VARIABLES TO RUNTIME;
            INSERT INTO mysql_query_rules (rule_id, active, match_pattern, destination_hostgroup, apply) VALUES (1, 1, 'in two', 1, 1);
            LOAD MYSQL QUERY RULES TO RUNTIME"))?;
        let given_back = |meanwhile: &Meanwhile, dies: bool| {
            let (mut client, mut blocker) = (log_in(&proxy)?, log_in(&proxy)?);
            let id = asked(
                &mut client,
                "SELECT CONNECTION_ID() + 0 * IFNULL(IS_USED_LOCK('none'), 0)",
            )?
            .concat()
            .concat();
            asked(
                &mut client,
                "SELECT SQL_CALC_FOUND_ROWS id FROM conf.found LIMIT 1",
            )?;
            asked(&mut blocker, "BEGIN /* in two */")?;
            if dies {
                server.root(&format!("KILL {id}"))?;
                thread::sleep(Duration::from_millis(50));
            }
            let payload = match meanwhile {
                Meanwhile::Ask(sql) => [b"\x03", sql.as_bytes()].concat(),
                Meanwhile::Prepare(sql) => [b"\x16", sql.as_bytes()].concat(),
            };
            client
                .command(&payload)
                .map_err(|error| error.to_string())?;
            thread::sleep(Duration::from_millis(200));
            asked(&mut blocker, "COMMIT /* in two */")?;
            prepared(&mut client, matches!(meanwhile, Meanwhile::Prepare(_)))?;
            Ok::<_, String>(client)
        };
        let fails = |client: &mut Raw, sql: &str, words: &str| {
            let said = asked(client, sql);
            expect(
                said.as_ref()
                    .is_err_and(|said| said.contains("1235") && said.contains(words)),
                || format!("{vendor}: {sql}: {said:?}"),
            )
        };
        for meanwhile in [&DELETE, &Meanwhile::Prepare("SELECT 2 /* in two */")] {
            let mut client = given_back(meanwhile, false)?;
            same(
                asked(&mut client, "SELECT FOUND_ROWS() + 1")?,
                vec![vec!["6".to_owned()]],
            )?;
            same(
                asked(&mut client, "SELECT FOUND_ROWS() + 0")?,
                vec![vec!["1".to_owned()]],
            )?;
            drop(client);
            let mut client = given_back(meanwhile, false)?;
            asked(&mut client, "SELECT FOUND_ROWS() INTO @n")?;
            same(asked(&mut client, "SELECT @n")?, vec![vec!["5".to_owned()]])?;
            drop(client);
            let mut client = given_back(meanwhile, false)?;
            same(
                asked(&mut client, "SELECT FOUND_ROWS()")?,
                vec![vec!["5".to_owned()]],
            )?;
            drop(client);
            let mut client = given_back(meanwhile, false)?;
            client
                .command(b"\x16SELECT FOUND_ROWS()")
                .map_err(|error| error.to_string())?;
            let id = prepared(&mut client, true)?;
            client
                .command(&[&[0x17][..], &id.to_le_bytes(), &[0, 1, 0, 0, 0]].concat())
                .map_err(|error| error.to_string())?;
            let mut rows = Vec::new();
            client
                .each_row(|row| rows.push(row.to_vec()))
                .map_err(|error| format!("{vendor}, prepared: {error}"))?;
            same(rows, vec![[&[0, 0, 5][..], &[0; 7]].concat()])?;
        }
        // What finds nothing by an error, or one row for none, may leave the number as it was: that
        // of whoever was there before.
        let calculated = "SELECT SQL_CALC_FOUND_ROWS MAX(id) FROM conf.found WHERE 1 = 0";
        for sql in [
            "SELECT SQL_CALC_FOUND_ROWS id FROM conf.nothing LIMIT 1",
            calculated,
        ] {
            let (mut client, mut other) = (log_in(&proxy)?, log_in(&proxy)?);
            let mut direct = Raw::log_in(server.port).map_err(|error| error.to_string())?;
            asked(&mut other, "SELECT id FROM conf.found")?;
            let (_, wanted) = (
                direct.ask(sql),
                asked(&mut direct, "SELECT FOUND_ROWS()")?.concat().concat(),
            );
            let (_, told) = (client.ask(sql), asked(&mut client, "SELECT FOUND_ROWS()"));
            let said = told
                .as_ref()
                .map_or_else(ToString::to_string, |rows| rows.concat().concat());
            expect(said == wanted || said.contains("1235"), || {
                format!("{vendor}: {sql}: {said} instead of {wanted}")
            })?;
        }
        let mut client = given_back(&DELETE, true)?;
        fails(&mut client, "SELECT FOUND_ROWS()", "lost")?;
        fails(&mut client, "SELECT FOUND_ROWS() + 0", "lost")?;
        asked(&mut client, "SELECT id FROM conf.found")?;
        // Nothing is selected by preparing.
        client
            .command(b"\x16SELECT 2")
            .map_err(|error| error.to_string())?;
        prepared(&mut client, true)?;
        let mut other = log_in(&proxy)?;
        asked(&mut other, "SELECT id FROM conf.found LIMIT 2")?;
        same(
            asked(&mut client, "SELECT FOUND_ROWS()")?,
            vec![vec!["5".to_owned()]],
        )?;
    }
    Ok(())
}

/// The answer to a COM_STMT_PREPARE of a statement of one column: its id. To anything else: an OK.
fn prepared(client: &mut Raw, is: bool) -> Result<u32, String> {
    let said = client.packet().map_err(|error| error.to_string())?;
    expect(said[0] == 0, || by_hand::complaint(&said).to_string())?;
    for _ in 0..if is { 2 } else { 0 } {
        client.packet().map_err(|error| error.to_string())?;
    }
    Ok(u32::from_le_bytes([said[1], said[2], said[3], said[4]]))
}

/// Two sessions that have each other's next connection, and what they are told then; beside one
/// without a proxy.
fn cross(server: &Server, proxy: &Proxy, left: &'static Left) -> Outcome {
    proxy.admin(&format!(
        "{}; LOAD MYSQL VARIABLES TO RUNTIME",
        left.variables
    ))?;
    let said = |client: &mut Raw, who: &str, sql: &str| asked(client, &sql.replace("{who}", who));
    let mut direct = Raw::log_in(server.port).map_err(|error| error.to_string())?;
    let mut wanted = Vec::new();
    for sql in [left.before, left.leaves, left.elsewhere] {
        said(&mut direct, "direct", sql)?;
    }
    for sql in left.asks {
        wanted.push(said(&mut direct, "direct", sql)?);
    }
    let mut sessions = Vec::new();
    for (who, here, there) in [
        ("one", "/* in one */", "/* in two */"),
        ("two", "/* in two */", "/* in one */"),
    ] {
        let mut client = log_in(proxy)?;
        said(&mut client, who, &format!("{} {here}", left.before))?;
        said(&mut client, who, &format!("{} {here}", left.leaves))?;
        let holds = proxy.admin(&format!(
            "SELECT hold FROM stats_mysql_session_holds WHERE SessionID = {} ORDER BY hold",
            client.id
        ))?;
        let holds = holds.lines().collect::<Vec<_>>().join(" ");
        // MySQL warns of SQL_CALC_FOUND_ROWS.
        expect(
            holds == left.holds || holds == format!("Diagnostics {}", left.holds),
            || format!("held for {holds:?}"),
        )?;
        sessions.push((who, there, client));
    }
    let begun = sessions.into_iter().map(|(who, there, mut client)| {
        thread::spawn(move || {
            let elsewhere = format!("{} {there}", left.elsewhere.replace("{who}", who));
            asked(&mut client, &elsewhere).map(|_| (who, client))
        })
    });
    let done: Vec<_> = begun
        .collect::<Vec<_>>()
        .into_iter()
        .map(|one| one.join().map_err(|_| "panicked".to_owned()))
        .collect();
    for one in done {
        let (who, mut client) = one??;
        for (sql, wanted) in left.asks.iter().zip(&wanted) {
            let found = said(&mut client, who, sql)?;
            expect(found == *wanted, || {
                format!("{who}: {sql}: {found:?} instead of {wanted:?}")
            })?;
        }
        client.command(&[1]).map_err(|error| error.to_string())?;
    }
    Ok(())
}
