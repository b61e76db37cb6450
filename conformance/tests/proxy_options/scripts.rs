//! Scripts of MySQL Proxy that such an option names.

use conformance::beside::asked;
use conformance::by_hand::{CREATE_USER, Raw};
use conformance::process::{TempFolder, free_port};
use conformance::proxy::{Driver, command_line};
use conformance::servers::{Server, Vendor};
use conformance::trials::{expect, soon};
use std::fs;

use super::{Bare, Outcome, bare, log_in, same, started};

/// Checks what a script sees of a session behind the options of MySQL Proxy, and does.
pub(super) fn a_script_sees(driver: Driver) -> Outcome {
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
pub(super) fn splits_and_tells(driver: Driver) -> Outcome {
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
pub(super) fn stops_at_the_door(driver: Driver) -> Outcome {
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
    local client, server = proxy.connection.client, proxy.connection.server
    print("by " .. client.auth_plugin_name .. ", " .. server.auth_plugin_name .. " of " .. server.mysqld_version)
  end
  if user == "alias" then
    proxy.queries:append(1, proto.to_response_packet {
      username = "app", response = password.scramble(challenge, password.hash("secret")), database = "conf",
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
pub(super) fn judges_logins(driver: Driver) -> Outcome {
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
        let by = "by mysql_native_password, mysql_native_password of 10";
        expect(proxy.says(by), || proxy.log())?;
    }
    expect(proxy.says("only an error can be said here"), || proxy.log())?;
    let used = "SELECT sum(ConnUsed) FROM stats_mysql_connection_pool";
    soon("0\n", || proxy.admin(used))
}
