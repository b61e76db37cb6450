//! Variables that a trigger sets, and who is told of them.

use conformance::beside::{asked, beside, narrow, settled};
use conformance::by_hand;
use conformance::proxy::{Driver, Proxy};
use conformance::servers::Vendor;
use conformance::trials::{expect, same, soon};

use super::{Outcome, each, is, log_in};

/// MySQL tells what a failed statement has changed with the next answer, and that is one which
/// changes something itself.
pub(super) fn behind_an_error(driver: Driver) -> Outcome {
    each(driver, |vendor, server, proxy| {
        server.root(
            "CREATE TABLE conf.once (a INT PRIMARY KEY); INSERT INTO conf.once VALUES (1);
             CREATE TRIGGER conf.fires BEFORE INSERT ON conf.once FOR EACH ROW SET @of_a_trigger = 'secret'",
        )?;
        narrow(proxy)?;
        for reads in [
            "GET DIAGNOSTICS CONDITION 1 @msg = MESSAGE_TEXT",
            "SET @msg = @@error_count",
        ] {
            let mut first = log_in(proxy)?;
            let mut second = beside(proxy, &first)?;
            asked(&mut second, "SET @msg = 'b'")?;
            let failed = asked(&mut first, "INSERT INTO conf.once VALUES (1)");
            expect(failed.is_err(), || "it was to fail".to_owned())?;
            asked(&mut first, reads)?;
            let kept = settled(proxy, &mut first)?;
            expect(vendor == Vendor::MariaDb || kept.contains("Untold"), || {
                format!("{reads}: held for '{kept}' only")
            })?;
            is(&mut first, "SELECT @of_a_trigger", &["secret"])?;
            drop(first);
            is(&mut second, "SELECT @of_a_trigger, @msg", &["NULL", "b"])?;
        }
        Ok(())
    })
}

/// A client runs this, and has what it and its triggers have set until it leaves; the next client
/// on the same connection has nothing of it.
fn leaves_nothing(
    proxy: &Proxy,
    statements: &[&str],
    what: &str,
    (own, others): (&[&str], &[&str]),
) -> Outcome {
    let mut first = log_in(proxy)?;
    let mut second = beside(proxy, &first)?;
    // What is known to be another's is taken away before. This is not.
    asked(&mut second, "SET @n = 5")?;
    for sql in statements {
        asked(&mut first, sql)?;
    }
    let kept = settled(proxy, &mut first)?;
    let found = is(&mut first, what, own);
    drop(first);
    is(&mut second, what, others)
        .map_err(|words| format!("somebody else after {statements:?}: {words}"))?;
    found.map_err(|words| format!("itself after {statements:?}, held for '{kept}': {words}"))
}

const FIRES: &str = "CREATE TABLE conf.fired (a INT);
    CREATE TRIGGER conf.fires BEFORE INSERT ON conf.fired FOR EACH ROW SET @of_a_trigger = 'secret'";

/// The server says the name of one, and that something has changed.
pub(super) fn beside_a_name(driver: Driver) -> Outcome {
    each(driver, |_, server, proxy| {
        server.root(
            "CREATE TABLE conf.both (a INT); CREATE TABLE conf.makes (a INT);
             CREATE TABLE conf.shown (words TEXT); INSERT INTO conf.shown VALUES ('a'), ('b'), ('c');
             CREATE TRIGGER conf.both BEFORE INSERT ON conf.both FOR EACH ROW SET @of_a_trigger = 'secret', SESSION time_zone = '+05:00';
             CREATE TRIGGER conf.makes BEFORE INSERT ON conf.makes FOR EACH ROW CREATE TEMPORARY TABLE conf.shown (words TEXT);
             CREATE TRIGGER conf.sets AFTER INSERT ON conf.makes FOR EACH ROW SET SESSION time_zone = '+05:00'",
        )?;
        narrow(proxy)?;
        let global = server
            .root("SELECT @@GLOBAL.time_zone")?
            .lines()
            .last()
            .unwrap_or_default()
            .to_owned();
        let what = "SELECT @of_a_trigger, @@SESSION.time_zone";
        for insert in [
            "INSERT INTO conf.both VALUES (1)",
            "UPDATE conf.both SET a = 2",
            "INSERT INTO conf.both VALUES (1), (2)",
        ] {
            let fires = insert.starts_with("INSERT");
            let own: [&str; 2] = if fires {
                ["secret", "+05:00"]
            } else {
                ["NULL", &global]
            };
            leaves_nothing(proxy, &[insert], what, (&own, &["NULL", &global]))?;
        }
        leaves_nothing(
            proxy,
            &["INSERT INTO conf.makes VALUES (1)"],
            "SELECT COUNT(*) FROM conf.shown",
            (&["0"], &["3"]),
        )
    })
}

/// With `*` MySQL names `statement_id` after every statement.
pub(super) fn beside_statement_ids(driver: Driver) -> Outcome {
    if Vendor::MySql.programs().is_err() {
        return Ok(());
    }
    let (server, proxy) = by_hand::one(driver, Vendor::MySql)?;
    server.root(&format!(
        "SET GLOBAL session_track_system_variables = '*'; {FIRES}; CREATE TABLE conf.plain (a INT)"
    ))?;
    narrow(&proxy)?;
    let what = "SELECT @of_a_trigger";
    leaves_nothing(
        &proxy,
        &["INSERT INTO conf.fired VALUES (1)"],
        what,
        (&["secret"], &["NULL"]),
    )?;
    let mut client = log_in(&proxy)?;
    asked(&mut client, "INSERT INTO conf.plain VALUES (1)")?;
    same(settled(&proxy, &mut client)?.as_str(), "")
}

/// Variables that a statement sets by its own text are told by no server, unless it is a SET.
pub(super) fn beside_its_statement(driver: Driver) -> Outcome {
    each(driver, |vendor, server, proxy| {
        server.root(FIRES)?;
        narrow(proxy)?;
        let what = "SELECT @of_a_trigger, @n";
        let insert = "INSERT INTO conf.fired VALUES (@n := 2)";
        leaves_nothing(proxy, &[insert], what, (&["secret", "2"], &["NULL", "5"]))?;
        leaves_nothing(
            proxy,
            &["SET @n = 1", insert, insert],
            what,
            (&["secret", "2"], &["NULL", "5"]),
        )?;
        if vendor == Vendor::MariaDb {
            let folder = server
                .root("SELECT @@tmpdir")?
                .lines()
                .last()
                .unwrap_or_default()
                .to_owned();
            let load = format!("LOAD DATA INFILE '{folder}/two' INTO TABLE conf.fired (a, @n)");
            server.root(&format!("SELECT 1, 2 INTO OUTFILE '{folder}/two'"))?;
            leaves_nothing(proxy, &[&load], what, (&["secret", "2"], &["NULL", "5"]))?;
        }
        // Where no trigger is, its own is asked for, and nothing keeps the connection.
        server.root("CREATE TABLE conf.plain (a INT)")?;
        let mut client = log_in(proxy)?;
        asked(&mut client, "INSERT INTO conf.plain VALUES (@n := 2)")?;
        soon("", || settled(proxy, &mut client))?;
        is(&mut client, "SELECT @n", &["2"])
    })
}

/// As client libraries say it after a login (Connector/J 2 of MariaDB, its R2DBC), and what is more
/// than we have a server tell.
pub(super) fn told_as_asked(driver: Driver) -> Outcome {
    each(driver, |vendor, server, proxy| {
        server.root(
            "CREATE TABLE conf.both (a INT); CREATE TABLE conf.plain (a INT); CREATE TABLE conf.counts (a INT);
             CREATE TRIGGER conf.both BEFORE INSERT ON conf.both FOR EACH ROW SET @of_a_trigger = 'secret', SESSION time_zone = '+05:00';
             CREATE TRIGGER conf.counts BEFORE INSERT ON conf.counts FOR EACH ROW SET @of_a_trigger = 'secret'",
        )?;
        narrow(proxy)?;
        let what = "SELECT @of_a_trigger, @@SESSION.time_zone = '+05:00'";
        let (insert, plain) = (
            "INSERT INTO conf.both VALUES (1)",
            "INSERT INTO conf.plain VALUES (1)",
        );
        for says in [
            "SET session_track_schema = 1",
            "SET session_track_schema = 1, session_track_system_variables = 'autocommit,character_set_client'",
            "SET session_track_state_change = CONCAT('O', 'N'), session_track_system_variables = ''",
        ] {
            for statements in [&[says, insert][..], &[says, plain, insert]] {
                leaves_nothing(proxy, statements, what, (&["secret", "1"], &["NULL", "0"]))?;
            }
            // It is shared as any other, and its connections serve others as they are.
            let resets = || {
                proxy.admin("SELECT Variable_Value FROM stats_mysql_global WHERE Variable_Name = 'MyHGM_myconnpoll_reset'")
            };
            let mut first = log_in(proxy)?;
            let mut second = beside(proxy, &first)?;
            for client in [&mut first, &mut second] {
                asked(client, says)?;
                // What those before have left goes now.
                asked(client, plain)?;
            }
            let before = resets()?;
            for _ in 0..3 {
                for client in [&mut first, &mut second] {
                    asked(client, plain)?;
                    same(settled(proxy, client)?.as_str(), "")?;
                }
            }
            same(&resets()?, &before).map_err(|words| format!("{says}: resets: {words}"))?;
        }
        // Of what nobody could have the server tell, only a reset is certain; what the session
        // itself has of it is where that is.
        let all = if vendor == Vendor::MySql {
            "SET session_track_system_variables = '*'"
        } else {
            "DO 0"
        };
        leaves_nothing(
            proxy,
            &[all, "BEGIN", insert, "ROLLBACK"],
            "SELECT 1",
            (&["1"], &["1"]),
        )?;
        let mut third = log_in(proxy)?;
        is(&mut third, what, &["NULL", "0"])?;
        drop(third);
        // Nor was a server asked where the question would have been the statement that it asks
        // about.
        proxy
            .admin("UPDATE mysql_servers SET max_connections = 2; LOAD MYSQL SERVERS TO RUNTIME")?;
        let mut first = log_in(proxy)?;
        asked(
            &mut first,
            "SELECT SQL_CALC_FOUND_ROWS id FROM conf.numbers LIMIT 1",
        )?;
        asked(&mut first, "INSERT INTO conf.counts SELECT FOUND_ROWS()")?;
        drop(first);
        for _ in 0..4 {
            let mut other = log_in(proxy)?;
            is(&mut other, "SELECT @of_a_trigger", &["NULL"])?;
        }
        Ok(())
    })
}

/// Settings of what one session wants to be told come onto a connection that tells all, and go
/// again.
pub(super) fn others_told(driver: Driver) -> Outcome {
    each(driver, |_, server, proxy| {
        server.root(&format!("{FIRES}; CREATE TABLE conf.plain (a INT)"))?;
        narrow(proxy)?;
        let mut writer = log_in(proxy)?;
        let mut other = beside(proxy, &writer)?;
        asked(
            &mut other,
            "SET session_track_state_change = 0, session_track_system_variables = ''",
        )?;
        asked(&mut writer, "INSERT INTO conf.plain VALUES (1)")?;
        for sql in ["SHOW WARNINGS", "SELECT 1", "SELECT @@warning_count"] {
            asked(&mut other, sql)?;
            asked(&mut writer, "INSERT INTO conf.plain VALUES (1)")?;
            same(settled(proxy, &mut writer)?.as_str(), "")?;
        }
        is(
            &mut other,
            "SELECT @@session_track_state_change, @@session_track_system_variables",
            &["0", ""],
        )?;
        asked(&mut other, "SHOW WARNINGS")?;
        asked(&mut writer, "INSERT INTO conf.fired VALUES (1)")?;
        same(settled(proxy, &mut writer)?.as_str(), "Untold")?;
        is(&mut writer, "SELECT @of_a_trigger", &["secret"])
    })
}
