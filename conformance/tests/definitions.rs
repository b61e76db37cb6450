//! Sessions that do without the definitions of columns, beside others: on the same connections,
//! where a server cannot leave them out, in lanes and without anything between. What one session
//! has asked for, or remembers, is no other's.
#![forbid(unsafe_code)]

use conformance::clients::{Client, app};
use conformance::compare::difference;
use conformance::definitions::{self, without_early_flags};
use conformance::proxy::{Driver, Proxy, Wish};
use conformance::raw::Raw;
use conformance::servers::{Server, Vendor};
use conformance::trials::{self, expect, same};
use wire::caps::{self, Caps};

type Outcome = Result<(), String>;

fn main() {
    trials::run(&[
        (
            "what_one_session_does_without_every_other_has",
            one_connection,
        ),
        (
            "what_one_client_remembers_another_was_never_told",
            remembered_by_one,
        ),
        (
            "columns_that_came_before_an_error_of_ours_were_not_told",
            too_late,
        ),
        (
            "a_server_that_cannot_leave_definitions_out_describes",
            both_vendors,
        ),
        (
            "a_statement_with_other_parameters_elsewhere_is_not_executed_there",
            other_parameters,
        ),
        ("in_lanes_each_client_is_answered_in_its_own_form", lanes),
        ("with_nothing_between_it_is_the_servers_affair", through),
        ("types_of_columns_are_told_to_who_asked_for_them", typed),
        (
            "types_of_columns_are_kept_for_who_asked_for_them",
            typed_from_the_cache,
        ),
        (
            "a_server_without_types_of_columns_leaves_them_empty",
            typed_by_both,
        ),
        (
            "an_execution_with_other_columns_than_the_client_knows_says_so",
            other_columns,
        ),
        (
            "the_eof_behind_columns_has_the_warnings_of_a_short_answer",
            early_warnings,
        ),
    ])
}

const NONE: &str = "SET resultset_metadata = NONE";

fn warmed(vendor: Vendor) -> Result<Option<Server>, String> {
    if let Err(why) = vendor.programs() {
        eprintln!("SKIPPED: definitions of columns before {vendor}: {why}");
        return Ok(None);
    }
    let server = Server::start(vendor)?;
    // The first full login of an account is over TLS; raw logins are quick ones.
    let _ = Client::MariaDbCli.run(
        app(server.port),
        &conformance::cache::root().join("conformance/scenarios/warm-up.txt"),
    );
    Ok(Some(server))
}

/// One connection for all.
fn narrow(driver: Driver, server: &Server) -> Result<Proxy, String> {
    let mut wish = Wish::in_front_of(server);
    wish.servers = wish
        .servers
        .replace("max_connections = 2000", "max_connections = 1");
    Proxy::start(driver, &wish)
}

/// Compares the same steps of the same clients, directly and through the proxy.
fn compared(direct: u16, through: u16, script: impl Fn(u16) -> Result<String, String>) -> Outcome {
    let (direct, seen) = (script(direct)?, script(through)?);
    difference(&direct, &seen).map_or(Ok(()), |words| {
        Err(format!("{words}\n\ndirect:\n{direct}\n\nthrough:\n{seen}"))
    })
}

const READ: &str = "SELECT id, ? FROM conf.numbers WHERE id < 3 ORDER BY id";

/// Returns what a session is answered, also where the proxy has to ask something of the connection
/// by itself.
fn asked(client: &mut Raw, n: u32) -> Result<String, String> {
    let mut seen = client.query(&format!("SELECT {n} AS n, @@resultset_metadata AS m"))?;
    seen += &client.execute(0, 0, b"\0\x01\x03\0\x05\0\0\0")?;
    seen += &client.query(&format!("SET @n = {n} + 1"))?;
    seen += &client.query("SELECT @n, @x")?;
    seen += &client.query("SELECT no_such_column")?;
    seen += &client.query("SHOW WARNINGS")?;
    Ok(seen)
}

fn one_connection(driver: Driver) -> Outcome {
    let Some(server) = warmed(Vendor::MySql)? else {
        return Ok(());
    };
    Raw::log_in(server.port, 0)?
        .query("CREATE PROCEDURE conf.leaves_it(OUT x INT) BEGIN SET resultset_metadata = NONE; SET x = 1; END")?;
    let proxy = narrow(driver, &server)?;
    compared(server.port, proxy.port, |port| {
        let mut seen = String::new();
        for eof in [0, caps::DEPRECATE_EOF] {
            let mut all = std::mem::take(&mut seen);
            let able = caps::OPTIONAL_METADATA | eof;
            // A session that calls a procedure keeps its connection until it is reset.
            let mut by_program = Raw::log_in(port, able)?;
            seen += &by_program.prepare(READ)?;
            seen += &by_program.query("CALL conf.leaves_it(@x)")?;
            for n in 0..3 {
                seen += &asked(&mut by_program, n)?;
            }
            seen += &by_program.ask(b"\x1f", wire::response::Expect::Simple)?;
            let mut bare = Raw::log_in(port, able)?;
            let mut full = Raw::log_in(port, able)?;
            let mut unable = Raw::log_in(port, eof)?;
            expect(bare.has(caps::OPTIONAL_METADATA), || {
                "it is not offered".to_owned()
            })?;
            seen += &bare.query(NONE)?;
            seen += &unable.query(NONE)?;
            // A reset has taken its statement away.
            by_program.statements.clear();
            for client in [&mut bare, &mut full, &mut unable, &mut by_program] {
                seen += &client.prepare(READ)?;
            }
            for n in 0..3 {
                for client in [&mut bare, &mut full, &mut by_program, &mut unable] {
                    seen += &asked(client, n)?;
                }
            }
            seen += &bare.ask(b"\x1f", wire::response::Expect::Simple)?;
            seen += &bare.query("SELECT @@resultset_metadata")?;
            all += &without_early_flags(&bare, &seen);
            seen = all;
        }
        Ok(seen)
    })
}

fn remembered_by_one(driver: Driver) -> Outcome {
    let Some(server) = warmed(Vendor::MariaDb)? else {
        return Ok(());
    };
    let proxy = narrow(driver, &server)?;
    let read = "SELECT id, words FROM conf.shared_columns";
    compared(server.port, proxy.port, |port| {
        let mut owner = Raw::log_in(port, 0)?;
        owner.query("CREATE OR REPLACE TABLE conf.shared_columns (id INT, words VARCHAR(10))")?;
        owner.query("INSERT INTO conf.shared_columns VALUES (1, 'one')")?;
        let mut seen = String::new();
        for eof in [0, caps::DEPRECATE_EOF] {
            let mut all = std::mem::take(&mut seen);
            let able = caps::MARIADB_CACHE_METADATA | eof;
            let mut clients = [
                Raw::log_in(port, able)?,
                Raw::log_in(port, able)?,
                Raw::log_in(port, eof)?,
            ];
            expect(clients[0].has(caps::MARIADB_CACHE_METADATA), || {
                "it is not offered".to_owned()
            })?;
            for client in &mut clients {
                seen += &client.prepare(read)?;
                seen += &client.execute(0, 0, b"")?;
                seen += &client.execute(0, 0, b"")?;
            }
            // Each was told of the columns before, and none of the change.
            owner.query("ALTER TABLE conf.shared_columns MODIFY words VARCHAR(30)")?;
            for _ in 0..2 {
                for client in &mut clients {
                    seen += &client.execute(0, 0, b"")?;
                    seen += &client.query(read)?;
                }
            }
            owner.query("ALTER TABLE conf.shared_columns MODIFY words VARCHAR(10)")?;
            all += &without_early_flags(&clients[0], &seen);
            seen = all;
        }
        Ok(seen)
    })
}

/// The server sends the definitions together with the error of an execution that was over its time;
/// the client gets the error only.
fn too_late(driver: Driver) -> Outcome {
    let Some(server) = warmed(Vendor::MariaDb)? else {
        return Ok(());
    };
    let rules = "{ rule_id = 1, active = 1, match_digest = \"SLEEP\", timeout = 500, apply = 1 }"
        .to_owned();
    let proxy = Proxy::start(
        driver,
        &Wish {
            rules,
            ..Wish::in_front_of(&server)
        },
    )?;
    for eof in [0, caps::DEPRECATE_EOF] {
        let mut client = Raw::log_in(proxy.port, caps::MARIADB_CACHE_METADATA | eof)?;
        client.query("BEGIN")?;
        client.prepare("SELECT ? AS p FROM conf.numbers WHERE id < 3 AND SLEEP(?) = 0")?;
        // What the preparation says of a parameter is not what an execution makes of it.
        let late = client.execute(0, 0, b"\0\x01\x03\0\x03\0\x05\0\0\0\x01\0\0\0")?;
        expect(late.contains("\\xff"), || late.clone())?;
        let quick = b"\0\x01\x03\0\x03\0\x05\0\0\0\0\0\0\0";
        let told = client.execute(0, 0, quick)?;
        expect(told.contains("\\x01\\x01\n"), || told.clone())?;
        let spared = client.execute(0, 0, quick)?;
        expect(spared.contains("\\x01\\x00\n"), || spared.clone())?;
    }
    Ok(())
}

/// A MySQL in hostgroup 0, a MariaDB in hostgroup 1, if there are both.
fn of_both_vendors(driver: Driver) -> Result<Option<(Server, Server, Proxy)>, String> {
    let (Some(mysql), Some(mariadb)) = (warmed(Vendor::MySql)?, warmed(Vendor::MariaDb)?) else {
        return Ok(None);
    };
    let mut wish = Wish::in_front_of(&mysql);
    wish.servers = format!(
        "{},\n{{ address = \"127.0.0.1\", port = {}, hostgroup = 1 }}",
        wish.servers, mariadb.port
    );
    wish.variables = wish
        .variables
        .replace("caching_sha2_password", "mysql_native_password");
    let proxy = Proxy::start(driver, &wish)?;
    Ok(Some((mysql, mariadb, proxy)))
}

/// Parameters that an executable comment hides from one server, another has: values would be read
/// from the wrong bytes.
fn other_parameters(driver: Driver) -> Outcome {
    const SEVEN: &[u8] = b"\0\x01\x03\0\x07\0\0\0";
    let Some((_mysql, _mariadb, proxy)) = of_both_vendors(driver)? else {
        return Ok(());
    };
    let mut client = Raw::log_in(proxy.port, 0)?;
    client.prepare("SELECT ? AS a /*M!100100 , ? AS b */")?;
    proxy.admin(
        "INSERT INTO mysql_query_rules (rule_id, active, match_pattern, destination_hostgroup, apply) VALUES (1, 1, 'AS a', 1, 1); LOAD MYSQL QUERY RULES TO RUNTIME",
    )?;
    let refused = client.execute(0, 0, SEVEN)?;
    expect(refused.contains("Incorrect arguments to EXECUTE"), || {
        refused.clone()
    })?;
    // The session goes on, and so does the statement where it fits.
    proxy.admin("DELETE FROM mysql_query_rules; LOAD MYSQL QUERY RULES TO RUNTIME")?;
    let row = client.execute(0, 0, SEVEN)?;
    expect(row.contains("\\x00\\x00\\x07"), || row.clone())
}

fn both_vendors(driver: Driver) -> Outcome {
    let Some((_mysql, _mariadb, proxy)) = of_both_vendors(driver)? else {
        return Ok(());
    };
    let there = |sql: &str| format!("/* hostgroup=1 */ {sql}");
    for eof in [0, caps::DEPRECATE_EOF] {
        let mut client = Raw::log_in(proxy.port, caps::OPTIONAL_METADATA | eof)?;
        let described = client.query(&there("SELECT 'x' AS words"))?;
        expect(described.contains("\\x01\\x01\n"), || described.clone())?;
        client.query(NONE)?;
        for _ in 0..2 {
            let bare = client.query("SELECT 'x' AS words")?;
            expect(
                bare.contains("\\x01\\x00\n") && !bare.contains("words"),
                || bare.clone(),
            )?;
            same(&client.query(&there("SELECT 'x' AS words"))?, &described)?;
            let unknown = client.query(&there("SET resultset_metadata = FULL"))?;
            expect(unknown.contains("Unknown system variable"), || {
                unknown.clone()
            })?;
        }
        let prepared = client.prepare(&there("SELECT id FROM conf.numbers WHERE id < ?"))?;
        expect(prepared.lines().count() > 2, || prepared.clone())?;
        let executed = client.execute(0, 0, b"\0\x01\x03\0\x03\0\0\0")?;
        expect(executed.contains("numbers"), || executed.clone())?;
        // What an expression has set there is the session's own, and nobody else finds it.
        let mut others = (0..4)
            .map(|_| Raw::log_in(proxy.port, caps::OPTIONAL_METADATA | eof))
            .collect::<Result<Vec<_>, _>>()?;
        let set = client.query(&there("SET @a = 1 + 1"));
        let what = there("SELECT @a, 'x'");
        for other in &mut others {
            let found = other.query(&what)?;
            expect(found.contains("\\xfb\\x01x"), || {
                format!("somebody else finds {found}")
            })?;
        }
        set?;
        let found = client.query(&what)?;
        expect(found.contains("\\x012\\x01x"), || {
            format!("it finds {found}")
        })?;
    }
    Ok(())
}

fn lanes(driver: Driver) -> Outcome {
    for (vendor, form) in [
        (Vendor::MariaDb, caps::MARIADB_CACHE_METADATA),
        (Vendor::MySql, caps::OPTIONAL_METADATA),
    ] {
        let Some(server) = warmed(vendor)? else {
            continue;
        };
        let proxy = Proxy::start(driver, &Wish::in_front_of(&server))?;
        proxy.admin(
            "REPLACE INTO mysql_hostgroup_attributes (hostgroup_id, hostgroup_settings) VALUES (0, '{\"pipelining\": 16}'); LOAD MYSQL SERVERS TO RUNTIME",
        )?;
        let script = |port: u16| {
            let forms: [Caps; 4] = [0, caps::DEPRECATE_EOF, form, form | caps::DEPRECATE_EOF];
            let mut clients = forms
                .iter()
                .map(|form| Raw::log_in(port, *form))
                .collect::<Result<Vec<_>, _>>()?;
            let mut seen = String::new();
            for n in 0..20 {
                if n == 10 && vendor == Vendor::MySql {
                    seen += &clients[3].query(NONE)?;
                }
                for client in &mut clients {
                    seen += &client.query(&format!("SELECT {n} AS n, 'words' AS words"))?;
                }
            }
            Ok(seen)
        };
        // How many share a connection depends on how quick the machine is.
        for _ in 0..20 {
            compared(server.port, proxy.port, script)?;
            let shared = proxy.admin(
                "SELECT Variable_Value FROM stats.stats_mysql_global WHERE Variable_Name = 'Millrace_statements_pipelined'",
            )?;
            if shared.trim() != "0" {
                break;
            }
        }
    }
    Ok(())
}

fn through(driver: Driver) -> Outcome {
    for (vendor, form) in [
        (Vendor::MariaDb, caps::MARIADB_CACHE_METADATA),
        (Vendor::MySql, caps::OPTIONAL_METADATA),
    ] {
        let Some(server) = warmed(vendor)? else {
            continue;
        };
        let mut wish = Wish::in_front_of(&server);
        wish.users = "{ username = \"app\", password = \"secret\", default_hostgroup = 0, fast_forward = 1 }".to_owned();
        let proxy = Proxy::start(driver, &wish)?;
        for eof in [0, caps::DEPRECATE_EOF] {
            let script = |port| {
                let mut raw = Raw::log_in(port, form | eof)?;
                if vendor == Vendor::MySql {
                    definitions::left_out(&mut raw)
                } else {
                    definitions::remembered(&mut raw)
                }
            };
            compared(server.port, proxy.port, script)?;
        }
        let mut raw = Raw::log_in(proxy.port, form)?;
        raw.query("SELECT 1")?;
        let sessions = "SELECT Variable_Value FROM stats.stats_mysql_global WHERE Variable_Name = 'Millrace_fast_forward_sessions'";
        trials::until("1", || proxy.admin(sessions))?;
    }
    Ok(())
}

/// Each form of a client of MariaDB.
fn typed_forms() -> Vec<Caps> {
    let mut forms = Vec::new();
    for types in [0, caps::MARIADB_EXTENDED_TYPES] {
        for remembers in [0, caps::MARIADB_CACHE_METADATA] {
            for eof in [0, caps::DEPRECATE_EOF] {
                forms.push(types | remembers | eof | caps::MULTI_STATEMENTS);
            }
        }
    }
    forms
}

/// A MariaDB with a table of JSON and the like.
fn with_types() -> Result<Option<Server>, String> {
    let Some(server) = warmed(Vendor::MariaDb)? else {
        return Ok(None);
    };
    let mut owner = Raw::log_in(server.port, 0)?;
    for sql in definitions::TYPED {
        owner.query(sql)?;
    }
    Ok(Some(server))
}

fn typed(driver: Driver) -> Outcome {
    let Some(server) = with_types()? else {
        return Ok(());
    };
    let pooled = narrow(driver, &server)?;
    let mut wish = Wish::in_front_of(&server);
    wish.users =
        "{ username = \"app\", password = \"secret\", default_hostgroup = 0, fast_forward = 1 }"
            .to_owned();
    let through = Proxy::start(driver, &wish)?;
    for port in [pooled.port, through.port] {
        for form in typed_forms() {
            let offered = Raw::log_in(port, form)?.has(form);
            expect(offered, || format!("{form:x} is not offered"))?;
            compared(server.port, port, |port| {
                definitions::typed(&mut Raw::log_in(port, form)?)
            })?;
        }
    }
    Ok(())
}

fn typed_from_the_cache(driver: Driver) -> Outcome {
    let Some(server) = with_types()? else {
        return Ok(());
    };
    let rules =
        "{ rule_id = 1, active = 1, match_digest = \"^SELECT\", cache_ttl = 600000, apply = 1 }"
            .to_owned();
    let proxy = Proxy::start(
        driver,
        &Wish {
            rules,
            ..Wish::in_front_of(&server)
        },
    )?;
    let read = "SELECT doc, id FROM conf.typed ORDER BY id";
    let script = |port| {
        let mut clients = typed_forms()
            .into_iter()
            .map(|form| Raw::log_in(port, form))
            .collect::<Result<Vec<_>, _>>()?;
        let mut seen = String::new();
        for _ in 0..2 {
            for client in &mut clients {
                let mut here = client.query(read)?;
                let nth = client.statements.len();
                here += &client.prepare(read)?;
                here += &client.execute(nth, 0, b"")?;
                seen += &without_early_flags(client, &here);
            }
        }
        Ok(seen)
    };
    compared(server.port, proxy.port, script)?;
    // One fetches what the other lacked; then both have it, in either form.
    let sent = || {
        proxy.admin(
            "SELECT COALESCE(SUM(count_star), 0) FROM stats.stats_mysql_query_digest WHERE hostgroup = 0 AND digest_text LIKE 'SELECT doc%'",
        )
    };
    let before = sent()?;
    let (mut plain, mut typed) = (
        Raw::log_in(proxy.port, 0)?,
        Raw::log_in(proxy.port, caps::MARIADB_EXTENDED_TYPES)?,
    );
    let answers = (plain.query(read)?, typed.query(read)?);
    expect(
        answers.1.contains("json") && !answers.0.contains("json"),
        || format!("{answers:?}"),
    )?;
    same(&sent()?, &before)
}

fn typed_by_both(driver: Driver) -> Outcome {
    let Some(mysql) = warmed(Vendor::MySql)? else {
        return Ok(());
    };
    let mut wish = Wish::in_front_of(&mysql);
    wish.variables = wish
        .variables
        .replace("caching_sha2_password", "mysql_native_password")
        .lines()
        .filter(|line| !line.contains("server_version"))
        .chain(["server_version = \"11.4.2-MariaDB\""])
        .collect::<Vec<_>>()
        .join("\n");
    let proxy = Proxy::start(driver, &wish)?;
    let mut client = Raw::log_in(proxy.port, caps::MARIADB_EXTENDED_TYPES)?;
    expect(client.has(caps::MARIADB_EXTENDED_TYPES), || {
        "it is not offered".to_owned()
    })?;
    let told = client.query("SELECT id AS n FROM conf.numbers WHERE id = 1")?;
    // The empty field stands before the part of fixed length.
    expect(told.contains("\\x01n\\x02id\\x00\\x0c"), || told.clone())
}

/// The status of an execution's last packet, for a client with or without CLIENT_DEPRECATE_EOF.
fn other_columns(driver: Driver) -> Outcome {
    const READ: &str = "SELECT * FROM conf.wider WHERE id = ?";
    const ONE: &[u8] = b"\0\x01\x03\0\x01\0\0\0";
    for vendor in [Vendor::MariaDb, Vendor::MySql] {
        let Some(server) = warmed(vendor)? else {
            continue;
        };
        for proxy in [
            Proxy::start(driver, &Wish::in_front_of(&server))?,
            narrow(driver, &server)?,
        ] {
            for eof in [0, caps::DEPRECATE_EOF] {
                compared(server.port, proxy.port, |port| {
                    let mut owner = Raw::log_in(port, eof)?;
                    owner.query("DROP TABLE IF EXISTS conf.wider")?;
                    owner.query("CREATE TABLE conf.wider (id INT)")?;
                    owner.query("INSERT INTO conf.wider VALUES (1)")?;
                    let mut clients = [Raw::log_in(port, eof)?, Raw::log_in(port, eof)?];
                    let mut seen = String::new();
                    for client in &mut clients {
                        client.prepare(READ)?;
                        seen += &client.execute(0, 0, ONE)?;
                    }
                    for change in ["ADD more INT", "ADD still_more INT", "DROP more"] {
                        owner.query(&format!("ALTER TABLE conf.wider {change}"))?;
                        for _ in 0..2 {
                            for client in &mut clients {
                                seen += &client.execute(0, 0, ONE)?;
                            }
                        }
                    }
                    expect(seen.contains("\\\"\\x04"), || format!("no flag:\n{seen}"))?;
                    Ok(without_early_flags(&owner, &seen))
                })?;
            }
        }
    }
    Ok(())
}

/// Warnings of the optimizer are in both EOFs of a server; those of rows only in the last one,
/// while a short answer is here as a whole before its first EOF is written.
fn early_warnings(driver: Driver) -> Outcome {
    for vendor in [Vendor::MariaDb, Vendor::MySql] {
        let Some(server) = warmed(vendor)? else {
            continue;
        };
        let proxy = Proxy::start(driver, &Wish::in_front_of(&server))?;
        compared(server.port, proxy.port, |port| {
            let mut client = Raw::log_in(port, 0)?;
            let mut seen = String::new();
            for sql in [
                "SELECT id FROM conf.numbers WHERE id = 1 AND 1/0 IS NULL",
                "SELECT id FROM conf.numbers WHERE id < 3 AND CAST('x' AS SIGNED) = 0",
            ] {
                let nth = client.statements.len();
                client.prepare(sql)?;
                let told = client.execute(nth, 0, b"")?;
                let warned = |line: &str| Some(line.split_once("\\xfe")?.1.get(..4)?.to_owned());
                let all: Vec<_> = told.lines().filter_map(warned).collect();
                seen += &format!("{all:?}\n");
            }
            for sql in [
                "SELECT 1/0",
                "SELECT CAST('x' AS DECIMAL), ?",
                "SELECT id, ? FROM conf.numbers WHERE id = 1 AND 1/0 IS NULL",
                "SELECT CONVERT('x' USING utf8), ? + 1",
                "SELECT id FROM conf.numbers WHERE id = ? GROUP BY id + 'x'",
            ] {
                seen += &client.prepare(sql)?;
            }
            Ok(seen)
        })?;
        // Answers to a text have them behind the rows only.
        const WARNS: &str = "SELECT CAST('x' AS SIGNED)";
        let mut client = Raw::log_in(proxy.port, 0)?;
        client.prepare(WARNS)?;
        for (told, wanted) in [(client.query(WARNS)?, 1), (client.execute(0, 0, b"")?, 2)] {
            let warnings = told.matches("\\xfe\\x01").count();
            expect(warnings == wanted, || told.clone())?;
        }
    }
    Ok(())
}
