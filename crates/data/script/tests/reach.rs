//! Reach of a script: lines in the log, files, the environment, and what it is refused.

mod session;

use config::Place;
use script::{Ask, FileAsk, Reply};
use session::{FORWARD, World, begin_before, query, vm};
use std::rc::Rc;

/// A session whose files and other answers are these.
fn run(text: &str, replies: Vec<Reply>) -> World {
    let host = Rc::new(session::Session::default());
    host.replies.borrow_mut().extend(replies);
    let world = begin_before(&vm(), &text.into(), &[], host).expect("a script that runs");
    assert_eq!(world.script.read_query(&query("x")), Ok(FORWARD));
    world
}

fn lines(world: &World) -> Vec<String> {
    world.host.lines.borrow().clone()
}

#[test]
fn what_a_script_writes_to_its_terminal_is_in_the_log() {
    let world = run(
        "function read_query()
           print()
           print('a', nil, 1, true)
           io.write('one ', 2, '\\nthree')
           io.stdout:write(' four ')
           print('five')
           io.stderr:write('six\\n')
           io.write('seven')
           io.flush()
           io.write(('x'):rep(9000))
           print(io.type(io.stdout), io.type(1), io.read(), io.lines()(), tostring(io.stderr))
           print(pcall(io.write, {}))
           io.write('left')
         end",
        vec![],
    );
    let long = "x".repeat(9000);
    let wanted = [
        "",
        "a\tnil\t1\ttrue",
        "one 2",
        "three four five",
        "six",
        "seven",
        &long,
        "file\tnil\tnil\tnil\tfile (stderr)",
        "false\tbad argument #1 to 'write' (string expected, got table)",
    ];
    assert_eq!(lines(&world), wanted);
    world.script.disconnect_client().unwrap();
    assert_eq!(lines(&world).last().unwrap(), "left");
}

#[test]
fn logs_are_put_at_the_end_of_files_in_folders_of_the_row() {
    let world = run(
        "local fh = assert(io.open('/srv/logs/a.log', 'a+'))
         function read_query()
           fh:write('one ', 2, '\\n')
           fh:flush()
           local other = io.open('/var/log/b.log', 'w')
           print(other:write('x'), other:seek(), other:setvbuf('no'), other:close(), io.type(other))
           print(pcall(other.write, other, 'y'))
           io.output('c.log')
           io.write('to c')
           io.close()
           print(io.open('../up', 'a'))
           print(io.open('x', 'r+'))
           print(io.open('x', 'z'))
           print(fh:read('*a'))
           print(pcall(fh.write, 'no self'))
           print(pcall(io.open))
         end",
        vec![Reply::File(b"one 2\n".to_vec())],
    );
    let files = world.host.files.borrow().clone();
    let file = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    assert_eq!(
        files,
        [
            file("/srv/logs/a.log", "one 2\n"),
            file("var/log/b.log", "(empty)"),
            file("var/log/b.log", "x"),
            file("/srv/c.log", "(empty)"),
            file("/srv/c.log", "to c"),
        ]
    );
    let wanted = [
        "the file /var/log/b.log is written below script-logs in the data directory: the column `folders` of its row in \
         mysql_scripts allows other places",
        "true\t1\ttrue\ttrue\tclosed file",
        "false\tattempt to use a closed file",
        "nil\t'../up' has '..' in it, and a script's files have none\t22",
        "nil\tx: a script writes at the end of a file alone: open it with a, a+, w or w+\t22",
        "nil\tx: Invalid argument\t22",
        "one 2\n",
        "false\tbad argument #1 to 'write' (FILE* expected, got string)",
        "false\tbad argument #1 to 'open' (string expected, got nil)",
    ];
    assert_eq!(lines(&world), wanted);
}

#[test]
fn a_file_is_read_while_only_its_session_waits() {
    let text = "a b\n12 0x10\n\nlast";
    let world = run(
        "function read_query()
           local fh = io.open('/srv/x')
           print(fh:read())
           print(fh:read('*n', '*n', 1))
           print(fh:read('*l', '*a', '*a', '*l'))
           print(fh:seek('set', 2), fh:read(1), fh:seek('cur'), fh:seek('end'), fh:seek('set', -1))
           for line in io.lines('/srv/x') do io.write('<', line, '>') end
           print()
           print(io.open('/srv/none'))
           print(pcall(io.lines, '/srv/none'))
           print(fh:write('x'))
         end",
        vec![
            Reply::File(text.into()),
            Reply::File(text.into()),
            Reply::Refused("No such file or directory".into()),
            Reply::Refused("No such file or directory".into()),
        ],
    );
    let wanted = [
        "a b",
        "12\t16\t\n",
        "\tlast\t\tnil",
        "2\tb\t3\t17\tnil\tInvalid argument\t22",
        "<a b><12 0x10><><last>",
        "nil\t/srv/none: No such file or directory\t2",
        "false\t/srv/none: No such file or directory",
        "nil\tBad file descriptor\t9",
    ];
    assert_eq!(lines(&world), wanted);
    let read = |name: &str| Ask::File(Place::At(name.into()), FileAsk::Read);
    let asked = world.host.asked.borrow();
    assert_eq!(
        asked[..],
        [
            read("/srv/x"),
            read("/srv/x"),
            read("/srv/none"),
            read("/srv/none")
        ]
    );
}

#[test]
fn files_are_removed_renamed_and_run() {
    let world = run(
        "function read_query()
           print(os.remove('/srv/a'))
           print(os.remove('b'))
           print(os.rename('/srv/a', '/srv/c'))
           print(os.rename('/srv/a', '../c'))
           print(dofile('/srv/d.lua'))
           print(loadfile('/srv/e.lua'))
           print(pcall(dofile, '/srv/none.lua'))
         end",
        vec![
            Reply::File(vec![]),
            Reply::Refused("No such file or directory".into()),
            Reply::File(vec![]),
            Reply::File(b"return 7, ...".to_vec()),
            Reply::File(b"return +".to_vec()),
            Reply::Refused("No such file or directory".into()),
        ],
    );
    let wanted = [
        "true",
        "nil\tb: No such file or directory\t2",
        "true",
        "nil\t'../c' has '..' in it, and a script's files have none\t22",
        "7",
        "nil\t/srv/e.lua:1: unexpected symbol near '+'",
        "false\tcannot open /srv/none.lua: No such file or directory",
    ];
    assert_eq!(lines(&world), wanted);
}

#[test]
fn a_script_sleeps_and_knows_its_time_and_surroundings() {
    let world = run(
        "local started = os.clock()
         function read_query()
           print(os.getenv('LANG'), os.getenv('NONE'), os.getenv('limit'))
           print(os.execute('sleep 0.5'), os.execute(' sleep 2m '), os.execute())
           print(os.setlocale(), os.setlocale('de_DE'), type(os.time()), os.difftime(3, 1))
           print(os.date('!%Y-%m-%d', 0), os.clock() >= started, type(os.tmpname()))
           print(pcall(os.execute, 'sleep 1; reboot'))
           print(pcall(os.getenv))
         end",
        vec![Reply::Slept, Reply::Slept],
    );
    let all = lines(&world);
    assert_eq!(
        all[..4],
        [
            "C\tnil\t3",
            "0\t0\t0",
            "C\tnil\tnumber\t2",
            "1970-01-01\ttrue\tstring"
        ]
    );
    assert!(
        all[4].starts_with("false\tos.execute is not available"),
        "{}",
        all[4]
    );
    assert_eq!(
        all[5],
        "false\tbad argument #1 to 'getenv' (string expected, got nil)"
    );
    assert_eq!(
        world.host.asked.borrow()[..],
        [Ask::Sleep(500_000), Ask::Sleep(120_000_000)]
    );
}

#[test]
fn a_script_finds_out_where_it_is() {
    let world = run(
        "local function here() local info = debug.getinfo(1, 'nSl') return info end
         function read_query()
           local info = here()
           print(info.short_src, info.currentline, info.what)
           local caller = debug.getinfo(1)
           print(caller.currentline, debug.getinfo(here).linedefined, debug.getinfo(99))
           print((xpcall(function() error('boom') end, debug.traceback)))
           local _, words = xpcall(function() error('boom') end, debug.traceback)
           print(words:match('^[^\\n]*\\nstack traceback:') ~= nil, debug.traceback({}) ~= nil)
           print(require('string') == string, require('io') == io, require('debug') == debug)
         end",
        vec![],
    );
    let wanted = [
        "t.lua\t1\tLua",
        "5\t1\tnil",
        "false",
        "true\ttrue",
        "true\ttrue\ttrue",
    ];
    assert_eq!(lines(&world), wanted);
}

/// All scripts of a core have one VM.
#[test]
fn what_is_of_the_vm_is_no_scripts() {
    let world = run(
        "local own = function() return y end
         function read_query()
           jit.off() jit.flush()
           print(collectgarbage('stop'), collectgarbage('setpause', 100), collectgarbage('count') > 0)
           setmetatable(_G, { __index = function() error('in the way') end })
           print(getmetatable(_G), nowhere)
           setfenv(own, { y = 7 })
           print(own())
           local function changed() setfenv(1, { print = print, z = 8 }) print(z) end
           changed()
         end",
        vec![],
    );
    assert_eq!(lines(&world), ["0\t0\ttrue", "nil\tnil", "7", "8"]);
}

/// Options are kept in a file of the script, and a client names no folder.
#[test]
fn options_are_saved_to_a_file_and_loaded() {
    let said = |sql: &str, replies: Vec<Reply>| {
        let text = format!(
            "local auto = require('proxy.auto-config')
             proxy.global.config.mine = {{ on = true, n = 7, words = 'a\"b' }}
             function read_query()
               local cmd = {{ type = proxy.COM_QUERY, query = [[{sql}]] }}
               print(auto.handle(cmd), proxy.response.errmsg, proxy.response.affected_rows)
               local mine = proxy.global.config.mine
               print(mine.on, mine.n, mine.words)
             end"
        );
        let world = run(&text, replies);
        let files = world.host.files.borrow().clone();
        (lines(&world), files)
    };
    let (said_of_save, files) = said("PROXY SAVE CONFIG INTO \"c.lua\"", Vec::new());
    assert_eq!(said_of_save, ["2\tnil\t0", "true\t7\ta\"b"]);
    let written: String = files.iter().map(|(_, text)| &**text).collect();
    assert_eq!(
        written,
        "(empty)return {\n  [\"mine\"] = {\n    [\"n\"] = 7,\n    [\"on\"] = true,\n    [\"words\"] = \"a\\\"b\",\n  },\n}\n"
    );
    assert!(
        files.iter().all(|(name, _)| name == "/srv/c.lua"),
        "{files:?}"
    );
    let file = "return { mine = { n = 8, on = false } }";
    let load = "proxy load config from 'c.lua'";
    let (loaded, _) = said(load, vec![Reply::File(file.into())]);
    assert_eq!(loaded, ["2\tnil\t0", "false\t8\ta\"b"]);
    for (sql, reply, words) in [
        (
            load,
            Reply::File("return 7".into()),
            "(auto-config) the file returns a number, and no table",
        ),
        (
            load,
            Reply::File("x = = 1".into()),
            "(auto-config) c.lua:1: unexpected symbol near '='",
        ),
        (
            load,
            Reply::File("os.exit()".into()),
            "(auto-config) c.lua:1: attempt to index global 'os' (a nil value)",
        ),
        (
            load,
            Reply::Refused("gone".into()),
            "(auto-config) cannot open c.lua: gone",
        ),
        (
            "PROXY SAVE CONFIG INTO \"../c.lua\"",
            Reply::Slept,
            "(auto-config) the name of a file in quotes is wanted, without a folder",
        ),
    ] {
        let (lines, files) = said(sql, vec![reply]);
        assert_eq!(lines[0], format!("2\t{words}\tnil"), "{sql}");
        assert!(files.is_empty(), "{files:?}");
    }
}
