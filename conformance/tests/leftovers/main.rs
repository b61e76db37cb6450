//! What one session has left on a connection is not what the next one finds there.
#![forbid(unsafe_code)]

mod triggers;

use conformance::beside::{asked, beside, narrow, set, settled};
use conformance::by_hand::{self, Raw};
use conformance::proxy::{Driver, Proxy, Wish};
use conformance::servers::{Server, Vendor, vendors};
use conformance::trials::{self, expect, same, soon, until};

use triggers::{
    behind_an_error, beside_a_name, beside_its_statement, beside_statement_ids, others_told,
    told_as_asked,
};

type Outcome = Result<(), String>;

fn main() {
    trials::run(&[
        (
            "a_default_is_the_servers_where_init_connect_has_set_another",
            defaults,
        ),
        (
            "hostgroups_begin_their_connections_each_with_its_own",
            beginnings,
        ),
        ("flags_are_changed_one_by_one_and_are_nobody_elses", flags),
        (
            "a_limit_of_a_sessions_results_is_not_for_our_own_questions",
            limited,
        ),
        (
            "a_variable_that_becomes_too_large_has_no_older_value",
            too_large,
        ),
        ("traces_of_the_optimizer_are_nobody_elses", traces),
        (
            "what_is_to_be_encrypted_is_not_said_in_clear_any_more",
            in_clear,
        ),
        (
            "a_string_keeps_the_collation_that_it_was_written_in",
            collations,
        ),
        ("a_clock_that_goes_on_stands_still_nowhere", clocks),
        ("a_number_of_a_transaction_is_used_once", numbers),
        (
            "what_cannot_be_taken_back_is_not_the_next_sessions_fault",
            not_its_fault,
        ),
        (
            "a_kept_connection_is_told_what_the_session_has_unset",
            unset_elsewhere,
        ),
        (
            "what_was_prepared_in_a_schema_runs_for_a_session_without_one",
            without_schema,
        ),
        (
            "our_own_questions_are_not_what_found_rows_is_about",
            found_rows,
        ),
        (
            "a_lock_that_was_lost_while_an_id_was_asked_for_is_told",
            lost_with_an_id,
        ),
        (
            "commit_release_ends_its_session_and_nobody_elses_statement",
            released,
        ),
        ("who_reads_in_utf16_leaves_no_more_than_others", wide),
        (
            "a_get_diagnostics_does_not_hide_what_a_trigger_has_set",
            behind_an_error,
        ),
        (
            "what_stands_behind_a_commit_release_does_not_run",
            behind_a_release,
        ),
        (
            "what_a_trigger_sets_beside_a_session_variable_is_nobody_elses",
            beside_a_name,
        ),
        (
            "what_a_trigger_sets_where_statement_ids_are_told_is_nobody_elses",
            beside_statement_ids,
        ),
        (
            "what_a_trigger_sets_beside_its_statement_is_nobody_elses",
            beside_its_statement,
        ),
        (
            "what_a_trigger_sets_where_the_session_says_what_it_is_told_is_nobody_elses",
            told_as_asked,
        ),
        ("what_others_want_to_be_told_ends_no_telling", others_told),
        (
            "a_kill_of_one_of_several_statements_is_no_kill_of_the_next",
            killed_among_several,
        ),
    ])
}

fn each(driver: Driver, test: impl Fn(Vendor, &Server, &Proxy) -> Outcome) -> Outcome {
    for vendor in vendors() {
        let (server, proxy) = by_hand::one(driver, vendor)?;
        test(vendor, &server, &proxy).map_err(|why| format!("{vendor}: {why}"))?;
    }
    Ok(())
}

fn log_in(proxy: &Proxy) -> Result<Raw, String> {
    Raw::log_in(proxy.port).map_err(|error| error.to_string())
}

fn is(client: &mut Raw, sql: &str, wanted: &[&str]) -> Outcome {
    let said = asked(client, sql)?.concat();
    expect(said == wanted, || {
        format!("{sql}: {said:?} instead of {wanted:?}")
    })
}

/// `sql_mode`, and with it the isolation level, which has words of its own.
fn defaults(driver: Driver) -> Outcome {
    each(driver, |vendor, server, proxy| {
        narrow(proxy)?;
        set(
            proxy,
            "SET mysql-init_connect=\"SET sql_mode='ANSI', time_zone='+03:00'; SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE\"",
        )?;
        let isolation = if vendor == Vendor::MariaDb {
            "tx_isolation"
        } else {
            "transaction_isolation"
        };
        let what = format!("SELECT @@sql_mode LIKE '%ANSI%', @@time_zone, @@{isolation}");
        let global = server
            .root("SELECT @@GLOBAL.time_zone")?
            .lines()
            .last()
            .unwrap_or_default()
            .to_owned();
        let mut first = log_in(proxy)?;
        let mut second = beside(proxy, &first)?;
        for (sets, wanted) in [
            (
                ["SET sql_mode=''", "SET sql_mode=DEFAULT"],
                ["0", "+03:00", "SERIALIZABLE"],
            ),
            (
                ["SET time_zone=DEFAULT", "SET @@session.sql_mode=default"],
                ["0", &global, "SERIALIZABLE"],
            ),
            (
                [
                    "SET SESSION TRANSACTION READ WRITE",
                    &format!("SET SESSION {isolation}=DEFAULT"),
                ],
                ["0", &global, "REPEATABLE-READ"],
            ),
        ] {
            for sql in sets {
                asked(&mut first, sql)?;
            }
            for _ in 0..2 {
                is(&mut first, &what, &wanted)?;
                is(&mut second, &what, &["1", "+03:00", "SERIALIZABLE"])?;
            }
        }
        Ok(())
    })
}

/// Two hostgroups lead to the server, and one begins its connections with another time zone. What a
/// session has not set is that of the hostgroup; what it has set, be it to the default, is the same
/// on both.
fn beginnings(driver: Driver) -> Outcome {
    each(driver, |_, server, proxy| {
        proxy.admin(&format!(
            "INSERT INTO mysql_servers (hostgroup_id, hostname, port) VALUES (1, '127.0.0.1', {}); \
             INSERT INTO mysql_hostgroup_attributes (hostgroup_id, init_connect) VALUES (1, 'SET @@SESSION.time_zone=''+02:00'''); \
             UPDATE mysql_servers SET max_connections = 1; LOAD MYSQL SERVERS TO RUNTIME; \
             INSERT INTO mysql_query_rules (rule_id, active, match_pattern, destination_hostgroup, apply) VALUES (1, 1, 'there', 1, 1); \
             LOAD MYSQL QUERY RULES TO RUNTIME",
            server.port
        ))?;
        let global = server
            .root("SELECT @@GLOBAL.time_zone")?
            .lines()
            .last()
            .unwrap_or_default()
            .to_owned();
        let global = global.as_str();
        const HERE: &str = "SELECT @@time_zone";
        const THERE: &str = "SELECT @@time_zone /* there */";
        for set_back in [
            "SET time_zone = DEFAULT",
            "SET @@session.time_zone = default /* there */",
        ] {
            for before in [
                "DO 0",
                "SET time_zone = '+05:00'",
                "SET time_zone = '+05:00' /* there */",
            ] {
                let mut client = log_in(proxy)?;
                is(&mut client, HERE, &[global])?;
                is(&mut client, THERE, &["+02:00"])?;
                asked(&mut client, before)?;
                if before != "DO 0" {
                    is(&mut client, HERE, &["+05:00"])?;
                    is(&mut client, THERE, &["+05:00"])?;
                }
                // As a direct client's, who knows of no beginning.
                asked(&mut client, set_back)?;
                for _ in 0..2 {
                    is(&mut client, THERE, &[global])?;
                    is(&mut client, HERE, &[global])?;
                }
                // Whoever comes next on these connections begins anew.
                let mut next = beside(proxy, &client)?;
                is(&mut next, HERE, &[global])?;
                is(&mut next, THERE, &["+02:00"])?;
                is(&mut client, THERE, &[global])?;
            }
        }
        Ok(())
    })
}

/// A SET of flags leaves those that it does not name: the session's own earlier ones are kept
/// wherever it goes, and those of another session are not.
fn flags(driver: Driver) -> Outcome {
    each(driver, |_, server, proxy| {
        narrow(proxy)?;
        const FLAGS: [&str; 3] = ["index_merge", "mrr", "materialization"];
        let asks: Vec<String> = FLAGS
            .iter()
            .map(|flag| format!("@@optimizer_switch LIKE '%{flag}=on%'"))
            .collect();
        let ask = format!("SELECT {}", asks.join(", "));
        server.root("SET GLOBAL optimizer_switch = 'index_merge=on,mrr=on,materialization=on'")?;
        let mut first = log_in(proxy)?;
        let mut second = beside(proxy, &first)?;
        // What is put back is what the server has for all, not what it was built with.
        server.root("SET GLOBAL optimizer_switch = 'materialization=off'")?;
        asked(&mut first, "SET optimizer_switch = 'index_merge=off'")?;
        asked(&mut second, "SET optimizer_switch = 'mrr=off'")?;
        is(&mut second, &ask, &["1", "0", "0"])?;
        is(&mut first, &ask, &["0", "1", "0"])?;
        asked(
            &mut first,
            "SET SESSION optimizer_switch = 'MRR=off,materialization=on'",
        )?;
        is(&mut second, &ask, &["1", "0", "0"])?;
        is(&mut first, &ask, &["0", "0", "1"])?;
        asked(&mut first, "SET @@optimizer_switch = 'default,mrr=off'")?;
        is(&mut beside(proxy, &first)?, &ask, &["1", "1", "0"])?;
        is(&mut first, &ask, &["1", "0", "0"])?;
        // All of them, by a value that only the server knows.
        asked(
            &mut first,
            "SET @@optimizer_switch = REPLACE(@@optimizer_switch, 'index_merge=on', 'index_merge=off')",
        )?;
        is(&mut second, &ask, &["1", "0", "0"])?;
        is(&mut first, &ask, &["0", "0", "0"])?;
        asked(&mut first, "SET optimizer_switch = 'mrr=on'")?;
        is(&mut second, &ask, &["1", "0", "0"])?;
        is(&mut first, &ask, &["0", "1", "0"])
    })
}

fn limited(driver: Driver) -> Outcome {
    each(driver, |_, _, proxy| {
        narrow(proxy)?;
        let mut first = log_in(proxy)?;
        let mut second = beside(proxy, &first)?;
        asked(&mut first, "SET sql_select_limit = 0")?;
        asked(
            &mut first,
            "SET @@session.sort_buffer_size = 100000 + 31072",
        )?;
        asked(&mut first, "SET @n = 40 + 2")?;
        asked(
            &mut first,
            "INSERT INTO conf.counted (words) VALUES ('limited')",
        )?;
        asked(&mut second, "SELECT 1")?;
        same(&settled(proxy, &mut first)?, "")?;
        asked(&mut first, "SET sql_select_limit = DEFAULT")?;
        is(
            &mut first,
            "SELECT @@sort_buffer_size, @n, LAST_INSERT_ID() > 0",
            &["131072", "42", "1"],
        )
    })
}

fn too_large(driver: Driver) -> Outcome {
    each(driver, |_, _, proxy| {
        let mut client = log_in(proxy)?;
        asked(&mut client, "SET @j = '{}', @k = 'k'")?;
        is(&mut client, "SELECT LENGTH(@j)", &["2"])?;
        asked(&mut client, &format!("SET @j = '{}'", "j".repeat(70_000)))?;
        is(&mut client, "SELECT LENGTH(@j), @k", &["70000", "k"])?;
        asked(&mut client, "SET @k = 'l'")?;
        is(&mut client, "SELECT LENGTH(@j), @k", &["70000", "l"])
    })
}

fn traces(driver: Driver) -> Outcome {
    each(driver, |_, _, proxy| {
        narrow(proxy)?;
        let traced = "SELECT QUERY LIKE '%secret%' FROM information_schema.OPTIMIZER_TRACE";
        for ends in [
            "SELECT 2",
            "SET optimizer_trace=DEFAULT",
            "SET optimizer_trace='enabled=off'",
        ] {
            let mut first = log_in(proxy)?;
            let mut second = beside(proxy, &first)?;
            asked(&mut first, "SET optimizer_trace='enabled=on'")?;
            asked(&mut first, "SELECT 'secret' FROM conf.counted")?;
            is(&mut first, traced, &["1"])?;
            asked(&mut first, ends)?;
            drop(first);
            is(&mut second, traced, &[])?;
        }
        // Others than those who trace keep no connection.
        let mut third = log_in(proxy)?;
        asked(&mut third, "SET optimizer_trace='enabled=off'")?;
        same(settled(proxy, &mut third)?.as_str(), "")
    })
}

fn in_clear(driver: Driver) -> Outcome {
    each(driver, |_, _, proxy| {
        let cipher = |client: &mut Raw| -> Result<String, String> {
            Ok(asked(client, "SHOW STATUS LIKE 'Ssl_cipher'")?
                .concat()
                .pop()
                .unwrap_or_default())
        };
        let mut first = log_in(proxy)?;
        asked(&mut first, "BEGIN")?;
        same(cipher(&mut first)?.as_str(), "")?;
        proxy.admin("UPDATE mysql_servers SET use_ssl = 1; LOAD MYSQL SERVERS TO RUNTIME")?;
        let mut second = beside(proxy, &first)?;
        soon("encrypted", || {
            Ok(if cipher(&mut second)?.is_empty() {
                "in clear"
            } else {
                "encrypted"
            }
            .to_owned())
        })?;
        // It keeps what it has, and nobody gets that afterwards.
        same(cipher(&mut first)?.as_str(), "")?;
        asked(&mut first, "COMMIT")?;
        for client in [&mut first, &mut second] {
            expect(!cipher(client)?.is_empty(), || {
                "a connection in clear was used again".to_owned()
            })?;
        }
        Ok(())
    })
}

fn collations(driver: Driver) -> Outcome {
    each(driver, |_, server, proxy| {
        let mut direct = Raw::log_in(server.port).map_err(|error| error.to_string())?;
        let mut client = log_in(proxy)?;
        for sql in [
            "SET @x='it'",
            "SET collation_connection='utf8mb4_bin'",
            "SET @y='is'",
        ] {
            asked(&mut direct, sql)?;
            asked(&mut client, sql)?;
        }
        let what = "SELECT COLLATION(@x), @x='IT', COLLATION(@y), @y='IS', @@collation_connection";
        let wanted = asked(&mut direct, what)?;
        let found = asked(&mut client, what)?;
        expect(found == wanted, || {
            format!("{found:?} instead of {wanted:?}")
        })
    })
}

fn clocks(driver: Driver) -> Outcome {
    each(driver, |_, server, proxy| {
        server.root("CREATE TABLE conf.ticks (a INT); CREATE TRIGGER conf.ticks BEFORE INSERT ON conf.ticks FOR EACH ROW SET timestamp = DEFAULT;")?;
        for stops in ["SET timestamp = @z", "INSERT INTO conf.ticks VALUES (1)"] {
            let mut first = log_in(proxy)?;
            let mut second = beside(proxy, &first)?;
            asked(&mut first, "SET @z = 0")?;
            asked(&mut first, stops)?;
            // Whatever is free is taken.
            asked(&mut second, "BEGIN")?;
            std::thread::sleep(std::time::Duration::from_millis(2500));
            is(
                &mut first,
                "SELECT ABS(UNIX_TIMESTAMP() - UNIX_TIMESTAMP(SYSDATE())) < 2",
                &["1"],
            )?;
        }
        // One that stands still does so wherever the session goes.
        let mut second = log_in(proxy)?;
        asked(&mut second, "SET timestamp = 1000000000")?;
        same(settled(proxy, &mut second)?.as_str(), "")?;
        is(&mut second, "SELECT UNIX_TIMESTAMP()", &["1000000000"])
    })
}

fn numbers(driver: Driver) -> Outcome {
    each(driver, |vendor, _, proxy| {
        let (number, read) = match vendor {
            Vendor::MariaDb => ("SET gtid_seq_no = 7000", "SELECT @@gtid_seq_no"),
            Vendor::MySql => (
                "SET gtid_next = 'aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa:5'",
                "SELECT @@gtid_next",
            ),
        };
        let mut first = log_in(proxy)?;
        asked(&mut first, number)?;
        same(settled(proxy, &mut first)?.as_str(), "UnknownState")?;
        let mut second = beside(proxy, &first)?;
        is(
            &mut second,
            read,
            &[if vendor == Vendor::MariaDb {
                "0"
            } else {
                "AUTOMATIC"
            }],
        )
    })
}

/// A variable that somebody might set and that the next session may not put back.
fn not_its_fault(driver: Driver) -> Outcome {
    if Vendor::MySql.programs().is_err() {
        return Ok(());
    }
    let (server, proxy) = by_hand::one(driver, Vendor::MySql)?;
    server.root("REVOKE ALL ON *.* FROM open@'%'; GRANT SELECT, SESSION_VARIABLES_ADMIN ON *.* TO open@'%';")?;
    narrow(&proxy)?;
    let mut first = log_in(&proxy)?;
    let mut second = beside(&proxy, &first)?;
    asked(&mut first, "SET sql_log_off = 1")?;
    server.root("REVOKE SESSION_VARIABLES_ADMIN ON *.* FROM open@'%'")?;
    is(&mut second, "SELECT @@sql_log_off", &["0"])?;
    // What is its own fault it is told.
    let said = asked(&mut first, "SELECT 1");
    expect(
        said.as_ref().is_err_and(|error| error.contains(": 1227")),
        || format!("{said:?}"),
    )
}

/// Two hostgroups lead to the server; the session has a temporary table on one and sets back its
/// isolation level on the other.
fn unset_elsewhere(driver: Driver) -> Outcome {
    each(driver, |vendor, server, proxy| {
        let isolation = if vendor == Vendor::MariaDb {
            "tx_isolation"
        } else {
            "transaction_isolation"
        };
        proxy.admin(&format!(
            "INSERT INTO mysql_servers (hostgroup_id, hostname, port) VALUES (1, '127.0.0.1', {}); LOAD MYSQL SERVERS TO RUNTIME; \
             INSERT INTO mysql_query_rules (rule_id, active, match_pattern, destination_hostgroup, apply) VALUES (1, 1, 'there', 1, 1); \
             LOAD MYSQL QUERY RULES TO RUNTIME",
            server.port
        ))?;
        let mut client = log_in(proxy)?;
        asked(
            &mut client,
            "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE",
        )?;
        asked(&mut client, "CREATE TEMPORARY TABLE conf.there (a INT)")?;
        let what = format!("SELECT @@{isolation} /* there */");
        is(&mut client, &what, &["SERIALIZABLE"])?;
        asked(&mut client, &format!("SET SESSION {isolation} = DEFAULT"))?;
        is(&mut client, &what, &["REPEATABLE-READ"])?;
        is(&mut client, "SELECT COUNT(*) FROM conf.there", &["0"])?;
        // One of them begins with another value: the default of whoever sets it back is the
        // server's own, on both.
        let groups = "INSERT INTO mysql_hostgroup_attributes (hostgroup_id, init_connect) VALUES";
        proxy.admin(&format!(
            "{groups} (1, 'SET @@SESSION.time_zone=''+02:00''');  LOAD MYSQL SERVERS TO RUNTIME"
        ))?;
        let mut client = log_in(proxy)?;
        asked(&mut client, "SET time_zone = '+05:00'")?;
        let begin = |client: &mut Raw| asked(client, "CREATE TEMPORARY TABLE conf.there (a INT)");
        begin(&mut client)?;
        is(&mut client, "SELECT @@time_zone /* there */", &["+05:00"])?;
        asked(&mut client, "SET time_zone = DEFAULT")?;
        is(
            &mut client,
            "SELECT COUNT(*), @@time_zone = @@GLOBAL.time_zone FROM conf.there",
            &["0", "1"],
        )?;
        is(
            &mut client,
            "SELECT @@time_zone = @@GLOBAL.time_zone",
            &["1"],
        )?;
        asked(&mut client, "SET time_zone = '+06:00'")?;
        is(
            &mut client,
            "SELECT COUNT(*), @@time_zone FROM conf.there",
            &["0", "+06:00"],
        )
    })
}

fn without_schema(driver: Driver) -> Outcome {
    each(driver, |vendor, server, proxy| {
        server.root(
            "CREATE DATABASE stays; CREATE TABLE stays.t (a INT); INSERT INTO stays.t VALUES (7);",
        )?;
        let mut client = log_in(proxy)?;
        // MySQL prepares none that begins a transaction.
        let begins = if vendor == Vendor::MariaDb {
            "PREPARE b FROM 'START TRANSACTION'"
        } else {
            "DO 0"
        };
        let prepared = [
            "CREATE DATABASE goes",
            "USE stays",
            "PREPARE p FROM 'SELECT a FROM t'",
            begins,
        ];
        for sql in prepared
            .into_iter()
            .chain(["USE goes", "DROP DATABASE goes"])
        {
            asked(&mut client, sql)?;
        }
        // Whatever is free is taken, and the rest is new.
        let mut others = Vec::new();
        for _ in 0..3 {
            let mut other = beside(proxy, &client)?;
            asked(&mut other, "BEGIN")?;
            others.push(other);
            is(&mut client, "EXECUTE p", &["7"])?;
            let said = asked(&mut client, "SELECT a FROM t");
            expect(
                said.as_ref().is_err_and(|error| error.contains(": 1046")),
                || format!("{said:?}"),
            )?;
            is(&mut client, "SELECT DATABASE()", &["NULL"])?;
        }
        drop(others);
        if vendor == Vendor::MariaDb {
            // What has begun in that schema holds its connection there: nothing else goes there,
            // but it can be ended.
            asked(&mut client, "EXECUTE b")?;
            let said = asked(&mut client, "SELECT a FROM stays.t");
            expect(
                said.as_ref().is_err_and(|error| error.contains(": 1235")),
                || format!("{said:?}"),
            )?;
            asked(&mut client, "ROLLBACK")?;
            is(&mut client, "SELECT DATABASE()", &["NULL"])?;
        }
        Ok(())
    })
}

/// The first statement that a server shall tell about has it asked; and a reset forgets.
fn found_rows(driver: Driver) -> Outcome {
    each(driver, |_, server, proxy| {
        let mut direct = Raw::log_in(server.port).map_err(|error| error.to_string())?;
        let mut client = log_in(proxy)?;
        let mut both = |client: &mut Raw, sql: &str| -> Outcome {
            let (wanted, found) = (asked(&mut direct, sql)?, asked(client, sql)?);
            expect(found == wanted, || {
                format!("{sql}: {found:?} instead of {wanted:?}")
            })
        };
        both(
            &mut client,
            "SELECT SQL_CALC_FOUND_ROWS 1 FROM conf.numbers LIMIT 1",
        )?;
        both(&mut client, "DELETE FROM conf.counted WHERE words = 'here'")?;
        both(&mut client, "SELECT FOUND_ROWS()")?;
        // As in `unset_elsewhere`.
        proxy.admin(&format!(
            "INSERT INTO mysql_servers (hostgroup_id, hostname, port) VALUES (1, '127.0.0.1', {}); \
             INSERT INTO mysql_hostgroup_attributes (hostgroup_id, init_connect) VALUES (1, 'SET @@SESSION.time_zone=''+02:00'''); \
             LOAD MYSQL SERVERS TO RUNTIME; \
             INSERT INTO mysql_query_rules (rule_id, active, match_pattern, destination_hostgroup, apply) VALUES (1, 1, 'there', 1, 1); \
             LOAD MYSQL QUERY RULES TO RUNTIME",
            server.port
        ))?;
        both(&mut client, "SET time_zone = '+05:00'")?;
        both(
            &mut client,
            "SELECT SQL_CALC_FOUND_ROWS 'there' FROM conf.numbers LIMIT 1",
        )?;
        both(&mut client, "SET time_zone = DEFAULT")?;
        both(&mut client, "SELECT FOUND_ROWS() /* there */")?;
        both(
            &mut client,
            "DELETE FROM conf.counted WHERE words = 'there'",
        )?;
        both(&mut client, "SELECT FOUND_ROWS()")
    })
}

/// The server closes the connection behind its OK: the session ends, as it does directly, and who
/// waits for the connection gets another one.
fn released(driver: Driver) -> Outcome {
    each(driver, |_, server, proxy| {
        server.root("CREATE TABLE conf.released (a INT)")?;
        narrow(proxy)?;
        let mut writer = log_in(proxy)?;
        for (round, ends) in ["COMMIT RELEASE", "ROLLBACK WORK RELEASE", "COMMIT"]
            .into_iter()
            .cycle()
            .take(30)
            .enumerate()
        {
            let mut client = beside(proxy, &writer)?;
            if ends == "COMMIT" {
                asked(&mut client, "SET completion_type = 2")?;
            }
            for sql in ["BEGIN", "INSERT INTO conf.released VALUES (1)"] {
                asked(&mut client, sql)?;
            }
            writer
                .query("INSERT INTO conf.released VALUES (2)")
                .map_err(|error| error.to_string())?;
            asked(&mut client, ends)?;
            writer
                .rows()
                .map_err(|error| format!("round {round}: {error}"))?;
            let gone = client.ask("SELECT 1");
            expect(gone.is_err(), || {
                format!("round {round}: {ends}: the session goes on: {gone:?}")
            })?;
        }
        let mut kept = log_in(proxy)?;
        asked(&mut kept, "SET completion_type = 'RELEASE'")?;
        asked(&mut kept, "BEGIN")?;
        asked(&mut kept, "COMMIT NO RELEASE")?;
        is(&mut kept, "SELECT COUNT(*) FROM conf.released", &["50"])
    })
}

/// The first that writes there has the server asked how it tells of changes, and reads letters of
/// two bytes.
fn wide(driver: Driver) -> Outcome {
    for charset in ["utf16", "ucs2", "utf32", "utf16le"] {
        each(driver, |_, server, proxy| {
            server.root(
                "CREATE TABLE conf.fired (a INT);
                 CREATE TRIGGER conf.fires BEFORE INSERT ON conf.fired FOR EACH ROW SET @of_a_trigger = 'secret'",
            )?;
            narrow(proxy)?;
            let mut first = log_in(proxy)?;
            let mut second = beside(proxy, &first)?;
            asked(&mut first, &format!("SET character_set_results = {charset}"))?;
            asked(&mut first, "INSERT INTO conf.fired VALUES (1)")?;
            same(settled(proxy, &mut first)?.as_str(), "Untold")?;
            asked(&mut first, "SET character_set_results = utf8mb4")?;
            is(&mut first, "SELECT @of_a_trigger", &["secret"])?;
            drop(first);
            is(&mut second, "SELECT @of_a_trigger", &["NULL"])
        })
        .map_err(|why| format!("{charset}: {why}"))?;
    }
    Ok(())
}

/// The server ends the session in the middle of the text.
fn behind_a_release(driver: Driver) -> Outcome {
    each(driver, |_, server, proxy| {
        server.root("CREATE TABLE conf.kept (a INT); INSERT INTO conf.kept VALUES (1)")?;
        for (sets, ends) in [
            ("DO 0", "COMMIT RELEASE"),
            ("SET completion_type = 2", "COMMIT"),
            ("SET completion_type = 2", "ROLLBACK"),
        ] {
            let play = |port: u16| {
                let mut client =
                    Raw::log_in_for_several(port).map_err(|error| error.to_string())?;
                asked(&mut client, sets)?;
                let first = asked(
                    &mut client,
                    &format!("BEGIN; {ends}; DELETE FROM conf.kept; SELECT 1"),
                );
                let then: Vec<_> = (0..2).map(|_| client.rows().map_err(drop)).collect();
                Ok::<_, String>(format!("{first:?}, {then:?}"))
            };
            same(&play(proxy.port)?, &play(server.port)?)
                .map_err(|words| format!("{ends}: {words}"))?;
            let left = server.root("SELECT COUNT(*) FROM conf.kept")?;
            expect(left.trim_end().ends_with('1'), || {
                format!("{ends}: what stands behind it has run")
            })?;
        }
        Ok(())
    })
}

/// A statement that a rule leads elsewhere may read the session's id, so the connection of the
/// insert is asked first: what went with that one is told.
fn lost_with_an_id(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let server = Server::start(vendor)?;
        server.root(by_hand::CREATE_USER)?;
        server.root(
            "CREATE FUNCTION conf.report(n INT) RETURNS INT DETERMINISTIC NO SQL RETURN n + 1",
        )?;
        let mut wish = Wish::in_front_of(&server);
        wish.add_open_user();
        wish.servers = format!(
            "{},\n{{ address = \"127.0.0.1\", port = {}, hostgroup = 1 }}",
            wish.servers, server.port
        );
        wish.rules =
            "{ rule_id = 1, active = 1, match_digest = \"^SELECT conf.report\", destination_hostgroup = 1, apply = 1 }".into();
        let proxy = Proxy::start(driver, &wish)?;
        let mut client = log_in(&proxy)?;
        let report = "SELECT conf.report(1)";
        same(
            &asked(&mut client, "SELECT GET_LOCK('leader', 5)")?
                .concat()
                .concat(),
            "1",
        )?;
        asked(
            &mut client,
            "INSERT INTO conf.counted (words) VALUES ('elsewhere')",
        )?;
        let holder = server.root("SELECT IS_USED_LOCK('leader')")?;
        let holder = holder.lines().last().unwrap_or_default().trim().to_owned();
        server.root(&format!("KILL {holder}"))?;
        soon("1", || {
            Ok(server
                .root("SELECT IS_FREE_LOCK('leader')")?
                .lines()
                .last()
                .unwrap_or_default()
                .trim()
                .to_owned())
        })?;
        let said = asked(&mut client, report);
        expect(said.is_err(), || {
            format!("{vendor}: the lock is gone and nothing is said: {said:?}")
        })?;
        expect(asked(&mut client, "SELECT 1").is_err(), || {
            format!("{vendor}: the session goes on as if it had its lock")
        })?;
    }
    Ok(())
}

/// To MySQL, a SLEEP() that is ended has an answer, and what stands behind it runs.
fn killed_among_several(driver: Driver) -> Outcome {
    each(driver, |vendor, server, proxy| {
        let mut ends = log_in(proxy)?;
        for (port, through) in [(server.port, false), (proxy.port, true)] {
            let mut client = Raw::log_in_for_several(port).map_err(|error| error.to_string())?;
            let id = client.id;
            client
                .query("SELECT 1; SELECT SLEEP(31), 'long'; SELECT 3")
                .map_err(|error| error.to_string())?;
            let first = client.rows().map_err(|error| error.to_string())?;
            let asleep =
                "SELECT COUNT(*) FROM information_schema.processlist WHERE state = 'User sleep'";
            until("1", || server.root(asleep))?;
            match through {
                true => drop(asked(&mut ends, &format!("KILL QUERY {id}"))?),
                false => drop(server.root(&format!("KILL QUERY {id}"))?),
            }
            let second = client.rows();
            expect(first == [["1"]], || format!("{first:?}"))?;
            match vendor {
                Vendor::MySql => {
                    expect(
                        second.as_ref().is_ok_and(|rows| *rows == [["1", "long"]]),
                        || format!("through {through}: {second:?}"),
                    )?;
                    let third = client
                        .rows()
                        .map_err(|error| format!("through {through}: {error}"))?;
                    expect(third == [["3"]], || format!("{third:?}"))?;
                }
                _ => expect(
                    second.is_err_and(|error| error.to_string().contains("1317")),
                    || format!("through {through}"),
                )?,
            }
            is(&mut client, "SELECT 'alive'", &["alive"])?;
        }
        Ok(())
    })
}
