//! Files of scripts and those that they are read from, what they say and wait for, and what they are
//! refused, with real clients.
#![forbid(unsafe_code)]

use conformance::by_hand::{self, Raw};
use conformance::process::TempFolder;
use conformance::proxy::{Driver, Proxy};
use conformance::servers::Vendor;
use conformance::trials::{self, expect, same};
use conformance::watch::HANGS;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

type Outcome = Result<(), String>;

fn main() {
    trials::run(&[
        ("a_published_logger_runs_as_it_is", logger),
        ("files_are_where_the_row_allows_them", folders),
        ("who_sleeps_sleeps_alone", sleeps),
        ("what_is_refused_says_its_name", refused),
        ("a_file_that_changes_is_in_force_without_a_load", changed),
        ("what_a_script_does_to_lua_is_its_own", apart),
    ])
}

/// Puts a script in force, with the columns that are given.
fn load(proxy: &Proxy, text: &str, given: &str) -> Outcome {
    let text = text.replace('\'', "''");
    let sql = format!(
        "DELETE FROM mysql_scripts; INSERT INTO mysql_scripts (script_name, body, on_error) VALUES ('s', '{text}', 'error'); \
         UPDATE mysql_scripts SET script_name = 's'{given}; LOAD MYSQL SCRIPTS TO RUNTIME"
    );
    proxy.admin(&sql).map(drop)
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

/// The last error of the script's `read_query`.
fn last_error(proxy: &Proxy, words: &str) -> Outcome {
    let asked = "SELECT last_error FROM stats_millrace_scripts WHERE hook = 'read_query'";
    let last = proxy.admin(asked)?;
    expect(last.contains(words), || last)
}

/// Waits until a file has this text.
fn has(file: &Path, wanted: &str) -> Outcome {
    let (began, read) = (Instant::now(), || {
        fs::read_to_string(file).unwrap_or_default()
    });
    while read() != wanted && began.elapsed() < HANGS {
        std::thread::sleep(Duration::from_millis(10));
    }
    same(&read(), wanted)
}

/// A logger as people wrote them: its file is opened once, at the top.
const LOGGER: &str = "local DEBUG = os.getenv('DEBUG') or 0
DEBUG = DEBUG + 0
local log_file = '/var/log/mysql-proxy/mysql.log'
local fh = io.open(log_file, 'a+')
function read_query(packet)
  if string.byte(packet) == proxy.COM_QUERY then
    local query = string.sub(packet, 2)
    io.write('query: ')
    print(query)
    io.stderr:write(string.format('debug %d\\n', DEBUG))
    fh:write(string.format('%s %s\\n', os.date('%Y') > '2000' and 'now' or 'then', query))
    fh:flush()
  end
end";

fn logger(driver: Driver) -> Outcome {
    for vendor in [Vendor::MariaDb, Vendor::MySql] {
        let (_server, proxy) = by_hand::one(driver, vendor)?;
        load(&proxy, LOGGER, ", settings = '{\"DEBUG\": 2}'")?;
        let mut client = log_in(&proxy)?;
        same(&told(&mut client, "SELECT 5"), "5")?;
        let file = proxy
            .data()
            .join("script-logs/var/log/mysql-proxy/mysql.log");
        has(&file, "now SELECT 5\n")?;
        for words in [
            "script 's': query: SELECT 5",
            "script 's': debug 2",
            "the file /var/log/mysql-proxy/mysql.log is written below script-logs",
        ] {
            expect(proxy.says(words), || proxy.log())?;
        }
    }
    Ok(())
}

/// The command is the name of a file: it is read, and a line put behind it.
const LISTS: &str = "function read_query(packet)
  local name = packet:sub(2)
  local words, fh, why = '', io.open(name)
  if fh then
    for line in fh:lines() do words = words .. '<' .. line .. '>' end
    fh:close()
  else
    words = why
  end
  local to = assert(io.open(name, 'a'))
  to:write('seen\\n')
  to:close()
  proxy.response = { type = proxy.MYSQLD_PACKET_OK, resultset = { fields = { { name = 'x' } }, rows = { { words } } } }
  return proxy.PROXY_SEND_RESULT
end";

fn folders(driver: Driver) -> Outcome {
    let (_server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    let folder = TempFolder::new("script-files").map_err(|error| error.to_string())?;
    let path = folder.path().display().to_string();
    let file = folder.path().join("list");
    fs::write(&file, "one\ntwo\n").map_err(|error| error.to_string())?;
    let name = file.display().to_string();
    let none = format!("{name}: No such file or directory");
    // Without a word of the operator it is another file.
    load(&proxy, LISTS, "")?;
    let mut client = log_in(&proxy)?;
    same(&told(&mut client, &name), &none)?;
    same(&told(&mut client, &name), "<seen>")?;
    // The script raises what `io.open` has said of it.
    let said = told(&mut client, "/etc/../etc/passwd");
    expect(said.contains("has failed"), || said)?;
    last_error(&proxy, "has '..' in it")?;
    same(&fs::read_to_string(&file).unwrap_or_default(), "one\ntwo\n")?;
    let wrong = load(&proxy, LISTS, ", folders = 'logs'")
        .err()
        .unwrap_or_default();
    expect(wrong.contains("folders 'logs' is no folder"), || wrong)?;
    load(&proxy, LISTS, &format!(", folders = '{path}'"))?;
    let mut client = log_in(&proxy)?;
    same(&told(&mut client, &name), "<one><two>")?;
    same(&told(&mut client, &name), "<one><two><seen>")?;
    same(&told(&mut client, "list"), "<one><two><seen><seen>")?;
    has(&file, "one\ntwo\nseen\nseen\nseen\n")?;
    let said = told(&mut client, &path);
    expect(
        said.contains("has failed") || said.contains("it is a folder"),
        || said,
    )
}

fn sleeps(driver: Driver) -> Outcome {
    let (_server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    proxy.admin(
        "UPDATE global_variables SET variable_value = 1 WHERE variable_name = 'mysql-threads'",
    )?;
    let text = "function read_query(packet)
        if packet:sub(2) == 'SELECT 3' then os.execute('sleep 3') end
      end";
    load(&proxy, text, "")?;
    let (mut slow, mut quick) = (log_in(&proxy)?, log_in(&proxy)?);
    let sleeper = std::thread::spawn(move || told(&mut slow, "SELECT 3"));
    std::thread::sleep(Duration::from_millis(300));
    for _ in 0..5 {
        same(&told(&mut quick, "SELECT 2"), "2")?;
    }
    expect(!sleeper.is_finished(), || "all slept, or nobody".into())?;
    let said = sleeper.join().map_err(|_| "no answer")?;
    same(&said, "3")
}

fn refused(driver: Driver) -> Outcome {
    let (_server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    let text = "function read_query(packet)
        local run = loadstring(packet:sub(2))
        if run then run() end
      end";
    load(&proxy, text, "")?;
    let mut client = log_in(&proxy)?;
    for call in [
        "io.popen",
        "os.execute",
        "os.exit",
        "debug.sethook",
        "string.dump",
        "io.nothing",
    ] {
        let said = told(&mut client, &format!("{call}('reboot')"));
        expect(said.contains("1105"), || said)?;
        last_error(&proxy, &format!("{call} is not available to this script"))?;
    }
    let asked = "SELECT errors FROM stats_millrace_scripts WHERE hook = 'read_query'";
    let counted = proxy.admin(asked)?;
    same(counted.trim(), "6")?;
    // The session goes on.
    same(&told(&mut client, "SELECT 5"), "5")
}

/// A script that answers each text with a word.
fn answers(word: &str) -> String {
    format!(
        "local words = require('words')
         function read_query(packet)
           if packet:byte() ~= proxy.COM_QUERY then return end
           proxy.response = {{ type = proxy.MYSQLD_PACKET_OK, resultset = {{ fields = {{ {{ name = 'x' }} }}, rows = {{ {{ '{word}' .. words }} }} }} }}
           return proxy.PROXY_SEND_RESULT
         end"
    )
}

fn changed(driver: Driver) -> Outcome {
    let (_server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    let folder = TempFolder::new("script-changed").map_err(|error| error.to_string())?;
    let write = |name: &str, text: &str| {
        // As editors do: it is whole when it is there.
        let (new, file) = (folder.path().join("new"), folder.path().join(name));
        fs::write(&new, text)
            .and_then(|()| fs::rename(&new, &file))
            .map_err(|error| error.to_string())
    };
    write("words.lua", "return '!'")?;
    write("s.lua", &answers("one"))?;
    let path = folder.path().join("s.lua");
    proxy.admin(&format!(
        "INSERT INTO mysql_scripts (script_name, path, on_error) VALUES ('s', '{}', 'error'); LOAD MYSQL SCRIPTS TO RUNTIME",
        path.display()
    ))?;
    let mut before = log_in(&proxy)?;
    same(&told(&mut before, "SELECT 1"), "one!")?;
    let becomes = |wanted: &str| {
        let began = Instant::now();
        loop {
            let said = told(&mut log_in(&proxy)?, "SELECT 1");
            if said == wanted || began.elapsed() > HANGS {
                return same(&said, wanted);
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    };
    write("s.lua", &answers("two"))?;
    becomes("two!")?;
    // A session keeps the one that it has met.
    same(&told(&mut before, "SELECT 1"), "one!")?;
    write("words.lua", "return '?'")?;
    becomes("two?")?;
    write("s.lua", "function read_query(")?;
    let words = "a script's file has changed, and the scripts before stay in force";
    expect(proxy.says(words), || proxy.log())?;
    becomes("two?")?;
    write("s.lua", &answers("three"))?;
    becomes("three?")
}

/// Changes Lua itself, and keeps much.
const RUDE: &str = "_G.read_query_result = function() error('not mine') end
    string.format, string.upper, table.concat = nil, nil, nil
    getmetatable('').__index = {}
    proxy.global.kept = {}
    for i = 1, 1e6 do proxy.global.kept[i] = i end
    function read_query() end";
const OWN: &str = "function read_query(packet)
      if packet:byte() ~= proxy.COM_QUERY then return end
      proxy.queries:append(1, string.format('%s', packet))
      return proxy.PROXY_SEND_QUERY
    end
    function disconnect_client() print(('gone'):upper()) end";

fn apart(driver: Driver) -> Outcome {
    let (_server, proxy) = by_hand::one(driver, Vendor::MariaDb)?;
    let [rude, own] = [RUDE, OWN].map(|text| text.replace('\'', "''"));
    proxy.admin(&format!(
        "INSERT INTO mysql_scripts (script_name, position, body, on_error) VALUES ('rude', 1, '{rude}', 'error'), ('own', 2, '{own}', 'error'); \
         LOAD MYSQL SCRIPTS TO RUNTIME"
    ))?;
    for _ in 0..3 {
        let mut client = log_in(&proxy)?;
        same(&told(&mut client, "SELECT 5"), "5")?;
    }
    let asked = "SELECT sum(errors) FROM stats_millrace_scripts";
    same(proxy.admin(asked)?.trim(), "0")?;
    let asked = "SELECT memory_bytes > 8000000 FROM stats_millrace_scripts WHERE hook = 'read_query' ORDER BY script_name";
    same(proxy.admin(asked)?.trim(), "0\n1")?;
    let asked = "SELECT calls >= 3 AND calls = cnt_10us + cnt_100us + cnt_1ms + cnt_10ms + cnt_100ms + cnt_longer \
                 FROM stats_millrace_scripts WHERE script_name = 'own' AND hook = 'read_query'";
    same(proxy.admin(asked)?.trim(), "1")
}
