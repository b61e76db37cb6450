//! Texts that say more than their digest shows: in strings, in modes of servers, inside of other statements.

use conformance::by_hand;
use conformance::proxy::{Driver, Proxy, Wish, command_line};
use conformance::servers::{Server, Vendor};
use conformance::trials::{expect, same};

use super::{DETECTING, ON, Outcome, PROTECTING, one, refused};

/// To GBK the backslash belongs to the character before it.
const GBK: &[u8] =
    b"SELECT a FROM conf.things WHERE b='\xbf\\' UNION SELECT password FROM conf.secrets -- '";

/// Statements that have the digest of one that may run, and read what it does not: servers run
/// them, and no rule names them.
pub(super) fn what_a_digest_does_not_show(driver: Driver) -> Outcome {
    let (server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    server.root(
        "CREATE TABLE conf.things (id INT, a VARCHAR(20), b VARCHAR(20)); INSERT INTO conf.things VALUES (1, 'public', 'x');
         CREATE TABLE conf.secrets (password VARCHAR(20)); INSERT INTO conf.secrets VALUES ('hunter2')",
    )?;
    let application = [
        "SET NAMES gbk",
        "SET NAMES utf8mb4",
        "SET NAMES latin1",
        "SET character_set_client=28",
        "SET character_set_client=x'67626b'",
        "SET @g='gbk'; SET character_set_client=@g; SET character_set_client=\"gbk\"",
        "BEGIN; ROLLBACK",
        "SET sql_mode='NO_BACKSLASH_ESCAPES'",
        "SET sql_mode=''",
        "SELECT a FROM conf.things WHERE id=1",
        "SELECT a FROM conf.things WHERE b='x'",
        "SELECT a AS `#` FROM conf.things",
    ];
    let attacks: [(&str, &[u8]); 10] = [
        (
            "SET sql_mode=''",
            b"SELECT a FROM conf.things WHERE id=1 --\nUNION SELECT password FROM conf.secrets",
        ),
        (
            "SET sql_mode=''",
            b"SELECT a FROM conf.things WHERE id=1 /*M! UNION SELECT password FROM conf.secrets */",
        ),
        (
            "SET sql_mode='NO_BACKSLASH_ESCAPES'",
            b"SELECT a FROM conf.things WHERE b='\\' UNION SELECT password FROM conf.secrets -- '",
        ),
        ("SET NAMES gbk", GBK),
        (
            "SET sql_mode=''",
            b"SELECT a AS `#` FROM conf.things UNION SELECT password FROM conf.secrets",
        ),
        // GBK in other words, and before anybody was asked what it is.
        ("SET character_set_client=28", GBK),
        ("SET character_set_client=x'67626b'", GBK),
        ("BEGIN; SET character_set_client=\"gbk\"", GBK),
        ("SET @g='gbk'; BEGIN; SET character_set_client=@g", GBK),
        // A backquote is a part of it where a backslash escapes nothing.
        (
            "SET NAMES gbk; SET sql_mode='NO_BACKSLASH_ESCAPES'",
            b"SELECT 'x' AS `\xe9` # ` UNION SELECT password FROM conf.secrets",
        ),
    ];
    let mut client = by_hand::Raw::log_in(proxy.port).map_err(|error| error.to_string())?;
    let mut tried = |before: &str, attack: &[u8]| {
        for sql in ["ROLLBACK", "SET sql_mode=''", "SET NAMES utf8mb4"]
            .into_iter()
            .chain(before.split("; "))
        {
            client.ask(sql).map_err(|error| format!("{sql}: {error}"))?;
        }
        client
            .command(&[b"\x03", attack].concat())
            .map_err(|error| error.to_string())?;
        Ok::<_, String>(client.rows())
    };
    let all_read = |rows: &[Vec<String>]| rows.iter().any(|row| row == &["hunter2"]);
    for (before, attack) in attacks {
        let told = tried(before, attack)?;
        expect(told.as_ref().is_ok_and(|rows| all_read(rows)), || {
            format!("{}: {told:?}", String::from_utf8_lossy(attack))
        })?;
    }
    // Of what only attacks have, no rule is learned.
    let of_digest = "(SELECT digest FROM stats.stats_mysql_query_digest WHERE digest_text = 'SELECT a FROM conf.things WHERE id=?')";
    let learned = proxy.admin(&format!(
        "LEARN MYSQL FIREWALL FROM DIGESTS FOR open;
         SELECT COUNT(*) FROM mysql_firewall_whitelist_rules WHERE digest IN {of_digest};
         SELECT COUNT(*) > 0 FROM mysql_firewall_whitelist_rules; SELECT COUNT(*) FROM {of_digest}; DELETE FROM mysql_firewall_whitelist_rules"
    ))?;
    same(
        &learned.split_whitespace().collect::<Vec<_>>().join(" "),
        "0 1 1",
    )?;
    proxy.admin("TRUNCATE TABLE stats.stats_mysql_query_digest")?;
    for sql in application {
        tried(sql, b"SELECT a FROM conf.things WHERE id=1")?.map_err(|error| error.to_string())?;
    }
    tried("SET NAMES latin1", b"SELECT 'x' AS `\xe9`")?.map_err(|error| error.to_string())?;
    proxy.admin(&format!(
        "{} LEARN MYSQL FIREWALL FROM DIGESTS; LOAD MYSQL FIREWALL TO RUNTIME; {PROTECTING}{ON}",
        DETECTING.replace("'app'", "'open'")
    ))?;
    for (before, attack) in attacks {
        let told = tried(before, attack)?;
        let refused = told
            .as_ref()
            .is_err_and(|error| error.to_string().contains("Firewall blocked this query"));
        expect(refused, || {
            format!("{}: {told:?}", String::from_utf8_lossy(attack))
        })?;
    }
    same(
        &proxy.admin(
            "SELECT COUNT(*) > 0 FROM stats_mysql_firewall WHERE action = 'blocked_unshown'",
        )?,
        "1",
    )?;
    let told = tried(
        "SET sql_mode=''",
        b"SELECT a FROM conf.things WHERE id=1 -- why not",
    )?;
    expect(
        told.as_ref().is_ok_and(|rows| rows == &[["public"]]),
        || format!("{told:?}"),
    )
}

/// A server with a `sql_mode` of its own, and a firewall that knows what the application says:
/// learned, saved and loaded by a proxy that knows no server yet.
fn behind_a_firewall(
    driver: Driver,
    vendor: Vendor,
    mode: &str,
    application: &[&str],
) -> Result<(Server, Proxy), String> {
    let server = Server::start_with(vendor, &[&format!("--sql-mode={mode}")])?;
    server.root(by_hand::CREATE_USER)?;
    server.root(
        "CREATE TABLE conf.things (id INT, a VARCHAR(20), b VARCHAR(20)); INSERT INTO conf.things VALUES (1, 'public', 'x');
         CREATE TABLE conf.secrets (password VARCHAR(20)); INSERT INTO conf.secrets VALUES ('hunter2')",
    )?;
    let mut wish = Wish::in_front_of(&server);
    wish.add_open_user();
    let mut proxy = Proxy::start(driver, &wish)?;
    let mut client = by_hand::Raw::log_in(proxy.port).map_err(|error| error.to_string())?;
    for sql in application {
        client
            .ask(sql)
            .map_err(|error| format!("{vendor} {mode}: {sql}: {error}"))?;
    }
    proxy.admin(&format!(
        "{} LEARN MYSQL FIREWALL FROM DIGESTS; LOAD MYSQL FIREWALL TO RUNTIME; {PROTECTING}{ON}SAVE MYSQL FIREWALL TO DISK; SAVE MYSQL VARIABLES TO DISK",
        DETECTING.replace("'app'", "'open'")
    ))?;
    drop(client);
    proxy.restart()?;
    Ok((server, proxy))
}

/// `NO_BACKSLASH_ESCAPES` is the server's own, and the session says nothing of it: neither its
/// first statement nor one after a reset reads the secret.
pub(super) fn servers_own_modes(driver: Driver) -> Outcome {
    for vendor in [Vendor::MariaDb, Vendor::MySql]
        .into_iter()
        .filter(|vendor| vendor.programs().is_ok())
    {
        let (_server, proxy) = behind_a_firewall(
            driver,
            vendor,
            "NO_BACKSLASH_ESCAPES",
            &["SELECT a FROM conf.things WHERE b='x'"],
        )?;
        let attack =
            r"SELECT a FROM conf.things WHERE b='\' UNION SELECT password FROM conf.secrets -- '";
        let mut client = by_hand::Raw::log_in(proxy.port).map_err(|error| error.to_string())?;
        // Nobody knows the server yet: it is told apart before it gets the text.
        let told = client.ask(attack);
        expect(
            told.as_ref()
                .is_err_and(|error| error.to_string().contains("otherwise than the proxy knew")),
            || format!("{vendor}: {told:?}"),
        )?;
        for round in 0..2 {
            let told = client.ask(attack);
            let refused = told
                .as_ref()
                .is_err_and(|error| error.to_string().contains("Firewall blocked this query"));
            expect(refused, || format!("{vendor}, {round}: {told:?}"))?;
            // COM_RESET_CONNECTION
            client
                .command(&[0x1f])
                .and_then(|()| client.packet())
                .map_err(|error| error.to_string())?;
        }
        // What ends where it seems to may run, with a backslash in it; and who comes now is told
        // how to quote.
        let told = client.ask(r"SELECT a FROM conf.things WHERE b='a\b'");
        expect(told.as_ref().is_ok_and(Vec::is_empty), || {
            format!("{vendor}: {told:?}")
        })?;
        client.command(&[0x1f]).map_err(|error| error.to_string())?;
        let ok = client.packet().map_err(|error| error.to_string())?;
        expect(ok.get(3..5) == Some(&[0x02, 0x02]), || {
            format!("{vendor}: {ok:?}")
        })?;
    }
    Ok(())
}

/// Whether double quotes make a string or a name, sessions that have not set their `sql_mode` leave
/// to the server, which is asked where it matters.
pub(super) fn quotes(driver: Driver) -> Outcome {
    for vendor in [Vendor::MariaDb, Vendor::MySql]
        .into_iter()
        .filter(|vendor| vendor.programs().is_ok())
    {
        let attack = r#"SELECT 1 AS "\", password FROM conf.secrets -- ""#;
        let (_server, proxy) = behind_a_firewall(driver, vendor, "", &[r#"SELECT 1 AS "x""#])?;
        let mut client = by_hand::Raw::log_in(proxy.port).map_err(|error| error.to_string())?;
        let told = client.ask(r#"SELECT 1 AS "say \"hi\"""#);
        expect(told.as_ref().is_ok_and(|rows| rows == &[["1"]]), || {
            format!("{vendor}: {told:?}")
        })?;
        let told = client.ask(attack);
        expect(told.as_ref().is_ok_and(|rows| rows == &[["1"]]), || {
            format!("{vendor}: {told:?}")
        })?;
        let utf16 = "SET character_set_results = 'utf16'";
        let (_server, mut proxy) = behind_a_firewall(
            driver,
            vendor,
            "ANSI_QUOTES",
            &[r#"SELECT 1 AS "x""#, utf16],
        )?;
        // The server answers our question as it answers the session.
        let mut client = by_hand::Raw::log_in(proxy.port).map_err(|error| error.to_string())?;
        client.ask(utf16).map_err(|error| error.to_string())?;
        let told = client.ask(attack);
        expect(told.is_err(), || format!("{vendor}: in UTF-16: {told:?}"))?;
        // The core of that session knows the server now; whether the next session is on another is
        // not said.
        drop(client);
        proxy.restart()?;
        let mut client = by_hand::Raw::log_in(proxy.port).map_err(|error| error.to_string())?;
        let told = client.ask(attack);
        expect(
            told.as_ref()
                .is_err_and(|error| error.to_string().contains("otherwise than the proxy knew")),
            || format!("{vendor}: the first time: {told:?}"),
        )?;
        let told = client.ask(attack);
        expect(
            told.as_ref()
                .is_err_and(|error| error.to_string().contains("Firewall blocked this query")),
            || format!("{vendor}: once it is known: {told:?}"),
        )?;
        let told = client.ask(r#"SELECT 2 AS "y""#);
        expect(told.as_ref().is_ok_and(|rows| rows == &[["2"]]), || {
            format!("{vendor}: {told:?}")
        })?;
    }
    Ok(())
}

/// Texts that are prepared in SQL on a connection that is kept, by words outside that a rule
/// allows.
pub(super) fn texts_inside(driver: Driver) -> Outcome {
    for vendor in [Vendor::MariaDb, Vendor::MySql]
        .into_iter()
        .filter(|vendor| vendor.programs().is_ok())
    {
        inside(vendor, driver).map_err(|error| format!("{vendor}: {error}"))?;
    }
    Ok(())
}

/// MariaDB takes expressions behind USING, which the text inside does not show.
pub(super) fn computed_arguments(driver: Driver) -> Outcome {
    let (_server, proxy) = one(driver)?;
    let run = |sql: &str| {
        command_line(proxy.port, "app", "secret", &[], sql).map(|said| said.trim_end().to_owned())
    };
    let by_name = |arguments: &str| {
        format!("SET @a = 6; PREPARE s FROM 'SELECT ?'; EXECUTE s USING {arguments}")
    };
    let at_once = |arguments: &str| format!("EXECUTE IMMEDIATE 'SELECT ?' USING {arguments}");
    proxy.admin(DETECTING)?;
    proxy.admin(ON)?;
    same(&run(&by_name("@a"))?, "6")?;
    same(&run(&at_once("1"))?, "1")?;
    proxy.admin("LEARN MYSQL FIREWALL FROM DETECTED; LOAD MYSQL FIREWALL TO RUNTIME")?;
    proxy.admin(PROTECTING)?;
    same(&run(&by_name("@a"))?, "6")?;
    same(&run(&at_once("'b' /* c */ 'd'"))?, "bd")?;
    for arguments in [
        "SLEEP(0)",
        "5 + 5",
        "@@global.init_connect",
        "LOAD_FILE('/etc/passwd')",
        "`SLEEP`(0)",
        "@a := 5",
    ] {
        for sql in [by_name(arguments), at_once(arguments)] {
            refused(run(&sql), "Firewall blocked this query")
                .map_err(|why| format!("{sql}: {why}"))?;
        }
    }
    // Nor is it a way past a rule, for the words outside or for the text inside.
    proxy.admin("SET mysql-firewall_whitelist_enabled = 0; LOAD MYSQL VARIABLES TO RUNTIME; INSERT INTO mysql_query_rules (rule_id, active, match_digest, error_msg, apply)
        VALUES (1, 1, 'SLEEP', 'not here', 1), (2, 1, '^SELECT . AS forbidden', 'nor this', 1); LOAD MYSQL QUERY RULES TO RUNTIME")?;
    for sql in [by_name("SLEEP(0)"), at_once("SLEEP(0)")] {
        refused(run(&sql), "not here").map_err(|why| format!("{sql}: {why}"))?;
    }
    refused(
        run("EXECUTE IMMEDIATE 'SELECT ? AS forbidden' USING 5 + 5"),
        "nor this",
    )?;
    same(&run(&at_once("5 + 5"))?, "10")?;
    same(&run(&by_name("5 + 6"))?, "11")
}

fn inside(vendor: Vendor, driver: Driver) -> Outcome {
    let (server, proxy) = by_hand::one(driver, vendor)?;
    server
        .root("CREATE PROCEDURE conf.harmless() SET @ran = 'harmless'; CREATE PROCEDURE conf.harmful() SET @ran = 'harmful';")?;
    // The same words outside, with one text or the other inside; whether the proxy can read it.
    let mut ways: Vec<(&[&str], bool)> = vec![
        (&["PREPARE s FROM 'CALL conf.?()'", "EXECUTE s"], true),
        (
            &["SET @v = 'CALL conf.?()'", "PREPARE s FROM @v", "EXECUTE s"],
            true,
        ),
        (
            &[
                "SET @v = CONCAT('CALL conf.', '?()')",
                "PREPARE s FROM @v",
                "EXECUTE s",
            ],
            true,
        ),
        // Nobody knows what the session has on its connection.
        (
            &[
                "SET @v = 'CALL conf.?()'",
                "SET insert_id = 5",
                "PREPARE s FROM @v",
                "EXECUTE s",
            ],
            false,
        ),
    ];
    if vendor == Vendor::MariaDb {
        ways.push((&["EXECUTE IMMEDIATE 'CALL conf.?()'"], true));
        ways.push((&["EXECUTE IMMEDIATE CONCAT('CALL conf.', '?()')"], false));
        ways.push((
            &["PREPARE s FROM CONCAT('CALL conf.', '?()')", "EXECUTE s"],
            false,
        ));
        ways.push((
            &["BEGIN NOT ATOMIC PREPARE s FROM 'CALL conf.?()'; EXECUTE s; END"],
            false,
        ));
        ways.push((
            &["BEGIN NOT ATOMIC EXECUTE IMMEDIATE 'CALL conf.?()'; END"],
            false,
        ));
    }
    // What ran with this inside, or the first error.
    let run = |way: &[&str], text: &str| -> Result<String, String> {
        let all: String = way
            .iter()
            .chain(&["SELECT @ran"])
            .map(|sql| format!("{}//\n", sql.replace('?', text)))
            .collect();
        command_line(
            proxy.port,
            "app",
            "secret",
            &[],
            &format!("DELIMITER //\n{all}"),
        )
        .map(|said| said.trim_end().to_owned())
    };
    proxy.admin(DETECTING)?;
    proxy.admin(ON)?;
    for (way, _) in &ways {
        same(&run(way, "harmless")?, "harmless")?;
    }
    proxy.admin("LEARN MYSQL FIREWALL FROM DETECTED; LOAD MYSQL FIREWALL TO RUNTIME")?;
    proxy.admin(PROTECTING)?;
    for (way, is_read) in &ways {
        let why = |said: &Result<String, String>| format!("{way:?}: {said:?}");
        let said = run(way, "harmful");
        expect(
            said.as_ref()
                .is_err_and(|said| said.contains("Firewall blocked this query")),
            || why(&said),
        )?;
        let said = run(way, "harmless");
        if *is_read {
            expect(said.as_ref().is_ok_and(|said| said == "harmless"), || {
                why(&said)
            })?;
        } else {
            expect(
                said.as_ref()
                    .is_err_and(|said| said.contains("cannot read the text")),
                || why(&said),
            )?;
        }
    }
    let blocked = proxy
        .admin("SELECT COUNT(*) FROM stats_mysql_firewall WHERE action = 'blocked' AND digest_text = 'CALL conf.harmful()'")?;
    same(&blocked, "1")?;
    // An error of a rule is one for the text inside, too.
    proxy.admin("SET mysql-firewall_whitelist_enabled = 0; LOAD MYSQL VARIABLES TO RUNTIME; INSERT INTO mysql_query_rules (rule_id, active, match_digest, error_msg, apply)
        VALUES (1, 1, '^CALL conf.harmful', 'not here', 1), (2, 1, '^DEALLOCATE', 'kept', 1); LOAD MYSQL QUERY RULES TO RUNTIME")?;
    let said = run(&["PREPARE s FROM 'CALL conf.?()'", "EXECUTE s"], "harmful");
    expect(
        said.as_ref().is_err_and(|said| said.contains("not here")),
        || format!("by a rule: {said:?}"),
    )?;
    same(
        &run(&["PREPARE s FROM 'CALL conf.?()'", "EXECUTE s"], "harmless")?,
        "harmless",
    )?;
    // A name that a rule does not let go is still there.
    let mut client = by_hand::Raw::log_in(proxy.port).map_err(|error| error.to_string())?;
    let mut said = |sql: &str| {
        client
            .ask(sql)
            .map(|rows| rows.concat().concat())
            .map_err(|error| error.to_string())
    };
    said("PREPARE t FROM 'SELECT 4'")?;
    expect(
        said("DEALLOCATE PREPARE t").is_err_and(|error| error.contains("kept")),
        || "a rule's error".to_owned(),
    )?;
    same(&said("EXECUTE t")?, "4")
}
