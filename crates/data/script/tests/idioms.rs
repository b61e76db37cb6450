//! What scripts of MySQL Proxy's time are made of, in scripts of our own: counting by normalized
//! text, tables that are none, auditing, queries around queries, joined results, a chain of
//! functions.

mod session;

use script::{Counts, Decision, Item, Outcome, Response, Verdict};
use session::{FORWARD, Script, begin, query, vm, world};
use wire::caps::{self, Caps};
use wire::resultset::{Column, Writer};

const CAPS: Caps = caps::PROTOCOL_41 | caps::DEPRECATE_EOF;

/// A result with one column.
fn result(column: &str, values: &[&str]) -> Outcome {
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out, 0, CAPS, 2);
    writer.columns(&[Column::text(column)]);
    for value in values {
        writer.text_row([Some(value.as_bytes())]);
    }
    writer.end(0);
    let counts = Counts {
        has_rows: true,
        rows: values.len() as u64,
        ..Counts::default()
    };
    Outcome::new(Some(out), CAPS, false, counts)
}

fn failed(words: &str) -> Outcome {
    let mut out = Vec::new();
    let mut payload = Vec::new();
    wire::ok::Err {
        code: 1064,
        state: *b"42000",
        message: words.as_bytes(),
    }
    .write(&mut payload);
    wire::packet::append(&mut out, &mut 1, &payload);
    let counts = Counts {
        failed: true,
        ..Counts::default()
    };
    Outcome::new(Some(out), CAPS, false, counts)
}

fn shown(response: &Response) -> Vec<String> {
    let mut out = Vec::new();
    response.write(&mut out, 0, (CAPS, 2, 0), false);
    let read = wire::rows::read(&out, CAPS).expect("well written");
    let row = |row: &Vec<Option<Vec<u8>>>| {
        let values = row.iter().map(|value| {
            let text = value.as_deref().map(String::from_utf8_lossy);
            text.unwrap_or_else(|| "NULL".into()).into_owned()
        });
        values.collect::<Vec<_>>().join(" ")
    };
    read.rows.iter().map(row).collect()
}

fn answered(script: &Script, sql: &str) -> Vec<String> {
    match script.read_query(&query(sql)) {
        Ok(Decision::Answer(response)) => shown(&response),
        other => panic!("{sql}: {other:?}"),
    }
}

fn next(script: &Script) -> Item {
    let next = script.next().expect("there is memory");
    next.expect("a query is queued")
}

/// Counts by normalized text in `proxy.global`, and a table that only the script knows.
#[test]
fn queries_are_counted_by_their_form_and_shown_as_a_table() {
    let vm = vm();
    let text = "local tokenizer = require('proxy.tokenizer')
        proxy.global.seen = proxy.global.seen or {}
        local function is(normalized, what) return normalized == what end
        function read_query(packet)
          if packet:byte() ~= proxy.COM_QUERY then return end
          local normalized = tokenizer.normalize(proxy.tokenize(packet:sub(2)))
          if is(normalized, 'SELECT * FROM `histogram` . `queries` ') then
            local rows = {}
            for form, entry in pairs(proxy.global.seen) do rows[#rows + 1] = { form, entry.count, entry.slowest } end
            table.sort(rows, function(a, b) return a[1] < b[1] end)
            proxy.response = { type = proxy.MYSQLD_PACKET_OK, resultset = {
              fields = { { type = proxy.MYSQL_TYPE_STRING, name = 'query' }, { type = proxy.MYSQL_TYPE_LONG, name = 'count' }, { type = proxy.MYSQL_TYPE_LONG, name = 'max_us' } },
              rows = rows } }
            return proxy.PROXY_SEND_RESULT
          elseif is(normalized, 'DELETE FROM `histogram` . `queries` ') then
            proxy.global.seen = {}
            proxy.response = { type = proxy.MYSQLD_PACKET_OK }
            return proxy.PROXY_SEND_RESULT
          end
          proxy.queries:append(1, packet)
          return proxy.PROXY_SEND_QUERY
        end
        function read_query_result(inj)
          local form = tokenizer.normalize(proxy.tokenize(inj.query:sub(2)))
          local entry = proxy.global.seen[form] or { count = 0, slowest = 0 }
          entry.count = entry.count + 1
          entry.slowest = math.max(entry.slowest, inj.response_time)
          proxy.global.seen[form] = entry
        end";
    let (one, other) = (begin(&vm, text).unwrap(), begin(&vm, text).unwrap());
    for (world, sql, us) in [
        (&one, "SELECT 1", 10),
        (&other, "select 2", 30),
        (&one, "SELECT 'x'", 20),
        (&one, "DELETE FROM t WHERE id = 5", 7),
    ] {
        assert_eq!(world.script.read_query(&query(sql)), Ok(Decision::Queue));
        let mut outcome = result("a", &["1"]);
        outcome.response_us = us;
        let item = next(&world.script);
        assert_eq!(
            world.script.read_query_result(&item, outcome),
            Ok(Verdict::PassOn)
        );
    }
    assert_eq!(
        answered(&other.script, "SELECT * FROM histogram.queries"),
        ["DELETE FROM `t` WHERE `id` = ?  1 7", "SELECT ?  3 30"]
    );
    let cleared = one
        .script
        .read_query(&query("delete from histogram.queries"));
    assert!(
        matches!(cleared, Ok(Decision::Answer(Response::Ok { .. }))),
        "{cleared:?}"
    );
    assert_eq!(
        answered(&one.script, "SELECT * FROM `histogram`.queries"),
        [""; 0]
    );
}

/// Queries before and behind the client's, told apart by their ids; those of the script are ignored.
#[test]
fn a_query_is_asked_between_two_of_the_script() {
    let world = world(
        "function read_query(packet)
           if packet:byte() ~= proxy.COM_QUERY then return end
           local status = string.char(proxy.COM_QUERY) .. 'SHOW SESSION STATUS'
           proxy.queries:append(2, status, { resultset_is_needed = true })
           proxy.queries:append(1, packet, { resultset_is_needed = true })
           proxy.queries:append(3, status, { resultset_is_needed = true })
           return proxy.PROXY_SEND_QUERY
         end
         local before
         function read_query_result(inj)
           if inj.id == 2 then
             before = inj.resultset.rows()[1]
           elseif inj.id == 3 then
             print('from ' .. before .. ' to ' .. inj.resultset.rows()[1])
             proxy.queries:append(4, string.char(proxy.COM_QUERY) .. 'SHOW PROCESSLIST', { resultset_is_needed = true })
           elseif inj.id == 1 then
             if inj.resultset.query_status == proxy.MYSQLD_PACKET_ERR then
               local raw = inj.resultset.raw
               print(raw:byte(2) + raw:byte(3) * 256, raw:sub(5, 9), raw:sub(10))
             end
             return
           end
           return proxy.PROXY_IGNORE_RESULT
         end",
    );
    assert_eq!(
        world.script.read_query(&query("SELECT")),
        Ok(Decision::Queue)
    );
    for (id, outcome, verdict) in [
        (2.0, result("Value", &["5"]), Verdict::Ignore),
        (1.0, failed("syntax"), Verdict::PassOn),
        (3.0, result("Value", &["9"]), Verdict::Ignore),
        (4.0, result("Id", &["1"]), Verdict::Ignore),
    ] {
        let item = next(&world.script);
        assert_eq!(
            world.script.read_query_result(&item, outcome),
            Ok(verdict),
            "{id}"
        );
    }
    assert_eq!(world.script.next(), Ok(None));
    assert_eq!(
        *world.host.lines.borrow(),
        ["1064\t42000\tsyntax", "from 5 to 9"]
    );
}

/// Rows of several queries become one result, behind the last of them.
#[test]
fn results_of_several_queries_become_one() {
    let world = world(
        "local rows, fields
         function read_query(packet)
           if packet:byte() ~= proxy.COM_QUERY then return end
           rows, fields = {}, nil
           for part = 1, 3 do proxy.queries:append(part, packet .. part, { resultset_is_needed = true }) end
           return proxy.PROXY_SEND_QUERY
         end
         function read_query_result(inj)
           local res = assert(inj.resultset)
           assert(#res.fields > 0)
           fields = fields or { { name = res.fields[1].name, type = res.fields[1].type } }
           for row in res.rows do rows[#rows + 1] = row end
           if #proxy.queries > 0 then return proxy.PROXY_IGNORE_RESULT end
           proxy.response = { type = proxy.MYSQLD_PACKET_OK, resultset = { fields = fields, rows = rows } }
           return proxy.PROXY_SEND_RESULT
         end",
    );
    assert_eq!(
        world.script.read_query(&query("SELECT a FROM t_")),
        Ok(Decision::Queue)
    );
    for (part, values) in (1..).zip([&["a", "b"][..], &[], &["c"]]) {
        let item = next(&world.script);
        assert_eq!(item.packet, query(&format!("SELECT a FROM t_{part}")));
        let verdict = world.script.read_query_result(&item, result("a", values));
        match verdict {
            Ok(Verdict::Ignore) if part < 3 => {}
            Ok(Verdict::Instead(response)) if part == 3 => {
                assert_eq!(shown(&response), ["a", "b", "c"]);
            }
            other => panic!("{part}: {other:?}"),
        }
    }
}

/// Commands in comments and SET statements, deny lists, and the old names of Lua's own functions.
#[test]
fn old_lua_and_commands_of_the_scripts_own() {
    let world = world(
        "local settings, denied = { debug = 'off' }, { 'drop', 'truncate' }
         local function words(of) local all = {} for word in string.gfind(of, '%a+') do table.insert(all, string.lower(word)) end return all end
         function read_query(packet)
           if packet:byte() ~= proxy.COM_QUERY then return end
           local sql = packet:sub(2)
           local _, _, name, value = string.find(sql, '^SET GLOBAL proxy%.(%w+) = (%w+)')
           if name then
             settings[name] = value
             proxy.response.type = proxy.MYSQLD_PACKET_OK
             return proxy.PROXY_SEND_RESULT
           end
           local all = words(sql)
           table.foreachi(denied, function(_, word)
             if all[1] == word then
               proxy.response = { type = proxy.MYSQLD_PACKET_ERR, errmsg = word .. ' is denied', errcode = 1142, sqlstate = '42000' }
             end
           end)
           if proxy.response.type then return proxy.PROXY_SEND_RESULT end
           if settings.debug == 'on' then
             print(table.getn(all), math.mod(table.getn(all), 2), unpack(all))
             print((string.gsub(sql, '%d+', function(n) return '<' .. n .. '>' end)), os.date('!%Y', 0))
           end
         end",
    );
    let one = |sql: &str| world.script.read_query(&query(sql));
    let Ok(Decision::Answer(Response::Err {
        code: 1142,
        message,
        ..
    })) = one("DROP TABLE t")
    else {
        panic!("not denied")
    };
    assert_eq!(message, b"drop is denied");
    assert!(matches!(
        one("SET GLOBAL proxy.debug = on"),
        Ok(Decision::Answer(Response::Ok { .. }))
    ));
    assert_eq!(one("SELECT a, 17 FROM b"), Ok(FORWARD));
    assert_eq!(
        *world.host.lines.borrow(),
        ["4\t0\tselect\ta\tfrom\tb", "SELECT a, <17> FROM b\t1970"]
    );
}

/// Commands of all kinds are named; an auditing script says who asks what, from where.
#[test]
fn an_audit_names_who_asks_what() {
    let world = world(
        "local commands = require('proxy.commands')
         function read_auth(auth) print('login', auth.username, auth.default_db) end
         function read_auth_result(auth) print('let in', auth.packet:byte() == proxy.MYSQLD_PACKET_OK) end
         function read_query(packet)
           local c = proxy.connection.client
           print(c.src.address, c.username, c.default_db, commands.pretty_print(commands.parse(packet)))
         end
         function disconnect_client() print('gone', proxy.connection.client.thread_id) end",
    );
    assert_eq!(world.script.has_logged_in(), Ok(None));
    for packet in [query("SELECT 1"), b"\x02other".to_vec(), b"\x01".to_vec()] {
        assert_eq!(world.script.read_query(&packet), Ok(FORWARD));
    }
    assert_eq!(world.script.disconnect_client(), Ok(()));
    assert_eq!(
        *world.host.lines.borrow(),
        [
            "login\tapp\tshop",
            "let in\ttrue",
            "10.0.0.9\tapp\tshop\t[COM_QUERY] SELECT 1",
            "10.0.0.9\tapp\tshop\t[COM_INIT_DB] other",
            "10.0.0.9\tapp\tshop\t[COM_QUIT]",
            "gone\t7",
        ]
    );
}

/// A script that refuses a login says so, with its own words.
#[test]
fn a_login_is_refused_by_a_script() {
    let world = world(
        "function read_auth_result(auth)
           if proxy.connection.client.username ~= 'boss' then
             proxy.response = { type = proxy.MYSQLD_PACKET_ERR, errmsg = 'only for the boss', errcode = 1045, sqlstate = '28000' }
             return proxy.PROXY_SEND_RESULT
           end
         end",
    );
    let said = world.script.has_logged_in();
    assert!(
        matches!(said, Ok(Some(Response::Err { code: 1045, .. }))),
        "{said:?}"
    );
}

/// Scripts are chained by functions that are kept in `proxy.global` and made of texts.
#[test]
fn functions_are_made_of_texts_and_chained() {
    let world = world(
        "proxy.global.chain = proxy.global.chain or {}
         local function add(text)
           local chunk = assert(loadstring(text))
           local env = setmetatable({}, { __index = getfenv(1) })
           setfenv(chunk, env)()
           table.insert(proxy.global.chain, env.read_query)
         end
         add('function read_query(packet) return packet:gsub(\"one\", \"two\") end')
         add('function read_query(packet) return packet:gsub(\"two\", \"three\") end')
         function read_query(packet)
           for _, link in ipairs(proxy.global.chain) do packet = link(packet) end
           proxy.queries:append(1, packet)
           return proxy.PROXY_SEND_QUERY
         end",
    );
    assert_eq!(
        world.script.read_query(&query("SELECT one")),
        Ok(Decision::Queue)
    );
    assert_eq!(next(&world.script).packet, query("SELECT three"));
}
