//! Options of MySQL Proxy: a proxy that they start, in front of real servers, whose users log in there.
#![forbid(unsafe_code)]

use std::fmt::Debug;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use conformance::beside::{asked, set};
use conformance::by_hand::{CREATE_USER, Raw};
use conformance::process::{Process, TempFolder, free_port, output};
use conformance::proxy::{Driver, Proxy, Wish, command_line, program};
use conformance::raw::Raw as Plain;
use conformance::servers::{Server, Vendor, vendors};
use conformance::trials::{self, expect, soon, vendors_in_turn};
use conformance::watch::HANGS;
use wire::handshake::Greeting;

type Outcome = Result<(), String>;

fn main() {
    trials::run(&[
        ("who_the_server_knows_comes_in", who_the_server_knows),
        ("a_password_goes_to_the_server_by_each_way", by_each_way),
        ("letters_and_a_file_start_it", letters_and_a_file),
        ("a_script_sees_such_a_session", a_script_sees),
        (
            "scripts_split_statements_and_tell_operators",
            splits_and_tells,
        ),
        ("a_script_stops_clients_at_the_door", stops_at_the_door),
        ("a_script_judges_logins_before_the_server", judges_logins),
        ("the_next_server_is_tried", the_next_server),
        ("a_client_proves_itself_to_a_reader_too", to_a_reader_too),
        ("a_session_keeps_its_connection", keeps_its_connection),
        ("a_client_becomes_another_user_there", becomes_another),
        ("no_connection_is_another_user_s", never_another_user_s),
        ("a_statement_is_killed_there", killed_there),
        (
            "a_statement_that_nobody_can_kill_ends_its_session",
            nobody_can_kill,
        ),
        ("what_is_idle_makes_room_on_a_full_server", makes_room),
        ("rows_of_users_end_it", rows_of_users),
    ])
}

/// By the long names, beside a file with ports of its own and no users.
fn started(driver: Driver, servers: &[&Server], more: &[&str]) -> Result<Proxy, String> {
    let addresses: Vec<_> = servers
        .iter()
        .map(|server| format!("127.0.0.1:{}", server.port))
        .collect();
    let mut flags = vec![format!("--proxy-backend-addresses={}", addresses.join(","))];
    flags.extend(more.iter().map(ToString::to_string));
    Proxy::start(
        driver,
        &Wish {
            flags,
            ..Wish::default()
        },
    )
}

fn client(vendor: Vendor) -> Result<Command, String> {
    let mut command = Command::new(vendor.programs()?.client);
    command.args([
        "--no-defaults",
        "-h127.0.0.1",
        "--batch",
        "--skip-column-names",
    ]);
    Ok(command)
}

/// MySQL's own client: what it prints, or its complaint.
fn mysql(port: u16, args: &[&str], sql: &str) -> Result<String, String> {
    let mut command = client(Vendor::MySql)?;
    command
        .arg(format!("-P{port}"))
        .args(args)
        .args(["-e", sql]);
    match output(&mut command, HANGS)? {
        (true, words) => Ok(without_warnings(&words)),
        (false, words) => Err(without_warnings(&words)),
    }
}

/// Leaves out the client's warnings of a password that stands on its command line.
fn without_warnings(words: &str) -> String {
    let lines = words.lines().filter(|line| !line.contains("[Warning]"));
    lines.collect::<Vec<_>>().join("\n")
}

fn same<T: PartialEq + Debug>(found: &T, wanted: &T, what: &str) -> Outcome {
    expect(found == wanted, || {
        format!("{what}: wanted {wanted:?}, found {found:?}")
    })
}

/// Of a user without a password.
fn log_in(proxy: &Proxy) -> Result<Raw, String> {
    Raw::log_in(proxy.port).map_err(|error| error.to_string())
}

const IN_CLEAR: [&str; 3] = ["-uapp", "-psecret", "--ssl-mode=DISABLED"];

/// The greeting is the server's, and so is a refusal, word by word.
fn who_the_server_knows(driver: Driver) -> Outcome {
    for vendor in vendors() {
        let server = Server::start(vendor)?;
        let mut proxy = started(driver, &[&server], &[])?;
        // Its password is in the cache of the server from now on.
        let own = |port| match vendor {
            Vendor::MariaDb => command_line(
                port,
                "app",
                "secret",
                &[],
                "SELECT VERSION(), CURRENT_USER()",
            ),
            Vendor::MySql => mysql(
                port,
                &["-uapp", "-psecret", "--ssl-mode=REQUIRED"],
                "SELECT VERSION(), CURRENT_USER()",
            ),
        };
        same(&own(proxy.port), &own(server.port), "who it is")?;
        let version = |port| {
            let first = Raw::connect(port, b"").and_then(|mut raw| raw.packet());
            let first = first.map_err(|error| error.to_string())?;
            let greeting = Greeting::read(&first).map_err(|error| format!("{error:?}"))?;
            Ok::<_, String>((
                greeting.server_version,
                greeting.auth_plugin,
                greeting.charset,
            ))
        };
        same(
            &version(proxy.port)?,
            &version(server.port)?,
            "the greeting",
        )?;
        let wrong = |port, user: &str, password: &str| {
            command_line(port, user, password, &["conf"], "SELECT 1")
        };
        for (user, password) in [("app", "wrong"), ("nobody", "secret"), ("app", "")] {
            let here = wrong(proxy.port, user, password);
            let words = here.as_ref().err().cloned().unwrap_or_default();
            expect(words.contains("1045"), || format!("{user}: {here:?}"))?;
            same(&here, &wrong(server.port, user, password), "a refusal")?;
        }
        let nowhere = |port| command_line(port, "app", "secret", &["no_such_schema"], "SELECT 1");
        same(
            &nowhere(proxy.port),
            &nowhere(server.port),
            "a schema that is not there",
        )?;
        same(
            &command_line(
                proxy.port,
                "app",
                "secret",
                &["conf2"],
                "SELECT DATABASE(), words FROM only_here WHERE id = 1",
            ),
            &Ok("conf2\thier\n".to_owned()),
            "its schema",
        )?;
        // Nothing is kept of it.
        proxy.admin("SAVE MYSQL SERVERS TO DISK; SAVE MYSQL VARIABLES TO DISK")?;
        expect(proxy.terminate(HANGS), || "it does not end".to_owned())?;
        expect(!proxy.data().join("proxysql.db").exists(), || {
            "there is a database".to_owned()
        })?;
    }
    Ok(())
}

/// A login that is the server's: fast, in full over TLS, and in full sealed with a key, whether or not the
/// server is reached over TLS.
fn by_each_way(driver: Driver) -> Outcome {
    if !vendors().contains(&Vendor::MySql) {
        return Ok(());
    }
    let server = Server::start(Vendor::MySql)?;
    server.root("CREATE USER sealed@'%' IDENTIFIED WITH sha256_password BY 'siegel'")?;
    let proxy = started(driver, &[&server], &[])?;
    for use_ssl in [0, 1] {
        proxy.admin(&format!(
            "UPDATE mysql_servers SET use_ssl = {use_ssl}; LOAD MYSQL SERVERS TO RUNTIME"
        ))?;
        by_each_way_to(&server, &proxy, use_ssl == 1)
            .map_err(|words| format!("use_ssl = {use_ssl}: {words}"))?;
    }
    Ok(())
}

fn by_each_way_to(server: &Server, proxy: &Proxy, is_private: bool) -> Outcome {
    let asks = |args: &[&str]| mysql(proxy.port, args, "SELECT CURRENT_USER()");
    let come_in = |args: &[&str], why: &str| same(&asks(args)?, &"app@%".to_owned(), why);
    // The server knows no password yet, and the client shows none to others.
    let forgets = || server.root("FLUSH PRIVILEGES");
    forgets()?;
    let refused = asks(&IN_CLEAR);
    expect(
        refused.as_ref().is_err_and(|words| words.contains("2061")),
        || format!("in full, in clear: {refused:?}"),
    )?;
    let over_tls = ["-uapp", "-psecret", "--ssl-mode=REQUIRED"];
    come_in(&over_tls, "in full, over TLS")?;
    come_in(&IN_CLEAR, "fast")?;
    forgets()?;
    let sealed = [&IN_CLEAR[..], &["--get-server-public-key"]].concat();
    come_in(&sealed, "in full, sealed")?;
    come_in(&IN_CLEAR, "fast again")?;
    forgets()?;
    for wrong in [
        &["-uapp", "-pwrong", "--ssl-mode=REQUIRED"][..],
        &[
            "-uapp",
            "-pwrong",
            "--ssl-mode=DISABLED",
            "--get-server-public-key",
        ],
        &["-uapp", "--skip-password", "--ssl-mode=DISABLED"],
    ] {
        let here = asks(wrong);
        expect(
            here.as_ref().is_err_and(|words| words.contains("1045")),
            || format!("{wrong:?}: {here:?}"),
        )?;
        same(
            &here,
            &mysql(server.port, wrong, "SELECT CURRENT_USER()"),
            "a refusal",
        )?;
    }
    // The plugin of an account may be another than the greeting's. This one's password passes where the
    // client sees of the proxy what the proxy sees of the server.
    let sealed = [
        "-usealed",
        "-psiegel",
        "--ssl-mode=DISABLED",
        "--get-server-public-key",
    ];
    let over_tls = ["-usealed", "-psiegel", "--ssl-mode=REQUIRED"];
    for (way, passes) in [(&sealed[..], !is_private), (&over_tls[..], is_private)] {
        let said = mysql(proxy.port, way, "SELECT CURRENT_USER()");
        let is_right = match &said {
            Ok(who) => passes && who == "sealed@%",
            Err(words) => !passes && words.contains("sha256_password"),
        };
        expect(is_right, || format!("{way:?}: {said:?}"))?;
    }
    Ok(())
}

/// `millrace proxy`, and no file nor data directory of Millrace's.
struct Bare {
    port: u16,
    admin_port: u16,
    folder: TempFolder,
    process: Process,
}

impl Drop for Bare {
    /// Its end removes the folder that it has made; killed, it could not.
    fn drop(&mut self) {
        if self.process.ended().is_none() {
            self.process.signal("TERM");
            let _killed_then = self.process.wait(Duration::from_secs(10));
        }
    }
}

fn bare(driver: Driver, args: impl Fn(&Path, u16, u16) -> Vec<String>) -> Result<Bare, String> {
    let folder = TempFolder::new("options").map_err(|error| error.to_string())?;
    let port = free_port().map_err(|error| error.to_string())?;
    let admin_port = free_port().map_err(|error| error.to_string())?;
    let mut all: Vec<String> = vec!["proxy".into(), format!("--io-driver={driver}")];
    all.extend(args(folder.path(), port, admin_port));
    let log = folder.path().join("log");
    let mut process = Process::start(&program()?, &all, &log).map_err(|error| error.to_string())?;
    let greeted = process
        .wait_for_greeting(admin_port, HANGS)
        .and_then(|()| process.wait_for_greeting(port, HANGS));
    greeted
        .map_err(|error| format!("{error}\n{}", fs::read_to_string(&log).unwrap_or_default()))?;
    Ok(Bare {
        port,
        admin_port,
        folder,
        process,
    })
}

/// Letters, a `--defaults-file`, lists and repeated options.
fn letters_and_a_file(driver: Driver) -> Outcome {
    let servers = [
        Server::start(Vendor::MariaDb)?,
        Server::start(Vendor::MariaDb)?,
    ];
    let [one, other] = [servers[0].port, servers[1].port];
    let mut proxy = bare(driver, |folder, port, admin_port| {
        let file = folder.join("proxy.cnf");
        let text = format!(
            "[mysql-proxy]\nproxy-address = 127.0.0.1:1\nproxy-backend-addresses = 127.0.0.1:{one}\n\
             log-level = debug\nadmin-address = 127.0.0.1:{admin_port}\nevent-threads = 2\n"
        );
        // A file that cannot be written shows in what is missing below.
        let _shown_later = fs::write(&file, text);
        vec![
            "-P".into(),
            format!("127.0.0.1:{port}"),
            "-r".into(),
            format!("127.0.0.1:{other}"),
            format!("--defaults-file={}", file.display()),
        ]
    })?;
    same(
        &command_line(proxy.port, "app", "secret", &[], "SELECT @@port")?,
        &format!("{one}\n"),
        "its server",
    )?;
    let admin = |sql: &str| command_line(proxy.admin_port, "admin", "admin", &[], sql);
    same(
        &admin("SELECT hostgroup_id, port FROM runtime_mysql_servers ORDER BY 1")?,
        &format!("0\t{one}\n1\t{other}\n"),
        "the rows",
    )?;
    same(
        &admin(
            "SELECT variable_value FROM global_variables WHERE variable_name = 'mysql-threads'",
        )?,
        &"2\n".to_owned(),
        "a variable",
    )?;
    let version = command_line(one, "app", "secret", &[], "SELECT VERSION()")?;
    let claimed = admin(
        "SELECT variable_value FROM global_variables WHERE variable_name = 'mysql-server_version'",
    )?;
    expect(claimed.contains(version.trim()), || {
        format!("the version: {claimed} and {version}")
    })?;
    proxy.process.signal("TERM");
    expect(proxy.process.wait(HANGS).is_some(), || {
        "it does not end".to_owned()
    })?;
    let log = fs::read_to_string(proxy.folder.path().join("log")).unwrap_or_default();
    expect(log.contains("--log-level: it has no effect here"), || log)
}

/// Checks what a script sees of a session behind the options of MySQL Proxy, and does.
fn a_script_sees(driver: Driver) -> Outcome {
    let server = Server::start(Vendor::MariaDb)?;
    let folder = TempFolder::new("script").map_err(|error| error.to_string())?;
    let script = folder.path().join("seen.lua");
    let text = "function read_query(packet)\n\
                  if packet:sub(2) == 'SELECT WHO' then\n\
                    proxy.response.type = proxy.MYSQLD_PACKET_OK\n\
                    proxy.response.resultset = {fields = {{name = 'who'}}, rows = {{proxy.connection.client.username}, {#proxy.backends}, {proxy.backends[1].type}, {proxy.backends[2].type}}}\n\
                    return proxy.PROXY_SEND_RESULT\n\
                  end\n\
                  if packet:sub(2):find('^SLECT') then\n\
                    proxy.queries:append(1, string.char(proxy.COM_QUERY) .. packet:sub(2):gsub('^SLECT', 'SELECT'))\n\
                    return proxy.PROXY_SEND_QUERY\n\
                  end\n\
                end\n";
    fs::write(&script, text).map_err(|error| error.to_string())?;
    let script = format!("--proxy-lua-script={}", script.display());
    // One that nobody reaches is seen, too.
    let reader = "--proxy-read-only-backend-addresses=127.0.0.1:1";
    let proxy = started(driver, &[&server], &[&script, reader])?;
    let asks = |sql: &str| command_line(proxy.port, "app", "secret", &[], sql);
    same(
        &asks("SELECT WHO")?,
        &"app\n2\n1\n2\n".to_owned(),
        "who it is",
    )?;
    same(
        &asks("SLECT CURRENT_USER()")?,
        &"app@%\n".to_owned(),
        "what it means",
    )
}

/// A script that sends reads to a server that only reads, as users of MySQL Proxy have them.
const SPLITS: &str = r#"
local tokenizer = require("proxy.tokenizer")
local config = proxy.global.config
config.split = config.split or { min_idle = 1, reads = 0 }
local is_in_transaction = false

local function of_type(type, user)
  local best = 0
  for i = 1, #proxy.global.backends do
    local b = proxy.global.backends[i]
    local is_there = user == nil or b.pool.users[user].cur_idle_connections > 0
    if b.type == type and b.state ~= proxy.BACKEND_STATE_DOWN and is_there
      and (best == 0 or b.connected_clients < proxy.global.backends[best].connected_clients) then
      best = i
    end
  end
  return best
end

function connect_server()
  assert(proxy.connection.server == nil)
  local rw = of_type(proxy.BACKEND_TYPE_RW)
  if rw > 0 then
    proxy.global.backends[rw].pool.min_idle_connections = config.split.min_idle
    proxy.connection.backend_ndx = rw
  end
end

function read_handshake(auth)
  config.split.greeted = auth.server_addr .. " " .. #auth.scramble .. " " .. tostring(auth.mysqld_version > 50000)
end

function read_query(packet)
  if packet:byte() ~= proxy.COM_QUERY then return end
  local query = packet:sub(2)
  if query == "SELECT WHERE" then
    proxy.response = {
      type = proxy.MYSQLD_PACKET_OK,
      resultset = { fields = { { name = "at" } }, rows = { { proxy.connection.backend_ndx } } },
    }
    return proxy.PROXY_SEND_RESULT
  end
  proxy.queries:append(1, packet, { resultset_is_needed = true })
  local user = proxy.connection.client.username
  local first = tokenizer.first_stmt_token(tokenizer.tokenize(query))
  local reads = not is_in_transaction and first.token_name == "TK_SQL_SELECT" and of_type(proxy.BACKEND_TYPE_RO, user) or 0
  if reads > 0 then
    config.split.reads = config.split.reads + 1
    proxy.connection.backend_ndx = reads
  else
    proxy.connection.backend_ndx = of_type(proxy.BACKEND_TYPE_RW, user)
  end
  return proxy.PROXY_SEND_QUERY
end

function read_query_result(inj)
  is_in_transaction = inj.resultset.flags.in_trans
  if not is_in_transaction then proxy.connection.backend_ndx = 0 end
end
"#;

/// A script of the kind that answers operators of MySQL Proxy.
const TELLS: &str = r#"
local STATES = { [0] = "unknown", "up", "down" }
local TYPES = { [0] = "unknown", "rw", "ro" }

local function rows(names, rows)
  local fields = {}
  for i, name in ipairs(names) do fields[i] = { name = name, type = proxy.MYSQL_TYPE_STRING } end
  proxy.response = { type = proxy.MYSQLD_PACKET_OK, resultset = { fields = fields, rows = rows } }
  return proxy.PROXY_SEND_RESULT
end

local function refuse(words)
  proxy.response = { type = proxy.MYSQLD_PACKET_ERR, errmsg = words }
  return proxy.PROXY_SEND_RESULT
end

function read_query(packet)
  if packet:byte() ~= proxy.COM_QUERY then
    return refuse("[admin] we only handle text-based queries (COM_QUERY)")
  end
  local query = packet:sub(2):lower()
  if query == "select * from backends" then
    local all = {}
    for i = 1, #proxy.global.backends do
      local b = proxy.global.backends[i]
      all[i] = { i, b.dst.name, STATES[b.state], TYPES[b.type], b.uuid, b.connected_clients }
    end
    return rows({ "backend_ndx", "address", "state", "type", "uuid", "connected_clients" }, all)
  elseif query == "select * from help" then
    return rows({ "command", "description" }, {
      { "SELECT * FROM help", "shows this help" },
      { "SELECT * FROM backends", "lists the backends and their state" },
    })
  elseif query == "select * from split" then
    local split = proxy.global.config.split or {}
    local pool = proxy.global.backends[1].pool
    return rows({ "reads", "greeted", "min_idle" }, { { split.reads, split.greeted, pool.min_idle_connections } })
  elseif query:find("^set backend") then
    local at, state = query:match("^set backend (%d+) (%a+)$")
    proxy.global.backends[tonumber(at)].state = state == "down" and proxy.BACKEND_STATE_DOWN or proxy.BACKEND_STATE_UP
    proxy.response = { type = proxy.MYSQLD_PACKET_OK, affected_rows = 1 }
    return proxy.PROXY_SEND_RESULT
  elseif query == "select nothing" then
    return
  end
  return refuse("use 'SELECT * FROM help' to see the supported commands")
end
"#;

/// A proxy with both scripts, before a writer and a reader; `own` is the admin port beside the console.
fn with_scripts(driver: Driver, [writer, reader]: [u16; 2], own: u16) -> Result<Bare, String> {
    bare(driver, |folder, port, admin_port| {
        let at = |name: &str| folder.join(name).display().to_string();
        let config = format!("admin_variables={{ mysql_ifaces=\"127.0.0.1:{own}\" }}\n");
        for (name, text) in [
            ("rw.lua", SPLITS),
            ("admin.lua", TELLS),
            ("own.cnf", &config),
        ] {
            // A file that cannot be written shows in what is missing below.
            let _shown_later = fs::write(folder.join(name), text);
        }
        vec![
            format!("--proxy-address=127.0.0.1:{port}"),
            format!("--proxy-backend-addresses=127.0.0.1:{writer}"),
            format!("--proxy-read-only-backend-addresses=127.0.0.1:{reader}"),
            format!("--proxy-lua-script={}", at("rw.lua")),
            format!("--admin-lua-script={}", at("admin.lua")),
            format!("--admin-address=127.0.0.1:{admin_port}"),
            "--admin-username=op".into(),
            "--admin-password=x".into(),
            "--event-threads=2".into(),
            format!("--config={}", at("own.cnf")),
        ]
    })
}

/// A96: a script chooses the server of each statement, and another tells operators of it.
fn splits_and_tells(driver: Driver) -> Outcome {
    let servers = [
        Server::start(Vendor::MariaDb)?,
        Server::start(Vendor::MariaDb)?,
    ];
    let [writer, reader] = [servers[0].port, servers[1].port];
    for server in &servers {
        server.root(CREATE_USER)?;
    }
    let own = free_port().map_err(|error| error.to_string())?;
    let proxy = with_scripts(driver, [writer, reader], own)?;
    let tells = |sql: &str| command_line(proxy.admin_port, "op", "x", &[], sql);
    let asks = |sql: &str| command_line(proxy.port, "app", "secret", &[], sql);
    let backends = |states: [&str; 2], clients: [u32; 2]| {
        format!(
            "1\t127.0.0.1:{writer}\t{}\trw\tNULL\t{}\n2\t127.0.0.1:{reader}\t{}\tro\tNULL\t{}\n",
            states[0], clients[0], states[1], clients[1]
        )
    };
    let all = "SELECT * FROM backends";
    same(
        &tells(all)?,
        &backends(["unknown"; 2], [0, 0]),
        "before anybody has come",
    )?;
    let port = "SELECT @@port";
    same(&asks(port)?, &format!("{reader}\n"), "a read")?;
    let in_turn = "SELECT WHERE; SHOW VARIABLES LIKE 'port'; BEGIN; SELECT @@port; SELECT WHERE; COMMIT; SELECT @@port; SELECT WHERE";
    let places = format!("1\nport\t{writer}\n{writer}\n1\n{reader}\n0\n");
    same(&asks(in_turn)?, &places, "statements one after another")?;
    let nobody = backends(["up"; 2], [0, 0]);
    soon(&nobody, || tells(all))?;
    let split = format!("2\t127.0.0.1:{writer} 20 true\t1\n");
    same(
        &tells("SELECT * FROM split")?,
        &split,
        "what both scripts know",
    )?;
    // What an operator takes out, the other script leaves alone; and so does the proxy itself.
    tells("SET backend 2 down")?;
    same(
        &tells(all)?,
        &backends(["up", "down"], [0, 0]),
        "one is taken out",
    )?;
    same(
        &asks(port)?,
        &format!("{writer}\n"),
        "a read without a reader",
    )?;
    tells("SET backend 2 up; SET backend 1 down")?;
    let refused = asks(port).err().unwrap_or_default();
    expect(refused.contains("(proxy) all backends are down"), || {
        format!("a login while the writer is out: {refused}")
    })?;
    tells("SET backend 1 up")?;
    same(
        &asks(port)?,
        &format!("{reader}\n"),
        "a read when all are back",
    )?;
    let mut client = Raw::log_in(proxy.port).map_err(|error| error.to_string())?;
    asked(&mut client, "SELECT WHERE")?;
    soon(&backends(["up"; 2], [1, 0]), || tells(all))?;
    drop(client);
    soon(&nobody, || tells(all))?;
    tells_words(&proxy, tells)?;
    // The proxy's own port is there, too.
    let rows = "SELECT script_name, serves, globals FROM runtime_mysql_scripts ORDER BY 1";
    let rows = command_line(own, "op", "x", &[], rows)?;
    same(
        &rows,
        &"admin (admin)\tconsole\trw\nrw\tclients\t\n".to_owned(),
        "the rows",
    )
}

/// Users whom the console lets in, and the answers that they get.
fn tells_words(proxy: &Bare, tells: impl Fn(&str) -> Result<String, String>) -> Outcome {
    let all = "SELECT * FROM backends";
    let denied = command_line(proxy.admin_port, "op", "y", &[], all);
    expect(
        denied.is_err_and(|words| words.contains("Access denied")),
        String::new,
    )?;
    let words = |sql: &str| tells(sql).err().unwrap_or_default();
    let (nothing, unknown) = (words("SELECT nothing"), words("DROP TABLE t"));
    expect(
        nothing.contains("need a resultset + proxy.PROXY_SEND_RESULT"),
        || nothing,
    )?;
    expect(unknown.contains("use 'SELECT * FROM help'"), || unknown)?;
    let help = tells("SELECT * FROM help")?;
    expect(help.contains("shows this help"), || help.clone())?;
    Ok(())
}

/// Checks that a script which waits or refuses before the greeting is as far as its clients come.
fn stops_at_the_door(driver: Driver) -> Outcome {
    let server = Server::start(Vendor::MariaDb)?;
    let folder = TempFolder::new("door").map_err(|error| error.to_string())?;
    let script = folder.path().join("door.lua");
    let text = "local glib2 = require('glib2')\n\
                function connect_server() if slow then glib2.usleep(3600000000) end end\n\
                function read_handshake()\n\
                  proxy.response = { type = proxy.MYSQLD_PACKET_ERR, errmsg = 'not today', errcode = 1130 }\n\
                  return proxy.PROXY_SEND_RESULT\n\
                end\n";
    fs::write(&script, text).map_err(|error| error.to_string())?;
    let flag = format!("--proxy-lua-script={}", script.display());
    let proxy = started(driver, &[&server], &[&flag])?;
    let refused = || log_in(&proxy).err().unwrap_or_default();
    expect(refused().contains("not today"), refused)?;
    let slow = format!("slow = true\n{text}").replace('\'', "''");
    proxy.admin(&format!(
        "UPDATE mysql_scripts SET path = '', body = '{slow}'; LOAD MYSQL SCRIPTS TO RUNTIME; \
         SET mysql-connect_timeout_client = 500; LOAD MYSQL VARIABLES TO RUNTIME"
    ))?;
    expect(refused().contains("mysql-connect_timeout_client"), refused)?;
    same(
        &proxy.admin("SELECT sum(ConnUsed) FROM stats_mysql_connection_pool")?,
        &"0\n".to_owned(),
        "connections in use",
    )
}

/// Logins that a script refuses, makes others of, or has a last word on.
const JUDGES: &str = r#"
local proto, password = require("mysql.proto"), require("mysql.password")
local function refuse(words)
  proxy.response = { type = proxy.MYSQLD_PACKET_ERR, errcode = 1045, sqlstate = "28000", errmsg = words }
  return proxy.PROXY_SEND_RESULT
end
function read_auth(auth)
  local user, challenge = proxy.connection.client.username, proxy.connection.server.scramble_buffer
  assert(auth.username == user and #challenge == 20)
  if user == "banned" then return refuse("banned from " .. auth.default_db) end
  if user == "app" then
    local double = password.hash(password.hash("secret"))
    print("app is " .. tostring(password.check(challenge, auth.password, double)))
  end
  if user == "alias" then
    proxy.queries:append(1, proto.to_response_packet {
      username = "app", response = password.scramble(challenge, password.hash("secret")), database = "conf",
      auth_plugin_name = "mysql_native_password", server_capabilities = 0xffffffff, capabilities = 0x8a20f,
    })
    return proxy.PROXY_SEND_QUERY
  end
  if user == "free" then
    proxy.response = { type = proxy.MYSQLD_PACKET_OK }
    return proxy.PROXY_SEND_RESULT
  end
end
function read_auth_result(auth)
  local user, first = proxy.connection.client.username, auth.packet:byte()
  if user == "other" and first == 0 then return refuse("not today") end
  if user == "wrong" and first == 255 then return refuse("instead of " .. auth.packet:sub(10, 22)) end
end
"#;

/// A95: with `proxy.global` in its text the script runs on one core, without on each.
fn judges_logins(driver: Driver) -> Outcome {
    let server = Server::start(Vendor::MariaDb)?;
    server.root(CREATE_USER)?;
    let folder = TempFolder::new("judge").map_err(|error| error.to_string())?;
    let script = folder.path().join("judge.lua");
    fs::write(&script, JUDGES).map_err(|error| error.to_string())?;
    let flag = format!("--proxy-lua-script={}", script.display());
    let proxy = started(driver, &[&server], &[&flag])?;
    for shared in [false, true] {
        if shared {
            let text = format!("proxy.global.n = 1\n{JUDGES}").replace('\'', "''");
            proxy.admin(&format!(
                "UPDATE mysql_scripts SET path = '', body = '{text}'; LOAD MYSQL SCRIPTS TO RUNTIME"
            ))?;
        }
        let asks = |user: &str, password: &str| {
            let sql = "SELECT CURRENT_USER(), DATABASE()";
            command_line(proxy.port, user, password, &["conf"], sql)
        };
        let refused = |user: &str, password: &str, words: &str| {
            let said = asks(user, password).err().unwrap_or_default();
            expect(said.contains(words), || {
                format!("{user}: {said}, not {words}")
            })
        };
        for _ in 0..4 {
            same(
                &asks("app", "secret")?,
                &"app@%\tconf\n".to_owned(),
                "a login that passes",
            )?;
            same(
                &asks("alias", "any")?,
                &"app@%\tconf\n".to_owned(),
                "a login that becomes another",
            )?;
            refused("banned", "any", "banned from conf")?;
            refused("other", "geheim", "not today")?;
            refused("wrong", "any", "instead of Access denied")?;
            refused("app", "wrong", "Access denied for user 'app'")?;
            refused("free", "any", "The script")?;
        }
        expect(proxy.says("app is true"), || proxy.log())?;
    }
    expect(proxy.says("only an error can be said here"), || proxy.log())?;
    let used = "SELECT sum(ConnUsed) FROM stats_mysql_connection_pool";
    soon("0\n", || proxy.admin(used))
}

/// A server that is down is no matter as long as another is there; then it is said.
fn the_next_server(driver: Driver) -> Outcome {
    let mut servers = [
        Server::start(Vendor::MariaDb)?,
        Server::start(Vendor::MariaDb)?,
    ];
    for server in &servers {
        server.root(CREATE_USER)?;
    }
    let proxy = started(driver, &[&servers[0], &servers[1]], &[])?;
    let asks = || command_line(proxy.port, "app", "secret", &[], "SELECT @@port");
    // Two at once are spread.
    let mut one = log_in(&proxy)?;
    let mut other = log_in(&proxy)?;
    let port = |raw: &mut Raw| asked(raw, "SELECT @@port");
    let both = [port(&mut one)?, port(&mut other)?];
    expect(both[0] != both[1], || format!("both are at {both:?}"))?;
    servers[0].kill();
    for _ in 0..3 {
        same(
            &asks()?,
            &format!("{}\n", servers[1].port),
            "the other server",
        )?;
    }
    servers[1].kill();
    let refused = asks();
    expect(
        refused.as_ref().is_err_and(|words| {
            words.contains("1105") && words.contains("(proxy) all backends are down")
        }),
        || format!("{refused:?}"),
    )?;
    // Those who were there hear that it is gone.
    let lost = one.ask("SELECT 1");
    expect(lost.is_err(), || format!("{lost:?}"))?;
    servers[0].restart()?;
    let back = || Ok(asks().is_ok().to_string());
    soon("true", back)
}

/// A server that only reads is reached by a connection that its client's login has opened beside, or an
/// earlier one; that it refuses, or is down, is no matter for the login.
fn to_a_reader_too(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let mut servers = [Server::start(vendor)?, Server::start(vendor)?];
        let ports = [servers[0].port, servers[1].port];
        let readers = format!("--proxy-read-only-backend-addresses=127.0.0.1:{}", ports[1]);
        let proxy = started(driver, &[&servers[0]], &[&readers])?;
        proxy.admin(
            "INSERT INTO mysql_query_rules (rule_id, active, match_digest, destination_hostgroup, apply) \
             VALUES (1, 1, '^SELECT @@port', 1, 1); LOAD MYSQL QUERY RULES TO RUNTIME",
        )?;
        let asks = |user: &str, password: &str| match vendor {
            Vendor::MariaDb => {
                let said = command_line(
                    proxy.port,
                    user,
                    password,
                    &["conf"],
                    "SELECT @@port, DATABASE(), CURRENT_USER()",
                );
                said.map(|words| words.trim().to_owned())
            }
            Vendor::MySql => mysql(
                proxy.port,
                &[
                    &format!("-u{user}"),
                    &format!("-p{password}"),
                    "--ssl-mode=REQUIRED",
                    "conf",
                ],
                "SELECT @@port, DATABASE(), CURRENT_USER()",
            ),
        };
        let reader = Ok(format!("{}\tconf\tapp@%", ports[1]));
        // In full at the first server there is no second proof in that login; in the next there is.
        let first = asks("app", "secret");
        let is_late = first.as_ref().is_err_and(|words| words.contains("1235"));
        expect(
            first == reader || vendor == Vendor::MySql && is_late,
            || format!("first: {first:?}, not {reader:?}"),
        )?;
        for _ in 0..6 {
            same(&asks("app", "secret"), &reader, "a statement for a reader")?;
        }
        // Who has another password there is let in, and reads nothing.
        servers[1].root("ALTER USER other@'%' IDENTIFIED BY 'anders'")?;
        for _ in 0..3 {
            let refused = asks("other", "geheim");
            expect(
                refused.as_ref().is_err_and(|words| words.contains("1235")),
                || format!("with another password: {vendor} {refused:?}, reader {reader:?}"),
            )?;
        }
        same(
            &asks("app", "secret"),
            &reader,
            "another user's statement for a reader",
        )?;
        servers[1].kill();
        let writes = command_line(proxy.port, "app", "secret", &[], "SELECT 1 + @@port");
        same(
            &writes,
            &Ok(format!("{}\n", ports[0] + 1)),
            "a login while the reader is down",
        )?;
    }
    Ok(())
}

/// Whatever it says, it is on the connection on which it has logged in, as long as that is there.
fn keeps_its_connection(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let server = Server::start(vendor)?;
        server.root(CREATE_USER)?;
        let proxy = started(driver, &[&server], &[])?;
        let (mut client, mut others) = (log_in(&proxy)?, log_in(&proxy)?);
        // A statement that finds itself on the server. One that has just been answered elsewhere may be
        // there still.
        let asked_for = std::cell::Cell::new(0);
        let id = |client: &mut Raw| {
            asked_for.set(asked_for.get() + 1);
            let sql = format!(
                "SELECT ID FROM information_schema.PROCESSLIST WHERE INFO LIKE '%its number {}.%'",
                asked_for.get()
            );
            Ok::<_, String>(asked(client, &sql)?.concat().concat())
        };
        let own = id(&mut client)?;
        expect(own != id(&mut others)?, || {
            "both are on one connection".to_owned()
        })?;
        let here =
            |client: &mut Raw| Ok::<_, String>(asked(client, "SELECT @here")?.concat().concat());
        asked(&mut client, "SELECT @here := 7")?;
        same(&here(&mut client)?, &"7".to_owned(), "its variable")?;
        same(&id(&mut client)?, &own, "its connection")?;
        let simple = |client: &mut Raw, command: &[u8]| {
            let answer = client.command(command).and_then(|()| client.packet());
            answer.map_err(|error| error.to_string())
        };
        // COM_RESET_CONNECTION, also by a session that has done nothing.
        for client in [&mut client, &mut log_in(&proxy)?] {
            let before = id(client)?;
            let reset = simple(client, &[0x1F])?;
            same(&reset.first(), &Some(&0), "COM_RESET_CONNECTION")?;
            same(&id(client)?, &before, "its connection behind a reset")?;
            expect(here(client)? != "7", || {
                "its variable is still there".to_owned()
            })?;
        }
        // Sharing is nothing for it, whatever the operator says.
        set(&proxy, "SET mysql-multiplexing = true")?;
        same(&id(&mut client)?, &own, "its connection behind a LOAD")?;
        // Only the server could let it in again, and nobody has left another.
        drop(others);
        server.root(&format!("KILL {own}"))?;
        proxy
            .admin("UPDATE mysql_servers SET max_connections = 1; LOAD MYSQL SERVERS TO RUNTIME")?;
        let lost = (0..3).map(|_| client.ask("SELECT 1").is_err());
        expect(lost.collect::<Vec<_>>().ends_with(&[true]), || {
            "it goes on".to_owned()
        })?;
    }
    Ok(())
}

/// COM_CHANGE_USER is the server's to decide, also behind a login that has proven itself to two servers. Who is
/// refused is nobody.
fn becomes_another(driver: Driver) -> Outcome {
    for vendor in vendors_in_turn() {
        let servers = [Server::start(vendor)?, Server::start(vendor)?];
        for server in &servers {
            server.root(
                "CREATE USER turn@'%' IDENTIFIED BY 'secret'; GRANT ALL ON *.* TO turn@'%'",
            )?;
            // MySQL knows fast proofs of whom it has seen once.
            if vendor == Vendor::MySql {
                for user in ["-uapp", "-uturn"] {
                    mysql(server.port, &[user, "-psecret"], "DO 1")?;
                }
            }
        }
        let reader = format!(
            "--proxy-read-only-backend-addresses=127.0.0.1:{}",
            servers[1].port
        );
        let mut proxy = started(driver, &[&servers[0]], &[&reader])?;
        let mut client = Plain::log_in(proxy.port, 0)?;
        let is = |client: &mut Plain, wanted: &str| {
            let found = client.query("SELECT CURRENT_USER(), @left, DATABASE()")?;
            expect(found.contains(wanted), || {
                format!("{vendor}: wanted {wanted}, found {found}")
            })
        };
        client.query("SET @left = 1")?;
        is(&mut client, "app@%")?;
        client.change_user("turn")?;
        is(&mut client, "turn@%")?;
        let found = client.query("SELECT IFNULL(@left, 'is gone')")?;
        expect(found.contains("\\x07is gone"), || {
            format!("{vendor}: its variable is there: {found}")
        })?;
        same(
            &proxy.admin("SELECT user FROM stats_mysql_processlist")?,
            &"turn\n".to_owned(),
            "the processlist",
        )?;
        // A proof of another challenge is none, and the server asks for a new one.
        client.change_user_saying("app", 45, &[7; 20])?;
        is(&mut client, "app@%")?;
        let refused = client.change_user("nobody").err().unwrap_or_default();
        // MySQL asks some of those whom it does not know for their password in full.
        let is_asked = vendor == Vendor::MySql && refused == "\\x01\\x04";
        expect(
            is_asked || refused.contains("Access denied for user"),
            || format!("{vendor}: {refused}"),
        )?;
        expect(is_asked || client.query("DO 1").is_err(), || {
            format!("{vendor}: it goes on")
        })?;
        drop(client);
        // What its connection has become, it is for whoever gets it.
        let mut other = Plain::log_in(proxy.port, 0)?;
        other.change_user("turn")?;
        drop(other);
        soon("1\n", || {
            proxy.admin("SELECT count(*) FROM stats_mysql_free_connections WHERE user = 'turn'")
        })?;
        let mut next = Plain::log_in(proxy.port, 0)?;
        is(&mut next, "app@%")?;
        same(
            &proxy.admin("SELECT sum(ConnUsed) <= 2 FROM stats_mysql_connection_pool")?,
            &"1\n".to_owned(),
            "connections in use",
        )?;
        expect(proxy.runs(), || "it has ended".to_owned())?;
    }
    Ok(())
}

/// Leftovers of a session are for its user alone, who has proven his password there.
fn never_another_user_s(driver: Driver) -> Outcome {
    let server = Server::start(Vendor::MariaDb)?;
    server.root(CREATE_USER)?;
    let proxy = started(driver, &[&server], &[])?;
    let who = |user: &str, password: &str| {
        command_line(
            proxy.port,
            user,
            password,
            &[],
            "SELECT CURRENT_USER(), @left; SET @left = 1",
        )
    };
    for _ in 0..5 {
        same(&who("app", "secret")?, &"app@%\tNULL\n".to_owned(), "app")?;
        same(
            &who("other", "geheim")?,
            &"other@%\tNULL\n".to_owned(),
            "other",
        )?;
        expect(who("app", "geheim").is_err(), || {
            "any password will do".to_owned()
        })?;
    }
    let users = proxy.admin("SELECT DISTINCT user FROM stats_mysql_free_connections ORDER BY 1")?;
    expect(
        users.lines().all(|user| ["app", "other"].contains(&user)),
        || users.clone(),
    )?;
    same(
        &proxy.admin("SELECT count(*) FROM stats_mysql_connection_pool WHERE ConnUsed > 0")?,
        &"0\n".to_owned(),
        "connections in use",
    )?;
    let client = log_in(&proxy)?;
    same(
        &proxy.admin("SELECT user FROM stats_mysql_processlist")?,
        &"open\n".to_owned(),
        "the processlist",
    )?;
    drop(client);
    Ok(())
}

/// KILL QUERY of such a session goes to its server by a connection that an earlier session has left.
fn killed_there(driver: Driver) -> Outcome {
    let server = Server::start(Vendor::MariaDb)?;
    server.root(CREATE_USER)?;
    let proxy = started(driver, &[&server], &[])?;
    let count = |what: &str| {
        let sql = format!("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE {what}");
        let said = server.root(&sql)?;
        Ok::<_, String>(said.lines().last().unwrap_or_default().to_owned())
    };
    // Some for each core.
    let left: Vec<_> = (0..24).map(|_| log_in(&proxy)).collect::<Result<_, _>>()?;
    drop(left);
    soon("0", || {
        let used = proxy.admin("SELECT sum(ConnUsed) FROM stats_mysql_connection_pool")?;
        Ok(used.trim().to_owned())
    })?;
    let (mut client, mut other) = (log_in(&proxy)?, log_in(&proxy)?);
    client
        .query("SELECT SLEEP(600)")
        .map_err(|error| error.to_string())?;
    let is_running = "INFO = 'SELECT SLEEP(600)'";
    soon("1", || count(is_running))?;
    asked(&mut other, &format!("KILL QUERY {}", client.id))?;
    let said = client.rows();
    expect(
        said.as_ref().is_ok_and(|rows| rows.concat() == ["1"])
            || said
                .as_ref()
                .is_err_and(|error| error.to_string().contains("1317")),
        || format!("{said:?}"),
    )?;
    soon("0", || count(is_running))?;
    // The session goes on.
    same(
        &asked(&mut client, "SELECT 7")?.concat().concat(),
        &"7".to_owned(),
        "its next statement",
    )
}

/// Without an idle connection of the user a KILL QUERY cannot be said: the session ends, and with it the
/// statement.
fn nobody_can_kill(driver: Driver) -> Outcome {
    let server = Server::start(Vendor::MariaDb)?;
    server.root(CREATE_USER)?;
    let proxy = started(driver, &[&server], &[])?;
    let (mut client, mut other) = (log_in(&proxy)?, log_in(&proxy)?);
    client
        .query("SELECT SLEEP(600)")
        .map_err(|error| error.to_string())?;
    let running = || {
        let said = server.root(
            "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO = 'SELECT SLEEP(600)'",
        )?;
        Ok::<_, String>(said.lines().last().unwrap_or_default().to_owned())
    };
    soon("1", running)?;
    asked(&mut other, &format!("KILL QUERY {}", client.id))?;
    let said = client.rows();
    expect(said.is_err(), || format!("{said:?}"))?;
    soon("0", running)?;
    same(
        &asked(&mut other, "SELECT 7")?.concat().concat(),
        &"7".to_owned(),
        "the other session",
    )
}

/// A server that is full of what earlier sessions have left lets the next ones in.
fn makes_room(driver: Driver) -> Outcome {
    let server = Server::start_with(Vendor::MariaDb, &["--max-connections=10"])?;
    server.root(CREATE_USER)?;
    let address = format!("127.0.0.1:{}", server.port);
    // What is idle on another core makes no room.
    let proxy = bare(driver, |_, port, admin_port| {
        let listen = |option: &str, port| format!("--{option}=127.0.0.1:{port}");
        vec![
            listen("proxy-address", port),
            listen("admin-address", admin_port),
            format!("--proxy-backend-addresses={address}"),
            "--event-threads=1".into(),
        ]
    })?;
    for _ in 0..4 {
        let sessions = (0..8).map(|_| Raw::log_in(proxy.port));
        let sessions: Vec<_> = sessions
            .collect::<Result<_, _>>()
            .map_err(|error| error.to_string())?;
        drop(sessions);
        let used = "SELECT sum(ConnUsed) FROM stats_mysql_connection_pool";
        soon("0", || {
            let said = command_line(proxy.admin_port, "admin", "admin", &[], used)?;
            Ok(said.trim().to_owned())
        })?;
    }
    Ok(())
}

/// With a row in `mysql_users` logins are checked here; without one, there again.
fn rows_of_users(driver: Driver) -> Outcome {
    let server = Server::start(Vendor::MariaDb)?;
    let proxy = started(driver, &[&server], &[])?;
    let asks = |user: &str, password: &str| {
        command_line(proxy.port, user, password, &[], "SELECT CURRENT_USER()")
    };
    asks("other", "geheim")?;
    proxy.admin("INSERT INTO mysql_users (username, password) VALUES ('app', 'secret'); LOAD MYSQL USERS TO RUNTIME")?;
    same(
        &asks("app", "secret")?,
        &"app@%\n".to_owned(),
        "a user of ours",
    )?;
    let refused = asks("other", "geheim");
    expect(
        refused
            .as_ref()
            .is_err_and(|words| words.contains("ProxySQL Error")),
        || format!("{refused:?}"),
    )?;
    proxy.admin("DELETE FROM mysql_users; LOAD MYSQL USERS TO RUNTIME")?;
    same(
        &asks("other", "geheim")?,
        &"other@%\n".to_owned(),
        "a user of the server's",
    )?;
    proxy.admin("SET mysql-relay_logins = false; LOAD MYSQL VARIABLES TO RUNTIME")?;
    expect(asks("other", "geheim").is_err(), || {
        "he is let in by nobody".to_owned()
    })
}
