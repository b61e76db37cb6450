//! Scripts in the API of today, `require("millrace")`, between real servers and clients that send
//! text and prepared statements.
#![forbid(unsafe_code)]

use conformance::by_hand::{self, Raw};
use conformance::process;
use conformance::proxy::{Driver, Proxy, Wish};
use conformance::raw;
use conformance::servers::{Server, Vendor};
use conformance::trials::{self, expect, same, soon};
use conformance::watch::HANGS;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::mpsc;
use std::thread;
use wire::caps;

type Outcome = Result<(), String>;

fn main() {
    trials::run(&[
        ("a_script_of_today_changes_refuses_and_answers", changes),
        (
            "a_script_sends_statements_elsewhere_and_caches_them",
            routes,
        ),
        ("what_a_script_hides_is_hidden_in_text_and_prepared", hides),
        ("a_script_of_today_asks_servers_with_typed_values", asks),
        ("sessions_of_all_cores_count_in_one_shared_map", shares),
        (
            "what_fails_in_a_script_of_today_is_told_with_its_place",
            fails,
        ),
        ("scripts_see_no_query_attributes", attributes),
        ("a_script_that_rules_name_sees_what_they_send_it", rules),
        ("scripts_of_today_stand_one_behind_the_other", chains),
        ("a_script_has_timers_without_a_client", timers),
        ("a_million_rows_pass_through_a_script", passes),
        ("rows_on_their_way_are_masked_and_left_out", streams),
        ("a_script_makes_an_answer_of_several_results", several),
        ("a_script_calls_by_http_and_its_session_waits_alone", calls),
    ])
}

/// Puts a script in force for those who log in from now on.
fn load(proxy: &Proxy, text: &str) -> Outcome {
    load_with(proxy, text, "")
}

fn load_with(proxy: &Proxy, text: &str, settings: &str) -> Outcome {
    let body = format!("local m = require(\"millrace\")\n{text}").replace('\'', "''");
    let sql = format!(
        "DELETE FROM mysql_scripts; INSERT INTO mysql_scripts (script_name, body, on_error, settings) VALUES ('new', '{body}', 'error', '{settings}'); LOAD MYSQL SCRIPTS TO RUNTIME"
    );
    proxy.admin(&sql).map(drop)
}

/// Both servers, each with a proxy in front of it.
fn each(driver: Driver, what: impl Fn(&Server, &Proxy) -> Outcome) -> Outcome {
    for vendor in [Vendor::MariaDb, Vendor::MySql] {
        let (server, proxy) = by_hand::one(driver, vendor)?;
        // The password is in the server's cache from then on.
        proxy.query("SELECT 1")?;
        what(&server, &proxy)?;
    }
    Ok(())
}

fn log_in(proxy: &Proxy) -> Result<Raw, String> {
    Raw::log_in(proxy.port).map_err(|error| error.to_string())
}

/// The first row, its values behind one another; or an error's words.
fn told(client: &mut Raw, sql: &str) -> String {
    match client.ask(sql) {
        Ok(rows) => rows.first().map(|row| row.join(" ")).unwrap_or_default(),
        Err(error) => error.to_string(),
    }
}

const CHANGES: &str = r#"
    function m.on.statement(s)
      if s.kind == "select" and s.text:find("secret") then return m.error(1045, "28000", "not for you") end
      if s.text == "SHOW OWNER" then
        return m.result { columns = { "who", { name = "n", type = "integer" } }, rows = { { s.user, 7 }, { nil, m.setting("n") } } }
      end
      if s.text:find("OLD_TABLE") then return m.rewrite((s.text:gsub("OLD_TABLE", "information_schema.schemata"))) end
      if s.kind == "set" then return m.result { affected_rows = 5 } end
    end"#;

/// In text and prepared; what is prepared is changed when it is prepared, and answered when it is
/// executed.
fn changes(driver: Driver) -> Outcome {
    each(driver, |_, proxy| {
        let count = "SELECT COUNT(*) > 0 FROM OLD_TABLE WHERE schema_name <> ?";
        load_with(proxy, CHANGES, r#"{"n": 8}"#)?;
        let mut client = log_in(proxy)?;
        same(&told(&mut client, &count.replace('?', "''")), "1")?;
        same(
            &told(&mut client, "SELECT 'secret'"),
            "1045 28000 not for you",
        )?;
        let rows = client
            .ask("SHOW OWNER")
            .map_err(|error| error.to_string())?;
        same(&format!("{rows:?}"), r#"[["open", "7"], ["NULL", "8"]]"#)?;
        same(&told(&mut client, "SELECT 6"), "6")?;
        let mut client = raw::Raw::log_in(proxy.port, 0)?;
        client.prepare(count)?;
        for value in ["a", "b"] {
            let said = client.execute(0, 0, &[b"\0\x01\xfd\0\x01", value.as_bytes()].concat())?;
            expect(said.contains(r"\x00\x00\x01"), || said.clone())?;
        }
        client.prepare("SHOW OWNER")?;
        let said = client.execute(1, 0, &[])?;
        expect(said.contains(r"\x00\x00\x03app\x07\x00"), || said.clone())?;
        let said = client.prepare("SELECT 'secret'")?;
        expect(said.contains("not for you"), || said.clone())?;
        let said = client.query("SET @a = 1")?;
        expect(said.contains(r"1 \x00\x05"), || said)
    })
}

/// Two servers in hostgroups 0 and 1, and a cache.
fn routes(driver: Driver) -> Outcome {
    let servers = [
        Server::start(Vendor::MariaDb)?,
        Server::start(Vendor::MariaDb)?,
    ];
    let mut wish = Wish::in_front_of(&servers[0]);
    wish.add(1, &servers[1]);
    wish.add_open_user();
    for server in &servers {
        server.root(by_hand::CREATE_USER)?;
    }
    let proxy = Proxy::start(driver, &wish)?;
    let text = r#"
        function m.on.statement(s)
          if s.text:find("REPORT") then return m.route { hostgroup = 1 } end
          if s.text:find("KEEP") then return m.route { cache_ttl = 60000 } end
        end"#;
    load(&proxy, text)?;
    let [own, other] = servers.each_ref().map(|server| server.port.to_string());
    let mut client = log_in(&proxy)?;
    same(&told(&mut client, "SELECT @@port"), &own)?;
    same(&told(&mut client, "SELECT /* REPORT */ @@port"), &other)?;
    for _ in 0..2 {
        same(&told(&mut client, "SELECT 41 + 1 /* KEEP */"), "42")?;
    }
    let asked = "SELECT hostgroup, count_star FROM stats_mysql_query_digest WHERE digest_text LIKE 'SELECT ?%+%?' ORDER BY 1";
    same(&proxy.admin(asked)?, "-1\t1\n0\t1")?;
    let mut client = raw::Raw::log_in(proxy.port, 0)?;
    client.prepare("SELECT @@port /* REPORT */")?;
    client.prepare("SELECT @@port")?;
    let text = |port: &str| -> Result<String, String> {
        let port: u32 = port.parse().map_err(|_| "no port")?;
        Ok(format!(r"\x00\x00{}", port.to_le_bytes().escape_ascii()))
    };
    for (nth, port) in [(0, &other), (1, &own)] {
        let (said, port) = (client.execute(nth, 0, &[])?, text(port)?);
        expect(said.contains(&port), || format!("{said} has no {port}"))?;
    }
    Ok(())
}

const TYPES: &str = "CREATE DATABASE IF NOT EXISTS hidden; CREATE TABLE hidden.t (
    id INT PRIMARY KEY, card VARCHAR(20) CHARACTER SET utf8mb4, b BIGINT UNSIGNED, c DECIMAL(30,10), d DOUBLE, e FLOAT, f DATETIME(6), g DATE,
    h TIME(3), i BLOB, j YEAR, k BIT(9), l ENUM('x','y'), m TINYINT, n TIMESTAMP NULL, o JSON, p SMALLINT UNSIGNED ZEROFILL, q TEXT);
    INSERT INTO hidden.t VALUES
    (1, '4711', 18446744073709551615, 12345678901234567890.0123456789, 0.1, 1e-7, '2008-12-24 10:11:12.000013', '0000-00-00', '-838:59:59.5', X'00FF27', 1999, b'100000001', 'y', -1, '2008-12-24 00:00:00', '{\"a\": 1}', 7, 'it''s'),
    (2, '4711', NULL, -0.5, -1e300, 3.5, '0000-00-00 00:00:00', '1000-01-01', '00:00:00', '', 2001, b'0', 'x', 127, NULL, 'null', 65535, ''),
    (3, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);";

/// An answer without the packets behind its definitions and its rows: MariaDB says of an index only in
/// the second.
fn rows(answer: &str) -> String {
    let lines = answer
        .lines()
        .filter(|line| !line.contains(r"\xfe\x00\x00"));
    lines.map(|line| format!("{line}\n")).collect()
}

/// A98: all but what is hidden is byte for byte what it was, of every type.
fn hides(driver: Driver) -> Outcome {
    each(driver, |server, proxy| {
        server.root(&format!(
            "SET sql_mode = ''; {TYPES} GRANT ALL ON hidden.* TO app@'%'"
        ))?;
        let sql = "SELECT * FROM hidden.t ORDER BY id";
        // Each server has flags of its own for who asks twice: the first answers are compared.
        let seen = |caps| -> Result<[String; 4], String> {
            let mut client = raw::Raw::log_in(proxy.port, caps)?;
            let text = client.query(sql)?;
            client.prepare(sql)?;
            Ok([
                text,
                client.execute(0, 0, &[])?,
                client.execute(0, 0, &[])?,
                client.query("SELECT 1")?,
            ])
        };
        let forms = [0, caps::DEPRECATE_EOF, caps::MARIADB_CACHE_METADATA];
        let before: Vec<_> = forms[..2]
            .iter()
            .map(|caps| seen(*caps))
            .collect::<Result<_, _>>()?;
        load(proxy, "function m.on.result(s, r)
            return r:map(function(row) if row.card then row.card = 'xxxx' end return row end, { 'card', optional = true })
          end")?;
        for (caps, before) in forms.iter().zip(&before) {
            for (now, before) in seen(*caps)?.iter().zip(before) {
                expect(!now.contains("4711") && now.len() > 10, || now.clone())?;
                same(&rows(now), &rows(&before.replace("4711", "xxxx")))?;
            }
        }
        // Who remembers definitions, and who asks for a cursor, sees as little.
        for said in seen(caps::MARIADB_CACHE_METADATA)? {
            expect(!said.contains("4711"), || said.clone())?;
        }
        let mut client = raw::Raw::log_in(proxy.port, 0)?;
        client.prepare(sql)?;
        let said = client.execute(0, 1, &[])?;
        expect(said.contains("xxxx") && !said.contains("4711"), || said)
    })
}

/// A99, in the API of today: values are typed, and mean the same whatever they contain.
fn asks(driver: Driver) -> Outcome {
    each(driver, |_, proxy| {
        let text = r#"
            function m.on.statement(s)
              local name = s.text:match("^ASK (%a+)")
              if not name then return end
              local value = ({ quote = "it's", slash = "a\\'b", letters = "\195\169", none = nil, yes = true, half = 1.5, large = m.number("18446744073709551615") })[name]
              local r, words = s:query("SELECT HEX(?) AS h, ? IS NULL AS n, ? + 0 AS v, CAST(9007199254740993 AS SIGNED) AS big, 'literal ?' LIMIT ?", value, value, name == "quote" and 1 or value, 1)
              if not r then return m.error(1105, "HY000", words) end
              local row = r[1]
              return m.result { columns = { "a" }, rows = { { table.concat({ tostring(row.h), type(row.n), row.n, tostring(row.v), type(row.big), row.big, #r }, " ") } } }
            end"#;
        load(proxy, text)?;
        let mut client = log_in(proxy)?;
        let said = told(&mut client, "ASK quote");
        same(&said, "69742773 number 0 1 string 9007199254740993 1")?;
        for (name, begins) in [
            ("slash", "615C2762 number 0 "),
            ("letters", "C3A9 number 0 "),
            ("none", "nil number 1 nil "),
            ("yes", "1 number 0 1 "),
            ("half", "2 number 0 1.5 "),
            ("large", "FFFFFFFFFFFFFFFF number 0 18446744073709551615 "),
        ] {
            let said = told(&mut client, &format!("ASK {name}"));
            expect(said.starts_with(begins), || format!("{name}: {said}"))?;
        }
        same(&told(&mut client, "SELECT 5"), "5")?;
        // One statement finds there what another one has left, and nobody else does.
        let text = r#"
            function m.on.statement(s)
              if s.text ~= "KEEP" then return end
              local own = assert(s:connection())
              assert(own:query("SET @kept = ?", 5))
              local here, there = assert(own:query("SELECT @kept AS v")), assert(s:query("SELECT @kept AS v"))
              local _, words = own:query("SELECT nosuch")
              own:close()
              return m.result { columns = { "a" }, rows = { { table.concat({ tostring(here[1].v), tostring(there[1].v), words:sub(1, 23) }, " ") } } }
            end"#;
        load(proxy, text)?;
        let mut client = log_in(proxy)?;
        let kept = "5 nil Unknown column 'nosuch'";
        same(&told(&mut client, "KEEP"), kept)?;
        same(&told(&mut client, "KEEP"), kept)
    })
}

/// No addition is lost, whichever cores the sessions are on.
fn shares(driver: Driver) -> Outcome {
    let (_server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    load(
        &proxy,
        r#"function m.on.statement(s)
             if s.text == "COUNT" then return m.result { columns = { "n" }, rows = { { m.shared.add("n") } } } end
           end"#,
    )?;
    let works = (0..8).map(|_| {
        let port = proxy.port;
        thread::spawn(move || {
            let mut client = Raw::log_in(port).map_err(|error| error.to_string())?;
            Ok::<_, String>(
                (0..50)
                    .map(|_| told(&mut client, "COUNT"))
                    .collect::<Vec<_>>(),
            )
        })
    });
    let works: Vec<_> = works.collect();
    let mut counted = Vec::new();
    for work in works {
        let own = work.join().map_err(|_| "a thread has ended")??;
        counted.extend(own.iter().filter_map(|n| n.parse::<u32>().ok()));
    }
    counted.sort_unstable();
    let all: Vec<u32> = (1..=400).collect();
    same(&format!("{counted:?}"), &format!("{all:?}"))
}

fn fails(driver: Driver) -> Outcome {
    let (_server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    load(
        &proxy,
        "function m.on.statement(s)\n  if s.text == 'SELECT 1' then return 7 end\n  if s.text == 'SELECT 2' then return s.txt end\nend\nfunction m.on.result(s, r)\n  if s.text == 'SELECT 3' then return r:map(1) end\nend",
    )?;
    let mut client = log_in(&proxy)?;
    let words = "The script 'new' has failed. Check the proxy's log";
    for sql in ["SELECT 1", "SELECT 2", "SELECT 3"] {
        same(&told(&mut client, sql), &format!("1105 07000 {words}"))?;
    }
    same(&told(&mut client, "SELECT 4"), "4")?;
    let line = "(on.statement) [new]:2: on.statement must return nothing";
    expect(proxy.says(line), || proxy.log())?;
    let counted = proxy.admin(
        "SELECT hook, errors, last_error FROM stats_millrace_scripts WHERE errors > 0 ORDER BY hook",
    )?;
    same(
        &counted,
        "on.result\t1\t(on.result) [new]:6: map wants a function first, it got a number\non.statement\t2\t(on.statement) [new]:4: a statement has no 'txt'",
    )?;
    let refused = load(&proxy, "m.on.statment = print");
    expect(refused.is_ok(), || format!("{refused:?}"))?;
    let said = told(&mut log_in(&proxy)?, "SELECT 5");
    same(&said, &format!("1105 07000 {words}"))
}

/// Clients of today send attributes in front of the text. Scripts of both kinds see the text alone.
fn attributes(driver: Driver) -> Outcome {
    each(driver, |_, proxy| {
        let caps = caps::QUERY_ATTRIBUTES;
        let asked = |sql: &str| -> Result<[String; 2], String> {
            let mut client = raw::Raw::log_in(proxy.port, caps)?;
            Ok([client.query_with(&[("a", "b")], sql)?, client.query(sql)?])
        };
        let plain = asked("SELECT 'new'")?;
        load(
            proxy,
            "function m.on.statement(s) if s.text == \"SELECT 'old'\" then return m.rewrite(\"SELECT 'new'\") end end",
        )?;
        same(
            &format!("{:?}", asked("SELECT 'old'")?),
            &format!("{plain:?}"),
        )?;
        let old = "function read_query(packet)
            if packet:sub(2) ~= \"SELECT 'old'\" then return end
            proxy.queries:append(1, \"\\3SELECT 'new'\")
            return proxy.PROXY_SEND_QUERY
          end";
        load(proxy, old)?;
        same(
            &format!("{:?}", asked("SELECT 'old'")?),
            &format!("{plain:?}"),
        )
    })
}

/// A timer runs once for all sessions, as the row's user, until other scripts are in force.
fn timers(driver: Driver) -> Outcome {
    let (_server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    let text = r#"
        m.every(20, function()
          local r = m.query("SELECT CURRENT_USER() AS who, CONNECTION_ID() > ? AS id", 0)
          m.shared.set("who", r and r[1].who)
          if m.shared.add("ticks") == 3 then error("the third time") end
        end)
        function m.on.statement(s)
          if s.text ~= "TICKS" then return end
          return m.result { columns = { "n", "who" }, rows = { { m.shared.get("ticks"), m.shared.get("who") } } }
        end"#;
    load(&proxy, text)?;
    proxy.admin(
        "UPDATE mysql_scripts SET usernames = 'other, open'; LOAD MYSQL SCRIPTS TO RUNTIME",
    )?;
    let mut client = log_in(&proxy)?;
    let began = std::time::Instant::now();
    loop {
        let said = told(&mut client, "TICKS");
        let (ticks, who) = said.split_once(' ').unwrap_or_default();
        // What fails once goes on.
        if ticks.parse::<u32>().is_ok_and(|ticks| ticks > 5) && !who.is_empty() {
            break same(who, "other@%")?;
        }
        expect(began.elapsed() < HANGS, || said.clone())?;
        thread::sleep(std::time::Duration::from_millis(20));
    }
    let failed = proxy.admin(
        "SELECT errors >= 1, last_error LIKE '%the third time%' FROM stats_millrace_scripts WHERE hook = 'every'",
    )?;
    same(&failed, "1\t1")
}

/// A script that a rule names sees the statements that match it, and no others; in text and prepared,
/// of both APIs.
fn rules(driver: Driver) -> Outcome {
    let (_server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    let rule = r#"INSERT INTO mysql_query_rules (rule_id, active, match_pattern, attributes) VALUES (1, 1, "MINE", '{"script":"new"}'); LOAD MYSQL QUERY RULES TO RUNTIME"#;
    proxy.admin(rule)?;
    let of_today = r#"
        function m.on.statement(s) return m.rewrite(s.text:gsub("MINE", "SEEN")) end
        function m.on.result(s, r) return r:map(function(row) row[1] = row[1] .. "!" end) end"#;
    let old = r#"
        function read_query(packet)
          if packet:byte() ~= 3 and packet:byte() ~= 22 then return end
          proxy.queries:append(1, (packet:gsub("MINE", "SEEN!")))
          return proxy.PROXY_SEND_QUERY
        end"#;
    for (script, seen) in [(of_today, r"\x05SEEN!"), (old, r"\x05SEEN!")] {
        load(&proxy, script)?;
        let mut client = log_in(&proxy)?;
        same(&told(&mut client, "SELECT 'MINE'"), "SEEN!")?;
        same(&told(&mut client, "SELECT 'other'"), "other")?;
        let mut client = raw::Raw::log_in(proxy.port, 0)?;
        client.prepare("SELECT 'other'")?;
        client.prepare("SELECT 'MINE'")?;
        let said = client.execute(0, 0, &[])?;
        expect(said.contains(r"\x05other"), || said.clone())?;
        let said = client.execute(1, 0, &[])?;
        expect(said.contains(seen), || said.clone())?;
    }
    // Who names a script that is not there is told.
    proxy.admin(
        &rule
            .replace("\"new\"", "\"newer\"")
            .replace("VALUES (1,", "VALUES (2,"),
    )?;
    let line = "(rule_id 2): attributes names the script 'newer', and no such script is in force";
    expect(proxy.says(line), || proxy.log())
}

/// Two scripts of today, and one of MySQL Proxy between them: each sees what the one before has made,
/// and answers come back the other way.
fn chains(driver: Driver) -> Outcome {
    let (_server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    let marks = |mark: &str| {
        let text = "local m = require('millrace')
            function m.on.statement(s) return m.rewrite(s.text:gsub('0', '0MARK')) end
            function m.on.result(s, r) return r:map(function(row) row[1] = row[1] .. 'MARK' end) end";
        text.replace("MARK", mark).replace('\'', "''")
    };
    let between = "function read_query(packet)
            proxy.queries:append(1, (packet:gsub(''0a'', ''0ab'')), { resultset_is_needed = true })
            return proxy.PROXY_SEND_QUERY
        end
        function read_query_result(inj) end";
    let mut sql = "DELETE FROM mysql_scripts; ".to_owned();
    for (at, text) in [marks("a"), between.to_owned(), marks("c")]
        .iter()
        .enumerate()
    {
        sql.push_str(&format!("INSERT INTO mysql_scripts (script_name, position, body, on_error) VALUES ('s{at}', {at}, '{text}', 'error'); "));
    }
    proxy.admin(&format!("{sql}LOAD MYSQL SCRIPTS TO RUNTIME"))?;
    same(&told(&mut log_in(&proxy)?, "SELECT '0'"), "0cabca")?;
    let mut client = raw::Raw::log_in(proxy.port, 0)?;
    client.prepare("SELECT '0'")?;
    for _ in 0..2 {
        let said = client.execute(0, 0, &[])?;
        expect(said.contains(r"\x060cabca"), || said.clone())?;
    }
    Ok(())
}

/// Bytes that a proxy's memory may grow by, in MB, while a script sees a million rows: what it has at
/// once is a few pieces of them.
const MEGABYTES_MAX: u64 = 32;

/// A statement with a million rows, or as many as this, on any server.
fn people(rows: u32) -> String {
    let digits = (0..10).map(|digit| format!("SELECT {digit} AS n"));
    let digits = digits.collect::<Vec<_>>().join(" UNION ALL ");
    let digit = |name| format!("({digits}) {name}");
    let from = ["a", "b", "c", "d", "e", "f"].map(digit).join(", ");
    let id = "a.n + 10 * b.n + 100 * c.n + 1000 * d.n + 10000 * e.n + 100000 * f.n";
    format!(
        "SELECT {id} AS id, CONCAT('user', {id}, '@example.org') AS email FROM {from} LIMIT {rows}"
    )
}

/// In text and prepared, with memory that does not grow with the number of rows.
fn passes(driver: Driver) -> Outcome {
    let (_server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    load(
        &proxy,
        r#"
        function m.on.statement(s)
          if s.text == "COUNTED" then return m.result { columns = { "n" }, rows = { { m.shared.get("n") } } } end
        end
        function m.on.rows(s, r)
          return r:map(function(row) row.email = "xxxx" .. row.email:match("@.*") end, { "email", optional = true },
            function(count) m.shared.add("n", count) end)
        end"#,
    )?;
    let rows = 1_000_000;
    let mut client = raw::Raw::log_in(proxy.port, 0)?;
    client.query("SELECT 'warm@example.org' AS email")?;
    client.prepare(&people(rows))?;
    let execute = [&client.statement(0x17, 0)[..], &[0, 1, 0, 0, 0]].concat();
    let before = process::peak_kib(proxy.id()) / 1024;
    let query = [b"\x03", people(rows).as_bytes()].concat();
    for command in [query, execute] {
        client.send(0, &command)?;
        let (mut ends, mut seen) = (0, 0);
        while ends < 2 {
            let (_, packet) = client.packet()?;
            let is_end = packet.len() < 9 && packet.first() == Some(&0xfe);
            ends += usize::from(is_end);
            if ends == 1 && !is_end {
                seen += 1;
                let is_masked = packet.ends_with(b"\x10xxxx@example.org");
                expect(is_masked, || packet.escape_ascii().to_string())?;
            }
        }
        same(&seen.to_string(), &rows.to_string())?;
    }
    let after = process::peak_kib(proxy.id()) / 1024;
    expect(after <= before + MEGABYTES_MAX, || {
        format!("resident memory went from {before} to {after} MB")
    })?;
    let mut client = log_in(&proxy)?;
    same(&told(&mut client, "COUNTED"), &(2 * rows + 1).to_string())
}

/// A98: all but what is masked is byte for byte what it was, of every type, on the way as well.
fn streams(driver: Driver) -> Outcome {
    each(driver, |server, proxy| {
        server.root(&format!(
            "SET sql_mode = ''; {TYPES} GRANT ALL ON hidden.* TO app@'%'"
        ))?;
        let sql = "SELECT * FROM hidden.t ORDER BY id";
        let seen = |caps| -> Result<[String; 3], String> {
            let mut client = raw::Raw::log_in(proxy.port, caps)?;
            let text = client.query(sql)?;
            client.prepare(sql)?;
            Ok([text, client.execute(0, 0, &[])?, client.query("SELECT 1")?])
        };
        let forms = [0, caps::DEPRECATE_EOF];
        let before = forms.map(seen);
        load(
            proxy,
            "function m.on.rows(s, r)
            if s.text:find('NONE') then return m.error(1142, '42000', 'not for you') end
            return r:map(function(row)
              if s.text:find('FAIL') and row.id == 2 then error('at the second') end
              if s.text:find('ODD') and row.id == 2 then return false end
              if row.card then row.card = 'xxxx' end
            end, { 'id', 'card', optional = true })
          end",
        )?;
        for (caps, before) in forms.into_iter().zip(before) {
            for (now, before) in seen(caps)?.iter().zip(&before?) {
                same(&rows(now), &rows(&before.replace("4711", "xxxx")))?;
            }
        }
        // A cursor has its rows at once, and nobody sees them unmasked.
        let mut client = raw::Raw::log_in(proxy.port, 0)?;
        client.prepare(sql)?;
        let said = client.execute(0, 1, &[])?;
        expect(said.contains("xxxx") && !said.contains("4711"), || said)?;
        let mut client = log_in(proxy)?;
        let sql = "SELECT id, card FROM hidden.t ORDER BY id";
        let ask = |client: &mut Raw, more: &str| {
            format!("{:?}", client.ask(&format!("{sql} /*{more}*/")))
        };
        let left = ask(&mut client, "ODD");
        same(&left, r#"Ok([["1", "xxxx"], ["3", "NULL"]])"#)?;
        same(
            &told(&mut client, &format!("{sql} /*NONE*/")),
            "1142 42000 not for you",
        )?;
        let failed = told(&mut client, &format!("{sql} /*FAIL*/"));
        same(
            &failed,
            "1105 07000 The script 'new' has failed. Check the proxy's log",
        )?;
        same(&told(&mut client, "SELECT 5"), "5")?;
        expect(proxy.says("(on.rows) [new]:5: at the second"), || {
            proxy.log()
        })?;
        let counted =
            "SELECT calls > 0, errors, waits FROM stats_millrace_scripts WHERE hook = 'on.rows'";
        same(&proxy.admin(counted)?, "1\t1\t0")?;
        // One that shares a table over all cores has its hooks elsewhere, and says so.
        load(proxy, "proxy.global.n = 1 function m.on.rows(s, r) end")?;
        // Such words are logged once a second at most.
        soon("true", || {
            told(&mut log_in(proxy)?, "SELECT 5");
            let has = proxy.log().contains("runs on the core of its session");
            Ok(has.to_string())
        })
    })
}

/// Statements in one text, and a CALL, with rows that go by, are masked or left out.
fn several(driver: Driver) -> Outcome {
    each(driver, |server, proxy| {
        server.root("CREATE DATABASE IF NOT EXISTS many; GRANT ALL ON many.* TO app@'%'")?;
        let mut direct = Raw::log_in(server.port).map_err(|error| error.to_string())?;
        let procedure = "CREATE PROCEDURE many.p() BEGIN SELECT 1 AS id, 'secret' AS card; SELECT 'secret' AS other; SELECT 3 AS id, 'secret' AS card; END";
        same(&told(&mut direct, procedure), "")?;
        let statements =
            "SELECT 1 AS id, 'secret' AS card; SET @a = 1; SELECT 3 AS id, 'secret' AS card; DO 1";
        let masks = "map(function(row) if row.id == 3 then return false end row.card = 'masked' end, { 'id', 'card', optional = true })";
        let bodies = [
            format!("function m.on.rows(s, r) return r:{masks} end"),
            format!(
                "function m.on.result(s, r)
                if #r.results < 2 then return end
                local all = {{}}
                for at, one in ipairs(r.results) do all[at] = one:{masks} end
                return all
              end"
            ),
        ];
        let caps = caps::MULTI_STATEMENTS | caps::MULTI_RESULTS | caps::PS_MULTI_RESULTS;
        let mut all = Vec::new();
        for body in bodies {
            load(proxy, &body)?;
            for more in [0, caps::DEPRECATE_EOF] {
                let mut client = raw::Raw::log_in(proxy.port, caps | more)?;
                let text = client.query(statements)?;
                let called = client.query("CALL many.p()")?;
                client.prepare("CALL many.p()")?;
                let executed = client.execute(0, 0, &[])?;
                for said in [&text, &called, &executed] {
                    let secrets = said.matches("secret").count();
                    let wanted = usize::from(!std::ptr::eq(said, &text));
                    let is_masked = said.matches("masked").count() == 1;
                    expect(secrets == wanted && is_masked, || said.clone())?;
                }
                expect(client.query("SELECT 5")?.contains(r"\x015"), || {
                    "no 5".into()
                })?;
                all.push([text, called, executed]);
            }
        }
        // Both ways come to the same bytes.
        for at in 0..2 {
            same(&format!("{:?}", all[at]), &format!("{:?}", all[at + 2]))?;
        }
        load(
            proxy,
            "function m.on.result(s, r)
            if #r.results < 2 then return end
            return { m.result { affected_rows = 7 }, m.error(1142, '42000', 'no more') }
          end",
        )?;
        let mut client = raw::Raw::log_in(proxy.port, caps)?;
        let said = client.query(statements)?;
        expect(
            said.lines().count() == 2 && said.contains("no more"),
            || said,
        )?;
        expect(client.query("SELECT 5")?.contains(r"\x015"), || {
            "no 5".into()
        })
    })
}

/// A server of HTTP that answers when it is told to: its port, and who tells it.
fn http_server() -> Result<(u16, mpsc::Sender<String>), String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    let port = listener
        .local_addr()
        .map_err(|error| error.to_string())?
        .port();
    let (tell, told) = mpsc::channel::<String>();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let mut client = BufReader::new(client);
            let (mut head, mut body) = (String::new(), Vec::new());
            while !head.ends_with("\r\n\r\n")
                && client.read_line(&mut head).is_ok_and(|len| len > 0)
            {}
            let length = head.lines().find_map(|line| {
                line.to_lowercase()
                    .strip_prefix("content-length: ")?
                    .parse()
                    .ok()
            });
            body.resize(length.unwrap_or(0), 0);
            // Whoever sends less is shown what there is.
            let _less = client.read_exact(&mut body);
            let first = head.lines().next().unwrap_or_default();
            let Ok(says) = told.recv() else { return };
            let says = says.replace(
                "ECHO",
                &format!("{first} {}", String::from_utf8_lossy(&body)),
            );
            let answer = format!(
                "HTTP/1.1 200 OK\r\nX-It: is\r\nContent-Length: {}\r\n\r\n{says}",
                says.len()
            );
            let _gone = client.get_mut().write_all(answer.as_bytes());
        }
    });
    Ok((port, tell))
}

/// The answer is there when the next line runs, and others are served meanwhile, on the same core.
fn calls(driver: Driver) -> Outcome {
    let server = Server::start(Vendor::MariaDb)?;
    let mut wish = Wish::in_front_of(&server);
    wish.add_open_user();
    server.root(by_hand::CREATE_USER)?;
    let proxy = Proxy::start(driver, &wish)?;
    let (port, tell) = http_server()?;
    let text = format!(
        r#"
        function m.on.statement(s)
          local what, url = s.text:match("^(%u+) (http.*)$")
          if not what then return end
          local options, answer, words = {{ timeout = 60000, headers = {{ ["X-Own"] = "1" }} }}
          if what == "GET" then answer, words = m.http.get(url:gsub("PORT", "{port}"), options)
          else answer, words = m.http.post(url:gsub("PORT", "{port}"), what, {{ timeout = what == "LATE" and 100 or 60000 }}) end
          if not answer then return m.error(1105, "HY000", words) end
          return m.result {{ columns = {{ "a" }}, rows = {{ {{ answer.status .. " " .. answer.headers["x-it"] .. " " .. answer.body }} }} }}
        end"#
    );
    load(&proxy, &text)?;
    let mut client = log_in(&proxy)?;
    let refused = told(&mut client, "GET http://127.0.0.1:PORT/");
    expect(refused.contains("is none of the http_hosts"), || refused)?;
    let hosts = format!(
        "UPDATE mysql_scripts SET http_hosts = '127.0.0.1:{port}, 127.0.0.1:{}'; LOAD MYSQL SCRIPTS TO RUNTIME",
        server.port
    );
    proxy.admin(&hosts)?;
    let mut client = log_in(&proxy)?;
    let send = |says: &str| {
        tell.send(says.to_owned())
            .map_err(|error| error.to_string())
    };
    client
        .query("GET http://127.0.0.1:PORT/a?b=c")
        .map_err(|error| error.to_string())?;
    // Nobody has answered yet, and other sessions are served, on whichever core they are.
    for _ in 0..4 {
        same(&told(&mut log_in(&proxy)?, "SELECT 41 + 1"), "42")?;
    }
    send("ECHO")?;
    let rows = client.rows().map_err(|error| error.to_string())?;
    same(&format!("{rows:?}"), r#"[["200 is GET /a?b=c HTTP/1.1 "]]"#)?;
    send("ECHO")?;
    let posted = told(&mut client, "POST http://127.0.0.1:PORT");
    same(&posted, "200 is POST / HTTP/1.1 POST")?;
    let late = told(&mut client, "LATE http://127.0.0.1:PORT/late");
    same(&late, "1105 HY000 no answer within 100 ms")?;
    send("for the late one")?;
    // A server that speaks no TLS.
    let wrong = told(
        &mut client,
        &format!("GET https://127.0.0.1:{}/", server.port),
    );
    expect(wrong.contains("TLS"), || wrong)?;
    // One whose statement is killed waits no longer.
    client
        .query("GET http://127.0.0.1:PORT/killed")
        .map_err(|error| error.to_string())?;
    told(&mut log_in(&proxy)?, &format!("KILL QUERY {}", client.id));
    let killed = client.rows().map(|rows| format!("{rows:?}"));
    same(
        &killed.unwrap_or_else(|error| error.to_string()),
        "1105 HY000 the call was interrupted",
    )?;
    let counted =
        "SELECT http_calls, http_errors FROM stats_millrace_scripts WHERE hook = 'on.statement'";
    same(&proxy.admin(counted)?, "6\t4")
}
