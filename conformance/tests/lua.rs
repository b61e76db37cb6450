//! Scripts in Lua between clients and servers, as MySQL Proxy had them.
#![forbid(unsafe_code)]

use conformance::beside::asked;
use conformance::by_hand::{self, Raw};
use conformance::process::output;
use conformance::proxy::{Driver, Proxy, Wish, program};
use conformance::raw;
use conformance::servers::{Server, Vendor};
use conformance::trials::{self, expect, same};
use conformance::watch::HANGS;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};

type Outcome = Result<(), String>;

fn main() {
    trials::run(&[
        ("a_script_rewrites_injects_and_answers", rewrites),
        ("a_result_that_a_script_copies_is_the_same", copies),
        ("a_script_that_fails_hurts_as_much_as_it_may", fails),
        ("scripts_stand_one_behind_the_other", chains),
        ("a_script_requires_files_beside_it", requires),
        ("a_script_writes_logs_of_its_own", logs),
        ("log4lua_sends_mails", mails),
        ("the_documents_script_copies_results", documents_copy),
        ("several_results_and_large_ones", several_and_large),
        ("the_documents_script_asks_servers_itself", documents_luasql),
        ("a_script_asks_servers_itself", asks),
        ("a_script_names_the_server_that_it_asks", names),
        (
            "what_a_script_lets_pass_goes_the_way_of_all_others",
            lets_pass,
        ),
        ("a_script_leaves_no_schema_to_the_next_one", leaves_schemas),
        ("who_waits_for_a_script_waits_alone", waits),
        ("sessions_of_all_cores_share_one_proxy_global", shares),
        ("who_becomes_somebody_else_meets_scripts_anew", changes),
        ("a_load_of_scripts_is_refused_with_file_and_line", loads),
    ])
}

fn one() -> [Vendor; 2] {
    [Vendor::MariaDb, Vendor::MySql]
}

/// Puts these scripts in force: each with its name, its text, and what else it says.
fn load(proxy: &Proxy, scripts: &[(&str, &str, &str)]) -> Outcome {
    let mut sql = "DELETE FROM mysql_scripts; ".to_owned();
    for (at, (name, text, on_error)) in scripts.iter().enumerate() {
        let text = text.replace('\'', "''");
        sql.push_str(&format!(
            "INSERT INTO mysql_scripts (script_name, position, body, on_error) VALUES ('{name}', {at}, '{text}', '{on_error}'); "
        ));
    }
    proxy
        .admin(&format!("{sql}LOAD MYSQL SCRIPTS TO RUNTIME"))
        .map(drop)
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

/// Payloads of the whole answer.
fn packets(client: &mut Raw, sql: &str) -> Result<Vec<Vec<u8>>, String> {
    let text = |error: std::io::Error| error.to_string();
    client.query(sql).map_err(text)?;
    let (mut all, mut ends) = (Vec::new(), 0);
    while ends < 2 {
        let packet = client.packet().map_err(text)?;
        let first = packet.first().copied();
        ends += usize::from(first == Some(0xfe) && packet.len() < 9);
        let is_all = first == Some(0xff) || all.is_empty() && first == Some(0);
        all.push(packet);
        if is_all {
            break;
        }
    }
    Ok(all)
}

/// Both servers, each with a proxy in front of it.
fn each(driver: Driver, what: impl Fn(&Server, &Proxy) -> Outcome) -> Outcome {
    for vendor in one() {
        let (server, proxy) = by_hand::one(driver, vendor)?;
        what(&server, &proxy)?;
    }
    Ok(())
}

const REWRITES: &str = "
function read_query(packet)
  if packet:byte() ~= proxy.COM_QUERY then return end
  local query = packet:sub(2)
  if query == 'SELECT secret' then
    proxy.response = { type = proxy.MYSQLD_PACKET_ERR, errcode = 1045, sqlstate = '28000', errmsg = 'not for you' }
    return proxy.PROXY_SEND_RESULT
  elseif query == 'SHOW SCRIPT' then
    proxy.response = { type = proxy.MYSQLD_PACKET_OK, resultset = {
      fields = { { name = 'who', type = proxy.MYSQL_TYPE_STRING }, { name = 'db', type = proxy.MYSQL_TYPE_STRING } },
      rows = { { proxy.connection.client.username, proxy.connection.client.default_db } } } }
    return proxy.PROXY_SEND_RESULT
  elseif query:find('SLECT') then
    proxy.queries:append(1, string.char(proxy.COM_QUERY) .. query:gsub('SLECT', 'SELECT'))
    return proxy.PROXY_SEND_QUERY
  elseif query:find('WITH COUNT') then
    proxy.queries:append(1, string.char(proxy.COM_QUERY) .. 'SET @before = 41', { resultset_is_needed = true })
    proxy.queries:append(2, string.char(proxy.COM_QUERY) .. 'SELECT @before + 1', { resultset_is_needed = true })
    proxy.queries:append(3, string.char(proxy.COM_QUERY) .. 'SET @after = 1', { resultset_is_needed = true })
    return proxy.PROXY_SEND_QUERY
  elseif query == 'NOTHING' then
    proxy.queries:append(1, string.char(proxy.COM_QUERY) .. 'DO 1', { resultset_is_needed = true })
    return proxy.PROXY_SEND_QUERY
  end
end
function read_query_result(inj)
  if inj.id ~= 2 and inj.query:sub(2) ~= 'SELECT 5' then return proxy.PROXY_IGNORE_RESULT end
end";

/// A94: queries are changed, put before and behind, answered and refused, and nobody else notices.
fn rewrites(driver: Driver) -> Outcome {
    each(driver, |_, proxy| {
        load(proxy, &[("r", REWRITES, "error")])?;
        let mut client = log_in(proxy)?;
        same(&told(&mut client, "SLECT 5"), "5")?;
        same(&told(&mut client, "SELECT 6"), "6")?;
        same(
            &told(&mut client, "SELECT secret"),
            "1045 28000 not for you",
        )?;
        same(
            &told(&mut client, "SHOW SCRIPT"),
            &format!("{} ", by_hand::USER),
        )?;
        same(&told(&mut client, "WITH COUNT"), "42")?;
        same(&told(&mut client, "SELECT @before, @after"), "41 1")?;
        same(
            &told(&mut client, "NOTHING"),
            "1105 07000 (lua) no result for this query",
        )?;
        same(&told(&mut client, "SELECT 7"), "7")?;
        // Other users than those whom it names do not meet it.
        proxy.admin(
            "UPDATE mysql_scripts SET usernames = 'nobody, other'; LOAD MYSQL SCRIPTS TO RUNTIME",
        )?;
        let said = told(&mut log_in(proxy)?, "SLECT 5");
        expect(said.starts_with("1064 "), || said)?;
        // Who was there before the LOAD has no script, until it logs in anew.
        load(proxy, &[])?;
        same(&told(&mut log_in(proxy)?, "SELECT 8"), "8")
    })
}

const COPIES: &str = "
function read_query(packet)
  if packet:byte() ~= proxy.COM_QUERY and packet:byte() ~= proxy.COM_STMT_EXECUTE then return end
  proxy.queries:append(1, packet)
  return proxy.PROXY_SEND_QUERY
end
function read_query_result(inj)
  local res = inj.resultset
  if not res.fields then return end
  local fields, rows = {}, {}
  for i = 1, #res.fields do fields[i] = { type = res.fields[i].type, name = res.fields[i].name } end
  for row in res.rows do rows[#rows + 1] = row end
  proxy.response = { type = proxy.MYSQLD_PACKET_OK, resultset = { fields = fields, rows = rows } }
  return proxy.PROXY_SEND_RESULT
end";

/// A94, A98: the seed's copy, byte for byte, for rows, no rows, an insert and an error, in text and
/// prepared.
fn copies(driver: Driver) -> Outcome {
    each(driver, |server, proxy| {
        server.root("CREATE DATABASE IF NOT EXISTS lua; CREATE TABLE lua.t (a INT PRIMARY KEY, b VARCHAR(10), c DECIMAL(5,2), d DATETIME)")?;
        load(proxy, &[("c", COPIES, "error")])?;
        // The password is in the server's cache from then on.
        proxy.query("SELECT 1")?;
        let mut through = log_in(proxy)?;
        let mut direct = Raw::log_in(server.port).map_err(|error| error.to_string())?;
        same(
            &told(
                &mut through,
                "INSERT INTO lua.t VALUES (1, 'x', 1.5, '2020-01-02 03:04:05'), (2, NULL, NULL, NULL)",
            ),
            "",
        )?;
        for sql in [
            "SELECT * FROM lua.t ORDER BY a",
            "SELECT a AS other, b FROM lua.t WHERE a > 7",
            "SELECT COUNT(*), SUM(c) FROM lua.t",
            "SELECT nosuch FROM lua.t",
            "SHOW DATABASES LIKE 'lua'",
        ] {
            let (wanted, found) = (packets(&mut direct, sql)?, packets(&mut through, sql)?);
            if wanted != found {
                return Err(format!("{sql}\ndirect:  {wanted:x?}\nthrough: {found:x?}"));
            }
        }
        // Prepared, with a cursor and without.
        let executed = |port: u16| -> Result<Vec<String>, String> {
            let mut client = raw::Raw::log_in(port, 0)?;
            client.prepare("SELECT a, b, c, d, a / 3e0 AS e FROM lua.t ORDER BY a")?;
            [0, 1]
                .map(|flags| client.execute(0, flags, &[]))
                .into_iter()
                .collect()
        };
        let (wanted, found) = (executed(server.port)?, executed(proxy.port)?);
        same(&found[0], &wanted[0])?;
        same(&found[1], &wanted[0])?;
        same(&told(&mut through, "DELETE FROM lua.t WHERE a = 2"), "")?;
        same(
            &asked(&mut through, "SELECT COUNT(*) FROM lua.t")?
                .concat()
                .concat(),
            "1",
        )
    })
}

/// A script that raises or does not end is named, and the statement goes on, or fails, or the session ends.
fn fails(driver: Driver) -> Outcome {
    each(driver, |_, proxy| {
        const RAISES: &str = "function read_query(packet)\n if packet:find('twice') then local x = nil + 1 end\n if packet:find('ever') then while true do end end\nend";
        for (on_error, wanted) in [
            ("forward", ["twice", "ever"]),
            (
                "error",
                ["1105 07000 The script 'f' has failed. Check the proxy's log"; 2],
            ),
        ] {
            load(proxy, &[("f", RAISES, on_error)])?;
            let mut client = log_in(proxy)?;
            for (sql, wanted) in ["SELECT 'twice'", "SELECT 'ever'"].into_iter().zip(wanted) {
                same(&told(&mut client, sql), wanted)?;
                same(&told(&mut client, "SELECT 1"), "1")?;
            }
        }
        load(proxy, &[("f", RAISES, "disconnect")])?;
        let mut client = log_in(proxy)?;
        same(&told(&mut client, "SELECT 1"), "1")?;
        same(
            &told(&mut client, "SELECT 'twice'"),
            "1105 07000 The script 'f' has failed. Check the proxy's log",
        )?;
        if client.ask("SELECT 1").is_ok() {
            return Err("the session goes on".into());
        }
        let errors = proxy.admin("SELECT Variable_Value FROM stats_mysql_global WHERE Variable_Name = 'Millrace_script_errors'")?;
        same(errors.trim(), "5")?;
        let told = proxy.admin("SELECT script_name, hook, errors, calls > errors, sum_time >= max_time, max_time > 1000000, last_error LIKE '(read_query) %' FROM stats_millrace_scripts WHERE hook = 'read_query'")?;
        same(told.trim(), "f\tread_query\t5\t1\t1\t1\t1")?;
        let told = proxy.admin(&format!("EXPLAIN ROUTE 'SELECT 1' AS {}", by_hand::USER))?;
        expect(told.contains("f sees the statement first"), || told.clone())
    })
}

/// Packets that one script queues are the next one's queries, and results come back the other way.
fn chains(driver: Driver) -> Outcome {
    each(driver, |_, proxy| {
        let adds = |what: &str| {
            format!(
                "function read_query(packet)
                   if packet:byte() ~= proxy.COM_QUERY then return end
                   proxy.queries:append(1, packet .. ' + {what}')
                   return proxy.PROXY_SEND_QUERY
                 end
                 function read_query_result(inj)
                   local row = inj.resultset.rows()
                   proxy.response = {{ type = proxy.MYSQLD_PACKET_OK, resultset = {{ fields = {{ {{ name = 'n' }} }}, rows = {{ {{ row[1] .. ' {what}' }} }} }} }}
                   return proxy.PROXY_SEND_RESULT
                 end"
            )
        };
        load(
            proxy,
            &[("a", &adds("10"), "error"), ("b", &adds("200"), "error")],
        )?;
        same(&told(&mut log_in(proxy)?, "SELECT 1"), "211 200 10")
    })
}

/// Files that a script requires are read with it; an error in one is told with file and line.
fn requires(driver: Driver) -> Outcome {
    let (_server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    let directory = proxy.data();
    let text = |error: std::io::Error| error.to_string();
    let write = |name: &str, lua: &str| std::fs::write(directory.join(name), lua).map_err(text);
    std::fs::create_dir_all(directory.join("tools")).map_err(text)?;
    write(
        "tools/answer.lua",
        "return { of = function(n) return n * 2 end }",
    )?;
    write(
        "main.lua",
        "local answer = require('tools.answer')
         local commands = require('proxy.commands')
         function read_query(packet)
           if commands.parse(packet).query ~= 'SELECT answer' then return end
           proxy.response = { type = proxy.MYSQLD_PACKET_OK, resultset = { fields = { { name = 'n' } }, rows = { { answer.of(21) } } } }
           return proxy.PROXY_SEND_RESULT
         end",
    )?;
    let sql = format!(
        "DELETE FROM mysql_scripts; INSERT INTO mysql_scripts (script_name, path, on_error) VALUES ('m', '{}', 'error'); LOAD MYSQL SCRIPTS TO RUNTIME",
        directory.join("main.lua").display()
    );
    proxy.admin(&sql)?;
    same(&told(&mut log_in(&proxy)?, "SELECT answer"), "42")?;
    // A file that does not compile refuses the LOAD, and the one before stays.
    write("tools/answer.lua", "return {\n of = }")?;
    match proxy.admin(&sql) {
        Err(words) if words.contains("tools/answer.lua:2:") => {}
        other => return Err(format!("{other:?}")),
    }
    same(&told(&mut log_in(&proxy)?, "SELECT answer"), "42")?;
    write(
        "tools/answer.lua",
        "return { of = function(n) return n * 3 end }",
    )?;
    proxy.admin(&sql)?;
    same(&told(&mut log_in(&proxy)?, "SELECT answer"), "63")
}

/// Log4LUA: a line in the proxy's log, and a file of the script's.
fn logs(driver: Driver) -> Outcome {
    let (_server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    let text = "local logger = require('log4lua.logger')
        local file = require('log4lua.appenders.file')
        local audit = logger.new(file.new('audit-%s.log', '%Y', '%LEVEL %MESSAGE %LINE\\n'), 'audit')
        function read_query(packet)
          audit:warn(packet:sub(2))
          logger.getLogger('any'):info('asked ' .. packet:sub(2))
        end";
    load(&proxy, &[("l", text, "error")])?;
    same(&told(&mut log_in(&proxy)?, "SELECT 5"), "5")?;
    expect(proxy.says("[INFO] asked SELECT 5 at [l]:6"), || proxy.log())?;
    let folder = proxy.data().join("script-logs");
    let written = || {
        let entry = std::fs::read_dir(&folder).ok()?.next()?.ok()?;
        std::fs::read_to_string(entry.path()).ok()
    };
    let began = std::time::Instant::now();
    while written().is_none_or(|text| text.is_empty()) && began.elapsed() < HANGS {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let text = written().unwrap_or_default();
    expect(text.contains("WARN SELECT 5 5\n"), || text.clone())
}

/// A100: the SMTP appender sends what is a warning or more, to servers that the operator names, as
/// often as he lets it; who is not named is told once.
fn mails(driver: Driver) -> Outcome {
    let (_server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    let (port, mails) = mail_server().map_err(|error| error.to_string())?;
    let text = format!(
        "local logger = require('optivo.common.log4lua.logger')
        local smtp = require('optivo.common.log4lua.appenders.smtp')
        local mail = {{
          headers = {{ from = 'myserver@mydomain.com', to = 'admin@mydomain.com', subject = '%LEVEL: %MESSAGE' }},
          body = 'at %FILE:%LINE',
        }}
        local LOG = logger.new(smtp.new(mail, logger.WARN, '127.0.0.1', {port}), 'core')
        function read_query(packet)
          LOG:info(packet:sub(2))
          if packet:find('warn') then LOG:warn(packet:sub(2)) end
        end"
    );
    load(&proxy, &[("l", &text, "error")])?;
    let mut client = log_in(&proxy)?;
    same(&told(&mut client, "SELECT 'warn', 1"), "warn 1")?;
    let refused =
        format!("Log4LUA: no mail is sent: 127.0.0.1:{port} is none of mysql-script_mail_hosts");
    expect(proxy.says(&refused), || proxy.log())?;
    let names = |list: &str| {
        proxy.admin(&format!(
            "SET mysql-script_mail_hosts = '{list}'; SET mysql-script_mails_per_minute = 2; LOAD MYSQL VARIABLES TO RUNTIME"
        ))
    };
    match names("127.0.0.1:x") {
        Err(words) if words.contains("'127.0.0.1:x' is no host") => {}
        other => return Err(format!("{other:?}")),
    }
    names(&format!("127.0.0.1:{port}"))?;
    // The third has no room in its minute.
    for n in 2..=4 {
        same(&told(&mut client, "SELECT 'silent'"), "silent")?;
        same(
            &told(&mut client, &format!("SELECT 'warn', {n}")),
            &format!("warn {n}"),
        )?;
    }
    for n in 2..=3 {
        let mail = mails
            .recv_timeout(HANGS)
            .map_err(|error| error.to_string())?;
        for has in [
            "MAIL FROM:<myserver@mydomain.com>".to_owned(),
            "RCPT TO:<admin@mydomain.com>".to_owned(),
            format!("Subject: WARN: SELECT 'warn', {n}\r\n"),
            "at [l]:10".to_owned(),
        ] {
            expect(mail.contains(&has), || format!("{has}: {mail}"))?;
        }
    }
    // A mail server that is gone is no client's trouble.
    names("127.0.0.1:1")?;
    same(&told(&mut client, "SELECT 'warn', 5"), "warn 5")?;
    let rest: Vec<String> = mails.try_iter().collect();
    expect(rest.is_empty(), || format!("{rest:?}"))
}

/// A mail server that takes all, and each conversation with it.
fn mail_server() -> std::io::Result<(u16, Receiver<String>)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    let (tell, told) = channel();
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            drop(tell.send(taken(client).unwrap_or_else(|error| error.to_string())));
        }
    });
    Ok((port, told))
}

fn taken(client: TcpStream) -> std::io::Result<String> {
    let (mut lines, mut client) = (BufReader::new(client.try_clone()?), client);
    let (mut heard, mut is_text) = (String::new(), false);
    client.write_all(b"220 mail\r\n")?;
    loop {
        let begins = heard.len();
        if lines.read_line(&mut heard)? == 0 {
            return Ok(heard);
        }
        let line = heard[begins..].trim_end();
        let says = match line {
            _ if is_text && line != "." => continue,
            "DATA" => "354 go on\r\n",
            "QUIT" => "221 bye\r\n",
            _ => "250 ok\r\n",
        };
        is_text = line == "DATA";
        client.write_all(says.as_bytes())?;
    }
}

/// The document's script, with quotes and dashes as Lua has them.
const DOCUMENTS_COPY: &str = r#"function read_query(packet)
    if (packet:byte() == proxy.COM_QUERY) then
        local query = packet:sub(2)
        -- We append the query so read_query_result gets triggered.
        proxy.queries:append(1, string.char(proxy.COM_QUERY) .. query)
        return proxy.PROXY_SEND_QUERY
    end
end

function _read_query_result(inj)
    local resultSet = assert(inj.resultset)
    local newFields = nil
    local fieldCount = 1
    local fields = resultSet.fields
    if (fields) then
        newFields = {}
        while fields[fieldCount] do
            table.insert(
                newFields,
                {
                    type = fields[fieldCount].type,
                    name = fields[fieldCount].name
                }
            )
            fieldCount = fieldCount + 1
        end
    end

    local newRows = nil
    if (resultSet.rows) then
        newRows = {}
        for row in resultSet.rows do
            table.insert(newRows, row)
        end
    end

    if (newFields) then
        proxy.response = {
            type = proxy.MYSQLD_PACKET_OK,
            resultset = {
                fields = newFields,
                rows = newRows
            }
        }
        return proxy.PROXY_SEND_RESULT
    end
end
"#;

/// A94, A98: as printed its second hook is never called and results go by; with the hook's name put
/// right the copies are the same, byte for byte.
fn documents_copy(driver: Driver) -> Outcome {
    each(driver, |server, proxy| {
        server.root("CREATE DATABASE IF NOT EXISTS test; DROP TABLE IF EXISTS test.seed; CREATE TABLE test.seed (a INT AUTO_INCREMENT PRIMARY KEY, b VARCHAR(20))")?;
        let mut direct = Raw::log_in(server.port).map_err(|error| error.to_string())?;
        let put_right = DOCUMENTS_COPY.replace("_read_query_result", "read_query_result");
        server.root("INSERT INTO test.seed VALUES (1, 'one')")?;
        for text in [DOCUMENTS_COPY, &put_right] {
            load(proxy, &[("seed", text, "error")])?;
            let mut through = log_in(proxy)?;
            for sql in [
                "DO 1",
                "SELECT * FROM test.seed WHERE a = 1",
                "SELECT b, a + 1 FROM test.seed WHERE a > 7",
                "SELECT nosuch FROM test.seed",
            ] {
                let (wanted, found) = (packets(&mut direct, sql)?, packets(&mut through, sql)?);
                if wanted != found {
                    return Err(format!("{sql}\ndirect:  {wanted:x?}\nthrough: {found:x?}"));
                }
            }
        }
        Ok(())
    })
}

/// A script that counts, and one that also reads and changes.
const COUNTS: &str = "
local seen = 0
function read_query(packet)
  if packet:sub(2) == 'SELECT SEEN' then
    packet = string.char(proxy.COM_QUERY) .. 'SELECT ' .. seen
  end
  proxy.queries:append(1, packet)
  return proxy.PROXY_SEND_QUERY
end
function read_query_result(inj) seen = seen + inj.resultset.row_count end
";
const MARKS: &str = "
function read_query(packet) proxy.queries:append(1, packet) return proxy.PROXY_SEND_QUERY end
function read_query_result(inj)
  local all = {}
  for i, one in ipairs(inj.resultsets) do
    if not one.fields then
      all[i] = { affected_rows = 7 }
    else
      local rows = {}
      for row in one.rows do rows[#rows + 1] = { row[1] .. '!' } end
      all[i] = { fields = { { name = one.fields[1].name } }, rows = rows }
    end
  end
  if #all < 2 then return end
  proxy.response = { type = proxy.MYSQLD_PACKET_OK, resultsets = all }
  return proxy.PROXY_SEND_RESULT
end
";

/// All results of a CALL or of several statements come to a script, and its own go to the client. A result that
/// is larger than a script may have passes one that only counts, and is refused to one that reads.
fn several_and_large(driver: Driver) -> Outcome {
    each(driver, |server, proxy| {
        server.root("CREATE DATABASE IF NOT EXISTS test; DROP PROCEDURE IF EXISTS test.two")?;
        let mut direct = Raw::log_in(server.port).map_err(|error| error.to_string())?;
        asked(
            &mut direct,
            "CREATE PROCEDURE test.two() BEGIN SELECT 'a' AS one; SELECT 'b' AS two; END",
        )?;
        let large = "SELECT REPEAT('x', 700000) UNION ALL SELECT REPEAT('y', 700000)";
        let narrow = "UPDATE mysql_scripts SET result_mb_max = 1; LOAD MYSQL SCRIPTS TO RUNTIME";
        load(proxy, &[("counts", COUNTS, "forward")])?;
        proxy.admin(narrow)?;
        let mut client = log_in(proxy)?;
        let rows = client.ask(large).map_err(|error| error.to_string())?;
        expect(rows.len() == 2 && rows[1][0].len() == 700_000, || {
            "it is cut".to_owned()
        })?;
        let seen = told(&mut client, "SELECT SEEN");
        expect(seen == "2", || format!("it has seen {seen} rows"))?;
        // A script that may stop an answer keeps it, and so has room for it or not.
        for (text, on_error) in [(COUNTS, "error"), (MARKS, "forward")] {
            load(proxy, &[("reads", text, on_error)])?;
            proxy.admin(narrow)?;
            let words = told(&mut log_in(proxy)?, large);
            expect(
                words.contains("more bytes than its result_mb_max allows"),
                || words,
            )?;
        }
        let text = |error: std::io::Error| error.to_string();
        let mut client = Raw::log_in_for_several(proxy.port).map_err(text)?;
        let mut ask = |sql: &str, results: usize| {
            client.query(sql).map_err(text)?;
            let mut ends = 0;
            let mut all = String::new();
            while ends < results {
                let packet = client.packet().map_err(text)?;
                all.push_str(&packet.escape_ascii().to_string());
                expect(packet.first() != Some(&0xff), || all.clone())?;
                let is_eof = packet.first() == Some(&0xfe) && packet.len() < 9;
                let is_ok = packet.first() == Some(&0) && packet.len() < 12;
                // Of two ends of a result the second counts.
                ends += usize::from(is_ok) * 2 + usize::from(is_eof);
            }
            Ok::<_, String>(all)
        };
        let call = ask("CALL test.two()", 6)?;
        expect(call.contains("a!") && call.contains("b!"), || {
            format!("a CALL: {call}")
        })?;
        let both = ask("SELECT 'c'; DO 1; SELECT 'd'", 6)?;
        expect(both.contains("c!") && both.contains("d!"), || {
            format!("statements: {both}")
        })?;
        let one = ask("SELECT 'e'", 2)?;
        expect(!one.contains("e!"), || format!("one: {one}"))
    })
}

/// The document's script for LuaSQL, with quotes and dashes as Lua has them.
const DOCUMENTS_LUASQL: &str = r#"require("luasql.mysql")
local _sqlEnv = assert(luasql.mysql())
local _con = nil

function read_auth(auth)
    local host, port = string.match(proxy.backends[1].address, "(.*):(.*)")
    -- We explicitly connect to db "test" since mysqlslap drops the database
    -- and LuaSQL needs the db to exists beforehand. Anyway this is just a
    -- quick tests, so don't bother.
    _con = assert(_sqlEnv:connect("test", auth.username, auth.password, host, port))
end

function disconnect_client()
    assert(_con:close())
end

function read_query(packet)
    if (packet:byte() == proxy.COM_QUERY) then
        local query = packet:sub(2)
        local result = nil
        local cur = assert(_con:execute(query))
        if (type(cur) == "number") then
            proxy.response.type = proxy.MYSQLD_PACKET_RAW;
            proxy.response.packets = {
                "\000" .. -- fields
                string.char(cur) ..
                "\000" -- insert_id
            }
            result = proxy.PROXY_SEND_RESULT
        else
            -- Build up the result set.
            local fields = {}
            local colNames = cur:getcolnames()
            local colTypes = cur:getcoltypes()
            for a = 1, #colNames, 1 do
                table.insert(fields, {name = colNames[a], type=proxy.MYSQL_TYPE_STRING})
            end
            local curRow = {}
            local rows = {}
            while (cur:fetch(curRow)) do
                table.insert(rows, curRow)
            end
            proxy.response = {
                type = proxy.MYSQLD_PACKET_OK,
                resultset = {
                    fields = fields,
                    rows = rows
                }
            }
            result = proxy.PROXY_SEND_RESULT
        end

        if (result ~= nil) then
            return result
        end
    end
end
"#;

/// A95, A96, A98: it runs as it stands, by what stands in for the password, and the columns keep
/// their types. All rows of a result are its last one, as in the original.
fn documents_luasql(driver: Driver) -> Outcome {
    each(driver, |server, proxy| {
        server.root("CREATE DATABASE IF NOT EXISTS test; DROP TABLE IF EXISTS test.seed; CREATE TABLE test.seed (a INT PRIMARY KEY, b VARCHAR(20), c DECIMAL(5,2))")?;
        load(proxy, &[("seed", DOCUMENTS_LUASQL, "error")])?;
        let mut direct = Raw::log_in(server.port).map_err(|error| error.to_string())?;
        let mut through = log_in(proxy)?;
        let inserted = packets(&mut through, "INSERT INTO seed VALUES (1, 'one', 1.5)")?;
        expect(inserted[0].starts_with(&[0, 1, 0]), || {
            format!("{inserted:x?}")
        })?;
        let sql = "SELECT a, b, c FROM test.seed WHERE a = 1";
        let (wanted, found) = (packets(&mut direct, sql)?, packets(&mut through, sql)?);
        if wanted != found {
            return Err(format!("direct:  {wanted:x?}\nthrough: {found:x?}"));
        }
        same(
            &told(&mut through, "INSERT INTO seed VALUES (2, 'two', NULL)"),
            "",
        )?;
        let rows = through.ask("SELECT a, b FROM seed ORDER BY a");
        let rows = rows.map_err(|error| error.to_string())?;
        same(&format!("{rows:?}"), r#"[["2", "two"], ["2", "two"]]"#)?;
        // assert() of a refused statement ends the hook, and the session goes on.
        same(
            &told(&mut through, "SELECT nosuch"),
            "1105 07000 The script 'seed' has failed. Check the proxy's log",
        )?;
        same(&told(&mut through, "SELECT 5"), "5")
    })
}

/// Answers a query with what its text returns.
const ASKS: &str = "require('luasql.mysql')
    env = luasql.mysql()
    con = assert(env:connect('test'))
    at_load = assert(con:execute('SELECT CONNECTION_ID() > 0')):fetch()
    function one(sql, ...) local cur, words = (... or con):execute(sql) if type(cur) ~= 'userdata' then return cur or words end return cur:fetch() end
    function read_query(packet)
      if packet:byte() ~= proxy.COM_QUERY then return end
      local chunk = assert(loadstring(packet:sub(2)))
      setfenv(chunk, getfenv(1))
      local said = { chunk() }
      for i = 1, 9 do said[i] = tostring(said[i]) end
      proxy.response = { type = proxy.MYSQLD_PACKET_OK, resultset = { fields = { { name = 'said' } }, rows = { { table.concat(said, ' ') } } } }
      return proxy.PROXY_SEND_RESULT
    end";

/// A99: statements at the top of a script and in hooks; transactions, errors, other servers and
/// users; and what a session leaves on a connection is gone for the next one.
fn asks(driver: Driver) -> Outcome {
    each(driver, |server, proxy| {
        server.root("CREATE DATABASE IF NOT EXISTS test; DROP TABLE IF EXISTS test.own; CREATE TABLE test.own (a INT PRIMARY KEY AUTO_INCREMENT, b VARCHAR(10)) ENGINE = InnoDB")?;
        load(proxy, &[("asks", ASKS, "error")])?;
        let mut client = log_in(proxy)?;
        let port = server.port;
        let (user, password) = (by_hand::USER, "");
        let connect = |user: &str, password: &str, port: u16| {
            format!(
                "local c, words = env:connect('test', '{user}', '{password}', '127.0.0.1', {port}) return c and one('SELECT USER()', c) or words"
            )
        };
        for (lua, wanted) in [
            ("return at_load".to_owned(), "1"),
            ("con:setautocommit(false) return con:execute(\"INSERT INTO own (b) VALUES ('x'), ('y')\"), con:getlastautoid()".into(), "2 1"),
            ("return one('SELECT COUNT(*) FROM own')".into(), "2"),
            ("return con:rollback(), one('SELECT COUNT(*) FROM own')".into(), "true 0"),
            ("local cur = con:execute(\"SELECT 1 AS a, 'x' AS b, NULL AS c\") return table.concat(cur:getcolnames(), ','), cur:getcoltypes()[1]:match('%a+'), cur:fetch()".into(), "a,b,c number 1 x nil"),
            ("return one('SELECT nosuch')".into(), "LuaSQL: error executing query. MySQL: Unknown column 'nosuch' in "),
            (connect(user, password, port), user),
            (connect(user, "wrong", port), "LuaSQL: error connecting to database. MySQL: access denied for user"),
            (connect("nosuch", "", port), "LuaSQL: error connecting to database. MySQL: access denied for user"),
            (connect(user, password, 1), "LuaSQL: error connecting to database. MySQL: 127.0.0.1:1 is none of the servers"),
            ("return env:connect('nosuch_schema')".into(), "nil LuaSQL: error connecting to database. MySQL: "),
            ("return one('SET @left = 7'), one('SELECT @left')".into(), "0 7"),
            ("collectgarbage() collectgarbage()".into(), "nil"),
            ("local all = {} for i = 1, 20 do local c, words = env:connect('test') if not c then return i, words end all[i] = c end".into(), "16 LuaSQL: error connecting to database. MySQL: a script has 16 connections in a session at most"),
        ] {
            let said = told(&mut client, &lua);
            expect(said.starts_with(wanted), || format!("{lua}\nwanted: {wanted}\nsaid:   {said}"))?;
        }
        drop(client);
        let left = told(&mut log_in(proxy)?, "return one('SELECT @left')");
        expect(left.starts_with("nil"), || left)
    })
}

/// Statements that came before are decided once, and asked and answered at once: also those that a script has seen.
fn lets_pass(driver: Driver) -> Outcome {
    each(driver, |_, proxy| {
        load(
            proxy,
            &[("sees", "function read_query(packet) end", "error")],
        )?;
        let mut client = log_in(proxy)?;
        for n in 0..50 {
            same(
                &told(&mut client, &format!("SELECT {n} + 0")),
                &n.to_string(),
            )?;
        }
        let said = proxy.admin("SELECT Variable_Value + 0 > 40 FROM stats_mysql_global WHERE Variable_Name = 'Millrace_statements_at_once'; SELECT calls >= 50 FROM stats_millrace_scripts WHERE hook = 'read_query'")?;
        same(&said, "1\n1")
    })
}

/// A script that goes to another schema on its connection, and one that drops the schema that it is in: who gets the connection
/// next is in his own.
fn leaves_schemas(driver: Driver) -> Outcome {
    each(driver, |server, proxy| {
        server.root(
            "CREATE DATABASE IF NOT EXISTS test; CREATE DATABASE away; CREATE DATABASE gone",
        )?;
        load(proxy, &[("asks", ASKS, "error")])?;
        let mut client = log_in(proxy)?;
        let there = |name: &str| {
            format!(
                "local c = assert(env:connect('{name}')) local id = one('SELECT CONNECTION_ID()', c) return id, one('SELECT DATABASE()', c), c:close()"
            )
        };
        let mut said = |lua: &str| told(&mut client, lua).replace(" nil", "");
        for (name, leaves) in [
            ("test", "USE away"),
            ("gone", "DROP DATABASE gone"),
            ("", "USE away"),
        ] {
            let wanted = if name.is_empty() {
                "".to_owned()
            } else {
                format!(" {name}")
            };
            let lua = format!(
                "local c = assert(env:connect('{name}')) local id = one('SELECT CONNECTION_ID()', c) c:execute('{leaves}') c:close() return id"
            );
            let left = said(&lua);
            server.root("CREATE DATABASE IF NOT EXISTS gone")?;
            // The connection may be closed instead.
            for _ in 0..20 {
                let now = said(&there(name));
                let (id, rest) = now.split_once(' ').unwrap_or((&now, ""));
                same(rest, format!("{wanted} true").trim())
                    .map_err(|error| format!("{leaves}: {error}"))?;
                if id == left {
                    break;
                }
            }
        }
        Ok(())
    })
}

/// Of two servers in one hostgroup a script gets the one that it has named, with its password.
fn names(driver: Driver) -> Outcome {
    let servers = [
        Server::start(Vendor::MariaDb)?,
        Server::start(Vendor::MariaDb)?,
    ];
    let mut wish = Wish::in_front_of(&servers[0]);
    wish.add(0, &servers[1]);
    wish.add_open_user();
    wish.users
        .push_str(",\n{ username = \"third\", password = \"its own\", default_hostgroup = 0 }");
    for server in &servers {
        server.root(by_hand::CREATE_USER)?;
        server.root("CREATE USER third@'%' IDENTIFIED BY 'its own'")?;
    }
    let proxy = Proxy::start(driver, &wish)?;
    load(&proxy, &[("asks", &ASKS.replace("'test'", "''"), "error")])?;
    let mut client = log_in(&proxy)?;
    for server in [&servers[0], &servers[1], &servers[0]] {
        let port = server.port;
        let lua = format!(
            "local c = assert(env:connect('', 'third', 'its own', '127.0.0.1', {port})) return one('SELECT @@port', c), one('SELECT CURRENT_USER()', c)"
        );
        let said = told(&mut client, &lua);
        expect(said.starts_with(&format!("{port} third@% nil")), || said)?;
    }
    Ok(())
}

/// A99: other sessions go on while a script waits for a server.
fn waits(driver: Driver) -> Outcome {
    let (_server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    proxy.admin(
        "UPDATE global_variables SET variable_value = 1 WHERE variable_name = 'mysql-threads'",
    )?;
    load(&proxy, &[("asks", &ASKS.replace("'test'", "''"), "error")])?;
    let mut slow = log_in(&proxy)?;
    let mut quick: Vec<Raw> = (0..4).map(|_| log_in(&proxy)).collect::<Result<_, _>>()?;
    let began = std::time::Instant::now();
    let asks = std::thread::spawn(move || {
        told(
            &mut slow,
            "return one(\"SELECT SLEEP(3), 'slept'\"), one('SELECT 1')",
        )
    });
    std::thread::sleep(std::time::Duration::from_millis(500));
    for client in &mut quick {
        let said = told(client, "return one('SELECT 2')");
        expect(said.starts_with('2'), || said)?;
    }
    expect(!asks.is_finished(), || {
        format!("all waited: {:?}", began.elapsed())
    })?;
    let said = asks.join().map_err(|_| "no answer")?;
    expect(said.starts_with("0 1"), || said)
}

const SHARES: &str = "proxy.global.n = proxy.global.n or 0
    function read_query(packet)
      if packet:byte() ~= proxy.COM_QUERY then return end
      local sql = packet:sub(2)
      if sql == 'COUNT' then
        proxy.global.n = proxy.global.n + 1
        proxy.response = { type = proxy.MYSQLD_PACKET_OK, resultset = { fields = { { name = 'n' } }, rows = { { proxy.global.n } } } }
        return proxy.PROXY_SEND_RESULT
      elseif sql == 'WHO' then
        local c = proxy.connection.client
        proxy.response = { type = proxy.MYSQLD_PACKET_OK, resultset = { fields = { { name = 'n' } }, rows = { { c.username .. c.thread_id .. c.default_db .. (proxy.global.left or 0) } } } }
        return proxy.PROXY_SEND_RESULT
      end
      proxy.queries:append(1, packet)
      proxy.queries:append(2, string.char(proxy.COM_QUERY) .. 'DO 1')
      return proxy.PROXY_SEND_QUERY
    end
    function read_query_result(inj)
      if inj.id == 2 then return proxy.PROXY_IGNORE_RESULT end
      local row = inj.resultset.rows()
      proxy.response = { type = proxy.MYSQLD_PACKET_OK, resultset = { fields = { { name = 'n' } }, rows = { { row[1] .. '!' } } } }
      return proxy.PROXY_SEND_RESULT
    end
    function disconnect_client() proxy.global.left = (proxy.global.left or 0) + 1 end";

/// A number that sessions of several cores count together loses nothing; each session sees its own
/// client and its own results.
fn shares(driver: Driver) -> Outcome {
    let (_server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    let threads = proxy.admin(
        "SELECT variable_value FROM runtime_global_variables WHERE variable_name = 'mysql-threads'",
    )?;
    expect(
        threads
            .trim()
            .parse::<u32>()
            .is_ok_and(|threads| threads > 1),
        || threads.clone(),
    )?;
    load(&proxy, &[("shares", SHARES, "error")])?;
    let clients = (0..8)
        .map(|_| log_in(&proxy))
        .collect::<Result<Vec<_>, _>>()?;
    let works = clients.into_iter().map(|mut client| {
        std::thread::spawn(move || {
            let mut counted = Vec::new();
            for turn in 0..50 {
                counted.push(told(&mut client, "COUNT"));
                let said = told(&mut client, &format!("SELECT {turn}"));
                same(&said, &format!("{turn}!"))?;
                let id = client.id;
                let said = told(&mut client, "WHO");
                same(&said, &format!("{}{id}0", by_hand::USER))?;
            }
            // It waits for the others before it leaves.
            Ok::<_, String>((counted, client))
        })
    });
    let works: Vec<_> = works.collect();
    let mut counted = Vec::new();
    let mut clients = Vec::new();
    for work in works {
        let (own, client) = work.join().map_err(|_| "a thread has ended")??;
        counted.extend(own.iter().filter_map(|n| n.parse::<u32>().ok()));
        clients.push(client);
    }
    counted.sort_unstable();
    same(
        &format!("{counted:?}"),
        &format!("{:?}", (1..=400).collect::<Vec<u32>>()),
    )?;
    let busy = proxy.admin("SELECT COUNT(*) FROM stats_mysql_cores WHERE sessions > 0")?;
    expect(busy.trim() != "1", || {
        format!("all sessions were on one core: {busy}")
    })?;
    drop(clients);
    let mut client = log_in(&proxy)?;
    let wanted = format!("{}{}8", by_hand::USER, client.id);
    let began = std::time::Instant::now();
    loop {
        let said = told(&mut client, "WHO");
        if said == wanted {
            return Ok(());
        }
        expect(began.elapsed() < HANGS, || format!("{said}, not {wanted}"))?;
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

/// After COM_CHANGE_USER scripts run anew, for the new user: nothing of them is the old one's, neither
/// names nor connections.
fn changes(driver: Driver) -> Outcome {
    let server = Server::start(Vendor::MariaDb)?;
    server.root("CREATE USER next@'%' IDENTIFIED BY 'secret'")?;
    let mut wish = Wish::in_front_of(&server);
    wish.users
        .push_str(",\n{ username = \"next\", password = \"secret\", default_hostgroup = 0 }");
    let proxy = Proxy::start(driver, &wish)?;
    let text = "require('luasql.mysql')
        local con
        function read_auth(auth) con = assert(luasql.mysql():connect('', auth.username, auth.password)) end
        function read_query(packet)
          if packet:sub(2) ~= 'WHO' then return end
          local server = con:execute('SELECT USER()'):fetch()
          proxy.response = { type = proxy.MYSQLD_PACKET_ERR, errmsg = proxy.connection.client.username .. ' ' .. server:match('^[^@]*') }
          return proxy.PROXY_SEND_RESULT
        end";
    load(&proxy, &[("who", text, "error")])?;
    let mut raw = raw::Raw::log_in(proxy.port, 0)?;
    for user in ["app", "next", "app"] {
        raw.change_user(user)?;
        let said = raw.query("WHO")?;
        expect(said.contains(&format!("{user} {user}")), || said.clone())?;
    }
    Ok(())
}

/// A script that does not compile changes nothing.
fn loads(driver: Driver) -> Outcome {
    let (_server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    load(&proxy, &[("ok", REWRITES, "error")])?;
    let refused = load(
        &proxy,
        &[("bad", "local x = 1\nfunction read_query(", "error")],
    );
    match refused {
        Err(words) if words.contains("[bad]:2:") => {}
        other => return Err(format!("{other:?}")),
    }
    same(&told(&mut log_in(&proxy)?, "SLECT 5"), "5")?;
    // A hook that will never be called is accepted, and named.
    load(
        &proxy,
        &[("late", "function read_handshake() end", "error")],
    )?;
    let said = proxy.says(
        "script_name 'late'): has read_handshake(), which is called only where logins are relayed",
    );
    expect(said, || proxy.log())?;
    // So does who looks at a file without a server.
    let directory = proxy.data();
    let (fine, bad) = (directory.join("fine.lua"), directory.join("bad.lua"));
    std::fs::write(&fine, REWRITES).map_err(|error| error.to_string())?;
    std::fs::write(&bad, "local x = 1\nfunction read_query(").map_err(|error| error.to_string())?;
    let check = |file: &Path| {
        let mut command = Command::new(program()?);
        command.arg("script").arg("check").arg(file);
        output(&mut command, HANGS)
    };
    let (well, words) = check(&fine)?;
    expect(well && words.contains("fine.lua: well"), || words)?;
    let (well, words) = check(&bad)?;
    expect(!well && words.contains("bad.lua:2:"), || words)
}
