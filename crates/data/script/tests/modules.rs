//! Modules that scripts require: those of MySQL Proxy, and files beside the script.

mod session;

use lua::required::Module;
use script::{Decision, Response};
use session::{FORWARD, World, begin_with, query, vm, world};

/// Returns what a script prints at a query.
fn printed(text: &str, sql: &str) -> Vec<String> {
    let world = world(&format!("{text}\nreturn nil"));
    assert_eq!(world.script.read_query(&query(sql)), Ok(FORWARD));
    world.host.lines.take()
}

#[test]
fn commands_are_taken_apart_and_shown() {
    let text = "local commands = require('proxy.commands')
        function read_query(packet)
          local cmd = commands.parse(packet)
          print(cmd.type, cmd.type_name, cmd.query, proxy.commands == commands)
          print(commands.pretty_print(cmd))
          print(commands.pretty_print(commands.parse('\\2shop')))
          print(commands.parse('\\4t\\0%').table, commands.parse('\\23\\5\\1\\0\\0\\0').stmt_handler_id)
          print(commands.pretty_print(commands.parse('\\1')), commands.parse('\\27\\1\\0').option)
        end";
    assert_eq!(
        printed(text, "SELECT 1"),
        [
            "3\tCOM_QUERY\tSELECT 1\ttrue",
            "[COM_QUERY] SELECT 1",
            "[COM_INIT_DB] shop",
            "t\t261",
            "[COM_QUIT]\t1",
        ]
    );
}

#[test]
fn tables_of_a_statement_are_found() {
    let text = "local parser = require('proxy.parser')
        function read_query(packet)
          local found = {}
          for name, how in pairs(parser.get_tables(proxy.tokenize(packet:sub(2)))) do found[#found + 1] = name .. '=' .. how end
          table.sort(found)
          print(table.concat(found, ' '))
        end";
    for (sql, tables) in [
        (
            "SELECT a FROM t, x.u AS b JOIN v ON t.a = v.b WHERE w = 1",
            "shop.t=read shop.v=read x.u=read",
        ),
        ("SELECT a FROM (SELECT b FROM t) AS s, u", "shop.u=read"),
        ("INSERT INTO x.t VALUES (1)", "x.t=write"),
        ("INSERT INTO t(a) VALUES (1)", "shop.t=write"),
        ("UPDATE t, x.u SET t.a = 1", "shop.t=write x.u=write"),
        ("DELETE FROM t WHERE a = 1", "shop.t=write"),
        (
            "/* c */ CREATE TABLE IF NOT EXISTS t (a INT)",
            "shop.t=write",
        ),
        ("", ""),
    ] {
        assert_eq!(printed(text, sql), [tables], "{sql}");
    }
}

#[test]
fn options_of_scripts_are_shown_and_set_by_statements() {
    let answer = |sql: &str| {
        let world = world(
            "proxy.global.config.split = { debug = false, max = 5, name = 'a' }
             local auto = require('proxy.auto-config')
             local commands = require('proxy.commands')
             function read_query(packet)
               local cmd = commands.parse(packet)
               local said = auto.handle(cmd)
               if said then return said end
               print(tostring(proxy.global.config.handle == auto.handle))
             end",
        );
        world.script.read_query(&query(sql))
    };
    let Ok(Decision::Answer(Response::Rows { rows, .. })) = answer("proxy show config") else {
        panic!("no rows")
    };
    let shown: Vec<_> = rows
        .iter()
        .map(|row| {
            row.iter()
                .flatten()
                .map(|v| String::from_utf8_lossy(v))
                .collect::<Vec<_>>()
                .join(" ")
        })
        .collect();
    assert_eq!(
        shown,
        [
            "split debug false boolean",
            "split max 5 number",
            "split name a string"
        ]
    );
    let one = Ok(Decision::Answer(Response::Ok {
        affected: 1,
        insert_id: 0,
    }));
    assert_eq!(answer("PROXY SET GLOBAL split.debug = true"), one);
    assert_eq!(answer("PROXY SET GLOBAL split.name = \"b\""), one);
    for (sql, words) in [
        ("PROXY SET GLOBAL other.x = 1", "module not known"),
        ("PROXY SET GLOBAL split.x = 1", "option not know"),
        (
            "PROXY SET GLOBAL split.debug = 1",
            "(auto-config) expected a boolean, got number",
        ),
        (
            "PROXY SAVE CONFIG INTO \"/etc/x\"",
            "(auto-config) the name of a file in quotes is wanted, without a folder",
        ),
    ] {
        let Ok(Decision::Answer(Response::Err { message, .. })) = answer(sql) else {
            panic!("{sql}")
        };
        assert_eq!(String::from_utf8_lossy(&message), words);
    }
    assert_eq!(answer("SELECT 1"), Ok(FORWARD));
}

#[test]
fn payloads_become_tables_and_come_back() {
    let text = "local proto = require('mysql.proto')
        local password = require('mysql.password')
        function read_query()
          local ok = proto.from_ok_packet(proto.to_ok_packet({ affected_rows = 3, insert_id = 7, server_status = 2, warnings = 1 }))
          print(ok.affected_rows, ok.insert_id, ok.server_status, ok.warnings)
          local err = proto.from_err_packet(proto.to_err_packet({ errmsg = 'no', errcode = 1064, sqlstate = '42000' }))
          print(err.errmsg, err.errcode, err.sqlstate)
          local eof = proto.from_eof_packet(proto.to_eof_packet({ server_status = 34 }))
          print(eof.server_status, eof.warnings)
          local hello = proto.from_challenge_packet(proto.to_challenge_packet({}))
          print(hello.server_version, hello.challenge, hello.protocol_version)
          local login = proto.from_response_packet(proto.to_response_packet({ server_capabilities = 41516, capabilities = 33288,
            username = 'u', response = 'r', database = 'd' }), 41516)
          print(login.username, login.response, login.database, login.capabilities)
          local early = proto.from_response_packet(proto.to_response_packet({ username = 'u', response = 'r', database = 'd' }), 41516)
          print(early.username, early.database, early.capabilities)
          print((proto.from_stmt_prepare_packet('\\22SELECT ?')).stmt_text, proto.from_stmt_close_packet('\\25\\5\\0\\0\\0').stmt_id)
          local run = '\\23\\5\\0\\0\\0\\0\\1\\0\\0\\0' .. '\\2' .. '\\1' .. '\\8\\0' .. '\\253\\0' .. '\\42\\0\\0\\0\\0\\0\\0\\0'
          local got = proto.from_stmt_execute_packet(run, 2)
          print(got.stmt_id, got.iteration_count, got.params[1].value, got.params[1].type, got.params[2].value)
          local info = proto.from_masterinfo_string('3\\nlog.1\\n42\\nhost')
          print(info.master_lines, info.master_log_file, info.master_log_pos, info.master_host)
          print((pcall(proto.from_ok_packet, '')), (pcall(proto.from_stmt_execute_packet, '\\23', 1)))
          local hash = password.hash('secret')
          local said = password.scramble(('x'):rep(20), hash)
          print(password.check(('x'):rep(20), said, password.hash(hash)), password.unscramble(('x'):rep(20), said, password.hash(hash)) == hash)
          print(proto == _G.proto, pcall(password.scramble, 'short', hash))
        end";
    let lines = printed(text, "x");
    assert_eq!(
        lines[..11],
        [
            "3\t7\t2\t1",
            "no\t1064\t42000",
            "34\t0",
            "50099\t01234567890123456789\t10",
            "u\tr\td\t33288",
            // Before 0.8.3 nobody said what the server knows.
            "u\td\t33288",
            "SELECT ?\t5",
            "5\t1\t42\t8\tnil",
            "3\tlog.1\t42\thost",
            "false\tfalse",
            "true\ttrue",
        ]
    );
    assert!(
        lines[11].contains("the challenge must have 20 bytes, it has 5"),
        "{}",
        lines[11]
    );
}

#[test]
fn small_modules_do_what_they_may_and_refuse_the_rest_by_name() {
    let text = "require('glib2') require('posix') require('lfs') require('chassis') local balance = require('proxy.balance')
        function read_query()
          local now = glib2.get_current_time()
          print(now.tv_sec, now.tv_usec, glib2.md5('abc'))
          print(posix.getpid() > 0, balance.idle_failsafe_rw(), balance.idle_ro())
          chassis.warning('careful')
          print(pcall(lfs.dir, '/'))
          print(pcall(posix.kill, 1, 9))
          print(pcall(require, 'lpeg'))
          print(pcall(require, 'Memcached'))
          print(pcall(require, 'luarocks.require'))
          print(pcall(require, 'nosuch'))
        end";
    let lines = printed(text, "x");
    assert_eq!(
        lines[..3],
        [
            "1200000000\t5\t900150983cd24fb0d6963f7d28e17f72",
            "true\t1\t2",
            "[warning] careful",
        ]
    );
    for (line, words) in lines[3..].iter().zip([
        "lfs.dir is not available: io and os have files",
        "posix.kill is not available: a script does not reach processes and accounts",
        "module 'lpeg' is not available to this script: lpeg is written in C, and no such code is loaded; string.find, string.gmatch and proxy.tokenizer read texts",
        "module 'Memcached' is not available to this script: a script opens no connections of its own; m.shared of require(\"millrace\") keeps values for all sessions, and cache_ttl of a rule keeps results",
        "module 'luarocks.require' is not available to this script: rocks are not looked for; a module of Lua may lie beside the script",
        "module 'nosuch' is not available to this script: it is neither built in nor a file beside the script",
    ]) {
        assert!(line.starts_with("false\t") && line.ends_with(words), "{line}");
    }
}

#[test]
fn files_beside_the_script_are_modules_of_all_its_sessions() {
    let module = |name: &str, text: &str| Module {
        name: name.into(),
        chunk: format!("{name}.lua").into(),
        text: text.into(),
    };
    let modules = [
        module(
            "tools.count",
            "module('tools.count', package.seeall)\nn = 0\nfunction up() n = n + 1 return n, proxy.connection.client.username end",
        ),
        module(
            "plain",
            "local again = require('tools.count')\nreturn { again = again, name = ... }",
        ),
        module("bad", "local x = nil\nx.y = 1"),
        module("circle", "require('circle')"),
    ];
    let vm = vm();
    let text = "local plain = require('plain')
        function read_query()
          print(tools.count.up())
          print(plain.again == require('tools.count'), plain.name, package.loaded.plain == plain)
          print(pcall(require, 'bad'))
          print(pcall(require, 'circle'))
        end";
    let source = text.into();
    for count in 1..=2 {
        let world = begin_with(&vm, &source, &modules).expect("a script that runs");
        assert_eq!(world.script.read_query(&query("x")), Ok(FORWARD));
        let lines = world.host.lines.take();
        assert_eq!(
            lines[..2],
            [format!("{count}\tapp"), "true\tplain\ttrue".to_owned()]
        );
        assert!(
            lines[2].contains("bad.lua:2: attempt to index local 'x'"),
            "{}",
            lines[2]
        );
        assert!(
            lines[3].contains("module 'circle' requires itself"),
            "{}",
            lines[3]
        );
    }
}

#[test]
fn json_is_written_and_read_under_all_of_its_names() {
    let World { host, script } = world(
        "local json, cjson = require('json'), require('cjson')
         local function list(t) table.sort(t) return table.concat(t, ' ') end
         function read_query()
           print(json.encode({ 1, 2.5, 'a\"\\n\\1', true, json.null }), json.encode({}), cjson.encode({ k = { 1 } }), json.encode(1e15))
           local t = json.decode(' {\"a\" : [1, -2.5e3, \"\\\\u00e4\\\\ud83d\\\\ude00\\\\/\"], \"b\":null, \"c\":{}, \"d\":false } ')
           print(#t.a, t.a[1], t.a[2], t.a[3], t.b == cjson.null, next(t.c), t.d)
           for _, bad in ipairs({ '', '{', '[1,', '{\"a\" 1}', 'nul', '\"x', '[1] 2', '\"\\\\x\"', '-' }) do
             print((select(2, pcall(json.decode, bad))))
           end
           for _, bad in ipairs({ { f = print }, 0 / 0, { [{}] = 1 } }) do print(pcall(json.encode, bad)) end
           print(require('cjson.safe').decode('{'))
           print(require('dkjson') == json, _G.json == json)
           print(require('md5').sumhexa('a'), #md5.sum('a'))
         end",
    );
    assert_eq!(script.read_query(b"\x0e"), Ok(FORWARD));
    assert_eq!(
        *host.lines.borrow(),
        [
            "[1,2.5,\"a\\\"\\n\\u0001\",true,null]\t{}\t{\"k\":[1]}\t1000000000000000",
            "3\t1\t-2500\t\u{e4}\u{1f600}/\ttrue\tnil\tfalse",
            "json: no value at byte 1",
            "json: no key at byte 2",
            "json: no value at byte 4",
            "json: no colon at byte 6",
            "json: no value at byte 1",
            "json: a text that does not end at byte 1",
            "json: something behind the value at byte 5",
            "json: an escape that there is not at byte 3",
            "json: no value at byte 1",
            "false\tjson: a function cannot be written",
            "false\tjson: a number is not finite",
            "false\tjson: a key is a table",
            "nil\tjson: no key at byte 2",
            "true\ttrue",
            "0cc175b9c0f1b6a831c399e269772661\t16",
        ]
    );
}

#[test]
fn a_file_of_the_script_is_what_a_common_name_means() {
    let own = Module {
        name: "json".into(),
        chunk: "json.lua".into(),
        text: "return { encode = function(...) return 'own ' .. arg.n end }".into(),
    };
    let text = "package.preload.made = function(name) return { name = name } end
        local json, made = require('json'), require('made')
        function read_query()
          print(json.encode(1, nil), made.name, package.loaded.made == made, require('made') == made)
          print(package.loadlib('x.so', 'f'))
          print(pcall(require, 'bounds'))
        end";
    let world = begin_with(&vm(), &text.into(), &[own]).unwrap();
    assert_eq!(world.script.read_query(b"\x0e"), Ok(FORWARD));
    let lines = world.host.lines.borrow();
    assert_eq!(
        lines[..2],
        [
            "own 2\tmade\ttrue\ttrue",
            "nil\tpackage.loadlib is not available to this script: it loads no code that is not Lua: x.so\tabsent",
        ]
    );
    assert!(
        lines[2].contains("it is neither built in nor a file"),
        "{}",
        lines[2]
    );
}
