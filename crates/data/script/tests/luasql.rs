//! LuaSQL: what a script asks servers itself, and how it waits.

mod session;

use script::{Ask, Connect, Counts, Decision, Outcome, Reply, Response};
use session::{FORWARD, Script, Session, World, begin, begin_before, query, vm, world};
use std::rc::Rc;
use wire::caps::{self, Caps};
use wire::resultset::{Column, Writer};

const CAPS: Caps = caps::PROTOCOL_41 | caps::DEPRECATE_EOF;

/// Two columns and these rows.
fn rows(rows: &[[Option<&str>; 2]]) -> Reply {
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out, 0, CAPS, 2);
    writer.columns(&[
        Column::integer("id").of("shop", "users"),
        Column::text("name"),
    ]);
    for row in rows {
        writer.text_row(row.iter().map(|value| value.map(str::as_bytes)));
    }
    writer.end(0);
    Reply::Rows(Outcome::new(Some(out), CAPS, false, Counts::default()))
}

fn before(text: &str, replies: impl IntoIterator<Item = Reply>) -> World {
    let host = Rc::new(Session::default());
    host.replies.borrow_mut().extend(replies);
    begin_before(&vm(), &text.into(), &[], host).expect("a script that runs")
}

fn execute(connection: u32, sql: &str) -> Ask {
    Ask::Execute {
        connection,
        sql: sql.into(),
    }
}

const BEGINS: &str = "require('luasql.mysql')
    local env = assert(luasql.mysql())
    local con = assert(env:connect('shop', 'u', 'p', '10.0.0.1', '3307'))\n";

/// A99: at the top of a script and in a hook a statement has its answer before the next line runs.
#[test]
fn statements_are_answered_before_the_next_line_runs() {
    let text = format!(
        "{BEGINS}
         local cur = assert(con:execute('SELECT 1'))
         print(cur:numrows(), cur:fetch())
         function read_query(packet)
           local cur = con:execute('SELECT 2')
           local row = {{}}
           while cur:fetch(row, 'na') do print(row[1], row.id, row.name) end
           print(cur:fetch(row), cur:close(), cur:close())
           print(con:execute('DELETE'), con:getlastautoid())
           print(con:execute('bad'))
         end"
    );
    let world = before(
        &text,
        [
            Reply::Connected(4),
            rows(&[[Some("1"), Some("one")]]),
            rows(&[[Some("7"), Some("x")], [Some("8"), None]]),
            Reply::Changed(3, 11),
            Reply::Refused("no".into()),
        ],
    );
    assert_eq!(world.script.read_query(&query("x")), Ok(FORWARD));
    assert_eq!(
        *world.host.lines.borrow(),
        [
            "1\t1\tone",
            "7\t7\tx",
            "8\t8\tnil",
            "nil\ttrue\tfalse\tCursor is already closed",
            "3\t11",
            "nil\tLuaSQL: error executing query. MySQL: no",
        ]
    );
    let connect = Connect {
        schema: "shop".into(),
        user: Some("u".into()),
        password: b"p".to_vec(),
        host: Some("10.0.0.1".into()),
        port: Some(3307),
        hostgroup: None,
    };
    assert_eq!(
        *world.host.asked.borrow(),
        [
            Ask::Connect(connect),
            execute(4, "SELECT 1"),
            execute(4, "SELECT 2"),
            execute(4, "DELETE"),
            execute(4, "bad"),
        ]
    );
}

/// A95: the script of the document that this project grew from, with quotes and dashes as Lua has
/// them. It puts one table into its list of rows again and again: all are the last row.
const SEED: &str = r#"require("luasql.mysql")
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

fn sent(script: &Script) -> Vec<u8> {
    let Ok(Decision::Answer(response)) = script.read_query(&query("SELECT *")) else {
        panic!("no answer")
    };
    let mut out = Vec::new();
    response.write(&mut out, 0, (CAPS, 2, 0), false);
    out
}

/// A95, A98: as it stands, and the columns keep their types.
#[test]
fn the_script_of_the_document_runs_as_it_stands() {
    let one = rows(&[[Some("1"), Some("ann")]]);
    let Reply::Rows(wanted) = rows(&[[Some("1"), Some("ann")]]) else {
        panic!("rows")
    };
    let two = rows(&[[Some("1"), Some("ann")], [Some("2"), Some("bob")]]);
    let world = before(SEED, [Reply::Connected(1), one, two, Reply::Changed(1, 0)]);
    assert_eq!(world.script.has_logged_in(), Ok(None));
    let packets = wanted.packets.map(|packets| packets.to_vec());
    assert_eq!(Some(sent(&world.script)), packets);
    let read = wire::rows::read(&sent(&world.script), CAPS).unwrap();
    let bob = vec![Some(b"2".to_vec()), Some(b"bob".to_vec())];
    assert_eq!(read.rows, [bob.clone(), bob]);
    assert_eq!(
        world.script.read_query(&query("INSERT")),
        Ok(Decision::Answer(Response::Raw(vec![b"\0\x01\0".to_vec()])))
    );
    assert_eq!(world.script.disconnect_client(), Ok(()));
    assert_eq!(*world.host.closed.borrow(), [1]);
    let connect = Connect {
        schema: "test".into(),
        user: Some("app".into()),
        password: b"stand-in".to_vec(),
        host: Some("10.0.0.1".into()),
        port: Some(3306),
        hostgroup: None,
    };
    assert_eq!(world.host.asked.borrow()[0], Ask::Connect(connect));
}

/// Hooks that a script does not have are not counted.
#[test]
fn calls_are_told_with_what_they_waited_for_and_why_they_failed() {
    let text = format!(
        "{BEGINS} function read_query() con:execute('a') con:execute('b') error('no', 0) end"
    );
    let replies = [
        Reply::Connected(1),
        Reply::Changed(0, 0),
        Reply::Changed(0, 0),
    ];
    let world = before(&text, replies);
    let _failed = world.script.read_query(&query("x"));
    assert_eq!(world.script.disconnect_client(), Ok(()));
    assert_eq!(
        *world.host.calls.borrow(),
        ["main 1 None", "read_query 2 Some(\"(read_query) no\")",]
    );
}

#[test]
fn objects_refuse_what_they_are_not_for() {
    let text = format!(
        "{BEGINS}
         function read_query()
           print((tostring(con):gsub('0x%x+', 'at')), getmetatable(con))
           print(pcall(con.execute, env, 'SELECT 1'))
           print(pcall(con.execute, con, nil))
           print(con:escape('a\\0\\'b\\\\\\n'))
           print(con:close(), con:close())
           print(pcall(con.execute, con, 'SELECT 1'))
           print(tostring(con), con:ping(), env:close(), env:close())
           print(pcall(env.connect, env, 'x'))
           print(luasql.mysql():connect('nosuch'))
         end"
    );
    let world = before(
        &text,
        [Reply::Connected(1), Reply::Refused("there is none".into())],
    );
    assert_eq!(world.script.read_query(&query("x")), Ok(FORWARD));
    let lines = world.host.lines.borrow();
    for (line, words) in lines.iter().zip([
        "MySQL connection (at)\tLuaSQL: you're not allowed to get this metatable",
        "LuaSQL: connection expected",
        "LuaSQL: a statement must be a string",
        "a\\0\\'b\\\\\\n",
        "true\tfalse\tConnection is already closed",
        "LuaSQL: connection is closed",
        "MySQL connection (closed)\tfalse\ttrue\tfalse\tEnvironment is already closed",
        "LuaSQL: environment is closed",
        "nil\tLuaSQL: error connecting to database. MySQL: there is none",
    ]) {
        assert!(line.contains(words), "{line}");
    }
    assert_eq!(lines.len(), 9);
}

#[test]
fn a_connection_that_nobody_has_any_more_is_given_back() {
    let text = "require('luasql.mysql')
        function read_query() luasql.mysql():connect('a') collectgarbage() collectgarbage() end";
    let world = before(text, [Reply::Connected(9), Reply::Connected(10)]);
    for _ in 0..2 {
        assert_eq!(world.script.read_query(&query("x")), Ok(FORWARD));
    }
    assert_eq!(*world.host.closed.borrow(), [9]);
}

/// Waiting passes through protected calls and coroutines of the script's own.
#[test]
fn waiting_passes_through_coroutines() {
    let text = "require('glib2') -- usleep
        function read_query()
          local co = coroutine.wrap(function()
            glib2.usleep(1)
            coroutine.yield(1)
            print(pcall(glib2.usleep, 2))
            return 2
          end)
          print(co(), co())
          print(pcall(string.gsub, 'a', 'a', function() glib2.usleep(3) end))
          print(pcall(table.sort, { 2, 1 }, function() glib2.usleep(3) end))
        end
        function disconnect_client() glib2.usleep(4) end";
    let world = before(text, [Reply::Slept, Reply::Slept, Reply::Slept]);
    assert_eq!(world.script.read_query(&query("x")), Ok(FORWARD));
    let lines = world.host.lines.borrow();
    assert_eq!(lines[..2], ["true", "1\t2"]);
    assert!(lines[2].contains("attempt to yield across"), "{lines:?}");
    assert_eq!(lines[3..], ["true"]);
    assert_eq!(
        *world.host.asked.borrow(),
        [Ask::Sleep(1), Ask::Sleep(2), Ask::Sleep(3)]
    );
    let failed = world.script.disconnect_client().unwrap_err();
    assert!(failed.0.contains("this hook cannot wait"), "{failed}");
}

/// A hook that waits sees its own session afterwards, whoever ran meanwhile, and its time counts only
/// while it runs.
#[test]
fn sessions_that_wait_do_not_meet() {
    let vm = vm();
    let text = "require('luasql.mysql')
        local con = luasql.mysql():connect('a')
        function read_query(packet)
          mine = packet
          proxy.queries:append(1, packet)
          con:execute(packet)
          if mine ~= packet or #proxy.queries ~= 1 then error('another one') end
          return proxy.PROXY_SEND_QUERY
        end";
    let new = || {
        let host = Rc::new(Session::default());
        host.replies
            .borrow_mut()
            .extend([Reply::Connected(1), Reply::Changed(0, 0)]);
        begin_before(&vm, &text.into(), &[], host).expect("a script that runs")
    };
    let (one, other) = (new(), new());
    let (first, second) = (query("first"), query("second"));
    let both = async {
        let mut one = std::pin::pin!(one.script.0.read_query(&first));
        let waits =
            std::future::poll_fn(|cx| std::task::Poll::Ready(one.as_mut().poll(cx).is_pending()));
        assert!(waits.await);
        assert_eq!(
            other.script.0.read_query(&second).await,
            Ok(Decision::Queue)
        );
        assert_eq!(one.await, Ok(Decision::Queue));
    };
    session::done(both);
    assert_eq!(one.script.next().unwrap().unwrap().packet, first);
    assert_eq!(other.script.next().unwrap().unwrap().packet, second);
}

#[test]
fn a_script_that_waits_is_ended_like_any_other() {
    for (hook, words) in [
        ("while true do end", "the hook has run for too long"),
        ("coroutine.yield(5)", "attempt to yield from a hook"),
        ("error('mine')", "t.lua:1: mine"),
        (
            "local t = {} while true do t[#t + 1] = ('x'):rep(1e6) .. #t end",
            "not enough memory",
        ),
    ] {
        let World { script, .. } = world(&format!("function read_query() {hook} end -- luasql"));
        let failed = script.read_query(&query("x")).unwrap_err();
        assert!(failed.0.contains(words), "{hook}: {failed}");
    }
    let failed = begin(
        &vm(),
        "require('luasql.mysql').mysql():connect('a'):close()",
    )
    .err();
    assert!(
        failed
            .unwrap()
            .0
            .starts_with("(load) t.lua:1: attempt to index")
    );
}
