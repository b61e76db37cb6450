//! Answers from the cache, in raw packets: byte for byte what the server says to a client with
//! these capabilities, whoever filled the cache; and to nobody else.
#![forbid(unsafe_code)]

use conformance::clients::{Client, app};
use conformance::compare::difference;
use conformance::proxy::{Driver, Proxy, Wish, command_line};
use conformance::raw::Raw;
use conformance::servers::{Server, Vendor};
use conformance::trials::{self, expect, same, until};
use std::time::Duration;
use wire::caps::{self, Caps};

type Outcome = Result<(), String>;

fn main() {
    trials::run(&[
        (
            "both_eof_forms_come_from_one_entry_on_mariadb",
            both_eof_forms_on_mariadb,
        ),
        (
            "both_eof_forms_come_from_one_entry_on_mysql",
            both_eof_forms_on_mysql,
        ),
        (
            "no_client_gets_what_is_another_ones",
            no_client_gets_what_is_another_ones,
        ),
        (
            "a_transaction_sees_its_own_writes",
            a_transaction_sees_its_own_writes,
        ),
        (
            "a_write_ends_the_use_of_what_was_read",
            a_write_ends_the_use_of_what_was_read,
        ),
        (
            "what_a_server_tells_of_itself_is_not_kept_where_writes_end_it",
            dictionaries,
        ),
        (
            "every_kind_of_write_ends_the_use_of_what_was_read",
            every_kind_of_write,
        ),
        (
            "a_write_ends_the_use_of_what_was_prepared_elsewhere",
            prepared_elsewhere,
        ),
        ("a_write_that_nobody_watched_ends_the_use_of_all", unwatched),
        ("a_write_that_was_given_up_may_go_on", given_up),
        (
            "a_delay_before_connections_are_shared_keeps_nobody_from_the_cache",
            delayed,
        ),
        (
            "those_who_ask_the_same_at_once_share_one_execution",
            those_who_ask_the_same_share_one_execution,
        ),
        (
            "what_a_tracer_writes_around_a_statement_makes_no_other_answer_of_it",
            what_a_tracer_writes_makes_no_other_answer,
        ),
        (
            "switches_say_which_answers_are_kept",
            switches_say_which_answers_are_kept,
        ),
        (
            "one_client_renews_what_is_getting_old_and_the_others_need_not_wait",
            one_client_renews_what_is_getting_old,
        ),
        (
            "what_rules_have_rewritten_is_flushed_by_the_digest_that_is_counted",
            flushed_by_digest,
        ),
        (
            "an_operator_flushes_and_sees_what_is_kept",
            an_operator_flushes_and_sees_what_is_kept,
        ),
    ])
}

fn stand(driver: Driver, vendor: Vendor, rule: &str) -> Result<(Server, Proxy), String> {
    let server = Server::start(vendor)?;
    // The first full login of an account is over TLS; raw logins are quick ones.
    let _ = Client::MariaDbCli.run(
        app(server.port),
        &conformance::cache::root().join("conformance/scenarios/warm-up.txt"),
    );
    let rules = format!(
        "{{ rule_id = 1, active = 1, match_digest = \"^SELECT\", cache_ttl = 600000, {rule} apply = 1 }}"
    );
    let proxy = Proxy::start(
        driver,
        &Wish {
            rules,
            ..Wish::in_front_of(&server)
        },
    )?;
    Ok((server, proxy))
}

fn counted(proxy: &Proxy, name: &str) -> Result<u64, String> {
    let sql = format!(
        "SELECT Variable_Value FROM stats.stats_mysql_global WHERE Variable_Name = '{name}'"
    );
    let said = proxy.admin(&sql)?;
    said.trim()
        .parse()
        .map_err(|_| format!("{name} is '{said}'"))
}

fn both_eof_forms_on_mariadb(driver: Driver) -> Outcome {
    both_eof_forms(driver, Vendor::MariaDb)
}

fn both_eof_forms_on_mysql(driver: Driver) -> Outcome {
    if Vendor::MySql.programs().is_err() {
        eprintln!("SKIPPED: the cache in front of MySQL, which is not here");
        return Ok(());
    }
    both_eof_forms(driver, Vendor::MySql)
}

/// A102, A104: with a table and without, one row, none, more than sequence numbers count, flags,
/// texts and binary rows.
fn both_eof_forms(driver: Driver, vendor: Vendor) -> Outcome {
    let (server, proxy) = stand(driver, vendor, "")?;
    let script = |raw: &mut Raw| -> Result<Vec<String>, String> {
        let mut seen = Vec::new();
        for sql in [
            "SELECT 111",
            "SELECT * FROM conf.types ORDER BY id",
            "SELECT id FROM conf.numbers ORDER BY id LIMIT 700",
            "SELECT id FROM conf.numbers WHERE id < 0",
            "SELECT words FROM conf2.only_here WHERE words = 'hier'",
            "SELECT REPEAT('x', 100000), 'y'",
        ] {
            seen.push(format!("{sql}\n{}", raw.query(sql)?));
        }
        raw.prepare("SELECT id, id * ? AS times FROM conf.numbers WHERE id < ? ORDER BY id")?;
        for (factor, below) in [(1, 4), (2, 4), (1, 300)] {
            let mut params = b"\0\x01\x08\0\x08\0".to_vec();
            params.extend_from_slice(&u64::to_le_bytes(factor));
            params.extend_from_slice(&u64::to_le_bytes(below));
            seen.push(format!(
                "execute {factor} {below}\n{}",
                raw.execute(0, 0, &params)?
            ));
        }
        raw.prepare("SELECT * FROM conf.types ORDER BY id")?;
        seen.push(raw.execute(1, 0, b"")?);
        Ok(seen)
    };
    // Offered is what the vendor has.
    let more = caps::OPTIONAL_METADATA | caps::MARIADB_CACHE_METADATA;
    let forms: [Caps; 5] = [
        0,
        caps::DEPRECATE_EOF,
        caps::DEPRECATE_EOF | caps::SESSION_TRACK,
        more,
        more | caps::DEPRECATE_EOF,
    ];
    let mut direct = Vec::new();
    for form in forms {
        direct.push(script(&mut Raw::log_in(server.port, form)?)?);
    }
    for filler in 0..forms.len() {
        proxy.admin("PROXYSQL FLUSH QUERY CACHE")?;
        script(&mut Raw::log_in(proxy.port, forms[filler])?)?;
        for (reader, form) in forms.iter().enumerate() {
            let before = counted(&proxy, "Query_Cache_count_GET_OK")?;
            let seen = script(&mut Raw::log_in(proxy.port, *form)?)?;
            let hits = counted(&proxy, "Query_Cache_count_GET_OK")? - before;
            same(&hits.to_string(), &seen.len().to_string())?;
            for (seen, wanted) in seen.iter().zip(&direct[reader]) {
                if let Some(words) = difference(wanted, seen) {
                    return Err(format!(
                        "filled by form {filler}, read by form {reader}:\n{words}"
                    ));
                }
            }
        }
    }
    Ok(())
}

/// Each text is other than the one before by what is in its comments: (before, statement, whether
/// the comment behind it is none of the key's).
fn what_a_tracer_writes_makes_no_other_answer(driver: Driver) -> Outcome {
    for vendor in [Vendor::MariaDb, Vendor::MySql] {
        if vendor.programs().is_err() {
            eprintln!("SKIPPED: the cache in front of {vendor:?}, which is not here");
            continue;
        }
        let (server, proxy) = stand(driver, vendor, "")?;
        let log_in = |port| Raw::log_in(port, caps::DEPRECATE_EOF);
        let (mut through, mut direct) = (log_in(proxy.port)?, log_in(server.port)?);
        let mut ask_both = |sql: &str| match difference(&direct.query(sql)?, &through.query(sql)?) {
            Some(words) => Err(format!("{vendor:?}: {sql}\n{words}")),
            None => Ok(()),
        };
        for (statement, is_one) in [
            ("SELECT id, words FROM conf.scratch ORDER BY id", true),
            ("SELECT id + 1 FROM conf.numbers WHERE id < 5", true),
            ("SELECT COUNT(*), 'FROM' FROM conf.numbers", true),
            ("SELECT id FROM conf.numbers WHERE id IN (SELECT 3)", true),
            ("SELECT 1 + 1", false),
            ("SELECT (SELECT COUNT(*) FROM conf.numbers)", false),
        ] {
            let before = counted(&proxy, "Query_Cache_count_GET_OK")?;
            for trace in 0..3 {
                let sql = format!(
                    "/* span {trace} */ {statement} /*traceparent='00-{trace}', it's='x'*/"
                );
                ask_both(&sql)?;
            }
            let hits = counted(&proxy, "Query_Cache_count_GET_OK")? - before;
            expect(hits == if is_one { 2 } else { 0 }, || {
                format!("{vendor:?}: {statement}: {hits} from the cache")
            })?;
        }
        // Right behind the first word no comment is in a column's name.
        for statement in [
            "id, words FROM conf.scratch ORDER BY id, words",
            "1 + 1",
            "'x'  'y', -  2, (SELECT 1), \"a\" AS b",
            "* FROM conf.scratch WHERE id < 0",
            "DISTINCT id+0 FROM conf.numbers WHERE id < 5 /* y */",
            "ALL 2 * 3, /* inside */ 4",
            "SQL_BIG_RESULT COUNT( * ) FROM conf.numbers",
            "-- why\n 5",
        ] {
            let before = counted(&proxy, "Query_Cache_count_GET_OK")?;
            for trace in ["/*1*/", " /* span=u:100 */ /* it's */\n", "\t/* two */"] {
                ask_both(&format!(
                    "SELECT{}{trace} {statement}",
                    if trace == "/*1*/" { "" } else { " " }
                ))?;
            }
            let hits = counted(&proxy, "Query_Cache_count_GET_OK")? - before;
            expect(hits == 2, || {
                format!("{vendor:?}: {statement}: {hits} from the cache")
            })?;
        }
        for sql in [
            "SELECT /* x */ /*+ SET_VAR(max_execution_time=1) */ 1",
            "SELECT /* x */ /*! 7, */ 8",
            "SELECT /*! 7, */ 8",
            "SELECT 8",
        ] {
            ask_both(sql)?;
        }
        // What the server executes is a part of the statement.
        let limited = "SELECT id FROM conf.numbers ORDER BY id";
        for sql in [
            limited.to_owned(),
            format!("{limited} /*!LIMIT 2*/"),
            format!("{limited} /*!LIMIT 3*/ /* x */"),
        ] {
            ask_both(&sql)?;
        }
    }
    Ok(())
}

fn no_client_gets_what_is_another_ones(driver: Driver) -> Outcome {
    let (server, proxy) = stand(driver, Vendor::MariaDb, "")?;
    let ask = |port, user, password, sql: &str| command_line(port, user, password, &[], sql);
    let what = "SELECT CURRENT_USER(), DATABASE(), HEX(CONVERT('ü' USING latin1)), 'a' || 'b', @@sql_mode <> '', \
                (SELECT HEX(words) FROM conf.scratch LIMIT 1)";
    let plain = "SELECT CURRENT_USER(), DATABASE(), 'a' || 'b', 'ü'";
    for sql in [
        plain.to_owned(),
        what.to_owned(),
        format!("USE conf2; {plain}"),
        format!("SET sql_mode = 'PIPES_AS_CONCAT'; {plain}"),
        format!("SET NAMES latin1; {plain}"),
        format!("SET NAMES utf8mb4 COLLATE utf8mb4_bin; {plain}"),
        format!("SET character_set_results = latin1; {plain}"),
        format!("SET @x = 5; SELECT @x; {plain}"),
        "SET time_zone = '+03:00'; SELECT FROM_UNIXTIME(0)".to_owned(),
        "SET time_zone = '+00:00'; SELECT FROM_UNIXTIME(0)".to_owned(),
        "CREATE TEMPORARY TABLE conf.numbers (id INT); SELECT COUNT(*) FROM conf.numbers"
            .to_owned(),
        "SELECT COUNT(*) FROM conf.numbers".to_owned(),
    ] {
        for (user, password) in [("app", "secret"), ("other", "geheim"), ("app", "secret")] {
            same(
                &ask(proxy.port, user, password, &sql)?,
                &ask(server.port, user, password, &sql)?,
            )
            .map_err(|words| format!("{user}: {sql}\n{words}"))?;
        }
    }
    expect(counted(&proxy, "Query_Cache_count_GET_OK")? > 0, || {
        "nothing came from the cache".into()
    })?;
    let uuids = ask(proxy.port, "app", "secret", "SELECT UUID(); SELECT UUID()")?;
    let mut lines = uuids.lines();
    expect(lines.next() != lines.next(), || {
        format!("one UUID twice: {uuids}")
    })
}

fn a_transaction_sees_its_own_writes(driver: Driver) -> Outcome {
    let (_server, proxy) = stand(driver, Vendor::MariaDb, "")?;
    let count = "SELECT COUNT(*) FROM conf.scratch";
    proxy.query("DELETE FROM conf.scratch")?;
    let seen = proxy.query(&format!(
        "{count}; BEGIN; INSERT INTO conf.scratch VALUES (1, 'x'); {count}; ROLLBACK; {count}"
    ))?;
    same(seen.trim(), "0\n1\n0")?;
    // With autocommit off everything is in a transaction.
    let seen = proxy.query(&format!(
        "SET autocommit = 0; INSERT INTO conf.scratch VALUES (1, 'x'); {count}; ROLLBACK"
    ))?;
    same(seen.trim(), "1")
}

fn a_write_ends_the_use_of_what_was_read(driver: Driver) -> Outcome {
    let (server, proxy) = stand(
        driver,
        Vendor::MariaDb,
        r#"attributes = "{\"cache_invalidate\":true}","#,
    )?;
    let count = "SELECT COUNT(*) FROM conf.scratch";
    let hits = || counted(&proxy, "Query_Cache_count_GET_OK");
    proxy.query("DELETE FROM conf.scratch")?;
    same(proxy.query(&format!("{count}; {count}"))?.trim(), "0\n0")?;
    same(&hits()?.to_string(), "1")?;
    for (n, write) in [
        "INSERT INTO conf.scratch VALUES (1, 'x')",
        "USE conf; INSERT scratch VALUES (2, 'x')",
        "BEGIN; INSERT INTO `conf`.`scratch` VALUES (3, 'x'); COMMIT",
        "SET autocommit = 0; INSERT INTO conf.scratch VALUES (4, 'x'); COMMIT",
        "PREPARE p FROM 'INSERT INTO conf.scratch VALUES (5, 1)'; EXECUTE p",
    ]
    .into_iter()
    .enumerate()
    {
        proxy.query(write)?;
        same(proxy.query(count)?.trim(), &(n + 1).to_string())
            .map_err(|words| format!("after {write}: {words}"))?;
        same(proxy.query(count)?.trim(), &(n + 1).to_string())?;
    }
    same(&hits()?.to_string(), "6")?;
    // Another table does not matter, and what nobody here has seen is not known.
    proxy.query("INSERT INTO conf.counted (words) VALUES ('x')")?;
    server.root("DELETE FROM conf.scratch")?;
    same(proxy.query(count)?.trim(), "5")?;
    same(&hits()?.to_string(), "7")
}

/// Whatever it is that changes a table: what was read before is not served after it.
fn every_kind_of_write(driver: Driver) -> Outcome {
    const WRITES: &[(Option<Vendor>, &str)] = &[
        (None, "INSERT INTO conf.w VALUES (1, 'x'), (2, 'y')"),
        (None, "REPLACE INTO conf.w VALUES (1, 'z')"),
        (
            None,
            "INSERT INTO conf.w VALUES (1, 'x') ON DUPLICATE KEY UPDATE words = 'again'",
        ),
        (
            None,
            "INSERT INTO conf.w SELECT id + 10, 'many' FROM conf.numbers WHERE id < 4",
        ),
        (None, "UPDATE conf.w SET words = 'all'"),
        (
            None,
            "UPDATE conf.numbers n JOIN conf.w ON w.id = n.id SET w.words = 'joined'",
        ),
        (
            None,
            "UPDATE conf.numbers n, conf.w SET words = 'listed' WHERE w.id = n.id",
        ),
        (
            None,
            "DELETE conf.w FROM conf.numbers n JOIN conf.w ON w.id = n.id WHERE n.id = 1",
        ),
        (
            None,
            "DELETE FROM conf.w USING conf.w JOIN conf.numbers n ON w.id = n.id WHERE n.id = 2",
        ),
        (None, "/*!50000 DELETE FROM conf.w WHERE id = 11 */"),
        (
            Some(Vendor::MySql),
            "WITH m AS (SELECT MAX(id) AS id FROM conf.w) UPDATE conf.w JOIN m USING (id) SET words = 'with'",
        ),
        (
            Some(Vendor::MariaDb),
            "INSERT INTO conf.w VALUES (20, 'returned') RETURNING id",
        ),
        (None, "CALL conf.writes()"),
        (
            None,
            "XA START 'w'; INSERT INTO conf.w VALUES (31, 'xa'); XA END 'w'; XA PREPARE 'w'; XA COMMIT 'w'",
        ),
        (
            None,
            "BEGIN; INSERT INTO conf.w VALUES (32, 'savepoint'); SAVEPOINT s; DELETE FROM conf.w; ROLLBACK TO s; COMMIT",
        ),
        (
            None,
            "LOCK TABLES conf.w WRITE; INSERT INTO conf.w VALUES (33, 'locked'); UNLOCK TABLES",
        ),
        (
            None,
            "SET @w = 'INSERT INTO conf.w VALUES (34, 1)'; PREPARE w FROM @w; EXECUTE w",
        ),
        (
            None,
            "ALTER TABLE conf.w ADD COLUMN more INT NOT NULL DEFAULT 5",
        ),
        (None, "ALTER TABLE conf.w DROP COLUMN more"),
        (
            None,
            "CREATE TABLE conf.v LIKE conf.w; RENAME TABLE conf.w TO conf.u, conf.v TO conf.w",
        ),
        (None, "INSERT INTO conf.w VALUES (40, 'new')"),
        (None, "TRUNCATE conf.w"),
        (
            None,
            "DROP TABLE conf.w; ALTER TABLE conf.u RENAME TO conf.w",
        ),
    ];
    for vendor in [Vendor::MariaDb, Vendor::MySql]
        .into_iter()
        .filter(|vendor| vendor.programs().is_ok())
    {
        let (server, proxy) = stand(
            driver,
            vendor,
            r#"attributes = "{\"cache_invalidate\":true}","#,
        )?;
        server.root(
            "CREATE TABLE conf.w (id INT PRIMARY KEY, words VARCHAR(100)); \
             CREATE PROCEDURE conf.writes() INSERT INTO conf.w VALUES (30, 'called')",
        )?;
        let reads = "SELECT * FROM conf.w ORDER BY id";
        let hits = || counted(&proxy, "Query_Cache_count_GET_OK");
        for (_, write) in WRITES
            .iter()
            .filter(|(only_on, _)| only_on.is_none_or(|only| only == vendor))
        {
            let at = |error: String| format!("{vendor}: {write}: {error}");
            let before = proxy.query(reads).map_err(at)?;
            let served = hits()?;
            same(&proxy.query(reads)?, &before).map_err(at)?;
            same(&hits()?.to_string(), &(served + 1).to_string()).map_err(at)?;
            proxy.query(write).map_err(at)?;
            // No lock is taken on what the cache has.
            let now = proxy.query(&format!("{reads} FOR UPDATE"))?;
            expect(now != before, || at("has changed nothing".to_owned()))?;
            same(&proxy.query(reads)?, &now).map_err(at)?;
        }
    }
    Ok(())
}

/// A CREATE TABLE does not name the table of the dictionary that it changes, nor a SET GLOBAL the
/// statement that reads it.
fn dictionaries(driver: Driver) -> Outcome {
    for vendor in [Vendor::MariaDb, Vendor::MySql]
        .into_iter()
        .filter(|vendor| vendor.programs().is_ok())
    {
        let (server, proxy) = stand(
            driver,
            vendor,
            r#"attributes = "{\"cache_invalidate\":true}","#,
        )?;
        let there = "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'conf' AND table_name = 'later'";
        let bare = there.replace("information_schema.", "");
        let ask = || {
            let said = proxy.query(&format!(
                "{there}; {there}; USE information_schema; {bare}; {bare}"
            ))?;
            Ok::<_, String>(said.split_whitespace().collect::<String>())
        };
        same(&ask()?, "0000")?;
        proxy.query("CREATE TABLE conf.later (a INT)")?;
        same(&ask()?, "1111").map_err(|why| format!("{vendor}: {why}"))?;
        proxy.query("DROP TABLE conf.later")?;
        same(&ask()?, "0000")?;
        let most = "SELECT @@global.max_connections";
        proxy.query(&format!("{most}; {most}"))?;
        server.root("SET GLOBAL max_connections = 77")?;
        same(proxy.query(most)?.trim(), "77").map_err(|why| format!("{vendor}: {why}"))?;
        // The command line asks SELECT DATABASE() after USE.
        same(
            &counted(&proxy, "Query_Cache_count_GET_OK")?.to_string(),
            "2",
        )?;
        if vendor == Vendor::MariaDb {
            proxy.query("CREATE SEQUENCE conf.numbered")?;
            let next = "SELECT next_not_cached_value FROM conf.numbered";
            same(proxy.query(&format!("{next}; {next}"))?.trim(), "1\n1")?;
            same(
                &counted(&proxy, "Query_Cache_count_GET_OK")?.to_string(),
                "3",
            )?;
            proxy.query("SELECT NEXTVAL(conf.numbered)")?;
            same(proxy.query(next)?.trim(), "1001")?;
            proxy.query("SELECT SETVAL(conf.numbered, 5000)")?;
            expect(proxy.query(next)?.trim() != "1001", || {
                "a sequence is as it was before SETVAL".to_owned()
            })?;
        }
    }
    Ok(())
}

/// Writes between two LOADs, and by a transaction that began before the LOAD.
fn unwatched(driver: Driver) -> Outcome {
    let (_server, proxy) = stand(
        driver,
        Vendor::MariaDb,
        r#"attributes = "{\"cache_invalidate\":true}","#,
    )?;
    let count = "SELECT COUNT(*) FROM conf.scratch";
    let active = |on: u8| {
        proxy.admin(&format!("UPDATE mysql_query_rules SET active = {on} WHERE rule_id = 1; LOAD MYSQL QUERY RULES TO RUNTIME"))
    };
    proxy.query("DELETE FROM conf.scratch")?;
    same(proxy.query(&format!("{count}; {count}"))?.trim(), "0\n0")?;
    active(0)?;
    proxy.query("INSERT INTO conf.scratch VALUES (1, 'x')")?;
    active(1)?;
    same(proxy.query(count)?.trim(), "1")?;
    active(0)?;
    let mut writer = Raw::log_in(proxy.port, 0)?;
    writer.query("BEGIN")?;
    writer.query("INSERT INTO conf.scratch VALUES (2, 'x')")?;
    active(1)?;
    let hits = counted(&proxy, "Query_Cache_count_GET_OK")?;
    same(proxy.query(&format!("{count}; {count}"))?.trim(), "1\n1")?;
    same(
        &counted(&proxy, "Query_Cache_count_GET_OK")?.to_string(),
        &(hits + 1).to_string(),
    )?;
    writer.query("COMMIT")?;
    same(proxy.query(count)?.trim(), "2")
}

fn given_up(driver: Driver) -> Outcome {
    let (_server, proxy) = stand(
        driver,
        Vendor::MariaDb,
        r#"attributes = "{\"cache_invalidate\":true}","#,
    )?;
    let (count, other) = (
        "SELECT COUNT(*) FROM conf.scratch",
        "SELECT COUNT(*) FROM conf.counted",
    );
    proxy.query("INSERT INTO conf.scratch VALUES (1, 'x')")?;
    proxy.query(&format!("{count}; {count}"))?;
    let hits = || counted(&proxy, "Query_Cache_count_GET_OK");
    same(&hits()?.to_string(), "1")?;
    let late = Raw::log_in(proxy.port, 0)?.query(
        "UPDATE /* query_timeout=50 */ conf.scratch SET words = words WHERE SLEEP(60) = 0",
    )?;
    expect(late.contains("query_timeout exceeded"), || {
        format!("not ended: {late}")
    })?;
    proxy.query(&format!("{count}; {count}"))?;
    same(&hits()?.to_string(), "1")?;
    // Others are kept meanwhile.
    proxy.query(&format!("{other}; {other}"))?;
    same(&hits()?.to_string(), "2")
}

fn delayed(driver: Driver) -> Outcome {
    let (_server, proxy) = stand(driver, Vendor::MariaDb, "")?;
    proxy.admin(
        "SET mysql-connection_delay_multiplex_ms = 60000; LOAD MYSQL VARIABLES TO RUNTIME",
    )?;
    let mut client = Raw::log_in(proxy.port, 0)?;
    for _ in 0..3 {
        client.query("SELECT COUNT(*) FROM conf.scratch")?;
    }
    same(
        &counted(&proxy, "Query_Cache_count_GET_OK")?.to_string(),
        "2",
    )
}

/// A prepared statement reads the tables of the schema that it was prepared in, whatever the
/// session's is now.
fn prepared_elsewhere(driver: Driver) -> Outcome {
    for vendor in [Vendor::MariaDb, Vendor::MySql] {
        if vendor.programs().is_err() {
            continue;
        }
        let (server, proxy) = stand(
            driver,
            vendor,
            r#"attributes = "{\"cache_invalidate\":true}","#,
        )?;
        // Else the server says that it was in another schema meanwhile, and such an answer is not
        // kept.
        server.root("SET GLOBAL session_track_schema = OFF")?;
        let mut client = Raw::log_in(proxy.port, 0)?;
        client.query("USE conf")?;
        client.prepare("SELECT COUNT(*) FROM scratch")?;
        client.query("USE conf2")?;
        // The row comes after the column and its EOF.
        let mut row = || {
            client
                .execute(0, 0, b"")
                .map(|seen| seen.lines().nth(3).map(str::to_owned))
        };
        let none = row()?;
        expect(row()? == none, || format!("{vendor}: nothing was written"))?;
        same(
            &counted(&proxy, "Query_Cache_count_GET_OK")?.to_string(),
            "1",
        )?;
        proxy.query("INSERT INTO conf.scratch VALUES (1, 'x')")?;
        let one = row()?;
        expect(one != none, || {
            format!("{vendor}: after a write there is what was there before: {one:?}")
        })?;
    }
    Ok(())
}

/// Also those of two cores.
fn those_who_ask_the_same_share_one_execution(driver: Driver) -> Outcome {
    let (server, proxy) = stand(driver, Vendor::MariaDb, "cache_timeout = 60000,")?;
    let port = proxy.port;
    let ask_at_once = |sql: &'static str, times: u64| -> Vec<_> {
        (0..times)
            .map(|_| std::thread::spawn(move || command_line(port, "app", "secret", &[], sql)))
            .collect()
    };
    let running = |sql: &str| -> Result<Vec<String>, String> {
        let ids = server.root(&format!(
            "SELECT id FROM information_schema.processlist WHERE info = '{sql}'"
        ))?;
        Ok(ids
            .lines()
            .filter(|id| id.parse::<u64>().is_ok())
            .map(str::to_owned)
            .collect())
    };
    let waited = || counted(&proxy, "Millrace_query_cache_waited");
    let until = |there: &dyn Fn() -> Result<bool, String>| -> Outcome {
        for _ in 0..600 {
            if there()? {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Err("it never comes to that".into())
    };
    // Nobody gets past the lock until all of them are there.
    let mut locker = Raw::log_in(server.port, 0)?;
    locker.query("LOCK TABLES conf.numbers WRITE")?;
    let sql = "SELECT COUNT(*) FROM conf.numbers";
    let asking = ask_at_once(sql, 8);
    until(&|| Ok(running(sql)?.len() as u64 + waited()? == 8))?;
    let executions = running(sql)?.len() as u64;
    same(&executions.to_string(), "1")?;
    locker.query("UNLOCK TABLES")?;
    for one in asking {
        let answer = one.join().map_err(|_| "a panic")??;
        expect(answer.trim().parse::<u64>().is_ok(), || answer.clone())?;
    }
    same(
        &counted(&proxy, "Query_Cache_count_GET_OK")?.to_string(),
        &(8 - executions).to_string(),
    )?;

    // Those that fetch are ended: whoever waits asks for himself.
    locker.query("LOCK TABLES conf.types WRITE")?;
    let sql = "SELECT COUNT(*) FROM conf.types";
    let before = waited()?;
    let asking = ask_at_once(sql, 6);
    until(&|| Ok(running(sql)?.len() as u64 + waited()? - before == 6))?;
    let fetching = running(sql)?;
    for id in &fetching {
        server.root(&format!("KILL QUERY {id}"))?;
    }
    until(&|| Ok(running(sql)?.len() == 6 - fetching.len()))?;
    locker.query("UNLOCK TABLES")?;
    let answers: Vec<_> = asking
        .into_iter()
        .map(|one| one.join().unwrap_or_else(|_| Err("a panic".into())))
        .collect();
    let failed = answers.iter().filter(|answer| answer.is_err()).count();
    same(&failed.to_string(), &fetching.len().to_string())
        .map_err(|words| format!("{answers:?}\n{words}"))
}

fn flushed_by_digest(driver: Driver) -> Outcome {
    let (_server, proxy) = stand(
        driver,
        Vendor::MariaDb,
        r#"match_pattern = "few", replace_pattern = "id < 3","#,
    )?;
    let entries = || counted(&proxy, "Query_Cache_Entries").map(|n| n.to_string());
    proxy.query("SELECT id FROM conf.numbers WHERE few; SELECT id FROM conf.numbers WHERE few")?;
    same(&entries()?, "1")?;
    let digest =
        proxy.admin("SELECT digest FROM stats.stats_mysql_query_digest WHERE hostgroup = -1")?;
    same(
        proxy
            .admin("SELECT digest FROM stats.stats_mysql_query_cache")?
            .trim(),
        digest.trim(),
    )?;
    proxy.admin(&format!(
        "PROXYSQL FLUSH QUERY CACHE FOR DIGEST {}",
        digest.trim()
    ))?;
    same(&entries()?, "0")?;
    // Where nobody else needs a digest.
    proxy.admin("UPDATE mysql_query_rules SET match_digest = NULL; LOAD MYSQL QUERY RULES TO RUNTIME; SET mysql-query_digests = false; LOAD MYSQL VARIABLES TO RUNTIME; SELECT 1")?;
    proxy.query("SELECT id FROM conf.numbers WHERE few")?;
    same(&entries()?, "1")?;
    proxy.admin(&format!(
        "PROXYSQL FLUSH QUERY CACHE FOR DIGEST {}",
        digest.trim()
    ))?;
    same(&entries()?, "0")
}

fn an_operator_flushes_and_sees_what_is_kept(driver: Driver) -> Outcome {
    let (server, proxy) = stand(driver, Vendor::MariaDb, "")?;
    let listed = || {
        proxy.admin("SELECT tables, rows, hits FROM stats.stats_mysql_query_cache ORDER BY tables")
    };
    proxy.query("SELECT 111; SELECT id FROM conf.numbers LIMIT 2; SELECT 111; SELECT * FROM conf2.only_here")?;
    same(
        listed()?.trim_end(),
        "\t1\t1\nconf.numbers\t2\t0\nconf2.only_here\t2\t0",
    )?;
    proxy.admin("PROXYSQL FLUSH QUERY CACHE FOR TABLE only_here")?;
    same(listed()?.trim_end(), "\t1\t1\nconf.numbers\t2\t0")?;
    let digest =
        proxy.admin("SELECT digest FROM stats.stats_mysql_query_cache WHERE tables = ''")?;
    proxy.admin(&format!(
        "PROXYSQL FLUSH QUERY CACHE FOR DIGEST {}",
        digest.trim()
    ))?;
    same(listed()?.trim_end(), "conf.numbers\t2\t0")?;
    // Names may have any sign.
    server.root("CREATE TABLE conf.`odd.name,too` (id INT)")?;
    proxy.query("SELECT * FROM conf.`odd.name,too`, conf.numbers")?;
    same(
        listed()?.trim_end(),
        "conf.numbers\t2\t0\nconf.numbers,conf.`odd.name,too`\t0\t0",
    )?;
    for other in ["too", "`conf.odd`.`name,too`", "`odd.name`"] {
        proxy.admin(&format!("PROXYSQL FLUSH QUERY CACHE FOR TABLE {other}"))?;
    }
    same(&counted(&proxy, "Query_Cache_Entries")?.to_string(), "2")?;
    proxy.admin("PROXYSQL FLUSH QUERY CACHE FOR TABLE conf.`odd.name,too`")?;
    same(listed()?.trim_end(), "conf.numbers\t2\t0")?;
    proxy.admin("SET mysql-query_cache_size_MB = 0; LOAD MYSQL VARIABLES TO RUNTIME; SELECT 1")?;
    until("0", || {
        counted(&proxy, "Query_Cache_Entries").map(|n| n.to_string())
    })?;
    same(
        &counted(&proxy, "Query_Cache_Memory_bytes")?.to_string(),
        "0",
    )?;
    proxy.query("SELECT 111; SELECT 111")?;
    same(&counted(&proxy, "Query_Cache_Entries")?.to_string(), "0")?;
    // What is too old goes, though nobody asks for it.
    proxy.admin("SET mysql-query_cache_size_MB = 8; LOAD MYSQL VARIABLES TO RUNTIME; UPDATE mysql_query_rules SET cache_ttl = 1; LOAD MYSQL QUERY RULES TO RUNTIME")?;
    let kept = counted(&proxy, "Query_Cache_count_SET")?;
    proxy.query("SELECT 1; SELECT 2; SELECT 3")?;
    same(
        &counted(&proxy, "Query_Cache_count_SET")?.to_string(),
        &(kept + 3).to_string(),
    )?;
    until("0", || {
        counted(&proxy, "Query_Cache_Entries").map(|n| n.to_string())
    })
}

/// `cache_empty_result` of a rule and its variable, warnings, and the size of the largest answer.
fn switches_say_which_answers_are_kept(driver: Driver) -> Outcome {
    let (_server, proxy) = stand(driver, Vendor::MariaDb, "")?;
    let set = |assignments: &str| {
        proxy
            .admin(&format!(
                "SET {assignments}; LOAD MYSQL VARIABLES TO RUNTIME; SELECT 1"
            ))
            .map(drop)
    };
    let rule = |empty: &str| {
        let update = format!(
            "UPDATE mysql_query_rules SET cache_empty_result = {empty}; LOAD MYSQL QUERY RULES TO RUNTIME"
        );
        proxy.admin(&update).map(drop)
    };
    // Each is asked by two sessions, so that neither what one of them holds nor what was kept
    // before matters.
    let check = |what: &str, sql: &str, kept: bool| -> Outcome {
        proxy.admin("PROXYSQL FLUSH QUERY CACHE")?;
        let (entries, hits) = ("Query_Cache_count_SET", "Query_Cache_count_GET_OK");
        let before = (counted(&proxy, entries)?, counted(&proxy, hits)?);
        let both = [proxy.query(sql)?, proxy.query(sql)?];
        expect(both[0] == both[1], || format!("{what}: {both:?}"))?;
        let since = (
            counted(&proxy, entries)? - before.0,
            counted(&proxy, hits)? - before.1,
        );
        let wanted = if kept { (1, 1) } else { (0, 0) };
        expect(since == wanted, || {
            format!("{what}, {sql}: kept and used {since:?} times, {wanted:?} were wanted")
        })
    };
    let (empty, full, warned) = (
        "SELECT id FROM conf.numbers WHERE id < 0",
        "SELECT 111",
        "SELECT CAST('x' AS SIGNED)",
    );
    check("by default", empty, true)?;
    set("mysql-query_cache_stores_empty_result='false'")?;
    check("the variable", empty, false)?;
    check("the variable", full, true)?;
    rule("1")?;
    check("the rule against the variable", empty, true)?;
    set("mysql-query_cache_stores_empty_result='true'")?;
    rule("0")?;
    check("the rule", empty, false)?;
    check("the rule", full, true)?;
    rule("NULL")?;
    check("neither", empty, true)?;

    check("by default", warned, false)?;
    set("mysql-query_cache_handle_warnings=1")?;
    check("warnings are no matter", warned, true)?;
    let said = proxy.query(&format!("{warned}; SHOW COUNT(*) WARNINGS"))?;
    same(&said, "0\n0")?;
    set("mysql-query_cache_handle_warnings=0")?;
    check("warnings are a matter again", warned, false)?;

    let long = "SELECT REPEAT('x', 4000)";
    check("by default", long, true)?;
    set("mysql-threshold_resultset_size=2000")?;
    check("too large", long, false)?;
    check("small", full, true)?;
    check(
        "many rows are too large, too",
        "SELECT id FROM conf.numbers",
        false,
    )
}

fn one_client_renews_what_is_getting_old(driver: Driver) -> Outcome {
    let (server, proxy) = stand(driver, Vendor::MariaDb, "")?;
    let read = "SELECT words FROM conf.scratch";
    proxy.admin(
        "UPDATE mysql_query_rules SET cache_ttl = 120000; LOAD MYSQL QUERY RULES TO RUNTIME",
    )?;
    server.root("INSERT INTO conf.scratch VALUES (1, 'old')")?;
    same(&proxy.query(read)?, "old")?;
    server.root("UPDATE conf.scratch SET words = 'new'")?;
    // It may be used for two minutes, and for a hundredth of these without a thought.
    std::thread::sleep(Duration::from_millis(1_300));
    same(&proxy.query(read)?, "old")?;
    proxy.admin("SET mysql-query_cache_soft_ttl_pct=1; LOAD MYSQL VARIABLES TO RUNTIME")?;
    let mut locker = Raw::log_in(server.port, 0)?;
    locker.query("LOCK TABLES conf.scratch WRITE")?;
    let port = proxy.port;
    let renews = std::thread::spawn(move || command_line(port, "app", "secret", &[], read));
    let asking =
        format!("SELECT COUNT(*) FROM information_schema.processlist WHERE info = '{read}'");
    until("1", || server.root(&asking))?;
    for _ in 0..4 {
        same(&proxy.query(read)?, "old")?;
    }
    until("1", || server.root(&asking))?;
    locker.query("UNLOCK TABLES")?;
    same(&renews.join().map_err(|_| "a panic")??, "new")?;
    // On a slow machine it would be getting old again.
    proxy.admin("SET mysql-query_cache_soft_ttl_pct=0; LOAD MYSQL VARIABLES TO RUNTIME")?;
    let hits = counted(&proxy, "Query_Cache_count_GET_OK")?;
    same(&proxy.query(read)?, "new")?;
    same(
        &(counted(&proxy, "Query_Cache_count_GET_OK")? - hits).to_string(),
        "1",
    )
}
