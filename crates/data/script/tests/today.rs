//! `require("millrace")`: the script API of today.

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

/// A session whose statement has gone to the server, and the script sees the rows of its answer.
fn streams(hook: &str) -> World {
    let world = world(&format!("function m.on.rows(s, r)\n{hook}\nend"));
    let item = becomes(&world, &query("SELECT 1")).expect("a queue");
    assert!(item.is_streamed && !item.is_collected);
    world
}

/// Bytes that go on of an answer that comes in such pieces, or the words of a failure.
fn through(world: &World, bytes: &[u8], piece: usize, is_binary: bool) -> Result<Vec<u8>, String> {
    let mut passage = Passage::new(CAPS, is_binary, false, 1000);
    let mut out = Vec::new();
    for piece in bytes.chunks(piece) {
        let taken = passage.follow(&world.script.0, piece, &mut out);
        taken.map_err(|failed| failed.0)?;
    }
    Ok(out)
}

const PEOPLE: [(i64, Option<&str>); 3] = [(1, Some("4711")), (2, None), (3, Some("0815"))];

fn packets(rows: &[(i64, Option<&str>)], is_binary: bool) -> Vec<u8> {
    answered(rows, is_binary).packets.expect("packets").to_vec()
}

#[test]
fn rows_pass_through_a_function_as_they_come() {
    let world = streams(
        "assert(r.columns[2] == 'card' and r.fields[1].org_table == 'users' and r.number == 1)
         return r:map(function(row)
           if row.id == 2 then return false end
           row.card = 'xx' .. row.card:sub(3)
         end, { 'id', 'card' }, function(count) print(count) end)",
    );
    for is_binary in [false, true] {
        let before = packets(&PEOPLE, is_binary);
        let after = packets(&[(1, Some("xx11")), (3, Some("xx15"))], is_binary);
        for piece in 1..=before.len() {
            assert_eq!(
                through(&world, &before, piece, is_binary),
                Ok(after.clone()),
                "{piece}"
            );
            assert_eq!(world.host.lines.take(), ["3"]);
        }
    }
}

#[test]
fn rows_that_nobody_sees_are_as_they_were() {
    let nothing = [
        "",
        "return r",
        "return m.pass()",
        "return r:map(function() end, { 'none', optional = true })",
        "return r:map(function(row) return row end)",
        "return r:map(function() return false end, {})",
    ];
    for hook in nothing {
        let world = streams(hook);
        for is_binary in [false, true] {
            let bytes = packets(&PEOPLE, is_binary);
            for piece in [1, 7, bytes.len()] {
                assert_eq!(
                    through(&world, &bytes, piece, is_binary),
                    Ok(bytes.clone()),
                    "{hook}"
                );
            }
        }
    }
}

#[test]
fn columns_go_as_another_type_where_the_script_says_so() {
    let world = streams(
        "return r:map(function(row) if row.id == 2 then row.id = 'two' end end, { 'id', as = 'string' })",
    );
    let columns = [Column::text("id"), Column::text("card")];
    for is_binary in [false, true] {
        let out = through(&world, &packets(&PEOPLE, is_binary), 5, is_binary).unwrap();
        let read = match is_binary {
            true => wire::rows::read_executed(&out, CAPS),
            false => wire::rows::read(&out, CAPS),
        };
        let read = read.unwrap();
        assert_eq!(read.shapes[0].kind, columns[0].kind);
        let ids = read.rows.iter().map(|row| row[0].clone().unwrap());
        assert_eq!(ids.collect::<Vec<_>>(), [&b"1"[..], b"two", b"3"]);
    }
    let world = streams("return r:map(function(row) row.id = 'two' end, { 'id' })");
    let failed = through(&world, &packets(&PEOPLE, true), 500, true).unwrap_err();
    assert!(
        failed.contains("'two' is no value of the type that column 'id' has"),
        "{failed}"
    );
}

#[test]
fn each_of_several_results_is_asked_about() {
    let world = streams(
        "if r.number == 2 then return m.error(1, 'HY000', 'no') end
        return r:map(function() return false end, { 1 })",
    );
    let mut bytes = Vec::new();
    let more = 2 | wire::status::MORE_RESULTS;
    let mut seq = 0;
    for status in [more, more, 2] {
        let mut writer = Writer::new(&mut bytes, seq, CAPS, status);
        writer.columns(&columns());
        writer.text_row([Some(&b"1"[..]), None]);
        writer.end(0);
        seq = writer.last_seq();
    }
    let mut wanted = Vec::new();
    let mut writer = Writer::new(&mut wanted, 0, CAPS, more);
    writer.columns(&columns());
    writer.end(0);
    writer.err(&wire::ok::Err {
        code: 1,
        state: *b"HY000",
        message: b"no",
    });
    for piece in [1, 9, bytes.len()] {
        assert_eq!(through(&world, &bytes, piece, false), Ok(wanted.clone()));
    }
}

#[test]
fn a_script_that_fails_at_a_row_can_be_passed_by_or_ends_the_answer() {
    let text = "return r:map(function(row) if row.id == 3 then error('here') end row.card = 'x' end, { 1, 2 })";
    let world = streams(text);
    let bytes = packets(&PEOPLE, false);
    for passes in [true, false] {
        let mut passage = Passage::new(CAPS, false, false, 1000);
        let mut out = Vec::new();
        // The first row comes alone.
        let failed = bytes
            .chunks(6)
            .find_map(|piece| passage.follow(&world.script.0, piece, &mut out).err());
        let failed = failed.expect("a failure").0;
        assert!(failed.starts_with("(on.rows) t.lua:3: here"), "{failed}");
        if passes {
            assert!(passage.let_pass(&mut out));
            assert_eq!(passage.follow(&world.script.0, b"", &mut out), Ok(()));
            assert!(!passage.is_refused());
        } else {
            let error = Response::Err {
                code: 1,
                state: *b"HY000",
                message: b"no".to_vec(),
            };
            passage.refuse(&error, &mut out);
            assert!(passage.is_refused());
            assert!(out.ends_with(b"#HY000no"), "{out:?}");
        }
    }
    let calls = world.host.calls.take();
    assert!(
        calls.iter().any(|call| call.starts_with("on.rows 0 Some(")),
        "{calls:?}"
    );
}

#[test]
fn mistakes_with_rows_on_their_way_are_told() {
    for (hook, words) in [
        (
            "return 7",
            "on.rows must return nothing, the result, or what r:map or m.error makes; it returned a number",
        ),
        (
            "return m.result { affected_rows = 1 }",
            "it returned what m.result has made",
        ),
        (
            "print(r.row_count)",
            "r.row_count is known when all rows are",
        ),
        (
            "for row in r:rows() do end",
            "r.rows is known when all rows are",
        ),
        ("print(r.colums)", "a result has no 'colums'"),
        (
            "return r:map(function() end, { 'none' })",
            "the result has no column 'none'",
        ),
        (
            "return r:map(function() end, { 1, as = 'text' })",
            "the type 'text', which there is not",
        ),
        (
            "return r:map(function() return 7 end, { 1 })",
            "must return a row, or false; it returned a number",
        ),
        (
            "return r:map(function() s:query('SELECT 1') end, { 1 })",
            "a query waits for a server",
        ),
        (
            "return r:map(function() while true do end end, { 1 })",
            "the hook has run for too long",
        ),
    ] {
        let failed = through(&streams(hook), &packets(&PEOPLE, false), 500, false).unwrap_err();
        assert!(failed.contains(words), "{hook}: {failed}");
    }
    let world = streams("return r:map(function() end, { 'card' })");
    let long = "x".repeat(2000);
    let failed = through(&world, &packets(&[(1, Some(&long))], false), 50, false).unwrap_err();
    assert!(
        failed.contains("a row has more bytes than result_mb_max allows"),
        "{failed}"
    );
}

#[test]
fn an_answer_without_rows_is_kept_for_the_other_hook() {
    let world = world(
        "function m.on.rows(s, r) return m.error(1, 'HY000', 'no') end
        function m.on.result(s, r) return m.result { affected_rows = r.affected_rows + 1 } end",
    );
    let item = becomes(&world, &query("UPDATE t SET a = 1")).unwrap();
    assert!(item.is_streamed && item.is_collected);
    let mut bytes = Vec::new();
    Writer::new(&mut bytes, 0, CAPS, 2).ok(&wire::ok::Ok {
        affected: 3,
        ..Default::default()
    });
    let mut passage = Passage::new(CAPS, false, true, 1000);
    let mut out = Vec::new();
    passage.follow(&world.script.0, &bytes, &mut out).unwrap();
    assert!(passage.is_kept() && passage.last_seq().is_none() && out == bytes);
    let counts = Counts {
        affected: 3,
        ..Counts::default()
    };
    let outcome = Outcome::new(Some(bytes), CAPS, false, counts);
    let verdict = world.script.read_query_result(&item, outcome);
    let wanted = Response::Ok {
        affected: 4,
        insert_id: 0,
    };
    assert_eq!(verdict, Ok(Verdict::Instead(wanted)));
}

/// Two results, and an OK behind them.
fn three() -> Outcome {
    let (mut bytes, mut seq) = (Vec::new(), 0);
    let more = 2 | wire::status::MORE_RESULTS;
    for (at, (id, card)) in PEOPLE.iter().enumerate().take(2) {
        let status = more | u16::from(at == 1) << 5;
        let mut writer = Writer::new(&mut bytes, seq, CAPS, status);
        writer.columns(&columns());
        writer.text_row([Some(id.to_string().as_bytes()), card.map(str::as_bytes)]);
        writer.end(u16::from(at == 0));
        seq = writer.last_seq();
    }
    Writer::new(&mut bytes, seq, CAPS, 2).ok(&wire::ok::Ok {
        affected: 3,
        ..Default::default()
    });
    let counts = Counts {
        has_rows: true,
        rows: 1,
        ..Counts::default()
    };
    Outcome::new(Some(bytes), CAPS, false, counts)
}

#[test]
fn an_answer_of_several_results_is_a_list() {
    let judged = |text: &str| {
        let world = world(&format!("function m.on.result(s, r)\n{text}\nend"));
        let item = becomes(&world, &query("q")).unwrap();
        let verdict = world.script.read_query_result(&item, three());
        (verdict.map_err(|failed| failed.0), world.host.lines.take())
    };
    let written = |text: &str| {
        let (Ok(Verdict::Instead(response)), _) = judged(text) else {
            panic!("no answer")
        };
        let mut out = Vec::new();
        response.write(&mut out, 0, (CAPS, 2, 0), false);
        out
    };
    let before = three().packets.unwrap();
    let reads = "local all = r.results
        print(#all, all[1].row_count, all[2].warnings, all[3].affected_rows, all[3].has_rows, #all[3].fields)
        for row in all[1]:rows() do print(row.id, row.card) end
        for row in all[2]:rows() do print(row.id, row.card) end";
    let (verdict, lines) = judged(reads);
    assert_eq!(verdict, Ok(Verdict::PassOn));
    assert_eq!(lines, ["3\t1\t0\t3\tfalse\t0", "1\t4711", "2\tnil"]);
    // As they are, with flags and warnings of their own.
    assert_eq!(
        written("return { r.results[1], r.results[2], r.results[3] }"),
        *before
    );
    let same = "return { r.results[1]:map(function() end, { 1 }), r.results[2]:map(function() end), r.results[3] }";
    assert_eq!(written(same), *before);
    let masked = written(
        "return { r.results[1]:map(function(row) row.card = 'xxxx' end, { 'card' }), r.results[2], r.results[3] }",
    );
    let shown = String::from_utf8_lossy(&before).replace("4711", "xxxx");
    assert_eq!(String::from_utf8_lossy(&masked), shown);
    // One that was not the last is the last now, and the other way round.
    let swapped = written("return { r.results[3], m.result { affected_rows = 7 }, r.results[1] }");
    let parts = wire::rows::results(&swapped, CAPS);
    let last = parts.len() - 1;
    let status = |at: usize| {
        let mut follows = wire::response::Response::expect(wire::response::Expect::Query, CAPS);
        follows.follow(parts[at]).unwrap();
        follows.status() & wire::status::MORE_RESULTS != 0
    };
    assert_eq!(
        (parts.len(), status(0), status(1), status(last)),
        (3, true, true, false)
    );
    for (text, words) in [
        ("return { r }", "must return results in its list"),
        ("return { 7 }", "must return results in its list"),
        ("return {}", "or a list of results; it returned a table"),
        (
            "return { m.error(1, 'HY000', 'no'), r.results[1] }",
            "an error in its list that is not the last result",
        ),
        (
            "return r.results[1].results",
            "one of several results has no 'results'",
        ),
        (
            "return r:map(function() end, { 1 })",
            "the answer has several results: r.results is a list of them",
        ),
    ] {
        let words_of = judged(text).0.unwrap_err();
        assert!(words_of.contains(words), "{text}: {words_of}");
    }
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
