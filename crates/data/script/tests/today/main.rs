//! `require("millrace")`: the script API of today.

mod rows;
#[path = "../session/mod.rs"]
mod session;

use script::{
    Ask, Counts, Decision, HttpWish, Item, Outcome, Passage, Reply, Response, Route, Verdict,
};
use session::{FORWARD, Session, World, begin, begin_before, query, vm};
use std::rc::Rc;
use wire::caps::{self, Caps};
use wire::execute::Value;
use wire::resultset::{Column, Writer};

const CAPS: Caps = caps::PROTOCOL_41 | caps::DEPRECATE_EOF;

fn script(text: &str) -> String {
    format!("local m = require('millrace')\n{text}")
}

fn world(text: &str) -> World {
    begin(&vm(), &script(text)).expect("a script that runs")
}

fn hook(returns: &str) -> World {
    world(&format!("function m.on.statement(s)\n{returns}\nend"))
}

fn columns() -> [Column; 2] {
    [
        Column::integer("id").of("shop", "users"),
        Column::text("card"),
    ]
}

/// A result with these rows.
fn answered(rows: &[(i64, Option<&str>)], is_binary: bool) -> Outcome {
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out, 0, CAPS, 2);
    writer.columns(&columns());
    for (id, card) in rows {
        let text = id.to_string();
        let card = card.map(str::as_bytes);
        match is_binary {
            true => writer.binary_row(
                &columns(),
                &[Value::Int(*id), card.map_or(Value::Null, Value::Bytes)],
            ),
            false => writer.text_row([Some(text.as_bytes()), card]),
        }
    }
    writer.end(0);
    let counts = Counts {
        has_rows: true,
        rows: rows.len() as u64,
        ..Counts::default()
    };
    Outcome::new(Some(out), CAPS, is_binary, counts)
}

fn packets(rows: &[(i64, Option<&str>)], is_binary: bool) -> Vec<u8> {
    answered(rows, is_binary).packets.expect("packets").to_vec()
}

/// Returns what a statement becomes: the queued command, or words for the rest.
fn becomes(world: &World, packet: &[u8]) -> Result<Item, String> {
    match world.script.read_query(packet) {
        Ok(Decision::Queue) => Ok(world.script.next().expect("a queue").expect("a command")),
        Ok(other) => Err(format!("{other:?}")),
        Err(failed) => Err(failed.0),
    }
}

fn failure(world: &World, sql: &str) -> String {
    becomes(world, &query(sql)).expect_err("an error")
}

#[test]
fn a_statement_passes_or_is_changed_or_routed() {
    let route = "if s.kind == 'select' then return m.route { hostgroup = 2, cache_ttl = 500 } end
        if s.text == 'same' then return m.pass() elseif s.text == 'both' then return m.rewrite('X', { hostgroup = 3 }) end
        if s.kind == 'delete' then return m.rewrite(s.text:gsub('$', ' LIMIT 1')) end";
    let world = hook(route);
    let item = becomes(&world, &query("SELECT 1")).unwrap();
    let wanted = Route {
        hostgroup: Some(2),
        cache_ttl_ms: Some(500),
    };
    assert_eq!((item.route, item.is_collected), (wanted, false));
    assert_eq!(item.packet, query("SELECT 1"));
    let item = becomes(&world, &query("DELETE FROM t")).unwrap();
    assert_eq!(item.packet, query("DELETE FROM t LIMIT 1"));
    assert_eq!(item.route, Route::default());
    assert_eq!(world.script.next(), Ok(None));
    let item = becomes(&world, &query("both")).unwrap();
    assert_eq!((item.packet, item.route.hostgroup), (query("X"), Some(3)));
    for sql in ["same", "other"] {
        assert_eq!(world.script.read_query(&query(sql)), Ok(FORWARD));
    }
    // A command that is no statement.
    assert_eq!(world.script.read_query(b"\x0e"), Ok(FORWARD));
    let calls = world.host.calls.take();
    assert_eq!(
        calls
            .iter()
            .filter(|one| one.starts_with("on.statement"))
            .count(),
        5
    );
}

#[test]
fn a_statement_is_what_rules_and_statistics_see() {
    let text = "print(s.kind, s.digest_text, #s.digest, table.concat(s.tables, ' '))
        print(s.user, s.schema, s.client, s.session, s.prepared, s.parameters)";
    let world = hook(text);
    let sql = "UPDATE a, x.b SET c = 1 WHERE d = 'e'";
    assert_eq!(world.script.read_query(&query(sql)), Ok(FORWARD));
    assert_eq!(
        world.host.lines.take(),
        [
            "update\tUPDATE a,x.b SET c = ? WHERE d = ?\t18\ta x.b",
            "app\tshop\t10.0.0.9:50000\t7\tfalse\tnil",
        ]
    );
}

#[test]
fn a_script_answers_by_itself() {
    let text = "if s.text == 'e' then return m.error(1045, '28000', 'not for you') end
        if s.text == 'ok' then return m.result { affected_rows = 3, insert_id = 4 } end
        return m.result { columns = { 'who', { name = 'n', type = 'integer' } },
          rows = { { 'a', 1 }, { n = 2 }, { who = m.number('12345678901234567890'), n = true } } }";
    let world = hook(text);
    let Ok(Decision::Answer(Response::Err {
        code,
        state,
        message,
    })) = world.script.read_query(&query("e"))
    else {
        panic!("an error");
    };
    assert_eq!(
        (code, &state, &*message),
        (1045, b"28000", &b"not for you"[..])
    );
    let ok = Response::Ok {
        affected: 3,
        insert_id: 4,
    };
    assert_eq!(
        world.script.read_query(&query("ok")),
        Ok(Decision::Answer(ok))
    );
    let Ok(Decision::Answer(Response::Rows { rows, .. })) = world.script.read_query(&query("r"))
    else {
        panic!("rows");
    };
    let some = |text: &str| Some(text.as_bytes().to_vec());
    assert_eq!(
        rows,
        [
            [some("a"), some("1")],
            [None, some("2")],
            [some("12345678901234567890"), some("1")]
        ]
    );
}

#[test]
fn what_is_returned_wrongly_is_told_with_its_place() {
    for (returns, words) in [
        (
            "return 1",
            "t.lua:2: on.statement must return nothing, or what m.pass, m.rewrite, m.route, m.error or m.result makes; it returned a number",
        ),
        ("return m.rewrit('x')", "t.lua:3: millrace has no 'rewrit'"),
        (
            "return m.rewrite(nil)",
            "t.lua:2: m.rewrite wants a text, it got a nil",
        ),
        (
            "return m.route { hostgrup = 1 }",
            "t.lua:2: m.route has no 'hostgrup': there are hostgroup and cache_ttl",
        ),
        (
            "return m.route { hostgroup = -1 }",
            "t.lua:2: m.route: hostgroup must be a whole number from 0 to 4294967295",
        ),
        (
            "local a = m.rewrite('x', 'y')\nreturn a",
            "t.lua:3: m.rewrite wants a table such as { hostgroup = 20, cache_ttl = 5000 }",
        ),
        (
            "return m.error('x')",
            "t.lua:2: m.error wants the number of an error first, such as 1105",
        ),
        (
            "return m.result { columns = { 'a' }, rows = { { {} } } }",
            "t.lua:2: m.result: a value of row 1 must be a text, a number, true, false or nil; it is a table",
        ),
        (
            "return m.result { columns = { { name = 'a', type = 'int' } } }",
            "t.lua:2: m.result: column 1 has the type 'int', which there is not",
        ),
        ("return s.txt", "t.lua:3: a statement has no 'txt'"),
        (
            "s.text = 'x'",
            "t.lua:3: s.text is not writable: return m.rewrite, m.route, m.error or m.result",
        ),
        (
            "m.on.result = print",
            "t.lua:3: m.on.result is set at the top of a script, not in a hook",
        ),
        ("m.pass = nil", "t.lua:3: millrace.pass is not writable"),
        (
            "s:query('SELECT ?')",
            "t.lua:3: query: the statement has 1 '?', and there are 0 values",
        ),
        (
            "m.log('loud', 'x')",
            "t.lua:3: m.log wants error, warning, info or debug first, it got 'loud'",
        ),
        (
            "m.shared.set('k', {})",
            "t.lua:3: m.shared.set keeps texts, numbers, true and false; it got a table",
        ),
    ] {
        assert_eq!(
            failure(&hook(returns), "SELECT 1"),
            format!("(on.statement) {words}")
        );
    }
    for (text, words) in [
        (
            "m.every(5, print)",
            "t.lua:2: m.every wants milliseconds first, from 10 to 86400000",
        ),
        (
            "m.on.statment = print",
            "t.lua:2: there is no m.on.statment: there are m.on.statement, m.on.result and m.on.rows",
        ),
        (
            "m.on.statement = 1",
            "t.lua:2: m.on.statement must be a function, it is a number",
        ),
        (
            "m.on.statement = print\nfunction read_query() end",
            "a script has read_query and read_query_result, or m.on.statement and m.on.result; this one has both",
        ),
    ] {
        let failed = begin(&vm(), &script(text)).err().expect("an error").0;
        assert_eq!(failed, format!("(load) {words}"));
    }
}

const MASKS: &str = "function m.on.result(s, r)
      return r:map(function(row) row.card = row.card and 'xxxx' if row.id == 2 then return false end return row end, { 'card', 'ID' })
    end";

#[test]
fn rows_are_mapped_and_the_rest_is_as_it_was() {
    let world = world(&MASKS.replace("row.id", "row.ID"));
    let item = becomes(&world, &query("SELECT * FROM users")).unwrap();
    assert!(item.is_collected);
    let rows = [(1, Some("1234")), (2, Some("5678")), (3, None)];
    let verdict = world
        .script
        .read_query_result(&item, answered(&rows, false));
    let Ok(Verdict::Instead(response)) = verdict else {
        panic!("{verdict:?}");
    };
    let mut out = Vec::new();
    response.write(&mut out, 0, (CAPS, 2, 0), false);
    let masked = [(1, Some("xxxx")), (3, None)];
    assert_eq!(out, packets(&masked, false));
}

/// Of a prepared statement, too.
#[test]
fn rows_of_an_execution_are_mapped() {
    let world = world(&MASKS.replace("row.id", "row.ID"));
    prepare(&world, "SELECT * FROM users", 5, 0);
    // The cursor that it asks for is left out: its rows would come later.
    let item = becomes(&world, &[0x17, 5, 0, 0, 0, 1, 1, 0, 0, 0]).unwrap();
    assert_eq!(item.packet, [0x17, 5, 0, 0, 0, 0, 1, 0, 0, 0]);
    let verdict = world
        .script
        .read_query_result(&item, answered(&[(1, Some("1234"))], true));
    let Ok(Verdict::Instead(response)) = verdict else {
        panic!("{verdict:?}");
    };
    let mut out = Vec::new();
    response.write(&mut out, 0, (CAPS, 2, 0), true);
    assert_eq!(out, packets(&[(1, Some("xxxx"))], true));
}

/// Prepares a statement with so many parameters, as this id; what is prepared.
fn prepare(world: &World, sql: &str, id: u8, params: u8) -> Vec<u8> {
    let item = becomes(world, &[b"\x16", sql.as_bytes()].concat()).expect("a command");
    let prepared = [12, 0, 0, 1, 0, id, 0, 0, 0, 0, 0, params, 0, 0, 0, 0];
    let outcome = Outcome::new(Some(prepared.to_vec()), CAPS, false, Counts::default());
    let verdict = world.script.read_query_result(&item, outcome);
    assert_eq!(verdict, Ok(Verdict::PassOn));
    item.packet
}

#[test]
fn a_prepared_statement_is_known_when_it_is_executed() {
    let text = "print(s.prepared, s.text, s.kind, s.parameters and s.parameters[1], s.parameters and s.parameters.n)
        if s.kind == 'select' then return m.rewrite(s.text .. ' LIMIT 1') end
        if s.kind == 'delete' then return m.rewrite(s.text .. (s.prepared == 'execute' and ' ' or '')) end
        if s.text == 'MINE ?' then return m.result { columns = { 'a' }, rows = { { s.parameters and s.parameters[1] } } } end";
    let world = hook(text);
    let prepared = prepare(&world, "SELECT ?", 1, 1);
    assert_eq!(prepared, b"\x16SELECT ? LIMIT 1");
    let executed = |id, rest: &[u8]| [&[0x17, id, 0, 0, 0, 0, 1, 0, 0, 0], rest].concat();
    // With its types, and then without: they are those of before.
    let decided = |packet: &[u8]| world.script.read_query(packet);
    assert_eq!(
        decided(&executed(1, &[0, 1, 8, 0, 7, 0, 0, 0, 0, 0, 0, 0])),
        Ok(FORWARD)
    );
    assert_eq!(
        decided(&executed(
            1,
            &[0, 0, 255, 255, 255, 255, 255, 255, 255, 127]
        )),
        Ok(FORWARD)
    );
    assert_eq!(decided(&executed(1, &[1, 0])), Ok(FORWARD));
    // A piece came ahead.
    assert_eq!(decided(&[0x18, 1, 0, 0, 0, 0, 0, b'x']), Ok(FORWARD));
    assert_eq!(decided(&executed(1, &[0, 0])), Ok(FORWARD));
    // One that nobody has prepared.
    assert_eq!(decided(&executed(9, &[])), Ok(FORWARD));
    assert_eq!(
        world.host.lines.take(),
        [
            "prepare\tSELECT ?\tselect\tnil\tnil",
            "execute\tSELECT ?\tselect\t7\t1",
            "execute\tSELECT ?\tselect\t9223372036854775807\t1",
            "execute\tSELECT ?\tselect\tnil\t1",
            "execute\tSELECT ?\tselect\tnil\tnil",
        ]
    );
    prepare(&world, "DELETE FROM t", 2, 0);
    let words = becomes(&world, &executed(2, &[])).unwrap_err();
    assert!(
        words.contains("a prepared statement is rewritten when it is prepared"),
        "{words}"
    );
    assert_eq!(prepare(&world, "MINE ?", 3, 1), b"\x16DO ?");
    let Ok(Decision::Answer(Response::Rows { rows, .. })) =
        decided(&executed(3, &[0, 1, 253, 0, 2, b'h', b'i']))
    else {
        panic!("rows");
    };
    assert_eq!(rows, [[Some(b"hi".to_vec())]]);
    // The last one, by the number that stands for it, and none after it is closed.
    assert!(matches!(
        decided(&[0x17, 255, 255, 255, 255, 0, 1, 0, 0, 0, 1, 0]),
        Ok(Decision::Answer(_))
    ));
    assert_eq!(decided(&[0x19, 3, 0, 0, 0]), Ok(FORWARD));
    assert_eq!(decided(&executed(3, &[0, 0, 0])), Ok(FORWARD));
}

#[test]
fn a_hook_asks_servers_with_values_in_their_places() {
    let text = "local r, words = s:query('SELECT ? FROM t WHERE a = ? AND b = ? LIMIT ?', \"it's\", nil, -1.5, 2)
        print(r and #r, r and r[1].id, r and r[1].card, r and r[2][1], r and r[2].card, words)
        print(pcall(function() return r[1].owner end))
        local done, words = s:query('DELETE FROM t WHERE id = ?', m.number('12345678901234567890'))
        print(done and done.affected_rows, done and done.insert_id, words)
        print(s:query('SELECT ?', '\\\\'))
        print(s:at(20):query('SELECT 7'), m.at(21):query('SELECT ?', 8))
        print(pcall(function() s:at('x') end))
        print(pcall(function() s:at(1).ask() end))";
    let host = Rc::new(Session::default());
    let rows = answered(&[(1, Some("1234")), (123_456_789_012_345_678, None)], false);
    let replies = [
        Reply::Rows(rows),
        Reply::Changed(2, 9),
        Reply::Refused("no such table".into()),
    ];
    host.replies.borrow_mut().extend(replies);
    let text = script(&format!("function m.on.statement(s)\n{text}\nend"));
    let world = begin_before(&vm(), &text.into(), &[], host).expect("a script that runs");
    assert_eq!(world.script.read_query(&query("x")), Ok(FORWARD));
    let asked: Vec<_> = world.host.asked.take();
    let asked: Vec<_> = asked
        .iter()
        .map(|ask| match ask {
            Ask::Query(sql, at) => {
                let at = at.map_or_else(String::new, |at| format!(" at {at}"));
                format!("{}{at}", String::from_utf8_lossy(sql))
            }
            other => format!("{other:?}"),
        })
        .collect();
    assert_eq!(
        asked,
        [
            "SELECT 'it''s' FROM t WHERE a = NULL AND b = -1.5 LIMIT 2",
            "DELETE FROM t WHERE id = 12345678901234567890",
            "SELECT _utf8mb4 X'5C'",
            "SELECT 7 at 20",
            "SELECT 8 at 21",
        ]
    );
    assert_eq!(
        world.host.lines.take(),
        [
            "2\t1\t1234\t123456789012345678\tnil\tnil",
            "false\tt.lua:5: the result has no column 'owner'",
            "2\t9\tnil",
            "nil\tno such table",
            "nil\tnil\tnobody answers",
            "false\tt.lua:10: s:at wants the number of a hostgroup",
            "false\tt.lua:11: s:at(1) has no 'ask'",
        ]
    );
}

#[test]
fn a_hook_has_a_connection_of_its_own() {
    let text = "local c, words = s:connection(20)
        print(c:query('BEGIN').affected_rows, words)
        print(c:query('SELECT ?', \"it's\"))
        c:close()
        c:close()
        print(pcall(function() c:query('COMMIT') end))
        print(m.connection())
        print(pcall(function() s:connection('x') end))";
    let host = Rc::new(Session::default());
    let refused = |words: &str| Reply::Refused(words.into());
    let replies = [
        Reply::Connected(5),
        Reply::Changed(0, 0),
        refused("no such table"),
        refused("no room"),
    ];
    host.replies.borrow_mut().extend(replies);
    let text = script(&format!("function m.on.statement(s)\n{text}\nend"));
    let world = begin_before(&vm(), &text.into(), &[], host).expect("a script that runs");
    assert_eq!(world.script.read_query(&query("x")), Ok(FORWARD));
    let wish = |hostgroup| {
        Ask::Connect(script::Connect {
            schema: script::Host::schema(&*world.host),
            hostgroup,
            ..script::Connect::default()
        })
    };
    let said = |sql: &str| Ask::Execute {
        connection: 5,
        sql: sql.into(),
    };
    assert_eq!(
        world.host.asked.take(),
        [
            wish(Some(20)),
            said("BEGIN"),
            said("SELECT 'it''s'"),
            wish(None),
        ]
    );
    assert_eq!(world.host.closed.take(), [5]);
    assert_eq!(
        world.host.lines.take(),
        [
            "0\tnil",
            "nil\tno such table",
            "false\tt.lua:8: this connection is closed",
            "nil\tno room",
            "false\tt.lua:10: s:connection wants the number of a hostgroup",
        ]
    );
}

#[test]
fn sorted_lists_become_one() {
    let text = script(
        "local function shown(rows)
           local words = {}
           for at, row in ipairs(rows) do words[at] = tostring(row[1]) .. (row[2] or '') end
           return table.concat(words, ' ')
         end
         local a, b = { { nil, 'n' }, { 1, 'a' }, { 3, 'a' } }, { { 1, 'b' }, { 2, 'b' }, { 3, 'b' } }
         function m.on.statement(s)
           print(shown(m.merge({ a, b, {} }, { 1 })))
           print(shown(m.merge({ a, b }, { 1, { 2, descending = true } }, 4)))
           print(shown(m.merge({ { { 9 }, { 10 } }, { { 11 }, { 5 } } }, { { 1, descending = true } }, 1)))
           print(shown(m.merge({ { { '10' } }, { { '9' } } }, { 1 })), shown(m.merge({}, { 1 })))
           local named = m.merge({ { { name = 'x' } }, { { name = 'b' } } }, { 'name' })
           print(named[1].name, named[2].name)
           for _, bad in ipairs({ { 1 }, { {}, {} }, { { 1 }, { 1 } }, { {}, { { 1, up = true } } }, { {}, { 1 }, -1 } }) do
             print(select(2, pcall(function() m.merge(unpack(bad)) end)))
           end
         end",
    );
    let world = begin(&vm(), &text).unwrap();
    assert_eq!(world.script.read_query(&query("x")), Ok(FORWARD));
    assert_eq!(
        world.host.lines.take(),
        [
            "niln 1a 1b 2b 3a 3b",
            "niln 1b 1a 2b",
            "11",
            "10 9\t",
            "b\tx",
            "t.lua:16: m.merge wants a list of lists first, it got a number",
            "t.lua:16: m.merge wants columns second, such as { \"name\", { \"id\", descending = true } }",
            "t.lua:16: m.merge: list 1 is a number",
            "t.lua:16: m.merge: a column has no 'up'",
            "t.lua:16: m.merge wants a whole number third",
        ]
    );
}

#[test]
fn a_result_tells_what_it_is() {
    let text = "function m.on.result(s, r)
          if r.error then print(r.error.code, r.error.state, r.error.message) return end
          print(s.text, r.has_rows, r.row_count, r.affected_rows, r.insert_id, table.concat(r.columns, ' '))
          for row in r:rows() do print(row.id, row.card, row[2]) end
          if r.row_count == 1 then print(pcall(function() return r.rowcount end)) end
          if r.has_rows and r.row_count == 0 then return m.error(1, 'HY000', 'none') end
          if r.row_count == 2 then return 5 end
        end";
    let world = world(text);
    let judge = |outcome| {
        let item = becomes(&world, &query("q")).unwrap();
        world.script.read_query_result(&item, outcome)
    };
    assert_eq!(
        judge(answered(&[(7, Some("a"))], false)),
        Ok(Verdict::PassOn)
    );
    assert!(matches!(
        judge(answered(&[], false)),
        Ok(Verdict::Instead(Response::Err { code: 1, .. }))
    ));
    let failed = judge(answered(&[(1, None), (2, None)], false)).unwrap_err();
    assert!(
        failed
            .0
            .starts_with("(on.result) t.lua:2: on.result must return nothing"),
        "{failed}"
    );
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
    assert_eq!(
        judge(Outcome::new(Some(out), CAPS, false, counts)),
        Ok(Verdict::PassOn)
    );
    assert_eq!(
        world.host.lines.take(),
        [
            "q\ttrue\t1\t0\t0\tid card",
            "7\ta\ta",
            "false\tt.lua:6: a result has no 'rowcount'",
            "q\ttrue\t0\t0\t0\tid card",
            "q\ttrue\t2\t0\t0\tid card",
            "1\tnil\tnil",
            "2\tnil\tnil",
            "1146\t42S02\tno table",
        ]
    );
}

/// Who hides a column hides it wherever it is, and says so where it cannot.
#[test]
fn what_cannot_be_read_is_an_error() {
    let masks = |columns: &str| {
        let text = format!(
            "function m.on.result(s, r) return r:map(function(row) row.card = 'x' end, {columns}) end"
        );
        world(&text)
    };
    let judge = |world: &World, outcome| {
        let item = becomes(world, &query("q")).unwrap();
        world.script.read_query_result(&item, outcome)
    };
    let mut twice = packets(&[(1, None)], false);
    twice.extend_from_within(..);
    let counts = Counts {
        has_rows: true,
        rows: 2,
        ..Counts::default()
    };
    let several = Outcome::new(Some(twice), CAPS, false, counts);
    let words = judge(&masks("{ 'card' }"), several).unwrap_err().0;
    assert!(
        words.ends_with("the answer has several results: r.results is a list of them"),
        "{words}"
    );
    let one = || answered(&[(1, None)], false);
    let words = judge(&masks("{ 'name' }"), one()).unwrap_err().0;
    assert!(
        words.ends_with("the result has no column 'name'"),
        "{words}"
    );
    let left_out = judge(&masks("{ 'name', optional = true }"), one());
    assert_eq!(left_out, Ok(Verdict::PassOn));
    // Two columns of one name.
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out, 0, CAPS, 2);
    writer.columns(&[Column::text("card"), Column::text("card")]);
    writer.text_row([Some(&b"1"[..]), Some(b"2")]);
    writer.end(0);
    let counts = Counts { rows: 1, ..counts };
    let outcome = Outcome::new(Some(out), CAPS, false, counts);
    let Ok(Verdict::Instead(Response::Rows { rows, .. })) = judge(&masks("{ 'card' }"), outcome)
    else {
        panic!("rows");
    };
    assert_eq!(rows, [[Some(b"x".to_vec()), Some(b"x".to_vec())]]);
}

#[test]
fn values_are_shared_and_settings_read() {
    let text = "print(m.version, m.setting('limit'), m.setting('none'), m.setting('none', 5))
        print(m.shared.add('n'), m.shared.add('n', 2.5), m.shared.get('n'), m.shared.get('none'))
        m.shared.set('n', 'text', 1000)
        print(m.shared.get('n'), m.shared.add('n'))
        m.shared.set('n', nil)
        print(m.shared.get('n'))
        m.log('warning', 'careful')";
    let world = hook(text);
    assert_eq!(world.script.read_query(&query("x")), Ok(FORWARD));
    assert_eq!(
        world.host.lines.take(),
        [
            "1\t3\tnil\t5",
            "1\t3.5\t3.5\tnil",
            "text\tnil\tm.shared.add wants a number, and there is another value",
            "nil",
            "[warning] careful",
        ]
    );
}

#[test]
fn others_are_called_by_http() {
    let world = hook(
        "local a, words = m.http.post('http://a:81/x', 'body', { timeout = 7, headers = { ['X-A'] = 1 } })
         print(a and a.status .. ' ' .. a.body .. ' ' .. a.headers['x-b'] or words)
         print(select(2, m.http.get('https://B')))",
    );
    let header = |value: &str| ("x-b".to_owned(), value.to_owned());
    let replies = [
        Reply::Http(200, b"ok".to_vec(), vec![header("1"), header("2")]),
        Reply::Refused("nobody is there".into()),
    ];
    world.host.replies.borrow_mut().extend(replies);
    assert_eq!(world.script.read_query(&query("SELECT 1")), Ok(FORWARD));
    assert_eq!(world.host.lines.take(), ["200 ok 1, 2", "nobody is there"]);
    let posted = HttpWish {
        host: "a".into(),
        port: 81,
        is_post: true,
        target: "/x".into(),
        headers: vec![("X-A".into(), "1".into())],
        body: b"body".to_vec(),
        timeout_ms: 7,
        ..HttpWish::default()
    };
    let got = HttpWish {
        tls: true,
        host: "b".into(),
        port: 443,
        target: "/".into(),
        timeout_ms: 5000,
        ..HttpWish::default()
    };
    assert_eq!(world.host.asked.take(), [Ask::Http(posted), Ask::Http(got)]);
    for (text, words) in [
        (
            "m.http.get('ftp://a')",
            "it begins with http:// or https://",
        ),
        (
            "m.http.get(7)",
            "m.http.get wants an address first, it got a number",
        ),
        ("m.http.post('http://a')", "m.http.post wants a text second"),
        (
            "m.http.get('http://a', { timeout = 0 })",
            "timeout must be milliseconds",
        ),
        (
            "m.http.get('http://a', { retries = 1 })",
            "m.http.get has no 'retries'",
        ),
        ("m.http.put('http://a')", "m.http has no 'put'"),
    ] {
        let failed = failure(&hook(text), "SELECT 1");
        assert!(failed.contains(words), "{text}: {failed}");
    }
}
