//! What soaks have found, each as its smallest story.

use conformance::by_hand::Raw;
use conformance::proxy::{Driver, Proxy};
use conformance::trials::expect;

use crate::{start, vendors, wish};

type Outcome = Result<(), String>;

fn asked(client: &mut Raw, sql: &str) -> Result<Vec<Vec<String>>, String> {
    client.ask(sql).map_err(|error| format!("{sql}: {error}"))
}

fn says(client: &mut Raw, sql: &str, wanted: &str) -> Outcome {
    let found = asked(client, sql)?.concat().join(" ");
    expect(found == wanted, || {
        format!("{sql}: {found:?} instead of {wanted:?}")
    })
}

fn each(driver: Driver, story: fn(&mut Raw) -> Outcome) -> Outcome {
    for vendor in vendors(driver) {
        let server = start(vendor)?;
        let proxy = Proxy::start(driver, &wish(&server))?;
        let mut client = Raw::log_in(proxy.port).map_err(|error| error.to_string())?;
        story(&mut client).map_err(|words| format!("{vendor}: {words}"))?;
    }
    Ok(())
}

/// An error on the writer, then a warning on the reader: SHOW WARNINGS is about the second.
pub(crate) fn diagnostics(driver: Driver) -> Outcome {
    each(driver, |client| {
        for _ in 0..3 {
            expect(
                client
                    .ask("INSERT INTO conf.no_such_table VALUES (1)")
                    .is_err(),
                || "no error".to_owned(),
            )?;
            asked(client, "SELECT CAST('second' AS SIGNED)")?;
            let warned = asked(client, "SHOW WARNINGS")?.concat().join(" ");
            expect(
                warned.contains("'second'") && !warned.contains("no_such"),
                || format!("warned of {warned}"),
            )?;
            // And a statement without any ends those of another connection, also for who gets that
            // connection again.
            expect(
                client
                    .ask("INSERT INTO conf.no_such_table VALUES (1)")
                    .is_err(),
                || "no error".to_owned(),
            )?;
            says(client, "SELECT COUNT(*) FROM conf.one", "1")?;
            says(client, "SHOW WARNINGS", "")?;
            says(client, "SHOW ERRORS", "")?;
        }
        Ok(())
    })
}

/// A value that a SET by an expression has given a variable is not lost when a statement is
/// prepared anew, as it meant before.
pub(crate) fn expressions(driver: Driver) -> Outcome {
    use conformance::raw::Raw;
    let server = start(conformance::servers::Vendor::MariaDb)?;
    let proxy = Proxy::start(driver, &wish(&server))?;
    let mut client = Raw::log_in(proxy.port, 0)?;
    client.query("USE conf")?;
    client.prepare("SELECT ? FROM conf.one LOCK IN SHARE MODE")?;
    // The connection that knows it is gone.
    let known = server.root("SELECT id FROM information_schema.processlist WHERE user = 'app'")?;
    for id in known.lines().skip(1) {
        server.root(&format!("KILL {id}"))?;
    }
    for sql in [
        "SET group_concat_max_len = 2000",
        "USE conf2",
        "BEGIN",
        "SET group_concat_max_len = @@group_concat_max_len + 7",
    ] {
        client.query(sql)?;
    }
    // Its parameter is NULL.
    client.execute(0, 0, b"\x01\x01\x06\x00")?;
    for sql in [
        "SELECT @@group_concat_max_len",
        "COMMIT",
        "SELECT @@group_concat_max_len",
    ] {
        let said = client.query(sql)?;
        expect(sql == "COMMIT" || said.contains("2007"), || {
            format!("{sql}: {said}")
        })?;
    }
    Ok(())
}

/// The id of an insert is known from its answer, also when its connection is taken away before
/// anybody has asked.
pub(crate) fn insert_ids(driver: Driver) -> Outcome {
    let server = start(conformance::servers::Vendor::MariaDb)?;
    let proxy = Proxy::start(driver, &wish(&server))?;
    // The connection of the insert is not left for a client that is silent.
    proxy.admin(
        "SET mysql-auto_increment_delay_multiplex_timeout_ms = 0; LOAD MYSQL VARIABLES TO RUNTIME",
    )?;
    let mut client = Raw::log_in(proxy.port).map_err(|error| error.to_string())?;
    for id in ["1", "2", "3"] {
        asked(&mut client, "INSERT INTO conf.ids (tag) VALUES ('x')")?;
        for status in ["OFFLINE_HARD", "ONLINE"] {
            proxy.admin(&format!(
                "UPDATE mysql_servers SET status = '{status}' WHERE hostgroup_id = 0; LOAD MYSQL SERVERS TO RUNTIME"
            ))?;
            says(&mut client, "SELECT 'on the reader'", "on the reader")?;
        }
        says(&mut client, "SELECT LAST_INSERT_ID()", id)?;
    }
    Ok(())
}

/// Where rules send reads elsewhere, a lock is still released where it was taken.
pub(crate) fn user_locks(driver: Driver) -> Outcome {
    each(driver, |client| {
        asked(client, "DO GET_LOCK('of the writer', 0)")?;
        says(client, "SELECT RELEASE_LOCK('of the writer')", "1")?;
        asked(client, "BEGIN")?;
        says(client, "SELECT GET_LOCK('of a transaction', 0)", "1")?;
        asked(client, "COMMIT")?;
        says(client, "SELECT RELEASE_LOCK('of a transaction')", "1")?;
        says(client, "SELECT GET_LOCK('of the reader', 0)", "1")?;
        asked(client, "BEGIN")?;
        asked(client, "INSERT INTO conf.log VALUES ('x')")?;
        says(client, "SELECT RELEASE_LOCK('of the reader')", "1")?;
        asked(client, "ROLLBACK")?;
        says(client, "SELECT COUNT(*) FROM conf.log", "0")?;
        says(
            client,
            "SELECT IS_FREE_LOCK('of the reader') + IS_FREE_LOCK('of the writer')",
            "2",
        )
    })
}

/// A lock on the reader, and a transaction on the writer: what also reads rows belongs to the
/// transaction.
pub(crate) fn user_locks_beside_a_transaction(driver: Driver) -> Outcome {
    each(driver, |client| {
        says(client, "SELECT GET_LOCK('beside', 0)", "1")?;
        asked(client, "BEGIN")?;
        asked(client, "INSERT INTO conf.log VALUES ('mine')")?;
        says(
            client,
            "SELECT tag, RELEASE_LOCK('no lock') IS NULL FROM conf.log WHERE tag = 'mine' FOR UPDATE",
            "mine 1",
        )?;
        says(
            client,
            "SELECT RELEASE_LOCK('no lock') IS NULL, (SELECT COUNT(*) FROM conf.log)",
            "1 1",
        )?;
        says(client, "SELECT RELEASE_LOCK('beside')", "1")?;
        asked(client, "ROLLBACK").map(drop)
    })
}
