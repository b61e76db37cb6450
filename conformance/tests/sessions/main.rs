//! What a session may rely on although its connections are shared: they are made clean, opened
//! ahead, and brought to its state.
#![forbid(unsafe_code)]

mod character_sets;
mod warnings;

use conformance::beside::{asked, beside, narrow, set, settled};
use conformance::by_hand::{self, Raw};
use conformance::proxy::{Driver, Proxy, Wish};
use conformance::servers::{Server, Vendor, vendors};
use conformance::statements::prepare;
use conformance::trials::{self, expect, same, soon};

use character_sets::{character_sets, collations, unknown_collations};
use warnings::{
    WARNS, counts_are_selects, packets, warnings_follow, warnings_lost, warnings_of_servers,
};

type Outcome = Result<(), String>;

fn main() {
    trials::run(&[
        ("a_connection_is_made_clean_by_either_command", made_clean),
        (
            "connections_are_opened_ahead_until_there_are_enough",
            opened_ahead,
        ),
        (
            "warnings_are_shown_as_by_a_server_after_their_connection_was_given_back",
            warnings_follow,
        ),
        (
            "what_only_a_server_can_say_of_warnings_is_asked_there_or_refused",
            warnings_of_servers,
        ),
        ("a_role_follows_its_session_and_nobody_else", roles),
        (
            "several_servers_at_once_for_one_client_are_told_what_it_sets",
            several_servers,
        ),
        (
            "a_collation_of_two_bytes_is_what_the_server_makes_of_it",
            collations,
        ),
        (
            "character_sets_follow_their_session_as_the_server_has_them",
            character_sets,
        ),
        (
            "a_collation_that_a_server_does_not_know_is_its_default_after_a_reset_too",
            unknown_collations,
        ),
        (
            "nothing_is_opened_ahead_that_nobody_could_share",
            opened_in_vain,
        ),
        (
            "a_reset_that_a_server_refuses_is_nobodys_error",
            refused_reset,
        ),
        ("warnings_that_are_lost_are_said_to_be_lost", warnings_lost),
        (
            "a_count_of_warnings_is_a_select_that_finds_one_row",
            counts_are_selects,
        ),
        (
            "what_a_server_remembers_of_a_statement_is_shown_to_its_session_only",
            remembered_of_others,
        ),
        (
            "a_view_whose_function_reads_a_user_variable_shows_nothing_of_anothers",
            variables_in_views,
        ),
        (
            "a_session_that_keeps_a_connection_has_no_variables_of_another_there",
            variables_of_others,
        ),
        (
            "a_schema_that_was_dropped_is_nobody_elses_error",
            dropped_schema,
        ),
        (
            "what_was_brought_for_a_statement_is_there_after_it_was_prepared",
            prepared_as_meant,
        ),
    ])
}

/// Statements that use no table leave the warnings of before on MariaDB, and no reset forgets the
/// texts of SHOW PROFILES.
fn remembered_of_others(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (_server, proxy) = one_of(driver, vendor)?;
        let core = log_in(proxy.port)?;
        for between in [
            "SELECT 1",
            "SET @mine = 1",
            "SET SESSION max_error_count = 10",
            "COMMIT",
            "BEGIN",
            "DO 1",
            "SHOW GRANTS",
        ] {
            for ask in ["SHOW WARNINGS", "SHOW COUNT(*) WARNINGS", "SHOW ERRORS"] {
                for quits in [false, true]
                    .into_iter()
                    .filter(|quits| ask == "SHOW WARNINGS" || !quits)
                {
                    narrow(&proxy)?;
                    let mut first = beside(&proxy, &core)?;
                    asked(&mut first, WARNS)?;
                    asked(&mut first, "SHOW WARNINGS")?;
                    let mut first = if quits { None } else { Some(first) };
                    if let Some(first) = &mut first {
                        soon("", || settled(&proxy, first))?;
                    }
                    let mut second = beside(&proxy, &core)?;
                    asked(&mut second, between)?;
                    let found = asked(&mut second, ask)?;
                    let none = if ask.contains("COUNT") {
                        vec![vec!["0".to_owned()]]
                    } else {
                        Vec::new()
                    };
                    expect(found == none, || {
                        format!(
                            "{vendor}: {ask} after {between} shows another session's (which left: {quits}): {found:?}"
                        )
                    })?;
                    drop(first);
                }
            }
        }
        // One's own are not mixed with them.
        let mut first = beside(&proxy, &core)?;
        asked(&mut first, WARNS)?;
        soon("", || settled(&proxy, &mut first))?;
        let mut second = beside(&proxy, &core)?;
        asked(&mut second, "SELECT CAST('own' AS SIGNED)")?;
        let found = asked(&mut second, "SHOW WARNINGS")?;
        expect(found.len() == 1 && found[0][2].contains("own"), || {
            format!("{vendor}: {found:?}")
        })?;
        drop((first, second));
        let mut first = beside(&proxy, &core)?;
        asked(&mut first, "SET profiling = 1")?;
        asked(&mut first, "SELECT 'secret'")?;
        let own = asked(&mut first, "SHOW PROFILES")?;
        expect(
            own.iter().any(|row| row.concat().contains("secret")),
            || format!("{vendor}: {own:?}"),
        )?;
        asked(&mut first, "SET profiling = 0")?;
        drop(first);
        for begin in ["SELECT 1", "SET profiling = 1", "SELECT 2"] {
            let mut second = beside(&proxy, &core)?;
            asked(&mut second, begin)?;
            let found = asked(&mut second, "SHOW PROFILES")?;
            expect(
                !found.iter().any(|row| row.concat().contains("secret")),
                || format!("{vendor}: {found:?}"),
            )?;
        }
    }
    Ok(())
}

fn variables_in_views(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (server, proxy) = one_of(driver, vendor)?;
        server.root(
            "SET GLOBAL log_bin_trust_function_creators = 1;
             CREATE TABLE conf.lodgers (house INT, name TEXT); INSERT INTO conf.lodgers VALUES (1, 'one'), (2, 'two');
             CREATE FUNCTION conf.house() RETURNS INT NO SQL RETURN @house;
             CREATE VIEW conf.mine AS SELECT name FROM conf.lodgers WHERE house = conf.house()",
        )?;
        narrow(&proxy)?;
        let read = "SELECT name FROM conf.mine";
        let core = log_in(proxy.port)?;
        let mut first = beside(&proxy, &core)?;
        asked(&mut first, "SET @house = 1")?;
        // A write may fire triggers: the variable is on the connection from now on.
        asked(
            &mut first,
            "UPDATE conf.lodgers SET name = 'one' WHERE house = 1",
        )?;
        let mut second = beside(&proxy, &core)?;
        asked(&mut second, "SET @house = 2")?;
        let mut third = beside(&proxy, &core)?;
        for client in [&mut first, &mut second, &mut third] {
            // Without a schema, MariaDB tells of a change for every function that runs.
            asked(client, "USE conf")?;
        }
        for cached in [false, true] {
            if cached {
                proxy.admin(
                    "INSERT INTO mysql_query_rules (rule_id, active, match_digest, cache_ttl, apply) VALUES (1, 1, '^SELECT name', 60000, 1);
                     LOAD MYSQL QUERY RULES TO RUNTIME",
                )?;
            }
            for _ in 0..3 {
                for (client, wanted) in
                    [(&mut second, "two"), (&mut third, ""), (&mut first, "one")]
                {
                    // What a session has set is there where another's has to make way. Where
                    // nothing has, it is not brought for a statement that does not name it.
                    let found = asked(client, read)?.concat().concat();
                    expect(found == wanted || found.is_empty(), || {
                        format!("{vendor}: {found} instead of {wanted}, cached: {cached}")
                    })?;
                    asked(client, "UPDATE conf.lodgers SET name = name")?;
                    let found = asked(client, read)?.concat().concat();
                    expect(found == wanted, || {
                        format!(
                            "{vendor}, after a write: {found} instead of {wanted}, cached: {cached}"
                        )
                    })?;
                }
            }
        }
    }
    Ok(())
}

/// Statements that begin to keep a connection see no variables themselves; those that follow may
/// name one that another session has left there.
fn variables_of_others(driver: Driver) -> Outcome {
    const PREPARE: &str = "\x16SELECT * FROM conf.missing";
    const INIT_DB: &str = "\x02missing";
    let begins = [
        "BEGIN",
        "START TRANSACTION",
        "SET autocommit = 0",
        PREPARE,
        INIT_DB,
        "USE missing",
        "SAVEPOINT a",
    ];
    let names = [
        "SELECT @of_trigger",
        "SELECT @number",
        "SELECT @of_trigger, @number",
    ];
    for vendor in vendors() {
        let (server, proxy) = one_of(driver, vendor)?;
        server.root(
            "CREATE TABLE conf.once (a INT PRIMARY KEY); INSERT INTO conf.once VALUES (1);
             CREATE TRIGGER conf.leaves BEFORE INSERT ON conf.once FOR EACH ROW SET @of_trigger = 'alice';",
        )?;
        narrow(&proxy)?;
        set(&proxy, "SET mysql-auto_increment_delay_multiplex=0")?;
        let core = log_in(proxy.port)?;
        for begin in begins {
            for left in [
                &["INSERT INTO conf.once VALUES (1)"][..],
                &["SET @number = 5", "UPDATE conf.once SET a = a WHERE a < 0"],
            ] {
                set(&proxy, "SET mysql-handle_warnings_delay_ms=5")?;
                let mut first = beside(&proxy, &core)?;
                for sql in left {
                    let _the_insert_fails = first.ask(sql);
                }
                std::thread::sleep(std::time::Duration::from_millis(20));
                // MySQL tells of the trigger: then the connection is kept, and reset afterwards.
                let _first = Some(first).filter(|_| vendor != Vendor::MySql);
                set(&proxy, "SET mysql-handle_warnings_delay_ms=0")?;
                let (mut direct, mut second) = (log_in(server.port)?, beside(&proxy, &core)?);
                for client in [&mut direct, &mut second] {
                    let command = if begin.as_bytes()[0] < b' ' {
                        begin.as_bytes().to_vec()
                    } else {
                        [b"\x03", begin.as_bytes()].concat()
                    };
                    client
                        .command(&command)
                        .and_then(|()| client.packet())
                        .map_err(|error| format!("{begin}: {error}"))?;
                }
                for sql in names {
                    let (wanted, found) = (packets(&mut direct, sql)?, packets(&mut second, sql)?);
                    let shown = |packets: &[Vec<u8>]| {
                        packets
                            .iter()
                            .map(|packet| String::from_utf8_lossy(packet).into_owned())
                            .collect::<Vec<_>>()
                    };
                    expect(wanted == found, || {
                        format!(
                            "{vendor}, {sql} after {left:?} of another and {begin:?}: {:?} instead of {:?}",
                            shown(&found),
                            shown(&wanted)
                        )
                    })?;
                }
            }
        }
    }
    Ok(())
}

fn dropped_schema(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (server, proxy) = one_of(driver, vendor)?;
        narrow(&proxy)?;
        let core = log_in(proxy.port)?;
        for round in 0..2 {
            server.root("CREATE DATABASE passing")?;
            let mut second = beside(&proxy, &core)?;
            asked(&mut second, "USE conf")?;
            asked(&mut second, "SELECT 1 FROM counted LIMIT 1")?;
            let mut first = beside(&proxy, &core)?;
            asked(&mut first, "USE passing")?;
            // Only a reset takes it away again.
            asked(
                &mut first,
                "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
            )?;
            asked(&mut first, "SELECT 1 FROM conf.counted LIMIT 1")?;
            drop(first);
            server.root("DROP DATABASE passing")?;
            for sql in ["SELECT 1 FROM counted LIMIT 1", "SELECT DATABASE()"] {
                let found = asked(&mut second, sql)
                    .map_err(|why| format!("{vendor}, round {round}: {why}"))?;
                expect(sql != "SELECT DATABASE()" || found == [["conf"]], || {
                    format!("{vendor}: {found:?}")
                })?;
            }
        }
    }
    Ok(())
}

fn prepared_as_meant(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let server = Server::start(vendor)?;
        server.root(by_hand::CREATE_USER)?;
        let mut wish = wish(&server);
        wish.variables
            .push_str("    init_connect = \"SET @begun = 1\"\n");
        let proxy = Proxy::start(driver, &wish)?;
        let mut client = log_in(proxy.port)?;
        let id = prepare(
            &mut client,
            "INSERT INTO conf.counted (words) VALUES (CONCAT('it is ', @mine))",
        )?;
        // The connection that knows the statement is somebody else's by then.
        let mut other = beside(&proxy, &client)?;
        asked(&mut other, "BEGIN")?;
        asked(&mut client, "SET sql_mode = 'ANSI'")?;
        asked(&mut client, "SET @mine = 5")?;
        client
            .command(&[&[0x17][..], &id.to_le_bytes(), &[0, 1, 0, 0, 0]].concat())
            .map_err(|error| error.to_string())?;
        let said = client.packet().map_err(|error| error.to_string())?;
        expect(said[0] == 0, || {
            format!("{vendor}: {}", by_hand::complaint(&said))
        })?;
        let found = asked(
            &mut client,
            "SELECT words FROM conf.counted WHERE words LIKE 'it is%'",
        )?;
        expect(found == [["it is 5"]], || format!("{vendor}: {found:?}"))?;
        let found = asked(&mut client, "SELECT @@sql_mode LIKE '%ANSI%', @mine")?;
        expect(found == [["1", "5"]], || format!("{vendor}: {found:?}"))?;
    }
    Ok(())
}

fn wish(server: &Server) -> Wish {
    let mut wish = Wish::in_front_of(server);
    wish.add_open_user();
    wish
}

fn one_of(driver: Driver, vendor: Vendor) -> Result<(Server, Proxy), String> {
    by_hand::one(driver, vendor)
}

fn log_in(port: u16) -> Result<Raw, String> {
    Raw::log_in(port).map_err(|error| error.to_string())
}

/// `mysql-reset_connection_algorithm`: 1 by COM_CHANGE_USER, 2 by COM_RESET_CONNECTION.
fn made_clean(driver: Driver) -> Outcome {
    let seen =
        "SELECT DATABASE(), @x, @@sql_mode, @@collation_connection, @@autocommit, @@wait_timeout";
    for vendor in vendors() {
        let (server, proxy) = one_of(driver, vendor)?;
        narrow(&proxy)?;
        let isolation = if vendor == Vendor::MariaDb {
            "@@tx_isolation"
        } else {
            "@@transaction_isolation"
        };
        let seen = format!("{seen}, {isolation}");
        let fresh = asked(&mut log_in(server.port)?, &seen)?;
        server.root("SET GLOBAL log_output = 'TABLE', GLOBAL general_log = 1")?;
        for (algorithm, compression, wanted) in
            [(1, 0, "Change user"), (1, 1, "Change user"), (2, 0, "")]
        {
            let case = format!("{vendor}, algorithm {algorithm}, compression {compression}");
            set(
                &proxy,
                &format!("SET mysql-reset_connection_algorithm={algorithm}"),
            )?;
            proxy.admin(&format!(
                "UPDATE mysql_servers SET compression={compression}; LOAD MYSQL SERVERS TO RUNTIME"
            ))?;
            // With the other compression it is another connection.
            set(&proxy, "SET mysql-connection_max_age_ms=1")?;
            soon("0", || {
                Ok(proxy
                    .admin("SELECT SUM(ConnFree) FROM stats_mysql_connection_pool")?
                    .trim()
                    .to_owned())
            })?;
            set(&proxy, "SET mysql-connection_max_age_ms=0")?;
            server.root("TRUNCATE mysql.general_log")?;
            let mut first = log_in(proxy.port)?;
            for sql in [
                "USE conf",
                "SET @x = 5, sql_mode = 'ANSI'",
                "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE",
                "CREATE TEMPORARY TABLE left_behind (a INT)",
                "SET NAMES latin1",
                "SELECT @x",
            ] {
                asked(&mut first, sql)?;
            }
            let mut second = beside(&proxy, &first)?;
            drop(first);
            asked(&mut second, "USE conf")?;
            let gone = asked(&mut second, "SELECT a FROM left_behind")
                .err()
                .unwrap_or_default();
            expect(gone.contains("1146"), || {
                format!("{case}: a temporary table is there: {gone}")
            })?;
            let mut wanted_row = fresh.clone();
            wanted_row[0][0] = "conf".to_owned();
            let found = asked(&mut second, &seen)?;
            expect(found == wanted_row, || {
                format!("{case}: {found:?} instead of {wanted_row:?}")
            })?;
            drop(second);
            // The password of a user is said again, too.
            for _ in 0..2 {
                let said = proxy.query("SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE; CREATE TEMPORARY TABLE conf.mine (a INT); SELECT 'said'")?;
                expect(said.contains("said"), || format!("{case}: {said}"))?;
            }
            let commands = || {
                let commands =
                    server.root("SELECT DISTINCT command_type FROM mysql.general_log WHERE command_type LIKE 'Change%'")?;
                Ok(commands
                    .lines()
                    .filter(|line| !line.starts_with("command"))
                    .collect::<Vec<_>>()
                    .join(" "))
            };
            soon(&wanted.to_lowercase(), || {
                commands().map(|found: String| found.to_lowercase())
            })
            .map_err(|error| format!("{case}: {error}"))?;
            let aborted = proxy.admin("SELECT SUM(ConnERR) FROM stats_mysql_connection_pool")?;
            same(aborted.trim(), "0")?;
        }
    }
    Ok(())
}

/// `mysql-connection_warming` and the hostgroup's `connection_warming`.
fn opened_ahead(driver: Driver) -> Outcome {
    let (_server, proxy) = one_of(driver, Vendor::MariaDb)?;
    let free = || {
        Ok(proxy
            .admin("SELECT SUM(ConnFree) FROM stats_mysql_connection_pool")?
            .trim()
            .to_owned())
    };
    proxy.admin("UPDATE mysql_servers SET max_connections = 50; LOAD MYSQL SERVERS TO RUNTIME")?;
    let mut client = log_in(proxy.port)?;
    asked(&mut client, "SELECT 1")?;
    same(&free()?, "1")?;
    // Ten percent of 50.
    set(&proxy, "SET mysql-connection_warming='true'")?;
    soon("5", free)?;
    // What is in use counts.
    asked(&mut client, "BEGIN")?;
    soon("4", free)?;
    asked(&mut client, "COMMIT")?;
    // A row of the hostgroup has its own word.
    proxy.admin("INSERT INTO mysql_hostgroup_attributes (hostgroup_id, connection_warming, free_connections_pct) VALUES (0, 1, 40); LOAD MYSQL SERVERS TO RUNTIME")?;
    soon("20", free)?;
    proxy.admin(
        "UPDATE mysql_hostgroup_attributes SET connection_warming = 0, free_connections_pct = 4; LOAD MYSQL SERVERS TO RUNTIME",
    )?;
    soon("1", || {
        Ok(proxy
            .admin("SELECT SUM(ConnFree) <= 2 FROM stats_mysql_connection_pool")?
            .trim()
            .to_owned())
    })?;
    // They are good for whoever comes, and nobody opens one for himself.
    proxy.admin(
        "UPDATE mysql_hostgroup_attributes SET connection_warming = 1, free_connections_pct = 20; LOAD MYSQL SERVERS TO RUNTIME",
    )?;
    soon("10", free)?;
    let created = || {
        proxy.admin("SELECT Variable_Value FROM stats_mysql_global WHERE Variable_Name = 'Server_Connections_created'")
    };
    let before = created()?;
    let mut others: Vec<Raw> = (0..8)
        .map(|_| log_in(proxy.port))
        .collect::<Result<_, _>>()?;
    for other in &mut others {
        asked(other, "BEGIN")?;
    }
    same(&created()?, &before)?;
    // A server that takes no more clients is not warmed.
    drop((client, others));
    proxy
        .admin("UPDATE mysql_servers SET status = 'OFFLINE_SOFT'; LOAD MYSQL SERVERS TO RUNTIME")?;
    soon("0", free)
}

fn roles(driver: Driver) -> Outcome {
    let role = "SELECT CURRENT_ROLE()";
    let rest = "SELECT @@foreign_key_checks, @@sql_mode, @@character_set_client, @u";
    for vendor in vendors() {
        let (server, proxy) = one_of(driver, vendor)?;
        server.root("CREATE ROLE reader; CREATE ROLE writer; CREATE ROLE `sp\u{e4}t`; GRANT reader TO open@'%'; GRANT writer TO open@'%'; GRANT `sp\u{e4}t` TO open@'%';")?;
        let (mut direct, mut client) = (log_in(server.port)?, log_in(proxy.port)?);
        let mut other = beside(&proxy, &client)?;
        // One connection for them all, so that each finds what another has left.
        narrow(&proxy)?;
        let (fresh, fresh_rest) = (asked(&mut direct, role)?, asked(&mut direct, rest)?);
        for sql in [
            "SET ROLE reader",
            "SET ROLE 'writer'",
            "SET ROLE NONE",
            "SET ROLE nosuch",
            "SET ROLE ALL",
            "SET ROLE ALL EXCEPT writer",
            "SET ROLE reader, writer",
            "SET ROLE DEFAULT",
            "SET ROLE `writer`@`%`",
            "SET ROLE writer /* why */",
            "SET ROLE `sp\u{e4}t`",
            "SET ROLE reader",
        ] {
            let (wanted, found) = (direct.ask(sql), client.ask(sql));
            expect(wanted.is_ok() == found.is_ok(), || {
                format!("{vendor}, {sql}: {found:?} instead of {wanted:?}")
            })?;
            if sql.contains("sp") {
                // It keeps its connection.
                same(&settled(&proxy, &mut client)?, "UnknownState")?;
                continue;
            }
            if settled(&proxy, &mut client)?.contains("UnknownState") {
                continue;
            }
            let found = asked(&mut other, role)?;
            expect(found == fresh, || {
                format!("{vendor}, somebody else after {sql}: {found:?}")
            })?;
            let (wanted, found) = (asked(&mut direct, role)?, asked(&mut client, role)?);
            expect(wanted == found, || {
                format!("{vendor}, {sql}: {found:?} instead of {wanted:?}")
            })?;
        }
        for client in [&mut direct, &mut client] {
            client
                .command(&[0x1f])
                .and_then(|()| client.packet())
                .map_err(|error| error.to_string())?;
        }
        let (wanted, found) = (asked(&mut direct, role)?, asked(&mut client, role)?);
        expect(wanted == found, || {
            format!("{vendor}, after a reset: {found:?} instead of {wanted:?}")
        })?;
        // Whoever comes next has the role of a login, whatever was left and however.
        server.root("CREATE PROCEDURE conf.takes_a_role() SET ROLE reader")?;
        server
            .root("DELIMITER //\nCREATE PROCEDURE conf.by_text() BEGIN PREPARE s FROM 'SET ROLE reader'; EXECUTE s; END//\n")?;
        // Programs run as who made them, and that has to be somebody who may have the role.
        server.root(
            "SET GLOBAL log_bin_trust_function_creators = 1; CREATE TABLE conf.roled (a INT)",
        )?;
        let mut maker = log_in(server.port)?;
        for made in [
            "CREATE PROCEDURE conf.as_open() SET ROLE reader",
            "CREATE TRIGGER conf.by_trigger BEFORE INSERT ON conf.roled FOR EACH ROW CALL conf.as_open()",
            "CREATE FUNCTION conf.by_function() RETURNS INT BEGIN SET ROLE reader; RETURN 1; END",
            "CREATE PROCEDURE conf.as_late() SET ROLE `sp\u{e4}t`",
            "SELECT conf.by_function()",
            "INSERT INTO conf.roled VALUES (1)",
        ] {
            asked(&mut maker, made)?;
        }
        for left in [
            &["SET ROLE reader"][..],
            &["SELECT conf.by_function()"],
            &["CALL conf.as_open()"],
            &["INSERT INTO conf.roled VALUES (1)"],
            &["INSERT INTO conf.roled VALUES (conf.by_function())"],
            &["CALL conf.takes_a_role()"],
            &["CALL conf.by_text()"],
            &["EXECUTE IMMEDIATE 'SET ROLE reader'"],
            &["PREPARE s FROM 'SET ROLE reader'", "EXECUTE s"],
            &["SET ROLE `sp\u{e4}t`"],
            // What the server says of it is not what it seems to be.
            &["SET character_set_results = utf16", "CALL conf.as_open()"],
            &[
                "SET character_set_results = utf16",
                "SELECT conf.by_function()",
            ],
            &[
                "SET character_set_results = utf32",
                "INSERT INTO conf.roled VALUES (1)",
            ],
            &["SET NAMES latin1", "CALL conf.as_late()"],
            // MariaDB does what follows, up to what fails.
            &["SET ROLE reader, foreign_key_checks=0"],
            &["SET ROLE NONE, NAMES latin1"],
            &["SET @u='alice', ROLE reader"],
            &["SET DEFAULT ROLE NONE, sql_mode='ANSI_QUOTES', @u='alice'"],
            &["SET PASSWORD='', @u='alice'"],
            &["SET ROLE reader, foreign_key_checks=0, PASSWORD FOR nosuch@nowhere=''"],
            &[
                "SET ROLE reader",
                "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE",
                "CREATE TEMPORARY TABLE conf.role_left (a INT)",
            ],
        ] {
            for sql in left {
                // Not every server knows all of them.
                let _either_way = client.ask(sql);
            }
            let next = beside(&proxy, &client)?;
            drop(std::mem::replace(&mut client, next));
            let found = asked(&mut client, role)?;
            expect(found == fresh, || {
                format!("{vendor}, the next after {left:?}: {found:?}")
            })?;
            let found = asked(&mut client, rest)?;
            expect(found == fresh_rest, || {
                format!("{vendor}, the next after {left:?}: {found:?} instead of {fresh_rest:?}")
            })?;
        }
    }
    Ok(())
}

/// A82: one client holds connections to several servers at once, and what it sets, and the schema
/// that it uses, reach all of them.
fn several_servers(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (one, two) = (Server::start(vendor)?, Server::start(vendor)?);
        for server in [&one, &two] {
            server.root(by_hand::CREATE_USER)?;
        }
        let mut wish = wish(&one);
        wish.servers = format!(
            "{},\n{{ address = \"127.0.0.1\", port = {}, hostgroup = 1 }}",
            wish.servers, two.port
        );
        let proxy = Proxy::start(driver, &wish)?;
        let mut client = log_in(proxy.port)?;
        let at = |hostgroup: u32, sql: &str| format!("/* hostgroup={hostgroup} */ {sql}");
        let lock = "SELECT GET_LOCK('a82', 1), @@port";
        // A connection of its own on each: nothing but the lock keeps them.
        for (hostgroup, server) in [(0, &one), (1, &two)] {
            asked(&mut client, &at(hostgroup, "SELECT 1"))?;
            asked(
                &mut client,
                &at(
                    hostgroup,
                    "INSERT INTO conf.counted (words) VALUES (GET_LOCK('a82', 1))",
                ),
            )?;
            let taken = server.root("SELECT IS_FREE_LOCK('a82')")?;
            expect(taken.trim_end().ends_with('0'), || {
                format!("{vendor}, {hostgroup}: {lock}: {taken}")
            })?;
        }
        let kept = proxy.admin(&format!(
            "SELECT COUNT(DISTINCT hostgroup) FROM stats_mysql_session_holds WHERE SessionID = {} AND hold = 'UserLock'",
            client.id
        ))?;
        same(kept.trim(), "2")?;
        let seen = "SELECT DATABASE(), @@sql_mode, @@time_zone, @@collation_connection, @x, @@port";
        for (n, sets) in [
            &[
                "SET sql_mode = 'ANSI', time_zone = '+03:00'",
                "USE conf",
                "SET @x = 1",
            ][..],
            &[
                "SET NAMES latin1",
                "USE conf2",
                "SET @x = @x + 1, time_zone = DEFAULT",
            ],
        ]
        .into_iter()
        .enumerate()
        {
            for sql in sets {
                asked(&mut client, sql)?;
            }
            let ports = [&one, &two].map(|server| server.port.to_string());
            for (hostgroup, port) in ports.iter().enumerate() {
                let mut direct = log_in([&one, &two][hostgroup].port)?;
                let all = [
                    &[
                        "SET sql_mode = 'ANSI', time_zone = '+03:00'",
                        "USE conf",
                        "SET @x = 1",
                    ][..],
                    &[
                        "SET NAMES latin1",
                        "USE conf2",
                        "SET @x = @x + 1, time_zone = DEFAULT",
                    ],
                ];
                for sql in all.iter().take(n + 1).copied().flatten() {
                    asked(&mut direct, sql)?;
                }
                let wanted = asked(&mut direct, seen)?;
                let found = asked(&mut client, &at(hostgroup as u32, seen))?;
                expect(found == wanted && found[0][5] == *port, || {
                    format!("{vendor}, hostgroup {hostgroup}: {found:?} instead of {wanted:?}")
                })?;
            }
        }
        // Both connections are still those of before.
        for server in [&one, &two] {
            let taken = server.root("SELECT IS_FREE_LOCK('a82')")?;
            expect(taken.trim_end().ends_with('0'), || {
                format!("{vendor}: the lock is gone: {taken}")
            })?;
        }
        drop(client);
        for server in [&one, &two] {
            soon("1", || {
                Ok(server
                    .root("SELECT IS_FREE_LOCK('a82')")?
                    .lines()
                    .last()
                    .unwrap_or_default()
                    .trim()
                    .to_owned())
            })?;
        }
    }
    Ok(())
}

fn opened_in_vain(driver: Driver) -> Outcome {
    let (_server, proxy) = one_of(driver, Vendor::MariaDb)?;
    set(
        &proxy,
        "SET mysql-init_connect='START TRANSACTION'; SET mysql-connection_warming='true'",
    )?;
    let mut client = log_in(proxy.port)?;
    asked(&mut client, "SELECT 1")?;
    std::thread::sleep(std::time::Duration::from_secs(1));
    let opened =
        proxy.admin("SELECT Variable_Value FROM stats_mysql_global WHERE Variable_Name = 'Millrace_connections_opened_ahead'")?;
    expect(
        opened.trim().parse::<u32>().is_ok_and(|opened| opened <= 4),
        || format!("{opened} were opened for nobody"),
    )
}

fn refused_reset(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let (server, proxy) = one_of(driver, vendor)?;
        server.root("CREATE DATABASE doomed; CREATE DATABASE `na\u{ef}ve`")?;
        set(&proxy, "SET mysql-reset_connection_algorithm=1")?;
        narrow(&proxy)?;
        let latin1 = || {
            Raw::log_in_with(proxy.port, b"", 8)
                .map(|(raw, _)| raw)
                .map_err(|error| error.to_string())
        };
        let mut first = latin1()?;
        let mut other = beside(&proxy, &first)?;
        asked(&mut other, "USE conf")?;
        asked(&mut first, "USE doomed")?;
        asked(
            &mut first,
            "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE",
        )?;
        server.root("DROP DATABASE doomed")?;
        // Its connection cannot be made clean: another one is as good.
        let found = asked(&mut other, "SELECT DATABASE()")?;
        expect(found == [["conf"]], || format!("{vendor}: {found:?}"))?;
        // The session's own character set is latin1, the schema's name is none of it.
        let mut third = latin1()?;
        third
            .query("SELECT 1")
            .and_then(|()| third.rows())
            .map_err(|error| error.to_string())?;
        let name = b"\x03USE `na\xefve`";
        third
            .command(name)
            .and_then(|()| third.packet())
            .map_err(|error| error.to_string())?;
        asked(
            &mut third,
            "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE",
        )?;
        asked(&mut third, "SELECT 1")?;
        drop(third);
        let found = asked(&mut other, "SELECT DATABASE(), 1 + 1")?;
        expect(found == [["conf", "2"]], || format!("{vendor}: {found:?}"))?;
    }
    Ok(())
}
