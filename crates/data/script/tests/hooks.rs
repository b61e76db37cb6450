//! Hooks of scripts, before a session that is made up.

mod session;

use script::{Chosen, Counts, Decision, Failed, Host as _, Item, Outcome, Response, Verdict};
use session::{FORWARD, Script, World, begin, query, vm, world};
use wire::caps::{self, Caps};
use wire::resultset::{Column, Writer};

const CAPS: Caps = caps::PROTOCOL_41 | caps::DEPRECATE_EOF;

fn all(script: &Script) -> Vec<Item> {
    std::iter::from_fn(|| script.next().expect("there is memory")).collect()
}

/// Two columns and two rows, with a NULL.
fn result() -> Outcome {
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out, 0, CAPS, 2);
    writer.columns(&[
        Column::integer("id").of("shop", "users"),
        Column::text("name"),
    ]);
    writer.text_row([Some(&b"1"[..]), Some(b"ann")]);
    writer.text_row([Some(&b"2"[..]), None]);
    writer.end(0);
    let counts = Counts {
        has_rows: true,
        rows: 2,
        bytes: out.len() as u64,
        status: 2,
        ..Counts::default()
    };
    Outcome::new(Some(out), CAPS, false, counts)
}

fn ok() -> Outcome {
    let mut out = Vec::new();
    Writer::new(&mut out, 0, CAPS, 3).ok(&wire::ok::Ok::default());
    let counts = Counts {
        affected: 4,
        insert_id: 9,
        status: 3,
        ..Counts::default()
    };
    Outcome::new(Some(out), CAPS, false, counts)
}

fn written(response: &Response, is_binary: bool) -> Vec<u8> {
    let mut out = Vec::new();
    response.write(&mut out, 0, (CAPS, 2, 0), is_binary);
    out
}

/// Queues the client's query and shows the hook this answer.
fn judged(script: &Script, outcome: Outcome) -> Result<Verdict, Failed> {
    assert_eq!(script.read_query(&query("SELECT 1")), Ok(Decision::Queue));
    let items = all(script);
    script.read_query_result(&items[0], outcome)
}

#[test]
fn a_script_without_hooks_lets_everything_through() {
    let World { script, .. } = world("local x = 1");
    assert_eq!(script.read_query(&query("SELECT 1")), Ok(FORWARD));
    assert_eq!(script.disconnect_client(), Ok(()));
}

#[test]
fn queries_are_rewritten_and_put_before_and_behind() {
    let World { script, .. } = world(
        "function read_query(packet)
           if packet:byte() ~= proxy.COM_QUERY then return end
           proxy.queries:append(2, (packet:gsub('one', 'two')))
           proxy.queries:prepend(1, string.char(proxy.COM_QUERY) .. 'SET @a = 1', { resultset_is_needed = true })
           proxy.queries:append(3, string.char(proxy.COM_INIT_DB) .. 'x')
           if #proxy.queries ~= 3 or proxy.queries:len() ~= 3 then error('length') end
           return proxy.PROXY_SEND_QUERY
         end
         function read_query_result(inj) end",
    );
    assert_eq!(script.read_query(&query("SELECT one")), Ok(Decision::Queue));
    let items = all(&script);
    let packets: Vec<_> = items.iter().map(|item| item.packet.clone()).collect();
    assert_eq!(
        packets,
        [query("SET @a = 1"), query("SELECT two"), b"\x02x".to_vec()]
    );
    let collected: Vec<_> = items.iter().map(|item| item.is_collected).collect();
    assert_eq!(collected, [true, false, false]);
    // What is queued for one command is not there at the next.
    assert_eq!(script.read_query(b"\x0e"), Ok(FORWARD));
    assert_eq!(script.next(), Ok(None));
}

#[test]
fn an_answer_is_made_up_in_every_form() {
    let answer = |body: &str| {
        let World { script, .. } = world(&format!(
            "function read_query(packet) proxy.response = {body} return proxy.PROXY_SEND_RESULT end"
        ));
        script.read_query(&query("x"))
    };
    let Ok(Decision::Answer(rows)) = answer(
        "{ type = proxy.MYSQLD_PACKET_OK, resultset = { fields = { { name = 'a', type = proxy.MYSQL_TYPE_LONG }, {} },
           rows = { { 1, 'x' }, { nil, 2.5 }, { 'no number' } } } }",
    ) else {
        panic!("no answer")
    };
    let read = wire::rows::read(&written(&rows, false), CAPS).unwrap();
    let some = |text: &str| Some(text.as_bytes().to_vec());
    assert_eq!(
        read.rows,
        [
            vec![some("1"), some("x")],
            vec![None, some("2.5")],
            vec![some("no number"), None]
        ]
    );
    assert_eq!(
        read.shapes[0].kind,
        wire::types::Type::VAR_STRING,
        "not all are numbers"
    );
    assert!(!written(&rows, true).is_empty());
    let Ok(Decision::Answer(rows)) = answer(
        "{ type = proxy.MYSQLD_PACKET_OK, resultset = { fields = { { name = 'a', type = proxy.MYSQL_TYPE_LONG },
           { name = 'b', type = proxy.MYSQL_TYPE_LONG } }, rows = { { 1, 7 }, { 0.25, -7 } } } }",
    ) else {
        panic!("no answer")
    };
    let read = wire::rows::read(&written(&rows, false), CAPS).unwrap();
    let kinds = read.shapes.iter().map(|shape| shape.kind);
    let kinds = kinds.collect::<Vec<_>>();
    let wanted = [wire::types::Type::DOUBLE, wire::types::Type::LONG];
    assert_eq!(kinds, wanted, "not all are whole");
    assert_eq!(
        answer("{ type = proxy.MYSQLD_PACKET_OK, affected_rows = 3 }"),
        Ok(Decision::Answer(Response::Ok {
            affected: 3,
            insert_id: 0
        }))
    );
    assert_eq!(
        answer("{ type = proxy.MYSQLD_PACKET_ERR, errmsg = 'no', errno = 1064, sqlstate = 42000 }"),
        Ok(Decision::Answer(Response::Err {
            code: 1064,
            state: *b"42000",
            message: b"no".to_vec()
        }))
    );
    let Ok(Decision::Answer(raw)) = answer("{ type = -6, packets = { '\\000\\001\\000' } }") else {
        panic!("no answer")
    };
    // An OK of before 4.1 gets a status.
    assert_eq!(written(&raw, false), b"\x07\0\0\x01\0\x01\0\x02\0\0\0");
    for (body, words) in [
        ("1", "(read_query) proxy.response is no table"),
        (
            "{}",
            "(read_query) proxy.response.type is none of proxy.MYSQLD_PACKET_OK, _ERR, _RAW",
        ),
        (
            "{ type = 250 }",
            "(read_query) proxy.response.packets is no table",
        ),
        (
            "{ type = 0, resultset = { fields = { 1 } } }",
            "(read_query) an element of proxy.response.resultset.fields is no table",
        ),
        (
            "{ type = 0, resultset = { fields = {} } }",
            "(read_query) proxy.response.resultset.fields is empty",
        ),
    ] {
        let wanted = Decision::Unsayable(Failed(words.into()));
        assert_eq!(answer(body), Ok(wanted), "{body}");
    }
}

/// A94, A98: what a script copies has the columns of the original.
#[test]
fn a_copied_result_keeps_its_columns() {
    let World { script, .. } = world(
        "function read_query(packet) proxy.queries:append(1, packet) return proxy.PROXY_SEND_QUERY end
         function read_query_result(inj)
           local res = inj.resultset
           if not res.fields then return end
           local fields, rows = {}, {}
           for i = 1, #res.fields do fields[i] = { type = res.fields[i].type, name = res.fields[i].name } end
           for row in res.rows do rows[#rows + 1] = row end
           proxy.response = { type = proxy.MYSQLD_PACKET_OK, resultset = { fields = fields, rows = rows } }
           return proxy.PROXY_SEND_RESULT
         end",
    );
    let wanted = result().packets;
    let Ok(Verdict::Instead(copy)) = judged(&script, result()) else {
        panic!("no copy")
    };
    assert_eq!(
        Some(written(&copy, false)),
        wanted.map(|packets| packets.to_vec())
    );
    // An OK has no fields at this level.
    assert_eq!(judged(&script, ok()), Ok(Verdict::PassOn));
}

#[test]
fn a_hook_sees_all_of_an_answer() {
    let World { host, script } = world(
        "function read_query(packet) proxy.queries:append(5, packet, { resultset_is_needed = true }) return proxy.PROXY_SEND_QUERY end
         function read_query_result(inj)
           local r = inj.resultset
           print(inj.id, inj.type, inj.query, r.row_count, r.affected_rows, r.insert_id, r.query_status, r.flags.in_trans, r.flags.auto_commit)
           if r.rows then for row in r.rows do print(row[1], row[2]) end end
           print(#r.fields, r.fields[1] and r.fields[1].org_table, r.raw:byte())
           kept = kept or r
           if kept ~= r then print(pcall(function() return kept.raw end)) end
           return proxy.PROXY_IGNORE_RESULT
         end",
    );
    assert_eq!(judged(&script, result()), Ok(Verdict::Ignore));
    assert_eq!(judged(&script, ok()), Ok(Verdict::Ignore));
    let lines = host.lines.borrow();
    assert_eq!(
        lines[..6],
        [
            "5\t5\t\u{3}SELECT 1\t2\tnil\tnil\t0\tfalse\ttrue",
            "1\tann",
            "2\tnil",
            "2\tusers\t2",
            "5\t5\t\u{3}SELECT 1\t0\t4\t9\t0\ttrue\ttrue",
            "0\tnil\t0",
        ]
    );
    assert!(
        lines[6].starts_with("false\t")
            && lines[6].ends_with(".resultset is gone: its hook has returned"),
        "{}",
        lines[6]
    );
    drop(lines);
    let gone = Outcome::new(None, CAPS, false, Counts::default());
    let failed = judged(&script, gone).unwrap_err();
    assert_eq!(
        failed.0,
        "(read_query_result) t.lua:5: .resultset.rows isn't available if 'resultset_is_needed ~= true'"
    );
}

/// Scripts of 0.6 take an error for a number below 0, and those that were written later for 255.
#[test]
fn an_error_is_below_zero_for_who_compares_it_with_zero() {
    for (condition, wanted) in [
        ("res.query_status < 0", "-1\t-1\ttrue"),
        (
            "res.query_status == proxy.MYSQLD_PACKET_ERR",
            "255\t255\ttrue",
        ),
    ] {
        let World { host, script } = world(&format!(
            "function read_query(packet)
               proxy.queries:append(1, packet, {{ resultset_is_needed = true }})
               return proxy.PROXY_SEND_QUERY
             end
             function read_query_result(inj)
               local res = inj.resultset
               print(res.query_status, proxy.MYSQLD_PACKET_ERR, {condition})
               proxy.response = {{ type = proxy.MYSQLD_PACKET_ERR, errmsg = 'mine' }}
               return proxy.PROXY_SEND_RESULT
             end"
        ));
        assert_eq!(script.read_query(&query("x")), Ok(Decision::Queue));
        let item = script.next().unwrap().unwrap();
        let mut out = Vec::new();
        Writer::new(&mut out, 0, CAPS, 2).err(&wire::ok::Err {
            code: 1146,
            state: *b"42S02",
            message: b"no table",
        });
        let counts = Counts {
            failed: true,
            ..Counts::default()
        };
        let failed = Outcome::new(Some(out), CAPS, false, counts);
        assert!(matches!(
            script.read_query_result(&item, failed),
            Ok(Verdict::Instead(Response::Err { .. }))
        ));
        assert_eq!(*host.lines.borrow(), [wanted]);
    }
}

/// Rows of an error: `for row in nil`, whose words say little.
#[test]
fn a_hook_that_raises_at_an_error_names_it() {
    let World { script, .. } = world(
        "function read_query(packet) proxy.queries:append(1, packet) return proxy.PROXY_SEND_QUERY end
         function read_query_result(inj) for row in inj.resultset.rows do print(row[1]) end end",
    );
    assert_eq!(script.read_query(&query("x")), Ok(Decision::Queue));
    let item = script.next().unwrap().unwrap();
    let mut out = Vec::new();
    Writer::new(&mut out, 0, CAPS, 2).err(&wire::ok::Err {
        code: 1146,
        state: *b"42S02",
        message: b"no table",
    });
    let failed = Outcome::new(Some(out), CAPS, false, Counts::default());
    assert_eq!(
        script.read_query_result(&item, failed),
        Err(Failed(
            "(read_query_result) t.lua:2: attempt to call a nil value; the server's answer was error 1146: no table".into()
        ))
    );
}

/// A `return` is forgotten easily.
#[test]
fn queries_that_are_queued_and_not_sent_are_told_once() {
    let World { host, script } =
        world("function read_query(packet) proxy.queries:append(1, packet) end");
    for _ in 0..2 {
        assert_eq!(script.read_query(&query("x")), Ok(FORWARD));
    }
    let wanted = "(read_query) has queued queries (1) and not returned proxy.PROXY_SEND_QUERY: they are dropped, and the command goes on as it is";
    assert_eq!(*host.lines.borrow(), [wanted]);
}

/// A96: where the servers are.
#[test]
fn servers_and_the_client_are_there_to_look_at() {
    let World { host, script } = world(
        "function read_query()
           print(#proxy.backends, string.match(proxy.backends[1].address, '(.*):(.*)'))
           local two = proxy.global.backends[2]
           print(two.dst.name, two.type == proxy.BACKEND_TYPE_RO, two.state == proxy.BACKEND_STATE_UP, two.pool.users.x.cur_idle_connections)
           print(proxy.backends[3], proxy.backends[0], proxy.nosuch)
           local c = proxy.connection.client
           print(c.default_db, c.username, c.thread_id, c.mysqld_version, c.src.name, c.dst.port, proxy.connection.thread_id)
           local s = proxy.connection.server
           print(c.address, s.address, s.dst.address, s.dst.port, s.src.name, s.mysqld_version)
           proxy.connection.backend_ndx = 2
           print(s.dst.name)
           print(pcall(function() proxy.backends[1].address = 1 end))
           print(pcall(function() proxy.connection.nosuch = 1 end))
           proxy.connection.connection_close = true
         end",
    );
    let second = session::Session::default().servers().remove(1);
    let there = Ok(Decision::Forward(Chosen::At(second)));
    assert_eq!(script.read_query(b"\x0e"), there);
    assert!(script.wishes().closes);
    assert_eq!(
        *host.lines.borrow(),
        [
            "2\t10.0.0.1\t3306",
            "::1:3306\ttrue\ttrue\t4",
            "nil\tnil\tnil",
            "shop\tapp\t7\t50114\t10.0.0.9:50000\tnil\t7",
            "10.0.0.9:50000\t10.0.0.1:3306\t10.0.0.1\t3306\t/run/m.sock\t50114",
            "::1:3306",
            "false\tt.lua:12: proxy.global.backends[...].address is not writable",
            "false\tt.lua:13: proxy.connection.nosuch is not writable",
        ]
    );
}

#[test]
fn a_script_writes_on_servers_for_all_of_its_sessions() {
    let World { host, script } = world(
        "function read_query()
           local one = proxy.global.backends[1]
           print(one.state, one.uuid, one.connected_clients, one.pool.min_idle_connections)
           one.state = proxy.BACKEND_STATE_DOWN
           one.uuid, one.pool.min_idle_connections = 'a', 4
           local again = proxy.global.backends[1]
           print(one.state, again.state, again.uuid, again.pool.min_idle_connections, proxy.backends[2].state)
           one.state, one.uuid = proxy.BACKEND_STATE_UNKNOWN, ''
           print(one.state, one.uuid, one.pool.users.app.cur_idle_connections, one.pool.users[''].cur_idle_connections)
           print(pcall(function() one.state = 'up' end))
           print(pcall(function() one.pool.users = {} end))
           print(pcall(function() proxy.backends[9] = {} end))
         end",
    );
    assert_eq!(script.read_query(b"\x0e"), Ok(FORWARD));
    assert_eq!(
        *host.lines.borrow(),
        [
            "1\tnil\t3\t0",
            "2\t2\ta\t4\t1",
            "1\tnil\t2\t4",
            "false\tt.lua:10: proxy.global.backends[...].state must be one of proxy.BACKEND_STATE_…",
            "false\tt.lua:11: proxy.global.backends[...].pool.users is not writable",
            "false\tt.lua:12: proxy.global.backends is not writable",
        ]
    );
}

#[test]
fn a_script_chooses_the_server_of_what_runs_next() {
    let World { host, script } = world(
        "function connect_server()
           print(proxy.connection.backend_ndx, proxy.connection.server)
           proxy.connection.backend_ndx = 2
         end
         function read_query(packet)
           print(proxy.connection.backend_ndx, proxy.connection.server ~= nil)
           if packet:byte() == proxy.COM_PING then
             proxy.connection.backend_ndx = 2
             return
           end
           print(pcall(function() proxy.connection.backend_ndx = 3 end))
           print(pcall(function() proxy.queries:append(1, packet, { backend_ndx = -1 }) end))
           proxy.queries:append(1, packet)
           proxy.queries:append(2, packet, { backend_ndx = 1 })
           proxy.connection.backend_ndx = 0
           return proxy.PROXY_SEND_QUERY
         end",
    );
    let place = |chosen: &Chosen| match chosen {
        Chosen::At(server) => server.host.clone(),
        other => format!("{other:?}"),
    };
    let (chosen, said) = script.connect_server().unwrap();
    assert_eq!((&*place(&chosen), said), ("::1", None));
    match script.read_query(b"\x0e") {
        Ok(Decision::Forward(chosen)) => assert_eq!(place(&chosen), "::1"),
        other => panic!("{other:?}"),
    }
    assert_eq!(script.read_query(&query("SELECT 1")), Ok(Decision::Queue));
    let queued = || place(&script.next().unwrap().unwrap().chosen);
    assert_eq!([queued(), queued()], ["Nowhere", "10.0.0.1"]);
    assert_eq!(place(&script.wishes().chosen), "Nowhere");
    assert_eq!(
        *host.lines.borrow(),
        [
            "0\tnil",
            "1\ttrue",
            "2\ttrue",
            "false\tt.lua:11: proxy.connection.backend_ndx must be a number from 0 to 2, that of the last backend",
            "false\tt.lua:12: backend_ndx must be from 0 to 2, that of the last backend",
        ]
    );
}

/// A result, an OK behind it, and one more result: of a CALL.
fn several() -> Outcome {
    let more = wire::status::MORE_RESULTS;
    let (mut out, mut seq) = (Vec::new(), 0);
    for (name, status) in [("a", 2 | more), ("", 2 | more), ("b", 2)] {
        let mut writer = Writer::new(&mut out, seq, CAPS, status);
        match name {
            "" => writer.ok(&wire::ok::Ok {
                affected: 3,
                ..wire::ok::Ok::default()
            }),
            name => {
                writer.columns(&[Column::text(name)]);
                writer.text_row([Some(name.as_bytes())]);
                writer.end(0);
            }
        }
        seq = writer.last_seq();
    }
    let counts = Counts {
        has_rows: true,
        rows: 2,
        ..Counts::default()
    };
    Outcome::new(Some(out), CAPS, false, counts)
}

#[test]
fn a_script_reads_and_answers_several_results() {
    let World { host, script } = world(
        "function read_query(packet) proxy.queries:append(1, packet) return proxy.PROXY_SEND_QUERY end
         function read_query_result(inj)
           for row in inj.resultset.rows do print('first', row[1]) end
           local made = {}
           for i, one in ipairs(inj.resultsets) do
             print(i, one.fields and one.fields[1].name, one.row_count, one.affected_rows, one.flags.auto_commit)
             if one.fields then
               for row in one.rows do made[i] = { fields = { { name = one.fields[1].name } }, rows = { { row[1] .. '!' } } } end
             else
               made[i] = { affected_rows = one.affected_rows }
             end
           end
           proxy.response = { type = proxy.MYSQLD_PACKET_OK, resultsets = made }
           return proxy.PROXY_SEND_RESULT
         end",
    );
    let Ok(Verdict::Instead(made)) = judged(&script, several()) else {
        panic!("the script has an answer")
    };
    assert_eq!(
        *host.lines.borrow(),
        [
            "first\ta",
            "1\ta\t1\tnil\ttrue",
            "2\tnil\t0\t3\ttrue",
            "3\tb\t1\tnil\ttrue",
        ]
    );
    let caps = CAPS | caps::MULTI_RESULTS;
    let bytes = written(&made.for_client(caps, false), false);
    let parts = wire::rows::results(&bytes, CAPS);
    assert_eq!(parts.len(), 3);
    let last = wire::rows::read(parts[2], CAPS).unwrap();
    assert_eq!(last.rows, [[Some(b"b!".to_vec())]]);
    let mut response = wire::response::Response::expect(wire::response::Expect::Query, caps);
    let followed = response.follow(&bytes);
    assert_eq!(
        followed,
        Ok(wire::response::Follow::Ended { used: bytes.len() })
    );
    assert!(
        made.for_client(CAPS, false).is_error(),
        "it takes one result"
    );
    for (made, words) in [
        ("{}", "proxy.response.resultsets is empty"),
        ("7", "proxy.response.resultsets is no table"),
        (
            "{ 7 }",
            "an element of proxy.response.resultsets is no table",
        ),
        (
            "{ { fields = {} } }",
            "proxy.response.resultset.fields is empty",
        ),
    ] {
        let text = format!(
            "function read_query() proxy.response = {{ type = 0, resultsets = {made} }} return proxy.PROXY_SEND_RESULT end"
        );
        let decided = world(&text).script.read_query(&query("x"));
        let failed = Failed(format!("(read_query) {words}"));
        assert_eq!(decided, Ok(Decision::Unsayable(failed)));
    }
}

#[test]
fn globals_are_a_sessions_and_proxy_global_is_everybodys() {
    let vm = vm();
    let text = "own = (own or 0) + 1
                proxy.global.all = (proxy.global.all or 0) + 1
                function read_query() print(own, proxy.global.all) end";
    let (one, other) = (begin(&vm, text).unwrap(), begin(&vm, text).unwrap());
    for world in [&one, &other] {
        assert_eq!(world.script.read_query(b"\x0e"), Ok(FORWARD));
        assert_eq!(*world.host.lines.borrow(), ["1\t2"]);
    }
}

#[test]
fn a_script_that_misbehaves_is_ended_and_named() {
    for (text, words) in [
        (
            "function read_query() local t = nil; return t.x end",
            "(read_query) t.lua:1: attempt to index local 't' (a nil value)",
        ),
        (
            "function read_query() while true do end end",
            "the hook has run for too long",
        ),
        (
            "function read_query() for i = 1, 1e12 do local x = i * 2 end end",
            "the hook has run for too long",
        ),
        (
            "function read_query() while true do pcall(function() while true do end end) end end",
            "the hook has run for too long",
        ),
        (
            "function read_query() coroutine.wrap(function() while true do end end)() end",
            "the hook has run for too long",
        ),
        (
            "function read_query() local t = {} while true do t[#t + 1] = ('x'):rep(1e6) .. #t end end",
            "not enough memory",
        ),
        (
            "function read_query() coroutine.yield() end",
            "attempt to yield",
        ),
        ("function read_query() error({}) end", "(read_query)"),
        (
            "function read_query() io.popen('ls') end",
            "t.lua:1: io.popen is not available to this script: it starts no programs. m.http",
        ),
        (
            "function read_query() require('ffi') end",
            "module 'ffi' is not available to this script",
        ),
        (
            "function read_query() debug.sethook() end",
            "t.lua:1: debug.sethook is not available to this script: it reaches other scripts",
        ),
        (
            "function read_query() os.execute('true') end",
            "t.lua:1: os.execute is not available to this script: it starts no programs; `sleep`",
        ),
        (
            "function read_query() os.exit(1) end",
            "t.lua:1: os.exit is not available to this script: it does not end the proxy",
        ),
        (
            "function read_query() io.flash() end",
            "t.lua:1: io.flash is not available to this script: Lua 5.1 has no such function",
        ),
        (
            "function read_query() assert(loadstring('\\27LJ')) end",
            "compiled code is not loaded",
        ),
        (
            "function read_query() string.dump(print) end",
            "t.lua:1: string.dump is not available to this script",
        ),
        (
            "function read_query() pcall() end",
            "t.lua:1: bad argument #1 to 'pcall' (value expected, got no value)",
        ),
        (
            "function read_query() coroutine.resume(1) end",
            "t.lua:1: bad argument #1 to 'resume' (thread expected, got number)",
        ),
        (
            "function read_query() coroutine.wrap() end",
            "t.lua:1: bad argument #1 to 'wrap' (function expected, got no value)",
        ),
        (
            "function read_query() setfenv(0, {}) end",
            "t.lua:1: setfenv(0, …) is not available to this script",
        ),
        (
            "function read_query() setfenv(2, {}) end",
            "t.lua:1: setfenv changes functions of scripts alone",
        ),
        (
            "function read_query() setfenv(proxy.queries.append, {}) end",
            "t.lua:1: setfenv changes functions of scripts alone",
        ),
    ] {
        let World { script, .. } = world(text);
        let failed = script.read_query(&query("x")).unwrap_err();
        assert!(failed.0.contains(words), "{text}: {failed}");
        // The next one is none the worse for it.
        assert_eq!(script.next(), Ok(None));
    }
    for (text, words) in [
        ("function read_query(", "(load) t.lua:1: "),
        ("error('at load')", "(load) t.lua:1: at load"),
        ("while true do end", "the hook has run for too long"),
    ] {
        let failed = begin(&vm(), text).err().unwrap();
        assert!(failed.0.contains(words), "{text}: {failed}");
    }
}

/// Tokens with long texts and high numbers are whole, and those behind them, too.
#[test]
fn tokens_of_any_length_and_number_are_whole() {
    let World { host, script } = world(
        "function read_query(packet)
           local name = ('n'):rep(254)
           local sql = name .. ' XOR ' .. name .. 'n ZEROFILL \\'' .. ('s'):rep(70000) .. '\\' /*!40000 x*/ \\'\\' b'
           for _, t in ipairs(proxy.tokenize(sql)) do print(t.token_id, t.token_name, #t.text, t.text:sub(-1)) end
         end",
    );
    assert_eq!(script.read_query(&query("SELECT 1")), Ok(FORWARD));
    assert_eq!(
        *host.lines.borrow(),
        [
            "9\tTK_LITERAL\t254\tn",
            "258\tTK_SQL_XOR\t3\tR",
            "9\tTK_LITERAL\t255\tn",
            "260\tTK_SQL_ZEROFILL\t8\tL",
            "7\tTK_STRING\t70000\ts",
            "261\tTK_COMMENT_MYSQL\t7\tx",
            "7\tTK_STRING\t0\t",
            "9\tTK_LITERAL\t1\tb",
        ]
    );
}

/// A101: the tokenizer is there under all of its names.
#[test]
fn statements_are_cut_into_tokens() {
    let World { host, script } = world(
        "local tk = require('mysql.tokenizer')
         function read_query(packet)
           local tokens = proxy.tokenize(packet:sub(2))
           for i, t in ipairs(tokens) do print(i, t.token_name, t.text) end
           print(#tokenizer.tokenize('a b'), tk == require('proxy.tokenizer'), tk.first_stmt_token(tokens).text)
           print(tk.normalize(tokens))
           print(tk.tokens_to_query(tokens, 2, 4), table.concat(tk.bare_tokens(tokens, true), '|'))
           tokens[1].token_id = 999
           print(pcall(tk.normalize, tokens))
         end",
    );
    let sql = "/* c */ SELECT a, 'x' FROM t";
    assert_eq!(script.read_query(&query(sql)), Ok(FORWARD));
    let lines = host.lines.borrow();
    assert_eq!(
        lines[..7],
        [
            "1\tTK_COMMENT\t c ",
            "2\tTK_SQL_SELECT\tSELECT",
            "3\tTK_LITERAL\ta",
            "4\tTK_COMMA\t,",
            "5\tTK_STRING\tx",
            "6\tTK_SQL_FROM\tFROM",
            "7\tTK_LITERAL\tt",
        ]
    );
    assert_eq!(
        lines[7..10],
        [
            "2\ttrue\tSELECT",
            "SELECT `a` , ? FROM `t` ",
            "SELECT a , \tSELECT|a|,|\"x\"|FROM|t",
        ]
    );
    assert!(
        lines[10].contains("there is no token with number 999"),
        "{}",
        lines[10]
    );
}
